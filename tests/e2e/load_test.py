"""weir-load and the scripts of bench/, on the embedded model: their figures add up, and their tables judge as they
say."""
import http.server, json, os, shutil, stat, subprocess, sys, tempfile, threading, unittest

from tls_test import make_certificate
from weir_server import SOURCE, WEIR, Server, knows_localhost

LOAD = os.path.join(os.path.dirname(WEIR), "weir-load")

# What stands in for llama.cpp's programs: output in their forms with fixed figures.
LLAMA_BENCH = """#!/bin/sh
case "$*" in
*" -d "*) echo '[{"n_prompt": 0, "n_gen": 32, "n_depth": 128, "avg_ts": 50.0}]';;
*) echo '[{"n_prompt": 512, "n_gen": 0, "n_depth": 0, "avg_ts": 0.001}, {"n_prompt": 0, "n_gen": 16, "n_depth": 0, "avg_ts": 1e9}]';;
esac
"""
LLAMA_BATCHED = """#!/bin/sh
echo '|    PP |     TG |    B |   N_KV |   T_PP s | S_PP t/s |   T_TG s | S_TG t/s |      T s |    S t/s |'
echo '|-------|--------|------|--------|----------|----------|----------|----------|----------|----------|'
echo '|     8 |     16 |    2 |     48 |    0.010 |   800.00 |    0.100 |   123.50 |    0.110 |   400.00 |'
"""


def read(path):
    with open(path) as file:
        return file.read()


@unittest.skipUnless(os.path.exists(LOAD), "weir-load is not built")
class Load(unittest.TestCase):
    def load(self, server, folder, *options):
        out, log = os.path.join(folder, "out.json"), os.path.join(folder, "log.jsonl")
        subprocess.run([LOAD, "--port", str(server.port), "--json", out, "--log", log, *options], check=True,
                       stdout=subprocess.DEVNULL)
        return json.loads(read(out)), [json.loads(line) for line in read(log).splitlines()]

    @unittest.skipUnless(shutil.which("openssl"), "the openssl command is not installed")
    def test_speaks_tls_with_whom_it_trusts(self):
        def run(server, host, *options):
            return subprocess.run([LOAD, "--url", f"https://{host}:{server.port}/v1", "--requests", "4", "--clients",
                                   "3", "--idle", "3",
                                   "--output-tokens", "4", "--json", "-", *options], capture_output=True, text=True)
        name = "localhost" if knows_localhost() else "127.0.0.1"
        with tempfile.TemporaryDirectory() as folder:
            cert, key = make_certificate(folder)
            with Server("--tls-cert", cert, "--tls-key", key, "--host", "0.0.0.0") as server:
                for host, options in (("127.0.0.1", ["--ca", cert]), (name, ["--cacert", cert]), ("127.0.0.1", ["-k"]),
                                      ("127.0.0.2", ["--insecure"]),
                                      (name, ["--ca", cert, "--no-stream", "--prompt-words", "1500"])):
                    done = run(server, host, *options)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    found = json.loads(done.stdout)
                    self.assertEqual((found["ok"], found["output_tokens"] > 0, found["connections"],
                                      found["idle_open"]), (12, True, 3, 3))
                for host, options, reason in (("127.0.0.1", [], "self-signed certificate"),
                                              ("127.0.0.2", ["--ca", cert], "IP address mismatch"),
                                              (name, ["--ca", key], "expected certificates in PEM form")):
                    done = run(server, host, *options)
                    self.assertEqual(done.returncode, 2)
                    self.assertIn(reason, done.stderr)
            with Server() as server:
                self.assertIn("broken TLS", run(server, "127.0.0.1").stderr)

    def test_classes_and_log_add_up_to_the_figures(self):
        options = ["--rate", "100", "--requests", "60", "--prompt-words", "4:8", "--output-tokens", "2:4",
                   "--mix", "long=0.3:60:6", "--mix", "rare=0.1:5:1", "--slo-e2e", "100000", "--burstiness", "1000"]
        with Server() as server, tempfile.TemporaryDirectory() as folder:
            found, log = self.load(server, folder, *options)
            self.assertEqual(set(found["classes"]), {"rest", "long", "rare"})
            for key in ("ok", "good", "prompt_tokens", "output_tokens"):
                self.assertEqual(sum(c[key] for c in found["classes"].values()), found[key], key)
            self.assertEqual((found["ok"], found["good"], len(log)), (60, 60, 60))
            for name, tally in found["classes"].items():
                ours = [line for line in log if line["class"] == name]
                self.assertEqual(len(ours), tally["ok"])
                self.assertEqual(sum(line["output_tokens"] for line in ours), tally["output_tokens"])
                self.assertGreater(tally["ok"], 0)
            long = found["classes"]["long"]
            self.assertEqual(long["output_tokens"], 6 * long["ok"])
            self.assertTrue(all(line["due_s"] < line["end_s"] and 0 < line["ttft_ms"] for line in log))
            again, _ = self.load(server, folder, *options)  # The same seed makes the same work.
            for name, tally in again["classes"].items():
                for key in ("ok", "prompt_tokens", "output_tokens"):
                    self.assertEqual(tally[key], found["classes"][name][key], (name, key))

    def test_objectives_and_refusals_are_told_apart(self):
        with Server("--queue", "2", "--parallel", "2") as server, tempfile.TemporaryDirectory() as folder:
            found, log = self.load(server, folder, "--rate", "400", "--requests", "80", "--output-tokens", "60",
                                   "--slo-e2e", "0.001")
            self.assertGreater(found["refused"], 0)
            self.assertGreater(found["ok"], 0)
            self.assertEqual((found["good"], found["failed"]), (0, 0))
            self.assertEqual(sum(line["kind"] == "refused" for line in log), found["refused"])

    def test_conversations_hold_what_came_before_and_name_themselves(self):
        asked = []

        class Answerer(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                asked.append((self.headers["x-session-id"], body["messages"]))
                usage = {"prompt_tokens": 10, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 7}}
                answer = json.dumps({"choices": [{"message": {"content": "x"}, "finish_reason": "stop"}],
                                     "usage": usage}).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_):
                pass

        server = http.server.HTTPServer(("127.0.0.1", 0), Answerer)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            done = subprocess.run([LOAD, "--port", str(server.server_port), "--model", "m", "--no-stream", "--requests",
                                   "24", "--sessions", "3",
                                   "--turns", "4", "--prefix-words", "5", "--json", "-"], capture_output=True,
                                  text=True, check=True)
        finally:
            server.shutdown()
            thread.join()
            server.server_close()
        found = json.loads(done.stdout)
        self.assertEqual((found["ok"], found["prompt_tokens"], found["cached_tokens"]), (24, 240, 168))
        sessions = {}
        for name, messages in asked:
            sessions.setdefault(name, []).append(messages)
        # Six conversations of four turns, three at a time.
        self.assertEqual({name: len(turns) for name, turns in sessions.items()}, {f"session-{i}": 4 for i in range(6)})
        self.assertEqual([name for name, _ in asked[:4]], ["session-0", "session-1", "session-2", "session-0"])
        for turns in sessions.values():
            for i, messages in enumerate(turns):
                self.assertEqual([message["role"] for message in messages], (["user", "assistant"] * 4)[:2 * i + 1])
                if i > 0:
                    self.assertEqual(messages[:-2], turns[i - 1])
        self.assertEqual(len({turns[0][0]["content"] for turns in sessions.values()}), 6)
        self.assertEqual(len({" ".join(turns[0][0]["content"].split()[:5]) for turns in sessions.values()}), 1)
        wrong = subprocess.run([LOAD, "--sessions", "3", "--mix", "long=0.1:5:5"], capture_output=True, text=True)
        self.assertEqual(wrong.returncode, 2)
        self.assertIn("--sessions: has no classes", wrong.stderr)

    def test_wrong_mixes_are_named(self):
        for wrong in ("long", "long=0.5", "long=2:3:3", "rest=0.5:3:3", "=0.1:3:3", "long=0.1:x:3"):
            done = subprocess.run([LOAD, "--mix", wrong], capture_output=True, text=True)
            self.assertEqual(done.returncode, 2, wrong)
            self.assertIn("--mix: expected", done.stderr)


