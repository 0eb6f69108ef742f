-- Tables whose names lie in many files, as ms.nn: a file is loaded when one of its names is first used, so that a program
-- pays for the layers that it has. pairs(), completion and help load all.
local arguments = require "lunaria.nn.arguments"
local set_parts = require "lunaria.set_parts"

--- A table with the names of `rows`: { file, names, of = the field of what the file gives that has them, whole = true where
--- the file gives the value of its only name }. `other(name)` may know further ones; `what` is how messages call a name.
return function(table_name, what, rows, other)
  local row_of = {}
  for _, row in ipairs(rows) do
    for name in row[2]:gmatch "%S+" do row_of[name] = row end
  end
  local function load_name(name)
    local row = row_of[name]
    if row then
      local found = require(row[1])
      if row.whole then return found end
      return (row.of and found[row.of] or found)[name]
    end
    local found = other and other(name)
    if found ~= nil then return found end
    local names = {}
    for known in pairs(row_of) do names[#names + 1] = known end
    table.sort(names)
    arguments.fail(table_name, ("there is no %s '%s'"):format(what, tostring(name)), arguments.nearest(tostring(name), names))
  end
  return set_parts({}, load_name, row_of)
end
