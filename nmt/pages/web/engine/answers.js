// @ts-check
// The engine's answers, computed here: what nmt/serving/lab.py answers on a server.

import { argmaxLinks, diagonalLinks, rates, wordMap } from "./insight/alignment.js";
import { METHODS } from "./insight/attribution.js";
import { Refusal } from "./messages.js";
import { firstStep, intervened } from "./models/edits.js";
import { EOS, force, makeModel, read } from "./models/model.js";
import { Simd } from "./models/simd.js";
import { Weights } from "./models/weights.js";
import { search } from "./search/beam.js";
import { Dictionary } from "./text/dictionary.js";
import { normalize } from "./text/normalize.js";
import { Tokenizer } from "./text/tokenizer.js";
import { unknownWords } from "./text/unknown_words.js";

/** @typedef {import("./interface.js").Translation} Translation */
/** @typedef {import("./models/edits.js").Change} Change */
/** @typedef {import("./models/model.js").Reading} Reading */
/** @typedef {import("./search/beam.js").SearchSettings} SearchSettings */
/**
 * A run in the file; see nmt/exports/page_file.py, which writes it.
 * @typedef {object} StoredRun
 * @property {string} name
 * @property {string} source
 * @property {string} target
 * @property {import("./models/model.js").Structure} structure
 * @property {Record<string, import("./models/weights.js").Place>} tensors
 * @property {{ source: number, target: number }} vocabularies
 * @property {SearchSettings} search
 * @property {number | null} max_source
 * @property {number | null} max_target
 * @property {object} description
 * @property {Example[]} examples
 * @property {string | null} known_words those of its training sources, case-folded; null if they are not known
 * @property {Record<string, string>} dictionary words and phrases of the source, with the translations that replace them
 */
/** A sentence to try, with the links of its words if they are known. @typedef {import("./interface.js").Example & { sure?: number[][], possible?: number[][] }} Example */
/** A question, with the fields of all methods. @typedef {import("./interface.js").Question & { site?: string, layer?: number | null, head?: number | null, row?: number, number?: number, changes?: Change[], method?: string, contrast?: string, guess?: number[][] }} Asked */
/** Waits until messages have been received, and fails if the question was withdrawn. @typedef {() => Promise<void>} Pause */

const BEGIN = "<s>", END = "</s>";
const MOST_PIECES = 200;
/** Milliseconds from the map of a step to the next one. */
const BETWEEN_MAPS = 100;

/** @typedef {ReturnType<typeof openRun>} Run */

/** Keeps the last result of a computation: the page asks several questions about a sentence. @template T */
function remembered() {
  /** @type {{ about: string, result: T } | null} */
  let last = null;
  return (/** @type {unknown} */ subject, /** @type {() => T} */ compute) => {
    const about = JSON.stringify(subject);
    if (last?.about !== about) last = { about, result: compute() };
    return last.result;
  };
}

/** @param {StoredRun} stored @param {import("./text/tokenizer.js").Vocabulary[]} vocabularies @param {number[]} random @param {ArrayBuffer | Simd} bytes */
function openRun(stored, vocabularies, random, bytes) {
  return {
    stored,
    random,
    simd: bytes instanceof Simd,
    lastReading: remembered(),
    lastForced: remembered(),
    source: new Tokenizer(vocabularies[stored.vocabularies.source]),
    target: new Tokenizer(vocabularies[stored.vocabularies.target]),
    dictionary: new Dictionary(stored.dictionary),
    words: stored.known_words === null ? null : new Set(stored.known_words.split(" ")),
    model: makeModel(new Weights(bytes, stored.tensors), stored.structure),
  };
}

/** The bytes where WebAssembly multiplies them; unchanged in a browser that refuses it. @param {ArrayBuffer} bytes @param {StoredRun[]} runs @returns {ArrayBuffer | Simd} */
function withSimd(bytes, runs) {
  if (!("WebAssembly" in globalThis)) return bytes;
  const shapes = runs.flatMap(({ tensors }) => Object.values(tensors).map(({ shape }) => shape));
  const mostRows = Math.max(...shapes.map(([rows = 1]) => rows));
  const mostColumns = Math.max(...shapes.map(([, ...others]) => others.reduce((product, length) => product * length, 1)));
  try { return new Simd(bytes, mostRows, mostColumns); } catch (error) {
    // A policy refuses programs, an old browser these instructions, and a small device so much memory.
    if (error instanceof WebAssembly.CompileError || error instanceof EvalError || error instanceof RangeError) return bytes;
    throw error;
  }
}

