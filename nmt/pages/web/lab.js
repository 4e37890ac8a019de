// @ts-check
// The lab's page from top to bottom: it asks for a sentence's translation, shows it with its maps, and asks again after
// each change.

import { flushAnchor } from "./address.js";
import { darkness, onPaper } from "./colors.js";
import { button, clamp, copied, element, fillSelect, fitHeight, hasModifier, make, part, reachIfLong } from "./dom.js";
import { alignedLayouts, annotatedLayout, drawHeatMap, leastWidth } from "./heat_map.js";
import { Refused, Unreachable } from "./engine/interface.js";
import { fillLabels, label } from "./i18n.js";
import { drawAttribution, fitAttribution, listenToAttribution, showAttribution, shownAttribution } from "./lab/attribution.js";
import { engine, isOutdated, latest, patiently, sentenceOf, stop } from "./lab/asking.js";
import { drawBeam } from "./lab/beam.js";
import { offerDirection } from "./lab/direction.js";
import { drawGuess, listenToGuess, setPairs } from "./lab/guess.js";
import { drawHeads, isStrip, isWide, listenToHeads } from "./lab/heads.js";
import { listenToHover, setShown } from "./lab/hover.js";
import { blockWord, chooseForLayer, chosenForLayer, drawInspector, placeName, setWeight } from "./lab/inspector.js";
import { selectedMap, tipOf } from "./lab/maps.js";
import { listenToFiles } from "./lab/file.js";
import { isPresenting, listenToPresentation } from "./lab/presentation.js";
import { pictureOf, pngFile, save, svgFile } from "./lab/save.js";
import { listenToShare } from "./lab/share.js";
import { keptIds, readAddress, selectedPlace, state, subject, unchanged, writeAddress } from "./lab/state.js";
import { forgetSteps, hideLater, listenToSteps } from "./lab/steps.js";
import { fillGlossary, withTerm, withTerms } from "./lab/terms.js";
import { closeMenu, forgetWords, listenToTranslation, showWords } from "./lab/translation.js";
import { fillWords, quoted, signed, timesOf } from "./lab/wording.js";
import { decimal, language, nameOfLanguage, otherLanguage } from "./language.js";
import { drawLines } from "./lines.js";
import { MEAN, SITES, choiceOf, choicesOf, differenceOf, reweighted } from "./map.js";
import { isSpecial } from "./words.js";

/** @typedef {import("./engine/interface.js").Translation} Translation */
/** @typedef {import("./engine/interface.js").Description} Description */
/** @typedef {import("./engine/interface.js").Question} Question */
/** @typedef {import("./lab/maps.js").LabMap} LabMap */
/** @typedef {import("./draw.js").Cell} Cell */
/** @typedef {import("./map.js").Choice} Choice */
/** @typedef {HTMLElement} Section with a heading, a verdict and a map */

// Sentences unlike those of the embedded corpus: models trained on that corpus fail on them.
/** @type {Record<string, string>} */
const OUTSIDE = {
  en: "The parliament passed the new budget on Tuesday.",
  vi: "Quốc hội đã thông qua ngân sách mới hôm thứ Ba.",
};

/** The labels that say what a map of a site shows: beside all heads, and above maps whose headings need the room. @type {Record<string, [string, string]>} */
const LEGENDS = { cross: ["legend", "legendShort"], encoder_self: ["legendOfSource", "legendOfSourceShort"], decoder_self: ["legendOfRead", "legendOfReadShort"] };

/** @type {import("./engine/interface.js").Run[]} */
let runs = [];
/**
 * The engine's answers to the latest question.
 * @typedef {object} Answers
 * @property {Translation | null} intact the run's own translation
 * @property {Translation | null} forced its pieces with changed attention
 * @property {Translation | null} changed the translation that the search finds with changed attention
 * @property {Translation | null} other the second run's own translation
 * @property {Translation | null} reading the second run's maps for the text of `intact`
 * @property {Translation | null} original the translation without the kept beginning
 */
/** @type {Answers} */
const NONE = { intact: null, forced: null, changed: null, other: null, reading: null, original: null };
let answers = NONE;
/** The search for the question `asked`. @typedef {import("./engine/interface.js").Found & { asked: string, steps: import("./engine/interface.js").Hypothesis[][] }} Search */
/** @type {Search} */
const NO_SEARCH = { asked: "", steps: [], ids: [], text: "", score: 0, unknown_characters: "", unknown_words: [] };
let search = NO_SEARCH;
/** The drawing of the translation's map. @type {import("./heat_map.js").Drawing | null} */
let intactDrawing = null;

const coarse = matchMedia("(pointer: coarse)");
const runNamed = (/** @type {string} */ name) => runs.find((run) => run.name === name);
/** @param {Translation | null} translation */
function shownMap(translation, layer = state.layer, head = state.head) {
  const maps = translation?.maps[state.site]; // a run may lack the site that the other one has
  return maps ? selectedMap(maps, layer, head) : null;
}
const mapOfSecond = (/** @type {Translation | null} */ translation) => shownMap(translation, state.otherLayer, state.otherHead);

// ---------------------------------------------------------------- asking

let turn = 0;
// The field whose change asked the latest question.
let cause = element.text;

/**
 * Asks for everything that the page shows. A later call supersedes this one.
 * @param {boolean} [isDropped] whether changes of the previous translation have been dropped, which the page says
 */
