// @ts-check
// What the answers are in words: the translations, how likely they are, and what a change did. The maps are in results.js.

import { element, make, part, reachIfLong } from "../dom.js";
import { label } from "../i18n.js";
import { language } from "../language.js";
import { answers, forgetAnswers, isCurrent, search } from "./answers.js";
import { showAttribution } from "./attribution.js";
import { drawBeam } from "./beam.js";
import { offerDirection } from "./direction.js";
import { drawGuess } from "./guess.js";
import { draw, setGrowing, showVerdict } from "./results.js";
import { oppositeOf, runNamed } from "./runs.js";
import { state, subject } from "./state.js";
import { forgetSteps } from "./steps.js";
import { forgetWords, showWords } from "./translation.js";
import { fillWords, quoted, signed, timesOf } from "./wording.js";

/** @typedef {import("../engine/interface.js").Translation} Translation */
/** @typedef {import("./results.js").Section} Section */

/** Switches the translation, its maps and the controls beside them off, or on again. @param {boolean} isInert */
export function setInert(isInert) {
  for (const name of ["answer", "side", "results", "heads"]) element[name].inert = isInert;
}

/** Removes the translation and everything that belongs to it. */
export function forget() {
  setGrowing(false);
  setInert(false);
  forgetAnswers();
  part(element.answer, ".translation").replaceChildren();
  element.heard.textContent = "";
  forgetWords();
  forgetSteps();
  showUnknown();
  element.outcome.hidden = true;
  draw();
  showAttribution(null);
  element["beam-box"].hidden = true;
  element.results.ariaBusy = "false";
}

/** Shows the answers. */
export function show() {
  const { intact, forced, changed, other, original } = answers;
  if (!intact) return;
  setGrowing(false);
  setInert(false);
  showNames();
  part(element.answer, ".translation").lang = runNamed(state.run)?.target ?? "";
  showWords(intact, changed);
  const heard = changed ? "" : intact.text || label("wroteNothing"); // what a change did is announced by the outcome
  element.heard.lang = intact.text ? runNamed(state.run)?.target ?? "" : language;
  if (element.heard.textContent !== heard) element.heard.textContent = heard;
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
  if (state.revealed) drawGuess();
}

export function showNames() {
  element["intact-name"].textContent = label(state.prefix.length ? "continued" : state.locks.length ? "withLocks" : "translation", state.run);
  element["changed-name"].textContent = label("withChanges");
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

/** Names the words and characters of the sentence that the run never saw in training, and those that its dictionary replaces. */
function showUnknown() {
  const { unknown_words: words, unknown_characters: unknown, dictionary_words: replaced } = search;
  const characters = [...unknown].filter((character) => !words.some((word) => word.includes(character)));
  const list = (/** @type {string[]} */ texts) => texts.slice(0, 8).map(quoted).join(", ");
  element.unknown.textContent = [
    words.length ? label(words.length === 1 ? "unknownWord" : "unknownWords", list(words)) : "", characters.length ? label("unknownCharacters", list(characters)) : "",
    replaced.length ? label("dictionaryWords", replaced.slice(0, 8).map(([word, translation]) => `${quoted(word)} → ${quoted(translation)}`).join(", ")) : "",
  ].filter(Boolean).join(" ");
  element.unknown.hidden = !element.unknown.textContent;
  const from = runNamed(state.run), opposite = from && oppositeOf(from);
  offerDirection(isCurrent() ? state.text : "", from, opposite);
}

/** Draws the beam if its box is open. */
export function showBeam() {
  const { intact } = answers;
  if (!intact || !search.steps.length || !element["beam-box"].open) return;
  drawBeam(element.beam, search.steps, intact);
  element["beam-hint"].textContent = label("beamHint", signed(search.score));
}
