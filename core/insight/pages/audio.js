// Sounds of a step, with their form.
import { format, h } from "./dom.js";
import { url } from "./api.js";
import { RecordCard, recordPage, runTitle } from "./records.js";
import { TagPage } from "./tags.js";

export default async function show(view) {
  const page = recordPage(view), players = new Map();
  function player(run, tag, record) {
    const address = url(`runs/${run.id}/audio/${tag.id}/${record.index}`);
    if (!players.has(address)) {
      const facts = [record.rate ? `${format(record.rate)} Hz` : "", record.frames && record.rate ? `${(record.frames / record.rate).toFixed(2)} s` : ""].filter(Boolean).join(" · ");
      players.set(address, h("div", runTitle(view, run, ` ${record.step}${facts ? ` · ${facts}` : ""}`),
        h("audio", { controls: true, preload: "metadata", src: address, style: { width: "100%", height: "36px" } }), h("div.row", h("a", { href: address, download: "" }, "save"))));
    }
    return players.get(address);
  }
  const tags = new TagPage(view, {
    kind: "audio", title: "No sounds yet", text: "Samples between -1 and 1 take a line:", code: 'record:add_value("audio", "speech", { data = samples, sample_rate = 16000 })\nrecord:record(step)',
    card: entry => new RecordCard(page, entry, "audio", player),
  });
  await tags.refresh();
  return tags.handle();
}
