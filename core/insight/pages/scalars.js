// Curves. The server sends the points of a window exactly where they are few and buckets with their extremes where they are many;
// a zoom asks for the window again, down to single points.
import { checkbox, clock, download, duration, format, h, menu, segments, slider } from "./dom.js";
import { cached, limiter, numbers, url } from "./api.js";
import { Chart } from "./chart.js";
import { TagPage } from "./tags.js";

const POINTS = 1200; // asked for at once
const inTurn = limiter(6);

// A running mean that starts without bias. A bucket of n points weighs as much as they would; `seed` is what came before.
export function smooth(values, weight, counts, seed) {
  const result = new Float64Array(values.length);
  let mean = seed ? seed.mean : 0, debt = seed ? seed.debt : 1;
  for (let i = 0; i < values.length; i++) {
    if (Number.isFinite(values[i])) {
      const keep = weight ** (counts ? counts[i] : 1);
      mean = keep * mean + (1 - keep) * values[i];
      debt *= keep;
      result[i] = mean / (1 - debt);
    } else result[i] = values[i];
  }
  return result;
}

// What the running mean is when it comes to x.
function seedAt(whole, x, weight) {
  let mean = 0, debt = 1;
  for (let i = 0; i < whole.x.length && whole.x[i] < x; i++) {
    if (!Number.isFinite(whole.y[i])) continue;
    const keep = weight ** (whole.n ? whole.n[i] : 1);
    mean = keep * mean + (1 - keep) * whole.y[i];
    debt *= keep;
  }
  return debt < 1 ? { mean, debt } : undefined;
}

// "> 2", "< 0.1", "0.2 .. 0.4": where a curve is marked.
export function threshold(text) {
  const number = "([-+]?[\\d.]+(?:e[-+]?\\d+)?)";
  let match = text.match(new RegExp(`^\\s*>=?\\s*${number}\\s*$`, "i"));
  if (match) return { from: Number(match[1]), to: Infinity };
  match = text.match(new RegExp(`^\\s*<=?\\s*${number}\\s*$`, "i"));
  if (match) return { from: -Infinity, to: Number(match[1]) };
  match = text.match(new RegExp(`^\\s*${number}\\s*\\.\\.\\s*${number}\\s*$`, "i"));
  return match ? { from: Number(match[1]), to: Number(match[2]) } : null;
}

// Tags by name in a link: "name:value" joined by "~"; names are encoded.
export const readMap = text => new Map((text ?? "").split("~").filter(Boolean).map(part => {
  const at = part.lastIndexOf("=");
  return [decodeURIComponent(part.slice(0, at)), decodeURIComponent(part.slice(at + 1))];
}));
export const writeMap = map => [...map].map(([key, value]) => `${encodeURIComponent(key).replaceAll("~", "%7E")}=${encodeURIComponent(value).replaceAll("~", "%7E")}`).join("~");

export class ScalarCard {
  constructor(page, entry) {
    Object.assign(this, { page, entry, whole: new Map(), detail: new Map() });
    const { settings } = page;
    this.chart = new Chart({ title: entry.name, onWindow: window => this.windowChanged(window), window: page.windows.get(entry.name) ?? null, message: "…" });
    const limit = page.thresholds.get(entry.name);
    this.chart.thresholds = limit ? [threshold(limit)].filter(Boolean) : [];
    this.backButton = h("button.plain", { title: "one zoom back (Backspace)", hidden: !this.chart.window, onclick: () => this.chart.back() }, "↶");
    this.allButton = h("button.plain", { title: "everything (double click)", hidden: !this.chart.window, onclick: () => this.chart.all() }, "⤢");
    this.wideButton = h("button.plain", { title: "wide", ariaPressed: "false", onclick: () => this.setWide(!this.wide) }, "◱");
    this.foot = h("div.foot");
    this.table = h("div.scroll");
    this.element = h("article.card", { ariaLabel: entry.name },
      h("div.head", h("h3", { title: entry.name }, entry.name), this.backButton, this.allButton, this.wideButton,
        h("button.plain", { title: "save, thresholds", onclick: () => this.menu() }, "⋯")),
      this.chart.element, this.foot, this.table);
    if (settings.full === entry.name) this.setWide(true);
  }

