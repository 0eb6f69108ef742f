-- Optimizers against their formulas, computed here with plain numbers.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local nn = ms.nn

local start, slopes = { 1.0, -2.0, 0.5 }, { { 0.1, 0.2, -0.3 }, { 0.5, -0.1, 0.2 }, { -0.4, 0.3, 0.1 } }

-- Three steps of the optimizer, and of `rule(p, g, state, step)` for each element.
local function compare(make, rule, name)
  local p = ms.Parameter(start, { name = name or "w" })
  local optimizer = make { p }
  local expected, states = { table.unpack(start) }, { {}, {}, {} }
  for step, grads in ipairs(slopes) do
    optimizer({ ms.tensor(grads) })
    for i, g in ipairs(grads) do expected[i] = rule(expected[i], g, states[i], step) end
    t.near(p, expected, 1e-5)
  end
  return optimizer, p
end

t.test("gradient descent, plain", function()
  compare(function(p) return nn.SGD(p, 0.1) end, function(p, g) return p - 0.1 * g end)
end)

local function sgd(lr, momentum, dampening, decay, nesterov)
  return function(p, g, s, step)
    g = g + decay * p
    s.v = momentum * (s.v or 0) + (1 - (step == 1 and 0 or dampening)) * g
    return p - lr * (nesterov and g + momentum * s.v or s.v)
  end
end

t.test("gradient descent with momentum, dampening, decay, nesterov", function()
  compare(function(p) return nn.SGD(p, 0.1, 0.9) end, sgd(0.1, 0.9, 0, 0))
  compare(function(p) return nn.SGD(p, 0.1, 0.9, 0.5, 0.01) end, sgd(0.1, 0.9, 0.5, 0.01))
  compare(function(p) return nn.SGD(p, 0.1, { momentum = 0.9, nesterov = true }) end, sgd(0.1, 0.9, 0, 0, true))
  compare(function(p) return nn.Momentum(p, 0.1, 0.8, { weight_decay = 0.02, use_nesterov = true }) end, sgd(0.1, 0.8, 0, 0.02, true))
  compare(function(p) return ms.mint.optim.SGD(p, 0.1, { momentum = 0.9, dampening = 0.3 }) end, sgd(0.1, 0.9, 0.3, 0))
  compare(function(p) return ms.mint.optim.SGD(p, 0.1, { maximize = true }) end, function(p, g) return p + 0.1 * g end)
end)

local function adam(options)
  local lr, b1, b2, eps = options.lr, options.b1 or 0.9, options.b2 or 0.999, options.eps or 1e-8
  return function(p, g, s, step)
    g = g + (options.l2 or 0) * p
    s.m = b1 * (s.m or 0) + (1 - b1) * g
    s.v = b2 * (s.v or 0) + (1 - b2) * g * g
    s.most = math.max(s.most or 0, s.v)
    local v = options.amsgrad and s.most or s.v
    local c1, c2 = 1 - b1 ^ step, 1 - b2 ^ step
    if options.rule == "mindspore" then
      local m = options.nesterov and b1 * s.m + (1 - b1) * g or s.m
      return p - lr * math.sqrt(c2) / c1 * m / (math.sqrt(v) + eps)
    elseif options.rule == "bert" then
      return p - lr * (s.m / (math.sqrt(v) + eps) + (options.decay or 0) * p)
    end
    p = p * (1 - lr * (options.decay or 0))
    return p - lr * (s.m / c1) / (math.sqrt(v / c2) + eps)
  end
end

t.test("Adam with MindSpore's rule", function()
  compare(function(p) return nn.Adam(p, 0.01) end, adam { lr = 0.01, rule = "mindspore" })
  compare(function(p) return nn.Adam(p, 0.01, 0.8, 0.9, 0.1, { weight_decay = 0.1 }) end,
    adam { lr = 0.01, b1 = 0.8, b2 = 0.9, eps = 0.1, l2 = 0.1, rule = "mindspore" })
  compare(function(p) return nn.Adam(p, 0.01, { use_nesterov = true, use_amsgrad = true, beta2 = 0.5 }) end,
    adam { lr = 0.01, b2 = 0.5, nesterov = true, amsgrad = true, rule = "mindspore" })
  compare(function(p) return nn.AdamWeightDecay(p, 0.01, { weight_decay = 0.2 }) end,
    adam { lr = 0.01, eps = 1e-6, decay = 0.2, rule = "bert" })
end)

