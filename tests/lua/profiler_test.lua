-- ms.Profiler and ms.profiler: recordings, their files, schedules, marks.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local ops = ms.ops

local root = os.tmpname()
os.remove(root)

local function decoded(path)
  local file <close> = assert(io.open(path))
  return ms.json.decode(file:read "a")
end

t.test("a profiler records what runs between start and stop", function()
  local x = ms.ones { 64, 64 }
  local profiler = ms.Profiler { output_path = root .. "/profiled" }
  for i = 1, 3 do
    local range = ms.profiler.mstx.range_start("work")
    ops.matmul(x, x)
    ms.profiler.mstx.range_end(range)
    if i == 2 then ms.profiler.mstx.mark "two" end
    profiler:step()
  end
  t.fails({ "another profiler is started" }, ms.Profiler)
  profiler:add_metadata("rank", 3)
  local path = profiler:analyse()
  ops.matmul(x, x)
  local found = profiler:op_analyse { "matmul", "sin" }
  t.equal({ found.matmul.count, found.sin.count, #profiler.report.steps, #profiler.report.marks }, { 3, 0, 3, 4 })
  t.equal(path, root .. "/profiled/profiler/profile_0.json")
  local profile = decoded(path)
  t.equal({ profile.metadata.rank, #profile.steps, profile.steps[3].step }, { 3, 3, 2 })
  t.equal({ profile.operators[1].name, profile.operators[1].count, profile.operators[1].kind }, { "matmul", 3, "eager" })
  assert(profile.operators[1].place:find "profiler_test.lua:%d+$", profile.operators[1].place)
  for _, name in ipairs { "trace_view.json", "kernel_details.csv", "step_trace_time.csv" } do
    t.equal(ms.io.kind(path:gsub("%.json$", "") .. "/" .. name), "file")
  end
  t.fails({ "stop: the profiler is not started" }, profiler.stop, profiler)
end)

t.test("the operators of a compiled function are in the record", function()
  local function f(x) return ops.tanh(ops.matmul(x, x) + 1):sum() end
  if ms.get_context "mode" == ms.PYNATIVE_MODE then f = ms.jit(f) end
  local x = ms.ones { 64, 64 }
  for _ = 1, 4 do f(x) end
  local profiler = ms.Profiler { output_path = root .. "/compiled" }
  f(x)
  local profile = decoded(profiler:analyse())
  local kinds = {}
  for _, operator in ipairs(profile.operators) do kinds[operator.name] = operator.kind end
  t.equal(kinds, { matmul = "compiled", ["add tanh sum"] = "generated" })
end)

t.test("a schedule says which steps are recorded", function()
  local ready, seen = ms.profiler.tensorboard_trace_handler(root .. "/traces", "w"), {}
  local plan = ms.profiler.schedule { skip_first = 1, wait = 1, warmup = 1, active = 2, repeat_ = 2 }
  local words = {}
  for step = 0, 10 do words[#words + 1] = plan(step):gsub("[^A-Z]", ""):sub(1, 1) .. (plan(step):find "SAVE" and "!" or "") end
  t.equal(table.concat(words), "NNWRR!NWRR!NN")
  do
    local profiler <close> = ms.profiler.profile { schedule = plan, on_trace_ready = function(p)
      seen[#seen + 1] = { #p.report.steps, p.report.steps[1].step, p:op_analyse("tanh").tanh.count }
      ready(p)
    end }
    profiler:start()
    for _ = 1, 11 do
      ops.tanh(ms.ones { 3 })
      profiler:step()
    end
  end
  t.equal(seen, { { 2, 3, 2 }, { 2, 7, 2 } })
  t.equal(ms.io.list_folder(root .. "/traces"), { "w_0_ascend_ms", "w_1_ascend_ms" })
  t.fails({ "schedule: active must be positive" }, ms.profiler.schedule, { wait = 1, active = 0 })
  local config = root .. "/monitor"
  local monitor = ms.profiler.DynamicProfilerMonitor(config, root .. "/monitored")
  local file = io.open(config .. "/profiler_config.json", "w")
  file:write '{ "start_step": 3, "stop_step": 4 }'
  file:close()
  for _ = 1, 6 do
    ops.tanh(ms.ones { 3 })
    monitor:step()
  end
  local profile = decoded(monitor.last_profile)
  t.equal({ profile.operators[1].count, profile.steps[1].step, #profile.steps }, { 2, 3, 2 })
end)

t.test("a recording that a callback leaves open ends by itself", function()
  local core, x = require "lunaria.profiling", ms.ones { 3 }
  local opened = core.begin(3)
  for _ = 1, 5 do ops.tanh(x) end
  local again = core.begin()
  ops.tanh(x)
  t.equal({ #core.finish(opened), #core.finish(again) }, { 3, 1 })
  t.fails({ "the profile has ended" }, core.finish, again)
  local recording = require "lunaria.profiler.recording"
  recording.begin(true)
  t.equal(#ms.profile(ops.tanh, x).events, 1)
  t.equal(recording.current(), nil)
end)

os.execute("rm -rf '" .. root .. "'")
t.finish()
