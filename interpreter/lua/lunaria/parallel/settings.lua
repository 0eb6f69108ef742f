-- The settings of parallel training: what each may be, what it is at first, and what follows from them for a step of training.
-- ms.set_auto_parallel_context and ms.AutoParallel write them, TrainOneStepCell and its kin read them when they are made.
local arguments = require "lunaria.nn.arguments"
local core = require "lunaria.gradients"

local fail, describe = arguments.fail, arguments.describe

local M = {}

local either = function(value) return type(value) == "boolean", "true or false" end

local function only(wanted, why)
  return function(value) return value == wanted, describe(wanted) .. ": " .. why end
end

-- A table of options with checks of its own.
local function table_of(known, example)
  return function(value, where, name)
    if type(value) ~= "table" then return false, "a table such as " .. example end
    arguments.options(("%s: %s"):format(where, name), value, known, example)
    return true
  end
end

-- One process simulates as many ranks for tensors that are laid out on them; several processes are the ranks that there are.
local function number_of_ranks(value)
  local count = core.ranks()
  if count == 1 then return arguments.positive(value) end
  return value == count, ("%d, the number of ranks of this program"):format(count)
end

local function number_of_rank(value) return value == core.rank(), ("%d, the number of this rank"):format(core.rank()) end

-- Ends of buckets by the numbers of parameters, from 0.
local function ends(value)
  local last = -1
  if type(value) ~= "table" then return false, "a list of numbers of parameters" end
  for i = 1, #value do
    if math.type(value[i]) ~= "integer" or value[i] <= last then return false, "a list of growing numbers of parameters, from 0" end
    last = value[i]
  end
  return true
end

local function dataset_strategy(value)
  local words = "'data_parallel' or 'full_batch', or a list with the cuts of each input, of which only axis 0 may be cut into all ranks"
  if value == "data_parallel" or value == "full_batch" then return true end
  if type(value) ~= "table" or #value == 0 then return false, words end
  for _, cuts in ipairs(value) do
    if type(cuts) ~= "table" or cuts[1] ~= core.ranks() and cuts[1] ~= 1 then return false, words end
    for axis = 2, #cuts do
      if cuts[axis] ~= 1 then return false, words end
    end
  end
  return true
end

local function power_of_two(value)
  return value == 0 or arguments.positive(value) and value & (value - 1) == 0, "0 or a power of two"
end

local function compression(value)
  if value == "none" or value == "fp16" or value == "bf16" then return true end
  local share = type(value) == "table" and next(value) == "top_k" and next(value, "top_k") == nil and value.top_k
  return math.type(share) ~= nil and share > 0 and share <= 1, "'none', 'fp16', 'bf16' or { top_k = a share of the elements }"
end

local fusion = table_of({ mode = arguments.one_of("auto", "size", "index"), config = function(value)
  return value == nil or arguments.positive(value) or ends(value), "megabytes, or a list of numbers of parameters"
end }, "{ mode = \"size\", config = 32 }")
-- Stages of a pipeline have equal numbers of ranks.
local function number_of_stages(value)
  local count = core.ranks()
  return arguments.positive(value) and (count == 1 or count % value == 0), ("a number that divides the %d ranks"):format(count)
end

local whole = "a graph is not divided into stages by settings; ms.nn.PipelineCell divides a network"
local own_files = "layouts are part of each checkpoint, see ms.save_checkpoint"

