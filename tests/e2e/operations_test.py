"""Keys from a file, the JSON log, and what becomes of those who leave: seen from outside the process."""
import json, os, subprocess, tempfile, time, unittest

from weir_server import SOURCE, Server, eventually

CHAT = {"model": "weir-tiny-moe", "messages": [{"role": "user", "content": "Tell me a long story about the sea."}],
        "max_tokens": 1900, "ignore_eos": True}


def raw(body, path="/v1/chat/completions"):
    data = json.dumps(body).encode()
    return (f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "
            f"{len(data)}\r\n\r\n").encode() + data


class Operations(unittest.TestCase):
    def test_keys_of_a_file_with_limits_and_a_json_log(self):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write("# ours\nsk-alice-secret name=alice concurrency=1 requests-per-minute=1000\n"
                       "sk-watch-secret name=watcher scope=monitor\n")
            file.flush()
            with Server("--api-key-file", file.name, "--api-key", "sk-root-secret", "--log-format", "json",
                        "--log-level", "debug") as server:
                alice = {"Authorization": "Bearer sk-alice-secret"}
                watcher = {"x-api-key": "sk-watch-secret"}
                self.assertEqual(server.request("GET", "/v1/models")[0], 401)
                self.assertEqual(server.request("GET", "/ready")[0], 200)
                self.assertEqual(server.request("POST", "/v1/chat/completions", CHAT, watcher)[0], 403)
                self.assertEqual(server.request("GET", "/metrics", headers=watcher)[0], 200)
                self.assertEqual(server.request("GET", "/v1/models",
                                                headers={"Authorization": "Bearer sk-root-secret"})[0], 200)
                status, headers, _ = server.request("POST", "/v1/chat/completions", {**CHAT, "max_tokens": 3}, alice)
                self.assertEqual(status, 200)
                self.assertEqual(headers["x-ratelimit-limit-requests"], "1000")
                with server.socket() as s:
                    s.sendall(raw({**CHAT, "stream": True}).replace(b"\r\nHost",
                                                                    b"\r\nAuthorization: Bearer "
                                                                    b"sk-alice-secret\r\nHost", 1))
                    s.recv(100)
                    status, headers, body = server.request("POST", "/v1/chat/completions", CHAT, alice)
                    self.assertEqual(status, 429, body)
                    self.assertIn("retry-after-ms", headers)
                # The place is free again once the client has left.
                eventually(lambda: server.request("POST", "/v1/chat/completions", {**CHAT, "max_tokens": 1},
                                                  alice)[0] == 200)
                server.terminate()
                log = server.logged()
                for secret in ("sk-alice-secret", "sk-watch-secret", "sk-root-secret"):
                    self.assertNotIn(secret, log)
                lines = [json.loads(line) for line in log.splitlines()]
                self.assertTrue(all({"time", "level"} <= line.keys() for line in lines))
                answers = [line for line in lines if line.get("event") == "http answer"]
                done = [a for a in answers if a["status"] == 200 and a.get("key") == "alice" and a.get("output") == 3]
                self.assertEqual(len(done), 1)
                self.assertEqual((done[0]["method"], done[0]["path"], done[0]["finish"]),
                                 ("POST", "/v1/chat/completions", "length"))
                self.assertGreater(done[0]["prompt"], 0)
                self.assertGreaterEqual(done[0]["total_ms"], done[0]["first_token_ms"])
                self.assertTrue(any(a["status"] == 429 and a["key"] == "alice" for a in answers))
                self.assertTrue(any(a["status"] == 403 and a["key"] == "watcher" for a in answers))

    def test_models_tell_their_parameters(self):
        smollm2 = os.environ.get("WEIR_MODELS", f"{SOURCE}/../shared/models") + "/smollm2-135m-instruct-4bit"
        # Their own: heads are tied. 134,515,008 is what SmolLM2-135M's model card rounds.
        known = [((), 28_873_984)] + [(("--model", smollm2), 134_515_008)] * os.path.exists(smollm2)
        for arguments, parameters in known:
            with self.subTest(arguments), Server(*arguments) as server:
                meta = json.loads(server.get("/v1/models"))["data"][0]["meta"]
                self.assertEqual(meta["n_params"], parameters)

    def test_bad_key_files_stop_the_start(self):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write("sk-fine\nsk-secret speed=9\n")
            file.flush()
            done = subprocess.run([os.environ["WEIR_BINARY"], "--port", "0", "--api-key-file", file.name],
                                  capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 1)
            self.assertIn(f"{file.name} line 2: speed: unknown", done.stderr)
            self.assertNotIn("sk-secret", done.stderr)

    # Within a step or so: what is left of a long answer is not computed.
    def test_who_leaves_frees_its_pages_at_once(self):
        with Server() as server:
            for streamed in (True, False):
                for prompt_words in (5, 1200):  # While it decodes; while its prompt is computed.
                    before = server.metric("weir_generated_tokens_total")
                    s = server.socket()
                    s.sendall(raw({**CHAT, "stream": streamed, "max_tokens": 600,
                                   "messages": [{"role": "user",
                                                 "content": f"{prompt_words} " + "sea " * prompt_words}]}))
                    eventually(lambda: server.metric("weir_requests_running") == 1, what="it runs")
                    s.close()
                    start = time.time()
                    eventually(lambda: server.metric("weir_kv_usage") == 0 and server.metric("weir_requests_running") == 0, 5,
                               what="its pages are free")
                    self.assertLess(time.time() - start, 2)
                    self.assertLess(server.metric("weir_generated_tokens_total") - before, 600)

    def test_a_queue_that_does_not_move_refuses(self):
        # Slow kernels: with fast ones an answer of 1,900 tokens may end within the second.
        with Server("--parallel", "1", "--queue-timeout", "1", "--isa", "scalar") as server:
            holder = server.socket()
            holder.sendall(raw({**CHAT, "stream": True, "n": 8}))
            eventually(lambda: server.metric("weir_requests_waiting") >= 1, what="choices wait")
            start = time.time()
            status, headers, body = server.request("POST", "/v1/chat/completions", CHAT)
            self.assertEqual((status, json.loads(body)["error"]["code"]), (429, "queue_timeout"))
            self.assertLess(time.time() - start, 5)
            self.assertIn("retry-after", headers)
            slots = json.loads(server.get("/slots"))
            self.assertEqual(sum(s["is_processing"] for s in slots), 1)
            self.assertEqual([s["queue_position"] for s in slots if "queue_position" in s],
                             list(range(1, sum("queue_position" in s for s in slots) + 1)))
            holder.close()
            eventually(lambda: server.metric("weir_requests_running") == 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
