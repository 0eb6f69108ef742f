-- Callbacks that write files: checkpoints of the network, and the whole state of a training to go on from.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local base = require "lunaria.train.callback"
local callbacks = require "lunaria.train.callbacks"
local cells = require "lunaria.nn.cell"
local checkpoint = require "lunaria.train.checkpoint"
local class = require "lunaria.nn.class"
local sharded = require "lunaria.parallel.checkpoint"
local training_state = require "lunaria.train.training_state"

local fail, check, describe = arguments.fail, arguments.check, arguments.describe

local classes = {}

local CheckpointConfig = class.define(nil, "CheckpointConfig",
  "save_checkpoint_steps=1, save_checkpoint_seconds=0, keep_checkpoint_max=5, keep_checkpoint_per_n_minutes=0, "
    .. "integrated_save=true, async_save=false, saved_network=nil, append_info=nil, enc_key=nil, crc_check=false, "
    .. "format=\"ckpt\", monitor=nil, mode=\"auto\", sharded=false",
  [[What ModelCheckpoint writes and keeps. save_checkpoint_steps: a file after so many steps; save_checkpoint_seconds: or after so
many seconds; keep_checkpoint_max: how many files are kept, 0: all; keep_checkpoint_per_n_minutes: beyond these one of every n
minutes. saved_network: what is saved, else the network and its optimizer. append_info: "epoch_num", "step_num" or a table of
values, or a list of these. crc_check: with a checksum. format: "ckpt" or "safetensors". monitor: the files with the best of a
figure are kept instead of the newest, written after evaluations of Model:fit; mode: "min", "max", or "auto" by the figure's
name. async_save: a thread writes the files while the training goes on, one at a time; a file that others replace goes when
the new one is whole. sharded: the directory gets a folder of each step, in which each rank writes what it holds (see
ms.save_checkpoint); that is done, too, where parameters are pieces. Else the first of several ranks writes.
integrated_save: for programs written for MindSpore, nothing depends on it. enc_key: a text of 16, 24 or 32 bytes, under which
files are encrypted.

  > ms.train.CheckpointConfig { save_checkpoint_steps = 100 }.keep_checkpoint_max --> 5]])
classes.CheckpointConfig = CheckpointConfig
function CheckpointConfig:setup(a)
  local name = "CheckpointConfig"
  self.steps = check.not_negative(name, "save_checkpoint_steps", a.save_checkpoint_steps)
  self.seconds = check.number_not_negative(name, "save_checkpoint_seconds", a.save_checkpoint_seconds)
  self.keep_checkpoint_max = check.not_negative(name, "keep_checkpoint_max", a.keep_checkpoint_max)
  self.minutes = check.number_not_negative(name, "keep_checkpoint_per_n_minutes", a.keep_checkpoint_per_n_minutes)
  self.format = check.choice(name, "format", a.format, { "ckpt", "safetensors" })
  self.crc_check = check.boolean(name, "crc_check", a.crc_check)
  self.async_save = checkpoint.is_async(name, "async_save", a.async_save)
  self.sharded = check.boolean(name, "sharded", a.sharded)
  if self.sharded and a.monitor ~= nil then fail(name, "the newest steps of ranks stay, not the best: monitor must be nil") end
  self.enc_key = check.optional_key(name, "enc_key", a.enc_key)
  if self.enc_key and (self.sharded or self.format ~= "ckpt") then fail(name, "only .ckpt files are encrypted: enc_key must be nil") end
  if a.saved_network ~= nil and not arguments.is_callable(a.saved_network) then
    fail(name, "saved_network must be a cell, got " .. describe(a.saved_network))
  end
  self.saved_network = a.saved_network
  if type(a.append_info) == "string" then a.append_info = { a.append_info } end
  if a.append_info ~= nil and type(a.append_info) ~= "table" then
    fail(name, "append_info must be a list or a table, got " .. describe(a.append_info))
  end
  self.append_info = a.append_info
  if a.monitor ~= nil then
    callbacks.watch(self, name, { monitor = a.monitor, mode = a.mode, min_delta = 0.0, patience = 0, verbose = false })
  elseif self.steps == 0 and self.seconds == 0 then
    fail(name, "save_checkpoint_steps and save_checkpoint_seconds are both 0: nothing would be saved")
  end
end

