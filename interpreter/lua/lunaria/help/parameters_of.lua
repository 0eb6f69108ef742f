-- Parameters of single functions, classes and modules: "parameter.part parameter.part ... (type): meaning" (see parameters).
-- luacheck: no max line length
return [[
layout.lay_out (string): the number of a layout
a.betainc a.log_betainc a.log_betainc_slope (tensor): the exponent of x, above 0
a.log_igamma a.log_igamma_slope (tensor): the shape parameter, above 0
actual_seq_lengths.prompt_flash_attention: must be nil: attn_mask hides queries
alpha.LeakyReLU alpha.leaky_relu (number): the slope for negative x
axis.fake_quantize (integer): the axis whose places, or blocks of them, have scales of their own; nil: scale and zero_point broadcast
axis.permute (integer or table of integers): the axes in their new order
cache.cache_write (tensor): the keys or the values of earlier tokens
b.betainc b.log_betainc b.log_betainc_slope (tensor): the exponent of 1 - x, above 0
beta.SmoothL1Loss beta.smooth_l1_loss (number): where squares go over into absolute values
beta.softplus (number): how sharp the bend is
group.all_reduce group.all_gather group.reduce_scatter group.all_to_all group.all_to_all_v group.broadcast_from group.reduce_to group.gather_to group.scatter_from group.send group.recv group.barrier group.reduce group.broadcast group.scatter_tensor group.gather_into_tensor group.isend group.irecv group.P2POp group.all_gather_into_tensor group.reduce_scatter_tensor group.all_to_all_with_output_shape group.all_to_all_single_with_output_shape group.all_to_all_v_c group.get_rank group.get_group_size group.get_local_rank group.get_local_rank_size group.get_process_group_ranks group.create_group group.destroy_group group.get_world_rank_from_group_rank group.get_group_rank_from_world_rank (string): the name of a group of ranks; without it all ranks
op.all_reduce op.reduce_scatter op.reduce_to op.reduce op.reduce_scatter_tensor (string): what the tensors are combined by: "sum", "prod", "max", "min" or "avg"
sizes.all_gather sizes.reduce_scatter (integer or table of integers): the size of each rank's piece along the axis; nil: equal ones
source.recv (integer): the rank that sends, as its number in the group
src.broadcast src.scatter_tensor src.recv src.irecv (integer): the rank that gives
exchange.give_gradient (integer): the number of the exchange
gradient.give_gradient (tensor): the gradient of this rank
place.give_gradient (integer): the number of the gradient in its exchange, from 0
block_size.fake_quantize (integer): how many places along the axis have one scale; 0: each has its own
block_size.incre_flash_attention: must be 0
by.log_betainc_slope: 0: by a, 1: by b
center.istft (boolean): whether stft had center
copy.nan_to_num (boolean): whether the input is copied (tensors are values)
finite.without_overflow (boolean): whether results are finite, as ops.isfinite and ops.all tell
index.put_ (tensor): places among the elements in a row
indices.moe_token_permute: the experts of each token
indices.sparse_segment_mean: which rows of x, one after the other
k.matrix_diag k.matrix_diag_part k.matrix_set_diag (integer): the number of the diagonal, or {lowest, highest}
lambd.exponential_ (number): the rate: one over the mean (1)
lower.eigh lower.eigvalsh (boolean): whether the lower triangle counts (true)
lower.matrix_band_part (integer): how many diagonals below the main one stay, -1: all
lower.rrelu (number): the smallest slope
lower.solve_triangular (boolean): true: the lower triangle counts, else the upper one
median.cauchy (number): where the distribution has its middle (0)
method.crop_and_resize (string): how pixels between others are made: "bilinear" or "nearest"
method.minimize (string): "BFGS" or "L-BFGS"
mode.choose (string): what becomes of numbers out of range: "clip", "wrap" or "raise"
mode.Pad (string): "CONSTANT": zeros, "REFLECT": the input mirrored
name.valid_parameter (string): the parameter's name for messages
form.block_dense form.dequantize_blocks form.quantize_blocks (string): the form of the blocks, by its name in GGUF files
p.bernoulli (number): the probability of 1
p.cdist p.triplet_margin_loss (number): the p of the distance
p.multi_margin_loss (number): the exponent of the margins
padding_value.col2im (integer): how many rows and columns of zeros the image had around it
position.cache_attention position.cache_write (integer): the first place, a tensor of one integer
scale.fake_quantize scale.fake_quantize_element: the width of a step
segment_ids.sparse_segment_mean: the row of the result that each of them belongs to; they must not fall
sigma.cauchy (number): half the width between its quartiles (1)
source.movedim (integer or table of integers): the axes that move
source.put_ (tensor): the new elements, one for each place
transpose.ormqr (boolean): true: with the transpose of q
transpose.triangular_solve (boolean): true: with the transpose of A
type.dctn type.dst type.idct type.idctn type.idst (integer): 1, 2, 3 or 4 (2)
type.detrend (string): "linear" or "constant"
upper.betainc upper.log_betainc upper.log_betainc_slope upper.log_igamma upper.log_igamma_slope (boolean): true: the upper side, 1 less the lower one
upper.matrix_band_part (integer): how many diagonals above the main one stay, -1: all
upper.rrelu (number): the largest slope
upper.triangular_solve (boolean): false: the lower triangle of A counts (true)
value.masked_fill (tensor): what is written where mask is true
weight.CrossEntropyLoss weight.NLLLoss weight.cross_entropy weight.nll_loss (tensor): a factor for each class
weight.lerp (tensor or number): how far from input to the other: 0 to 1
weights.bincount (tensor): what each element counts; nil: 1
window.istft (tensor): the window that stft had; nil: ones
wrap.fill_diagonal wrap.fill_diagonal_ (boolean): true: the diagonal starts again below the square of a tall matrix
x.betainc x.log_betainc x.log_betainc_slope (tensor): where the integral ends, 0 to 1
x.log_igamma x.log_igamma_slope: where the integral ends, from 0 on
x.sparse_segment_mean: rows that means are made of
y.relu_grad: the result of relu
y.sigmoid_grad: the result of sigmoid
y.tanh_grad: the result of tanh
top_k.TopKNeuronCoverage (integer): how many units with the largest values of a layer count as active
segmented_num.KMultisectionNeuronCoverage (integer): into how many parts the range of a unit is divided
target_model.SensitivityMaximizingFuzzer (cell or model): the network that is searched
factor.UniformNoise factor.GaussianNoise (number): the size of the noise, as a share of the range of the pixels
factor.SaltAndPepperNoise (number): the share of the pixels that change
max_num_evals.HopSkipJumpAttack (integer): the most questions of one estimate of the boundary's direction
plateau_length.NES (integer): after how many steps without progress the learning rate falls
plateau_drop.NES (number): what the learning rate is divided by then
starting_eps.NES (number): the radius of the cube at first
orders.Accountant (table of numbers): orders of Renyi divergence; nil: the usual ones
micro_batches.DPOptimizerClassFactory (integer): what the sums of gradients are divided by
noise_decay_rate.NoiseAdaGaussianRandom (number): how fast the noise becomes less
target_unclipped_quantile.AdaClippingWithGaussianRandom (number): the share of gradients that should not be clipped
fraction_stddev.AdaClippingWithGaussianRandom (number): the standard deviation of the noise on the share
threshold_sigma.PATE (number): the standard deviation of the noise on the largest number of votes
networks.SuppressCtrl networks.create_by_policy (cell): the network
mask_layers.SuppressCtrl mask_layers.create_by_policy (table): a list of MaskLayerDes, which say which weights are set to zero
mask_times.SuppressCtrl mask_times.create_by_policy (integer): how many times weights are set to zero
sparse_end.SuppressCtrl sparse_end.create_by_policy (number): the share of zeros at the end
sparse_start.SuppressCtrl sparse_start.create_by_policy (number): the share of zeros at the start
policy.create_by_policy (string): "local_train"
make.SISA (function): make(seed) gives a new network, the same one for the same seed
train.SISA (function): train(network, x, y, seed) trains a network on the samples x, y
gain.XavierUniform gain.XavierNormal gain.Orthogonal (number): a factor of the size, such as sqrt(2) before a relu
b0.Biquad b1.Biquad b2.Biquad a0.Biquad a1.Biquad a2.Biquad (number): a coefficient of the filter
a_coeffs.LFilter a_coeffs.Filtfilt (table of numbers): the coefficients of earlier results
b_coeffs.LFilter b_coeffs.Filtfilt (table of numbers): the coefficients of the input
clamp.LFilter clamp.Filtfilt (boolean): whether results are cut to [-1, 1]
orig_freq.Resample (integer): samples in a second of the input
new_freq.Resample (integer): samples in a second of the result
mask_start.MaskAlongAxis (integer): the first row or column that is set
mask_width.MaskAlongAxis (integer): how many rows or columns are set
mask_value.MaskAlongAxis mask_value.MaskAlongAxisIID (number): what they become
mask_param.MaskAlongAxisIID (integer): the largest number of rows or columns, of which one is drawn
ref.DBToAmplitude (number): the amplitude or power of 0 decibels
fade_in_len.Fade (integer): the length of the part in which the sound grows, in samples
fade_out_len.Fade (integer): the length of the part in which it dies away, in samples
gain_db.Gain (number): the gain in decibels
gain.Vol (number): how much louder: a factor, decibels or a power, as gain_type says
n_stft.InverseMelScale (integer): how many frequencies the spectrogram has
sgdargs.InverseMelScale (table): takes no part; for programs from Python
n_mfcc.MFCC (integer): how many coefficients
n_filter.LFCC (integer): how many bands
n_lfcc.LFCC (integer): how many coefficients
fixed_rate.TimeStretch (number): how many times faster; nil: the rate comes with each row
bins_per_octave.PitchShift (integer): into how many steps an octave is divided
padded_samples.PaddedDataset (table): the rows that are put behind, a list of tables by column
session_id.DatasetCache (integer): takes no part; for programs from Python
spilling.DatasetCache (boolean): whether rows beyond the size go to a temporary file
start_index.SequentialSampler (integer): the first row, from 0
num_val.PKSampler (integer): how many rows of each class
num_class.PKSampler (integer): must be nil: all classes take part
normalization_form.BasicTokenizer (integer): the form of Unicode, one of ms.dataset.text.NormalizeForm
preserve_unused_token.BasicTokenizer (boolean): whether [CLS], [SEP], [UNK], [PAD] and [MASK] stay whole
suffix_indicator.WordpieceTokenizer (string): what the parts of a word but the first begin with
max_bytes_per_token.WordpieceTokenizer (integer): longer words are unknown
unknown_token.WordpieceTokenizer (string): what unknown words become
delim_pattern.RegexTokenizer (string): the regular expression of what lies between tokens
keep_delim_pattern.RegexTokenizer (string): separators that match this are tokens too
pattern.RegexReplace (string): the regular expression
replace.RegexReplace (string): what takes its place
data_type.ToNumber (string or dtype): the dtype of the numbers
width.SlidingWindow (integer): the size of a window
max_seq_len.Truncate (integer): how many tokens stay
max_length.TruncateSequencePair (integer): how many tokens both have together
token.AddToken (string): the token
constant.Mask (number or string): what elements are compared with
pad_shape.PadEnd (table of integers): the sizes of the result; nil for an axis leaves it
pad_value.PadEnd (number or string): what is put behind
slices.Slice (number, table or slice): the indices of each axis: a number, a list or ms.slice
num_magnitude_bins.RandAugment (integer): how many strengths there are
policy.RandomSelectSubpolicy (table): a list of lists of pairs { operation, probability }
is_single.MixUp (boolean): true: within a batch, false: with the batch before
gain.AdjustGamma (number): the factor behind the power
degree.RandomAdjustSharpness (number): the sharpness, as AdjustSharpness has it
top.ResizedCrop top.Erase (integer): the first row of the part
width.ResizedCrop width.Erase (integer): the number of its columns
transform.BoundingBoxAugment (function): the operation that is applied within boxes
to_pil.Decode (boolean): takes no part; for programs from Python
num_patches.CutOut (integer): how many squares become black
rescale.Rescale (number): the factor of the pixels
use_vertical_flip.TenCrop (boolean): whether the other five are upside down in place of mirrored
num_height.SlicePatches (integer): into how many parts the height is divided
num_width.SlicePatches (integer): into how many parts the width is divided
transformation_matrix.LinearTransformation (tensor): the matrix, (pixels, pixels)
mean_vector.LinearTransformation (tensor): what is taken off the pixels first
translate.Affine (table of numbers): {x, y}: how far the image moves, as shares of its size
shear.Affine (number or table of numbers): the angles of the shear in degrees
num_perturbations.Robustness (integer): how many points around the input are tried
by_masking.Searcher (boolean): whether boxes are hidden in place of shown
mask_probability.RISE (number): the share of the squares that is seen
down_sample_size.RISE (integer): how many squares a side of the grid has
rank.PowerSGD (integer): the number of columns of P and Q
code.Secured (fixed-point code): a ms.federated FixedPoint
columns.CountSketch (integer): the number of cells of a row
dp_eps.LocalDP (number): epsilon of one round
dp_delta.LocalDP (number): delta of one round
dp_norm_clip.LocalDP (number): the length to which updates are clipped
quantile.AdaptiveClip (number): the share of the clients that should not be clipped
fraction_bits.FixedPoint (integer): values are rounded to multiples of 2^-fraction_bits
clients.FixedPoint (integer): how many clients one sum has at most
refuses.FixedPoint (boolean): whether values beyond clip are an error
train.Hybrid (function): a function from the round and the aggregated feature map to the one that the next round begins with
compress_configs.VerticalFederatedCommunicator (table): CompressConfig by the name of an output
seconds.VerticalFederatedCommunicator (number): how long another party is waited for
links.VerticalFederatedCommunicator (table): the links to others by name, as run_parties gives them
role.LogisticRegression (string): "leader", who has the labels, or "follower"
leader.LogisticRegression (string): the leader's name among the links
dealer.LogisticRegression (string): the dealer's name among the links
yaml_data.FLModel (table): FLYamlData or its table
config.FLYamlData (table or string): the table, or the path of a .json or .yaml file
map_file.ImageNetToMR (string): the file that says which folder is which class
image_dir.ImageNetToMR (string): the folder of the images
shard_num.FileWriter (integer): into how many files the rows go
lower.RReLU (number): the smallest slope
unflattened_size.Unflatten (table of integers): the sizes that the axis becomes
ffn_size.MixtureOfExperts (integer): the size of an expert's hidden layer
top_k.MixtureOfExperts (integer): how many experts a token goes to
form.BlockDense form.BlockEmbedding (string): the form of the blocks: "q8_0", "q4_0", "q4_k" or "q6_k"; nil: plain numbers
interleaved.RotaryEmbedding (boolean): whether pairs are neighbours in place of the two halves
heads.KVCache (integer): how many heads keys and values have
max_accumulation_step.GradientAccumulation (integer): how many calls make a step
layer.TimeDistributed (cell): the layer
time_axis.TimeDistributed (integer): the axis of time
step_size.StepLR (integer): after how many epochs the learning rate falls
factor.ConstantLR factor.ReduceLROnPlateau (number): what the learning rate is multiplied by
T_max.CosineAnnealingLR (integer): the number of epochs from the largest rate to the least
T_0.CosineAnnealingWarmRestarts (integer): the number of epochs up to the first restart
T_mult.CosineAnnealingWarmRestarts (integer): how many times longer each run is than the one before
step_size_up.CyclicLR (integer): the number of steps in which the rate rises
step_size_down.CyclicLR (integer): the number of steps in which it falls; nil: as many
scale_fn.CyclicLR (function): the factor of a cycle's height; nil: as mode says
scale_mode.CyclicLR (string): what scale_fn gets: the number of the "cycle" or of the step ("iterations")
cooldown.ReduceLROnPlateau (integer): how many epochs are waited for after a change
profiler_level.Profiler profiler_level.profile (string): how much is recorded: "Level0", "Level1", "Level2" or "LevelNone"
activities.Profiler (table): what is recorded: a list of ms.profiler.ProfilerActivity; nil: all
schedule.Profiler (function): which steps are recorded, as ms.profiler.schedule gives it
on_trace_ready.Profiler (function): what is called with the records, as ms.profiler.tensorboard_trace_handler gives it
profile_memory.Profiler (boolean): whether memory is recorded
with_stack.Profiler (boolean): whether lines are recorded
data_process.Profiler (boolean): whether steps of data sets are recorded
start_profile.Profiler start_profile.profile (boolean): whether it records from the start
export_type.Profiler (table): the forms that are written; nil: text
output_path.Profiler output_path.profile (string): the folder for what is written
aic_metrics.Profiler l2_cache.Profiler hbm_ddr.Profiler pcie.Profiler parallel_strategy.Profiler sync_enable.Profiler mstx.Profiler data_simplification.Profiler hbm_mem.Profiler (any value): of Ascend's hardware; takes no part here
cfg_path.DynamicProfilerMonitor (string): the folder of profiler_config.json
per_print_times.LossMonitor (integer): after how many steps the loss is printed; 0: at the end of epochs
learning_rate_function.LearningRateScheduler (function): the new rate from the rate and the number of the step
eval_type.Accuracy (string): "classification" or "multilabel"
eval_indexes.Model (table of integers): where the loss, the outputs and the labels are among the results of eval_network, from 0
skip_channel.ConfusionMatrixMetric (boolean): whether the first class does not count
pos_label.ROC (integer): the class that counts as positive; nil: 1
directory.OnRequestExit (string): the folder for the files
collect_freq.SummaryCollector (integer): after how many steps figures are written
activation_bit_num.Quantise (integer): the bits of activations
config.ModelCheckpoint (checkpoint configuration)
bits.Watermark (table of integers)
accuracy.RobustnessCurve (table of numbers)
columns_list.CsvToMR (table of strings)
level.build_train_network level.AutoBoost (string)
theta.JSMAAttack gamma.HopSkipJumpAttack weight.TotalVariationMinimization angle.image factor.Shear gamma.DimReduce a.FedAsync a.FedBuff gamma.BoostedTrees accum.Adagrad accum.ProximalAdagrad smooth.DiceLoss smooth.Dice gamma.FocalLoss shift.ScalarAffine (number)
adaptive.GeneticAttack (boolean)
scale.RadarMetric target.FaultInjector decay.FedAsync decay.FedBuff job.secure target.EmbeddingLookup (string)
key.TriggerSet rows.CountSketch weight.FixedPoint (integer)
a.TruncatedNormal (number): the lower limit
window.Spectrogram window.MelSpectrogram window.InverseSpectrogram window.PitchShift window.SpectralCentroid (string): the form of the window, one of ms.dataset.audio.WindowType
begin.AddToken (boolean): whether it comes first, else last
interpolation.vision (integer): how pixels between others are made, one of ms.dataset.vision.Inter
gamma.CyclicLR gamma.MultiStepLR gamma.StepLR gamma.ExponentialLR (number): what the learning rate is multiplied by
patience.Client patience.FederatedLearningManager (number)
group.DistributedGradReducer (string or integer)
approximate.GELU (boolean)
bias.LRN (number)
w.PReLU (number or tensor)
upper.RReLU (number): the largest slope
optimizer.RowTable (string)
padding.Unfold (string)
prefix.ModelCheckpoint (string): what the names of the files begin with
b.TruncatedNormal (number): the upper limit
append.Concatenate prepend.Concatenate (tensor): what is put behind or in front of the column; nil: nothing
base.RotaryEmbedding (number): the base of the angles, such as 10000
batch_size.batch batch_size.padded_batch (integer or function): how many rows make a batch, or a function of the batch's number
beta.Fbeta (number): how many times as much recall counts as precision
gamma.AdjustGamma (number): the exponent of the pixels
data.comm (any value): what is sent, as JSON
data.write_file (tensor): the bytes, a tensor of uint8
data.VFLTrainer (data set or table): batches of this party's columns
data.open (any value): what is sent first, as JSON
delta.privacy (number): the delta of the privacy
epsilon.privacy eps.privacy (number): the epsilon of the privacy
eps.federated (number): the epsilon of the privacy
eps.armour (number): the radius of the ball, as a share of the range of the inputs
eps.ReduceLROnPlateau (number): a change of the rate that is smaller is not made
destination.mindrecord (string): the name of the file that is written
source.mindrecord (string): the name of the file or folder that is read
source.GeneratorDataset (function or table): gives the rows: a function that gives an iterator, or a list or an object of rows
rate.PhaseVocoder (number): how many times faster
rate.sparse_places (number): the share of the places
query.DumpAnalyzer (table): what is looked for, by name
shift.DCShift (number): how far all samples are moved
shift.Rescale (number): what is added to the pixels
size.set_prefetch_size (integer): how many rows wait behind each step
size.count size.sparse_places (integer): how many elements a vector has
size.vision (integer or table of integers): the size of the result: a number, or { height, width }
state.restore state.load_state_dict state.set_state (any value): what the other function of the pair gave
target.comm (string): the name of the program in the front end
tokens.Vocab (string or table of strings): a token, or a list of them
tolerance.Localization (number): the share of the map's values up to which places count
prefix.update_parameters_name (string): what the names begin with
key.VerticalFederatedCommunicator (string): the secret that all parties have
label.lite label.reliability (table or tensor): the classes
labels.local_privacy (tensor or integer): the classes
learning_rate.AdaClippingWithGaussianRandom (number): how fast the bound moves
left.vision (integer): the first column of the part
length.CutOut (integer): the side of a square, in pixels
length.scan (integer): how many turns; nil: as many as xs has rows
image.vision (tensor): the image, (height, width, channels)
ids.Vocab (integer or table of integers): a number, or a list of them
index.select (integer): the index along the axis
indices.SubsetSampler indices.SubsetRandomSampler (table of integers): the numbers of the rows, from 0
init.initializer (string, number or initializer): how the values are made: a name such as "he_uniform", a number, or an initializer
k.top_k (integer): how many elements
mode.set_train mode.recompute mode.requires_grad_ (boolean): whether it is so from now on
mode.common (string): "fan_in" or "fan_out"
mode.ReduceLROnPlateau mode.EarlyStopping (string): whether less or more is better: "auto", "min" or "max"
momentum.GriffinLim (number): how far phases go on in their direction
model.SuppressMasker (model): the model that is trained
norm.MelSpectrogram (string): "none" or "slaney": whether bands have equal areas
norm.LFCC (string): how the cosine transform is scaled: "none" or "ortho"
norm.clip (number): the length to which it is clipped
num_samples.dataset (integer): how many rows are taken; nil: all
order.ir (string): in which order the text is written
other.sparse (tensor or sparse tensor): the second operand
p.TripletMarginLoss (number): the p of the distance
p2p_op_list.batch_isend_irecv (table): a list of what P2POp gives
pad_mode.audio (string): what stands beyond the ends: "reflect", "constant", "edge" or "symmetric"
power.audio (number): the exponent of the magnitudes
power.PolynomialLR power.PolynomialDecayLR power.polynomial_decay_lr (number): the exponent of the decay
n.Ngram (integer or table of integers): how many words make one, or a list of such numbers
n.clopper_pearson (integer): how many trials there were
names.write_ckpt (table of strings): the names in their order
value.Constant (number): the value
value.Erase (number or table of numbers): the colour of the part
win_length.ComputeDeltas (integer): how many frames a slope is computed from
x.BoostedTrees x.LogisticRegression (tensor): this party's columns, (rows, columns)
y.Bijector (tensor): values behind the map
y.auc (tensor or table): the heights of the curve
x.auc (tensor or table): the places of the curve, in order
f.comm (function): what is called with each message
f.watch (function): the step that is watched
scale.Affine (number): how many times larger
scale_factor.DynamicLossScaleManager scale_factor.DynamicLossScaler scale_factor.DynamicLossScaleUpdateCell (integer): what the scale is multiplied and divided by
threshold.SensitivityConvergenceCoverage threshold.OodDetector (number): the limit beyond which it counts
threshold.ReduceLROnPlateau (number): a change that is smaller is no improvement
weight.BCELoss weight.BCEWithLogitsLoss (tensor): a factor for each element
weight.BlockDense weight.BlockEmbedding (tensor): the weight, plain or in blocks
dataset.dataset (data set): the data set
alpha.FastAdversarialDefense (number): the length of the step
alpha.Distillation (number): how much the teacher counts, between 0 and 1
value.is_tensor value.is_parameter value.display value.update_display value.encode value.help value.add_value (any value): the value
directions.landscape (string or table): "pca" or "random", or the two directions
]]
