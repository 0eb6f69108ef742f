// Where the time of a training went: operators, line of time, memory, and how long the steps waited for their data.
import { bytes, checkbox, download, duration, empty, failure, fill, format, h, isDark, plural, theme } from "./dom.js";
import { cached } from "./api.js";
import { Chart, legend, lowerBound } from "./chart.js";
import { colourOf } from "./colours.js";
import { csvText } from "./export.js";
import { nothing } from "./tags.js";
import { isWait, operators, readTrace, stepsOf } from "./trace.js";

const ROW = 17, MOST_LANES = 60, MOST_ROWS = 200;

function hash(text) {
  let value = 2166136261; // FNV-1a
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 16777619);
  return (value ^ (value >>> 15)) >>> 0;
}

// Boxes on rows of time; of boxes narrower than a pixel one is drawn for all of its pixel.
function timeline(trace, view) {
  const rows = trace.rows.slice(0, MOST_LANES);
  for (const row of rows) row.starts = Float64Array.from(row.events, e => e.start);
  const colour = new Map();
  const layer = { extent: [0, trace.end || 1e-6, -rows.length, 0], draw: (p, sx, sy, colours) => {
    const height = Math.abs(sy.pixel(1) - sy.pixel(0)) - 2, dark = isDark();
    p.font = "11px system-ui, sans-serif";
    p.textBaseline = "middle";
    p.textAlign = "left";
    for (const [r, row] of rows.entries()) {
      const y = sy.pixel(-r) + 1;
      let last = -1;
      // A long box may begin before what is in view; boxes of one row do not overlap.
      for (let i = Math.max(0, lowerBound(row.starts, sx.low) - 1); i < row.events.length && row.starts[i] <= sx.high; i++) {
        const e = row.events[i], x0 = Math.max(sx.pixel(e.start), sx.from - 2), x1 = Math.min(sx.pixel(e.start + e.seconds), sx.to + 2);
        if (x1 < sx.from || x1 - last < 0.6) continue;
        last = x1;
        if (!colour.has(e.name)) colour.set(e.name, hash(e.name));
        p.fillStyle = isWait(e) ? colours.warn : e.cat === "step" ? colours["ink-3"] : colourOf(colour.get(e.name));
        p.globalAlpha = 0.85;
        p.fillRect(x0, y, Math.max(x1 - x0, 0.7), height);
        p.globalAlpha = 1;
        if (x1 - x0 < 34) continue;
        p.fillStyle = dark ? "#10131a" : "#fff";
        const most = Math.floor((x1 - x0 - 6) / 6);
        p.fillText(e.name.length > most ? `${e.name.slice(0, most - 1)}…` : e.name, x0 + 3, y + height / 2);
      }
    }
  } };
  const text = view.state.span?.split(",").map(Number);
  const chart = new Chart({ title: "line of time", kind: "duration", layers: [layer], tight: true, flatZoom: true, window: text?.length === 2 ? [...text, null, null] : null,
    yTicks: rows.map((row, r) => [-r - 0.5, row.name.length > 22 ? `${row.name.slice(0, 21)}…` : row.name]),
    onWindow: w => view.set({ span: w ? `${w[0].toPrecision(8)},${w[1].toPrecision(8)}` : null }),
    tip: (_, { sx, sy }, x, y) => {
      const row = rows[Math.floor(-sy.value(y))], at = sx.value(x), slack = Math.abs(sx.value(x + 1.5) - at);
      if (!row) return null;
      const i = lowerBound(row.starts, at + slack) - 1, e = row.events[i];
      if (!e || e.start + e.seconds < at - slack) return null;
      return h("div", h("strong", e.name), h("div", `${duration(e.seconds)} at ${duration(e.start)}`, e.own < e.seconds * 0.999 ? `, ${duration(Math.max(0, e.own))} of it own` : ""),
        Object.entries(e.args).slice(0, 8).map(([key, value]) => h("div.quiet", `${key} ${key === "bytes" ? bytes(Number(value)) : format(value)}`)));
    } });
  chart.element.style.height = `${Math.max(60, rows.length * ROW + 26)}px`;
  return [chart.element, trace.rows.length > rows.length ? h("p.quiet", `${trace.rows.length - rows.length} more rows are not drawn.`) : null];
}

