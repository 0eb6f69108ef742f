-- Keywords of entries, beside their names and texts: what people look for by an entry, "name: words and phrases", one line for each.
-- Here those of tensors, operators and layers; keywords_of_programs has the others.
-- luacheck: no max line length
local list = require "lunaria.help.keywords_of_programs"
for name, words in ([[
ms.ops.matmul: matrix multiplication, matrix product, dot product, multiply matrices, product of two matrices, batch matrix multiplication, matrix times vector
ms.ops.mul: elementwise product, hadamard product, multiply two matrices elementwise, multiply element by element
ms.ops.argmax: index of the largest element, position of the maximum, predicted class, undo one hot, one hot to label, class with the highest score
ms.ops.argmin: index of the smallest element, position of the minimum
ms.ops.concat: join tensors, append tensors, append rows, add a column, concatenate along an axis, join lists of tensors, put tensors together, glue tensors, append one tensor to another
ms.ops.clip_by_global_norm: clip gradients, gradient clipping, exploding gradients, gradient norm, limit the gradients, stop gradient explosion, gradients explode
ms.ops.reshape: change the shape, view, change the shape of a tensor, flatten to a vector
ms.ops.permute: reorder axes, swap dimensions
ms.ops.expand_dims: add an axis, add a dimension, new axis, batch axis
ms.ops.squeeze: remove an axis, remove a dimension, drop an axis of size one
ms.ops.one_hot: one hot encoding, one hot, convert labels to one hot, classes to vectors, integer labels to indicator vectors
ms.ops.equal: compare tensors, elementwise equality, compare two tensors, where are tensors equal
ms.ops.isclose: almost equal, compare floats
ms.ops.einsum: einstein summation, sum over indices, contraction, tensor product, sum of products by indices
ms.ops.inverse: invert a matrix
ms.ops.interpolate: upsampling, scale feature maps, upsample a tensor
ms.nn.Dense: linear layer, fully connected layer, feed forward layer, mlp
ms.nn.MultiheadAttention: self attention, transformer
ms.nn.LSTM: recurrent network, long short term memory, bidirectional recurrent network
ms.nn.Conv2d: convolutional layer, cnn
ms.nn.Cell: base class of layers
ms.tensor: make a tensor, table to tensor
x:item: tensor to number, get the value, single value, plain number from a tensor, cast a tensor with one element, scalar of a tensor, tensor to int, loss as a number
x:tolist: tensor to table, list of lists, tensor to list, print a tensor with all digits, all elements of a tensor printed, see all values of a tensor, full tensor
x:astype: change the dtype, cast, double to float, int to float, float to int, change the data type, convert dtype, cast to float16, to integer
ms.ops.abs: absolute value, magnitude of each element
ms.ops.add: add two tensors, sum of two tensors
ms.ops.all: all true, all elements nonzero, every element satisfies, are all true
ms.ops.any: any true, at least one element satisfies, contains a value, is one true
ms.ops.amax: largest value along an axis, maximum of each row
ms.ops.amin: smallest value along an axis, minimum of each row
ms.ops.arange: range of integers, consecutive numbers, numbers from 0 to n, numbers from 0, integers in a row, range of numbers, count up
ms.ops.argsort: order of elements, sort rows by a column, sort by another array, indices of sorted values, order of the elements, sort by a column
ms.ops.atan2: angle of a point, angle from x and y
ms.ops.bernoulli: coin flips, random zeros and ones, random mask
ms.ops.bincount: count of each integer, number of samples per class, class frequencies, most frequent value, count integers
ms.ops.block_diag: blocks on the diagonal
ms.ops.bmm: batch of matrices, batched product, batches of matrices
ms.ops.broadcast_to: expand a tensor to a shape, copy along an axis without memory, broadcast a tensor, stretch a tensor to a shape
ms.ops.bucketize: which bin, put values into bins, discretize
ms.ops.cartesian_prod: all combinations of two lists
ms.ops.cast: convert the dtype, convert to integers, convert to float
ms.ops.cdist: distance matrix, pairwise distances, nearest neighbours, distances between all pairs
ms.ops.ceil: round up
ms.ops.cholesky: factor of a positive definite matrix, square root of a matrix, covariance to samples
ms.ops.chunk: split into equal pieces, n equal parts
ms.ops.clamp: limit values, clip values between a minimum and a maximum, negative values to zero, bounds, limit values to a range, cut off values
ms.ops.column_stack: add a column, append a column
ms.ops.combinations: pairs of elements
ms.ops.cosine_similarity: similarity of vectors, cosine distance, angle between vectors, similarity of two vectors
ms.ops.count_nonzero: how many elements are true, number of true values, count elements that satisfy
ms.ops.cross_entropy: classification loss of logits, ignore index, ignore padding in the loss, class weights, one label per token
ms.ops.cumsum: running total, cumulative sum, running sum
ms.ops.det: determinant of a matrix
ms.ops.diag: diagonal matrix from a vector, put a vector on the diagonal, matrix from a diagonal, diagonal of a matrix
ms.ops.diagonal: diagonal elements of a matrix
ms.ops.diff: difference of neighbours, consecutive differences, differences of neighbours
ms.ops.div: divide two tensors, elementwise division
ms.ops.eigh: eigenvalues of a symmetric matrix
ms.ops.empty: tensor without values, allocate memory
ms.ops.erf: error function
ms.ops.exp: e to the power, exponential function
ms.ops.eye: identity matrix
ms.ops.flatten: to one dimension, 2d to 1d, vector of all elements, flatten a batch
ms.ops.flip: reverse a tensor, reverse the order of rows, mirror, reverse the order of elements, mirror a tensor
ms.ops.floor: round down, integer part
ms.ops.floor_divide: integer division, quotient without remainder
ms.ops.full: tensor filled with a value, constant tensor, tensor filled with a number
ms.ops.gather: pick rows by index, select along an axis, pick elements by index, look up rows
ms.ops.gather_elements: pick one value of each row, value at the index of each row, q value of the action taken, pick one element per row
ms.ops.greater: larger than, elementwise comparison, threshold to boolean, element is larger than
ms.ops.grid_sample: warp an image, sample an image at positions
ms.ops.gumbel_softmax: differentiable sampling of categories
ms.ops.histc: count values in bins, histogram of values
ms.ops.index_select: select rows by a list of indices, rows by their numbers
ms.ops.isnan: check for nan, contains nan, rows with nan, find nan, is there a nan
ms.ops.isinf: check for infinity, contains infinity
ms.ops.kron: kronecker product
ms.ops.lerp: interpolate between two tensors, blend two tensors, weighted mean of two tensors
ms.ops.linspace: evenly spaced numbers, n points between, values ranging from 0 to 1, equally spaced points
ms.ops.log: natural logarithm
ms.ops.log_softmax: log probabilities, logarithm of softmax
ms.ops.logical_and: both conditions, combine two masks, both conditions hold
ms.ops.logical_or: one of two conditions
ms.ops.logical_not: invert a mask, negate a boolean tensor
ms.ops.logsumexp: stable log of a sum of exponentials, stable log of a sum
ms.ops.lstsq: least squares, linear regression in closed form, fit a line, linear regression by least squares
ms.ops.masked_fill: set elements to a value where a mask is true, replace values by a condition, set values where condition, fill where a mask is true
ms.ops.masked_select: filter elements by a condition, elements larger than, drop nan, elements where a mask is true, select by a condition
ms.ops.matrix_exp: exponential of a matrix
ms.ops.matrix_power: multiply a matrix by itself
ms.ops.matrix_solve: solve a linear system
ms.ops.max: maximum value, largest element, highest value and its position, largest value
ms.ops.maximum: elementwise maximum, larger of two tensors
ms.ops.mean: average of a tensor, average along an axis, mean of each column, average of values, mean over rows, mean over columns
ms.ops.median: middle value
ms.ops.meshgrid: grid of coordinates, mesh of coordinates, all pairs of coordinates
ms.ops.min: minimum value, smallest element, smallest value
ms.ops.minimum: elementwise minimum, smaller of two tensors
ms.ops.multinomial: sample from probabilities, weighted random choice, sample a token, random choice with probabilities, draw from weights, sample a class from probabilities
ms.ops.nan_to_num: replace nan, remove nan, fill missing values
ms.ops.nonzero: indices where a condition holds, positions of nonzero elements, first index of a value, where is a value, positions of elements that are not zero, where is a condition true
ms.ops.norm: length of a vector, unit length, normalize a vector, euclidean norm, l2 norm, size of a gradient, infinity norm, l1 norm, frobenius norm, maximum norm, magnitude of a vector
ms.ops.normal: gaussian with mean and deviation, random normal with a given mean
ms.ops.ones: tensor of ones
ms.ops.ones_like: ones of the same shape
ms.ops.outer: outer product of vectors, all products of two vectors
ms.ops.pad: add zeros around, zero padding, pad a sequence, add a border of zeros, pad with zeros, zero padding of a tensor
ms.ops.pinv: pseudo inverse
ms.ops.pow: raise to a power
ms.ops.prod: product of all elements, product of elements, multiply all elements, product along an axis
ms.ops.qr: orthogonal decomposition, orthonormal basis, qr decomposition, orthogonal basis
ms.ops.quantile: percentile, quartiles, percentile of values
ms.ops.rand: uniform random numbers between 0 and 1, uniform random numbers, random matrix
ms.ops.randint: random integers, random whole numbers, dice
ms.ops.randn: add noise, noise for data, standard normal random numbers, gaussian noise, normal random numbers
ms.ops.randperm: random order, shuffle indices, shuffle two tensors alike, shuffle numbers, permutation at random
ms.ops.ravel: one dimension
ms.ops.relu: positive part, rectifier
ms.ops.remainder: modulo, remainder of a division
ms.ops.repeat_interleave: repeat each element, repeat each row n times
ms.ops.roll: shift elements around, circular shift
ms.ops.rot90: rotate by 90 degrees
ms.ops.round: round to the nearest integer, round to decimals, round to whole numbers
ms.ops.scatter: write values at indices, write at indices
ms.ops.searchsorted: binary search, insert position in a sorted list, nearest value, insert into a sorted list
ms.ops.sigmoid: logistic, squash to 0 and 1, logistic function
ms.ops.sign: sign of each element, sign of numbers
ms.ops.slogdet: logarithm of the determinant
ms.ops.softmax: probabilities of classes, logits into probabilities, scores to probabilities, softmax with temperature
ms.ops.sort: sort values, ascending and descending, sort each row
ms.ops.split: split a tensor into parts, cut a tensor into pieces
ms.ops.sqrt: square root
ms.ops.square: square of each element
ms.ops.stack: list of tensors into one tensor, batch from samples, join along a new axis, list of tensors to tensor, tensors to one tensor
ms.ops.std: standard deviation, spread of values
ms.ops.sub: subtract, difference of two tensors
ms.ops.sum: sum of all elements, sum over an axis, sum of each row, add up rows
ms.ops.svd: singular values, principal components, rank of a matrix
ms.ops.swapaxes: swap two axes
ms.ops.tile: repeat a tensor, copies side by side, copies of a tensor side by side
ms.ops.topk: k largest values, top k indices, top k values, largest values with their places, pick the best classes, three largest, best scores
ms.ops.trace: sum of the diagonal
ms.ops.transpose: swap rows and columns, transpose a matrix
ms.ops.trapz: area under a curve, integrate samples
ms.ops.tril: lower triangle, causal mask, keep the lower triangle, fill upper triangle with zeros
ms.ops.triu: upper triangle, fill lower triangle with zeros, keep the upper triangle, causal mask
ms.ops.unfold: patches of an image, image to columns, im2col, sliding windows
ms.ops.unique: distinct values, remove duplicates, count each value
ms.ops.var: variance, variance of values
ms.ops.where: choose by a condition, elementwise if, replace values where a condition holds, values where a condition holds, choose by condition, if else for elements, element by element if
ms.ops.zeros: tensor of zeros, null vector, empty vector of zeros
ms.ops.zeros_like: zeros of the same shape
ms.ops.conv1d: moving average with a kernel, filter a sequence
ms.ops.fft: fourier transform, frequencies of a signal
ms.ops.rfft: fourier transform of real signals
ms.ops.dropout: randomly zero elements, dropout as a function
ms.ops.embedding: rows of a table by index
ms.ops.layer_norm: normalize over the last axis
ms.ops.mse_loss: mean squared error
ms.ops.binary_cross_entropy: loss of probabilities for two classes
ms.ops.sequence_mask: mask from lengths, mask of padding
ms.ops.linear_recurrence: recurrence over time
ms.numpy.unravel_index: flat index to coordinates, index of the nth element
ms.numpy.convolve: moving average, running mean
ms.numpy.percentile: percentile
ms.numpy.interp: linear interpolation of points, interpolate between points, linear interpolation, values between points, interpolate values of a table
ms.numpy.isin: is a value in a list, membership of elements
ms.numpy.setdiff1d: elements of one array that are not in another
ms.numpy.intersect1d: common elements of two arrays
ms.numpy.histogram: histogram with bin edges
ms.numpy.cov: covariance matrix
ms.numpy.corrcoef: correlation coefficients, correlation matrix
ms.numpy.polyfit: fit a polynomial
ms.numpy.apply_along_axis: apply a function to each row
ms.numpy.gradient: numerical derivative of samples
ms.numpy.digitize: which bin
ms.numpy.array_split: split into unequal parts
ms.nn.AdaptiveAvgPool2d: global average pooling, pool to a fixed size, pool to one pixel
ms.nn.AvgPool2d: average pooling, average pooling layer, mean pooling
ms.nn.MaxPool2d: max pooling of images, downsample a feature map, pooling layer, pooling, downsample feature maps
ms.nn.BatchNorm1d: batch normalization of rows, standardize features
ms.nn.BatchNorm2d: batch normalization of images, running mean and variance, normalize over the batch
ms.nn.InstanceNorm2d: instance normalization, style transfer normalization
ms.nn.GroupNorm: group normalization, normalize groups of channels
ms.nn.LayerNorm: layer normalization, normalize each sample
ms.nn.BCELoss: loss for binary classification of probabilities, binary classification loss
ms.nn.BCEWithLogitsLoss: loss for binary classification, multi label classification, several labels at once, multi label classification loss, binary loss of logits
ms.nn.CrossEntropyLoss: loss for classification, class weights, label smoothing, ignore index, ignore padding in the loss, smooth labels, classification loss
ms.nn.MSELoss: loss for regression, mean squared error, squared error loss, regression loss
ms.nn.L1Loss: mean absolute error, absolute error loss
ms.nn.SmoothL1Loss: huber like loss, robust regression loss
ms.nn.NLLLoss: negative log likelihood
ms.nn.KLDivLoss: divergence of distributions, kl loss, knowledge distillation loss
ms.nn.CosineEmbeddingLoss: similar and dissimilar pairs, contrastive loss, distance between embeddings loss, similarity loss, metric learning
ms.nn.TripletMarginLoss: anchor positive negative, metric learning, triplet loss
ms.nn.CTCLoss: alignment free sequence loss, speech recognition loss
ms.nn.FocalLoss: imbalanced classes, hard examples
ms.nn.CellList: list of layers, loop over layers, layers in a loop
ms.nn.CellDict: layers by name
ms.nn.SequentialCell: layers one after the other, chain of layers, sequential model, stack of layers
ms.nn.Conv1d: convolution of sequences, convolution over time
ms.nn.Conv3d: convolution of videos and volumes, convolution over videos
ms.nn.Conv2dTranspose: upsampling convolution, deconvolution
ms.nn.Dropout: randomly zero activations, prevent overfitting
ms.nn.Flatten: flatten a batch of images, flatten pictures before a dense layer
ms.nn.GRU: gated recurrent, hidden state, gated recurrent unit
ms.nn.RNN: simple recurrent network, vanilla rnn
ms.nn.LSTMCell: one step of a lstm
ms.nn.LeakyReLU: slope of negative values, leaky activation
ms.nn.PReLU: learned slope
ms.nn.Softmax: probabilities of classes as a layer, probabilities of classes
ms.nn.Transformer: encoder and decoder
ms.nn.TransformerEncoder: stack of encoder layers, encoder of a transformer, bert
ms.nn.TransformerEncoderLayer: encoder block, src key padding mask
ms.nn.MixtureOfExperts: experts, router
ms.nn.RotaryEmbedding: rotary position embedding
ms.nn.PixelShuffle: sub pixel upsampling, super resolution
ms.nn.Upsample: larger feature maps
ms.nn.ZeroPad2d: zeros around an image
ms.nn.Adam: adaptive optimizer, default optimizer
ms.nn.AdamWeightDecay: adam with weight decay, l2 regularization, weight decay
ms.nn.AdamW: decoupled weight decay, optimizer for transformers
ms.nn.SGD: stochastic gradient descent, momentum, nesterov, weight decay, plain gradient descent
ms.nn.Momentum: gradient descent with momentum
ms.nn.RMSProp: rmsprop
ms.nn.LBFGS: quasi newton
ms.nn.GradientAccumulation: gradients of several batches, larger effective batch
ms.nn.CosineDecayLR: cosine annealing, cosine schedule
ms.nn.WarmUpLR: linear warmup, warm up steps
ms.nn.Cell:set_train: train and eval mode, evaluation mode, turn dropout off, batch norm at test time, training mode, switch off dropout, eval mode
ms.nn.Cell:trainable_params: parameters for the optimizer, number of trainable parameters
ms.nn.Cell:get_parameters: all weights of a network
ms.nn.Cell:parameters_dict: weights by name, dictionary of weights, state dict, names of parameters
ms.nn.Cell:parameters_and_names: weights by name, names of the weights, access the weights of a layer
ms.nn.Cell:register_forward_hook: output of an intermediate layer, activations of a layer, feature extraction, hook on a layer, print intermediate values, output of an inner layer, feature maps of a layer
ms.nn.Cell:register_backward_hook: gradient at a layer
ms.nn.Cell:cells_and_names: all layers of a network by name
ms.nn.Cell:requires_grad_: freeze a layer, not train a layer
ms.nn.Cell:to_float: layer in half precision
ms.nn.Cell:recompute: save memory in the backward pass, train with limited memory, less memory while training, recompute activations
ms.nn.Cell:apply: apply a function to every layer, initialize all layers
ms.nn.Optimizer: step of an optimizer, update the weights, write an optimizer
ms.slice: range of indices, every second element, step
x:to: move a tensor to gpu, to cpu, move a tensor to the gpu
x:iter: loop over rows of a tensor
x.shape: dimensions of a tensor, number of rows and columns
x.ndim: number of axes
x.dtype: type of the elements, check the type of a tensor
x.device: where a tensor lies, device of a tensor, which device a tensor is on, is a tensor on the gpu, where a tensor is, where does a tensor live, where is a tensor, device of the data
x.T: transpose of a matrix
x:clone: copy a tensor, copy of a tensor
ms.nn.ReLU: rectifier layer, activation layer
ms.nn.GELU: gaussian error linear unit, transformer activation, activation of transformers
ms.nn.SiLU: swish activation, swish
ms.nn.Mish: mish activation
ms.nn.ELU: exponential linear unit
ms.nn.SeLU: self normalizing network
ms.nn.Tanh: hyperbolic tangent layer
ms.nn.Sigmoid: logistic layer, squash to 0 and 1
ms.nn.GLU: gated linear unit
ms.nn.HSwish: hard swish, mobilenet activation
ms.nn.HSigmoid: hard sigmoid
ms.nn.RReLU: randomized leaky relu
ms.nn.ReLU6: capped relu
ms.nn.Softmax2d: softmax over channels
ms.nn.LogSoftmax: log probabilities as a layer
ms.nn.Identity: layer that does nothing, pass through, placeholder layer, skip a layer
ms.nn.Unflatten: split an axis into several, reshape in a sequential network
ms.nn.Pad: pad images
ms.nn.ReflectionPad2d: mirror padding, reflect padding
ms.nn.ReplicationPad2d: edge padding, replicate padding
ms.nn.ConstantPad2d: pad with a value
ms.nn.Unfold: patches of images, sliding blocks, im2col
ms.nn.ChannelShuffle: shufflenet
ms.nn.PixelUnshuffle: space to depth
ms.nn.LPPool2d: power average pooling
ms.nn.MaxPool1d: max pooling of sequences
ms.nn.AvgPool1d: average pooling of sequences
ms.nn.AdaptiveMaxPool2d: global max pooling
ms.nn.MaxUnpool2d: undo max pooling, unpooling, segnet
ms.nn.LRN: local response normalization, alexnet normalization
ms.nn.SyncBatchNorm: synchronized batch normalization, batch norm over several gpus, batch statistics across devices, batch norm over ranks
ms.nn.RMSNorm: root mean square normalization, llama normalization
ms.nn.BatchNorm3d: batch normalization of volumes
ms.nn.InstanceNorm1d: instance normalization of sequences
ms.nn.Conv1dTranspose: upsample a sequence
ms.nn.Conv3dTranspose: upsample a volume
ms.nn.Conv2dBnAct: convolution with batch norm and activation
ms.nn.DenseBnAct: dense layer with batch norm and activation
ms.nn.BiDense: bilinear layer, bilinear form
ms.nn.EmbeddingLookup: large embedding table
ms.nn.RowTable: embedding table in host memory, huge vocabulary, recommender
ms.nn.RNNCell: one step of a recurrent network
ms.nn.GRUCell: one step of a gru
ms.nn.TransformerDecoder: stack of decoder layers, cross attention, causal decoder, decoder of a transformer
ms.nn.TransformerDecoderLayer: decoder block
ms.nn.KVCache: key value cache, keys and values of earlier tokens, incremental decoding, cache for generation
ms.nn.LoRADense: low rank adapter layer
ms.nn.RingAttention: sequence parallel, context parallel, very long sequences
ms.nn.TimeDistributed: same layer at every time step
ms.nn.Dropout2d: drop whole channels, spatial dropout
ms.nn.Dropout1d: drop channels of sequences
ms.nn.Dropout3d: drop channels of volumes
ms.nn.HuberLoss: robust regression loss, outliers, loss for outliers
ms.nn.MAELoss: absolute error loss
ms.nn.RMSELoss: root mean squared error loss
ms.nn.DiceLoss: segmentation loss, overlap loss
ms.nn.MultiClassDiceLoss: segmentation loss of several classes
ms.nn.GaussianNLLLoss: loss with a predicted variance, uncertainty of a regression, heteroscedastic
ms.nn.PoissonNLLLoss: loss for counts, poisson regression
ms.nn.MarginRankingLoss: ranking loss, learning to rank, which of two is better
ms.nn.HingeEmbeddingLoss: hinge loss of similar pairs
ms.nn.MultiMarginLoss: hinge loss, support vector machine loss, svm
ms.nn.SoftMarginLoss: logistic loss
ms.nn.MultiLabelSoftMarginLoss: multi label loss
ms.nn.MultilabelMarginLoss: multi label hinge loss
ms.nn.SoftmaxCrossEntropyWithLogits: cross entropy of mindspore, sparse labels, one hot labels
ms.nn.TripletMarginWithDistanceLoss: triplet loss with another distance
ms.nn.LossBase: write a loss of your own, reduction of a loss, custom loss, own loss, write a loss function, define a loss
ms.nn.WithLossCell: network and loss in one cell
ms.nn.WithGradCell: network that gives its gradients
ms.nn.WithEvalCell: network for evaluation
ms.nn.TrainOneStepCell: one training step as a cell, train step
ms.nn.TrainOneStepWithLossScaleCell: training step with loss scale
ms.nn.ForwardValueAndGrad: loss and gradients as a cell
ms.nn.DistributedGradReducer: average gradients over ranks, synchronize gradients
ms.nn.PipelineCell: pipeline parallelism, micro batches, pipeline stages, layers on several devices
ms.nn.MicroBatchInterleaved: overlap computation and communication
ms.nn.Adagrad: sparse gradients optimizer
ms.nn.Adadelta: optimizer without a learning rate
ms.nn.AdaMax: adam with infinity norm
ms.nn.AdaFactor: optimizer with little memory, memory efficient optimizer
ms.nn.Lamb: large batch optimizer, bert optimizer
ms.nn.LARS: large batch training, layer wise adaptive rate, large batches
ms.nn.LazyAdam: adam for sparse gradients, adam for embeddings
ms.nn.FTRL: follow the regularized leader, click through rate
ms.nn.Rprop: resilient backpropagation
ms.nn.ASGD: averaged sgd, polyak averaging
ms.nn.thor: second order optimizer, natural gradient, kfac
ms.nn.ExponentialDecayLR: exponential decay of the rate
ms.nn.PolynomialDecayLR: linear decay, polynomial decay of the rate
ms.nn.piecewise_constant_lr: rate in steps, milestones, step decay list
ms.nn.cosine_decay_lr: cosine schedule as a list
ms.nn.warmup_lr: warmup as a list
ms.nn.get_activation: activation by name
ms.nn.Jvp: jacobian vector product of a network
ms.nn.Vjp: vector jacobian product of a network
ms.nn.ClipByNorm: clip a tensor by its norm
ms.nn.GraphCell: run a mindir file as a network
ms.Parameter: trainable tensor, learnable weight, own parameter
ms.scipy.optimize.minimize: minimize a function, bfgs, nonlinear optimization, find the minimum of a function, gradient free optimization, quasi newton
ms.scipy.optimize.linear_sum_assignment: hungarian algorithm, assignment problem, matching of costs
ms.scipy.stats.linregress: linear regression of two variables, slope and intercept
ms.scipy.stats.pearsonr: pearson correlation
ms.scipy.stats.spearmanr: rank correlation
ms.scipy.stats.ttest_1samp: t test, significance
ms.scipy.stats.zscore: standardize values, standard score
ms.scipy.stats.skew: skewness
ms.scipy.stats.kurtosis: heavy tails
ms.scipy.special.expit: logistic function
ms.scipy.special.comb: binomial coefficient, n choose k
ms.scipy.special.factorial: factorial
ms.scipy.signal.convolve: convolution of signals, convolve two signals
ms.scipy.signal.lfilter: filter a signal, digital filter, low pass filter of a signal
ms.scipy.fft.dct: discrete cosine transform
ms.scipy.sparse.linalg.cg: conjugate gradient, large sparse system
ms.scipy.linalg.solve: solve a linear system
ms.scipy.linalg.expm: matrix exponential
ms.scipy.linalg.toeplitz: toeplitz matrix
ms.sparse: sparse matrices
ms.ops.csr_matmul: sparse matrix product, sparse times dense, spmm
ms.ops.all_reduce: sum over ranks, average over processes, nccl all reduce
ms.ops.all_gather: gather from all ranks
ms.ops.reduce_scatter: reduce and scatter over ranks
ms.ops.all_to_all: exchange between ranks
ms.ops.barrier: wait for all ranks
ms.ops.conv2d: two dimensional convolution, grouped convolution, dilated convolution, depthwise convolution, convolution as a function, filter an image with a kernel
ms.ops.dot: inner product of vectors
ms.ops.cross: cross product of vectors, vector perpendicular to two
ms.ops.cov: covariance matrix
ms.ops.fold: columns to image, overlapping blocks to image
ms.ops.sliding_window: moving window, rolling window, overlapping windows, windows of a sequence
ms.ops.kthvalue: k-th smallest value, k smallest
ms.ops.scatter_add: add values at indices, sum at indices, accumulate at positions
ms.ops.index_add: add rows at indices, accumulate by index, add at positions
ms.ops.tensor_scatter_add: add at positions
ms.ops.unsorted_segment_sum: sum by group, group by, segment sum, sum per category
ms.ops.random_categorical: sample classes from logits
ms.ops.solve_triangular: triangular system, back substitution
ms.ops.iou: intersection over union of boxes, overlap of boxes, jaccard
ms.ops.bounding_box_encode: box regression, anchors
ms.ops.ctc_loss: speech recognition loss
ms.ops.flash_attention_score: flash attention, memory efficient attention
ms.ops.cache_attention: attention over a key value cache
ms.ops.attention: scaled dot product attention
ms.ops.rms_norm: root mean square normalization
ms.ops.deformable_conv2d: deformable convolution
ms.ops.silu: swish
ms.ops.softplus: smooth relu
ms.ops.glu: gated linear unit
ms.ops.swiglu: gated feed forward of llama
ms.ops.hypot: length of the hypotenuse
ms.ops.lu_factor: lu decomposition
ms.ops.eig: eigenvalues and eigenvectors of a general matrix
ms.ops.matrix_norm: frobenius norm
ms.ops.vector_norm: norm of vectors along an axis
ms.ops.fft2: fourier transform of an image
ms.ops.ifft: inverse fourier transform
ms.ops.stft: short time fourier transform, short time spectrum
ms.ops.istft: signal from its spectrogram
ms.ops.hann_window: window function
ms.ops.fori_loop: loop in a graph, for loop with a carried value
ms.ops.scan: loop that carries state, lax scan
ms.ops.WhileLoop: while loop in a graph
ms.ops.print_: print from compiled code
ms.ops.depend: order of side effects
ms.ops.assign: set the value of a parameter, assign in place
ms.ops.assign_add: add in place
ms.ops.neg: minus, negative of each element
ms.ops.rsqrt: one over the square root
ms.ops.reciprocal: one over each element
ms.ops.expm1: exp minus one
ms.ops.log1p: log of one plus x
ms.ops.lgamma: logarithm of the gamma function
ms.ops.digamma: derivative of log gamma
ms.ops.movedim: move an axis, channels last to channels first
ms.ops.unbind: tensor into a list of slices
ms.ops.hstack: stack side by side, join horizontally, join tensors side by side, columns beside each other
ms.ops.vstack: stack on top of each other, join vertically
ms.ops.take: elements by flat index
ms.ops.gather_nd: elements by coordinates
ms.ops.less: smaller than
ms.ops.not_equal: different elements
ms.ops.isfinite: neither nan nor infinite
ms.ops.var_mean: variance and mean at once
ms.ops.nanmean: mean without nan
ms.ops.shuffle: shuffle rows in place
ms.ops.poisson: random counts
ms.ops.uniform: random numbers in a range
ms.ops.reverse_sequence: reverse sequences of different lengths
ms.ops.renorm: limit the norm of rows
ms.ops.intopk: is the label among the k best
ms.ops.crop_and_resize: roi align, regions of interest
ms.ops.affine_grid: spatial transformer, rotate feature maps
ms.ops.huber_loss: robust loss
ms.ops.l1_loss: absolute error loss
ms.ops.kl_div: kullback leibler divergence
ms.ops.nll_loss: negative log likelihood loss
ms.ops.triplet_margin_loss: triplet loss
ms.ops.binary_cross_entropy_with_logits: loss for two classes from logits
ms.ops.clip_by_norm: clip a tensor to a norm
x.size: number of elements, number of elements in a tensor, how many elements
x.nbytes: bytes of a tensor, memory of a tensor, memory size of an array, size in memory
x.strides: memory layout of a tensor
x:sizes: size of an axis, length of an axis
x:at: index by position, slice by text
x:where: choose elements
x:asnumpy: tensor to numpy array
x:float: to float32, convert to floats
x:half: to float16
x:int: to int32
x:long: to int64, convert to integers
x:bool: to boolean
x:copy_: copy values into a tensor
x:fill_: set all elements
x:zero_: set all elements to zero
x:register_hook: hook on a gradient, gradient of an intermediate tensor
x:contiguous: dense memory
x:to_dlpack: share memory with another framework
x:index_put: assign at indices
x:resize: other number of elements
x:allclose: nearly equal tensors, are two tensors close, same up to rounding, compare within a tolerance
x:requires_grad_: track gradients
ms.nn.Cell:construct: forward method
ms.nn.Cell:extend: define a class of layers, inherit from a layer
ms.nn.Cell:cells: children of a network, sub modules, layers of a network, children of a layer
ms.nn.Cell:insert_child_to_cell: add a layer by name, add_module
ms.nn.Cell:register_forward_pre_hook: change the input of a layer
ms.nn.Cell:untrainable_params: frozen parameters
ms.nn.Cell:to: move a network to a device
ms.nn.Cell:shard: split a layer over devices
ms.nn.Cell:compile: compile a network ahead
ms.nn.Cell:set_inputs: dynamic shapes of inputs
ms.ops.solve: solve linear system, system of linear equations, solve for x
ms.ops.aminmax: minimum and maximum
ms.nn.Embedding: learned positional embeddings, word vectors, lookup table of vectors
ms.ops.masked_scatter: write where a mask is true
ms.ops.cumprod: running product
x:t: transpose of a matrix
]]):gmatch "([^\n]-): ([^\n]*)" do
  list[name] = words
end
return list
