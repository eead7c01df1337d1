// The tools that the page itself offers a model, where they are switched on: memory, a clock, a calculator. They reach
// nothing but this browser's own facts.

import * as store from "./store.js";
import { remember, recall } from "./memory.js";

const text = (description) => ({ type: "string", description });

const kTools = [
  {
    name: "remember",
    description: "Keeps a fact for later conversations.",
    properties: { text: text("The fact.") },
    run: async ({ text: fact }, { persona, turn }) => `Kept as ${(await remember(String(fact), persona, turn)).id}.`,
  },
  {
    name: "recall",
    description: "Looks up kept facts.",
    properties: { query: text("Words to look for.") },
    run: async ({ query }, { persona }) =>
      (await recall(String(query), persona)).map((fact) => `${fact.id}: ${fact.text}`).join("\n") ||
      "Nothing is kept.",
  },
  {
    name: "forget",
    description: "Removes a kept fact.",
    properties: { id: text("As recall says it.") },
    run: async ({ id }) => {
      await store.remove("facts", String(id));
      return "Forgotten.";
    },
  },
  {
    name: "clock",
    description: "Says the date and the time.",
    properties: {},
    run: async () => new Date().toString(),
  },
  {
    name: "calculate",
    description: "Computes + - * / ^ % and brackets.",
    properties: { expression: text("As in 2 * (3 + 4).") },
    run: async ({ expression }) => String(calculate(String(expression))),
  },
];

export function toolList() {
  return kTools.map(({ name, description, properties }) => ({
    type: "function",
    function: {
      name,
      description,
      parameters: { type: "object", properties, required: Object.keys(properties) },
    },
  }));
}

export async function runTool(call, context) {
  const tool = kTools.find((each) => each.name === call.name);
  if (!tool) return `There is no tool ${call.name}.`;
  try {
    return await tool.run(JSON.parse(call.arguments || "{}"), context);
  } catch (error) {
    return `Failed: ${error.message}`;
  }
}

// Recursive descent over a bounded text: sums of products of powers.
export function calculate(expression) {
  const tokens = expression.slice(0, 200).match(/\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|[-+*/^%()]|\S/g) ?? [];
  let at = 0;
  const take = (...marks) => (marks.includes(tokens[at]) ? tokens[at++] : null);
  const atom = () => {
    if (take("(")) {
      const value = sum();
      if (!take(")")) throw new Error(`expected ")", found ${tokens[at] ?? "the end"}`);
      return value;
    }
    const token = tokens[at++];
    if (!/^\d/.test(token ?? "")) throw new Error(`expected a number, found ${token ?? "the end"}`);
    return Number(token);
  };
  const power = () => {
    const base = atom();
    return take("^") ? base ** unary() : base;
  };
  const unary = () => (take("-") ? -unary() : power());
  const product = () => {
    let value = unary();
    for (let mark; (mark = take("*", "/", "%"));) {
      const other = unary();
      value = mark === "*" ? value * other : mark === "/" ? value / other : value % other;
    }
    return value;
  };
  const sum = () => {
    let value = product();
    for (let mark; (mark = take("+", "-"));) value += mark === "+" ? product() : -product();
    return value;
  };
  const value = sum();
  if (at < tokens.length) throw new Error(`expected an operator, found ${tokens[at]}`);
  return value;
}
