// The sections of the page, each from the state that was received.

import { $, element, empty, radios, reconcile, setState, setText, shape, table } from './elements.js';
import { fresh, now, perSecond, points, responses, state } from './figures.js';
import { bytes, day, duration, number, percent, period, plural, rate, share, since } from './text.js';

const WORKERS_SHOWN = 40;
const SLOW_SHOWN = 8;
const ERRORS_SHOWN = 8;
const PATHS_SHOWN = 12;
const LONG_MS = 1000;

let showsAllSlow = false;
const unused = [];

/** Shows a section, or hides it and names it in the footer. */
function section(id, isUsed, name) {
  $(`#${id}`).hidden = !isUsed;
  if (!isUsed) unused.push(name);
  return isUsed ? $(`#${id} > div`) : null;
}

/** Shows what was received last. */
export function render(isPaused) {
  unused.length = 0;
  const { status } = state;
  header(status, isPaused);
  tiles(status);
  apps();
  pools(status);
  errors();
  slowRequests();
  paths();
  kinds(status);
  refusals(status);
  caches();
  tasks(status);
  processes(status);
  servers(status);
  upstream(status);
  certificates();
  bans();
  memory(status);
  setText($('#unused'), unused.length ? `Not in use on this server: ${unused.join(', ')}.` : '');
}

export function header(status, isPaused) {
  const name = status.name ? `Outboard · ${status.name}` : 'Outboard';
  setText($('#name'), name);
  const doing = status.draining ? 'stopping' : status.ready ? 'running' : 'starting';
  setState($('#state'), doing);
  setText($('#state'), isPaused ? `${doing}, paused` : doing);
  const facts = [`on ${state.host}`, `version ${status.version}`, `up ${period(status.uptime_s)}`, `configuration ${status.generation}`,
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
  const workers = status.pools.flatMap((pool) => pool.workers.filter(isAtWork));
  const busy = workers.filter((worker) => worker.in_flight > 0).length;
  const waiting = status.pools.reduce((sum, pool) => sum + pool.queue_length, 0);
  const used = (point) => (point.processor.gateway_us + point.processor.php_us);
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
    { name: 'Processor', value: last ? percent(ofProcessor(last.processor.machine_us, last)) : '–', unit: `of ${state.cores}`,
      more: last ? `PHP ${percent(ofProcessor(last.processor.php_us, last))}, Outboard ${percent(ofProcessor(last.processor.gateway_us, last))}, others `
        + percent(ofProcessor(Math.max(0, last.processor.machine_us - used(last)), last)) : 'nothing to do just now',
      spark: recent.map((point) => ofProcessor(point.processor.machine_us, point)), most: 1 },
    { name: 'Memory of PHP', value: last ? bytes(last.memory.php_bytes) : '–', unit: '',
      more: last ? `Outboard ${bytes(last.memory.gateway_bytes)}, ${bytes(last.memory.available_bytes)} of ${bytes(state.machine_bytes)} available`
        : `${bytes(state.machine_bytes)} in the machine`,
      spark: recent.map((point) => point.memory.php_bytes) },
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
    const high = Math.max(...item.spark, item.most ?? 0) || 1;
    const step = 120 / Math.max(item.spark.length - 1, 23);
    const path = item.spark.map((each, index) => `${index ? 'L' : 'M'}${(120 - (item.spark.length - 1 - index) * step).toFixed(1)} ${(24 - (22 * each) / high).toFixed(1)}`);
    $('path', node).setAttribute('d', path.join(''));
    $('path', node).setAttribute('class', item.bad ? 'spark bad' : 'spark');
  });
}

/** The part of all processors in an interval. */
const ofProcessor = (us, load) => (load.for_ms ? Math.min(1, us / (load.for_ms * 1000 * state.cores)) : 0);

function apps() {
  const parent = $('#apps > div');
  if (!state.loads.length) return empty(parent, 'No app has had a request yet.');
  const rows = state.loads.map((load) => (now() - load.at_ms < 15_000 ? load : { ...load, requests: 0, failed: 0, p50_us: 0, php_us: 0 }));
  table(parent, 'Apps in the last seconds', [
    ['App', 't', (load) => load.app],
    ['Per second', 'n', (load) => rate(perSecond(load.requests, load))],
    ['Median', 'n wide', (load) => (load.p50_us ? duration(load.p50_us) : '–')],
    ['Failed', 'n', (load) => [number(load.failed), load.failed ? 'bad' : '']],
    ['Processor', 'n', (load) => percent(ofProcessor(load.php_us, load))],
    ['Memory', 'n', (load) => bytes(load.php_bytes)],
  ], rows.toSorted((a, b) => b.php_us - a.php_us || b.requests - a.requests || a.app.localeCompare(b.app)), (load) => load.app);
}

