// Pulls of models from the hub. The server fetches while it is listened to, and goes on later where it was; so a pull
// lasts as long as this page is open, pausing is to listen no more, and what is paused is remembered here.

import * as store from "./store.js";
import { ask, objects, refreshServer } from "./server.js";

// A rate over so many seconds is calm, and still tells when a line gets slower.
const kRateMs = 5000;
// The server lets go of a model's files a moment after nobody listens any more.
const kRemoveTries = 6;
const kRemoveRetryMs = 500;

// {id, state, done, total, message, marks} in the order in which they were asked for. States: waiting (another runs; the
// server would make it wait, too), running, paused, failed.
const pulls = [];
const watchers = new Set();
let running = null; // {pull, control}

export function listPulls() {
  return pulls;
}

export function watchPulls(call) {
  watchers.add(call);
  return () => watchers.delete(call);
}

function changed(pull) {
  for (const call of watchers) call(pull);
}

// Bytes and what is known of them outlive a reload: as paused, for nobody listened meanwhile.
function keep() {
  const kept = pulls.map(({ id, done, total }) => ({ id, done, total }));
  store.setSetting("pulls", kept).catch(() => {});
}

export function loadPulls() {
  for (const { id, done, total } of store.setting("pulls"))
    if (!pulls.some((each) => each.id === id)) pulls.push({ id, done, total, state: "paused", message: "", marks: [] });
}

// Begins a pull, or goes on with one.
export function startPull(id) {
  let pull = pulls.find((each) => each.id === id);
  if (!pull) pulls.push((pull = { id, done: 0, total: 0, state: "waiting", message: "", marks: [] }));
  if (pull.state === "running") return;
  Object.assign(pull, { state: "waiting", message: "", marks: [] });
  keep();
  changed(pull);
  next();
}

export function pausePull(pull) {
  pull.state = "paused";
  if (running?.pull === pull) running.control.abort();
  changed(pull);
}

// Deletes what has come of it.
export async function dropPull(pull) {
  const begun = pull.total > 0;
  pausePull(pull);
  pulls.splice(pulls.indexOf(pull), 1);
  keep();
  changed(pull);
  if (!begun) return;
  for (let tries = 1; ; ++tries) {
    try {
      await ask("/api/delete", { method: "DELETE", body: { model: pull.id }, empty: true });
      return;
    } catch (error) {
      if (error.status === 404) return;
      if (tries >= kRemoveTries) throw error;
      await new Promise((resolve) => setTimeout(resolve, kRemoveRetryMs));
    }
  }
}

// Bytes a second, or 0 while it is not known.
export function rateOf({ marks }) {
  const [first, last] = [marks[0], marks.at(-1)];
  return marks.length > 1 && last.at > first.at ? ((last.done - first.done) * 1000) / (last.at - first.at) : 0;
}

async function next() {
  const pull = !running && pulls.find((each) => each.state === "waiting");
  if (!pull) return;
  const control = new AbortController();
  running = { pull, control };
  pull.state = "running";
  changed(pull);
  let here = false;
  try {
    const body = { model: pull.id };
    for await (const line of objects("/api/pull", { body, signal: control.signal })) {
      if (line.error) throw new Error(line.error);
      here = line.status === "success";
      if (line.total > 0) note(pull, line);
    }
    if (!here) throw new Error("The connection broke off.");
    pulls.splice(pulls.indexOf(pull), 1);
    pull.state = "here";
  } catch (error) {
    if (error.name !== "AbortError") Object.assign(pull, { state: "failed", message: error.message });
  }
  running = null;
  keep();
  changed(pull);
  if (here) refreshServer();
  next();
}

function note(pull, { total, completed }) {
  const at = Date.now();
  Object.assign(pull, { total, done: completed });
  pull.marks.push({ at, done: completed });
  if (!(at - pull.keptAt < kRateMs)) {
    pull.keptAt = at;
    keep();
  }
  while (pull.marks.length > 2 && at - pull.marks[0].at > kRateMs) pull.marks.shift();
  changed(pull);
}
