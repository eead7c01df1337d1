"""HTTPS over real sockets: streams, large bodies, clients that stall or speak something else, new certificates."""
import http.client, json, os, select, shutil, signal, socket, ssl, subprocess, tempfile, threading, time, unittest

from weir_server import Server, eventually

CHAT = {"model": "weir-tiny-moe", "messages": [{"role": "user", "content": "Tell me a long story about the sea."}],
        "max_tokens": 300, "ignore_eos": True}


def make_certificate(folder, name="localhost", prefix="server"):
    cert, key = os.path.join(folder, prefix + ".crt"), os.path.join(folder, prefix + ".key")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert, "-days",
                    "2",
                    "-subj", "/CN=" + name, "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"],
                   check=True, capture_output=True)
    return cert, key


@unittest.skipUnless(shutil.which("openssl"), "the openssl command is not installed")
class Tls(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.cert, cls.key = make_certificate(cls.folder.name)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def server(self, *arguments):
        return Server("--tls-cert", self.cert, "--tls-key", self.key, *arguments)

    def context(self):
        return ssl.create_default_context(cafile=self.cert)

    def connect(self, server, context=None):
        return (context or self.context()).wrap_socket(server.socket(30), server_hostname="127.0.0.1")

    def request(self, server, method, path, body=None):
        connection = http.client.HTTPSConnection(server.host, server.port, context=self.context(), timeout=60)
        connection.request(method, path, json.dumps(body) if body is not None else None,
                           {"Content-Type": "application/json"})
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        return answer.status, data

    def metric(self, server, name):
        for line in self.request(server, "GET", "/metrics")[1].decode().splitlines():
            if line.startswith(name + " "):
                return float(line.rsplit(" ", 1)[1])

    def test_requests_streams_and_kept_connections(self):
        with self.server() as server:
            status, body = self.request(server, "POST", "/v1/chat/completions", {**CHAT, "max_tokens": 20})
            self.assertEqual(status, 200)
            self.assertEqual(json.loads(body)["usage"]["completion_tokens"], 20)
            connection = http.client.HTTPSConnection(server.host, server.port, context=self.context(), timeout=60)
            for i in range(5):  # One connection, whole answers and streams in turn.
                connection.request("POST", "/v1/chat/completions",
                                   json.dumps({**CHAT, "seed": 1, "stream": i % 2 == 1}),
                                   {"Content-Type": "application/json"})
                data = connection.getresponse().read()
                if i % 2 == 1:
                    self.assertTrue(data.endswith(b"data: [DONE]\n\n"), data[-100:])
                    text = "".join(json.loads(e[6:])["choices"][0]["delta"].get("content", "")
                                   for e in data.decode().split("\n\n") if e.startswith("data: {"))
                    self.assertEqual(text, whole)
                else:
                    whole = json.loads(data)["choices"][0]["message"]["content"]
            connection.close()
            # Many at once.
            results = []
            threads = [threading.Thread(target=lambda: results.append(self.request(server, "POST",
                                                                                   "/v1/chat/completions", CHAT)[0]))
                       for _ in range(16)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(results, [200] * 16)

    def test_versions_and_protocols(self):
        with self.server() as server:
            for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
                context = self.context()
                context.minimum_version = context.maximum_version = version
                context.set_alpn_protocols(["h2", "http/1.1"])
                with self.connect(server, context) as s:
                    self.assertEqual(s.selected_alpn_protocol(), "http/1.1")
                    s.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                    data = b""
                    while part := s.recv(4096):  # Ends with close_notify: no SSLEOFError.
                        data += part
                    self.assertTrue(data.startswith(b"HTTP/1.1 200"), data)

    def test_bodies_larger_than_buffers(self):
        with self.server() as server:
            text = "word " * 40_000
            status, body = self.request(server, "POST", "/tokenize", {"content": text, "with_pieces": True})
            self.assertEqual(status, 200)
            self.assertGreater(len(body), 500_000)
            self.assertEqual("".join(t["piece"] for t in json.loads(body)["tokens"]), text)
            # A pipeline in one write.
            with self.connect(server) as s:
                s.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n" * 50)
                data = b""
                while data.count(b'{"status":"ok"}') < 50:
                    part = s.recv(65536)
                    self.assertTrue(part)
                    data += part

    def test_a_slow_reader_and_one_that_leaves(self):
        with self.server() as server:
            raw = socket.socket()
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            raw.connect((server.host, server.port))
            slow = self.context().wrap_socket(raw, server_hostname="127.0.0.1")
            body = json.dumps({**CHAT, "stream": True, "max_tokens": 1000, "logprobs": True,
                               "top_logprobs": 20}).encode()
            head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\n"
            slow.sendall(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
            eventually(lambda: self.metric(server, "weir_requests_running") == 0
                       and self.metric(server, "weir_generated_tokens_total") >= 1000, 120, "it computes to its end")
            data = b""
            while part := slow.recv(65536):
                data += part
            slow.close()
            self.assertIn(b"data: [DONE]", data[-100:])
            self.assertGreater(len(data), 1_000_000)
            leaver = self.connect(server)
            body = json.dumps({**CHAT, "stream": True, "max_tokens": 1900}).encode()
            leaver.sendall(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
            leaver.recv(1000)
            leaver.close()
            eventually(lambda: self.metric(server,
                                           "weir_requests_running") == 0 and self.metric(server, "weir_kv_usage") == 0,
                       what="its pages are free")

    def test_those_who_do_not_speak_tls(self):
        with self.server("--max-connections", "8") as server:
            with server.socket(10) as s:
                s.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
                answer = s.recv(4096)
                self.assertTrue(answer.startswith(b"HTTP/1.1 400"), answer)
                self.assertIn(b"HTTPS", answer + s.recv(4096))
            with server.socket(10) as s:
                s.sendall(os.urandom(500))
                while s.recv(4096):
                    pass
            self.assertGreaterEqual(self.metric(server, "weir_tls_failures_total"), 2)
            eventually(lambda: self.metric(server, "weir_http_open_connections") == 1,
                       what="only the question's is open")
            time.sleep(0.3)  # It is closed, too.
            # Who begins a handshake and stops is closed: at once if another needs the place, else in time.
            stalled = [server.socket(30) for _ in range(8)]
            for s in stalled:
                s.sendall(b"\x16\x03\x01\x02\x00")
            time.sleep(0.2)
            start = time.time()
            self.assertEqual(self.request(server, "GET", "/health")[0], 200)
            # One of them is closed without a word; which one, where all came within a millisecond, is open.
            self.assertEqual(len(select.select(stalled, [], [], 5)[0]), 1)
            for s in stalled:
                self.assertEqual(s.recv(100), b"")
                s.close()
            self.assertLess(time.time() - start, 20)
            self.assertGreater(time.time() - start, 5)

            self.assertEqual(self.request(server, "GET", "/health")[0], 200)

    # What the memory plan counts with: 2 KiB of a connection and 18 KiB of its session.
    def test_idle_connections_hold_what_the_plan_says(self):
        with self.server() as server:
            if server.is_sanitised():
                self.skipTest("a sanitiser's malloc keeps what was freed")
            words = json.dumps({"content": "word " * 4000, "with_pieces": True}).encode()
            message = b"POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(words)
            context = self.context()

            def busy_once():  # Kept alive behind an upload and an answer that are larger than a record.
                s = self.connect(server, context)
                s.sendall(message + words)
                data = b""
                while not data.endswith(b"]}"):
                    data += s.recv(1 << 20)
                self.assertTrue(data.startswith(b"HTTP/1.1 200"), data[:100])
                return s

            first = [busy_once() for _ in range(50)]
            before = server.resident_bytes()
            idle = [busy_once() for _ in range(400)]
            each = (server.resident_bytes() - before) / len(idle)
            print(f"idle TLS connections: {each:.0f} bytes each")
            self.assertLess(each, 20 << 10)
            for s in first + idle:
                s.close()

    def test_a_new_certificate_comes_by_signal(self):
        with tempfile.TemporaryDirectory() as folder:
            cert, key = make_certificate(folder)
            with Server("--tls-cert", cert, "--tls-key", key) as server:
                before = ssl.get_server_certificate((server.host, server.port))
                make_certificate(folder)
                server.process.send_signal(signal.SIGHUP)
                eventually(lambda: ssl.get_server_certificate((server.host, server.port)) != before,
                           what="the new one is served")
                after = ssl.get_server_certificate((server.host, server.port))
                with open(cert, "w") as file:
                    file.write("nonsense")
                server.process.send_signal(signal.SIGHUP)
                eventually(lambda: "tls certificate kept" in server.logged(), what="the failure is logged")
                self.assertEqual(ssl.get_server_certificate((server.host, server.port)), after)

    def test_bad_files_stop_the_start(self):
        weir = os.environ["WEIR_BINARY"]
        for arguments, expected in ((["--tls-cert", self.cert], "found only a certificate"),
                                    (["--tls-cert", self.key, "--tls-key", self.key],
                                     "--tls-cert: expected certificates in PEM form"),
                                    (["--tls-cert", self.cert, "--tls-key", "/nowhere"],
                                     "--tls-key: cannot read /nowhere")):
            done = subprocess.run([weir, "--port", "0", *arguments], capture_output=True, text=True, timeout=60)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(expected, done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
