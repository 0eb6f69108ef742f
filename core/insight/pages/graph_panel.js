// The panel beside the graph: what is known of the selected node or group, with ways to others.
import { append, fill, format, h, plural } from "./dom.js";

const SHOWN = 60; // rows of a list; a button shows the rest

// A list that begins short.
function list(items, row) {
  const rows = h("div.graph-list", items.slice(0, SHOWN).map(row));
  if (items.length > SHOWN) {
    const more = h("button.plain", { onclick: () => { more.remove(); append(rows, items.slice(SHOWN).map((item, i) => row(item, SHOWN + i))); } }, `${items.length - SHOWN} more`);
    return [rows, more];
  }
  return rows;
}

const section = (title, ...children) => h("details.group", { open: true }, h("summary", title), children);

// page: { reveal(node), revealGroup(group, path), reach(way), routeFrom(), overlay…, name of group(id) }
export class GraphPanel {
  constructor(page) {
    this.page = page;
    this.element = h("aside.graph-panel.stack", { ariaLabel: "details" });
    this.about(null);
  }

  show(...children) { fill(this.element, ...children); }

  link(node, before = "") {
    return h("button.plain.graph-link", { title: node.scope ? `${node.scope}\n${node.name}` : node.name, onclick: () => this.page.reveal(node.id) },
      before ? h("span.quiet", before) : null, h("b", node.type), h("span.clip.quiet", node.name));
  }

  about(about) {
    if (!about) return this.show(h("p.quiet", "…"));
    const marks = Object.entries(about.marks).filter(([, count]) => count > 0);
    this.show(
      h("h2", about.name),
      h("table.pairs", h("tr", h("td", "operators"), h("td.number", format(about.operators))), marks.map(([name, count]) => h("tr", h("td", name), h("td.number", format(count))))),
      h("p.quiet", "Click selects, double click opens and closes a group, the wheel moves, Ctrl wheel zooms. Keys: ?"));
    const place = this.element.appendChild(h("div"));
    this.page.parts().then(parts => this.parts(place, parts)).catch(error => fill(place, h("p.bad", error.message)));
  }

  parts(place, { parts, repaired }) {
    append(place, [
      repaired ? h("p.quiet", `The file gives ${plural(repaired, "operator")} the scope of an equal part elsewhere; grouped by scopes they are shown in their own.`) : null,
      parts.length ? section("Equal parts", list(parts, part => h("button.plain.graph-link", { title: "show the first one", onclick: () => this.page.reveal(part.first[0]) },
        h("b", `${part.instances} × ${part.nodes}`), h("span.clip", part.label), h("span.quiet", `−${format(part.gain)}`)))) : h("p.quiet", "No parts of it are equal."),
    ]);
  }

  node(answer) {
    const { node } = answer, attributes = Object.entries(answer.attributes ?? {});
    const rows = [["name", node.name], ["result", node.result], ["scope", node.scope], ["in the file", answer.scope_in_file], ["line", answer.line], ["full name", answer.full_name], ["kind", answer.marks.join(", ")]];
    const links = (title, { count, nodes }) => count ? section(h("span", title, h("span", ` ${count}`)),
      list(nodes, l => this.link(l.node, title === "Inputs" ? `${l.place}${l.control ? " order" : ""}` : l.control ? "order" : "")),
      count > nodes.length ? h("p.quiet", `and ${count - nodes.length} more`) : null) : null;
    this.show(
      h("h2", node.type),
      h("table.pairs", rows.filter(([, text]) => text).map(([name, text]) => h("tr", h("td", name), h("td", text)))),
      h("div.row",
        h("button", { title: "all that it depends on (u)", onclick: () => this.page.reach("up") }, "Upstream"),
        h("button", { title: "all that depends on it (d)", onclick: () => this.page.reach("down") }, "Downstream"),
        h("button", { title: "then select another node (w)", onclick: () => this.page.routeFrom() }, "Way to …")),
      attributes.length ? section("Attributes", h("table.pairs", attributes.map(([name, value]) => h("tr", h("td", name), h("td.mono", value))))) : null,
      links("Inputs", answer.inputs), links("Users", answer.users),
      answer.equal ? section(h("span", "The same in equal parts", h("span", ` ${answer.equal.instance} of ${answer.equal.nodes.length}`)),
        h("div.row", answer.equal.nodes.map((id, i) => h("button.plain", { disabled: id === node.id, onclick: () => this.page.reveal(id) }, String(i + 1))))) : null);
  }

