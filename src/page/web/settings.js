// The settings: what is sent by default, personas, memory, how the page looks, and what it keeps.

import * as store from "./store.js";
import { applyAppearance } from "./appearance.js";
import { h, button, confirmAction, copyText, download, field, notice, openDialog, replace } from "./dom.js";
import { exportToFile, importFromFile } from "./chat_list.js";
import { parameterForm } from "./parameters.js";
import { addPersona } from "./transfer.js";
import { ask, key, refreshServer, server, setKey, watchServer } from "./server.js";
import { askForKey } from "./unlock.js";

// Options of `weir` that say the same as the parameters here.
const kOptions = {
  temperature: "--temp",
  top_p: "--top-p",
  top_k: "--top-k",
  min_p: "--min-p",
  repeat_penalty: "--repeat-penalty",
  max_tokens: "--max-tokens",
  thinking: "--thinking",
};

function choice(name, label, options, help, after = () => {}) {
  const select = h(
    "select",
    {
      onchange: async () => {
        await store.setSetting(name, select.value);
        after();
      },
    },
    options.map(([value, text]) => h("option", { value }, text)),
  );
  select.value = store.setting(name);
  return field(label, select, help);
}

function toggle(name, label, help) {
  const box = h("input", {
    type: "checkbox",
    checked: store.setting(name) === true,
    onchange: () => store.setSetting(name, box.checked),
  });
  return h("div", null, h("label", { class: "check" }, box, label), help && h("p", { class: "help" }, help));
}

export class SettingsScreen {
  constructor() {
    this.element = h("div", { class: "screen settings" });
    watchServer(() => this.element.isConnected && this.showServer());
  }

  async open() {
    const sections = [
      ["Server", this.serverPart()],
      ["Defaults", this.defaults()],
      ["Personas", await this.personas()],
      ["Memory", await this.memory()],
      ["Appearance", this.appearance()],
      ["Data", this.data()],
    ];
    replace(
      this.element,
      h("header", { class: "screen-head" }, h("h1", null, "Settings")),
      sections.map(([name, content]) =>
        h("section", { class: "card", "aria-label": name }, h("h2", null, name), content),
      ),
    );
    this.showServer();
  }

  serverPart() {
    this.serverFacts = h("div");
    return this.serverFacts;
  }

  async showServer() {
    const version = await ask("/version").catch(() => null);
    replace(
      this.serverFacts,
      h(
        "p",
        null,
        version ? `Weir ${version.version}, commit ${version.commit}` : `${server.state}. ${server.detail}`,
      ),
      h("p", { class: "help" }, `Clients ask at ${location.origin}/v1`),
      h(
        "div",
        { class: "row" },
        button("Enter a key", askForKey),
        key() &&
          button("Forget the key", () => {
            setKey("");
            refreshServer();
            notice("Forgotten");
          }),
      ),
    );
  }

  defaults() {
    const params = store.setting("params");
    const command = h("code");
    const show = () => {
      const words = Object.entries(kOptions)
        .filter(([name]) => params[name] !== undefined)
        .map(([name, option]) => `${option} ${params[name]}`);
      const model = server.models[0]?.id;
      command.textContent = ["weir", model && model !== "weir-tiny-moe" && `--model ${model}`, ...words]
        .filter(Boolean)
        .join(" ");
    };
    show();
    return h(
      "div",
      null,
      h("p", { class: "help" }, "An empty field leaves the value to the server, whose own is shown in it."),
      parameterForm(
        params,
        () => {
          store.setSetting("params", params);
          show();
        },
        { model: server.models[0]?.id },
      ),
      toggle("sendReasoning", "Send earlier thoughts back to the model"),
      h(
        "div",
        { class: "command" },
        h("p", { class: "help" }, "The command for this, for everybody:"),
        h(
          "div",
          { class: "row" },
          command,
          button("Copy", () => copyText(command.textContent)),
        ),
      ),
    );
  }

  async personas() {
    const place = h("div");
    const draw = async () => {
      const personas = await store.all("personas");
      replace(
        place,
        h("p", { class: "help" }, "A persona is a name, a system prompt and parameters that chats can share."),
        personas.length > 0 &&
          h(
            "ul",
            { class: "rows" },
            personas.map((persona) =>
              h(
                "li",
                null,
                h("span", null, persona.name),
                h(
                  "span",
                  { class: "row" },
                  button("Edit", () => this.editPersona(persona, draw)),
                  button("Export", () => download(`${persona.name}.json`, "application/json", exported(persona))),
                  button("Delete", async () => {
                    if (
                      !(await confirmAction(
                        "Delete this persona?",
                        `${persona.name}. Chats keep what was said.`,
                        "Delete",
                      ))
                    )
                      return;
                    await store.remove("personas", persona.id);
                    draw();
                  }),
                ),
              ),
            ),
          ),
        h(
          "div",
          { class: "row" },
          button("New persona", () => this.editPersona({ id: store.newId(), name: "", params: {} }, draw)),
          button("Import", () => this.importPersona(draw)),
        ),
      );
    };
    await draw();
    return place;
  }

