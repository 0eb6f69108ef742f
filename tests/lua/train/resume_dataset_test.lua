-- A training over a data set of ms.dataset goes on with the rows that it would have seen: each epoch has an order of its own.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local nn = ms.nn

local folder = os.tmpname()
os.remove(folder)

local x, y = ms.arange(24):astype(ms.float32):reshape { 12, 2 }, ms.zeros { 12, 1 }

-- The first value of each batch of a training of four epochs with three batches each, which ends with an error after `stop` steps.
local function rows_of(name, stop, looked)
  ms.set_seed(4)
  local data = ms.dataset.NumpySlicesDataset({ x, y }, { column_names = { "x", "y" } }):shuffle(12):batch(4)
  -- What a program reads before it trains is an epoch, too.
  if looked then data:create_tuple_iterator()() end
  local net, seen, count = nn.Dense(2, 1), {}, 0
  local Loss = nn.Cell:extend("Loss")
  function Loss:construct(inputs, labels) -- luacheck: ignore 212
    seen[#seen + 1] = inputs[{ 0, 0 }]:item()
    return ms.ops.mean((net(inputs) - labels) ^ 2)
  end
  local callbacks = { ms.train.LambdaCallback { on_train_step_end = function()
    count = count + 1
    if count == stop then error("cut", 0) end
  end } }
  if name then table.insert(callbacks, 1, ms.train.BackupAndRestore(folder .. "/" .. name, { save_freq = 1 })) end
  local cell = Loss()
  local model = ms.Model(cell, nil, nn.SGD(net:trainable_params(), 1e-4))
  local ok, message = pcall(model.train, model, 4, data, callbacks, { progress = false })
  if stop then t.equal(message, "cut") else assert(ok, message) end
  return seen
end

for _, looked in ipairs { false, true } do
  local whole = rows_of(nil, nil, looked)
  for stop = 1, 11 do
    t.test(("stopped after step %d%s"):format(stop, looked and ", with a look at the data before" or ""), function()
      local name = ("%d%s"):format(stop, tostring(looked))
      rows_of(name, stop, looked)
      local after = rows_of(name, nil, looked)
      -- The step that ended with the error is not in the backup.
      t.equal(#after, #whole - stop + 1)
      for i, value in ipairs(after) do t.equal(value, whole[stop - 1 + i]) end
    end)
  end
end

os.execute(("rm -rf '%s'"):format(folder))
t.finish()
