-- Operators with several results within a derivative, and gradients that a program gives itself.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local nn, ops = ms.nn, ms.ops

local square = ms.tensor({ { 2.0, 1.0, 0.5 }, { 1.0, 3.0, -0.25 }, { 0.5, -0.25, 1.5 } }, ms.float64)
local tall = ms.tensor({ { 1.0, 2.0 }, { 3.0, 5.0 }, { 0.5, -1.0 } }, ms.float64)

-- Calls that give several results, each with an argument that they are differentiated by.
local several = {
  svd = { tall, function(x) return ops.svd(x) end },
  ["svd by names"] = { tall, function(x) return ops.svd { input = x, compute_uv = true } end },
  qr = { tall, function(x) return ops.qr(x) end },
  eigh = { square, function(x) return ops.eigh((x + x:t()) / 2) end },
  slogdet = { square, function(x) return ops.slogdet(x) end },
  max = { tall, function(x) return ops.max(x, { axis = 0 }) end },
  median = { tall, function(x) return ops.median(x, { axis = 0 }) end },
  topk = { tall, function(x) return ops.topk(x, 2, { dim = 0 }) end },
  sort = { tall, function(x) return ops.sort(x, { axis = 0 }) end },
  cummax = { tall, function(x) return ops.cummax(x, 0) end },
  chunk = { tall, function(x) return ops.chunk(x, 3) end },
  unbind = { tall, function(x) return ops.unbind(x) end },
  split = { tall, function(x) return ops.split(x, 1) end },
  meshgrid = { ms.tensor({ 1.0, 2.0 }, ms.float64), function(x) return ops.meshgrid({ x, x * 2 }) end },
  rms_norm = { tall, function(x) return ops.rms_norm(x, ops.ones({ 2 }, ms.float64)) end },
}

local names = {}
for name in pairs(several) do names[#names + 1] = name end
table.sort(names)

for _, name in ipairs(names) do
  local x, f = several[name][1], several[name][2]
  -- The sum of all float results, and in `seen` how many results there were.
  local seen
  local function total(v)
    local results = table.pack(f(v))
    seen = results.n
    local sum = ops.zeros({}, ms.float64)
    for i = 1, results.n do
      if results[i].dtype == ms.float64 then sum = sum + (results[i] * results[i]):sum() * i end
    end
    return sum
  end
  t.test(name .. " gives as many results within a derivative as outside, in all modes", function()
    local count = select("#", f(x))
    assert(count > 1)
    local plain, compiled = ms.grad(total), ms.jit(ms.grad(total))
    local expected = plain(x)
    t.equal(seen, count)
    for _ = 1, 3 do t.near(compiled(x), expected, 1e-9) end
    t.equal(ms.check_grad(total, { x }) < 1e-4, true)
    -- Within a second derivative, and for a batch.
    local again = ms.grad(function(v) return (plain(v) * plain(v)):sum() end)
    again(x)
    t.equal(seen, count)
    t.near(ms.jit(again)(x), again(x), 1e-7)
    local batch = ops.stack({ x, x * 1.5 })
    t.near(ms.vmap(plain)(batch)[0], expected, 1e-9)
    local whole = ms.grad(function(b) return ms.vmap(total)(b):sum() end)
    t.near(whole(batch)[0], expected, 1e-9)
    local around = ms.grad(function(b) return (ms.vmap(plain)(b) ^ 2):sum() end)
    t.near(around(batch)[0], again(x), 1e-7)
  end)
end

local v = ms.tensor { 1.0, 2.0 }

-- Gradients that are no gradient of an argument of shape (2).
local wrong = {
  ["a longer vector"] = { function() return ms.tensor { 1.0, 2.0, 3.0 } end, "tensor of shape (2) like it, got one of shape (3)" },
  ["a column"] = { function() return ms.tensor { { 1.0 }, { 2.0 } } end, "got one of shape (2, 1)" },
  ["a scalar tensor"] = { function() return ms.tensor(1.0) end, "got one of shape ()" },
  ["a number"] = { function() return 3.0 end, "got number" },
  ["a text"] = { function() return "3" end, "got string" },
}
for name, case in pairs(wrong) do
  local function back() return case[1]() end
  local own = ms.custom_vjp(function(x) return (x * 2):sum() end, back)
  local Own = nn.Cell:extend("Own")
  function Own:construct(x) return (x * 2):sum() end
  function Own:bprop() return case[1]() end
  local cell = Own()
  t.test(name .. " as the gradient of a vector is an error that says so", function()
    for what, f in pairs { custom_vjp = own, bprop = function(x) return cell(x) end } do
      for mode, g in pairs { plain = ms.grad(f), compiled = ms.jit(ms.grad(f)), batched = ms.vmap(ms.grad(f)) } do
        for _ = 1, 2 do
          local ok, message = pcall(g, mode == "batched" and ops.stack { v, v } or v)
          t.equal({ what, mode, ok }, { what, mode, false })
          assert(message:find("the gradient that is given for argument 0", 1, true), message)
          assert(message:find(case[2], 1, true), message)
        end
      end
    end
  end)
end

t.test("gradients of the right shape, zero and nil are taken as they are", function()
  local function with(gradient)
    return ms.grad(ms.custom_vjp(function(x) return (x * 2):sum() end, function() return gradient end))(v)
  end
  t.near(with(ms.tensor { 5.0, 6.0 }), ms.tensor { 5.0, 6.0 }, 0)
  t.near(with(nil), ms.tensor { 0.0, 0.0 }, 0)
  t.near(ms.grad(ms.custom_vjp(function(x) return x * x end, function(_, _, d) return 10 * d end))(3.0), 10.0, 0)
  t.near(ms.grad(ms.custom_vjp(function(x) return x * x end, function(x) return ops.ones_like(x) end))(ms.tensor(3.0)),
    ms.tensor(1.0), 0)
end)

t.finish()
