-- Common parts of the kinds of armour.lua: lists as tensors, networks of the files, comparison of numbers.
local ms = require "lunaria"

local values = {}

function values.float64(list) return ms.tensor(list, ms.float64) end
function values.classes(list) return ms.tensor(list, ms.int32) end

--- nil, or what is wrong: the greatest distance between two tensors, numbers or lists of numbers is above the tolerance. relative: share of
--- the expected value that is allowed besides.
function values.differs(what, got, expected, tolerance, relative)
  if type(got) == "table" then got = values.float64(got) end
  if type(expected) == "table" then expected = values.float64(expected) end
  if not ms.is_tensor(got) then got = values.float64 { got } end
  if not ms.is_tensor(expected) then expected = values.float64 { expected } end
  if got.size ~= expected.size then
    return ("%s: shape %s, expected %s"):format(what, tostring(got.shape), tostring(expected.shape))
  end
  got, expected = got:astype(ms.float64):reshape { -1 }, expected:astype(ms.float64):reshape { -1 }
  local excess = ms.ops.abs(got - expected) - ms.ops.abs(expected) * (relative or 0)
  local worst = ms.ops.max(excess):item()
  if worst <= tolerance then return nil end
  local at = ms.ops.argmax(excess):item()
  return ("%s: element %d is %.12g, expected %.12g"):format(what, at, got[at]:item(), expected[at]:item())
end

--- The first thing that is wrong among results of differs, which may be nil.
function values.first(...)
  for i = 1, select("#", ...) do
    local wrong = select(i, ...)
    if wrong ~= nil then return wrong end
  end
end

--- The function from images (n, ...) to logits that a network of a file stands for.
function values.network(net)
  local W2, b1, b2 = values.float64(net.W2), values.float64(net.b1), values.float64(net.b2)
  local ops = ms.ops
  if net.type == "conv" then
    local K = values.float64(net.K)
    return function(x)
      local hidden = ops.tanh(ops.conv2d(x, K) + b1:reshape { 1, -1, 1, 1 })
      return ops.matmul(hidden:reshape { x.shape[1], -1 }, W2:t()) + b2
    end
  end
  local W1 = values.float64(net.W1)
  return function(x) return ops.matmul(ops.tanh(ops.matmul(x, W1:t()) + b1), W2:t()) + b2 end
end

return values
