"""The packages: everything in the folder of the archive asks for no symbol newer than glibc 2.35 and for no library that is not
in it; moved elsewhere it runs without any environment, trains the first network of README.md, and compiles. Takes 15 s of
processor time.

--long: the packages themselves, by the lines of README.md and as a user without rights, in bare systems of the Debian releases
that debootstrap can fetch; the wheel in a fresh environment, with a notebook under Jupyter; the Debian package by apt; the
steps of the Dockerfile.

usage: package_test.py BUILD [--long]"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / ".package"))
sys.dont_write_bytecode = True
import make  # noqa: E402

RELEASES = ["bookworm", "trixie"]
PATIENCE = 120  # s, to the first trained network
USER = "1000:1000"


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **options)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout[-3000:]}"
    return done.stdout


def blocks(language):
    """The blocks of README.md in a language, the texts between fences."""
    return re.findall(rf"^```{language}\n(.*?)^```$", (ROOT / "README.md").read_text(), re.M | re.S)


FIRST = blocks("lua")[0]
INSTALL = [block for block in blocks("sh") if not block.startswith("./dev")]


def learnt(text):
    accuracy = float(text.split()[-1])
    assert 0.95 < accuracy <= 1, text


class Results:
    def __init__(self):
        self.passed = self.failed = 0

    def test(self, name, check, *arguments):
        start = time.monotonic()
        try:
            check(*arguments)
            self.passed += 1
            print(f"{name}: {time.monotonic() - start:.1f} s", flush=True)
        except (AssertionError, subprocess.CalledProcessError, SystemExit) as error:
            self.failed += 1
            print(f"FAIL {name}: {error} {getattr(error, 'stderr', '') or ''}", flush=True)


def install(build, out):
    """What ./dev package makes before the packages: the installed tree."""
    tree = out / "tree"
    run("cmake", "--install", build, "--prefix", tree, "--strip")
    run(tree / "bin/lunaria", "kernel", "install", "--prefix", tree)
    return tree


def folder_is_whole(build, tree, out):
    print(run(sys.executable, ROOT / ".package/make.py", build, tree, out, "--tree-only"))


def nothing_outside(folder):
    """All libraries come from the folder itself, but those of glibc."""
    for path in make.elf_files(folder):
        if path.parent.name != "bin":
            continue
        for name, place in make.linked(path).items():
            assert make.SYSTEM.match(name) or place and Path(place).resolve().is_relative_to(folder), f"{path.name}: {name} is {place}"


def finds_wrong_ones(build, folder):
    """The check of symbols says so where there is something to say: Debian's own C++ library is too new."""
    for library, complaint in (("libz.so.1", "nothing brings libz.so.1"), ("libstdc++.so.6", "nothing brings libstdc++.so.6")):
        path = folder / "lib/lunaria" / library
        path.rename(folder / library[:4])
        assert any(complaint in line for line in make.complaints(folder)), library
        (folder / library[:4]).rename(path)
    new = folder / "lib/lunaria/libnew.so"
    shutil.copy(make.output(make.compiler_of(build), "-print-file-name=libstdc++.so.6").strip(), new)
    assert any("libnew.so: asks for GLIBC_2.36 of libc.so.6" in line for line in make.complaints(folder))
    new.unlink()


def runs_anywhere(folder, scratch):
    (scratch / "first.lua").write_text(FIRST)
    program = folder / "bin/lunaria"

    def bare(*words):
        return run(program, *words, cwd=scratch, env={})

    learnt(bare("first.lua"))
    assert bare("--version").startswith("Lunaria ")
    assert "01-tensors" in bare("lessons")
    bare("lessons", "copy")
    assert bare("lunaria-lessons/10-checkpoints.ipynb")
    assert bare("-e", 'require "lunaria.zoo.resnet".resnet18(10, 8).fc.weight.shape[1]').strip() == "10"
    # Loops are compiled: the code generator is found and is whole.
    report = bare("-e", 'local ms = require "lunaria" local f = ms.jit(function(x) return ms.ops.tanh(x * 3 + 1):sum() end) '
                        "f(ms.ones{ 1000 }) f(ms.ones{ 1000 }) print(f:lower(ms.ones{ 1000 }):kernels())")
    assert "tanh" in report, report
    # Every module opens.
    for module in sorted((folder / "lib/lunaria").glob("liblunaria_*.so")):
        bare("-e", f"assert(package.loadlib('{module}', '*'))")
    spec = json.loads((folder / "share/jupyter/kernels/lunaria/kernel.json").read_text())
    assert spec["argv"][0] == "{resource_dir}/../../../../bin/lunaria", spec
    assert (folder / "include/lunaria.h").exists()


def inside(system, command, user=None, **options):
    """Runs a command of the shell in a bare system, as a user without rights where one is named."""
    enter = f"mount -t proc proc {system}/proc && exec chroot {f'--userspec={user}' if user else ''} {system} /usr/bin/env -i HOME=/srv PATH=/usr/bin:/bin:/usr/sbin:/sbin /bin/sh -ec \"$1\""
    return run("unshare", "--mount", "--pid", "--fork", "sh", "-c", enter, "sh", command, **options)


def mirror():
    """Where this system has its packages from."""
    printed = run("apt-get", "indextargets", "--format", "$(REPO_URI) $(SUITE)", "Created-By: Packages")
    found = re.search(r"^(\S+/debian)/? ", printed, re.M)
    return found and found[1]


def bare_system(release, where, *packages):
    system = where / release
    include = [f"--include={','.join(packages)}"] if packages else []
    run("debootstrap", "--variant=minbase", *include, release, system, mirror())
    (system / "srv").chmod(0o777)
    return system


