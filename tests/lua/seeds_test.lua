-- Lines of MindSpore's papers, books and tutorials in Lua's spelling, as their readers type them.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local nn, ops = ms.nn, ms.ops
local P, F = ms.ops.operations, ms.ops.functional

t.test("ms.context is where modes and devices are set", function()
  local context = ms.context
  local mode = context.get_context "mode"
  context.set_context { mode = context.GRAPH_MODE, device_target = "CPU" }
  t.equal({ context.get_context "mode", context.get_context "device_target" }, { ms.GRAPH_MODE, "CPU" })
  context.set_context { mode = context.PYNATIVE_MODE }
  t.equal(ms.get_context "mode", ms.PYNATIVE_MODE)
  context.set_context { mode = mode }
  context.set_auto_parallel_context { parallel_mode = ms.ParallelMode.AUTO_PARALLEL, device_num = 1, gradients_mean = true }
  t.equal({ ms.get_auto_parallel_context "parallel_mode", context.get_auto_parallel_context "gradients_mean" }, { "auto_parallel", true })
  context.reset_auto_parallel_context()
  t.equal(ms.get_auto_parallel_context "parallel_mode", ms.ParallelMode.STAND_ALONE)
  -- One process simulates the ranks of strategies; data parallel training takes processes.
  ms.set_auto_parallel_context { device_num = 8, parallel_mode = "semi_auto_parallel" }
  t.equal(ms.get_auto_parallel_context "device_num", 8)
  ms.set_auto_parallel_context { parallel_mode = "data_parallel" }
  local net = nn.Dense(2, 1)
  t.fails({ "device_num is 8 with the parallel_mode 'data_parallel', whose ranks are processes", "lunaria launch -n 8" },
    nn.TrainOneStepCell, net, nn.SGD(net:trainable_params(), 0.1))
  context.reset_auto_parallel_context()
  t.equal(ms.get_auto_parallel_context "device_num", 1)
  t.fails({ "there is no option 'paralel_mode'", "did you mean 'parallel_mode'?" }, function()
    ms.set_auto_parallel_context { paralel_mode = "auto_parallel" }
  end)
end)

