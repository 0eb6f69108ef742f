// The table of runs: what each was trained with and what came out, with filter, order, notes and labels.
import { ago, checkbox, clock, download, duration, fill, format, h, plural } from "./dom.js";
import { csvText } from "./export.js";
import { filterOf } from "./filter.js";

const AT_ONCE = 150; // rows; more when the end is in sight
const KINDS = { scalars: "scalars", images: "images", histograms: "histograms", tensors: "tensors", audio: "audio", texts: "texts", pr_curves: "curves",
  embeddings: "embeddings", graphs: "graph", landscapes: "landscape", profiles: "profile" };

// Of losses and errors the least is best, of the rest the greatest.
export const smallIsGood = name => /loss|error|mae|mse|rmse|perplexity|hausdorff|distance|time|seconds/i.test(name);

const column = (id, title, value, more = {}) => ({ id, title, value, ...more });

function columnsOf(runs) {
  const seen = (field, prefix, more) => {
    const names = [...new Set(runs.flatMap(run => Object.keys(run[field] ?? {})))].sort();
    return names.map(name => column(`${prefix}:${name}`, name, run => run[field]?.[name], { field, ...more(name) }));
  };
  return [
    column("name", "Run", run => run.name),
    column("labels", "Labels", run => (run.labels ?? []).join(" ")),
    column("last", "Last written", run => run.last),
    column("time", "Took", run => run.last - run.first),
    column("steps", "Steps", run => run.steps),
    ...seen("metrics", "m", name => ({ best: smallIsGood(name) ? Math.min : Math.max })),
    // What is the same in all of them tells nothing.
    ...seen("hyper", "h", name => ({ hidden: runs.length > 1 && new Set(runs.map(run => run.hyper?.[name]).filter(v => v !== undefined)).size === 1 })),
    ...seen("data", "d", () => ({ hidden: true })),
    column("kinds", "Records", run => Object.values(run.kinds ?? {}).reduce((a, b) => a + b, 0)),
    column("notes", "Notes", run => run.notes),
  ];
}

function compare(a, b) {
  const known = v => v !== undefined && v !== null && v !== "";
  if (!known(a) || !known(b)) return known(b) - known(a) || 0;
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a).localeCompare(String(b), "en", { numeric: true });
}

