"""What Lunaria exports as MindIR gives its results in MindSpore, which reads it: networks of the zoo, every operator that has a
rule, and programs with branches and loops.

usage: mindir_peers_test.py LUNARIA

Needs the Python environment .peers (LUNARIA_PEERS names another) with mindspore; skips without it."""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

PYTHON = Path(os.environ.get("LUNARIA_PEERS", ".peers")) / "bin/python3"
SKIP = 77

# Run by the environment's Python: every FOLDER/NAME.mindir on NAME.1.in.npz, NAME.2.in.npz ...
COMPARE = """
import sys
from pathlib import Path
import numpy
import mindspore
from mindspore import Tensor, nn
paths, bad = sorted(Path(sys.argv[1]).glob("*.mindir")), 0
for path in paths:
    try:
        net = nn.GraphCell(mindspore.load(str(path)))
        cases = sorted(path.parent.glob(path.stem + ".*.in.npz"))
        assert cases
        for case in cases:
            inputs, wanted = numpy.load(case), numpy.load(str(case).replace(".in.npz", ".out.npz"))
            results = net(*[Tensor(inputs[f"x{i + 1}"]) for i in range(len(inputs.files))])
            results = results if isinstance(results, (tuple, list)) else [results]
            assert len(results) == len(wanted.files), f"{len(results)} results"
            for i, result in enumerate(results):
                expected, result = wanted[f"o{i}"], result.asnumpy()
                assert result.shape == expected.shape and result.dtype == expected.dtype, f"{result.dtype} {result.shape}"
                worst = numpy.abs(result.astype(float) - expected).max() / max(1, numpy.abs(expected.astype(float)).max())
                assert worst <= 1e-5, f"result {i} differs by {worst:.1e}"
    except Exception as error:
        bad += 1
        print(f"FAIL {path.stem}: {str(error)[:500]}")
print(f"{len(paths) - bad} of {len(paths)} files")
sys.exit(bad > 0 or len(paths) < 165)
"""


def main(program):
    if not PYTHON.exists() or subprocess.run([PYTHON, "-c", "import mindspore"], capture_output=True, check=False).returncode:
        print("skipped: no Python environment with mindspore")
        return SKIP
    with tempfile.TemporaryDirectory() as folder:
        code = subprocess.run([program, "tests/lua/support/mindir_peers.lua", folder], check=False).returncode
        if code:
            return code
        done = subprocess.run([PYTHON, "-c", COMPARE, folder], check=False, capture_output=True, text=True)
        print("\n".join(line for line in done.stdout.splitlines() if "WARNING" not in line))
        if done.returncode:
            print(done.stderr[-2000:])
        return done.returncode


sys.exit(main(Path(sys.argv[1]).resolve()))
