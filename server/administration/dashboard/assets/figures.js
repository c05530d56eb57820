// What was received from the server: its state, and the points of its history.

export const POINT_MS = 5000;

export let state = null;
export let points = [];
/** The app whose history the charts show; empty: the whole server. */
export let app = '';
let appPoints = [];
/** The server's clock, which goes on while the connection is lost. */
let offsetMs = 0;
export const now = () => (state ? Date.now() + offsetMs : 0);
/** How long the server has run. */
export const age = () => (state ? now() - state.started_ms : 0);
export const perSecond = (count, point) => (point.for_ms ? (count / point.for_ms) * 1000 : 0);
export const responses = (point) => point.classes.reduce((sum, count) => sum + count, 0);
/** The points of the charts. */
export const charted = () => (app ? appPoints : points);
const present = (list) => (list.length && now() - list.at(-1).at_ms < 3 * POINT_MS ? list.at(-1) : null);
/** The last point, unless it is too old to be the present. */
export const fresh = () => present(points);
export const freshCharted = () => present(charted());

/** Shows the history of an app, or of the whole server. */
export function choose(name) {
  app = name;
  appPoints = [];
}

/** The query of the next request. A new app needs all of its points. */
export function query() {
  const since = state && points.length && (!app || appPoints.length) ? points.at(-1).at_ms : 0;
  return `since_ms=${since}&app=${encodeURIComponent(app)}`;
}

/** Takes a reply; true if it is that of a server that was started anew. */
export function receive(received) {
  const isRestarted = state !== null && state.started_ms !== received.started_ms;
  if (isRestarted) {
    points = [];
    appPoints = [];
  }
  const known = points.length ? points.at(-1).at_ms : 0;
  points = [...points, ...received.history.filter((point) => point.at_ms > known)].slice(-720);
  // The last point of a quiet app grows.
  const before = (point) => !received.app_history.some((one) => one.at_ms - one.for_ms < point.at_ms);
  appPoints = [...appPoints.filter(before), ...received.app_history].slice(-720);
  state = received;
  offsetMs = received.now_ms - Date.now();
  return isRestarted;
}
