// The lab's page from top to bottom: a sentence is asked for, its translation and maps are shown, and changes ask again.

import { darkness } from "/page/colors.js";
import { drawBeam } from "/page/beam.js";
import { button, clean, element, fillSelect, signed } from "/page/element.js";
import { drawGuess, listenToGuess, setPairs } from "/page/guess.js";
import { drawHeat } from "/page/heat.js";
import { chooseForLayer, chosenForLayer, drawInspector, setWeight } from "/page/inspector.js";
import { drawLines } from "/page/lines.js";
import { differenceOf, mapOf } from "/page/maps.js";
import { ask, isOutdated, listen } from "/page/server.js";
import { MEAN, SITES, readAddress, state, writeAddress } from "/page/state.js";
import { pictureOf, pngFile, save, svgFile } from "/page/svg.js";
import { fillLabels, label, language } from "/page/text.js";

// Sentences of another kind than the embedded corpus, on which its runs fail.
const OUTSIDE = {
  en: "The parliament passed the new budget on Tuesday.",
  vi: "Quốc hội đã thông qua ngân sách mới hôm thứ Ba.",
};

// What the server answered. `intact` is the run's own translation. `forced` has the same pieces and `changed` those that
// the search finds, both with changed attention. `other` is the second run's own, and `reading` its reading of `intact`.
let runs = [], intact = null, forced = null, changed = null, other = null, reading = null, steps = [];

const runNamed = (name) => runs.find((run) => run.name === name);
const shownMap = (translation, choice) => translation ? mapOf(translation.maps[state.site], choice) : null;

// ---------------------------------------------------------------- asking

async function refresh() {
  writeAddress();
  if (!state.text.trim()) return;
  element.results.ariaBusy = "true";
  element.status.classList.remove("error");
  element.status.textContent = label("waiting");
  const search = { beam_size: state.beamSize, length_penalty: state.lengthPenalty };
  const question = { run: state.run, text: state.text, prefix_ids: state.prefix, ...search };
  try {
    if (state.changes.length) {
      const changes = state.changes.flatMap((each) => each.changes);
      ({ intact, forced, changed } = await ask("/v1/intervene", { ...question, changes }));
    } else {
      const { ids } = await watched(question);
      intact = await ask("/v1/attend", { ...question, target_ids: ids });
      forced = changed = null;
    }
    other = reading = null;
    if (state.second) {
      const second = { run: state.second, text: state.text, ...search };
      [other, reading] = await Promise.all([
        ask("/v1/attend", second, "own"), ask("/v1/attend", { ...second, target: intact.text }, "reading"),
      ]);
    }
  } catch (error) { report(error); return; }
  element.status.textContent = "";
  if (!intact.maps[state.site]) state.site = "cross";
  show();
  element.results.ariaBusy = "false";
}

// The translation appears piece by piece with its map. Returns what the stream ends with.
async function watched(question) {
  const seen = [], paragraph = element.intact.querySelector(".translation");
  element.intact.hidden = false;
  element.intact.querySelector(".verdict").textContent = "";
  const where = { site: state.site, layer: state.layer === MEAN ? null : state.layer, head: state.head === MEAN ? null : state.head };
  const done = await listen("/v1/translate/stream", { ...question, ...where }, ({ text, beams, map }) => {
    seen.push(beams);
    paragraph.textContent = text;
    // The answer has one map, which is the selected one.
    const growing = mapOf(map, { layer: 0, head: 0 });
    drawMap(element.intact, growing, growing.most, null, () => {});
  });
  steps = seen;
  return done;
}

function report(error) {
  if (isOutdated(error)) return;
  element.results.ariaBusy = "false";
  element.status.classList.add("error");
  element.status.textContent = error instanceof TypeError ? label("failed", error.message) : error.message;
}

// ---------------------------------------------------------------- showing

