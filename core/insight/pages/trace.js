// A Chrome trace as rows of boxes, sums by operator, steps and memory. Times become seconds from the first event.
export function readTrace(json) {
  const list = Array.isArray(json) ? json : json.traceEvents ?? [], events = [], counters = new Map(), names = new Map(), open = new Map();
  for (const e of list) {
    const row = `${e.pid ?? 0}:${e.tid ?? 0}`;
    if (e.ph === "X") events.push({ name: String(e.name), cat: e.cat ?? "", row, start: e.ts / 1e6, seconds: (e.dur ?? 0) / 1e6, args: e.args ?? {} });
    else if (e.ph === "B") { if (!open.has(row)) open.set(row, []); open.get(row).push(e); }
    else if (e.ph === "E") {
      const b = open.get(row)?.pop();
      if (b) events.push({ name: String(b.name), cat: b.cat ?? "", row, start: b.ts / 1e6, seconds: (e.ts - b.ts) / 1e6, args: { ...b.args, ...e.args } });
    } else if (e.ph === "C") {
      for (const [key, value] of Object.entries(e.args ?? {})) {
        const name = Object.keys(e.args).length > 1 ? `${e.name} ${key}` : String(e.name);
        if (!counters.has(name)) counters.set(name, []);
        counters.get(name).push([e.ts / 1e6, Number(value)]);
      }
    } else if (e.ph === "M" && (e.name === "process_name" || e.name === "thread_name")) names.set(e.name === "process_name" ? String(e.pid) : row, e.args?.name);
  }
  const zero = events.reduce((least, e) => Math.min(least, e.start), Infinity);
  for (const e of events) e.start -= zero;
  for (const points of counters.values()) { points.sort((a, b) => a[0] - b[0]); for (const point of points) point[0] -= zero; }
  events.sort((a, b) => a.start - b.start || b.seconds - a.seconds);
  const end = events.reduce((most, e) => Math.max(most, e.start + e.seconds), 0);
  return { events, counters, names, end, rows: lanes(events, names) };
}

// Boxes inside of others go one row deeper; own is what is not inside of a deeper one.
function lanes(events, names) {
  const byRow = new Map();
  for (const e of events) {
    if (!byRow.has(e.row)) byRow.set(e.row, []);
    byRow.get(e.row).push(e);
  }
  const rows = [];
  for (const key of [...byRow.keys()].sort((a, b) => a.localeCompare(b, "en", { numeric: true }))) {
    const stack = [], [pid] = key.split(":"), depths = [];
    for (const e of byRow.get(key)) {
      while (stack.length && e.start >= stack.at(-1).start + stack.at(-1).seconds - 1e-9) stack.pop();
      e.depth = stack.length;
      e.own = e.seconds;
      if (stack.length) stack.at(-1).own -= e.seconds;
      stack.push(e);
      (depths[e.depth] ??= []).push(e);
    }
    const name = [names.get(pid), names.get(key)].filter(Boolean).join(" · ") || `thread ${key.split(":")[1]}`;
    depths.forEach((list, depth) => rows.push({ name: depth ? "" : name, events: list }));
  }
  return rows;
}

// One row for each operator, or for each operator and line.
export function operators(events, byLine) {
  const known = new Map();
  for (const e of events) {
    if (e.cat === "step") continue;
    const line = e.args.line ?? "", key = byLine ? `${e.name}\n${line}` : e.name;
    let row = known.get(key);
    if (!row) known.set(key, row = { name: e.name, line, cat: e.cat, count: 0, seconds: 0, bytes: 0, flops: 0, lines: new Set() });
    row.count++;
    row.seconds += Math.max(0, e.own);
    row.bytes += Number(e.args.bytes) || 0;
    row.flops += Number(e.args.flops) || 0;
    row.lines.add(line);
  }
  for (const row of known.values()) if (!byLine) row.line = row.lines.size > 1 ? `${row.lines.size} lines` : [...row.lines][0];
  return [...known.values()];
}

export const isWait = e => /^(data|dataset|wait)$/i.test(e.cat) || /data[_ ]?(wait|queue)|get_?next|dataset/i.test(e.name);

// The steps with how long each waited for data.
export function stepsOf(events) {
  const steps = events.filter(e => e.cat === "step" || /^(step|profilerstep#?)\s*\d+$/i.test(e.name)), waits = events.filter(isWait);
  let w = 0;
  return steps.map((step, i) => {
    let wait = 0;
    while (w < waits.length && waits[w].start + waits[w].seconds <= step.start) w++;
    for (let k = w; k < waits.length && waits[k].start < step.start + step.seconds; k++)
      wait += Math.max(0, Math.min(waits[k].start + waits[k].seconds, step.start + step.seconds) - Math.max(waits[k].start, step.start));
    return { index: Number(step.name.match(/\d+/)?.[0] ?? step.args.step ?? i), seconds: step.seconds, wait: Math.min(wait, step.seconds), start: step.start };
  });
}
