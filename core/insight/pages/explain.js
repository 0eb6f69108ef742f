// What a network looked at: of each sample the picture and the maps of every method over it, and scores of the methods.
// ms.explain writes the pictures as explain/original and explain/METHOD/LABEL, a sample at each step, the scores as
// explain/METRIC/METHOD.
import { empty, fill, format, h, slider } from "./dom.js";
import { cached, number, url } from "./api.js";
import { runTitle } from "./records.js";
import { tagsOf } from "./tags.js";

const PREFIX = "explain/";

export default async function show(view) {
  const { state } = view, own = async kind => (await tagsOf(view, kind)).filter(entry => entry.name.startsWith(PREFIX));
  const [pictures, scores] = await Promise.all([own("images"), own("scalars")]);
  if (!pictures.length && !scores.length) {
    fill(view.main, empty("No explanations in the ticked runs", "Maps of what a network looks at, and their scores, are written into the folder of a run:",
      'local runner = ms.explain.ImageClassificationRunner("runs/first", { data, names }, net, ms.nn.Softmax())\nrunner:register_saliency({ ms.explain.Gradient(net) }, { ms.explain.ClassSensitivity() })\nrunner:run()'));
    return {};
  }
  const runs = [...new Map([...pictures, ...scores].flatMap(entry => entry.runs.map(({ run }) => [run.id, run]))).values()];
  const lists = new Map(); // "run tag" -> records
  await Promise.all(pictures.flatMap(entry => entry.runs.map(async ({ run, tag }) => lists.set(`${run.id} ${tag.id}`, await cached(`runs/${run.id}/images/${tag.id}`)))));
  const samples = [...new Set([...lists.values()].flatMap(list => list.map(record => record.step)))].sort((a, b) => a - b);
  let sample = samples.includes(Number(state.sample)) ? Number(state.sample) : samples[0];
  const host = h("div.stack"), label = h("span.quiet");
  const range = h("input", { type: "range", min: 0, max: Math.max(0, samples.length - 1), ariaLabel: "sample", oninput: () => pick(samples[Number(range.value)]) });
  const strength = Number(state.strength ?? 1);
  view.main.style.setProperty("--strength", strength);
  fill(view.main, h("div.tools", h("label.field", "Sample", range, label), slider("Map", 0, 1, 0.05, strength, value => { view.main.style.setProperty("--strength", value); view.set({ strength: value === 1 ? null : value }); }, v => `${Math.round(100 * v)} %`)),
    h("div.panel", scoreTable()), h("div", { style: { height: "10px" } }), host);

  function scoreTable() {
    if (!scores.length) return h("p.quiet", "No scores were written.");
    const parts = scores.map(entry => [...entry.name.slice(PREFIX.length).split("/"), entry]), metrics = [...new Set(parts.map(p => p[0]))], methods = [...new Set(parts.map(p => p[1] ?? ""))];
    const cells = new Map(), body = h("tbody");
    const draw = () => fill(body, runs.flatMap(run => methods.map(method => h("tr", h("td", view.swatch(run), " ", run.name), h("td", method), metrics.map(metric => {
      const value = cells.get(`${run.id} ${metric} ${method}`), all = methods.map(m => cells.get(`${run.id} ${metric} ${m}`)).filter(Number.isFinite);
      return h(value !== undefined && all.length > 1 && value === Math.max(...all) ? "td.number.best" : "td.number", value === undefined ? "" : format(Number(value.toPrecision(4))));
    })))));
    for (const [metric, method, entry] of parts) for (const { run, tag } of entry.runs)
      cached(`runs/${run.id}/scalars/${tag.id}?points=2000`).then(answer => { cells.set(`${run.id} ${metric} ${method ?? ""}`, number((answer.value ?? answer.last).at(-1))); draw(); }, () => {});
    return h("table.dense", h("thead", h("tr", h("th", "Run"), h("th", "Method"), metrics.map(metric => h("th.number", metric)))), body);
  }

  function address(run, tag) {
    const record = lists.get(`${run.id} ${tag.id}`)?.find(r => r.step === sample);
    return record && url(`runs/${run.id}/images/${tag.id}/${record.index}`);
  }

  function pick(value) {
    sample = value;
    view.set({ sample });
    range.value = samples.indexOf(sample);
    label.textContent = samples.length ? `${sample} of ${samples.length}` : "";
    fill(host, runs.map(run => {
      const of = name => { const found = pictures.find(entry => entry.name === name)?.runs.find(r => r.run.id === run.id); return found && address(run, found.tag); };
      const original = of(`${PREFIX}original`), figure = (title, map) => h("figure", { style: { margin: 0 } }, h("div.picture.layered", original ? h("img", { src: original, alt: "original" }) : null, map ? h("img.map", { src: map, alt: title }) : null), h("span.clip", { title }, title));
      const maps = pictures.filter(entry => entry.name !== `${PREFIX}original` && entry.runs.some(r => r.run.id === run.id)).map(entry => [entry.name.slice(PREFIX.length), of(entry.name)]).filter(([, map]) => map);
      return h("div.panel", runTitle(view, run), h("div.pictures", original ? figure("original", null) : null, maps.map(([title, map]) => figure(title, map))));
    }));
  }
  pick(sample);
  return {};
}
