// The lab's page: a sentence, its translation, the attention, and what happens when that is changed.

import { Matrix, mergeWords } from "/page/matrix.js";
import { isSpecial, tokensOf } from "/page/pieces.js";
import { darkness } from "/page/colors.js";
import { drawBeam } from "/page/beam.js";
import { equation } from "/page/equation.js";
import { drawMap, pictureOf, save } from "/page/map.js";
import { ask, isOutdated, listen } from "/page/server.js";
import { fillLabels, label, language } from "/page/text.js";

const EXAMPLES = {
  en: ["That new key is next to that crowded supermarket.", "How old is Mai?", "They returned to the theatre because they were very angry.", "The parliament passed the new budget on Tuesday."],
  vi: ["Chìa khóa mới đó ở cạnh siêu thị đông đúc đó.", "Mai bao nhiêu tuổi?"],
};
const MEAN = "mean";
const SITES = ["encoder_self", "decoder_self", "cross"];

const element = Object.fromEntries([...document.querySelectorAll("[id]")].map((found) => [found.id, found]));
// What is asked for, as in the address.
const state = { run: "", text: "", site: "cross", layer: MEAN, head: MEAN, unit: "pieces", changes: [], prefix: [], row: null, column: null };
// What the server answered.
let runs = [], intact = null, forced = null, changed = null, steps = [];

// ---------------------------------------------------------------- maps

// The first and last piece of each word; a special piece is a word of its own.
function wordSpans(pieces) {
  const starts = pieces.flatMap((piece, i) => i === 0 || piece.startsWith("\u2581") || isSpecial(piece) || isSpecial(pieces[i - 1]) ? [i] : []);
  return starts.map((start, i) => [start, starts[i + 1] ?? pieces.length]);
}

const spansOf = (pieces) => state.unit === "words" ? wordSpans(pieces) : pieces.map((_, i) => [i, i + 1]);
const indices = (choice, count) => choice === MEAN ? [...Array(count).keys()] : [Math.min(choice, count - 1)];

// The selected map of a translation: labels, weights, and which pieces each row and column stands for.
function mapOf(translation) {
  const found = translation?.maps[state.site];
  if (!found) return null;
  const layers = indices(state.layer, found.weights.length), heads = indices(state.head, found.weights[0].length);
  const pieces = new Matrix(found.outputs.length, found.columns.length);
  for (const layer of layers) {
    for (const head of heads) {
      found.weights[layer][head].forEach((row, r) => row.forEach((weight, c) => {
        pieces.weights[r * pieces.columns + c] += weight / (layers.length * heads.length);
      }));
    }
  }
  const rowSpans = spansOf(found.outputs), columnSpans = spansOf(found.columns);
  const merged = mergeWords(pieces, rowSpans, columnSpans);
  const named = (sequence, spans) => tokensOf({ pieces: sequence, words: spans }, state.unit);
  return {
    rows: named(found.outputs, rowSpans), columns: named(found.columns, columnSpans), rowSpans, columnSpans,
    weights: rowSpans.map((_, row) => merged.row(row)), most: merged.most(),
  };
}

function draw() {
  const maps = { intact: mapOf(intact), changed: mapOf(changed) };
  const most = Math.max(...Object.values(maps).map((map) => map?.most ?? 0));
  for (const [name, map] of Object.entries(maps)) {
    element[name].hidden = !map;
    if (!map) continue;
    const selection = name === "intact" ? { row: state.row, column: state.column } : null;
    const chosen = selection && (selection.row !== null || selection.column !== null) ? selection : null;
    const place = element[name].querySelector(".map");
    drawMap(place, map, { most, selection: chosen, name: `${label(name)}: ${state.site}`, choose: select });
  }
  document.querySelector("main").classList.toggle("two", Boolean(maps.changed));
}

// ---------------------------------------------------------------- what is selected, and what can be done with it

function select({ row, column }) {
  Object.assign(state, { row, column });
  draw();
  drawInspector();
  writeAddress();
}

const clean = (text) => `“${text.replaceAll("\u2581", " ").trim() || text}”`;
const range = ([from, to]) => Array.from({ length: to - from }, (_, i) => from + i);

function button(text, act, pressed) {
  const made = document.createElement("button");
  made.type = "button";
  made.textContent = text;
  if (pressed !== undefined) made.setAttribute("aria-pressed", pressed);
  made.addEventListener("click", act);
  return made;
}

const where = () => ({
  site: state.site, layer: state.layer === MEAN ? null : state.layer, head: state.head === MEAN ? null : state.head,
});

