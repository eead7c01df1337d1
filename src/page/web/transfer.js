// Chats out of the browser and into it: one JSON file for all, Markdown for one. What comes in is added, and never
// takes the place of what is there.

import * as store from "./store.js";
import { textOf } from "./chats.js";

const kFormat = "weir-chats";
// A file that is larger is no export of texts.
const kImportMax = 64 << 20;

async function asBase64(blob) {
  const bytes = new Uint8Array(await blob.arrayBuffer());
  let text = "";
  for (let at = 0; at < bytes.length; at += 0x8000) text += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return btoa(text);
}

export async function exportChats() {
  const chats = [];
  for (const chat of await store.all("chats")) {
    const blobs = [];
    for (const { blob, ...rest } of await store.allOf("blobs", chat.id))
      blobs.push({ ...rest, base64: await asBase64(blob) });
    chats.push({ ...chat, turns: await store.allOf("turns", chat.id), blobs });
  }
  return JSON.stringify({
    format: kFormat,
    version: 1,
    chats,
    personas: await store.all("personas"),
    facts: await store.all("facts"),
  });
}

export function chatAsMarkdown(chat) {
  const names = { user: "You", assistant: "Model", tool: "Tool" };
  const turns = chat.path().map((turn) => `## ${names[turn.role] ?? turn.role}\n\n${textOf(turn)}`);
  return `# ${chat.record.title}\n\n${turns.join("\n\n")}\n`;
}

const isText = (value) => typeof value === "string";
const kRoles = new Set(["user", "assistant", "tool"]);

// A turn of a file, member by member: what is none of these does not come in.
function turnOf(from, id, chat, parent, blobs) {
  const parts = [];
  for (const part of Array.isArray(from.parts) ? from.parts : []) {
    if (part?.type === "text" && isText(part.text)) parts.push({ type: "text", text: part.text });
    if ((part?.type === "image" || part?.type === "audio") && blobs.has(part.blob))
      parts.push({ type: part.type, blob: blobs.get(part.blob), name: String(part.name ?? part.type) });
  }
  const calls = (Array.isArray(from.calls) ? from.calls : [])
    .filter((call) => isText(call?.name) && isText(call?.arguments))
    .map((call) => ({ id: String(call.id ?? ""), name: call.name, arguments: call.arguments }));
  return {
    id,
    chat,
    parent,
    role: kRoles.has(from.role) ? from.role : "user",
    parts,
    calls,
    reasoning: isText(from.reasoning) ? from.reasoning : "",
    reasoningSeconds: Number(from.reasoningSeconds) || 0,
    callId: isText(from.callId) ? from.callId : undefined,
    model: isText(from.model) ? from.model : "",
    at: Number(from.at) || Date.now(),
    state: from.state === "incomplete" ? "incomplete" : "done",
  };
}

async function addChat(from) {
  const record = {
    id: store.newId(),
    title: String(from.title ?? "Imported").slice(0, 200),
    updated: Number(from.updated) || Date.now(),
    model: String(from.model ?? ""),
    persona: "",
    params: {},
    leaf: null,
  };
  const turns = (Array.isArray(from.turns) ? from.turns : []).filter((turn) => turn && typeof turn === "object");
  const ids = new Map(turns.map((turn) => [turn.id, store.newId()]));
  const blobs = new Map();
  const files = [];
  for (const { id, base64, type, name } of Array.isArray(from.blobs) ? from.blobs : []) {
    if (!isText(base64) || !/^(image|audio)\//.test(type ?? "")) continue;
    const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
    blobs.set(id, store.newId());
    files.push({
      id: blobs.get(id),
      chat: record.id,
      type,
      name: String(name ?? ""),
      blob: new Blob([bytes], { type }),
    });
  }
  record.leaf = ids.get(from.leaf) ?? [...ids.values()].at(-1) ?? null;
  const made = turns.map((turn) => turnOf(turn, ids.get(turn.id), record.id, ids.get(turn.parent) ?? null, blobs));
  await store.put("chats", record);
  await store.put("turns", ...made);
  await store.put("blobs", ...files);
}

// An array of OpenAI's messages becomes a chat; a system message goes into its parameters.
async function addMessages(messages, title) {
  const record = {
    id: store.newId(),
    title,
    updated: Date.now(),
    model: "",
    persona: "",
    params: {},
    leaf: null,
  };
  const turns = [];
  for (const { role, content } of messages) {
    const text = isText(content)
      ? content
      : (Array.isArray(content) ? content : []).map((part) => part?.text ?? "").join("\n");
    if (role === "system" || role === "developer") {
      record.params.system = text;
      continue;
    }
    if (!kRoles.has(role)) continue;
    turns.push({
      id: store.newId(),
      chat: record.id,
      parent: turns.at(-1)?.id ?? null,
      role,
      parts: [{ type: "text", text }],
      at: Date.now() + turns.length,
      state: "done",
    });
  }
  if (turns.length === 0) return 0;
  record.leaf = turns.at(-1).id;
  await store.put("chats", record);
  await store.put("turns", ...turns);
  return 1;
}

// How many chats came in. Throws an Error that says what was expected.
export async function importChats(file) {
  if (file.size > kImportMax) throw new Error(`The file has ${file.size} bytes: expected at most ${kImportMax}.`);
  let data;
  try {
    data = JSON.parse(await file.text());
  } catch {
    throw new Error("The file is not JSON: expected an export of this page, or an array of messages.");
  }
  const messages = Array.isArray(data) ? data : data?.messages;
  if (Array.isArray(messages) && messages.every((message) => isText(message?.role)))
    return addMessages(messages, file.name.replace(/\.json$/, ""));
  if (data?.format !== kFormat || !Array.isArray(data.chats))
    throw new Error(`Expected {"format": "${kFormat}", "version": 1, "chats": [...]}, or an array of messages.`);
  if (data.version !== 1) throw new Error(`Expected version 1 of the format, found ${data.version}.`);
  for (const chat of data.chats) await addChat(chat ?? {});
  for (const persona of data.personas ?? []) await addPersona(persona);
  for (const { text } of data.facts ?? [])
    if (isText(text)) await store.put("facts", { id: store.newId(), persona: "", text, turn: "", at: Date.now() });
  return data.chats.length;
}

const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);

// A persona of this page, or one of SwiftBuddy's: {"name", "rooms": {title: text}}.
export async function addPersona(from) {
  if (!isObject(from) || !isText(from.name)) throw new Error('Expected a persona: {"name": "...", "system": "..."}.');
  const rooms = isObject(from.rooms)
    ? Object.entries(from.rooms)
        .map(([title, text]) => `${title}\n${text}`)
        .join("\n\n")
    : "";
  const persona = {
    id: store.newId(),
    name: from.name.slice(0, 100),
    system: String(from.system ?? ""),
    notes: String(from.notes ?? rooms),
    greeting: String(from.greeting ?? ""),
    params: isObject(from.params) ? from.params : {},
    model: isText(from.model) ? from.model : "",
  };
  await store.put("personas", persona);
  return persona;
}
