-- ms.insight.DumpAnalyzer: watchpoints on the files that ms.insight.dump wrote, when the training is over.
local core = require "lunaria.watching"
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local told = require "lunaria.insight.watch_text"
local watchpoints = require "lunaria.insight.conditions"

local fail, describe = arguments.fail, arguments.describe

local Analyzer = class.Object:extend("DumpAnalyzer")
Analyzer._called = "dump analyzer"
Analyzer._parameters = "dump_dir"
Analyzer._doc = [[Looks at what ms.insight.dump wrote: nodes, tensors, and watchpoints on them.

  > folder = os.tmpname() .. "_dump"
  > step = ms.insight.dump(function(x) return ms.ops.log(x) * 2 end, folder)
  > step(ms.ones(2)):tolist()[1], step(ms.zeros(2)):tolist()[1] --> 0.0	-inf
  > analyzer = ms.insight.DumpAnalyzer(folder)
  > #analyzer:get_iterations(), #analyzer:select_nodes("log") --> 2	1
  > hits = analyzer:check_watchpoints { "tensor_overflow" }
  > hits[1].iteration, hits[1].node.name --> 2	log-0]]

local Tensor = {}
Tensor.__index = Tensor
Tensor.__name = "dumped tensor"

--- The elements.
function Tensor:value()
  if not self._file then fail("value", ("%s was not written"):format(self.name)) end
  return ms.io.read_npy(self._file)
end
--- Figures of the elements.
function Tensor:statistics() return core.statistics(self:value()) end
function Tensor:__tostring() return ("%s of step %d"):format(self.name, self.iteration) end

local function names_in(folder) return ms.io.list_folder(folder) or fail("DumpAnalyzer", folder .. " is no folder") end

