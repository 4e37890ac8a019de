// @ts-check
// The line below the sentence, which says what happens and what failed.

import { element } from "../dom.js";
import { isOutdated, sentenceOf } from "./asking.js";

/** @param {string} text */
export function say(text) {
  element.status.classList.remove("error");
  element.status.textContent = text;
}

/** Says why something failed; the translation stays as it is. @param {unknown} error */
export function complain(error) {
  if (isOutdated(error)) return;
  if (error instanceof TypeError || error instanceof ReferenceError || error instanceof RangeError) console.error(error); // a bug
  element.status.classList.add("error");
  element.status.textContent = sentenceOf(error);
}
