"""What signals do to the server: SIGHUP rereads and never stops, SIGTERM drains when load balancers have seen it."""
import http.client, json, os, re, signal, socket, subprocess, tempfile, threading, time, unittest

from weir_server import Server, WEIR, eventually, knows_localhost

CHAT = {"model": "weir-tiny-moe", "messages": [{"role": "user", "content": "Tell me a long story about the sea."}],
        "max_tokens": 3, "ignore_eos": True}


def bearer(key):
    return {"Authorization": "Bearer " + key}


def write(path, text):
    """As an editor does it: another file, then its name."""
    with open(path + ".new", "w") as file:
        file.write(text)
    os.rename(path + ".new", path)


class Hangup(unittest.TestCase):
    def test_is_no_end_at_any_time(self):
        # As under nohup: until the program has begun nobody else could take the signal.
        before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
        log = tempfile.TemporaryFile("w+")
        process = subprocess.Popen([WEIR, "--port", "0"], stdout=subprocess.PIPE, stderr=log, text=True)
        signal.signal(signal.SIGHUP, before)
        over = threading.Event()

        def hang_up():  # While it starts, loads, serves, drains and ends.
            while not over.is_set():
                process.send_signal(signal.SIGHUP)
                time.sleep(0.001)

        thread = threading.Thread(target=hang_up)
        thread.start()
        try:
            address = None
            while not address:
                line = process.stdout.readline()
                self.assertTrue(line, "it has ended")
                address = re.search(r"http://([^/\s]+):(\d+)/v1", line)
            for _ in range(3):
                connection = http.client.HTTPConnection(address.group(1), int(address.group(2)), timeout=60)
                connection.request("POST", "/v1/chat/completions", json.dumps(CHAT),
                                   {"Content-Type": "application/json"})
                self.assertEqual(connection.getresponse().status, 200)
                connection.close()
            process.send_signal(signal.SIGTERM)
            process.wait(60)
        finally:
            over.set()
            thread.join()
            process.kill()
            process.wait()
            process.stdout.close()
        self.assertEqual(process.returncode, 0)
        with log:
            log.seek(0)
            words = log.read()
        self.assertIn("server rereads its files", words)
        self.assertIn("server stopped", words)

    def reload(self, server, expected):
        before = server.logged().count(expected)
        server.process.send_signal(signal.SIGHUP)
        eventually(lambda: server.logged().count(expected) > before, what=expected)

    def status(self, server, key):
        return server.request("GET", "/v1/models", headers=bearer(key))[0]

    def test_brings_the_keys_of_a_changed_file(self):
        with tempfile.TemporaryDirectory() as folder:
            file = folder + "/keys"
            write(file, "sk-first name=alice requests-per-minute=2\nsk-second name=bob\nsk-third\n")
            with Server("--api-key-file", file, "--api-key", "sk-root") as server:
                def post(key):
                    return server.request("POST", "/v1/chat/completions", CHAT, bearer(key))
                self.assertEqual(post("sk-first")[0], 200)
                response = json.loads(server.request("POST", "/v1/responses", {"input": "hi", "max_output_tokens": 16},
                                                     bearer("sk-third"))[2])
                # One goes while it is answered, one comes; the third is on another line; alice has a new secret.
                with server.socket() as s:
                    data = json.dumps({**CHAT, "max_tokens": 300, "stream": True}).encode()
                    s.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nConnection: "
                              b"close\r\nAuthorization: Bearer sk-second\r\n"
                              b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(data) + data)
                    answer = s.recv(1 << 16)
                    write(file, "# new\nsk-fourth\nsk-third\nsk-fifth name=alice requests-per-minute=2\n")
                    self.reload(server, "keys count=4")
                    while part := s.recv(1 << 16):
                        answer += part
                    self.assertIn(b"data: [DONE]", answer)
                for key, status in (("sk-root", 200), ("sk-third", 200), ("sk-fourth", 200), ("sk-fifth", 200),
                                    ("sk-first", 401), ("sk-second", 401)):
                    self.assertEqual(self.status(server, key), status, key)
                # What alice has used stays used.
                self.assertEqual(post("sk-fifth")[0], 200)
                self.assertEqual(post("sk-fifth")[0], 429)
                metrics = server.request("GET", "/metrics", headers=bearer("sk-root"))[2].decode()
                self.assertIn('weir_key_requests_total{key="alice"} 2\n', metrics)
                self.assertNotIn('key="bob"', metrics)
                # What the third has stored is its own, not that of whoever has its line now.
                for key, status in (("sk-third", 200), ("sk-fourth", 404)):
                    self.assertEqual(server.request("GET", "/v1/responses/" + response["id"], headers=bearer(key))[0],
                                     status)
                # What cannot be read changes nothing, and says no key.
                write(file, "sk-fourth\nsk-secret speed=9\n")
                self.reload(server, "keys kept: ")
                self.assertIn("line 2: speed: unknown", server.logged())
                self.assertNotIn("sk-", server.logged())
                os.remove(file)
                self.reload(server, "keys kept: ")
                os.mkfifo(file)  # That nobody writes.
                self.reload(server, "keys kept: ")
                self.assertEqual(self.status(server, "sk-third"), 200)
                self.assertEqual(self.status(server, "sk-secret"), 401)

    def test_opens_the_log_file_anew(self):
        with tempfile.TemporaryDirectory() as folder:
            file = folder + "/weir.log"
            with Server("--log-file", file) as server:
                server.get("/v1/models")
                os.rename(file, file + ".1")
                server.get("/props")
                server.process.send_signal(signal.SIGHUP)
                eventually(lambda: os.path.exists(file), what="a new file")
                server.get("/slots")
                self.assertEqual(server.terminate(), 0)
                self.assertEqual(server.logged(), "")
            with open(file + ".1") as old, open(file) as new:
                old, new = old.read(), new.read()
            for words, there in (("server ready", old), ("path=/v1/models", old), ("path=/props", old),
                                 ("path=/slots", new),
                                 ("server stopped", new)):
                self.assertIn(words, there)
        done = subprocess.run([WEIR, "--port", "0", "--log-file", "/nowhere/log"], capture_output=True, text=True,
                              timeout=60)
        self.assertEqual(done.returncode, 1)
        self.assertIn("cannot open the log file /nowhere/log: No such file or directory", done.stderr)

    def test_tells_what_others_may_read_and_reach(self):
        with tempfile.TemporaryDirectory() as folder:
            file = folder + "/keys"
            write(file, "sk-first\n")
            os.chmod(file, 0o644)
            with Server("--host", "0.0.0.0", "--api-key-file", file) as server:
                self.assertIn(f"--api-key-file {file} can be read by every user of this machine (mode 0644)",
                              server.logged())
                self.assertNotIn("without keys", server.logged())
                os.chmod(file, 0o640)
                self.reload(server, "keys count=1")
                self.assertEqual(server.logged().count("can be read"), 1)
        for host, told in (("0.0.0.0", True), ("::", True), ("127.0.0.1", False), ("127.0.0.9", False),
                           ("localhost", False)):
            if (host == "::" and not socket.has_ipv6) or (host == "localhost" and not knows_localhost()):
                print(f"left out: {host} is unknown here")
                continue
            with Server("--host", host) as server:
                self.assertEqual(f"server listens on {host} without keys" in server.logged(), told, host)