function change(more, text) {
  const place = [state.site, state.layer === MEAN ? "" : `${label("layer")} ${state.layer}`, state.head === MEAN ? "" : `${label("head")} ${state.head}`];
  state.changes.push({ text: `${text} · ${place.filter(Boolean).join(", ")}`, change: { ...where(), ...more } });
  refresh();
}

function drawInspector() {
  const map = mapOf(intact);
  const row = map && state.row !== null && state.row < map.rows.length ? state.row : null;
  const column = map && state.column !== null && state.column < map.columns.length ? state.column : null;
  const steps = row === null ? null : range(map.rowSpans[row]), columns = column === null ? [] : range(map.columnSpans[column]);
  const actions = [];
  if (row !== null && column !== null) {
    element.selection.textContent = label("weight", clean(map.rows[row]), clean(map.columns[column]), map.weights[row][column].toFixed(3));
    actions.push(
      button(label("blockCell"), () => change({ way: "scale", columns, factor: 0, steps }, `${clean(map.rows[row])} → ${clean(map.columns[column])} = 0`)),
      button(label("boost"), () => change({ way: "scale", columns, factor: 3, steps }, `${clean(map.rows[row])} → ${clean(map.columns[column])} × 3`)),
      button(label("oneHot"), () => {
        const weights = Array(map.columnSpans.at(-1)[1]).fill(0);
        for (const each of columns) weights[each] = 1 / columns.length;
        change({ way: "weights", weights, steps }, `${clean(map.rows[row])} → ${clean(map.columns[column])} = 1`);
      }),
    );
  } else if (row !== null) {
    const strongest = map.weights[row].map((weight, i) => [weight, i]).sort(([a], [b]) => b - a).slice(0, 4)
      .filter(([weight]) => weight >= 0.01).map(([weight, i]) => `${clean(map.columns[i])} ${weight.toFixed(2)}`);
    element.selection.textContent = label("row", clean(map.rows[row]), strongest.join(", "));
  } else if (column !== null) {
    element.selection.textContent = label("column", clean(map.columns[column]));
  } else {
    element.selection.textContent = map ? label("hint") : "";
  }
  if (row !== null) {
    actions.push(button(label("uniform"), () => change({ way: "uniform", steps }, `${label("uniform")}: ${clean(map.rows[row])}`)));
    if (state.site !== "encoder_self" && steps[0] > 0) {
      actions.push(button(label("lock"), () => { state.prefix = intact.ids.slice(0, steps[0]); refresh(); }));
    }
  }
  if (column !== null) {
    actions.push(button(label("blockWord"), () => change({ way: "scale", columns, factor: 0 }, `${label("blockWord")}: ${clean(map.columns[column])}`)));
  }
  if (map && state.head !== MEAN) actions.push(button(label("off"), () => change({ way: "off" }, label("off"))));
  element.actions.replaceChildren(...actions);

  const items = state.changes.map(({ text }, i) => [text, () => { state.changes.splice(i, 1); refresh(); }]);
  if (state.prefix.length) {
    const kept = intact ? intact.pieces.slice(0, state.prefix.length).join("").replaceAll("\u2581", " ").trim() : "";
    items.push([label("locked", kept), () => { state.prefix = []; refresh(); }]);
  }
  element["changes-box"].hidden = items.length === 0;
  element.changes.replaceChildren(...items.map(([text, drop]) => {
    const item = document.createElement("li"), remove = button("×", drop);
    remove.setAttribute("aria-label", `${label("remove")}: ${text}`);
    item.append(text, remove);
    return item;
  }));
  drawAlternatives(steps);
  drawExplanation(steps);
}

async function drawAlternatives(steps) {
  const wanted = steps !== null && state.site !== "encoder_self";
  element["alternatives-box"].hidden = !wanted;
  if (!wanted) return;
  try {
    const { alternatives } = await ask("/v1/alternatives", { run: state.run, text: state.text, target_ids: intact.ids, number: 6 });
    element.alternatives.replaceChildren(...alternatives[steps[0]].map(({ piece, id, log_prob }) => {
      const taken = button(`${piece.replaceAll("\u2581", "␣")} ${(100 * Math.exp(log_prob)).toFixed(1)} %`, () => {
        state.prefix = [...intact.ids.slice(0, steps[0]), id];
        refresh();
      });
      taken.disabled = id < 4 || intact.ids[steps[0]] === id;
      taken.title = label("taken");
      return taken;
    }));
  } catch (error) { report(error); }
}

