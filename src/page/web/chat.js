// The chat screen: the list, the turns of one branch, and where messages are written.

import * as store from "./store.js";
import {
  h,
  icon,
  iconButton,
  button,
  copyText,
  confirmAction,
  download,
  field,
  notice,
  openDialog,
  replace,
} from "./dom.js";
import { Answer } from "./answer.js";
import { Chat, textOf, setText } from "./chats.js";
import { ChatList } from "./chat_list.js";
import { Composer } from "./composer.js";
import { parameterForm } from "./parameters.js";
import { meter, shortNumber } from "./figures.js";
import { chatAsMarkdown } from "./transfer.js";
import { TurnView } from "./turn.js";
import { askForKey } from "./unlock.js";
import { openSummary } from "./summary.js";
import { ask, contextOf, isLoaded, largerContextOf, modelOf, refreshServer, server, watchServer } from "./server.js";

// Of a long chat so many turns are built; the others when they are asked for.
const kTurnsShown = 40;
const kNearBottom = 80;

// Chats with an answer on its way stay here while other screens are looked at.
const answers = new Map();

const thousands = (count) => (count < 1000 ? String(count) : `${(count / 1000).toFixed(count < 10_000 ? 1 : 0)}k`);

export class ChatScreen {
  constructor() {
    this.chat = null;
    this.views = new Map();
    this.showsAll = false; // Of a long chat; else the last kTurnsShown.
    this.list = new ChatList({
      open: (id) => this.go(id),
      create: () => this.go(null),
      stop: (id) => this.stop(id),
    });
    this.composer = new Composer({
      send: (text, media) => this.send(text, media),
      stop: () => this.stop(),
      editLast: () => this.editLast(),
    });
    this.title = h("h1", { class: "offscreen" });
    this.model = h("select", {
      class: "quiet",
      "aria-label": "Model",
      onchange: () => this.setModel(this.model.value),
    });
    this.persona = h("select", { class: "quiet", "aria-label": "Persona", onchange: () => this.setPersona() });
    this.meter = h("div", { class: "context", hidden: true });
    this.banner = h("div", { class: "banner", role: "status", hidden: true });
    this.turns = h("div", { class: "turns" });
    this.scroller = h(
      "div",
      { class: "scroller", tabindex: "-1", role: "log", "aria-live": "off", "aria-label": "Conversation" },
      this.turns,
    );
    this.spoken = h("div", { class: "offscreen", "aria-live": "polite" });
    this.toBottom = iconButton("down", "To the end", () => this.scrollDown(), {
      class: "icon-button to-bottom",
      hidden: true,
    });
    this.scroller.addEventListener(
      "scroll",
      () => {
        this.toBottom.hidden = this.atBottom();
      },
      { passive: true },
    );
    const sizes = new ResizeObserver(() => this.follow());
    sizes.observe(this.turns);
    sizes.observe(this.scroller);
    this.element = h(
      "div",
      { class: "chat" },
      this.list.element,
      h(
        "section",
        { class: "talk", "aria-label": "Chat" },
        this.title,
        h(
          "header",
          { class: "talk-head" },
          iconButton("list", "Chats", () => this.list.toggle(true), { class: "icon-button list-open" }),
          this.model,
          this.persona,
          h("span", { class: "spacer" }),
          this.meter,
          iconButton("sliders", "Parameters of this chat", () => this.openParameters()),
          iconButton("plus", "New chat", () => this.go(null), { class: "icon-button new-narrow" }),
        ),
        this.banner,
        this.scroller,
        h("div", { class: "bottom" }, this.toBottom, this.composer.element),
        this.spoken,
      ),
    );
    watchServer(() => this.showServer());
    setInterval(() => this.tick(), 500);
  }

  async open(id) {
    await this.chat?.flush().catch(() => {});
    const running = id && answers.get(id);
    this.chat = running ? running.chat : id ? await Chat.load(id) : null;
    this.chat ??= Chat.create(this.wantedModel(), store.setting("persona"));
    this.views.clear();
    this.showsAll = false;
    await this.fillPersonas();
    this.showServer();
    this.draw();
    this.composer.open(this.chat.turns.size > 0 ? this.chat.record.id : "new");
    this.composer.setBusy(answers.has(this.chat.record.id));
    this.scrollDown();
    this.list.refresh(this.chat.record.id);
    if (!matchMedia("(pointer: coarse)").matches && !document.querySelector("dialog[open]")) this.composer.text.focus();
  }

