// Markdown as models write it, to nodes. One pass over the lines, and in a line one pass over its characters: the time
// is linear in the text whatever it holds. HTML in the text is text. Elements made: some twenty of HTML, with the
// attributes class, href, rel, target, start and scope, and those of formula.js.

import { h, append, copyText } from "./dom.js";
import { formula } from "./formula.js";
import { paint } from "./highlight.js";

// Beyond, what belongs together is shown plain: models that repeat themselves write such.
const kInlineMax = 8192;
// Lists and quotes within each other.
const kDepthMax = 8;
// More blocks in one text are no answer; what follows them is shown plain.
const kBlocksMax = 2000;
const kSchemes = new Set(["http:", "https:", "mailto:"]);

function safeUrl(text) {
  try {
    const url = new URL(text);
    return kSchemes.has(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}

// --- Inline: code, emphasis, links, breaks.

const kEscapable = /[\\`*_{}[\]()#+\-.!~|<>"'$]/;
const isSpace = (c) => c === undefined || c === "" || /\s/.test(c);
const isWord = (c) => c !== undefined && /[\p{L}\p{N}]/u.test(c);

// [text](address "title") from the bracket at `at`; null: it is no link. Brackets do not nest in links that models
// write, so a search for the next one is enough; it looks no further than a link is long.
function linkAt(text, at) {
  const close = text.indexOf("](", at);
  if (close < 0 || close - at > 512) return null;
  let end = close + 2,
    depth = 1;
  for (; end < text.length && end - close < 2048; ++end) {
    const c = text[end];
    if (c === "\n") return null;
    if (c === "(") ++depth;
    if (c === ")" && --depth === 0) break;
  }
  if (depth !== 0) return null;
  const address = text
    .slice(close + 2, end)
    .trim()
    .split(/\s/)[0]
    .replace(/^<|>$/g, "");
  return { label: text.slice(at + 1, close), address, end: end + 1 };
}

function linkNode(label, address) {
  const url = safeUrl(address);
  if (!url) return document.createTextNode(label || address);
  return h("a", { href: url, rel: "noopener noreferrer", target: "_blank" }, label || url);
}

// What opens a formula, and what closes it. A dollar alone is money more often than mathematics: it opens before what
// is no space, and closes in the same line, after what is no space and before no digit.
const kMaths = [
  ["$$", "$$"],
  ["\\[", "\\]"],
  ["\\(", "\\)"],
  ["$", "$"],
];

// Of the dollars that might close a formula so many are looked at: more do not stand in one.
const kDollarsMax = 4;

function closesDollar(text, end) {
  return !isSpace(text[end - 1]) && text[end - 1] !== "\\" && !/[\d$]/.test(text[end + 1] ?? "");
}

function formulaAt(text, at, none) {
  const marks = kMaths.find(([open]) => text.startsWith(open, at));
  if (!marks || none.has(marks[0])) return null;
  const [open, close] = marks;
  const from = at + open.length;
  let end = text.indexOf(close, from);
  if (end < 0) none.set(open, true);
  if (open === "$") {
    if (isSpace(text[from])) return null;
    for (let tries = 1; end >= 0 && (end === from || !closesDollar(text, end)); ++tries)
      end = tries < kDollarsMax ? text.indexOf("$", end + 1) : -1;
  }
  if (end < 0) return null;
  const source = text.slice(from, end);
  if (!source.trim() || (open === "$" && source.includes("\n"))) return null;
  const display = open === "$$" || open === "\\[";
  return { node: formula(source, text.slice(at, end + close.length), display), end: end + close.length };
}

// Runs of backticks, asterisks, underscores and tildes that may open have to find what closes them. What was looked
// for once and not found is not looked for again: `none` says from where on there is none.
export function inline(text, depth = 0) {
  if (text.length > kInlineMax || depth > kDepthMax) return [document.createTextNode(text)];
  const nodes = [];
  const none = new Map();
  let plain = "";
  const flush = () => {
    if (plain) nodes.push(document.createTextNode(plain));
    plain = "";
  };
  const find = (mark, from) => {
    if (none.has(mark)) return -1;
    for (let at = text.indexOf(mark, from); at >= 0; at = text.indexOf(mark, at + 1)) {
      if (mark[0] === "`") {
        if (text[at - 1] !== "`" && text[at + mark.length] !== "`") return at;
      } else if (
        !isSpace(text[at - 1]) &&
        text[at - 1] !== "\\" &&
        text[at + mark.length] !== mark[0] &&
        (mark[0] !== "_" || !isWord(text[at + mark.length])) &&
        (mark.length > 1 || text[at - 1] !== mark[0])
      ) {
        return at;
      }
    }
    none.set(mark, true);
    return -1;
  };
  for (let at = 0; at < text.length;) {
    const c = text[at];
    if (c === "$" || (c === "\\" && (text[at + 1] === "(" || text[at + 1] === "["))) {
      const found = formulaAt(text, at, none);
      if (found) {
        flush();
        nodes.push(found.node);
        at = found.end;
        continue;
      }
    }
    if (c === "\\" && kEscapable.test(text[at + 1] ?? "")) {
      plain += text[at + 1];
      at += 2;
      continue;
    }
    if (c === "\n") {
      const hard = plain.endsWith("  ");
      plain = plain.trimEnd();
      if (hard) {
        flush();
        nodes.push(h("br"));
      } else plain += "\n";
      ++at;
      continue;
    }
    if (c === "`" || c === "*" || c === "_" || c === "~") {
      let run = 1;
      while (text[at + run] === c) ++run;
      const mark = c === "`" ? c.repeat(run) : c.repeat(c === "~" ? 2 : Math.min(run, 2));
      const opens =
        c === "`"
          ? run <= 8
          : !isSpace(text[at + mark.length]) &&
            run <= 3 &&
            (c !== "_" || !isWord(text[at - 1])) &&
            (c !== "~" || run === 2);
      const end = opens ? find(mark, at + mark.length) : -1;
      if (end > at + mark.length - 1 && end > at) {
        flush();
        const inner = text.slice(at + mark.length, end);
        if (c === "`") nodes.push(h("code", null, inner.replace(/^ (.+) $/s, "$1")));
        else nodes.push(h(c === "~" ? "del" : mark.length === 2 ? "strong" : "em", null, inline(inner, depth + 1)));
        at = end + mark.length;
        continue;
      }
      plain += text.slice(at, at + run);
      at += run;
      continue;
    }
    if (c === "[" || (c === "!" && text[at + 1] === "[")) {
      const link = none.has("link") ? null : linkAt(text, at + (c === "!" ? 1 : 0));
      if (link) {
        flush();
        nodes.push(linkNode(link.label, link.address));
        at = link.end;
        continue;
      }
      if (text.indexOf("](", at) < 0) none.set("link", true);
    }
    if (text.startsWith("http", c === "<" ? at + 1 : at) && !isWord(text[at - 1])) {
      const found = /^<?(https?:\/\/[^\s<>"'`]{1,2000})/.exec(text.slice(at, at + 2010));
      if (found && (c !== "<" || text[at + found[0].length] === ">")) {
        const address = c === "<" ? found[1] : found[1].replace(/[.,;:!?)\]*_]+$/, "");
        flush();
        nodes.push(linkNode(address, address));
        at += c === "<" ? found[0].length + 1 : address.length;
        continue;
      }
    }
    plain += c;
    ++at;
  }
  flush();
  return nodes;
}