function show() {
  fillChoices();
  showTranslation(element.intact, state.run, intact, changed);
  showVerdict(element.intact, logProb(intact));
  if (changed) {
    showTranslation(element.changed, state.run, changed, intact);
    showVerdict(element.changed, mattered());
  }
  if (other) {
    element["other-name"].textContent = state.second;
    showTranslation(element.other, state.second, other, intact);
    showVerdict(element.other, logProb(other));
  }
  element["beam-box"].hidden = steps.length === 0;
  if (element["beam-box"].open) showBeam();
  draw();
  if (state.revealed) drawGuess(report);
}

// The translation with the words that the other one does not have underlined.
function showTranslation(section, run, translation, compared) {
  const paragraph = section.querySelector(".translation");
  paragraph.lang = runNamed(run)?.target ?? "";
  const words = translation.text.split(" "), others = new Set(compared?.text.split(" ") ?? words);
  paragraph.replaceChildren(...words.flatMap((word, i) => {
    const shown = document.createElement("span");
    shown.textContent = word;
    shown.classList.toggle("differs", !others.has(word));
    return i ? [" ", shown] : [shown];
  }));
}

const logProb = ({ log_prob, pieces }) => label("logProb", signed(log_prob), signed(log_prob / pieces.length));

function showVerdict(section, text) {
  section.querySelector(".verdict").textContent = text;
}

// Did it matter: the change of log p of the first translation, and of its piece that changed most.
function mattered() {
  const differences = forced.log_probs.map((value, i) => value - intact.log_probs[i]);
  const worst = differences.reduce((best, value, i) => Math.abs(value) > Math.abs(differences[best]) ? i : best, 0);
  const number = label("mattered", signed(forced.log_prob - intact.log_prob), clean(intact.pieces[worst]), signed(differences[worst]));
  return `${label(changed.text === intact.text ? "same" : "another")} ${number}`;
}

const showBeam = () => drawBeam(element.beam, steps, intact.pieces);

// All maps of weights have one scale.
function draw() {
  const maps = {
    intact: shownMap(intact), changed: shownMap(changed),
    other: shownMap(other, { layer: state.otherLayer, head: state.otherHead }),
  };
  const most = Math.max(...Object.values(maps).map((map) => map?.most ?? 0));
  for (const [name, map] of Object.entries(maps)) {
    element[name].hidden = !map;
    if (map) drawMap(element[name], map, most, name === "intact" ? selection() : null, select, name === "intact" ? drag : undefined);
  }
  drawDifference(maps.intact);
  element.results.classList.toggle("two", Object.values(maps).filter(Boolean).length > 1 || !element.minus.hidden);
  inspect(maps.intact);
}

function drawMap(section, map, most, chosen, choose, dragged) {
  const name = `${section.querySelector("h2").textContent}: ${state.site}`;
  const drawn = state.view === "lines" ? drawLines : drawHeat;
  drawn(section.querySelector(".map"), map, { most, selection: chosen, name, choose, drag: dragged });
}

// Of two maps with the same rows: before and after the change, or of the two runs that read the same translation.
function drawDifference(first) {
  const compared = forced ?? reading;
  element["difference-box"].hidden = !compared;
  element.minus.hidden = !compared || !state.difference || !first;
  if (element.minus.hidden) return;
  const [one, two] = forced ? [forced, intact] : [intact, reading];
  const names = forced ? [label("yourChange"), label("original")] : [state.run, state.second];
  const choiceOfSecond = forced ? undefined : { layer: state.otherLayer, head: state.otherHead };
  const difference = differenceOf(shownMap(one), shownMap(two, choiceOfSecond));
  element["minus-name"].textContent = label("minus", ...names);
  showVerdict(element.minus, difference ? label("minusHint", difference.most.toFixed(2)) : label("otherWords"));
  const place = element.minus.querySelector(".map");
  if (!difference) { place.replaceChildren(); return; }
  drawHeat(place, difference, { most: difference.most, selection: selection(), name: element["minus-name"].textContent, choose: select, signed: true });
}

// ---------------------------------------------------------------- choosing

const selection = () => state.row === null && state.column === null ? null : { row: state.row, column: state.column };

