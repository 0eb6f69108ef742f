-- The state machine of a federated job from Lua: a whole job on a clock of its own, with lost and repeated requests and a server that is
-- stopped again and again; and memory over thousands of rounds. A second.
-- Eager mode only: nothing here is compiled.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local F = ms.federated
local S, FeatureMap = F.strategies, F.FeatureMap

-- A job of 30 devices that each hold a number w; the model is the mean of those that took part. faults: requests are lost or come twice,
-- and the server is made anew from its bytes. The devices that take part are drawn, so that they are the same.
local function job(faults)
  local g = require "lunaria.armour.common".generator(9)
  local settings = { name = "numbers", iterations = 6, start_threshold = 5, update_ratio = 0.8, start_window = 1000, update_window = 1000 }
  local rounds = F.Rounds { settings = settings }
  local now, log, accepted, map = 0, {}, {}, FeatureMap { w = ms.zeros({ 1 }, ms.float64) }
  local function request(name, ...)
    now = now + 1
    if faults then
      if g:number() < 0.3 then rounds = F.Rounds { settings = settings, bytes = rounds:bytes() } end
      -- The answer is lost, and the request comes again.
      if g:number() < 0.3 then rounds[name](rounds, now, ...) end
    end
    return rounds[name](rounds, now, ...)
  end
  while rounds:state().phase ~= "finished" do
    local iteration = rounds:state().iteration
    -- In the third iteration too few devices come.
    local devices = F.chosen(3, iteration, 30, iteration == 3 and 3 or 6)
    for _, device in ipairs(devices) do request("start", device) end
    for _, device in ipairs(devices) do
      local answer = request("update", device, iteration, device * 7)
      local weights = map:with_vector(map:vector() + device)
      if answer.code == 200 then accepted[device] = { id = device, samples = 1 + device, weights = weights } end
    end
    local state = rounds:state()
    if state.phase == "aggregating" then
      local updates = {}
      for _, update in pairs(accepted) do updates[#updates + 1] = update end
      map = S.aggregate(S.FedAvgM(), { number = iteration }, map, updates)
      rounds:finish(now, true)
    else
      now = state.deadline
      rounds:tick(now)
    end
    accepted = {}
    local last = rounds:state().last
    log[#log + 1] = ("%d %s %s"):format(last.iteration, last.valid, last.reason)
  end
  return map:vector():get_bytes(), log
end

t.test("faults change no bit of a job, and iterations that fail keep the weights", function()
  local expected, log = job(false)
  t.equal(log[3], "3 false too few devices started within their window")
  t.equal(#log, 6)
  t.equal(log[6], "6 true ")
  local got, other = job(true)
  t.equal(other, log)
  t.equal(got == expected, true)
end)

t.test("devices are drawn by seed and round", function()
  t.equal(F.chosen(1, 2, 10, 10), { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 })
  t.equal(F.chosen(1, 2, 1000000, 5), F.chosen(1, 2, 1000000, 5))
  t.equal(#F.chosen(1, 2, 0, 0), 0)
end)

t.test("mistakes say what to do", function()
  t.fails({ "Rounds", "no option 'iteration'", "iterations" }, F.Rounds, { settings = { iteration = 5 } })
  t.fails({ "Rounds", "iterations must be an integer, got 1.5" }, F.Rounds, { settings = { iterations = 1.5 } })
  t.fails({ "Rounds", "encryption must be one of", "'pairwise'" }, F.Rounds, { settings = { encryption = "PW_ENCRYPT" } })
  t.fails({ "federated job", "update_ratio must be above 0 and at most 1, got 2" }, F.Rounds, { settings = { update_ratio = 2.0 } })
  t.fails({ "start", "device must be an integer" }, F.Rounds().start, F.Rounds(), 0, "phone")
  t.fails({ "finish", "the iteration is starting, and only aggregating ends" }, F.Rounds().finish, F.Rounds(), 0, true)
  t.fails({ "there is no phase 'keys'", "exchanging keys" }, F.Rounds().cipher, F.Rounds(), 0, 1, 1, "keys")
  t.fails({ "the state of a federated job", "corrupt" }, F.Rounds, { bytes = "\255\255" })
  t.fails({ "chosen", "6 of 5 cannot be drawn" }, F.chosen, 1, 1, 5, 6)
  t.fails({ "chosen", "round must be from 0" }, F.chosen, 1, -1, 5, 2)
end)

t.test("memory stays what it is over thousands of rounds", function()
  local strategies = { S.FedAdam(), S.Scaffold(), S.NormBound(1.0, S.FedAvgM()), S.Median() }
  local start = FeatureMap { a = ms.zeros { 20 }, b = ms.zeros { 4, 5 } }
  local maps = {}
  for i, strategy in ipairs(strategies) do maps[i] = strategy.prepare and strategy:prepare(start) or start end
  local rounds = F.Rounds { settings = { iterations = 100000, start_threshold = 4 } }
  local function run(first, last)
    for number = first, last do
      for device = 1, 4 do rounds:start(number, number * 10 + device) end
      for device = 1, 4 do rounds:update(number, number * 10 + device, number, 1) end
      for i, strategy in ipairs(strategies) do
        local updates = {}
        for id = 1, 4 do
          local w = maps[i]:with_vector(maps[i]:vector() * 0.9 + id * 0.01)
          updates[id] = { id = number * 10 + id, samples = id, weights = w, extra = { control = ms.ones { 40 } } }
        end
        maps[i] = S.aggregate(strategy, { number = number, population = 100 }, maps[i], updates)
      end
      rounds:finish(number, true)
    end
    collectgarbage()
    collectgarbage()
    return collectgarbage "count", #rounds:bytes()
  end
  local before, bytes = run(1, 200)
  local after, more = run(201, 1200)
  assert(after < before * 1.05 + 64, ("%.0f kB, then %.0f kB"):format(before, after))
  assert(more < bytes + 16, ("%d bytes, then %d"):format(bytes, more))
end)

t.finish()
