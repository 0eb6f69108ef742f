// The loss in the plane of the two directions in which the weights moved most: as lines of equal loss or as a relief, with the way
// that the training went.
import { checkbox, download, failure, fill, format, h, menu, segments, slider, theme } from "./dom.js";
import { cached, number, numbers } from "./api.js";
import { Chart } from "./chart.js";
import { fieldText } from "./colours.js";
import { Orbit } from "./orbit.js";
import { runTitle } from "./records.js";
import { TagPage } from "./tags.js";

function prepare(answer) {
  const x = numbers(answer.x), y = numbers(answer.y);
  const flat = !Array.isArray(answer.z[0]);
  const z = flat ? Array.from(y, (_, j) => numbers(answer.z.slice(j * x.length, (j + 1) * x.length))) : answer.z.map(row => numbers(row));
  const values = z.flatMap(row => [...row]).filter(Number.isFinite).sort((a, b) => a - b);
  const path = answer.path ? { x: numbers(answer.path.x), y: numbers(answer.path.y), z: numbers(answer.path.z), intervals: answer.path.intervals ?? [] } : null;
  const end = answer.convergence?.map(number);
  return { ...answer, x, y, z, path: path?.x.length ? path : null, low: values[0], high: values.at(-1), end: end?.some(v => v !== 0) ? end : null };
}

// How high a loss stands in the colours: by rank among all, or by the logarithm above the least, so that the valley shows.
function ranker({ low, high }, log) {
  if (!log) return v => (v - low) / (high - low || 1);
  const span = Math.log1p((high - low) / (high - low || 1) * 50);
  return v => Math.log1p((v - low) / (high - low || 1) * 50) / span;
}

// Lines of equal height (marching squares): [x0, y0, x1, y1] pieces.
function contour({ x, y, z }, level) {
  const pieces = [];
  for (let j = 0; j + 1 < y.length; j++) {
    for (let i = 0; i + 1 < x.length; i++) {
      const corners = [[x[i], y[j], z[j][i]], [x[i + 1], y[j], z[j][i + 1]], [x[i + 1], y[j + 1], z[j + 1][i + 1]], [x[i], y[j + 1], z[j + 1][i]]];
      const cuts = [];
      for (let k = 0; k < 4; k++) {
        const a = corners[k], b = corners[(k + 1) % 4];
        if ((a[2] < level) === (b[2] < level) || !Number.isFinite(a[2] + b[2])) continue;
        const f = (level - a[2]) / (b[2] - a[2]);
        cuts.push([a[0] + (b[0] - a[0]) * f, a[1] + (b[1] - a[1]) * f]);
      }
      for (let k = 0; k + 1 < cuts.length; k += 2) pieces.push([...cuts[k], ...cuts[k + 1]]);
    }
  }
  return pieces;
}

class LandscapeCard {
  constructor(page, entry) {
    Object.assign(this, { page, entry });
    this.body = h("div.columns");
    this.element = h("article.card.wide", { ariaLabel: entry.name }, h("div.head", h("h3", { title: entry.name }, entry.name), h("button.plain", { title: "save", onclick: () => this.menu() }, "⋯")), this.body);
  }

  async load() {
    try {
      this.lands = await Promise.all(this.entry.runs.map(async ({ run, tag }) => ({ run, land: prepare(await cached(`runs/${run.id}/landscapes/${tag.id}`)) })));
      this.draw();
    } catch (error) {
      fill(this.body, failure(error));
    }
  }

  menu() {
    menu(this.element, (this.charts ?? []).flatMap(({ run, chart }) => chart instanceof Chart ? [
      [`PNG of ${run.name}`, async () => download(`${this.entry.name}-${run.name}.png`, await chart.png(`${this.entry.name} · ${run.name}`, 720, 640))],
      [`SVG of ${run.name}`, () => download(`${this.entry.name}-${run.name}.svg`, chart.svg(`${this.entry.name} · ${run.name}`, 720, 640), "image/svg+xml")]] : [["Show the lines of equal loss to save them", () => {}]]));
  }

