// ---------------------------------------------------------------- colors

// The magma color map in even steps of lightness. A weight of 0 has the color of the page.
export const SCALES = {
  light: ["#ffffff", "#fed395", "#fea973", "#fa7d5e", "#ea5661", "#ca3e72", "#a5317e", "#802582", "#5c167f", "#36106b", "#140e36"],
  dark: ["#14131a", "#251255", "#4a1079", "#6e1e81", "#932b80", "#bc3978", "#e04c67", "#f6725c", "#fe9f6d", "#fecf92", "#fcfdbf"],
};
export const darkness = matchMedia("(prefers-color-scheme: dark)");
export const scale = () => SCALES[darkness.matches ? "dark" : "light"];
export const channels = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));

export function colorOf(share) {
  const stops = scale();
  const at = Math.min(Math.max(share, 0), 1) * (stops.length - 1);
  const low = Math.min(Math.floor(at), stops.length - 2);
  const [from, to] = [channels(stops[low]), channels(stops[low + 1])];
  return from.map((value, i) => Math.round(value + (to[i] - value) * (at - low)));
}

export const css = (color) => `rgb(${color.join(" ")})`;

// Black or white, whichever has more contrast: at least 4.5 to 1 on any color.
export function inkOn(color) {
  const [r, g, b] = color.map((value) => {
    const share = value / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? "#000" : "#fff";
}

export const variable = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
