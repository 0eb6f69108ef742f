-- Results of elementwise operators lie in memory as their operands do; nothing shows it. Strides, views and what is
-- written through them are those of row-major results, in every mode. About 2 s of processor time.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local ops = ms.ops

local x = ops.arange(24.0):reshape({ 4, 6 })
local deep = ops.permute(ops.arange(120.0):reshape({ 2, 3, 4, 5 }), 3, 1, 0, 2)

-- What shows of tensors: strides and elements.
local function shown(list)
  local lines = {}
  for i, y in ipairs(list) do
    local steps = {}
    for k = 1, #y.shape do steps[k] = y:stride(k - 1) end
    local elements = ops.reshape(y, { -1 }):tolist()
    for k, v in ipairs(elements) do elements[k] = tostring(v) end
    lines[i] = ("%s %s %s %s"):format(tostring(y.shape), table.concat(steps, ","), tostring(y:is_contiguous()),
      table.concat(elements, " "))
  end
  return table.concat(lines, "\n")
end

-- Programs of views whose results are elementwise, and views of such results.
local programs = {
  unary = function(v) return ops.relu(v), ops.exp(v), -v, ops.cast(v, ms.int32), ops.isnan(v) end,
  binary = function(v) return v + v, v * 2, 1 - v, ops.less(v, 3), ops.where(ops.less(v, 3), v, 0.0), ops.maximum(v, ops.sum(v)) end,
  chain = function(v) return ops.tanh(ops.square(v) + 1) * v, (v + 1):astype(ms.float64) * 2 end,
  reduced = function(v) return ops.sum(v * 2, 0), ops.amax(v + 1, -1), ops.argmax(-v, 0) end,
  views = function(v)
    local y = v * 3
    return y:reshape({ -1 }), ops.reshape(y, { y.shape[2], -1 }), y[1], y["::,1:3"], ops.expand_dims(y, 0),
      y:contiguous()
  end,
  copies = function(v)
    local y = ops.abs(v)
    return ops.concat({ y, y }, 0), ops.stack({ y, v }, -1), ops.flip(y, { 0 }), ops.matmul(y, ops.swapaxes(y, -1, -2))
  end,
}
local columns = x["::,::2"]
local views = { transposed = x:t(), permuted = deep, columns = columns, turned_columns = columns:t(), spread = x["0:1"]:expand(5, 6) }

local function listed(...) return { ... } end
local modes = {
  compiled = function(f, v) return listed(ms.jit(f)(v)) end,
  differentiated = function(f, v)
    local seen
    ms.grad(function(w)
      seen = listed(f(v))
      return ops.sum(w * v)
    end)(ms.tensor(1.0))
    return seen
  end,
  ["with a gradient"] = function(f, v)
    local seen
    ms.grad(function(w)
      seen = listed(f(w))
      return ops.sum(w)
    end)(v)
    return seen
  end,
}

for name, f in pairs(programs) do
  for layout, v in pairs(views) do
    t.test(("%s of %s shows the same strides in every mode"):format(name, layout), function()
      local eager = shown(listed(f(v)))
      for mode, run in pairs(modes) do
        local got = shown(run(f, v))
        if got ~= eager then error(("%s:\n%s\ninstead of\n%s"):format(mode, got, eager), 0) end
      end
    end)
  end
end

t.test("results of vmap show the strides of those of a loop", function()
  local rows = ops.swapaxes(ops.arange(60.0):reshape({ 3, 5, 4 }), 1, 2)
  local y = ms.vmap(function(v) return ops.relu(v) + 1 end)(rows)
  t.equal(tostring(y:stride()), "(20, 5, 1)")
  t.equal(y:tolist(), (ops.relu(rows) + 1):tolist())
end)

t.test("a result of a transposed matrix is row-major", function()
  local y = ops.relu(x:t())
  t.equal(tostring(y:stride()), "(4, 1)")
  t.equal(tostring(y.strides), "(16, 4)")
  assert(y:is_contiguous())
  t.equal(y:get_bytes(), x:t():copy():get_bytes())
  t.equal(tostring(y.T:stride()), "(1, 4)")
  t.equal(tostring(y[2]:stride()), "(1,)")
  t.equal(y:reshape({ -1 }):tolist(), x:t():copy():reshape({ -1 }):tolist())
  for i, row in y:iter() do t.equal(tostring(row:stride()) .. tostring(row[0]), "(1,)" .. tostring(x[0][i])) end
end)

t.test("what is written into a result shows in it alone", function()
  local y = ops.relu(x:t())
  local before = y.T
  local same = y:contiguous()
  y[1] = -1
  t.equal(y[1]:tolist(), { -1, -1, -1, -1 })
  t.equal(y[2]:tolist(), x:t()[2]:tolist())
  t.equal(same:tolist(), x:t():tolist())
  t.equal(before:tolist(), x:tolist())
  local part = ops.relu(x:t())
  local row = part[0]
  row[0] = 99
  t.equal(part:tolist(), x:t():tolist())
  local whole = ops.relu(x:t())
  whole:copy_(whole * 2)
  t.equal(whole:tolist(), (x:t():copy() * 2):tolist())
  t.equal(tostring(whole:stride()), "(4, 1)")
end)

t.test("a parameter that was made of a result can be assigned to", function()
  local p = ms.Parameter(ops.relu(x:t()), { name = "p" })
  t.equal(p:tolist(), x:t():tolist())
  local turned = p.T
  ops.assign(p, ops.exp(x:t() * 0))
  t.equal(p[0]:tolist(), { 1, 1, 1, 1 })
  t.equal(p.T:tolist(), ops.ones({ 4, 6 }):tolist())
  t.equal(turned:tolist(), x:tolist())
  t.equal(tostring(p:stride()), "(4, 1)")
end)

t.test("other programs and files get row-major elements", function()
  local y, file = ops.relu(x:t()), os.tmpname()
  local numbers = ms.from_dlpack(y:to_dlpack())
  t.equal(tostring(numbers:stride()), "(4, 1)")
  t.equal(numbers:tolist(), x:t():tolist())
  local z = ops.relu(x:t())
  ms.save_checkpoint({ { name = "z", data = z } }, file .. ".ckpt")
  t.equal(ms.load_checkpoint(file .. ".ckpt").z:tolist(), z:tolist())
  os.remove(file)
  os.remove(file .. ".ckpt")
  assert(z:data_ptr() ~= 0)
end)

t.finish()