  go(id) {
    const target = id ? `#/chat/${id}` : "#/chat";
    if (location.hash === target) this.open(id);
    else location.hash = target;
    this.list.toggle(false);
  }

  // --- What it shows of the server.

  wantedModel() {
    const last = store.setting("model");
    return server.models.some((model) => model.id === last) ? last : (server.models[0]?.id ?? last ?? "");
  }

  async fillPersonas() {
    const personas = await store.all("personas");
    this.persona.hidden = personas.length === 0;
    replace(
      this.persona,
      h("option", { value: "" }, "No persona"),
      personas.map(({ id, name }) => h("option", { value: id }, name)),
    );
    this.persona.value = personas.some(({ id }) => id === this.chat.record.persona) ? this.chat.record.persona : "";
    this.greeting = personas.find(({ id }) => id === this.persona.value)?.greeting ?? "";
  }

  showServer() {
    if (!this.chat) return;
    const { record } = this.chat;
    if (server.state === "ready" && !server.models.some((model) => model.id === record.model)) {
      const before = record.model;
      record.model = this.wantedModel();
      if (before && this.chat.turns.size > 0) notice(`${before} is not served here; ${record.model} goes on.`);
    }
    // What is being pulled is listed, but answers nothing before it is here.
    const coming = (model) => model.status?.value === "downloading" && model.id !== record.model;
    const listed = server.models.filter((model) => !coming(model)).map((model) => model.id);
    const key = JSON.stringify([listed, record.model]);
    if (key !== this.modelKey) {
      this.modelKey = key;
      const ids = listed.length > 0 ? listed : [record.model];
      replace(
        this.model,
        ids.map((id) => h("option", { value: id }, id || "No model yet")),
      );
      this.model.value = record.model;
    }
    if (this.chat.turns.size === 0) this.draw();
    this.composer.model = record.model;
    this.composer.update();
    const answer = answers.get(record.id);
    if (answer?.waitsForModel) this.views.get(answer.turn.id)?.drawSoon();
    // What can be done about an answer that failed hangs on the model.
    else this.views.get(record.leaf)?.draw();
    this.showMeter();
    this.tick();
  }

  // Once in a while: what counts down.
  tick() {
    const { state, detail, retryAt } = server;
    const left = Math.max(Math.ceil((retryAt - Date.now()) / 1000), 0);
    const text =
      state === "unreachable"
        ? `The server cannot be reached. Next try in ${left} s.`
        : state === "loading"
          ? `${detail || "The model is loading."} Messages are sent when it is ready.`
          : state === "draining"
            ? "The server is shutting down."
            : "";
    const shown = state === "locked" ? "locked" : text;
    if (shown !== this.bannerShown) {
      this.bannerShown = shown;
      this.banner.hidden = !shown;
      this.waited = h("span", { class: "waited", "aria-hidden": "true" });
      const percent = state === "loading" && /(\d+) %/.exec(detail)?.[1];
      if (state === "locked")
        replace(this.banner, h("span", null, "This server asks for a key."), button("Enter a key", askForKey));
      else replace(this.banner, h("span", null, text), percent && meter("Loading", percent / 100), this.waited);
    }
    // Seconds are for eyes: who is read to would hear nothing else.
    this.loadsSince = state === "loading" ? (this.loadsSince ?? Date.now()) : null;
    if (this.loadsSince) this.waited.textContent = `${Math.round((Date.now() - this.loadsSince) / 1000)} s`;
    const answer = this.chat && answers.get(this.chat.record.id);
    if (answer?.retryAt) this.views.get(answer.turn.id)?.drawSoon();
  }

  showMeter() {
    const context = contextOf(this.chat.record.model);
    const last = this.chat.path().findLast((turn) => turn.usage);
    const used = last?.usage.total_tokens ?? 0;
    this.meter.hidden = !context;
    if (!context) return;
    const text = `${thousands(used)} of ${thousands(context)}`;
    const share = Math.min(used / context, 1);
    const bar = meter(`Context: ${text} tokens`, share);
    replace(this.meter, h("span", { class: "context-text" }, text), bar);
    this.meter.title = `${used} of ${context} tokens of context`;
  }

