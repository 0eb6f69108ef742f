// Elements, numbers as texts, and files to save. Everything that comes from a file goes into text nodes or attributes by their
// own interfaces, so that no name can become markup.

function build(create, tag, rest) {
  const [name, ...classes] = tag.split(".");
  const element = create(name || "div");
  if (classes.length) element.setAttribute("class", classes.join(" "));
  let children = rest;
  const first = rest[0];
  if (first && typeof first === "object" && !(first instanceof Node) && !Array.isArray(first)) {
    children = rest.slice(1);
    for (const [key, value] of Object.entries(first)) {
      if (value === null || value === undefined) continue;
      if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
      else if (key === "style") for (const [property, text] of Object.entries(value)) element.style.setProperty(property, text);
      else if (key in element && !(element instanceof SVGElement) && key !== "list") element[key] = value;
      else element.setAttribute(key, value);
    }
  }
  append(element, children);
  return element;
}

export function append(element, children) {
  for (const child of [children].flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
  return element;
}

// h("div.card", { title: "…", onclick: f, style: { width: "3px" } }, children…)
export const h = (tag, ...rest) => build(name => document.createElement(name), tag, rest);
export const s = (tag, ...rest) => build(name => document.createElementNS("http://www.w3.org/2000/svg", name), tag, rest);

export function fill(element, ...children) {
  element.replaceChildren();
  return append(element, children);
}

// The colours of the page, for canvases; style.css names them.
let colours = null;

export function theme() {
  if (colours) return colours;
  const probe = document.body.appendChild(h("i"));
  colours = {};
  for (const name of ["paper", "panel", "raised", "line", "line-2", "ink", "ink-2", "ink-3", "accent", "good", "bad", "warn", "pick"]) {
    probe.style.color = `var(--${name})`;
    colours[name] = getComputedStyle(probe).color;
  }
  colours.dark = isDark();
  colours.runs = [];
  for (let i = 0; i < 12; i++) {
    probe.style.color = `var(--run-${i})`;
    colours.runs.push(getComputedStyle(probe).color);
  }
  colours.font = `${Math.round(parseFloat(getComputedStyle(document.body).fontSize) * 0.85)}px system-ui, sans-serif`;
  probe.remove();
  return colours;
}

export const isDark = () => {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
};

export function themeChanged() { colours = null; }

export function download(name, content, type = "text/plain") {
  const blob = content instanceof Blob ? content : new Blob([content], { type });
  const link = h("a", { href: URL.createObjectURL(blob), download: name.replace(/[^\w.+-]+/g, "_") });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

const short = new Intl.NumberFormat("en", { maximumSignificantDigits: 5, useGrouping: false });
const grouped = new Intl.NumberFormat("en");

export function format(value) {
  if (value === null || value === undefined) return "";
  if (typeof value !== "number") return String(value);
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e7 || size < 1e-4)) return value.toExponential(3).replace(/\.?0+e/, "e").replace("e+", "e");
  if (Number.isInteger(value)) return grouped.format(value);
  return short.format(value);
}

// Of a count with its noun: plural(3, "run") is "3 runs".
export const plural = (count, noun) => `${format(count)} ${noun}${count === 1 ? "" : "s"}`;

export function bytes(value) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) [value, unit] = [value / 1024, unit + 1];
  return `${short.format(Number(value.toPrecision(3)))} ${units[unit]}`;
}

export function duration(seconds) {
  if (!Number.isFinite(seconds)) return format(seconds);
  const size = Math.abs(seconds);
  if (size === 0) return "0 s";
  if (size < 1e-6) return `${short.format(Number((seconds * 1e9).toPrecision(3)))} ns`;
  if (size < 1e-3) return `${short.format(Number((seconds * 1e6).toPrecision(3)))} µs`;
  if (size < 1) return `${short.format(Number((seconds * 1e3).toPrecision(3)))} ms`;
  if (size < 60) return `${short.format(Number(seconds.toPrecision(3)))} s`;
  if (size < 3600) return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
  if (size < 86400) return `${Math.floor(seconds / 3600)} h ${Math.round(seconds % 3600 / 60)} min`;
  return `${Math.floor(seconds / 86400)} d ${Math.round(seconds % 86400 / 3600)} h`;
}

const two = number => String(number).padStart(2, "0");

export function clock(wall) {
  if (!Number.isFinite(wall)) return "";
  const d = new Date(wall * 1000);
  return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} ${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
}

export function ago(wall) {
  const seconds = Date.now() / 1000 - wall;
  if (!Number.isFinite(seconds)) return "";
  if (seconds < 10) return "now";
  if (seconds < 3600 * 48) return `${duration(Math.round(seconds)).replace(/ \d+ s$/, "")} ago`;
  return clock(wall).slice(0, 16);
}

// A row of buttons of which one is pressed; choices are [value, text, title].
export function segments(choices, value, change) {
  const buttons = choices.map(([key, text, title]) => h("button", {
    title: title ?? "", ariaPressed: String(key === value), onclick: () => {
      for (const [i, button] of buttons.entries()) button.ariaPressed = String(choices[i][0] === key);
      change(key);
    },
  }, text));
  return h("span.segments", { role: "group" }, buttons);
}

export function select(choices, value, change, title) {
  const element = h("select", { title: title ?? "", ariaLabel: title ?? "", onchange: () => change(element.value) },
    choices.map(c => Array.isArray(c) ? c : [c, c]).map(([key, text]) => h("option", { value: key, selected: String(key) === String(value) }, text)));
  return element;
}

export function checkbox(text, value, change, title) {
  const box = h("input", { type: "checkbox", checked: value, onchange: () => change(box.checked) });
  return h("label.field", { title: title ?? "" }, box, text);
}

export function slider(text, from, to, step, value, change, show = format) {
  const shown = h("span.number", show(value));
  const element = h("input", { type: "range", min: from, max: to, step, ariaLabel: text, oninput: () => {
    shown.textContent = show(Number(element.value));
    change(Number(element.value));
  } });
  element.value = value;
  return h("label.field", text, element, shown);
}

// Nothing to show: what it is, why, and what to do about it.
export const empty = (title, text, code) =>
  h("div.empty-state", h("h2", title), h("p", text), code ? h("pre", h("code", code)) : null);

export const failure = error => h("div.failure", { role: "alert" }, String(error?.message ?? error));

// Calls f when the element comes into view, once.
const waiting = new WeakMap();
const watcher = new IntersectionObserver(entries => {
  for (const entry of entries) {
    if (!entry.isIntersecting) continue;
    watcher.unobserve(entry.target);
    waiting.get(entry.target)?.();
  }
}, { rootMargin: "300px" });

export function whenSeen(element, f) {
  waiting.set(element, f);
  watcher.observe(element);
}

// A menu below a button; it goes at the next click or Escape.
export function menu(host, entries) {
  host.querySelector(".menu")?.remove();
  const element = h("div.menu", { role: "menu" }, entries.map(([text, action, title]) =>
    h("button", { role: "menuitem", title: title ?? "", onclick: () => { close(); action(); } }, text)));
  const close = () => {
    element.remove();
    document.removeEventListener("pointerdown", outside, true);
    document.removeEventListener("keydown", escape, true);
  };
  const outside = event => { if (!element.contains(event.target)) close(); };
  const escape = event => { if (event.key === "Escape") { event.stopPropagation(); close(); } };
  host.append(element);
  setTimeout(() => document.addEventListener("pointerdown", outside, true));
  document.addEventListener("keydown", escape, true);
  element.querySelector("button")?.focus();
}