local ModelCheckpoint = class.define(base.Callback, "ModelCheckpoint", "prefix=\"CKP\", directory=nil, config=nil",
  [[Writes checkpoints while Model trains: directory/prefix-EPOCH_STEP.ckpt. directory: made when it is missing, "." by default.
config: a CheckpointConfig.

A file holds the network's parameters under their names, those of the optimizer, and global_step: ms.load_checkpoint and
ms.load_param_into_net read it. A file is there whole or not at all. The attribute last_checkpoint is the newest one's path.

  > net = ms.nn.Dense(2, 1)
  > saving = ms.train.ModelCheckpoint("net", "/tmp/lunaria_help", ms.train.CheckpointConfig { keep_checkpoint_max = 1 })
  > model = ms.Model(net, ms.nn.MSELoss(), ms.nn.SGD(net:trainable_params()))
  > model:train(2, { { ms.ones { 1, 2 }, ms.ones { 1, 1 } } }, saving)
  > saving.last_checkpoint --> /tmp/lunaria_help/net-2_1.ckpt
  > os.remove(saving.last_checkpoint) --> true
  > os.remove("/tmp/lunaria_help") --> true]])
classes.ModelCheckpoint = ModelCheckpoint
function ModelCheckpoint:setup(a)
  local name = "ModelCheckpoint"
  if type(a.prefix) ~= "string" or a.prefix == "" or a.prefix:find("[/%z]") then
    fail(name, "prefix must be a string that is not empty and has no '/', got " .. describe(a.prefix))
  end
  if a.directory ~= nil and (type(a.directory) ~= "string" or a.directory == "") then
    fail(name, "directory must be a path, got " .. describe(a.directory))
  end
  if a.config ~= nil and not class.is_a(a.config, CheckpointConfig) then
    fail(name, "config must be a CheckpointConfig, got " .. describe(a.config))
  end
  self.prefix, self.directory, self.config = a.prefix, a.directory or ".", a.config or CheckpointConfig()
  self.files, self.gone = {}, {}
end

local function appended(config, args)
  local info = {}
  for key, value in pairs(config.append_info or {}) do
    if type(key) == "string" then
      info[key] = value
    elseif value == "epoch_num" then
      info.epoch_num = args.cur_epoch_num
    elseif value == "step_num" then
      info.step_num = args.cur_step_num
    elseif type(value) == "table" then
      for name, item in pairs(value) do info[name] = item end
    else
      fail("CheckpointConfig", "append_info has " .. describe(value) .. ", which is neither \"epoch_num\", \"step_num\" nor a table")
    end
  end
  return info
end

-- Removes files that newer ones replace: after these are whole.
local function remove_gone(self)
  for _, path in ipairs(self.gone) do os.remove(path) end
  self.gone = {}
end

