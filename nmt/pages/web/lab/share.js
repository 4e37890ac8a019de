// @ts-check
// A QR code of what the page shows, for everybody in the room.

import { flushAnchor } from "../address.js";
import { element } from "../dom.js";
import { label } from "../i18n.js";
import { engine } from "./asking.js";

const MOST_BYTES = 1500; // the server draws no longer text; see nmt/serving/page.py
const LOOPBACK = /^(localhost|.*\.localhost|127\.[\d.]+|0\.0\.0\.0|\[::1?\])$/;

/** The address of the same state for others, who need no presentation. */
function sharedAddress() {
  flushAnchor();
  const address = new URL(location.href);
  address.searchParams.delete("present");
  return address.href;
}

export function listenToShare() {
  const { qrCode } = engine;
  element.qr.hidden = !qrCode;
  if (!qrCode) return;
  element.qr.addEventListener("click", () => {
    const address = sharedAddress(), image = /** @type {HTMLImageElement} */ (/** @type {HTMLElement} */ (element["share-code"]));
    const isLong = address.length > MOST_BYTES; // in an address, every letter is a byte
    image.hidden = isLong;
    image.alt = label("qrOf", address);
    if (isLong) image.removeAttribute("src");
    else image.src = qrCode(address);
    element["share-address"].textContent = `${location.host}${location.pathname.replace(/\/$/, "")}`;
    element["share-note"].textContent = isLong ? label("qrFailed") : LOOPBACK.test(location.hostname) ? label("onlyHere") : "";
    /** @type {HTMLDialogElement} */ (/** @type {HTMLElement} */ (element.share)).showModal();
  });
  element["share-code"].addEventListener("error", () => {
    element["share-code"].hidden = true;
    element["share-note"].textContent = label("failed");
  });
}
