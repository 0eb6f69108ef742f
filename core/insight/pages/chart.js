// A chart on a canvas: lines of any number of points, bands, points, and drawings of a page's own, with zoom to a box and back.
// Of many points in one column of pixels first, last, least and greatest are drawn: the picture is that of all points, and costs
// one pass over those in view.
import { clock, duration, format, h, theme } from "./dom.js";
import { Scale, ticks } from "./scale.js";
import { SvgPainter } from "./painter.js";

// The first index whose value is not below v; x rises.
export function lowerBound(x, v) {
  let a = 0, b = x.length;
  while (a < b) {
    const m = (a + b) >> 1;
    if (x[m] < v) a = m + 1; else b = m;
  }
  return a;
}

// The names of lines that are no runs.
export const legend = series => h("div.row.quiet", series.filter(line => !line.quiet).map(line => h("span", h("span.swatch", { style: { background: line.colour } }), " ", line.name)));

const tip = h("div.tip", { hidden: true });
document.body.append(tip);

export function showTip(event, ...content) {
  tip.replaceChildren(...content);
  tip.hidden = false;
  const box = tip.getBoundingClientRect(), right = event.clientX + 16 + box.width > innerWidth;
  tip.style.left = `${right ? Math.max(4, event.clientX - 14 - box.width) : event.clientX + 16}px`;
  tip.style.top = `${Math.min(event.clientY + 12, innerHeight - box.height - 6)}px`;
}

export const hideTip = () => { tip.hidden = true; };

// Follows points of a rising x and gives the painter only what can be seen of them.
function trace(p, { x, y }, sx, sy, width) {
  const rising = isRising(x);
  let i = 0, end = x.length;
  if (rising) {
    i = Math.max(0, lowerBound(x, sx.low) - 1);
    end = Math.min(x.length, lowerBound(x, sx.high) + 2);
  }
  if (rising && end - i > 3 * width) return columns(p, x, y, sx, sy, i, end);
  p.beginPath();
  let down = false;
  for (; i < end; i++) {
    const px = sx.pixel(x[i]), py = sy.pixel(y[i]);
    if (!Number.isFinite(py) || !Number.isFinite(px)) { down = false; continue; }
    if (down) p.lineTo(px, py);
    else { p.moveTo(px, py); p.lineTo(px, py + 0.01); }
    down = true;
  }
  p.stroke();
}

// Of each column of pixels a bar from the least to the greatest, and to where the column before ended: rectangles on whole pixels
// are drawn many times faster than a path that runs up and down.
function columns(p, x, y, sx, sy, i, end) {
  let column = NaN, low = 0, high = 0, last = NaN, filled = false;
  const half = p.lineWidth / 2;
  const flush = () => {
    if (filled) p.fillRect(column, low - half, 1, high - low + 2 * half);
    filled = false;
  };
  for (; i < end; i++) {
    const py = sy.pixel(y[i]);
    if (!Number.isFinite(py)) { flush(); column = last = NaN; continue; }
    const px = Math.round(sx.pixel(x[i]));
    if (px === column) {
      if (py < low) low = py; else if (py > high) high = py;
    } else {
      flush();
      const joined = Number.isFinite(last);
      if (joined && px > column + 1) {
        p.beginPath();
        p.moveTo(column, last);
        p.lineTo(px, py);
        p.stroke();
      }
      [low, high] = joined && px === column + 1 ? [Math.min(py, last), Math.max(py, last)] : [py, py];
      column = px;
      filled = true;
    }
    last = py;
  }
  flush();
}

const rise = new WeakMap();

function isRising(x) {
  let known = rise.get(x);
  if (known === undefined) {
    known = true;
    for (let i = 1; i < x.length && known; i++) known = x[i] >= x[i - 1];
    rise.set(x, known);
  }
  return known;
}

