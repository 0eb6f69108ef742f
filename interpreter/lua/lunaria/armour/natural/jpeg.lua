-- Pictures through JPEG and back: (N, C, H, W) of floats from 0 to 1 with 1 or 3 channels. What the format loses has no gradient.
local ms = require "lunaria"
local fail = require "lunaria.nn.arguments".fail

local ops = ms.ops

return function(where, x, quality)
  local channels = x.shape[2]
  if channels ~= 1 and channels ~= 3 then
    fail(where, ("JPEG holds pictures of 1 or 3 channels, got %d"):format(channels))
  end
  local vision, list = ms.dataset.vision, {}
  -- The format is read and written in the host's memory.
  local all = ops.floor(ops.clamp(x, 0.0, 1.0) * 255 + 0.5):astype(ms.uint8):to("CPU")
  for n = 0, x.shape[1] - 1 do
    local bytes = all[n]
    -- A grey picture is three equal channels, of which JPEG keeps the lightness.
    if channels == 1 then bytes = ops.broadcast_to(bytes, { 3, x.shape[3], x.shape[4] }) end
    local back = vision.Decode()(vision.encode_jpeg(bytes:transpose({ 1, 2, 0 }):contiguous(), quality))
    back = back:astype(x.dtype):transpose { 2, 0, 1 } / 255
    list[n + 1] = channels == 1 and ops.mean(back, 0, true) or back
  end
  return ops.stack(list, 0):to(x.device)
end
