-- vmap in one run: what it gives is what a loop over the samples gives, and what the function does besides computing is
-- done as in a loop.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local nn = require "lunaria.nn"
local core = require "lunaria.autodiff"
local ops = ms.ops

ms.set_seed(3)

local function loop(f, axes, ...)
  local arguments, columns = { ... }, {}
  local count
  for k, x in ipairs(arguments) do
    if axes[k] ~= false then count = x.shape[1] end
  end
  for i = 0, count - 1 do
    local call = {}
    for k, x in ipairs(arguments) do call[k] = axes[k] == false and x or x[i] end
    local results = table.pack(f(table.unpack(call)))
    for r = 1, results.n do
      columns[r] = columns[r] or {}
      columns[r][i + 1] = ms.is_tensor(results[r]) and results[r] or ms.tensor(results[r])
    end
  end
  for r = 1, #columns do columns[r] = ops.stack(columns[r], 0) end
  return table.unpack(columns)
end

-- Whether vmap takes f in one run.
local function in_one_run(f, x, ...)
  local results = table.pack(core.batch(x.shape[1], f, x, ...))
  return results[results.n], results[1]
end

local function agrees(name, f, axes, ...)
  local arguments = table.pack(...)
  t.test(name, function()
    local got, want = table.pack(ms.vmap(f, axes)(table.unpack(arguments))), table.pack(loop(f, axes, table.unpack(arguments)))
    t.equal(got.n, want.n)
    for k = 1, got.n do
      t.equal(got[k].dtype, want[k].dtype)
      t.near(got[k]:tolist(), want[k]:tolist(), 2e-5)
    end
    local mapped = true
    for k = 1, arguments.n do mapped = mapped and axes[k] ~= false end
    if not mapped then return end
    -- A function that is compiled is watched already.
    local mode = ms.get_context("mode")
    ms.set_context { mode = ms.PYNATIVE_MODE }
    assert(in_one_run(f, table.unpack(arguments)))
    ms.set_context { mode = mode }
  end)
end

local x, y = ops.randn { 5, 4, 3 }, ops.randn { 5, 4, 3 }
local w = ops.randn { 3, 2 }

agrees("elements", function(a) return ops.tanh(a) * 2 + a ^ 2 end, { 0 }, x)
agrees("broadcast against other ranks", function(a, b) return a * b[0] + b end, { 0, 0 }, x, y)
agrees("with a matrix of all samples", function(a) return ops.matmul(a, w) + a[0][1] end, { 0 }, x)
agrees("vectors times matrices", function(a, b) return ops.matmul(a[0], b:t()), ops.matmul(b, a[1]), ops.dot(a[0], b[0]) end,
  { 0, 0 }, x, y)
agrees("reductions", function(a) return ops.sum(a), ops.mean(a, 0), ops.amax(a, -1), ops.argmax(a), ops.std(a), ops.prod(a[0][0]) end,
  { 0 }, x)
