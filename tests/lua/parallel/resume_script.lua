-- A training with backups on any number of ranks, whose batches are always divided into 8 shards. It ends by itself, or as if it were
-- killed after a step. Arguments: the folder for backups ("none": without), the file for what comes out, the step after which it stops
-- (0: never; "fail": the last rank fails after step 9 where it has not been started again), and the level at which parameters and states
-- are divided among the ranks, or nothing. Without a level the values are text, with one a checkpoint of the ranks.
local ms = require "lunaria"
local nn, ops = ms.nn, ms.ops

local backups, out, stop, level = arg[1], arg[2], math.tointeger(tonumber(arg[3])), arg[4]
ms.set_context { deterministic = "ON" }
ms.communication.init()
ms.set_auto_parallel_context { parallel_mode = "data_parallel", gradients_mean = true, full_batch = true,
  logical_shards = level and 0 or 8 }
if level then
  ms.set_auto_parallel_context { enable_parallel_optimizer = true,
    parallel_optimizer_config = { optimizer_level = level, parallel_optimizer_threshold = 0 } }
end

ms.set_seed(5)
local net = nn.SequentialCell(nn.Dense(6, 11), nn.Tanh(), nn.Dropout { p = 0.2 }, nn.Dense(11, 3))
local model = ms.Model(net, nn.MSELoss(), nn.Adam(net:trainable_params(), 0.01))
local x, y = ops.randn({ 80, 6 }, nil, 11), ops.randn({ 80, 3 }, nil, 12)
local dataset = ms.dataset.NumpySlicesDataset({ x = x, y = y }, { column_names = { "x", "y" }, shuffle = true })
dataset = dataset:batch(16, { drop_remainder = true })

local Stop = ms.train.Callback:extend("Stop")
function Stop:on_train_step_end(run) -- luacheck: ignore 212
  local step = run:original_args().cur_step_num
  if step == stop then os.exit(0, false) end
  if arg[3] == "fail" and step == 9 and os.getenv "LUNARIA_ATTEMPT" == "0" and ms.communication.get_rank() > 0 then error "as asked" end
end
local callbacks = { Stop() }
if backups ~= "none" then table.insert(callbacks, 1, ms.train.BackupAndRestore(backups, { save_freq = 2, delete_checkpoint = false })) end
model:train(4, dataset, { callbacks = callbacks, progress = false })

if level then
  ms.save_checkpoint(net, out, { sharded = true })
elseif ms.communication.get_rank() == 0 then
  local file <close> = assert(io.open(out, "w"))
  for _, parameter in ipairs(net:get_parameters()) do
    for _, value in ipairs(parameter:reshape({ -1 }):tolist()) do file:write(("%a "):format(value)) end
    file:write "\n"
  end
end
