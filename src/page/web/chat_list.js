// The list of chats: by day, searched by words, beside the chat where there is room and above it where there is not.

import * as store from "./store.js";
import { h, icon, iconButton, button, confirmAction, notice, replace } from "./dom.js";
import { listChats, searchChats } from "./chats.js";
import { exportChats, importChats } from "./transfer.js";
import { download } from "./dom.js";

const kDay = 86_400_000;

function groupOf(updated) {
  const today = new Date().setHours(0, 0, 0, 0);
  if (updated >= today) return "Today";
  if (updated >= today - kDay) return "Yesterday";
  if (updated >= today - 7 * kDay) return "Last week";
  return new Date(updated).toLocaleDateString("en", { month: "long", year: "numeric" });
}

export async function exportToFile() {
  download(`weir-chats-${new Date().toISOString().slice(0, 10)}.json`, "application/json", await exportChats());
}

// Asks for a file and takes its chats in.
export function importFromFile(done) {
  const input = h("input", { type: "file", accept: "application/json,.json" });
  input.addEventListener("change", async () => {
    try {
      const count = await importChats(input.files[0]);
      notice(count === 1 ? "1 chat came in." : `${count} chats came in.`);
      done();
    } catch (error) {
      notice(error.message);
    }
  });
  input.click();
}

export class ChatList {
  // `open(id)` shows a chat, `create()` begins one, `stop(id)` ends the answer that comes in one.
  constructor({ open, create, stop }) {
    this.open = open;
    this.stop = stop;
    this.current = null;
    this.words = "";
    this.search = h("input", {
      type: "search",
      id: "search",
      placeholder: "Search",
      "aria-label": "Search chats",
      oninput: () => {
        this.words = this.search.value.trim();
        this.refresh();
      },
    });
    this.items = h("div", { class: "list-items" });
    this.element = h(
      "aside",
      { class: "chat-list", id: "chat-list", "aria-label": "Chats" },
      h(
        "div",
        { class: "list-head" },
        h("button", { type: "button", class: "button primary", onclick: () => create() }, icon("plus"), "New chat"),
        iconButton("close", "Close the list", () => this.toggle(false), { class: "icon-button list-close" }),
      ),
      h("div", { class: "list-search" }, icon("search"), this.search),
      this.items,
      h(
        "div",
        { class: "list-foot" },
        button("Export", exportToFile, { class: "link-button" }),
        button("Import", () => importFromFile(() => this.refresh()), { class: "link-button" }),
      ),
    );
  }

  // On narrow screens the list lies above the chat.
  toggle(shown) {
    this.element.classList.toggle("open", shown);
    if (shown) this.search.focus();
  }

  async refresh(current = this.current) {
    this.current = current;
    const words = this.words;
    const chats = words ? await searchChats(words) : await listChats();
    if (words !== this.words) return; // Another search has begun.
    const groups = Map.groupBy ? Map.groupBy(chats, (chat) => groupOf(chat.updated)) : group(chats);
    replace(
      this.items,
      chats.length === 0 && h("p", { class: "list-empty" }, words ? "Nothing found" : "No chats yet"),
      [...groups].map(([name, members]) =>
        h(
          "section",
          null,
          h("h2", null, name),
          h(
            "ul",
            null,
            members.map((chat) => this.item(chat)),
          ),
        ),
      ),
    );
  }

  item(chat) {
    const shown = chat.id === this.current;
    return h(
      "li",
      { class: shown ? "current" : "" },
      h(
        "a",
        {
          href: `#/chat/${chat.id}`,
          "aria-current": shown ? "page" : null,
          onclick: () => this.toggle(false),
        },
        chat.title || "New chat",
      ),
      iconButton("trash", `Delete ${chat.title || "this chat"}`, async () => {
        if (!(await confirmAction("Delete this chat?", `\u201c${chat.title}\u201d is kept nowhere else.`, "Delete")))
          return;
        await this.stop(chat.id);
        await store.removeChat(chat.id);
        if (shown) this.open(null);
        this.refresh();
      }),
    );
  }
}

function group(chats) {
  const groups = new Map();
  for (const chat of chats) {
    const name = groupOf(chat.updated);
    groups.set(name, [...(groups.get(name) ?? []), chat]);
  }
  return groups;
}