local function numbers_in(folder)
  local list = {}
  for _, name in ipairs(names_in(folder)) do
    if name:find "^%d+$" then list[#list + 1] = math.tointeger(tonumber(name)) end
  end
  table.sort(list)
  return list
end

-- The folder below `folder` that has folders of steps.
local function steps_folder(folder)
  for _, rank in ipairs(names_in(folder)) do
    if rank:find "^rank_%d+$" then
      local network = names_in(folder .. "/" .. rank)[1]
      if network then return ("%s/%s/%s/0"):format(folder, rank, network) end
    end
  end
  fail("DumpAnalyzer", folder .. " has no folder rank_0: it is not one that ms.insight.dump wrote")
end

--- Called with the folder.
function Analyzer:init(dump_dir)
  if type(dump_dir) ~= "string" then fail("DumpAnalyzer", "dump_dir must be the name of a folder, got " .. describe(dump_dir)) end
  self._folder, self._known = steps_folder(dump_dir), {}
  self._iterations = numbers_in(self._folder)
  if #self._iterations == 0 then fail("DumpAnalyzer", dump_dir .. " holds no steps") end
end

--- The numbers of the steps.
---     > folder = os.tmpname() .. "_dump"
---     > ms.insight.dump(function(x) return ms.ops.exp(x) * 2 end, folder)(ms.ones(2)):sum():item() > 10 --> true
---     > analyzer = ms.insight.DumpAnalyzer(folder)
---     > #analyzer:get_iterations() --> 1
function Analyzer:get_iterations() return table.move(self._iterations, 1, #self._iterations, 1, {}) end
--- The numbers of the processes.
---     > folder = os.tmpname() .. "_dump"
---     > ms.insight.dump(function(x) return ms.ops.exp(x) * 2 end, folder)(ms.ones(2)):sum():item() > 10 --> true
---     > analyzer = ms.insight.DumpAnalyzer(folder)
---     > analyzer:get_ranks()[1] --> 0
function Analyzer:get_ranks() return { 0 } end

-- What nodes.json says of a step.
local function graph_of(self, iteration)
  local graph = self._known[iteration]
  if graph then return graph end
  local path = ("%s/%d/nodes.json"):format(self._folder, iteration)
  local file, problem = io.open(path, "r")
  if not file then fail("DumpAnalyzer", problem) end
  local fine, read = pcall(ms.json.decode, file:read "a")
  file:close()
  if not fine or type(read) ~= "table" or type(read.nodes) ~= "table" then fail("DumpAnalyzer", path .. ": it has no nodes") end
  graph = { nodes = read.nodes, gradients = read.gradients or {}, weights = read.weights or {} }
  for i, node in ipairs(graph.nodes) do
    node.iteration, node.index = iteration, i
    setmetatable(node, { __tostring = function(n) return ("%s (%s)"):format(n.name, n.place) end, __name = "dumped node" })
  end
  self._known[iteration] = graph
  return graph
end

local query_options = { use_regex = "boolean", select_by = function(v) return v == "node_name" or v == "code_stack",
  "\"node_name\" or \"code_stack\"" end, case_sensitive = "boolean", iterations = "table" }

-- Whether a text is what is looked for: a part of it, or a match of a Lua pattern.
local function matcher(where, query, options)
  if type(query) ~= "string" then fail(where, "a text is expected, got " .. describe(query)) end
  local sensitive = options.case_sensitive ~= false
  if not sensitive then query = query:lower() end
  if options.use_regex then
    local fine, problem = pcall(string.find, "", query)
    if not fine then fail(where, ("the pattern '%s' is damaged: %s"):format(query, problem)) end
  end
  return function(text) return (sensitive and text or text:lower()):find(query, 1, not options.use_regex) ~= nil end
end

local function iterations_of(self, options) return options.iterations or self._iterations end

--- The nodes whose name contains the text, of the first of the steps that has them. Options: use_regex (the text is a Lua pattern),
--- select_by ("node_name", or "code_stack": the line), case_sensitive (true), iterations (a list; by default all).
---     > folder = os.tmpname() .. "_dump"
---     > ms.insight.dump(function(x) return ms.ops.exp(x) * 2 end, folder)(ms.ones(2)):sum():item() > 10 --> true
---     > analyzer = ms.insight.DumpAnalyzer(folder)
---     > #analyzer:select_nodes "exp", analyzer:select_nodes("^m%a+", { use_regex = true })[1].name --> 1	mul-0
function Analyzer:select_nodes(query, options)
  options = arguments.options("select_nodes", options, query_options, "{ use_regex = true }")
  local fits, list, seen = matcher("select_nodes", query, options), {}, {}
  for _, iteration in ipairs(iterations_of(self, options)) do
    for _, node in ipairs(graph_of(self, iteration).nodes) do
      if not seen[node.name] and fits(options.select_by == "code_stack" and node.place or node.name) then
        seen[node.name] = true
        list[#list + 1] = node
      end
    end
  end
  return list
end

local function tensor_of(self, node, slot)
  local file = node.files and node.files[slot + 1]
  return setmetatable({ name = slot == 0 and node.name or ("%s:%d"):format(node.name, slot), node = node, slot = slot,
    iteration = node.iteration, _file = file and ("%s/%d/%s"):format(self._folder, node.iteration, file) }, Tensor)
end

--- The results of such nodes that were written, in all steps: value() and statistics() read them. Options as select_nodes.
---     > folder = os.tmpname() .. "_dump"
---     > ms.insight.dump(function(x) return ms.ops.exp(x) * 2 end, folder)(ms.ones(2)):sum():item() > 10 --> true
---     > analyzer = ms.insight.DumpAnalyzer(folder)
---     > analyzer:select_tensors("mul")[1]:statistics().count --> 2
function Analyzer:select_tensors(query, options)
  options = arguments.options("select_tensors", options, query_options, "{ iterations = { 1 } }")
  local fits, list = matcher("select_tensors", query, options), {}
  for _, iteration in ipairs(iterations_of(self, options)) do
    for _, node in ipairs(graph_of(self, iteration).nodes) do
      if node.files and fits(options.select_by == "code_stack" and node.place or node.name) then
        for slot = 0, #node.files - 1 do list[#list + 1] = tensor_of(self, node, slot) end
      end
    end
  end
  return list
end

local function check_node(where, node)
  if type(node) ~= "table" or not node.operands then fail(where, "a node is expected, as select_nodes gives, got " .. describe(node)) end
end

--- The nodes that a node's operands come from.
---     > folder = os.tmpname() .. "_dump"
---     > ms.insight.dump(function(x) return ms.ops.exp(x) * 2 end, folder)(ms.ones(2)):sum():item() > 10 --> true
---     > analyzer = ms.insight.DumpAnalyzer(folder)
---     > analyzer:get_input_nodes(analyzer:select_nodes("mul")[1])[1].name --> exp-0
function Analyzer:get_input_nodes(node)
  check_node("get_input_nodes", node)
  local graph, list, seen = graph_of(self, node.iteration), {}, {}
  for _, operand in ipairs(node.operands) do
    local before = operand.node > 0 and graph.nodes[operand.node]
    if before and not seen[before] then
      seen[before] = true
      list[#list + 1] = before
    end
  end
  return list
end

--- The nodes that take a result of the node.
---     > folder = os.tmpname() .. "_dump"
---     > ms.insight.dump(function(x) return ms.ops.exp(x) * 2 end, folder)(ms.ones(2)):sum():item() > 10 --> true
---     > analyzer = ms.insight.DumpAnalyzer(folder)
---     > analyzer:get_output_nodes(analyzer:select_nodes("exp")[1])[1].name --> mul-0
function Analyzer:get_output_nodes(node)
  check_node("get_output_nodes", node)
  local list = {}
  for _, other in ipairs(graph_of(self, node.iteration).nodes) do
    for _, operand in ipairs(other.operands) do
      if operand.node == node.index then
        list[#list + 1] = other
        break
      end
    end
  end
  return list
end

--- All nodes that depend on a tensor, in the order in which they ran.
---     > folder = os.tmpname() .. "_dump"
---     > ms.insight.dump(function(x) return ms.ops.exp(x) * 2 end, folder)(ms.ones(2)):sum():item() > 10 --> true
---     > analyzer = ms.insight.DumpAnalyzer(folder)
---     > analyzer:list_affected_nodes(analyzer:select_tensors("exp")[1])[1].name --> mul-0
function Analyzer:list_affected_nodes(tensor)
  if getmetatable(tensor) ~= Tensor then
    fail("list_affected_nodes", "a tensor is expected, as select_tensors gives, got " .. describe(tensor))
  end
  local reached, list = { [tensor.node.index] = true }, {}
  for _, node in ipairs(graph_of(self, tensor.iteration).nodes) do
    for _, operand in ipairs(node.operands) do
      local direct = operand.node == tensor.node.index
      if reached[operand.node] and (not direct or operand.result == tensor.slot) then
        reached[node.index] = true
        list[#list + 1] = node
        break
      end
    end
  end
  return list
end

-- The tensors of a step that a watchpoint is about: { name, node, value function, value function of the step before }.
local function subjects(self, iteration, before, point)
  local graph, list = graph_of(self, iteration), {}
  local function path(step, file) return ("%s/%d/%s"):format(self._folder, step, file) end
  if point.target == "weight" then
    for _, weight in ipairs(graph.weights) do
      local earlier
      for _, other in ipairs(before and graph_of(self, before).weights or {}) do
        if other.name == weight.name then earlier = path(before, other.file) end
      end
      list[#list + 1] = { name = weight.name, file = path(iteration, weight.file), earlier = earlier }
    end
  elseif point.target == "gradient" then
    for _, gradient in ipairs(graph.gradients) do
      local node = graph.nodes[gradient.node]
      local file = node and node.files and node.files[gradient.result + 1]
      if file then list[#list + 1] = { name = gradient.parameter, node = node, file = path(iteration, file) } end
    end
  else
    local wanted = {}
    for _, name in ipairs(point.operators or {}) do wanted[name] = true end
    for _, node in ipairs(graph.nodes) do
      if not point.operators or wanted[node.operator] then
        for i, file in ipairs(node.files or {}) do
          list[#list + 1] = { name = node.name .. (i > 1 and ":" .. i - 1 or ""), node = node, file = path(iteration, file) }
        end
      end
    end
  end
  return list
end

local function is_among(nodes, subject)
  if not nodes then return true end
  for _, text in ipairs(nodes) do
    if told.begins_with_part(subject.name, text) or subject.node and told.is_called(subject.node, text) then return true end
  end
  return false
end

--- Asks points, watchpoints as ms.insight.watch takes them, of the steps; the hits in their order: condition, id, iteration, name,
--- node, value and statistics of each. Options: iterations.
---     > folder = os.tmpname() .. "_dump"
---     > ms.insight.dump(function(x) return ms.ops.exp(x) * 2 end, folder)(ms.ones(2)):sum():item() > 10 --> true
---     > analyzer = ms.insight.DumpAnalyzer(folder)
---     > #analyzer:check_watchpoints { "tensor_overflow", { "tensor_too_large", max_gt = 5 } } --> 1
function Analyzer:check_watchpoints(points, options)
  if type(points) ~= "table" then fail("check_watchpoints", "a list of watchpoints is expected, got " .. describe(points)) end
  options = arguments.options("check_watchpoints", options, { iterations = "table" }, "{ iterations = { 1 } }")
  local list, checked = {}, {}
  for i, point in ipairs(points) do checked[i] = watchpoints.watchpoint("check_watchpoints", point) end
  local before
  for _, iteration in ipairs(iterations_of(self, options)) do
    for _, point in ipairs(checked) do
      for _, subject in ipairs(point.at_start and before and {} or subjects(self, iteration, before, point)) do
        if is_among(point.nodes, subject) then
          local tensor = ms.io.read_npy(subject.file)
          local is_vector = point.only_matrices and not point.nodes and tensor.ndim < 2
          local question, value
          if not is_vector then question, value = core.ask(point, tensor, subject.earlier and ms.io.read_npy(subject.earlier)) end
          if question then
            local statistics = core.statistics(tensor)
            list[#list + 1] = setmetatable({ condition = point.condition, id = point.id, iteration = iteration, name = subject.name,
              node = subject.node, place = subject.node and subject.node.place or "", quantity = point.questions[question][1],
              value = value, statistics = statistics }, {
              __name = "watchpoint hit",
              __tostring = function(hit)
                return ("step %d: %s%s: %s, %s"):format(hit.iteration, hit.condition, told.at(hit.node), hit.name,
                  told.figures(hit.statistics))
              end,
            })
          end
        end
      end
    end
    before = iteration
  end
  return list
end

local columns = { "count", "min", "max", "mean", "abs_mean", "zeros", "nan", "positive_infinity", "negative_infinity" }

--- Figures of tensors, as select_tensors gives them: a list of tables, and with out_path a file of comma-separated values.
---     > folder = os.tmpname() .. "_dump"
---     > ms.insight.dump(function(x) return ms.ops.exp(x) * 2 end, folder)(ms.ones(2)):sum():item() > 10 --> true
---     > analyzer = ms.insight.DumpAnalyzer(folder)
---     > analyzer:summary_statistics(analyzer:select_tensors("exp"))[1].zeros --> 0
function Analyzer:summary_statistics(tensors, out_path)
  if type(tensors) ~= "table" then fail("summary_statistics", "a list of tensors is expected, got " .. describe(tensors)) end
  local list, lines = {}, { "name,iteration,slot," .. table.concat(columns, ",") }
  for i, tensor in ipairs(tensors) do
    if getmetatable(tensor) ~= Tensor then fail("summary_statistics", ("tensors[%d] is %s"):format(i, describe(tensor))) end
    local row = tensor:statistics()
    row.name, row.iteration, row.slot = tensor.node.name, tensor.iteration, tensor.slot
    list[i] = row
    local cells = { row.name, row.iteration, row.slot }
    for k, column in ipairs(columns) do cells[k + 3] = tostring(row[column]) end
    lines[#lines + 1] = table.concat(cells, ",")
  end
  if out_path then
    local file, problem = io.open(out_path, "w")
    if not file then fail("summary_statistics", problem) end
    file:write(table.concat(lines, "\n"), "\n")
    file:close()
  end
  return list
end

return { DumpAnalyzer = Analyzer }