function select({ row, column }) {
  Object.assign(state, { row, column });
  draw();
  writeAddress();
}

const inspect = (map) => drawInspector({ map, base: shownMap(forced), intact, refresh, report });

function drag({ row, column, weight, done }) {
  Object.assign(state, { row, column });
  element["weight-value"].textContent = element.weight.value = weight.toFixed(2);
  if (done) weigh(weight);
}

// The selected cell gets the weight.
function weigh(weight) {
  if (state.row !== null && state.column !== null) setWeight(shownMap(forced ?? intact), state.row, state.column, weight, refresh);
}

function fillChoices() {
  const numbered = (count) => count === 1 ? [[0, 0]] : [[MEAN, label("mean")], ...[...Array(count).keys()].map((i) => [i, i])];
  const within = (choice, count) => count === 1 ? 0 : choice === MEAN ? MEAN : Math.min(choice, count - 1);
  const fill = (maps, layer, head, layerSelect, headSelect) => {
    const [layers, heads] = [maps.weights.length, maps.weights[0].length];
    Object.assign(state, { [layer]: within(state[layer], layers), [head]: within(state[head], heads) });
    fillSelect(layerSelect, numbered(layers), state[layer]);
    fillSelect(headSelect, numbered(heads), state[head]);
  };
  fillSelect(element.site, SITES.filter((site) => intact.maps[site]).map((site) => [site, site]), state.site);
  fill(intact.maps[state.site], "layer", "head", element.layer, element.head);
  const others = other?.maps[state.site];
  if (others) fill(others, "otherLayer", "otherHead", element["other-layer"], element["other-head"]);
  Object.assign(element.unit, { value: state.unit });
  Object.assign(element.view, { value: state.view });
  element.difference.checked = state.difference;
  element["beam-size"].value = state.beamSize ?? "";
  element["length-penalty"].value = state.lengthPenalty ?? "";
  fillLayerControls();
}

function fillLayerControls() {
  element["layer-box"].hidden = false;
  element["half-width-box"].hidden = state.site !== "cross";
  element.temperature.value = chosenForLayer("temperature") ?? 1;
  fillSelect(element.normalizer, [["", label("asTrained")], ["softmax", "softmax"], ["sparsemax", "sparsemax"]], chosenForLayer("normalizer") ?? "");
  element["half-width"].value = chosenForLayer("half_width") ?? "";
}

function fillRuns() {
  const direction = ({ source, target }) => `${source} → ${target}`;
  fillSelect(element.run, runs.map((run) => [run.name, `${run.name} (${direction(run)})`]), state.run);
  const current = runNamed(state.run);
  const others = runs.filter((run) => run !== current && direction(run) === direction(current));
  if (!others.some(({ name }) => name === state.second)) state.second = "";
  element["second-box"].hidden = others.length === 0;
  fillSelect(element.second, [["", label("none")], ...others.map(({ name }) => [name, name])], state.second);
  element.text.lang = current.source;
}

async function fillExamples() {
  const { source } = runNamed(state.run);
  let examples = [];
  try { examples = await ask(`/v1/examples?run=${encodeURIComponent(state.run)}`, undefined, "examples"); } catch (error) { report(error); }
  const example = (text, name = text) => button(name, () => { element.text.value = text; begin(text); });
  const outside = OUTSIDE[source] ? [example(OUTSIDE[source], `${OUTSIDE[source]} (${label("outside")})`)] : [];
  element.examples.replaceChildren(...examples.slice(0, 5).map((pair) => example(pair.source)), ...outside);
  setPairs(examples, report);
}

// A new sentence: what was changed belongs to the old one.
function begin(text) {
  Object.assign(state, { text, changes: [], prefix: [], row: null, column: null });
  refresh();
}

// ---------------------------------------------------------------- files

const csv = (map) => ["", ...map.columns].map((cell) => JSON.stringify(cell)).join(",") + "\n"
  + map.rows.map((name, row) => [JSON.stringify(name), ...map.weights[row]].join(",")).join("\n") + "\n";

