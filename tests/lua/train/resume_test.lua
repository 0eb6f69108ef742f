-- Trainings that are stopped, also by kill -9 at any moment, end with the bits of one that was not; checkpoints that are kept.
-- The argument is how many kills there are at least, 12 by default.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local nn, train = ms.nn, ms.train

ms.set_context { deterministic = true }
local folder = os.tmpname()
os.remove(folder)
ms.io.make_folder(folder)

local function text_of(path)
  local file <close> = io.open(path)
  return file and file:read("a")
end

local program = arg[-1]
local function run(seconds, ...)
  local limit = seconds and ("timeout -s KILL %.3f "):format(seconds) or ""
  return os.execute(("%s'%s' tests/lua/train/resume_script.lua %s 2>&1"):format(limit, program, table.concat({ ... }, " ")))
end

local whole = folder .. "/whole"
assert(run(nil, folder .. "/plain", whole, 3))
local expected = assert(text_of(whole))

t.test("backups change nothing", function()
  t.equal(ms.io.list_folder(folder .. "/plain"), {})
  assert(run(nil, folder .. "/plain", folder .. "/out", "epoch", "async"))
  t.equal(text_of(folder .. "/out"), expected)
  -- Without them the first steps of a program are no compiled ones in graph mode.
  if ms.get_context("mode") == ms.GRAPH_MODE then return end
  assert(run(nil, "none", folder .. "/out"))
  t.equal(text_of(folder .. "/out"), expected)
end)

t.test("a training that is killed at any moment goes on to the same bits", function()
  local started = ms.clock()
  assert(run(nil, folder .. "/plain", folder .. "/again"))
  local seconds = (ms.clock() - started) / 1e9
  math.randomseed(5)
  local wanted, kills, round = tonumber(arg[1] or "") or 12, { [0] = 0, 0 }, 0
  -- Backups after so many steps or epochs, written at once and by a thread.
  while kills[0] + kills[1] < wanted do
    round = round + 1
    local async = round % 2
    local out, backups = ("%s/out%d"):format(folder, round), ("%s/backups%d"):format(folder, round)
    local options = { backups, out, round % 4 < 2 and round % 7 + 1 or "epoch", async == 1 and "async" or "" }
    local finished = false
    for _ = 1, 4 do
      local from = ms.clock()
      finished = run(seconds * (0.3 + 0.7 * math.random()), table.unpack(options))
      if finished then
        -- What has less to do, or less beside it, ends early.
        seconds = math.max(math.min(seconds, (ms.clock() - from) / 1e9), 0.02)
        break
      end
      kills[async] = kills[async] + 1
    end
    -- What was killed while it wrote has left a part.
    if not finished then assert(run(nil, table.unpack(options))) end
    if text_of(out) ~= expected then error(("round %d, killed %d times"):format(round, kills[0] + kills[1])) end
    os.execute(("rm -rf '%s' '%s'"):format(out, backups))
  end
  if arg[1] then print(("%d kills, %d of them with a thread that writes, %d trainings"):format(kills[0] + kills[1], kills[1], round)) end
end)

-- A training within this process, stopped after a step by a callback.
local images, labels = ms.randn { 8, 4 }, ms.randint(0, 3, { 8 })
local function model_of(metrics)
  ms.set_seed(1)
  local net = nn.Dense(4, 3)
  return ms.Model(net, nn.CrossEntropyLoss(), nn.Adam(net:trainable_params(), 0.05), { metrics = metrics }), net
end
local batches = {}
for i = 0, 3 do batches[i + 1] = { images[{ ms.slice(2 * i, 2 * i + 2) }], labels[{ ms.slice(2 * i, 2 * i + 2) }] } end