t.test("Adam with PyTorch's rule", function()
  compare(function(p) return ms.mint.optim.Adam(p, { lr = 0.01, eps = 0.1 }) end, adam { lr = 0.01, eps = 0.1 })
  compare(function(p) return nn.optim.Adam(p, 0.01, { 0.8, 0.5 }, { weight_decay = 0.1, amsgrad = true }) end,
    adam { lr = 0.01, b1 = 0.8, b2 = 0.5, l2 = 0.1, amsgrad = true })
  compare(function(p) return nn.AdamW(p, 0.01, { weight_decay = 0.3 }) end, adam { lr = 0.01, decay = 0.3 })
end)

t.test("weights of normalisations do not decay, unless a group says so", function()
  compare(function(p) return nn.SGD(p, 0.1, { weight_decay = 0.5 }) end, sgd(0.1, 0, 0, 0), "norm.gamma")
  compare(function(p) return nn.Adam(p, 0.01, { weight_decay = 0.5 }) end, adam { lr = 0.01, rule = "mindspore" }, "norm.beta")
  compare(function(p) return nn.SGD({ { params = p, weight_decay = 0.5 } }, 0.1) end, sgd(0.1, 0, 0, 0.5), "norm.gamma")
end)

t.test("RMSProp, Adagrad, Adadelta and AdaMax follow their formulas", function()
  compare(function(p) return nn.RMSProp(p, 0.01, 0.8, 0.5, 1e-3, { centered = true, weight_decay = 0.1 }) end, function(p, g, s)
    g = g + 0.1 * p
    s.square = 0.8 * (s.square or 1) + 0.2 * g * g
    s.mean = 0.8 * (s.mean or 0) + 0.2 * g
    s.moment = 0.5 * (s.moment or 0) + 0.01 * g / math.sqrt(s.square - s.mean ^ 2 + 1e-3)
    return p - s.moment
  end)
  compare(function(p) return nn.Adagrad(p, 0.2, 0.1) end, function(p, g, s)
    s.sum = (s.sum or 0.2) + g * g
    return p - 0.1 * g / math.sqrt(s.sum)
  end)
  compare(function(p) return nn.Adadelta(p, 0.5, 0.8, 1e-3) end, function(p, g, s)
    s.sum = 0.8 * (s.sum or 0) + 0.2 * g * g
    local d = g * math.sqrt((s.updates or 0) + 1e-3) / math.sqrt(s.sum + 1e-3)
    s.updates = 0.8 * (s.updates or 0) + 0.2 * d * d
    return p - 0.5 * d
  end)
  compare(function(p) return nn.AdaMax(p, 0.1) end, function(p, g, s, step)
    s.m = 0.9 * (s.m or 0) + 0.1 * g
    s.u = math.max(0.999 * (s.u or 0), math.abs(g))
    return p - 0.1 / (1 - 0.9 ^ step) * s.m / (s.u + 1e-8)
  end)
  t.fails({ "RMSProp", "gradient 1 has shape (2,)", "parameter w has (1,)" },
    nn.RMSProp { params = { ms.Parameter({ 1.0 }, "w") } }, { ms.tensor { 1.0, 2.0 } })
end)

t.test("a learning rate is a number, a list, a function or a field", function()
  local function run(rate)
    local p = ms.Parameter({ 0.0 }, "p")
    local optimizer = nn.SGD({ p }, rate)
    for _ = 1, 3 do optimizer({ ms.tensor { 1.0 } }) end
    return p:item()
  end
  t.near(run(0.1), -0.3)
  t.near(run({ 0.1, 0.2 }), -0.5)
  t.near(run(ms.tensor { 0.1, 0.2, 0.3 }), -0.6)
  t.near(run(function(step) return 0.1 * step end), -0.3)
  local p = ms.Parameter({ 0.0 }, "p")
  local optimizer = nn.SGD({ p }, 0.5)
  t.equal(optimizer:get_lr(), 0.5)
  optimizer.learning_rate = 0.25
  optimizer({ ms.tensor { 1.0 } })
  t.near(p:item(), -0.25)
  optimizer:set_lr(1.0)
  optimizer({ ms.tensor { 1.0 } })
  t.near(p:item(), -1.25)
  t.equal(optimizer.global_step, 2)
end)

