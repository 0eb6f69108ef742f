-- The state machine of a federated job (core/federated/rounds.h) for programs in Lua: servers and simulations of their own, with whatever
-- clock they have.
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local core = require "lunaria.rounds"

local fail, check, describe = arguments.fail, arguments.check, arguments.describe

local M = {}

local Rounds = class.define(nil, "Rounds", "settings=nil, bytes=nil",
  [[Which devices take part in each iteration of a federated job, until when requests are taken, and when an iteration has failed. Times
are integers, milliseconds of any clock that the program gives; nothing here waits. Devices are integers.

An answer is a table: code (200 success, 201 not ready, 300 too late, 400 a mistake), iteration, reason and next_request where it was
refused or must wait, repeated where the same request was taken before, changed where the state is another one, staleness of an update.

settings: a table of name, iterations (1), start_threshold (1), start_window (3000), update_ratio (1.0), update_window (3000),
global_window (3000000), encryption ("none", "pairwise" or "stable"), share_ratio (1.0), cipher_window (3000), reconstruct_threshold (1),
signed_lists (false), selection (1.0), seed (0), poll (500), spread (0); asynchronous (false) with buffer (1), concurrency (0) and
max_staleness (10). bytes: what rounds:bytes() gave, to go on from there.

  > rounds = ms.federated.Rounds { settings = { iterations = 5, start_threshold = 2, update_ratio = 0.5 } }
  > rounds:start(0, 7).code, rounds:start(1, 8).code, rounds:state().phase --> 200	200	updating
  > rounds:update(10, 8, 1, 123).code, rounds:state().phase --> 200	aggregating]])
Rounds._called = "rounds"
M.Rounds = Rounds

local kinds = { name = "string", encryption = "string", signed_lists = "boolean", asynchronous = "boolean" }
for name in ([[iterations start_threshold start_window update_window global_window cipher_window reconstruct_threshold seed poll spread
  buffer concurrency max_staleness]]):gmatch "%S+" do
  kinds[name] = function(value) return math.type(value) ~= nil and math.tointeger(value) ~= nil, "an integer" end
end
for _, name in ipairs { "update_ratio", "share_ratio", "selection" } do kinds[name] = "number" end

function Rounds:setup(a)
  local settings = arguments.options("Rounds", a.settings, kinds, "{ iterations = 10, start_threshold = 5 }")
  if settings.encryption then check.choice("Rounds", "encryption", settings.encryption, { "none", "pairwise", "stable" }) end
  if a.bytes ~= nil and type(a.bytes) ~= "string" then fail("Rounds", "bytes must be a text, got " .. describe(a.bytes)) end
  self._core = core.make(settings, a.bytes)
end

local function integers(where, ...)
  for i = 1, select("#", ...), 2 do check.integer(where, (select(i, ...)), (select(i + 1, ...))) end
end

--- A device wants to take part: an answer. now: the time. device: its number.
---     > ms.federated.Rounds():start(0, 5).code --> 200
function Rounds:start(now, device)
  integers("start", "now", now, "device", device)
  return core.start(self._core, now, device)
end

--- A device has sent an update: an answer. now: the time. device: its number. iteration: the one in which it started. digest: an
--- integer by
--- which this update is told from another one of the device.
---     > rounds = ms.federated.Rounds()
---     > _ = rounds:start(0, 5)
---     > rounds:update(1, 5, 1, 99).changed --> true
function Rounds:update(now, device, iteration, digest)
  integers("update", "now", now, "device", device, "iteration", iteration, "digest", digest)
  return core.update(self._core, now, device, iteration, digest)
end

--- A device has sent what a phase of the encryption asks for: an answer. now: the time. device: its number. iteration: the one that it
--- takes
--- part in. phase: "exchanging keys", "sharing secrets", "signing lists" or "reconstructing".
---     > rounds = ms.federated.Rounds { settings = { encryption = "stable" } }
---     > _ = rounds:start(0, 5)
---     > rounds:cipher(1, 5, 1, "exchanging keys").code --> 200
function Rounds:cipher(now, device, iteration, phase)
  integers("cipher", "now", now, "device", device, "iteration", iteration)
  return core.cipher(self._core, now, device, iteration, tostring(phase))
end