  setWide(wide) {
    this.wide = wide;
    this.element.classList.toggle("wide", wide);
    this.wideButton.ariaPressed = String(wide);
    if (wide) this.page.setFull(this); else this.page.leaveFull(this);
    if (this.whole.size) this.draw();
  }

  menu() {
    const name = this.entry.name;
    menu(this.element, [
      ["Points as CSV", () => this.csv(), "every point of the window"],
      ["Picture as PNG", async () => download(`${name}.png`, await this.chart.png(name))],
      ["Picture as SVG", () => download(`${name}.svg`, this.chart.svg(name), "image/svg+xml")],
      ["Threshold …", () => this.askThreshold()],
      this.chart.thresholds.length ? ["No threshold", () => this.setThreshold("")] : null,
    ].filter(Boolean));
  }

  csv() {
    const { axis } = this.page.settings;
    for (const { run, tag } of this.entry.runs) {
      const range = this.range(run);
      h("a", { href: url(`runs/${run.id}/scalars/${tag.id}?format=csv&axis=${axis === "step" ? "step" : "wall"}${range}`), download: `${run.name}-${this.entry.name}.csv`.replace(/[^\w.+-]+/g, "_") }).click();
    }
  }

  askThreshold() {
    const field = h("input", { placeholder: "> 2    < 0.1    0.2 .. 0.4", size: 22, ariaLabel: "threshold", value: this.page.thresholds.get(this.entry.name) ?? "", onkeydown: event => {
      if (event.key === "Escape") row.remove();
      if (event.key === "Enter" && (threshold(field.value) || !field.value.trim())) { this.setThreshold(field.value.trim()); row.remove(); }
    } });
    const row = h("div.row", "Mark where", field, h("span.quiet", "Enter"));
    this.chart.element.before(row);
    field.focus();
  }

  setThreshold(text) {
    const limit = threshold(text);
    this.chart.thresholds = limit ? [limit] : [];
    if (limit) this.page.thresholds.set(this.entry.name, text); else this.page.thresholds.delete(this.entry.name);
    this.page.view.set({ marks: writeMap(this.page.thresholds) });
    this.chart.later();
    this.describe();
  }

  // The x of a chart are steps, seconds since 1970, or seconds since the run began.
  origin(run) { return this.page.settings.axis === "relative" ? run.first ?? 0 : 0; }

  range(run) {
    const window = this.chart.window;
    if (!window) return "";
    const margin = (window[1] - window[0]) * 0.05, o = this.origin(run);
    return `&from=${window[0] - margin + o}&to=${window[1] + margin + o}`;
  }

  points(answer, run) {
    const { axis } = this.page.settings, x = numbers(axis === "step" ? answer.step : answer.wall), o = this.origin(run);
    if (o) for (let i = 0; i < x.length; i++) x[i] -= o;
    return answer.exact ? { x, y: numbers(answer.value), count: answer.count, exact: true }
      : { x, y: numbers(answer.mean), low: numbers(answer.min), high: numbers(answer.max), last: numbers(answer.last), n: numbers(answer.n), nan: numbers(answer.nan), count: answer.count };
  }

  async ask(run, tag, range) {
    const axis = this.page.settings.axis === "step" ? "step" : "wall";
    return this.points(await cached(`runs/${run.id}/scalars/${tag.id}?axis=${axis}&points=${POINTS}${range}`), run);
  }

  async load() {
    const turn = this.turn = (this.turn ?? 0) + 1, entry = this.entry, loaded = new Map(), detail = new Map();
    try {
      await Promise.all(entry.runs.map(({ run, tag }) => inTurn(async () => {
        if (turn !== this.turn) return;
        const whole = await this.ask(run, tag, "");
        loaded.set(run.id, whole);
        const range = this.range(run);
        if (range && !whole.exact) detail.set(run.id, await this.ask(run, tag, range));
      })));
    } catch (error) {
      if (turn === this.turn) this.foot.textContent = error.message;
      return;
    }
    if (turn !== this.turn) return;
    this.whole = loaded;
    this.detail = detail;
    this.draw();
  }

