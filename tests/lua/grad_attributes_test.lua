-- Derivatives by numbers that are attributes of operators, by position and by name, once and twice, against differences.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local ops = ms.ops

local function vector(...) return ms.tensor({ ... }, ms.float64) end
local x, y = vector(-1.7, -0.3, 0.2, 0.9, 2.3), vector(0.4, -0.6, 0.7, -1.1, 0.5)
local w = vector(0.3, 1.1, -0.6, 0.9, 0.7)

local function check(name, f, at)
  t.test(name, function()
    at = at or 0.5
    local function total(a)
      local result = f(a)
      local weights = ops.sin(ops.arange(1, result.size + 1):double()) + 0.3
      return ops.sum(result:reshape({ -1 }) * weights * result:reshape({ -1 })):item()
    end
    local h = 1e-4
    local function slope(g) return (g(at + h) - g(at - h)) / (2 * h) end
    local value, first = ms.value_and_grad(total)(at)
    t.near(value, total(at), 1e-12)
    t.near(first, slope(total), 1e-5)
    local gradient = ms.grad(total)
    t.near(ms.grad(gradient)(at), slope(gradient), 1e-5)
  end)
end

check("full", function(a) return ops.full({ 2, 3 }, a * a, ms.float64) * (a + 1) end)
check("full by name", function(a) return ops.full { size = { 2 }, fill_value = a, dtype = ms.float64 } end)
check("full by its other name", function(a) return ops.full({ 2 }, { value = a, dtype = "float64" }) end)
check("fill", function(a) return ops.fill(ms.float64, { 2 }, a) * a end)
check("full_like", function(a) return ops.full_like(x, a) * x end)
check("full_like of what is followed", function(a) return ops.full_like(x * a, a) * a end)
check("new_full", function(a) return ops.new_full(x, { 3 }, a) end)
check("the method new_full", function(a) return x:new_full({ 3 }, a) end)
check("pad", function(a) return ops.pad(x * a, { 1, 2 }, "constant", a * a) end)
check("pad by name", function(a) return ops.pad(x * a, { 1, -2 }, { value = a }) end)
check("arange", function(a) return ops.arange(a, 3.2, a * 0.5, ms.float64) end)
check("arange by name", function(a) return ops.arange { start = a, stop = 3.2, step = 0.4, dtype = ms.float64 } end)
check("linspace", function(a) return ops.linspace(a, a * a + 2, 5, ms.float64) end)
check("linspace by name", function(a) return ops.linspace { start = a, stop = a, steps = 3, dtype = ms.float64 } end)
check("one step of linspace", function(a) return ops.linspace(a, 3, 1, ms.float64) end)
check("logspace", function(a) return ops.logspace(a, 1, 4, a + 2, ms.float64) end)
check("clamp", function(a) return ops.clamp(x * a, -a, a * 1.1) end)
check("clip by name", function(a) return ops.clip(x, { min = -a, max = a }) end)
check("hardtanh", function(a) return ops.hardtanh(x, -a, a * 2) end)
check("threshold", function(a) return ops.threshold(x * a, a * 0.1, a * a) end)
check("leaky_relu", function(a) return ops.leaky_relu(x * a, a) end)
check("the method leaky_relu", function(a) return x:leaky_relu(a) end)
check("leaky_relu by name", function(a) return ops.leaky_relu(x, { negative_slope = a }) end)
check("leaky_relu all by name", function(a) return ops.leaky_relu { input = x * a, negative_slope = a } end)
check("elu", function(a) return ops.elu(x * a, a) end)
check("elu by name", function(a)
  local options = { alpha = 0.1 }
  options.alpha = a
  return ops.elu(x * a, options)
end)
check("celu", function(a) return ops.celu(x * a, { alpha = a }) end)
check("softplus", function(a) return ops.softplus(x * a, a * 2, 1.5) end)
check("softplus by name", function(a) return ops.softplus(x, { beta = a }) end)
check("hardshrink", function(a) return ops.hardshrink(x * a, a * 0.8) end)
check("softshrink", function(a) return ops.softshrink(x, { lambd = a }) end)
check("smooth_l1_loss", function(a) return ops.smooth_l1_loss(x * a, y, a + 0.3) end)
check("smooth_l1_loss by name", function(a) return ops.smooth_l1_loss(x, y, { beta = a, reduction = "sum" }) end, 0.7)
check("huber_loss", function(a) return ops.huber_loss(x, y * a, "none", a) end)
check("huber_loss by name", function(a) return ops.huber_loss(x, y, { delta = a }) end, 0.7)
local signs = vector(1, -1, -1, 1, -1)
check("hinge_embedding_loss", function(a) return ops.hinge_embedding_loss(x * a, signs, a, "none") end)
check("margin_ranking_loss", function(a) return ops.margin_ranking_loss(x, y * a, signs, { margin = a }) end)
check("triplet_margin_loss", function(a)
  local u, v = ops.stack({ x, y }, 0), ops.stack({ y, w }, 0)
  return ops.triplet_margin_loss(u * a, v, v - 0.4, a, { swap = true, reduction = "sum" })
end)
check("cross_entropy", function(a)
  return ops.cross_entropy(ops.stack({ x * a, y }, 0), ms.tensor { 1, 3 }, { label_smoothing = a })
end)
check("nll_loss", function(a)
  return ops.nll_loss(ops.log_softmax(ops.stack({ x * a, y }, 0), 1), ms.tensor { 1, 3 }, w + 2, -100, "none", a)
end)
local m, n = ops.stack({ x, y }, 0), ops.stack({ w, x }, 1)
check("addmm", function(a) return ops.addmm(m[{ ms.slice(), ms.slice(0, 2) }], m * a, n, { beta = a, alpha = a * a }) end)
check("baddbmm", function(a) return ops.baddbmm(y[0], m:reshape({ 1, 2, 5 }), n:reshape({ 1, 5, 2 }), { alpha = a }) end)
check("addbmm", function(a) return ops.addbmm(y[0], m:reshape({ 1, 2, 5 }), n:reshape({ 1, 5, 2 }), { beta = a }) end)
check("addmv", function(a) return ops.addmv(y[0], m, x, { beta = a, alpha = a }) end)
check("addr", function(a) return ops.addr(y, x, y, { beta = a, alpha = a }) end)
check("index_add", function(a) return ops.index_add(x * a, ms.tensor { 0, 0, 3 }, y["0:3"] * a, 0, { alpha = a }) end)
check("clip_by_norm", function(a) return ops.clip_by_norm(x * a, a * a) end)
check("clip_by_norm by the norm", function(a) return ops.clip_by_norm(x, 0.7, a + 1) end)
check("clip_by_norm that does nothing", function(a) return ops.clip_by_norm(x * a, { max_norm = a + 9 }) end)
check("layer_norm", function(a) return ops.layer_norm(m * a, { 5 }, w, y, a * 0.1) end)
check("layer_norm by name", function(a) return ops.layer_norm(m, { 2, 5 }, { eps = a }) end)
local image = ops.sin(ops.arange(24):double()):reshape({ 2, 4, 3 })
check("group_norm", function(a) return ops.group_norm(image * a, 2, y["0:4"], w["1:5"], a) end)
check("instance_norm", function(a) return ops.instance_norm(image * a, { eps = a }) end)
check("rms_norm", function(a)
  local z, rstd = ops.rms_norm(m * a, w, a)
  return ops.concat({ z:reshape({ -1 }), rstd:reshape({ -1 }) }, 0)
end)
check("lrn", function(a) return ops.lrn(image * a, 1, a + 1, a, a * 2) end)
check("cosine_similarity", function(a) return ops.cosine_similarity(m * a, m + 0.1, 1, a + 2) end)
check("logit", function(a) return ops.logit(ops.sigmoid(x * a), a * 0.6) end)
check("cosine_embedding_loss", function(a)
  return ops.cosine_embedding_loss(m * a, ops.stack({ y, y }, 0), vector(1, -1), a * 0.2 - 0.7, "none")
end)
check("multi_margin_loss", function(a)
  return ops.multi_margin_loss(m * a, ms.tensor { 1, 3 }, { margin = a, weight = w + 2, reduction = "sum" })
end)
check("multi_margin_loss of squares", function(a) return ops.multi_margin_loss(x, ms.tensor(2), 2, a + 0.1) end)
check("gaussian_nll_loss", function(a)
  return ops.gaussian_nll_loss(x, y * a, ops.exp(w), { eps = a + 1.2, full = true, reduction = "none" })
end)
check("hamming_window", function(a) return ops.hamming_window(6, true, a, a * a, ms.float64) end)
check("trapz", function(a) return ops.trapz(m * a, { dx = a }) end)
check("trapz over points", function(a) return ops.trapz(m, y * a, { dim = 1 }) end)
check("attention", function(a)
  local q = image:reshape({ 1, 2, 4, 3 })
  return ops.attention(q, q * a, q + 0.3, a, true)
end)
check("gumbel_softmax", function(a)
  ms.set_seed(5)
  return ops.gumbel_softmax(m * 1.0, a)
end)
t.test("hard samples have the gradient of soft ones", function()
  local function sample(hard)
    return ms.value_and_grad(function(a)
      ms.set_seed(5)
      return ops.sum(ops.gumbel_softmax(m, a, hard) * w):item()
    end)(0.7)
  end
  ms.set_seed(5)
  local value, slope = sample(true)
  ms.set_seed(5)
  t.near(value, ops.sum(ops.gumbel_softmax(m, 0.7, true) * w):item(), 1e-9)
  t.near(slope, select(2, sample(false)), 1e-9)
end)
t.test("what only decides something has the derivative 0", function()
  local slope = ms.grad(function(a)
    local near = ops.isclose(x, y, 1e-5, a)
    local counts = ops.histc(x, 3, -a, a)
    return a * ops.sum(near:double()):item() + a * ops.sum(counts):item() + ops.sum(ops.pinv(m, { rtol = a * 1e-3 })):item()
  end)(1.5)
  t.equal(slope, ops.sum(ops.isclose(x, y, 1e-5, 1.5):double()):item() + ops.sum(ops.histc(x, 3, -1.5, 1.5)):item())
end)
-- Attributes that are tensors' places.
check("masked_fill", function(a) return ops.masked_fill(x * a, ops.greater(x, 0.0), a * a) end)
check("lerp", function(a) return ops.lerp(x, y * a, a) end)
check("addcmul", function(a) return ops.addcmul(x, y, w * a, { value = a }) end)

