// What users of OpenAI's JavaScript client do with recordings, against the server at BASE. SOUND: a WAV file, in which the
// model hears TEXT. Run by transcriptions_test.py.
import assert from "node:assert/strict";
import fs from "node:fs";
import { describe, test } from "node:test";

import OpenAI from "openai";

const { BASE: base, SOUND: sound, TEXT: text } = process.env;
const openai = new OpenAI({ baseURL: `${base}/v1`, apiKey: "sk-test", maxRetries: 0 });
const ask = (more = {}) =>
  openai.audio.transcriptions.create({ file: fs.createReadStream(sound), model: "whisper-1", language: "en", ...more });

describe("recordings", () => {
  test("a file", async () => {
    const answer = await ask();
    assert.equal(answer.text, text);
    assert.equal(answer.usage.type, "tokens");
  });

  test("in events", async () => {
    let deltas = "", done;
    for await (const event of await ask({ stream: true })) {
      if (event.type === "transcript.text.delta") deltas += event.delta;
      else if (event.type === "transcript.text.done") done = event;
    }
    assert.equal(deltas, text);
    assert.equal(done.text, text);
    assert.ok(done.usage.input_token_details.audio_tokens > 0);
  });

  test("subtitles, and segments", async () => {
    assert.match(await ask({ response_format: "srt" }), /^1\n00:00:0\d,\d{3} --> /);
    const verbose = await ask({ response_format: "verbose_json", timestamp_granularities: ["segment"] });
    assert.equal(verbose.text, text);
    assert.equal(verbose.language, "english");
    assert.ok(verbose.segments.length > 0);
  });

  test("times of words", async () => {
    const { words } = await ask({ response_format: "verbose_json", timestamp_granularities: ["word"] });
    assert.ok(words.length > 0 && words.every(({ word, start, end }) => word && 0 <= start && start <= end));
  });

  test("a translation", async () => {
    const answer = await openai.audio.translations.create({ file: fs.createReadStream(sound), model: "whisper-1" });
    assert.equal(typeof answer.text, "string");
  });

  test("errors are OpenAI's", async () => {
    await assert.rejects(ask({ language: "klingon" }), error => error.status === 400 && error.param === "language");
  });
});
