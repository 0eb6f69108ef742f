-- Cells that hold cells: in a row, in a list, by name. Lists count from 1, as Lua's do; the names of their parts count
-- from 0, as in MindSpore's checkpoints.
local arguments = require "lunaria.nn.arguments"
local cells = require "lunaria.nn.cell"

local fail, describe = arguments.fail, arguments.describe
local Cell, is_cell = cells.Cell, cells.is_cell

-- The cells of a constructor's call: one after the other or in one table.
local function cells_of(where, ...)
  local list = { ... }
  if select("#", ...) == 1 and type(list[1]) == "table" and not is_cell(list[1]) then
    list = list[1]
    for key in pairs(list) do
      if math.type(key) == nil then
        fail(where, ("cells come in order, and the table has the field %s"):format(tostring(key)), "nn.CellDict has cells by name")
      end
    end
  end
  for i = 1, #list do
    if not cells.part_of(list[i]) then
      fail(where, ("argument %d must be a cell, got %s"):format(i, describe(list[i])))
    end
  end
  return list
end

local CellList = Cell:extend("CellList")
CellList._doc = [[A list of cells: list[1] is the first, #list their number; append, extend and insert add some.
  > #ms.nn.CellList({ ms.nn.ReLU(), ms.nn.Tanh() }):cells() --> 2]]
CellList._parameters = "cell, ..."

function CellList:init(...)
  for i, cell in ipairs(cells_of(getmetatable(self)._name, ...)) do
    self[i] = cell
  end
end

--- Adds a cell at the end. Gives the list back.
---     > #ms.nn.CellList({ ms.nn.ReLU() }):append(ms.nn.Tanh()):cells() --> 2
function CellList:append(cell)
  self[#self + 1] = cells_of("append", cell)[1] or fail("append", "a cell is expected, got " .. describe(cell))
  return self
end

--- Adds all cells of a table at the end. Gives the list back.
function CellList:extend(list)
  if rawget(self, "_is_class") then
    return Cell.extend(self, list)
  end
  for _, cell in ipairs(cells_of("extend", list)) do
    self[#self + 1] = cell
  end
  return self
end

--- Puts a cell before the one at a position from 1. Gives the list back.
---     > ms.nn.CellList({ ms.nn.ReLU() }):insert(1, ms.nn.Tanh()):cells()[1] --> Tanh<>
function CellList:insert(position, cell)
  local count = #self
  if math.type(position) ~= "integer" or position < 1 or position > count + 1 then
    fail("insert", ("position must be in 1 .. %d, got %s"):format(count + 1, describe(position)))
  end
  cells_of("insert", cell)
  for i = count, position, -1 do
    self[i + 1] = self[i]
  end
  self[position] = cell
  return self
end

function CellList:construct()
  fail("CellList", "is a list and computes nothing itself", "call its cells: for i = 1, #list do x = list[i](x) end")
end

local SequentialCell = CellList:extend("SequentialCell")
SequentialCell._doc = [[Cells one after the other: each gets what the one before it gave.
  > ms.nn.SequentialCell(ms.nn.Dense(2, 8), ms.nn.ReLU(), ms.nn.Dense(8, 3))(ms.ones { 4, 2 }).shape --> (4, 3)]]

function SequentialCell:construct(x)
  for i = 1, #self do
    x = self[i](x)
  end
  return x
end

local CellDict = Cell:extend("CellDict")
CellDict._doc = [[Cells by name: nn.CellDict{ relu = nn.ReLU() }, then cells.relu(x).
  > ms.nn.CellDict({ act = ms.nn.ReLU() }).act --> ReLU<>]]
CellDict._parameters = "cells"

function CellDict:init(dictionary)
  if dictionary ~= nil and type(dictionary) ~= "table" then
    fail("CellDict", "a table of cells is expected, got " .. describe(dictionary))
  end
  local names = {}
  for name, cell in pairs(dictionary or {}) do
    if type(name) ~= "string" or not is_cell(cell) then
      fail("CellDict", ("field %s must be a cell with a name, got %s"):format(tostring(name), describe(cell)))
    end
    names[#names + 1] = name
  end
  -- A table has no order of its own; that of the names is the same in every run.
  table.sort(names)
  for _, name in ipairs(names) do
    self:insert_child_to_cell(name, dictionary[name])
  end
end

return { CellList = CellList, SequentialCell = SequentialCell, CellDict = CellDict }
