"""Writes cases of the kinds federated and robust_aggregation in the form of tests/data/conformance/armour-vectors.json, of other sizes
and settings, by numpy from the formulas of the papers. usage: federated.py FILE [SEED]"""
import json
import sys

import numpy as np


def trajectories(rng, parties, size, rounds, lr, mu, q, eta, b2, tau, v0):
    centres, curvature = rng.normal(size=(parties, size)), rng.uniform(0.5, 2.0, size=(parties, size))
    samples, steps = rng.integers(5, 60, size=parties), rng.integers(1, 7, size=parties)
    p, w0 = samples / samples.sum(), rng.normal(size=size)

    def local(w, i, pull=0.0, correction=0.0):
        start = w
        for _ in range(steps[i]):
            w = w - lr * (curvature[i] * (w - centres[i]) + pull * (w - start) + correction)
        return w

    def run(one_round):
        w, rows = w0, []
        for _ in range(rounds):
            w = one_round(w)
            rows.append(w.tolist())
        return rows

    def fedavg(w):
        return sum(p[i] * local(w, i) for i in range(parties))

    def fedprox(w):
        return sum(p[i] * local(w, i, pull=mu) for i in range(parties))

    def fednova(w):
        directions = sum(p[i] * (w - local(w, i)) / steps[i] for i in range(parties))
        return w - (p @ steps) * directions

    server, own = np.zeros(size), np.zeros((parties, size))

    def scaffold(w):
        nonlocal server, own
        ends = [local(w, i, correction=server - own[i]) for i in range(parties)]
        new = np.array([own[i] - server + (w - ends[i]) / (steps[i] * lr) for i in range(parties)])
        server, own = server + (new - own).mean(axis=0), new
        return w + np.mean([end - w for end in ends], axis=0)

    def adaptive(b1, second):
        m, v = np.zeros(size), np.full(size, v0)

        def one_round(w):
            nonlocal m, v
            d = sum(p[i] * (local(w, i) - w) for i in range(parties))
            m, v = b1 * m + (1 - b1) * d, second(v, d * d)
            return w + eta * m / (np.sqrt(v) + tau)

        return run(one_round)

    def qfedavg(w):
        above, below = 0.0, 0.0
        for i in range(parties):
            loss = 0.5 * (curvature[i] * (w - centres[i]) ** 2).sum()
            d = (w - local(w, i)) / lr
            above = above + loss ** q * d
            below += q * loss ** (q - 1) * (d @ d) + loss ** q / lr
        return w - above / below

    said = f"_eta{eta}_b2_{b2}_tau{tau:g}_v0_{v0:g}"
    expected = {
        "fedavg": run(fedavg), f"fedprox_mu{mu}": run(fedprox), "fednova": run(fednova),
        "scaffold_option2_uniform_weights": run(scaffold),
        "fedadagrad" + said: adaptive(0.0, lambda v, s: v + s),
        "fedadam" + said: adaptive(0.9, lambda v, s: b2 * v + (1 - b2) * s),
        "fedyogi" + said: adaptive(0.9, lambda v, s: v - (1 - b2) * s * np.sign(v - s)),
        f"qfedavg_q{q}_L_is_1_over_lr": run(qfedavg),
    }
    return {"centres": centres.tolist(), "curvature": curvature.tolist(), "samples": samples.tolist(), "local_steps": steps.tolist(),
            "lr": lr, "w0": w0.tolist(), "rounds": rounds, "expected": expected, "tolerance": 1e-11}


def scores_of(rows, among, f):
    near = max(1, len(among) - f - 2)
    return {i: sum(sorted(((rows[i] - rows[j]) ** 2).sum() for j in among if j != i)[:near]) for i in among}


def bulyan(rows, f):
    left, chosen = list(range(len(rows))), []
    while len(chosen) < len(rows) - 2 * f:
        scores = scores_of(rows, left, f)
        best = min(left, key=lambda i: (scores[i], i))
        chosen.append(rows[best])
        left.remove(best)
    chosen = np.array(chosen)
    order = np.argsort(np.abs(chosen - np.median(chosen, axis=0)), axis=0, kind="stable")
    return np.take_along_axis(chosen, order[:len(chosen) - 2 * f], axis=0).mean(axis=0)


def geometric_median(rows):
    x = rows.mean(axis=0)
    for _ in range(100_000):
        weights = 1 / np.linalg.norm(rows - x, axis=1)
        new = (weights[:, None] * rows).sum(axis=0) / weights.sum()
        done = np.linalg.norm(new - x) < 1e-15
        x = new
        if done:
            break
    return x


def robust(rng, count, size, f):
    rows = rng.normal(size=(count, size))
    rows[:f] = rows[:f] * 5 - 9
    scores = scores_of(rows, range(count), f)
    order = sorted(range(count), key=lambda i: (scores[i], i))
    return {"updates": rows.tolist(), "f": f, "krum_scores": [scores[i] for i in range(count)], "krum_index": order[0],
            "multi_krum": rows[order[:count - f - 2]].mean(axis=0).tolist(),
            "trimmed_mean": np.sort(rows, axis=0)[f:count - f].mean(axis=0).tolist(), "median": np.median(rows, axis=0).tolist(),
            "geometric_median": geometric_median(rows).tolist(), "mean": rows.mean(axis=0).tolist(),
            "bulyan": bulyan(rows, f).tolist(), "tolerance": 1e-9}


def main():
    rng = np.random.default_rng(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    cases = {
        "federated": [trajectories(rng, 1, 1, 3, 0.2, 0.7, 2, 0.05, 0.9, 1e-2, 1e-4),
                      trajectories(rng, 12, 37, 15, 0.05, 0.01, 1, 0.3, 0.999, 1e-3, 1e-6),
                      trajectories(rng, 30, 80, 6, 0.3, 1.5, 0.5, 0.1, 0.99, 1e-4, 0.0001)],
        "robust_aggregation": [robust(rng, 7, 2, 1), robust(rng, 15, 33, 3), robust(rng, 24, 90, 5)],
    }
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        json.dump(cases, file)


main()