  windowChanged(window) {
    this.backButton.hidden = this.allButton.hidden = !window;
    if (window) this.page.windows.set(this.entry.name, window); else this.page.windows.delete(this.entry.name);
    this.page.view.set({ zoom: writeMap(new Map([...this.page.windows].map(([name, w]) => [name, w.map(v => v === null ? "" : Number(v.toPrecision(12))).join(",")]))) });
    clearTimeout(this.timer);
    if (!window) this.detail = new Map();
    // The pyramid's points are drawn at once, the window's own when they come.
    this.timer = setTimeout(() => { if ([...this.whole.values()].some(line => !line.exact)) this.load(); else this.describe(); }, 60);
    if (!window) this.draw();
  }

  draw() {
    const { settings, view } = this.page, series = [];
    for (const { run } of this.entry.runs) {
      const whole = this.whole.get(run.id), line = this.detail.get(run.id) ?? whole;
      if (!line) continue;
      const colour = view.colour(run), own = { name: run.name, colour };
      const { x, y, low, high, n, nan } = line;
      if (settings.smooth > 0) {
        const seed = line === whole ? undefined : seedAt(whole, x[0], settings.smooth);
        if (settings.band && low) series.push({ ...own, x, y, low, high, bars: true, quiet: true, alpha: 0 });
        else if (settings.band) series.push({ ...own, x, y, alpha: 0.28, width: 1, quiet: true });
        const flat = smooth(y, settings.smooth, n, seed);
        series.push({ ...own, x, y: flat, nan, note: index => `(${format(y[index])})` });
      } else series.push({ ...own, x, y, nan, ...settings.band && low ? { low, high, bars: true } : {} });
    }
    const kind = { step: "number", wall: "wall", relative: "duration" }[settings.axis];
    this.chart.set(series, { logX: settings.logx && settings.axis !== "wall", logY: settings.logy, kind, message: series.length ? "no point can be shown on these axes" : "the ticked runs have no such tag" });
    this.describe();
  }

  // Of a run: number of points, least and greatest with their places, last, and where numbers end. A bucket's place is where it
  // begins; ask() for its points tells more.
  facts(run) {
    const line = this.whole.get(run.id);
    if (!line || !line.x.length) return null;
    let low = 0, high = 0;
    const lows = line.low ?? line.y, highs = line.high ?? line.y;
    for (let i = 1; i < line.x.length; i++) {
      if (lows[i] < lows[low] || Number.isNaN(lows[low])) low = i;
      if (highs[i] > highs[high] || Number.isNaN(highs[high])) high = i;
    }
    const end = line.x.length - 1, stray = line.y.findIndex((v, i) => !Number.isFinite(v) || line.nan?.[i] > 0);
    return { stray: stray < 0 ? null : { value: line.nan?.[stray] > 0 ? NaN : line.y[stray], at: this.exact(run, line, stray, "stray", v => !Number.isFinite(v)) }, count: line.count, last: (line.last ?? line.y)[end], at: this.page.settings.axis === "step" ? this.entry.runs.find(entry => entry.run.id === run.id)?.tag.last_step ?? line.x[end] : line.x[end],
      least: lows[low], leastAt: this.exact(run, line, low, "least", v => v === lows[low]), most: highs[high], mostAt: this.exact(run, line, high, "greatest", v => v === highs[high]) };
  }

  // The place of the first point of bucket i that passes the test: the bucket's until its points are here.
  exact(run, line, i, kind, test) {
    if (line.exact || line.n[i] === 1 || this.entry.runs.length > 1 && !this.wide) return line.x[i];
    line.places ??= new Map();
    const key = `${kind} ${i}`;
    if (!line.places.has(key)) {
      line.places.set(key, line.x[i]);
      const { tag } = this.entry.runs.find(entry => entry.run.id === run.id), o = this.origin(run);
      this.ask(run, tag, `&from=${line.x[i] + o}&to=${(line.x[i + 1] ?? Infinity) + o}`.replace("&to=Infinity", "")).then(part => {
        const k = part.exact ? part.y.findIndex(test) : -1;
        if (k < 0 || this.whole.get(run.id) !== line) return;
        line.places.set(key, part.x[k]);
        this.describe();
      }, () => {});
    }
    return line.places.get(key);
  }

