-- Gradients where formulas would leave the range of numbers on the way to one, cancel, or divide by a difference that is 0: they
-- are right, or an error where there is none. Eager, compiled and in both precisions.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local ops = ms.ops

local EPSILON = { [ms.float32] = 2 ^ -23, [ms.float64] = 2 ^ -52 }

-- f's value at x is `wanted`, in float32 and float64, eager and compiled, to so many units of the largest element.
local function gives(what, f, x, wanted, units)
  for dtype, epsilon in pairs(EPSILON) do
    local input = ms.tensor(x, dtype)
    for mode, g in pairs { eager = f, compiled = ms.jit(f) } do
      for _ = 1, 2 do
        local got, flat = ops.reshape(g(input), { -1 }):tolist(), ops.reshape(ms.tensor(wanted, ms.float64), { -1 }):tolist()
        local largest = 0
        for _, y in ipairs(flat) do largest = math.max(largest, math.abs(y)) end
        for i, y in ipairs(flat) do
          local close = math.abs(got[i] - y) <= units * epsilon * largest
          assert(close, ("%s, %s, %s: element %d is %.17g instead of %.17g"):format(what, mode, dtype, i - 1, got[i], y))
        end
      end
    end
  end
end

local function raises(what, f, x, message)
  for mode, g in pairs { eager = f, compiled = ms.jit(f) } do
    for _ = 1, 2 do
      local ok, found = pcall(g, x)
      assert(not ok and tostring(found):find(message, 1, true), ("%s, %s: %s"):format(what, mode, found))
    end
  end
end

local function total(x) return ops.sum(x) end
local twice = { { 2.0, 0.0 }, { 0.0, 2.0 } }
-- Equal eigenvalues that rounding parts: q diag(2, 2, 5) q^T with q = 1 - 2 v v^T / 3, v = (1, 1, 1).
local turned = {}
do
  local values = { 2, 2, 5 }
  local function q(i, j) return (i == j and 1 or 0) - 2 / 3 end
  for i = 1, 3 do
    turned[i] = {}
    for j = 1, 3 do
      turned[i][j] = 0.0
      for k = 1, 3 do turned[i][j] = turned[i][j] + q(i, k) * values[k] * q(j, k) end
    end
  end
end
local function scaled(matrix, factor)
  local result = {}
  for i, row in ipairs(matrix) do
    result[i] = {}
    for j, x in ipairs(row) do result[i][j] = x * factor end
  end
  return result
end
local one, one3 = { { 1.0, 0.0 }, { 0.0, 1.0 } }, { { 1.0, 0.0, 0.0 }, { 0.0, 1.0, 0.0 }, { 0.0, 0.0, 1.0 } }

t.test("equal eigenvalues and singular values have gradients", function()
  local function squares(x) local w = ops.eigh(x) return total(w * w) end
  gives("eigh of equal values", ms.grad(squares), twice, scaled(twice, 2), 4)
  gives("eigh of nearly equal values", ms.grad(squares), turned, scaled(turned, 2), 40)
  gives("the first result alone", ms.grad(function(x) return total((ops.eigh(x))) end), turned, one3, 40)
  gives("eigvals", ms.grad(function(x) return total(ops.real(ops.eigvals(x))) end), twice, one, 4)
  gives("svd", ms.grad(function(x) local s = ops.svd(x) return total(s * s) end), turned, scaled(turned, 2), 40)
  gives("svd without vectors", ms.grad(function(x) return total(ops.svd(x, false, false)) end), twice, one, 4)
  gives("the nuclear norm", ms.grad(function(x) return ops.norm(x, "nuc", { 0, 1 }) end), turned, one3, 40)
  gives("the spectral norm", ms.grad(function(x) return ops.norm(x, 2, { 0, 1 }) end), twice, scaled(one, 0.5), 4)
  gives("the smallest singular value", ms.grad(function(x) return ops.norm(x, -2, { 0, 1 }) end), twice, scaled(one, 0.5), 4)
  gives("a batch", ms.vmap(ms.grad(squares)), { twice, { { 1.0, 0.0 }, { 0.0, 3.0 } } },
    { scaled(twice, 2), { { 2.0, 0.0 }, { 0.0, 6.0 } } }, 4)
end)

