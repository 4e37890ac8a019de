// The lab's page from top to bottom: it asks for a sentence's translation, shows it with its maps, and asks again after
// each change.

import { drawAttribution, fitAttribution, listenToAttribution, showAttribution, shownAttribution } from "/page/attribution.js";
import { darkness } from "/page/colors.js";
import { drawBeam } from "/page/beam.js";
import { button, clean, element, fillSelect, signed } from "/page/element.js";
import { drawGuess, listenToGuess, setPairs } from "/page/guess.js";
import { drawHeat } from "/page/heat.js";
import { chooseForLayer, chosenForLayer, drawInspector, setWeight } from "/page/inspector.js";
import { drawLines } from "/page/lines.js";
import { differenceOf, mapOf } from "/page/maps.js";
import { ask, isOutdated, listen, sentenceOf } from "/page/server.js";
import { MEAN, SITES, readAddress, state, writeAddress } from "/page/state.js";
import { pictureOf, pngFile, save, svgFile } from "/page/svg.js";
import { fillLabels, label, language } from "/page/text.js";

// Sentences unlike those of the embedded corpus: models trained on that corpus fail on them.
const OUTSIDE = {
  en: "The parliament passed the new budget on Tuesday.",
  vi: "Quốc hội đã thông qua ngân sách mới hôm thứ Ba.",
};

// The server's answers. `intact` is the run's own translation. With changed attention, `forced` contains the scores and
// maps of the same pieces, and `changed` is the translation that the search finds. `other` is the second run's own
// translation, and `reading` contains the second run's maps for the text of `intact`. `original` is the translation
// without the kept beginning. `beam` contains the steps of the search for the question `asked`.
let runs = [], intact = null, forced = null, changed = null, other = null, reading = null, original = null;
let beam = { asked: "", steps: [], score: 0 };

const runNamed = (name) => runs.find((run) => run.name === name);
const shownMap = (translation, choice) => translation ? mapOf(translation.maps[state.site], choice) : null;
const choiceOfSecond = () => ({ layer: state.otherLayer, head: state.otherHead });

// ---------------------------------------------------------------- asking

let turn = 0;

// Asks the server for everything that the page shows. A later call supersedes this one.
async function refresh() {
  const mine = ++turn;
  const latest = async (promise) => {
    const found = await promise;
    if (mine !== turn) throw new DOMException("A later call has begun.", "AbortError");
    return found;
  };
  writeAddress();
  element.results.ariaBusy = "true";
  if (intact?.run !== state.run || intact?.source !== state.text) showAttribution(null);
  element.status.classList.remove("error");
  element.status.textContent = label(state.text.trim() ? "waiting" : "empty");
  try {
    await latest(fitChoices());
    if (!state.text.trim()) { forget(); return; }
    const search = { beam_size: state.beamSize, length_penalty: state.lengthPenalty };
    const question = { run: state.run, text: state.text, prefix_ids: state.prefix, ...search };
    const asked = JSON.stringify(question);
    if (beam.asked !== asked || !state.changes.length) beam = { asked, ...await latest(watched(question, () => mine === turn)) };
    const changes = state.changes.flatMap((each) => each.changes), given = { ...question, target_ids: beam.ids };
    const first = changes.length ? await latest(ask("/v1/intervene", { ...given, changes })) : { intact: await latest(ask("/v1/attend", given)) };
    const whole = state.prefix.length ? await latest(ask("/v1/attend", { run: state.run, text: state.text, ...search }, "whole")) : null;
    const second = { run: state.second, text: state.text, ...search };
    const compared = state.second ? await latest(Promise.all([
      ask("/v1/attend", second, "own"), first.intact.text ? ask("/v1/attend", { ...second, target: first.intact.text }, "reading") : null,
    ])) : [null, null];
    // Assign all at once, so that the page never mixes answers to different questions.
    ({ intact, forced = null, changed = null } = first);
    [original, other, reading] = [whole, ...compared];
    Object.assign(intact, { run: state.run, source: state.text, second: state.second });
    element.status.textContent = "";
    show();
    element.results.ariaBusy = "false";
  } catch (error) { report(error); }
}

// Runs the search. If there are no changes, the translation appears piece by piece with its map.
async function watched(question, isLatest) {
  const steps = [], paragraph = element.intact.querySelector(".translation");
  const growing = !state.changes.length;
  if (growing) {
    element.intact.hidden = false;
    showNames();
    showVerdict(element.intact, "");
  }
  const where = { site: state.site, layer: state.layer === MEAN ? null : state.layer, head: state.head === MEAN ? null : state.head };
  const { ids, score } = await listen("/v1/translate/stream", { ...question, ...growing ? where : {} }, ({ text, beams, map }) => {
    steps.push(beams);
    if (!growing || !isLatest()) return;
    paragraph.textContent = text;
    // The answer contains only the selected map.
    const shown = mapOf(map, { layer: 0, head: 0 });
    drawMap(element.intact, shown, shown.most, null, () => {});
  });
  return { steps, ids, score };
}

