"""Results, errors, commands and help at the prompt."""
import os
import subprocess
import tempfile

from terminal import IN_GRAPH_MODE, PROGRAM, holds, main, plain, same, session


def test_results_are_shown_without_return_and_silenced_by_a_semicolon():
    t = session()
    same(t.run("1 + 1"), "2")
    same(t.run("'a' .. 'b', nil, {1, x = 2}"), '"ab"\tnil\t{1, x = 2}')
    same(t.run("1 + 1;"), "")
    same(t.run("_ * 10"), "20")
    same(t.run("x = 5"), "")
    same(t.run("local y = x; y + 1"), "6")
    holds(t.run("ms.tensor{1.5, 2}"), "Tensor(shape=[2], dtype=Float32")
    same(t.leave(), 0)


def test_errors_show_the_line_and_keep_the_session():
    t = session()
    text = t.run("local t = nil; return t.field")
    holds(text, "attempt to index a nil value (local 't')")
    holds(text, "return t.field")
    holds(t.run("x = = 1"), "^")
    holds(t.run("ms.ops.matmul(ms.tensor{1, 2}, ms.tensor{1, 2, 3})"), "matmul")
    same(t.run("1 + 1"), "2")
    same(t.leave(), 0)


def test_help_tells_what_is_known():
    t = session()
    holds(t.run("?matmul"), "Example")
    holds(t.run("ms.ops.matmul?"), "matmul(")
    t.run("--- Adds one.\nfunction plus(n) return n + 1 end")
    holds(t.run("?plus"), "Adds one.")
    holds(t.run("??plus"), "return n + 1")
    holds(t.run("help(ms.ops.matmul)"), "Example")
    holds(t.run("?nothing_of_this_name"), "nothing is known")
    t.leave()


def test_commands_do_their_work():
    t = session()
    with tempfile.TemporaryDirectory() as folder:
        script = os.path.join(folder, "script.lua")
        with open(script, "w", encoding="utf-8") as file:
            file.write("from_script = ... print('arg', arg[1])\n")
        holds(t.run(f"%run {script} value"), "arg\tvalue")
        same(t.run("from_script"), '"value"')
        holds(t.run("%who"), "from_script")
        holds(t.run("%time 6 * 7"), "42")
        holds(t.run("%timeit -n 10 -r 2 1 + 1"), "2 repeats of 10 runs")
        same(t.run(f"%cd {folder}"), os.path.realpath(folder))
        same(t.run("%pwd"), os.path.realpath(folder))
        holds(t.run("%ls"), "script.lua")
        holds(t.run("%save saved.lua 1-2"), "cell written")
        holds(t.run("%mode"), "graph" if IN_GRAPH_MODE else "pynative")
        holds(t.run("%mode graph"), "mode: graph")
        holds(t.run("%mode pynative"), "mode: pynative")
        holds(t.run("%lsmagic"), "%history")
        holds(t.run("%history"), "from_script")
        same(t.run("!echo shell"), "shell")
        holds(t.run("!exit 3"), "ended with code 3")
        t.run("%reset")
        same(t.run("from_script"), "nil")
        t.leave()


def test_load_puts_a_file_at_the_prompt():
    t = session()
    with tempfile.TemporaryDirectory() as folder:
        script = os.path.join(folder, "script.lua")
        with open(script, "w", encoding="utf-8") as file:
            file.write("loaded = 6\nloaded * 7\n")
        t.send(f"%load {script}\r")
        t.expect("loaded * 7")
        t.send("\r")
        holds(t.prompt(), "42")
        t.leave()


def test_debug_looks_around_after_an_error():
    t = session()
    t.run("function f(n) local m = n + 1 error('stop') end")
    t.run("f(41)")
    t.send("%debug\r")
    t.expect("debug> ")
    t.send("a\r")
    holds(t.expect("debug> "), "m = 42")
    t.send("p m * 2\r")
    holds(t.expect("debug> "), "84")
    t.send("q\r")
    t.prompt()
    t.leave()