  // --- Turns.

  draw() {
    const path = this.chat.path();
    const { title } = this.chat.record;
    this.title.textContent = title || "New chat";
    if (this.element.isConnected) document.title = title ? `${title} \u00b7 Weir` : "Weir";
    if (path.length === 0) {
      this.views.clear();
      return replace(this.turns, this.emptyView());
    }
    const from = this.showsAll ? 0 : Math.max(path.length - kTurnsShown, 0);
    const nodes = path.slice(from).map((turn) => {
      let view = this.views.get(turn.id);
      if (!view) this.views.set(turn.id, (view = new TurnView(turn, this.actions())));
      else view.draw();
      return view.element;
    });
    if (from > 0)
      nodes.unshift(
        button(
          `Show ${from} earlier turns`,
          () => {
            this.showsAll = true;
            this.draw();
          },
          { class: "button earlier" },
        ),
      );
    // Nodes that stay where they are keep focus and selection.
    nodes.forEach((node, i) => {
      if (this.turns.childNodes[i] !== node) this.turns.insertBefore(node, this.turns.childNodes[i] ?? null);
    });
    while (this.turns.childNodes.length > nodes.length) this.turns.lastChild.remove();
    const kept = new Set(path.map((turn) => turn.id));
    for (const id of this.views.keys()) if (!kept.has(id)) this.views.delete(id);
  }

  emptyView() {
    const model = modelOf(this.chat.record.model);
    const none = server.state === "ready" && server.models.length === 0;
    const facts = [
      model?.meta?.n_params && `${shortNumber(model.meta.n_params)} parameters`,
      model?.max_model_len && `context of ${model.max_model_len.toLocaleString("en")} tokens`,
      model && !isLoaded(model) && (model.status.failed ? model.status.message : "The first message loads it."),
    ].filter(Boolean);
    return h(
      "div",
      { class: "empty" },
      icon("weir"),
      h("h2", null, this.greeting || (model ? model.id : none ? "No model" : "Weir")),
      facts.length > 0 && h("p", null, facts.join(", ")),
      none && h("p", null, "This server has no model yet. ", h("a", { href: "#/models" }, "See what would run here")),
      h("p", { class: "hint" }, "What you write stays in this browser. ", h("kbd", null, "?"), " lists the keys."),
    );
  }

  // What a turn's buttons do.
  actions() {
    return {
      siblings: (turn) => this.chat.siblings(turn),
      show: (turn) => {
        this.chat.show(turn);
        this.draw();
        this.focusTurn(turn);
      },
      again: (turn) => this.again(turn),
      resume: (turn) => this.answer(turn, true),
      edit: (turn) => this.edit(turn),
      copy: (turn) => copyText(textOf(turn)),
      fork: async (turn) => {
        const copy = await this.chat.fork(turn);
        this.go(copy.record.id);
      },
      remove: (turn) => this.remove(turn),
      hasEarlier: (turn) => Boolean(this.chat.turns.get(turn.parent)?.parent),
      dropOldest: (turn) => this.dropOldest(turn),
      summarise: (turn) => this.summarise(turn),
      largerContext: () => largerContextOf(this.chat.record.model),
      enlarge: (turn) => this.enlarge(turn),
      waitsFor: () => answers.get(this.chat.record.id)?.waitsForModel,
      unlock: askForKey,
      retryAt: () => answers.get(this.chat.record.id)?.retryAt,
      drawn: () => this.follow(),
    };
  }

  focusTurn(turn) {
    this.views.get(turn.id)?.foot.querySelector("button:not(:disabled)")?.focus();
  }

  async send(text, media) {
    const { chat } = this;
    this.composer.chat = chat.record.id;
    const parts = [];
    try {
      for (const each of media) {
        const id = store.newId();
        await store.put("blobs", { id, chat: chat.record.id, ...each });
        parts.push({ type: each.type.startsWith("audio/") ? "audio" : "image", blob: id, name: each.name });
      }
    } catch {
      this.composer.restore(text, media);
      return notice("This browser's storage is full; the message was not sent.");
    }
    if (text) parts.push({ type: "text", text });
    if (chat.turns.size === 0) store.keepStorage();
    const question = chat.add("user", chat.record.leaf, { parts });
    chat.save(question);
    this.begin(question.id);
  }

