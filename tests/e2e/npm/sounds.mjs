// What users of OpenAI's JavaScript client do with sounds, against the server at BASE, whose model hears them. SOUND: a
// WAV file in base64. Run by sounds_test.py. The model is tiny and its weights are random: what it says of a sound only has
// to be the same however the sound came.
import assert from "node:assert/strict";
import { describe, test } from "node:test";

import OpenAI from "openai";

const { BASE: base, SOUND: sound, OTHER: other, MODEL: model } = process.env;
const tokens = Number(process.env.AUDIO_TOKENS);
const openai = new OpenAI({ baseURL: `${base}/v1`, apiKey: "sk-test", maxRetries: 0 });
const question = "What is this?";
const said = (data, format = "wav") => ({ type: "input_audio", input_audio: { data, format } });
const create = (messages, more = {}) =>
  openai.chat.completions.create({ model, max_tokens: 8, temperature: 0, messages, ...more });
const chat = (parts, more) => create([{ role: "user", content: [...parts, { type: "text", text: question }] }], more);
const textOf = (answer) => answer.choices[0].message.content;

async function metric(name) {
  const text = await (await fetch(`${base}/metrics`)).text();
  return Number(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, "m").exec(text)[1]);
}

describe("sounds", () => {
  test("chat, whole and streamed", async () => {
    const answer = await chat([said(sound)]);
    assert.equal(answer.usage.prompt_tokens_details.audio_tokens, tokens);
    let text = "", usage;
    for await (const chunk of await chat([said(sound)], { stream: true, stream_options: { include_usage: true } })) {
      text += chunk.choices[0]?.delta.content ?? "";
      usage = chunk.usage ?? usage;
    }
    assert.equal(text, textOf(answer));
    assert.equal(usage.prompt_tokens_details.audio_tokens, tokens);
  });

  test("several sounds in a message, and several answers", async () => {
    const answer = await chat([said(sound), said(other), said(sound)], { n: 2 });
    assert.equal(answer.usage.prompt_tokens_details.audio_tokens, 3 * tokens);
    assert.equal(answer.choices[1].message.content, textOf(answer));
  });

  test("a second turn about the sound, text only, encodes nothing", async () => {
    const first = [{ role: "user", content: [said(sound), { type: "text", text: question }] }];
    const answer = await create(first);
    const before = await metric("weir_audio_encoded_total");
    const second = await create([...first, { role: "assistant", content: textOf(answer) }, { role: "user", content: "And now?" }]);
    assert.equal(await metric("weir_audio_encoded_total"), before);
    assert.equal(second.usage.prompt_tokens_details.audio_tokens, tokens);
    assert.ok(second.usage.prompt_tokens_details.cached_tokens >= 32);
  });

  test("responses, and the next one", async () => {
    const answer = await openai.responses.create({
      model, max_output_tokens: 8, temperature: 0, input: [{ role: "user", content: [
        said(sound), { type: "input_text", text: question }] }] });
    assert.equal(answer.output_text, textOf(await chat([said(sound)])));
    assert.equal(answer.usage.input_tokens_details.audio_tokens, tokens);
    const next = await openai.responses.create({
      model, max_output_tokens: 8, temperature: 0, previous_response_id: answer.id, input: "And now?" });
    assert.equal(next.usage.input_tokens_details.audio_tokens, tokens);
  });

  test("what is wrong is said", async () => {
    await assert.rejects(chat([said("AAAA")]),
      (e) => e instanceof OpenAI.BadRequestError && /messages\[0\]\.content\[0\]\.input_audio\.data/.test(e.message));
    await assert.rejects(chat([said(sound, "m4a")]), (e) => e instanceof OpenAI.BadRequestError && /wav, flac, mp3/.test(e.message));
  });
});
