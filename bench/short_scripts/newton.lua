-- Transforms: gradients of each example, a Jacobian, and a logistic regression by Newton's steps with a Hessian.
local ms = require "lunaria"
local ops = ms.ops
if arg[1] == "graph" then ms.set_context { mode = ms.GRAPH_MODE } end
ms.set_seed(1)

local COUNT, FEATURES = 200, 6
local x = ops.randn(COUNT, FEATURES)
local y = ops.greater(ops.matmul(x, ops.randn(FEATURES)) + 0.5 * ops.randn(COUNT), 0):astype(ms.float32)

local function loss_of(w, a, b)
  local logits = ops.matmul(a, w)
  return ops.mean(ops.softplus(logits) - b * logits) + 1e-3 * ops.sum(w * w)
end

-- Down the slope, which is clipped for each example.
local each = ms.vmap(ms.grad(loss_of), { nil, 0, 0 })
local w = ops.zeros { FEATURES }
for _ = 1, 150 do
  local slopes = each(w, x:reshape(COUNT, 1, FEATURES), y:reshape(COUNT, 1))
  local norms = ops.sqrt(ops.sum(slopes * slopes, -1, true))
  w = w - 0.5 * ops.mean(slopes * ops.minimum(1 / norms, ops.ones_like(norms)), 0)
end
print(("clipped: %.4f"):format(loss_of(w, x, y):item()))

-- Newton's method, from ten places.
local slope, curvature = ms.grad(loss_of), ms.hessian(loss_of)
for _ = 1, 10 do
  local v = 0.3 * ops.randn(FEATURES)
  for _ = 1, 8 do v = v - ops.matrix_solve(curvature(v, x, y), slope(v, x, y):reshape(-1, 1)):reshape(-1) end
  w = v
end
print(("Newton: %.4f"):format(loss_of(w, x, y):item()))

-- How a pendulum's place after two seconds depends on where it began.
local function moved(s)
  for _ = 1, 40 do
    local speed = s[1] - 0.05 * 9.81 * ops.sin(s[0])
    s = ops.stack({ s[0] + 0.05 * speed, speed })
  end
  return s
end
local jacobian = ms.jacrev(moved)
local determinant
for k = 1, 20 do
  local j = jacobian(ms.tensor { 0.1 * k, 0.0 })
  determinant = (j[0][0] * j[1][1] - j[0][1] * j[1][0]):item()
end
print(("an area is kept: %.4f"):format(determinant))
