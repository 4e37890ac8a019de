"""Invisible characters: marks that show nothing and that most scripts do not need, such as a zero-width space."""

import re
import unicodedata

# Soft hyphens, grapheme joiners, zero-width spaces, joiners and non-joiners, marks of writing direction, word joiners,
# invisible operators, byte order marks, annotations, musical beams and tags; the fillers of Hangul and the inherent
# vowels of Khmer. Variation selectors are not among them: they change what is seen.
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\u3164\ufeff"
    "\uffa0\ufff9-\ufffb\U0001d173-\U0001d17a\U000e0001\U000e0020-\U000e007f]"
)
_JOINER = "\u200d"
# Hebrew, Arabic and its relatives, the Brahmic scripts and Mongolian: a joiner changes the shape or the word.
_JOINED = re.compile(
    "[\u0590-\u0dff\u1000-\u109f\u1780-\u18af\u1a20-\u1aaf\u1b00-\u1bbf\ua840-\ua87f\ua8e0-\ua8ff\ua980-\ua9ff"
    "\uaa60-\uaa7f\uabc0-\uabff\ufb1d-\ufdff\ufe70-\ufefc\U00010a00-\U00010aff\U00010d00-\U00010fff"
    "\U00011000-\U00011fff\U0001e900-\U0001e95f\U0001ee00-\U0001eeff]"
)
# Thai, Lao, Burmese, Khmer and other scripts without spaces, in which a zero-width space separates words.
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u1980-\u19df\u1a20-\u1aaf\u1b00-\u1b7f\ua980-\uaadf]")
# Syllables, and the letters (jamo) of older spellings and of halfwidth text.
_HANGUL = re.compile("[\u1100-\u11ff\u3131-\u318e\ua960-\ua97c\uac00-\ud7a3\ud7b0-\ud7fb\uffa1-\uffdc]")
_KHMER = re.compile("[\u1780-\u17ff]")
_EMOJI = re.compile("[\u2190-\u21ff\u2300-\u2328\u232b-\u23ff\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff]")
_EMOJI_STYLE, _BLACK_FLAG = "\ufe0f", "\U0001f3f4"

_BESIDE = dict.fromkeys("\u034f\u180e\u200c\u200d", _JOINED)
"""Characters that are needed beside a letter of these scripts."""
_BETWEEN = {
    _JOINER: _EMOJI,
    "\u200b": _UNSPACED,
    **dict.fromkeys("\u115f\u1160\u3164\uffa0", _HANGUL),
    **dict.fromkeys("\u17b4\u17b5", _KHMER),
}
"""Characters that are needed between two letters of these scripts."""


def without_invisible(text: str) -> str:
    """The text without the invisible characters that its script does not need.

    Kept are: U+034F, U+180E, U+200C and U+200D beside a letter of a script whose shapes they change; U+200D between two
    emoji; U+200B between two letters of a script without spaces; the fillers of Hangul and the inherent vowels of Khmer
    between two letters of their script; and the tags of a flag.
    """
    if text.isascii() or not _INVISIBLE.search(text):
        return text
    # The characters on both sides that decide, found in two passes: a line may consist of a million joiners. Combining
    # marks do not decide, because NFC may change their order.
    following, after = [""] * len(text), ""
    for index in range(len(text) - 1, -1, -1):
        following[index] = after
        if _decides(text[index]):
            after = text[index]
    kept, before = list[str](), ""
    for char, after in zip(text, following, strict=True):
        if not _INVISIBLE.match(char) or _is_needed(char, before, after):
            kept.append(char)
        if _decides(char):
            before = char
    return "".join(kept)


def _decides(char: str) -> bool:
    return not (char == _EMOJI_STYLE or unicodedata.combining(char) or _INVISIBLE.match(char))


def _is_needed(char: str, before: str, after: str) -> bool:
    """Whether an invisible character between these two, each '' at an end of the line, is needed."""
    if (script := _BESIDE.get(char)) and (script.match(before) or script.match(after)):
        return True
    if script := _BETWEEN.get(char):
        return bool(script.match(before) and script.match(after))
    return char >= "\U000e0020" and before == _BLACK_FLAG
