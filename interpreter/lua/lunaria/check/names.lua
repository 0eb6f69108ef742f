-- The meanings of a program's names, as far as its text alone shows them: parts of the library and of Lua, and objects of the
-- library's classes. A name stands for something only where it is given a value once.
local registry = require "lunaria.registry"

local names = {}
names.__index = names

--- A value under a key, or nil, and the error that reading it raised.
function names.part(value, key)
  local ok, found = pcall(function() return value[key] end)
  if ok then return found end
  return nil, found
end
local part = names.part

--- Whether a value is a class of the library.
function names.is_class(value) return type(value) == "table" and rawget(value, "_is_class") == true end

--- Knows nothing yet. environment: the globals that a program finds.
function names.new(environment)
  return setmetatable({ environment = environment, globals = {}, values = {}, written = {}, fields = {}, locals = {} }, names)
end

-- Notes a value that a name is given; nil: an unknown one.
local function note(self, target, value, depth)
  if target.kind == "global" then
    local known = self.globals[target.name] or { count = 0, depth = depth, line = target.line }
    known.count, known.value, known.depth = known.count + 1, value, math.min(known.depth, depth)
    self.globals[target.name] = known
  elseif target.kind == "index" and target.key.kind == "string" then
    self.fields[target.key.value] = true
    self.written[#self.written + 1] = target
  end
end

local function note_local(self, variable, value)
  self.locals[variable.name] = true
  if value and not variable.assigned then self.values[variable] = value end
end

local notes = {
  declare = function(self, s)
    for i, variable in ipairs(s.locals) do note_local(self, variable, s.values[i]) end
  end,
  local_function = function(self, s) note_local(self, s["local"], s["function"]) end,
  define = function(self, s, depth) note(self, s.target, s["function"], depth) end,
  ["function"] = function(self, f)
    for _, variable in ipairs(f.parameters) do note_local(self, variable) end
  end,
  assign = function(self, s, depth)
    for i, target in ipairs(s.targets) do note(self, target, s.values[i], depth) end
  end,
  generic_for = function(self, s)
    for _, variable in ipairs(s.variables) do note_local(self, variable) end
  end,
  numeric_for = function(self, s) note_local(self, s.variable) end,
}

-- What a node has that is no node.
local others = { meaning = true, ["local"] = true, locals = true, parameters = true, variable = true, variables = true }

--- Calls f with each node directly below another.
function names.each_child(node, f)
  for key, value in pairs(node) do
    if type(value) == "table" and not others[key] then
      if value.kind then
        f(value)
      elseif value[1] or value.condition or value.key or value.value then
        names.each_child(value, f)
      end
    end
  end
end

--- Reads the assignments of a text's statements.
function names:read(node, depth)
  local f = notes[node.kind]
  if f then f(self, node, depth) end
  if node.kind == "function" then depth = depth + 1 end
  names.each_child(node, function(child) self:read(child, depth) end)
end

local find

-- { value = } of a module that require gives, if it is the library's.
local function required(self, node)
  local argument = node.callee.kind == "global" and node.callee.name == "require" and #node.arguments == 1 and node.arguments[1]
  if not argument or argument.kind ~= "string" or self.globals.require then return nil end
  local name = argument.value
  local path = name:gsub("%.", "/")
  if name == "lunaria" or name:find "^lunaria%." and (registry.text(path .. ".lua") or registry.text(path .. "/init.lua")) then
    return { value = require(name), name = name }
  end
end

local finders = {
  ["local"] = function(self, node)
    local value = self.values[node["local"]]
    return value and self:meaning(value)
  end,
  global = function(self, node)
    local known = self.globals[node.name]
    if known then return known.count == 1 and known.value and self:meaning(known.value) or nil end
    local value = rawget(self.environment, node.name)
    return value ~= nil and { value = value, name = node.name } or nil
  end,
  index = function(self, node)
    local object = self:meaning(node.object)
    if not object or object.value == nil or node.key.kind ~= "string" or self:is_written(object.value, node.key.value) then return nil end
    local value = part(object.value, node.key.value)
    return value ~= nil and { value = value, name = object.name .. "." .. node.key.value } or nil
  end,
  call = function(self, node)
    local callee = self:meaning(node.callee)
    if callee and names.is_class(callee.value) then return { class = callee.value, name = callee.value._name } end
    return required(self, node)
  end,
  paren = function(self, node) return self:meaning(node.inner) end,
}

function find(self, node)
  if node.known == "tensor" then return { is_tensor = true } end
  local f = finders[node.kind]
  return f and f(self, node)
end

--- What an expression stands for: { value =, name = } of a part of the library or of Lua, { class =, name = } of an object,
--- { is_tensor = true }, or nil where that is not known.
function names:meaning(node)
  if node.meaning == nil then
    node.meaning = false  -- for a name that its own value refers to
    node.meaning = find(self, node) or false
  end
  return node.meaning or nil
end

--- Whether the program writes a field of a table of the library's or of Lua's.
function names:is_written(value, key)
  if not self.fields[key] then return false end
  for _, target in ipairs(self.written) do
    local object = target.key.value == key and self:meaning(target.object)
    if object and rawequal(object.value, value) then return true end
  end
  return false
end

return names