/** The runs of a file: 4 bytes with the length of a JSON text, the text, and the weights. @param {ArrayBuffer} file */
export function openFile(file) {
  const length = new DataView(file).getUint32(0, true);
  const { runs, vocabularies, random } = JSON.parse(new TextDecoder().decode(new Uint8Array(file, 4, length)));
  const bytes = withSimd(file.slice(4 + length), runs);
  return new Map(runs.map((/** @type {StoredRun} */ stored) => /** @type {[string, Run]} */ ([stored.name, openRun(stored, vocabularies, random, bytes)])));
}

/** What the model reads of a text. @param {Run} run @param {string} text */
const sourceText = ({ dictionary, source }, text) => dictionary.replaced(source.respelled(normalize(text)));

/** @param {Run} run @param {Asked} question */
function sourceIds(run, { text }) {
  const { stored, source } = run;
  const ids = source.encode(sourceText(run, text));
  if (!ids.length) throw new Refusal("emptySource");
  return within(ids, stored.max_source);
}

/** @param {number[]} ids @param {number | null} limit with EOS */
function within(ids, limit) {
  const most = Math.min(MOST_PIECES, limit ?? MOST_PIECES) - 1;
  if (ids.length > most) throw new Refusal("long", ids.length, most);
  return ids;
}

/** The pieces of a translation that a search has found. @param {number[]} ids */
function shownIds(ids) {
  if (ids.length >= MOST_PIECES) throw new Refusal("longTranslation", ids.length, MOST_PIECES - 1);
  return ids;
}

/** @param {Run} run @param {Asked} question @returns {SearchSettings} */
function settingsOf({ stored: { search: configured } }, { beam_size: beamSize, length_penalty: lengthPenalty }) {
  return { ...configured, beam_size: beamSize ?? configured.beam_size, length_penalty: lengthPenalty ?? configured.length_penalty };
}

/** What the decoder reads of a source; not for a changed encoder. @param {Run} run @param {number[]} source @returns {Reading} */
const readingOf = (run, source) => run.lastReading(source, () => read(run.model, [...source, EOS]));

/** The forced translation by the model without changes. @param {Run} run @param {number[]} source @param {number[]} target @returns {ReturnType<typeof force>} */
const forcedOf = (run, source, target) => run.lastForced([source, target], () => force(run.model, readingOf(run, source), target));

/** @param {Run} run @param {number[]} source @param {Reading} reading @param {Asked} question @param {Omit<import("./search/beam.js").Options, "maxTarget">} options */
function searched(run, source, reading, question, options) {
  return search(run.model, reading, source.length, settingsOf(run, question), { maxTarget: run.stored.max_target, ...options });
}

/** @param {Run} run @param {number[]} ids */
function checkIds(run, ids) {
  for (const id of ids) if (!(id > EOS && id < run.target.list.length)) throw new Refusal("badIds");
}

/** The piece ids of the text, and those of the given translation or the run's own. @param {Run} run @param {Asked} question @param {Pause} pause */
async function pairOf(run, question, pause) {
  const source = sourceIds(run, question);
  const { target, target_ids: targetIds, prefix_ids: prefix } = question;
  checkIds(run, [...targetIds ?? [], ...(prefix ?? []).filter(Boolean)]);
  const given = targetIds ?? (target === undefined ? null : run.target.encode(normalize(target)));
  if (given) return { source, target: within(given, run.stored.max_target) };
  const [best] = await searched(run, source, readingOf(run, source), question, { prefix: prefix ?? [], observe: pause });
  return { source, target: shownIds(best.ids) };
}

/** The labels of a map's rows and columns. @param {Run} run @param {string} site @param {number[]} source @param {number[]} target */
function labelsOf(run, site, source, target) {
  const ofSource = [...run.source.pieces(source), END], ofTarget = run.target.pieces(target);
  return {
    inputs: site === "encoder_self" ? ofSource : [BEGIN, ...ofTarget],
    outputs: site === "encoder_self" ? ofSource : [...ofTarget, END],
    columns: site === "decoder_self" ? [BEGIN, ...ofTarget] : ofSource,
  };
}

