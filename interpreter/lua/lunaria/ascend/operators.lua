-- The part of the simulated chip that runs each operator, and the tile program of the library that computes the same.
local core = require "lunaria.ascend_core"

-- The tile programs of ms.ascend.library by the operators whose numbers they give.
local programs = { add = "add", sub = "sub", mul = "mul", div = "div", maximum = "maximum", minimum = "minimum", relu = "relu",
  abs = "abs", neg = "neg", exp = "exp", log = "log", sqrt = "sqrt", sigmoid = "sigmoid", tanh = "tanh", gelu_tanh = "gelu",
  relu_grad = "relu_grad", softmax = "softmax", layer_norm = "layer_norm", batch_norm_train = "batch_norm", sum = "reduce_sum",
  amax = "reduce_max", amin = "reduce_min", matmul = "matmul", mm = "matmul", conv2d = "conv2d", conv_input_grad = "conv2d_input_grad",
  conv_weight_grad = "conv2d_weight_grad", max_window = "max_pool", avg_pool2d = "avg_pool", transpose = "transpose",
  gather = "gather", scatter_update = "scatter_update", index_add = "scatter_add", apply_momentum = "momentum",
  apply_adam = "adam" }

local M = {}

local Operators = {}
Operators.__index = Operators
Operators.__name = "operators on the device Ascend"

local units = { "cube", "vector", "AI CPU", "others", "none", "host" }
local titles = { cube = "AI cores, cube and vector units", vector = "AI cores, vector unit", ["AI CPU"] = "AI CPUs",
  others = "made of other operators", none = "no work of the chip (views, shapes)", host = "the host" }

function Operators:__tostring()
  local names = {}
  for name, row in pairs(self) do
    names[row.unit] = names[row.unit] or {}
    table.insert(names[row.unit], row.program and name .. "*" or name)
  end
  local lines = {}
  for _, unit in ipairs(units) do
    local list = names[unit]
    if list then
      table.sort(list)
      lines[#lines + 1] = ("%s (%d): %s"):format(titles[unit], #list, table.concat(list, ", "))
    end
  end
  lines[#lines + 1] = "* with a tile program in ms.ascend.library"
  return table.concat(lines, "\n")
end

--- By the names of the operators, which part of the chip runs them: { unit =, program = }. unit: "cube" (the cores' cube units do the
--- products), "vector" (their vector units), "AI CPU", "others" (it is made of other operators), "none" (it is a view, or asks for
--- shapes), "host". program: the kernel of ms.ascend.library that computes the same, if there is one. Types that the cores do not have
--- (float64, bfloat16, complex numbers) go to the AI CPUs whatever the operator.
---     > ms.ascend.operators().sort.unit --> AI CPU
function M.operators()
  local list = {}
  for name, unit in pairs(core.units()) do list[name] = { unit = unit, program = programs[name] } end
  return setmetatable(list, Operators)
end

return M
