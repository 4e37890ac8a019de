// ---------------------------------------------------------------- mouse, touch and focus

function hover(place) {
  if (samePlace(place, hovered)) return;
  hovered = place;
  redrawActive();
}

function pin(place) {
  pinned = samePlace(place, pinned) ? null : place;
  if (!pinned) hovered = null;
  redrawActive();
}

const placeOf = (token) => ({ side: token.dataset.side, index: Number(token.dataset.index) });

function listenToTokens(panel) {
  for (const list of Object.values(panel.lists)) {
    const on = (name, act) => list.addEventListener(name, (event) => {
      const token = event.target.closest(".token");
      if (token) act(placeOf(token), event);
    });
    // A finger does not hover; its tap is a click.
    on("pointerover", (place, event) => { if (event.pointerType !== "touch") hover(place); });
    list.addEventListener("pointerleave", (event) => { if (event.pointerType !== "touch") hover(null); });
    on("focusin", (place) => hover(place));
    on("focusout", () => hover(null));
    on("click", (place) => pin(place));
    on("keydown", (place, event) => { if (event.key === "Enter") pin(place); });
  }
}

function listenToHeat(panel) {
  panel.heat.addEventListener("pointermove", (event) => { if (event.pointerType !== "touch") hover(heatPlace(panel, event)); });
  panel.heat.addEventListener("pointerleave", () => hover(null));
  panel.heat.addEventListener("click", (event) => {
    const place = heatPlace(panel, event);
    if (place) pin(place);
  });
}

function listenToEntropy(panel) {
  const choose = ({ layer, head }) => {
    panel.wish.layer = Number(layer);
    panel.wish.head = Number(head);
    refresh();
  };
  const moves = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
  panel.entropy.addEventListener("click", (event) => {
    const cell = event.target.closest("button");
    if (cell) choose(cell.dataset);
  });
  panel.entropy.addEventListener("keydown", (event) => {
    const move = moves[event.key];
    if (!move || !event.target.dataset.layer || hasModifier(event)) return;
    event.preventDefault();
    event.stopPropagation();
    const layer = Number(event.target.dataset.layer) + move[0], head = Number(event.target.dataset.head) + move[1];
    const next = panel.entropy.querySelector(`[data-layer="${layer}"][data-head="${head}"]`);
    if (!next) return;
    event.target.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  });
}

// ---------------------------------------------------------------- steps and keys

const element = Object.fromEntries([...document.querySelectorAll("[id]:not(script)")].map((found) => [found.id, found]));

function stepSentence(direction) {
  const next = clamp(view.pair + direction, pairs.length - 1);
  if (next === view.pair) return;
  view.pair = next;
  unpin();
  refresh();
}

function focusedPanel() {
  return shownPanels().find((panel) => panel.root.contains(document.activeElement)) ?? panels[0];
}

function stepWord(direction) {
  const panel = focusedPanel();
  if (!panel.map) return;
  const focused = document.activeElement?.closest(".token");
  const side = focused?.dataset.side ?? "target";
  const place = activePlace();
  const from = place?.side === side ? place.index : direction > 0 ? -1 : panel.map[side].length;
  const index = clamp(from + direction, panel.map[side].length - 1);
  pinned = { side, index };
  hovered = null;
  redrawActive();
  const token = panel.tokens[side][index];
  if (focused) token.focus();
  token.scrollIntoView({ block: "nearest" });
}

function stepChoice(part, direction) {
  const panel = focusedPanel();
  if (!panel.site) return;
  const choices = choicesOf(panel.site[`${part}s`]);
  const at = choices.indexOf(part === "head" ? panel.headShown : panel.layerShown);
  panel.wish[part] = choices[clamp(at + direction, choices.length - 1)];
  refresh();
}

function takeMean() {
  const { wish } = focusedPanel();
  if (wish.head === MEAN) wish.layer = MEAN;
  wish.head = MEAN;
  refresh();
}

function setUnit(unit) {
  view.unit = unit;
  unpin();
  refresh();
}

function unpin() {
  pinned = hovered = null;
}

function leave() {
  unpin();
  if (["SELECT", "INPUT"].includes(document.activeElement?.tagName)) document.activeElement.blur();
  redrawActive();
}

function toggleKeys() {
  element.keys.open = !element.keys.open;
  if (element.keys.open) element.keys.querySelector("summary").focus();
}

const KEYS = {
  ArrowLeft: () => stepWord(-1), ArrowRight: () => stepWord(1),
  ArrowUp: () => stepChoice("head", -1), ArrowDown: () => stepChoice("head", 1),
  PageUp: () => stepChoice("layer", -1), PageDown: () => stepChoice("layer", 1),
  "[": () => stepChoice("layer", -1), "]": () => stepChoice("layer", 1),
  n: () => stepSentence(1), p: () => stepSentence(-1),
  m: takeMean, w: () => setUnit(view.unit === "words" ? "pieces" : "words"),
  " ": () => play(!timer), "?": toggleKeys,
};

const hasModifier = (event) => event.ctrlKey || event.metaKey || event.altKey;

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") return leave();
  const tag = event.target.tagName;
  if (hasModifier(event) || tag === "SELECT" || tag === "INPUT") return undefined;
  // The space bar presses a focused button, and without a film it scrolls the page.
  if (event.key === " " && (tag === "BUTTON" || tag === "SUMMARY" || runs.length < 2)) return undefined;
  const act = KEYS[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (!act) return undefined;
  event.preventDefault();
  return act();
});

// ---------------------------------------------------------------- the film

const FRAME_MS = 700;
let timer = null;

function showFrame(run) {
  panels[0].wish.run = run;
  return refresh();
}

function play(on) {
  clearInterval(timer);
  timer = null;
  if (on && runs.length > 1) {
    if (panels[0].wish.run === runs.length - 1) showFrame(0);
    timer = setInterval(() => {
      showFrame(clamp(panels[0].wish.run + 1, runs.length - 1));
      if (panels[0].wish.run === runs.length - 1) play(false);
    }, FRAME_MS);
  }
  element.play.textContent = timer ? "Stop" : "Play";
}