local rows = {
  device_num = { nil, number_of_ranks }, global_rank = { nil, number_of_rank },
  parallel_mode = { "stand_alone", arguments.one_of("stand_alone", "data_parallel", "hybrid_parallel", "semi_auto_parallel",
    "auto_parallel") },
  search_mode = { "recursive_programming", arguments.one_of("dynamic_programming", "recursive_programming", "sharding_propagation") },
  gradients_mean = { false, either }, gradient_fp32_sync = { true, either }, force_fp32_communication = { false, either },
  loss_repeated_mean = { true, function(value)
    return value == true or value == false and core.ranks() == 1, "true with several ranks: a loss that ranks share counts once"
  end },
  parameter_broadcast = { false, either }, full_batch = { false, either },
  dataset_strategy = { "data_parallel", dataset_strategy },
  enable_parallel_optimizer = { false, either },
  parallel_optimizer_config = { {}, table_of({
    gradient_accumulation_shard = only(true, "sums of gradients are divided as the parameters are"),
    parallel_optimizer_threshold = function(value)
      return math.type(value) ~= nil and value >= 0, "a number of kilobytes"
    end,
    optimizer_weight_shard_size = only(-1, "states are divided among all ranks"),
    optimizer_level = arguments.one_of("level1", "level2", "level3"),
  }, "{ optimizer_level = \"level1\" }") },
  all_reduce_fusion_config = { {}, ends },
  comm_fusion = { {}, table_of({ openstate = either, allreduce = function(value) return fusion(value, "comm_fusion", "allreduce") end },
    "{ allreduce = { mode = \"auto\" } }") },
  enable_alltoall = { true, only(true, "redistributions take all_to_all where it costs least") },
  pipeline_stages = { 1, number_of_stages }, pipeline_result_broadcast = { false, only(false, whole) },
  auto_pipeline = { false, only(false, whole) }, pipeline_config = { nil, only(nil, whole) },
  strategy_ckpt_load_file = { "", only("", own_files) }, strategy_ckpt_save_file = { "", only("", own_files) },
  strategy_ckpt_config = { nil, only(nil, own_files) }, group_ckpt_save_file = { "", only("", own_files) },
  dump_local_norm = { false, only(false, "ms.Profiler and hooks of gradients tell norms") },
  dump_device_local_norm = { false, only(false, "ms.Profiler and hooks of gradients tell norms") },
  dump_local_norm_path = { "", only("", "ms.Profiler and hooks of gradients tell norms") },
  -- What MindSpore does not have.
  logical_shards = { 0, power_of_two },
  gradient_reduction = { "sum", arguments.one_of("sum", "adasum") },
  gradient_compression = { "none", compression },
}
rows.auto_parallel_search_mode = rows.search_mode
M.rows = rows

local known, values = {}, {}
for name, row in pairs(rows) do
  known[name], values[name] = function(value) return row[2](value, M.where, name) end, row[1]
end

-- What options may be, for arguments.options. where: the function that they are given to.
function M.known(where)
  M.where = where
  return known
end

-- Strategies of operators divide tensors over the ranks of a stage.
local function lay_on_stage()
  local count, stages = M.mesh_size(), values.pipeline_stages
  local width = count // stages
  if core.ranks() == 1 then return require "lunaria.parallel.shard".set_parallel { ranks = width } end
  local list = {}
  for r = 1, width do list[r] = core.rank() // width * width + r - 1 end
  require "lunaria.laid".stage(stages > 1 and list or nil)
end

--- Takes settings by name, which were checked.
function M.set(options)
  local count = core.ranks() > 1 and core.ranks() or options.device_num or values.device_num or 1
  local stages = options.pipeline_stages or values.pipeline_stages
  if count % stages ~= 0 then
    fail(M.where, ("pipeline_stages is %d, which does not divide device_num, %d"):format(stages, count))
  end
  for name, value in pairs(options) do values[name] = value end
  if options.device_num or options.pipeline_stages then lay_on_stage() end
end

--- The number of ranks that tensors are laid out on: those of the program, or those that one process simulates.
function M.mesh_size() return core.ranks() > 1 and core.ranks() or values.device_num or 1 end

