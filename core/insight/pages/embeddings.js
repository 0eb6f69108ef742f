// Points of many dimensions in the directions in which they differ most (principal components), coloured by their labels.
import { empty, failure, fill, format, h, plural, segments, slider, theme } from "./dom.js";
import { cached, get, number } from "./api.js";
import { hideTip, showTip } from "./chart.js";
import { colourOf, fieldText } from "./colours.js";
import { Orbit } from "./orbit.js";
import { components } from "./pca.js";
import { tagsOf } from "./tags.js";

const MOST_TENSORS = 30; // tags that are asked for their shapes

// What the server has reduced, and tensors of two axes, which are reduced here: a row is a point.
async function sources(view) {
  const found = [];
  await Promise.all(view.chosen.filter(run => run.kinds?.embeddings).map(async run => {
    for (const entry of await get(`runs/${run.id}/embeddings`).catch(() => []))
      found.push({ ...entry, run, name: entry.name ?? entry.tag, read: () => cached(`runs/${run.id}/embeddings/${entry.tag}`) });
  }));
  const texts = new Map((await tagsOf(view, "texts")).map(entry => [entry.name, entry]));
  await Promise.all((await tagsOf(view, "tensors")).slice(0, MOST_TENSORS).flatMap(({ name, runs }) => runs.map(async ({ run, tag }) => {
    const record = (await cached(`runs/${run.id}/tensors/${tag.id}`).catch(() => [])).at(-1);
    if (record?.shape.length !== 2 || record.shape[0] < 3) return;
    const labels = texts.get(`${name}/labels`)?.runs.find(entry => entry.run.id === run.id);
    found.push({ run, tag: tag.id, name, count: record.shape[0], dimension: record.shape[1], read: async () => {
      const [{ values }, list] = await Promise.all([cached(`runs/${run.id}/tensors/${tag.id}/${record.index}?dims=:,:`), labels ? cached(`runs/${run.id}/texts/${labels.tag.id}`) : []]);
      const lines = list.at(-1)?.text.split("\n") ?? [];
      return { ...components(values.map(row => row.map(number))), labels: lines.length >= values.length ? lines.slice(0, values.length) : [] };
    } });
  })));
  return found.sort((a, b) => a.name.localeCompare(b.name, "en", { numeric: true }) || a.run.name.localeCompare(b.run.name));
}

