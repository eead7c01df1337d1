"""What `weir info` says before a model is loaded, or fetched, is what loading it does."""
import json, os, shutil, struct, subprocess, tempfile, unittest
import fitting
from fitting import MIB, check, checkpoint_shapes, info
from mock_hub import Hub
from weir_server import SOURCE, WEIR, Server

FIRST_BYTES = 256 << 10  # Of safetensors, what is asked for at first.
FAMILIES = f"{SOURCE}/tests/data/families"
LIMIT = ("--mem-limit", "4G")  # What the machine has free changes between two runs.


def content(path):
    with open(path, "rb") as file:
        return file.read()


def boundaries(folder, low, high, step):
    """The limits, in MiB, at which the verdict changes."""
    verdict = lambda mib: info(folder, "--mem-limit", f"{mib}M")["fit"]["verdict"]
    found, before = [], verdict(low)
    for mib in range(low + step, high, step):
        if (now := verdict(mib)) == before:
            continue
        good, bad = mib, mib - step
        while good - bad > 1:
            middle = (good + bad) // 2
            good, bad = (middle, bad) if verdict(middle) == now else (good, middle)
        found.append(good)
        before = now
    return found


class Verdicts(unittest.TestCase):
    def test_are_what_loading_does_at_twelve_limits(self):
        found = boundaries(fitting.TINY, 120, 600, 40)
        self.assertGreaterEqual(len(found), 2, found)
        limits = {mib + more for mib in found for more in (-1, 0)}
        for mib in (120, 160, 200, 250, 300, 400, 500, 600, 180, 350, 450):
            if len(limits) < 12:
                limits.add(mib)
        verdicts = []
        for mib in sorted(limits):
            with self.subTest(mib=mib):
                verdicts.append(check(self, fitting.TINY, "--mem-limit", f"{mib}M"))
        self.assertEqual(len(limits), 12)
        self.assertLessEqual({"no", "short", "fits"}, set(verdicts))

    def test_of_models_in_folders_and_files_name_what_is_not_read(self):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(fitting.TINY, folder, dirs_exist_ok=True)
            with open(f"{folder}/config.json") as file:
                config = json.load(file)
            config["architectures"] = ["NoSuchForCausalLM"]
            with open(f"{folder}/config.json", "w") as file:
                json.dump(config, file)
            fit = info(folder)["fit"]
            self.assertEqual(fit["verdict"], "unknown")
            self.assertIn("NoSuchForCausalLM", fit["reason"])
            done = subprocess.run([WEIR, "info", "--model", folder], capture_output=True, text=True)
            self.assertEqual(done.returncode, 1)
            self.assertIn("NoSuchForCausalLM", done.stderr)

    def test_floats_that_do_not_fit_fit_in_fewer_bits(self):
        with tempfile.TemporaryDirectory() as folder:
            fitting.write_mixture(folder, layers=4, form="BF16")
            weights = info(folder)["tensor_bytes"]
            fit = info(folder, "--mem-limit", f"{weights // 2 // MIB + 250}M")["fit"]
            self.assertEqual((fit["verdict"], fit["options"]), ("with less", "--quantize 4"))
            log = fitting.starts(folder, "--mem-limit", f"{weights // 2 // MIB + 250}M", *fit["options"].split())
            self.assertIn(f"limits context={fit['context']} ", log)


class Speeds(unittest.TestCase):
    def test_are_told_after_a_calibration(self):
        with tempfile.TemporaryDirectory() as cache:
            environment = {**os.environ, "XDG_CACHE_HOME": cache}
            run = lambda *words: subprocess.run([WEIR, *words], capture_output=True, text=True, env=environment,
                                                check=True).stdout
            self.assertIsNone(json.loads(run("info", "--json"))["speed"])
            self.assertIn("weir calibrate", run("info"))
            self.assertRegex(run("calibrate"), r"read [\d.]+ GB/s, int8 [\d.]+ TOPS")
            speed = json.loads(run("info", "--json"))["speed"]
            self.assertGreater(speed["decode"]["low"], 1)
            self.assertGreater(speed["prompt"]["high"], speed["prompt"]["low"])
            self.assertRegex(run("info"), r"expected: about [\d.]+ to [\d.]+ tokens a second, prompts")


