-- The names that MindSpore's users know: layers, losses, initializers, the interface of cells, optimizers and schedules. Each
-- exists, says what it is and has an example; the number of names is printed.
-- Eager mode only: nothing here is called often enough to be compiled.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local entries = require "lunaria.help.entries"

local wanted = {
  ["ms.nn"] = [[
    AdaptiveAvgPool2d AvgPool2d BatchNorm1d BatchNorm2d Cell CellDict CellList ClipByNorm Conv1d Conv2d Conv2dTranspose
    Dense Dropout ELU Embedding Flatten GELU GroupNorm Identity LSTM LayerNorm LeakyReLU Linear LogSoftmax MaxPool2d Pad
    ReLU ReLU6 SequentialCell SiLU Sigmoid Softmax Tanh AdaptiveAvgPool1d AdaptiveAvgPool3d AdaptiveMaxPool2d AvgPool1d
    AvgPool3d BatchNorm3d BiDense CELU ConstantPad2d Conv1dTranspose Conv2dBnAct Conv3d Conv3dTranspose DenseBnAct Dropout1d
    Dropout2d Dropout3d EmbeddingLookup GLU GRU GRUCell GraphCell HShrink HSigmoid HSwish Hardtanh InstanceNorm1d
    InstanceNorm2d InstanceNorm3d Jvp LRN LSTMCell LogSigmoid MaxPool1d MaxPool3d MaxUnpool2d Mish MultiheadAttention PReLU
    PixelShuffle PixelUnshuffle RNN RNNCell ReflectionPad2d ReplicationPad2d SeLU SoftShrink Softmin Softsign SyncBatchNorm
    Threshold Transformer TransformerDecoder TransformerDecoderLayer TransformerEncoder TransformerEncoderLayer Unflatten
    Unfold Upsample Vjp ZeroPad2d BCELoss BCEWithLogitsLoss CrossEntropyLoss KLDivLoss L1Loss LossBase MSELoss NLLLoss
    SmoothL1Loss SoftmaxCrossEntropyWithLogits CTCLoss CosineEmbeddingLoss DiceLoss FocalLoss GaussianNLLLoss
    HingeEmbeddingLoss HuberLoss MAELoss MarginRankingLoss MultiClassDiceLoss RMSELoss TripletMarginLoss ChannelShuffle
    RReLU Softmax2d]],
  ["Cell"] = [[
    construct set_train set_grad to_float parameters_dict get_parameters trainable_params untrainable_params cells
    cells_and_names name_cells parameters_and_names insert_param_to_cell insert_child_to_cell update_parameters_name
    requires_grad apply register_forward_hook register_forward_pre_hook register_backward_hook recompute shard set_inputs
    bprop compile auto_prefix]],
  ["ms.common.initializer"] = [[
    Constant HeNormal HeUniform Normal One TruncatedNormal Uniform XavierNormal XavierUniform Zero initializer Dirac
    Identity Initializer Orthogonal Sparse VarianceScaling]],
}

local count = 0
for place, names in pairs(wanted) do
  t.test("names of " .. place, function()
    local library = ms
    for part in place:gmatch "[^%.]+" do
      if part ~= "ms" then library = part == "Cell" and ms.nn.Cell or library[part] end
    end
    local missing, silent = {}, {}
    for name in names:gmatch "%S+" do
      local ok, value = pcall(function() return library[name] end)
      count = count + 1
      if not ok or value == nil then
        missing[#missing + 1] = name
      else
        local entry = entries.names()[place .. "." .. name] or entries.of(value)
        -- The text about cells speaks of their fields.
        local told = place == "Cell" and type(value) == "boolean" and ms.nn.Cell._doc:find(name, 1, true)
        if not told and not (entry and entry.doc:find "%S" and #entry.examples > 0) then silent[#silent + 1] = name end
      end
    end
    t.equal(missing, {})
    t.equal(silent, {})
  end)
end
print(count .. " names")
t.finish()
