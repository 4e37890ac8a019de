// @ts-check
// Pieces and numbers as the lab writes them.

import { make } from "../dom.js";
import { label } from "../i18n.js";
import { decimal, language } from "../language.js";
import { withoutMark } from "../words.js";

/** The text of pieces, in quotation marks. @param {string} text */
export const quoted = (text) => `“${withoutMark(text, " ")}”`;

/** A number with its sign, unless it is 0.00. @param {number} value */
export function signed(value) {
  const digits = decimal(Math.abs(value), 2);
  return /[1-9]/.test(digits) ? `${value < 0 ? "−" : "+"}${digits}` : digits;
}

/** Says that a translation is empty. The style sheet writes it, so that nobody copies or saves it as the translation. */
export const sayNothing = () => make("span", { class: "nothing", lang: language, "data-says": label("wroteNothing") });

/**
 * Shows a translation word by word, and underlines the words that the other translation does not contain.
 * @param {HTMLElement} paragraph @param {string} text @param {string | undefined} other
 * @param {(word: string, i: number) => HTMLElement} itemOf makes the element of a word
 */
export function fillWords(paragraph, text, other, itemOf) {
  const words = text.split(" "), others = new Set(other?.split(" ") ?? words);
  paragraph.replaceChildren(...words.flatMap((word, i) => {
    const item = itemOf(word, i);
    item.classList.toggle("differs", !others.has(word));
    return [...i ? [" "] : [], item];
  }));
  if (!text) paragraph.replaceChildren(sayNothing());
}

const MOST_TIMES = 1e6; // nobody reads more digits, and the number has more than 300 after 700 nats

/** How many times a probability grows or shrinks if its logarithm changes by so many nats. @param {number} nats */
export function timesOf(nats) {
  const times = Number(Math.exp(Math.abs(nats)).toPrecision(2));
  return times > MOST_TIMES ? label("overAMillion") : times.toLocaleString(language);
}