t.test("tensors have gradients beside such a number", function()
  t.equal(ms.check_grad(function(v)
    local a = v[0]:item() * v[0]:item()
    return ops.sum(ops.elu(v * a, a) * ops.full_like(v, a))
  end, { vector(0.7, -1.2, 1.5, -0.4) }, { rtol = 1e-5, atol = 1e-7 }) < 1e-5, true)
end)

t.test("dtypes and shapes are those of the operator", function()
  for _, f in ipairs {
    function(a) return ops.full({ 2 }, a) end,
    function(a) return ops.full({ 2 }, a, ms.float16) end,
    function(a) return ops.linspace(a, 1, 3) end,
    function(a) return ops.arange(a, 2.0, 0.25) end,
    function(a) return ops.leaky_relu(ms.tensor({ -1, 2 }, ms.int32), a) end,
    function(a) return ops.leaky_relu(ms.tensor({ -1, 2 }, ms.bfloat16), a) end,
    function(a) return ops.huber_loss(ms.tensor({ -1, 2 }, ms.float16), ms.tensor({ 3, 2 }, ms.float16), "none", a) end,
    function(a) return ops.addmm(y:float()[0], m:float(), m:float():t(), { alpha = a }) end,
  } do
    local seen
    ms.grad(function(a)
      local result = f(a)
      seen = { result.dtype, result.shape, ms.stop_gradient(result) }
      return ops.sum(result):item()
    end)(0.5)
    local plain = f(0.5)
    t.equal(seen[1], plain.dtype)
    t.equal(seen[2], plain.shape)
    t.near(seen[3]:tolist(), plain:tolist(), 1e-6)
  end
end)