async function refresh(isDropped = false) {
  const mine = ++turn;
  /** @template T @param {Promise<T>} promise */
  const current = async (promise) => {
    const answer = await promise;
    if (mine !== turn) throw new DOMException("A later call has begun.", "AbortError");
    return answer;
  };
  /** @param {string} kind @param {Question} question */
  const attend = (kind, question) => latest(kind, (signal) => engine.attend(question, signal));
  stopAsking();
  writeAddress(isDropped);
  element.results.ariaBusy = "true";
  // Controls of the previous sentence or run would change the new translation.
  setInert(answers.intact !== null && !isCurrent());
  element.answer.classList.remove("typed");
  if (!isCurrent()) showAttribution(null);
  element.status.classList.remove("error");
  element.asking.append(element.status);
  for (const field of document.querySelectorAll("#text, input[type=number]")) field.removeAttribute("aria-invalid");
  element.status.textContent = label(state.text.trim() ? "waiting" : "empty");
  try {
    await current(fitChoices());
    const { run, second, text: source } = state, kept = keptIds();
    if (!source.trim()) { forget(); return; }
    const settings = { beam_size: state.beamSize, length_penalty: state.lengthPenalty };
    const question = { run, text: source, prefix_ids: kept, ...settings };
    const asked = JSON.stringify(question);
    const found = search.asked === asked && state.changes.length ? search : { asked, ...await current(watched(question, () => mine === turn)) };
    const changes = state.changes.flatMap((edit) => edit.changes), given = { ...question, target_ids: found.ids };
    const first = changes.length ? await current(latest("intervene", (signal) => engine.intervene({ ...given, changes }, signal)))
      : { intact: await current(attend("attend", given)), forced: null, changed: null };
    const original = kept.length ? await current(attend("whole", { run, text: source, ...settings })) : null;
    const asSecond = { run: second, text: source, ...settings };
    const [other, reading] = second ? await current(Promise.all([
      attend("own", asSecond), first.intact.text ? attend("reading", { ...asSecond, target: first.intact.text }) : null,
    ])) : [null, null];
    // Assign all at once, so that the page never mixes answers to different questions.
    answers = { ...first, intact: sameOrNew(first.intact), original, other, reading };
    search = found;
    Object.assign(subject, { run, source, second });
    announce(isDropped ? label("dropped") : "");
    show();
    element.results.ariaBusy = "false";
  } catch (error) {
    if (!isOutdated(error) && isCurrent() && subject.second === state.second) show(); // a search had begun to replace it
    report(error);
  }
}

/** The translation on the page if an answer repeats it, so that what is known about it is not asked and drawn again. @param {Translation} translation */
function sameOrNew(translation) {
  const { intact } = answers;
  const isSame = intact && isCurrent() && intact.text === translation.text && intact.log_probs.length === translation.log_probs.length
    && intact.log_probs.every((logProb, i) => intact.ids[i] === translation.ids[i] && Math.abs(logProb - translation.log_probs[i]) < 1e-4);
  return isSame ? intact : translation;
}

/** Whether the answers belong to the selected run and sentence. */
const isCurrent = () => answers.intact !== null && subject.run === state.run && subject.source === state.text;

// Whether the page shows the map of an unfinished translation, which must not be drawn over.
let isGrowing = false;
// Drawing the map of a long sentence takes much longer than a step, so it grows in larger steps.
const CELLS_PER_STEP = 500;

/**
 * Runs the search. If there are no changes, the translation appears piece by piece with its map.
 * @param {Question} question @param {() => boolean} isLatest
 */
async function watched(question, isLatest) {
  /** @type {Search["steps"]} */
  const steps = [];
  const paragraph = part(element.answer, ".translation"), growing = !state.changes.length;
  let drawnCells = 0;
  forgetSteps();
  if (growing) {
    isGrowing = true;
    setShown({});
    for (const kind of Object.keys(FILES)) element[`save-${kind}`].disabled = true;
    forgetWords();
    element.intact.hidden = false;
    element.steps.hidden = true;
    showNames();
    showVerdict(element.intact, "");
  }
  const result = await latest("translate", (signal) => engine.translate({ ...question, ...growing ? selectedPlace() : {} }, signal, ({ text, beams, map }) => {
    steps.push(beams);
    if (!map || !isLatest()) return;
    paragraph.textContent = text;
    if (drawnCells > CELLS_PER_STEP * steps.length) return;
    drawnCells += map.outputs.length * map.columns.length;
    // The answer contains only the selected map.
    const shown = selectedMap(map, 0, 0);
    drawMap(element.intact, shown, shown.most, null, () => {}, annotatedLayout(part(element.intact, ".map"), shown));
  }));
  return { steps, ...result };
}

/** @type {Map<string, Description>} */
const descriptions = new Map();

/** Descriptions that are being fetched; callers in the meantime share the promise. @type {Map<string, Promise<Description>>} */
const describing = new Map();

/** @param {string} run */
async function describe(run) {
  const known = descriptions.get(run);
  if (known) return known;
  const asked = describing.get(run) ?? engine.describe(run, new AbortController().signal);
  describing.set(run, asked);
  try {
    const description = await asked;
    descriptions.set(run, description);
    return description;
  } finally {
    describing.delete(run); // after an error, it can be asked again
  }
}

/** What a known run is at the selected site, in a sentence. @param {string} run */
function aboutRun(run) {
  const description = descriptions.get(run), site = description?.sites[state.site];
  if (!description || !site) return "";
  // The names of the command line, such as scaled_dot.
  const names = [site.scorer, site.window, site.normalizer].map((name) => name === "NoScore" ? "none" : name.replace(/(?<=[a-z])(?=[A-Z])/g, "_").toLowerCase());
  const format = description.quantization === "int8" ? label("inEightBits") : "";
  return label("about", run, description.model, label(state.site), ...names, description.parameters.toLocaleString(language), format);
}

