// Questions to the server that sent the pages; nothing else is ever asked. Addresses are relative, so a prefix of the server's
// path needs no setting.
const base = new URL("v1/lunaria/", document.baseURI);

export const url = path => new URL(path.replace(/^\//, ""), base).href;

// Numbers that JSON lacks come as texts.
const names = { NaN: NaN, Infinity: Infinity, "-Infinity": -Infinity };
export const number = x => typeof x === "number" ? x : Object.hasOwn(names, x) ? names[x] : NaN;
export const numbers = list => Float64Array.from(list ?? [], number);

async function answer(response) {
  const text = await response.text();
  let value;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Error(response.ok ? "the server's answer is not JSON" : `the server answers ${response.status}: ${text.slice(0, 200)}`);
  }
  if (!response.ok) throw new Error(value.error ?? `the server answers ${response.status}`);
  return value;
}

export const get = async (path, options) => answer(await fetch(url(path), { credentials: "same-origin", ...options }));

// An answer that is not JSON, such as a picture; errors are as ever.
export async function file(path) {
  const response = await fetch(url(path), { credentials: "same-origin" });
  return response.ok ? response : answer(response);
}

const sent = method => async (path, body) => answer(await fetch(url(path), {
  method, credentials: "same-origin", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
}));

export const put = sent("PUT"), post = sent("POST");

// Answers that are kept until the run they are of changes; many cards ask for the same.
const kept = new Map();

export function cached(path) {
  if (!kept.has(path)) {
    const promise = get(path);
    kept.set(path, promise);
    promise.catch(() => kept.delete(path));
    if (kept.size > 400) kept.delete(kept.keys().next().value);
  }
  return kept.get(path);
}

export function forget(runs) {
  for (const path of kept.keys())
    if (!path.startsWith("runs/") || runs.some(id => path.startsWith(`runs/${id}/`))) kept.delete(path);
}

// Runs at most `most` of the promises at a time, in the order asked for.
export function limiter(most) {
  const queue = [];
  let busy = 0;
  const next = () => {
    if (busy >= most || !queue.length) return;
    const [f, resolve, reject] = queue.shift();
    busy++;
    f().then(resolve, reject).finally(() => { busy--; next(); });
  };
  return f => new Promise((resolve, reject) => { queue.push([f, resolve, reject]); next(); });
}

// Only a page that is seen holds a connection: a browser opens six to a server, and each window would keep one. The first event of a
// connection tells what changed meanwhile.
export function events(receive, state) {
  let source = null;
  const follow = () => {
    if (document.hidden) return leave();
    if (source) return;
    source = new EventSource(url("events"));
    source.onopen = () => state(true);
    source.onerror = () => state(false);
    source.onmessage = message => {
      try { receive(JSON.parse(message.data)); } catch (error) { console.warn("an event that is not understood", error); }
    };
  };
  const leave = () => {
    source?.close();
    source = null;
  };
  document.addEventListener("visibilitychange", follow);
  addEventListener("pagehide", leave);
  addEventListener("pageshow", follow);
  follow();
}
