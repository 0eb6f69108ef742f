-- ms.AutoParallel: a network with the settings of parallel training as methods, which MindSpore has in place of
-- ms.set_auto_parallel_context.
local ms = require "lunaria"
local core = require "lunaria.gradients"
local laid = require "lunaria.laid"
local arguments = require "lunaria.nn.arguments"
local cells = require "lunaria.nn.cell"
local settings = require "lunaria.parallel.settings"
local strategy_in = require "lunaria.parallel.strategies"

local ops = ms.ops
local fail, check, describe = arguments.fail, arguments.check, arguments.describe

local AutoParallel = cells.layer(cells.Cell, "AutoParallel", "network, parallel_mode=\"semi_auto\"",
  [[A network that is trained on all ranks of the program: every rank computes with its rows of a batch and with whole parameters, or
with rows of them after net:hsdp(). Where operators or cells have strategies (shard), and where one process simulates the ranks
(device_num of ms.set_auto_parallel_context), tensors are laid out on the ranks, the inputs with their rows divided among them.
TrainOneStepCell and Model that are made of it follow its settings.

network: a cell. parallel_mode: "semi_auto"; "sharding_propagation", which is the same; "recursive_programming": the cheapest strategies
for all operators are searched for at the first call, of the step of training or of the cell, where none are given. Every rank gets the
whole batch then (dataset_strategy "full_batch").

  > net = ms.AutoParallel(ms.nn.Dense(2, 1))
  > net(ms.ones { 4, 2 }).shape --> (4, 1)
  > ms.reset_auto_parallel_context()]])
AutoParallel.auto_prefix = false

-- Settings of the class's methods by their names.
local function set(where, options) settings.set(arguments.options(where, options, settings.known(where), "{}")) end

function AutoParallel:setup(a)
  if not cells.is_cell(a.network) then fail("AutoParallel", "network must be a cell, got " .. describe(a.network)) end
  local modes = { "semi_auto", "sharding_propagation", "recursive_programming" }
  local mode = check.choice("AutoParallel", "parallel_mode", a.parallel_mode, modes)
  self.network = a.network
  set("AutoParallel", { parallel_mode = mode == "recursive_programming" and "auto_parallel" or "semi_auto_parallel",
    search_mode = mode ~= "semi_auto" and mode or nil })
  local strategy = strategy_in(a.network)
  rawset(self, "strategy", strategy or false)
  -- Where nothing has a strategy, processes divide the rows in the step of training, which combines their gradients.
  local given = strategy or settings.searches(a.network)
  if core.ranks() > 1 and not given then set("AutoParallel", { parallel_mode = "data_parallel" }) end
end

-- Whether inputs are laid out on the ranks of a mesh.
local function lays_out(self) return settings.mesh_size() > 1 and (core.ranks() == 1 or self.strategy ~= false) end

-- The network's results by the plan that is found at the first call.
local function searched(self, ...)
  local first = ...
  -- A step of training has found it for all that it computes.
  if ms.is_tensor(first) and laid.is_laid_out(first) then return self.network(...) end
  local lay_inputs = rawget(self, "lay_inputs")
  if not lay_inputs then
    local _
    _, lay_inputs = require "lunaria.parallel.search".lay("AutoParallel", function(...) return ops.mean(self.network(...)) end,
      self.network, nil, ...)
    rawset(self, "lay_inputs", lay_inputs)
  end
  return self.network(lay_inputs(...))
end

function AutoParallel:construct(...)
  if not self.strategy and settings.searches(self.network) then return searched(self, ...) end
  if not lays_out(self) then return self.network(...) end
  local whole = settings.get("AutoParallel", "full_batch") or settings.get("AutoParallel", "dataset_strategy") == "full_batch"
  if core.ranks() > 1 and not whole then
    fail("AutoParallel", ("dataset_strategy must be 'full_batch' where operators have strategies, as %s has"):format(self.strategy))
  end
  local inputs, mesh = table.pack(...), ms.mesh({ settings.mesh_size() }, { "dp" })
  for i = 1, inputs.n do
    local x = inputs[i]
    if ms.is_tensor(x) and x.ndim > 0 then inputs[i] = ms.distribute(x, mesh("dp")) end
  end
  return self.network(table.unpack(inputs, 1, inputs.n))
end

--- Says which rows a step gets. config: "data_parallel" (those of this rank, as at first), "full_batch" (those of all ranks), or a list
--- with the cuts of each input.
---     > net = ms.AutoParallel(ms.nn.Dense(2, 1))
---     > net:dataset_strategy("full_batch")
---     > ms.get_auto_parallel_context "dataset_strategy" --> full_batch
---     > ms.reset_auto_parallel_context()
function AutoParallel:dataset_strategy(config) -- luacheck: ignore 212
  set("dataset_strategy", { dataset_strategy = config })
end

--- Divides parameters and the states of optimizers among the ranks. shard_size: -1, all ranks. threshold: the kilobytes from which a
--- parameter is divided. optimizer_level: "level1", "level2" or "level3", see ms.set_auto_parallel_context.
---     > net = ms.AutoParallel(ms.nn.Dense(2, 1))
---     > net:hsdp { optimizer_level = "level2" }
---     > ms.get_auto_parallel_context "enable_parallel_optimizer" --> true
---     > ms.reset_auto_parallel_context()
function AutoParallel:hsdp(shard_size, threshold, optimizer_level)
  shard_size, threshold, optimizer_level = arguments.named("hsdp", { "shard_size", "threshold", "optimizer_level" }, shard_size, threshold,
    optimizer_level)
  if self.strategy then fail("hsdp", ("is not supported beside strategies of operators, which %s has"):format(self.strategy)) end
  if lays_out(self) then fail("hsdp", "divides parameters among processes, and one process simulates the ranks") end
  set("hsdp", { enable_parallel_optimizer = true, parallel_optimizer_config = { optimizer_weight_shard_size = shard_size or -1,
    parallel_optimizer_threshold = threshold or 64, optimizer_level = optimizer_level or "level1" } })
