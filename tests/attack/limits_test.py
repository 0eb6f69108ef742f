"""The program where the system gives it little: limits of addresses (ulimit -v) from too few to begin with to enough, and of
processes (ulimit -u). It ends with an error or does its work, in whichever way; it neither dies nor waits for ever, and what it
computes is right.

usage: limits_test.py PROGRAM"""
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAM = str(Path(sys.argv[1]).resolve())
SECONDS = 60
# A user of its own, so that nobody else's processes count.
USER = 64211

# Each kind of work by itself: a library that cannot work is an error, and the next one is tried.
WORK = r"""
local ms = require "lunaria"
local ops = ms.ops
ms.set_seed(1)
local function try(name, f)
  local ok, message = pcall(f)
  if not ok and not (tostring(message):find "memory" or tostring(message):find "addresses" or tostring(message):find "threads?") then
    print("FAIL", name, message)
    os.exit(1)
  end
  print(ok and "ok" or "refused", name)
end
-- With this argument the program first takes what memory it gets, in ever smaller blocks.
local hog = {}
for _, count in ipairs(arg[1] == "hog" and { 4194304, 262144, 16384, 1024 } or {}) do
  while pcall(function() hog[#hog + 1] = ms.zeros { count } end) do end
end
try("product", function() assert(ms.ones { 600, 600 }:matmul(ms.ones { 600, 600 }):sum():item() == 216000000.0) end)
try("product of doubles", function()
  local a = ms.ones({ 300, 400 }, ms.float64)
  assert(a:matmul(ms.ones({ 400, 300 }, ms.float64)):sum():item() == 36000000.0)
end)
try("convolution", function()
  local w = ms.ones { 16, 16, 3, 3 }
  assert(ops.conv2d(ms.ones { 2, 16, 30, 30 }, w):sum():item() == 2 * 16 * 28 * 28 * 144.0)
end)
try("inverse", function()
  local a = ops.randn({ 200, 200 }, ms.float64) + ops.eye(200, 200, ms.float64) * 40
  assert(ops.amax(ops.abs(ops.inverse(a):matmul(a) - ops.eye(200, 200, ms.float64))):item() < 1e-8)
end)
try("singular values", function() assert(ops.svd(ops.eye(150, 150))) end)
try("sum", function() assert(ms.ones { 3000000 }:sum():item() == 3000000.0) end)
try("compiled", function()
  local f = ms.jit(function(x) return ops.tanh(x * 2 + 1):sum() end)
  for _ = 1, 20 do f(ms.ones { 1000 }) end
end)
try("data", function()
  local n = 0
  for x in ms.dataset.NumpySlicesDataset({ ops.ones { 40, 3 } }):map(ms.dataset.transforms.TypeCast(ms.float64)):batch(4)
    :create_tuple_iterator() do n = n + x:sum():item() end
  assert(n == 120)
end)
try("threads", function() ms.set_num_threads(8) end)
try("file", function()
  ms.save_checkpoint({ w = ms.ones { 10 } }, "net.ckpt", { async_save = true })
  ms.async_ckpt_wait()
end)
"""


def run(kind, limits, *words):
    with tempfile.TemporaryDirectory(prefix="lunaria-limits-") as folder:
        os.chmod(folder, 0o777)
        Path(folder, "work.lua").write_text(WORK)

        def prepare():
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            for which, most in limits:
                resource.setrlimit(which, (most, most))
            if any(which == resource.RLIMIT_NPROC for which, _ in limits) and os.getuid() == 0:
                os.setgid(USER)
                os.setuid(USER)
        environment = {"PATH": os.environ["PATH"], "HOME": folder, "XDG_CACHE_HOME": folder, "LANG": "C.UTF-8",
                       "OMP_WAIT_POLICY": "passive"}
        try:
            done = subprocess.run([PROGRAM, "work.lua", *words], cwd=folder, env=environment, preexec_fn=prepare, timeout=SECONDS,
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False)
        except subprocess.TimeoutExpired as late:
            return f"{kind}: no end after {SECONDS} s; {late.stdout}"
        except PermissionError:
            print(f"{kind}: skipped: another user may not run the program here")
            return None
        except OSError as e:
            return f"{kind}: cannot be run: {e}"
    text = done.stdout + done.stderr
    if done.returncode not in (0, 1, 127) or "FAIL" in text or "libgomp" in text:
        return f"{kind}: ended with {done.returncode}: {text[-1500:]}"
    if done.returncode == 1 and "memory" not in text and "addresses" not in text:
        return f"{kind}: ended with 1: {text[-1500:]}"
    refused = [line[8:] for line in done.stdout.splitlines() if line.startswith("refused")]
    begun = "ok" in done.stdout or refused
    print(f"{kind}: {'refused ' + ', '.join(refused) if refused else 'all done' if begun else 'does not begin'}", flush=True)
    return None


def main():
    if "ASAN_OPTIONS" in os.environ or "TSAN_OPTIONS" in os.environ:
        print("skipped: a sanitizer takes more addresses than any limit")
        return 77
    failures = [run("no limit", [])]
    failures += [run(f"{most} MB", [(resource.RLIMIT_AS, most << 20)]) for most in sorted([*range(60, 900, 30), 365, 372, 378, 385, 1500])]
    failures += [run(f"{most} MB, all taken", [(resource.RLIMIT_AS, most << 20)], "hog") for most in (450, 700, 900, 1300)]
    failures += [run(f"{most} processes", [(resource.RLIMIT_NPROC, most)]) for most in (1, 2, 3, 5, 20)]
    total, failures = len(failures), [failure for failure in failures if failure]
    for failure in failures:
        print("FAIL", failure)
    print(f"{total - len(failures)} passed, {len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
