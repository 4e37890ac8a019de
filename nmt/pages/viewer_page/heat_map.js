// ---------------------------------------------------------------- the heat map

const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Helvetica Neue", Arial, sans-serif';
const SMALLEST = 15, LARGEST = 34, LONGEST_LABEL = 130, SLOPE = Math.SQRT1_2;

function clipped(context, text) {
  if (context.measureText(text).width <= LONGEST_LABEL) return text;
  let end = text.length;
  while (end > 1 && context.measureText(`${text.slice(0, end)}…`).width > LONGEST_LABEL) end--;
  return `${text.slice(0, end)}…`;
}

// Cells are square, as large as the width allows, but never too small to read.
function heatLayout(panel, context) {
  const { source, target } = panel.map;
  // The width without the padding of the box.
  const room = panel.heat.parentElement.clientWidth - 6;
  const fontFor = (cell) => clamp(Math.round(cell * 0.62), 14);
  context.font = `14px ${FONT}`;
  const guess = Math.max(...target.map((token) => context.measureText(token).width), 20);
  const cell = Math.max(SMALLEST, Math.min(LARGEST, Math.floor((room - Math.min(guess, LONGEST_LABEL) - 46) / source.length)));
  const size = Math.max(fontFor(cell), 11);
  context.font = `${size}px ${FONT}`;
  const rows = target.map((token) => clipped(context, token));
  const columns = source.map((token) => clipped(context, token));
  const widths = columns.map((label) => context.measureText(label).width);
  const left = Math.ceil(Math.max(...rows.map((label) => context.measureText(label).width))) + 9;
  const top = Math.ceil(Math.max(...widths) * SLOPE + size);
  const over = Math.max(...widths.map((width, i) => (width + size) * SLOPE - (columns.length - i - 0.5) * cell), 2);
  return { cell, size, rows, columns, left, top, width: left + cell * columns.length + Math.ceil(over), height: top + cell * rows.length + 3 };
}

function drawHeat(panel) {
  const { heat } = panel;
  const context = heat.getContext("2d");
  const layout = heatLayout(panel, context);
  const ratio = devicePixelRatio || 1;
  panel.layout = layout;
  if (heat.width !== Math.round(layout.width * ratio) || heat.height !== Math.round(layout.height * ratio)) {
    heat.width = Math.round(layout.width * ratio);
    heat.height = Math.round(layout.height * ratio);
    heat.style.width = `${layout.width}px`;
    heat.style.height = `${layout.height}px`;
  }
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, layout.width, layout.height);
  drawCells(context, panel, layout);
  drawLabels(context, panel, layout);
  drawOutlines(context, panel, layout);
  panel.centers.hidden = !panel.map.centers;
  // The weight of a word sums the rounded weights of its pieces, so its error can be larger.
  panel.most.textContent = panel.mostWeight.toFixed(2) + (view.unit === "pieces" ? ", each to ± 0.002" : "");
  panel.root.querySelector(".ramp").style.background = `linear-gradient(to right, ${scale().join(", ")})`;
}

function drawCells(context, { mostWeight: most, map: { matrix, centers } }, { cell, left, top }) {
  context.fillStyle = variable("--rule");
  context.fillRect(left - 1, top - 1, matrix.columns * cell + 1, matrix.rows * cell + 1);
  for (let row = 0; row < matrix.rows; row++) {
    for (let column = 0; column < matrix.columns; column++) {
      context.fillStyle = css(colorOf(most > 0 ? matrix.at(row, column) / most : 0));
      context.fillRect(left + column * cell, top + row * cell, cell - 1, cell - 1);
    }
  }
  if (!centers) return;
  for (const [color, wide] of [["--paper", 5], ["--select", 2]]) {
    context.fillStyle = variable(color);
    centers.forEach((center, row) => context.fillRect(left + (center + 0.5) * cell - wide / 2, top + row * cell, wide, cell - 1));
  }
}

function drawLabels(context, { active }, { cell, size, rows, columns, left, top }) {
  const isActive = (side, i) => active?.side === side ? active.index === i : active?.column === i && side === "source";
  const inks = { false: variable("--ink"), true: variable("--select") };
  const paint = (text, strong, align) => {
    context.font = `${strong ? 650 : 400} ${size}px ${FONT}`;
    context.fillStyle = inks[strong];
    const mark = text.length > 1 && text.startsWith("\u2581") ? "\u2581" : "";
    const indent = context.measureText(mark).width;
    const start = align === "end" ? -context.measureText(text).width : 0;
    context.fillText(text.slice(mark.length), start + indent, 0);
    context.globalAlpha = 0.4;
    context.fillText(mark, start, 0);
    context.globalAlpha = 1;
  };
  context.textBaseline = "middle";
  rows.forEach((label, row) => {
    context.save();
    context.translate(left - 7, top + (row + 0.5) * cell);
    paint(label, isActive("target", row), "end");
    context.restore();
  });
  columns.forEach((label, column) => {
    context.save();
    context.translate(left + (column + 0.5) * cell - 1, top - 5);
    context.rotate(-Math.PI / 4);
    paint(label, isActive("source", column), "start");
    context.restore();
  });
}

function drawOutlines(context, { active, map: { matrix } }, { cell, left, top }) {
  if (!active) return;
  const outline = (row, column, rows, columns) => {
    context.strokeRect(left + column * cell - 1, top + row * cell - 1, columns * cell + 1, rows * cell + 1);
  };
  context.strokeStyle = variable("--select");
  context.lineWidth = 2;
  if (active.side === "source") outline(0, active.index, matrix.rows, 1);
  else outline(active.index, 0, 1, matrix.columns);
  if (active.column < matrix.columns) {
    context.strokeStyle = variable("--ink");
    outline(active.index, active.column, 1, 1);
  }
}

// A label selects its row or column; a cell selects both.
function heatPlace(panel, event) {
  if (!panel.layout || !panel.map) return null;
  const { cell, left, top } = panel.layout;
  const { rows, columns } = panel.map.matrix;
  const column = Math.floor((event.offsetX - left) / cell);
  const row = Math.floor((event.offsetY - top) / cell);
  if (row >= 0 && row < rows && column < columns) return column < 0 ? { side: "target", index: row } : { side: "target", index: row, column };
  // The labels at the top slant by 45 degrees.
  const leaning = Math.floor((event.offsetX - left - (top - event.offsetY)) / cell);
  return row < 0 && leaning >= 0 && leaning < columns ? { side: "source", index: leaning } : null;
}
