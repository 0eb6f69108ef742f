// Hyper-parameters against results: parallel coordinates with a range to drag on every axis, scatter plots, and how much each
// parameter matters, by correlation and by a measure that also sees bends and categories.
import { checkbox, empty, fill, format, h, isDark, plural, select, theme } from "./dom.js";
import { get, number } from "./api.js";
import { Chart, hideTip, showTip } from "./chart.js";
import { fieldText } from "./colours.js";
import { readMap, writeMap } from "./scalars.js";
import { Scale, ticks } from "./scale.js";
import { smallIsGood } from "./runs.js";

const known = v => v !== undefined && v !== null && v !== "";

// One axis: of numbers, with a logarithm where they span decades, or of names.
class Axis {
  constructor(name, field, runs, wantLog) {
    Object.assign(this, { name, field });
    const values = runs.map(run => run[field]?.[name]).filter(known);
    this.numeric = values.length > 0 && values.every(v => typeof v === "number");
    this.names = [...new Set(values.map(String))].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
    const finite = this.numeric ? values.filter(Number.isFinite) : [];
    [this.low, this.high] = this.numeric ? [Math.min(...finite), Math.max(...finite)] : [0, this.names.length - 1];
    this.log = this.numeric && wantLog && this.low > 0 && this.high / this.low > 30;
    this.varies = this.names.length > 1;
  }
  value(run) {
    const v = run[this.field]?.[this.name];
    if (!known(v)) return NaN;
    return this.numeric ? v : this.names.indexOf(String(v));
  }
  scale(from, to) { return this.numeric ? new Scale(this.low, this.high, from, to, this.log) : new Scale(-0.3, Math.max(this.names.length - 0.7, 0.3), from, to); }
  ticks(scale, count) { return this.numeric ? ticks(scale, count) : this.names.slice(0, 40).map((name, i) => [i, name.length > 14 ? `${name.slice(0, 13)}…` : name]); }
}