function table(trace, view) {
  let by = view.state.sort ?? "seconds", byLine = view.state.lines !== "0", find = view.state.find ?? "";
  const host = h("div.scroll", { style: { "max-height": "460px" } });
  const columns = [["name", "Operator"], ["count", "Calls"], ["seconds", "Own time"], ["share", "Share"], ["mean", "Per call"], ["traffic", "Memory/s"], ["rate", "FLOP/s"], ["line", "Line"]];
  const rows = () => {
    const list = operators(trace.events, byLine), total = list.reduce((sum, row) => sum + row.seconds, 0) || 1;
    for (const row of list) Object.assign(row, { share: row.seconds / total, mean: row.seconds / row.count, traffic: row.seconds > 0 ? row.bytes / row.seconds : 0, rate: row.seconds > 0 ? row.flops / row.seconds : 0 });
    return list.filter(row => `${row.name} ${row.line}`.toLowerCase().includes(find.toLowerCase())).sort((a, b) => typeof a[by] === "string" ? a[by].localeCompare(b[by]) : b[by] - a[by]);
  };
  const draw = () => {
    const list = rows(), most = list.reduce((m, row) => Math.max(m, row.share), 0) || 1;
    fill(host, h("table.dense", h("thead", h("tr", columns.map(([key, title]) => h(key === "name" || key === "line" ? "th.sorts" : "th.sorts.number", { onclick: () => { by = key; view.set({ sort: key }); draw(); } }, title, by === key ? " ↓" : "")))),
      h("tbody", list.slice(0, MOST_ROWS).map(row => h("tr", h("td", { title: row.name }, h("span.clip", { style: { "max-width": "300px", display: "inline-block", "vertical-align": "bottom" } }, row.name)), h("td.number", format(row.count)), h("td.number", duration(row.seconds)),
        h("td.number", h("span.row", { style: { "flex-wrap": "nowrap" } }, h("div.bar.grow", h("i", { style: { width: `${100 * row.share / most}%` } })), `${(100 * row.share).toFixed(1)} %`)), h("td.number", duration(row.mean)),
        h("td.number", row.traffic ? `${bytes(row.traffic)}/s` : ""), h("td.number", row.rate ? `${format(Number((row.rate / 1e9).toPrecision(3)))} G` : ""), h("td.mono.quiet", row.line))))),
    list.length > MOST_ROWS ? h("p.quiet", `${list.length - MOST_ROWS} more`) : null);
  };
  draw();
  const save = () => download("operators.csv", csvText(["operator", "line", "calls", "seconds", "share", "bytes", "flops"], rows().map(r => [r.name, r.line, r.count, r.seconds, r.share, r.bytes, r.flops])), "text/csv");
  return h("div.panel", h("div.row", { style: { "margin-bottom": "6px" } }, h("h2.grow", "Operators"), h("input", { type: "search", value: find, placeholder: "Find", ariaLabel: "find operators", oninput: e => { find = e.target.value; view.set({ find }); draw(); } }),
    checkbox("each line", byLine, value => { byLine = value; view.set({ lines: value ? null : "0" }); draw(); }, "an operator that several lines call has a row for each"), h("button", { onclick: save }, "CSV")), host);
}

