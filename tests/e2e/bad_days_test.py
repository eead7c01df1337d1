"""What clients do wrong: leave, stop halfway, come by the thousand, flood. The server goes on and loses nothing."""
import json, os, resource, socket, threading, time, unittest

from weir_server import Server, eventually

CHAT = {"model": "weir-tiny-moe", "messages": [{"role": "user", "content": "Tell me a long story about the sea."}],
        "max_tokens": 400, "ignore_eos": True}


def raw(body, path="/v1/chat/completions"):
    data = json.dumps(body).encode()
    return (f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "
            f"{len(data)}\r\n\r\n").encode() + data


class BadDays(unittest.TestCase):
    def assert_idle(self, server):
        eventually(lambda: server.metric("weir_requests_running") == 0 and server.metric("weir_requests_waiting") == 0,
                   what="no request is left")
        eventually(lambda: server.metric("weir_kv_usage") == 0, what="no page is held")

    def assert_alive(self, server):
        answer = server.post("/v1/chat/completions", {**CHAT, "max_tokens": 4})
        self.assertEqual(answer["usage"]["completion_tokens"], 4)

    def test_clients_that_leave_are_cancelled(self):
        with Server() as server:
            self.assert_alive(server)
            files = server.open_files()
            for streamed in (True, False):
                open_sockets = []
                for i in range(40):
                    s = server.socket()
                    s.sendall(raw({**CHAT, "stream": streamed, "max_tokens": 1900}))
                    open_sockets.append(s)
                eventually(lambda: server.metric("weir_requests_running") >= 10, what="they run")
                for i, s in enumerate(open_sockets):
                    if i % 2:  # Half close, half reset.
                        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
                    s.close()
                self.assert_idle(server)
            made = server.metric("weir_generated_tokens_total")
            self.assertLess(made, 80 * 1900 / 2, "cancelled before their ends")
            self.assert_alive(server)
            eventually(lambda: server.open_files() <= files + 2, what="their sockets are closed")

    def test_half_sent_requests_do_not_hold_the_server(self):
        with Server() as server:
            message = raw(CHAT)
            halves = []
            for cut in range(1, len(message), max(1, len(message) // 50)):
                s = server.socket()
                s.sendall(message[:cut])
                halves.append(s)
            self.assert_alive(server)
            for s in halves:
                s.close()
            for garbage in (b"\x16\x03\x01\x02\x00\x01\x00", b"GET\r\n\r\n", b"\0" * 100,
                            b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n"):
                with server.socket(10) as s:
                    s.sendall(garbage)
                    s.shutdown(socket.SHUT_WR)
                    answer = s.recv(4096)
                    self.assertTrue(answer == b"" or answer.startswith(b"HTTP/1.1 4"), answer)
            self.assert_alive(server)
            self.assert_idle(server)

    def test_ten_thousand_idle_connections(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        want = 10_000
        if hard != resource.RLIM_INFINITY and hard < want + 200:
            self.skipTest(f"this process may open {hard} files")
        resource.setrlimit(resource.RLIMIT_NOFILE,
                           (max(soft, min(hard, want + 200)) if hard != resource.RLIM_INFINITY else want + 200, hard))
        with Server() as server:
            self.assert_alive(server)
            before = server.resident_bytes()
            idle = [server.socket() for _ in range(want)]
            eventually(lambda: server.metric("weir_http_open_connections") >= want, what="all are accepted")
            start = time.time()
            self.assert_alive(server)
            self.assertLess(time.time() - start, 5)
            grown = server.resident_bytes() - before
            print(f"10,000 idle connections: {grown / want:.0f} bytes each")
            self.assertLess(grown / want, 16 << 10)
            for s in idle:
                s.close()
            eventually(lambda: server.metric("weir_http_open_connections") < 10, 20, "all are gone")

    def test_a_full_queue_is_answered_429_at_once(self):
        with Server("--queue", "8", "--parallel", "2") as server:
            holders = []
            for i in range(8):
                s = server.socket()
                s.sendall(raw({**CHAT, "stream": True, "max_tokens": 1900}))
                holders.append(s)
            eventually(lambda: server.metric("weir_requests_running") + server.metric("weir_requests_waiting") >= 8)
            start = time.time()
            status, headers, body = server.request("POST", "/v1/chat/completions", CHAT)
            self.assertEqual(status, 429, body)
            self.assertLess(time.time() - start, 0.5)
            self.assertGreaterEqual(int(headers["retry-after"]), 1)
            self.assertIn("message", json.loads(body)["error"])
            for s in holders:
                s.close()
            self.assert_idle(server)
            self.assert_alive(server)

    def test_sigterm_lets_open_answers_finish(self):
        with Server() as server:
            results = []

            def run():
                results.append(server.stream("/v1/chat/completions", {**CHAT, "max_tokens": 300}))

            threads = [threading.Thread(target=run) for _ in range(16)]
            for thread in threads:
                thread.start()
            # All of them arrived: who connects later is rightly refused.
            eventually(lambda: server.metric("weir_requests_running") + server.metric("weir_requests_waiting")
                       + len(results) >= 16)
            code = server.terminate(60)
            for thread in threads:
                thread.join()
            self.assertEqual(code, 0)
            self.assertEqual(len(results), 16)
            for events in results:
                self.assertEqual(events[-1]["choices"][0]["finish_reason"], "length")

    def test_a_second_signal_stops_at_once(self):
        with Server() as server:
            s = server.socket()
            s.sendall(raw({**CHAT, "stream": True, "max_tokens": 1900}))
            s.recv(100)
            server.process.terminate()
            time.sleep(0.05)
            start = time.time()
            server.process.terminate()
            server.process.wait(5)
            self.assertLess(time.time() - start, 2)

    def test_a_client_that_does_not_read_slows_nobody(self):
        with Server() as server:
            self.assert_alive(server)
            before = server.resident_bytes()
            lazy = []
            for _ in range(10):
                s = socket.socket()
                s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                s.connect((server.host, server.port))
                s.sendall(raw({**CHAT, "stream": True, "max_tokens": 600, "logprobs": True, "top_logprobs": 20}))
                lazy.append(s)
            self.assert_alive(server)
            eventually(lambda: server.metric("weir_requests_running") == 0, 240, "they compute to their ends")
            if not server.is_sanitised():  # AddressSanitizer keeps what was freed.
                self.assertLess(server.resident_bytes() - before, 64 << 20)
            self.assert_alive(server)
            for s in lazy:
                s.close()

    def test_a_drain_ends_whatever_clients_do(self):
        with Server("--drain-seconds", "1") as server:
            self.assert_alive(server)
            half_head, half_body, deaf, reader = server.socket(), server.socket(), server.socket(), server.socket()
            half_head.sendall(b"POST /v1/completions HTTP/1.1\r\nHo")
            half_body.sendall(raw(CHAT)[:-5])
            # One answer is far too long to end in time; its client reads, another's does not.
            endless = raw({**CHAT, "stream": True, "n": 64, "max_tokens": 1900, "logprobs": True, "top_logprobs": 20})
            deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            deaf.sendall(endless)
            reader.sendall(endless)
            received, streams = [b""], threading.Event()

            def read():
                while data := reader.recv(1 << 20):
                    received[0] = received[0][-4096:] + data
                    if b"data: {" in data:
                        streams.set()

            thread = threading.Thread(target=read)
            thread.start()
            # An answer that has not begun when it is cancelled is a plain 503, which clients may repeat.
            self.assertTrue(streams.wait(60), "an event comes")
            eventually(lambda: server.metric("weir_requests_running") + server.metric("weir_requests_waiting") >= 128,
                       30,
                       "both are submitted")
            start = time.time()
            self.assertEqual(server.terminate(20), 0)
            self.assertLess(time.time() - start, 10)
            thread.join(10)
            self.assertIn(b'data: {"error":{"message":"The server is shutting down."', received[0][-4096:])
            for s in (half_head, half_body, deaf, reader):
                s.close()

    def test_a_drain_serves_what_was_arriving(self):
        with Server() as server:
            self.assert_alive(server)
            half, idle = server.socket(), server.socket()
            half.sendall(raw({**CHAT, "max_tokens": 4})[:-5])
            # A later connection's answer: by then the half is read.
            self.assertEqual(server.request("GET", "/ready")[0], 200)
            server.process.terminate()
            self.assertEqual(idle.recv(100), b"", "closed as the drain begins")
            with self.assertRaises(ConnectionRefusedError):
                server.socket()
            half.sendall(raw({**CHAT, "max_tokens": 4})[-5:])
            answer = b""
            while data := half.recv(1 << 16):
                answer += data
            self.assertTrue(answer.startswith(b"HTTP/1.1 200"), answer)
            self.assertIn(b"Connection: close", answer)
            self.assertEqual(server.process.wait(20), 0)
            for s in (half, idle):
                s.close()


if __name__ == "__main__":
    unittest.main(verbosity=2)