  editPersona(persona, done) {
    const params = { ...persona.params };
    const name = h("input", { type: "text", maxlength: 100, required: true, value: persona.name });
    const system = h("textarea", { rows: 5, value: persona.system ?? "" });
    const notes = h("textarea", { rows: 3, value: persona.notes ?? "" });
    const greeting = h("input", { type: "text", maxlength: 200, value: persona.greeting ?? "" });
    const form = h(
      "form",
      {
        id: "persona-form",
        onsubmit: async (event) => {
          event.preventDefault();
          await store.put("personas", {
            ...persona,
            name: name.value.trim(),
            system: system.value,
            notes: notes.value,
            greeting: greeting.value,
            params,
          });
          dialog.close();
          done();
        },
      },
      field("Name", name),
      field("System prompt", system),
      field("Notes", notes, "They follow the system prompt."),
      field("Greeting", greeting, "Shown where a chat begins."),
      h(
        "details",
        { class: "fold" },
        h("summary", null, "Parameters"),
        parameterForm(params, () => {}, { below: store.setting("params"), model: server.models[0]?.id }),
      ),
    );
    const dialog = openDialog(persona.name ? "Edit the persona" : "New persona", form, [
      button("Cancel", () => dialog.close()),
      h("button", { type: "submit", form: "persona-form", class: "button primary" }, "Save"),
    ]);
    name.focus();
  }

  importPersona(done) {
    const input = h("input", { type: "file", accept: "application/json,.json" });
    input.addEventListener("change", async () => {
      try {
        await addPersona(JSON.parse(await input.files[0].text()));
        done();
      } catch (error) {
        notice(error instanceof SyntaxError ? "The file is not JSON." : error.message);
      }
    });
    input.click();
  }

  async memory() {
    const place = h("div");
    const draw = async () => {
      const facts = await store.all("facts");
      replace(
        place,
        toggle(
          "memory",
          "Bring facts that fit into messages",
          "Facts are kept in this browser and listed here, all of them.",
        ),
        toggle(
          "tools",
          "Offer the model the page's tools",
          "remember, recall, forget, clock and calculate; each chat asks before the first use.",
        ),
        facts.length > 0 &&
          h(
            "ul",
            { class: "rows" },
            facts.map((fact) =>
              h(
                "li",
                null,
                h("span", null, fact.text),
                h(
                  "span",
                  { class: "row" },
                  button("Edit", () => this.editFact(fact, draw)),
                  button("Delete", async () => {
                    await store.remove("facts", fact.id);
                    draw();
                  }),
                ),
              ),
            ),
          ),
        h(
          "div",
          { class: "row" },
          button("New fact", () =>
            this.editFact({ id: store.newId(), persona: "", text: "", turn: "", at: Date.now() }, draw),
          ),
        ),
      );
    };
    await draw();
    return place;
  }

  editFact(fact, done) {
    const text = h("textarea", { rows: 3, maxlength: 500, value: fact.text });
    const dialog = openDialog("Fact", field("Text", text), [
      button("Cancel", () => dialog.close()),
      button(
        "Save",
        async () => {
          if (text.value.trim()) await store.put("facts", { ...fact, text: text.value.trim() });
          dialog.close();
          done();
        },
        { class: "button primary" },
      ),
    ]);
    text.focus();
  }

  appearance() {
    return h(
      "div",
      { class: "pair" },
      choice(
        "theme",
        "Theme",
        [
          ["system", "As the system has it"],
          ["light", "Light"],
          ["dark", "Dark"],
        ],
        null,
        applyAppearance,
      ),
      choice(
        "size",
        "Text",
        [
          ["small", "Small"],
          ["normal", "Normal"],
          ["large", "Large"],
        ],
        null,
        applyAppearance,
      ),
    );
  }

  data() {
    return h(
      "div",
      null,
      h("p", { class: "help" }, "Chats, personas and facts are kept in this browser only."),
      h(
        "div",
        { class: "row" },
        button("Export", exportToFile),
        button("Import", () => importFromFile(() => this.open())),
        button(
          "Erase everything",
          async () => {
            if (
              !(await confirmAction(
                "Erase everything?",
                "All chats, personas, facts and settings of this browser.",
                "Erase",
              ))
            )
              return;
            await store.eraseAll();
            setKey("");
            location.reload();
          },
          { class: "button danger" },
        ),
      ),
    );
  }
}

function exported({ name, system, notes, greeting, params }) {
  return JSON.stringify({ name, system, notes, greeting, params }, null, 2);
}
