-- Remedies from the entry of a function, class or operator, for errors that no rule knows: what the parameter is that the message speaks
-- of, and a call that is right; and the parameter that is meant by a name which others use.
local ms = require "lunaria"
local foreign = require "lunaria.help.foreign"
local words = require "lunaria.help.words"

local usage = {}

local function quoted(text) return (text:gsub("%W", "%%%0")) end

-- The value of "nn.Dense" or "model:train" in a line.
local function value_of(path, variables)
  local root = path:match "^[%w_]+"
  local own = { ms = ms, nn = ms.nn, ops = ms.ops }
  return foreign.value((path:gsub(":", ".")), variables[root] and variables or own[root] and own or variables)
end

local function has_parameter(entry, name)
  return (" " .. (entry.head or "") .. " "):find("%f[%w_]" .. quoted(name) .. "%f[^%w_]") ~= nil
end

-- The entry of what a message "where: text" names: of the function that the line calls by that name, or else of the first that is called
-- so.
local function entry_of(where, text, line, variables)
  local entries = require "lunaria.help.entries"
  local last = where:match "[%w_]+$"
  if not last then return nil end
  for path in line:gmatch("([%a_][%w_%.]*[%.:]" .. quoted(last) .. ")%f[^%w_]") do
    local value = value_of(path, variables)
    local entry = value ~= nil and entries.of(value)
    if entry then return entry end
  end
  -- What a sign of the line does is called by no name.
  if where == "index" or where == "tensor" or #where < 2 then return nil end
  local object = line:match("([%w_%.%[%]\"'%(%){}, ]+):" .. quoted(last) .. "%f[^%w_]")
  local entry = object and object:find "[Dd]ataset" and entries.find("ms.dataset.Dataset:" .. last)
    or entries.find(where) or entries.find((where:gsub("%.", ":"))) or entries.find(":" .. last)
  local what = text:match "^([%w_]+) must "
  -- Methods of several classes have one name.
  return entry and what and not has_parameter(entry, what) and entries.find("ms.dataset.Dataset:" .. where) or entry
end

-- The parameter of an entry whose name comes first in a text.
local function parameter_in(entry, text)
  local first, at
  for _, p in ipairs(entry.parameters or {}) do
    for _, name in ipairs { p.name, table.unpack(p.other_names or {}) } do
      local found = text:find("%f[%w_]" .. quoted(name) .. "%f[^%w_]")
      if found and (not at or found < at) and #name > 1 then first, at = p, found end
    end
  end
  return first
end

-- The first call of the entry in its examples, without what is done with the result.
local function example_of(entry)
  local last = quoted(entry.name:match "[%w_]+$")
  for _, row in ipairs(entry.examples or {}) do
    local code = type(row) == "table" and row[1] or row
    local call = code:match("[%w_%.:]*%f[%w_]" .. last .. "%b()") or code:match("[%w_%.:]*%f[%w_]" .. last .. "%s*%b{}")
    if call and #call < 120 and not call:find "\n" and not call:find "%(%)$" then
      if entry.kind == "operator" then call = call:gsub("^" .. last, "ops.%0"):gsub("%f[%w_%.]tensor%f[^%w_]", "ms.tensor") end
      return call
    end
  end
end

local function said(p)
  local facts = p.type and (" (%s)"):format(p.type) or ""
  return ("%s: %s%s"):format(p.name, p.text, facts)
end

local generic = { ["the input"] = true, ["the first operand"] = true, ["the second operand"] = true, ["the tensor"] = true }

--- What the entry says of a message "where: text": the list of arguments where one is of another kind, else what the parameter is that the
--- text names, and a call that is right; nil where the entry has none of these.
function usage.of(where, text, line, variables)
  local entry = entry_of(where, text, line, variables)
  if not entry then return nil end
  local head = entry.head and entry.head:find "%(" and #entry.head < 300 and "it is called as " .. entry.head or nil
  if head and (text:find " must be .*, got " or text:find "expected" or text:find " takes ") then return head end
  local p, example = parameter_in(entry, text), example_of(entry)
  local parts = {}
  if p and (p.text or "") ~= "" and not generic[p.text] then parts[1] = said(p) end
  -- What a right call found out has no remedy in another call.
  local is_of_call = p or text:find " must " or text:find " needs " or text:find "missing" or text:find "nil" or text:find "no "
  if is_of_call then parts[#parts + 1] = example and "for example " .. example or head end
  return #parts > 0 and table.concat(parts, "; ") or nil
end

-- Words of a name, with the library's own words for them.
local function meant_by(name)
  local set = {}
  for _, word in ipairs(words.of(name)) do set[word] = 1 end
  for _, row in ipairs(require "lunaria.help.search".concepts()) do
    local all = true
    for _, word in ipairs(row[1]) do all = all and set[word] == 1 end
    for _, ours in ipairs(all and row[2] or {}) do
      for _, word in ipairs(ours) do set[word] = set[word] or 0.7 end
    end
  end
  return set
end

--- The parameter that is meant by an argument's name which the function lacks, by what the texts of parameters say; nil where none is.
function usage.argument(where, name, line, variables)
  local entry = entry_of(where, "", line, variables)
  local meant, best, most, second = meant_by(name), nil, 0, 0
  for _, p in ipairs(entry and entry.parameters or {}) do
    local text, score = {}, 0
    for _, word in ipairs(words.of(p.text or "")) do text[word] = true end
    for word, weight in pairs(meant) do
      if text[word] then score = score + weight end
    end
    if score > most then best, most, second = p, score, most elseif score > second then second = score end
  end
  return best and most > second and ("did you mean '%s': %s"):format(best.name, best.text) or nil
end

return usage