/** The row with a weight of 0 for each column that its query did not have. @param {number[]} row @param {number} columns */
const padded = (row, columns) => Array.from({ length: columns }, (_, column) => row[column] ?? 0);

/** A translation with its maps, given log p of its pieces and the weights by site, layer, row and head. @param {Run} run @param {number[]} source @param {number[]} target @param {number[]} logProbs @param {Record<string, number[][][][]>} weights @returns {Translation} */
function translationOf(run, source, target, logProbs, weights) {
  return {
    text: normalize(run.target.decode(target)),
    ids: target,
    pieces: [...run.target.pieces(target), END],
    log_probs: logProbs,
    log_prob: logProbs.reduce((sum, logProb) => sum + logProb, 0),
    maps: Object.fromEntries(Object.entries(weights).map(([site, layers]) => {
      const labels = labelsOf(run, site, source, target);
      return [site, { ...labels, weights: layers.map((rows) => rows[0].map((_, head) => rows.map((row) => padded(row[head], labels.columns.length)))) }];
    })),
  };
}

/** @param {import("./models/model.js").Maps} maps */
const weightsOf = (maps) => Object.fromEntries(Object.entries(maps).map(([site, layers]) => [site, layers.map((rows) => rows.map(({ weights }) => weights))]));

/** A forced translation with its maps. @param {Run} run @param {number[]} source @param {number[]} target @param {import("./models/model.js").Forced} forced */
const forcedTranslation = (run, source, target, { logProbs, maps }) => translationOf(run, source, target, [...target, EOS].map((id, position) => logProbs[position][id]), weightsOf(maps));

/** A translation that a search has found, with its maps. @param {Run} run @param {number[]} source @param {Reading} reading @param {import("./search/beam.js").Hypothesis} hypothesis */
function foundTranslation(run, source, { maps }, { ids, logProbs, rows }) {
  const ofDecoder = Object.entries(rows[0]).map(([site, layers]) => [site, layers.map((_, layer) => rows.map((row) => row[site][layer]))]);
  return translationOf(run, source, ids, logProbs, { ...weightsOf(maps), ...Object.fromEntries(ofDecoder) });
}

/** The indices of the largest numbers, the largest first; sorting all pieces of a vocabulary would take much longer. @param {import("./models/vectors.js").Vector} numbers @param {number} count */
function likeliest(numbers, count) {
  /** @type {number[]} */
  const best = [];
  for (let index = 0; index < numbers.length; index++) {
    if (best.length === count && numbers[index] <= numbers[best[count - 1]]) continue;
    let rank = best.length;
    while (rank && numbers[best[rank - 1]] < numbers[index]) rank--;
    best.splice(rank, 0, index);
    if (best.length > count) best.pop();
  }
  return best;
}

/** The mean of some maps of the same size, or the one with that index. @param {number[][][]} maps @param {number | null | undefined} index */
function chosenMap(maps, index) {
  if (index != null) return maps[index];
  return maps[0].map((row, at) => row.map((_, column) => maps.reduce((sum, map) => sum + map[at][column], 0) / maps.length));
}

/** The id of a word that is one piece, or of a piece as a map names it. @param {Run} run @param {string} named */
function pieceNamed(run, named) {
  const ids = run.target.encode(normalize(named));
  const id = ids.length === 1 ? ids[0] : run.target.list.indexOf(named);
  if (id < EOS) throw new Refusal("contrast", named);
  return id;
}

