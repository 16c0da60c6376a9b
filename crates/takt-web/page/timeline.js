// Timeline: what the GPU did in the last seconds, and what happens as it happens.

import { download } from './api.js';
import { h, look, say } from './elements.js';

const KEPT_US = 10e6;
const ITEMS_MAX = 20000;
const SPANS_MS = [20, 50, 100, 200, 500, 1000, 2000, 5000];
const LAG_US = 120e3;
const TOP = 22, LANE_MIN = 24, LANE_MAX = 46, GPU_LANE = 30;

/** The first index whose key is at least `value`. */
function lowerBound(list, value, key) {
  let [low, high] = [0, list.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (key(list[middle]) < value) low = middle + 1; else high = middle;
  }
  return low;
}

/** What one app did. */
class Lane {
  constructor(slot, name) {
    this.slot = slot;
    this.name = name;
    this.here = true;
    /** Runs, grants, frames, misses and holds, each by time. */
    this.runs = [];
    this.grants = [];
    this.frames = [];
    this.misses = [];
    this.holds = [];
  }

  forget(before) {
    const drop = (list, key) => {
      const at = Math.max(lowerBound(list, before, key), list.length - ITEMS_MAX);
      if (at > 256 || list.length > ITEMS_MAX) list.splice(0, at);
    };
    drop(this.runs, (run) => run.to);
    drop(this.grants, (grant) => grant.at);
    drop(this.frames, (frame) => frame.due);
    drop(this.misses, (miss) => miss.due);
    drop(this.holds, (hold) => hold.to ?? Infinity);
  }
}

/** Everything that is known. */
class Store {
  constructor() { this.reset(); }

  reset() {
    this.lanes = new Map();
    this.vsyncs = [];
    this.gaps = [];
    this.now = 0;
    this.error = null;
    this.baseMs = 0;
  }

  lane(slot) {
    if (!this.lanes.has(slot)) this.lanes.set(slot, new Lane(slot, `slot ${slot}`));
    return this.lanes.get(slot);
  }

  take(event) {
    if (event.reset) this.reset();
    this.error = event.error;
    this.baseMs = event.base_ms;
    this.now = Math.max(this.now, event.now_us);
    for (const item of event.items) this.put(item);
    for (const lane of this.lanes.values()) lane.forget(this.now - KEPT_US);
    while (this.vsyncs.length > 2000) this.vsyncs.shift();
  }

  put([kind, slot, ...rest]) {
    if (kind === 'vsync') { this.vsyncs.push(slot); return; }
    if (kind === 'gap') { this.gaps.push({ at: slot, records: rest[0] }); return; }
    if (kind === 'app') {
      const lane = this.lane(slot);
      // The slot has changed hands.
      if (lane.name !== rest[0]) this.lanes.set(slot, new Lane(slot, rest[0]));
      this.lane(slot).here = true;
      return;
    }
    const lane = this.lane(slot);
    if (kind === 'run') insert(lane.runs, { group: rest[0], from: rest[1], to: rest[2] }, (run) => run.to);
    else if (kind === 'grant') {
      insert(lane.grants, { group: rest[0], at: rest[1], reserved: rest[2] }, (grant) => grant.at);
      const hold = lane.holds[lane.holds.length - 1];
      if (hold && hold.to === null) hold.to = rest[1];
    } else if (kind === 'frame') {
      insert(lane.frames, { frame: rest[0], from: rest[1], due: rest[2], ended: rest[3], met: rest[4] }, (frame) => frame.due);
    } else if (kind === 'miss') {
      insert(lane.misses, { frame: rest[0], due: rest[1] }, (miss) => miss.due);
    } else if (kind === 'hold') {
      const last = lane.holds[lane.holds.length - 1];
      if (last && last.to === null) last.to = rest[0];
      lane.holds.push({ from: rest[0], to: null, why: rest[1], by: rest[2] });
    } else if (kind === 'left') lane.here = false;
  }
}

/** Puts something where it belongs in a list that is in order but for a few. */
function insert(list, item, key) {
  let at = list.length;
  while (at > 0 && key(list[at - 1]) > key(item)) at -= 1;
  list.splice(at, 0, item);
}

