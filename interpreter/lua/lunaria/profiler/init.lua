-- ms.profiler: where the time of a program goes.
local parts = require "lunaria.parts"

return parts("ms.profiler", "name", {
  { "lunaria.profiler.profiler", "Profiler profile" },
  { "lunaria.profiler.schedule", "DynamicProfilerMonitor ProfilerActivity ProfilerLevel mstx schedule tensorboard_trace_handler" },
})
