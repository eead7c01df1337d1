"""A model's files that change while it is served: an answer is right, or a clean error that names the file; never an
answer made of other bytes, and never the end of the server."""
import array, json, os, random, re, shutil, struct, tempfile, time, unittest

import sparse_model
from weir_server import SOURCE, Server, eventually

SERVED = f"{SOURCE}/models/weir-tiny-moe"
PATH = "/v1/chat/completions"
BODY = {"model": "default", "messages": [{"role": "user", "content": "Tell me a story about the sea."}],
        "max_tokens": 12,
        "temperature": 0, "ignore_eos": True}
LONG = {**BODY, "max_tokens": 1900}
# Its weights are bf16: they are used where the file is mapped.
CONFIG = {"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "hidden_size": 64, "intermediate_size": 256,
          "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
          "vocab_size": 8192,
          "max_position_embeddings": 2048, "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "rope_scaling": None,
          "hidden_act": "silu", "attention_bias": False, "tie_word_embeddings": False, "use_sliding_window": False,
          "bos_token_id": 8185, "eos_token_id": 8187, "torch_dtype": "bfloat16"}
NAN = b"\xc0\x7f"  # In bf16.


def write_model(folder, damaged=()):
    """A tiny dense model of random weights; every number of the `damaged` tensors is none."""
    matrices, vectors = sparse_model.shapes(CONFIG)
    numbers = random.Random(7)
    tensors = [(name, [length], b"\x80\x3f" * length) for name, length in vectors]  # 1.0
    for name, rows, columns in matrices:
        values = array.array("f", (numbers.gauss(0, 0.1) for _ in range(rows * columns))).tobytes()
        halves = bytearray(len(values) // 2)  # The upper two bytes of each.
        halves[0::2], halves[1::2] = values[2::4], values[3::4]
        tensors.append((name + ".weight", [rows, columns], bytes(halves)))
    header, data = {}, bytearray()
    for name, shape, values in tensors:
        if name in damaged:
            values = NAN * (len(values) // 2)
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    os.makedirs(folder)
    with open(f"{folder}/config.json", "w") as file:
        json.dump(CONFIG, file)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copyfile(f"{SERVED}/{name}", f"{folder}/{name}")
    with open(f"{folder}/model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


class Folder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = f"{folder.name}/model"
        self.weights = f"{self.folder}/model.safetensors"

    def assert_error(self, answer, status, *patterns):
        self.assertEqual(answer[0], status, answer)
        message = json.loads(answer[2])["error"]["message"]
        for pattern in patterns:
            self.assertRegex(message, pattern)

    def assert_logged_once(self, server, pattern):
        eventually(lambda: re.search(pattern, server.logged()), what=pattern)
        time.sleep(2.5)  # Files are looked at every second.
        self.assertEqual(len(re.findall(pattern, server.logged())), 1, server.logged())

    def assert_idle(self, server):
        eventually(lambda: server.metric("weir_requests_running") == 0 and server.metric("weir_requests_waiting") == 0,
                   what="no request is left")
        eventually(lambda: server.metric("weir_kv_usage") == 0, what="no page is held")


class Mapped(Folder):
    """A checkpoint that is used where it is mapped."""

    def setUp(self):
        super().setUp()
        write_model(self.folder)

    def assert_given_up(self, server, pattern):
        for path in ("/health", "/ready", "/v1/health"):
            self.assert_error(server.request("GET", path), 503, "files were changed while it was served")
        for _ in range(3):
            self.assert_error(server.request("POST", PATH, BODY), 503, re.escape(self.weights), pattern, "restart")
        self.assert_error(server.request("POST", "/v1/embeddings", {"model": "default", "input": "the sea"}), 503,
                          pattern)
        server.get("/metrics")
        server.get("/v1/models")
        self.assert_idle(server)
        self.assert_logged_once(server, r"(?m)^.*\berror\b.*model .*" + re.escape(self.weights) + ".*" + pattern)
        self.assertEqual(server.terminate(), 0)

    def test_a_truncated_file_ends_requests_and_not_the_server(self):
        with Server("--model", self.folder) as server:
            server.post(PATH, BODY)
            os.truncate(self.weights, 4096)
            self.assert_error(server.request("POST", PATH, BODY), 503, re.escape(self.weights))
            self.assert_given_up(server, "truncated")

    def test_what_is_answered_while_the_file_is_cut_ends_with_an_error(self):
        with Server("--model", self.folder) as server:
            connections, endings = [], []
            for i in range(6):
                connection = server.connection()
                connection.request("POST", PATH, json.dumps({**LONG, "stream": True, "seed": i, "temperature": 1}),
                                   {"Content-Type": "application/json"})
                answer = connection.getresponse()
                self.assertEqual(answer.status, 200)
                self.assertTrue(answer.readline().startswith(b"data: {"))
                connections.append((connection, answer))
            os.truncate(self.weights, os.path.getsize(self.weights) // 2)
            for connection, answer in connections:
                endings.append([e for e in answer.read().decode().split("\n\n") if e.strip()][-1])
                connection.close()
            for ending in endings:
                self.assertRegex(json.loads(ending.removeprefix("data: "))["error"]["message"], "truncated")
            self.assert_given_up(server, "truncated")

    def test_a_file_written_in_place_is_noticed(self):
        with Server("--model", self.folder) as server:
            server.post(PATH, BODY)
            with open(self.weights, "r+b") as file:
                file.seek(-4096, os.SEEK_END)
                file.write(bytes(4096))
            eventually(lambda: server.request("GET", "/health")[0] == 503, 10, "the change is seen")
            self.assert_given_up(server, "written to")

    def test_a_replaced_file_is_told_once_and_the_old_one_served_on(self):
        with Server("--model", self.folder) as server:
            expected = server.post(PATH, BODY)["choices"]
            shutil.copyfile(self.weights, f"{self.weights}.new")
            os.replace(f"{self.weights}.new", self.weights)
            self.assert_logged_once(server, r"(?m)^.*\bwarn.*model .*" + re.escape(self.weights) + ".*replaced")
            self.assertEqual(server.post(PATH, BODY)["choices"], expected)
            server.get("/health")

    def test_a_file_that_is_packed_may_go_once_it_is_loaded(self):
        shutil.rmtree(self.folder)
        shutil.copytree(SERVED, self.folder)
        with Server("--model", self.folder) as server:
            expected = server.post(PATH, BODY)["choices"]
            os.truncate(self.weights, 4096)
            time.sleep(2.5)
            self.assertEqual(server.post(PATH, {**BODY, "cache_salt": "x"})["choices"], expected)
            server.get("/health")


class NoNumbers(Folder):
    """Weights that are no numbers: errors, never tokens."""

    def test_nothing_is_answered_with_logits_that_are_no_numbers(self):
        for damaged in ("lm_head.weight", "model.embed_tokens.weight", "model.layers.1.mlp.down_proj.weight"):
            with self.subTest(damaged):
                folder = f"{self.folder}-{damaged}"
                write_model(folder, {damaged})
                with Server("--model", folder) as server:
                    prompts = {"model": "default", "prompt": "Once upon a time there was a girl", "max_tokens": 4}
                    for path, body in ((PATH, BODY), (PATH, {**BODY, "temperature": 1, "top_p": 0.9}),
                                       (PATH, {**BODY, "logprobs": True, "top_logprobs": 2}),
                                       (PATH, {**BODY, "response_format": {"type": "json_object"}}),
                                       ("/v1/completions", prompts),
                                       ("/v1/completions", {**prompts, "echo": True, "logprobs": 2, "max_tokens": 0})):
                        self.assert_error(server.request("POST", path, body), 500, "finite numbers")
                    if damaged != "lm_head.weight":
                        self.assert_error(server.request("POST", "/v1/embeddings",
                                                         {"model": "default", "input": "the sea"}),
                                          500, "finite numbers")
                    status, _, data = server.request("POST", PATH, {**BODY, "stream": True})
                    events = [e for e in data.decode().split("\n\n") if e.strip()]
                    error = json.loads(data) if status != 200 else json.loads(events[-1].removeprefix("data: "))
                    self.assertRegex(error["error"]["message"], "finite numbers")
                    server.get("/health")
                    self.assert_idle(server)


class Streamed(Folder):
    """Experts that are read from a file that is written to."""
    PROMPTS = ["Tell me a story about the sea.", "Why is the sky blue?", "Count: 1 2 3", "The old man and the girl"]

    def setUp(self):
        super().setUp()
        shutil.copytree(SERVED, self.folder)

    def ask(self, server, prompt):
        return server.request("POST", PATH, {**BODY, "messages": [{"role": "user", "content": prompt}]})

    @staticmethod
    def text(answer):
        return json.loads(answer[2])["choices"][0]["message"]["content"]

    def test_what_was_read_of_a_file_written_to_is_in_no_answer(self):
        with Server("--model", self.folder) as server:
            expected = [self.text(self.ask(server, prompt)) for prompt in self.PROMPTS]
        before = os.stat(self.weights)
        with open(self.weights, "rb") as file:
            good = file.read()
        with Server("--model", self.folder, "--stream-experts", "--expert-memory", "2M") as server:
            self.assertEqual(self.text(self.ask(server, self.PROMPTS[0])), expected[0])
            noise = random.Random(5).randbytes(len(good) // 2)
            with open(self.weights, "r+b") as file:
                file.seek(len(good) - len(noise))
                file.write(noise)
            answers = [self.ask(server, prompt) for prompt in self.PROMPTS * 3]
            for i, answer in enumerate(answers):
                if answer[0] == 200:
                    self.assertEqual(self.text(answer), expected[i % len(expected)])
                else:
                    self.assert_error(answer, 503, re.escape(self.weights), "written to since")
            self.assertIn(503, [answer[0] for answer in answers])
            eventually(lambda: "how=modified" in server.logged(), what="the change is told")
            # A burst of failures is a line or two.
            self.assertLessEqual(server.logged().count("read failed"), 2, server.logged())
            with open(self.weights, "r+b") as file:
                file.write(good)
            os.utime(self.weights, ns=(before.st_atime_ns, before.st_mtime_ns))  # It is what it was.
            self.assertEqual([self.text(self.ask(server, prompt)) for prompt in self.PROMPTS], expected)
            self.assert_idle(server)


if __name__ == "__main__":
    unittest.main(verbosity=2)
