"""Ctrl-C: at the prompt, in Lua code of every kind, in operators; the state stays."""
import os
import time

from terminal import holds, main, same, session


def stopped(cell, setup=None, limit=1.0):
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


def test_protected_calls_cannot_swallow_it():
    stopped("while true do pcall(function() while true do end end) end")


def test_it_stops_coroutines():
    stopped("local f = coroutine.wrap(function() while true do end end) f()")
    stopped("while true do coroutine.resume(coroutine.create(function() while true do end end)) end")


def test_it_stops_loops_of_operators():
    stopped("while true do x = x + 1 end", "x = ms.ops.ones({100, 100})")


def test_it_stops_operators_that_take_seconds():
    for setup, call in [
        ("a = ms.ops.rand({2500, 2500})", "svd(a)"),
        ("a = ms.ops.rand({2500, 2500}) a = a + a:t()", "eigh(a)"),
        ("a = ms.ops.rand({1500, 1500})", "eig(a)"),
        ("a = ms.ops.rand({3500, 3500})", "qr(a)"),
        ("a = ms.ops.rand({5000, 5000})", "inverse(a)"),
        ("a = ms.ops.eye(7000)", "cholesky(a)"),
        ("a = ms.ops.rand({50000000})", "topk(a, 5000000)"),
        ("a = ms.ops.rand({300000000})", "cumsum(a, 0)"),
        ("a = ms.ops.rand({200000000})", "nonzero(a)"),
    ]:
        stopped("while true do x = ms.ops." + call + " end", setup + ";")


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
