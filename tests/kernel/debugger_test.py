"""The conversation of JupyterLab's debugger panel with the kernel: breakpoints in cells, stops, values, steps."""
import json
import os
import stat

from jupyter import PATIENCE, Kernel, holds, main, same

# What the panel sends when the debugger is turned on.
INITIALIZE = {"clientID": "jupyterlab", "clientName": "JupyterLab", "adapterID": "lunaria", "pathFormat": "path",
              "linesStartAt1": True, "columnsStartAt1": True, "supportsVariableType": True,
              "supportsVariablePaging": True, "supportsRunInTerminalRequest": True, "locale": "en-us"}
CELL = """local x = ms.tensor{{1.0, 2.0}, {3.0, 4.0}}
local function double(t)
  local d = t * 2
  return d
end
local y = double(x)
total = y:sum():item()
total"""


class Panel:
    """The front end's side of a debugger session."""

    def __init__(self, kernel):
        self.kernel, self.seq, self.events, self.others = kernel, 0, [], []

    def ask(self, command, **arguments):
        """A request that must succeed; gives the body of the response."""
        answer = self.try_(command, **arguments)
        assert answer["success"], f"{command}: {answer}"
        return answer["body"]

    def try_(self, command, **arguments):
        self.seq += 1
        answer = self.kernel.control("debug_request", {"type": "request", "seq": self.seq, "command": command,
                                                       "arguments": arguments})
        same(answer["type"], "response")
        same(answer["request_seq"], self.seq)
        same(answer["command"], command)
        return answer

    def event(self, name):
        """Waits for the event; gives its body. Other messages are kept."""
        for i, body in enumerate(self.events):
            if body[0] == name:
                return self.events.pop(i)[1]
        while True:
            message = self.kernel.client.get_iopub_msg(timeout=PATIENCE)
            if message["msg_type"] != "debug_event":
                self.others.append(message)
                continue
            content = message["content"]
            if content["event"] == name:
                return content["body"]
            self.events.append((content["event"], content["body"]))

    def start(self):
        self.ask("initialize", **INITIALIZE)
        self.ask("attach")
        self.event("initialized")
        self.ask("configurationDone")
        return self

    def breakpoints(self, code, *lines):
        path = self.ask("dumpCell", code=code)["sourcePath"]
        lines = [line if isinstance(line, dict) else {"line": line} for line in lines]
        body = self.ask("setBreakpoints", breakpoints=lines, source={"path": path}, sourceModified=False)
        return path, body["breakpoints"]

    def frames(self):
        return self.ask("stackTrace", threadId=1)["stackFrames"]

    def locals(self, frame=0):
        scopes = self.ask("scopes", frameId=self.frames()[frame]["id"])["scopes"]
        return self.variables(scopes[0]["variablesReference"])

    def variables(self, reference, **paging):
        body = self.ask("variables", variablesReference=reference, **paging)
        return {v["name"]: v for v in body["variables"]}

    def reply(self, request):
        """The reply to a cell; its result, if there is one."""
        while True:
            reply = self.kernel.client.get_shell_msg(timeout=PATIENCE)
            if reply["parent_header"].get("msg_id") == request:
                break
        while True:
            message = self.kernel.client.get_iopub_msg(timeout=PATIENCE)
            self.others.append(message)
            idle = message["msg_type"] == "status" and message["content"]["execution_state"] == "idle"
            if idle and message["parent_header"].get("msg_id") == request:
                break
        results = [m for m in self.others if m["msg_type"] == "execute_result"
                   and m["parent_header"].get("msg_id") == request]
        self.others.clear()
        return reply["content"], results[0]["content"]["data"]["text/plain"] if results else None


def test_the_kernel_says_that_it_has_a_debugger():
    with Kernel() as kernel:
        info = kernel.ask("kernel_info").content
        same(info["debugger"], True)
        holds(info["supported_features"], "debugger")


