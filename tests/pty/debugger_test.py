"""The debugger at the prompt and in scripts: stops, steps, values, in Lua code and in differentiated functions."""
import os
import tempfile

from terminal import Terminal, holds, main, plain, same, session

PROMPT = "debug> "


class Debugged:
    """A program that stands at the debugger's prompt."""

    def __init__(self, terminal):
        self.t = terminal
        self.start = self.answer()

    def answer(self):
        return self.t.expect(PROMPT)

    def do(self, command):
        """Types a command; gives what it printed, without the echo."""
        self.t.send(command + "\r")
        text = self.answer()
        return text.split("\n", 1)[1].removesuffix(PROMPT).strip("\n") if "\n" in text else ""

    def finish(self, command):
        self.t.send(command + "\r")


def stopped(*cells):
    t = session()
    for cell in cells[:-1]:
        t.run(cell)
    t.send(cells[-1] + "\r")
    return Debugged(t)


def script(text, *arguments):
    folder = tempfile.mkdtemp(prefix="lunaria-script-")
    path = os.path.join(folder, "program.lua")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return Terminal(*arguments, path)


FUNCTION = "function f(n)\nlocal m = n + 1\nbreakpoint()\nlocal k = m * 2\nreturn k\nend"


def test_breakpoint_opens_a_prompt_where_it_is_called():
    d = stopped(FUNCTION, "f(4)")
    holds(d.start, "In[1]:3 in f")
    holds(d.start, "-> breakpoint()")
    same(d.do("m"), "5")
    same(d.do("p m * 2, n"), "10\t4")
    holds(d.do("n"), "-> local k = m * 2")
    same(d.do("m = 50"), "")
    holds(d.do("n"), "-> return k")
    holds(d.do("a"), "k = 100")
    holds(d.do("w"), "In[2]:1 in main chunk")
    d.finish("c")
    holds(d.t.prompt(), "100")
    same(d.t.leave(), 0)


def test_an_empty_line_repeats_the_last_command():
    d = stopped(FUNCTION, "f(4)")
    holds(d.do("n"), "local k")
    holds(d.do(""), "return k")
    d.finish("c")
    d.t.prompt()
    d.t.leave()


def test_frames_can_be_climbed():
    d = stopped(FUNCTION, "function g(x) local y = x * 10; return (f(y)) end", "g(2)")
    holds(d.do("u"), "In[2]:1 in g")
    same(d.do("y"), "20")
    holds(d.do("d"), "in f")
    holds(d.do("d"), "where the program stopped")
    holds(d.do("l"), "->   breakpoint()")
    d.finish("c")
    d.t.prompt()
    d.t.leave()


def test_leaving_ends_the_cell_and_keeps_the_session():
    d = stopped(FUNCTION, "pcall(f, 1)")
    d.finish("q")
    holds(d.t.prompt(), "the debugger ended the program")
    same(d.t.run("1 + 1"), "2")
    same(d.t.leave(), 0)


def test_ctrl_c_leaves_and_stops_what_is_evaluated():
    d = stopped(FUNCTION, "f(1)")
    d.t.send("while true do local t = {} end\r")
    d.t.child.delaybeforesend = 0.5
    d.t.send("\x03")
    holds(d.answer(), "interrupted!")
    same(d.do("m"), "2")
    d.t.send("\x03")
    d.t.prompt()
    same(d.t.run("1 + 1"), "2")
    d.t.leave()


def test_a_function_under_grad_stops_at_its_lines():
    d = stopped("function g(x)\nlocal y = x * x\nbreakpoint()\nlocal z = y * x\nreturn z:sum()\nend",
                "ms.grad(g)(ms.tensor{1.0, 2.0})")
    holds(d.start, "In[1]:3 in g")
    holds(d.do("y.shape"), "(2,)")
    holds(d.do("w"), "ms.grad(g)")
    holds(d.do("n"), "-> local z = y * x")
    holds(d.do("n"), "-> return z:sum()")
    holds(d.do("z"), "8.00000000e+00")
    d.finish("c")
    holds(d.t.prompt(), "1.20000000e+01")
    d.t.leave()


