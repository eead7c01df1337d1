// Formulas as MathML. KaTeX, which is loaded when the first one appears, parses them into a tree; the tree becomes
// elements here, of a fixed list, so that no text can bring others along. A formula that it does not take is shown as
// it was written; so is every one where the page was built without KaTeX.

import { h } from "./dom.js";

const kMathMl = "http://www.w3.org/1998/Math/MathML";
// Longer ones are not what people read, and take long.
const kSourceMax = 2000;
// Formulas that are kept: an answer that grows is drawn again and again.
const kKeptMax = 300;
// New ones are made in slices of so long, so that a text full of them keeps nobody from typing.
const kSliceMs = 8;

const kElements = new Set(
  (
    "math mrow mi mn mo ms mtext mspace mfrac msqrt mroot mstyle mpadded mphantom msub msup msubsup munder mover " +
    "munderover mmultiscripts mprescripts none mtable mtr mtd menclose"
  ).split(" "),
);
const kAttributes = new Set(
  (
    "display linethickness fence stretchy symmetric separator minsize maxsize movablelimits form lspace rspace width " +
    "height depth voffset accent accentunder scriptlevel displaystyle mathcolor mathbackground columnspan rowspan"
  ).split(" "),
);

// Where the letters of an alphabet begin in Unicode: capitals, small letters, digits. Browsers leave these to the text.
const kAlphabets = {
  bold: [0x1d400, 0x1d41a, 0x1d7ce],
  "bold-italic": [0x1d468, 0x1d482],
  "double-struck": [0x1d538, 0x1d552, 0x1d7d8],
  script: [0x1d49c, 0x1d4b6],
  fraktur: [0x1d504, 0x1d51e],
  "sans-serif": [0x1d5a0, 0x1d5ba, 0x1d7e2],
  "bold-sans-serif": [0x1d5d4, 0x1d5ee, 0x1d7ec],
  "sans-serif-italic": [0x1d608, 0x1d622],
  monospace: [0x1d670, 0x1d68a, 0x1d7f6],
};
// Letters that had a place before the alphabets had theirs.
const kElsewhere = {
  "double-struck": { C: "\u2102", H: "\u210d", N: "\u2115", P: "\u2119", Q: "\u211a", R: "\u211d", Z: "\u2124" },
  script: {
    B: "\u212c",
    E: "\u2130",
    F: "\u2131",
    H: "\u210b",
    I: "\u2110",
    L: "\u2112",
    M: "\u2133",
    R: "\u211b",
    e: "\u212f",
    g: "\u210a",
    o: "\u2134",
  },
  fraktur: { C: "\u212d", H: "\u210c", I: "\u2111", R: "\u211c", Z: "\u2128" },
};

function styled(text, variant) {
  const starts = kAlphabets[variant];
  if (!starts) return text;
  const letter = (c) => {
    const found = kElsewhere[variant]?.[c];
    if (found) return found;
    for (const [i, [first, last]] of ["AZ", "az", "09"].entries())
      if (starts[i] && c >= first && c <= last)
        return String.fromCodePoint(starts[i] + c.charCodeAt(0) - first.charCodeAt(0));
    return c;
  };
  return [...text].map(letter).join("");
}

function nodeOf(tree, variant = "", align = "") {
  if (tree.text !== undefined) return document.createTextNode(styled(tree.text, variant));
  const { type, attributes = {}, children = [] } = tree;
  // What is around formulas, and the source beside them, is left out.
  if (!type || type === "semantics") return children[0] ? nodeOf(children[0], variant) : document.createTextNode("");
  if (!kElements.has(type)) throw new Error(`no element of formulas: ${type}`);
  const element = document.createElementNS(kMathMl, type);
  for (const [name, value] of Object.entries(attributes))
    if (kAttributes.has(name)) element.setAttribute(name, value);
  const own = attributes.mathvariant ?? variant;
  if (type === "mi" && own === "normal") element.setAttribute("mathvariant", "normal");
  if (type === "menclose" && /box/.test(attributes.notation)) element.setAttribute("class", "enclose-box");
  if (align) element.setAttribute("class", `cell-${align}`);
  // A column's alignment is said of the table; browsers take it from each cell.
  const columns = type === "mtable" && attributes.columnalign?.split(" ");
  for (const child of children)
    element.append(columns && child.type === "mtr" ? rowOf(child, own, columns) : nodeOf(child, own));
  return element;
}

function rowOf(row, variant, columns) {
  const element = document.createElementNS(kMathMl, "mtr");
  row.children.forEach((cell, i) => {
    const align = columns[Math.min(i, columns.length - 1)];
    element.append(nodeOf(cell, variant, ["left", "right"].includes(align) ? align : ""));
  });
  return element;
}

const kept = new Map();
let katex = null;
let loading = null;

function load() {
  const name = document.body.dataset.math;
  loading ??= name
    ? import(new URL(name, import.meta.url)).then(
        () => {
          katex = globalThis.katex;
        },
        () => {},
      )
    : Promise.resolve();
  return loading;
}

const keyOf = (source, display) => (display ? "block " : "inline ") + source;

function made(source, display) {
  const key = keyOf(source, display);
  if (!kept.has(key)) {
    let node = null;
    try {
      // Its own ways to make elements are not used: they write HTML and styles.
      const options = { displayMode: display, output: "mathml", throwOnError: true, trust: false };
      node = nodeOf(katex.__renderToDomTree(source, { ...options, strict: "ignore", maxExpand: 200, maxSize: 10 }));
    } catch {
      /* Shown as it was written. */
    }
    if (kept.size >= kKeptMax) kept.delete(kept.keys().next().value);
    kept.set(key, node);
  }
  return kept.get(key)?.cloneNode(true);
}

const waiting = [];

function work() {
  const end = performance.now() + kSliceMs;
  while (waiting.length > 0 && performance.now() < end) waiting.shift()();
  if (waiting.length > 0) setTimeout(work);
}

// `written`: the formula with what marks it as one.
export function formula(source, written, display) {
  const place = h("span", { class: display ? "formula formula-block" : "formula" }, h("code", null, written));
  if (source.length > kSourceMax) return place;
  const draw = () => {
    const node = katex && made(source, display);
    if (node) place.replaceChildren(node);
  };
  if (katex && kept.has(keyOf(source, display))) draw();
  // What has left the page meanwhile needs no formula.
  else if (waiting.push(() => place.isConnected && draw()) === 1) load().then(() => setTimeout(work));
  return place;
}
