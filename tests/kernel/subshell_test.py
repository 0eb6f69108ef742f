"""Requests of a subshell are answered while a cell of the main shell runs, whatever that cell is busy with."""
import time

from jupyter import PATIENCE, Kernel, holds, interruptible, main, same, within

kernel = Kernel()

# Each sets `started`, runs until `done` is set, and gives 7 more than it was set to.
BUSY = {
    "loop": "started = true while not done do end return done + 7",
    "loop_of_calls": "started = true local function f() return done end while not f() do end return f() + 7",
    "coroutine": "started = true\nlocal run = coroutine.wrap(function() while not done do end return done + 7 end)\nreturn run()",
    "coroutines": "started = true\nwhile not done do coroutine.wrap(function() coroutine.yield() end)() end\nreturn done + 7",
    "pcall": "started = true while not done do pcall(error, 'x') end return done + 7",
    "virtual_machine": "started = true\nlocal _, r = ms.value_and_grad(function(x) while not done do x = x + 0.0 end return x * 2 end)(3.0)\n"
                       "return done + r + 5",
    "operators": "local x = ms.ops.ones({50, 50}) started = true while not done do x = ms.ops.matmul(x, x) * 0.02 end return done + 7",
    "compiled_functions": "local f = ms.jit(function(x) return ms.ops.tanh(x) * 0.5 end)\nlocal x = ms.ops.ones({50}) started = true\n"
                          "while not done do x = f(x) end return done + 7",
    "question": "started = true local line = io.read() return done + 7",
    "own_hook": "local lines = 0 debug.sethook(function() lines = lines + 1 end, 'l')\nstarted = true while not done do\nlocal a = {}\nend\n"
                "local hook = debug.gethook() debug.sethook()\nreturn hook and lines > 100 and done + 7",
}


class Subshell:
    """Sends requests of a subshell; collects what comes for them."""

    def __init__(self, k=kernel):
        self.kernel = k
        reply = k.control("create_subshell_request")
        same(reply["status"], "ok")
        self.id = reply["subshell_id"]

    def send(self, kind, content):
        if "code" in content:
            content = {**content, "code": interruptible(content["code"])}
        message = self.kernel.client.session.msg(kind, content)
        message["header"]["subshell_id"] = self.id
        self.kernel.client.shell_channel.send(message)
        return message["header"]["msg_id"]

    def ask(self, kind, content, timeout=PATIENCE):
        """The content of the reply; messages of others on the way are kept."""
        request = self.send(kind, content)
        end = time.monotonic() + timeout
        kept = []
        try:
            while True:
                reply = self.kernel.client.get_shell_msg(timeout=max(0.01, end - time.monotonic()))
                if reply["parent_header"].get("msg_id") == request:
                    same(reply["parent_header"]["subshell_id"], self.id)
                    return reply["content"]
                kept.append(reply)
        finally:
            assert not kept, f"these replies came as well: {[m['msg_type'] for m in kept]}"

    def run(self, code, **options):
        return self.ask("execute_request", {"code": code, "silent": False, "store_history": True, "user_expressions": {},
                                            "allow_stdin": True, "stop_on_error": True, **options})

    def value(self, expression):
        return self.run("", user_expressions={"v": expression})["user_expressions"]["v"]["data"]["text/plain"]

    def close(self):
        same(self.kernel.control("delete_subshell_request", {"subshell_id": self.id})["status"], "ok")


def stopped(test):
    """Whatever fails in it, the tests after it find a kernel that listens."""
    def wrapped():
        try:
            test()
        except BaseException:
            kernel.manager.restart_kernel(now=True)
            kernel.client.wait_for_ready(timeout=PATIENCE)
            raise
    return wrapped


def start(code):
    """Runs a cell in the main shell, which says that it has started; the cell waits for `done`."""
    kernel.run("started, done = nil, nil")
    return kernel.send(code)


def add_tests():
    for name, code in BUSY.items():
        def test(code=code, name=name):
            shell = Subshell()
            request = start(code)
            while shell.value("started") != "true":
                time.sleep(0.01)
            begin = time.monotonic()
            same(shell.ask("complete_request", {"code": "string.gsu", "cursor_pos": 10})["matches"], ["gsub"])
            same(shell.ask("inspect_request", {"code": "string.gsub", "cursor_pos": 8, "detail_level": 0})["found"], True)
            same(shell.value("ms.tensor{1, 2}:sum():item()"), "3")
            same(shell.value("ms.grad(function(x) return x * x end)(3.0)"), "6.0")
            within(2, begin, "four requests")
            same(shell.run("error('in the subshell')")["status"], "error")
            same(shell.run("done = 35")["status"], "ok")
            if name == "question":
                kernel.client.input("line")
            cell = kernel.collect(request)
            same((cell.status, float(cell.result())), ("ok", 42.0))
            shell.close()
        globals()[f"test_a_subshell_is_served_during_a_{name}"] = test


