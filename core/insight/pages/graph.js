// The graph page: a network as boxes and edges, grouped by scopes or by equal parts. The server lays out what is open; the link holds
// the graph, what is open, hidden and selected.
import { cached, file, get } from "./api.js";
import { checkbox, download, empty, failure, fill, h, isDark, segments, select } from "./dom.js";
import { GraphCanvas } from "./graph_canvas.js";
import { GraphPanel } from "./graph_panel.js";
import { GraphView, NODE, ranges } from "./graph_view.js";

const MARKS = [["gradients", "gradients"], ["optimizer", "optimizer"], ["plumbing", "plumbing", "Load, MakeTuple, TupleGetItem, Depend, UpdateState"],
  ["constants", "constants"], ["parameters", "parameters"], ["inputs", "inputs"]];

async function graphs(view) {
  const lists = await Promise.all(view.chosen.filter(run => run.kinds?.graphs).map(async run => (await cached(`runs/${run.id}/graphs`)).map(g => ({ ...g, run }))));
  return lists.flat();
}

class GraphPage {
  constructor(view, graph, all) {
    Object.assign(this, { view, graph, all });
    this.canvas = new GraphCanvas({ select: item => this.pick(item), toggle: item => this.toggle(item) });
    this.panel = new GraphPanel(this);
    this.tools = h("div.tools");
    this.said = h("span.quiet", { role: "status" });
    this.legend = h("span");
    this.turn = 0;
  }

  ask(path, parameters = {}) {
    const query = new URLSearchParams(parameters).toString();
    return get(`graphs/${this.graph.id}${path}${query ? `?${query}` : ""}`);
  }

  // What chooses a picture.
  get choice() { return { by: this.by, hide: this.hidden.size ? [...this.hidden].join(",") : "nothing" }; }

  async begin() {
    const { state } = this.view;
    // Where the link chooses nothing the server knows what it shows at first: both are asked for at once.
    const first = state.by || state.hide ? null : this.pictureOf({ open: state.open ?? "auto" });
    first?.catch(() => {});
    this.about = await this.ask("");
    this.by = ["scopes", "file", "parts", "none"].includes(state.by) ? state.by : this.about.by;
    this.hidden = new Set((state.hide ?? this.about.hide).split(",").filter(name => MARKS.some(([mark]) => mark === name)));
    this.open = state.open ?? "auto";
    this.drawTools();
    fill(this.view.main, h("div.graph-page", this.tools, h("div.graph-body", this.canvas.element, this.panel.element)));
    this.canvas.resize();
    await this.load(first);
    this.canvas.begin();
    this.panel.about(this.about);
    if (state.node !== undefined) await this.reveal(Number(state.node));
    if (state.diff) await this.compare(state.diff);
  }

  drawTools() {
    const others = this.all.filter(g => g.id !== this.graph.id), nameOf = g => this.all.some(o => o.run.id !== g.run.id) ? `${g.run.name}: ${g.name}` : g.name;
    this.search = h("input", { type: "search", placeholder: "Find nodes (f)", ariaLabel: "find nodes by name, type or scope",
      onkeydown: event => { if (event.key === "Enter") this.find(this.search.value); } });
    const file = h("input", { type: "file", accept: ".json,application/json", hidden: true, ariaLabel: "numbers of nodes", onchange: () => this.overlay(file.files[0]) });
    const groupings = [["scopes", "Scopes", "scopes; equal parts correct those that the file has wrong"], ["file", "File's scopes", "scopes as the file has them"],
      ["parts", "Equal parts", "the parts of the graph that are equal, one inside the other"], ["none", "Flat", "no groups"]].filter(([name]) => this.about.scopes || name === "parts" || name === "none");
    fill(this.tools,
      this.all.length > 1 ? select(this.all.map(g => [g.id, nameOf(g)]), this.graph.id, id => this.view.go("graph", { graph: id }), "graph") : h("b", nameOf(this.graph)),
      segments(groupings, this.by, by => { this.by = by; this.change("auto"); }), this.search,
      MARKS.filter(([name]) => this.about.marks[name]).map(([name, text, title]) => checkbox(text, !this.hidden.has(name), on => {
        this.hidden[on ? "delete" : "add"](name);
        this.change(this.open);
      }, title)),
      checkbox("colour equal parts", this.canvas.equal, on => { this.canvas.equal = on; this.canvas.recolour(); }),
      others.length ? select([["", "compare with …"], ...others.map(g => [g.id, nameOf(g)])], this.view.state.diff ?? "", id => this.compare(id), "compare with another graph") : null,
      h("button", { title: "the whole (0)", onclick: () => this.canvas.fit() }, "Fit"),
      h("button", { title: "open everything", onclick: () => this.change("all") }, "Open all"),
      h("button", { title: "close everything", onclick: () => this.change("") }, "Close all"),
      h("button", { title: "colours by the numbers of a JSON file: {name of a node: number}", onclick: () => file.click() }, "Numbers …"), file,
      h("button", { onclick: () => this.save() }, "SVG"), this.legend, this.said);
  }

