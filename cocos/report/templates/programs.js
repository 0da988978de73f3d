// Programs as page elements: highlighted source, differences between two programs, visible control characters.
// Text is inserted as text nodes only; no string is parsed as markup.
"use strict";

// Largest table for the longest common subsequence; for larger programs, all lines count as changed.
const MAX_DIFF_CELLS = 1e6;

/** Create an element; an attribute that is null or false is left out. */
function element(tag, attributes = {}, ...children) {
  const created = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "onclick") created.addEventListener("click", value);
    else if (value !== null && value !== false) created.setAttribute(name, value === true ? "" : value);
  }
  created.append(...children.filter((child) => child !== null));
  return created;
}

const plural = (number, noun, nouns = noun + "s") => `${number} ${number === 1 ? noun : nouns}`;

const KEYWORDS = new Set(
  ("and as assert async await break class continue def del elif else except False finally for from global if " +
    "import in is lambda None nonlocal not or pass raise return True try while with yield match case").split(" "),
);
const BUILTINS = new Set(
  ("abs all any bin bool bytes chr dict divmod enumerate filter float frozenset getattr hash hex input int " +
    "isinstance iter len list map max min next object oct open ord pow print range repr reversed round set " +
    "sorted str sum super tuple type zip self cls").split(" "),
);
// Every character belongs to a match, so the concatenated tokens are the program.
const TOKEN = new RegExp(
  [
    /(?<comment>#[^\n]*)/,
    /(?<string>[rbuf]{0,2}(?:"""[^]*?(?:"""|$)|'''[^]*?(?:'''|$)|"(?:[^"\\\n]|\\[^])*"?|'(?:[^'\\\n]|\\[^])*'?))/,
    /(?<number>0[xob][\da-f_]+|\d[\d_]*(?:\.[\d_]*)?(?:e[+-]?\d+)?j?|\.\d[\d_]*)/,
    /(?<decorator>@[\p{L}_][\p{L}\p{N}_.]*)/,
    /(?<word>[\p{L}_][\p{L}\p{N}_]*)/,
    /\s+|[^]/,
  ]
    .map((part) => part.source)
    .join("|"),
  "giu",
);

/** Split a program into lines, each a list of [class, text]. */
function highlighted(code) {
  const lines = [[]];
  let previous = "";
  for (const match of code.matchAll(TOKEN)) {
    const { comment, string, number, decorator, word } = match.groups;
    let kind = comment ? "comment" : string ? "string" : number ? "number" : decorator ? "decorator" : "";
    if (word) {
      if (KEYWORDS.has(word)) kind = "keyword";
      else if (previous === "def" || previous === "class") kind = "definition";
      else if (BUILTINS.has(word)) kind = "builtin";
    }
    if (match[0].trim() !== "") previous = match[0];
    match[0].split("\n").forEach((part, i) => {
      if (i > 0) lines.push([]);
      if (part !== "") lines[lines.length - 1].push([kind, part]);
    });
  }
  return lines;
}

const spans = (line) =>
  line.map(([kind, text]) => (kind ? element("span", { class: kind }, visible(text)) : visible(text)));

const INVISIBLE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]/gu;

/** Return text with control and direction characters made visible, because they can disguise a program. */
function visible(text) {
  const parts = document.createDocumentFragment();
  let end = 0;
  for (const match of text.matchAll(INVISIBLE)) {
    const code = match[0].codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
    parts.append(text.slice(end, match.index), element("span", { class: "invisible" }, `⟨U+${code}⟩`));
    end = match.index + match[0].length;
  }
  parts.append(text.slice(end));
  return parts;
}

const block = (lines, label) =>
  element("pre", { tabindex: "0", "aria-label": label }, element("code", { class: "lines" }, ...lines));

const codeBlock = (code) =>
  block(
    highlighted(code).map((line) => element("span", { class: "line" }, ...spans(line), "\n")),
    "program",
  );

function completionBlock(turn) {
  const [before, after] = turn.around ?? [turn.completion, ""];
  return block(
    [
      element("span", { class: "line around" }, visible(before)),
      ...(turn.around ? highlighted(turn.code).map((line) => element("span", { class: "line" }, ...spans(line), "\n")) : []),
      element("span", { class: "line around" }, visible(after)),
    ],
    "completion",
  );
}

// -- changes ----------------------------------------------------------------------------------------------