t.test("slopes are those of the operator where it has a corner", function()
  local corner = vector(0.0, 0.5, -0.5)
  for _, f in ipairs { ops.leaky_relu, ops.elu, ops.celu, ops.softshrink, ops.hardshrink } do
    local followed
    ms.grad(function(a)
      followed = ms.grad(function(v) return ops.sum(f(v, a)) end)(corner)
      return ops.sum(followed):item()
    end)(0.5)
    t.equal(followed:tolist(), ms.grad(function(v) return ops.sum(f(v, 0.5)) end)(corner):tolist())
  end
end)

local rows = ms.tensor({ { 0.5, -1.0 }, { 2.0, 0.3 }, { 0.0, 1.5 } }, ms.float64)
local others = ms.tensor({ { 1.5, 0.7 }, { -0.4, 0.45 } }, ms.float64)
local gain, shift, spread = vector(1.3, -0.7), vector(0.2, 0.5), vector(0.8, 1.7)
for _, training in ipairs { true, false } do
  check("batch_norm, training " .. tostring(training), function(e)
    return ops.batch_norm(rows * e, shift * e, spread + e, gain * e, shift, training, 0.1, e)
  end)
end
check("batch_norm of images by name", function(e)
  return ops.batch_norm(ops.sin(ops.arange(24):double():reshape({ 2, 3, 2, 2 })), { training = true, eps = e * e })
end)
check("batch_norm_train", function(e)
  local normal, mean, var = ops.batch_norm_train(rows * e, gain, shift, e)
  return ops.concat({ ops.reshape(normal, { -1 }), mean, var }, 0)
end)
check("clip_by_global_norm", function(most)
  local a, b = ops.clip_by_global_norm({ rows * most, others }, most * most)
  return ops.concat({ ops.reshape(a, { -1 }), ops.reshape(b, { -1 }) }, 0)
end, 0.9)
check("clip_by_global_norm of what is small", function(most)
  return ops.clip_by_global_norm({ rows }, most * 10) * most
end)
check("clip_by_global_norm with a norm", function(norm)
  return ops.clip_by_global_norm({ rows }, 0.4, norm)
end, 0.9)
for _, p in ipairs { 0.7, 1.0, 2.0, 2.5, -1.5 } do
  check("vector_norm of order " .. p, function(ord) return ops.vector_norm(rows * ord, ord, 1) end, p)
  check("vector_norm of all, order " .. p, function(ord) return ops.vector_norm(rows * ord, { ord = ord, keepdims = true }) end, p)
  check("norm of order " .. p, function(ord) return ops.norm(x, ord) * ops.norm(rows, ord, { 0 }, true) end, p)
  if p > 0 then check("cdist of order " .. p, function(q) return ops.cdist(rows * q, others, q) end, p) end
