// Runs beside each other: what they differ in, what came out, and their curves over each other.
import { checkbox, empty, fill, format, h, plural } from "./dom.js";
import { smallIsGood } from "./runs.js";
import { ScalarCard, scalarPage } from "./scalars.js";
import { tagsOf } from "./tags.js";

const CURVES = 6;

export default async function show(view) {
  const page = scalarPage(view);
  let onlyDifferent = view.state.all !== "1", cards = [];
  const table = h("div.panel.scroll"), curves = h("div.cards"), head = h("div.tools"), more = h("p.quiet");

  function rows(runs) {
    const list = [];
    for (const [field, title] of [["metrics", "Results"], ["hyper", "Hyper-parameters"], ["data", "Data"]]) {
      const names = [...new Set(runs.flatMap(run => Object.keys(run[field] ?? {})))].sort();
      for (const name of names) {
        // A run without any of this kind differs in nothing.
        const values = runs.map(run => run[field]?.[name]), told = values.filter((_, i) => Object.keys(runs[i][field] ?? {}).length);
        const differs = new Set(told.map(v => JSON.stringify(v))).size > 1;
        list.push({ title, name, values, differs, field });
      }
    }
    return list;
  }

  function drawTable() {
    const runs = view.chosen, first = view.state.base ? Math.max(0, runs.findIndex(run => run.id === view.state.base)) : 0;
    const all = rows(runs), shown = all.filter(row => row.differs || !onlyDifferent || row.field === "metrics");
    let group = null;
    const body = shown.map(({ title, name, values, field }) => {
      const numeric = values.filter(Number.isFinite), least = smallIsGood(name) ? Math.min : Math.max;
      const best = field === "metrics" && numeric.length > 1 ? numeric.reduce((a, b) => least(a, b)) : undefined, base = values[first];
      const line = h("tr", h("td.quiet", name), values.map((value, i) => {
        const change = field === "metrics" && i !== first && Number.isFinite(value) && Number.isFinite(base) && base !== 0 ? (value - base) / Math.abs(base) : null;
        return h(value === best ? "td.best" : "td", { title: typeof value === "number" ? String(value) : "" }, format(value),
          change !== null ? h("span.quiet", { style: { "font-weight": 400 } }, ` ${change >= 0 ? "+" : "−"}${format(Number((100 * Math.abs(change)).toPrecision(2)))} %`) : null);
      }));
      const heading = title !== group ? h("tr", h("th", { colSpan: runs.length + 1 }, group = title)) : null;
      return [heading, line];
    });
    fill(table, h("table", h("thead", h("tr", h("th", `${plural(runs.length, "run")}`), runs.map((run, i) => h("th", view.swatch(run), " ",
      h("a", { href: view.link("lineage", { run: run.id }), title: "its lineage" }, run.name), " ", i === first ? h("span.label", "base") : h("button.plain", { title: "compare with this one", onclick: () => { view.set({ base: run.id }); drawTable(); } }, "base"))))),
    h("tbody", body.length ? body : h("tr", h("td.quiet", { colSpan: runs.length + 1 }, "Neither parameters nor results are known of these runs.")))),
    all.length > shown.length ? h("p.quiet", `${all.length - shown.length} more are equal in all.`) : null);
  }

  async function draw() {
    const runs = view.chosen;
    if (runs.length < 2) {
      fill(view.main, empty("Tick two runs or more", "They are compared here: parameters, results, and curves over each other."));
      return;
    }
    fill(view.main, head, table, h("h2", { style: { margin: "14px 0 8px" } }, "Curves"), curves, more);
    fill(head, checkbox("only what differs", onlyDifferent, value => { onlyDifferent = value; view.set({ all: value ? null : "1" }); drawTable(); }));
    drawTable();
    const shared = (await tagsOf(view, "scalars")).filter(entry => entry.runs.length > 1);
    const weight = entry => (/loss|acc/i.test(entry.name) ? 0 : 1) - entry.runs.length;
    const list = shared.map((entry, i) => [weight(entry), i, entry]).sort((a, b) => a[0] - b[0] || a[1] - b[1]).slice(0, CURVES).map(([, , entry]) => entry);
    cards = list.map(entry => new ScalarCard(page, entry));
    fill(curves, cards.map(card => card.element));
    cards.forEach(card => card.load());
    fill(more, shared.length > list.length ? [h("a", { href: view.link("scalars") }, `All ${shared.length} shared curves`), " · "] : null, h("a", { href: view.link("landscape") }, "Loss landscapes"), " · ", h("a", { href: view.link("hyper") }, "Hyper-parameters"));
  }

  await draw();
  view.main.addEventListener("theme", () => cards.forEach(card => card.draw()));
  return {
    choose: draw,
    update: ids => { if (view.chosen.length > 1) drawTable(); cards.forEach(card => { if (card.entry.runs.some(({ run }) => ids.includes(run.id))) card.load(); }); },
  };
}
