-- Functions that rows of tables make: all of a family take the same arguments and differ in the operator that they apply. Such a function
-- has no comment of its own, so that its row has its text and an example, which help/index.lua finds by the function.
local arguments = require "lunaria.nn.arguments"
local rows = { of = setmetatable({}, { __mode = "k" }) }

--- Describes f, which is called name(list): what it is, and an example "code --> result". Gives f.
function rows.describe(f, name, list, text, example)
  local place = debug.getinfo(3, "Sl")
  rows.of[f] = { name = name, list = list, text = text, file = place.short_src, line = place.currentline,
    examples = "\n\n  > " .. example:gsub("\n", "\\n") }
  return f
end

local named = arguments.named
local takes = {
  function(where, f, names, body)
    return function(x, ...) return body(where, f, x, named(where, names, ...)) end
  end,
  function(where, f, names, body)
    return function(x, y, ...) return body(where, f, x, y, named(where, names, ...)) end
  end,
  function(where, f, names, body)
    return function(x, y, z, ...) return body(where, f, x, y, z, named(where, names, ...)) end
  end,
}

--- A family of functions of a module. prefix: "numpy." and so on. operands: the names of one to three arguments that are always given.
--- names: those of arguments that may be left out or stand in a trailing table. body(where, f, operands..., optional arguments...) is the
--- call. Gives row(name, f, text, example), which adds a function to the module.
function rows.family(module, prefix, operands, names, body)
  local list = "(" .. table.concat(operands, ", ") .. (#names > 0 and ", " or "") .. table.concat(names, ", ") .. ")"
  return function(name, f, text, example)
    local where = prefix .. name
    module[name] = rows.describe(takes[#operands](where, f, names, body), "ms." .. where, list, text, example)
    rows.of[module[name]].names = names
  end
end

--- Rows of functions that are the same as another one of the module: row(name, other, example).
function rows.same(module, prefix)
  return function(name, other, example)
    local f = module[other]
    module[name] = rows.describe(function(...) return f(...) end, "ms." .. prefix .. name, rows.of[f].list,
      ("The same as ms.%s%s."):format(prefix, other), example)
  end
end

return rows
