"""Clients that take connections, heads and uploads from the others: each has an address of its own, and the others are
served."""
import json, os, resource, socket, subprocess, tempfile, threading, time, unittest

from weir_server import WEIR, Server, eventually

HOSTILE, BYSTANDER = "127.0.0.2", "127.0.0.99"
HEADERS = b"".join(b"x-%03d: %s\r\n" % (i, b"v" * 232) for i in range(250))  # 62 KB.
UNFINISHED = b"GET /health HTTP/1.1\r\nHost: localhost\r\n" + HEADERS
MiB = 1 << 20


def connect(server, address, timeout=30):
    return socket.create_connection((server.host, server.port), timeout=timeout, source_address=(address, 0))


def upload(length, headers=""):
    return (f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{headers}"
            f"Content-Length: {length}\r\n\r\n").encode()


def answer_to(s, request):
    """The status, and whether the connection is kept."""
    s.sendall(request)
    with s.makefile("rb") as answer:
        status = int(answer.readline().split()[1])
        headers = {}
        while (line := answer.readline().strip()):
            name, _, value = line.decode().partition(": ")
            headers[name.lower()] = value
        answer.read(int(headers["content-length"]))
    return status, headers["connection"] == "keep-alive"


class Bystander:
    """with Bystander(server) as b: asks on a new connection each time from an address of its own, and notes the
    answers."""

    def __init__(self, server, padding=0, headers=""):
        body = json.dumps({"prompt": "a", "max_tokens": 1, "user": "u" * padding}).encode()
        self.server, self.request = server, upload(len(body), headers) + body
        self.found, self.slowest, self.stop = [], 0.0, threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self):
        while not self.stop.is_set():
            begin = time.time()
            try:
                with connect(self.server, BYSTANDER) as s:
                    self.found.append(answer_to(s, self.request)[0])
            except (OSError, IndexError, ValueError) as error:
                self.found.append(repr(error))
            self.slowest = max(self.slowest, time.time() - begin)
            self.stop.wait(0.05)

    def __enter__(self):
        self.thread.start()
        eventually(lambda: self.found, 20, "the first answer")
        return self

    def __exit__(self, *failure):
        self.stop.set()
        self.thread.join()


class HostileConnections(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        want = 5000
        if hard != resource.RLIM_INFINITY and hard < want:
            raise unittest.SkipTest(f"this process may open {hard} files")
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, want), hard))

    def assert_served(self, bystander):
        self.assertEqual(set(bystander.found), {200}, bystander.found)
        self.assertLess(bystander.slowest, 10)

    def grown(self, server, before):
        return max(0, server.resident_bytes() - before)

    def test_heads_without_end_are_bounded_together(self):
        count = 2500
        for addresses in (1, 40):
            with self.subTest(addresses=addresses), Server("--mem-limit", "700M") as server:
                with Bystander(server) as bystander:
                    time.sleep(1)
                    before = server.resident_bytes()
                    held = []
                    for i in range(count):
                        s = connect(server, f"127.0.0.{2 + i % addresses}")
                        try:
                            s.sendall(UNFINISHED)
                        except OSError:
                            pass  # Given up while it was sending.
                        held.append(s)
                    time.sleep(2)
                    # 155 MB were sent. The plan: 5.5 MiB of heads, 2 KiB a connection.
                    self.assertLess(self.grown(server, before), 5.5 * MiB + count * 2048 + 16 * MiB)
                    self.assertGreater(server.metric("weir_http_yielded_total{what=\"head\"}"), count / 2)
                self.assert_served(bystander)
                for s in held:
                    s.close()

    def test_an_idle_connection_keeps_nothing_of_a_long_request(self):
        with Server() as server:
            server.get("/health")
            before = server.resident_bytes()
            idle = []
            for _ in range(1000):
                idle.append(connect(server, HOSTILE))
                self.assertEqual(answer_to(idle[-1],
                                           b"GET /health?" + b"q" * 60_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")[0], 200)
            self.assertLess(self.grown(server, before), 16 * MiB)
            for s in idle:
                s.close()

    def test_stalled_uploads_keep_nobody_out(self):
        length = 32 * MiB
        with Server("--mem-limit", "4G") as server:
            stalled = [connect(server, HOSTILE) for _ in range(2)]
            for s in stalled:
                s.sendall(upload(length))
                try:
                    s.sendall(b" " * (length - MiB))
                except OSError:
                    pass  # The second is more than this address may have.
            with Bystander(server) as small, Bystander(server, padding=500_000) as large:
                time.sleep(4)
            self.assert_served(small)
            self.assert_served(large)
            for s in stalled:
                s.close()

    def test_slow_uploads_of_many_addresses_are_given_up_for_others(self):
        length = 8 * MiB
        with Server("--mem-limit", "4G") as server:
            stalled = []
            for i in range(30):  # Together more than all may have.
                s = connect(server, f"127.0.0.{2 + i}", timeout=5)
                try:
                    s.sendall(upload(length) + b" " * (length - 1))
                except OSError:
                    pass
                stalled.append(s)
            time.sleep(6)  # By then they are slow.
            with Bystander(server, padding=3_000_000) as large:
                time.sleep(3)
            self.assert_served(large)
            for s in stalled:
                s.close()

    def test_bodies_without_a_key_are_never_stored(self):
        with Server("--mem-limit", "700M", "--api-key", "secret") as server:
            before = server.resident_bytes()
            held = []
            for i in range(300):
                s = connect(server, HOSTILE)
                s.sendall(upload(MiB) + b" " * (MiB - 1))
                held.append(s)
            self.assertLess(self.grown(server, before), 16 * MiB)
            self.assertEqual(answer_to(held[0], b" "), (401, True))
            with connect(server, HOSTILE) as s:
                self.assertEqual(answer_to(s, upload(2 * MiB)), (401, False), "a longer one is not waited for")
            with connect(server, HOSTILE) as s:
                self.assertEqual(answer_to(s, upload(5).replace(b"/v1/completions", b"/nowhere") + b"12345"),
                                 (404, True))
            with Bystander(server, padding=200_000, headers="Authorization: Bearer secret\r\n") as bystander:
                time.sleep(1)
            self.assert_served(bystander)
            for s in held:
                s.close()

    def test_idle_connections_keep_nobody_out(self):
        with Server("--max-connections", "200") as server, Bystander(server) as bystander:
            kept = connect(server, BYSTANDER)
            health = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
            self.assertEqual(answer_to(kept, health), (200, True))
            hostile = []
            for i in range(600):
                hostile.append(connect(server, HOSTILE))
                if i % 2:
                    hostile[-1].sendall(b"GET /hea")
            time.sleep(1)
            self.assertEqual(answer_to(kept, health), (200, True))
            self.assertGreater(server.metric("weir_http_yielded_total{what=\"request\"}"), 300)
            self.assertEqual(server.metric("weir_http_refused_connections_total"), 0)
            for s in [kept, *hostile]:
                s.close()
        self.assert_served(bystander)

    def test_a_certificate_that_is_a_fifo_is_an_error_at_once(self):
        with tempfile.TemporaryDirectory() as folder:
            fifo = os.path.join(folder, "fifo")
            os.mkfifo(fifo)
            for files in ((fifo, __file__), (__file__, fifo)):
                ended = subprocess.run([WEIR, "--port", "0", "--tls-cert", files[0], "--tls-key", files[1]],
                                       capture_output=True, text=True, timeout=30)
                self.assertNotEqual(ended.returncode, 0)
                self.assertIn("expected a regular file, found a FIFO: " + fifo, ended.stdout + ended.stderr)


if __name__ == "__main__":
    unittest.main()