  group(answer) {
    const types = Object.entries(answer.types).sort((a, b) => b[1] - a[1]), most = types[0]?.[1] ?? 1;
    const { equal } = answer;
    this.show(
      h("h2", answer.name), h("p.quiet", plural(answer.operators, "operator")),
      h("div.row", h("button", { title: "Enter, or double click", onclick: () => this.page.toggleGroup(answer.id, answer.path) }, "Open or close")),
      equal ? section(h("span", "Equal", h("span", ` ${equal.instance} of ${equal.count}, ${equal.label}`)),
        list(equal.groups, g => h("button.plain.graph-link", { disabled: g.id === answer.id, onclick: () => this.page.revealGroup(g.id, g.path) }, h("span.clip", g.name)))) : null,
      equal?.differences.length ? section("What is different between them", list(equal.differences, d => h("div", h("b", `${d.type} `), d.attribute, h("div.mono.quiet", [...new Set(d.values)].slice(0, 8).join(" · "))))) : null,
      section("Operators", h("table.pairs", types.slice(0, SHOWN).map(([type, count]) => h("tr", h("td", type), h("td.number", format(count)), h("td", h("div.bar", h("i", { style: { width: `${100 * count / most}%` } }))))))));
  }

  found(text, { count, nodes }) {
    this.show(h("h2", `“${text}”`), h("p.quiet", plural(count, "node")), list(nodes, node => this.link(node)));
  }

  reached(way, name, { count, nodes }) {
    this.show(h("h2", way === "up" ? "Upstream" : "Downstream"), h("p.quiet", `${plural(count, "node")} ${way === "up" ? "that it depends on" : "that depend on it"}: ${name}. Nearest first:`),
      list(nodes, node => this.link(node)));
  }

  route(nodes) {
    this.show(h("h2", "Way"), nodes.length ? [h("p.quiet", plural(nodes.length, "node")), list(nodes, (node, i) => this.link(node, String(i + 1)))] : h("p", "There is no way between them, in either direction."));
  }

  difference(d) {
    const row = (sign, style) => node => h("button.plain.graph-link", { onclick: () => this.page.reveal(node.id) }, h(`span.${style}`, sign), h("b", node.type), h("span.clip.quiet", node.name));
    this.show(
      h("h2", `${d.before} → ${d.after}`),
      h("p.quiet", `${plural(d.same, "operator")} the same`),
      d.removed.length ? section(h("span", "Removed", h("span", ` ${d.removed.length}`)), list(d.removed, row("−", "bad"))) : null,
      d.added.length ? section(h("span", "Added", h("span", ` ${d.added.length}`)), list(d.added, node => h("div.graph-link", h("span.good", "+"), h("b", node.type), h("span.clip.quiet", node.name))),
        h("button", { onclick: () => this.page.other() }, "Show them in the other graph")) : null,
      d.changed.length ? section(h("span", "Changed", h("span", ` ${d.changed.length}`)), list(d.changed, change => h("div", row("~", "warn")(change.before),
        h("table.pairs", change.values.map(v => h("tr", h("td", v.name), h("td.mono", `${v.before || "∅"} → ${v.after || "∅"}`))))))) : null,
      !d.removed.length && !d.added.length && !d.changed.length ? h("p", "The two graphs are equal.") : null);
  }
}
