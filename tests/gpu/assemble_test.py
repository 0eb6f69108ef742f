"""Assembles the PTX of the GPU's own kernels, which the mock of its driver keeps, for several architectures, and looks at
what the assembler says of registers, as tests/jit/assemble_test.py does for generated loops: those of a part of the calls
each day.

usage: assemble_test.py LUNARIA FOLDER_OF_THE_MOCK

Skipped (77) without ptxas."""
import concurrent.futures
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "jit"))
import assemble_test as jit


def main():
    program, mock = sys.argv[1:]
    ptxas = jit.assembler()
    if not ptxas:
        print("skipped: there is no ptxas")
        return 77
    wrong, assembled = [], 0
    for target, architectures in jit.ARCHITECTURES.items():
        with tempfile.TemporaryDirectory() as folder:
            environment = dict(os.environ, LD_LIBRARY_PATH=mock, LUA_CPATH=f"{mock}/?.so", LUNARIA_MOCK_TARGET=target,
                               LUNARIA_MOCK_PTX=folder)
            for script in "kernels", "checked":
                done = subprocess.run([program, f"tests/gpu/{script}.lua", "assemble"], env=environment, text=True,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
                if done.returncode != 0:
                    print(done.stdout)
                    wrong.append(f"{target}: the kernels of {script}.lua could not be made")
            files = sorted(Path(folder).iterdir())
            if not files:
                wrong.append(f"{target}: there are no kernels")
            with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
                wrong += [line for lines in pool.map(lambda f: jit.assemble(ptxas, f), files) for line in lines]
            assembled += len(files) * len(architectures)
    print("\n".join(wrong[:20]))
    print(f"{assembled - len(wrong)} passed, {len(wrong)} failed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