BACKWARD = """local ms = require("lunaria")
local square = ms.custom_vjp(function(x)
  return x * x
end, function(x, y, d)
  local twice = 2 * x
  return twice * d
end)
local Net = ms.nn.Cell:extend("Net")
function Net:construct(x)
  return x * x
end
function Net:bprop(x, out, dout)
  local twice = 2 * x
  return twice * dout
end
local net = Net()
local function f(x)
  local y = square(x) + net(x)
  return y:sum()
end
local r = ms.grad(f)(ms.tensor{3.0})
print("gradient", r:sum():item())
"""


def test_backward_functions_stop_and_are_stepped_through():
    t = script(BACKWARD, "--debug")
    d = Debugged(t)
    d.do("b 6")
    d.do("b 13")
    seen = set()
    for _ in range(2):
        text = d.do("c")
        where = d.do("w")
        holds(where, "in the derivative of f")
        holds(where, "local r = ms.grad(f)(ms.tensor{3.0})")
        holds(d.do("p x:item()"), "3.0")
        if "return twice * d" in text:
            seen.add("custom_vjp")
            same(d.do("p twice:item(), y:item(), d:item()"), "6.0\t9.0\t1.0")
        else:
            holds(text, "in Net:bprop")
            seen.add("bprop")
            holds(d.do("n"), "-> return twice * dout")
            same(d.do("p twice:item()"), "6.0")
    same(seen, {"custom_vjp", "bprop"})
    holds(d.do("r"), '-> print("gradient", r:sum():item())')
    d.finish("c")
    t.expect("gradient\t12.0")
    t.child.wait()
    same(t.child.exitstatus, 0)


def test_a_step_over_a_gradient_comes_to_the_next_line():
    t = script(BACKWARD, "--debug")
    d = Debugged(t)
    d.do("tbreak 21")
    holds(d.do("c"), "-> local r = ms.grad(f)")
    holds(d.do("n"), '-> print("gradient"')
    d.finish("c")
    t.expect("gradient\t12.0")
    t.child.wait()
    t = script(BACKWARD, "--debug")
    d = Debugged(t)
    d.do("tbreak 21")
    d.do("c")
    # Step by step: forwards through f and what it calls, then through the functions that take gradients back.
    lines = [d.do("s").split("-> ")[-1] for _ in range(8)]
    same(lines[:4], ["local y = square(x) + net(x)", "return x * x", "return x * x", "return y:sum()"])
    same(sorted(set(lines[4:])), ["local twice = 2 * x", "return twice * d", "return twice * dout"])
    holds(d.do("s"), '-> print("gradient"')
    d.finish("q")
    t.child.wait()


def test_after_an_error_in_a_backward_function_its_frames_can_be_looked_at():
    t = session()
    t.run("bad = ms.custom_vjp(function(x) return x * x end, function(x, y, d)\nlocal wrong = 5\nreturn d + nothing.field\nend)")
    t.run("function g(x)\nlocal y = bad(x)\nreturn y:sum()\nend")
    text = t.run("ms.grad(g)(ms.tensor{3.0})")
    holds(text, "In[1]:3: attempt to index a nil value (global 'nothing')")
    holds(text, "return d + nothing.field\n               ^^^^^^^")
    holds(text, "In[2]:2 in the derivative of g")
    t.send("%debug\r")
    d = Debugged(t)
    holds(d.start, "In[1]:3 in")
    holds(d.start, "-> return d + nothing.field")
    same(d.do("wrong, y:item()"), "5\t9.0")
    holds(d.do("u"), "In[2]:2 in the derivative of g")
    holds(d.do("w"), "In[3]:1 in main chunk")
    d.finish("q")
    t.prompt()
    same(t.leave(), 0)


def test_tab_completes_variables_and_fields():
    d = stopped("function h(t)\nlocal particular = { field_of_it = 1 }\nbreakpoint()\nreturn t\nend", "h(1)")
    d.t.send("parti\t")
    d.t.expect("particular")
    d.t.send(".field\t")
    d.t.expect("field_of_it")
    d.t.send("\r")
    holds(d.answer(), "1")
    d.finish("c")
    d.t.prompt()
    d.t.leave()