t.test("groups have their own rate and decay", function()
  local a, b, c = ms.Parameter({ 1.0 }, "a"), ms.Parameter({ 1.0 }, "b"), ms.Parameter({ 1.0 }, "c")
  local optimizer = nn.SGD({ { params = { a }, lr = 1.0 }, { params = { b, c }, weight_decay = 0.5 } }, 0.1)
  t.equal(optimizer:get_lr(), { 1.0, 0.1 })
  optimizer({ ms.tensor { 1.0 }, ms.tensor { 2.0 }, ms.tensor { 3.0 } })
  t.near({ a:item(), b:item(), c:item() }, { 0.0, 1 - 0.1 * 2.5, 1 - 0.1 * 3.5 })
end)

t.test("large parameters and many small ones give the same as one by one", function()
  ms.set_seed(1)
  local shapes = { { 300, 700 }, { 3 }, { 1000 }, {}, { 0 }, { 129, 1025 } }
  local together, alone, grads = {}, {}, {}
  for i, shape in ipairs(shapes) do
    local x = ms.ops.randn(shape)
    together[i], alone[i] = ms.Parameter(x, "t" .. i), ms.Parameter(x, "a" .. i)
    grads[i] = ms.ops.randn(shape)
  end
  local all, single = nn.Adam(together, 0.01), {}
  for i, p in ipairs(alone) do single[i] = nn.Adam({ p }, 0.01) end
  for _ = 1, 3 do
    all(grads)
    for i, optimizer in ipairs(single) do optimizer({ grads[i] }) end
  end
  for i = 1, #shapes do
    assert(ms.ops.equal(together[i], alone[i]):all():item())
    if #shapes[i] == 2 then
      -- Some elements by the formula.
      local want = adam { lr = 0.01, rule = "mindspore" }
      local last, g = 0.0, grads[i][{ -1, -1 }]:item()
      local state = {}
      for step = 1, 3 do last = want(last, g, state, step) end
      assert(math.abs(last) > 0)
    end
  end
end)

t.test("a step writes in place and leaves views and other dtypes as they should be", function()
  local p = ms.Parameter({ 1.0, 2.0 }, "p")
  local kept, same = p:value(), p
  nn.SGD({ p }, 1.0)({ ms.tensor { 1.0, 1.0 } })
  t.equal(kept:tolist(), { 1.0, 2.0 })
  t.equal(same:tolist(), { 0.0, 1.0 })
  local half = ms.Parameter(ms.tensor({ 1.0, 2.0 }, ms.float16), "half")
  local optimizer = nn.Adam({ half }, 0.5)
  optimizer({ ms.tensor({ 1.0, -1.0 }, ms.float16) })
  t.equal(half.dtype, ms.float16)
  t.near(half, { 0.5, 2.5 }, 1e-2)
  t.equal(optimizer:get_parameters()[1].dtype, ms.float32)
  local w = ms.Parameter({ { 1.0, 2.0 }, { 3.0, 4.0 } }, "w")
  nn.SGD({ w }, 1.0)({ ms.tensor { { 1.0, 2.0 }, { 3.0, 4.0 } }.T })
  t.equal(w:tolist(), { { 0.0, -1.0 }, { 1.0, 0.0 } })
end)

t.test("the state can be saved and taken up", function()
  local function make()
    local p = ms.Parameter(start, "w")
    return p, nn.Adam({ p }, 0.1)
  end
  local p, first = make()
  first({ ms.tensor(slopes[1]) })
  local state, value = first:state_dict(), p:copy()
  first({ ms.tensor(slopes[2]) })
  local q, second = make()
  q:assign(value)
  second:load_state_dict(state)
  second({ ms.tensor(slopes[2]) })
  t.equal(q:tolist(), p:tolist())
  t.fails({ "moment1.w" }, second.load_state_dict, second, { global_step = 1 })
end)