/** What the map of the first run shows, for the control that changes it. Layer and head are named if the run has several. */
function chosenInWords() {
  const hasOne = element.layer.disabled && element.head.disabled;
  return [hasOne ? label(state.site) : placeName(), label(state.unit)].join(" · ");
}

/** Choices without an alternative, because there was a single layer or head; the next site or run begins with the mean. @type {Set<string>} */
const onlyChoices = new Set();

/** Replaces a selected site, layer or head that the runs lack with one that they have, and fills the controls. */
async function fitChoices() {
  const { run, second } = state, { sites, search: settings, embedded } = await describe(run);
  if (run !== state.run) return; // a later call fits the choices to the new run
  element.warning.hidden = !embedded;
  if (!sites[state.site]) state.site = "cross";
  /** @param {"layer" | "head" | "otherLayer" | "otherHead"} key @param {number} count @param {import("./dom.js").PageElement} select */
  const fit = (key, count, select) => {
    const choice = state[key], wasOnly = onlyChoices.delete(key);
    state[key] = count === 1 ? 0 : choice !== MEAN && choice < count && !wasOnly ? choice : MEAN;
    if (count === 1) onlyChoices.add(key);
    fillSelect(select, choicesOf(count).map((number) => [number, number === MEAN ? label("mean") : number]), state[key]);
  };
  fillSelect(element.site, SITES.filter((site) => sites[site]).map((site) => [site, label(site)]), state.site);
  fit("layer", sites[state.site].layers, element.layer);
  fit("head", sites[state.site].heads, element.head);
  const ofSecond = second ? (await describe(second)).sites[state.site] : null;
  if (second !== state.second) return;
  element.about.textContent = [run, second].map(aboutRun).join(" ");
  element.about.hidden = false;
  for (const item of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll(".of-second"))) item.hidden = !ofSecond;
  if (ofSecond) {
    fit("otherLayer", ofSecond.layers, element["other-layer"]);
    fit("otherHead", ofSecond.heads, element["other-head"]);
  }
  showLegend();
  element.chosen.textContent = chosenInWords();
  element.unit.value = state.unit;
  element.view.value = state.view;
  element.difference.checked = state.difference;
  for (const { field, chosen, configured } of [
    { field: element["beam-size"], chosen: state.beamSize, configured: settings.beam_size },
    { field: element["length-penalty"], chosen: state.lengthPenalty, configured: settings.length_penalty },
  ]) {
    field.value = chosen ?? "";
    field.placeholder = String(configured ?? "");
    field.disabled = configured === null;
  }
  element["layer-box"].hidden = false;
  element["half-width-box"].hidden = state.site !== "cross";
  element.temperature.value = chosenForLayer("temperature") ?? 1;
  fillSelect(element.normalizer, [["", label("asTrained")], ["softmax", "softmax"], ["sparsemax", "sparsemax"]], String(chosenForLayer("normalizer") ?? ""));
  element["half-width"].value = chosenForLayer("half_width") ?? "";
  writeAddress();
}

/** Shows an error that leaves the translation as it is. @param {unknown} error */
function complain(error) {
  if (isOutdated(error)) return;
  element.status.classList.add("error");
  element.status.textContent = sentenceOf(error);
}

/** Shows why there is no translation, and removes results that do not belong to the selected runs and sentence. @param {unknown} error */
function report(error) {
  if (isOutdated(error)) return;
  if (!isCurrent() || subject.second !== state.second) forget();
  element.results.ariaBusy = "false";
  // The sentence is beside the field that caused it.
  if (error instanceof Refused) {
    cause.ariaInvalid = "true";
    if (cause === element.text) part(element.ask, ".wide").after(element.status);
    else if (cause.checkVisibility()) cause.closest(".controls")?.after(element.status);
  }
  complain(error);
}

/** Switches the translation, its maps and the controls beside them off, or on again. @param {boolean} isInert */
function setInert(isInert) {
  for (const name of ["answer", "side", "results", "heads"]) element[name].inert = isInert;
}

/** Makes the engine stop computing the answers that `refresh` asks for. */
function stopAsking() {
  for (const kind of ["translate", "attend", "intervene", "whole", "own", "reading"]) stop(kind);
}

/** Stops the translation that has begun. */
function cancel() {
  turn++;
  stopAsking();
  if (!isCurrent() || subject.second !== state.second) forget();
  else show();
  element.results.ariaBusy = "false";
  announce(label("stopped"));
}

/** @param {string} text */
function announce(text) {
  element.status.classList.remove("error");
  element.status.textContent = text;
}

function forget() {
  isGrowing = false;
  setInert(false);
  answers = NONE;
  search = NO_SEARCH;
  part(element.answer, ".translation").replaceChildren();
  forgetWords();
  forgetSteps();
  showUnknown();
  element.outcome.hidden = true;
  draw();
  showAttribution(null);
  element["beam-box"].hidden = true;
  element.results.ariaBusy = "false";
}

// ---------------------------------------------------------------- showing