def archive_in(system, out):
    shutil.copy(next(out.glob("*.tar.gz")), system / "srv")
    (system / "srv/first.lua").write_text(FIRST)
    start = time.monotonic()
    learnt(inside(system, f"cd /srv\n{INSTALL[0]}\nlunaria first.lua", USER))
    assert time.monotonic() - start < PATIENCE
    missing = inside(system, "for file in /srv/lunaria-*/bin/*; do ldd $file; done", USER)
    assert "not found" not in missing, missing
    shutil.rmtree(next((system / "srv").glob("lunaria-*/")))


def wheel_in(system, out):
    wheel = next(out.glob("*.whl"))
    assert wheel.stat().st_size <= 60e6, wheel.stat().st_size
    shutil.copy(wheel, system / "srv")
    (system / "srv/first.lua").write_text(FIRST)
    start = time.monotonic()
    learnt(inside(system, f"cd /srv\n{INSTALL[1]}\nlunaria first.lua", USER))
    assert time.monotonic() - start < PATIENCE


def notebook_by_wheel(out, scratch):
    """A fresh environment in which the tests' Jupyter can be seen: the kernel is found because the wheel is installed."""
    own = Path(os.environ.get("LUNARIA_JUPYTER", ROOT / ".jupyter"))
    place = scratch / "env"
    venv.create(place, with_pip=True)
    packages = run(own / "bin/python3", "-c", "import site; print(*site.getsitepackages(), sep='\\n')")
    next(place.glob("lib/python3*/site-packages")).joinpath("jupyter.pth").write_text(packages)
    run(place / "bin/pip", "install", "--no-index", next(out.glob("*.whl")))
    notebook = {"nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": {"name": "lunaria", "display_name": "Lunaria"}},
                "cells": [{"cell_type": "code", "id": "a", "metadata": {}, "outputs": [], "execution_count": None, "source": FIRST}]}
    (scratch / "first.ipynb").write_text(json.dumps(notebook))
    run(place / "bin/python3", "-c", "import nbformat, nbclient\nbook = nbformat.read('first.ipynb', 4)\n"
        "nbclient.NotebookClient(book, kernel_name='lunaria', timeout=120).execute()\nnbformat.write(book, 'done.ipynb')",
        cwd=scratch, env={"PATH": "/usr/bin:/bin", "HOME": str(scratch), "JUPYTER_PATH": "", "IPYTHONDIR": str(scratch)})
    outputs = json.loads((scratch / "done.ipynb").read_text())["cells"][0]["outputs"]
    learnt("".join("".join(output.get("text", "")) for output in outputs))


def deb_in(system, out):
    shutil.copy(next(out.glob("*.deb")), system / "srv")
    shutil.copy("/etc/resolv.conf", system / "etc")
    inside(system, "apt-get -qq update && apt-get -qq -y --no-install-recommends install /srv/lunaria_*.deb")
    learnt(inside(system, "cd /srv && lunaria first.lua", USER))


def docker_steps_in(system, out):
    """The steps of the Dockerfile, one by one, as a builder of images takes them."""
    user, folder, entry = None, "/", None
    for line in (ROOT / ".package/Dockerfile").read_text().splitlines():
        step, _, words = line.partition(" ")
        if step in ("", "#"):
            continue
        if step == "FROM":
            assert words == "debian:12-slim", words
        elif step == "ADD":
            source, target = words.split()
            run("tar", "-xzf", next(out.glob(source)), "-C", str(system) + target)
        elif step == "RUN":
            inside(system, f"cd {folder} && {words}", user)
        elif step == "USER":
            user = f"{words}:{words}"
        elif step == "WORKDIR":
            folder = words
            (system / folder[1:]).mkdir(exist_ok=True)
        else:
            assert step == "ENTRYPOINT", f"{line}: a step that this test does not know"
            entry = " ".join(json.loads(words))
    (system / folder[1:] / "first.lua").write_text(FIRST)
    learnt(inside(system, f"cd {folder} && PATH=/usr/local/bin:$PATH {entry} first.lua", user))


def main(build, long):
    build = Path(build).resolve()
    if long:
        lacking = [tool for tool in ("debootstrap", "unshare", "dpkg-deb") if not shutil.which(tool)]
        if lacking or os.geteuid() != 0 or not mirror():
            print(f"skipped: bare systems need root, a Debian mirror and {', '.join(lacking) or 'nothing else'}")
            return 77
    results = Results()
    with tempfile.TemporaryDirectory(dir="/var/tmp") as scratch:
        scratch = Path(scratch)
        out = scratch / "first place"
        out.mkdir()
        tree = install(build, out)
        results.test("the folder is whole", folder_is_whole, build, tree, out)
        moved = scratch / "moved"
        shutil.copytree(next(out.glob("lunaria-*")), moved, copy_function=os.link)
        results.test("libraries come from the folder", nothing_outside, moved)
        results.test("what is missing or too new is found", finds_wrong_ones, build, moved)
        (scratch / "empty").mkdir()
        results.test("it runs where it was moved to", runs_anywhere, moved, scratch / "empty")
        if long:
            print(run(sys.executable, ROOT / ".package/make.py", build, tree, out))
            for release in RELEASES:
                system = bare_system(release, scratch)
                results.test(f"the archive in {release}", archive_in, system, out)
                if release == RELEASES[0]:
                    results.test("the steps of the Dockerfile", docker_steps_in, system, out)
                    results.test("the Debian package", deb_in, system, out)
                shutil.rmtree(system)
                system = bare_system(release, scratch, "python3", "python3-venv")
                results.test(f"the wheel in {release}", wheel_in, system, out)
                shutil.rmtree(system)
            results.test("a notebook by the wheel", notebook_by_wheel, out, scratch)
    print(f"{results.passed} passed, {results.failed} failed")
    return results.failed > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], "--long" in sys.argv))
