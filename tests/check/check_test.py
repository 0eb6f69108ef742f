"""The checks and the counting of tests are programs as well: each is shown something wrong here and must say so."""
import contextlib
import io
import os
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import check
import complexity as lizard
import fuzz
import junit
import quick
import summary
import today


class Counting(unittest.TestCase):
    def test_reads_googletest_and_the_lua_harness(self):
        self.assertEqual(summary.inside("[       OK ] A.b (0 ms)\n[  FAILED  ] A.c (3 ms)\n[  FAILED  ] A.c\n"), (1, 1))
        self.assertEqual(summary.inside("talk\n12 passed, 3 failed\n4 passed, 0 failed (2 waiting)\n"), (16, 3))

    def test_a_report_survives_the_round_trip(self):
        with tempfile.TemporaryDirectory() as folder:
            junit.write(f"{folder}/r.xml", "s", [("good", "fine\x1b[0m <&>", True), ("bad", "", False)])
            self.assertEqual(list(junit.read(f"{folder}/r.xml")), [("good", "fine[0m <&>", "passed"), ("bad", "", "failed")])

    def test_a_skip_needs_a_reason(self):
        case = '<testsuite><testcase name="t" status="notrun"><skipped message="{}"/><system-out>{}</system-out></testcase></testsuite>'
        for message, text, result in (("SKIP_RETURN_CODE=77", "skipped: no display\n", (0, "0 passed, 0 failed")),
                                      ("SKIP_RETURN_CODE=77", "skipped:\n", (1, "0 passed, 1 failed")),
                                      ("Unable to find executable: t", "skipped: no display\n", (1, "0 passed, 1 failed"))):
            with tempfile.TemporaryDirectory() as folder:
                Path(f"{folder}/r.xml").write_text(case.format(message, text))
                self.assertEqual(self.count(f"{folder}/r.xml"), result)

    def test_what_a_failed_test_printed_is_shown_again(self):
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as out:
            junit.write(f"{folder}/r.xml", "s", [("bad", "\n".join(f"line {i}" for i in range(100)), False), ("good", "calm", True)])
            summary.main([f"{folder}/r.xml"])
        shown = out.getvalue().splitlines()
        self.assertEqual((shown[0], shown[1], shown[-2]), ("bad: failed", "    line 75", "    line 99"))
        self.assertNotIn("    calm", shown)

    def count(self, *reports):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            code = summary.main(reports)
        return code, out.getvalue().splitlines()[-1]

    def test_missing_reports_and_crashes_fail(self):
        with tempfile.TemporaryDirectory() as folder:
            report = f"{folder}/r.xml"
            junit.write(report, "s", [("crashed", "[       OK ] A.b (0 ms)\n", False)])
            self.assertEqual(self.count(report), (1, "1 passed, 1 failed"))
            self.assertEqual(self.count(f"{folder}/none.xml"), (1, "0 passed, 1 failed"))
            junit.write(report, "s", [("liar", "1 passed, 1 failed\n", True)])
            self.assertEqual(self.count(report), (1, "1 passed, 1 failed"))
            junit.write(report, "s", [("fine", "", True)])
            self.assertEqual(self.count(report), (0, "1 passed, 0 failed"))


class Fuzzing(unittest.TestCase):
    def test_a_week_comes_to_every_target(self):
        names = [f"reader_{i}" for i in range(19)]
        for first in (0, 5, 739000):
            days = [fuzz.of_the_day(names, first + i) for i in range(7)]
            self.assertEqual({len(set(day)) for day in days}, {fuzz.A_DAY})
            self.assertEqual(set().union(*days), set(names))
        self.assertLessEqual(len(fuzz.all_names()), 7 * fuzz.A_DAY)
        self.assertEqual(sorted(fuzz.of_the_day(["a", "b"], 3)), ["a", "b"])


