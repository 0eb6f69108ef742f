-- The index of everything that has a name: operators, functions, classes with their methods, fields of objects,
-- constants, commands, options, variables of the environment, guides. An entry is a table:
--
--   name    as it is typed with ms in front: "ms.nn.Dense", "x:item", "%time", "--docs"
--   kind    "operator", "class", "function", "method", "property", "constant", "module", "command", "option", ...
--   head    the name with its parameters
--   doc     what it is, in sentences
--   parameters   { { name =, type =, default =, text = }, ... }
--   examples     { { input, output or nil }, ... }
--   notes, also  further sentences; other names of the same thing
--   source  where it is written
--   value   the thing itself, if it is one
--
-- It is made by walking through ms and the objects of objects.lua, so that what is added to the library is in it at once.
local ms = require "lunaria"
local registry = require "lunaria.registry"
local known = require "lunaria.help.index"
local descriptions = require "lunaria.help.descriptions"
local meanings = require "lunaria.help.parameters"
local texts = require "lunaria.help.topics"

local entries = {}

-- Files directly under lunaria/ that are parts of the library and no names of the user's.
local internal = {}
for name in ([[adjoints adjoints_attributes adjoints_methods adjoints_optimizers adjoints_session captured cell_commands commands
  data_sink_steps field_calls found_names graph help lowered markup parts program progress_line rich run_notebook tensor_methods
  transforms]]):gmatch "%S+" do
  internal[name] = true
end

local types = {
  same = "tensor or number", float = "tensor or number", tensor = "tensor", index = "tensor of integers",
  mask = "tensor of booleans", tensors = "table of tensors", bool = "boolean", int = "integer", number = "number",
  string = "string", dtype = "dtype", ints = "integer or table of integers", numbers = "number or table of numbers",
  shape = "table of sizes", scalar = "number or boolean", any = "any value",
}

local function meaning_of(parameter, owner)
  if parameter:find "^on_%l+_" then return "a function that is called then, with a RunContext" end
  return meanings[parameter .. "." .. (owner:match "[%w_]+$" or owner)] or meanings[parameter]
end