def test_edit_runs_what_the_editor_wrote():
    t = session(env={"EDITOR": "sh -c 'echo edited = 9 > \"$0\"'", "VISUAL": ""})
    t.run("%edit")
    same(t.run("edited"), "9")
    t.leave()


def test_the_startup_file_runs_unless_told_not_to():
    with tempfile.TemporaryDirectory() as home:
        os.makedirs(os.path.join(home, ".config/lunaria"))
        with open(os.path.join(home, ".config/lunaria/init.lua"), "w", encoding="utf-8") as file:
            file.write("from_init = 'here'")
        t = session(home=home)
        same(t.run("from_init"), '"here"')
        t.leave()
        t = session("-E", home=home)
        same(t.run("from_init"), "nil")
        t.leave()


def test_exit_codes_are_those_of_shells():
    same(session().leave(), 0)
    for cell, code in (("exit", 0), ("quit()", 0), ("os.exit(7)", 7), ("error('x')\rexit", 0)):
        t = session()
        t.send(cell + "\r")
        t.child.wait()
        same(t.child.exitstatus, code)


def test_a_session_can_follow_a_script_and_code():
    t = session("-i", "-e", "before = 3")
    same(t.run("before"), "3")
    t.leave()


def test_the_word_help_helps():
    t = session()
    holds(t.run("help"), "help(x) prints what is known about x")
    t.run("help = 3")
    same(t.run("help"), "3")
    t.leave()


def test_a_cell_command_takes_lines_up_to_an_empty_one():
    done = subprocess.run([PROGRAM, "-i"], input="%%sh\necho one\necho two\n\n1 + 1\n", capture_output=True, text=True, timeout=60,
                          check=False)
    same((done.stdout, done.stderr), ("one\ntwo\n2\n", ""))


def test_colours_are_for_terminals_only():
    t = session(color=True)
    t.send("nil + 1\r")
    t.child.expect("attempt to perform")
    holds(t.child.before[-30:], "\x1b[1;31m")
    t.prompt()
    t.leave()
    t = session(color=False)
    t.send("nil + 1\r")
    t.child.expect("attempt to perform")
    assert "\x1b[1;31m" not in t.child.before
    t.prompt()
    t.leave()
    done = subprocess.run([PROGRAM, "-i"], input="'text'\nnil + 1\n%who\n", capture_output=True, text=True, timeout=60,
                          check=False)
    assert "\x1b" not in done.stdout + done.stderr, done
    same(done.stdout, '"text"\nno global variables yet\n')
    holds(done.stderr, "attempt to perform arithmetic on a nil value")
    same(done.returncode, 0)


def test_standard_input_is_a_script_when_nobody_types():
    done = subprocess.run([PROGRAM], input="print(1 + 1)", capture_output=True, text=True, timeout=60, check=False)
    same((done.stdout, done.stderr, done.returncode), ("2\n", "", 0))
    done = subprocess.run([PROGRAM], input="error('x')", capture_output=True, text=True, timeout=60, check=False)
    same(done.returncode, 1)


def test_cells_and_their_results_are_kept_by_number():
    t = session()
    t.run("6 * 7")
    t.run("x = 5")
    same(t.run("Out[1] + x"), "47")
    same(t.run("In[1] .. '|' .. In[2]"), '"6 * 7|x = 5"')
    same(t.run("Out[2], Out[3]"), "nil\t47")
    same(t.run("1 + 1;"), "")
    same(t.run("Out[6]"), "nil")
    t.run("%reset")
    same(t.run("Out[1]"), "nil")
    same(t.run("Out = 3"), "")
    same(t.run("Out"), "3")
    t.leave()


