"""Whatever a cell does, it can be stopped, and the kernel can be ended and started again."""
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from jupyter import PATIENCE, PROGRAM, Kernel, crowd, holds, main, same, within

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "check"))
import today

PROMISE = 0.2  # s from the signal to the end of the cell, by the kernel's own clock ...
TRIES = 8      # ... the best of so many: tests share a machine
LIMIT = 2.0    # s until the reply is here
kernel = Kernel()

# What runs for ever, and must not when it is interrupted.
ENDLESS = {
    "loop": "while true do end",
    "goto": "::again:: goto again",
    "pcall_loop": "while true do pcall(function() while true do end end) end",
    "endless_handler": "xpcall(function() while true do end end, function() while true do end end)",
    "handler_after_an_error": "xpcall(error, function() while true do end end)",
    "handlers_in_handlers": "local function h() xpcall(error, function() while true do end end) end while true do xpcall(h, h) end",
    "pattern": "return (('a'):rep(40)):find(('a?'):rep(40) .. ('a'):rep(40))",
    "pattern_of_gsub": "return (('a'):rep(200000)):gsub('a*b', '')",
    "pattern_of_gmatch": "for _ in (('a'):rep(200000)):gmatch('.-.-.-b') do end",
    "pattern_in_a_function_that_is_differentiated": "ms.grad(function(x) local _ = (('a'):rep(200000)):match('.-.-b') return x end)(1.0)",
    "xpcall_loop": "while true do xpcall(function() while true do end end, tostring) end",
    "coroutine": "coroutine.wrap(function() while true do end end)()",
    "coroutines": "while true do coroutine.wrap(function() coroutine.yield() end)() end",
    "nested_coroutine": "coroutine.wrap(function() coroutine.wrap(function() while true do end end)() end)()",
    "recursion": "local function f(n) if n > 0 then f(n - 1) f(n - 1) end end f(100)",
    "prints": "while true do print('x') end",
    "strings": "while true do local s = ('x'):rep(1000):gsub('x', 'yy') end",
    "sort": "local t = {} for i = 1, 1e6 do t[i] = i * 7919 % 1e6 end\n"
            "while true do table.sort(t, function(a, b) return a > b end) end",
    "metamethods": "local t = setmetatable({}, {__index = function(t, k) return t[k + 1] end})\nlocal _ = pcall(function() "
                   "return t[1] end) while true do local _ = t end",
    "sleep": "os.execute('sleep 100')",
    "child": "io.popen('sleep 100'):read('a')",
    "operators": "local x = ms.ops.ones({64, 64}) while true do x = ms.ops.matmul(x, x) end",
    "long_operator": "local x = ms.ops.ones({2000, 2000}) for _ = 1, 1000 do x = ms.ops.matmul(x, x) end",
    "virtual_machine": "ms.grad(function(x) while true do x = x * 1.0 end return x end)(1.0)",
    "jit_loop": "ms.grad(function(x) local y = x for i = 1, 1e12 do y = y * 1.0 end return y end)(ms.tensor(1.0))",
    "load": "load(function() return '' end, 'x') while true do load(('x = 1 '):rep(1000)) end",
    "question": "io.read()",
    "long_repetition": "while true do local s = ('x'):rep(2e9) end",
    "comparator": "table.sort({3, 2, 1}, function() while true do end end)",
    "comparison_metamethod": "local m = {__lt = function() while true do end end} return setmetatable({}, m) < setmetatable({}, m)",
    "text_of_an_object": "print(setmetatable({}, {__tostring = function() while true do end end}))",
    "text_of_an_error": "error(setmetatable({}, {__tostring = function() while true do end end}))",
    "close_handler": "local x <close> = setmetatable({}, {__close = function() while true do end end})",
    "close_handler_of_a_coroutine": "local co = coroutine.create(function() local x <close> = setmetatable({}, {__close = function() "
                                    "while true do end end}) coroutine.yield() end)\ncoroutine.resume(co) coroutine.close(co)",
    "replacement": "('x'):gsub('x', function() while true do end end)",
    "pipe": "local path = os.tmpname() os.remove(path) os.execute('mkfifo ' .. path) io.open(path)",
    "full_pipe": "local p = io.popen('sleep 100', 'w') p:write(('x'):rep(1e6)) p:flush() while true do end",
    "recursion_in_pcalls": "local function f() return 1 + f() end while true do pcall(f) end",
    "command": "%timeit while true do end",
    "sorting_of_a_tensor": "local x = ms.ops.ones({5000000}) while true do ms.ops.sort(x) end",
    "fourier_transform": "local x = ms.ops.ones({4000000}) while true do ms.ops.fft(x) end",
    "convolution": "local x, w = ms.ops.ones({8, 64, 64, 64}), ms.ops.ones({64, 64, 3, 3}) while true do ms.ops.conv2d(x, w) end",
    "compiled_function": "local f = ms.jit(function(x) return ms.ops.tanh(x) * 2 + ms.ops.exp(x) end)\n"
                         "local x = ms.ops.ones({1000, 10000}) while true do f(x) end",
    "backward_pass": "while true do ms.grad(function(x) for _ = 1, 1e4 do x = ms.ops.sin(x) end return x:sum() end)(ms.ops.ones({10})) end",
}


