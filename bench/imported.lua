-- Networks that PyTorch exported as ONNX, full size, one sample: beside onnxruntime on the same files, which imported.py
-- has made before a workload is set up.
local harness = require "bench.harness"
local ms = require "lunaria"

for _, name in ipairs { "resnet18", "mobilenet_v2", "gpt2", "bert" } do
  harness.workload(name, { peers = 0.95 }, function()
    local folder = "build/bench/imported/" .. name .. "/"
    local f, _, about = ms.load(folder .. "model.onnx")
    local inputs, list = ms.load(folder .. "inputs.safetensors"), {}
    for i, input in ipairs(about.inputs) do list[i] = inputs[input.name] end
    return harness.calls(ms.jit(f), table.unpack(list))
  end)
end

harness.serve()
