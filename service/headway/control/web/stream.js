// The connection to the control plane: requests with the session's cookie, and the stream of overviews.

const QUIET_MS = 12_000; // overviews come every few seconds: what is shown is then no longer of now
const DEAD_MS = 25_000; // the server speaks at least every 15 s
const RETRY_MIN_MS = 1_000;
const RETRY_MAX_MS = 10_000;

/** The control plane asks for a sign-in. */
export class TokenNeeded extends Error {}

/** The control plane refused: `breaches` are the rules that the request breaks, a sentence each. */
export class Refused extends Error {
  constructor(problem, status) {
    super(problem.detail ?? `the control plane answered ${status}`);
    this.status = status;
    this.breaches = problem.breaches ?? [];
  }
}

/** Why a request failed, for people. */
export const reasonOf = (error) => (error instanceof TypeError ? "the control plane does not answer" : error.message);

const url = (path) => new URL(`../${path}`, import.meta.url);

/** The response at `path`. Raises `TokenNeeded`, and `Refused` with what the control plane says. */
export async function request(path, options = {}) {
  const response = await fetch(url(path), { ...options, cache: "no-store" });
  if (response.ok) return response;
  const problem = await response.json().catch(() => ({}));
  if (response.status === 401) throw new TokenNeeded(problem.detail);
  throw new Refused(problem, response.status);
}

/** The JSON at `path`. */
export async function read(path) {
  return (await request(path)).json();
}

/**
 * Follow the stream for ever. `on` has: open(), event(name, data, id), quiet() where nothing comes though it is open,
 * lost(why, retryMs), token() that resolves once there is a token to try.
 */
export async function follow(path, on) {
  let retryMs = RETRY_MIN_MS;
  for (;;) {
    try {
      await once(path, on, () => {
        retryMs = RETRY_MIN_MS;
      });
      throw new Error("the control plane ended the connection");
    } catch (error) {
      if (error instanceof TokenNeeded) {
        await on.token();
        continue;
      }
      on.lost(reasonOf(error), retryMs);
      await new Promise((done) => setTimeout(done, retryMs * (0.75 + Math.random() / 2)));
      retryMs = Math.min(RETRY_MAX_MS, retryMs * 2);
    }
  }
}

async function once(path, on, hasSpoken) {
  const abort = new AbortController();
  let quiet = 0;
  let dead = 0;
  const received = () => {
    clearTimeout(quiet);
    clearTimeout(dead);
    quiet = setTimeout(on.quiet, QUIET_MS);
    dead = setTimeout(() => abort.abort(new Error("the control plane has gone quiet")), DEAD_MS);
  };
  received();
  try {
    const response = await request(path, { signal: abort.signal });
    on.open();
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      received();
      hasSpoken();
      const blocks = (rest + value).split("\n\n");
      rest = blocks.pop();
      for (const block of blocks) dispatch(block, on);
    }
  } finally {
    clearTimeout(quiet);
    clearTimeout(dead);
    abort.abort();
  }
}

function dispatch(block, on) {
  let name = "message";
  let id = "";
  const data = [];
  for (const line of block.split("\n")) {
    if (line.startsWith("event: ")) name = line.slice(7);
    else if (line.startsWith("data: ")) data.push(line.slice(6));
    else if (line.startsWith("id: ")) id = line.slice(4);
  }
  if (data.length) on.event(name, JSON.parse(data.join("\n")), Number(id));
}
