// What users of the JavaScript clients do, against the server at BASE (its root, no /v1).
// Run by javascript_clients_test.py. The model is tiny: only forms are checked, and what is forced.
import assert from "node:assert/strict";
import { describe, test } from "node:test";

import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { zodFunction, zodResponseFormat, zodResponsesFunction, zodTextFormat } from "openai/helpers/zod";
import { ChatOpenAI, OpenAI as CompletionLlm, OpenAIEmbeddings } from "@langchain/openai";
import { tool as langchainTool } from "@langchain/core/tools";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { embedMany, generateObject, generateText, streamText, tool as aiTool } from "ai";
import { z } from "zod";

const base = process.env.BASE, model = process.env.MODEL, apiKey = "sk-test";
const baseURL = `${base}/v1`;
const person = z.object({ name: z.string().max(12), age: z.number().int().min(0).max(150), mood: z.enum(["glad", "sad"]) });
const weather = z.object({ city: z.string().max(12), unit: z.enum(["C", "F"]) });
const hello = [{ role: "user", content: "Hello, who are you?" }];
const collect = async (stream) => {
  const parts = [];
  for await (const part of stream) parts.push(part);
  return parts;
};

describe("openai", () => {
  const client = new OpenAI({ baseURL, apiKey, maxRetries: 0 });

  test("models", async () => {
    const list = await collect(await client.models.list());
    assert.ok(list.some((m) => m.id === model));
    assert.equal((await client.models.retrieve(model)).id, model);
    await assert.rejects(client.models.retrieve("no/such"), (e) => e instanceof OpenAI.NotFoundError && e.code === "model_not_found");
  });

  test("chat, whole", async () => {
    const answer = await client.chat.completions.create({ model, messages: hello, max_completion_tokens: 8, logprobs: true, top_logprobs: 2 });
    assert.equal(answer.choices[0].message.role, "assistant");
    assert.equal(answer.usage.total_tokens, answer.usage.prompt_tokens + answer.usage.completion_tokens);
    assert.ok(answer.choices[0].logprobs.content.every((t) => t.top_logprobs.length === 2));
  });

  test("chat, streamed, two choices and usage", async () => {
    const chunks = await collect(await client.chat.completions.create({
      model, messages: hello, max_tokens: 8, n: 2, stream: true, stream_options: { include_usage: true } }));
    for (const index of [0, 1]) {
      const own = chunks.flatMap((c) => c.choices).filter((c) => c.index === index);
      assert.equal(own[0].delta.role, "assistant");
      assert.equal(own.filter((c) => c.finish_reason).length, 1);
    }
    assert.ok(chunks.at(-1).usage.completion_tokens > 0);
    assert.equal(new Set(chunks.map((c) => c.id)).size, 1);
  });

  test("stream helper collects the whole message", async () => {
    const runner = client.chat.completions.stream({ model, messages: hello, max_tokens: 8, stream_options: { include_usage: true } });
    let text = "";
    runner.on("content", (delta) => (text += delta));
    const final = await runner.finalChatCompletion();
    assert.equal(final.choices[0].message.content, text);
  });

  test("parse with a zod schema", async () => {
    const answer = await client.chat.completions.parse({
      model, messages: hello, max_tokens: 400, response_format: zodResponseFormat(person, "person") });
    person.parse(answer.choices[0].message.parsed);
  });

  test("a named call, whole and streamed, parsed by the helper", async () => {
    const tools = [zodFunction({ name: "get_weather", parameters: weather })];
    const tool_choice = { type: "function", function: { name: "get_weather" } };
    const whole = await client.chat.completions.parse({ model, messages: hello, max_tokens: 400, tools, tool_choice });
    weather.parse(whole.choices[0].message.tool_calls[0].function.parsed_arguments);
    const runner = client.chat.completions.stream({ model, messages: hello, max_tokens: 400, tools, tool_choice });
    const message = (await runner.finalChatCompletion()).choices[0].message;
    weather.parse(message.tool_calls[0].function.parsed_arguments);
    assert.ok(message.tool_calls[0].id);
  });

  test("a round of tools: the answer to a call goes back", async () => {
    const messages = [...hello,
      { role: "assistant", content: null, tool_calls: [{ id: "call_1", type: "function", function: { name: "get_weather", arguments: '{"city":"Rome","unit":"C"}' } }] },
      { role: "tool", tool_call_id: "call_1", content: "21 degrees" }];
    const answer = await client.chat.completions.create({ model, messages, max_tokens: 8, tools: [zodFunction({ name: "get_weather", parameters: weather })] });
    assert.ok(["stop", "length", "tool_calls"].includes(answer.choices[0].finish_reason));
  });

  test("a conversation finds its beginning in the cache", async () => {
    const long = "Tell me about the sea, the ships on it, and the people who sail them. ".repeat(8);
    const first = await client.chat.completions.create({ model, messages: [{ role: "user", content: long }], max_tokens: 8 });
    const messages = [{ role: "user", content: long }, first.choices[0].message, { role: "user", content: "Go on." }];
    const second = await client.chat.completions.create({ model, messages, max_tokens: 8 });
    const cached = second.usage.prompt_tokens_details.cached_tokens;
    assert.ok(cached >= first.usage.prompt_tokens - 64 && cached <= second.usage.prompt_tokens, `cached ${cached}`);
    const again = await client.chat.completions.create({ model, messages, max_tokens: 8 });
    assert.ok(again.usage.prompt_tokens_details.cached_tokens >= cached);
  });

  test("completions, whole and streamed", async () => {
    const whole = await client.completions.create({ model, prompt: ["Once upon", "The end"], max_tokens: 5, echo: true });
    assert.ok(whole.choices[0].text.startsWith("Once upon"));
    assert.equal(whole.choices.length, 2);
    const chunks = await collect(await client.completions.create({ model, prompt: "Once", max_tokens: 5, stream: true }));
    assert.ok(chunks.at(-1).choices[0].finish_reason);
  });

  test("embeddings, decoded by the client", async () => {
    const [a, b] = (await client.embeddings.create({ model, input: ["sea", "sea"] })).data.map((d) => d.embedding);
    assert.ok(a.length > 8 && Math.abs(a.reduce((s, x) => s + x * x, 0) - 1) < 1e-3);
    assert.deepEqual(a, b);
    const plain = (await client.embeddings.create({ model, input: "sea", encoding_format: "float" })).data[0].embedding;
    assert.ok(plain.every((x, i) => Math.abs(x - a[i]) < 1e-6));
  });

  test("errors have their class, code and parameter", async () => {
    await assert.rejects(client.chat.completions.create({ model, messages: [{ role: "user", content: "x ".repeat(400000) }] }),
      (e) => e instanceof OpenAI.BadRequestError && e.code === "context_length_exceeded");
    await assert.rejects(client.chat.completions.create({ model, messages: hello, temperature: 9 }),
      (e) => e instanceof OpenAI.BadRequestError && e.param === "temperature");
    await assert.rejects(client.chat.completions.create({ model: "other", messages: hello }), OpenAI.NotFoundError);
  });

  test("who leaves a stream frees what it held", async () => {
    const stream = await client.chat.completions.create({ model, messages: hello, max_tokens: 4000, ignore_eos: true, stream: true });
    let seen = 0;
    for await (const _ of stream) if (++seen === 3) break;
    for (let tries = 0; tries < 100; ++tries) {
      const running = /^weir_requests_running (\S+)$/m.exec(await (await fetch(`${base}/metrics`)).text())[1];
      if (Number(running) === 0) return;
      await new Promise((done) => setTimeout(done, 20));
    }
    assert.fail("the sequence still runs two seconds later");
  });
});

