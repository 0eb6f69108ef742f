-- Quantisation of ONNX files: convolutions and products with constant weights get rounded operands. The graph of the file is changed
-- and compiled anew; samples run through a graph that gives the operands as further results.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local load = require "lunaria.onnx.load"
local new_report = require "lunaria.lite.quantise_report"
local ranges = require "lunaria.lite.quantise_ranges"
local weights = require "lunaria.lite.quantise_weights"

local ops = ms.ops

local function attribute(node, name, otherwise)
  local a = node.attributes[name]
  return a and a.value or otherwise
end

-- The axis of the outputs in the weight of a node; nil for other nodes.
local function outputs_axis(node, w)
  if node.domain ~= "" then return nil end
  if node.op == "Conv" then return 0 end
  if node.op == "Gemm" then
    local plain = attribute(node, "transA", 0) == 0 and attribute(node, "alpha", 1.0) == 1.0
    return plain and (attribute(node, "transB", 0) == 1 and 0 or 1) or nil
  end
  if node.op == "MatMul" and w.ndim == 2 then return 1 end
end

local Graph = {}
Graph.__index = Graph

local function look(graph)
  local self = setmetatable({ graph = graph, initial = {}, uses = {}, made = {} }, Graph)
  for _, entry in ipairs(graph.initializers) do self.initial[entry.name] = entry end
  for _, input in ipairs(graph.inputs) do self.initial[input.name] = nil end
  local function use(name) self.uses[name] = (self.uses[name] or 0) + 1 end
  for _, node in ipairs(graph.nodes) do
    for _, name in ipairs(node.inputs) do use(name) end
    for _, name in ipairs(node.outputs) do self.made[name] = node end
  end
  for _, output in ipairs(graph.outputs) do use(output.name) end
  return self
end

function Graph:value(name)
  local entry = name and self.initial[name]
  return entry and entry.value
end

function Graph:add(base, value)
  local name = base
  while self.initial[name] or self.uses[name] or self.made[name] do name = name .. "_" end
  self.initial[name] = { name = name, value = value }
  table.insert(self.graph.initializers, self.initial[name])
  return name
end