export default async function show(view) {
  const { state } = view, all = await sources(view);
  if (!all.length) {
    fill(view.main, empty("No embeddings in the ticked runs", "A tensor of two axes is shown here, a row as a point; a text of the same name with /labels, a line for each row, names the points:",
      'record:add_value("tensor", "words", vectors)\nrecord:add_value("text", "words/labels", table.concat(names, "\\n"))\nrecord:record(step)'));
    return {};
  }
  let points = [], labels = [], explained = [], colours = [], places = [], found = null, picked = null, radius = Number(state.size ?? 3), flat = state.flat === "1";
  const key = e => `${e.run.id}:${e.tag}`;
  const facts = h("span.quiet"), side = h("div");
  const orbit = new Orbit({ title: "embedding", draw, hover, turn: Number(state.turn ?? -0.7), tilt: Number(state.tilt ?? 0.4), changed: o => view.set({ turn: o.turn.toFixed(2), tilt: o.tilt.toFixed(2) }) });
  orbit.element.style.height = "calc(100vh - 190px)";
  orbit.element.addEventListener("click", () => { if (picked !== orbit.near) { picked = orbit.near ?? null; describe(); orbit.later(); } });
  const search = h("input", { type: "search", placeholder: "Find labels", value: state.find ?? "", ariaLabel: "find labels", oninput: () => { view.set({ find: search.value }); find(); } });

  async function load(entry) {
    view.set({ e: key(entry) });
    try {
      const answer = await entry.read();
      points = answer.points.map(p => p.map(number));
      labels = answer.labels ?? [];
      explained = (answer.explained ?? []).map(number);
    } catch (error) {
      fill(view.main, failure(error));
      return;
    }
    const most = points.flat().reduce((m, v) => Number.isFinite(v) ? Math.max(m, Math.abs(v)) : m, 0) || 1;
    for (const p of points) for (let i = 0; i < 3; i++) p[i] = (p[i] ?? 0) / most;
    picked = null;
    facts.textContent = `${plural(points.length, "point")} · ${explained.map(v => `${(100 * v).toFixed(1)} %`).join(" + ")} of the variance`;
    paint();
    find();
    describe();
  }

  function paint() {
    const names = [...new Set(labels)];
    const numeric = names.length > 12 && names.every(name => name !== "" && Number.isFinite(Number(name)));
    const values = numeric ? names.map(Number) : [], low = Math.min(...values), span = Math.max(...values) - low || 1;
    const place = new Map(names.map((name, i) => [name, i]));
    colours = points.map((_, i) => labels.length === 0 ? colourOf(0) : numeric ? fieldText((Number(labels[i]) - low) / span) : colourOf(place.get(labels[i])));
  }

  function find() {
    const text = search.value.toLowerCase();
    found = text ? new Set(labels.flatMap((label, i) => String(label).toLowerCase().includes(text) ? [i] : [])) : null;
    orbit.later();
  }

  function draw(p, project) {
    const line = theme();
    p.strokeStyle = line.line;
    p.fillStyle = line["ink-2"];
    p.font = "11px system-ui, sans-serif";
    for (const [i, axis] of [[1, 0, 0], [0, 1, 0], [0, 0, 1]].slice(0, flat ? 2 : 3).entries()) {
      const [x0, y0] = project(axis.map(v => -v)), [x1, y1] = project(axis);
      p.beginPath(); p.moveTo(x0, y0); p.lineTo(x1, y1); p.stroke();
      p.fillText(`PC ${i + 1}`, x1 + 4, y1);
    }
    places = points.map((point, i) => [...project(flat ? [point[0], point[1], 0] : point), i]).sort((a, b) => a[2] - b[2]);
    for (const [x, y, depth, i] of places) {
      p.globalAlpha = found && !found.has(i) ? 0.08 : flat ? 0.85 : Math.min(1, Math.max(0.35, 0.75 + depth * 0.3));
      p.fillStyle = colours[i];
      p.beginPath();
      p.arc(x, y, i === picked ? radius + 3 : radius, 0, 2 * Math.PI);
      p.fill();
    }
    p.globalAlpha = 1;
    if (found && found.size <= 40) {
      p.fillStyle = line.ink;
      for (const [x, y, , i] of places) if (found.has(i)) p.fillText(String(labels[i]), x + radius + 2, y + 3);
    }
  }

  function hover(event, x, y) {
    let best = null, distance = 12;
    for (const [px, py, , i] of places) {
      const d = Math.hypot(px - x, py - y);
      if (d < distance && !(found && !found.has(i))) [best, distance] = [i, d];
    }
    orbit.near = best;
    if (best === null) hideTip(); else showTip(event, h("div", labels[best] ?? `point ${best}`), h("div.quiet", points[best].map(v => format(Number(v.toPrecision(3)))).join(", ")));
  }

  function describe() {
    if (picked === null) return fill(side, h("p.quiet", "Drag turns, Ctrl wheel zooms. A click on a point lists its neighbours."));
    const distance = i => Math.hypot(...points[i].map((v, k) => v - points[picked][k]));
    const near = points.map((_, i) => i).filter(i => i !== picked).sort((a, b) => distance(a) - distance(b)).slice(0, 15);
    fill(side, h("h3", labels[picked] ?? `point ${picked}`), h("p.quiet", "nearest in this picture"),
      h("table.dense", h("tbody", near.map(i => h("tr", h("td", h("span.swatch", { style: { background: colours[i] } }), " ", labels[i] ?? `point ${i}`), h("td.number.quiet", format(Number(distance(i).toPrecision(3)))))))));
  }

  const chooser = h("select", { ariaLabel: "embedding", onchange: () => load(all[chooser.selectedIndex]) }, all.map(e => h("option", { selected: key(e) === state.e }, `${e.name} · ${e.run.name} · ${e.count} × ${e.dimension}`)));
  const shape = value => {
    flat = value === "2";
    [orbit.turn, orbit.tilt] = flat ? [0, -Math.PI / 2] : [-0.7, 0.4];
    view.set({ flat: flat ? "1" : null, turn: orbit.turn.toFixed(2), tilt: orbit.tilt.toFixed(2) });
    orbit.later();
  };
  fill(view.main, h("div.tools", chooser, segments([["2", "Plane"], ["3", "Space"]], flat ? "2" : "3", shape), search,
    slider("Size", 1, 8, 0.5, radius, value => { radius = value; view.set({ size: value }); orbit.later(); }), facts),
  h("div.row", { style: { "align-items": "start", "flex-wrap": "nowrap" } }, h("div.panel.grow", orbit.element), h("div.panel", { style: { width: "230px", flex: "none", "margin-top": 0 } }, side)));
  if (all.length) await load(all[Math.max(0, chooser.selectedIndex)]);
  view.main.addEventListener("theme", () => { paint(); orbit.later(); });
  return { keys: { f: ["find labels", () => search.focus()] } };
}
