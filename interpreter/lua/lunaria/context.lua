-- ms.context: what MindSpore's first releases set the mode, the device and the kind of parallel training with. The functions are those
-- of ms.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local settings = require "lunaria.parallel.settings"

local M = { GRAPH_MODE = ms.GRAPH_MODE, PYNATIVE_MODE = ms.PYNATIVE_MODE, set_context = ms.set_context, get_context = ms.get_context }

-- The kinds of parallel training by name, for ms.set_auto_parallel_context.
M.ParallelMode = { STAND_ALONE = "stand_alone", DATA_PARALLEL = "data_parallel", HYBRID_PARALLEL = "hybrid_parallel",
  SEMI_AUTO_PARALLEL = "semi_auto_parallel", AUTO_PARALLEL = "auto_parallel" }

--- Settings of parallel training by name, which ms.get_auto_parallel_context reads; steps of training that are made afterwards follow
--- them. parallel_mode: one of ms.ParallelMode. With "data_parallel" every rank has the whole network and a part of each batch, and
--- TrainOneStepCell, Model and what else trains combines the gradients of all ranks:
---   gradients_mean (false)        true: the mean over the ranks, false: the sum
---   dataset_strategy              "data_parallel": a batch is this rank's own; "full_batch" (or full_batch = true): that of all ranks,
---                                 of which a rank takes its rows
---   parameter_broadcast (false)   true: the parameters of rank 0 at the start are those of all; else it is an error if they differ
---   comm_fusion                   { allreduce = { mode = "auto" } }: gradients go in buckets whose sizes follow from measured times;
---                                 "size" with config = megabytes, "index" with config = the last parameter of each bucket
---   gradient_fp32_sync (true)     false: gradients of 16 bits go in messages of 16 bits
---   enable_parallel_optimizer     true: parameters and states are divided among the ranks (hsdp), as parallel_optimizer_config says:
---                                 optimizer_level "level1" (at rest), "level2" (gradients too), "level3" (weights are gathered again
---                                 for the backward pass), parallel_optimizer_threshold in KB (64), below which a parameter stays whole
--- With "semi_auto_parallel" tensors are divided as strategies of operators and cells (shard) say, with "auto_parallel" by the cheapest
--- strategies, which the first step searches for where none are given; both take "full_batch". pipeline_stages (1): strategies divide over
--- the ranks of one stage of an nn.PipelineCell.
--- Beyond those of MindSpore: logical_shards (0): a batch is always divided into so many parts, whatever the number of ranks, so that
--- 1, 2, 4 ... ranks compute the same bits; gradient_reduction "sum" or "adasum"; gradient_compression "none", "fp16", "bf16" or
--- { top_k = share }. device_num and global_rank tell the ranks of this program. What is not supported is an error.
---     > ms.set_auto_parallel_context { parallel_mode = ms.ParallelMode.DATA_PARALLEL, gradients_mean = true }
---     > ms.get_auto_parallel_context "parallel_mode" --> data_parallel
---     > ms.reset_auto_parallel_context()
function M.set_auto_parallel_context(options)
  local where = "set_auto_parallel_context"
  if options == nil then
    arguments.fail(where, "a table of settings is expected, such as { parallel_mode = ms.ParallelMode.STAND_ALONE }")
  end
  settings.set(arguments.options(where, options, settings.known(where), "{ parallel_mode = ms.ParallelMode.DATA_PARALLEL }"))
end

--- The setting of parallel training of the name.
---     > ms.get_auto_parallel_context "device_num" --> 1
function M.get_auto_parallel_context(name) return settings.get("get_auto_parallel_context", name) end

--- Sets what ms.set_auto_parallel_context changed back to what it was at first.
---     > ms.reset_auto_parallel_context()
---     > ms.get_auto_parallel_context "parallel_mode" --> stand_alone
function M.reset_auto_parallel_context() settings.reset() end

return M
