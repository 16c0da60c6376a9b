// Draws timing diagrams: a lane per app with what it submitted, one with the scheduler's
// decisions, and one with what the GPU executed. All times are nanoseconds since the
// beginning of the recording.
const GUTTER = 132, AXIS = 24, ROW = 11, ROWS_MAX = 4, PAD = 5, SCHED = 26, GPU = 30;
const SPAN_MIN = 20e3, FIRST_SPAN = 100e6, FIRST_FRAMES = 500e6, LINES_MAX = 500;

// The first index whose value is at least `value` in a sorted array.
const lowerBound = (sorted, value) => {
  let low = 0, high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < value) low = middle + 1; else high = middle;
  }
  return low;
};

// Keeps a view inside the recording, and its length within reason.
const clampView = (from, to, length) => {
  const span = Math.min(Math.max(to - from, Math.min(SPAN_MIN, length)), length);
  const start = Math.min(Math.max(from, 0), length - span);
  return { from: start, to: start + span };
};

// Zooms by `factor` (below 1: closer) so that `anchor` stays where it is.
const zoomView = (view, factor, anchor, length) => {
  // At a limit of zoom the anchor must not drift, so the factor is limited, not the result.
  const span = view.to - view.from;
  const least = Math.min(SPAN_MIN, length) / span, most = length / span;
  const limited = Math.min(Math.max(factor, least), most);
  return clampView(anchor - (anchor - view.from) * limited,
    anchor + (view.to - anchor) * limited, length);
};

const niceStep = (rough) => {
  const magnitude = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((n) => n * magnitude).find((n) => n >= rough) || rough;
};

// What a diagram looks like; `Diagram` makes it move.
class Drawing {
  constructor(canvas, data) {
    this.data = data;
    this.canvas = canvas;
    this.paint = canvas.getContext('2d');
    this.missed = new Set(data.misses.map(([, app, frame]) => `${app} ${frame}`));
    this.prepare();
    this.view = clampView(0, data.frames_only ? FIRST_FRAMES : FIRST_SPAN, data.length);
    canvas.style.height = `${this.height}px`;
    this.measure();
  }

  // Asking the page for a size is slow, so it is done once per picture.
  measure() { this.width = Math.max(this.canvas.clientWidth, GUTTER + 1); }

  // Orders of groups for quick look-up, rows of boxes, and positions of lanes.
  prepare() {
    const { groups, apps } = this.data;
    const all = [...groups.app.keys()];
    this.bySubmit = all.filter((i) => groups.submitted[i] >= 0)
      .sort((a, b) => groups.submitted[a] - groups.submitted[b]);
    this.byStart = all.filter((i) => groups.started[i] >= 0)
      .sort((a, b) => groups.started[a] - groups.started[b]);
    this.byDispatch = all.filter((i) => groups.dispatched[i] >= 0)
      .sort((a, b) => groups.dispatched[a] - groups.dispatched[b]);
    this.submitTimes = this.bySubmit.map((i) => groups.submitted[i]);
    this.startTimes = this.byStart.map((i) => groups.started[i]);
    this.dispatchTimes = this.byDispatch.map((i) => groups.dispatched[i]);
    this.holdTimes = this.data.holds.map(([at]) => at);
    this.longest = groups.predicted.reduce((a, b) => Math.max(a, b), 0);
    this.layRows(apps.length);
    let top = AXIS;
    this.lanes = apps.map((app, lane) => {
      const height = this.rowsOf[lane] * ROW + 2 * PAD;
      const place = { top, height };
      top += height;
      return place;
    });
    // Where only frames are known, there is nothing to say of scheduler and GPU.
    const [sched, gpu] = this.data.frames_only ? [0, 0] : [SCHED, GPU];
    this.sched = { top, height: sched };
    this.gpu = { top: top + sched, height: gpu };
    this.height = top + sched + gpu + 4;
  }

  // Boxes of one app that overlap get rows of their own, as far as there are any.
  layRows(apps) {
    const { groups } = this.data;
    const ends = Array.from({ length: apps }, () => []);
    this.row = new Uint8Array(groups.app.length);
    for (const i of this.bySubmit) {
      const rows = ends[groups.app[i]], start = groups.submitted[i];
      let row = rows.findIndex((end) => end <= start);
      if (row < 0) row = rows.length < ROWS_MAX ? rows.length : rows.indexOf(Math.min(...rows));
      rows[row] = Math.max(start + Math.max(groups.predicted[i], 0), rows[row] || 0);
      this.row[i] = row;
    }
    this.rowsOf = ends.map((rows) => Math.max(rows.length, 1));
  }