  // An answer to the turn `parent`, beside those that it has.
  begin(parent) {
    const turn = this.chat.add("assistant", parent, { state: "writing", model: this.chat.record.model });
    this.answer(turn, false);
  }

  again(turn) {
    this.begin(turn.parent);
  }

  // Whoever asks for an answer while another comes wants that one instead.
  async answer(turn, continues) {
    const { chat } = this;
    const { id } = chat.record;
    let spokenTo = 0;
    const answer = new Answer(chat, turn, {
      continues,
      confirm: (calls) => this.confirmTools(chat, calls),
      changed: () => {
        if (this.chat !== chat) return;
        const view = this.views.get(answer.turn.id);
        if (!view) {
          this.draw();
          this.follow();
          return;
        }
        view.drawSoon();
        spokenTo = this.speak(answer.turn, spokenTo);
      },
    });
    const before = answers.get(id);
    answers.set(id, answer);
    turn.state = "writing";
    this.draw();
    this.composer.setBusy(true);
    this.scrollDown();
    answer.ended = this.run(answer, before);
    await answer.ended;
    if (this.chat !== chat || answers.has(id)) return;
    this.speak(answer.turn, spokenTo, true);
    this.composer.setBusy(false);
    this.draw();
    this.follow();
    this.showMeter();
    this.list.refresh();
  }

  // Until the answer has ended. Nothing waits between its last change and the moment from which another may begin: what
  // the screen shows as ended has ended.
  async run(answer, before) {
    const { chat } = answer;
    const { id } = chat.record;
    before?.stop();
    await before?.ended;
    const full = () => notice("This browser's storage is full; the chat is not kept.");
    await chat.flush().catch(full);
    if (location.hash !== `#/chat/${id}` && this.chat === chat) history.replaceState(null, "", `#/chat/${id}`);
    this.list.refresh(this.chat.record.id);
    await answer.run();
    if (answers.get(id) === answer) answers.delete(id);
    chat.flush().catch(full);
  }

  // Whole sentences only: single words would interrupt each other.
  speak(turn, from, end = false) {
    const text = textOf(turn);
    const to = end ? text.length : text.slice(from).search(/[.!?\n](?=\s[^]*$)/) + 1 + from;
    if (to <= from) return from;
    this.spoken.textContent = text.slice(from, to);
    return to;
  }

  // Afterwards nothing more of the answer is written or kept.
  async stop(id = this.chat?.record.id) {
    const answer = answers.get(id);
    answer?.stop();
    await answer?.ended;
  }

  async confirmTools(chat, calls) {
    if (chat.toolsAllowed) return true;
    const names = [...new Set(calls.map((call) => call.name))].join(", ");
    chat.toolsAllowed = await confirmAction(
      "Let the model use tools?",
      `It calls ${names}. The page's tools reach this browser's facts, the clock and a calculator, and nothing else.`,
      "Allow",
    );
    return chat.toolsAllowed;
  }

  edit(turn) {
    const text = h("textarea", { rows: 8, value: textOf(turn) });
    const save = () => {
      dialog.close();
      if (turn.role === "user") {
        const media = turn.parts.filter((part) => part.type !== "text");
        const changed = this.chat.add("user", turn.parent, {
          parts: [...media, { type: "text", text: text.value }],
        });
        this.chat.save(changed);
        return this.begin(changed.id);
      }
      const changed = this.chat.add("assistant", turn.parent, { model: turn.model, state: "done" });
      setText(changed, text.value);
      this.chat.save(changed);
      this.draw();
    };
    const dialog = openDialog(
      turn.role === "user" ? "Edit the message" : "Edit the answer",
      field(
        "Text",
        text,
        turn.role === "user" ? "It becomes a branch of its own; this one stays." : "It becomes a branch of its own.",
      ),
      [
        button("Cancel", () => dialog.close()),
        button(turn.role === "user" ? "Send" : "Save", save, { class: "button primary" }),
      ],
    );
    text.focus();
  }

  editLast() {
    const last = this.chat.path().findLast((turn) => turn.role === "user");
    if (last && !answers.has(this.chat.record.id)) this.edit(last);
  }

  async remove(turn) {
    if (!(await confirmAction("Delete this turn?", "What follows it goes with it.", "Delete"))) return;
    const { chat } = this;
    await this.stop();
    await chat.remove(turn);
    if (this.chat === chat) this.draw();
  }

