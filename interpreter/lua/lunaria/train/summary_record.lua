-- Summaries: figures, histograms, pictures, texts and tensors of a training, in a file of events that TensorBoard shows. One
-- file serves TensorBoard and MindSpore's own tools: where the two disagree about a field both forms are written.
--
-- A record is its length and its bytes, each followed by a masked CRC-32C (the framing of TFRecord); the bytes are an Event
-- in Protocol Buffers' wire format.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local base = require "lunaria.train.callback"
local callbacks = require "lunaria.train.callbacks"
local class = require "lunaria.nn.class"

local ops = ms.ops
local fail, check, describe = arguments.fail, arguments.check, arguments.describe

local crc_table
local function crc32c(text)
  if not crc_table then
    crc_table = {}
    for i = 0, 255 do
      local value = i
      for _ = 1, 8 do value = value & 1 == 1 and value >> 1 ~ 0x82f63b78 or value >> 1 end
      crc_table[i] = value
    end
  end
  local sum = 0xffffffff
  for from = 1, #text, 4096 do
    for _, byte in ipairs { text:byte(from, math.min(from + 4095, #text)) } do
      sum = crc_table[(sum ~ byte) & 0xff] ~ sum >> 8
    end
  end
  return ~sum & 0xffffffff
end

local function masked(text)
  local sum = crc32c(text)
  return ("<I4"):pack(((sum >> 15 | sum << 17) + 0xa282ead8) & 0xffffffff)
end

local function varint(n)
  local bytes = {}
  repeat
    bytes[#bytes + 1] = string.char((n & 127) | (n >> 7 ~= 0 and 128 or 0))
    n = n >> 7
  until n == 0
  return table.concat(bytes)
end

local function text_field(number, text) return varint(number << 3 | 2) .. varint(#text) .. text end
local function integer_field(number, value) return varint(number << 3) .. varint(value) end
local function double_field(number, value) return varint(number << 3 | 1) .. ("<d"):pack(value) end
local function float_field(number, value) return varint(number << 3 | 5) .. ("<f"):pack(value) end

local function packed_doubles(number, list)
  local parts = {}
  for i, value in ipairs(list) do parts[i] = ("<d"):pack(value) end
  return text_field(number, table.concat(parts))
end

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

local names = { "histogram", "image", "scalar", "tensor", "text" }

local SummaryRecord = class.define(nil, "SummaryRecord", "log_dir, file_prefix=\"events\", file_suffix=\"_MS\"",
  [[A file of summaries in a folder, which TensorBoard shows: tensorboard --logdir FOLDER. log_dir: the folder, made when it is
missing. file_prefix, file_suffix: what its name begins and ends with.

  > record = ms.train.SummaryRecord("/tmp/lunaria_help_summary")
  > record:add_value("scalar", "loss", 0.5)
  > record:record(1)
  true
  > record:close()
  > #ms.io.list_folder("/tmp/lunaria_help_summary")
  1
  > os.remove(record.path) and os.remove("/tmp/lunaria_help_summary")
  true]])

local function write(self, event)
  local length = ("<I8"):pack(#event)
  local ok, message = self.file:write(length, masked(length), event, masked(event))
  if not ok then fail(self.path, "writing failed: " .. tostring(message)) end
end

local function now() return os.time() + (ms.clock() % 1000000000) / 1e9 end

function SummaryRecord:setup(a)
  for _, key in ipairs { "log_dir", "file_prefix", "file_suffix" } do
    if type(a[key]) ~= "string" or (a[key] == "" and key ~= "file_suffix") then
      fail("SummaryRecord", ("%s must be a string that is not empty, got %s"):format(key, describe(a[key])))
    end
  end
  ms.io.make_folder(a.log_dir)
  local host = (os.getenv("HOSTNAME") or ""):match "^[%w%-_]+" or "localhost"
  local taken = {}
  for _, name in ipairs(ms.io.list_folder(a.log_dir)) do taken[name] = true end
  local n = 0
  repeat
    self.name = ("%s.out.tfevents.summary.%d.%d.%s%s"):format(a.file_prefix, os.time(), n, host, a.file_suffix)
    n = n + 1
  until not taken[self.name]
  self.path = a.log_dir .. "/" .. self.name
  local file, message = io.open(self.path, "wb")
  if not file then fail("SummaryRecord", tostring(message)) end
  self.file, self.values = file, {}
  write(self, double_field(1, now()) .. text_field(3, "MindSpore.Event:1"))
end

local function open(self, where)
  if not self.file then fail(where, "the record is closed") end
end

--- Adds a value to the next record. plugin: "scalar", "histogram", "image" (a tensor (C, H, W) or (N, C, H, W)), "text" or
--- "tensor". name: what it is called. value: a number, a tensor or a text.
---
---     > record = ms.train.SummaryRecord("/tmp/lunaria_help_summary")
---     > record:add_value("histogram", "weights", ms.ones { 3 })
---     > record:close()
---     > os.remove(record.path) and os.remove("/tmp/lunaria_help_summary")
---     true
function SummaryRecord:add_value(plugin, name, value)
  open(self, "add_value")
  if type(plugin) ~= "string" or not plugins[plugin] then
    fail("add_value", ("there is no plugin %s; there are: %s"):format(describe(plugin), table.concat(names, ", ")),
      type(plugin) == "string" and arguments.nearest(plugin, names) or nil)
  end
  if type(name) ~= "string" or name == "" then fail("add_value", "name must be a string that is not empty, got " .. describe(name)) end
  for _, item in ipairs(plugins[plugin](name, value)) do self.values[#self.values + 1] = text_field(1, item) end
end

--- Writes what was added since the last record, as values of a step. Gives whether there was anything.
---
---     > record = ms.train.SummaryRecord("/tmp/lunaria_help_summary")
---     > record:record(1)
---     false
---     > record:close()
---     > os.remove(record.path) and os.remove("/tmp/lunaria_help_summary")
---     true
function SummaryRecord:record(step)
  open(self, "record")
  step = check.not_negative("record", "step", step)
  if #self.values == 0 then return false end
  write(self, double_field(1, now()) .. integer_field(2, step) .. text_field(5, table.concat(self.values)))
  self.values = {}
  return true
end

--- Brings what was written to the file.
---
---     > record = ms.train.SummaryRecord("/tmp/lunaria_help_summary")
---     > record:flush()
---     > record:close()
---     > os.remove(record.path) and os.remove("/tmp/lunaria_help_summary")
---     true
function SummaryRecord:flush()
  open(self, "flush")
  self.file:flush()
end

--- Closes the file.
---
---     > record = ms.train.SummaryRecord("/tmp/lunaria_help_summary")
---     > record:close()
---     > os.remove(record.path) and os.remove("/tmp/lunaria_help_summary")
---     true
function SummaryRecord:close()
  if not self.file then return end
  local ok, message = self.file:close()
  self.file = nil
  if not ok then fail(self.path, "writing failed: " .. tostring(message)) end
end

SummaryRecord.__close = SummaryRecord.close

local SummaryCollector = class.define(base.Callback, "SummaryCollector",
  "summary_dir, collect_freq=10, histogram_regular=nil, keep_default_action=true",
  [[Writes summaries while Model trains: the loss and the learning rate after every collect_freq steps, figures of evaluations after
epochs. summary_dir: the folder. histogram_regular: a Lua pattern for names of parameters whose histograms are written.
keep_default_action: false leaves all but the histograms out.

  > tostring(ms.train.SummaryCollector("/tmp/lunaria_help_summary"))
  SummaryCollector<>]])
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
end
--- Called before the training.
function SummaryCollector:on_train_begin()
  if self.summary then self.summary:close() end
  self.summary = SummaryRecord(self.summary_dir)
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
function SummaryCollector:on_train_end()
  self.summary:close()
end

return { SummaryRecord = SummaryRecord, SummaryCollector = SummaryCollector }
