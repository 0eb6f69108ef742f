-- ms.insight.first_nan: where the first NaN or infinity of a call comes from.
local core = require "lunaria.watching"
local arguments = require "lunaria.nn.arguments"
local told = require "lunaria.insight.watch_text"
local watch = require "lunaria.insight.watch"
local watchpoints = require "lunaria.insight.conditions"

local FOUND = "the first NaN or infinity was found"

local Origin = {}
Origin.__index = Origin
Origin.__name = "origin"

function Origin:__tostring()
  local what = self.kind == "outside" and "came in with" or "appeared in"
  local lines = { ("the first NaN or infinity %s %s%s: %s"):format(what, self.tensor.name, told.at(self.node), told.figures(self.tensor)) }
  if self.element then lines[1] = lines[1] .. (", the first at element %d"):format(self.element) end
  told.operands(self, lines)
  if #self.upstream > 0 then
    lines[#lines + 1] = "  before it:"
    for _, node in ipairs(self.upstream) do lines[#lines + 1] = ("    %s%s"):format(("  "):rep(node.level - 1), told.at(node):sub(5)) end
  end
  return table.concat(lines, "\n")
end

--- Where the first NaN or infinity of a call comes from: calls f with the arguments until a result of an operator, a gradient or what an
--- optimizer writes is not finite although the operands are, and gives node (its name, operator, layer and place), place ("file:line"),
--- tensor (statistics of what is not finite), element (the first such, in row-major order), operands (statistics of each, the node that
--- it comes from, and its value there), numbers among the arguments, and upstream, the nodes before. kind is "result", "update", or
--- "outside" where it came in with an argument or a parameter. nil where all is finite. It prints as a report; f ends there.
---     > origin = ms.insight.first_nan(function(x) return ms.ops.sqrt(x - 2) * 2 end, ms.tensor { 3.0, 1.0 })
---     > origin.node.name, origin.element, origin.operands[1].value --> sqrt-0	1	-1.0
---     > ms.insight.first_nan(ms.ops.exp, ms.tensor { 1.0 }) == nil --> true
local function first_nan(f, ...)
  if not arguments.is_callable(f) then
    arguments.fail("first_nan", "a function is expected, got " .. arguments.describe(f))
  end
  local self = { points = { watchpoints.watchpoint("first_nan", "tensor_overflow") } }
  local origin
  self._core = core.new(self.points, { seeks_origin = true }, function(event)
    if origin or event ~= "hit" then return end
    origin = watch.complete(self, self._core:hits()[1])
    error(FOUND, 0)
  end)
  local results = table.pack(pcall(self._core.run, self._core, f, ...))
  if not origin then
    if not results[1] then error(results[2], 0) end
    return nil
  end
  local name = origin.tensor.name
  origin.kind = name:find "^operand" and "outside"
    or name:find "^written" and "update"
    or name:find "^parameter" and (origin.operands[1] and "update" or "outside")
    or "result"
  return setmetatable(origin, Origin)
end

return { first_nan = first_nan }
