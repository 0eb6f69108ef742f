"""Writes functions.npz and distributions.npz beside it: special functions and distributions by mpmath, 200 points each.

    python3 tests/data/special/make.py [NAME...]       (needs mpmath and numpy)

functions.npz: for each name the arguments, one row a point (the first 140 are numbers of float32), and the values in float64.
distributions.npz: for each name the value and the parameters (float32), log_prob, log_cdf and log_survival, and the derivatives of each
of the three by the value and the parameters (NaN at the ends of the support)."""
import math
import random
import sys
from pathlib import Path

import mpmath as mp
import numpy as np

mp.mp.dps = 40
POINTS, SINGLE = 200, 140
SEED = 3


def lin(a, b):
    return lambda r: r.uniform(a, b)


def log(a, b):
    return lambda r: math.exp(r.uniform(math.log(a), math.log(b)))


def both(a, b):
    return lambda r: r.choice((-1, 1)) * math.exp(r.uniform(math.log(a), math.log(b)))


def near(*centers):
    """Numbers next to a centre, down to the last digit."""
    return lambda r: r.choice(centers) * (1 + r.choice((-1, 1)) * math.exp(r.uniform(math.log(1e-17), math.log(0.3))))


def multiples(most):
    """Numbers next to a multiple of pi / 2, as near as there are any, and some further off."""
    return lambda r: float(mp.pi / 2 * r.randint(-most, most)) * r.choice((1, 1, 1, 1 + 1e-9, 1 + 1e-5))


def below(one, *gaps):
    """Numbers under 1 (over -1), by a distance that reaches from 1e-16 to 1."""
    return lambda r: r.choice(one) * (1 - math.exp(r.uniform(math.log(1e-16), 0)))


def erfcx(x):
    return mp.exp(x * x) * mp.erfc(x) if x < 1e6 else 1 / (x * mp.sqrt(mp.pi)) * (1 - 1 / (2 * x * x))


def log_ndtr(x):
    return mp.log1p(-mp.erfc(x / mp.sqrt(2)) / 2) if x > 0 else mp.log(erfcx(-x / mp.sqrt(2)) / 2) - x * x / 2


def ndtri(p):
    """By Newton's method on the logarithm, from the tail that p is in."""
    if p == mp.mpf(1) / 2:
        return mp.mpf(0)
    if p == 1:
        return mp.inf
    q = min(p, 1 - p)
    y = -mp.sqrt(-2 * mp.log(q)) if q < 0.1 else mp.mpf(-1) / 2
    for _ in range(100):
        step = (log_ndtr(y) - mp.log(q)) * erfcx(-y / mp.sqrt(2)) * mp.sqrt(mp.pi / 2)
        y -= step
        if abs(step) < mp.mpf(10) ** -33 * abs(y):
            break
    return y if p < mp.mpf(1) / 2 else -y


def erfinv(x):
    if abs(x) == 1:
        return mp.inf * x
    with mp.workdps(80):
        return mp.erfinv(x) if abs(x) < 0.5 else mp.sign(x) * -ndtri((1 - abs(x)) / 2) / mp.sqrt(2)


def log_odds(x):
    return mp.log(x / (1 - x)) if x < 1 else mp.inf


def atanh(x):
    return mp.atanh(x) if abs(x) < 1 else mp.inf * x


def upper_gamma(a, x):
    """log P and log Q."""
    if a > 2000 and a / 2 < x < 2 * a:
        # The density over its width, in pieces.
        width, top = mp.sqrt(a), a - 1
        f = lambda t: mp.exp((a - 1) * mp.log(t / x) - (t - x))
        scale = (a - 1) * mp.log(x) - x - mp.loggamma(a)
        steps = [x + sign * width * s for s in (0, 0.25, 0.5, 1, 2, 4, 8, 16) for sign in (1 if x >= top else -1,)]
        steps = sorted(t for t in steps if t >= 0)
        side = scale + mp.log(mp.quad(f, steps))
        other = mp.log1p(-mp.exp(side))
        return (other, side) if x >= top else (side, other)
    with mp.workdps(60):
        q = mp.gammainc(a, x, mp.inf) / mp.gamma(a)
        # x^a e^-x / gamma(a + 1) 1F1(1, a + 1, x)
        low = a * mp.log(x) - x - mp.loggamma(a + 1) + mp.log(mp.hyp1f1(1, a + 1, x))
        return (low, mp.log1p(-mp.exp(low))) if low < -1 else (mp.log1p(-q), mp.log(q))