--- The setting of the name. where: the function that asks.
function M.get(where, name)
  if rows[name] == nil then
    local names = {}
    for other in pairs(rows) do names[#names + 1] = other end
    table.sort(names)
    fail(where, ("there is no setting %s; there are: %s"):format(describe(name), table.concat(names, ", ")))
  end
  if name == "device_num" then return M.mesh_size() end
  if name == "global_rank" then return core.rank() end
  return values[name]
end

--- Sets all back to what they were at first.
function M.reset()
  local laid_out = values.device_num or values.pipeline_stages > 1
  for name, row in pairs(rows) do values[name] = row[1] end
  if laid_out then lay_on_stage() end
end

-- How gradients go into messages: { most_megabytes = , ends = , automatic = }.
local function buckets()
  local config = values.comm_fusion.allreduce
  if values.comm_fusion.openstate == false then return { ends = {}, each = true } end
  if #values.all_reduce_fusion_config > 0 then return { ends = values.all_reduce_fusion_config } end
  if not config or config.mode == nil or config.mode == "auto" then return { automatic = true } end
  if config.mode == "index" then
    if type(config.config) ~= "table" then fail("comm_fusion", "config must be a list of numbers of parameters with the mode 'index'") end
    return { ends = config.config }
  end
  if not math.type(config.config) then fail("comm_fusion", "config must be a number of megabytes with the mode 'size'") end
  return { most_megabytes = config.config }
end

-- Whether the ranks have stages of the network, which add up the gradients of their replicas themselves.
local function is_in_stages(network)
  for _, cell in network:cells_and_names() do
    if rawget(cell, "_pipeline") then return true end
  end
  return false
end

-- Whether a step of training combines gradients of the ranks. network: what it trains, or nil.
local function combines(where, network)
  local mode = values.parallel_mode
  if mode == "stand_alone" or network and is_in_stages(network) then return false end
  if mode == "data_parallel" then return true end
  if mode == "hybrid_parallel" then return values.enable_parallel_optimizer end
  if core.ranks() == 1 then return false end
  local name = network and require "lunaria.parallel.strategies"(network)
  local searches = not name and M.searches(network)
  if (name or searches) and not (values.full_batch or values.dataset_strategy == "full_batch") then
    fail(where, name and ("dataset_strategy must be 'full_batch' where operators have strategies, as %s has"):format(name)
      or "dataset_strategy must be 'full_batch' with the parallel_mode 'auto_parallel', which divides the batch as its plan says")
  end
  return not name and not searches
end

--- Whether strategies are searched for: on several ranks, where the network, if there is one, has none of its own.
function M.searches(network)
  if values.parallel_mode ~= "auto_parallel" or values.search_mode == "sharding_propagation" or M.mesh_size() == 1 then return false end
  return not network or not is_in_stages(network) and not require "lunaria.parallel.strategies"(network)
end

--- What a step of training does because of the settings; nil where it does the same as a step of one process. network: what it trains, or
--- nil.
function M.of_training(network)
  local parallel = combines("set_auto_parallel_context", network)
  local where, shards = "set_auto_parallel_context", values.logical_shards
  if parallel and M.mesh_size() ~= core.ranks() then
    fail(where, ("device_num is %d with the parallel_mode '%s', whose ranks are processes"):format(M.mesh_size(), values.parallel_mode),
      ("lunaria launch -n %d script.lua starts as many"):format(M.mesh_size()))
  end
  if not parallel or core.ranks() == 1 and shards == 0 then return nil end
  if shards > 0 and not values.gradients_mean then
    fail(where, "logical_shards needs gradients_mean = true: a sum over ranks depends on their number")
  end
  if shards > 0 and shards % core.ranks() ~= 0 then
    fail(where, ("logical_shards is %d, which %d ranks do not divide"):format(shards, core.ranks()))
  end
  local config = values.parallel_optimizer_config
  return {
    ranks = core.ranks(), rank = core.rank(), mean = values.gradients_mean, shards = shards,
    whole_batch = values.full_batch or values.dataset_strategy == "full_batch",
    cuts = type(values.dataset_strategy) == "table" and values.dataset_strategy or nil,
    broadcast = values.parameter_broadcast, buckets = buckets(),
    -- Sums of halves are taken in float32 either way; without fp32_sync the messages are halves.
    half_messages = not values.gradient_fp32_sync and not values.force_fp32_communication,
    reduction = values.gradient_reduction, compression = values.gradient_compression,
    level = values.enable_parallel_optimizer and (config.optimizer_level or "level1") or nil,
    threshold = (config.parallel_optimizer_threshold or 64) * 1024,
  }
end

return M
