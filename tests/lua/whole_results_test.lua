-- Every operator writes all of its results, whatever dtype it is given: what memory held before never shows. A third of the lists of
-- arguments a day.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local today = require "support.today"
local ms = require "lunaria"
local ops = ms.ops

-- Operators that give memory as it is, and one that writes to the screen.
local LEFT_OUT = { empty = true, empty_like = true, new_empty = true, print_ = true }

-- Leaves blocks of many sizes behind that hold nothing but the byte, for the results to come. They are young: the collection
-- of young objects, which costs a hundredth of a whole one, frees them.
local function soil(byte)
  do
    local blocks = {}
    for _, size in ipairs { 1, 4, 8, 16, 32, 64, 128, 256, 512 } do
      for _ = 1, 4 do blocks[#blocks + 1] = ops.full({ size }, byte, ms.uint8) end
    end
  end
  collectgarbage "step"
end

local function show(v, out)
  if ms.is_tensor(v) then
    if v.dtype == ms.complex64 or v.dtype == ms.complex128 then v = ops.view_as_real(v) end
    out[#out + 1] = tostring(v.dtype) .. tostring(v.shape)
    for _, x in ipairs(v:reshape(-1):tolist()) do out[#out + 1] = tostring(x) end
  elseif type(v) == "table" then
    for _, item in ipairs(v) do show(item, out) end
  elseif type(v) ~= "function" then
    out[#out + 1] = tostring(v)
  end
end

local names = {}
for name, f in pairs(ops) do
  if type(f) == "function" and not LEFT_OUT[name] then names[#names + 1] = name end
end
table.sort(names)

local DTYPES = { "float32", "float64", "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "bool", "complex64",
  "uint64", "complex128" }

local function arguments(dtype)
  local plain = ms.tensor { 1.0, 2.0, 3.0, 1.0 }
  local x = (dtype:find "complex" and ops.view_as_complex(ops.stack({ plain, plain * 0.5 }, 1)) or plain):astype(ms[dtype]):reshape(2, 2)
  return { { x }, { x, x }, { x, x, x }, { x, 0 }, { x, 1 }, { x, 2 }, { x, 0, x }, { x, 1.5, 2.5 }, { x:reshape(1, 1, 2, 2), 2 } }
end

t.test("no result depends on what memory held", function()
  local wrong, calls, number = {}, 0, 0
  for _, dtype in ipairs(DTYPES) do
    for _, list in ipairs(arguments(dtype)) do
      number = number + 1
      for _, name in ipairs(today.has(number, 3) and names or {}) do
        local function call()
          ms.set_seed(1)
          local given = {}
          for i, v in ipairs(list) do given[i] = ms.is_tensor(v) and v:clone() or v end
          return table.pack(pcall(ops[name], table.unpack(given)))
        end
        local function outcome(byte)
          soil(byte)
          local results, out = call(), {}
          calls = calls + 1
          for i = 2, results.n do show(results[i], out) end
          return table.concat(out, " ")
        end
        -- Most operators refuse most arguments.
        if call()[1] and outcome(0x7b) ~= outcome(0x2e) then
          wrong[#wrong + 1] = ("%s of %d %s arguments"):format(name, #list, dtype)
        end
      end
    end
  end
  t.equal(wrong, {})
  assert(calls > (today.whole and 10000 or 3000), calls)
end)

t.finish()