def test_a_breakpoint_in_a_cell_a_look_a_step_and_on():
    with Kernel() as kernel:
        panel = Panel(kernel)
        info = panel.ask("debugInfo")
        same(info["isStarted"], False)
        same(info["hashMethod"], "Murmur2")
        panel.start()
        path, set_ = panel.breakpoints(CELL, 3)
        same(path, info["tmpFilePrefix"] + os.path.basename(path))
        assert path.endswith(info["tmpFileSuffix"])
        same([(b["verified"], b["line"]) for b in set_], [(True, 3)])
        same(stat.S_IMODE(os.stat(os.path.dirname(path)).st_mode), 0o700)
        same(panel.ask("debugInfo")["breakpoints"], [{"source": path, "breakpoints": [{"line": 3}]}])

        request = kernel.send(CELL)
        stop = panel.event("stopped")
        same((stop["reason"], stop["threadId"]), ("breakpoint", 1))
        same(panel.ask("threads")["threads"][0]["id"], 1)
        same(panel.ask("debugInfo")["stoppedThreads"], [1])
        frames = panel.frames()
        same([(f["name"], f["line"], f["source"]["path"]) for f in frames],
             [("double", 3, path), ("main chunk", 6, path)])
        same(panel.ask("source", source={"path": path})["content"], CELL)

        tensor = panel.locals()["t"]
        same(tensor["type"], "Tensor [2, 2] Float32")
        holds(tensor["value"], "Tensor(shape=[2, 2], dtype=Float32)")
        parts = panel.variables(tensor["variablesReference"])
        holds(parts["[1]"]["value"], "3.0")
        holds(parts["dtype"]["value"], "Float32")
        same(list(panel.variables(tensor["variablesReference"], filter="indexed", start=1, count=1)), ["[1]"])
        rich = panel.ask("richInspectVariables", variableName="t", frameId=frames[0]["id"])
        holds(rich["data"]["text/plain"], "Float32")
        assert "text/html" in rich["data"], rich["data"].keys()
        holds(panel.locals(1)["x"]["value"], "Tensor(shape=[2, 2]")

        panel.ask("next", threadId=1)
        panel.event("continued")
        same(panel.event("stopped")["reason"], "step")
        same(panel.frames()[0]["line"], 4)
        holds(panel.locals()["d"]["value"], "8.0")
        same(panel.ask("evaluate", expression="d:sum():item()", frameId=1, context="repl")["result"], "20.0")
        panel.ask("copyToGlobals", srcVariableName="d", dstVariableName="kept", srcFrameId=1)
        panel.ask("stepOut", threadId=1)
        panel.event("stopped")
        same(panel.frames()[0]["line"], 7)
        panel.ask("continue", threadId=1)
        reply, result = panel.reply(request)
        same((reply["status"], result), ("ok", "20.0"))

        globals_ = panel.ask("inspectVariables")["variables"]
        same({v["name"]: v["value"] for v in globals_}["total"], "20.0")
        holds({v["name"] for v in globals_}, "kept")
        panel.ask("disconnect", restart=False, terminateDebuggee=False)
        panel.event("terminated")
        same(panel.ask("debugInfo")["isStarted"], False)
        request = kernel.send(CELL)
        same(panel.reply(request)[1], "20.0")


def test_values_can_be_changed():
    with Kernel() as kernel:
        panel = Panel(kernel).start()
        code = "local n, t = 1, {a = 1, 5}\nlocal m = n\nreturn n, t.a, t[1]"
        panel.breakpoints(code, 2)
        request = kernel.send(code)
        panel.event("stopped")
        scope = panel.ask("scopes", frameId=1)["scopes"][0]["variablesReference"]
        same(panel.ask("setVariable", variablesReference=scope, name="n", value="n + 41")["value"], "42")
        table = panel.variables(scope)["t"]["variablesReference"]
        panel.ask("setVariable", variablesReference=table, name="a", value="7")
        panel.ask("setVariable", variablesReference=table, name="[1]", value="n")
        panel.ask("continue", threadId=1)
        holds(panel.reply(request)[1].replace("\t", " "), "42")


def test_conditions_counts_and_logs():
    with Kernel() as kernel:
        panel = Panel(kernel).start()
        code = "local sum = 0\nfor i = 1, 5 do\n  sum = sum + i\n  local s = sum\nend\nreturn sum"
        panel.breakpoints(code, {"line": 3, "condition": "i == 4"}, {"line": 4, "logMessage": "sum is {sum}"})
        request = kernel.send(code)
        panel.event("stopped")
        same(panel.locals()["i"]["value"], "4")
        same([panel.event("output")["output"] for _ in range(3)], ["sum is 1\n", "sum is 3\n", "sum is 6\n"])
        panel.ask("continue", threadId=1)
        same(panel.reply(request)[1], "15")


def test_functions_of_earlier_cells_stop_and_are_stepped_into():
    with Kernel() as kernel:
        panel = Panel(kernel).start()
        define = "function square(v)\n  local r = v * v\n  return r\nend"
        panel.breakpoints(define)
        same(kernel.run(define).status, "ok")
        path, _ = panel.breakpoints("return square(3)", 1)
        request = kernel.send("return square(3)")
        panel.event("stopped")
        panel.ask("stepIn", threadId=1)
        panel.event("stopped")
        frame = panel.frames()[0]
        same((frame["name"], frame["line"]), ("square", 2))
        assert frame["source"]["path"] != path
        panel.ask("continue", threadId=1)
        same(panel.reply(request)[1], "9")


def test_functions_under_grad_stop():
    with Kernel() as kernel:
        panel = Panel(kernel).start()
        code = "local function f(x)\n  local y = x * x\n  return y:sum()\nend\nreturn ms.grad(f)(ms.tensor{3.0})[0]:item()"
        panel.breakpoints(code, 3)
        request = kernel.send(code)
        panel.event("stopped")
        same([f["line"] for f in panel.frames()], [3, 5])
        holds(panel.locals()["y"]["value"], "9.0")
        panel.ask("continue", threadId=1)
        same(panel.reply(request)[1], "6.0")


