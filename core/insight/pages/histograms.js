// Distributions of a tensor over the steps: one histogram behind the other, all in one, or as bands of quantiles.
import { clock, download, duration, failure, fill, format, h, menu, segments } from "./dom.js";
import { cached, number } from "./api.js";
import { Chart } from "./chart.js";
import { runTitle } from "./records.js";
import { TagPage } from "./tags.js";

const MOST = 60; // histograms of one picture; of more, evenly spread ones
const QUANTILES = [0, 0.07, 0.16, 0.31, 0.5, 0.69, 0.84, 0.93, 1];

function prepare(record) {
  const buckets = record.buckets.map(bucket => bucket.map(number)).filter(([, , count]) => count > 0);
  const total = buckets.reduce((sum, [, , count]) => sum + count, 0);
  let most = 0;
  for (const bucket of buckets) {
    // A bucket without width is a constant: drawn as a narrow one.
    const width = bucket[1] - bucket[0] || Math.abs(bucket[0]) * 0.02 || 0.02;
    if (bucket[1] === bucket[0]) [bucket[0], bucket[1]] = [bucket[0] - width / 2, bucket[0] + width / 2];
    most = Math.max(most, bucket[3] = bucket[2] / (total * width));
  }
  return { step: record.step, wall: record.wall, buckets, total, most };
}

function quantile(buckets, total, q) {
  let sum = 0;
  for (const [left, right, count] of buckets) {
    if (sum + count >= q * total) return left + (right - left) * (count ? (q * total - sum) / count : 0);
    sum += count;
  }
  return buckets.at(-1)?.[1] ?? NaN;
}

function spread(list) {
  if (list.length <= MOST) return list;
  return Array.from({ length: MOST }, (_, i) => list[Math.round(i * (list.length - 1) / (MOST - 1))]);
}

class HistogramCard {
  constructor(page, entry) {
    Object.assign(this, { page, entry, charts: [] });
    this.body = h("div");
    this.element = h("article.card", { ariaLabel: entry.name }, h("div.head", h("h3", { title: entry.name }, entry.name), h("button.plain", { title: "save", onclick: () => this.menu() }, "⋯")), this.body);
  }

  async load() {
    try {
      const { runs } = this.entry;
      this.lists = (await Promise.all(runs.map(({ run, tag }) => cached(`runs/${run.id}/histograms/${tag.id}`)))).map((list, i) => ({ run: runs[i].run, all: list.map(prepare).filter(r => r.buckets.length) }));
      this.draw();
    } catch (error) {
      fill(this.body, failure(error));
    }
  }

  menu() {
    const name = this.entry.name;
    menu(this.element, this.charts.flatMap(({ run, chart }) => [
      [`PNG of ${run.name}`, async () => download(`${name}-${run.name}.png`, await chart.png(`${name} · ${run.name}`))],
      [`SVG of ${run.name}`, () => download(`${name}-${run.name}.svg`, chart.svg(`${name} · ${run.name}`), "image/svg+xml")]]).slice(0, 16));
  }

  draw() {
    if (!this.lists) return;
    const windows = new Map(this.charts.map(({ run, chart }) => [run.id, chart.window]));
    this.charts = this.lists.filter(({ all }) => all.length).map(({ run, all }) => ({ run, chart: this.chart(run, all, windows.get(run.id) ?? null) }));
    fill(this.body, this.charts.map(({ run, chart }) => [this.charts.length > 1 || this.entry.runs.length > 1 ? runTitle(this.page.view, run) : null, chart.element]),
      this.charts.length ? null : h("p.quiet", "no finite value"));
  }

  chart(run, all, window) {
    const { mode } = this.page, list = spread(all), colour = this.page.view.colour(run);
    const options = { title: this.entry.name, window, message: "empty" };
    const chart = mode === "bands" ? this.bands(all, colour, run, options) : mode === "overlay" ? this.overlaid(list, colour, options) : this.offset(list, colour, run, options);
    chart.later();
    return chart;
  }

  at(record, run) {
    const { axis } = this.page;
    return axis === "step" ? record.step : axis === "wall" ? record.wall : record.wall - (run.first ?? 0);
  }

  text(value) { return { step: format, wall: clock, relative: duration }[this.page.axis](value); }

  outline(p, record, sx, base, height) {
    p.beginPath();
    const { buckets, most } = record;
    p.moveTo(sx.pixel(buckets[0][0]), base);
    let before = buckets[0][0];
    for (const [left, right, , density] of buckets) {
      if (left > before + (right - left) * 0.5) { p.lineTo(sx.pixel(before), base); p.lineTo(sx.pixel(left), base); }
      p.lineTo(sx.pixel((left + right) / 2), base - height * density / most);
      before = right;
    }
    p.lineTo(sx.pixel(before), base);
  }

  extent(list) {
    let low = Infinity, high = -Infinity;
    for (const { buckets } of list) { low = Math.min(low, buckets[0][0]); high = Math.max(high, buckets.at(-1)[1]); }
    return [low, high];
  }

