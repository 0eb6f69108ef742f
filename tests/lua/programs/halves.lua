-- Calls of operators by their samples with operands in float16 or bfloat16, and with the same numbers in float32.
local ms = require "lunaria"
local call_of = require "programs.call"
local ops = ms.ops
local M = {}

function M.is_float(dtype) return dtype == ms.float32 or dtype == ms.float16 or dtype == ms.bfloat16 end

--- All tensors of what a call gives, in order.
function M.tensors_of(...)
  local list = {}
  local function walk(value)
    if ms.is_tensor(value) then
      list[#list + 1] = value
    elseif type(value) == "table" then
      for _, item in ipairs(value) do walk(item) end
    end
  end
  for i = 1, select("#", ...) do walk((select(i, ...))) end
  return list
end

--- The gradient of the sum of f's results, times weights around `shift` that all three dtypes hold, by some of its arguments.
function M.gradient_of(f, positions, shift)
  return ms.grad(function(...)
    local total = ops.zeros({}, ms.float32)
    for _, y in ipairs(M.tensors_of(f(...))) do
      if M.is_float(y.dtype) then
        local weights = ops.cast(ops.cast(ops.cos(ops.arange(y.size, { dtype = ms.float32 })) + shift, ms.bfloat16), ms.float32)
        total = total + ops.sum(ops.cast(ops.reshape(y, { -1 }), ms.float32) * weights)
      end
    end
    return total
  end, positions)
end

--- The tensors that f gives, or nil and the message of its error.
function M.outcome(f, list)
  local results = table.pack(pcall(f, table.unpack(list, 1, list.n)))
  if not results[1] then return nil, tostring(results[2]) end
  return M.tensors_of(table.unpack(results, 2, results.n))
end

--- A sample's call: { text, f, exact, rounded, positions, by_dtype }. f takes a dtype and the operands, which make(template) gives
--- (nil: there is no such call): `exact` are those in float32, `rounded` those in the dtype `half`, positions those that are floats.
function M.sample_call(entry, sample, half, make)
  local text, templates, names, by_dtype = call_of(entry, sample)
  local exact, rounded, positions = { ms.float32, n = #templates + 1 }, { half, n = #templates + 1 }, {}
  for i, template in ipairs(templates) do
    local x = make(template)
    if not x then return nil end
    if template.dtype == "float32" then
      positions[#positions + 1] = i
      rounded[i + 1] = ops.cast(x, half)
      exact[i + 1] = ops.cast(rounded[i + 1], ms.float32)
    else
      exact[i + 1], rounded[i + 1] = x, x
    end
  end
  local f = assert(load(("local ms, ops = ...\nreturn function(%s) return %s end"):format(names, text), "=sample"))(ms, ops)
  return { text = text, f = f, exact = exact, rounded = rounded, positions = positions, by_dtype = by_dtype }
end

return M