const FILES = {
  svg: async () => svgFile(pictureOf(element.intact)),
  png: async () => pngFile(pictureOf(element.intact)),
  json: async () => new Blob([JSON.stringify({ state, intact, forced, changed, other }, null, 1)], { type: "application/json" }),
  csv: async () => new Blob([csv(shownMap(intact))], { type: "text/csv" }),
};

// ---------------------------------------------------------------- start

function listenToChoices() {
  const on = (id, act) => element[id].addEventListener("change", ({ target }) => act(target));
  on("run", ({ value }) => { state.run = value; fillRuns(); fillExamples(); begin(element.text.value); });
  on("second", ({ value }) => { state.second = value; refresh(); });
  const choose = (id, key, forget) => on(id, ({ value }) => {
    state[key] = key === "site" || key === "unit" || key === "view" || value === MEAN ? value : Number(value);
    if (forget) Object.assign(state, { row: null, column: null });
    if (!intact) { writeAddress(); return; }
    fillChoices();
    draw();
    writeAddress();
    if (state.revealed) drawGuess(report);
  });
  for (const id of ["site", "layer", "head", "unit"]) choose(id, id, true);
  choose("view", "view");
  choose("other-layer", "otherLayer");
  choose("other-head", "otherHead");
  on("difference", ({ checked }) => { state.difference = checked; draw(); writeAddress(); });
  on("weight", ({ value }) => weigh(Number(value)));
  element.weight.addEventListener("input", () => { element["weight-value"].textContent = Number(element.weight.value).toFixed(2); });
  const number = (id, key) => on(id, (field) => {
    if (!field.reportValidity()) return;
    state[key] = field.value === "" ? null : Number(field.value);
    refresh();
  });
  number("beam-size", "beamSize");
  number("length-penalty", "lengthPenalty");
  const ofLayer = (id, what, trained) => on(id, (field) => {
    if (!field.reportValidity()) return;
    const value = field.type === "number" && field.value ? Number(field.value) : field.value;
    chooseForLayer(what, value === trained || value === "" ? null : value, refresh);
  });
  ofLayer("temperature", "temperature", 1);
  ofLayer("normalizer", "normalizer", "");
  ofLayer("half-width", "half_width", "");
}

async function start() {
  fillLabels();
  const groups = {
    examples: "sentence", choices: "site", "other-choices": "site", actions: "changes", alternatives: "alternatives",
    "numbers-box": "numbers", "beam-scroll": "beam",
  };
  for (const [id, name] of Object.entries(groups)) element[id].setAttribute("aria-label", label(name));
  element.language.textContent = label("other");
  element.language.lang = language === "vi" ? "en" : "vi";
  element.beam.dataset.name = label("beam");
  try { runs = await ask("/v1/runs"); } catch (error) { report(error); return; }
  const restore = () => { readAddress(runs); fillRuns(); element.text.value = state.text; fillExamples(); return refresh(); };
  element.ask.addEventListener("submit", (event) => { event.preventDefault(); begin(element.text.value); });
  listenToChoices();
  listenToGuess(report);
  element.explanation.addEventListener("toggle", () => intact && inspect(shownMap(intact)));
  element["beam-box"].addEventListener("toggle", () => { if (element["beam-box"].open && steps.length) showBeam(); });
  for (const [kind, made] of Object.entries(FILES)) {
    element[`save-${kind}`].addEventListener("click", async () => intact && save(`map.${kind}`, await made()));
  }
  darkness.addEventListener("change", () => { if (intact) draw(); drawGuess(report); });
  addEventListener("hashchange", restore);
  document.addEventListener("keydown", ({ key, target }) => {
    if (key === "Escape" && intact) select({ row: null, column: null });
    if ((key === "+" || key === "-") && target.closest?.("#intact") && state.row !== null && state.column !== null) {
      const now = shownMap(forced ?? intact).weights[state.row][state.column];
      weigh(Math.min(Math.max(now + (key === "+" ? 0.1 : -0.1), 0), 1));
    }
  });
  await restore();
}

start();
