// A canvas with points of space that is turned by dragging: the look from a distance, without perspective, so that lengths compare.
import { h } from "./dom.js";

export class Orbit {
  // draw(painter, project, orbit): project([x, y, z] each about -1 … 1) -> [pixel x, pixel y, depth]
  constructor({ title, draw, turn = -0.7, tilt = 0.9, zoom = 1, hover, changed }) {
    Object.assign(this, { drawing: draw, turn, tilt, zoom, changed, hovering: hover });
    this.canvas = h("canvas");
    this.element = h("div.chart", { tabIndex: 0, role: "img", ariaLabel: title, onkeydown: event => this.key(event) }, this.canvas);
    new ResizeObserver(() => this.resize()).observe(this.element);
    let last = null;
    this.element.addEventListener("pointerdown", event => { last = [event.clientX, event.clientY]; this.element.setPointerCapture(event.pointerId); });
    this.element.addEventListener("pointermove", event => {
      if (!last) {
        const box = this.element.getBoundingClientRect();
        return this.hovering?.(event, event.clientX - box.left, event.clientY - box.top);
      }
      this.move((event.clientX - last[0]) * 0.01, (event.clientY - last[1]) * 0.01);
      last = [event.clientX, event.clientY];
    });
    for (const end of ["pointerup", "pointercancel"]) this.element.addEventListener(end, () => { last = null; this.changed?.(this); });
    this.element.addEventListener("wheel", event => {
      if (!event.ctrlKey) return;
      event.preventDefault();
      this.zoom = Math.min(8, Math.max(0.3, this.zoom * (event.deltaY > 0 ? 0.9 : 1.1)));
      this.later();
    }, { passive: false });
  }
  key(event) {
    const by = { ArrowLeft: [-0.1, 0], ArrowRight: [0.1, 0], ArrowUp: [0, -0.1], ArrowDown: [0, 0.1] }[event.key];
    if (!by) return;
    event.preventDefault();
    this.move(...by);
  }
  move(turn, tilt) {
    this.turn += turn;
    this.tilt = Math.min(Math.PI / 2, Math.max(-Math.PI / 2, this.tilt + tilt));
    this.later();
  }
  resize() {
    const { width, height } = this.element.getBoundingClientRect(), ratio = devicePixelRatio || 1;
    if (!width || !height) return;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    Object.assign(this, { width, height, ratio });
    this.draw();
  }
  later() { this.frame ??= requestAnimationFrame(() => { this.frame = null; this.draw(); }); }
  draw() {
    if (!this.width) return;
    const p = this.canvas.getContext("2d");
    p.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    p.clearRect(0, 0, this.width, this.height);
    const size = Math.min(this.width, this.height * 1.3) * 0.34 * this.zoom;
    const [st, ct, sp, cp] = [Math.sin(this.turn), Math.cos(this.turn), Math.sin(this.tilt), Math.cos(this.tilt)];
    const project = ([x, y, z]) => {
      const a = x * ct - y * st, b = x * st + y * ct;
      return [this.width / 2 + a * size, this.height / 2 + (b * sp - z * cp) * size, b * cp + z * sp];
    };
    this.drawing(p, project, this);
  }
}
