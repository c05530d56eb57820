// Requests to the server, with the key of this page if it needs one.

let key = '';

export const call = (url, method, timeoutMs) => fetch(url, {
  method, cache: 'no-store', credentials: 'same-origin', signal: AbortSignal.timeout(timeoutMs),
  headers: key ? { Authorization: `Bearer ${key}` } : {},
});

/** `outboard dashboard` puts a token behind the URL's #, which browsers do not send; it is valid once. */
export async function login() {
  const token = new URLSearchParams(location.hash.slice(1)).get('token');
  key = sessionStorage.getItem('outboard') ?? '';
  if (!token) return;
  history.replaceState(null, '', location.pathname);
  key = token;
  const response = await call('dashboard/session', 'POST', 10_000);
  key = response.ok ? (await response.json()).key : '';
  sessionStorage.setItem('outboard', key);
}
