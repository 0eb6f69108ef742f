-- The promises of the simulated Ascend where it differs from the CPU, for ops.lua --rules and training.lua --rules.
-- Products take their operands as float16: each is off by 2^-11 of itself at most, so that what a sum of products is off by
-- goes with the sum of their magnitudes. Tolerances of such operators, and of those that are made of them, are parts of the
-- largest element of what is expected; all other operators keep the tolerances of the set.
local product, twice, solved = 2 ^ -9, 2 ^ -8, 2 ^ -6

return {
  -- Infinities become the largest number of the dtype, and NaN becomes 0.
  saturates = true,
  of_largest = {
    matmul = product, mm = product, bmm = product, mv = product, dense = product, inner = product, tensor_dot = product,
    addmm = product, addmv = product, addbmm = product, baddbmm = product, einsum = product, dot = product, outer = product,
    kron = product, conv1d = product, conv2d = product, conv3d = product, unfold = product, fold = product,
    interpolate = twice,
    conv_transpose2d = product, adaptive_avg_pool1d = product, adaptive_avg_pool2d = product, grid_sample = product,
    bidense = twice, flash_attention_score = twice, matrix_power = twice, inverse = solved,
    -- Layers, by the products that follow one another in them.
    Dense = product, Conv2d = product, Conv2dTranspose = product, RNN = twice, GRU = twice, LSTM = twice, MultiheadAttention = twice,
  },
  -- Losses of training runs, as parts of themselves. One run is near a tie: Adam divides gradients by their size, so that what
  -- float16 leaves of small ones counts as much as large ones.
  training = 2 ^ -10,
  runs = { ["lenet.AdamW"] = 2 ^ -7 },
}
