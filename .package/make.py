"""Makes the packages from an installed tree: an archive that runs where it is unpacked, a Python wheel, a Debian package.

usage: make.py BUILD TREE OUT [--tree-only]     BUILD: the build folder; TREE: where `cmake --install` put it, stripped;
                                                --tree-only: the folder of the archive and its checks, but no packages

The archive and the wheel bring all libraries but glibc's, in lib/lunaria. The Debian package names the packages that have
them instead, those of the Debian release on which it was made."""
import argparse
import base64
import functools
import hashlib
import io
import os
import re
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile
import zlib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SUMMARY = "A deep-learning framework in C++, programmed in Lua: prompt, script runner and Jupyter kernel"
GLIBC = (2, 35)  # the oldest that everything runs with
OWN = "arc4random"  # what the programs define in the place of a newer glibc
# What glibc itself brings.
SYSTEM = re.compile(r"(libc|libm|libdl|libpthread|librt|libresolv|libutil|libmvec|ld-linux-x86-64|linux-vdso)\.so")
# Debian's libcurl and ZeroMQ speak protocols that Lunaria does not: what their libraries would bring along is 4 MB, packed. Each
# with how the names of its functions begin.
ABSENT = {"librtmp.so.1": "RTMP_", "libldap-2.5.so.0": "ldap_", "liblber-2.5.so.0": "ber_", "libgssapi_krb5.so.2": "(?:gss|GSS)_",
          "libnorm.so.1": "(?:Norm|NORM_)"}
# Where the Debian package has no library of its own beside it.
OPENBLAS = "libopenblas0-openmp"


@functools.lru_cache(None)
def described(path):
    return output("objdump", "-p", path)


def output(*command, **options):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True, **options).stdout


def elf_files(folder):
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            with path.open("rb") as file:
                if file.read(4) == b"\x7fELF":
                    yield path


def linked(path):
    """{name: path or None} of all libraries that a program or library links, those of libraries included."""
    found = re.findall(r"^\s*(\S+)(?: => (not found|\S+))?", output("ldd", path), re.M)
    return {Path(name).name: None if place == "not found" else place for name, place in found if ".so" in name}


def number_of(version):
    """The number in the name of a version of glibc's symbols, or None."""
    found = re.fullmatch(r"GLIBC_([\d.]+)", version)
    return found and tuple(map(int, found[1].split(".")))


def names_needed(path):
    return re.findall(r"NEEDED\s+(\S+)", described(path))


def references(path):
    """{library: versions of symbols} that a file asks for, and the set of versions that it has."""
    asked, defined, library = {}, set(), None
    for line in described(path).splitlines():
        if required := re.match(r"\s+required from (\S+):", line):
            library = required[1]
        elif version := re.match(r"\s+0x\w+ 0x\w+ \d+ (\S+)", line):
            asked.setdefault(library, set()).add(version[1])
        elif version := re.match(r"\d+ 0x\w+ 0x\w+ (\S+)", line):
            defined.add(version[1])
    return asked, defined


def complaints(folder):
    """What keeps the programs and libraries of a folder from running on a system that has glibc 2.35 and nothing else."""
    files = list(elf_files(folder))
    brought = {path.name: references(path)[1] for path in files}
    for path in files:
        name = path.relative_to(folder)
        for library in names_needed(path):
            if library not in brought and not SYSTEM.match(library):
                yield f"{name}: nothing brings {library}"
        for library, versions in references(path)[0].items():
            if SYSTEM.match(library):
                for version in versions:
                    if (number_of(version) or (99,)) > GLIBC:
                        yield f"{name}: asks for {version} of {library}"
            else:
                for version in sorted(versions - brought.get(library, set())):
                    yield f"{name}: asks for {version}, which {library} does not have"
        if path.parent.name == "bin" and not re.search(rf" T {OWN}$", output("nm", "-D", path), re.M):
            yield f"{name}: does not define {OWN}"
    if not files:
        yield f"{folder}: no programs"


def compiler_of(build):
    return re.search(r"^CMAKE_CXX_COMPILER:\w+=(.*)", (build / "CMakeCache.txt").read_text(), re.M)[1]


def ask_for_less(path):
    """Has a library ask for an older version of what it takes from a glibc newer than ours: the programs, which are asked first,
    have it without a version (core/base/arc4random.cpp). Of Debian 12 that is one function in GCC's C++ library."""
    data = bytearray(path.read_bytes())
    texts, at = (int(re.search(rf"{name}\s+(0x\w+)", described(path))[1], 16) for name in ("STRTAB", "VERNEED"))
    while True:  # the libraries; in these the addresses of what is read are places in the file
        _, count, _, first, following = struct.unpack_from("<HHIII", data, at)
        entry, new, older = at + first, [], None
        for _ in range(count):
            code, _, _, name, step = struct.unpack_from("<IHHII", data, entry)
            version = number_of(data[texts + name:data.index(b"\0", texts + name)].decode())
            if version and version > GLIBC:
                new.append(entry)
            elif version:
                older = code, name
            entry += step
        for entry in new:
            struct.pack_into("<I", data, entry, older[0])
            struct.pack_into("<I", data, entry + 8, older[1])
        if not following:
            break
        at += following
    path.write_bytes(data)
    described.cache_clear()