describe("openai, responses", () => {
  const client = new OpenAI({ baseURL, apiKey, maxRetries: 0 });

  test("whole, kept, continued, deleted", async () => {
    const first = await client.responses.create({ model, input: "Tell me about the sea.", max_output_tokens: 8 });
    assert.equal(typeof first.output_text, "string");
    assert.equal((await client.responses.retrieve(first.id)).id, first.id);
    const second = await client.responses.create({ model, input: "Go on.", previous_response_id: first.id, max_output_tokens: 8 });
    assert.ok(second.usage.input_tokens > first.usage.input_tokens + first.usage.output_tokens);
    await client.responses.delete(first.id);
    await assert.rejects(client.responses.retrieve(first.id), OpenAI.NotFoundError);
  });

  test("streamed: the helper puts together what the last event says", async () => {
    const stream = client.responses.stream({ model, input: "Hello", max_output_tokens: 8 });
    let text = "";
    stream.on("response.output_text.delta", (event) => (text += event.delta));
    const final = await stream.finalResponse();
    assert.equal(final.output_text, text);
  });

  test("parse with a zod schema, and a named call", async () => {
    const parsed = await client.responses.parse({ model, input: "Somebody", max_output_tokens: 400, text: { format: zodTextFormat(person, "person") } });
    person.parse(parsed.output_parsed);
    const called = await client.responses.parse({ model, input: "Rome?", max_output_tokens: 400,
      tools: [zodResponsesFunction({ name: "get_weather", parameters: weather })], tool_choice: { type: "function", name: "get_weather" } });
    const call = called.output.find((item) => item.type === "function_call");
    weather.parse(call.parsed_arguments);
    assert.ok(call.call_id);
  });
});

