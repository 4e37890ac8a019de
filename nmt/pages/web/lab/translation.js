// @ts-check
// The words of the translation: each can be replaced, locked, deleted, typed over, or dragged to a source word that the
// model should look at.

import { button, clamp, copied, element, fillSelect, fitHeight, hasModifier, hit, make, part, reachIfLong } from "../dom.js";
import { label } from "../i18n.js";
import { MEAN } from "../map.js";
import { spansOf } from "../words.js";
import { answers, shownMap } from "./answers.js";
import { engine, latest } from "./asking.js";
import { alternativesAt, lookedAt, restoreRow, setWeight } from "./inspector.js";
import { selectedMap } from "./maps.js";
import { askAgain, selectCell } from "./signals.js";
import { beginWith, isKept, selectedPlace, setLocks, state, subject } from "./state.js";
import { complain, say } from "./status.js";
import { fillWords, quoted } from "./wording.js";

/** @typedef {import("../engine/interface.js").Translation} Translation */

const paragraph = part(element.answer, ".translation");
const DRAG_PIXELS = 6;

/** @type {Translation | null} */
let shown = null;
/** The word whose menu is open. @type {number | null} */
let chosen = null;

/** The word that gets the keyboard's focus back with the next translation; -1: none. */
let lost = -1;

/** The pieces of each word, without the end. @param {Translation} translation */
const wordsOf = ({ pieces }) => spansOf(pieces.slice(0, -1), "words");

const wordButtons = () => /** @type {HTMLElement[]} */ ([...paragraph.querySelectorAll("button")]);

/**
 * Shows the translation, and underlines the words that the other translation does not contain.
 * @param {Translation} translation @param {Translation | null} compared
 */
export function showWords(translation, compared) {
  const words = translation.text.split(" "), spans = wordsOf(translation);
  const focused = document.activeElement === document.body ? lost : wordButtons().indexOf(/** @type {HTMLElement} */ (document.activeElement));
  lost = -1;
  if (shown?.ids.join(" ") !== translation.ids.join(" ")) chosen = null;
  shown = translation;
  // A text whose words are not those of its pieces can be read, but not changed word by word.
  const isAlive = words.length === spans.length && translation.text !== "";
  fillWords(paragraph, translation.text, compared?.text, (word, i) => {
    if (!isAlive) return make("span", {}, word);
    const item = button(word, () => { openMenu(chosen === i ? null : i); });
    Object.assign(item.dataset, { from: spans[i][0], word: i });
    item.setAttribute("aria-expanded", String(chosen === i));
    item.setAttribute("aria-controls", "word-menu");
    item.classList.toggle("locked", isLocked(spans[i]));
    return item;
  });
  reachIfLong(paragraph);
  element.tools.hidden = false;
  element.edit.hidden = !translation.ids.length;
  if (focused >= 0) wordButtons()[clamp(focused, wordButtons().length - 1)]?.focus({ preventScroll: true });
  showMenu();
}

/** Removes what belongs to an earlier translation. */
export function forgetWords() {
  const { activeElement } = document, isByKeys = !document.documentElement.classList.contains("by-pointer");
  if (isByKeys && (element["word-menu"].contains(activeElement) || element.answer.contains(activeElement))) {
    lost = chosen ?? Math.max(wordButtons().indexOf(/** @type {HTMLElement} */ (activeElement)), 0);
  }
  shown = chosen = null;
  element.tools.hidden = true;
  if (!element["edit-box"].hidden) showEditor(false);
  showMenu();
}

/** @param {import("../words.js").Span} span */
const isLocked = ([start, end]) => state.locks.slice(start, end).filter(isKept).length === end - start;

/** The row of a piece in the translation's map, if its rows are pieces of the translation. @param {number} piece */
function rowOf(piece) {
  const row = state.site === "encoder_self" ? -1 : shownMap(answers.intact)?.rowSpans.findIndex(([start, end]) => piece >= start && piece < end) ?? -1;
  return row < 0 ? null : row;
}

/** @param {number | null} word */
function openMenu(word) {
  chosen = word;
  wordButtons().forEach((item, i) => { item.setAttribute("aria-expanded", String(i === word)); });
  selectCell({ row: word === null || !shown ? null : rowOf(wordsOf(shown)[word][0]), column: null });
  showMenu();
}

export const closeMenu = () => { if (chosen !== null) openMenu(null); };

