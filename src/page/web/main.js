// The page: a rail with four screens, the server's state, and the keys that work everywhere.

import * as store from "./store.js";
import { applyAppearance } from "./appearance.js";
import { h, icon, notice, openDialog, replace } from "./dom.js";
import { ChatScreen } from "./chat.js";
import { DashboardScreen } from "./dashboard.js";
import { ModelsScreen } from "./models.js";
import { SettingsScreen } from "./settings.js";
import { askForKey } from "./unlock.js";
import { refreshServer, server, watchServer } from "./server.js";

const kScreens = [
  { name: "chat", label: "Chat", make: () => new ChatScreen() },
  { name: "models", label: "Models", make: () => new ModelsScreen() },
  // Nothing in it takes the focus: it does itself, so that keys can scroll it.
  { name: "dashboard", label: "Dashboard", make: () => new DashboardScreen(), focus: true },
  { name: "settings", label: "Settings", make: () => new SettingsScreen() },
];

const kStateWords = {
  connecting: "Connecting",
  ready: "Ready",
  loading: "Loading",
  draining: "Shutting down",
  unreachable: "Unreachable",
  locked: "Key needed",
};

const kKeys = [
  ["Enter", "Send"],
  ["Shift + Enter", "New line"],
  ["Esc", "Stop the answer, close a dialog"],
  ["Ctrl + K", "Search chats"],
  ["Ctrl + Shift + O", "New chat"],
  ["Alt + \u2191", "Edit the last message"],
  ["?", "This list"],
];

const screens = new Map();
let current = null;

function showKeys() {
  openDialog(
    "Keys",
    h(
      "dl",
      { class: "keys" },
      kKeys.map(([keys, what]) => [h("dt", null, h("kbd", null, keys)), h("dd", null, what)]),
    ),
  );
}

const main = h("main", { id: "main", tabindex: "-1" });
const state = h("div", { class: "state", role: "status" });
const links = kScreens.map(({ name, label }) =>
  h("a", { href: `#/${name}`, class: "rail-link" }, icon(name), h("span", null, label)),
);

function showState() {
  const word = kStateWords[server.state];
  replace(state, h("span", { class: `dot ${server.state}` }), h("span", { class: "state-word" }, word));
  state.title = server.detail || word;
  if (server.state === "locked" && !showState.asked) {
    showState.asked = true;
    askForKey();
  }
  if (server.state === "ready") showState.asked = false;
}

function route() {
  const [, name, id] = location.hash.split("/");
  const screen = kScreens.find((each) => each.name === name) ?? kScreens[0];
  if (!screens.has(screen.name)) screens.set(screen.name, screen.make());
  const next = screens.get(screen.name);
  if (current !== next) {
    current?.close?.();
    current = next;
    replace(main, next.element);
    main.tabIndex = screen.focus ? 0 : -1;
    document.title = screen.name === "chat" ? "Weir" : `${screen.label} \u00b7 Weir`;
    links.forEach((link, i) =>
      kScreens[i] === screen ? link.setAttribute("aria-current", "page") : link.removeAttribute("aria-current"),
    );
  }
  next.open(id || null);
}

function typing(event) {
  return event.target.closest?.("input, textarea, select, [contenteditable]") !== null;
}

function onKey(event) {
  if (document.querySelector("dialog[open]")) return;
  if (current?.onKey?.(event)) return;
  const control = event.ctrlKey || event.metaKey;
  if (control && !event.shiftKey && event.key.toLowerCase() === "k") {
    event.preventDefault();
    withChat((chat) => chat.focusSearch());
  } else if (control && event.shiftKey && event.key.toLowerCase() === "o") {
    event.preventDefault();
    withChat((chat) => chat.go(null));
  } else if (event.key === "?" && !typing(event)) {
    event.preventDefault();
    showKeys();
  }
}

function withChat(action) {
  if (current !== screens.get("chat")) location.hash = "#/chat";
  // The screen is there once the address has been followed.
  setTimeout(() => action(screens.get("chat")), 0);
}

async function begin() {
  document.body.append(
    h(
      "a",
      {
        class: "skip",
        href: "#main",
        onclick: (event) => {
          event.preventDefault();
          main.focus();
        },
      },
      "Skip to content",
    ),
    h(
      "div",
      { class: "app" },
      h("nav", { class: "rail", "aria-label": "Screens" }, h("div", { class: "mark" }, icon("weir")), links, state),
      main,
    ),
    h("div", { id: "notice", role: "status", hidden: true }),
  );
  try {
    await store.loadSettings();
  } catch {
    notice("This browser lets the page store nothing: chats are lost when it is closed.");
  }
  applyAppearance();
  watchServer(showState);
  showState();
  await refreshServer();
  window.addEventListener("hashchange", route);
  window.addEventListener("keydown", onKey);
  window.addEventListener("online", refreshServer);
  // What is not saved yet is, before the page may be thrown away.
  document.addEventListener("visibilitychange", () => document.hidden && screens.get("chat")?.chat?.flush());
  route();
}

begin();
