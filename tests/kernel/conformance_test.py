"""Jupyter's own tests of a kernel, all that the class offers."""
import sys
import unittest

import jupyter  # first: it changes to the environment that has the rest
import jupyter_kernel_test


class LunariaTests(jupyter_kernel_test.KernelTests):
    kernel_name = "lunaria"
    language_name = "lua"
    file_extension = ".lua"
    code_hello_world = "print('hello, world')"
    code_stderr = "io.stderr:write('to stderr\\n')"
    completion_samples = [
        {"text": "string.gsu", "matches": {"gsub"}},
        {"text": "coroutine.is", "matches": {"isyieldable"}},
        {"text": "ms.ops.matm", "matches": {"matmul"}},
    ]
    complete_code_samples = ["1", "print('hello')", "x = 1", "for i = 1, 3 do print(i) end", "%time 1"]
    incomplete_code_samples = ["for i = 1, 3 do", "print([[", "function f(x)", "x = {"]
    invalid_code_samples = ["x = = 1", "end", "print('a"]
    code_page_something = "?string.format"
    code_generate_error = "error('stop')"
    code_execute_result = [
        {"code": "6 * 7", "result": "42"},
        {"code": "'a' .. 'b'", "result": '"ab"'},
        {"code": "local t = {1, 2}; #t", "result": "2"},
    ]
    code_display_data = [
        {"code": "display({['text/html'] = '<b>x</b>'}, {raw = true})", "mime": "text/html"},
        {"code": "display(ms.tensor{1, 2})", "mime": "text/plain"},
    ]
    code_history_pattern = "6 ? 7"
    supported_history_operations = ("tail", "range", "search")
    code_inspect_sample = "ms.ops.matmul"
    code_clear_output = "clear_output()"


class LunariaWelcomeTests(jupyter_kernel_test.IopubWelcomeTests):
    kernel_name = "lunaria"
    support_iopub_welcome = True


if __name__ == "__main__":
    assert jupyter.HOME
    suite = unittest.TestSuite()
    for case in (LunariaTests, LunariaWelcomeTests):
        suite.addTests(unittest.defaultTestLoader.loadTestsFromTestCase(case))
    result = unittest.TextTestRunner(verbosity=2, stream=sys.stdout).run(suite)
    bad = len(result.failures) + len(result.errors) + len(result.skipped)
    print(f"{result.testsRun - bad} passed, {bad} failed")
    sys.exit(1 if bad else 0)
