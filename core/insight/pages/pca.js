// Principal components of rows of numbers: the directions of the greatest variance, by power iteration on the centred rows.
const ROUNDS = 60;

// rows: arrays of equal length; gives { points: rows in `most` directions, explained: their parts of the variance }.
export function components(rows, most = 3) {
  const n = rows.length, d = rows[0]?.length ?? 0, mean = new Float64Array(d);
  const data = rows.map(row => Float64Array.from(row, v => Number.isFinite(v) ? v : 0));
  for (const row of data) for (let k = 0; k < d; k++) mean[k] += row[k] / n;
  let total = 0;
  for (const row of data) for (let k = 0; k < d; k++) { row[k] -= mean[k]; total += row[k] * row[k]; }
  const points = data.map(() => []), explained = [];
  for (let c = 0; c < Math.min(most, d); c++) {
    // A start that is the same every time, and along no axis.
    let direction = Float64Array.from({ length: d }, (_, k) => 1 + 0.37 * Math.sin(k + 1 + c));
    for (let round = 0; round < ROUNDS; round++) {
      const next = new Float64Array(d);
      for (const row of data) {
        let along = 0;
        for (let k = 0; k < d; k++) along += row[k] * direction[k];
        for (let k = 0; k < d; k++) next[k] += along * row[k];
      }
      const length = Math.hypot(...next);
      if (!(length > 0)) break;
      direction = next.map(v => v / length);
    }
    let variance = 0;
    const length = Math.hypot(...direction) || 1;
    for (const [i, row] of data.entries()) {
      let along = 0;
      for (let k = 0; k < d; k++) along += row[k] * direction[k] / length;
      variance += along * along;
      points[i].push(along);
      for (let k = 0; k < d; k++) row[k] -= along * direction[k] / length; // what is left for the next direction
    }
    explained.push(total > 0 ? variance / total : 0);
  }
  return { points, explained };
}
