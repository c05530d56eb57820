// Charts of the history: areas or lines over time, which the pointer and the arrow keys read.

import { $, element, setText, shape } from './elements.js';
import { POINT_MS, age, app, charted, freshCharted, now } from './figures.js';
import { clock } from './text.js';

const charts = [];
let rangeMs = 600_000;

/** Draws all charts, of so many milliseconds. */
export function drawCharts(ms = rangeMs) {
  rangeMs = ms;
  charts.forEach((chart) => chart.draw());
}

export class Chart {
  /** `series` are [name, class]; `read` gives the values of a point, or null where there is none. */
  constructor(figure, series, { read, stacked, format, title }) {
    Object.assign(this, { series, read, stacked, format, title, cursor: null });
    this.output = $('output', figure);
    this.svg = shape('svg', { role: 'img', tabindex: 0 });
    this.plot = shape('g', {});
    this.svg.append(this.plot);
    const key = element('ul', { className: 'key' });
    key.append(...series.map(([name, kind]) => element('li', { className: kind, textContent: name })));
    $('figcaption', figure).after(this.svg, key);
    this.svg.addEventListener('pointermove', (event) => this.point(event.offsetX));
    this.svg.addEventListener('pointerleave', () => this.point(null));
    this.svg.addEventListener('blur', () => this.point(null));
    this.svg.addEventListener('keydown', (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!step || !this.shown.length) return;
      event.preventDefault();
      const at = this.shown.findIndex((point) => point.at_ms === this.cursor);
      const next = at < 0 ? this.shown.length - 1 : Math.min(Math.max(at + step, 0), this.shown.length - 1);
      this.cursor = this.shown[next].at_ms;
      this.draw();
    });
    new ResizeObserver(() => this.draw()).observe(this.svg);
    charts.push(this);
  }

  point(x) {
    const nearest = x === null ? null : this.shown.reduce((best, point) =>
      (!best || Math.abs(this.x(point.at_ms) - x) < Math.abs(this.x(best.at_ms) - x) ? point : best), null);
    this.cursor = nearest?.at_ms ?? null;
    this.draw();
  }

  draw() {
    const { width, height } = { width: this.svg.clientWidth, height: this.svg.clientHeight };
    if (!width || !now()) return;
    const [left, bottom, top] = [46, height - 18, 6];
    const end = now();
    // A young server has no empty hour before it.
    const range = Math.min(rangeMs, Math.max(age(), 60_000));
    this.x = (at) => left + (width - left) * (1 - (end - at) / range);
    this.shown = charted().filter((point) => point.at_ms > end - range);
    const values = this.shown.map((point) => this.read(point));
    const sum = (list) => list.reduce((total, value) => total + value, 0);
    const all = values.filter(Boolean).map((list) => (this.stacked ? sum(list) : Math.max(...list)));
    const high = Math.max(...all, this.stacked ? 1 : 1000);
    const low = this.stacked ? 0 : Math.min(...values.filter(Boolean).map((list) => Math.min(...list)), high / 10);
    const scale = this.stacked ? linear(high) : logarithmic(low, high);
    const y = (value) => bottom - (bottom - top) * scale.at(value);
    const nodes = [];
    for (const tick of scale.ticks) {
      nodes.push(shape('line', { class: 'grid', x1: left, x2: width, y1: y(tick), y2: y(tick) }));
      const label = shape('text', { x: left - 6, y: y(tick) + 4, 'text-anchor': 'end' });
      label.textContent = this.format(tick).replace('.0', '');
      nodes.push(label);
    }
    const wanted = range / (width < 420 ? 4 : 8);
    const step = [15, 60, 120, 300, 600, 900, 1800].map((seconds) => seconds * 1000).find((size) => size >= wanted) ?? 1_800_000;
    for (let at = Math.ceil((end - range) / step) * step; at < end; at += step) {
      const text = clock(at).slice(0, step < 60_000 ? 8 : 5);
      const label = shape('text', { x: Math.min(Math.max(this.x(at), left + 14), width - (step < 60_000 ? 28 : 16)), y: height - 3, 'text-anchor': 'middle' });
      label.textContent = text;
      nodes.push(label);
    }
    this.series.forEach(([, kind], index) => {
      const path = this.stacked ? this.area(values, index, y, left) : this.line(values, index, y, left);
      nodes.push(shape('path', { d: path, class: this.stacked ? kind : `line ${kind}` }));
    });
    const at = this.cursor && this.shown.findIndex((point) => point.at_ms === this.cursor);
    const selected = at === null || at < 0 ? null : this.shown[at];
    if (selected) nodes.push(shape('line', { class: 'cross', x1: this.x(selected.at_ms), x2: this.x(selected.at_ms), y1: top, y2: bottom }));
    this.plot.replaceChildren(...nodes);
    const last = selected ?? freshCharted();
    const list = last && this.read(last);
    const parts = list && this.series.map(([name], index) => [name, list[index]]).filter(([, value]) => value || !this.stacked);
    const words = parts?.length ? parts.map(([name, value]) => `${name} ${this.format(value)}`).join(' · ') : 'none';
    setText(this.output, selected ? `${clock(selected.at_ms)}  ${words}` : words);
    this.svg.setAttribute('aria-label', `${this.title()}${app ? ` of ${app}` : ''}, ${selected ? clock(selected.at_ms) : 'now'}: ${words}. Arrow keys read other times.`);
  }

  /** Positions of a point: its end, and its start if it is the end of a quiet time. */
  spans(index, left) {
    const { at_ms, for_ms } = this.shown[index];
    return [Math.max(this.x(at_ms - for_ms), left), Math.max(this.x(at_ms), left)];
  }

  area(values, upTo, y, left) {
    const height = (index, count) => values[index].slice(0, count).reduce((total, value) => total + value, 0);
    const over = [], under = [];
    this.shown.forEach((point, index) => {
      const [from, to] = this.spans(index, left);
      const starts = point.for_ms > 3 * POINT_MS || !index ? [from, to] : [to];
      for (const x of starts) {
        over.push(`${x.toFixed(1)} ${y(height(index, upTo + 1)).toFixed(1)}`);
        under.unshift(`${x.toFixed(1)} ${y(height(index, upTo)).toFixed(1)}`);
      }
    });
    return over.length ? `M${over.join('L')}L${under.join('L')}Z` : '';
  }

  line(values, which, y, left) {
    let path = '', pen = 'M';
    values.forEach((list, index) => {
      if (!list) { pen = 'M'; return; }
      const [from, to] = this.spans(index, left);
      const height = y(list[which]).toFixed(1);
      if (pen === 'M') path += `M${from.toFixed(1)} ${height}`;
      path += `L${to.toFixed(1)} ${height}`;
      pen = 'L';
    });
    return path;
  }
}

function linear(high) {
  const rough = high / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough);
  const top = Math.ceil(high / step) * step;
  const ticks = Array.from({ length: Math.round(top / step) + 1 }, (_, index) => index * step);
  return { at: (value) => value / top, ticks };
}

function logarithmic(low, high) {
  const from = Math.floor(Math.log10(Math.max(low, 1)));
  const to = Math.max(Math.ceil(Math.log10(high)), from + 1);
  const ticks = Array.from({ length: to - from + 1 }, (_, index) => 10 ** (from + index));
  return { at: (value) => Math.max(Math.log10(Math.max(value, 1)) - from, 0) / (to - from), ticks };
}
