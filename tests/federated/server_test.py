"""The federated server as a process: iterations by HTTP, kill -9 at every phase, TLS with client certificates and revoked ones, limits,
several servers over one store, the administrator's endpoints, what is written.

usage: server_test.py LUNARIA"""
import datetime
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import fl_client as fl

LUNARIA = str(Path(sys.argv.pop(1)).resolve())
CONFIG = """# A job of two clients.
fl_name: job
fl_iteration_num: {iterations}
server_mode: FEDERATED_LEARNING
enable_ssl: {ssl}
round:
  start_fl_job_threshold: {clients}
  start_fl_job_time_window: 30000
  update_model_ratio: 1.0
  update_model_time_window: 30000
  global_iteration_time_window: 60000
  poll: 20
summary:
  metrics_file: {folder}/metrics.json
  failure_event_file: {folder}/failures.json
  summary_dir: {folder}/summary
  data_rate_dir: {folder}/rates
server:
  checkpoint_dir: {folder}/checkpoints
"""
MODEL = """local ms = require "lunaria"
return ms.federated.FeatureMap { b = ms.tensor { 0.5 }, w = ms.tensor { 1.0, 2.0, 3.0 } }
"""


class Server:
    def __init__(self, folder, extra="", iterations=2, clients=2, enable_ssl="false", arguments=()):
        self.folder = Path(folder)
        config = self.folder / "job.yaml"
        config.write_text(CONFIG.format(folder=folder, iterations=iterations, clients=clients, ssl=enable_ssl) + extra)
        (self.folder / "model.lua").write_text(MODEL)
        self.command = [LUNARIA, "federated", "server", "--config", str(config), "--address", "127.0.0.1:0", "--model",
                        str(self.folder / "model.lua"), *arguments]
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        if "answers clients" not in line:
            raise AssertionError(line + self.process.communicate()[1])
        self.url = line.split()[0]
        self.port = int(self.url.split(":")[2].split("/")[0])
        self.admin = None
        if "--manage-address" in self.command:
            self.admin = int(self.process.stdout.readline().split(":")[2].split("/")[0])

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.communicate()

    def again(self):
        self.kill()
        self.start()

    def end(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.communicate(timeout=60)

    def client(self, name, **options):
        return fl.Client(name, self.port, **options)

    def manage(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.admin, timeout=30)
        connection.request(method, path, body and json.dumps(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, json.loads(text) if text.startswith(("{", "[")) else text


def weights(w, b):
    return [fl.feature("w", w), fl.feature("b", b)]


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.servers = []

    def tearDown(self):
        for server in self.servers:
            if server.process.poll() is None:
                server.kill()
            server.process.stdout.close()
            server.process.stderr.close()
        shutil.rmtree(self.folder)

    def server(self, **options):
        self.servers.append(Server(options.pop("folder", self.folder), **options))
        return self.servers[-1]


class ServerTest(Case):
    def test_iterations_reports_and_administration(self):
        server = self.server(arguments=["--manage-address", "127.0.0.1:0"])
        for iteration in (1, 2):
            clients = [server.client(name) for name in ("a", "b")]
            for client in clients:
                reply = client.start()
                self.assertEqual((reply.code, reply.iteration), (200, iteration), reply.reason)
            self.assertEqual(clients[0].ask("startFLJob", fl.integer(1, 1)).code, 200)
            self.assertEqual(server.client("c").ask("startFLJob", fl.integer(1, 1)).code, 300)
            status, state = server.manage("GET", "/state")
            self.assertEqual((status, state["phase"], state["iteration_num"]), (200, "updating", iteration))
            for client, value, samples in zip(clients, (1.0, 4.0), (1, 2)):
                content = fl.update(weights([value] * 3, [value]), samples, [("loss", value)])
                self.assertEqual(client.ask("updateModel", content, iteration).code, 200)
            reply = clients[0].until("getModel", iteration=iteration)
            self.assertEqual(reply.model(), {"b": [3.0], "w": [3.0, 3.0, 3.0]})
        self.assertEqual(server.manage("GET", "/queryInstance")[1]["start_fl_job_threshold"], 2)
        self.assertEqual(server.manage("POST", "/newInstance", {"start_fl_job_treshold": 1})[0], 400)
        status, made = server.manage("POST", "/newInstance", {"start_fl_job_threshold": 1, "fl_iteration_num": 5,
                                                              "client_epoch_num": 7})
        self.assertEqual((status, made["result"]), (200, "Success"))
        reply = server.client("a").start()
        self.assertEqual((reply.code, reply.iteration), (200, 1))
        self.assertEqual(reply.model(3)["b"], [3.0])
        self.assertEqual(server.manage("POST", "/disableFLS", {})[0], 200)
        self.assertEqual(server.client("a").ask("startFLJob", fl.integer(1, 1)).code, 300)
        self.assertEqual(server.manage("POST", "/enableFLS", {})[0], 200)
        rounds = server.manage("GET", "/rounds")[1]
        self.assertEqual([(r["iteration"], r["valid"], r["metrics"]["loss"]) for r in rounds], [(1, True, 2.5), (2, True, 2.5)])
        self.assertIn('endpoint="updateModel",code="200"} 4', server.manage("GET", "/requests")[1])
        server.again()
        instance = server.manage("GET", "/queryInstance")[1]
        self.assertEqual((instance["start_fl_job_threshold"], instance["client_epoch_num"]), (1, 7), "the instance is remembered")
        out, errors = server.end()
        self.assertEqual(errors, "")
        lines = [json.loads(line) for line in (Path(self.folder) / "metrics.json").read_text().splitlines()]
        self.assertEqual([line["iteration_num"] for line in lines], [1, 2])
        self.assertEqual(lines[0]["participation_time"], [2, 0, 0])
        self.assertEqual(len(list((Path(self.folder) / "checkpoints").glob("job_*.ckpt"))), 2)
        script = f"print(require('lunaria').insight.read('{self.folder}/summary').scalars['metrics/loss'].value:tolist()[2])"
        self.assertEqual(subprocess.run([LUNARIA, "-e", script], capture_output=True, text=True).stdout, "2.5\n")
        self.assertTrue(list((Path(self.folder) / "summary").glob("*lineage")))
        self.assertTrue(list((Path(self.folder) / "rates").iterdir()))

    def iterations(self, server, kill_before=None):
        """Two iterations; the server is killed before one of the steps. The model's bytes."""
        def step(number, f):
            if number == kill_before:
                server.again()
            reply = f()
            self.assertEqual(reply.code, 200, f"step {number}: {reply.reason}")
            return reply
        number, reply = 0, None
        for iteration in (1, 2):
            for name in ("a", "b"):
                step(number, lambda name=name: server.client(name).start())
                number += 1
            for name, value in (("b", 0.1), ("a", 0.7)):
                content = fl.update(weights([value, value / 3, value / 7], [value * iteration]), 3 + len(name) * iteration)
                step(number, lambda name=name, content=content, iteration=iteration:
                     server.client(name).ask("updateModel", content, iteration))
                number += 1
            reply = step(number, lambda iteration=iteration: server.client("a").until("getModel", iteration=iteration))
            number += 1
        return fl.fields(reply.content)[1], number

    def test_a_server_that_is_killed_at_any_phase_gives_the_same_bits(self):
        expected, steps = self.iterations(self.server(arguments=["--linger", "20"]))
        self.servers[-1].kill()
        for killed in range(steps):
            folder = f"{self.folder}/{killed}"
            os.mkdir(folder)
            server = self.server(folder=folder, arguments=["--linger", "20"])
            self.assertEqual(self.iterations(server, killed)[0], expected, f"killed before step {killed}")
            server.kill()

    def asynchronous(self, server, kill_before=None):
        """Two aggregations of two updates; the third client's update is of the model before."""
        number = 0

        def asked(name, endpoint, content=b"", iteration=0):
            nonlocal number
            if number == kill_before:
                server.again()
            number += 1
            client = server.client(name)
            reply = client.until(endpoint, content, iteration)
            self.assertEqual(reply.code, 200, f"step {number}: {reply.reason}")
            client.close()
            return reply

        def change(value):
            return fl.update(weights([value, value / 3, value / 7], [-value]), 5)
        for name in "abc":
            self.assertEqual(asked(name, "startFLJob", fl.integer(1, 1)).iteration, 1)
        asked("a", "updateModel", change(0.5), 1)
        asked("b", "updateModel", change(0.25), 1)
        asked("a", "getModel", iteration=1)
        self.assertEqual(asked("a", "startFLJob", fl.integer(1, 1)).iteration, 2)
        asked("c", "updateModel", change(1.0), 1)
        asked("c", "updateModel", change(1.0), 1)
        asked("a", "updateModel", change(2.0), 2)
        return asked("a", "getModel", iteration=2), number

    def test_an_asynchronous_job_that_is_killed_at_any_request_gives_the_same_bits(self):
        extra = "strategy:\n  name: FedBuff\n  buffer: 2\n"
        arguments = ["--linger", "20"]
        reply, steps = self.asynchronous(self.server(arguments=arguments, extra=extra))
        self.servers[-1].kill()
        moved = (0.5 + 0.25) / 2 + (2.0 + 1.0 / 2 ** 0.5) / 2
        self.assertAlmostEqual(reply.model()["b"][0], 0.5 - moved, 6)
        self.assertAlmostEqual(reply.model()["w"][2], 3 + moved / 7, 6)
        for killed in range(steps):
            folder = f"{self.folder}/{killed}"
            os.mkdir(folder)
            server = self.server(folder=folder, arguments=arguments, extra=extra)
            self.assertEqual(fl.fields(self.asynchronous(server, killed)[0].content)[1], fl.fields(reply.content)[1],
                             f"killed before step {killed}")
            server.kill()

    def test_two_servers_over_one_store(self):
        first = self.server()
        second = self.server()
        self.assertEqual(first.client("a").start().code, 200)
        self.assertEqual(second.client("b").start().code, 200)
        self.assertEqual(second.client("a").ask("updateModel", fl.update(weights([2] * 3, [2])), 1).code, 200)
        # The one that computes is killed; the other one takes over.
        first.kill()
        self.assertEqual(second.client("b").ask("updateModel", fl.update(weights([4] * 3, [4])), 1).code, 200)
        self.assertEqual(second.client("a").until("getModel", iteration=1).model()["w"], [3.0] * 3)

    def test_limits_and_bodies_that_are_no_messages(self):
        server = self.server(clients=1)
        client = server.client("a")
        self.assertEqual(client.start().code, 200)
        connection = socket.create_connection(("127.0.0.1", server.port))
        size = (100 << 20) + 1
        connection.sendall(b"POST /updateModel HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-protobuf\r\n"
                           b"Content-Length: %d\r\n\r\n" % size)
        chunk = bytes(1 << 20)
        for _ in range(size >> 20):
            connection.sendall(chunk)
        connection.sendall(b"x")
        self.assertTrue(connection.recv(100).startswith(b"HTTP/1.1 413"))
        connection.close()
        self.assertEqual(client.post("updateModel", b"", "text/html")[0], 415)
        whole = client.envelope(fl.update(weights([1] * 3, [1])), 1)
        for cut in (0, 1, 10, len(whole) // 2, len(whole) - 1):
            reply = fl.Reply(client.post("updateModel", whole[:cut])[1])
            self.assertEqual(reply.code, 400, cut)
        for place in range(0, len(whole), 7):
            wrong = bytearray(whole)
            wrong[place] ^= 1
            reply = fl.Reply(client.post("updateModel", bytes(wrong))[1])
            self.assertNotEqual(reply.code, 200, f"byte {place} was altered")
        reply = client.ask("updateModel", fl.update(weights([1, float("nan"), 1], [1])), 1)
        self.assertEqual((reply.code, reply.reason), (400, "tensor w: element 1 is nan"))
        self.assertEqual(client.ask("updateModel", fl.update(weights([1] * 3, [1])), 1).code, 200)
        self.assertEqual(client.until("getModel", iteration=1).model()["w"], [1.0] * 3)

    def test_configurations_say_what_is_wrong(self):
        path = Path(self.folder) / "job.yaml"
        good = CONFIG.format(folder=self.folder, iterations=1, clients=2, ssl="false")
        for old, new, said in (
                ("fl_iteration_num: 1", "fl_iteration_nun: 1", "job.yaml:3: fl_iteration_nun: there is no such key"),
                ("update_model_ratio: 1.0", "update_model_ratio: 1.5", "job.yaml:9: round.update_model_ratio must be a number above 0 to 1"),
                ("update_model_ratio: 1.0", "update_model_ratio: 0", "job.yaml:9: round.update_model_ratio must be"),
                ("fl_name: job\n", "", "fl_name is missing"),
                ("FEDERATED_LEARNING", "federated", "job.yaml:4: server_mode must be FEDERATED_LEARNING, HYBRID_TRAINING"),
                ("enable_ssl: false", "enable_ssl: true", "ssl.server_cert_path is missing"),
                ("enable_ssl: false", "enable_ssl: &x false", "anchors are not read"),
                ("  poll: 20", "  poll: 20\n  poll: 30", "the key 'poll' is there twice"),
                ("  poll: 20", "  poll: [20", "job.yaml:")):
            self.assertIn(old, good)
            path.write_text(good.replace(old, new))
            done = subprocess.run([LUNARIA, "federated", "check", "--config", str(path)], capture_output=True, text=True)
            self.assertNotEqual(done.returncode, 0, new)
            self.assertIn(said, done.stderr)
        path.write_text(good)
        done = subprocess.run([LUNARIA, "federated", "check", "--config", str(path)], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))


@unittest.skipUnless(shutil.which("openssl"), "openssl is not installed")
class TlsTest(Case):
    """Certificates of an authority, made for the test."""

    def openssl(self, *words):
        subprocess.run(["openssl", *words], cwd=self.folder, check=True, capture_output=True)

    def certificate(self, name, authority=None, days=200):
        """NAME.pem and NAME.key, by an authority or by itself."""
        self.openssl("req", "-newkey", "ed25519", "-nodes", "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
        now = datetime.datetime.now(datetime.timezone.utc)
        begin, end = (f"{now + datetime.timedelta(days=d):%Y%m%d%H%M%SZ}" for d in (min(days, 0) - 1, days))
        words = ["-selfsign", "-keyfile", f"{name}.key"] if not authority else ["-cert", f"{authority}.pem", "-keyfile", f"{authority}.key"]
        self.openssl("ca", "-batch", "-config", "ca.cnf", "-in", f"{name}.csr", "-out", f"{name}.pem", "-notext", "-startdate", begin,
                     "-enddate", end, *words, *(["-extensions", "ext"] if not authority else []))
        return f"{self.folder}/{name}.pem", f"{self.folder}/{name}.key"

    def setUp(self):
        super().setUp()
        Path(self.folder, "ca.cnf").write_text("[ca]\ndefault_ca=d\n[d]\ndatabase=db\nserial=serial\nnew_certs_dir=.\ndefault_md=default\n"
                                              "policy=p\nunique_subject=no\ndefault_crl_days=30\n[p]\ncommonName=supplied\n[req]\n"
                                              "distinguished_name=n\n[n]\n[ext]\nbasicConstraints=critical,CA:true\n")
        Path(self.folder, "db").write_text("")
        Path(self.folder, "serial").write_text("01\n")
        self.authority, _ = self.certificate("authority")
        self.certificate("server", "authority")

    def ssl(self, more=""):
        return f"ssl:\n  server_cert_path: {self.folder}/server.pem\n  server_key_path: {self.folder}/server.key\n{more}"

    def test_clients_with_certificates_of_the_authority_are_answered(self):
        good, revoked, foreign = (self.certificate(name, by) for name, by in
                                  (("good", "authority"), ("revoked", "authority"), ("other", None)))
        stranger = self.certificate("stranger", "other")
        del foreign
        expired = self.certificate("expired", "authority", days=-1)
        self.openssl("ca", "-config", "ca.cnf", "-revoke", "revoked.pem", "-cert", "authority.pem", "-keyfile", "authority.key")
        self.openssl("ca", "-config", "ca.cnf", "-gencrl", "-out", "crl.pem", "-cert", "authority.pem", "-keyfile", "authority.key")
        server = self.server(enable_ssl="true", clients=1, extra=self.ssl(
            f"  ca_cert_path: {self.authority}\n  crl_path: {self.folder}/crl.pem\n  names_clients: true\n"))
        self.assertTrue(server.url.startswith("https://"))
        reply = server.client("good", context=fl.tls(self.authority, *good)).start()
        self.assertEqual(reply.code, 200, reply.reason)
        reply = server.client("bad", context=fl.tls(self.authority, *good)).ask("startFLJob", fl.integer(1, 1))
        self.assertEqual(reply.reason, "the client has another name than its certificate")
        for who in (None, revoked, stranger, expired):
            with self.assertRaises(OSError, msg=who):
                server.client("x", context=fl.tls(self.authority, *(who or (None, None)))).start()
        old = fl.tls(self.authority, *good)
        old.minimum_version = old.maximum_version = fl.ssl.TLSVersion.TLSv1_1
        old.set_ciphers("ALL:@SECLEVEL=0")
        with self.assertRaises(OSError):
            server.client("good", context=old).start()
        for version in (fl.ssl.TLSVersion.TLSv1_2, fl.ssl.TLSVersion.TLSv1_3):
            context = fl.tls(self.authority, *good)
            context.minimum_version = context.maximum_version = version
            self.assertEqual(server.client("good", context=context).start().code, 200)
        with self.assertRaises((OSError, http.client.HTTPException)):
            server.client("good").start()

    def test_clients_sign_their_requests(self):
        pem, key = self.certificate("a", "authority")
        self.certificate("revoked", "authority")
        self.openssl("ca", "-config", "ca.cnf", "-revoke", "revoked.pem", "-cert", "authority.pem", "-keyfile", "authority.key")
        self.openssl("ca", "-config", "ca.cnf", "-gencrl", "-out", "crl.pem", "-cert", "authority.pem", "-keyfile", "authority.key")
        server = self.server(clients=1, iterations=1, extra=f"client_verify:\n  pki_verify: true\n  root_first_ca_path: {self.authority}\n"
                             f"  equip_crl_path: {self.folder}/crl.pem\n  replay_attack_time_diff: 5000\n")
        client = server.client("a")

        def signed(endpoint, content=b"", iteration=0, by=key, shown=pem, **options):
            def sign(text):
                Path(self.folder, "text").write_bytes(f"lunaria-fl 1\n{endpoint}\n".encode() + text)
                self.openssl("pkeyutl", "-sign", "-inkey", by, "-rawin", "-in", "text", "-out", "signature")
                return Path(self.folder, "signature").read_bytes()
            body = client.envelope(content, iteration, sign=sign, certificate=Path(shown).read_bytes(), **options)
            return body, fl.Reply(client.post(endpoint, body)[1])
        start = fl.integer(1, 1)
        now = int(fl.time.time() * 1000)
        self.assertIn("certificate is refused", client.start().reason)
        self.assertIn("certificate revoked", signed("startFLJob", start, shown=f"{self.folder}/revoked.pem")[1].reason)
        self.assertIn("another name", signed("startFLJob", start, shown=f"{self.folder}/server.pem")[1].reason)
        self.assertIn("signature is not", signed("startFLJob", start, by=f"{self.folder}/server.key")[1].reason)
        self.assertIn("behind the server's clock", signed("startFLJob", start, timestamp=now - 60000)[1].reason)
        self.assertIn("ahead of the server's clock", signed("startFLJob", start, timestamp=now + 60000)[1].reason)
        body, reply = signed("startFLJob", start)
        self.assertEqual(reply.code, 200, reply.reason)
        self.assertIn("was sent before", fl.Reply(client.post("startFLJob", body)[1]).reason)
        content = fl.update(weights([2] * 3, [2]))
        self.assertEqual(client.ask("updateModel", content, 1).code, 400)
        body, reply = signed("updateModel", content, 1)
        self.assertEqual(reply.code, 200, reply.reason)
        body, reply = signed("getModel", b"", 1)
        self.assertIn(reply.code, (200, 201), reply.reason)
        self.assertIn("signature is not", fl.Reply(client.post("pullWeights", body)[1]).reason, "a request of another endpoint")

    def test_a_certificate_that_has_expired_is_not_served(self):
        self.certificate("server", "authority", days=-1)
        with self.assertRaisesRegex(AssertionError, "server.pem: the certificate has expired"):
            self.server(enable_ssl="true", extra=self.ssl())
        self.certificate("server", "authority", days=20)
        server = self.server(enable_ssl="true", extra=self.ssl())
        self.assertIn("expires in", server.end()[1])


if __name__ == "__main__":
    unittest.main(argv=sys.argv, verbosity=2)