  draw() {
    if (!this.lands) return;
    this.charts = this.lands.map(({ run, land }) => ({ run, land, chart: this.page.mode === "relief" ? this.relief(land) : this.plane(land) }));
    fill(this.body, this.charts.map(({ run, land, chart }) => {
      chart.element.style.height = "430px";
      return h("div", { style: { "max-width": "760px" } }, runTitle(this.page.view, run, ` loss ${format(Number(land.low.toPrecision(4)))} … ${format(Number(land.high.toPrecision(4)))}${land.decomposition ? ` · ${land.decomposition}` : ""}${land.unit ? ` · each ${land.unit}` : ""}`), chart.element);
    }));
  }

  redraw() { for (const { chart } of this.charts ?? []) chart.later(); }

  // How much of the way is shown.
  shown(path) { return Math.max(1, Math.ceil(this.page.part * path.x.length)); }

  plane(land) {
    const { page } = this, { x, y, z, path, end } = land;
    const rank = ranker(land, page.log), lines = Array.from({ length: 12 }, (_, k) => (k + 0.5) / 12).map(t => {
      let a = land.low, b = land.high; // the loss of this rank
      for (let i = 0; i < 40; i++) { const m = (a + b) / 2; if (rank(m) < t) a = m; else b = m; }
      return [t, contour(land, a)];
    });
    const xs = path ? [...path.x] : [], ys = path ? [...path.y] : [];
    const layer = { extent: [Math.min(x[0], ...xs), Math.max(x.at(-1), ...xs), Math.min(y[0], ...ys), Math.max(y.at(-1), ...ys)], draw: (p, sx, sy) => {
      for (let j = 0; j < y.length; j++) {
        for (let i = 0; i < x.length; i++) {
          const near = (list, k, d) => k + d < 0 || k + d >= list.length ? list[k] : (list[k] + list[k + d]) / 2;
          const [x0, x1, y0, y1] = [sx.pixel(near(x, i, -1)), sx.pixel(near(x, i, 1)), sy.pixel(near(y, j, 1)), sy.pixel(near(y, j, -1))];
          p.fillStyle = fieldText(rank(z[j][i]));
          p.fillRect(x0 - 0.3, y0 - 0.3, x1 - x0 + 0.6, y1 - y0 + 0.6);
        }
      }
      p.lineWidth = 0.8;
      p.strokeStyle = "#fff";
      p.globalAlpha = 0.55;
      p.beginPath();
      for (const [, pieces] of lines) for (const [x0, y0, x1, y1] of pieces) { p.moveTo(sx.pixel(x0), sy.pixel(y0)); p.lineTo(sx.pixel(x1), sy.pixel(y1)); }
      p.stroke();
      p.globalAlpha = 1;
      if (!path) return;
      const most = this.shown(path);
      for (const [width, stroke] of [[4, "#fff"], [2, "#d1241f"]]) {
        p.lineWidth = width;
        p.strokeStyle = stroke;
        p.beginPath();
        for (let i = 0; i < most; i++) i ? p.lineTo(sx.pixel(path.x[i]), sy.pixel(path.y[i])) : p.moveTo(sx.pixel(path.x[i]), sy.pixel(path.y[i]));
        p.stroke();
      }
      for (let i = 0; i < most; i++) {
        p.fillStyle = i === most - 1 ? "#fff" : "#d1241f";
        p.beginPath();
        p.arc(sx.pixel(path.x[i]), sy.pixel(path.y[i]), i === most - 1 ? 5 : 3, 0, 2 * Math.PI);
        p.fill();
      }
      if (end?.length >= 2 && most === path.x.length) {
        p.strokeStyle = "#fff";
        p.lineWidth = 2;
        p.beginPath();
        p.arc(sx.pixel(end[0]), sy.pixel(end[1]), 8, 0, 2 * Math.PI);
        p.stroke();
      }
    } };
    const chart = new Chart({ title: this.entry.name, layers: [layer], tight: true, noGrid: true, xLabel: "first direction", yLabel: "second direction", tip: (_, { sx, sy }, px, py) => {
      const nearest = (list, v) => list.reduce((best, w, i) => Math.abs(w - v) < Math.abs(list[best] - v) ? i : best, 0);
      const i = nearest(x, sx.value(px)), j = nearest(y, sy.value(py));
      const step = path ? [...path.x].findIndex((v, k) => k < this.shown(path) && Math.hypot(sx.pixel(v) - px, sy.pixel(path.y[k]) - py) < 8) : -1;
      return step >= 0 ? h("div", `${land.unit ?? "point"} ${path.intervals[step] ?? step} · loss ${format(path.z[step])}`) : h("div", `loss ${format(z[j][i])} at ${format(x[i])}, ${format(y[j])}`);
    } });
    return chart;
  }

