"""lunaria serve: predictions, refusals, limits, requests from several clients, an end in the middle of requests; language models,
and lunaria chat.

usage: model_server_test.py LUNARIA"""
import http.client
import json
import os
import pty
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

MAKE = """
local ms = require "lunaria"
local net = ms.nn.Dense(3, 2)
net.weight:set_data(ms.tensor { { 1.0, 0.0, 2.0 }, { 0.0, -1.0, 0.5 } })
net.bias:set_data(ms.tensor { 0.5, 0.0 })
ms.export(net, ms.tensor { { 1.0, 2.0, 3.0 } }, { file_name = arg[1] .. "/net.mindir" })
ms.export(net, ms.tensor { { 1.0, 2.0, 3.0 } }, { file_name = arg[1] .. "/net", file_format = "ONNX" })
ms.export(function(x) return x * 2 + 0.5 end, ms.ones { 1, 3 }, { file_name = arg[1] .. "/twice", file_format = "ONNX" })
ms.export(net, ms.tensor { { 1.0, 2.0, 3.0 } }, { file_name = arg[1] .. "/rows", file_format = "ONNX", dynamic_axes = { x = { 0 } } })
"""

# A small decoder with random weights and the byte-level tokenizer of tests/data/words.
MAKE_LANGUAGE = """
local ms = require "lunaria"
ms.set_seed(3)
local file <close> = io.open "tests/data/words/gpt2.json"
local tree = ms.json.decode(file:read "a")
local tokens, types, merges = {}, {}, {}
for token, id in pairs(tree.model.vocab) do tokens[id + 1], types[id + 1] = token, 1 end
for _, added in ipairs(tree.added_tokens) do tokens[added.id + 1], types[added.id + 1] = added.content, added.special and 3 or 4 end
for i, merge in ipairs(tree.model.merges) do merges[i] = type(merge) == "table" and table.concat(merge, " ") or merge end
local config = { vocabulary = #tokens, width = 32, layers = 2, heads = 2, inner = 64, length = 512 }
ms.lite.save_decoder(ms.lite.Decoder(config), arg[1] .. "/small.gguf", { metadata = {
  ["tokenizer.ggml.model"] = "gpt2", ["tokenizer.ggml.pre"] = "gpt-2", ["tokenizer.ggml.tokens"] = tokens,
  ["tokenizer.ggml.token_type"] = types, ["tokenizer.ggml.merges"] = merges,
  ["tokenizer.chat_template"] = "{% for m in messages %}{{ m.role }}: {{ m.content }}\\n{% endfor %}assistant:" } })
"""


def npy(rows):
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({len(rows)}, {len(rows[0])}), }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    data = b"".join(struct.pack(f"<{len(row)}f", *row) for row in rows)
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data


def safetensors(name, rows):
    data = b"".join(struct.pack(f"<{len(row)}f", *row) for row in rows)
    header = json.dumps({name: {"dtype": "F32", "shape": [len(rows), len(rows[0])], "data_offsets": [0, len(data)]}}).encode()
    return struct.pack("<Q", len(header)) + header + data