def log_beta(a, b):
    with mp.workdps(80):
        return mp.loggamma(a) + mp.loggamma(b) - mp.loggamma(a + b)


def lower_beta(a, b, x, y):
    """log I_x(a, b) with y = 1 - x, by its power series, whose terms are positive."""
    with mp.workdps(60):
        return a * mp.log(x) + b * mp.log(y) - mp.log(a) - log_beta(a, b) + mp.log(mp.hyp2f1(a + b, 1, a + 1, x))


def log_betainc(a, b, x, y=None):
    """log of I_x(a, b) and of 1 less that."""
    y = 1 - x if y is None else y
    if x <= 0:
        return mp.ninf, mp.mpf(0)
    if y <= 0:
        return mp.mpf(0), mp.ninf
    if x < (a + 1) / (a + b + 2):
        low = lower_beta(a, b, x, y)
        return low, mp.log1p(-mp.exp(low))
    high = lower_beta(b, a, y, x)
    return mp.log1p(-mp.exp(high)), high


def bessel_e(f):
    return lambda x: f(x) * mp.exp(-abs(x))


def zeta(s, q):
    with mp.workdps(200):  # small values have few digits of mpmath's
        return mp.zeta(s, q)


def zeta_points(r):
    return (r.choice((2, 3, 1.5, 1.0625, 12, 40, r.uniform(1.01, 30))), math.exp(r.uniform(math.log(1e-3), math.log(1e4))))


def shapes(r):
    a = math.exp(r.uniform(math.log(1e-12), math.log(3e4))) if r.random() < 0.7 else r.uniform(0.1, 12)
    x = a + r.uniform(-6, 6) * math.sqrt(a) if r.random() < 0.5 else math.exp(r.uniform(math.log(1e-10), math.log(300)))
    return (a, x if x > 0 else a * r.uniform(0.01, 1))


def beta_points(r):
    a, b = (math.exp(r.uniform(math.log(1e-3), math.log(3e3))) for _ in range(2))
    x = r.choice((a / (a + b) + r.uniform(-4, 4) * math.sqrt(a * b / (a + b + 1)) / (a + b), r.random(), 10 ** r.uniform(-12, 0)))
    return (a, b, x if 0 < x < 1 else r.uniform(0.001, 0.999))


J, Y, I, K = mp.besselj, mp.bessely, mp.besseli, mp.besselk
WHOLE = lambda r: (float(r.randint(0, 60)), float(r.randint(0, 60)))

