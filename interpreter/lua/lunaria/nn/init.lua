-- ms.nn: cells, layers, losses, optimizers.
local parts = require "lunaria.parts"

return parts("ms.nn", "layer", {
  { "lunaria.nn.cell", "Cell" },
  { "lunaria.nn.activation", "get_activation" },
  { "lunaria.nn.activation", [[CELU ELU FastGelu GELU GLU HShrink HSigmoid HSwish Hardtanh Identity LeakyReLU LogSigmoid LogSoftmax
    Mish PReLU RReLU ReLU ReLU6 SeLU SiLU Sigmoid SoftShrink Softmax Softmax2d Softmin Softsign Tanh Tanhshrink
    Threshold]], of = "classes" },
  { "lunaria.nn.basic", "BiDense ClipByNorm Dense Embedding EmbeddingLookup Flatten Linear Pad Unflatten" },
  { "lunaria.nn.dropout", "Dropout Dropout1d Dropout2d Dropout3d" },
  { "lunaria.nn.padding", [[ConstantPad1d ConstantPad2d ConstantPad3d ReflectionPad1d ReflectionPad2d ReflectionPad3d
    ReplicationPad1d ReplicationPad2d ReplicationPad3d ZeroPad2d]] },
  { "lunaria.nn.picture", "ChannelShuffle PixelShuffle PixelUnshuffle Unfold Upsample" },
  { "lunaria.nn.combined", "Conv2dBnAct DenseBnAct" },
  { "lunaria.nn.derivative", "GraphCell Jvp Vjp" },
  { "lunaria.nn.container", "CellDict CellList SequentialCell" },
  { "lunaria.nn.conv", "Conv1d Conv1dTranspose Conv2d Conv2dTranspose Conv3d Conv3dTranspose" },
  { "lunaria.nn.pool", [[AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveMaxPool1d AdaptiveMaxPool2d
    AdaptiveMaxPool3d AvgPool1d AvgPool2d AvgPool3d LPPool1d LPPool2d MaxPool1d MaxPool2d MaxPool3d MaxUnpool1d MaxUnpool2d
    MaxUnpool3d]] },
  { "lunaria.nn.norm", [[BatchNorm1d BatchNorm2d BatchNorm3d GroupNorm InstanceNorm1d InstanceNorm2d InstanceNorm3d LRN LayerNorm
    SyncBatchNorm]] },
  { "lunaria.nn.loss", [[BCELoss BCEWithLogitsLoss CosineEmbeddingLoss CrossEntropyLoss HuberLoss KLDivLoss L1Loss LossBase MAELoss
    MSELoss NLLLoss SmoothL1Loss SoftMarginLoss SoftmaxCrossEntropyWithLogits]] },
  { "lunaria.nn.loss_more", [[CTCLoss DiceLoss FocalLoss GaussianNLLLoss HingeEmbeddingLoss MarginRankingLoss MultiClassDiceLoss
    RMSELoss TripletMarginLoss]] },
  { "lunaria.nn.loss_margins",
    "MultiLabelSoftMarginLoss MultiMarginLoss MultilabelMarginLoss PoissonNLLLoss TripletMarginWithDistanceLoss" },
  { "lunaria.nn.recurrent", "GRU GRUCell LSTM LSTMCell RNN RNNCell" },
  { "lunaria.nn.transformer", "MultiheadAttention" },
  { "lunaria.nn.transformer_layers",
    "Transformer TransformerDecoder TransformerDecoderLayer TransformerEncoder TransformerEncoderLayer" },
  { "lunaria.nn.language", "BlockDense BlockEmbedding KVCache RMSNorm RotaryEmbedding" },
  { "lunaria.nn.experts", "MixtureOfExperts" },
  { "lunaria.nn.row_table", "RowTable" },
  { "lunaria.nn.ring_attention", "RingAttention" },
  { "lunaria.lite.language.lora", "LoRADense", of = "classes" },
  { "lunaria.nn.wrap", "TrainOneStepCell WithEvalCell WithGradCell WithLossCell" },
  { "lunaria.nn.loss_scale", [[DistributedGradReducer DynamicLossScaleUpdateCell FixedLossScaleUpdateCell ForwardValueAndGrad
    GradAccumulationCell GradientAccumulation MicroBatchInterleaved ParameterUpdate PipelineCell
    TimeDistributed TrainOneStepWithLossScaleCell]] },
  { "lunaria.nn.optim", "Adam AdamW AdamWeightDecay Momentum Optimizer SGD", of = "nn" },
  { "lunaria.nn.optim_more", "AdaMax Adadelta Adagrad RMSProp" },
  { "lunaria.nn.optim_rare", "ASGD AdaFactor FTRL Lamb LazyAdam ProximalAdagrad Rprop", of = "classes" },
  { "lunaria.nn.optim_lars", "LARS" },
  { "lunaria.nn.optim_lbfgs", "LBFGS" },
  { "lunaria.nn.optim_torch", "optim", whole = true },
  { "lunaria.nn.thor", "thor" },
  { "lunaria.nn.schedule", [[CosineDecayLR ExponentialDecayLR InverseDecayLR LearningRateSchedule NaturalExpDecayLR
    PolynomialDecayLR WarmUpLR]], of = "classes" },
  { "lunaria.nn.schedule", [[cosine_decay_lr exponential_decay_lr inverse_decay_lr natural_exp_decay_lr piecewise_constant_lr
    polynomial_decay_lr warmup_lr]], of = "lists" },
  { "lunaria.probability", "probability", whole = true },
}, function(name)
  -- Metrics have been part of nn once, and programs call them so.
  return require "lunaria.train.metrics"[name]
end)
