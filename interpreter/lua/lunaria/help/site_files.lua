-- The common parts of the site's files: the frame of a page, its style, its script.
-- luacheck: no max line length
local files = {}

files.page = [[<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{title}} - Lunaria</title>
<link rel="stylesheet" href="{{root}}style.css">
</head>
<body data-root="{{root}}">
<header>
<a class="home" href="{{root}}index.html">Lunaria <small>{{version}}</small></a>
<div class="box"><input id="query" type="search" placeholder="Search: a name, another framework's name, or words ( / )" autocomplete="off" spellcheck="false">
<ol id="results"></ol></div>
</header>
<main>
{{content}}
</main>
<script src="{{root}}search.js" defer></script>
{{nav}}
</body>
</html>
]]

-- Shows a file at a line: source.html#lunaria/nn/basic.lua:40.
files.source = [[<article class="source-text"><h1 id="path">Source</h1><pre id="text"></pre></article>
<script>
function source(text) {
  const [path, line] = decodeURIComponent(location.hash.slice(1)).split(":");
  document.getElementById("path").textContent = "interpreter/lua/" + path;
  const box = document.getElementById("text");
  text.split("\n").forEach((row, i) => {
    const part = document.createElement("span");
    part.textContent = String(i + 1).padStart(4) + "  " + row + "\n";
    if (i + 1 === Number(line)) part.className = "chosen";
    box.append(part);
  });
  const chosen = box.querySelector(".chosen");
  if (chosen) chosen.scrollIntoView({ block: "center" });
}
const wanted = location.hash.slice(1).split(":")[0];
if (/^[\w/]+\.lua$/.test(wanted)) {
  const script = document.createElement("script");
  script.src = "source/" + wanted + ".js";
  document.body.append(script);
}
addEventListener("hashchange", () => location.reload());
</script>
]]

files.welcome = [[<div class="welcome"><h1>Reference</h1>
<p>Everything that can be typed: operators, layers, optimizers, transforms, methods, commands of a session, options of the program, the debugger.
The box above finds names, the names that PyTorch, MindSpore and numpy have for them, and words of the texts.
At the prompt <code>?name</code> shows the same, <code>%apropos words</code> searches.</p></div>
]]

