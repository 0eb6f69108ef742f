// The part of a canvas' interface that the charts use, writing SVG: one drawing routine serves the screen, PNG and SVG.
const escape = text => String(text).replace(/[&<>"']/g, c => `&#${c.charCodeAt(0)};`);
const round = x => Number(x.toFixed(2));

export class SvgPainter {
  constructor(width, height) {
    Object.assign(this, { width, height, parts: [], definitions: [], path: [], kept: [] });
    this.state = { strokeStyle: "#000", fillStyle: "#000", lineWidth: 1, globalAlpha: 1, font: "12px sans-serif", textAlign: "start",
      textBaseline: "alphabetic", lineJoin: "miter" };
    for (const name of Object.keys(this.state))
      Object.defineProperty(this, name, { get: () => this.state[name], set: value => { this.state[name] = value; } });
    Object.assign(this.state, { dash: [], clipping: null, transform: "" });
  }
  save() { this.kept.push({ ...this.state }); }
  restore() { Object.assign(this.state, this.kept.pop()); }
  setLineDash(dash) { this.state.dash = dash; }
  translate(x, y) { this.state.transform += `translate(${round(x)} ${round(y)})`; }
  rotate(angle) { this.state.transform += `rotate(${round(angle * 180 / Math.PI)})`; }
  beginPath() { this.path = []; }
  moveTo(x, y) { this.path.push(`M${round(x)} ${round(y)}`); }
  lineTo(x, y) { this.path.push(`L${round(x)} ${round(y)}`); }
  closePath() { this.path.push("Z"); }
  rect(x, y, w, h) { this.path.push(`M${round(x)} ${round(y)}h${round(w)}v${round(h)}h${round(-w)}Z`); }
  // Whole circles only.
  arc(x, y, r) { this.path.push(`M${round(x - r)} ${round(y)}a${round(r)} ${round(r)} 0 1 0 ${round(2 * r)} 0a${round(r)} ${round(r)} 0 1 0 ${round(-2 * r)} 0Z`); }
  clip() {
    const name = `clip${this.definitions.length}`;
    this.definitions.push(`<clipPath id="${name}"><path d="${this.path.join("")}"/></clipPath>`);
    this.state.clipping = name;
  }
  common() {
    const { transform, clipping, globalAlpha } = this.state;
    return (transform ? ` transform="${transform}"` : "") + (clipping ? ` clip-path="url(#${clipping})"` : "") + (globalAlpha < 1 ? ` opacity="${round(globalAlpha)}"` : "");
  }
  stroke() {
    const { strokeStyle, lineWidth, dash } = this.state;
    if (this.path.length)
      this.parts.push(`<path d="${this.path.join("")}" fill="none" stroke="${escape(strokeStyle)}" stroke-width="${lineWidth}"${dash.length ? ` stroke-dasharray="${dash.join(" ")}"` : ""}${this.common()}/>`);
  }
  fill() { if (this.path.length) this.parts.push(`<path d="${this.path.join("")}" fill="${escape(this.state.fillStyle)}"${this.common()}/>`); }
  fillRect(x, y, w, h) { this.parts.push(`<rect x="${round(x)}" y="${round(y)}" width="${round(w)}" height="${round(h)}" fill="${escape(this.state.fillStyle)}"${this.common()}/>`); }
  measureText(text) { return { width: String(text).length * parseFloat(this.state.font) * 0.56 }; }
  fillText(text, x, y) {
    const { font, textAlign, textBaseline, fillStyle } = this.state;
    const anchor = { center: "middle", right: "end", end: "end" }[textAlign] ?? "start";
    const baseline = { middle: "central", top: "hanging" }[textBaseline] ?? "auto";
    this.parts.push(`<text x="${round(x)}" y="${round(y)}" font-size="${parseFloat(font.replace(/^\D*/, ""))}" text-anchor="${anchor}" dominant-baseline="${baseline}" fill="${escape(fillStyle)}"${this.common()}>${escape(text)}</text>`);
  }
  text() {
    return `<svg xmlns="http://www.w3.org/2000/svg" width="${this.width}" height="${this.height}" viewBox="0 0 ${this.width} ${this.height}" font-family="sans-serif"><defs>${this.definitions.join("")}</defs>${this.parts.join("\n")}</svg>\n`;
  }
}
