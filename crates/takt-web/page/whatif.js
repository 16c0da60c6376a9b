// What if: a scenario is simulated twice, with a difference, and compared.

import { post } from './api.js';
import { digits, h, ms, percent, say } from './elements.js';

/** One side: what differs from the scenario, and what came of it. */
class Side {
  constructor(title, policy) {
    this.title = title;
    this.policy = h('select', { 'aria-label': `Policy of ${title}` });
    this.first = policy;
    this.set = h('textarea', { class: 'short', spellcheck: false, 'aria-label': `Changes of ${title}`, placeholder: 'app.game.priority=200' });
    this.root = h('div', {}, h('h2', {}, title), h('div', { class: 'toolbar' }, h('label', {}, 'Policy ', this.policy)),
      h('label', { class: 'note' }, 'Changes, one KEY=VALUE in each line', this.set));
  }

  policies(names) {
    const was = this.policy.value || this.first;
    this.policy.replaceChildren(h('option', { value: '' }, 'as in the scenario'), ...names.map((name) => h('option', { value: name }, name)));
    this.policy.value = names.includes(was) ? was : '';
  }

  request(scenario) {
    const set = this.set.value.split('\n').map((line) => line.trim()).filter(Boolean);
    return { scenario, set, policy: this.policy.value || null };
  }
}

export class WhatIfPage {
  constructor(root, known) {
    this.known = known;
    this.example = h('select', { 'aria-label': 'Scenario', onchange: () => this.load() });
    this.scenario = h('textarea', { spellcheck: false, 'aria-label': 'Scenario' });
    this.sides = [new Side('A', ''), new Side('B', 'fifo')];
    this.run = h('button', { type: 'button', class: 'main', onclick: () => this.simulate() }, 'Simulate both');
    this.status = h('p', { class: 'note', role: 'status' });
    this.results = h('div');
    const file = h('input', { type: 'file', accept: '.toml,text/plain', 'aria-label': 'Scenario file', onchange: async () => { if (file.files[0]) this.scenario.value = await file.files[0].text(); } });
    root.append(
      h('p', { class: 'note' }, 'The same core that schedules this GPU plays a scenario of the simulator, twice. Nothing here changes what runs.'),
      h('div', { class: 'toolbar' }, h('label', {}, 'Begin with ', this.example), h('button', { type: 'button', onclick: () => this.fromNow() }, 'The apps that run now'), file),
      this.scenario,
      h('div', { class: 'halves' }, ...this.sides.map((side) => side.root)),
      h('div', { class: 'toolbar' }, this.run, this.status), this.results);
    this.me();
  }

  me() {
    const { me } = this.known;
    this.sides.forEach((side) => side.policies(me.policies));
    const was = this.example.value;
    this.example.replaceChildren(...me.scenarios.map(([name]) => h('option', { value: name }, name)));
    if (was) this.example.value = was;
    if (!this.scenario.value) this.load();
  }

  load() {
    const found = this.known.me.scenarios.find(([name]) => name === this.example.value);
    if (found) this.scenario.value = found[1];
  }

  /** A scenario with an app for each that runs, whose frames cost what they cost now. */
  fromNow() {
    const { now } = this.known;
    if (!now?.apps.length) { say(this.status, 'No app is scheduled.'); return; }
    const taken = new Set();
    const name = (text) => {
      let plain = text.replace(/[^A-Za-z0-9_-]/g, '_').slice(0, 40) || 'app';
      while (taken.has(plain)) plain += '_';
      taken.add(plain);
      return plain;
    };
    const most = now.apps.length;
    const apps = now.apps.map((app, at) => {
      const cost = Math.max(50, Math.round(app.frame_gpu_us.p50 || 1000)), fps = Math.round(app.fps_target ?? now.daemon.refresh_hz);
      return ['', '[[app]]', `name = "${name(app.name)}"`, `priority = ${(most - at) * 10}`, `fps = ${fps}`, ...(app.fps_target === null ? ['unpaced = true'] : []),
        `etpf_us = ${Math.round(app.etpf_ms * 1000)}`, `swap_us = ${cost}`, 'prediction = { noise = 0.1 }'].join('\n');
    });
    this.scenario.value = ['# Made of the apps that run: each frame is one piece of work, as long as the median of the last seconds.',
      'name = "now"', 'duration_s = 5', '', '[display]', `refresh_hz = ${Math.round(now.daemon.refresh_hz)}`, '', '[scheduler]', 'policy = "timeline"', ...apps, ''].join('\n');
  }

  async simulate() {
    this.run.disabled = true;
    say(this.status, 'Simulating…');
    this.status.className = 'note';
    try {
      const results = [];
      for (const side of this.sides) results.push(await post('simulate', side.request(this.scenario.value)));
      this.show(results);
      say(this.status, '');
    } catch (error) {
      this.status.className = 'bad';
      say(this.status, error.message);
    }
    this.run.disabled = false;
  }

  show([a, b]) {
    const names = [...new Set([...a.apps, ...b.apps].map((app) => app.name))];
    const figures = [
      ['Frames/s', (app) => app.fps, (value) => digits(value)], ['Deadlines met', (app) => app.met, (value) => percent(value)],
      ['p99 ms', (app) => app.response_us.p99, (value) => ms(value)], ['GPU', (app) => app.gpu_share, (value) => percent(value)],
    ];
    const cell = (app, [, read, show], other) => {
      const value = app ? read(app) : null, differs = other && value !== null && show(read(other)) !== show(value);
      return h('td', { class: 'num' }, differs ? h('b', {}, show(value)) : value === null ? '–' : show(value));
    };
    const rows = names.map((name) => {
      const [x, y] = [a, b].map((run) => run.apps.find((app) => app.name === name));
      return h('tr', {}, h('td', { class: 'name' }, name), ...figures.flatMap((figure) => [cell(x, figure, y), cell(y, figure, x)]));
    });
    const misses = (run, title) => h('div', {}, h('h2', {}, `${title}: ${run.misses.length + run.misses_omitted} missed deadlines under ${run.policy}`),
      h('ul', { class: 'note' }, ...run.misses.slice(0, 5).map((miss) => h('li', {}, miss.sentence))));
    this.results.replaceChildren(
      h('div', { class: 'wide' }, h('table', {}, h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, 'App'),
        ...figures.flatMap(([title]) => [h('th', { class: 'num', scope: 'col' }, `${title} A`), h('th', { class: 'num', scope: 'col' }, 'B')]))), h('tbody', {}, ...rows))),
      h('div', { class: 'halves' }, misses(a, 'A'), misses(b, 'B')));
  }
}
