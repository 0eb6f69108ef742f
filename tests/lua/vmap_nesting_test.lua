-- vmap within and around derivatives and compiled functions: the same values as a loop over the samples, in one run.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local nn = require "lunaria.nn"
local core = require "lunaria.autodiff"
local ops = ms.ops

ms.set_seed(3)

-- What vmap asks for, with a note of why something was no batch.
local notes = {}
local _ = ms.grad -- what the library has for this is there from here on
local batch = core.batch
function core.batch(...)
  local results = table.pack(batch(...))
  if not results[results.n] then notes[#notes + 1] = tostring(results[1]) end
  return table.unpack(results, 1, results.n)
end

-- vmap as a loop.
local function loop(f, axes)
  return function(...)
    local arguments, columns, count = table.pack(...), {}, nil
    for k = 1, arguments.n do
      if not axes or axes[k] ~= false then count = arguments[k].shape[1] end
    end
    for i = 0, count - 1 do
      local call = {}
      for k = 1, arguments.n do call[k] = axes and axes[k] == false and arguments[k] or arguments[k][i] end
      local results = table.pack(f(table.unpack(call, 1, arguments.n)))
      for r = 1, results.n do
        columns[r] = columns[r] or {}
        columns[r][i + 1] = results[r]
      end
    end
    for r = 1, #columns do columns[r] = ops.stack(columns[r], 0) end
    return table.unpack(columns)
  end
end

-- Compares build(vmap)(...) with build(loop)(...), plainly and compiled. `batched`: whether all of it is one run.
local function agrees(name, build, batched, ...)
  local arguments = table.pack(...)
  local function check(label, f)
    t.test(name .. label, function()
      local want = table.pack(build(loop)(table.unpack(arguments)))
      notes = {}
      local rounds = label == "" and 1 or 3
      for _ = 1, rounds do
        local got = table.pack(f(table.unpack(arguments)))
        t.equal(got.n, want.n)
        for k = 1, got.n do t.near(got[k], want[k], 1e-4) end
      end
      if batched then t.equal(notes, {}) end
      if batched == false then t.equal(#notes > 0, true) end
      if batched and label == ", compiled" then assert(not tostring(ms.jit_report(f)):find("left to Lua", 1, true), ms.jit_report(f)) end
    end)
  end
  check("", build(ms.vmap))
  check(", compiled", ms.jit(build(ms.vmap)))
end

local x, y = ops.randn { 5, 4, 3 }, ops.randn { 5, 4, 3 }
local w, v = ops.randn { 3, 2 }, ops.randn { 3 }
local sum = ops.sum

local bodies = {
  { "elements", function(a, m) return ops.tanh(a) * 2 + a ^ 2 - ops.exp(a * m["..., 0"]) end },
  { "products", function(a, m) return ops.matmul(a, m) + ops.matmul(a[1], m) end },
  { "products of samples", function(a, m) return ops.matmul(ops.matmul(a, a:t()), ops.matmul(a, m)) end },
  { "reductions", function(a, m) return ops.mean(a, 0) * sum(m) + ops.amax(a, 0) + ops.logsumexp(a, 0) end },
  { "shapes", function(a, m) return ops.concat({ ops.reshape(a, { 3, 4 }):t(), ops.stack({ a[0], a[1], a[2], a[3] }) * m[0][0] }, 1) end },
  { "parts", function(a, m) return a["1:3, ::2"] * m[0] + a["..., 0:2"]["1:3"] + a[{ 0, 1 }] end },
  { "norms", function(a, m) return ops.layer_norm(a, { 3 }, m["..., 0"], m["..., 1"]) + ops.softmax(a, 0) end },
  { "dense layers", function(a, m) return ops.relu(ops.dense(a, m:t(), m[0])) end },
  { "composites", function(a, m) return ops.dot(a[0], m["..., 0"]) + ops.mse_loss(a, a * 2) + ops.huber_loss(a, a ^ 2) end },
  { "numbers", function(a, m) return (a * 2.5 - 1) / 3 + sum(m) * 0.5 end },
  { "what all samples share", function(a, m) return sum(a), sum(ops.tanh(m)) end },
  { "losses", function(a, m) return ops.cross_entropy(ops.matmul(a, m), ops.arange(4) % 2) end },
}

for _, body in ipairs(bodies) do
  local name, f = body[1], body[2]
  agrees("values: " .. name, function(vm) return function(xs, m) return vm(function(a) return f(a, m) end)(xs) end end, true, x, w)
  agrees("gradients: " .. name, function(vm)
    return function(xs, m)
      local g = ms.grad(function(p, q)
        local total = 0.0
        for _, r in ipairs { vm(function(a) return f(a, q) end)(p) } do total = total + sum(r * r) end
        return total
      end, { 0, 1 })(xs, m)
      return g[1], g[2]
    end
  end, true, x, w)
  agrees("gradients of gradients of samples: " .. name, function(vm)
    return function(xs, m)
      local g = ms.grad(function(p, q)
        return sum(vm(ms.grad(function(a) return sum((f(a, q)) ^ 2) end))(p) ^ 2)
      end, { 0, 1 })(xs, m)
      return g[1], g[2]
    end
  end, true, x, w)
end

local function act(a, m) return sum(ops.tanh(ops.matmul(a, m)) ^ 3) end
agrees("second derivatives around", function(vm)
  return ms.grad(function(p)
    return sum(ms.grad(function(q) return sum(vm(function(a) return act(a, w) end)(q)) end)(p) ^ 2)
  end)
end, true, x)
agrees("two derivatives around and one within", function(vm)
  return ms.grad(function(m)
    return sum(ms.grad(function(q)
      return sum(vm(ms.grad(function(a) return act(a, q) end))(x) ^ 2)
    end)(m) ^ 2)
  end)
end, true, w)
agrees("two derivatives within and one around", function(vm)
  return ms.grad(function(m)
    return sum(vm(ms.grad(function(a) return sum(ms.grad(function(b) return act(b, m) end)(a) ^ 2) end))(x) ^ 2)
  end)
end, true, w)
agrees("gradients of each sample by what all share", function(vm)
  return function(m) return vm(function(a) return ms.grad(function(q) return act(a, q) end)(m) end)(x) end
end, true, w)
agrees("vmap within vmap, differentiated", function(vm)
  return ms.grad(function(p) return sum(vm(vm(function(a) return sum(ops.tanh(a * v)) * a end))(p) ^ 2) end)
end, true, x)
agrees("derivatives between vmaps", function(vm)
  return ms.grad(function(m)
    return sum(vm(function(a)
      return ms.grad(function(q) return sum(vm(function(row) return sum(ops.tanh(ops.matmul(row, q))) end)(a) ^ 2) end)(m)
    end)(x) ^ 2)
  end)
end, true, w)
agrees("an argument that all samples share", function(vm)
  return ms.grad(function(m) return sum(vm(function(a, b) return ops.matmul(a, b) end, { 0, false })(x, m) ^ 2) end)
end, true, w)
agrees("vjp", function(vm)
  return function(p)
    local value, pull = ms.vjp(function(q) return vm(function(a) return ops.tanh(a) * a[0] end)(q) end, p)
    return value, pull(y)
  end
end, true, x)
agrees("jvp", function(vm) return function(p) return ms.jvp(function(q) return vm(function(a) return act(a, w) end)(q) end, p, y) end end,
  true, x)
agrees("compiled functions within", function(vm)
  local inner = ms.jit(function(a) return act(a, w) end)
  return ms.grad(function(p) return sum(vm(inner)(p)) end)
end, true, x)
agrees("a network's parameters", function(vm)
  local net = nn.SequentialCell { nn.Dense(3, 4), nn.Tanh(), nn.Dense(4, 2) }
  for i, p in ipairs(net:trainable_params()) do p:set_data(ops.sin(ops.arange(p:numel()):float() + i):reshape(p.shape)) end
  local train = ms.grad(function(q) return sum(vm(function(a) return sum(net(a) ^ 2) end)(q)) end, nil, net:trainable_params())
  return function(p) return table.unpack(train(p)) end
end, true, x)
agrees("tables and variables", function(vm)
  return function(p, m)
    local g = ms.grad(function(q, n)
      local weights = { n, scale = n[0][0] }
      local s = sum(n)
      return sum(vm(function(a)
        local r = a
        for i = 1, 2 do r = r * (s + i) end
        local out = { ops.matmul(r, weights[1]) * weights.scale }
        return out[1]
      end)(q) ^ 2)
    end, { 0, 1 })(p, m)
    return g[1], g[2]
  end
end, true, x * 0.1, w)
agrees("operators without a rule", function(vm)
  return ms.grad(function(p) return sum(vm(function(a) return ops.cdist(a, a * 2, 2.0) end)(p)) end)
end, nil, x)

-- What is no batch.
agrees("decisions by elements", function(vm)
  return ms.grad(function(p)
    return sum(vm(function(a) if sum(a):item() > 0 then return a * a else return a * 3 end end)(p))
  end)
end, false, x)
agrees("derivatives of one's own", function(vm)
  local f = ms.custom_vjp(function(a) return a * a end, function(a, _, d) return d * a * 10 end)
  return ms.grad(function(p) return sum(vm(f)(p)) end)
end, false, x)
agrees("derivatives of one's own, within", function(vm)
  local f = ms.custom_vjp(function(a) return a * a end, function(a, _, d) return d * a * 10 end)
  return vm(ms.grad(function(a) return sum(f(a)) end))
end, true, x)
agrees("checkpoints", function(vm)
  local f = ms.checkpoint(function(a) return ops.tanh(a) * a end)
  return ms.grad(function(p) return sum(vm(f)(p)) end)
end, nil, x)
agrees("what all share added to what one has", function(vm)
  return ms.grad(function(m)
    return sum(vm(function(a) return ms.grad(function(q) return act(a, q) + sum(q ^ 3) end)(m) end)(x) ^ 2)
  end)
end, nil, w)
agrees("a number that is differentiated", function(vm)
  return ms.grad(function(s) return sum(vm(function(a) return ops.tanh(a * s) + s end)(x)) end)
end, nil, 0.7)
agrees("a number that changes", function(vm)
  local s = 1.0
  return function(p)
    s = s + 1.0
    return vm(function(a) return a * s end)(p) / s
  end
end, true, x)

t.test("effects happen for each sample, in derivatives too", function()
  for _, wrap in ipairs { function(f) return f end, ms.jit } do
    local calls = {}
    local f = wrap(ms.grad(function(p)
      return sum(ms.vmap(function(a)
        calls[#calls + 1] = a.shape[1]
        return a * a
      end)(p))
    end))
    t.near(f(x), x * 2)
    t.equal(#calls, 5)
  end
end)
t.test("errors name the sample's types and the line, in derivatives and compiled", function()
  local function f(p) return sum(ms.vmap(function(a) return ops.matmul(a, ops.ones { 7, 2 }) end)(p)) end
  for _, g in ipairs { ms.grad(f), ms.jit(f), ms.jit(ms.grad(f)) } do
    for _ = 1, 3 do t.fails({ "vmap_nesting_test.lua:" .. debug.getinfo(f, "S").linedefined, "(4, 3)", "(7, 2)" }, g, x) end
  end
  t.fails({ "mine" }, ms.grad(function(p) return sum(ms.vmap(function() error "mine" end)(p)) end), x)
end)
t.test("random numbers are those of a loop, in derivatives and compiled", function()
  for _, f in ipairs {
    function(a) return a * ops.randn { 3 } end,
    function(a) return a * ops.randn { 3 } * ops.rand { 3 } end,
    function(a) return ops.dropout(a, 0.5, true) end,
  } do
    for _, make in ipairs {
      function(vm) return ms.grad(function(p) return sum(vm(f)(p)) end) end,
      function(vm) return ms.jit(vm(f)) end,
      function(vm) return ms.jit(ms.grad(function(p) return sum(vm(f)(p)) end)) end,
    } do
      local got, want = make(ms.vmap), make(loop)
      for seed = 1, 3 do
        ms.set_seed(seed)
        local a, after = got(x), ops.randn { 2 }
        ms.set_seed(seed)
        t.near(a, want(x))
        t.near(after, ops.randn { 2 })
      end
    end
  end
end)
t.test("axes, tables and samples of another number", function()
  local function f(p) return { s = p.a * p.b, { p.a + 1 } } end
  local g = ms.jit(function(p)
    return ms.grad(function(q)
      local r = ms.vmap(f, { 1 }, 1)(q)
      return sum(r.s ^ 2) + sum(r[1][1] ^ 3)
    end)(p)
  end)
  for n = 2, 6 do
    local a, b = ops.randn { 3, n }, ops.randn { 3, n }
    local got = g { a = a, b = b }
    t.near(got.a, 2 * a * b * b + 3 * (a + 1) ^ 2, 1e-4)
    t.near(got.b, 2 * a * a * b, 1e-4)
  end
end)
t.test("graph mode compiles them", function()
  ms.set_context { mode = ms.GRAPH_MODE }
  local per_sample = ms.vmap(ms.grad(function(a) return act(a, w) end))
  local want = loop(ms.grad(function(a) return act(a, w) end))(x)
  local jacobian, hessian = ms.jacrev(function(a) return ops.tanh(ops.matmul(a, w)) end), ms.hessian(function(a) return act(a, w) end)
  local j, h = jacobian(x[0]), hessian(x[0])
  for _ = 1, 4 do
    t.near(per_sample(x), want)
    t.near(jacobian(x[0]), j)
    t.near(hessian(x[0]), h, 1e-4)
  end
  ms.set_context { mode = ms.PYNATIVE_MODE }
end)

-- Jacobians: rows and columns one by one are the reference.
local function rows(f, a)
  local value, pull = ms.vjp(f, a)
  local list = {}
  for i = 0, value:numel() - 1 do
    local unit = ops.reshape(ops.cast(ops.equal(ops.arange(value:numel()), i), ms.float32), value.shape)
    list[i + 1] = ops.reshape((pull(unit)), { -1 })
  end
  return ops.stack(list)
end
local maps = {
  { "a layer", function(a) return ops.tanh(ops.matmul(a, w)) end },
  { "a scalar", function(a) return sum(ops.sin(a)) end },
  { "convolution", function(a) return ops.conv2d(ops.reshape(a, { 1, 1, 4, 3 }), ops.reshape(y[0]["0:2, 0:2"], { 1, 1, 2, 2 })) end },
  { "attention", function(a) return ops.matmul(ops.softmax(ops.matmul(a, a:t()), -1), a) end },
  { "a loop", function(a)
    local h = a[0]
    for i = 1, 3 do h = ops.tanh(h * v + a[i]) end
    return h
  end },
  { "nothing of it", function(a) return ops.ones { 2 } * a.shape[1] end },
}
for _, map in ipairs(maps) do
  t.test("Jacobians: " .. map[1], function()
    local f, a = map[2], x[0]
    local want = rows(f, a)
    for _, jacobian in ipairs { ms.jacrev(f), ms.jacfwd(f), ms.jit(ms.jacrev(f)), ms.jit(ms.jacfwd(f)) } do
      for _ = 1, 2 do
        local got = jacobian(a)
        t.equal(#got.shape, #f(a).shape + 2)
        t.near(ops.reshape(got, want.shape), want, 1e-4)
      end
    end
  end)
end
t.test("Jacobians of many arguments, of tables, and in parts", function()
  local function f(a, p) return ops.matmul(a, p.m) + p.b end
  local j = ms.jacrev(f, { 0, 1 })(x[0], { m = w, b = v["0:2"] })
  t.equal(j[1].shape, ops.zeros({ 4, 2, 4, 3 }).shape)
  t.equal(j[2].m.shape, ops.zeros({ 4, 2, 3, 2 }).shape)
  t.near(sum(j[2].b, { 0, 1 }), ops.ones { 2 } * 4)
  local big = ops.randn { 3000 }
  local d = ops.diagonal(ms.jacrev(function(a) return a * a end)(big))
  t.near(d["0:50"], (big * 2)["0:50"])
  t.near(d["2950:"], (big * 2)["2950:"])
end)
t.test("derivatives of Jacobians", function()
  local function f(a) return ops.tanh(ops.matmul(a, w)) end
  local function by(jacobian) return ms.grad(function(a) return sum(jacobian(f)(a) ^ 2) end)(x[0][0]) end
  local one_by_one = by(function(g) return function(a) return rows(g, a) end end)
  t.near(by(ms.jacrev), one_by_one, 1e-4)
  t.near(by(ms.jacfwd), one_by_one, 1e-4)
  local function scalar(a) return sum(f(a) ^ 2) end
  t.near(ms.hessian(scalar)(x[0][0]), ms.jacfwd(ms.grad(scalar))(x[0][0]), 1e-4)
end)

t.finish()
