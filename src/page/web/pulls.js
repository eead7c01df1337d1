// Pulls of models from the hub. They are the server's, and go on when this page is gone; how far they are its feed of
// models says. What was paused, or has failed, the server forgets: it is remembered here, so that it can go on.

import * as store from "./store.js";
import { ask, followModels, hearModels, refreshServer } from "./server.js";

// A rate over so many seconds is calm, and still tells when a line gets slower.
const kRateMs = 5000;
// The server lets go of a model's files a moment after its pull has ended.
const kRemoveTries = 6;
const kRemoveRetryMs = 500;
// A feed begins with all pulls that there are.
const kFeedBeginsMs = 2000;
// Downloads of models that are being loaded are told in per cent of a file, pulls in bytes.
const kPerCent = 100;

// {id, state, done, total, message, marks} in the order in which they came. States: running, paused, failed; finished
// and dropped ones are in the list no more.
const pulls = [];
const watchers = new Set();
let unfollow = null;

export function listPulls() {
  return pulls;
}

export function watchPulls(call) {
  watchers.add(call);
}

function changed(pull) {
  // While something runs it is listened to, whatever is looked at.
  const runs = pulls.some(({ state }) => state === "running");
  if (runs) unfollow ??= followModels();
  else {
    unfollow?.();
    unfollow = null;
  }
  for (const call of watchers) call(pull);
}

function keep() {
  const kept = pulls.filter(({ state }) => state !== "running").map(({ id, done, total }) => ({ id, done, total }));
  store.setSetting("pulls", kept).catch(() => {});
}

function add(id, members) {
  let pull = pulls.find((each) => each.id === id);
  if (!pull) pulls.push((pull = { id, done: 0, total: 0, marks: [] }));
  return Object.assign(pull, { message: "", ...members });
}

function leave(pull, state) {
  pull.state = state;
  pulls.splice(pulls.indexOf(pull), 1);
  keep();
  changed(pull);
}

// Begins a pull, or goes on with one.
export async function startPull(id) {
  const pull = add(id, { state: "running", marks: [], heard: true });
  changed(pull);
  try {
    await ask("/models", { body: { model: id } });
  } catch (error) {
    fail(pull, error.message);
  }
  keep();
}

function fail(pull, message) {
  Object.assign(pull, { state: "failed", message });
  keep();
  changed(pull);
}

export async function pausePull(pull) {
  pull.state = "paused";
  keep();
  changed(pull);
  try {
    await ask("/models/unload", { body: { model: pull.id } });
  } catch (error) {
    if (error.status !== 404) fail(pull, error.message);
  }
}

// Deletes what has come of it.
export async function dropPull(pull) {
  if (pull.state === "running") await pausePull(pull);
  leave(pull, "dropped");
  await removeModel(pull.id);
}

// Of the server's cache; nothing happens where it is not there.
export async function removeModel(id) {
  for (let tries = 1; ; ++tries) {
    try {
      return await ask(`/models?model=${encodeURIComponent(id)}`, { method: "DELETE" });
    } catch (error) {
      if (error.status === 404) return;
      if (tries >= kRemoveTries || error.code === "model_in_use") throw error;
      await new Promise((resolve) => setTimeout(resolve, kRemoveRetryMs));
    }
  }
}

// Bytes a second, or 0 while it is not known.
export function rateOf({ marks }) {
  const [first, last] = [marks[0], marks.at(-1)];
  return marks.length > 1 && last.at > first.at ? ((last.done - first.done) * 1000) / (last.at - first.at) : 0;
}

function note(pull, { done, total }) {
  const at = Date.now();
  Object.assign(pull, { done, total, heard: true });
  pull.marks.push({ at, done });
  while (pull.marks.length > 2 && at - pull.marks[0].at > kRateMs) pull.marks.shift();
  changed(pull);
}

// Between two feeds a pull may have ended.
function feedBegins() {
  for (const pull of pulls) pull.heard = false;
  setTimeout(() => {
    for (const pull of pulls.filter(({ state, heard }) => state === "running" && !heard)) leave(pull, "gone");
    refreshServer();
  }, kFeedBeginsMs);
}

function hear({ event, model: id, data }) {
  if (event === "feed_begins") {
    if (pulls.length > 0) feedBegins();
    return;
  }
  const part = event === "download_progress" ? data[id] : null;
  let pull = pulls.find((each) => each.id === id);
  // Another page, or a program, has begun it.
  if (!pull && part && part.total !== kPerCent) pull = add(id, { state: "running" });
  if (!pull) return;
  // What is paused here says once more that it has ended.
  if (part && pull.state !== "paused") {
    pull.state = "running";
    note(pull, part);
  } else if (event === "download_finished") {
    leave(pull, "here");
    refreshServer();
  } else if (event === "download_failed" && pull.state === "running") {
    fail(pull, data.message);
  }
}

// Once, when the page begins to show pulls.
export function loadPulls() {
  for (const { id, done, total } of store.setting("pulls")) add(id, { state: "paused", done, total });
  hearModels(hear);
}