end
for _, periodic in ipairs { true, false } do
  check("kaiser_window, periodic " .. tostring(periodic), function(b)
    return ops.kaiser_window(7, periodic, b, ms.float64)
  end, 4.0)
end
check("kaiser_window by name", function(b)
  return ops.kaiser_window { window_length = 6, beta = b * b, dtype = ms.float64 }
end, 5.0)
t.test("orders of norms and clipping at the borders", function()
  local big = vector(3e200, -4e200)
  local slope = ms.grad(function(p) return ops.vector_norm(big, p):item() * 1e-200 end)(2.0)
  t.near(slope, 5 * ((9 * math.log(3) + 16 * math.log(4)) / 50 - math.log(25) / 4), 1e-12)
  for _, p in ipairs { 2.0, -1.0 } do
    t.equal(ms.grad(function(q) return ops.vector_norm(vector(0.0, 0.0), q):item() end)(p), 0.0)
  end
  t.equal(ms.grad(function(q) return ops.vector_norm(x, q):item() * q end)(math.huge), 2.3)
  local function clipped(most) return ops.sum(ops.clip_by_global_norm({ vector(0.0, 0.0) }, most)):item() end
  t.equal(ms.grad(clipped)(1.0), 0.0)
  t.equal(ms.grad(function(v) return ops.sum(ops.clip_by_global_norm({ v }, v[0]:item() + 1)) end)(vector(0.0, 0.0)):tolist(),
    { 1.0, 1.0 })
end)

