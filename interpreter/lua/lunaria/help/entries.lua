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
local meaning_of = require "lunaria.help.parameters"
local declared = require "lunaria.help.declared"
local texts = require "lunaria.help.topics"

local entries = {}

-- Files directly under lunaria/ that are parts of the library and no names of the user's.
local internal = {}
for name in ([[adjoints adjoints_attributes adjoints_methods adjoints_optimizers adjoints_session captured cell_commands commands
  data_sink_steps field_calls found_names graph help lowered markup parts program progress_line rich run_notebook session_commands
  tensor_methods transforms]]):gmatch "%S+" do
  internal[name] = true
end

local types = {
  same = "tensor or number", float = "tensor or number", tensor = "tensor", index = "tensor of integers",
  mask = "tensor of booleans", tensors = "table of tensors", bool = "boolean", int = "integer", number = "number",
  string = "string", dtype = "dtype", ints = "integer or table of integers", numbers = "number or table of numbers",
  shape = "table of sizes", scalar = "number or boolean", any = "any value",
}

-- The text of a comment without its examples and its parameters, and those. Examples: "> code" with the result in the lines below, or
-- "> code --> result" in which \n is a new line. Parameters: "- name (type): meaning", with further lines indented.
local function split(doc)
  local lines, list, own, input, row = {}, {}, {}, nil, nil
  for line in ((doc or "") .. "\n"):gmatch "(.-)\n" do
    local typed, shown = line:match "^%s%s+> (.*)$", line:match "^%s%s+(%S.*)$"
    local name, kind, meaning = line:match "^%s*%- ([%w_%.]+) %((.-)%): (.*)$"
    if typed then
      local code, result = typed:match "^(.-) %-%-> (.*)$"
      input, row = { code or typed, result and result:gsub("\\n", "\n") }, nil
      list[#list + 1] = input
    elseif input and shown then
      input[2] = (input[2] and input[2] .. "\n" or "") .. shown
    elseif name then
      row = { type = kind, text = meaning }
      own[name] = row
    elseif row and shown then
      row.text = row.text .. " " .. shown
    else
      input, row = nil, nil
      lines[#lines + 1] = line
    end
  end
  return (table.concat(lines, "\n"):gsub("%s+$", ""):gsub("\n\n\n+", "\n\n")), list, own
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
      default = p.default, text = meaning_of(p.name, op.name).text, by_name_only = p.by_name_only, other_names = p.other_names }
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

-- The type of a default as it is written: "0.5", "\"sum\"", "true"; nil where it does not say.
local function type_of_default(text)
  local value = text and (load("return " .. text, "=default", "t", {}) or load "return nil")()
  if type(value) == "number" then return math.type(value) == "integer" and "integer" or "number" end
  return type(value) ~= "nil" and type(value) or nil
end

-- "a, b=1, {c=2}" as parameters of an entry, whose text then goes on without what it says of them. own: those of the text's list.
local function add_parameters(entry, list, own)
  local result, names, name = {}, {}, entry.name
  for parameter in list:gsub("=[^,]*", ""):gmatch "[%a_][%w_]*" do names[parameter] = true end
  local doc, said = declared(entry.doc, names)
  if doc ~= "" then entry.doc = doc end
  for part in list:gsub("[{%[]", " "):gsub("[}%]]", " "):gmatch "[^,]+" do
    local parameter, default = part:match "^%s*([%w_%.]+)%s*=?%s*(.-)%s*$"
    if parameter and parameter ~= "self" then
      if default == "" then default = nil end
      local row, listed = own[parameter] or {}, meaning_of(parameter, name)
      result[#result + 1] = { name = parameter, type = row.type or listed.type or type_of_default(default), default = default,
        text = row.text or said[parameter] or listed.text }
    end
  end
  entry.parameters = result
  return entry
end

-- The signature among the variables of a function, the first that its source speaks of; or of a function that gets all its arguments.
local function signature_of(f, source, helpers)
  local found, first, helper = nil, math.huge, nil
  for i = 1, source and 60 or 0 do
    local name, value = debug.getupvalue(f, i)
    if not name then break end
    if type(value) == "table" and type(rawget(value, "text")) == "string" and rawget(value, "names") then
      local at = source:find("%f[%w_]" .. name .. "%f[^%w_]")
      if at and at < first then found, first = value.text, at end
    elseif helpers and type(value) == "function" and source:find("%f[%w_]" .. name .. "%([^()]*%.%.%.%)") then
      helper = value
    end
  end
  return found or helper and signature_of(helper, registry.listing(helper).text, false)
end

-- The parameters of a function that gives all its arguments to a binder: of a signature, or as in bind("take", "count=-1", ...). Else
-- the text says them: "Arguments: a, b=1."
local function bound_parameters(f, source, doc)
  local found = signature_of(f, source, true)
  if found then return "(" .. found .. ")" end
  local names = (source or ""):match 'bind%(%s*[%w_"]+,%s*("[^\n]-"),%s*%.%.%.%)'
    or (source or ""):match 'bind%(%s*[%w_"]+,%s*("[^()]-"),%s*%.%.%.%)'
  if not names or names:gsub('"[^"]*"', ""):find "[^%s%.]" then
    local said = doc:gsub("%s+", " "):match "%f[%w]Arguments: ([%w_=,%.\" ]-)%.%f[%s%z]"
    return said and "(" .. said .. ")"
  end
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
  local doc, own, said = split(of.doc or listing.doc ~= "" and listing.doc or texts.common_methods[name:match "[%w_]+$"])
  local list = of.list or listing.signature:match "^function(%b())" or "(...)"
  local method = name:find ":" ~= nil
  if method then list = list:gsub("^%(self%f[%W],? ?", "("):gsub("^%(" .. (name:match "^(%l+):" or "self") .. "%f[%W],? ?", "(") end
  if list == "(...)" then list = bound_parameters(f, of.text or listing.text, doc) or list end
  local entry = { name = name, kind = kind or (method and "method" or "function"), doc = doc, notes = {}, value = f,
    source = place(of.file and of or listing, "interpreter/bindings, in C++") }
  entry.head = name .. list
  return with_examples(add_parameters(entry, list:sub(2, -2), said), own)
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
  local doc, own, said = split(rawget(class, "_doc") or of.doc or "")
  local where = {}
  for _, key in ipairs { "setup", "construct", "init", "new" } do
    local method = rawget(class, key)
    if type(method) == "function" and not where.file then where = registry.listing(method) end
    -- Settings that are checked one by one (nn/arguments.lua).
    if where.file and where.file:find "nn/arguments%.lua$" then where = {} end
  end
  local entry = { name = name, kind = "class", head = name:gsub("^ms%.", "") .. "(" .. signature.text .. ")", doc = doc,
    notes = {}, value = class, source = place(where, "interpreter/lua") }
  return with_examples(add_parameters(entry, signature.text, said), own)
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
    local doc, own, said = split(rawget(getmetatable(value), "_doc"))
    add(with_examples(add_parameters({ name = name, kind = "function", head = described, doc = doc, value = value,
      source = "interpreter/bindings/bind_display.cpp" }, (described:match "%b()" or "()"):sub(2, -2), said), own))
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

--- The entries of objects by the variable that methods are shown with: { x = that of tensors, ... }.
function entries.objects()
  if not list then build() end
  local objects = {}
  for _, object in ipairs(require "lunaria.help.objects") do objects[object.variable] = by_name[object.title] end
  return objects
end

--- All names of the index with their entries, other names included.
function entries.names()
  if not list then build() end
  return by_name
end

return entries
