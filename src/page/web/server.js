// The server, as this page asks it: requests with the key, events as they come, errors as one class.

// sessionStorage forgets with the tab; localStorage only where the person asked for it.
const kKey = "weir-key";

export function key() {
  return sessionStorage.getItem(kKey) ?? localStorage.getItem(kKey) ?? "";
}

export function setKey(value, remember) {
  sessionStorage.removeItem(kKey);
  localStorage.removeItem(kKey);
  if (value) (remember ? localStorage : sessionStorage).setItem(kKey, value);
}

export class ServerError extends Error {
  // `status`: 0 where the server was not reached.
  constructor(status, message, { retryAfter = 0, code = "" } = {}) {
    super(message);
    this.status = status;
    this.retryAfter = retryAfter;
    this.code = code;
  }
}

async function errorOf(response) {
  let message = `${response.status} ${response.statusText}`;
  let code = "";
  try {
    const body = await response.json();
    message = body.error?.message ?? body.message ?? message;
    code = String(body.error?.code ?? "");
  } catch {
    /* Not JSON: the status says it. */
  }
  return new ServerError(response.status, message, {
    retryAfter: Number(response.headers.get("retry-after")) || 0,
    code,
  });
}

async function send(path, { body, signal, accept, method } = {}) {
  const headers = {};
  if (key()) headers.Authorization = `Bearer ${key()}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (accept) headers.Accept = accept;
  let response;
  try {
    response = await fetch(path, {
      method: method ?? (body === undefined ? "GET" : "POST"),
      headers,
      signal,
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ServerError(0, "The server cannot be reached.");
  }
  if (!response.ok) throw await errorOf(response);
  return response;
}

export async function ask(path, options) {
  const response = await send(path, options);
  try {
    return await response.json();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ServerError(0, "The server's answer broke off.");
  }
}

// Yields the data of each event, parsed; ends with the stream, or at [DONE]. A stream that ends without [DONE] where
// `needsEnd` has broken off. (EventSource could send no key.)
export async function* events(path, { needsEnd = false, ...options } = {}) {
  const response = await send(path, { accept: "text/event-stream", ...options });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      let read;
      try {
        read = await reader.read();
      } catch (error) {
        if (error.name === "AbortError") throw error;
        throw new ServerError(0, "The connection broke off.");
      }
      if (read.done) {
        if (needsEnd) throw new ServerError(0, "The connection broke off.");
        return;
      }
      const lines = (rest + read.value).split("\n");
      rest = lines.pop();
      for (const line of lines) {
        if (!line.startsWith("data:")) continue;
        const data = line.slice(5).trim();
        if (data === "[DONE]") return;
        yield JSON.parse(data);
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

// What the page knows of the server: asked for again while something looks at it.
export const server = {
  state: "connecting", // Also ready, loading, draining, unreachable, locked.
  detail: "",
  models: [], // Of /v1/models.
  props: {}, // Of /props, by the model's id: of those that are loaded.
  retryAt: 0, // When it is asked again, if it is not ready.
};

// Of so many loaded models the defaults are asked for.
const kPropsMax = 16;
const kFollowRetryMs = 3000;

const watchers = new Set();
export function watchServer(call) {
  watchers.add(call);
  return () => watchers.delete(call);
}

function tell(change) {
  const before = JSON.stringify(server);
  Object.assign(server, change);
  if (JSON.stringify(server) !== before) for (const call of watchers) call(server);
}

function stateOf(error) {
  if (error.status === 401 || error.status === 403) return "locked";
  if (error.status !== 503) return "unreachable";
  return /shutting down/.test(error.message) ? "draining" : "loading";
}

let timer = 0;
let wait = 1;
// Once; on success nothing more is asked until something fails, so that an idle page is silent.
export async function refreshServer() {
  clearTimeout(timer);
  try {
    const models = (await ask("/v1/models")).data ?? [];
    const props = await propsOfLoaded(models);
    wait = 1;
    tell({ state: "ready", detail: "", models, props, retryAt: 0 });
  } catch (error) {
    const state = stateOf(error);
    if (state === "locked") return tell({ state, detail: error.message, retryAt: 0 });
    wait = state === "unreachable" ? Math.min(wait * 2, 30) : 1;
    tell({ state, detail: error.message, retryAt: Date.now() + wait * 1000 });
    timer = setTimeout(refreshServer, wait * 1000);
  }
}

// A request has failed: was it the server?
export function noteFailure(error) {
  if ([0, 401, 403, 503].includes(error.status)) refreshServer();
}

// A server that lists no states has its models loaded.
export function isLoaded(model) {
  return (model.status?.value ?? "loaded") === "loaded";
}

async function propsOfLoaded(models) {
  const loaded = models.filter(isLoaded).slice(0, kPropsMax);
  const pages = await Promise.all(
    loaded.map(({ id }) =>
      ask(`/props?model=${encodeURIComponent(id)}`).catch((error) => {
        // It may have been unloaded in between; a server that answers nothing is another matter.
        if (error.code === "model_not_loaded" || error.status === 404) return null;
        throw error;
      }),
    ),
  );
  return Object.fromEntries(loaded.map(({ id }, i) => [id, pages[i]]).filter(([, page]) => page));
}

export function modelOf(id) {
  return server.models.find((each) => each.id === id);
}

export function contextOf(id) {
  return modelOf(id)?.max_model_len ?? 0;
}

// What a model could be loaded anew with: twice as much, if it was made for more than it has; else 0. Only where there
// are several do they come and go.
export function largerContextOf(id) {
  const { max_model_len: now = 0, meta = {} } = modelOf(id) ?? {};
  return server.models.length > 1 && meta.n_ctx_train > now ? Math.min(2 * now, meta.n_ctx_train) : 0;
}

export function sees(id) {
  return server.props[id]?.modalities?.vision === true;
}

export function hears(id) {
  return server.props[id]?.modalities?.audio === true;
}

// The value that the server takes where a request says none.
export function defaultsOf(id) {
  return server.props[id]?.default_generation_settings?.params ?? {};
}

// --- The states of several models, followed while something shows them.

// Called with each event, and with "feed_begins" before the first.
const hearers = new Set();
export function hearModels(call) {
  hearers.add(call);
}

let followers = 0;
let following = null;

// What it returns ends it; all followers share one stream.
export function followModels() {
  if (++followers === 1) {
    following = new AbortController();
    follow(following.signal);
  }
  let over = false;
  return () => {
    if (over) return;
    over = true;
    if (--followers === 0) following.abort();
  };
}

async function follow(signal) {
  while (!signal.aborted) {
    try {
      for (const call of hearers) call({ event: "feed_begins" });
      for await (const event of events("/models/sse", { signal })) {
        noteModel(event);
        for (const call of hearers) call(event);
      }
    } catch (error) {
      // Who may not look, or asks a server that tells no states, need not ask again.
      if (error.name === "AbortError" || [401, 403, 404].includes(error.status)) return;
    }
    await new Promise((resolve) => setTimeout(resolve, kFollowRetryMs));
  }
}

function noteModel({ model: id, event, data }) {
  if (event === "model_remove" || event === "models_reload") return refreshServer();
  const before = modelOf(id);
  if (!before || !(event === "model_status" || event === "download_progress")) return;
  const part = event === "download_progress" && data[id];
  const progress = part?.total > 0 ? Math.floor((100 * part.done) / part.total) : undefined;
  const status = part ? { value: "downloading", progress } : data;
  const after = { ...before, status };
  tell({ models: server.models.map((each) => (each === before ? after : each)) });
  // What a loaded model takes, and how long its context is, only the list says.
  if (isLoaded(before) !== isLoaded(after)) refreshServer();
}
