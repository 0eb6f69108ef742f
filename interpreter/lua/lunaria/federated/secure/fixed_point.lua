-- Fixed-point numbers as elements of the ring in which secure sums are added up.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local core = require "lunaria.federated_secure"

local fail, check, describe = arguments.fail, arguments.check, arguments.describe
local M = {}

local FixedPoint = class.define(nil, "FixedPoint", "fraction_bits=24, clip=64.0, weight=1, clients=1000, bits=nil, refuses=false",
  [[A code of vectors as whole numbers modulo 2^bits, in which sums are exact and masks hide everything. A value is rounded to the nearest
multiple of 2^-fraction_bits, and so is off by at most half of it; values beyond clip become clip and are counted, or are an error where
refuses is true. A client of weight n (at most `weight`) gives n times its rounded values, which is exact, and n itself as one more
element. bits: 8, 16, ... 64; by default the fewest in which the sum of as many `clients` cannot overflow; fewer are an error.

  > code = ms.federated.secure.FixedPoint { fraction_bits = 16, clip = 4, weight = 100, clients = 50 }
  > code.bits --> 32
  > a = code:encode(ms.tensor { 1.0, -0.5 }, 3)
  > b = code:encode(ms.tensor { 2.0, 0.25 }, 1)
  > mean, weight = code:decode(a + b)
  > mean[0]:item(), mean[1]:item(), weight --> 1.25	-0.3125	4]])
FixedPoint._called = "code"
M.FixedPoint = FixedPoint

function FixedPoint:setup(a)
  local where = "FixedPoint"
  self.fraction_bits = check.not_negative(where, "fraction_bits", a.fraction_bits)
  self.clip = check.number_positive(where, "clip", a.clip) + 0.0
  self.weight = check.positive(where, "weight", a.weight)
  self.clients = check.positive(where, "clients", a.clients)
  self.refuses = check.boolean(where, "refuses", a.refuses)
  self.bits = 64
  self.bits = a.bits == nil and core.smallest_bits(self) or check.positive(where, "bits", a.bits)
  core.check_code(self)
end

--- The elements of a vector, and how many of its values were clipped. x: a tensor (n,) of float32 or float64, without nan. weight: a whole
--- number from 1 to the code's. Gives an int64 tensor (n + 1,), whose last element is the weight.
---     > code = ms.federated.secure.FixedPoint { fraction_bits = 2, clip = 1 }
---     > elements, clipped = code:encode(ms.tensor { 0.5, 3.0 })
---     > elements:tolist()[1], elements:tolist()[2], clipped --> 2	4	1
function FixedPoint:encode(x, weight)
  weight = arguments.named("encode", { "weight" }, weight)
  if not ms.is_tensor(x) or x.ndim ~= 1 then fail("encode", "x must be a tensor (n,), got " .. describe(x)) end
  return core.encode(self, x, check.positive("encode", "weight", weight == nil and 1 or weight))
end

--- The weighted mean of a sum of elements, and the sum of the weights. sum: an int64 tensor (n + 1,), as a secure sum gives it; sums beyond
--- the ring are taken modulo 2^bits. Gives a float64 tensor (n,).
---     > code = ms.federated.secure.FixedPoint { fraction_bits = 2, clip = 1 }
---     > code:decode(ms.tensor({ 3, 2 }, ms.int64))[0]:item() --> 0.375
function FixedPoint:decode(sum)
  if not ms.is_tensor(sum) or sum.ndim ~= 1 or sum.dtype ~= ms.int64 then
    fail("decode", "sum must be an int64 tensor (n,), got " .. describe(sum))
  end
  return core.mean(self, sum)
end

--- The step between two values that the code tells apart.
---     > ms.federated.secure.FixedPoint({ fraction_bits = 3 }):step() --> 0.125
function FixedPoint:step() return 2.0 ^ -self.fraction_bits end

return M