export default async function show(view) {
  const { state } = view;
  let shown = AT_ONCE;
  const input = h("input", { type: "search", value: state.q ?? "", size: 44, placeholder: "Filter: accuracy>0.9 optimizer=Adam", title: "words of the name, the notes or a label; label:good; comparisons of parameters and results; - before what must not hold",
    ariaLabel: "filter", oninput: () => { view.set({ q: input.value }); shown = AT_ONCE; draw(); } });
  const count = h("span.quiet");
  const columnsButton = h("button", { onclick: pickColumns, title: "which columns" }, "Columns");
  const compareButton = h("button", { onclick: () => view.go("compare"), title: "the ticked runs beside each other" }, "Compare ticked");
  const csv = h("button", { onclick: () => saveTable(), title: "this table as CSV" }, "CSV");
  const head = h("thead"), body = h("tbody"), end = h("div", { style: { height: "1px" } });
  const host = h("div.panel.scroll", { style: { padding: "0" } }, h("table", head, body), end);
  fill(view.main, h("div.tools", input, count, h("span.grow"), columnsButton, compareButton, csv), host);
  new IntersectionObserver(entries => {
    if (entries[0].isIntersecting && shown < rows.length) { shown += AT_ONCE; drawRows(); }
  }).observe(end);

  let columns = [], rows = [], best = {};

  function visible() {
    const wanted = state.cols ? new Set(state.cols.split("~")) : null;
    return columns.filter(c => c.id === "name" || (wanted ? wanted.has(c.id) : !c.hidden));
  }

  function draw() {
    columns = columnsOf(view.runs);
    const keep = filterOf(input.value), by = columns.find(c => c.id === (state.sort ?? "last")) ?? columns[0];
    const down = (state.down ?? (state.sort ? "0" : "1")) === "1";
    rows = view.runs.filter(keep.test);
    rows.sort((a, b) => {
      const x = by.value(a), y = by.value(b), missing = [x, y].map(v => v === undefined || v === null || v === "");
      if (missing[0] || missing[1]) return missing[0] - missing[1];
      return (down ? -1 : 1) * compare(x, y);
    });
    count.textContent = rows.length === view.runs.length ? plural(rows.length, "run") : `${rows.length} of ${plural(view.runs.length, "run")}`;
    best = {};
    for (const c of columns) {
      const values = c.best ? rows.map(c.value).filter(Number.isFinite) : [];
      if (values.length > 1) best[c.id] = values.reduce((a, b) => c.best(a, b));
    }
    fill(head, h("tr", h("th"), visible().map(c => h("th.sorts", {
      title: c.field ? `${c.field}: ${c.title}` : "order by it", ariaSort: c === by ? (down ? "descending" : "ascending") : "none",
      onclick: () => { view.set({ sort: c.id, down: c === by && !down || c !== by && c.best === Math.max ? "1" : "0" }); draw(); },
    }, c.title, c === by ? (down ? " ↓" : " ↑") : ""))));
    drawRows();
  }

  function drawRows() {
    const list = visible(), ticked = new Set(view.chosen.map(run => run.id));
    fill(body, rows.slice(0, shown).map(run => h("tr", { className: run.id === state.run ? "picked" : "" },
      h("td", h("input", { type: "checkbox", checked: ticked.has(run.id), ariaLabel: `tick ${run.name}`, onchange: event => {
        if (event.target.checked) ticked.add(run.id); else ticked.delete(run.id);
        view.choose(ticked);
      } })),
      list.map(c => cell(run, c)))));
    if (!rows.length) body.append(h("tr", h("td.quiet", { colSpan: list.length + 1 }, "No run passes the filter.")));
  }

  function cell(run, c) {
    if (c.id === "name") {
      return h("td", h("span.row", { style: { "flex-wrap": "nowrap" } }, view.swatch(run),
        h("a.clip", { href: "#", title: "its curves", style: { "max-width": "340px" }, onclick: event => { event.preventDefault(); view.choose([run.id]); view.go("scalars"); } }, run.name),
        run.live ? h("span.dot.live", { title: "is being written" }) : null,
        run.problems?.length ? h("span.warn", { title: run.problems.join("\n") }, "⚠") : null));
    }
    if (c.id === "labels") return labels(run);
    if (c.id === "notes") return notes(run);
    if (c.id === "last") return h("td.quiet", { title: clock(run.last), style: { "white-space": "nowrap" } }, ago(run.last));
    if (c.id === "time") return h("td.quiet", { style: { "white-space": "nowrap" } }, Number.isFinite(run.last - run.first) ? duration(Math.round(10 * (run.last - run.first)) / 10) : "");
    if (c.id === "kinds") {
      return h("td", { style: { "white-space": "nowrap" } }, Object.entries(KINDS).filter(([kind]) => run.kinds?.[kind]).map(([kind, page]) =>
        [h("a", { href: "#", title: `${run.kinds[kind]} of ${kind}`, onclick: event => { event.preventDefault(); view.choose([run.id]); view.go(page); } }, kind.replace("_", " ")), " "]));
    }
    const value = c.value(run), isBest = best[c.id] !== undefined && value === best[c.id];
    if (typeof value === "number") return h(isBest ? "td.number.best" : "td.number", { title: isBest ? "best of those shown" : String(value) }, format(value));
    return h("td", h("span.clip", { style: { "max-width": "260px", display: "inline-block", "vertical-align": "bottom" }, title: String(value ?? "") }, value ?? ""));
  }

  function labels(run) {
    const write = list => view.putRun(run.id, { labels: list }).then(draw, complain);
    const td = h("td", { style: { "white-space": "nowrap" } }, (run.labels ?? []).map(label => [h("span.label", label,
      h("button.plain", { title: `take ${label} away`, onclick: () => write(run.labels.filter(l => l !== label)) }, "×")), " "]));
    const add = h("button.plain", { title: "add a label", ariaLabel: `add a label to ${run.name}`, onclick: () => {
      const field = h("input", { size: 10, ariaLabel: "label", onkeydown: event => {
        if (event.key === "Escape") draw();
        if (event.key === "Enter" && field.value.trim()) write([...new Set([...run.labels ?? [], field.value.trim()])]);
      }, onblur: () => { if (!field.value.trim()) draw(); } });
      add.replaceWith(field);
      field.focus();
    } }, "+");
    td.append(add);
    return td;
  }

  function notes(run) {
    const field = h("input.note", { value: run.notes ?? "", placeholder: "…", ariaLabel: `notes on ${run.name}`, onchange: () => view.putRun(run.id, { notes: field.value }).catch(complain),
      onkeydown: event => { if (event.key === "Enter") field.blur(); } });
    return h("td", field);
  }

  function complain(error) {
    const note = h("div.failure", `It could not be kept: ${error.message}`);
    host.before(note);
    setTimeout(() => note.remove(), 6000);
  }

  function pickColumns() {
    const on = new Set(visible().map(c => c.id));
    const dialog = h("dialog", { onclose: () => dialog.remove(), onclick: e => { if (e.target === dialog) dialog.close(); } },
      h("h2", "Columns"), h("div.keys", columns.filter(c => c.id !== "name").map(c => checkbox(c.field ? `${c.title} (${c.field})` : c.title, on.has(c.id), value => {
        if (value) on.add(c.id); else on.delete(c.id);
        view.set({ cols: [...on].join("~") });
        draw();
      }))), h("p", h("button", { onclick: () => { view.set({ cols: null }); draw(); dialog.close(); } }, "As at first"), " ", h("button", { onclick: () => dialog.close() }, "Close")));
    document.body.append(dialog);
    dialog.showModal();
  }

  function saveTable() {
    const list = visible();
    download("runs.csv", csvText(list.map(c => c.title), rows.map(run => list.map(c => c.value(run)))), "text/csv");
  }

  draw();
  // What is being written is not taken away by a change of another run.
  return { update: () => { if (!host.contains(document.activeElement) || document.activeElement.type === "checkbox") draw(); }, choose: drawRows,
    keys: { f: ["filter the table", () => input.focus()], c: ["compare the ticked runs", () => view.go("compare")] } };
}
