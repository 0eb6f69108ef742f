// Colours of runs, and scales of colours for fields of numbers.
import { theme } from "./dom.js";

const RUNS = 12; // --run-0 … of style.css

const place = index => ((index % RUNS) + RUNS) % RUNS;

// For canvases, which need the colour itself; what is left in the page follows the paper by itself.
export const colourOf = index => theme().runs[place(index)];
export const colourName = index => `var(--run-${place(index)})`;

// Even steps of lightness from dark blue to pale yellow.
const FIELD = [[38, 24, 84], [54, 61, 140], [40, 104, 150], [33, 144, 141], [68, 178, 116], [150, 204, 78], [247, 230, 66]];

function fieldColour(t) {
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