# Name: the function, what gives points, special points.
FUNCTIONS = {
    "exp": (mp.exp, [lin(-100, 88), lin(-2, 2)], [0, 1e-30, -700, 700, 88.7]),
    "exp2": (lambda x: mp.mpf(2) ** x, [lin(-140, 127), lin(-2, 2)], [0, 1, -1, 0.5, 1000]),
    "expm1": (mp.expm1, [both(1e-30, 1), lin(-40, 80)], [0, 1e-40, -1e-7, 0.34657, -100]),
    "log": (mp.log, [log(1e-37, 1e37), near(1.0)], [1, 2, 0.5, 1e-40, 3e38]),
    "log2": (lambda x: mp.log(x, 2), [log(1e-37, 1e37), near(1.0)], [1, 2, 0.5, 8, 1e-40]),
    "log10": (mp.log10, [log(1e-37, 1e37), near(1.0)], [1, 10, 0.1, 100, 1e-40]),
    "log1p": (mp.log1p, [both(1e-30, 0.9), log(1, 1e30)], [0, -0.5, -0.99999, 1e-40, 1]),
    "sin": (mp.sin, [multiples(6000), lin(-50, 50), both(1e-20, 1e30)], [0, 1e-30, 3.14159265, 10000, 1e5]),
    "cos": (mp.cos, [multiples(6000), lin(-50, 50), both(1e-20, 1e30)], [0, 1e-30, 1.57079633, 10000, 1e5]),
    "tan": (mp.tan, [multiples(6000), lin(-50, 50), both(1e-20, 1e30)], [0, 1e-30, 1.57079633, 10000, 1e5]),
    "asin": (mp.asin, [lin(-1, 1), both(1e-30, 1), below((1, -1))], [0, 1, -1, 0.5]),
    "acos": (mp.acos, [lin(-1, 1), both(1e-30, 1), below((1, -1))], [0, 1, -1, 0.5]),
    "atan": (mp.atan, [both(1e-30, 1e30), lin(-3, 3)], [0, 1, -1, 1e38]),
    "sinc": (lambda x: mp.sinpi(x) / (mp.pi * x) if x else mp.mpf(1), [lin(-9, 9), both(1e-10, 100), near(1.0, -2.0)], [0, 0.5, 1.5]),
    "sinh": (mp.sinh, [both(1e-30, 80)], [0, 1, 89, -88.5]),
    "cosh": (mp.cosh, [both(1e-10, 80)], [0, 1, 89, -88.5]),
    "tanh": (mp.tanh, [both(1e-30, 20)], [0, 1, -0.55, 1e5]),
    "asinh": (mp.asinh, [both(1e-30, 1e37)], [0, 1, -1]),
    "acosh": (mp.acosh, [log(1, 1e37), lambda r: 1 + math.exp(r.uniform(-15, 0))], [1, 2]),
    "atanh": (atanh, [both(1e-30, 0.99), below((1, -1))], [0, 0.5]),
    "erf": (mp.erf, [both(1e-30, 6), lin(-2, 2)], [0, 1, -4, 30]),
    "erfc": (mp.erfc, [both(1e-10, 9), lin(-2, 9), lin(9, 26)], [0, 1, -4, 10]),
    "erfcx": (erfcx, [both(1e-10, 9), log(1, 1e30), lin(-3, 26)], [0, 1, -9, 25, 24.999]),
    "erfinv": (erfinv, [lin(-1, 1), both(1e-30, 1), below((1, -1))], [0, 0.5, -0.99999994, 0.99999999999]),
    "ndtri": (ndtri, [lin(0, 1), log(1e-37, 1), log(1e-44, 1e-37), below((1,)), near(0.5)], [0.5, 1e-16, 1e-300, 0.99999994]),
    "log_ndtr": (log_ndtr, [both(1e-10, 30), lin(-40, 8), log(10, 1e15)], [0, -20, 5, -1e18, 12.5]),
    "ndtr": (lambda x: mp.ncdf(x), [both(1e-10, 9), lin(-13, 8)], [0, -20, 5]),
    "lgamma": (lambda x: mp.log(abs(mp.gamma(x))) if x < 1000 else mp.loggamma(x), [both(1e-30, 60), near(1.0), near(2.0), log(1, 1e30), lin(-9, 9)],
               [1, 2, 0.99999994, 1.0000001, 2.0000002, 0.5, -0.5, 1e5]),
    "digamma": (mp.digamma, [both(1e-20, 60), near(float(mp.findroot(mp.digamma, 1.46))), lin(0, 12), log(1, 1e30)], [1, 2, 1.4616321, 0.5]),
    "trigamma": (lambda x: mp.polygamma(1, x), [both(1e-15, 60), lin(0, 12), lin(-8, 0), log(1, 1e30)], [1, 2, 0.5, 0.49999]),
    "tgamma": (mp.gamma, [both(1e-20, 30), lin(-9, 35), lin(35, 170)], [1, 2, 0.5, 5, 171]),
    "log_odds": (log_odds, [lin(0, 1), log(1e-37, 1), near(0.5), below((1,))], [0.5, 0.25, 0.75, 0.49999997]),
    "sigmoid": (lambda x: 1 / (1 + mp.exp(-x)), [both(1e-10, 80)], [0, -88, 40]),
    "logsigmoid": (lambda x: -mp.log1p(mp.exp(-x)), [both(1e-10, 80)], [0, -88, 40, -1e20]),
    "bessel_j0": (lambda x: J(0, x), [both(1e-10, 100), log(100, 1e4)], [0, 2.4048255, 1]),
    "bessel_j1": (lambda x: J(1, x), [both(1e-10, 100), log(100, 1e4)], [0, 3.8317059, 1]),
    "bessel_y0": (lambda x: Y(0, x), [log(1e-10, 100), log(100, 1e4)], [0.8935769, 1]),
    "bessel_y1": (lambda x: Y(1, x), [log(1e-10, 100), log(100, 1e4)], [2.1971413, 1]),
    "bessel_i0": (lambda x: I(0, x), [both(1e-10, 80), lin(30, 40)], [0, 1, 35, 8]),
    "bessel_i1": (lambda x: I(1, x), [both(1e-10, 80), lin(30, 40)], [0, 1, 35, 8]),
    "bessel_i0e": (bessel_e(lambda x: I(0, x)), [both(1e-10, 1e4), lin(30, 40)], [0, 1, 35, 8]),
    "bessel_i1e": (bessel_e(lambda x: I(1, x)), [both(1e-10, 1e4), lin(30, 40)], [0, 1, 35, 8]),
    "bessel_k0": (lambda x: K(0, x), [log(1e-10, 80), lin(30, 40), lin(1, 3)], [1, 35, 2]),
    "bessel_k1": (lambda x: K(1, x), [log(1e-10, 80), lin(30, 40), lin(1, 3)], [1, 35, 2]),
    "bessel_k0e": (lambda x: K(0, x) * mp.exp(x), [log(1e-10, 1e4), lin(30, 40), lin(1, 3)], [1, 35, 2]),
    "bessel_k1e": (lambda x: K(1, x) * mp.exp(x), [log(1e-10, 1e4), lin(30, 40), lin(1, 3)], [1, 35, 2]),
    "zeta": (zeta, [zeta_points], [(2, 1), (4, 1), (3, 0.5), (1.0001, 2)]),
    "xlogy": (lambda x, y: x * mp.log(y) if x else mp.mpf(0), [lambda r: (r.uniform(-5, 5), both(1e-30, 1e30)(r) ** 2), lambda r: (r.uniform(0, 5), near(1.0)(r))],
              [(0, 0), (0, 2), (2, 1)]),
    "xlog1py": (lambda x, y: x * mp.log1p(y) if x else mp.mpf(0), [lambda r: (r.uniform(-5, 5), both(1e-30, 0.9)(r))], [(0, -1), (0, 2), (2, 0)]),
    "betaln": (log_beta, [lambda r: tuple(math.exp(r.uniform(math.log(1e-6), math.log(1e6))) for _ in range(2)), lambda r: (r.uniform(0.1, 9), math.exp(r.uniform(0, 30)))],
               [(1, 1), (0.5, 0.5), (1, 1e10)]),
    "igamma": (lambda a, x: mp.exp(upper_gamma(a, x)[0]), [shapes], [(1, 1), (0.5, 0.5), (1e-12, 0.5), (10, 1e-3)]),
    "igammac": (lambda a, x: mp.exp(upper_gamma(a, x)[1]), [shapes], [(1, 1), (0.5, 0.5), (1e-12, 0.5), (10, 50)]),
    "log_igamma": (lambda a, x: upper_gamma(a, x)[0], [shapes, lambda r: (r.uniform(1, 300), 10 ** r.uniform(-9, 1))], [(1, 1), (200, 0.01)]),
    "log_igammac": (lambda a, x: upper_gamma(a, x)[1], [shapes, lambda r: (r.uniform(1, 300), r.uniform(1, 3000))], [(1, 1), (2, 500)]),
    "betainc": (lambda a, b, x: mp.exp(log_betainc(a, b, x)[0]), [beta_points], [(1, 1, 0.5), (2, 3, 0.25), (0.5, 0.5, 1e-6)]),
    "log_betainc": (lambda a, b, x: log_betainc(a, b, x)[0], [beta_points], [(1, 1, 0.5), (200, 1, 0.01), (0.5, 0.5, 1e-6)]),
    "log_betaincc": (lambda a, b, x: log_betainc(a, b, x)[1], [beta_points], [(1, 1, 0.5), (1, 200, 0.99), (0.5, 0.5, 1e-6)]),
    "polygamma": (lambda n, x: (-1) ** (int(n) + 1) * mp.factorial(n) * zeta(n + 1, x), [lambda r: (float(r.choice((1, 2, 3, 7, 20))), math.exp(r.uniform(math.log(1e-2), math.log(1e3))))], [(1, 1), (2, 1)]),
    "entr": (lambda x: -x * mp.log(x), [log(1e-30, 1e10), near(1.0)], [1, 0.5]),
    "rel_entr": (lambda x, y: x * mp.log(x / y), [lambda r: (log(1e-10, 1e10)(r), log(1e-10, 1e10)(r)), lambda r: (lambda x: (x, x * (1 + r.uniform(-0.2, 0.2))))(r.uniform(0.1, 9))],
                 [(1, 1), (2, 2)]),
    "kl_div": (lambda x, y: x * mp.log(x / y) - x + y, [lambda r: (log(1e-10, 1e10)(r), log(1e-10, 1e10)(r)), lambda r: (lambda x: (x, x * (1 + r.uniform(-0.2, 0.2))))(r.uniform(0.1, 9))],
               [(1, 1), (2, 2)]),
    "beta": (lambda a, b: mp.exp(log_beta(a, b)), [lambda r: (log(1e-3, 30)(r), log(1e-3, 30)(r))], [(1, 1), (0.5, 0.5), (20, 3)]),
    "binom": (lambda n, k: mp.binomial(n, k), [WHOLE, lambda r: (r.uniform(0, 30), r.uniform(0, 10))], [(4, 2), (60, 30)]),
    "comb": (lambda n, k: mp.binomial(n, k) if k <= n else mp.mpf(0), [WHOLE], [(4, 2), (60, 30)]),
    "factorial": (mp.factorial, [lambda r: float(r.randint(0, 34))], [0, 1, 34]),
    "multigammaln": (lambda a: mp.loggamma(a) + mp.loggamma(a - mp.mpf(1) / 2) + mp.log(mp.pi) / 2, [lambda r: 0.5 + log(1e-3, 1e6)(r)], [2, 1.5]),
}


