// What was received from the server: its state, and the points of its history.

export const POINT_MS = 5000;

export let state = null;
export let points = [];
/** The server's clock, which goes on while the connection is lost. */
let offsetMs = 0;
export const now = () => (state ? Date.now() + offsetMs : 0);
export const perSecond = (count, point) => (point.for_ms ? (count / point.for_ms) * 1000 : 0);
export const responses = (point) => point.classes.reduce((sum, count) => sum + count, 0);
/** The last point, unless it is too old to be the present. */
export const fresh = () => (points.length && now() - points.at(-1).at_ms < 3 * POINT_MS ? points.at(-1) : null);

/** Takes a reply; true if it is that of a server that was started anew. */
export function receive(received) {
  const isRestarted = state !== null && state.started_ms !== received.started_ms;
  if (isRestarted) points = [];
  const known = points.length ? points.at(-1).at_ms : 0;
  points = [...points, ...received.history.filter((point) => point.at_ms > known)].slice(-720);
  state = received;
  offsetMs = received.now_ms - Date.now();
  return isRestarted;
}
