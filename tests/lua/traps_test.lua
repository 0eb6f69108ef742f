-- Warnings of the library at the user's line about what is allowed and hardly meant.
-- Eager mode only: warnings are of the library's own functions, which graph mode calls too.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"

local HEAD = [[local ms = require "lunaria" local nn = ms.nn
local function class(name) return nn.Cell:extend(name) end
]]

-- The warnings of a program: "line: text" and the hint, for each.
local function warnings(text)
  local path = os.tmpname()
  local file = assert(io.open(path, "w"))
  file:write(HEAD .. text .. "\n")
  file:close()
  local pipe = io.popen(("'%s' '%s' 2>&1 >/dev/null"):format(arg[-1], path))
  local said = pipe:read "a"
  pipe:close()
  os.remove(path)
  local list = {}
  for line, warning, hint in said:gmatch ":(%d+): warning: ([^\n]*)\n  hint: ([^\n]*)" do
    list[#list + 1] = ("%d %s | %s"):format(line - 2, warning, hint)
  end
  return list, said
end

local function says(text, ...)
  local list, said = warnings(text)
  t.equal(#list, select("#", ...), said)
  for i, part in ipairs { ... } do assert(list[i]:find(part, 1, true), ("%q has no %q"):format(list[i], part)) end
end

t.test("a probability to keep that looks like one to drop", function()
  says("nn.Dropout(0.1)", "1 Dropout: the first argument is the probability to keep: 0.9 of the elements become 0")
  says("nn.Dropout(0.9) nn.Dropout { p = 0.1 } nn.Dropout { keep_prob = 0.1 } nn.Dropout()")
end)

t.test("windows without a stride", function()
  says("nn.MaxPool2d(2)", "1 MaxPool2d: the stride is 1 where none is given | nn.MaxPool2d(2, 2)")
  says("nn.AvgPool1d(3)", "nn.AvgPool1d(3, 3)")
  says("nn.MaxPool2d(2, 2) nn.MaxPool2d(2, { stride = 1 }) nn.AvgPool2d(1) nn.AvgPool3d { kernel_size = 2 }")
end)

t.test("layers in a plain table are not trained", function()
  local net = [[local Net = class "Net"
function Net:init(list) self.layers = list({ nn.Dense(2, 2), nn.Dense(2, 2) }) self.last = nn.Dense(2, 2) end
function Net:construct(x) return x end
]]
  local text = "Net: the field 'layers' is a plain table, and the parameters in it are not trained | self.layers = nn.CellList { ... }"
  says(net .. "Net(function(x) return x end):trainable_params()", "4 " .. text)
  says(net .. "nn.SequentialCell { Net(function(x) return x end) }:trainable_params()", text)
  says(net .. "Net(nn.CellList):trainable_params() Net(function() return { nn.ReLU(), 3, 'x' } end):trainable_params()")
  -- A list beside the fields that have the same cells.
  says(net .. "local one = Net(nn.CellList) one.all = { one.layers, one.last } one:trainable_params()")
end)

t.test("a parameter that was replaced is not trained", function()
  says("local d = nn.Dense(2, 2) d.weight = ms.ones { 2, 2 } d:trainable_params()",
    "Dense: the parameter in the field 'weight' was replaced by a tensor of shape (2, 2), which is not trained | cell.weight:set_data")
  says("local d = nn.Dense(2, 2) d.weight = 3 d:trainable_params()", "was replaced by 3")
  says("local d = nn.Dense(2, 2) d.weight = ms.Parameter(ms.ones { 2, 2 }) d.bias = nil d:trainable_params()")
end)

t.finish()