t.test("vectors of equal values are an error where they are differentiated, and others are not", function()
  local x = ms.tensor(twice)
  local function first(y) local _, v = ops.eigh(y) return v[{ 0, 0 }] end
  raises("eigh", ms.grad(first), x, "gradient of eigh: the values 0 and 1 are equal: their vectors have no gradient")
  raises("svd", ms.grad(function(y) local _, u = ops.svd(y) return total(u) end), x, "gradient of svd: the values 0 and 1 are equal")
  raises("eig", ms.grad(function(y) local _, v = ops.eig(y) return total(ops.real(v)) end), x,
    "gradient of eig: the values 0 and 1 are equal")
  raises("eigh twice", ms.grad(function(z)
    return total(ms.grad(function(y) local w = ops.eigh(y) return total(w * w * w) end)(z))
  end), x, "gradient of eigh: the values 0 and 1 are equal")
  raises("the left vectors of a singular value 0", ms.grad(function(y) local _, u = ops.svd(y) return total(u) end),
    ms.tensor { { 1.0, 0.0 }, { 0.0, 0.0 }, { 0.0, 0.0 } }, "gradient of svd: the values 1 and 2 are equal")
  -- The vector of 5 belongs to no other value: v v^T is (1, 1, -1) (1, 1, -1)^T / 9 with other signs, its gradient by differences.
  local function weighed(y)
    local _, v = ops.eigh(y)
    local last = ops.narrow(v, 1, 2, 1)
    return total(last * ops.matmul(ms.tensor({ { 1.0, 2.0, 0.5 }, { 2.0, -1.0, 3.0 }, { 0.5, 3.0, 0.0 } }, y.dtype), last))
  end
  local at, got, h = ms.tensor(turned, ms.float64), ms.grad(weighed)(ms.tensor(turned, ms.float64)), 1e-6
  for i = 0, 2 do
    for j = 0, 2 do
      local up, down = at:copy(), at:copy()
      up[{ i, j }] = up[{ i, j }] + h
      down[{ i, j }] = down[{ i, j }] - h
      t.near(got[{ i, j }]:item(), (weighed(up):item() - weighed(down):item()) / (2 * h), 1e-7)
    end
  end
end)

t.test("products of all other numbers stay in range where they are in it", function()
  local x, others = { 1e-30, 1e-30, 1e30, 1e30 }, { 1e30, 1e30, 1e-30, 1e-30 }
  for name, f in pairs { prod = ops.prod, cumprod = function(y) return ops.cumprod(y, 0)[3] end } do
    local got = ms.grad(f)
    for dtype in pairs(EPSILON) do
      for _, g in ipairs { got, ms.jit(got), ms.jit(got) } do
        local list = g(ms.tensor(x, dtype)):tolist()
        for i, y in ipairs(others) do assert(math.abs(list[i] / y - 1) < 1e-5, ("%s: %.9g instead of %g"):format(name, list[i], y)) end
      end
    end
  end
  local wide = ms.grad(ops.prod)(ms.tensor({ 1e-200, 1e-200, 1e200, 1e200 }, ms.float64)):tolist()
  for i, y in ipairs { 1e200, 1e200, 1e-200, 1e-200 } do assert(math.abs(wide[i] / y - 1) < 1e-14, tostring(wide[i])) end
  local long = ops.concat { ops.full({ 500 }, 1e-3), ops.full({ 500 }, 1e3) }
  t.near(ms.grad(ops.prod)(long), ops.concat { ops.full({ 500 }, 1e3), ops.full({ 500 }, 1e-3) }, 1e-2)
  t.near(ms.grad(ops.prod)(ms.tensor { 0.0, 2.0, 1e30, 1e-30 }), ms.tensor { 2.0, 0.0, 0.0, 0.0 }, 1e-6)
  t.near(ms.grad(ops.prod)(ms.tensor({ 300, 300, 0.01, 0.01 }, ms.float16)):astype(ms.float32), ms.tensor { 0.03, 0.03, 900, 900 }, 0.5)
  t.near(ms.grad(function(y) return ops.sum(ops.prod(y, 1)) end)(ms.tensor { { 2.0, 3.0 }, { 4.0, 0.0 } }),
    ms.tensor { { 3.0, 2.0 }, { 0.0, 4.0 } }, 0)
  local ids = ms.tensor { 0, 0, 0, 0 }
  local segments = ms.grad(function(y) return ops.sum(ops.unsorted_segment_prod(y, ids, 1)) end)(ms.tensor(x)):tolist()
  for i, y in ipairs(others) do assert(math.abs(segments[i] / y - 1) < 1e-5, tostring(segments[i])) end
end)

