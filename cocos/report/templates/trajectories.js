// The list of trajectories in report.html: filter, search, and one program beside the next.
// After programs.js, in one script with it.

const PAGE_SIZE = 25;
const FLOWS = [
  ["", "all"],
  ["ww", "wrong → wrong"],
  ["wr", "wrong → right"],
  ["rw", "right → wrong"],
  ["rr", "right → right"],
];
const { runs, rows } = JSON.parse(document.getElementById("samples").textContent);
const byId = (id) => document.getElementById(id);
const isSampled = rows.some((row) => row.sample > 0);
const filter = { flow: "", task: null, page: 0 };

// -- what a trajectory is ---------------------------------------------------------------------------------

const turnAt = (row, turn) => row.turns[Math.min(turn, row.turns.length) - 1]; // runs differ in their turns
const isRight = (turn) => turn.is_right === true;
const failed = (turn) => turn.infra_error !== undefined;
const fullAnswer = (turn) => (turn.around ? turn.around[0] + turn.code + turn.around[1] : turn.completion);

/** Number of the earlier turn, from 1, that had the same program, or 0. */
function repeated(row, number) {
  if (row.turns[number - 1].is_carried) return 0;
  return row.turns.slice(0, number - 1).findIndex((turn) => turn.code === row.turns[number - 1].code) + 1;
}

function flow(row, [from, to]) {
  const ends = [turnAt(row, from), turnAt(row, to)];
  return ends.some(failed) ? "failed" : ends.map((turn) => (isRight(turn) ? "r" : "w")).join("");
}

/** Wrong, though every test that the model was shown passes. */
function failsHiddenOnly(row, turn) {
  const passed = (verdict) => verdict.status === "passed";
  return !isRight(turn) && !failed(turn) && turn.verdicts.slice(0, row.num_visible_tests).every(passed);
}

const MARKS = [
  ["", "any", () => true],
  ["cut", "cut off", (row) => row.turns.some((turn) => turn.is_truncated)],
  ["repeat", "same program again", (row) => row.turns.some((_, i) => repeated(row, i + 1) > 0)],
  ["hidden", "fails hidden tests only", (row) => row.turns.some((turn) => failsHiddenOnly(row, turn))],
  ["failed", "executor failed", (row) => row.turns.some(failed)],
];

const searchTexts = new Map();
function searchText(row) {
  if (!searchTexts.has(row)) {
    const parts = [row.task_id, row.text, ...row.tests];
    for (const turn of row.turns) {
      parts.push(fullAnswer(turn), turn.error_type ?? "");
      for (const verdict of turn.verdicts) parts.push(verdict.message ?? "");
    }
    searchTexts.set(row, parts.join("\n").toLowerCase());
  }
  return searchTexts.get(row);
}

// -- filter -----------------------------------------------------------------------------------------------

function between() {
  return byId("between").value.split("-").map(Number);
}

function selected() {
  const query = byId("search").value.trim().toLowerCase();
  const [error, mark, run, pair] = [byId("error").value, byId("mark").value, byId("run").value, between()];
  const marked = MARKS.find(([name]) => name === mark)[2];
  return rows.filter(
    (row) =>
      (run === "" || row.run === Number(run)) &&
      (filter.task === null || row.task_id === filter.task) &&
      (error === "" || pair.some((turn) => turnAt(row, turn).error_type === error.slice(1))) &&
      marked(row) &&
      (query === "" || searchText(row).includes(query)),
  );
}

