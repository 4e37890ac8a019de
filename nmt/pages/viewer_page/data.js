// ---------------------------------------------------------------- the data

const runs = JSON.parse(document.getElementById("index").textContent).runs;
// Maps from several steps of one training run are played as a film.
const kind = runs.every((run) => /^step \d+$/.test(run.name)) ? "step" : "run";
const SITES = ["encoder_self", "decoder_self", "cross"];
const STEPS = 255;
// The number of maps kept in memory: enough for two panels, and to replay a film of 48 frames.
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