describe("anthropic", () => {
  const client = new Anthropic({ baseURL: base, apiKey, maxRetries: 0 });
  const tools = [{ name: "get_weather", description: "Weather", input_schema: z.toJSONSchema(weather) }];

  test("messages, whole and streamed", async () => {
    const whole = await client.messages.create({ model, max_tokens: 8, messages: hello, system: "Be brief." });
    assert.equal(whole.role, "assistant");
    assert.ok(["end_turn", "max_tokens"].includes(whole.stop_reason));
    const stream = client.messages.stream({ model, max_tokens: 8, messages: hello });
    let text = "";
    stream.on("text", (delta) => (text += delta));
    const final = await stream.finalMessage();
    assert.equal(final.content.filter((b) => b.type === "text").map((b) => b.text).join(""), text);
    assert.ok(final.usage.output_tokens > 0);
  });

  test("a tool called by name, and its result sent back", async () => {
    const ask = { model, max_tokens: 400, messages: hello, tools, tool_choice: { type: "tool", name: "get_weather" } };
    const whole = await client.messages.create(ask);
    assert.equal(whole.stop_reason, "tool_use");
    const call = whole.content.find((b) => b.type === "tool_use");
    weather.parse(call.input);
    const streamed = await client.messages.stream(ask).finalMessage();
    weather.parse(streamed.content.find((b) => b.type === "tool_use").input);
    await client.messages.create({ model, max_tokens: 8, tools, messages: [...hello, { role: "assistant", content: whole.content },
      { role: "user", content: [{ type: "tool_result", tool_use_id: call.id, content: "21 degrees" }] }] });
  });

  test("counted tokens are those of the answer's usage", async () => {
    const counted = await client.messages.countTokens({ model, messages: hello });
    const answer = await client.messages.create({ model, max_tokens: 1, messages: hello });
    const { input_tokens, cache_read_input_tokens } = answer.usage;
    assert.equal(counted.input_tokens, input_tokens + cache_read_input_tokens);
  });

  test("errors have their class", async () => {
    await assert.rejects(client.messages.create({ model: "other", max_tokens: 1, messages: hello }), Anthropic.NotFoundError);
    await assert.rejects(client.messages.create({ model, max_tokens: 1, messages: [{ role: "user", content: "x ".repeat(400000) }] }),
      (e) => e instanceof Anthropic.BadRequestError && /prompt is too long/.test(e.message));
  });
});

describe("langchain", () => {
  const options = { model, apiKey, maxRetries: 0, configuration: { baseURL }, maxTokens: 400, temperature: 0.5 };
  const chat = new ChatOpenAI(options);
  const forecast = langchainTool(async () => "sunny", { name: "get_weather", description: "Weather of a city", schema: weather });

  test("invoke, stream, batch", async () => {
    const short = new ChatOpenAI({ ...options, maxTokens: 8 });
    assert.equal(typeof (await short.invoke("Hello")).content, "string");
    const chunks = await collect(await short.stream("Hello"));
    const sum = chunks.reduce((a, b) => a.concat(b));
    assert.ok(sum.usage_metadata.output_tokens > 0 && sum.usage_metadata.output_tokens <= 8);
    assert.equal((await short.batch(["a", "b", "c"])).length, 3);
  });

  test("structured output, by schema and by call", async () => {
    for (const method of ["jsonSchema", "functionCalling"])
      person.parse(await chat.withStructuredOutput(person, { name: "person", method }).invoke("Describe somebody."));
  });

  test("tools", async () => {
    const bound = chat.bindTools([forecast], { tool_choice: "get_weather" });
    const called = await bound.invoke("Rome?");
    weather.parse(called.tool_calls[0].args);
    const streamed = (await collect(await bound.stream("Rome?"))).reduce((a, b) => a.concat(b));
    weather.parse(streamed.tool_calls[0].args);
    const result = await forecast.invoke(called.tool_calls[0]);
    await chat.invoke([{ role: "user", content: "Rome?" }, called, result]);
  });

  test("completions and embeddings", async () => {
    assert.equal(typeof (await new CompletionLlm({ ...options, maxTokens: 6 }).invoke("Once")), "string");
    const embeddings = new OpenAIEmbeddings({ model, apiKey, configuration: { baseURL } });
    const vectors = await embeddings.embedDocuments(["sea", "land"]);
    assert.equal(vectors[0].length, vectors[1].length);
  });
});

