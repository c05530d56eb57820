// Figures as people read them.

export const number = (value) => value.toLocaleString('en', { maximumFractionDigits: 0 }).replaceAll(',', ' ');
export const share = (part, whole) => (whole ? percent(part / whole) : '–');
export const percent = (of) => `${(of * 100).toFixed(of > 0 && of < 0.0995 ? 1 : 0)} %`;
export const plural = (count, one, many = `${one}s`) => `${number(count)} ${count === 1 ? one : many}`;

export function rate(value) {
  if (value >= 100) return number(value);
  return value === 0 ? '0' : value.toFixed(value < 10 ? 1 : 0);
}

export function duration(us) {
  if (us < 1000) return `${Math.round(us)} µs`;
  if (us < 1e6) return `${(us / 1e3).toFixed(us < 1e5 ? 1 : 0)} ms`;
  return `${(us / 1e6).toFixed(us < 1e8 ? 1 : 0)} s`;
}

/** How long something lasts. */
export const since = (ms) => (ms < 1000 ? '< 1 s' : period(Math.floor(ms / 1000)));

export function bytes(count) {
  for (const unit of ['B', 'KiB', 'MiB']) {
    if (count < 1024) return `${count.toFixed(unit === 'B' || count >= 100 ? 0 : 1)} ${unit}`;
    count /= 1024;
  }
  return `${count.toFixed(1)} GiB`;
}

export function period(seconds) {
  const units = [[86400, 'd'], [3600, 'h'], [60, 'min'], [1, 's']];
  const at = units.findIndex(([size]) => seconds >= size);
  if (at < 0) return '0 s';
  const [[size, unit], next] = [units[at], units[at + 1]];
  const rest = next ? Math.floor((seconds % size) / next[0]) : 0;
  return `${Math.floor(seconds / size)} ${unit}${rest ? ` ${rest} ${next[1]}` : ''}`;
}

export const clock = (ms) => new Date(ms).toLocaleTimeString('en-GB');
export const day = (seconds) => new Date(seconds * 1000).toISOString().slice(0, 10);
