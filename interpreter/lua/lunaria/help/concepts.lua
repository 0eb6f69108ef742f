-- Concepts of the field, in others' words and in the library's: "others' words: ours", one line for each. Search reads it: where a
-- query has one of the words or phrases on the left, those on the right are looked for too. Words count in any of their forms
-- (search.lua says which). Names of other frameworks are in other_names, and keywords of single entries in keywords.
-- luacheck: no max line length
local list = {}
for others, ours in ([[
reuse a network, trained network, trained model, pretrained: freezing, saving, load_weights
strings into tokens, split strings, split text, split words: tokenizer, WhitespaceTokenizer
choose gpu, gpu or cpu, cpu or gpu, choose the device, select a device: set_device, devices
see the graph, draw the network, picture of the network, network structure, architecture of a network: summary, graph
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
find roots, root finding, root of an equation, zero of a function: root
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
filter elements, boolean mask, boolean indexing, mask out: masked_select, masked_fill, guide.tensors
lookup, look up rows, pick rows, rows by index, select rows, choose rows, take rows: index_select, gather, guide.tensors
subset of a tensor, sub array, part of a tensor, crop a tensor, slice of a tensor: guide.tensors, slice
add at indices, scatter: scatter, index_add
glue, join, combine tensors, append, merge tensors, put together: concat, stack
cut, cut in two, cut into pieces, divide a tensor, split a tensor, break into parts: split, chunk
repeat, replicate, copies of: tile, repeat_interleave
mirror, reverse the order, reversed, upside down, backwards order: flip
shift elements, circular shift: roll
random permutation, without replacement, random subset, shuffle rows, permute randomly, random order: randperm, shuffle
gaussian, normal distribution, bell curve, normally distributed: normal, randn
random values, random numbers, filled with random: rand, randn, uniform
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
from a list, from a table, create array, make a tensor, create a tensor: tensor
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
fc, ffn, fully connected, linear layer, feed forward, feedforward: Dense
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
bn, batch normalization, batchnorm, running statistics: BatchNorm2d
ln, layer normalization, layernorm: LayerNorm
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
image folder, folder of images, images in folders, images from a folder, directory of images, images in a directory, one directory per class, pictures in folders: ImageFolderDataset
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
deploy, deployment, serve, serving, rest api, http, web service, web server, endpoint, online prediction: serving, serve
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
unit length, unit vector, unit norm, normalise a vector, normalize rows: norm
sort by column, sort by another, sort rows: argsort, sort
add a column, append a column, extra column, additional column, add a row, append a row, new column: concat, column_stack
one dimension, to one dimension, into one dimension, 1d array, array 1d: flatten, ravel
value and gradient, gradient and value, loss and gradient, value together with gradient: value_and_grad
some parameters, certain parameters, only some weights, subset of parameters: value_and_grad, trainable_params, freezing
share weights, shared weights, weight sharing, tie weights, tied weights, shared layer, same layer twice: own network, cells
weights by name, parameter by name, parameters by name, names of parameters, access weights, look at weights, print weights, read weights of layer: parameters_dict, parameters_and_names
first samples, first rows, few samples, small part of dataset, subset of dataset, limit the number of samples: take
padding in the loss, ignore padding, ignore index, padding tokens loss: cross_entropy, CrossEntropyLoss
without gradient, without gradients, without computing gradients, no grad, turn off gradients, disable gradients: stop_gradient
two gpus, two graphics cards, several graphics cards, four gpus, eight gpus, 2 gpus, 4 gpus, 8 gpus, more than one gpu, all gpus, gpus in parallel, two machines, two computers: ranks, launch
change the learning rate, set the learning rate, current learning rate, adjust the learning rate, different learning rates, learning rate per layer: learning_rates
c++, cpp, in c, rust, java: packaging, embedding
android, ios, raspberry: lite, packaging
sinusoidal, position encoding sine: rotary_position_embedding, RotaryEmbedding
intermediate output, intermediate layer, hidden layer output, features of layer, feature extraction, extract features, activations of layer, inspect activations: register_forward_hook
moving average of array, moving average of signal, moving average of values, rolling window, rolling average: convolve, sliding_window
remove nan, drop nan, without nan: nan_to_num, isnan
mat1 mat2, shapes cannot be multiplied, shapes not aligned, matmul mismatch: matmul, debugging
expected scalar type, expected object of scalar type, expected dtype, got double, dtype mismatch, type mismatch: astype, cast
index out of range in self, device side assert: Embedding, embedding
expected input to have channels, channels but got, weight of size expected input: Conv2d
size of tensor must match, operands could not be broadcast, broadcast together, shape mismatch, shapes do not match: debugging, broadcast_to
does not require grad, grad fn, element 0 of tensors, backward second time, retain graph: gradients, grad
modified by inplace, inplace operation: gradients
same device, expected all tensors on same device, different devices: devices
missing keys, unexpected keys, size mismatch for weight: load_param_into_net, load_weights
only size 1 arrays, only one element tensors, converted to python scalars: item
inhomogeneous shape, ragged nested, setting array element with sequence: tensor
concretization, tracer, traced value, data dependent control flow: graph mode, jit
expected more than 1 value per channel: BatchNorm1d, BatchNorm2d
target out of bounds, label out of range: cross_entropy
loss not decreasing, loss does not go down, not learning, does not learn, network does not learn, accuracy stays: insight, learning_rates, debugging
accuracy stuck, loss stays constant, stuck loss: insight, learning_rates, debugging
underfit, overfit, overfits: Dropout, weight decay
generalization gap: Dropout, weight decay
gradient vanish, vanishing gradient, dead relu, dead neurons: insight
test set accuracy, compute accuracy, validation accuracy: Accuracy, eval
evaluate on test, evaluate on the test set, test set, test data: Model:eval, eval
number of batches, length of dataset, size of dataset, how many samples: get_dataset_size
imbalanced, unbalanced, class imbalance, unbalanced data: WeightedRandomSampler, FocalLoss, CrossEntropyLoss
last layer, output layer of pretrained, new head, replace head, classification head: freezing
save every epoch, after each epoch save, periodic checkpoint: ModelCheckpoint, checkpoints
print progress, show progress: progress, LossMonitor
print loss, log loss, show loss while training: LossMonitor
history of losses, loss per epoch, training history, losses of epochs: History
dimension of a tensor, tensor size, tensor shape, size of each dimension, number of rows, number of columns: shape
type of tensor, data type of tensor, dtype of tensor: dtype
element of tensor, get element, access an element, access a row, access a column, get a column, get a row, every second, last element, last row, negative index: guide.tensors
modify part, set a row, set a column, assign to slice, change elements, set elements: guide.tensors
loop over tensor, iterate tensor, iterate over rows, rows of tensor one by one: iter
copy a tensor, deep copy, clone a tensor: clone
same shape as, like another tensor: zeros_like, ones_like
maximum and its index, max and argmax: max, argmax
closest value, nearest value, nearest element, closest element: argmin, searchsorted
first occurrence, first index, index of value, position of value, find index: nonzero
contains value, value in list, is in: isin
same elements, tensors equal, compare arrays: equal, allclose
random split, split randomly: Dataset:split
two inputs, several inputs, multiple inputs, several outputs, multiple outputs: cells, cell
layer with parameters, add parameter to network, learnable parameter, trainable scalar: Parameter, cells
buffer, non trainable parameter, not trainable parameter, constant in network: Parameter, requires_grad
forward pass, forward method, forward function: cells, construct
train several networks, two networks, alternating training, generator and discriminator: training
reinforcement learning, replay buffer, q learning, dqn, epsilon greedy: training
target network, soft update, copy parameters: load_param_into_net, EMA
reparameterisation, reparametrization, reparameterization: Normal, randn
gradient penalty, gradient norm penalty, wasserstein: grad, gradients
teacher forcing, sequence to sequence, seq2seq, encoder decoder, machine translation: Transformer, LSTM
packed sequence, pack padded, seq lengths, sequence lengths: LSTM, GRU
many to one, last hidden state, final hidden state, last time step, initial hidden state: LSTM, GRU, RNN
style transfer: InstanceNorm2d
patches, image patches: unfold
object function minimum, minimise with bfgs: minimize
logical and, and of masks: logical_and
logical or: logical_or
integer division, divide and round down, floor division: floor_divide
degrees, radians: deg2rad, rad2deg
rotate array, rotate a matrix: rot90
matrix rank, rank of matrix, rank of a matrix: svd
null space, orthonormal: svd, qr
condition number: cond
norm of matrix, frobenius: norm
learning rate finder, good learning rate: learning_rates
hyper parameter search, tune hyperparameters: hyper-parameters, sweep, insight
cross validation, k fold, kfold: Dataset:split
stratified: Dataset:split
download data, where is the data: data
zip of arrays, pair features with labels: NumpySlicesDataset
normalise features, standardise, standardize, zero mean, unit variance, feature scaling: Normalize, std, BatchNorm1d
list of tensors, tensors in a list, table of tensors: stack, concat
index of max, index of maximum, index of largest, index of highest, position of maximum, argument of maximum: argmax
index of min, index of minimum, index of smallest, position of minimum: argmin
elementwise product, elementwise multiplication, multiply elementwise: mul
elementwise maximum, elementwise comparison: maximum, greater
rows where, rows with value, column equals, rows that satisfy, rows matching: guide.tensors, where, nonzero
sum of diagonal, diagonal sum: trace
random key, prng key, split key: Generator, random
vector valued function, returns a vector, vector output, non scalar: jacrev, jacfwd, vjp
number of workers, num workers, worker processes: set_num_parallel_workers, performance
image to tensor, picture to tensor: ToTensor
scale pixels, pixels between 0 and 1, scale to 0 1: Rescale, ToTensor
line by line, step through, step into: breakpoint, debugging
flat index, linear index, unravel: unravel_index
float16 and bfloat16, float16 bfloat16, float16 vs float32: mixed precision
second axis, particular axis, along each axis, along an axis: axis
every row, each row, row wise, rowwise, for each row: axis
each column, column wise, columnwise: axis
add one dimension, extra axis, batch dimension, add batch dimension: expand_dims
bool to int, boolean to float, mask to float: astype, cast
int to float, integer to float, float to int: astype, cast
string to number, text to number: tonumber
tensor to image, save an image, write an image: image, write_png, encode_png
save a plot, save figure, plot to file: plots
several lines plot, two curves, legend: plots, plot.line
read images, image files: read_image, ImageFolderDataset
text dataset, text classification, classify text: text, Vocab
train from scratch, start training: training
stop gradient flow, gradient through: stop_gradient
gradients of all weights, print gradients, inspect gradients, look at gradients: value_and_grad
gradient explodes, loss explodes, loss inf: clip_by_global_norm, insight
memory grows, memory leak, memory keeps growing: devices, memory_allocated
free gpu memory, release memory, clear memory, empty cache: empty_cache
slow first, first step slow, first epoch slow, compile time: performance
slow data loading, data loading bottleneck: performance
number of flops, count flops, operations count: profile, summary
custom activation, own activation, new activation: own_operators, op
custom optimizer, own optimizer, write an optimizer: Optimizer
custom metric, own metric, write a metric: Metric
custom callback, own callback: Callback
custom sampler, own sampler: Sampler
custom initializer, own initializer: initializer, Initializer
learning rate warm up, warmup steps, warmup then decay: learning_rates, warmup_lr
early stopping patience: EarlyStopping
several losses, sum of losses, combine losses, weighted loss, multi task, auxiliary loss: value_and_grad, training
two optimizers, several optimizers: training
parameter groups, param groups, different weight decay: learning_rates, freezing
exclude bias from weight decay, no decay for bias: freezing, learning_rates
weights to zero, reset weights, reinitialize, re initialize: initializer
copy a network, clone a model, duplicate network, deep copy model: load_param_into_net
compare models, same weights: allclose
nested cells, network in network, sub network, submodule: cells
sublayers, submodules, iterate over all layers, iterate over modules, modules of a network, children of a network, loop over layers, iterate layers, list layers: cells_and_names, cells
layer by name, get a layer, access a layer: cells_and_names, cells
skip layers, residual connection: cells
dynamic shapes, variable batch size, changing sizes, last batch smaller: graph mode, batch
drop last, last batch, incomplete batch: Dataset:batch
shuffle each epoch, reshuffle: Dataset:shuffle
mix datasets, merge datasets, combine datasets, concatenate datasets: Dataset:concat, Dataset:zip
infinite dataset, endless data: repeat_
labels to integers, encode labels, label encoding, class names to indices: one_hot, Vocab
decode tokens, ids to text, tokens to text: Tokenizer:decode
stop words, lower case text, clean text: CaseFold, RegexReplace
truncate sequences, maximum length: Truncate, padded_batch
attention weights, attention map, visualise attention: MultiheadAttention
cross attention: MultiheadAttention
padding mask, mask of padding, key padding: MultiheadAttention, sequence_mask
square subsequent mask, subsequent mask: tril, attention
speech, audio classification: audio
forecast, time series, predict next value: LSTM
regression, predict a number: MSELoss, training
multi class, multiclass: CrossEntropyLoss
multi label, multilabel, several labels: BCEWithLogitsLoss
ranking loss, pairwise loss: MarginRankingLoss, TripletMarginLoss
cosine loss, similarity loss: CosineEmbeddingLoss
perceptual, feature loss: register_forward_hook
top 5 accuracy, top k accuracy: TopKCategoricalAccuracy, Top5CategoricalAccuracy
r2, explained variance: var, mean
sampling temperature, repetition penalty: generate
serve a model, prediction service: serve
version of, which version: version
cache folder, where are files stored: XDG_CACHE_HOME
gpu usage, is the gpu used, running on gpu: devices
set number of threads, limit cpu, single thread: set_num_threads
random choice, choose at random, pick a random: multinomial, randint
random matrix, random tensor: rand, randn
random split of rows, random sample of rows, sample rows: randperm
truncated normal, orthogonal initialization: initializer
permutation of axes, order of dimensions, channels first to last, nchw to nhwc: permute
outer sum, all pairs of differences: expand_dims, broadcast_to
cumulative maximum: cummax
mode of array, most common value, most frequent: bincount, unique
zscore, z score: std, mean
softmax temperature: softmax
clip by norm of each: clip_by_norm
inverse of softmax, logit: logit
batch outer product: einsum
batch dot, row wise dot product: einsum, sum
symmetric matrix, is symmetric: allclose
upper triangle indices: triu_indices
binary, bits of: bitwise
file exists, check whether a file exists: io.open, kind
list files, files in a folder: list_folder
command line arguments, arguments of script: arg
measure accuracy, percentage correct: Accuracy
to numpy, numpy array, as numpy, into numpy: asnumpy, tolist
element to int, element to float, element to a number, convert to a plain number: item
device of a tensor, which device tensor, tensor is on: x.device
loss for one hot, loss one hot labels, one hot targets: cross_entropy, SoftmaxCrossEntropyWithLogits
expected dimensional input, expected 4d input, expected 3d input, expected 2d input: Conv2d, debugging
two datasets, datasets simultaneously, datasets together, datasets side by side: zip
function to every row, function to each row, function on each row, function every element, function each element: apply_along_axis, vmap
concatenate, concatenation: concat
delete elements, remove elements, delete a row, remove a row, drop rows, delete a column, remove a column, delete by index: masked_select, index_select
ignoring nan, ignore nan, skip nan, mean without nan, nan mean: nanmean
update an element, update one element, change an element, modify an element, assign an element, set an element: guide.tensors
print inside, print in a compiled, debug print, print while compiled: print
smaller network, smaller after training, reduce the size of a model, reduce the size of a network, reduce model size: prune, quantize
number between, random between, random in a range, uniform between: uniform, rand
is it faster, faster than a loop, loop slow: performance, vmap
trained model to disk, keep a trained model, save trained: saving
column of a matrix, nth column, third column, first column, second column, first row, row of a matrix: guide.tensors
any nan, check for nan, test for nan, has nan: isnan
single image, one image, one sample, single sample, new data: predict
positional embeddings, learned positions: Embedding
deep copy of network, copy of a network, copy of a model: load_param_into_net
likely class, likeliest class, most probable class: argmax
takes too long, too slow, takes forever, hours to train: performance, graph mode
nan after, gives nan, produces nan, turns nan: insight, debugging
catch an error, catch errors, handle errors, exception, exceptions: pcall
list of activations, activation functions: get_activation
channel dropout, dropout channels, drop channels: Dropout2d
inverse tangent, arc tangent, arctan: atan2
new dimension, stack along, along a new dimension: stack
step decay, decay every, drop the learning rate every: learning_rates, StepLR
border, margin around, surround with zeros, frame around, zeros around: pad
common values, common elements, shared values, in both arrays, in both lists, overlap of two sets: intersect1d
set difference, in one but not in, missing from the other: setdiff1d
set union, merge without duplicates, all values of both: union1d
swap rows, swap two rows, exchange rows, reorder rows, swap columns, exchange columns: index_select, guide.tensors
zero out gradients, zeroing gradients, reset gradients, clear gradients, gradients to zero, zero the gradients: training, value_and_grad
warm start, warmstart, warmstarting, initialize from another model, weights of another model, partial weights, load partially, some of the weights: load_weights, load_param_into_net
torchscript, script module, saved model, savedmodel, frozen graph, pb file: export, packaging
deploy, deployment, production, put into production, ship a model: serving, packaging, export
web service, web api, flask, fastapi, microservice: serving
on a phone, mobile phone, mobile app, embedded device, edge device: lite, packaging
fit in memory, larger than memory, too large for memory, out of core, huge dataset, big data: data, GeneratorDataset, MindDataset
save during training, save while training, regularly save, save regularly, save periodically, autosave: ModelCheckpoint, checkpoints
interrupt training, halt training, end training early, abort training, stops decreasing, loss not decreasing anymore, isn decreasing, no more progress: EarlyStopping
training loss higher, test loss lower, loss differs between training and evaluation: set_train, Dropout
model to train mode, training mode, inference mode, evaluation mode, test mode: set_train
batch epoch, what is an epoch, epoch mean, number of epochs, how many epochs: training, Dataset:batch
batch size, size of a batch, mini batch, minibatch, minibatches: Dataset:batch, data
validation split, hold out, holdout, validation set, train validation test: split, model
hyperparameter tuning, optuna, ray tune, random search, tuner, bayesian optimization: sweep, hyper-parameters, insight
rounding, away from zero, round half: round
coordinates polar, polar coordinates, cartesian coordinates: atan2, hypot, polar
point distances, distances between points, distance of points, point to point: cdist
subtract the mean, remove the mean, center data, centering, mean of each row, mean per row, row means: mean
binary representation, to binary, integer to bits: bitwise
accumulate at index, histogram with weights, sum by index, add repeated indices: index_add, bincount
memory of operators, operator time, time per operator, per operator: profile
where is time spent, hotspots, hot spots: profile, performance
snippet, run time, runtime of code, execution time, elapsed time, how fast: %timeit, %time
reproducible, determinism, deterministic, same result twice, nondeterministic: random, set_seed
multi gpu, multiple gpus, many gpus, several gpus, gpus on a machine, gpus on one machine: ranks, launch
multi node, multiple machines, many machines, several machines, multiple nodes, across machines: ranks, launch
tpu, npu, accelerator, accelerators, hardware: devices
zero redundancy, optimizer states sharded, shard optimizer, fsdp, deepspeed, sharded data parallel: set_auto_parallel_context, parallel
model too large for one gpu, model parallel, split a model over gpus, layers on different gpus: set_auto_parallel_context, shard, PipelineCell
stateful, keep the hidden state, carry the hidden state, state between batches: LSTM, GRU, RNN
interpretability, explainability, explain predictions, captum, shap, lime, attribution, feature importance: explain
class activation, cam, heatmap of attention: GradCAM
ptq, dynamic quantization, post training quantization, int8, int4, weight quantization, quantise: quantize
kd, teacher, student, distil, distill: Distillation
sparsity, sparsify, zero small weights, lottery ticket: prune, MagnitudePruning
operator fusion, fuse operators, fuse layers, kernel fusion: graph mode, jit
static graph, dynamic graph, define by run, tf function, autograph: graph mode, jit
eager execution, eager mode, imperative: PYNATIVE_MODE, graph mode
ahead of time, aot: lower, compile, packaging
recompile, recompilation, retrace, compiled again, cache miss: jit_report, performance
control flow, if inside, branch on a tensor, while loop inside: cond, WhileLoop, graph mode
scan over, lax scan, carry through a loop: scan
unroll, unrolled: scan, RNN
pytree, nested structure, nested tables of parameters, dict of parameters: grad, value_and_grad
parameters as argument, functional model, functional call, pure function: value_and_grad, cells
per sample gradients, per example gradients, gradient of each sample: vmap, PerSampleGradients
gradient of each loss, gradient norm, size of the gradients, monitor gradients: clip_by_global_norm, norm, insight
intermediate gradient, gradient of an activation, gradient of a hidden layer, retain grad: register_hook, register_backward_hook
unused parameters, parameter without gradient, gradient is none, gradient missing, grad is none: gradients, trainable_params
in place, inplace, mutate: assign, copy_
view of, share storage, same memory: reshape, clone
memory of a tensor, bytes of a tensor, size in bytes, memory size, megabytes: x.nbytes
largest representable, machine epsilon, smallest positive, range of a dtype, limits of float: float32, float16
uint8, unsigned, byte tensor: uint8
boolean tensor, mask tensor, true false tensor: bool
nested tensor, ragged, jagged, variable length sequences: padded_batch, sequence_mask
string tensor, tensor of texts: string
convert units, radians to degrees, degrees to radians: rad2deg, deg2rad
sign of, negative numbers, flip the sign, minus: sign, neg
clip negative, remove negative values, positive part: relu, clamp
threshold, binarize, binarise, larger than a number: greater, threshold
rescale, scale between, min max, minmax, normalize between 0 and 1, into the range: Rescale, min, max
z normalize, standardize columns, standard scaler, whiten: std, mean, zscore
euclidean, manhattan, minkowski, l1 distance, l2 distance: cdist, norm
nearest neighbour, nearest neighbor, knn, k nearest, closest points: cdist, topk
k means, kmeans, clustering, cluster: cdist, argmin
decision tree, random forest, gradient boosting, xgboost, boosted trees: BoostedTrees
logistic regression, classifier with one layer: Dense, cross_entropy, sigmoid
support vector, svm: MultiMarginLoss, hinge
autoencoder, vae, variational autoencoder, latent: training, cells, Conv2dTranspose
diffusion, ddpm, denoise, denoising: training, randn
gan, generative adversarial, discriminator: training
reinforce, policy gradient, actor critic, ppo: Categorical, training
word2vec, skip gram, negative sampling: Embedding
recommender, recommendation, collaborative filtering, matrix factorization: Embedding, RowTable
bbox, object detection, detector, yolo, anchor boxes, bounding box: iou, bounding_box_encode, vision
semantic segmentation, unet, pixel classification: DiceLoss, Conv2dTranspose
text generation, generate a sentence, complete a text, sample text: generate, language_models
chatbot, assistant, conversation, prompt: chat_template, language_models
sentence embedding, similarity of sentences, semantic search: cosine_similarity, Embedding
tokenize, tokenization, tokeniser, tokenizer, split into words: Tokenizer, text
translate, translation: Transformer, BleuScore
speech to text, transcribe, asr: CTCLoss, audio
denoise audio, noise reduction, echo: audio, lfilter
video, frames, three dimensional convolution: Conv3d
graph neural network, gcn, message passing, adjacency, node features: csr_matmul, unsorted_segment_sum
point cloud, mesh of points, 3d points: cdist, plot.scatter
physics informed, pde, differential equation, ode solver: grad, jvp
monte carlo, markov chain, mcmc, hamiltonian, sampling posterior: probability, distribution
confidence interval, bootstrap, hypothesis test, p value, significance: stats, ttest_1samp
time zone, yesterday, tomorrow, day of week: os.date, os.time
environment variable, environment variables: os.getenv, %env
command line, argv, parse arguments, cli, argparse: arg
logging, log to a file, verbose, verbosity, silence messages, suppress warnings: LUNARIA_LOG, warn
documentation, docs, manual, reference, look up a function, docstring: help, lunaria --docs
install, installation, setup, set up, pip, conda, docker image: packaging
upgrade, what is new, release notes, changelog: version
tutorial, getting started, first steps, beginner, quick start, quickstart, hello world, course: lunaria lessons, training
jupyter, jupyterlab, notebook kernel, ipython: lunaria kernel
vscode, editor, ide, autocomplete, auto completion, intellisense: lunaria stubs
linter, lint, static analysis, check a script, type check: lunaria check
unit test, assert close, testing: allclose
stack trace, traceback, error message, where did it fail: debugging, %debug
segfault, crash of the program, hang, hangs, deadlock, freezes: debugging, lunaria ranks
loss curve, learning curve, training curve, plot accuracy, plot metrics: plots, insight
matplotlib, pyplot, seaborn, plotly, chart, figure: plot
confusion matrix plot, show a matrix, colour map, color map: plot.heatmap
live plot, update a plot, animate: plots, update_display
pandas, dataframe, data frame, spreadsheet, excel: CSVDataset
hdf5, h5, matlab file, mat file, parquet, arrow: load, saving
npz, npy, numpy file: load, save
yaml, toml, config file, settings file: json
zip file, gzip, compressed file, archive: io
http, url, download, fetch a file: !COMMAND
parallel, multithreading, multiprocessing, threads, concurrency: set_num_threads, launch
async, asynchronous, background, non blocking: synchronize
cuda stream, cuda event, cuda graph: Stream, Event
cuda version, driver, cudnn, nvcc: devices
global average pooling, global pooling, gap: AdaptiveAvgPool2d, mean
half, fp16, bf16, bfloat, tf32, fp8: mixed_precision
overflow, underflow, loss scale, scaler: mixed_precision, DynamicLossScaler
sync batchnorm, synchronized batchnorm, batch norm across, batch norm over: SyncBatchNorm
weight norm, spectral norm, lipschitz: norm
stochastic depth, drop path, dropblock: Dropout
data parallel, dataparallel, distributeddataparallel, replicate the model: ranks
parameter server, elastic, fault tolerant, node failure: ranks, checkpoints
time of an epoch, eta, remaining time, how long will: progress, TimeMonitor
swap bytes, endian, raw bytes, binary file: string.unpack
sort by key, sort a table, sort list of: table.sort
dictionary keys, iterate over a dictionary, loop over a table: pairs
length of a list, length of a table, number of items: #, table
substring, split a string, join strings, replace in a string, trim: string.gsub, string.find, table.concat
random number in lua, random float: math.random
try except, try catch, raise an error, throw: pcall, error
import a module, import a file, package path: require
class, inheritance, object oriented, constructor: Cell:extend, setmetatable
lambda, anonymous function, closure: guide.from_pytorch
]]):gmatch "([^\n]-): ([^\n]*)" do
  list[#list + 1] = { others, ours }
end
return list