async function drawExplanation(steps) {
  const one = state.layer !== MEAN && state.head !== MEAN;
  element.explanation.hidden = steps === null || !one;
  if (element.explanation.hidden || !element.explanation.open) return;
  try {
    const cell = await ask("/v1/explain", {
      run: state.run, text: state.text, target_ids: intact.ids, site: state.site, layer: state.layer, head: state.head, row: steps[0],
    });
    const numbers = (vector) => `[${vector.slice(0, 4).map((x) => x.toFixed(2)).join(", ")}${vector.length > 4 ? ", …" : ""}]`;
    const line = (text) => Object.assign(document.createElement("p"), { textContent: text });
    element.equation.replaceChildren(equation(cell), line(label("query", numbers(cell.query))), line(label("context", numbers(cell.context))));
    const heads = ["", label("key"), label("score"), label("allowed"), ...cell.log_prior ? ["log g"] : [], label("weights"), label("value")];
    const rows = cell.columns.map((piece, i) => [
      piece, numbers(cell.keys[i]), cell.scores[i].toFixed(3), label(cell.allowed[i] ? "yes" : "no"),
      ...cell.log_prior ? [cell.log_prior[i].toFixed(3)] : [], cell.weights[i].toFixed(4), numbers(cell.values[i]),
    ]);
    const tr = (cells, header) => {
      const made = document.createElement("tr");
      cells.forEach((text, i) => {
        const td = document.createElement(header || i === 0 ? "th" : "td");
        td.scope = header ? "col" : i === 0 ? "row" : "";
        td.textContent = text;
        made.append(td);
      });
      return made;
    };
    element.numbers.replaceChildren(tr(heads, true), ...rows.map((cells) => tr(cells, false)));
  } catch (error) { report(error); }
}

// ---------------------------------------------------------------- asking and showing

// The translation with the pieces that the other one does not have underlined.
function showTranslation(section, translation, other) {
  const run = runs.find(({ name }) => name === state.run);
  const paragraph = section.querySelector(".translation");
  paragraph.lang = run?.target ?? "";
  const words = translation.text.split(" "), others = new Set(other?.text.split(" ") ?? words);
  paragraph.replaceChildren(...words.flatMap((word, i) => {
    const shown = document.createElement("span");
    shown.textContent = word;
    shown.classList.toggle("differs", !others.has(word));
    return i ? [" ", shown] : [shown];
  }));
}

function showVerdict() {
  const differences = forced.log_probs.map((value, i) => value - intact.log_probs[i]);
  const worst = differences.reduce((best, value, i) => Math.abs(value) > Math.abs(differences[best]) ? i : best, 0);
  const signed = (value) => `${value > 0 ? "+" : "−"}${Math.abs(value).toFixed(2)}`;
  const text = label(changed.text === intact.text ? "same" : "another");
  const mattered = label("mattered", signed(forced.log_prob - intact.log_prob), clean(intact.pieces[worst]), signed(differences[worst]));
  element.changed.querySelector(".verdict").textContent = `${text} ${mattered}`;
}

function report(error) {
  if (isOutdated(error)) return;
  element.status.classList.add("error");
  element.status.textContent = error instanceof TypeError ? label("failed", error.message) : error.message;
}

async function refresh() {
  writeAddress();
  if (!state.text.trim()) return;
  element.status.classList.remove("error");
  element.status.textContent = label("waiting");
  const question = { run: state.run, text: state.text, prefix_ids: state.prefix };
  try {
    if (state.changes.length) {
      ({ intact, forced, changed } = await ask("/v1/intervene", { ...question, changes: state.changes.map(({ change }) => change) }));
    } else {
      const shown = element.intact.querySelector(".translation"), watched = [];
      element.intact.hidden = false;
      const { ids } = await listen("/v1/translate/stream", question, ({ text, beams }) => {
        watched.push(beams);
        shown.textContent = text;
      });
      intact = await ask("/v1/attend", { ...question, target_ids: ids });
      steps = watched;
      forced = changed = null;
    }
  } catch (error) { report(error); return; }
  element.status.textContent = "";
  if (!intact.maps[state.site]) state.site = "cross";
  fillChoices();
  showTranslation(element.intact, intact, changed);
  if (changed) { showTranslation(element.changed, changed, intact); showVerdict(); }
  element["beam-box"].hidden = steps.length === 0;
  if (element["beam-box"].open) showBeam();
  draw();
  drawInspector();
}

const showBeam = () => drawBeam(element.beam, steps, intact.pieces);

function fill(select, choices, chosen) {
  select.replaceChildren(...choices.map(([value, text]) => new Option(text, value, false, String(value) === String(chosen))));
  select.disabled = choices.length < 2;
}