  get scale() { return (this.width - GUTTER) / (this.view.to - this.view.from); }
  x(ns) { return GUTTER + (ns - this.view.from) * this.scale; }
  ns(x) { return this.view.from + (x - GUTTER) / this.scale; }

  show(view) {
    this.view = clampView(view.from, view.to, this.data.length);
    this.canvas.dataset.from = Math.round(this.view.from);
    this.canvas.dataset.to = Math.round(this.view.to);
    if (!this.pending) {
      this.pending = requestAnimationFrame(() => { this.pending = 0; this.draw(); });
    }
  }

  draw() {
    const ratio = window.devicePixelRatio || 1, paint = this.paint;
    this.measure();
    this.canvas.width = Math.round(this.width * ratio);
    this.canvas.height = Math.round(this.height * ratio);
    paint.setTransform(ratio, 0, 0, ratio, 0, 0);
    paint.font = '11px system-ui, sans-serif';
    paint.textBaseline = 'middle';
    this.readColours();
    this.drawLanes();
    paint.save();
    paint.beginPath();
    paint.rect(GUTTER, 0, this.width - GUTTER, this.height);
    paint.clip();
    this.drawVsync();
    this.drawStalls();
    this.drawLines();
    this.drawSubmitted();
    this.drawDecisions();
    this.drawExecuted();
    this.drawMisses();
    this.drawTicks();
    paint.restore();
  }

  readColours() {
    const style = getComputedStyle(document.documentElement);
    const value = (name) => style.getPropertyValue(name).trim();
    this.colour = {
      ink: value('--ink'), muted: value('--muted'), line: value('--line'),
      band: value('--band'), bad: value('--bad'), good: value('--good'), paper: value('--paper'),
      apps: this.data.apps.map((app) => value(`--app${app.colour % 8}`)),
      inks: this.data.apps.map((app) => value(`--app${app.colour % 8}-ink`)),
    };
  }

  drawLanes() {
    const { paint, colour } = this;
    const label = (text, lane, font, ink, offset = 0) => {
      paint.font = font;
      paint.fillStyle = ink;
      this.fitText(text, 8, lane.top + lane.height / 2 + offset, GUTTER - 16);
    };
    this.lanes.forEach((lane, i) => {
      if (i % 2 === 0) {
        paint.fillStyle = colour.band;
        paint.fillRect(0, lane.top, this.width, lane.height);
      }
      paint.fillStyle = colour.apps[i];
      paint.fillRect(0, lane.top + 1, 3, lane.height - 2);
      const app = this.data.apps[i], tall = lane.height >= 30;
      label(tall ? app.name : `${app.name} (${app.priority})`, lane, '600 11px system-ui, sans-serif', colour.ink, tall ? -7 : 0);
      if (tall) label(`priority ${app.priority}`, lane, '11px system-ui, sans-serif', colour.muted, 7);
    });
    if (this.data.frames_only) { paint.font = '11px system-ui, sans-serif'; return; }
    label('SCHED', this.sched, '600 11px system-ui, sans-serif', colour.ink);
    label('GPU', this.gpu, '600 11px system-ui, sans-serif', colour.ink);
    paint.strokeStyle = colour.line;
    paint.lineWidth = 1;
    for (const lane of [this.sched, this.gpu, { top: this.gpu.top + GPU + 1 }]) {
      paint.beginPath();
      paint.moveTo(0, lane.top - 0.5);
      paint.lineTo(this.width, lane.top - 0.5);
      paint.stroke();
    }
    paint.font = '11px system-ui, sans-serif';
  }

  // Writes as much of `text` as fits; nothing if that says nothing.
  fitText(text, x, y, room) {
    const { paint } = this;
    if (paint.measureText(text).width <= room) { paint.fillText(text, x, y); return; }
    let keep = text.length;
    while (keep > 1 && paint.measureText(`${text.slice(0, keep)}…`).width > room) keep -= 1;
    if (keep > 2) paint.fillText(`${text.slice(0, keep)}…`, x, y);
  }

  // Dotted lines, while they can be told apart.
  drawVsync() {
    const { paint, data } = this;
    const visible = data.vsync.slice(lowerBound(data.vsync, this.view.from), lowerBound(data.vsync, this.view.to));
    if (visible.length * 7 > this.width - GUTTER) return;
    paint.strokeStyle = this.colour.muted;
    paint.lineWidth = 1;
    paint.setLineDash([1, 3]);
    paint.beginPath();
    for (const at of visible) {
      const x = Math.round(this.x(at)) + 0.5;
      paint.moveTo(x, AXIS);
      paint.lineTo(x, this.height);
    }
    paint.stroke();
    paint.setLineDash([]);
  }

