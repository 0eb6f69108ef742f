"""Assembles the PTX of the kernels that lunaria_jit_tests tries, every fifth and other ones each day, for several
architectures, and looks at what the assembler says of registers: what does not fit goes to memory, which a kernel must
not do.

usage: assemble_test.py LUNARIA_JIT_TESTS

Needs ptxas: LUNARIA_PTXAS, or in the PATH, or in one of the Python environments .ptxas and .peers. Without one the test
is skipped (77)."""
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

# What is made for the first is assembled for the others.
ARCHITECTURES = {"sm_80": ["sm_80"], "sm_90": ["sm_90", "sm_100"]}
SPILL_LIMIT = 0  # bytes a thread
SPILL_LIMIT_OF_LARGE_BLOCKS = 32  # of those that say how many threads they have, as each may have fewer registers


def assembler():
    """The path of ptxas, or None."""
    named = os.environ.get("LUNARIA_PTXAS") or shutil.which("ptxas")
    if named:
        return named
    for pattern in (".ptxas/lib/*/site-packages/nvidia/**/bin/ptxas", ".peers/lib/*/site-packages/triton/**/bin/ptxas"):
        found = sorted(Path(".").glob(pattern))
        if found:
            return str(found[0])
    return None


def assemble(ptxas, file):
    """What is wrong with a file, a line each."""
    source = file.name.split(".")[1]
    wrong = []
    for architecture in ARCHITECTURES[source]:
        done = subprocess.run([ptxas, f"-arch={architecture}", "-v", str(file), "-o", "/dev/null"], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        text = file.read_text()
        shape = text.splitlines()[0]
        limit = SPILL_LIMIT_OF_LARGE_BLOCKS if ".maxntid" in text else SPILL_LIMIT
        if done.returncode != 0:
            wrong.append(f"{file.name} for {architecture}: {shape}: {done.stdout.strip()}")
        for spilled in re.findall(r"(\d+) bytes spill stores", done.stdout):
            if int(spilled) > limit:
                wrong.append(f"{file.name} for {architecture}: {shape}: {spilled} bytes do not fit the registers")
    return wrong


def main():
    ptxas = assembler()
    if not ptxas:
        print("skipped: there is no ptxas")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ, LUNARIA_PTX=folder)
        subprocess.run([sys.argv[1], "--gtest_filter=ThreadKernelTest.*", "--gtest_brief=1"], env=environment, check=True,
                       stdout=subprocess.DEVNULL)
        files = sorted(Path(folder).iterdir())
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            wrong = [line for lines in pool.map(lambda f: assemble(ptxas, f), files) for line in lines]
    assembled = sum(len(ARCHITECTURES[f.name.split(".")[1]]) for f in files)
    print("\n".join(wrong[:20]))
    print(f"{assembled - len(wrong)} passed, {len(wrong)} failed")
    return 1 if wrong or not files else 0


if __name__ == "__main__":
    sys.exit(main())
