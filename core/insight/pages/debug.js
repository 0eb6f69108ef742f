// A program under watch (ms.insight.watch with this server as its control): where it stands, the nodes of its step, figures and
// elements of their tensors, what led to a node, the step before; and how it goes on.
import { append, empty, failure, fill, format, h, plural } from "./dom.js";
import { get, number, post } from "./api.js";

const AGAIN = 1500; // ms until a server that does not answer is asked again
const BETWEEN = 200; // ms between two questions about a program that runs
const MOST_ROWS = 1000; // of nodes that are shown at once

const EXAMPLE = 'local server = ms.insight.start { dir = "runs" }\nlocal step = ms.insight.watch(train_step, { control = server, begin = "node", keep = { "conv2d" } })\nfor i = 1, 100 do step(x, y) end';
const REASONS = { hit: "a watchpoint was hit", node: "the next node", step: "the end of a step", pause: "a pause" };

const pause = time => new Promise(resolve => { setTimeout(resolve, time); });
const command = body => post("debug", body);

// min, max and the like of a tensor as a row.
function figuresRow(f) {
  const odd = [[f.nan, "NaN"], [f.positive_infinity, "∞"], [f.negative_infinity, "−∞"]].filter(([count]) => count > 0).map(([count, name]) => `${format(count)} ${name}`);
  return h("tr", h("td", f.name), h("td", f.from ?? ""), h("td", `${f.dtype ?? ""} ${f.shape ?? ""}`),
    ["min", "max", "mean", "abs_mean"].map(key => h("td.number", format(number(f[key])))), h("td.number", format(f.zeros)),
    h(odd.length ? "td.bad" : "td", odd.join(", ")));
}

const figuresTable = list => h("table.dense", h("thead", h("tr", ["Tensor", "From", "Type"].map(text => h("th", text)), ["Min", "Max", "Mean", "Mean of |x|", "Zeros"].map(text => h("th.number", text)), h("th", "Not finite"))),
  h("tbody", list.map(figuresRow)));

const sourceOf = source => source?.lines?.length
  ? h("pre.text.mono", source.lines.map((text, i) => {
    const at = source.first + i, line = `${String(at).padStart(5)}  ${text}\n`;
    return at === source.line ? h("strong.accent", line) : line;
  })) : null;

class Debugger {
  constructor(view) {
    Object.assign(this, { view, version: null, nodes: [], step: null, chosen: null, about: {}, state: "" });
    this.head = h("div.tools");
    this.note = h("div");
    this.list = h("div.panel.scroll");
    this.node = h("div.panel");
    this.kept = h("div.panel");
    this.hits = h("div.panel");
    this.body = h("div.stack", h("div.columns", this.list, this.node), this.kept, this.hits);
  }

  async follow() {
    while (!this.closed) {
      try {
        const told = await get(this.version === null ? "debug" : `debug?after=${this.version}`);
        if (this.closed) return;
        this.note.replaceChildren();
        if (told.version !== this.version) await this.take(told);
        if (told.state === "runs") await pause(BETWEEN);
      } catch (error) {
        if (this.closed) return;
        fill(this.note, failure(error));
        await pause(AGAIN);
      }
    }
  }

  async take(told) {
    Object.assign(this, { version: told.version, state: told.state, about: told.about });
    if (told.state === "none") {
      fill(this.view.main, empty("No program is under watch", "A session whose server this is shows its training here, step by step and node by node:", EXAMPLE));
      return;
    }
    if (!this.body.isConnected) fill(this.view.main, this.note, this.head, this.body);
    const stands = told.state === "stands";
    if (stands) await this.fetchNodes();
    // One turn draws all of a stop: what is pressed belongs to the stop that the head names.
    this.drawHead();
    this.drawHits();
    if (!stands) return;
    this.drawNodes();
    this.drawKept();
    await this.choose(told.about.node?.name ?? null);
  }

  // The nodes since the last stop of this step.
  async fetchNodes() {
    if (this.step !== this.about.step || this.nodes.length > this.about.count) this.nodes = [];
    this.step = this.about.step;
    while (this.nodes.length < this.about.count) {
      const { nodes } = await command({ command: "nodes", from: this.nodes.length + 1 });
      if (!nodes.length) break;
      this.nodes.push(...nodes);
    }
  }

  async say(body) {
    try {
      await command(body);
    } catch (error) {
      fill(this.note, failure(error));
    }
  }

