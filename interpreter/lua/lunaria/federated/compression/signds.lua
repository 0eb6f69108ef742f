-- SignDS: one sign and a few places of each client, privately.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local core = require "lunaria.federated_compression"
local quantized = require "lunaria.federated.compression.quantized"

local fail, check, describe = arguments.fail, arguments.check, arguments.describe
local M = {}

local SignDS = class.define(nil, "SignDS", "size, sign_k=0.01, sign_eps=100.0, sign_thr_ratio=0.6, sign_dim_out=0, sign_global_lr=0.1",
  [[Updates of one sign and a few places, each differentially private at its client (Jiang, Zhou and Grossklags 2022): places whose change
is among the largest in the direction of the sign are likelier, by the exponential mechanism over how many of the sent ones are. size:
elements of the vector. sign_k: the share of places that count as large, above 0 and at most 0.25. sign_eps: the epsilon of one update,
above 0 and at most 100; 100 protects nothing. sign_thr_ratio: as many places are sent as keep the expected share of large ones at this
ratio, from 0.5 to 1. sign_dim_out: how many are sent instead, 1 to 50; 0: by the ratio. sign_global_lr: the step of the model per vote of
all clients. Fields: top (large places), sent, threshold, probabilities (of how many of the sent places are large), expected_share.

  > rule = ms.federated.compression.SignDS { size = 1000, sign_k = 0.1, sign_eps = 5.0 }
  > rule.sent, rule.threshold, ("%.4f"):format(rule.expected_share) --> 2	2	0.6343]])
SignDS._called = "codec"
M.SignDS = SignDS

function SignDS:setup(a)
  local where = "SignDS"
  self.size = check.positive(where, "size", a.size)
  self.k, self.epsilon = check.number(where, "sign_k", a.sign_k) + 0.0, check.number(where, "sign_eps", a.sign_eps) + 0.0
  self.threshold_ratio = check.number(where, "sign_thr_ratio", a.sign_thr_ratio) + 0.0
  self.most_sent = check.not_negative(where, "sign_dim_out", a.sign_dim_out)
  self.lr = check.number_positive(where, "sign_global_lr", a.sign_global_lr) + 0.0
  for name, value in pairs(core.signds_plan(self)) do self[name] = value end
end

--- A change as a text. x: a tensor (size,) of float32 or float64. Options: seed, of the draws; without one they come from the system's
--- cryptographic generator, as privacy needs it.
---     > rule = ms.federated.compression.SignDS { size = 100, sign_k = 0.1, sign_eps = 5.0 }
---     > #rule:compress(ms.randn(100)) < 20 --> true
function SignDS:compress(x, options)
  local o = arguments.options("compress", options, { seed = "number" }, "{ seed = 1 }")
  return core.signds_write(self, quantized.vector("compress", x), o.seed and check.integer("compress", "seed", o.seed))
end

--- The sign (1 or -1) and the places (an int64 tensor in ascending order) of a text. bytes: of compress.
---     > rule = ms.federated.compression.SignDS { size = 100, sign_k = 0.1, sign_eps = 5.0 }
---     > sign, places = rule:read(rule:compress(ms.randn(100), { seed = 1 }))
---     > math.abs(sign), places.size == rule.sent --> 1	true
function SignDS:read(bytes)
  if type(bytes) ~= "string" then fail("read", "bytes must be a text, got " .. describe(bytes)) end
  return core.signds_read(self, bytes)
end

--- The step of the model: sign_global_lr times the mean over the clients of sign at the places, a float64 tensor (size,). texts: a list of
--- what compress gave.
---     > rule = ms.federated.compression.SignDS { size = 100, sign_k = 0.1, sign_eps = 5.0 }
---     > rule:aggregate({ rule:compress(ms.randn(100)) }).shape --> (100,)
function SignDS:aggregate(texts)
  if type(texts) ~= "table" or #texts == 0 then fail("aggregate", "texts must be a list of texts, got " .. describe(texts)) end
  local votes = ms.ops.zeros({ self.size }, ms.float64)
  for _, text in ipairs(texts) do
    local sign, places = self:read(text)
    votes[places] = votes[places] + sign
  end
  return votes * (self.lr / #texts)
end

return M
