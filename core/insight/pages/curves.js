// Precision over recall, and the true over the false positives (ROC), of a step.
import { format, h } from "./dom.js";
import { numbers } from "./api.js";
import { Chart } from "./chart.js";
import { RecordCard, recordPage } from "./records.js";
import { TagPage } from "./tags.js";

const ratio = (a, b) => Float64Array.from(a, (v, i) => v + b[i] > 0 ? v / (v + b[i]) : NaN);

// Where nothing is called positive, nothing is called so wrongly: files say 0 there, or 1. Curves without counts stay as they are.
const precisionOf = (given, tp, fp) => Float64Array.from(given, (value, i) => tp[i] + fp[i] === 0 ? 1 : value);

// The area under the points by trapezoids, whichever way they run.
function area(x, y) {
  let sum = 0;
  for (let i = 1; i < x.length; i++) if (Number.isFinite(x[i] + y[i] + x[i - 1] + y[i - 1])) sum += (x[i] - x[i - 1]) * (y[i] + y[i - 1]) / 2;
  return Math.abs(sum);
}

class CurveCard extends RecordCard {
  constructor(page, entry) {
    super(page, entry, "pr_curves", null, true);
    this.precision = new Chart({ title: "precision", xLabel: "recall", yLabel: "precision", window: null });
    this.roc = new Chart({ title: "ROC", xLabel: "false positive rate", yLabel: "true positive rate" });
    // The diagonal is what guessing reaches.
    this.roc.layers = [{ extent: [0, 1, 0, 1], draw: (p, sx, sy, colours) => {
      p.strokeStyle = colours["ink-3"];
      p.setLineDash([4, 4]);
      p.beginPath();
      p.moveTo(sx.pixel(0), sy.pixel(0)); p.lineTo(sx.pixel(1), sy.pixel(1));
      p.stroke();
      p.setLineDash([]);
    } }];
    this.precision.layers = [{ extent: [0, 1, 0, 1], draw() {} }];
    for (const chart of [this.precision, this.roc]) chart.element.style.height = "300px";
    this.facts = h("div.scroll");
    this.pair = h("div.columns", this.precision.element, this.roc.element);
    this.show = (run, tag, record) => ({ run, record });
  }

  arrange(shown) {
    const lines = shown.map(({ run, record }) => {
      const [tp, fp, tn, fn] = ["tp", "fp", "tn", "fn"].map(name => numbers(record[name])), thresholds = numbers(record.thresholds);
      return { name: run.name, colour: this.page.view.colour(run), record, precision: precisionOf(numbers(record.precision), tp, fp), recall: numbers(record.recall), tpr: ratio(tp, fn), fpr: ratio(fp, tn), note: i => `threshold ${format(thresholds[i])}` };
    });
    this.precision.set(lines.map(line => ({ ...line, x: line.recall, y: line.precision })));
    this.roc.set(lines.filter(line => line.tpr.length).map(line => ({ ...line, x: line.fpr, y: line.tpr })));
    const f1 = line => line.precision.reduce((best, p, i) => Math.max(best, 2 * p * line.recall[i] / (p + line.recall[i]) || 0), 0);
    return [this.pair, h("table.pairs.dense", h("thead", h("tr", h("th", "Run"), ["Step", "Area under precision–recall", "Area under ROC", "Best F1"].map(text => h("th.number", text)))),
      h("tbody", lines.map(line => h("tr", h("td", h("span.swatch", { style: { background: line.colour } }), " ", line.name),
        [line.record.step, area(line.recall, line.precision), area(line.fpr, line.tpr), f1(line)].map(v => h("td.number", format(typeof v === "number" ? Number(v.toPrecision(4)) : v)))))))];
  }
}

export default async function show(view) {
  const page = recordPage(view);
  const tags = new TagPage(view, {
    kind: "pr_curves", title: "No curves of precision yet", text: "Curves that TensorBoard's summaries hold (pr_curves) are shown here, with the ROC of the same counts.", wide: true,
    card: entry => new CurveCard(page, entry),
  });
  await tags.refresh();
  view.main.addEventListener("theme", () => tags.each(card => card.draw()));
  return tags.handle();
}
