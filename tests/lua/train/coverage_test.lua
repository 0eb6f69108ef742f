-- The public names of MindSpore's optimizers, schedules, metrics, callbacks, mixed precision and checkpoints that an everyday program
-- or a practitioner expects (those of layers are in tests/lua/nn/coverage_test.lua): all of them are there.
-- Eager mode only: nothing here is called often enough to be compiled.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"

local areas = {
  { "optimizers", { ms.nn }, [[Adam AdamWeightDecay Momentum Optimizer SGD ASGD AdaFactor AdaMax Adadelta Adagrad FTRL LARS Lamb LazyAdam
    ProximalAdagrad RMSProp Rprop thor]] },
  { "mint optimizers", { ms.mint.optim }, "Adam AdamW SGD FusedAdamW" },
  { "experimental optimizers", { ms.experimental.optim }, "Adagrad Adam AdamW NAdam RAdam RMSprop SGD" },
  { "schedules", { ms.nn, ms.experimental.optim.lr_scheduler }, [[CosineDecayLR ExponentialDecayLR PolynomialDecayLR WarmUpLR
    cosine_decay_lr exponential_decay_lr piecewise_constant_lr InverseDecayLR NaturalExpDecayLR inverse_decay_lr natural_exp_decay_lr
    polynomial_decay_lr warmup_lr CosineAnnealingLR CyclicLR ExponentialLR LambdaLR LinearLR MultiStepLR ReduceLROnPlateau StepLR
    ConstantLR CosineAnnealingWarmRestarts LRScheduler MultiplicativeLR PolynomialLR SequentialLR]] },
  { "metrics", { ms.train }, [[Accuracy F1 Loss MAE MSE Metric Precision Recall Top1CategoricalAccuracy Top5CategoricalAccuracy BleuScore
    ConfusionMatrix ConfusionMatrixMetric CosineSimilarity Dice Fbeta Perplexity ROC TopKCategoricalAccuracy auc get_metric_fn
    rearrange_inputs get_metrics HausdorffDistance MeanSurfaceDistance RootMeanSquareDistance]] },
  { "callbacks", { ms.train }, [[Callback CheckpointConfig LossMonitor ModelCheckpoint RunContext TimeMonitor BackupAndRestore
    EarlyStopping History LambdaCallback LearningRateScheduler OnRequestExit ReduceLROnPlateau SummaryCollector]] },
  { "Model", { ms.Model }, "train eval fit predict build infer_predict_layout" },
  { "wrappers", { ms.nn }, [[TrainOneStepCell WithEvalCell WithGradCell WithLossCell DistributedGradReducer DynamicLossScaleUpdateCell
    FixedLossScaleUpdateCell ForwardValueAndGrad GradAccumulationCell MicroBatchInterleaved ParameterUpdate PipelineCell TimeDistributed
    TrainOneStepWithLossScaleCell]] },
  { "mixed precision", { ms.amp }, [[DynamicLossScaler StaticLossScaler all_finite auto_mixed_precision DynamicLossScaleManager
    FixedLossScaleManager LossScaleManager LossScaler build_train_network custom_mixed_precision get_black_list get_white_list]] },
  { "boost", { ms.boost }, [[AdaSum AutoBoost DimReduce GradientAccumulation GradientFreeze LessBN freeze_cell BoostTrainOneStepCell
    FreezeOpt]] },
  { "probability", { ms.nn.probability.distribution, ms.nn.probability.bijector, ms.nn.probability.bnn_layers }, [[Bernoulli Beta
    Categorical Distribution Exponential Gamma Laplace LogNormal Normal Poisson TransformedDistribution Uniform Bijector ScalarAffine
    Cauchy Geometric Gumbel HalfNormal Logistic StudentT Exp GumbelCDF Invert PowerTransform Softplus ConvReparam DenseLocalReparam
    DenseReparam NormalPosterior NormalPrior WithBNNLossCell]] },
  { "checkpoints", { ms }, [[save_checkpoint load_checkpoint load_param_into_net load ckpt_to_safetensors safetensors_to_ckpt
    load_checkpoint_async export]] },
}

local total, there = 0, 0
for _, area in ipairs(areas) do
  local title, tables, names = table.unpack(area)
  t.test(title .. " are there", function()
    local missing, count = {}, 0
    for name in names:gmatch "%S+" do
      count = count + 1
      local found = false
      for _, from in ipairs(tables) do
        local ok, value = pcall(function() return from[name] end)
        found = found or ok and value ~= nil
      end
      if not found then missing[#missing + 1] = name end
    end
    total, there = total + count, there + count - #missing
    print(("%-24s %3d of %3d%s"):format(title, count - #missing, count, #missing > 0 and ", missing: " .. table.concat(missing, " ") or ""))
    t.equal(table.concat(missing, " "), "")
  end)
end
print(("%-24s %3d of %3d"):format("all", there, total))

t.finish()
