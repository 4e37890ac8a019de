// @ts-check
// The part of the address after #, which keeps what a page shows, so that a link opens the same view.

export const readAnchor = () => new URLSearchParams(location.hash.slice(1));

/** With `isNew`, the browser's Back button returns to the previous view. @param {URLSearchParams} anchor */
export function writeAnchor(anchor, isNew = false) {
  if (`#${anchor}` !== location.hash) history[isNew && location.hash.length > 1 ? "pushState" : "replaceState"](null, "", `#${anchor}`);
}