t.test("a training that an error ended goes on at the step of the backup", function()
  local whole_model, whole_net = model_of()
  whole_model:train(3, batches, train.BackupAndRestore(folder .. "/whole_backups"))
  for stop = 1, 11 do
    local backups = ("%s/step%d"):format(folder, stop)
    local model = model_of()
    local seen = 0
    local fall = train.LambdaCallback { on_train_step_end = function()
      seen = seen + 1
      if seen == stop then error("stopped") end
    end }
    t.fails("stopped", model.train, model, 3, batches, { train.BackupAndRestore(backups, { save_freq = 2 }), fall })
    local again, net = model_of()
    local steps = 0
    again:train(3, batches, { train.BackupAndRestore(backups, { save_freq = 2 }),
      train.LambdaCallback { on_train_step_end = function() steps = steps + 1 end } })
    t.equal(steps, 12 - (stop - 1) // 2 * 2)
    -- Networks of one program, compiled one after the other, may multiply small matrices in another order.
    t.near(net.weight, whole_net.weight, ms.get_context("mode") == ms.GRAPH_MODE and 1e-4 or 0)
    t.equal(again.optimizer.global_step, 12)
  end
end)

t.test("checkpoints are written and the newest are kept", function()
  local model, net = model_of()
  local directory = folder .. "/checkpoints"
  local saving = train.ModelCheckpoint("net", directory, train.CheckpointConfig {
    save_checkpoint_steps = 3, keep_checkpoint_max = 2, append_info = { "epoch_num", { note = "hello" } }, crc_check = true })
  model:train(3, batches, saving)
  t.equal(ms.io.list_folder(directory), { "net-3_1.ckpt", "net-3_4.ckpt" })
  local loaded = ms.load_checkpoint(saving.last_checkpoint, { crc_check = true })
  t.equal(loaded.weight:tolist(), net.weight:tolist())
  t.equal({ loaded.epoch_num:item(), loaded.note, loaded.global_step:item() }, { 3, "hello", 12 })
  t.equal(loaded["moment1.weight"]:tolist(), model.optimizer["moment1.weight"]:tolist())
  local other = nn.Dense(4, 3)
  t.equal(ms.load_param_into_net(other, loaded), {})
  model:train(1, batches, train.ModelCheckpoint("last", directory, train.CheckpointConfig { save_checkpoint_steps = 100,
    format = "safetensors", saved_network = net }))
  assert(ms.load_checkpoint(directory .. "/last-1_4.safetensors").weight)
end)

t.test("the best checkpoints are kept", function()
  local figures, epoch = { 3.0, 1.0, 2.0, 0.5, 4.0 }, 0
  local Figure = train.Metric:extend("Figure")
  function Figure:update() end
  function Figure:eval() -- luacheck: ignore 212
    epoch = epoch + 1
    return figures[epoch]
  end
  for _, case in ipairs { { "min", { "n-2_1.ckpt", "n-4_1.ckpt" } }, { "max", { "n-1_1.ckpt", "n-5_1.ckpt" } } } do
    epoch = 0
    local directory = folder .. "/best_" .. case[1]
    local model = model_of { figure = Figure() }
    model:fit(5, { batches[1] }, { batches[1] }, { callbacks = train.ModelCheckpoint("n", directory,
      train.CheckpointConfig { monitor = "eval_figure", mode = case[1], keep_checkpoint_max = 2 }) })
    t.equal(ms.io.list_folder(directory), case[2])
  end
end)

t.test("what is wrong is named", function()
  t.fails({ "CheckpointConfig", "nothing would be saved" }, train.CheckpointConfig, { save_checkpoint_steps = 0 })
  t.fails({ "CheckpointConfig", "format must be one of" }, train.CheckpointConfig, { format = "pt" })
  t.fails({ "ModelCheckpoint", "prefix must be a string" }, train.ModelCheckpoint, "a/b")
  t.fails({ "ModelCheckpoint", "config must be a CheckpointConfig" }, train.ModelCheckpoint, "a", ".", 3)
  t.fails({ "BackupAndRestore", "save_freq must be an integer" }, train.BackupAndRestore, "x", "day")
  local model = model_of()
  t.fails({ "cannot be made" }, model.train, model, 1, batches, train.ModelCheckpoint("a", "README.md/x"))
  local backups = folder .. "/other"
  ms.io.make_folder(backups)
  ms.save_safetensors(backups .. "/training.safetensors", { w = ms.ones { 1 } })
  t.fails({ "is not the state of a training" }, model.train, model, 1, batches, train.BackupAndRestore(backups))
  local keeping = train.BackupAndRestore(backups, { delete_checkpoint = false })
  os.remove(backups .. "/training.safetensors")
  model:train(1, batches, keeping)
  local other = nn.Dense(4, 2)
  local wrong = ms.Model(other, nn.CrossEntropyLoss(), nn.Adam(other:trainable_params(), 0.05))
  t.fails({ "training.safetensors", "the network's is Float32 of shape" }, wrong.train, wrong, 1, batches, keeping)
end)

os.execute("rm -rf '" .. folder .. "'")
t.finish()
