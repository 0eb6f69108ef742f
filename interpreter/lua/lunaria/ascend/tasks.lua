-- From the operators of a step to the tasks of the chip: which of them are one task, which bytes go to the memory stacks,
-- which conversions of types and layouts come between. The rules are MindSpore's documented fusions: statistics of a batch
-- normalisation in the convolution before it, relu in the normalisation, elementwise operators with the one that made
-- their operand, gradients of relu and sums of gradients in the product before them.
local cluster = require "lunaria.ascend.cluster"
local cost = require "lunaria.ascend.cost"

local M = {}

local function count_of(t)
  local n = 1
  for _, d in ipairs(t) do n = n * d end
  return n
end

-- Passes of the vector pipe over a float16 element of the largest operand, in units of its bytes.
local passes = {
  softmax = 6, softmax_grad = 4, log_softmax = 6, log_softmax_grad = 4, layer_norm = 12, layer_norm_grad = 16, rms_norm = 8,
  gelu_erf = 16, gelu_tanh = 16, gelu_erf_grad = 24, gelu_tanh_grad = 24, exp = 4, tanh = 8, sigmoid = 6, silu = 8, erf = 8,
  max_window = 9 / 4 * 4, max_window_grad = 9, avg_pool2d = 9, avg_pool_grad = 9, div = 3, sum = 2, mean = 2,
}
local makes_constants = { zeros = true, ones = true, full = true, arange = true, full_like = true, zeros_like = true, ones_like = true }
local products = { conv2d = true, conv2d_relu = true, conv_input_grad = true, conv_weight_grad = true, matmul = true, mm = true, bmm = true,
  dense = true, affine = true }
-- Part of the chain in UB: one result for each element, no other operand's layout matters.
local no_chain = { dropout_with_mask = true, gather = true, concat = true, index_add = true, cast = true }
local float_of_norm = { layer_norm = true, batch_norm_train = true, gather = true, layer_norm_grad = true }

local Builder = {}
Builder.__index = Builder

local function is_float(t) return t.dtype:match "^float" ~= nil or t.dtype == "bfloat16" end

-- Bytes of an element on the chip. "float16": what is computed is float16; "mixed": operands of products are, the rest is
-- what it was computed from; "own": everything is what it says, as in a record of what ran.
function Builder:width(t)
  if self.dtype == "own" and t.dtype ~= "bool" then return t.width end
  if not is_float(t) then return t.dtype == "bool" and 1 / 8 or t.width end
  if self.dtype == "float32" then return 4 end
  if self.dtype == "float16" then return 2 end
  return self.widths[t.id] or 4
end

-- Pictures are kept in blocks of 16 channels, the last of which may be filled up.
local function room(t)
  if #t ~= 4 or t.parameter or t[2] % 16 == 0 or t[3] * t[4] < 16 then return 1 end
  return (t[2] + 15) // 16 * 16 / t[2]
end

function Builder:bytes(t) return count_of(t) * self:width(t) * room(t) end

-- What reading a tensor costs of the way to the memory stacks: little, when it was just written and stays in the cache.
function Builder:read(t)
  local bytes = self:bytes(t)
  local made = self.made[t.id]
  if made and #self.tasks - made <= 2 and bytes < self.chip.l2_bytes / 2 then return bytes * self.chip.l2_read end
  return bytes
end

