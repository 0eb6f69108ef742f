-- Steps of noisy mechanisms as accountants keep them: { mechanism, sampling, sample_rate, noise_multiplier or epsilon, steps }, checked and
-- with all defaults. One that stands for several noise multipliers has lower_noise and share: with that probability the noise is the lower.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"

local ops = ms.ops
local fail, check, describe = arguments.fail, arguments.check, arguments.describe
local events = {}

-- The least square of the sensitivity of a tree's sums to one row that takes part k times, at least `separation` leaves apart: a node of
-- 2^l leaves has it at most ceil(2^l / separation) times.
local function tree_sensitivity(leaves, k, separation)
  local sum, size = 0, 1
  while size <= leaves do
    sum = sum + k * math.min(k, (size + separation - 1) // separation)
    size = 2 * size
  end
  return sum
end

local numbers = {
  noise_multiplier = check.number_not_negative, epsilon = check.number_not_negative, sample_rate = check.probability,
  steps = check.not_negative, leaves = check.positive, participations = check.positive, separation = check.positive,
}
local fields_of = {
  gaussian = "noise_multiplier sample_rate steps sampling", laplace = "noise_multiplier sample_rate steps sampling",
  pure = "epsilon sample_rate steps sampling", tree = "noise_multiplier steps leaves participations separation",
}

-- The numbers that the user gave, checked.
local function numbers_of(where, mechanism, given)
  local names, known, event = { "mechanism" }, { mechanism = true }, { mechanism = mechanism }
  for name in fields_of[mechanism]:gmatch "%S+" do names[#names + 1], known[name] = name, true end
  for name, value in pairs(given) do
    if not known[name] then
      fail(where, ("a %s step has no field '%s'; there are: %s"):format(mechanism, tostring(name), table.concat(names, ", ")),
        arguments.nearest(tostring(name), names))
    end
    if numbers[name] then
      event[name] = numbers[name](where, name, value)
      if event[name] == math.huge then fail(where, name .. " must be finite, got inf") end
    end
  end
  return event
end

--- A step as the user gives it, as an event.
function events.of(where, given)
  if type(given) ~= "table" or getmetatable(given) ~= nil then
    fail(where, "a step is a table such as { noise_multiplier = 1.1, sample_rate = 0.01, steps = 100 }, got " .. describe(given))
  end
  local mechanism = given.mechanism == nil and "gaussian" or given.mechanism
  check.choice(where, "mechanism", mechanism, { "gaussian", "laplace", "pure", "tree" })
  local event = numbers_of(where, mechanism, given)
  local scale = mechanism == "pure" and "epsilon" or "noise_multiplier"
  if event[scale] == nil then fail(where, ("a %s step needs %s"):format(mechanism, scale)) end
  event[scale], event.steps = event[scale] + 0.0, event.steps or 1
  if mechanism == "tree" then
    if not event.leaves then fail(where, "a tree step needs leaves, the number of steps that a tree sums") end
    local square = tree_sensitivity(event.leaves, event.participations or 1, event.separation or 1)
    return { mechanism = "gaussian", noise_multiplier = event.noise_multiplier / math.sqrt(square), sample_rate = 1.0,
      sampling = "poisson", steps = event.steps }
  end
  event.sample_rate = (event.sample_rate or 1) + 0.0
  event.sampling = check.choice(where, "sampling", given.sampling == nil and "poisson" or given.sampling, { "poisson", "fixed" })
  if mechanism == "pure" and event.sampling == "fixed" then
    fail(where, "sampling = 'fixed' is for gaussian and laplace steps; epsilon of a pure step already says what a change of a row does")
  end
  return event
end

--- How far one row moves a sum, in norm bounds.
function events.moves(event) return event.sampling == "fixed" and 2 or 1 end

local identity = { "mechanism", "sampling", "sample_rate", "noise_multiplier", "epsilon", "lower_noise", "share" }

--- Whether two events differ at most in their steps.
function events.is_same(a, b)
  for _, name in ipairs(identity) do
    if a[name] ~= b[name] then return false end
  end
  return true
end

--- A text that is the same for such events.
function events.key(event)
  local parts = {}
  for i, name in ipairs(identity) do
    local value = event[name]
    parts[i] = math.type(value) and ("%a"):format(value) or tostring(value)
  end
  return table.concat(parts, " ")
end

function events.copy(event, steps)
  local copy = {}
  for name, value in pairs(event) do copy[name] = value end
  copy.steps = steps or event.steps
  return copy
end

--- The event with its lower noise, or with its upper one, alone.
function events.alone(event, noise)
  local copy = events.copy(event)
  copy.noise_multiplier, copy.lower_noise, copy.share = noise, nil, nil
  return copy
end

-- Events without two of one kind: order does not matter for what they cost together. Steps without effect are left out.
local function by_kind(history)
  local kinds, found = {}, {}
  for _, event in ipairs(history) do
    if event.steps > 0 and event.sample_rate > 0 and event.epsilon ~= 0 then
      local key = events.key(event)
      if found[key] then
        found[key].steps = found[key].steps + event.steps
      else
        found[key] = events.copy(event)
        kinds[#kinds + 1] = found[key]
      end
    end
  end
  return kinds
end

-- More kinds than most_kinds, as of noise that decays from step to step, stand on `places` noise multipliers, each step on its two
-- neighbours with shares of 1/parts. For Gaussian noise delta(epsilon) is a convex function of the total variation
-- t = erf(1 / (sigma sqrt(8))) for every epsilon: its second derivative in t has the sign of that in mu = 1 / sigma less mu/4 of the first.
-- So a law between two others is dominated by their mixture with the same total variation, and the result stays an upper bound.
local most_kinds, places, parts = 40, 16, 16

local function variation(event, noise) return ops.erf(ms.tensor(events.moves(event) / noise / math.sqrt(8), ms.float64)):item() end

-- The mixture for an event of a group whose noise is from `least` to `most`.
local function on_places(event, least, most)
  local noise, ratio = event.noise_multiplier, (most / least) ^ (1 / places)
  local place = math.min(places - 1, math.floor(math.log(noise / least) / math.log(ratio)))
  local low, high = least * ratio ^ place, least * ratio ^ (place + 1)
  local copy = events.alone(event, high)
  copy.lower_noise = low
  if event.mechanism == "laplace" then
    copy.share = 1.0
  else
    local from, to = variation(event, high), variation(event, low)
    local share = (variation(event, noise) - from) / (to - from)
    copy.share = share == share and math.max(0.0, math.min(1.0, math.ceil(share * parts) / parts)) or 1.0
  end
  if copy.share == 0 then return events.alone(event, high) end
  return copy.share == 1 and events.alone(event, low) or copy
end

--- The kinds of events of a history, few enough to be composed.
function events.kinds(history)
  local kinds = by_kind(history)
  if #kinds <= most_kinds then return kinds end
  local least, most = {}, {}
  local function group_of(event) return ("%s %s %a"):format(event.mechanism, event.sampling, event.sample_rate) end
  for _, event in ipairs(kinds) do
    local group, noise = group_of(event), event.noise_multiplier
    if noise then
      least[group], most[group] = math.min(least[group] or noise, noise), math.max(most[group] or noise, noise)
    end
  end
  for i, event in ipairs(kinds) do
    local group = group_of(event)
    if least[group] and least[group] > 0 and most[group] > least[group] then kinds[i] = on_places(event, least[group], most[group]) end
  end
  return by_kind(kinds)
end

return events