function show() {
  const { intact, forced, changed, other, original } = answers;
  if (!intact) return;
  isGrowing = false;
  setInert(false);
  showNames();
  part(element.answer, ".translation").lang = runNamed(state.run)?.target ?? "";
  showWords(intact, changed);
  showVerdict(element.intact, original ? label("without", original.text || label("wroteNothing"), signed(original.log_prob)) : logProb(intact));
  element.outcome.hidden = !changed;
  if (changed && forced) {
    showTranslation(element.outcome, state.run, changed, intact);
    element["outcome-name"].textContent = label("nowIs");
    // The browser lays the page out once more before the next picture; to measure now would make it do so twice.
    requestAnimationFrame(() => reachIfLong(part(element.outcome, ".translation")));
    showTranslation(element.changed, state.run, changed, intact);
    showVerdict(element.outcome, `${label(changed.text === intact.text ? "same" : "another")} ${mattered(intact, forced)}`);
  }
  if (other) {
    showTranslation(element.other, state.second, other, intact);
    showVerdict(element.other, logProb(other));
  }
  element["beam-box"].hidden = search.steps.length === 0;
  showBeam();
  showUnknown();
  draw();
  showAttribution({ ...subject, ids: intact.ids });
  if (state.revealed) drawGuess(complain);
}

function showLegend() { element.legend.textContent = label(LEGENDS[state.site][element.results.classList.contains("whole-width") ? 1 : 0]); }

function showNames() {
  element["intact-name"].textContent = label(state.prefix.length ? "continued" : state.locks.length ? "withLocks" : "translation", state.run);
  element["changed-name"].textContent = label("withChanges", state.run);
  element["other-name"].textContent = label("translation", state.second);
}

/**
 * Shows the translation, and underlines the words that the other translation does not contain.
 * @param {Section} section @param {string} run @param {Translation} translation @param {Translation | null} compared
 */
function showTranslation(section, run, translation, compared) {
  const paragraph = part(section, ".translation");
  paragraph.lang = runNamed(run)?.target ?? "";
  fillWords(paragraph, translation.text, compared?.text, (word, i) => make("span", { "data-word": i }, word));
}

/** @param {Section} section @param {string} text */
function showVerdict(section, text) {
  part(section, ".verdict").replaceChildren(...withTerms(text));
}

const logProb = (/** @type {Translation} */ { log_prob, pieces }) => label("logProb", signed(log_prob), signed(log_prob / pieces.length));

/** How many times less likely the first translation becomes, and which of its pieces changes most. @param {Translation} intact @param {Translation} forced */
function mattered(intact, forced) {
  const differences = forced.log_probs.map((value, i) => value - intact.log_probs[i]);
  const worst = differences.reduce((best, value, i) => Math.abs(value) > Math.abs(differences[best]) ? i : best, 0);
  const [total, most] = [signed(forced.log_prob - intact.log_prob), signed(differences[worst])];
  if (total === "0.00" && most === "0.00") return label("didNotMatter");
  const change = forced.log_prob - intact.log_prob;
  const name = Math.abs(change) < Math.log(1.1) ? "hardlyMattered" : change < 0 ? "lessLikely" : "likelier";
  return label(name, total, quoted(intact.pieces[worst]), most, timesOf(change));
}

/** Names the words and characters of the sentence that the run never saw in training. */
function showUnknown() {
  const { unknown_words: words, unknown_characters: characters } = search;
  const list = (/** @type {string[]} */ texts) => texts.slice(0, 8).map(quoted).join(", ");
  element.unknown.textContent = [
    words.length ? label(words.length === 1 ? "unknownWord" : "unknownWords", list(words)) : "", characters ? label("unknownCharacters", list([...characters])) : "",
  ].filter(Boolean).join(" ");
  element.unknown.hidden = !element.unknown.textContent;
  const from = runNamed(state.run), opposite = from && oppositeOf(from);
  offerDirection(isCurrent() ? state.text : "", from, opposite, translateBack);
}

/** Draws the beam if its box is open. */
function showBeam() {
  const { intact } = answers;
  if (!intact || !search.steps.length || !element["beam-box"].open) return;
  drawBeam(element.beam, search.steps, intact);
  element["beam-hint"].textContent = label("beamHint", signed(search.score));
}

/** @returns {Record<string, LabMap | null>} */
const shownMaps = () => ({ intact: shownMap(answers.intact), changed: shownMap(answers.changed), other: mapOfSecond(answers.other) });

/** The end of the color scale that all maps share. @param {Record<string, LabMap | null>} maps */
const mostOf = (maps) => Math.max(...Object.values(maps).map((map) => map?.most ?? 0));

/** Whether a result can be seen: a presentation shows fewer. To ask the browser would make it compute all styles. @param {string} name */
const isShown = (name) => !element[name].hidden && !(isPresenting() && element[name].classList.contains("not-presented"));

/** Draws all maps of weights with one color scale. The tables of all heads do not depend on the selected cell. */
function draw({ withHeads = true } = {}) {
  if (isGrowing) return;
  const maps = shownMaps(), most = mostOf(maps);
  for (const [name, map] of Object.entries(maps)) element[name].hidden = !map;
  const minus = differenceShown(maps.intact);
  setAside();
  // Set the layout first, because the width of a section determines the size of its cells.
  element.results.classList.toggle("whole-width", [maps.changed, maps.other, minus].some(Boolean) || (maps.intact !== null && isWide(maps.intact, headsShown())));
  showLegend();
  /** @type {[string, import("./map.js").AttentionMap][]} */
  const shown = Object.entries({ ...maps, minus }).flatMap(([name, map]) => map && isShown(name) ? [[name, map]] : []);
  element.results.style.setProperty("--columns", String(columnsFor(shown.map(([, map]) => map))));
  if (withHeads) drawHeads(headsShown(), draw, complain);
  const strip = isStrip() ? element.heads.offsetHeight : 0, below = strip && strip + VERDICT_ROOM;
  document.documentElement.style.setProperty("--strip", `${strip}px`);
  const layouts = alignedLayouts(shown.map(([name, map]) => ({ map, layout: annotatedLayout(part(element[name], ".map"), map, below) })));
  shown.forEach(([name], i) => {
    const map = maps[name];
    const choose = (/** @type {Cell} */ cell) => select(cell, name);
    if (map) drawMap(element[name], map, most, state.of === name ? selection() : null, choose, layouts[i], name === "intact" ? drag : undefined);
  });
  if (minus && isShown("minus")) {
    drawHeatMap(part(element.minus, ".map"), minus, layouts[layouts.length - 1], {
      most: minus.most, selection: state.of === "intact" ? selection() : null, name: element["minus-name"].textContent ?? "",
      choose: (cell) => select(cell, "intact"), signed: true, tip: tipOf(minus),
    });
  }
  for (const [name] of shown) part(element[name], ".map").style.height = "";
  setShown(Object.fromEntries(shown.map(([name, map]) => [name, { map, pieces: piecesOf(name) }])));
  hideLater(maps.intact);
  for (const kind of Object.keys(FILES)) element[`save-${kind}`].disabled = !answers.intact;
  inspect();
}