const descriptions = new Map();

async function describe(name) {
  const path = `/v1/runs/${encodeURIComponent(name)}`;
  if (!descriptions.has(name)) descriptions.set(name, await ask(path));
  return descriptions.get(name);
}

// Replaces a selected site, layer or head that the runs lack with one that they have, and fills the controls.
async function fitChoices() {
  const run = state.run, { sites, search } = await describe(run);
  if (run !== state.run) return; // a later call fits the choices to the new run
  if (!sites[state.site]) state.site = "cross";
  const within = (choice, count) => count === 1 ? 0 : Number.isInteger(choice) && choice < count ? choice : MEAN;
  const numbered = (count) => count === 1 ? [[0, 0]] : [[MEAN, label("mean")], ...[...Array(count).keys()].map((i) => [i, i])];
  const fit = ({ layers, heads }, layer, head, layerSelect, headSelect) => {
    Object.assign(state, { [layer]: within(state[layer], layers), [head]: within(state[head], heads) });
    fillSelect(layerSelect, numbered(layers), state[layer]);
    fillSelect(headSelect, numbered(heads), state[head]);
  };
  fillSelect(element.site, SITES.filter((site) => sites[site]).map((site) => [site, label(site)]), state.site);
  fit(sites[state.site], "layer", "head", element.layer, element.head);
  const compared = state.second, second = compared ? (await describe(compared)).sites[state.site] : null;
  if (compared !== state.second) return;
  for (const each of document.querySelectorAll(".of-second")) each.hidden = !second;
  if (second) fit(second, "otherLayer", "otherHead", element["other-layer"], element["other-head"]);
  element.unit.value = state.unit;
  element.view.value = state.view;
  element.difference.checked = state.difference;
  for (const [id, key, own] of [["beam-size", "beamSize", search.beam_size], ["length-penalty", "lengthPenalty", search.length_penalty]]) {
    element[id].value = state[key] ?? "";
    element[id].placeholder = own ?? "";
    element[id].disabled = own === null;
  }
  element["layer-box"].hidden = false;
  element["half-width-box"].hidden = state.site !== "cross";
  element.temperature.value = chosenForLayer("temperature") ?? 1;
  fillSelect(element.normalizer, [["", label("asTrained")], ["softmax", "softmax"], ["sparsemax", "sparsemax"]], chosenForLayer("normalizer") ?? "");
  element["half-width"].value = chosenForLayer("half_width") ?? "";
  writeAddress();
}

// Shows an error, and removes results that do not belong to the selected runs and sentence.
function report(error) {
  if (isOutdated(error)) return;
  if (intact?.run !== state.run || intact?.source !== state.text || intact?.second !== state.second) forget();
  element.results.ariaBusy = "false";
  element.status.classList.add("error");
  element.status.textContent = sentenceOf(error);
}

function forget() {
  intact = forced = changed = other = reading = original = null;
  beam = { asked: "", steps: [], score: 0 };
  draw();
  showAttribution(null);
  element["beam-box"].hidden = true;
  element.results.ariaBusy = "false";
}

// ---------------------------------------------------------------- showing

function show() {
  showNames();
  showTranslation(element.intact, state.run, intact, changed);
  showVerdict(element.intact, original ? label("without", original.text, signed(original.log_prob)) : logProb(intact));
  if (changed) {
    showTranslation(element.changed, state.run, changed, intact);
    showVerdict(element.changed, mattered());
  }
  if (other) {
    showTranslation(element.other, state.second, other, intact);
    showVerdict(element.other, logProb(other));
  }
  element["beam-box"].hidden = beam.steps.length === 0;
  if (element["beam-box"].open) showBeam();
  draw();
  showAttribution(intact);
  if (changed) element.changed.querySelector(".verdict").scrollIntoView({ block: "nearest" });
  if (state.revealed) drawGuess(report);
}

function showNames() {
  element["intact-name"].textContent = label(state.prefix.length ? "continued" : "translation", state.run);
  element["changed-name"].textContent = label("withChanges", state.run);
  element["other-name"].textContent = label("translation", state.second);
}

// Shows the translation, and underlines the words that the other translation does not contain.
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

function showVerdict(section, text) {
  section.querySelector(".verdict").textContent = text;
}