class Terminate(unittest.TestCase):
    def test_serves_on_for_the_delay_though_it_is_not_ready(self):
        with Server("--drain-delay", "3") as server:
            self.assertEqual(server.request("GET", "/ready")[0], 200)
            kept = server.connection()
            kept.request("GET", "/v1/models")
            kept.getresponse().read()
            start = time.time()
            server.process.send_signal(signal.SIGTERM)
            eventually(lambda: server.request("GET", "/ready")[0] == 503, what="not ready")
            self.assertEqual(server.request("GET", "/health")[0], 503)
            # On new connections and on kept ones all is as before.
            self.assertEqual(len(server.stream("/v1/chat/completions", CHAT)) > 1, True)
            kept.request("POST", "/v1/chat/completions", json.dumps(CHAT), {"Content-Type": "application/json"})
            answer = kept.getresponse()
            self.assertEqual((answer.status, len(answer.read()) > 0), (200, True))
            self.assertEqual(server.process.wait(60), 0)
            self.assertGreaterEqual(time.time() - start, 3)
            kept.close()
            log = server.logged()
            self.assertLess(log.index("serves on for 3 s"), log.index("server drains open=0"))

    def test_a_second_signal_ends_the_delay_at_once(self):
        with Server("--drain-delay", "3600") as server:
            server.process.send_signal(signal.SIGTERM)
            eventually(lambda: server.request("GET", "/ready")[0] == 503, what="not ready")
            self.assertEqual(server.terminate(10), 1)


class Versions(unittest.TestCase):
    def test_name_the_commit(self):
        printed = subprocess.run([WEIR, "--version"], capture_output=True, text=True, timeout=60).stdout
        version, commit = re.fullmatch(r"weir (\S+) \((\S+)\)\n", printed).groups()
        with Server() as server:
            self.assertEqual(json.loads(server.get("/version")), {"version": version, "commit": commit})


if __name__ == "__main__":
    unittest.main(verbosity=2)