// brushes: name -> [low, high] in the axis' own values.
class Parallel {
  constructor(view, brushes, changed) {
    Object.assign(this, { view, brushes, changed, axes: [], runs: [] });
    this.canvas = h("canvas");
    this.element = h("div.chart.tall", { role: "img", ariaLabel: "parallel coordinates" }, this.canvas);
    new ResizeObserver(() => this.resize()).observe(this.element);
    let start = null;
    const at = event => { const box = this.element.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
    this.element.addEventListener("pointerdown", event => {
      const [x, y] = at(event), axis = this.axes.find(a => Math.abs(a.x - x) < 24);
      if (!axis) return;
      start = { axis, y };
      this.element.setPointerCapture(event.pointerId);
    });
    this.element.addEventListener("pointermove", event => {
      const [x, y] = at(event);
      if (!start) return this.hover(event, x, y);
      const { axis } = start, [a, b] = [start.y, y].map(v => axis.s.value(Math.min(Math.max(v, this.top), this.bottom)));
      this.brushes.set(axis.name, [Math.min(a, b), Math.max(a, b)]);
      this.draw();
    });
    this.element.addEventListener("pointerup", event => {
      if (!start) return;
      if (Math.abs(at(event)[1] - start.y) < 4) this.brushes.delete(start.axis.name); // a click takes the range away
      start = null;
      this.draw();
      this.changed();
    });
    this.element.addEventListener("pointerleave", () => { hideTip(); this.near = null; this.draw(); });
  }

  set(axes, runs, target) {
    Object.assign(this, { axes, runs, target });
    this.draw();
  }

  resize() {
    const { width, height } = this.element.getBoundingClientRect(), ratio = devicePixelRatio || 1;
    if (!width) return;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    Object.assign(this, { width, height, ratio, top: 34, bottom: height - 12 });
    this.draw();
  }

  passes(run) {
    return this.axes.every(axis => {
      const range = this.brushes.get(axis.name);
      return !range || axis.value(run) >= range[0] && axis.value(run) <= range[1];
    });
  }

  draw() {
    if (!this.width || !this.axes.length) return;
    const p = this.canvas.getContext("2d"), colours = theme(), { axes, top, bottom } = this;
    p.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    p.clearRect(0, 0, this.width, this.height);
    const left = 56, right = this.width - 56;
    for (const [i, axis] of axes.entries()) {
      axis.x = axes.length > 1 ? left + (right - left) * i / (axes.length - 1) : (left + right) / 2;
      axis.s = axis.scale(bottom, top);
    }
    const target = axes.find(axis => axis.name === this.target), span = target ? target.high - target.low || 1 : 1;
    this.lines = this.runs.map(run => ({ run, on: this.passes(run), y: axes.map(axis => axis.s.pixel(axis.value(run))), t: target ? (target.value(run) - target.low) / span : 0.5 }));
    for (const on of [false, true]) {
      for (const line of this.lines) {
        if (line.on !== on) continue;
        p.strokeStyle = on ? target ? fieldText(isDark() ? 0.3 + 0.7 * line.t : 0.88 * line.t) : this.view.colour(line.run) : colours.line;
        p.globalAlpha = on ? 0.85 : 0.5;
        p.lineWidth = line.run === this.near ? 3.5 : on ? 1.6 : 1;
        p.beginPath();
        let down = false;
        for (const [i, y] of line.y.entries()) {
          if (!Number.isFinite(y)) { down = false; continue; }
          if (down) p.bezierCurveTo((axes[i - 1].x + axes[i].x) / 2, line.y[i - 1], (axes[i - 1].x + axes[i].x) / 2, y, axes[i].x, y);
          else p.moveTo(axes[i].x, y);
          down = true;
        }
        p.stroke();
      }
    }
    p.globalAlpha = 1;
    p.lineWidth = 1;
    p.textBaseline = "middle";
    const room = (right - left) / Math.max(axes.length - 1, 1);
    for (const axis of axes) {
      p.strokeStyle = colours["ink-3"];
      p.beginPath(); p.moveTo(axis.x, top); p.lineTo(axis.x, bottom); p.stroke();
      const range = this.brushes.get(axis.name);
      if (range) {
        const [a, b] = range.map(v => axis.s.pixel(v));
        p.fillStyle = colours.accent;
        p.globalAlpha = 0.3;
        p.fillRect(axis.x - 6, b, 12, a - b);
        p.globalAlpha = 1;
      }
      p.font = "600 11px system-ui, sans-serif";
      p.fillStyle = axis === target ? colours.accent : colours.ink;
      p.textAlign = "center";
      let name = axis.name;
      while (name.length > 3 && p.measureText(name).width > room - 6) name = `${name.slice(0, -2)}…`;
      p.fillText(name, axis.x, 14);
      p.font = "11px system-ui, sans-serif";
      p.textAlign = "left";
      for (const [value, text] of axis.ticks(axis.s, 6)) {
        const y = axis.s.pixel(value), width = p.measureText(text).width;
        p.fillStyle = colours.panel;
        p.globalAlpha = 0.75;
        p.fillRect(axis.x + 5, y - 7, width + 2, 14);
        p.globalAlpha = 1;
        p.fillStyle = colours["ink-2"];
        p.fillText(text, axis.x + 6, y);
      }
    }
  }

  hover(event, x, y) {
    const i = Math.max(0, this.axes.findLastIndex(axis => axis.x <= x)), next = Math.min(i + 1, this.axes.length - 1);
    if (!this.lines || !this.axes.length) return;
    const f = next > i ? (x - this.axes[i].x) / (this.axes[next].x - this.axes[i].x) : 0;
    const smooth = f * f * (3 - 2 * f);
    let best = null, distance = 7;
    for (const line of this.lines) {
      const d = Math.abs(line.y[i] + (line.y[next] - line.y[i]) * smooth - y);
      if (line.on && d < distance) [best, distance] = [line.run, d];
    }
    if (best !== this.near) { this.near = best; this.draw(); }
    if (!best) return hideTip();
    showTip(event, h("strong", best.name), h("table.pairs", h("tbody", this.axes.map(axis => h("tr", h("td", axis.name), h("td", format(best[axis.field]?.[axis.name])))))));
  }
}

export default async function show(view) {
  const { state } = view, brushes = new Map([...readMap(state.brush)].map(([name, text]) => [name, text.split(",").map(Number)]));
  const settings = { ticked: state.ticked === "1", log: state.log !== "0", target: state.target };
  const candidates = () => (settings.ticked ? view.chosen : view.runs).filter(run => Object.keys(run.hyper ?? {}).length);
  if (!candidates().length && !settings.ticked) {
    fill(view.main, empty("No hyper-parameters yet", "A SummaryCollector writes the lineage of a training by itself: optimizer, rate, batch size, what you add, and the metrics of an evaluation.",
      'ms.train.SummaryCollector("runs/first", { custom_lineage_data = { dropout = 0.1 } })'));
    return {};
  }
  const host = h("div.stack"), tools = h("div.tools"), picked = h("span.quiet");
  const parallel = new Parallel(view, brushes, () => {
    view.set({ brush: writeMap(new Map([...brushes].map(([name, range]) => [name, range.map(v => Number(v.toPrecision(6))).join(",")]))) });
    describe();
  });
  let turn = 0;
  // A training that goes on changes its curves all the time, and its parameters and results seldom.
  const facts = () => JSON.stringify(candidates().map(run => [run.id, run.hyper, run.metrics]));
  let drawn = "";

  function describe() {
    const inside = parallel.runs.filter(run => parallel.passes(run));
    picked.replaceChildren(`${inside.length} of ${plural(parallel.runs.length, "run")} ${brushes.size ? "in the ranges " : ""}`,
      brushes.size ? h("button", { onclick: () => view.choose(inside.map(run => run.id)) }, "Tick those") : "", " ", brushes.size ? h("button", { onclick: () => { brushes.clear(); view.set({ brush: null }); draw(); } }, "No ranges") : "");
  }

  async function draw() {
    const own = ++turn, runs = candidates();
    drawn = facts();
    const names = field => [...new Set(runs.flatMap(run => Object.keys(run[field] ?? {})))].sort();
    const metrics = names("metrics"), hyper = names("hyper").map(name => new Axis(name, "hyper", runs, settings.log)).filter(axis => axis.varies || runs.length === 1);
    const often = name => runs.filter(run => known(run.metrics?.[name])).length;
    const target = settings.target ?? [...metrics].sort((a, b) => often(b) - often(a))[0] ?? "loss"; // what most runs have
    const answer = await get(`importance?target=${encodeURIComponent(target)}`).catch(error => ({ error, targets: metrics, rows: [] }));
    if (own !== turn) return;
    const targets = [...new Set([target, ...metrics, ...answer.targets ?? []])].sort();
    fill(tools, h("label.field", "Result", select(targets, target, value => { settings.target = value; view.set({ target: value }); draw(); }, "result")),
      checkbox("log axes", settings.log, value => { settings.log = value; view.set({ log: value ? null : "0" }); draw(); }, "for parameters that span decades"),
      checkbox("ticked runs only", settings.ticked, value => { settings.ticked = value; view.set({ ticked: value ? "1" : null }); draw(); }), picked);
    const axes = [...hyper, ...metrics.map(name => new Axis(name, "metrics", runs, settings.log))];
    parallel.set(axes, runs, target);
    describe();
    fill(host, h("div.panel", parallel.element, h("p.quiet", "Drag along an axis for a range; a click on it takes the range away.")),
      h("div.columns", importance(answer, target), best(runs, target, hyper)), scatters(runs, hyper, target, answer.rows));
  }

  function importance({ rows, error }, target) {
    const list = [...rows].sort((a, b) => (number(b.association) || 0) - (number(a.association) || 0));
    const bar = (value, text) => h("td", h("div.bar", { title: text }, h("i", { style: { width: `${100 * Math.min(1, Math.abs(value) || 0)}%` } })));
    return h("div.panel", h("h2", `What moves ${target ?? "the result"}`), error ? h("p.quiet", error.message) : list.length ? [
      h("table.dense", h("thead", h("tr", h("th", "Parameter"), h("th", { colSpan: 2, title: "0: knows nothing of the result, 1: decides it; sees bends and categories" }, "Association"), h("th", { colSpan: 2, title: "Pearson's r: how near to a line; sees neither bends nor categories" }, "|r|"), h("th.number", "Runs"))),
        h("tbody", list.map(row => h("tr", h("td", row.name), bar(number(row.association), "association"), h("td.number", format(Number(number(row.association).toFixed(3)))),
          row.pearson === null || row.pearson === undefined ? [h("td.quiet", "names"), h("td")] : [bar(number(row.pearson), `r = ${row.pearson}`), h("td.number", format(Number(Math.abs(number(row.pearson)).toFixed(3))))], h("td.number.quiet", row.n))))),
      h("p.quiet", "From few runs both are guesses.")] : h("p.quiet", "At least three runs with this result are needed."));
  }

  function best(runs, target, hyper) {
    const down = smallIsGood(target ?? ""), value = run => run.metrics?.[target];
    const list = runs.filter(run => Number.isFinite(value(run))).sort((a, b) => (down ? 1 : -1) * (value(a) - value(b))).slice(0, 8);
    return h("div.panel", h("h2", `Best by ${target ?? "result"}`), list.length ? h("div.scroll", h("table.dense", h("thead", h("tr", h("th", "Run"), h("th.number", target), hyper.slice(0, 5).map(axis => h("th", axis.name)))),
      h("tbody", list.map(run => h("tr", h("td", { style: { "white-space": "nowrap" } }, view.swatch(run), " ", h("a.clip", { href: view.link("lineage", { run: run.id }), title: run.name, style: { "max-width": "170px", display: "inline-block", "vertical-align": "bottom" } }, run.name)), h("td.number", format(value(run))),
        hyper.slice(0, 5).map(axis => h("td", { style: { "white-space": "nowrap" } }, format(run.hyper?.[axis.name])))))))) : h("p.quiet", "No run has this result yet."));
  }

  function scatters(runs, hyper, target, rows) {
    const order = new Map(rows.map(row => [row.name, number(row.association)]));
    const list = [...hyper].sort((a, b) => (order.get(b.name) ?? 0) - (order.get(a.name) ?? 0)).slice(0, 24);
    const shown = runs.filter(run => Number.isFinite(run.metrics?.[target]));
    if (!shown.length) return null;
    return h("div.cards", list.map(axis => {
      const chart = new Chart({ title: `${target} by ${axis.name}`, logX: axis.log, xTicks: axis.numeric ? null : axis.ticks(axis.scale(0, 1), 5), window: axis.numeric ? null : [-0.4, axis.names.length - 0.6, null, null],
        tip: near => near.length ? h("div", h("strong", shown[near[0].index].name), h("div", `${axis.name} ${format(shown[near[0].index].hyper?.[axis.name])} · ${target} ${format(near[0].y)}`)) : null,
        onPick: near => { if (near.length) { view.choose([shown[near[0].index].id]); view.go("lineage"); } } });
      chart.set([{ name: axis.name, kind: "points", colour: theme().accent, colours: shown.map(run => view.colour(run)), x: Float64Array.from(shown, run => axis.value(run)), y: Float64Array.from(shown, run => run.metrics[target]), radius: 4 }]);
      chart.element.style.height = "180px";
      return h("article.card", h("div.head", h("h3", axis.name), h("span.quiet", target)), chart.element);
    }));
  }

  fill(view.main, tools, host);
  await draw();
  view.main.addEventListener("theme", draw);
  return { choose: () => { if (settings.ticked) draw(); }, update: () => { if (facts() !== drawn) return draw(); } };
}