@unittest.skipUnless(os.path.exists(LOAD), "weir-load is not built")
class Compare(unittest.TestCase):
    def test_compare_judges_and_plot_draws(self):
        model = os.environ.get("WEIR_MODELS",
                               os.path.join(SOURCE, "..", "shared", "models")) + "/smollm2-135m-instruct-4bit"
        if not os.path.exists(model):
            self.skipTest(f"{model} is not there")
        with tempfile.TemporaryDirectory() as folder:
            programs = {}
            for name, text in (("llama-bench", LLAMA_BENCH), ("llama-batched-bench", LLAMA_BATCHED)):
                programs[name] = os.path.join(folder, name)
                with open(programs[name], "w") as file:
                    file.write(text)
                os.chmod(programs[name], stat.S_IRWXU)
            result = os.path.join(folder, "result.json")
            done = subprocess.run(
                [sys.executable, f"{SOURCE}/bench/compare", "--weir", WEIR, "--load", LOAD, "--model", model, "--gguf",
                 "q4_1=any.gguf",
                 "--rounds", "2", "--decode", "16", "--batches", "2", "--contexts", "128", "--only",
                 "bench,batch,context", "--json", result,
                 "--llama-bench", programs["llama-bench"], "--llama-batched-bench", programs["llama-batched-bench"]],
                check=True, capture_output=True, text=True).stdout
            self.assertIn("≥ 10: pass", done)  # Prefill beside 0.001 tok/s.
            found = json.loads(read(result))["sets"][0]
            self.assertEqual(found["samples"]["decode/2"]["q4_1"], [123.5, 123.5])
            self.assertEqual(len(found["samples"]["prefill/512"]["weir"]), 2)
            self.assertTrue(found["goals"]["prefill/512 q4_1"].endswith("pass"))
            # Nobody decodes a thousand million tokens a second; only 90 % of what memory reads would excuse it.
            share = sorted(found["read_share"]["decode/1"])
            self.assertEqual(found["goals"]["decode/1 q4_1"].endswith("miss"), sum(share) / 2 < 0.9)
            subprocess.run([sys.executable, f"{SOURCE}/bench/plot", result, "--out", folder], check=True,
                           stdout=subprocess.DEVNULL)
            drawn = read(os.path.join(folder, "context.svg"))
            self.assertIn("llama.cpp q4_1", drawn)
            self.assertFalse(os.path.exists(os.path.join(folder, "throughput.svg")))  # No server was measured.


if __name__ == "__main__":
    unittest.main()