  // The newest is in front, at the bottom.
  offset(list, colour, run, options) {
    const [low, high] = this.extent(list), first = this.at(list[0], run), last = this.at(list.at(-1), run), span = last - first || 1;
    const place = record => list.length > 1 ? -(this.at(record, run) - first) / span : -1; // 0 the first, -1 the last
    const ticks = [0, 0.25, 0.5, 0.75, 1].slice(0, list.length > 1 ? 5 : 1).map(f => [list.length > 1 ? -f : -1, this.page.axis === "wall" ? clock(first + f * span).slice(11) : this.page.axis === "step" ? format(Math.round(first + f * span)) : duration(f * span)]);
    // The highest is a part of the picture's height, and the first has room above it.
    const part = list.length > 1 ? Math.min(Math.max(0.2, 2 / list.length), 0.38) : 0.8, room = 1.06 * part / (1 - part);
    const height = (sx, sy) => (sy.from - sy.to) * part;
    const layer = { extent: [low, high, -1.02, room], draw: (p, sx, sy, colours) => {
      for (const [i, record] of list.entries()) {
        this.outline(p, record, sx, sy.pixel(place(record)), height(sx, sy));
        p.fillStyle = colours.panel;
        p.fill();
        p.globalAlpha = list.length > 1 ? 0.15 + 0.6 * i / (list.length - 1) : 0.5;
        p.fillStyle = colour;
        p.fill();
        p.globalAlpha = 1;
        p.strokeStyle = colour;
        p.lineWidth = 0.8;
        p.stroke();
      }
    } };
    return new Chart({ ...options, layers: [layer], tight: true, yTicks: ticks, tip: (_, { sx, sy }, x, y) => {
      const near = list.reduce((best, r) => Math.abs(sy.pixel(place(r)) - y - 6) < Math.abs(sy.pixel(place(best)) - y - 6) ? r : best);
      return this.tip(near, sx.value(x), run);
    } });
  }

  overlaid(list, colour, options) {
    const [low, high] = this.extent(list), most = Math.max(...list.map(r => r.most));
    const layer = { extent: [low, high, 0, most * 1.05], draw: (p, sx, sy) => {
      for (const [i, record] of list.entries()) {
        const base = sy.pixel(0);
        this.outline(p, record, sx, base, base - sy.pixel(record.most));
        p.strokeStyle = colour;
        p.globalAlpha = 0.2 + 0.8 * (i + 1) / list.length;
        p.lineWidth = i === list.length - 1 ? 2 : 1;
        p.stroke();
        p.globalAlpha = 1;
      }
    } };
    return new Chart({ ...options, layers: [layer], tight: true, yLabel: "density", tip: (_, { sx, sy }, x, y) => {
      const value = sx.value(x), density = r => r.buckets.find(([l, rr]) => l <= value && value < rr)?.[3] ?? 0, wanted = sy.value(y);
      return this.tip(list.reduce((best, r) => Math.abs(density(r) - wanted) < Math.abs(density(best) - wanted) ? r : best), value);
    } });
  }

  bands(list, colour, run, options) {
    const x = Float64Array.from(list, record => this.at(record, run));
    const lines = QUANTILES.map(q => Float64Array.from(list, ({ buckets, total }) => quantile(buckets, total, q)));
    const series = [0, 1, 2, 3].map(i => ({ x, y: lines[4], low: lines[i], high: lines[8 - i], colour, quiet: true, alpha: 0 }));
    series.push({ name: "median", x, y: lines[4], colour, low: lines[0], high: lines[8], note: i => `${format(lines[2][i])} … ${format(lines[6][i])} hold 68 %` });
    const chart = new Chart({ ...options, kind: { step: "number", wall: "wall", relative: "duration" }[this.page.axis] });
    chart.series = series;
    return chart;
  }

  tip(record, value, run) {
    const bucket = record.buckets.find(([left, right]) => left <= value && value < right);
    return h("div", h("div", `step ${format(record.step)} · ${format(record.total)} values`, run && this.page.axis !== "step" ? ` · ${this.text(this.at(record, run))}` : ""),
      h("div", bucket ? `${format(bucket[2])} from ${format(bucket[0])} to ${format(bucket[1])}` : `none at ${format(value)}`));
  }
}

export default async function show(view) {
  const page = { view, mode: view.state.mode ?? "offset", axis: view.state.axis ?? "step" };
  const redraw = () => tags.each(card => card.draw());
  const set = (name, initial) => value => {
    page[name] = value;
    view.set({ [name]: value === initial ? null : value });
    tags.each(card => { card.charts = []; card.draw(); });
  };
  const tags = new TagPage(view, {
    kind: "histograms", title: "No histograms yet", text: "A SummaryCollector writes the first parameters by itself; any tensor takes a line:",
    code: 'record:add_value("histogram", "fc1.weight", net.fc1.weight)\nrecord:record(step)',
    tools: [segments([["offset", "Offset", "one behind the other, the newest in front"], ["overlay", "Overlay"], ["bands", "Distribution", "quantiles over the steps"]], page.mode, set("mode", "offset")),
      segments([["step", "Step"], ["relative", "Relative"], ["wall", "Time"]], page.axis, set("axis", "step"))],
    card: entry => new HistogramCard(page, entry),
  });
  await tags.refresh();
  view.main.addEventListener("theme", redraw);
  return tags.handle();
}
