-- The files of a report: the one that lunaria insight reads, a Chrome trace and tables, as MindSpore's profiler leaves them.
local ms = require "lunaria"
local fail = require("lunaria.nn.arguments").fail

local files = {}

local function write(where, path, text)
  local file, message = io.open(path, "w")
  if not file then fail(where, message) end
  local ok, problem = file:write(text)
  if ok then ok, problem = file:close() end
  if not ok then fail(where, ("%s: %s"):format(path, tostring(problem))) end
end

local function kind_of(event) return event.generated and "generated" or event.compiled and "compiled" or "eager" end

-- Which step an event is in, by its start.
local function step_at(report, start)
  for _, step in ipairs(report.steps or {}) do
    if start >= step.start and start < step.start + step.seconds then return step.step end
  end
  return nil
end

--- A report as a Chrome trace: operators on a line of time and the memory of tensors below, steps, the waiting for data before a step,
--- marks.
function files.trace(report)
  local list = ms.json.array {}
  local function add(name, cat, line, start, seconds, args)
    list[#list + 1] = { name = name, cat = cat, ph = "X", pid = 1, tid = line, ts = start * 1e6, dur = seconds * 1e6, args = args }
  end
  for _, e in ipairs(report.events) do
    local about = { line = e.place, bytes = e.bytes, flops = e.flops, step = step_at(report, e.start) }
    add(e.operators, kind_of(e), 1, e.start, e.seconds, about)
    list[#list + 1] = { name = "tensors", ph = "C", pid = 1, ts = (e.start + e.seconds) * 1e6, args = { bytes = e.live } }
  end
  for _, step in ipairs(report.steps or {}) do
    add("step " .. tostring(step.step), "step", 2, step.start, step.seconds)
    if step.waiting then add("waiting for data", "data", 2, step.start - step.waiting, step.waiting, { step = step.step }) end
  end
  for _, mark in ipairs(report.marks or {}) do add(mark.name, "mark", 3, mark.start, mark.seconds) end
  return list
end

--- Writes a report as a Chrome trace, which chrome://tracing and the page of lunaria insight show, and beside its traceEvents version,
--- mode, seconds, peak_bytes, steps: [{ step, start, seconds, waiting }], operators: [{ name, place, count, seconds, bytes, flops,
--- kind }], fallbacks, metadata. Times beside the events are seconds since the recording began.
function files.page(where, path, report, metadata)
  local operators = ms.json.array {}
  for i, row in ipairs(report:rows()) do
    operators[i] = { name = row.operators, place = row.place, count = row.count, seconds = row.seconds, bytes = row.bytes,
      flops = row.flops, kind = kind_of(row) }
  end
  write(where, path, ms.json.encode { version = 1, mode = report.mode, seconds = report.seconds, peak_bytes = report.peak_bytes,
    steps = ms.json.array(report.steps), operators = operators, fallbacks = ms.json.array(report.fallbacks), metadata = metadata,
    traceEvents = files.trace(report), displayTimeUnit = "ms" })
end

local function quoted(text) return '"' .. tostring(text):gsub('"', '""') .. '"' end

--- Writes a report into a folder as trace_view.json (for chrome://tracing), kernel_details.csv (each call) and step_trace_time.csv.
function files.tables(where, folder, report)
  ms.io.make_folder(folder)
  write(where, folder .. "/trace_view.json", ms.json.encode { traceEvents = files.trace(report), displayTimeUnit = "ms" })
  local kernels = { "Step ID,Name,Type,Accelerator Core,Start Time(us),Duration(us)" }
  local inside = {}
  for _, e in ipairs(report.events) do
    local step = step_at(report, e.start)
    if step then inside[step] = (inside[step] or 0) + e.seconds end
    kernels[#kernels + 1] = ("%s,%s,%s,CPU,%.3f,%.3f"):format(step or "", quoted(e.operators), kind_of(e), e.start * 1e6, e.seconds * 1e6)
  end
  write(where, folder .. "/kernel_details.csv", table.concat(kernels, "\n") .. "\n")
  local steps = { "Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Preparing" }
  for _, step in ipairs(report.steps) do
    local computing = inside[step.step] or 0
    steps[#steps + 1] = ("%s,%.3f,0,0,0,%.3f,%.3f"):format(step.step, computing * 1e6, math.max(0, step.seconds - computing) * 1e6,
      (step.waiting or 0) * 1e6)
  end
  write(where, folder .. "/step_trace_time.csv", table.concat(steps, "\n") .. "\n")
end

--- A path in a folder that no other file has: form has a %d for a number.
function files.free(form)
  local n = 0
  while ms.io.kind(form:format(n)) do n = n + 1 end
  return form:format(n)
end

return files
