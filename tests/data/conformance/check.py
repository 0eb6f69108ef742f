#!/usr/bin/env python3
"""check.py SET RESULTS.safetensors [--out report.json] [--tags t1,t2] [--prio P0] [--api ops,mint] [--forward]
Compares the answers with a set (a directory). Needs only numpy + safetensors (+ ml_dtypes for bf16).
RESULTS keys: '<case id>.out<k>' and '<case id>.g<...>' (the very key names the manifest lists in outputs / grads).
A missing key counts as failed; --forward leaves gradients out. float results may be in any float dtype for the value check; the dtype is checked against out_dtypes
when RESULTS carries it (storage dtype); integer widths are not compared, bool/int/float kind is."""
import sys, os, json, argparse, collections
import numpy as np
from safetensors import safe_open
ap = argparse.ArgumentParser(); ap.add_argument('set'); ap.add_argument('results'); ap.add_argument('--out'); ap.add_argument('--tags', default=''); ap.add_argument('--prio', default=''); ap.add_argument('--api', default=''); ap.add_argument('--forward', action='store_true'); ap.add_argument('-v', action='store_true'); a = ap.parse_args()
def load(p):
    r = {}
    try:
        import torch
        with safe_open(p, 'pt') as f:
            for k in f.keys(): t = f.get_tensor(k); r[k] = (str(t.dtype).replace('torch.', ''), (t.double() if t.is_floating_point() else t).numpy())
    except ImportError:
        import ml_dtypes
        with safe_open(p, 'np') as f:
            for k in f.keys(): t = f.get_tensor(k); r[k] = (str(t.dtype), t.astype(np.float64) if t.dtype.kind == 'f' or 'bfloat' in str(t.dtype) else t)
    return r
m = json.load(open(os.path.join(a.set, 'cases.json'))); got = load(a.results); F = {}
def kind(d): return 'b' if d == 'bool' else 'f' if 'float' in d else 'c' if 'complex' in d else 'i'
tot = collections.Counter(); ok = collections.Counter(); fails = []
def cmp(c, key, e, rt, at, od, strict_dtype=True):
    if key not in got: return 'missing'
    gd, g = got[key]; e = np.asarray(e)
    if list(g.shape) != list(e.shape): return f'shape {list(g.shape)} want {list(e.shape)}'
    if od and kind(gd) != kind(od) and kind(od) != 'c': return f'kind {gd} want {od}'
    if od and 'float' in od and strict_dtype and gd != od: return f'dtype {gd} want {od}'
    if e.dtype.kind in 'biu': return None if (g.astype(np.int64) == e.astype(np.int64)).all() else 'values differ'
    if not np.allclose(g.astype(np.float64), e.astype(np.float64), rtol=rt, atol=at, equal_nan=True):
        with np.errstate(all='ignore'): d = np.abs(g.astype(np.float64) - e)
        return f'max error {np.nanmax(d) if d.size else 0:.3g} (rtol {rt} atol {at})'
def prop(c):
    o = [got.get(k) for k in c['outputs']]
    if any(q is None for q in o): return 'missing'
    o = [q[1] for q in o]; x = F[c['file']][c['inputs'][0]][1]
    if c['op'] == 'qr': q, r = o; return None if np.allclose(q @ r, x, atol=1e-4) and np.allclose(q.T @ q, np.eye(q.shape[1]), atol=1e-4) and np.allclose(np.tril(r, -1), 0, atol=1e-5) else 'qr property'
    if c['op'] == 'svd': s, u, v = o; return None if np.allclose(u * s @ v.T, x, atol=1e-4) and np.allclose(u.T @ u, np.eye(u.shape[1]), atol=1e-4) and np.allclose(v.T @ v, np.eye(v.shape[1]), atol=1e-4) else 'svd property'
    return 'unknown property'
for c in m['cases']:
    if a.prio and c['priority'] not in a.prio.split(','): continue
    if a.api and c['api'] not in a.api.split(','): continue
    if a.tags and not set(a.tags.split(',')) & set(c['tags']): continue
    F.setdefault(c['file'], None); F[c['file']] = F[c['file']] or load(os.path.join(a.set, c['file'])); T = F[c['file']]; msg = []
    if c.get('property'): p = prop(c); msg += [p] if p else []
    else:
        for k, od in zip(c['outputs'], c['out_dtypes']):
            q = cmp(c, k, T[k][1], c['rtol'], c['atol'], od); msg += [f'{k}: {q}'] if q else []
        for key in [] if a.forward else c['grads'] or []:
            for k in (key if isinstance(key, list) else [key]):
                if k: q = cmp(c, k, T[k][1], c['grad_rtol'], c['grad_atol'], 'float', False); msg += [f'{k}: {q}'] if q else []
    tot[c['op']] += 1; ok[c['op']] += not msg
    if msg: fails.append((c['id'], msg))
n, g = sum(tot.values()), sum(ok.values())
for i, msg in fails[:400 if a.v else 25]: print('FAIL', i, '; '.join(msg)[:200])
print(f"ops fully right: {sum(ok[o] == tot[o] for o in tot)}/{len(tot)}"); print(f'{g} passed, {n - g} failed')
if a.out: json.dump(dict(passed=g, failed=n - g, fails=fails, per_op={o: [ok[o], tot[o]] for o in tot}), open(a.out, 'w'), indent=0)
sys.exit(g != n)