/** Takes the old drawings out of the layout, which measuring would otherwise compute for each of their cells; their room stays. */
function setAside() {
  for (const section of ["intact", "changed", "other", "minus"]) {
    const container = part(element[section], ".map"), old = container.firstElementChild;
    if (element[section].hidden) container.replaceChildren();
    else if (old instanceof SVGElement) {
      container.style.height = `${old.getAttribute("height")}px`;
      old.style.display = "none";
    }
  }
}

const GAP = 28; // between results, as in lab.css
const VERDICT_ROOM = 10; // for the line below a map
const ENOUGH = 320; // pixels in which a wide map is scrolled

/** How many results are side by side: all of them if their maps have room, and else rows of the same length. @param {import("./map.js").AttentionMap[]} maps */
function columnsFor(maps) {
  const results = [...element.results.querySelectorAll(".result:not([hidden])")].filter(({ id }) => isShown(id)).length;
  const room = Math.floor((element.maps.clientWidth - 32 + GAP) / (Math.min(Math.max(...maps.map(leastWidth), 1), ENOUGH) + GAP));
  return Math.ceil(results / Math.ceil(results / Math.max(room, 1)));
}

/** The pieces of the translation whose map a section shows. @param {string} name */
const piecesOf = (name) => (name === "changed" ? answers.changed : name === "other" ? answers.other : answers.intact)?.pieces ?? [];

/** The maps of all heads of the selected site, of one run or both. @returns {import("./lab/heads.js").HeadsOfRun[]} */
function headsShown() {
  const { layer, head, otherLayer, otherHead, site } = state, first = answers.intact?.maps[site], second = answers.other?.maps[site];
  return [
    ...first ? [/** @type {const} */ ({ run: subject.run, maps: first, layer, head, layerKey: "layer", headKey: "head" })] : [],
    ...second ? [/** @type {const} */ ({ run: subject.second, maps: second, layer: otherLayer, head: otherHead, layerKey: "otherLayer", headKey: "otherHead" })] : [],
  ];
}

/**
 * @param {Section} section @param {LabMap} map @param {number} most @param {Cell | null} selected
 * @param {(cell: Cell) => void} choose @param {import("./heat_map.js").Layout} layout @param {import("./heat_map.js").Look["drag"]} [dragged]
 */
function drawMap(section, map, most, selected, choose, layout, dragged) {
  const container = part(section, ".map"), name = `${part(section, "h2").textContent}: ${label(state.site)}`;
  const look = { most, selection: selected, name, choose, drag: dragged, tip: tipOf(map) };
  /** @type {import("./heat_map.js").Drawing | null} */
  let drawing = null;
  if (state.view === "lines") drawLines(container, map, look);
  else drawing = drawHeatMap(container, map, layout, look);
  if (section === element.intact) intactDrawing = drawing;
}

/** The difference between two maps with the same rows: after and before a change, or of two runs for one translation. @param {LabMap | null} first */
function differenceShown(first) {
  const { intact, forced, reading } = answers, compared = forced ?? reading;
  element["difference-box"].hidden = !compared;
  element.minus.hidden = !compared || !state.difference || !first;
  if (element.minus.hidden || !intact) return null;
  const [one, two] = forced ? [shownMap(forced), first] : [first, mapOfSecond(reading)];
  const names = forced ? [label("yourChange"), label("original")] : [state.run, state.second];
  const difference = differenceOf(one, two);
  element["minus-name"].textContent = label("minus", ...names);
  showVerdict(element.minus, difference ? label("minusHint", ...names, intact.text || label("wroteNothing")) : label(state.unit === "words" ? "otherTexts" : "otherWords"));
  if (!difference) part(element.minus, ".map").replaceChildren();
  return difference;
}

// ---------------------------------------------------------------- choosing

/** Shows a changed choice of what the answers contain. */
function redraw() {
  fitChoices().then(() => { draw(); if (state.revealed) drawGuess(complain); }).catch(report);
}

const selection = () => state.row === null && state.column === null ? null : { row: state.row, column: state.column };

/** The cell of the largest weight, if possible not of a special piece. @param {LabMap} map */
function strongestCell({ weights, rows, columns }) {
  const cells = weights.flatMap((line, row) => line.map((weight, column) => ({ row, column, weight: isSpecial(rows[row]) || isSpecial(columns[column]) ? weight - 1 : weight })));
  const { row, column } = cells.reduce((best, cell) => cell.weight > best.weight ? cell : best);
  return { row, column };
}

/** Whether somebody has selected or changed something. */
const isTouched = () => state.row !== null || state.column !== null || [state.changes, state.prefix, state.locks].some((made) => made.length > 0);