def single(x):
    return float(np.float32(x))


def points(name, generators, specials, count=POINTS, singles=SINGLE):
    r = random.Random(f"{SEED} {name}")
    rows = [p if isinstance(p, tuple) else (p,) for p in specials]
    rows = [tuple(single(v) for v in p) for p in rows]
    while len(rows) < count:
        p = r.choice(generators)(r)
        p = p if isinstance(p, tuple) else (p,)
        rows.append(tuple(single(v) for v in p) if len(rows) < singles else tuple(map(float, p)))
    return rows


def functions(names):
    out = {}
    for name, (f, generators, specials) in FUNCTIONS.items():
        if names and name not in names:
            continue
        x, y = [], []
        for p in points(name, generators, specials):
            with mp.workdps(40):
                try:
                    v = mp.re(f(*map(mp.mpf, p)))
                    v = float(v)
                except (ValueError, ZeroDivisionError):
                    v = float("nan")
            if math.isnan(v) or (abs(v) < 1e-300 and v != 0):
                v = float("nan")
            x.append(p)
            y.append(v)
        out[name + ".x"], out[name + ".y"] = np.array(x), np.array(y)
        print(f"{name}: {int(np.isfinite(out[name + '.y']).sum())} finite of {len(y)}", file=sys.stderr)
    return out


