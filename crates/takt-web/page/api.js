// The console's API: questions, and events as they come.

const KEY = 'takt-token';
const RETRY_MS = [300, 600, 1200, 2500, 5000];

/** Takes the token out of the address, so that it is neither shown nor bookmarked. */
function takeToken() {
  const given = new URLSearchParams(location.hash.slice(1)).get('token');
  if (given) {
    sessionStorage.setItem(KEY, given);
    history.replaceState(null, '', location.pathname);
  }
  return sessionStorage.getItem(KEY) ?? '';
}

let token = takeToken();
addEventListener('hashchange', () => { token = takeToken(); });

/** A request that the console did not serve. */
export class Refused extends Error {
  constructor(/** @type {number} */ status, /** @type {string} */ message) {
    super(message);
    this.status = status;
  }
}

async function request(/** @type {string} */ path, /** @type {RequestInit} */ options = {}) {
  const headers = { 'x-takt-token': token, ...(options.headers ?? {}) };
  const answer = await fetch(`/api/v1/${path}`, { ...options, headers, cache: 'no-store', credentials: 'omit' });
  if (!answer.ok) {
    const problem = await answer.json().catch(() => ({}));
    throw new Refused(answer.status, problem.error ?? `the console answers ${answer.status}`);
  }
  return answer;
}

/** Asks for something. */
export const get = async (/** @type {string} */ path) => (await request(path)).json();

/** Orders something. */
export async function post(/** @type {string} */ path, /** @type {unknown} */ body) {
  const headers = { 'content-type': 'application/json' };
  return (await request(path, { method: 'POST', headers, body: JSON.stringify(body) })).json();
}

/** Has the browser keep a file. */
export async function download(/** @type {string} */ path, /** @type {string} */ name) {
  const url = URL.createObjectURL(await (await request(path)).blob());
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

/**
 * Events until `signal` aborts; looks for the console again where it is gone.
 * @param {boolean} timeline whether what the GPU does is wanted
 * @param {(name: string, data: any) => void} heard
 * @param {(problem: string | null) => void} linked told what is wrong with the connection, or that nothing is
 * @param {AbortSignal} signal
 */
export async function listen(timeline, heard, linked, signal) {
  for (let tries = 0; !signal.aborted; tries += 1) {
    try {
      const answer = await request(`events${timeline ? '?timeline=1' : ''}`, { signal });
      tries = 0;
      linked(null);
      await read(/** @type {ReadableStream<Uint8Array>} */ (answer.body), heard);
      linked('the console hung up; looking for it again');
    } catch (error) {
      if (signal.aborted) return;
      const refused = error instanceof Refused;
      linked(refused ? error.message : 'the console does not answer; looking for it again');
      // Without the token, asking again is useless.
      if (refused && error.status === 401) return;
    }
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS[Math.min(tries, RETRY_MS.length - 1)]));
  }
}

async function read(/** @type {ReadableStream<Uint8Array>} */ body, /** @type {(name: string, data: any) => void} */ heard) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    text += value;
    const events = text.split('\n\n');
    text = events.pop() ?? '';
    for (const event of events) {
      const [, name, data] = /^event: (\w+)\ndata: (.*)$/s.exec(event) ?? [];
      if (name) heard(name, JSON.parse(data));
    }
  }
}
