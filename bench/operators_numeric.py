"""The peers of bench/operators_numeric.lua; add(name, inputs, **expressions) is that of operators.py."""


def add_rows(add, random, np):
    def normal(*shape):
        return random.standard_normal(shape, np.float32)

    def double(*shape):
        return random.standard_normal(shape)

    def cplx(*shape):
        return (normal(*shape) + 1j * normal(*shape)).astype(np.complex64)

    for batch, a, b, side, kernel in ((1, 3, 16, 32, 3), (8, 16, 32, 28, 3), (4, 64, 64, 28, 3), (8, 32, 64, 14, 5)):
        add(f"conv2d_f64_{batch}x{a}x{b}x{side}k{kernel}",
            lambda n=batch, a=a, b=b, s=side, k=kernel: {"x": double(n, a, s, s), "w": double(b, a, k, k), "p": k // 2},
            torch="conv2d(x, w, padding=p)",
            jax="jax.lax.conv_general_dilated(x, w, (1, 1), ((p, p), (p, p)))")
    add("conv1d_f64_8x16x32x1000k9", lambda: {"x": double(8, 16, 1000), "w": double(32, 16, 9)},
        torch="torch.nn.functional.conv1d(x, w)")
    for n in (4, 64, 256, 512):
        add(f"matmul_c64_{n}", lambda n=n: {"a": cplx(n, n), "b": cplx(n, n)}, torch="a @ b", numpy="a @ b", jax="a @ b")
    add("matmul_c128_128", lambda: {"a": cplx(128, 128).astype(np.complex128), "b": cplx(128, 128).astype(np.complex128)},
        torch="a @ b", numpy="a @ b")
    add("matmul_c64_64x8x8", lambda: {"a": cplx(64, 8, 8), "b": cplx(64, 8, 8)}, torch="a @ b", numpy="a @ b", jax="a @ b")

    for lines, n in ((1, 1000), (1, 1 << 16), (1, 1 << 20), (65536, 16), (1024, 256), (4096, 100)):
        label = f"{lines}x{n}"
        add(f"sort_values_f32_{label}", lambda s=(lines, n): {"x": normal(*s)}, torch="torch.sort(x)",
            numpy="np.sort(x)", jax="jnp.sort(x)")
        add(f"sort_f32_{label}", lambda s=(lines, n): {"x": normal(*s)}, torch="torch.sort(x)")
        add(f"kthvalue_f32_{label}", lambda s=(lines, n), k=n // 3: {"x": normal(*s), "k": k}, torch="torch.kthvalue(x, k)",
            numpy="np.partition(x, k - 1)")
    for dtype in ("float64", "int32", "int64"):
        add(f"sort_values_{dtype}_1M", lambda t=dtype: {"x": (double(1 << 20) * 1e6).astype(t)}, torch="torch.sort(x)",
            numpy="np.sort(x)")
        add(f"sort_{dtype}_1M", lambda t=dtype: {"x": (double(1 << 20) * 1e6).astype(t)}, torch="torch.sort(x)")
    add("argsort_f32_64K", lambda: {"x": normal(1 << 16)}, torch="torch.argsort(x, stable=True)",
        numpy="np.argsort(x, kind='stable')", jax="jnp.argsort(x)")
    add("median_f32_1M", lambda: {"x": normal(1 << 20)}, torch="torch.median(x, 0)")
    add("unique_i64_1M", lambda: {"x": random.integers(0, 1000, 1 << 20)}, torch="torch.unique(x, return_inverse=True)",
        numpy="np.unique(x, return_inverse=True)")
    add("quantile_f32_64K", lambda: {"x": normal(1 << 16)}, torch="torch.quantile(x, 0.3)", numpy="np.quantile(x, 0.3)")

    for lines, n in ((1024, 512), (256, 1000), (4096, 64), (1, 1 << 20)):
        for name, make in (("rfft_f32", normal), ("fft_c64", cplx)):
            f = name.split("_")[0]
            add(f"{name}_{lines}x{n}", lambda s=(lines, n), m=make: {"x": m(*s)}, torch=f"torch.fft.{f}(x)",
                numpy=f"np.fft.{f}(x)", jax=f"jnp.fft.{f}(x)")
    add("irfft_c64_1024x257", lambda: {"x": np.fft.rfft(normal(1024, 512)).astype(np.complex64)}, torch="torch.fft.irfft(x)",
        numpy="np.fft.irfft(x)", jax="jnp.fft.irfft(x)")
    add("fft_c64_axis0_512x512", lambda: {"x": cplx(512, 512)}, torch="torch.fft.fft(x, dim=0)",
        numpy="np.fft.fft(x, axis=0)", jax="jnp.fft.fft(x, axis=0)")
    for name, shape in (("fft2_c64_512x512", (512, 512)), ("fftn_c64_32x64x64", (32, 64, 64))):
        f = name.split("_")[0]
        add(name, lambda s=shape: {"x": cplx(*s)}, torch=f"torch.fft.{f}(x)", numpy=f"np.fft.{f}(x)", jax=f"jnp.fft.{f}(x)")
    add("stft_f32_160000", lambda: {"x": normal(160000), "w": np.hanning(512).astype(np.float32)},
        torch="torch.stft(x, 512, 160, window=w, return_complex=True)")
    add("abs_c64_1M", lambda: {"x": cplx(1 << 20)}, torch="torch.abs(x)", numpy="np.abs(x)", jax="jnp.abs(x)")
    add("abs_c128_1M", lambda: {"x": cplx(1 << 20).astype(np.complex128)}, torch="torch.abs(x)", numpy="np.abs(x)")

    for label, n in ((16, 16), ("1K", 1000), ("1M", 1 << 20)):
        def row(name, n=n, label=label, **expressions):
            add(f"{name}_{label}", lambda: {"m": n, "g": random}, **expressions)

        row("rand", torch="torch.rand(m)", numpy="g.random(m, 'float32')")
        row("randn", torch="torch.randn(m)", numpy="g.standard_normal(m, 'float32')")
        row("randn_f64", torch="torch.randn(m, dtype=torch.float64)", numpy="g.standard_normal(m)")
        row("randint", torch="torch.randint(0, 1000, (m,))", numpy="g.integers(0, 1000, m)")
        row("randperm", torch="torch.randperm(m)", numpy="g.permutation(m)")
        row("laplace", torch="torch.distributions.Laplace(0., 1.).sample((m,))", numpy="g.laplace(size=m)")
        row("gamma", torch="torch.distributions.Gamma(2.5, 1.).sample((m,))", numpy="g.standard_gamma(2.5, m)")
        row("poisson", torch="torch.poisson(torch.full((m,), 4.))", numpy="g.poisson(4., m)")
        row("poisson_100", torch="torch.poisson(torch.full((m,), 100.))", numpy="g.poisson(100., m)")

    for batch, n in ((4096, 4), (4096, 8), (1024, 16)):
        for dtype in ("float32", "float64"):
            def regular(batch=batch, n=n, dtype=dtype):
                return (double(batch, n, n) + 2 * n * np.eye(n)).astype(dtype)

            def positive(regular=regular):
                a = regular()
                return a @ a.swapaxes(1, 2)

            def right(batch=batch, n=n, dtype=dtype):
                return double(batch, n, 2).astype(dtype)

            label = f"_{dtype}_{batch}x{n}"
            add(f"solve{label}", lambda r=regular, b=right: {"a": r(), "b": b()}, torch="torch.linalg.solve(a, b)",
                numpy="np.linalg.solve(a, b)", jax="jnp.linalg.solve(a, b)")
            add(f"inverse{label}", lambda r=regular: {"a": r()}, torch="torch.linalg.inv(a)", numpy="np.linalg.inv(a)")
            add(f"det{label}", lambda r=regular: {"a": r()}, torch="torch.linalg.det(a)", numpy="np.linalg.det(a)")
            add(f"cholesky{label}", lambda p=positive: {"a": p()}, torch="torch.linalg.cholesky(a)",
                numpy="np.linalg.cholesky(a)", jax="jnp.linalg.cholesky(a)")
            add(f"triangular{label}", lambda r=regular, b=right: {"a": np.tril(r()), "b": b()},
                torch="torch.linalg.solve_triangular(a, b, upper=False)",
                jax="jax.scipy.linalg.solve_triangular(a, b, lower=True)")
    for n in (64, 256, 512):
        def symmetric(n=n):
            a = normal(n, n)
            return a @ a.T + n * np.eye(n, dtype=np.float32)

        add(f"cholesky_f32_{n}", lambda s=symmetric: {"a": s()}, torch="torch.linalg.cholesky(a)", numpy="np.linalg.cholesky(a)")
        add(f"qr_f32_{n}", lambda n=n: {"a": normal(n, n)}, torch="torch.linalg.qr(a)", numpy="np.linalg.qr(a)")
        add(f"eigh_f32_{n}", lambda s=symmetric: {"a": s()}, torch="torch.linalg.eigh(a)", numpy="np.linalg.eigh(a)")
        add(f"solve_f32_{n}", lambda s=symmetric, n=n: {"a": s(), "b": normal(n, 4)}, torch="torch.linalg.solve(a, b)",
            numpy="np.linalg.solve(a, b)")
