-- Operators as objects: ops.Softmax(-1)(x), with MindSpore's names, attributes and results.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local ops = ms.ops

local x = ms.arange(6):reshape { 2, 3 }:astype(ms.float32)

t.test("an object keeps the attributes and takes the inputs", function()
  t.near(ops.Softmax(-1)(x), ops.softmax(x, -1), 0)
  t.near(ops.Softmax { axis = 0 }(x), ops.softmax(x, 0), 0)
  t.equal(ops.ReduceMean(true)(x, 1).shape, ops.mean(x, 1, true).shape)
  t.near(ops.ReduceSum()(x, 0), { 3, 5, 7 }, 0)
  t.equal(ops.ReduceSum()(x):item(), 15.0)
  t.near(ops.Concat(1)({ x, x }), ops.concat({ x, x }, 1), 0)
  t.near(ops.Transpose()(x, { 1, 0 }), x:t(), 0)
  t.near(ops.OneHot()(ms.tensor { 0, 2 }, 3, 1.0, 0.0), { { 1, 0, 0 }, { 0, 0, 1 } }, 0)
  t.near(ops.ExpandDims()(x, 0), x:reshape { 1, 2, 3 }, 0)
  t.equal(ops.Cast()(x, ms.int32).dtype, ms.int32)
  local values, places = ops.TopK(true)(x, 2)
  t.equal({ values:tolist(), places:tolist() }, { { { 2.0, 1.0 }, { 5.0, 4.0 } }, { { 2, 1 }, { 2, 1 } } })
  t.near(ops.StridedSlice()(x, { 0, 0 }, { 2, 2 }, { 1, 1 }), { { 0, 1 }, { 3, 4 } }, 0)
  t.equal(ops.Squeeze(0)(x:reshape { 1, 2, 3 }).shape, x.shape)
end)

t.test("those with attributes of their own", function()
  t.near(ops.MatMul(false, true)(x, x), ops.matmul(x, x:t()), 0)
  t.near(ops.MatMul(true)(x, x), ops.matmul(x:t(), x), 0)
  local image, weight = ms.randn { 1, 2, 6, 6 }, ms.randn { 4, 2, 3, 3 }
  t.near(ops.Conv2D(4, 3)(image, weight), ops.conv2d(image, weight), 0)
  t.equal(ops.Conv2D(4, 3, { pad_mode = "same" })(image, weight).shape, ms.nn.Conv2d(2, 4, 3)(image).shape)
  t.near(ops.MaxPool(2, 2)(image), ops.max_pool2d(image, 2, 2), 0)
  t.near(ops.AddN()({ x, x, x }), x * 3, 0)
  local logits, hot = ms.randn { 4, 3 }, ops.one_hot(ms.tensor { 0, 2, 1, 1 }, 3, 1.0, 0.0)
  local loss, slope = ops.SoftmaxCrossEntropyWithLogits()(logits, hot)
  t.near(ops.mean(loss), ops.cross_entropy(logits, ms.tensor { 0, 2, 1, 1 }), 1e-6)
  t.near(slope, ms.grad(function(v) return ops.sum((ops.SoftmaxCrossEntropyWithLogits()(v, hot))) end)(logits), 1e-6)
  t.near(ops.SparseSoftmaxCrossEntropyWithLogits(true)(logits, ms.tensor { 0, 2, 1, 1 }), slope / 4, 1e-6)
  t.near(ops.SigmoidCrossEntropyWithLogits()(logits, hot), ops.binary_cross_entropy_with_logits(logits, hot, nil, nil, "none"), 1e-6)
  local kept, mask = ops.Dropout(0.5)(ms.ones { 1000 })
  t.near(kept, mask:astype(ms.float32) * 2, 0)
end)

