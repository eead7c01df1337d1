"""Speculation for a long time: 64 clients with and without predictions, right and wrong ones, memory for too few of
them at once, some that leave. Every answer is the one without speculation, nothing grows, and no page stays held.
WEIR_SOAK_SECONDS says how long (an hour for a release)."""
import json, os, random, threading, time, unittest

from speculation_test import figure
from weir_server import Server

SECONDS = int(os.environ.get("WEIR_SOAK_SECONDS", "120"))
CLIENTS = 64
GROWTH = 64 << 20
TEXT = "One day a small dog went to the park and saw a red ball. "


def bodies():
    for i in range(24):
        yield {"prompt": TEXT * (1 + i % 5) + "One day", "max_tokens": 20 + 5 * (i % 9), "temperature": 0.8 * (i % 2),
               "seed": i,
               "logprobs": i % 3, **({"repetition_penalty": 1.1} if i % 4 == 0 else {}),
               **({"stop": ["ball"]} if i % 6 == 5 else {})}


class Soak(unittest.TestCase):
    def test_mixed_traffic(self):
        asked = list(bodies())
        with Server("--speculative", "off") as server:
            expected = [server.post("/v1/completions", body)["choices"] for body in asked]
        with Server("--kv-memory", "24M", "--parallel", "48") as server:
            end, problems = time.monotonic() + SECONDS, []

            def client(number):
                rng = random.Random(number)
                mine = end if number < 2 else end - SECONDS / 4  # Among many, drafts rarely pay.
                try:
                    while time.monotonic() < mine:
                        i = rng.randrange(len(asked))
                        text = expected[i][0]["text"]
                        prediction = rng.choice([None, text, text[len(text) // 2:], TEXT * 3])
                        body = dict(asked[i])
                        if prediction:
                            body["prediction"] = {"type": "content", "content": prediction}
                        if rng.random() < 0.2:
                            leave(server, body, rng.random() * 0.3)
                            continue
                        status, _, data = server.request("POST", "/v1/completions", body)
                        if status == 429:
                            time.sleep(rng.random())
                        elif status != 200 or json.loads(data)["choices"] != expected[i]:
                            problems.append((i, status, data[:300]))
                except Exception as problem:
                    problems.append(repr(problem))

            threads = [threading.Thread(target=client, args=(n,)) for n in range(CLIENTS)]
            for thread in threads:
                thread.start()
            time.sleep(min(SECONDS / 4, 60))
            before = server.resident_bytes()
            for thread in threads:
                thread.join()
            self.assertEqual(problems, [])
            self.assertLess(server.resident_bytes() - before, GROWTH)
            time.sleep(1)
            page = server.request("GET", "/metrics")[2].decode()
            for name in ("weir_requests_running", "weir_requests_waiting", "weir_kv_usage"):
                self.assertEqual(figure(page, name), 0)
            self.assertGreater(figure(page, "weir_speculative_drafts_right_total", source="prediction"), 20)
            self.assertEqual(server.terminate(), 0)


def leave(server, body, seconds):
    """Asks for a stream and goes after a while."""
    connection = server.connection()
    try:
        connection.request("POST", "/v1/completions", json.dumps({**body, "stream": True}),
                           {"Content-Type": "application/json"})
        time.sleep(seconds)
    finally:
        connection.close()


if __name__ == "__main__":
    unittest.main()
