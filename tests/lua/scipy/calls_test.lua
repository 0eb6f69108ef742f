-- ms.scipy against scipy: calls with what scipy gives (make.py beside calls.txt writes them), and minima of the usual functions with
-- at most 1.2 times as many evaluations as scipy's.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local run = require "numpy.calls"
local ms = require "lunaria"

local function pieces(x, n)
  local list = {}
  for i = 1, n do list[i] = x[i - 1] end
  return table.unpack(list)
end

local functions = {
  rosenbrock = function(x)
    local n = x.size
    local a, b = ms.ops.narrow(x, 0, 1, n - 1), ms.ops.narrow(x, 0, 0, n - 1)
    return ms.ops.sum(100.0 * (a - b * b) ^ 2 + (1.0 - b) ^ 2)
  end,
  beale = function(x)
    local a, b = pieces(x, 2)
    return (1.5 - a + a * b) ^ 2 + (2.25 - a + a * b ^ 2) ^ 2 + (2.625 - a + a * b ^ 3) ^ 2
  end,
  booth = function(x)
    local a, b = pieces(x, 2)
    return (a + 2.0 * b - 7.0) ^ 2 + (2.0 * a + b - 5.0) ^ 2
  end,
  himmelblau = function(x)
    local a, b = pieces(x, 2)
    return (a ^ 2 + b - 11.0) ^ 2 + (a + b ^ 2 - 7.0) ^ 2
  end,
  matyas = function(x)
    local a, b = pieces(x, 2)
    return 0.26 * (a ^ 2 + b ^ 2) - 0.48 * a * b
  end,
  sphere = function(x) return ms.ops.sum(x * x) end,
  powell = function(x)
    local a, b, c, d = pieces(x, 4)
    return (a + 10.0 * b) ^ 2 + 5.0 * (c - d) ^ 2 + (b - 2.0 * c) ^ 4 + 10.0 * (a - d) ^ 4
  end,
  quadratic = function(x) return ms.ops.sum(ms.ops.arange(1, x.size + 1, 1, ms.float64) * (x - 1.0) ^ 2) end,
}

local ours, theirs = 0, 0
local function minimum(name, start, method, evaluations)
  local f = functions[name]
  local r = ms.scipy.optimize.minimize(f, ms.tensor(start, ms.float64), { method = method })
  ours, theirs = ours + r.nfev, theirs + evaluations
  assert(r.success, r.message)
  assert(ms.ops.amax(ms.ops.abs(ms.grad(f)(r.x))):item() <= (method == "BFGS" and 1e-5 or 1e-3), "no minimum")
  assert(r.nfev <= math.ceil(1.2 * evaluations), ("%d evaluations instead of %d"):format(r.nfev, evaluations))
  return true
end

local count = run(arg[1] or "tests/data/scipy/calls.txt", setmetatable({ np = ms.numpy, minimum = minimum, select = select }, {
  __index = function(_, name) return ms.scipy[name] end,
}))
t.test("there are more than 500 calls", function() assert(count > 500, count) end)
print(("minima: %d evaluations, scipy %d"):format(ours, theirs))
t.finish()
