// The dashboard's script. It polls `dashboard/state` and draws what it gets.
//
// All text reaches the page as textContent, because paths, names and backtraces are what clients and
// applications have chosen. Nodes are reused, so that focus and open details survive an update.
'use strict';

const POLL_MS = 2000;
const POINT_MS = 5000;
const CLASSES = ['0xx', '1xx', '2xx', '3xx', '4xx', '5xx'];
const PHASES = { total: 'whole request', first_byte: 'first byte', queue: 'queue', php: 'PHP', upstream: 'other servers' };
const WORKERS_SHOWN = 40;
const SLOW_SHOWN = 8;
const LONG_MS = 1000;

const $ = (selector, root = document) => root.querySelector(selector);

function element(name, properties = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key in node) node[key] = value; else node.setAttribute(key, value);
  }
  node.append(...children);
  return node;
}

function shape(name, attributes) {
  const node = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  return node;
}

const setText = (node, text) => { if (node.textContent !== text) node.textContent = text; };
const setState = (node, state) => { if (node.dataset.state !== state) node.dataset.state = state; };

// ---- numbers as text

const number = (value) => value.toLocaleString('en', { maximumFractionDigits: 0 }).replaceAll(',', ' ');
const share = (part, whole) => (whole ? percent(part / whole) : '–');
const percent = (of) => `${(of * 100).toFixed(of > 0 && of < 0.0995 ? 1 : 0)} %`;
const plural = (count, one, many = `${one}s`) => `${number(count)} ${count === 1 ? one : many}`;

function rate(value) {
  if (value >= 100) return number(value);
  return value === 0 ? '0' : value.toFixed(value < 10 ? 1 : 0);
}

function duration(us) {
  if (us < 1000) return `${Math.round(us)} µs`;
  if (us < 1e6) return `${(us / 1e3).toFixed(us < 1e5 ? 1 : 0)} ms`;
  return `${(us / 1e6).toFixed(us < 1e8 ? 1 : 0)} s`;
}

function bytes(count) {
  for (const unit of ['B', 'KiB', 'MiB']) {
    if (count < 1024) return `${count.toFixed(unit === 'B' || count >= 100 ? 0 : 1)} ${unit}`;
    count /= 1024;
  }
  return `${count.toFixed(1)} GiB`;
}

function period(seconds) {
  const units = [[86400, 'd'], [3600, 'h'], [60, 'min'], [1, 's']];
  const at = units.findIndex(([size]) => seconds >= size);
  if (at < 0) return '0 s';
  const [[size, unit], next] = [units[at], units[at + 1]];
  const rest = next ? Math.floor((seconds % size) / next[0]) : 0;
  return `${Math.floor(seconds / size)} ${unit}${rest ? ` ${rest} ${next[1]}` : ''}`;
}

const clock = (ms) => new Date(ms).toLocaleTimeString('en-GB');
const day = (seconds) => new Date(seconds * 1000).toISOString().slice(0, 10);

// ---- lists that are updated in place

/** Makes the children of `parent` those of `items`, by their keys. */
function reconcile(parent, items, key, create, update) {
  const known = new Map([...parent.children].map((node) => [node.dataset.key, node]));
  let at = parent.firstElementChild;
  for (const item of items) {
    const name = String(key(item));
    let node = known.get(name);
    if (node) known.delete(name);
    else {
      node = create(item);
      node.dataset.key = name;
    }
    if (node === at) at = at.nextElementSibling;
    else parent.insertBefore(node, at);
    update(node, item);
  }
  for (const node of known.values()) node.remove();
}

/** A table in `parent`. A column has a heading, classes, and a function to text or [text, state]. */
function table(parent, name, columns, items, key) {
  let node = $(':scope > table', parent);
  if (!node) {
    const heads = columns.map(([heading, classes]) => element('th', { scope: 'col', className: classes, textContent: heading }));
    node = element('table', { ariaLabel: name }, element('thead', {}, element('tr', {}, ...heads)), element('tbody'));
    parent.replaceChildren(node);
  }
  const create = () => element('tr', {}, ...columns.map(([, classes]) => element('td', { className: classes })));
  reconcile(node.tBodies[0], items, key, create, (row, item) => {
    columns.forEach(([, , value], index) => {
      const found = value(item);
      const [text, state] = Array.isArray(found) ? found : [found, ''];
      setText(row.cells[index], text);
      setState(row.cells[index], state);
    });
  });
}

