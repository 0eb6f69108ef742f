-- The times of a call, or of the steps of a training, by operator and by step of a compiled graph, each with its line, the bytes
-- that it read and wrote, and its arithmetic.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local report = require "lunaria.rich.report"

local MOST_ROWS = 40

local Profile = {}
Profile.__index = Profile
Profile.__name = "profile"

local describe = arguments.describe
local function fail(message, ...) arguments.fail("profile", message:format(...)) end

local sort_keys = { seconds = true, count = true, bytes = true, flops = true }

--- One row for each operator and line: operators, place, count, seconds, bytes, flops, generated, compiled. The largest of
--- `by` (seconds, count, bytes, flops) comes first.
---     > ms.profile(function(x) return x * 2 end, ms.ones { 4 }):rows()[1].count --> 1
function Profile:rows(by)
  by = arguments.named("rows", { "by" }, by)
  by = by or "seconds"
  if not sort_keys[by] then fail("rows can be sorted by seconds, count, bytes or flops, not by %s", describe(by)) end
  local rows, known = {}, {}
  for _, event in ipairs(self.events) do
    local key = event.operators .. "\n" .. event.place
    local row = known[key]
    if not row then
      row = { operators = event.operators, place = event.place, count = 0, seconds = 0, bytes = 0, flops = 0,
        generated = event.generated, compiled = event.compiled, order = #rows }
      known[key] = row
      rows[#rows + 1] = row
    end
    row.count = row.count + 1
    for _, name in ipairs { "seconds", "bytes", "flops" } do row[name] = row[name] + event[name] end
  end
  table.sort(rows, function(a, b)
    if a[by] ~= b[by] then return a[by] > b[by] end
    return a.order < b.order
  end)
  for _, row in ipairs(rows) do row.order = nil end
  return rows
end

local scaled, times, sizes = report.scaled, report.times, report.sizes
local rates = { { 1e9, "GFLOP/s" }, { 1e6, "MFLOP/s" }, { 1, "FLOP/s" } }

function Profile:_table()
  local rows = {}
  local list = self:rows()
  for i, row in ipairs(list) do
    if i > MOST_ROWS then
      rows[#rows + 1] = { "", "", "", ("%d more"):format(#list - MOST_ROWS), "", "", "" }
      break
    end
    rows[#rows + 1] = {
      scaled(row.seconds, times), ("%.1f %%"):format(100 * row.seconds / self.seconds), tostring(row.count),
      (#row.operators > 48 and row.operators:sub(1, 47) .. "…" or row.operators) .. (row.generated and " (generated)" or ""),
      row.seconds > 0 and row.bytes > 0 and scaled(row.bytes / row.seconds, sizes) .. "/s" or "",
      row.seconds > 0 and row.flops > 0 and scaled(row.flops / row.seconds, rates) or "", row.place,
    }
  end
  return rows, { "time", "share", "calls", "operators", "memory", "arithmetic", "line" },
    { "right", "right", "right", "left", "right", "right", "left" }
end

function Profile:_totals()
  local inside = 0
  for _, event in ipairs(self.events) do inside = inside + event.seconds end
  local text = ("%s in all, %s of it in %d operators and compiled steps; at most %s of tensors"):format(
    scaled(self.seconds, times), scaled(inside, times), #self.events, scaled(self.peak_bytes, sizes))
  for _, f in ipairs(self.fallbacks) do
    text = text .. ("\n%s has no kernel on the device %s: %d calls ran on the host, with %d bytes of copies"):format(
      f.operator, f.device, f.calls, f.bytes)
  end
  return text
end

report.shows(Profile)

--- Writes the events as a Chrome trace, for chrome://tracing or ui.perfetto.dev: operators on a line of time, and the
--- memory of tensors below.
---     > ms.profile(function(x) return x * 2 end, ms.ones { 4 }):save("/tmp/lunaria_help_profile.json")
---     > (os.remove("/tmp/lunaria_help_profile.json")) --> true
function Profile:save(path)
  if type(path) ~= "string" then fail("save needs the name of a file, got %s", describe(path)) end
  local file, message = io.open(path, "w")
  if not file then fail("cannot write the trace: %s", message) end
  file:write(ms.json.encode { traceEvents = require("lunaria.profiler.files").trace(self), displayTimeUnit = "ms" })
  file:close()
end

return Profile
