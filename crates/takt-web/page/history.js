// History: percentiles of minutes and hours, and what a change did to them.

import { get } from './api.js';
import { clock, digits, h, look, ms, percent, say, swatch } from './elements.js';
import { Chart } from './chart.js';

const SPANS = [[300, '5 minutes'], [900, '15 minutes'], [3600, '1 hour'], [21600, '6 hours'], [43200, '12 hours']];
const METRICS = {
  p99_us: { title: 'Response, 99th percentile', unit: 'ms', show: (value) => ms(value, 1) },
  p50_us: { title: 'Response, median', unit: 'ms', show: (value) => ms(value, 1) },
  fps: { title: 'Frames per second', unit: '', show: (value) => digits(value, 0) },
  met: { title: 'Deadlines met', unit: '', most: 1.0001, show: (value) => percent(value, 1) },
  gpu: { title: 'Share of the GPU', unit: '', most: 1.0001, show: (value) => percent(value, 0) },
};
const AGAIN_MS = 4000;
/** Samples on each side of a change that are compared. */
const BESIDE = 30;

export class HistoryPage {
  constructor(root, known) {
    this.known = known;
    this.hidden = new Set();
    this.chart = new Chart(() => {});
    const options = (list) => list.map(([value, text]) => h('option', { value: String(value) }, text));
    this.span = h('select', { 'aria-label': 'Span', onchange: () => this.load() }, ...options(SPANS));
    this.metric = h('select', { 'aria-label': 'Figure', onchange: () => this.show() }, ...options(Object.entries(METRICS).map(([key, metric]) => [key, metric.title])));
    this.legend = h('div', { class: 'legend' });
    this.marks = h('ul', { class: 'changes' });
    this.compared = h('div');
    this.note = h('p', { class: 'note' });
    root.append(
      h('div', { class: 'toolbar' }, h('label', {}, 'Figure ', this.metric), h('label', {}, 'Span ', this.span)),
      this.chart.stage, this.legend, this.note,
      h('h2', {}, 'Changes'), h('p', { class: 'note' }, 'Choose one to compare the minutes before and after it.'), this.marks, this.compared);
    this.timer = setInterval(() => this.load(), AGAIN_MS);
    void this.load();
  }

  close() { clearInterval(this.timer); }

  async load() {
    try {
      this.data = await get(`history?span_s=${this.span.value}`);
      this.show();
    } catch (error) {
      say(this.note, error.message);
    }
  }

  /** The slot of a name, for its colour; names that are not there any more get one each. */
  slot(name, at) { return this.known.now?.apps.find((app) => app.name === name)?.app ?? at; }

  show() {
    const { data } = this;
    if (!data) return;
    const key = this.metric.value, metric = METRICS[key];
    const lines = data.apps.map((app, at) => ({ name: app.name, slot: this.slot(app.name, at), values: app[key] }));
    const shown = lines.filter((line) => !this.hidden.has(line.name)).map((line) => ({ ...look(line.slot), name: line.name, values: line.values }));
    this.chart.draw(data.at_ms, shown, data.marks, metric);
    this.chart.root.setAttribute('aria-label', `${metric.title} over time`);
    this.showLegend(lines);
    say(this.note, data.at_ms.length < 2 ? 'Samples come every few seconds while a page is open, and every half minute always.'
      : `Samples of ${data.sample_s} s each${metric.unit ? `, in ${metric.unit}` : ''}. Dashed lines are changes.`);
    this.showMarks();
  }

  showLegend(lines) {
    const names = lines.map((line) => line.name).join('\n');
    if (this.legend.dataset.names === names) return;
    this.legend.dataset.names = names;
    this.legend.replaceChildren(...lines.map((line) => {
      const toggle = h('button', { type: 'button', 'aria-pressed': String(!this.hidden.has(line.name)) }, swatch(line.slot), h('span', {}, line.name));
      toggle.addEventListener('click', () => {
        if (!this.hidden.delete(line.name)) this.hidden.add(line.name);
        toggle.setAttribute('aria-pressed', String(!this.hidden.has(line.name)));
        this.show();
      });
      return toggle;
    }));
  }

  showMarks() {
    const marks = this.data.marks.slice(-20).reverse();
    const key = JSON.stringify(marks);
    if (this.marks.dataset.shown === key) return;
    this.marks.dataset.shown = key;
    this.marks.replaceChildren(...marks.map((mark) => h('li', {},
      h('time', {}, clock(mark.at_ms)), h('span', {}, mark.text), h('button', { type: 'button', onclick: () => this.compare(mark) }, 'Before and after'))));
  }

  compare(mark) {
    const { at_ms: times, apps } = this.data;
    const split = times.findIndex((at) => at > mark.at_ms);
    const at = split < 0 ? times.length : split;
    const mean = (list) => { const known = list.filter((value) => value !== null); return known.length ? known.reduce((sum, value) => sum + value, 0) / known.length : null; };
    const sides = (values) => [mean(values.slice(Math.max(0, at - BESIDE), at)), mean(values.slice(at, at + BESIDE))];
    const cells = (values, show) => sides(values).map((value) => h('td', { class: 'num' }, value === null ? '–' : show(value)));
    const figures = [['fps', 'Frames/s'], ['met', 'Met'], ['p99_us', 'p99 ms'], ['gpu', 'GPU']];
    this.compared.replaceChildren(
      h('h2', {}, `Before and after: ${mark.text}`),
      h('p', { class: 'note' }, `Means of up to ${BESIDE} samples of ${this.data.sample_s} s on each side.`),
      h('div', { class: 'wide' }, h('table', {}, h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, 'App'),
        ...figures.flatMap(([, title]) => [h('th', { class: 'num', scope: 'col' }, `${title} before`), h('th', { class: 'num', scope: 'col' }, 'after')]))),
      h('tbody', {}, ...apps.map((app) => h('tr', {}, h('td', {}, app.name), ...figures.flatMap(([key]) => cells(app[key], METRICS[key].show))))))));
  }
}
