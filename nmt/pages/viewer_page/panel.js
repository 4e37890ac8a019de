class Panel {
  constructor(suffix) {
    this.root = document.getElementById("panel").content.cloneNode(true).firstElementChild;
    this.root.setAttribute("aria-label", suffix ? "Second map" : "Map");
    for (const element of this.root.querySelectorAll("[data-part]")) {
      this[element.dataset.part] = element;
      element.id = element.dataset.part + suffix;
    }
    this.lists = Object.fromEntries([...this.root.querySelectorAll(".tokens")].map((list) => [list.dataset.side, list]));
    this.tokens = { source: [], target: [] };
    this.faint = this.root.querySelector(".faint");
    this.bold = this.root.querySelector(".bold");
    this.wish = { run: 0, layer: MEAN, head: MEAN };
    this.map = null;
    this.listen();
  }

  get place() { return runs[this.wish.run].places.get(keyOf(pairs[view.pair])); }
  get sentence() { return runs[this.wish.run].sentences[this.place]; }
  get site() { return this.sentence?.sites[view.site]; }
  get layerShown() { return within(this.wish.layer, this.site?.layers ?? 1); }
  get headShown() { return within(this.wish.head, this.site?.heads ?? 1); }
  // The weight that has the strongest color. Maps that are compared, side by side or in a film, share it, so that equal
  // colors always mean equal weights.
  get mostWeight() {
    if (runs.length > 1 && !view.compare) return 1;
    return Math.max(...(view.compare ? shownPanels() : [this]).map((panel) => panel.map?.most ?? 0));
  }
  sequence(number) { return this.sentence.sequences[number]; }

  listen() {
    this.run.addEventListener("change", () => { this.wish.run = Number(this.run.value); refresh(); });
    for (const part of ["layer", "head"]) {
      this[part].addEventListener("change", () => {
        this.wish[part] = this[part].value === MEAN ? MEAN : Number(this[part].value);
        refresh();
      });
    }
    listenToTokens(this);
    listenToHeat(this);
    listenToEntropy(this);
    new ResizeObserver(() => { if (this.map) { this.drawFaint(); this.drawActive(); } }).observe(this.views);
  }

  // The weights of the selected map, or null if there is none.
  async load() {
    this.fillSelects();
    const { site } = this;
    this.views.hidden = !site;
    this.missing.hidden = Boolean(site);
    if (!site) {
      this.pair.replaceChildren();
      this.missing.textContent = this.sentence
        ? `This ${kind} has no attention at ${view.site}.`
        : `This ${kind} has no line ${pairs[view.pair].line}, translation ${pairs[view.pair].rank}.`;
      return null;
    }
    return { site, bytes: await weightsOf(this.wish.run, this.place, view.site) };
  }

  mapOf(bytes, site) {
    const rows = this.sequence(view.rows === "reads" ? site.inputs : site.outputs);
    const columns = this.sequence(site.columns);
    const [rowSpans, columnSpans] = [spansOf(rows, view.unit), spansOf(columns, view.unit)];
    const layers = numbersOf(this.layerShown, site.layers), heads = numbersOf(this.headShown, site.heads);
    const pieces = meanWeights(bytes, site, layers, heads, rows.pieces.length, columns.pieces.length);
    const matrix = view.unit === "words" ? mergeWords(pieces, rowSpans, columnSpans) : pieces;
    const one = layers.length === 1 && heads.length === 1 && view.unit === "pieces";
    return {
      matrix,
      most: matrix.most(),
      rowSpans,
      target: tokensOf(rows, view.unit),
      source: tokensOf(columns, view.unit),
      // Centers are positions of pieces, and their mean over heads is meaningless.
      centers: one && site.center ? site.center[layers[0]][heads[0]] : null,
    };
  }

  fillSelects() {
    fillSelect(this.run, runs.map((run, i) => [i, run.name]), this.wish.run);
    this["run-label"].hidden = runs.length < 2;
    this["run-kind"].textContent = kind;
    fillSelect(this.layer, choicesOf(this.site?.layers ?? 1).map((choice) => [choice, choice]), this.layerShown);
    fillSelect(this.head, choicesOf(this.site?.heads ?? 1).map((choice) => [choice, choice]), this.headShown);
  }

  draw() {
    this.drawNames();
    this.drawTokens("source", this.map.source);
    this.drawTokens("target", this.map.target);
    this.drawEntropy();
    this.drawFaint();
    this.drawActive();
  }

  drawNames() {
    const names = {
      encoder_self: ["source, attended to", "source"],
      decoder_self: ["target, attended to", `target, ${view.rows === "reads" ? "read" : "predicted"}`],
      cross: ["source", `target, ${view.rows === "reads" ? "read" : "predicted"}`],
    }[view.site] ?? ["columns", "rows"];
    this["source-name"].textContent = names[0];
    this["target-name"].textContent = names[1];
    this.lists.source.setAttribute("aria-label", names[0]);
    this.lists.target.setAttribute("aria-label", names[1]);
    const ends = [this.site.columns, this.site.outputs].map((number) => plainText(this.sequence(number).pieces));
    this.pair.replaceChildren(...[...new Set(ends)].map((text) => make("span", {}, text)));
    const { score } = this.sentence;
    if (score !== null) this.pair.append(make("span", { class: "score" }, score.toFixed(2)));
    const { rows, columns } = this.map.matrix;
    const said = [
      `${runs[this.wish.run].name}, line ${pairs[view.pair].line}, ${view.site} attention`,
      `layer ${this.layerShown}, head ${this.headShown}, ${rows} target by ${columns} source ${view.unit}`,
    ];
    this.heat.setAttribute("aria-label", `Heat map of ${said.join(", ")}. The word lists give the same information.`);
  }

  // If only the weights have changed, the elements are kept, so that focus and hover are not lost.
  drawTokens(side, texts) {
    const old = this.tokens[side];
    if (texts.length === old.length && texts.every((text, i) => text === old[i].dataset.text)) return;
    this.tokens[side] = texts.map((text, index) => {
      const shown = text.length > 1 && text.startsWith("\u2581") ? [make("span", { class: "mark" }, "\u2581"), text.slice(1)] : [text];
      const role = { role: "option", "aria-selected": "false", tabindex: "-1" };
      const token = make("div", { class: "token", "data-side": side, "data-index": index, "data-text": text, ...role }, ...shown);
      token.title = text;
      token.classList.toggle("special", isSpecial(text));
      return token;
    });
    this.lists[side].replaceChildren(...this.tokens[side]);
    this.lines.classList.toggle("dense", Math.max(this.map.source.length, this.map.target.length) > 34);
  }

  curve(row, column) {
    const height = (token) => token.offsetTop + token.offsetHeight / 2 - this.lists.source.offsetTop;
    const [from, to] = [height(this.tokens.target[row]), height(this.tokens.source[column])];
    return `M${this.gap} ${from}C${this.gap / 2} ${from} ${this.gap / 2} ${to} 0 ${to}`;
  }

  // Draws one path for each degree of strength, because thousands of paths would be slow.
  drawFaint() {
    const { mostWeight: most, map: { matrix } } = this;
    this.gap = this.faint.ownerSVGElement.clientWidth;
    const degrees = Array.from({ length: 12 }, () => []);
    for (let row = 0; row < matrix.rows; row++) {
      for (let column = 0; column < matrix.columns; column++) {
        // The rounded weights of a word's pieces can sum to more than the largest weight.
        const degree = Math.round(Math.min(matrix.at(row, column) / most, 1) * degrees.length);
        if (degree > 0) degrees[degree - 1].push(this.curve(row, column));
      }
    }
    this.faint.replaceChildren(...degrees.flatMap((curves, i) => {
      const share = (i + 1) / degrees.length;
      const look = { "stroke-opacity": (0.08 + 0.42 * share).toFixed(2), "stroke-width": (0.6 + 1.6 * share).toFixed(2) };
      return curves.length ? [make("path", { d: curves.join(""), ...look })] : [];
    }));
  }

  // The active place, or null if it is outside this map: the other panel's sentence may be longer.
  get active() {
    const place = activePlace();
    return place && this.map && place.index < this.map[place.side].length ? place : null;
  }

  drawActive() {
    const { active, mostWeight: most, map: { matrix } } = this;
    const other = active?.side === "target" ? "source" : "target";
    const weights = !active ? [] : active.side === "target" ? matrix.row(active.index) : matrix.column(active.index);
    if (active) this.tint(active.side, [], active);
    this.tint(other, weights, active);
    if (!active) this.tint("source", [], null);
    this.lines.classList.toggle("busy", Boolean(active));
    this.bold.replaceChildren(...weights.flatMap((weight, i) => {
      const share = weight / most;
      if (!(share > 0.01)) return [];
      const curve = active.side === "target" ? this.curve(active.index, i) : this.curve(i, active.index);
      return [make("path", { d: curve, "stroke-opacity": (0.2 + 0.8 * share).toFixed(2), "stroke-width": (0.5 + 5 * share).toFixed(2) })];
    }));
    drawHeat(this);
  }

  tint(side, weights, active) {
    const most = Math.max(...weights, 0);
    const chosen = active?.side === side ? active.index : -1;
    const stop = chosen >= 0 ? chosen : Math.max(this.tokens[side].findIndex((token) => token.tabIndex === 0), 0);
    this.tokens[side].forEach((token, i) => {
      const weight = weights[i] ?? 0;
      const isPinned = pinned?.side === side && pinned.index === i;
      token.classList.toggle("active", i === chosen || (active?.side !== side && active?.column === i));
      token.classList.toggle("pinned", isPinned);
      token.setAttribute("aria-selected", String(isPinned));
      token.classList.toggle("lit", isLit(weight, most));
      token.tabIndex = i === stop ? 0 : -1;
      if (weight > 0) token.dataset.weight = weight.toFixed(2);
      else delete token.dataset.weight;
      const color = weight > 0 ? colorOf(weight / this.mostWeight) : null;
      token.style.background = color ? css(color) : "";
      token.style.color = color ? inkOn(color) : "";
    });
  }

  drawEntropy() {
    const { entropy, layers, heads } = this.site;
    const values = entropy.flat().filter((value) => value !== null);
    const most = Math.max(...values, 1e-9);
    const had = this.entropy.contains(document.activeElement) ? document.activeElement.dataset : null;
    const cell = (layer, head) => {
      const value = entropy[layer][head];
      const color = colorOf((value ?? 0) / most);
      const current = this.layerShown === layer && this.headShown === head;
      const button = make("button", {
        "data-layer": layer, "data-head": head, "aria-pressed": current, tabindex: -1,
        "aria-label": `layer ${layer}, head ${head}: ${value === null ? "no weights" : `${value.toFixed(2)} nats`}`,
      }, value === null ? "–" : value.toFixed(2));
      button.style.background = css(color);
      button.style.color = inkOn(color);
      return make("td", {}, button);
    };
    const numbers = [...Array(heads).keys()];
    const top = make("tr", {}, make("td"), ...numbers.map((head) => make("th", { scope: "col" }, `${heads > 1 && head ? "" : "head "}${head}`)));
    const rows = [...Array(layers).keys()].map((layer) =>
      make("tr", {}, make("th", { scope: "row" }, `layer ${layer}`), ...numbers.map((head) => cell(layer, head))));
    this.entropy.replaceChildren(make("thead", {}, top), make("tbody", {}, ...rows));
    const stop = this.entropy.querySelector(had ? `[data-layer="${had.layer}"][data-head="${had.head}"]` : '[aria-pressed="true"]')
      ?? this.entropy.querySelector("button");
    stop.tabIndex = 0;
    if (had) stop.focus();
  }

  // Distinguishes two panels.
  get title() {
    if (!view.compare) return "";
    const run = panels[0].wish.run === panels[1].wish.run ? "" : `${runs[this.wish.run].name}, `;
    return `${run}layer ${this.layerShown}, head ${this.headShown} – `;
  }

  describe() {
    if (!this.map) return this.title + this.missing.textContent;
    const said = this.describeActive();
    return said && this.title + said;
  }

  describeActive() {
    const { active } = this;
    const { matrix, source, target, centers } = this.map;
    if (!active) return "";
    const clean = (text) => text.replaceAll("\u2581", "") || text;
    const quoted = (token) => `'${clean(token)}'`;
    const strongest = (weights, names) => weights
      .map((weight, i) => [weight, quoted(names[i])])
      .filter(([weight]) => weight >= 0.01)
      .sort(([one], [other]) => other - one)
      .slice(0, 5)
      .map(([weight, name]) => `${name} ${weight.toFixed(2)}`)
      .join(", ") || "nothing above 0.01";
    if (active.side === "source") return `${quoted(source[active.index])} → ${strongest(matrix.column(active.index), target)}`;
    const who = `${this.stepName(active.index)}: ${quoted(target[active.index])} ← `;
    const center = centers ? ` (window around p = ${centers[active.index].toFixed(2)})` : "";
    if (active.column === undefined || active.column >= source.length) return who + strongest(matrix.row(active.index), source) + center;
    return `${who}${quoted(source[active.column])} ${matrix.at(active.index, active.column).toFixed(3)}${center}`;
  }

  stepName(row) {
    const [start, end] = this.map.rowSpans[row];
    const word = view.site === "encoder_self" ? "position" : "step";
    const verb = view.rows === "reads" && view.site !== "encoder_self" ? " reads" : "";
    return end - start > 1 ? `${word}s ${start + 1}–${end}${verb}` : `${word} ${start + 1}${verb}`;
  }
}
