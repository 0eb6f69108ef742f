-- Names of what a compiled call finds outside itself: parameters by their own names, the rest by where they are kept.
local ms = require "lunaria"

--- For core.whole: name(kind, object, key) gives a name and the value. `kind`: of the question. same: whether a parameter that is
--- found again keeps its name; or a table of the names by which parameters are known, whichever handle of them is found.
return function(target, examples, same)
  local taken, names = {}, {}
  return function(kind, object, key)
    local name, value
    if kind == "argument" then
      name, value = debug.getlocal(target, object + 1), examples[object + 1]
    elseif kind == "upvalue" then
      name, value = debug.getupvalue(object, key)
    elseif type(object) == "table" and key ~= nil then
      name, value = tostring(key), rawget(object, key)
    end
    if kind ~= "argument" and ms.is_parameter(value) then
      if type(same) == "table" and same[value.name] then return value.name, value end
      if same and names[value] then return names[value], value end
      if value.name ~= "" then name = value.name end
    end
    name = name or "value"
    taken[name] = (taken[name] or 0) + 1
    if taken[name] > 1 then name = ("%s.%d"):format(name, taken[name]) end
    if value ~= nil then names[value] = name end
    return name, value
  end
end
