// The list of trajectories in report.html: filters, search, and the programs of all turns side by side.
// html_report.py joins programs.js and this file into one script, in this order.

const PAGE_SIZE = 25;
const FLOWS = [
  ["", "all"],
  ["ww", "wrong → wrong"],
  ["wr", "wrong → right"],
  ["rw", "right → wrong"],
  ["rr", "right → right"],
];
const { runs, rows, templates } = JSON.parse(document.getElementById("samples").textContent);
const PASSED = { status: "passed" };
// Attempts at one problem stand together; sets can give two problems one task id.
const problemOf = (row) => `${row.task_id}\n${row.text}`;
const places = new Map();
for (const row of rows) if (!places.has(problemOf(row))) places.set(problemOf(row), places.size);
rows.sort((a, b) => places.get(problemOf(a)) - places.get(problemOf(b)));
for (const row of rows) {
  for (const turn of row.turns) turn.verdicts = turn.verdicts.map((verdict) => (verdict === 1 ? PASSED : verdict));
}
const byId = (id) => document.getElementById(id);
const isSampled = rows.some((row) => row.sample > 0);
const filter = { flow: "", task: null, page: 0 };

// -- properties of trajectories and turns -----------------------------------------------------------------

// Runs can have different numbers of turns. After its last turn, a trajectory counts with that turn.
const turnAt = (row, turn) => row.turns[Math.min(turn, row.turns.length) - 1];
const isRight = (turn) => turn.is_right === true;
const isInfraFailure = (turn) => turn.infra_error !== undefined;
const fullCompletion = (turn) => (turn.around ? turn.around[0] + turn.code + turn.around[1] : turn.completion);

/** Return the number of the first earlier turn with the same program, or 0. */
function repeatedTurn(row, number) {
  if (row.turns[number - 1].is_carried) return 0;
  return row.turns.slice(0, number - 1).findIndex((turn) => turn.code === row.turns[number - 1].code) + 1;
}

/** Return the flow between two turns as in FLOWS, or "failed" if one of them has no verdict. */
function flow(row, [from, to]) {
  const ends = [turnAt(row, from), turnAt(row, to)];
  return ends.some(isInfraFailure) ? "failed" : ends.map((turn) => (isRight(turn) ? "r" : "w")).join("");
}

/** Return whether the program is wrong although it passes every visible test. */
function failsHiddenOnly(row, turn) {
  const passed = (verdict) => verdict.status === "passed";
  return !isRight(turn) && !isInfraFailure(turn) && turn.verdicts.slice(0, row.num_visible_tests).every(passed);
}

const MARKS = [
  ["", "any", () => true],
  ["truncated", "truncated", (row) => row.turns.some((turn) => turn.is_truncated)],
  ["repeat", "same program again", (row) => row.turns.some((_, i) => repeatedTurn(row, i + 1) > 0)],
  ["hidden", "fails hidden tests only", (row) => row.turns.some((turn) => failsHiddenOnly(row, turn))],
  ["in_child", "in_child verdict", (row) => row.turns.some((turn) => turn.verdicts.some((verdict) => verdict.in_child_reason))],
  ["failed", "infrastructure failure", (row) => row.turns.some(isInfraFailure)],
];

/** Return what a turn's prompt adds to the transcript. The marks stand for parts that the row has elsewhere. */
function request(row, turn) {
  const parts = [
    ["\ue002", turn.feedback],
    ["\ue001", row.tests.slice(0, row.num_visible_tests).join("\n")],
    ["\ue000", row.text],
  ];
  return parts.reduce((text, [mark, part]) => text.split(mark).join(part), templates[turn.request]);
}

const searchTexts = new Map(); // filled by the first search, because most pages are never searched
function searchText(row) {
  if (!searchTexts.has(row)) {
    const parts = [row.task_id, row.text, ...row.tests];
    for (const turn of row.turns) {
      parts.push(fullCompletion(turn), turn.error_type ?? "");
      for (const verdict of turn.verdicts) parts.push(verdict.message ?? "");
    }
    searchTexts.set(row, parts.join("\n").toLowerCase());
  }
  return searchTexts.get(row);
}

// -- filters ----------------------------------------------------------------------------------------------

function selectedTurns() {
  return byId("between").value.split("-").map(Number);
}

