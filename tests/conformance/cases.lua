-- The cases of a conformance set: their inputs, and their calls as functions of these.
local ms = require "lunaria"
local support = require "support"

local Cases = {}
Cases.__index = Cases

-- `list` has all cases of the set in the folder.
function Cases.open(folder)
  local set = support.read_json(folder .. "/cases.json")
  return setmetatable({ folder = folder, list = set.cases, files = {} }, Cases)
end

-- The tensor under a key of the case's file.
function Cases:stored(case, key)
  local file = self.files[case.file]
  if not file then
    file = ms.load(self.folder .. "/" .. case.file)
    self.files[case.file] = file
  end
  return file[key] or error("the set has no tensor " .. key, 0)
end

local function view_of(tensor, view)
  if view.transpose then return ms.ops.transpose(tensor, view.transpose) end
  local index = {}
  for i, range in ipairs(view.slice) do
    local bounds = {}
    for j = 1, 3 do bounds[j] = range[j] ~= ms.json.null and range[j] or nil end
    index[i] = ms.slice(bounds[1], bounds[2], bounds[3])
  end
  return tensor[index]
end

-- The input at a position, from 1: a tensor, a number, a list of tensors, or nil.
function Cases:input(case, position)
  local input = case.inputs[position]
  if type(input) == "string" then
    local tensor = self:stored(case, input)
    local view = case.views and case.views[tostring(position - 1)]
    return view and view_of(tensor, view) or tensor
  elseif input == ms.json.null then
    return nil
  elseif input.value ~= nil then
    return input.value
  end
  local list = {}
  for i, key in ipairs(input) do list[i] = self:stored(case, key) end
  return list
end

-- The attributes of a case by name.
function Cases.attributes(case)
  local attrs = {}
  for name, value in pairs(case.attrs) do
    if value == "inf" then value = math.huge end
    if value ~= ms.json.null then attrs[name] = value end
  end
  return attrs
end

-- The call of a case, as a function of its inputs.
function Cases.caller(case)
  local f, attrs = ms[case.api][case.op], Cases.attributes(case)
  if case.op == "einsum" then
    return function(...) return f(attrs.equation, ...) end
  end
  if case.arg_names then
    return function(...)
      local named = {}
      for name, value in pairs(attrs) do named[name] = value end
      for i, name in ipairs(case.arg_names) do named[name] = (select(i, ...)) end
      return f(named)
    end
  end
  if next(attrs) == nil then return f end
  return function(...)
    local arguments = table.pack(...)
    arguments[arguments.n + 1] = attrs
    return f(table.unpack(arguments, 1, arguments.n + 1))
  end
end

-- The results of a call in a table; operators with a varying number of results give them in one.
function Cases.collect(case, ...)
  local results = table.pack(...)
  if results.n == 1 and type(results[1]) == "table" and #case.outputs ~= 1 then return results[1] end
  return results
end

return Cases
