// @ts-check
// Invisible characters that a script does not need are dropped. As nmt/text/invisible.py, which explains the ranges.
/* eslint no-misleading-character-class: "off" -- the characters are meant one by one */

const INVISIBLE = new RegExp(
  "[\\u{ad}\\u{34f}\\u{61c}\\u{115f}\\u{1160}\\u{17b4}\\u{17b5}\\u{180e}\\u{200b}-\\u{200f}\\u{202a}-\\u{202e}\\u{2060}-\\u{2064}\\u{2066}-\\u{206f}\\u{3164}\\u{feff}"
  + "\\u{ffa0}\\u{fff9}-\\u{fffb}\\u{1d173}-\\u{1d17a}\\u{e0001}\\u{e0020}-\\u{e007f}]", "u",
);
const JOINED = new RegExp(
  "[\\u{590}-\\u{dff}\\u{1000}-\\u{109f}\\u{1780}-\\u{18af}\\u{1a20}-\\u{1aaf}\\u{1b00}-\\u{1bbf}\\u{a840}-\\u{a87f}\\u{a8e0}-\\u{a8ff}\\u{a980}-\\u{a9ff}"
  + "\\u{aa60}-\\u{aa7f}\\u{abc0}-\\u{abff}\\u{fb1d}-\\u{fdff}\\u{fe70}-\\u{fefc}\\u{10a00}-\\u{10aff}\\u{10d00}-\\u{10fff}"
  + "\\u{11000}-\\u{11fff}\\u{1e900}-\\u{1e95f}\\u{1ee00}-\\u{1eeff}]", "u",
);
const UNSPACED = /[\u{e00}-\u{eff}\u{1000}-\u{109f}\u{1780}-\u{17ff}\u{1980}-\u{19df}\u{1a20}-\u{1aaf}\u{1b00}-\u{1b7f}\u{a980}-\u{aadf}]/u;
const HANGUL = /[\u{1100}-\u{11ff}\u{3131}-\u{318e}\u{a960}-\u{a97c}\u{ac00}-\u{d7a3}\u{d7b0}-\u{d7fb}\u{ffa1}-\u{ffdc}]/u;
const KHMER = /[\u{1780}-\u{17ff}]/u;
const EMOJI = /[\u{2190}-\u{21ff}\u{2300}-\u{2328}\u{232b}-\u{23ff}\u{2600}-\u{27bf}\u{2b00}-\u{2bff}\u{1f000}-\u{1faff}]/u;
const EMOJI_STYLE = "\u{fe0f}", BLACK_FLAG = "\u{1f3f4}";

/** Characters that are needed beside a letter of these scripts. */
const BESIDE = new Map([..."\u{34f}\u{180e}\u{200c}\u{200d}"].map((character) => [character, JOINED]));
/** Characters that are needed between two letters of these scripts. */
const BETWEEN = new Map([
  ["\u{200d}", EMOJI],
  ["\u{200b}", UNSPACED],
  ...[..."\u{115f}\u{1160}\u{3164}\u{ffa0}"].map((character) => /** @type {[string, RegExp]} */ ([character, HANGUL])),
  ...[..."\u{17b4}\u{17b5}"].map((character) => /** @type {[string, RegExp]} */ ([character, KHMER])),
]);

/** The text without the invisible characters that its script does not need. @param {string} text */
export function withoutInvisible(text) {
  if (!INVISIBLE.test(text)) return text;
  const characters = [...text];
  // The characters on both sides that decide, found in two passes.
  const following = new Array(characters.length);
  let after = "";
  for (let index = characters.length - 1; index >= 0; index--) {
    following[index] = after;
    if (decides(characters[index])) after = characters[index];
  }
  let before = "";
  return characters.filter((character, index) => {
    const kept = !INVISIBLE.test(character) || isNeeded(character, before, following[index]);
    if (decides(character)) before = character;
    return kept;
  }).join("");
}

/** @param {string} character */
const decides = (character) => !(character === EMOJI_STYLE || isCombining(character) || INVISIBLE.test(character));

/**
 * Whether the character's canonical combining class is not 0, which JavaScript does not tell: then NFD puts it before a
 * character of the highest class, U+0345. The three exceptions have class 0 but consist of characters with another one.
 * @param {string} character
 */
function isCombining(character) {
  if (!/\p{M}/u.test(character) || /[\u{f73}\u{f75}\u{f81}]/u.test(character)) return false;
  return character === "\u{345}" || !`\u{345}${character}`.normalize("NFD").startsWith("\u{345}");
}

/** Whether an invisible character between these two, each "" at an end of the line, is needed. @param {string} character @param {string} before @param {string} after */
function isNeeded(character, before, after) {
  const beside = BESIDE.get(character), between = BETWEEN.get(character);
  if (beside && (beside.test(before) || beside.test(after))) return true;
  if (between) return between.test(before) && between.test(after);
  return /** @type {number} */ (character.codePointAt(0)) >= 0xe0020 && before === BLACK_FLAG;
}