/** Return the rows that fit every filter but the flow. */
function matchingRows() {
  const query = byId("search").value.trim().toLowerCase();
  const [error, mark, run, pair] = [byId("error").value, byId("mark").value, byId("run").value, selectedTurns()];
  const hasMark = MARKS.find(([name]) => name === mark)[2];
  return rows.filter(
    (row) =>
      (run === "" || row.run === Number(run)) &&
      (filter.task === null || row.task_id === filter.task) &&
      (error === "" || pair.some((turn) => turnAt(row, turn).error_type === error.slice(1))) &&
      hasMark(row) &&
      (query === "" || searchText(row).includes(query)),
  );
}

function update() {
  const matches = matchingRows();
  const pair = selectedTurns();
  const counts = new Map(FLOWS.map(([name]) => [name, 0]));
  for (const row of matches) {
    const name = flow(row, pair);
    counts.set("", counts.get("") + 1);
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  for (const button of document.querySelectorAll("#filters .flows button")) {
    button.setAttribute("aria-pressed", String(button.value === filter.flow));
    button.lastChild.textContent = counts.get(button.value);
  }
  const shown = filter.flow === "" ? matches : matches.filter((row) => flow(row, pair) === filter.flow);
  const pages = Math.max(1, Math.ceil(shown.length / PAGE_SIZE));
  filter.page = Math.min(filter.page, pages - 1);
  const start = filter.page * PAGE_SIZE;
  const listed = shown.slice(start, start + PAGE_SIZE);
  const isNext = (row, i) => i > 0 && problemOf(row) === problemOf(listed[i - 1]);
  byId("list").replaceChildren(...listed.map((row, i) => item(row, isNext(row, i))));
  byId("status").textContent =
    shown.length === 0
      ? "No trajectory matches; clear a filter."
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

// -- one trajectory ---------------------------------------------------------------------------------------

/** Return the entry of a trajectory; the entry before may be of the same problem, and says its text. */
function item(row, isNext) {
  const path = row.turns.map((turn, i) => {
    const [kind, sign] = isInfraFailure(turn) ? ["failed", "?"] : isRight(turn) ? ["right", "✓"] : ["wrong", "✗"];
    const label = `turn ${i + 1}: ${outcome(turn)}`;
    return element("span", { class: `mark ${kind}`, role: "img", "aria-label": label, title: label }, sign);
  });
  const name = element("span", { class: "id" }, visible(row.task_id));
  if (runs.length > 1) name.append(element("small", {}, " " + runs[row.run].name));
  if (isSampled) name.append(element("small", {}, ` sample ${row.sample + 1}`));
  const details = element(
    "details",
    { class: isNext ? "trajectory next" : "trajectory" },
    element(
      "summary",
      {},
      name,
      element("span", { class: "path" }, ...path),
      element("span", { class: "gist" }, isNext ? "" : row.text),
    ),
  );
  // The body is created when it is first opened, so that many trajectories do not slow down the page.
  details.addEventListener("toggle", () => {
    if (details.open && details.children.length === 1) details.append(body(row));
  });
  return details;
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
  if (isInfraFailure(turn)) return "infrastructure failure";
  if (isRight(turn)) return "right";
  return turn.error_type ? `wrong, ${turn.error_type}` : "wrong";
}

function turnCard(row, turn, number) {
  const earlier = repeatedTurn(row, number);
  const isKnown = earlier > 0 || turn.is_carried === true;
  const kind = isInfraFailure(turn) ? "failed" : isRight(turn) ? "right" : "wrong";
  const passed = turn.verdicts.filter((verdict) => verdict.status === "passed").length;
  const badge = (text, isWarning) =>
    element("span", { class: isWarning ? "badge warning" : "badge" }, text);
  const heading = element(
    "h4",
    {},
    `turn ${number}`,
    element("span", { class: kind }, visible(outcome(turn))),
    isInfraFailure(turn) ? null : badge(`${passed} of ${plural(turn.verdicts.length, "test")}`),
    turn.is_truncated ? badge("truncated", true) : null,
    turn.node ? badge(turn.temperature ? `${turn.node}, temperature ${turn.temperature}` : turn.node) : null,
    earlier ? badge(`same program as turn ${earlier}`, true) : null,
    turn.is_carried ? badge("stopped early: repeats the turn before") : null,
    turn.is_resampled ? badge("resampled") : null,
    failsHiddenOnly(row, turn) ? badge("fails hidden tests only", true) : null,
  );
  const thought = turn.num_thought_tokens ? ` (${turn.num_thought_tokens} of a thought)` : "";
  const meta =
    `${plural(turn.num_completion_tokens, "token")}${thought}, ${turn.generation_s} s to generate, ` +
    `${turn.execution_s} s to execute`;
  return element(
    "article",
    { class: `turn ${kind}`, "aria-label": `turn ${number}` },
    heading,
    turn.feedback ? element("p", { class: "feedback" }, element("b", {}, "feedback: "), visible(turn.feedback)) : null,
    turn.is_carried ? null : element("p", { class: "meta" }, meta),
    program(row, number, isKnown),
    verdicts(row, turn, isKnown),
  );
}

/** Return the program of a turn with a button per view; a program that an earlier turn shows is hidden at first. */
function program(row, number, isKnown) {
  const turn = row.turns[number - 1];
  const before = number > 1 ? row.turns[number - 2] : null;
  const views = [
    ["program", () => [codeBlock(turn.code)]],
    ["completion", () => [completionBlock(turn)]],
  ];
  const plain = (text) => [block([element("span", { class: "line around" }, visible(text))], "completion")];
  if (turn.thought) views.push(["thought", () => plain(turn.thought)]);
  if (turn.request !== undefined) views.push(["request", () => plain(request(row, turn))]);
  if (before && before.code !== turn.code) {
    views.unshift([`changes since turn ${number - 1}`, () => [diffBlock(before.code, turn.code)]]);
  }
  const content = element("div", { class: "content" });
  const buttons = views.map(([name, make]) =>
    element("button", { type: "button", "aria-pressed": "false", onclick: (event) => show(event.target, make) }, name),
  );
  function show(button, make) {
    for (const other of buttons) other.setAttribute("aria-pressed", String(other === button));
    content.replaceChildren(...make());
  }
  if (!isKnown) show(buttons[0], views[0][1]);
  return element("div", { class: "program" }, element("div", { class: "views" }, ...buttons), content);
}

function verdicts(row, turn, isKnown) {
  if (isInfraFailure(turn)) return element("p", { class: "note" }, visible(turn.infra_error));
  return isKnown ? element("details", {}, element("summary", {}, "tests, same as before"), tests(row, turn)) : tests(row, turn);
}

function tests(row, turn) {
  const load = turn.verdicts.find((verdict) => verdict.ended_at !== undefined);
  const list = turn.verdicts.map((verdict, i) => {
    const isPassed = verdict.status === "passed";
    const source = element("code", {}, ...highlighted(row.tests[i] ?? "").flatMap(spans));
    const line = element(
      "li",
      { class: verdict.status },
      element("span", { class: `sign ${isPassed ? "right" : "wrong"}`, role: "img", "aria-label": verdict.status }, isPassed ? "✓" : "✗"),
      source,
      i >= row.num_visible_tests ? element("small", {}, " hidden from the model") : null,
      verdict.in_child_reason ? element("small", {}, " in_child: ", visible(verdict.in_child_reason)) : null,
    );
    if (!isPassed && !load) line.append(explanation(verdict));
    return line;
  });
  const end = load ? `The program ends${load.ended_at ? ` in ${load.ended_at},` : ""} before any test has a result.` : "";
  const note = load ? element("div", { class: "tests" }, visible(end), explanation(load)) : null;
  return element("div", {}, note, element("ul", { class: "tests" }, ...list));
}

function explanation(verdict) {
  const facts = element("dl");
  const add = (name, value) => facts.append(element("dt", {}, name), element("dd", {}, element("code", {}, visible(value))));
  const hasValues = verdict.expected !== undefined && verdict.actual !== undefined;
  if (verdict.expected !== undefined) add("expected", verdict.expected);
  if (verdict.actual !== undefined) add("actual", verdict.actual);
  if (!hasValues) {
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
choices(byId("mark"), MARKS.filter(([name, , applies]) => name === "" || rows.some(applies)));
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
// Not "change": the click that leaves the field would fire it, and rebuilding the list would swallow the click.
byId("search").addEventListener("input", refilter);
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
