-- A call that fails closes the handles that were made for it, not those that the program holds: tensors in the tables that
-- an operator, a cell or a function of the library is given stay what they are, in every mode.
package.path = "tests/lua/?.lua;" .. package.path
local ms = require "lunaria"
local t = require "harness"
local ops, nn, np = ms.ops, ms.nn, ms.numpy

-- Calls with a tensor and a table {x = , y = , [1] = , deep = {...}} of tensors, all of which raise an error.
local calls = {
  ["a name that there is not"] = function(x, o) return ops.sum(x, o) end,
  ["names, one of them wrong"] = function(_, o) return ops.add { input = o.x, other = o.y, third = o.x } end,
  ["a name that is given by position too"] = function(x, o) return ops.softmax(x, { x = o.x }) end,
  ["a wrong value under a right name"] = function(x, o) return ops.softmax(x, { axis = o.x }) end,
  ["a wrong dtype under a right name"] = function(x, o) return ops.sum(x, { dtype = o.x }) end,
  ["a table under a right name"] = function(x, o) return ops.add { input = x, other = o } end,
  ["arithmetic"] = function(x, o) return x - o end,
  ["arithmetic with the table first"] = function(x, o) return o * x end,
  ["a comparison"] = function(x, o) return x < o end,
  ["joined as texts"] = function(x, o) return x .. o end,
  ["a list and a wrong axis"] = function(_, o) return ops.concat({ o.x, o.y }, 7) end,
  ["a list with a text"] = function(_, o) return ops.concat({ o.x, "no" }) end,
  ["a list with a table"] = function(_, o) return ops.stack({ o.x, o.y, o }) end,
  ["a list and other fields"] = function(_, o) return ops.split(o.x, o) end,
  ["a table for sizes"] = function(_, o) return ops.normal(o, 0, 1) end,
  ["a table for a tensor"] = function(x, o) return ops.dense(x, o.x, o) end,
  ["a table for a condition"] = function(x, o) return ops.where(o, x, o.x) end,
  ["a table for a text"] = function(_, o) return ops.einsum(o, o.x) end,
  ["a table for a list"] = function(_, o) return ops.einsum("ij->", o) end,
  ["a variable that is none"] = function(_, o) return ops.assign(o, o) end,
  ["an index"] = function(x, o) return x[o] end,
  ["an index with a table in it"] = function(x, o) return x[{ o.x, o }] end,
  ["a write by an index"] = function(x, o) local y = x * 1 y[o] = o return y end,
  ["a write of a table"] = function(x, o) local y = x * 1 y["..."] = o return y end,
  ["a method"] = function(x, o) return x:reshape(o) end,
  ["a method in place"] = function(x, o) return x:add_(o) end,
  ["a cell"] = function(_, o) return nn.Dense(2, 2)(o) end,
  ["a cell with a list"] = function(x, o) return nn.LSTM(2, 2)(x, { o.x, o.y }) end,
  ["options of a cell"] = function(x, o) return nn.Dense(2, 2, o)(x) end,
  ["a loss"] = function(x, o) return nn.MSELoss()(x, o) end,
  ["an optimizer"] = function(_, o) return nn.SGD({ o.x }, 0.1) end,
  ["options of an optimizer"] = function(_, o) return nn.Adam(o, o) end,
  ["a data set"] = function(_, o) return ms.dataset.NumpySlicesDataset({ o.x, o.y }, 5, 6) end,
  ["a checkpoint"] = function(_, o) return ms.save_checkpoint({ o }, "/proc/nonexistent/x") end,
  ["a ragged table of tensors"] = function(_, o) return ms.tensor({ o.x, o.y, { 1 } }) end,
  ["numpy with a list"] = function(_, o) return np.concatenate({ o.x, "no" }) end,
  ["numpy with options"] = function(x, o) return np.sum(x, o) end,
  ["scipy"] = function(x, o) return ms.scipy.linalg.solve_triangular(x, o) end,
  ["scipy with the table first"] = function(x, o) return ms.scipy.optimize.minimize(o, x) end,
  ["a custom derivative"] = function(x, o) return ms.custom_vjp(o, o)(x) end,
  ["a checkpointed function"] = function(x, o) return ms.checkpoint(function(a) return ops.sum(a, o) end)(x) end,
  ["a gradient within"] = function(x, o) return ms.grad(function(a) return a - o end)(x) end,
  ["an error that is passed on"] = function(x, o) error(select(2, pcall(ops.sum, x, o))) end,
}
local modes = {
  eager = function(f) return f end,
  differentiated = function(f) return ms.grad(f) end,
  ["differentiated by the table"] = function(f) return ms.grad(f, 1) end,
  ["differentiated twice"] = function(f) return ms.grad(function(a, o) return ms.grad(f)(a, o):sum() end) end,
  compiled = function(f) return ms.jit(f) end,
  ["compiled and differentiated"] = function(f) return ms.jit(ms.grad(f)) end,
  vmap = function(f) return function(x, o) return ms.vmap(function(row) return f(row, o) end)(ops.stack { x, x }) end end,
}
for name, call in pairs(calls) do
  t.test("tables that are given stay what they are: " .. name, function()
    for mode, transform in pairs(modes) do
      local x, a, b = ms.ones { 2, 2 }, ms.ones { 2, 2 } * 2, ms.ones { 2, 2 } * 3
      local o = { x = a, y = b, [1] = a, deep = { b } }
      local f = transform(call)
      for _ = 1, 3 do
        local message = t.fails("", f, x, o)
        if message:find "released" then error(mode .. ": " .. message, 0) end
      end
      t.equal({ rawequal(o.x, a), rawequal(o.y, b), rawequal(o[1], a), rawequal(o.deep[1], b) }, { true, true, true, true })
      local ok, sum = pcall(function() return (o.x + o.y + o.deep[1] + x * 0):sum():item() end)
      if not ok or sum ~= 32 then error(("%s: %s"):format(mode, tostring(sum)), 0) end
    end
  end)
end
t.finish()
