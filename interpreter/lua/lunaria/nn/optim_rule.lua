-- Classes of optimizers whose step is written with operators, one parameter at a time.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local base = require "lunaria.nn.optim"

local ops = ms.ops

-- entry: signature and doc; setup(self, a) for arguments of its own; slots, a list of {name, first value}, whose first
-- value may be the name of a field, and which have the parameter's shape or one of their own;
-- rule(self, p, g, rate, step, weight_decay, slots...), which writes the slots and gives the new value of the parameter.
-- decoupled: the rule itself uses the weight decay, which is 0 for parameters that do not decay; otherwise it is in the
-- gradient already. rate_name is "lr" for rules of PyTorch, where all parameters decay.
return function(name, entry)
  local class = base.layer(name, entry.signature, entry.doc)
  class._entry = entry
  local slots, rate_name = entry.slots, entry.rate_name or "learning_rate"
  function class:setup(a)
    base.setup(self, a, rate_name)
    if entry.setup then entry.setup(self, a) end
    if a.loss_scale then
      self.loss_scale = base.scale_of(name, a)
    end
    if a.maximize ~= nil then
      self.maximize = arguments.check.boolean(name, "maximize", a.maximize)
    end
    for _, group in ipairs(self.param_groups) do
      if rate_name ~= "lr" then group.decayed = base.decayed(group) end
      group.slots = {}
      for k, slot in ipairs(slots) do
        group.slots[k] = base.moments(self, group, slot[1], slot.shape)
        local value = slot[2]
        value = type(value) == "string" and self[value] or value
        for _, moment in ipairs(group.slots[k]) do
          moment:fill_(value)
        end
      end
    end
  end
  function class:update(group, grads, rate, weight_decay, step)
    for i, p in ipairs(group.params) do
      local g = grads[i]
      if tostring(g.shape) ~= tostring(p.shape) then
        arguments.fail(name, ("gradient %d has shape %s, parameter %s has %s"):format(i, tostring(g.shape), p.name, tostring(p.shape)))
      end
      -- Rules square and count: they see halves as float32, as the slots are, and the new value is rounded once.
      local wide = p
      if p.dtype == ms.float16 or p.dtype == ms.bfloat16 then wide = ops.cast(p, ms.float32) end
      if g.dtype == ms.float16 or g.dtype == ms.bfloat16 then g = ops.cast(g, ms.float32) end
      local decay = (not group.decayed or group.decayed[i]) and weight_decay or 0.0
      if decay ~= 0 and not entry.decoupled then
        g = g + decay * wide
      end
      local state = {}
      for k = 1, #slots do
        state[k] = group.slots[k][i]
      end
      p:assign(entry.rule(self, wide, g, rate, step, decay, table.unpack(state)))
    end
  end
  return class
end