class AtTheHub(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.hub = Hub()
        self.hub.__enter__()
        self.addCleanup(self.hub.__exit__)

    def run_weir(self, *words, token=None, code=0):
        environment = {**os.environ, **self.hub.environment(f"{self.folder}/cache", token)}
        done = subprocess.run([WEIR, *words], capture_output=True, text=True, env=environment)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout if code == 0 else done.stderr

    def info(self, name, *options):
        return json.loads(self.run_weir("info", "--json", "--model", name, *fitting.QUIET, *options))

    def add(self, folder):
        name = f"org/{os.path.basename(folder)}"
        self.hub.add(name, {path: content(f"{folder}/{path}") for path in os.listdir(folder)
                            if path.endswith((".json", ".safetensors", ".gguf")) and not path.startswith("expected.")})
        return name

    def assert_alike(self, name, folder, *options):
        options += LIMIT
        there, here = self.info(name, *options), info(folder, *options)
        for part in ("family", "parameters", "tensor_bytes", "token", "footprint", "plan"):
            self.assertEqual(there[part], here[part], (name, part))
        self.assertEqual(there["fit"], here["fit"])
        self.assertFalse(there["here"])
        return there

    def assert_only_headers_came(self):
        """Nothing was asked for whole, nothing was kept, and only the hub saw the token."""
        for request in self.hub.requests("cdn", "GET"):
            self.assertRegex(request.headers.get("range", ""), r"bytes=\d+-\d+", request)
        self.assertFalse(os.path.exists(f"{self.folder}/cache"), "what is looked at is not kept")
        self.assertEqual(self.hub.tokens_seen("cdn"), set())

    def test_headers_say_what_the_files_do(self):
        for folder in (f"{FAMILIES}/llama", f"{FAMILIES}/mlxconv_qwen3_next", fitting.TINY):
            with self.subTest(folder):
                name = self.add(folder)
                found = self.assert_alike(name, folder)
                weights = self.hub.models[name].files["model.safetensors"].size
                came = sum(end - begin for begin, end in self.hub.sent("model.safetensors") if begin < weights)
                self.assertLessEqual(came, FIRST_BYTES)
                self.assertEqual(len(self.hub.requests("cdn", "GET")), 1)
                self.assertGreater(found["file_bytes"], weights)
                self.assert_only_headers_came()
                self.hub.forget()
        self.assert_alike(self.add(fitting.TINY), fitting.TINY, "--stream-experts")

    def test_of_gguf_files_too(self):
        name = f"{self.folder}/tiny"
        os.mkdir(name)
        made = subprocess.run([f"{SOURCE}/tools/to_gguf", f"{FAMILIES}/llama", f"{name}/tiny-Q8_0.gguf"],
                              capture_output=True, text=True)
        if made.returncode != 0:
            self.skipTest(f"tools/to_gguf: {made.stderr.strip().splitlines()[-1]}")
        self.add(name)
        there = self.info("org/tiny:Q8_0", *LIMIT)
        here = info(f"{name}/tiny-Q8_0.gguf", *LIMIT)
        self.assertEqual((there["footprint"], there["fit"]), (here["footprint"], here["fit"]))
        self.assert_only_headers_came()

    def test_longer_headers_take_a_second_request(self):
        config = {"architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "vocab_size": 64,
                  "hidden_size": 64,
                  "intermediate_size": 64, "num_hidden_layers": 8, "num_attention_heads": 2, "num_key_value_heads": 1,
                  "head_dim": 32, "hidden_act": "silu", "max_position_embeddings": 4096, "rms_norm_eps": 1e-6,
                  "rope_theta": 1e6, "moe_intermediate_size": 32, "num_experts": 128, "num_experts_per_tok": 4,
                  "norm_topk_prob": True, "decoder_sparse_step": 1, "mlp_only_layers": [], "tie_word_embeddings": True}
        folder = f"{self.folder}/wide"
        checkpoint_shapes.write(folder, config, "BF16")
        self.assert_alike(self.add(folder), folder)
        ranges = [request.headers["range"] for request in self.hub.requests("cdn", "GET")]
        with open(f"{folder}/model.safetensors", "rb") as file:
            head = 8 + struct.unpack("<Q", file.read(8))[0]
        self.assertEqual(ranges, [f"bytes=0-{FIRST_BYTES - 1}", f"bytes={FIRST_BYTES}-{head - 1}"])
        self.assert_only_headers_came()

    def test_what_is_in_the_cache_is_not_asked_for(self):
        name = self.add(fitting.TINY)
        self.run_weir("pull", name)
        self.hub.forget()
        self.assertTrue(self.info(name)["here"])
        self.assertEqual(self.hub.requests(), [])

    def test_models_that_are_not_read_are_unknown(self):
        name = self.add(fitting.TINY)
        files = {path: file.data for path, file in self.hub.models[name].files.items()}
        weights = files["model.safetensors"]
        broken = {"length": struct.pack("<Q", 1 << 60) + weights[8:], "cut": weights[:-1],
                  "tensor": weights.replace(b"q_proj", b"r_proj"),
                  "json": weights[:8] + b"[" + weights[9:]}
        for what, data in broken.items():
            with self.subTest(what):
                self.hub.add(f"org/{what}", {**files, "model.safetensors": data})
                fit = self.info(f"org/{what}")["fit"]
                self.assertEqual(fit["verdict"], "unknown")
                self.assertIn(f"org/{what}", fit["reason"])
        self.hub.add("org/other", {**files, "config.json": b'{"architectures": ["NoSuchForCausalLM"]}'})
        self.assertIn("NoSuchForCausalLM", self.info("org/other")["fit"]["reason"])
        self.assertIn("NoSuchForCausalLM", self.run_weir("info", "--model", "org/other", code=1))

    def test_errors_of_the_hub_are_told(self):
        name = self.add(fitting.TINY)
        self.hub.models[name].gated = "manual"
        self.assertIn("terms", self.run_weir("info", "--model", name, code=1))
        self.assertFalse(self.info_with_token(name)["here"])
        self.assert_only_headers_came()
        self.assertIn("no such", self.run_weir("info", "--model", "org/nothing", code=1))

    def info_with_token(self, name):
        return json.loads(self.run_weir("info", "--json", "--model", name, token="secret-token"))

    def test_is_searched(self):
        for name in ("Qwen/Qwen3-8B", "mlx-community/Qwen3-8B-4bit", "someone/qwen3-8b-mine", "org/other"):
            self.hub.add(name, fitting.TINY)
        found = json.loads(self.run_weir("search", "qwen3-8b", "--json", "--sort", "likes"))
        self.assertEqual({hit["id"]: "fit" in hit for hit in found["models"]},
                         {"Qwen/Qwen3-8B": True, "mlx-community/Qwen3-8B-4bit": True, "someone/qwen3-8b-mine": False})
        self.assertIn("sort=likes", self.hub.requests("hub")[0].path)
        self.assertEqual(found["models"][0]["downloads"], 42)
        text = self.run_weir("search", "qwen3-8b")
        self.assertRegex(text, r"mlx-community/Qwen3-8B-4bit .*(fits|short|no): needs")

    def test_is_searched_by_a_server(self):
        self.hub.add("mlx-community/Qwen3-8B-4bit", fitting.TINY)
        with Server(environment=self.hub.environment(f"{self.folder}/cache", "secret-token")) as server:
            found = json.loads(server.get("/models/search?q=qwen3%208B"))
            self.assertEqual([hit["id"] for hit in found["models"]], [])
            found = json.loads(server.get("/models/search?q=Qwen3-8B&sort=likes"))
            self.assertEqual([hit["id"] for hit in found["models"]], ["mlx-community/Qwen3-8B-4bit"])
            self.assertIn(found["models"][0]["fit"]["verdict"], ("fits", "short", "no"))
            before = len(self.hub.requests())
            self.assertGreater(len(json.loads(server.get("/models/search"))["models"]), 40)
            self.assertEqual(len(self.hub.requests()), before, "the catalogue is built in")
            self.assertIn(b"sort", server.get("/models/search?q=x&sort=size", 400))
            self.hub.fault("/api/models", "status", times=100, code=404)
            server.get("/models/search?q=x", 404)
            self.assertNotIn("secret-token", server.logged())


class Catalogue(unittest.TestCase):
    def test_is_what_the_planner_computes(self):
        done = subprocess.run([f"{SOURCE}/tools/make_catalogue", "--weir", WEIR, "--check"], capture_output=True,
                              text=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_is_searched_without_a_network(self):
        with tempfile.TemporaryDirectory() as home:
            environment = {**os.environ, "HF_HOME": home, "HF_HUB_OFFLINE": "1"}
            run = lambda *words: subprocess.run([WEIR, "search", *words], capture_output=True, text=True,
                                                env=environment, check=True).stdout
            self.assertGreater(len(run().splitlines()), 40)
            found = json.loads(run("qwen3 8b 4bit", "--json"))
            self.assertEqual([hit["id"] for hit in found["models"]], ["mlx-community/Qwen3-8B-4bit"])
            self.assertIn(found["models"][0]["fit"]["verdict"], ("fits", "short", "no"))
            self.assertIsNone(found["next"])


class MakeCatalogue(unittest.TestCase):
    def test_asks_the_hub(self):
        with open(f"{SOURCE}/models/catalogue.json") as file:
            model = next(m for m in json.load(file)["models"] if m["name"] == "SmolLM2 135M")
        form = model["formats"][0]
        with Hub() as hub, tempfile.TemporaryDirectory() as folder:
            there = hub.add(form["id"], {"config.json": json.dumps(model["config"]).encode()})
            weights = {"type": "file", "path": "model.safetensors", "size": form["bytes"] + 30_000, "oid": "0" * 40}
            there.tree = [file.entry() for file in there.files.values()] + [weights,
                                                                            {**weights, "path": "onnx/model.onnx"}]

            def make(*more):
                command = [f"{SOURCE}/tools/make_catalogue", "--weir", WEIR, "--hub", "--only", "SmolLM2 135M",
                           "--output", f"{folder}/made.json", *more]
                done = subprocess.run(command, capture_output=True, text=True,
                                      env={**os.environ, **hub.environment(folder)})
                with open(f"{folder}/made.json") as file:
                    return done, next(m for m in json.load(file)["models"] if m["name"] == model["name"])
            done, made = make()
            self.assertEqual(done.returncode, 0, done.stderr)
            found = made["formats"][0]
            self.assertEqual(found["sha"], there.commit)
            self.assertEqual(found["file_bytes"], weights["size"] + there.files["config.json"].size)
            self.assertEqual({**found, "sha": None, "file_bytes": None}, {**form, "sha": None, "file_bytes": None})
            weights["size"] *= 2
            there.gated = "auto"
            done, made = make()
            self.assertEqual(done.returncode, 1)
            self.assertIn(f"{form['id']}: ", done.stderr)
            self.assertTrue(made["gated"])


if __name__ == "__main__":
    unittest.main()
