// Elements from calls. Text becomes text nodes and nothing else: no HTML is ever made of a string.

const kSvg = "http://www.w3.org/2000/svg";

function set(element, name, value) {
  if (value === undefined || value === null || value === false) return;
  if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
  else if (name === "class") element.className = value;
  else if (name === "value" || name === "checked" || name === "indeterminate") element[name] = value;
  else element.setAttribute(name, value === true ? "" : value);
}

// An element with properties, of which those that begin with "on" are listeners, and children: nodes, texts, lists of
// them; null and false are left out.
export function h(tag, properties, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties ?? {})) set(element, name, value);
  append(element, children);
  return element;
}

export function append(element, children) {
  for (const child of [children].flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return element;
}

export function replace(element, ...children) {
  element.replaceChildren();
  return append(element, children);
}

// Paths of a 24 x 24 grid, drawn with a stroke.
const kIcons = {
  weir: "M2 6h8c3 0 2 5 5 5h7M2 11h6c3 0 2 5 5 5h9M2 16h4c3 0 2 5 5 5h11",
  chat: "M4 5h16v11H10l-5 4v-4H4z",
  models: "M12 3l8 4.5v9L12 21l-8-4.5v-9zM12 12l8-4.5M12 12v9M12 12L4 7.5",
  dashboard: "M3 12h4l3-8 4 16 3-8h4",
  settings: "M4 7h10M18 7h2M4 17h2M10 17h10M16 5v4M8 15v4",
  plus: "M12 5v14M5 12h14",
  list: "M4 6h16M4 12h16M4 18h10",
  close: "M6 6l12 12M18 6L6 18",
  send: "M12 19V5M6 11l6-6 6 6",
  stop: "M7 7h10v10H7z",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  edit: "M4 20h4L19 9l-4-4L4 16zM13 7l4 4",
  again: "M20 12a8 8 0 1 1-2.5-5.8M20 4v4h-4",
  fork: "M6 4v6a4 4 0 0 0 4 4h8M15 11l3 3-3 3M6 10v10",
  trash: "M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13",
  left: "M14 6l-6 6 6 6",
  right: "M10 6l6 6-6 6",
  more: "M5 12h.01M12 12h.01M19 12h.01",
  clip: "M20 11l-8 8a5 5 0 0 1-7-7l8-8a3.5 3.5 0 0 1 5 5l-8 8a2 2 0 0 1-3-3l7-7",
  microphone: "M12 4a2.5 2.5 0 0 0-2.5 2.5v5a2.5 2.5 0 0 0 5 0v-5A2.5 2.5 0 0 0 12 4zM6 11a6 6 0 0 0 12 0M12 17v3",
  play: "M8 5l10 7-10 7z",
  search: "M11 4a7 7 0 1 0 0 14 7 7 0 0 0 0-14zM16 16l4 4",
  sliders: "M6 4v6M6 14v6M12 4v2M12 10v10M18 4v10M18 18v2M4 12h4M10 8h4M16 16h4",
  down: "M6 10l6 6 6-6",
};

export function icon(name) {
  const svg = document.createElementNS(kSvg, "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(kSvg, "path");
  path.setAttribute("d", kIcons[name]);
  svg.append(path);
  return svg;
}

export function svg(tag, properties) {
  const element = document.createElementNS(kSvg, tag);
  for (const [name, value] of Object.entries(properties)) element.setAttribute(name, value);
  return element;
}

// A button that shows an icon; its name is what screen readers say and what the pointer sees.
export function iconButton(name, label, onclick, properties = {}) {
  return h(
    "button",
    { type: "button", class: "icon-button", "aria-label": label, title: label, onclick, ...properties },
    icon(name),
  );
}

export function button(label, onclick, properties = {}) {
  return h("button", { type: "button", class: "button", onclick, ...properties }, label);
}

// A control below its label. `control` gets an id of its own.
let fields = 0;
export function field(label, control, help) {
  const id = `field-${++fields}`;
  control.id = id;
  if (help) control.setAttribute("aria-describedby", `${id}-help`);
  return h(
    "div",
    { class: "field" },
    h("label", { for: id }, label),
    control,
    help && h("p", { class: "help", id: `${id}-help` }, help),
  );
}

// A dialog that closes with Escape, and gives the focus back to where it was.
export function openDialog(title, content, actions = []) {
  const before = document.activeElement;
  const dialog = h(
    "dialog",
    { class: "dialog", "aria-label": title },
    h(
      "header",
      { class: "dialog-head" },
      h("h2", null, title),
      iconButton("close", "Close", () => dialog.close()),
    ),
    h("div", { class: "dialog-body" }, content),
    actions.length > 0 && h("footer", { class: "dialog-foot" }, actions),
  );
  dialog.addEventListener("close", () => {
    dialog.remove();
    if (before instanceof HTMLElement && before.isConnected) before.focus();
  });
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

// Asks before what cannot be undone.
export function confirmAction(title, text, action) {
  return new Promise((resolve) => {
    const done = (answer) => {
      resolve(answer);
      dialog.close();
    };
    const dialog = openDialog(title, h("p", null, text), [
      button("Cancel", () => done(false)),
      button(action, () => done(true), { class: "button danger" }),
    ]);
    dialog.addEventListener("close", () => resolve(false));
  });
}

// Says it to screen readers, and shows it for a while.
let noticeTimer = 0;
export function notice(text) {
  const place = document.getElementById("notice");
  if (!place) return;
  place.textContent = text;
  place.hidden = false;
  clearTimeout(noticeTimer);
  noticeTimer = setTimeout(() => {
    place.hidden = true;
  }, 4000);
}

// The clipboard's API is for secure contexts only; a selected text can be copied on plain http, too.
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = h("textarea", { class: "offscreen", "aria-hidden": "true" });
    area.value = text;
    (document.querySelector("dialog[open]") ?? document.body).append(area);
    area.select();
    const copied = document.execCommand("copy");
    area.remove();
    if (!copied) return notice("This browser copies nothing from a page without TLS (--tls-cert).");
  }
  notice("Copied");
}

export function download(name, type, text) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = h("a", { href: url, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
