-- Sums of many elements in few cells.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local core = require "lunaria.federated_compression"
local quantized = require "lunaria.federated.compression.quantized"

local fail, check, describe = arguments.fail, arguments.check, arguments.describe
local M = {}

local CountSketch = class.define(nil, "CountSketch", "columns, rows=5, seed=0", [[Vectors in rows times columns cells, from which the large
elements are estimated (Charikar, Chen and Farach-Colton 2002; in federated learning FetchSGD, Rothchild and others 2020): each row adds
every element with a sign to one of its columns, both by the seed, and an element is the median of what the rows say. The sketch of a
sum is the sum of sketches, so that secure sums can add them up. rows: odd.

  > sketch = ms.federated.compression.CountSketch { columns = 200 }
  > x = ms.ops.zeros({ 10000 }, ms.float64)
  > x[42] = 7.0
  > cells = sketch:sketch(x) + sketch:sketch(x)
  > sketch:estimate(cells, 10000)[42]:item() --> 14.0]])
CountSketch._called = "codec"
M.CountSketch = CountSketch

function CountSketch:setup(a)
  self.columns, self.rows = check.positive("CountSketch", "columns", a.columns), check.positive("CountSketch", "rows", a.rows)
  self.seed = check.integer("CountSketch", "seed", a.seed)
  if self.rows % 2 == 0 or self.rows > 101 then fail("CountSketch", ("rows must be odd, at most 101, got %d"):format(self.rows)) end
  if self.columns > 1 << 26 or self.rows * self.columns > 1 << 26 then
    fail("CountSketch", ("rows times columns must be at most 2^26, got %d times %d"):format(self.rows, self.columns))
  end
end

--- The cells of a vector: a float64 tensor (rows * columns,). x: a tensor (n,) of float32 or float64.
---     > ms.federated.compression.CountSketch({ columns = 10 }):sketch(ms.randn(1000)).shape --> (50,)
function CountSketch:sketch(x) return core.sketch(self, quantized.vector("sketch", x)) end

local function cells_of(self, where, cells)
  if not ms.is_tensor(cells) or cells.ndim ~= 1 or cells.size ~= self.rows * self.columns then
    fail(where, ("cells must be a tensor (%d,), got %s"):format(self.rows * self.columns, describe(cells)))
  end
  return quantized.vector(where, cells)
end

--- Estimates of all elements: a float64 tensor (size,). cells: a sketch, or a sum of sketches. size: elements of the vector.
---     > sketch = ms.federated.compression.CountSketch { columns = 10 }
---     > sketch:estimate(sketch:sketch(ms.tensor { 3.0 }), 1):item() --> 3.0
function CountSketch:estimate(cells, size)
  size = arguments.named("estimate", { "size" }, size)
  return core.estimate(self, cells_of(self, "estimate", cells), check.positive("estimate", "size", size))
end

--- The k largest of the estimates, with zeros elsewhere: a float64 tensor (size,). cells: a sketch, or a sum of
--- sketches. size: elements of the vector. k: how many.
---     > sketch = ms.federated.compression.CountSketch { columns = 10 }
---     > sketch:largest(sketch:sketch(ms.tensor { 3.0, 0.0 }), 2, 1):tolist()[1] --> 3.0
function CountSketch:largest(cells, size, k)
  size, k = arguments.named("largest", { "size", "k" }, size, k)
  local all = self:estimate(cells, size)
  local places = core.largest(all, check.positive("largest", "k", k))
  local kept = ms.ops.zeros({ size }, ms.float64)
  kept[places] = all[places]
  return kept
end

return M
