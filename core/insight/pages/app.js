// The shell around the pages: which page is shown, of which runs, in which colours; keys; what changed on the server. The address
// after # holds all of it, so that every view is a link: #/scalars?runs=…&smooth=0.6
import { append, empty, failure, fill, format, h, isDark, themeChanged } from "./dom.js";
import { events, forget, get, put } from "./api.js";
import { colourName, colourOf } from "./colours.js";

// name, title, group, key after g, kind of record that it shows, module where the name is not the module's
const PAGES = [
  ["runs", "Runs", "Runs", "r"],
  ["compare", "Comparison", "Runs", "m"],
  ["hyper", "Hyper-parameters", "Runs", "p"],
  ["lineage", "Lineage", "Runs", "l"],
  ["scalars", "Scalars", "Training", "s", "scalars"],
  ["histograms", "Histograms", "Training", "h", "histograms"],
  ["images", "Images", "Training", "i", "images"],
  ["tensors", "Tensors", "Training", "t", "tensors"],
  ["audio", "Audio", "Training", "a", "audio"],
  ["texts", "Texts", "Training", "x", "texts"],
  ["curves", "PR and ROC", "Training", "c", "pr_curves"],
  ["embeddings", "Embeddings", "Training", "e"],
  ["graph", "Graph", "Model", "g", "graphs"],
  ["landscape", "Loss landscape", "Model", "d", "landscapes"],
  ["explain", "Explanations", "Model", "o"],
  ["debug", "Debugger", "Model", "w"],
  ["profile", "Profile", "Machine", "f", "profiles"],
  ["system", "System", "Machine", "y"],
].map(([name, title, group, key, kind]) => ({ name, title, group, key, kind, module: `./${name}.js` }));

const CHOSEN_AT_FIRST = 10; // runs
const AGAIN = 2000; // ms until a server that does not answer is asked again

const shell = {
  runs: [], version: -1, chosen: new Set(), allChosen: true, page: null, shown: null, visit: 0, filter: "", hash: "",
};

const parts = {};

// Runs keep their colours: a run that comes later takes the next one.
const places = new Map();
const placeOf = run => {
  if (!places.has(run.id)) places.set(run.id, places.size);
  return places.get(run.id);
};

// What a page is given.
class View {
  constructor(page, state, main) {
    Object.assign(this, { page, state, main });
  }
  get runs() { return shell.runs; }
  get chosen() { return shell.runs.filter(run => shell.chosen.has(run.id)); }
  colour(run) { return colourOf(placeOf(run)); }
  swatch(run) { return h("span.swatch", { style: { background: colourName(placeOf(run)) } }); }
  // Writes to the link of this view; null removes.
  set(values) {
    for (const [key, value] of Object.entries(values)) {
      if (value === null || value === undefined || value === "") delete this.state[key];
      else this.state[key] = String(value);
    }
    // Browsers take few changes of an address in a short time, and a slider makes many.
    clearTimeout(this.timer);
    this.timer = setTimeout(() => { if (shell.shown?.view === this) keepAddress(this.page, this.state); }, 120);
  }
  go(name, state = {}) { location.hash = address(name, state).slice(1); }
  link(name, state = {}) { return address(name, state); }
  choose(ids) { choose(new Set(ids)); }
  style(name) {
    if (!document.head.querySelector(`link[href="${CSS.escape(name)}"]`)) document.head.append(h("link", { rel: "stylesheet", href: name }));
  }
  async putRun(id, body) {
    const run = await put(`runs/${id}`, body);
    const at = shell.runs.findIndex(r => r.id === id);
    if (at >= 0) shell.runs[at] = { ...shell.runs[at], ...run };
    return shell.runs[at];
  }
}