function band(p, { x, low, high, bars }, sx, sy) {
  let from = 0, to = x.length;
  if (isRising(x)) {
    from = Math.max(0, lowerBound(x, sx.low) - 1);
    to = Math.min(to, lowerBound(x, sx.high) + 1);
  }
  p.beginPath();
  const floor = sy.from + 10;
  const place = v => { const py = sy.pixel(v); return Number.isFinite(py) ? py : floor; };
  for (let i = from; i < to; i++) i === from ? p.moveTo(sx.pixel(x[i]), place(high[i])) : p.lineTo(sx.pixel(x[i]), place(high[i]));
  for (let i = to - 1; i >= from; i--) p.lineTo(sx.pixel(x[i]), place(low[i]));
  p.closePath();
  p.fill();
  if (!bars) return;
  // From the least to the greatest: as an area the peak of one bucket is too thin to be seen.
  p.globalAlpha = 0.45;
  for (let i = from; i < to; i++) {
    const top = place(high[i]), bottom = place(low[i]);
    if (bottom > top) p.fillRect(Math.round(sx.pixel(x[i])), top, 1, bottom - top);
  }
}

// series: { name, colour, x, y, low?, high?, bars? (of least and greatest), kind: "line" | "points", alpha?, dash?, width?, quiet (not in the tip) }
// layers: { extent: [x0, x1, y0, y1] or null, draw(painter, sx, sy, colours), over? }
export class Chart {
  constructor(options = {}) {
    this.options = { kind: "number", yKind: "number", ...options };
    this.series = [];
    this.layers = options.layers ?? [];
    this.thresholds = [];
    this.window = options.window ?? null;
    this.history = [];
    this.message = h("div.message");
    this.base = h("canvas");
    this.over = h("canvas");
    this.element = h("div.chart", { tabIndex: 0, role: "img", ariaLabel: options.title ?? "chart", onkeydown: e => this.key(e) }, this.base, this.over, this.message);
    this.listen();
    new ResizeObserver(() => this.resize()).observe(this.element);
  }

  set(series, options = {}) {
    Object.assign(this.options, options);
    this.series = series;
    this.later();
  }

  // At most one drawing per frame.
  later() {
    this.frame ??= requestAnimationFrame(() => { this.frame = null; this.draw(); });
  }

  resize() {
    const { width, height } = this.element.getBoundingClientRect(), ratio = devicePixelRatio || 1;
    if (!width || !height) return;
    for (const canvas of [this.base, this.over]) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    [this.width, this.height, this.ratio] = [width, height, ratio];
    this.draw();
  }

  // [x0, x1, y0, y1] of all there is; of y only what lies between two x, if they are given.
  extent(x0 = -Infinity, x1 = Infinity) {
    const e = [Infinity, -Infinity, Infinity, -Infinity];
    const { logX, logY } = this.options;
    for (const { x, y, low, high } of this.series) {
      let i = 0, end = x.length;
      if (isRising(x)) {
        i = lowerBound(x, x0);
        end = Math.min(x.length, lowerBound(x, x1) + 1);
      }
      for (; i < end; i++) {
        const v = x[i];
        if (v < x0 || v > x1 || logX && !(v > 0)) continue;
        if (v < e[0]) e[0] = v;
        if (v > e[1]) e[1] = v;
        const a = low ? low[i] : y[i], b = high ? high[i] : y[i];
        if (a < e[2] && Number.isFinite(a) && !(logY && a <= 0)) e[2] = a;
        if (b > e[3] && Number.isFinite(b) && !(logY && b <= 0)) e[3] = b;
      }
    }
    for (const { extent } of this.layers) {
      if (!extent) continue;
      e[0] = Math.min(e[0], extent[0]); e[1] = Math.max(e[1], extent[1]);
      e[2] = Math.min(e[2], extent[2]); e[3] = Math.max(e[3], extent[3]);
    }
    return e;
  }

