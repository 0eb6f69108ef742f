"""Ctrl-C: at the prompt, in Lua code of every kind, in operators; the state stays."""
import os
import sys
import time
from pathlib import Path

from terminal import IN_GRAPH_MODE, INTERRUPT_LIMIT, holds, main, same, session

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "check"))
import today


def some(rows):
    """Of lists of operators a third a day; in graph mode a fifth, since they are stopped in the same way in both modes."""
    return [row for k, row in enumerate(rows) if today.is_of_today(k, 5 if IN_GRAPH_MODE else 3)]


def stopped(cell, setup=None, limit=INTERRUPT_LIMIT):
    # ThreadSanitizer holds a signal back until the next call of a library: here, for memory.
    if "TSAN_OPTIONS" in os.environ:
        cell = cell.replace("do end", "do local t = {} end")
    t = session()
    t.run("kept = 7")
    if setup:
        t.run(setup)
    t.send(cell + "\r")
    time.sleep(0.4)
    holds(t.interrupt(limit), "interrupted!")
    same(t.run("kept"), "7")
    same(t.leave(), 0)


def test_at_the_prompt_it_clears_the_text():
    t = session()
    t.send("broken (")
    t.interrupt()
    same(t.run("1 + 1"), "2")
    t.send("function f(\r")
    t.send("a,")
    t.interrupt()
    same(t.run("2 + 2"), "4")
    t.interrupt()
    t.interrupt()
    same(t.run("3 + 3"), "6")
    t.leave()


def test_it_ends_a_search_in_the_history():
    t = session()
    t.run("needle = 1")
    t.send("\x12need")
    t.expect("needle")
    t.interrupt()
    same(t.run("1 + 1"), "2")
    t.leave()


def test_it_stops_an_endless_loop():
    stopped("while true do end")


CLOSING = """function closing(body)
  return setmetatable({}, { __close = function() body() end })
end
function until_stopped(body)
  local variable <close> = closing(body)
  while true do end
end"""


def test_variables_are_closed_first():
    t = session()
    t.run(CLOSING)
    t.send("pcall(until_stopped, function() local n = 0 for i = 1, 100000 do n = n + i end closed = n end)\r")
    time.sleep(0.4)
    holds(t.interrupt(), "interrupted!")
    same(t.run("closed"), "5000050000")
    # With operators, coroutines and errors of their own, in loops and in functions that wait for others.
    t.run("ms = require 'lunaria'")
    t.send("until_stopped(function() local f = coroutine.wrap(function() return ms.ones({ 9 }):sum():item() end) closed = f() error('own') end)\r")
    time.sleep(0.4)
    t.interrupt()
    same(t.run("closed"), "9.0")
    t.run("list = {} function add(k) return closing(function() list[#list + 1] = k end) end")
    t.send("(function() local a <close> = add(1) for _ in next, {1}, nil, add(2) do local b <close> = add(3) while true do end end end)()\r")
    time.sleep(0.4)
    holds(t.interrupt(), "interrupted!")
    same(t.run("table.concat(list, ' ')"), '"3 2 1"')
    same(t.run("1 + 1"), "2")
    t.leave()


def test_a_second_one_ends_what_closes():
    t = session()
    t.run(CLOSING)
    t.send("until_stopped(function() begun = true while true do end end)\r")
    time.sleep(0.4)
    t.send("\x03")
    time.sleep(0.4)
    holds(t.interrupt(), "interrupted!")
    same(t.run("begun"), "true")
    same(t.run("1 + 1"), "2")
    t.leave()


def test_protected_calls_cannot_swallow_it():
    stopped("while true do pcall(function() while true do end end) end")


def test_it_stops_coroutines():
    stopped("local f = coroutine.wrap(function() while true do end end) f()")
    stopped("while true do coroutine.resume(coroutine.create(function() while true do end end)) end")


def test_it_stops_loops_of_operators():
    stopped("while true do x = x + 1 end", "x = ms.ops.ones({100, 100})")


def test_it_stops_operators_that_take_seconds():
    # Under the sanitizers everything takes longer, and nothing is larger than a gigabyte.
    sanitized = any(name in os.environ for name in ("ASAN_OPTIONS", "TSAN_OPTIONS"))
    many = 100000000 if sanitized else 300000000
    for setup, call in some([
        ("a = ms.ops.rand({2500, 2500})", "svd(a)"),
        ("a = ms.ops.rand({2500, 2500}) a = a + a:t()", "eigh(a)"),
        ("a = ms.ops.rand({1500, 1500})", "eig(a)"),
        ("a = ms.ops.rand({3500, 3500})", "qr(a)"),
        ("a = ms.ops.rand({5000, 5000})", "inverse(a)"),
        ("a = ms.ops.eye(7000)", "cholesky(a)"),
        ("a = ms.ops.rand({50000000})", "topk(a, 5000000)"),
        (f"a = ms.ops.rand({{{many}}})", "cumsum(a, 0)"),
        (f"a = ms.ops.rand({{{many * 2 // 3}}})", "nonzero(a)"),
        ("a = ms.ops.rand({4000037})", "fft(a)"),
        ("a = ms.ops.rand({1 << 25})", "rfft(a)"),
        ("a = ms.ops.rand({30000000})", "sort(a)"),
        ("a = ms.ops.randint(0, 1000000, {30000000})", "unique(a)"),
        ("a = ms.ops.randint(0, 100000000, {50000000}) b = ms.ops.rand({100000000})", "gather(b, a, 0)"),
        ("", "randperm(50000000)"),
        ("", "randint(0, 10, {100000000})"),
        ("a = ms.tensor{2.0}", "gamma({50000000}, a, a)"),
        ("a = ms.ops.rand({5000000})", "multinomial(a, 1000000)"),
    ]):
        stopped("while true do x = ms.ops." + call + " end", setup + ";")


