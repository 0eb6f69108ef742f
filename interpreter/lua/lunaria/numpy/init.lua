-- ms.numpy: numpy's functions over tensors, numbers and tables, with numpy's broadcasting and promotion of dtypes.
local ms = require "lunaria"
local parts = require "lunaria.parts"

local dtypes = "bool_ uint8 uint16 uint32 uint64 int8 int16 int32 int64 "
  .. "float16 float32 float64 int_ float_ complex64 complex128"

return parts("ms.numpy", "function", {
  { "lunaria.numpy.creation", [[
    arange array asarray asfarray bartlett blackman copy empty empty_like eye full full_like geomspace hamming hanning identity
    linspace logspace ones ones_like promote_types rand randint randn result_type tri vander zeros zeros_like
  ]] },
  { "lunaria.numpy.math", [[
    abs absolute add arccos arccosh arcsin arcsinh arctan arctan2 arctanh around cbrt ceil clip copysign cos cosh deg2rad degrees
    divide divmod exp exp2 expm1 fabs fix float_power floor floor_divide fmax fmin fmod gcd heaviside hypot lcm log log10 log1p
    log2 logaddexp logaddexp2 maximum minimum mod multiply nan_to_num negative positive power rad2deg radians reciprocal
    remainder rint round sign sin sinh sqrt square subtract tan tanh true_divide trunc
  ]] },
  { "lunaria.numpy.logic", [[
    allclose array_equal array_equiv bitwise_and bitwise_not bitwise_or bitwise_xor equal greater greater_equal in1d invert isclose
    isfinite isin isinf isnan isneginf isposinf isscalar less less_equal logical_and logical_not logical_or logical_xor not_equal
    signbit
  ]] },
  { "lunaria.numpy.reduce", [[
    amax amin argmax argmin average corrcoef count_nonzero cov cumprod cumsum diff ediff1d gradient max mean min nancumsum nanmax
    nanmean nanmin nanstd nansum nanvar prod ptp sometrue std sum trapz unwrap var
  ]] },
  { "lunaria.numpy.shape", [[
    append array_split atleast_1d atleast_2d atleast_3d broadcast_arrays broadcast_to column_stack concatenate dsplit dstack
    expand_dims flip fliplr flipud hsplit hstack moveaxis pad ravel repeat repeat_ reshape roll rollaxis rot90 size split squeeze
    stack swapaxes tile transpose vsplit vstack
  ]] },
  { "lunaria.numpy.index", [[
    apply_along_axis apply_over_axes argwhere choose diag diag_indices diagflat diagonal indices ix_ meshgrid mgrid ogrid
    piecewise ravel_multi_index select take take_along_axis trace tril tril_indices tril_indices_from triu triu_indices
    triu_indices_from unravel_index where
  ]] },
  { "lunaria.numpy.order", [[
    all any argpartition argsort flatnonzero lexsort median nanmedian nanpercentile nanquantile nonzero partition percentile
    quantile sort
  ]] },
  { "lunaria.numpy.sets", [[
    bincount digitize histogram histogram2d histogram_bin_edges histogramdd intersect1d searchsorted setdiff1d setxor1d union1d
    unique
  ]] },
  { "lunaria.numpy.linalg", [[
    array_str convolve correlate cross dot fft inner interp kron matmul multi_dot norm outer polyadd polyder polyint polymul
    polysub polyval polyfit tensordot vdot einsum
  ]] },
}, function(name)
  for dtype in dtypes:gmatch "%S+" do
    if dtype == name then return ms[name] end
  end
end)