  scales(p, width, height, top) {
    const { logX, logY, kind, yKind, tight } = this.options, w = this.window;
    let [x0, x1, y0, y1] = this.extent(w?.[0], w?.[1]);
    if (w) [x0, x1] = w;
    else if (this.series.some(line => line.kind === "points")) {
      // Points at the edges are whole.
      if (logX && x0 > 0) [x0, x1] = [x0 / (x1 / x0) ** 0.04, x1 * (x1 / x0) ** 0.04];
      else [x0, x1] = [x0 - (x1 - x0) * 0.04, x1 + (x1 - x0) * 0.04];
    }
    if (w && w[2] !== null && w[2] !== undefined) [y0, y1] = [w[2], w[3]];
    else if (!tight) {
      if (logY && y0 > 0) [y0, y1] = [y0 / (y1 / y0) ** 0.05, y1 * (y1 / y0) ** 0.05];
      else { const more = (y1 - y0) * 0.05; [y0, y1] = [y0 - more, y1 + more]; }
    }
    const bottom = height - (this.options.xLabel ? 36 : 21);
    const sy = new Scale(y0, y1, bottom, top, logY);
    const yTicks = this.options.yTicks ?? ticks(sy, Math.max(2, Math.round((bottom - top) / 38)), yKind);
    p.font = theme().font;
    const left = Math.ceil(Math.max(24, ...yTicks.map(([, text]) => p.measureText(text).width))) + 10 + (this.options.yLabel ? 15 : 0);
    const sx = new Scale(x0, x1, left, width - 10, logX);
    const xTicks = this.options.xTicks ?? ticks(sx, Math.max(2, Math.round((width - left) / 85)), kind);
    return { sx, sy, xTicks, yTicks, left, right: width - 10, top, bottom };
  }

  draw() {
    if (!this.width) return;
    const p = this.base.getContext("2d");
    p.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    p.clearRect(0, 0, this.width, this.height);
    const anything = this.series.some(line => line.x.length) || this.layers.some(layer => layer.extent);
    this.message.textContent = anything ? "" : this.options.message ?? "";
    if (!anything) { this.place = null; return; }
    this.place = this.render(p, this.width, this.height, 6);
    this.over.getContext("2d").clearRect(0, 0, this.over.width, this.over.height);
  }

  render(p, width, height, top) {
    const colours = theme(), place = this.scales(p, width, height, top), { sx, sy, xTicks, yTicks, left, right, bottom } = place;
    p.lineWidth = 1;
    p.strokeStyle = colours["line-2"];
    p.fillStyle = colours["ink-2"];
    p.beginPath();
    p.textBaseline = "middle";
    p.textAlign = "right";
    for (const [value, text] of yTicks) {
      const y = Math.round(sy.pixel(value)) + 0.5;
      if (y < top - 1 || y > bottom + 1) continue;
      if (!this.options.noGrid) { p.moveTo(left, y); p.lineTo(right, y); }
      p.fillText(text, left - 6, Math.min(Math.max(y, top + 5), bottom - 3));
    }
    p.textBaseline = "top";
    p.textAlign = "center";
    for (const [value, text] of xTicks) {
      const x = Math.round(sx.pixel(value)) + 0.5;
      if (x < left - 1 || x > right + 1) continue;
      if (!this.options.noGrid) { p.moveTo(x, top); p.lineTo(x, bottom); }
      const half = p.measureText(text).width / 2;
      p.fillText(text, Math.min(Math.max(x, half), width - half), bottom + 5);
    }
    p.stroke();
    if (this.options.xLabel) p.fillText(this.options.xLabel, (left + right) / 2, bottom + 21);
    if (this.options.yLabel) {
      p.save();
      p.translate(4, (top + bottom) / 2);
      p.rotate(-Math.PI / 2);
      p.fillText(this.options.yLabel, 0, 0);
      p.restore();
    }
    p.strokeStyle = colours.line;
    p.beginPath();
    p.moveTo(left + 0.5, top); p.lineTo(left + 0.5, bottom + 0.5); p.lineTo(right, bottom + 0.5);
    p.stroke();
    p.save();
    p.beginPath();
    p.rect(left, top, right - left, bottom - top);
    p.clip();
    for (const layer of this.layers) if (!layer.over) layer.draw(p, sx, sy, colours);
    this.lines(p, place, null);
    this.limits(p, place, colours);
    for (const layer of this.layers) if (layer.over) layer.draw(p, sx, sy, colours);
    p.restore();
    return place;
  }