def make_absent(build, users, name, target):
    """A library whose functions all fail, for one that `users` link and Lunaria never reaches."""
    functions, asked = set(), set()
    for user in users:
        functions.update(re.findall(rf"UND ({ABSENT[name]}\w+)", output("readelf", "--dyn-syms", "-W", user)))
        asked.update(references(user)[0].get(name, ()))
    with tempfile.TemporaryDirectory() as scratch:
        source, versions = Path(scratch, "absent.c"), Path(scratch, "versions")
        source.write_text("".join(f"int {function}(void) {{ return -1; }}\n" for function in sorted(functions)))
        versions.write_text("".join(f"{version} {{ global: *; }};\n" for version in asked))
        output(compiler_of(build), "-x", "c", source, "-shared", "-fPIC", "-nostdlib", "-s", "-o", target, f"-Wl,-soname,{name}",
               *([f"-Wl,--version-script={versions}"] if versions.stat().st_size else []))


def package_of(path):
    """The Debian package that a file belongs to, or None."""
    for name in {str(path), str(Path(path).resolve()), str(Path(path).resolve()).replace("/usr/lib/", "/lib/", 1)}:
        found = subprocess.run(["dpkg", "-S", name], capture_output=True, text=True, check=False).stdout
        if found:
            return found.split(":")[0]
    return None


def make_folder(build, tree, folder):
    """The folder of the archive: the tree, the libraries that it links, their licences."""
    shutil.copytree(tree, folder, symlinks=True, copy_function=os.link)
    libraries = folder / "lib/lunaria"
    needed = {}
    for path in elf_files(tree):
        needed.update(linked(path))
    missing = [name for name, path in needed.items() if path is None and not SYSTEM.match(name)]
    if missing:
        sys.exit(f"make.py: {', '.join(missing)} not found: install the packages that ./dev build names")
    packages = {"llvm-19-dev"}
    reached, rest = set(), [name for path in elf_files(tree) for name in names_needed(path)]
    while rest:
        name = rest.pop()
        if name not in reached and not SYSTEM.match(name) and not Path(needed[name]).is_relative_to(tree):
            reached.add(name)
            rest += [] if name in ABSENT else names_needed(needed[name])
    for name in sorted(reached):
        path = needed[name]
        packages.add(package_of(path))
        if name in ABSENT:
            make_absent(build, [needed[user] for user in reached - set(ABSENT) if name in names_needed(needed[user])], name, libraries / name)
        else:
            shutil.copy(path, libraries / name)
            (libraries / name).chmod(0o644)
            if name == "libstdc++.so.6":
                ask_for_less(libraries / name)
    licences = folder / "share/doc/lunaria/licences"
    licences.mkdir()
    for package in sorted(packages - {None}):
        if (text := Path("/usr/share/doc", package, "copyright")).exists():
            shutil.copy(text, licences / f"{package}.txt")


def time_of_commit():
    if "SOURCE_DATE_EPOCH" in os.environ:
        return int(os.environ["SOURCE_DATE_EPOCH"])
    return int(output("git", "log", "-1", "--format=%ct", cwd=ROOT))


def packed(data):
    """What gzip would make of the bytes, by a search for the shortest form: 3 % less than gzip -9, a limit that counts here."""
    return subprocess.run(["libdeflate-gzip", "-12"], input=data, stdout=subprocess.PIPE, check=True).stdout


def make_archive(folder, target):
    def plain(info):
        info.uid = info.gid = 0
        info.uname = info.gname = ""
        info.mtime = time_of_commit()
        info.mode = 0o755 if info.isdir() or info.mode & 0o100 else 0o644
        return info

    plain_bytes = io.BytesIO()
    with tarfile.open(fileobj=plain_bytes, mode="w") as archive:
        for path in [folder, *sorted(folder.rglob("*"))]:
            archive.add(path, path.relative_to(folder.parent), recursive=False, filter=plain)
    target.write_bytes(packed(plain_bytes.getvalue()))