/** The three things to try: each does what it says. What was tried is marked. */
function listenToTries() {
  const act = (/** @type {string} */ id, /** @type {(map: LabMap) => void} */ tried) => element[id].addEventListener("click", () => {
    const map = shownMap(answers.intact);
    if (!map) return;
    element[id].classList.add("done");
    tried(map);
  });
  act("try-cell", (map) => {
    select(strongestCell(map), "intact");
    /** @type {SVGElement | null} */ (element.intact.querySelector(".map svg"))?.focus({ preventScroll: true });
    element.intact.querySelector(".map .cursor")?.scrollIntoView({ block: "nearest" });
  });
  act("try-block", (map) => {
    const cell = strongestCell(map);
    Object.assign(state, { ...cell, of: "intact" });
    blockWord(map, cell.column);
    refresh();
  });
  element["start-over"].title = label("startOver");
  element["start-over"].addEventListener("click", () => {
    Object.assign(state, unchanged());
    element["try-cell"].focus({ preventScroll: true }); // this button disappears
    refresh();
  });
  element["try-guess"].addEventListener("click", () => {
    element["try-guess"].classList.add("done");
    element["guess-box"].open = true;
    element["guess-box"].scrollIntoView({ block: "start" });
    part(element["guess-table"], "button").focus({ preventScroll: true });
  });
}

/** @param {Cell} cell @param {string} of the map that contains it */
function select({ row, column }, of) {
  Object.assign(state, { row, column, of });
  draw({ withHeads: false });
  writeAddress();
}

function inspect() {
  element.tries.hidden = !answers.intact;
  element.tries.classList.toggle("small", isTouched());
  element["start-over"].hidden = !isTouched();
  drawInspector(shownMaps()[state.of], shownMap(answers.forced), answers.intact, { refresh, redraw, report: complain });
}

/** @type {NonNullable<import("./heat_map.js").Look["drag"]>} */
function drag({ row, column, weight, done }) {
  Object.assign(state, { row, column, of: "intact" });
  element.weight.value = weight.toFixed(2);
  if (done) weigh(weight);
  else preview(weight);
}

/** Shows approximately which weights the selected row will have, before the model translates with them. @param {number} weight */
function preview(weight) {
  element["weight-value"].textContent = decimal(weight, 2);
  const map = shownMap(answers.intact), now = shownMap(answers.forced ?? answers.intact), { row, column, of } = state;
  if (!map || !now || row === null || column === null || of !== "intact" || now.isBlocked(row, column)) return;
  for (const old of element.intact.querySelectorAll(".readout")) old.remove(); // the weight that the cell had
  intactDrawing?.repaint(map.weights.map((line, r) => r === row ? reweighted(now.weights[r], [column], weight) : line), mostOf(shownMaps()));
}

/** Gives the selected cell this weight. @param {number} weight */
function weigh(weight) {
  const map = shownMap(answers.forced ?? answers.intact), { row, column } = state;
  if (!map || state.of !== "intact" || row === null || column === null || map.isBlocked(row, column)) return;
  setWeight(map, row, column, weight);
  refresh();
}

/** @typedef {import("./engine/interface.js").Run} Run */

/** A run that translates back. @param {Run} run */
const oppositeOf = (run) => runs.find(({ source, target }) => source === run.target && target === run.source);

function fillRuns() {
  const direction = (/** @type {Run} */ { source, target }) => `${nameOfLanguage(source)} → ${nameOfLanguage(target)}`;
  // A run that is named after its direction needs no second name.
  fillSelect(element.run, runs.map((run) => [run.name, run.name === `${run.source}-${run.target}` ? direction(run) : `${run.name} (${direction(run)})`]), state.run);
  const current = /** @type {Run} */ (runNamed(state.run));
  const others = runs.filter((run) => run !== current && run.source === current.source && run.target === current.target);
  if (!others.some(({ name }) => name === state.second)) state.second = "";
  element["second-box"].hidden = others.length === 0;
  const opposite = oppositeOf(current);
  element.swap.hidden = !opposite;
  element.swap.title = opposite ? label("swapTo", opposite.name, direction(opposite)) : "";
  fillSelect(element.second, [["", label("none")], ...others.map(({ name }) => [name, name])], state.second);
  element.text.lang = current.source;
}

/** @param {string} text */
function setText(text) {
  element.text.value = text;
  fitHeight(element.text);
}

/** Translates a text in the other direction. @param {string} text */
function translateBack(text) {
  const from = runNamed(state.run), opposite = from && oppositeOf(from);
  if (!opposite) return;
  state.run = opposite.name;
  fillRuns();
  fillExamples();
  setText(text);
  begin(text);
}

async function fillExamples() {
  const { run } = state;
  /** @type {import("./engine/interface.js").Example[]} */
  let examples = [];
  try { examples = await latest("examples", (signal) => engine.examples(run, signal)); } catch (error) { complain(error); }
  if (run !== state.run) return;
  const example = (/** @type {string} */ text, name = text) => button(name, () => { setText(text); begin(text); });
  const aligned = examples.filter((pair) => pair.aligned), unaligned = examples.filter((pair) => !pair.aligned);
  const buttons = (unaligned.length ? unaligned : aligned).slice(0, 6).map((pair) => example(pair.source));
  // A run of the embedded corpus, which has no sentences of its own, has learned no other text.
  const outside = unaligned.length ? undefined : OUTSIDE[runNamed(run)?.source ?? ""];
  if (outside) buttons.splice(3, 0, example(outside, `${outside} (${label("outside")})`));
  element.examples.replaceChildren(...buttons);
  setPairs(aligned, complain);
  element["try-guess"].hidden = !aligned.length;
  return examples[0]?.source ?? "";
}

