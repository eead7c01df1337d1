// The dashboard: what the server does, second by second, as long as the screen is open.

import { h, button, replace } from "./dom.js";
import { bytes, duration, rate, sparkline } from "./figures.js";
import { ask, events, noteFailure, server } from "./server.js";
import { askForKey } from "./unlock.js";

const kSeconds = 300;
const kSlotsMs = 2000;
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
  { name: "Memory", unit: "of the process", text: (m, all) => bytes(all.rss), lines: [(m, all) => all.rss] },
];

export class DashboardScreen {
  constructor() {
    this.history = [];
    this.tiles = h("div", { class: "tiles" });
    this.requests = h("div", { class: "card" });
    this.foot = h("p", { class: "muted" });
    this.trouble = h("div", { class: "trouble", role: "status", hidden: true });
    this.element = h(
      "div",
      { class: "screen" },
      h("header", { class: "screen-head" }, h("h1", null, "Dashboard"), this.foot),
      this.trouble,
      this.tiles,
      h("h2", null, "Open requests"),
      this.requests,
    );
    this.tileParts = kTiles.map(({ name, unit }) => {
      const value = h("p", { class: "tile-value" }, "\u2013");
      const line = h("div", { class: "tile-line" });
      this.tiles.append(
        h(
          "section",
          { class: "tile", "aria-label": name },
          h("h3", null, name),
          value,
          h("p", { class: "tile-unit" }, unit),
          line,
        ),
      );
      return { value, line };
    });
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
    kTiles.forEach(({ text, lines, top }, i) => {
      const { value, line } = this.tileParts[i];
      value.textContent = text(figures.models[0], figures);
      replace(
        line,
        sparkline(
          lines.map((number) => this.line(number)),
          top,
        ),
      );
    });
    const { http } = figures;
    this.foot.textContent =
      `${figures.models[0].id} \u00b7 up for ${duration(figures.uptime_s)} \u00b7 ${http.open} connections \u00b7 ` +
      `answers ${http.c2xx}, refused ${http.c4xx}, failed ${http.c5xx}`;
  }

  // Five minutes wide from the first second on: what was not seen is a gap at the left.
  line(number) {
    const seen = this.history.map((each) => number(each.models[0], each));
    return [...Array(kSeconds - seen.length).fill(null), ...seen];
  }

  async followSlots(signal) {
    while (!signal.aborted) {
      try {
        this.showSlots(await ask("/slots", { signal }));
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
      h(
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
              ["State", "Prompt", "Output", "Age"].map((name) => h("th", { scope: "col" }, name)),
            ),
          ),
          h(
            "tbody",
            null,
            open.slice(0, 50).map((slot) =>
              h(
                "tr",
                null,
                cells(slot).map((cell) => h("td", null, cell)),
              ),
            ),
          ),
        ),
      ),
      open.length > 50 &&
        h("p", { class: "muted" }, `and ${open.length - 50} more of ${server.models[0]?.id ?? "the model"}`),
    );
  }
}
