-- SummaryReader: what files of events hold, whether this library, TensorBoard, PyTorch or MindSpore wrote them.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local events = require "lunaria.train.events"
local messages = require "lunaria.train.messages"

local fail, check, describe = arguments.fail, arguments.check, arguments.describe

-- Events are read so many at a time.
local at_once = 4096

local SummaryReader = class.define(nil, "SummaryReader", "path, partial=false",
  [[Reads files of summaries, which SummaryRecord, TensorBoard, PyTorch and MindSpore write. path: a file, or a folder, of which all
files of events are read, in the order of their names. partial: true leaves the last record of a file out where it is not whole, as it
is while a training writes it; otherwise that is an error with the offset, as damages are.

  > record = ms.train.SummaryRecord("/tmp/lunaria_help_summary")
  > record:add_value("scalar", "loss", 0.5)
  > record:record(1) --> true
  > record:close()
  > ms.train.SummaryReader("/tmp/lunaria_help_summary"):values("loss")[1].value --> 0.5
  > os.remove(record.path) and os.remove("/tmp/lunaria_help_summary") --> true]])

local function files_of(path)
  local names = ms.io.list_folder(path)
  if not names then return { path } end
  local files = {}
  for _, name in ipairs(names) do
    if events.has_values(name) then files[#files + 1] = path .. "/" .. name end
  end
  if #files == 0 then fail("SummaryReader", ("there is no file of events in the folder %s"):format(path)) end
  return files
end

function SummaryReader:setup(a)
  if type(a.path) ~= "string" or a.path == "" then fail("SummaryReader", "path must be a path, got " .. describe(a.path)) end
  self.path = a.path
  self.partial = check.boolean("SummaryReader", "partial", a.partial)
  self.files, self._at, self._series, self.explanations = {}, {}, {}, {}
  self:reload()
end

--- Reads what has been written since.
---     > record = ms.train.SummaryRecord("/tmp/lunaria_help_summary")
---     > record:flush()
---     > reader = ms.train.SummaryReader(record.path)
---     > record:add_value("scalar", "loss", 0.5)
---     > record:record(1) --> true
---     > record:close()
---     > reader:reload()
---     > #reader:values("loss") --> 1
---     > os.remove(record.path) and os.remove("/tmp/lunaria_help_summary") --> true
function SummaryReader:reload()
  self.files = files_of(self.path)
  for _, file in ipairs(self.files) do
    local at = self._at[file] or { offset = 0, record = 0 }
    self._at[file] = at
    repeat
      local read, offset, record = ms.io.read_events(file, self.partial, at.offset, at.record, at_once)
      at.offset, at.record = offset, record
      for _, event in ipairs(read) do self:_add(event) end
    until #read < at_once
  end
end

function SummaryReader:_add(event)
  if event.has_graph then self.has_graph = true end
  local bytes = event.others and event.others[6]
  if bytes then
    -- Another program's field of that number may be anything.
    local explained, message = pcall(messages.decode, messages.explain, bytes)
    if explained and next(message) then
      message.step, message.wall_time = event.step, event.wall_time
      self.explanations[#self.explanations + 1] = message
    end
  end
  for _, shown in ipairs(event.values) do
    local series = self._series[shown.tag]
    if not series then
      series = { kind = shown.kind }
      self._series[shown.tag] = series
    end
    local value = shown.value
    if shown.kind == "landscape" then
      local ok, landscape = pcall(messages.landscape_of, value)
      if not ok then fail("SummaryReader", ("the landscape %s in %s is damaged"):format(shown.tag, self.path)) end
      value = landscape
    end
    series[#series + 1] = { step = event.step, wall_time = event.wall_time, value = value }
  end
end

--- The tags, sorted. kind: only those of "scalar", "histogram", "image", "audio", "text", "tensor" or "landscape", or of a plug-in of
--- TensorBoard's such as "hparams".
---     > record = ms.train.SummaryRecord("/tmp/lunaria_help_summary")
---     > record:add_value("scalar", "loss", 0.5)
---     > record:add_value("text", "note", "begun")
---     > record:record(1) --> true
---     > record:close()
---     > table.concat(ms.train.SummaryReader(record.path):tags("scalar"), " ") --> loss
---     > os.remove(record.path) and os.remove("/tmp/lunaria_help_summary") --> true
function SummaryReader:tags(kind)
  kind = arguments.named("tags", { "kind" }, kind)
  if kind ~= nil and type(kind) ~= "string" then fail("tags", "kind must be a string, got " .. describe(kind)) end
  local tags = {}
  for tag, series in pairs(self._series) do
    if kind == nil or series.kind == kind then tags[#tags + 1] = tag end
  end
  table.sort(tags)
  return tags
end

local function series_of(self, where, tag)
  local series = self._series[tag]
  if series then return series end
  local tags = self:tags()
  if type(tag) ~= "string" then fail(where, "tag must be a string, got " .. describe(tag)) end
  fail(where, ("there is no tag '%s' in %s"):format(tag, self.path),
    arguments.nearest(tag, tags) or #tags > 0 and "there are: " .. table.concat(tags, ", ", 1, math.min(#tags, 20)) or nil)
end

--- What a tag's values are: "scalar", "histogram" and so on, as for tags.
---     > record = ms.train.SummaryRecord("/tmp/lunaria_help_summary")
---     > record:add_value("text", "note", "begun")
---     > record:record(1) --> true
---     > record:close()
---     > ms.train.SummaryReader(record.path):kind("note") --> text
---     > os.remove(record.path) and os.remove("/tmp/lunaria_help_summary") --> true
function SummaryReader:kind(tag) return series_of(self, "kind", tag).kind end

--- The values of a tag in the order in which they were written: a list of { step =, wall_time = seconds since 1970, value = }. A
--- value is a number of a scalar; a string of a text; a tensor of a tensor; of a histogram a table of min, max, count, sum,
--- sum_squares, limits (the upper end of each bin), counts, nan, positive_infinity and negative_infinity; of a picture one of height,
--- width, channels and bytes (PNG or JPEG, for ms.dataset.vision.Decode); of sound one of sample_rate, channels, frames, type and bytes;
--- of a landscape what ms.insight.landscape gives.
---     > record = ms.train.SummaryRecord("/tmp/lunaria_help_summary")
---     > record:add_value("histogram", "weights", ms.tensor { 1.0, 2.0, 2.0 })
---     > record:record(7) --> true
---     > record:close()
---     > entry = ms.train.SummaryReader(record.path):values("weights")[1]
---     > entry.step, entry.value.max --> 7	2.0
---     > os.remove(record.path) and os.remove("/tmp/lunaria_help_summary") --> true
function SummaryReader:values(tag)
  local list = {}
  for i, entry in ipairs(series_of(self, "values", tag)) do
    list[i] = { step = entry.step, wall_time = entry.wall_time, value = entry.value }
  end
  return list
end

--- The figures of a tag as two tensors: the steps (int64) and the values (float64), for a plot.
---     > record = ms.train.SummaryRecord("/tmp/lunaria_help_summary")
---     > for step = 1, 3 do record:add_value("scalar", "loss", 1 / step); record:record(step) end
---     > record:close()
---     > steps, losses = ms.train.SummaryReader(record.path):scalars("loss")
---     > steps:tolist()[3], losses.shape --> 3	(3,)
---     > os.remove(record.path) and os.remove("/tmp/lunaria_help_summary") --> true
function SummaryReader:scalars(tag)
  local series = series_of(self, "scalars", tag)
  if series.kind ~= "scalar" then fail("scalars", ("the values of '%s' are no scalars, but of the kind %s"):format(tag, series.kind)) end
  local steps, values = {}, {}
  for i, entry in ipairs(series) do steps[i], values[i] = entry.step, entry.value end
  return ms.tensor(steps, ms.int64), ms.tensor(values, ms.float64)
end

return { SummaryReader = SummaryReader }