end

--- Says what goes together in messages. config: as comm_fusion of ms.set_auto_parallel_context.
---     > net = ms.AutoParallel(ms.nn.Dense(2, 1))
---     > net:comm_fusion { allreduce = { mode = "size", config = 32 } }
---     > ms.reset_auto_parallel_context()
function AutoParallel:comm_fusion(config) -- luacheck: ignore 212
  set("comm_fusion", { comm_fusion = config })
end

-- The stages of a network on several ranks: those of its nn.PipelineCell, or nil.
local function pipeline_in(network)
  for _, cell in network:cells_and_names() do
    local found = rawget(cell, "_pipeline")
    if found then return found end
  end
end

--- Says into how many stages the network is divided, which ms.nn.PipelineCell does: with several ranks its network has to have as many.
--- stages: 1. output_broadcast: true or nil, all ranks get the results. interleave: whether its stages have several segments. scheduler:
--- that of the PipelineCell, where it is given.
---     > ms.AutoParallel(ms.nn.Dense(2, 1)):pipeline(1)
---     > ms.reset_auto_parallel_context()
function AutoParallel:pipeline(stages, output_broadcast, interleave, scheduler)
  stages, output_broadcast, interleave, scheduler = arguments.named("pipeline", { "stages", "output_broadcast", "interleave", "scheduler" },
    stages, output_broadcast, interleave, scheduler)
  stages = stages or 1
  if output_broadcast == false then fail("pipeline", "output_broadcast must be true: all ranks get the results") end
  set("pipeline", { pipeline_stages = stages })
  local found = pipeline_in(self.network)
  local has, segments, order = 1, 1, nil
  if found then has, segments, order = found.stages, found.last // found.stages, found.scheduler end
  if core.ranks() > 1 and stages ~= has then
    fail("pipeline", ("stages is %d, and the network has %d"):format(stages, has), "ms.nn.PipelineCell divides a network into stages")
  end
  if interleave and segments == 1 then fail("pipeline", "interleave must be false: the stages of the network have one segment each") end
  if scheduler ~= nil and (not order or scheduler ~= order) then
    fail("pipeline", ("scheduler is '%s', and the network's is %s"):format(tostring(scheduler), order and "'" .. order .. "'" or "none"),
      "ms.nn.PipelineCell takes the scheduler")
  end
end

--- Has gradients be means over the ranks, not sums.
---     > ms.AutoParallel(ms.nn.Dense(2, 1)):enable_gradients_mean()
---     > ms.get_auto_parallel_context "gradients_mean" --> true
---     > ms.reset_auto_parallel_context()
function AutoParallel:enable_gradients_mean() -- luacheck: ignore 212
  set("enable_gradients_mean", { gradients_mean = true })
end

--- Lets gradients of 16 bits go in messages of 16 bits.
---     > ms.AutoParallel(ms.nn.Dense(2, 1)):disable_gradient_fp32_sync()
---     > ms.get_auto_parallel_context "gradient_fp32_sync" --> false
---     > ms.reset_auto_parallel_context()
function AutoParallel:disable_gradient_fp32_sync() -- luacheck: ignore 212
  set("disable_gradient_fp32_sync", { gradient_fp32_sync = false })
end

--- Has a loss that several ranks compute count as often as they do; an error with several ranks, whose losses are means here.
---     > ms.AutoParallel(ms.nn.Dense(2, 1)):disable_loss_repeated_mean()
---     > ms.reset_auto_parallel_context()
function AutoParallel:disable_loss_repeated_mean() -- luacheck: ignore 212
  set("disable_loss_repeated_mean", { loss_repeated_mean = false })
end

--- Has all gradients go in messages of float32.
---     > ms.AutoParallel(ms.nn.Dense(2, 1)):enable_fp32_communication()
---     > ms.get_auto_parallel_context "force_fp32_communication" --> true
---     > ms.reset_auto_parallel_context()
function AutoParallel:enable_fp32_communication() -- luacheck: ignore 212
  set("enable_fp32_communication", { force_fp32_communication = true })
end

-- What MindSpore has beside these, and why it is not here.
local refused = {
  load_param_strategy_file = "checkpoints carry the layouts of their parameters",
  save_param_strategy_file = "checkpoints carry the layouts of their parameters",
  load_operator_strategy_file = "strategies of operators are set by shard",
  save_operator_strategy_file = "strategies of operators are set by shard",
  no_init_parameters_in_compile = "ms.no_init_parameters makes networks without values",
  set_group_ckpt_save_file = "checkpoints carry the layouts of their parameters",
  print_local_norm = "hooks of gradients tell norms", dump_local_norm = "hooks of gradients tell norms",
  transformer_opt = "messages leave as soon as their gradients are there",
}
function AutoParallel.__index(_, key)
  if refused[key] then fail("AutoParallel", ("%s is not supported: %s"):format(key, refused[key])) end
  return AutoParallel[key]
end

return { AutoParallel = AutoParallel }
