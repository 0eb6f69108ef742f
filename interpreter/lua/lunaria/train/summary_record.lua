-- Summaries: figures, histograms, pictures, texts and tensors of a training, in a file of events that TensorBoard shows. One
-- file serves TensorBoard and MindSpore's own tools: where the two disagree about a field both forms are written.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local base = require "lunaria.train.callback"
local callbacks = require "lunaria.train.callbacks"
local cells = require "lunaria.nn.cell"
local class = require "lunaria.nn.class"
local events = require "lunaria.train.events"
local lineage = require "lunaria.train.lineage"
local training_state = require "lunaria.train.training_state"
local pending = require "lunaria.primitives.pending"
local summary_graph = require "lunaria.train.summary_graph"

local ops = ms.ops
local fail, check, describe = arguments.fail, arguments.check, arguments.describe

local text_field, integer_field = events.text_field, events.integer_field
local double_field, float_field, packed_doubles = events.double_field, events.float_field, events.packed_doubles

-- Each gives the values (Summary.Value) of a tag.
local plugins = {}

function plugins.scalar(tag, value)
  value = check.number("add_value", tag, value)
  -- simple_value is TensorBoard's, scalar_value MindSpore's.
  return { text_field(1, tag) .. float_field(2, value) .. float_field(3, value) }
end

local function tensor_of(tag, value)
  if not ms.is_tensor(value) then fail("add_value", ("%s must be a tensor, got %s"):format(tag, describe(value))) end
  return value
end

local bins = 50

function plugins.histogram(tag, value)
  local x = tensor_of(tag, value):astype(ms.float64):reshape { -1 }
  if x.size == 0 then fail("add_value", tag .. " is an empty tensor") end
  local finite = ops.masked_select(x, ops.isfinite(x))
  local nan = ops.isnan(x):astype(ms.int64):sum():item()
  local up = ops.equal(x, math.huge):astype(ms.int64):sum():item()
  local down = ops.equal(x, -math.huge):astype(ms.int64):sum():item()
  local least, most, sum, squares = 0.0, 0.0, 0.0, 0.0
  local limits, counts = { 0.0 }, { 0.0 }
  if finite.size > 0 then
    least, most = finite:min():item(), finite:max():item()
    sum, squares = finite:sum():item(), ops.square(finite):sum():item()
    local width = (most - least) / bins
    if width > 0 then
      counts = ops.histc(finite, bins, least, most):tolist()
      for i = 1, bins do limits[i] = least + width * i end
    else
      limits, counts = { most }, { finite.size + 0.0 }
    end
  end
  local own, left = {}, least
  for i, limit in ipairs(limits) do
    own[i] = text_field(1, double_field(1, left) .. double_field(2, limit - left) .. integer_field(3, math.tointeger(counts[i]) or 0))
    left = limit
  end
  local first = text_field(1, tag) .. text_field(5, double_field(1, least) .. double_field(2, most) .. double_field(3, finite.size)
    .. double_field(4, sum) .. double_field(5, squares) .. packed_doubles(6, limits) .. packed_doubles(7, counts))
  local second = text_field(1, tag) .. text_field(9, table.concat(own) .. integer_field(2, nan) .. integer_field(3, up)
    .. integer_field(4, down) .. double_field(5, most) .. double_field(6, least) .. double_field(7, sum) .. integer_field(8, x.size))
  return { first, second }
end

function plugins.image(tag, value)
  local x = tensor_of(tag, value)
  -- Of a batch the first picture.
  if x.ndim == 4 and x.shape[1] > 0 then x = x[0] end
  local channels = x.ndim == 3 and x.shape[1]
  if channels ~= 1 and channels ~= 3 and channels ~= 4 or x.size == 0 then
    fail("add_value", ("%s must be a picture (C, H, W) or (N, C, H, W) of 1, 3 or 4 channels, got %s"):format(tag, describe(value)))
  end
  local height, width = x.shape[2], x.shape[3]
  if ops.is_floating_point(x) then x = ops.round(ops.clamp(x:astype(ms.float32), 0.0, 1.0) * 255):astype(ms.uint8) end
  local pixels = ops.transpose(x:astype(ms.uint8), { 1, 2, 0 }):contiguous()
  local png = require("lunaria.rendering").png(pixels, width, height, channels)
  return { text_field(1, tag) .. text_field(4, integer_field(1, height) .. integer_field(2, width) .. integer_field(3, channels)
    .. text_field(4, png)) }
