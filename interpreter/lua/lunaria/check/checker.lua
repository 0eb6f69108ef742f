-- Finds mistakes in a program without running it: names without a value, fields and methods that the library does not have, names of
-- arguments that a call does not take, globals that were meant to be local, methods called with a dot, and what the loader warns of
-- (jit/frontend/advice.h). Says nothing where the text alone does not show what a name stands for.
local ms = require "lunaria"
local registry = require "lunaria.registry"
local syntax = require "lunaria.syntax"
local arguments = require "lunaria.nn.arguments"
local names = require "lunaria.check.names"

local nearest, part, is_class = arguments.nearest, names.part, names.is_class

local Checker = {}
Checker.__index = Checker

local function lines_of(text)
  local lines = {}
  for line in (text .. "\n"):gmatch "(.-)\n" do lines[#lines + 1] = line end
  return lines
end

-- Notes a mistake. The message may have its hint in lines below it.
local function say(self, line, message, hint)
  local first, rest = message:match "^([^\n]*)(.*)$"
  hint = hint or rest:match "\n  hint: ([^\n]*)"
  local key = ("%d:%s"):format(line, first)
  if self.said[key] then return end
  self.said[key] = true
  self.found[#self.found + 1] = { chunk = self.chunk, line = line, message = first, hint = hint }
end

-- An error as a run of the program would raise it, with its hint.
local function as_raised(self, line, message)
  local place = ("%s:%d"):format(self.chunk.name, line)
  local said = require "lunaria.help.hints"(("%s: %s"):format(place, message), self.chunk.lines[line] or "", place, "", {})
  return said:sub(#place + 3)
end

-- The message of an error of the library, without its place.
local function without_place(message) return (tostring(message):gsub("^[^\n]-:%d+: ", "", 1)) end

local function sorted_keys(t)
  local list = {}
  for key in pairs(t) do
    if type(key) == "string" and not key:find "^_" then list[#list + 1] = key end
  end
  table.sort(list)
  return list
end

local function check_global(self, node)
  local name = node.name
  -- True, False and None are told of by the loader.
  if node.is_tested or self.formulas > 0 or self.kinds[name] == false then return end
  if self.names.globals[name] or rawget(self.names.environment, name) ~= nil then return end
  local message = as_raised(self, node.line, ("attempt to call a nil value (global '%s')"):format(name))
  local own = sorted_keys(self.names.globals)
  for _, key in ipairs(sorted_keys(self.names.locals)) do own[#own + 1] = key end
  say(self, node.line, ("the global '%s' has no value"):format(name), nearest(name, own) or message:match "\n  hint: ([^\n]*)")
end

local own_tables = {}
for _, name in ipairs { "string", "table", "math", "io", "os", "coroutine", "utf8", "debug" } do own_tables[_G[name]] = true end

-- Whether all fields that a table has are known: it is a module.
local function is_module(meaning)
  local value = meaning.value
  if type(value) ~= "table" or is_class(value) then return false end
  local meta = getmetatable(value)
  return own_tables[value] or rawequal(value, ms) or (meta == nil or type(meta) == "table" and type(meta.__index) == "function")
    and meaning.name:find("%.") ~= nil
end

local function check_index(self, node)
  if node.key.kind ~= "string" or node.is_tested then return end
  local object, key = self.names:meaning(node.object), node.key.value
  if not object then return end
  if object.is_tensor then
    if node.dotted then
      local _, problem = part(self.tensor, key)
      if problem then say(self, node.line, as_raised(self, node.line, without_place(problem))) end
    end
  elseif object.value ~= nil and is_module(object) and not self.names:is_written(object.value, key) then
    local value, problem = part(object.value, key)
    if problem then
      say(self, node.line, as_raised(self, node.line, without_place(problem)))
    elseif value == nil then
      say(self, node.line, ("%s has no field '%s'"):format(object.name, key), nearest(key, sorted_keys(object.value)))
    end
  end
end

-- A table in which everything has a name: { name = field, ... }; nil for others.
local function options_of(node)
  if not node or node.kind ~= "table" or #node.fields == 0 then return nil end
  local options = {}
  for _, field in ipairs(node.fields) do
    if not field.key or field.key.kind ~= "string" then return nil end
    options[field.key.value] = field
  end
  return options
end

-- What a call takes: { names = all, by_name = every spelling, required = how many, most = how many by position or nil }.
local function taken_by(value)
  local op = registry.entry(value)
  if op then
    -- Random numbers come from a generator of the program's, if one is named.
    local list, known = {}, { generator = op.effect == "random" or nil }
    for _, p in ipairs(op.parameters) do
      local name = p.name == "end" and "stop" or p.name
      list[#list + 1], known[name], known[p.name] = name, true, true
      for _, other in ipairs(p.other_names) do known[other] = true end
    end
    return { where = op.name, names = list, known = known }
  end
  local signature = is_class(value) and rawget(value, "_signature")
  -- A class that binds its arguments itself may take others.
  if not signature or debug.getinfo(value.init, "S").short_src ~= "lunaria:lunaria/nn/class.lua" then return nil end
  local known, required = {}, {}
  for _, p in ipairs(signature) do
    known[p.name] = true
    if p.required then required[#required + 1] = p.name end
    for _, other in ipairs(p.other_names or {}) do known[other] = true end
  end
  return { where = value._name, names = signature.names, known = known, required = required, most = #signature, text = signature.text }
end

-- A table of names that the first parameter takes, as data sets do, has names of its own.
local function is_own_table(node, takes, options)
  for name in pairs(options) do
    if takes.known[name] then return false end
  end
  return #node.arguments == 1 and takes.required ~= nil and #takes.required > 0
end

local function check_options(self, node, takes, options)
  for _, name in ipairs(sorted_keys(options)) do
    if not takes.known[name] then
      local message = ("%s: there is no argument '%s'; there are: %s"):format(takes.where, name, table.concat(takes.names, ", "))
      local near = nearest(name, takes.names)
      say(self, node.line, as_raised(self, node.line, message .. (near and "\n  hint: " .. near or "")))
    end
  end
end

-- Whether a value by position may be a table of names, or several values.
local sure = { string = true, number = true, boolean = true, ["function"] = true, ["nil"] = true }

local function check_count(self, node, takes, list, options)
  local count, last = #list - (options and 1 or 0), list[#list]
  local signature = ("the signature is %s(%s)"):format(takes.where, takes.text)
  if count > takes.most then
    say(self, node.line, ("%s: takes at most %d arguments, got %d"):format(takes.where, takes.most, count), signature)
  elseif not last or options or sure[last.kind] then
    for i, name in ipairs(takes.required) do
      if i > count and not (options and options[name]) then
        return say(self, node.line, ("%s: missing argument %d: %s is expected"):format(takes.where, i, name), signature)
      end
    end
  end
end

local function check_call(self, node)
  local callee = node.callee
  local meaning = self.names:meaning(callee)
  local takes = meaning and meaning.value ~= nil and taken_by(meaning.value)
  if takes then
    local options = options_of(node.arguments[#node.arguments])
    if options and is_own_table(node, takes, options) then options = nil end
    if options then check_options(self, node, takes, options) end
    if takes.most then check_count(self, node, takes, node.arguments, options) end
  end
  -- x.sum(1), net.set_train(): a method without its object.
  if callee.kind ~= "index" or not callee.dotted then return end
  local object, name = self.names:meaning(callee.object), callee.key.value
  local has = object and (object.is_tensor and self.tensor or object.class)
  if not has or self.names.fields[name] or type((part(has, name))) ~= "function" then return end
  local first = node.arguments[1]
  if first and self.names:meaning(first) == object then return end
  say(self, node.line, ("%s: is a method, and was called without its object"):format(name),
    ("a method is called with a colon: ...:%s(...)"):format(name))
end

local function check_method(self, node)
  local object = self.names:meaning(node.object)
  if not object then return end
  if object.value ~= nil and is_module(object) then
    if type((part(object.value, node.name))) == "function" then
      say(self, node.line, ("%s is a function of a module, and was called with a colon"):format(node.name),
        ("it is called with a dot: %s.%s(...)"):format(object.name:gsub("^lunaria", "ms"), node.name))
    end
  elseif object.is_tensor then
    local value, problem = part(self.tensor, node.name)
    if value == nil and problem then say(self, node.line, as_raised(self, node.line, without_place(problem))) end
  elseif object.class and not self.names.fields[node.name] and part(object.class, node.name) == nil then
    local methods, class = {}, object.class
    while type(class) == "table" do
      for _, key in ipairs(sorted_keys(class)) do methods[#methods + 1] = key end
      class = getmetatable(class) and getmetatable(class).__index
    end
    local message = as_raised(self, node.line, ("attempt to call a nil value (method '%s')"):format(node.name))
    say(self, node.line, ("%s %s has no method '%s'"):format(object.name:find "^[AEIOU]" and "an" or "a", object.name, node.name),
      nearest(node.name, methods) or message:match "\n  hint: ([^\n]*)")
  end
end

-- Names that a function, or a file that others require, leaves behind without being asked to.
local function check_assigned(self, target, depth, is_function)
  if target.kind ~= "global" or rawget(self.names.environment, target.name) ~= nil then return end
  local known = self.names.globals[target.name]
  if depth > 0 and known.depth > 0 then
    say(self, target.line, ("%s becomes a global variable, and is given a value in functions only"):format(target.name),
      (is_function and "write local function %s" or "write local %s where it is first given a value"):format(target.name))
  elseif depth == 0 and self.chunk.is_module then
    say(self, target.line, ("%s becomes a global variable of every program that requires this file"):format(target.name),
      is_function and ("write local function %s"):format(target.name) or ("write local %s"):format(target.name))
  end
end

-- A value that is asked for may be missing: not x, x or y, x == nil, if x then.
local tests = {
  unary = function(node) return node.operator == "not" and { node.operand } or {} end,
  logical = function(node) return { node.left, node.right } end,
  binary = function(node)
    local compares = node.operator == "==" or node.operator == "~="
    return compares and (node.left.kind == "nil" or node.right.kind == "nil") and { node.left, node.right } or {}
  end,
  ["if"] = function(node)
    local list = {}
    for i, clause in ipairs(node.clauses) do list[i] = clause.condition end
    return list
  end,
  ["while"] = function(node) return { node.condition } end,
}

local checks = {
  global = check_global, index = check_index, call = check_call, method_call = check_method,
  assign = function(self, node, depth)
    for _, target in ipairs(node.targets) do
      target.is_tested = true
      check_assigned(self, target, depth)
    end
  end,
  define = function(self, node, depth)
    node.target.is_tested = true
    check_assigned(self, node.target, depth, true)
  end,
}

local function visit(self, node, depth)
  local test = tests[node.kind]
  for _, asked in ipairs(test and test(node) or {}) do asked.is_tested = true end
  local check = checks[node.kind]
  if check then check(self, node, depth) end
  if node.kind == "function" then depth = depth + 1 end
  -- The formula of an operator has names of its own, such as log.
  local callee = node.kind == "call" and self.names:meaning(node.callee)
  local is_formula = callee and rawequal(callee.value, ms.op) and 1 or 0
  self.formulas = self.formulas + is_formula
  names.each_child(node, function(child) visit(self, child, depth) end)
  self.formulas = self.formulas - is_formula
end

-- Reads a text: what its parser says, and what its names are given.
local function read(self, chunk)
  local kinds = self.kinds
  local body, globals, advice = syntax.parse(chunk.text, chunk.name, kinds, chunk.is_cell)
  chunk.body, chunk.lines = body, lines_of(chunk.text)
  self.chunk = chunk
  for _, one in ipairs(body and advice or globals) do
    if not chunk.may_fail then say(self, one.line, one.message, one.hint) end
  end
  if not body then return end
  -- A global that another cell gives another kind of value is unknown.
  for name, kind in pairs(globals) do
    local same = not kinds[name] or kinds[name] == kind
    kinds[name] = same and kind ~= "" and kind or "any"
  end
  for _, statement in ipairs(body) do self.names:read(statement, 0) end
  local last = body[#body]
  chunk.is_module = not chunk.is_cell and last ~= nil and last.kind == "return" and #last.values > 0
end

--- The mistakes in a program: { { chunk =, line =, message =, hint = }, ... } in the order of the text. chunks: its texts in the order in
--- which they run, { { text =, name =, is_cell =, may_fail = }, ... }; of one that may fail only the assignments count. environment: the
--- globals that it finds.
return function(chunks, environment)
  local self = setmetatable({ names = names.new(environment), found = {}, kinds = {}, formulas = 0,
    tensor = ms.Parameter(ms.ones { 2, 2 }, "x") }, Checker)
  for _, name in ipairs { "True", "False", "None" } do self.kinds[name] = false end
  if rawequal(environment.ms, ms) then self.kinds.ms = "library" end
  local place = {}
  for i, chunk in ipairs(chunks) do
    place[chunk], self.said = i, {}
    read(self, chunk)
  end
  for _, chunk in ipairs(chunks) do
    self.chunk, self.said = chunk, {}
    for _, statement in ipairs(chunk.body and not chunk.may_fail and chunk.body or {}) do visit(self, statement, 0) end
  end
  for i, mistake in ipairs(self.found) do mistake.order = i end
  table.sort(self.found, function(a, b)
    if a.chunk ~= b.chunk then return place[a.chunk] < place[b.chunk] end
    if a.line ~= b.line then return a.line < b.line end
    return a.order < b.order
  end)
  return self.found
end
