// The page as a whole: its tabs, its connection, its banner.

import { get, listen } from './api.js';
import { h, say } from './elements.js';
import { NowPage } from './now.js';
import { TimelinePage } from './timeline.js';
import { HistoryPage } from './history.js';
import { SteerPage } from './steer.js';
import { WhatIfPage } from './whatif.js';

/** What all pages know. */
export class Known {
  constructor() {
    /** What is so now; null before the first event. */
    this.now = null;
    /** What this user may do. */
    this.me = { may_steer: false, may_change_others: null, domain: null, policies: [], scenarios: [] };
  }

  /** The app in a slot, if there is one. */
  app(/** @type {number} */ slot) {
    return this.now?.apps.find((app) => app.app === slot) ?? null;
  }
}

const PAGES = [
  ['now', 'Now', NowPage],
  ['timeline', 'Timeline', TimelinePage],
  ['history', 'History', HistoryPage],
  ['steer', 'Steer', SteerPage],
  ['whatif', 'What if', WhatIfPage],
];

const known = new Known();
const [link, banner, main, tabs] = ['link', 'banner', 'page', 'tabs'].map((id) => document.getElementById(id));
let page = null;
let connection = new AbortController();
let withTimeline = null;

function open(id) {
  const entry = PAGES.find(([name]) => name === id) ?? PAGES[0];
  page?.close?.();
  for (const tab of tabs.children) {
    const selected = tab.dataset.page === entry[0];
    tab.setAttribute('aria-selected', String(selected));
    tab.tabIndex = selected ? 0 : -1;
  }
  main.replaceChildren();
  main.setAttribute('aria-label', entry[1]);
  page = new entry[2](main, known);
  document.title = `${entry[1]} – Takt`;
  sessionStorage.setItem('takt-page', entry[0]);
  if (known.now) page.update?.();
  connect();
}

function connect() {
  const wanted = Boolean(page?.wantsTimeline);
  if (wanted === withTimeline) return;
  withTimeline = wanted;
  connection.abort();
  connection = new AbortController();
  void listen(wanted, heard, linked, connection.signal);
}

function heard(name, data) {
  if (name === 'now') {
    known.now = data;
    showBanner();
    showLink();
    page.update?.();
  } else if (name === 'timeline') {
    page.timeline?.(data);
  }
}

let problem = 'connecting';

function linked(found) {
  if (problem !== null && found === null) void getMe();
  problem = found;
  showLink();
}

async function getMe() {
  try {
    known.me = await get('me');
    page.me?.();
  } catch {
    // The next connection asks again.
  }
}

function showLink() {
  const { now } = known;
  const text = problem ?? now?.error ?? (now?.daemon ? `${now.daemon.policy} at ${now.daemon.refresh_hz.toFixed(0)} Hz, GPU busy ${(now.gpu * 100).toFixed(0)} %` : 'connected');
  link.classList.toggle('lost', problem !== null || Boolean(now?.error));
  say(link, text);
}

function showBanner() {
  const { now } = known;
  const { contracts, guaranteed, reasons } = now.guarantee;
  const lines = [...now.alarms];
  let kind = 'plain', headline = 'No app has a contract.';
  if (contracts > 0) {
    kind = guaranteed === contracts ? '' : 'partly';
    headline = guaranteed === contracts
      ? `Guaranteed: all deadlines of ${contracts} app${contracts === 1 ? '' : 's'} with a contract.`
      : `Guaranteed: ${guaranteed} of ${contracts} contracts.`;
  }
  if (now.alarms.length) kind = 'bad';
  if (now.error) [kind, headline] = ['bad', 'No daemon answers.'];
  const why = reasons.map(([app, reason]) => `${app}: ${reason}`);
  const others = now.outsiders.map((one) => `Outside of Takt: ${one.name} (process ${one.pid}) has ${one.device} open.`);
  const all = [...lines, ...why, ...others, ...(now.unseen ? [`Other processes may use the GPU unseen: ${now.unseen}.`] : [])];
  const shown = JSON.stringify([kind, headline, all]);
  banner.hidden = false;
  if (banner.dataset.shown === shown) return;
  banner.dataset.shown = shown;
  const wasOpen = banner.querySelector('details')?.open ?? all.length <= 3;
  banner.className = `banner ${kind}`;
  const list = h('ul', {}, ...all.map((line) => h('li', {}, line)));
  const summary = h('summary', {}, h('strong', {}, headline), all.length ? `${all.length} thing${all.length === 1 ? '' : 's'} to know` : '');
  banner.replaceChildren(all.length ? h('details', { open: wasOpen }, summary, list) : h('strong', {}, headline));
}

for (const [id, title] of PAGES) {
  const tab = h('button', { type: 'button', role: 'tab', id: `tab-${id}`, 'aria-controls': 'page', onclick: () => open(id) }, title);
  tab.dataset.page = id;
  tabs.append(tab);
}
tabs.addEventListener('keydown', (event) => {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step) return;
  event.preventDefault();
  const at = [...tabs.children].indexOf(document.activeElement);
  const next = tabs.children[(at + step + tabs.children.length) % tabs.children.length];
  next.focus();
  open(next.dataset.page);
});
addEventListener('keydown', (event) => {
  const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement?.tagName ?? '');
  const number = Number(event.key);
  if (typing || event.ctrlKey || event.altKey || event.metaKey || !(number >= 1 && number <= PAGES.length)) return;
  open(PAGES[number - 1][0]);
});

// Light, dark, or as the system has it.
const dark = matchMedia('(prefers-color-scheme: dark)');
const THEMES = ['auto', 'light', 'dark'];
const themed = () => {
  const theme = localStorage.getItem('takt-theme') ?? 'auto';
  const isDark = theme === 'dark' || (theme === 'auto' && dark.matches);
  document.documentElement.dataset.theme = isDark ? 'dark' : 'light';
  say(document.getElementById('theme'), `Theme: ${theme}`);
  page?.themed?.();
};
document.getElementById('theme').addEventListener('click', () => {
  const at = THEMES.indexOf(localStorage.getItem('takt-theme') ?? 'auto');
  localStorage.setItem('takt-theme', THEMES[(at + 1) % THEMES.length]);
  themed();
});
dark.addEventListener('change', themed);
themed();
open(sessionStorage.getItem('takt-page') ?? 'now');
