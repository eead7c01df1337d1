// A chat that has filled the context, in few words: what a new chat begins with.

import { textOf } from "./chats.js";
import { h, button, field, openDialog } from "./dom.js";
import { contextOf, events } from "./server.js";

// Of the context so much is the summary's own at most, in tokens.
const kSummaryTokens = 400;
// Without a count of the server's a token is taken to have so many characters; it is 3 to 5 in most languages that are
// written with letters. Where that was too many the server says so, and half of it is tried, so often.
const kTokenCharacters = 3;
const kTries = 4;
// Where the server does not say how long the context is.
const kContext = 4096;

const kOrder =
  "Summarise the conversation below for somebody who goes on with it: facts, decisions, names, numbers, code that " +
  "matters, and what is still open. Write only the summary, in the conversation's language, in 200 words at most.";

// The latest of what was said, in `room` characters; of long turns their beginning and their end.
function excerptOf(path, room) {
  const each = Math.max(Math.floor(room / 4), 200);
  const parts = [];
  for (const turn of path.toReversed()) {
    let text = textOf(turn);
    if (!text) continue;
    if (text.length > each) text = `${text.slice(0, each / 2)}\n\u2026\n${text.slice(-each / 2)}`;
    const part = `${turn.role === "user" ? "User" : turn.role === "tool" ? "Tool" : "Assistant"}: ${text}`;
    room -= part.length + 2;
    if (room < 0 && parts.length > 0) break;
    parts.unshift(part);
  }
  return parts.join("\n\n");
}

// Calls `changed` with the summary as it grows, and returns it.
async function summarise(path, model, { signal, changed }) {
  let room = Math.max(((contextOf(model) || kContext) - kSummaryTokens) * kTokenCharacters - kOrder.length, 400);
  for (let tries = 1; ; ++tries) {
    const content = `${kOrder}\n\n${excerptOf(path, room)}`;
    const body = {
      model,
      messages: [{ role: "user", content }],
      max_tokens: kSummaryTokens,
      enable_thinking: false,
      stream: true,
    };
    let text = "";
    try {
      for await (const event of events("/v1/chat/completions", { body, signal, needsEnd: true })) {
        if (event.error) throw new Error(event.error.message ?? "The server has failed.");
        text += event.choices?.[0]?.delta?.content ?? "";
        changed(text);
      }
      return text.trim();
    } catch (error) {
      if (error.code !== "context_length_exceeded" || tries >= kTries) throw error;
      room /= 2;
    }
  }
}

// Has the model sum `path` up in a dialog, where the text can be changed, and calls `begin` with it.
export function openSummary(path, model, begin) {
  const control = new AbortController();
  const text = h("textarea", { rows: 10, "aria-busy": "true" });
  const state = h("p", { class: "help", role: "status" }, "The model reads the chat\u2026");
  const go = button("Begin the chat", () => done(), { class: "button primary", disabled: true });
  const dialog = openDialog("A new chat with a summary", h("div", null, field("Summary", text), state), [
    button("Cancel", () => dialog.close()),
    go,
  ]);
  const done = () => {
    dialog.close();
    begin(text.value);
  };
  const changed = (written) => {
    text.value = written;
    text.scrollTop = text.scrollHeight;
  };
  dialog.addEventListener("close", () => control.abort());
  summarise(path, model, { signal: control.signal, changed })
    .then((written) => {
      changed(written);
      text.removeAttribute("aria-busy");
      state.textContent = "It can be changed. The new chat begins with it, and with the last question.";
      go.disabled = false;
      go.focus();
    })
    .catch((error) => {
      if (error.name !== "AbortError") state.textContent = error.message;
    });
}