# Distributions: log of the density, of the distribution function and of what it lacks to 1.
def log1m(x):
    return mp.ninf if x == 0 else mp.log(-mp.expm1(x)) if x > -1 else mp.log1p(-mp.exp(x))


def standard(density, lower, upper):
    def of(x, place, scale):
        z = (x - place) / scale
        return density(z) - mp.log(scale), lower(z), upper(z)
    return of


LOG_TAU = mp.log(2 * mp.pi)


def laplace_lower(z):
    return z - mp.log(2) if z < 0 else mp.log1p(-mp.exp(-z) / 2)


def cauchy_lower(z):
    p = mp.atan2(1, -z) / mp.pi
    return mp.log(p) if z < 0 else mp.log1p(-mp.atan2(1, z) / mp.pi)


def half_normal(x, mean, sd):
    z = (x - mean) / sd
    if z < 0:
        return mp.ninf, mp.ninf, mp.mpf(0)
    u = z / mp.sqrt(2)
    return mp.log(2 / mp.pi) / 2 - z * z / 2 - mp.log(sd), mp.log(mp.erf(u)) if z < 1 else mp.log1p(-mp.erfc(u)), mp.log(2) + log_ndtr(-z)


def log_normal(x, loc, scale):
    if x <= 0:
        return mp.ninf, mp.ninf, mp.mpf(0)
    z = (mp.log(x) - loc) / scale
    return -z * z / 2 - LOG_TAU / 2 - mp.log(scale) - mp.log(x), log_ndtr(z), log_ndtr(-z)