-- Normalisations with constant statistics become part of the convolution before them. Gives their number.
function Graph:fold_normalisations()
  local count, kept = 0, {}
  for _, node in ipairs(self.graph.nodes) do
    local conv = node.op == "BatchNormalization" and node.domain == "" and self.made[node.inputs[1]]
    local w = conv and conv.op == "Conv" and self.uses[node.inputs[1]] == 1 and self:value(conv.inputs[2])
    local scale, shift = self:value(node.inputs[2]), self:value(node.inputs[3])
    local mean, variance = self:value(node.inputs[4]), self:value(node.inputs[5])
    local bias = w and conv.inputs[3] and conv.inputs[3] ~= "" and self:value(conv.inputs[3]) or nil
    local known = w and scale and shift and mean and variance and (bias or not conv.inputs[3] or conv.inputs[3] == "")
    if known and attribute(node, "training_mode", 0) == 0 and #node.outputs == 1 then
      local factor = scale / ops.sqrt(variance + attribute(node, "epsilon", 1e-5))
      conv.inputs[2] = self:add(conv.inputs[2], w * weights.along(factor, 0, w.ndim))
      conv.inputs[3] = self:add(conv.inputs[2] .. "_bias", ((bias or 0.0) - mean) * factor + shift)
      conv.outputs[1] = node.outputs[1]
      self.made[node.outputs[1]] = conv
      count = count + 1
    else
      kept[#kept + 1] = node
    end
  end
  self.graph.nodes = kept
  return count
end

-- Whether a convolution without groups has fewer input channels.
local function has_few_inputs(node, w, least)
  local group = node.attributes.group
  return node.op == "Conv" and (not group or group.value == 1) and w.shape[2] < least
end

-- The nodes that are to be quantised: { node, name, input, axis, exact }.
function Graph:sites(skip, least_size, least_channels)
  local list, names = {}, {}
  for _, node in ipairs(self.graph.nodes) do
    local w = self:value(node.inputs[2])
    local axis = w and w.dtype == ms.float32 and outputs_axis(node, w)
    local name = node.name ~= "" and node.name or node.outputs[1]
    if axis and not self:value(node.inputs[1]) then
      names[#names + 1] = name
      if not skip[name] and w.size > least_size and not has_few_inputs(node, w, least_channels) then
        list[#list + 1] = { node = node, name = name, input = node.inputs[1], axis = axis, exact = w }
      end
      names[name] = true
    end
  end
  for name in pairs(skip) do
    if not names[name] then
      arguments.fail("quantize", ("skip_quant_node: no layer has the name '%s'; there are: %s"):format(tostring(name),
        table.concat(names, ", ")), arguments.nearest(tostring(name), names))
    end
  end
  return list
end

-- A node that rounds a value, in front of the place in the list.
local function rounding(of, x, scale, zero, least, most, axis, output)
  local function integer(v) return { kind = "integer", value = v } end
  return { op = "FakeQuantize", domain = "lunaria", name = output, place = of.place, version = of.version, inputs = { x, scale, zero },
    outputs = { output }, attributes = { axis = integer(axis), block_size = integer(0), least = integer(least), most = integer(most) } }
end

-- Runs the samples with the sites' inputs as further results; each(site, tensor).
local function observe(graph, path, sites, batches, each)
  local outputs, at, seen = {}, {}, {}
  for i, output in ipairs(graph.outputs) do outputs[i] = output end
  for _, site in ipairs(sites) do
    if not seen[site.input] then
      outputs[#outputs + 1] = { name = site.input, type = { kind = "tensor", known = true, dtype = "float32" } }
      seen[site.input] = #outputs
    end
    at[site] = seen[site.input]
  end
  local wide = { name = graph.name, nodes = graph.nodes, initializers = graph.initializers, inputs = graph.inputs, outputs = outputs }
  local f = load.compile(wide, path)
  for _, batch in ipairs(batches) do
    local results = { f(table.unpack(batch)) }
    local done = {}
    for _, site in ipairs(sites) do
      if not done[site.input] then each(site, results[at[site]]) end
      done[site.input] = true
    end
  end
end

local refused = { quant_strategy = true, bias_correction = true, equalize = true, smooth = true, smooth_alpha = true, block_size = true,
  init_scale = true, auto_tune = true, max_iterations = true, target_sqnr = true, min_quant_weight_channel = true }

local function check(given, o)
  for name in pairs(given) do
    if refused[name] then arguments.fail("quantize", name .. " is not supported for files: load the weights into a cell") end
  end
  if o.quant_type == "DYNAMIC_QUANT" then arguments.fail("quantize", "DYNAMIC_QUANT is not supported for files") end
  if o.bit_num == 0 then arguments.fail("quantize", "mixed bits (bit_num = 0) are not supported for files") end
end

local function ranges_of(graph, path, sites, batches, o)
  local observers = {}
  for _, site in ipairs(sites) do observers[site.input] = observers[site.input] or ranges.observer() end
  observe(graph, path, sites, batches, function(site, x) observers[site.input]:see_range(x) end)
  if o.activation_quant_method ~= "MAX_MIN" then
    observe(graph, path, sites, batches, function(site, x) observers[site.input]:see_counts(x) end)
  end
  local found = {}
  for name, observer in pairs(observers) do
    local low, high = observer:range(o.activation_quant_method, o.activation_bit_num)
    found[name] = { ranges.affine(low, high, o.activation_bit_num) }
  end
  return found
end

-- What quantise_report reads of a layer.
local function row_of(site, cell)
  return { name = site.name, kind = { class = { _name = site.node.op }, weight = "weight" }, bits = site.bits, method = "MAX_MIN",
    exact = site.exact, cell = cell }
end

--- The function of a model in a file with rounded operands, and the report. o: complete options; given: those that were said.
return function(path, o, given, read_batches)
  check(given, o)
  local self = look(load.read(path))
  local graph = self.graph
  local exact_f, _, about = load.compile(graph, path)
  local full = o.quant_type == "FULL_QUANT"
  local batches = o.calibrate_data and read_batches(#about.inputs)
  local exact = {}
  for i, batch in ipairs(batches or {}) do exact[i] = exact_f(table.unpack(batch)) end
  local folded = self:fold_normalisations()
  local skip = {}
  for _, name in ipairs(o.skip_quant_node or {}) do skip[name] = true end
  local sites = self:sites(skip, o.min_quant_weight_size, full and o.min_quant_input_channel or 0)
  if #sites == 0 then arguments.fail("quantize", path .. ": there is no Conv, Gemm or MatMul with a constant weight") end
  local found = full and ranges_of(graph, path, sites, batches, o) or {}

  local before, rows, rounded = {}, {}, {}
  for _, site in ipairs(sites) do
    local node, w = site.node, site.exact
    before[node] = {}
    local axis = o.per_channel and site.axis or nil
    local scale = weights.scale(w, o.bit_num, axis, 0)
    local least, most = ranges.limits(o.bit_num, true)
    local integer = o.bit_num <= 8 and ms.int8 or ms.int16
    local new = self:add(node.inputs[2] .. "_rounded", weights.nearest(w, o.bit_num, scale, axis, 0))
    local output = new .. "_dq"
    local step, zeros = self:add(new .. "_scale", scale), self:add(new .. "_zero", ops.zeros(scale.shape, integer))
    table.insert(before[node], rounding(node, new, step, zeros, least, most, axis or 0, output))
    node.inputs[2] = output
    site.bits = o.bit_num
    local cell = { weight = self:value(new), weight_scale = scale, weight_block = 0 }
    rows[#rows + 1] = row_of(site, cell)
    if full then
      if not rounded[site.input] then
        local low, high = ranges.limits(o.activation_bit_num)
        local s, zero = found[site.input][1], found[site.input][2]
        local name = site.input .. "_rounded"
        local kind = o.activation_bit_num <= 8 and ms.int8 or ms.int16
        table.insert(before[node], rounding(node, site.input, self:add(name .. "_scale", ms.tensor(s, ms.float32)),
          self:add(name .. "_zero", ops.cast(ms.tensor(zero, ms.float32), kind)), low, high, 0, name))
        rounded[site.input] = name
      end
      node.inputs[1] = rounded[site.input]
    end
  end
  local nodes = {}
  for _, node in ipairs(graph.nodes) do
    for _, one in ipairs(before[node] or {}) do nodes[#nodes + 1] = one end
    nodes[#nodes + 1] = node
  end
  graph.nodes = nodes
  local f = load.compile(graph, path)
  local report = new_report(rows, {}, { folded = folded, equalised = 0, smoothed = 0 })
  if batches then
    local comparison = weights.comparison()
    for i, batch in ipairs(batches) do comparison:add(exact[i], (f(table.unpack(batch)))) end
    report.sqnr, report.cosine = comparison:result()
  end
  if o.debug_info_save_path then report:save(o.debug_info_save_path) end
  return f, report
end
