-- The curvature as L-BFGS estimates it: the last differences of points and gradients (Nocedal 1980).
local ms = require "lunaria"

local ops = ms.ops
local function dot(a, b) return ops.sum(a * b):item() end

--- memory: how many differences are kept. keeps(product, square): whether one is worth keeping, by the products of its parts s y and
--- y y. direction(g) is minus the product of the inverse Hessian and g, update(s, y) takes another difference; list has them.
return function(memory, keeps)
  local self = { list = {} }
  local list = self.list
  function self.direction(g)
    local q, alphas = g, {}
    for i = #list, 1, -1 do
      alphas[i] = list[i].rho * dot(list[i].s, q)
      q = q - list[i].y * alphas[i]
    end
    local last = list[#list]
    if last then q = q * (1 / (last.rho * dot(last.y, last.y))) end
    for i, item in ipairs(list) do q = q + item.s * (alphas[i] - item.rho * dot(item.y, q)) end
    return -q
  end
  function self.update(s, y)
    local product = dot(y, s)
    if not keeps(product, dot(y, y)) then return end
    list[#list + 1] = { s = s, y = y, rho = 1 / product }
    if #list > memory then table.remove(list, 1) end
  end
  return self
end
