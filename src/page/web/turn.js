// One turn of a chat on the screen.

import * as store from "./store.js";
import { h, iconButton, button, replace } from "./dom.js";
import { textOf } from "./chats.js";
import { markdown, GrowingMarkdown } from "./markdown.js";

// The next drawing waits so many times what the last one took, so that the page stays quick however long an answer is.
const kRest = 4;
// And so long at least: text that grows thirty times a second, every other frame, looks as smooth as at each of them.
const kRestMs = 20;
const kResultShown = 2000;

const seconds = (value) => (value < 10 ? `${value.toFixed(1)} s` : `${Math.round(value)} s`);

function figures(turn) {
  const timings = turn.timings;
  const parts = [];
  if (timings?.predicted_per_second > 0) parts.push(`${timings.predicted_per_second.toFixed(1)} tok/s`);
  if (turn.firstTokenMs >= 0) parts.push(`first token ${turn.firstTokenMs} ms`);
  if (turn.usage?.completion_tokens) parts.push(`${turn.usage.completion_tokens} tokens`);
  return parts.join(" \u00b7 ");
}

function callArguments(text) {
  try {
    const value = JSON.parse(text || "{}");
    return h(
      "table",
      null,
      h(
        "tbody",
        null,
        Object.entries(value).map(([name, each]) =>
          h(
            "tr",
            null,
            h("th", { scope: "row" }, name),
            h("td", null, typeof each === "string" ? each : JSON.stringify(each)),
          ),
        ),
      ),
    );
  } catch {
    return h("pre", null, text);
  }
}

const kStates = {
  stopped: "Stopped",
  incomplete: "Incomplete",
  failed: "No answer",
};

export class TurnView {
  // `actions`: ChatScreen.actions().
  constructor(turn, actions) {
    this.turn = turn;
    this.actions = actions;
    this.growing = null;
    this.pending = false;
    this.restUntil = 0;
    this.body = h("div", { class: "turn-body" });
    this.reasoning = null;
    this.extra = h("div", { class: "turn-extra" });
    this.foot = h("footer", { class: "turn-foot" });
    const name =
      turn.role === "user"
        ? "You"
        : turn.role === "tool"
          ? `Result of ${turn.name ?? "a tool"}`
          : turn.model || "Model";
    this.element = h(
      "article",
      { class: `turn ${turn.role}`, "aria-label": name, "data-turn": turn.id },
      turn.role === "assistant" && h("p", { class: "turn-name" }, name),
      this.body,
      this.extra,
      this.foot,
    );
    this.draw();
  }

  // Draws soon: at the next frame, or when the page has rested from the last time.
  drawSoon() {
    if (this.pending) return;
    this.pending = true;
    const frame = () =>
      requestAnimationFrame(() => {
        this.pending = false;
        const begin = performance.now();
        this.draw();
        const end = performance.now();
        this.restUntil = end + Math.max(kRest * (end - begin), kRestMs);
        this.actions.drawn?.();
      });
    const rest = this.restUntil - performance.now();
    if (rest > 0 && this.turn.state === "writing") setTimeout(frame, rest);
    else frame();
  }

  draw() {
    const { turn } = this;
    this.element.classList.toggle("writing", turn.state === "writing");
    this.element.setAttribute("aria-busy", String(turn.state === "writing"));
    this.drawReasoning();
    if (turn.role === "user") this.drawUser();
    else if (turn.role === "tool") this.drawResult();
    else this.drawAnswer();
    this.drawFoot();
  }

  drawUser() {
    const text = textOf(this.turn);
    if (this.drawn === text) return;
    this.drawn = text;
    replace(
      this.body,
      this.turn.parts
        .filter((part) => part.type !== "text")
        .map((part) => (part.type === "audio" ? soundOf(part) : imageOf(part))),
      text && h("p", { class: "plain" }, text),
    );
  }

  drawResult() {
    if (this.body.firstChild) return;
    replace(
      this.body,
      h(
        "details",
        { class: "fold" },
        h("summary", null, `Result of ${this.turn.name ?? "a tool"}`),
        h("pre", null, textOf(this.turn).slice(0, kResultShown)),
      ),
    );
  }

  drawAnswer() {
    const { turn } = this;
    const text = textOf(turn);
    const writing = turn.state === "writing";
    if (writing && !this.growing) {
      this.body.replaceChildren();
      this.growing = new GrowingMarkdown(this.body);
      this.drawn = "";
    }
    // What has been written stands as it is when the answer ends: only its last blocks are drawn once more.
    if (this.growing) {
      if (text !== this.drawn) this.growing.draw(text);
      this.drawn = text;
    } else if (text !== this.drawn) {
      replace(this.body, markdown(text));
      this.drawn = text;
    }
    if (writing) {
      if (!text && !turn.reasoning && !(turn.calls?.length > 0)) this.body.append(this.waiting());
      else this.wait?.remove();
    } else {
      this.growing = null;
      this.wait?.remove();
    }
    this.drawExtra();
  }

  // Buttons and folded calls that say the same stay as they are.
  drawExtra() {
    const { turn } = this;
    const counted = this.actions.retryAt?.() && Date.now();
    const larger = turn.error && this.actions.largerContext();
    const key = JSON.stringify([turn.state, turn.finish, turn.error, turn.calls, counted, larger]);
    if (key === this.extraShown) return;
    this.extraShown = key;
    replace(this.extra, this.calls(), this.trouble());
  }

