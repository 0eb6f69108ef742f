-- The pages of ms.insight.start as front end of a watch: the page Debugger shows where the program stands, asks for what it had there,
-- and says how it goes on. The server's threads keep the questions until the program's thread takes them (core/insight/answers).
local ms = require "lunaria"
local core = require "lunaria.insight_core"
local arguments = require "lunaria.nn.arguments"

local json = ms.json
local MOST_HITS, MOST_NODES, MOST_ELEMENTS, LINES = 50, 1000, 1000, 3
local WAIT, BETWEEN = 0.1, 2e8 -- seconds for a question; nanoseconds between two tellings of a program that runs

-- JSON has no infinities, nor numbers that are none.
local function number(x)
  if type(x) ~= "number" or x == x and x ~= math.huge and x ~= -math.huge then return x end
  return x ~= x and "NaN" or x > 0 and "Infinity" or "-Infinity"
end

local function list_of(items, f)
  local list = {}
  for i, item in ipairs(items or {}) do list[i] = f and f(item) or item end
  return json.array(list)
end

local function figures(f)
  return {
    name = f.name, from = type(f.node) == "string" and f.node or nil,
    shape = f.shape and tostring(f.shape), dtype = f.dtype and tostring(f.dtype),
    count = f.count, zeros = f.zeros, nan = f.nan, positive_infinity = f.positive_infinity, negative_infinity = f.negative_infinity,
    min = number(f.min), max = number(f.max), mean = number(f.mean), abs_mean = number(f.abs_mean),
  }
end

local function operand(o) return { node = o.node, parameter = o.parameter } end

local function node_of(node)
  if not node then return nil end
  return {
    index = node.index, name = node.name, operator = node.operator, layer = node.layer, place = node.place, level = node.level,
    operands = list_of(node.operands, operand), results = node.results and list_of(node.results, figures) or nil,
    inputs = node.inputs and list_of(node.inputs, figures) or nil,
  }
end

local function hit_of(hit)
  local node = hit.node and hit.node.name or nil
  return { text = tostring(hit), condition = hit.condition, step = hit.step, node = node, tensor = hit.tensor.name }
end

-- What is true of the program whether it runs or stands.
local function about(watch, more)
  local latest = {}
  for i = math.max(1, #watch.hits - MOST_HITS + 1), #watch.hits do latest[#latest + 1] = hit_of(watch.hits[i]) end
  more.step, more.hits = watch._core:step(), json.array(latest)
  return json.encode(more)
end

-- The lines around a place, of a program that is a file.
local function source(place)
  local name, wanted = tostring(place):match "^(.*):(%d+)$"
  local file = name and io.open(name)
  local lines = {}
  if not file then return { lines = json.array(lines) } end
  wanted = tonumber(wanted)
  local at, first = 0, math.max(1, wanted - LINES)
  for text in file:lines() do
    at = at + 1
    if at > wanted + LINES then break end
    if at >= first then lines[#lines + 1] = text end
  end
  file:close()
  return { first = first, line = wanted, lines = json.array(lines) }
end

local answers = {}

-- Nodes of the step, from one on.
function answers.nodes(watch, asked)
  local list, from = {}, math.max(1, math.tointeger(asked.from) or 1)
  for index = from, from + MOST_NODES - 1 do
    local node = watch._core:nodes(index)
    if not node then break end
    list[#list + 1] = node_of(node)
  end
  return { nodes = json.array(list) }
end

-- A node, with figures where the program stands at it, what led to it, and its lines.
function answers.look(watch, asked)
  local node = watch:node(asked.name)
  if not node then error("there is no such node in this step", 0) end
  return { node = node_of(node), upstream = list_of(watch:upstream(node.name), node_of), source = source(node.place) }
end

-- The first elements of a result of the node at which the program stands.
function answers.values(watch, asked)
  local tensor = watch:tensors()[(math.tointeger(asked.result) or 0) + 1]
  if not tensor then error("the node has no such result", 0) end
  local flat = tensor:reshape { -1 }
  local values = flat[{ ms.slice(0, math.min(flat.size, MOST_ELEMENTS)) }]
  if ms.ops.is_complex(values) then error("elements of complex tensors are not shown", 0) end
  return { shape = tostring(tensor.shape), dtype = tostring(tensor.dtype), size = flat.size, values = list_of(values:tolist(), number) }
end

-- A kept tensor against the step before.
function answers.compare(watch, asked)
  local change = watch:compare(asked.name, tonumber(asked.rtol), tonumber(asked.atol))
  return {
    name = asked.name, now = figures(change.now), before = figures(change.before), count = change.count, unequal = change.unequal,
    largest = number(change.largest), mean = number(change.mean),
  }
end

local ways = { node = true, step = true, hit = true, terminate = true }

-- The server that a user passed as control.
return function(server)
  local page = {}

  local told = -math.huge

  local function run(watch)
    told = ms.clock()
    core.desk_run(server._handle, about(watch, {}))
  end

  -- Called at each step's end, of which there may be many in a second.
  function page.tell(watch)
    if server._handle and ms.clock() - told >= BETWEEN then run(watch) end
  end

  function page.wants_pause() return server._handle ~= nil and core.desk_take_pause(server._handle) end

  -- Answers at a stop until a page says how the program goes on.
  function page.control(watch, stopped)
    if not server._handle then arguments.fail("watch", "the program is to stop, and the server that is its control was stopped") end
    local guard <close> = setmetatable({}, { __close = function() -- luacheck: ignore 211
      if server._handle then run(watch) end
    end })
    core.desk_stand(server._handle, about(watch, {
      reason = stopped.reason, node = node_of(stopped.node), count = stopped.node and stopped.node.index or 0, kept = list_of(watch:kept()),
      new = list_of(stopped.hits, hit_of), source = stopped.node and source(stopped.node.place) or nil,
    }))
    while true do
      local content, ended = core.desk_next(server._handle, WAIT)
      if ended then arguments.fail("watch", "the server that was to say how the program goes on has ended") end
      local asked = content and json.decode(content)
      if asked and ways[asked.command] then
        core.desk_reply(server._handle, [[{"accepted":true}]])
        return asked.command, math.max(1, math.tointeger(asked.count) or 1)
      elseif asked and asked.command ~= "pause" then
        local answer = answers[asked.command]
        local fine, result = false, "there is no such command"
        if answer then fine, result = pcall(answer, watch, asked) end
        core.desk_reply(server._handle, json.encode(fine and result or { error = tostring(result):match "^[^\n]*" }), fine and 200 or 400)
      elseif asked then
        core.desk_reply(server._handle, [[{"accepted":true}]])
      end
    end
  end

  return page
end