  drawHead() {
    const stands = this.state === "stands", go = (text, title, body) => h("button", { title, disabled: !stands, onclick: () => this.say(body) }, text);
    fill(this.head, h("strong", stands ? `Stands in step ${format(this.about.step)}: ${REASONS[this.about.reason] ?? this.about.reason}` : `Runs, step ${format(this.about.step)}`),
      go("Next node", "n", { command: "node" }), go("Next step", "s", { command: "step" }), go("To the next hit", "c", { command: "hit" }),
      h("button", { title: "p: at the end of the step", disabled: stands, onclick: () => this.say({ command: "pause" }) }, "Pause"),
      go("End the program", "", { command: "terminate" }));
  }

  drawNodes() {
    const first = Math.max(0, this.nodes.length - MOST_ROWS);
    fill(this.list, h("h2", `${plural(this.nodes.length, "node")} of the step`), first ? h("p.quiet", `the last ${format(MOST_ROWS)}`) : null,
      h("table.dense", h("tbody", this.nodes.slice(first).map(node => {
        const row = h("tr", { tabIndex: 0, onclick: () => this.choose(node.name), onkeydown: event => { if (event.key === "Enter") this.choose(node.name); } },
          h("td.number", format(node.index)), h("td", node.name), h("td.quiet", node.place));
        row.dataset.node = node.name;
        return row;
      }))));
    this.list.scrollTop = this.list.scrollHeight;
  }

  async choose(name) {
    this.chosen = name;
    for (const row of this.list.querySelectorAll("tr")) row.classList.toggle("picked", row.dataset.node === name);
    if (name === null) { fill(this.node, h("h2", "No node has run in this step")); return; }
    try {
      const { node, upstream, source } = await command({ command: "look", name });
      if (this.chosen !== name) return;
      this.drawNode(node, upstream, source);
    } catch (error) {
      fill(this.node, failure(error));
    }
  }

  drawNode(node, upstream, source) {
    const values = h("div"), known = list => (list?.length ? figuresTable(list) : h("p.quiet", "figures are those of the node at which the program stands"));
    const look = async result => {
      try {
        const answer = await command({ command: "values", result });
        fill(values, h("p.quiet", `${answer.dtype} ${answer.shape}, the first ${format(answer.values.length)} of ${plural(answer.size, "element")}`),
          h("pre.text.mono", answer.values.map(value => (typeof value === "boolean" ? String(value) : format(number(value)))).join(" ")));
      } catch (error) {
        fill(values, failure(error));
      }
    };
    fill(this.node, h("h2", node.name), h("p.quiet", node.place), sourceOf(source), h("h3", "Results"), known(node.results),
      node.results ? h("div.row", node.results.map((f, i) => h("button", { onclick: () => look(i) }, `Elements of ${f.name}`))) : null, values,
      h("h3", "Operands"), node.inputs ? known(node.inputs) : h("p", node.operands.map(o => o.parameter ?? this.nodes[o.node - 1]?.name ?? "from outside").join(", ")),
      h("h3", "What led to it"), upstream.length
        ? h("table.dense", h("tbody", upstream.map(n => h("tr", { onclick: () => this.choose(n.name) }, h("td", { style: { "padding-left": `${12 * (n.level ?? 1)}px` } }, n.name), h("td.quiet", n.place)))))
        : h("p.quiet", "nothing in this step"));
  }

  drawKept() {
    const names = this.about.kept ?? [], shown = h("div");
    const compare = async name => {
      try {
        const c = await command({ command: "compare", name });
        fill(shown, h("p", `${format(c.unequal)} of ${plural(c.count, "element")} differ, by ${format(number(c.largest))} at most and ${format(number(c.mean))} in the mean`),
          figuresTable([{ ...c.now, name: `${name} now` }, { ...c.before, name: `${name} a step before` }]));
      } catch (error) {
        fill(shown, failure(error));
      }
    };
    fill(this.kept, h("h2", "Against the step before"), names.length ? h("div.row", names.map(name => h("button", { onclick: () => compare(name) }, name))) : h("p.quiet", "nothing is kept: { keep = { … } }"), shown);
  }

  drawHits() {
    const list = this.about.hits ?? [];
    fill(this.hits, h("h2", plural(list.length, "hit")), list.map(hit => h("pre.text", hit.text)));
  }
}

export default async function show(view) {
  const page = new Debugger(view);
  append(view.main, h("p.quiet", "…"));
  page.take(await get("debug")).catch(error => fill(page.note, failure(error))).finally(() => page.follow());
  const key = body => () => page.say(body);
  return {
    close: () => { page.closed = true; },
    choose() {},
    keys: {
      n: ["the next node", key({ command: "node" })], s: ["the end of the step", key({ command: "step" })],
      c: ["the next hit", key({ command: "hit" })], p: ["pause at the end of the step", key({ command: "pause" })],
    },
  };
}
