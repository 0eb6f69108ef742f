-- The variational autoencoder (Kingma, Welling 2014): an encoder gives the mean and the spread of a code, a decoder makes a
-- picture of a code drawn from them. The gradient goes through the draw, which is mean + spread * noise.
local ms = require "lunaria"
local nn, ops = ms.nn, ms.ops

local VAE = nn.Cell:extend("VAE")

function VAE:init(size, hidden, code)
  self.fc1 = nn.Dense(size, hidden)
  self.fc21 = nn.Dense(hidden, code)
  self.fc22 = nn.Dense(hidden, code)
  self.fc3 = nn.Dense(code, hidden)
  self.fc4 = nn.Dense(hidden, size)
end

--- The mean and the logarithm of the variance of the code.
function VAE:encode(x)
  local h = ops.relu(self.fc1(x))
  return self.fc21(h), self.fc22(h)
end

--- Scores of the picture's points; their sigmoid is the picture.
function VAE:decode(z) return self.fc4(ops.relu(self.fc3(z))) end

-- pictures (batch, size) between 0 and 1 -> scores, mean and logarithm of the variance
function VAE:construct(x)
  local mean, log_variance = self:encode(x)
  local z = mean + ops.exp(0.5 * log_variance) * ops.standard_normal(mean.shape)
  return self:decode(z), mean, log_variance
end

--- How badly a batch is told, and how far the codes are from the standard normal distribution, per picture.
function VAE:loss(x)
  local scores, mean, log_variance = self(x)
  local told = ops.binary_cross_entropy_with_logits(scores, x, nil, nil, "sum")
  local divergence = -0.5 * ops.sum(1.0 + log_variance - mean ^ 2 - ops.exp(log_variance))
  return (told + divergence) / x:sizes(0)
end

local M = {}

--- The network of the usual MNIST example, or of other sizes.
function M.vae(size, hidden, code) return VAE(size or 784, hidden or 400, code or 20) end

return M
