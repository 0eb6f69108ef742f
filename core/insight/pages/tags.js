// Pages that show one card for each tag: which runs have which tags, groups, a filter, and cards that are made when they come
// into view.
import { empty, fill, format, h, plural, whenSeen } from "./dom.js";
import { cached } from "./api.js";

const AT_ONCE = 48; // cards of a group; a button shows more
const OPEN = 150; // cards in groups that are open without having been opened

// A tag's group is its first part, but MindSpore's suffix /auto is no part of its own.
function groupOf(name) {
  const parts = name.replace(/\/auto$/, "").split("/");
  return parts.length > 1 ? parts[0] : "";
}

// [{ name, runs: [{ run, tag }] }] of the chosen runs, by name.
export async function tagsOf(view, kind) {
  const chosen = view.chosen.filter(run => run.kinds?.[kind]);
  const lists = await Promise.all(chosen.map(run => cached(`runs/${run.id}/tags`).catch(() => ({}))));
  const found = new Map();
  for (const [i, run] of chosen.entries()) {
    for (const tag of lists[i][kind] ?? []) {
      if (!found.has(tag.name)) found.set(tag.name, { name: tag.name, runs: [] });
      found.get(tag.name).runs.push({ run, tag });
    }
  }
  return [...found.values()].sort((a, b) => a.name.localeCompare(b.name, "en", { numeric: true }));
}

// What to say where the chosen runs have nothing of a kind.
export function nothing(view, kind, title, text, code) {
  if (!view.chosen.length) return empty("No run is ticked", "Tick runs at the left; “all” ticks every one that the filter finds.");
  const others = view.runs.filter(run => run.kinds?.[kind]);
  if (!others.length) return empty(title, text, code);
  return h("div.empty-state", h("h2", title.replace(/ yet$/, " in the ticked runs")), h("p", `${plural(others.length, "other run")} ${others.length === 1 ? "has" : "have"} some.`),
    h("p", h("button", { onclick: () => view.choose(others.slice(0, 10).map(run => run.id)) }, "Tick those")));
}

// options: kind, title, text, code (for the empty state), tools (elements), card(entry) -> { element, load(), entry }, wide
export class TagPage {
  constructor(view, options) {
    Object.assign(this, { view, ...options, cards: new Map(), limits: {} });
    this.input = h("input", { type: "search", size: 22, value: view.state.q ?? "", placeholder: "Find tags", title: "a part of the name, or a regular expression", ariaLabel: "find tags",
      oninput: () => { view.set({ q: this.input.value }); this.arrange(); } });
    this.count = h("span.quiet");
    this.host = h("div");
    fill(view.main, h("div.tools", this.input, this.count, options.tools ?? []), this.host);
  }

  async refresh() {
    const turn = this.turn = (this.turn ?? 0) + 1;
    const entries = await tagsOf(this.view, this.kind);
    if (turn !== this.turn) return;
    const before = this.entries;
    this.entries = entries;
    for (const entry of entries) {
      const card = this.cards.get(entry.name);
      if (card) card.entry = entry;
    }
    const same = before && before.length === entries.length && before.every((e, i) => e.name === entries[i].name);
    if (!same) this.arrange();
  }

  matches() {
    const text = this.input.value;
    let test = name => name.toLowerCase().includes(text.toLowerCase());
    try {
      const expression = new RegExp(text, "i");
      test = name => expression.test(name);
    } catch { /* while it is being typed it is searched as it stands */ }
    return this.entries.filter(entry => test(entry.name));
  }

  arrange() {
    const { view } = this;
    if (!this.entries.length) {
      this.count.textContent = "";
      fill(this.host, nothing(view, this.kind, this.title, this.text, this.code));
      return;
    }
    const list = this.matches(), groups = new Map();
    for (const entry of list) {
      const group = groupOf(entry.name);
      if (!groups.has(group)) groups.set(group, []);
      groups.get(group).push(entry);
    }
    this.count.textContent = list.length === this.entries.length ? plural(list.length, "tag") : `${format(list.length)} of ${plural(this.entries.length, "tag")}`;
    const names = [...groups.keys()].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
    let cards = 0;
    if (names.length === 1 && list.length) fill(this.host, this.grid(names[0], list));
    else fill(this.host, names.map(name => {
      const entries = groups.get(name);
      cards += Math.min(entries.length, AT_ONCE);
      return this.group(name, entries, cards <= OPEN || cards === Math.min(entries.length, AT_ONCE));
    }), list.length ? null : h("p.quiet", "No tag passes the filter."));
  }

  // Which groups were opened or shut by hand is part of the link: names with + or - before.
  group(name, entries, openAtFirst) {
    const key = encodeURIComponent(name || "-").replaceAll("~", "%7E"), by = new Set((this.view.state.groups ?? "").split("~").filter(Boolean)), body = h("div");
    const open = by.has(`+${key}`) || openAtFirst && !by.has(`-${key}`);
    const element = h("details.group", { open, ontoggle: () => {
      if (element.open && !body.firstChild) body.append(this.grid(name, entries));
      const now = new Set((this.view.state.groups ?? "").split("~").filter(Boolean)), before = now.size;
      now.delete(`+${key}`);
      now.delete(`-${key}`);
      if (element.open !== openAtFirst) now.add(`${element.open ? "+" : "-"}${key}`);
      else if (now.size === before) return;
      this.view.set({ groups: [...now].join("~") });
    } }, h("summary", name || "General", h("span", format(entries.length))), body);
    if (open) body.append(this.grid(name, entries));
    return element;
  }

  grid(name, entries) {
    const most = this.limits[name] ?? AT_ONCE, grid = h(this.wide ? "div.stack" : "div.cards");
    for (const entry of entries.slice(0, most)) {
      let card = this.cards.get(entry.name);
      if (!card) {
        card = this.card(entry);
        this.cards.set(entry.name, card);
        whenSeen(card.element, () => { card.seen = true; card.load(); });
      }
      grid.append(card.element);
    }
    if (entries.length <= most) return grid;
    const more = h("button", { onclick: () => { this.limits[name] = most + 4 * AT_ONCE; more.parentNode.replaceWith(this.grid(name, entries)); } },
      `Show ${Math.min(entries.length - most, 4 * AT_ONCE)} more of ${format(entries.length)}`);
    return h("div", grid, h("p", more));
  }

  each(f) { for (const card of this.cards.values()) if (card.seen) f(card); }

  // What a page returns to the shell, with more of its own.
  handle(more = {}) {
    return {
      update: async ids => {
        await this.refresh();
        this.each(card => { if (card.entry.runs.some(({ run }) => ids.includes(run.id))) card.load(); });
      },
      choose: async () => {
        await this.refresh();
        if (!this.entries.length) return;
        this.each(card => card.load());
      },
      ...more,
      keys: { f: ["find tags", () => this.input.focus()], ...more.keys },
    };
  }
}
