-- ms.lite.quantize: a network as one that computes with few bits, and how much each layer loses by it.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local cells = require "lunaria.nn.cell"
local copy = require "lunaria.nn.copy"
local source = require "lunaria.train.batches"
local uncompiled = require "lunaria.nn.uncompiled"
local graph = require "lunaria.lite.quantise_graph"
local layers_of = require "lunaria.lite.quantise_layers"
local ranges = require "lunaria.lite.quantise_ranges"
local new_report = require "lunaria.lite.quantise_report"
local weights = require "lunaria.lite.quantise_weights"

local ops = ms.ops
local fail, describe = arguments.fail, arguments.describe
local where = "quantize"
local M = {}

local function within(low, high)
  return function(value)
    return math.type(value) == "integer" and value >= low and value <= high, ("an integer from %d to %d"):format(low, high)
  end
end
local function not_negative(value) return math.type(value) == "integer" and value >= 0, "an integer that is not negative" end
local function share(value) return type(value) == "number" and value >= 0 and value <= 1, "a number from 0 to 1" end

local known = {
  quant_type = arguments.one_of("FULL_QUANT", "WEIGHT_QUANT", "DYNAMIC_QUANT"),
  bit_num = within(0, 16),
  activation_bit_num = within(2, 16),
  block_size = not_negative,
  min_quant_weight_size = not_negative,
  min_quant_weight_channel = not_negative,
  min_quant_input_channel = not_negative,
  skip_quant_node = "table",
  debug_info_save_path = "string",
  quant_strategy = arguments.one_of("MAX_MIN", "GPTQ"),
  per_channel = "boolean",
  bias_correction = "boolean",
  init_scale = function(v) return type(v) == "number" and v > 0 and v < 1, "a number between 0 and 1" end,
  auto_tune = "boolean",
  max_iterations = arguments.positive,
  activation_quant_method = arguments.one_of("MSE", "MAX_MIN", "KL", "REMOVAL_OUTLIER"),
  smooth_alpha = share,
  smooth = "boolean",
  equalize = "boolean",
  calibrate_data = function(value)
    return type(value) == "table" or type(value) == "function" or type(value) == "userdata", "a data set, a list of batches or an iterator"
  end,
  calibrate_size = arguments.positive,
  target_sqnr = "number",
}

M.known = known

local defaults = {
  quant_type = "FULL_QUANT", bit_num = 8, activation_bit_num = 8, min_quant_weight_size = 0, min_quant_weight_channel = 16,
  min_quant_input_channel = 0,
  per_channel = true, bias_correction = true, init_scale = 0.02, auto_tune = false,
  max_iterations = 40, activation_quant_method = "MSE", smooth_alpha = 0.5, smooth = false, equalize = false,
  calibrate_size = 100,
}

-- What makes no sense for the kind of quantisation is an error, so that no setting is without effect.
local function check_together(o, given)
  local full = o.quant_type == "FULL_QUANT"
  local function only(condition, name, text)
    if given[name] ~= nil and not condition then fail(where, ("%s is for %s"):format(name, text)) end
  end
  only(full, "activation_quant_method", "FULL_QUANT")
  only(o.quant_type ~= "WEIGHT_QUANT", "activation_bit_num", "FULL_QUANT and DYNAMIC_QUANT")
  only(not full, "min_quant_weight_channel", "WEIGHT_QUANT and DYNAMIC_QUANT")
  only(o.bit_num == 0, "init_scale", "mixed bits (bit_num = 0)")
  only(o.bit_num == 0, "auto_tune", "mixed bits (bit_num = 0)")
  only(o.auto_tune, "max_iterations", "auto_tune")
  only(o.smooth, "smooth_alpha", "smooth = true")
  if o.bit_num == 0 and o.quant_type ~= "WEIGHT_QUANT" then fail(where, "mixed bits (bit_num = 0) are for WEIGHT_QUANT") end
  if o.bit_num == 1 then fail(where, "bit_num must be 0 or from 2 to 16, got 1") end
  if o.block_size > 0 and o.quant_type ~= "WEIGHT_QUANT" then fail(where, "blocks (block_size) are for WEIGHT_QUANT") end
  if o.block_size > 0 and not o.per_channel then fail(where, "blocks (block_size) are of channels: per_channel must be true") end
  local needs = full and "FULL_QUANT" or o.quant_strategy == "GPTQ" and "GPTQ" or o.auto_tune and "auto_tune"
    or o.smooth and "smooth" or o.equalize and "equalize" or o.target_sqnr and "target_sqnr"
    or given.bias_correction and "bias_correction"
  if needs and not o.calibrate_data then
    fail(where, needs .. " needs samples: calibrate_data is missing",
      "ms.lite.quantize(net, { calibrate_data = dataset:batch(20) })")
  end
