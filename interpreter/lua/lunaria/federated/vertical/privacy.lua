-- ms.federated.LabelDP and EmbeddingDP: what leaves a party, made private at its source. The draws are those of
-- ms.armour.privacy.local_privacy.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"

local fail, check, describe = arguments.fail, arguments.check, arguments.describe
local ops = ms.ops
local privacy = {}

local function local_privacy() return ms.armour.privacy.local_privacy end

local LabelDP = class.define(nil, "LabelDP", "eps, classes=nil, seed=nil", [[Labels that are eps private each, by randomized response: a
label is kept with probability exp(eps) / (classes - 1 + exp(eps)) and else becomes one of the others, all alike. dp(labels) takes class
numbers (n,) or (n, 1) of an integer or a floating dtype, or one-hot rows (n, classes), and gives them in the same form. classes: how many
there are; without it 2 for class numbers, the columns for one-hot rows. seed: for tests; without it the draws are the operating system's.

Each call tells labels anew and costs eps anew: apply it once, before the training, and labels stay eps private however long the
training is.

  > dp = ms.federated.LabelDP(40.0)
  > dp(ms.tensor { 0, 1, 1 }):tolist()[2] --> 1]])
privacy.LabelDP = LabelDP

function LabelDP:setup(a)
  self.eps = check.number_not_negative("LabelDP", "eps", a.eps) + 0.0
  if a.classes ~= nil and check.positive("LabelDP", "classes", a.classes) < 2 then fail("LabelDP", "classes must be at least 2, got 1") end
  if a.seed ~= nil then check.not_negative("LabelDP", "seed", a.seed) end
  self.classes, self._seed, self._calls = a.classes, a.seed, 0
end

-- The form of labels: whether they are one-hot rows, how many classes there are, class numbers.
local function taken_apart(self, where, labels)
  if not ms.is_tensor(labels) or labels.ndim < 1 or labels.ndim > 2 then
    fail(where, "labels must be a tensor (n,), (n, 1) or (n, classes), got " .. describe(labels))
  end
  local is_hot = labels.ndim == 2 and labels.shape[2] > 1
  local classes = self.classes or (is_hot and labels.shape[2] or 2)
  if is_hot and labels.shape[2] ~= classes then
    fail(where, ("labels have %d columns for %d classes"):format(labels.shape[2], classes))
  end
  if is_hot then return true, classes, labels:astype(ms.float32) end
  local numbers = labels:reshape { labels.shape[1] }
  if ops.is_floating_point(numbers) then
    local whole = ops.round(numbers)
    if not ops.all(ops.equal(whole, numbers)):item() then fail(where, "labels must be class numbers, some are not whole") end
    numbers = whole:astype(ms.int32)
  end
  return false, classes, numbers
end

--- Private labels, in the form and the dtype that labels have.
---     > ms.federated.LabelDP(0.0, { seed = 1 })(ms.tensor { { 1.0 }, { 0.0 } }).shape --> (2, 1)
function LabelDP:__call(labels)
  local is_hot, classes, numbers = taken_apart(self, "LabelDP", labels)
  if labels.shape[1] == 0 then return labels end
  self._calls = self._calls + 1
  local seed = self._seed and self._seed + (self._calls - 1) * 1000003
  local told = local_privacy().randomized_response(numbers, classes, self.eps, { seed = seed })
  if is_hot then return ops.one_hot(told, classes):astype(labels.dtype) end
  return told:reshape(labels.shape):astype(labels.dtype)
end

--- The probability with which a label is kept. classes: default those of the object, or 2.
---     > ("%.6f"):format(ms.federated.LabelDP(1.0):keep_probability()) --> 0.731059
function LabelDP:keep_probability(classes)
  classes = arguments.named("keep_probability", { "classes" }, classes)
  return local_privacy().keep_probability(check.positive("keep_probability", "classes", classes or self.classes or 2), self.eps)
end

--- Estimates without bias of how many labels of each class there were before: a tensor (classes,). labels: private ones.
---     > ms.federated.LabelDP(50.0):estimate_counts(ms.tensor { 0, 0, 1 }):tolist()[1] --> 2.0
function LabelDP:estimate_counts(labels)
  local is_hot, classes, numbers = taken_apart(self, "estimate_counts", labels)
  if is_hot then numbers = ops.argmax(numbers, 1):astype(ms.int32) end
  return local_privacy().estimate_counts(numbers, classes, self.eps)
end

local EmbeddingDP = class.define(nil, "EmbeddingDP", "eps=nil, seed=nil", [[Embeddings as bits, 1 where an element is above 0, each told
as it is with probability 1 / (1 + exp(-eps / 2)) and else as the other: what a follower sends instead of its numbers. eps is that of two
bits, as of an embedding that is a unary code; an embedding of k bits that may all differ costs k eps / 2. Without eps the bits are sent
as they are, 1 bit of quantisation. seed: for tests.

  > ms.federated.EmbeddingDP(80.0)(ms.tensor { { 0.5, -0.5 } }):tolist()[1][1] --> 1.0]])
privacy.EmbeddingDP = EmbeddingDP

function EmbeddingDP:setup(a)
  if a.eps ~= nil then self.eps = check.number_not_negative("EmbeddingDP", "eps", a.eps) + 0.0 end
  if a.seed ~= nil then check.not_negative("EmbeddingDP", "seed", a.seed) end
  self._seed, self._calls = a.seed, 0
end

--- Private bits, 0 and 1, in the shape and the dtype of embedding.
---     > ms.federated.EmbeddingDP()(ms.tensor { 2.0, -1.0 }):tolist()[2] --> 0.0
function EmbeddingDP:__call(embedding)
  if not ms.is_tensor(embedding) or not ops.is_floating_point(embedding) then
    fail("EmbeddingDP", "embedding must be a floating tensor, got " .. describe(embedding))
  end
  if self.eps == nil or embedding.size == 0 then return ops.greater(embedding, 0):astype(embedding.dtype) end
  self._calls = self._calls + 1
  local seed = self._seed and self._seed + (self._calls - 1) * 1000003
  return local_privacy().embedding(embedding, self.eps, { seed = seed })
end

return privacy
