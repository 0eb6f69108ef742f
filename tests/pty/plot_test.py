"""Plots in a terminal: as wide as it is, in its colours, as sixels where it draws them, and drawn in place while they grow."""
# Eager mode only: plots are not compiled.
import re

from terminal import holds, main, same, session


def test_a_plot_at_the_prompt_is_as_wide_as_the_terminal():
    t = session(columns=60)
    text = t.run("ms.plot.line({1, 4, 9}, {title = 'squares'})")
    holds(text, "squares")
    lines = [line.rstrip("\r") for line in text.split("\n")]
    assert any("\u2800" <= c <= "\u28ff" for c in text), text
    assert 50 <= max(len(line) for line in lines) <= 60, [len(line) for line in lines]
    holds(t.run("display(ms.plot.bar({'cats', 'dogs'}, {3, 6}))"), "dogs │")
    same(t.leave(), 0)


def test_series_have_the_terminals_colours():
    t = session(color=True)
    t.send("ms.plot.line{y = {down = {3, 2}, up = {1, 2}}}\r")
    t.child.expect_exact("\x1b[38;5;67m")
    t.child.expect_exact("\x1b[38;5;208m■\x1b[0m up")
    t.prompt()
    same(t.leave(), 0)


def test_sixels_are_sent_to_terminals_that_draw_them():
    t = session(color=True, env={"LUNARIA_GRAPHICS": "sixel"})
    t.send("require('lunaria.rendering').has_svg()\r")
    has_svg = "true" in t.prompt()
    t.send("ms.plot.line{1, 2}\r")
    if has_svg:
        t.child.expect_exact("\x1bP0;1;0q\"1;1;640;400")
        t.child.expect_exact("\x1b\\")
    t.prompt()
    same(t.leave(), 0)


def test_a_live_curve_is_drawn_in_place():
    t = session()
    t.send("c = ms.plot.live{title = 'loss'} for i = 1, 3 do c:add(i, 1 / i) "
           "local s = ms.clock() while ms.clock() - s < 3e8 do end end\r")
    for _ in range(2):
        t.child.expect(re.compile(r"\x1b\[\d+A\r\x1b\[J"))
    t.prompt()
    same(t.run("#c:plot():vega().layer[1].data.values"), "3")
    same(t.leave(), 0)


if __name__ == "__main__":
    main(globals())
