-- An entry of the index as text for a terminal and as Markdown; what is similar to a name.
local entries = require "lunaria.help.entries"
local registry = require "lunaria.registry"
local similar = require "lunaria.help.similar"

local show = {}

--- What is typed in an example, with what stands before it at the prompt, the debugger's or a shell's.
function show.typed(row)
  local prompt = row.prompt or "> "
  return (prompt .. row[1]:gsub("\n", "\n" .. (prompt == "> " and ".. " or "")))
end

local function parameter_line(p)
  local facts = {}
  if p.type then facts[#facts + 1] = p.type end
  if p.default and p.default ~= "nil" then facts[#facts + 1] = "default " .. p.default end
  if p.by_name_only then facts[#facts + 1] = "by name only" end
  return facts, p.text or ""
end

local function names_of(p)
  local names = p.name
  for _, other in ipairs(p.other_names or {}) do names = names .. ", " .. other end
  return names
end

local function append_parameters(lines, list)
  if #list == 0 then return end
  lines[#lines + 1] = "Parameters"
  local width = 0
  for _, p in ipairs(list) do width = math.max(width, math.min(#names_of(p), 20)) end
  for _, p in ipairs(list) do
    local facts, text = parameter_line(p)
    local name = names_of(p)
    local line = "  " .. name .. (" "):rep(width - #name) .. "  " .. text
    if #facts > 0 then line = line .. (text ~= "" and " " or "") .. "(" .. table.concat(facts, ", ") .. ")" end
    lines[#lines + 1] = line
  end
  lines[#lines + 1] = ""
end

local function other_names(entry)
  local list = {}
  for _, name in ipairs(entry.also or {}) do
    if name ~= entry.name then list[#list + 1] = name end
  end
  return list
end

-- "See also a, b." or nothing.
local function see_also(entry, quote)
  local names = {}
  for i, other in ipairs(similar(entry)) do names[i] = quote .. other.name .. quote end
  return #names > 0 and "See also " .. table.concat(names, ", ") .. ".\n" or nil
end

-- The parts of a guide: texts, transcripts, and tables of names.
local function parts_of(entry, fence)
  local lines = {}
  for _, part in ipairs(entry.parts or { entry.doc }) do
    if type(part) == "string" then
      lines[#lines + 1] = part .. "\n"
    else
      lines[#lines + 1] = fence and "```lua" or nil
      for _, row in ipairs(part) do
        lines[#lines + 1] = show.typed(row)
        lines[#lines + 1] = row[2]
      end
      lines[#lines + 1] = fence and "```\n" or ""
    end
  end
  if entry.rows then
    lines[#lines + 1] = fence and "| there | here | difference | example |\n| --- | --- | --- | --- |" or ""
    for _, row in ipairs(entry.rows) do
      local here = row[2] == "" and "" or fence and "`" .. row[2] .. "`" or row[2]
      local example = row[4] and (fence and "`" .. row[4] .. "`" or "\n      " .. row[4]) or ""
      lines[#lines + 1] = (fence and "| `%s` | %s | %s | %s |" or "  %-32s %-32s %s%s"):format(row[1], here, row[3], example)
    end
  end
  return table.concat(lines, "\n") .. "\n"
end

--- For a terminal. head: what stands in the first line in place of the entry's own name.
function show.text(entry, head)
  if entry.kind == "guide" then return entry.head .. "\n\n" .. parts_of(entry) end
  local lines = { head or entry.head, "" }
  if entry.doc ~= "" then
    lines[#lines + 1] = entry.doc
    lines[#lines + 1] = ""
  end
  append_parameters(lines, entry.parameters)
  if entry.results and #entry.results > 0 then
    lines[#lines + 1] = "Results\n  " .. table.concat(entry.results, " ") .. "\n"
  end
  if #(entry.examples or {}) > 0 then
    lines[#lines + 1] = #entry.examples > 1 and "Examples" or "Example"
    for _, example in ipairs(entry.examples) do
      lines[#lines + 1] = "  " .. show.typed(example):gsub("\n", "\n  ")
      if example[2] then lines[#lines + 1] = "  " .. example[2]:gsub("\n", "\n  ") end
    end
    lines[#lines + 1] = ""
  end
  local also = other_names(entry)
  if #also > 0 then lines[#lines + 1] = "Also called " .. table.concat(also, ", ") .. ".\n" end
  for _, note in ipairs(entry.notes or {}) do lines[#lines + 1] = note .. "\n" end
  lines[#lines + 1] = see_also(entry, "")
  if entry.source then lines[#lines + 1] = "Source: " .. entry.source end
  return table.concat(lines, "\n") .. "\n"
end

--- As Markdown, below a heading of the caller's.
function show.body(entry)
  if entry.kind == "guide" then return parts_of(entry, true) end
  local lines = {}
  local function line(text) lines[#lines + 1] = text end
  line("```lua\n" .. entry.head .. "\n```\n")
  if entry.doc ~= "" then line(entry.doc .. "\n") end
  if #entry.parameters > 0 then
    line "| parameter | type | default | meaning |\n| --- | --- | --- | --- |"
    for _, p in ipairs(entry.parameters) do
      local function cell(text) return ((text or ""):gsub("|", "\\|"):gsub("\n", " ")) end
      line(("| `%s` | %s | %s | %s |"):format(names_of(p), cell(p.type), p.default and "`" .. cell(p.default) .. "`" or "",
        cell(p.text) .. (p.by_name_only and " (by name only)" or "")))
    end
    line ""
  end
  if entry.results and #entry.results > 0 then line("Results: " .. table.concat(entry.results, ", ") .. ".\n") end
  if #(entry.examples or {}) > 0 then
    line "```lua"
    for _, example in ipairs(entry.examples) do
      line(show.typed(example))
      if example[2] then line(example[2]) end
    end
    line "```\n"
  end
  local also = other_names(entry)
  if #also > 0 then line("Also called `" .. table.concat(also, "`, `") .. "`.\n") end
  for _, note in ipairs(entry.notes or {}) do line(note .. "\n") end
  line(see_also(entry, "`"))
  if entry.source then line("Source: `" .. entry.source .. "`\n") end
  return table.concat(lines, "\n")
end

-- The first line: what the user calls it, with the parameters.
local function head_for(entry, name)
  if entry.kind == "operator" or not name or name == "" then return entry.head end
  local list = entry.head:match "%(.*%)$"
  return list and name .. list or entry.head
end

local function answer(entry, name, level)
  local text, markdown = show.text(entry, head_for(entry, name)), show.body(entry)
  if level > 0 and type(entry.value) == "function" then
    local listing = registry.listing(entry.value)
    if listing.text then
      text = text .. "\n" .. listing.text .. "\n"
      markdown = markdown .. "\n```lua\n" .. listing.text .. "\n```\n"
    end
  end
  return text, markdown
end

--- Text and Markdown of a value of the library's; nothing for others. name: what the user called it, or "".
function show.value(name, value, level)
  local entry = entries.of(value)
  if not entry and (name:match "^ms%." or name:match "^[%w_]+%.[%w_]+$") and type(value) ~= "function" then
    -- Constants are known by their names alone.
    local named = entries.find(name)
    if named and named.topic and named.name:gsub("^ms%.", "") == name:gsub("^ms%.", "") then entry = named end
  end
  if entry then return answer(entry, name, level or 0) end
end

--- The same of a name that no variable leads to.
function show.name(name, level)
  local entry = entries.find(name)
  if entry then return answer(entry, nil, level or 0) end
end

local function first_sentence(text)
  text = text:gsub("%s+", " ")
  return text:match "^(.-%.) " or text
end

--- What has these words in its name or text, as lines; nothing where there is none.
function show.search(words, count)
  local search = require "lunaria.help.search"
  local found, share = search.find(words, count or 12, words:find "^[%w_]+$" ~= nil)
  if #found == 0 then return nil end
  local lines, width = {}, 0
  for _, entry in ipairs(found) do width = math.max(width, #entry.name) end
  for i, entry in ipairs(found) do
    local sentence = first_sentence(entry.kind == "guide" and entry.head or entry.doc)
    if utf8.len(sentence) and utf8.len(sentence) > 90 then sentence = sentence:sub(1, utf8.offset(sentence, 88) - 1) .. "..." end
    lines[i] = ("%-" .. math.min(width, 36) .. "s  %s"):format(entry.name, sentence)
  end
  if share < search.enough then table.insert(lines, 1, ("nothing has all of '%s'; what has a part of it:"):format(words)) end
  return table.concat(lines, "\n")
end

return show
