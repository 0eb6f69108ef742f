-- The names of MindSpore's tensors, dtypes, operators (without communication, which is in the area of distribution), numpy and scipy: how
-- many of them there are. What is still open stands below: nothing may come to it.
-- Eager mode only: nothing here is called often enough to be compiled.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"

local areas = {
  { "tensors", "P0", { ms.ones { 2, 2 } }, [[
    T abs add all any argmax argmin argsort asnumpy astype bmm bool broadcast_to chunk clamp clip clone contiguous copy copy_ cumsum
    dim div dtype eq equal exp expand expand_dims fill_ flatten flip float gather ge gt half index_select int is_contiguous item le
    log long lt masked_fill matmul max mean min mm mul narrow ndim ne neg new_ones new_zeros norm numel numpy permute pow prod repeat
    requires_grad_ reshape scatter select set_dtype shape sigmoid size softmax sort split sqrt square squeeze std sub sum swapaxes
    tanh tile to tolist topk transpose tril triu type_as unbind unsqueeze value var view where zero_
  ]] },
  { "tensors", "P1", { ms.ones { 2, 2 } }, [[
    add_ addcdiv addcmul addmm baddbmm bernoulli_ bfloat16 byte clamp_ cumprod det device diag diagonal div_ double exp_ expand_as
    floor_ gather_elements gather_nd hardshrink index_add_ index_put_ inverse is_complex is_floating_point isfinite isinf isnan
    itemsize lerp logical_and logical_not logical_or logsumexp mH mT masked_fill_ masked_select maximum median minimum moveaxis
    movedim mul_ nbytes ndimension nelement new_empty new_full nonzero normal_ pin_memory random_ ravel repeat_interleave reshape_as
    roll scatter_ scatter_add scatter_add_ short storage storage_offset stride strides sub_ to_coo to_csr to_dlpack trace unfold
    uniform_ untyped_storage view_as
  ]] },
  { "tensors", "P2", { ms.ones { 2, 2 } }, [[
    H absolute acos acosh addbmm addmm_ addmv addr adjoint allclose amax amin aminmax angle approximate_equal arccos arccosh arcsin
    arcsinh arctan arctan2 arctanh argmax_with_value argmin_with_value argwhere asin asinh assign_value atan atan2 atanh bernoulli
    bincount bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor cauchy ceil cholesky
    cholesky_inverse cholesky_solve choose col2im conj convert_bytes_to_tensor copysign cos cosh count_nonzero cov cross cummax cummin
    data data_ptr deg2rad diagflat diagonal_scatter diff digamma divide dot dsplit eigvals erf erfc erfinv erfinv_ expm1 exponential_
    fill fill_diagonal fill_diagonal_ fills fliplr flipud float_power floor floor_divide floor_divide_ fmax fmin fmod fold frac
    from_numpy gcd geqrf ger get_bytes greater greater_equal has_init heaviside histc hsplit hypot i0 igamma igammac imag index
    index_add index_copy_ index_fill index_fill_ index_put init inner inplace_update inv invert is_init is_meta is_pinned is_shared
    is_signed isclose isneginf isposinf isreal itemset kthvalue lcm ldexp less less_equal lgamma log10 log1p log2 log_
    log_matrix_determinant log_normal logaddexp logaddexp2 logcumsumexp logdet logical_xor logit lstsq lu_solve masked_scatter
    masked_scatter_ matrix_determinant matrix_power move_to msort multinomial multiply mvlgamma nan_to_num nanmean nanmedian
    nanquantile nansum negative nextafter not_equal orgqr ormqr outer positive put_ qr quantile rad2deg random_categorical real
    reciprocal remainder remainder_ renorm resize reverse reverse_sequence rot90 round rsqrt scatter_div scatter_max scatter_min
    scatter_mul scatter_sub searchsorted select_scatter set_ set_cast_dtype sgn sigmoid_ sign sign_ signbit sin sinc sinh
    slice_scatter slogdet soft_shrink subtract sum_to_size svd swapdims t take tan tanh_ tensor_split to_ top_k triangular_solve
    true_divide trunc type uniform unique unique_consecutive unique_with_pad unsorted_segment_max unsorted_segment_min
    unsorted_segment_prod vsplit wait_pipeline xdivy xlogy
  ]] },
  { "dtypes", "P0", { ms }, [[
    bfloat16 bool_ double float16 float32 float64 half int32 int64 int8 number tensor_type uint8
  ]] },
  { "dtypes", "P1", { ms }, [[
    QuantDtype complex128 complex64 dtype_to_nptype float8_e4m3fn float8_e5m2 int16 list_ pytype_to_dtype qint4x2 string tuple_
    type_none uint16 uint32 uint64
  ]] },
  { "dtypes", "P2", { ms }, [[
    Int TensorType Type _null byte cdouble cfloat dtype_to_pytype float_ get_py_obj_dtype hifloat8 int_ intc intp long short single
    ubyte uint uintc uintp ushort
  ]] },
  { "operators", "P0", { ms.ops }, [[
    abs neg exp expm1 log log1p sqrt rsqrt square reciprocal sin cos tan asin acos atan sinh cosh tanh floor ceil round sign erf isnan
    isinf isfinite logical_not relu relu6 leaky_relu elu gelu silu sigmoid logsigmoid softplus hardswish softmax log_softmax add sub
    mul div floor_divide remainder pow maximum minimum equal not_equal less less_equal greater greater_equal logical_and logical_or
    logical_xor where select clamp clip masked_fill clip_by_value clip_by_norm clip_by_global_norm sum mean prod max min amax amin
    argmax argmin std var all any logsumexp norm cumsum sort argsort topk reshape transpose permute swapaxes flatten squeeze
    expand_dims unsqueeze broadcast_to tile repeat_interleave concat cat stack split chunk unbind unstack slice strided_slice flip
    tril triu cast shape size rank dtype stop_gradient pad gather gather_elements gather_nd index_select masked_select nonzero scatter
    tensor_scatter_update tensor_scatter_add zeros ones full arange linspace eye zeros_like ones_like full_like one_hot matmul mm bmm
    dot einsum addmm dense conv1d conv2d max_pool2d avg_pool2d adaptive_avg_pool2d batch_norm layer_norm group_norm rms_norm dropout
    embedding flash_attention_score cross_entropy nll_loss mse_loss l1_loss smooth_l1_loss binary_cross_entropy
    binary_cross_entropy_with_logits kl_div rand rand_like randn randn_like randint randperm uniform normal standard_normal bernoulli
    multinomial shuffle assign assign_add assign_sub depend print_
  ]] },
  { "operators", "P1", { ms.ops }, [[
    exp2 log2 log10 asinh acosh atanh trunc frac erfc erfinv lgamma digamma sinc deg2rad rad2deg nan_to_num logit prelu selu celu mish
    softsign hardsigmoid hardtanh hardshrink softshrink tanhshrink threshold glu swiglu gumbel_softmax floor_div floor_mod fmod atan2
    hypot logaddexp xlogy lerp addcmul addcdiv isclose bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift
    aminmax std_mean var_mean vector_norm median nansum nanmean count_nonzero reduce_sum reduce_mean reduce_max reduce_min cumprod
    cummax cummin unique unique_consecutive bincount searchsorted diff movedim moveaxis t ravel expand expand_as hstack vstack dstack
    column_stack tensor_split narrow roll diag diag_embed diagonal trace meshgrid atleast_1d view_as numel is_tensor reverse_sequence
    sequence_mask scatter_update scatter_nd scatter_nd_add tensor_scatter_sub tensor_scatter_max tensor_scatter_min
    tensor_scatter_elements index_add index_fill unsorted_segment_sum unsorted_segment_max unsorted_segment_min fill mv inner outer
    kron tensor_dot baddbmm inverse det slogdet cholesky matrix_solve qr svd eig pinv cross cdist cosine_similarity fft ifft fft2
    ifft2 rfft irfft bias_add conv3d conv_transpose2d conv3d_transpose max_pool3d avg_pool1d avg_pool3d adaptive_avg_pool1d
    adaptive_max_pool2d max_unpool2d lrn dropout1d dropout2d dropout3d interpolate upsample grid_sample pixel_shuffle pixel_unshuffle
    unfold fold rotary_position_embedding iou bounding_box_encode bounding_box_decode crop_and_resize check_valid huber_loss ctc_loss
    hinge_embedding_loss cosine_embedding_loss margin_ranking_loss multi_margin_loss multilabel_soft_margin_loss soft_margin_loss
    triplet_margin_loss gaussian_nll_loss randint_like laplace gamma poisson random_categorical choice_with_mask
  ]] },
  { "operators", "P2", { ms.ops }, [[
    absolute negative positive inv arcsin arccos arctan arcsinh arccosh arctanh sgn signbit polygamma mvlgamma i0 isneginf isposinf
    isreal invert angle conj real imag population_count bessel_i0 bessel_i0e bessel_i1 bessel_i1e bessel_j0 bessel_j1 bessel_k0
    bessel_k0e bessel_k1 bessel_k1e bessel_y0 bessel_y1 rrelu fast_gelu soft_shrink softmin subtract multiply divide true_divide
    truncate_div truncate_mod float_power fmax fmin copysign nextafter ldexp logaddexp2 xdivy heaviside gcd lcm igamma igammac zeta
    polar eq ne lt le gt ge approximate_equal matrix_norm nanmedian quantile nanquantile logcumsumexp top_k msort unique_with_pad
    histc bucketize trapz cov swapdims adjoint repeat_elements row_stack hsplit vsplit dsplit select_scatter slice_scatter
    diagonal_scatter fliplr flipud reverse rot90 diagflat atleast_2d atleast_3d type_as padding mirror_pad space_to_batch_nd
    batch_to_space_nd block_diag gather_d take argwhere scatter_add scatter_mul scatter_div scatter_max scatter_min scatter_nd_sub
    scatter_nd_mul scatter_nd_div scatter_nd_max scatter_nd_min scatter_nd_update tensor_scatter_mul tensor_scatter_div inplace_add
    inplace_sub inplace_update inplace_index_add put_ unsorted_segment_prod sparse_segment_mean intopk fills range logspace
    tril_indices triu_indices vander bartlett_window blackman_window hamming_window hann_window kaiser_window cartesian_prod
    combinations ger batch_dot vecdot addmv addr addbmm matrix_determinant logdet log_matrix_determinant cholesky_inverse
    cholesky_solve lu_solve lu_unpack lstsq geqrf orgqr ormqr eigvals matrix_power matrix_exp matrix_diag matrix_diag_part
    matrix_set_diag matrix_band_part cond pdist dist renorm fftn ifftn rfft2 irfft2 rfftn irfftn hfft ihfft fftfreq rfftfreq fftshift
    ifftshift stft bidense deformable_conv2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool3d fractional_max_pool2d
    fractional_max_pool3d lp_pool1d lp_pool2d max_unpool1d max_unpool3d add_layer_norm add_rms_norm affine_grid channel_shuffle col2im
    incre_flash_attention prompt_flash_attention fused_infer_attention_score moe_token_permute moe_token_unpermute ctc_greedy_decoder
    rotated_iou multilabel_margin_loss standard_laplace multinomial_with_replacement random_gamma random_poisson
    uniform_candidate_sampler log_uniform_candidate_sampler tensordump move_to
  ]] },
  { "numpy", "P0", { ms.numpy }, [[
    fft abs add arange argmax argmin array asarray clip concatenate cos cumsum divide dot empty exp expand_dims eye full linspace log
    matmul max maximum mean min minimum multiply norm ones ones_like power rand randint randn reshape sin split sqrt squeeze stack std
    subtract sum tan tanh tensordot transpose unique var where zeros zeros_like
  ]] },
  { "numpy", "P1", { ms.numpy }, [[
    append apply_along_axis array_equal array_split average bincount broadcast_arrays broadcast_to column_stack convolve corrcoef cov
    cross diag diff dstack equal flip gradient greater histogram hstack inner interp isclose kron less logical_and logical_not
    logical_or logspace meshgrid nanmax nanmean nanmin nansum outer pad piecewise polyadd polymul polyval ravel repeat roll rot90
    searchsorted select take take_along_axis tile trace tril triu vander vstack
  ]] },
  { "numpy", "P2", { ms.numpy }, [[
    absolute amax amin apply_over_axes arccos arccosh arcsin arcsinh arctan arctan2 arctanh argwhere array_equiv array_str asfarray
    atleast_1d atleast_2d atleast_3d bartlett bitwise_and bitwise_not bitwise_or bitwise_xor blackman bool_ cbrt ceil choose copysign
    correlate cosh count_nonzero cumprod deg2rad diag_indices diagflat diagonal digitize divmod dsplit ediff1d empty_like exp2 expm1
    fabs fix fliplr flipud float16 float32 float64 float_ float_power floor floor_divide fmod full_like gcd geomspace greater_equal
    hamming hanning heaviside histogram2d histogram_bin_edges histogramdd hsplit hypot identity in1d indices int16 int32 int64 int8
    int_ intersect1d invert isfinite isin isinf isnan isneginf isposinf isscalar ix_ lcm less_equal log10 log1p log2 logaddexp
    logaddexp2 logical_xor mgrid mod moveaxis multi_dot nancumsum nanstd nanvar negative not_equal ogrid polyder polyint polysub
    positive promote_types ptp rad2deg radians ravel_multi_index reciprocal remainder result_type rint rollaxis setdiff1d sign signbit
    sinh size sometrue square swapaxes trapz tri tril_indices tril_indices_from triu_indices triu_indices_from true_divide trunc
    uint16 uint32 uint64 uint8 unravel_index unwrap vsplit
  ]] },
  { "scipy", "P1", { ms.scipy.linalg, ms.scipy.optimize, ms.scipy.fft }, [[
    block_diag cho_factor cho_solve cholesky eigh inv lstsq lu lu_factor solve_triangular line_search linear_sum_assignment minimize
    dct idct
  ]] },
  { "scipy", "P2", { ms.scipy.linalg, ms.scipy.optimize, ms.scipy.fft }, [[
    dctn idctn
  ]] },
}