function errors() {
  const parent = $('#errors > div');
  if (!state.errors.length) return empty(parent, 'PHP has reported no error since the start.');
  table(parent, 'The latest errors of PHP', [
    ['Error', 't m', (error) => error.text],
    ['App', '', (error) => error.app],
    ['Times', 'n', (error) => [number(error.count), 'bad']],
    ['Last', 'n', (error) => `${period(Math.max(0, Math.round((now() - error.at_ms) / 1000)))} ago`],
  ], state.errors.slice(0, ERRORS_SHOWN), (error) => `${error.app} ${error.text}`);
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
    strip.setAttribute('aria-label', `${busy} of ${workers.filter(isAtWork).length} workers busy`);
    // With few workers each keeps its place; of many, those that work are shown.
    const ordered = workers.length > WORKERS_SHOWN ? workers.toSorted((a, b) => b.in_flight - a.in_flight || b.for_ms - a.for_ms) : workers;
    table(list, `Workers of ${pool.app}`, [
      ['PID', 'n', (worker) => String(worker.pid ?? '–')],
      ['State', '', (worker) => [worker.state, worker.look]],
      ['For', 'n', (worker) => since(worker.for_ms)],
      ['Request', 't m', (worker) => (worker.request ?? '') + (worker.in_flight > 1 ? ` and ${worker.in_flight - 1} more` : '')],
      ['Served', 'n wide', (worker) => number(worker.served)],
      ['Memory', 'n wide', (worker) => (worker.memory_bytes ? bytes(worker.memory_bytes) : '–')],
    ], ordered.slice(0, WORKERS_SHOWN), (worker) => worker.pid ?? 'new');
    const hidden = workers.length - WORKERS_SHOWN;
    const counts = [`${number(pool.requests)} requests`, `${number(pool.queued)} waited`];
    for (const [count, text] of [[pool.rejected, 'rejected'], [pool.crashes, 'crashes'], [pool.deadlines, 'exceeded their deadline'],
      [pool.recycled, 'workers replaced']]) if (count) counts.push(`${number(count)} ${text}`);
    setText(note, `${hidden > 0 ? `${plural(hidden, 'more worker')}. ` : ''}${counts.join(', ')}.${pool.sizing ? ` Workers: ${pool.sizing.replace(/^holds: /, '')}.` : ''}`);
  });
}

/* One in reserve is none until another one dies. */
const isAtWork = (worker) => worker.state !== 'reserve';

const look = (worker) => (worker.in_flight === 0 ? worker.state : worker.for_ms >= LONG_MS ? 'long' : 'busy');

function slowRequests() {
  const parent = $('#slow > div');
  parent.className = 'slow';
  if (!state.slow.length) {
    const after = state.slow_after_ms;
    return empty(parent, after === null ? 'The slow log is off.' : `No request has taken PHP or another server longer than ${duration(after * 1000)} since the start.`);
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
    const proxied = one.pid === null && !one.backtrace;
    const waited = `It waited for ${one.server ?? 'another server'} until its response began.`;
    setText(node.lastElementChild, proxied ? waited : one.backtrace || 'No backtrace was taken.');
    node.lastElementChild.ariaLabel = `${proxied ? 'Server' : 'Backtrace'} of ${one.request}`;
  });
}

function allButton() {
  const button = element('button', { type: 'button', className: 'all' });
  button.addEventListener('click', () => { showsAllSlow = !showsAllSlow; slowRequests(); });
  return button;
}

const ORDERS = {
  frequent: ['most requested', (path) => path.requests],
  slow: ['slowest', (path) => path.total_us / Math.max(path.requests, 1)],
  php: ['most time of PHP', (path) => path.php_us],
};
const orders = $('#order');
let order = 'frequent';

function paths() {
  const parent = $('#paths > div');
  if (!$('input', orders)) {
    radios(orders, 'order', Object.entries(ORDERS).map(([name, [text]]) => [name, text]), order, (name) => { order = name; paths(); });
  }
  orders.hidden = !state.paths.length;
  if (!state.paths.length) return empty(parent, 'No requests since the dashboard was opened. Paths are counted while it is open, and only then.');
  const allPhp = state.paths.reduce((sum, path) => sum + path.php_us, 0);
  const [, first] = ORDERS[order];
  const apps = new Set(state.paths.map((path) => path.app)).size > 1;
  table(parent, 'Most requested paths of the last two minutes', [
    ['Path', 't m', (path) => (apps ? `${path.app}: ${path.path}` : path.path)],
    ['Requests', 'n', (path) => number(path.requests)],
    ['Mean', 'n', (path) => (path.requests ? duration(path.total_us / path.requests) : '–')],
    ['Of PHP’s time', 'n', (path) => share(path.php_us, allPhp)],
    ['Cached', 'n wide', (path) => (path.hits ? share(path.hits, path.requests) : '–')],
    ['Failed', 'n', (path) => [number(path.failed), path.failed ? 'bad' : '']],
  ], state.paths.toSorted((a, b) => first(b) - first(a)).slice(0, PATHS_SHOWN), (path) => `${path.app} ${path.path}`);
}

const KINDS = { file: 'files', hit: 'page cache', script: 'PHP', worker: 'PHP workers', proxy: 'other servers', composed: 'composed pages',
  other: 'refusals and redirects' };

function kinds(status) {
  const parent = $('#kinds > div');
  if (!status.latencies.length) return empty(parent, 'No requests yet.');
  const rows = status.latencies.length > 60 ? status.latencies.filter((row) => row.kind === 'all').slice(0, 60) : status.latencies;
  table(parent, 'Durations by app and kind', [
    ['App, and what responded', 't', (row) => (row.kind === 'all' ? row.app : `\u2003${KINDS[row.kind] ?? row.kind}`)],
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

function processes(status) {
  const all = status.processes ?? [];
  const parent = section('processes', all.length > 0, 'processes');
  if (!parent) return;
  table(parent, 'Processes of apps', [
    ['Process', 't', (one) => `${one.app}: ${one.name}/${one.instance}${one.state === 'waiting' ? ` ${one.last_end}` : ''}`],
    ['State', '', (one) => [one.state, one.state === 'waiting' ? 'bad' : one.state]],
    ['For', 'n', (one) => since(one.for_ms)],
    ['Starts', 'n wide', (one) => number(one.starts)],
    ['Memory', 'n', (one) => (one.memory_bytes ? bytes(one.memory_bytes) : '–')],
  ], all.slice(0, 200), (one) => `${one.app} ${one.name} ${one.instance}`);
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