t.test("gradients may come one by one, as clipping gives them, in both modes", function()
  for _, mode in ipairs { ms.PYNATIVE_MODE, ms.GRAPH_MODE } do
    ms.set_context { mode = mode }
    local first, second = nn.Dense(2, 2), nn.Dense(2, 2)
    ms.load_param_into_net(second, first:parameters_dict())
    local a, b = nn.SGD(first:trainable_params(), 0.1), nn.SGD(second:trainable_params(), 0.1)
    for _ = 1, 4 do
      local grads = { ms.ops.ones { 2, 2 } * 3, ms.ops.ones { 2 } }
      a { ms.ops.clip_by_global_norm(grads, 1.0) }
      b(ms.ops.clip_by_global_norm(grads, 1.0))
    end
    t.equal(second.weight:tolist(), first.weight:tolist())
    t.equal(second.bias:tolist(), first.bias:tolist())
    t.fails({ "got 3 gradients for 2 parameters" }, b, ms.ops.ones { 2, 2 }, ms.ops.ones { 2 }, ms.ops.ones { 2 })
  end
  ms.set_context { mode = ms.PYNATIVE_MODE }
end)

t.test("wrong gradients and arguments are named", function()
  local net = nn.Dense(2, 2)
  local optimizer = nn.SGD(net:trainable_params(), 0.1)
  local one = ms.ops.ones
  t.fails({ "optim_test.lua", "SGD", "gradient 1 has shape (9, 9)", "parameter weight has (2, 2)" },
    function() optimizer({ one({ 9, 9 }), one({ 2 }) }) end)
  t.fails({ "gradient 2 has shape (3)", "parameter bias has (2)" }, optimizer, { one({ 2, 2 }), one({ 3 }) })
  t.fails({ "got 1 gradients for 2 parameters" }, optimizer, { one({ 2, 2 }) })
  t.fails({ "table of gradients" }, optimizer, 1)
  t.fails({ "params is empty" }, nn.Adam, {}, 0.001)
  t.fails({ "learning_rate must not be negative", "-1" }, nn.Adam, net:trainable_params(), -1)
  t.fails({ "beta1", "[0, 1)" }, nn.Adam, net:trainable_params(), 0.001, { beta1 = 1.0 })
  t.fails({ "momentum must not be negative" }, nn.SGD, net:trainable_params(), 0.1, { momentum = -1 })
  t.fails({ "weight is among params twice" }, nn.SGD, { net.weight, net.weight }, 0.1)
  t.fails({ "must be a table of parameters", "a tensor of shape (2,)" }, nn.SGD, { one({ 2 }) }, 0.1)
  t.fails({ "group 1 has no option 'rate'" }, nn.SGD, { { params = { net.weight }, rate = 1 } }, 0.1)
end)

local function double(values) return ms.tensor(values, ms.float64) end
local modes = { plain = function(f) return f end, compiled = ms.jit }

-- The gradient by differences of a function of a vector.
local function differences(f, at)
  local result, h = {}, 1e-5
  for i = 1, at.size do
    local moved = at:tolist()
    moved[i] = moved[i] + h
    local above = f(double(moved)):item()
    moved[i] = moved[i] - 2 * h
    result[i] = (above - f(double(moved)):item()) / (2 * h)
  end
  return double(result)
end

