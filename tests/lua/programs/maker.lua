-- The state of the generator of random programs while it writes one: a stream of random numbers of its own (the same seed
-- gives the same program everywhere), the variables in scope with their types, and how much work the program does so far.
--
-- Types of variables: "n" a differentiable number (in tensor programs a float64 tensor of rank 0), "v" a float64 tensor of
-- 3 elements, "i" a small integer, "s" a string; and tables that describe the others:
--   { kind = "record", fields = { name = type } }    { kind = "list", length = least number of elements, all "n" }
--   { kind = "function", params = { types }, results = { types }, cost = calls that it makes, writer = it assigns variables
--     from outside }
--   { kind = "object", class = class }
-- A program is a block: a list of nodes, each a list of lines and blocks.
local Maker = {}
Maker.__index = Maker

-- options: tensors (the inputs are tensors), nested (the program itself asks for gradients), without (a set of kinds of
-- statements that do not occur).
function Maker.new(seed, options)
  local self = setmetatable({}, Maker)
  -- Neighbouring seeds must not give one stream at neighbouring places.
  self.state = seed
  self.state = self:bits() * 0x2545F4914F6CDD1D
  self.tensors, self.nested = options.tensors, options.nested
  self.without = options.without or {}
  self.variables, self.serial = {}, 0
  self.cost, self.spent, self.depth, self.functions = 1, 1, 0, 0
  self.loops = {}
  return self
end

-- SplitMix64.
function Maker:bits()
  self.state = self.state + 0x9E3779B97F4A7C15
  local z = self.state
  z = (z ~ (z >> 30)) * 0xBF58476D1CE4E5B9
  z = (z ~ (z >> 27)) * 0x94D049BB133111EB
  return (z ~ (z >> 31)) >> 1
end

function Maker:between(low, high) return low + self:bits() % (high - low + 1) end
function Maker:chance(p) return self:bits() % 1000 < p * 1000 end
function Maker:pick(list) return list[self:between(1, #list)] end

-- One of the values of { { weight, value } ... }.
function Maker:weighted(list)
  local total = 0
  for _, entry in ipairs(list) do total = total + entry[1] end
  local at = self:between(1, total)
  for _, entry in ipairs(list) do
    at = at - entry[1]
    if at <= 0 then return entry[2] end
  end
end

-- A number that is no round one, so that the program's branches and kinks lie elsewhere.
function Maker:constant()
  return ("%.3f"):format((self:between(130, 1870) + (self:bits() % 7) / 10) / 1000)
end

function Maker:fresh(prefix)
  self.serial = self.serial + 1
  return prefix .. self.serial
end

function Maker:declare(name, type, mutable)
  self.variables[#self.variables + 1] = { name = name, type = type, mutable = mutable, level = self.functions }
  return name
end

-- A variable of a simple type, or of a kind; nil when none is in scope.
function Maker:variable(type, mutable)
  local found, hidden = {}, {}
  for at = #self.variables, 1, -1 do
    local variable = self.variables[at]
    local kind = variable.type
    if not hidden[variable.name] and (kind == type or kind.kind == type) and (variable.mutable or not mutable) then
      found[#found + 1] = variable
    end
    hidden[variable.name] = true
  end
  -- Newer ones more often: what is written should be read.
  if #found == 0 then return nil end
  return found[math.min(self:between(1, #found), self:between(1, #found))]
end

-- Runs f with what it declares out of scope again.
function Maker:scope(f)
  local count = #self.variables
  local result = f()
  for i = #self.variables, count + 1, -1 do self.variables[i] = nil end
  return result
end

-- The same for what runs `times` times.
function Maker:repeated(times, f)
  local before = self.cost
  self.cost = before * times
  local result = self:scope(f)
  self.cost = before
  return result
end

-- The body of a function with that many results: loops around it are out of reach. Gives the body, what a call costs, and
-- whether it may assign variables from outside.
function Maker:body(f, results)
  local loops, cost, spent, before, writer = self.loops, self.cost, self.spent, self.results, self.writer
  self.loops, self.functions, self.cost, self.spent, self.results = {}, self.functions + 1, 1, 1, results
  self.writer = false
  local result = self:scope(f)
  local calls, writes = self.spent, self.writer
  self.loops, self.functions, self.cost, self.spent, self.results = loops, self.functions - 1, cost, spent, before
  self.writer = writer or writes
  return result, calls, writes
end

-- A variable to assign, or nil.
function Maker:target(type)
  local variable = self:variable(type, true)
  if variable and variable.level < self.functions then self.writer = true end
  return variable
end

-- Whether the program may do `cost` more at this point; if so it is accounted for.
function Maker:affords(cost)
  if self.cost * cost > 60 or self.spent + self.cost * cost > 250 then return false end
  self.spent = self.spent + self.cost * cost
  return true
end

local function render_block(block, indent, lines)
  for _, node in ipairs(block) do
    for _, part in ipairs(node) do
      if type(part) == "table" then
        render_block(part, indent .. "  ", lines)
      else
        lines[#lines + 1] = indent .. part
      end
    end
  end
end

function Maker.render(program)
  local lines = {}
  render_block(program, "", lines)
  return table.concat(lines, "\n") .. "\n"
end

return Maker