end

local function read_options(given)
  given = arguments.options(where, given, known, '{ quant_type = "WEIGHT_QUANT" }')
  local o = {}
  for name, value in pairs(defaults) do o[name] = value end
  for name, value in pairs(given) do o[name] = value end
  -- Four bits and fewer have one scale for 32 numbers, as one for a whole channel would lose too much.
  if o.block_size == nil then
    o.block_size = o.quant_type == "WEIGHT_QUANT" and o.per_channel and o.bit_num ~= 0 and o.bit_num <= 4 and 32 or 0
  end
  local is_coarse = o.bit_num ~= 0 and o.bit_num <= 4
  o.quant_strategy = o.quant_strategy or is_coarse and o.calibrate_data and "GPTQ" or "MAX_MIN"
  check_together(o, given)
  return o
end

-- How many inputs a network takes.
local function inputs_of(network)
  local info = debug.getinfo(network.construct, "u")
  return info.isvararg and 1 or math.max(info.nparams - 1, 1)
end

--- The first `count` samples as lists of so many inputs; for a network, of its own.
function M.read_samples(caller, network, data, count)
  local inputs = math.type(network) and network or inputs_of(network)
  local batches, seen = {}, 0
  for first, second, third, fourth in source(caller, data).epoch() do
    local batch = { first, second, third, fourth }
    local own = {}
    for i = 1, inputs do
      if batch[i] == nil and i == 1 or batch[i] ~= nil and not ms.is_tensor(batch[i]) then
        fail(caller, ("calibrate_data: input %d of a batch must be a tensor, got %s"):format(i - 1, describe(batch[i])))
      end
      own[i] = batch[i]
    end
    local size = own[1].ndim > 0 and own[1].shape[1] or 1
    if seen + size > count and own[1].ndim > 0 then
      for i = 1, #own do own[i] = ops.narrow(own[i], 0, 0, count - seen) end
      size = count - seen
    end
    seen = seen + size
    batches[#batches + 1] = own
    if seen >= count then break end
  end
  if #batches == 0 then fail(caller, "calibrate_data gives no batch") end
  return batches
end

-- Calls the network with all samples, not compiled: the layers' observers look at numbers.
local function run_samples(network, batches, each)
  local results = {}
  uncompiled(function()
    for i, batch in ipairs(batches) do
      local y = network(table.unpack(batch))
      if each then each(y, i) end
      results[i] = y
    end
  end)
  return results
end

local function observe(layers, f)
  for _, layer in ipairs(layers) do layer.cell.observe = f and function(cell, x) return f(layer, cell, x) end or nil end
end

--- The layers of a network that are to be quantised: { cell, kind, name }.
function M.find_layers(caller, network, o)
  local skip = {}
  for _, name in ipairs(o.skip_quant_node or {}) do
    if type(name) ~= "string" then fail(caller, "skip_quant_node must be a list of names, got " .. describe(name)) end
    skip[name] = true
  end
  local list, names = {}, {}
  for name, cell in network:cells_and_names() do
    local kind = layers_of.kind_of(cell)
    if kind and not (kind.is_table and o.quant_type ~= "WEIGHT_QUANT") then
      names[name] = true
      local w = cell[kind.weight]
      local few = kind.is_convolution
        and (o.quant_type ~= "FULL_QUANT" and w.shape[1] < o.min_quant_weight_channel
          or o.quant_type == "FULL_QUANT" and cell.group == 1 and w.shape[2] < (o.min_quant_input_channel or 0))
      if not skip[name] and not few and w.size > o.min_quant_weight_size then
        list[#list + 1] = { cell = cell, kind = kind, name = name }
      end
    end
  end
  for name in pairs(skip) do
    if not names[name] then
      local all = {}
      for other in pairs(names) do all[#all + 1] = other end
      table.sort(all)
      fail(caller, ("skip_quant_node: no layer has the name '%s'; there are: %s"):format(name, table.concat(all, ", ")),
        arguments.nearest(name, all))
    end
  end
  if #list == 0 then
    fail(caller, "the network has no layer that could be quantised: nn.Dense, nn.Conv1d ... nn.Conv3d, their transposed forms, and "
      .. "for weights nn.Embedding")
  end
  return list
end

-- The axis of a weight's scales, and the size of a block along it.
local function layout(layer, o)
  if not o.per_channel then return nil, 0 end
  if o.block_size > 0 and not layer.kind.is_transposed then return 1, o.block_size end
  return layer.kind.outputs, 0
end

-- The sum of x x^T over all inputs of a layer's weight as a matrix (n, k); nil where the layer's sums are none of such a matrix.
local function moments_of(layer, x)
  local cell = layer.cell
  if layer.kind.class == ms.nn.Dense then
    local rows = ops.reshape(x, { -1, x.shape[x.ndim] })
    return ops.matmul(ops.transpose(rows, { 1, 0 }), rows)
  end
  if layer.kind.class ~= ms.nn.Conv2d or cell.group ~= 1 then return nil end
  local padding
  if cell.pad_mode == "valid" then
    padding = { 0, 0 }
  elseif cell.pad_mode == "pad" and #cell.padding == 2 then
    padding = cell.padding
  elseif cell.pad_mode == "same" then
    padding = {}
    for i = 1, 2 do
      local surplus = cell.dilation[i] * (cell.kernel_size[i] - 1)
      if cell.stride[i] ~= 1 or surplus % 2 ~= 0 then return nil end
      padding[i] = surplus // 2
    end
  else
    return nil
  end
  local columns = ops.unfold(x, cell.kernel_size, cell.dilation, padding, cell.stride)
  if columns.ndim == 4 then columns = ops.reshape(columns, { columns.shape[1], -1, columns.shape[3] * columns.shape[4] }) end
  return ops.sum(ops.matmul(columns, ops.swapaxes(columns, 1, 2)), 0)
end

-- The largest magnitude of each input channel: the last axis.
local function channel_magnitude(x)
  local rows = ops.abs(ops.reshape(x, { -1, x.shape[x.ndim] }))
  return ops.amax(rows, 0)
end

--- What the layers' inputs are for the samples, as far as the options need it: layer.observer and layer.moments.
function M.calibrate(network, layers, batches, o)
  local full, gptq = o.quant_type == "FULL_QUANT", o.quant_strategy == "GPTQ"
  for _, layer in ipairs(layers) do layer.observer, layer.moments = ranges.observer(), nil end
  if full or gptq then
    observe(layers, function(layer, cell, x)
      if full then layer.observer:see_range(x) end
      if gptq then
        local m = moments_of(layer, x)
        if m then layer.moments = layer.moments and layer.moments + m or m end
      end
      return layers_of.apply(cell, x, layers_of.weight_of(cell))
    end)
    run_samples(network, batches)
  end
  if full and o.activation_quant_method ~= "MAX_MIN" then
    observe(layers, function(layer, cell, x)
      layer.observer:see_counts(x)
      return layers_of.apply(cell, x, layers_of.weight_of(cell))
    end)
    run_samples(network, batches)
  end
  observe(layers, nil)
end

local function round_weight(layer, bits, o)
  local cell = layer.cell
  local axis, block = layout(layer, o)
  local w = ops.stop_gradient(layer.exact)
  -- Blocks lie along all inputs of an output: the weight as a matrix.
  local form = block > 0 and ops.reshape(w, { w.shape[1], -1 }) or w
  local scale = weights.scale(form, bits, axis, block)
  local rounded
  if o.quant_strategy == "GPTQ" and layer.moments then
    local n = w.shape[1]
    local rows = block > 0 and scale or ops.reshape(ops.broadcast_to(ops.reshape(scale, { -1 }), { n }), { n, 1 })
    rounded = weights.gptq(ops.reshape(w, { n, -1 }), bits, rows, block, layer.moments)
    layer.method = "GPTQ"
  else
    rounded = weights.nearest(form, bits, scale, axis, block)
    layer.method = "MAX_MIN"
  end
  layers_of.weight_of(cell):set_data(ops.reshape(rounded, w.shape))
  layers_of.set_weight(cell, bits, scale, axis, block)
  layer.bits = bits
end

-- Whether a weight needs this many bits for the error of its rounding to stay below the share of its size.
local function bits_for(layer, o, bound)
  local axis, block = layout(layer, o)
  local w = block > 0 and ops.reshape(layer.exact, { layer.exact.shape[1], -1 }) or layer.exact
  for bits = 2, 15 do
    local scale = weights.scale(w, bits, axis, block)
    local sqnr = weights.compare(w, weights.nearest(w, bits, scale, axis, block))
    if sqnr >= -20 * math.log(bound, 10) then return bits end
  end
  return 16
end

-- Compares what each layer computes of the same inputs with and without rounding, and takes the mean difference of each channel off
-- the bias where that is wanted. Gives the errors by layer.
local function measure(network, layers, batches, o, corrects)
  local sums = {}
  local function channel_mean(layer, y)
    local axis = layer.kind.is_convolution or layer.kind.is_transposed
    local axes = {}
    for i = 0, y.ndim - 1 do
      if i ~= (axis and 1 or y.ndim - 1) then axes[#axes + 1] = i end
    end
    return ops.sum(y, axes), y.size // y.shape[axis and 2 or y.ndim]
  end
  observe(layers, function(layer, cell, x)
    local s = sums[layer] or { signal = 0, noise = 0, other = 0, product = 0, x_signal = 0, x_noise = 0, count = 0 }
    sums[layer] = s
    local rounded = cell.input_min and layers_of.rounded_input(cell, x) or x
    local exact = layers_of.apply(cell, x, layer.exact)
    local y = layers_of.apply(cell, rounded, layers_of.weight_of(cell))
    local d = y - exact
    s.signal, s.noise = s.signal + ops.sum(exact * exact):item(), s.noise + ops.sum(d * d):item()
    s.other, s.product = s.other + ops.sum(y * y):item(), s.product + ops.sum(y * exact):item()
    if cell.input_min then
      local e = rounded - x
      s.x_signal, s.x_noise = s.x_signal + ops.sum(x * x):item(), s.x_noise + ops.sum(e * e):item()
    end
    if corrects and not layer.kind.is_table and not cell.activation then
      local mean, count = channel_mean(layer, d)
      s.mean, s.count = s.mean and s.mean + mean or mean, s.count + count
    end
    return exact
  end)
  run_samples(network, batches)
  observe(layers, nil)
  for _, layer in ipairs(layers) do
    local s, cell = sums[layer], layer.cell
    if s and s.mean and s.count > 0 then
      local shift = s.mean / s.count
      graph.set_bias(cell, cell.bias and cell.bias - shift or ops.neg(shift))
      -- What the mean was part of is gone.
      s.noise = math.max(0, s.noise - ops.sum(shift * shift):item() * s.count)
    end
    layer.errors = s
  end
end

local function set_all(layers, o, bound)
  for _, layer in ipairs(layers) do
    round_weight(layer, bound and bits_for(layer, o, bound) or o.bit_num, o)
    if o.quant_type == "FULL_QUANT" then
      layers_of.set_input(layer.cell, o.activation_bit_num, layer.observer:range(o.activation_quant_method, o.activation_bit_num))
    elseif o.quant_type == "DYNAMIC_QUANT" then
      layers_of.set_input(layer.cell, o.activation_bit_num)
    end
  end
end

-- How far the results of the network are from those that it had.
local function distance(network, batches, exact)
  local comparison = weights.comparison()
  run_samples(network, batches, function(y, i)
    if ms.is_tensor(y) then return comparison:add(exact[i], y) end
    for k, item in pairs(y) do
      if ms.is_tensor(item) then comparison:add(exact[i][k], item) end
    end
  end)
  return comparison:result()
end

-- Gives layers back to floating point, those with the largest errors first, until the network is good enough.
local function keep_floating(network, layers, batches, exact, o)
  local kept, left = {}, {}
  for i, layer in ipairs(layers) do left[i] = layer end
  -- What a layer costs: the network's error where it alone is rounded.
  for _, layer in ipairs(left) do
    for _, other in ipairs(left) do
      if other ~= layer then
        other.cell.observe = function(cell, x) return layers_of.apply(cell, x, other.exact) end
      end
    end
    layer.alone = distance(network, batches, exact)
    observe(left, nil)
  end
  table.sort(left, function(a, b) return a.alone > b.alone end)
  local sqnr = distance(network, batches, exact)
  while sqnr < o.target_sqnr and #left > 0 do
    local worst = table.remove(left)
    layers_of.weight_of(worst.cell):set_data(worst.exact)
    if worst.bias then worst.cell.bias:set_data(worst.bias) end
    layers_of.restore(worst.cell)
    kept[#kept + 1] = worst
    sqnr = distance(network, batches, exact)
  end
  local order = {}
  for i, layer in ipairs(layers) do order[layer] = i end
  table.sort(left, function(a, b) return order[a] < order[b] end)
  return left, kept
end

-- The share of a weight's size that its rounding may lose, so that the network's results have a cosine of about 0.995.
local function tuned_scale(network, layers, batches, exact, o)
  local low, high, best = 1e-4, 0.5, nil
  for _ = 1, o.max_iterations do
    local bound = best and math.sqrt(low * high) or o.init_scale
    set_all(layers, o, bound)
    local _, cosine = distance(network, batches, exact)
    if cosine >= 0.995 then
      best, low = bound, bound
    else
      best, high = best or low, bound
    end
    if high / low < 1.05 then break end
  end
  return best
end

local function prepare(network, o, batches)
  local layers = M.find_layers(where, network, o)
  local folded = batches and o.quant_type ~= "WEIGHT_QUANT" and graph.fold_normalisations(network, layers, batches[1]) or 0
  local equalised = o.equalize and graph.equalise(network, layers, batches[1]) or 0
  for _, layer in ipairs(layers) do layers_of.prepare(layer.cell, layer.kind) end
  local smoothed = 0
  if o.smooth then
    local largest = {}
    observe(layers, function(layer, cell, x)
      if layer.kind.class == ms.nn.Dense then
        local m = channel_magnitude(x)
        largest[cell] = largest[cell] and ops.maximum(largest[cell], m) or m
      end
      return layers_of.apply(cell, x, layers_of.weight_of(cell))
    end)
    run_samples(network, batches)
    observe(layers, nil)
    smoothed = graph.smooth(network, layers, batches[1], o.smooth_alpha, largest)
  end
  return layers, { folded = folded, equalised = equalised, smoothed = smoothed }
end

--- A quantised copy of a network: the weights of its dense layers and convolutions, and with FULL_QUANT their inputs too, are rounded to
--- the numbers of an integer format as they are used (ops.fake_quantize), so that what it computes is what it will compute in integers.
--- Gives the copy and a report of what each layer lost.
---
--- network: a cell; the copy is in evaluation mode. Or the path of an ONNX file: then a function of the model's inputs is given, for
--- ms.export and ms.lite.convert, and only what rounds weights and inputs to the nearest is supported. options (names and defaults are
--- those of MindSpore Lite's converter where it has them):
--- quant_type: "FULL_QUANT" (the default), "WEIGHT_QUANT" (weights alone) or "DYNAMIC_QUANT" (ranges of inputs are taken at run time);
--- bit_num (8): bits of a weight, 2 to 16, 0 for weights: as few as each may have; activation_bit_num (8); block_size: with WEIGHT_QUANT
--- so many inputs of an output have one scale (32 up to four bits, else 0: one for a channel); per_channel (true);
--- calibrate_data: a data set, list or iterator of batches, whose first values are the inputs; calibrate_size (100): how many samples;
--- activation_quant_method: "MSE" (the range of least squared error), "MAX_MIN", "KL" or "REMOVAL_OUTLIER"; quant_strategy: "MAX_MIN"
--- (to the nearest) or "GPTQ" (errors are made up for; what up to four bits get where there are samples); bias_correction (true, where
--- there are samples); equalize (false): channels between two layers are brought to like ranges; smooth (false), smooth_alpha (0.5):
--- SmoothQuant; skip_quant_node: names of layers that stay as they are;
--- min_quant_weight_size (0), min_quant_weight_channel (16): weights up to that size, and convolutions of fewer channels, stay as they
--- are if not all is quantised; min_quant_input_channel (0): convolutions of fewer input channels without groups stay floating if all
--- is quantised, as light files of 8 run them faster; target_sqnr: layers stay floating, the worst first, until the results have so
--- many decibels;
--- init_scale (0.02), auto_tune, max_iterations (40): for bit_num = 0, the share that rounding may take of a weight, and whether
--- it is searched for (cosine 0.995); debug_info_save_path: a folder for the report as files.
---     > net = ms.nn.SequentialCell(ms.nn.Dense(8, 16), ms.nn.ReLU(), ms.nn.Dense(16, 4))
---     > small, report = ms.lite.quantize(net, { calibrate_data = { { ms.ops.randn { 100, 8 } } } })
---     > report.sqnr > 25 --> true
---     > small[1] --> DenseQuant<input_channels=8, output_channels=16, has_bias=true, weight=[-127, 127], input=[-128, 127]>
function M.quantize(network, options)
  local o = read_options(options)
  if type(network) == "string" then
    return require "lunaria.lite.quantise_onnx"(network, o, options or {}, function(inputs)
      return M.read_samples(where, inputs, o.calibrate_data, o.calibrate_size)
    end)
  end
  if not cells.is_cell(network) then
    fail(where, "the network must be a cell or the path of an ONNX file, got " .. describe(network))
  end
  local quantised = copy(network):set_train(false)
  local batches = o.calibrate_data and M.read_samples(where, quantised, o.calibrate_data, o.calibrate_size)
  local exact = batches and run_samples(quantised, batches)
  local layers, changes = prepare(quantised, o, batches)
  if batches then M.calibrate(quantised, layers, batches, o) end
  for _, layer in ipairs(layers) do
    layer.exact = layers_of.weight_of(layer.cell):copy()
    layer.bias = layer.cell.bias and layer.cell.bias:copy()
  end
  local bound
  if o.bit_num == 0 then bound = o.auto_tune and tuned_scale(quantised, layers, batches, exact, o) or o.init_scale end
  set_all(layers, o, bound)
  if batches then measure(quantised, layers, batches, o, o.bias_correction) end
  local kept = {}
  if o.target_sqnr then layers, kept = keep_floating(quantised, layers, batches, exact, o) end
  local report = new_report(layers, kept, changes)
  if batches then report.sqnr, report.cosine = distance(quantised, batches, exact) end
  if o.debug_info_save_path then report:save(o.debug_info_save_path) end
  return quantised, report
end

return M