/** By method; each takes a run, a question, a function that receives steps, and a Pause. @type {Record<string, (run: Run, question: Asked, tell: (step: import("./interface.js").Step) => void, pause: Pause) => Promise<unknown>>} */
export const ANSWERS = {
  describe: async ({ stored, simd }) => ({ ...stored.description, simd }),

  examples: async ({ stored }) => stored.examples.map(({ source, target, aligned }) => ({ source, target, aligned })),

  async translate(run, question, tell, pause) {
    const source = sourceIds(run, question);
    checkIds(run, (question.prefix_ids ?? []).filter(Boolean)); // 0 is a free position
    const { site, layer, head } = question;
    const ofDecoder = site && site !== "encoder_self" ? site : undefined;
    const reading = readingOf(run, source);
    let mapped = -Infinity;
    const encoder = site === "encoder_self" ? translationOf(run, source, [], [], weightsOf(reading.maps)).maps.encoder_self : null;
    const [first] = await searched(run, source, reading, question, {
      prefix: question.prefix_ids,
      async observe(live) {
        const [{ ids, rows }] = live;
        /** @type {import("./interface.js").SiteMaps | undefined} */
        let map;
        // The page takes longer to draw a map than a step to be computed.
        const isDue = performance.now() - mapped >= BETWEEN_MAPS;
        if (isDue) mapped = performance.now();
        if (encoder && isDue) map = { ...encoder, weights: [[chosenMap(encoder.weights.map((ofLayer) => chosenMap(ofLayer, head)), layer)]] };
        if (ofDecoder && isDue) {
          const labels = labelsOf(run, ofDecoder, source, ids);
          const weights = rows[0][ofDecoder].map((ofLayer, index) => chosenMap(ofLayer.map((_, at) => rows.map((row) => padded(row[ofDecoder][index][at], labels.columns.length))), head));
          map = { ...labels, outputs: labels.outputs.slice(0, -1), weights: [[chosenMap(weights, layer)]] };
        }
        const beams = live.map((one) => ({ pieces: run.target.pieces(one.ids), log_prob: one.logProb }));
        tell({ text: normalize(run.target.decode(ids)), beams, ...map ? { map } : {} });
        await pause();
      },
    });
    const text = run.source.respelled(normalize(question.text));
    return {
      ids: shownIds(first.ids),
      text: normalize(run.target.decode(first.ids)),
      score: first.score,
      unknown_characters: run.source.unknownIn(run.dictionary.replaced(text)),
      unknown_words: run.words ? unknownWords(run.words, run.dictionary.removed(text)) : [],
      dictionary_words: run.dictionary.found(text),
    };
  },

  async line(run, question, _, pause) {
    if (!normalize(question.text)) return ""; // a line of invisible characters
    const source = sourceIds(run, question);
    const [{ ids }] = await searched(run, source, readingOf(run, source), question, { observe: pause });
    return normalize(run.target.decode(ids));
  },

  async attend(run, question, _, pause) {
    const { source, target } = await pairOf(run, question, pause);
    return forcedTranslation(run, source, target, forcedOf(run, source, target));
  },

  async intervene(run, question, _, pause) {
    const { changes = [], prefix_ids: prefix = [] } = question;
    const { source, target } = await pairOf(run, question, pause);
    // What comes before the first changed step is as it was, and is not computed again.
    const first = Math.min(...changes.map(firstStep), target.length), before = { forced: forcedOf(run, source, target), count: first };
    const isRead = !changes.some(({ site }) => site === "encoder_self");
    return intervened(run.model, changes, run.random, async () => {
      const reading = isRead ? readingOf(run, source) : read(run.model, [...source, EOS]);
      const changed = force(run.model, reading, target, before), forced = forcedTranslation(run, source, target, changed);
      const [best] = await searched(run, source, reading, question, { prefix: [...target.slice(0, first), ...prefix.slice(first)], known: { ids: target, forced: changed }, observe: pause });
      const isSame = best.ids.length === target.length && best.ids.every((id, position) => id === target[position]);
      return { intact: forcedTranslation(run, source, target, before.forced), forced, changed: isSame ? forced : foundTranslation(run, source, reading, best) };
    });
  },

  async alternatives(run, question, _, pause) {
    const { source, target } = await pairOf(run, question, pause);
    const { logProbs } = forcedOf(run, source, target);
    return {
      alternatives: logProbs.map((ofPiece) => likeliest(ofPiece, question.number ?? 1).map((id) => ({ piece: run.target.list[id], id, log_prob: ofPiece[id] }))),
    };
  },

  async explain(run, question, _, pause) {
    const { source, target } = await pairOf(run, question, pause);
    const { site = "cross", layer, head, row = 0 } = question;
    const attention = run.model.sites[site]?.[layer ?? 0];
    const rows = forcedOf(run, source, target).maps[site]?.[layer ?? 0];
    if (!attention || !rows?.[row] || !((head ?? 0) < attention.heads)) throw new Refusal("noSite", `${layer}, ${head}`);
    const index = head ?? 0, { queries, visible, weights, contexts } = rows[row];
    // A later row has the keys that this one does not see.
    const { inputs, columns } = labelsOf(run, site, source, target);
    const { memory } = rows[rows.length - 1];
    const keys = memory.keys[index], { allowed, logPrior, center, renormalized } = visible[index];
    return {
      scorer: attention.about.scorer,
      normalizer: attention.normalizer,
      window: attention.about.window.kind,
      row: inputs[row],
      columns,
      query: [...queries[index]],
      keys: keys.map((key, position) => [...attention.scorer.keyVector(key, index, position)]),
      vector: attention.scorer.vector(index) && [.../** @type {Float64Array} */ (attention.scorer.vector(index))],
      scores: keys.map((key, position) => attention.scorer.score(queries[index], key, index, position)),
      allowed: columns.map((_, column) => allowed[column] ?? false),
      log_prior: logPrior && padded(logPrior, columns.length),
      renormalized,
      center,
      weights: padded(weights[index], columns.length),
      values: memory.values[index].map((value) => [...value]),
      context: [...contexts[index]],
    };
  },

  async attribute(run, question, _, pause) {
    const { method: named = "occlusion", contrast } = question;
    const method = METHODS[named];
    if (!method) throw new Refusal("gradients");
    const { source, target } = await pairOf(run, question, pause);
    const { inputs, outputs, columns } = labelsOf(run, "cross", source, target);
    return { inputs, outputs, columns, attribution: await method(run.model, source, target, contrast ? pieceNamed(run, contrast) : null, pause) };
  },

  async align(run, question) {
    const { text, layer, head, guess = [] } = question;
    const pair = run.stored.examples.find(({ source, aligned }) => aligned && source === text);
    if (!pair) throw new Refusal("notAligned");
    const { sure = [], possible = [] } = pair;
    const [sourceWords, targetWords] = [pair.source, pair.target].map((side) => side.split(" "));
    if (guess.some(([i, j]) => !sourceWords[i] || !targetWords[j])) throw new Refusal("badLink");
    const source = run.source.encode(pair.source), target = run.target.encode(pair.target);
    const { maps: { cross } } = forcedTranslation(run, source, target, forcedOf(run, source, target));
    const ofLayers = cross.weights.map((ofLayer) => chosenMap(ofLayer, head));
    const words = (/** @type {number[][]} */ map) => wordMap(map, run.source.pieces(source), run.target.pieces(target));
    const weights = words(chosenMap(ofLayers, layer)), every = [...sure, ...possible];
    const links = { model: argmaxLinks(weights), diagonal: diagonalLinks(sourceWords.length, targetWords.length), ...guess.length ? { guess } : {} };
    return {
      source_words: sourceWords,
      target_words: targetWords,
      weights,
      sure,
      possible,
      links,
      rates: Object.fromEntries(Object.entries(links).map(([name, predicted]) => [name, rates(predicted, sure, every)])),
      error_rates: cross.weights.map((ofLayer) => ofLayer.map((map) => rates(argmaxLinks(words(map)), sure, every).aer)),
    };
  },

  /** What nmt.export compares with the run: lines as ids and back. */
  async tokenize({ source }, question) {
    return /** @type {any} */ (question).lines.map((/** @type {string} */ line) => {
      const ids = source.encode(normalize(line));
      return { ids, text: source.decode(ids) };
    });
  },

  /** log p of each piece of given ids. */
  async score(run, question) {
    const { source_ids: source, target_ids: target } = /** @type {any} */ (question);
    const { logProbs } = forcedOf(run, source, target);
    return [...target, EOS].map((id, position) => logProbs[position][id]);
  },

  /** The hypotheses of a text or given ids, with changed settings. */
  async hypotheses(run, question, _, pause) {
    const { text, source_ids: given, prefix_ids: prefix, settings } = /** @type {any} */ (question);
    const source = given ?? run.source.encode(normalize(text));
    const hypotheses = await search(run.model, readingOf(run, source), source.length, { ...run.stored.search, ...settings }, { prefix, maxTarget: run.stored.max_target, observe: pause });
    return hypotheses.map(({ ids, logProb, score }) => ({ ids, logProb, score, text: normalize(run.target.decode(ids)) }));
  },
};
