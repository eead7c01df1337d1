// One answer as it is written: the request, its stream, its waits. It goes on while another screen is looked at.

import * as store from "./store.js";
import { messagesOf, textOf, setText } from "./chats.js";
import { merged, requestFields } from "./parameters.js";
import { recall } from "./memory.js";
import { toolList, runTool } from "./tools.js";
import { events, followModels, isLoaded, modelOf, noteFailure, refreshServer, server, ServerError } from "./server.js";

// A server that says 429 or 503 is asked again so often by itself; then a person decides.
const kRetries = 2;
// Answers to its own calls that one message may lead to.
const kRoundsMax = 8;

const sleep = (ms, signal) =>
  new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(new DOMException("", "AbortError"));
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", stop);
      resolve();
    }, ms);
    signal.addEventListener("abort", stop, { once: true });
  });

export class Answer {
  // `changed` is called whenever there is more to show of `turn`. `confirm(call)`: whether tools may be run.
  constructor(chat, turn, { changed, confirm, continues = false }) {
    Object.assign(this, { chat, turn, changed, confirm, continues });
    this.control = new AbortController();
    this.retryAt = 0;
  }

  stop() {
    this.control.abort();
  }

  async run() {
    this.turn.state = "writing";
    delete this.turn.error;
    for (let round = 0; round < kRoundsMax; ++round) {
      await this.write();
      if (this.turn.state !== "done" || !(this.turn.calls?.length > 0)) break;
      if (!(await this.runCalls())) break;
      this.continues = false;
    }
  }

  async write() {
    const { turn } = this;
    try {
      const body = await this.request();
      await this.stream(body);
      turn.state = "done";
    } catch (error) {
      if (error.name === "AbortError") turn.state = "stopped";
      else {
        turn.state = textOf(turn) || turn.reasoning ? "incomplete" : "failed";
        turn.error = { status: error.status ?? -1, message: error.message, code: error.code ?? "" };
        if (error instanceof ServerError) noteFailure(error);
      }
    }
    this.retryAt = 0;
    this.chat.save(turn);
    this.changed();
  }

  async request() {
    const { chat, turn } = this;
    const persona = chat.record.persona ? await store.get("personas", chat.record.persona) : null;
    const params = merged(store.setting("params"), persona?.params, chat.record.params);
    const path = this.sentPath();
    const system = [params.system, persona?.system, persona?.notes].filter(Boolean).join("\n\n");
    const messages = await messagesOf(this.continues ? [...path, turn] : path, {
      system,
      sendReasoning: store.setting("sendReasoning"),
    });
    await this.addFacts(messages, persona?.id ?? "");
    const body = {
      model: chat.record.model,
      messages,
      stream: true,
      stream_options: { include_usage: true },
      ...requestFields(params),
    };
    if (this.continues) Object.assign(body, { continue_final_message: true, add_generation_prompt: false });
    if (store.setting("tools")) body.tools = toolList();
    turn.model = chat.record.model;
    return body;
  }

  // What lies before the turn, from where the person has had older turns dropped.
  sentPath() {
    const path = this.chat.path(this.turn.parent);
    const from = path.findIndex((each) => each.id === this.chat.record.from);
    return from < 0 ? path : path.slice(from);
  }

  // Facts go beside the last question: what comes before it stays the same, and with it what the server has computed.
  async addFacts(messages, persona) {
    if (!store.setting("memory")) return;
    const last = messages.findLast((message) => message.role === "user");
    if (!last || typeof last.content !== "string") return;
    const facts = await recall(last.content, persona);
    if (facts.length > 0) last.content = `${facts.map((fact) => `- ${fact.text}`).join("\n")}\n\n${last.content}`;
  }

  // What there is to say of a model that is loaded for this answer; empty: it is there.
  get waitsForModel() {
    const model = this.unfollow && modelOf(this.chat.record.model);
    if (!model || isLoaded(model)) return "";
    const { value, progress } = model.status;
    const word = value === "downloading" ? "comes from the hub" : "is loaded";
    return `${model.id} ${word}${progress >= 0 ? `: ${progress} %` : "\u2026"}`;
  }

  async stream(body) {
    const model = modelOf(body.model);
    if (model && !isLoaded(model)) this.unfollow = followModels();
    try {
      await this.streamAtLast(body);
    } finally {
      this.unfollow?.();
      this.unfollow = null;
    }
  }

  async streamAtLast(body) {
    const { signal } = this.control;
    for (let tries = 0; ; ++tries) {
      try {
        const sentAt = Date.now();
        for await (const event of events("/v1/chat/completions", { body, signal, needsEnd: true }))
          this.take(event, sentAt);
        return;
      } catch (error) {
        const loading = error.status === 503 && server.state === "loading";
        const busy = error.status === 429 || error.status === 503;
        if (!busy || (tries >= kRetries && !loading)) throw error;
        if (error.status === 503) refreshServer();
        const seconds = Math.max(error.retryAfter ?? 1, 1);
        this.retryAt = Date.now() + seconds * 1000;
        this.changed();
        await sleep(seconds * 1000, signal);
        this.retryAt = 0;
      }
    }
  }

  take(event, sentAt) {
    const { turn } = this;
    this.unfollow?.();
    this.unfollow = null;
    if (event.error)
      throw new ServerError(event.error.status ?? 500, event.error.message ?? "The server has failed.");
    const choice = event.choices?.[0];
    const delta = choice?.delta ?? {};
    if (delta.content || delta.reasoning_content || delta.tool_calls) turn.firstTokenMs ??= Date.now() - sentAt;
    if (delta.reasoning_content) {
      turn.reasoning = (turn.reasoning ?? "") + delta.reasoning_content;
      turn.thinkingSince ??= Date.now();
    }
    if ((delta.content || delta.tool_calls) && turn.thinkingSince && !turn.reasoningSeconds)
      turn.reasoningSeconds = Math.max((Date.now() - turn.thinkingSince) / 1000, 0.1);
    if (delta.content) setText(turn, textOf(turn) + delta.content);
    for (const part of delta.tool_calls ?? []) this.takeCall(part);
    if (choice?.finish_reason) turn.finish = choice.finish_reason;
    if (event.usage) turn.usage = event.usage;
    if (event.timings) turn.timings = event.timings;
    this.chat.save(turn);
    this.changed();
  }

  takeCall({ index = 0, id, function: called = {} }) {
    const calls = (this.turn.calls ??= []);
    const call = (calls[index] ??= { id: "", name: "", arguments: "" });
    if (id) call.id = id;
    if (called.name) call.name += called.name;
    if (called.arguments) call.arguments += called.arguments;
  }

  // Runs what the model has called, each result a turn, and begins the next answer. False: there is none.
  async runCalls() {
    const { chat, turn } = this;
    if (!store.setting("tools") || !(await this.confirm(turn.calls))) return false;
    let parent = turn.id;
    for (const call of turn.calls) {
      const text = await runTool(call, { persona: chat.record.persona ?? "", turn: turn.id });
      const result = chat.add("tool", parent, { callId: call.id, name: call.name, parts: [{ type: "text", text }] });
      chat.save(result);
      parent = result.id;
    }
    if (this.control.signal.aborted) return false;
    this.turn = chat.add("assistant", parent, { state: "writing", model: chat.record.model });
    this.changed();
    return true;
  }
}
