-- Forms that read well beside those of MindSpore: a network and its loss, parts by axis, weights under other names, bias. 1 s.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local nn, ops = ms.nn, ms.ops

local function network() return nn.SequentialCell(nn.Dense(3, 4), nn.Tanh(), nn.Dense(4, 2)) end

t.test("the loss of a network is differentiated by its parameters", function()
  ms.set_seed(1)
  local net, loss = network(), nn.MSELoss()
  local x, y = ops.randn { 5, 3 }, ops.randn { 5, 2 }
  local short = ms.value_and_grad(net, loss)
  local long = ms.value_and_grad(function(a, b) return loss(net(a), b) end, nil, net:trainable_params())
  local only = ms.grad(net, loss)
  for _ = 1, 4 do
    local value, grads = short(x, y)
    local other_value, other_grads = long(x, y)
    t.equal(value:tolist(), other_value:tolist())
    t.equal(#grads, 4)
    for i, g in ipairs(grads) do
      t.equal(g:tolist(), other_grads[i]:tolist())
      t.equal(only(x, y)[i]:tolist(), g:tolist())
    end
  end
end)

t.test("weights are named, the loss may be an operator, a network may have several inputs", function()
  ms.set_seed(2)
  local net = network()
  local x, labels = ops.randn { 5, 3 }, ms.tensor({ 0, 1, 1, 0, 1 }, ms.int32)
  local value, grad = ms.value_and_grad(net, ops.cross_entropy, { weights = net[1].weight })(x, labels)
  t.equal(grad.shape, { 4, 3 })
  t.equal(value:item(), ops.cross_entropy(net(x), labels):item())
  local Two = nn.Cell:extend("Two")
  function Two:init() self.fc = nn.Dense(3, 2) end
  function Two:construct(a, b) return self.fc(a) * b end
  local two, b, y = Two(), ops.randn { 5, 2 }, ops.randn { 5, 2 }
  local loss, grads = ms.value_and_grad(two, nn.MSELoss())(x, b, y)
  t.equal(loss:item(), nn.MSELoss()(two(x, b), y):item())
  t.equal(#grads, 2)
  local aux, _ = ms.value_and_grad(two, function(z, w) return ops.mean((z - w) ^ 2), z end, { has_aux = true })(x, b, y)
  t.equal(aux[2]:tolist(), two(x, b):tolist())
  t.fails("grad: of a network and a loss, the network must be a cell, got a function", ms.grad, function() end, nn.MSELoss())
  t.fails("there is no option 'weight'", ms.value_and_grad, two, nn.MSELoss(), { weight = 1 })
end)

t.test("x:at takes an index for each axis", function()
  local x = ops.arange(24):reshape(2, 3, 4)
  local function parts(a)
    return a:at(":", -1), a:at(1, "1:", ms.slice(0, 2)), a:at(0), a:at("...", 1), a:at({ 1, 0 }, 2)
  end
  for _ = 1, 4 do
    local a, b, c, d, e = parts(x)
    t.equal(a:tolist(), x[":, -1"]:tolist())
    t.equal(b:tolist(), { { 16, 17 }, { 20, 21 } })
    t.equal(c:tolist(), x[0]:tolist())
    t.equal(d:tolist(), { { 1, 5, 9 }, { 13, 17, 21 } })
    t.equal(e:tolist(), { { 20, 21, 22, 23 }, { 8, 9, 10, 11 } })
  end
  local last = ms.grad(function(v) return ops.sum(v:at(":", -1) ^ 2) end)
  t.equal(last(ms.tensor { { 1.0, 2.0 }, { 3.0, 4.0 } }):tolist(), { { 0, 4 }, { 0, 8 } })
  t.fails({ "at: an index is expected, got none", "x:at" }, x.at, x)
  t.fails({ "at: index 2 is nil", "a whole axis is" }, x.at, x, 0, nil, 1)
end)

t.test("bias is another name of has_bias in all layers that have it", function()
  local count = 0
  for name, class in pairs(nn) do
    local signature = type(class) == "table" and rawget(class, "_signature")
    if signature and signature.has_bias then
      count = count + 1
      t.equal(signature.bias.name, "has_bias", name)
    end
  end
  assert(count > 8, count)
  t.equal(nn.Dense(2, 3, { bias = false }).has_bias, false)
  t.equal(nn.Conv2d(1, 2, 3, { bias = true }).has_bias, true)
  t.equal(#nn.LSTM(2, 3, { bias = false }):trainable_params(), 2)
  t.fails("Dense: has_bias is given twice", nn.Dense, 2, 3, { bias = false, has_bias = true })
  t.fails("has_bias must be true or false, got 1", nn.Dense, 2, 3, { bias = 1 })
end)

t.test("weights under other names", function()
  local path = os.tmpname() .. ".safetensors"
  local first = network()
  local values = {}
  for name, p in pairs(first:parameters_dict()) do values["module." .. name:gsub("weight", "kernel")] = p end
  values["module.step"] = ms.tensor(3.0)
  ms.save(path, values)
  local function same(net)
    for name, p in pairs(net:parameters_dict()) do t.equal(p:tolist(), first:parameters_dict()[name]:tolist()) end
  end
  local rules = { { "^module%.", "" }, { "kernel$", "weight" } }
  local net = network()
  t.equal({ ms.load_weights(net, path, { rename = rules }) }, { {}, { "step" } })
  same(net)
  net = network()
  rules[3] = { "^step$", false }
  t.equal({ ms.load_weights(net, path, { rename = rules, strict_load = true }) }, { {}, {} })
  same(net)
  net = network()
  t.equal({ ms.load_weights(net, ms.load(path), { rename = function(name)
    if name:find "step" then return nil end
    return (name:gsub("^module%.", ""):gsub("kernel", "weight"))
  end }) }, { {}, {} })
  same(net)
  ms.save(path, first:parameters_dict())
  net = network()
  ms.load_weights(net, path)
  same(net)
  t.fails("both become weight", ms.load_weights, net, { a = ms.ones { 1 }, b = ms.ones { 1 } }, { rename = { { "^.$", "weight" } } })
  t.fails("rename[1] must be { pattern, what it becomes }, got the string 'x'", ms.load_weights, net, path, { rename = { "x" } })
  t.fails("net must be a cell", ms.load_weights, path, net)
  t.fails("there is no option 'renames'", ms.load_weights, net, path, { renames = {} })
  os.remove(path)
end)

t.test("the remedy of an error that was caught", function()
  local _, problem = pcall(function() return ms.flaot16 end)
  t.equal(type(problem), "string")
  t.equal(ms.hint(problem), "did you mean 'float16'?")
  local _, of_lua = pcall(load "local t = {} return t.x.y", nil)
  t.equal(ms.hint(of_lua), "x is nil: is it misspelt, or set further down?")
  t.equal(ms.hint("some text"), nil)
  local _, of_loop = pcall(load "for i in 3 do end")
  t.equal(ms.hint(of_loop), "a loop over numbers is: for i = 0, n - 1 do ... end")
  local _, of_try = pcall(load "try { 1 }")
  t.equal(ms.hint(of_try), "errors are caught by: local ok, problem = pcall(function() ... end)")
  local _, of_length = pcall(load "local a = { 1 } return a.length()")
  t.equal(ms.hint(of_length), "the length of a table or a text is #t, of a tensor #x")
  local _, of_device = pcall(function() return ms.ones({ 2 }):to("cuda") end)
  t.equal(ms.hint(of_device), 'a tensor goes to that device by x:to "GPU"')
  t.equal(ms.hint({}), nil)
end)

t.finish()
