"""Grammars that cost half a second of CPU before they are refused: others hardly notice, and nobody waits for them at
the end. Bounds of time are generous, for machines that have other work."""
import json, os, socket, threading, time, unittest

from weir_server import Server, eventually

PLAIN = {"model": "weir-tiny-moe", "prompt": "hello", "max_tokens": 8}


def hopeless(number):
    """A deterministic automaton of it has more than a million states: refused when the budget is used up."""
    return {**PLAIN, "guided_regex": f"(a|b)*a(a|b){{20}}x{number}"}


class Client:
    """A connection from an address of its own, with one request on it."""

    def __init__(self, server, source, body, path="/v1/completions"):
        self.socket = socket.create_connection((server.host, server.port), timeout=120, source_address=(source, 0))
        data = json.dumps(body).encode()
        self.socket.sendall((f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                             f"Connection: close\r\nContent-Length: {len(data)}\r\n\r\n").encode() + data)

    def status(self):
        answer = b""
        while part := self.socket.recv(65536):
            answer += part
        self.socket.close()
        return int(answer.split(b" ", 2)[1]) if answer else 0


def cpu_seconds(server):
    with open(f"/proc/{server.process.pid}/stat") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class HostileGrammars(unittest.TestCase):
    def test_a_bystander_is_served_promptly(self):
        with Server("--queue-timeout", "0") as server:
            self.assertEqual(Client(server, "127.0.0.9", PLAIN).status(), 200)
            hostile = [Client(server, "127.0.0.2", hopeless(i)) for i in range(64)]
            eventually(lambda: server.metric("weir_requests_preparing") > 32, what="most of them wait")
            times = []
            for _ in range(40):
                start = time.monotonic()
                self.assertEqual(Client(server, "127.0.0.9", PLAIN).status(), 200)
                times.append(time.monotonic() - start)
            waiting = server.metric("weir_requests_preparing")
            # A grammar of its own, too: a small one is compiled where it is asked for.
            start = time.monotonic()
            self.assertEqual(Client(server, "127.0.0.9", {**PLAIN, "guided_regex": "[a-z]+"}).status(), 200)
            times.append(time.monotonic() - start)
            times.sort()
            print(f"beside 64 hopeless grammars: median {times[20] * 1e3:.0f} ms, longest {times[-1] * 1e3:.0f} ms")
            self.assertLess(times[20], 0.5)
            self.assertLess(times[-1], 3)
            self.assertGreater(waiting, 0, "they were still being compiled")
            self.assertEqual(hostile[0].status(), 400)
            for client in hostile:
                client.socket.close()
            eventually(lambda: server.metric("weir_requests_preparing") == 0, 30, "nothing is left of them")

    def test_a_grammar_is_refused_once_for_all(self):
        with Server() as server:
            self.assertEqual(Client(server, "127.0.0.2", hopeless(0)).status(), 400)
            before = cpu_seconds(server)
            for _ in range(100):
                self.assertEqual(Client(server, "127.0.0.3", hopeless(0)).status(), 400)
            self.assertLess(cpu_seconds(server) - before, 5, "one hundred compilations would take 40 s")

    def test_clients_that_hang_up_cost_little(self):
        with Server() as server:
            self.assertEqual(Client(server, "127.0.0.9", PLAIN).status(), 200)
            before = cpu_seconds(server)
            for i in range(127):
                Client(server, "127.0.0.2", hopeless(i)).socket.close()
            eventually(lambda: server.metric("weir_requests_preparing") == 0, 30, "nothing is left of them")
            used = cpu_seconds(server) - before
            print(f"127 clients that hung up: {used:.1f} s of CPU")
            self.assertLess(used, 10, "all of their grammars would take 50 s")
            self.assertEqual(Client(server, "127.0.0.9", PLAIN).status(), 200)

    def test_a_drain_does_not_wait_for_them(self):
        with Server("--drain-seconds", "2") as server:
            statuses = []
            threads = [threading.Thread(target=lambda i=i: statuses.append(Client(server, "127.0.0.2",
                                                                                  hopeless(i)).status()))
                       for i in range(40)]
            for thread in threads:
                thread.start()
            eventually(lambda: server.metric("weir_requests_preparing") + len(statuses) >= len(threads),
                       what="they are queued")
            start = time.monotonic()
            self.assertEqual(server.terminate(60), 0)
            took = time.monotonic() - start
            for thread in threads:
                thread.join()
            print(f"SIGTERM with 40 queued: {took:.1f} s")
            self.assertLess(took, 2 + 3)
            self.assertGreater(statuses.count(503), 20, statuses)
            self.assertEqual(set(statuses) - {400, 503}, set(), "each has an answer")


if __name__ == "__main__":
    unittest.main(verbosity=2)
