"""Ollama's API: its own JavaScript client, and what Open WebUI and VS Code ask. The exchanges of those two are written
out from what their sources read, not recorded from the programs."""
import datetime, http.client, json, os, random, re, shutil, subprocess, sys, tempfile, unittest

import hub_rules
from mock_hub import Hub
from npm_packages import installed
from weir_server import SOURCE, Server, eventually

MODEL = "weir-tiny-moe"
TO_PULL = "org/name"


def small_model():
    """A model that can be pulled, and not be run."""
    with open(f"{SOURCE}/models/{MODEL}/config.json", "rb") as file:
        config = file.read()
    return {"config.json": config, "tokenizer.json": random.Random(1).randbytes(150_000),
            "model.safetensors": random.Random(2).randbytes(3_000_000), "README.md": b"# not taken"}


class OllamaTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="weir_ollama_")
        self.addCleanup(shutil.rmtree, self.folder)
        self.cache = f"{self.folder}/hub"
        self.hub = Hub()
        self.hub.__enter__()
        self.addCleanup(self.hub.__exit__)
        self.hub.add(TO_PULL, small_model())

    def server(self, *arguments):
        return Server("--disk-reserve", "100M", *arguments, environment=self.hub.environment(self.cache))

    def lines(self, server, path, body):
        status, headers, data = server.request("POST", path, body)
        self.assertEqual(status, 200, data)
        self.assertEqual(headers["content-type"], "application/x-ndjson")
        self.assertTrue(data.endswith(b"\n"))
        return [json.loads(line) for line in data.splitlines()]


class JavaScriptClient(OllamaTest):
    def test_what_its_users_do(self):
        folder = installed("npm")
        shutil.copy(f"{SOURCE}/tests/e2e/npm/ollama.mjs", folder)
        with self.server() as server:
            done = subprocess.run(
                ["node_modules/node/bin/node", "--test", "--test-reporter=spec", "ollama.mjs"], cwd=folder, text=True,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300,
                env={**os.environ, "BASE": f"http://{server.host}:{server.port}", "MODEL": MODEL,
                     "MODEL_TO_PULL": TO_PULL})
            print(done.stdout[-12000:])
            self.assertEqual(done.returncode, 0)


class OpenWebUi(OllamaTest):
    """Not recorded. It appends ":latest", reads versions as numbers with dots, and expires_at by fromisoformat()."""

    def test_its_connection(self):
        with self.server() as server:
            version = json.loads(server.get("/api/version"))["version"]
            self.assertGreaterEqual([int(part) for part in version.split(".")], [0, 1, 33])
            listed = json.loads(server.get("/api/tags"))["models"]
            self.assertEqual([m["model"] for m in listed], [f"{MODEL}:latest"])
            for model in listed:
                self.assertEqual(set(model),
                                 {"name", "model", "modified_at", "size", "digest", "details", "capabilities"})
            loaded = json.loads(server.get("/api/ps"))["models"]
            expires = datetime.datetime.fromisoformat(loaded[0]["expires_at"])
            self.assertGreater(expires.timestamp(), datetime.datetime.now().timestamp())

    def test_a_chat(self):
        body = {"model": f"{MODEL}:latest", "stream": True,
                "options": {"temperature": 0, "num_predict": 6, "num_ctx": 4096},
                "messages": [{"role": "system", "content": "Be brief."},
                             {"role": "user", "content": "What is the sea?"}],
                "keep_alive": "5m"}
        with self.server() as server:
            lines = self.lines(server, "/api/chat", body)
            self.assertEqual({line["model"] for line in lines}, {f"{MODEL}:latest"})
            self.assertEqual([line["done"] for line in lines], [False] * (len(lines) - 1) + [True])
            last = lines[-1]
            for name in ("total_duration", "load_duration", "prompt_eval_count", "prompt_eval_duration", "eval_count",
                         "eval_duration"):
                self.assertIsInstance(last[name], int, name)
            self.assertGreater(last["eval_duration"], 0)  # It divides by it.
            for line in lines:
                datetime.datetime.fromisoformat(line["created_at"])
            whole = server.post("/api/chat", {**body, "stream": False})
            self.assertEqual(whole["message"]["content"], "".join(line["message"]["content"] for line in lines))

    def test_embeddings_and_unloading(self):
        with self.server() as server:
            vectors = server.post("/api/embed", {"model": f"{MODEL}:latest", "input": ["a", "b"], "truncate": True})
            self.assertEqual(len(vectors["embeddings"]), 2)
            status, _, data = server.request("POST", "/api/generate", {"model": f"{MODEL}:latest", "keep_alive": 0})
            self.assertEqual(status, 400)
            self.assertIn("stays loaded", json.loads(data)["error"])


class VsCode(OllamaTest):
    """Not recorded. It wants a version of nothing but digits and dots, `capabilities` with tools and a `model_info`; it
    chats over /v1."""

    def test_its_connection(self):
        with self.server() as server:
            self.assertRegex(json.loads(server.get("/api/version"))["version"], r"^\d+\.\d+\.\d+$")
            name = json.loads(server.get("/api/tags"))["models"][0]["model"]
            shown = server.post("/api/show", {"model": name})
            self.assertIn("tools", shown["capabilities"])
            family = shown["model_info"]["general.architecture"]
            self.assertEqual(shown["model_info"][f"{family}.context_length"], 2048)
            self.assertGreater(shown["model_info"]["general.parameter_count"], 0)


