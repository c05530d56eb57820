// The dashboard's script: it polls `dashboard/state` and shows what it gets.

import { Chart, drawCharts } from './chart.js';
import { call, login } from './connection.js';
import { $, element, radios, setState, setText } from './elements.js';
import { age, app, choose, perSecond, query, receive, state } from './figures.js';
import { flameSection } from './flame.js';
import { header, render } from './sections.js';
import { clock, duration, rate } from './text.js';

const POLL_MS = 2000;
const CLASSES = ['0xx', '1xx', '2xx', '3xx', '4xx', '5xx'];
const PHASES = { total: 'whole request', first_byte: 'first byte', queue: 'queue', php: 'PHP', upstream: 'other servers' };

let phase = 'total';
let rangeMs = 600_000;
let isPaused = false;
let failures = 0;
let timer = 0;
let isPolling = false;

function notice(text) {
  const node = $('#notice');
  node.hidden = !text;
  setText(node, text ?? '');
}

async function poll() {
  clearTimeout(timer);
  if (isPolling) return;
  isPolling = true;
  let wait = POLL_MS;
  try {
    const asked = app;
    const response = await call(`dashboard/state?${query()}`, 'GET', 10_000);
    if (response.status === 401) throw new Error('This page needs a new link: run `outboard dashboard` again.');
    if (response.status === 502) throw new TypeError('no server');
    if (!response.ok) throw new Error(`The server responded with status ${response.status}.`);
    flameSection(response.headers.get('outboard-profile') === 'yes');
    const received = await response.json();
    if (asked !== app) received.app_history = [];
    const isRestarted = receive(received);
    apps(received.apps);
    render(isPaused);
    title();
    drawCharts();
    if (isRestarted) notice(`The server was restarted at ${clock(state.started_ms)}.`);
    else if (failures) notice('');
    failures = 0;
    document.body.classList.remove('stale');
    // A restarted server has a history of its own.
    if (isRestarted || asked !== app) wait = 0;
  } catch (error) {
    failures += 1;
    wait = Math.min(1000 * 2 ** Math.min(failures - 1, 3), 8000);
    lost(error);
  }
  isPolling = false;
  if (!isPaused && !document.hidden) timer = setTimeout(poll, wait);
}

/** With more than one app, the charts show any of them. */
function apps(names) {
  const select = $('#app');
  const known = [...select.options].slice(1).map((option) => option.value);
  $('#app-label').hidden = names.length < 2 && !app;
  if (known.length === names.length && names.every((name, index) => name === known[index])) return;
  const options = names.map((name) => element('option', { value: name, textContent: name, selected: name === app }));
  select.replaceChildren(element('option', { value: '', textContent: 'all apps' }), ...options);
  if (app && !names.includes(app)) choose('');
}

/** What the charts show. */
function title() {
  const whole = rangeMs > 600_000 ? 'Last hour' : 'Last 10 minutes';
  setText($('#h-time'), age() < rangeMs ? 'Since the start' : whole);
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
    title();
    drawCharts(rangeMs);
  });
  radios($('#phase'), 'phase', Object.entries(PHASES), 'total', (value) => {
    phase = value;
    drawCharts();
  });
  $('#app').addEventListener('change', (event) => {
    choose(event.target.value);
    drawCharts();
    if (!isPaused) poll();
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
    if (state) header(state.status, isPaused);
    if (!isPaused) poll(); else clearTimeout(timer);
  });
  document.addEventListener('visibilitychange', () => { if (!document.hidden && !isPaused) poll(); });
  login().catch(() => {}).then(poll);
}

start();