def stop(code, how):
    request = kernel.send(code)
    kernel.wait_for("execute_input", request)
    time.sleep(0.1)
    start = time.monotonic()
    how()
    try:
        cell = kernel.collect(request, timeout=5)
    except Exception:
        # The tests after this one want a kernel that listens.
        kernel.manager.restart_kernel(now=True)
        kernel.client.wait_for_ready(timeout=PATIENCE)
        raise
    within(LIMIT, start, "the interrupt")
    same(cell.status, "error")
    took = kernel.control("usage_request")["interrupt_seconds"]
    assert took > 0
    return cell, took


def by_message():
    same(kernel.control("interrupt_request")["status"], "ok")


def by_signal():
    os.killpg(os.getpgid(kernel.pid), signal.SIGINT)


def add_tests():
    """Each of them by a message and by a signal: one day by the one, the next day by the other."""
    if "TSAN_OPTIONS" in os.environ:
        return  # ThreadSanitizer keeps signals back while code that it does not know, Lua's, is busy
    for number, (name, code) in enumerate(ENDLESS.items()):
        for way, how in (("message", by_message), ("signal", by_signal)):
            if not today.is_of_today(number + (how == by_signal), 2):
                continue
            def test(code=code, how=how):
                kernel.run("kept = 'value'")
                times = []
                while not times or min(times) > PROMISE * crowd():
                    assert len(times) < TRIES, f"the cell went on for {times} s"
                    times.append(stop(code, how)[1])
                same(kernel.run("kept").result(), '"value"')
            globals()[f"test_{name}_is_stopped_by_a_{way}"] = test


def test_reading_without_end_is_stopped_when_more_memory_is_asked_for():
    for code in ("io.open('/dev/zero'):read('a')", "for l in io.lines('/dev/zero') do end"):
        same(stop(code, by_message)[0].content["ename"], "Interrupted")


def test_an_interrupt_is_an_error_that_says_so():
    cell, _ = stop("while true do end", by_message)
    same(cell.content["ename"], "Interrupted")
    holds(cell.content["evalue"], "interrupted")
    holds("\n".join(cell.content["traceback"]), "while true do")


def test_signals_between_cells_end_nothing():
    for _ in range(20):
        os.kill(kernel.pid, signal.SIGINT)
        time.sleep(0.01)
    assert kernel.is_alive()
    kernel.still_works()


def test_signals_during_short_cells_end_nothing():
    for _ in range(50):
        request = kernel.send("1 + 1", stop_on_error=False)
        os.kill(kernel.pid, signal.SIGINT)
        assert kernel.collect(request).status in ("ok", "error")
    kernel.still_works()


def test_a_signal_of_any_moment_ends_a_cell_that_runs_a_shell():
    # exec: a shell that starts a child of its own loses a signal of that moment.
    with tempfile.TemporaryDirectory() as folder:
        for number in range(60):
            path = os.path.join(folder, str(number))
            request = kernel.send(f"io.open('{path}', 'w'):close() os.execute('exec sleep 100')", stop_on_error=False)
            while not os.path.exists(path):
                pass
            time.sleep(0.003 * number / 60)
            by_signal()
            same(kernel.collect(request).content["ename"], "Interrupted")


def test_a_shell_that_is_interrupted_may_clean_up():
    with tempfile.TemporaryDirectory() as folder:
        told, ready = os.path.join(folder, "told"), os.path.join(folder, "ready")
        request = kernel.send(f'os.execute("trap \'echo told >> {told}; exit 3\' INT; touch {ready}; '
                              'while true; do sleep 0.01; done") print "on"')
        while not os.path.exists(ready):
            time.sleep(0.01)
        by_signal()
        cell = kernel.collect(request)
        same((cell.status, cell.text()), ("error", ""))
        with open(told, encoding="utf-8") as file:
            same(file.read(), "told\n")


def test_a_signal_to_the_threads_ends_nothing():
    for thread in os.listdir(f"/proc/{kernel.pid}/task"):
        # Process-directed signals go where they are not blocked, which is the main thread only.
        with open(f"/proc/{kernel.pid}/task/{thread}/status", encoding="ascii") as file:
            blocked = next(int(line.split()[1], 16) for line in file if line.startswith("SigBlk:"))
        same(bool(blocked & 1 << (signal.SIGINT - 1)), int(thread) != kernel.pid)


def test_what_cannot_be_stopped_is_told():
    with Kernel() as other:
        # Lua turns hooks off in finalizers.
        request = other.send("setmetatable({}, {__gc = function() while true do end end}) collectgarbage()")
        time.sleep(0.2)
        os.kill(other.pid, signal.SIGINT)
        while True:
            message = other.client.get_iopub_msg(timeout=PATIENCE)
            if message["msg_type"] == "stream" and message["parent_header"]["msg_id"] == request:
                break
        holds(message["content"]["text"], "restart the kernel")
        # What is answered elsewhere is answered still, and the restart works.
        same(other.control("usage_request")["status"], "ok")
        other.manager.restart_kernel(now=False)
        other.client.wait_for_ready(timeout=PATIENCE)
        other.still_works()