def exponential(x, rate):
    return (mp.log(rate) - rate * x, log1m(-rate * x), -rate * x) if x >= 0 else (mp.ninf, mp.ninf, mp.mpf(0))


def uniform(x, low, high):
    if x < low or x > high:
        return mp.ninf, mp.ninf if x < low else mp.mpf(0), mp.mpf(0) if x < low else mp.ninf
    f = lambda v: mp.log(v) if v > 0 else mp.ninf
    return -mp.log(high - low), f((x - low) / (high - low)), f((high - x) / (high - low))


def gamma(x, a, rate):
    if x < 0:
        return mp.ninf, mp.ninf, mp.mpf(0)
    if x == 0:
        return mp.log(rate) if a == 1 else mp.inf if a < 1 else mp.ninf, mp.ninf, mp.mpf(0)
    return (a * mp.log(rate) + (a - 1) * mp.log(x) - rate * x - mp.loggamma(a), *upper_gamma(a, rate * x))


def xlog(x, y):
    return mp.mpf(0) if x == 0 else x * (mp.log(y) if y > 0 else mp.ninf)


def beta(x, a, b):
    if x < 0 or x > 1:
        return (mp.ninf, mp.ninf, mp.mpf(0)) if x < 0 else (mp.ninf, mp.mpf(0), mp.ninf)
    return (xlog(a - 1, x) + xlog(b - 1, 1 - x) - log_beta(a, b), *log_betainc(a, b, x))


def student(x, df, mean, sd):
    r = (x - mean) / sd
    density = -(df + 1) / 2 * mp.log1p(r * r / df) - mp.log(df) / 2 - log_beta(df / 2, mp.mpf(1) / 2) - mp.log(sd)
    share = df + r * r
    tail = log_betainc(df / 2, mp.mpf(1) / 2, df / share, r * r / share)[0] - mp.log(2)
    other = mp.log1p(-mp.exp(tail))
    return (density, tail, other) if r < 0 else (density, other, tail)


def bernoulli(x, p):
    log0 = lambda v: mp.log(v) if v > 0 else mp.ninf
    density = log0(p) if x == 1 else mp.log1p(-p) if x == 0 and p < 1 else mp.ninf
    return density, mp.ninf if x < 0 else (mp.log1p(-p) if p < 1 else mp.ninf) if x < 1 else mp.mpf(0), mp.mpf(0) if x < 0 else log0(p) if x < 1 else mp.ninf


def geometric(x, p):
    if x < 0:
        return mp.ninf, mp.ninf, mp.mpf(0)
    k = mp.floor(x)
    if p == 1:
        return mp.mpf(0) if x == 0 else mp.ninf, mp.mpf(0), mp.ninf
    return k * mp.log1p(-p) + mp.log(p) if k == x else mp.ninf, log1m((k + 1) * mp.log1p(-p)), (k + 1) * mp.log1p(-p)


def poisson(x, rate):
    if x < 0:
        return mp.ninf, mp.ninf, mp.mpf(0)
    k = mp.floor(x)
    lower, upper = upper_gamma(k + 1, rate)
    return k * mp.log(rate) - rate - mp.loggamma(k + 1) if k == x else mp.ninf, upper, lower


def binomial(x, n, p):
    k = mp.floor(x)
    density = mp.log(mp.binomial(n, k)) + xlog(k, p) + xlog(n - k, 1 - p) if k == x and 0 <= k <= n else mp.ninf
    if x < 0 or x >= n:
        return (density, mp.ninf, mp.mpf(0)) if x < 0 else (density, mp.mpf(0), mp.ninf)
    upper, lower = log_betainc(k + 1, n - k, p)
    return density, lower, upper


PLACES, SCALES = (0.0, 0.5, -3.0), (1.0, 0.25, 40.0)


def over_z(*z):
    return lambda r: (lambda m, s: (m + s * r.choice(z)(r), m, s))(r.choice(PLACES), r.choice(SCALES))


def at_zero(*z):
    return [(v, 0.0, 1.0) for v in z]


def counts(r):
    return float(r.choice((r.randint(0, 10), r.randint(0, 200))))