  drawStalls() {
    const { paint } = this;
    paint.fillStyle = this.colour.line;
    for (const [from, to] of this.data.stalls) {
      if (to > this.view.from && from < this.view.to) {
        paint.fillRect(this.x(from), this.gpu.top, Math.max((to - from) * this.scale, 1), GPU);
      }
    }
  }

  // Groups whose box may be visible in the lanes of apps.
  submitted() {
    return this.bySubmit.slice(lowerBound(this.submitTimes, this.view.from - this.longest),
      lowerBound(this.submitTimes, this.view.to));
  }

  // Groups whose execution may be visible; one begins before the view at most.
  executed() {
    return this.byStart.slice(Math.max(lowerBound(this.startTimes, this.view.from) - 1, 0),
      lowerBound(this.startTimes, this.view.to));
  }

  box(i) {
    const { groups } = this.data, lane = this.lanes[groups.app[i]];
    return {
      x: this.x(groups.submitted[i]),
      y: lane.top + PAD + this.row[i] * ROW,
      width: Math.max(Math.max(groups.predicted[i], 0) * this.scale, 1.5),
      height: ROW - 2,
    };
  }

  isLate(i) {
    return this.missed.has(`${this.data.groups.app[i]} ${this.data.groups.frame[i]}`);
  }

  // Where only frames are known, those that were due have the colour of their outcome.
  shade(i) {
    const { colour } = this, { groups, apps, frames_only } = this.data, app = groups.app[i];
    if (!frames_only || !apps[app].judged) return colour.apps[app];
    return this.isLate(i) ? colour.bad : colour.good;
  }

  // Lines from submission over dispatch to execution, while they can be told apart.
  drawLines() {
    const { paint, colour } = this, { groups } = this.data;
    const visible = this.executed().filter((i) => groups.submitted[i] >= 0);
    if (visible.length > LINES_MAX) return;
    paint.lineWidth = 1;
    paint.globalAlpha = 0.55;
    for (const i of visible) {
      const box = this.box(i), at = this.x(groups.dispatched[i] < 0 ? groups.started[i] : groups.dispatched[i]);
      paint.strokeStyle = colour.apps[groups.app[i]];
      paint.beginPath();
      paint.moveTo(box.x + 0.5, box.y + box.height);
      paint.lineTo(at, this.sched.top + SCHED / 2);
      paint.lineTo(this.x(groups.started[i]), this.gpu.top + 4);
      paint.stroke();
    }
    paint.globalAlpha = 1;
  }

  drawSubmitted() {
    const { paint, colour } = this, { groups } = this.data;
    const runs = new Map(), wide = [];
    const fill = ({ shade, x, y, end, height }) => {
      paint.fillStyle = shade;
      paint.fillRect(x, y, end - x, height);
    };
    paint.globalAlpha = 0.55;
    // Boxes too small to tell apart are drawn as one: thousands of them would take long.
    for (const i of this.submitted()) {
      const { x, y, width, height } = this.box(i), app = groups.app[i];
      const key = app * ROWS_MAX + this.row[i], run = runs.get(key), shade = this.shade(i);
      if (width >= 3) wide.push(i);
      if (run && run.shade === shade && width < 3 && x <= run.end + 1) {
        run.end = Math.max(run.end, x + width);
        continue;
      }
      if (run) fill(run);
      runs.set(key, { shade, x, y, end: x + width, height });
    }
    runs.forEach(fill);
    paint.globalAlpha = 1;
    this.outlineSubmitted(wide);
  }

  outlineSubmitted(visible) {
    const { paint, colour } = this, { groups, kinds } = this.data;
    paint.font = '9px system-ui, sans-serif';
    for (const i of visible) {
      const box = this.box(i), late = this.isLate(i);
      paint.strokeStyle = late ? colour.bad : this.shade(i);
      paint.lineWidth = late ? 1.5 : 1;
      paint.strokeRect(box.x + 0.5, box.y + 0.5, box.width - 1, box.height - 1);
      if (box.width > 70) {
        paint.fillStyle = colour.ink;
        const text = `frame ${groups.frame[i]} ${kinds[groups.kind[i]]}`;
        this.fitText(text, box.x + 4, box.y + box.height / 2 + 0.5, box.width - 8);
      }
    }
    paint.font = '11px system-ui, sans-serif';
  }

