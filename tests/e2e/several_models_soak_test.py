"""Several models for a long time: loads and unloads beside requests, an adapter, clients that leave, idle models that
go. Nothing grows, and no answer but 429 and 503 with Retry-After is an error. WEIR_SOAK_SECONDS says how long (an hour
for a release)."""
import json, os, random, tempfile, time, unittest

from adapter_test import write_adapter
from several_models import MODELS, PROMPTS, SeveralModels, ask, in_threads, known_answers, lone

SECONDS = int(os.environ.get("WEIR_SOAK_SECONDS", "120"))
LOADS = 200
GROWTH = 64 << 20


class Soak(unittest.TestCase):
    def test_loads_and_unloads_leave_no_memory_behind(self):
        with SeveralModels("--load-stay", "0") as server:

            def turn(i):
                name = list(MODELS)[i % len(MODELS)]
                ask(server, name, "Hi", 2)
                server.post("/models/unload", {"model": name})

            for i in range(20):
                turn(i)
            before = server.resident_bytes()
            for i in range(LOADS):
                turn(i)
            time.sleep(1)
            self.assertLess(abs(server.resident_bytes() - before), GROWTH)
            self.assertEqual(server.terminate(), 0)

    def test_mixed_traffic(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        write_adapter(f"{folder}/sql", 1)
        adapter = f"sql={folder}/sql"
        answers = known_answers()
        with lone("fast", "--lora-modules", adapter) as server:
            answers |= {("sql", prompt): ask(server, "sql", prompt) for prompt in PROMPTS}
        names = [*MODELS, "sql"]
        with SeveralModels("--idle-unload", "2", own={"fast": (("lora-modules", adapter),)}) as server:
            end = time.monotonic() + SECONDS
            busy = []

            def client(number):
                rng = random.Random(number)
                while time.monotonic() < end:
                    name, prompt, kind = rng.choice(names), rng.choice(PROMPTS), rng.random()
                    if kind < 0.1:
                        time.sleep(rng.random() * 3)  # So that models are idle at times.
                    elif kind < 0.3:
                        leave(server, name, prompt, rng.random() * 0.3)
                    elif kind < 0.4:
                        path = rng.choice(["load", "unload"])
                        status, headers, data = server.request("POST", f"/models/{path}", {"model": name})
                        if status != 409:
                            check(status, headers, data)
                    else:
                        body = {"model": name, "prompt": prompt, "max_tokens": 24, "temperature": 0, "logprobs": 1}
                        status, headers, data = server.request("POST", "/v1/completions", body)
                        if check(status, headers, data):
                            self.assertEqual(json.loads(data)["choices"][0], answers[name, prompt])

            def check(status, headers, data):
                if status in (429, 503):
                    self.assertIn("retry-after", headers)
                    busy.append(status)
                    return False
                self.assertEqual(status, 200, data)
                return True

            warm = min(SECONDS / 4, 60)
            sizes = []

            def watch(_):
                time.sleep(warm)
                while time.monotonic() < end:
                    sizes.append(server.resident_bytes())
                    time.sleep(0.5)

            self.assertEqual(in_threads(9, lambda i: client(i) if i < 8 else watch(i)), [])
            half = len(sizes) // 2
            self.assertLess(max(sizes[half:]) - max(sizes[:half]), GROWTH, "it grows")
            self.assertLess(server.open_files(), 64)
            self.assertEqual(server.terminate(), 0)


def leave(server, name, prompt, seconds):
    """A client that goes after a while, wherever its answer is then."""
    body = json.dumps({"model": name, "prompt": prompt, "max_tokens": 500, "ignore_eos": True, "stream": True})
    with server.socket() as client:
        client.sendall(f"POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
                       f"Content-Length: {len(body)}\r\n\r\n{body}".encode())
        time.sleep(seconds)


if __name__ == "__main__":
    unittest.main()
