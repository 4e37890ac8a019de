// @ts-check
// The lab's page from top to bottom: it asks for a sentence's translation, shows it with its maps, and asks again after
// each change.

import { flushAnchor, readAnchor } from "./address.js";
import { darkness } from "./colors.js";
import { button, clamp, copied, element, fitHeight, hasModifier, part } from "./dom.js";
import { Refused, Unreachable } from "./engine/interface.js";
import { fillLabels, label } from "./i18n.js";
import { answers, isCurrent, search } from "./lab/answers.js";
import { engine, isOutdated, latest, patiently, stop } from "./lab/asking.js";
import { drawAttribution, fitAttribution, listenToAttribution, showAttribution } from "./lab/attribution.js";
import { fillRuns, fitChoices, keepChoices, setText } from "./lab/choices.js";
import { languageOf } from "./lab/direction.js";
import { listenToDownloads } from "./lab/downloads.js";
import { listenToFiles } from "./lab/file.js";
import { watched } from "./lab/growing.js";
import { drawGuess, fitGuess, listenToGuess, openGuess, setPairs } from "./lab/guess.js";
import { listenToHeads } from "./lab/heads.js";
import { listenToHover } from "./lab/hover.js";
import { chooseForLayer } from "./lab/inspector.js";
import { forget, setInert, show, showBeam } from "./lab/outcome.js";
import { listenToPresentation } from "./lab/presentation.js";
import { draw, inspect, preview, select, weigh } from "./lab/results.js";
import { oppositeOf, runNamed, runs } from "./lab/runs.js";
import { listenToShare } from "./lab/share.js";
import { answerSignals } from "./lab/signals.js";
import { hasChanges, keptIds, linkLanguage, readAddress, state, subject, unchanged, writeAddress } from "./lab/state.js";
import { complain, say } from "./lab/status.js";
import { listenToSteps, showAllSteps } from "./lab/steps.js";
import { fillGlossary, withTerm } from "./lab/terms.js";
import { closeMenu, listenToTranslation } from "./lab/translation.js";
import { listenToTries } from "./lab/tries.js";
import { language, otherLanguage } from "./language.js";
import { choiceOf } from "./map.js";

/** @typedef {import("./engine/interface.js").Translation} Translation */
/** @typedef {import("./engine/interface.js").Question} Question */

// Sentences unlike those of the embedded corpus: models trained on that corpus fail on them.
/** @type {Record<string, string>} */
const OUTSIDE = {
  en: "The parliament passed the new budget on Tuesday.",
  vi: "Quốc hội đã thông qua ngân sách mới hôm thứ Ba.",
};

const coarse = matchMedia("(pointer: coarse)");

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
  showAllSteps(); // a slider or a dragged cell changes weights too
  writeAddress(isDropped);
  element.results.ariaBusy = "true";
  // Controls of the previous sentence or run would change the new translation.
  setInert(answers.intact !== null && !isCurrent());
  element.answer.classList.remove("typed");
  if (!isCurrent()) {
    showAttribution(null);
    element.heard.textContent = "";
  }
  element.status.classList.remove("error");
  element.asking.append(element.status);
  for (const field of document.querySelectorAll("#text, input[type=number]")) field.removeAttribute("aria-invalid");
  if (!state.text.trim()) element.status.textContent = label("empty");
  else if (coarse.matches) element.status.replaceChildren(`${label("waiting")} `, button(label("cancel"), cancel));
  else element.status.textContent = `${label("waiting")} ${label("escStops")}`;
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
    Object.assign(answers, { ...first, intact: sameOrNew(first.intact), original, other, reading });
    Object.assign(search, found);
    Object.assign(subject, { run, source, second });
    say(isDropped ? label("dropped") : "");
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
  say(label("stopped"));
}

// ---------------------------------------------------------------- choosing

/** Shows a changed choice of what the answers contain. */
function redraw() {
  fitChoices().then(() => { draw(); if (state.revealed) drawGuess(); }).catch(report);
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
  let examples = [], isKnown = false;
  try {
    examples = await latest("examples", (signal) => engine.examples(run, signal));
    isKnown = true;
  } catch (error) {
    if (isOutdated(error)) return;
    complain(error);
  }
  if (run !== state.run) return;
  const example = (/** @type {string} */ text, name = text) => button(name, () => { setText(text); begin(text); });
  const aligned = examples.filter((pair) => pair.aligned), unaligned = examples.filter((pair) => !pair.aligned);
  const buttons = (unaligned.length ? unaligned : aligned).slice(0, 6).map((pair) => example(pair.source));
  // A run of the embedded corpus, which has no sentences of its own, has learned no other text.
  const outside = unaligned.length ? undefined : OUTSIDE[runNamed(run)?.source ?? ""];
  if (outside) buttons.splice(3, 0, example(outside, `${outside} (${label("outside")})`));
  element.examples.replaceChildren(...buttons);
  setPairs(isKnown ? aligned : null);
  element["try-guess"].hidden = !aligned.length;
  return examples[0]?.source ?? "";
}

