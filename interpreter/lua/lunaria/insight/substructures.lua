-- ms.insight.substructures: the equal parts of a graph (core/insight).
local core = require "lunaria.insight_core"
local arguments = require "lunaria.nn.arguments"
local given = require "lunaria.insight.given"

local fail, check = arguments.fail, arguments.check

local Found = {}
Found.__index = Found
Found.__name = "substructures"

function Found:__tostring()
  local lines = { ("%d substructures in %d nodes, equal by %s"):format(#self, self.nodes, self.by) }
  for key, s in ipairs(self) do
    local inside = #s.inside > 0 and ", inside: " .. table.concat(s.inside, " ") or ""
    lines[#lines + 1] = ("  %d: %d x %d nodes, %s%s"):format(key, #s.instances, #s.instances[1][1], s.label, inside)
  end
  return table.concat(lines, "\n")
end

--- The equal parts of a graph, by falling gain. graph: the path of a file (MindSpore's .pb, MindIR, ONNX, events), the text of a stage
--- (f:lower(x):ir("step")), or what ms.ir gives.
--- by: "operators" (types and places of inputs are equal), or "exact" (attributes, dtypes and shapes too). Each part has `instances`:
--- {nodes, edges} by name, in corresponding order; `gain`, by how many nodes a picture shrinks that shows it once; `label`; `inside`, the
--- parts that are in it; `types` of its operators; `inputs` and `outputs`, the places (of inputs also which) that are connected to others;
--- and `differences`, the attributes that have several values: `place`, `attribute` and the `values` of each instance. `json` is
--- {"1": [instances], ...}.
---     > f = function(x) for i = 1, 3 do x = ms.ops.relu(ms.ops.exp(ms.ops.tanh(ms.ops.sin(x)))) end return x end
---     > ms.save_mindir(f, "/tmp/lunaria_help_insight.mindir", ms.ones(2))
---     > #ms.insight.substructures("/tmp/lunaria_help_insight.mindir")[1].instances --> 3
---     > os.remove("/tmp/lunaria_help_insight.mindir") --> true
local function substructures(graph, by)
  if type(by) == "table" then
    for name in pairs(by) do
      if name ~= "by" then fail("substructures", ("there is no option '%s'; there is: by"):format(tostring(name))) end
    end
    by = by.by
  end
  by = check.choice("substructures", "by", by == nil and "operators" or by, { "operators", "exact" })
  local text, is_text = given("substructures", graph)
  local found, json, nodes = core.substructures(text, by == "exact", is_text)
  found.json, found.nodes, found.by = json, nodes, by
  return setmetatable(found, Found)
end

return { substructures = substructures }
