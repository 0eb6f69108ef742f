// Colours of runs, and scales of colours for fields of numbers.

// Told apart on both papers, also by most readers that see fewer hues: lightness alternates along the list.
const LIGHT = ["#3456c8", "#d1662b", "#1f8a5b", "#b3387e", "#7a5bd0", "#8a7a00", "#0b87a8", "#c03a3a", "#5f7a2e", "#8c5a3c", "#4f6b8f", "#a04bb5"];
const DARK = ["#7c9bff", "#f0955c", "#4fc08d", "#ec7fb8", "#ab94f5", "#cdbd4a", "#4cc0de", "#f27d7d", "#a3c06a", "#cf9d7d", "#9ab4d6", "#d58be6"];

export const colourOf = (index, dark) => (dark ? DARK : LIGHT)[((index % LIGHT.length) + LIGHT.length) % LIGHT.length];

// Even steps of lightness from dark blue to pale yellow.
const FIELD = [[38, 24, 84], [54, 61, 140], [40, 104, 150], [33, 144, 141], [68, 178, 116], [150, 204, 78], [247, 230, 66]];

export function fieldColour(t) {
  if (!(t >= 0)) return [128, 128, 128];
  const at = Math.min(t, 1) * (FIELD.length - 1), i = Math.min(Math.floor(at), FIELD.length - 2), f = at - i;
  return FIELD[i].map((c, k) => Math.round(c + (FIELD[i + 1][k] - c) * f));
}

export const fieldText = t => `rgb(${fieldColour(t).join(" ")})`;

// Blue for less than nothing, red for more, the paper's colour in between.
export function signedText(t, dark) {
  const middle = dark ? [38, 43, 54] : [248, 248, 248], end = t < 0 ? [58, 104, 220] : [214, 70, 60], f = Math.min(Math.abs(t), 1) || 0;
  return `rgb(${middle.map((c, k) => Math.round(c + (end[k] - c) * f)).join(" ")})`;
}