export class TimelinePage {
  constructor(root, known) {
    this.known = known;
    this.wantsTimeline = true;
    this.store = new Store();
    this.span = 200e3;
    /** The right end of the view while it stands still; null while it follows. */
    this.stop = null;
    this.canvas = h('canvas', { tabIndex: 0, role: 'img', 'aria-label': 'When which app had the GPU. Space pauses, arrows move, plus and minus zoom, M goes to the last missed deadline.' });
    this.tip = h('div', { class: 'tip', hidden: true });
    const button = (text, act, title) => h('button', { type: 'button', title, onclick: act }, text);
    this.pauseButton = button('Pause', () => this.toggle(), 'Space');
    this.spanSelect = h('select', { 'aria-label': 'Span', onchange: () => this.zoomTo(Number(this.spanSelect.value) * 1000) },
      ...SPANS_MS.map((ms) => h('option', { value: String(ms), selected: ms === 200 }, ms < 1000 ? `${ms} ms` : `${ms / 1000} s`)));
    this.status = h('span', { class: 'note', role: 'status' });
    root.append(
      h('div', { class: 'toolbar' }, this.pauseButton, button('Last miss', () => this.visitMiss(), 'M'), button('−', () => this.zoom(2), 'Zoom out (−)'),
        button('+', () => this.zoom(0.5), 'Zoom in (+)'), this.spanSelect, button('Export 10 s for Perfetto', () => this.export(), 'Saves takt.pftrace'), this.status),
      h('div', { class: 'stage' }, this.canvas, this.tip),
      h('p', { class: 'note' }, 'A block is work of an app on the GPU, a small triangle a grant. A bar below says how long the app was held back: hover tells for which promise. ',
        'A green line is a deadline that was met, a red cross one that was missed. Drag or arrow keys move, the wheel zooms.'));
    this.listen();
    this.resize = new ResizeObserver(() => this.size());
    this.resize.observe(this.canvas);
    this.alive = true;
    this.drawn = 0;
    this.readColours();
    const frame = () => {
      if (!this.alive) return;
      this.draw();
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  }

  close() {
    this.alive = false;
    this.resize.disconnect();
  }

  timeline(event) {
    const was = this.store.now;
    this.store.take(event);
    if (event.reset) { this.stop = null; this.showPaused(); }
    // The time of the last event and when it came, to go on in between.
    if (this.store.now !== was || event.reset) { this.anchor = { us: this.store.now, at: performance.now() }; }
    say(this.status, this.store.error ?? (this.store.gaps.length ? 'Records are missing: this machine was too busy.' : ''));
  }

  themed() { this.readColours(); }

  readColours() {
    const style = getComputedStyle(document.documentElement);
    const read = (name) => style.getPropertyValue(name).trim();
    this.colours = { apps: Array.from({ length: 8 }, (_, i) => read(`--app${i}`)) };
    for (const name of ['paper', 'ink', 'muted', 'line', 'band', 'bad', 'good', 'warn']) this.colours[name] = read(`--${name}`);
    this.textures = new Map();
  }

  /** The right end of what is shown. */
  end() {
    if (this.stop !== null) return this.stop;
    const anchor = this.anchor;
    if (!anchor) return 0;
    const ahead = Math.min((performance.now() - anchor.at) * 1000, 2e6);
    return anchor.us + ahead - LAG_US;
  }

  lanes() { return [...this.store.lanes.values()].filter((lane) => lane.here || lane.runs.length).sort((a, b) => this.rank(a) - this.rank(b)); }

  /** Most important first, as the list of apps is. */
  rank(lane) {
    const at = this.known.now?.apps.findIndex((app) => app.app === lane.slot) ?? -1;
    return at < 0 ? 1000 + lane.slot : at;
  }

  size() {
    const ratio = devicePixelRatio || 1, width = this.canvas.clientWidth;
    this.canvas.width = Math.round(width * ratio);
    this.width = width;
    this.gutter = width < 520 ? 74 : 132;
    this.heightFor = -1;
  }

  fitHeight(count) {
    if (this.heightFor === count) return;
    this.heightFor = count;
    const room = Math.max(240, innerHeight - this.canvas.getBoundingClientRect().top - 90);
    this.lane = Math.max(LANE_MIN, Math.min(LANE_MAX, Math.floor((room - TOP - GPU_LANE) / Math.max(1, count))));
    const height = TOP + GPU_LANE + this.lane * Math.max(1, count) + 6;
    this.canvas.style.height = `${height}px`;
    this.canvas.height = Math.round(height * (devicePixelRatio || 1));
    this.height = height;
  }

  x(us) { return this.gutter + (us - this.from) * this.scale; }
  us(x) { return this.from + (x - this.gutter) / this.scale; }

  fill(context, slot) {
    const { colour, texture } = look(slot), base = this.colours.apps[colour];
    if (texture === 0) return base;
    const key = `${colour}/${texture}`;
    if (!this.textures.has(key)) {
      const tile = document.createElement('canvas');
      tile.width = tile.height = 6;
      const pen = tile.getContext('2d');
      pen.fillStyle = base;
      pen.fillRect(0, 0, 6, 6);
      pen.fillStyle = this.colours.paper;
      if (texture === 1) pen.fillRect(0, 0, 2, 6); else pen.fillRect(0, 0, 6, 2);
      this.textures.set(key, context.createPattern(tile, 'repeat'));
    }
    return this.textures.get(key);
  }

  draw() {
    if (!this.width) this.size();
    if (!this.width) return;
    const lanes = this.lanes();
    this.fitHeight(lanes.length);
    this.shown = lanes;
    const context = this.canvas.getContext('2d'), ratio = devicePixelRatio || 1;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = this.colours.paper;
    context.fillRect(0, 0, this.width, this.height);
    const to = this.end();
    this.from = to - this.span;
    this.scale = (this.width - this.gutter - 6) / this.span;
    this.drawGrid(context, to);
    context.save();
    context.beginPath();
    context.rect(this.gutter, 0, this.width - this.gutter - 5, this.height);
    context.clip();
    lanes.forEach((lane, at) => this.drawLane(context, lane, TOP + GPU_LANE + at * this.lane, to));
    context.restore();
    this.drawNames(context, lanes);
    this.drawn += 1;
    // How often it was drawn, for those who measure.
    if (this.drawn % 8 === 0) this.canvas.dataset.drawn = String(this.drawn);
  }

  drawGrid(context, to) {
    const { colours } = this;
    context.font = "11px system-ui, 'DejaVu Sans', sans-serif";
    context.textBaseline = 'middle';
    const rough = this.span / Math.max(2, (this.width - this.gutter) / 110), scale = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].find((n) => n * scale >= rough) * scale;
    context.strokeStyle = colours.line;
    context.lineWidth = 1;
    context.textAlign = 'center';
    for (let at = to - step; at > this.from; at -= step) {
      const x = Math.round(this.x(at)) + 0.5;
      context.beginPath();
      context.moveTo(x, TOP - 4);
      context.lineTo(x, this.height);
      context.stroke();
      const label = `−${((to - at) / 1000).toFixed(step < 1000 ? 1 : 0)} ms`;
      if (x > this.gutter + 26 && x < this.width - 26) {
        context.fillStyle = colours.muted;
        context.fillText(label, x, 9);
      }
    }
  }

