-- Populations of devices at the level of messages (core/federated/population.h): selection, windows, thresholds, faults of millions of
-- devices that keep nothing, through the state machine of a server's rounds.
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"

local fail, check = arguments.fail, arguments.check

local function integer(value) return math.type(value) and math.tointeger(value) ~= nil, "an integer" end
local function number(value) return math.type(value) ~= nil, "a number" end

local known = {
  devices = integer, seed = integer, arrival = integer, availability = number, training = integer, training_spread = number,
  stragglers = number, straggler_factor = number, dropout = number, lost = number, duplicated = number, replayed = number, retry = integer,
  restart = number, iterations = integer, start_threshold = integer, start_window = integer, update_ratio = number, update_window = integer,
  global_window = integer, selection = number, asynchronous = "boolean", buffer = integer, concurrency = integer, max_staleness = integer,
}

local Population = class.Object:extend("Population")
Population._called = "population"
Population._parameters = "options=nil"
Population._doc = [[Many devices that take part in rounds as messages alone: who asks, who is taken, whose update comes in time. No weights
travel and nothing is trained; the rounds are those of the server. Every run with the same options is the same.

options: devices (1000; up to 10^7 take half a gigabyte), seed (0), arrival (1000: milliseconds within which devices ask), availability
(1.0: the share that asks), training (1000: milliseconds of the median device), training_spread (0.5: deviation of the logarithm),
stragglers (0.0: share that takes straggler_factor, 10.0, times as long), dropout (0.0: share of those taken that sends nothing), and of
messages the chance to be lost (0.0; sent again after retry, 500 milliseconds), duplicated (0.0), preceded by an old one (replayed, 0.0),
or to meet a server that has just been started anew (restart, 0.0). Of the job: iterations (1), start_threshold (1), start_window (3000),
update_ratio (1.0), update_window (3000), global_window (3000000), selection (1.0), asynchronous (false) with buffer (1), concurrency (0:
any) and max_staleness (10).

  > p = ms.federated.Population { devices = 1000, start_threshold = 100, update_ratio = 0.8, update_window = 60000, iterations = 2 }
  > report = p:iteration()
  > report.valid, report.started, report.updates --> true	100	80
  > p:iteration().iteration, p:finished() --> 2	true]]

function Population:init(options)
  options = arguments.options("Population", options, known, "{ devices = 1000 }")
  local given = {}
  for name, value in pairs(options) do given[name] = known[name] == integer and math.tointeger(value) or value end
  if given.seed and given.seed < 0 then fail("Population", "seed must not be negative, got " .. given.seed) end
  self._core = require "lunaria.population"
  self._population = self._core.make(given)
end

--- Goes on until an iteration has ended, and gives what happened in it: { iteration, valid, reason, began, ended (milliseconds), asked,
--- started, refused, updates, late, lost, repeated, replays_refused, restarts, digest }. digest: a hash of the devices whose updates were
--- taken.
---     > p = ms.federated.Population { devices = 50, start_threshold = 100, start_window = 2000 }
---     > report = p:iteration()
---     > report.valid, report.started --> false	50
function Population:iteration()
  if self:finished() then fail("Population:iteration", "all iterations are over") end
  return self._core.iteration(self._population)
end

--- Whether all iterations are over.
---     > ms.federated.Population({ devices = 10 }):finished() --> false
function Population:finished() return self._core.finished(self._population) end

--- Iterations to the end, or so many: a list of what iteration gives. count: nil for all.
---     > #ms.federated.Population({ devices = 10, update_window = 60000, iterations = 3 }):run() --> 3
function Population:run(count)
  count = arguments.named("run", { "count" }, count)
  if count ~= nil then count = check.positive("Population:run", "count", count) end
  local list = {}
  while not self:finished() and (count == nil or #list < count) do list[#list + 1] = self:iteration() end
  return list
end

return { Population = Population }
