-- The reference as a site of static files that opens from a folder, without a server: index.html; one page for each name in p/, where
-- methods and fields stand on the page of their class, and short entries on that of their kind; lessons/ with the
-- notebooks; source/ with the library's files in Lua, which source.html shows at a line; nav/ with the lists at the side; search.js with
-- the ranking of search.lua and index.js with its index, which is loaded when something is looked for.
local ms = require "lunaria"
local entries = require "lunaria.help.entries"
local show = require "lunaria.help.show"
local files = require "lunaria.help.site_files"
local markdown = require "lunaria.help.markdown"
local search = require "lunaria.help.search"
local words = require "lunaria.help.words"
local html = require "lunaria.help.html"
local lessons = require "lunaria.help.site_lessons"
local similar = require "lunaria.help.similar"
local registry = require "lunaria.registry"

local escaped, linked, address_of = html.escaped, html.linked, html.address_of

local function parameters(list)
  local rows = {}
  for i, p in ipairs(list) do
    local names = p.name
    for _, other in ipairs(p.other_names or {}) do names = names .. ", " .. other end
    rows[i] = { "<code>" .. escaped(names) .. "</code>", escaped(p.type or ""),
      p.default and "<code>" .. escaped(p.default) .. "</code>" or "",
      linked((p.text or "") .. (p.by_name_only and " (by name only)" or "")) }
  end
  return "<h3>Parameters</h3>\n" .. html.table_of({ "name", "type", "default", "meaning" }, rows)
end

