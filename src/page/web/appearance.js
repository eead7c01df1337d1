// How the page looks: which theme, and how large its text is. tokens.css has both as attributes of the root.

import * as store from "./store.js";

export function applyAppearance() {
  const root = document.documentElement;
  root.dataset.theme = store.setting("theme");
  root.dataset.size = store.setting("size");
}
