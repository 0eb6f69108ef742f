// The machine now: processors, memory, and the processes that belong to trainings. The curve begins when the page is opened.
import { bytes, failure, fill, format, h, theme } from "./dom.js";
import { get, number } from "./api.js";
import { Chart, legend } from "./chart.js";

const EVERY = 2000, KEPT = 1800; // ms; points
const past = []; // as long as the window is open

export default async function show(view) {
  const cpu = new Chart({ title: "processors", kind: "wall", yLabel: "cores", message: "…" }), memory = new Chart({ title: "memory", kind: "wall", yLabel: "GiB", message: "…" });
  const names = h("div"), cores = h("div"), load = h("p.quiet"), disk = h("p.quiet"), processes = h("div.scroll"), note = h("div");
  fill(view.main, note, h("div.columns", h("div.panel", h("h2", "Processors"), names, cpu.element, cores, load), h("div.panel", h("h2", "Memory"), memory.element, disk)),
    h("div.panel", { style: { "margin-top": "12px" } }, h("h2", "Processes"), processes));
  const bar = (part, text) => h("div.bar", { title: text, style: { flex: "1 1 60px" } }, h("i", { style: { width: `${100 * Math.min(1, Math.max(0, part || 0))}%` } }));

  function draw(now) {
    const { accent, good, warn } = theme(), x = Float64Array.from(past, p => p.wall), line = f => Float64Array.from(past, f);
    cpu.set([{ name: "all", colour: accent, x, y: line(p => p.cpu) }, { name: "trainings and insight", colour: good, x, y: line(p => p.own) }]);
    memory.set([{ name: "used", colour: accent, x, y: line(p => p.memory) }, { name: "trainings and insight", colour: good, x, y: line(p => p.ownMemory) },
      { name: "there is", colour: warn, x, y: line(p => p.total), dash: [4, 4], quiet: true, alpha: 0.6 }]);
    fill(names, legend(cpu.series));
    if (!now) return;
    const { cpu: c = {}, memory: m = {} } = now;
    fill(cores, h("div.row", { style: { gap: "4px", margin: "6px 0" } }, (c.each ?? []).map((part, i) => bar(number(part), `core ${i}: ${Math.round(100 * number(part))} %`))));
    load.textContent = [c.cores ? `${c.cores} cores` : "", c.load ? `load ${c.load.map(v => number(v).toFixed(2)).join(", ")}` : "", m.total ? `${bytes(m.used ?? m.total - m.available)} of ${bytes(m.total)} used` : ""].filter(Boolean).join(" · ");
    disk.textContent = now.disk ? `${bytes(now.disk.available)} of ${bytes(now.disk.total)} free where the runs are` : "";
    fill(processes, (now.processes ?? []).length ? h("table.dense", h("thead", h("tr", h("th.number", { style: { width: "80px" } }, "Process"), h("th", "Command"), h("th.number", "Cores"), h("th.number", "Memory"))),
      h("tbody", [...now.processes].sort((a, b) => number(b.cpu) - number(a.cpu)).map(p => h("tr", h("td.number", String(p.pid)), h("td", p.name), h("td.number", format(Number(number(p.cpu).toFixed(2)))), h("td.number", bytes(number(p.memory))))))) : h("p.quiet", "No training runs on this machine."));
  }

  async function ask() {
    try {
      const now = await get("system"), list = now.processes ?? [], sum = f => list.reduce((total, p) => total + (number(f(p)) || 0), 0), gib = 1024 ** 3;
      past.push({ wall: Date.now() / 1000, cpu: number(now.cpu?.used) * (now.cpu?.cores ?? 1), own: sum(p => p.cpu), memory: number(now.memory?.used ?? now.memory?.total - now.memory?.available) / gib, ownMemory: sum(p => p.memory) / gib, total: number(now.memory?.total) / gib });
      if (past.length > KEPT) past.shift();
      note.replaceChildren();
      draw(now);
    } catch (error) {
      fill(note, failure(error));
    }
  }

  await ask();
  const timer = setInterval(() => { if (!document.hidden) ask(); }, EVERY);
  view.main.addEventListener("theme", () => draw(null));
  return { close: () => clearInterval(timer), choose() {} };
}
