// The filter of runs: words that the name, the notes or a label hold; label:good; comparisons of any hyper-parameter, metric or
// field of the data set, as in accuracy>0.9 optimizer=Adam. All must hold; a word after - must not.
const COMPARES = {
  "<": (a, b) => a < b, "<=": (a, b) => a <= b, ">": (a, b) => a > b, ">=": (a, b) => a >= b, "=": (a, b) => a === b, "!=": (a, b) => a !== b,
};

const valueOf = (run, key) => {
  for (const field of ["metrics", "hyper", "data"]) if (run[field] && Object.hasOwn(run[field], key)) return run[field][key];
  return ["steps", "name", "notes", "live"].includes(key) ? run[key] : undefined;
};

function term(token) {
  const [, key, operator, text] = token.match(/^([^<>=!]+)(<=|>=|!=|<|>|=)(.*)$/s) ?? [];
  if (operator) {
    if (text === "") return null; // still being typed
    const wanted = Number(text), isNumber = !Number.isNaN(wanted);
    return run => {
      const value = valueOf(run, key);
      if (value === undefined || value === null) return operator === "!=";
      if (isNumber && typeof value === "number") return COMPARES[operator](value, wanted);
      return COMPARES[operator](String(value).toLowerCase(), text.toLowerCase());
    };
  }
  const lower = token.toLowerCase();
  if (lower.startsWith("label:")) return run => (run.labels ?? []).some(label => label.toLowerCase().includes(lower.slice(6)));
  return run => [run.name, run.notes, ...run.labels ?? []].some(text => String(text ?? "").toLowerCase().includes(lower));
}

export function filterOf(text) {
  const tokens = text.match(/(?:[^\s"]|"[^"]*")+/g) ?? [], tests = [];
  for (let token of tokens) {
    const not = token.startsWith("-") && token.length > 1;
    if (not) token = token.slice(1);
    const test = term(token.replaceAll('"', ""));
    if (test) tests.push(not ? run => !test(run) : test);
  }
  return { test: run => tests.every(test => test(run)) };
}
