-- Clients that send something else than what they have learned.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local chances = require "lunaria.federated.chances"

local ops = ms.ops
local fail, check, describe = arguments.fail, arguments.check, arguments.describe
local adversaries = {}

-- Each: f(w, w0, strength, stream) -> the vector that is sent instead of w.
local attacks = {
  sign_flip = function(w, w0, strength) return w0 - (w - w0) * strength end,
  scale = function(w, w0, strength) return w0 + (w - w0) * strength end,
  noise = function(w, _, strength, stream) return w + stream:normal_tensor(w.shape) * strength end,
  random = function(_, w0, strength, stream) return w0 + stream:normal_tensor(w0.shape) * strength end,
  nan = function(w) return w * (0 / 0) end,
  label_flip = function(w) return w end,
}
local strengths = { sign_flip = 1.0, scale = 10.0, noise = 1.0, random = 1.0 }

local known = { share = "number", ids = "table", attack = function(value)
  return attacks[value] ~= nil or arguments.is_callable(value), "'label_flip', 'nan', 'noise', 'random', 'scale', 'sign_flip' or a function"
end, strength = "number" }

--- Which clients attack and how: { is (by client), attack, strength }. options: { share | ids, attack, strength }; nil: none do.
function adversaries.of(options, clients, seed)
  if options == nil then return { is = {} } end
  options = arguments.options("simulate", options, known, "{ share = 0.2, attack = \"sign_flip\" }")
  local is, ids = {}, options.ids
  if (options.share == nil) == (ids == nil) then fail("simulate", "adversaries are given by share or by ids") end
  if ids == nil then
    local share = check.probability("simulate", "adversaries.share", options.share)
    ids = chances.of(seed, "adversaries"):sample(clients, math.floor(share * clients + 0.5))
  end
  for _, id in ipairs(ids) do
    if math.type(id) ~= "integer" or id < 1 or id > clients then
      fail("simulate", ("adversaries.ids has %s: clients are numbered from 1 to %d"):format(describe(id), clients))
    end
    is[id] = true
  end
  local attack = options.attack or "sign_flip"
  return { is = is, attack = attack, f = attacks[attack] or attack, strength = options.strength or strengths[attack] or 1.0, seed = seed }
end

--- What a client sends in the place of w.
function adversaries.sent(self, client, round, w, w0)
  if not self.is[client] then return w end
  local stream = chances.of(self.seed, "attack", round, client)
  if attacks[self.attack] then return self.f(w, w0, self.strength, stream) end
  local sent = self.f(w, w0, { round = round, client = client, stream = stream })
  if not ms.is_tensor(sent) or tostring(sent.shape) ~= tostring(w.shape) then
    fail("simulate", ("the attack must give a tensor of shape %s, got %s"):format(tostring(w.shape), describe(sent)))
  end
  return sent:astype(w.dtype)
end

--- Labels with those of attacking clients turned around: k of n becomes n - 1 - k.
function adversaries.labels(self, rows, labels)
  if self.attack ~= "label_flip" then return labels end
  local flipped = ops.max(labels) - labels
  local mine = {}
  for client in pairs(self.is) do mine[#mine + 1] = rows[client] end
  local mask = ops.zeros({ labels.shape[1] }, ms.float32)
  local list = mask:tolist()
  for _, own in ipairs(mine) do
    for _, row in ipairs(own:tolist()) do list[row + 1] = 1.0 end
  end
  return ops.where(ops.greater(ms.tensor(list), 0.5), flipped, labels)
end

return adversaries