// --- Blocks.

const kFence = /^ {0,3}(`{3,}|~{3,})\s*([^\s`]{0,40})[^`]*$/;
const kHeading = /^ {0,3}(#{1,6})\s+(.*?)\s*#*$/;
const kHeadingMax = 1000; // The pattern looks at each run of # to the end of the line.
const kRule = /^ {0,3}([-*_])(\s*\1){2,}\s*$/;
const kItem = /^( {0,64})([-*+]|\d{1,9}[.)])(\s+)(.*)$/;
const kQuote = /^ {0,3}>\s?(.*)$/;
// A formula with lines of its own, which may hold what elsewhere would begin a block.
const kFormula = /^ {0,3}(\$\$|\\\[)/;
const kFormulaLines = 64;
const kTableRule = /^ {0,3}\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;

function codeBlock(language, code) {
  const body = h("code", null);
  append(body, paint(code, language));
  return h(
    "div",
    { class: "code" },
    h(
      "div",
      { class: "code-head" },
      h("span", null, language || "text"),
      h("button", { type: "button", class: "link-button", onclick: () => copyText(code) }, "Copy"),
    ),
    h("pre", { tabindex: "0", role: "region", "aria-label": language ? `Code, ${language}` : "Code" }, body),
  );
}

function cells(line) {
  return line
    .trim()
    .replace(/^\||\|$/g, "")
    .split(/(?<!\\)\|/)
    .map((cell) => cell.trim());
}

function table(lines, from) {
  const head = cells(lines[from]);
  const aligns = cells(lines[from + 1]).map((cell) =>
    cell.endsWith(":") ? (cell.startsWith(":") ? "center" : "end") : "start",
  );
  let end = from + 2;
  while (end < lines.length && lines[end].includes("|") && lines[end].trim()) ++end;
  const row = (line, tag, scope) =>
    h(
      "tr",
      null,
      cells(line)
        .slice(0, head.length)
        .map((cell, i) => h(tag, { class: `align-${aligns[i] ?? "start"}`, scope }, inline(cell))),
    );
  return {
    node: h(
      "div",
      { class: "table" },
      h(
        "table",
        null,
        h("thead", null, row(lines[from], "th", "col")),
        h(
          "tbody",
          null,
          lines.slice(from + 2, end).map((line) => row(line, "td")),
        ),
      ),
    ),
    end,
  };
}

// A list from line `from` on: items of one kind whose marks stand as far in, with what is indented below them.
function list(lines, from, depth) {
  const [, indent, mark] = kItem.exec(lines[from]);
  const ordered = /\d/.test(mark);
  const items = [];
  let at = from,
    loose = false;
  while (at < lines.length) {
    const item = kItem.exec(lines[at]);
    if (
      !item ||
      item[1].length > indent.length + 1 ||
      item[1].length < indent.length ||
      /\d/.test(item[2]) !== ordered ||
      kRule.test(lines[at])
    )
      break;
    const inset = item[1].length + item[2].length + Math.min(item[3].length, 4);
    const own = [item[4]];
    for (++at; at < lines.length; ++at) {
      const line = lines[at];
      if (!line.trim()) {
        const next = lines[at + 1];
        if (next === undefined || next.search(/\S/) <= indent.length) {
          if (next !== undefined && kItem.test(next)) {
            loose = true;
            continue;
          }
          break;
        }
        own.push("");
        continue;
      }
      const inside = line.search(/\S/);
      if (
        inside <= indent.length &&
        (kItem.test(line) || own.at(-1) === "" || kHeading.test(line) || kFence.test(line) || kQuote.test(line))
      )
        break;
      if (inside > indent.length || own.at(-1) !== "") own.push(line.slice(Math.min(inside, inset)));
    }
    const task = /^\[([ xX])\]\s+/.exec(own[0]);
    if (task) own[0] = (task[1] === " " ? "\u2610 " : "\u2611 ") + own[0].slice(task[0].length);
    items.push(own);
  }
  const node = h(
    ordered ? "ol" : "ul",
    { start: ordered && Number(mark.slice(0, -1)) !== 1 && parseInt(mark, 10) },
    items.map((own) => {
      const parts = blocks(own, depth + 1).map((block) => block.node);
      const tight = !loose && parts[0]?.tagName === "P";
      return h("li", null, tight ? [...parts[0].childNodes, ...parts.slice(1)] : parts);
    }),
  );
  return { node, end: at };
}

// [{node, from, end}]: the nodes, and of which lines each is made.
function blocks(lines, depth = 0) {
  const found = [];
  let at = 0;
  const add = (node, end) => {
    found.push({ node, from: at, end });
    at = end;
  };
  while (at < lines.length) {
    const line = lines[at];
    if (!line.trim()) {
      ++at;
      continue;
    }
    if (found.length >= kBlocksMax) {
      add(h("p", { class: "plain" }, lines.slice(at).join("\n")), lines.length);
      break;
    }
    const fence = kFence.exec(line);
    if (fence) {
      let end = at + 1;
      while (end < lines.length && !(lines[end].trim().startsWith(fence[1]) && /^\s*[`~]+\s*$/.test(lines[end])))
        ++end;
      add(codeBlock(fence[2], lines.slice(at + 1, end).join("\n")), Math.min(end + 1, lines.length));
      continue;
    }
    const heading = line.length < kHeadingMax && kHeading.exec(line);
    if (heading) {
      // The page has headings of its own above these.
      add(h(`h${Math.min(heading[1].length + 2, 6)}`, null, inline(heading[2])), at + 1);
      continue;
    }
    if (kRule.test(line)) {
      add(h("hr"), at + 1);
      continue;
    }
    const opened = kFormula.exec(line);
    if (opened) {
      // To the line that closes it; one that nothing closes yet takes what a formula might.
      const close = opened[1] === "$$" ? "$$" : "\\]";
      const limit = Math.min(at + kFormulaLines, lines.length);
      let end = at;
      for (let from = opened[0].length; end < limit && lines[end].trim(); from = 0)
        if (lines[end++].includes(close, from)) break;
      add(h("p", null, inline(lines.slice(at, end).join("\n"))), end);
      continue;
    }
    if (kQuote.test(line) && depth < kDepthMax) {
      let end = at;
      const own = [];
      for (let quote; end < lines.length && (quote = kQuote.exec(lines[end])); ++end) own.push(quote[1]);
      add(
        h(
          "blockquote",
          null,
          blocks(own, depth + 1).map((block) => block.node),
        ),
        end,
      );
      continue;
    }
    if (line.includes("|") && lines[at + 1]?.includes("-") && kTableRule.test(lines[at + 1])) {
      const made = table(lines, at);
      add(made.node, made.end);
      continue;
    }
    if (kItem.test(line) && depth < kDepthMax) {
      const made = list(lines, at, depth);
      add(made.node, Math.max(made.end, at + 1));
      continue;
    }
    let end = at + 1;
    while (
      end < lines.length &&
      lines[end].trim() &&
      !kFence.test(lines[end]) &&
      !kHeading.test(lines[end]) &&
      !kRule.test(lines[end]) &&
      !kQuote.test(lines[end]) &&
      !kFormula.test(lines[end]) &&
      !/^\s{0,3}([-*+]|1[.)])\s/.test(lines[end])
    )
      ++end;
    add(
      h(
        "p",
        null,
        inline(
          lines
            .slice(at, end)
            .map((each) => each.trimStart())
            .join("\n"),
        ),
      ),
      end,
    );
  }
  return found;
}