  drawDecisions() {
    const { paint, colour } = this, { groups, holds } = this.data;
    const middle = this.sched.top + SCHED / 2;
    const from = lowerBound(this.dispatchTimes, this.view.from), to = lowerBound(this.dispatchTimes, this.view.to);
    let last = -1;
    for (const i of this.byDispatch.slice(from, to)) {
      const x = Math.round(this.x(groups.dispatched[i]));
      if (x === last) continue;
      last = x;
      paint.fillStyle = colour.apps[groups.app[i]];
      paint.beginPath();
      paint.moveTo(x - 4, middle - 1);
      paint.lineTo(x + 4, middle - 1);
      paint.lineTo(x, middle + 8);
      paint.fill();
    }
    last = -1;
    paint.lineWidth = 1.5;
    for (const [at, app] of holds.slice(lowerBound(this.holdTimes, this.view.from), lowerBound(this.holdTimes, this.view.to))) {
      const x = Math.round(this.x(at)) + 0.5;
      if (x === last) continue;
      last = x;
      paint.strokeStyle = colour.apps[app];
      paint.beginPath();
      paint.moveTo(x - 2, this.sched.top + 3);
      paint.lineTo(x - 2, this.sched.top + 9);
      paint.moveTo(x + 2, this.sched.top + 3);
      paint.lineTo(x + 2, this.sched.top + 9);
      paint.stroke();
    }
  }

  drawExecuted() {
    const { paint, colour } = this, { groups, apps } = this.data;
    const top = this.gpu.top + 4, height = GPU - 8;
    let last = -1;
    for (const i of this.executed()) {
      const end = groups.finished[i] < 0 ? this.data.length : groups.finished[i];
      const x = this.x(groups.started[i]), width = Math.max((end - groups.started[i]) * this.scale, 1);
      if (width < 2 && Math.floor(x + width) === last) continue;
      last = Math.floor(x + width);
      paint.fillStyle = colour.apps[groups.app[i]];
      paint.fillRect(x, top, width, height);
      if (width < 3) continue;
      const late = this.isLate(i);
      paint.strokeStyle = late ? colour.bad : colour.paper;
      paint.lineWidth = late ? 2 : 1;
      paint.strokeRect(x + 0.5, top + 0.5, width - 1, height - 1);
      if (width > 30) {
        paint.fillStyle = colour.inks[groups.app[i]];
        this.fitText(apps[groups.app[i]].name, x + 5, top + height / 2 + 0.5, width - 10);
      }
    }
  }

  // A line with a cross at each missed deadline; only short strokes where they would cover the
  // lane.
  drawMisses() {
    const { paint } = this, last = new Map();
    const visible = this.data.misses.filter(([at]) => at >= this.view.from && at <= this.view.to);
    const crowded = visible.length * 12 > (this.width - GUTTER) * this.lanes.length;
    paint.strokeStyle = this.colour.bad;
    paint.lineWidth = crowded ? 1 : 2;
    paint.beginPath();
    for (const [at, app] of visible) {
      const { top, height } = this.lanes[app], x = Math.round(this.x(at)) + (crowded ? 0.5 : 0);
      if (last.get(app) === x) continue;
      last.set(app, x);
      paint.moveTo(x, top);
      paint.lineTo(x, top + (crowded ? PAD : height) - 1);
      if (crowded) continue;
      paint.moveTo(x - 4, top + 2);
      paint.lineTo(x + 4, top + 10);
      paint.moveTo(x + 4, top + 2);
      paint.lineTo(x - 4, top + 10);
    }
    paint.stroke();
  }

  drawTicks() {
    const { paint, view } = this;
    const origin = this.data.origin_ns, step = niceStep(100 / this.scale);
    const [unit, name] = step >= 1e9 ? [1e9, 's'] : [1e6, 'ms'];
    const digits = Math.max(0, Math.ceil(-Math.log10(step / unit) - 1e-9));
    paint.fillStyle = this.colour.muted;
    paint.strokeStyle = this.colour.line;
    paint.lineWidth = 1;
    paint.beginPath();
    for (let at = Math.ceil((view.from + origin) / step) * step; at < view.to + origin; at += step) {
      const x = Math.round(this.x(at - origin)) + 0.5;
      paint.moveTo(x, AXIS - 6);
      paint.lineTo(x, AXIS);
      paint.fillText(`${(at / unit).toFixed(digits)} ${name}`, x + 3, AXIS - 13);
    }
    paint.stroke();
  }
}
