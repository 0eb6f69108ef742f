"""What strangers and broken front ends send: nothing of it may end the kernel, run code or change the order of replies.

usage: robustness_test.py LUNARIA [WORD...]     LUNARIA_KERNEL_FUZZ_SECONDS: how long messages are fuzzed, 5 if not given"""
import json
import os
import random
import socket
import string
import subprocess
import sys
import tempfile
import time
import uuid
from types import SimpleNamespace

from jupyter import PATIENCE, PROGRAM, Kernel, RawClient, holds, main, same  # first: it changes to the environment
from jupyter_client.connect import write_connection_file

kernel = Kernel()
FUZZ_SECONDS = float(os.environ.get("LUNARIA_KERNEL_FUZZ_SECONDS", "5"))
EXECUTE = {"code": "hacked = 1", "silent": False, "store_history": False, "user_expressions": {}, "allow_stdin": False}


def is_ignored(send, channels=("shell", "control")):
    """Sends by the function on each channel, with a client of its own; no reply comes, nothing runs, all works on."""
    for channel in channels:
        raw = RawClient(kernel)
        kernel.run("hacked = nil")
        send(raw, channel)
        same(raw.receive(channel, 0.15), None)
        # A good message over the same connection is answered.
        request = raw.send("kernel_info_request", {}, channel)
        assert raw.reply_to(request, channel), channel
        raw.close()
    same(kernel.run("hacked == nil").result(), "true")


def test_messages_with_too_few_frames_are_dropped():
    for count in range(6):
        is_ignored(lambda raw, channel, n=count: raw.send_frames([b"<IDS|MSG>", b"", b"{}", b"{}", b"{}", b"{}"][:n] or [b""],
                                                                 channel))
    is_ignored(lambda raw, channel: raw.send_frames([b"x"] * 40, channel))
    is_ignored(lambda raw, channel: raw.send_frames([b""] * 3, channel))


def test_short_signed_messages_are_dropped():
    def short(raw, channel):
        frames = raw.frames(raw.header("execute_request"), EXECUTE)
        for n in range(len(frames)):
            raw.send_frames(frames[:n] or [b""], channel)
    is_ignored(short)


def test_wrong_signatures_are_refused():
    for change in (lambda s: b"", lambda s: s[:-1], lambda s: s + b"0", lambda s: b"0" * 64, lambda s: s.upper() + b"",
                   lambda s: b"\0" * 64, lambda s: s * 1000, lambda s: b"\xff" * 7):
        def wrong(raw, channel, change=change):
            frames = raw.frames(raw.header("execute_request"), EXECUTE)
            frames[1] = change(frames[1])
            if frames[1] != raw.sign(frames[2:]):
                raw.send_frames(frames, channel)
        is_ignored(wrong)
    holds(kernel.errors(), "the signature does not match")


def test_a_message_that_comes_again_is_refused():
    raw = RawClient(kernel)
    frames = raw.frames(raw.header("execute_request"), {**EXECUTE, "code": "times = (times or 0) + 1"})
    for _ in range(3):
        raw.send_frames(frames)
    assert raw.receive("shell")
    same(raw.receive("shell", 0.2), None)
    raw.close()
    same(kernel.run("times").result(), "1")


def test_what_is_no_json_is_dropped():
    for part in (b"", b"{", b"nul", b"[]", b"1", b'"x"', b"null", b"\xff\xfe", b'{"a": "\xff"}', b"{}{}", b"[" * 100000,
                 b'{"a":' * 100000 + b"1" + b"}" * 100000, b"\0" * 1000):
        for place in range(3):
            def broken(raw, channel, part=part, place=place):
                parts = [json.dumps(raw.header("execute_request")).encode(), b"{}", b"{}", json.dumps(EXECUTE).encode()]
                parts[place] = part
                raw.send_frames([b"<IDS|MSG>", raw.sign(parts), *parts], channel)
            is_ignored(broken, channels=("shell",) if place else ("shell", "control"))


def test_content_that_is_no_json_object_is_answered_with_an_error():
    for part in (b"", b"{", b"[]", b"null", b'{"code": "print(\'\xff\')"}', b'{"code": "\\ud83c"}', b"[" * 100000, b'{"a":' * 300 + b"1" + b"}" * 300):
        for channel, kind in (("shell", "execute_request"), ("control", "interrupt_request")):
            raw = RawClient(kernel)
            header = raw.header(kind)
            raw.send_frames(raw.frames(header, part), channel)
            reply = raw.reply_to(header["msg_id"], channel)
            same((reply["header"]["msg_type"], reply["content"]["status"]), (kind.replace("request", "reply"), "error"))
            holds(reply["content"]["evalue"], "no JSON object")
            raw.close()
    kernel.still_works()


def test_headers_without_type_or_id_are_dropped():
    for header in ({}, {"msg_type": "execute_request"}, {"msg_id": "x"}, {"msg_id": 1, "msg_type": "execute_request"},
                   {"msg_id": "x", "msg_type": None}, {"msg_id": [], "msg_type": {}}):
        is_ignored(lambda raw, channel, h=header: raw.send_frames(raw.frames(h, EXECUTE), channel))


