-- The types and meanings of parameters by their names: "name name ... (type): meaning", or the type alone where what it means is told
-- by each function. Most names mean one thing throughout the
-- library. What a part of the library means otherwise by a name stands in parameters_of, under "parameter.part". What a function's own
-- text says of a parameter comes before all of this.
-- luacheck: no max line length
local rows = {}

local function read(text)
  for line in text:gmatch "[^\n]+" do
    local names, type, meaning = line:match "^([^%(:]-) %((.-)%):? ?(.*)$"
    if not names then names, meaning = line:match "^([^:]-): (.*)$" end
    if meaning == "" then meaning = nil end
    for name in names:gmatch "%S+" do rows[name] = { type = type, text = meaning } end
  end
end

read [[
_random_samples (tensor): numbers in [0, 1) that decide where the windows lie, one for each plane and axis; without them they are drawn
a a1 left x1 (tensor): the first operand
a2 b x2 y (tensor or number): the second operand
A (tensor): the matrix, or a batch of matrices
abs (boolean): the absolute values
accum (tensor): what the sums of squared gradients start from
accumulate (boolean): true: writes of one place are added up, false: the last one stays
accumulators (table of tensors): the velocities of the parameters, one tensor each; they are changed in place
activation (string, cell or function): what is applied to the result: a name such as "relu", a cell or a function
actual_seq_kvlen (tensor): the lengths of the key sequences, or nil
actual_seq_lengths actual_seq_lengths_kv (table or nil): the number of keys of each sample, or nil
actual_seq_qlen: the lengths of the query sequences, or nil
adjoint (boolean): true: solves with the transposed matrix
affine (boolean): whether scale and shift are trained
align (string): at which end of their rows shorter diagonals stand: first those above the main one, then those below
align_corners (boolean): true: the corner elements of both grids lie upon one another
along: the direction
alpha beta (number): a factor; how it enters stands in the text above
amsgrad use_amsgrad (boolean): true: the largest second moment so far is used
anchor (tensor): the samples that distances are measured from
anchor_box anchor_boxes (tensor): the anchors, (n, 4)
angle (tensor): the angles in radians
antiquant_offset antiquant_scale deq_scale1 deq_scale2 dequant_scale1 dequant_scale2 quant_offset2 quant_scale1 quant_scale2 (nil): must be nil: keys and values are not quantised
append (tensor or nil): what is put behind x along the axis first
approximate (string): "none": the exact function, "tanh": its approximation
ar1 (tensor): the elements
ar2 (tensor): the elements that are looked for
arguments (table): the arguments of the call, in a table
arr array ary input input_x x (tensor or number): the input
as_tuple (boolean): true: one tensor of indices for each axis, false: one tensor with a row for each element
atol (number): the absolute difference that is allowed
attn_mask (tensor): true where a query may not look at a key
aweights (tensor): the weights of the observations
axes (integer or table of integers): the axes, counted from 0
axis0 dim1 (integer): the first of the two axes
axis1 dim2 (integer): the second of the two axes
axis2 (integer): the second of two axes
axis (integer or table of integers): the axis, counted from 0, negative from the end; a table of several where the function takes them
axisa (integer): the axis of a that has the vectors
axisb (integer): the axis of b that has the vectors
axisc (integer): the axis of the result that has the vectors
back (function): back(arguments..., results..., cotangents...) gives one gradient for each argument of f
backbone (cell): the network
base (number): the number that is raised to the powers
batch1 (tensor): the first batch of matrices
batch2 (tensor): the second batch of matrices
batch_dim (integer): the axis of the batch
batch_first (boolean): true: the input is (batch, time, features), false: (time, batch, features)
bboxes boxes (tensor): the boxes, (n, 4)
begin (table of integers): the first index along each axis
begin_mask (integer): bit i set: axis i starts at its beginning
begin_norm_axis (integer): the first axis that is normalised over
begin_params_axis (integer): the first axis that scale and shift have
beta1 (number): how much of the first moment is kept in each step, in [0, 1)
beta2 (number): how much of the second moment is kept in each step, in [0, 1)
beta_init (tensor, string, number or initializer): how the shift starts: a name such as "zeros", a number, a tensor or an initializer
betas (table of numbers): {beta1, beta2}: how much of the moments is kept in each step
bias (tensor or nil): what is added to the result; nil: nothing
bias_init (tensor, string, number or initializer): how the bias starts: a name such as "zeros", a number, a tensor or an initializer; nil: the usual range for the size
bidirectional (boolean): true: the sequence is read from both ends
bins (integer): the number of bins
blank (integer): the class that stands for no label
block_shape block_size (integer or table of integers): the sizes of a block, one for each of the last axes
block_table (nil): must be nil: keys lie in one piece
boost_level (string): the level of ms.boost.AutoBoost: "O0" (nothing), "O1" or "O2"
blocks (tensor): rows in blocks, a tensor of uint8
boundaries (table of numbers): the limits of the buckets, ascending
box_indices (tensor): the number of the image that each box is cut out of
c_and_lower (table): { factor, whether it is lower }, as cho_factor gives them
capsule (userdata): a capsule of DLPack, as x:to_dlpack() gives it
category_field (string): the name of an indexed field
category_id (integer): the number of a category, from 0
category_name (string): the name of a category
causal (boolean): true: a query sees only keys up to its own position
ceil_mode (boolean): true: a window that sticks out at the end counts too
center (boolean): true: the middle of piece t is sample t * hop_length, false: its beginning
centered (boolean): true: the variance of the gradients is used in place of their squares
channel (integer): the number of weights: 1, or the number of channels
child (cell): the cell
choicelist (table): a table of values, one for each condition
choices (table): a table of values to choose from
chunks (integer): the number of parts
class_num (integer): the number of classes; nil: scores of two classes
classes num_classes (integer): the number of classes
clip_norm max_norm (number): the largest norm that is left as it is
col (integer): the number of columns
compute_uv (boolean): true: the singular vectors too
condition (tensor): a boolean tensor: true takes from the first, false from the second
condlist (table): a table of conditions
correction1 (number): what the first moments are divided by, 1 - beta1^t
correction2 (number): what the second moments are divided by, 1 - beta2^t
correction (integer): what is taken off the number of observations in the divisor
cos (tensor): the cosines of the angles
cost_matrix (tensor): the cost of each row with each column
count n (integer): how many
count_include_pad (boolean): whether zeroes of the padding count in the mean
crop_size (table of integers): {height, width} of the result
crops (table): {{before, after}, ...}: how many elements are taken off each of these axes
d (number): the distance of two samples
dampening (number): how much of the gradient is left out of the velocity
data (tensor or table): a number, nested tables of numbers or booleans, or a tensor
data_format (string): the order of the axes; "NCHW" and its kin is what there is
ddof (integer): what is taken off the number of elements in the divisor
decay (number): how much of the running mean is kept in each step
decayed (tensor or number): the weight decay of each parameter
decimals (integer): how many digits stay behind the point
decrease (string): how classes are brought together: "mean", "sum", "none" and their kin
deformable_groups (integer): into how many groups of channels x falls, each with offsets of its own
delta (number): where the loss goes over from squares to absolute values
deltas (tensor): what bounding_box_encode gave, (n, 4)
dense (tensor): the dense matrix
depth (integer): the number of classes: the size of the new axis
depth_radius (integer): how many neighbouring channels count at each side
descending (boolean): true: the largest first
destination (integer or table of integers): where the axes go
device (string): the name of a device, one of ms.runtime.devices(); nil: the current one
device_id (integer): the number of the device of that name; so far 0
device_target (string): the name of a device, one of ms.runtime.devices()
diagonal offset (integer): which diagonal: 0 the main one, positive above, negative below
dilation (integer or table of integers): the distance between the elements that a window takes
dilations (integer or table of integers): the distance between the elements that a window takes; of four numbers the last two count
dim (integer): the axis, counted from 0, negative from the end
dimensions (table of integers): the sizes of the grid
dims (integer or table of integers): the axes, counted from 0, negative from the end
distribution (string): "normal", "truncated_normal" or "uniform"
divisor_override (integer): the divisor of the mean in place of the window's size
dout dy (tensor): the gradient of the result
downscale_factor (integer): how many pixels of an axis become channels
drop_mask (tensor): which attention weights are dropped, or nil
dropout (number): the probability with which an element between layers is dropped
dst_type (dtype): the dtype
dtype (dtype): the dtype of the result: ms.float32 or "float32" and so on; nil: what the operands suggest
dx (number): the distance between samples
element value (tensor or number): the value
ellipsis_mask (integer): bit i set: index i stands for all axes between
embed_dim (integer): the size of each position's vector
embedding_size (integer): the size of each vector
embedding_table (tensor, string, number or initializer): how the table starts: a name such as "normal", a tensor or an initializer
end (number): the value for a weight of 1
end_dim (integer): the last axis that is joined
end_mask (integer): bit i set: axis i goes to its end
endpoint (boolean): whether the end is one of the numbers
eps epsilon (number): a small number that keeps the divisor away from 0
equal_nan (boolean): true: nan is close to nan
equation (string): the indices of the operands and of the result, such as "ij,jk->ik"
error_if_nonfinite (boolean): true: an infinite norm is an error
exclusive (boolean): true: each element's sum leaves the element itself out
exponent power (tensor or number): the exponent
expr (any value): a value that is computed first
extrapolation_value (number): what stands for places outside an image
f func (function): the function
fill_value (number): the value of all elements
flag (boolean): true or false
full (boolean): true: the constant term is added
full_matrices (boolean): true: square matrices of vectors, false: only those that belong to singular values
func1d (function): the function of a sequence
funclist (table): a table of functions, one for each condition
fweights (tensor): how often each observation was made
gamma (tensor): the scale of the normalised values
gamma_init (tensor, string, number or initializer): how the scale starts: a name such as "ones", a number, a tensor or an initializer
gfk (tensor): the gradient at xk, where it is known
given (table): a table of the fields, or the name
grad_position (integer or table of integers): which argument to differentiate by, from 0, or a table of several
grads (table of tensors): the gradients of the parameters, in their order
grid (tensor): where to sample: x and y in [-1, 1] for each result
groundtruth_box (tensor): the boxes that the anchors are to become, (n, 4)
group groups (integer): into how many groups the channels fall; each sees its own only
gt_boxes (tensor): the true boxes, (m, 4)
half (boolean): true: only the half of the spectrum that a real signal needs
hard (boolean): true: the result is one-hot, its gradient that of the soft one
has_aux (boolean): true: f returns further values, which are handed on
has_bias (boolean): whether something trained is added to the result
head_num num_heads (integer): the number of attention heads
header_size (integer): bytes for the header
height row (integer): the number of rows
hermitian (boolean): true: the matrix is symmetric, which is faster
hidden_size (integer): the size of the hidden state
high maxval (number): the upper limit, not included
hop_length (integer): how far a piece begins behind the one before; nil: a quarter of n_fft
ignore_index (integer): targets of this class do not count
imag (tensor): the imaginary parts
image (tensor): the images, (n, height, width, channels)
img_metas (tensor): {height, width, ratio} of the image as a tensor
in1 (tensor): the first tensor
in2 (tensor): the second tensor, with as many axes
in_channels (integer): the size of the last axis of the input; of convolutions the number of its channels
index indices (tensor or table): which elements, counted from 0
indexes (table): a table of positions, from 0
indexing (string): "xy": the first two axes change places, "ij": the order of the inputs
indices_or_sections (integer or table of integers): the number of equal parts, or a table of the positions to split at
indptr (tensor): where the values of each row begin, and the number of values at the end
inner_precise use_locking use_one_hot (boolean): takes part in no computation; for programs written for MindSpore
input1 (tensor): the first input
input2 (tensor): the second input
input_indices (tensor of integers): which elements along the axis, counted from 0
input_layout (string): the order of the axes: "BSH", "BNSD", "BSND"
input_lengths (tensor): the length of each sequence of predictions
input_params (tensor): the tensor that elements are taken from
input_size (integer): the size of the input
inputs (tensor or table): the inputs
interpolation (string): what is taken between two elements: "linear", "lower", "higher", "midpoint" or "nearest"
inverse (boolean): true: the inverse transform
invert (boolean): true: the opposite is asked
k (integer): how many, or which
keep_dims keepdim keepdims (boolean): true: a reduced axis stays, with size 1
keep_prob (number): the probability with which an element is kept
kernel_size (integer or table of integers): the size of the window: one number, or a table with one for each axis
key (tensor): the keys
l2 (number): the factor of the weight decay that is added to the gradient
label labels target targets (tensor): the targets
label_smoothing (number): how much of each target is spread over all classes, in [0, 1]
lambd (number): the limit between what becomes 0 and what stays
lambda_param (number): the scale
largest (boolean): true: the largest elements, false: the smallest
last_epoch (integer): the epoch to go on from; -1: the start
learning_rate (number, table, tensor or function): the size of steps: a number, a list or tensor with one for each step, or a function of the step's number
length (integer): how many elements
lengths (table of integers): the length of each sequence
log_probs (tensor): logarithms of probabilities, as log_softmax gives them
log_target (boolean): true: the targets are logarithms too
logits (tensor): scores of the classes, before softmax or sigmoid
loss_fn (cell or function): the loss: a cell or function of outputs and labels
loss_scale (number): a factor that the gradients have, by which they are divided
low minval (number): the lower limit, included
lr (number or function): the size of steps: a number, or a function of the step's number
lu_and_piv (table): { lu, pivots }, as lu_factor gives them
LU_data (tensor): the first result of lu_factor
LU_pivots (tensor): the second result of lu_factor, counted from 0
m (integer): the number of columns; nil: as many as rows
margin (number): the distance from which on nothing is lost
mask (tensor): a boolean tensor: true where something happens
mat matrix (tensor): the matrix
mat1 (tensor): the first matrix
mat2 (tensor): the second matrix
max (number): the upper limit; nil: none
max_shape (table of integers): {height, width} of the image
max_val (number): the upper limit
maxima (tensor): the largest second moments so far, changed in place
maximize (boolean): true: steps go uphill
maxiter (integer): the largest number of iterations
maxlen (integer): the size of the new axis; nil: the largest length
maxnorm (number): the largest norm that a part may have
mean rate (number): the mean
means (table of numbers): what is taken off the four numbers of a box
merge_repeated (boolean): true: a label that follows itself counts once
metadata (table): a table of what the front end is told beside the value
min (number): the lower limit; nil: none
min_lr (number): the least learning rate
min_val (number): the lower limit
minlength (integer): the least size of the result
mode (string): which way it is done; the choices are listed
modulated (boolean): true: offsets end with a factor for every tap
moments (table of tensors): the first moments, changed in place
momentum (number): how much of the past is kept in each step; of normalisations as MindSpore counts it, 1 less PyTorch's
moving_mean (tensor): the running mean, changed in place
moving_mean_init (tensor, string, number or initializer): how the running mean starts
moving_var_init (tensor, string, number or initializer): how the running variance starts
moving_variance (tensor): the running variance, changed in place
n_fft (integer): the number of samples of a piece
n_gram (integer): how many words at most count as one
name (string): a name
nan (number): what takes the place of nan
negative (tensor): samples that should be far from the anchors
negative_slope (number): the slope of the leaky_relu that follows
neginf (number): what takes the place of -inf; nil: the smallest number
nesterov use_nesterov (boolean): true: the gradient is taken ahead of the step
net network (cell): the network, a cell
new_axis_mask (integer): bit i set: index i adds an axis
new_shape (table of integers): the sizes
next_tokens (integer): how many keys after its position a query sees
nonlinearity (string): "tanh" or "relu"
norm (string): where the transform is scaled: "backward", "forward" or "ortho"
norm_region (string): "ACROSS_CHANNELS" is what there is
norm_type (number): the p of the p-norm
normalized (boolean): true: divides by the root of n_fft
normalized_shape (table of integers): the sizes of the last axes, which are normalised over
num_channels num_features (integer): the number of channels
num_cols (integer): the number of columns, -1: as many as the diagonals need
num_groups (integer): the number of groups that channels fall into
num_key_value_heads (integer): how many heads key and value have; 0: as they lie
num_layers (integer): how many layers lie upon one another
num_out_tokens (integer): how many rows are kept, or nil for all
num_row (integer): rows of a page
num_rows (integer): the number of rows, -1: as many as the diagonals need
num_sample num_samples (integer): how many numbers are drawn for each row
num_segments (integer): the number of segments: the size of the result's first axis
obj (any value): any value
odd (boolean): true: the difference changes sign with its operands
off_value (number): the value of the other elements
offsets (tensor): how far each tap is moved, in pixels: along columns, then along rows
old_fval (tensor): the value at xk, where it is known
old_old_fval (tensor or number): the value one step before, where it is known
on_value (number): the value of the elements that are meant
onesided (boolean): true: only the frequencies from 0 to the middle, which determine the others of a real signal
operands (table of tensors): the tensors, in the order of the equation
optimizer (cell): the optimizer: a cell that is called with gradients
options (table): a table of options, as listed above
opts (table): a table of options
ord (number or string): which norm: a number, "fro" or "nuc"
order (string): "C": row by row, "F": column by column
other (tensor or number): the second operand; it is broadcast against the first
out_channels (integer): the size of the last axis of the result; of convolutions the number of its channels
out_int32 (boolean): true: the result is int32 in place of int64
output_padding (integer or table of integers): how much is added at the end of the result, where its size is not determined
output_ratio (table of numbers): the size of the result as a part of that of the input, one number or one for each axis
output_size (integer or table of integers): the size of the result
p (number): the probability with which an element is dropped
pad_dim_size (integer): the size of the last axis of the result
pad_mode (string): "same": the result is as large as the input divided by stride, "valid": no padding, "pad": as padding says
pad_num (number): the value behind the last element
padded_mode (boolean): must be false
padding (integer or table of integers): how many elements are added around each axis: one number, or a table
padding_idx (integer): the index whose vector stays 0
padding_mask (tensor): which positions are padding, or nil
padding_mode (string): what is read outside: "zeros", "border" or "reflection"
padding_value (number): what fills the places for which there is no element
paddings (table): {before, after} for each axis
page_size (integer): bytes of a page
param (parameter): the parameter
params (table of parameters): the parameters: net:trainable_params(), or a list of groups { params = ..., lr = ... }
path (string): the name of the file
periodic (boolean): true: as one period, for spectra; false: symmetric
permuted_tokens (tensor): rows in the order of their experts
points (table): watchpoints: names of conditions, or tables with such a name and parameters
pivots (tensor): the row with which each row has been exchanged, counted from 0
pos_weight (tensor): the weight of positive targets
posinf (number): what takes the place of inf; nil: the largest number
positive (tensor): samples that should be near the anchors
pre_tokens (integer): how many keys before its position a query sees
preconditioner (tensor or function): about the inverse of A: a matrix or a function
prefix (tensor): lengths of the part that all queries see, or nil
prepend (tensor or nil): what is put in front of x along the axis first
primals (table of tensors): the arguments of f
probs (tensor): the weight of each expert of a token, or nil
prompt (string): the text in front of what is typed
prototype (tensor): a tensor whose shape and dtype are taken
pse_shift real_shift (tensor): what is added to the scores, or nil
q (tensor or number): which quantiles, in [0, 1]
quant_max quant_min (integer): the largest and the smallest integer of the format
query (tensor): the queries
r (integer): how many are taken at a time
range (string): in words what is allowed
real (tensor): the real parts
recompute_scale_factor (boolean): true: the factor is computed again from the sizes
reduction (string): "mean", "sum" or "none": one number, or one for each element
reflect_type (string): "even"; "odd" is not supported
relu (boolean): true: negative results become 0
rep (integer): how often each element is repeated
repeats (integer or table of integers): how often each element is repeated: a number, or one for each element
replacement (boolean): true: what was drawn can be drawn again
restore_shape: takes no part without padded_mode
return_complex (boolean): true: complex numbers, false: real and imaginary parts in a last axis
return_counts (boolean): true: how often each value occurs too
return_indices (boolean): true: the positions of the maxima too
return_inverse (boolean): true: for each element where its value lies in the result too
reverse (boolean): true: from the end
rho (number): how much of the running means is kept in each step
rhs (tensor): the right-hand side
right (boolean): true: the right one of the two limits is included
rounding_mode (string): nil: the quotient itself, "trunc": cut off, "floor": rounded down
row_indices (tensor): the row of each value, rising
rtol (number): the relative difference that is allowed
running_mean (tensor): the mean that is used outside training
running_var (tensor): the variance that is used outside training
s (integer, table of integers or nil): the sizes of the transformed axes; nil: as they are
scalar_value (number): the factor of the scores
scale (number): a factor
scale_factor (number or table of numbers): how many times larger each axis becomes
scale_grad_by_freq (boolean): true: a vector's gradient is divided by how often it was taken
scale_value (number): the scale at the start
schedulers (table): a table of schedulers
seed (integer): the seed of this call alone; nil: the generator that ms.set_seed sets
segment_ids (tensor): the segment of each row, counted from 0
sens (number): the factor of the loss's gradient
seq_dim (integer): the axis of time
seq_lengths (tensor): how much of each sequence is reversed
sequence_length: how many steps of each sample count
settings (table): a table of settings by name
shape size (table of integers): the sizes of the axes, in a table
shift (integer): the distance between the positions of queries and keys
shifts (integer or table of integers): how far elements move along each axis
shrink_axis_mask (integer): bit i set: axis i becomes the one element at its index
sigma std stddev (number): the standard deviation
sin (tensor): the sines of the angles
smooth (boolean): what keeps the divisor away from 0; of BLEU true: counts are smoothed
sorted (boolean): true: in order
sorted_indices (tensor): the place of each row, as moe_token_permute gives it
sorted_sequence (tensor): the sorted values
source (integer or table of integers): where the values come from
sparse (boolean): true: labels are classes, false: probabilities of every class
sparse_mode (integer): how the mask is to be read
split_size_or_sections (integer or table of integers): the size of each part, or a table of sizes
squares (table of tensors): the second moments, changed in place
src updates (tensor): the values that are written
stable (boolean): true: equal elements keep their order
start (tensor or number): where it starts, included
start_dim (integer): the first axis that is joined
state (tensor): the state
stds (table of numbers): what the four numbers of a box are divided by
step (integer): the distance between two; of optimizers the number of the step
steps (integer): how many numbers
stop (integer): where it ends, not included
stride (integer or table of integers): how far a window moves: one number, or a table with one for each axis
strides (table of integers): the distance between two elements along each axis
swap (boolean): true: the nearer of anchor and positive counts for the negative
target_lengths (tensor): the length of each sequence of labels
tau (number): the temperature: the smaller, the nearer to one-hot
tensor1 (tensor): the first factor
tensor2 (tensor): the second factor, or the divisor
tensor (tensor): the tensor
tensors (table of tensors): the tensors, in a table
theta (tensor): the affine maps, (batch, 2, 3) or (batch, 3, 4)
thr (number): the limit
threshold (number): from here on the function is its linear limit
threshold_mode (string): "rel": the threshold is a share of the best, "abs": a difference
time (number): the length in time
tokens (tensor): the rows to be sent
tolerance (number): the largest difference
training (boolean): true: as in training, false: as in evaluation
trans (integer or boolean): true or 1: with the transpose
transposed (boolean): true: the weight lies as (out, in)
tup (table of tensors): a table of tensors
type1 (dtype): the first dtype
type2 (dtype): the second dtype
unit_diagonal (boolean): true: the diagonal is taken for ones
update_slots (boolean): whether the sums of squares go on
upper (boolean): true: the upper triangle in place of the lower
upscale_factor (integer): how many times larger the picture becomes
use_batch_statistics (boolean): true: statistics of the batch, false: the running ones; nil: as the cell is in training
use_norm (tensor or nil): the norm, where it is known already
used: 0 where nothing depends on the vector of a value
v values (tensor): the values
values_num (integer): the number of values
var variance (tensor or number): the variance
variable (tensor or parameter): the parameter or tensor that is written
vec1 (tensor): the first vector
vec2 (tensor): the second vector
vec (tensor): the vector
vocab_size (integer): the number of vectors: indices are less than it
w (tensor): the value that the weight starts from
weight (tensor): the weights
weight_decay (number): how much of the weights is taken off, as part of each gradient or beside it
weight_init (tensor, string, number or initializer): how the weights start: a name such as "he_uniform", a number, a tensor or an initializer; nil: the usual range for the size
weight_size (table of integers): the shape of the weights
weights (table of tensors): parameters whose gradients are wanted
wh_ratio_clip (number): how far the ratios of sides may be from 1, as the smallest ratio
where (string): the name of the function for messages
win_length (integer): the number of samples of the window; nil: n_fft
window (tensor or nil): what each piece is multiplied with; nil: ones
window_length (integer): the number of elements
with_replacement (boolean): true: an element may be taken more than once
x0 (tensor or number): where the search begins; nil: zeros
zero_infinity (boolean): true: infinite losses become 0
zero_point (integer): the integer that stands for 0
async_op (boolean): true: the request is carried out meanwhile, and a handle is given whose wait() returns when it is done
backend backend_name (string): the name of the engine that is expected; nil: whatever there is
concat_axis (integer): the axis along which the pieces are joined that come
dest dst (integer): the rank that gets the tensors
group_rank_id (integer): the number of a member in the group, from 0
input_tensor_list (table of tensors): a tensor for each rank of the group
p2p_op_list (table of tensors): a list of what P2POp gives
rank_ids (table of integers): the ranks of the group, in its order, as numbers among all
receive_sizes (table of integers): how many rows come from each rank
root (integer): the rank that gives or gets the whole, as its number in the group
send_sizes (table of integers): how many rows go to each rank
split_axis (integer): the axis along which the tensor is divided
tag (integer): the number by which a recv finds its send
world_rank_id (integer): the number of the rank among all
abort_early_check_ratio (number): after which share of the steps it is asked whether the loss still falls
attacks (table): a list of attacks of ms.armour.attacks
base_lr (number): the lower end of the learning rates
base_value (number): what stands in places that are hidden
batch_num (integer): how many batches an epoch has
batch_size (integer): how many samples are computed at once
bounds (table of numbers): { low, high } of the inputs; nil: { 0, 1 }
box_max (number): the upper end of the range of the inputs
box_min (number): the lower end of the range of the inputs
brightness_factor (number): 0 gives black, 1 the image itself
callbacks (callback or table of callbacks): one callback or a list of them
central_freq (number): the frequency in the middle, in Hz
center_freq (number): the frequency in the middle, in Hz
ckpt_file_name (string): the name of the file
clip (number): the largest value, or length, that is left as it is
columns (string or table of strings): names of columns
config_file (string): the name of a file of settings
contrast_factor (number): 0 gives a grey image, 1 the image itself
crc_check (boolean): whether a checksum is written or compared
cutoff (number): how many percent of the darkest and the lightest pixels do not count
cutoff_freq (number): the frequency at which the filter begins, in Hz
data_type (string or dtype): the dtype of the result
dataset (data set): batches: a data set, a list, or a function that gives the next batch
dataset_sink_mode (boolean): true: sink_size steps are done in one call
dec_key (string): the key of an encrypted file; nil: the file is not encrypted
dec_mode (string): how the file is encrypted: "AES-GCM", "AES-CBC" or "SM4-CBC"
decay_factor (number): how much of the earlier steps' direction is kept
decay_rate (number): what the learning rate is multiplied by after decay_steps steps
decay_steps (integer): after how many steps the learning rate has been changed once
degrees (number or table of numbers): an angle in degrees, or {least, largest} where it is drawn
device_number (integer): how many workers there are, a power of two
directory (string): the folder
drop_remainder (boolean): whether the last batch is left out where it is smaller
enc_key (string): the key by which the file is encrypted; nil: it is not
end_epoch (integer): the last epoch in which it acts
end_factor (number): the factor of the learning rate at the end
end_learning_rate (number): the learning rate at the end
end_points (table): the four corners after the change, as start_points
epoch (integer): how many epochs, or the number of the epoch
eps_iter (number): the length of a step, as a share of the range of the inputs
eta_min (number): the least learning rate
f_max (number): the largest frequency, in Hz; nil: half the sample rate
f_min (number): the least frequency, in Hz
file_name (string): the name of the file, or what the names of the files begin with
filter_prefix (string or table of strings): parameters whose names begin so are left out
gain (number): the factor
ignore (integer or table of integers): pixel values that do not count
ignore_label (integer): the label that does not count; nil: all count
initial_const (number): the first weight of the loss beside the distance
initial_epoch (integer): the epoch to begin with, from 0
initial_noise_multiplier (number): the standard deviation of the noise in the first step, in units of the norm bound
inplace (boolean): takes no part: images are values
input_columns (string or table of strings): the columns that it takes; nil: as many of the first ones as it takes
interleave_num (integer): into how many parts a batch is divided
is_stair (boolean): true: the learning rate changes once in decay_steps steps, false: in every step
is_targeted (boolean): true: labels are the classes to reach, false: those to be left
keep_whitespace (boolean): whether blanks are tokens too
layers (table): the layers, as names or cells; nil: all
lower_case (boolean): whether texts become lower case, without accents
lr_lambda (function or table of functions): a function of the epoch's number that gives a factor; a list has one for each group
max_lr (number): the upper end of the learning rates
mel_type (string): the scale of the bands: "htk" or "slaney"
metrics (table): names of metrics in a list, or metrics by name
micro_size (integer): into how many parts a batch is divided
milestones (table of integers): the epochs at which something changes
min_delta (number): a change that is smaller is no improvement
model (cell, function or model): what is asked for predictions
model_type (string): "classification" or "detection"
monitor (string): the name of the figure that is looked at, such as "eval_loss" or "loss"
n_mels (integer): how many bands the scale has
nb_iter (integer): how many steps
nb_neighbor (integer): how many points around the last one give the variance
neighbor_beta (number): how far these points are, in units of eps
noise_multiplier (number): the standard deviation of the noise, in units of the bound
norm_level (number or string): the norm: 1, 2 or "inf"
num_class (integer): the number of classes
num_classes_drawn (integer): how many classes
num_consumer (integer): how many threads read
num_ops (integer): how many operations are applied one after the other
num_parallel_workers (integer): how many threads work; nil: as ms.dataset.config says
num_shards (integer): into how many parts the rows are divided
output_path (string): the folder for what is written
patience (integer): how many epochs without an improvement are waited for
policy (table or string): which way is taken; the choices are in the text
prob (number): the probability with which the operation is applied
progress (boolean): whether a bar is shown; nil: in terminals and notebooks
Q (number): how narrow the filter is
quantization_channels (integer): how many levels there are
radius (number): how far the points are
replace_ratio (number): the share of each batch that attacks change
resample (integer): how pixels between others are made, one of ms.dataset.vision.Inter
expand (boolean): whether the image grows so that nothing is cut off
reserve_ratio (number): the share of the objects that may still be found
sample_rate (integer or number): samples in a second; of private trainings the share of the data in a batch
saturation_factor (number): 0 gives a grey image, 1 the image itself
save_ckpt (boolean): whether a checkpoint is written
save_mindir (boolean): whether a MindIR file is written
scale_window (integer): after how many steps without an overflow the scale grows
secure (boolean): whether random numbers come from the operating system, without a seed
segment (integer): the number of the part
shard_id (integer): which of the parts, from 0
sharpness_factor (number): 0 gives a blurred image, 1 the image itself
start_epoch (integer): the first epoch in which it acts
start_factor (number): the factor of the learning rate at the start
start_points (table): the four corners before the change: { {x, y}, ... } from the upper left on, clockwise
strategy (string or table): a strategy of ms.federated.strategies
strict_load (boolean): whether a parameter without a value in the file is an error
temperature (number): the larger, the smoother the probabilities
top_k (integer): how many of the largest count
total_iters (integer): the number of epochs over which the learning rate changes
train_dataset (data set): batches: a data set, a list, or a function that gives the next batch and nil at an epoch's end
transforms (table of functions): a list of operations
valid_dataset (data set): batches for the evaluation
valid_frequency (integer or table of integers): after how many epochs it is evaluated, or a list of epochs
valid_dataset_sink_mode (boolean): as dataset_sink_mode, for the evaluation
vocab (vocabulary): a ms.dataset.text.Vocab
warmup_steps (integer): the number of steps in which the rate grows
with_offsets (boolean): true: where each token begins and ends are two more columns
accuracy at columns_list step_sizes etas fi_size leaves_sizes ksizes rates unk_init (table of numbers)
activation_fn distance_function filter lars_filter evaluate part_of text_similarity predict inner (function)
actual actual_labels predicted adv_preds def_preds raw_preds adv_inputs def_detection_counts def_query_counts raw_query_counts true_labels target_label confidences embeddings masks membership phase_advance ds_train pca_mat_local (tensor)
adaptive (adaptive clip)
address manage_address server_address server_name log_dir summary_dir backup_dir checkpoint_dir layer_name cfg_path schema_file merges id secret scene x_label convert_mode_name compress_type unknown_token column_name loss_reduction (string)
amp_dtype (dtype)
append_info fi_type fi_mode bytes_fields head frozen norms followers (string or table of strings)
auto_encoder custom_decoder custom_encoder decoder_layer encoder_layer eval_network inv_network shadow_network train_network rest teacher trans_model saved_network (cell)
baseline max_eps final_lr lipschitz percentile bound data_size loss_scale_value freeze_p sparsity hue_factor limiter_gain_value (number)
bijector (bijector)
bits n_cluster n_components n_steps n_target_classes num_batches num_labels param_groups population max_queries max_file_size freeze_type grad_idx in1_channels in2_channels total_steps experts leaves ignore_indiex num_group faulty rounds (integer)
boost_config_dict collect_specified_data custom_lineage_data export_options factors feature_dict hook_names image_sizes left_pad right_pad loss_weights melkwargs speckwargs scaling sgdargs detectors parameters train_parameter_groups train_strategy win_sizes words stop_words worker_config schema rows input_bound input_shape coordinates box (table)
hue brightness contrast saturation ratio (number or table of numbers)
callback (callback)
client (federated client)
codec (codec)
collect_tensor_freq (integer)
communicator (communicator)
http_server_config remote_server_config (server configuration)
config yaml_config (string or table)
convert_mode operator out_type image_batch_format (string or constant)
defense (defence)
fl_model (federated model)
identity (identity)
signing_keys (table)
init_attack (attack)
layer (string or cell)
limiter_gain (number)
opt (optimizer)
optimizers (optimizer or table of optimizers)
output (string)
role (string)
scale_sense (cell, number or tensor)
ssl_config (SSL configuration)
target_model (cell or model)
target_features (tensor)
vectors (vectors)
reshape_with_axis manual_shapes (integer)
column (integer)
degree (integer)
clients (integer)
def_query_time raw_query_time (number)
translate shear (table of numbers)
form (string)
]]
read(require "lunaria.help.parameters_of")
read(require "lunaria.help.parameters_of_functions")

--- What is known of a parameter of a function or class: { type =, text = }, either of which may be missing. The parts of the owner's name
--- are asked from the last one on: a function, its class, its module.
return function(parameter, owner)
  if parameter:find "^on_%l+_" then return { type = "function", text = "a function that is called then, with a RunContext" } end
  local parts, found = {}, {}
  for part in owner:gmatch "[%w_]+" do table.insert(parts, 1, part) end
  local function take(row)
    if row then found.type, found.text = found.type or row.type, found.text or row.text end
  end
  for _, part in ipairs(parts) do take(rows[parameter .. "." .. part]) end
  take(rows[parameter])
  return found
end