class Programs(OllamaTest):
    def test_whether_it_is_there(self):
        with self.server() as server:
            for headers in ({}, {"Accept": "*/*"}, {"Accept": "application/json"}):
                status, _, data = server.request("GET", "/", headers=headers)
                self.assertEqual((status, data), (200, b"Ollama is running"))
            self.assertEqual(server.request("HEAD", "/")[0], 200)
            self.assertIn(b"<html", server.request("GET", "/", headers={"Accept": "text/html"})[2])
            self.assertIn(b"Weir", server.request("GET", "/", headers={"Accept": "text/plain"})[2])
        with self.server("--ollama", "off") as server:
            self.assertEqual(server.request("GET", "/api/tags")[0], 404)
            self.assertIn(b"Weir", server.get("/"))

    def test_curl_needs_no_word_of_json(self):
        with self.server() as server:
            body = json.dumps({"model": MODEL, "prompt": "Once", "raw": True, "stream": False,
                               "options": {"num_predict": 2}})
            form = {"Content-Type": "application/x-www-form-urlencoded"}
            self.assertEqual(server.request("POST", "/api/generate", body.encode(), form)[0], 200)
            self.assertEqual(server.request("POST", "/v1/completions", body.encode(), form)[0], 415)
            page = {**form, "Origin": f"http://127.0.0.1:{server.port}"}
            self.assertEqual(server.request("POST", "/api/generate", body.encode(), page)[0], 415)
            self.assertEqual(server.request("POST", "/api/pull", b'{"model":"org/name"}', form)[0], 415)


class Pull(OllamaTest):
    def weights_here(self):
        return hub_rules.find(self.cache, TO_PULL, "model.safetensors") is not None

    def test_it_ends_when_the_client_leaves_and_goes_on_later(self):
        self.hub.rate = 200_000
        with self.server() as server:
            connection = http.client.HTTPConnection(server.host, server.port, timeout=60)
            connection.request("POST", "/api/pull", json.dumps({"model": TO_PULL}),
                               {"Content-Type": "application/json"})
            answer = connection.getresponse()
            status = ""
            while not re.match("pulling [0-9a-f]{12}$", status):
                status = json.loads(answer.readline())["status"]
            self.assertTrue(server.post("/api/generate", {"model": MODEL, "prompt": "Once", "stream": False,
                                                          "options": {"num_predict": 2}})["done"], "served meanwhile")
            connection.close()
            eventually(lambda: "pull ends" in server.logged(), 20, "the pull ends")
            self.assertFalse(self.weights_here())
            self.hub.rate = 0
            lines = self.lines(server, "/api/pull", {"model": f"{TO_PULL}:latest"})
            self.assertEqual([line["status"] for line in lines[-3:]],
                             ["verifying sha256 digest", "writing manifest", "success"])
            parts = [line for line in lines if "total" in line]
            self.assertEqual(parts[-1]["completed"], parts[-1]["total"])
            self.assertTrue(self.weights_here())
            self.assertEqual(hub_rules.wrong_blobs(self.cache, TO_PULL), [])

    def test_an_error_is_its_last_line(self):
        with self.server() as server:
            lines = self.lines(server, "/api/pull", {"model": "org/missing"})
            self.assertEqual(set(lines[-1]), {"error"})
            status, _, data = server.request("POST", "/api/pull", {"model": "org/missing", "stream": False})
            self.assertGreaterEqual(status, 400)
            self.assertIn("org/missing", json.loads(data)["error"])

    def test_a_shutdown_ends_it(self):
        self.hub.rate = 50_000
        with self.server("--drain-seconds", "1") as server:
            connection = http.client.HTTPConnection(server.host, server.port, timeout=60)
            connection.request("POST", "/api/pull", json.dumps({"model": TO_PULL}),
                               {"Content-Type": "application/json"})
            answer = connection.getresponse()
            self.assertEqual(json.loads(answer.readline())["status"], "pulling manifest")
            self.assertEqual(server.terminate(), 0)
            self.assertIn("shutting down", json.loads(answer.read().splitlines()[-1])["error"])
            connection.close()

    def test_it_is_managements(self):
        with self.server("--manage", "off") as server:
            self.assertEqual(server.request("POST", "/api/pull", {"model": TO_PULL})[0], 403)
            self.assertEqual(server.request("DELETE", "/api/delete", {"model": TO_PULL})[0], 403)
        with self.server("--api-key", "sk-plain") as server:
            key = {"Authorization": "Bearer sk-plain"}
            self.assertEqual(server.request("POST", "/api/pull", {"model": TO_PULL}, key)[0], 403)
            self.assertEqual(server.request("POST", "/api/generate", {"model": MODEL, "keep_alive": 0}, key)[0], 403)
            self.assertEqual(server.request("GET", "/api/tags", headers=key)[0], 200)
        self.assertEqual(self.hub.requests(), [], "no hub is asked")


if __name__ == "__main__":
    result = unittest.main(verbosity=2, exit=False).result
    sys.exit(77 if result.skipped and result.wasSuccessful() else not result.wasSuccessful())
