-- Noise of DP-FTRL (Kairouz and others 2021): the sums of all gradients so far get noise of a binary tree, so that each sum has that of at
-- most log2(leaves) + 1 nodes, however the batches were chosen: no sampling by chance is needed, but each row takes part in a tree only so
-- many times. An optimizer adds up steps, and so is given the difference between the noise of this sum and that of the sum before.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local noise = require "lunaria.armour.privacy.noise"

local fail, check = arguments.fail, arguments.check

local NoiseTreeRandom = class.define(noise.Noise, "NoiseTreeRandom",
  "leaves, norm_bound=1.0, initial_noise_multiplier=1.0, participations=1, separation=1, seed=0, secure=false",
  [[Noise of a binary tree over the steps, as DP-FTRL adds it, for a DPModel with poisson_sampling = false whose batches go through the data
in any order. leaves: the steps of a tree, as a rule those of an epoch; then the next tree begins. norm_bound: the bound of what one sample
gives. initial_noise_multiplier: the standard deviation of each node's noise over norm_bound. participations: in how many steps of a tree
a row is; separation: at least so many steps apart. seed: a number of its own for the draws; 0 draws with the session. secure: draws from
the operating system's cryptographic generator, without a seed.

  > noise = ms.armour.privacy.diff_privacy.NoiseTreeRandom(100, 1.0, 4.0)
  > noise(ms.zeros { 3 }).shape --> (3,)]])
NoiseTreeRandom.is_tree = true

function NoiseTreeRandom:setup(a)
  local name = "NoiseTreeRandom"
  noise.setup(self, name, a)
  self.leaves = check.positive(name, "leaves", a.leaves)
  self.participations = check.positive(name, "participations", a.participations)
  self.separation = check.positive(name, "separation", a.separation)
  if (self.participations - 1) * self.separation >= self.leaves then
    fail(name, ("%d participations %d steps apart do not fit into %d leaves"):format(self.participations, self.separation, self.leaves))
  end
  self._nodes = {}
end

-- The node that a step completes replaces those below it: after t steps the sum is that of the nodes at the ones of t in binary.
function NoiseTreeRandom:_node_of(like, place)
  local nodes = self._nodes[place] or {}
  self._nodes[place] = nodes
  local t, level = self.step % self.leaves + 1, 0
  if t == 1 then
    -- What the last tree added stays in the parameters.
    for key in pairs(nodes) do nodes[key] = nil end
  end
  local difference = self:_unit(like)
  while t % 2 == 0 do t, level = t // 2, level + 1 end
  local fresh = difference
  for below = 0, level - 1 do
    difference = difference - nodes[below]
    nodes[below] = nil
  end
  nodes[level] = fresh
  return difference
end

-- mechanism(gradients): the noise that a step adds beyond that of the steps before it.
function NoiseTreeRandom:__call(gradients)
  local scale = self.norm_bound * self.initial_noise_multiplier
  if ms.is_tensor(gradients) then return self:_node_of(gradients, 1) * scale end
  local list = {}
  for i = 1, #gradients do list[i] = self:_node_of(gradients[i], i) * scale end
  return list
end

--- What a checkpoint keeps: the number of steps and the bound, not the nodes: a training that goes on begins another tree.
---     > ms.armour.privacy.diff_privacy.NoiseTreeRandom(8):state_dict().step --> 0
function NoiseTreeRandom:state_dict() return noise.Noise.state_dict(self) end

--- Takes up what state_dict gave: the next tree begins, with steps of its own. state: that table.
---     > noise = ms.armour.privacy.diff_privacy.NoiseTreeRandom(8)
---     > noise:load_state_dict(noise:state_dict())
function NoiseTreeRandom:load_state_dict(state)
  noise.Noise.load_state_dict(self, state)
  -- Numbers of steps that belong to no tree are skipped.
  self.step = (self.step + self.leaves - 1) // self.leaves * self.leaves
  self._nodes = {}
end

return { NoiseTreeRandom = NoiseTreeRandom }
