-- Keywords of entries that are no operators or layers: training, data, files, tools, the prompt (keywords has the others, and the form).
-- luacheck: no max line length
local list = {}
for name, words in ([[
ms.value_and_grad: loss and gradients, value and gradient together, gradient only for some parameters, training step by hand
ms.progress: progress bar
ms.set_num_threads: number of threads, how many threads, use more cores, run in parallel threads, use all cores, how many cpu cores
ms.summary: number of parameters, count the parameters, layers of a network, parameters of each layer, architecture of a network, flops, multiply accumulate operations, macs, model summary, how many parameters, table of layers, overview of a network, model size, count weights, count trainable weights, number of weights, parameter count
%timeit: measure the time, benchmark, how long does a line take, time a piece of code, time a line many times, benchmark a line, how fast is an expression
!COMMAND: run a shell command
ms.grad: gradient of a function, gradient of the input
ms.vjp: vector jacobian product, reverse mode, backward pass of a function
ms.jvp: jacobian vector product, directional derivative, forward mode
ms.vmap: map over a batch, one argument fixed, axis of an argument, function over a batch, vectorize a function, map over the first axis
ms.jit: compile a function, loop inside a compiled function, faster function
ms.jit_report: what was compiled, recompiled every time, why is it not compiled
ms.hessian: second derivatives, matrix of second derivatives, curvature
ms.stop_gradient: without gradient, detach, no gradient, detach a tensor, no gradient through a value
ms.Model: trainer, keras like training
ms.Model:train: train for some epochs, train a network, fit a model, run epochs
ms.Model:fit: train and validate, validation during training, train with validation, validate after each epoch
ms.Model:eval: accuracy on the test set, evaluate on test data, test accuracy
ms.Model:predict: run inference, prediction of new samples, predictions of a model, outputs for new data
ms.save: save a tensor, save an array to disk, save weights, save tensors to a file, write npz, write a tensor to a file, tensor to disk
ms.load: load a tensor, read npz, load a model file, open an onnx file
ms.load_weights: load pretrained weights, weights with other names, weights from huggingface, weights of other frameworks, pretrained weights from a file, import weights
ms.load_param_into_net: copy weights into a network, missing keys, size mismatch of weights
ms.save_checkpoint: save only the weights, save weights, store parameters
ms.load_checkpoint: read a checkpoint, restore weights
ms.export: export a network, onnx file, save a model for other programs
ms.image: show an image, display a tensor as an image, grid of images, show a picture, display an image
ms.initializer: initial weights of a layer, xavier, kaiming
ms.set_seed: same result every run, fix randomness, same random numbers each run, seed
ms.Generator: several random streams
ms.set_device: choose a device, choose the device, where new tensors lie
ms.runtime.devices: is a gpu available, list of devices
ms.runtime.memory_allocated: memory in use, memory used by tensors, how much memory is in use, gpu memory in use
ms.runtime.max_memory_allocated: peak memory, most memory used
ms.profile: time of each operator, how long each operator takes, time of operators, which operator is slow, profile a network
ms.check_grad: test a gradient against differences, verify my gradient, check gradients numerically, gradient check, finite differences
ms.json: read json, write json
ms.lite.quantize: int8 weights, smaller model, eight bit weights
ms.lite.generate: beam search, sampling text, stream tokens, generate text, token by token, complete a prompt, greedy decoding, temperature sampling
ms.lite.load_decoder: load a llama model, hugging face model
ms.lite.serve: rest api, answer requests, model as a service
ms.lite.Tokenizer: encode text, decode tokens, tokens of a language model, byte pair encoding, bpe
ms.insight: tensorboard
ms.boost.EMA: average of the weights, moving average of weights
ms.train.Accuracy: share of right predictions, how many predictions are right, accuracy of a classifier
ms.train.ConfusionMatrix: confusion matrix, which classes are mixed up
ms.train.F1: f1 score of a classifier, f1 score, precision and recall
ms.train.History: losses of each epoch
ms.train.LossMonitor: print the loss, log the loss every n steps, print the loss while training
ms.train.TimeMonitor: time of each epoch, time of an epoch, how long does an epoch take
ms.train.EarlyStopping: stop when validation does not improve, stop training early, patience, loss no longer improves
ms.train.ReduceLROnPlateau: reduce the learning rate on plateau, reduce learning rate when the loss plateaus, learning rate when the loss stops improving, halve the learning rate when nothing improves, lower the learning rate when stuck
ms.train.LearningRateScheduler: change the learning rate during training
ms.train.ModelCheckpoint: save after every epoch, keep the last checkpoints, save the best model, save after each epoch
ms.train.BackupAndRestore: resume an interrupted training
ms.train.Callback: own callback, call a function after each epoch
ms.train.SummaryCollector: record curves of a training, histogram of weights, log weights
ms.dataset.Dataset:batch: batch size, drop the last batch, number of workers, collate, mini batches, group rows into batches
ms.dataset.Dataset:map: apply a transform, preprocess columns, number of workers, apply a function to each sample, transform rows, preprocess samples
ms.dataset.Dataset:filter: keep rows that satisfy, drop rows, keep rows by a condition, remove samples
ms.dataset.Dataset:shuffle: random order of rows, shuffle rows of a data set, shuffle a dataset, mix the order of samples
ms.dataset.Dataset:split: train and test set, random split, hold out validation data
ms.dataset.Dataset:take: first rows of a dataset, subset of a dataset, limit the number of samples, first rows of a data set, small part of a data set, try on a few samples, small data set for a test
ms.dataset.Dataset:skip: leave out the first rows
ms.dataset.Dataset:repeat_: several epochs in one pass, repeat a data set, several passes over the data
ms.dataset.Dataset:zip: two datasets side by side, combine two data sets, data sets side by side
ms.dataset.Dataset:concat: two datasets one after the other, join two data sets, append a data set
ms.dataset.Dataset:padded_batch: pad sequences of a batch, collate function, different lengths, sequences of different lengths in a batch
ms.dataset.Dataset:get_dataset_size: number of batches, length of a dataset, length of a data set, how many rows
ms.dataset.Dataset:create_dict_iterator: batches as tables by column
ms.dataset.Dataset:create_tuple_iterator: loop over batches, loop over a data set, iterate over batches, go through the data
ms.dataset.GeneratorDataset: custom dataset class, own dataset, getitem and len, dataset from a function, data set from a function, own data set, data on the fly, lazy data
ms.dataset.NumpySlicesDataset: dataset of tensors in memory, data set from tensors, tensors as a data set
ms.dataset.WeightedRandomSampler: draw rare classes more often, sample with weights from a data set, oversampling, oversample rare classes, balanced batches
ms.dataset.vision.ToTensor: image to tensor between 0 and 1, picture to tensor, scale pixels to 0 and 1
ms.dataset.vision.Rescale: scale pixels to 0 and 1
ms.dataset.vision.Normalize: subtract the mean of each channel, normalize pixels, subtract the mean of an image, standardize images
ms.dataset.vision.RandomCrop: random crop with padding, crop images at random
ms.dataset.vision.RandomResizedCrop: crop and resize for imagenet
ms.dataset.vision.RandomRotation: random rotation of images, rotate images at random
ms.dataset.vision.Grayscale: image to gray, black and white pictures
ms.dataset.vision.Decode: decode jpeg
ms.dataset.vision.read_image: read an image file, load an image from disk, read a picture, open a jpeg, open a png, image file to tensor
ms.dataset.vision.HWC2CHW: channels first, order of channels
%time: time of one statement, how long does a line take
%who: variables that are defined, list variables, what have I defined
%memit: memory of a statement, memory of an expression, how much memory does a line need
%run: run a script from the prompt, run a file at the prompt
%debug: look at variables after an error, inspect the stack after an exception, post mortem
breakpoint: stop at a line, step through code, pause a program, inspect variables while running
ms.experimental.optim.CosineAnnealingLR: cosine annealing
ms.experimental.optim.CosineAnnealingWarmRestarts: sgdr, warm restarts
ms.experimental.optim.CyclicLR: cyclical learning rate, triangular schedule, one cycle
ms.experimental.optim.LambdaLR: learning rate by a function
ms.experimental.optim.MultiStepLR: milestones, drop the rate at certain epochs
ms.experimental.optim.StepLR: decay the rate every n epochs
ms.experimental.optim.ExponentialLR: rate times gamma each epoch
ms.experimental.optim.SequentialLR: several schedulers one after the other, warmup then decay
ms.experimental.optim.LinearLR: linear warmup
ms.common.initializer.HeNormal: kaiming normal, he initialization
ms.common.initializer.HeUniform: kaiming uniform
ms.common.initializer.XavierNormal: glorot normal
ms.common.initializer.XavierUniform: glorot uniform, xavier initialization
ms.common.initializer.Orthogonal: orthogonal initialization, orthogonal matrix
ms.common.initializer.TruncatedNormal: truncated normal initialization
ms.common.initializer.Constant: constant initialization, bias set to a value
ms.common.initializer.Zero: zero initialization, weights of zeros
ms.common.initializer.Initializer: own initializer, custom initialization
ms.train.TopKCategoricalAccuracy: top k accuracy
ms.train.Top5CategoricalAccuracy: top five accuracy
ms.train.Precision: precision of a classifier, positive predictive value, classification report, false positives
ms.train.Recall: recall of a classifier, sensitivity, true positive rate, false negatives
ms.train.Fbeta: f beta score
ms.train.ConfusionMatrixMetric: sensitivity, specificity, false positive rate
ms.train.ROC: roc curve, receiver operating characteristic, threshold of a classifier
ms.train.auc: area under the roc curve, roc auc score, area under a curve of a classifier
ms.train.MAE: mean absolute error metric, mean absolute error
ms.train.MSE: mean squared error metric, mean squared error of predictions
ms.train.Loss: mean loss of an evaluation
ms.train.Perplexity: perplexity of a language model, perplexity metric, quality of a language model
ms.train.BleuScore: bleu score, quality of translations
ms.train.CosineSimilarity: similarity of rows
ms.train.Dice: dice coefficient, segmentation metric
ms.train.HausdorffDistance: distance of segmentations, surface distance
ms.train.Metric: own metric, custom metric, write a metric
ms.train.get_metric_fn: metric by name
ms.train.names: list of metrics, which metrics are there
ms.train.LambdaCallback: callback of functions, callback without a class
ms.train.CheckpointConfig: how many checkpoints to keep, save every n steps, keep the last checkpoints
ms.train.OnRequestExit: stop gracefully on a signal, preemption, save before being killed, sigterm
ms.train.SummaryRecord: write scalars for tensorboard, summary writer, log a scalar, log an image
ms.train.SummaryReader: read tensorboard files, event files
ms.train.SummaryLandscape: loss landscape
ms.train.SummaryRecord:add_value: log a scalar, add_scalar, add_histogram, add_image
ms.train.SummaryRecord:add_graph: network graph in tensorboard
ms.train.SummaryRecord:add_hparams: log hyperparameters
ms.boost.SWA: stochastic weight averaging, average weights over epochs
ms.boost.AutoBoost: faster training by one setting
ms.boost.AdaSum: adaptive summation of gradients
ms.boost.DimReduce: training in fewer dimensions
ms.boost.pca: principal component analysis, principal components, reduce dimensions
ms.boost.GradientFreeze: freeze layers during training by a schedule
ms.amp: automatic mixed precision, half precision training, mixed precision
ms.amp.auto_mixed_precision: autocast, amp level, network in half precision
ms.amp.DynamicLossScaler: gradient scaler, dynamic loss scaling, grad scaler
ms.amp.StaticLossScaler: fixed loss scale
ms.amp.all_finite: overflow of gradients, are all gradients finite
ms.amp.build_train_network: train network with amp level
ms.amp.custom_mixed_precision: choose which layers are in half precision
ms.checkpoint: gradient checkpointing, activation checkpointing, recompute activations, rematerialization
ms.saved_tensors_hooks: offload activations, pack and unpack saved tensors
ms.custom_vjp: own gradient of a function, custom backward, straight through estimator
ms.jacrev: jacobian in reverse mode, jacobian matrix
ms.jacfwd: jacobian in forward mode, forward mode differentiation
ms.jet: taylor mode, higher derivatives along a curve
ms.derivative: n-th derivative, higher order derivative
ms.linearize: linear approximation, tangent map
ms.data_sink: training step over several batches at once, sink
ms.ir: computation graph as text, intermediate representation, print the graph, visualize the graph, jaxpr
ms.get_seed: which seed
ms.version: which version, version number
ms.run_check: is the installation all right, check the installation, smoke test
ms.no_inline: keep a function apart in a graph
ms.constexpr: compute at compile time, static value
ms.mutable: argument that is no constant
ms.jit_class: class in compiled code
ms.JitConfig: jit level, options of the compiler
ms.Profiler: profile a training, timeline
ms.profiler.tensorboard_trace_handler: profiler trace in tensorboard
ms.profiler.schedule: profile some steps only, warmup steps of the profiler
ms.profiler.mstx: mark ranges in a profile, nvtx
ms.memory_stats: memory in use and its peak
ms.empty_cache: free gpu memory, release cached memory
ms.synchronize: wait for the gpu, wait until the device is done, asynchronous execution, timing on a gpu
ms.runtime.synchronize: wait for the gpu, wait until the device is done
ms.runtime.Stream: cuda stream, several streams
ms.runtime.Event: cuda event, time on a device
ms.runtime.fallbacks: operators that run on the host, not supported on the gpu
ms.runtime.memory_summary: table of memory, memory report, where is memory spent, memory of the device, out of memory
ms.runtime.reset_max_memory_allocated: reset the peak memory
ms.load_torch: pytorch checkpoint, pth file, pt file, pickle file
ms.load_gguf: gguf file, llama.cpp weights
ms.save_gguf: write gguf
ms.load_mindir: import mindir
ms.from_dlpack: zero copy from another framework, share memory
ms.ckpt_to_safetensors: convert checkpoints
ms.obfuscate_model: protect weights, hide weights
ms.load_checkpoint_async: read a checkpoint in the background
ms.async_ckpt_wait: wait until a checkpoint is written
ms.load_distributed_checkpoint: checkpoint of many ranks
ms.input: ask the user, read a line from the user
ms.display: show html, show a value in a notebook, show a table nicely, show a value nicely, rich output
ms.clear_output: clear the output of a cell
ms.widgets.slider: interactive slider, value by mouse
ms.widgets.button: clickable button
ms.plot: charts, figures, matplotlib
ms.plot.line: line plot, curve of values, line chart, plot a curve, draw a function
ms.plot.bar: bar chart, bar plot
ms.plot.hist: histogram plot, draw a histogram
ms.plot.scatter: scatter plot, point cloud, plot points
ms.plot.heatmap: heatmap, show a matrix as colors, show a matrix as colours, confusion matrix as picture
ms.plot.contour: contour lines, level curves, decision boundary
ms.plot.radar: spider chart
ms.plot.image: picture with axes, imshow, show a picture in a plot
ms.insight.first_nan: where does nan come from, find the first nan
ms.insight.watch: watchpoint, watch tensors of a training, find the layer that makes nan, exploding activations, where does the loss become nan
ms.insight.dump: dump tensors of every operator
ms.insight.landscape: loss landscape, loss surface
ms.insight.start: training dashboard, web page of trainings, dashboard, training curves in the browser
ms.insight.runs: list of trainings
ms.insight.read: read the records of a training
ms.insight.substructures: repeated parts of a graph
ms.explain: explainable ai, saliency maps, interpretability, which pixels matter, saliency, feature importance
ms.explain.GradCAM: class activation map, heatmap of a network's attention
ms.explain.Gradient: saliency map, gradient of a class score
ms.explain.Occlusion: hide parts of a picture
ms.explain.IntegratedGradients: attribution
ms.explain.RISE: random masks
ms.lite: models for phones, mobile, edge devices
ms.lite.convert: convert a network to a light model
ms.lite.Distillation: knowledge distillation, teacher and student
ms.lite.quantize_aware: quantization aware training, fake quantization
ms.lite.quantize_trained: finish quantization aware training
ms.lite.prune: remove weights, prune a network, remove small weights, sparse weights, pruning
ms.lite.MagnitudePruning: prune small weights, sparsify
ms.lite.ChannelPruning: prune channels, structured pruning
ms.lite.Trainer: train on a device, on device training
ms.lite.micro: microcontroller, c code of a network, arduino, network for microcontrollers, embedded system
ms.lite.Model: run a light model
ms.lite.add_lora: fine tune a language model, parameter efficient fine tuning
ms.lite.merge_lora: merge adapters into the weights
ms.lite.perplexity: perplexity of a decoder
ms.lite.chat_template: prompt format of a chat model
ms.lite.Sampler: temperature, top p, top k sampling, nucleus sampling
ms.probability.bnn_layers: bayesian neural network, bayesian layers, weight uncertainty, variational inference
ms.probability.distribution: probability distributions, sample and log probability
ms.probability.distribution.Normal: gaussian distribution, log probability of a gaussian, normal distribution probability density, log probability of a normal distribution, density of a gaussian
ms.probability.distribution.Categorical: discrete distribution, policy over actions, draw a class
ms.probability.distribution.TransformedDistribution: normalizing flow, change of variables
ms.probability.bijector: invertible function, normalizing flow, change of variables
ms.CSRTensor: compressed sparse rows, sparse matrix times vector, sparse matrix product
ms.COOTensor: sparse tensor by coordinates
ms.communication.get_rank: number of this process, rank of the process
ms.communication.get_group_size: world size, how many processes
ms.communication.init: init process group, start communication
ms.communication.create_group: process group of some ranks
ms.set_auto_parallel_context: tensor parallel, model parallel, zero optimizer, sharded optimizer, fsdp
ms.AutoParallel: automatic parallel training
ms.shard: tensor parallel, split a function over devices, sharding
ms.mesh: device mesh
ms.distribute: spread a tensor over devices, shard a tensor, lay a tensor out over ranks, split a tensor over devices
ms.reshard: change the layout of a distributed tensor
lunaria launch: torchrun, mpirun, start several processes, nproc per node
lunaria ranks: state of a distributed job, hanging job
lunaria check: lint, linter, static check, find mistakes in a script, pylint, find typos before running, static check of a script
lunaria stubs: autocomplete in an editor, vscode, completion, type annotations, language server, intellisense, completion in the editor, types for the editor
lunaria kernel: jupyter kernel, install the kernel, start jupyter, use in jupyterlab, use lunaria in jupyter, notebook kernel
lunaria lessons: tutorials, beginners, first steps, getting started, examples, course, example notebooks, learn step by step, examples as notebooks
lunaria insight: tensorboard page, dashboard
lunaria --docs: documentation offline, write the reference, generate documentation, reference as html, build the documentation site
lunaria -e: run one line of code, one liner
lunaria -i: stay in the session after a script
lunaria -v: version of the program
lunaria --debug: debug a script
ms.federated.strategies.FedAvg: federated averaging
ms.federated.strategies.FedProx: heterogeneous clients, proximal term
ms.federated.secure: secure aggregation, masked sums, nobody sees a client's update
ms.federated.secure.sum: secure sum
ms.federated.simulate: simulate many clients
ms.federated.partition.dirichlet: non iid split of data among clients
ms.federated.compression: compressed communication, smaller updates
ms.federated.vertical.psi: private set intersection
ms.federated.strategies.Krum: byzantine clients, poisoned updates
ms.armour.attacks.FastGradientSignMethod: fgsm, fast gradient sign
ms.armour.attacks.ProjectedGradientDescent: pgd attack
ms.armour.attacks.CarliniWagnerL2Attack: cw attack
ms.armour.attacks.AutoAttack: robust accuracy, robustbench
ms.armour.defenses.AdversarialTraining: adversarial training
ms.armour.defenses.ProjectedAdversarialDefense: pgd adversarial training
ms.armour.defenses.SmoothedClassifier: randomized smoothing, certified robustness
ms.armour.privacy.evaluation.MembershipInference: membership inference attack, was a sample in the training set
ms.armour.privacy.diff_privacy.DPModel: differentially private training, dp sgd
ms.armour.privacy.accountants: privacy budget, epsilon and delta, accountant
ms.armour.reliability.OodDetector: out of distribution
ms.armour.evaluations.ssim: structural similarity
ms.armour.evaluations.psnr: signal to noise ratio of images
ms.armour.fuzz_testing.Fuzzer: fuzz a network, test inputs by mutation
ms.armour.protection.Watermark: watermark a model, proof of ownership
ms.ascend.estimate: time of a training on ascend
ms.dataset.Dataset:bucket_batch_by_length: batches of similar length, bucketing
ms.dataset.Dataset:build_vocab: vocabulary of a text data set
ms.dataset.Dataset:cache: keep preprocessed data in memory, keep prepared data in memory, cache preprocessed data
ms.dataset.Dataset:flat_map: one row into several
ms.dataset.Dataset:project: choose columns, drop columns, keep some columns
ms.dataset.Dataset:rename: other names of columns, rename columns
ms.dataset.Dataset:save: write a data set to files, save a dataset, write a dataset to disk, convert a dataset to mindrecord
ms.dataset.Dataset:show: look at samples, first rows
ms.dataset.Dataset:output_shapes: shapes of the columns
ms.dataset.Dataset:get_col_names: names of the columns
ms.dataset.Dataset:get_class_indexing: class names to numbers
ms.dataset.Dataset:profile: why is loading data slow
ms.dataset.CSVDataset: comma separated values, table of numbers, pandas read_csv, spreadsheet, table from a file
ms.dataset.JSONLinesDataset: json lines, jsonl, read json lines
ms.dataset.TextFileDataset: lines of a text file, read lines of a text file, text file as data
ms.dataset.TFRecordDataset: tensorflow records, tfrecord files
ms.dataset.MindDataset: mindrecord files, read mindrecord
ms.dataset.ImageFolderDataset: one folder per class, imagenet folders, folder per class, pictures with labels from folders
ms.dataset.MnistDataset: handwritten digits
ms.dataset.FashionMnistDataset: clothes pictures
ms.dataset.Cifar10Dataset: cifar pictures
ms.dataset.Cifar100Dataset: cifar pictures of a hundred classes
ms.dataset.CocoDataset: detection annotations, bounding boxes of pictures
ms.dataset.VOCDataset: pascal voc
ms.dataset.CelebADataset: faces
ms.dataset.IMDBDataset: movie reviews, sentiment
ms.dataset.SQuADDataset: question answering
ms.dataset.FakeImageDataset: random pictures for trials
ms.dataset.DistributedSampler: each rank its part of the data
ms.dataset.SubsetRandomSampler: random subset
ms.dataset.PKSampler: same number of samples of each class
ms.dataset.zip: columns of two data sets
ms.dataset.config.set_prefetch_size: prefetch batches, load ahead
ms.dataset.config.set_num_parallel_workers: number of loading threads
ms.dataset.config.set_seed: seed of shuffling
ms.dataset.vision.MixUp: mixup augmentation, blend two images with their labels
ms.dataset.vision.MixUpBatch: mixup augmentation of batches
ms.dataset.vision.CutMixBatch: cutmix augmentation
ms.dataset.vision.CutOut: hide a square of an image
ms.dataset.vision.RandomErasing: erase a random rectangle, cut holes into images
ms.dataset.vision.RandAugment: automatic augmentation
ms.dataset.vision.AutoAugment: learned augmentation policies, automatic augmentation
ms.dataset.vision.RandomHorizontalFlip: mirror images at random, flip images
ms.dataset.vision.RandomColorAdjust: color jitter, brightness contrast saturation, change brightness and contrast at random
ms.dataset.vision.RandomAffine: random shift, scale and shear
ms.dataset.vision.GaussianBlur: blur an image
ms.dataset.vision.Resize: scale an image to a size, resize an image, resize pictures, make pictures the same size, scale pictures
ms.dataset.vision.CenterCrop: crop the middle, crop the centre, crop the center, cut out the middle of a picture
ms.dataset.vision.HsvToRgb: color spaces
ms.dataset.vision.ConvertColor: rgb to bgr, color conversion
ms.dataset.vision.Equalize: histogram equalization
ms.dataset.vision.write_png: save an image
ms.dataset.vision.SlicePatches: cut an image into patches
ms.dataset.vision.LinearTransformation: whitening
ms.dataset.text.Vocab: vocabulary of words, word to index, vocabulary, words to integers, map words to ids
ms.dataset.text.Lookup: words to numbers
ms.dataset.text.BertTokenizer: bert tokens, wordpiece tokenizer
ms.dataset.text.JiebaTokenizer: chinese words
ms.dataset.text.SentencePieceTokenizer: subword tokenizer
ms.dataset.text.WhitespaceTokenizer: split a text at blanks, split a sentence into words, words of a sentence, split at blanks
ms.dataset.text.RegexTokenizer: split a text by a pattern
ms.dataset.text.Ngram: n grams, bigrams
ms.dataset.text.CaseFold: lower case
ms.dataset.text.ToNumber: text to number
ms.dataset.text.GloVe: pretrained word vectors
ms.dataset.audio.MFCC: mel frequency cepstral coefficients, speech features
ms.dataset.audio.MelSpectrogram: mel spectrum, mel scale
ms.dataset.audio.Resample: sampling rate, change the sample rate
ms.dataset.audio.read: wav file, load a sound, wav to tensor
ms.dataset.audio.TimeStretch: faster without changing the pitch
ms.dataset.audio.PitchShift: higher voice
ms.dataset.audio.FrequencyMasking: specaugment
ms.dataset.transforms.Compose: several transforms one after the other, chain of transforms, combine transforms, several transforms in a row, chain transforms
ms.dataset.transforms.RandomApply: transform with a probability
ms.dataset.transforms.OneHot: labels to one hot in a pipeline
ms.dataset.transforms.TypeCast: dtype of a column
ms.mindrecord.FileWriter: write mindrecord
%prof: profile a line
%autoreload: reload changed modules
%reload: reload a module
%pdb: debugger at every error
%history: what was typed, lines that I typed, earlier commands
%reset: clear all variables, start anew
%mode: switch between eager and graph mode, switch graph mode at the prompt
%env: environment variables
%%writefile: write a cell to a file
LUNARIA_NUM_THREADS: number of threads by environment
guide.learning_rates: lower the learning rate, reduce the learning rate, decrease the learning rate, learning rate after some epochs, learning rate decay, learning rate over time, step decay
guide.gradients: gradient of a gradient, second derivatives, derivative of a derivative, higher order derivatives, gradients are zero
guide.devices: put a model on another device, move a network to the gpu, use the gpu, gpu, use a gpu, several devices
guide.freezing: freeze the embedding, train only the head, train only the last layer, pretrained network, transfer learning, layer wise learning rate, train part of the network, train only part, fine tune the last layers, keep some weights fixed
guide.cells: network with two inputs, own layer, build a model, skip connection, write a layer, define a network, network class, share weights between layers, tied weights
guide.plots: plot training and validation loss, draw curves, loss curve
lowered:cost: count flops, flops of a network, floating point operations
guide.saving: load weights of pytorch, save a network, encrypt a model, encrypted checkpoint, save weights, save a model, load a model, files of networks
ms.dataset.RandomSampler: pick random samples, random rows of a data set, draw samples at random
guide.language_models: use a language model from huggingface, download a language model
ms.dataset.text.BasicTokenizer: split a text into words and punctuation
guide.debugging: find a nan, debug a program, nan loss, why is my loss nan
guide.training: how to train a network, write a training loop, training step by hand
guide.checkpoints: resume interrupted training, continue training, save while training
guide.data: prepare data, load data, data pipeline, batches and shuffling
guide.graph: compile a network, graph mode, speed of graph mode
guide.performance: make it faster, slow program, speed up training
guide.ranks: train on several machines, several gpus, data parallel training
guide.serving: web server for a model, http, answer requests
guide.packaging: run without installation, deploy a model, ship a program
guide.random: reproducible, same results each time
guide.tensors: index a tensor, slice a tensor, rows and columns
ms.probability.distribution.Bernoulli: coin flip distribution
ms.help: documentation of a function, explain a name
ms.set_context: settings of the program, graph mode for everything
ms.dataset.vision.Rotate: turn an image
ms.dataset.vision.Pad: pad images, border around pictures
ms.dataset.audio.Spectrogram: sound to picture
ms.dataset.audio.Vol: louder, quieter
ms.armour: adversarial examples, robustness
guide.privacy: private training, differential privacy, privacy budget
guide.federated: learn from several clients, federated learning
guide.insight: curves in the browser, tensorboard
guide.own_operators: own operator in c, custom kernel
guide.onnx: onnx models, import onnx, run onnx
%pwd: current folder
%ls: list files
%save: write cells to a file
%load: load a file into the prompt
%whos: types of variables
]]):gmatch "([^\n]-): ([^\n]*)" do
  list[name] = words
end
return list