def test_a_long_operator_is_left_between_its_blocks():
    shell = Subshell()
    kernel.run("a = ms.ops.ones({4500, 4500})")
    request = kernel.send("b = ms.ops.matmul(a, a) return b[0][0]:item()")
    time.sleep(0.1)
    served = []
    while True:
        asked = shell.send("execute_request", {"code": "ms.ops.matmul(a['0:40'], a):sum():item()", "user_expressions": {}})
        reply = kernel.client.get_shell_msg(timeout=PATIENCE)
        if reply["parent_header"]["msg_id"] == request:
            break
        same(reply["parent_header"]["msg_id"], asked)
        served.append(reply["content"]["status"])
    same(reply["content"]["status"], "ok")
    same(set(served), {"ok"})
    same(kernel.client.get_shell_msg(timeout=PATIENCE)["parent_header"]["msg_id"], asked)
    same(kernel.run("b:min():item() == 4500 and b:max():item() == 4500").result(), "true")
    shell.close()


def test_a_long_convolution_is_left_between_its_images():
    shell = Subshell()
    kernel.run("x, w = ms.ops.ones({8, 256, 96, 96}), ms.ops.ones({256, 256, 3, 3})")
    request = kernel.send("y = ms.ops.conv2d(x, w) return y[0][0][1][1]:item()")
    time.sleep(0.05)
    served = 0
    while True:
        asked = shell.send("execute_request", {"code": "ms.ops.conv2d(x['0:1, :, 0:5, 0:5'], w):sum():item()", "user_expressions": {}})
        reply = kernel.client.get_shell_msg(timeout=PATIENCE)
        if reply["parent_header"]["msg_id"] == request:
            break
        same((reply["parent_header"]["msg_id"], reply["content"]["status"]), (asked, "ok"))
        served += 1
    assert served > 0
    same(reply["content"]["status"], "ok")
    same(kernel.client.get_shell_msg(timeout=PATIENCE)["parent_header"]["msg_id"], asked)
    same(kernel.run("y:max():item() == 2304 and y[7][255][50][50]:item() == 2304").result(), "true")
    shell.close()


def test_output_and_results_go_to_who_asked():
    shell = Subshell()
    request = start("io.write('before ') started = true while not done do end io.write('after');")
    while shell.value("started") != "true":
        time.sleep(0.01)
    inner = shell.send("execute_request", {"code": "io.write('within') done = 1 return 5", "user_expressions": {}})
    texts, results, statuses = {}, {}, []
    while (request, "idle") not in statuses:
        message = kernel.client.get_iopub_msg(timeout=PATIENCE)
        parent = message["parent_header"]["msg_id"]
        if message["msg_type"] == "stream":
            texts[parent] = texts.get(parent, "") + message["content"]["text"]
        elif message["msg_type"] == "execute_result":
            results[parent] = message["content"]["data"]["text/plain"]
        elif message["msg_type"] == "status":
            statuses.append((parent, message["content"]["execution_state"]))
    same((texts[request], texts[inner], results), ("before after", "within", {inner: "5"}))
    assert statuses.index((inner, "busy")) < statuses.index((inner, "idle")) < statuses.index((request, "idle"))
    replies = [kernel.client.get_shell_msg(timeout=PATIENCE)["parent_header"]["msg_id"] for _ in range(2)]
    same(replies, [inner, request])
    shell.close()


def test_counts_and_history_are_those_of_the_cells():
    shell = Subshell()
    first = kernel.run("0").content["execution_count"]
    request = start("started = true while not done do end")
    while shell.value("started") != "true":
        time.sleep(0.01)
    same(shell.run("done = 'by a subshell'")["execution_count"], first + 3)
    same(kernel.collect(request).content["execution_count"], first + 2)
    tail = kernel.ask("history", hist_access_type="tail", n=2).content["history"]
    same([entry[1:] for entry in tail],
         [[first + 3, "done = 'by a subshell'"], [first + 2, interruptible("started = true while not done do end")]])
    shell.close()


def test_subshells_are_served_during_cells_of_each_other():
    one, two = Subshell(), Subshell()
    outer = start("started = 1 while not done do end return 'outer'")
    while one.value("started") != "1":
        time.sleep(0.01)
    inner = one.send("execute_request", {"code": "started = 2 while not inner_done do end", "user_expressions": {}})
    while two.value("started") != "2":
        time.sleep(0.01)
    two.run("done = 1")  # what is farther out waits for what is farther in
    two.send("execute_request", {"code": "inner_done = 1", "user_expressions": {}})
    replies = [kernel.client.get_shell_msg(timeout=PATIENCE)["parent_header"]["msg_id"] for _ in range(3)]
    same(replies[1:], [inner, outer])
    # The main shell is served during a cell of a subshell in the same way.
    busy = one.send("execute_request", {"code": "started = 3 while not third do end", "user_expressions": {}})
    while kernel.run("started").result() != "3":
        time.sleep(0.01)
    kernel.send("third = 1")
    kernel.client.get_shell_msg(timeout=PATIENCE)
    same(kernel.client.get_shell_msg(timeout=PATIENCE)["parent_header"]["msg_id"], busy)
    one.close()
    two.close()