agrees("shapes", function(a)
  return ops.reshape(a, { -1 }), a:t(), ops.expand_dims(a, 1), ops.stack({ a, a * 2 }, 1), ops.concat({ a, y[0] }, -1)
end, { 0 }, x)
-- Every operator with a list of axes, without any: for some that means none, for others all.
t.test("no axes are as many for each sample", function()
  local registry, missing = require "lunaria.registry", {}
  local input, tried = ops.randn { 3, 2, 4 }, 0
  for _, entry in ipairs(registry.entries()) do
    local list = entry.parameters[2]
    for i, parameter in ipairs(entry.parameters) do
      local is_axes = parameter.type == "ints" or parameter.type == "shape"
      local names = parameter.name .. " " .. table.concat(parameter.other_names or {}, " ")
      if is_axes and i > 1 and (names:find "axis" or names:find "dim" or names:find "axes") then list = parameter end
    end
    if list and (list.type == "ints" or list.type == "shape") and entry.parameters[1].name ~= "size" then
      local f = function(v) return (ops[entry.name](v, { [list.name] = {} })) end
      local alone, one = pcall(f, input[0])
      if alone and ms.is_tensor(one) then
        tried = tried + 1
        local samples = {}
        for k = 1, 3 do samples[k] = f(input[k - 1]) end
        local ok, all = pcall(ms.vmap(f), input)
        if not ok or tostring(all) ~= tostring(ops.stack(samples, 0)) then missing[#missing + 1] = entry.name .. " " .. tostring(all) end
      end
    end
  end
  t.equal(missing, {})
  assert(tried >= 12, tried)
end)

agrees("parts", function(a) return a[1], a["1:3, ::2"], a[{ 0, 1 }], a["..., -1"], ops.flip(a, { 1 }), ops.roll(a, 1, 0) end, { 0 }, x)
agrees("choices", function(a, b) return ops.where(ops.greater(a, b), a, b), ops.maximum(a, b), ops.sort(a, 0) end, { 0, 0 }, x, y)
agrees("softmax and losses", function(a, b)
  return ops.softmax(a, 0), ops.log_softmax(a), ops.mse_loss(a, b), ops.layer_norm(a, { 3 }), ops.kl_div(ops.log_softmax(a), ops.softmax(b))
end, { 0, 0 }, x, y)
agrees("indices", function(a, i) return a[0], ops.gather(a, i, 1), ops.gather(y[0], i, 0), ops.one_hot(i, 4, 1.0, 0.0) end, { 0, 0 }, x,
  ops.randint(0, 3, { 5, 2 }))
agrees("an argument that all samples share", function(a, b) return ops.matmul(a, b) end, { 0, false }, x, w)
agrees("a result that all samples share", function(a) return ops.ones { 2 }, ops.sum(w), ops.sum(a) end, { 0 }, x)
agrees("control flow by shapes and numbers", function(a)
  local s = ops.zeros { 3 }
  for i = 0, a.shape[1] - 1 do
    if i % 2 == 0 then s = s + a[i] else s = s * a[i] end
  end
  local list = {}
  for i, row in ipairs { a[0], a[1] } do table.insert(list, row * i) end
  return s, ops.stack(list)
end, { 0 }, x)
agrees("operators without a rule, one sample after the other", function(a) return ops.searchsorted(ops.sort(a, 1), a) end, { 0 }, x)

-- Gradients.
local function mlp(w1, w2, a, label)
  local h = ops.tanh(ops.matmul(a, w1))
  return ops.cross_entropy(ops.expand_dims(ops.matmul(h, w2), 0), ops.expand_dims(label, 0))
end
local labels = ops.randint(0, 4, { 5 })
agrees("gradients of each sample", function(a, label)
  return table.unpack(ms.grad(mlp, { 0, 1 })(w, ops.ones { 2, 4 } * 0.3, a[0], label))
end, { 0, 0 }, x, labels)
agrees("gradients of gradients", ms.grad(function(a) return ops.sum(ms.grad(function(b) return ops.sum(b:tanh() * b) end)(a) ^ 2) end),
  { 0 }, x)
agrees("jacobians", ms.jacrev(function(a) return ops.matmul(a, w):tanh() end), { 0 }, x)
agrees("norms, embeddings and attention", ms.grad(function(a)
  local table_of = ops.embedding(ops.arange(4), a)
  local scores = ops.softmax(ops.matmul(table_of, table_of:t()), -1)
  return ops.sum(ops.layer_norm(ops.matmul(scores, a), { 3 }, a[0], a[1]) ^ 3)
end), { 0 }, x)
local images, kernel = ops.randn { 3, 2, 1, 8, 8 }, ops.randn { 4, 1, 3, 3 }
agrees("convolution and pooling", function(image)
  local function of(k) return ops.sum(ops.max_pool2d(ops.relu(ops.conv2d(image, k)), 2, 2) ^ 2) end
  return of(kernel), ms.grad(of)(kernel), ops.avg_pool2d(image, 2, 2)
end, { 0 }, images)
agrees("networks", (function()
  local net = nn.SequentialCell { nn.Dense(3, 8), nn.ReLU(), nn.Dense(8, 2) }
  return function(a) return net(a), ms.grad(function(b) return ops.sum(net(b)) end)(a) end
end)(), { 0 }, x)

t.test("axes and tables", function()
  local f = ms.vmap(function(p) return { sum = p.a + p.b, { p.a * 2 } } end, { 1 }, 1)
  local r = f { a = x:sum(2):t(), b = y:sum(2):t() }
  t.near(r.sum:tolist(), (x:sum(2) + y:sum(2)):t():tolist(), 1e-5)
  t.near(r[1][1]:tolist(), (x:sum(2) * 2):t():tolist(), 1e-5)
end)
t.test("vmap of vmap", function()
  local f = ms.vmap(ms.vmap(function(a, b) return ops.sum(a * b) + a[0] end))
  t.near(f(x, y):tolist(), (ops.sum(x * y, -1) + x["..., 0"]):tolist(), 1e-5)
  local outer = ms.vmap(function(a) return ms.vmap(function(b) return ops.matmul(b, a:t()) end)(a * 2) end)
  t.near(outer(x):tolist(), ops.matmul(x * 2, ops.transpose(x, { 0, 2, 1 })):tolist(), 1e-5)
end)
t.test("gradients through vmap", function()
  local g = ms.grad(function(a) return ops.sum(ms.vmap(function(b) return ops.sum(b * b) end)(a)) end)(x)
  t.near(g:tolist(), (x * 2):tolist(), 1e-5)
end)

-- Effects and decisions.
t.test("decisions by elements are made for each sample", function()
  local f = function(a) if ops.sum(a):item() > 0 then return a * 2 else return a - 1 end end
  t.near(ms.vmap(f)(x):tolist(), loop(f, { 0 }, x):tolist())
  t.equal((in_one_run(f, x)), false)
end)
t.test("effects happen for each sample, and once", function()
  local calls, seen, total = 0, {}, ops.zeros { 3 }
  local f = ms.vmap(function(a)
    calls = calls + 1
    seen[#seen + 1] = a.shape[1]
    total["..."] = total + a[0]
    return a * 2
  end)
  f(x)
  t.equal({ calls, #seen }, { 5, 5 })
  t.near(total:tolist(), x["..., 0, :"]:sum(0):tolist(), 1e-5)
end)
t.test("what is computed before an effect is computed anew", function()
  local log = {}
  ms.vmap(function(a)
    local s = ops.sum(a)
    log[#log + 1] = s:item()
    return s
  end)(x)
  t.near(log, x:sum({ 1, 2 }):tolist(), 1e-5)
end)
t.test("errors name the sample's types and the line", function()
  local f = ms.vmap(function(a) return ops.matmul(a, ops.ones { 7, 2 }) end)
  t.fails({ "vmap_test.lua:", "(4, 3)", "(7, 2)" }, f, x)
  t.fails({ "no error here" }, ms.vmap(function() error "no error here" end), x)
end)
t.test("random numbers are those of a loop", function()
  local f = function(a) return a + ops.randn { 3 } end
  for _, g in ipairs { f, function(a) return f(a) * ops.rand { 3 } end, function(a) return ops.dropout(a, 0.5, true) end } do
    ms.set_seed(7)
    local got = ms.vmap(g)(x)
    local after = ops.randn { 2 }
    ms.set_seed(7)
    t.near(got:tolist(), loop(g, { 0 }, x):tolist())
    t.near(after:tolist(), ops.randn { 2 }:tolist())
  end
  -- Also where the first run does not tell the form of the results.
  ms.set_seed(7)
  local got = ms.vmap(function(a) return { f(a) } end)(x)[1]
  local after = ops.randn { 2 }
  ms.set_seed(7)
  t.near(got:tolist(), loop(f, { 0 }, x):tolist())
  t.near(after:tolist(), ops.randn { 2 }:tolist())
end)
t.test("protected calls meet the errors of each sample", function()
  local f = ms.vmap(function(a)
    local ok, e = pcall(function() if a[0][0]:item() > 0 then error "positive" end return 1.0 end)
    return ok and a or a * (e and 0 or 1)
  end)
  for i = 0, 4 do
    local row = f(x)[i]
    t.near(row:tolist(), (x[i][0][0]:item() > 0 and x[i] * 0 or x[i]):tolist())
  end
end)
t.test("tables of samples become tensors for each sample", function()
  local f = function(a) return ms.tensor { a[0][0]:item(), 1.0 } end
  t.near(ms.vmap(f)(x):tolist(), loop(f, { 0 }, x):tolist())
end)
t.test("most operators have a rule", function()
  local with_rule, all = core.count_batch_rules()
  print(("%d of %d operators have a rule or are made of such"):format(with_rule, all))
  t.equal(with_rule > 400, true)
end)

t.finish()
