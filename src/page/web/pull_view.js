// A pull of a model, as the models screen shows it: how far it is, and what may be done with it.

import { h, button, confirmAction, notice, replace } from "./dom.js";
import { bytes, duration, meter } from "./figures.js";
import { dropPull, pausePull, rateOf, startPull } from "./pulls.js";

export class PullView {
  constructor(pull) {
    this.pull = pull;
    this.bar = meter(`Pull of ${pull.id}`, 0);
    this.figures = h("p", { class: "muted small" });
    this.actions = h("div", { class: "card-actions" });
    this.element = h(
      "article",
      { class: "card model pull", "aria-label": `Pull of ${pull.id}` },
      h("div", { class: "pull-head" }, h("h3", null, pull.id), this.actions),
      this.bar,
      this.figures,
    );
  }

  show() {
    const { pull } = this;
    const { state, done, total } = pull;
    this.bar.value = total > 0 ? done / total : 0;
    const rate = rateOf(pull);
    const share = total > 0 ? `${bytes(done)} of ${bytes(total)}, ${Math.floor((100 * done) / total)} %` : "";
    const running = total > 0 ? "" : "Waiting for the hub, or for a pull before it";
    const words = { running, paused: "Paused", failed: pull.message };
    const left = state === "running" && rate > 0 && duration(Math.ceil((total - done) / rate));
    const parts = [words[state], share, left && `${bytes(rate)}/s, ${left} left`];
    this.figures.textContent = parts.filter(Boolean).join(" \u00b7 ");
    if (state === this.stateShown) return;
    this.stateShown = state;
    this.figures.classList.toggle("bad", state === "failed");
    const hadFocus = this.actions.contains(document.activeElement);
    replace(
      this.actions,
      state === "running"
        ? button("Pause", () => pausePull(pull), { "aria-label": `Pause the pull of ${pull.id}` })
        : button("Resume", () => startPull(pull.id), { "aria-label": `Resume the pull of ${pull.id}` }),
      button("Cancel", () => this.cancel(), { "aria-label": `Cancel the pull of ${pull.id}` }),
    );
    if (hadFocus) this.actions.querySelector("button")?.focus();
  }

  async cancel() {
    const { id, done } = this.pull;
    const text = done > 0 ? `${bytes(done)} that have come are deleted.` : "Nothing has come of it yet.";
    if (!(await confirmAction(`Cancel the pull of ${id}?`, text, "Cancel the pull"))) return;
    await dropPull(this.pull).catch((error) => notice(error.message));
  }
}