function update() {
  const found = selected();
  const pair = between();
  const counts = new Map(FLOWS.map(([name]) => [name, 0]));
  for (const row of found) {
    const name = flow(row, pair);
    counts.set("", counts.get("") + 1);
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  for (const button of document.querySelectorAll("#filters .flows button")) {
    button.setAttribute("aria-pressed", String(button.value === filter.flow));
    button.lastChild.textContent = counts.get(button.value);
  }
  const shown = filter.flow === "" ? found : found.filter((row) => flow(row, pair) === filter.flow);
  const pages = Math.max(1, Math.ceil(shown.length / PAGE_SIZE));
  filter.page = Math.min(filter.page, pages - 1);
  const start = filter.page * PAGE_SIZE;
  byId("list").replaceChildren(...shown.slice(start, start + PAGE_SIZE).map(item));
  byId("status").textContent =
    shown.length === 0
      ? "No trajectory fits; clear a filter."
      : `${start + 1} to ${Math.min(start + PAGE_SIZE, shown.length)} of ` +
        plural(shown.length, "trajectory", "trajectories");
  byId("page").textContent = `page ${filter.page + 1} of ${pages}`;
  byId("previous").disabled = filter.page === 0;
  byId("next").disabled = filter.page === pages - 1;
  byId("only").hidden = filter.task === null;
  byId("only").textContent = `only ${filter.task} ✕`;
}

function refilter() {
  filter.page = 0;
  update();
}

function turnPage(step) {
  filter.page += step;
  update();
  byId("trajectories").scrollIntoView();
}

function clear() {
  byId("filters").reset();
  filter.flow = "";
  filter.task = null;
  refilter();
}

function goTo(changes) {
  clear();
  changes();
  refilter();
  byId("trajectories").scrollIntoView();
}

// -- a trajectory -----------------------------------------------------------------------------------------

function item(row) {
  const path = row.turns.map((turn, i) => {
    const [kind, sign] = failed(turn) ? ["failed", "?"] : isRight(turn) ? ["right", "✓"] : ["wrong", "✗"];
    const label = `turn ${i + 1}: ${outcome(turn)}`;
    return element("span", { class: `mark ${kind}`, role: "img", "aria-label": label, title: label }, sign);
  });
  const name = element("span", { class: "id" }, visible(row.task_id));
  if (runs.length > 1) name.append(element("small", {}, " " + runs[row.run].name));
  if (isSampled) name.append(element("small", {}, ` sample ${row.sample + 1}`));
  const made = element(
    "details",
    { class: "trajectory" },
    element(
      "summary",
      {},
      name,
      element("span", { class: "path" }, ...path),
      element("span", { class: "gist" }, row.text),
    ),
  );
  made.addEventListener("toggle", () => {
    if (made.open && made.children.length === 1) made.append(body(row));
  });
  return made;
}

function body(row) {
  return element(
    "div",
    { class: "body" },
    element("p", { class: "task" }, visible(row.text)),
    element("div", { class: "turns" }, ...row.turns.map((turn, i) => turnCard(row, turn, i + 1))),
  );
}

function outcome(turn) {
  if (failed(turn)) return "executor failed";
  if (isRight(turn)) return "right";
  return turn.error_type ? `wrong, ${turn.error_type}` : "wrong";
}

function turnCard(row, turn, number) {
  const same = repeated(row, number);
  const isKnown = same > 0 || turn.is_carried === true;
  const kind = failed(turn) ? "failed" : isRight(turn) ? "right" : "wrong";
  const passed = turn.verdicts.filter((verdict) => verdict.status === "passed").length;
  const badge = (text, isWarning) =>
    element("span", { class: isWarning ? "badge warning" : "badge" }, text);
  const heading = element(
    "h4",
    {},
    `turn ${number}`,
    element("span", { class: kind }, visible(outcome(turn))),
    failed(turn) ? null : badge(`${passed} of ${plural(turn.verdicts.length, "test")}`),
    turn.is_truncated ? badge("cut off", true) : null,
    same ? badge(`same program as turn ${same}`, true) : null,
    turn.is_carried ? badge("stopped: that of the turn before") : null,
    turn.is_resampled ? badge("asked twice") : null,
    failsHiddenOnly(row, turn) ? badge("fails hidden tests only", true) : null,
  );
  const meta =
    `${plural(turn.num_completion_tokens, "token")}, ${turn.generation_s} s to generate, ` +
    `${turn.execution_s} s to execute`;
  return element(
    "article",
    { class: `turn ${kind}`, "aria-label": `turn ${number}` },
    heading,
    turn.told ? element("p", { class: "told" }, element("b", {}, "told: "), visible(turn.told)) : null,
    turn.is_carried ? null : element("p", { class: "meta" }, meta),
    program(row, number, isKnown),
    verdicts(row, turn, isKnown),
  );
}

/** The program of a turn, in the views that make sense for it. */
function program(row, number, isKnown) {
  const turn = row.turns[number - 1];
  const before = number > 1 ? row.turns[number - 2] : null;
  const views = [
    ["program", () => [codeBlock(turn.code)]],
    ["whole answer", () => [answerBlock(turn)]],
  ];
  if (before && before.code !== turn.code) {
    views.unshift([`changes since turn ${number - 1}`, () => [diffBlock(before.code, turn.code)]]);
  }
  const shown = element("div", { class: "shown" });
  const buttons = views.map(([name, make]) =>
    element("button", { type: "button", "aria-pressed": "false", onclick: (event) => show(event.target, make) }, name),
  );
  function show(button, make) {
    for (const other of buttons) other.setAttribute("aria-pressed", String(other === button));
    shown.replaceChildren(...make());
  }
  if (!isKnown) show(buttons[0], views[0][1]);
  return element("div", { class: "program" }, element("div", { class: "views" }, ...buttons), shown);
}

function verdicts(row, turn, isKnown) {
  if (failed(turn)) return element("p", { class: "note" }, visible(turn.infra_error));
  return isKnown ? element("details", {}, element("summary", {}, "tests, as before"), tests(row, turn)) : tests(row, turn);
}

function tests(row, turn) {
  const list = turn.verdicts.map((verdict, i) => {
    const isPassed = verdict.status === "passed";
    const source = element("code", {}, ...highlighted(row.tests[i] ?? "").flatMap(spans));
    const line = element(
      "li",
      { class: verdict.status },
      element("span", { class: `sign ${isPassed ? "right" : "wrong"}`, role: "img", "aria-label": verdict.status }, isPassed ? "✓" : "✗"),
      source,
      i >= row.num_visible_tests ? element("small", {}, " hidden from the model") : null,
      verdict.in_child ? element("small", {}, " judged beside the program: could be forged") : null,
    );
    if (!isPassed) line.append(explanation(verdict));
    return line;
  });
  return element("ul", { class: "tests" }, ...list);
}

function explanation(verdict) {
  const facts = element("dl");
  const add = (name, value) => facts.append(element("dt", {}, name), element("dd", {}, element("code", {}, visible(value))));
  const isShown = verdict.expected !== undefined && verdict.actual !== undefined;
  if (verdict.expected !== undefined) add("expected", verdict.expected);
  if (verdict.actual !== undefined) add("actual", verdict.actual);
  if (!isShown) {
    const message = [verdict.error_type, verdict.message].filter((part) => part).join(": ");
    add(verdict.status.replace("_", " "), message || (verdict.status === "not_run" ? "an earlier test ended the process" : "–"));
  }
  return facts;
}

// -- start ------------------------------------------------------------------------------------------------

function choices(select, options) {
  select.replaceChildren(...options.map(([value, label]) => element("option", { value }, label)));
}

const longest = Math.max(...runs.map((run) => run.num_turns));
const turnPairs = Array.from({ length: longest - 1 }, (_, i) => [`${i + 1}-${i + 2}`, `turns ${i + 1} and ${i + 2}`]);
choices(byId("between"), [[`1-${longest}`, "first and last turn"], ...(longest > 2 ? turnPairs : [])]);
const errorCounts = new Map();
for (const turn of rows.flatMap((row) => row.turns)) {
  if (turn.error_type) errorCounts.set(turn.error_type, (errorCounts.get(turn.error_type) ?? 0) + 1);
}
const errorTypes = [...errorCounts].sort((a, b) => b[1] - a[1]).map(([name]) => ["=" + name, name]);
choices(byId("error"), [["", "any"], ...errorTypes]);
choices(byId("mark"), MARKS.filter(([name, , fits]) => name === "" || rows.some(fits)));
choices(byId("run"), [["", "all"], ...runs.map((run, i) => [i, run.name])]);
byId("run-label").hidden = runs.length === 1;
document.querySelector("#filters .flows").append(
  ...FLOWS.map(([value, label]) =>
    element(
      "button",
      { type: "button", value, onclick: () => { filter.flow = value; refilter(); } },
      label + " ",
      element("small"),
    ),
  ),
);
byId("filters").addEventListener("submit", (event) => event.preventDefault());
byId("search").addEventListener("input", refilter); // its "change" comes with the next click, and would swallow it
for (const select of document.querySelectorAll("#filters select")) select.addEventListener("change", refilter);
byId("clear").addEventListener("click", (event) => { event.preventDefault(); clear(); });
byId("previous").addEventListener("click", () => turnPage(-1));
byId("next").addEventListener("click", () => turnPage(1));
byId("only").addEventListener("click", () => { filter.task = null; refilter(); });
for (const button of document.querySelectorAll("button[data-task]")) {
  button.addEventListener("click", () => goTo(() => { filter.task = button.dataset.task; }));
}
for (const button of document.querySelectorAll("button[data-error]")) {
  button.addEventListener("click", () =>
    goTo(() => {
      byId("run").value = runs.length > 1 ? button.dataset.run : "";
      byId("error").value = "=" + button.dataset.error;
    }),
  );
}
update();