/**
 * Starts with a new sentence, and drops the changes, which belong to the old one. Locked words stay if it was typed.
 * @param {string} text @param {number[]} locks @param {boolean} [isDropped] whether changes are dropped, which the page says
 */
async function begin(text, locks = [], isDropped = hasChanges(locks)) {
  cause = element.text;
  Object.assign(state, { text, ...unchanged(), locks });
  writeAddress(true);
  await refresh(isDropped);
}

// ---------------------------------------------------------------- start

function listenToChoices() {
  const on = (/** @type {string} */ id, /** @type {(field: import("./dom.js").PageElement) => void} */ act) => element[id].addEventListener("change", () => { cause = element[id].type === "number" ? element[id] : element.text; act(element[id]); });
  on("run", ({ value }) => {
    state.run = value;
    // A sentence in another language is no sentence for this run.
    const source = runNamed(value)?.source, typed = element.text.value;
    const isReadable = source === element.text.lang || typed !== state.text || languageOf(typed) === source;
    fillRuns();
    const first = fillExamples();
    if (isReadable && element.text.value.trim()) begin(element.text.value);
    else {
      // Nothing may be asked about the old translation: the new run cannot answer it.
      const isDropped = hasChanges();
      turn++;
      stopAsking();
      setText("");
      Object.assign(state, { text: "", ...unchanged() });
      forget();
      say("");
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
  element.swap.addEventListener("click", () => {
    const { value } = element.text;
    // A sentence that has not been translated stays: it may be in the other language.
    translateBack(value.trim() && (value !== state.text || !isCurrent()) ? value : answers.intact?.text ?? "");
  });
  element.text.addEventListener("input", () => {
    const isTyped = element.text.value !== state.text && element.text.value.trim() !== "";
    element.answer.classList.toggle("typed", isTyped);
    if (element.results.ariaBusy !== "true") say(isTyped ? label("typed") : "");
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
  element["copy-link"].addEventListener("click", async () => {
    flushAnchor();
    say(label(await copied(location.href) ? "copied" : "copyFailed"));
  });
  darkness.addEventListener("change", () => { draw(); drawAttribution(); drawGuess(); });
  let width = innerWidth;
  addEventListener("resize", () => {
    // On a phone, the bars of the browser change the height while the page is scrolled.
    if (innerWidth === width && coarse.matches) return;
    width = innerWidth;
    draw();
    drawAttribution();
    fitGuess();
  });
  addEventListener("hashchange", () => { restore(); });
  document.addEventListener("keydown", (event) => {
    if (hasModifier(event)) return;
    const { key } = event;
    if (key === "Escape" && element.results.ariaBusy === "true" && !element.share.open) {
      cancel();
      return;
    }
    if (key === "Escape" && answers.intact && !element.share.open) {
      closeMenu();
      select({ row: null, column: null }, "intact");
    }
    const isOnMap = event.target instanceof Element && event.target.closest("#intact");
    if ((key === "+" || key === "-") && isOnMap && !element["weight-box"].hidden) {
      const weight = clamp(Number(element.weight.value) + (key === "+" ? 0.1 : -0.1), 1);
      element.weight.value = weight.toFixed(2); // the next press goes on from here
      preview(weight);
      weigh(weight);
    }
  });
}

/** Shows what the address says. @param {string} [typed] a sentence that somebody typed before the page was ready */
async function restore(typed = "") {
  const preferred = runs.find(({ source }) => source === language); // a visitor types in the language of the page
  const { pair } = state;
  readAddress([...preferred ? [preferred] : [], ...runs].map(({ name }) => name));
  keepChoices();
  fitAttribution();
  openGuess();
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
  // A new guess is what the address is about. With the same one, the Back button leaves the reader at the map.
  if (state.pair && state.pair !== pair) element["guess-box"].scrollIntoView({ block: "start" });
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
  linkLanguage(readAnchor());
  if (coarse.matches) part(element["weight-box"], "span").textContent = label("weightAlone"); // a touch drags nothing
  fillGlossary();
  part(element["alternatives-box"], "h2").replaceChildren(...withTerm(label("alternatives"), label("pieces"), "aboutPieces"));
  element.beam.dataset.name = label("beam");
  try {
    const listed = await latest("runs", (signal) => patiently(() => engine.runs(signal), Infinity, signal, complain));
    runs.push(...listed.filter(({ error }) => !error));
  } catch (error) {
    // Nothing on the page asks for the runs again.
    complain(error instanceof Unreachable && !error.sentence ? new Error(label("failedAtStart")) : error);
    return;
  }
  if (!runs.length) { complain(new Error(label("noRuns"))); return; }
  answerSignals({ askAgain: refresh, redraw, drawAgain: draw, selectCell: (cell) => select(cell, "intact"), translateBack });
  listenToPresentation(() => { if (answers.intact) draw(); drawAttribution(); fitGuess(); });
  listenToShare();
  listenToPage();
  part(element.ask, "button").removeAttribute("disabled");
  listenToChoices();
  listenToAttribution();
  listenToTries();
  listenToHover();
  listenToTranslation();
  listenToSteps();
  listenToDownloads();
  listenToFiles();
  listenToGuess();
  await restore(element.text.value);
}

start();
