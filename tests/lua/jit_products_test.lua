-- Matrix products with weights, which a compiled program packs after its first run, give the bits of eager mode.
-- Eager mode only: what it compares is compiled here as well.
package.path = (arg[0]:match("^(.*/)") or "./") .. "?.lua;" .. package.path
local ms = require "lunaria"
local t = require "harness"
local ops = ms.ops

local layers = {
  ["dense, bias and relu"] = function(k, n, dtype)
    local w, b = ms.Parameter(ops.randn({ n, k }, dtype)), ms.Parameter(ops.randn({ n }, dtype))
    return function(x) return ops.relu(ops.dense(x, w, b)) end
  end,
  ["dense and relu"] = function(k, n, dtype)
    local w = ms.Parameter(ops.randn({ n, k }, dtype))
    return function(x) return ops.relu(ops.dense(x, w)) end
  end,
  ["matmul and bias"] = function(k, n, dtype)
    local w, b = ms.Parameter(ops.randn({ k, n }, dtype)), ms.Parameter(ops.randn({ n }, dtype))
    return function(x) return ops.matmul(x, w) + b end
  end,
}

for name, layer in pairs(layers) do
  for _, dtype in ipairs { ms.float32, ms.float64 } do
    t.test(("%s of %s: eager and compiled are equal to the bit"):format(name, dtype), function()
      ms.set_seed(3)
      for _, m in ipairs { 1, 2, 3, 11, 12, 64 } do
        for _, k in ipairs { 4, 33, 400 } do
          for _, n in ipairs { 1, 5, 16, 100 } do
            local f, x = layer(k, n, dtype), ops.randn({ m, k }, dtype)
            local want, compiled = f(x), ms.jit(f)
            for call = 1, 4 do
              if not ops.equal(compiled(x), want):all():item() then
                error(("%d x %d x %d differs in call %d"):format(m, k, n, call))
              end
            end
            local calls = ms.jit_report(compiled).compiled_calls
            if calls < 3 then error(("only %d calls compiled"):format(calls)) end
          end
        end
      end
    end)
  end
end

t.finish()
