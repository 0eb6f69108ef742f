"""Reads the objects of backends/cpu/simd and core/lite that are built for newer processors and fails if one of them emits a
symbol that the rest of the program could end up with: an inline function outside the namespace of its instruction set. The
linker keeps one copy of such a function, and the copy that uses AVX-512 would crash on a machine without it.

usage: isa.py OBJECT..."""
import re
import subprocess
import sys

# Weak symbols with no code of ours: the unwinder's and the exception types' data.
HARMLESS = re.compile(r"^(DW\.ref\.|typeinfo |vtable |guard variable )")

SPACES = "lunaria::cpu", "lunaria::lite", "lunaria::lite::kernels"


def leaks(path):
    isa = next(isa for isa in ("avx512vnni", "avx512", "avx2") if isa in path)
    listing = subprocess.run(["nm", "-C", "--defined-only", path], check=True, capture_output=True, text=True).stdout
    for line in listing.splitlines():
        kind, name = line[17:18], line[19:]
        if kind in "WVu" and not any(f"{space}::{isa}::" in name for space in SPACES) and not HARMLESS.match(name):
            yield name


def main(paths):
    bad = [f"{path.rsplit('/', 1)[-1]}: {name}" for path in paths for name in leaks(path)]
    for row in bad:
        print("emitted outside its instruction set's namespace:", row)
    if bad:
        print("mark the function static or always_inline, or move it into namespace lunaria::cpu::LUNARIA_ISA")
    print(f"{len(paths)} objects read")
    return 1 if bad or not paths else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
