// Where a model comes from: data, what was done to it, parameters, training, checkpoint, results. Every box leads on: to the runs
// that share it, or to the page that shows it.
import { bytes, clock, duration, empty, failure, fill, format, h, s, select } from "./dom.js";
import { cached } from "./api.js";

const WIDTH = 160, GAP = 38;

function parse(text) {
  if (typeof text !== "string") return text;
  try { return JSON.parse(text); } catch { return text; }
}

// The layers of a graph without circles: a node stands right of all that it gets something from.
export function layers(nodes, edges) {
  const rank = new Map(nodes.map(node => [node.id, 0]));
  for (let round = 0, moved = true; moved && round < nodes.length; round++) {
    moved = false;
    for (const [from, to] of edges) if (rank.has(from) && rank.has(to) && rank.get(to) <= rank.get(from)) { rank.set(to, rank.get(from) + 1); moved = true; }
  }
  const list = [];
  for (const node of nodes) (list[rank.get(node.id)] ??= []).push(node);
  return list.filter(Boolean);
}

const cut = (text, most) => text.length > most ? `${text.slice(0, most - 1)}…` : text;

// boxes: { title, lines, page?, pick } in columns; edges between them as [column, row, column, row].
function diagram(columns, edges) {
  const heights = columns.map(column => column.map(box => 30 + 16 * box.lines.length));
  const tall = Math.max(...heights.map(list => list.reduce((a, b) => a + b + 16, -16)));
  const places = columns.map((column, c) => {
    const used = heights[c].reduce((a, b) => a + b + 16, -16);
    let y = 6 + (tall - used) / 2;
    return column.map((_, r) => { const place = { x: 4 + c * (WIDTH + GAP), y, h: heights[c][r] }; y += place.h + 16; return place; });
  });
  const width = columns.length * (WIDTH + GAP) - GAP + 8, svg = s("svg", { width, height: tall + 12, viewBox: `0 0 ${width} ${tall + 12}`, role: "group" });
  for (const [c0, r0, c1, r1, fillPart] of edges) {
    const a = places[c0][r0], b = places[c1][r1], y0 = a.y + a.h / 2, y1 = b.y + b.h / 2, x0 = a.x + WIDTH, x1 = b.x;
    svg.append(s("path.edge", { d: `M${x0} ${y0}C${(x0 + x1) / 2} ${y0} ${(x0 + x1) / 2} ${y1} ${x1 - 6} ${y1}` }), s("path.tip-of", { d: `M${x1} ${y1}l-7 -4v8z` }));
    if (fillPart === undefined) continue;
    const x = (x0 + x1) / 2 - 14, y = (y0 + y1) / 2 - 15;
    svg.append(s("rect.queue", { x, y, width: 28, height: 7, rx: 2 }), s("rect.queue-fill", { x, y, width: 28 * Math.min(1, Math.max(0, fillPart)), height: 7, rx: 2 }, s("title", `the queue is ${Math.round(100 * fillPart)} % full`)));
  }
  for (const [c, column] of columns.entries()) {
    for (const [r, box] of column.entries()) {
      const { x, y, h: height } = places[c][r];
      const group = s("g.box", { tabindex: 0, role: "button", "aria-label": box.title, transform: `translate(${x} ${y})`, onclick: () => box.pick(group), onkeydown: e => { if (e.key === "Enter") box.pick(group); } },
        s("rect", { width: WIDTH, height, rx: 7 }), s("text.name", { x: 10, y: 19 }, cut(box.title, 19)),
        box.lines.map((line, i) => s("text.faint", { x: 10, y: 37 + 16 * i }, cut(line, 21))), s("title", [box.title, ...box.lines].join("\n")));
      svg.append(group);
    }
  }
  return h("div.scroll", svg);
}

// A value of a parameter in few words: of operations of a map their names.
function brief(value) {
  if (Array.isArray(value)) return value.map(brief).join(", ");
  if (typeof value !== "object" || value === null) return format(value);
  const texts = value.operationParam?.mapStr ?? value.mapStr;
  return texts ? texts.tensor_op_name ?? texts.tensor_op ?? Object.values(texts).join(" ") : JSON.stringify(value);
}

