// The picture of a graph as the server sends it (bytes_of in core/insight/graph/drawing.h), as typed arrays, with what finds the parts
// of it that a window shows: boxes by the cell of their centre, pieces of edges by the cells that they cross.
export const NODE = 0, CLOSED = 1, OPEN = 2;
export const ROUTED = 0, DISTANT = 1, BACK = 2;
export const GRADIENT = 1, OPTIMIZER = 2, PLUMBING = 4, CONSTANT = 8, PARAMETER = 16, INPUT = 32;

const decoder = new TextDecoder();

export class GraphView {
  constructor(buffer) {
    const head = new DataView(buffer);
    if (buffer.byteLength < 32 || head.getUint32(0, true) !== 0x3156474c) throw new Error("the server's picture of the graph is not understood");
    const [items, edges, floats, text] = [4, 8, 12, 16].map(at => head.getUint32(at, true));
    this.count = items;
    this.edges = edges;
    this.width = head.getFloat32(20, true);
    this.height = head.getFloat32(24, true);
    let at = 32;
    const take = (Kind, count) => {
      const list = new Kind(buffer, at, count);
      at += count * Kind.BYTES_PER_ELEMENT;
      return list;
    };
    for (const name of ["x", "y", "w", "h"]) this[name] = take(Float32Array, items);
    for (const name of ["id", "parent", "key"]) this[name] = take(Int32Array, items);
    for (const name of ["from", "to", "times"]) this[name] = take(Int32Array, edges);
    this.start = take(Uint32Array, edges + 1);
    this.points = take(Float32Array, floats);
    this.texts = take(Uint32Array, 2 * items + 1);
    this.kind = take(Uint8Array, items);
    this.marks = take(Uint8Array, items);
    this.way = take(Uint8Array, edges); // 4 is added for edges of order only
    this.text = take(Uint8Array, text);
    this.itemOfNode = new Map();
    this.itemOfGroup = new Map();
    this.opened = [];
    for (let i = 0; i < items; i++) {
      if (this.kind[i] === NODE) this.itemOfNode.set(this.id[i], i);
      else this.itemOfGroup.set(this.id[i], i);
      if (this.kind[i] === OPEN) this.opened.push(i);
    }
    this.index();
  }

  label(i) { return decoder.decode(this.text.subarray(this.texts[2 * i], this.texts[2 * i + 1])); }
  note(i) { return decoder.decode(this.text.subarray(this.texts[2 * i + 1], this.texts[2 * i + 2])); }
  get open() { return this.opened.map(i => this.id[i]); }

  index() {
    const size = Math.max(300, Math.sqrt(this.width * this.height / Math.max(this.count, 1)) * 2);
    const columns = Math.max(1, Math.ceil(this.width / size)), rows = Math.max(1, Math.ceil(this.height / size));
    const column = x => Math.min(columns - 1, Math.max(0, Math.floor(x / size)));
    const row = y => Math.min(rows - 1, Math.max(0, Math.floor(y / size)));
    // Boxes that are no open groups; these are few and large.
    const cellOf = i => row(this.y[i] + this.h[i] / 2) * columns + column(this.x[i] + this.w[i] / 2);
    const boxStart = new Uint32Array(rows * columns + 1);
    for (let i = 0; i < this.count; i++) if (this.kind[i] !== OPEN) boxStart[cellOf(i) + 1]++;
    for (let c = 0; c < rows * columns; c++) boxStart[c + 1] += boxStart[c];
    const boxes = new Uint32Array(boxStart[rows * columns]), next = boxStart.slice();
    for (let i = 0; i < this.count; i++) if (this.kind[i] !== OPEN) boxes[next[cellOf(i)]++] = i;
    // Pieces of edges from point to point, but for distant ones. A piece is the place of its first number in `points`.
    const eachPiece = use => {
      for (let e = 0; e < this.edges; e++) {
        if ((this.way[e] & 3) === DISTANT) continue;
        for (let p = this.start[e]; p + 3 < this.start[e + 1]; p += 2) {
          const [x0, x1] = [this.points[p], this.points[p + 2]], [y0, y1] = [this.points[p + 1], this.points[p + 3]];
          const right = column(Math.max(x0, x1)), bottom = row(Math.max(y0, y1));
          for (let r = row(Math.min(y0, y1)); r <= bottom; r++)
            for (let c = column(Math.min(x0, x1)); c <= right; c++) use(r * columns + c, p, e);
        }
      }
    };
    const pieceStart = new Uint32Array(rows * columns + 1);
    eachPiece(cell => { pieceStart[cell + 1]++; });
    for (let c = 0; c < rows * columns; c++) pieceStart[c + 1] += pieceStart[c];
    const pieces = new Uint32Array(pieceStart[rows * columns]), owners = new Uint32Array(pieces.length), free = pieceStart.slice();
    eachPiece((cell, p, e) => { owners[free[cell]] = e; pieces[free[cell]++] = p; });
    Object.assign(this, { column, row, columns, boxStart, boxes, pieceStart, pieces, owners });
  }