def test_an_interrupt_stops_the_cells_behind_too():
    requests = [kernel.send("while true do end"), kernel.send("behind = 1")]
    time.sleep(0.2)
    by_message()
    same(kernel.collect(requests[1]).status, "aborted")
    same(kernel.run("behind").result(), None)


def test_a_restart_while_a_cell_runs():
    with Kernel() as other:
        for code in ("while true do pcall(function() while true do end end) end", "os.execute('sleep 100')", "io.read()"):
            other.run("lost = 1")
            other.send(code)
            time.sleep(0.2)
            start = time.monotonic()
            other.manager.restart_kernel(now=False)
            within(6, start, "the restart")
            other.client.wait_for_ready(timeout=PATIENCE)
            same(other.run("lost").result(), None)
            other.still_works()


def test_many_restarts_leave_a_kernel_that_works():
    with Kernel() as other:
        for _ in range(8):
            other.manager.restart_kernel(now=False)
        other.client.wait_for_ready(timeout=PATIENCE)
        other.still_works()


def test_a_shutdown_stops_a_busy_kernel_and_is_answered():
    with Kernel() as other:
        pid = other.pid
        other.send("setmetatable({}, {__gc = function() while true do end end}) while true do end")
        time.sleep(0.2)
        start = time.monotonic()
        same(other.control("shutdown_request", {"restart": False}), {"status": "ok", "restart": False})
        while other.is_alive() and time.monotonic() - start < PATIENCE:
            time.sleep(0.02)
        within(7, start, "the end of the kernel")
        assert not os.path.exists(f"/proc/{pid}/exe")


def test_a_crash_is_noted_in_the_log():
    other = Kernel()
    os.kill(other.pid, signal.SIGSEGV)
    start = time.monotonic()
    while other.is_alive() and time.monotonic() - start < PATIENCE:
        time.sleep(0.02)
    holds(other.errors(), "lunaria kernel: ended by signal 11")
    other.client.stop_channels()
    other.manager.cleanup_resources()


def test_a_child_that_does_not_read_ends_nothing():
    cell = kernel.run("local p = io.popen('true', 'w') os.execute('sleep 0.1')\n"
                      "local ok, why = p:write(('x'):rep(1e6)) return ok, why")
    same(cell.result(), 'nil\t"Broken pipe"')
    # Nor are children told to live on without a reader.
    same(kernel.run("io.popen('yes | head -n 1; echo done'):read('a')").result(), '"y\\ndone\\n"')
    kernel.still_works()


def test_exit_answers_the_cell_and_ends_the_kernel():
    for code, status in (("os.exit(3)", 3), ("pcall(os.exit, true, true)", 0), ("coroutine.wrap(os.exit)(false)", 1)):
        with tempfile.TemporaryDirectory() as folder, Kernel() as other:
            path = os.path.join(folder, "file")
            cell = other.run(f"f = io.open('{path}', 'w') f:write('kept') print('last') {code} print('unreached')")
            same((cell.status, cell.text()), ("ok", "last\n"))
            same(cell.content["payload"], [{"source": "ask_exit", "keepkernel": False}])
            start = time.monotonic()
            while other.is_alive() and time.monotonic() - start < PATIENCE:
                time.sleep(0.02)
            same(other.manager.provisioner.process.returncode, status)
            with open(path, encoding="utf-8") as file:
                same(file.read(), "kept")
    same(kernel.run("os.exit('x')").status, "error")
    kernel.still_works()


def test_a_shutdown_closes_files():
    with tempfile.TemporaryDirectory() as folder, Kernel() as other:
        path = os.path.join(folder, "file")
        other.run(f"f = io.open('{path}', 'w') f:write('kept')")
        other.manager.shutdown_kernel(now=False)
        with open(path, encoding="utf-8") as file:
            same(file.read(), "kept")


def test_a_kernel_does_not_outlive_what_started_it():
    code = ("import os, sys, time\nfrom jupyter_client.manager import KernelManager\nm = KernelManager(kernel_name='lunaria')\n"
            "m.start_kernel()\nprint(m.provisioner.pid, flush=True)\ntime.sleep(60)")
    starter = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    pid = int(starter.stdout.readline())
    time.sleep(0.5)
    starter.kill()
    starter.wait()
    start = time.monotonic()
    while os.path.exists(f"/proc/{pid}/exe") and time.monotonic() - start < PATIENCE:
        time.sleep(0.05)
    within(6, start, "the end of an orphan")


def test_without_a_file_a_kernel_makes_its_own():
    process = subprocess.Popen([PROGRAM, "kernel"], stdout=subprocess.PIPE, text=True)
    path = process.stdout.readline().split()[-1]
    same(os.stat(path).st_mode & 0o777, 0o600)
    process.terminate()
    process.wait()


add_tests()

if __name__ == "__main__":
    try:
        main(globals())
    finally:
        kernel.stop()