t.test("tensors have size, dim, dtype and shape as methods and as fields", function()
  local x = ms.Tensor({ { 1, 2, 3 }, { 4, 5, 6 } }, ms.float32)
  t.equal({ x.size, x.ndim, x:numel(), x:dim() }, { 6, 2, 6, 2 })
  assert(x:dtype() == ms.float32 and x.dtype == ms.float32 and x:dtype() ~= ms.float16)
  assert(x:shape() == x.shape and x:shape()[2] == 3 and #x:shape() == 2)
  t.equal(tostring(x:shape()) .. tostring(x:dtype()), "(2, 3)Float32")
  t.equal(ms.json.encode(x:shape()), "[2,3]")
  local function f(v)
    local n = v:numel() * v:shape()[1] * v:dim()
    return ops.sum(v) * n, v:dtype()
  end
  for _, g in ipairs { f, ms.jit(f) } do
    for _ = 1, 3 do
      local y, dtype = g(x)
      t.equal({ y:item(), tostring(dtype) }, { 504.0, "Float32" })
      t.near((g(ms.ones { 4 })), 4 * 4 * 4 * 1.0, 0)
    end
    t.near(ms.grad(function(v) return (g(v)) end)(x), ops.full({ 2, 3 }, 24.0), 0)
  end
  t.equal(tostring(x:tensor_add(x):tensor_mul(x)), tostring((x + x) * x))
  x:set_dtype(ms.int32)
  t.equal(x:dtype(), ms.int32)
  t.fails({ "shape: a shape is no function", "x:shape()" }, function() return x.shape() end)
  t.fails({ "dtype: the dtype float32 is no function" }, function() return ms.float32(3) end)
  t.fails({ "shape: a shape is no function" }, function() return x:shape(0) end)
  t.fails({ "expected, got" }, function() return ms.jit(x.shape) end)
  -- A number cannot be called.
  t.fails({ "attempt to call a number value (method 'size')" }, function() return x:size() end)
end)

t.test("what asnumpy gives prints its numbers", function()
  local x = ms.Tensor({ { 1, 2 }, { 3, 4 } }, ms.float32)
  local a = x:asnumpy()
  t.equal(tostring(a), "[[ 1.00000000e+00,  2.00000000e+00],\n [ 3.00000000e+00,  4.00000000e+00]]")
  t.equal({ tostring(a[2]), tostring(ms.arange(3):asnumpy()) }, { "[ 3.00000000e+00,  4.00000000e+00]", "[0, 1, 2]" })
  t.equal({ a[2][1], #a, ms.json.encode(a) }, { 3.0, 2, "[[1.0,2.0],[3.0,4.0]]" })
  t.near(ms.Tensor(a), x, 0)
  t.equal(ms.tensor(5):asnumpy(), 5)
  t.equal(tostring(ms.tensor({}):asnumpy()), "[]")
  t.equal(ms.grad(function(v) return v:asnumpy()[1] * 3 end)(ms.tensor { 2.0 }):item(), 3.0)
end)

t.test("operators as P and F", function()
  local x = ms.Tensor({ { { { 1, 2, 3, 4, 5 }, { 6, 7, 8, 9, 10 }, { 11, 12, 13, 14, 15 } } } }, ms.float32)
  t.near(P.MaxPool { ksize = 3, strides = 2 }(x), { { { { 13, 15 } } } }, 0)
  t.near(P.AvgPool { ksize = 3, strides = 2, padding = "VALID" }(x), { { { { 7, 9 } } } }, 1e-6)
  t.near(P.Pooling { ksize = 3, strides = 2 }(x), P.MaxPool(3, 2)(x), 0)
  t.near(F.tensor_mul(x, x), x * x, 0)
  t.near(F.tensor_add(x, F.relu(-x)), x, 0)
  t.equal(F.tensor_lt(ms.tensor { 1.0 }, ms.tensor { 2.0 }):item(), true)
  t.equal({ F.make_range(3), F.scalar_add(1, 2), F.tuple_to_array({ 1, 2 }):tolist() }, { { 0, 1, 2 }, 3, { 1, 2 } })
  t.equal(F.grad(function(v) return v * v end)(3.0), 6.0)
  t.near(F.vmap(function(v) return v * 2 end)(ms.tensor { 1.0, 2.0 }), { 2, 4 }, 0)
  t.near(P.Softmax():add_prim_attr("axis", 0)(ms.zeros { 2, 1 }), { { 0.5 }, { 0.5 } }, 0)
  t.fails({ "Softmax: has no attribute the string 'axes'; there are: axis", "did you mean 'axis'?" }, function()
    return P.Softmax():add_prim_attr("axes", 0)
  end)
  local matmul, transpose = P.MatMul(), P.Transpose()
  local w = ms.Tensor({ { 1, 2 }, { 3, 4 } }, ms.float32)
  t.near(matmul(w, transpose(w, { 1, 0 })), { { 5, 11 }, { 11, 25 } }, 0)
  local mean, variance = ms.Parameter(ms.zeros { 1 }), ms.Parameter(ms.ones { 1 })
  local y = P.BatchNorm { is_training = true }(x, ms.ones { 1 }, ms.zeros { 1 }, mean, variance)
  t.near(ops.mean(y), 0.0, 1e-6)
  t.near(mean, { 0.8 }, 1e-6)
  t.near((P.BatchNorm(false)(x, ms.ones { 1 }, ms.zeros { 1 }, mean, variance)), (x - 0.8) / ops.sqrt(variance + 1e-5), 1e-5)
  local var, accum = ms.Parameter(ms.ones { 2 }), ms.Parameter(ms.zeros { 2 })
  P.SGD()(var, ms.tensor { 0.5, 1.0 }, ms.tensor(0.1), accum, ms.tensor(0.9), ms.Parameter(ms.ones { 2 }))
  t.near(var, { 0.95, 0.9 }, 1e-6)
end)

t.test("the operator of the paper: Softmax with attributes, shapes and dtypes of its own", function()
  local Softmax = P.PrimitiveWithInfer:extend("Softmax")
  Softmax.init = P.prim_attr_register(function(self, axis) -- luacheck: ignore 212
    self:init_prim_io_names { inputs = { "x" }, outputs = { "output" } }
  end)
  function Softmax:infer_shape(logits) return logits end -- luacheck: ignore 212
  function Softmax:infer_dtype(logits) return logits end -- luacheck: ignore 212
  local x = ms.Tensor({ { 1, 2, 3 }, { 1, 5, 2 } }, ms.float32)
  local softmax = Softmax(0)
  t.equal(softmax.attrs, { axis = 0 })
  t.near(softmax(x), ops.softmax(x, 0), 0)
  t.near(Softmax()(x), ops.softmax(x, -1), 0)
  t.equal({ softmax:infer_shape { 4, 5 }, softmax:infer_dtype(ms.float16) }, { { 4, 5 }, ms.float16 })
  local f = function(v) return ops.sum(softmax(v) * v) end
  local compiled = ms.jit(f)
  for _ = 1, 3 do
    t.near(compiled(x), f(x), 1e-6)
    t.near(ms.grad(compiled)(x), ms.grad(function(v) return ops.sum(ops.softmax(v, 0) * v) end)(x), 1e-6)
  end
  -- With plain fields for attributes.
  local ReduceSum = P.PrimitiveWithInfer:extend("ReduceSum")
  function ReduceSum:init(keep_dims) self.keep_dims = keep_dims end
  t.equal({ table.unpack(ReduceSum(true)(x, 1).shape) }, { 2, 1 })
  -- What they say must be so.
  local Wrong = P.PrimitiveWithInfer:extend("Softmax")
  function Wrong:infer_shape(logits) return { logits[2], logits[1] } end -- luacheck: ignore 212
  t.fails({ "Softmax: infer_shape says (3, 2) for result 1, which has (2, 3)" }, function() return Wrong()(x) end)
  local Half = P.PrimitiveWithInfer:extend("Softmax")
  function Half:infer_dtype() return ms.float16 end -- luacheck: ignore 212
  t.fails({ "Softmax: infer_dtype says Float16 for result 1, which has Float32" }, function() return Half()(x) end)
  t.fails({ "Softmax: init_prim_io_names named 1 inputs, got 2" }, function() return softmax(x, x) end)
  local Unknown = P.PrimitiveWithInfer:extend("Sofmax")
  t.fails({ "Sofmax: has no method construct to be called by, and there is no operator of this name" }, function() return Unknown()(x) end)
end)

t.test("strategies: one part for each axis works, more parts say what there is", function()
  local DenseMatMulNet = nn.Cell:extend("DenseMatMulNet")
  function DenseMatMulNet:init()
    self.matmul1 = ops.MatMul.set_strategy { { 1, 1 }, { 1, 1 } }
    self.matmul2 = P.MatMul():set_strategy { { 1, 1 }, { 1, 1 } }
  end
  function DenseMatMulNet:construct(x, w, v) return self.matmul2(self.matmul1(x, w), v) end
  local x, w, v = ms.ones { 2, 3 }, ms.ones { 3, 4 }, ms.ones { 4, 2 }
  local net = DenseMatMulNet()
  for _ = 1, 3 do t.near(net(x, w, v), ops.full({ 2, 2 }, 12.0), 0) end
  t.fails({ "MatMul: the strategy divides over 4 ranks, and there are 1" }, function()
    return ops.MatMul.set_strategy { { 4, 1 }, { 1, 1 } } (x, w)
  end)
  t.fails({ "MatMul: in_strategy has 1 axes for input 1, got a tensor of shape (2, 3)" }, function()
    return ops.MatMul():shard { { 1 }, { 1, 1 } }(x, w)
  end)
  t.fails({ "MatMul: in_strategy has 1 inputs, got 2" }, function() return ops.MatMul:shard { { 1, 1 } }(x, w) end)
  local f = ms.shard(function(a, b) return ops.matmul(a, b) end, { { 1, 1 }, { 1, 1 } }, { { 1, 1 } })
  t.near(f(x, w), ops.full({ 2, 4 }, 3.0), 0)
  t.fails({ "shard: the strategy divides over 8 ranks, and there are 1" }, function()
    return ms.shard(f, { { 8, 1 }, { 1, 1 } })(x, w)
  end)
  t.fails({ "shard: in_strategy has 2 inputs, got 1" }, function() return f(x) end)
end)

t.test("derivatives of the documents: tanh at 2 three times, auxiliary results, vmap, jit", function()
  local tanh = ms.numpy.tanh
  t.near(ms.grad(tanh)(2.0), 0.070650816, 1e-7)
  t.near(ms.grad(ms.grad(tanh))(2.0), -0.13621868, 1e-7)
  t.near(ms.grad(ms.grad(ms.grad(tanh)))(2.0), 0.25265405, 1e-7)
  local net, loss_fn = nn.Dense(3, 2), nn.MSELoss()
  local function forward(x, y)
    local logits = net(x)
    return loss_fn(logits, y), logits
  end
  local grad_fn = ms.value_and_grad(forward, nil, net:trainable_params(), true)
  local x, y = ms.ones { 4, 3 }, ms.zeros { 4, 2 }
  for _ = 1, 3 do
    local values, grads = grad_fn(x, y)
    t.near(values[1], ops.mean(ops.square(net(x))), 1e-6)
    t.equal({ { table.unpack(values[2].shape) }, #grads, { table.unpack(grads[1].shape) } }, { { 4, 2 }, 2, { 2, 3 } })
  end
  t.near(ms.vmap(function(v) return ops.sum(v * v) end)(ms.ones { 4, 3 }), { 3, 3, 3, 3 }, 0)
  t.near(ms.jit(function(v) return ops.sum(v * v) end)(ms.ones { 4, 3 }), 12.0, 0)
end)

t.test("a training of the first tutorials: WithLossCell, TrainOneStepCell, Model, WithGradCell", function()
  ms.set_seed(1)
  local LinearNet = nn.Cell:extend("LinearNet")
  function LinearNet:init() self.fc = nn.Dense(1, 1, ms.common.initializer.Normal(0.02), ms.common.initializer.Normal(0.02)) end
  function LinearNet:construct(x) return self.fc(x) end
  local net = LinearNet()
  local x = ms.randn { 16, 1 }
  local y = x * 2 + 3
  local step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.Momentum(net:trainable_params(), 0.05, 0.9))
  step:set_train()
  for _ = 1, 100 do step(x, y) end
  t.near(net.fc.weight, { { 2 } }, 5e-2)
  t.near(net.fc.bias, { 3 }, 5e-2)
  t.equal(#nn.WithGradCell(net, nn.MSELoss())(x, y), 2)
  local model = ms.Model(net, nn.MSELoss(), nn.SGD(net:trainable_params(), 0.01), { "mae" })
  model:train(2, { { x, y } })
  assert(model:eval { { x, y } }.mae < 0.1)
end)

t.test("a level of boost changes the training, or is an error", function()
  ms.set_seed(3)
  local net = nn.SequentialCell(nn.Dense(4, 8), nn.ReLU(), nn.Dense(8, 8), nn.ReLU(), nn.Dense(8, 3))
  local x, y = ms.randn { 15, 4 }, ops.remainder(ms.arange(15), 3):astype(ms.int32)
  local model = ms.Model(net, nn.CrossEntropyLoss(), nn.Adam(net:trainable_params(), 0.05), { "accuracy" }, { boost_level = "O1" })
  -- Its head has become one of cosines, and steps freeze layers.
  assert(getmetatable(model.network[5])._name == "CommonHeadLastFN" and #model.optimizer.opts > 1)
  model:train(60, { { x, y } })
  assert(model:eval({ { x, y } }).accuracy > 0.6)
  local plain = nn.Dense(2, 1)
  local manual = { boost = { mode = "manual", grad_accumulation = true }, grad_accumulation = { grad_accumulation_step = 4 } }
  local accumulating = ms.Model(plain, nn.MSELoss(), nn.SGD(plain:trainable_params(), 0.1), nil, { boost_config_dict = manual })
  t.equal(getmetatable(accumulating.optimizer)._name, "GradientAccumulation")
  t.fails({ "level must be one of 'O0', 'O1', 'O2', got the string 'O7'" }, function()
    return ms.Model(plain, nn.MSELoss(), nn.SGD(plain:trainable_params(), 0.1), nil, { boost_level = "O7" })
  end)
  t.fails({ "Model: boost_level changes how a network is trained" }, function()
    return ms.Model(plain, nil, nil, nil, { boost_level = "O1" })
  end)
  t.fails({ "boost_level must be one of 'O0', 'O1', 'O2'" }, function()
    return ms.amp.build_train_network(plain, nn.SGD(plain:trainable_params(), 0.1), nn.MSELoss(), { boost_level = "max" })
  end)
end)

t.test("configurations, generators, checks and limits", function()
  local strict = ms.JitConfig { jit_level = "O1", jit_syntax_level = "STRICT" }
  local function mixed(x)
    local y = x * 2
    os.getenv "HOME"
    return y
  end
  t.near(ms.jit(mixed, { jit_config = ms.JitConfig { jit_level = "O0" } })(ms.ones { 2 }), { 2, 2 }, 0)
  local whole = ms.jit(function(x) return x * 2 end, { jit_config = strict })
  for _ = 1, 3 do t.near(whole(ms.ones { 2 }), { 2, 2 }, 0) end
  t.fails({ "jit_level must be one of '', 'O0', 'O1', got the string 'O9'" }, function() return ms.JitConfig { jit_level = "O9" } end)
  t.fails({ "infer_boost must be one of 'off', got the string 'on'" }, function() return ms.JitConfig { infer_boost = "on" } end)
  t.fails({ "jit: jit_config must be a ms.JitConfig, got 3" }, function() return ms.jit(mixed, { jit_config = 3 }) end)
  local net = nn.Dense(2, 1)
  t.equal(net:set_jit_config(strict), net)
  for _ = 1, 3 do t.equal(net(ms.ones { 1, 2 }).ndim, 2) end

  local g = ms.Generator():manual_seed(5)
  t.equal(g:initial_seed(), 5)
  local state = g:get_state()
  local first, second = ops.rand({ 3 }, { generator = g }), ops.rand({ 3 }, { generator = g })
  assert(not ops.all(ops.equal(first, second)):item())
  g:set_state(state)
  t.near(ops.rand({ 3 }, { generator = g }), first, 0)
  g:seed()
  assert(g:initial_seed() ~= 5)
  g:set_state(state)
  t.equal(g:initial_seed(), 5)
  local f = ms.jit(function(x) return x + ops.rand({ 3 }, { generator = g }) end)
  g:manual_seed(5)
  t.near(f(ms.zeros { 3 }), first, 0)
  t.near(f(ms.zeros { 3 }), second, 0)
  for _ = 1, 3 do
    g:manual_seed(5)
    t.near(f(ms.zeros { 3 }), first, 0)
  end
  -- The session's own numbers stay where they are, in both modes; with a seed too.
  for _, draw in ipairs {
    function() return ops.randn({ 4 }, { generator = g }) end, function() return ops.normal({ 4 }, 0.0, 1.0, 3) end,
    function() return ops.randint(0, 9, { 4 }, { seed = 3 }) end, function() return ops.dropout(ms.ones { 8 }, 0.5, true, 3) end,
    function() return ops.randperm(5, { seed = 3 }) end, function() return ops.multinomial(ms.ones { 3 }, 2, true, 3) end,
  } do
    local both = function() return draw(), ops.rand({ 2 }) end
    for _, either in ipairs { both, ms.jit(both) } do
      ms.set_seed(11)
      local alone = { ops.rand { 2 }, ops.rand { 2 }, ops.rand { 2 } }
      ms.set_seed(11)
      for k = 1, 3 do t.near(select(2, either()), alone[k], 0) end
    end
  end
  t.fails({ "rand: generator must be a ms.Generator, got the integer 3" }, function() return ops.rand({ 2 }, { generator = 3 }) end)
  t.fails({ "relu: there is no parameter 'generator'" }, function() return ops.relu(first, { generator = g }) end)

  local lines, plain_print = {}, print
  print = function(text) lines[#lines + 1] = text end -- luacheck: ignore 121
  ms.run_check()
  print = plain_print -- luacheck: ignore 121
  t.equal(lines[2], "The result of multiplication calculation is correct, Lunaria has been installed on platform [CPU] successfully!")

  local function depth(n, x)
    if n == 0 then return x end
    return depth(n - 1, x) + 1
  end
  ms.set_recursion_limit(50)
  t.fails({ "recursion is deeper than 50 calls" }, ms.grad(function(x) return depth(100, x) end), 1.0)
  ms.set_recursion_limit()
  t.equal(ms.grad(function(x) return depth(100, x) end)(1.0), 1.0)
  t.fails({ "recursion_limit must be between 1 and 195000, got 0" }, ms.set_recursion_limit, 0)
end)

t.finish()