const logProb = ({ log_prob, pieces }) => label("logProb", signed(log_prob), signed(log_prob / pieces.length));

// Whether the changes matter: how log p of the first translation changes, and which of its pieces changes most.
function mattered() {
  const differences = forced.log_probs.map((value, i) => value - intact.log_probs[i]);
  const worst = differences.reduce((best, value, i) => Math.abs(value) > Math.abs(differences[best]) ? i : best, 0);
  const [total, most] = [signed(forced.log_prob - intact.log_prob), signed(differences[worst])];
  const number = total === "0.00" && most === "0.00" ? label("didNotMatter") : label("mattered", total, clean(intact.pieces[worst]), most);
  return `${label(changed.text === intact.text ? "same" : "another")} ${number}`;
}

function showBeam() {
  drawBeam(element.beam, beam.steps, intact);
  element["beam-hint"].textContent = label("beamHint", signed(beam.score));
}

const shownMaps = () => ({ intact: shownMap(intact), changed: shownMap(changed), other: shownMap(other, choiceOfSecond()) });

// All maps of weights share one color scale.
function draw() {
  const maps = shownMaps(), most = Math.max(...Object.values(maps).map((map) => map?.most ?? 0));
  for (const [name, map] of Object.entries(maps)) element[name].hidden = !map;
  const minus = differenceShown(maps.intact);
  // Set the layout first, because the width of a section determines the size of its cells.
  element.results.classList.toggle("several", Object.values(maps).filter(Boolean).length > 1);
  for (const [name, map] of Object.entries(maps)) {
    if (!map) continue;
    const choose = (place) => select({ ...place, of: name });
    drawMap(element[name], map, most, state.of === name ? selection() : null, choose, name === "intact" ? drag : undefined);
  }
  if (minus) {
    drawHeat(element.minus.querySelector(".map"), minus, {
      most: minus.most, selection: state.of === "intact" ? selection() : null, name: element["minus-name"].textContent,
      choose: (place) => select({ ...place, of: "intact" }), signed: true,
    });
  }
  for (const kind of Object.keys(FILES)) element[`save-${kind}`].disabled = !intact;
  inspect();
}

function drawMap(section, map, most, chosen, choose, dragged) {
  const name = `${section.querySelector("h2").textContent}: ${label(state.site)}`;
  const drawn = state.view === "lines" ? drawLines : drawHeat;
  drawn(section.querySelector(".map"), map, { most, selection: chosen, name, choose, drag: dragged });
}

// The difference between two maps with the same rows: after and before a change, or of two runs for one translation.
function differenceShown(first) {
  const compared = forced ?? reading;
  element["difference-box"].hidden = !compared;
  element.minus.hidden = !compared || !state.difference || !first;
  if (element.minus.hidden) return null;
  const [one, two] = forced ? [shownMap(forced), first] : [first, shownMap(reading, choiceOfSecond())];
  const names = forced ? [label("yourChange"), label("original")] : [state.run, state.second];
  const difference = differenceOf(one, two);
  element["minus-name"].textContent = label("minus", ...names);
  showVerdict(element.minus, difference ? label("minusHint", ...names, intact.text) : label("otherWords"));
  if (!difference) element.minus.querySelector(".map").replaceChildren();
  return difference;
}

// ---------------------------------------------------------------- choosing

const selection = () => state.row === null && state.column === null ? null : { row: state.row, column: state.column };

function select({ row, column, of }) {
  Object.assign(state, { row, column, of });
  draw();
  writeAddress();
}

function inspect() {
  const map = shownMaps()[state.of];
  drawInspector({ map, name: state.of, changed: shownMap(forced), intact, refresh, report });
}

function drag({ row, column, weight, done }) {
  Object.assign(state, { row, column, of: "intact" });
  element["weight-value"].textContent = element.weight.value = weight.toFixed(2);
  if (done) weigh(weight);
}

// Gives the selected cell this weight.
function weigh(weight) {
  const map = shownMap(forced ?? intact), { row, column } = state;
  if (state.of === "intact" && row !== null && column !== null && !map.isBlocked(row, column)) setWeight(map, row, column, weight, refresh);
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
  element.examples.replaceChildren(...examples.slice(0, 3).map((pair) => example(pair.source)), ...outside, ...examples.slice(3, 6).map((pair) => example(pair.source)));
  setPairs(examples, report);
}

// Starts with a new sentence, and drops the changes, which belong to the old one.
function begin(text) {
  Object.assign(state, { text, changes: [], prefix: [], row: null, column: null, of: "intact" });
  writeAddress(true);
  refresh();
}

// ---------------------------------------------------------------- files

