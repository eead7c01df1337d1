// The form that asks for the server's key. It is sent as a bearer token and nowhere else: no cookie, no address.

import { h, button, field, openDialog } from "./dom.js";
import { key, setKey, refreshServer, server } from "./server.js";

let open = null;

export function askForKey() {
  if (open?.isConnected) return;
  const input = h("input", { type: "password", autocomplete: "off", required: true, value: key() });
  const keep = h("input", { type: "checkbox", id: "keep-key" });
  const wrong = h("p", { class: "trouble bad", role: "alert", hidden: true });
  const submit = async (event) => {
    event.preventDefault();
    setKey(input.value.trim(), keep.checked);
    await refreshServer();
    if (server.state !== "locked") return open.close();
    wrong.hidden = false;
    wrong.textContent = server.detail;
    input.select();
  };
  const form = h(
    "form",
    { onsubmit: submit, id: "key-form" },
    field("Key", input, "As the server's key file has it. It is kept until this tab is closed."),
    h("label", { class: "check" }, keep, "Keep it in this browser"),
    wrong,
  );
  open = openDialog("This server asks for a key", form, [
    button("Cancel", () => open.close()),
    h("button", { type: "submit", form: "key-form", class: "button primary" }, "Unlock"),
  ]);
  input.focus();
}
