// ---------------------------------------------------------------- matrices of weights

export class Matrix {
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

// Sums the columns of a word and averages its rows, so that a row keeps its sum.
export function mergeWords(pieces, rowSpans, columnSpans) {
  const words = new Matrix(rowSpans.length, columnSpans.length);
  rowSpans.forEach(([top, bottom], row) => columnSpans.forEach(([left, right], column) => {
    let sum = 0;
    for (let r = top; r < bottom; r++) for (let c = left; c < right; c++) sum += pieces.at(r, c);
    words.weights[row * words.columns + column] = sum / (bottom - top);
  }));
  return words;
}
