// A scale takes numbers to pixels and back; its ticks are round numbers, powers of ten, times or durations.
import { duration, format } from "./dom.js";

export class Scale {
  constructor(low, high, from, to, log = false) {
    if (log && !(low > 0)) low = high > 0 ? high / 1e6 : 1e-6;
    if (log && !(high > low)) high = low * 10;
    if (!(high > low)) [low, high] = low === high && Number.isFinite(low) ? [low - (Math.abs(low) * 0.05 || 1), high + (Math.abs(high) * 0.05 || 1)] : [0, 1];
    Object.assign(this, { low, high, from, to, log });
    const [a, b] = log ? [Math.log10(low), Math.log10(high)] : [low, high];
    this.slope = (to - from) / (b - a);
    this.offset = from - a * this.slope;
  }
  pixel(value) { return (this.log ? Math.log10(value) : value) * this.slope + this.offset; }
  value(pixel) {
    const v = (pixel - this.offset) / this.slope;
    return this.log ? 10 ** v : v;
  }
}

function linear(low, high, count, steps = [1, 2, 5, 10]) {
  const rough = (high - low) / Math.max(count, 1), size = 10 ** Math.floor(Math.log10(rough));
  const step = size * steps.find(m => m * size >= rough * 0.999);
  const list = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9 && list.length < 100; i++) list.push(i * step);
  return [list, step];
}

const TIME_STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800];

function timed(low, high, count) {
  const rough = (high - low) / Math.max(count, 1);
  if (rough < 1 || rough > TIME_STEPS.at(-1)) return linear(low, high, count);
  const step = TIME_STEPS.find(s => s >= rough) ?? TIME_STEPS.at(-1), list = [];
  for (let v = Math.ceil(low / step) * step; v <= high; v += step) list.push(v);
  return [list, step];
}

const two = n => String(n).padStart(2, "0");

function wallText(value, step) {
  const d = new Date(value * 1000), time = `${two(d.getHours())}:${two(d.getMinutes())}`;
  if (step >= 86400) return `${two(d.getMonth() + 1)}-${two(d.getDate())}`;
  return step >= 60 ? time : `${time}:${two(d.getSeconds())}${step < 1 ? (value % 1).toFixed(2).slice(1) : ""}`;
}

function durationText(value, step) {
  if (value === 0) return "0";
  if (step < 60) return duration(Number(value.toPrecision(6)));
  const hours = Math.floor(value / 3600), minutes = Math.floor(value % 3600 / 60);
  return step >= 3600 ? `${hours} h` : hours ? `${hours} h ${two(minutes)}` : `${minutes} min`;
}

// [[value, text], …]; kind: number, wall (seconds since 1970), duration (seconds).
export function ticks(scale, count, kind = "number") {
  const { low, high, log } = scale;
  if (log) {
    const decades = Math.log10(high / low);
    const list = [];
    if (decades >= 1.5) {
      const every = Math.max(1, Math.ceil(decades / count)), more = decades < 3 && count >= 4 ? [1, 2, 5] : [1];
      for (let e = Math.floor(Math.log10(low)); e <= Math.ceil(Math.log10(high)); e++)
        if (e % every === 0) for (const m of more) if (m * 10 ** e >= low * 0.999 && m * 10 ** e <= high * 1.001) list.push(m * 10 ** e);
      return list.map(v => [v, kind === "duration" ? duration(v) : format(Number(v.toPrecision(3)))]);
    }
  }
  const [list, step] = kind === "number" ? linear(low, high, count) : timed(low, high, count);
  if (kind === "wall") return list.map(v => [v, wallText(v, step)]);
  if (kind === "duration") return list.map(v => [v, durationText(v, step)]);
  const digits = Math.max(0, Math.ceil(-Math.log10(step) - 1e-9)), size = Math.max(Math.abs(low), Math.abs(high));
  // As many decimals as tell neighbours apart.
  return list.map(v => [v, size >= 1e6 || size < 1e-3 ? exponent(v, step) : v.toFixed(digits)]);
}

function exponent(value, step) {
  if (value === 0) return "0";
  const digits = Math.max(0, Math.floor(Math.log10(Math.abs(value))) - Math.floor(Math.log10(step) + 1e-9));
  return value.toExponential(Math.min(digits, 6)).replace("e+", "e");
}