  async change(open) {
    this.open = open;
    this.view.set({ by: this.by === this.about.by ? null : this.by, hide: this.choice.hide === this.about.hide ? null : this.choice.hide });
    await this.guarded(() => this.load());
    this.canvas.begin();
  }

  // What a user did is not undone by an error: it is said beside the tools.
  async guarded(f) {
    try {
      await f();
    } catch (error) {
      this.said.textContent = error.message;
      this.said.className = "bad";
    }
  }

  say(text) {
    this.said.className = "quiet";
    this.said.textContent = text;
  }

  async pictureOf(parameters) {
    return new GraphView(await (await file(`graphs/${this.graph.id}/view?${new URLSearchParams(parameters)}`)).arrayBuffer());
  }

  async load(asked) {
    const turn = ++this.turn, begun = performance.now();
    const picture = await (asked ?? this.pictureOf({ ...this.choice, open: this.open }));
    if (turn !== this.turn) return;
    this.picture = picture;
    if (this.open !== "all") this.open = ranges(picture.open);
    this.view.set({ graph: this.graph.id, open: this.open === "" ? "," : this.open });
    this.canvas.show(picture);
    if (this.numbers) await this.applyNumbers();
    this.loaded = performance.now() - begun;
    this.say(`${picture.count} boxes`);
  }

  get selected() {
    const i = this.canvas.selected;
    return i < 0 ? null : { item: i, id: this.picture.id[i], isNode: this.picture.kind[i] === NODE, name: this.picture.label(i) };
  }

  async pick(item) {
    this.canvas.marked = null;
    this.canvas.select(item);
    const chosen = this.selected;
    this.view.set({ node: chosen?.isNode ? chosen.id : null });
    if (!chosen) return this.panel.about(this.about);
    if (this.from !== undefined && chosen.isNode) return this.guarded(() => this.route(chosen.id));
    await this.guarded(async () => {
      const answer = await this.ask(chosen.isNode ? `/nodes/${chosen.id}` : `/groups/${chosen.id}`, { by: this.by, hide: this.choice.hide });
      if (this.canvas.selected !== item) return;
      if (chosen.isNode) this.panel.node(answer);
      else this.panel.group(answer);
    });
  }

  // A group stays where it is on the screen when it is opened or closed.
  async toggle(item) {
    if (item < 0 || this.picture.kind[item] === NODE) return;
    const id = this.picture.id[item], open = new Set(this.picture.open), { canvas } = this;
    if (!open.delete(id)) open.add(id);
    const [x, y] = [this.picture.x[item] - canvas.left, this.picture.y[item] - canvas.top];
    this.open = ranges(open) || ",";
    await this.guarded(() => this.load());
    const now = this.picture.itemOfGroup.get(id);
    if (now === undefined) return;
    canvas.left = this.picture.x[now] - x;
    canvas.top = this.picture.y[now] - y;
    canvas.select(now);
  }

  toggleGroup(id, path) {
    const item = this.picture.itemOfGroup.get(id);
    return item === undefined ? this.revealGroup(id, path) : this.toggle(item);
  }

  async opened(path) {
    const open = new Set(this.picture.open);
    if (path.every(group => open.has(group))) return;
    for (const group of path) open.add(group);
    this.open = ranges(open);
    await this.load();
  }

  async reveal(node) {
    await this.guarded(async () => {
      const answer = await this.ask(`/nodes/${node}`, { by: this.by, hide: this.choice.hide });
      await this.opened(answer.node.path);
      const item = this.picture.place(node, answer.node.path);
      const shown = item >= 0 && this.picture.kind[item] === NODE;
      this.canvas.select(item, true);
      this.view.set({ node });
      this.panel.node(answer);
      if (!shown) this.say("this node is hidden: tick its kind to see it");
    });
  }

  async revealGroup(group, path) {
    await this.guarded(async () => {
      await this.opened(path.slice(0, -1));
      const item = this.picture.itemOfGroup.get(group);
      if (item === undefined) return;
      this.canvas.select(item, true);
      await this.pick(item);
    });
  }

  parts() { return this.ask("/parts"); }

  async find(text) {
    if (!text.trim()) return this.panel.about(this.about);
    await this.guarded(async () => {
      const found = await this.ask("/names", { q: text.trim(), limit: 500, by: this.by, hide: this.choice.hide });
      this.panel.found(text.trim(), found);
      this.mark(found.nodes);
      if (found.nodes.length === 1) await this.reveal(found.nodes[0].id);
    });
  }

