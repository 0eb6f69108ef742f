"""Kernel specs: where they go, what stands in them, what is refused."""
import json
import os
import stat
import struct
import subprocess
import tempfile

from jupyter import PROGRAM, holds, main, same


def install(*arguments, code=0, **environment):
    done = subprocess.run([PROGRAM, "kernel", *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env={**os.environ, **environment})
    same(done.returncode, code)
    return done.stdout


def spec_in(folder):
    with open(os.path.join(folder, "kernel.json"), encoding="utf-8") as file:
        return json.load(file)


def test_the_spec_names_this_program():
    with tempfile.TemporaryDirectory() as prefix:
        install("install", "--prefix", prefix)
        folder = os.path.join(prefix, "share/jupyter/kernels/lunaria")
        spec = spec_in(folder)
        same((spec["display_name"], spec["language"], spec["argv"][1:]), ("Lunaria", "lua", ["kernel", "-f", "{connection_file}"]))
        assert os.access(spec["argv"][0], os.X_OK)
        for size in (32, 64):
            with open(os.path.join(folder, f"logo-{size}x{size}.png"), "rb") as file:
                data = file.read()
            same((data[:8], struct.unpack(">II", data[16:24])), (b"\x89PNG\r\n\x1a\n", (size, size)))
        with open(os.path.join(folder, "logo-svg.svg"), encoding="utf-8") as file:
            holds(file.read(), "<svg")
        assert stat.S_ISREG(os.stat(os.path.join(folder, "kernel.json")).st_mode)


def test_a_spec_goes_where_it_is_told_to():
    with tempfile.TemporaryDirectory() as home:
        install("install", JUPYTER_DATA_DIR=home + "/data")
        assert spec_in(home + "/data/kernels/lunaria")
        install("install", "--user", "--name", "mine", "--display-name=My Lua", JUPYTER_DATA_DIR="", XDG_DATA_HOME="", HOME=home)
        same(spec_in(home + "/.local/share/jupyter/kernels/mine")["display_name"], "My Lua")
        install("install", "--sys-prefix", VIRTUAL_ENV=home + "/env")
        assert spec_in(home + "/env/share/jupyter/kernels/lunaria")
        # Once more over the one that is there.
        install("install", "--sys-prefix", VIRTUAL_ENV=home + "/env")


def test_mistakes_are_told():
    holds(install("install", "--name", "../x", code=1), "letters, digits")
    holds(install("install", "--prefix", code=1), "needs an argument")
    holds(install("install", "--nonsense", code=1), "unrecognized option '--nonsense'")
    holds(install("install", "--prefix", "/proc/nothing", code=1), "/proc/nothing")
    holds(install("--nonsense", code=1), "unrecognized argument")
    holds(install("-f", code=1), "needs a file")
    holds(install("--help"), "usage: lunaria kernel")


def test_bad_connection_files_are_told():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "connection.json")
        good = {"transport": "tcp", "ip": "127.0.0.1", "key": "k", "signature_scheme": "hmac-sha256", "shell_port": 1,
                "control_port": 1, "stdin_port": 1, "iopub_port": 1, "hb_port": 1}
        for text, part in (("", "must be a JSON object"), ("[]", "must be a JSON object"), ("{}", "shell_port"),
                           (json.dumps({**good, "hb_port": "x"}), "hb_port must be a port number"),
                           (json.dumps({**good, "hb_port": 70000}), "from 1 to 65535"), (json.dumps({**good, "key": 5}), "key must be"),
                           (json.dumps({**good, "signature_scheme": "none"}), "hmac-sha256"),
                           (json.dumps({**good, "transport": "pigeon"}), "tcp or ipc")):
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            holds(install("-f", path, code=1), part)
        # A port that is taken.
        with open(path, "w", encoding="utf-8") as file:
            json.dump({**good, "ip": "203.0.113.1"}, file)
        holds(install("-f", path, code=1), "lunaria:")
        same(os.stat(path).st_mode & 0o777, 0o600)


if __name__ == "__main__":
    main(globals())
