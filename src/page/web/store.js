// What the page keeps, in the browser: IndexedDB "weir", version 1. The server keeps nothing of it.
//
// chats {id, title, updated, model, persona, params, leaf}; turns {id, chat, parent, role, parts, reasoning, calls,
// usage, timings, model, at, ...}; blobs {id, chat, blob, type, name}; personas {id, name, ...}; facts {id, persona,
// text, turn, at}; settings {name, value}. A chat is a tree of turns; its `leaf` names the branch that is shown.

const kStores = {
  chats: { keyPath: "id" },
  turns: { keyPath: "id", index: "chat" },
  blobs: { keyPath: "id", index: "chat" },
  personas: { keyPath: "id" },
  facts: { keyPath: "id" },
  settings: { keyPath: "name" },
};

let opening = null;

function open() {
  opening ??= new Promise((resolve, reject) => {
    const request = indexedDB.open("weir", 1);
    request.onupgradeneeded = () => {
      for (const [name, { keyPath, index }] of Object.entries(kStores)) {
        const store = request.result.createObjectStore(name, { keyPath });
        if (index) store.createIndex(index, index);
      }
    };
    request.onsuccess = () => {
      // Another tab with a newer page must be able to upgrade.
      request.result.onversionchange = () => request.result.close();
      resolve(request.result);
    };
    request.onerror = () => reject(request.error);
  });
  return opening;
}

function result(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

async function store(name, mode = "readonly") {
  return (await open()).transaction(name, mode).objectStore(name);
}

export async function get(name, id) {
  return result((await store(name)).get(id));
}

export async function all(name) {
  return result((await store(name)).getAll());
}

export async function allOf(name, chat) {
  return result((await store(name)).index("chat").getAll(chat));
}

export async function put(name, ...values) {
  const transaction = (await open()).transaction(name, "readwrite");
  for (const value of values) transaction.objectStore(name).put(value);
  return new Promise((resolve, reject) => {
    transaction.oncomplete = () => resolve();
    transaction.onabort = () => reject(transaction.error);
  });
}

export async function remove(name, ...ids) {
  const target = await store(name, "readwrite");
  await Promise.all(ids.map((id) => result(target.delete(id))));
}

export async function removeChat(chat) {
  for (const name of ["turns", "blobs"]) await remove(name, ...(await allOf(name, chat)).map((each) => each.id));
  await remove("chats", chat);
}

export async function eraseAll() {
  const names = Object.keys(kStores);
  const transaction = (await open()).transaction(names, "readwrite");
  for (const name of names) transaction.objectStore(name).clear();
  return new Promise((resolve, reject) => {
    transaction.oncomplete = () => resolve();
    transaction.onabort = () => reject(transaction.error);
  });
}

export function newId() {
  // crypto.randomUUID() is for secure contexts only.
  return Array.from(crypto.getRandomValues(new Uint8Array(12)), (byte) => byte.toString(16).padStart(2, "0")).join(
    "",
  );
}

// Settings are read once and kept, so that asking for one is no promise.
const kDefaults = {
  theme: "system",
  size: "normal",
  params: {},
  sendReasoning: false,
  memory: false,
  persona: "",
  thinking: "auto",
  pulls: [], // Models whose pulls have not ended.
};
const settings = { ...kDefaults };

export async function loadSettings() {
  for (const { name, value } of await all("settings")) settings[name] = value;
}

export function setting(name) {
  return settings[name];
}

export async function setSetting(name, value) {
  settings[name] = value;
  await put("settings", { name, value });
}

// Whether `bytes` more would fit, before they are written: a write that fails halfway helps nobody.
export async function hasRoomFor(bytes) {
  const { quota = Infinity, usage = 0 } = (await navigator.storage?.estimate?.()) ?? {};
  return usage + 2 * bytes < quota;
}

export function keepStorage() {
  navigator.storage?.persist?.().catch(() => {});
}