/** Whether there are changes of the translation, apart from locks that stay. @param {number[]} [locks] */
const hasOwnChanges = (locks = []) => state.changes.length > 0 || state.prefix.length > 0 || state.locks.length > locks.length;

/**
 * Starts with a new sentence, and drops the changes, which belong to the old one. Locked words stay if it was typed.
 * @param {string} text @param {number[]} locks @param {boolean} [isDropped] whether changes are dropped, which the page says
 */
async function begin(text, locks = [], isDropped = hasOwnChanges(locks)) {
  cause = element.text;
  Object.assign(state, { text, ...unchanged(), locks });
  writeAddress(true);
  await refresh(isDropped);
}

// ---------------------------------------------------------------- files

/** The maps on the page as CSV; the attribution comes last. */
function csv() {
  /** @type {(string | number)[][]} */
  const lines = [];
  const attribution = shownAttribution();
  /** @param {string} name @param {{ rows: string[], columns: string[], weights: number[][] }} map */
  const add = (name, { rows, columns, weights }) => rows.forEach((row, r) => columns.forEach((column, c) => lines.push([name, row, column, weights[r][c]])));
  for (const [name, map] of Object.entries(shownMaps())) if (map) add(name, map);
  if (attribution) add(state.method, { rows: attribution.outputs, columns: attribution.columns, weights: attribution.attribution });
  const written = (/** @type {string | number} */ cell) => typeof cell === "string" ? `"${cell.replaceAll('"', '""')}"` : cell;
  return ["map,target,source,weight", ...lines.map((line) => line.map(written).join(",")), ""].join("\n");
}

function drawn() {
  const picture = onPaper(() => {
    draw();
    drawAttribution();
    return pictureOf(subject.source, [...document.querySelectorAll(".result:not([hidden])")].filter((section) => section.querySelector("svg")));
  });
  draw();
  drawAttribution();
  return picture;
}

function json() {
  const { intact, forced, changed, other } = answers;
  return JSON.stringify({ state, intact: { ...intact, ...subject }, forced, changed, other, beam: search, attribution: shownAttribution() }, null, 1);
}

/** @type {Record<string, () => Blob | Promise<Blob>>} */
const FILES = {
  svg: () => svgFile(drawn()),
  png: () => pngFile(drawn()),
  json: () => new Blob([json()], { type: "application/json" }),
  csv: () => new Blob([csv()], { type: "text/csv" }),
};

// ---------------------------------------------------------------- start

function listenToChoices() {
  const on = (/** @type {string} */ id, /** @type {(field: import("./dom.js").PageElement) => void} */ act) => element[id].addEventListener("change", () => { cause = element[id].type === "number" ? element[id] : element.text; act(element[id]); });
  on("run", ({ value }) => {
    state.run = value;
    // A sentence in another language is no sentence for this run.
    const isReadable = runNamed(value)?.source === element.text.lang;
    fillRuns();
    const first = fillExamples();
    if (isReadable && element.text.value.trim()) begin(element.text.value);
    else {
      // Nothing may be asked about the old translation: the new run cannot answer it.
      const isDropped = hasOwnChanges();
      turn++;
      stopAsking();
      setText("");
      Object.assign(state, { text: "", ...unchanged() });
      forget();
      announce("");
      first.then((text) => {
        if (state.run !== value || element.text.value.trim()) return;
        if (!text) { refresh(); return; }
        setText(text);
        begin(text, [], isDropped);
      });
    }
  });
  on("second", ({ value }) => { Object.assign(state, { second: value, of: "intact" }); refresh(); });
  const unselected = { row: null, column: null, of: "intact" };
  on("site", ({ value }) => { Object.assign(state, { site: value, ...unselected }); redraw(); });
  on("unit", ({ value }) => { Object.assign(state, { unit: value, ...unselected }); redraw(); });
  on("layer", ({ value }) => { Object.assign(state, { layer: choiceOf(value), ...unselected }); redraw(); });
  on("head", ({ value }) => { Object.assign(state, { head: choiceOf(value), ...unselected }); redraw(); });
  listenToHeads((chosen) => { Object.assign(state, chosen, "layer" in chosen ? { of: "intact" } : {}); redraw(); });
  on("view", ({ value }) => { state.view = value; redraw(); });
  on("other-layer", ({ value }) => { state.otherLayer = choiceOf(value); redraw(); });
  on("other-head", ({ value }) => { state.otherHead = choiceOf(value); redraw(); });
  on("difference", ({ checked }) => {
    state.difference = checked;
    draw();
    writeAddress();
    if (!element.minus.hidden) element.minus.scrollIntoView({ block: "nearest" });
  });
  on("weight", ({ value }) => weigh(Number(value)));
  element.weight.addEventListener("input", () => { preview(Number(element.weight.value)); });
  const number = (/** @type {string} */ id, /** @type {"beamSize" | "lengthPenalty"} */ key) => on(id, (field) => {
    if (!field.reportValidity()) return;
    state[key] = field.value === "" ? null : Number(field.value);
    refresh();
  });
  number("beam-size", "beamSize");
  number("length-penalty", "lengthPenalty");
  const ofLayer = (/** @type {string} */ id, /** @type {string} */ what, /** @type {string | number} */ trained) => on(id, (field) => {
    if (!field.reportValidity()) return;
    const value = field.type === "number" && field.value ? Number(field.value) : field.value;
    chooseForLayer(what, value === trained || value === "" ? null : value);
    refresh();
  });
  ofLayer("temperature", "temperature", 1);
  ofLayer("normalizer", "normalizer", "");
  ofLayer("half-width", "half_width", "");
}