  // How many boxes the cells of a window hold, about.
  crowd([left, top, right, bottom]) {
    let sum = 0;
    for (let r = this.row(top); r <= this.row(bottom); r++)
      sum += this.boxStart[r * this.columns + this.column(right) + 1] - this.boxStart[r * this.columns + this.column(left)];
    return sum;
  }

  eachBox([left, top, right, bottom], use) {
    const margin = 260; // half of the largest box is less
    const lastRow = this.row(bottom + margin), lastColumn = this.column(right + margin);
    for (let r = this.row(top - margin); r <= lastRow; r++)
      for (let k = this.boxStart[r * this.columns + this.column(left - margin)]; k < this.boxStart[r * this.columns + lastColumn + 1]; k++) {
        const i = this.boxes[k];
        if (this.x[i] < right && this.x[i] + this.w[i] > left && this.y[i] < bottom && this.y[i] + this.h[i] > top) use(i);
      }
  }

  // A piece that crosses several cells comes once for each row of them; drawing it twice does no harm.
  eachPiece([left, top, right, bottom], use) {
    for (let r = this.row(top); r <= this.row(bottom); r++)
      for (let k = this.pieceStart[r * this.columns + this.column(left)]; k < this.pieceStart[r * this.columns + this.column(right) + 1]; k++)
        use(this.pieces[k], this.owners[k]);
  }

  // The box, or else the innermost open group, at a place; -1: none.
  at(x, y) {
    let found = -1;
    this.eachBox([x, y, x, y], i => { found = i; });
    if (found >= 0) return found;
    for (const i of this.opened)
      if (this.x[i] <= x && x <= this.x[i] + this.w[i] && this.y[i] <= y && y <= this.y[i] + this.h[i]) found = i;
    return found;
  }

  edgesOf(item) {
    const list = [];
    for (let e = 0; e < this.edges; e++) if (this.from[e] === item || this.to[e] === item) list.push(e);
    return list;
  }

  // Where a node is to be seen: its own box, or the closed group that it is in. path: its groups from the outside in.
  place(node, path) {
    if (this.itemOfNode.has(node)) return this.itemOfNode.get(node);
    for (let i = path.length; i-- > 0;) if (this.itemOfGroup.has(path[i])) return this.itemOfGroup.get(path[i]);
    return -1;
  }
}

// Numbers with runs of them as ranges: "1-4,7".
export function ranges(numbers) {
  const sorted = [...numbers].sort((a, b) => a - b), parts = [];
  for (let i = 0; i < sorted.length;) {
    let end = i;
    while (end + 1 < sorted.length && sorted[end + 1] === sorted[end] + 1) end++;
    parts.push(end > i ? `${sorted[i]}-${sorted[end]}` : `${sorted[i]}`);
    i = end + 1;
  }
  return parts.join(",");
}
