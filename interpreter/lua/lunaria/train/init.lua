-- ms.train: metrics, Model, callbacks.
return require "lunaria.parts" ("ms.train", "name", {
  { "lunaria.train.metrics", [[Accuracy BleuScore ConfusionMatrix ConfusionMatrixMetric CosineSimilarity Dice F1 Fbeta
    HausdorffDistance Loss MAE MSE MeanSurfaceDistance Metric Perplexity Precision ROC Recall RootMeanSquareDistance
    Top1CategoricalAccuracy Top5CategoricalAccuracy TopKCategoricalAccuracy auc get_metric_fn get_metrics names
    rearrange_inputs]] },
  { "lunaria.train.callbacks", [[Callback EarlyStopping History LambdaCallback LearningRateScheduler LossMonitor ReduceLROnPlateau
    RunContext TimeMonitor]], of = "classes" },
  { "lunaria.train.saving_callbacks", "BackupAndRestore CheckpointConfig ModelCheckpoint OnRequestExit" },
  { "lunaria.train.summary_reader", "SummaryReader" },
  { "lunaria.train.summary_record", "SummaryRecord" },
  { "lunaria.train.summary_collector", "SummaryCollector" },
  { "lunaria.train.summary_landscape", "SummaryLandscape" },
  { "lunaria.train.model", "Model", whole = true },
})