function steps(trace) {
  const list = stepsOf(trace.events);
  if (list.length < 2) return null;
  const { accent, warn } = theme(), x = Float64Array.from(list, s => s.index);
  const chart = new Chart({ title: "steps", xLabel: "step", yKind: "duration", message: "" });
  chart.set([{ name: "step", colour: accent, x, y: Float64Array.from(list, s => s.seconds) }, { name: "waits for data", colour: warn, x, y: Float64Array.from(list, s => s.wait) }]);
  const wait = list.reduce((sum, s) => sum + s.wait, 0) / list.reduce((sum, s) => sum + s.seconds, 0);
  return h("div.panel", h("h2", "Steps"), legend(chart.series), chart.element, h("p", wait > 0.2 ? h("span.warn", `${Math.round(100 * wait)} % of the time of the steps is waiting for data: more workers in the pipeline would help.`) : h("span.quiet", `${(100 * wait).toFixed(1)} % of the time of the steps is waiting for data.`)));
}

function memory(trace) {
  if (!trace.counters.size) return null;
  const chart = new Chart({ title: "memory", kind: "duration", yLabel: "MiB" });
  // A counter keeps its value up to the next point.
  chart.set([...trace.counters].slice(0, 8).map(([name, points], i) => {
    const x = new Float64Array(2 * points.length), y = new Float64Array(2 * points.length);
    points.forEach(([at, value], k) => { x[2 * k] = at; x[2 * k + 1] = points[k + 1]?.[0] ?? trace.end; y[2 * k] = y[2 * k + 1] = value / 2 ** 20; });
    return { name, colour: colourOf(i), x, y };
  }));
  const peak = Math.max(...[...trace.counters.values()].flat().map(([, value]) => value));
  return h("div.panel", h("h2", "Memory"), legend(chart.series), chart.element, h("p.quiet", `at most ${bytes(peak)}`));
}

export default async function show(view) {
  const runs = view.chosen.filter(run => run.kinds?.profiles);
  if (!runs.length) {
    fill(view.main, nothing(view, "profiles", "No profile yet", "A SummaryCollector leaves the profile of a step; others are saved into the folder of a run:", 'local profile = ms.profile(step, x, y)\nprofile:save("runs/first/trace.json")'));
    return {};
  }
  const answers = await Promise.all(runs.map(run => cached(`runs/${run.id}/profile`).catch(() => ({ traces: [] }))));
  const all = answers.flatMap((answer, i) => (answer.traces ?? []).map(trace => ({ ...trace, run: runs[i] })));
  if (!all.length) { fill(view.main, empty("No profile that can be read", "Chrome traces named *trace*.json, *profile*.json or *timeline*.json are shown here.")); return {}; }
  const key = t => `${t.run.id}:${t.id}`, host = h("div.stack"), facts = h("span.quiet");
  const chooser = h("select", { ariaLabel: "trace", onchange: () => { view.set({ trace: key(all[chooser.selectedIndex]), span: null }); load(); } }, all.map(t => h("option", { selected: key(t) === view.state.trace }, `${t.run.name} · ${t.name}`)));
  fill(view.main, h("div.tools", chooser, facts), host);
  let trace = null;

  function draw() {
    if (!trace) return;
    const busy = trace.events.filter(e => e.cat !== "step" && !isWait(e)).reduce((sum, e) => sum + Math.max(0, e.own), 0);
    facts.textContent = `${plural(trace.events.length, "event")} · ${duration(trace.end)} in all${busy ? ` · ${duration(busy)} in operators` : ""}`;
    if (!trace.events.length) return fill(host, empty("An empty trace", "It holds no event with a duration."));
    fill(host, h("div.panel", h("h2", "Line of time"), timeline(trace, view)), table(trace, view), h("div.columns", steps(trace), memory(trace)));
  }

  async function load() {
    const chosen = all[Math.max(0, chooser.selectedIndex)];
    try {
      trace = readTrace(await cached(`runs/${chosen.run.id}/profile/${chosen.id}`));
      draw();
    } catch (error) {
      fill(host, failure(error));
    }
  }
  await load();
  view.main.addEventListener("theme", draw);
  return {};
}