def test_functions_that_take_gradients_back_stop():
    with Kernel() as kernel:
        panel = Panel(kernel).start()
        code = ("local f = ms.custom_vjp(function(x)\n  return x * x\nend, function(x, y, d)\n  local twice = 2 * x\n  return twice * d\nend)\n"
                "local function g(x)\n  local y = f(x)\n  return y:sum()\nend\nreturn ms.grad(g)(ms.tensor{3.0})[0]:item()")
        panel.breakpoints(code, 5)
        request = kernel.send(code)
        same(panel.event("stopped")["reason"], "breakpoint")
        frames = panel.frames()
        same([f["line"] for f in frames], [5, 8, 11])
        same(frames[1]["name"], "derivative of g")
        holds(panel.locals()["twice"]["value"], "6.0")
        panel.ask("continue", threadId=1)
        same(panel.reply(request)[1], "6.0")


def test_types_are_those_that_the_panel_shows_values_for():
    with Kernel() as kernel:
        panel = Panel(kernel).start()
        code = "local i, f, b, s, t, x, z = 1, 0.5, true, 'text', {1, a = 2}, ms.tensor{1, 2}, ms.tensor(7)\nreturn i"
        panel.breakpoints(code, 2)
        request = kernel.send(code)
        panel.event("stopped")
        same({name: (v["type"], v["value"]) for name, v in panel.locals().items() if name in "ifbs"},
             {"i": ("int", "1"), "f": ("float", "0.5"), "b": ("bool", "true"), "s": ("str", '"text"')})
        same([panel.locals()[name]["type"] for name in "txz"], ["table (2)", "Tensor [2] Int64", "Tensor 7 Int64"])
        panel.ask("continue", threadId=1)
        same(panel.reply(request)[1], "1")


def test_errors_stop_where_they_are_raised():
    with Kernel() as kernel:
        panel = Panel(kernel).start()
        panel.ask("setExceptionBreakpoints", filters=["raised"])
        request = kernel.send("local ok = pcall(function() local why = 7 error('no') end)\nreturn ok")
        stop = panel.event("stopped")
        same(stop["reason"], "exception")
        holds(panel.ask("exceptionInfo", threadId=1)["description"], "no")
        same(panel.locals()["why"]["value"], "7")
        panel.ask("continue", threadId=1)
        same(panel.reply(request)[1], "false")


def test_breakpoints_and_pause_reach_a_cell_that_runs():
    with Kernel() as kernel:
        panel = Panel(kernel).start()
        code = "local n = 0\nwhile not done do\n  n = n + 1\nend\nreturn n > 0"
        request = kernel.send(code)
        panel.ask("debugInfo")
        panel.ask("pause", threadId=1)
        same(panel.event("stopped")["reason"], "pause")
        panel.ask("continue", threadId=1)
        path, _ = panel.breakpoints(code, 3)
        panel.event("stopped")
        panel.ask("setBreakpoints", breakpoints=[], source={"path": path})
        panel.ask("evaluate", expression="done = true", frameId=1)
        panel.ask("continue", threadId=1)
        same(panel.reply(request)[1], "true")


def test_an_interrupt_ends_a_stopped_cell():
    with Kernel() as kernel:
        panel = Panel(kernel).start()
        panel.breakpoints("local a = 1\nreturn a", 2)
        request = kernel.send("local a = 1\nreturn a")
        panel.event("stopped")
        kernel.manager.interrupt_kernel()
        same(panel.reply(request)[0]["status"], "error")
        panel.ask("disconnect")
        kernel.still_works()


def test_disconnecting_lets_a_stopped_cell_go_on():
    with Kernel() as kernel:
        panel = Panel(kernel).start()
        panel.breakpoints("local a = 1\nreturn a", 2)
        request = kernel.send("local a = 1\nreturn a")
        panel.event("stopped")
        panel.ask("disconnect")
        same(panel.reply(request)[1], "1")


def test_bad_requests_fail_and_harm_nothing():
    with Kernel() as kernel:
        panel = Panel(kernel)
        same(panel.try_("nothing_of_this_name")["success"], False)
        same(panel.try_("stackTrace", threadId=1)["body"].get("stackFrames", []), [])
        same(panel.try_("continue", threadId=1)["success"], False)
        same(panel.try_("variables", variablesReference=10 ** 6)["success"], False)
        same(panel.try_("dumpCell", code=3)["success"], False)
        same(panel.try_("setBreakpoints", source={}, breakpoints=3)["success"], False)
        same(panel.try_("setBreakpoints", source={"path": "a.lua"}, breakpoints=["x"])["success"], False)
        same(panel.try_("richInspectVariables", variableName="a b")["success"], False)
        same(panel.try_("evaluate", expression="error('x')")["success"], False)
        answer = kernel.control("debug_request", {"command": ["x"], "seq": "y", "arguments": 4})
        same(answer["success"], False)
        json.dumps(answer)
        kernel.still_works()


main(globals())