  // The older half of what was sent is left out from now on; the chat keeps it.
  dropOldest(turn) {
    const path = this.chat.path(turn.parent);
    const sent = path.slice(
      Math.max(
        path.findIndex((each) => each.id === this.chat.record.from),
        0,
      ),
    );
    const half = sent.slice(Math.ceil(sent.length / 2)).find((each) => each.role === "user");
    if (!half) return notice("There is but one question left.");
    this.chat.record.from = half.id;
    this.again(turn);
  }

  // The model is loaded anew with more context, if that fits beside the others, and asked again.
  async enlarge(turn) {
    const { model } = this.chat.record;
    const [before, after] = [contextOf(model), largerContextOf(model)];
    try {
      await ask("/models/unload", { body: { model } });
      try {
        await ask("/models/load", { body: { model, ctx_size: after } });
      } catch (error) {
        notice(error.message);
        return await ask("/models/load", { body: { model, ctx_size: before } });
      }
    } catch (error) {
      return notice(error.message);
    }
    await refreshServer();
    this.again(turn);
  }

  // A chat of its own that begins with what was said here, in few words, and with the question that has no answer yet.
  summarise(turn) {
    const { record } = this.chat;
    const path = this.chat.path(turn.parent);
    const asked = path.findLast((each) => each.role === "user");
    const before = path.slice(0, path.indexOf(asked));
    openSummary(before, record.model, async (summary) => {
      const made = Chat.create(record.model, record.persona);
      Object.assign(made.record, { title: `${record.title} (2)`, params: structuredClone(record.params) });
      const parts = [{ type: "text", text: `What was said before, in short:\n\n${summary}` }, ...asked.parts];
      const first = made.add("user", null, { parts: parts.filter((part) => part.type === "text") });
      made.save(first);
      try {
        await made.flush();
      } catch {
        return notice("This browser's storage is full; the new chat could not be kept.");
      }
      await this.open(made.record.id);
      this.begin(first.id);
    });
  }

  setModel(id) {
    this.chat.record.model = id;
    store.setSetting("model", id);
    if (this.chat.turns.size > 0) this.chat.saveRecord();
    this.showServer();
    if (this.chat.turns.size === 0) this.draw();
  }

  async setPersona() {
    this.chat.record.persona = this.persona.value;
    const persona = await store.get("personas", this.persona.value);
    if (persona?.model && server.models.some((model) => model.id === persona.model)) this.setModel(persona.model);
    if (this.chat.turns.size > 0) await this.chat.saveRecord();
    await this.fillPersonas();
    if (this.chat.turns.size === 0) this.draw();
  }

  async openParameters() {
    const { record } = this.chat;
    const persona = record.persona ? await store.get("personas", record.persona) : null;
    const save = () => {
      if (this.chat.turns.size > 0) this.chat.saveRecord();
    };
    const system = h("textarea", {
      rows: 4,
      value: record.params.system ?? "",
      oninput: () => {
        if (system.value) record.params.system = system.value;
        else delete record.params.system;
        save();
      },
    });
    openDialog(
      "Parameters of this chat",
      h(
        "div",
        null,
        field("System prompt", system, "It comes before the persona's."),
        parameterForm(record.params, save, {
          below: { ...store.setting("params"), ...persona?.params },
          model: record.model,
        }),
      ),
      [
        button("As Markdown", () =>
          download(`${record.title || "chat"}.md`, "text/markdown", chatAsMarkdown(this.chat)),
        ),
      ],
    );
  }

  // --- Scrolling: it follows what is written only for who is at the end.

  atBottom() {
    return this.scroller.scrollHeight - this.scroller.scrollTop - this.scroller.clientHeight < kNearBottom;
  }

  scrollDown() {
    this.toBottom.hidden = true;
    this.scroller.scrollTop = this.scroller.scrollHeight;
  }

  follow() {
    if (this.toBottom.hidden) this.scroller.scrollTop = this.scroller.scrollHeight;
  }

  onKey(event) {
    if (event.key === "Escape" && answers.has(this.chat?.record.id)) {
      event.preventDefault();
      this.stop();
      return true;
    }
    return false;
  }

  focusSearch() {
    this.list.toggle(true);
    this.list.search.focus();
  }
}
