-- ms.insight.dump: the tensors of a training's steps as files, for a debugger that looks at them later (dump_analyzer.lua).
--
-- The folders are those of MindSpore's dumps: DIR/rank_0/NETWORK/GRAPH/STEP/, and in a step's one file for each result,
-- Operator.node.task.stream.time.output.N.format.npy. Beside them nodes.json holds the nodes with their operands and lines, and
-- weights/ the trainable parameters as they are after the step.
local core = require "lunaria.watching"
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local told = require "lunaria.insight.watch_text"

local fail, describe = arguments.fail, arguments.describe

local Dump = {}
Dump.__index = Dump
Dump.__name = "dump"

-- A name as part of a file's: '.' separates there.
local function plain(name) return (name:gsub("[^%w_-]", "_")) end

local function folder_of(...)
  local path = table.concat({ ... }, "/")
  ms.io.make_folder(path)
  return path
end

local function is_meant(self, node)
  if not self._nodes then return true end
  for _, text in ipairs(self._nodes) do
    if told.is_called(node, text) then return true end
  end
  return false
end

local function write_node(self)
  local node = self._core:nodes(-1)
  if not is_meant(self, node) then return end
  local files = {}
  for i, tensor in ipairs(self._core:tensors()) do
    files[i] = ("%s.%s.0.0.0.output.%d.DefaultFormat.npy"):format(node.operator, plain(node.name), i - 1)
    ms.io.write_npy(self._step_folder .. "/" .. files[i], tensor)
  end
  self._files[node.index] = files
end

-- The gradients that an optimizer's step gets come behind the parameters that it changes.
local function gradients_of(node)
  local list, count = {}, 0
  while node.operands[count + 1] and node.operands[count + 1].parameter do count = count + 1 end
  if not node.operator:find "^apply_" then return list end
  for i = 1, count do
    local gradient = node.operands[count + i]
    if gradient and gradient.node > 0 then
      list[#list + 1] = { parameter = node.operands[i].parameter, node = gradient.node, result = gradient.result }
    end
  end
  return list
end

local function write_step(self)
  local nodes, gradients = self._core:nodes(), {}
  for i, node in ipairs(nodes) do
    node.files = self._files[i]
    for _, one in ipairs(gradients_of(node)) do gradients[#gradients + 1] = one end
  end
  local weights = {}
  for i, name in ipairs(self._core:kept()) do
    local file = ("weights/%d.%s.npy"):format(i, plain(name))
    if i == 1 then folder_of(self._step_folder, "weights") end
    ms.io.write_npy(self._step_folder .. "/" .. file, (self._core:kept(name)))
    weights[i] = { name = name, file = file }
  end
  local file = assert(io.open(self._step_folder .. "/nodes.json", "w"))
  file:write(ms.json.encode { version = 1, nodes = ms.json.array(nodes), gradients = ms.json.array(gradients),
    weights = ms.json.array(weights) })
  file:close()
end

--- A call of the function as a step.
function Dump:__call(...)
  self._step = self._step + 1
  if self._steps and not self._steps[self._step] then return self._f(...) end
  self._step_folder = folder_of(self.path, "rank_0", self._network, "0", tostring(self._step))
  self._files = {}
  return self._core:run(self._f, ...)
end

function Dump:__tostring() return ("dump of %d steps to %s"):format(self._step, self.path) end

--- A function that calls f and writes what the operators of each call give, as files in the folder path, with the layout of MindSpore's
--- dumps: path/rank_0/NETWORK/0/STEP/Operator.node.0.0.0.output.N.DefaultFormat.npy, beside nodes.json (the nodes with their operands
--- and lines) and weights/ (after the step). Options: steps, which calls (from 1) are written; nodes, names of layers, operators, nodes or
--- lines whose results are; network, the name of that folder ("network"). ms.insight.DumpAnalyzer(path) looks at it.
---     > folder = os.tmpname() .. "_dump"
---     > step = ms.insight.dump(function(x) return ms.ops.exp(x) * 2 end, folder)
---     > step(ms.ones(2)):tolist()[1] > 5 --> true
---     > ms.insight.DumpAnalyzer(folder):select_tensors("exp")[1]:value().shape --> (2,)
local function dump(f, path, options)
  if not arguments.is_callable(f) then fail("dump", "a function is expected, got " .. describe(f)) end
  if type(path) ~= "string" or path == "" then fail("dump", "path must be the name of a folder, got " .. describe(path)) end
  options = arguments.options("dump", options, { steps = "table", nodes = "table", network = "string" }, "{ steps = { 1, 2 } }")
  local self = setmetatable({ path = path, _f = f, _step = 0, _nodes = options.nodes, _network = plain(options.network or "network") },
    Dump)
  if options.steps then
    self._steps = {}
    for _, step in ipairs(options.steps) do self._steps[step] = true end
  end
  local this = setmetatable({ self }, { __mode = "v" })
  self._core = core.new({}, { reports_nodes = true }, function(event)
    if event == "node" then write_node(this[1]) elseif event == "step" then write_step(this[1]) end
  end)
  return self
end

return { dump = dump }
