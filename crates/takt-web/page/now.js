// Now: what each app has and is to have, and what to know about it.

import { get } from './api.js';
import { digits, h, ms, percent, say, swatch } from './elements.js';
import { Sparkline } from './chart.js';

const POINTS = 60;
const COLUMNS = ['App', 'State', 'Frames/s', 'Deadlines met', 'Response ms', 'GPU', 'Contract', 'What to know'];

/** The row of an app. */
class Row {
  constructor(app, points) {
    this.points = points;
    this.spark = new Sparkline();
    this.name = app.name;
    const cell = (label, kind, ...children) => {
      const element = h('td', { class: kind }, ...children);
      element.dataset.label = label;
      return element;
    };
    const small = () => h('small');
    this.parts = {
      name: h('b'), who: small(), state: h('span'), fps: h('span'), fpsOf: small(), met: h('span'), missed: small(),
      quantiles: h('span'), gpu: h('span'), meter: h('i'), frame: small(), contract: h('span'), rank: small(), say: h('span'),
    };
    const p = this.parts;
    this.root = h('tr', {},
      cell('App', 'name', swatch(app.app), p.name, p.who),
      cell('State', '', p.state),
      cell('Frames/s', '', h('span', {}, p.fps, p.fpsOf)),
      cell('Deadlines met', '', h('span', {}, p.met, p.missed)),
      cell('Response ms', '', h('span', {}, p.quantiles, this.spark.root)),
      cell('GPU', '', h('span', {}, p.gpu, h('span', { class: 'meter' }, p.meter), p.frame)),
      cell('Contract', '', h('span', {}, p.contract, p.rank)),
      cell('What to know', 'say', p.say));
  }

  update(app) {
    const p = this.parts;
    say(p.name, app.name);
    say(p.who, `slot ${app.app}, process ${app.pid}, domain ${app.domain}`);
    say(p.state, app.state);
    p.state.className = `state ${app.state.split(' ')[0]}`;
    say(p.fps, digits(app.fps));
    say(p.fpsOf, app.fps_target === null ? 'no target' : `of ${digits(app.fps_target, 0)}`);
    p.fps.className = app.fps_target !== null && app.state !== 'paused' && app.fps < app.fps_target * 0.97 ? 'bad' : '';
    say(p.met, percent(app.met));
    p.met.className = app.met === null ? '' : app.met < 1 ? 'bad' : 'good';
    say(p.missed, app.met === null ? 'no deadlines' : app.missed ? `${app.missed} missed` : 'none missed');
    const response = app.response_us;
    say(p.quantiles, response.max ? `${ms(response.p50)} p50, ${ms(response.p99)} p99` : '–');
    this.points.push({ p50: response.p50, p99: response.p99 });
    if (this.points.length > POINTS) this.points.shift();
    this.spark.draw(this.points, POINTS);
    say(p.gpu, percent(app.gpu));
    p.meter.style.width = `${Math.min(100, app.gpu * 100)}%`;
    const over = app.etpf_ms > 0 && app.frame_gpu_us.p50 / 1000 > app.etpf_ms * 1.002;
    say(p.frame, app.frame_gpu_us.p50 ? `${ms(app.frame_gpu_us.p50)} ms per frame${app.etpf_ms ? ` of ${digits(app.etpf_ms)} reserved` : ''}` : '');
    p.frame.className = over ? 'bad' : '';
    say(p.contract, app.contract);
    say(p.rank, `priority ${app.priority}${app.guaranteed ? ', guaranteed' : ''}`);
    const text = sentence(app);
    say(p.say, text);
    p.say.parentElement.classList.toggle('nothing', !text);
    p.say.className = app.late && app.late.ago_s < 30 ? '' : 'note';
  }
}

/** What to know about an app. */
function sentence(app) {
  const said = [];
  if (app.held && app.held.for_s >= 0.25) {
    const promise = app.held.promise ? `, promised ${app.held.promise}` : '';
    said.push(`Held back for ${digits(app.held.for_s)} s: ${app.held.why}${promise}.`);
  }
  if (app.late) {
    const ago = app.late.ago_s < 2 ? 'just now' : `${digits(app.late.ago_s, 0)} s ago`;
    said.push(`Late ${ago}: ${app.late.sentence}`);
  }
  if (app.promised && !app.guaranteed) said.push(`${app.admission}.`);
  return said.join('\n');
}

export class NowPage {
  constructor(root, known) {
    this.known = known;
    this.rows = new Map();
    this.body = h('tbody');
    this.table = h('table', { class: 'stack' }, h('thead', {}, h('tr', {}, ...COLUMNS.map((title) => h('th', { scope: 'col' }, title)))), this.body);
    this.empty = h('p', { class: 'empty' });
    this.note = h('p', { class: 'note' }, 'Figures of the last two seconds. The small lines are response times of the last minute: median and 99th percentile.');
    root.append(h('div', { class: 'wide' }, this.table), this.empty, this.note);
    this.before = new Map();
    void this.remember();
  }

  /** The small lines begin with what the console remembers. */
  async remember() {
    const history = await get('history?span_s=120').catch(() => null);
    for (const app of history?.apps ?? []) {
      const points = app.p50_us.map((p50, at) => ({ p50: p50 ?? 0, p99: app.p99_us[at] ?? 0 })).slice(-POINTS);
      this.before.set(app.name, points);
      for (const row of this.rows.values()) if (row.name === app.name) row.points.unshift(...points.slice(0, POINTS - row.points.length));
    }
  }

  update() {
    const { now } = this.known;
    const seen = new Set();
    now.apps.forEach((app, at) => {
      const key = `${app.app}/${app.pid}/${app.name}`;
      seen.add(key);
      if (!this.rows.has(key)) this.rows.set(key, new Row(app, this.before.get(app.name)?.slice() ?? []));
      const row = this.rows.get(key);
      row.update(app);
      if (this.body.children[at] !== row.root) this.body.insertBefore(row.root, this.body.children[at] ?? null);
    });
    for (const [key, row] of this.rows) {
      if (seen.has(key)) continue;
      row.root.remove();
      this.rows.delete(key);
    }
    this.table.hidden = this.note.hidden = now.apps.length === 0;
    this.empty.hidden = now.apps.length > 0;
    say(this.empty, now.error ?? 'No app is scheduled. Start one with takt run --schedule -- PROGRAM.');
  }
}
