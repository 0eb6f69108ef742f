"""Parties of a federated job without Lua: the example in C, as gcc and clang build it, with the library of the build. A job of them gives
the model of a job of parties in Lua, but for roundings; one that is killed goes on; options that are wrong are errors.

usage: device_test.py LUNARIA FOLDER_OF_THE_LIBRARIES [instrumented]"""
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

from job import HERE, Job

LUNARIA, LIBRARIES = sys.argv[1], Path(sys.argv[2]).resolve()
# Libraries of a build with the address sanitizer need its run time from the start.
FLAGS = ["-fsanitize=address"] if sys.argv[3:] == ["instrumented"] else []
CLIENTS = 2


def built(folder):
    programs = []
    for compiler in ["gcc", "clang-19"]:
        if not shutil.which(compiler):
            continue
        program = folder / f"client-{compiler}"
        subprocess.run([compiler, "-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", *FLAGS, str(HERE / "client.c"),
                        "-Icore/federated/device", "-Icore/lite/runtime", f"-L{LIBRARIES}", f"-Wl,-rpath,{LIBRARIES}",
                        "-llunaria-fl", "-llunaria-lite", "-o", str(program)], check=True)
        programs.append(program)
    return programs


def numbers(bits):
    return struct.unpack(f"<{len(bits) // 8}d", bits)


class DeviceJob(Job):
    def __init__(self, programs, files, *arguments, **options):
        self.programs, self.files = programs, files
        super().__init__(*arguments, **options)

    def start_client(self, number, *words):
        command = [str(self.programs[number % len(self.programs)]), f"http://127.0.0.1:{self.proxy.port}", "faults", f"client-{number}",
                   str(self.files / "model.lite"), str(self.files / f"data-{number}.bin"), str(self.files / f"labels-{number}.bin"),
                   f"state={self.path / f'{number}.state'}", "patience=20", f"samples={24 + number}", *words]
        self.launch(number, command)


def main():
    passed = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        programs = built(folder)
        for number in range(1, CLIENTS + 1):
            subprocess.run([LUNARIA, str(HERE / "device_files.lua"), str(folder), str(number)], check=True)
        for encrypt in ["NOT_ENCRYPT", "PW_ENCRYPT"]:
            with Job(LUNARIA, encrypt, clients=CLIENTS) as job:
                expected = job.run()
            faults = [["updateModel", "lose_reply", 1], ["getModel", "alter_reply", 1]]
            with DeviceJob(programs, folder, LUNARIA, encrypt, faults, clients=CLIENTS) as job:
                got = job.run()
                if not expected or not got:
                    sys.exit(f"{encrypt}: a job did not end\n{job.logs()}")
                if len(got) != len(expected) or max(abs(a - b) for a, b in zip(numbers(expected), numbers(got))) > 1e-6:
                    sys.exit(f"{encrypt}: other weights\n{job.logs()}")
                if "3 updates, " not in job.logs():
                    sys.exit(f"{encrypt}: no three updates\n{job.logs()}")
            passed += 1
        for words, wanted in [(["state=/tmp", "nosuch=1"], "there is no option 'nosuch'"), (["patience=-1"], "must be a number"),
                              (["patience=0.1"], "there is no connection to the server"), (["signing=xyz"], "64 hexadecimal digits")]:
            done = subprocess.run([str(programs[0]), "http://127.0.0.1:1", "job", "a", str(folder / "model.lite"), str(folder / "data-1.bin"),
                                   str(folder / "labels-1.bin"), *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            if done.returncode == 0 or wanted not in done.stdout:
                sys.exit(f"{words}: {done.stdout}")
            passed += 1
    print(f"{passed} passed, 0 failed")


main()