def test_the_lines_of_a_shell_command_become_a_table():
    t = session()
    same(t.run("files = !printf 'a\\nb\\n'"), "")
    same(t.run("#files, files[1], files[2]"), '2\t"a"\t"b"')
    t.run("box = {}")
    holds(t.run("box.lines = !echo one; exit 3"), "ended with code 3")
    same(t.run("box.lines"), '{"one"}')
    holds(t.run("none = !nothing-of-this-name"), "not found")
    t.leave()


def test_memory_of_a_cell():
    t = session()
    text = t.run("%memit y = ms.ones{1024, 1024}")
    holds(text, "peak: 4.0 MiB above the ")
    holds(text, "kept: 4.0 MiB")
    t.leave()


def test_changed_modules_are_loaded_again():
    t = session()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "mine.lua")

        def write(text):
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)

        write("return { n = 1 }")
        t.run(f"package.path = '{folder}/?.lua;' .. package.path")
        same(t.run("%autoreload on"), "autoreload: on")
        t.run("mine = require 'mine'")
        same(t.run("mine.n"), "1")
        write("return { n = 2 }")
        same(t.run("mine.n"), "2")
        write("return { n = ")
        holds(t.run("mine.n"), "mine.lua")
        same(t.run("mine.n"), "2")
        same(t.run("%autoreload off"), "autoreload: off")
        write("return { n = 4 }")
        same(t.run("mine.n"), "2")
        holds(t.run("%autoreload maybe"), "usage: %autoreload [on|off]")
    t.leave()


def test_the_debugger_starts_after_an_error_where_that_is_wanted():
    t = session()
    t.run("function f(a) local b = a * 2; error('no') end")
    holds(t.run("%pdb"), "pdb: on")
    t.send("f(4)\r")
    text = t.expect("debug> ")
    holds(text, "no")
    t.send("p b\r")
    holds(t.expect("debug> "), "8")
    t.send("quit\r")
    holds(t.prompt(), "no")
    holds(t.run("%pdb off"), "pdb: off")
    holds(t.run("f(4)"), "no")
    t.leave()


def shown(text):
    """The lines as a terminal shows them: what follows a carriage return is written over what stands there."""
    rows = []
    for line in text.replace("\r\n", "\n").split("\n"):
        row = ""
        for part in line.split("\r"):
            row = part + row[len(part):]
        rows.append(row.rstrip())
    return rows


def test_progress_is_drawn_in_place_on_a_terminal_and_in_lines_elsewhere():
    code = "for i in require('lunaria').progress(200, {desc = 'work'}) do local t = os.clock() while os.clock() - t < 0.003 do end end"
    t = session()
    t.send(code + "\r")
    text = t.prompt()
    holds(text, "work:")
    holds(text, "100%|########################| 200/200")
    assert plain(t.child.before).count("\n") <= 3
    t.leave()
    done = subprocess.run([PROGRAM, "-e", code], capture_output=True, text=True, timeout=60, check=False)
    lines = done.stderr.splitlines()
    same(len(lines), 10)
    holds(lines[0], "work:  10% 20/200")
    holds(lines[9], "work: 100% 200/200")
    assert "\r" not in done.stderr


def test_what_callbacks_print_stands_above_the_bar():
    t = session()
    t.run("net, batches = ms.nn.Dense(2, 1), {}")
    t.run("for i = 1, 4 do batches[i] = { ms.ones { 1, 2 }, ms.ones { 1, 1 } } end")
    t.run("model = ms.Model(net, ms.nn.MSELoss(), ms.nn.SGD(net:trainable_params()))")
    t.send("model:train(2, batches, ms.train.LossMonitor(2))\r")
    t.prompt()
    rows = shown(t.child.before)
    for epoch in (1, 2):
        for step in (2, 4):
            same(sum(row.startswith(f"epoch: {epoch} step: {step}, loss is ") for row in rows), 1)
        same(sum(row.startswith(f"epoch {epoch}/2: 100%|########################| 4/4") for row in rows), 1)
    same([row for row in rows if "|" in row and "100%" not in row or "|" in row and "loss" in row], [])
    t.leave()


main(globals())