describe("ai sdk", () => {
  const provider = createOpenAICompatible({ name: "weir", baseURL, apiKey, includeUsage: true, supportsStructuredOutputs: true });
  const chat = provider(model);

  test("generateText and streamText", async () => {
    const whole = await generateText({ model: chat, prompt: "Hello", maxOutputTokens: 8, maxRetries: 0 });
    assert.ok(whole.usage.outputTokens > 0);
    const streamed = streamText({ model: chat, prompt: "Hello", maxOutputTokens: 8, maxRetries: 0 });
    const text = (await collect(streamed.textStream)).join("");
    assert.equal(await streamed.text, text);
    assert.ok((await streamed.usage).outputTokens > 0);
  });

  test("generateObject", async () => {
    person.parse((await generateObject({ model: chat, schema: person, prompt: "Somebody", maxOutputTokens: 400, maxRetries: 0 })).object);
  });

  test("tools, whole and streamed", async () => {
    const tools = { get_weather: aiTool({ description: "Weather", inputSchema: weather }) };
    const ask = { model: chat, prompt: "Rome?", tools, toolChoice: "required", maxOutputTokens: 400, maxRetries: 0,
      providerOptions: { weir: { parallel_tool_calls: false } } };  // The model would call until its limit.
    weather.parse((await generateText(ask)).toolCalls[0].input);
    weather.parse((await streamText(ask).toolCalls)[0].input);
  });

  test("embeddings", async () => {
    const { embeddings } = await embedMany({ model: provider.embeddingModel(model), values: ["sea", "land"], maxRetries: 0 });
    assert.equal(embeddings.length, 2);
  });
});

describe("anthropic", () => {
  const client = new Anthropic({ baseURL: base, apiKey, maxRetries: 0 });
  const tools = [{ name: "get_weather", description: "Weather", input_schema: z.toJSONSchema(weather) }];
  const ask = { model, max_tokens: 400, messages: hello };

  test("messages, whole", async () => {
    const message = await client.messages.create({ ...ask, max_tokens: 8, system: "Be brief." });
    assert.equal(message.content[0].type, "text");
    assert.equal(message.stop_reason, "max_tokens");
    assert.ok(message.usage.output_tokens === 8 && message._request_id.startsWith("req_"));
  });

  test("messages, streamed", async () => {
    const stream = client.messages.stream({ ...ask, max_tokens: 8 });
    let text = "";
    stream.on("text", (delta) => (text += delta));
    const message = await stream.finalMessage();
    assert.equal(message.content.map((b) => b.text).join(""), text);
    assert.equal(message.usage.output_tokens, 8);
    const events = await collect(await client.messages.create({ ...ask, max_tokens: 8, stream: true }));
    assert.deepEqual([events[0].type, events.at(-1).type], ["message_start", "message_stop"]);
  });

  test("tools, whole, streamed and answered", async () => {
    const forced = { ...ask, tools, tool_choice: { type: "tool", name: "get_weather", disable_parallel_tool_use: true } };
    for (const message of [await client.messages.create(forced), await client.messages.stream(forced).finalMessage()]) {
      assert.equal(message.stop_reason, "tool_use");
      const call = message.content.find((b) => b.type === "tool_use");
      weather.parse(call.input);
      const result = { role: "user", content: [{ type: "tool_result", tool_use_id: call.id, content: [{ type: "text", text: "Sun" }] }] };
      await client.messages.create({ ...ask, tools, max_tokens: 8, messages: [...hello, { role: "assistant", content: message.content }, result] });
    }
  });

  test("count and errors", async () => {
    const { input_tokens } = await client.messages.countTokens({ model, messages: hello, tools });
    assert.ok(input_tokens > 0);
    await assert.rejects(client.messages.create({ ...ask, model: "no" }), (e) => e instanceof Anthropic.NotFoundError && e.error.error.type === "not_found_error");
    const long = [{ role: "user", content: "word ".repeat(200_000) }];
    await assert.rejects(client.messages.create({ ...ask, messages: long }), (e) => e instanceof Anthropic.BadRequestError && /prompt is too long/.test(e.message));
  });
});
