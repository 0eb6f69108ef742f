-- The parameters of a chip or a cluster as plain numbers: one of parameters.lua by name, with the changes of the user's
-- own, from a table or a file.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local parameters = require "lunaria.ascend.parameters"

local M = {}

-- A device is made with a record for each core; a file may not ask for any number of them.
local MOST_CORES = 65536

local function names(set)
  local list = {}
  for name in pairs(set) do list[#list + 1] = name end
  table.sort(list)
  return table.concat(list, ", ")
end

local function resolve(where, set, name, into, sources)
  local entry = set[name]
  if not entry then arguments.fail(where, ("there is no '%s'; there are: %s"):format(tostring(name), names(set))) end
  if entry.base then resolve(where, set, entry.base, into, sources) end
  for key, pair in pairs(entry) do
    if key ~= "base" then into[key], sources[key] = pair[1], pair[2] end
  end
end

-- A table of changes: `base` names what they change, each other key is one of the parameters.
local function changed(where, set, changes, default, into, sources, origin)
  resolve(where, set, changes.base or default, into, sources)
  for key, value in pairs(changes) do
    if key ~= "base" and key ~= "name" and key ~= "cluster" then
      if into[key] == nil then
        local known = {}
        for one in pairs(into) do known[#known + 1] = one end
        arguments.fail(where, ("there is no parameter '%s'"):format(tostring(key)), arguments.nearest(tostring(key), known))
      end
      if type(value) ~= type(into[key]) then
        arguments.fail(where, ("the parameter '%s' must be a %s, got %s"):format(key, type(into[key]), arguments.describe(value)))
      end
      if type(value) == "number" and not (value > 0 and value < math.huge) then
        arguments.fail(where, ("the parameter '%s' must be positive, got %s"):format(key, tostring(value)))
      end
      if math.type(into[key]) == "integer" and not (math.tointeger(value) and value >= 1) then
        arguments.fail(where, ("the parameter '%s' must be an integer of at least 1, got %s"):format(key, tostring(value)))
      end
      if key:match "efficiency$" and value > 1 then
        arguments.fail(where, ("the parameter '%s' must be at most 1, got %s"):format(key, tostring(value)))
      end
      if key == "cores" and value > MOST_CORES then
        arguments.fail(where, ("the parameter 'cores' must be at most %d, got %s"):format(MOST_CORES, tostring(value)))
      end
      if math.type(into[key]) == "integer" then value = math.tointeger(value) end
      into[key], sources[key] = value, origin
    end
  end
end

local function read_file(where, path)
  local text, problem = ms.io._read(path)
  if not text then arguments.fail(where, "the configuration cannot be read: " .. problem) end
  local ok, decoded = pcall(ms.json.decode, text)
  if not ok or type(decoded) ~= "table" then
    local reason = ok and "" or ": " .. tostring(decoded):gsub("^.-: json: ", "")
    arguments.fail(where, path .. " is no JSON object" .. reason)
  end
  return decoded
end

-- given: a name, a file that ends in .json, or a table of changes.
local function load(where, set, given, default, field)
  local numbers, sources = {}, {}
  local name, origin = given or default, "the user's configuration"
  if type(name) == "string" and name:match "%.json$" then
    origin = name
    name = read_file(where, name)
    if field then name = name[field] or default end
  end
  if type(name) == "table" then
    changed(where, set, name, default, numbers, sources, origin)
    numbers.name = name.name or (tostring(name.base or default) .. " with changes")
    numbers.changed = true
  elseif type(name) == "string" then
    resolve(where, set, name, numbers, sources)
    numbers.name = name
  else
    arguments.fail(where, "a name, a file or a table is expected, got " .. arguments.describe(given))
  end
  numbers.sources = sources
  return numbers
end

function M.chip(where, given)
  local c = load(where, parameters.chips, given, "910")
  c.hbm_per_cycle = c.hbm_bytes_per_second * c.hbm_efficiency / c.hertz
  c.l2_per_cycle = c.l2_bytes_per_second / c.hertz
  c.cache_lines = c.l2_bytes // 512 | 0
  c.peak_flops = 2 * c.cube_macs * c.cores * c.hertz
  return c
end

function M.cluster(where, given) return load(where, parameters.clusters, given, "atlas", "cluster") end

return M
