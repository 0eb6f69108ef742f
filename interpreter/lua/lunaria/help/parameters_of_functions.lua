-- As parameters, of what functions and methods take, as distinct from classes.
-- luacheck: no max line length
return [[
folder (string): the folder
event (table): the steps: a table with the fields that Accountant:step lists
now (integer): the time in milliseconds
round (integer): the number of the round, from 1
text (string): the text
iteration (integer): the number of the iteration
layout (layout or table): how a tensor lies on a mesh: what mesh(...) gives, or a table of axes
others (table): others of the same kind
cell (cell): the cell
parameter (parameter): the parameter
names (string or table of strings): names
decoder (decoder): of ms.lite.load_decoder or ms.lite.Decoder
in_strategy out_strategy (table): a table with a layout for each input, or with the number of parts of each axis
what (string): which of them; the text lists the choices
batches (data set or table): batches: a data set, or a list of them
num (integer): how many
node (string or table): the node, by its name or as the graph gives it
hook_fn hook (function): the function that is called then
frame (table): a frame of columns
initial (number): what it starts from
epochs (integer): how many epochs
history (table): what has been so far
output_split_sizes input_split_sizes (table of integers): how many rows go to or come from each rank; nil: equal parts
enable (boolean): whether it is so from now on
datasets (data set or table): a data set, or a list of them
sizes (table): their numbers of rows, or their shares
share (number): the share, from 0 to 1
factor (integer): how many times as large
rank (integer): the number of the rank
parameter_plan (table): layouts of parameters by their names
loop_func (function): what one turn does
check (boolean): whether it is checked
gradient (tensor): the gradient
dist (distribution or string): the other distribution, or the name of its kind
grads_finite (tensor or boolean): whether the gradients were finite, as ms.amp.all_finite gives it
overflow (boolean): whether the step overflowed
confidence (number): the confidence, between 0 and 1
target_images (tensor): samples of the classes to reach
iters (integer): how many steps
original_images inversion_images pictures references (tensor): pictures (N, C, H, W), or inputs (N, ...)
dataset_train dataset_test members (data set or table): rows, { inputs, labels }, or a data set of such batches
mech_name (string): the name of the mechanism
init init_val (any value): what the first turn gets
seconds (number): how many seconds
json_filepath (string): the name of a JSON file
kind (string): which of them; the text lists the choices
vector (tensor): the weights as one vector
bytes (string): the bytes
min_size (integer): the least number of samples of a client
phase (string): the phase, by its name
reason (string): why
context (table): a CallbackContext
graph (string or table): the path of a file with a graph, the text of a stage, or what ms.ir gives
by (string): what the rows are told apart by
scores (tensor): a score for each token
page (integer): the number of the page, from 0
ranks (table of integers): numbers of ranks
object (any value): the value
object_list (table): a list of values
period (number): the length after which values repeat
rowvar (boolean): whether each row is a variable, each column an observation
density (boolean): whether the counts are scaled so that the integral is 1
scheduler (string): the order of the parts of batches
dst_strategy_file src_strategy_file (string): the file of a strategy; nil: everything in one piece
message (string): what it is called
jac (function): the gradient as a function
file_path (string): the name of the file that is read
save_path (string): the name of the file that is written
results (table): numbers by name
plugin (string): the kind of the value: "scalar", "histogram", "image" and others
amp_level (string): "O0", "O1", "O2", "O3" or "auto"
white_list (table): classes of cells that compute in the lower precision
black_list (table): classes of cells that stay in float32
losses directions (tensor): the losses at points, and the directions to them
loss_net (cell): what gives the loss
straight_through (boolean): whether gradients pass as if nothing was changed
answers (tensor): what the model says of boxes
num_of_neighbors (integer): how many neighbours count
attack (function): a function from a strength to an attack
radii (tensor): certified distances
deviation (number): the standard deviation
hits (integer): how many of the trials succeeded
with without (tensor): scores of runs with the row, and without it
new_network (cell): another network
attack_config (table): a list of { method, params }
fpr (number): the share of the others that may be taken for members
phi mean_in std_in mean_out std_out (tensor or number): a score, and the means and standard deviations of scores
images (tensor): the images
severity (integer): how strong it is, 1 to 5
sensitivity (number): how far one row moves the answer
votes (tensor): how many teachers say which class, (queries, classes)
data_dependent (boolean): whether clear votes count as cheaper
most (integer): the largest number
suppress_ctrl (table): the SuppressCtrl
target_modules (table of strings): names of parts of the network
obf_ratios (tensor): the factors that obfuscation gave
obf_config (table): a table with original_model_path and save_model_path
strength (number): the factor of the loss
iter_times (integer): how many times faults are injected
ds_eval ds_test (tensor): inputs (N, ...)
freeze_para_groups_number (integer): into how many groups parameters are divided
of (any value): what it is compared with
reset (boolean): whether counting begins anew
output_shape (table of integers): the shape of the result
output_shape_list (table): a list of shapes, one for each rank
send_count_matrix (table): for each rank how many elements it sends to each
fn (function or cell): the function
sink_size (integer): how many steps one call does
error_samples_mode (constant or string): what becomes of rows with which a function fails
filepath_prefix (string): what the names of files begin with
interval (integer): after how many steps
file (string or file): the file
buffer_size (integer): how many rows wait to be drawn
output_columns (string or table of strings): the columns that it gives; nil: those that it takes
randomize (boolean): whether rows are drawn by chance, else in their order
num_files (integer): into how many files
file_type (string): the form of the file: "mindrecord"
overwrite (boolean): whether files that are there are replaced
input_dict (table): a description, as serialize gives it
pipeline1 pipeline2 (data set): a data set
de_type (dtype or string): the dtype of the column
json_obj (table): the columns as a table
condition_name (string): the name of the condition
num_batch (integer): how many batches go on
cache (object): a ms.dataset.DatasetCache
freq_range (table of integers): { least, most } times that a word occurs; nil: any
special_tokens (table of strings): tokens that are added, such as "<pad>"
special_first (boolean): whether they come first
sampler (sampler): the sampler
class_idx (integer): the class, from 0
explainers benchmarkers (table): a list of methods or scores of ms.explain
labels_per_client (integer): how many classes a client has
ids (table or tensor): for each sample the text or number of its owner
level (number): the largest variance
global (feature map): the feature map that clients began with
sum (tensor): the sum, as a secure sum gives it
digest (integer): a number by which an update is told from another
valid (boolean): whether the weights are new ones
overrides (table): settings that differ
job (table): config, strategy, model, callback and evaluate, as for the server
linger (number): for how many seconds clients are told that it is over
feature_map (feature map or string): the first model
dump_dir (string): the folder of a dump
out_path (string): the file that is written
on (boolean): whether it is so from now on
messages (table): a list of tables with role and content
token (string): the token
stage (string): the stage of compilation; the text lists them
enc_mode (string): how files are encrypted: "AES-GCM", "AES-CBC" or "SM4-CBC"
content (table): the fields, { name = { type = } }
desc (string): what it is about
index_fields (string or table of strings): names of fields that can be asked for
raw_data (table): a list of rows, tables by field
parallel_writer (boolean): takes no part: rows are written in order
world_size (integer): how many ranks there are
group_rank (integer): the number in the group
global_rank (integer): the number among all ranks
output_tensor (tensor): the tensor that gets the result
input_tensor (tensor): the tensor that is sent
tensor_list input_list scatter_list gather_list output_tensor_list (table of tensors): a tensor for each rank
object_gather_list scatter_object_output_list scatter_object_input_list (table): a value for each rank
jit_config (table): a ms.JitConfig
requires_grad (boolean): whether they are trained
cond_func (function): whether another turn follows
xs (tensor or table): what the turns get, one after the other
series (tensor or table): the derivatives of the input, a row for each order
get_instance (boolean): whether the function itself is given
reuse_result (boolean): whether a result may be used again
input_data (any value): the value
dynamic_len (boolean): whether a list may change its length
cls (class): the class
attrs (any value): takes no part; for programs written for MindSpore
pack_hook (function): what is kept in place of a tensor
unpack_hook (function): what makes the tensor of it again
position (integer): the place
places (tensor of integers): the positions
outputs (table of strings): names of results
ticket (table): the third result of pull
copy (boolean): whether a tensor is copied, which makes no difference to values
ndmin (integer): the least number of axes
retstep (boolean): whether the step is given too
increasing (boolean): whether powers grow
default (any value): what stands where no condition holds
ndim (integer): the number of axes
multi_index (table of tensors): for each axis the indices
subscripts (string): a letter for each axis of each operand, then "->" and the axes of the result
deg (integer): the degree of the polynomial
xp (tensor or table): the places of known values, rising
fp (tensor or table): the known values
test_elements (tensor or table): the elements that are looked for
xmin xmax (tensor or number): the limit; nil: none
keys (table of tensors): the columns, of which the last counts first
returned (boolean): whether the sum of the weights is given too
discont (number): from which jump on something is added
return_index (boolean): whether it is told where each occurs first
side (string): "left" or "right": on which side of equal elements
sorter (tensor of integers): the order in which the values rise
sample (tensor): a row for each point
reps (integer or table of integers): how often each axis is repeated
pad_width (integer or table): how many before and after: n, { before, after }, or a table of these for each axis
stat_length (integer or table): how many elements at the end statistics are made of; nil: all
constant_values end_values (number or table): the values at both ends
shard_size (integer): among how many ranks weights are divided; -1: all
optimizer_level (string): "level1", "level2" or "level3"
stages (integer): into how many parts the network is divided
output_broadcast (boolean): whether all parts get the result
interleave (boolean): whether parts take turns
device_matrix (table of integers): the sizes of the mesh's axes
alias_name (table of strings): names of the axes
rank_list (table of integers): the rank at each place, row by row
stage_config segment_config (table): names of cells and the part that they belong to
rank_id (integer): the number of the rank
src_strategy_dirs (string): the folder of strategies
strategy_filename (string): the file of the strategy
group_info_file_name (string): the file of groups of ranks
sliced_parameters (table of parameters): the parts of a parameter
op_name (string or table of strings): a name, or a list of names
range_id (integer): what range_start gave
iterable (table, data set or function): what is gone through
assume_a (string): "gen", "sym" or "pos": what is known of the matrix
permute_l (boolean): whether the permutation is part of the lower factor
eigvals_only (boolean): whether the eigenvalues alone are given
cond (number): which singular values count as 0, as a share of the largest
fun (function): the function
tol (number): where the search ends
xk (tensor): the place
pk (tensor): the direction
c1 c2 (number): a constant of Wolfe's conditions
restart (integer): after how many steps it begins anew
fisher (boolean): whether 3 is taken off, so that the normal distribution has 0
unitriangular (boolean): whether the diagonal is taken for ones
original_args (table): what callbacks get
parameter_dict (table of parameters): parameters by name
reorder (boolean): whether points are sorted first
plugin_filter (function): a function of the kind of a value that says whether it is written
tangents (tensor or table of tensors): the directions, one for each argument
lower.solve lower.cholesky lower.cho_factor (boolean): whether the lower triangle counts
lower.fori_loop (integer): the first number
upper.fori_loop (integer): the number at which it ends, not included
sizes.mesh (table of integers): the sizes of the axes
share.apply (number): which share of the weights goes first
names.mesh (table of strings): names of the axes
method.by_label (string): "classes" or "shards"
method.rankdata (string): "average", "min", "max", "dense" or "ordinal"
output.reduce_scatter output.reduce_scatter_tensor output.all_gather_into_tensor output.all_gather_into_tensor_uneven output.reduce_scatter_tensor_uneven (tensor): the tensor that gets the result
train.canary_audit (function): train(has_canary, seeds) trains a model for each of the seeds
train.shadow_models (function): train(inputs, labels, i) gives a network
at.pause (string): "node", "step" or "hit"
get.Decoder (function): a function of a name and a shape that gives a weight and its form, or nil
pad.image (integer): how many pixels
layer.EditStep (string): the name of the layer
client.take (integer): the number of the client, from 1
c.toeplitz c.hankel c.circulant (tensor): the first column
factor.png (integer): how many times as wide and high every pixel becomes
before.fallbacks (integer): what was counted before
....set_mechanisms ....create (any value): the arguments of the mechanism or monitor
....parts ....norms ....gradients ....weighted_sum (tensor): a batch: the inputs of the network, then the labels
....Kernel (tensor): the operands
....model_inference ....predict ....infer_predict_layout (tensor): the inputs
....take (tensor): tensors with a row for each sample
....jit_report (compiled function): the function; nothing: all that graph mode compiled by itself
....lower (any value): arguments like those of the calls
....resize (integer or table of integers): the sizes
....Trainer (tensor): a batch: inputs, then labels
....set_inputs (tensor or table): for each input a tensor, or a table { shape =, dtype = }
....register (string or dtype): the types of the arguments
....partial (any value): the first arguments
....construct ....infer_shape ....infer_dtype (any value): the inputs, or their shapes or dtypes
....rand ....randn ....sum_to_size ....zeros ....ones (integer or table of integers): the sizes
....result_type (any value): tensors, numbers and dtypes
....piecewise (any value): further arguments of the functions
....meshgrid ....ix_ ....broadcast_arrays ....block_diag (tensor or table): the sequences or tensors
....apply_along_axis (any value): further arguments of the function
....einsum (tensor): the operands
....gradient (number or tensor): the distances of the values along the axes
....run ....parallel_report ....vjp ....first_nan ....profile ....watch (any value): the arguments of the call
....no_init_parameters (any value): the arguments of the function
....line ....scatter ....bar ....hist ....heatmap ....contour ....image ....radar (table or tensor): the numbers, then a table of options
....Distribution ....kl_loss (tensor or number): parameters of the distribution in place of its own
....print (any value): what is printed
....itemset (integer): the indices of the element, then its new value
....unfold (any value): the arguments of ms.ops.unfold
....sizes (integer): axes, counted from 0
....get_metric_fn (any value): the arguments of the metric
....add_graph (tensor): the inputs of the network
....checked ....check_inputs (tensor): the inputs
....Attack ....GradientMethod ....IterativeGradientMethod ....CoverageMetrics ....OodDetector ....Initializer ....Optimizer ....Link ....SuppressModel (any value): what the class that extends it takes
....update (any value): the value that is shown now
....batch_defense (any value): inputs, labels, and a table with batch_size, epochs and seed
....fuzzing (any value): mutate_config, initial_seeds and the coverage, and a table of the further settings
....create_dict_iterator ....create_tuple_iterator (any value): num_epochs, output_numpy and do_copy, as a rule in a table
....from_dataset ....from_file ....from_list (any value): further settings, as a rule in a table
....evaluate (any value): explainer, inputs and targets, and what else the text names
....export (any value): example inputs, and a table with file_name and file_format
....landscape (any value): network, loss_fn, dataset and checkpoints, and a table of the further settings
....as_whole ....save_mindir ....summary (any value): the arguments of the call
....Decoder (table or function): the configuration, and a function that gives the weights
....Sampler (table): the settings
....encode ....encoding (string): the text, and a table with pair and add_special_tokens
....CellList ....SequentialCell (cell): the cells, one after the other or in a list
....atleast_1d ....atleast_2d ....atleast_3d (tensor or number): the values; as many results
....gen_landscapes_with_multi_process (any value): callback_fn and the settings that the text names
....item (integer): the indices of the element, where there are several
....release (boolean): whether its memory is given back at once
loss_scale_manager (loss scale manager): what scales the loss; nil: nothing
keep_batchnorm_fp32 (boolean): whether normalisations stay in float32; nil: as the level says
metrics_name labels.RadarMetric (table of strings): names
metrics_data (table): a list of numbers for each label
selected_neurons_num (integer): how many units of each layer are looked at
n_iter.SensitivityConvergenceCoverage (integer): how many steps the chain of a unit has
point.GradientBlur start_point.GradientLuminance (table of integers): { x, y } of the place; nil: drawn at random
color_start color_end (table of integers): a colour { red, green, blue }; nil: drawn at random
k_x_range k_y_range (table of integers): { least, largest } size of the spots; nil: the usual one
ori_pos dst_pos (table): four corners { x, y }; nil: drawn at random
eval_indexes (table of integers): where the loss, the outputs and the labels are among the results of eval_network
noise_mech clip_mech (object): the mechanism, as ms.armour.privacy.diff_privacy has them
micro_batches (integer): into how many parts a batch is divided; nil: one for each sample
expected_batch_size max_physical_batch_size (integer): how many samples
max_delta target_eps (number): the budget; nil: what the other figures give
noise_decay_mode (string): how the noise becomes less: "Time", "Step" or "Exp"; nil: not at all
noise_decay_rate.diff_privacy (number): how fast the noise becomes less
sampling (string): "poisson" or "shuffle"; nil: as the batches are drawn
orders.RDPMonitor (table of numbers): orders of Renyi divergence; nil: the usual ones
target_features.generate (tensor): the features that are to be reached
edges (table of numbers): the limits of the bins, rising
networks.create (cell): the network
mask_layers.create (table): a list of MaskLayerDes, which say which weights are set to zero
mask_times.create (integer): how many times weights are set to zero
sparse_end.create (number): the share of zeros at the end
sparse_start.create (number): the share of zeros at the start
ckpt_files (string): the checkpoint, or the folder of it
window_size.ConceptDriftCheckTimeSeries (integer): how many values a window has
format.from_format format.to_format (string): the name of the format
parameter_groups_number (integer): into how many groups parameters are divided
freeze_strategy (integer): the kind, as freeze_type of GradientFreeze
reducer_flag use_grad_accumulation (boolean): whether it takes part
grad.freeze_cell (function): what computes gradients
max_accumulation_step.freeze_cell (integer): how many calls make a step
samples.pca (table or tensor): a list of vectors, or a tensor (count, n)
op.P2POp (string): "isend" or "irecv"
peer (integer or string): the other one: its rank, or its name
dataset_dir (string): the folder of the data
shuffle (boolean or constant): whether rows are shuffled, or ms.dataset.Shuffle; nil: as the text says
dataset_files (string or table of strings): the files
dataset_file annotation_file (string): the file
field_delim (string): what stands between fields
column_defaults (table): a value for each column, of its type, for empty fields
column_names (string or table of strings): the names of the columns
column_types (table): the dtype of each column
extensions (table of strings): endings of the names of files that count
usage (string): which part of the data: "train", "test", "all" and others that the text names
task.CocoDataset task.VOCDataset (string): what is read of each image
per_batch_map (function): a function of the columns of a batch, as lists, that gives the columns
bucket_boundaries (table of integers): the limits of the lengths, rising
bucket_batch_sizes (table of integers): the size of a batch for each bucket, one more than there are limits
element_length_function (function): gives the length of a row from the columns; nil: the size of the first axis
pad_info (table): by column { shape, value } to which it is padded; nil: to the longest with zeros
pad_to_bucket_boundary (boolean): whether rows are padded to the limit of their bucket
predicate (function): gives whether a row stays
operations (function or table of functions): what is done with the columns, one after the other
python_multiprocessing (boolean): takes no part; for programs from Python
callback.sync_wait (function): what sync_update calls
image_size (table of integers): the sizes of an image
class_indexing (table): the number of each class by its name; nil: in order of names
total_rows (integer): how many rows; nil: drawn at random
iid_masks (boolean): whether each spectrogram of a batch is masked by itself
dct_type (integer): the type of the cosine transform, 2
log_lf (boolean): whether logarithms are taken in place of decibels
speckwargs.LFCC (table): options of Spectrogram
pad.Spectrogram pad.MelSpectrogram (integer): how many zeros are put at both ends
mel_scale (string): the scale of the bands: "htk" or "slaney"
filename (string): the name of the file
raw (boolean): whether it is given as it is
cut_short (boolean): whether a file that ends too early is read up to there
max_vectors (integer): how many vectors are read; nil: all
hmm_path mp_path (string): the file of the model
words.add_dict (table or string): words with how often they occur, or a file of them
word (string): the word
freq (integer): how often it occurs
tokenizer (function): gives the tokens of a text
col_names (table of strings): the columns that are read
character_coverage (number): the share of the characters that pieces have to cover
word_dict (table): the number of each word
word_list (table of strings): the words in order
quality (integer): the quality of JPEG, 1 to 100
apply_exif_orientation (boolean): whether the image is turned as its metadata says
id.display (boolean or string): true: a handle is given; a text is the display's name
id.secure (string): the name of a client
id.id_to_token (integer): the number of the token
activation_fn.HierarchicalOcclusion (function): what makes probabilities of the network's logits
fl_name (string): the name of the job
checkpoint_file (string): the file of the model
server.CallbackContext (object): the server
url (string): the address of the server
client_id (string): the name of the client
rule (string or table): a client rule, by its name or as a table of functions
push_metrics (boolean): whether loss and accuracy are sent to the server
ssl (table or SSL configuration): certificates and what is checked
signing (table): keys for signed requests
role.FLDataWorker (string): "leader" or "follower"
worker_config.FLDataWorker schema.FLDataWorker (table): settings that the text names
local_data_batch remote_data_batch (table of tensors): inputs by name, of this party and of others
version.push_weights (integer): that of get_model
limit.refusal (number): the largest magnitude of a number
limit.read_text (integer): how many bytes at most
sync_frequency (integer): after how many steps models are exchanged
min_consistent_rate (number): the least consistency of changes at first
ema_alpha (number): the weight of earlier changes
observation_window_size (integer): how many synchronisations are looked at
frequency_increase_ratio (number): what the interval is divided by
unchanged_round (integer): how many synchronisations change nothing at first
is_remote (boolean): whether it comes from another party
server_password (string): the password of the server's certificate
on_step (function): what is called after each step
http_server_config.VerticalFederatedCommunicator (server configuration): ServerConfig of this party
remote_server_config.VerticalFederatedCommunicator (server configuration or table): that of another party, or a list of them
remote_server_name target_server_name (string): the name of the other party
tensor_dict (table of tensors): tensors by name
cells.CountSketch (tensor): the cells of a sketch
cells.CellDict (table of cells): cells by name
right_mean left_mean (tensor): the mean that the server sent
texts (table of strings): the messages of the clients
quantized (table): what quantize gave
bits.pack_bits (integer): how many bits a number has
bits.FixedPoint (integer): 8, 16, ... 64; nil: the fewest in which the sums cannot overflow
code (fixed-point code): the code of vectors as whole numbers
client_list key_list (table): the list that the server sent
list_signatures (table): signatures by client
public_key signature (string): the bytes of it
update (table): what a client sent
map (feature map): the feature map
train.SemiSupervised (function): a function from the round and the feature map to the one after the server's training
links (table): the links to other parties by name
link (link): the link to the other party
own (string): the name of this party
parties (table): by name a function that takes links, or an address
handle (object): what read_later gave
ask (boolean): whether it is only asked if it is done
partial (boolean): whether a file that still grows may end in the middle
record (function): what is called with each record
parts (table): the parts that are read
number.signal_came (integer): the number of the signal
forget (boolean): whether it is no longer waited for
ending (string): what the name ends with
place (string): the place, as "file:line"
hint (string): what may help
checksum (boolean): whether a checksum is written
later (boolean): whether a thread writes it
table (table): the list
skip (table of strings): names of layers that stay as they are
begin_step end_step.MagnitudePruning (integer): the step at which it begins or ends
frequency.MagnitudePruning (integer): after how many steps weights are set to zero
schedule.MagnitudePruning (string): how the share grows: "linear", "cubic" and others that the text names
skip_special_tokens (boolean): whether special tokens are left out
fields (table of strings): the fields that are written; nil: all
combined (boolean): whether it adds up what the text says
params_init (table): values of the parameters by name
obf_random_seed (integer): the seed of an obfuscated network
max_eval (integer): how often the function is computed at most; nil: 1.25 times the iterations
line_search_fn (string): "strong_wolfe"; nil: steps of the given length
process_groups (table): the ranks that count together; nil: all
d_model (integer): the number of features
nhead (integer): the number of heads
total_step step_per_epoch decay_epoch warmup_epoch (integer): how many steps or epochs
milestone (table of integers): the steps up to which a rate holds
learning_rates (table of numbers): the rates
damping (number or table of numbers): what is added to the diagonals, for each step
decay_filter (function): which parameters have weight decay
split_indices (table of integers): where the list of layers is divided between ranks; nil: nowhere
kth (integer): the place that has the right element
to_end to_begin (number or tensor): what is put behind or in front; nil: nothing
assume_unique (boolean): whether the values are known to be different
method.numpy (string): what is taken between two elements, as numpy calls it: "linear" and others
sorter.searchsorted (tensor of integers): the order in which the elements of a rise
ops.Map ops.HyperMap (function): the function that is applied to the elements
weight_prior_fn weight_posterior_fn bias_prior_fn bias_posterior_fn (function): makes the distribution from the shape
concentration concentration0 concentration1 df loc sd (number or tensor): a parameter of the distribution; nil: given in each call
activities.profile (table): what is recorded; nil: all
schedule.profile (function): which steps are recorded
profile_memory.profile (boolean): whether memory is recorded
with_stack.profile (boolean): whether lines are recorded
data_process.profile (boolean): whether steps of data sets are recorded
aic_metrics.profile l2_cache.profile hbm_ddr.profile pcie.profile parallel_strategy.profile sync_enable.profile mstx.profile data_simplification.profile hbm_mem.profile (any value): of Ascend's hardware; takes no part here
export_type.profile (table): the forms that are written; nil: text
wait active (integer): how many steps
dir_name (string): the folder for the files
worker_name (string): what the names of the files begin with; nil: the host and the process
first.progress (integer): with which number it begins
type.dct (integer): 1, 2, 3 or 4
trans.lu_solve trans.solve (integer or boolean): 0, or 1 for the transposed matrix
args.minimize (table): further arguments of the function
popmean (number or tensor): the mean that is expected
recursion_limit (integer): the number of calls; nil: as at first
check_finite.Model (boolean): whether a loss that is not finite is an error that names the layer
eval_type.Precision eval_type.Recall (string): "classification" or "multilabel"
in_axes (integer or table): the axis of each argument that has the batch; nil for one that has none
out_axes (integer or table): the axis of each result that gets the batch
to.move_to (string): the name of the device
to from (number): the limits of the numbers
parameters.ParameterTuple (table of parameters): the parameters
id.update_display (string): the name of the display
....load_checkpoint_async (any value): the arguments of ms.load_checkpoint but for mmap
checkpoint_filenames (table of strings): the files of the ranks, in their order; nil: safetensors files are read
predict_strategy (table or string): how parameters lie in the network, or the file of it; nil: in one piece
train_strategy_filename (string): the file of the strategy of the training
format.load_distributed_checkpoint (string): the form of the files: "ckpt" or "safetensors"
unified_safetensors_dir dst_safetensors_dir (string): a folder of safetensors files
output_format (string): the form of the written files: "ckpt" or "safetensors"
name_map (table of strings): names in the file by the names of the network
ckpt_file_dir (string): the folder of the files
specify_prefix (string or table of strings): only parameters whose names begin so are taken
choice_func (function): a function of a name that says whether the parameter is taken; nil: all
make.no_init_parameters (function): a function that gives the network
save_obj (cell or table): a network, a table of tensors by name, or a list of { name =, data = }
integrated_save (boolean): whether divided parameters are brought together first
append_dict (table): further values by name: numbers, texts, booleans
format.save_checkpoint (string): "ckpt" or "safetensors"; nil: as the ending of the name says
checkpoint_files_map (table): the file of each rank
save_checkpoint_file_name (string): the file that is written
src_checkpoints_dir dst_checkpoints_dir src_dir dst_dir (string): the folder of the files
ckpt_prefix (string): what the names of the files begin with
file_suffix (string): what the names of the files end with; nil: nothing
split_dst_file (table of integers): { number, of } of the part that this process writes; nil: all
mutate_config (table): a list of { method =, params = } of mutations and attacks
initial_seeds (table): a list of { input, label }
coverage (object): a coverage of ms.armour.fuzz_testing
evaluate.fuzzing (boolean): whether there is a report
max_iters.fuzzing (integer): how many iterations at most; nil: 10000
checkpoints.landscape (table): files of weights, or lists of tensors, in order
intervals.landscape (table): the checkpoints that belong together
unit.landscape (string): "step" or "epoch": what checkpoints are counted in
steps_per_epoch.landscape (integer): how many steps an epoch has
format.load_checkpoint format.load_checkpoint_async (string): "ckpt" or "safetensors"; nil: as the ending of the name says
mmap (boolean): whether tensors stay in the file until they are looked at
]]
