-- Cells and layers: how networks are written, named, printed, switched and asked for their parameters.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local nn, ops = ms.nn, ms.ops

local Net = nn.Cell:extend("Net")
function Net:init(hidden)
  self.fc1 = nn.Dense(4, hidden)
  self.relu = nn.ReLU()
  self.fc2 = nn.Dense(hidden, 2, { has_bias = false })
  self.scale = ms.Parameter(ms.tensor { 2.0 })
end
function Net:construct(x)
  return self.fc2(self.relu(self.fc1(x))) * self.scale
end

local function names(list)
  local result = {}
  for i, parameter in ipairs(list) do result[i] = parameter.name end
  return result
end

t.test("a class of cells computes what construct says", function()
  local net = Net(3)
  local x = ops.ones({ 5, 4 })
  local hidden = ops.relu(ops.matmul(x, net.fc1.weight.T) + net.fc1.bias)
  t.near(net(x), ops.matmul(hidden, net.fc2.weight.T) * 2, 1e-6)
end)

t.test("parameters have dotted names, own ones first", function()
  local net = Net(3)
  t.equal(names(net:trainable_params()), { "scale", "fc1.weight", "fc1.bias", "fc2.weight" })
  local paths = {}
  for name, parameter in net:parameters_and_names() do
    t.equal(name, parameter.name)
    paths[#paths + 1] = name
  end
  t.equal(#paths, 4)
  assert(rawequal(net:parameters_dict()["fc1.bias"], net.fc1.bias))
  local outer = nn.SequentialCell(net, nn.ReLU())
  t.equal(names(outer:get_parameters()), { "0.scale", "0.fc1.weight", "0.fc1.bias", "0.fc2.weight" })
end)

t.test("a parameter keeps the name that it was given at its own level", function()
  local cell = nn.Cell()
  cell.w = ms.Parameter(ms.tensor { 1.0 }, { name = "special" })
  cell.v = ms.Parameter(ms.tensor { 1.0 })
  t.equal(names(cell:get_parameters()), { "special", "v" })
end)

t.test("a field that gets another parameter or cell is noticed", function()
  local net = Net(3)
  net.fc1 = nn.Dense(4, 3)
  net.relu = nil
  net.scale = ms.Parameter(ms.tensor { 1.0 })
  t.equal(names(net:get_parameters()), { "scale", "fc1.weight", "fc1.bias", "fc2.weight" })
  net.scale = 3.0
  net.fc2 = "nothing"
  t.equal(names(net:get_parameters()), { "fc1.weight", "fc1.bias" })
end)

t.test("a shared parameter is listed once", function()
  local cell = nn.Cell()
  cell.embedding = nn.Embedding(5, 3)
  cell.head = nn.Dense(3, 5, { has_bias = false })
  cell.head.weight = cell.embedding.embedding_table
  t.equal(names(cell:get_parameters()), { "embedding.embedding_table" })
end)

t.test("parameters that are not trained are told apart", function()
  local net = nn.SequentialCell { nn.Dense(2, 3), nn.BatchNorm1d(3) }
  t.equal(names(net:trainable_params()), { "0.weight", "0.bias", "1.gamma", "1.beta" })
  t.equal(names(net:untrainable_params()), { "1.moving_mean", "1.moving_variance" })
  net[1].weight.requires_grad = false
  t.equal(#net:trainable_params(), 3)
end)

t.test("a cell without a class has construct as a field", function()
  local cell = nn.Cell()
  function cell:construct(x, y) return x + y, self.training end
  local sum, training = cell(1, 2)
  t.equal(sum, 3)
  t.equal(training, false)
  t.fails({ "no construct method" }, function() nn.Cell()(1) end)
end)

t.test("a class can extend a class of the library", function()
  local Scaled = nn.Dense:extend("Scaled")
  function Scaled:init(n, factor)
    nn.Dense.init(self, n, n, { weight_init = "ones", has_bias = false })
    self.factor = factor
  end
  function Scaled:construct(x) return nn.Dense.construct(self, x) * self.factor end
  local cell = Scaled(2, 10)
  t.equal(cell(ms.tensor { { 1.0, 2.0 } }):tolist(), { { 30.0, 30.0 } })
  t.equal(tostring(cell), "Scaled<input_channels=2, output_channels=2>")
end)

t.test("printing shows the tree", function()
  t.equal(tostring(Net(3)), [[
Net<
  (fc1): Dense<input_channels=4, output_channels=3, has_bias=true>
  (relu): ReLU<>
  (fc2): Dense<input_channels=3, output_channels=2>
  >]])
  t.equal(tostring(nn.SequentialCell(nn.SequentialCell(nn.Tanh()))), [[
SequentialCell<
  (0): SequentialCell<
    (0): Tanh<>
    >
  >]])
end)

t.test("set_train reaches every cell", function()
  local net = nn.SequentialCell(nn.Dropout { p = 0.5 }, nn.SequentialCell(nn.Dropout(0.5)))
  local x = ops.ones({ 100 })
  t.equal(net(x):sum():item(), 100.0)
  assert(net:set_train() == net)
  for _, cell in net:cells_and_names() do t.equal(cell.training, true) end
  t.equal(net(x):min():item(), 0.0)
  net:set_train(false)
  t.equal(net[2][1].training, false)
end)

t.test("lists of cells count from 1 and grow", function()
  local list = nn.CellList(nn.Dense(1, 1), nn.Dense(1, 2))
  list:append(nn.Dense(1, 3)):extend { nn.Dense(1, 4) }:insert(1, nn.Dense(1, 5))
  t.equal(#list, 5)
  local sizes = {}
  for i, cell in ipairs(list) do sizes[i] = cell.out_channels end
  t.equal(sizes, { 5, 1, 2, 3, 4 })
  t.equal(names(list:get_parameters())[1], "0.weight")
  t.equal(names(list:get_parameters())[10], "4.bias")
  t.fails({ "CellList", "argument 2", "3" }, nn.CellList, nn.ReLU(), 3)
  t.fails({ "is a list" }, list, 1)
  local dictionary = nn.CellDict { b = nn.ReLU(), a = nn.Dense(1, 1) }
  t.equal(names(dictionary:get_parameters()), { "a.weight", "a.bias" })
end)

t.test("cells give their parts", function()
  local net = Net(3)
  t.equal(#net:cells(), 3)
  assert(net:name_cells().fc1 == net.fc1)
  local found = {}
  for name in nn.SequentialCell(net):cells_and_names() do found[#found + 1] = name end
  t.equal(found, { "", "0", "0.fc1", "0.relu", "0.fc2" })
  local count = 0
  net:apply(function() count = count + 1 end)
  t.equal(count, 4)
  net:insert_param_to_cell("extra", ms.Parameter(1.0))
  t.equal(net.extra.name, "extra")
  net:update_parameters_name("net.")
  t.equal(net.fc1.weight.name, "net.fc1.weight")
end)

t.test("initial values follow the defaults", function()
  ms.set_seed(3)
  local dense = nn.Dense(400, 300)
  local bound = 1 / math.sqrt(400)
  assert(dense.weight:max():item() <= bound and dense.weight:max():item() > 0.95 * bound)
  assert(dense.bias:min():item() >= -bound)
  local table_ = nn.Embedding(500, 40).embedding_table
  t.near(table_:std():item(), 0.01, 5e-4)
  t.equal(nn.Embedding(5, 2, { padding_idx = 1 }).embedding_table[1]:tolist(), { 0.0, 0.0 })
  t.equal(nn.LayerNorm({ 3 }).gamma:tolist(), { 1.0, 1.0, 1.0 })
end)

t.test("initializers have the deviation that they promise", function()
  ms.set_seed(5)
  local init, shape = ms.common.initializer, { 300, 200 }
  local function deviation(what, wanted)
    local x = ms.initializer(what, shape)
    t.equal(x.dtype, ms.float32)
    t.near(x:std():item() / wanted, 1, 0.02)
    t.near(x:mean():item(), 0, wanted * 0.05)
  end
  deviation("normal", 0.01)
  deviation(init.Normal(0.5), 0.5)
  deviation("uniform", 0.07 / math.sqrt(3))
  deviation("xavier_uniform", math.sqrt(2 / 500))
  deviation("xavier_normal", math.sqrt(2 / 500))
  deviation("he_uniform", math.sqrt(2 / 200))
  deviation("HeNormal", math.sqrt(2 / 200))
  deviation(init.HeNormal { mode = "fan_out", nonlinearity = "linear" }, math.sqrt(1 / 300))
  deviation(init.VarianceScaling(2.0), math.sqrt(2 / 200))
  deviation(init.TruncatedNormal(0.02), 0.02 * 0.87962566)
  assert(ms.initializer("truncatedNormal", shape):abs():max():item() <= 0.02)
  t.equal(ms.initializer("ones", { 2 }, ms.float16).dtype, ms.float16)
  t.equal(ms.initializer(2.5, { 2 }):tolist(), { 2.5, 2.5 })
  t.equal(ms.initializer(ms.tensor { 1, 2 }, { 2 }):tolist(), { 1, 2 })
  for _, s in ipairs { { 4, 9 }, { 9, 4 }, { 4, 3, 3 } } do
    local q = ms.initializer("orthogonal", s):reshape({ s[1], -1 })
    local gram = s[1] <= q.shape[2] and ops.matmul(q, q.T) or ops.matmul(q.T, q)
    t.near(gram, ops.eye(gram.shape[1]), 1e-5)
  end
  t.fails({ "he_unform", "did you mean" }, ms.initializer, "he_unform", { 2, 2 })
  t.fails({ "two axes" }, ms.initializer, "he_uniform", { 2 })
  t.fails({ "(2,)", "(3)" }, ms.initializer, ms.tensor { 1, 2 }, { 3 })
end)

t.test("arguments go by position and by name", function()
  local a = nn.Conv2d(3, 8, 3, 2, "pad", 1)
  local b = nn.Conv2d { in_channels = 3, out_channels = 8, kernel_size = 3, stride = 2, pad_mode = "pad", padding = 1 }
  t.equal(tostring(a), tostring(b))
  t.equal(a(ops.ones({ 1, 3, 8, 8 })).shape, { 1, 8, 4, 4 })
  t.fails({ "Dense", "has_bia", "did you mean 'has_bias'?" }, nn.Dense, 2, 3, { has_bia = true })
  t.fails({ "Dense", "missing argument 2: out_channels" }, nn.Dense, 2)
  t.fails({ "in_channels is given twice" }, nn.Dense, 2, 3, { in_channels = 2 })
  t.fails({ "takes at most 7 arguments, got 8" }, nn.Dense, 2, 3, nil, nil, true, nil, nil, 1)
end)

t.test("bad arguments are named with the user's line", function()
  t.fails({ "nn_test.lua", "in_channels", "negative", "-8" }, function() nn.Dense(-8, 4) end)
  t.fails({ "out_channels", "2.5" }, nn.Dense, 2, 2.5)
  t.fails({ "kernel_size", "the string 'x'" }, nn.Conv2d, 1, 1, "x")
  t.fails({ "divisible by group" }, nn.Conv2d, 3, 4, 3, { group = 2 })
  t.fails({ "padding", "pad_mode 'same'" }, nn.Conv2d, 3, 4, 3, { padding = 1 })
  t.fails({ "p must be a probability", "1.5" }, nn.Dropout, { p = 1.5 })
  t.fails({ "there is no activation", "did you mean 'relu'?" }, nn.Dense, 1, 1, { activation = "rellu" })
  t.fails({ "reduction", "'average'" }, nn.MSELoss, "average")
  t.fails({ "BatchNorm2d", "4 axes", "(2, 3)" }, nn.BatchNorm2d(3), ops.ones({ 2, 3 }))
  t.fails({ "there is no layer 'Dens'", "did you mean 'Dense'?" }, function() return nn.Dens end)
  t.fails({ "nn_test.lua", "dense", "(3, 5)" }, function() nn.Dense(4, 2)(ops.ones({ 3, 5 })) end)
end)

t.test("pooling pads as it is told", function()
  local x = ops.arange(25):astype(ms.float32):reshape({ 1, 1, 5, 5 })
  t.equal(nn.MaxPool2d(2, 2)(x).shape, { 1, 1, 2, 2 })
  t.equal(nn.MaxPool2d(2, 2, "same")(x).shape, { 1, 1, 3, 3 })
  t.equal(nn.MaxPool2d(2, 2, "same")(-x)[{ 0, 0, 2, 2 }]:item(), -24.0)
  t.equal(nn.AvgPool2d(2, 2, "same")(x)[{ 0, 0, 2 }]:tolist(), { 20.5, 22.5, 24.0 })
  t.equal(nn.AvgPool2d(2, 2)(x)[{ 0, 0, 0 }]:tolist(), { 3.0, 5.0 })
  t.equal(nn.AdaptiveAvgPool2d(1)(x):item(), 12.0)
end)

t.test("transposed convolutions multiply sizes by the stride", function()
  for _, kernel in ipairs { 1, 2, 3, 4, 5 } do
    t.equal(nn.Conv2dTranspose(1, 2, kernel, 2)(ops.ones({ 1, 1, 5, 4 })).shape, { 1, 2, 10, 8 })
  end
end)

t.test("batch statistics move the running ones", function()
  local norm = nn.BatchNorm1d(1):set_train()
  norm(ms.tensor { { 1.0 }, { 3.0 } })
  t.near(norm.moving_mean, { 0.2 })
  t.near(norm.moving_variance, { 0.9 + 0.1 * 2 })
  norm:set_train(false)
  norm(ms.tensor { { 9.0 }, { 9.0 } })
  t.near(norm.moving_mean, { 0.2 })
end)

t.test("recurrent layers run both ways, in both orders of axes, from any state", function()
  ms.set_seed(2)
  local x = ops.randn({ 5, 2, 3 })
  for _, name in ipairs { "LSTM", "GRU", "RNN" } do
    local options = { num_layers = 2, bidirectional = true }
    local net = nn[name](3, 4, options)
    local y, state = net(x)
    local h = name == "LSTM" and state[1] or state
    t.equal(y.shape, { 5, 2, 8 })
    t.equal(h.shape, { 4, 2, 4 })
    -- The last output forwards and the first one backwards are the last states of the upper layer.
    t.equal(y[{ 4, ms.slice(nil, nil), ms.slice(0, 4) }]:tolist(), h[2]:tolist())
    t.equal(y[{ 0, ms.slice(nil, nil), ms.slice(4, 8) }]:tolist(), h[3]:tolist())
    options.batch_first = true
    local other = nn[name](3, 4, options)
    for i, p in ipairs(other:get_parameters()) do p:assign(net:get_parameters()[i]) end
    t.near(ops.transpose(other(ops.transpose(x, { 1, 0, 2 })), { 1, 0, 2 }), y, 1e-6)
  end
  -- Half a sequence and then the other half is the whole.
  local gru = nn.GRU(3, 4)
  local whole, last = gru(x)
  local first, h = gru(x["0:2"])
  local second, end_ = gru(x["2:5"], h)
  t.near(ops.concat({ first, second }, 0), whole, 1e-6)
  t.near(end_, last, 1e-6)
  local relu = nn.RNN(3, 4, { nonlinearity = "relu" })
  assert(relu(x):min():item() >= 0)
  t.equal(relu.weight_ih_l0.name, "weight_ih_l0")
end)

t.test("attention of several heads hides what masks say", function()
  ms.set_seed(6)
  local net = nn.MultiheadAttention(8, 2, { batch_first = true })
  local x = ops.randn({ 2, 5, 8 })
  local out, weights = net(x, x, x)
  t.equal(weights.shape, { 2, 5, 5 })
  t.near(ops.sum(weights, -1), ops.ones({ 2, 5 }))
  t.near(net(x, x, x, nil, false), out, 1e-5)
  local causal = ops.triu(ops.ones({ 5, 5 }), 1):astype(ms.bool_)
  local masked, seen = net(x, x, x, nil, true, causal)
  t.near(ops.triu(seen[0], 1), ops.zeros({ 5, 5 }))
  t.near(masked[{ 0, 0 }], net(x["0:1, 0:1"], x["0:1, 0:1"], x["0:1, 0:1"])[{ 0, 0 }], 1e-5)
  local padding = ms.tensor({ { false, false, false, true, true }, { false, false, false, false, false } })
  local short = net(x["0:1"], x["0:1, 0:3"], x["0:1, 0:3"])
  t.near(net(x, x, x, padding)[0], short[0], 1e-5)
  local _, each = net(x, x, x, nil, true, nil, false)
  t.equal(each.shape, { 2, 2, 5, 5 })
  local other = nn.MultiheadAttention(8, 2)
  for i, p in ipairs(other:get_parameters()) do p:assign(net:get_parameters()[i]) end
  local y = ops.swapaxes(x, 0, 1)
  t.near(ops.swapaxes(other(y, y, y), 0, 1), out, 1e-5)
  t.fails({ "divisible by num_heads" }, nn.MultiheadAttention, 8, 3)
  t.fails({ "MultiheadAttention", "embed_dim (8)" }, net, x, x, ops.ones({ 2, 5, 4 }))
end)

t.test("recurrent layers say what is wrong with their input", function()
  t.fails({ "LSTM", "input_size (4), got 5" }, nn.LSTM(4, 8), ops.ones({ 2, 3, 5 }))
  t.fails({ "GRU", "three axes" }, nn.GRU(4, 8), ops.ones({ 3, 4 }))
  t.fails({ "GRU", "hx has shape (1, 3, 8)", "(1, 2, 8)" }, nn.GRU(4, 8), ops.ones({ 5, 2, 4 }), ops.ones({ 1, 3, 8 }))
  t.fails({ "table of two tensors" }, nn.LSTM(4, 8), ops.ones({ 5, 2, 4 }), ops.ones({ 1, 2, 8 }))
  t.fails({ "nonlinearity", "'cosine'" }, nn.RNN, 4, 8, { nonlinearity = "cosine" })
end)

t.test("losses agree with their formulas", function()
  local x, y = ms.tensor { 1.0, 4.0 }, ms.tensor { 2.0, 2.0 }
  t.near(nn.MSELoss()(x, y):item(), 2.5)
  t.near(nn.L1Loss("sum")(x, y):item(), 3.0)
  t.near(nn.SmoothL1Loss()(x, y), { 0.5, 1.5 })
  t.near(nn.CrossEntropyLoss()(ms.tensor { { 0.0, 0.0 } }, ms.tensor { 1 }):item(), math.log(2))
  t.near(nn.BCEWithLogitsLoss()(ms.tensor { 0.0 }, ms.tensor { 1.0 }):item(), math.log(2))
  local Huge = nn.LossBase:extend("Huge")
  function Huge:construct(a, b) return self:get_loss((a - b) ^ 4) end
  t.near(Huge("sum")(x, y):item(), 17.0)
end)

t.test("an empty table at the end stands for no options", function()
  t.equal(nn.Dense(4, 2, { dtype = nil })(ms.ones { 3, 4 }).shape, nn.Dense(4, 2)(ms.ones { 3, 4 }).shape)
  t.equal(#nn.Adam(nn.Dense(4, 2):trainable_params(), {}).parameters, 2)
  t.fails("Adam: ", nn.Adam, {})
end)

t.test("more inputs than construct takes are an error for any number, plainly, compiled and differentiated", function()
  local x = ms.ones { 2 }
  for count = 0, 5 do
    local inputs, given = {}, {}
    for i = 1, count do inputs[i], given[i] = "a" .. i, x end
    local list = table.concat(inputs, ", ")
    local Mine = nn.Cell:extend("Mine")
    local text = ("return function(%s) return select('#', %s) end"):format(table.concat({ "self", table.unpack(inputs) }, ", "),
      count > 0 and list or "nil")
    Mine.construct = load(text)()
    local cell = Mine()
    for _ = 1, 3 do t.equal(cell(table.unpack(given)), math.max(count, 1)) end
    -- nil stands for an input that is left out.
    t.equal(cell(table.unpack(given, 1, count + 2)), math.max(count, 1))
    given[count + 1] = x
    local expected = count == 0 and "takes no input, and got 1" or
      ("takes %d input%s, got %d"):format(count, count == 1 and "" or "s", count + 1)
    t.fails(expected, cell, table.unpack(given))
    t.fails(expected, ms.jit(function(...) return cell(...) end), table.unpack(given))
    t.fails(expected, ms.grad(function(y) return cell(y, table.unpack(given, 2)) end), x)
  end
end)
t.test("a construct that is replaced by one with more inputs gets them", function()
  local Sum = nn.Cell:extend("Sum")
  function Sum.construct(_, a) return a end
  local sum = Sum()
  function Sum.construct(_, a, b) return a + b end
  t.equal(sum(1, 2), 3)
end)
t.test("the text of cells that lie in each other has each of them once, also of very many", function()
  local outer, inner = nn.Cell(), nn.Cell()
  outer.inner, inner.again = inner, outer
  t.equal(tostring(outer), "Cell<\n  (inner): Cell<\n    (again): Cell<...>\n    >\n  >")
  local cell = nn.ReLU()
  for _ = 1, 2000 do
    local around = nn.Cell()
    around.part = cell
    cell = around
  end
  local _, lines = tostring(cell):gsub("\n", "")
  t.equal(lines, 4000)
end)

t.finish()
