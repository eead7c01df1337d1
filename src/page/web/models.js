// The models screen: what is served, what it takes, and what else would run here. Only what the server offers is shown:
// its own reference says what that is.

import { h, button, confirmAction, icon, notice, replace } from "./dom.js";
import { bytes, duration, partsBar, shortNumber } from "./figures.js";
import { ask, followModels, isLoaded, noteFailure, refreshServer, server, watchServer } from "./server.js";
import { dropPull, listPulls, loadPulls, pausePull, rateOf, startPull, watchPulls } from "./pulls.js";

// What a model's state is called here, and how it is coloured.
const kStates = {
  loaded: ["Loaded", "good"],
  loading: ["Loading", "fair"],
  downloading: ["Coming from the hub", "fair"],
  unloaded: ["Not loaded", ""],
};

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
    const ids = new Set(server.models.map(({ id }) => id));
    for (const [id, card] of this.cards)
      if (!ids.has(id)) {
        card.element.remove();
        this.cards.delete(id);
      }
    server.models.forEach((model, i) => {
      let card = this.cards.get(model.id);
      if (!card) this.cards.set(model.id, (card = new ServedCard(this)));
      card.show(model);
      if (this.served.children[i] !== card.element)
        this.served.insertBefore(card.element, this.served.children[i] ?? null);
    });
    if (server.models.length > 0) this.none?.remove();
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
    if (pull.state !== "running" || pull.total === 0) this.showFound();
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
      this.offers?.has("/api/pull") &&
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
    const text = `${what} The pull goes on while this page is open; later it goes on where it was.`;
    if (await confirmAction(`Pull ${id}?`, text.trim(), "Pull")) startPull(id);
  }
}

// A model that the server lists: its facts, its state, and what may be done with it.
class ServedCard {
  constructor(screen) {
    this.screen = screen;
    this.head = h("h3");
    this.facts = h("p", { class: "muted" });
    this.state = h("div", { class: "model-state" });
    this.actions = h("div", { class: "card-actions" });
    this.element = h("article", { class: "card model" }, this.head, this.facts, this.state, this.actions);
  }

  show(model) {
    const { id, meta = {}, status = {}, pinned } = model;
    const orders = this.screen.mayOrder();
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
      orders && ["loading", "downloading"].includes(value) && act("Stop loading", "/models/unload"),
      orders && value === "loaded" && act("Unload", "/models/unload"),
      orders && value === "loaded" && act(pinned ? "Unpin" : "Pin", "/models/load", { pin: !pinned }),
    );
    if (hadFocus) this.actions.querySelector("button")?.focus();
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

class PullView {
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
    const running = total > 0 ? "" : "Asking the hub";
    const words = { waiting: "Waits for the pull before it", running, paused: "Paused", failed: pull.message };
    const left = state === "running" && rate > 0 && duration(Math.ceil((total - done) / rate));
    const parts = [words[state], share, left && `${bytes(rate)}/s, ${left} left`];
    this.figures.textContent = parts.filter(Boolean).join(" \u00b7 ");
    if (state === this.stateShown) return;
    this.stateShown = state;
    this.figures.classList.toggle("bad", state === "failed");
    const goes = state === "running" || state === "waiting";
    const hadFocus = this.actions.contains(document.activeElement);
    replace(
      this.actions,
      goes
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

function meter(label, value) {
  const bar = h("meter", { min: 0, max: 1, "aria-label": label });
  bar.value = value;
  return bar;
}
