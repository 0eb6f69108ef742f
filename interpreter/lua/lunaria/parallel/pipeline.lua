-- A network in stages on several ranks: a chain of cells, cut into parts; a rank has those of its stage. A step computes micro-batches in
-- the order of a table (core/parallel/schedule.h), forward and backward, and sends results and gradients to the ranks of the neighbouring
-- parts while it goes on. With several times as many ranks as stages there are as many replicas of the pipeline, each with its own rows;
-- rank r has stage r // replicas, and the ranks of a stage add up their gradients. Where operators of the network have strategies, the
-- ranks of a stage are no replicas but a mesh, on which its tensors are laid out: each sends its pieces to the rank that has the same
-- place in the next stage.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local autodiff = require "lunaria.autodiff"
local cells = require "lunaria.nn.cell"
local ranks = require "lunaria.ranks"
local schedules = require "lunaria.schedules"
local laid = require "lunaria.laid"
local settings = require "lunaria.parallel.settings"
local strategy_in = require "lunaria.parallel.strategies"
local sharded = require "lunaria.parallel.checkpoint"

local ops = ms.ops
local fail, describe = arguments.fail, arguments.describe

local pipeline = {}

local function class_name(cell) return getmetatable(cell)._name end

-- The cells of a network that follow one another, with their names, and the loss behind them, if there is one.
local function chain_of(network)
  local loss
  local prefix = ""
  if class_name(network) == "WithLossCell" then network, loss, prefix = network.backbone, network.loss_fn, "backbone." end
  local list = {}
  local function add(cell, name, stage, segment)
    stage, segment = rawget(cell, "pipeline_stage") or stage, rawget(cell, "pipeline_segment") or segment
    if class_name(cell) == "SequentialCell" then
      for i = 1, #cell do add(cell[i], name .. i .. ".", stage, segment) end
    else
      list[#list + 1] = { cell = cell, name = name:sub(1, -2), stage = stage, segment = segment }
    end
  end
  if not cells.is_cell(network) then return {}, loss end
  add(network, "")
  return list, loss, prefix
end

local function check_numbers(where, name, config, list, prefix)
  local known = {}
  for _, entry in ipairs(list) do
    known[entry.name], known[prefix .. entry.name] = entry, entry
    -- A name of a cell around several stands for all of them.
    local outer = entry.name:match "^(.*)%.[^.]*$"
    while outer do
      for _, full in ipairs { outer, prefix .. outer } do
        known[full] = known[full] or {}
        if not known[full].cell then table.insert(known[full], entry) end
      end
      outer = outer:match "^(.*)%.[^.]*$"
    end
  end
  for cell, number in pairs(config or {}) do
    if math.type(number) ~= "integer" or number < 0 then
      fail(where, ("%s must be an integer that is not negative for %s, got %s"):format(name, describe(cell), describe(number)))
    end
    local found = known[cell]
    if not found then
      local names = {}
      for i, entry in ipairs(list) do names[i] = entry.name end
      fail(where, ("%s names '%s', which is no cell of the chain: %s"):format(name, tostring(cell), table.concat(names, ", ")),
        "a network is divided between the cells of an nn.SequentialCell")
    end
    local field = name == "stage_config" and "stage" or "segment"
    for _, entry in ipairs(found.cell and { found } or found) do entry[field] = number end
  end
end

--- The parts of a network by the stages and segments of its cells: pipeline_stage and pipeline_segment of a cell, or the tables
--- by names; a cell without has those of the one before it. Gives nil where no cell has a stage, else { parts =, stages =,
--- segments =, loss = }, where parts[stage][segment] is a list of cells.
function pipeline.divide(where, network, stage_config, segment_config)
  local list, loss, prefix = chain_of(network)
  check_numbers(where, "stage_config", stage_config, list, prefix or "")
  check_numbers(where, "segment_config", segment_config, list, prefix or "")
  local stage, segment, any = 0, 0, false
  local result = { parts = {}, order = {}, stages = 0, segments = 0, loss = loss }
  for _, entry in ipairs(list) do
    any = any or entry.stage ~= nil
    stage, segment = entry.stage or stage, entry.segment or segment
    result.parts[stage] = result.parts[stage] or {}
    local part = result.parts[stage][segment]
    if not part then
      part = { stage = stage, segment = segment }
      result.parts[stage][segment] = part
      table.insert(result.order, part)
    elseif result.order[#result.order] ~= part then
      fail(where, ("%s is in stage %d again, after others"):format(entry.name, stage), "cells of a stage follow one another")
    end
    part[#part + 1] = entry.cell
    result.stages, result.segments = math.max(result.stages, stage + 1), math.max(result.segments, segment + 1)
  end
  if not any then return nil end
  for s = 0, result.stages - 1 do
    for g = 0, result.segments - 1 do
      if not (result.parts[s] and result.parts[s][g]) then
        fail(where, ("no cell is in stage %d%s"):format(s, result.segments > 1 and (", segment %d"):format(g) or ""))
      end
    end
  end
  return result
end

local Pipeline = {}
Pipeline.__index = Pipeline

-- Groups of those that have the same stage, and of those of the same place in their stages.
local function make_groups(self, stages)
  local same_stage, same_place = {}, {}
  for r = 0, self.width - 1 do same_stage[r + 1] = self.rank * self.width + r end
  for s = 0, stages - 1 do same_place[s + 1] = s * self.width + self.place end
  self.of_stage, self.of_place = "pipeline stage " .. self.rank, "pipeline place " .. self.place
  ms.communication.create_group(self.of_stage, same_stage)
  ms.communication.create_group(self.of_place, same_place)
end

-- Whether the ranks of a stage are a mesh, and what goes with it.
local function is_mesh(where, division, network)
  local stages, name = settings.get(where, "pipeline_stages"), strategy_in(network)
  if stages > 1 and stages ~= division.stages then
    fail(where, ("the network has %d stages, and pipeline_stages of ms.set_auto_parallel_context is %d"):format(division.stages, stages))
  end
  if not name then return false end
  if stages == 1 then
    fail(where, ("%s has a strategy, and a stage is not all ranks"):format(name),
      ("ms.set_auto_parallel_context { pipeline_stages = %d } before the network is made"):format(division.stages))
  end
  if not (settings.get(where, "full_batch") or settings.get(where, "dataset_strategy") == "full_batch") then
    fail(where, ("dataset_strategy must be 'full_batch' where operators have strategies, as %s has"):format(name))
  end
  return true
end

-- The schedule for the segments of a division.
local function table_of(where, scheduler, division, micro_size)
  if scheduler == "zero_bubble_v" and division.segments ~= 2 then
    fail(where, ("zero_bubble_v has two segments for each stage, through which data goes down and up again, and the network has %d"):format(
      division.segments), "segment_config = { ... } or pipeline_segment: the second segments begin with that of the last stage")
  end
  if division.segments > 1 and scheduler == "1f1b" then scheduler = "interleaved" end
  return schedules.make(scheduler, division.stages, micro_size, division.segments)
end

--- The network of a division on the ranks of this program, as many for each stage. scheduler: "1f1b", "gpipe", "interleaved",
--- "zero_bubble_h1", "zero_bubble_h2" or "zero_bubble_v".
function pipeline.new(where, division, micro_size, scheduler, network)
  local self = setmetatable({ where = where, micro_size = micro_size }, Pipeline)
  local count = ranks.size(where, "")
  if count % division.stages ~= 0 then
    fail(where, ("the network has %d stages, the program %d ranks: as many are needed, or a multiple"):format(division.stages, count))
  end
  self.width, self.is_mesh = count // division.stages, is_mesh(where, division, network)
  self.replicas = self.is_mesh and 1 or self.width
  self.stages, self.scheduler, self.table = division.stages, scheduler, table_of(where, scheduler, division, micro_size)
  -- From here on a rank's number is that of its stage.
  self.rank, self.place = ranks.rank(where, "") // self.width, ranks.rank(where, "") % self.width
  self.last = division.stages * division.segments
  if self.width > 1 then make_groups(self, division.stages) end
  self.parts, self.parameters = {}, {}
  local own = {}
  for stage = 0, division.stages - 1 do
    for segment = 0, division.segments - 1 do
      local number = schedules.part(self.table, stage, segment)
      local part = division.parts[stage][segment]
      if division.order[number + 1] ~= part then
        fail(where, ("the cells of stage %d, segment %d are not in their place: data meets the stages in order, once for each segment")
          :format(stage, segment))
      end
      -- Where weight gradients have a turn of their own, backward passes leave them.
      self.parts[number] = { cells = part, stage = stage, parameters = { later = scheduler:find "^zero_bubble" ~= nil } }
      for _, cell in ipairs(part) do
        for _, parameter in cell:parameters_and_names() do
          if own[parameter] and own[parameter] ~= stage then
            fail(where, ("%s is in two stages: each has parameters of its own"):format(parameter.name),
              "two segments of one stage may share a parameter")
          end
          if stage == self.rank and parameter.requires_grad then
            table.insert(self.parts[number].parameters, parameter)
            if not own[parameter] then table.insert(self.parameters, parameter) end
          end
          own[parameter] = stage
        end
      end
    end
  end
  -- A checkpoint has what the ranks of the stage have; those that lie in pieces tell these themselves.
  for parameter, stage in pairs(own) do
    if not (stage == self.rank and self.is_mesh and laid.texts(parameter)) then
      local shape, offsets = {}, {}
      for axis = 1, #parameter.shape do shape[axis], offsets[axis] = parameter.shape[axis], 0 end
      sharded.set_piece(parameter, { shape = shape, offsets = offsets, replica = stage == self.rank and self.place or -1,
        replicas = self.width })
    end
  end
  self.loss, self.known = division.loss, {}
  return self
end

-- Messages of a step have numbers of their own, so that they may pass one another.
local function tag_of(self, part, micro_batch, kind) return (part * self.micro_size + micro_batch) * 3 + kind end
local result_kind, gradient_kind, form_kind = 0, 1, 2

local dtypes = { "float32", "float16", "bfloat16", "float64", "int32", "int64", "int8", "int16", "uint8", "bool" }

-- The rank of this rank's place that has the part.
local function rank_of(self, part) return self.parts[part].stage * self.width + self.place end

-- What a form of a tensor takes as a message; layouts have at most 16 axes of a mesh.
local form_bytes = 1024

local function list_of(shape) return table.move(shape, 1, #shape, 1, {}) end

-- What this rank has of a tensor, and its form: dtype, shape and, where it is laid out, the shape of the piece and its layout.
local function piece_of(x)
  local form = { shape = list_of(x.shape) }
  for i, name in ipairs(dtypes) do
    if x.dtype == ms[name] then form.dtype = i end
  end
  if laid.is_laid_out(x) then
    x = ops.lay_out_as(x, x) -- complete
    form.mesh, form.layout = laid.texts(x)
    form.is_laid_out = true
    x = laid.pieces(x)[1]
  end
  form.piece = list_of(x.shape)
  return x, form
end

local function form_tensor(form)
  local text = ms.json.encode(form)
  return ms.tensor({ (text .. (" "):rep(form_bytes - #text)):byte(1, form_bytes) }, ms.uint8)
end

local function form_of(message) return ms.json.decode(string.char(table.unpack(message:tolist()))) end

local function zeros_of(form) return ops.zeros(form.piece, ms[dtypes[form.dtype]]) end

local function send(self, x, part, micro_batch, kind, to)
  table.insert(self.sent, ms.communication.comm_func.isend(x, rank_of(self, to), nil, tag_of(self, part, micro_batch, kind)))
end

local function receive(self, like, part, micro_batch, kind, from)
  return ms.communication.comm_func.recv(like, rank_of(self, from), nil, tag_of(self, part, micro_batch, kind))
end

-- The tensor with this form of which another rank sends the piece.
local function receive_tensor(self, form, part, micro_batch, kind, from)
  local piece = receive(self, zeros_of(form), part, micro_batch, kind, from)
  if not form.is_laid_out then return piece end
  return laid.of_piece(piece, form.shape, form.mesh, form.layout)
end

-- All ranks give the sum that the last stage has: of several replicas the mean.
local function shared_sum(self, sum)
  local comm, stage, group = ms.communication.comm_func, self.parts[self.last - 1].stage, self.of_place
  local is_last = stage == self.rank
  if is_last and self.is_mesh then sum = ops.lay_out(sum, 0) end
  if is_last and self.replicas > 1 then sum = comm.all_reduce(sum, "sum", self.of_stage) / self.replicas end
  local from = rank_of(self, self.last - 1)
  local form = comm.broadcast(is_last and form_tensor(select(2, piece_of(sum))) or ms.zeros({ form_bytes }, ms.uint8), from, group)
  return comm.broadcast(is_last and sum or zeros_of(form_of(form)), from, group)
end

local function agree_on(self, parameter)
  local comm = ms.communication.comm_func
  if settings.get(self.where, "parameter_broadcast") then
    return parameter:assign(comm.broadcast(parameter, self.rank * self.width, self.of_stage))
  end
  local most = comm.all_reduce(parameter, "max", self.of_stage)
  local least = comm.all_reduce(parameter, "min", self.of_stage)
  if not ops.equal(most, least):all():item() then
    fail(self.where, ("%s is not the same on the ranks of stage %d"):format(parameter.name, self.rank),
      "ms.set_seed before the network is made, or parameter_broadcast = true in ms.set_auto_parallel_context")
  end
end

-- Ranks of a stage begin with the same values, or with those of the first one where the settings say so. Of what lies in pieces each has
-- its own.
local function agree(self)
  for _, parameter in ipairs(self.parameters) do
    if not laid.is_laid_out(parameter) then agree_on(self, parameter) end
  end
end

-- The gradients of all replicas, their sums or means. Messages leave together and are waited for together.
local function combine(self, sums)
  local share = settings.get(self.where, "gradients_mean") and 1 / self.replicas or 1
  local asked = {}
  for i, parameter in ipairs(self.parameters) do
    local own = sums[parameter] or ops.zeros(parameter.shape, parameter.dtype)
    asked[i] = table.pack(ms.communication.comm_func.all_reduce(own, "sum", self.of_stage, true))
  end
  for i, parameter in ipairs(self.parameters) do
    asked[i][2]:wait()
    sums[parameter] = share == 1 and asked[i][1] or asked[i][1] * share
  end
end

local function is_here(self, part) return self.parts[part] ~= nil and self.parts[part].stage == self.rank end

-- The input of a part for a micro-batch.
local function input_of(self, step, part, micro_batch)
  if part == 0 then return step.inputs[1][micro_batch + 1], nil end
  if is_here(self, part - 1) then
    local x = step.results[part - 1][micro_batch]
    step.results[part - 1][micro_batch] = nil
    return x, nil
  end
  -- The rank of the part before tells what it gives with the first micro-batch of inputs of these shapes.
  local known = self.known[step.key]
  if not known[part - 1] then
    known[part - 1] = form_of(receive(self, ms.zeros({ form_bytes }, ms.uint8), part - 1, 0, form_kind, part - 1))
  end
  return receive_tensor(self, known[part - 1], part - 1, micro_batch, result_kind, part - 1)
end

local function compute(self, step, part, micro_batch, x)
  local y = x
  for _, cell in ipairs(self.parts[part].cells) do y = cell(y) end
  if part == self.last - 1 and self.loss then
    local others = {}
    for i = 2, step.inputs.n do others[i - 1] = step.inputs[i][micro_batch + 1] end
    y = self.loss(y, table.unpack(others, 1, step.inputs.n - 1))
  end
  return y
end

local function hand_on(self, step, part, micro_batch, y)
  if part == self.last - 1 then
    step.sum = step.sum and step.sum + y or y
  elseif is_here(self, part + 1) then
    step.results[part][micro_batch] = y
  else
    local piece, form = piece_of(y)
    if not self.known[step.key][part] then
      self.known[step.key][part] = true
      send(self, form_tensor(form), part, 0, form_kind, part + 1)
    end
    send(self, piece, part, micro_batch, result_kind, part + 1)
    return form
  end
end

local function forward(self, step, part, micro_batch, keeps)
  local x = input_of(self, step, part, micro_batch)
  if not keeps then return hand_on(self, step, part, micro_batch, compute(self, step, part, micro_batch, x)) end
  -- Data has no gradient.
  local wanted = part > 0 and { [0] = true } or {}
  local pull, context, y = autodiff.vjp(function(value) return compute(self, step, part, micro_batch, value) end, wanted,
    self.parts[part].parameters, x)
  if not ms.is_tensor(y) then fail(self.where, ("a part of the network must give one tensor, got %s"):format(describe(y))) end
  if part == self.last - 1 and y.size ~= 1 then
    fail(self.where, ("the network must give a loss, a tensor of one element, got shape %s"):format(tostring(y.shape)))
  end
  step.kept[part][micro_batch] = { pull = pull, context = context, x = x, y = y, form = hand_on(self, step, part, micro_batch, y) }
end

-- What the parameters of a part get for a micro-batch, after what backward() left.
local function weight_gradients(self, step, part, micro_batch)
  local context = step.kept[part][micro_batch].context
  step.kept[part][micro_batch] = nil
  autodiff.left(context)
  for _, parameter in ipairs(self.parts[part].parameters) do
    local own = autodiff.cotangent(context, parameter, 0)
    if own ~= nil then
      local before = step.sums[parameter]
      step.sums[parameter] = before and before + own or own
    end
  end
end

local function backward(self, step, part, micro_batch)
  local kept = step.kept[part][micro_batch]
  step.kept[part][micro_batch] = { context = kept.context }
  local d
  if part == self.last - 1 then
    d = ops.ones(kept.y.shape, kept.y.dtype)
  elseif is_here(self, part + 1) then
    d = step.gradients[part][micro_batch]
    step.gradients[part][micro_batch] = nil
  else
    d = receive_tensor(self, kept.form, part, micro_batch, gradient_kind, part + 1)
  end
  local of_input = kept.pull(d)
  if part == 0 then return end
  of_input = of_input or ops.zeros(kept.x.shape, kept.x.dtype)
  if is_here(self, part - 1) then
    step.gradients[part - 1][micro_batch] = of_input
  else
    if self.is_mesh then of_input = laid.pieces(ops.lay_out_as(of_input, kept.x))[1] end
    send(self, of_input, part - 1, micro_batch, gradient_kind, part - 1)
  end
end

-- Inputs in as many parts as there are micro-batches. A batch is that of the replica, or of all where the settings say so.
local function divided(self, ...)
  local inputs, key = table.pack(...), {}
  local whole = settings.get(self.where, "full_batch") or settings.get(self.where, "dataset_strategy") == "full_batch"
  for i = 1, inputs.n do
    local x = inputs[i]
    if whole and self.replicas > 1 and ms.is_tensor(x) and x.ndim > 0 then
      if x.shape[1] % self.replicas ~= 0 then
        fail(self.where, ("a batch of %d rows cannot be divided among %d replicas"):format(x.shape[1], self.replicas))
      end
      x = x[{ ms.slice(self.place, nil, self.replicas) }]
    end
    local rows = ms.is_tensor(x) and x.ndim > 0 and x.shape[1] or 0
    if rows == 0 or rows % self.micro_size ~= 0 then
      fail(self.where, ("input %d must have a number of rows that %d divides, got %s"):format(i, self.micro_size, describe(x)))
    end
    key[i] = tostring(x.shape) .. tostring(x.dtype)
    inputs[i] = table.pack(ops.split(x, rows // self.micro_size, 0))
    if self.is_mesh then
      for k = 1, inputs[i].n do inputs[i][k] = laid.everywhere(inputs[i][k]) end
    end
  end
  return inputs, table.concat(key, " ")
end

local function work(self, keeps, ...)
  if self.width > 1 and not self.begun then agree(self) end
  self.begun = true
  local step = { results = {}, gradients = {}, kept = {}, sums = {} }
  step.inputs, step.key = divided(self, ...)
  self.known[step.key] = self.known[step.key] or {}
  self.sent = {}
  for part = 0, self.last - 1 do step.results[part], step.gradients[part], step.kept[part] = {}, {}, {} end
  for _, slot in ipairs(schedules.slots(self.table, self.rank)) do
    local part = schedules.part(self.table, self.rank, slot.chunk)
    if slot.phase == "forward" then
      forward(self, step, part, slot.micro_batch, keeps)
    elseif keeps then
      if slot.phase ~= "weight gradient" then backward(self, step, part, slot.micro_batch) end
      if slot.phase ~= "input gradient" then weight_gradients(self, step, part, slot.micro_batch) end
    end
  end
  for _, handle in ipairs(self.sent) do handle:wait() end
  if self.replicas > 1 and keeps then combine(self, step.sums) end
  return shared_sum(self, step.sum), step.sums
end

--- The sum of what the network gives for the micro-batches. Its derivative is that of the parameters of this rank's stage. training: it
--- is computed together with the sum; else, if something asks for it, in a second pass.
function Pipeline:run(training, ...)
  local count, gradients = #self.parameters, nil
  local function step(...)
    local sum, sums = work(self, training, select(count + 1, ...))
    gradients = training and sums
    return sum
  end
  local function back(...)
    local given = table.pack(...)
    local d, list = given[given.n], {}
    if not gradients then gradients = select(2, work(self, true, table.unpack(given, count + 1, given.n - 2))) end
    for i, parameter in ipairs(self.parameters) do
      local own = gradients[parameter]
      list[i] = own and own * d:astype(own.dtype) or ops.zeros(parameter.shape, parameter.dtype)
    end
    for i = count + 1, given.n - 2 do list[i] = ops.zeros(given[i].shape, given[i].dtype) end
    return table.unpack(list, 1, given.n - 2)
  end
  local list = table.move(self.parameters, 1, count, 1, {})
  local inputs = table.pack(...)
  for i = 1, inputs.n do list[count + i] = inputs[i] end
  return ms.custom_vjp(step, back)(table.unpack(list, 1, count + inputs.n))
end

return pipeline