end

function plugins.text(tag, value)
  if type(value) ~= "string" then fail("add_value", ("%s must be a string, got %s"):format(tag, describe(value))) end
  -- A tensor of one string, which the plug-in for texts shows.
  local metadata = text_field(9, text_field(1, text_field(1, "text")))
  return { text_field(1, tag) .. metadata .. text_field(8, integer_field(1, 7) .. text_field(2, text_field(2, integer_field(1, 1)))
    .. text_field(8, value)) }
end

-- MindSpore's number for float32.
local float32 = 11

function plugins.tensor(tag, value)
  local x = tensor_of(tag, value):astype(ms.float32)
  local parts = {}
  for _, size in ipairs(x.shape) do parts[#parts + 1] = integer_field(1, size) end
  local numbers = {}
  for i, number in ipairs(x:reshape({ -1 }):tolist()) do numbers[i] = ("<f"):pack(number) end
  parts[#parts + 1] = integer_field(2, float32) .. text_field(3, table.concat(numbers))
  return { text_field(1, tag) .. text_field(8, table.concat(parts)) }
end

-- Samples as a file of 16 bits, which browsers play.
local function wav(samples, rate, channels)
  local numbers = ops.round(ops.clamp(samples:astype(ms.float32), -1.0, 1.0) * 32767):astype(ms.int64)
  local parts = {}
  for i, number in ipairs(numbers:reshape({ -1 }):tolist()) do parts[i] = ("<i2"):pack(number) end
  local data = table.concat(parts)
  return ("<c4I4c4c4I4I2I2I4I4I2I2c4I4"):pack("RIFF", 36 + #data, "WAVE", "fmt ", 16, 1, channels, rate, rate * channels * 2,
    channels * 2, 16, "data", #data) .. data
end

local default_rate = 44100

function plugins.audio(tag, value)
  local rate = default_rate
  if type(value) == "table" and not ms.is_tensor(value) then
    rate = check.positive("add_value", tag .. ".sample_rate", value.sample_rate or default_rate)
    value = value.data
  end
  local x = tensor_of(tag, value)
  if x.ndim == 1 then x = x:reshape { x.size, 1 } end
  if x.ndim ~= 2 or x.size == 0 or not ops.is_floating_point(x) or x.shape[2] > 8 then
    fail("add_value", ("%s must be a floating tensor (samples,) or (samples, channels) of at most 8 channels, got %s"):format(tag,
      describe(value)))
  end
  local frames, channels = x.shape[1], x.shape[2]
  return { text_field(1, tag) .. text_field(6, float_field(1, rate) .. integer_field(2, channels) .. integer_field(3, frames)
    .. text_field(4, wav(x, rate, channels)) .. text_field(5, "audio/wav")) }
end

local names = { "audio", "histogram", "image", "scalar", "tensor", "text" }

local SummaryRecord = class.define(nil, "SummaryRecord", "log_dir, file_prefix=\"events\", file_suffix=\"_MS\"",
  [[A file of summaries in a folder, which TensorBoard shows: tensorboard --logdir FOLDER. log_dir: the folder, made when it is
missing. file_prefix, file_suffix: what its name begins and ends with.

  > record = ms.train.SummaryRecord("/tmp/lunaria_help_summary")
  > record:add_value("scalar", "loss", 0.5)
  > record:record(1) --> true
  > record:close()
  > #ms.io.list_folder("/tmp/lunaria_help_summary") --> 1
  > os.remove(record.path) and os.remove("/tmp/lunaria_help_summary") --> true]])

function SummaryRecord:setup(a)
  for _, key in ipairs { "log_dir", "file_prefix", "file_suffix" } do
    if type(a[key]) ~= "string" or (a[key] == "" and key ~= "file_suffix") then
      fail("SummaryRecord", ("%s must be a string that is not empty, got %s"):format(key, describe(a[key])))
    end
  end
  local form = ("%s.out.tfevents.summary.%%d.%%d.%%s%s"):format(a.file_prefix:gsub("%%", "%%%%"), (a.file_suffix:gsub("%%", "%%%%")))
  self.file = events.create("SummaryRecord", a.log_dir, form, "MindSpore.Event:1")
  self.path, self.name, self.values = self.file.path, self.file.name, {}
end

local function write(self, event) self.file:write(event) end
local now = events.now

local function open(self, where)
  if not self.file then fail(where, "the record is closed") end
end

--- Adds a value to the next record. plugin: "scalar", "histogram", "image" (a tensor (C, H, W) or (N, C, H, W)), "audio" (a
--- tensor (samples,) or (samples, channels) within -1 and 1, or { data =, sample_rate = }), "text" or "tensor". name: what it is
--- called. value: a number, a tensor or a text.
---     > record = ms.train.SummaryRecord("/tmp/lunaria_help_summary")
---     > record:add_value("histogram", "weights", ms.ones { 3 })
---     > record:close()
---     > os.remove(record.path) and os.remove("/tmp/lunaria_help_summary") --> true
function SummaryRecord:add_value(plugin, name, value)
  open(self, "add_value")
  if type(plugin) ~= "string" or not plugins[plugin] then
    fail("add_value", ("there is no plugin %s; there are: %s"):format(describe(plugin), table.concat(names, ", ")),
      type(plugin) == "string" and arguments.nearest(plugin, names) or nil)
  end
  if type(name) ~= "string" or name == "" then fail("add_value", "name must be a string that is not empty, got " .. describe(name)) end
  for _, item in ipairs(plugins[plugin](name, value)) do self.values[#self.values + 1] = text_field(1, item) end
end

--- Writes what was added since the last record, as values of a step, and what ops.ScalarSummary and its kin were called with.
--- Gives whether there was anything.
---     > record = ms.train.SummaryRecord("/tmp/lunaria_help_summary")
---     > record:record(1) --> false
---     > record:close()
---     > os.remove(record.path) and os.remove("/tmp/lunaria_help_summary") --> true
function SummaryRecord:record(step)
  open(self, "record")
  step = check.not_negative("record", "step", step)
  local keys = {}
  for key in pairs(pending) do keys[#keys + 1] = key end
  table.sort(keys)
  for _, key in ipairs(keys) do
    local value = pending[key]
    pending[key] = nil
    local plugin, name = key:match "^(%a+) (.*)$"
    self:add_value(plugin, name, value)
  end
  if #self.values == 0 then return false end
  write(self, double_field(1, now()) .. integer_field(2, step) .. text_field(5, table.concat(self.values)))
  self.values = {}
  return true
end

--- Brings what was written to the file.
---     > record = ms.train.SummaryRecord("/tmp/lunaria_help_summary")
---     > record:flush()
---     > record:close()
---     > os.remove(record.path) and os.remove("/tmp/lunaria_help_summary") --> true
function SummaryRecord:flush()
  open(self, "flush")
  self.file:flush()
end

--- Writes the graph of a network for these inputs: the operators and what flows between them. network: a cell or a function.
---     > record = ms.train.SummaryRecord("/tmp/lunaria_help_summary")
---     > record:add_graph(ms.nn.Dense(2, 3), ms.ones { 1, 2 })
---     > record:close()
---     > os.remove(record.path) and os.remove("/tmp/lunaria_help_summary") --> true
function SummaryRecord:add_graph(network, ...)
  open(self, "add_graph")
  if not cells.is_cell(network) and type(network) ~= "function" then
    fail("add_graph", "network must be a cell or a function, got " .. describe(network))
  end
  write(self, double_field(1, now()) .. text_field(4, summary_graph(network, ...)))
end

--- Writes the settings of a training and the figures that came of them, for comparisons of several. settings: numbers, texts and
--- booleans by name; results: numbers by name.
---     > record = ms.train.SummaryRecord("/tmp/lunaria_help_summary")
---     > record:add_hparams({ rate = 0.1, optimizer = "Adam" }, { accuracy = 0.9 })
---     > record:close()
---     > os.remove(record.path) and os.remove("/tmp/lunaria_help_summary") --> true
function SummaryRecord:add_hparams(settings, results)
  open(self, "add_hparams")
  local values = lineage.hparams(settings, results or {})
  for name, value in pairs(results or {}) do values[#values + 1] = plugins.scalar(name, value)[1] end
  for i, value in ipairs(values) do values[i] = text_field(1, value) end
  write(self, double_field(1, now()) .. text_field(5, table.concat(values)))
end

--- Closes the file.
---     > record = ms.train.SummaryRecord("/tmp/lunaria_help_summary")
---     > record:close()
---     > os.remove(record.path) and os.remove("/tmp/lunaria_help_summary") --> true
function SummaryRecord:close()
  local file = self.file
  self.file = nil
  if file then file:close() end
end

SummaryRecord.__close = SummaryRecord.close

-- The graph of the network as it predicts: dropout has none. The training goes on as if nothing had been drawn, also where the
-- network is no graph of operators.
local function draw_graph(summary, args, input)
  local modes, restore = {}, training_state.snapshot(args)
  for _, cell in args.network:cells_and_names() do modes[cell] = cell.training end
  args.network:set_train(false)
  pcall(summary.add_graph, summary, args.network, input)
  for cell, mode in pairs(modes) do rawset(cell, "training", mode) end
  restore()
end

local SummaryCollector = class.define(base.Callback, "SummaryCollector",
  "summary_dir, collect_freq=10, histogram_regular=nil, keep_default_action=true, custom_lineage_data=nil",
  [[Writes summaries while Model trains: the loss and the learning rate after every collect_freq steps, figures of evaluations after
epochs. summary_dir: the folder. histogram_regular: a Lua pattern for names of parameters whose histograms are written.
keep_default_action: false leaves all but the histograms out. A second file keeps the lineage: the settings of the training, its
data, its last loss and the figures of its evaluations. custom_lineage_data: numbers and texts by name that are kept there too.

  > tostring(ms.train.SummaryCollector("/tmp/lunaria_help_summary")) --> SummaryCollector<>]])
function SummaryCollector:setup(a)
  if type(a.summary_dir) ~= "string" or a.summary_dir == "" then
    fail("SummaryCollector", "summary_dir must be a path, got " .. describe(a.summary_dir))
  end
  self.summary_dir = a.summary_dir
  self.collect_freq = check.positive("SummaryCollector", "collect_freq", a.collect_freq)
  if a.histogram_regular ~= nil and not (type(a.histogram_regular) == "string" and pcall(string.find, "", a.histogram_regular)) then
    fail("SummaryCollector", "histogram_regular must be a Lua pattern, got " .. describe(a.histogram_regular))
  end
  self.histogram_regular = a.histogram_regular
  self.keep_default_action = check.boolean("SummaryCollector", "keep_default_action", a.keep_default_action)
  self.custom_lineage_data = a.custom_lineage_data
  if a.custom_lineage_data ~= nil then lineage.user_info("SummaryCollector", a.custom_lineage_data) end
end
--- Called before the training.
function SummaryCollector:on_train_begin()
  if self.summary then self.summary:close() end
  self.summary = SummaryRecord(self.summary_dir)
end
--- Called before a step: the first shows the network's graph and how many samples a batch has.
function SummaryCollector:on_train_step_begin(run)
  if self.has_graph or not self.keep_default_action then return end
  self.has_graph = true
  local args = run:original_args()
  local inputs = args.train_dataset_element
  local first = inputs and inputs[1]
  self.batch_size = ms.is_tensor(first) and first.ndim > 0 and first.shape[1] or nil
  if inputs then draw_graph(self.summary, args, first) end
end
--- Called after a step.
function SummaryCollector:on_train_step_end(run)
  local args = run:original_args()
  if args.cur_step_num % self.collect_freq ~= 0 then return end
  local summary = self.summary
  if self.keep_default_action then
    local loss, rate = callbacks.loss_of(args), args.optimizer and args.optimizer:get_lr()
    if loss then summary:add_value("scalar", "loss", loss) end
    if type(rate) == "table" then rate = rate[1] end
    if rate then summary:add_value("scalar", "learning_rate", rate) end
  end
  if self.histogram_regular then
    for name, parameter in args.network:parameters_and_names() do
      if name:find(self.histogram_regular) then summary:add_value("histogram", name, parameter) end
    end
  end
  summary:record(args.cur_step_num)
end
--- Called after an epoch.
function SummaryCollector:on_train_epoch_end(run)
  local args = run:original_args()
  local figures = {}
  for name, value in pairs(self.keep_default_action and args.eval_results or {}) do
    if math.type(value) then figures[#figures + 1] = name end
  end
  table.sort(figures)
  for _, name in ipairs(figures) do self.summary:add_value("scalar", name, args.eval_results[name]) end
  self.summary:record(args.cur_step_num)
  self.summary:flush()
end
--- Called after the training.
function SummaryCollector:on_train_end(run)
  self.summary:record(run:original_args().cur_step_num)
  self.summary:close()
  lineage.write(self.summary_dir, run:original_args(), self.batch_size, self.custom_lineage_data)
end

return { SummaryRecord = SummaryRecord, SummaryCollector = SummaryCollector }
