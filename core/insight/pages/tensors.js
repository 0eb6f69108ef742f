// Tensors of a step: statistics over the steps, a plane of the values as a table and as a field of colours, and the file.
import { failure, fill, format, h, isDark } from "./dom.js";
import { cached, number, url } from "./api.js";
import { Chart } from "./chart.js";
import { signedText } from "./colours.js";
import { RecordCard, recordPage, runTitle } from "./records.js";
import { TagPage } from "./tags.js";

const SHOWN = 40; // rows and columns of the table; the field of colours has all

// Which plane: the last two axes, of the others the first entry.
const firstPlane = shape => shape.map((_, i) => i >= shape.length - 2 ? ":" : "0");

class Plane {
  constructor(run, tag, dims) {
    Object.assign(this, { run, tag, dims });
    this.choice = h("div.row");
    this.body = h("div");
    this.element = h("div", this.choice, this.body);
  }

  show(record) {
    if (!this.dims || this.dims.length !== record.shape.length) this.dims = firstPlane(record.shape);
    this.record = record;
    fill(this.choice, h("span.quiet", "Plane"), "[", record.shape.map((size, axis) => [axis ? "," : "", this.axis(size, axis)]), "]");
    this.load();
  }

  axis(size, axis) {
    const whole = this.dims[axis] === ":";
    const field = h("input", { value: this.dims[axis], size: 3, title: `axis ${axis} has ${size} entries; : is all of them (of at most two axes)`, ariaLabel: `axis ${axis}`, onchange: () => {
      const text = field.value.trim(), others = this.dims.filter((d, i) => d === ":" && i !== axis).length;
      const fits = text === ":" ? others < 2 : /^\d+$/.test(text) && Number(text) < size;
      if (!fits) { field.value = this.dims[axis]; return; }
      this.dims[axis] = text;
      this.load();
    } });
    return whole ? field : [field, h("button.plain", { title: "the one before", onclick: () => this.step(axis, -1, size) }, "‹"), h("button.plain", { title: "the next", onclick: () => this.step(axis, 1, size) }, "›")];
  }

  step(axis, by, size) {
    this.dims[axis] = String((Number(this.dims[axis]) + by + size) % size);
    this.show(this.record);
  }

  async load() {
    const turn = this.turn = (this.turn ?? 0) + 1, { run, tag, record } = this;
    try {
      const answer = await cached(`runs/${run.id}/tensors/${tag.id}/${record.index}?dims=${this.dims.join(",")}`);
      if (turn === this.turn) this.draw(answer);
    } catch (error) {
      if (turn === this.turn) fill(this.body, failure(error));
    }
  }

  draw({ values }) {
    const rows = (Array.isArray(values) ? Array.isArray(values[0]) ? values : [values] : [[values]]).map(row => row.map(number));
    const most = rows.flat().reduce((m, v) => Number.isFinite(v) ? Math.max(m, Math.abs(v)) : m, 0) || 1, dark = isDark();
    const field = h("canvas", { width: rows[0]?.length ?? 0, height: rows.length, title: `${rows.length} × ${rows[0]?.length ?? 0}, blue below 0, red above, up to ${format(most)}` });
    const p = field.getContext("2d");
    for (const [y, row] of rows.entries()) for (const [x, v] of row.entries()) { p.fillStyle = Number.isFinite(v) ? signedText(v / most, dark) : "#f0f"; p.fillRect(x, y, 1, 1); }
    const scale = Math.max(1, Math.min(12, Math.floor(220 / Math.max(rows.length, rows[0]?.length || 1))));
    Object.assign(field.style, { width: `${field.width * scale}px`, height: `${field.height * scale}px`, maxWidth: "100%", imageRendering: "pixelated", borderRadius: "4px" });
    const head = h("tr", h("th"), rows[0]?.slice(0, SHOWN).map((_, x) => h("th.number", x)));
    const body = rows.slice(0, SHOWN).map((row, y) => h("tr", h("th.number", y), row.slice(0, SHOWN).map(v => {
      const cell = h(Number.isFinite(v) ? "td.number" : "td.number.bad", { title: String(v) }, format(Number.isFinite(v) ? Number(v.toPrecision(4)) : v));
      if (Number.isFinite(v)) cell.style.background = signedText(v / most * 0.6, dark);
      return cell;
    })));
    const cut = rows.length > SHOWN || rows[0]?.length > SHOWN;
    fill(this.body, h("div.row", { style: { "align-items": "start", "flex-wrap": "nowrap", "margin-top": "6px" } }, h("div", { style: { flex: "0 0 auto", "max-width": "45%" } }, field),
      h("div.scroll.grow", { style: { "max-height": "300px" } }, h("table.dense", h("thead", head), h("tbody", body)), cut ? h("p.quiet", `The table shows the first ${SHOWN} of each axis.`) : null)));
  }
}

export default async function show(view) {
  const page = recordPage(view), planes = new Map();
  function tensor(run, tag, record, list, card) {
    const key = `${run.id} ${tag.id}`;
    if (!planes.has(key)) {
      const chart = new Chart({ title: "statistics", kind: "number" });
      chart.element.style.height = "150px";
      planes.set(key, { plane: new Plane(run, tag), chart, facts: h("div"), element: null });
    }
    const own = planes.get(key), facts = [["type", record.dtype], ["shape", `(${record.shape.join(", ")})`], ["min", record.min], ["max", record.max], ["mean", record.mean], ["zeros", record.zeros], ["NaN", record.nan], ["Inf", record.inf]];
    fill(own.facts, h("table.pairs.dense", h("tbody", facts.map(([name, value]) => h("tr", h("td", name), h((name === "NaN" || name === "Inf") && value > 0 ? "td.bad" : "td", typeof value === "string" && name !== "type" && name !== "shape" ? format(number(value)) : format(value)))))),
      h("p", h("a", { href: url(`runs/${run.id}/tensors/${tag.id}/${record.index}?format=npy`), download: `${card.entry.name}-${record.step}.npy`.replace(/[^\w.+-]+/g, "_") }, "save as .npy")));
    if (list.length > 1) {
      const x = Float64Array.from(list, r => r.step), line = name => Float64Array.from(list, r => number(r[name]));
      own.chart.set([{ name: "mean", colour: view.colour(run), x, y: line("mean"), low: line("min"), high: line("max") }]);
    }
    own.chart.element.hidden = list.length < 2;
    own.plane.show(record);
    own.element ??= h("section", { style: { "margin-bottom": "12px" } }, runTitle(view, run), h("div.row", { style: { "align-items": "start" } }, own.facts,
      h("div.grow", { style: { "min-width": "300px" } }, own.chart.element)), own.plane.element);
    return own.element;
  }
  const tags = new TagPage(view, {
    kind: "tensors", title: "No tensors yet", text: "A tensor takes a line:", code: 'record:add_value("tensor", "activation", x)\nrecord:record(step)', wide: true,
    card: entry => new RecordCard(page, entry, "tensors", tensor, true),
  });
  await tags.refresh();
  view.main.addEventListener("theme", () => tags.each(card => card.draw()));
  return tags.handle();
}