/** Closes the menu if a row of the map is selected that is not its word's. @param {number | null} row */
export function leaveMenu(row) {
  if (chosen === null || row === null || (shown && rowOf(wordsOf(shown)[chosen][0]) === row)) return;
  chosen = null;
  for (const item of wordButtons()) item.setAttribute("aria-expanded", "false");
  showMenu();
}

/** The menu of the chosen word: other pieces, lock, delete, and where the model should look. */
async function showMenu() {
  const menu = element["word-menu"];
  menu.hidden = chosen === null || !shown;
  if (chosen === null || !shown) return;
  const translation = shown, word = chosen, spans = wordsOf(translation), [start] = spans[word];
  const text = translation.text.split(" ")[word];
  menu.setAttribute("aria-label", quoted(text));
  element["word-name"].textContent = quoted(text);
  element["word-lock"].textContent = label(isLocked(spans[word]) ? "unlockWord" : "lockWord");
  // The model ends a sentence itself; what follows a deleted word has to be known.
  element["word-delete"].hidden = word === spans.length - 1;
  const map = crossMap(translation);
  fillSelect(element["word-look"], [["", `(${label("asTrained")})`], ...map.columns.map((column, i) => [i, column])], lookedAt(map, word, crossPlace()));
  element["word-look"].disabled = false;
  element["word-others"].replaceChildren();
  try {
    const others = await alternativesAt(start, translation);
    if (shown === translation && chosen === word) element["word-others"].replaceChildren(...others);
  } catch (error) { complain(error); }
}

/** The selected layers and heads of cross attention: all of them if another site is selected. */
const crossPlace = () => state.site === "cross" ? selectedPlace() : { site: "cross", layer: null, head: null };

/** The cross attention between words, in the selected layers and heads. @param {Translation} translation */
const crossMap = (translation) => selectedMap(translation.maps.cross, state.site === "cross" ? state.layer : MEAN, state.site === "cross" ? state.head : MEAN, "words");

/** All the weight of a word's row goes to one source word. @param {number} word @param {number} column */
function lookAt(word, column) {
  if (!shown) return;
  if (state.site !== "cross") Object.assign(state, { site: "cross", layer: MEAN, head: MEAN, row: null, column: null, of: "intact" });
  setWeight(crossMap(shown), word, column, 1);
  askAgain();
}

function lockChosen() {
  if (!shown || chosen === null) return;
  const [start, end] = wordsOf(shown)[chosen];
  setLocks(start, end, isLocked([start, end]) ? [] : shown.ids);
  askAgain();
}

/** The model goes on after the next word, which takes the place of the deleted one. */
function deleteChosen() {
  if (!shown || chosen === null) return;
  const spans = wordsOf(shown), [start, end] = spans[chosen], [, next] = spans[chosen + 1];
  askAgain(beginWith([...shown.ids.slice(0, start), ...shown.ids.slice(end, next)], shown.ids));
}

// ---------------------------------------------------------------- typing

/**
 * What the model must keep of a typed text: everything up to the last change. Where words were only deleted, the word
 * after them too, so that they do not come back.
 * @param {string} before @param {string} typed
 */
export function keptText(before, typed) {
  const old = before.split(" "), now = typed.trim().split(/\s+/).filter(Boolean);
  let same = 0;
  while (same < Math.min(old.length, now.length) && old[old.length - 1 - same] === now[now.length - 1 - same]) same++;
  const kept = now.length - same;
  const isDeletion = kept < old.length - same && now.slice(0, kept).every((word, i) => word === old[i]);
  return now.slice(0, kept + (isDeletion && same ? 1 : 0)).join(" ");
}

/** @param {boolean} isOpen */
function showEditor(isOpen) {
  element["edit-box"].hidden = !isOpen;
  paragraph.hidden = isOpen;
  element.edit.setAttribute("aria-expanded", String(isOpen));
  if (isOpen && shown) {
    openMenu(null);
    element["edit-text"].value = shown.text;
    element["edit-text"].lang = paragraph.lang;
    fitHeight(element["edit-text"]);
    element["edit-text"].focus();
  }
}

async function goOnFromTyped() {
  const translation = shown, typed = element["edit-text"].value;
  const close = () => {
    showEditor(false);
    element.edit.focus();
  };
  if (!translation || typed.trim() === translation.text) { close(); return; }
  const text = keptText(translation.text, typed);
  try {
    const question = { run: subject.run, text: subject.source, target: text };
    const prefix = text ? (await latest("typed", (signal) => engine.attend(question, signal))).ids : [];
    if (shown !== translation) return; // what was typed belongs to an earlier translation
    close(); // only now: after an error, what was typed is still there
    askAgain(beginWith(prefix, translation.ids));
  } catch (error) { complain(error); }
}