-- x and the first three derivatives of sin(pi x) / (pi x), from 30 digits.
local SINC = {
  { 0.0, 0.0, -3.2898681336964529, 0.0 },
  { 1e-8, -3.2898681336964525e-8, -3.2898681336964519, 1.9481818206800485e-7 },
  { 1e-4, -0.0003289868101226756, -3.2898680362873624, 0.0019481817977898299 },
  { 0.001, -0.0032898648867278963, -3.289858392793072, 0.019481795316590378 },
  { 0.03, -0.098608403636004575, -3.2811059497053976, 0.58383672374886846 },
  { 0.4, -1.1195243356642739, -1.8719587335325204, 6.4150017822579365 },
  { 0.6, -1.3559469113367535, -0.4598972367800817, 7.3826119967243863 },
  { 1.0, -1.0, 2.0, 3.8696044010893586 },
  { 2.25, 0.26980961553194181, -1.2271380889524741, -1.4655333034584254 },
  { -7.5, -0.0056588424210451675, 0.41736999583302705, 0.16694799833321082 },
}

t.test("sinc has all its derivatives near 0", function()
  local f = ops.sinc
  for order = 1, 3 do
    f = ms.grad(f)
    for _, row in ipairs(SINC) do
      for dtype, epsilon in pairs(EPSILON) do
        for _, g in ipairs { f, ms.jit(f) } do
          local got, y = g(ms.tensor(row[1], dtype)):item(), row[order + 1]
          -- Away from 0 rounding of pi x is what counts; near it every digit of the value.
          local margin = 16 * epsilon * (math.abs(row[1]) < 0.1 and math.abs(y) or math.pi ^ order)
          assert(math.abs(got - y) <= margin, ("order %d at %g in %s: %.17g instead of %.17g"):format(order, row[1], dtype, got, y))
        end
      end
    end
  end
end)

t.test("determinants of singular matrices are differentiated twice", function()
  -- The derivative of the cofactors along d, by the polynomial itself.
  local function second(x, d) return ms.grad(function(y) return total(ms.grad(ops.det)(y) * d) end)(x) end
  gives("2 x 2", function(x) return second(x, ms.tensor({ { 1.0, 2.0 }, { 3.0, 4.0 } }, x.dtype)) end, { { 1.0, 2.0 }, { 2.0, 4.0 } },
    { { 4.0, -3.0 }, { -2.0, 1.0 } }, 8)
  for _, x in pairs { rank2 = { { 1.0, 2.0, 3.0 }, { 4.0, 5.0, 6.0 }, { 7.0, 8.0, 9.0 } }, zero = { { 0.0, 0.0, 0.0 }, { 0.0, 0.0, 0.0 },
    { 0.0, 0.0, 0.0 } }, rank1 = { { 1.0, 2.0, 3.0 }, { 2.0, 4.0, 6.0 }, { -1.0, -2.0, -3.0 } } } do
    local at, d = ms.tensor(x, ms.float64), ms.tensor({ { 0.5, -1.0, 2.0 }, { 1.5, 0.25, -0.75 }, { 1.0, 2.0, -0.5 } }, ms.float64)
    local got = second(at, d)
    for i = 0, 2 do
      for j = 0, 2 do
        -- Cofactors of 3 x 3 are of the second order: the difference is exact.
        local up, down = at:copy(), at:copy()
        up[{ i, j }] = up[{ i, j }] + 1
        down[{ i, j }] = down[{ i, j }] - 1
        local function slope(y) return total(ms.grad(ops.det)(y) * d):item() end
        t.near(got[{ i, j }]:item(), (slope(up) - slope(down)) / 2, 1e-12)
      end
    end
  end
  raises("slogdet", ms.grad(function(x) local _, l = ops.slogdet(x) return l end), ms.tensor { { 1.0, 2.0 }, { 2.0, 4.0 } },
    "the matrix is singular")
  raises("inverse", ms.grad(function(x) return total(ops.inverse(x)) end), ms.tensor { { 1.0, 2.0 }, { 2.0, 4.0 } },
    "the matrix is singular")
end)

t.finish()