function listenToPage() {
  element.ask.addEventListener("submit", (event) => {
    event.preventDefault();
    if (element.text.value === state.text) refresh();
    else begin(element.text.value, state.locks);
  });
  element.swap.addEventListener("click", () => { translateBack(isCurrent() ? answers.intact?.text ?? "" : ""); });
  element.text.addEventListener("input", () => {
    const isTyped = element.text.value !== state.text && element.text.value.trim() !== "";
    element.answer.classList.toggle("typed", isTyped);
    if (element.results.ariaBusy !== "true") announce(isTyped ? label("typed") : "");
  });
  element.text.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.isComposing) return;
    event.preventDefault();
    element.ask.requestSubmit();
  });
  element.text.addEventListener("input", () => { fitHeight(element.text); });
  element.text.addEventListener("scroll", () => { element.echo.scrollTop = element.text.scrollTop; });
  element.explanation.addEventListener("toggle", () => { if (answers.intact) inspect(); });
  element["beam-box"].addEventListener("toggle", showBeam);
  for (const [kind, file] of Object.entries(FILES)) {
    element[`save-${kind}`].addEventListener("click", async () => {
      try { save(`attention-${subject.run.replaceAll("/", "-")}-${state.site}.${kind}`, await file()); } catch (error) { complain(error); }
    });
  }
  // A menu closes when something is chosen, or something else is clicked.
  document.addEventListener("click", ({ target }) => {
    const menu = element["save-menu"];
    if (target instanceof Element && menu.open && !target.closest("summary")) menu.open = false;
  });
  element["copy-link"].addEventListener("click", async () => {
    flushAnchor();
    announce(label(await copied(location.href) ? "copied" : "copyFailed"));
  });
  darkness.addEventListener("change", () => { draw(); drawAttribution(); drawGuess(complain); });
  let width = innerWidth;
  addEventListener("resize", () => {
    // On a phone, the bars of the browser change the height while the page is scrolled.
    if (innerWidth === width && coarse.matches) return;
    width = innerWidth;
    draw();
    drawAttribution();
  });
  addEventListener("hashchange", () => { restore(); });
  document.addEventListener("keydown", (event) => {
    if (hasModifier(event)) return;
    const { key } = event, { row, column } = state;
    if (key === "Escape" && element.results.ariaBusy === "true" && !element.share.open) {
      cancel();
      return;
    }
    if (key === "Escape" && answers.intact && !element.share.open) select({ row: null, column: null }, "intact");
    const now = row === null || column === null ? undefined : shownMap(answers.forced ?? answers.intact)?.weights[row]?.[column];
    const isOnMap = event.target instanceof Element && event.target.closest("#intact");
    if ((key === "+" || key === "-") && isOnMap && now !== undefined) weigh(clamp(now + (key === "+" ? 0.1 : -0.1), 1));
  });
}

/** Shows what the address says. @param {string} [typed] a sentence that somebody typed before the page was ready */
async function restore(typed = "") {
  const preferred = runs.find(({ source }) => source === language); // a visitor types in the language of the page
  readAddress([...preferred ? [preferred] : [], ...runs].map(({ name }) => name));
  onlyChoices.clear(); // the address makes the choices
  fitAttribution();
  fillRuns();
  setText(state.text || typed);
  // Without a sentence in the address, the page opens with an example.
  const first = fillExamples();
  if (!state.text.trim()) {
    const before = turn, text = await first ?? "";
    if (turn !== before || element.text.value.trim()) return; // somebody was faster and typed a sentence
    setText(text);
    state.text = text;
  }
  await refresh();
  if (!state.text && !element.status.classList.contains("error")) element.status.textContent = "";
  await first;
}

async function start() {
  fillLabels();
  const groups = {
    examples: "sentence", choices: "site", alternatives: "alternatives", "row-pieces": "pieces", equation: "equations",
    "numbers-box": "numbers", "beam-scroll": "beam", steps: "steps",
  };
  for (const [id, name] of Object.entries(groups)) element[id].setAttribute("aria-label", label(name));
  element.language.textContent = label("other");
  element.language.lang = otherLanguage;
  fillGlossary();
  part(element["alternatives-box"], "h2").replaceChildren(...withTerm(label("alternatives"), label("pieces"), "aboutPieces"));
  element.beam.dataset.name = label("beam");
  try {
    const listed = await latest("runs", (signal) => patiently(() => engine.runs(signal), Infinity, signal, complain));
    runs = listed.filter(({ error }) => !error);
  } catch (error) {
    // Nothing on the page asks for the runs again.
    complain(error instanceof Unreachable && !error.sentence ? new Error(label("failedAtStart")) : error);
    return;
  }
  if (!runs.length) { complain(new Error(label("noRuns"))); return; }
  listenToPresentation(() => { if (answers.intact) draw(); drawAttribution(); });
  listenToShare();
  listenToPage();
  part(element.ask, "button").removeAttribute("disabled");
  listenToChoices();
  listenToAttribution();
  listenToTries();
  listenToHover();
  listenToTranslation({
    refresh, report: complain, say: announce,
    select: (piece) => {
      const map = shownMap(answers.intact);
      const row = piece === null || state.site === "encoder_self" ? -1 : map?.rowSpans.findIndex(([start, end]) => piece >= start && piece < end) ?? -1;
      select({ row: row < 0 ? null : row, column: null }, "intact");
    },
  });
  listenToSteps(() => shownMap(answers.intact), (cell) => { closeMenu(); select(cell, "intact"); });
  listenToFiles();
  listenToGuess(complain);
  await restore(element.text.value);
}

start();
