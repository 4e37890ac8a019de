// @ts-check
// What computes behind the lab's page. `http.js` asks a server; whatever else has these methods can take its place.

/**
 * Every method takes a signal, and stops computing once that is aborted. Its promise is then rejected with an
 * `AbortError`; with `Unreachable` if the engine does not answer; and otherwise with an Error that has a sentence for the
 * user: `Refused` if the question is at fault, `Busy` if it can be answered later.
 * @typedef {object} Engine
 * @property {(signal: AbortSignal) => Promise<Run[]>} runs all runs, also those that cannot be used, which have an `error`
 * @property {(run: string, signal: AbortSignal) => Promise<Description>} describe
 * @property {(run: string, signal: AbortSignal) => Promise<Example[]>} examples
 *   sentences to try the run on, and sentences in its languages whose alignment is known (aligned)
 * @property {(question: Question & Partial<Location>, signal: AbortSignal, tell: (step: Step) => void) => Promise<Found>} translate
 *   searches, and calls `tell` after each step; some steps have a map if the question has a site
 * @property {(question: Pick<Question, "run" | "text" | "beam_size" | "length_penalty">, signal: AbortSignal) => Promise<string>} line
 *   the translation of a line of a file, of which the page shows nothing else
 * @property {(question: Question, signal: AbortSignal) => Promise<Translation>} attend
 *   forces the target, by default the run's own translation, and returns its attention
 * @property {(question: Question & { changes: Change[] }, signal: AbortSignal) => Promise<Intervention>} intervene
 * @property {(question: Question & { number: number }, signal: AbortSignal) => Promise<{ alternatives: Alternative[][] }>} alternatives
 *   the most likely pieces at each position
 * @property {(question: Question & Location & { row: number }, signal: AbortSignal) => Promise<Cells>} explain
 *   one row of a map with every number behind it
 * @property {(question: Question & { method: string, contrast?: string }, signal: AbortSignal, tell: (percent: number) => void) => Promise<Attribution>} attribute
 *   what each piece of the target depends on; `tell` is called with the percentage that is done
 * @property {(question: Question & Omit<Location, "site"> & { guess: number[][] }, signal: AbortSignal) => Promise<Alignment>} align
 *   compares the known alignment of an example with a guess, the model's and the diagonal
 * @property {(text: string) => string} [qrCode] the address of a picture of a text's QR code
 */

/** @typedef {{ name: string, source: string, target: string, error?: string }} Run languages as codes, such as en; with an error, the run cannot be used */
/** @typedef {{ source: string, target: string }} Pair */
/** @typedef {Pair & { aligned: boolean }} Example */
/** @typedef {{ site: string, layer: number | null, head: number | null }} Location null: all, or their mean */
/**
 * @typedef {object} Description
 * @property {boolean} embedded whether the run was trained on the embedded corpus alone
 * @property {string} model the name of its class
 * @property {number} parameters
 * @property {string} [quantization] the number format of stored weights
 * @property {Record<string, { layers: number, heads: number, scorer: string, window: string, normalizer: string }>} sites
 * @property {boolean} [simd] in a page that is one file: whether WebAssembly multiplies its matrices
 * @property {{ beam_size: number | null, length_penalty: number | null }} search null if it cannot be set
 */
/**
 * @typedef {object} Question about a sentence, and a translation of it
 * @property {string} run
 * @property {string} text the source
 * @property {string} [target] the translation
 * @property {number[]} [target_ids] the translation as piece ids
 * @property {number[]} [prefix_ids] what the translation begins with; 0 leaves the choice at its position to the search
 * @property {number | null} [beam_size] null: as the run's configuration says
 * @property {number | null} [length_penalty]
 */
/** @typedef {{ pieces: string[], log_prob: number }} Hypothesis log_prob in nats */
/** @typedef {{ text: string, beams: Hypothesis[], map?: SiteMaps }} Step the unfinished hypotheses, best first, and the map of the first */
/**
 * @typedef {object} Found
 * @property {number[]} ids the translation
 * @property {string} text
 * @property {number} score what the search ranks it by
 * @property {string} unknown_characters those of the source that the run cannot read
 * @property {string[]} unknown_words those of the source that never occurred in training, as far as that is known
 * @property {[string, string][]} dictionary_words those that were replaced by their translations, each with the translation
 */
/**
 * @typedef {object} SiteMaps
 * @property {string[]} outputs the pieces that the rows predict
 * @property {string[]} columns
 * @property {number[][][][]} weights by layer, head, row and column
 */
/**
 * @typedef {object} Translation
 * @property {string} text
 * @property {number[]} ids
 * @property {string[]} pieces including the end
 * @property {number[]} log_probs of each piece in nats
 * @property {number} log_prob
 * @property {Record<string, SiteMaps>} maps by site
 */
/**
 * @typedef {{ site: string, layer?: number | null, head?: number | null, steps?: number[], [key: string]: unknown }} Change
 *   what /v1/intervene accepts: `way` with its values, or the `temperature`, `normalizer` or `half_width` of a layer
 */
/** @typedef {{ intact: Translation, forced: Translation, changed: Translation }} Intervention `forced` has the pieces of `intact`, scored with the changes; `changed` is what the search finds with them */
/** @typedef {{ piece: string, id: number, log_prob: number }} Alternative */
/**
 * What one row of a map was computed from; see nmt/insight/cells.py.
 * @typedef {object} Cells scores[i] = score(query, keys[i]), weights = normalizer(scores), context = sum of weights[i] values[i]
 * @property {string} scorer the name of its class
 * @property {string} normalizer
 * @property {string[]} columns
 * @property {number[]} query after the scorer's projection
 * @property {number[][]} keys
 * @property {number[] | null} vector v of an additive score
 * @property {number[]} scores
 * @property {boolean[]} allowed
 * @property {number[] | null} log_prior log g of a local-p window, whose prior g multiplies the weights
 * @property {boolean} renormalized whether log g is added to the scores instead
 * @property {number | null} center of a local window
 * @property {number[]} weights
 * @property {number[][]} values
 * @property {number[]} context
 */
/** @typedef {{ outputs: string[], columns: string[], attribution: number[][] }} Attribution */
/**
 * @typedef {object} Alignment links are [source word, target word]
 * @property {number[][]} weights by target word and source word
 * @property {number[][]} sure
 * @property {number[][]} possible
 * @property {Record<string, number[][]>} links of `model`, `diagonal` and, if there is one, `guess`
 * @property {Record<string, Record<"aer" | "precision" | "recall", number>>} rates
 * @property {number[][]} error_rates the alignment error rate of each layer and head
 */

/** The engine does not answer. */
export class Unreachable extends Error {
  /** @param {string} reason @param {string} [sentence] what a user can do about it */
  constructor(reason, sentence = "") {
    super(reason);
    this.sentence = sentence;
  }
}

/** The question is at fault and has to change. */
export class Refused extends Error {}

/** The engine is busy: ask the same question again after `seconds`. */
export class Busy extends Error {
  /** @param {string} message @param {number} seconds */
  constructor(message, seconds) {
    super(message);
    this.seconds = seconds;
  }
}
