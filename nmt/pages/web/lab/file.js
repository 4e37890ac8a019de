// @ts-check
// A text file, translated line by line. One line is asked for at a time, so that other visitors have their turns.

import { element, make } from "../dom.js";
import { Busy, Unreachable } from "../engine/interface.js";
import { label } from "../i18n.js";
import { engine, isOutdated, latest, patiently, sentenceOf, stop } from "./asking.js";
import { save } from "./save.js";
import { state } from "./state.js";

const MOST_BYTES = 1_000_000, MOST_ERRORS = 5, MOST_ATTEMPTS = 10;

/** The name and the lines of the translated file. @type {{ name: string, lines: string[] } | null} */
let done = null;
// Changes when a file is chosen or closed.
let turn = 0;

/** A line ends at LF or CRLF and nothing else. @param {string} text */
function linesOf(text) {
  const lines = text.replaceAll("\r\n", "\n").split("\n");
  if (lines[lines.length - 1] === "") lines.pop();
  return lines;
}

/** @param {File} file */
async function translateFile(file) {
  const mine = ++turn;
  stop("file");
  done = null;
  element["file-box"].hidden = false;
  element["file-box"].scrollIntoView({ block: "nearest" });
  element["file-name"].textContent = `${file.name} (${state.run})`;
  element["file-errors"].replaceChildren();
  element["file-save"].hidden = true;
  const { run } = state, question = { run, beam_size: state.beamSize, length_penalty: state.lengthPenalty };
  const say = (/** @type {string} */ text, isBusy = false) => {
    // Screen readers announce how it ends, but not every line.
    element["file-said"].textContent = isBusy ? "" : text;
    element["file-line"].textContent = isBusy ? text : "";
    element["file-wait"].hidden = !isBusy;
  };
  if (file.size > MOST_BYTES) { say(label("fileLarge", MOST_BYTES / 1_000_000)); return; }
  /** @type {string[]} */
  let lines;
  try { lines = linesOf(new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer())); } catch { if (mine === turn) say(label("fileNotText")); return; }
  if (mine !== turn) return; // while it was read, another file was chosen or this one was closed
  if (!lines.length) { say(label("fileEmpty")); return; }
  /** @type {string[]} */
  const translated = [];
  let failed = 0, stopped = "";
  element["file-progress"].max = String(lines.length);
  for (const [number, line] of lines.entries()) {
    element["file-progress"].value = number;
    say(label("fileLine", number + 1, lines.length), true);
    try {
      translated.push(line.trim() ? await latest("file", (signal) => translateLine({ ...question, text: line }, signal)) : "");
    } catch (error) {
      if (isOutdated(error)) {
        if (mine !== turn) return; // it was closed, or another file was chosen
        stopped = label("canceled");
        break;
      }
      if (error instanceof Unreachable || error instanceof Busy) { // so would the lines that follow
        stopped = label("fileError", number + 1, sentenceOf(error));
        break;
      }
      translated.push("");
      failed++;
      if (failed <= MOST_ERRORS) element["file-errors"].append(make("li", {}, label("fileError", number + 1, sentenceOf(error))));
    }
  }
  done = { name: file.name.replace(/(\.[^.]*)?$/, (end) => `.${run.replaceAll("/", "-")}${end || ".txt"}`), lines: translated };
  say(stopped || (failed ? label("fileDoneBut", lines.length, failed) : label("fileDone", lines.length)));
  element["file-save"].hidden = !translated.length;
}

/** The translation of a line. If the engine is busy, the line waits for its turn. @param {Parameters<typeof engine.line>[0]} question @param {AbortSignal} signal */
const translateLine = (question, signal) => patiently(() => engine.line(question, signal), MOST_ATTEMPTS, signal);

export function listenToFiles() {
  const hasFile = (/** @type {DragEvent} */ { dataTransfer }) => dataTransfer?.types.includes("Files");
  addEventListener("dragover", (event) => {
    if (!hasFile(event)) return;
    event.preventDefault();
    document.body.classList.add("dropping");
  });
  addEventListener("dragleave", (event) => { if (!event.relatedTarget) document.body.classList.remove("dropping"); });
  addEventListener("drop", (event) => {
    document.body.classList.remove("dropping");
    const file = event.dataTransfer?.files[0];
    if (!file) return;
    event.preventDefault();
    translateFile(file);
  });
  element["file-open"].addEventListener("click", () => element["file-chosen"].click());
  element["file-chosen"].addEventListener("change", () => {
    const [file] = /** @type {any} */ (element["file-chosen"]).files;
    if (file) translateFile(file);
    element["file-chosen"].value = "";
  });
  element["file-cancel"].addEventListener("click", () => {
    stop("file");
    element["file-close"].focus();
  });
  element["file-close"].addEventListener("click", () => {
    turn++;
    stop("file");
    element["file-box"].hidden = true;
    element["file-open"].focus();
  });
  element["file-save"].addEventListener("click", () => {
    if (done) save(done.name, new Blob([done.lines.map((line) => `${line}\n`).join("")], { type: "text/plain" }));
  });
}
