// @ts-check
// The presentation for a lecture hall: large letters and few controls. ?present in the address opens the page in it.

import { flushAnchor } from "../address.js";
import { magnify } from "../draw.js";
import { element, hasModifier } from "../dom.js";
import { label } from "../i18n.js";
import { linkLanguage } from "./state.js";

// A fortieth of this height is 13 pixels, the size of the letters in drawings: in a lecture hall, words need a fortieth.
const LETTERS_FIT = 520;
// In a window that is higher than 4:3, lines are too short for larger letters. In a very small one, letters stay legible.
const OF_WIDTH = 0.75, LEAST_HEIGHT = 600;
const root = document.documentElement;

export const isPresenting = () => root.classList.contains("present");

/** The height of the window as far as letters and cells grow with it, in pixels. */
export const usedHeight = () => Math.max(Math.min(innerHeight, OF_WIDTH * innerWidth), LEAST_HEIGHT);

/** @param {boolean} on */
function present(on) {
  root.classList.toggle("present", on);
  element.present.textContent = label(on ? "leavePresentation" : "present");
  fit();
}

/** Makes letters and drawings as large as the window allows. */
function fit() {
  root.style.setProperty("--h", `${usedHeight() / 100}px`);
  magnify(isPresenting() ? usedHeight() / LETTERS_FIT : 1);
}

/** @param {() => void} redraw draws everything again in another size */
export function listenToPresentation(redraw) {
  present(new URLSearchParams(location.search).has("present"));
  const toggle = () => {
    present(!isPresenting());
    flushAnchor();
    const query = new URLSearchParams(location.search);
    if (isPresenting()) query.set("present", "");
    else query.delete("present");
    const text = String(query).replace(/present=(?=&|$)/, "present");
    history.replaceState(null, "", `${location.pathname}${text && `?${text}`}${location.hash}`);
    linkLanguage();
    redraw();
  };
  element.present.addEventListener("click", () => { toggle(); element.present.blur(); });
  addEventListener("resize", fit);
  document.addEventListener("keydown", (event) => {
    const isTyping = event.target instanceof Element && event.target.matches("input:not([type=range]), textarea, select");
    if (event.key.toLowerCase() === "p" && !isTyping && !hasModifier(event) && !element.share.open) toggle();
  });
}
