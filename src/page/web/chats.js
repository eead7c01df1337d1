// Chats as trees of turns: which branch is shown, what the model is sent of it, and how it is kept.

import * as store from "./store.js";

const kTitleLength = 40;
// A reload in the middle of an answer loses what came since.
const kSaveMs = 2000;

export class Chat {
  constructor(record, turns = []) {
    this.record = record;
    this.turns = new Map(turns.map((turn) => [turn.id, turn]));
    this.byParent = new Map();
    for (const turn of turns) this.bind(turn);
    this.unsaved = new Map();
    this.timer = 0;
  }

  static create(model, persona) {
    return new Chat({ id: store.newId(), title: "", updated: Date.now(), model, persona, params: {}, leaf: null });
  }

  static async load(id) {
    const record = await store.get("chats", id);
    if (!record) return null;
    const chat = new Chat(record, await store.allOf("turns", id));
    // An answer that was being written when the page went away has ended there.
    for (const turn of chat.turns.values()) if (turn.state === "writing") turn.state = "incomplete";
    return chat;
  }

  bind(turn) {
    const beside = this.byParent.get(turn.parent);
    if (beside) beside.push(turn);
    else this.byParent.set(turn.parent, [turn]);
  }

  // From the first turn to the leaf.
  path(leaf = this.record.leaf) {
    const found = [];
    for (let turn = this.turns.get(leaf); turn; turn = this.turns.get(turn.parent)) found.push(turn);
    return found.reverse();
  }

  // The turns that stand in each other's place, in the order in which they came.
  siblings(turn) {
    return this.children(turn.parent);
  }

  children(id) {
    return (this.byParent.get(id) ?? []).toSorted((a, b) => a.at - b.at);
  }

  // Shows the branch of `turn`, down to where it was left or to its youngest end.
  show(turn) {
    let leaf = turn;
    for (let next; (next = this.children(leaf.id).at(-1));) leaf = next;
    this.record.leaf = leaf.id;
    this.saveRecord();
  }

  add(role, parent, members) {
    const turn = { id: store.newId(), chat: this.record.id, parent, role, parts: [], at: Date.now(), ...members };
    // Turns of one millisecond keep their order.
    for (const each of this.turns.values()) if (each.at >= turn.at) turn.at = each.at + 1;
    this.turns.set(turn.id, turn);
    this.bind(turn);
    this.record.leaf = turn.id;
    if (!this.record.title && role === "user") this.record.title = titleOf(turn);
    return turn;
  }

  // Removes a turn with what follows it.
  async remove(turn) {
    const gone = [];
    const walk = (id) => {
      gone.push(id);
      for (const child of this.children(id)) walk(child.id);
    };
    walk(turn.id);
    const beside = this.byParent.get(turn.parent);
    beside.splice(beside.indexOf(turn), 1);
    for (const id of gone) {
      this.byParent.delete(id);
      this.turns.delete(id);
      this.unsaved.delete(id);
    }
    await store.remove("turns", ...gone);
    const left = this.children(turn.parent).at(-1);
    if (left) this.show(left);
    else this.record.leaf = turn.parent;
    await this.saveRecord();
  }

  // A chat of its own that holds the branch up to `turn`.
  async fork(turn) {
    const record = { ...this.record, id: store.newId(), updated: Date.now(), title: `${this.record.title} (fork)` };
    let parent = null;
    const turns = this.path(turn.id).map((each) => {
      const copy = { ...structuredClone(each), id: store.newId(), chat: record.id, parent };
      parent = copy.id;
      return copy;
    });
    record.leaf = parent;
    for (const each of turns)
      for (const part of each.parts) if (part.blob) part.blob = await copyBlob(part.blob, record.id);
    await store.put("chats", record);
    await store.put("turns", ...turns);
    return new Chat(record, turns);
  }

  // Soon, and no more often than every kSaveMs.
  save(turn) {
    this.unsaved.set(turn.id, turn);
    this.timer ||= setTimeout(() => this.flush().catch(() => {}), kSaveMs);
  }

