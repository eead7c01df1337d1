// The models screen: what is served, what it takes, and what else would run here. Only what the server offers is shown:
// its own reference says what that is.

import { h, button, confirmAction, icon, notice, replace } from "./dom.js";
import { bytes, partsBar, shortNumber } from "./figures.js";
import { ask, noteFailure, refreshServer, server, watchServer } from "./server.js";

// The words of verdicts (src/fit/verdict.cpp), and how good each is.
const kVerdicts = { fits: "good", short: "fair", streams: "fair", "with less": "fair", no: "bad", unknown: "bad" };

export class ModelsScreen {
  constructor() {
    this.offers = null;
    this.memory = h("div", { class: "card", hidden: true });
    this.served = h("div", { class: "cards" });
    this.search = h("input", {
      type: "search",
      id: "model-search",
      placeholder: "Search the hub",
      "aria-label": "Search the hub",
    });
    this.fitting = h("input", {
      type: "checkbox",
      id: "only-fitting",
      checked: true,
      onchange: () => this.showFound(),
    });
    this.found = h("div", { class: "cards" });
    this.findings = [];
    const form = h(
      "form",
      {
        class: "search-row",
        onsubmit: (event) => {
          event.preventDefault();
          this.find();
        },
      },
      this.search,
      h("button", { type: "submit", class: "button" }, icon("search"), "Search"),
      h("label", { class: "check" }, this.fitting, "Only what runs here"),
    );
    this.catalogue = h(
      "section",
      { hidden: true, "aria-label": "Models of the hub" },
      h("h2", null, "What else would run here"),
      form,
      this.found,
    );
    this.element = h(
      "div",
      { class: "screen" },
      h("header", { class: "screen-head" }, h("h1", null, "Models")),
      this.memory,
      h("h2", null, "Served"),
      this.served,
      this.catalogue,
    );
    watchServer(() => this.showServed());
  }

  async open() {
    this.showServed();
    try {
      this.offers ??= new Set(Object.keys((await ask("/openapi.json")).paths ?? {}));
    } catch (error) {
      return noteFailure(error);
    }
    this.showServed();
    this.showMemory();
    if (this.offers.has("/models/search") && this.findings.length === 0) this.find();
  }

  async showMemory() {
    if (!this.offers.has("/dashboard")) return;
    const figures = await ask("/dashboard").catch(() => null);
    if (!figures) return;
    const model = figures.models[0];
    const rest = Math.max(figures.rss - model.weight_bytes - model.kv_bytes, 0);
    this.memory.hidden = false;
    replace(
      this.memory,
      h("h3", null, "Memory ", h("span", { class: "muted" }, bytes(figures.rss))),
      partsBar(
        "Memory",
        [
          { name: "Weights", value: model.weight_bytes },
          { name: "Keys and values", value: model.kv_bytes },
          { name: "Other", value: rest },
        ],
        figures.rss,
      ),
    );
  }

  showServed() {
    const cards = server.models.map((model) => {
      const meta = model.meta ?? {};
      const facts = [
        meta.n_params && `${shortNumber(meta.n_params)} parameters`,
        meta.size && bytes(meta.size),
        meta.ftype,
        model.max_model_len && `context ${model.max_model_len.toLocaleString("en")}`,
      ].filter(Boolean);
      const state = model.status?.value;
      return h(
        "article",
        { class: "card model" },
        h("h3", null, model.id),
        h("p", { class: "muted" }, facts.join(" \u00b7 ")),
        h(
          "div",
          { class: "card-actions" },
          state && h("span", { class: "tag" }, state),
          this.offers?.has("/models/unload") &&
            state === "loaded" &&
            button("Unload", () => this.change("/models/unload", model.id)),
          this.offers?.has("/models/load") &&
            state === "unloaded" &&
            button("Load", () => this.change("/models/load", model.id)),
        ),
      );
    });
    replace(
      this.served,
      cards.length > 0
        ? cards
        : h("p", { class: "muted" }, server.state === "ready" ? "None" : "The server has not said which."),
    );
  }

  async change(path, model) {
    try {
      await ask(path, { body: { model } });
    } catch (error) {
      notice(error.message);
    }
    refreshServer();
  }

  async find() {
    const words = this.search.value.trim();
    replace(this.found, h("p", { class: "muted", role: "status" }, "Looking\u2026"));
    this.catalogue.hidden = false;
    try {
      const query = words ? `?q=${encodeURIComponent(words)}` : "";
      this.findings = (await ask(`/models/search${query}`)).models ?? [];
      this.showFound();
    } catch (error) {
      this.findings = [];
      // Who may not search is not shown that others may.
      if ([401, 403, 404, 501].includes(error.status) && !words) this.catalogue.hidden = true;
      else replace(this.found, h("p", { class: "trouble", role: "status" }, error.message));
    }
  }

  showFound() {
    const runs = (model) => ["good", "fair"].includes(kVerdicts[model.fit?.verdict]);
    const shown = this.findings.filter((model) => !this.fitting.checked || runs(model));
    replace(
      this.found,
      shown.map((model) => this.card(model)),
      shown.length === 0 &&
        h("p", { class: "muted" }, this.findings.length > 0 ? "None of those found runs here." : "Nothing found"),
    );
  }

  card(model) {
    const facts = [
      model.file_bytes && bytes(model.file_bytes),
      model.format,
      model.license,
      model.downloads > 0 && `${shortNumber(model.downloads)} downloads`,
    ].filter(Boolean);
    const speed = model.speed?.decode;
    const kind = kVerdicts[model.fit?.verdict] ?? "bad";
    return h(
      "article",
      { class: "card model" },
      h("h3", null, model.id),
      h("p", { class: "muted" }, facts.join(" \u00b7 ")),
      model.fit &&
        h(
          "p",
          { class: "fit" },
          h("span", { class: `tag ${kind}` }, model.fit.verdict),
          speed && ` about ${speed.low} to ${speed.high} tok/s`,
        ),
      model.fit && h("p", { class: "muted small" }, (model.fit.text ?? "").replace(`${model.fit.verdict}: `, "")),
      this.offers?.has("/api/pull") &&
        h(
          "div",
          { class: "card-actions" },
          button("Pull", () => this.pull(model.id)),
        ),
    );
  }

  // Ollama's way: a line of JSON for each step.
  async pull(id) {
    if (!(await confirmAction("Pull this model?", `The server fetches ${id} from the hub.`, "Pull"))) return;
    try {
      await ask("/api/pull", { body: { model: id, stream: false } });
      notice(`${id} is here.`);
    } catch (error) {
      notice(error.message);
    }
  }
}