def test_after_an_error_its_frames_can_be_looked_at():
    t = session()
    t.run("function f(n) local m = n + 1; error('stop') end")
    holds(t.run("f(41)"), "stop")
    t.send("%debug\r")
    d = Debugged(t)
    holds(d.start, "In[1]:1 in")
    same(d.do("m"), "42")
    holds(d.do("n"), "the program is over")
    holds(d.do("u"), "In[2]:1")
    d.finish("q")
    t.prompt()
    same(t.leave(), 0)


def test_a_script_is_debugged_from_its_first_line():
    t = script("local x = 1\nlocal function double(v)\n  return v * 2\nend\nx = double(x)\nprint('x is', x)\n", "--debug")
    d = Debugged(t)
    holds(d.start, "-> local x = 1")
    holds(d.do("b 2"), "program.lua:3")
    holds(d.do("tbreak 6"), "program.lua:6")
    holds(d.do("c"), "-> return v * 2")
    holds(d.do("c"), "-> print('x is', x)")
    holds(d.do("b"), "hits: 1")
    assert "once" not in d.do("b")
    d.finish("c")
    t.expect("x is")
    t.child.wait()
    same(t.child.exitstatus, 0)


def test_breakpoints_take_conditions_and_counts():
    t = script("local sum = 0\nfor i = 1, 10 do\n  sum = sum + i\nend\nprint(sum)\n", "--debug")
    d = Debugged(t)
    holds(d.do("b 3, i == 4"), "breakpoint 1")
    holds(d.do("c"), "-> sum = sum + i")
    same(d.do("i, sum"), "4\t6")
    d.do("condition 1")
    d.do("ignore 1 2")
    d.do("c")
    same(d.do("i"), "7")
    holds(d.do("cl 1"), "removed")
    holds(d.do("watch sum"), "sum = 21")
    holds(d.do("c"), "changed: sum: 21 -> 28")
    d.do("unwatch")
    d.finish("c")
    t.expect("55")
    t.child.wait()
    same(t.child.exitstatus, 0)


WATCHED = """local ms = require("lunaria")
local x = ms.ops.zeros({1000})
local t = {inner = {deep = 1}}
t.self = t
local n = 1
x[500] = 1
t.inner.deep = 2
x = x + 0
t.inner = {deep = 2}
n = 1.0
x[0] = 0
print("the end")
"""


def test_watches_compare_values_not_their_texts():
    t = script(WATCHED, "--debug")
    d = Debugged(t)
    d.do("tbreak 6")
    d.do("c")
    for name in ("x", "t", "n"):
        holds(d.do(f"watch {name}"), f": {name} = ")
    text = d.do("c")
    holds(text, "changed: x: ")
    holds(text, "(in a part that is not shown)")
    holds(text, "-> t.inner.deep = 2")
    text = d.do("c")
    holds(text, "changed: t: ")
    holds(text, "deep = 2")
    holds(text, "-> x = x + 0")
    # Neither an equal tensor nor an equal table in its place is a change; a float in place of an integer is one.
    text = d.do("c")
    holds(text, "changed: n: 1 -> 1.0")
    d.finish("c")
    t.expect("the end")
    t.child.wait()
    same(t.child.exitstatus, 0)


def test_watches_see_tensors_of_a_function_under_grad():
    d = stopped("function g(x)\nlocal y = x * 1.0\nbreakpoint()\ny = y * 1.0\nlocal z = y\ny = y * x\nz = z + 0\nreturn y:sum()\nend",
                "ms.grad(g)(ms.ops.ones({1000}) * 2.0)")
    holds(d.do("watch y"), "watch 1: y = ")
    text = d.do("c")
    holds(text, "changed: y: ")
    holds(text, "-> z = z + 0")
    d.finish("c")
    holds(d.t.prompt(), "4.0")
    d.t.leave()


def test_leaving_a_script_is_no_success():
    t = script("print('never printed')\n", "--debug")
    d = Debugged(t)
    d.finish("q")
    t.child.wait()
    text = plain(t.child.read())
    assert "never printed" not in text, text
    same(t.child.exitstatus, 1)


main(globals())
