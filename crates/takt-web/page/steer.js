// Steer: orders to the daemon, each with what it would do before it is given, and undo.

import { get, post } from './api.js';
import { clock, digits, h, say, swatch } from './elements.js';

const FIELDS = [
  ['priority', 'Priority', 1], ['fps', 'Frames per second', 'any'], ['etpf_ms', 'Reserved per frame, ms', 'any'], ['max_slice_ms', 'Longest piece, ms', 'any'],
];
const LIMITS = [['mpcg', 'Groups in flight (mpcg)'], ['max_blocking_ms', 'Longest blocking, ms or inf'], ['max_stretch_ms', 'Longest stretch, ms or inf']];

export class SteerPage {
  constructor(root, known) {
    this.known = known;
    this.slot = null;
    this.order = null;
    this.lead = h('p', { class: 'note' });
    this.apps = h('select', { 'aria-label': 'App', onchange: () => this.pick(Number(this.apps.value)) });
    this.fields = Object.fromEntries(FIELDS.map(([key, , step]) => [key, h('input', { type: 'number', min: '0', step: String(step), oninput: () => this.drop() })]));
    this.evictFor = h('input', { type: 'number', min: '1', step: '1', value: '60' });
    this.policy = h('select', {});
    this.limits = Object.fromEntries(LIMITS.map(([key]) => [key, h('input', { type: 'text', inputMode: 'decimal', oninput: () => this.drop() })]));
    this.preview = h('div', { class: 'preview', role: 'status', hidden: true });
    this.changes = h('ul', { class: 'changes' });
    this.evicted = h('div');
    const button = (text, act) => h('button', { type: 'button', onclick: act }, text);
    const label = (text, input) => h('label', {}, text, input);
    this.pauseButton = button('Pause', () => this.ask({ ask: this.app()?.state === 'paused' ? 'resume' : 'pause' }, true));
    this.who = h('p', { class: 'note' });
    this.appSet = h('fieldset', {}, h('legend', {}, 'One app'),
      h('div', { class: 'toolbar' }, this.apps, this.who),
      h('div', { class: 'fields' }, ...FIELDS.map(([key, title]) => label(title, this.fields[key]))),
      h('div', { class: 'toolbar' }, button('Preview these terms', () => this.askTerms()), this.pauseButton,
        button('Evict', () => this.ask({ ask: 'evict', for_s: Number(this.evictFor.value) }, true)), h('label', {}, 'for s ', this.evictFor)));
    this.allSet = h('fieldset', {}, h('legend', {}, 'All apps'),
      h('div', { class: 'fields' }, label('Policy', this.policy), ...LIMITS.map(([key, title]) => label(title, this.limits[key]))),
      h('div', { class: 'toolbar' }, button('Preview this policy', () => this.ask({ ask: 'policy', name: this.policy.value }, false)),
        button('Preview these limits', () => this.askLimits())));
    root.append(this.lead, h('div', { class: 'columns' },
      h('div', {}, this.appSet, this.allSet),
      h('div', {}, h('h2', {}, 'What it would do'), this.nothing = h('p', { class: 'note' }, 'Nothing is changed before you have seen what it would do.'), this.preview,
        this.evicted, h('h2', {}, 'Changes made here'), this.changes)));
    this.me();
    void this.loadChanges();
  }

  me() {
    const { me } = this.known;
    const others = me.may_change_others === null ? '' : me.may_change_others
      ? ' The daemon lets the console change all apps and the daemon itself.'
      : ` The console belongs to domain ${me.domain}, which may change its own apps only; the daemon refuses the rest.`;
    say(this.lead, me.may_steer ? `Every order is in the audit of the daemon, under the user of the console.${others}`
      : 'This link is for looking only: you see what orders would do and cannot give them. takt web prints another link for steering.');
    this.policy.replaceChildren(...me.policies.map((name) => h('option', { value: name }, name)));
    this.showLimits();
    this.showApply();
  }

  app() { return this.slot === null ? null : this.known.app(this.slot); }

  update() {
    const { now } = this.known;
    const names = now.apps.map((app) => `${app.app} ${app.name}`).join('\n');
    if (this.apps.dataset.names !== names) {
      this.apps.dataset.names = names;
      this.apps.replaceChildren(...now.apps.map((app) => h('option', { value: String(app.app) }, `${app.name} (slot ${app.app})`)));
      if (!this.app()) this.pick(now.apps[0]?.app ?? null); else this.apps.value = String(this.slot);
    }
    const app = this.app();
    this.appSet.disabled = !app;
    say(this.pauseButton, app?.state === 'paused' ? 'Resume' : 'Pause');
    say(this.who, app ? `${app.state}, priority ${app.priority}, ${app.contract}; ${app.admission}` : 'No app is scheduled.');
    if (!this.limitsShown && now.daemon) this.showLimits();
    this.showEvicted(now.evicted);
  }

  pick(slot) {
    this.slot = slot;
    const app = this.app();
    this.drop();
    if (!app) return;
    this.apps.value = String(slot);
    for (const [key] of FIELDS) this.fields[key].value = app.terms?.[key] ?? '';
  }