function linesOf(text) {
  // Runs of spaces say nothing, and patterns above would look at each of them.
  return text
    .replace(/\r\n/g, "\n")
    .replace(/\r/g, " ")
    .replace(/\t/g, "    ")
    .replace(/ {64,}/g, " ".repeat(64))
    .split("\n");
}

export function markdown(text) {
  return blocks(linesOf(text)).map((block) => block.node);
}

// Draws a text that grows: what is before the last two blocks stays as it is, only the rest is parsed again.
export class GrowingMarkdown {
  constructor(element) {
    this.element = element;
    this.settled = 0; // Characters of the text whose nodes stay.
    this.tail = [];
  }

  draw(text) {
    for (const node of this.tail) node.remove();
    const rest = text.slice(this.settled);
    const found = blocks(linesOf(rest));
    // A list may still turn loose, and a paragraph become a table: only what two more blocks follow is settled. Where
    // spaces or tabs were put otherwise, lines are still lines.
    const keep = Math.max(found.length - 2, 0);
    this.element.append(...found.map((block) => block.node));
    this.tail = found.slice(keep).map((block) => block.node);
    if (keep > 0) this.settled += lengthOfLines(rest, found[keep].from);
  }
}

function lengthOfLines(text, count) {
  let at = 0;
  for (let line = 0; line < count; ++line) at = text.indexOf("\n", at) + 1;
  return at;
}