  mark(nodes) {
    this.canvas.marked = new Set(nodes.map(node => this.picture.place(node.id, node.path)));
    this.canvas.redraw();
  }

  async reach(way) {
    const chosen = this.selected;
    if (!chosen?.isNode) return this.say("select a node first");
    await this.guarded(async () => {
      const answer = await this.ask("/reach", { node: chosen.id, way, ...this.choice, open: this.open });
      this.canvas.marked = new Set([chosen.item, ...answer.items]);
      this.canvas.redraw();
      this.panel.reached(way, chosen.name, answer);
    });
  }

  routeFrom() {
    if (!this.selected?.isNode) return this.say("select a node first");
    this.from = this.selected.id;
    this.say("select the node at the other end; Escape ends it");
  }

  async route(to) {
    const { nodes } = await this.ask("/route", { from: this.from, to, by: this.by, hide: this.choice.hide });
    this.from = undefined;
    this.say("");
    this.mark(nodes);
    this.panel.route(nodes);
  }

  async compare(id) {
    this.view.set({ diff: id || null });
    this.canvas.states = new Map();
    await this.guarded(async () => {
      if (id) {
        const d = await this.ask(`/diff/${id}`);
        for (const node of d.removed) this.canvas.states.set(node.id, "removed");
        for (const change of d.changed) this.canvas.states.set(change.before.id, "changed");
        this.panel.difference(d);
      } else {
        this.panel.about(this.about);
      }
    });
    this.canvas.recolour();
  }

  other() { this.view.go("graph", { graph: this.view.state.diff, diff: this.graph.id }); }

  async overlay(file) {
    if (!file) return;
    await this.guarded(async () => {
      this.numbers = await file.text();
      await this.applyNumbers();
    });
  }

  async applyNumbers() {
    let answer;
    try {
      answer = await get(`graphs/${this.graph.id}/overlay?${new URLSearchParams(this.choice)}`,
        { method: "POST", headers: { "Content-Type": "application/json" }, body: this.numbers });
    } catch (error) {
      this.numbers = null;
      throw error;
    }
    this.canvas.heat = answer;
    this.canvas.recolour();
    fill(this.legend, h("span.label", `${answer.known} of ${answer.given} numbers, up to ${answer.most}`, h("button.plain", { title: "without numbers", onclick: () => {
      this.numbers = this.canvas.heat = null;
      fill(this.legend);
      this.canvas.recolour();
    } }, "✕")));
  }

  async save() {
    await this.guarded(async () => {
      const choice = new URLSearchParams({ ...this.choice, open: this.open, dark: isDark() ? 1 : 0 });
      download(`${this.graph.name}.svg`, await (await file(`graphs/${this.graph.id}/svg?${choice}`)).blob());
    });
  }

  clear() {
    this.from = undefined;
    this.pick(-1);
  }
}

export default async function show(view) {
  const all = await graphs(view);
  if (!all.length) {
    fill(view.main, empty("No graph in the chosen runs", "A summary holds the graph of the network that is trained; graph files (MindIR, ONNX, MindSpore's .pb) in a run's folder are shown too:",
      'ms.export(net, x, { file_name = "runs/first/net.mindir", file_format = "MINDIR" })'));
    return {};
  }
  view.style("graph.css");
  // Places on the canvas are counted from the first picture on: its size has to be that of the style.
  const style = document.head.querySelector("link[href='graph.css']");
  if (!style.sheet) await new Promise(done => { style.onload = style.onerror = done; });
  const page = new GraphPage(view, all.find(g => g.id === view.state.graph) ?? all[0], all);
  try {
    await page.begin();
  } catch (error) {
    page.canvas.close();
    fill(view.main, failure(error));
    return {};
  }
  view.main.addEventListener("theme", () => page.canvas.recolour());
  view.main.graphPage = page;
  return {
    resize: () => page.canvas.resize(),
    close: () => page.canvas.close(),
    keys: {
      "f": ["find nodes", () => page.search.focus()],
      "0": ["the whole", () => page.canvas.fit()],
      "1": ["as large as life", () => page.canvas.zoom(1 / page.canvas.scale)],
      "+": ["nearer", () => page.canvas.zoom(1.3)],
      "-": ["farther", () => page.canvas.zoom(1 / 1.3)],
      "Enter": ["open or close the selected group", () => page.toggle(page.canvas.selected)],
      "u": ["upstream of the selected node", () => page.reach("up")],
      "d": ["downstream of it", () => page.reach("down")],
      "w": ["way to another node", () => page.routeFrom()],
      "Escape": ["nothing selected", () => page.clear()],
    },
  };
}