t.test("infinite operands and fills", function()
  local inf = math.huge
  t.equal(ms.grad(function(a) return ops.sum(ops.leaky_relu(vector(inf, -2.0), a)["1:"]):item() end)(0.5), -2.0)
  t.equal(ms.grad(function(a) return ops.sum(ops.pad(vector(inf), { 1, 0 }, "constant", a)["0:1"]):item() end)(0.5), 1.0)
  t.equal(ms.grad(function(a) return ops.sum(ops.elu(vector(900.0, -1.0), a)):item() end)(0.5), math.exp(-1) - 1, 1e-12)
end)

check("add_layer_norm", function(e) return ops.add_layer_norm(rows * e, rows, gain, shift, e) end)
check("add_rms_norm", function(e)
  local normal, rstd, sum = ops.add_rms_norm(rows * e, rows, gain, { eps = e * e })
  return ops.concat({ normal:reshape({ -1 }), rstd:reshape({ -1 }), sum:reshape({ -1 }) }, 0)
end)
check("var", function(c) return ops.var(rows * c, 1, c) end)
check("var of all by name", function(c) return ops.var(rows, { correction = c * c }) end)
check("std", function(c) return ops.std(rows * c, { 0, 1 }, c, true) end)
check("std as a method", function(c) return rows:std(0, c) end)
check("var_mean", function(c) return ops.concat({ ops.var_mean(rows * c, 1, c) }, 0) end)
check("std_mean", function(c) return ops.concat({ ops.std_mean(rows * c, 0, { ddof = c }) }, 0) end)
local special = vector(0 / 0, 1 / 0, -1 / 0, 2.0, 1 / 0)
check("nan_to_num", function(a) return ops.nan_to_num(special, a, a * a, a ^ 3) end)
check("nan_to_num by name", function(a) return ops.nan_to_num(special, { posinf = a, neginf = vector(a, a, 3, a, a) }) end)
check("heaviside", function(a) return ops.heaviside(vector(-1, 0, 2, 0), a * a) end)
check("heaviside of a tensor", function(a) return ops.heaviside(vector(-1, 0, 2, 0), vector(1, 2, 3, 4) * a) end)
local labels = ms.tensor { 1, 0, 2, 7 }
check("one_hot", function(a) return ops.one_hot(labels, 3, vector(a), vector(a * a), 0) end)
check("one_hot by name", function(a) return ops.one_hot(labels, 3, { on_value = vector(a * 2) }) * a end)
t.test("one_hot of numbers", function()
  local slope = ms.grad(function(a) return ops.sum(ops.one_hot(labels, 3, a, 3 * a)):item() end)
  t.equal(slope(0.5), 3.0 + 3 * 9)
end)
check("bincount", function(a) return ops.bincount(labels, vector(1, 2, 3, 4) * a * a, 9) end)
check("draws of gamma divided", function(b)
  ms.set_seed(3)
  return ops.gamma({ 5 }, 2.0) / (vector(1.0) * b)
end)

