// @ts-check
// Pieces and numbers as the lab writes them.

import { withoutMark } from "../words.js";

/** The text of pieces, in quotation marks. @param {string} text */
export const quoted = (text) => `“${withoutMark(text, " ")}”`;

/** A number with its sign, unless it is 0.00. @param {number} value */
export function signed(value) {
  const digits = Math.abs(value).toFixed(2);
  return Number(digits) === 0 ? digits : `${value < 0 ? "−" : "+"}${digits}`;
}
