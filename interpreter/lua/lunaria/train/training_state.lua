-- All that a training is, so that it goes on as if it had not been stopped: parameters, moments and counts of the optimizer,
-- learning rates, loss scale, random numbers, place in the data, callbacks. Tensors by name, and the rest as JSON among
-- the metadata of one safetensors file, or of the files of ranks, where there are several.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local sharded = require "lunaria.parallel.checkpoint"

local json, loss_of = ms.json, require("lunaria.train.callbacks").loss_of
local fail = arguments.fail

local state = {}

-- Parameters of the network by their names in it, those of the optimizer by its, the rest by their names in the train network.
--- Each parameter once, as a list of { name, parameter }.
function state.parameters(args)
  local list, seen = {}, {}
  local function add(prefix, cell)
    for name, parameter in cell:parameters_and_names() do
      if not seen[parameter] then
        seen[parameter] = true
        list[#list + 1] = { prefix .. name, parameter }
      end
    end
  end
  add("", args.network)
  if args.optimizer then add("", args.optimizer) end
  add("train_network.", args.train_network)
  return list
end

-- The optimizers: the one given, and the one that an accumulating one has within.
local function optimizers(args)
  local list, optimizer = {}, args.optimizer
  while optimizer do
    list[#list + 1] = optimizer
    optimizer = rawget(optimizer, "optimizer")
  end
  return list
end

-- Numbers that JSON has no words for.
local function numbered(value)
  if math.type(value) == "float" and (value ~= value or math.abs(value) == math.huge) then return { number = tostring(value) } end
  if type(value) ~= "table" then return value end
  -- Keys of any kind survive as pairs.
  local pairs_ = {}
  for key, item in pairs(value) do pairs_[#pairs_ + 1] = { key, numbered(item) } end
  return { pairs = json.array(pairs_) }
end

local special = { inf = math.huge, ["-inf"] = -math.huge }

local function restored(value)
  if type(value) ~= "table" then return value end
  if value.number then return special[value.number] or 0 / 0 end
  local result = {}
  for _, pair in ipairs(value.pairs or {}) do result[pair[1]] = restored(pair[2]) end
  return result
end

local function optimizer_numbers(optimizer)
  local groups = {}
  for i, group in ipairs(rawget(optimizer, "param_groups") or {}) do
    groups[i] = { lr = math.type(group.lr) and group.lr or nil, initial_lr = group.initial_lr }
  end
  local rate = rawget(optimizer, "learning_rate")
  return { step = rawget(optimizer, "global_step"), rate = math.type(rate) and rate or nil, groups = groups }
end

local function set_optimizer_numbers(optimizer, numbers)
  optimizer.global_step = numbers.step
  if numbers.rate then optimizer.learning_rate = numbers.rate end
  for i, group in ipairs(rawget(optimizer, "param_groups") or {}) do
    local own = numbers.groups[i]
    if own and own.lr then group.lr = own.lr end
    if own and own.initial_lr then group.initial_lr = own.initial_lr end
  end
end

--- Keeps what a step changes, and gives the function that brings it back.
function state.snapshot(args)
  local values, numbers, random = {}, {}, ms.get_rng_state()
  for i, entry in ipairs(state.parameters(args)) do values[i] = { entry[2], entry[2]:copy() } end
  for i, optimizer in ipairs(optimizers(args)) do numbers[i] = optimizer_numbers(optimizer) end
  local own = args.train_network.training_numbers and args.train_network:training_numbers()
  return function()
    if own then args.train_network:set_training_numbers(own) end
    for _, value in ipairs(values) do value[1]:assign(value[2]) end
    for i, optimizer in ipairs(optimizers(args)) do set_optimizer_numbers(optimizer, numbers[i]) end
    ms.set_rng_state(random)
  end
end

local function file_of(folder) return folder .. "/training.safetensors" end

--- Writes the state to a folder. at_end: whether the epoch is over. later: a thread writes it.
function state.save(folder, args, at_end, later)
  local tensors = { ["random.state"] = ms.get_rng_state(), ["random.epoch"] = args.epoch_rng_state }
  for _, entry in ipairs(state.parameters(args)) do
    if tensors[entry[1]] then fail("BackupAndRestore", ("two parameters are called %s"):format(entry[1])) end
    tensors[entry[1]] = entry[2]
  end
  local numbers = { epoch = args.cur_epoch_num, step = args.cur_step_in_epoch, steps = args.cur_step_num, at_end = at_end,
    loss = loss_of(args), optimizers = {}, callbacks = {} }
  for i, optimizer in ipairs(optimizers(args)) do numbers.optimizers[i] = optimizer_numbers(optimizer) end
  for i, callback in ipairs(args.list_callback) do
    numbers.callbacks[i] = callback.state_dict and callback:state_dict() or false
  end
  -- Steps that count or adapt something of their own, as private ones.
  if args.train_network.training_numbers then numbers.train_network = args.train_network:training_numbers() end
  local dataset = args.train_dataset
  if type(dataset) == "table" and type(dataset.state_dict) == "function" then numbers.dataset = dataset:state_dict() end
  local text = json.encode(numbered(numbers))
  if sharded.place().ranks > 1 then
    tensors.training = text
    return sharded.save(folder, tensors, { step = args.cur_step_num, keep = 1, later = later })
  end
  ms.save_safetensors(file_of(folder), tensors, { metadata = { format = "ms", training = text }, later = later })
end

local function numbers_of(text)
  local ok, numbers = pcall(json.decode, text or "")
  numbers = ok and restored(numbers)
  return type(numbers) == "table" and numbers.epoch and numbers
end

-- Whether ranks have completed a step in the folder.
local function has_step(folder)
  for _, step in ipairs(sharded.steps_of(folder)) do
    if step.complete then return true end
  end
  return false
end

-- The newest state in a folder, by one rank or by several: the path, tensors, and all else; nil where there is none.
local function newest(folder, parameters)
  local path, tensors, numbers
  if has_step(folder) then
    local own = {}
    for _, entry in ipairs(parameters) do own[entry[1]] = entry[2] end
    path, tensors = folder, sharded.load(folder, function(name) return own[name] end)
    numbers = numbers_of(tensors.training) or fail(path, "is not the state of a training")
  end
  if ms.io.kind(file_of(folder)) then
    local values, metadata = ms.load_safetensors(file_of(folder))
    local others = numbers_of(metadata.training)
    if not others or not values["random.state"] then fail(file_of(folder), "is not the state of a training") end
    if not numbers or others.steps > numbers.steps then path, tensors, numbers = file_of(folder), values, others end
  end
  return path, tensors, numbers
end

--- Removes the state from a folder.
function state.remove(folder)
  os.remove(file_of(folder))
  if sharded.place().rank == 0 then sharded.remove_steps(folder) end
end

--- Takes up the newest state in a folder; the training begins where it was written.
function state.load(folder, args)
  local list = state.parameters(args)
  local path, tensors, numbers = newest(folder, list)
  if not path then return end
  for _, entry in ipairs(list) do
    local name, parameter = entry[1], entry[2]
    local saved = tensors[name]
    if not saved then fail(path, ("has no tensor %s: it belongs to another network or optimizer"):format(name)) end
    if tostring(saved.shape) ~= tostring(parameter.shape) or saved.dtype ~= parameter.dtype then
      fail(path, ("%s is %s of shape %s, the network's is %s of shape %s"):format(name, tostring(saved.dtype), tostring(saved.shape),
        tostring(parameter.dtype), tostring(parameter.shape)))
    end
  end
  for _, entry in ipairs(list) do entry[2]:assign(tensors[entry[1]]) end
  for i, optimizer in ipairs(optimizers(args)) do
    if numbers.optimizers[i] then set_optimizer_numbers(optimizer, numbers.optimizers[i]) end
  end
  if numbers.train_network and args.train_network.set_training_numbers then
    args.train_network:set_training_numbers(numbers.train_network)
  end
  for i, callback in ipairs(args.list_callback) do
    if numbers.callbacks[i] and callback.load_state_dict then callback:load_state_dict(numbers.callbacks[i]) end
  end
  local dataset = args.train_dataset
  if numbers.dataset and type(dataset) == "table" and type(dataset.load_state_dict) == "function" then
    dataset:load_state_dict(numbers.dataset)
  end
  args.cur_step_num, args.net_outputs = numbers.steps, numbers.loss
  if numbers.at_end then
    args.resume_epoch, args.resume_step = numbers.epoch, 0
    ms.set_rng_state(tensors["random.state"])
  else
    args.resume_epoch, args.resume_step = numbers.epoch - 1, numbers.step
    args.resume_epoch_rng_state, args.resume_rng_state = tensors["random.epoch"], tensors["random.state"]
  end
end

return state