t.test("what depends on its operands in a way that is not known is refused", function()
  local function fails(name, reason, f)
    t.fails({ "grad_attributes_test.lua:", name .. ": has no gradient with respect to", reason, "ms.stop_gradient" },
      ms.grad(function(v) return ops.sum(f(v)):item() end), vector(1.0, 2.0, 1.0, 0.5))
  end
  fails("unique", "which elements are kept", function(v) return (ops.unique(v)) end)
  fails("unique_consecutive", "which elements are kept", function(v) return (ops.unique_consecutive(v)) end)
  fails("unique_with_pad", "which elements are kept", function(v) return (ops.unique_with_pad(v, 0.0)) end)
  fails("gamma", "the draws are not differentiated", function(v) return ops.gamma({ 4 }, v) end)
  fails("random_gamma", "the draws are not differentiated", function(v) return ops.random_gamma({ 4 }, v) end)
  fails("geqrf", "use qr", function(v)
    local packed = ops.geqrf(v:reshape({ 2, 2 }))
    return packed
  end)
  -- Where nothing is followed they do what they do.
  t.near(ms.grad(function(v)
    local found = ops.unique(ms.stop_gradient(v))
    return ops.sum(v) * ops.sum(found)
  end)(vector(1.0, 2.0, 1.0, 0.5)), vector(3.5, 3.5, 3.5, 3.5), 1e-12)
end)

t.test("integers have no gradient", function()
  t.equal(ms.grad(function(a) return a * ops.sum(ops.full({ 3 }, a, ms.int32)):item() end)(2.5), 6.0)
  t.equal(ms.grad(function(a) return a * ops.sum(ops.arange(a)):item() end)(2.5), 3.0)
end)

t.test("what has no derivative is refused, and what is wrong is said of the operator", function()
  local where = "grad_attributes_test.lua:"
  t.fails({ "vector_norm: has no gradient with respect to 'ord' at 0", where }, ms.grad(function(p)
    return ops.sum(ops.vector_norm(x, p)):item()
  end), 0.0)
  t.fails({ "norm: has no gradient with respect to 'ord' of a matrix norm", where }, ms.grad(function(p)
    return ops.norm(rows, p):item()
  end), 2.0)
  t.fails({ "norm: ord must be", where }, ms.grad(function(p) return ops.norm(rows, p):item() end), 3.0)
  t.fails({ "cdist: p must be at least 0", where }, ms.grad(function(p)
    return ops.sum(ops.cdist(rows, others, p)):item()
  end), -1.0)
  t.fails({ "has no gradient with respect to 'p'", where }, ms.grad(function(p)
    return ops.sum(ops.dropout(x, p)):item()
  end), 0.5)
  t.fails({ "full: ", where }, ms.grad(function(a) return ops.sum(ops.full({ -2 }, a)):item() end), 0.5)
  t.fails({ "huber_loss: delta must be positive", where }, ms.grad(function(a)
    return ops.huber_loss(x, y, { delta = a }):item()
  end), -0.5)
  t.fails({ "cross_entropy: label_smoothing must be in 0 .. 1", where }, ms.grad(function(a)
    return ops.cross_entropy(m, ms.tensor { 0, 1 }, { label_smoothing = a }):item()
  end), 1.5)
end)

