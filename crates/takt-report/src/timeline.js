// Makes timing diagrams move: zoom, pan, keys, buttons, and a tip for what is under the pointer.

const ms = (ns) => `${(ns / 1e6).toFixed(3)} ms`;
const known = (ns, text) => (ns < 0 ? 'unknown' : text(ns));

class Diagram extends Drawing {
  constructor(root, data) {
    super(root.querySelector('canvas'), data);
    this.tip = root.querySelector('.tip');
    this.misses = data.misses.map(([at]) => at).sort((a, b) => a - b);
    this.listen(root);
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
    if (this.data.frames_only) {
      const begin = groups.submitted[i], took = groups.predicted[i];
      return `${apps[groups.app[i]].name}: frame ${groups.frame[i]}${this.isLate(i) ? ' (missed)' : ''}\n` +
        `drawn from ${ms(begin)} to ${ms(begin + took)}: ${ms(took)}`;
    }
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
    const moves = {
      in: () => zoomView(view, 0.5, middle, data.length),
      out: () => zoomView(view, 2, middle, data.length),
      left: () => ({ from: view.from - span / 5, to: view.to - span / 5 }),
      right: () => ({ from: view.from + span / 5, to: view.to + span / 5 }),
      all: () => ({ from: 0, to: data.length }),
      next: () => this.misses.find((at) => at > (this.miss ?? view.from)),
      previous: () => this.misses.findLast((at) => at < (this.miss ?? view.to)),
    };
    const move = moves[name]?.();
    if (typeof move === 'number') this.visit(move);
    else if (move) showAll(this, move);
  }

  // Shows a missed deadline, close enough to see what led to it.
  visit(miss) {
    const half = Math.min(this.view.to - this.view.from, FIRST_SPAN) / 2;
    showAll(this, { from: miss - half, to: miss + half });
    // Near the ends it cannot be in the middle, so remember which one it is.
    this.miss = miss;
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
  const shown = clampView(view.from, view.to, source.data.length);
  for (const diagram of link && link.checked ? diagrams : [source]) {
    diagram.miss = undefined;
    diagram.show(shown);
  }
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
