-- Loads and runs ONNX models of one node whose attributes and inputs are hostile, every operator that the loader knows:
--   lunaria onnx_nodes.lua FOLDER SEED FIRST LAST MODE PROGRESS
-- as worker.lua does with calls. What such a model asks for is a tensor or an error that names the model or the node; an error
-- of Lua's library, or of the loader's own files, is a failure.
local folder, seed, first, last, mode, progress = table.unpack(arg)
seed, first, last = math.tointeger(seed), math.tointeger(first), math.tointeger(last)
package.path = folder .. "/?.lua;" .. package.path
local ms = require "lunaria"
require "lunaria.onnx.load"
local files = require "lunaria.onnx_files"
local define = require "lunaria.onnx.define"

local random, randomseed = math.random, math.randomseed

local names = {}
for name in pairs(define.operators) do
  -- Graphs as attributes are written by no function of ours.
  local plain = name:match "^:(.+)$"
  if plain and not ({ If = true, Loop = true, Scan = true, SequenceMap = true })[plain] then names[#names + 1] = plain end
end
table.sort(names)

local function any(list) return list[random(#list)] end

local SMALL = { 0, 1, 2, 3, -1, -2, 4, 7 }
local HUGE = { 1 << 38, -(1 << 38), 1 << 31, (1 << 31) - 1, 1 << 62, math.maxinteger, math.mininteger, 1 << 20, -(1 << 62), 100000 }
local FLOATS = { 0.0, 1.0, -1.0, 0.5, 2.0, 1e30, -1e30, 0 / 0, 1 / 0, 1e-30, 2.0 ^ 38 }
local WORDS = {
  "constant", "reflect", "edge", "wrap", "linear", "nearest", "cubic", "sum", "mean", "none", "SAME_UPPER", "SAME_LOWER", "VALID",
  "NOTSET", "avg", "max", "add", "mul", "DCR", "CRD", "TF", "IDF", "TFIDF", "forward", "reverse", "bidirectional", "border", "zeros",
  "half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize", "half_pixel_symmetric", "floor", "ceil", "",
}

local function integer() return random(3) == 1 and any(HUGE) or any(SMALL) end
local function integers(n)
  local list = {}
  for i = 1, n or random(0, 4) do list[i] = integer() end
  return list
end

local function value_of(kind)
  if kind == "integer" then return integer() end
  if kind == "number" then return any(FLOATS) end
  if kind == "string" then return any(WORDS) end
  if kind == "integers" then return integers() end
  if kind == "numbers" then
    local list = {}
    for i = 1, random(0, 4) do list[i] = any(FLOATS) end
    return list
  end
  if kind == "tensor" then return ms.tensor(integers(random(3)), ms.int64) end
  return nil
end

local SHAPES = {
  {}, { 0 }, { 1 }, { 2 }, { 3 }, { 4 }, { 2, 3 }, { 1, 4 }, { 4, 4 }, { 1, 1, 4 }, { 1, 2, 8 }, { 1, 1, 4, 4 }, { 1, 4, 4, 4 },
  { 2, 4, 3, 3 },
  { 1, 1, 3, 3, 3 }, { 2, 0, 3 }, { 8 }, { 1, 8, 2 },
}
local DTYPES = { ms.float32, ms.float32, ms.float32, ms.float64, ms.float16, ms.int32, ms.int8, ms.uint8, ms.bool }

local function input()
  local kind = random(6)
  if kind <= 2 then return ms.tensor(integers(random(4)), ms.int64) end
  if kind == 3 then return ms.tensor(integer(), ms.int64) end
  local x = ms.ones(any(SHAPES))
  if random(3) == 1 then x = x * any { 2.0, 0.5, -1.0, 1e30, 2.0 ^ 38 } end
  return x:astype(any(DTYPES))
end

local function model_of(number)
  randomseed(seed, number)
  local op = names[(number - 1) % #names + 1]
  local row = define.operators[":" .. op]
  local node = { op = op, name = "the node", inputs = {}, outputs = {}, attributes = {} }
  local known = {}
  for name in pairs(row.attributes) do known[#known + 1] = name end
  table.sort(known)
  for _, name in ipairs(known) do
    local attribute = row.attributes[name]
    local value = (attribute.required or random(2) == 1) and value_of(attribute.kind)
    if value then node.attributes[#node.attributes + 1] = { name = name, kind = attribute.kind, value = value } end
  end
  local model = { opset = any { 7, 9, 11, 13, 18, 21, 24 }, name = "main", nodes = { node }, initializers = {}, inputs = {}, outputs = {} }
  local given = {}
  for i = 1, random(row.least, math.max(row.least, math.min(row.most, row.least + 3, 8))) do
    local name, value = "x" .. i, input()
    node.inputs[i] = name
    if random(2) == 1 then
      model.initializers[#model.initializers + 1] = { name = name, value = value }
    else
      given[#given + 1] = value
      local shape = {}
      for k = 1, value.ndim do shape[k] = value.shape[k] end
      model.inputs[#model.inputs + 1] = { name = name, dtype = value.dtype, shape = shape }
    end
  end
  for i = 1, random(3) == 1 and 2 or 1 do
    node.outputs[i] = "y" .. i
    model.outputs[i] = { name = "y" .. i, dtype = ms.float32, shape = { 1 } }
  end
  return model, given
end

local function show(model, given)
  local node = model.nodes[1]
  print(("%s, operators of version %d"):format(node.op, model.opset))
  for _, a in ipairs(node.attributes) do
    print(("  %s = %s"):format(a.name, type(a.value) == "table" and "{ " .. table.concat(a.value, ", ") .. " }" or tostring(a.value)))
  end
  for _, entry in ipairs(model.initializers) do print("  fixed", entry.name, entry.value) end
  for i, entry in ipairs(model.inputs) do print("  given", entry.name, given[i]) end
end

local function run(number)
  local model, given = model_of(number)
  files.write("model.onnx", model)
  local message
  local ok, f = pcall(ms.load, "model.onnx")
  if not ok then
    message = f
  else
    if mode == "graph" then f = ms.jit(f) end
    ok, message = pcall(f, table.unpack(given))
  end
  if not ok and (type(message) ~= "string" or message:find "lunaria:lunaria/"
    or message:find "std::" or not message:find "model") then
    print(("MESSAGE %d %s: %s"):format(number, model.nodes[1].op, tostring(message):sub(1, 400):gsub("\n", " ")))
  end
end

if mode:find "^show" then
  show(model_of(first))
  os.exit(0)
end
require "numbered"(progress, first, last, run)
