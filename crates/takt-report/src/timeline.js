'use strict';
// Draws the timing diagrams: a lane per app with what it submitted, one with the scheduler's
// decisions, and one with what the GPU executed. All times are nanoseconds since the
// beginning of the recording.
(() => {
  const GUTTER = 132, AXIS = 24, ROW = 11, ROWS_MAX = 4, PAD = 5, SCHED = 26, GPU = 30;
  const SPAN_MIN = 20e3, FIRST_SPAN = 100e6, LINES_MAX = 500;

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
    return [1, 2, 5, 10].map((n) => n * magnitude).find((n) => n >= rough);
  };

  const ms = (ns) => `${(ns / 1e6).toFixed(3)} ms`;
  const known = (ns, text) => (ns < 0 ? 'unknown' : text(ns));

  class Diagram {
    constructor(root, data) {
      this.data = data;
      this.canvas = root.querySelector('canvas');
      this.tip = root.querySelector('.tip');
      this.paint = this.canvas.getContext('2d');
      this.missed = new Set(data.misses.map(([, app, frame]) => `${app} ${frame}`));
      this.misses = data.misses.map(([at]) => at).sort((a, b) => a - b);
      this.prepare();
      this.view = clampView(0, FIRST_SPAN, data.length);
      this.canvas.style.height = `${this.height}px`;
      this.listen(root);
    }

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
      this.sched = { top, height: SCHED };
      this.gpu = { top: top + SCHED, height: GPU };
      this.height = top + SCHED + GPU + 4;
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

    get width() { return this.canvas.clientWidth; }
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
        band: value('--band'), bad: value('--bad'), paper: value('--paper'),
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

    drawVsync() {
      const { paint, data } = this;
      const first = lowerBound(data.vsync, this.view.from);
      const last = lowerBound(data.vsync, this.view.to);
      const each = Math.max(1, Math.ceil((last - first) * 7 / (this.width - GUTTER)));
      paint.strokeStyle = this.colour.muted;
      paint.setLineDash([1, 3]);
      paint.beginPath();
      for (let i = Math.ceil(first / each) * each; i < last; i += each) {
        const x = Math.round(this.x(data.vsync[i])) + 0.5;
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
      const { paint, colour } = this, { groups, kinds } = this.data;
      const drawn = new Map();
      for (const i of this.submitted()) {
        const box = this.box(i), key = groups.app[i] * ROWS_MAX + this.row[i];
        const pixel = Math.floor(box.x + box.width);
        if (box.width < 2 && drawn.get(key) === pixel) continue;
        drawn.set(key, pixel);
        paint.fillStyle = colour.apps[groups.app[i]];
        paint.globalAlpha = 0.55;
        paint.fillRect(box.x, box.y, box.width, box.height);
        paint.globalAlpha = 1;
        if (box.width < 3) continue;
        paint.strokeStyle = this.isLate(i) ? colour.bad : colour.apps[groups.app[i]];
        paint.lineWidth = this.isLate(i) ? 1.5 : 1;
        paint.strokeRect(box.x + 0.5, box.y + 0.5, box.width - 1, box.height - 1);
        if (box.width > 70) {
          paint.font = '9px system-ui, sans-serif';
          paint.fillStyle = colour.ink;
          this.fitText(`frame ${groups.frame[i]} ${kinds[groups.kind[i]]}`, box.x + 4, box.y + box.height / 2 + 0.5, box.width - 8);
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

    drawMisses() {
      const { paint } = this;
      paint.strokeStyle = paint.fillStyle = this.colour.bad;
      paint.lineWidth = 2;
      for (const [at, app] of this.data.misses) {
        if (at < this.view.from || at > this.view.to) continue;
        const lane = this.lanes[app], x = Math.round(this.x(at));
        paint.beginPath();
        paint.moveTo(x, lane.top + 1);
        paint.lineTo(x, lane.top + lane.height - 1);
        paint.moveTo(x - 4, lane.top + 2);
        paint.lineTo(x + 4, lane.top + 10);
        paint.moveTo(x + 4, lane.top + 2);
        paint.lineTo(x - 4, lane.top + 10);
        paint.stroke();
      }
    }

    drawTicks() {
      const { paint, view } = this;
      const origin = this.data.origin_ns, step = niceStep(100 / this.scale);
      const digits = Math.max(0, Math.ceil(-Math.log10(step / 1e6) - 1e-9));
      paint.fillStyle = this.colour.muted;
      paint.strokeStyle = this.colour.line;
      paint.lineWidth = 1;
      paint.beginPath();
      for (let at = Math.ceil((view.from + origin) / step) * step; at < view.to + origin; at += step) {
        const x = Math.round(this.x(at - origin)) + 0.5;
        paint.moveTo(x, AXIS - 6);
        paint.lineTo(x, AXIS);
        paint.fillText(`${(at / 1e6).toFixed(digits)} ms`, x + 3, AXIS - 13);
      }
      paint.stroke();
    }

    // What is under the pointer, in words; null if nothing is.
    describe(x, y) {
      if (x < GUTTER) return null;
      const inside = (lane) => y >= lane.top && y < lane.top + lane.height;
      if (inside(this.gpu)) return this.describeExecuted(x);
      if (inside(this.sched)) return this.describeDecision(x, y);
      const lane = this.lanes.findIndex(inside);
      return lane < 0 ? null : this.describeSubmitted(lane, x, y);
    }

    describeExecuted(x) {
      const { groups } = this.data, at = this.ns(x);
      const hit = this.executed().filter((i) => groups.started[i] <= at + 1 / this.scale &&
        (groups.finished[i] < 0 || groups.finished[i] >= at - 1 / this.scale));
      return hit.length ? this.describeGroup(hit[hit.length - 1]) : null;
    }

    describeSubmitted(lane, x, y) {
      const { groups, misses } = this.data;
      const miss = misses.find(([at, app]) => app === lane && Math.abs(this.x(at) - x) <= 4);
      if (miss) return `${this.data.apps[lane].name}: missed the deadline of frame ${miss[2]} at ${ms(miss[0] + this.data.origin_ns)}`;
      const hit = this.submitted().filter((i) => {
        const box = this.box(i);
        return groups.app[i] === lane && x >= box.x - 2 && x <= box.x + box.width + 2 &&
          y >= box.y - 1 && y <= box.y + box.height + 1;
      });
      return hit.length ? this.describeGroup(hit[hit.length - 1]) : null;
    }

    describeDecision(x, y) {
      const { groups, holds, reasons, apps } = this.data;
      const near = (times) => {
        const i = lowerBound(times, this.ns(x));
        return [i - 1, i].filter((k) => k >= 0 && k < times.length && Math.abs(this.x(times[k]) - x) <= 5)
          .sort((a, b) => Math.abs(this.x(times[a]) - x) - Math.abs(this.x(times[b]) - x))[0];
      };
      const hold = near(this.holdTimes), dispatch = near(this.dispatchTimes);
      if (hold !== undefined && (dispatch === undefined || y < this.sched.top + 11)) {
        const [at, app, reason] = holds[hold];
        return `${apps[app].name} is held: ${reasons[reason]}\nat ${ms(at + this.data.origin_ns)}`;
      }
      if (dispatch === undefined) return null;
      return `dispatch\n${this.describeGroup(this.byDispatch[dispatch])}`;
    }

    describeGroup(i) {
      const { groups, apps, kinds, origin_ns: origin } = this.data;
      const time = (ns) => known(ns, (t) => ms(t + origin));
      const ran = groups.started[i] >= 0 && groups.finished[i] >= 0 ? ms(groups.finished[i] - groups.started[i]) : 'unknown';
      return [
        `${apps[groups.app[i]].name}: ${kinds[groups.kind[i]]} ${groups.group[i]}` +
          (groups.frame[i] < 0 ? '' : ` of frame ${groups.frame[i]}`) + (this.isLate(i) ? ' (missed)' : ''),
        `predicted ${known(groups.predicted[i], ms)}, reserved ${known(groups.reserved[i], ms)}, ran ${ran}`,
        `submitted ${time(groups.submitted[i])}, dispatched ${time(groups.dispatched[i])}`,
        `started ${time(groups.started[i])}, finished ${time(groups.finished[i])}`,
      ].join('\n');
    }

    hover(event) {
      const text = this.describe(event.offsetX, event.offsetY);
      this.tip.hidden = !text;
      if (!text) return;
      this.tip.textContent = text;
      const right = this.width - this.tip.offsetWidth - 4;
      this.tip.style.left = `${Math.max(0, Math.min(event.offsetX + 12, right))}px`;
      this.tip.style.top = `${event.offsetY + 16}px`;
    }

    act(name) {
      const { view, data } = this, span = view.to - view.from, middle = (view.from + view.to) / 2;
      const around = (at) => ({ from: at - span / 2, to: at + span / 2 });
      // Half a pixel of tolerance, lest rounding finds the miss in the middle again.
      const slack = 0.5 / this.scale;
      const moves = {
        in: () => zoomView(view, 0.5, middle, data.length),
        out: () => zoomView(view, 2, middle, data.length),
        left: () => ({ from: view.from - span / 5, to: view.to - span / 5 }),
        right: () => ({ from: view.from + span / 5, to: view.to + span / 5 }),
        all: () => ({ from: 0, to: data.length }),
        next: () => {
          const at = this.misses.find((t) => t > (this.miss ?? -1) + slack && t > view.from);
          this.miss = at ?? this.miss;
          return at === undefined ? view : around(at);
        },
        previous: () => {
          const at = this.misses.findLast((t) => t < (this.miss ?? Infinity) - slack && t < view.to);
          this.miss = at ?? this.miss;
          return at === undefined ? view : around(at);
        },
      };
      if (moves[name]) showAll(this, moves[name]());
    }

    listen(root) {
      const { canvas } = this;
      canvas.addEventListener('wheel', (event) => {
        event.preventDefault();
        const { view } = this, span = view.to - view.from;
        const sideways = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX;
        if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
          const by = sideways / (this.width - GUTTER) * span;
          showAll(this, { from: view.from + by, to: view.to + by });
        } else {
          showAll(this, zoomView(view, Math.exp(event.deltaY * 0.002), this.ns(Math.max(event.offsetX, GUTTER)), this.data.length));
        }
      }, { passive: false });
      canvas.addEventListener('pointerdown', (event) => {
        if (event.button !== 0) return;
        this.drag = { x: event.clientX, view: this.view };
        canvas.setPointerCapture(event.pointerId);
      });
      canvas.addEventListener('pointermove', (event) => {
        if (!this.drag) { this.hover(event); return; }
        const by = (this.drag.x - event.clientX) / this.scale;
        showAll(this, { from: this.drag.view.from + by, to: this.drag.view.to + by });
      });
      for (const end of ['pointerup', 'pointercancel']) canvas.addEventListener(end, () => { this.drag = null; });
      canvas.addEventListener('pointerleave', () => { this.tip.hidden = true; });
      const keys = { '+': 'in', '=': 'in', '-': 'out', ArrowLeft: 'left', ArrowRight: 'right', 0: 'all', n: 'next', p: 'previous' };
      canvas.addEventListener('keydown', (event) => {
        if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
        event.preventDefault();
        this.act(keys[event.key]);
      });
      root.addEventListener('click', (event) => {
        const button = event.target.closest('button[data-act]');
        if (button) this.act(button.dataset.act);
      });
      new ResizeObserver(() => this.show(this.view)).observe(canvas);
    }
  }

  const diagrams = [];
  const link = document.getElementById('link-timelines');

  // Shows a view in the diagram it came from, and in all others while they are linked.
  function showAll(source, view) {
    const view0 = clampView(view.from, view.to, source.data.length);
    for (const diagram of link && link.checked ? diagrams : [source]) diagram.show(view0);
  }

  for (const root of document.querySelectorAll('.timeline')) {
    const data = JSON.parse(document.getElementById(root.dataset.source).textContent);
    if (data) diagrams.push(new Diagram(root, data));
  }
  const redraw = () => diagrams.forEach((diagram) => diagram.draw());
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
  // Paper is white: draw in light colours for the printer, whatever the screen shows.
  addEventListener('beforeprint', () => { document.documentElement.dataset.print = ''; redraw(); });
  addEventListener('afterprint', () => { delete document.documentElement.dataset.print; redraw(); });
})();
