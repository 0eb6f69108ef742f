-- ms.boost: algorithms that make training faster or better.
local parts = require "lunaria.parts"

return parts("ms.boost", "name", {
  { "lunaria.boost.adasum", "AdaSum adasum" },
  { "lunaria.boost.dim_reduce", "DimReduce flat pca" },
  { "lunaria.boost.freeze", "BoostTrainOneStepCell FreezeOpt GradientFreeze freeze_cell" },
  { "lunaria.boost.average", "EMA SWA" },
  { "lunaria.boost.less_bn", "CommonHeadLastFN LessBN" },
  { "lunaria.boost.auto", "AutoBoost GradientAccumulation" },
})