  relief(land) {
    const { page } = this, { x, y, z, path } = land, rank = ranker(land, page.log);
    const unit = (list, v) => 2 * (v - list[0]) / (list.at(-1) - list[0]) - 1;
    const height = v => rank(Math.min(Math.max(v, land.low), land.high)) * 1.1 - 0.55;
    const draw = (p, project) => {
      const colours = theme(), faces = [];
      for (let j = 0; j + 1 < y.length; j++) {
        for (let i = 0; i + 1 < x.length; i++) {
          const corners = [[i, j], [i + 1, j], [i + 1, j + 1], [i, j + 1]].map(([a, b]) => project([unit(x, x[a]), unit(y, y[b]), height(z[b][a])]));
          const mean = (z[j][i] + z[j][i + 1] + z[j + 1][i] + z[j + 1][i + 1]) / 4;
          faces.push([corners.reduce((sum, c) => sum + c[2], 0) / 4, corners, fieldText(rank(mean))]);
        }
      }
      faces.sort((a, b) => a[0] - b[0]);
      p.lineWidth = 0.6;
      for (const [, corners, colour] of faces) {
        p.fillStyle = p.strokeStyle = colour;
        p.beginPath();
        corners.forEach(([px, py], k) => k ? p.lineTo(px, py) : p.moveTo(px, py));
        p.closePath();
        p.fill();
        p.stroke();
      }
      if (!path) return;
      p.strokeStyle = colours.bad;
      p.lineWidth = 2.5;
      p.beginPath();
      for (let i = 0; i < this.shown(path); i++) {
        const [px, py] = project([unit(x, path.x[i]), unit(y, path.y[i]), height(path.z[i]) + 0.02]);
        if (i) p.lineTo(px, py); else p.moveTo(px, py);
      }
      p.stroke();
    };
    return new Orbit({ title: this.entry.name, draw, zoom: 0.85, turn: Number(page.view.state.turn ?? -0.7), tilt: Number(page.view.state.tilt ?? 0.7), changed: o => page.view.set({ turn: o.turn.toFixed(2), tilt: o.tilt.toFixed(2) }) });
  }
}

export default async function show(view) {
  const { state } = view, page = { view, mode: state.mode ?? "plane", log: state.log !== "0", part: Number(state.part ?? 1) };
  let timer = null;
  const part = slider("Way", 0, 1, 0.01, page.part, value => { page.part = value; view.set({ part: value === 1 ? null : value }); tags.each(card => card.redraw()); }, v => `${Math.round(100 * v)} %`);
  const range = part.querySelector("input");
  const play = h("button", { title: "the way of the training, step by step", onclick: () => {
    clearInterval(timer);
    range.value = 0;
    timer = setInterval(() => {
      range.value = Math.min(1, Number(range.value) + 0.02);
      range.dispatchEvent(new Event("input"));
      if (Number(range.value) >= 1) clearInterval(timer);
    }, 60);
  } }, "Play");
  const tags = new TagPage(view, {
    kind: "landscapes", title: "No loss landscape yet", wide: true, text: "It is computed from a few checkpoints of a training, after it or while it runs:",
    code: 'local plane = ms.insight.landscape(net, loss, data, checkpoints)\nrecord:add_value("landscape", "loss", plane)\nrecord:record(step)',
    tools: [segments([["plane", "Lines"], ["relief", "Relief"]], page.mode, value => { page.mode = value; view.set({ mode: value === "plane" ? null : value }); tags.each(card => card.draw()); }),
      checkbox("stretch the valley", page.log, value => { page.log = value; view.set({ log: value ? null : "0" }); tags.each(card => card.draw()); }, "colours and heights by the logarithm of what lies above the least loss"), part, play],
    card: entry => new LandscapeCard(page, entry),
  });
  await tags.refresh();
  view.main.addEventListener("theme", () => tags.each(card => card.draw()));
  return tags.handle({ close: () => clearInterval(timer) });
}
