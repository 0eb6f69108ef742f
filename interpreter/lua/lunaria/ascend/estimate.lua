-- ms.ascend.estimate: how long a step of a network takes on the simulated chips, from the shapes of its operators alone.
local core = require "lunaria.ascend_core"
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local chips = require "lunaria.ascend.chip"
local devices = require "lunaria.devices"
local cluster = require "lunaria.ascend.cluster"
local planned_steps = require "lunaria.ascend.planned"
local steps = require "lunaria.ascend.step"
local streams = require "lunaria.ascend.streams"
local tasks = require "lunaria.ascend.tasks"

local where = "ascend.estimate"
local function fail(...) arguments.fail(where, ...) end

local M = {}

local function number_of_elements(shape)
  local n = 1
  for _, d in ipairs(shape) do n = n * d end
  return n
end

-- What a model means: how it is made, fed and trained.
local function specification(model, o)
  if type(model) == "string" then
    local networks = require "lunaria.ascend.networks"
    local spec = networks[model]
    if not spec then
      local names = {}
      for name in pairs(networks) do names[#names + 1] = name end
      table.sort(names)
      fail(("there is no network '%s'; there are: %s"):format(model, table.concat(names, ", ")), arguments.nearest(model, names))
    end
    return spec, model
  end
  if type(model) == "table" and model.make and model.forward and model.inputs then return model, model.name or "network" end
  if type(model) ~= "table" or not model.trainable_params then
    fail("a cell, the name of a network or a table { make =, inputs =, forward = } is expected, got " .. arguments.describe(model))
  end
  if type(o.inputs) ~= "function" then
    fail "a cell needs inputs = function(batch) ... end, which gives its inputs and what the loss takes"
  end
  local loss = o.loss
  return { make = function() return model end, inputs = o.inputs, forward = function(net)
    return function(x, ...)
      local y = net(x)
      if loss then return loss(y, ...) end
      return ms.ops.mean(y)
    end
  end }, tostring(model._name or model.cls_name or "cell")
end

local function outline_of(spec, net, batch, train)
  local inputs
  core.outline(function() inputs = table.pack(spec.inputs(batch)) end)
  local forward = spec.forward(net)
  return core.outline(function()
    if not train then return forward(table.unpack(inputs, 1, inputs.n)) end
    return ms.value_and_grad(forward, nil, net:trainable_params())(table.unpack(inputs, 1, inputs.n))
  end)
end

-- The outline at a batch from those at 2 and 3: every size is a + b * batch. Where the programs differ, the batch itself is
-- outlined.
local function scaled(two, three, batch)
  if #two ~= #three then return nil end
  for i, row in ipairs(two) do
    local other = three[i]
    if other.op ~= row.op or #other.inputs ~= #row.inputs or #other.outputs ~= #row.outputs then return nil end
    for _, kind in ipairs { "inputs", "outputs" } do
      for j, t in ipairs(row[kind]) do
        local u = other[kind][j]
        if #u ~= #t then return nil end
        for axis = 1, #t do t[axis] = t[axis] + (u[axis] - t[axis]) * (batch - 2) end
      end
    end
  end
  return two
end

local function outline(spec, net, batch, train)
  if batch <= 3 then return outline_of(spec, net, batch, train) end
  return scaled(outline_of(spec, net, 2, train), outline_of(spec, net, 3, train), batch) or outline_of(spec, net, batch, train)
end

-- Runs f with the settings that outlines need: nothing is compiled, parameters of the cell (if one is given) are on the host, random
-- numbers go on as if nothing had happened.
local function apart(cell, f)
  local mode, state = ms.get_context "mode", ms.get_rng_state()
  if mode ~= ms.PYNATIVE_MODE then ms.set_context { mode = ms.PYNATIVE_MODE } end
  local moved, shapes = {}, {}
  for _, parameter in ipairs(cell and cell:get_parameters() or {}) do
    if parameter.device == "Shapes" then
      shapes[#shapes + 1] = parameter
    elseif parameter.device ~= "CPU" then
      moved[parameter] = parameter.device
      devices.move(parameter, "CPU")
    end
  end
  -- In an outline those without elements need no memory on the host either.
  local function move_shapes(device)
    if #shapes == 0 then return end
    core.outline(function()
      for _, parameter in ipairs(shapes) do devices.move(parameter, device) end
    end)
  end
  move_shapes "CPU"
  local results = table.pack(xpcall(f, function(e) return e end))
  move_shapes "Shapes"
  for parameter, device in pairs(moved) do devices.move(parameter, device) end
  if mode ~= ms.PYNATIVE_MODE then ms.set_context { mode = mode } end
  ms.set_rng_state(state)
  if not results[1] then error(results[2], 0) end
  return table.unpack(results, 2, results.n)
end

local names_of_parts = { parameters = "parameters", features = "feature maps", communication = "buffers of collectives" }
local ways_out = { parameters = "parallel_optimizer = true on several devices", features = "a smaller batch, recomputation",
  communication = "fewer communicators, a smaller collective_buffer of the cluster" }

-- Bytes of an element of a gradient.
local function width_of_gradients(dtype) return dtype == "float32" and 4 or 2 end

local function memory_plan(chip, c, rows, counts, o)
  local total = 0
  for _, n in ipairs(counts) do total = total + n end
  local rule = tasks.optimizers[o.optimizer]
  local states = rule and rule[1] or 0
  -- An optimizer in parallel keeps its float32 values on one device each.
  local kept = total * (4 + 4 * states) / (o.parallel_optimizer and o.devices or 1)
  local plan = { parameters = kept + (o.dtype ~= "float32" and 2 * total or 0), features = tasks.live_bytes(rows, o.dtype)
    + (o.train and total * width_of_gradients(o.dtype) or 0), communication = o.train and cluster.buffers(c, o.devices) or 0 }
  plan.limits = { parameters = chip.memory_parameters, features = chip.memory_features, communication = chip.memory_communication }
  local whole, given = plan.parameters + plan.features + plan.communication, 0
  for _, limit in pairs(plan.limits) do given = given + limit end
  for _, part in ipairs { "parameters", "features", "communication" } do
    if plan[part] > plan.limits[part] then
      plan.problem = ("%s need %.2f GB, and %.0f of %.0f GB are theirs"):format(names_of_parts[part], plan[part] / 1e9,
        plan.limits[part] / 1e9, given / 1e9)
      plan.way_out = ways_out[part]
    end
  end
  plan.total = whole
  return plan
end

local known = { batch = true, devices = true, dtype = true, optimizer = true, sink = true, loop_size = true, chip = true, cluster = true,
  inputs = true, loss = true, train = true, fusion = true, host_launch = true, check_memory = true, data_seconds = true, pictures = true,
  parallel_optimizer = true }
-- Those of a plan for a mesh.
local known_of_plans = { mesh = true, global_batch = true, micro_batches = true, level = true, recompute = true, schedule = true,
  chunks = true, batch = true, devices = true, dtype = true, optimizer = true, chip = true, cluster = true, inputs = true, loss = true,
  train = true }

local function positive(o, name, default)
  local n = o[name]
  if n == nil then return default end
  if math.type(n) ~= "integer" or n < 1 then fail(("%s must be a positive integer, got %s"):format(name, arguments.describe(n))) end
  return n
end

local function one_of(o, name, default, ...)
  local value = o[name] == nil and default or o[name]
  for _, allowed in ipairs { ... } do
    if value == allowed then return value end
  end
  fail(("%s must be one of %s, got %s"):format(name, table.concat({ ... }, ", "), arguments.describe(value)))
end

local known_of_pictures = { size = "integer", threads = "integer", colour = "boolean", rescale = "boolean" }

-- Seconds that the host's threads of one device take for a batch of pictures.
local function seconds_of_pictures(c, p, batch)
  if type(p) ~= "table" then fail("pictures must be a table, got " .. arguments.describe(p)) end
  for key, value in pairs(p) do
    local wanted = known_of_pictures[key]
    if not wanted then fail(("pictures has no field '%s'; there are: colour, rescale, size, threads"):format(tostring(key))) end
    if wanted == "integer" and (math.type(value) ~= "integer" or value < 1) or wanted == "boolean" and type(value) ~= "boolean" then
      fail(("pictures.%s must be a %s, got %s"):format(key, wanted == "integer" and "positive integer" or wanted,
        arguments.describe(value)))
    end
  end
  local pixels = (p.size or 224) ^ 2
  local each = c.picture_decode + pixels * (c.picture_pixel + (p.colour and c.picture_colour or 0)
    + (p.rescale and c.picture_rescale or 0))
  return batch * each / (p.threads or c.picture_threads)
end

local function check_names(o, names_known)
  for key in pairs(o) do
    if not names_known[key] then
      local names = {}
      for name in pairs(names_known) do names[#names + 1] = name end
      table.sort(names)
      fail(("there is no option '%s'; there are: %s"):format(tostring(key), table.concat(names, ", ")),
        arguments.nearest(tostring(key), names))
    end
  end
end

local function settings(o, spec)
  if o.mesh == nil then check_names(o, known) end
  local s = { batch = positive(o, "batch", 32), devices = positive(o, "devices", 1), loop_size = positive(o, "loop_size", 100),
    dtype = one_of(o, "dtype", spec.dtype or "float16", "float16", "mixed", "float32"),
    optimizer = one_of(o, "optimizer", spec.optimizer or "momentum", "sgd", "momentum", "adam", "adamw", "lars", "lamb", "rmsprop", "none"),
    sink = one_of(o, "sink", "graph", "graph", "loop", "host"), train = o.train ~= false, fusion = o.fusion,
    check_memory = o.check_memory ~= false, data_seconds = o.data_seconds or 0.0,
    parallel_optimizer = o.parallel_optimizer == true }
  if not s.train then s.optimizer = "none" end
  if s.fusion ~= nil then
    if type(s.fusion) ~= "table" then fail("fusion must be a list of numbers of gradients, got " .. arguments.describe(s.fusion)) end
    for _, n in ipairs(s.fusion) do
      if math.type(n) ~= "integer" or n < 1 then fail("fusion must be a list of positive integers") end
    end
  end
  return s
end

-- The gradients in the order of the backward pass, one for each parameter. Those that no product gives (of normalisations and biases)
-- come evenly between the others.
local function gradients_of(list, counts, finish, width)
  local gradients, made, left = {}, {}, {}
  for _, task in ipairs(list) do
    if task.gradient then
      made[#made + 1] = { at = task.start + task.seconds, bytes = task.gradient * width }
      left[task.gradient] = (left[task.gradient] or 0) + 1
    end
  end
  local others = {}
  for i = #counts, 1, -1 do
    local n = counts[i]
    if (left[n] or 0) > 0 then left[n] = left[n] - 1 else others[#others + 1] = n end
  end
  local next_one = 1
  for i, g in ipairs(made) do
    while next_one <= #others and (next_one - 1) * #made < i * #others do
      gradients[#gradients + 1] = { at = g.at, bytes = others[next_one] * width }
      next_one = next_one + 1
    end
    gradients[#gradients + 1] = g
  end
  for i = next_one, #others do gradients[#gradients + 1] = { at = finish, bytes = others[i] * width } end
  return gradients
end

local function join_chips(e, s, chip, c, list, counts)
  local jitter = cluster.jitter(c, s.devices)
  local finish, waited = streams.schedule(list, s, chip, c, jitter)
  if s.sink == "host" then e.waited = waited end
  e.collectives, e.all_reduce, e.tail = {}, 0, 0
  local optimizer = 0
  for _, task in ipairs(list) do
    if task.phase == "optimizer" then optimizer = optimizer + task.seconds * jitter end
  end
  if s.devices > 1 and s.train then
    local gradients = gradients_of(list, counts, finish - optimizer, width_of_gradients(s.dtype))
    local rows = cluster.sum_gradients(c, s.devices, gradients, s.fusion or cluster.default_splits(c, gradients))
    for _, row in ipairs(rows) do e.all_reduce = e.all_reduce + row.stop - row.start end
    e.collectives = rows
    e.tail = math.max(0, rows[#rows].stop - (finish - optimizer))
  end
  e.device = finish + e.tail
  e.step = math.max(e.device, s.data_seconds) + steps.round_trip(s, c)
end

-- The links of a cluster by levels, and what a chip reaches, as plans take them.
local function levels_of(chip, c)
  local function level(ranks, latency, rate) return { ranks = ranks, latency = latency, bytes_per_second = rate * c.link_efficiency } end
  return { name = "Ascend " .. chip.name, levels = { level(c.group, c.hccs_latency, c.hccs_bytes_per_second * c.hccs_ports),
    level(c.server, c.pcie_latency, c.pcie_bytes_per_second), level(1 << 40, c.roce_latency, c.roce_bytes_per_second) },
    collective_seconds = c.collective_seconds, flops_per_second = chip.peak_flops * chip.cube_efficiency,
    bytes_per_second = chip.hbm_bytes_per_second * chip.operator_hbm_efficiency,
    operator_seconds = chip.task_seconds + chip.operator_head / chip.hertz,
    memory_bytes = chip.memory_parameters + chip.memory_features }
end

-- A plan for many devices: the program is that of the whole batch, each device has its pieces.
local function planned(spec, name, model, o)
  check_names(o, known_of_plans)
  local plans = require "lunaria.parallel.plan"
  local s = settings(o, spec)
  local mesh, stages = plans.mesh(where, o.mesh)
  local count = s.devices
  if mesh and o.devices == nil then
    count = stages
    for _, axis in ipairs(mesh) do count = count * axis[2] end
  end
  local chip, c = chips.chip(where, o.chip), chips.cluster(where, o.cluster)
  local rule = tasks.optimizers[s.optimizer]
  local wide = s.dtype == "float32"
  local batch = positive(o, "global_batch", s.batch * count)
  if o.level ~= nil and not (math.type(o.level) == "integer" and o.level >= 0 and o.level <= 3) then
    fail("level must be 0, 1, 2 or 3, got " .. arguments.describe(o.level))
  end
  local options = { name = name, devices = count, batch = batch, mesh = mesh, stages = stages, cluster = levels_of(chip, c),
    micro_batches = o.micro_batches and positive(o, "micro_batches"), level = o.level, recompute = o.recompute, schedule = o.schedule,
    chunks = o.chunks and positive(o, "chunks"), train = s.train, float_bytes = wide and 4 or 2,
    gradient_bytes = width_of_gradients(s.dtype), state_bytes = (wide and 0 or 4) + 4 * (rule and rule[1] or 0),
    peak_flops = chip.peak_flops }
  local found = apart(model.get_parameters and model or nil, function()
    local result
    local fine, problem = pcall(core.outline, function()
      local net = spec.make()
      if net.set_train then net:set_train(s.train) end
      options.parameters = net:trainable_params()
      result = plans.plan(where, spec.forward(net), table.pack(spec.inputs(batch)), options)
    end)
    if fine then return result end
    -- Nothing is computed, but each tensor has addresses.
    if tostring(problem):find("not enough memory", 1, true) then
      fail(("the forward pass of %d samples is too large to be outlined"):format(batch),
        "global_batch (--global-batch) is the number of samples of all devices; without it each device has batch")
    end
    error(problem, 0)
  end)
  -- The search's costs leave out what depends on the order of the operators; the best plans are simulated with it.
  for _, plan in ipairs(found) do
    plan.simulated = planned_steps.simulate(found, plan.number, { chip = chip, cluster = c, dtype = s.dtype, optimizer = s.optimizer,
      train = s.train, devices = count, batch = batch, gradient_bytes = options.gradient_bytes, weight_bytes = options.float_bytes,
      state_bytes = options.state_bytes })
    plan.step = plan.simulated.step
  end
  return plans.ranked(found)
end

--- How long a step of training takes on the simulated Ascend, computing nothing. model: the name of a network, such as "resnet50"
--- or "gpt2_xl" (a wrong one lists them all), a cell with options.inputs (a function of the batch that gives its input and what
--- options.loss takes after its result), or { make =, inputs =, forward = }. options: batch (of one device, 32), devices (1),
--- dtype ("float16", "mixed": products in float16 and the rest as it is, "float32"), optimizer ("sgd", "momentum", "adam",
--- "adamw", "lars", "lamb", "rmsprop", "none"), sink ("graph": the device has the whole graph; "loop": and runs loop_size, 100,
--- steps of it without the host; "host": an eager program, whose host launches each operator by itself and runs ahead),
--- host_launch (with "host": seconds for an operator, or "synchronous": the host waits for each), fusion (after how many
--- gradients, of which each trained parameter has one, a bucket of the all-reduce ends: MindSpore's [85, 160] is { 86, 161 }), train
--- (true), chip and cluster (names, files or tables), data_seconds (of the input pipeline for a step), pictures (the pipeline of
--- ImageNet: size of the pictures, 224, threads of a device, 12, colour and rescale, whether colours are changed at random and pictures
--- rescaled by operations of their own), parallel_optimizer (true: each device keeps its part of the float32 values), check_memory
--- (true: an error where the plan does not fit). With mesh ("auto", "dp=8,tp=4,pp=2" or a list of pairs of names and numbers of devices)
--- the step is divided among the devices by a search: what each axis of the mesh cuts in each operator, stages of a pipeline (pp),
--- micro_batches, level of the sharded optimizer, recompute, schedule ("1f1b", "gpipe", "interleaved" with chunks, "zero_bubble_h1",
--- "zero_bubble_h2", "zero_bubble_v"); what is given is not searched; global_batch is that of all devices. The 20 best plans of the search
--- are simulated operator by operator and given in that order; the result has timeline(), picture() and svg() of the best one's stages.
--- Otherwise it prints as a report and has step (seconds), samples_per_second, tasks, memory, report(), timeline().
---     > ms.ascend.estimate("resnet50", { batch = 32 }).step < 0.03 --> true
function M.estimate(model, options)
  options = options or {}
  if type(options) ~= "table" then fail("options must be a table, got " .. arguments.describe(options)) end
  local spec, name = specification(model, options)
  if options.mesh ~= nil then return planned(spec, name, model, options) end
  local s = settings(options, spec)
  local chip, c = chips.chip(where, options.chip), chips.cluster(where, options.cluster)
  if options.pictures then
    s.data_seconds = math.max(s.data_seconds, seconds_of_pictures(c, options.pictures, s.batch))
  end
  local synchronous = options.host_launch == "synchronous"
  s.host_launch = synchronous and c.host_synchronous or options.host_launch or c.host_launch
  s.synchronous = synchronous
  if type(s.host_launch) ~= "number" or s.host_launch <= 0 then fail "host_launch must be seconds, or \"synchronous\"" end
  local rows, counts = apart(model.get_parameters and model or nil, function()
    local net
    core.outline(function() net = spec.make() end)
    local training = s.train
    if net.set_train then net:set_train(training) end
    local found = outline(spec, net, s.batch, training)
    local list = {}
    for i, p in ipairs(net:trainable_params()) do list[i] = number_of_elements(p.shape) end
    return found, list
  end)
  local e = steps.new { network = name, chip = chip, cluster = c, options = s, memory = memory_plan(chip, c, rows, counts, {
    optimizer = s.optimizer, dtype = s.dtype, devices = s.devices, train = s.train, parallel_optimizer = s.parallel_optimizer }) }
  if e.memory.problem and s.check_memory then
    fail(("%s with batch %d does not fit: %s"):format(name, s.batch, e.memory.problem),
      e.memory.way_out .. ", or check_memory = false for the times all the same")
  end
  s.alone = s.sink == "host"
  e.tasks = tasks.build(chip, c, rows, counts, s)
  e.parameters = 0
  for _, n in ipairs(counts) do e.parameters = e.parameters + n end
  join_chips(e, s, chip, c, e.tasks, counts)
  e.samples_per_second = s.batch * s.devices / e.step
  return steps.finished(e)
end

return M
