-- A training whose batches are always divided into 8 shards: the same bits for any number of ranks. Writes what it computed to a file for
-- each rank.
--   lunaria launch -n N tests/lua/parallel/shards.lua FOLDER STEPS [graph] [rows] [level1]
-- rows: every rank reads only its rows of the data set. level1: parameters and states are divided among the ranks.
local ms = require "lunaria"
local nn, ops = ms.nn, ms.ops

local folder, steps = arg[1], tonumber(arg[2])
local flags = {}
for i = 3, #arg do flags[arg[i]] = true end
if flags.graph then ms.set_context { mode = ms.GRAPH_MODE } end
ms.set_context { deterministic = "ON" }
local rank, ranks = ms.get_auto_parallel_context "global_rank", ms.get_auto_parallel_context "device_num"
ms.set_auto_parallel_context { parallel_mode = "data_parallel", gradients_mean = true, full_batch = not flags.rows, logical_shards = 8,
  comm_fusion = { allreduce = { mode = "auto" } }, enable_parallel_optimizer = flags.level1 or false,
  parallel_optimizer_config = { parallel_optimizer_threshold = 0 } }

ms.set_seed(5)
local Net = nn.Cell:extend("Net")
function Net:init()
  self.conv = nn.Conv2d(1, 6, 3)
  self.norm = nn.BatchNorm2d(6)
  self.drop = nn.Dropout { p = 0.3 }
  self.fc1 = nn.Dense(6 * 6 * 6, 40)
  self.fc2 = nn.Dense(40, 5)
end
function Net:construct(x)
  local h = ops.relu(self.norm(self.conv(x)))
  h = self.drop(ops.flatten(ops.max_pool2d(h, 2, 2)))
  return self.fc2(self.drop(ops.tanh(self.fc1(h))))
end
local net = Net()
local optimizer = nn.Adam(net:trainable_params(), 0.01)
local model = ms.Model(net, nn.CrossEntropyLoss(), optimizer)

local rows = 160
local x, y = ops.randn({ rows, 1, 12, 12 }, nil, 11), ops.randint(0, 5, { rows }, 12)
local columns = { x = x, y = y }
local dataset = ms.dataset.NumpySlicesDataset(columns, { column_names = { "x", "y" }, shuffle = false,
  num_shards = flags.rows and ranks or nil, shard_id = flags.rows and rank or nil })
dataset = dataset:batch(flags.rows and 32 // ranks or 32, { drop_remainder = true })

local out = assert(io.open(("%s/%d-of-%d.txt"):format(folder, rank, ranks), "w"))
local Losses = ms.train.Callback:extend("Losses")
function Losses:on_train_step_end(context) -- luacheck: ignore 212
  local args = context:original_args()
  out:write(("loss %a\n"):format(args.net_outputs:item()))
end
model:train((steps + 4) // 5, dataset, { callbacks = { Losses() }, progress = false })
local whole = flags.level1 and model.train_network.whole_parameters() or {}
for _, p in ipairs(net:get_parameters()) do
  local values = {}
  for _, v in ipairs((whole[p.name] or p):reshape({ -1 }):tolist()) do values[#values + 1] = ("%a"):format(v) end
  out:write(p.name, " ", table.concat(values, " "), "\n")
end
if flags.graph then
  local report = ms.jit_report(model.train_network.value_and_gradients)
  out:write("compiled ", tostring(report.compiled_calls >= steps * 8 // ranks), "\n")
end
out:close()
