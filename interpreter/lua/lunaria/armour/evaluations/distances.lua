-- Distances of pictures: structural similarity, signal to noise, lengths as shares of the clean picture's own.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local given = require "lunaria.armour.evaluations.given"

local ops = ms.ops
local fail, check = arguments.fail, arguments.check

local distances = {}

-- The side of the window in which structures are compared, as Wang et al. (2004) have it for a uniform window.
local window = 7

--- The structural similarity of each pair of pictures: a tensor (N,) of float64, 1 where they are equal. x and y: tensors (N, H, W) or
--- (N, C, H, W) with sides of at least 7 pixels. Options: data_range=2 (the largest value less the least one that a picture can have; 2 is
--- what MindArmour takes, 1 is right for pictures from 0 to 1). Means, variances (of samples, over n - 1) and covariances are those of
--- uniform windows of 7 x 7 pixels that lie in the picture, for each channel. Source: Wang et al. 2004.
---     > x = ms.rand { 1, 8, 8 }
---     > ms.armour.evaluations.ssim(x, x):item() --> 1.0
function distances.ssim(x, y, options)
  local where = "ssim"
  options = arguments.options(where, options, { data_range = "number" }, "{ data_range = 1 }")
  x, y = given.pair(where, "x", x, "y", y)
  if x.ndim ~= 3 and x.ndim ~= 4 then fail(where, ("pictures must be (N, H, W) or (N, C, H, W), got %s"):format(tostring(x.shape))) end
  local height, width = x.shape[x.ndim - 1], x.shape[x.ndim]
  if height < window or width < window then
    fail(where, ("pictures must have at least %d x %d pixels, got %d x %d"):format(window, window, height, width))
  end
  local range = check.number_positive(where, "data_range", options.data_range or 2.0)
  local count = x.shape[1]
  x, y = x:reshape { -1, 1, height, width }, y:reshape { -1, 1, height, width }
  local function mean(z) return ops.avg_pool2d(z, window, 1) end
  local n = window * window
  local sample = n / (n - 1)
  local mx, my = mean(x), mean(y)
  local vx, vy, vxy = (mean(x * x) - mx * mx) * sample, (mean(y * y) - my * my) * sample, (mean(x * y) - mx * my) * sample
  local c1, c2 = (0.01 * range) ^ 2, (0.03 * range) ^ 2
  local map = (2 * mx * my + c1) * (2 * vxy + c2) / ((mx * mx + my * my + c1) * (vx + vy + c2))
  return ops.mean(map:reshape { count, -1 }, 1)
end

--- The ratio of signal and noise of each pair of pictures in decibels: a tensor (N,) of float64, infinite where they are equal. x and y:
--- tensors (N, ...). Options: data_range=1 (the largest value less the least one that a picture can have).
---     > ms.armour.evaluations.psnr(ms.zeros { 1, 4 }, ms.full({ 1, 4 }, 0.1)):item() - 20 < 1e-5 --> true
function distances.psnr(x, y, options)
  local where = "psnr"
  options = arguments.options(where, options, { data_range = "number" }, "{ data_range = 1 }")
  x, y = given.pair(where, "x", x, "y", y)
  local range = check.number_positive(where, "data_range", options.data_range or 1.0)
  return 10 * ops.log10(range ^ 2 / ops.mean(ops.square(x - y):reshape { x.shape[1], -1 }, 1))
end

-- As MindArmour has it, so that a picture of zeros gives a number.
local least_length = 1e-14

--- The distances of clean and changed samples as shares of the clean one's own norms: three tensors (N,) of float64, for the norms 0 (how
--- many elements differ), 2 and infinity. x, y: tensors (N, ...).
---     > x, y = ms.tensor { { 1.0, 1.0, 0.0, 2.0 } }, ms.tensor { { 1.0, 1.5, 0.0, 2.0 } }
---     > l0, l2, linf = ms.armour.evaluations.relative_distances(x, y)
---     > linf:item() --> 0.25
function distances.relative_distances(x, y)
  x, y = given.pair("relative_distances", "x", x, "y", y)
  x, y = x:reshape { x.shape[1], -1 }, y:reshape { y.shape[1], -1 }
  local norms = {
    function(z) return ops.sum(ops.not_equal(z, 0):astype(ms.float64), 1) end,
    function(z) return ops.sqrt(ops.sum(z * z, 1)) end,
    function(z) return ops.amax(ops.abs(z), 1) end,
  }
  local found = {}
  for i, norm in ipairs(norms) do found[i] = norm(y - x) / (norm(x) + least_length) end
  return table.unpack(found)
end

return distances
