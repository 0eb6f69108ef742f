-- ms.context: what MindSpore's first releases set the mode, the device and the kind of parallel training with. The functions are those
-- of ms. There is one device and one process: of training on several, what means the same on one is taken, the rest is an error.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"

local fail, describe = arguments.fail, arguments.describe

local M = { GRAPH_MODE = ms.GRAPH_MODE, PYNATIVE_MODE = ms.PYNATIVE_MODE, set_context = ms.set_context, get_context = ms.get_context }

-- The kinds of parallel training by name, for ms.set_auto_parallel_context.
M.ParallelMode = { STAND_ALONE = "stand_alone", DATA_PARALLEL = "data_parallel", HYBRID_PARALLEL = "hybrid_parallel",
  SEMI_AUTO_PARALLEL = "semi_auto_parallel", AUTO_PARALLEL = "auto_parallel" }
local modes = { "stand_alone", "data_parallel", "hybrid_parallel", "semi_auto_parallel", "auto_parallel" }

local function only(wanted)
  return function(value)
    return value == wanted, describe(wanted) .. ", as there is one device and no automatic parallelism over ranks yet"
  end
end
local either = function(value) return type(value) == "boolean", "true or false" end

-- What a setting may be, and what it is at first. With one device all modes and searches give the network that there is, a mean over
-- devices is the gradient itself, and a batch that is whole is that of the device.
local rows = {
  device_num = { 1, only(1) }, global_rank = { 0, only(0) }, pipeline_stages = { 1, only(1) },
  parallel_mode = { "stand_alone", arguments.one_of(table.unpack(modes)) },
  search_mode = { "dynamic_programming", arguments.one_of("dynamic_programming", "recursive_programming", "sharding_propagation") },
  gradients_mean = { false, either }, gradient_fp32_sync = { true, either }, parameter_broadcast = { false, either },
  full_batch = { false, either }, loss_repeated_mean = { true, either }, enable_parallel_optimizer = { false, only(false) },
  strategy_ckpt_load_file = { "", only "" }, strategy_ckpt_save_file = { "", only "" }, group_ckpt_save_file = { "", only "" },
  dataset_strategy = { "data_parallel", arguments.one_of("data_parallel", "full_batch") },
}
rows.auto_parallel_search_mode = rows.search_mode

local known, settings = {}, {}
for name, row in pairs(rows) do known[name], settings[name] = row[2], row[1] end

--- Settings of parallel training by name, which ms.get_auto_parallel_context reads: parallel_mode, one of ms.ParallelMode; device_num (1),
--- global_rank (0), pipeline_stages (1); gradients_mean, parameter_broadcast, full_batch, search_mode, dataset_strategy, which mean the
--- same on one device whatever they are. What needs several devices is an error. options: the table.
---     > ms.set_auto_parallel_context { parallel_mode = ms.ParallelMode.AUTO_PARALLEL, device_num = 1 }
---     > ms.get_auto_parallel_context "parallel_mode" --> auto_parallel
---     > ms.reset_auto_parallel_context()
function M.set_auto_parallel_context(options)
  local where = "set_auto_parallel_context"
  if options == nil then
    fail(where, "a table of settings is expected, such as { parallel_mode = ms.ParallelMode.STAND_ALONE }")
  end
  local given = arguments.options(where, options, known, "{ parallel_mode = ms.ParallelMode.STAND_ALONE }")
  for name, value in pairs(given) do settings[name] = value end
end

--- The setting of parallel training of the name.
---     > ms.get_auto_parallel_context "device_num" --> 1
function M.get_auto_parallel_context(name)
  if rows[name] == nil then
    local names = {}
    for other in pairs(rows) do names[#names + 1] = other end
    table.sort(names)
    fail("get_auto_parallel_context", ("there is no setting %s; there are: %s"):format(describe(name), table.concat(names, ", ")))
  end
  return settings[name]
end

--- Sets what ms.set_auto_parallel_context changed back to what it was at first.
---     > ms.reset_auto_parallel_context()
---     > ms.get_auto_parallel_context "parallel_mode" --> stand_alone
function M.reset_auto_parallel_context()
  for name, row in pairs(rows) do settings[name] = row[1] end
end

return M
