-- Matrices as products of two narrow ones.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local released = require "lunaria.armour.privacy.released"

local ops, f64 = ms.ops, ms.float64
local fail, check, describe = arguments.fail, arguments.check, arguments.describe
local M = {}

local PowerSGD = class.define(nil, "PowerSGD", "rank=2, seed=0", [[A matrix (n, m) as P Q^T with P (n, rank) and Q (m, rank), by one step of
subspace iteration over the mean of all clients' matrices (Vogels, Karimireddy and Jaggi 2019). A round has two messages of each client:
left(x), of which the server sends back the mean, and right(mean), of whose mean finish gives the mean matrix. Both are linear, so that
secure sums can add them up. What a client's own matrix lacks is added to its next one, and Q goes on from round to round. A codec
serves one matrix of one client; rank and seed are the same for all.

  > codec = ms.federated.compression.PowerSGD { rank = 1 }
  > x = ms.tensor { { 1.0, 2.0 }, { 2.0, 4.0 } }
  > y = codec:finish(codec:right(codec:left(x)))
  > ("%.6f"):format(y[{ 1, 1 }]:item()) --> 4.000000]])
PowerSGD._called = "codec"
M.PowerSGD = PowerSGD

function PowerSGD:setup(a)
  self.rank, self.seed = check.positive("PowerSGD", "rank", a.rank), check.integer("PowerSGD", "seed", a.seed)
end

-- The columns made orthonormal (Gram and Schmidt, twice, which keeps them so for nearly dependent columns); a column of zeros stays.
local function orthonormal(p)
  local columns = {}
  for j = 0, p.shape[2] - 1 do
    local column = p[{ ms.slice(), j }]
    for _ = 1, 2 do
      for _, other in ipairs(columns) do column = column - other * ops.sum(column * other) end
    end
    local norm = ops.sqrt(ops.sum(column * column))
    columns[j + 1] = ops.where(ops.greater(norm, 1e-150), column / norm, column * 0.0)
  end
  return ops.stack(columns, 1)
end

local function narrow(where, name, value, rows, rank)
  if not ms.is_tensor(value) or value.ndim ~= 2 or value.shape[1] ~= rows or value.shape[2] ~= rank then
    fail(where, ("%s must be a tensor (%d, %d), got %s"):format(name, rows, rank, describe(value)))
  end
  return value:astype(f64)
end

--- The first message of a round: P = (x + residual) Q, a float64 tensor (n, rank). x: a tensor (n, m), of the same shape in each round.
---     > ms.federated.compression.PowerSGD({ rank = 2 }):left(ms.ones { 4, 3 }).shape --> (4, 2)
function PowerSGD:left(x)
  local where = "left"
  if not ms.is_tensor(x) or x.ndim ~= 2 or not ops.is_floating_point(x) then
    fail(where, "x must be a floating tensor (n, m), got " .. describe(x))
  end
  local n, m = x.shape[1], x.shape[2]
  if self.rank > math.min(n, m) then fail(where, ("rank is %d, and x has %d rows and %d columns"):format(self.rank, n, m)) end
  if self._q and self._q.shape[1] ~= m or self._residual and self._residual.shape[1] ~= n then
    fail(where, "x has another shape than in the rounds before: " .. tostring(x.shape))
  end
  self._q = self._q or released.normal(released.uniform(where, self.seed), m * self.rank):reshape { m, self.rank }
  self._x = x:astype(f64)
  if self._residual then self._x = self._x + self._residual end
  return ops.matmul(self._x, self._q)
end

--- The second message: Q = (x + residual)^T P with orthonormal P, a float64 tensor (m, rank). left_mean: the mean of the clients' left.
---     > codec = ms.federated.compression.PowerSGD { rank = 2 }
---     > codec:right(codec:left(ms.randn(4, 3))).shape --> (3, 2)
function PowerSGD:right(left_mean)
  if not self._x then fail("right", "left comes first in a round") end
  self._p = orthonormal(narrow("right", "left_mean", left_mean, self._x.shape[1], self.rank))
  local own = ops.matmul(ops.transpose(self._x, { 1, 0 }), self._p)
  self._residual = self._x - ops.matmul(self._p, ops.transpose(own, { 1, 0 }))
  self._x = nil
  return own
end

--- The mean matrix of the round: a float64 tensor (n, m). right_mean: the mean of the clients' right.
---     > codec = ms.federated.compression.PowerSGD { rank = 2 }
---     > codec:finish(codec:right(codec:left(ms.randn(4, 3)))).shape --> (4, 3)
function PowerSGD:finish(right_mean)
  if not self._p then fail("finish", "left and right come first in a round") end
  self._q = narrow("finish", "right_mean", right_mean, self._q.shape[1], self.rank)
  local p = self._p
  self._p = nil
  return ops.matmul(p, ops.transpose(self._q, { 1, 0 }))
end

return M