class Today(unittest.TestCase):
    def of_day(self, day):
        with mock.patch.dict(os.environ, {"LUNARIA_TEST_DAY": day}):
            return {number for number in range(20) if today.is_of_today(number, 7)}

    def test_as_many_days_as_parts_come_to_every_case_once(self):
        days = [self.of_day(str(20800 + i)) for i in range(7)]
        self.assertEqual(sum(map(len, days)), 20)
        self.assertEqual(set().union(*days), set(range(20)))
        self.assertEqual(self.of_day(""), set(range(20)))


class FakeGraph:
    """A build of one program from one source, its header and the library in Lua."""
    def __init__(self, folder):
        self.build = Path(folder) / "build"
        (self.build / "loaded/lua").mkdir(parents=True)

    def short(self, path):
        return Path(path).relative_to(self.build.parent).as_posix()

    def files_of(self, program):
        return {"core/io/npy.cpp", "core/io/npy.h", "interpreter/lua/lunaria/plot.lua"} if program == "lunaria" else set()


class Quick(unittest.TestCase):
    def test_a_change_reaches_what_is_built_from_it_or_names_it(self):
        with tempfile.TemporaryDirectory() as folder:
            graph = FakeGraph(folder)
            def near(name, script, *changes):
                return quick.distance(name, [f"{folder}/build/lunaria", script], set(changes), graph)
            script = "tests/lua/grad_test.lua"
            self.assertEqual(near("lua/grad", script, script), 0)
            self.assertEqual(near("lua/grad", script, "tests/lua/harness.lua"), 1)
            self.assertEqual(near("lua/npy", script, "core/io/npy.h"), 1)
            self.assertEqual(near("lua/grad", script, "core/io/npy.h"), 2)
            self.assertIsNone(near("lua/grad", script, "kernel/wire.cpp", "tests/lua/plot/plot_test.lua"))
            # Of the library in Lua, what the test loaded.
            library = "interpreter/lua/lunaria/plot.lua"
            self.assertEqual(near("lua/grad", script, library), 2)
            (graph.build / "loaded/lua/grad").write_text("interpreter/lua/lunaria/nn.lua\n")
            self.assertIsNone(near("lua/grad", script, library))
            self.assertEqual(near("lua/grad", script, library, "core/io/npy.cpp"), 2)

    def test_the_nearest_come_first_and_what_does_not_fit_is_left_out(self):
        reached = [(1, 5.0, "b"), (0, 50.0, "a"), (2, 1.0, "d"), (1, 100.0, "c")]
        self.assertEqual(quick.choose(reached, 60.0), (["a", "b", "d"], 56.0))
        self.assertEqual(quick.choose([(0, 99.0, "a")], 60.0), (["a"], 99.0))