/** Return the steps from one list of lines to another, each [sign, index before, index after]. */
function difference(before, after) {
  // Common lines at both ends need no table, which keeps it small for typical repairs.
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start]) start++;
  let [i, j] = [before.length, after.length];
  while (i > start && j > start && before[i - 1] === after[j - 1]) [i, j] = [i - 1, j - 1];
  const steps = Array.from({ length: start }, (_, n) => [" ", n, n]);
  const changed = commonSubsequenceSteps(before.slice(start, i), after.slice(start, j));
  steps.push(...changed.map(([sign, a, b]) => [sign, a + start, b + start]));
  for (; i < before.length; i++, j++) steps.push([" ", i, j]);
  return steps;
}

/** Return the steps between two lists that differ at both ends, by their longest common subsequence. */
function commonSubsequenceSteps(before, after) {
  const [n, m] = [before.length, after.length];
  const common = Array.from({ length: n + 1 }, () => new Uint32Array(n * m > MAX_DIFF_CELLS ? 0 : m + 1));
  for (let i = n - 1; i >= 0 && n * m <= MAX_DIFF_CELLS; i--) {
    for (let j = m - 1; j >= 0; j--) {
      common[i][j] = before[i] === after[j] ? common[i + 1][j + 1] + 1 : Math.max(common[i + 1][j], common[i][j + 1]);
    }
  }
  const steps = [];
  let [i, j] = [0, 0];
  while (i < n || j < m) {
    if (i < n && j < m && before[i] === after[j] && n * m <= MAX_DIFF_CELLS) steps.push([" ", i++, j++]);
    else if (i < n && (j === m || !(common[i + 1][j] < common[i][j + 1]))) steps.push(["-", i++, j]);
    else steps.push(["+", i, j++]);
  }
  return steps;
}

function diffBlock(before, after) {
  const texts = [before.split("\n"), after.split("\n")];
  const colours = [highlighted(before), highlighted(after)];
  const steps = difference(...texts);
  const changed = replacedLines(steps).map(([a, b]) => [a, b, ...commonEnds(texts[0][a], texts[1][b])]);
  const marked = { "-": new Map(), "+": new Map() };
  for (const [a, b, prefix, suffix] of changed) {
    marked["-"].set(a, [prefix, texts[0][a].length - suffix]);
    marked["+"].set(b, [prefix, texts[1][b].length - suffix]);
  }
  const lines = steps.map(([sign, a, b]) => {
    const line = sign === "-" ? colours[0][a] : colours[1][b];
    const range = sign === " " ? undefined : marked[sign].get(sign === "-" ? a : b);
    const tag = sign === "-" ? "del" : sign === "+" ? "ins" : "span";
    const content = range ? markedSpans(line, ...range) : spans(line);
    return element(tag, { class: "line" }, element("span", { class: "sign" }, sign), ...content, "\n");
  });
  return block(lines, "changes");
}

/** Return the lines that replace each other: the n-th removed with the n-th added line of a hunk. */
function replacedLines(steps) {
  const pairs = [];
  let [removed, added] = [[], []];
  for (const [sign, a, b] of [...steps, [" ", 0, 0]]) {
    if (sign === "-") removed.push(a);
    else if (sign === "+") added.push(b);
    else {
      for (let i = 0; i < Math.min(removed.length, added.length); i++) pairs.push([removed[i], added[i]]);
      [removed, added] = [[], []];
    }
  }
  return pairs;
}

/** Return how many characters two texts have in common at their starts and at their ends. */
function commonEnds(a, b) {
  const shorter = Math.min(a.length, b.length);
  let [prefix, suffix] = [0, 0];
  while (prefix < shorter && a[prefix] === b[prefix]) prefix++;
  while (suffix < shorter - prefix && a[a.length - 1 - suffix] === b[b.length - 1 - suffix]) suffix++;
  return [prefix, suffix];
}

/** Return the spans of a line with the characters from start to end in <mark> elements. */
function markedSpans(line, start, end) {
  let position = 0;
  return line.flatMap(([kind, text]) => {
    const cuts = [0, start - position, end - position, text.length].map((n) => Math.max(0, Math.min(n, text.length)));
    position += text.length;
    return [0, 1, 2]
      .map((n) => [n === 1, text.slice(cuts[n], cuts[n + 1])])
      .filter(([, part]) => part !== "")
      .map(([isMarked, part]) => element(isMarked ? "mark" : "span", { class: kind || null }, visible(part)));
  });
}
