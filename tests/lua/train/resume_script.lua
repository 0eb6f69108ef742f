-- A training that resume_test.lua stops and goes on with: lunaria resume_script.lua FOLDER OUTPUT
-- [STEPS_BETWEEN_BACKUPS [async]].
-- Dropout, shuffled batches, a dynamic loss scale, a schedule and callbacks: all of them have to go on where they were.
local ms = require "lunaria"
local nn = ms.nn
local folder, output, frequency = arg[1], arg[2], tonumber(arg[3] or "") or "epoch"

ms.set_context { deterministic = true }
ms.set_seed(11)
local net = nn.SequentialCell(nn.Dense(6, 16, { has_bias = false }), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout { p = 0.3 }, nn.Dense(16, 3))
local images, labels = ms.randn { 40, 6 }, ms.randint(0, 3, { 40 })

-- Another order of the samples in every epoch.
local data = { get_dataset_size = function() return 10 end }
function data:create_tuple_iterator() -- luacheck: ignore 212
  local order, i = ms.ops.randperm(40), 0
  return function()
    if i == 10 then return nil end
    local rows = order[{ ms.slice(4 * i, 4 * i + 4) }]
    i = i + 1
    return ms.ops.gather(images, rows, 0), ms.ops.gather(labels, rows, 0)
  end
end

local optimizer = nn.Adam(net:trainable_params(), nn.ExponentialDecayLR(0.02, 0.9, 7))
local model = ms.Model(net, nn.CrossEntropyLoss(), optimizer, { metrics = { "accuracy" },
  loss_scale_manager = ms.amp.DynamicLossScaleManager(64.0, 2, 5) })
local history, stopping = ms.train.History(), ms.train.EarlyStopping { monitor = "eval_loss", patience = 100 }
local callbacks = { ms.train.BackupAndRestore(folder, { save_freq = frequency, async_save = arg[4] == "async" }), history, stopping }
if folder == "none" then table.remove(callbacks, 1) end
model:fit(6, data, data, { callbacks = callbacks })

local lines = {}
for name, parameter in model.train_network:parameters_and_names() do
  local text = {}
  for i, value in ipairs(parameter:reshape({ -1 }):tolist()) do text[i] = math.type(value) == "float" and ("%a"):format(value) or value end
  lines[#lines + 1] = name .. " " .. table.concat(text, " ")
end
for name, values in pairs(history.history) do
  local text = {}
  for i, value in ipairs(values) do text[i] = math.type(value) == "float" and ("%a"):format(value) or value end
  lines[#lines + 1] = name .. " " .. table.concat(text, " ")
end
lines[#lines + 1] = ("steps %d, best %a"):format(optimizer.global_step, stopping.best)
table.sort(lines)
local file <close> = assert(io.open(output, "w"))
file:write(table.concat(lines, "\n"), "\n")
