-- Distributions and bijectors against scipy and PyTorch (reference.json, written by make_reference.py), against each other, and
-- their samples against their moments.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local ops = ms.ops

local d, b = ms.probability.distribution, ms.probability.bijector
local file = assert(io.open "tests/lua/probability/reference.json")
local reference = ms.json.decode(file:read "a")
file:close()

local function double(x) return ms.tensor(x, ms.float64) end

local function near(got, wanted, tolerance)
  got = got:reshape { -1 }:tolist()
  t.equal(#got, #wanted)
  for i, value in ipairs(wanted) do
    if value == "inf" then value = math.huge elseif value == "-inf" then value = -math.huge end
    if value ~= ms.json.null then
      local fits = got[i] == value or math.abs(got[i] - value) <= tolerance * math.max(1, math.abs(value))
      if not fits then error(("element %d is %.12g, expected %.12g"):format(i, got[i], value), 2) end
    end
  end
end

local function parameters(row, which)
  local list = {}
  for i, name in ipairs(d[row.name]._family.parameters) do list[i] = double(row[which][name]) end
  return table.unpack(list)
end

for _, row in ipairs(reference.families) do
  local family = d[row.name]
  local function make(...) return family(...) end
  local one = make(parameters(row, "parameters"))
  local values = ops.expand_dims(double(row.values), 1)

  t.test(row.name .. ": densities, distribution functions, moments", function()
    for _ = 1, 3 do
      for _, name in ipairs { "log_prob", "cdf", "survival_function" } do near(one[name](one, values), row[name], 1e-10) end
      near(ops.exp(one:log_cdf(values)), row.cdf, 1e-10)
      near(ops.exp(one:log_survival(values)), row.survival_function, 1e-10)
      near(one:prob(values), ops.exp(one:log_prob(values)):reshape { -1 }:tolist(), 1e-12)
      near(one:entropy(), row.entropy, 1e-9)
      if row.name ~= "Cauchy" then
        near(one:mean(), row.mean, 1e-10)
        near(one:var(), row.var, 1e-9)
        if row.name ~= "StudentT" then near(one:sd() ^ 2, row.var, 1e-9) end
      end
    end
  end)

  t.test(row.name .. ": the mode is nowhere less likely than other values", function()
    if row.name == "Uniform" then return t.fails("no closed form", one.mode, one) end
    local mode = one:mode()
    local finite = ops.logical_not(ops.isnan(mode))
    local best = ops.where(finite, one:prob(ops.where(finite, mode, ops.zeros_like(mode))), ops.full_like(mode, math.huge))
    assert(ops.all(ops.greater_equal(best + 1e-12, one:prob(values))):item())
  end)

  t.test(row.name .. ": divergence and cross entropy", function()
    if row.other == ms.json.null then
      t.fails("no closed form", one.kl_loss, one, one)
      return
    end
    local other = make(parameters(row, "other"))
    local kl = one:kl_loss(other)
    if row.kl_loss then near(kl, row.kl_loss, 1e-10) end
    near(one:cross_entropy(other), (one:entropy() + kl):tolist(), 1e-12)
    near(one:kl_loss(one), { 0, 0 }, 1e-12)
    near(one:kl_loss(row.name, parameters(row, "other")), kl:tolist(), 1e-12)
    -- With this distribution's parameters behind the other's.
    local arguments = table.pack(parameters(row, "other"))
    for i, p in ipairs { parameters(row, "parameters") } do arguments[arguments.n + i] = p end
    near(make { dtype = ms.float64 }:kl_loss(row.name, table.unpack(arguments)), kl:tolist(), 1e-12)
    -- The definition, where the values can be gone through.
    if one._family.discrete then
      local k = ops.expand_dims(ops.arange(row.name == "Bernoulli" and 2 or 200):astype(ms.float64), 1)
      local p = one:prob(k)
      near(ops.sum(ops.where(ops.greater(p, 0.0), p * (one:log_prob(k) - other:log_prob(k)), 0.0 * p), 0), kl:tolist(), 1e-9)
    end
  end)

  t.test(row.name .. ": derivatives", function()
    local p = { parameters(row, "parameters") }
    if row.gradients then
      local inside = ops.expand_dims(double(row.inside), 1)
      local positions = {}
      for i = 1, #p do positions[i] = i - 1 end
      local gradient = ms.grad(function(...) return ops.sum(make(...):log_prob(inside)) end, positions)
      local free = ms.grad(function(...) return ops.sum(make { dtype = ms.float64 }:log_prob(inside, ...)) end, positions)
      for _ = 1, 2 do
        for _, g in ipairs { gradient, free } do
          local found = table.pack(g(table.unpack(p)))
          if type(found[1]) == "table" then found = found[1] end
          for i, wanted in ipairs(row.gradients) do near(found[i], wanted, 1e-9) end
        end
      end
    end
    -- All values, also impossible ones, have finite derivatives, and that of cdf is the density.
    if not one._family.discrete then
      local slope = ms.grad(function(x) return ops.sum(one:cdf(x)) end)(values + ops.zeros { 1, 2 })
      local density = one:prob(values)
      -- Uniform and HalfNormal have a bend where a value of the list lies.
      local inner = ops.logical_and(ops.greater(density, 0.0), ops.less(ops.abs(density), math.huge)):astype(ms.float64)
      if row.name ~= "Uniform" then near(slope * inner, (density * inner):reshape { -1 }:tolist(), 1e-7) end
    end
    local all = ms.grad(function(...)
      local logs = make(...):log_prob(values)
      return ops.sum(ops.where(ops.isfinite(logs), logs, 0.0))
    end)(table.unpack(p))
    assert(ms.amp.all_finite(all):item())
  end)

  t.test(row.name .. ": samples have the distribution", function()
    ms.set_seed(5)
    local n = 20000
    local x = one:sample { n }
    t.equal(tostring(x.shape), ("(%d, 2)"):format(n))
    t.equal(tostring(x.dtype), one._family.discrete and "Int32" or "Float64")
    -- The largest difference of shares and distribution function (Kolmogorov, Smirnov): above 1.95 / sqrt(n) once in 1,000 times.
    local y = x:astype(ms.float64)
    for _, value in ipairs(row.values) do
      local share = ops.mean(ops.less_equal(y, value):astype(ms.float64), 0)
      local cdf = one:cdf(double(value))
      local apart = ops.max(ops.abs(share - cdf)):item()
      assert(apart < 1.95 / math.sqrt(n), ("at %g the shares are %g away"):format(value, apart))
    end
    assert(ops.all(ops.isfinite(y)):item())
    local lists = { seed = 7 }
    for _, name in ipairs(one._family.parameters) do lists[name] = row.parameters[name] end
    local seeded = make(lists)
    t.equal(seeded:sample { 3 }, seeded:sample { 3 })
  end)
end

t.test("gradients go through the draws that are functions of the parameters", function()
  for _, name in ipairs { "Normal", "Laplace", "Logistic", "Gumbel", "Cauchy" } do
    local function draw(place, width) return d[name](place, width, { seed = 3 }):sample { 4 } end
    local x = draw(0.5, 2.0)
    local g = ms.grad(function(place, width) return ops.sum(draw(place, width)) end, { 0, 1 })
    local place, width = g(ms.tensor(0.5), ms.tensor(2.0))
    if type(place) == "table" then place, width = place[1], place[2] end
    t.near(place:item(), 4, 1e-5)
    t.near(width:item(), ops.sum((x - 0.5) / 2.0):item(), 1e-4)
  end
end)

t.test("Categorical", function()
  local c = d.Categorical(double { { 0.5, 0.25, 0.25 }, { 0.1, 0.0, 0.9 } })
  t.near(c:prob(double { { 0, 0 }, { 1, 1 }, { 2, 2 } }), { { 0.5, 0.1 }, { 0.25, 0 }, { 0.25, 0.9 } }, 1e-12)
  t.near(c:prob(double { { 3, -1 }, { 0.5, 1.5 } }), { { 0, 0 }, { 0, 0 } })
  t.near(c:log_prob(0), { math.log(0.5), math.log(0.1) }, 1e-12)
  t.near(c:cdf(double { 1, 1 }), { 0.75, 0.1 }, 1e-12)
  t.near(c:mean(), { 0.75, 1.8 }, 1e-12)
  t.near(c:var(), { 0.25 + 1 - 0.75 ^ 2, 3.6 - 1.8 ^ 2 }, 1e-12)
  t.near(c:mode(), { 0, 2 })
  t.near(c:entropy(), { 1.5 * math.log(2), -0.1 * math.log(0.1) - 0.9 * math.log(0.9) }, 1e-12)
  local other = d.Categorical(double { 0.25, 0.25, 0.5 })
  t.near(c:kl_loss(other), { 0.5 * math.log(2) + 0.25 * math.log(0.5), 0.1 * math.log(0.4) + 0.9 * math.log(1.8) }, 1e-12)
  ms.set_seed(2)
  local x = c:sample { 8000 }
  t.equal(tostring(x.shape), "(8000, 2)")
  for k, wanted in ipairs { { 0.5, 0.1 }, { 0.25, 0 }, { 0.25, 0.9 } } do
    t.near(ops.mean(ops.equal(x, k - 1):astype(ms.float64), 0), wanted, 0.02)
  end
  t.equal(tostring(d.Categorical({ 0.5, 0.5 }):sample().shape), "()")
  t.fails({ "Categorical", "add up to 1" }, d.Categorical, { 0.5, 0.6 })
  t.fails({ "Categorical", "axis of classes" }, d.Categorical, 1.0)
end)

t.test("incomplete gamma and beta functions", function()
  local g, i = reference.special.gammainc, reference.special.betainc
  for _ = 1, 2 do
    near(ops.igamma(double(g.a), double(g.x)), g.y, 1e-11)
    near(ops.betainc(double(i.a), double(i.b), double(i.x)), i.y, 1e-11)
  end
  -- The derivative with respect to the parameter, against differences.
  local a, h = double { 0.7, 3.0, 9.0 }, 1e-5
  local x = double { 0.4, 3.5, 7.0 }
  local slope = ms.grad(function(p) return ops.sum(ops.igamma(p, x)) end)(a)
  near(slope, ((ops.igamma(a + h, x) - ops.igamma(a - h, x)) / (2 * h)):tolist(), 1e-7)
  local z = double { 0.2, 0.9, 0.5 }
  slope = ms.grad(function(p) return ops.sum(ops.betainc(p, x, z)) end)(a)
  near(slope, ((ops.betainc(a + h, x, z) - ops.betainc(a - h, x, z)) / (2 * h)):tolist(), 1e-7)
end)

for _, row in ipairs(reference.bijectors) do
  t.test("bijector " .. row.name, function()
    local one = b[row.name](row.arguments)
    local x = double(row.x)
    for _ = 1, 2 do
      local y = one:forward(x)
      near(y, row.y, 1e-12)
      near(one:inverse(y), row.x, 1e-11)
      near(one:forward_log_jacobian(x), row.log_jacobian, 1e-11)
      near(one:inverse_log_jacobian(y), ops.neg(double(row.log_jacobian)):tolist(), 1e-11)
      local turned = b.Invert(one)
      near(turned:forward(y), row.x, 1e-11)
      near(turned:inverse_log_jacobian(x), row.log_jacobian, 1e-11)
      near(one("forward", x), row.y, 1e-12)
    end
  end)
end

t.test("transformed distributions are those of the families that they make", function()
  local normal = d.Normal(double { 0.5, -1.0 }, double { 0.7, 1.5 })
  local made, known = b.Exp()(normal), d.LogNormal(double { 0.5, -1.0 }, double { 0.7, 1.5 })
  local x = double { { -1.0, -0.5 }, { 0.1, 0.2 }, { 3.0, 40.0 } }
  for _ = 1, 2 do
    for _, method in ipairs { "log_prob", "prob", "cdf", "survival_function", "log_cdf", "log_survival" } do
      near(made[method](made, x), known[method](known, x):reshape { -1 }:tolist(), 1e-11)
    end
  end
  -- A falling function turns the distribution function round.
  local line = b.ScalarAffine(-2.0, 1.0)(normal)
  local straight = d.Normal(double { 0.0, 3.0 }, double { 1.4, 3.0 })
  for _, method in ipairs { "log_prob", "cdf" } do
    near(line[method](line, x), straight[method](straight, x):reshape { -1 }:tolist(), 1e-11)
  end
  for _, method in ipairs { "mean", "sd", "var", "mode", "entropy" } do
    near(line[method](line), straight[method](straight):tolist(), 1e-11)
  end
  -- Gumbel by turning its distribution function round.
  local gumbel = b.Invert(b.GumbelCDF(0.2, 1.5))(d.Uniform(double(0.0), double(1.0)))
  near(gumbel:log_prob(double { -2.0, 0.3, 5.0 }), d.Gumbel(double(0.2), double(1.5)):log_prob(double { -2.0, 0.3, 5.0 }):tolist(), 1e-11)
  ms.set_seed(3)
  t.near(ops.mean(ops.log(made:sample { 20000 }), 0), { 0.5, -1.0 }, 0.05)
  local exp = b.Exp()
  t.near(exp(normal):kl_loss(exp(d.Normal(0.0, 1.0))), normal:kl_loss(d.Normal(double(0.0), double(1.0))):tolist(), 1e-12)
  t.fails("not linear", made.mean, made)
  t.fails("same bijector", made.kl_loss, made, known)
  t.fails("must be a continuous one", d.TransformedDistribution, b.Exp(), d.Poisson(1.0))
end)

t.test("parameters of a call, dtypes, shapes and names", function()
  local n = d.Normal()
  t.near(n:log_prob(1.0, 1.0, 2.0):item(), -math.log(2) - 0.5 * math.log(2 * math.pi), 1e-6)
  t.near(n:mean(3.0, 1.0):item(), 3)
  t.equal(tostring(n:sample({ 2, 3 }, ms.zeros { 4 }, 1.0).shape), "(2, 3, 4)")
  t.equal(tostring(d.Normal(0.0, 1.0, { dtype = ms.float16 }):log_prob(1.0).dtype), "Float16")
  t.equal(tostring(d.Poisson(2.0, { dtype = ms.float32 }):sample({ 2 }).dtype), "Float32")
  t.equal(tostring(d.Normal({ 0.0, 1.0 }, 1.0):mean().shape), "(2,)")
  t.equal({ d.Normal(0.0, 1.0):get_dist_type(), d.Normal(0.0, 1.0)("get_dist_type") }, { "Normal", "Normal" })
  t.near({ d.Normal(0.0, 2.0):get_dist_args() }, { 0, 2 })
  t.near(d.Normal(0.0, 2.0)("cdf", 0.0):item(), 0.5)
  t.equal(tostring(d.Normal(0.0, 2.0)), "Normal<mean=0.0, sd=2.0>")
  -- A parameter that is trained.
  local mean = ms.Parameter(ms.tensor(0.0), "mean")
  local fit = d.Normal(mean, 1.0)
  local data = ms.tensor { 1.0, 2.0, 3.0 }
  local optimizer = ms.nn.SGD(fit:trainable_params(), 0.1)
  local step = ms.value_and_grad(function() return -ops.sum(fit:log_prob(data)) end, nil, fit:trainable_params())
  for _ = 1, 60 do
    local _, grads = step()
    optimizer(grads)
  end
  t.near(mean:item(), 2, 1e-4)
end)

t.test("densities are compiled, with parameters from outside and with those of the call", function()
  local one = d.Normal(double { 0.0, 1.0 }, double(2.0))
  local functions = {
    function(x) return one:log_prob(x) + one("cdf", x) end,
    function(x) return d.Gamma(x, 2.0, { dtype = ms.float64 }):log_prob(x + 1.0) end,
    function(x) return ms.grad(function(m) return ops.sum(d.Laplace(m, 1.5):log_prob(x)) end)(x * 0.5) end,
    function(x) return d.Categorical(ops.softmax(x, -1)):entropy() end,
  }
  for i, f in ipairs(functions) do
    local fast = ms.jit(f)
    for k = 1, 5 do
      local x = double { 0.5 + k, 0.25 * k }
      t.near(fast(x), f(x), 1e-12)
    end
    local report = tostring(ms.jit_report(fast))
    assert(tonumber(report:match "(%d+) compiled") > 0, ("function %d: %s"):format(i, report))
  end
end)

t.test("errors say what is wrong", function()
  t.fails({ "Normal", "sd must be positive" }, d.Normal, 0.0, -1.0)
  t.fails({ "Normal", "sd must be positive" }, d.Normal, 0.0, 0 / 0)
  t.fails({ "Bernoulli", "probabilities" }, d.Bernoulli, 1.5)
  t.fails({ "Uniform", "low must be less" }, d.Uniform, 1.0, 0.0)
  t.fails({ "Normal", "mean must be a tensor or a number" }, d.Normal, "x", 1.0)
  t.fails({ "Normal", "dtype must be a float type" }, d.Normal, 0.0, 1.0, { dtype = ms.int32 })
  local n = d.Normal(0.0, 1.0)
  t.fails({ "Normal:log_prob", "value is missing" }, n.log_prob, n)
  t.fails({ "takes at most 3 arguments" }, n.log_prob, n, 1.0, 1.0, 1.0, 1.0)
  t.fails({ "Normal:mean", "the parameter mean is missing" }, function() return d.Normal():mean() end)
  t.fails({ "dist must be 'Normal'" }, n.kl_loss, n, "Gamma", 1.0, 1.0)
  t.fails({ "dist must be a Normal distribution, got Gamma" }, n.kl_loss, n, d.Gamma(1.0, 1.0))
  t.fails({ "shape must be a table" }, n.sample, n, "x")
  t.fails({ "shape[1] must not be negative" }, n.sample, n, { -1 })
  t.fails({ "called with the name of a method" }, n, "nothing")
  t.fails({ "no closed form" }, function() return d.Cauchy(0.0, 1.0):mean() end)
  t.fails({ "there is no distribution 'Norma'", "Normal" }, function() return d.Norma end)
  t.fails({ "scale must not be 0" }, b.ScalarAffine, 0.0)
  t.fails({ "sharpness must be positive" }, b.Softplus, -1.0)
end)

t.finish()