function address(name, state) {
  const parameters = new URLSearchParams(Object.entries(state).filter(([key]) => key !== "runs"));
  if (!shell.allChosen) parameters.set("runs", [...shell.chosen].join("~"));
  const text = parameters.toString().replaceAll("%7E", "~").replaceAll("%2F", "/").replaceAll("%3A", ":").replaceAll("%2C", ",");
  return `#/${name}${text ? `?${text}` : ""}`;
}

// The address follows what a view shows, unless the user has gone elsewhere and the event that says so is still to come.
function keepAddress(page, state) {
  if (location.hash !== shell.hash) return;
  history.replaceState(null, "", address(page.name, state));
  shell.hash = location.hash;
}

function parse(hash) {
  const [name, query] = hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  return [name || "runs", Object.fromEntries(new URLSearchParams(query ?? ""))];
}

function chooseAtFirst() {
  const newest = [...shell.runs].sort((a, b) => (b.last ?? 0) - (a.last ?? 0)).slice(0, CHOSEN_AT_FIRST);
  shell.chosen = new Set(newest.map(run => run.id));
  shell.allChosen = true;
}

function choose(ids) {
  shell.chosen = ids;
  shell.allChosen = false;
  keepAddress(shell.page, shell.shown?.view.state ?? {});
  drawChooser();
  drawNav();
  if (shell.shown?.choose) shell.shown.choose();
  else show();
}

async function show() {
  shell.hash = location.hash;
  const [name, state] = parse(shell.hash);
  const page = PAGES.find(p => p.name === name) ?? PAGES[0];
  if (state.runs !== undefined) {
    shell.chosen = new Set(state.runs.split("~").filter(Boolean));
    shell.allChosen = false;
    delete state.runs;
  }
  else if (!shell.allChosen) keepAddress(page, state); // the runs are part of every link
  const visit = ++shell.visit;
  close();
  shell.page = page;
  document.title = `${page.title} · Lunaria insight`;
  parts.title.textContent = page.title;
  drawNav();
  drawChooser();
  const main = h("main", { tabIndex: -1, ariaLabel: page.title });
  parts.main.replaceWith(main);
  parts.main = main;
  if (!shell.runs.length && page.name !== "system" && page.name !== "debug") {
    append(main, empty("No runs here yet", "Insight shows the folders below the one that it was started with. Write a summary while you train, and it appears by itself:",
      'local collector = ms.train.SummaryCollector("runs/first")\nmodel:train(3, data, { callbacks = { collector } })'));
    shell.shown = { view: new View(page, state, main) };
    return;
  }
  const view = new View(page, state, main);
  shell.shown = { view };
  try {
    const module = await import(page.module);
    if (visit !== shell.visit) return;
    const handle = await module.default(view);
    if (visit !== shell.visit) handle?.close?.();
    else shell.shown = { view, ...handle };
    main.dataset.ready = "true";
  } catch (error) {
    if (visit !== shell.visit) return;
    console.warn(error);
    fill(main, failure(`${page.title}: ${error.message}`));
  }
}

function close() {
  document.querySelectorAll(".tip").forEach(tip => { tip.hidden = true; });
  shell.shown?.close?.();
  shell.shown = null;
}

function drawNav() {
  let group = null;
  fill(parts.nav, PAGES.map(page => {
    const count = page.kind ? Math.max(0, ...shell.runs.filter(r => shell.chosen.has(r.id)).map(r => r.kinds?.[page.kind] ?? 0))
      : page.name === "runs" ? shell.runs.length : null;
    const items = [];
    if (page.group !== group) items.push(h("div.group", group = page.group));
    const link = h("a", { href: address(page.name, {}), title: `g ${page.key}` }, page.title, h("span", count ? format(count) : ""));
    if (page.kind && !count) link.className = "empty";
    if (page === shell.page) link.setAttribute("aria-current", "page");
    items.push(link);
    return items;
  }));
}

const ROWS = 300; // rows of the side bar; a filter finds the rest