  drawNames(context, lanes) {
    const { colours } = this;
    context.textAlign = 'left';
    context.fillStyle = colours.muted;
    context.fillText('GPU', 4, TOP + GPU_LANE / 2);
    lanes.forEach((lane, at) => {
      const middle = TOP + GPU_LANE + at * this.lane + this.lane / 2;
      context.fillStyle = this.fill(context, lane.slot);
      context.fillRect(4, middle - 5, 10, 10);
      context.fillStyle = lane.here ? colours.ink : colours.muted;
      context.fillText(this.shortened(context, lane.name, this.gutter - 24), 19, middle);
    });
  }

  shortened(context, name, room) {
    if (context.measureText(name).width <= room) return name;
    let kept = [...name];
    while (kept.length > 1 && context.measureText(`${kept.join('')}…`).width > room) kept = kept.slice(0, -1);
    return `${kept.join('')}…`;
  }

  drawLane(context, lane, top, to) {
    const { colours, lane: height } = this, inner = height - 10;
    context.strokeStyle = colours.line;
    context.beginPath();
    context.moveTo(this.gutter, top + 0.5);
    context.lineTo(this.width, top + 0.5);
    context.stroke();
    const fill = this.fill(context, lane.slot);
    context.fillStyle = fill;
    for (let i = lowerBound(lane.runs, this.from, (run) => run.to); i < lane.runs.length && lane.runs[i].from < to; i += 1) {
      const run = lane.runs[i], x = this.x(run.from), width = Math.max(1, (run.to - run.from) * this.scale);
      context.fillRect(x, top + 3, width, inner - 3);
      context.fillRect(x, TOP + 3, width, GPU_LANE - 6);
    }
    context.fillStyle = colours.warn;
    for (let i = lowerBound(lane.holds, this.from, (hold) => hold.to ?? Infinity); i < lane.holds.length && lane.holds[i].from < to; i += 1) {
      const hold = lane.holds[i], x = this.x(hold.from);
      context.fillRect(x, top + height - 6, Math.max(1, this.x(Math.min(hold.to ?? to, to)) - x), 2.5);
    }
    context.fillStyle = colours.muted;
    for (let i = lowerBound(lane.grants, this.from, (grant) => grant.at); i < lane.grants.length && lane.grants[i].at < to; i += 1) {
      const x = this.x(lane.grants[i].at);
      context.beginPath();
      context.moveTo(x - 2.5, top + 1);
      context.lineTo(x + 2.5, top + 1);
      context.lineTo(x, top + 5);
      context.fill();
    }
    this.drawDeadlines(context, lane, top, to);
  }