local followed = {
  SGD = function(p) return nn.SGD({ p }, 0.1) end,
  ["SGD with momentum and decay"] = function(p)
    return nn.SGD({ p }, 0.1, { momentum = 0.9, dampening = 0.5, weight_decay = 0.1, loss_scale = 2.0 })
  end,
  ["SGD with Nesterov's momentum"] = function(p) return nn.SGD({ p }, 0.1, { momentum = 0.9, nesterov = true }) end,
  Momentum = function(p) return nn.Momentum({ p }, 0.1, 0.9) end,
  Adam = function(p) return nn.Adam({ p }, 0.1) end,
  ["Adam with Nesterov's momentum"] = function(p) return nn.Adam({ p }, 0.1, { use_nesterov = true }) end,
  ["Adam with maxima"] = function(p) return nn.Adam({ p }, 0.1, { use_amsgrad = true, weight_decay = 0.2 }) end,
  AdamWeightDecay = function(p) return nn.AdamWeightDecay({ p }, 0.1, { weight_decay = 0.2 }) end,
  ["PyTorch's AdamW"] = function(p) return nn.optim.AdamW({ p }, 0.1, { weight_decay = 0.2, amsgrad = true }) end,
  RMSProp = function(p) return nn.RMSProp({ p }, 0.1, { momentum = 0.5, centered = true }) end,
  Adagrad = function(p) return nn.Adagrad { params = { p }, learning_rate = 0.1 } end,
  Adadelta = function(p) return nn.Adadelta({ p }, 0.1) end,
  AdaMax = function(p) return nn.AdaMax({ p }, 0.1) end,
}
for name, make in pairs(followed) do
  for mode, compiled in pairs(modes) do
    t.test("gradients flow through steps: " .. name .. ", " .. mode, function()
      local x, origin = double { 1.0, 2.0 }, double { 1.0, -1.5 }
      local p = ms.Parameter(origin, { name = "p" })
      local optimizer = make(p)
      local fresh = optimizer:state_dict()
      local function f(v)
        local total = 0.0
        for _ = 1, 3 do
          local g = ms.grad(function() return ms.ops.sum(p * p * v) end, nil, { p })()
          total = total + ms.ops.sum(p * p * v)
          optimizer(g)
        end
        return total + ms.ops.sum(p * p * p * v)
      end
      local function at(value, v)
        p:assign(value)
        optimizer:load_state_dict(fresh)
        return f(v)
      end
      local by_x = differences(function(v) return at(origin, v) end, x)
      local by_p = differences(function(v) return at(v, x) end, origin)
      local value = at(origin, x)
      local after = p:copy()
      p:assign(origin)
      optimizer:load_state_dict(fresh)
      local y, dx, dp = compiled(ms.value_and_grad(f, 0, { p }))(x)
      t.near(y, value, 1e-12)
      t.near(p:value(), after, 1e-12)
      t.near(dx, by_x, 1e-7)
      t.near(dp[1], by_p, 1e-7)
    end)
  end
end

for mode, compiled in pairs(modes) do
  t.test("what else is followed through steps, " .. mode, function()
    local ones = double { 1.0, 1.0 }
    local function parameter() return ms.Parameter(double { 1.0, 2.0 }, { name = "p" }) end
    -- Given gradients: p' = 0.95 p - 0.1.
    local p = parameter()
    local optimizer = nn.SGD({ p }, 0.1, { weight_decay = 0.5 })
    local d = compiled(ms.grad(function()
      optimizer { ones }
      return ms.ops.sum(p * p)
    end, nil, { p }))()
    t.near(d[1], double { 2 * 0.95 * 0.85, 2 * 0.95 * 1.8 }, 1e-12)
    -- Through the momentum of the step before: p'' = p - 0.1 v^2 - 0.1 (0.9 v^2 + 1).
    p = parameter()
    optimizer = nn.SGD({ p }, 0.1, { momentum = 0.9 })
    t.near(compiled(ms.grad(function(v)
      optimizer { v * v }
      optimizer { ones }
      return ms.ops.sum(p)
    end))(double { 1.0, 2.0 }), double { -0.38, -0.76 }, 1e-12)
    -- What the gradient needs of before the step is kept where the step is followed.
    for _, constant in ipairs { false, true } do
      p = parameter()
      optimizer = nn.SGD({ p }, 0.5)
      local function f(v)
        local before = ms.ops.sum(p * v)
        optimizer { constant and ones or v }
        return before + ms.ops.sum(p * v)
      end
      if constant then
        t.fails({ "optim_test.lua:", "was changed in place after it was used" }, compiled(ms.grad(f)), ones)
      else
        t.near(compiled(ms.grad(f))(ones), double { 1.0, 3.0 }, 1e-12)
      end
    end
    -- By the learning rate, and a second time: sum((p - rate)^2) at p = (1, 2).
    local function by_rate(rate)
      p = parameter()
      nn.SGD({ p }, rate) { ones }
      return ms.ops.sum(p * p)
    end
    t.near(compiled(ms.grad(by_rate))(0.1), -2 * (0.9 + 1.9), 1e-12)
    t.near(compiled(ms.grad(ms.grad(by_rate)))(0.1), 4.0, 1e-12)
    -- Where gradient and moments are 0 there is no NaN.
    p = parameter()
    optimizer = nn.Adam({ p }, 0.1)
    t.near(compiled(ms.grad(function(v)
      optimizer { v * 0.0 }
      return ms.ops.sum(p * v)
    end))(ones), double { 1.0, 2.0 }, 1e-6)
    -- No gradient is asked for.
    p = parameter()
    optimizer = nn.SGD({ p }, 0.1)
    t.near(compiled(ms.grad(function(v)
      optimizer { ms.stop_gradient(v * v) }
      return ms.ops.sum(p * v)
    end))(ones), double { 0.9, 1.9 }, 1e-12)
  end)