local function transcript(rows)
  local lines = {}
  for _, row in ipairs(rows) do
    lines[#lines + 1] = show.typed(row)
    lines[#lines + 1] = row[2]
  end
  return html.code(lines)
end

local function guide_body(entry)
  local parts = {}
  for _, part in ipairs(entry.parts or { entry.doc }) do
    parts[#parts + 1] = type(part) == "string" and "<p>" .. linked(part) .. "</p>\n" or transcript(part)
  end
  local rows = {}
  for i, row in ipairs(entry.rows or {}) do
    local target = entries.names()[row[2]]
    local here = row[2] ~= "" and "<code>" .. escaped(row[2]) .. "</code>" or ""
    local way = target and ('<a href="../%s">%s</a>'):format(address_of(target), here) or here
    rows[i] = { "<code>" .. escaped(row[1]) .. "</code>", way, linked(row[3]), row[4] and "<code>" .. escaped(row[4]) .. "</code>" or "" }
  end
  if #rows > 0 then parts[#parts + 1] = html.table_of({ "there", "here", "difference", "example" }, rows) end
  return table.concat(parts)
end

-- Files that pages lead to, of which the site has copies: { path = true }.
local shown = {}

local function source_of(entry)
  local path, line = entry.source:match "^interpreter/lua/(lunaria/[%w_/]+%.lua):?(%d*)$"
  if path and registry.text(path) then
    shown[path] = true
    return ('<a href="../source.html#%s:%s"><code>%s</code></a>'):format(path, line ~= "" and line or "1", escaped(entry.source))
  end
  return "<code>" .. escaped(entry.source) .. "</code>"
end

local function see_also(entry)
  local links = {}
  for i, other in ipairs(similar(entry)) do
    links[i] = ('<a href="../%s">%s</a>'):format(address_of(other), escaped(other.kind == "guide" and other.head or other.name))
  end
  return #links > 0 and "<p>See also " .. table.concat(links, ", ") .. ".</p>\n" or ""
end

local function body(entry)
  if entry.kind == "guide" then return guide_body(entry) .. see_also(entry) end
  local parts = { html.code({ entry.head }, "head"), html.prose(entry.doc) }
  local function add(text) parts[#parts + 1] = text end
  if #entry.parameters > 0 then add(parameters(entry.parameters)) end
  if #(entry.results or {}) > 0 then add("<h3>Results</h3>\n<p>" .. escaped(table.concat(entry.results, ", ")) .. "</p>\n") end
  if #(entry.examples or {}) > 0 then add("<h3>Example</h3>\n" .. transcript(entry.examples)) end
  local also = {}
  for _, name in ipairs(entry.also or {}) do
    if name ~= entry.name then also[#also + 1] = "<code>" .. escaped(name) .. "</code>" end
  end
  if #also > 0 then add("<p>Also called " .. table.concat(also, ", ") .. ".</p>\n") end
  for _, note in ipairs(entry.notes or {}) do add("<p>" .. linked(note) .. "</p>\n") end
  add(see_also(entry))
  if entry.source then add('<p class="source">Source: ' .. source_of(entry) .. "</p>\n") end
  return table.concat(parts)
end

-- root: the way from the page to index.html's folder. nav: the list at the side, if any.
local function page(title, root, content, nav)
  return (files.page:gsub("{{(%w+)}}", { title = escaped(title), root = root, content = content, version = ms.version,
    nav = nav and ('<script src="%snav/%s.js" defer></script>'):format(root, nav) or "" }))
end

local function index_page(groups, lesson_list)
  local parts = { files.welcome }
  if #lesson_list > 0 then
    local list = {}
    for i, lesson in ipairs(lesson_list) do
      list[i] = ('<li><a href="lessons/%s.html">%s</a>'):format(lesson.file, escaped(lesson.title))
    end
    parts[#parts + 1] = '<section id="lessons"><h2>Lessons</h2>\n<ul class="guides">' .. table.concat(list, "\n") .. "</ul></section>\n"
  end
  for _, group in ipairs(groups) do
    local list, is_guides = {}, group.file == "guides"
    for i, entry in ipairs(group.entries) do
      list[i] = (is_guides and '<li><a href="%s">%s</a></li>' or '<a href="%s">%s</a>'):format(
        address_of(entry), escaped(markdown.title_of(entry)))
    end
    parts[#parts + 1] = (is_guides and '<section id="%s"><h2>%s</h2>\n<ul class="guides">%s</ul></section>\n'
      or '<section id="%s"><h2>%s</h2>\n<p class="names">%s</p></section>\n'):format(
      group.file, escaped(group.title), table.concat(list, "\n"))
  end
  return table.concat(parts)
end

-- The other names of the same group: a script that a page loads, so that it is written once.
local function side(group)
  local rows = {}
  for i, entry in ipairs(group.entries) do rows[i] = { markdown.title_of(entry), address_of(entry) } end
  return ("side(%s, %s);\n"):format(ms.json.encode(group.title), ms.json.encode(rows))
end

local function sorted(set)
  local list = ms.json.array {}
  for text in pairs(set) do list[#list + 1] = text end
  table.sort(list)
  return list
end

-- The index: names of search.js and what search.lua has in them.
local function index()
  local documents, by_word, known = search.index()
  local rows, lists = {}, {}
  for i, document in ipairs(documents) do
    local entry = document.entry
    rows[i] = { markdown.title_of(entry), address_of(entry), entry.kind, markdown.first_sentence(entry.doc):sub(1, 120), document.factor,
      sorted(document.exact), entry.name, sorted(document.phrases), sorted(document.whole) }
  end
  -- Of each word the documents, each as the distance from the one before, with its weight.
  for i, word in ipairs(known) do
    local list, last = {}, 0
    for _, pair in ipairs(by_word[word]) do
      list[#list + 1], list[#list + 2], last = pair[1] - 1 - last, pair[2], pair[1] - 1
    end
    lists[i] = { word, list }
  end
  local parts = {}
  for _, pair in ipairs { { "DOCUMENTS", rows }, { "WORDS", lists }, { "CONCEPTS", search.concepts() },
    { "STOP", sorted(words.stop) }, { "IRREGULAR", words.irregular }, { "ENDINGS", words.endings }, { "FACTORS", search.factors },
    { "NAMED", search.named }, { "CODE", search.code }, { "NOISE", sorted(words.noise) }, { "WEAK", sorted(words.weak) },
    { "MODULES", words.modules }, { "PREFIXES", words.prefixes }, { "FILLERS", words.fillers } } do
    parts[#parts + 1] = ("var %s = %s;\n"):format(pair[1], ms.json.encode(pair[2]))
  end
  return table.concat(parts)
end

return function(folder)
  local function write(name, text) markdown.write(folder .. "/" .. name, text) end
  local function make(name) ms.io.make_folder(folder .. "/" .. name) end
  for _, name in ipairs { "p", "nav", "lessons", "source" } do make(name) end
  local groups, lesson_list = markdown.pages(), lessons.all()
  write("style.css", files.style)
  write("search.js", files.script)
  write("index.js", index())
  write("index.html", page("Lunaria", "", index_page(groups, lesson_list)))
  local own = {}
  for _, group in ipairs(groups) do
    for _, entry in ipairs(group.entries) do
      local owner = html.owner_of(entry)
      if owner then
        own[owner] = own[owner] or {}
        table.insert(own[owner], entry)
      end
    end
  end
  local function part_of(entry)
    return ('<h2 id="%s">%s</h2>\n%s'):format(html.anchor_of(entry), escaped(markdown.title_of(entry)), body(entry))
  end
  for _, group in ipairs(groups) do
    write("nav/" .. group.file .. ".js", side(group))
    local shared = {}
    for _, entry in ipairs(group.entries) do
      if html.is_together(entry) then
        shared[#shared + 1] = part_of(entry)
      elseif not html.owner_of(entry) then
        local title = markdown.title_of(entry)
        local parts = { ('<article><p class="kind"><a href="../index.html#%s">%s</a></p><h1>%s</h1>\n%s'):format(group.file,
          escaped(entry.kind), escaped(title), body(entry)) }
        for _, part in ipairs(own[entry] or {}) do parts[#parts + 1] = part_of(part) end
        write(address_of(entry), page(title, "../", table.concat(parts) .. "</article>", group.file))
      end
    end
    if #shared > 0 then
      write(html.page_of_kind(group.entries[1].kind), page(group.title, "../", ("<article><h1>%s</h1>\n%s</article>"):format(
        escaped(group.title), table.concat(shared)), group.file))
    end
  end
  for _, lesson in ipairs(lesson_list) do
    write("lessons/" .. lesson.file .. ".html", page(lesson.title, "../", "<article>" .. lessons.body(lesson) .. "</article>"))
  end
  for path in pairs(shown) do
    make("source/" .. path:match "^(.*)/")
    write("source/" .. path .. ".js", ("source(%s);\n"):format(ms.json.encode(registry.text(path))))
  end
  write("source.html", page("Source", "", files.source))
end