  drawDeadlines(context, lane, top, to) {
    const { colours, lane: height } = this;
    context.lineWidth = 1.5;
    context.strokeStyle = colours.good;
    context.beginPath();
    for (let i = lowerBound(lane.frames, this.from, (frame) => frame.due); i < lane.frames.length && lane.frames[i].due < to; i += 1) {
      if (!lane.frames[i].met) continue;
      const x = this.x(lane.frames[i].due);
      context.moveTo(x, top + 4);
      context.lineTo(x, top + height - 7);
    }
    context.stroke();
    context.strokeStyle = colours.bad;
    context.lineWidth = 2;
    context.beginPath();
    for (let i = lowerBound(lane.misses, this.from, (miss) => miss.due); i < lane.misses.length && lane.misses[i].due < to; i += 1) {
      const x = this.x(lane.misses[i].due), y = top + height / 2 - 2;
      context.moveTo(x, top + 2);
      context.lineTo(x, top + height - 3);
      context.moveTo(x - 4, y - 4);
      context.lineTo(x + 4, y + 4);
      context.moveTo(x + 4, y - 4);
      context.lineTo(x - 4, y + 4);
    }
    context.stroke();
    context.lineWidth = 1;
  }

  /** What is under the pointer, in words. */
  describe(x, y) {
    const at = this.us(x), slack = 3 / this.scale;
    if (x < this.gutter || !this.shown) return null;
    const near = (list, key) => list.find((item) => Math.abs(key(item) - at) <= slack);
    if (y < TOP + GPU_LANE) {
      for (const lane of this.shown) {
        const run = lane.runs.find((one) => one.from - slack <= at && one.to + slack >= at);
        if (run) return this.describeRun(lane, run);
      }
      return null;
    }
    const lane = this.shown[Math.floor((y - TOP - GPU_LANE) / this.lane)];
    if (!lane) return null;
    const miss = near(lane.misses, (one) => one.due);
    const hold = lane.holds.find((one) => one.from <= at && (one.to ?? Infinity) >= at);
    if (miss) return `${lane.name}: missed the deadline of frame ${miss.frame}${hold ? `\n${this.describeHold(lane, hold)}` : ''}`;
    const run = lane.runs.find((one) => one.from - slack <= at && one.to + slack >= at);
    const parts = [];
    if (run) parts.push(this.describeRun(lane, run));
    if (hold) parts.push(this.describeHold(lane, hold));
    const frame = near(lane.frames, (one) => one.due);
    if (frame) parts.push(`${lane.name}: frame ${frame.frame} was due, ended ${((frame.due - frame.ended) / 1000).toFixed(2)} ms before`);
    const grant = near(lane.grants, (one) => one.at);
    if (grant && !run) parts.push(`${lane.name}: group ${grant.group} granted, ${(grant.reserved / 1000).toFixed(2)} ms set aside`);
    return parts.length ? parts.join('\n') : null;
  }

