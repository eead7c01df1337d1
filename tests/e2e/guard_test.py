"""What a page that somebody visits can do to a server without keys on the visitor's machine: nothing."""
import json, os, subprocess, tempfile, threading, time, unittest

from weir_server import Server, WEIR, eventually

CHAT = {"model": "weir-tiny-moe", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 2, "ignore_eos": True}
PATHS = ("/v1/models", "/v1/models/weir-tiny-moe", "/slots", "/metrics", "/props", "/health", "/ready", "/",
         "/openapi.json", "/nowhere")


def wire(method, path, headers, body=b""):
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers),
             f"Content-Length: {len(body)}"]
    return ("\r\n".join(lines) + "\r\nConnection: close\r\n\r\n").encode() + body


def exchange(server, method, path, headers, body=b"", connect=None):
    """(status, body) of a request with these headers and no others."""
    with connect or server.socket() as s:
        s.sendall(wire(method, path, headers, body))
        data = b""
        while part := s.recv(1 << 16):
            data += part
    head, _, text = data.partition(b"\r\n\r\n")
    return int(head.split()[1]), text.decode()


class Guard(unittest.TestCase):
    def check_refused(self, server, method, path, headers, body=b"", expect=403):
        status, text = exchange(server, method, path, headers, body)
        self.assertEqual(status, expect, (method, path, headers, text))
        if method != "HEAD":
            return json.loads(text)["error"]["message"]

    def test_no_page_may_lead_its_own_name_here(self):
        chat = json.dumps(CHAT).encode()
        with Server() as server:
            for host in ("evil.example", f"evil.example:{server.port}", "127.0.0.1.evil.example"):
                page = [("Host", host), ("Sec-Fetch-Site", "same-origin")]
                for path in PATHS:
                    message = self.check_refused(server, "GET", path, page)
                    self.assertIn(f"'{host}'", message)
                    self.assertIn("--allowed-hosts " + host.split(":")[0] + " ", message)
                self.check_refused(server, "HEAD", "/v1/models", page)
                self.check_refused(server, "OPTIONS", "/v1/chat/completions", page + [("Origin", "http://evil.example"),
                                   ("Access-Control-Request-Method", "POST")])
                for path in ("/v1/chat/completions", "/v1/messages", "/v1/responses", "/tokenize"):
                    self.check_refused(server, "POST", path, page + [("Origin", f"http://{host}"),
                                       ("Content-Type", "application/json")], chat)
            eventually(lambda: "guard host 'evil.example' is refused" in server.logged(), what="it is said")
            self.assertEqual(server.logged().count("guard "), 1, "said once, however many come")
            self.assertEqual(server.metric("weir_requests_open_max") > 0, True)
            self.assertEqual(server.metric("vllm:prompt_tokens_total"), 0, "nothing was computed")

    def test_its_own_names_are_served(self):
        with Server() as server:
            for host in (f"127.0.0.1:{server.port}", f"localhost:{server.port}", "localhost", "weir.localhost",
                         "[::1]:1",
                         "10.1.2.3:80", os.uname().nodename + ":5413", "host.docker.internal:5413"):
                for path in PATHS[:4]:
                    self.assertEqual(exchange(server, "GET", path, [("Host", host)])[0], 200, host)
                self.assertEqual(exchange(server, "POST", "/v1/chat/completions", [("Host", host)],
                                          json.dumps(CHAT).encode())[0], 200)
            with server.socket() as s:
                s.sendall(b"GET /health HTTP/1.0\r\n\r\n")
                self.assertIn(b" 200 OK", s.recv(1 << 16))
            self.assertNotIn("guard", server.logged())

    def test_other_names_are_served_where_they_are_allowed(self):
        with Server("--allowed-hosts", "weir,*.cluster.local", "--allowed-hosts", "llm.example") as server:
            for host in ("weir:5413", "WEIR", "weir.default.svc.cluster.local", "llm.example"):
                self.assertEqual(exchange(server, "GET", "/v1/models", [("Host", host)])[0], 200, host)
            self.check_refused(server, "GET", "/v1/models", [("Host", "evil.example")])
        with Server("--allowed-hosts", "*") as server:
            self.assertEqual(exchange(server, "GET", "/v1/models", [("Host", "evil.example")])[0], 200)
        done = subprocess.run([WEIR, "--allowed-hosts", "weir:5413"], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 2)
        self.assertIn("without a scheme, a port or a path", done.stderr)

    def test_no_other_page_may_have_anything_computed(self):
        chat = json.dumps(CHAT).encode()
        with Server() as server:
            own = ("Host", f"127.0.0.1:{server.port}")
            # fetch(..., {mode: "no-cors", body: bytes}) asks nobody before, and sends no Content-Type.
            attack = [own, ("Origin", "https://evil.example"), ("Sec-Fetch-Site", "cross-site"),
                      ("Sec-Fetch-Mode", "no-cors")]
            message = self.check_refused(server, "POST", "/v1/chat/completions", attack, chat)
            self.assertIn("--cors https://evil.example", message)
            for headers in (attack[:2], [own, attack[2]], attack + [("Content-Type", "application/json")],
                            attack + [("Content-Type", "text/plain")], [own, ("Origin", "null")],
                            [own, ("Origin", "http://localhost:3000"), ("Sec-Fetch-Site", "same-site")]):
                for path in ("/v1/chat/completions", "/v1/messages", "/v1/embeddings", "/tokenize", "/nowhere"):
                    self.check_refused(server, "POST", path, headers, chat)
                self.check_refused(server, "DELETE", "/v1/responses/resp_0", headers)
            # Before the body: none of it comes.
            with server.socket() as s:
                s.sendall(wire("POST", "/v1/chat/completions",
                               attack)[:-len("Content-Length: 0\r\nConnection: close\r\n\r\n")]
                          + b"Content-Length: 30000000\r\n\r\n")
                self.assertIn(b" 403 Forbidden", s.recv(1 << 16))
            self.assertEqual(server.metric("vllm:prompt_tokens_total"), 0)
            # Its own page, and programs.
            for headers in ([own],
                            [own, ("Origin", f"http://127.0.0.1:{server.port}"), ("Sec-Fetch-Site", "same-origin")]):
                status, text = exchange(server, "POST", "/v1/chat/completions",
                                        headers + [("Content-Type", "application/json")], chat)
                self.assertEqual(status, 200, text)
            # What only looks is answered, without leave to read it.
            self.assertEqual(exchange(server, "GET", "/v1/models", attack)[0], 200)
        with Server("--cors", "https://evil.example") as server:
            status, text = exchange(server, "POST", "/v1/chat/completions",
                                    attack + [("Content-Type", "application/json")], chat)
            self.assertEqual(status, 200, text)

    def test_a_browser_says_what_it_sends(self):
        chat = json.dumps(CHAT).encode()
        with Server("--cors", "https://a.example") as server:
            own = ("Host", f"127.0.0.1:{server.port}")
            for headers in ([own, ("Origin", "https://a.example")], [own, ("Sec-Fetch-Site", "same-origin")],
                            [own, ("Sec-Fetch-Site", "none")]):
                message = self.check_refused(server, "POST", "/v1/chat/completions", headers, chat, 415)
                self.assertEqual(message, "Unsupported content type: expected application/json, found none.")
                status, _ = exchange(server, "POST", "/v1/chat/completions",
                                     headers + [("Content-Type", "application/json")], chat)
                self.assertEqual(status, 200)
            self.assertEqual(exchange(server, "POST", "/v1/chat/completions", [own], chat)[0], 200,
                             "a program need not")

    def test_keys_protect_by_themselves(self):
        chat = json.dumps(CHAT).encode()
        with Server("--api-key", "sk-one") as server:
            page = [("Host", "evil.example"), ("Origin", "https://evil.example"), ("Content-Type", "application/json")]
            for _ in range(2):
                self.assertEqual(exchange(server, "POST", "/v1/chat/completions", page, chat)[0], 401)
                self.assertEqual(exchange(server, "POST", "/v1/chat/completions",
                                          page + [("Authorization", "Bearer sk-one")], chat)[0], 200)
            eventually(lambda: server.logged().count("guard host 'evil.example'") == 1, what="said once")
            self.assertEqual(server.logged().count("guard"), 1)

    def test_unix_sockets_have_no_name(self):
        import socket
        with tempfile.TemporaryDirectory() as folder, Server("--unix-socket", folder + "/weir") as server:
            s = socket.socket(socket.AF_UNIX)
            s.connect(folder + "/weir")
            self.assertEqual(exchange(server, "GET", "/v1/models", [("Host", "whatever")], connect=s)[0], 200)

    def test_also_while_the_model_is_loading(self):
        """The port is taken before the model is read; who comes early finds the same guard."""
        import socket
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        found, over = set(), threading.Event()

        def attack():
            while not over.is_set():
                try:
                    with socket.create_connection(("127.0.0.1", port), timeout=10) as c:
                        c.sendall(wire("GET", "/v1/models", [("Host", "evil.example")]))
                        found.add(c.recv(1 << 16).split(b" ")[1])
                except (OSError, IndexError):
                    time.sleep(0.0005)

        thread = threading.Thread(target=attack)
        thread.start()
        try:
            with Server("--port", str(port)):
                until = time.monotonic() + 10
                while not found and time.monotonic() < until:  # On a busy machine the model may be there first.
                    time.sleep(0.001)
        finally:
            over.set()
            thread.join()
        self.assertEqual(found, {b"403"})


if __name__ == "__main__":
    unittest.main(verbosity=2)
