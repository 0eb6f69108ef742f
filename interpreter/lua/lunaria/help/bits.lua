-- The operators that do not give the same bits everywhere: the only exceptions from the order of sums in core/loops/sum_order.h.
-- help "guide.random" shows it, and tests/lua/same_bits_test.lua fails where an operator that differs is missing, or stands here and does
-- not differ; of what libraries do (`library`) the processor decides whether it does. Of each row the operators that differ: `threads`,
-- with another number of threads; `graph`, compiled; `avx2`, on a processor without AVX-512; `device`, on a device with a memory of
-- its own whose kernels are the host's.
return {
  { what = "convolutions, products and factorisations, which oneDNN, OpenBLAS and LAPACK do", library = true,
    threads = { "conv1d", "conv2d", "conv2d_last", "conv2d_relu", "conv3d", "conv_input_grad", "conv_transpose1d", "conv_transpose2d",
      "conv_transpose3d", "conv_weight_grad", "norm" },
    avx2 = { "addbmm", "addmm", "affine", "attention", "attention_grad", "baddbmm", "batch_dot", "bidense", "block_dense",
      "bmm", "cache_attention", "cholesky_inverse", "cholesky_solve", "cofactor_slope", "cond", "conv2d_relu", "cov",
      "deformable_conv2d", "dense", "dot", "eigh", "flash_attention_score", "inner", "inverse", "lstsq", "matmul",
      "matrix_power", "matrix_solve", "mm", "norm", "pinv", "prompt_flash_attention", "svd", "svd_factors", "tensor_dot" } },
  { what = "products whose operands a compiled program lays out otherwise, or which it joins, as those of the steps of a recurrent layer",
    library = true,
    graph = { "adaptive_avg_pool1d", "adaptive_avg_pool2d", "cofactor_slope", "interpolate" },
    device = { "adaptive_avg_pool1d", "adaptive_avg_pool2d", "interpolate" } },
}
