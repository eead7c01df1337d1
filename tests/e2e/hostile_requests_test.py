#!/usr/bin/env python3
"""One client asks for everything: many choices, a full queue, the earliest priority. The others, each from an address
of its own (127.0.0.x), hardly notice it. Times are compared with wide margins: this is about seconds that had become
milliseconds."""
import json, os, socket, tempfile, threading, time, unittest
from weir_server import Server

GREEDY, BYSTANDER = "127.0.0.2", "127.0.0.9"
MESSAGES = [{"role": "user", "content": "Tell me about rivers."}]


def request(path, body, key=None):
    data = json.dumps(body).encode()
    head = (f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nConnection: close\r\n"
            + (f"Authorization: Bearer {key}\r\n" if key else "") + f"Content-Length: {len(data)}\r\n\r\n")
    return head.encode() + data


def connect(port, address):
    return socket.create_connection(("127.0.0.1", port), timeout=120, source_address=(address, 0))


def read_answer(connection):
    data = b""
    while part := connection.recv(1 << 16):
        data += part
    head, _, body = data.partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:])}
    return int(lines[0].split()[1]), headers, body


def ask(port, address, body, path="/v1/chat/completions", key=None):
    """(status, headers, body) and how long they took."""
    begin = time.monotonic()
    with connect(port, address) as connection:
        connection.sendall(request(path, body, key))
        return (*read_answer(connection), time.monotonic() - begin)


def short(words="rivers"):
    return {"messages": [{"role": "user", "content": f"Tell me about {words}."}], "max_tokens": 8, "ignore_eos": True}


class Held:
    """Connections whose answers nobody reads."""

    def __init__(self, port, address, body, count=1, path="/v1/chat/completions"):
        self.connections = [connect(port, address) for _ in range(count)]
        for connection in self.connections:
            connection.sendall(request(path, body))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for connection in self.connections:
            connection.close()


def wait_until(holds, seconds=60):
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            raise AssertionError("did not come to pass")
        time.sleep(0.02)


def metric(server, name):
    page = server.get("/metrics").decode()
    return next(float(line.split()[1]) for line in page.splitlines() if line.startswith(name + " "))


class HostileRequests(unittest.TestCase):
    def test_many_choices_leave_others_their_part(self):
        with Server() as server:
            ask(server.port, BYSTANDER, short("the beginning"))
            alone = max(ask(server.port, BYSTANDER, short(f"river {i}"))[3] for i in range(5))
            endless = {"messages": MESSAGES, "n": 128, "max_tokens": 1900, "ignore_eos": True, "stream": True}
            with Held(server.port, GREEDY, endless, count=3):
                wait_until(lambda: metric(server, "weir_requests_running") >= 32)
                times = []
                for i in range(5):
                    status, _, body, seconds = ask(server.port, BYSTANDER, short(f"lake {i}"))
                    self.assertEqual(status, 200, body)
                    times.append(seconds)
            self.assertLess(sorted(times)[2], 10 * alone + 1, (alone, times))

    def test_no_answer_depends_on_it(self):
        with Server() as server:
            body = dict(short("bits"), temperature=0, max_tokens=24, logprobs=True)
            answer = lambda: json.loads(ask(server.port, BYSTANDER, body)[2])["choices"]
            alone = answer()
            with Held(server.port, GREEDY, {"messages": MESSAGES, "n": 64, "max_tokens": 1900, "ignore_eos": True}):
                wait_until(lambda: metric(server, "weir_requests_running") >= 16)
                self.assertEqual(answer(), alone)

    def test_the_earliest_priority_is_not_for_everybody(self):
        with Server() as server:
            status, headers, _, _ = ask(server.port, GREEDY, dict(short(), priority=-2**31))
            self.assertEqual((status, headers.get("x-weir-ignored")), (200, "priority (0 is the first allowed)"))
            status, headers, _, _ = ask(server.port, GREEDY, dict(short(), priority=3))
            self.assertEqual((status, headers.get("x-weir-ignored")), (200, None))

    def test_a_keys_concurrency_counts_choices(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "keys")
            with open(path, "w") as keys:
                keys.write("one-key name=one concurrency=1\nearly-key name=early priority=-5\n")
            with Server("--api-key-file", path) as server:
                status, headers, body, _ = ask(server.port, GREEDY, dict(short(), n=128), key="one-key")
                self.assertEqual(status, 400, body)
                self.assertIn("expected at most 1 choices", json.loads(body)["error"]["message"])
                self.assertNotIn("retry-after", headers)
                self.assertEqual(ask(server.port, GREEDY, short(), key="one-key")[0], 200)
                texts = {"input": [f"text {i}" for i in range(50)]}
                self.assertEqual(ask(server.port, GREEDY, texts, "/v1/embeddings", "one-key")[0], 200)
                status, headers, _, _ = ask(server.port, GREEDY, dict(short(), priority=-5), key="early-key")
                self.assertEqual((status, headers.get("x-weir-ignored")), (200, None))

    def test_a_full_queue_has_room_for_a_newcomer(self):
        with Server("--queue", "40", "--parallel", "8") as server:
            endless = {"prompt": "Once", "max_tokens": 900, "ignore_eos": True, "stream": True}
            with Held(server.port, GREEDY, endless, count=40, path="/v1/completions") as held:
                wait_until(lambda: metric(server, "weir_requests_waiting") == 32)
                self.assertEqual(ask(server.port, GREEDY, short())[0], 429)
                status, _, body, _ = ask(server.port, BYSTANDER, short())
                self.assertEqual(status, 200, body)
                ended = []
                for connection in held.connections:
                    connection.setblocking(False)
                    try:
                        ended.append(connection.recv(12))
                    except BlockingIOError:
                        pass  # It waits.
                self.assertEqual(ended.count(b"HTTP/1.1 429"), 1, ended)


if __name__ == "__main__":
    unittest.main()
