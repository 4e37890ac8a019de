// @ts-check
// The terms of the field, explained where they are used: at the pointer, at the focus, at a touch.

import { element, make } from "../dom.js";
import { fillTerms } from "../glossary.js";
import { label } from "../i18n.js";

/** The name of the label that explains a term. @type {Record<string, string>} */
const TERMS = {
  "log p": "aboutLogProb", "nats": "aboutNats", "nat": "aboutNats", "</s>": "aboutEnd", "beam": "aboutBeam",
};
/** The name of the label that is a term in the page's language. @type {Record<string, string>} */
const HEADWORDS = { nats: "termNats", beam: "termBeam" };
const FOUND = /(?<![\p{L}\p{N}])(log p|nats?|<\/s>)(?![\p{L}\p{N}])/u;

const tip = make("div", { id: "tip", role: "tooltip", hidden: "" });
document.body.append(tip);

/** @param {HTMLElement} item @param {string} text */
function explain(item, text) {
  tip.textContent = text;
  tip.hidden = false;
  const { left, bottom } = item.getBoundingClientRect();
  tip.style.left = `${Math.max(Math.min(left, innerWidth - tip.offsetWidth - 12), 12) + scrollX}px`;
  tip.style.top = `${bottom + scrollY + 6}px`;
}

const leave = () => { tip.hidden = true; };
addEventListener("keydown", ({ key }) => { if (key === "Escape") leave(); });
// A term that is replaced while it has the pointer or the focus sends no event.
addEventListener("pointerdown", ({ target }) => { if (!(target instanceof Element && target.closest(".term"))) leave(); });

/** A term that can be touched. @param {string} term @param {string} name of the label that explains it */
function touchable(term, name) {
  const item = make("button", { type: "button", class: "term", "aria-describedby": "tip" }, term);
  const show = () => { explain(item, label(name)); };
  for (const kind of ["pointerenter", "focus", "click"]) item.addEventListener(kind, show);
  for (const kind of ["pointerleave", "blur"]) item.addEventListener(kind, leave);
  return item;
}

/** A text in which every term can be touched. @param {string} text @returns {(Node | string)[]} */
export const withTerms = (text) => text.split(FOUND).map((part) => TERMS[part] ? touchable(part, TERMS[part]) : part);

/**
 * A text in which one more term can be touched: an everyday word, which `withTerms` would also find in quoted sentences.
 * @param {string} text @param {string} term @param {string} name of the label that explains it @returns {(Node | string)[]}
 */
export function withTerm(text, term, name) {
  const start = text.toLowerCase().indexOf(term.toLowerCase()), end = start + term.length; // it may begin the text
  return start < 0 ? [text] : [text.slice(0, start), touchable(text.slice(start, end), name), text.slice(end)];
}

export function fillGlossary() {
  const entries = Object.entries(TERMS).filter(([term]) => term !== "nat").map(([term, name]) => [HEADWORDS[term] ? label(HEADWORDS[term]) : term, name]);
  const more = [[label("cross"), "aboutCross"], [label("head"), "aboutHead"], [label("pieces"), "aboutPieces"]];
  fillTerms(element.terms, [...more, ...entries].map(([term, name]) => [term, label(name)]));
}