t.test("shapes and dtypes of the results", function()
  t.equal(ops.Softmax():infer_shape { 2, 3 }, { 2, 3 })
  t.equal(ops.MatMul():infer_shape({ 2, 3 }, { 3, 5 }), { 2, 5 })
  t.equal(ops.ReduceMean(true):infer_shape({ 4, 5 }, 1), { 4, 1 })
  t.equal(ops.Conv2D(8, 3, { pad_mode = "same" }):infer_shape({ 2, 3, 9, 9 }, { 8, 3, 3, 3 }), { 2, 8, 9, 9 })
  t.equal(ops.GatherNd():infer_shape({ 4, 5 }, { 7, 1 }), { 7, 5 })
  t.equal({ ops.TopK():infer_shape({ 2, 9 }, 4) }, { { 2, 4 }, { 2, 4 } })
  t.equal(ops.Softmax():infer_dtype(ms.float16), ms.float16)
  t.equal(ops.Less():infer_dtype(ms.float32, ms.float32), ms.bool_)
  t.equal(ops.MatMul():infer_dtype(ms.bfloat16, ms.bfloat16), ms.bfloat16)
  t.equal(ops.Cast():infer_dtype(ms.float32, ms.int8), ms.int8)
end)

-- The names that the reference's own texts use.
local names = [[ExpandDims Squeeze Concat OnesLike Select StridedSlice ScatterNd AddN Cos Sub Sin Mul LogicalAnd MatMul LogicalNot RealDiv
  Less ReduceMean Greater Conv2D MaxPool Flatten AvgPool Softmax TopK ReLU Sigmoid SmoothL1Loss BatchNorm SoftmaxCrossEntropyWithLogits
  OneHot Reshape Transpose ScalarSummary ImageSummary HistogramSummary TensorSummary ControlDepend Depend Primitive PrimitiveWithInfer
  SigmoidCrossEntropyWithLogits Tile Gather GatherNd GatherD Cast Shape Fill ZerosLike Split Equal NotEqual LayerNorm Assign AssignAdd
  ReduceMax ReduceSum ReduceMin ReduceProd Stack Unstack Slice Tanh Exp Log Pow Minimum Maximum Sqrt Rsqrt Square Neg Abs Sign Floor Erf
  Dropout BiasAdd Pad LinSpace Eye CumSum Identity NLLLoss BinaryCrossEntropy Multinomial Rank Size DType L2Normalize BatchMatMul]]

