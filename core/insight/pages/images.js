// Pictures of a step, with brightness, contrast and size.
import { h, segments, slider } from "./dom.js";
import { url } from "./api.js";
import { RecordCard, recordPage, runTitle } from "./records.js";
import { TagPage } from "./tags.js";

const MOST_KEPT = 300;
const SIZES = { small: 120, medium: 220, large: 420 };

export default async function show(view) {
  const page = recordPage(view), look = { light: Number(view.state.light ?? 1), contrast: Number(view.state.contrast ?? 1), size: view.state.size ?? "medium" };
  const style = () => {
    view.main.style.setProperty("--picture", `${SIZES[look.size]}px`);
    view.main.style.setProperty("--filter", `brightness(${look.light}) contrast(${look.contrast})`);
  };
  const set = (name, initial) => value => { look[name] = value; view.set({ [name]: value === initial ? null : value }); style(); };
  const figures = new Map(); // by address; what is shown again is not fetched again
  const times = v => `${v.toFixed(1)}×`;
  style();
  function figure(run, tag, record, list, card) {
    const address = url(`runs/${run.id}/images/${tag.id}/${record.index}`);
    if (figures.has(address)) return figures.get(address);
    const image = h("img.filtered", { src: address, alt: `${card.entry.name} of ${run.name} at step ${record.step}`, onclick: () => enlarge(address, image.alt) });
    const element = h("figure", { style: { margin: 0, "min-width": 0 } }, h("div.picture", image), runTitle(view, run, ` ${record.step}${record.width ? ` · ${record.width}×${record.height}` : ""}`));
    if (figures.size > MOST_KEPT) figures.clear();
    figures.set(address, element);
    return element;
  }
  function enlarge(address, text) {
    const dialog = h("dialog", { onclose: () => dialog.remove(), onclick: () => dialog.close() }, h("div.picture.full", h("img.filtered", { src: address, alt: text })), h("p.quiet", text, " · ", h("a", { href: address, download: "" , onclick: e => e.stopPropagation() }, "save")));
    document.body.append(dialog);
    dialog.showModal();
  }
  const tags = new TagPage(view, {
    kind: "images", title: "No pictures yet", text: "A SummaryCollector writes the first picture of a batch; others take a line:", wide: true,
    code: 'record:add_value("image", "input", batch)   -- (N, C, H, W) or (C, H, W)\nrecord:record(step)',
    tools: [segments([["small", "Small"], ["medium", "Medium"], ["large", "Large"]], look.size, set("size", "medium")),
      slider("Brightness", 0.2, 3, 0.1, look.light, set("light", 1), times), slider("Contrast", 0.2, 3, 0.1, look.contrast, set("contrast", 1), times)],
    card: entry => {
      const card = new RecordCard(page, entry, "images", figure, true);
      card.arrange = elements => h("div.pictures", elements);
      return card;
    },
  });
  await tags.refresh();
  return tags.handle();
}