function drawChooser() {
  const wanted = shell.filter.toLowerCase();
  const found = shell.runs.filter(run => run.name.toLowerCase().includes(wanted));
  parts.count.textContent = `${shell.runs.filter(r => shell.chosen.has(r.id)).length} of ${shell.runs.length} runs`;
  const top = parts.list.scrollTop;
  fill(parts.list, found.slice(0, ROWS).map(run => {
    const box = h("input", { type: "checkbox", checked: shell.chosen.has(run.id), onchange: () => {
      const ids = new Set(shell.chosen);
      if (box.checked) ids.add(run.id); else ids.delete(run.id);
      choose(ids);
    } });
    const name = h("span.clip.grow", run.name);
    return h("label", { title: `${run.name}\ndouble click: only this run`, ondblclick: () => choose(new Set([run.id])) },
      box, h("span.swatch", { style: { background: colourName(placeOf(run)) } }), name, run.live ? h("span.dot.live", { title: "is being written" }) : null);
  }), found.length > ROWS ? h("p.quiet", `${found.length - ROWS} more: type to find them`) : null);
  parts.list.scrollTop = top;
}

async function reload(changed) {
  const answer = await get("runs");
  shell.runs = answer.runs;
  shell.runs.forEach(placeOf);
  shell.version = answer.version;
  if (shell.allChosen) chooseAtFirst();
  forget(changed);
  drawNav();
  drawChooser();
}

// Changes that arrive while others are being fetched wait for the next turn.
let changes = new Set(), reloading = false;

async function changed(event) {
  if (event.version === shell.version) return; // the first event tells what is known already
  for (const id of event.runs ?? []) changes.add(id);
  if (reloading) return;
  reloading = true;
  try {
    while (changes.size) {
      const ids = [...changes];
      changes = new Set();
      const empty = !shell.runs.length;
      await reload(ids);
      if (empty && shell.runs.length) await show();
      else await shell.shown?.update?.(ids);
    }
  } catch (error) {
    console.warn("the change could not be shown", error);
  } finally {
    reloading = false;
  }
}

function setTheme(name) {
  if (name) document.documentElement.dataset.theme = name;
  else delete document.documentElement.dataset.theme;
  themeChanged();
  parts.main.dispatchEvent(new Event("theme"));
}

function remember(name) {
  try { localStorage.setItem("theme", name); } catch { /* a browser that keeps nothing */ }
  setTheme(name);
}

const general = {
  "?": ["the keys", help],
  "/": ["find a run", () => { document.body.classList.remove("narrow"); parts.search.focus(); }],
  "[": ["side bar shown or hidden", () => { document.body.classList.toggle("narrow"); dispatchEvent(new Event("resize")); }],
  "k": ["dark or light", () => remember(isDark() ? "light" : "dark")],
  "n": ["only the next run", () => step(1)],
  "b": ["only the run before", () => step(-1)],
};

function step(by) {
  if (!shell.runs.length) return;
  const at = shell.runs.findIndex(run => shell.chosen.has(run.id));
  const next = shell.chosen.size === 1 ? (at + by + shell.runs.length) % shell.runs.length : Math.max(at, 0);
  choose(new Set([shell.runs[next].id]));
}

function help() {
  const rows = list => list.map(([key, text]) => h("div", h("span", text), h("span", key.split(" ").map(k => [h("kbd", k), " "]))));
  const own = Object.entries(shell.shown?.keys ?? {}).map(([key, [text]]) => [key, text]);
  const dialog = h("dialog", { onclose: () => dialog.remove(), onclick: e => { if (e.target === dialog) dialog.close(); } },
    h("div.row", h("h2.grow", "Keys"), h("button.plain", { onclick: () => dialog.close(), ariaLabel: "close" }, "✕")),
    own.length ? [h("h3.quiet", shell.page.title), h("div.keys", rows(own))] : null,
    h("h3.quiet", "Everywhere"), h("div.keys", rows(Object.entries(general).map(([key, [text]]) => [key, text]))),
    h("h3.quiet", "Pages"), h("div.keys", rows(PAGES.map(page => [`g ${page.key}`, page.title]))),
    h("h3.quiet", "Charts"), h("div.keys", rows([["drag", "zoom to a box"], ["Shift drag", "move"], ["Ctrl wheel", "zoom at the pointer"], ["Backspace", "one zoom back"], ["double click", "everything"]])));
  document.body.append(dialog);
  dialog.showModal();
}

