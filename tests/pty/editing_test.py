"""Typing: several lines, pasting, completion, history."""
# Eager mode only: nothing of it computes.
import os
import tempfile

from terminal import holds, main, same, session

UP, DOWN, LEFT, HOME = "\x1b[A", "\x1b[B", "\x1b[D", "\x01"


def test_enter_goes_on_until_the_text_is_complete():
    t = session()
    t.send("function f(n)\r")
    t.expect("  ")
    t.send("return n * 2\r")
    t.send("end\r")
    t.prompt()
    same(t.run("f(21)"), "42")
    t.send("f(\r")
    t.send("3)\r")
    holds(t.prompt(), "6")
    t.leave()


def test_the_words_that_close_a_block_stand_under_the_one_that_opens_it():
    t = session()
    t.send("for i = 1, 2 do\rif i == 1 then\r")
    t.send("y = i\relse\ry = 0\rend\rend\r")
    t.prompt()
    t.send("In[1]\r")
    holds(t.prompt(), r'"for i = 1, 2 do\n  if i == 1 then\n    y = i\n  else\n    y = 0\n  end\nend"')
    t.leave()


def test_what_is_typed_has_colours_and_stays_the_same_text():
    t = session(color=True)
    t.send("for i = 1, 2 do z = 'text' -- why\r")
    t.child.expect_exact("\x1b[90m-- why")
    before = t.child.before
    for part in ("\x1b[35mfor\x1b[0m", "\x1b[36m1\x1b[0m", "\x1b[35mdo\x1b[0m", "\x1b[32m'text'\x1b[0m"):
        holds(before, part)
    t.send("end\r")
    t.prompt()
    t.send("z .. '" + "long " * 40 + "'" + LEFT * 100 + "\x7f\x7f\x05\r")
    holds(t.prompt().replace("\n", ""), "textlong long")
    t.leave()


def test_a_line_above_can_be_changed_before_the_end():
    t = session()
    t.send("for i = 1, 2 do\r")
    t.send("print('a' .. i)")
    t.send(UP + HOME + "\x1b[C" * 11 + "\x04" + "3")  # the limit: 2 becomes 3
    t.send(DOWN + "\x05\r" + "end\r")
    holds(t.prompt(), "a1\na2\na3")
    t.leave()


def test_lines_can_be_edited():
    t = session()
    t.send("1 + 2" + LEFT + "\x7f" + "10 +\r")
    holds(t.prompt(), "\n13")
    t.leave()


def test_pasted_lines_are_one_cell():
    t = session()
    t.send("\x1b[200~local a = 1\nlocal b = 2\na + b\x1b[201~")
    t.send("\r")
    holds(t.prompt(), "3")
    t.leave()


def test_tab_completes_names_fields_methods_options_files_and_commands():
    t = session()
    t.run("alphabet = {letters = 26, object = {inner = 5}}")
    t.send("alphab\t.lett\t\r")
    holds(t.prompt(), "26")
    t.send("alphabet.obj\t.in\t\r")
    holds(t.prompt(), "5")
    t.run("text = 'abc'")
    t.send("text:upp\t()\r")
    holds(t.prompt(), '"ABC"')
    t.run("x = ms.tensor{{1.0, 2.0}, {3.0, 4.0}}")
    t.send("x:matm\t(x)\r")
    holds(t.prompt(), "2.20000000e+01")
    t.send("ms.ops.softmax(x, {ax\t-1}).shape\r")
    holds(t.prompt(), "(2, 2)")
    t.send("%tim\t\t")
    t.expect("%timeit")
    t.interrupt()
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "some_file.txt"), "w", encoding="utf-8") as file:
            file.write("contents")
        t.send(f"io.open('{folder}/some\t'):read('a')\r")
        holds(t.prompt(), '"contents"')
    t.leave()


def test_tab_at_the_start_of_a_line_indents():
    t = session()
    t.send("do\r\tkept = 4\rend\r")
    t.prompt()
    same(t.run("kept"), "4")
    t.leave()


def test_history_stays_across_sessions_with_its_line_breaks():
    with tempfile.TemporaryDirectory() as home:
        t = session(home=home)
        t.run("100 + 1")
        t.send("\x1b[200~for i = 1, 2 do\n  print('again', i)\nend\x1b[201~\r")
        t.prompt()
        t.leave()
        t = session(home=home)
        t.send(UP)
        t.expect("end")
        t.send("\r")
        holds(t.prompt(), "again\t1\nagain\t2")
        # Up moves within the three lines first, then to the entry before.
        t.send(UP + UP + UP + UP)
        t.send("\r")
        holds(t.prompt(), "101")
        t.leave()
        path = os.path.join(home, ".local/state/lunaria/history")
        same(os.stat(path).st_mode & 0o777, 0o600)


def test_history_can_be_searched():
    with tempfile.TemporaryDirectory() as home:
        t = session(home=home)
        t.run("needle = 42")
        t.run("other = 1")
        t.leave()
        t = session(home=home)
        t.send("\x12need")
        t.expect("needle = 42")
        t.send("\r")
        t.prompt()
        same(t.run("needle"), "42")
        t.leave()


main(globals())