  lines(p, { sx, sy, left, right, top, bottom }, colour) {
    p.lineJoin = "bevel"; // a mitre of a line to and fro would stick out
    for (const line of this.series) {
      p.fillStyle = p.strokeStyle = colour ?? line.colour;
      if (line.low && !colour) {
        p.globalAlpha = 0.16;
        band(p, line, sx, sy);
      }
      p.globalAlpha = line.alpha ?? 1;
      p.lineWidth = line.width ?? 1.5;
      p.setLineDash(line.dash ?? []);
      if (line.kind === "points") this.dots(p, line, sx, sy);
      else {
        trace(p, line, sx, sy, right - left);
        if (!line.quiet && line.x.length <= 40 && line.x.length * 12 < right - left) this.dots(p, { ...line, radius: 2 }, sx, sy);
      }
      p.setLineDash([]);
      p.globalAlpha = 1;
      if (!line.quiet && !colour) this.strays(p, line, sx, top, bottom);
    }
  }

  dots(p, { x, y, radius = 3, colours }, sx, sy) {
    for (let i = 0; i < x.length; i++) {
      const px = sx.pixel(x[i]), py = sy.pixel(y[i]);
      if (!Number.isFinite(px + py)) continue;
      if (colours) p.fillStyle = colours[i];
      p.beginPath();
      p.arc(px, py, radius, 0, 2 * Math.PI);
      p.fill();
    }
  }

  // Values that have no place: a mark at the upper edge for +Inf, at the lower for -Inf and NaN. nan: how many NaN a bucket has.
  strays(p, { x, y, nan }, sx, top, bottom) {
    let last = NaN;
    for (let i = 0; i < y.length; i++) {
      if (Number.isFinite(y[i]) && !(nan?.[i] > 0)) continue;
      const px = Math.round(sx.pixel(x[i]));
      if (px === last) continue;
      last = px;
      const up = y[i] === Infinity, edge = up ? top : bottom, tip = up ? 7 : -7;
      p.beginPath();
      p.moveTo(px - 4, edge + tip); p.lineTo(px + 4, edge + tip); p.lineTo(px, edge);
      p.closePath();
      p.fill();
    }
  }

  // Where a threshold is passed the lines are drawn again in the colour for bad things.
  limits(p, place, colours) {
    const { sy, left, right, top, bottom } = place;
    for (const { from, to } of this.thresholds) {
      const edge = v => Number.isFinite(v) ? Math.min(Math.max(sy.pixel(v), top), bottom) : v > 0 ? top : bottom;
      const y0 = edge(to), y1 = edge(from);
      p.fillStyle = colours.bad;
      p.globalAlpha = 0.07;
      p.fillRect(left, y0, right - left, y1 - y0);
      p.globalAlpha = 1;
      p.save();
      p.beginPath();
      p.rect(left, y0, right - left, y1 - y0);
      p.clip();
      this.lines(p, place, colours.bad);
      p.restore();
      p.strokeStyle = colours.bad;
      p.lineWidth = 1;
      p.setLineDash([5, 4]);
      p.beginPath();
      for (const v of [from, to]) if (Number.isFinite(v)) { p.moveTo(left, sy.pixel(v)); p.lineTo(right, sy.pixel(v)); }
      p.stroke();
      p.setLineDash([]);
    }
  }

  // Windows. null is everything; y may be null: as high as what is in view.
  zoom(window) {
    this.history.push(this.window);
    this.look(window);
  }
  back() { if (this.history.length) this.look(this.history.pop()); else if (this.window) this.look(null); }
  all() { this.history = []; this.look(null); }
  look(window) {
    this.window = window;
    this.options.onWindow?.(window);
    this.later();
  }

