// The canvas of the graph page: draws what its window shows. From afar, where boxes are smaller than letters, a picture of the whole
// that is made once stands for them, so that a frame never costs more than some thousands of boxes.
import { h, isDark, theme } from "./dom.js";
import { BACK, CLOSED, CONSTANT, DISTANT, GRADIENT, INPUT, NODE, OPEN, OPTIMIZER, PARAMETER, PLUMBING } from "./graph_view.js";

const MANY = 9000; // boxes that are drawn one by one in a frame
const OVERVIEW = 3e6; // pixels of the picture of the whole
const FEWEST = 0.0005, LARGEST = 4; // scales

const light = { node: "#eef4fc", gradient: "#fdeede", optimizer: "#efe7fb", plumbing: "#f1f1f1", value: "#e3f3e6", group: "#d9e5f7",
  removed: "#f9c9c9", added: "#bfe8ca", changed: "#fbe2a4" };
const dark = { node: "#263142", gradient: "#443222", optimizer: "#352b4a", plumbing: "#2b2e34", value: "#223b2a", group: "#2b3d58",
  removed: "#6b2a2e", added: "#22583a", changed: "#6a551e" };

const tintOf = percent => isDark() ? `rgb(200 215 255 / ${percent}%)` : `rgb(30 60 120 / ${percent}%)`;

export class GraphCanvas {
  // on: { select(item or -1), toggle(item) }
  constructor(on) {
    this.on = on;
    this.canvas = h("canvas.graph-canvas", { tabIndex: 0, ariaLabel: "the graph; arrows move, + and - zoom, Enter opens and closes" });
    this.map = h("canvas.graph-map", { ariaHidden: "true" });
    this.element = h("div.graph-place", this.canvas, this.map);
    this.view = null;
    this.scale = 1;
    this.left = this.top = 0;
    this.selected = -1;
    this.marked = null; // a set of items; others are pale
    this.states = new Map(); // of nodes: removed, added, changed
    this.heat = null; // { nodes, groups, most }
    this.equal = true; // equal parts have colours
    this.frames = [];
    this.listen();
    this.watcher = new ResizeObserver(() => this.resize());
    this.watcher.observe(this.element);
  }

  close() {
    this.watcher.disconnect();
    cancelAnimationFrame(this.waiting);
  }

  show(view) {
    this.view = view;
    this.edgesOfSelected = [];
    this.selected = -1;
    this.marked = null;
    this.overview = null;
    this.fills = null;
    this.redraw();
  }

  select(item, move) {
    this.selected = item;
    this.edgesOfSelected = item >= 0 ? this.view.edgesOf(item) : [];
    if (item >= 0 && move) this.centre(item);
    this.redraw();
  }

  recolour() {
    this.overview = this.fills = null;
    this.redraw();
  }

  centre(item) {
    const { view } = this;
    this.scale = Math.min(LARGEST, Math.max(this.scale, 0.6));
    if (view.kind[item] === OPEN) return this.fit(item);
    this.left = view.x[item] + view.w[item] / 2 - this.canvas.clientWidth / this.scale / 2;
    this.top = view.y[item] + view.h[item] / 2 - this.canvas.clientHeight / this.scale / 2;
    this.redraw();
  }

  // The whole, or an open group, as large as it fits; not larger than life.
  fit(item = -1) {
    const { view } = this;
    const [x, y, w, hh] = item >= 0 ? [view.x[item], view.y[item], view.w[item], view.h[item]] : [0, 0, view.width, view.height];
    const [cw, ch] = [Math.max(this.canvas.clientWidth, 10), Math.max(this.canvas.clientHeight, 10)];
    this.scale = Math.min(1, cw / (w + 60), ch / (hh + 60));
    this.left = x + w / 2 - cw / this.scale / 2;
    this.top = y + hh / 2 - ch / this.scale / 2;
    this.redraw();
  }

  // At first: the whole where it can be read, otherwise its beginning, around the uppermost box.
  begin() {
    this.fit();
    if (this.scale >= 0.5) return;
    const { view } = this;
    let first = 0;
    for (let i = 1; i < view.count; i++) if (view.kind[i] !== OPEN && (view.kind[first] === OPEN || view.y[i] < view.y[first])) first = i;
    const shown = this.canvas.clientWidth / (this.scale = 0.6);
    this.top = -20 / this.scale;
    this.left = view.width < shown ? (view.width - shown) / 2 : view.x[first] + view.w[first] / 2 - shown / 2;
    this.redraw();
  }

  zoom(factor, x = this.canvas.clientWidth / 2, y = this.canvas.clientHeight / 2) {
    const scale = Math.min(LARGEST, Math.max(FEWEST, this.scale * factor));
    this.left += x / this.scale - x / scale;
    this.top += y / this.scale - y / scale;
    this.scale = scale;
    this.redraw();
  }

