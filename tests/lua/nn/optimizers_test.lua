-- Optimizers over 20 steps: those with PyTorch's rules against PyTorch's (tests/data/layers/expected.py says how the values
-- were made), the others against their formulas, step by step with plain numbers.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local nn, ops = ms.nn, ms.ops

local expected = ms.load_safetensors("tests/data/layers/expected.safetensors")
local used, compared = {}, {}

local function values(shape, k)
  local count = 1
  for _, size in ipairs(shape) do count = count * size end
  return ops.reshape(ops.sin(ops.arange(0, count, 1, { dtype = ms.float64 }) * 0.7 + (1.3 * k + 0.2)) * 0.5, shape)
end

local function start()
  return { ms.Parameter(values({ 3, 4 }, 0), "w"), ms.Parameter(values({ 5 }, 1), "v") }
end
local function gradients(step)
  return { values({ 3, 4 }, 100 + step), values({ 5 }, 200 + step) }
end

local function follows(name, make, arguments)
  compared[make] = true
  t.test(name, function()
    local params = start()
    local optimizer = make(params, arguments)
    for step = 0, 19 do
      optimizer(gradients(step))
      if step == 2 or step == 19 then
        for k, p in ipairs(params) do
          local key = ("%s.step%d.%d"):format(name, step + 1, k - 1)
          used[key] = true
          t.near(p, expected[key], 1e-11)
        end
      end
    end
    if expected[name .. ".ax"] then
      used[name .. ".ax"] = true
      t.near(optimizer["ax.w"], expected[name .. ".ax"], 1e-11)
    end
    -- The state is taken up in another run.
    local others = start()
    local second = make(others, arguments)
    local first = start()
    local whole = make(first, arguments)
    for step = 0, 3 do whole(gradients(step)) end
    local state = whole:state_dict()
    for k, p in ipairs(others) do p:assign(first[k]) end
    second:load_state_dict(state)
    for step = 4, 7 do whole(gradients(step)) second(gradients(step)) end
    -- Compiled steps may round otherwise than the first ones.
    for k, p in ipairs(others) do t.near(p, first[k], 1e-13) end
  end)
end

local experimental, mint = ms.experimental.optim, ms.mint.optim
local asgd = { lambd = 0.01, alpha = 0.6, t0 = 4, weight_decay = 0.1 }
follows("asgd", nn.ASGD, { learning_rate = 0.1, lambd = 0.01, alpha = 0.6, t0 = 4, weight_decay = 0.1 })
asgd.lr = 0.1
follows("asgd", experimental.ASGD, asgd)
follows("asgd_plain", nn.ASGD, { learning_rate = 0.05 })
follows("rprop", nn.Rprop, { learning_rate = 0.02 })
follows("rprop", experimental.Rprop, { lr = 0.02 })
follows("rprop_bounds", nn.Rprop, { learning_rate = 0.02, etas = { 0.4, 1.5 }, step_sizes = { 0.01, 0.03 } })
follows("nadam", experimental.NAdam, { lr = 0.01 })
follows("nadam_decay", experimental.NAdam, { lr = 0.02, betas = { 0.8, 0.95 }, eps = 1e-3, weight_decay = 0.1, momentum_decay = 0.1 })
follows("radam", experimental.RAdam, { lr = 0.01 })
follows("radam_decay", experimental.RAdam, { lr = 0.02, betas = { 0.8, 0.9 }, eps = 1e-3, weight_decay = 0.1 })
follows("rmsprop", experimental.RMSprop, { lr = 0.01 })
follows("rmsprop_all", experimental.RMSprop,
  { lr = 0.02, alpha = 0.9, eps = 1e-4, weight_decay = 0.1, momentum = 0.8, centered = true })
follows("rmsprop_up", experimental.RMSprop, { lr = 0.01, maximize = true })
follows("adagrad", experimental.Adagrad, { lr = 0.05 })
follows("adagrad_all", experimental.Adagrad,
  { lr = 0.05, lr_decay = 0.1, weight_decay = 0.1, initial_accumulator_value = 0.2, eps = 1e-3 })
