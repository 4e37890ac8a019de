// @ts-check
// A sentence in the wrong language: offers to translate it in the other direction.

import { button, element } from "../dom.js";
import { label } from "../i18n.js";
import { translateBack } from "./signals.js";

/** @typedef {import("../engine/interface.js").Run} Run */

// Letters of Vietnamese that hardly any other language has.
const VIETNAMESE = /[\u01a0\u01a1\u01af\u01b0\u0103\u0111\u1ea0-\u1ef9]/i;
/** Labels of the languages that `languageOf` tells apart: alone, and as the target. @type {Record<string, [string, string]>} */
const NAMES = { en: ["inEnglish", "toEnglish"], vi: ["inVietnamese", "toVietnamese"] };
const MARKED = /[\u0080-\uffff]/;
// A word that may be a Vietnamese syllable typed without its accents.
const SYLLABLE = /^(?:[bdghklmnprstvx]|[cgknpt]h|gi|ngh?|qu|tr|c|q)?[aeiouy]{1,3}(?:[cmnpt]|ch|ng|nh)?$/;

/**
 * The language of a text, if it is English or Vietnamese, where its letters tell: "en" or "vi"; otherwise "". A text
 * of another language that has no accents is taken for English. @param {string} text
 */
export function languageOf(text) {
  const words = text.normalize("NFC").toLowerCase().match(/\p{L}+/gu) ?? [];
  if (words.some((word) => VIETNAMESE.test(word))) return "vi";
  const foreign = words.filter((word) => !SYLLABLE.test(word)).length;
  return words.length > 2 && 2 * foreign >= words.length && !words.some((word) => MARKED.test(word)) ? "en" : "";
}

/**
 * @param {string} text what was translated; "" if nothing was
 * @param {Run | undefined} run @param {Run | undefined} opposite a run that translates back
 */
export function offerDirection(text, run, opposite) {
  const ofSource = run && NAMES[run.source], ofTarget = run && NAMES[run.target];
  const isWrong = ofSource && ofTarget && opposite && languageOf(text) === opposite.source && run.source !== opposite.source;
  element.direction.hidden = !isWrong;
  if (!isWrong) return;
  element.direction.replaceChildren(`${label("wrongWay", label(ofSource[0]))} `, button(label("translateInstead", label(ofSource[1])), () => { translateBack(text); element.swap.focus({ preventScroll: true }); }));
}
