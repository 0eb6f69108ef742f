-- Methods of tensors that are written in Lua (lunaria/tensor_methods.lua), against what numpy and PyTorch give.
-- Eager mode only: nothing here is called often enough to be compiled.
package.path = (arg[0]:match("^(.*/)") or "./") .. "?.lua;" .. package.path
local ms = require "lunaria"
local t = require "harness"
local ops = ms.ops
local test, equal, near = t.test, t.equal, t.near
local function fails(f, message) t.fails(message, f) end
local function list(x) return x:tolist() end

local x = ms.tensor { { 1.0, 2.0, 3.0 }, { 4.0, 5.0, 6.0 } }

test("values are put to indices", function()
  local places = { ms.tensor { 0, 1, 0 }, ms.tensor { 2, -3, 2 } }
  equal(list(x:index_put(places, ms.tensor { 7.0, 8.0, 9.0 })), { { 1.0, 2.0, 9.0 }, { 8.0, 5.0, 6.0 } })
  equal(list(x:index_put(places, ms.tensor { 7.0, 8.0, 9.0 }, true)), { { 1.0, 2.0, 19.0 }, { 12.0, 5.0, 6.0 } })
  equal(list(x:index_put({ ms.tensor { 1, 1 } }, ms.tensor { 1.0, 2.0, 3.0 }, true)), { { 1.0, 2.0, 3.0 }, { 6.0, 9.0, 12.0 } })
  equal(list(x:index_put({ ops.greater(x, 4) }, 0)), { { 1.0, 2.0, 3.0 }, { 4.0, 0.0, 0.0 } })
  equal(list(x:index_put({ ops.greater(x, 4) }, 1, true)), { { 1.0, 2.0, 3.0 }, { 4.0, 6.0, 7.0 } })
  equal(list(x), { { 1.0, 2.0, 3.0 }, { 4.0, 5.0, 6.0 } })
  local y = x:copy()
  assert(rawequal(y:index_put_(places, ms.tensor(0.0)), y))
  equal(list(y), { { 1.0, 2.0, 0.0 }, { 0.0, 5.0, 6.0 } })
  equal(list(x:index(places)), { 3.0, 4.0, 3.0 })
  equal(list(x:copy():put_(ms.tensor { 5, 0 }, ms.tensor { 1.5, 2.5 })), { { 2.5, 2.0, 3.0 }, { 4.0, 5.0, 1.5 } })
  equal(list(x:copy():put_(ms.tensor { 5, 5 }, ms.tensor { 1.0, 2.0 }, true)), { { 1.0, 2.0, 3.0 }, { 4.0, 5.0, 9.0 } })
  equal(list(x:itemset(1, 2, 0)), { { 1.0, 2.0, 3.0 }, { 4.0, 5.0, 0.0 } })
  equal(ms.tensor(3.0):itemset(4):item(), 4.0)
  local empty = ops.zeros({ 0 }, ms.int64)
  equal(list(x:index_put({ empty }, ms.tensor(1.0), true)), list(x))
  fails(function() x:index_put({ ms.tensor { 2 } }, 1, true) end, "index_put: an index of axis 0 is out of range: its size is 2")
  fails(function() x:index_put({ ms.tensor { 0.5 } }, 1) end, "indices[1] must hold integers")
  fails(function() x:index_put({}, 1) end, "indices must be a table of tensors")
  fails(function() x:index_put({ ms.tensor { 0 }, ms.tensor { 0 }, ms.tensor { 0 } }, 1) end, "3 tensors of indices for a tensor of rank 2")
  fails(function() x:index_put({ ms.tensor { 0 } }, "a") end, "values must be a tensor, got")
  fails(function() x:itemset(1, 5) end, "1 indices for a tensor of rank 2")
end)

