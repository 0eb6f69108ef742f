// Texts of a tag, the newest first, as they are: nothing in them is markup.
import { checkbox, clock, failure, fill, format, h } from "./dom.js";
import { cached } from "./api.js";
import { TagPage } from "./tags.js";

const AT_FIRST = 20;

class TextCard {
  constructor(view, entry, settings) {
    Object.assign(this, { view, entry, settings, most: AT_FIRST });
    this.body = h("div.scroll");
    this.element = h("article.card.wide", { ariaLabel: entry.name }, h("div.head", h("h3", entry.name)), this.body);
  }

  async load() {
    try {
      const lists = await Promise.all(this.entry.runs.map(({ run, tag }) => cached(`runs/${run.id}/texts/${tag.id}`)));
      this.records = lists.flatMap((list, i) => list.map(record => ({ ...record, run: this.entry.runs[i].run }))).sort((a, b) => b.step - a.step || a.run.name.localeCompare(b.run.name));
      this.draw();
    } catch (error) {
      fill(this.body, failure(error));
    }
  }

  draw() {
    const wanted = this.settings.find.toLowerCase(), list = (this.records ?? []).filter(record => record.text.toLowerCase().includes(wanted));
    const rows = list.slice(0, this.most).map(record => h("tr", h("td.number", { title: clock(record.wall) }, format(record.step)),
      h("td", { style: { "white-space": "nowrap" } }, this.view.swatch(record.run), " ", record.run.name),
      h("td", h(this.settings.mono ? "pre.text.mono" : "pre.text", { style: { "font-family": this.settings.mono ? "" : "inherit" } }, record.text))));
    fill(this.body, h("table", h("thead", h("tr", h("th.number", "Step"), h("th", "Run"), h("th", "Text"))), h("tbody", rows)),
      list.length > this.most ? h("p", h("button", { onclick: () => { this.most *= 4; this.draw(); } }, `Show more of ${list.length}`)) : null);
  }
}

export default async function show(view) {
  const settings = { find: view.state.find ?? "", mono: view.state.mono === "1" };
  const tags = new TagPage(view, {
    kind: "texts", title: "No texts yet", text: "Any text takes a line:", code: 'record:add_value("text", "sample", answer)\nrecord:record(step)', wide: true,
    tools: [h("input", { type: "search", placeholder: "Find in the texts", value: settings.find, ariaLabel: "find in the texts", oninput: event => { settings.find = event.target.value; view.set({ find: settings.find }); tags.each(card => card.draw()); } }),
      checkbox("fixed width", settings.mono, value => { settings.mono = value; view.set({ mono: value ? "1" : null }); tags.each(card => card.draw()); })],
    card: entry => new TextCard(view, entry, settings),
  });
  await tags.refresh();
  return tags.handle();
}
