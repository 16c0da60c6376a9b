// Elements made from data. Text is always text: nothing here reads markup.

/**
 * An element. Properties that begin with `on` are listeners, `class` and names with `-` are attributes.
 * @param {string} tag
 * @param {Record<string, unknown>} [properties]
 * @param {...(Node | string | number | null | undefined)} children
 * @returns {HTMLElement}
 */
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(properties)) {
    if (value === undefined || value === null) continue;
    if (key.startsWith('on')) element.addEventListener(key.slice(2), /** @type {EventListener} */ (value));
    else if (key === 'class' || key === 'for' || key === 'role' || key.includes('-')) element.setAttribute(key, String(value));
    else element[key] = value;
  }
  element.append(...children.filter((child) => child !== null && child !== undefined).map((child) => (child instanceof Node ? child : String(child))));
  return element;
}

/**
 * An element of a drawing.
 * @param {string} tag
 * @param {Record<string, string | number>} [attributes]
 * @param {string} [text]
 * @returns {SVGElement}
 */
export function s(tag, attributes = {}, text = '') {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
  if (text) element.textContent = text;
  return element;
}

/** Sets the text of an element, if it differs: selections and readers stay where they are. */
export function say(/** @type {Element} */ element, /** @type {string} */ text) {
  if (element.textContent !== text) element.textContent = text;
}

/** How many colours there are; beyond them, textures tell apps apart. */
export const COLOURS = 8;
const TEXTURES = 3;

/** The colour and texture of the app in a slot. */
export const look = (/** @type {number} */ slot) => ({ colour: slot % COLOURS, texture: Math.floor(slot / COLOURS) % TEXTURES });

/** A patch in the colour of an app. */
export function swatch(/** @type {number} */ slot) {
  const { colour, texture } = look(slot);
  return h('i', { class: `swatch c${colour} t${texture}`, 'aria-hidden': 'true' });
}

/** Digits that are worth reading. */
export function digits(/** @type {number | null | undefined} */ value, places = 1) {
  return value === null || value === undefined || !Number.isFinite(value) ? '–' : value.toFixed(places);
}

/** A share as percent; nearly all is never called all. */
export function percent(/** @type {number | null | undefined} */ share, places = 1) {
  if (share === null || share === undefined) return '–';
  const shown = (share * 100).toFixed(places);
  return `${share < 1 && Number(shown) >= 100 ? (100 - 10 ** -places).toFixed(places) : shown} %`;
}

/** Microseconds as milliseconds. */
export const ms = (/** @type {number | null | undefined} */ us, places = 2) => (us === null || us === undefined ? '–' : (us / 1000).toFixed(places));

/** A time of the day. */
export const clock = (/** @type {number} */ atMs) => new Date(atMs).toLocaleTimeString([], { hour: '2-digit', minute: '2-digit', second: '2-digit' });
