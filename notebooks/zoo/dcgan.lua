-- DCGAN (Radford et al. 2016) for pictures of 64 x 64: a generator makes pictures of noise, a discriminator tells them from
-- real ones; each is trained against the other.
local ms = require "lunaria"
local nn, ops = ms.nn, ms.ops

local small = ms.common.initializer.Normal(0.02)

local function down(from, to) return nn.Conv2d(from, to, 4, { stride = 2, pad_mode = "pad", padding = 1, weight_init = small }) end
local function up(from, to) return nn.Conv2dTranspose(from, to, 4, { stride = 2, pad_mode = "pad", padding = 1, weight_init = small }) end

local M = {}

--- noise (batch, 100, 1, 1) -> pictures (batch, channels, 64, 64) between -1 and 1
function M.generator(width, channels, noise)
  width = width or 64
  local first = nn.Conv2dTranspose(noise or 100, 8 * width, 4, { pad_mode = "pad", weight_init = small })
  local cells = { first, nn.BatchNorm2d(8 * width), nn.ReLU() }
  for i = 3, 1, -1 do
    local to = width << i - 1
    for _, cell in ipairs { up(2 * to, to), nn.BatchNorm2d(to), nn.ReLU() } do cells[#cells + 1] = cell end
  end
  cells[#cells + 1], cells[#cells + 2] = up(width, channels or 3), nn.Tanh()
  return nn.SequentialCell(cells)
end

--- pictures -> a score (batch), positive where they seem real
function M.discriminator(width, channels)
  width = width or 64
  local cells = { down(channels or 3, width), nn.LeakyReLU(0.2) }
  for i = 1, 3 do
    local to = width << i
    for _, cell in ipairs { down(to // 2, to), nn.BatchNorm2d(to), nn.LeakyReLU(0.2) } do cells[#cells + 1] = cell end
  end
  cells[#cells + 1] = nn.Conv2d(8 * width, 1, 4, { pad_mode = "valid", weight_init = small })
  cells[#cells + 1] = nn.Flatten(0)
  return nn.SequentialCell(cells)
end

-- The loss of scores of which all should be `label`.
local function against(scores, label)
  return ops.binary_cross_entropy_with_logits(scores, ops.full_like(scores, label))
end

--- A function of real pictures and noise that trains both once and gives the losses of discriminator and generator.
function M.trainer(generator, discriminator, rate)
  local function adam(net) return nn.Adam(net:trainable_params(), rate or 2e-4, { beta1 = 0.5 }) end
  local optimizer_d, optimizer_g = adam(discriminator), adam(generator)
  local judge = ms.value_and_grad(function(real, made)
    return against(discriminator(real), 1.0) + against(discriminator(made), 0.0)
  end, { weights = discriminator:trainable_params() })
  local forge = ms.value_and_grad(function(noise)
    return against(discriminator(generator(noise)), 1.0)
  end, { weights = generator:trainable_params() })
  return function(real, noise)
    local loss_d, grads_d = judge(real, ops.stop_gradient(generator(noise)))
    optimizer_d(grads_d)
    local loss_g, grads_g = forge(noise)
    optimizer_g(grads_g)
    return loss_d, loss_g
  end
end

return M
