// The dashboard: what the server does, second by second, as long as the screen is open.

import { h, button, replace } from "./dom.js";
import { bytes, duration, rate, sparkline } from "./figures.js";
import { ask, events, noteFailure } from "./server.js";
import { askForKey } from "./unlock.js";

const kSeconds = 300;
const kSlotsMs = 2000;
const kSlotsShown = 50;
const kRetryMs = 3000;

const ms = (value) =>
  value === null || value === undefined
    ? "\u2013"
    : value >= 1000
      ? `${(value / 1000).toFixed(1)} s`
      : `${value >= 10 ? Math.round(value) : value.toFixed(1)} ms`;
const percent = (value) => (value === null || value === undefined ? "\u2013" : `${Math.round(100 * value)} %`);
const pair = (values) => (values ? `${ms(values[0])} \u00b7 ${ms(values[1])}` : "\u2013");

// What a tile says, and the numbers of its lines.
const kTiles = [
  { name: "Output", unit: "tok/s", text: (m) => rate(m.output_tok_s), lines: [(m) => m.output_tok_s] },
  { name: "Prompts", unit: "tok/s", text: (m) => rate(m.prompt_tok_s), lines: [(m) => m.prompt_tok_s] },
  {
    name: "Requests",
    unit: "running \u00b7 waiting",
    text: (m) => `${m.running} \u00b7 ${m.waiting}`,
    lines: [(m) => m.running, (m) => m.waiting],
    top: 4,
  },
  {
    name: "First token",
    unit: "p50 \u00b7 p95",
    text: (m) => pair(m.ttft_ms),
    lines: [(m) => m.ttft_ms?.[0] ?? null, (m) => m.ttft_ms?.[1] ?? null],
  },
  {
    name: "Between tokens",
    unit: "p50 \u00b7 p95",
    text: (m) => pair(m.gap_ms),
    lines: [(m) => m.gap_ms?.[0] ?? null, (m) => m.gap_ms?.[1] ?? null],
  },
  { name: "Key-value cache", unit: "in use", text: (m) => percent(m.kv_use), lines: [(m) => m.kv_use], top: 1 },
  {
    name: "Cached",
    unit: "of prompts' tokens",
    text: (m) => percent(m.cached_share),
    lines: [(m) => m.cached_share ?? null],
    top: 1,
  },
  {
    name: "Memory",
    unit: (m, all) => (all.limit ? `of ${bytes(all.limit)} allowed` : "of the process"),
    text: (m, all) => bytes(all.rss),
    lines: [(m, all) => all.rss],
  },
  // Of models whose experts are on disk.
  {
    name: "Experts found",
    unit: "in memory",
    text: (m) => percent(m.experts.hit),
    lines: [(m) => m.experts?.hit ?? null],
    top: 1,
    shown: (m) => m.experts,
  },
  {
    name: "Disk",
    unit: (m) => `GB/s \u00b7 ${ms(m.experts?.stall_ms_token)} of waiting a token`,
    text: (m) => m.experts.gbps.toFixed(2),
    lines: [(m) => m.experts?.gbps ?? null],
    shown: (m) => m.experts,
  },
];

const hundreds = (count) => (count > 0 ? count.toLocaleString("en") : "\u2013");

function table(heads, rows) {
  return h(
    "div",
    { class: "table" },
    h(
      "table",
      null,
      h(
        "thead",
        null,
        h(
          "tr",
          null,
          heads.map((name) => h("th", { scope: "col" }, name)),
        ),
      ),
      h(
        "tbody",
        null,
        rows.map((row) =>
          h(
            "tr",
            null,
            row.map((cell) => h("td", null, cell)),
          ),
        ),
      ),
    ),
  );
}

export class DashboardScreen {
  constructor() {
    this.history = [];
    this.model = ""; // Whose figures are shown, of several.
    this.choice = h("select", {
      class: "quiet",
      "aria-label": "Model",
      hidden: true,
      onchange: () => {
        this.model = this.choice.value;
        this.draw();
      },
    });
    this.tiles = h("div", { class: "tiles" });
    this.models = h("section", { "aria-label": "Models", hidden: true });
    this.pulls = h("section", { "aria-label": "Pulls", hidden: true });
    this.requests = h("div", { class: "card" });
    this.limits = h("dl", { class: "limits muted small" });
    this.foot = h("p", { class: "muted" });
    this.trouble = h("div", { class: "trouble", role: "status", hidden: true });
    this.element = h(
      "div",
      { class: "screen" },
      h("header", { class: "screen-head" }, h("h1", null, "Dashboard"), this.choice, this.foot),
      this.trouble,
      this.tiles,
      this.limits,
      this.models,
      this.pulls,
      h("h2", null, "Open requests"),
      this.requests,
    );
    this.tileParts = kTiles.map(({ name }) => {
      const value = h("p", { class: "tile-value" }, "\u2013");
      const unit = h("p", { class: "tile-unit" });
      const line = h("div", { class: "tile-line" });
      const element = h("section", { class: "tile", "aria-label": name }, h("h2", null, name), value, unit, line);
      this.tiles.append(element);
      return { element, value, unit, line };
    });
    this.showSlots([]);
    this.drawTiles(null, {});
  }

  open() {
    this.close();
    this.control = new AbortController();
    this.follow(this.control.signal);
    this.followSlots(this.control.signal);
  }

  close() {
    this.control?.abort();
  }