function Builder:add(name, row, task)
  task.name, task.place, task.op, task.stream = name, row.place, row.op, row.stream or 0
  task.phase, task.layer = task.phase or self.phase, row.layer
  self.tasks[#self.tasks + 1] = task
  task.after, self.after[task.stream] = self.after[task.stream], nil
  task.epoch, self.last[task.stream] = self.epochs[task.stream], task
  return task
end

-- The forward pass is over, or the backward one: nothing joins a task of before.
function Builder:turn(phase)
  self.phase = phase
  for stream, epoch in pairs(self.epochs) do self.epochs[stream] = epoch + 1 end
  self.epochs[0] = self.epochs[0] or 0
end

function Builder:made_by(t, task)
  self.made[t.id] = #self.tasks
  self.producer[t.id] = task
end

-- Operands that something has to bring into shape first: transposed views, reshaped copies, other types.
function Builder:prepare(row, t, is_product)
  if count_of(t) < 1024 or t.layout == "broadcast" then return end
  local hidden = not self.known[t.id] and not t.parameter
  local permuted = t.layout == "permuted"
  local key = t.id .. ":" .. (t.layout or "") .. table.concat(t, ",")
  if (hidden or permuted) and not self.prepared[key] and not self.parameter_counts[count_of(t)] then
    self.prepared[key] = true
    local bytes = self:bytes(t)
    self:add("Transpose", row, { hbm = self:read(t) + bytes, vector = 2 * bytes })
    -- Products want squares, transposes plain rows; the conversion before a transpose is part of it.
    if is_product and self.convert_layouts then
      self:add("TransData", row, { hbm = bytes * (1 + self.chip.l2_read), vector = 2 * bytes })
    end
    self.made[t.id] = #self.tasks
  end
  if not is_product or not is_float(t) or self:width(t) ~= 4 or self.prepared["cast" .. t.id] then return end
  -- Estimates count the conversion of parameters with their updates.
  if self.dtype == "own" or self.dtype == "mixed" and not t.parameter and not self.parameter_counts[count_of(t)] then
    self.prepared["cast" .. t.id] = true
    local bytes = count_of(t) * 4
    self:add("Cast", row, { hbm = self:read(t) + bytes / 2, vector = 2 * bytes })
  end
end

local function dims_of_product(row)
  local out, a, b = row.outputs[1], row.inputs[1], row.inputs[2]
  if row.op == "conv2d" or row.op == "conv2d_relu" then return out[1] * out[3] * out[4], ((b[2] + 15) // 16 * 16) * b[3] * b[4], b[1], 1 end
  if row.op == "conv_weight_grad" then
    local d -- the gradient of the result is the operand whose channels are the weight's outputs
    for _, x in ipairs(row.inputs) do
      if #x == 4 and x[2] == out[1] then d = x end
    end
    d = d or a
    return out[1], (out[2] + 15) // 16 * 16 * out[3] * out[4], d[1] * d[3] * d[4], 1
  end
  if row.op == "conv_input_grad" then
    local w, d = nil, nil
    for _, x in ipairs(row.inputs) do
      if #x == 4 then
        if x[1] == out[1] and not d then d = x else w = w or x end
      end
    end
    if not (w and d) then return out[1] * out[3] * out[4], count_of(a) // math.max(a[1], 1), out[2], 1 end
    return out[1] * out[3] * out[4], count_of(d) / count_of(out) * out[2] * w[3] * w[4] // 1 | 0, out[2], 1
  end
  if row.op == "dense" or row.op == "affine" then
    local n = out[#out]
    return count_of(out) // n, count_of(b) // n, n, 1
  end
  local k, n = a[#a], out[#out]
  local m = #out > 1 and out[#out - 1] or 1
  local count = count_of(out) // (m * n)
  -- A matrix on the right is shared: its batches are rows.
  if #b == 2 then return m * count, k, n, 1 end
  return m, k, n, count
end

function Builder:product(row)
  for _, t in ipairs(row.inputs) do self:prepare(row, t, true) end
  local out = row.outputs[1]
  self.widths[out.id] = 2
  local m, k, n, count = dims_of_product(row)
  local hbm = 0
  for i, t in ipairs(row.inputs) do
    if count_of(t) > 1 then
      local half = self.dtype == "float32" and 4 or 2
      hbm = hbm + ((t.parameter or i == 2) and count_of(t) * half or self:read(t) * half / self:width(t))
    end
  end
  -- Gradients of weights are float32.
  local weight = self.parameter_counts[count_of(out)] and (row.op == "conv_weight_grad" or row.op == "matmul" and #out == 2)
  hbm = hbm + count_of(out) * (weight and 4 or self:width(out))
  local task = self:add(row.op, row, { product = cost.product(self.chip, m, k, n, count), hbm = hbm, flops = 2 * m * k * n * count,
    is_product = true })
  if weight then task.gradient = count_of(out) end
  self:made_by(out, task)
end

function Builder:batch_norm(row)
  local x, y = row.inputs[1], row.outputs[1]
  local s = self:bytes(x)
  local before = not self.alone and self.producer[x.id]
  if not (before and before.is_product) then self:add("BNReduce", row, { hbm = self:read(x), vector = s * 4 }) end
  local task = self:add("BNUpdate", row, { hbm = self:read(x) + s, vector = s * 6, chain = true })
  self:made_by(y, task)
end

function Builder:batch_norm_grad(row)
  local dy = row.inputs[1]
  local s = self:bytes(dy)
  self:add("BNUpdateGrad", row, { hbm = s + self:read(dy), vector = s * 8 })
  local task = self:add("BNReduceGrad", row, { hbm = self:read(dy) * 2 + s, vector = s * 8 })
  self:made_by(row.outputs[1], task)
  -- Here the derivative through the statistics is operators of its own; the chip's kernel has them inside.
  self.statistics = { task = task, [row.outputs[1].id] = true, [row.inputs[2].id] = true }
end

function Builder:dropout(row)
  local x, y, mask = row.inputs[1], row.outputs[1], row.outputs[2]
  local n = count_of(x)
  -- One bit for each element, drawn in a task of its own.
  self:add("DropoutGenMask", row, { hbm = n / 8, vector = n * 8 })
  local task = self:add("DropoutDoMask", row, { hbm = self:read(x) + self:bytes(y) + n / 8, vector = self:bytes(x) * 3 })
  self:made_by(y, task)
  if mask then self.known[mask.id] = true end
end

-- A task that this operator can be part of: that of an operand of the same size which nothing else reads.
function Builder:chain_of(row, out)
  if self.alone then return end
  if no_chain[row.op] or not row.elementwise and not row.op:match "relu" then return end
  for _, t in ipairs(row.inputs) do
    local task = self.producer[t.id]
    local is_open = task and (task.chain or task.is_product) and task.stream == row.stream and task.epoch == self.epochs[row.stream]
    if is_open and self.readers[t.id] <= 1 and count_of(t) == count_of(out) then return task, t end
  end
end

-- Whether the operator belongs to the gradient of a normalisation that was just met.
function Builder:is_of_statistics(row, out)
  local s = self.statistics
  if not s or not row.elementwise or row.op:match "relu" then return false end
  if count_of(out) <= 8192 and self.tasks[#self.tasks] == s.task then return true end
  local inside = false
  for _, t in ipairs(row.inputs) do
    if count_of(t) == count_of(out) and t.layout ~= "broadcast" then
      if not s[t.id] then return false end
      inside = true
    end
  end
  if inside then
    s[out.id], self.producer[out.id], self.made[out.id] = true, s.task, #self.tasks
    self.widths[out.id] = 2
  end
  return inside
end

-- Gradients of relu need a bit, not the whole tensor.
local function factor(row, t)
  if row.op == "relu_grad" and t ~= row.inputs[1] then return 1 / 16 end
  return 1
end

-- Bytes to and from memory of a task of its own. Tables that are looked up are read where they are looked up.
function Builder:traffic(row, out)
  local hbm = 0
  for _, t in ipairs(row.inputs) do
    if not (row.op == "gather" and t == row.inputs[1]) and not (row.op == "index_add" and t == row.inputs[1])
      and t.layout ~= "broadcast" then
      hbm = hbm + self:read(t) * factor(row, t)
    end
  end
  for _, t in ipairs(row.outputs) do hbm = hbm + self:bytes(t) end
  if row.op == "gather" then hbm = hbm + self:bytes(out) end
  return hbm
end

-- Makes the operator part of a task that is there, where it can be.
function Builder:join(row, out, vector)
  local task, through = self:chain_of(row, out)
  if not task then return false end
  for _, t in ipairs(row.inputs) do
    if t ~= through and count_of(t) > 1 then task.hbm = task.hbm + self:read(t) * factor(row, t) end
  end
  task.hbm = task.hbm + self:bytes(out) - self:bytes(through)
  task.vector = (task.vector or 0) + vector
  task.joined = (task.joined or "") .. "+" .. row.op
  self.made[out.id], self.producer[out.id] = #self.tasks, task
  return true
end

function Builder:elements(row)
  local out = row.outputs[1]
  if not out then return end
  if self:is_of_statistics(row, out) then return end
  local largest = out
  for _, t in ipairs(row.inputs) do
    self:prepare(row, t, false)
    if count_of(t) > count_of(largest) then largest = t end
  end
  local width = 2
  for _, t in ipairs(row.inputs) do
    if count_of(t) * 2 > count_of(largest) and is_float(t) then width = math.max(width, self:width(t)) end
  end
  self.widths[out.id] = float_of_norm[row.op] and 4 or width
  local vector = (passes[row.op] or 1) * self:bytes(largest) * (row.elementwise and 2 or 1)
  if self:join(row, out, vector) then return end
  local hbm = self:traffic(row, out)
  if row.op:match "^max_window" then vector = self:bytes(largest) * (row.op == "max_window" and 9 / 4 or 9) end
  local task = self:add(row.op, row, { hbm = hbm, vector = vector, chain = row.elementwise or false })
  for _, t in ipairs(row.outputs) do self:made_by(t, task) end
end

-- Updates of parameters, by what an optimizer keeps for each: moments, tasks for a parameter, bytes.
-- Bytes for an element: parameters and moments are read and written, the gradient is read; weight decay reads and writes
-- the gradient once more with the parameter; LARS and LAMB take the norms of the parameter and of what is added to it.
local optimizers = {
  sgd = { 0, 1, 12 }, momentum = { 1, 2, 32 }, adam = { 2, 3, 28 }, adamw = { 2, 3, 28 }, lars = { 1, 5, 44 }, lamb = { 2, 6, 44 },
  rmsprop = { 2, 2, 40 },
}
M.optimizers = optimizers

function Builder:optimizer(name, parameters)
  local rule = optimizers[name]
  if not rule then return end
  for i, p in ipairs(parameters) do
    local row = { op = name, place = "" }
    if self.dtype ~= "float32" then self:add("Cast", row, { hbm = p * 6, vector = p * 6, phase = "optimizer" }) end
    local bytes = p * rule[3]
    for k = 1, rule[2] do
      self:add("Apply" .. name, row, { hbm = bytes / rule[2], vector = bytes / rule[2], phase = "optimizer", last = i == #parameters
        and k == rule[2] })
    end
  end
end

-- An update of parameters that ran, a task for each of them: everything is read, and all but the gradients written.
function Builder:update(row)
  local place, bytes = 0, {}
  local argument
  for _, t in ipairs(row.inputs) do
    place = t.argument == argument and place + 1 or 1
    argument = t.argument
    bytes[place] = (bytes[place] or 0) + self:bytes(t) * (argument == 1 and 1 or 2)
    self.prepared["cast" .. t.id] = nil
  end
  for _, n in ipairs(bytes) do self:add(row.op, row, { hbm = n, vector = n, phase = "optimizer" }) end
end

-- What a stream is given from now on comes after the task, if there is one.
function Builder:wait_for(stream, task)
  if not task or task.stream == stream then return end
  self.after[stream] = self.after[stream] or {}
  table.insert(self.after[stream], task)
  self.epochs[stream] = (self.epochs[stream] or 0) + 1
end

-- What a chip asks of others. Its operands are there first, and what reads its results waits for it.
function Builder:collective(row)
  for _, t in ipairs(row.inputs) do self:wait_for(row.stream, self.producer[t.id]) end
  local task = self:add(row.op, row, { collective = row })
  for _, t in ipairs(row.outputs) do
    self:made_by(t, task)
    self.arrived[t.id], self.known[t.id] = task, true
  end
end

-- Events of streams, and copies between the memories. Batches of a queue have a stream of their own, which runs ahead of the device.
function Builder:other(row)
  if row.kind == "record" then
    self.recorded[row.event] = self.last[row.stream]
    self.epochs[row.stream] = (self.epochs[row.stream] or 0) + 1
  elseif row.kind == "wait" then
    self:wait_for(row.stream, self.recorded[row.event])
  elseif row.kind == "collective" then
    self:collective(row)
  else
    local there = row.kind == "to_device"
    local t = (there and row.outputs or row.inputs)[1]
    if there and self.queue then row.stream = -1 end
    local task = self:add(there and "HostToDevice" or "DeviceToHost", row, { transfer = self:bytes(t) })
    if there and self.queue then self.arrived[t.id] = task end
    if there then self:made_by(t, task) end
  end
end

-- On the AI CPUs.
function Builder:cpu(row)
  local bytes = 0
  for _, list in ipairs { row.inputs, row.outputs } do
    for _, t in ipairs(list) do bytes = bytes + self:bytes(t) end
  end
  local task = self:add(row.op, row, { cpu = bytes })
  for _, t in ipairs(row.outputs) do self:made_by(t, task) end
end

-- The tasks of a row. updates: whether updates of parameters are among the rows.
function Builder:row(row, updates)
  if row.kind then
    self:other(row)
  elseif makes_constants[row.op] or row.op == "valid_labels" or row.op == "valid_parameter" then
    for _, t in ipairs(row.outputs) do self.known[t.id] = true end
  elseif row.on_cpu then
    self:cpu(row)
  elseif products[row.op] then
    self:product(row)
  elseif row.op == "batch_norm_train" then
    self:batch_norm(row)
  elseif row.op == "batch_norm_grad" then
    self:batch_norm_grad(row)
  elseif row.op == "dropout_with_mask" then
    self:dropout(row)
  elseif not row.op:match "^apply_" then
    self:elements(row)
  elseif updates then
    self:update(row)
  end
end

--- rows: an outline; parameters: the numbers of elements of the trained ones. The list of tasks, each with its costs. o: dtype;
--- optimizer; inputs, the tensors that were there before; updates, whether updates of parameters are among the rows; alone,
--- whether each operator is started by itself; queue, whether what comes from the host comes through a queue of batches. Rows of kind
--- "collective" are what the chip asks of others. Then, by the numbers of tensors, the tasks that made them.
function M.build(chip, c, rows, parameters, o)
  local self = setmetatable({ after = {}, last = {}, epochs = {}, recorded = {}, arrived = {}, queue = o.queue,
    chip = chip, tasks = {}, made = {}, producer = {}, widths = {}, prepared = {}, known = {}, readers = {},
    dtype = o.dtype, convert_layouts = o.dtype ~= "float32", parameter_counts = {}, alone = o.alone }, Builder)
  for _, n in ipairs(parameters) do self.parameter_counts[n] = true end
  for _, row in ipairs(rows) do
    for _, t in ipairs(row.inputs) do self.readers[t.id] = (self.readers[t.id] or 0) + 1 end
  end
  for _, id in ipairs(o.inputs or {}) do self.known[id] = true end
  for _, row in ipairs(rows) do
    row.stream = row.kind == "collective" and (row.gradients and -3 or -2) or row.stream or 0
    if row.phase ~= self.phase then self:turn(row.phase) end
    for _, t in ipairs(row.inputs) do
      self:wait_for(row.stream, self.arrived[t.id])
      self.arrived[t.id] = nil
    end
    self:row(row, o.updates)
    for _, t in ipairs(row.outputs) do self.known[t.id] = true end
  end
  self:optimizer(o.optimizer, parameters)
  for _, task in ipairs(self.tasks) do
    if task.transfer then
      task.seconds, task.bound = cost.transfer(c, task.transfer)
    elseif task.collective then
      task.seconds, task.bound = cluster.seconds(c, task.collective), "network"
    else
      task.seconds, task.bound = cost.task(chip, task)
    end
  end
  return self.tasks, self.producer
end

--- The most bytes of results that are needed at a time, from the first write of each to its last use.
function M.live_bytes(rows, dtype)
  local size, last, first = {}, {}, {}
  for i, row in ipairs(rows) do
    for _, t in ipairs(row.outputs) do
      size[t.id], first[t.id] = count_of(t) * (is_float(t) and dtype ~= "float32" and 2 or t.dtype == "bool" and 1 / 8 or t.width), i
      last[t.id] = i
    end
    for _, t in ipairs(row.inputs) do
      if first[t.id] then last[t.id] = i end
    end
  end
  local change = {}
  for id, bytes in pairs(size) do
    change[first[id]] = (change[first[id]] or 0) + bytes
    change[last[id] + 1] = (change[last[id] + 1] or 0) - bytes
  end
  local live, most = 0, 0
  for i = 1, #rows do
    live = live + (change[i] or 0)
    most = math.max(most, live)
  end
  return most
end

return M
