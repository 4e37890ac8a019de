// ---------------------------------------------------------------- the data

const runs = JSON.parse(document.getElementById("index").textContent).runs;
// The maps of several steps of a training are a film.
const kind = runs.every((run) => /^step \d+$/.test(run.name)) ? "step" : "run";
const SITES = ["encoder_self", "decoder_self", "cross"];
const STEPS = 255;
// Enough for two panels, and for playing a film of 48 frames again.
const KEPT = 48;

const keyOf = (sentence) => `${sentence.line}.${sentence.rank}`;
const pairs = [];
for (const run of runs) {
  run.places = new Map(run.sentences.map((sentence, place) => [keyOf(sentence), place]));
  for (const sentence of run.sentences) {
    if (!pairs.some((known) => keyOf(known) === keyOf(sentence))) pairs.push(sentence);
  }
}
pairs.sort((one, other) => one.line - other.line || one.rank - other.rank);

const inflated = new Map();

function weightsOf(run, place, site) {
  const id = `weights-${run}-${place}-${site}`;
  const found = inflated.get(id) ?? inflate(document.getElementById(id).textContent);
  // A Map keeps the order of insertion, so the first is the least recently used.
  inflated.delete(id);
  inflated.set(id, found);
  if (inflated.size > KEPT) inflated.delete(inflated.keys().next().value);
  return found;
}

async function inflate(base64) {
  const text = atob(base64);
  const packed = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) packed[i] = text.charCodeAt(i);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

class Matrix {
  constructor(rows, columns) {
    this.rows = rows;
    this.columns = columns;
    this.weights = new Float32Array(rows * columns);
  }
  at(row, column) { return this.weights[row * this.columns + column]; }
  row(row) { return Array.from(this.weights.subarray(row * this.columns, (row + 1) * this.columns)); }
  column(column) { return Array.from({ length: this.rows }, (_, row) => this.at(row, column)); }
  most() { return this.weights.reduce((most, weight) => Math.max(most, weight), 0); }
}

// The mean over the selected layers and heads.
function meanWeights(bytes, site, layers, heads, rows, columns) {
  const mean = new Matrix(rows, columns);
  const size = rows * columns;
  for (const layer of layers) {
    for (const head of heads) {
      const start = (layer * site.heads + head) * size;
      for (let i = 0; i < size; i++) mean.weights[i] += bytes[start + i];
    }
  }
  const scale = 1 / (STEPS * layers.length * heads.length);
  mean.weights.forEach((sum, i) => { mean.weights[i] = sum * scale; });
  return mean;
}

// Sums the columns of a word and averages its rows, so that a row keeps its sum.
function mergeWords(pieces, rowSpans, columnSpans) {
  const words = new Matrix(rowSpans.length, columnSpans.length);
  rowSpans.forEach(([top, bottom], row) => columnSpans.forEach(([left, right], column) => {
    let sum = 0;
    for (let r = top; r < bottom; r++) for (let c = left; c < right; c++) sum += pieces.at(r, c);
    words.weights[row * words.columns + column] = sum / (bottom - top);
  }));
  return words;
}

const BYTE = /^<0x([0-9A-F]{2})>$/;

// A letter that is missing in the vocabulary comes as its UTF-8 bytes.
function joinPieces(pieces) {
  let text = "", bytes = [];
  const flush = () => { text += new TextDecoder().decode(Uint8Array.from(bytes)); bytes = []; };
  for (const piece of pieces) {
    const byte = pieces.length > 1 && BYTE.exec(piece);
    if (byte) bytes.push(parseInt(byte[1], 16));
    else { flush(); text += piece; }
  }
  flush();
  return text.replaceAll("\u2581", " ").trim() || pieces.join("");
}

const spansOf = (sequence, unit) => unit === "words" ? sequence.words : sequence.pieces.map((_, i) => [i, i + 1]);

function tokensOf(sequence, unit) {
  if (unit === "pieces") return sequence.pieces;
  return sequence.words.map(([start, end]) => joinPieces(sequence.pieces.slice(start, end)));
}

const isSpecial = (token) => token === "<s>" || token === "</s>";

function plainText(pieces) {
  return joinPieces(pieces.filter((piece, i) => !(isSpecial(piece) && (i === 0 || i === pieces.length - 1))));
}

// ---------------------------------------------------------------- colors

// Magma in even steps of lightness; 0 has the color of the page.
const SCALES = {
  light: ["#ffffff", "#fed395", "#fea973", "#fa7d5e", "#ea5661", "#ca3e72", "#a5317e", "#802582", "#5c167f", "#36106b", "#140e36"],
  dark: ["#14131a", "#251255", "#4a1079", "#6e1e81", "#932b80", "#bc3978", "#e04c67", "#f6725c", "#fe9f6d", "#fecf92", "#fcfdbf"],
};
const darkness = matchMedia("(prefers-color-scheme: dark)");
const scale = () => SCALES[darkness.matches ? "dark" : "light"];
const channels = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));

function colorOf(share) {
  const stops = scale();
  const at = Math.min(Math.max(share, 0), 1) * (stops.length - 1);
  const low = Math.min(Math.floor(at), stops.length - 2);
  const [from, to] = [channels(stops[low]), channels(stops[low + 1])];
  return from.map((value, i) => Math.round(value + (to[i] - value) * (at - low)));
}

const css = (color) => `rgb(${color.join(" ")})`;

// Black or white, whichever has more contrast: at least 4.5 to 1 on any color.
function inkOn(color) {
  const [r, g, b] = color.map((value) => {
    const share = value / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? "#000" : "#fff";
}

const variable = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