  move(dx, dy) {
    this.left += dx / this.scale;
    this.top += dy / this.scale;
    this.redraw();
  }

  listen() {
    const { canvas, map } = this;
    const place = event => {
      const box = canvas.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    const itemAt = event => {
      const [x, y] = place(event);
      return this.view ? this.view.at(this.left + x / this.scale, this.top + y / this.scale) : -1;
    };
    canvas.addEventListener("wheel", event => {
      event.preventDefault();
      const unit = event.deltaMode === 1 ? 16 : 1;
      if (event.ctrlKey || event.metaKey) this.zoom(Math.exp(-event.deltaY * unit * 0.003), ...place(event));
      else if (event.shiftKey && !event.deltaX) this.move(event.deltaY * unit, 0);
      else this.move(event.deltaX * unit, event.deltaY * unit);
    }, { passive: false });
    let last = null, moved = 0;
    canvas.addEventListener("pointerdown", event => {
      if (event.button !== 0) return;
      canvas.setPointerCapture(event.pointerId);
      last = [event.clientX, event.clientY];
      moved = 0;
    });
    canvas.addEventListener("pointermove", event => {
      if (!last) return;
      const [dx, dy] = [event.clientX - last[0], event.clientY - last[1]];
      moved += Math.abs(dx) + Math.abs(dy);
      last = [event.clientX, event.clientY];
      if (moved > 3) this.move(-dx, -dy);
    });
    canvas.addEventListener("pointerup", event => {
      if (last && moved <= 3) this.on.select(itemAt(event));
      last = null;
    });
    canvas.addEventListener("pointercancel", () => { last = null; });
    canvas.addEventListener("dblclick", event => {
      const item = itemAt(event);
      if (item >= 0) this.on.toggle(item);
    });
    canvas.addEventListener("keydown", event => {
      const step = event.shiftKey ? 400 : 80;
      const moves = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, -step], ArrowDown: [0, step],
        PageUp: [0, -canvas.clientHeight * 0.9], PageDown: [0, canvas.clientHeight * 0.9] };
      if (moves[event.key]) this.move(...moves[event.key]);
      else if (event.key === "Home") this.begin();
      else if (event.key === "Enter" && this.selected >= 0) this.on.toggle(this.selected);
      else return;
      event.preventDefault();
    });
    const jump = event => {
      if (!(event.buttons & 1) || !this.mapScale) return;
      const box = map.getBoundingClientRect();
      this.left = (event.clientX - box.left) / this.mapScale - canvas.clientWidth / this.scale / 2;
      this.top = (event.clientY - box.top) / this.mapScale - canvas.clientHeight / this.scale / 2;
      this.redraw();
    };
    map.addEventListener("pointerdown", event => { map.setPointerCapture(event.pointerId); jump(event); });
    map.addEventListener("pointermove", jump);
  }

  resize() {
    const ratio = devicePixelRatio || 1;
    this.canvas.width = Math.round(this.canvas.clientWidth * ratio);
    this.canvas.height = Math.round(this.canvas.clientHeight * ratio);
    this.redraw();
  }

  redraw() {
    if (this.waiting) return;
    this.waiting = requestAnimationFrame(() => {
      this.waiting = 0;
      if (this.view && this.canvas.width && this.canvas.isConnected) this.draw();
    });
  }

  // The window in the graph's own lengths; a third of it always shows some of the graph.
  window() {
    const [wide, high] = [this.canvas.clientWidth / this.scale, this.canvas.clientHeight / this.scale];
    this.left = Math.min(Math.max(this.left, -wide * 2 / 3), this.view.width - wide / 3);
    this.top = Math.min(Math.max(this.top, -high * 2 / 3), this.view.height - high / 3);
    return [this.left, this.top, this.left + wide, this.top + high];
  }

  fillOf(i) {
    const { view } = this, colours = isDark() ? dark : light;
    if (view.kind[i] === OPEN) return theme().panel;
    const isNode = view.kind[i] === NODE;
    if (this.heat) {
      const value = (isNode ? this.heat.nodes : this.heat.groups)[view.id[i]];
      if (value !== undefined && this.heat.most > 0) {
        const part = Math.sqrt(Math.min(1, Math.max(0, value / this.heat.most)));
        return colours === dark ? `hsl(8 ${20 + 60 * part}% ${16 + 30 * part}%)` : `hsl(8 85% ${96 - 40 * part}%)`;
      }
    }
    if (isNode && this.states.size) {
      const state = this.states.get(view.id[i]);
      if (state) return colours[state];
    }
    if (!isNode) {
      if (view.key[i] < 0 || !this.equal) return colours.group;
      return `hsl(${Math.round(view.key[i] * 137.508 % 360)} ${colours === dark ? "35% 28%" : "60% 88%"})`;
    }
    const marks = view.marks[i];
    if (marks & (CONSTANT | PARAMETER | INPUT)) return colours.value;
    if (marks & OPTIMIZER) return colours.optimizer;
    if (marks & GRADIENT) return colours.gradient;
    return marks & PLUMBING ? colours.plumbing : colours.node;
  }

  fill(i) {
    this.fills ??= new Array(this.view.count);
    return this.fills[i] ??= this.fillOf(i);
  }

  // The whole in few pixels: for the map, and for windows with too many boxes.
  makeOverview() {
    const { view } = this;
    const scale = Math.min(0.25, Math.sqrt(OVERVIEW / Math.max(view.width * view.height, 1)), 8000 / view.height, 8000 / view.width);
    const picture = new OffscreenCanvas(Math.max(1, Math.ceil(view.width * scale)), Math.max(1, Math.ceil(view.height * scale)));
    const c = picture.getContext("2d");
    c.fillStyle = isDark() ? "#39465c" : "#c3d0e4";
    for (const i of view.opened) c.strokeStyle = c.fillStyle, c.strokeRect(view.x[i] * scale, view.y[i] * scale, view.w[i] * scale, view.h[i] * scale);
    const byFill = new Map();
    for (let i = 0; i < view.count; i++) {
      if (view.kind[i] === OPEN) continue;
      const fill = this.fill(i);
      if (!byFill.has(fill)) byFill.set(fill, []);
      byFill.get(fill).push(i);
    }
    for (const [fill, list] of byFill) {
      c.fillStyle = fill;
      for (const i of list) c.fillRect(view.x[i] * scale, view.y[i] * scale, Math.max(view.w[i] * scale, 1), Math.max(view.h[i] * scale, 1));
    }
    // Pale boxes get a tint of ink, so that they stand out from the paper; the more the smaller they are.
    c.globalCompositeOperation = "source-atop";
    c.fillStyle = tintOf(scale < 0.05 ? 50 : 22);
    c.fillRect(0, 0, picture.width, picture.height);
    this.overview = { picture, scale };
  }

  draw() {
    const begun = performance.now();
    const { view, canvas, scale } = this;
    const c = canvas.getContext("2d"), ratio = canvas.width / canvas.clientWidth, colours = theme();
    c.setTransform(1, 0, 0, 1, 0, 0);
    c.fillStyle = colours.paper;
    c.fillRect(0, 0, canvas.width, canvas.height);
    const window = this.window();
    c.setTransform(ratio * scale, 0, 0, ratio * scale, -this.left * ratio * scale, -this.top * ratio * scale);
    if (!this.overview) this.makeOverview();
    if (view.crowd(window) > MANY) {
      c.imageSmoothingEnabled = true;
      c.drawImage(this.overview.picture, 0, 0, this.overview.picture.width / this.overview.scale, this.overview.picture.height / this.overview.scale);
    } else {
      this.drawGroups(c, window, colours);
      if (scale > 0.08) this.drawEdges(c, window, colours);
      this.drawBoxes(c, window, colours);
    }
    this.drawSelected(c, colours);
    this.drawMap(colours);
    this.frames.push(performance.now() - begun);
    if (this.frames.length > 200) this.frames.shift();
  }

  drawGroups(c, window, colours) {
    const { view } = this;
    for (const i of view.opened) {
      if (view.x[i] > window[2] || view.y[i] > window[3] || view.x[i] + view.w[i] < window[0] || view.y[i] + view.h[i] < window[1]) continue;
      c.fillStyle = colours.panel;
      c.strokeStyle = this.equal && view.key[i] >= 0 ? `hsl(${Math.round(view.key[i] * 137.508 % 360)} 45% 55%)` : colours.line;
      c.lineWidth = 1.2;
      c.beginPath();
      c.roundRect(view.x[i], view.y[i], view.w[i], view.h[i], 8);
      c.fill();
      c.stroke();
      if (this.scale < 0.25) continue;
      // The title stays in sight while its group is.
      const x = Math.max(view.x[i], Math.min(window[0], view.x[i] + view.w[i] - 160)) + 10;
      c.fillStyle = colours["ink-2"];
      c.font = "600 12px sans-serif";
      c.textAlign = "left";
      c.fillText(this.shortened(view.label(i), view.w[i] - 20), x, view.y[i] + 18);
    }
  }

  drawEdges(c, window, colours) {
    const { view } = this, p = view.points;
    const plain = new Path2D(), dashed = new Path2D(), tips = new Path2D();
    const curve = this.scale > 0.25;
    view.eachPiece(window, (k, e) => {
      const path = view.way[e] === 0 ? plain : dashed;
      path.moveTo(p[k], p[k + 1]);
      if (curve) {
        const middle = (p[k + 1] + p[k + 3]) / 2;
        path.bezierCurveTo(p[k], middle, p[k + 2], middle, p[k + 2], p[k + 3]);
        if (k + 4 === view.start[e + 1]) this.tip(tips, p[k + 2], p[k + 3], (view.way[e] & 3) === BACK);
      } else {
        path.lineTo(p[k + 2], p[k + 3]);
      }
    });
    c.strokeStyle = colours["ink-3"];
    c.fillStyle = colours["ink-3"];
    c.globalAlpha = this.marked ? 0.25 : 0.75;
    c.lineWidth = Math.max(1, 0.7 / this.scale);
    c.stroke(plain);
    c.setLineDash([4, 3]);
    c.stroke(dashed);
    c.setLineDash([]);
    c.fill(tips);
    c.globalAlpha = 1;
  }

  tip(path, x, y, up) {
    const d = up ? 6 : -6;
    path.moveTo(x, y);
    path.lineTo(x - 3, y + d);
    path.lineTo(x + 3, y + d);
    path.closePath();
  }

  shortened(text, width) {
    const most = Math.max(3, Math.floor(width / 6.9));
    return text.length > most ? `${text.slice(0, most - 1)}…` : text;
  }

  drawBoxes(c, window, colours) {
    const { view, scale } = this;
    const list = [];
    view.eachBox(window, i => list.push(i));
    const corners = scale > 0.3, letters = scale > 0.4, tint = tintOf(40); // small boxes are as pale as the paper
    c.strokeStyle = colours["ink-3"];
    c.lineWidth = Math.max(0.8, 0.5 / scale);
    c.textAlign = "center";
    for (const i of list) {
      const [x, y, w, hh] = [view.x[i], view.y[i], view.w[i], view.h[i]];
      c.globalAlpha = this.marked && !this.marked.has(i) ? 0.25 : 1;
      c.fillStyle = this.fill(i);
      if (corners) {
        c.beginPath();
        c.roundRect(x, y, w, hh, view.kind[i] === CLOSED ? 8 : 5);
        c.fill();
        c.stroke();
      } else {
        c.fillRect(x, y, w, hh);
        if (scale > 0.12) {
          c.strokeRect(x, y, w, hh);
        } else {
          c.fillStyle = tint;
          c.fillRect(x, y, w, hh);
        }
      }
      if (!letters) continue;
      const note = view.note(i);
      c.fillStyle = colours.ink;
      c.font = view.kind[i] === CLOSED ? "600 12px sans-serif" : "12px sans-serif";
      c.fillText(this.shortened(view.label(i), w - 8), x + w / 2, y + hh / 2 + (note ? -2 : 4));
      if (!note || scale < 0.55) continue;
      c.fillStyle = colours["ink-2"];
      c.font = "10px sans-serif";
      c.fillText(this.shortened(note, (w - 8) * 1.2), x + w / 2, y + hh / 2 + 12);
    }
    c.globalAlpha = 1;
  }

  drawSelected(c, colours) {
    const { view, selected } = this;
    if (selected < 0) return;
    c.strokeStyle = colours.accent;
    c.lineWidth = 1.6 / this.scale;
    const p = view.points;
    c.beginPath();
    for (const e of this.edgesOfSelected.slice(0, 2000))
      for (let k = view.start[e]; k + 3 < view.start[e + 1]; k += 2) {
        const middle = (p[k + 1] + p[k + 3]) / 2;
        c.moveTo(p[k], p[k + 1]);
        if ((view.way[e] & 3) === DISTANT) c.lineTo(p[k + 2], p[k + 3]);
        else c.bezierCurveTo(p[k], middle, p[k + 2], middle, p[k + 2], p[k + 3]);
      }
    c.stroke();
    c.lineWidth = 2.5 / this.scale;
    c.strokeRect(view.x[selected] - 2, view.y[selected] - 2, view.w[selected] + 4, view.h[selected] + 4);
  }

  drawMap(colours) {
    const { view, map, overview } = this;
    const scale = Math.min(180 / view.width, 220 / view.height), width = Math.max(12, Math.round(view.width * scale)), height = Math.max(12, Math.round(view.height * scale));
    this.mapScale = scale;
    const c = map.getContext("2d");
    if (map.width !== width || map.height !== height) Object.assign(map, { width, height });
    c.fillStyle = colours.panel;
    c.fillRect(0, 0, width, height);
    c.drawImage(overview.picture, 0, 0, overview.picture.width / overview.scale * scale, overview.picture.height / overview.scale * scale);
    const [left, top, right, bottom] = this.window();
    c.strokeStyle = colours.accent;
    c.lineWidth = 1.5;
    c.strokeRect(left * scale, top * scale, Math.max(3, (right - left) * scale), Math.max(3, (bottom - top) * scale));
  }
}