const pairs = object => h("table.pairs.dense", h("tbody", Object.entries(object ?? {}).map(([key, value]) => h("tr", h("td", key), h("td", brief(value))))));

export default async function show(view) {
  const { state } = view, candidates = view.chosen.length ? view.chosen : view.runs;
  const run = candidates.find(r => r.id === state.run) ?? [...candidates].sort((a, b) => Object.keys(b.hyper ?? {}).length - Object.keys(a.hyper ?? {}).length)[0];
  const detail = h("div.panel");
  const chooser = select(candidates.map(r => [r.id, r.name]), run.id, id => { view.set({ run: id }); view.go("lineage", { run: id }); }, "run");
  fill(view.main, h("div.tools", h("label.field", "Run", chooser)));
  let lineage;
  try {
    lineage = await cached(`runs/${run.id}/lineage`);
  } catch (error) {
    view.main.append(failure(error));
    return {};
  }
  if (!Object.values(lineage).some(part => part && (typeof part !== "object" || Object.keys(part).length))) {
    view.main.append(empty("No lineage in this run", "A SummaryCollector writes it: the data set and its operations, the hyper-parameters, the checkpoint, and the metrics of an evaluation.", 'ms.train.SummaryCollector("runs/first")'));
    return {};
  }
  const model = parse(lineage.model?.path), checkpoint = model && typeof model === "object" ? model.ckpt : model;

  function runsBy(title, test) {
    const list = view.runs.filter(test);
    return list.length > 1 ? [h("h3", title), h("ul", list.slice(0, 40).map(r => h("li", h("a", { href: view.link("lineage", { run: r.id }) }, r.name), r.id === run.id ? " (this one)" : "", " ",
      Object.entries(r.metrics ?? {}).map(([k, v]) => h("span.quiet", `${k} ${format(v)}  `)))))] : null;
  }

  function details(title, ...content) {
    return group => {
      view.main.querySelectorAll(".box.picked").forEach(e => e.classList.remove("picked"));
      group?.classList.add("picked");
      view.set({ box: title });
      fill(detail, h("h2", title), content.map(part => typeof part === "function" ? part() : part));
    };
  }

  const box = (title, lines, ...content) => ({ title, lines: lines.filter(Boolean), pick: details(title, ...content) });
  // Lineage files name path and size after the part of the training; other writers do without.
  const about = (data, part) => data?.[part] ?? data?.[`train_dataset_${part}`] ?? data?.[`valid_dataset_${part}`];
  const trained = about(lineage.train_dataset, "path");
  const size = n => known(n) ? `${format(Number(n))} samples` : "";
  const graph = lineage.dataset_graph, order = graph?.nodes?.length ? layers(graph.nodes, graph.edges).flat() : [];
  const operations = order.length > 1 ? order.slice(1) : order; // the first is the data
  const columns = [], hyper = lineage.hyper ?? {};
  columns.push([box("Training data", [tail(trained), size(about(lineage.train_dataset, "size"))], pairs(lineage.train_dataset), () => runsBy("Runs on the same data", r => known(trained) && about(r.data, "path") === trained))]);
  if (operations.length) columns.push([box("Data pipeline", operations.slice(0, 5).map(node => node.name), () => h("p", "All its operations are in the graph below."))]);
  const settings = Object.entries(hyper).filter(([key]) => !["network"].includes(key));
  columns.push([box("Training", [lineage.network, ...settings.slice(0, 5).map(([key, value]) => `${key} ${format(value)}`)].filter(Boolean), pairs({ network: lineage.network, loss: lineage.loss, ...hyper }), h("p", h("a", { href: view.link("scalars") }, "its curves"), " · ", h("a", { href: view.link("graph", { run: run.id }) }, "its graph")),
    () => runsBy("Runs with the same network", r => known(lineage.network) && r.hyper?.network === lineage.network)),
  ...Object.keys(lineage.user ?? {}).length ? [box("Your own", Object.entries(lineage.user).slice(0, 4).map(([key, value]) => `${key} ${format(value)}`), pairs(lineage.user))] : []]);
  columns.push([box("Model", [tail(checkpoint), known(lineage.model?.size) && Number(lineage.model.size) > 0 ? bytes(Number(lineage.model.size)) : ""], pairs({ ...lineage.model, path: checkpoint }), known(checkpoint) ? h("p.quiet", "Read it with ms.load_checkpoint.") : h("p.quiet", "The training left no checkpoint."))]);
  if (Object.keys(lineage.valid_dataset ?? {}).length)
    columns.at(-1).push(box("Evaluation data", [tail(about(lineage.valid_dataset, "path")), size(about(lineage.valid_dataset, "size"))], pairs(lineage.valid_dataset)));
  if (Object.keys(lineage.metrics ?? {}).length || known(lineage.loss))
    columns.push([box("Results", Object.entries({ ...known(lineage.loss) ? { loss: lineage.loss } : {}, ...lineage.metrics }).slice(0, 6).map(([key, value]) => `${key} ${format(value)}`), pairs({ loss: lineage.loss, ...lineage.metrics }), h("p", h("a", { href: view.link("hyper") }, "against all runs")))]);
  const edges = [];
  for (let c = 0; c + 1 < columns.length; c++) columns[c].forEach((_, r) => edges.push([c, r, c + 1, 0]));
  const pictures = h("div.panel", diagram(columns, edges), h("p.quiet", `${clock(run.first)} · ${duration(Math.round(run.last - run.first))} · ${format(run.steps)} steps`, run.notes ? ` · ${run.notes}` : ""));
  const parts = [pictures];
  if (graph?.nodes?.length) parts.push(h("div.panel", h("h2", "Data pipeline"), pipeline(graph, details)));
  parts.push(detail);
  view.main.append(...parts);
  const labelled = name => [...view.main.querySelectorAll(".box")].find(box => box.getAttribute("aria-label") === name);
  (labelled(state.box) ?? labelled(columns.at(-1)[0].title)).dispatchEvent(new MouseEvent("click"));
  return {};
}