// The maps on the page as CSV; the attribution comes last.
function csv() {
  const rows = [], attribution = shownAttribution();
  const add = (name, map) => map.rows.forEach((row, r) => map.columns.forEach((column, c) => rows.push([name, row, column, map.weights[r][c]])));
  for (const [name, map] of Object.entries(shownMaps())) if (map) add(name, map);
  if (attribution) add(state.method, { rows: attribution.outputs, columns: attribution.columns, weights: attribution.attribution });
  const written = (cell) => typeof cell === "string" ? `"${cell.replaceAll('"', '""')}"` : cell;
  return ["map,target,source,weight", ...rows.map((row) => row.map(written).join(",")), ""].join("\n");
}

const drawn = () => pictureOf([...document.querySelectorAll(".result:not([hidden])")].filter((section) => section.querySelector("svg")));

const FILES = {
  svg: async () => svgFile(drawn()),
  png: async () => pngFile(drawn()),
  json: async () => new Blob([JSON.stringify({ state, intact, forced, changed, other, beam, attribution: shownAttribution() }, null, 1)], { type: "application/json" }),
  csv: async () => new Blob([csv()], { type: "text/csv" }),
};

// ---------------------------------------------------------------- start

function listenToChoices() {
  const on = (id, act) => element[id].addEventListener("change", ({ target }) => act(target));
  on("run", ({ value }) => {
    // A run with only one layer or head leaves no choice, so it must not determine the choice for the next run.
    const { layers, heads } = descriptions.get(state.run)?.sites[state.site] ?? {};
    if (layers === 1) state.layer = MEAN;
    if (heads === 1) state.head = MEAN;
    state.run = value;
    fillRuns();
    fillExamples();
    begin(element.text.value);
  });
  on("second", ({ value }) => { Object.assign(state, { second: value, of: "intact" }); refresh(); });
  const choose = (id, key, unselects) => on(id, ({ value }) => {
    state[key] = key === "site" || key === "unit" || key === "view" || value === MEAN ? value : Number(value);
    if (unselects) Object.assign(state, { row: null, column: null, of: "intact" });
    fitChoices().then(() => { draw(); if (state.revealed) drawGuess(report); }).catch(report);
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
    examples: "sentence", choices: "site", actions: "changes", alternatives: "alternatives",
    "numbers-box": "numbers", "beam-scroll": "beam",
  };
  for (const [id, name] of Object.entries(groups)) element[id].setAttribute("aria-label", label(name));
  element.language.textContent = label("other");
  element.language.lang = language === "vi" ? "en" : "vi";
  element.beam.dataset.name = label("beam");
  try { runs = await ask("/v1/runs"); } catch (error) { report(error); return; }
  const restore = async () => {
    readAddress(runs);
    fitAttribution();
    fillRuns();
    element.text.value = state.text;
    await refresh();
    if (!state.text && !element.status.classList.contains("error")) element.status.textContent = "";
    await fillExamples();
  };
  element.ask.addEventListener("submit", (event) => {
    event.preventDefault();
    if (element.text.value === state.text) refresh();
    else begin(element.text.value);
  });
  listenToChoices();
  listenToAttribution();
  listenToGuess(report);
  element.explanation.addEventListener("toggle", () => intact && inspect());
  element["beam-box"].addEventListener("toggle", () => { if (element["beam-box"].open && beam.steps.length) showBeam(); });
  for (const [kind, made] of Object.entries(FILES)) {
    element[`save-${kind}`].addEventListener("click", async () => save(`attention-${state.run.replaceAll("/", "-")}-${state.site}.${kind}`, await made()));
  }
  element["copy-link"].addEventListener("click", async () => {
    element.status.classList.remove("error");
    // A page loaded from another machine without TLS has no access to the clipboard.
    const copying = navigator.clipboard ? navigator.clipboard.writeText(location.href) : Promise.reject();
    element.status.textContent = label(await copying.then(() => "copied", () => "copyFailed"));
  });
  darkness.addEventListener("change", () => { draw(); drawAttribution(); drawGuess(report); });
  addEventListener("resize", () => { draw(); drawAttribution(); });
  addEventListener("hashchange", restore);
  document.addEventListener("keydown", ({ key, target, ctrlKey, metaKey, altKey }) => {
    if (ctrlKey || metaKey || altKey) return; // a browser shortcut
    if (key === "Escape" && intact) select({ row: null, column: null, of: "intact" });
    const now = shownMap(forced ?? intact)?.weights[state.row]?.[state.column];
    if ((key === "+" || key === "-") && target.closest?.("#intact") && now !== undefined) {
      weigh(Math.min(Math.max(now + (key === "+" ? 0.1 : -0.1), 0), 1));
    }
  });
  await restore();
}

start();
