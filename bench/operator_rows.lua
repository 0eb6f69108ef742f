-- The rows of bench/operators.txt as workloads: the table is read here and in bench/operator_rows.py, so that both sides
-- compute the same.
local ms = require "lunaria"
local ops = ms.ops

local dtypes = {
  f64 = ms.float64, f32 = ms.float32, bf16 = ms.bfloat16, f16 = ms.float16, i8 = ms.int8, i32 = ms.int32, i64 = ms.int64,
  bool = ms.bool_, c64 = ms.complex64,
}
local sides = { ["4"] = 2, ["1K"] = 32, ["64K"] = 256, ["4M"] = 2048 }

local function random(dtype, shape)
  if dtype == "bool" then return ops.randint(0, 2, shape):astype(ms.bool_) end
  if dtype:sub(1, 1) == "i" then return ops.randint(-9, 9, shape):astype(dtypes[dtype]) end
  if dtype == "c64" then return ops.complex(ops.randn(shape), ops.randn(shape)) end
  return ops.randn(shape):astype(dtypes[dtype])
end

local function words(text)
  local list = {}
  for word in text:gmatch("%S+") do list[#list + 1] = word end
  return list
end

-- The names in an expression of kind `element`.
local function elements(dtype, layout, side)
  local x, y, m = random(dtype, { side, side }), random(dtype, { side, side }), random("bool", { side, side })
  if layout == "transposed" then
    x, y, m = x:t(), y:t(), m:t()
  elseif layout == "step2" then
    x, y = random(dtype, { side, 2 * side })["::,::2"], random(dtype, { side, 2 * side })["::,::2"]
  elseif layout == "row" then
    y = random(dtype, { 1, side })
  elseif layout == "column" then
    y = random(dtype, { side, 1 })
  elseif layout == "middle" then
    x, y = random(dtype, { side // 8, 8, side // 8, 8 }), random(dtype, { 1, 8, 1, 8 })
  end
  return { x = x, y = y, m = m, w = dtypes[dtype] and dtype ~= "bool" and ops.full({ 1 }, 0.25):astype(dtypes[dtype]) }
end

-- The names in an expression of kind `reduce`.
local function reduced(dtype, axis, side)
  local size = side * side
  if axis == "middle" then return { x = random(dtype, { side // 8, 16, side // 2 }), a = 1 } end
  local rows, n = size // 8, 8
  if axis:find("long") then rows, n = 8, size // 8 end
  if axis:sub(-2) == "_t" then return { x = random(dtype, { n, rows }):t(), a = 1 } end
  return { x = random(dtype, { rows, n }), a = 1 }
end

-- The names in an expression of kind `copy`.
local function copied(dtype, text)
  local shape = {}
  for n in text:gmatch("%d+") do shape[#shape + 1] = math.tointeger(n) end
  return { x = random(dtype, shape), y = random(dtype, shape), i = ops.randint(0, shape[1], { shape[1] }):astype(ms.int64) }
end

local makers = { element = elements, reduce = reduced, copy = copied }

-- Calls add(name, setup) for every row; a setup is as harness.workload takes it.
return function(add)
  local graph = os.getenv("LUNARIA_BENCH_MODE") == "graph"
  for line in io.lines("bench/operators.txt") do
    local fields = {}
    for field in (line .. "|"):gmatch("%s*(.-)%s*|") do fields[#fields + 1] = field end
    local kind, name, expression, make = fields[1], fields[2], fields[3], makers[fields[1]]
    local takes = make and load(("local ops, ms = ... return function(x, y, m, w, a, i) return %s end"):format(expression))
    for _, dtype in ipairs(make and words(fields[7]) or {}) do
      for _, layout in ipairs(kind == "copy" and { fields[8] } or words(fields[8])) do
        for _, size in ipairs(kind == "copy" and { "" } or words(fields[9])) do
          local label = kind == "copy" and ("%s_%s"):format(name, dtype) or ("%s_%s_%s_%s"):format(name, dtype, layout, size)
          add(label, function()
            local t = make(dtype, layout, sides[size])
            local f = takes(ops, ms)
            if graph then f = ms.jit(f) end
            local x, y, m, w, a, i = t.x, t.y, t.m, t.w, t.a, t.i
            return function(n) for _ = 1, n do f(x, y, m, w, a, i) end end
          end)
        end
      end
    end
  end
end
