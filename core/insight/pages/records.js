// Cards of records that are looked at one step at a time: pictures, sounds, tensors, curves of precision. One slider for all runs of
// a card; of each run the last record at or before the step is shown.
import { clock, failure, fill, format, h } from "./dom.js";
import { cached } from "./api.js";
import { readMap, writeMap } from "./scalars.js";

export class RecordCard {
  // show(run, tag, record, list) -> element; kept elements may be given back again.
  constructor(page, entry, kind, show, wide) {
    Object.assign(this, { page, entry, kind, show, lists: [] });
    this.slider = h("input", { type: "range", min: 0, max: 0, ariaLabel: `step of ${entry.name}`, style: { width: "auto", flex: "1 1 80px" }, oninput: () => this.pick(Number(this.slider.value)) });
    this.label = h("span.quiet.number");
    this.playButton = h("button.plain", { title: "play", onclick: () => this.play() }, "▶");
    this.controls = h("div.row", { style: { "flex-wrap": "nowrap" } }, this.playButton, this.slider, this.label);
    this.body = h("div", { style: { "margin-top": "6px" } });
    this.element = h(wide ? "article.card.wide" : "article.card", { ariaLabel: entry.name }, h("div.head", h("h3", { title: entry.name }, entry.name)), this.controls, this.body);
  }

  async load() {
    const turn = this.turn = (this.turn ?? 0) + 1, { runs, name } = this.entry;
    try {
      const lists = await Promise.all(runs.map(({ run, tag }) => cached(`runs/${run.id}/${this.kind}/${tag.id}`)));
      if (turn !== this.turn) return;
      this.lists = lists.map((list, i) => ({ ...runs[i], list })).filter(({ list }) => list.length);
    } catch (error) {
      if (turn === this.turn) fill(this.body, failure(error));
      return;
    }
    const atEnd = !this.steps || this.at === this.steps.at(-1);
    this.steps = [...new Set(this.lists.flatMap(({ list }) => list.map(record => record.step)))].sort((a, b) => a - b);
    this.slider.max = this.steps.length - 1;
    this.controls.hidden = this.steps.length < 2;
    const wanted = this.page.at.get(name);
    if (wanted !== undefined) this.at = Number(wanted);
    else if (atEnd) this.at = this.steps.at(-1); // what is being written is followed
    this.draw();
  }

  pick(index) {
    this.at = this.steps[index];
    const last = index === this.steps.length - 1;
    if (last) this.page.at.delete(this.entry.name); else this.page.at.set(this.entry.name, String(this.at));
    this.page.view.set({ at: writeMap(this.page.at) });
    this.draw();
  }

  play() {
    if (this.timer) { clearInterval(this.timer); this.timer = null; this.playButton.textContent = "▶"; return; }
    this.playButton.textContent = "❚❚";
    this.timer = setInterval(() => {
      if (!this.element.isConnected) return this.play();
      this.pick((this.steps.indexOf(this.at) + 1) % this.steps.length);
    }, 500);
  }

  draw() {
    if (!this.steps?.length) return; // not here yet, or gone
    const index = Math.max(0, this.steps.findLastIndex(step => step <= this.at));
    this.slider.value = index;
    this.label.textContent = `step ${format(this.at)}`;
    const shown = this.lists.map(({ run, tag, list }) => [run, tag, list.findLast(record => record.step <= this.at) ?? list[0], list]);
    this.label.title = shown[0] ? clock(shown[0][2].wall) : "";
    fill(this.body, this.arrange(shown.map(parts => this.show(...parts, this))));
  }

  arrange(elements) { return elements; }
}

export const runTitle = (view, run, ...more) =>
  h("div.row", { style: { "flex-wrap": "nowrap" } }, view.swatch(run), h("span.clip", { title: run.name }, run.name), h("span.quiet.clip", more));

// The page object of such cards: which step each shows is part of the link.
export const recordPage = view => ({ view, at: readMap(view.state.at) });
