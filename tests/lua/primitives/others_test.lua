-- Classes of primitives whose results MindSpore has no numbers for: random ones, those of groups of processes, of functions of one's
-- own, and those without kernels on a CPU; and that there are as many as MindSpore has.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local ops = ms.ops

local x = ms.tensor { { -1.5, 0.25, 2.0 }, { 0.5, -0.75, 1.25 } }
local F = ms.float32

local function inside(values, from, to)
  assert(ops.all(ops.logical_and(ops.greater_equal(values, from), ops.less_equal(values, to))):item(), tostring(values))
end

t.test("random numbers have the shape, dtype and range; a seed gives the same ones again", function()
  local rows = {
    { ops.StandardNormal, { { 3, 4 } }, { 3, 4 }, F, -10, 10 }, { ops.StandardLaplace, { { 3, 4 } }, { 3, 4 }, F, -30, 30 },
    { ops.UniformReal, { { 3, 4 } }, { 3, 4 }, F, 0, 1 }, { ops.UniformInt, { { 3, 4 }, 2, ms.tensor(7, ms.int32) }, { 3, 4 }, ms.int32,
      2, 6 },
    { ops.Gamma, { { 2, 2 }, ms.tensor { 2.0, 3.0 }, ms.tensor { 1.0, 2.0 } }, { 2, 2 }, F, 0, 100 },
    { ops.RandomGamma, { ms.tensor { 2, 2 }, ms.tensor { 2.0 } }, { 2, 2, 1 }, F, 0, 100 },
    { ops.Poisson, { { 2, 2 }, ms.tensor { 2.0, 3.0 } }, { 2, 2 }, ms.int32, 0, 100 },
    { ops.RandomPoisson, { { 2, 2 }, ms.tensor { 2.0 } }, { 2, 2, 1 }, ms.int64, 0, 100 },
    { ops.RandomShuffle, { ms.arange(8) }, { 8 }, ms.int64, 0, 7 },
    { ops.Multinomial, { ms.tensor { 0.2, 0.0, 0.8 }, 6 }, { 6 }, ms.int32, 0, 2 },
    { ops.ParameterizedTruncatedNormal, { { 2, 3 }, ms.tensor { 0.0, 5.0 }, ms.tensor { 1.0, 1.0 }, ms.tensor { -0.5, 4.5 },
      ms.tensor { 0.5, 5.5 } },
      { 2, 3 }, F, -0.5, 5.5 },
    { ops.TruncatedNormal, { { 50 } }, { 50 }, F, -2, 2 },
  }
  for _, row in ipairs(rows) do
    local class, inputs, shape, dtype, from, to = table.unpack(row, 1, 6)
    local drawn = class()(table.unpack(inputs))
    t.equal({ { table.unpack(drawn.shape) }, tostring(drawn.dtype) }, { shape, tostring(dtype) })
    inside(drawn, from, to)
    t.near(class { seed = 5, seed2 = 3 }(table.unpack(inputs)), class { seed = 5, seed2 = 3 }(table.unpack(inputs)), 0)
  end
  inside(ops.ParameterizedTruncatedNormal()({ 2, 30 }, ms.tensor { 0.0, 5.0 }, ms.tensor { 1.0, 1.0 }, ms.tensor { -0.5, 4.5 },
    ms.tensor { 0.5, 5.5 })[1],
    4.5, 5.5)
  local index, mask = ops.RandomChoiceWithMask(3)(ms.tensor { true, false, true, true })
  t.equal({ index.shape[1], ops.sum(ops.cast(mask, F)):item() }, { 3, 3.0 })
  inside(ops.Bernoulli(7)(ms.zeros { 9 }, ms.tensor(0.5)), 0, 1)
  t.equal(ops.sort(ops.RandpermV2(1)(6)):tolist(), { 0, 1, 2, 3, 4, 5 })
  local padded = ops.Randperm(6, -1)(4)
  t.equal({ ops.sort(padded[{ ms.slice(0, 4) }]):tolist(), padded[4]:item(), padded[5]:item() }, { { 0, 1, 2, 3 }, -1, -1 })
  t.equal(ops.NonDeterministicInts()({ 2, 2 }).dtype, ms.int64)
  t.equal(ops.LogNormalReverse(0.5, 0.1)(ms.ones { 4, 2 }).shape, ms.ones({ 4, 2 }).shape)
  inside(ops.LogNormalReverse(0.0, 0.001)(ms.ones { 40 }), 0.9, 1.1)
  t.equal(ops.Cauchy({ 2, 2 }, 0.0, 1.0)().shape, ms.ones({ 2, 2 }).shape)
  t.equal(ops.RandomCategorical()(ms.tensor { { 0.0, -1e9 } }, 4, 1):tolist(), { { 0, 0, 0, 0 } })
  inside(ops.MultinomialWithReplacement(5, true)(ms.tensor { 0.5, 0.5 }, 3, 1), 0, 1)
  for _, name in ipairs { "UniformCandidateSampler", "LogUniformCandidateSampler" } do
    local sampled, of_true, of_sampled = ops[name](1, 3, true, 4)(ms.tensor { { 1 }, { 3 } })
    t.equal({ #sampled, { table.unpack(of_true.shape) }, #of_sampled }, { 3, { 2, 1 }, 3 })
    inside(sampled, 0, 3)
    t.equal(ops.unique(sampled).size, 3)
    inside(of_true, 0, 1)
  end
end)

t.test("dropout keeps a part, scales it, and tells which", function()
  for _, name in ipairs { "Dropout", "Dropout2D", "Dropout3D" } do
    local input = ms.ones(name == "Dropout3D" and { 20, 20, 1, 2, 2 } or { 20, 20, 2, 2 })
    local kept, mask = ops[name](0.8)(input)
    t.near(kept, input * ops.cast(mask, F) / 0.8, 1e-6)
    inside(ops.mean(ops.cast(mask, F)), 0.7, 0.9)
  end
  local channels = select(2, ops.Dropout2D(0.5)(ms.ones { 2, 8, 3, 3 }))
  t.near(ops.amax(ops.cast(channels, F), { 2, 3 }), ops.amin(ops.cast(channels, F), { 2, 3 }), 0)
  t.near((ops.Dropout(0.5, 1, 2)(ms.ones { 100 })), (ops.Dropout(0.5, 1, 2)(ms.ones { 100 })), 0)
  local mask = ops.DropoutGenMask(3, 4)({ 10, 20 }, 0.25)
  t.equal({ #mask, tostring(mask.dtype) }, { 32, "UInt8" })
  local kept = ops.DropoutDoMask()(ms.ones { 10, 20 }, mask, 0.25)
  inside(kept, 0, 4)
  inside(ops.mean(kept), 0.5, 1.6)
end)

t.test("a group of one process", function()
  for _, name in ipairs { "AllReduce", "AllGather", "ReduceScatter", "CollectiveScatter" } do t.near(ops[name]()(x), x, 0) end
  t.near(ops.AllReduce(ops.ReduceOp.MAX)(x), x, 0)
  t.near(ops.Reduce(0)(x), x, 0)
  t.near(ops.CollectiveGather(0)(x), x, 0)
  t.near(ops.Broadcast(0)({ x, x + 1 }), x, 0)
  t.near(select(2, ops.Broadcast(0)({ x, x + 1 })), x + 1, 0)
  t.near(ops.AlltoAll(1, 0, 1)(x), x, 0)
  t.equal(#{ ops.BatchISendIRecv({}, {}) {} }, 0)
  t.near(ops.AlltoAllV()(x, { 6 }, { 6 }), x:reshape { -1 }, 0)
  t.near(ops.AlltoAllVC()(x, { { 6 } }), x:reshape { -1 }, 0)
  t.near(ops.AllGatherV()(x, { 6 }), x:reshape { -1 }, 0)
  t.near(ops.ReduceScatterV()(x, { 6 }), x:reshape { -1 }, 0)
  t.equal(ops.Barrier()(), nil)
  t.fails({ "Broadcast: root_rank must be a rank of the group, got 3" }, function() return ops.Broadcast(3) { x } end)
  t.fails({ "all_reduce: there is no group", "mine" }, function() return ops.AllReduce("sum", "mine")(x) end)
  t.fails({ "AlltoAll: split_count must be 1, the number of ranks of the group, got 4" }, function() return ops.AlltoAll(4, 0, 1)(x) end)
end)

t.test("functions of one's own", function()
  local double = function(v) return v * 2 end
  t.near(ops.Custom(double)(x), x * 2, 0)
  t.near(ops.Custom(double, { 2, 3 }, F)(x), x * 2, 0)
  t.near(ms.grad(function(v) return ops.sum(ops.Custom { func = double, bprop = function(_, _, d) return d * 7 end }(v)) end)(x),
    ops.full({ 2, 3 }, 7.0), 0)
  t.fails({ "Custom: out_shape is (3, 2), and func gave" }, function() return ops.Custom(double, { 3, 2 })(x) end)
  t.fails({ "Custom: out_dtype is Float16, and func gave Float32" }, function() return ops.Custom(double, { 2, 3 }, ms.float16)(x) end)
  local both = ops.PyFunc(function(v) return v + 1, v * 3 end, { F }, { { 2, 3 } }, { F, ms.int32 }, { { 2, 3 }, { 2, 3 } })
  local first, second = both(x)
  t.near(first, x + 1, 0)
  t.equal(second.dtype, ms.int32)
  t.fails({ "PyFunc: out_types has 1 types, and fn gave 2 results" }, function()
    return ops.PyFunc(function(v) return v, v end, { F }, { { 2, 3 } }, { F }, { { 2, 3 } })(x)
  end)
  local same = function(...) return ... end
  t.near(ops.Morph(double, same, same)(x), x * 2, 0)
  t.near(ms.grad(function(v) return ops.sum(ops.Morph(double, same, same, function(_, _, d) return d * 5 end)(v)) end)(x), ops.full({ 2,
    3 }, 5.0), 0)
  local y, pull = ops.J(function(v) return ops.sum(v * v) end)(x)
  t.near(y, ops.sum(x * x), 1e-6)
  t.near(pull(1.0), x * 2, 1e-6)
end)

t.test("control, checks and files", function()
  t.near(ops.UpdateState()(x, x), x, 0)
  t.near(ops.Reusing()(x), x, 0)
  t.near(ops.MoveTo()(x, "CPU"), x, 0)
  t.equal({ ops.GeSwitch()(3, true) }, { nil, 3 })
  local value, place = ops.Merge()({ nil, x })
  t.near(value, x, 0)
  t.equal(place:item(), 1)
  t.equal(ops.Assert(2)(ms.tensor(true), { x }), true)
  t.fails({ "Assert: the condition is false: [-1.5 0.25 ...]" }, function() return ops.Assert(2)(false, { x }) end)
  t.fails({ "CheckNumerics: the tensor has elements that are infinite" }, function()
    return ops.CheckNumerics()(ms.tensor { 1.0, math.huge })
  end)
  t.equal(ops.SliceGetItem(ms.slice(2, 5), "start"), 2)
  assert(rawequal(ops.P, ops) and ops.Tensor == ms.Tensor)
  local file = os.tmpname()
  ops.TensorDump()(file, x)
  t.near(ms.load(file .. ".npy"), x, 0)
  ms.grad(function(v) return ops.sum(ops.DumpGradient()(file, v, "out") * 3) end)(x)
  t.near(ms.load(file .. ".npy"), ops.full({ 2, 3 }, 3.0), 0)
  os.remove(file)
  os.remove(file .. ".npy")
end)

t.test("those without kernels on a CPU elsewhere, by the functions that they are", function()
  local weight = ms.randn { 2, 3, 2, 2 }
  local image = ms.randn { 1, 3, 5, 5 }
  local depthwise = ops.DepthwiseConv2dNative(2, 2)(image, weight)
  for c = 0, 2 do
    for m = 0, 1 do
      local own = ops.conv2d(ops.narrow(image, 1, c, 1), weight[m][c]:reshape { 1, 1, 2, 2 })
      t.near(ops.narrow(depthwise, 1, 2 * c + m, 1), own, 1e-5)
    end
  end
  t.near(ops.RmsNorm()(x, ms.ones { 3 }), ops.rms_norm(x, ms.ones { 3 }), 0)
  t.near(ops.Roll(1, 1)(x), ops.roll(x, 1, 1), 0)
  t.near(ops.Fills()(x, 2.5), ops.full({ 2, 3 }, 2.5), 0)
  t.near(ops.SplitV({ 1, -1 }, 1, 2)(x), x[{ ms.slice(0, 2), ms.slice(0, 1) }], 0)
  t.near(ops.Einsum("ij,kj->ik")({ x, x }), ops.matmul(x, x:t()), 1e-6)
  t.near(ops.MatrixExp()(ms.tensor { { 0.0, 1.0 }, { 0.0, 0.0 } }), { { 1, 1 }, { 0, 1 } }, 1e-6)
  t.near(ops.LARSUpdate()(x, x, ms.tensor(4.0), ms.tensor(9.0), 0.0, 0.1), x * (0.001 * 2 / (3 + 1e-5)), 1e-7)
  t.near(ops.SoftMarginLoss()(x, ops.sign(x)), ops.soft_margin_loss(x, ops.sign(x)), 0)
  -- Keras: accum = momentum accum - lr g, var += accum.
  local var, accum = ms.Parameter(ms.tensor { 1.0 }), ms.Parameter(ms.tensor { 0.5 })
  ops.ApplyKerasMomentum()(var, accum, ms.tensor(0.1), ms.tensor { 2.0 }, ms.tensor(0.9))
  t.near({ var:item(), accum:item() }, { 1.25, 0.25 }, 1e-6)
  local cast = ms.Parameter(ms.tensor { 1.0 })
  ops.FusedCastAdamWeightDecay()(cast, ms.Parameter(ms.zeros { 1 }), ms.Parameter(ms.zeros { 1 }), 0.1, 0.9, 0.999, 1e-8, 0.0,
    ms.tensor({ 2.0 }, ms.float16))
  local plain = ms.Parameter(ms.tensor { 1.0 })
  ops.AdamWeightDecay()(plain, ms.Parameter(ms.zeros { 1 }), ms.Parameter(ms.zeros { 1 }), 0.1, 0.9, 0.999, 1e-8, 0.0, ms.tensor { 2.0 })
  t.near(cast, plain, 1e-6)
  local cache, values = ms.Parameter(ms.zeros { 2, 2, 3 }), ms.Parameter(ms.zeros { 2, 2, 3 })
  ops.ReshapeAndCache()(x, x + 1, cache, values, ms.tensor({ 3, -1 }, ms.int32))
  t.equal({ cache:tolist()[2][2], values:tolist()[2][2] }, { { -1.5, 0.25, 2.0 }, { -0.5, 1.25, 3.0 } })
  t.equal(ops.sum(cache):item(), 0.75)
end)

t.test("recurrent steps are those of the layers", function()
  ms.set_seed(1)
  local steps, batch, input, hidden = 3, 2, 4, 5
  local inputs, h, c = ms.randn { steps, batch, input }, ms.randn { 1, batch, hidden }, ms.randn { 1, batch, hidden }
  -- The gates of DynamicRNN are input, candidate, forget, output; those of nn.LSTM input, forget, candidate, output.
  local w_ih, w_hh, bias = ms.randn { 4 * hidden, input }, ms.randn { 4 * hidden, hidden }, ms.randn { 4 * hidden }
  local function reordered(w)
    local i, f, g, o = ops.tensor_split(w, 4, 0)
    return ops.concat({ i, g, f, o }, 0)
  end
  local y, states, memories = ops.DynamicRNN()(inputs, ops.concat({ reordered(w_ih):t(), reordered(w_hh):t() }, 0), reordered(bias), nil,
    h, c)
  local flat = ops.concat({ w_ih:reshape { -1 }, w_hh:reshape { -1 }, bias }, 0)
  local other, last, memory = ops.LSTM(input, hidden, 1, true, false, 0.0)(inputs, h, c, flat)
  t.near(y, other, 1e-5)
  t.near(states[-1], last[0], 1e-5)
  t.near(memories[-1], memory[0], 1e-5)
  -- nn.GRU has the gates reset, update, new, as "rzh".
  local layer = ms.nn.GRU(input, hidden)
  local params = {}
  for name, p in layer:parameters_and_names() do params[name:match "[^%.]+$"] = p end
  local names = {}
  for name in pairs(params) do names[#names + 1] = name end
  table.sort(names)
  local function find(pattern)
    for _, name in ipairs(names) do
      if name:find(pattern) then return params[name] end
    end
    error("no parameter " .. pattern .. " among " .. table.concat(names, " "))
  end
  local expected = layer(inputs, h)
  local got = ops.DynamicGRUV2()(inputs, find("w.*_ih"):t(), find("w.*_hh"):t(), find("b.*_ih"), find("b.*_hh"), nil, h)
  t.near(got, expected, 1e-5)
  t.fails({ "DynamicRNN: seq_length must be nil" }, function() return ops.DynamicRNN()(inputs, w_ih, bias, ms.tensor { 3, 3 }, h, c) end)
  t.fails({ "DynamicRNN: keep_prob must be 1.0, got 0.5" }, function() return ops.DynamicRNN { keep_prob = 0.5 } end)
end)

t.test("the loss of a transducer sums over all alignments", function()
  -- Two steps, one label: blank then label then blank, or label first.
  local acts = ms.randn { 1, 2, 2, 3 }
  local labels, times, counts = ms.tensor({ { 2 } }, ms.int32), ms.tensor({ 2 }, ms.int32), ms.tensor({ 1 }, ms.int32)
  local costs, slope = ops.RNNTLoss(0)(acts, labels, times, counts)
  local p = ops.log_softmax(acts, -1)[0]:tolist()
  local one = p[1][2][1] + p[1][1][3] + p[2][2][1]
  local other = p[1][1][1] + p[2][1][3] + p[2][2][1]
  t.near(costs:item(), -math.log(math.exp(one) + math.exp(other)), 1e-5)
  local step = 1e-2
  local moved = acts:copy()
  moved[{ 0, 0, 0, 2 }] = acts[{ 0, 0, 0, 2 }] + step
  local back = acts:copy()
  back[{ 0, 0, 0, 2 }] = acts[{ 0, 0, 0, 2 }] - step
  local difference = (ops.RNNTLoss(0)(moved, labels, times, counts):item() - ops.RNNTLoss(0)(back, labels, times,
    counts):item()) / (2 * step)
  t.near(slope[{ 0, 0, 0, 2 }]:item(), difference, 1e-3)
end)

-- MindSpore 2.10's names that this library has none of: registers of kernels, and what needs several processes, its parameter servers,
-- its caches of embeddings or the Ascend's registers.
local without = [[AiCPURegOp AkgAscendRegOp AkgGpuRegOp ApplyRotaryPosEmb CpuRegOp CustomOpBuilder CustomRegOp DataType
  DeformableOffsets DtypeToEnum FusedAdaFactor FusedAdaFactorWithGlobalNorm GetNext GroupTopk MapCacheIdx NPUAllocFloatStatus
  NPUClearFloatStatus NPUGetFloatStatus NeighborExchangeV2 PagedAttention PagedAttentionMask Pull Push PyExecute
  Reshard SampleDistortedBoundingBoxV2 TBERegOp TCPStore]]

t.test("of MindSpore's 593 names 560 and more are there, and say what they do", function()
  local file = assert(io.open "tests/lua/primitives/names.txt")
  local count, missing, silent, absent = 0, {}, {}, {}
  for name in without:gmatch "%S+" do absent[name] = true end
  for name in file:read("a"):gmatch "%S+" do
    local ok, value = pcall(function() return ops[name] end)
    if ok then
      count = count + 1
      if type(value) == "table" and rawget(value, "_is_class") and not (value._doc and value._doc:find "%w") then
        silent[#silent + 1] = name
      end
      assert(not absent[name], name .. " is there, and is listed as absent")
    elseif not absent[name] then
      missing[#missing + 1] = name
    end
  end
  file:close()
  t.equal({ missing, silent }, { {}, {} })
  assert(count >= 560, count .. " names")
end)

t.finish()
