"""Adapters (LoRA): flags, endpoints and metrics of vLLM, scales of llama-server, and answers that do not mix."""
import json, os, struct, subprocess, tempfile, threading, unittest
from random import Random
from weir_server import SOURCE, WEIR, Server, eventually

MODEL = f"{SOURCE}/models/weir-tiny-moe"
ASK = {"messages": [{"role": "user", "content": "Tell me of the sea."}], "max_tokens": 12, "temperature": 0}


def layer_matrices():
    """Of the built-in model's attention: each module's path, rows and columns, as its files say."""
    with open(f"{MODEL}/config.json") as file:
        config = json.load(file)
    hidden, heads, kv = config["hidden_size"], config["num_attention_heads"], config["num_key_value_heads"]
    dim = config.get("head_dim") or hidden // heads
    for layer in range(config["num_hidden_layers"]):
        path = f"model.layers.{layer}.self_attn."
        yield from ((path + "q_proj", heads * dim, hidden), (path + "v_proj", kv * dim, hidden),
                    (path + "o_proj", hidden, heads * dim))


def write_adapter(folder, seed, rank=4, size=0.2, **config):
    os.makedirs(folder)
    random, header, body = Random(seed), {}, b""
    for module, rows, columns in layer_matrices():
        for name, shape in ((".lora_A.weight", [rank, columns]), (".lora_B.weight", [rows, rank])):
            numbers = struct.pack(f"<{shape[0] * shape[1]}f",
                                  *(random.gauss(0, size) for _ in range(shape[0] * shape[1])))
            header["base_model.model." + module + name] = {"dtype": "F32", "shape": shape,
                                                           "data_offsets": [len(body), len(body) + len(numbers)]}
            body += numbers
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    with open(f"{folder}/adapter_model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(head)) + head + body)
    with open(f"{folder}/adapter_config.json", "w") as file:
        json.dump({"peft_type": "LORA", "r": rank, "lora_alpha": 8, **config}, file)


def answer(server, model=None, **more):
    got = server.post("/v1/chat/completions", {**ASK, **({"model": model} if model else {}), **more})
    return got["choices"][0]["message"]["content"]


class Adapters(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        for seed, name in enumerate(["sql", "poem", "late"]):
            write_adapter(f"{cls.folder.name}/{name}", seed)
        write_adapter(f"{cls.folder.name}/odd", 9, target_parameters=["mlp.experts.gate_up_proj"])
        write_adapter(f"{cls.folder.name}/large", 10, rank=32)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def path(self, name):
        return f"{self.folder.name}/{name}"

    def flags(self):
        return ["--lora-modules", f"sql={self.path('sql')}",
                "--lora-modules", json.dumps({"name": "poem", "path": self.path("poem"), "base_model_name": "x"})]

    def test_are_models_with_a_parent_and_answer_as_themselves_side_by_side(self):
        with Server() as plain:
            base = answer(plain)
        with Server(*self.flags()) as server:
            models = json.loads(server.get("/v1/models"))["data"]
            self.assertEqual([m["id"] for m in models], ["weir-tiny-moe", "sql", "poem"])
            self.assertEqual((models[1]["parent"], models[1]["root"]), ("weir-tiny-moe", self.path("sql")))
            self.assertEqual(json.loads(server.get("/v1/models/poem"))["parent"], "weir-tiny-moe")
            alone = {name: answer(server, name) for name in ("sql", "poem")}
            self.assertEqual(len({base, *alone.values()}), 3, "an adapter that changes nothing shows nothing")
            self.assertEqual(answer(server), base)
            got = server.post("/v1/chat/completions", {**ASK, "model": "sql"})
            self.assertEqual(got["model"], "sql")
            together, threads = {}, []
            for i in range(9):
                name = (None, "sql", "poem")[i % 3]
                threads.append(threading.Thread(target=lambda i=i,
                                                name=name: together.update({i: (name, answer(server, name))})))
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            for name, text in together.values():
                self.assertEqual(text, alone[name] if name else base)
            self.assertIn(b"model_not_found",
                          json.dumps(server.post("/v1/chat/completions", {**ASK, "model": "x"}, 404)).encode())

    def test_are_loaded_and_forgotten_while_requests_run(self):
        with Server("--lora-dir", self.folder.name, "--max-cpu-loras", "2") as server:
            load = lambda name, path, expect=200: server.request("POST", "/v1/load_lora_adapter",
                                                                 {"lora_name": name, "lora_path": path})
            base = answer(server)
            status, _, text = load("sql", "sql")
            self.assertEqual((status, text), (200, b"Success: LoRA adapter 'sql' added successfully."))
            with_sql = answer(server, "sql")
            self.assertNotEqual(with_sql, base)
            status, _, text = load("sql", "poem")
            self.assertEqual(status, 400)
            self.assertIn(b"already been loaded", text)
            for path, status, words in (("../../etc", 403, b"--lora-dir"), ("/etc", 403, b"--lora-dir"),
                                        ("nowhere", 404, b"neither"),
                                        ("odd", 400, b"target_parameters"), ("large", 400, b"--max-lora-rank")):
                got = load("other", path)
                self.assertEqual(got[0], status, got)
                self.assertIn(words, got[2])
            self.assertEqual(load("late", self.path("late"))[0], 200)
            self.assertEqual(load("more", "poem")[0], 429)
            status, _, text = server.request("POST", "/v1/unload_lora_adapter", {"lora_name": "sql"})
            self.assertEqual((status, text), (200, b"Success: LoRA adapter 'sql' removed successfully."))
            self.assertEqual(server.request("POST", "/v1/unload_lora_adapter", {"lora_name": "sql"})[0], 404)
            server.post("/v1/chat/completions", {**ASK, "model": "sql"}, 404)
            # Another one of the name finds nothing that the first has left in the prefix cache.
            self.assertEqual(load("sql", "poem")[0], 200)
            self.assertNotEqual(answer(server, "sql"), with_sql)
            self.assertEqual(answer(server), base)

    def test_have_scales_and_numbers_as_llama_server_has_them(self):
        ask = {"prompt": "The sea", "n_predict": 10, "temperature": 0}
        with Server(*self.flags()) as server:
            text = lambda **more: server.post("/completion", {**ask, **more})["content"]
            listed = json.loads(server.get("/lora-adapters"))
            self.assertEqual([(a["id"], a["scale"]) for a in listed], [(0, 0), (1, 0)])
            base, whole, half = text(), text(lora=[{"id": 0,
                                                    "scale": 1}]), text(lora=[{"id": 0, "scale": 0.5},
                                                                              {"id": 1, "scale": 0}])
            self.assertEqual(len({base, whole, half}), 3)
            self.assertEqual(text(lora=[{"id": 0, "scale": 0}]), base)
            self.assertEqual(text(model="sql"), whole)
            self.assertEqual(server.post("/lora-adapters", [{"id": 0, "scale": 0.5}]), {"success": True})
            self.assertEqual(json.loads(server.get("/lora-adapters"))[0]["scale"], 0.5)
            self.assertEqual(text(), half)
            self.assertEqual(text(lora=[]), base)
            server.post("/lora-adapters", [])
            self.assertEqual(text(), base)
            for lora in ([{"id": 7, "scale": 1}], [{"id": 0, "scale": 1}, {"id": 1, "scale": 1}], [{"id": 0}],
                         [{"id": 0, "scale": 1e9}]):
                server.post("/completion", {**ask, "lora": lora}, 400)

    def test_are_in_the_metrics_while_they_run(self):
        with Server(*self.flags(), "--max-loras", "1") as server:
            info = lambda: [l for l in server.get("/metrics").decode().splitlines() if l.startswith("vllm:lora_requests_info{")]
            self.assertIn('max_lora="1",running_lora_adapters="",waiting_lora_adapters=""', info()[0])
            long = {**ASK, "max_tokens": 1500, "ignore_eos": True}
            open_ones = [threading.Thread(target=lambda n=n: answer(server, n,
                                                                    **{k: long[k] for k in ("max_tokens",
                                                                                            "ignore_eos")}))
                         for n in ("sql", "poem")]
            open_ones[0].start()
            eventually(lambda: 'running_lora_adapters="sql"' in info()[0], what="sql runs")
            open_ones[1].start()
            eventually(lambda: 'running_lora_adapters="sql",waiting_lora_adapters="poem"' in info()[0],
                       what="poem waits for its turn")
            for thread in open_ones:
                thread.join()
            self.assertGreater(float(info()[0].rsplit(" ", 1)[1]), 1e9)

    def test_that_do_not_fit_end_the_start_with_their_name(self):
        for flags, words in ((["--lora-modules", f"odd={self.path('odd')}"], "target_parameters"),
                             (["--lora-modules", f"large={self.path('large')}"], "--max-lora-rank"),
                             (["--lora-modules", "x=/nowhere"], "/nowhere"),
                             (["--lora-modules", "nothing"], "NAME=PATH")):
            done = subprocess.run([WEIR, "--port", "0", *flags], capture_output=True, text=True, timeout=60)
            self.assertNotEqual(done.returncode, 0, flags)
            self.assertIn(words, done.stderr)
        with Server(*self.flags(), "--max-lora-rank", "64") as server:
            self.assertRegex(server.logged(), r"adapters \d")


if __name__ == "__main__":
    unittest.main()
