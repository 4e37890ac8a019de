// @ts-check
// The language of a page, and its labels in that language.

/** The language that the address names, by default the browser's. */
export const language = (new URLSearchParams(location.search).get("lang") ?? navigator.language).startsWith("vi") ? "vi" : "en";

/** The other language. */
export const otherLanguage = language === "vi" ? "en" : "vi";

const names = new Intl.DisplayNames([language], { type: "language" });

/** A language by its name in the language of the page; an invalid code is returned unchanged. @param {string} code */
export function nameOfLanguage(code) {
  try { return names.of(code) ?? code; } catch { return code; }
}

/** A written number as readers of the page's language expect it: Vietnamese has a decimal comma. @param {string} digits */
export const localized = (digits) => language === "vi" ? digits.replace(".", ",") : digits;

/** A number with so many decimals, for readers; data, addresses and styles have a point in every language. @param {number} number @param {number} digits */
export const decimal = (number, digits) => localized(number.toFixed(digits));

/** What is between numbers in a list. */
export const SEPARATOR = language === "vi" ? "; " : ", ";

/** @typedef {(name: string, ...values: (string | number)[]) => string} Label a text in which {0}, {1} ... are replaced by the values */

/** A function that looks up texts by language and name; a name without a text stands for itself. @param {Record<string, Record<string, string>>} texts @returns {Label} */
export const labelFrom = (texts) => (name, ...values) => (Object.hasOwn(texts[language], name) ? texts[language][name] : name).replace(/\{(\d)\}/g, (_, index) => String(values[index]));

/** Fills every element that has a data-text attribute with the label of that name, and gives each with data-label that name. @param {Label} label @param {ParentNode} root */
export function fillTexts(label, root = document) {
  for (const element of /** @type {NodeListOf<HTMLElement>} */ (root.querySelectorAll("[data-text]"))) element.textContent = label(element.dataset.text ?? "");
  for (const element of /** @type {NodeListOf<HTMLElement>} */ (root.querySelectorAll("[data-label]"))) element.setAttribute("aria-label", label(element.dataset.label ?? ""));
}

/** Sets the page's language and title, and all its texts. @param {Label} label @param {string} title the name of its label */
export function fillPage(label, title) {
  document.documentElement.lang = language;
  document.title = label(title);
  fillTexts(label);
}
