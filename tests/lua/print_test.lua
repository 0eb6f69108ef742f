-- The text of tensors.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local T = ms.tensor

local function prints(name, tensor, text)
  t.test(name .. " prints as documented", function() t.equal(tostring(tensor), text) end)
end

prints("a float matrix", T { { 1.0, 2.5 }, { 3, 4 } },
  "Tensor(shape=[2, 2], dtype=Float32, value=\n[[ 1.00000000e+00,  2.50000000e+00],\n [ 3.00000000e+00,  4.00000000e+00]])")
prints("a negative float", T { -1.0, 2.0 },
  "Tensor(shape=[2], dtype=Float32, value=\n[-1.00000000e+00,  2.00000000e+00])")
prints("nan and infinity", T { 0 / 0, 1 / 0, -1 / 0, 1.0 },
  "Tensor(shape=[4], dtype=Float32, value=\n[            nan,             inf,            -inf,  1.00000000e+00])")
prints("integers", T { { 1, -20 }, { 300, 4 } },
  "Tensor(shape=[2, 2], dtype=Int64, value=\n[[  1, -20],\n [300,   4]])")
prints("booleans", T { true, false }, "Tensor(shape=[2], dtype=Bool, value=\n[ True, False])")
prints("a float scalar", T(2.5), "Tensor(shape=[], dtype=Float32, value= 2.5)")
prints("a tenth", T(0.1), "Tensor(shape=[], dtype=Float32, value= 0.1)")
prints("an integer scalar", T(7), "Tensor(shape=[], dtype=Int64, value= 7)")
prints("an empty tensor", T({}, ms.int32), "Tensor(shape=[0], dtype=Int32, value= [])")
prints("an empty matrix", ms.ops.zeros({ 2, 0 }, ms.float32), "Tensor(shape=[2, 0], dtype=Float32, value= [])")
prints("half precision", T({ 1.5 }, ms.float16), "Tensor(shape=[1], dtype=Float16, value=\n[ 1.5000e+00])")
prints("bfloat16", T({ 1.5 }, ms.bfloat16), "Tensor(shape=[1], dtype=BFloat16, value=\n[ 1.5000e+00])")
prints("double precision", T({ 0.1 }, ms.float64),
  "Tensor(shape=[1], dtype=Float64, value=\n[ 1.0000000000000001e-01])")
prints("three axes", T { { { 1, 2 }, { 3, 4 } }, { { 5, 6 }, { 7, 8 } } },
  "Tensor(shape=[2, 2, 2], dtype=Int64, value=\n[[[1, 2],\n  [3, 4]],\n [[5, 6],\n  [7, 8]]])")
prints("a strided view", T({ { 1, 2 }, { 3, 4 } }).T,
  "Tensor(shape=[2, 2], dtype=Int64, value=\n[[1, 3],\n [2, 4]])")
prints("a summarised matrix", ms.ops.arange(0, 2000):reshape(50, 40),
  "Tensor(shape=[50, 40], dtype=Int64, value=\n" ..
  "[[   0,    1,    2, ...,   37,   38,   39],\n" ..
  " [  40,   41,   42, ...,   77,   78,   79],\n" ..
  " [  80,   81,   82, ...,  117,  118,  119],\n" ..
  " ...,\n" ..
  " [1880, 1881, 1882, ..., 1917, 1918, 1919],\n" ..
  " [1920, 1921, 1922, ..., 1957, 1958, 1959],\n" ..
  " [1960, 1961, 1962, ..., 1997, 1998, 1999]])")

t.test("big tensors print little, whatever their size", function()
  assert(#tostring(ms.ops.ones({ 1000, 1000 }, ms.float32)) < 2000)
end)

t.test("long rows are broken within the width", function()
  for line in tostring(ms.ops.arange(0, 900)):gmatch("[^\n]+") do assert(#line <= 100, line) end
end)

t.finish()