DISTRIBUTIONS = {
    "Normal": (standard(lambda z: -z * z / 2 - LOG_TAU / 2, log_ndtr, lambda z: log_ndtr(-z)), 0, [over_z(lin(-12, 12), lin(-40, 40), both(1e-6, 1e4))],
               at_zero(0, -20, 20, 1, -1e15)),
    "Laplace": (standard(lambda z: -abs(z) - mp.log(2), laplace_lower, lambda z: laplace_lower(-z)), 0, [over_z(lin(-12, 12), lin(-90, 90), both(1e-6, 1e4))],
                at_zero(-20, 20, 1, -1e20)),
    "Logistic": (standard(lambda z: -abs(z) - 2 * mp.log1p(mp.exp(-abs(z))), lambda z: -mp.log1p(mp.exp(-z)), lambda z: -mp.log1p(mp.exp(z))), 0,
                 [over_z(lin(-12, 12), lin(-90, 90), both(1e-6, 1e4))], at_zero(0, -20, 20, 1, -1e20)),
    "Gumbel": (standard(lambda z: -z - mp.exp(-z), lambda z: -mp.exp(-z), lambda z: log1m(-mp.exp(-z)) if z < 60 else -z), 0,
               [over_z(lin(-4, 12), lin(-5, 85), lin(-80, -5), log(10, 1e4))], at_zero(0, -4, 20, 1, 1e20)),
    "Cauchy": (standard(lambda z: -mp.log1p(z * z) - mp.log(mp.pi), cauchy_lower, lambda z: cauchy_lower(-z)), 0,
               [over_z(lin(-12, 12), both(1e-6, 1e15))], at_zero(0, -20, 20, 1, 1e20, -1e20)),
    "HalfNormal": (half_normal, 0, [over_z(lin(0, 12), lin(0, 40), log(1e-9, 1e4))], at_zero(0, 20, 1, 1e15, -1)),
    "LogNormal": (log_normal, 0, [lambda r: (math.exp(r.uniform(-60, 60)), r.choice(PLACES), r.choice((1.0, 0.25, 4.0)))], at_zero(0, 1, 1e20, 1e-20, -1)),
    "Exponential": (exponential, 0, [lambda r: (log(1e-9, 1e4)(r), r.choice((1.0, 0.25, 40.0)))], [(0.0, 1.0), (1e20, 1.0), (-1.0, 1.0), (80.0, 1.0)]),
    "Uniform": (uniform, 0, [lambda r: (lambda a, b: (a + (b - a) * r.choice((r.random(), log(1e-7, 1)(r))), a, b))(*r.choice(((0.0, 1.0), (-1.0, 3.0), (0.0, 1e10))))],
                [(0.0, 0.0, 1.0), (1.0, 0.0, 1.0), (-1.0, 0.0, 1.0), (2.0, 0.0, 1.0)]),
    "Gamma": (gamma, 0, [lambda r: (lambda a, b: (max(a + r.uniform(-4, 6) * math.sqrt(a), a * log(1e-6, 1)(r)) / b, a, b))(r.choice((0.5, 1.0, 3.5, 40.0, 900.0)), r.choice((1.0, 0.25, 40.0))),
                         lambda r: (log(1e-9, 200)(r), r.choice((0.5, 1.0, 2.0, 20.0)), r.choice((1.0, 2.0)))],
              [(0.0, 1.0, 2.0), (0.0, 2.0, 1.0), (0.0, 0.5, 1.0), (-1.0, 2.0, 1.0), (300.0, 1.0, 1.0)]),
    "Beta": (beta, 0, [lambda r: (r.choice((r.random(), log(1e-9, 1)(r), 1 - log(1e-6, 1)(r))), r.choice((0.5, 1.0, 2.0, 7.5, 300.0)), r.choice((0.5, 1.0, 2.0, 7.5, 300.0)))],
             [(0.0, 1.0, 1.0), (1.0, 1.0, 1.0), (1.0, 2.0, 1.0), (0.0, 2.0, 1.0), (0.0, 0.5, 1.0), (0.0, 1.0, 3.0), (1.0, 3.0, 1.0), (-0.5, 2.0, 2.0), (1.5, 2.0, 2.0)]),
    "StudentT": (student, 0, [lambda r: (lambda d, m, s: (m + s * r.choice((r.uniform(-9, 9), both(1e-3, 1e12)(r))), d, m, s))(r.choice((0.5, 1.0, 3.0, 30.0, 1e4)), r.choice(PLACES), r.choice(SCALES))],
                 [(1e20, 1.0, 0.0, 1.0), (-1e20, 1.0, 0.0, 1.0), (1e20, 3.0, 0.0, 1.0), (-1e20, 0.5, 0.0, 1.0)]),
    "Bernoulli": (bernoulli, 1, [lambda r: (float(r.choice((0, 1))), r.choice((r.random(), log(1e-20, 1)(r), 1 - log(1e-6, 1)(r))))],
                  [(0.0, 0.0), (1.0, 1.0), (2.0, 0.5), (-1.0, 0.5), (0.5, 0.25)]),
    "Geometric": (geometric, 1, [lambda r: (counts(r), r.choice((r.random(), log(1e-9, 1)(r), 1 - log(1e-6, 1)(r))))], [(0.0, 1.0), (2.5, 0.5), (-1.0, 0.5), (1e6, 1e-3)]),
    "Poisson": (poisson, 1, [lambda r: (counts(r), r.choice((0.5, 1.0, 6.0, 90.0, log(1e-6, 300)(r))))], [(0.0, 1.0), (2.5, 1.0), (-1.0, 1.0), (150.0, 0.001)]),
    "Binomial": (binomial, 2, [lambda r: (lambda n: (float(r.randint(0, n)), float(n), r.choice((r.random(), log(1e-9, 1)(r), 1 - log(1e-6, 1)(r)))))(r.choice((1, 5, 20, 300)))],
                 [(0.0, 5.0, 0.5), (5.0, 5.0, 0.5), (6.0, 5.0, 0.5), (-1.0, 5.0, 0.5), (2.5, 5.0, 0.5)]),
}
ENDS = {"HalfNormal": lambda x, m, s: x == m, "Exponential": lambda x, r: x == 0, "Uniform": lambda x, a, b: x in (a, b), "Gamma": lambda x, a, b: x == 0,
        "LogNormal": lambda x, a, b: x == 0, "Beta": lambda x, a, b: x in (0, 1), "Laplace": lambda x, m, s: x == m}