follows("adadelta", experimental.Adadelta, { lr = 0.5, rho = 0.8, eps = 1e-4, weight_decay = 0.1 })
follows("adadelta", nn.Adadelta, { learning_rate = 0.5, rho = 0.8, epsilon = 1e-4, weight_decay = 0.1 })
follows("adamax", experimental.Adamax, { lr = 0.02, betas = { 0.8, 0.9 }, eps = 1e-3, weight_decay = 0.1 })
local adam = { lr = 0.02, betas = { 0.8, 0.9 }, eps = 1e-3, weight_decay = 0.1, amsgrad = true }
follows("adam", experimental.Adam, adam)
follows("adam_up", mint.Adam, { lr = 0.02, maximize = true })
follows("adamw", experimental.AdamW, adam)
follows("adamw", mint.FusedAdamW, adam)
follows("adamw_plain", mint.FusedAdamW, { lr = 0.02 })
follows("sgd", experimental.SGD, { lr = 0.02, momentum = 0.9, dampening = 0.2, weight_decay = 0.1 })
follows("sgd_nesterov", mint.SGD, { lr = 0.02, momentum = 0.9, nesterov = true, maximize = true })

t.test("every expected step has been compared", function()
  local missing = {}
  for key in pairs(expected) do
    if (key:find "%.step%d" or key:find "%.ax$") and not used[key] then missing[#missing + 1] = key end
  end
  t.equal(missing, {})
end)

-- 20 steps of the optimizer, and of rule(p, g, state, step) for lists of numbers that are the parameter's elements in order.
local function obeys(name, make, arguments, rule)
  compared[make] = true
  t.test(name, function()
    local params = start()
    local optimizer = make(params, arguments and next(arguments) and arguments or nil)
    local numbers, states = {}, {}
    for k, p in ipairs(params) do numbers[k], states[k] = p:reshape { -1 }:tolist(), {} end
    for step = 1, 20 do
      local grads = gradients(step - 1)
      optimizer(grads)
      for k, p in ipairs(params) do
        rule(numbers[k], grads[k]:reshape { -1 }:tolist(), states[k], step, p)
        t.near(p:reshape { -1 }, numbers[k], 1e-10)
      end
    end
  end)
end

-- A rule for each element by itself; s is a state for each.
local function each(rule)
  return function(p, g, states, step)
    for i = 1, #p do
      states[i] = states[i] or {}
      p[i] = rule(p[i], g[i], states[i], step)
    end
  end
end

local function sign(x) return x > 0 and 1 or x < 0 and -1 or 0 end

for _, c in ipairs {
  { "FTRL", { learning_rate = 0.1 } },
  { "FTRL with all arguments", { learning_rate = 0.1, initial_accum = 0.3, lr_power = -0.7, l1 = 0.05, l2 = 0.2, weight_decay = 0.1 } },
} do
  local a = c[2]
  obeys(c[1], nn.FTRL, a, each(function(p, g, s)
    local power, lr = -(a.lr_power or -0.5), a.learning_rate
    g = g + (a.weight_decay or 0) * p
    s.n, s.z = s.n or a.initial_accum or 0.1, s.z or 0
    local n = s.n + g * g
    s.z = s.z + g - (n ^ power - s.n ^ power) / lr * p
    s.n = n
    if math.abs(s.z) <= (a.l1 or 0) then return 0 end
    return (sign(s.z) * (a.l1 or 0) - s.z) / (n ^ power / lr + 2 * (a.l2 or 0))
  end))
end

for _, c in ipairs {
  { "ProximalAdagrad", { learning_rate = 0.1, l2 = 0.1 } },
  { "ProximalAdagrad with all arguments", { learning_rate = 0.1, accum = 0.3, l1 = 0.2, l2 = 0.2, weight_decay = 0.1 } },
} do
  local a = c[2]
  obeys(c[1], nn.ProximalAdagrad, a, each(function(p, g, s)
    g = g + (a.weight_decay or 0) * p
    s.n = (s.n or a.accum or 0.1) + g * g
    local r = a.learning_rate / math.sqrt(s.n)
    local v = p - r * g
    return sign(v) * math.max(math.abs(v) - r * (a.l1 or 0), 0) / (1 + r * a.l2)
  end))
end

obeys("LazyAdam", nn.LazyAdam, { learning_rate = 0.02, beta1 = 0.8, eps = 1e-3, weight_decay = 0.1, use_nesterov = true },
  each(function(p, g, s, step)
    g = g + 0.1 * p
    s.m, s.v = 0.8 * (s.m or 0) + 0.2 * g, 0.999 * (s.v or 0) + 0.001 * g * g
    local rate = 0.02 * math.sqrt(1 - 0.999 ^ step) / (1 - 0.8 ^ step)
    return p - rate * (0.8 * s.m + 0.2 * g) / (math.sqrt(s.v) + 1e-3)
  end))

local function norm(list)
  local sum = 0
  for _, x in ipairs(list) do sum = sum + x * x end
  return math.sqrt(sum)
end

for _, decay in ipairs { 0.0, 0.1 } do
  obeys("Lamb with weight decay " .. decay, nn.Lamb, { learning_rate = 0.02, beta1 = 0.8, beta2 = 0.9, eps = 1e-3, weight_decay = decay },
    function(p, g, s, step)
      local u = {}
      for i = 1, #p do
        s[i] = s[i] or { m = 0, v = 0 }
        s[i].m, s[i].v = 0.8 * s[i].m + 0.2 * g[i], 0.9 * s[i].v + 0.1 * g[i] * g[i]
        u[i] = s[i].m / (1 - 0.8 ^ step) / (math.sqrt(s[i].v / (1 - 0.9 ^ step)) + 1e-3) + decay * p[i]
      end
      local ratio = norm(p) / norm(u)
      for i = 1, #p do p[i] = p[i] - 0.02 * ratio * u[i] end
    end)
end

-- The root mean square of a list of numbers.
local function rms(list) return norm(list) / math.sqrt(#list) end

for _, c in ipairs {
  { "AdaFactor", {} },
  { "AdaFactor that starts slowly", { warmup_init = true, beta1 = 0.0, weight_decay = 0.1 } },
  { "AdaFactor with a rate",
    { learning_rate = 0.05, relative_step = false, scale_parameter = false, clip_threshold = 0.5, decay_rate = 0.6 } },
  { "AdaFactor with a scaled rate", { learning_rate = 0.05, relative_step = false, eps = { 1e-6, 0.5 }, weight_decay = 0.1 } },
} do
  local a = c[2]
  local eps = a.eps or { 1e-30, 1e-3 }
  obeys(c[1], nn.AdaFactor, a, function(p, g, s, step, parameter)
    local kept = 1 - step ^ -(a.decay_rate or 0.8)
    local rate = a.learning_rate
    if a.relative_step ~= false then rate = math.min(a.warmup_init and 1e-6 * step or 1e-2, 1 / math.sqrt(step)) end
    if a.scale_parameter ~= false then rate = rate * math.max(eps[2], rms(p)) end
    local u = {}
    if parameter.ndim == 2 then
      local rows, columns = parameter.shape[1], parameter.shape[2]
      s.r, s.c = s.r or {}, s.c or {}
      local mean = 0
      for i = 1, rows do
        local sum = 0
        for j = 1, columns do sum = sum + g[(i - 1) * columns + j] ^ 2 + eps[1] end
        s.r[i] = kept * (s.r[i] or 0) + (1 - kept) * sum / columns
        mean = mean + s.r[i] / rows
      end
      for j = 1, columns do
        local sum = 0
        for i = 1, rows do sum = sum + g[(i - 1) * columns + j] ^ 2 + eps[1] end
        s.c[j] = kept * (s.c[j] or 0) + (1 - kept) * sum / rows
        for i = 1, rows do
          local at = (i - 1) * columns + j
          u[at] = g[at] / math.sqrt(s.r[i] * s.c[j] / mean)
        end
      end
    else
      for i = 1, #p do
        s[i] = kept * (s[i] or 0) + (1 - kept) * (g[i] * g[i] + eps[1])
        u[i] = g[i] / math.sqrt(s[i])
      end
    end
    local clip = math.max(1, rms(u) / (a.clip_threshold or 1))
    s.m = s.m or {}
    local beta = a.beta1 or 0.9
    for i = 1, #p do
      local update = u[i] / clip * rate
      s.m[i] = beta * (s.m[i] or 0) + (1 - beta) * update
      p[i] = p[i] - (a.weight_decay or 0) * rate * p[i] - s.m[i]
    end
  end)
end

for _, clip in ipairs { false, true } do
  obeys("LARS, clipped: " .. tostring(clip), function(params)
    local inner = nn.Momentum(params, 0.05, 0.9, { weight_decay = 0.1, loss_scale = 4.0 })
    return nn.LARS(inner, { coefficient = 0.02, use_clip = clip, epsilon = 1e-3, lars_filter = function(p) return p.name == "w" end })
  end, nil, function(p, g, s, _, parameter)
    for i = 1, #g do g[i] = g[i] / 4 end
    local r, decay = 1, 0
    if parameter.name == "w" then
      decay = 0.1
      r = 0.02 * norm(p) / (norm(g) + 0.1 * norm(p) + 1e-3)
      if clip then r = math.min(r / 0.05, 1) end
    end
    for i = 1, #p do
      s[i] = 0.9 * (s[i] or 0) + r * (g[i] + decay * p[i])
      p[i] = p[i] - 0.05 * s[i]
    end
  end)
end

-- Those that are compared elsewhere, and where.
local ELSEWHERE = {}
for where, names in pairs {
  ["the conformance data and optim_test.lua"] = "Adam AdamWeightDecay Momentum SGD RMSProp Adagrad AdaMax",
  ["above, with one within"] = "LARS",
  ["thor_test.lua"] = "thor",
  ["what others extend"] = "Optimizer",
  ["below, with both names of its rate"] = "LBFGS",
} do
  for name in names:gmatch "%S+" do ELSEWHERE[name] = where end
end

t.test("every optimizer is compared", function()
  local missing = {}
  for place, library in pairs { nn = nn, experimental = experimental, mint = mint } do
    for name, value in pairs(library) do
      local is_optimizer = type(value) == "table" and rawget(value, "_is_class") and value._called == "optimizer"
      local is_elsewhere = ELSEWHERE[name] and (place == "nn" or name == "Optimizer" or name == "LBFGS")
      if is_optimizer and not compared[value] and not is_elsewhere then missing[#missing + 1] = place .. "." .. name end
    end
  end
  table.sort(missing)
  t.equal(missing, {})
end)

t.test("LARS keeps the state of the optimizer within, and its rates", function()
  local params = start()
  local inner = nn.Momentum(params, { 0.1, 0.2, 0.3 }, 0.9)
  local lars = nn.LARS(inner)
  lars(gradients(0))
  t.equal(lars:get_lr(), 0.2)
  local state = lars:state_dict()
  t.equal(state.global_step, 1)
  local other = nn.LARS(nn.Momentum(params, { 0.1, 0.2, 0.3 }, 0.9))
  other:load_state_dict(state)
  t.equal(other:get_lr(), 0.2)
  t.equal(other:state_dict()["opt.moments.w"] ~= nil, true)
  local bias = ms.Parameter(ops.ones({ 2 }, ms.float64), "fc.bias")
  nn.LARS(nn.SGD({ bias }, 1.0))(ms.tensor({ 0.25, 0.5 }, ms.float64))
  t.equal(bias:tolist(), { 0.75, 0.5 })
end)

t.test("a whole step of training is compiled, with every optimizer", function()
  local x, y = values({ 8, 4 }, 3):astype(ms.float32), values({ 8, 2 }, 4):astype(ms.float32)
  for _, make in ipairs {
    function(p) return nn.ASGD(p, 0.1) end, function(p) return nn.Rprop(p, 0.01) end,
    function(p) return nn.FTRL(p, { learning_rate = 0.1 }) end,
    function(p) return nn.ProximalAdagrad(p, { learning_rate = 0.1 }) end, function(p) return nn.Lamb(p, 0.02) end,
    function(p) return nn.LazyAdam(p, 0.02) end, function(p) return nn.AdaFactor(p) end,
    function(p) return nn.LARS(nn.Momentum(p, 0.1, 0.9), { coefficient = 0.1 }) end,
    function(p) return experimental.NAdam(p, 0.01) end, function(p) return experimental.RAdam(p, 0.01) end,
    function(p) return experimental.RMSprop(p, 0.01) end, function(p) return experimental.Adagrad(p, 0.05) end,
    function(p) return experimental.Adamax(p, 0.01) end, function(p) return mint.FusedAdamW(p, 0.01) end,
  } do
    local losses = {}
    for _, compiled in ipairs { false, true } do
      ms.set_seed(7)
      local net = nn.SequentialCell(nn.Dense(4, 5), nn.Tanh(), nn.Dense(5, 2))
      local params = net:trainable_params()
      local optimizer = make(params)
      local gradient = ms.value_and_grad(function(a, b) return nn.MSELoss()(net(a), b) end, nil, params)
      local function step(a, b)
        local loss, grads = gradient(a, b)
        optimizer(grads)
        return loss
      end
      if compiled then step = ms.jit(step) end
      local list = {}
      for i = 1, 20 do list[i] = step(x, y):item() end
      losses[compiled] = list
      assert(list[20] < list[1], tostring(optimizer))
    end
    t.near(losses[true], losses[false], 1e-4)
  end
end)

t.test("arguments of optimizers are checked", function()
  local p = start()
  t.fails({ "Rprop", "etas must be a factor in (0, 1)" }, nn.Rprop, p, { etas = { 1.5, 1.2 } })
  t.fails({ "Rprop", "step_sizes must be a table of two numbers" }, nn.Rprop, p, { step_sizes = 3 })
  t.fails({ "FTRL", "lr_power must not be above 0" }, nn.FTRL, p, { lr_power = 0.5 })
  t.fails({ "AdaFactor", "either learning_rate or relative_step" }, nn.AdaFactor, p, 0.1)
  t.fails({ "AdaFactor", "learning_rate must be given" }, nn.AdaFactor, p, { relative_step = false })
  t.fails({ "LARS", "optimizer must be an optimizer" }, nn.LARS, nn.ReLU())
  t.fails({ "LARS", "2 gradients" }, nn.LARS(nn.SGD(p)), { p[1] })
  t.fails({ "Lamb", "beta1 must be in [0, 1)" }, nn.Lamb, p, 0.1, 1.0)
  t.fails({ "NAdam", "did you mean 'momentum_decay'?" }, experimental.NAdam, p, { momentum_decy = 1 })
  t.fails({ "SGD", "params must be a table of parameters, got a callback (LossMonitor)" }, nn.SGD, ms.train.LossMonitor())
  t.fails({ "SGD", "the class Dense" }, nn.SGD, nn.Dense)
  t.fails({ "SGD", "got a table without elements, but with the field '7'" }, nn.SGD, { [7] = p[1] })
  t.fails({ "Momentum", "ReLU) has no parameters that are trained" }, nn.Momentum, nn.ReLU(), 0.1, 0.9)
  t.fails({ "SGD", "params is empty" }, nn.SGD, {})
  t.fails({ "Adam", "params of group 1", "not empty, got a tensor of shape (3, 4)" }, nn.Adam, { { params = p[1] } })
  t.fails({ "Adam", "a table of gradients is expected", "clipping gives one for each" }, nn.Adam(p), p[1])
  t.fails({ "ASGD", "gradient 1 has shape (5,)" }, nn.ASGD(p), { p[2], p[1] })
end)

-- The numbers are those of torch.optim.LBFGS for the same function in float64.
t.test("L-BFGS finds the points that PyTorch's finds", function()
  local function rosen(x)
    local a, b = x["0:-1"], x["1:"]
    return ms.ops.sum((1 - a) ^ 2 + 100 * (b - a ^ 2) ^ 2)
  end
  local wanted = {
    plain = { { 6, 49.2, -1.1984384356918711, 0.9990860857895437, 0.5011033619552416 },
      { 12, 48.65259391387558, -1.197238533478837, 0.998544675256315, 0.5027080356289618 },
      { 18, 48.17754234605637, -1.196131401284205, 0.9982448079077221, 0.5049063765971178 },
      { 24, 47.693079812811945, -1.1951199066749678, 0.9981731550848577, 0.5076324325414395 } },
    strong_wolfe = { { 7, 49.2, -0.8810074607843362, 0.7863974363385454, 0.6220741638258119 },
      { 15, 3.5956013026379616, -0.740334778856283, 0.5476986807869346, 0.2724597451998068 },
      { 23, 3.309059947564864, -0.5539410926005446, 0.29919165345960047, 0.08374525209435536 },
      { 30, 2.915061153440661, -0.17844805031171032, 0.02087812975260664, 0.00041260653565600034 } },
  }
  for kind, rows in pairs(wanted) do
    local search = kind ~= "plain" and kind or nil
    local rate = search and 1.0 or 1e-3
    for _, make in ipairs { function(p, o)
      o.learning_rate = rate
      return ms.nn.LBFGS(p, o)
    end, function(p, o)
      o.lr = rate
      return ms.nn.optim.LBFGS(p, o)
    end } do
      local x, calls = ms.Parameter(ms.tensor({ -1.2, 1.0, 0.5 }, ms.float64), "x"), 0
      local optimizer = make({ x }, { max_iter = 6, history_size = 3, line_search_fn = search })
      local gradient = ms.value_and_grad(function() return rosen(x) end, nil, { x })
      local function closure()
        calls = calls + 1
        return gradient()
      end
      for k, row in ipairs(rows) do
        if k == 3 then
          -- What it remembers goes on in another one.
          local state = optimizer:state_dict()
          optimizer = make({ x }, { max_iter = 6, history_size = 3, line_search_fn = search })
          optimizer:load_state_dict(state)
        end
        t.near(optimizer(closure), row[2], 1e-9)
        t.equal(calls, row[1])
        t.near(x, { row[3], row[4], row[5] }, 1e-9)
      end
    end
  end
end)

t.test("L-BFGS takes the parameters of a network, and says what it needs", function()
  ms.set_seed(1)
  local net = ms.nn.Dense(3, 2)
  local x, y = ms.ops.randn { 16, 3 }, ms.ops.randn { 16, 2 }
  local optimizer = ms.nn.LBFGS(net, { line_search_fn = "strong_wolfe", max_iter = 50 })
  local closure = ms.value_and_grad(function() return ms.ops.mean((net(x) - y) ^ 2) end, nil, optimizer.parameters)
  local first = optimizer(closure):item()
  local last, grads = closure()
  assert(last:item() < first)
  for _, g in ipairs(grads) do assert(ms.ops.amax(ms.ops.abs(g)):item() < 1e-4) end
  t.equal(optimizer.global_step, 1)
  t.fails({ "optimizers_test.lua:", "LBFGS: a function that gives the loss and the gradients is expected, got a table" },
    function() optimizer(grads) end)
  t.fails("the function must give the loss and a table of 2 gradients", function() optimizer(function() return 1.0 end) end)
  t.fails("the loss must be one number", function() optimizer(function() return "x", grads end) end)
  t.fails("line_search_fn must be one of 'strong_wolfe'", function() ms.nn.LBFGS(net, { line_search_fn = "armijo" }) end)
  t.fails("has one group of parameters, got 2",
    function() ms.nn.LBFGS { { params = { net.weight } }, { params = { net.bias }, lr = 0.1 } } end)
end)

-- The numbers are those of torch.optim.ASGD.
t.test("a schedule of ASGD acts one step later, as PyTorch's and MindSpore's", function()
  local rates = { 0.1, 0.05, 0.2, 0.02, 0.1 }
  local wanted = { { 1.3990000059455632, -0.9979999850690364 }, { 1.7175621066009417, -0.19800192778410125 },
    { 1.8448516570851063, 0.12165754486034258 }, { 2.301169391277499, 1.2675983209525168 }, { 2.328645896735917, 1.336599469998469 } }
  for _, kind in ipairs { "list", "set_lr", "torch" } do
    local x = ms.Parameter(ms.tensor({ 1.0, -2.0 }, ms.float64), "x")
    local options = { lambd = 0.01, alpha = 0.75, t0 = 2 }
    local optimizer = kind == "torch" and ms.nn.optim.ASGD({ x }, 0.1, options)
      or ms.nn.ASGD({ x }, kind == "list" and rates or 0.1, options)
    local gradient = ms.grad(function() return ms.ops.sum((x - 3) ^ 2) end, nil, { x })
    for k, row in ipairs(wanted) do
      if kind ~= "list" then optimizer:set_lr(rates[k]) end
      optimizer(gradient())
      t.near(x, row, 1e-7)
    end
    t.near(optimizer["ax.x"], { 2.3149076440067082, 1.3020988954754928 }, 1e-7)
  end
  local half = ms.Parameter(ms.tensor({ 1.0, -2.0 }, ms.float16), "h")
  ms.nn.ASGD({ half }, 0.5) { ms.tensor({ 1.0, 1.0 }, ms.float16) }
  t.near(half, { 0.5, -2.5 }, 2e-3)
end)

t.finish()
