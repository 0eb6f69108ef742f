--- Devices at run time: their memory, waiting for them, streams and events. A device is told by its name; without one
--- the current device is meant (ms.set_device).
local devices = require "lunaria.devices"
local arguments = require "lunaria.nn.arguments"
local fail, describe = arguments.fail, arguments.describe

local runtime = {}

local function check(where, device)
  device = arguments.named(where, { "device" }, device)
  if device ~= nil and type(device) ~= "string" then fail(where, "device must be a string, got " .. describe(device)) end
  return device
end

--- The names of the devices that tensors can be on.
---     > ms.runtime.devices()[1] --> CPU
function runtime.devices() return devices.names() end

--- Waits until the device has done all that it was given.
---     > ms.runtime.synchronize()
function runtime.synchronize(device) devices.synchronize(check("synchronize", device)) end

--- The bytes of the device's tensors.
---     > ms.runtime.memory_allocated() <= ms.runtime.max_memory_allocated() --> true
function runtime.memory_allocated(device) return (devices.memory(check("memory_allocated", device))) end

--- The most bytes that the device's tensors had, since the program began or the peak was reset.
---     > ms.runtime.max_memory_allocated() > 0 --> true
function runtime.max_memory_allocated(device) return (select(2, devices.memory(check("max_memory_allocated", device)))) end

--- The bytes of the device's tensors, and what is kept for the next ones.
---     > ms.runtime.memory_reserved() >= ms.runtime.memory_allocated() --> true
function runtime.memory_reserved(device)
  local live, _, cached = devices.memory(check("memory_reserved", device))
  return live + cached
end

--- A table of numbers: allocated, peak, cached (all in bytes) and allocations.
---     > ms.runtime.memory_stats().allocations > 0 --> true
function runtime.memory_stats(device)
  local live, peak, cached, allocations = devices.memory(check("memory_stats", device))
  return { allocated = live, peak = peak, cached = cached, allocations = allocations }
end

--- The same as a text.
---     > type(ms.runtime.memory_summary()) --> string
function runtime.memory_summary(device)
  local s = runtime.memory_stats(device)
  return ("%d bytes in tensors (at most %d), %d kept for the next ones, %d allocations"):format(
    s.allocated, s.peak, s.cached, s.allocations)
end

--- The peak starts again at what is in use.
---     > ms.runtime.reset_max_memory_allocated()
function runtime.reset_peak_memory_stats(device) devices.reset_peak(check("reset_peak_memory_stats", device)) end
runtime.reset_max_memory_allocated = runtime.reset_peak_memory_stats

--- Gives memory that is kept for the next tensors back.
---     > ms.runtime.empty_cache()
function runtime.empty_cache(device) devices.empty_cache(check("empty_cache", device)) end

--- Which operators had no kernel on their device and were run on the host, with copies: a list of
--- { operator =, device =, calls =, bytes = }.
---     > #ms.runtime.fallbacks() --> 0
function runtime.fallbacks() return devices.fallbacks() end

--- Empties that list.
---     > ms.runtime.forget_fallbacks()
function runtime.forget_fallbacks() devices.forget_fallbacks() end

--- The libraries that a device makes use of where they are installed, a line each: name and version, or which file is
--- missing or too old. Without them kernels of its own do the same, large products of matrices slower.
---     > #ms.runtime.libraries("CPU") --> 0
function runtime.libraries(device) return devices.parts(check("libraries", device)) end

--- A place in the order of a device's work. As options: {device = , enable_timing = }.
local Event = {}
Event.__index = Event
Event.__name = "Event"

--- Marks what was given to the device until now.
function Event:record() self._place = devices.record(self.device) end

local function recorded(event, where)
  if not event._place then fail(where, "the event has not been recorded") end
  return event._place
end

--- Whether that is done.
function Event:query() return self._place == nil or devices.done_at(self._place, self.device) >= 0 end

--- Waits for it.
function Event:synchronize()
  if self._place then devices.wait(self._place, self.device) end
end

--- Work that is given to the stream from now on comes after it.
function Event:wait() end -- a device works in one order

--- The milliseconds from this event to another one, when both are done.
function Event:elapsed_time(other)
  if getmetatable(other) ~= Event then fail("elapsed_time", "an event is expected, got " .. describe(other)) end
  local first, last = recorded(self, "elapsed_time"), recorded(other, "elapsed_time")
  self:synchronize()
  other:synchronize()
  return (devices.done_at(last, other.device) - devices.done_at(first, self.device)) * 1000
end

--- An event on a device: ms.runtime.Event() on the current one.
---     > (function() local e = ms.runtime.Event() e:record() e:synchronize() return e:query() end)() --> true
function runtime.Event(options)
  options = arguments.options("Event", options, { device = "string" }, '{ device = "CPU" }')
  return setmetatable({ device = check("Event", options.device) }, Event)
end

--- What a device is given, in order. A device works in one order so far: all its streams are one.
local Stream = {}
Stream.__index = Stream
Stream.__name = "Stream"

--- Waits until everything is done.
function Stream:synchronize() devices.synchronize(self.device) end

--- Whether it is.
function Stream:query()
  local event = self:record_event()
  return event:query()
end

--- An event behind what the stream was given until now.
function Stream:record_event(event)
  event = event or runtime.Event { device = self.device }
  event:record()
  return event
end

--- What follows comes after the event.
function Stream:wait_event(event) event:wait() end

--- What follows comes after what another stream was given.
function Stream:wait_stream() end -- they are one

--- The stream of a device: ms.runtime.Stream() of the current one.
---     > (function() local s = ms.runtime.Stream() s:synchronize() return s:query() end)() --> true
function runtime.Stream(options)
  options = arguments.options("Stream", options, { device = "string" }, '{ device = "CPU" }')
  return setmetatable({ device = check("Stream", options.device) }, Stream)
end

--- The stream that operators are given to.
---     > ms.runtime.current_stream():query() --> true
function runtime.current_stream(device) return runtime.Stream { device = check("current_stream", device) } end
runtime.default_stream = runtime.current_stream

return runtime