def test_unknown_messages_are_dropped():
    for kind in ("", "nonsense", "execute_reply", "stream", "x" * 10000, "input_reply"):
        is_ignored(lambda raw, channel, k=kind: raw.send(k, {}, channel), channels=("shell",))


def test_code_is_not_run_on_the_control_channel():
    raw = RawClient(kernel)
    kernel.run("hacked = nil")
    request = raw.send("execute_request", EXECUTE, "control")
    same(raw.reply_to(request, "control")["content"]["status"], "error")
    raw.close()
    same(kernel.run("hacked").result(), None)


def test_large_messages_are_taken_and_oversized_ones_dropped():
    same(kernel.run("#'" + "x" * 20_000_000 + "'").result(), "20000000")
    is_ignored(lambda raw, channel: raw.send("execute_request", {**EXECUTE, "code": "hacked = '" + "x" * (65 << 20) + "'"},
                                             channel), channels=("shell",))


def test_requests_of_wrong_shape_are_answered_with_an_error():
    for kind, content in (("execute_request", {}), ("execute_request", {"code": 1}), ("execute_request", {"code": None}),
                          ("execute_request", {**EXECUTE, "silent": "yes"}), ("execute_request", {**EXECUTE, "user_expressions": [1]}),
                          ("execute_request", {**EXECUTE, "user_expressions": {"a": 1}}), ("complete_request", {"code": "x", "cursor_pos": "1"}),
                          ("complete_request", {"cursor_pos": 1}), ("inspect_request", {"code": [], "cursor_pos": 0}),
                          ("inspect_request", {"code": "x", "cursor_pos": 0.5}), ("is_complete_request", {"code": {}}),
                          ("history_request", {"hist_access_type": 5}), ("history_request", {"n": "many"}), ("comm_info_request", {"target_name": 1})):
        raw = RawClient(kernel)
        request = raw.send(kind, content)
        reply = raw.reply_to(request)
        same((reply["header"]["msg_type"], reply["content"]["status"]), (kind.replace("request", "reply"), "error"))
        holds(reply["content"]["evalue"], kind if content.get("code", 0) in (0, None) and "hist" not in kind and "comm" not in kind else "must be")
        raw.close()
    kernel.still_works()


def test_odd_but_lawful_requests_are_answered():
    for kind, content in (("history_request", {"hist_access_type": "tail", "n": None}), ("history_request", {"hist_access_type": "nonsense"}),
                          ("history_request", {"hist_access_type": "range", "session": -10 ** 30, "start": -1, "stop": 2 ** 63}),
                          ("history_request", {"hist_access_type": "search", "pattern": "*" * 2000 + "x", "n": -1}),
                          ("complete_request", {"code": "(" * 8000, "cursor_pos": 8000}), ("complete_request", {"code": "x" * 100000, "cursor_pos": 99999}),
                          ("inspect_request", {"code": "\u0000" * 100, "cursor_pos": 50, "detail_level": 10 ** 9}),
                          ("is_complete_request", {"code": "{" * 100000}), ("is_complete_request", {"code": "\n" * 100000}),
                          ("execute_request", {"code": ""}), ("kernel_info_request", {"unknown": 1}), ("comm_info_request", {"target_name": None})):
        raw = RawClient(kernel)
        request = raw.send(kind, content)
        assert raw.reply_to(request), (kind, str(content)[:80])
        raw.close()
    kernel.still_works()


def test_bytes_that_are_no_zeromq_end_nothing():
    raw = RawClient(kernel)
    for channel in ("shell", "control", "iopub", "stdin", "hb"):
        for data in (b"GET / HTTP/1.1\r\n\r\n", bytes(range(256)) * 64, b"\xff" + b"\0" * 8 + b"\x7f", b""):
            with socket.create_connection((raw.info["ip"], raw.info[channel + "_port"])) as connection:
                connection.sendall(data)
    raw.close()
    kernel.still_works()


WORDS = ["", "x", "1 + 1", "error('x')", "string.", "\u0000", "\U0001f319", "a" * 5000, "return", "?", "%nothing", "for", "io.read()", "%"]
KINDS = ["execute_request", "complete_request", "inspect_request", "is_complete_request", "history_request", "kernel_info_request",
         "comm_info_request", "comm_open", "comm_msg", "comm_close"]
CONTROL = ["kernel_info_request", "interrupt_request", "debug_request", "usage_request", "comm_info_request", "execute_request",
           "create_subshell_request", "list_subshell_request", "delete_subshell_request"]
NAMES = ["code", "silent", "store_history", "user_expressions", "allow_stdin", "stop_on_error", "cursor_pos", "detail_level", "n",
         "hist_access_type", "session", "start", "stop", "pattern", "unique", "output", "raw", "target_name", "comm_id", "data",
         "command", "type", "seq", "arguments", "subshell_id", "metadata"]


