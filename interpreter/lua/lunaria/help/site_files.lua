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
<script src="{{root}}search.js"></script>
</body>
</html>
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
.names a { display: inline-block; margin: 0 .9rem .25rem 0; }
.guides { columns: 2; padding-left: 1.2rem; }
]]

-- The ranking is that of search.lua, which tells what it does; tests/lua/site_test.lua compares the two.
files.script = [=[
const stopped = new Set(STOP);

function stem(word) {
  if (word.length > 4) {
    word = word.replace(/ies$/, "y").replace(/([^s])s$/, "$1");
    if (word.length > 6) word = word.replace(/ing$/, "").replace(/ation$/, "").replace(/ed$/, "");
  }
  return word;
}

function wordsOf(text) {
  const list = [];
  const add = (word) => {
    word = word.toLowerCase();
    if (word && !stopped.has(word)) list.push(stem(word));
  };
  for (const token of text.match(/[A-Za-z0-9_]+/g) || []) {
    const split = token.replace(/([a-z])([A-Z])/g, "$1_$2").replace(/([A-Za-z])([0-9]+[A-Za-z])$/, "$1_$2");
    if (split.includes("_")) split.split("_").forEach(add);
    add(token.replace(/_/g, ""));
  }
  return list;
}

function find(query, count) {
  const words = wordsOf(query);
  const plain = query.toLowerCase().trim().replace(/[\s()]*$/, "");
  const scores = new Map();
  for (const word of words) {
    const best = new Map();
    for (const [known, list] of WORDS) {
      const factor = known === word ? 1.0 : word.length >= 3 && known.startsWith(word) ? 0.6 : word.length >= 4 && known.includes(word) ? 0.3 : 0;
      if (!factor) continue;
      const rarity = Math.log(1 + DOCUMENTS.length / list.length);
      for (const [id, weight] of list) {
        const score = weight * rarity * factor;
        if (score > (best.get(id) || 0)) best.set(id, score);
      }
    }
    for (const [id, score] of best) {
      const entry = scores.get(id) || [0, 0];
      scores.set(id, [entry[0] + score, entry[1] + 1]);
    }
  }
  const found = [];
  DOCUMENTS.forEach((document, id) => {
    const factor = document[4], score = scores.get(id);
    let value = score ? score[0] * (score[1] / words.length) * factor : 0;
    if (document[5].includes(plain)) value += 1000 * factor;
    else if (document[7].includes(plain)) value += 500 * factor;
    if (value > 0) found.push([value, document]);
  });
  found.sort((a, b) => b[0] - a[0] || (a[1][6] < b[1][6] ? -1 : 1));
  return found.slice(0, count).map((pair) => pair[1]);
}

const box = document.getElementById("query");
if (box) {
  const results = document.getElementById("results"), root = document.body.dataset.root;
  let chosen = 0;
  const mark = () => [...results.children].forEach((row, i) => {
    row.className = i === chosen ? "chosen" : "";
    if (i === chosen) row.scrollIntoView({ block: "nearest" });
  });
  const show = () => {
    results.replaceChildren();
    chosen = 0;
    for (const [title, address, kind, sentence] of box.value.trim() ? find(box.value, 12) : []) {
      const row = document.createElement("li"), link = document.createElement("a");
      link.href = root + address;
      for (const [tag, text] of [["i", kind], ["b", title], ["span", sentence]]) {
        const part = document.createElement(tag);
        part.textContent = text;
        link.append(part);
      }
      row.append(link);
      results.append(row);
    }
    mark();
  };
  box.addEventListener("input", show);
  box.addEventListener("keydown", (event) => {
    const rows = results.children.length;
    if (event.key === "ArrowDown" && rows) chosen = (chosen + 1) % rows;
    else if (event.key === "ArrowUp" && rows) chosen = (chosen + rows - 1) % rows;
    else if (event.key === "Enter" && rows) location.href = results.children[chosen].firstChild.href;
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
  const here = document.querySelector(".side .here");
  if (here) here.parentNode.parentNode.scrollTop = here.offsetTop - 120;
}
]=]

return files