end

t.test("gradients flow through a step of Lamb", function()
  local ones = double { 1.0, 2.0 }
  local function moved(v, decay)
    local p = ms.Parameter(double { 0.5, -2.0 }, "p")
    local m, s = ms.Parameter(double { 0.1, 0.3 }, "m"), ms.Parameter(double { 0.2, 0.4 }, "s")
    ms.ops.apply_lamb({ p }, { v * v }, { m }, { s }, 0.1, 0.8, 0.9, 1e-3, 0.5, 0.25, decay)
    return ms.ops.sum(p * p) + ms.ops.sum(m * s)
  end
  for _, decay in ipairs { 0.0, 0.3 } do
    local function f(v) return moved(v, decay) end
    local slope = ms.grad(f)(ones)
    for i = 0, 1 do
      local step = double { i == 0 and 1e-6 or 0.0, i == 1 and 1e-6 or 0.0 }
      t.near(slope[i], (f(ones + step):item() - f(ones - step):item()) / 2e-6, 1e-7)
    end
  end
end)

t.test("steps of which something is missing are refused, differentiated too", function()
  local p, ones = double { 1.0, 2.0 }, double { 1.0, 1.0 }
  local by_momentum, by_adam = ms.ops.apply_momentum, ms.ops.apply_adam
  local function both(words, f)
    t.fails({ "optim_test.lua:", table.unpack(words) }, function() f(ones) end)
    t.fails({ "optim_test.lua:", table.unpack(words) }, ms.grad(function(v)
      f(v)
      return ms.ops.sum(p * v)
    end), ones)
  end
  both({ "apply_momentum: grads must be a table of tensors, got nil" }, function(v) by_momentum({ p }, nil, { v }, 0.1) end)
  both({ "apply_adam: moments must be a table of tensors, got nil" }, function(v) by_adam({ p }, { v }, nil, nil, nil, 0.1) end)
  both({ "apply_adam: squares must be a table of tensors, got nil" }, function(v) by_adam({ p }, { v }, { v }, nil, nil, 0.1) end)
  both({ "apply_lamb: squares must be a table of tensors, got nil" }, function(v) ms.ops.apply_lamb({ p }, { v }, { v }, nil, 0.1) end)
  both({ "accumulators are missing" }, function(v) by_momentum({ p }, { v }, nil, 0.1, 0.5) end)
  both({ "gradient 1 has shape ()" }, function(v) by_momentum({ p }, { v[0] }, nil, 0.1) end)
  both({ "lr must be a number, got the string 'a'" }, function(v) by_momentum({ p }, { v }, nil, "a") end)
  t.near(p, { 1.0, 2.0 })
end)

t.test("an optimizer of a cell's parameters prints", function()
  t.equal(tostring(nn.Adam(nn.Dense(2, 2):trainable_params(), 0.5)), "Adam<learning_rate=0.5, parameters=2>")
end)

t.finish()