function empty(parent, text) {
  const node = $(':scope > .empty', parent);
  if (node) setText(node, text); else parent.replaceChildren(element('p', { className: 'empty', textContent: text }));
}

// ---- charts

const charts = [];
let rangeMs = 600_000;
let phase = 'total';
let showsAllSlow = false;

function radios(fieldset, name, options, chosen, change) {
  for (const [value, text] of options) {
    const input = element('input', { type: 'radio', name, value, checked: value === chosen });
    input.addEventListener('change', () => change(value));
    fieldset.append(element('label', {}, input, text));
  }
}

class Chart {
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
    this.x = (at) => left + (width - left) * (1 - (end - at) / rangeMs);
    this.shown = points.filter((point) => point.at_ms > end - rangeMs);
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
    const minutes = rangeMs > 600_000 ? 15 : 2;
    const step = minutes * (width < 420 ? 2 : 1) * 60_000;
    for (let at = Math.ceil((end - rangeMs) / step) * step; at < end; at += step) {
      const text = clock(at).slice(0, 5);
      const label = shape('text', { x: Math.min(Math.max(this.x(at), left + 14), width - 16), y: height - 3, 'text-anchor': 'middle' });
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
    const last = selected ?? fresh();
    const list = last && this.read(last);
    const parts = list && this.series.map(([name], index) => [name, list[index]]).filter(([, value]) => value || !this.stacked);
    const words = parts?.length ? parts.map(([name, value]) => `${name} ${this.format(value)}`).join(' · ') : 'none';
    setText(this.output, selected ? `${clock(selected.at_ms)}  ${words}` : words);
    this.svg.setAttribute('aria-label', `${this.title()}, ${selected ? clock(selected.at_ms) : 'now'}: ${words}. Arrow keys read other times.`);
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

// ---- what was received

let state = null;
let points = [];
/** The server's clock, which goes on while the connection is lost. */
let offsetMs = 0;
const now = () => (state ? Date.now() + offsetMs : 0);
const perSecond = (count, point) => (point.for_ms ? (count / point.for_ms) * 1000 : 0);
const responses = (point) => point.classes.reduce((sum, count) => sum + count, 0);
/** The last point, unless it is too old to be the present. */
const fresh = () => (points.length && now() - points.at(-1).at_ms < 3 * POINT_MS ? points.at(-1) : null);

function receive(received) {
  const restarted = state && state.started_ms !== received.started_ms;
  if (restarted) {
    points = [];
    notice(`The server was restarted at ${clock(received.started_ms)}.`);
  }
  const known = points.length ? points.at(-1).at_ms : 0;
  points = [...points, ...received.history.filter((point) => point.at_ms > known)].slice(-720);
  state = received;
  offsetMs = received.now_ms - Date.now();
  render();
  return restarted;
}

function notice(text) {
  const node = $('#notice');
  node.hidden = !text;
  setText(node, text ?? '');
}

// ---- sections

const unused = [];

/** Shows a section, or hides it and names it in the footer. */
function section(id, isUsed, name) {
  $(`#${id}`).hidden = !isUsed;
  if (!isUsed) unused.push(name);
  return isUsed ? $(`#${id} > div`) : null;
}

function render() {
  unused.length = 0;
  const { status } = state;
  header(status);
  tiles(status);
  charts.forEach((chart) => chart.draw());
  pools(status);
  slowRequests();
  paths();
  kinds(status);
  refusals(status);
  caches();
  tasks(status);
  servers(status);
  upstream(status);
  certificates();
  bans();
  memory(status);
  setText($('#unused'), unused.length ? `Not in use on this server: ${unused.join(', ')}.` : '');
}

function header(status) {
  const name = status.name ? `Outboard · ${status.name}` : 'Outboard';
  setText($('#name'), name);
  const doing = status.draining ? 'stopping' : status.ready ? 'running' : 'starting';
  setState($('#state'), doing);
  setText($('#state'), isPaused ? `${doing}, paused` : doing);
  const facts = [`version ${status.version}`, `up ${period(status.uptime_s)}`, `generation ${status.generation}`,
    plural(status.threads, 'thread'), status.environment, status.listeners.join(', ')];
  setText($('#facts'), facts.filter(Boolean).join(' · '));
  const last = fresh();
  document.title = `${last ? `${rate(perSecond(responses(last), last))}/s · ` : ''}${name}`;
}

function tiles(status) {
  const last = fresh();
  const recent = points.slice(-120);
  const rated = (count) => (point) => perSecond(count(point), point);
  const failed = (point) => point.classes[0] + point.classes[5];
  const total = last?.phases.total;
  const lookups = last ? last.hits + last.misses : 0;
  const workers = status.pools.flatMap((pool) => pool.workers);
  const busy = workers.filter((worker) => worker.in_flight > 0).length;
  const waiting = status.pools.reduce((sum, pool) => sum + pool.queue_length, 0);
  const items = [
    { name: 'Responses', value: last ? rate(perSecond(responses(last), last)) : '0', unit: 'per second',
      more: `${number(status.requests)} since the start`, spark: recent.map(rated(responses)) },
    { name: 'Median duration', value: total ? duration(total.p50_us) : '–',
      more: total ? `99 % within ${duration(total.p99_us)}` : 'no request just now',
      spark: recent.map((point) => point.phases.total?.p50_us ?? 0) },
    { name: 'Failures', value: last ? share(failed(last), responses(last)) : '–',
      more: `${number((status.responses['5xx'] ?? 0))} × 5xx since the start`, spark: recent.map(rated(failed)), bad: true },
    { name: 'PHP workers busy', value: String(busy), unit: `of ${workers.length}`,
      more: waiting ? `${plural(waiting, 'request')} waiting` : 'no request waits', spark: recent.map((point) => point.in_flight) },
    { name: 'Page cache hits', value: lookups ? share(last.hits, lookups) : '–',
      more: Object.keys(state.caches).length ? `${rate(last ? perSecond(last.hits, last) : 0)} per second` : 'not configured',
      spark: recent.map(rated((point) => point.hits)) },
    { name: 'Connections', value: number(status.connections), more: `${number(status.accepted)} accepted`,
      spark: recent.map((point) => point.connections) },
  ];
  const create = () => element('div', {}, element('dt'),
    element('dd', {}, element('span', { className: 'value' }), element('div', { className: 'more' }), spark()));
  reconcile($('#tiles'), items, (item) => item.name, create, (node, item) => {
    setText($('dt', node), item.name);
    const value = $('.value', node);
    if (value.dataset.text !== item.value + item.unit) {
      value.dataset.text = item.value + item.unit;
      value.replaceChildren(item.value, ...(item.unit ? [' ', element('small', { textContent: item.unit })] : []));
    }
    setText($('.more', node), item.more);
    const high = Math.max(...item.spark, 0) || 1;
    const step = 120 / Math.max(item.spark.length - 1, 23);
    const path = item.spark.map((each, index) => `${index ? 'L' : 'M'}${(120 - (item.spark.length - 1 - index) * step).toFixed(1)} ${(24 - (22 * each) / high).toFixed(1)}`);
    $('path', node).setAttribute('d', path.join(''));
    $('path', node).setAttribute('class', item.bad ? 'spark bad' : 'spark');
  });
}

function spark() {
  const svg = shape('svg', { viewBox: '0 0 120 26', preserveAspectRatio: 'none', 'aria-hidden': 'true' });
  svg.append(shape('path', { class: 'spark', d: '' }));
  return svg;
}

function pools(status) {
  const parent = $('#pools > div');
  if (!status.pools.length) return empty(parent, 'No app runs PHP.');
  $(':scope > .empty', parent)?.remove();
  const shown = status.pools.slice(0, 50).map((pool, index) => ({ ...pool, key: `${pool.app} ${pool.zygote_pid} ${index}` }));
  const create = () => element('div', { className: 'pool' }, element('h3', {}, element('span'), ' ', element('span', { className: 'about' })),
    element('div', { className: 'strip', role: 'img' }), element('div'), element('p', { className: 'note' }));
  reconcile(parent, shown, (pool) => pool.key, create, (node, pool) => {
    const [title, strip, list, note] = node.children;
    setText(title.children[0], pool.app);
    const mode = [pool.mode, pool.isolation, pool.concurrency > 1 ? `× ${pool.concurrency}` : ''].filter(Boolean).join(', ');
    setText(title.children[1], [pool.phase, mode, pool.php_version && `PHP ${pool.php_version}`, `${pool.min} to ${pool.max} workers`,
      `${pool.in_flight} in flight`, `${pool.queue_length} waiting`].filter(Boolean).join(' · '));
    const workers = pool.workers.map((worker) => ({ ...worker, look: look(worker) }));
    reconcile(strip, workers.slice(0, 400), (worker) => worker.pid ?? 'new', () => element('i'), (mark, worker) => {
      setState(mark, worker.look);
    });
    const busy = workers.filter((worker) => worker.in_flight > 0).length;
    strip.setAttribute('aria-label', `${busy} of ${workers.length} workers busy`);
    // With few workers each keeps its place; of many, those that work are shown.
    const ordered = workers.length > WORKERS_SHOWN ? workers.toSorted((a, b) => b.in_flight - a.in_flight || b.for_ms - a.for_ms) : workers;
    table(list, `Workers of ${pool.app}`, [
      ['PID', 'n', (worker) => String(worker.pid ?? '–')],
      ['State', '', (worker) => [worker.state, worker.look]],
      ['Since', 'n', (worker) => duration(worker.for_ms * 1000)],
      ['Request', 't m', (worker) => (worker.request ?? '') + (worker.in_flight > 1 ? ` and ${worker.in_flight - 1} more` : '')],
      ['Served', 'n wide', (worker) => number(worker.served)],
      ['Memory', 'n wide', (worker) => (worker.memory_bytes ? bytes(worker.memory_bytes) : '–')],
    ], ordered.slice(0, WORKERS_SHOWN), (worker) => worker.pid ?? 'new');
    const hidden = workers.length - WORKERS_SHOWN;
    const counts = [`${number(pool.requests)} requests`, `${number(pool.queued)} waited`];
    for (const [count, text] of [[pool.rejected, 'rejected'], [pool.crashes, 'crashes'], [pool.deadlines, 'exceeded their deadline'],
      [pool.recycled, 'workers replaced']]) if (count) counts.push(`${number(count)} ${text}`);
    setText(note, `${hidden > 0 ? `${plural(hidden, 'more worker')}. ` : ''}${counts.join(', ')}.${pool.sizing ? ` Size: ${pool.sizing}.` : ''}`);
  });
}

const look = (worker) => (worker.in_flight === 0 ? worker.state : worker.for_ms >= LONG_MS ? 'long' : 'busy');

function slowRequests() {
  const parent = $('#slow > div');
  parent.className = 'slow';
  if (!state.slow.length) {
    const after = state.slow_after_ms;
    return empty(parent, after === null ? 'The slow log is off.' : `No request has taken PHP longer than ${duration(after * 1000)} since the start.`);
  }
  $(':scope > .empty', parent)?.remove();
  const create = () => element('details', {}, element('summary', {}, element('span', { className: 'took' }), element('span', { className: 'm' }),
    element('span', { className: 'when' })), element('pre', { tabIndex: 0 }));
  const list = $(':scope > div', parent) ?? parent.appendChild(element('div'));
  const more = $(':scope > button', parent) ?? parent.appendChild(allButton());
  more.hidden = state.slow.length <= SLOW_SHOWN;
  setText(more, showsAllSlow ? 'Show fewer' : `Show all ${state.slow.length}`);
  more.setAttribute('aria-expanded', showsAllSlow);
  reconcile(list, state.slow.slice(0, showsAllSlow ? undefined : SLOW_SHOWN), (one) => `${one.at_ms} ${one.pid} ${one.request}`, create, (node, one) => {
    const [took, request, when] = node.firstElementChild.children;
    setText(took, duration(one.took_ms * 1000));
    setText(request, one.request);
    setText(when, `${one.app}, ${period(Math.max(0, Math.round((now() - one.at_ms) / 1000)))} ago`);
    setText(node.lastElementChild, one.backtrace || 'No backtrace was taken.');
    node.lastElementChild.ariaLabel = `Backtrace of ${one.request}`;
  });
}

function allButton() {
  const button = element('button', { type: 'button', className: 'all' });
  button.addEventListener('click', () => { showsAllSlow = !showsAllSlow; slowRequests(); });
  return button;
}

function paths() {
  const parent = $('#paths > div');
  if (!state.paths.length) return empty(parent, 'No requests since the dashboard was opened. Paths are counted while it is open, and only then.');
  const apps = new Set(state.paths.map((path) => path.app)).size > 1;
  table(parent, 'Most requested paths of the last two minutes', [
    ['Path', 't m', (path) => (apps ? `${path.app}: ${path.path}` : path.path)],
    ['Requests', 'n', (path) => number(path.requests)],
    ['Mean', 'n', (path) => duration(path.total_us / path.requests)],
    ['Cached', 'n wide', (path) => (path.hits ? share(path.hits, path.requests) : '–')],
    ['Failed', 'n', (path) => [number(path.failed), path.failed ? 'bad' : '']],
  ], state.paths.slice(0, 12), (path) => `${path.app} ${path.path}`);
}

function kinds(status) {
  const parent = $('#kinds > div');
  if (!status.latencies.length) return empty(parent, 'No requests yet.');
  const rows = status.latencies.length > 60 ? status.latencies.filter((row) => row.kind === 'all').slice(0, 60) : status.latencies;
  table(parent, 'Durations by app and kind', [
    ['App, kind', 't', (row) => (row.kind === 'all' ? row.app : `\u2003${row.kind}`)],
    ['Requests', 'n', (row) => number(row.count)],
    ['Median', 'n', (row) => duration(row.p50_us)],
    ['90 %', 'n wide', (row) => duration(row.p90_us)],
    ['99 %', 'n', (row) => duration(row.p99_us)],
  ], rows, (row) => `${row.app} ${row.kind}`);
}

function refusals(status) {
  const parent = $('#refusals > div');
  if (!status.reasons.length) return empty(parent, 'No request was refused or has failed since the start.');
  table(parent, 'Refused and failed requests by reason', [
    ['Reason', 't m', (one) => one.reason],
    ['Status', 'n', (one) => String(one.status)],
    ['Requests', 'n', (one) => number(one.count)],
  ], status.reasons.toSorted((a, b) => b.count - a.count), (one) => one.reason);
}

function caches() {
  const all = Object.entries(state.caches);
  const parent = section('caches', all.length > 0, 'page cache');
  if (!parent) return;
  table(parent, 'Page caches by app', [
    ['App', 't', ([app]) => app],
    ['Hits', 'n', ([, cache]) => share(cache.hit + cache.stale, cache.hit + cache.stale + cache.miss)],
    ['Misses', 'n', ([, cache]) => number(cache.miss)],
    ['Bypassed', 'n wide', ([, cache]) => number(cache.bypass)],
    ['Pages', 'n', ([, cache]) => number(cache.entries)],
    ['Memory', 'n wide', ([, cache]) => `${bytes(cache.used_bytes)} of ${bytes(cache.max_bytes)}`],
  ], all, ([app]) => app);
}

function tasks(status) {
  const parent = section('tasks', status.tasks.length > 0, 'background tasks');
  if (!parent) return;
  table(parent, 'Background tasks by app', [
    ['App', 't', (tasks) => tasks.app],
    ['Waiting', 'n', (tasks) => number(tasks.waiting)],
    ['Running', 'n', (tasks) => number(tasks.running)],
    ['Done', 'n', (tasks) => number(tasks.done)],
    ['Retried', 'n wide', (tasks) => number(tasks.retried)],
    ['Given up', 'n', (tasks) => [number(tasks.given_up), tasks.given_up ? 'bad' : '']],
  ], status.tasks, (tasks) => tasks.app);
}

function servers(status) {
  const all = status.upstreams.flatMap((group) => group.servers.map((server) => ({ group, ...server })));
  const parent = section('servers', all.length > 0, 'upstreams');
  if (!parent) return;
  table(parent, 'Servers of upstreams', [
    ['Server', 'm', (one) => `${one.group.name}: ${one.server}${one.backup ? ' (backup)' : ''}`],
    ['State', '', (one) => [one.group.open ? 'open breaker' : one.state, one.group.open || one.state === 'down' || one.state === 'ejected' ? 'bad' : '']],
    ['In progress', 'n wide', (one) => number(one.under_way)],
    ['Requests', 'n', (one) => number(one.requests)],
    ['Failures', 'n', (one) => [number(one.failures), one.failures ? 'bad' : '']],
    ['Recent', 'n', (one) => duration(one.recent_us)],
  ], all.slice(0, 200), (one) => `${one.group.name} ${one.server}`);
}

function upstream(status) {
  const all = status.upstream;
  const parent = section('upstream', all.requests > 0, 'requests to other servers');
  if (!parent) return;
  const failures = Object.entries(all.failures);
  const rows = [['Requests', number(all.requests)], ['In progress', number(all.under_way)], ['Connections opened', number(all.connections)],
    ['Requests over an open connection', share(all.reused, all.requests)], ['Idle connections', number(all.idle)], ['Retries', number(all.retries)],
    ...failures.map(([kind, count]) => [`Failures: ${kind}`, number(count)])];
  table(parent, 'Requests to other servers', [['Figure', 't', ([name]) => name], ['Since the start', 'n', ([, value]) => value]], rows, ([name]) => name);
}

function certificates() {
  const parent = section('certificates', state.certificates.length > 0, 'automatic certificates');
  if (!parent) return;
  const next = (one) => (one.next_attempt_s ? `${period(Math.max(0, one.next_attempt_s - Math.floor(now() / 1000)))}` : '–');
  table(parent, 'Certificates', [
    ['Name', 't', (one) => one.name + (one.last_error ? `: ${one.last_error}` : '')],
    ['State', '', (one) => [one.state, one.state]],
    ['Until', 'n', (one) => (one.not_after_s ? day(one.not_after_s) : '–')],
    ['Next in', 'n wide', next],
  ], state.certificates.slice(0, 100), (one) => one.name);
}

function bans() {
  const parent = section('bans', state.banned > 0, 'bans');
  if (!parent) return;
  table(parent, `${plural(state.banned, 'banned network')}`, [
    ['Network', 'm', (ban) => ban.network],
    ['Reason', 't', (ban) => ban.reason],
    ['Rest', 'n', (ban) => (ban.until_s ? period(Math.max(0, ban.until_s - Math.floor(now() / 1000))) : 'for good')],
  ], state.bans, (ban) => ban.network);
}

function memory(status) {
  const parent = $('#memory > div');
  const accounts = status.memory.filter((one) => !one.app || one.refused || one.held_bytes).slice(0, 40);
  table(parent, 'Memory accounts', [
    ['Account', 't', (one) => one.kind.replaceAll('_', ' ') + (one.app ? ` of ${one.app}` : '')],
    ['Held', 'n', (one) => bytes(one.held_bytes)],
    ['Peak', 'n', (one) => bytes(one.peak_bytes)],
    ['Limit', 'n wide', (one) => bytes(one.limit_bytes)],
    ['Refused', 'n', (one) => [number(one.refused), one.refused ? 'bad' : '']],
  ], accounts, (one) => `${one.kind} ${one.app ?? ''}`);
}

// ---- flame graph

const FLAME_S = 5;
const FRAME_PX = 25;

function flameSection(isOffered) {
  const parent = $('#flame > div');
  if (parent.dataset.offered === String(isOffered)) return;
  parent.dataset.offered = isOffered;
  if (!isOffered) {
    return parent.replaceChildren(element('p', { className: 'empty' }, 'Here the dashboard only reads. ', element('code', { textContent: 'outboard dashboard' }),
      ' and ', element('code', { textContent: 'outboard profile' }), ' on the machine draw flame graphs of PHP.'));
  }
  const button = element('button', { type: 'button', textContent: `Sample PHP for ${FLAME_S} seconds` });
  const whole = element('button', { type: 'button', textContent: 'Whole graph', hidden: true });
  const words = element('p', { className: 'note', role: 'status', textContent: 'Workers are sampled from outside; requests are not slowed down.' });
  const frames = element('div', { id: 'frames' });
  parent.replaceChildren(element('div', { className: 'tools' }, button, whole, words), frames);
  button.addEventListener('click', async () => {
    button.disabled = true;
    setText(words, 'Sampling …');
    try {
      const response = await call(`dashboard/profile?seconds=${FLAME_S}`, 'POST', (FLAME_S + 15) * 1000);
      const reply = await response.json();
      if (!response.ok) throw new Error(reply.error);
      const root = flameTree(reply.folded);
      const draw = (node) => { whole.hidden = node === root; drawFlame(frames, words, root, node, draw); };
      whole.onclick = () => { draw(root); button.focus(); };
      draw(root);
      setText(words, root.count ? `${plural(root.count, 'sample')}. A frame is as wide as its share of time; select one to see what is below it.`
        : 'No samples: PHP was not running.');
    } catch (error) {
      setText(words, `No flame graph: ${error.message}`);
    }
    button.disabled = false;
  });
}

/** From lines `a;b;c count`. */
function flameTree(folded) {
  const root = { name: 'all', count: 0, children: new Map() };
  for (const line of folded.split('\n').filter(Boolean)) {
    const cut = line.lastIndexOf(' ');
    const count = Number(line.slice(cut + 1));
    let node = root;
    root.count += count;
    for (const name of line.slice(0, cut).split(';').slice(0, 64)) {
      if (!node.children.has(name)) node.children.set(name, { name, count: 0, children: new Map() });
      node = node.children.get(name);
      node.count += count;
    }
  }
  return root;
}

function drawFlame(frames, words, root, top, zoom) {
  const nodes = [];
  let depth = 0;
  const place = (node, level, from) => {
    depth = Math.max(depth, level + 1);
    const wide = node.count / top.count;
    const text = `${node.name} ${percent(node.count / root.count)}`;
    let hash = 0;
    for (const letter of node.name) hash = (hash * 31 + letter.codePointAt(0)) % 65521;
    const button = element('button', { type: 'button', className: `f${hash % 6}`, textContent: node.name, title: text, ariaLabel: text });
    button.style.left = `${from * 100}%`;
    button.style.width = `${wide * 100}%`;
    button.style.top = `${level * FRAME_PX}px`;
    button.addEventListener('click', () => zoom(node));
    for (const event of ['focus', 'pointerenter']) button.addEventListener(event, () => setText(words, text));
    nodes.push(button);
    for (const child of [...node.children.values()].sort((a, b) => b.count - a.count)) {
      if (child.count / top.count >= 0.004 && nodes.length < 1500) place(child, level + 1, from);
      from += child.count / top.count;
    }
  };
  if (top.count) place(top, 0, 0);
  frames.replaceChildren(...nodes);
  frames.style.height = `${depth * FRAME_PX}px`;
}

// ---- the connection

let key = '';
let isPaused = false;
let failures = 0;
let timer = 0;
let isPolling = false;

const call = (url, method, timeoutMs) => fetch(url, {
  method, cache: 'no-store', credentials: 'same-origin', signal: AbortSignal.timeout(timeoutMs),
  headers: key ? { Authorization: `Bearer ${key}` } : {},
});

/** `outboard dashboard` puts a token behind the URL's #, which browsers do not send; it is valid once. */
async function login() {
  const token = new URLSearchParams(location.hash.slice(1)).get('token');
  key = sessionStorage.getItem('outboard') ?? '';
  if (!token) return;
  history.replaceState(null, '', location.pathname);
  key = token;
  const response = await call('dashboard/session', 'POST', 10_000);
  key = response.ok ? (await response.json()).key : '';
  sessionStorage.setItem('outboard', key);
}

async function poll() {
  clearTimeout(timer);
  if (isPolling) return;
  isPolling = true;
  let wait = POLL_MS;
  try {
    const since = state && points.length ? points.at(-1).at_ms : 0;
    const response = await call(`dashboard/state?since_ms=${since}`, 'GET', 10_000);
    if (response.status === 401) throw new Error('This page needs a new link: run `outboard dashboard` again.');
    if (response.status === 502) throw new TypeError('no server');
    if (!response.ok) throw new Error(`The server responded with status ${response.status}.`);
    flameSection(response.headers.get('outboard-profile') === 'yes');
    const restarted = receive(await response.json());
    if (failures && !restarted) notice('');
    failures = 0;
    document.body.classList.remove('stale');
    // A restarted server has a history of its own.
    if (restarted) wait = 0;
  } catch (error) {
    failures += 1;
    wait = Math.min(1000 * 2 ** Math.min(failures - 1, 3), 8000);
    lost(error);
  }
  isPolling = false;
  if (!isPaused && !document.hidden) timer = setTimeout(poll, wait);
}

function lost(error) {
  document.body.classList.add('stale');
  setState($('#state'), 'lost');
  setText($('#state'), 'connection lost');
  // One slow response is not worth an alert.
  const known = error instanceof TypeError || error.name === 'TimeoutError' ? 'The server does not respond.' : error.message;
  if (failures > 1 || !state) notice(`${known} ${state ? `The figures are those of ${clock(state.now_ms)}. ` : ''}Trying again …`);
}

function start() {
  radios($('#range'), 'range', [['600000', '10 min'], ['3600000', '1 hour']], '600000', (value) => {
    rangeMs = Number(value);
    setText($('#h-time'), value === '600000' ? 'Last 10 minutes' : 'Last hour');
    charts.forEach((chart) => chart.draw());
  });
  setText($('#h-time'), 'Last 10 minutes');
  radios($('#phase'), 'phase', Object.entries(PHASES), 'total', (value) => {
    phase = value;
    charts.forEach((chart) => chart.draw());
  });
  const classes = [2, 3, 4, 5, 0];
  new Chart($('#rates'), classes.map((index) => [index ? CLASSES[index] : 'incomplete', `a${index}`]), {
    stacked: true, format: rate, title: () => 'Responses per second',
    read: (point) => classes.map((index) => perSecond(point.classes[index] + (index === 2 ? point.classes[1] : 0), point)),
  });
  new Chart($('#durations'), [['median', 'l0'], ['90 %', 'l1'], ['99 %', 'l2']], {
    stacked: false, format: duration, title: () => `Duration, ${PHASES[phase]}`,
    read: (point) => { const of = point.phases[phase]; return of ? [of.p50_us, of.p90_us, of.p99_us] : null; },
  });
  const pause = $('#pause');
  pause.addEventListener('click', () => {
    isPaused = !isPaused;
    pause.setAttribute('aria-pressed', isPaused);
    if (state) header(state.status);
    if (!isPaused) poll(); else clearTimeout(timer);
  });
  document.addEventListener('visibilitychange', () => { if (!document.hidden && !isPaused) poll(); });
  login().catch(() => {}).then(poll);
}

start();
