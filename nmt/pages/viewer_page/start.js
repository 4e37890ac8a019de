// ---------------------------------------------------------------- drawing everything, and the address

const HINT = "Point at a word to see what it attends to. Click to pin it. The arrow keys move through the target.";

let addressTimer = null, latestTicket = 0;

function redrawActive() {
  for (const panel of shownPanels()) if (panel.map) panel.drawActive();
  const texts = shownPanels().map((panel) => panel.describe()).filter(Boolean);
  element.status.classList.toggle("hint", texts.length === 0);
  element.status.replaceChildren(...(texts.length ? texts : [HINT]).map((text) => make("span", {}, text)));
  // Browsers limit how often the address may change.
  clearTimeout(addressTimer);
  addressTimer = setTimeout(writeAddress, 100);
}

// Draws the selection, unless it has changed again while the weights were loading.
async function refresh() {
  const ticket = ++latestTicket;
  panels[1].root.hidden = !view.compare;
  const shown = new Set(shownPanels().flatMap((panel) => Object.keys(panel.sentence?.sites ?? {})));
  const sites = [...SITES.filter((site) => shown.has(site)), ...[...shown].filter((site) => !SITES.includes(site))];
  if (sites.length && !shown.has(view.site)) view.site = shown.has("cross") ? "cross" : sites[0];
  fillSelect(element.sentence, pairs.map((pair, i) => [i, pair.label]), view.pair);
  fillSelect(element.site, sites.map((site) => [site, site]), view.site);
  element.unit.value = view.unit;
  element.rows.value = view.rows;
  element.rows.disabled = view.site === "encoder_self";
  element.compare.checked = view.compare;
  element["previous-sentence"].disabled = view.pair === 0;
  element["next-sentence"].disabled = view.pair === pairs.length - 1;
  element.film.value = panels[0].wish.run;
  element.frame.textContent = runs[panels[0].wish.run].name;
  element.film.setAttribute("aria-valuetext", runs[panels[0].wish.run].name);
  element.panels.classList.toggle("two", view.compare);
  const shownNow = shownPanels();
  const loaded = await Promise.all(shownNow.map((panel) => panel.load()));
  if (ticket !== latestTicket) return;
  shownNow.forEach((panel, i) => { panel.map = loaded[i] && panel.mapOf(loaded[i].bytes, loaded[i].site); });
  for (const panel of shownNow) if (panel.map) panel.draw();
  redrawActive();
}

function writeAddress() {
  const { line, rank } = pairs[view.pair];
  const [first, second] = panels.map(({ wish }) => wish);
  const address = new URLSearchParams({ sentence: line });
  if (rank > 1) address.set("rank", rank);
  address.set("site", view.site);
  address.set("layer", first.layer);
  address.set("head", first.head);
  if (runs.length > 1) address.set("run", first.run + 1);
  if (view.unit !== "pieces") address.set("unit", view.unit);
  if (view.rows !== "predicts") address.set("rows", view.rows);
  if (pinned) address.set(pinned.side === "target" ? "word" : "source", pinned.index + 1);
  if (view.compare) address.set("compare", [second.run + 1, second.layer, second.head].join("."));
  if (`#${address}` !== location.hash) history.replaceState(null, "", `#${address}`);
}

function readAddress() {
  const address = new URLSearchParams(location.hash.slice(1));
  // A value that is not a number or is out of range is ignored.
  const number = (text, fallback, least = 0, most = Infinity) =>
    /^\d+$/.test(text ?? "") && Number(text) >= least && Number(text) <= most ? Number(text) : fallback;
  const choice = (text, fallback) => text === MEAN ? MEAN : number(text, fallback);
  const set = (wish, [run, layer, head]) => Object.assign(wish, {
    run: number(run, wish.run + 1, 1, runs.length) - 1, layer: choice(layer, wish.layer), head: choice(head, wish.head),
  });
  const key = `${address.get("sentence")}.${address.get("rank") ?? 1}`;
  view.pair = Math.max(pairs.findIndex((pair) => keyOf(pair) === key), 0);
  view.site = address.get("site") ?? view.site;
  view.unit = address.get("unit") === "words" ? "words" : "pieces";
  view.rows = address.get("rows") === "reads" ? "reads" : "predicts";
  set(panels[0].wish, [address.get("run"), address.get("layer"), address.get("head")]);
  view.compare = address.has("compare");
  if (view.compare) set(panels[1].wish, address.get("compare").split("."));
  const side = address.has("word") ? "target" : "source";
  const index = number(address.get("word") ?? address.get("source"), 0) - 1;
  pinned = index >= 0 ? { side, index } : null;
}

// The second panel starts with another run, or with another head if there is only one run.
function openSecond() {
  const { run, layer, head } = panels[0].wish;
  Object.assign(panels[1].wish, { run, layer, head });
  if (runs.length > 1) panels[1].wish.run = run === runs.length - 1 ? 0 : runs.length - 1;
  else panels[1].wish.head = head === MEAN ? 0 : MEAN;
}

function start() {
  panels.push(new Panel(""), new Panel("-2"));
  element.panels.append(...panels.map((panel) => panel.root));
  element.subject.textContent = runs.length === 1 ? runs[0].name : `${runs.length} ${kind}s`;
  element.film.setAttribute("aria-label", kind);
  element["film-bar"].hidden = runs.length < 2;
  element.film.max = runs.length - 1;
  const on = (id, name, act) => element[id].addEventListener(name, () => act(element[id].value));
  on("sentence", "change", (value) => { view.pair = Number(value); unpin(); refresh(); });
  on("previous-sentence", "click", () => stepSentence(-1));
  on("next-sentence", "click", () => stepSentence(1));
  on("site", "change", (value) => { view.site = value; unpin(); refresh(); });
  on("unit", "change", setUnit);
  on("rows", "change", (value) => { view.rows = value; refresh(); });
  on("previous-word", "click", () => stepWord(-1));
  on("next-word", "click", () => stepWord(1));
  on("compare", "change", () => { view.compare = element.compare.checked; if (view.compare) openSecond(); refresh(); });
  on("film", "input", (value) => { play(false); showFrame(Number(value)); });
  on("play", "click", () => play(!timer));
  darkness.addEventListener("change", refresh);
  addEventListener("hashchange", () => { clearTimeout(addressTimer); hovered = null; readAddress(); refresh(); });
  readAddress();
  // Two runs are compared; more runs, or several steps of one run, are played as a film.
  if (runs.length === 2 && kind === "run" && !location.hash) {
    view.compare = true;
    openSecond();
  }
  refresh();
}

if ("DecompressionStream" in window) start();
else element.subject.textContent = "This page needs a browser from 2023 or later.";
