-- The meanings of parameters by their names: "name name ...: meaning". Most names mean one thing throughout the library; where a
-- function means another by it, that stands under "parameter.function". A function's own comment comes before all of this.
-- luacheck: no max line length
local meanings = {}
for names, meaning in ([[
_random_samples: numbers in [0, 1) that decide where the windows lie, one for each plane and axis; without them they are drawn
a a1 left x1: the first operand
a2 b x2 y: the second operand
A: the matrix, or a batch of matrices
abs: the absolute values
accum: what the sums of squared gradients start from
accumulate: true: writes of one place are added up, false: the last one stays
accumulators: the velocities of the parameters, one tensor each; they are changed in place
activation: what is applied to the result: a name such as "relu", a cell or a function
actual_seq_kvlen: the lengths of the key sequences, or nil
actual_seq_lengths actual_seq_lengths_kv: the number of keys of each sample, or nil
actual_seq_qlen: the lengths of the query sequences, or nil
adjoint: true: solves with the transposed matrix
affine: whether scale and shift are trained
align: at which end of their rows shorter diagonals stand: first those above the main one, then those below
align_corners: true: the corner elements of both grids lie upon one another
along: the direction
alpha beta: a factor; how it enters stands in the text above
amsgrad use_amsgrad: true: the largest second moment so far is used
anchor: the samples that distances are measured from
anchor_box anchor_boxes: the anchors, (n, 4)
angle: the angles in radians
antiquant_offset antiquant_scale deq_scale1 deq_scale2 dequant_scale1 dequant_scale2 quant_offset2 quant_scale1 quant_scale2: must be nil: keys and values are not quantised
append: what is put behind x along the axis first
approximate: "none": the exact function, "tanh": its approximation
ar1: the elements
ar2: the elements that are looked for
arguments: the arguments of the call, in a table
arr array ary input input_x x: the input
as_tuple: true: one tensor of indices for each axis, false: one tensor with a row for each element
atol: the absolute difference that is allowed
attn_mask: true where a query may not look at a key
aweights: the weights of the observations
axes: the axes, counted from 0
axis0 dim1: the first of the two axes
axis1 dim2: the second of the two axes
axis2: the second of two axes
axis: the axis, counted from 0, negative from the end; a table of several where the function takes them
axisa: the axis of a that has the vectors
axisb: the axis of b that has the vectors
axisc: the axis of the result that has the vectors
back: back(arguments..., results..., cotangents...) gives one gradient for each argument of f
backbone: the network
base: the number that is raised to the powers
batch1: the first batch of matrices
batch2: the second batch of matrices
batch_dim: the axis of the batch
batch_first: true: the input is (batch, time, features), false: (time, batch, features)
bboxes boxes: the boxes, (n, 4)
begin: the first index along each axis
begin_mask: bit i set: axis i starts at its beginning
begin_norm_axis: the first axis that is normalised over
begin_params_axis: the first axis that scale and shift have
beta1: how much of the first moment is kept in each step, in [0, 1)
beta2: how much of the second moment is kept in each step, in [0, 1)
beta_init: how the shift starts: a name such as "zeros", a number, a tensor or an initializer
betas: {beta1, beta2}: how much of the moments is kept in each step
bias: what is added to the result; nil: nothing
bias_init: how the bias starts: a name such as "zeros", a number, a tensor or an initializer; nil: the usual range for the size
bidirectional: true: the sequence is read from both ends
bins: the number of bins
blank: the class that stands for no label
block_shape block_size: the sizes of a block, one for each of the last axes
block_table: must be nil: keys lie in one piece
boost_level: the level of ms.boost.AutoBoost: "O0" (nothing), "O1" or "O2"
blocks: rows in blocks, a tensor of uint8
boundaries: the limits of the buckets, ascending
box_indices: the number of the image that each box is cut out of
c_and_lower: { factor, whether it is lower }, as cho_factor gives them
capsule: a capsule of DLPack, as x:to_dlpack() gives it
category_field: the name of an indexed field
category_id: the number of a category, from 0
category_name: the name of a category
causal: true: a query sees only keys up to its own position
ceil_mode: true: a window that sticks out at the end counts too
center: true: the middle of piece t is sample t * hop_length, false: its beginning
centered: true: the variance of the gradients is used in place of their squares
channel: the number of weights: 1, or the number of channels
child: the cell
choicelist: a table of values, one for each condition
choices: a table of values to choose from
chunks: the number of parts
class_num: the number of classes; nil: scores of two classes
classes num_classes: the number of classes
clip_norm max_norm: the largest norm that is left as it is
col: the number of columns
compute_uv: true: the singular vectors too
condition: a boolean tensor: true takes from the first, false from the second
condlist: a table of conditions
correction1: what the first moments are divided by, 1 - beta1^t
correction2: what the second moments are divided by, 1 - beta2^t
correction: what is taken off the number of observations in the divisor
cos: the cosines of the angles
cost_matrix: the cost of each row with each column
count n: how many
count_include_pad: whether zeroes of the padding count in the mean
crop_size: {height, width} of the result
crops: {{before, after}, ...}: how many elements are taken off each of these axes
d: the distance of two samples
dampening: how much of the gradient is left out of the velocity
data: a number, nested tables of numbers or booleans, or a tensor
data_format: the order of the axes; "NCHW" and its kin is what there is
ddof: what is taken off the number of elements in the divisor
decay: how much of the running mean is kept in each step
decayed: the weight decay of each parameter
decimals: how many digits stay behind the point
decrease: how classes are brought together: "mean", "sum", "none" and their kin
deformable_groups: into how many groups of channels x falls, each with offsets of its own
delta: where the loss goes over from squares to absolute values
deltas: what bounding_box_encode gave, (n, 4)
dense: the dense matrix
depth: the number of classes: the size of the new axis
depth_radius: how many neighbouring channels count at each side
descending: true: the largest first
destination: where the axes go
device: the name of a device, one of ms.runtime.devices(); nil: the current one
device_id: the number of the device of that name; so far 0
device_target: the name of a device, one of ms.runtime.devices()
diagonal offset: which diagonal: 0 the main one, positive above, negative below
dilation: the distance between the elements that a window takes
dilations: the distance between the elements that a window takes; of four numbers the last two count
dim: the axis, counted from 0, negative from the end
dimensions: the sizes of the grid
dims: the axes, counted from 0, negative from the end
distribution: "normal", "truncated_normal" or "uniform"
divisor_override: the divisor of the mean in place of the window's size
dout dy: the gradient of the result
downscale_factor: how many pixels of an axis become channels
drop_mask: which attention weights are dropped, or nil
dropout: the probability with which an element between layers is dropped
dst_type: the dtype
dtype: the dtype of the result: ms.float32 or "float32" and so on; nil: what the operands suggest
dx: the distance between samples
element value: the value
ellipsis_mask: bit i set: index i stands for all axes between
embed_dim: the size of each position's vector
embedding_size: the size of each vector
embedding_table: how the table starts: a name such as "normal", a tensor or an initializer
end: the value for a weight of 1
end_dim: the last axis that is joined
end_mask: bit i set: axis i goes to its end
endpoint: whether the end is one of the numbers
eps epsilon: a small number that keeps the divisor away from 0
equal_nan: true: nan is close to nan
equation: the indices of the operands and of the result, such as "ij,jk->ik"
error_if_nonfinite: true: an infinite norm is an error
exclusive: true: each element's sum leaves the element itself out
exponent power: the exponent
expr: a value that is computed first
extrapolation_value: what stands for places outside an image
f func: the function
fill_value: the value of all elements
flag: true or false
full: true: the constant term is added
full_matrices: true: square matrices of vectors, false: only those that belong to singular values
func1d: the function of a sequence
funclist: a table of functions, one for each condition
fweights: how often each observation was made
gamma: the scale of the normalised values
gamma_init: how the scale starts: a name such as "ones", a number, a tensor or an initializer
gfk: the gradient at xk, where it is known
given: a table of the fields, or the name
grad_position: which argument to differentiate by, from 0, or a table of several
grads: the gradients of the parameters, in their order
grid: where to sample: x and y in [-1, 1] for each result
groundtruth_box: the boxes that the anchors are to become, (n, 4)
group groups: into how many groups the channels fall; each sees its own only
gt_boxes: the true boxes, (m, 4)
half: true: only the half of the spectrum that a real signal needs
hard: true: the result is one-hot, its gradient that of the soft one
has_aux: true: f returns further values, which are handed on
has_bias: whether something trained is added to the result
head_num num_heads: the number of attention heads
header_size: bytes for the header
height row: the number of rows
hermitian: true: the matrix is symmetric, which is faster
hidden_size: the size of the hidden state
high maxval: the upper limit, not included
hop_length: how far a piece begins behind the one before; nil: a quarter of n_fft
ignore_index: targets of this class do not count
imag: the imaginary parts
image: the images, (n, height, width, channels)
img_metas: {height, width, ratio} of the image as a tensor
in1: the first tensor
in2: the second tensor, with as many axes
in_channels: the size of the last axis of the input; of convolutions the number of its channels
index indices: which elements, counted from 0
indexes: a table of positions, from 0
indexing: "xy": the first two axes change places, "ij": the order of the inputs
indices_or_sections: the number of equal parts, or a table of the positions to split at
indptr: where the values of each row begin, and the number of values at the end
inner_precise use_locking use_one_hot: takes part in no computation; for programs written for MindSpore
input1: the first input
input2: the second input
input_indices: which elements along the axis, counted from 0
input_layout: the order of the axes: "BSH", "BNSD", "BSND"
input_lengths: the length of each sequence of predictions
input_params: the tensor that elements are taken from
input_size: the size of the input
inputs: the inputs
interpolation: what is taken between two elements: "linear", "lower", "higher", "midpoint" or "nearest"
inverse: true: the inverse transform
invert: true: the opposite is asked
k: how many, or which
keep_dims keepdim keepdims: true: a reduced axis stays, with size 1
keep_prob: the probability with which an element is kept
kernel_size: the size of the window: one number, or a table with one for each axis
key: the keys
l2: the factor of the weight decay that is added to the gradient
label labels target targets: the targets
label_smoothing: how much of each target is spread over all classes, in [0, 1]
lambd: the limit between what becomes 0 and what stays
lambda_param: the scale
layout.lay_out: the number of a layout
largest: true: the largest elements, false: the smallest
last_epoch: the epoch to go on from; -1: the start
learning_rate: the size of steps: a number, a list or tensor with one for each step, or a function of the step's number
length: how many elements
lengths: the length of each sequence
log_probs: logarithms of probabilities, as log_softmax gives them
log_target: true: the targets are logarithms too
logits: scores of the classes, before softmax or sigmoid
loss_fn: the loss: a cell or function of outputs and labels
loss_scale: a factor that the gradients have, by which they are divided
low minval: the lower limit, included
lr: the size of steps: a number, or a function of the step's number
lu_and_piv: { lu, pivots }, as lu_factor gives them
LU_data: the first result of lu_factor
LU_pivots: the second result of lu_factor, counted from 0
m: the number of columns; nil: as many as rows
margin: the distance from which on nothing is lost
mask: a boolean tensor: true where something happens
mat matrix: the matrix
mat1: the first matrix
mat2: the second matrix
max: the upper limit; nil: none
max_shape: {height, width} of the image
max_val: the upper limit
maxima: the largest second moments so far, changed in place
maximize: true: steps go uphill
maxiter: the largest number of iterations
maxlen: the size of the new axis; nil: the largest length
maxnorm: the largest norm that a part may have
mean rate: the mean
means: what is taken off the four numbers of a box
merge_repeated: true: a label that follows itself counts once
metadata: a table of what the front end is told beside the value
min: the lower limit; nil: none
min_lr: the least learning rate
min_val: the lower limit
minlength: the least size of the result
mode: which way it is done; the choices are listed
modulated: true: offsets end with a factor for every tap
moments: the first moments, changed in place
momentum: how much of the past is kept in each step; of normalisations as MindSpore counts it, 1 less PyTorch's
moving_mean: the running mean, changed in place
moving_mean_init: how the running mean starts
moving_var_init: how the running variance starts
moving_variance: the running variance, changed in place
n_fft: the number of samples of a piece
n_gram: how many words at most count as one
name: a name
nan: what takes the place of nan
negative: samples that should be far from the anchors
negative_slope: the slope of the leaky_relu that follows
neginf: what takes the place of -inf; nil: the smallest number
nesterov use_nesterov: true: the gradient is taken ahead of the step
net network: the network, a cell
new_axis_mask: bit i set: index i adds an axis
new_shape: the sizes
next_tokens: how many keys after its position a query sees
nonlinearity: "tanh" or "relu"
norm: where the transform is scaled: "backward", "forward" or "ortho"
norm_region: "ACROSS_CHANNELS" is what there is
norm_type: the p of the p-norm
normalized: true: divides by the root of n_fft
normalized_shape: the sizes of the last axes, which are normalised over
num_channels num_features: the number of channels
num_cols: the number of columns, -1: as many as the diagonals need
num_groups: the number of groups that channels fall into
num_key_value_heads: how many heads key and value have; 0: as they lie
num_layers: how many layers lie upon one another
num_out_tokens: how many rows are kept, or nil for all
num_row: rows of a page
num_rows: the number of rows, -1: as many as the diagonals need
num_sample num_samples: how many numbers are drawn for each row
num_segments: the number of segments: the size of the result's first axis
obj: any value
odd: true: the difference changes sign with its operands
off_value: the value of the other elements
offsets: how far each tap is moved, in pixels: along columns, then along rows
old_fval: the value at xk, where it is known
old_old_fval: the value one step before, where it is known
on_value: the value of the elements that are meant
onesided: true: only the frequencies from 0 to the middle, which determine the others of a real signal
operands: the tensors, in the order of the equation
optimizer: the optimizer: a cell that is called with gradients
options: a table of options, as listed above
opts: a table of options
ord: which norm: a number, "fro" or "nuc"
order: "C": row by row, "F": column by column
other: the second operand; it is broadcast against the first
out_channels: the size of the last axis of the result; of convolutions the number of its channels
out_int32: true: the result is int32 in place of int64
output_padding: how much is added at the end of the result, where its size is not determined
output_ratio: the size of the result as a part of that of the input, one number or one for each axis
output_size: the size of the result
p: the probability with which an element is dropped
pad_dim_size: the size of the last axis of the result
pad_mode: "same": the result is as large as the input divided by stride, "valid": no padding, "pad": as padding says
pad_num: the value behind the last element
padded_mode: must be false
padding: how many elements are added around each axis: one number, or a table
padding_idx: the index whose vector stays 0
padding_mask: which positions are padding, or nil
padding_mode: what is read outside: "zeros", "border" or "reflection"
padding_value: what fills the places for which there is no element
paddings: {before, after} for each axis
page_size: bytes of a page
param: the parameter
params: the parameters: net:trainable_params(), or a list of groups { params = ..., lr = ... }
path: the name of the file
periodic: true: as one period, for spectra; false: symmetric
permuted_tokens: rows in the order of their experts
points: watchpoints: names of conditions, or tables with such a name and parameters
pivots: the row with which each row has been exchanged, counted from 0
pos_weight: the weight of positive targets
posinf: what takes the place of inf; nil: the largest number
positive: samples that should be near the anchors
pre_tokens: how many keys before its position a query sees
preconditioner: about the inverse of A: a matrix or a function
prefix: lengths of the part that all queries see, or nil
prepend: what is put in front of x along the axis first
primals: the arguments of f
probs: the weight of each expert of a token, or nil
prompt: the text in front of what is typed
prototype: a tensor whose shape and dtype are taken
pse_shift real_shift: what is added to the scores, or nil
q: which quantiles, in [0, 1]
quant_max quant_min: the largest and the smallest integer of the format
query: the queries
r: how many are taken at a time
range: in words what is allowed
real: the real parts
recompute_scale_factor: true: the factor is computed again from the sizes
reduction: "mean", "sum" or "none": one number, or one for each element
reflect_type: "even"; "odd" is not supported
relu: true: negative results become 0
rep: how often each element is repeated
repeats: how often each element is repeated: a number, or one for each element
replacement: true: what was drawn can be drawn again
restore_shape: takes no part without padded_mode
return_complex: true: complex numbers, false: real and imaginary parts in a last axis
return_counts: true: how often each value occurs too
return_indices: true: the positions of the maxima too
return_inverse: true: for each element where its value lies in the result too
reverse: true: from the end
rho: how much of the running means is kept in each step
rhs: the right-hand side
right: true: the right one of the two limits is included
rounding_mode: nil: the quotient itself, "trunc": cut off, "floor": rounded down
row_indices: the row of each value, rising
rtol: the relative difference that is allowed
running_mean: the mean that is used outside training
running_var: the variance that is used outside training
s: the sizes of the transformed axes; nil: as they are
scalar_value: the factor of the scores
scale: a factor
scale_factor: how many times larger each axis becomes
scale_grad_by_freq: true: a vector's gradient is divided by how often it was taken
scale_value: the scale at the start
schedulers: a table of schedulers
seed: the seed of this call alone; nil: the generator that ms.set_seed sets
segment_ids: the segment of each row, counted from 0
sens: the factor of the loss's gradient
seq_dim: the axis of time
seq_lengths: how much of each sequence is reversed
sequence_length: how many steps of each sample count
settings: a table of settings by name
shape size: the sizes of the axes, in a table
shift: the distance between the positions of queries and keys
shifts: how far elements move along each axis
shrink_axis_mask: bit i set: axis i becomes the one element at its index
sigma std stddev: the standard deviation
sin: the sines of the angles
smooth: what keeps the divisor away from 0; of BLEU true: counts are smoothed
sorted: true: in order
sorted_indices: the place of each row, as moe_token_permute gives it
sorted_sequence: the sorted values
source: where the values come from
sparse: true: labels are classes, false: probabilities of every class
sparse_mode: how the mask is to be read
split_size_or_sections: the size of each part, or a table of sizes
squares: the second moments, changed in place
src updates: the values that are written
stable: true: equal elements keep their order
start: where it starts, included
start_dim: the first axis that is joined
state: the state
stds: what the four numbers of a box are divided by
step: the distance between two; of optimizers the number of the step
steps: how many numbers
stop: where it ends, not included
stride: how far a window moves: one number, or a table with one for each axis
strides: the distance between two elements along each axis
swap: true: the nearer of anchor and positive counts for the negative
target_lengths: the length of each sequence of labels
tau: the temperature: the smaller, the nearer to one-hot
tensor1: the first factor
tensor2: the second factor, or the divisor
tensor: the tensor
tensors: the tensors, in a table
theta: the affine maps, (batch, 2, 3) or (batch, 3, 4)
thr: the limit
threshold: from here on the function is its linear limit
threshold_mode: "rel": the threshold is a share of the best, "abs": a difference
time: the length in time
tokens: the rows to be sent
tolerance: the largest difference
training: true: as in training, false: as in evaluation
trans: true or 1: with the transpose
transposed: true: the weight lies as (out, in)
tup: a table of tensors
type1: the first dtype
type2: the second dtype
unit_diagonal: true: the diagonal is taken for ones
update_slots: whether the sums of squares go on
upper: true: the upper triangle in place of the lower
upscale_factor: how many times larger the picture becomes
use_batch_statistics: true: statistics of the batch, false: the running ones; nil: as the cell is in training
use_norm: the norm, where it is known already
used: 0 where nothing depends on the vector of a value
v values: the values
values_num: the number of values
var variance: the variance
variable: the parameter or tensor that is written
vec1: the first vector
vec2: the second vector
vec: the vector
vocab_size: the number of vectors: indices are less than it
w: the value that the weight starts from
weight: the weights
weight_decay: how much of the weights is taken off, as part of each gradient or beside it
weight_init: how the weights start: a name such as "he_uniform", a number, a tensor or an initializer; nil: the usual range for the size
weight_size: the shape of the weights
weights: parameters whose gradients are wanted
wh_ratio_clip: how far the ratios of sides may be from 1, as the smallest ratio
where: the name of the function for messages
win_length: the number of samples of the window; nil: n_fft
window: what each piece is multiplied with; nil: ones
window_length: the number of elements
with_replacement: true: an element may be taken more than once
x0: where the search begins; nil: zeros
zero_infinity: true: infinite losses become 0
zero_point: the integer that stands for 0
a.betainc a.log_betainc a.log_betainc_slope: the exponent of x, above 0
a.log_igamma a.log_igamma_slope: the shape parameter, above 0
actual_seq_lengths.prompt_flash_attention: must be nil: attn_mask hides queries
alpha.LeakyReLU alpha.leaky_relu: the slope for negative x
axis.fake_quantize: the axis whose places, or blocks of them, have scales of their own; nil: scale and zero_point broadcast
axis.permute: the axes in their new order
cache.cache_write: the keys or the values of earlier tokens
b.betainc b.log_betainc b.log_betainc_slope: the exponent of 1 - x, above 0
beta.SmoothL1Loss beta.smooth_l1_loss: where squares go over into absolute values
beta.softplus: how sharp the bend is
async_op: true: the request is carried out meanwhile, and a handle is given whose wait() returns when it is done
backend backend_name: the name of the engine that is expected; nil: whatever there is
concat_axis: the axis along which the pieces are joined that come
dest dst: the rank that gets the tensors
group.all_reduce group.all_gather group.reduce_scatter group.all_to_all group.all_to_all_v group.broadcast_from group.reduce_to group.gather_to group.scatter_from group.send group.recv group.barrier group.reduce group.broadcast group.scatter_tensor group.gather_into_tensor group.isend group.irecv group.P2POp group.all_gather_into_tensor group.reduce_scatter_tensor group.all_to_all_with_output_shape group.all_to_all_single_with_output_shape group.all_to_all_v_c group.get_rank group.get_group_size group.get_local_rank group.get_local_rank_size group.get_process_group_ranks group.create_group group.destroy_group group.get_world_rank_from_group_rank group.get_group_rank_from_world_rank: the name of a group of ranks; without it all ranks
group_rank_id: the number of a member in the group, from 0
input_tensor_list: a tensor for each rank of the group
op.all_reduce op.reduce_scatter op.reduce_to op.reduce op.reduce_scatter_tensor: what the tensors are combined by: "sum", "prod", "max", "min" or "avg"
p2p_op_list: a list of what P2POp gives
rank_ids: the ranks of the group, in its order, as numbers among all
receive_sizes: how many rows come from each rank
root: the rank that gives or gets the whole, as its number in the group
send_sizes: how many rows go to each rank
sizes.all_gather sizes.reduce_scatter: the size of each rank's piece along the axis; nil: equal ones
source.recv: the rank that sends, as its number in the group
split_axis: the axis along which the tensor is divided
src.broadcast src.scatter_tensor src.recv src.irecv: the rank that gives
tag: the number by which a recv finds its send
world_rank_id: the number of the rank among all
exchange.give_gradient: the number of the exchange
gradient.give_gradient: the gradient of this rank
place.give_gradient: the number of the gradient in its exchange, from 0
block_size.fake_quantize: how many places along the axis have one scale; 0: each has its own
block_size.incre_flash_attention: must be 0
by.log_betainc_slope: 0: by a, 1: by b
center.istft: whether stft had center
copy.nan_to_num: whether the input is copied (tensors are values)
finite.without_overflow: whether results are finite, as ops.isfinite and ops.all tell
index.put_: places among the elements in a row
indices.moe_token_permute: the experts of each token
indices.sparse_segment_mean: which rows of x, one after the other
k.matrix_diag k.matrix_diag_part k.matrix_set_diag: the number of the diagonal, or {lowest, highest}
lambd.exponential_: the rate: one over the mean (1)
lower.eigh lower.eigvalsh: whether the lower triangle counts (true)
lower.matrix_band_part: how many diagonals below the main one stay, -1: all
lower.rrelu: the smallest slope
lower.solve_triangular: true: the lower triangle counts, else the upper one
median.cauchy: where the distribution has its middle (0)
method.crop_and_resize: how pixels between others are made: "bilinear" or "nearest"
method.minimize: "BFGS" or "L-BFGS"
mode.choose: what becomes of numbers out of range: "clip", "wrap" or "raise"
mode.Pad: "CONSTANT": zeros, "REFLECT": the input mirrored
name.valid_parameter: the parameter's name for messages
form.block_dense form.dequantize_blocks form.quantize_blocks: the form of the blocks, by its name in GGUF files
p.bernoulli: the probability of 1
p.cdist p.triplet_margin_loss: the p of the distance
p.multi_margin_loss: the exponent of the margins
padding_value.col2im: how many rows and columns of zeros the image had around it
position.cache_attention position.cache_write: the first place, a tensor of one integer
scale.fake_quantize scale.fake_quantize_element: the width of a step
segment_ids.sparse_segment_mean: the row of the result that each of them belongs to; they must not fall
sigma.cauchy: half the width between its quartiles (1)
source.movedim: the axes that move
source.put_: the new elements, one for each place
transpose.ormqr: true: with the transpose of q
transpose.triangular_solve: true: with the transpose of A
type.dctn type.dst type.idct type.idctn type.idst: 1, 2, 3 or 4 (2)
type.detrend: "linear" or "constant"
upper.betainc upper.log_betainc upper.log_betainc_slope upper.log_igamma upper.log_igamma_slope: true: the upper side, 1 less the lower one
upper.matrix_band_part: how many diagonals above the main one stay, -1: all
upper.rrelu: the largest slope
upper.triangular_solve: false: the lower triangle of A counts (true)
value.masked_fill: what is written where mask is true
weight.CrossEntropyLoss weight.NLLLoss weight.cross_entropy weight.nll_loss: a factor for each class
weight.lerp: how far from input to the other: 0 to 1
weights.bincount: what each element counts; nil: 1
window.istft: the window that stft had; nil: ones
wrap.fill_diagonal wrap.fill_diagonal_: true: the diagonal starts again below the square of a tall matrix
x.betainc x.log_betainc x.log_betainc_slope: where the integral ends, 0 to 1
x.log_igamma x.log_igamma_slope: where the integral ends, from 0 on
x.sparse_segment_mean: rows that means are made of
y.relu_grad: the result of relu
y.sigmoid_grad: the result of sigmoid
y.tanh_grad: the result of tanh
]]):gmatch "([^\n]-): ([^\n]*)" do
  for name in names:gmatch "%S+" do meanings[name] = meaning end
end
return meanings