function fillChoices() {
  const map = intact.maps[state.site];
  const numbered = (count) => count === 1 ? [[0, 0]] : [[MEAN, label("mean")], ...[...Array(count).keys()].map((i) => [i, i])];
  const within = (choice, count) => count === 1 ? 0 : choice === MEAN ? MEAN : Math.min(choice, count - 1);
  state.layer = within(state.layer, map.weights.length);
  state.head = within(state.head, map.weights[0].length);
  fill(element.site, SITES.filter((site) => intact.maps[site]).map((site) => [site, site]), state.site);
  fill(element.layer, numbered(map.weights.length), state.layer);
  fill(element.head, numbered(map.weights[0].length), state.head);
  element.unit.value = state.unit;
}

// ---------------------------------------------------------------- the address

function writeAddress() {
  const address = new URLSearchParams();
  for (const [key, value] of Object.entries(state)) {
    const text = Array.isArray(value) ? (value.length ? JSON.stringify(value) : "") : value === null ? "" : String(value);
    if (text) address.set(key, text);
  }
  history.replaceState(null, "", `${location.pathname}${location.search}#${address}`);
  element.language.href = `?lang=${language === "vi" ? "en" : "vi"}#${address}`;
}

function readAddress() {
  const address = new URLSearchParams(location.hash.slice(1));
  const list = (key) => { try { const found = JSON.parse(address.get(key)); return Array.isArray(found) ? found : []; } catch { return []; } };
  const number = (key) => /^\d+$/.test(address.get(key) ?? "") ? Number(address.get(key)) : null;
  Object.assign(state, {
    run: runs.some(({ name }) => name === address.get("run")) ? address.get("run") : runs[0].name,
    text: address.get("text") ?? "", site: address.get("site") ?? "cross", unit: address.get("unit") === "words" ? "words" : "pieces",
    layer: number("layer") ?? MEAN, head: number("head") ?? MEAN, row: number("row"), column: number("column"),
    changes: list("changes").filter((each) => each?.change), prefix: list("prefix").filter(Number.isInteger),
  });
  element.text.value = state.text;
  element.run.value = state.run;
}

// ---------------------------------------------------------------- start

function fillExamples() {
  const { source } = runs.find(({ name }) => name === state.run);
  element.text.lang = source;
  element.examples.replaceChildren(...(EXAMPLES[source] ?? []).map((text) => button(text, () => { element.text.value = text; begin(text); })));
}

// A new sentence: what was changed belongs to the old one.
function begin(text) {
  Object.assign(state, { text, changes: [], prefix: [], row: null, column: null });
  refresh();
}

const csv = (map) => ["", ...map.columns].map((cell) => JSON.stringify(cell)).join(",") + "\n"
  + map.rows.map((name, row) => [JSON.stringify(name), ...map.weights[row]].join(",")).join("\n") + "\n";

async function start() {
  fillLabels();
  for (const [id, name] of [["examples", "sentence"], ["choices", "site"], ["actions", "changes"], ["alternatives", "alternatives"]]) {
    element[id].setAttribute("aria-label", label(name));
  }
  element.language.textContent = label("other");
  element.language.lang = language === "vi" ? "en" : "vi";
  try { runs = await ask("/v1/runs"); } catch (error) { report(error); return; }
  fill(element.run, runs.map(({ name, source, target }) => [name, `${name} (${source} → ${target})`]), state.run);
  readAddress();
  fillExamples();
  element.ask.addEventListener("submit", (event) => { event.preventDefault(); begin(element.text.value); });
  element.run.addEventListener("change", () => { state.run = element.run.value; fillExamples(); begin(element.text.value); });
  for (const name of ["site", "layer", "head", "unit"]) {
    element[name].addEventListener("change", ({ target: { value } }) => {
      state[name] = ["layer", "head"].includes(name) && value !== MEAN ? Number(value) : value;
      Object.assign(state, { row: null, column: null });
      fillChoices(); draw(); drawInspector(); writeAddress();
    });
  }
  element.explanation.addEventListener("toggle", drawInspector);
  element.beam.dataset.name = label("beam");
  element["beam-box"].addEventListener("toggle", () => { if (element["beam-box"].open && steps.length) showBeam(); });
  element["save-svg"].addEventListener("click", () => intact && save("map.svg", "image/svg+xml", pictureOf(element.intact)));
  element["save-json"].addEventListener("click", () => intact && save("map.json", "application/json", JSON.stringify({ state, intact, forced, changed }, null, 1)));
  element["save-csv"].addEventListener("click", () => intact && save("map.csv", "text/csv", csv(mapOf(intact))));
  darkness.addEventListener("change", draw);
  addEventListener("hashchange", () => { readAddress(); fillExamples(); refresh(); });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") select({ row: null, column: null }); });
  await refresh();
}

start();