-- The files of the newest or best stay: `value` is what they are compared by.
local function keep(self, path, value)
  local config, files = self.config, self.files
  for i, file in ipairs(files) do
    if file.path == path then table.remove(files, i) break end
  end
  files[#files + 1] = { path = path, value = value, at = ms.clock() }
  if config.keep_checkpoint_max == 0 or #files <= config.keep_checkpoint_max then return end
  local worst = 1
  if config.monitor then
    for i, file in ipairs(files) do
      if callbacks.is_better(config, files[worst].value, file.value) then worst = i end
    end
  end
  local gone = table.remove(files, worst)
  local minutes = config.minutes
  if minutes > 0 and gone.at - (self.kept_at or -math.huge) >= minutes * 60e9 then
    self.kept_at = gone.at
    return
  end
  self.gone[#self.gone + 1] = gone.path
  if not config.async_save then remove_gone(self) end
end

-- The values of a network or of a list of { name =, data = }, by name.
local function values_of(object)
  local values = {}
  if cells.is_cell(object) then
    for name, parameter in object:parameters_and_names() do values[name] = parameter end
  else
    for _, entry in ipairs(object) do values[entry.name] = entry.data end
  end
  return values
end

-- Whether each rank writes what it holds.
local function is_by_rank(config, object)
  if config.sharded then return true end
  if sharded.place().ranks == 1 then return false end
  for _, value in pairs(values_of(object)) do
    if sharded.piece_of(value) then return true end
  end
  return false
end

local function save_by_rank(self, args, object, info)
  local config, values = self.config, values_of(object)
  for name, value in pairs(info) do values[name] = type(value) == "string" and value or ms.tensor(value) end
  self.last_checkpoint = sharded.save(self.directory, values, { step = args.cur_step_num, keep = config.keep_checkpoint_max,
    later = config.async_save })
end

local function save(self, args, value)
  local config = self.config
  local path = ("%s/%s-%d_%d.%s"):format(self.directory, self.prefix, args.cur_epoch_num, args.cur_step_in_epoch, config.format)
  local info = appended(config, args)
  local object = config.saved_network
  if not object then
    object = {}
    for i, entry in ipairs(training_state.parameters(args)) do object[i] = { name = entry[1], data = entry[2] } end
    local optimizer = args.optimizer
    if optimizer and rawget(optimizer, "global_step") and info.global_step == nil then info.global_step = optimizer.global_step end
  end
  if is_by_rank(config, object) then return save_by_rank(self, args, object, info) end
  if sharded.place().rank > 0 then return end
  -- Waits for the file before this one, if a thread writes it.
  ms.save_checkpoint(object, path, { append_dict = next(info) and info or nil, crc_check = config.crc_check, format = config.format,
    enc_key = config.enc_key, async_save = config.async_save })
  remove_gone(self)
  self.last_checkpoint = path
  keep(self, path, value)
end

--- Called before the training.
function ModelCheckpoint:on_train_begin(run)
  ms.io.make_folder(self.directory)
  self.saved_step, self.saved_at = run:original_args().cur_step_num, ms.clock()
end
--- Called after a step.
function ModelCheckpoint:on_train_step_end(run)
  local args, config = run:original_args(), self.config
  if config.monitor then return end
  local due = config.steps > 0 and args.cur_step_num - self.saved_step >= config.steps
    or config.seconds > 0 and ms.clock() - self.saved_at >= config.seconds * 1e9
  if not due then return end
  save(self, args)
  self.saved_step, self.saved_at = args.cur_step_num, ms.clock()
end
--- Called after an epoch.
function ModelCheckpoint:on_train_epoch_end(run)
  local config = self.config
  if not config.monitor then return end
  local args = run:original_args()
  local value = callbacks.figure(config, args)
  if value == nil then return end
  local files = self.files
  if config.keep_checkpoint_max > 0 and #files >= config.keep_checkpoint_max then
    local all_better = true
    for _, file in ipairs(files) do all_better = all_better and not callbacks.is_better(config, value, file.value) end
    if all_better then return end
  end
  save(self, args, value)
end
--- Called after the training.
function ModelCheckpoint:on_train_end(run)
  local args = run:original_args()
  if not self.config.monitor and args.cur_step_num > self.saved_step then save(self, args) end
  if self.config.async_save then
    ms.async_ckpt_wait()
    remove_gone(self)
  end
end
--- What was written, for a checkpoint.
function ModelCheckpoint:state_dict()
  local files = {}
  for i, file in ipairs(self.files) do files[i] = { path = file.path, value = file.value, at = file.at } end
  return { files = files, gone = { table.unpack(self.gone) }, last = self.last_checkpoint, saved_step = self.saved_step }
end
--- Takes up what state_dict gave.
function ModelCheckpoint:load_state_dict(state)
  self.files, self.last_checkpoint, self.saved_step = state.files or {}, state.last, state.saved_step
  self.gone = state.gone or {}
end

local BackupAndRestore = class.define(base.Callback, "BackupAndRestore",
  "backup_dir, save_freq=\"epoch\", delete_checkpoint=true, async_save=false",
  [[Lets a training that was stopped go on where it was: the next Model:train with this callback begins after the last backup
and ends with the same bits as one that was not stopped. Products that a compiled program joins (help "guide.random") need
ms.set_context { deterministic = true } for that in graph mode: a few steps are made for nothing first then.

backup_dir: a folder, which is made when it is missing. save_freq: "epoch", or the number of steps between two backups.
delete_checkpoint: the backup is removed when the training has ended. async_save: a thread writes it while the training goes on.
A backup holds the parameters, the optimizer, the loss scale, learning rates, random numbers, the place in the epoch, and what
callbacks count (state_dict). Of several ranks each writes its part, and any number of ranks goes on from them. Batches that
were used are drawn again and left out; a data set with state_dict and load_state_dict is asked for its own state.

  > tostring(ms.train.BackupAndRestore("/tmp/lunaria_help")) --> BackupAndRestore<>]])
classes.BackupAndRestore = BackupAndRestore
BackupAndRestore._comes_last = true
function BackupAndRestore:setup(a)
  local name = "BackupAndRestore"
  if type(a.backup_dir) ~= "string" or a.backup_dir == "" then
    fail(name, "backup_dir must be a path, got " .. describe(a.backup_dir))
  end
  self.backup_dir = a.backup_dir
  self.save_freq = a.save_freq == "epoch" and "epoch" or check.positive(name, "save_freq", a.save_freq)
  self.delete_checkpoint = check.boolean(name, "delete_checkpoint", a.delete_checkpoint)
  self.async_save = checkpoint.is_async(name, "async_save", a.async_save)
end
--- Called before the training.
function BackupAndRestore:on_train_begin(run)
  local args = run:original_args()
  ms.io.make_folder(self.backup_dir)
  args.is_resumable = true
  training_state.load(self.backup_dir, args)
end
--- Called after a step.
function BackupAndRestore:on_train_step_end(run)
  local args = run:original_args()
  if self.save_freq ~= "epoch" and args.cur_step_num % self.save_freq == 0 then
    training_state.save(self.backup_dir, args, false, self.async_save)
  end
end
--- Called after an epoch.
function BackupAndRestore:on_train_epoch_end(run)
  if self.save_freq == "epoch" then training_state.save(self.backup_dir, run:original_args(), true, self.async_save) end
end
--- Called after the training.
function BackupAndRestore:on_train_end(run)
  local args = run:original_args()
  if self.async_save then ms.async_ckpt_wait() end
  if self.delete_checkpoint and not run:get_stop_requested() and args.cur_epoch_num >= args.epoch_num then
    training_state.remove(self.backup_dir)
  end
end

local OnRequestExit = class.define(base.Callback, "OnRequestExit",
  "save_ckpt=true, save_mindir=true, file_name=\"Net\", directory=\"./\", config_file=nil, sig=15",
  [[Ends a training after the step in which it is asked to, and saves the network: as directory/file_name_train.ckpt where save_ckpt
is true, and as directory/file_name_train.mindir where save_mindir is true. file_name: what the names begin with. sig: the
signal that asks, 15 (TERM), 1 (HUP), 10 (USR1) or 12 (USR2). config_file: a JSON file that asks too, by {"GracefulExit": 1}; it
is looked at after each step.

  > net = ms.nn.Dense(2, 1)
  > leaving = ms.train.OnRequestExit { save_mindir = false, directory = "/tmp" }
  > model = ms.Model(net, ms.nn.MSELoss(), ms.nn.SGD(net:trainable_params()))
  > model:train(1, { { ms.ones { 1, 2 }, ms.ones { 1, 1 } } }, leaving)]])
classes.OnRequestExit = OnRequestExit
function OnRequestExit:setup(a)
  local name = "OnRequestExit"
  self.save_ckpt = check.boolean(name, "save_ckpt", a.save_ckpt)
  self.save_mindir = check.boolean(name, "save_mindir", a.save_mindir)
  for _, key in ipairs { "file_name", "directory", "config_file" } do
    if (a[key] ~= nil or key ~= "config_file") and (type(a[key]) ~= "string" or a[key] == "") then
      fail(name, ("%s must be a string that is not empty, got %s"):format(key, describe(a[key])))
    end
    self[key] = a[key]
  end
  self.sig = check.integer(name, "sig", a.sig)
end

-- Whether the file asks to end. One that is missing, or half written, does not.
local function is_asked_by(path)
  local ok, config = pcall(ms.json.decode, ms.io._read(path))
  return ok and type(config) == "table" and config.GracefulExit == 1
end

--- Called before the training.
function OnRequestExit:on_train_begin() ms.io.signal_came(self.sig) end
--- Called before a step: the inputs of the step are kept for save_mindir.
function OnRequestExit:on_train_step_begin(run) self.inputs = run:original_args().train_dataset_element end
--- Called after a step.
function OnRequestExit:on_train_step_end(run)
  if not ms.io.signal_came(self.sig) and not (self.config_file and is_asked_by(self.config_file)) then return end
  local args = run:original_args()
  run:request_stop()
  ms.io.make_folder(self.directory)
  local path = ("%s/%s_train"):format(self.directory, self.file_name)
  if self.save_ckpt then
    local list = {}
    for i, entry in ipairs(training_state.parameters(args)) do list[i] = { name = entry[1], data = entry[2] } end
    ms.save_checkpoint(list, path .. ".ckpt")
  end
  if self.save_mindir and self.inputs then
    args.network:set_train(false)
    ms.export(args.network, self.inputs[1], { file_name = path, file_format = "MINDIR" })
    args.network:set_train()
  end
end
--- Called after the training.
function OnRequestExit:on_train_end() ms.io.signal_came(self.sig, true) end

return classes