def test_comm_messages_of_a_subshell_reach_a_busy_kernel():
    shell = Subshell()
    kernel.run("ms.notebook.comm.register('sub', function(comm) comm:on_message(function(data) done = data.value end) end)")
    shell.send("comm_open", {"comm_id": "c1", "target_name": "sub", "data": {}})
    request = start("started = true while not done do end return done")
    while shell.value("started") != "true":
        time.sleep(0.01)
    shell.send("comm_msg", {"comm_id": "c1", "data": {"value": 11}})
    same(kernel.collect(request).result(), "11")
    shell.close()


def test_a_message_is_through_before_cells_of_others_begin():
    shell = Subshell()
    kernel.run("""ms.notebook.comm.register('slow', function(comm)
      comm:on_message(function(data) ended = data.value end)
      local start = os.clock()
      while os.clock() - start < 0.2 do end
    end)""")
    shell.send("comm_open", {"comm_id": "c2", "target_name": "slow", "data": {}})
    # A cell in the middle of the message would wait for a message that has to wait for it.
    request = start("running = true while not ended do end return ended")
    while shell.value("running") != "true":
        time.sleep(0.01)
    shell.send("comm_msg", {"comm_id": "c2", "data": {"value": 12}})
    same(kernel.collect(request).result(), "12")
    shell.close()


def test_an_interrupt_stops_the_cell_and_what_runs_within_it():
    shell = Subshell()
    request = start("started = true while true do end")
    while shell.value("started") != "true":
        time.sleep(0.01)
    shell.send("execute_request", {"code": "while true do end", "user_expressions": {}})
    time.sleep(0.2)
    begin = time.monotonic()
    same(kernel.control("interrupt_request")["status"], "ok")
    replies = [kernel.client.get_shell_msg(timeout=PATIENCE) for _ in range(2)]
    within(2, begin, "the interrupt")
    same([r["content"]["ename"] for r in replies], ["Interrupted"] * 2)
    same(replies[1]["parent_header"]["msg_id"], request)
    kernel.still_works()
    same(shell.value("6 * 7"), "42")
    shell.close()


def test_a_failed_cell_aborts_those_of_its_own_shell_alone():
    shell = Subshell()
    failing = [shell.send("execute_request", {"code": c, "user_expressions": {}}) for c in ("error('x')", "unreached = 1")]
    other = kernel.send("reached = 1")
    replies = {}
    for _ in range(3):
        reply = kernel.client.get_shell_msg(timeout=PATIENCE)
        replies[reply["parent_header"]["msg_id"]] = reply["content"]["status"]
    same([replies[r] for r in (*failing, other)], ["error", "aborted", "ok"])
    shell.close()


def test_subshells_are_listed_deleted_and_then_unknown():
    holds(kernel.ask("kernel_info").content["supported_features"], "kernel subshells")
    before = kernel.control("list_subshell_request")["subshell_id"]
    shell = Subshell()
    same(sorted(kernel.control("list_subshell_request")["subshell_id"]), sorted([*before, shell.id]))
    # What waits is answered when its shell goes.
    running = shell.send("execute_request", {"code": "local t = os.clock() while os.clock() - t < 0.4 do end",
                                             "user_expressions": {}})
    waiting = shell.send("execute_request", {"code": "unreached = 1", "user_expressions": {}})
    time.sleep(0.1)
    shell.close()
    replies = {}
    for _ in range(2):
        reply = kernel.client.get_shell_msg(timeout=PATIENCE)
        replies[reply["parent_header"]["msg_id"]] = reply["content"]
    same((replies[running]["status"], replies[waiting]["status"]), ("ok", "error"))
    holds(replies[waiting]["evalue"], "deleted")
    same(kernel.control("list_subshell_request")["subshell_id"], before)
    same(kernel.control("delete_subshell_request", {"subshell_id": shell.id})["status"], "error")
    holds(shell.run("1")["evalue"], "there is no subshell")
    kernel.still_works()


def test_a_thousand_requests_in_the_middle_of_a_cell_keep_their_order():
    shell = Subshell()
    request = start("started = true local n = 0 while not done do n = n + 1 + #{} end return n > 0")
    while shell.value("started") != "true":
        time.sleep(0.01)
    sent = [shell.send("execute_request", {"code": f"seen = {i}", "silent": True, "user_expressions": {}}) for i in range(1000)]
    came = [kernel.client.get_shell_msg(timeout=PATIENCE)["parent_header"]["msg_id"] for _ in sent]
    same(came, sent)
    same(shell.value("seen"), "999")
    shell.run("done = true")
    same(kernel.collect(request, timeout=PATIENCE).result(), "true")
    shell.close()


add_tests()

if __name__ == "__main__":
    try:
        main({name: stopped(test) if name.startswith("test_") else test for name, test in globals().items()})
    finally:
        kernel.stop()