-- The text of a comment without its examples, and those: "> code" with the result in the lines below, or "> code --> result" in which \n
-- is a new line.
local function split(doc)
  local lines, list, input = {}, {}, nil
  for line in ((doc or "") .. "\n"):gmatch "(.-)\n" do
    local typed, shown = line:match "^%s%s+> (.*)$", line:match "^%s%s+(%S.*)$"
    if typed then
      local code, result = typed:match "^(.-) %-%-> (.*)$"
      input = { code or typed, result and result:gsub("\\n", "\n") }
      list[#list + 1] = input
    elseif input and shown then
      input[2] = (input[2] and input[2] .. "\n" or "") .. shown
    else
      input = nil
      lines[#lines + 1] = line
    end
  end
  return (table.concat(lines, "\n"):gsub("%s+$", ""):gsub("\n\n\n+", "\n\n")), list
end

-- "name: what it is" or "name (what it is)" in a text, up to the end of the clause.
local function clause_about(name, doc)
  local flat = doc:gsub("%s+", " ")
  local text = flat:match("%f[%w_]" .. name .. ": ([^%.;]+[%.;]?)") or flat:match("%f[%w_]" .. name .. " %((.-)%)")
  return text and text:gsub("[%.;]$", "")
end

-- The sentence of a text in which a parameter is spoken of.
local function sentence_about(name, doc)
  for sentence in ((doc:gsub("%s+", " ")) .. " "):gmatch "(.-[%.;:]) " do
    if sentence:find("%f[%w_]" .. name .. "%f[^%w_]") then return (sentence:gsub("[;:]$", ".")) end
  end
  return doc:find("%f[%w_]" .. name .. "%f[^%w_]") and doc:gsub("%s+", " ") or nil
end

-- Of a function with several names the examples are those of its name.
local function with_examples(entry, own)
  local row = descriptions[entry.name]
  if row and row.examples ~= "" then own = select(2, split(row.examples)) end
  entry.examples = own or entry.examples or {}
  return entry
end

local function parameters_of_operator(op)
  local list = {}
  for i, p in ipairs(op.parameters) do
    local type_text = types[p.type]
    if #p.choices > 0 then type_text = '"' .. table.concat(p.choices, '", "') .. '"' end
    if p.type == "float" then type_text = type_text .. ", as floats" end
    list[i] = { name = p.name == "end" and "stop" or p.name, type = type_text .. (p.optional and " or nil" or ""),
      default = p.default, text = meaning_of(p.name, op.name), by_name_only = p.by_name_only, other_names = p.other_names }
  end
  return list
end

local family_of

local function families()
  if not family_of then
    family_of = {}
    for _, family in ipairs(registry.families()) do
      for _, name in ipairs(family.names) do family_of[name] = family end
    end
  end
  return family_of
end

local function operator_entry(op)
  local family = families()[op.name]
  local entry = {
    name = "ms.ops." .. op.name, kind = "operator", head = op.signature, doc = op.doc, parameters = parameters_of_operator(op),
    results = op.results, also = op.aliases, notes = {}, examples = op.examples,
    source = family and "core/ops/" .. family.file .. ".cpp" or "ms.op", family = family and family.title or "Your own operators",
  }
  if op.method then entry.notes[1] = ("Method of tensors: x:%s(...)"):format(op.name) end
  if op.no_gradient then entry.notes[#entry.notes + 1] = "Without gradient: " .. op.no_gradient end
  if op.made_of then entry.notes[#entry.notes + 1] = "After: " .. op.made_of end
  return #op.examples == 0 and with_examples(entry) or entry
end

-- "a, b=1" of a class as its parameters.
local function parameters_of_class(signature, name, doc)
  local list = {}
  for i, p in ipairs(signature) do
    local default = signature.text:match("%f[%w_]" .. p.name .. "%s*=%s*([^,]+)")
    local own_type = p.default ~= nil and (math.type(p.default) == "integer" and "integer" or type(p.default)) or nil
    list[i] = { name = p.name, type = own_type, default = default,
      text = clause_about(p.name, doc) or meaning_of(p.name, name) or sentence_about(p.name, doc) }
  end
  return list
end

local function parameters_of_function(list, name, doc)
  local result = {}
  for parameter in list:gmatch "[%w_%.]+" do
    if parameter ~= "self" then
      local text = parameter == "..." and (sentence_about("%.%.%.", doc) or "any number of arguments") or
        clause_about(parameter, doc) or meaning_of(parameter, name) or sentence_about(parameter, doc)
      result[#result + 1] = { name = parameter, text = text }
    end
  end
  return result
end

-- The parameters of a function that gives all its arguments to a binder with their names, as in bind("take", "count=-1", ...).
local function bound_parameters(source)
  local names = (source or ""):match 'bind%(%s*[%w_"]+,%s*("[^\n]-"),%s*%.%.%.%)'
    or (source or ""):match 'bind%(%s*[%w_"]+,%s*("[^()]-"),%s*%.%.%.%)'
  if not names or names:gsub('"[^"]*"', ""):find "[^%s%.]" then return nil end
  local parts = {}
  for part in names:gmatch '"([^"]*)"' do parts[#parts + 1] = part end
  return "(" .. table.concat(parts) .. ")"
end

-- Where a function or its row is written.
local function place(of, otherwise)
  return of.file and ("%s:%d"):format(of.file:gsub("^lunaria:", "interpreter/lua/"), of.line) or otherwise
end

-- Of a function: a comment of its own or a description (help/index.lua).
local function function_entry(name, f, kind)
  local of, listing = known[f] or descriptions[name] or {}, registry.listing(f)
  local doc, own = split(of.doc or listing.doc ~= "" and listing.doc or texts.common_methods[name:match "[%w_]+$"])
  local list = of.list or listing.signature:match "^function(%b())" or "(...)"
  local method = name:find ":" ~= nil
  if method then list = list:gsub("^%(self,? ?", "(") end
  if list == "(...)" then list = bound_parameters(of.text or listing.text) or list end
  local entry = { name = name, kind = kind or (method and "method" or "function"), doc = doc, notes = {}, value = f,
    source = place(of.file and of or listing, "interpreter/bindings, in C++") }
  entry.head = name .. list
  entry.parameters = parameters_of_function((list:gsub("=[^,)]*", "")), name, doc)
  return with_examples(entry, own)
end

local function is_class(value)
  local meta = type(value) == "table" and getmetatable(value)
  if type(value) ~= "table" then return false end
  if rawget(value, "_is_class") then return true end
  return rawget(value, "_name") ~= nil and (rawget(value, "_doc") or type(meta) == "table" and meta.__call) and true or false
end

local function class_entry(name, class)
  local signature = rawget(class, "_signature") or { text = rawget(class, "_parameters") or "..." }
  local init = rawget(class, "init")
  local of = type(init) == "function" and registry.listing(init) or {}
  local doc, own = split(rawget(class, "_doc") or of.doc or "")
  local where = {}
  for _, key in ipairs { "setup", "construct", "init", "new" } do
    local method = rawget(class, key)
    if type(method) == "function" and not where.file then where = registry.listing(method) end
    -- Settings that are checked one by one (nn/arguments.lua).
    if where.file and where.file:find "nn/arguments%.lua$" then where = {} end
  end
  local entry = { name = name, kind = "class", head = name:gsub("^ms%.", "") .. "(" .. signature.text .. ")", doc = doc,
    parameters = parameters_of_class(signature, name, doc), notes = {}, value = class,
    source = place(where, "interpreter/lua") }
  return with_examples(entry, own)
end

local list, by_name, by_value

local function add(entry)
  local other = by_name[entry.name]
  if other then
    -- A method of tensors beside the operator of its name.
    if entry.value ~= nil then by_value[entry.value] = by_value[entry.value] or other end
    return other
  end
  -- A second name of the same value is one of its other names.
  local same = entry.value ~= nil and by_value[entry.value]
  if same then
    same.also = same.also or {}
    same.also[#same.also + 1] = entry.name
    by_name[entry.name] = same
    return same
  end
  entry.notes = entry.notes or {}
  list[#list + 1] = entry
  by_name[entry.name] = entry
  if entry.value ~= nil then by_value[entry.value] = entry end
  return entry
end

local function sorted_keys(t)
  local names = {}
  for key in pairs(t) do
    if type(key) == "string" and key:match "^%a" then names[#names + 1] = key end
  end
  table.sort(names)
  return names
end

-- What classes override and users do not call: told of once, at Cell.
local own_methods = { construct = true, extend_repr = true, init = true, setup = true, update = true, fill = true }

local walk

-- Whether a class above has the method, which is told of there.
local function overrides(class, key)
  local meta = getmetatable(class)
  local parent = type(meta) == "table" and meta.__index
  return type(parent) == "table" and type(parent[key]) == "function"
end

local function add_class(name, class)
  local entry = add(class_entry(name, class))
  if entry.name ~= name then return end
  for _, key in ipairs(sorted_keys(class)) do
    local method = rawget(class, key)
    if type(method) == "function" and key ~= "setup" and key ~= "init" and (name == "ms.nn.Cell" or not own_methods[key])
      and not key:find "^on_%l+_" -- what a callback does is told of at Callback
      and (not overrides(class, key) or by_value[method]) then
      local own = function_entry(name .. ":" .. key, method, "method")
      -- What the class's example shows is an example of its methods.
      if #own.examples == 0 then own.examples = entry.examples end
      add(own)
    end
  end
end

local add_value
function add_value(name, value, depth)
  local op = registry.entry(value)
  if op then
    -- Operators are added once, under ms.ops.
    local entry = by_name["ms.ops." .. op.name]
    if entry and entry.name ~= name and not by_name[name] then by_name[name] = entry end
    return
  end
  local described = type(value) == "table" and type(getmetatable(value)) == "table" and rawget(getmetatable(value), "_head")
  local topic = descriptions[name]
  if type(value) == "function" then
    add(function_entry(name, value))
  elseif is_class(value) then
    add_class(name, value)
  elseif described then
    local doc, own = split(rawget(getmetatable(value), "_doc"))
    add(with_examples({ name = name, kind = "function", head = described, doc = doc, value = value,
      parameters = parameters_of_function(described:match "%b()" or "", name, doc),
      source = "interpreter/bindings/bind_display.cpp" }, own))
    for _, key in ipairs(sorted_keys(value)) do add_value(name .. "." .. key, value[key], depth - 1) end
  elseif type(value) == "table" and depth > 0 and (not topic or topic.kind == "module") then
    walk(name, value, depth - 1)
  else
    topic = topic or {}
    local doc, own = split(topic.doc)
    add(with_examples({ name = name, kind = topic.kind or "constant", head = name, doc = doc, value = nil, topic = true,
      parameters = {}, source = topic.source or "interpreter/bindings/module.cpp" }, own))
  end
end

function walk(name, module, depth)
  local topic = descriptions[name] or {}
  if name ~= "ms" then
    if by_name[name] or by_value[module] then return add { name = name, value = module } end
    local path, doc, own = "lunaria/" .. name:sub(4):gsub("%.", "/"), split(topic.doc)
    local ending = registry.text(path .. ".lua") and ".lua" or registry.text(path .. "/init.lua") and "/init.lua" or ""
    add(with_examples({ name = name, kind = "module", head = name, doc = doc ~= "" and doc or texts.head_of(name, module),
      parameters = {}, value = module, source = topic.source or "interpreter/lua/" .. path .. ending }, own))
  end
  for _, key in ipairs(sorted_keys(module)) do
    if not key:find "^_" then add_value(name .. "." .. key, module[key], depth) end
  end
end

-- Parts of ms that are loaded when they are first used: functions of one file, and files.
local function load_parts()
  require "lunaria.transforms"
  require "lunaria.graph"
  for _, file in ipairs(registry.files()) do
    local name = file:match "^lunaria/([%w_]+)%.lua$" or file:match "^lunaria/([%w_]+)/init%.lua$"
    if name and not internal[name] then
      local _ = ms[name]
    end
  end
  for _, name in ipairs { "vision", "text", "audio", "transforms" } do
    local _ = ms.dataset[name]
  end
end

local function add_topics()
  for _, topic in ipairs(texts.all()) do
    add(with_examples(topic, topic.examples))
  end
end

local function build()
  list, by_name, by_value = {}, {}, {}
  load_parts()
  for _, op in ipairs(registry.entries()) do
    local entry = add(operator_entry(op))
    for i, alias in ipairs(op.aliases) do
      entry.also[i] = "ms.ops." .. alias
      by_name["ms.ops." .. alias] = entry
    end
    if op.method then by_name["x:" .. op.name] = by_name["x:" .. op.name] or entry end
  end
  -- A class of the library is called what its file calls it, whatever else leads to it.
  for _, key in ipairs(sorted_keys(ms.nn)) do
    local class = ms.nn[key]
    if is_class(class) and rawget(class, "_name") == key then add_value("ms.nn." .. key, class, 1) end
  end
  for _, pair in ipairs(texts.first) do add_value(pair[1], pair[2](), 2) end
  walk("ms", ms, 4)
  for _, object in ipairs(require "lunaria.help.objects") do
    add(with_examples({ name = object.title, kind = "object", head = object.title, doc = object.doc, parameters = {},
      source = object.source, examples = { object.example } }))
    for _, property in ipairs(object.properties or {}) do
      add(with_examples({ name = object.variable .. "." .. property[1], kind = "property", head = object.variable .. "." .. property[1],
        doc = property[2], parameters = {}, source = object.source, examples = property[3] }))
    end
    local methods = object.methods()
    for _, key in ipairs(sorted_keys(methods)) do
      local op = registry.entry(methods[key])
      if op then
        by_name[object.variable .. ":" .. key] = by_name[object.variable .. ":" .. key] or by_name["ms.ops." .. op.name]
      elseif type(methods[key]) == "function" and not key:find "^_" then
        add(function_entry(object.variable .. ":" .. key, methods[key], "method"))
      end
    end
  end
  add_topics()
  table.sort(list, function(a, b) return a.name < b.name end)
end

--- All entries, sorted by name.
function entries.all()
  if not list then build() end
  return list
end

--- The entry of a value; of operators without building the index.
function entries.of(value)
  local op = registry.entry(value)
  if op then return operator_entry(op) end
  if not list then build() end
  return by_value[value]
end

local suffixes

--- The entry of a name: "ms.nn.Dense", "nn.Dense", "Dense", "x:item", ":item".
function entries.find(name)
  if type(name) ~= "string" or name == "" then return nil end
  local op = registry.entry((name:gsub("^ms%.ops%.", ""):gsub("^ops%.", "")))
  if op then return operator_entry(op) end
  if not list then build() end
  local found = by_name[name] or by_name["ms." .. name] or by_name["ms.nn." .. name]
  if found then return found end
  if not suffixes then
    suffixes = {}
    for key, entry in pairs(by_name) do
      for at in key:gmatch "()[%.:][%w_]+" do
        local suffix = key:sub(at)
        local other = suffixes[suffix] and suffixes[suffix].key
        if not other or #key < #other or (#key == #other and key < other) then suffixes[suffix] = { key = key, entry = entry } end
      end
    end
  end
  found = suffixes[name:find "^[%.:]" and name or "." .. name] or suffixes[":" .. name]
  return found and found.entry
end

--- All names of the index with their entries, other names included.
function entries.names()
  if not list then build() end
  return by_name
end

return entries
