-- Losses of attacks, which logits give sample by sample and whose sizes do not depend on the scale of the logits.
local ms = require "lunaria"
local common = require "lunaria.armour.common"

local ops = ms.ops
local losses = {}

-- Of each row the element that an index names: (n,).
local function picked(logits, index) return ops.squeeze(ops.gather_elements(logits, 1, index:astype(ms.int64):reshape { -1, 1 }), 1) end
losses.picked = picked

--- The logit of the class y and the greatest of the other classes: (n,) each.
function losses.against_others(logits, y)
  local own = common.one_hot(y, logits.shape[2], ms.bool_)
  return picked(logits, y), ops.amax(ops.where(own, ops.full_like(logits, -math.huge), logits), 1)
end

--- The difference of logits ratio (Croce, Hein, 2020): greater than 0 where the class y is not the first one. Three classes at least.
function losses.dlr(logits, y)
  local own, other = losses.against_others(logits, y)
  local sorted = (ops.sort(logits, 1, true))
  return (other - own) / (sorted[{ ms.slice(), 0 }] - sorted[{ ms.slice(), 2 }] + 1e-12)
end

--- The same with a class that is wanted. Four classes at least.
function losses.dlr_targeted(logits, y, target)
  local sorted = (ops.sort(logits, 1, true))
  local scale = sorted[{ ms.slice(), 0 }] - (sorted[{ ms.slice(), 2 }] + sorted[{ ms.slice(), 3 }]) * 0.5 + 1e-12
  return (picked(logits, target) - picked(logits, y)) / scale
end

return losses