  showLimits() {
    const daemon = this.known.now?.daemon;
    if (!daemon) return;
    this.limitsShown = true;
    this.policy.value = daemon.policy;
    for (const [key] of LIMITS) this.limits[key].value = daemon.limits?.[key] ?? '';
  }

  showEvicted(evicted) {
    const key = evicted.map((one) => one.name).join('\n');
    if (this.evicted.dataset.names === key) return;
    this.evicted.dataset.names = key;
    this.evicted.replaceChildren(...(evicted.length ? [h('h2', {}, 'Evicted'), h('ul', { class: 'changes' }, ...evicted.map((one) => h('li', {},
      h('span', {}, `${one.name} may not come back for ${digits(one.for_s, 0)} s`),
      h('button', { type: 'button', onclick: () => this.give({ order: { ask: 'readmit', app: one.name } }) }, 'Let it come back'))))] : []));
  }

  askTerms() {
    const app = this.app();
    const order = { ask: 'set' };
    for (const [key] of FIELDS) {
      const text = this.fields[key].value.trim(), value = Number(text);
      if (text !== '' && value !== (app?.terms?.[key] ?? null)) order[key] = value;
    }
    if (Object.keys(order).length === 1) { this.showProblem('These are the terms that it has; change one.'); return; }
    void this.ask(order, true);
  }

  askLimits() {
    const order = { ask: 'adjust' };
    for (const [key] of LIMITS) {
      const text = this.limits[key].value.trim();
      if (text !== '' && text !== String(this.known.now?.daemon?.limits?.[key] ?? '')) order[key] = text === 'inf' ? text : Number(text);
    }
    if (Object.keys(order).length === 1) { this.showProblem('These are the limits in force; change one.'); return; }
    void this.ask(order, false);
  }

  /** Asks what an order would do. */
  async ask(order, ofApp) {
    const app = this.app();
    const request = ofApp && app ? { order: { ...order, app: String(app.app) }, of: { name: app.name, pid: app.pid } } : { order };
    try {
      this.showPreview(request, await post('preview', request));
    } catch (error) {
      this.showProblem(error.message);
    }
  }

  drop() {
    this.order = null;
    this.preview.hidden = true;
    this.nothing.hidden = false;
  }

  showProblem(text) {
    this.order = null;
    this.nothing.hidden = true;
    this.preview.hidden = false;
    this.preview.className = 'preview bad-edge';
    this.preview.replaceChildren(h('p', { class: 'bad' }, text));
  }

  showPreview(request, found) {
    if (found.refused) { this.showProblem(`It would be refused: ${found.refused}`); return; }
    this.order = request;
    this.nothing.hidden = true;
    this.preview.hidden = false;
    this.preview.className = `preview ${found.loses.length ? 'bad-edge' : 'good-edge'}`;
    const changed = found.apps.filter((app) => JSON.stringify({ ...app.before, guaranteed: null }) !== JSON.stringify({ ...(app.after ?? {}), guaranteed: null }));
    const state = (one) => (one ? `priority ${one.priority}, ${one.contract}${one.covered === null ? '' : one.covered ? ', holds' : ', does not hold'}${one.paused ? ', paused' : ''}` : 'not scheduled');
    this.applyButton = h('button', { type: 'button', class: 'main', onclick: () => this.give(this.order) }, 'Apply');
    this.preview.replaceChildren(
      h('p', {}, h('strong', { class: found.loses.length ? 'bad' : 'good' }, found.loses.length ? `Would break the contract of ${found.loses.join(', ')}.` : 'No contract that holds would break.')),
      ...(found.gains.length ? [h('p', { class: 'good' }, `Would hold from then on: ${found.gains.join(', ')}.`)] : []),
      ...found.notes.map((note) => h('p', {}, note)),
      ...changed.map((app) => h('p', {}, swatch(app.app), h('b', {}, app.name), `: ${state(app.before)} → ${state(app.after)}`,
        app.after?.why_not && app.before.covered ? h('small', { class: 'note' }, ` (${app.after.why_not})`) : null)),
      h('div', { class: 'toolbar' }, this.applyButton, h('button', { type: 'button', onclick: () => this.drop() }, 'Leave it')));
    this.showApply();
  }

  showApply() { if (this.applyButton) this.applyButton.disabled = !this.known.me.may_steer; }

  async give(request) {
    if (!request) return;
    try {
      const done = await post('order', request);
      this.drop();
      this.nothing.hidden = false;
      say(this.nothing, `Done; the daemon took ${digits(done.took_ms)} ms.`);
      this.limitsShown = false;
    } catch (error) {
      this.showProblem(error.message);
    }
    await this.loadChanges();
  }

  async undo(change) {
    try {
      await post('undo', { change });
    } catch (error) {
      this.showProblem(error.message);
    }
    await this.loadChanges();
  }

  async loadChanges() {
    let changes = [];
    try {
      changes = await get('changes');
    } catch {
      return;
    }
    this.changes.replaceChildren(...(changes.length ? changes.map((change) => h('li', {}, h('time', {}, clock(change.at_ms)), h('span', {}, change.text),
      change.undoable ? h('button', { type: 'button', disabled: !this.known.me.may_steer, onclick: () => this.undo(change.change) }, 'Undo') : null)) : [h('li', {}, h('span', { class: 'note' }, 'None yet.'))]));
  }
}
