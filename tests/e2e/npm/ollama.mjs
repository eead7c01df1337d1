// What users of Ollama's own JavaScript client do, against the server at BASE, beside whose hub MODEL_TO_PULL lies.
// Run by ollama_test.py. The model is tiny: only forms are checked, and what is forced.
import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { Ollama } from "ollama";

const model = process.env.MODEL, toPull = process.env.MODEL_TO_PULL;
const client = new Ollama({ host: process.env.BASE });
const hello = [{ role: "user", content: "Hello, who are you?" }];
const short = { temperature: 0, num_predict: 8 };
const weather = { type: "function", function: { name: "get_weather", description: "The weather in a city",
  parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] } } };
const collect = async (stream) => {
  const parts = [];
  for await (const part of stream) parts.push(part);
  return parts;
};
const rejects = (promise, status, text) =>
  assert.rejects(promise, (e) => e.name === "ResponseError" && e.status_code === status && text.test(e.error));

describe("ollama", () => {
  test("list, show, ps, version", async () => {
    const { models } = await client.list();
    assert.deepEqual(models.map((m) => m.name), [`${model}:latest`]);
    assert.match(models[0].digest, /^[0-9a-f]{64}$/);
    assert.ok(!Number.isNaN(Date.parse(models[0].modified_at)));
    const shown = await client.show({ model });
    assert.ok(shown.capabilities.includes("tools"));
    const family = shown.model_info["general.architecture"];
    assert.equal(shown.model_info[`${family}.context_length`], 2048);
    const { models: loaded } = await client.ps();
    assert.equal(loaded[0].model, `${model}:latest`);
    assert.ok(Date.parse(loaded[0].expires_at) > Date.now());
    assert.match((await client.version()).version, /^\d+\.\d+\.\d+$/);
    await rejects(client.show({ model: "no-such" }), 404, /^model 'no-such' not found$/);
  });

  test("chat, whole and streamed, say the same", async () => {
    const whole = await client.chat({ model, messages: hello, options: short });
    assert.equal(whole.done_reason, "length");
    assert.equal(whole.eval_count, 8);
    assert.ok(whole.total_duration > 0 && whole.prompt_eval_count > 0);
    const parts = await collect(await client.chat({ model: `${model}:latest`, messages: hello, options: short, stream: true }));
    assert.equal(parts.map((p) => p.message.content).join(""), whole.message.content);
    assert.deepEqual(parts.map((p) => p.done), [...parts.slice(1).map(() => false), true]);
  });

  test("chat with a schema", async () => {
    const format = { type: "object", properties: { age: { type: "integer", minimum: 0, maximum: 150 }, mood: { enum: ["glad", "sad"] } },
                     required: ["age", "mood"], additionalProperties: false };
    const answer = await client.chat({ model, messages: hello, format, options: { temperature: 0, num_predict: 100 } });
    const value = JSON.parse(answer.message.content);
    assert.ok(Number.isInteger(value.age) && ["glad", "sad"].includes(value.mood));
    const object = await client.chat({ model, messages: hello, format: "json", options: { temperature: 0, num_predict: 300, stop: [] } });
    assert.ok(object.done_reason === "length" || typeof JSON.parse(object.message.content) === "object");
  });

  test("chat with tools, and their results", async () => {
    const messages = [{ role: "user", content: "Call get_weather for Oslo." }];
    const parts = await collect(await client.chat({ model, messages, tools: [weather], options: { temperature: 0, num_predict: 64 }, stream: true }));
    for (const call of parts.flatMap((p) => p.message.tool_calls ?? [])) {
      assert.equal(call.function.name, "get_weather");
      assert.equal(typeof call.function.arguments, "object");
    }
    const after = await client.chat({ model, tools: [weather], options: short, messages: [...messages,
      { role: "assistant", content: "", tool_calls: [{ function: { name: "get_weather", arguments: { city: "Oslo" } } }] },
      { role: "tool", tool_name: "get_weather", content: "7 degrees" }] });
    assert.equal(after.message.role, "assistant");
  });

  test("generate, with log-probabilities; load", async () => {
    const answer = await client.generate({ model, prompt: "Once upon a time", raw: true, logprobs: true, top_logprobs: 2, options: short });
    assert.equal(answer.logprobs.length, 8);
    assert.ok(answer.logprobs.every((t) => t.top_logprobs.length === 2));
    assert.equal(answer.logprobs.map((t) => t.token).join(""), answer.response);
    const loaded = await client.generate({ model, prompt: "", keep_alive: "10m" });
    assert.equal(loaded.done_reason, "load");
  });

  test("embeddings", async () => {
    const { embeddings } = await client.embed({ model, input: ["The sea is salty.", "Stories are told."] });
    assert.deepEqual(embeddings.map((v) => v.length), [256, 256]);
    for (const vector of embeddings) assert.ok(Math.abs(Math.hypot(...vector) - 1) < 1e-4);
    assert.equal((await client.embeddings({ model, prompt: "The sea is salty." })).embedding.length, 256);
  });

  test("errors", async () => {
    await rejects(client.chat({ model: "no-such", messages: hello }), 404, /^model 'no-such' not found$/);
    await rejects(client.chat({ model, messages: hello, think: true }), 400, /does not support thinking/);
    await rejects(client.chat({ model, messages: [{ ...hello[0], images: ["aGk="] }] }), 400, /images/);
    await rejects(client.create({ model: "mine", from: model }), 501, /does not make, copy or publish models/);
    await rejects(client.copy({ source: model, destination: "mine" }), 501, /does not/);
    await rejects(client.pull({ model: "llama3.2" }), 400, /ORG\/NAME/);
    await rejects(client.delete({ model }), 400, /is served at present/);
    await rejects(client.delete({ model: "org/no-such" }), 404, /not found/);
  });

  test("abort", async () => {
    // Megabytes, more than buffers hold: it cannot all be here before it is told to end. The schema keeps the answer
    // from ending earlier.
    const stream = await client.generate({ model, prompt: "Once", raw: true, stream: true, logprobs: true, top_logprobs: 20,
                                           format: { type: "string", minLength: 8000 }, options: { num_predict: 1500 } });
    await assert.rejects(async () => {
      for await (const part of stream) if (part) stream.abort();
    }, { name: "AbortError" });
  });

  test("pull, and delete", async () => {
    const parts = await collect(await client.pull({ model: toPull, stream: true }));
    assert.equal(parts[0].status, "pulling manifest");
    const last = parts.filter((p) => p.total).at(-1);
    assert.equal(last.completed, last.total);
    assert.equal(parts.at(-1).status, "success");
    assert.equal((await client.pull({ model: `hf.co/${toPull}` })).status, "success");
    await client.delete({ model: toPull });
    await rejects(client.delete({ model: toPull }), 404, /not found/);
    await assert.rejects(collect(await client.pull({ model: "org/missing", stream: true })), /no such repository|private|not/);
  });
});