test("gradients go through them", function()
  local places = { ms.tensor { 0, 1 }, ms.tensor { 2, 0 } }
  local d = ms.grad(function(v) return (v:index_put(places, ms.tensor(2.0), true) ^ 2):sum() end)
  equal(list(d(x)), { { 2.0, 4.0, 10.0 }, { 12.0, 10.0, 12.0 } })
  local e = ms.grad(function(v)
    local y = v * 2
    y:index_put_(places, ms.tensor(9.0))
    return (y * v):sum()
  end)
  equal(list(e(x)), { { 4.0, 8.0, 9.0 }, { 9.0, 20.0, 24.0 } })
  local f = ms.jit(e)
  for _ = 1, 3 do equal(list(f(x)), { { 4.0, 8.0, 9.0 }, { 9.0, 20.0, 24.0 } }) end
  equal(list(ms.grad(function(v) return v:sum_to_size(1, 3):index({ ms.tensor { 0 }, ms.tensor { 1 } }):sum() end)(x)),
    { { 0.0, 1.0, 0.0 }, { 0.0, 1.0, 0.0 } })
end)

test("diagonals", function()
  equal(list(ops.zeros { 3, 2 }:fill_diagonal(1)), { { 1.0, 0.0 }, { 0.0, 1.0 }, { 0.0, 0.0 } })
  equal(list(ops.zeros { 2, 3 }:fill_diagonal(1)), { { 1.0, 0.0, 0.0 }, { 0.0, 1.0, 0.0 } })
  -- numpy.fill_diagonal(zeros((5, 2)), 1, wrap=True)
  equal(list(ops.zeros { 5, 2 }:fill_diagonal(1, true)), { { 1.0, 0.0 }, { 0.0, 1.0 }, { 0.0, 0.0 }, { 1.0, 0.0 }, { 0.0, 1.0 } })
  local cube = ops.zeros { 2, 2, 2 }:fill_diagonal_(3)
  equal({ cube:sum():item(), cube:item(0, 0, 0), cube:item(1, 1, 1) }, { 6.0, 3.0, 3.0 })
  fails(function() ops.zeros { 3 }:fill_diagonal(1) end, "2 axes or more")
  fails(function() ops.zeros { 2, 2, 3 }:fill_diagonal(1) end, "of one size")
  fails(function() ops.zeros { 2, 2 }:fill_diagonal() end, "fill_value is missing")
end)

test("values, sizes and questions", function()
  local index, value = x:argmax_with_value(1)
  equal({ list(index), list(value) }, { { 2, 2 }, { 3.0, 6.0 } })
  index, value = x:argmin_with_value(0, true)
  equal({ list(index), list(value) }, { { { 0, 0, 0 } }, { { 1.0, 2.0, 3.0 } } })
  equal({ x:allclose(x + 1e-6), x:allclose(x + 0.1), x:allclose(x + 0.1, 0, 0.2) }, { true, false, true })
  equal(list(x:sum_to_size(3)), { 5.0, 7.0, 9.0 })
  equal(list(x:sum_to_size { 2, 1 }), { { 6.0 }, { 15.0 } })
  fails(function() x:sum_to_size(2, 2) end, "size 2 of axis 1 must be 1 or 3")
  equal(list(x:resize(4)), { 1.0, 2.0, 3.0, 4.0 })
  equal(list(x:resize(2, 4)), { { 1.0, 2.0, 3.0, 4.0 }, { 5.0, 6.0, 0.0, 0.0 } })
  fails(function() x:resize(-1) end, "size 1 must be an integer from 0 on")
  local choices = { ms.tensor { 0, 1, 2 }, ms.tensor { 10, 11, 12 }, 20 }
  equal(list(ms.tensor({ 2, 0, 1 }):choose(choices)), { 20, 1, 12 })
  equal(list(ms.tensor({ 5, -1, 1 }):choose(choices)), { 20, 1, 12 })
  equal(list(ms.tensor({ 4, 3, -1 }):choose(choices, "wrap")), { 10, 1, 20 })
  equal(list(ms.tensor({ { 1 }, { 0 } }):choose(choices)), { { 10, 11, 12 }, { 0, 1, 2 } })
  fails(function() ms.tensor({ 3 }):choose(choices, "raise") end, "out of range: there are 3 choices")
  fails(function() ms.tensor({ 1 }):choose(choices, "nearest") end, "mode must be raise, wrap or clip")
  local a = ms.tensor { { 2.0, 0.0 }, { 1.0, 4.0 } }
  local b = ms.tensor { { 2.0 }, { 9.0 } }
  equal(list((b:triangular_solve(a, false))), { { 1.0 }, { 2.0 } })
  equal(list((b:triangular_solve(a, false, true))), { { -0.125 }, { 2.25 } })
  equal({ x:type(), tostring(x:type(ms.int32).dtype), x:is_signed(), x:is_pinned(), x:is_shared(), x:is_meta() },
    { "Float32", "Int32", true, false, false, false })
  equal(list(x:copy():assign_value(3.0)["0, 0:2"]), { 3.0, 3.0 })
  equal(list(x.H), list(x.T))
  equal(list(x:pin_memory()), list(x))
end)

