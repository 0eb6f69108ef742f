-- Attacks of one step: the fast gradient methods (Goodfellow et al., 2015), those towards the least likely class (Kurakin et al., 2017) and
-- those with a random step first (Tramèr et al., 2018).
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local common = require "lunaria.armour.common"
local texts = require "lunaria.armour.attacks.texts"
local GradientMethod = require "lunaria.armour.attacks.gradient".GradientMethod

local ops = ms.ops
local fail, check = arguments.fail, arguments.check

local M = {}

-- A step in a random direction. The gradient is then taken where it ends, not at the input.
local function random_step(self, x)
  local noise = self._draws:normal({ table.unpack(x.shape) }, x.dtype)
  return common.clip(x + self:_direction(noise) * self.alpha, self._lo, self._hi)
end

-- norm_level: where the name of the class says it; least_likely: towards the class that the network thinks least of.
local function method(name, signature, what, row)
  local made = class.define(GradientMethod, name, signature,
    texts.doc(what, signature, name, row.least_likely and "" or ", ms.tensor { 0, 2 }"))
  function made:setup(a)
    a.norm_level = row.norm_level or a.norm_level
    if row.least_likely then a.is_targeted = true end
    self:keep(a)
    if a.alpha == nil then
      arguments.without_effect(name, made._signature, a, { "seed" }, "without alpha: only the random step, of that length, draws numbers")
    else
      self.alpha = check.number_positive(name, "alpha", a.alpha)
      if self.alpha >= self.eps then
        fail(name, ("alpha is %g and eps %g: the random step must be the shorter one"):format(self.alpha, self.eps))
      end
    end
    local step = self.eps - (self.alpha or 0.0)
    self._step = common.compiled(function(at, y)
      return common.clip(at + self:_direction(self:_slope(at, y)) * step, self._lo, self._hi)
    end)
  end
  function made:_attack(x, y) return self._step(self.alpha and random_step(self, x) or x, y) end
  if row.least_likely then
    function made:_checked(inputs, labels)
      local x = common.images("generate", inputs, self._lo, self._hi)
      if labels ~= nil then common.labels("generate", labels, x.shape[1], self._model:classes(x)) end
      return x, ops.argmin(self._model:logits(x), 1):astype(ms.int32)
    end
  end
  M[name] = made
end

method("FastGradientMethod",
  "network, eps=0.07, alpha=nil, bounds=nil, norm_level=2, is_targeted=false, loss_fn=nil, seed=nil",
  [[The fast gradient method (Goodfellow et al., 2015): one step of length eps along the gradient of the loss.]], {})
method("FastGradientSignMethod", "network, eps=0.07, alpha=nil, bounds=nil, is_targeted=false, loss_fn=nil, seed=nil",
  [[The fast gradient sign method (Goodfellow et al., 2015): each pixel moves by eps so that the loss grows.]], { norm_level = "inf" })
method("RandomFastGradientMethod",
  "network, eps=0.07, alpha=0.035, bounds=nil, norm_level=2, is_targeted=false, loss_fn=nil, seed=nil",
  [[A random step of length alpha, then from there one of eps - alpha along the gradient (Tramèr et al., 2018).]], {})
method("RandomFastGradientSignMethod", "network, eps=0.07, alpha=0.035, bounds=nil, is_targeted=false, loss_fn=nil, seed=nil",
  [[Each pixel moves by alpha at random, then by eps - alpha as the gradient there says (Tramèr et al., 2018).]], { norm_level = "inf" })
method("LeastLikelyClassMethod", "network, eps=0.07, alpha=nil, bounds=nil, loss_fn=nil, seed=nil",
  [[Each pixel moves by eps towards the class that the network finds least likely (Kurakin et al., 2017); labels are not asked
for, only checked where they are given.]],
  { norm_level = "inf", least_likely = true })
method("RandomLeastLikelyClassMethod", "network, eps=0.07, alpha=0.035, bounds=nil, loss_fn=nil, seed=nil",
  [[Each pixel moves by alpha at random, then by eps - alpha towards the class that the network finds least likely there; labels are not
asked for, only checked where they are given (Tramèr et al., 2018).]], { norm_level = "inf", least_likely = true })

return M
