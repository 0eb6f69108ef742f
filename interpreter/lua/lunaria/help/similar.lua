-- Entries to see beside another one: guides that use it, names that its text speaks of, and what is called the same elsewhere, such as the
-- operator of a layer, or a layer for other numbers of axes.
local entries = require "lunaria.help.entries"

local by_key, guides_of

-- "Conv2d", "conv1d" and "conv3d" have one key.
local function key_of(entry)
  if entry.kind ~= "operator" and entry.kind ~= "class" and entry.kind ~= "function" then return nil end
  return (entry.name:match "[%w_]+$":gsub("_", ""):lower():gsub("[123]d$", ""))
end

local function add(set, key, entry)
  set[key] = set[key] or {}
  for _, other in ipairs(set[key]) do
    if other == entry then return end
  end
  table.insert(set[key], entry)
end

-- Names in texts and programs as entries: "ms.nn.Dense", "nn.Dense", "ops.relu".
local function each_name(text, f)
  local names = entries.names()
  for name in text:gmatch "[%a_][%w_]*[%.:][%w_%.:]*%w" do
    local found = names[name] or names["ms." .. name]
    if found then f(found) end
  end
end

local function build()
  by_key, guides_of = {}, {}
  for _, entry in ipairs(entries.all()) do
    local key = key_of(entry)
    if key then add(by_key, key, entry) end
    for _, part in ipairs(entry.kind == "guide" and entry.parts or {}) do
      local texts = type(part) == "string" and { { part } } or part
      for _, row in ipairs(texts) do each_name(row[1], function(found) add(guides_of, found.name, entry) end) end
    end
  end
end

--- At most eight entries.
return function(entry)
  if not by_key then build() end
  local list, seen = {}, { [entry.name] = true }
  local function take(other)
    if #list < 8 and not seen[other.name] then
      seen[other.name] = true
      list[#list + 1] = other
    end
  end
  -- What many guides use is no help to find one of them.
  local guides = guides_of[entry.name] or {}
  for i = 1, #guides <= 4 and 3 or 0 do
    if guides[i] then take(guides[i]) end
  end
  each_name(entry.doc, take)
  local key = key_of(entry)
  for _, other in ipairs(key and by_key[key] or {}) do take(other) end
  return list
end