--- A device asks for what a phase has brought together, which is ready when that is over: an answer. now: the time. device: its number.
--- iteration: the one that it takes part in. phase: a phase of the encryption, or "updating".
---     > rounds = ms.federated.Rounds { settings = { encryption = "stable", start_threshold = 2 } }
---     > _ = rounds:start(0, 5), rounds:start(0, 6), rounds:cipher(1, 5, 1, "exchanging keys")
---     > rounds:look(1, 5, 1, "exchanging keys").code --> 201
---     > _ = rounds:cipher(2, 6, 1, "exchanging keys")
---     > rounds:look(3, 5, 1, "exchanging keys").code --> 200
function Rounds:look(now, device, iteration, phase)
  integers("look", "now", now, "device", device, "iteration", iteration)
  return core.look(self._core, now, device, iteration, tostring(phase))
end

--- A device asks for the weights after an iteration: an answer. now: the time. iteration: which one.
---     > ms.federated.Rounds():model(0, 1).code --> 201
function Rounds:model(now, iteration)
  integers("model", "now", now, "iteration", iteration)
  return core.model(self._core, now, iteration)
end

--- Time has gone by: whether that changed something. now: the time.
---     > rounds = ms.federated.Rounds { settings = { iterations = 2, start_threshold = 2 } }
---     > _ = rounds:start(0, 5)
---     > rounds:tick(3000), rounds:state().last.reason --> true	too few devices started within their window
function Rounds:tick(now)
  integers("tick", "now", now)
  return core.tick(self._core, now)
end

--- Ends the phase before its window does, if it has what it needs: whether it has ended. now: the time.
---     > ms.federated.Rounds():close(0) --> false
function Rounds:close(now)
  integers("close", "now", now)
  return core.close(self._core, now)
end

--- Ends `aggregating`: the updates were aggregated, or could not be, and the next iteration begins. now: the time. valid: whether the
--- weights
--- are new ones. reason: why not, a text.
---     > rounds = ms.federated.Rounds { settings = { iterations = 2 } }
---     > _ = rounds:start(0, 5), rounds:update(1, 5, 1, 99)
---     > rounds:finish(2, true)
---     > rounds:state().iteration --> 2
function Rounds:finish(now, valid, reason)
  reason = arguments.named("finish", { "reason" }, reason)
  integers("finish", "now", now)
  check.boolean("finish", "valid", valid)
  if reason ~= nil and type(reason) ~= "string" then fail("finish", "reason must be a text, got " .. describe(reason)) end
  core.finish(self._core, now, valid, reason)
end

--- Ends the job. now: the time. reason: a text.
---     > rounds = ms.federated.Rounds()
---     > rounds:stop(0, "maintenance")
---     > rounds:start(1, 5).reason --> the job is over
function Rounds:stop(now, reason)
  integers("stop", "now", now)
  if type(reason) ~= "string" then fail("stop", "reason must be a text, got " .. describe(reason)) end
  core.stop(self._core, now, reason)
end

--- A table of the iteration, its phase, how many requests the phase has taken and needs, the deadline at which tick changes something
--- (or nil),
--- training (of an asynchronous job: devices that have started and sent nothing), and last: the iteration that ended last, whether it was
--- valid, the reason if not, and the time.
---     > state = ms.federated.Rounds({ settings = { start_threshold = 3 } }):state()
---     > state.phase, state.taken, state.needed --> starting	0	3
function Rounds:state() return core.state(self._core) end

--- The whole state as bytes, for Rounds { bytes = ... } of the same settings.
---     > rounds = ms.federated.Rounds { settings = { start_threshold = 3 } }
---     > _ = rounds:start(0, 5)
---     > ms.federated.Rounds({ settings = { start_threshold = 3 }, bytes = rounds:bytes() }):state().taken --> 1
function Rounds:bytes() return core.bytes(self._core) end

--- So many different numbers from 0 below a population, in rising order: the same for the same seed and round, whatever was drawn
--- before. seed,
--- round: integers. population: how many there are. count: how many are drawn.
---     > #ms.federated.chosen(1, 5, 1000000, 10) --> 10
function M.chosen(seed, round, population, count)
  integers("chosen", "seed", seed, "round", round)
  population, count = check.not_negative("chosen", "population", population), check.not_negative("chosen", "count", count)
  if count > population then fail("chosen", ("%d of %d cannot be drawn"):format(count, population)) end
  if round < 0 or round >= 1 << 40 then fail("chosen", ("round must be from 0 to 2^40, got %d"):format(round)) end
  if count > 1 << 31 - 1 then fail("chosen", ("count must be below 2^31, got %d"):format(count)) end
  return core.chosen(seed, round, population, count)
end

return M
