// @ts-check
// The viewer of exported maps, from top to bottom: drawing, keys, the film, and the start.

import { darkness } from "./colors.js";
import { clamp, element, fillSelect, hasModifier } from "./dom.js";
import { fillTerms } from "./glossary.js";
import { fillPage, otherLanguage } from "./language.js";
import { MEAN, SITES, choicesOf } from "./map.js";
import { ScriptError, kind, nameOf, pairs, runs } from "./viewer/data.js";
import { Panel, labelsOf } from "./viewer/panel.js";
import { TERMS, label } from "./viewer/texts.js";
import { activePlace, openSecond, readView, unpin, view, writeView } from "./viewer/view.js";

const FRAME_MS = 700;

const panels = [new Panel(0, { refresh, redraw }), new Panel(1, { refresh, redraw })];
const shownPanels = () => view.compare ? panels : panels.slice(0, 1);

// ---------------------------------------------------------------- drawing

let latestTicket = 0;

/** Marks the active word, and says what it attends to. */
function redraw() {
  for (const panel of shownPanels()) panel.drawActive();
  const texts = shownPanels().map((panel) => panel.describe() ?? "").filter(Boolean);
  element.status.classList.toggle("hint", texts.length === 0);
  element.status.replaceChildren(...(texts.length ? texts : [label("hint")]).map((text) => {
    const line = document.createElement("span");
    line.textContent = text;
    return line;
  }));
  writeView();
}

/** A sentence in the list. @param {{ line: number, rank: number, text: string }} sentence */
const listed = ({ line, rank, text }) => `${line}${rank > 1 ? label("ofRank", rank) : ""}: ${text}`;

/** Draws the selection, unless it has changed again while the weights were loading. */
async function refresh() {
  const ticket = ++latestTicket, shown = shownPanels();
  try {
    await Promise.all(shown.map((panel) => panel.arrival()));
  } catch (error) {
    if (!(error instanceof ScriptError)) throw error;
    if (ticket === latestTicket) element.status.textContent = label(error.key, error.message);
    return;
  }
  if (ticket !== latestTicket) return;
  panels[1].root.hidden = !view.compare;
  const available = new Set(shown.flatMap((panel) => Object.keys(panel.sentence?.sites ?? {})));
  const sites = [...SITES.filter((site) => available.has(site)), ...[...available].filter((site) => !SITES.includes(site))];
  if (sites.length && !available.has(view.site)) view.site = available.has("cross") ? "cross" : sites[0];
  fillSelect(element.sentence, pairs.map((pair, i) => [i, listed(pair)]), view.pair);
  fillSelect(element.site, sites.map((site) => [site, label(site)]), view.site);
  element.unit.value = view.unit;
  element.rows.value = view.rows;
  element.rows.disabled = view.site === "encoder_self";
  element.compare.checked = view.compare;
  element["previous-sentence"].disabled = view.pair === 0;
  element["next-sentence"].disabled = view.pair === pairs.length - 1;
  const { run } = view.wishes[0];
  element.film.value = run;
  element.frame.textContent = nameOf(run);
  element.film.setAttribute("aria-valuetext", nameOf(run));
  element.panels.classList.toggle("two", view.compare);
  const maps = await Promise.all(shown.map((panel) => panel.load()));
  if (ticket !== latestTicket) return;
  // Maps that are compared, side by side or in a film, share a scale, so that equal colors always mean equal weights.
  const most = runs.length > 1 && !view.compare ? 1 : Math.max(...maps.map((map) => map?.most ?? 0));
  shown.forEach((panel, i) => {
    const map = maps[i];
    if (map) panel.draw(map, most);
    else panel.map = null;
  });
  redraw();
}

// ---------------------------------------------------------------- steps and keys

/** @param {number} direction */
function stepSentence(direction) {
  const next = clamp(view.pair + direction, pairs.length - 1);
  if (next === view.pair) return;
  view.pair = next;
  unpin();
  refresh();
}

const focusedPanel = () => shownPanels().find((panel) => panel.root.contains(document.activeElement)) ?? panels[0];

/** Pins the next word, on the side that has the focus. @param {number} direction */
function stepWord(direction) {
  const panel = focusedPanel();
  if (!panel.map) return;
  const focused = /** @type {HTMLElement | null | undefined} */ (document.activeElement?.closest(".token"));
  const side = focused?.dataset.side === "source" ? "source" : "target", { length } = labelsOf(panel.map, side);
  const place = activePlace();
  const from = place?.side === side ? place.index : direction > 0 ? -1 : length;
  view.pinned = { side, index: clamp(from + direction, length - 1) };
  view.hovered = null;
  redraw();
  const token = panel.tokens[side][view.pinned.index];
  if (focused) token.focus();
  token.scrollIntoView({ block: "nearest" });
}