local open = {
  ["tensors P2"] = [[
    convert_bytes_to_tensor from_numpy has_init init is_init set_ set_cast_dtype to_ wait_pipeline
  ]],
  ["dtypes P2"] = [[
    hifloat8
  ]],
  ["operators P2"] = [[
    put_ fused_infer_attention_score rotated_iou uniform_candidate_sampler log_uniform_candidate_sampler tensordump move_to
  ]],
}

for _, area in ipairs(areas) do
  local title, priority, tables, names = table.unpack(area)
  t.test(("%s %s are there"):format(title, priority), function()
    local known, missing, count = {}, {}, 0
    for name in (open[title .. " " .. priority] or ""):gmatch "%S+" do known[name] = true end
    local unknown = {}
    for name in names:gmatch "%S+" do
      count = count + 1
      local found = false
      for _, from in ipairs(tables) do
        local ok, value = pcall(function() return from[name] end)
        found = found or ok and value ~= nil
      end
      if not found then
        missing[#missing + 1] = name
        if not known[name] then unknown[#unknown + 1] = name end
      elseif known[name] then
        unknown[#unknown + 1] = name .. " (is there: take it off the list)"
      end
    end
    local tail = #missing > 0 and ", open: " .. table.concat(missing, " ") or ""
    print(("%-10s %s %3d of %3d, %5.1f %%%s"):format(title, priority, count - #missing, count, 100 * (1 - #missing / count), tail))
    t.equal(unknown, {})
  end)
end

t.finish()
