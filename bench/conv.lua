-- Convolutions of LeNet and ResNet: within 5 % of oneDNN called directly with the same task, plain NCHW in and out
-- (onednn_direct.cpp says what that includes).
local harness = require "bench.harness"
local ops = require "lunaria".ops

-- name, batch, input channels, input size, output channels, kernel size, stride, padding
local shapes = {
  { "lenet1", 32, 1, 32, 6, 5, 1, 0 },
  { "lenet2", 32, 6, 14, 16, 5, 1, 0 },
  { "resnet_first", 4, 3, 224, 64, 7, 2, 3 },
  { "resnet_3x3_64", 8, 64, 56, 64, 3, 1, 1 },
  { "resnet_1x1_256_64", 8, 256, 56, 64, 1, 1, 0 },
  { "resnet_3x3_128_s2", 8, 128, 56, 128, 3, 2, 1 },
  { "resnet_3x3_512", 8, 512, 7, 512, 3, 1, 1 },
}

for _, shape in ipairs(shapes) do
  local name, batch, channels, size, out_channels, kernel, stride, padding = table.unpack(shape)
  harness.workload(name, { peers = 1, onednn = 0.95 }, function()
    local x, w = ops.randn({ batch, channels, size, size }), ops.randn({ out_channels, channels, kernel, kernel })
    return harness.calls(ops.conv2d, x, w, { stride = stride, pad_mode = "pad", padding = padding })
  end)
end

harness.serve()
