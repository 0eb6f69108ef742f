"""Writes calls.txt: calls of ms.scipy as Lua text, each with what scipy gives for it, in the format of ../numpy/calls.txt.

    python3 make.py [SEED] > calls.txt        (with a Python that has scipy)
"""
import pathlib
import sys
import warnings

import numpy as np
import scipy
import scipy.fft
import scipy.linalg as sl
import scipy.optimize as so
import scipy.signal as sg
import scipy.special as sp
import scipy.stats as st

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "numpy"))
from text import Text, lua, result  # noqa: E402

warnings.simplefilter("ignore")
rng = np.random.default_rng(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
rows = []


def call(text, *results):
    rows.append("\t".join([text] + [result(r) for r in results]))


def function(name, args, value, **options):
    parts = [lua(a) for a in args]
    if options:
        parts.append(lua(options))
    call(f"{name}({', '.join(parts)})", *(value if isinstance(value, (tuple, list)) else [value]))


def normal(*shape):
    return np.round(rng.normal(size=shape), 3)


def uniform(low, high, *shape):
    return np.round(rng.uniform(low, high, size=shape), 3)


def regular(n):
    return normal(n, n) + 3 * np.eye(n)


def positive(n):
    a = normal(n, n)
    return np.round(a @ a.T + n * np.eye(n), 3)


for n in (1, 2, 3, 5, 8):
    a, p, b, v = regular(n), positive(n), normal(n, 2), normal(n)
    function("linalg.inv", [a], sl.inv(a))
    function("linalg.det", [a], np.float64(sl.det(a)))
    function("linalg.solve", [a, b], sl.solve(a, b))
    function("linalg.solve", [a, v], sl.solve(a, v))
    function("linalg.solve", [p, v], sl.solve(p, v, assume_a="pos"), assume_a="pos")
    function("linalg.solve", [p, v], sl.solve(p, v, assume_a="sym"), assume_a="sym")
    for lower in (False, True):
        for trans in (0, 1):
            t = np.tril(a) if lower else np.triu(a)
            function("linalg.solve_triangular", [a, b], sl.solve_triangular(t, b, trans, lower), lower=lower, trans=trans)
        function("linalg.cholesky", [p], sl.cholesky(p, lower), lower=lower)
        call(f"linalg.cho_solve({{linalg.cho_factor({lua(p)}, {lua(lower)})}}, {lua(v)})", sl.cho_solve(sl.cho_factor(p, lower), v))
    function("linalg.lu", [a], sl.lu(a))
    wide = normal(n, n + 2)
    function("linalg.lu", [wide], sl.lu(wide))
    function("linalg.lu", [wide.T.copy()], sl.lu(wide.T, permute_l=True), permute_l=True)
    lu, piv = sl.lu_factor(a)
    call(f"linalg.lu_factor({lua(a)})", lu, piv.astype("int32"))
    call(f"linalg.lu_solve({{linalg.lu_factor({lua(a)})}}, {lua(v)})", sl.lu_solve((lu, piv), v))
    call(f"linalg.lu_solve({{linalg.lu_factor({lua(a)})}}, {lua(b)}, 1)", sl.lu_solve((lu, piv), b, 1))
    function("linalg.eigvalsh", [p], sl.eigvalsh(p))
    function("linalg.eigvalsh", [p, positive(n)], sl.eigvalsh(p, np.eye(n) * 2)) if False else None
    q = positive(n)
    function("linalg.eigvalsh", [p, q], sl.eigvalsh(p, q))
    call(f"np.abs((select(2, linalg.eigh({lua(p)}))))", np.abs(sl.eigh(p)[1]))
    function("linalg.svdvals", [wide], sl.svdvals(wide))
    call(f"(function(u, s, vh) return np.matmul(u * s, vh) end)(linalg.svd({lua(wide)}, false))", wide)
    call(f"np.abs(linalg.qr({lua(wide)}, 'r'))", np.abs(sl.qr(wide, mode="r")[0]))
    call(f"(function(q, r) return np.matmul(q, r), np.matmul(q:t(), q) end)(linalg.qr({lua(wide.T.copy())}))", wide.T, np.eye(n + 2))
    function("linalg.expm", [a], sl.expm(a))
    function("linalg.pinv", [wide], sl.pinv(wide))
    tall = normal(n + 3, n)
    x, residual, rank, s = sl.lstsq(tall, normal_b := normal(n + 3))
    function("linalg.lstsq", [tall, normal_b], [x, residual, int(rank), s])
    function("linalg.norm", [a], np.float64(sl.norm(a)))
    function("linalg.toeplitz", [v, normal(n + 1)], sl.toeplitz(v, eval_r)) if (eval_r := None) else None
    r = normal(n + 1)
    function("linalg.toeplitz", [v, r], sl.toeplitz(v, r))
    function("linalg.hankel", [v, r], sl.hankel(v, r))
    function("linalg.circulant", [v], sl.circulant(v))
    function("linalg.block_diag", [a, b], sl.block_diag(a, b))
    function("linalg.hilbert", [n], sl.hilbert(n))

for kind in (1, 2, 3, 4):
    for norm in ("backward", "ortho", "forward"):
        for n in (2, 5, 8):
            x = normal(3, n)
            for name in ("dct", "idct", "dst", "idst"):
                function(f"fft.{name}", [x], getattr(scipy.fft, name)(x, kind, norm=norm), type=kind, norm=norm)
            function("fft.dctn", [x], scipy.fft.dctn(x, kind, norm=norm), type=kind, norm=norm)
            function("fft.idctn", [x], scipy.fft.idctn(x, kind, norm=norm), type=kind, norm=norm)
x = normal(4, 6)
function("fft.dct", [x], scipy.fft.dct(x, 2, 9, 0), n=9, axis=0)
function("fft.dct", [x], scipy.fft.dct(x, 2, 3), n=3)

ranges = {"gammaln": (0.1, 9), "loggamma": (0.1, 9), "psi": (0.2, 9), "digamma": (0.2, 9), "erf": (-3, 3), "erfc": (-3, 4),
          "erfinv": (-0.95, 0.95), "expit": (-5, 5), "logit": (0.05, 0.95), "log_expit": (-5, 5), "exp2": (-3, 3), "expm1": (-1, 1),
          "log1p": (-0.5, 3), "i0": (-4, 4), "i0e": (-4, 4), "i1": (-4, 4), "i1e": (-4, 4), "j0": (0, 8), "j1": (0, 8),
          "y0": (0.2, 8), "y1": (0.2, 8), "k0": (0.1, 4), "k1": (0.1, 4), "k0e": (0.1, 4), "k1e": (0.1, 4), "gamma": (-3.5, 6),
          "entr": (-1, 3), "ndtr": (-5, 5), "log_ndtr": (-30, 5), "ndtri": (0.02, 0.98)}
for name, (low, high) in ranges.items():
    for _ in range(4):
        x = uniform(low, high, 4)
        function(f"special.{name}", [x], getattr(sp, name)(x))
for _ in range(5):
    a, b, x, u = uniform(0.3, 6, 3), uniform(0.3, 6, 3), uniform(0.1, 8, 3), uniform(0.02, 0.98, 3)
    function("special.gammainc", [a, x], sp.gammainc(a, x))
    function("special.gammaincc", [a, x], sp.gammaincc(a, x))
    function("special.beta", [a, b], sp.beta(a, b))
    function("special.betaln", [a, b], sp.betaln(a, b))
    function("special.betainc", [a, b, u], sp.betainc(a, b, u))
    function("special.xlogy", [a, x], sp.xlogy(a, x))
    function("special.xlog1py", [a, x], sp.xlog1py(a, x))
    function("special.rel_entr", [a, b], sp.rel_entr(a, b))
    function("special.kl_div", [a, b], sp.kl_div(a, b))
    function("special.zeta", [a + 1.2, b], sp.zeta(a + 1.2, b))
    function("special.polygamma", [2, a], sp.polygamma(2, a))
    function("special.multigammaln", [a + 3, 3], sp.multigammaln(a + 3, 3))
    n, k = rng.integers(1, 12, 4), rng.integers(0, 12, 4)
    function("special.comb", [n, k], sp.comb(n, k))
    function("special.factorial", [n], sp.factorial(n))
    m = normal(3, 4)
    function("special.logsumexp", [m], sp.logsumexp(m, 1), axis=1)
    function("special.softmax", [m], sp.softmax(m, 0), axis=0)
    function("special.log_softmax", [m], sp.log_softmax(m, 1), axis=1)

shapes = {"norm": [], "uniform": [], "expon": [], "laplace": [], "logistic": [], "cauchy": [], "gamma": [2.3], "chi2": [3.5],
          "beta": [1.7, 2.6], "t": [4.5]}
for name, parameters in shapes.items():
    d = getattr(st, name)
    for loc, scale in ((0.0, 1.0), (0.4, 1.7)):
        x = uniform(-2, 4, 6)
        for method in ("pdf", "logpdf", "cdf", "sf"):
            function(f"stats.{name}.{method}", [x] + parameters + [loc, scale], getattr(d, method)(x, *parameters, loc, scale))
        if not parameters:
            p = uniform(0.05, 0.95, 4)
            function(f"stats.{name}.ppf", [p, loc, scale], d.ppf(p, loc, scale))
for name, parameters in {"poisson": [2.5], "bernoulli": [0.3], "binom": [6.0, 0.4]}.items():
    d = getattr(st, name)
    k = np.arange(-1.0, 8.0)
    for method in ("pmf", "logpmf", "cdf"):
        function(f"stats.{name}.{method}", [k] + parameters, getattr(d, method)(k, *parameters))
for _ in range(4):
    a, b = normal(9), normal(9)
    function("stats.zscore", [a], st.zscore(a))
    function("stats.skew", [a], np.float64(st.skew(a)))
    function("stats.kurtosis", [a], np.float64(st.kurtosis(a)))
    function("stats.sem", [a], np.float64(st.sem(a)))
    function("stats.pearsonr", [a, b], np.float64(st.pearsonr(a, b)[0]))
    function("stats.spearmanr", [a, b], np.float64(st.spearmanr(a, b)[0]))
    ties = rng.integers(0, 4, 9).astype(float)
    for method in ("average", "min", "max", "ordinal"):
        function("stats.rankdata", [ties, method], st.rankdata(ties, method))
    line = st.linregress(a, b)
    function("stats.linregress", [a, b], [np.float64(line.slope), np.float64(line.intercept), np.float64(line.rvalue)])
    t = st.ttest_1samp(a, 0.1)
    function("stats.ttest_1samp", [a, 0.1], [np.float64(t.statistic), np.float64(t.pvalue)])

for mode in ("full", "same", "valid"):
    for n, m in ((5, 3), (6, 2), (4, 4)):
        a, b = normal(n), normal(m)
        function("signal.convolve", [a, b, mode], sg.convolve(a, b, mode, "direct"))
        function("signal.correlate", [a, b, mode], sg.correlate(a, b, mode, "direct"))
        a, b = normal(n, n + 1), normal(m, 2)
        function("signal.convolve2d", [a, b, mode], sg.convolve2d(a, b, mode))
        function("signal.correlate2d", [a, b, mode], sg.correlate2d(a, b, mode))
for _ in range(4):
    b, a, x = normal(3), np.concatenate([[1.5], normal(2)]), normal(2, 7)
    function("signal.lfilter", [b, a, x], sg.lfilter(b, a, x))
    function("signal.detrend", [x], sg.detrend(x))
    function("signal.detrend", [x], sg.detrend(x, 0, "constant"), axis=0, type="constant")

for n, m in ((1, 1), (3, 3), (4, 6), (6, 4), (9, 9), (20, 25)):
    cost = np.round(rng.uniform(0, 9, (n, m)), 3)
    function("optimize.linear_sum_assignment", [cost], list(so.linear_sum_assignment(cost)))
    function("optimize.linear_sum_assignment", [cost], list(so.linear_sum_assignment(cost, True)), maximize=True)

# Minima: the point, and how many evaluations scipy needs.
tests = {
    "rosenbrock": (lambda x: np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2), [(-1.2, 1.0), (1.3, 0.7, 0.8, 1.9, 1.2)]),
    "beale": (lambda x: (1.5 - x[0] + x[0] * x[1]) ** 2 + (2.25 - x[0] + x[0] * x[1] ** 2) ** 2
              + (2.625 - x[0] + x[0] * x[1] ** 3) ** 2, [(1.0, 1.0), (0.5, 0.2)]),
    "booth": (lambda x: (x[0] + 2 * x[1] - 7) ** 2 + (2 * x[0] + x[1] - 5) ** 2, [(0.0, 0.0), (-5.0, 8.0)]),
    "himmelblau": (lambda x: (x[0] ** 2 + x[1] - 11) ** 2 + (x[0] + x[1] ** 2 - 7) ** 2, [(0.0, 0.0), (-3.0, 2.0)]),
    "matyas": (lambda x: 0.26 * (x[0] ** 2 + x[1] ** 2) - 0.48 * x[0] * x[1], [(3.0, 5.0)]),
    "sphere": (lambda x: np.sum(x ** 2), [(1.0, 2.0, 3.0, 4.0)]),
    "powell": (lambda x: (x[0] + 10 * x[1]) ** 2 + 5 * (x[2] - x[3]) ** 2 + (x[1] - 2 * x[2]) ** 4 + 10 * (x[0] - x[3]) ** 4,
               [(3.0, -1.0, 0.0, 1.0)]),
    "quadratic": (lambda x: np.sum(np.arange(1, x.size + 1) * (x - 1) ** 2), [(0.0,) * 10]),
}


def gradient(f, x, h=1e-20):
    """By complex steps, exact to the last digits."""
    return np.array([np.imag(f(x + 1j * h * e)) / h for e in np.eye(x.size)])


for name, (f, starts) in tests.items():
    for x0 in starts:
        for method, kind in (("BFGS", "BFGS"), ("L-BFGS", "L-BFGS-B")):
            r = so.minimize(f, np.array(x0), method=kind, jac=lambda x, f=f: gradient(f, x))
            rows.append("\t".join([f"minimum({lua(name)}, {{{', '.join(map(str, x0))}}}, {lua(method)}, {r.nfev})", f"=true"]))

print("\n".join(rows))
