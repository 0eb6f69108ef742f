-- A network as a table: its layers with their settings, the shapes that come out of them and how many numbers they hold.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local predicting = require "lunaria.nn.predicting"
local report = require "lunaria.rich.report"

local Summary = {}
Summary.__index = Summary
Summary.__name = "summary"

local function grouped(n)
  local text = tostring(n)
  repeat
    local more
    text, more = text:gsub("^(%d+)(%d%d%d)", "%1,%2")
  until more == 0
  return text
end

local function shape_text(value)
  if ms.is_tensor(value) then
    return tostring(value.shape)
  elseif type(value) == "table" and #value > 0 then
    local parts = {}
    for i, item in ipairs(value) do
      parts[i] = shape_text(item)
    end
    return "{" .. table.concat(parts, ", ") .. "}"
  end
  return type(value) == "number" and "number" or ""
end

-- Runs the network with every cell's construct noting the shape of what it gives.
local function output_shapes(net, inputs)
  local shapes, replaced = {}, {}
  for _, cell in net:cells_and_names() do
    local construct = cell.construct
    replaced[cell] = rawget(cell, "construct") or false
    rawset(cell, "construct", function(self, ...)
      local results = table.pack(construct(self, ...))
      local parts = {}
      for i = 1, results.n do
        parts[i] = shape_text(results[i])
      end
      shapes[cell] = table.concat(parts, ", ")
      return table.unpack(results, 1, results.n)
    end)
  end
  local restore = predicting(net)
  local ok, message = pcall(net, table.unpack(inputs, 1, inputs.n))
  restore()
  for cell, before in pairs(replaced) do
    rawset(cell, "construct", before or nil)
  end
  if not ok then
    error(message, 0)
  end
  return shapes
end

local function rows_of(net, shapes)
  local rows, seen, trained, frozen = {}, {}, 0, 0
  for path, cell in net:cells_and_names() do
    local own, parts = 0, 0
    for _, part in ipairs(cell:cells()) do
      parts = parts + (part and 1 or 0)
    end
    for name, p in cell:parameters_and_names() do
      if not name:find(".", 1, true) and not seen[p] then
        seen[p] = true
        own = own + p.size
        trained = trained + (p.requires_grad and p.size or 0)
        frozen = frozen + (p.requires_grad and 0 or p.size)
      end
    end
    local class = getmetatable(cell)._name
    local extra = cell:extend_repr()
    rows[#rows + 1] = {
      path == "" and "(all)" or path, class .. (extra ~= "" and " " .. extra or ""), shapes and shapes[cell] or "",
      own > 0 and grouped(own) or "",
    }
  end
  return rows, trained, frozen
end

function Summary:_totals()
  local text = ("%s parameters"):format(grouped(self.trained + self.frozen))
  if self.frozen > 0 then
    text = text .. (", %s of them trained"):format(grouped(self.trained))
  end
  return text
end

function Summary:_table()
  local shown = self.shapes and { 1, 2, 3, 4 } or { 1, 2, 4 }
  local function pick(row)
    local cells = {}
    for i, c in ipairs(shown) do
      cells[i] = row[c]
    end
    return cells
  end
  local rows = {}
  for i, row in ipairs(self.rows) do
    rows[i] = pick(row)
  end
  return rows, pick { "name", "layer", "output", "parameters" }, pick { "left", "left", "left", "right" }
end

report.shows(Summary)

--- The layers of a network in a table, with their numbers of parameters; given example inputs, the network is run with them
--- (in evaluation mode) and the shapes that come out of each layer stand there too.
---     > ms.summary(ms.nn.SequentialCell(ms.nn.Dense(4, 3), ms.nn.ReLU()), ms.ops.ones({ 2, 4 }))
---     name   layer                                                     output  parameters
---     (all)  SequentialCell                                            (2, 3)
---     0      Dense input_channels=4, output_channels=3, has_bias=true  (2, 3)          15
---     1      ReLU                                                      (2, 3)
---     15 parameters
local function summary(net, ...)
  if not require("lunaria.nn.cell").is_cell(net) then
    arguments.fail("summary", "a network (nn.Cell) is expected, got " .. arguments.describe(net))
  end
  local shapes = select("#", ...) > 0 and output_shapes(net, table.pack(...)) or nil
  local rows, trained, frozen = rows_of(net, shapes)
  return setmetatable({ rows = rows, shapes = shapes, trained = trained, frozen = frozen }, Summary)
end

return summary
