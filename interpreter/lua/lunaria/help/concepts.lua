-- Concepts of the field, in others' words and in the library's: "others' words: ours", one line for each. Search reads it: where a
-- query has one of the words or phrases on the left, those on the right are looked for too. Words count in any of their forms
-- (search.lua says which). Names of other frameworks are in other_names, and keywords of single entries in keywords.
-- luacheck: no max line length
local list = {}
for others, ours in ([[
percentile, percentiles, quartile, quartiles: quantile
average, averages, arithmetic mean: mean
mean and variance, variance and mean: var_mean, mean, var
spread, dispersion, deviation, standard deviation, sd: std
variation: var variance
middle value: median
frequencies, number of occurrences, how often, occurrences, count values, value counts, counts: unique, bincount, histogram
distinct, deduplicate, duplicates: unique
biggest, greatest, highest, maximal, largest: max, topk
smallest, lowest, minimal, least value: min
top, best k, top k, k best, k largest, highest scores: topk
running total, running sum, prefix sum, partial sums, cumulative sum: cumsum
cumulative: cumsum, cumprod, cummax, cummin
total, sum up, add up: sum
order, ordering, rank elements, ascending, descending: sort
indices that sort, sort indices, sorting indices, order of elements: argsort
correlation, correlate: corrcoef, correlate
covariance: cov
moving average, smoothing a curve, rolling mean, running average: convolve, moving average, ema
fit a line, fit a curve, curve fit, regression line, trend line: polyfit, lstsq
polynomial fit, fit a polynomial: polyfit
linear regression, least squares, ordinary least squares: lstsq
pseudo inverse, pseudoinverse, moore penrose: pinv
invert a matrix, matrix inverse: inverse
system of equations, linear equations, linear system, solve equations, unknowns: solve
eigenvalue, eigenvalues, eigenvector, eigenvectors, eigen decomposition, spectrum of a matrix: eig, eigh, eigvals
singular values, singular value decomposition, principal components, pca, principal component analysis: svd
determinant: det
factorization, decomposition, triangular factors: lu, qr, cholesky
length of a vector, magnitude, euclidean norm, vector length: norm
distance, distances, pairwise distance: cdist, pdist
dot product, inner product, scalar product: dot, inner, matmul
matrix product, matrix multiplication, multiply matrices, matrix times, times a matrix, times vector: matmul, mv
outer product: outer
cross product: cross
hadamard, element by element product, pointwise product: mul
einstein, summation convention: einsum
transposed, swap axes, reorder axes, reorder dimensions, permute dimensions, change the order of axes: permute, transpose, swapaxes
fourier, spectrum of a signal, frequency, frequencies of a signal, dft: fft, spectrogram
spectrogram, short time fourier: stft, spectrogram
low pass, high pass, band pass, audio filter, filter a signal: biquad, filter
sound, wav, mp3, speech, recording, waveform, voice: audio
read audio, audio file, audio files, load a sound, open a sound: audio read
audio features, cepstral: mfcc, mel spectrogram
loudness, volume: vol, gain, amplitude
integrate, integral, area under a curve, numerical integration: trapz, trapezoid, odeint
interpolate values: interp
find roots, root finding, zero of a function: root
minimise a function, minimize a function, function minimum, nonlinear optimization: minimize
complex number, imaginary: complex
wave, oscillation: sin
bessel: bessel
absolute value, modulus: abs
exponential: exp
natural logarithm, logarithm: log
power, exponent, raise to: pow
square root: sqrt
round down, integer part: floor, trunc
modulo, division with remainder: remainder, fmod
clip values, limit values, restrict values, bound values, cap values, clamp: clamp, clip
missing values, not a number, nans: nan, isnan, nan_to_num
replace nan, nan with zero, nans with zero, remove nan, fill nan: nan_to_num
nan loss, becomes nan, loss is nan, nan appears, nan comes, exploding loss, diverges, diverging: nan, first_nan, insight
infinite, infinity, infinities, inf: isinf, isfinite
compare tensors, equality, are equal, same values, approximately equal, nearly equal, almost equal: equal, isclose, allclose
conditional, if else elementwise, where a condition, elements where, choose elements, select elements: where, masked_select, nonzero
filter elements, boolean mask, boolean indexing, mask out: masked_select, masked_fill, slicing
lookup, look up rows, pick rows, rows by index, select rows, choose rows, take rows: index_select, gather, slicing
subset of a tensor, sub array, part of a tensor, crop a tensor, slice of a tensor: slicing, slice
add at indices, scatter: scatter, index_add
glue, join, combine tensors, append, merge tensors, put together: concat, stack
cut into pieces, divide a tensor, split a tensor, break into parts: split, chunk
repeat, replicate, copies of: tile, repeat_interleave
mirror, reverse the order, reversed, upside down, backwards order: flip
shift elements, circular shift: roll
random permutation, without replacement, random subset, shuffle rows, permute randomly, random order: randperm, shuffle
gaussian, normal distribution, bell curve, normally distributed: normal, randn
uniform numbers, uniformly distributed: rand, uniform
random integers, dice roll: randint
coin, binary random: bernoulli
sample from probabilities, draw from categorical, weighted sample, weighted choice: multinomial, categorical
range of numbers, sequence of numbers, evenly spaced, evenly spaced numbers: arange, linspace
identity matrix, unit matrix: eye
diagonal matrix: diag
lower triangle, upper triangle, triangular part: tril, triu
coordinate grid, grid of coordinates, all pairs: meshgrid
constant tensor, filled with, fill a tensor: full
empty tensor, uninitialized: empty
scalar value, python number, plain number, number from a tensor, single value, tensor to a number, tensor into a number: item
to a list, nested list, tensor to a table, tensor to a lua table, as a table, plain table, convert a tensor to a table, convert to a list: tolist
from a list, from a table, array from, create array, make an array: tensor
change type, convert type, type conversion, cast, change the dtype, to float, to int, convert to float, convert to int, to double, convert a tensor to integers, to integers, to floats, as integers: astype, cast
dimension, dimensions, dims, number of axes: shape, ndim, axis
change the shape, resize a tensor, view, rearrange: reshape
flatten, unroll into a vector, one dimensional: flatten
add a dimension, add an axis, extra dimension, new axis, unsqueeze: expand_dims
drop a dimension, remove axis, singleton, squeeze: squeeze
broadcast, expand: broadcast_to
number of elements, how many elements, length of a tensor: size, numel
sparse, sparse matrix, compressed row, csr, coo: sparse, CSRTensor, COOTensor
categorical labels, class indicator, dummy variables, indicator vector: one_hot
bit, bits, bitwise: bitwise
string, strings, text processing, substring: string
json: json
number to string, string formatting, format a number, printf: string.format
regular expression, regex, pattern matching: string.match, RegexReplace
read a file, open a file, write a file, file handle: io.open
today, current time, clock, timestamp, date: os.time, os.clock
square brackets, python list, dictionary, dict, list comprehension: table
neural network, neural net, net, architecture, mlp, perceptron: network, cell, Dense
own network, trainable weights, layer with weights, learnable parameters, define a model, custom model, build a model, model class, own layer, custom layer, subclass: cell
fully connected, linear layer, feed forward, feedforward: Dense
convolutional, cnn, convnet: Conv2d
transposed convolution, deconvolution, deconv, fractionally strided: Conv2dTranspose
depthwise, separable, grouped convolution: Conv2d, group
subsampling, downsampling, pooling: pool
recurrent, rnn, sequence model, time series network: RNN, LSTM, GRU
convolution over time, over time series, temporal convolution, sequence convolution: Conv1d
bidirectional, both directions: bidirectional
gated recurrent: GRU
transformer, encoder layer, decoder layer: Transformer, MultiheadAttention
self attention, multi head, multihead, attention heads, scaled dot product: attention, MultiheadAttention
causal, future positions, future tokens, look ahead, autoregressive mask, triangular mask: attention, tril, causal
position encoding, positional encoding, positional embedding, rope, rotary: rotary_position_embedding
word vector, word vectors, word embedding, lookup table, token embedding: Embedding
mixture of experts, moe: moe, expert
normalization layer, normalise activations: LayerNorm, BatchNorm2d, GroupNorm
batch normalization, batchnorm, running statistics: BatchNorm2d
layer normalization, layernorm: LayerNorm
rms normalization, rmsnorm: RMSNorm
regularization, overfitting, regularise, regularize, generalise better: Dropout, weight decay
activation, nonlinearity, non linearity: relu, gelu
swish: silu
logistic function, logistic: sigmoid
probabilities from scores, normalise scores, scores into probabilities, logits to probabilities: softmax
residual, skip connection, resnet: resnet, cell
initialize weights, initialise weights, weight initialization, initial weights, glorot, kaiming, xavier, initialization: initializer, XavierUniform, HeUniform
how many parameters, number of parameters, parameter count, count parameters, model size, count weights, number of weights, layers of my network: summary
list the layers, print the model, network summary, overview of a network, table of layers, shapes of layers, shapes of all layers, layer shapes, sizes of layers, structure of a network, parameters of each layer, output shapes: summary
trainable weights, weights of a network, list of weights, all weights: trainable_params, get_parameters
freeze, freezing, not trained, fixed weights, keep weights constant, frozen: freezing, requires_grad
transfer learning, pretrained, pre trained, finetune, fine tune, fine tuning, finetuning: freezing, fine tuning
low rank, lora, adapter, adapters, peft: lora, add_lora
loss, cost function, objective, criterion: loss
own loss, custom loss, loss function of my own, write a loss: loss, LossBase, training
classification loss, cross entropy, log loss: cross_entropy, CrossEntropyLoss
squared error, mean squared error, regression loss: mse_loss, MSELoss
absolute error, mean absolute error: l1_loss, MAELoss, MAE
binary classification, binary cross entropy: BCELoss, BCEWithLogitsLoss
contrastive, metric learning, siamese: triplet, CosineEmbeddingLoss
imbalanced classes, class imbalance, rare classes: FocalLoss, WeightedRandomSampler
entropy with class weights, class weights, weighted classes: CrossEntropyLoss, cross_entropy
segmentation, segmentation masks, overlap of masks: DiceLoss, Dice, MeanSurfaceDistance
speech recognition, connectionist: CTCLoss
label smoothing, smooth labels, soft labels: label_smoothing, CrossEntropyLoss
kullback, divergence, kl: kl_div, KLDivLoss
optimizer, optimiser, gradient descent, solver: optimizer, SGD, Adam
decoupled weight decay: AdamW, AdamWeightDecay
l2 regularization, l2 penalty, weight penalty: weight decay
stochastic gradient descent: SGD
second order, quasi newton: LBFGS, thor
learning rate, step size, lr: learning rate
warm restarts, cosine with restarts, restarts: CosineAnnealingWarmRestarts
learning rate schedule, schedule, scheduler, anneal, annealing, decay the learning rate, reduce the learning rate, warmup, warm up, ramp up: learning rate, learning_rates, CosineDecayLR, WarmUpLR
plateau: ReduceLROnPlateau
early stop, stop training, stop early, stops improving, no improvement, patience, does not improve, no longer improves: EarlyStopping
best model, best weights, best checkpoint, save the best: ModelCheckpoint, BestCheckpoint, checkpoint
resume, continue training, interrupted training, restart training, pick up where, crash, crashed, go on after, after an interruption, restore training: checkpoints, training_state, BackupAndRestore
checkpoint, checkpoints, snapshot of weights, intermediate weights: checkpoint, ModelCheckpoint, save_checkpoint
write a tensor, tensor into a file, tensor to a file, save a tensor: save
save a model, store a model, save weights, store weights, write weights, persist, serialise, serialize: saving, save
load a model, read weights, load weights, restore weights, import weights: saving, load_weights, load
pytorch weights, weights from pytorch, weights that pytorch, pth, state dict, pickle: load_weights, saving, safetensors
exponential moving average of, ema, weight averaging, average of the weights, polyak, swa: ema, moving average
accumulate gradients, gradient accumulation, virtual batch, larger batch than memory, bigger batches than memory: accumulation, GradientAccumulation
gradient checkpointing, recompute activations, activation checkpointing, rematerialisation, rematerialization, compute for memory, memory for compute, less memory in backward: recompute
gradient clipping, clip gradients, clip the gradient, clipping gradients, exploding gradients, cut gradients, limit gradients, too large gradients, gradients too large: clip_by_global_norm
differentiate, gradient, gradients, with respect to, derivative, derivatives, autograd, backprop, backpropagation, backward, automatic differentiation, partial derivative, slope of a function: grad, gradients, value_and_grad
second derivatives, hessian, curvature: hessian
jacobian matrix, matrix of derivatives: jacfwd, jacrev
directional derivative, forward mode, tangent: jvp
do not differentiate, constant for the gradient, block the gradient, no gradient, detach: stop_gradient
straight through, own gradient, custom gradient, own derivative, custom backward, override the gradient: custom_vjp, own_operators
own operator, custom operator, custom op, write an operator, write my own operator, custom kernel, own kernel, new operator: own_operators, op
check a derivative, check my derivative, gradient check, check gradients, verify gradients, verify my gradient, test a gradient, gradient correct, derivative correct, finite differences, numerical gradient, gradient numerically: check_grad
map over a batch, vectorize, vectorise, batch a function, for each sample: vmap
train, training, fit, learn: training
training loop, train step, optimisation loop: training
callback, callbacks, hook into training, after every epoch, each epoch, end of an epoch, during training, after each step, at the end of every epoch: callback, Callback
monitor training, watch the training: insight, LossMonitor
log training, tensorboard, mlflow, wandb, logging metrics, record metrics, dashboard, experiment tracking, compare runs: insight, SummaryCollector, SummaryRecord
hyperparameter, hyper parameter, hyperparameters, grid search, parameter sweep, tune parameters, sweep: hyper-parameters, sweep, insight
metric, evaluate a model, evaluation, measure quality, test accuracy, validation: metric, eval, Accuracy
how good, share of right answers, right predictions, correct predictions: Accuracy
roc, auc, area under, receiver operating: auc, ROC
precision and recall, f1, f score: F1, Fbeta, Precision, Recall
translation quality, bleu: BleuScore
confusion, which classes are confused, misclassified: ConfusionMatrix
predict, inference, prediction, apply a trained model, use a trained model: predict
evaluation mode, inference mode, train mode, training mode: set_train
dataset, data set, data loader, dataloader, load data, feed data, input pipeline, pipeline: data, dataset
own data, custom dataset, own dataset, python generator, data from memory, arrays as dataset: GeneratorDataset, NumpySlicesDataset
mini batch, minibatch, batches, batch size: batch
loop over batches, iterate over, go through the batches, for each batch, loop over the batches: create_tuple_iterator, create_dict_iterator
train test split, train and test, training and validation, hold out, holdout, split a dataset, split the data, validation set: Dataset:split
shuffle data, randomise order, shuffle dataset: shuffle
csv, comma separated, spreadsheet, table of numbers, tabular: CSVDataset
image folder, folder of images, images in folders, images from a folder, directory of images, one directory per class, pictures in folders: ImageFolderDataset
read an image, open a picture, load a picture, jpeg, png file, decode an image: Decode, image, read_image
text file, lines of text, read text: TextFileDataset
tfrecord, record files: TFRecordDataset, MindRecord
handwritten digits, digits, mnist: MnistDataset
pad sequences, equal length, same length, variable length, different lengths, ragged: padded_batch, PadEnd, bucket_batch_by_length
weighted sampling, oversampling: WeightedRandomSampler
cache a dataset, preprocess once: cache, save
apply a function to every, preprocess, preprocessing, transform each: map
augment, augmentation, data augmentation: augment, RandomCrop, RandomHorizontalFlip, vision
random crop, crop images: RandomCrop, CenterCrop
flip images, mirrored images, horizontal flip: RandomHorizontalFlip
rotate images, rotation: Rotate, RandomRotation
brightness, colour jitter, color jitter, saturation, hue: RandomColorAdjust
black and white, gray, greyscale: Grayscale
blur: GaussianBlur
mixup: MixUp
mean and standard deviation of image, normalise images, normalize images, channel mean, subtract mean: Normalize
channels last, nhwc, hwc, channel order, height width channels: HWC2CHW
upsample, upscale, enlarge, twice as large, make an image larger, zoom, resize, resizing, downscale, scale an image: interpolate, Resize
overlapping boxes, non maximum suppression, nms, duplicate boxes: nms
intersection over union, overlap of boxes, box overlap: iou
bounding box, bounding boxes, object detection, detector boxes: bounding_box, iou, nms
optical: image
tokenize, tokenise, tokens, split into words, words to numbers, text into tokens, subwords, byte pair: tokenizer, Tokenizer
vocabulary: Vocab
sentiment: IMDBDataset
language model, llm, large language model, gpt, chatbot, write text, generate text, text generation, next word: language models, generate
kv cache, key value cache, cached keys: kv cache, language models, Decoder
chat, prompt template, conversation: chat, apply_chat_template
temperature, nucleus sampling, top p: generate
perplexity: perplexity
recommend, recommender: Embedding
bayesian, bayes, uncertainty, posterior, variational inference, probabilistic: probability, variational, bnn
vae, variational autoencoder, autoencoder, autoencoders: vae
probability distribution, density, log probability, likelihood: distribution, log_prob
normalizing flow, change of variables: bijector
reinforcement, policy gradient, reward, agent: reinforcement
gan, generative adversarial: training
graph neural: sparse
gpu, gpus, cuda, graphics card, accelerator, nvidia, npu, tpu, video card: devices, device, gpu
which devices, available devices, is there a gpu, device list, list devices: devices
move to, transfer to, put on the: to, device
move to gpu, on the gpu, run on gpu, use the gpu, to the device: devices
several gpus, multiple gpus, multi gpu, distributed, data parallel, several machines, several computers, cluster, multi node, many machines, parallel training, several processes: ranks, launch
model parallel, tensor parallel, pipeline parallel, split a model, model too large, shard, sharding: parallel, shard, AutoParallel
all reduce, allreduce, collective, sum over ranks: all_reduce
threads, thread, cores, cpu cores, multithreading, processors: set_num_threads, threads
half precision, mixed precision, fp16, bf16, float16, bfloat16, sixteen bit, 16 bit, automatic mixed precision, amp: mixed precision, amp, auto_mixed_precision
loss scaling, loss scale, gradient underflow, underflow: loss_scale, DynamicLossScaler
quantize, quantization, quantisation, int8, 8 bit, eight bit, low bit, 4 bit, quantised, to int8, model to int8, convert a model to int8: lite.quantize, quantize
quantization aware, quantisation aware: QuantizationAwareTraining, quantise
prune, pruning, sparsify, remove weights, smaller model, compress a model, shrink a model, make a model smaller: prune, quantise, lite
distillation, teacher, student: distil
onnx: onnx
export, convert a model, interchange, other runtime, other framework: export, onnx
import a model, foreign model, read an onnx, load an onnx, run an onnx, onnx model and run: onnx, load
mindir: export, MindIR
microcontroller, embedded, arduino, firmware, tinyml, plain c code, small device: micro
phone, mobile, edge: lite, federated
deploy, deployment, production, serve, serving, rest api, http, web service, web server, endpoint, online prediction: serving, serve
c program, c api, c++ program, embed, from c, call from another language: embedding, packaging, lunaria.h
install, installation, package, packaging, pip, wheel, docker, standalone, distribute a program, ship a program: packaging
jupyter, notebook, ipython: notebook, kernel
compile a function, compile, compiled, machine code, jit: jit, graph mode
faster, speed, speed up, slow, slower, acceleration, optimise speed, performance, make it fast: graph mode, jit, performance
why slow, not faster, no faster, no speedup, slower than: performance, jit_report
recompile, recompilation, compiles again: performance, jit_report
profile, profiling, bottleneck, hot spot, where is the time, time spent, which operator is slow, spends its time: profile, performance
measure time, time a function, how long, benchmark, timing, duration, stopwatch, takes how long, execution time: timeit, time
memory usage, memory use, how much memory, memory consumption, out of memory, oom, memory leak, free memory: memory, max_memory_allocated
debug, debugger, breakpoint, step through, pdb, stop at a line: debugging, breakpoint
stack trace, traceback, error location: debugging, traceback
list variables, list all variables, variables defined, my variables, defined variables: who, whos
reproducible, reproducibility, deterministic, same result, same results, same random numbers, same numbers, repeatable, seed, random seed, fix the seed: random, reproducibility, set_seed
plot, draw a chart, draw a picture, draw a plot, chart, diagram, curve, visualise, visualize, graph of a function: plots, plot
learning curve, loss curve, draw a curve, line chart: plot.line, plots
bar chart, columns chart: plot.bar
scatter plot, point cloud, dots, two variables, against each other, x against y, points in a plane: plot.scatter
histogram: histogram, hist
heat map, matrix as picture: heatmap
show an image, show a picture, display an image, picture, photo, display a picture: image, plots
progress, progress bar, tqdm, how far: progress
slider, button, interactive, widget, gui: widgets
table of results, pretty table, rich output, html: display
dashboard of weights, weight histogram: insight
adversarial, attack, fool a network, adversarial examples, fooling: armour, attacks
robust, robustness, defence, defense, harden: armour, defenses
private, privacy, differential privacy, dp, anonymous: privacy
membership, leak training data, memorised data: MembershipInference, privacy
federated, without sharing data, data stays, decentralised, decentralized, on devices of users, several hospitals: federated
explain, explanation, interpretability, saliency, which pixels, network decide, why did the network, heat map of an image, class activation, feature importance, attribution: explain
drift, distribution shift, out of distribution, anomaly, unknown inputs: OodDetector, ConceptDrift
random number generator, rng: Generator, random
environment variable: environment variable
command line, flags, options of the program, arguments of the program: option
from python, coming from python, python user, python habits: lua
pytorch user, coming from pytorch, switch from pytorch, migrate from pytorch, torch equivalent, port from pytorch: from_pytorch
numpy user, coming from numpy, numpy equivalent, port from numpy: from_numpy
mindspore user, coming from mindspore, mindspore equivalent, port from mindspore: from_mindspore
ascend, huawei: ascend
boosted trees, gradient boosting, xgboost: BoostedTrees
differential equation, differential equations, integrate an equation, ode, pde, physics: odeint, equations
convolve, filter with a kernel, convolution of signals: convolve, conv1d
windows of a signal, sliding window, overlapping windows: sliding_window, unfold
error message, what does the error: debugging
convert pytorch code, translate pytorch: from_pytorch
convert numpy code, translate numpy, numpy code: from_numpy
convert mindspore code, mindspore code: from_mindspore
]]):gmatch "([^\n]-): ([^\n]*)" do
  list[#list + 1] = { others, ours }
end
return list
