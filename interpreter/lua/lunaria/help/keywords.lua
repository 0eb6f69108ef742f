-- Keywords of entries, beside their names and texts: what people look for by an entry, "name: words and phrases", one line for each.
-- luacheck: no max line length
local list = {}
for name, words in ([[
ms.ops.matmul: matrix multiplication, matrix product, dot product, multiply matrices
ms.ops.mul: elementwise product, hadamard product
ms.ops.argmax: index of the largest element, position of the maximum, predicted class
ms.ops.argmin: index of the smallest element, position of the minimum
ms.ops.concat: join tensors, append tensors, append rows, add a column, concatenate along an axis, join lists of tensors
ms.ops.clip_by_global_norm: clip gradients, gradient clipping, exploding gradients
ms.ops.reshape: change the shape, view
ms.ops.permute: reorder axes, swap dimensions
ms.ops.expand_dims: add an axis, add a dimension
ms.ops.squeeze: remove an axis, remove a dimension
ms.ops.one_hot: one hot encoding
ms.ops.equal: compare tensors, elementwise equality
ms.ops.isclose: almost equal, compare floats
ms.ops.einsum: einstein summation, sum over indices, contraction, tensor product
ms.ops.inverse: invert a matrix
ms.ops.interpolate: resize an image, upsampling
ms.nn.Dense: linear layer, fully connected layer, feed forward layer, mlp
ms.nn.MultiheadAttention: self attention, transformer
ms.nn.LSTM: recurrent network
ms.nn.Conv2d: convolutional layer, cnn
ms.nn.Cell: base class of layers
ms.value_and_grad: loss and gradients, value and gradient together, gradient only for some parameters
ms.progress: progress bar
ms.set_num_threads: number of threads, how many threads, use more cores
ms.summary: number of parameters, count the parameters, layers of a network, parameters of each layer, architecture of a network
ms.tensor: make a tensor, table to tensor
x:item: tensor to number, get the value, single value, plain number from a tensor
x:tolist: tensor to table, list of lists, tensor to list
x:astype: change the dtype, cast, double to float, int to float, float to int
%timeit: measure the time, benchmark, how long does a line take, time a piece of code
!COMMAND: run a shell command
ms.ops.abs: absolute value, magnitude of each element
ms.ops.add: add two tensors, sum of two tensors
ms.ops.all: all true, all elements nonzero, every element satisfies
ms.ops.any: any true, at least one element satisfies, contains a value
ms.ops.amax: largest value along an axis, maximum of each row
ms.ops.amin: smallest value along an axis, minimum of each row
ms.ops.arange: range of integers, consecutive numbers, numbers from 0 to n
ms.ops.argsort: order of elements, sort rows by a column, sort by another array, indices of sorted values
ms.ops.atan2: angle of a point, angle from x and y
ms.ops.bernoulli: coin flips, random zeros and ones, random mask
ms.ops.bincount: count of each integer, number of samples per class, class frequencies, most frequent value
ms.ops.block_diag: blocks on the diagonal
ms.ops.bmm: batch of matrices, batched product
ms.ops.broadcast_to: expand a tensor to a shape, copy along an axis without memory
ms.ops.bucketize: which bin, put values into bins, discretize
ms.ops.cartesian_prod: all combinations of two lists
ms.ops.cast: convert the dtype, convert to integers, convert to float
ms.ops.cdist: distance matrix, pairwise distances, nearest neighbours
ms.ops.ceil: round up
ms.ops.cholesky: factor of a positive definite matrix
ms.ops.chunk: split into equal pieces, n equal parts
ms.ops.clamp: limit values, clip values between a minimum and a maximum, negative values to zero, bounds
ms.ops.column_stack: add a column, append a column
ms.ops.combinations: pairs of elements
ms.ops.cosine_similarity: similarity of vectors, cosine distance, angle between vectors
ms.ops.count_nonzero: how many elements are true, number of true values, count elements that satisfy
ms.ops.cross_entropy: classification loss of logits, ignore index, ignore padding in the loss, class weights, one label per token
ms.ops.cumsum: running total, cumulative sum
ms.ops.det: determinant of a matrix
ms.ops.diag: diagonal matrix from a vector, put a vector on the diagonal
ms.ops.diagonal: diagonal elements of a matrix
ms.ops.diff: difference of neighbours, consecutive differences
ms.ops.div: divide two tensors, elementwise division
ms.ops.eigh: eigenvalues of a symmetric matrix
ms.ops.empty: tensor without values, allocate memory
ms.ops.erf: error function
ms.ops.exp: e to the power
ms.ops.eye: identity matrix
ms.ops.flatten: to one dimension, 2d to 1d, vector of all elements, flatten a batch
ms.ops.flip: reverse a tensor, reverse the order of rows, mirror
ms.ops.floor: round down, integer part
ms.ops.floor_divide: integer division, quotient without remainder
ms.ops.full: tensor filled with a value, constant tensor
ms.ops.gather: pick rows by index, select along an axis
ms.ops.gather_elements: pick one value of each row, value at the index of each row, q value of the action taken
ms.ops.greater: larger than, elementwise comparison, threshold to boolean
ms.ops.grid_sample: warp an image, sample an image at positions
ms.ops.gumbel_softmax: differentiable sampling of categories
ms.ops.histc: count values in bins
ms.ops.index_select: select rows by a list of indices
ms.ops.isnan: check for nan, contains nan, rows with nan
ms.ops.isinf: check for infinity, contains infinity
ms.ops.kron: kronecker product
ms.ops.lerp: interpolate between two tensors, blend two tensors
ms.ops.linspace: evenly spaced numbers, n points between
ms.ops.log: natural logarithm
ms.ops.log_softmax: log probabilities, logarithm of softmax
ms.ops.logical_and: both conditions, combine two masks
ms.ops.logical_or: one of two conditions
ms.ops.logical_not: invert a mask, negate a boolean tensor
ms.ops.logsumexp: stable log of a sum of exponentials
ms.ops.lstsq: least squares, linear regression in closed form
ms.ops.masked_fill: set elements to a value where a mask is true, replace values by a condition
ms.ops.masked_select: filter elements by a condition, elements larger than, drop nan
ms.ops.matrix_exp: exponential of a matrix
ms.ops.matrix_power: multiply a matrix by itself
ms.ops.matrix_solve: solve a linear system
ms.ops.max: maximum value, largest element, highest value and its position
ms.ops.maximum: elementwise maximum, larger of two tensors
ms.ops.mean: average of a tensor, average along an axis, mean of each column
ms.ops.median: middle value
ms.ops.meshgrid: grid of coordinates
ms.ops.min: minimum value, smallest element
ms.ops.minimum: elementwise minimum, smaller of two tensors
ms.ops.multinomial: sample from probabilities, weighted random choice, sample a token, random choice with probabilities
ms.ops.nan_to_num: replace nan, remove nan, fill missing values
ms.ops.nonzero: indices where a condition holds, positions of nonzero elements, first index of a value, where is a value
ms.ops.norm: length of a vector, unit length, normalize a vector, euclidean norm, l2 norm
ms.ops.normal: gaussian with mean and deviation, random normal with a given mean
ms.ops.ones: tensor of ones
ms.ops.ones_like: ones of the same shape
ms.ops.outer: outer product of vectors
ms.ops.pad: add zeros around, zero padding, pad a sequence
ms.ops.pinv: pseudo inverse
ms.ops.pow: raise to a power
ms.ops.prod: product of all elements
ms.ops.qr: orthogonal decomposition, orthonormal basis
ms.ops.quantile: percentile, quartiles
ms.ops.rand: uniform random numbers between 0 and 1
ms.ops.randint: random integers
ms.ops.randn: standard normal random numbers, gaussian noise
ms.ops.randperm: random order, shuffle indices, shuffle rows, shuffle two tensors alike
ms.ops.ravel: one dimension
ms.ops.relu: positive part, rectifier
ms.ops.remainder: modulo, remainder of a division
ms.ops.repeat_interleave: repeat each element, repeat each row n times
ms.ops.roll: shift elements around, circular shift
ms.ops.rot90: rotate by 90 degrees
ms.ops.round: round to the nearest integer, round to decimals
ms.ops.scatter: write values at indices
ms.ops.searchsorted: binary search, insert position in a sorted list, nearest value
ms.ops.sigmoid: logistic, squash to 0 and 1
ms.ops.sign: sign of each element
ms.ops.slogdet: logarithm of the determinant
ms.ops.softmax: probabilities of classes, logits into probabilities
ms.ops.sort: sort values, ascending and descending, sort each row
ms.ops.split: split a tensor into parts
ms.ops.sqrt: square root
ms.ops.square: square of each element
ms.ops.stack: list of tensors into one tensor, batch from samples, join along a new axis
ms.ops.std: standard deviation
ms.ops.sub: subtract, difference of two tensors
ms.ops.sum: sum of all elements, sum over an axis, sum of each row
ms.ops.svd: singular values, principal components, rank of a matrix
ms.ops.swapaxes: swap two axes
ms.ops.tile: repeat a tensor, copies side by side
ms.ops.topk: k largest values, top k indices
ms.ops.trace: sum of the diagonal
ms.ops.transpose: swap rows and columns
ms.ops.trapz: area under a curve, integrate samples
ms.ops.tril: lower triangle, causal mask
ms.ops.triu: upper triangle
ms.ops.unfold: patches of an image, image to columns, im2col
ms.ops.unique: distinct values, remove duplicates, count each value
ms.ops.var: variance
ms.ops.where: choose by a condition, elementwise if, replace values where a condition holds
ms.ops.zeros: tensor of zeros
ms.ops.zeros_like: zeros of the same shape
ms.ops.conv1d: moving average with a kernel
ms.ops.fft: fourier transform
ms.ops.rfft: fourier transform of real signals
ms.ops.dropout: randomly zero elements
ms.ops.embedding: rows of a table by index
ms.ops.layer_norm: normalize over the last axis
ms.ops.mse_loss: mean squared error
ms.ops.binary_cross_entropy: loss of probabilities for two classes
ms.ops.sequence_mask: mask from lengths, mask of padding
ms.ops.linear_recurrence: recurrence over time
ms.numpy.unravel_index: flat index to coordinates
ms.numpy.convolve: moving average, running mean
ms.numpy.percentile: percentile
ms.numpy.interp: linear interpolation of points
ms.numpy.isin: is a value in a list, membership of elements
ms.numpy.setdiff1d: elements of one array that are not in another
ms.numpy.intersect1d: common elements of two arrays
ms.numpy.histogram: histogram with bin edges
ms.numpy.cov: covariance matrix
ms.numpy.corrcoef: correlation coefficients
ms.numpy.polyfit: fit a polynomial
ms.numpy.apply_along_axis: apply a function to each row
ms.numpy.gradient: numerical derivative of samples
ms.numpy.digitize: which bin
ms.numpy.array_split: split into unequal parts
ms.nn.AdaptiveAvgPool2d: global average pooling, pool to a fixed size
ms.nn.AvgPool2d: average pooling
ms.nn.MaxPool2d: max pooling of images, downsample a feature map
ms.nn.BatchNorm1d: batch normalization of rows
ms.nn.BatchNorm2d: batch normalization of images, running mean and variance
ms.nn.InstanceNorm2d: instance normalization
ms.nn.GroupNorm: group normalization
ms.nn.LayerNorm: layer normalization
ms.nn.BCELoss: loss for binary classification of probabilities
ms.nn.BCEWithLogitsLoss: loss for binary classification, multi label classification, several labels at once
ms.nn.CrossEntropyLoss: loss for classification, class weights, label smoothing, ignore index, ignore padding in the loss
ms.nn.MSELoss: loss for regression, mean squared error
ms.nn.L1Loss: mean absolute error
ms.nn.SmoothL1Loss: huber like loss
ms.nn.NLLLoss: negative log likelihood
ms.nn.KLDivLoss: divergence of distributions
ms.nn.CosineEmbeddingLoss: similar and dissimilar pairs, contrastive loss
ms.nn.TripletMarginLoss: anchor positive negative, metric learning
ms.nn.CTCLoss: alignment free sequence loss
ms.nn.FocalLoss: imbalanced classes, hard examples
ms.nn.CellList: list of layers, loop over layers
ms.nn.CellDict: layers by name
ms.nn.SequentialCell: layers one after the other, chain of layers
ms.nn.Conv1d: convolution of sequences
ms.nn.Conv3d: convolution of videos and volumes
ms.nn.Conv2dTranspose: upsampling convolution, deconvolution
ms.nn.Dropout: randomly zero activations, prevent overfitting
ms.nn.Flatten: flatten a batch of images
ms.nn.GRU: gated recurrent, hidden state
ms.nn.RNN: simple recurrent network, vanilla rnn
ms.nn.LSTMCell: one step of a lstm
ms.nn.LeakyReLU: slope of negative values
ms.nn.PReLU: learned slope
ms.nn.Softmax: probabilities of classes as a layer
ms.nn.Transformer: encoder and decoder
ms.nn.TransformerEncoder: stack of encoder layers
ms.nn.TransformerEncoderLayer: encoder block, src key padding mask
ms.nn.MixtureOfExperts: experts, router
ms.nn.RotaryEmbedding: rotary position embedding
ms.nn.PixelShuffle: sub pixel upsampling, super resolution
ms.nn.Upsample: larger feature maps
ms.nn.ZeroPad2d: zeros around an image
ms.nn.Adam: adaptive optimizer, default optimizer
ms.nn.AdamWeightDecay: adam with weight decay, l2 regularization, weight decay
ms.nn.AdamW: decoupled weight decay
ms.nn.SGD: stochastic gradient descent, momentum, nesterov, weight decay
ms.nn.Momentum: gradient descent with momentum
ms.nn.RMSProp: rmsprop
ms.nn.LBFGS: quasi newton
ms.nn.GradientAccumulation: gradients of several batches, larger effective batch
ms.nn.CosineDecayLR: cosine annealing
ms.nn.WarmUpLR: linear warmup
ms.nn.Cell:set_train: train and eval mode, evaluation mode, turn dropout off, batch norm at test time
ms.nn.Cell:trainable_params: parameters for the optimizer, number of trainable parameters
ms.nn.Cell:get_parameters: all weights of a network
ms.nn.Cell:parameters_dict: weights by name, dictionary of weights, state dict
ms.nn.Cell:parameters_and_names: weights by name, names of the weights, access the weights of a layer
ms.nn.Cell:register_forward_hook: output of an intermediate layer, activations of a layer, feature extraction, hook on a layer
ms.nn.Cell:register_backward_hook: gradient at a layer
ms.nn.Cell:cells_and_names: all layers of a network by name
ms.nn.Cell:requires_grad_: freeze a layer, not train a layer
ms.nn.Cell:to_float: layer in half precision
ms.nn.Cell:recompute: save memory in the backward pass
ms.nn.Cell:apply: apply a function to every layer, initialize all layers
ms.nn.Optimizer: step of an optimizer, update the weights
ms.grad: gradient of a function, gradient of the input
ms.vjp: vector jacobian product
ms.jvp: jacobian vector product
ms.vmap: map over a batch, one argument fixed, axis of an argument
ms.jit: compile a function, loop inside a compiled function
ms.jit_report: what was compiled, recompiled every time
ms.hessian: second derivatives
ms.stop_gradient: without gradient, detach, no gradient
ms.Model: trainer, keras like training
ms.Model:train: train for some epochs
ms.Model:fit: train and validate, validation during training
ms.Model:eval: accuracy on the test set, evaluate on test data
ms.Model:predict: run inference, prediction of new samples
ms.save: save a tensor, save an array to disk, save weights
ms.load: load a tensor, read npz
ms.load_weights: load pretrained weights, weights with other names
ms.load_param_into_net: copy weights into a network, missing keys, size mismatch of weights
ms.save_checkpoint: save only the weights
ms.load_checkpoint: read a checkpoint
ms.export: export a network, onnx file
ms.image: show an image, display a tensor as an image, grid of images
ms.initializer: initial weights of a layer, xavier, kaiming
ms.set_seed: same result every run, fix randomness
ms.Generator: several random streams
ms.set_device: choose a device
ms.runtime.devices: is a gpu available, list of devices
ms.runtime.memory_allocated: memory in use
ms.runtime.max_memory_allocated: peak memory
ms.profile: time of each operator
ms.check_grad: test a gradient against differences
ms.json: read json, write json
ms.lite.quantize: int8 weights, smaller model
ms.lite.generate: beam search, sampling text, stream tokens
ms.lite.load_decoder: load a llama model, hugging face model
ms.lite.serve: rest api
ms.lite.Tokenizer: encode text, decode tokens
ms.insight: tensorboard
ms.slice: range of indices, every second element, step
ms.boost.EMA: average of the weights, moving average of weights
ms.train.Accuracy: share of right predictions
ms.train.ConfusionMatrix: confusion matrix
ms.train.F1: f1 score of a classifier
ms.train.History: losses of each epoch
ms.train.LossMonitor: print the loss, log the loss every n steps
ms.train.TimeMonitor: time of each epoch
ms.train.EarlyStopping: stop when validation does not improve
ms.train.ReduceLROnPlateau: reduce the learning rate on plateau
ms.train.LearningRateScheduler: change the learning rate during training
ms.train.ModelCheckpoint: save after every epoch, keep the last checkpoints
ms.train.BackupAndRestore: resume an interrupted training
ms.train.Callback: own callback
ms.train.SummaryCollector: record curves of a training
ms.dataset.Dataset:batch: batch size, drop the last batch, number of workers, collate
ms.dataset.Dataset:map: apply a transform, preprocess columns, number of workers
ms.dataset.Dataset:filter: keep rows that satisfy
ms.dataset.Dataset:shuffle: random order of rows
ms.dataset.Dataset:split: train and test set, random split
ms.dataset.Dataset:take: first rows of a dataset, subset of a dataset, limit the number of samples
ms.dataset.Dataset:skip: leave out the first rows
ms.dataset.Dataset:repeat_: several epochs in one pass
ms.dataset.Dataset:zip: two datasets side by side
ms.dataset.Dataset:concat: two datasets one after the other
ms.dataset.Dataset:padded_batch: pad sequences of a batch, collate function, different lengths
ms.dataset.Dataset:get_dataset_size: number of batches, length of a dataset
ms.dataset.Dataset:create_dict_iterator: batches as tables by column
ms.dataset.Dataset:create_tuple_iterator: loop over batches
ms.dataset.GeneratorDataset: custom dataset class, own dataset, getitem and len, dataset from a function
ms.dataset.NumpySlicesDataset: dataset of tensors in memory
ms.dataset.WeightedRandomSampler: draw rare classes more often
ms.dataset.vision.ToTensor: image to tensor between 0 and 1
ms.dataset.vision.Rescale: scale pixels to 0 and 1
ms.dataset.vision.Normalize: subtract the mean of each channel
ms.dataset.vision.RandomCrop: random crop with padding
ms.dataset.vision.RandomResizedCrop: crop and resize for imagenet
ms.dataset.vision.RandomRotation: random rotation of images
ms.dataset.vision.Grayscale: image to gray
ms.dataset.vision.Decode: decode jpeg
ms.dataset.vision.read_image: read an image file
ms.dataset.vision.HWC2CHW: channels first
x:to: move a tensor to gpu, to cpu
x:iter: loop over rows of a tensor
x.shape: dimensions of a tensor, number of rows and columns
x.ndim: number of axes
x.dtype: type of the elements, check the type of a tensor
x.device: where a tensor lies
x.T: transpose of a matrix
x:clone: copy a tensor
%time: time of one statement
%who: variables that are defined
%memit: memory of a statement
%run: run a script from the prompt
%debug: look at variables after an error
breakpoint: stop at a line, step through code
]]):gmatch "([^\n]-): ([^\n]*)" do
  list[name] = words
end
return list
