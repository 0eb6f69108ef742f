-- Annotations for LuaLS and EmmyLua, so that an editor completes names, shows what they mean and finds wrong arguments: one file for
-- each module, from the entries of help. A class is two types: lunaria.nn.Dense, its objects, and lunaria.nn.Dense.class, what is called to
-- make one. A call with a trailing table of names is an overload.
local ms = require "lunaria"
local registry = require "lunaria.registry"
local entries = require "lunaria.help.entries"
local types = require "lunaria.stubs.types"

local reserved = {}
for word in ([[and break do else elseif end false for function goto if in local nil not or repeat return then true until while]])
  :gmatch "%a+" do reserved[word] = true end

local function is_name(text) return text:find "^[%a_][%w_]*$" ~= nil and not reserved[text] end

-- The lines of a text as comments.
local function comment(lines, text)
  for line in ((text or ""):gsub("%s+$", "") .. "\n"):gmatch "(.-)\n" do lines[#lines + 1] = "--- " .. line:gsub("^@", " @") end
end

local function one_line(text) return (text or ""):gsub("%s+", " ") end

-- The parameters of an entry as { name =, type =, optional =, text = }. A function of Lua's does not say which of its parameters may be
-- left out: all may.
local function parameters_of(entry)
  local list = {}
  local exact = entry.kind == "operator" or entry.kind == "class"
  for _, p in ipairs(entry.parameters) do
    local type, may_be_nil = types.annotation(p.type)
    -- The type of a default does not say what else is taken: initializers beside their names, numbers beside integers.
    if entry.kind ~= "operator" and p.default ~= nil and type == "string" then type = "any" end
    if p.name == "..." then
      list[#list + 1] = { name = "...", type = "any", text = one_line(p.text), optional = true }
    elseif is_name(p.name) then
      local other_names = p.other_names or entry.signature and entry.signature[p.name].other_names
      list[#list + 1] = { name = p.name, type = type, text = one_line(p.text), other_names = other_names,
        optional = not exact or may_be_nil or p.default ~= nil or entry.signature and not entry.signature[p.name].required }
    end
  end
  return list
end

local function annotated(p) return ("%s%s: %s"):format(p.name, p.optional and p.name ~= "..." and "?" or "", p.type) end

-- "fun(a: T, b?: U): R"; those from number `from` on stand in a trailing table of names.
local function signature(parameters, result, from, own)
  local list, options = { own }, {}
  for i, p in ipairs(parameters) do
    if not from or i < from then
      list[#list + 1] = annotated(p)
    elseif p.name ~= "..." then
      options[#options + 1] = annotated(p)
      for _, name in ipairs(p.other_names or {}) do
        if is_name(name) then options[#options + 1] = ("%s?: %s"):format(name, p.type) end
      end
    end
  end
  if #options > 0 then list[#list + 1] = ("options: { %s }"):format(table.concat(options, ", ")) end
  return ("fun(%s): %s"):format(table.concat(list, ", "), result)
end

-- The calls with a table of names, which may begin at any optional parameter. with_required: required ones may stand in it too.
local function by_names(parameters, result, own, with_required)
  local list, required = {}, 0
  for i, p in ipairs(parameters) do
    if not p.optional then required = i end
  end
  for from = #parameters, required + 1, -1 do
    if parameters[from].name ~= "..." then list[#list + 1] = signature(parameters, result, from, own) end
  end
  if with_required and required > 0 then list[#list + 1] = signature(parameters, result, 1, own) end
  return list
end

-- The results of an operator.
local function results_of(op)
  if op.host then return { "any" } end
  local list = {}
  for i = 1, math.max(#op.results, 1) do list[i] = "lunaria.Tensor" .. (op.results[i] and " " .. op.results[i]:gsub("[^%w_]", "") or "") end
  return list
end

-- Operators whose sizes and positions may be given one by one: zeros(2, 3).
local spread = { ints = true, shape = true, tensors = true, numbers = true }

-- Results of functions that do not say how many they give.
local several = { "any", "any ..." }

local Writer = {}
Writer.__index = Writer

local function file_of(self, module)
  local file = self.files[module]
  if not file then
    file = { module = module, lines = {}, fields = {} }
    self.files[module], self.order[#self.order + 1] = file, module
  end
  return file.lines
end

-- A field of a module's table, with the first sentence about it.
local function add_field(self, module, name, type, doc)
  local list, text = self.files[module].fields, one_line(doc)
  list[#list + 1] = ("---@field %s %s %s"):format(name, type, text:match "^.-%.%f[%s%z]" or text)
end

local function write_function(lines, name, parameters, results, also)
  for _, p in ipairs(parameters) do
    lines[#lines + 1] = ("---@param %s%s %s %s"):format(p.name, p.optional and p.name ~= "..." and "?" or "", p.type, p.text)
  end
  for _, result in ipairs(results) do lines[#lines + 1] = "---@return " .. result end
  for _, overload in ipairs(also) do lines[#lines + 1] = "---@overload " .. overload end
  local list = {}
  for i, p in ipairs(parameters) do list[i] = p.name end
  lines[#lines + 1] = ("function %s(%s) end\n"):format(name, table.concat(list, ", "))
end

local function operator(self, lines, name, entry, is_method)
  local op = registry.entry(entry.name:match "[%w_]+$")
  local parameters, results = parameters_of(entry), results_of(op)
  local own, also
  if is_method then own = "self: lunaria.Tensor" table.remove(parameters, 1) end
  local one = results[1]:match "^%S+"
  also = by_names(parameters, one, own)
  for _, p in ipairs(op.parameters) do
    if spread[p.type] then
      also[#also + 1] = ("fun(%s...: any): %s"):format(own and own .. ", " or "", one)
      break
    end
  end
  comment(lines, entry.doc)
  write_function(lines, name, parameters, results, also)
end

local function type_name(name) return "lunaria." .. name:gsub("^ms%.", "") end

-- The class above, if it has a name of its own.
local function parent_of(class)
  local meta = getmetatable(class)
  local parent = type(meta) == "table" and meta.__index
  local entry = type(parent) == "table" and entries.of(parent)
  return entry and entry.kind == "class" and type_name(entry.name) or nil
end

-- The place of a class's methods, which come later: a function is written as a field of a variable, and a file has room for 200 of
-- these.
local function open_holder(self, owner, type, lines, head)
  local holder = { name = type:gsub("%.", "_"), lines = {} }
  self.owners[owner] = holder
  lines[#lines + 1] = { "do", head, ("local %s = {}\n"):format(holder.name), holder.lines, "end\n" }
end

local function class(self, lines, entry)
  local name, parent = type_name(entry.name), parent_of(entry.value)
  entry.signature = rawget(entry.value, "_signature")
  local parameters = entry.signature and parameters_of(entry) or { { name = "...", type = "any", optional = true } }
  local head = {}
  comment(head, entry.doc)
  head[#head + 1] = ("---@class %s%s"):format(name, parent and " : " .. parent or "")
  head[#head + 1] = "---@overload fun(...: any): any"
  -- Objects hold what users put into them.
  head[#head + 1] = "---@field [any] any"
  open_holder(self, entry.name, name, lines, head)
  comment(lines, entry.doc)
  lines[#lines + 1] = ("---@class %s.class : %s"):format(name, name)
  lines[#lines + 1] = "---@overload " .. signature(parameters, name)
  for _, overload in ipairs(by_names(parameters, name, nil, true)) do lines[#lines + 1] = "---@overload " .. overload end
  lines[#lines + 1] = ("---@field extend fun(self: %s.class, name?: string): %s.class\n"):format(name, name)
end

-- The module's name and the last part of "ms.nn.Dense".
local function parts_of(name)
  local module, last = name:match "^(.*)[%.]([%w_]+)$"
  return module, last
end

local function method(self, entry)
  local owner, last = entry.name:match "^(.*):([%w_]+)$"
  local holder = self.owners[owner]
  if not holder or not is_name(last) then return end
  local lines = holder.lines
  comment(lines, entry.doc)
  write_function(lines, ("%s:%s"):format(holder.name, last), parameters_of(entry), several, { "fun(...: any): any" })
end

local tensor_head = [[
--- A tensor. Operators are methods too, as in x:sum(). x[0] and x["1:3, ::2"] are parts, counted from 0.
---@class lunaria.Tensor
---@operator add(any): lunaria.Tensor
---@operator sub(any): lunaria.Tensor
---@operator mul(any): lunaria.Tensor
---@operator div(any): lunaria.Tensor
---@operator mod(any): lunaria.Tensor
---@operator pow(any): lunaria.Tensor
---@operator idiv(any): lunaria.Tensor
---@operator unm: lunaria.Tensor
---@operator len: integer
---@field [any] any
]]

-- The objects that have entries of their own: tensors and what functions give.
local function write_objects(self, list)
  local lines = file_of(self, "ms")
  local by_object = {}
  for _, entry in ipairs(list) do
    local variable, field = entry.name:match "^(%l+)%.([%w_]+)$"
    if entry.kind == "property" then
      by_object[variable] = by_object[variable] or {}
      table.insert(by_object[variable], ("---@field %s any %s"):format(field, one_line(entry.doc)))
    end
  end
  lines[#lines + 1] = "---@class lunaria.dtype\n"
  for _, object in ipairs(require "lunaria.help.objects") do
    local name = object.variable == "x" and "lunaria.Tensor" or object.variable == "p" and "lunaria.Parameter" or "lunaria.object." ..
      object.title:gsub("[^%w]+", "_")
    local head = {}
    if object.variable == "x" then
      head[1] = tensor_head:gsub("\n$", "")
    else
      comment(head, object.doc)
      head[#head + 1] = ("---@class %s%s"):format(name, name == "lunaria.Parameter" and " : lunaria.Tensor" or "")
      head[#head + 1] = "---@field [any] any"
    end
    for _, field in ipairs(by_object[object.variable] or {}) do head[#head + 1] = field end
    open_holder(self, object.variable, name, lines, head)
  end
end

-- Modules, and functions that hold others, as ms.plot does.
local function write_modules(self, by_name)
  local modules = { ms = "lunaria", ["ms.ops"] = "lunaria.ops" }
  for name, entry in pairs(by_name) do
    if entry.kind == "module" then modules[entry.name] = type_name(entry.name) end
    local parent = parts_of(name)
    local holder = parent and by_name[parent]
    if holder and holder.kind == "function" then modules[parent] = type_name(parent) end
    -- A function that is a table has fields that it does not list.
    if entry.kind == "function" and entry.name == name and type(entry.value) ~= "function" then modules[name] = type_name(name) end
  end
  for name in pairs(modules) do file_of(self, name) end
  self.modules = modules
end

-- What a name of a module stands for is written where the name is: other names of the same thing refer to it.
local function write_name(self, name, entry)
  local module, last = parts_of(name)
  if not module or not self.modules[module] or not is_name(last) then return end
  local lines, full = file_of(self, module), self.modules[module]:gsub("%.", "_") .. "." .. last
  local held = self.modules[entry.name]
  if entry.kind == "operator" then
    operator(self, lines, full, entry)
  elseif entry.kind == "class" then
    if entry.name == name then class(self, lines, entry) end
    add_field(self, module, last, type_name(entry.name) .. ".class", entry.doc)
  elseif entry.kind == "function" and not held then
    comment(lines, entry.doc)
    write_function(lines, full, parameters_of(entry), several, { "fun(...: any): any" })
  elseif held then
    add_field(self, module, last, held, entry.doc)
  else
    add_field(self, module, last, entry.kind == "dtype" and "lunaria.dtype" or "any", entry.doc)
  end
end

local function write_tensor_methods(self, by_name, keys)
  local holder = self.owners.x
  for _, name in ipairs(keys) do
    local entry, last = by_name[name], name:match "^x:([%w_]+)$"
    if last and entry.kind == "operator" and is_name(last) then operator(self, holder.lines, holder.name .. ":" .. last, entry, true) end
  end
end

-- The text of lines, which may be lists of lines themselves.
local function joined(lines)
  local list = {}
  for i, line in ipairs(lines) do list[i] = type(line) == "table" and joined(line) or line end
  return table.concat(list, "\n")
end

-- Names of ms that are loaded when they are used, where the index of help does not have them.
local function write_parts(self, by_name)
  for _, name in ipairs(registry.parts()) do
    local value = ms[name]
    local entry = not by_name["ms." .. name] and entries.of(value)
    if entry then
      write_name(self, "ms." .. name, entry)
    elseif not by_name["ms." .. name] then
      local listing = type(value) == "function" and registry.listing(value)
      add_field(self, "ms", name, listing and "fun(...: any): any" or "any", listing and listing.doc or "")
    end
  end
end

--- The files: { { path = "lunaria/nn.lua", text = }, ... }.
return function()
  local list, by_name = entries.all(), entries.names()
  local self = setmetatable({ files = {}, order = {}, owners = {} }, Writer)
  local keys = {}
  for name in pairs(by_name) do keys[#keys + 1] = name end
  table.sort(keys)
  write_modules(self, by_name)
  write_objects(self, list)
  for _, name in ipairs(keys) do write_name(self, name, by_name[name]) end
  write_parts(self, by_name)
  write_tensor_methods(self, by_name, keys)
  for _, entry in ipairs(list) do
    if entry.kind == "method" then method(self, entry) end
  end
  local result = {}
  table.sort(self.order)
  for _, module in ipairs(self.order) do
    local type, lines = self.modules[module], self.files[module].lines
    local variable = type:gsub("%.", "_")
    local fields = self.files[module].fields
    local holder = module ~= "ms" and by_name[module]
    if holder and holder.kind == "function" then
      table.insert(fields, 1, "---@overload fun(...: any): any\n---@field [any] any")
    end
    -- Operators are names of ms, too.
    local head = ("---@meta %s\n\n---@class %s%s\n%slocal %s = {}\n"):format(type, type, module == "ms" and " : lunaria.ops" or "",
      #fields > 0 and table.concat(fields, "\n") .. "\n" or "", variable)
    result[#result + 1] = { path = type:gsub("%.", "/") .. ".lua",
      text = ("%s\n%s\nreturn %s\n"):format(head, joined(lines), variable) }
  end
  return result
end