let pending = false; // after g

function pressed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  const target = event.target;
  if (target.closest?.("input:not([type=checkbox], [type=range], [type=radio]), textarea, select, dialog[open]")) {
    if (event.key === "Escape") target.blur();
    return;
  }
  // These have a meaning of their own for it.
  if (event.key === "Enter" && target.closest?.("button, a, summary")) return;
  if (pending) {
    pending = false;
    const page = PAGES.find(p => p.key === event.key);
    if (page) { event.preventDefault(); location.hash = address(page.name, {}).slice(1); }
    return;
  }
  const [, action] = shell.shown?.keys?.[event.key] ?? general[event.key] ?? [];
  if (action) { event.preventDefault(); action(); }
  else if (event.key === "g") pending = true;
}

function build() {
  parts.nav = h("nav", { ariaLabel: "pages" });
  parts.list = h("div.list");
  parts.count = h("span.quiet.grow");
  parts.search = h("input", { type: "search", placeholder: "Find runs", ariaLabel: "find runs", oninput: () => { shell.filter = parts.search.value; drawChooser(); } });
  parts.dot = h("span.dot");
  parts.state = h("span", "…");
  parts.title = h("span.title");
  parts.main = h("main");
  append(document.body, [
    h("header", h("a.brand", { href: "#/runs" }, h("img", { src: "icon.svg", alt: "" }), "Lunaria insight"), parts.title, h("span.grow"),
      h("span.state", { title: "whether changes arrive by themselves" }, parts.dot, parts.state),
      h("button.plain", { title: "copy the link of this view", onclick: copyLink }, "Link"),
      h("button.plain", { title: "dark or light (k)", onclick: general.k[1] }, "◐"),
      h("button.plain", { title: "keys (?)", onclick: help }, "?")),
    h("div.side", parts.nav, h("div.chooser",
      h("div.head", parts.count,
        h("button.plain", { title: "tick all that the filter finds", onclick: () => choose(new Set([...shell.chosen, ...found()])) }, "all"),
        h("button.plain", { title: "untick all that the filter finds", onclick: () => { const gone = new Set(found()); choose(new Set([...shell.chosen].filter(id => !gone.has(id)))); } }, "none")),
      parts.search, parts.list)),
    parts.main,
  ]);
}

const found = () => shell.runs.filter(run => run.name.toLowerCase().includes(shell.filter.toLowerCase())).map(run => run.id);

async function copyLink(event) {
  const button = event.currentTarget;
  try {
    await navigator.clipboard.writeText(location.href);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Copy it from the address bar";
  }
  setTimeout(() => { button.textContent = "Link"; }, 1500);
}

async function start() {
  let stored = null;
  try { stored = localStorage.getItem("theme"); } catch { /* a browser that keeps nothing */ }
  if (stored) document.documentElement.dataset.theme = stored;
  build();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => setTheme(document.documentElement.dataset.theme));
  addEventListener("hashchange", show);
  addEventListener("keydown", pressed);
  let timer = null;
  addEventListener("resize", () => { clearTimeout(timer); timer = setTimeout(() => shell.shown?.resize?.(), 120); });
  while (!await reload([]).then(() => true, error => { fill(parts.main, failure(`The server does not answer: ${error.message}. It is asked again.`)); }))
    await new Promise(resolve => { setTimeout(resolve, AGAIN); });
  await show();
  events(changed, live => {
    parts.dot.className = `dot ${live ? "live" : "lost"}`;
    parts.state.textContent = live ? "live" : "not connected";
  });
}

start();
