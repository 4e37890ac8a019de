// @ts-check
// Lines in NFC with single plain spaces. As nmt/text/normalize.py.

import { withoutInvisible } from "./invisible.js";

/* eslint no-control-regex: "off" -- control characters are what is replaced */
// Control characters, and what Python's \s matches besides them: JavaScript's \s has U+FEFF too.
const BLANKS = /[\u{0}-\u{20}\u{7f}-\u{a0}\u{1680}\u{2000}-\u{200a}\u{2028}\u{2029}\u{202f}\u{205f}\u{3000}]+/gu;

/** The line in NFC with single plain spaces, and without invisible characters. @param {string} text */
export function normalize(text) {
  const visible = withoutInvisible(text).replaceAll("\u2581", "_");
  return visible.replace(BLANKS, " ").replace(/^ | $/g, "").normalize("NFC");
}