  key(event) {
    const { place } = this;
    if (event.key === "Backspace") this.back();
    else if (place && ["ArrowLeft", "ArrowRight", "+", "-"].includes(event.key)) {
      const w = place.right - place.left, [a, b] = { ArrowLeft: [-0.25, 0.75], ArrowRight: [0.25, 1.25], "+": [0.2, 0.8], "-": [-0.3, 1.3] }[event.key];
      this.zoom([place.sx.value(place.left + a * w), place.sx.value(place.left + b * w), null, null]);
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  listen() {
    const over = this.element;
    let start = null;
    const at = event => {
      const box = this.element.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    over.addEventListener("pointerdown", event => {
      if (event.button !== 0 || !this.place) return;
      start = { at: at(event), place: this.place, window: this.window, move: event.shiftKey };
      over.setPointerCapture(event.pointerId);
    });
    over.addEventListener("pointermove", event => {
      if (!this.place) return;
      const [x, y] = at(event);
      if (!start) return this.hover(event, x, y);
      hideTip();
      if (start.move) this.slide(start, x, y);
      else this.box(start.at, [x, y]);
    });
    over.addEventListener("pointerup", event => {
      if (!start) return;
      const [x, y] = at(event), [x0, y0] = start.at, { sx, sy } = start.place;
      const move = start.move;
      if (move) { this.history.push(start.window); this.options.onWindow?.(this.window); }
      else if (Math.abs(x - x0) > 5) {
        const flat = this.isFlat(y - y0), inside = v => Math.min(Math.max(v, start.place.left), start.place.right);
        this.zoom([sx.value(inside(Math.min(x, x0))), sx.value(inside(Math.max(x, x0))), ...flat ? [null, null] : [sy.value(Math.max(y, y0)), sy.value(Math.min(y, y0))]]);
      } else { this.clear(); if (Math.abs(y - y0) < 5) this.options.onPick?.(this.nearest(x, y), event); }
      start = null;
    });
    over.addEventListener("pointerleave", () => { if (!start) { hideTip(); this.clear(); } });
    over.addEventListener("pointercancel", () => { start = null; this.clear(); });
    over.addEventListener("dblclick", () => this.all());
    over.addEventListener("wheel", event => {
      if (!event.ctrlKey || !this.place) return;
      event.preventDefault();
      const [x] = at(event), { left, right, sx } = this.place, f = event.deltaY > 0 ? 1.25 : 0.8;
      this.look([sx.value(x - (x - left) * f), sx.value(x + (right - x) * f), null, null]);
    }, { passive: false });
  }

  // A box without height is as high as the chart; so are all where only x is zoomed.
  isFlat(height) { return this.options.flatZoom || Math.abs(height) < 12; }

  slide({ at, place: { sx, sy, left, right, top, bottom }, window }, x, y) {
    const dx = at[0] - x, dy = at[1] - y, high = window && window[2] !== null;
    this.window = [sx.value(left + dx), sx.value(right + dx), ...high ? [sy.value(bottom + dy), sy.value(top + dy)] : [null, null]];
    this.later();
  }

  overlay() {
    const p = this.over.getContext("2d");
    p.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    p.clearRect(0, 0, this.width, this.height);
    return p;
  }

  clear() { if (this.ratio) this.overlay(); }

  box([x0, y0], [x, y]) {
    const p = this.overlay(), { top, bottom, left, right } = this.place, colours = theme();
    const flat = this.isFlat(y - y0), inside = v => Math.min(Math.max(v, left), right);
    const [a, b] = [inside(Math.min(x0, x)), inside(Math.max(x0, x))], [c, d] = flat ? [top, bottom] : [Math.min(y0, y), Math.max(y0, y)];
    p.fillStyle = p.strokeStyle = colours.accent;
    p.globalAlpha = 0.14;
    p.fillRect(a, c, b - a, d - c);
    p.globalAlpha = 1;
    p.strokeRect(a + 0.5, c + 0.5, b - a, d - c);
  }

  // Of each line the point whose x is nearest; of points the nearest within 14 pixels.
  nearest(px, py) {
    const { sx, sy } = this.place, list = [];
    for (const line of this.series) {
      if (line.quiet || !line.x.length) continue;
      let best = -1, distance = Infinity;
      if (line.kind !== "points" && isRising(line.x)) {
        const i = lowerBound(line.x, sx.value(px));
        for (const k of [i - 1, i])
          if (k >= 0 && k < line.x.length && Math.abs(sx.pixel(line.x[k]) - px) < distance) [best, distance] = [k, Math.abs(sx.pixel(line.x[k]) - px)];
      } else {
        for (let i = 0; i < line.x.length; i++) {
          const d = Math.hypot(sx.pixel(line.x[i]) - px, sy.pixel(line.y[i]) - py);
          if (d < distance) [best, distance] = [i, d];
        }
        if (distance > 14) best = -1;
      }
      if (best >= 0) list.push({ line, index: best, x: line.x[best], y: line.y[best], px: sx.pixel(line.x[best]), py: sy.pixel(line.y[best]) });
    }
    return list.sort((a, b) => Math.abs(a.py - py) - Math.abs(b.py - py));
  }

  hover(event, x, y) {
    const { left, right, top, bottom } = this.place, list = x < left - 4 || x > right + 4 ? [] : this.nearest(x, y), p = this.overlay();
    const own = this.options.tip?.(list, this.place, x, y);
    if (!list.length && !own) return hideTip();
    const colours = theme();
    if (list.length && list[0].line.kind !== "points") {
      p.strokeStyle = colours["ink-3"];
      p.beginPath();
      p.moveTo(Math.round(list[0].px) + 0.5, top); p.lineTo(Math.round(list[0].px) + 0.5, bottom);
      p.stroke();
    }
    for (const near of list.slice(0, 12)) {
      if (!Number.isFinite(near.py)) continue;
      p.fillStyle = near.line.colour;
      p.strokeStyle = colours.panel;
      p.beginPath();
      p.arc(near.px, near.py, 4, 0, 2 * Math.PI);
      p.fill();
      p.stroke();
    }
    showTip(event, own ?? h("table", h("tbody", list.slice(0, 12).map(near => this.tipRow(near)))));
  }

  tipRow({ line, index, x, y }) {
    const { kind, yKind } = this.options;
    return h("tr", h("td", h("span.swatch", { style: { background: line.colour } })), h("td.clip", line.name),
      h("td.number", yKind === "duration" ? duration(y) : format(y)),
      line.high && line.high[index] > line.low[index] ? h("td.quiet", `${format(line.low[index])} … ${format(line.high[index])}`) : null,
      h("td.quiet", kind === "wall" ? clock(x) : kind === "duration" ? duration(x) : format(x)), line.note ? h("td.quiet", line.note(index)) : null);
  }

  // The picture with its title and names, for files.
  picture(p, width, height, title) {
    const colours = theme(), named = this.series.filter(line => !line.quiet && line.name);
    p.fillStyle = colours.panel;
    p.fillRect(0, 0, width, height);
    p.fillStyle = colours.ink;
    p.font = "14px system-ui, sans-serif";
    p.textAlign = "left";
    p.textBaseline = "alphabetic";
    p.fillText(title, 12, 20);
    const rows = Math.min(named.length, 12) * 16;
    this.render(p, width, height - rows - 6, 32);
    p.font = colours.font;
    p.textAlign = "left";
    p.textBaseline = "middle";
    for (const [i, line] of named.slice(0, 12).entries()) {
      const y = height - rows + i * 16 + 2;
      p.fillStyle = line.colour;
      p.fillRect(14, y - 2, 14, 4);
      p.fillStyle = colours.ink;
      p.fillText(line.name, 34, y);
    }
  }

  svg(title, width = 900, height = 480) {
    const p = new SvgPainter(width, height);
    this.picture(p, width, height, title);
    return p.text();
  }

  async png(title, width = 900, height = 480) {
    const canvas = h("canvas", { width: 2 * width, height: 2 * height }), p = canvas.getContext("2d");
    p.scale(2, 2);
    this.picture(p, width, height, title);
    return new Promise(resolve => { canvas.toBlob(resolve, "image/png"); });
  }
}