files.style = [[
:root { --ink: #1d2330; --dim: #667085; --line: #dfe3ea; --back: #ffffff; --soft: #f5f7fa; --accent: #3457d5; --mark: #e8edff; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e7ee; --dim: #98a1b3; --line: #2d3442; --back: #151922; --soft: #1d2330; --accent: #8aa4ff; --mark: #26304f; }
}
* { box-sizing: border-box; }
body { margin: 0; color: var(--ink); background: var(--back); font: 16px/1.55 system-ui, "DejaVu Sans", sans-serif; }
header { position: sticky; top: 0; z-index: 2; display: flex; gap: 2rem; align-items: center; padding: .6rem 1.5rem; background: var(--back);
  border-bottom: 1px solid var(--line); }
.home { font-weight: 700; font-size: 1.15rem; color: var(--ink); text-decoration: none; white-space: nowrap; }
.home small { font-weight: 400; color: var(--dim); }
.box { position: relative; flex: 1; max-width: 44rem; }
#query { width: 100%; padding: .5rem .8rem; font: inherit; color: inherit; background: var(--soft); border: 1px solid var(--line); border-radius: .5rem; }
#query:focus { outline: 2px solid var(--accent); border-color: transparent; }
#results { position: absolute; left: 0; right: 0; margin: .3rem 0 0; padding: .3rem; list-style: none; background: var(--back); border: 1px solid var(--line);
  border-radius: .5rem; box-shadow: 0 8px 24px rgb(0 0 0 / .15); max-height: 75vh; overflow: auto; }
#results:empty { display: none; }
#results a { display: block; padding: .4rem .6rem; border-radius: .35rem; text-decoration: none; color: inherit; }
#results a:hover, #results .chosen a { background: var(--mark); }
#results b { color: var(--accent); font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: .93em; }
#results i { float: right; font-style: normal; color: var(--dim); font-size: .85em; }
#results span { display: block; color: var(--dim); font-size: .88em; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
main { display: flex; flex-wrap: wrap; gap: 0 2.5rem; max-width: 82rem; margin: 0 auto; padding: 1rem 1.5rem 4rem; }
article { flex: 1; min-width: 0; max-width: 56rem; }
.side { width: 15rem; max-height: calc(100vh - 5rem); overflow: auto; position: sticky; top: 4rem; font-size: .88rem; }
.side ul { list-style: none; margin: 0; padding: 0; }
.side li { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.side li.here a { font-weight: 700; color: var(--ink); }
@media (max-width: 800px) { .side { display: none; } }
.welcome, section { width: 100%; }
a { color: var(--accent); text-decoration: none; }
a:hover { text-decoration: underline; }
h1 { font-size: 1.7rem; margin: .2rem 0 1rem; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 1.8rem 0 .6rem; border-bottom: 1px solid var(--line); padding-bottom: .2rem; }
h3 { font-size: .95rem; margin: .8rem 0 .4rem; color: var(--dim); }
.kind { margin: .6rem 0 0; font-size: .85rem; color: var(--dim); }
.source { color: var(--dim); font-size: .88rem; margin-top: 2rem; }
code, pre { font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: .9em; }
pre { padding: .8rem 1rem; background: var(--soft); border: 1px solid var(--line); border-radius: .5rem; overflow-x: auto; line-height: 1.45; }
pre.head { white-space: pre-wrap; }
pre b { color: var(--accent); font-weight: 600; }
table { border-collapse: collapse; width: 100%; font-size: .93rem; }
th { text-align: left; color: var(--dim); font-weight: 600; }
th, td { padding: .4rem .8rem .4rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
h2:target { background: var(--mark); }
.shown { margin: -.4rem 0 1rem; } .shown pre { background: none; } .shown svg, .shown img { max-width: 100%; height: auto; }
pre.cell { border-left: 3px solid var(--accent); }
.source-text pre { white-space: pre; } .source-text .chosen { background: var(--mark); }
.names a { display: inline-block; margin: 0 .9rem .25rem 0; }
.guides { columns: 2; padding-left: 1.2rem; }
]]

-- The ranking is that of search.lua, which tells what it does, over the data of index.js; tests/lua/search_test.lua compares the two.
files.script = [=[
function stem(word) {
  if (Object.hasOwn(IRREGULAR, word)) return IRREGULAR[word];
  for (const pass of ENDINGS) {
    const rule = pass.find(([ending, least]) => word.length >= ending.length + least && word.endsWith(ending));
    if (rule) word = word.slice(0, word.length - rule[0].length) + rule[2];
  }
  return word;
}

function wordsOf(text) {
  const list = [];
  const add = (word) => {
    word = word.toLowerCase();
    if (word && !STOP.includes(word)) list.push(stem(word));
  };
  text = text.replace(/([Ee]lement)[\s-]([Ww]ise)/g, "$1$2").replace(/([Ee]lement) by element/g, "$1wise");
  for (const prefix of PREFIXES) text = text.replace(new RegExp(`(?<![A-Za-z])(${prefix})-([A-Za-z])`, "g"), "$1$2");
  for (const token of text.match(/[A-Za-z0-9_]+/g) || []) {
    const split = token.replace(/([a-z])([A-Z])/g, "$1_$2").replace(/([A-Za-z])([0-9]+[A-Za-z])$/, "$1_$2");
    if (split.includes("_")) split.split("_").forEach(add);
    add(token.replace(/_/g, ""));
  }
  return list;
}

function withoutFillers(query) {
  const plain = FILLERS.reduce((text, filler) => text.replaceAll(` ${filler} `, " "), ` ${query.toLowerCase().replace(/\s+/g, " ")} `);
  return wordsOf(plain).length ? plain : query;
}

function namesOf(text) {
  const list = [];
  for (const token of text.match(/[A-Za-z0-9_.]*[A-Za-z0-9_]/g) || []) {
    if (!/[A-Za-z]\.[A-Za-z]|[A-Za-z0-9]_[A-Za-z0-9]|[a-z][A-Z]/.test(token)) continue;
    const name = token.toLowerCase().replace(/^\.+/, ""), row = MODULES.find(([module]) => name.startsWith(module));
    list.push(row ? row[1] + name.slice(row[0].length) : name);
  }
  return list;
}

let terms;

function prepare() {
  if (terms) return;
  terms = new Map();
  for (const [word, list] of WORDS) {
    const pairs = [];
    let id = 0;
    for (let i = 0; i < list.length; i += 2) pairs.push([id += list[i], list[i + 1]]);
    terms.set(word, pairs);
  }
}

function placesOf(phrase, list, left) {
  let best, width;
  for (let start = 0; start + phrase.length <= list.length; start++) {
    const places = new Set();
    for (const word of phrase) {
      for (let i = start; i <= Math.min(list.length - 1, start + phrase.length + 1); i++) {
        if (list[i] === word && left[i] && !places.has(i)) { places.add(i); break; }
      }
    }
    const last = Math.max(start, ...places);
    if (places.size === phrase.length && (!best || last - start < width)) { best = places; width = last - start; }
  }
  return best && [best, width];
}

function spansOf(list, query) {
  const spans = [], left = list.map(() => true), text = ` ${query.toLowerCase().replace(/[^a-z0-9]+/g, " ")} `;
  const found = [];
  CONCEPTS.forEach((row, i) => {
    if (row[0].length > list.length || row[2] && !text.includes(` ${row[2]} `)) return;
    const places = placesOf(row[0], list, left);
    if (places) found.push([row, places[1], i, row[0].reduce((sum, word) => sum + rarityOf(word), 0)]);
  });
  found.sort((a, b) => b[0][0].length - a[0][0].length || a[1] - b[1] || b[3] - a[3] || a[2] - b[2]);
  for (const [row] of found) {
    const places = placesOf(row[0], list, left);
    if (!places) continue;
    for (const i of places[0]) left[i] = false;
    spans.push(row);
  }
  list.forEach((word, i) => { if (left[i]) spans.push([[word], []]); });
  return spans;
}

function rarityOf(word) {
  return Math.log(1 + DOCUMENTS.length / (terms.get(word) || [0]).length);
}

function scoresOf(word, cache) {
  if (cache.has(word)) return cache.get(word);
  const best = new Map();
  for (const [other, list] of terms) {
    if (word.length < 4 && other !== word) continue;
    const factor = other === word ? 1.0 : (other.startsWith(word) ? FACTORS.beginning : other.includes(word) ? FACTORS.middle : 0)
      * (terms.has(word) ? FACTORS.known : 1.0);
    if (!factor) continue;
    const rarity = Math.min(rarityOf(other), rarityOf(word));
    for (const [id, weight] of list) {
      const score = weight * rarity * factor;
      if (score > (best.get(id) || 0)) best.set(id, score);
    }
  }
  cache.set(word, best);
  return best;
}

function scoresOfTerm(term, cache) {
  let result;
  for (const word of term) {
    const scores = scoresOf(word, cache), both = new Map();
    for (const [id, score] of result || scores) {
      if (scores.has(id)) both.set(id, (result ? score : 0) + scores.get(id));
    }
    result = both;
  }
  const named = NAMED * Math.log(1 + DOCUMENTS.length / 3), whole = term[term.length - 1];
  return new Map([...result].map(([id, score]) =>
    [id, DOCUMENTS[id][8].includes(whole) ? Math.max(named, score / term.length) : score / term.length]));
}

function scoresOfSpan(span, cache) {
  const score = new Map(), share = new Map(), through = new Map();
  let all = 0;
  for (const word of span[0]) {
    const part = !span[1].length && (WEAK.includes(word) || /^[0-9][0-9x]*$/.test(word)) ? FACTORS.weak : 1.0;
    const rarity = rarityOf(word) * part;
    all += rarity;
    for (const [id, value] of scoresOf(word, cache)) {
      score.set(id, (score.get(id) || 0) + value * part);
      share.set(id, (share.get(id) || 0) + rarity);
    }
  }
  for (const [id, value] of share) share.set(id, value / all);
  span[1].forEach((term, i) => {
    const factor = FACTORS.order ** Math.min(i, 3);
    for (const [id, value] of scoresOfTerm(term, cache)) through.set(id, Math.max(through.get(id) || 0, value * factor));
  });
  for (let [id, value] of through) {
    value = value * FACTORS.concept * (1 + FACTORS.further * (span[0].length - 1));
    if (value > (score.get(id) || 0)) score.set(id, value);
    share.set(id, Math.max(share.get(id) || 0, FACTORS.concept));
  }
  return [score, share, all];
}

function withoutNoise(spans) {
  const kept = spans.filter(([list, ours]) => ours.length || !NOISE.includes(list[0]) && !/^\d+$/.test(list[0]));
  return kept.length ? kept : spans;
}

function spokenOf(query) {
  const ids = new Set();
  for (let name of namesOf(query)) {
    for (let found = false; name && !found; name = name.includes(".") ? name.slice(name.indexOf(".") + 1) : "") {
      DOCUMENTS.forEach((document, id) => {
        if (document[5].includes(name)) { ids.add(id); found = true; }
      });
    }
  }
  return ids;
}

function bonusOf(document, text, kept) {
  let best = 0;
  for (const phrase of document[7]) {
    const parts = phrase.split(" ");
    if (parts.length < 2 || !parts.every((word) => text.includes(` ${word} `))) continue;
    const sum = parts.reduce((sum, word) => sum + rarityOf(word), 0);
    best = Math.max(best, text.includes(` ${phrase} `) || kept.includes(` ${phrase} `) ? sum : sum * FACTORS.scattered);
  }
  return best * FACTORS.phrase;
}

function find(query, count) {
  prepare();
  const plain = query.toLowerCase().trim().replace(/[\s()?]*$/, "");
  const scores = new Map(), shares = new Map(), cache = new Map();
  const list = wordsOf(withoutFillers(query)), spans = withoutNoise(spansOf(list, query)), spoken = spokenOf(query);
  const text = ` ${list.join(" ")} `, kept = ` ${list.filter((word) => !NOISE.includes(word)).join(" ")} `;
  let whole = 0;
  for (const span of spans) {
    const [score, share, rarity] = scoresOfSpan(span, cache);
    whole += rarity;
    for (const [id, value] of score) {
      scores.set(id, (scores.get(id) || 0) + value);
      shares.set(id, (shares.get(id) || 0) + share.get(id) * rarity);
    }
  }
  const found = [];
  DOCUMENTS.forEach((document, id) => {
    const factor = document[4];
    let value = scores.has(id) ? (scores.get(id) + bonusOf(document, text, kept)) * (shares.get(id) / whole) ** FACTORS.share * factor : 0;
    if (spoken.has(id)) value += CODE * factor;
    if (document[5].includes(plain)) value += 1000 * factor;
    else if (document[7].includes(text.slice(1, -1)) || document[7].includes(kept.slice(1, -1))) value += 500 * Math.min(factor, 1);
    if (value > 0) found.push([value, document]);
  });
  found.sort((a, b) => b[0] - a[0] || (a[1][6] < b[1][6] ? -1 : 1));
  return found.slice(0, count).map((pair) => pair[1]);
}

const root = document.body.dataset.root || "";

// The list at the side of a page, which nav/*.js calls.
function side(title, rows) {
  const list = document.createElement("nav"), head = document.createElement("h3"), items = document.createElement("ul");
  list.className = "side";
  head.textContent = title;
  const here = location.pathname.split("/").pop() + location.hash;
  for (const [name, address] of rows) {
    const item = document.createElement("li"), link = document.createElement("a");
    link.href = root + address;
    link.textContent = name;
    if (address.split("/").pop() === here) item.className = "here";
    item.append(link);
    items.append(item);
  }
  list.append(head, items);
  document.querySelector("main").prepend(list);
  const chosen = list.querySelector(".here");
  if (chosen) list.scrollTop = chosen.offsetTop - 120;
}

const box = document.getElementById("query");
if (box) {
  const results = document.getElementById("results");
  let chosen = 0, loading;
  const load = () => loading ||= new Promise((done) => {
    const script = document.createElement("script");
    script.src = root + "index.js";
    script.onload = done;
    document.body.append(script);
  });
  const mark = () => [...results.children].forEach((row, i) => {
    row.className = i === chosen ? "chosen" : "";
    if (i === chosen) row.scrollIntoView({ block: "nearest" });
  });
  const row = (texts, address) => {
    const item = document.createElement("li"), link = document.createElement(address ? "a" : "p");
    if (address) link.href = root + address;
    for (const [tag, text] of texts) {
      const part = document.createElement(tag);
      part.textContent = text;
      link.append(part);
    }
    item.append(link);
    return item;
  };
  const show = async () => {
    const query = box.value.trim();
    if (query) await load();
    if (query !== box.value.trim()) return;
    chosen = 0;
    const found = query ? find(query, 12) : [];
    results.replaceChildren(...found.map(([title, address, kind, sentence]) => row([["i", kind], ["b", title], ["span", sentence]], address)));
    if (query && !found.length) results.append(row([["span", `Nothing found for "${query}".`]]));
    mark();
  };
  box.addEventListener("focus", load);
  box.addEventListener("input", show);
  box.addEventListener("keydown", (event) => {
    const rows = results.children.length;
    if (event.key === "ArrowDown" && rows) chosen = (chosen + 1) % rows;
    else if (event.key === "ArrowUp" && rows) chosen = (chosen + rows - 1) % rows;
    else if (event.key === "Enter" && rows) location.href = results.children[chosen].firstChild.href || location.href;
    else if (event.key === "Escape") { box.value = ""; show(); return; }
    else return;
    event.preventDefault();
    mark();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && document.activeElement !== box) { event.preventDefault(); box.focus(); }
  });
  document.addEventListener("click", (event) => { if (!event.target.closest(".box")) results.replaceChildren(); });
  const asked = new URLSearchParams(location.search).get("q");
  if (asked) { box.value = asked; show(); }
}
]=]

return files