  describe() {
    const show = { step: format, wall: clock, relative: duration }[this.page.settings.axis];
    const known = this.entry.runs.map(({ run }) => [run, this.facts(run)]).filter(([, facts]) => facts);
    if (known.length === 1) {
      const [, f] = known[0];
      this.foot.textContent = `last ${format(f.last)} · least ${format(f.least)} at ${show(f.leastAt)} · greatest ${format(f.most)} at ${show(f.mostAt)} · ${format(f.count)} points`;
    } else {
      const total = known.reduce((sum, [, f]) => sum + f.count, 0);
      this.foot.textContent = known.length ? `${known.length} runs · ${format(total)} points` : "";
    }
    this.foot.title = this.foot.textContent;
    for (const [run, { stray }] of known)
      if (stray) this.foot.prepend(h("span.bad", `${known.length > 1 ? `${run.name}: ` : ""}${format(stray.value)} from ${show(stray.at)} · `));
    this.table.replaceChildren();
    if (!this.wide || !known.length) return;
    this.table.append(h("table.dense", h("thead", h("tr", ["Run", "Points", "Last", "at", "Least", "at", "Greatest", "at"].map((t, i) => h(i ? "th.number" : "th", t)))),
      h("tbody", known.map(([run, f]) => h("tr", h("td", this.page.view.swatch(run), " ", run.name),
        [format(f.count), format(f.last), show(f.at), format(f.least), show(f.leastAt), format(f.most), show(f.mostAt)].map(text => h("td.number", text)))))));
  }
}

const flag = (value, initial) => value === undefined ? initial : value === "1";

// What cards of curves share; the link holds all of it.
export function scalarPage(view) {
  const { state } = view;
  const windows = new Map([...readMap(state.zoom)].map(([name, text]) => [name, text.split(",").map(v => v === "" ? null : Number(v))]));
  const settings = { smooth: Number(state.smooth ?? 0), axis: state.axis ?? "step", logx: flag(state.logx, false), logy: flag(state.logy, false), band: flag(state.band, true), full: state.full };
  return {
    view, settings, windows, thresholds: readMap(state.marks), full: null,
    setFull(card) {
      if (this.full && this.full !== card) this.full.setWide(false);
      this.full = card;
      view.set({ full: card.entry.name });
    },
    leaveFull(card) { if (this.full === card) { this.full = null; view.set({ full: null }); } },
  };
}

export default async function show(view) {
  const page = scalarPage(view), { settings, windows } = page;
  const redraw = () => tags.each(card => card.draw());
  const toggle = (name, key) => value => { settings[name] = value; view.set({ [key]: value ? "1" : "0" }); redraw(); };
  const logBox = checkbox("log y", settings.logy, toggle("logy", "logy"));
  const axis = value => {
    settings.axis = value;
    windows.clear();
    view.set({ axis: value === "step" ? null : value, zoom: null });
    tags.each(card => { card.chart.window = null; card.chart.history = []; card.backButton.hidden = card.allButton.hidden = true; card.load(); });
  };
  const tags = new TagPage(view, {
    kind: "scalars", title: "No scalars yet", text: "A SummaryCollector writes the loss by itself; any other number takes a line:",
    code: 'local record = ms.train.SummaryRecord("runs/first")\nrecord:add_value("scalar", "accuracy", 0.93)\nrecord:record(step)',
    tools: [
      slider("Smoothing", 0, 0.99, 0.01, settings.smooth, value => { settings.smooth = value; view.set({ smooth: value || null }); redraw(); }, v => v.toFixed(2)),
      segments([["step", "Step"], ["relative", "Relative", "time since the run began"], ["wall", "Time"]], settings.axis, axis),
      checkbox("log x", settings.logx, toggle("logx", "logx")), logBox,
      checkbox("extremes", settings.band, toggle("band", "band"), "the least and the greatest of points that are drawn together; with smoothing the points themselves"),
    ],
    card: entry => new ScalarCard(page, entry),
  });
  await tags.refresh();
  view.main.addEventListener("theme", redraw);
  return tags.handle({ keys: {
    y: ["log y", () => logBox.querySelector("input").click()],
    z: ["every chart: everything", () => tags.each(card => { if (card.chart.window) card.chart.all(); })],
    w: ["leave the wide chart", () => page.full?.setWide(false)],
  } });
}
