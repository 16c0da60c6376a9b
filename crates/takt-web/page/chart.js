// Drawings of figures over time.

import { h, s } from './elements.js';

/** A small line of medians and 99th percentiles, in microseconds. */
export class Sparkline {
  constructor() {
    this.p50 = s('path', { class: 'p50' });
    this.p99 = s('path', { class: 'p99' });
    this.root = s('svg', { class: 'spark', viewBox: '0 0 110 30', preserveAspectRatio: 'none', 'aria-hidden': 'true' });
    this.root.append(this.p99, this.p50);
  }

  draw(/** @type {{p50: number, p99: number}[]} */ points, /** @type {number} */ room) {
    const most = Math.max(1, ...points.map((point) => point.p99));
    const path = (/** @type {'p50' | 'p99'} */ key) => points
      .map((point, i) => `${i ? 'L' : 'M'}${(i / Math.max(1, room - 1) * 108 + 1).toFixed(1)} ${(28.5 - point[key] / most * 27).toFixed(1)}`)
      .join('');
    this.p50.setAttribute('d', path('p50'));
    this.p99.setAttribute('d', path('p99'));
  }
}

const WIDTH = 1000, HEIGHT = 300, LEFT = 58, BOTTOM = 26, TOP = 10;

/** Round numbers from 0 to `most`. */
function ticks(/** @type {number} */ most) {
  const rough = most / 5, scale = 10 ** Math.floor(Math.log10(rough)), step = [1, 2, 5, 10].find((n) => n * scale >= rough) * scale;
  return Array.from({ length: Math.floor(most / step + 1e-9) + 1 }, (_, i) => i * step);
}

/**
 * Lines over time.
 * @typedef {{name: string, colour: number, texture: number, values: (number | null)[]}} Line
 */
export class Chart {
  /** @param {(index: number | null) => void} hovered told which sample is under the pointer */
  constructor(hovered) {
    this.root = s('svg', { class: 'chart', role: 'img' });
    this.tip = h('div', { class: 'tip', hidden: true });
    this.stage = h('div', { class: 'stage' }, this.root, this.tip);
    this.root.addEventListener('pointermove', (event) => this.hover(/** @type {PointerEvent} */ (event)));
    this.root.addEventListener('pointerleave', () => { this.tip.hidden = true; this.hair?.remove(); hovered(null); });
    this.hovered = hovered;
    new ResizeObserver(() => this.redraw()).observe(this.root);
  }

  /**
   * @param {number[]} times
   * @param {Line[]} lines
   * @param {{at_ms: number, text: string}[]} marks
   * @param {{unit: string, most?: number, show: (value: number) => string}} axis
   */
  draw(times, lines, marks, axis) {
    this.data = { times, lines, marks, axis };
    this.redraw();
  }

  redraw() {
    if (!this.data) return;
    const { times, lines, marks, axis } = this.data;
    const width = Math.max(260, this.root.clientWidth || WIDTH);
    this.root.setAttribute('viewBox', `0 0 ${width} ${HEIGHT}`);
    const values = lines.flatMap((line) => line.values.filter((value) => value !== null));
    const most = axis.most ?? Math.max(1e-6, ...values) * 1.08;
    const [from, to] = [times[0] ?? 0, times[times.length - 1] ?? 1];
    const x = (at) => LEFT + (at - from) / Math.max(1, to - from) * (width - LEFT - 8);
    const y = (value) => HEIGHT - BOTTOM - value / most * (HEIGHT - BOTTOM - TOP);
    this.x = x;
    const parts = [];
    for (const tick of ticks(most)) {
      parts.push(s('line', { class: 'grid', x1: LEFT, x2: width - 8, y1: y(tick), y2: y(tick) }));
      parts.push(s('text', { x: LEFT - 6, y: y(tick) + 4, 'text-anchor': 'end' }, axis.show(tick)));
    }
    const count = Math.max(2, Math.min(6, Math.floor(width / 150)));
    for (let i = 0; i < count && times.length > 1; i += 1) {
      const at = from + (to - from) * i / (count - 1);
      const anchor = i === 0 ? 'start' : i === count - 1 ? 'end' : 'middle';
      parts.push(s('text', { x: x(at), y: HEIGHT - 8, 'text-anchor': anchor }, new Date(at).toLocaleTimeString()));
    }
    for (const mark of marks.filter((one) => one.at_ms >= from && one.at_ms <= to)) {
      const line = s('line', { class: 'mark', x1: x(mark.at_ms), x2: x(mark.at_ms), y1: TOP, y2: HEIGHT - BOTTOM });
      line.append(s('title', {}, mark.text));
      parts.push(line);
    }
    for (const line of lines) {
      let path = '', open = false;
      line.values.forEach((value, i) => {
        if (value === null) { open = false; return; }
        path += `${open ? 'L' : 'M'}${x(times[i]).toFixed(1)} ${y(value).toFixed(1)}`;
        open = true;
      });
      parts.push(s('path', { class: `l${line.colour} d${line.texture}`, d: path }));
    }
    this.root.replaceChildren(...parts);
  }

  hover(/** @type {PointerEvent} */ event) {
    const { times, lines, marks, axis } = this.data ?? { times: [] };
    if (times.length < 2 || !this.x) return;
    const at = event.offsetX;
    let near = 0;
    times.forEach((time, i) => { if (Math.abs(this.x(time) - at) < Math.abs(this.x(times[near]) - at)) near = i; });
    this.hair?.remove();
    const x = this.x(times[near]);
    this.hair = s('line', { class: 'hair', x1: x, x2: x, y1: TOP, y2: HEIGHT - BOTTOM });
    this.root.append(this.hair);
    const step = times[1] - times[0];
    const said = marks.filter((mark) => Math.abs(mark.at_ms - times[near]) <= step).map((mark) => mark.text);
    const rows = lines.filter((line) => line.values[near] !== null).sort((a, b) => b.values[near] - a.values[near]).slice(0, 12);
    this.tip.textContent = [new Date(times[near]).toLocaleTimeString(), ...said.map((text) => `◆ ${text}`),
      ...rows.map((line) => `${line.name}: ${axis.show(line.values[near])} ${axis.unit}`)].join('\n');
    this.tip.hidden = false;
    this.tip.style.left = `${Math.max(0, Math.min(x + 12, this.root.clientWidth - this.tip.offsetWidth - 4))}px`;
    this.tip.style.top = '12px';
    this.hovered(near);
  }
}
