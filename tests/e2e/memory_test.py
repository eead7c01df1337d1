"""Memory is planned to fit, taken as it is used, and given back: `weir info` with the shapes of well-known models, and
what the real server holds."""
import json, os, re, subprocess, tempfile, unittest
from weir_server import WEIR, Server, eventually
import sparse_model

MIB = 1 << 20


def info(*arguments):
    """(exit code, what it printed)"""
    done = subprocess.run([WEIR, "info", *arguments], capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout + done.stderr


def context_of(text):
    return int(re.search(r"limits: context (\d+) tokens", text).group(1))


class MemoryPlan(unittest.TestCase):
    # The limits are those of machines and groups of this size, less a tenth.
    SHAPES = {"llama-3.1-8b-4bit": ("21600M", 65536), "qwen3-8b-4bit": ("6300M", 4096),
              "deepseek-r1-distill-qwen-1.5b": ("14400M", 131072)}

    def test_well_known_models_fit_with_defaults(self):
        for name, (limit, least) in self.SHAPES.items():
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                sparse_model.write(name, folder)
                code, text = info("--model", folder, "--mem-limit", limit)
                self.assertEqual(code, 0, text)
                fitted = context_of(text)
                self.assertGreaterEqual(fitted, least)
                whole = sparse_model.MODELS[name]["max_position_embeddings"]
                if fitted == whole:
                    self.assertNotIn("more does not fit", text)
                    continue
                self.assertRegex(text,
                                 rf"context of {fitted} of the model's {whole} tokens: more does not fit; all would "
                                 rf"need [\d.]+ [GM]iB more")
                code, text = info("--model", folder, "--mem-limit", limit, "--ctx-size", str(whole))
                self.assertEqual(code, 1)
                self.assertIn(f"--ctx-size {fitted} is the largest that fits", text)
                code, text = info("--model", folder, "--mem-limit", limit, "--ctx-size", str(fitted))
                self.assertEqual((code, context_of(text)), (0, fitted), text)


class MemoryInUse(unittest.TestCase):
    def ask(self, server, topic, tokens=8):
        answer = server.post("/v1/completions", {"model": "weir-tiny-moe", "max_tokens": tokens, "temperature": 0,
                                                 "prompt": f"Story {topic}. " + f"Once there was number {topic}, " * 60})
        return answer["usage"]

    def test_what_was_used_goes_back_and_is_told_from_what_may_be_used(self):
        with Server("--cache-idle", "1") as server:
            self.assertRegex(server.logged(),
                             r"memory taken \d+ MiB \(weights, packed .*\); at most .*as it is used: .*KV cache")
            self.ask(server, 0)
            first = server.resident_bytes()
            for topic in range(1, 61):
                self.ask(server, topic, tokens=40)
            peak = server.resident_bytes()
            self.assertGreater(server.metric("weir_kv_bytes_taken"), 0)
            eventually(lambda: server.metric("weir_kv_bytes_taken") == 0, 20, "pages go back")
            if server.is_sanitised():
                return
            eventually(lambda: server.resident_bytes() <= 1.1 * first, 20,
                       f"{first / MIB:.0f} MiB after the first answer, {peak / MIB:.0f} after 60, "
                       f"{server.resident_bytes() / MIB:.0f} now")
            self.ask(server, 61)

    def test_a_prompt_is_known_until_its_time(self):
        with Server("--cache-idle", "0") as server:
            self.assertEqual(self.ask(server, 1)["prompt_tokens_details"]["cached_tokens"], 0)
            self.assertGreater(self.ask(server, 1)["prompt_tokens_details"]["cached_tokens"], 400)
        with Server("--cache-idle", "1") as server:
            self.ask(server, 1)
            eventually(lambda: server.metric("weir_kv_bytes_taken") == 0, 20, "its time is over")
            self.assertEqual(self.ask(server, 1)["prompt_tokens_details"]["cached_tokens"], 0)


class MemoryOfWindows(unittest.TestCase):
    # The built-in model, where all layers but two see 512 tokens.
    WINDOWS = [argument for change in ("use_sliding_window=true", "sliding_window=512", "max_window_layers=2",
                                       "max_position_embeddings=4096")
               for argument in ("--config-override", change)]

    def chat(self, server, system, question, tokens):
        answer = server.post("/v1/chat/completions",
                             {"model": "weir-tiny-moe", "max_tokens": tokens, "temperature": 0, "messages": [
            {"role": "system", "content": system}, {"role": "user", "content": question}]})
        return answer["choices"][0]["message"]["content"], answer["usage"]

    def test_a_system_prompt_longer_than_the_window_is_computed_once(self):
        with Server(*self.WINDOWS, "--parallel", "8") as server:
            self.assertRegex(server.logged(), r"KV windows \d+ MiB")
            words = " ".join(f"Rule {i}: be kind." for i in range(260))
            first, usage = self.chat(server, words, "What is it about? " * 20, 300)
            self.assertGreater(usage["prompt_tokens"], 2000)
            self.assertEqual(usage["prompt_tokens_details"]["cached_tokens"], 0)
            _, usage = self.chat(server, words, "Why?", 300)
            self.assertGreaterEqual(usage["prompt_tokens_details"]["cached_tokens"], 1900)
            # What was given back was needed by nobody: the same question has the same answer.
            self.assertEqual(self.chat(server, words, "What is it about? " * 20, 300)[0], first)
            self.assertEqual(server.metric("weir_kv_window_pages_held"), 0)
            self.assertGreater(server.metric("weir_kv_window_pages_cached"), 0)
            self.assertLess(server.metric("weir_kv_window_pages"), server.metric("weir_kv_pages"))

    def test_the_same_memory_holds_more_tokens(self):
        limits = ("--mem-limit", "700M", "--kv-memory", "100M", "--parallel", "4")
        tokens = lambda *more: int(re.search(r"(\d+) tokens of KV cache", info(*limits, *more)[1]).group(1))
        self.assertGreater(tokens(*self.WINDOWS), 2 * tokens())


class MemoryOfBench(unittest.TestCase):
    def test_tokens_take_what_is_said(self):
        """Also where keys and values become codes: what is not a code yet is held for a few blocks of each sequence."""
        sequences, depth = 64, 1984
        said = json.loads(info("--json")[1])["kv_token_bytes"]
        for kv in ("f16", "tq4"):
            process = subprocess.Popen([WEIR, "bench", "--kv-cache", kv, "--prompt", "32", "--decode", "1", "--depth",
                                        str(depth), "--batch", str(sequences), "--repetitions", "1"],
                                       stdout=subprocess.DEVNULL)
            _, process.returncode, usage = os.wait4(process.pid, 0)
            self.assertEqual(process.returncode, 0)
            # Of each sequence the first block, those of a step of 512 tokens, and two.
            numbers = 0 if kv == "f16" else sequences * (1 + 512 // 32 + 2) * 32 * said["f16"]
            predicted = sequences * (depth + 32) * said[kv] + numbers
            with self.subTest(kv, predicted=predicted):
                self.assertGreater(usage.ru_maxrss * 1024, 0.9 * predicted)
                self.assertLess(usage.ru_maxrss * 1024, 1.05 * predicted + 96 * MIB)  # Weights, program.


if __name__ == "__main__":
    unittest.main()