def slopes(f, p, fixed):
    """Central differences with 60 digits, by each argument behind the fixed ones."""
    out = [float("nan")] * len(p)
    for i in range(fixed, len(p)):
        h = mp.mpf(10) ** -18 * (abs(p[i]) or 1)
        with mp.workdps(70):
            at = lambda d: f(*[v + d if j == i else v for j, v in enumerate(p)])
            a, b = at(h), at(-h)
            out[i] = [(u - v) / (2 * h) if mp.isfinite(u) and mp.isfinite(v) else mp.nan for u, v in zip(a, b)]
    return out


def distributions(names):
    out = {}
    for name, (f, fixed, generators, specials) in DISTRIBUTIONS.items():
        if names and name not in names:
            continue
        rows = points(name, generators, specials, POINTS, POINTS)
        values, gradients = [], []
        for p in rows:
            q = [mp.mpf(v) for v in p]
            v = f(*q)
            values.append([float(u) for u in v])
            g = np.full((3, len(p)), np.nan, np.float32)
            if not (name in ENDS and ENDS[name](*p)) and not (name in ("Bernoulli", "Geometric") and p[1] in (0, 1)):
                for i, three in enumerate(slopes(f, q, fixed)):
                    if isinstance(three, list):
                        for k, s in enumerate(three):
                            with np.errstate(over="ignore"):
                                g[k, i] = np.float32(float(s)) if mp.isfinite(v[k]) else np.nan
            gradients.append(g)
        out[name + ".x"], out[name + ".y"], out[name + ".g"] = np.array(rows, np.float32), np.array(values), np.array(gradients)
        print(f"{name}: {len(rows)} points, {int(np.isfinite(out[name + '.g']).sum())} slopes", file=sys.stderr)
    return out


def save(path, made, names):
    if names and path.exists():
        with np.load(path) as old:
            made = {**{k: old[k] for k in old.files}, **made}
    np.savez_compressed(path, **{k: made[k] for k in sorted(made)})


if __name__ == "__main__":
    here = Path(__file__).parent
    chosen = set(sys.argv[1:])
    save(here / "functions.npz", functions(chosen), chosen)
    save(here / "distributions.npz", distributions(chosen), chosen)