/** @param {"layer" | "head"} name @param {number} direction */
function stepChoice(name, direction) {
  const panel = focusedPanel();
  if (!panel.site) return;
  const choices = choicesOf(panel.site[`${name}s`]);
  panel.wish[name] = choices[clamp(choices.indexOf(panel[name]) + direction, choices.length - 1)];
  refresh();
}

/** The mean of the heads; a second time, that of the layers too. */
function takeMean() {
  const { wish } = focusedPanel();
  if (wish.head === MEAN) wish.layer = MEAN;
  wish.head = MEAN;
  refresh();
}

/** @param {import("./words.js").Unit} unit */
function setUnit(unit) {
  view.unit = unit;
  unpin();
  refresh();
}

function leave() {
  unpin();
  const focused = /** @type {HTMLElement | null} */ (document.activeElement);
  if (focused && ["SELECT", "INPUT"].includes(focused.tagName)) focused.blur();
  redraw();
}

function toggleKeys() {
  element.keys.open = !element.keys.open;
  if (element.keys.open) element.keys.querySelector("summary")?.focus();
}

/** @type {Record<string, () => void>} */
const KEYS = {
  ArrowLeft: () => stepWord(-1), ArrowRight: () => stepWord(1),
  ArrowUp: () => stepChoice("head", -1), ArrowDown: () => stepChoice("head", 1),
  PageUp: () => stepChoice("layer", -1), PageDown: () => stepChoice("layer", 1),
  "[": () => stepChoice("layer", -1), "]": () => stepChoice("layer", 1),
  n: () => stepSentence(1), p: () => stepSentence(-1),
  m: takeMean, w: () => setUnit(view.unit === "words" ? "pieces" : "words"),
  " ": () => play(!timer), "?": toggleKeys,
};

function listenToKeys() {
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { leave(); return; }
    const tag = /** @type {Element} */ (event.target).tagName;
    if (hasModifier(event) || tag === "SELECT" || tag === "INPUT") return;
    // The space bar presses a focused button, and without a film it scrolls the page.
    if (event.key === " " && (tag === "BUTTON" || tag === "SUMMARY" || runs.length < 2)) return;
    const act = KEYS[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
}

// ---------------------------------------------------------------- the film

let timer = 0;

/** @param {number} run */
function showFrame(run) {
  view.wishes[0].run = run;
  refresh();
}

/** @param {boolean} on */
function play(on) {
  const last = runs.length - 1;
  clearInterval(timer);
  timer = 0;
  if (on && last > 0) {
    if (view.wishes[0].run === last) showFrame(0);
    timer = setInterval(() => {
      showFrame(clamp(view.wishes[0].run + 1, last));
      if (view.wishes[0].run === last) play(false);
    }, FRAME_MS);
  }
  element.play.textContent = label(timer ? "stop" : "play");
}

// ---------------------------------------------------------------- start

function start() {
  element.panels.append(...panels.map((panel) => panel.root));
  element.subject.textContent = runs.length === 1 ? nameOf(0) : label(`${kind}s`, runs.length);
  element.film.setAttribute("aria-label", label(kind));
  element["film-bar"].hidden = runs.length < 2;
  element.film.max = String(runs.length - 1);
  const on = (/** @type {string} */ id, /** @type {string} */ name, /** @type {(value: any) => void} */ act) =>
    element[id].addEventListener(name, () => act(element[id].value));
  on("sentence", "change", (value) => { view.pair = Number(value); unpin(); refresh(); });
  on("previous-sentence", "click", () => stepSentence(-1));
  on("next-sentence", "click", () => stepSentence(1));
  on("site", "change", (value) => { view.site = value; unpin(); refresh(); });
  on("unit", "change", setUnit);
  on("rows", "change", (value) => { view.rows = value; refresh(); });
  on("previous-word", "click", () => stepWord(-1));
  on("next-word", "click", () => stepWord(1));
  on("compare", "change", () => {
    if (element.compare.checked) openSecond();
    else view.compare = false;
    refresh();
  });
  on("film", "input", (value) => { play(false); showFrame(Number(value)); });
  on("play", "click", () => play(!timer));
  listenToKeys();
  darkness.addEventListener("change", refresh);
  addEventListener("hashchange", () => { view.hovered = null; readView(); refresh(); });
  readView();
  // Two runs are compared; more runs, or several steps of one run, are played as a film.
  if (runs.length === 2 && kind === "run" && !location.hash) openSecond();
  refresh();
}

fillPage(label, "title");
fillTerms(element.terms, TERMS.map(([term, about]) => [label(term), label(about)]));
element.language.textContent = label("switch");
element.language.lang = otherLanguage;
element.language.href = `?lang=${otherLanguage}`;
if ("DecompressionStream" in window) start();
else element.subject.textContent = label("old");