  describeRun(lane, run) { return `${lane.name}: group ${run.group} ran for ${((run.to - run.from) / 1000).toFixed(3)} ms`; }

  describeHold(lane, hold) {
    const by = hold.by === null ? null : this.known.app(hold.by);
    const promise = by?.promised ? `: ${by.name} is promised ${by.contract}` : '';
    const length = ((hold.to ?? this.end()) - hold.from) / 1000;
    return `${lane.name} held back for ${length.toFixed(2)} ms: ${hold.why}${promise}`;
  }

  hover(event) {
    const text = this.describe(event.offsetX, event.offsetY);
    this.tip.hidden = !text;
    if (!text) return;
    say(this.tip, text);
    this.tip.style.left = `${Math.max(0, Math.min(event.offsetX + 12, this.width - this.tip.offsetWidth - 4))}px`;
    this.tip.style.top = `${event.offsetY + 16}px`;
  }

  toggle() {
    this.stop = this.stop === null ? this.end() : null;
    this.showPaused();
  }

  showPaused() { say(this.pauseButton, this.stop === null ? 'Pause' : 'Go on'); }

  halt() {
    if (this.stop === null) this.stop = this.end();
    this.showPaused();
  }

  move(by) {
    this.halt();
    this.stop = Math.max(this.span, Math.min(this.stop + by, this.store.now));
  }

  zoomTo(span) {
    this.span = Math.max(2e3, Math.min(span, KEPT_US));
    const known = SPANS_MS.find((ms) => ms * 1000 === this.span);
    this.spanSelect.value = known ? String(known) : '';
  }

  zoom(factor, around = null) {
    const span = Math.max(2e3, Math.min(this.span * factor, KEPT_US));
    if (this.stop !== null) {
      const middle = around ?? this.stop - this.span / 2;
      this.stop = middle + (this.stop - middle) * span / this.span;
    }
    this.zoomTo(span);
  }

  visitMiss() {
    const before = this.stop === null ? Infinity : this.stop - this.span / 2 - 1;
    const all = [...this.store.lanes.values()].flatMap((lane) => lane.misses.map((miss) => miss.due)).sort((a, b) => a - b);
    const miss = all.findLast((due) => due < before) ?? all[all.length - 1];
    if (miss === undefined) { say(this.status, 'No deadline was missed in the last seconds.'); return; }
    this.stop = miss + this.span / 2;
    this.showPaused();
    say(this.status, '');
  }

  async export() {
    try {
      await download('trace?seconds=10', 'takt.pftrace');
    } catch (error) {
      say(this.status, error.message);
    }
  }

  listen() {
    const { canvas } = this;
    canvas.addEventListener('wheel', (event) => {
      event.preventDefault();
      if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.move((event.deltaX || event.deltaY) / this.scale);
      else this.zoom(Math.exp(event.deltaY * 0.002), this.us(Math.max(event.offsetX, this.gutter)));
    }, { passive: false });
    canvas.addEventListener('pointerdown', (event) => {
      if (event.button !== 0) return;
      this.drag = { x: event.clientX, moved: false };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener('pointermove', (event) => {
      if (!this.drag) { this.hover(event); return; }
      const by = this.drag.x - event.clientX;
      if (!this.drag.moved && Math.abs(by) < 3) return;
      this.drag = { x: event.clientX, moved: true };
      this.move(by / this.scale);
    });
    for (const end of ['pointerup', 'pointercancel']) canvas.addEventListener(end, () => { this.drag = null; });
    canvas.addEventListener('pointerleave', () => { this.tip.hidden = true; });
    canvas.addEventListener('keydown', (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const acts = {
        ' ': () => this.toggle(), '+': () => this.zoom(0.5), '=': () => this.zoom(0.5), '-': () => this.zoom(2), m: () => this.visitMiss(),
        ArrowLeft: () => this.move(-this.span / 5), ArrowRight: () => this.move(this.span / 5),
      };
      if (!acts[event.key]) return;
      event.preventDefault();
      acts[event.key]();
    });
  }
}