test("memory", function()
  local y = ms.tensor { { 1, 2 }, { 3, 4 } }
  equal(list(y[1]:storage()), { 1, 2, 3, 4 })
  equal(y[1]:untyped_storage().size, 32)
  equal(y[1]:get_bytes(), string.pack("<i8i8", 3, 4))
  equal(y.T:get_bytes(), string.pack("<i8i8i8i8", 1, 3, 2, 4))
  equal(y[1]:data_ptr() - y:data_ptr(), 16)
  local p = ms.Parameter(ms.tensor { 1.0 }, "w")
  p.data:fill_(5)
  equal(p:item(), 1.0)
end)

test("capsules of DLPack", function()
  local y = ms.arange(12):reshape(3, 4)
  -- What is a part of another tensor gets memory of its own first.
  local back = ms.from_dlpack(y.T:to_dlpack())
  equal(list(back), list(y.T))
  equal(back:data_ptr() ~= y:data_ptr(), true)
  local capsule = ops.flip(y, { 0 }):to_dlpack()
  equal(list(ms.from_dlpack(capsule)), list(ops.flip(y, { 0 })))
  fails(function() ms.from_dlpack(capsule) end, "has been taken already")
  fails(function() ms.from_dlpack(y) end, "a capsule of DLPack is expected")
  for _, dtype in ipairs { "bool", "uint8", "int8", "int16", "int32", "float16", "bfloat16", "float32", "float64" } do
    local z = ms.tensor({ 1, 0, 1 }, ms[dtype])
    equal({ list(ms.from_dlpack(z:to_dlpack())), tostring(ms.from_dlpack(z:to_dlpack()).dtype) }, { list(z), tostring(z.dtype) })
  end
  -- An unused result is given back.
  for _ = 1, 100 do ms.zeros({ 1 << 16 }):to_dlpack() end
  collectgarbage()
end)

test("sparse matrices of dense ones", function()
  local m = ms.tensor { { 0.0, 2.0, 0.0 }, { 0.0, 0.0, 0.0 }, { 3.0, 0.0, 4.0 } }
  equal(list(m:to_coo():to_dense()), list(m))
  equal(list(m:to_csr():to_dense()), list(m))
  equal(list(m:to_csr().indptr), { 0, 1, 1, 3 })
  equal(list(ms.grad(function(v) return (v:to_coo().values ^ 2):sum() end)(m)[2]), { 6.0, 0.0, 8.0 })
  fails(function() ms.ones({ 2 }):to_csr() end, "a matrix is expected, got a tensor of rank 1")
end)

test("random numbers", function()
  ms.set_seed(3)
  local z = ops.zeros { 20000 }
  near(z:copy():exponential_(2):mean(), ms.tensor(0.5), 0.02)
  near(z:uniform(2, 4):mean(), ms.tensor(3.0), 0.02)
  near(ops.median(z:cauchy(1, 2)), ms.tensor(1.0), 0.1)
  near(ops.log(z:log_normal(0.5, 0.25)):mean(), ms.tensor(0.5), 0.02)
  near(ops.log(z:log_normal(0.5, 0.25)):std(), ms.tensor(0.25), 0.02)
  equal(z:sum():item(), 0.0)
  fails(function() z:exponential_(0) end, "lambd must be above 0")
  fails(function() z:cauchy(0, -1) end, "sigma must be above 0")
end)

