// The models screen: what is served, what it takes, and what else would run here. Only what the server offers is shown:
// its own reference says what that is.

import { h, button, confirmAction, icon, notice, replace } from "./dom.js";
import { bytes, partsBar, shortNumber } from "./figures.js";
import { ModelCard } from "./model_card.js";
import { PullView } from "./pull_view.js";
import { listPulls, loadPulls, startPull, watchPulls } from "./pulls.js";
import { ask, followModels, isLoaded, noteFailure, server, watchServer } from "./server.js";

// The words of verdicts (src/fit/verdict.cpp), and how good each is.
const kVerdicts = { fits: "good", short: "fair", streams: "fair", "with less": "fair", no: "bad", unknown: "bad" };

export class ModelsScreen {
  constructor() {
    this.offers = null;
    this.memory = h("div", { class: "card", hidden: true });
    this.served = h("div", { class: "cards" });
    this.pulls = h("section", { "aria-label": "Pulls", hidden: true });
    this.pullViews = new Map();
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
      this.pulls,
      this.catalogue,
    );
    this.cards = new Map();
    watchServer(() => this.element.isConnected && this.showServed());
    watchPulls((pull) => this.showPull(pull));
    loadPulls();
    this.showPulls();
  }

  close() {
    this.unfollow?.();
    this.unfollow = null;
  }

  async open() {
    this.showServed();
    this.unfollow ??= followModels();
    try {
      this.offers ??= new Set(Object.keys((await ask("/openapi.json")).paths ?? {}));
    } catch (error) {
      return noteFailure(error);
    }
    if (!this.element.isConnected) return;
    if (!this.offers.has("/models/sse")) this.close();
    this.showServed();
    this.showFound();
    this.showMemory();
    if (this.offers.has("/models/search") && this.findings.length === 0) this.find();
  }

  async showMemory() {
    if (!this.offers.has("/dashboard")) return;
    const figures = await ask("/dashboard").catch(() => null);
    if (!figures) return;
    const weights = figures.models.reduce((sum, model) => sum + model.weight_bytes, 0);
    const kept = figures.models.reduce((sum, model) => sum + model.kv_bytes, 0);
    const rest = Math.max(figures.rss - weights - kept, 0);
    this.memory.hidden = false;
    const free = Math.max((figures.limit ?? 0) - figures.rss, 0);
    replace(
      this.memory,
      h(
        "h2",
        null,
        "Memory ",
        h("span", { class: "muted" }, bytes(figures.rss), free > 0 && ` of ${bytes(figures.limit)}`),
      ),
      partsBar(
        "Memory",
        [
          { name: "Weights", value: weights },
          { name: "Keys and values", value: kept },
          { name: "Other", value: rest },
          ...(free > 0 ? [{ name: "Free", value: free }] : []),
        ],
        Math.max(figures.rss, figures.limit ?? 0),
      ),
    );
  }

  // Cards are kept, and with them the focus, where a model's state changes.
  showServed() {
    const loaded = server.models.filter(isLoaded).map(({ id }) => id);
    if (this.loadedShown !== undefined && this.loadedShown !== loaded.join() && this.offers) this.showMemory();
    this.loadedShown = loaded.join();
    // What is pulled is listed, too, and has a place of its own below.
    const pulled = new Set(listPulls().map(({ id }) => id));
    const models = server.models.filter((model) => model.status?.value !== "downloading" || !pulled.has(model.id));
    const ids = new Set(models.map(({ id }) => id));
    for (const [id, card] of this.cards)
      if (!ids.has(id)) {
        card.element.remove();
        this.cards.delete(id);
      }
    models.forEach((model, i) => {
      let card = this.cards.get(model.id);
      if (!card) this.cards.set(model.id, (card = new ModelCard()));
      card.show(model, this.mayOrder());
      if (this.served.children[i] !== card.element)
        this.served.insertBefore(card.element, this.served.children[i] ?? null);
    });
    if (models.length > 0) this.none?.remove();
    else {
      this.none ??= h("p", { class: "muted" });
      this.none.textContent = server.state === "ready" ? "None" : "The server has not said which.";
      this.served.append(this.none);
    }
  }

  // Only where several models are served do they come and go.
  mayOrder() {
    return server.models.length > 1 && this.offers?.has("/models/load");
  }

  // --- Pulls.

  showPulls() {
    for (const pull of listPulls()) this.showPull(pull);
  }

  showPull(pull) {
    const listed = listPulls().includes(pull);
    const known = this.pullViews.has(pull);
    if (!listed) {
      this.pullViews.get(pull)?.element.remove();
      this.pullViews.delete(pull);
      if (pull.state === "here") notice(`${pull.id} is here.`);
    } else {
      let view = this.pullViews.get(pull);
      if (!view) {
        if (this.pullViews.size === 0) replace(this.pulls, h("h2", null, "Pulls"));
        this.pullViews.set(pull, (view = new PullView(pull)));
        this.pulls.append(view.element);
      }
      view.show();
    }
    this.pulls.hidden = this.pullViews.size === 0;
    // Which models are shown elsewhere changes with it.
    if (listed && known && pull.state === "running" && pull.total > 0) return;
    this.showServed();
    this.showFound();
  }

  async find() {
    const words = this.search.value.trim();
    replace(this.found, h("p", { class: "muted", role: "status" }, "Looking\u2026"));
    this.catalogue.hidden = false;
    this.looking = true;
    try {
      const query = words ? `?q=${encodeURIComponent(words)}` : "";
      this.findings = (await ask(`/models/search${query}`)).models ?? [];
      this.looking = false;
      this.showFound();
    } catch (error) {
      this.looking = false;
      this.findings = [];
      // Who may not search is not shown that others may.
      if ([401, 403, 404, 501].includes(error.status) && !words) this.catalogue.hidden = true;
      else replace(this.found, h("p", { class: "trouble", role: "status" }, error.message));
    }
  }

  showFound() {
    if (this.looking) return;
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
      this.offers?.has("/models") &&
        h(
          "div",
          { class: "card-actions" },
          listPulls().some(({ id }) => id === model.id)
            ? h("span", { class: "muted small" }, "Listed above, under Pulls")
            : button("Pull", () => this.pull(model), { "aria-label": `Pull ${model.id}` }),
        ),
    );
  }

  async pull({ id, file_bytes: size }) {
    const what = size ? `${bytes(size)} of files come from the hub to the server's cache.` : "";
    const text = `${what} The server goes on with it when this page is closed.`;
    if (await confirmAction(`Pull ${id}?`, text.trim(), "Pull")) startPull(id);
  }
}