const known = v => v !== undefined && v !== null && v !== "";
const tail = path => known(path) ? String(path).split("/").filter(Boolean).slice(-2).join("/") : "";

// The operations in their order, with their workers and how full the queues behind them are, where that was measured.
function pipeline({ nodes, edges }, details) {
  const columns = layers(nodes, edges), place = new Map();
  columns.forEach((column, c) => column.forEach((node, r) => place.set(node.id, [c, r])));
  const boxes = columns.map(column => column.map(node => {
    const p = node.parameters ?? {}, show = ["num_parallel_workers", "batch_size", "buffer_size", "operations", "connector_queue_size", "dataset_dir", "dataset_file"];
    const lines = show.filter(key => known(p[key])).slice(0, 3).map(key => `${{ num_parallel_workers: "workers", connector_queue_size: "queue", buffer_size: "buffer", batch_size: "batch", operations: "" }[key] ?? key} ${brief(p[key])}`.trim());
    return { title: node.name, lines, pick: details(node.name, pairs(p)) };
  }));
  const fillOf = id => {
    const p = nodes.find(node => node.id === id)?.parameters ?? {};
    return known(p.queue_fill) ? Number(p.queue_fill) : undefined;
  };
  const arrows = edges.filter(([a, b]) => place.has(a) && place.has(b)).map(([a, b]) => [...place.get(a), ...place.get(b), fillOf(a)]);
  // The training takes from the queue behind the last operation.
  const last = nodes.find(node => fillOf(node.id) !== undefined && !edges.some(([a]) => a === node.id));
  if (last) {
    boxes.push([{ title: "training", lines: [`queue ${Math.round(100 * fillOf(last.id))} % full`], pick: details("training", pairs({ queue_fill: fillOf(last.id) })) }]);
    arrows.push([...place.get(last.id), boxes.length - 1, 0, fillOf(last.id)]);
  }
  return diagram(boxes, arrows);
}