test("sizes are asked by axis, or all at once, in compiled functions too", function()
  equal(table.pack(x:sizes()), { 2, 3, n = 2 })
  equal(table.pack(x:sizes(-1, 0)), { 3, 2, n = 2 })
  equal(select("#", ms.tensor(1.0):sizes()), 0)
  equal({ x:sizes(1), x.size }, { 3, 6 })
  fails(function() x:sizes(2) end, "sizes: axis 2 is out of range for 2 axes")
  fails(function() x:sizes(-3) end, "sizes: axis -3 is out of range for 2 axes")
  fails(function() x:sizes "rows" end, "sizes: axis rows is out of range for 2 axes")
  local mean = ms.jit(function(v)
    local rows, columns = v:sizes()
    return v:sum() / (rows * columns) + v:sizes(-2)
  end)
  for n = 2, 9 do near(mean(ops.ones { n, 3 }):item(), 1.0 + n, 0) end
  local report = ms.jit_report(mean)
  assert(report.compiled_calls >= 4 and not report.eager, report.eager)
  near(ms.grad(function(v) return (v * v):sum() / v:sizes(0) end)(x):tolist(), x:tolist(), 0)
  near(ms.vmap(function(v) return v:sum() / v:sizes(-1) end)(x):tolist(), { 2.0, 5.0 }, 1e-6)
end)
t.test("two numbers exchange two axes, a table or as many numbers as axes order them", function()
  for _, shape in ipairs { { 3, 3 }, { 2, 3 }, { 2, 3, 4 }, { 3, 3, 3 }, { 2, 3, 4, 5 } } do
    local rank = #shape
    local y = ms.arange(ms.ops.zeros(shape).size):reshape(shape):astype(ms.float32)
    for a = -rank, rank - 1 do
      for b = -rank, rank - 1 do
        local wanted = ops.swapaxes(y, a, b)
        for _, f in ipairs { function(v) return v:transpose(a, b) end, function(v) return ops.transpose(v, a, b) end,
          function(v) return ops.transpose(v, { dim0 = a, dim1 = b }) end } do
          t.equal(f(y), wanted)
          if a == 0 and b ~= 0 then
            t.equal(ms.jit(f)(y), wanted)
            t.near(ms.grad(function(v) return ops.sum(f(v) * wanted) end)(y), y, 0)
            t.equal(ms.vmap(f)(ops.stack({ y, y * 2 }, 0)), ops.stack({ wanted, wanted * 2 }, 0))
            t.equal(ms.jit(function(v, w) return ops.matmul(v:transpose(-2, -1), w) end)(y, y), ops.matmul(y.mT, y))
          end
        end
      end
    end
    local order = {}
    for i = 1, rank do order[i] = (i + 1) % rank end
    t.equal(y:transpose(order), ops.permute(y, order))
    if rank > 2 then t.equal(y:transpose(table.unpack(order)), ops.permute(y, order)) end
    t.equal(y:transpose(), ops.permute(y, rank == 2 and { 1, 0 } or rank == 3 and { 2, 1, 0 } or { 3, 2, 1, 0 }))
  end
  local square = ms.tensor { { 1, 2 }, { 3, 4 } }
  t.equal(square:transpose({ 0, 1 }), square)
  t.equal(square:transpose(0, 1), ms.tensor { { 1, 3 }, { 2, 4 } })
  t.fails({ "dim1 goes with one other axis" }, function() square:transpose({ 0, 1 }, 1) end)
  t.fails({ "transpose" }, function() square:transpose(0, 2) end)
  t.fails({ "dim1 goes with one other axis" }, function() square:transpose { dim1 = 1 } end)
end)

t.finish()