  // Three dots, and what the model's load says of itself.
  waiting() {
    this.waitText ??= h("span");
    this.wait ??= h("p", { class: "wait" }, this.waitText, h("i"), h("i"), h("i"));
    const load = this.actions.waitsFor?.();
    this.waitText.className = load ? "wait-text" : "offscreen";
    const text = load || "Waiting for the first token";
    if (this.waitText.textContent !== text) this.waitText.textContent = text;
    return this.wait;
  }

  drawReasoning() {
    const { turn } = this;
    if (!turn.reasoning) return;
    if (!this.reasoning) {
      this.summary = h("summary");
      this.thoughts = h("div", { class: "thoughts" });
      this.reasoning = h("details", { class: "fold reasoning" }, this.summary, this.thoughts);
      // It is open while there is nothing else to read, and folds when the answer begins.
      this.reasoning.open = turn.state === "writing" && !textOf(turn);
      this.body.before(this.reasoning);
    }
    if (textOf(turn) && !this.folded) {
      this.folded = true;
      this.reasoning.open = false;
    }
    const done = turn.reasoningSeconds || turn.state !== "writing";
    this.summary.textContent = !done
      ? "Thinking\u2026"
      : turn.reasoningSeconds
        ? `Thought for ${seconds(turn.reasoningSeconds)}`
        : "Thoughts";
    if (this.thoughts.textContent !== turn.reasoning) this.thoughts.textContent = turn.reasoning;
  }

  calls() {
    return (this.turn.calls ?? []).map((call) =>
      h(
        "details",
        { class: "fold call" },
        h("summary", null, "Calls ", h("code", null, call.name)),
        callArguments(call.arguments),
      ),
    );
  }

  // Why there is no more of the answer, and what can be done.
  trouble() {
    const { turn, actions } = this;
    if (turn.state === "writing" && actions.retryAt?.()) {
      const left = Math.max(Math.ceil((actions.retryAt() - Date.now()) / 1000), 0);
      return h("p", { class: "trouble", role: "status" }, `The server is busy: again in ${left} s`);
    }
    const cut = turn.state === "done" && turn.finish === "length";
    if (!kStates[turn.state] && !cut) return null;
    const what = cut
      ? "The answer has reached its longest length."
      : (turn.error?.message ?? `${kStates[turn.state]}.`);
    const buttons = [];
    const full = turn.error?.code === "context_length_exceeded";
    if (full && actions.hasEarlier(turn))
      buttons.push(
        button("New chat with a summary", () => actions.summarise(turn)),
        button("Send without the oldest turns", () => actions.dropOldest(turn)),
      );
    if (turn.error?.status === 401) buttons.push(button("Enter a key", actions.unlock));
    if (textOf(turn)) buttons.push(button("Continue", () => actions.resume(turn)));
    const larger = full && actions.largerContext();
    if (larger)
      buttons.push(button(`Load with a context of ${larger.toLocaleString("en")}`, () => actions.enlarge(turn)));
    // A chat that is too long is so the next time.
    if (!cut && !full && !textOf(turn)) buttons.push(button("Try again", () => actions.again(turn)));
    const bad = turn.state === "failed" || turn.error;
    return h("div", { class: bad ? "trouble bad" : "trouble" }, h("p", null, what), buttons);
  }

  drawFoot() {
    const { turn, actions } = this;
    if (turn.state === "writing" || turn.role === "tool") {
      this.foot.replaceChildren();
      this.footKey = "";
      return;
    }
    const siblings = actions.siblings(turn);
    const at = siblings.indexOf(turn);
    // Buttons that are not rebuilt keep the focus.
    const key = `${siblings.map((each) => each.id)} ${at} ${turn.state}`;
    if (key === this.footKey) return;
    this.footKey = key;
    const answer = turn.role === "assistant";
    replace(
      this.foot,
      siblings.length > 1 &&
        h(
          "span",
          { class: "branches" },
          iconButton("left", "Previous branch", () => actions.show(siblings[at - 1]), { disabled: at === 0 }),
          h("span", { "aria-label": `Branch ${at + 1} of ${siblings.length}` }, `${at + 1}/${siblings.length}`),
          iconButton("right", "Next branch", () => actions.show(siblings[at + 1]), {
            disabled: at === siblings.length - 1,
          }),
        ),
      answer && iconButton("again", "Answer again", () => actions.again(turn)),
      iconButton("edit", "Edit", () => actions.edit(turn)),
      iconButton("copy", "Copy", () => actions.copy(turn)),
      iconButton("fork", "Fork into a new chat", () => actions.fork(turn)),
      iconButton("trash", "Delete from here on", () => actions.remove(turn)),
      answer && h("span", { class: "figures" }, figures(turn)),
    );
  }
}

// Its address is good for as long as the page, for it may be played at any time.
function soundOf(part) {
  const sound = h("audio", { class: "attached", controls: true, "aria-label": part.name ?? "sound" });
  store.get("blobs", part.blob).then((stored) => {
    if (stored) sound.src = URL.createObjectURL(stored.blob);
  });
  return sound;
}

function imageOf(part) {
  const image = h("img", { class: "attached", alt: part.name ?? "image" });
  store.get("blobs", part.blob).then((stored) => {
    if (!stored) return;
    image.src = URL.createObjectURL(stored.blob);
    image.onload = () => URL.revokeObjectURL(image.src);
  });
  return image;
}
