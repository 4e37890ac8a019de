// ---------------------------------------------------------------- pieces and words

export const BYTE = /^<0x([0-9A-F]{2})>$/;

// A letter that is missing from the vocabulary appears as its UTF-8 bytes.
export function joinPieces(pieces) {
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

export const spansOf = (sequence, unit) => unit === "words" ? sequence.words : sequence.pieces.map((_, i) => [i, i + 1]);

export function tokensOf(sequence, unit) {
  if (unit === "pieces") return sequence.pieces;
  return sequence.words.map(([start, end]) => joinPieces(sequence.pieces.slice(start, end)));
}

export const isSpecial = (token) => token === "<s>" || token === "</s>";

export function plainText(pieces) {
  return joinPieces(pieces.filter((piece, i) => !(isSpecial(piece) && (i === 0 || i === pieces.length - 1))));
}