  async flush() {
    clearTimeout(this.timer);
    this.timer = 0;
    const turns = [...this.unsaved.values()];
    this.unsaved.clear();
    try {
      if (turns.length > 0) await store.put("turns", ...turns.map((turn) => structuredClone(turn)));
      if (this.turns.size > 0) await this.saveRecord();
    } catch (error) {
      // What could not be written may fit later, but for what has been removed meanwhile.
      for (const turn of turns) if (this.turns.has(turn.id)) this.unsaved.set(turn.id, turn);
      throw error;
    }
  }

  async saveRecord() {
    this.record.updated = Date.now();
    await store.put("chats", { ...this.record });
  }
}

async function copyBlob(id, chat) {
  const blob = await store.get("blobs", id);
  if (!blob) return id;
  const copy = { ...blob, id: store.newId(), chat };
  await store.put("blobs", copy);
  return copy.id;
}

export function textOf(turn) {
  return turn.parts
    .filter((part) => part.type === "text")
    .map((part) => part.text)
    .join("\n\n");
}

export function setText(turn, text) {
  const others = turn.parts.filter((part) => part.type !== "text");
  turn.parts = text ? [...others, { type: "text", text }] : others;
}

function titleOf(turn) {
  const text = textOf(turn).replace(/\s+/g, " ").trim();
  return (text.length > kTitleLength ? `${text.slice(0, kTitleLength).trimEnd()}\u2026` : text) || "Attachment";
}

export async function listChats() {
  return (await store.all("chats")).sort((a, b) => b.updated - a.updated);
}

// Whether any text of the chat holds the words; small letters and capitals are the same.
export async function searchChats(words) {
  const wanted = words.toLowerCase();
  const chats = await listChats();
  const inTurns = new Set(
    (await store.all("turns")).filter((turn) => textOf(turn).toLowerCase().includes(wanted)).map((turn) => turn.chat),
  );
  return chats.filter((chat) => chat.title.toLowerCase().includes(wanted) || inTurns.has(chat.id));
}

function dataUrl(blob) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result);
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(blob);
  });
}

// OpenAI's word for what a sound is written in. The server goes by the file itself.
const kFormats = { mpeg: "mp3", mp3: "mp3", flac: "flac", "x-flac": "flac", ogg: "ogg", opus: "opus" };
function formatOf({ type }) {
  return kFormats[type.replace(/^audio\//, "").replace(/;.*/, "")] ?? "wav";
}

async function contentOf(turn) {
  if (turn.parts.every((part) => part.type === "text")) return textOf(turn);
  const content = [];
  for (const part of turn.parts) {
    if (part.type === "text") {
      content.push({ type: "text", text: part.text });
      continue;
    }
    const stored = await store.get("blobs", part.blob);
    if (!stored) continue;
    const url = await dataUrl(stored.blob);
    if (part.type === "audio")
      content.push({
        type: "input_audio",
        input_audio: { data: url.slice(url.indexOf(",") + 1), format: formatOf(stored) },
      });
    else content.push({ type: "image_url", image_url: { url } });
  }
  return content;
}

// What the model is sent of a branch, in OpenAI's words.
export async function messagesOf(path, { system, sendReasoning = false } = {}) {
  const messages = system ? [{ role: "system", content: system }] : [];
  for (const turn of path) {
    const message = { role: turn.role, content: await contentOf(turn) };
    if (turn.role === "assistant" && turn.calls?.length > 0)
      message.tool_calls = turn.calls.map((call) => ({
        id: call.id,
        type: "function",
        function: { name: call.name, arguments: call.arguments },
      }));
    if (turn.role === "assistant" && sendReasoning && turn.reasoning) message.reasoning_content = turn.reasoning;
    if (turn.role === "tool") message.tool_call_id = turn.callId;
    messages.push(message);
  }
  return messages;
}
