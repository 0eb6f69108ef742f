-- Elementwise operators, broadcasts, reductions, normalisations and transposes on 16 K and on 4 M elements: at least as fast
-- as the fastest framework, and within 10 % of what the memory gives where that is the limit.
local harness = require "bench.harness"
local ops = require "lunaria".ops

local calls = harness.calls
local frameworks = { peers = 1 }
local bandwidth = { peers = 1, bandwidth = 0.9 }

-- Each returns the calls to make: x and y are matrices, v a row.
local workloads = {
  { "add", bandwidth, function(x, y) return calls(ops.add, x, y) end },
  { "add_row", bandwidth, function(x, _, v) return calls(ops.add, x, v) end },
  { "relu", bandwidth, function(x) return calls(ops.relu, x) end },
  { "exp", frameworks, function(x) return calls(ops.exp, x) end },
  { "tanh", frameworks, function(x) return calls(ops.tanh, x) end },
  { "sigmoid", frameworks, function(x) return calls(ops.sigmoid, x) end },
  { "gelu_erf", frameworks, function(x) return calls(ops.gelu, x) end },
  { "gelu_tanh", frameworks, function(x) return calls(ops.gelu, x, { approximate = "tanh" }) end },
  { "sum", bandwidth, function(x) return calls(ops.sum, x) end },
  { "sum_axis0", bandwidth, function(x) return calls(ops.sum, x, 0) end },
  { "sum_axis1", bandwidth, function(x) return calls(ops.sum, x, 1) end },
  { "softmax", frameworks, function(x) return calls(ops.softmax, x, 1) end },
  { "layer_norm", frameworks, function(x, _, v, columns)
    return calls(ops.layer_norm, x, { normalized_shape = { columns }, weight = v, bias = v })
  end },
  { "transpose", frameworks, function(x)
    return function(n) for _ = 1, n do ops.transpose(x, { 1, 0 }):contiguous() end end
  end },
  { "chain", frameworks, function(x)
    return function(n) for _ = 1, n do local _ = ops.tanh(x * 1.5 + 0.25) * ops.sigmoid(x) + x end end
  end },
}

for _, size in ipairs({ { "16K", 16, 1024 }, { "4M", 4096, 1024 } }) do
  local label, rows, columns = table.unpack(size)
  for _, workload in ipairs(workloads) do
    local name, bars, make = table.unpack(workload)
    -- 16 K elements lie in the cache, where there is no memory to be measured against.
    harness.workload(name .. "_" .. label, label == "4M" and bars or frameworks, function()
      return make(ops.randn({ rows, columns }), ops.randn({ rows, columns }), ops.randn({ columns }), columns)
    end)
  end
end

harness.serve()
