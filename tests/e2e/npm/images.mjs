// What users of the JavaScript clients do with images, against the server at BASE, whose model sees them. IMAGE: a file's
// bytes in base64, of TYPE. Run by images_test.py. The model is tiny and its weights are random: what it says of an image
// only has to be the same however the image came.
import assert from "node:assert/strict";
import { describe, test } from "node:test";

import Anthropic from "@anthropic-ai/sdk";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { HumanMessage } from "@langchain/core/messages";
import { ChatOpenAI } from "@langchain/openai";
import { generateText } from "ai";
import { Ollama } from "ollama";
import OpenAI from "openai";

const { BASE: base, IMAGE: image, TYPE: type, MODEL: model } = process.env;
const tokens = Number(process.env.IMAGE_TOKENS);
const baseURL = `${base}/v1`, apiKey = "sk-test", url = `data:${type};base64,${image}`;
const question = "What is this?";
const max = 8;
const openai = new OpenAI({ baseURL, apiKey, maxRetries: 0 });

const chat = (part, more = {}) => openai.chat.completions.create({
  model, max_tokens: max, temperature: 0,
  messages: [{ role: "user", content: [part, { type: "text", text: question }] }], ...more });
const expected = (await chat({ type: "image_url", image_url: { url } })).choices[0].message.content;

describe("images", () => {
  test("openai: chat, whole and streamed", async () => {
    const answer = await chat({ type: "image_url", image_url: { url, detail: "high" } });
    assert.equal(answer.choices[0].message.content, expected);
    assert.equal(answer.usage.prompt_tokens_details.image_tokens, tokens);
    let text = "";
    for await (const chunk of await chat({ type: "image_url", image_url: { url } }, { stream: true }))
      text += chunk.choices[0]?.delta.content ?? "";
    assert.equal(text, expected);
  });

  test("openai: a file that is an image", async () => {
    const answer = await chat({ type: "file", file: { filename: "a.png", file_data: url } });
    assert.equal(answer.choices[0].message.content, expected);
  });

  test("openai: responses", async () => {
    const answer = await openai.responses.create({
      model, max_output_tokens: max, temperature: 0, input: [{ role: "user", content: [
        { type: "input_image", image_url: url, detail: "auto" }, { type: "input_text", text: question }] }] });
    assert.equal(answer.output_text, expected);
    assert.equal(answer.usage.input_tokens_details.image_tokens, tokens);
    const next = await openai.responses.create({
      model, max_output_tokens: max, temperature: 0, previous_response_id: answer.id, input: "And now?" });
    assert.equal(next.usage.input_tokens_details.image_tokens, tokens);
  });

  test("openai: what is wrong is said", async () => {
    await assert.rejects(chat({ type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } }),
      (e) => e instanceof OpenAI.BadRequestError && /messages\[0\]\.content\[0\]\.image_url\.url/.test(e.message));
    await assert.rejects(chat({ type: "image_url", image_url: { url: "https://a.example/b.png" } }),
      (e) => e instanceof OpenAI.BadRequestError && /--allow-remote-media/.test(e.message));
  });

  test("ai sdk", async () => {
    const provider = createOpenAICompatible({ name: "weir", baseURL, apiKey });
    const { text } = await generateText({
      model: provider(model), maxOutputTokens: max, temperature: 0, messages: [{ role: "user", content: [
        { type: "file", data: Buffer.from(image, "base64"), mediaType: type }, { type: "text", text: question }] }] });
    assert.equal(text, expected);
  });

  test("langchain", async () => {
    const llm = new ChatOpenAI({ model, apiKey, configuration: { baseURL }, maxTokens: max, temperature: 0 });
    const answer = await llm.invoke([new HumanMessage({ content: [
      { type: "image_url", image_url: { url } }, { type: "text", text: question }] })]);
    assert.equal(answer.content, expected);
  });

  test("anthropic: messages, and their count", async () => {
    const client = new Anthropic({ baseURL: base, apiKey, maxRetries: 0 });
    const messages = [{ role: "user", content: [
      { type: "image", source: { type: "base64", media_type: type, data: image } }, { type: "text", text: question }] }];
    const answer = await client.messages.create({ model, max_tokens: max, temperature: 0, messages });
    assert.equal(answer.content[0].text, expected);
    const used = answer.usage.input_tokens + answer.usage.cache_read_input_tokens;
    assert.equal((await client.messages.countTokens({ model, messages })).input_tokens, used);
  });

  test("ollama: chat and generate", async () => {
    const client = new Ollama({ host: base });
    const options = { temperature: 0, num_predict: max };
    const answer = await client.chat({ model, options, messages: [{ role: "user", content: question, images: [image] }] });
    assert.equal(answer.message.content, expected);
    const generated = await client.generate({ model, options, prompt: question, images: [image] });
    assert.equal(generated.response, expected);
    assert.ok((await client.show({ model })).capabilities.includes("vision"));
  });
});