class Checks(unittest.TestCase):
    """Each check on a small tree of its own."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.real, check.ROOT = check.ROOT, Path(self.folder.name)

    def tearDown(self):
        check.ROOT = self.real
        self.folder.cleanup()

    def complaints(self, which, path, content):
        target = check.ROOT / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content)
        found = list(which())
        target.unlink()
        return len(found)

    def test_operators_are_not_known_by_their_names(self):
        entry = check.ROOT / "core/ops/light.cpp"
        entry.parent.mkdir(parents=True)
        entry.write_text('ops.add("shine(x: float)"); ops.add("glow(x: float)"); ops.add("beam(x: float)");')
        primitives = check.ROOT / "jit/language.cpp"
        primitives.parent.mkdir(parents=True, exist_ok=True)
        primitives.write_text('r.add("hold(x: any)"); r.add("hold_on(x: any)");')
        for path, line, count in (
                ("jit/vm/a.cpp", 'if (op.name() == "shine") f();', 1), ("jit/vm/a.cpp", 'if (text == "shine") f();', 0),
                ("jit/graph/a.cpp", 'emit("glow", {x});', 1), ("jit/graph/a.cpp", 'registry().get("glow");', 0),
                ("interpreter/jit/a.cpp", 'kSafe[] = {"shine", "glow", "beam"};', 1),
                ("jit/vm/a.cpp", 'for (auto op : {"shine", "glow", "beam"}) note(op);', 0),
                ("kernel/a.cpp", 'if (node.op->name() != "hold") f();', 1),
                ("jit/vm/a.cpp", 'if (name.starts_with("hold_")) f();', 1),
                ("backends/cpu/a.cpp", 'if (how == "hold") f();', 0)):
            self.assertEqual(self.complaints(check.operator_facts, path, line), count, line)

    def test_complexity(self):
        if lizard.measure(check.ROOT, ["."]) is None:
            self.skipTest("lizard is not installed")
        tangled = "int f(int x) {\n" + "if (x) ++x;\n" * 25 + "return x;\n}\n"
        self.assertEqual(self.complaints(check.complexity, "core/a.cpp", tangled), 1)
        self.assertEqual(self.complaints(check.complexity, "core/a.cpp", tangled.replace("if (x) ++x;\n", "", 1)), 0)
        long = "void Long::f() {\n" + "g();\n" * 600 + "}\n"
        self.assertEqual(self.complaints(check.complexity, "core/a.cpp", long), 0)
        self.assertEqual(self.complaints(check.complexity, "core/a.cpp", long + long.replace("f()", "h()")), 1)
        friend = long + long.replace("Long::", "Other::")
        self.assertEqual(self.complaints(check.complexity, "core/a.cpp", friend), 0)
        (check.ROOT / "core/a.h").write_text("class Long {\n  private:\n    friend class Other;\n};\nclass Last {};\n")
        self.assertEqual(self.complaints(check.complexity, "core/a.cpp", friend), 1)

    def test_known_complexity_may_only_fall(self):
        if lizard.measure(check.ROOT, ["."]) is None:
            self.skipTest("lizard is not installed")
        known = check.ROOT / lizard.KNOWN
        known.parent.mkdir(parents=True)
        known.write_text("core/a.cpp f 27\n")
        tangled = "int f(int x) {\n" + "if (x) ++x;\n" * 26 + "return x;\n}\n"
        self.assertEqual(self.complaints(check.complexity, "core/a.cpp", tangled), 0)
        self.assertEqual(self.complaints(check.complexity, "core/a.cpp", tangled.replace("if", "if (x) ++x;\nif", 1)), 1)
        self.assertEqual(self.complaints(check.complexity, "core/a.cpp", "int f(int x) { return x; }\n"), 1)

    def test_layers(self):
        self.assertEqual(self.complaints(check.layering, "core/a.cpp", '#include "jit/b.h"\n'), 1)
        self.assertEqual(self.complaints(check.layering, "core/a.cpp", '#include "b.h"\n'), 1)
        self.assertEqual(self.complaints(check.layering, "jit/a.cpp", '#include "core/b.h"\n'), 0)
        self.assertEqual(self.complaints(check.layering, "core/io/a.cpp", '#include "core/data/b.h"\n'), 1)
        self.assertEqual(self.complaints(check.layering, "core/data/a.cpp", '#include "core/io/b.h"\n'), 0)

    def test_folders_have_an_order(self):
        for folder, target in (("b", "c"), ("c", "a")):
            path = check.ROOT / f"core/{folder}/{folder}.h"
            path.parent.mkdir(parents=True)
            path.write_text(f'#include "core/{target}/{target}.h"\n')
        limits, check.CIRCLES = check.CIRCLES, {"core": 0}
        with contextlib.redirect_stdout(io.StringIO()):
            self.assertEqual(self.complaints(check.folder_order, "core/a/a.h", '#include "core/b/b.h"\n'), 1)
            self.assertEqual(self.complaints(check.folder_order, "core/a/a.h", '#include "core/a/c.h"\n'), 0)
            check.CIRCLES = {"core": 3}
            self.assertEqual(self.complaints(check.folder_order, "core/a/a.h", '#include "core/b/b.h"\n'), 0)
            self.assertEqual(self.complaints(check.folder_order, "core/a/a.h", '#include "core/a/c.h"\n'), 1)
        check.CIRCLES = limits

    def test_large_folders_have_a_head(self):
        for folder in ("core/a", "tests/core/a", "tests/b"):
            (check.ROOT / folder).mkdir(parents=True)
            for n in range(10):
                (check.ROOT / folder / f"{n}.h").write_text("")
        self.assertEqual(list(check.heads()), [])
        self.assertEqual(self.complaints(check.heads, "core/a/more.h", ""), 1)
        self.assertEqual(self.complaints(check.heads, "tests/core/a/more.h", ""), 0)
        self.assertEqual(self.complaints(check.heads, "tests/b/more.h", ""), 1)
        (check.ROOT / "core/a/README.md").write_text("")
        self.assertEqual(self.complaints(check.heads, "core/a/more.h", ""), 0)

    def test_heads_and_comments_name_things(self):
        for path, content, count in (
                ("core/a.cpp", "// What is kept.\nint a;\n", 1), ("core/a.cpp", "// Values that are kept.\nint a;\n", 0),
                ("core/a.cpp", "int a;\n// What is kept.\nint b;\n", 0), ("core/a.h", "/* How it runs */\n", 1),
                ("tests/core/a.cpp", "// What is kept.\n", 1), ("core/a.cpp", "// Whatever is kept.\n", 0),
                ("jit/a.cpp", "int a;  // Whoever has it\n", 1), ("jit/a.cpp", "// Values.\n// Nobody,\n// nobody.\n", 1),
                ("jit/a.cpp", "// An error of the user\n// who called it.\n", 0), ("jit/a.cpp", "// whose value it is\n", 0),
                ("jit/a.cpp", 'f("// nobody", R"(// nobody)", 1\'000\'000);  // "somebody"\n', 1),
                ("interpreter/lua/a.lua", "#!/usr/bin/env lunaria\n-- What is kept.\n", 1),
                ("interpreter/lua/a.lua", "local a = '-- nobody'  --[[ somebody\nelse ]]\n", 1),
                ("interpreter/lua/a.lua", "-- Names that %who lists.\nlocal a = [[\n-- nobody ]]\n", 0)):
            self.assertEqual(self.complaints(check.wording, path, content), count, content)

    def test_devices_are_not_named(self):
        self.assertEqual(self.complaints(check.devices, "core/a.cpp", 'if (device->name() == "GPU") return;\n'), 1)
        self.assertEqual(self.complaints(check.devices, "interpreter/a.cpp", '#include "backends/cpu/device.h"\n'), 1)
        self.assertEqual(self.complaints(check.devices, "interpreter/a.cpp", '#include "backends/devices.h"\n'), 0)

    def test_third_party_headers(self):
        self.assertEqual(self.complaints(check.third_party, "core/a.cpp", "#include <lua.hpp>\n"), 1)
        self.assertEqual(self.complaints(check.third_party, "interpreter/a.cpp", "#include <lua.hpp>\n"), 0)

    def test_sizes_spaces_and_words(self):
        self.assertEqual(self.complaints(check.file_sizes, "core/a.cpp", "\n" * 701), 1)
        self.assertEqual(self.complaints(check.file_sizes, "core/a.cpp", "\n" * 700), 0)
        self.assertEqual(self.complaints(check.plain_text, "core/a.cpp", "int a; \nint b;"), 2)
        self.assertEqual(self.complaints(check.strange_words, "core/a.cpp", "// see /ro" + "ot/x and TO" + "DO\n"), 2)

    def test_the_map_of_the_house(self):
        (check.ROOT / "core").mkdir()
        self.assertEqual(self.complaints(check.house_map, ".github/CONTRIBUTING.md", "| `core/` | tensors |\n"), 0)
        self.assertEqual(self.complaints(check.house_map, ".github/CONTRIBUTING.md", "| `cave/` | tensors |\n"), 2)


if __name__ == "__main__":
    unittest.main()