// ---------------------------------------------------------------- dragging

/** Dragging a word to a word of the source, or to a column of the map, says that the model should look there. */
function listenToWordDrag() {
  const ghost = document.body.appendChild(make("div", { id: "ghost", "aria-hidden": "true", hidden: "" }));
  /** @type {{ word: number, x: number, y: number, moved: boolean } | null} */
  let held = null;
  const columnAt = (/** @type {PointerEvent} */ { clientX, clientY }) => {
    const [top, ...behind] = document.elementsFromPoint(clientX, clientY);
    // The words of the source are behind the field that contains them.
    const under = top === element.text ? behind.map((item) => item.closest("#echo [data-column]")).find(Boolean) : top?.closest("#intact [data-column]");
    return state.site === "cross" && under ? Number(under.getAttribute("data-column")) : null;
  };
  const light = (/** @type {number | null} */ column) => {
    for (const item of document.querySelectorAll("#intact .label[data-column], #echo [data-column]")) {
      item.classList.toggle("target", item.getAttribute("data-column") === String(column));
    }
  };
  const drop = () => {
    held = null;
    ghost.hidden = true;
    light(null);
  };
  paragraph.addEventListener("pointerdown", (event) => {
    const word = hit(event, "[data-word]");
    if (!word || event.button !== 0 || event.pointerType === "touch") return; // a touch scrolls instead
    held = { word: Number(word.dataset.word), x: event.clientX, y: event.clientY, moved: false };
    word.setPointerCapture(event.pointerId);
    ghost.textContent = word.textContent;
  });
  paragraph.addEventListener("pointermove", (event) => {
    if (!held) return;
    held.moved ||= Math.hypot(event.clientX - held.x, event.clientY - held.y) > DRAG_PIXELS;
    if (!held.moved) return;
    Object.assign(ghost.style, { left: `${event.clientX + scrollX + 10}px`, top: `${event.clientY + scrollY - 30}px` });
    ghost.hidden = false;
    light(columnAt(event));
  });
  paragraph.addEventListener("pointerup", (event) => {
    const dragged = held, column = columnAt(event);
    drop();
    if (!dragged?.moved) return;
    // The click that follows, if there is one, would open the menu.
    const ignore = (/** @type {Event} */ click) => { click.stopPropagation(); };
    addEventListener("click", ignore, { capture: true, once: true });
    setTimeout(() => { removeEventListener("click", ignore, { capture: true }); }, 0);
    if (column === null || !shown) return;
    const [piece] = selectedMap(shown.maps.cross, MEAN, MEAN).columnSpans[column]; // pieces or words, as in the map
    const words = crossMap(shown).columnSpans;
    lookAt(dragged.word, words.findIndex(([start, end]) => piece >= start && piece < end));
  });
  paragraph.addEventListener("pointercancel", drop);
}

export function listenToTranslation() {
  element["word-lock"].addEventListener("click", lockChosen);
  element["word-delete"].addEventListener("click", deleteChosen);
  element["word-look"].addEventListener("change", () => {
    const { value } = element["word-look"];
    if (chosen === null || !shown) return;
    if (value !== "") lookAt(chosen, Number(value));
    else {
      restoreRow(crossMap(shown), chosen, crossPlace());
      askAgain();
    }
  });
  element["word-menu"].addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || chosen === null) return;
    const word = chosen;
    openMenu(null);
    wordButtons()[word]?.focus();
  });
  paragraph.addEventListener("keydown", (event) => {
    const at = wordButtons().indexOf(/** @type {HTMLElement} */ (event.target));
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: wordButtons().length - 1 }[event.key];
    if (at < 0 || to === undefined || hasModifier(event)) return;
    event.preventDefault();
    wordButtons()[clamp(to, wordButtons().length - 1)].focus();
  });
  element.edit.addEventListener("click", () => { showEditor(Boolean(element["edit-box"].hidden)); });
  element["edit-box"].addEventListener("submit", (event) => {
    event.preventDefault();
    goOnFromTyped();
  });
  element["edit-text"].addEventListener("input", () => { fitHeight(element["edit-text"]); });
  element["edit-text"].addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.isComposing) {
      event.preventDefault();
      goOnFromTyped();
    }
    if (event.key === "Escape") {
      showEditor(false);
      element.edit.focus();
    }
  });
  element.copy.addEventListener("click", async () => {
    if (shown) say(label(await copied(shown.text) ? "copiedText" : "copyTextFailed"));
  });
  listenToWordDrag();
}