-- Of every operator: a number that item() reads, which is differentiated, beside halves in the place of an operand or of an
-- attribute. Its value is the one of the undifferentiated function, to the bit.
t.test("numbers beside halves are as exact under grad as without", function()
  local tried, left_out = 0, { gumbel_softmax = true }
  local function compare(name, f, v, o)
    local function forward(a, b)
      local result = f(a, b)
      return ops.sum(result), result
    end
    local fine, result = pcall(f, v, o)
    if not fine or not ms.is_tensor(result) then return end
    local derived, values = pcall(ms.value_and_grad(forward, { 0, 1 }, nil, true), v, o)
    if not derived or not ms.is_tensor(values[2]) then return end
    tried = tried + 1
    t.equal({ name, values[2].dtype, values[2] }, { name, result.dtype, result })
  end
  for _, dtype in ipairs { ms.float16, ms.bfloat16 } do
    local o = ms.tensor({ 3.001, 1.7 }, dtype)
    local samples = { ms.tensor({ 0.1, 1.7 }, dtype), ms.tensor({ { 0.1, 1.7 }, { 0.3, 0.4 } }, dtype) }
    local function number(b) return b[1]:item() - 1.31 end
    for _, v in ipairs(samples) do
      compare("*", function(a, b) return a * (number(b) + 1.3) end, v, o)
      compare("^", function(a, b) return a ^ (number(b) + 1.3) end, v, o)
      compare("number / tensor", function(a, b) return number(b) / a end, v, o)
      for _, entry in ipairs(require("lunaria.registry").entries()) do
        for i, parameter in ipairs(entry.parameters) do
          local kind = parameter.type
          if i > 1 and (kind == "number" or kind == "scalar") and not left_out[entry.name] then
            compare(entry.name .. ": " .. parameter.name, function(a, b)
              return ops[entry.name](a, { [parameter.name] = number(b) })
            end, v, o)
          elseif i == 2 and (kind == "same" or kind == "real") then
            compare(entry.name, function(a, b) return ops[entry.name](a, number(b)) end, v, o)
            compare(entry.name, function(a, b) return ops[entry.name](number(b), a) end, v, o)
          end
        end
      end
    end
  end
  assert(tried > 200, tried)
end)

t.test("integers are compared with numbers that are differentiated as with others", function()
  local whole = ms.tensor({ 16777216, 16777217, (1 << 53) + 1 }, ms.int64)
  for _, other in ipairs { 16777217.0, 16777216.5, 2.0 ^ 53, -0.5 } do
    for _, name in ipairs { "greater", "less_equal", "equal", "not_equal" } do
      local function f(a)
        local mask = ops[name](whole, a[0]:item())
        return ops.sum(a), mask
      end
      local number = ms.tensor({ other }, ms.float64)
      local _, wanted = f(number)
      local values = ms.value_and_grad(f, 0, nil, true)(number)
      t.equal({ other, name, values[2] }, { other, name, wanted })
    end
  end
end)

-- tonumber(tostring(k)) and the probability of dropout refuse a number that depends on what is differentiated.
t.test("a plain number in a closure that captures what is followed is not followed", function()
  local programs = {
    function(v) local k = 2.5 return (function() return v * tonumber(tostring(k)) end)() end,
    function(v) local k = 0.5 return (function() return ops.dropout(v * 2.5, k - 0.5) end)() end,
    function(v)
      local first, k = v[0]:item(), 2.5
      local function inner() return function() return v * tonumber(tostring(k)) + 0 * first end end
      return inner()()
    end,
    function(v)
      local k = 1.5
      local function f(u, left) if left == 0 then return u * tonumber(tostring(k)) + v end return f(u + 0 * v, left - 1) end
      return f(v, 3)
    end,
    function(v)
      local fs, sum = {}, 0
      for i = 1.0, 2 do fs[#fs + 1] = function() return v * (tonumber(tostring(i)) - 0.25) end end
      for _, f in ipairs(fs) do sum = sum + f() end
      return sum
    end,
    function(v) return ms.vmap(function(u) local k = 2.5 return (function() return u * tonumber(tostring(k)) end)() end)(v) end,
  }
  for i, f in ipairs(programs) do
    local function total(v) return ops.sum(f(v) * w) end
    local gradient = ms.grad(total)
    for _, g in ipairs { gradient, ms.jit(gradient) } do
      for _ = 1, 3 do t.near(g(x), w * 2.5, 1e-12, "program " .. i) end
    end
    t.near(ms.grad(function(v) return ops.sum(gradient(v) * v) end)(x), w * 2.5, 1e-12, "program " .. i)
  end
end)

t.finish()