t.test("the names that programs use are there and say what they do", function()
  local entries = require "lunaria.help.entries"
  local missing = {}
  for name in names:gmatch "%S+" do
    local ok, value = pcall(function() return ops[name] end)
    if not ok or not (value._doc and value._doc:find "%w") then missing[#missing + 1] = name end
  end
  t.equal(missing, {})
  assert(entries)
end)

t.test("objects are compiled, differentiated and extended", function()
  local softmax, sum = ops.Softmax(-1), ops.ReduceSum()
  local f = ms.jit(function(v) return sum(softmax(v * 2) * v) end)
  local plain = function(v) return ops.sum(ops.softmax(v * 2, -1) * v) end
  for _ = 1, 3 do t.near(f(x), plain(x), 1e-6) end
  t.near(ms.grad(f)(x), ms.grad(plain)(x), 1e-6)
  local Twice = ops.PrimitiveWithInfer:extend("Twice")
  function Twice:construct(v) return v * self.factor end -- luacheck: ignore 212
  local twice = Twice()
  twice.factor = 2
  t.near(twice(x), x * 2, 0)
  t.equal(twice:infer_shape { 4 }, { 4 })
  t.equal(tostring(ops.Softmax(0)), "Prim[Softmax]<axis=0>")
  t.equal(ops.Softmax(0):set_strategy({ { 1, 1 } }).attrs.in_strategy, { { 1, 1 } })
end)

t.test("what is wrong is named", function()
  t.fails({ "ms.ops: there is no operator 'Sofmax'" }, function() return ops.Sofmax end)
  t.fails({ "Softmax: there is no argument 'axes'" }, function() return ops.Softmax { axes = 1 } end)
  t.fails({ "Softmax: takes at most 1 inputs, got 2" }, function() return ops.Softmax()(x, x) end)
  t.fails({ "AddN: a table of tensors is expected" }, function() return ops.AddN()(x) end)
  t.fails({ "ScalarSummary: the name must be a string" }, function() return ops.ScalarSummary()(1, x) end)
  t.fails({ "ImageSummary: the value must be a tensor" }, function() return ops.ImageSummary()("a", 3) end)
end)

t.test("a primitive's own bprop is its derivative", function()
  local Mine = ops.PrimitiveWithInfer:extend("Mine")
  function Mine:construct(a, b) return a * b, a + b end
  function Mine:bprop(a, b, product, sum, d_product, d_sum)
    self.seen = { product:sum():item(), sum:sum():item() }
    return d_product * b * 10, d_sum * a * 100
  end
  local mine = Mine()
  local a, b = ms.tensor { 1.0, 2.0 }, ms.tensor { 3.0, 5.0 }
  local function f(u, v)
    local product, sum = mine(u, v)
    return ops.sum(product) + ops.sum(sum)
  end
  for _, g in ipairs { ms.grad(f, { 0, 1 }), ms.jit(ms.grad(f, { 0, 1 })) } do
    for _ = 1, 3 do
      local d = g(a, b)
      t.near(d[1], { 30, 50 }, 0)
      t.near(d[2], { 100, 200 }, 0)
    end
  end
  t.equal(mine.seen, { 13.0, 11.0 })
  -- Those of operators may be extended, too.
  local Doubled = ops.Exp:extend("Doubled")
  function Doubled:bprop(_, out, d) return out * d * 2 end -- luacheck: ignore 212
  t.near(ms.grad(function(v) return ops.sum(Doubled()(v)) end)(a), ops.exp(a) * 2, 1e-6)
  local Short = ops.Primitive:extend("Short")
  function Short:construct(u, v) return u * v end
  function Short:bprop(_, _, _, d) return d end -- luacheck: ignore 212
  t.fails({ "Short: bprop must give a gradient for each of the 2 inputs: that of input 2 is nil" },
    function() ms.grad(function(u) return ops.sum(Short()(u, b)) end)(a) end)
end)

-- An argument does something, or other values than what it stands for are refused.
t.test("what cannot be honoured is refused", function()
  local a, b = ms.tensor { { 1.0, 2.0 }, { 3.0, 4.0 }, { 5.0, 6.5 } }, ms.tensor { { 1.0 }, { 2.0 }, { 3.0 } }
  -- Without haste there is no regularizer.
  t.near(ops.MatrixSolveLs(false)(a, b, 0.5), ops.lstsq(a, b), 1e-5)
  assert(not ops.equal(ops.MatrixSolveLs(true)(a, b, 0.5), ops.MatrixSolveLs(false)(a, b, 0.5)):all():item())
  t.near(ops.Lstsq(false)(a, b), ops.Lstsq(true)(a, b), 0)
  t.fails("fast must be true or false, got 1", function() ops.Lstsq { fast = 1 } end)
  for _, class in ipairs { "ScatterAdd", "ScatterNdUpdate", "Adam", "ApplyMomentum", "ApplyKerasMomentum" } do
    t.fails("use_locking must be true or false, got", function() ops[class] { use_locking = "no" } end)
  end
  local w = ms.Parameter(ms.ones { 2 }, "w")
  ops.ScatterAdd(true)(w, ms.tensor { 1 }, ms.ones { 1 })
  t.equal(w:tolist(), { 1.0, 2.0 })
  for _, class in ipairs { "Adam", "RMSProp", "LazyAdam", "FTRL", "ProximalAdagrad" } do
    t.fails("use_locking must be true or false", function() ms.nn[class]({ w }, { use_locking = 1 }) end)
    ms.nn[class]({ w }, { use_locking = true })
  end
  t.fails("error_if_nonfinite must be false", function() ops.clip_by_norm(a, 1.0, 2.0, true) end)
  t.equal(ops.clip_by_norm(a, 1.0, 2.0, false), ops.clip_by_norm(a, 1.0))
  local function body(i, sum) return sum + i end
  t.equal(ops.ForiLoop()(0, 4, body, 0, true), 6)
  t.fails("unroll must be true", function() ops.ForiLoop()(0, 4, body, 0, false) end)
  t.fails("unroll must be true", function() ops.Scan()(function(sum, v) return sum + v, sum end, 0, { 1, 2 }, nil, false) end)
  local rows = ms.dataset.NumpySlicesDataset { 1, 2 }
  t.fails("output_numpy must be false", function() rows:create_dict_iterator { output_numpy = true } end)
  t.fails("do_copy must be true or false", function() rows:create_tuple_iterator { do_copy = 3 } end)
  local net = ms.nn.Dense(2, 1)
  t.fails("split_indices must be nil", function() ms.nn.thor(net, 0.1, 0.03, 0.9, { split_indices = { 1 } }) end)
  t.fails("fusion_type must be 1", function() ms.nn.DistributedGradReducer(net:trainable_params(), { fusion_type = 2 }) end)
  t.fails("group must be \"world\"", function() ms.nn.DistributedGradReducer(net:trainable_params(), { group = "half" }) end)
  t.fails("stage_config names 'a', which is no cell of the chain", function() ms.nn.PipelineCell(net, 2, { stage_config = { a = 1 } }) end)
  local model = ms.Model(net, ms.nn.MSELoss(), ms.nn.SGD(net:trainable_params()), { "loss" })
  local batches = { { ms.ones { 1, 2 }, ms.ones { 1, 1 } } }
  t.fails("dataset_sink_mode must be false", function() model:eval(batches, { dataset_sink_mode = true }) end)
  t.fails("valid_dataset_sink_mode must be false", function() model:fit(1, batches, batches, { valid_dataset_sink_mode = true }) end)
  t.fails("num_true is 1, and there are 2 true classes in a row", function()
    ops.UniformCandidateSampler(1, 2, true, 5)(ms.tensor { { 0, 1 } })
  end)
  local image, kernels = ms.randn { 1, 2, 6, 6 }, ms.randn { 4, 2, 3, 3 }
  t.fails("the weight must have 5 on axis 0", function() ops.Conv2D(5, 3)(image, kernels) end)
  t.fails("kernels of (2, 2)", function() ops.Conv2D(4, 2)(image, kernels) end)
  t.fails("the weight must have 5 on axis 0", function() ops.Conv2DTranspose(5, 3)(ms.randn { 1, 4, 4, 4 }, kernels, { 1, 2, 6, 6 }) end)
  local types, shapes = { ms.float32 }, { { 3, 2 } }
  local function twice(x_) return x_ * 2 end
  t.equal(ops.PyFunc(twice, types, shapes, types, shapes)(a), a * 2)
  t.fails("input 1 must have the shape (2, 2)", function() ops.PyFunc(twice, types, { { 2, 2 } }, types, shapes)(a) end)
  t.fails("input 1 must be of Int32", function() ops.PyFunc(twice, { ms.int32 }, shapes, types, shapes)(a) end)
  t.fails("result 1 must have the shape (2, 2)", function() ops.PyFunc(twice, types, shapes, types, { { 2, 2 } })(a) end)
  local function as_it_is(v) return v end
  t.equal(ops.Morph(twice, as_it_is, as_it_is)(a), a * 2)
  t.fails("result 1 must have the shape (7)", function() ops.Morph(twice, function() return { 7 } end, as_it_is)(a) end)
  t.fails("result 1 must be of Int32", function() ops.Morph(twice, as_it_is, function() return ms.int32 end)(a) end)
end)

t.finish()
