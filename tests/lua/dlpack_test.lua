-- Memory that other programs have, by DLPack: both read and write it. What compiled modules make is in
-- tests/interpreter/bindings/dlpack_test.cpp.
package.path = "tests/lua/?.lua;" .. package.path
local ms = require "lunaria"
local t = require "harness"
local ops = ms.ops
local test, equal = t.test, t.equal
local function list(x) return x:tolist() end

-- Everything that writes into a tensor, as it is done to x and what x is then.
local writes = {
  add_ = function(x) x:add_(50) end,
  ["the others that put an operator in place"] = function(x) x:mul_(2):sub_(1):clamp_(0, 3):sqrt_() end,
  zero_ = function(x) x:zero_() end,
  fill_ = function(x) x:fill_(4) end,
  copy_ = function(x) x:copy_(ms.arange(6):reshape(2, 3)) end,
  ["copy_ of another dtype"] = function(x) x:copy_(ms.tensor({ 1, 2, 3 }, ms.int64)) end,
  set_data = function(x) x:set_data(ms.ones { 2, 3 } * 3) end,
  normal_ = function(x) ms.set_seed(5) x:normal_() end,
  uniform_ = function(x) ms.set_seed(5) x:uniform_(1, 2) end,
  assign = function(x) ops.assign(x, ms.ones { 2, 3 }) ops.assign_add(x, 2) ops.assign_sub { target = x, value = 0.5 } end,
  ["an index"] = function(x) x[0] = 7 x["1, 1:"] = ms.tensor { 8.0, 9.0 } x[{ 1, 0 }] = -1 end,
  ["a mask"] = function(x) x[ops.greater(x, 2)] = 9 end,
  ["a list of positions"] = function(x) x[ms.tensor { 1 }] = 5 end,
  index_put_ = function(x) x:index_put_({ ms.tensor { 1 } }, ms.tensor { 1.0, 2.0, 3.0 }) end,
  ["its own elements"] = function(x) x:copy_(ops.flip(x, { 0 })) end,
  ["a derivative"] = function(x) ms.grad(function(w) x:add_(w) return (x * w):sum() end)(2.0) end,
  ["compiled code"] = function(x)
    local f = ms.jit(function(y) y:add_(1) y[0] = 3 return y * 2 end)
    for _ = 1, 3 do f(x) end
  end,
}
test("what is written into exported tensors is written where they are", function()
  for name, write in pairs(writes) do
    local plain = ms.arange(6.0):reshape(2, 3):copy()
    write(plain)
    -- From either side.
    for side = 1, 2 do
      local x = ms.arange(6.0):reshape(2, 3):copy()
      local view, before = x:reshape(6), list(x)
      local v = ms.from_dlpack(x:to_dlpack())
      local address, later, row = v:data_ptr(), x:reshape(6), v[1]
      equal(x:data_ptr(), address)
      write(side == 1 and x or v)
      local ok, e = pcall(equal, { list(x), list(v) }, { list(plain), list(plain) })
      if not ok then error(name .. ": " .. e) end
      equal({ x:data_ptr(), v:data_ptr() }, { address, address })
      -- No other tensor changes.
      equal({ { list(view:reshape(2, 3)) }, { list(later:reshape(2, 3)) } }, { { before }, { before } })
      equal(list(row), before[2])
    end
  end
end)
test("memory that is exported lives as long as anyone has it", function()
  local x = ms.full({ 1000 }, 3.0)
  local v = ms.from_dlpack(x:to_dlpack())
  x:release()
  for _ = 1, 20 do ms.full({ 1000 }, 5.0) end
  collectgarbage()
  equal(v:sum():item(), 3000.0)
  x = ms.full({ 1000 }, 3.0)
  v = ms.from_dlpack(x:to_dlpack())
  x:set_dtype(ms.float64)  -- has no room there
  x:fill_(1)
  equal({ v:sum():item(), x:sum():item() }, { 3000.0, 1000.0 })
  v:release()
  collectgarbage()
  local w = ms.from_dlpack(x:to_dlpack())
  w:fill_(2)
  equal(x:sum():item(), 2000.0)
end)
test("compiled code and optimizers know that exported elements change", function()
  local w = ms.Parameter(ms.ones { 64, 64 }, "w")
  local x, v = ms.ones { 4, 64 }, ms.from_dlpack(w:to_dlpack())
  local f = ms.jit(function(a) return ops.dense(a, w) + x end)
  for i = 1, 5 do
    v:fill_(i)
    equal(f(x)[0][0]:item(), 64.0 * i + 1)
  end
  local opt = ms.nn.SGD({ w }, 0.5)
  opt { ms.ones { 64, 64 } }
  equal(v[3][3]:item(), 4.5)
  equal(w:data_ptr(), v:data_ptr())
end)
t.finish()