def make_wheel(folder, target, version):
    """A zip file (the wheel format). Programs are scripts and all the rest is data, so that an environment gets the folder as it is, but
    for lunaria-run."""
    about = f"lunaria-{version}"
    texts = {
        f"{about}.dist-info/METADATA": f"Metadata-Version: 2.1\nName: lunaria\nVersion: {version}\nSummary: {SUMMARY}\n"
        "License: Apache-2.0; GPL-3.0 as a whole, since GNU readline is part of it\nRequires-Python: >=3.8\n"
        f"Description-Content-Type: text/markdown\n\n{(ROOT / 'README.md').read_text()}",
        f"{about}.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: lunaria\nRoot-Is-Purelib: false\n"
        f"Tag: py3-none-manylinux_{GLIBC[0]}_{GLIBC[1]}_x86_64\n",
    }
    record = f"{about}.dist-info/RECORD"
    rows = []
    directory = []
    with target.open("wb") as wheel:
        def add(name, data, mode):
            name, gzip = str(name).encode(), packed(data)
            assert gzip[3] == 0, "a header of gzip with options"
            body = gzip[10:-8]
            common = struct.pack("<HHHHHIIIHH", 20, 0x800, 8, 0, 0x21, zlib.crc32(data), len(body), len(data), len(name), 0)
            directory.append(b"PK\1\2" + struct.pack("<BB", 20, 3) + common + struct.pack("<HHHII", 0, 0, 0, (0o100000 | mode) << 16, wheel.tell()) + name)
            wheel.write(b"PK\3\4" + common + name + body)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            rows.append(f"{name.decode()},sha256={digest},{len(data)}\n")

        for path in sorted(folder.rglob("*")):
            if path.is_dir() or path.name == "lunaria-run":
                continue
            inside = path.relative_to(folder)
            kind = "scripts" if inside.parts[0] == "bin" else "data"
            name = inside.name if kind == "scripts" else inside
            add(f"{about}.data/{kind}/{name}", path.read_bytes(), path.stat().st_mode & 0o777)
        for name, text in texts.items():
            add(name, text.encode(), 0o644)
        add(record, ("".join(rows) + f"{record},,\n").encode(), 0o644)
        start = wheel.tell()
        wheel.write(b"".join(directory))
        wheel.write(b"PK\5\6" + struct.pack("<HHHHIIH", 0, 0, len(directory), len(directory), wheel.tell() - start, start, 0))


def make_deb(tree, target, version):
    with tempfile.TemporaryDirectory() as scratch:
        scratch = Path(scratch)
        shutil.copytree(tree, scratch / "root/usr", symlinks=True)
        (scratch / "debian").mkdir()
        (scratch / "debian/control").write_text("Source: lunaria\n\nPackage: lunaria\nArchitecture: any\n")
        files = [path for path in elf_files(scratch / "root")]
        printed = output("dpkg-shlibdeps", "-O", *(f"-e{path}" for path in files), cwd=scratch)
        depends = re.search(r"^shlibs:Depends=(.*)", printed, re.M)[1]
        size = sum(path.stat().st_size for path in (scratch / "root").rglob("*") if path.is_file())
        folder = scratch / "root/DEBIAN"
        folder.mkdir()
        (scratch / "root/usr/share/doc/lunaria/LICENSE").rename(scratch / "root/usr/share/doc/lunaria/copyright")
        (folder / "control").write_text(
            f"Package: lunaria\nVersion: {version}\nArchitecture: amd64\nMaintainer: Lunaria\nSection: science\nPriority: optional\n"
            f"Installed-Size: {size // 1024}\nDepends: {OPENBLAS}, {depends}\nRecommends: librsvg2-2, fonts-dejavu-core, libsndfile1\n"
            f"Suggests: dataset-fashion-mnist\nDescription: {SUMMARY}\n Tensors, derivatives, networks and compiled code, with the names of MindSpore.\n")
        for path in scratch.joinpath("root").rglob("*"):
            if path.is_dir():
                path.chmod(0o755)
        output("dpkg-deb", "--root-owner-group", "-Zxz", "--build", scratch / "root", target,
               env={**os.environ, "SOURCE_DATE_EPOCH": str(time_of_commit())})


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("build", type=Path)
    parser.add_argument("tree", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--tree-only", action="store_true")
    args = parser.parse_args()
    tree, out = args.tree.resolve(), args.out.resolve()
    program = tree / "bin/lunaria"
    version = output(program, "--version").split()[1]
    if "\n  stubs " in output(program, "--help"):
        output(program, "stubs", tree / "share/lunaria/stubs")
    folder = out / f"lunaria-{version}"
    shutil.rmtree(folder, ignore_errors=True)
    make_folder(args.build, tree, folder)
    wrong = list(complaints(folder))
    print("\n".join(wrong))
    if wrong:
        return 1
    if args.tree_only:
        return 0
    targets = {out / f"{folder.name}-linux-x86_64.tar.gz": lambda path: make_archive(folder, path),
               out / f"{folder.name}-py3-none-manylinux_{GLIBC[0]}_{GLIBC[1]}_x86_64.whl": lambda path: make_wheel(folder, path, version),
               out / f"lunaria_{version}_amd64.deb": lambda path: make_deb(tree, path, version)}
    for path, make in targets.items():
        make(path)
        print(f"{path.stat().st_size / 1e6:6.1f} MB  {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
