"""Much at a time: requests, output, clients."""
import os
import time

from jupyter import PATIENCE, Kernel, RawClient, holds, main, memory_kb, same, within  # first: it changes to the environment
import zmq

kernel = Kernel()


def test_a_thousand_requests_keep_their_order():
    requests = [kernel.send(f"order = (order or 0) + 1; order - {i}") for i in range(1, 1001)]
    replies, results, idle = [], {}, []
    while len(idle) < 1000:
        message = kernel.client.get_iopub_msg(timeout=PATIENCE)
        parent = message["parent_header"]["msg_id"]
        if message["msg_type"] == "execute_result":
            results[parent] = message["content"]["data"]["text/plain"]
        elif message["content"].get("execution_state") == "idle":
            idle.append(parent)
    while len(replies) < 1000:
        replies.append(kernel.client.get_shell_msg(timeout=PATIENCE)["parent_header"]["msg_id"])
    same(replies, requests)
    same(idle, requests)
    same([results[r] for r in requests], ["0"] * 1000)


def test_a_hundred_thousand_prints_are_few_messages():
    start = time.monotonic()
    cell = kernel.run("for i = 1, 100000 do print(i) end")
    same(cell.text(), "".join(f"{i}\n" for i in range(1, 100001)))
    within(10, start, "printing")
    assert len(cell.of("stream")) < 1000, len(cell.of("stream"))


def test_ten_megabytes_arrive_whole():
    same(kernel.run("io.write(('0123456789'):rep(1000000))").text(), "0123456789" * 1000000)
    same(kernel.run("os.execute('head -c 10000000 /dev/zero | tr \"\\\\\\\\0\" x')").text(), "x" * 10000000)
    same(len(kernel.run("('x'):rep(10000000) .. ''").result()) > 1000, True)


def test_both_streams_of_a_child_are_read():
    cell = kernel.run("os.execute('for i in $(seq 2000); do echo out $i; echo err $i >&2; done')")
    same(cell.text("stdout"), "".join(f"out {i}\n" for i in range(1, 2001)))
    same(cell.text("stderr"), "".join(f"err {i}\n" for i in range(1, 2001)))


def test_two_clients_get_each_their_own_replies():
    other = kernel.connect()
    mine = [kernel.send(f"{i}") for i in range(50)]
    theirs = [kernel.send(f"{i} + 1000", other) for i in range(50)]
    for i, request in enumerate(theirs):
        same(kernel.collect(request, other).result(), str(i + 1000))
    for i, request in enumerate(mine):
        same(kernel.collect(request).result(), str(i))
    # What one prints the other sees, with the parent of who asked.
    request = kernel.send("print('seen')")
    while True:
        message = other.get_iopub_msg(timeout=PATIENCE)
        if message["msg_type"] == "stream" and message["content"]["text"] == "seen\n":
            break
    same(message["parent_header"]["msg_id"], request)
    kernel.collect(request)
    other.stop_channels()


def test_a_client_that_does_not_read_holds_up_nobody_for_ever():
    with Kernel() as other:
        other.run("line = ('x'):rep(1000)")
        stuck = RawClient(other, {zmq.RCVHWM: 1, zmq.RCVBUF: 4096})
        stuck.sockets["shell"].close()
        time.sleep(0.3)
        # 10 MB fit in what is kept for it.
        start = time.monotonic()
        same(len(other.run("for _ = 1, 1e4 do print(line) end").text()), 10010000)
        before = memory_kb(other.pid)
        # 400 MB do not: it loses them, the other client gets all.
        request = other.send("for _ = 1, 4e5 do print(line) end")
        size = 0
        while True:
            message = other.client.get_iopub_msg(timeout=40)
            if message["parent_header"].get("msg_id") != request:
                continue
            if message["msg_type"] == "stream":
                size += len(message["content"]["text"])
            elif message["content"].get("execution_state") == "idle":
                break
        same(size, 400400000)
        grown = memory_kb(other.pid) - before
        assert is_sanitized() or grown < 250 * 1024, f"{grown} kB more"
        holds(other.errors(), "does not read")
        other.client.get_shell_msg(timeout=PATIENCE)
        other.still_works()
        within(60, start, "output for a client that does not read")
        stuck.close()


def test_a_cell_whose_output_nobody_reads_can_be_interrupted():
    with Kernel() as other:
        other.run("line = ('x'):rep(1000)")
        request = other.send("while true do print(line) end")
        time.sleep(2)
        same(other.control("interrupt_request")["status"], "ok")
        same(other.collect(request, timeout=40).status, "error")


def is_sanitized():
    """Sanitizers have memory of their own; ./dev asan and ./dev tsan set their options."""
    return any(name in os.environ for name in ("ASAN_OPTIONS", "TSAN_OPTIONS"))


def test_memory_at_rest_is_small():
    with Kernel() as fresh:
        fresh.run("1 + 1")
        assert is_sanitized() or memory_kb(fresh.pid) <= 40 * 1024, f"{memory_kb(fresh.pid)} kB"


def test_memory_does_not_grow_with_cells():
    def cells(count):
        for request in [kernel.send("x = ms.tensor{1, 2, 3}; display(x) print('text')", store_history=False) for _ in range(count)]:
            kernel.collect(request)
    cells(200)
    before = memory_kb(kernel.pid)
    cells(400)
    grown = memory_kb(kernel.pid) - before
    assert is_sanitized() or grown < 8 * 1024, f"{grown} kB more"


if __name__ == "__main__":
    try:
        main(globals())
    finally:
        kernel.stop()