def test_it_stops_lowering_which_gives_back_what_it_wrote():
    t = session()
    t.run("w, steps = ms.Parameter(ms.ops.ones({400, 400}), 'w'), 0")
    t.run("function step(x) for i = 1, 4000 do steps = steps + 1 w:add_(x) x = ms.ops.matmul(x, x) * 1e-3 end return x end")
    t.run("f = ms.jit(step) x = ms.ops.ones({400, 400});")
    t.send("f:lower(x)\r")
    time.sleep(1)
    holds(t.interrupt(5.0), "interrupted!")
    same(t.run("steps"), "0")
    same(t.run("w:sum():item()"), "160000.0")
    t.leave()


def test_it_stops_large_convolutions():
    for setup, call in some([
        ("a = ms.ops.rand({1, 64, 500, 500}) b = ms.ops.rand({64, 64, 15, 15})", "conv2d(a, b)"),
        ("a = ms.ops.rand({64, 256, 28, 28}) b = ms.ops.rand({512, 256, 3, 3})", "conv2d(a, b)"),
        ("a = ms.ops.rand({1, 512, 50000}) b = ms.ops.rand({512, 512, 9})", "conv1d(a, b)"),
        ("a = ms.ops.rand({1, 64, 30, 60, 60}) b = ms.ops.rand({64, 64, 5, 5, 5})", "conv3d(a, b)"),
        ("a = ms.ops.rand({1, 1024, 300, 300}) b = ms.ops.rand({1024, 1024, 1, 1})", "conv2d(a, b)"),
        ("a = ms.ops.rand({1, 64, 500, 500}) b = ms.ops.rand({64, 64, 15, 15})",
         "conv_input_grad(a, b, {1, 64, 514, 514}, 1, 0, 1, 1)"),
        ("a = ms.ops.rand({1, 64, 514, 514}) b = ms.ops.rand({1, 64, 500, 500})",
         "conv_weight_grad(a, b, {64, 64, 15, 15}, 1, 0, 1, 1)"),
        ("a = ms.ops.rand({8, 64, 40, 40}):double() b = ms.ops.rand({64, 64, 7, 7}):double()", "conv2d(a, b)"),
    ]):
        stopped("while true do x = ms.ops." + call + " end", setup + ";")


def test_it_stops_reading_and_writing_and_takes_its_name_from_that():
    stopped("x = ms.json.decode(s) while true do end",
            "t = {} for i = 1, 5000000 do t[i] = i + 0.5 end s = ms.json.encode(t) t = nil;")
    stopped("while true do s = ('x'):rep(100000000) s = s .. s end")
    # Asked when the buffer has to grow, each time by all that has been read.
    stopped("x = io.open('/dev/zero'):read('a')", limit=3.0)
    t = session()
    t.run("x = ms.ops.rand({150000000});")
    for kind in ["npy", "npz", "safetensors"]:
        path = f"{t.home}/large.{kind}"
        t.send(f"while true do ms.save('{path}', {{x = x}}) end\r" if kind != "npy" else
               f"while true do ms.save('{path}', x) end\r")
        time.sleep(0.4)
        # The system may have to write out what the file has so far before anybody is asked again.
        holds(t.interrupt(5.0), "interrupted!")
    t.leave()


def test_it_stops_functions_of_the_table_library():
    fill = "t = {} for i = 1, 3000000 do t[i] = math.random() end;"
    stopped("while true do table.sort(table.move(t, 1, #t, 1, {})) end", fill)
    stopped("table.sort(t, function(a, b) return a > b end) while true do end", fill)
    stopped("while true do x = table.concat(t, ', ') end", fill)
    stopped("while true do table.move({}, 1, 1 << 40, 2) end")
    t = session()
    t.run("t = {} for i = 1, 3000000 do t[i] = (i * 7919) % 3000000 end;")
    t.send("while true do table.sort(t, function(a, b) return a < b end) table.sort(t, function(a, b) return a > b end) end\r")
    time.sleep(0.4)
    holds(t.interrupt(), "interrupted!")
    # Whatever the order: each is still there once.
    t.run("s, n = {}, 0 for i = 1, #t do if not s[t[i]] then s[t[i]] = true n = n + 1 end end")
    same(t.run("n"), "3000000")
    t.leave()


def test_it_stops_a_flood_of_output():
    t = session()
    t.run("kept = 7")
    t.send("while true do print('flood') end\r")
    time.sleep(0.3)
    holds(t.interrupt(3.0), "interrupted!")
    same(t.run("kept"), "7")
    t.leave()


def test_it_stops_a_command_and_its_code():
    stopped("%time while true do end")
    stopped("%timeit while true do end")


def test_it_leaves_the_debugger():
    t = session()
    t.run("error('x')")
    t.send("%debug\r")
    t.expect("debug> ")
    t.interrupt()
    same(t.run("1 + 1"), "2")
    t.leave()


def test_it_stops_waiting_for_input():
    t = session()
    t.send("io.read()\r")
    time.sleep(0.3)
    t.interrupt()
    same(t.run("1 + 1"), "2")
    t.leave()


main(globals())
