// What requests may ask for: a chat's own values over its persona's over the page's over the server's. Only what was
// set somewhere is sent; the server knows its own defaults.

import { h, field } from "./dom.js";
import { defaultsOf } from "./server.js";

// Names are the API's; `prop`: where /props calls the default otherwise.
export const kParameters = [
  {
    name: "temperature",
    label: "Temperature",
    min: 0,
    max: 2,
    step: 0.05,
    help: "0 always takes the likeliest token.",
  },
  { name: "top_p", label: "Top p", min: 0, max: 1, step: 0.01 },
  { name: "top_k", label: "Top k", min: 0, max: 1000, step: 1 },
  { name: "min_p", label: "Min p", min: 0, max: 1, step: 0.01 },
  { name: "max_tokens", label: "Longest answer", min: 1, max: 1_000_000, step: 1, prop: "n_predict" },
  { name: "repeat_penalty", label: "Repeat penalty", min: 0, max: 2, step: 0.05 },
  { name: "presence_penalty", label: "Presence penalty", min: -2, max: 2, step: 0.1 },
  { name: "frequency_penalty", label: "Frequency penalty", min: -2, max: 2, step: 0.1 },
  { name: "seed", label: "Seed", min: 0, max: 2 ** 31 - 1, step: 1, help: "The same seed gives the same answer." },
];

function defaultOf({ name, prop }, model) {
  const value = defaultsOf(model)[prop ?? name];
  if (value === undefined || (name === "max_tokens" && value < 0)) return "";
  return String(Math.round(value * 1e4) / 1e4);
}

export function merged(...sources) {
  return Object.assign(
    {},
    ...sources.map((source) =>
      Object.fromEntries(Object.entries(source ?? {}).filter(([, value]) => value !== undefined && value !== "")),
    ),
  );
}

// Members of a request.
export function requestFields(params) {
  const fields = {};
  for (const { name } of kParameters) if (params[name] !== undefined) fields[name] = params[name];
  if (params.stop?.length > 0) fields.stop = params.stop;
  if (params.thinking === "on") fields.enable_thinking = true;
  if (params.thinking === "off") fields.enable_thinking = false;
  return fields;
}

// Controls for `params`, which they change; `changed` is called after each change. An empty field leaves a value to
// those below, which its placeholder shows: `below`, or else what `model` has.
export function parameterForm(params, changed, { below = {}, model } = {}) {
  const number = (parameter) => {
    const { name, min, max, step } = parameter;
    const input = h("input", {
      type: "number",
      min,
      max,
      step,
      inputmode: "decimal",
      value: params[name] ?? "",
      placeholder: String(below[name] ?? defaultOf(parameter, model)),
      oninput: () => {
        const value = input.valueAsNumber;
        if (input.value === "") delete params[name];
        else if (value >= min && value <= max) params[name] = value;
        input.setAttribute("aria-invalid", String(input.value !== "" && !(value >= min && value <= max)));
        changed();
      },
    });
    return field(parameter.label, input, parameter.help);
  };
  const stop = h("textarea", {
    rows: 2,
    value: (params.stop ?? []).join("\n"),
    placeholder: (below.stop ?? []).join("\n"),
    oninput: () => {
      const lines = stop.value.split("\n").filter(Boolean).slice(0, 16);
      if (lines.length > 0) params.stop = lines;
      else delete params.stop;
      changed();
    },
  });
  const thinking = h(
    "select",
    {
      onchange: () => {
        if (thinking.value) params.thinking = thinking.value;
        else delete params.thinking;
        changed();
      },
    },
    [
      ["", "By default"],
      ["on", "Think first"],
      ["off", "Answer at once"],
    ].map(([value, label]) => h("option", { value }, label)),
  );
  thinking.value = params.thinking ?? "";
  return h(
    "div",
    { class: "parameters" },
    kParameters.map(number),
    field("Thinking", thinking),
    field("Stop at", stop, "A text a line; the answer ends before it."),
  );
}