  async follow(signal) {
    while (!signal.aborted) {
      try {
        for await (const figures of events("/dashboard", { signal })) this.show(figures);
      } catch (error) {
        if (error.name === "AbortError") return;
        noteFailure(error);
        this.complain(error);
      }
      await new Promise((resolve) => setTimeout(resolve, kRetryMs));
    }
  }

  complain(error) {
    this.trouble.hidden = false;
    replace(
      this.trouble,
      h("p", null, error.message),
      [401, 403].includes(error.status) && button("Enter a key", askForKey),
    );
  }

  show(figures) {
    this.trouble.hidden = true;
    this.history.push(figures);
    if (this.history.length > kSeconds) this.history.shift();
    this.draw();
  }

  draw() {
    const figures = this.history.at(-1);
    if (!figures) return;
    const model = this.chosen(figures);
    this.drawChoice(figures.models);
    this.drawTiles(model, figures);
    this.drawModels(figures.models);
    this.drawPulls(figures.pulls ?? []);
    const { http } = figures;
    this.foot.textContent =
      `${figures.models.length === 1 ? `${model.id} \u00b7 ` : ""}up for ${duration(figures.uptime_s)} \u00b7 ` +
      `${http.open} connections \u00b7 answers ${http.c2xx}, refused ${http.c4xx}, failed ${http.c5xx}`;
  }

  // Of a moment: the figures of the model that is shown, if it was loaded then.
  chosen({ models }) {
    return models.find(({ id }) => id === this.model) ?? (this.model ? undefined : models[0]);
  }

  drawChoice(models) {
    if (this.model && !models.some(({ id }) => id === this.model)) this.model = "";
    const key = models.map(({ id }) => id).join("\n");
    if (key !== this.choiceShown) {
      this.choiceShown = key;
      this.choice.hidden = models.length < 2;
      replace(
        this.choice,
        models.map(({ id }) => h("option", { value: id }, id)),
      );
    }
    if (models.length > 0) this.choice.value = this.chosen({ models }).id;
  }

  drawTiles(model, figures) {
    kTiles.forEach(({ unit, text, lines, top, shown }, i) => {
      const parts = this.tileParts[i];
      parts.element.hidden = Boolean(shown) && !(model && shown(model));
      parts.unit.textContent = typeof unit === "function" ? unit(model ?? {}, figures) : unit;
      if (parts.element.hidden) return;
      parts.value.textContent = model ? text(model, figures) : "\u2013";
      replace(
        parts.line,
        sparkline(
          lines.map((number) => this.line(number)),
          top,
        ),
      );
    });
    const { running, open, context } = model?.limits ?? {};
    const facts = [
      ["At most: requests at once", hundreds(running)],
      ["with those that wait", hundreds(open)],
      ["tokens of each", hundreds(context)],
    ];
    this.limits.hidden = !model?.limits;
    replace(
      this.limits,
      facts.map(([name, value]) => h("div", null, h("dt", null, name), h("dd", null, value))),
    );
  }

  // Five minutes wide from the first second on: what was not seen is a gap at the left.
  line(number) {
    const seen = this.history.map((each) => {
      const model = this.chosen(each);
      return model ? number(model, each) : null;
    });
    return [...Array(kSeconds - seen.length).fill(null), ...seen];
  }

  drawModels(models) {
    this.models.hidden = models.length < 2;
    if (models.length < 2) return;
    const heads = ["Model", "Running", "Waiting", "Output", "Prompts", "KV in use", "Memory"];
    const rows = models.map((m) => [
      m.id,
      m.running,
      m.waiting,
      `${rate(m.output_tok_s)} tok/s`,
      `${rate(m.prompt_tok_s)} tok/s`,
      percent(m.kv_use),
      bytes(m.weight_bytes + m.kv_bytes),
    ]);
    replace(this.models, h("h2", null, "Models"), h("div", { class: "card" }, table(heads, rows)));
  }

  drawPulls(pulls) {
    this.pulls.hidden = pulls.length === 0;
    if (pulls.length === 0) return;
    const rows = pulls.map((pull) => [
      pull.model,
      pull.bytes > 0 ? `${bytes(pull.bytes_done)} of ${bytes(pull.bytes)}` : "Waiting",
      pull.bytes > 0 ? percent(pull.bytes_done / pull.bytes) : "",
    ]);
    replace(this.pulls, h("h2", null, "Pulls"), h("div", { class: "card" }, table(["Model", "Here", ""], rows)));
  }

  async followSlots(signal) {
    while (!signal.aborted) {
      try {
        const query = this.model ? `?model=${encodeURIComponent(this.model)}` : "";
        this.showSlots(await ask(`/slots${query}`, { signal }));
      } catch {
        /* The stream above says what is wrong. */
      }
      await new Promise((resolve) => setTimeout(resolve, kSlotsMs));
    }
  }

  showSlots(slots) {
    const open = slots.filter((slot) => slot.is_processing || slot.queue_position !== undefined);
    if (open.length === 0) return replace(this.requests, h("p", { class: "muted" }, "None"));
    const cells = (slot) => [
      slot.is_processing ? "Running" : `Waiting, ${slot.queue_position}`,
      slot.n_prompt_tokens ?? "",
      slot.next_token?.n_decoded ?? "",
      slot.age_seconds === undefined ? "" : `${slot.age_seconds.toFixed(1)} s`,
    ];
    replace(
      this.requests,
      table(["State", "Prompt", "Output", "Age"], open.slice(0, kSlotsShown).map(cells)),
      open.length > kSlotsShown && h("p", { class: "muted" }, `and ${open.length - kSlotsShown} more`),
    );
  }
}
