// A model that the server lists: its facts, its state, and what may be done with it.

import { h, button, confirmAction, notice, replace } from "./dom.js";
import { bytes, meter, shortNumber } from "./figures.js";
import { removeModel } from "./pulls.js";
import { ask, refreshServer } from "./server.js";

// What a model's state is called here, and how it is coloured.
const kStates = {
  loaded: ["Loaded", "good"],
  loading: ["Loading", "fair"],
  downloading: ["Coming from the hub", "fair"],
  unloaded: ["Not loaded", ""],
};

export class ModelCard {
  constructor() {
    this.head = h("h3");
    this.facts = h("p", { class: "muted" });
    this.state = h("div", { class: "model-state" });
    this.actions = h("div", { class: "card-actions" });
    this.element = h("article", { class: "card model" }, this.head, this.facts, this.state, this.actions);
  }

  // `orders`: whether the server takes any.
  show(model, orders) {
    const { id, meta = {}, status = {}, pinned } = model;
    const key = JSON.stringify([model, orders]);
    if (key === this.shown) return;
    this.shown = key;
    this.element.setAttribute("aria-label", id);
    this.head.textContent = id;
    this.facts.textContent = [
      meta.n_params && `${shortNumber(meta.n_params)} parameters`,
      meta.size && bytes(meta.size),
      meta.ftype,
      model.max_model_len && `context ${model.max_model_len.toLocaleString("en")}`,
    ]
      .filter(Boolean)
      .join(" \u00b7 ");
    this.facts.hidden = !this.facts.textContent;
    const [word, kind] = kStates[status.value] ?? [status.value ?? "Loaded", "good"];
    const coming = status.progress >= 0 && status.value !== "loaded";
    replace(
      this.state,
      h("span", { class: `tag ${kind}` }, word),
      pinned && h("span", { class: "tag" }, "Pinned"),
      coming && meter(`${word}: ${id}`, status.progress / 100),
      coming && h("span", { class: "muted small" }, `${status.progress} %`),
      status.failed && h("p", { class: "trouble bad" }, status.message),
    );
    this.showActions(model, orders);
  }

  // Buttons that stay the same stay, and keep the focus.
  showActions({ id, status = {}, pinned }, orders) {
    const value = status.value ?? "loaded";
    const key = JSON.stringify([orders, value, pinned]);
    if (key === this.actionsShown) return;
    this.actionsShown = key;
    const hadFocus = this.actions.contains(document.activeElement);
    const act = (label, path, body) => button(label, () => this.order(path, { model: id, ...body }), {
      "aria-label": `${label} ${id}`,
    });
    replace(
      this.actions,
      orders && value === "unloaded" && act("Load", "/models/load"),
      // Of the hub's models only; a file of models has names of its own.
      orders && value === "unloaded" && id.includes("/") && button("Delete", () => this.remove(id), {
        "aria-label": `Delete ${id}`,
      }),
      orders && ["loading", "downloading"].includes(value) && act("Stop loading", "/models/unload"),
      orders && value === "loaded" && act("Unload", "/models/unload"),
      orders && value === "loaded" && act(pinned ? "Unpin" : "Pin", "/models/load", { pin: !pinned }),
    );
    if (hadFocus) this.actions.querySelector("button")?.focus();
  }

  async remove(id) {
    const text = "Its files in the server's cache go; it can be pulled again.";
    if (!(await confirmAction(`Delete ${id}?`, text, "Delete"))) return;
    await removeModel(id).catch((error) => notice(error.message));
    refreshServer();
  }

  async order(path, body) {
    try {
      await ask(path, { body });
    } catch (error) {
      if (error.code === "model_in_use" && !body.force) {
        const text = "It takes no more requests, and goes when those that it has are answered.";
        if (await confirmAction(`${body.model} is in use. Unload it all the same?`, text, "Unload"))
          return this.order(path, { ...body, force: true });
      } else if (error.message) notice(error.message);
    }
    refreshServer();
  }
}
