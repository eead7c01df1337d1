// Code in four colours: comments, strings, numbers, keywords. One expression for each kind of language, run once over
// the text.

import { h } from "./dom.js";

const kKeywords = new Set(
  `
    abstract and as assert async await begin bool boolean break byte case catch chan char class const constexpr
    continue def default defer del delete do done double echo elif else elsif end enum esac except export extends
    extern false fi final finally float fn for foreach from func function global go goto if impl implements import
    in include inline instanceof int interface is lambda let local long loop match mod module move mut namespace new
    nil none not null nullptr of or override package pass private protected pub public raise readonly ref return
    select self short signed sizeof static string struct super switch template then this throw throws trait true try
    type typedef typename typeof undefined union unless unsigned until use using val var virtual void volatile when
    where while with yield SELECT FROM WHERE JOIN LEFT RIGHT INNER OUTER ON GROUP BY ORDER HAVING LIMIT INSERT INTO
    VALUES UPDATE SET DELETE CREATE TABLE ALTER DROP INDEX AND OR NOT NULL AS DISTINCT UNION None True False
  `.match(/\w+/g),
);

const kStrings = String.raw`"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'`;
const kRest = String.raw`|\b\d[\w.]*|[A-Za-z_]\w*`;
const kSlashes = new RegExp(
  String.raw`//[^\n]*|/\*[^]*?(?:\*/|$)|` + "`(?:[^`\\\\]|\\\\.)*`|" + kStrings + kRest,
  "g",
);
const kHashes = new RegExp(String.raw`#[^\n]*|"""[^]*?(?:"""|$)|'''[^]*?(?:'''|$)|` + kStrings + kRest, "g");
const kDashes = new RegExp(String.raw`--[^\n]*|` + kStrings + kRest, "g");

const kByLanguage = new Map([
  ...[
    "c",
    "cpp",
    "c++",
    "h",
    "cc",
    "cs",
    "csharp",
    "go",
    "java",
    "javascript",
    "js",
    "jsx",
    "json",
    "kotlin",
    "php",
    "rust",
    "rs",
    "scala",
    "swift",
    "ts",
    "tsx",
    "typescript",
    "css",
    "dart",
    "zig",
  ].map((name) => [name, kSlashes]),
  ...[
    "bash",
    "sh",
    "shell",
    "python",
    "py",
    "ruby",
    "rb",
    "perl",
    "r",
    "toml",
    "yaml",
    "yml",
    "make",
    "makefile",
    "dockerfile",
    "cmake",
    "elixir",
    "julia",
  ].map((name) => [name, kHashes]),
  ...["sql", "lua", "haskell", "ada"].map((name) => [name, kDashes]),
]);

// Beyond, painting would be felt while an answer grows.
const kPaintedMax = 40_000;

function kindOf(token) {
  if (/^(\/\/|\/\*|#|--)/.test(token)) return "comment";
  if (/^["'`]/.test(token)) return "string";
  if (/^\d/.test(token)) return "number";
  return kKeywords.has(token) ? "keyword" : "";
}

// Texts and spans.
export function paint(code, language) {
  const pattern = kByLanguage.get((language ?? "").toLowerCase());
  if (!pattern || code.length > kPaintedMax) return [code];
  const parts = [];
  let from = 0;
  for (const { 0: token, index } of code.matchAll(pattern)) {
    const kind = kindOf(token);
    if (!kind) continue;
    parts.push(code.slice(from, index), h("span", { class: `code-${kind}` }, token));
    from = index + token.length;
  }
  parts.push(code.slice(from));
  return parts;
}