def value(r, depth=0):
    """Any JSON."""
    choice = r.randrange(12 if depth < 3 else 9)
    if choice < 3:
        return r.choice(WORDS)
    if choice < 9:
        return [None, True, False, r.randrange(-3, 30), r.choice([2 ** 31, -2 ** 63, 2 ** 64, 1e300, -0.5]), "tail"][choice - 3]
    if choice == 9:
        return [value(r, depth + 1) for _ in range(r.randrange(4))]
    return {r.choice(NAMES): value(r, depth + 1) for _ in range(r.randrange(4))}


def content_of(r, kind):
    """Mostly what the type asks for, with fields left out, added and of any type."""
    fields = {"code": r.choice(WORDS), "cursor_pos": r.randrange(-2, 20), "comm_id": "c", "target_name": "t", "data": {}}
    if kind == "execute_request" and r.random() < 0.5:
        fields = {"code": r.choice(WORDS), "silent": r.random() < 0.3, "user_expressions": {"a": "1"}}
    for name in r.sample(NAMES, r.randrange(3)):
        fields[name] = value(r)
    if r.random() < 0.3 and fields:
        del fields[r.choice(list(fields))]
    fields["allow_stdin"] = False  # nobody answers
    return fields


def test_fuzzed_messages_keep_the_order_of_replies():
    seed = int(os.environ.get("LUNARIA_FUZZ_SEED", time.time_ns() % 10 ** 9))
    print(f"seed {seed}")
    r = random.Random(seed)
    end = time.monotonic() + FUZZ_SECONDS
    raw = RawClient(kernel)
    count = 0
    while time.monotonic() < end:
        expected = []
        for _ in range(50):
            kind = r.choice(KINDS)
            header = raw.header(kind)
            frames = raw.frames(header, content_of(r, kind), value(r) if r.random() < 0.1 else {}, value(r) if r.random() < 0.1 else {})
            whole = isinstance(json.loads(frames[3]), dict) and isinstance(json.loads(frames[4]), dict)
            if r.random() < 0.1:  # broken ones in between are dropped
                place = r.randrange(len(frames))
                frames[place] = bytes(r.choices(string.printable.encode(), k=r.randrange(80)))
                whole = False
            raw.send_frames(frames)
            if whole and kind.endswith("_request"):
                expected.append(header["msg_id"])
            if r.random() < 0.1:
                raw.send(r.choice(CONTROL), content_of(r, ""), "control")
        # The last is well-formed: when it is answered, all are.
        last = raw.send("kernel_info_request", {})
        expected.append(last)
        replies = []
        while not replies or replies[-1] != last:
            message = raw.receive("shell", PATIENCE)
            assert message, f"no reply; {len(replies)} of {len(expected)} so far"
            replies.append(message["parent"]["msg_id"])
        same(replies, expected)
        count += len(expected)
        kernel.skip_published()
    raw.close()
    print(f"{count} requests were answered")
    assert kernel.is_alive()
    while kernel.run("1", stop_on_error=False).status != "ok":  # an interrupt may have come late
        pass
    kernel.still_works()


def test_a_connection_file_without_a_key_turns_signatures_off():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "connection.json")
        write_connection_file(path)
        with open(path, encoding="utf-8") as file:
            same(json.load(file)["key"], "")
        process = subprocess.Popen([PROGRAM, "kernel", "-f", path], stderr=subprocess.PIPE, text=True)
        raw = RawClient(SimpleNamespace(manager=SimpleNamespace(connection_file=path)))
        frames = raw.frames(raw.header("kernel_info_request"), {})
        frames[1] = b""
        raw.send_frames(frames)
        assert raw.receive("shell")
        holds(process.stderr.readline(), "no key")
        raw.close()
        process.kill()
        process.wait()


def test_a_client_that_is_killed_ends_nothing():
    code = ("import sys\nfrom jupyter_client import BlockingKernelClient\nclient = BlockingKernelClient()\n"
            "client.load_connection_file(sys.argv[1])\nclient.start_channels()\nclient.wait_for_ready(timeout=20)\n"
            "client.execute('for i = 1, 20000 do print(i) end')\nclient.execute('io.read()', allow_stdin=True)\n"
            "client.get_stdin_msg(timeout=20)\nprint('asked', flush=True)\ninput()")
    child = subprocess.Popen([sys.executable, "-c", code, kernel.manager.connection_file], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE)
    same(child.stdout.readline(), b"asked\n")
    child.kill()
    child.wait()
    # Nobody answers the question; an interrupt ends it.
    request = kernel.send("1 + 1")
    same(kernel.control("interrupt_request")["status"], "ok")
    same(kernel.collect(request).status, "aborted")
    kernel.still_works()


def test_clients_that_come_and_go_end_nothing():
    for _ in range(30):
        raw = RawClient(kernel)
        raw.session = uuid.uuid4().hex
        raw.send("execute_request", {"code": "for i = 1, 1000 do print(i) end"})
        raw.close()
    kernel.still_works()


if __name__ == "__main__":
    try:
        main(globals())
    finally:
        kernel.stop()
