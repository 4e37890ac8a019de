"""Invisible characters: marks that show nothing and that most scripts do not need, such as a zero-width space."""

import re
import unicodedata

# Soft hyphens, zero-width spaces, joiners and non-joiners, marks of writing direction, word joiners, invisible
# operators, byte order marks and tags. Variation selectors and fillers are not among them: they change what is seen.
_INVISIBLE = re.compile(
    "[\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff\U000e0001\U000e0020-\U000e007f]"
)
_ZERO_WIDTH_SPACE, _JOINER, _JOINERS = "\u200b", "\u200d", "\u180e\u200c\u200d"
# Hebrew, Arabic and its relatives, the Brahmic scripts and Mongolian: a joiner changes the shape or the word.
_JOINED = re.compile(
    "[\u0590-\u0dff\u1000-\u109f\u1780-\u18af\u1a20-\u1aaf\u1b00-\u1bbf\ua840-\ua87f\ua8e0-\ua8ff\ua980-\ua9ff"
    "\uaa60-\uaa7f\uabc0-\uabff\ufb1d-\ufdff\ufe70-\ufefc\U00010a00-\U00010aff\U00010d00-\U00010fff"
    "\U00011000-\U00011fff\U0001e900-\U0001e95f\U0001ee00-\U0001eeff]"
)
# Thai, Lao, Burmese, Khmer and other scripts without spaces, in which a zero-width space separates words.
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u1980-\u19df\u1a20-\u1aaf\u1b00-\u1b7f\ua980-\uaadf]")
_EMOJI = re.compile("[\u2190-\u21ff\u2300-\u2328\u232b-\u23ff\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff]")
_EMOJI_STYLE, _BLACK_FLAG = "\ufe0f", "\U0001f3f4"


def without_invisible(text: str) -> str:
    """The text without the invisible characters that its script does not need.

    Kept are: U+200C, U+200D and U+180E beside a letter of a script whose shapes they change; U+200D between two emoji;
    U+200B between two letters of a script without spaces; and the tags of a flag.
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
    if char in _JOINERS:
        if _JOINED.match(before) or _JOINED.match(after):
            return True
        return char == _JOINER and bool(_EMOJI.match(before) and _EMOJI.match(after))
    if char == _ZERO_WIDTH_SPACE:
        return bool(_UNSPACED.match(before) and _UNSPACED.match(after))
    return char > "\U000e0000" and before == _BLACK_FLAG
