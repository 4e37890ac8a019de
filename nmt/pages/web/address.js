// @ts-check
// The part of the address after #, which keeps what a page shows, so that a link opens the same view.

// Safari throws an error after 100 changes of the address in 30 seconds, and a key that is held down would make more.
const WAIT = 350; // milliseconds without a change, after which the address is written

/** What is to be written, and the part after # that it replaces. @type {{ anchor: string, replaced: string } | null} */
let waiting = null;
let timer = 0;

function drop() {
  clearTimeout(timer);
  waiting = null;
}

/** Reads the address. Drops a pending write, which belongs to the previous view. */
export function readAnchor() {
  drop();
  return new URLSearchParams(location.hash.slice(1));
}

/** Writes now what waits to be written, for whoever is going to use the address. */
export function flushAnchor() {
  // If the address has changed in the meantime, the page is about to read it.
  if (waiting && waiting.anchor !== location.hash && location.hash === waiting.replaced) history.replaceState(null, "", waiting.anchor);
  drop();
}

/** Writes the address soon. With `isNew` it does so at once, and the browser's Back button returns to the previous view. @param {URLSearchParams} anchor */
export function writeAnchor(anchor, isNew = false) {
  const text = `#${anchor}`;
  if (isNew) {
    flushAnchor(); // into the entry of the history that Back returns to
    if (text !== location.hash) history[location.hash.length > 1 ? "pushState" : "replaceState"](null, "", text);
    return;
  }
  clearTimeout(timer);
  waiting = { anchor: text, replaced: waiting?.replaced ?? location.hash };
  timer = setTimeout(flushAnchor, WAIT);
}
