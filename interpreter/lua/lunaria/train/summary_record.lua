-- Summaries: figures, histograms, pictures, texts and tensors of a training, in a file of events that TensorBoard shows. One
-- file serves TensorBoard and MindSpore's own tools (see summary_values.lua).
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local cells = require "lunaria.nn.cell"
local class = require "lunaria.nn.class"
local events = require "lunaria.train.events"
local lineage = require "lunaria.train.lineage"
local messages = require "lunaria.train.messages"
local pending = require "lunaria.primitives.pending"
local plugins = require "lunaria.train.summary_values"
local summary_graph = require "lunaria.train.summary_graph"

local fail, check, describe = arguments.fail, arguments.check, arguments.describe
local text_field, integer_field, double_field = events.text_field, events.integer_field, events.double_field

local names = { "audio", "custom_lineage_data", "dataset_graph", "explainer", "histogram", "image", "landscape", "pr_curve", "scalar",
  "tensor", "text" }

local SummaryRecord = class.define(nil, "SummaryRecord",
  "log_dir, file_prefix=\"events\", file_suffix=\"_MS\", num_process=32, network=nil, max_file_size=nil, raise_exception=false, "
    .. "export_options=nil",
  [[A file of summaries in a folder, which lunaria insight and TensorBoard show: tensorboard --logdir FOLDER. log_dir: the folder,
made when it is missing. file_prefix, file_suffix: what its name begins and ends with. max_file_size: the most bytes of the file;
what comes after is left out, which is told once. raise_exception: whether a file that cannot be written is an error; otherwise it is
told once, and the program goes on. export_options: { tensor_format = "npy" } also writes what the plug-in "tensor" gets as files
export_TIME/tensor/TAG_STEP.npy. network, num_process: MindSpore's; add_graph writes a graph.

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
  check.positive("SummaryRecord", "num_process", a.num_process)
  if a.max_file_size ~= nil then self.max_file_size = check.positive("SummaryRecord", "max_file_size", a.max_file_size) end
  self.raise_exception = check.boolean("SummaryRecord", "raise_exception", a.raise_exception)
  local form = ("%s.out.tfevents.summary.%%d.%%d.%%s%s"):format(a.file_prefix:gsub("%%", "%%%%"), (a.file_suffix:gsub("%%", "%%%%")))
  self.log_dir, self.mode = a.log_dir, "train"
  self.file = events.create("SummaryRecord", a.log_dir, form, "MindSpore.Event:1")
  self.path, self.name, self.values = self.file.path, self.file.name, {}
  if events.exports("SummaryRecord", a.export_options) then self.export = ("%s/export_%d/tensor"):format(a.log_dir, os.time()) end
end

local now = events.now

local function open(self, where)
  if not self.file then fail(where, "the record is closed") end
end

local function told(self, message)
  self.is_full = true
  io.stderr:write("SummaryRecord: ", message, "\n")
end

-- Writes an event; gives whether it is in the file.
local function write(self, event)
  if self.is_full then return false end
  if self.max_file_size and self.file.size + #event + 16 > self.max_file_size then
    told(self, ("%s has reached max_file_size (%d bytes); what comes now is left out"):format(self.path, self.max_file_size))
    return false
  end
  if self.raise_exception then
    self.file:write(event)
    return true
  end
  local ok, message = pcall(self.file.write, self.file, event)
  if not ok then told(self, tostring(message)) end
  return ok
end

--- Says whether what is recorded now belongs to the training or to an evaluation. mode: "train" or "eval".
---     > record = ms.train.SummaryRecord("/tmp/lunaria_help_summary")
---     > record:set_mode("eval")
---     > record.mode --> eval
---     > record:close()
---     > os.remove(record.path) and os.remove("/tmp/lunaria_help_summary") --> true
function SummaryRecord:set_mode(mode)
  mode = arguments.named("set_mode", { "mode" }, mode)
  self.mode = check.choice("set_mode", "mode", mode, { "train", "eval" })
end

-- What stands in an event by itself rather than among its values, by plug-in.
local whole = {}
function whole.explainer(_, value)
  if type(value) ~= "table" then fail("add_value", "an explanation is a table, got " .. describe(value)) end
  return text_field(6, messages.encode(messages.explain, value))
end

-- What belongs into a lineage file: a file of its own.
local of_lineage = {
  custom_lineage_data = function(value) return { user_defined_info = lineage.user_info("add_value", value) } end,
  dataset_graph = function(value) return { dataset_graph = lineage.dataset_graph("add_value", value) } end,
}

-- What is written of a value; nil where it went into a lineage file.
local function entry_of(self, where, plugin, name, value)
  open(self, where)
  if type(plugin) ~= "string" or not (plugins[plugin] or whole[plugin] or of_lineage[plugin]) then
    fail(where, ("there is no plugin %s; there are: %s"):format(describe(plugin), table.concat(names, ", ")),
      type(plugin) == "string" and arguments.nearest(plugin, names) or nil)
  end
  if type(name) ~= "string" or name == "" then fail(where, "name must be a string that is not empty, got " .. describe(name)) end
  if of_lineage[plugin] then
    lineage.write(where, self.log_dir, { of_lineage[plugin](value) })
    return
  end
  if whole[plugin] then return { plugin = plugin, event = whole[plugin](name, value) } end
  local bytes = plugins[plugin](name, value)
  for i, item in ipairs(bytes) do bytes[i] = text_field(1, item) end
  return { plugin = plugin, name = name, bytes = table.concat(bytes), tensor = plugin == "tensor" and value }
end

--- Adds a value to the next record. plugin: "scalar", "histogram", "image" (a tensor (C, H, W) or (N, C, H, W)), "audio" (a
--- tensor (samples,) or (samples, channels) within -1 and 1, or { data =, sample_rate = }), "text", "tensor", "pr_curve" (precision
--- and recall of { labels =, predictions = within 0 and 1, num_thresholds = 201 }), or "landscape" (what ms.insight.landscape
--- gives); "explainer" (see ms.explain.ImageClassificationRunner); "dataset_graph" (a data set) and "custom_lineage_data" (numbers
--- and texts by name), which are written to a lineage file at once. name: what it is called. value: a number, a tensor or a text.
---     > record = ms.train.SummaryRecord("/tmp/lunaria_help_summary")
---     > record:add_value("histogram", "weights", ms.ones { 3 })
---     > record:close()
---     > os.remove(record.path) and os.remove("/tmp/lunaria_help_summary") --> true
function SummaryRecord:add_value(plugin, name, value)
  self.values[#self.values + 1] = entry_of(self, "add_value", plugin, name, value)
end

-- What ops.ScalarSummary and its kin were called with since the last record.
local function take_pending(self)
  local keys = {}
  for key in pairs(pending) do keys[#keys + 1] = key end
  table.sort(keys)
  for _, key in ipairs(keys) do
    local value = pending[key]
    pending[key] = nil
    local plugin, name = key:match "^(%a+) (.*)$"
    self:add_value(plugin, name, value)
  end
end

local function export_tensor(self, shown, step)
  ms.io.make_folder(self.export)
  local name = shown.name:gsub("[/\0]", "_"):gsub("^%.", "_")
  ms.io.write_npy(("%s/%s_%d.npy"):format(self.export, name, step), shown.tensor)
end

-- Writes values as those of a step; gives whether there was anything.
local function write_values(self, kept, step, plugin_filter)
  local values, written = {}, false
  for _, shown in ipairs(kept) do
    if plugin_filter == nil or plugin_filter(shown.plugin) then
      if shown.tensor and self.export then export_tensor(self, shown, step) end
      if shown.event then
        written = write(self, double_field(1, now()) .. integer_field(2, step) .. shown.event) or written
      else
        values[#values + 1] = shown.bytes
      end
    end
  end
  if #values == 0 then return written end
  return write(self, double_field(1, now()) .. integer_field(2, step) .. text_field(5, table.concat(values))) or written
end

--- Writes what was added since the last record, as values of a step, and what ops.ScalarSummary and its kin were called with.
--- Gives whether there was anything. train_network: MindSpore's; add_graph writes a graph. plugin_filter: a function that is given
--- the name of a plug-in and tells whether its values are written; the others are left out.
---     > record = ms.train.SummaryRecord("/tmp/lunaria_help_summary")
---     > record:record(1) --> false
---     > record:close()
---     > os.remove(record.path) and os.remove("/tmp/lunaria_help_summary") --> true
function SummaryRecord:record(step, train_network, plugin_filter)
  open(self, "record")
  local _
  step, _, plugin_filter = arguments.named("record", { "step", "train_network", "plugin_filter" }, step, train_network, plugin_filter)
  step = check.not_negative("record", "step", step)
  if plugin_filter ~= nil and not arguments.is_callable(plugin_filter) then
    fail("record", "plugin_filter must be a function, got " .. describe(plugin_filter))
  end
  take_pending(self)
  local kept = self.values
  self.values = {}
  return write_values(self, kept, step, plugin_filter)
end

--- Writes one value of a step to the file at once, apart from what record() gathers. step: its number. plugin, name, value: as
--- add_value takes them.
---     > record = ms.train.SummaryRecord("/tmp/lunaria_help_summary")
---     > record:add_now(3, "text", "note", "warm-up ends") --> true
---     > record:close()
---     > os.remove(record.path) and os.remove("/tmp/lunaria_help_summary") --> true
function SummaryRecord:add_now(step, plugin, name, value)
  step = check.not_negative("add_now", "step", step)
  local written = write_values(self, { entry_of(self, "add_now", plugin, name, value) }, step)
  self:flush()
  return written
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

return { SummaryRecord = SummaryRecord }