class Server:
    def __init__(self, program, *words):
        self.process = subprocess.Popen([program, "serve", *words, "--port", "0"], stdout=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().split()[0]
        self.port = int(self.url.split(":")[2].split("/")[0])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def connection(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)

    def ask(self, path, body=None, kind="application/json", method=None, **headers):
        connection = self.connection()
        data = json.dumps(body).encode() if isinstance(body, (dict, list)) else body
        connection.request(method or ("GET" if data is None else "POST"), path, data, {"Content-Type": kind, **headers})
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        return answer.status, text

    def json(self, *arguments, **options):
        status, text = self.ask(*arguments, **options)
        return status, json.loads(text)

    def end(self, told=False):
        if not told:
            self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(60)
        assert code == 0, code
        assert "stopped" in self.process.stdout.read()


def check_predictions(server):
    status, about = server.json("/model")
    assert status == 200 and about["kind"] == "network", about
    name, out = about["inputs"][0]["name"], about["outputs"][0]["name"]
    wanted = {"outputs": {out: [[7.5, -0.5]]}}
    assert server.json("/predict", {"inputs": {name: [[1, 2, 3]]}}) == (200, wanted)
    assert server.json("/predict", {"inputs": [[[1, 2, 3]]]}) == (200, wanted)
    assert server.ask("/predict", npy([[1, 2, 3]]), "application/x-npy") == (200, npy([[7.5, -0.5]]))
    status, text = server.ask("/predict", safetensors(name, [[1, 2, 3]]), "application/x-safetensors")
    assert status == 200 and text.endswith(struct.pack("<2f", 7.5, -0.5)), text
    assert server.json("/health") == (200, {"status": "ok"})
    assert b"lunaria_requests_total{status=\"200\"}" in server.ask("/metrics")[1]
    return name


def check_refusals(server, name):
    row = {"inputs": {name: [[1, 2, 3]]}}
    for wanted, part, path, arguments in [
            (400, "no JSON", "/predict", [b"{"]), (400, "the content must be", "/predict", [b"[1]"]), (400, "is missing", "/predict", [{"inputs": {}}]),
            (400, "has no input 'more'", "/predict", [{"inputs": {**row["inputs"], "more": 1}}]), (400, "1 inputs, got 2", "/predict", [{"inputs": [1, 2]}]),
            (400, "input", "/predict", [{"inputs": {name: [[1, 2], [3]]}}]), (400, "input", "/predict", [{"inputs": {name: "text"}}]),
            (400, "shape", "/predict", [{"inputs": {name: [[1, 2, 3, 4]]}}]), (404, "nothing at", "/nowhere", [row]), (404, "nothing at", "/predicted", []),
            (405, "POST", "/predict", []), (415, "content must be", "/predict", [b"x=1", "application/x-www-form-urlencoded"]),
            (415, "content must be", "/predict", [b"{}", "text/plain"]), (400, "content", "/predict", [b"\x93NUMPY\x01", "application/x-npy"]),
            (400, "content", "/predict", [b"\xff" * 64, "application/octet-stream"]), (400, "no language model", "/v1/chat/completions", [row]),
            (400, "nested", "/predict", [b"[" * 100000])]:
        status, text = server.ask(path, *arguments)
        assert status == wanted and part.encode() in text, (path, arguments, status, text)
    assert server.ask("/predict", row, Host="evil.example")[0] == 403
    assert server.ask("/predict", row, Origin="http://evil.example")[0] == 403
    assert server.ask("/predict", b"x" * (2 << 20))[0] == 413
    assert server.ask("/model", method="DELETE")[0] == 405


def load(server, clients, requests, body, bad):
    """Each client sends its requests over one connection; gives the times of all."""
    times, wrong, lock = [], [], threading.Lock()

    def run():
        connection = server.connection()
        for _ in range(requests):
            begin = time.monotonic()
            connection.request("POST", "/predict", body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            text = answer.read()
            with lock:
                times.append(time.monotonic() - begin)
                if answer.status != 200 or bad(text):
                    wrong.append((answer.status, text))
        connection.close()

    threads = [threading.Thread(target=run) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong, wrong[:3]
    assert len(times) == clients * requests
    return times


def check_end(server, name):
    """SIGTERM while requests are under way: each that was sent gets its answer, and the program ends well."""
    body = json.dumps({"inputs": {name: [[1, 2, 3]]}})
    connections = [server.connection() for _ in range(24)]
    for connection in connections:
        connection.request("POST", "/predict", body, {"Content-Type": "application/json"})
    server.process.send_signal(signal.SIGTERM)
    for connection in connections:
        answer = connection.getresponse()
        assert answer.status == 200 and b"7.5" in answer.read()
    server.end(told=True)


def events(text):
    """The chunks of a stream, whose last line says that it is done."""
    lines = [line[6:] for line in text.decode().split("\n") if line]
    assert lines[-1] == "[DONE]", lines
    return [json.loads(line) for line in lines[:-1]]


def check_language(server):
    assert server.json("/v1/models")[1]["data"][0]["id"] == "small.gguf"
    question = {"model": "small.gguf", "messages": [{"role": "user", "content": "Grüße"}], "temperature": 0, "max_tokens": 24}
    status, whole = server.json("/v1/chat/completions", question)
    assert status == 200 and whole["object"] == "chat.completion", whole
    text = whole["choices"][0]["message"]["content"]
    assert text and whole["choices"][0]["finish_reason"] in ("stop", "length")
    assert whole["usage"]["total_tokens"] == whole["usage"]["prompt_tokens"] + whole["usage"]["completion_tokens"]
    status, stream = server.ask("/v1/chat/completions", {**question, "stream": True, "stream_options": {"include_usage": True}})
    chunks = events(stream)
    assert status == 200 and chunks[0]["choices"][0]["delta"]["role"] == "assistant"
    assert "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks) == text
    assert chunks[-1]["choices"][0]["finish_reason"] == whole["choices"][0]["finish_reason"] and chunks[-1]["usage"] == whole["usage"]
    status, further = server.json("/v1/completions", {"prompt": "The file", "max_tokens": 8, "seed": 5})
    assert status == 200 and further["object"] == "text_completion" and further["usage"]["completion_tokens"] <= 8
    assert server.json("/v1/completions", {"prompt": "The file", "max_tokens": 8, "seed": 5})[1]["choices"] == further["choices"]
    for change, part in [({"messages": []}, "must have a message"), ({"messages": [{"role": "x", "content": ""}]}, "must have a role"),
                         ({"temperature": -1}, "temperature must be"), ({"n": 2}, "n must be 1"), ({"colour": 1}, "'colour' is not supported"),
                         ({"presence_penalty": 1}, "presence_penalty must be 0"), ({"stop": [""]}, "stop must have"),
                         ({"messages": [{"role": "user", "content": "x" * 4000}]}, "tokens, and the model takes"),
                         ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "must be a text")]:
        status, answer = server.json("/v1/chat/completions", {**question, **change})
        assert status == 400 and part in answer["error"]["message"], (change, status, answer)
    assert server.ask("/predict", {"inputs": []})[0] == 400
    # A client that goes away in the middle of a stream holds up no other.
    connection = server.connection()
    connection.request("POST", "/v1/chat/completions", json.dumps({**question, "stream": True, "max_tokens": 400}),
                       {"Content-Type": "application/json"})
    connection.getresponse().read(10)
    connection.close()
    assert server.json("/v1/chat/completions", question)[1]["choices"] == whole["choices"]
    # A stream that is under way comes to its end.
    connection = server.connection()
    connection.request("POST", "/v1/chat/completions", json.dumps({**question, "stream": True}), {"Content-Type": "application/json"})
    server.process.send_signal(signal.SIGTERM)
    assert "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in events(connection.getresponse().read())) == text
    server.end(told=True)
    return text


def check_chat(program, model, text):
    words = [program, "chat", model, "--temperature", "0", "--max-tokens", "24"]
    said = "Grüße\n/set top_k 3\n/set\n/history\n/undo\n/history\n/nothing\n/quit\n"
    done = subprocess.run(words, input=said, capture_output=True, text=True, check=True)
    assert done.stdout.startswith(text), done.stdout
    assert "top_k 3" in done.stdout and f"user: Grüße\nassistant: {text}" in done.stdout and "there is no /nothing" in done.stdout
    # Ctrl-C ends the answers alone, each of them.
    chat = subprocess.Popen([*words[:-1], "400", "--seed", "1"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    for _ in range(2):
        chat.stdin.write("Grüße\n")
        chat.stdin.flush()
        assert chat.stdout.read(1)
        chat.send_signal(signal.SIGINT)
    chat.stdin.write("/history\n/quit\n")
    chat.stdin.flush()
    rest = chat.communicate(timeout=60)[0]
    assert chat.returncode == 0 and rest.count("user: Grüße") == 2 and rest.count("assistant: ") == 2, (chat.returncode, rest)
    # A terminal has editing and the lines before.
    terminal, other = pty.openpty()
    chat = subprocess.Popen(words, stdin=other, stdout=other, stderr=other, env={**os.environ, "TERM": "xterm"}, start_new_session=True)
    os.close(other)
    shown = b""

    def until(part, count):
        nonlocal shown
        end = time.monotonic() + 60
        while shown.count(part) < count:
            assert time.monotonic() < end, shown
            shown += os.read(terminal, 4096)

    until(b"> ", 1)
    os.write(terminal, "Grüße\r".encode())
    until(text.encode().split(b"\n")[0], 1)
    until(b"> ", 2)
    os.write(terminal, b"\x1b[A\r")
    until("Grüße".encode(), 2)
    os.write(terminal, b"/quit\r")
    assert chat.wait(60) == 0
    os.close(terminal)


def main(program):
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = folder
        script = Path(folder) / "make.lua"
        script.write_text(MAKE)
        subprocess.run([program, script, folder], check=True)
        for file in ["net.mindir", "net.onnx"]:
            with Server(program, f"{folder}/{file}", "--max-body", "1") as server:
                name = check_predictions(server)
                check_refusals(server, name)
                time.sleep(0.5)  # longer than it waits for a request at a time
                body = json.dumps({"inputs": {name: [[1, 2, 3]]}})
                load(server, 8, 25, body, lambda text: b"7.5" not in text)
                check_end(server, name)
        subprocess.run([program, "lite", "convert", f"{folder}/twice.onnx", "-o", f"{folder}/twice.lite"], check=True,
                       stdout=subprocess.DEVNULL)
        with Server(program, f"{folder}/twice.lite") as server:
            assert list(server.json("/predict", {"inputs": [[[1, 2, 3]]]})[1]["outputs"].values()) == [[[2.5, 4.5, 6.5]]]
            assert server.json("/predict", {"inputs": [[[1, 2, 3, 4]]]})[0] == 400
            assert server.json("/predict", {"inputs": [[[0, 0, 1]]]})[0] == 200
            server.end()
        with Server(program, f"{folder}/rows.onnx", "--batch", "16") as server:
            about = server.json("/model")[1]
            assert about["inputs"][0]["shape"] == [-1, 3], about
            load(server, 8, 40, json.dumps({"inputs": [[[1, 2, 3], [0, 0, 0]]]}),
                 lambda text: json.loads(text) != {"outputs": {about["outputs"][0]["name"]: [[7.5, -0.5], [0.5, 0.0]]}})
            server.end()
        script.write_text(MAKE_LANGUAGE)
        subprocess.run([program, script, folder], check=True)
        with Server(program, f"{folder}/small.gguf") as server:
            text = check_language(server)
        check_chat(program, f"{folder}/small.gguf", text)
        status = subprocess.run([program, "serve", f"{folder}/none.onnx"], capture_output=True, check=False)
        assert status.returncode != 0 and b"none.onnx" in status.stderr, status
        status = subprocess.run([program, "serve", "--speed", "3"], capture_output=True, check=False)
        assert status.returncode != 0 and b"'--speed' is not understood" in status.stderr, status
    print("ok")


if __name__ == "__main__":
    main(sys.argv[1])
