"""The prompt cache on disk: after a restart a prompt is read instead of computed, and the answer is the same to the
bit; what changes an answer, or is another caller's, is not shared; `weir cache`."""
import json, os, shutil, signal, stat, subprocess, tempfile, time, unittest

import family_model
from adapter_test import write_adapter
from several_models import SeveralModels, ask as ask_model
from weir_server import SOURCE, WEIR, Server, eventually

BYTES_A_TOKEN = 4096  # Of weir-tiny-moe, in f16.
# About 1,300 tokens each; the context has 2,048.
PROMPTS = [f"Story {topic}. " + f"Once there was number {topic}, and it was the number {topic}. " * 75 for topic in range(3)]
# The same for models whose tokens are bytes.
BYTES = [f"Story {topic}. " + f"There was number {topic}, and it was number {topic}. " * 33 for topic in range(2)]


def ask(server, prompt, headers=None, **more):
    body = {"model": "weir-tiny-moe", "prompt": prompt, "max_tokens": 24, "temperature": 0, "logprobs": 2, **more}
    status, _, data = server.request("POST", "/v1/completions", body, headers)
    assert status == 200, (status, data)
    answer = json.loads(data)
    return answer["choices"][0], answer["usage"]["prompt_tokens_details"]["cached_tokens"], answer["usage"]["prompt_tokens"]


class DiskCache(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = os.path.join(self.folder.name, "prompts")

    def server(self, *options, **more):
        return Server("--disk-cache", "1G", "--disk-cache-dir", self.root, "--disk-reserve", "0", *options, **more)

    def command(self, *words):
        return subprocess.run([WEIR, "cache", *words, "--disk-cache-dir", self.root], capture_output=True, text=True)

    def test_after_a_restart_prompts_are_read_and_answers_are_the_same(self):
        with self.server() as server:
            self.assertRegex(server.logged(), r"disk cache \S+ has .* of 1\.0 GiB")
            before = [ask(server, prompt) for prompt in PROMPTS]
            self.assertEqual([cached for _, cached, _ in before], [0, 0, 0])
            self.assertEqual(server.terminate(), 0)
        self.assertEqual(stat.S_IMODE(os.stat(self.root).st_mode), 0o700)
        with self.server() as server:
            for prompt, (choice, _, tokens) in zip(PROMPTS, before):
                again, cached, _ = ask(server, prompt)
                self.assertEqual(again, choice)
                self.assertGreaterEqual(cached, (tokens - 1) // 32 * 32, "all whole blocks before the last token")
            self.assertGreater(server.metric("weir_disk_cache_hit_tokens_total"), 3000)
            self.assertGreater(server.metric("weir_disk_cache_read_bytes_total"), 1 << 20)
            self.assertEqual(server.metric("weir_disk_cache_corrupt_extents_total"), 0)
            self.assertGreater(server.metric("weir_disk_cache_bytes"), 1 << 20)
            self.assertEqual(server.terminate(), 0)
        with self.server("--no-prefix-cache") as server:
            self.assertIn("disk cache is off: --no-prefix-cache", server.logged())
            self.assertEqual(ask(server, PROMPTS[0])[:2], (before[0][0], 0))

    def test_what_leaves_memory_is_kept_while_the_server_runs(self):
        with self.server("--cache-idle", "1") as server:
            first, _, tokens = ask(server, PROMPTS[0])
            eventually(lambda: server.metric("weir_kv_bytes_taken") == 0, 30, "memory forgets the prompt")
            written = lambda: server.metric("weir_disk_cache_written_bytes_total")
            eventually(lambda: written() >= tokens // 32 * 32 * BYTES_A_TOKEN, 30, "and all of it is written")
            again, cached, _ = ask(server, PROMPTS[0])
            self.assertEqual(again, first)
            self.assertGreater(cached, 1000)

    def test_a_killed_server_leaves_nothing_wrong(self):
        answers = None
        for _ in range(4):
            with self.server("--cache-idle", "1") as server:
                now = [ask(server, prompt)[0] for prompt in PROMPTS]
                answers = answers or now
                self.assertEqual(now, answers)
                eventually(lambda: server.metric("weir_disk_cache_written_bytes_total") > 0
                           or server.metric("weir_disk_cache_hit_tokens_total") > 0, 30)
                server.process.send_signal(signal.SIGKILL)
                server.process.wait()

    def test_salts_and_keys_share_nothing(self):
        key = lambda name: {"Authorization": f"Bearer secret-{name}"}
        with open(os.path.join(self.folder.name, "keys"), "w") as file:
            file.write("secret-alice name=alice\nsecret-bob name=bob\n")
        os.chmod(file.name, 0o600)
        with self.server("--api-key-file", file.name) as server:
            ask(server, PROMPTS[0], key("alice"))
            ask(server, PROMPTS[1], key("alice"), cache_salt="mine")
            self.assertEqual(server.terminate(), 0)
        with self.server("--api-key-file", file.name) as server:
            cached = lambda prompt, name, **more: ask(server, prompt, key(name), **more)[1]
            self.assertEqual(cached(PROMPTS[0], "bob"), 0)
            self.assertEqual(cached(PROMPTS[0], "alice", cache_salt="mine"), 0)
            self.assertEqual(cached(PROMPTS[1], "alice"), 0)
            self.assertGreater(cached(PROMPTS[0], "alice"), 1000)
            self.assertGreater(cached(PROMPTS[1], "alice", cache_salt="mine"), 1000)

    def test_adapters_and_arithmetics_share_nothing(self):
        for seed, name in enumerate(("sea", "sky")):
            write_adapter(os.path.join(self.folder.name, name), seed)
        modules = lambda *names: [word for n in names for word in ("--lora-modules", f"{n}={self.folder.name}/{n}")]
        with self.server(*modules("sea", "sky")) as server:
            plain, sea = ask(server, PROMPTS[0]), ask(server, PROMPTS[0], model="sea")
            self.assertNotEqual(plain[0], sea[0])
            self.assertEqual(server.terminate(), 0)
        with self.server(*modules("sky", "sea")) as server:  # In another order.
            self.assertEqual(ask(server, PROMPTS[0], model="sky")[1], 0)
            again = ask(server, PROMPTS[0], model="sea")
            self.assertEqual(again[0], sea[0])
            self.assertGreater(again[1], 1000)
            self.assertEqual(server.terminate(), 0)
        with self.server("--compute", "exact") as server:
            self.assertEqual(ask(server, PROMPTS[0])[1], 0)

    def test_several_models_keep_their_own(self):
        options = ("--disk-cache", "2G", "--disk-cache-dir", self.root, "--disk-reserve", "0")
        with SeveralModels(*options) as server:
            before = {name: ask_model(server, name, PROMPTS[0]) for name in ("fast", "exact")}
            self.assertEqual(server.terminate(), 0)
        self.assertEqual(len(json.loads(self.command("--json").stdout)["models"]), 2)
        with SeveralModels(*options) as server:
            for name, choice in before.items():
                self.assertEqual(ask_model(server, name, PROMPTS[0]), choice)
            for name in before:
                figures = server.get(f"/metrics?model={name}").decode().splitlines()
                hits = [line for line in figures if line.startswith("weir_disk_cache_hit_tokens_total")]
                self.assertGreater(float(hits[0].rsplit(" ", 1)[1]), 1000, hits)

    def test_the_command_lists_and_clears(self):
        self.assertIn("No prompts", self.command().stdout)
        with self.server() as server:
            ask(server, PROMPTS[0])
            self.assertIn("a server has it", self.command().stdout)
            self.command("clear")
            self.assertEqual(len(os.listdir(self.root)), 1, "what is in use stays")
            self.assertEqual(server.terminate(), 0)
        self.assertIn("MiB", self.command().stdout)
        done = self.command("clear")
        self.assertEqual((done.returncode, os.listdir(self.root)), (0, []), done.stderr)
        self.assertIn("free", done.stdout)
        wrong = self.command("burn")
        self.assertEqual(wrong.returncode, 2)
        self.assertIn("expected one of list, clear; found 'burn'", wrong.stderr)

    def test_a_folder_that_others_may_enter_is_refused_and_the_server_serves(self):
        os.mkdir(self.root, 0o755)
        os.chmod(self.root, 0o755)
        with self.server() as server:
            self.assertIn("disk cache is off: disk cache", server.logged())
            self.assertIn("expected mode 0700", server.logged())
            ask(server, PROMPTS[0])
            ask(server, PROMPTS[0])
        self.assertEqual(os.listdir(self.root), [])

    def test_codes_are_kept(self):
        for kv_format in ("int8", "tq4", "tq3"):
            with self.subTest(kv_format):
                self.check_that_a_restart_changes_nothing("weir-tiny-moe", PROMPTS, "--kv-cache", kv_format)

    def test_windows_and_states_are_kept_where_texts_end(self):
        """After a restart: the same prompts, and a conversation that goes on from the end of an answer."""
        folder = self.enterContext(tempfile.TemporaryDirectory())
        for family, *options in (("gpt_oss",), ("gemma3_text_linear_rope", "--kv-cache", "int8"), ("mamba2_biased",),
                                 ("qwen3_next",), ("qwen3_next", "--speculative", "off"), ("lfm2_biased",)):
            with self.subTest(family, options=options):
                model = os.path.join(folder, family)
                if not os.path.exists(model):
                    family_model.write(family, model)
                self.check_that_a_restart_changes_nothing(family, BYTES, "--model", model, *options)

    def check_that_a_restart_changes_nothing(self, model, prompts, *options):
        shutil.rmtree(self.root, ignore_errors=True)
        with self.server(*options) as server:
            before = [ask(server, prompt, model=model) for prompt in prompts]
            more = [prompt + choice["text"] + " And then?" for prompt, (choice, _, _) in zip(prompts, before)]
            self.assertEqual(server.terminate(), 0)
        with self.server("--no-prefix-cache", *options) as server:
            for prompt, (choice, _, _) in zip(prompts, before):
                self.assertEqual(ask(server, prompt, model=model)[0], choice)
            computed = [ask(server, prompt, model=model)[0] for prompt in more]
            self.assertEqual(server.terminate(), 0)
        with self.server(*options) as server:
            for prompt, (choice, _, tokens) in zip(prompts, before):
                again, cached, _ = ask(server, prompt, model=model)
                self.assertEqual(again, choice)
                self.assertGreaterEqual(cached, (tokens - 1) // 32 * 32, "all whole blocks before the last token")
            for prompt, choice in zip(more, computed):
                again, cached, _ = ask(server, prompt, model=model)
                self.assertEqual(again, choice)
                self.assertGreater(cached, 1000)
            self.assertGreater(server.metric("weir_disk_cache_hit_tokens_total"), 1000 * len(prompts))
            self.assertEqual(server.metric("weir_disk_cache_corrupt_extents_total"), 0)
            server.process.send_signal(signal.SIGKILL)
            server.process.wait()
        with self.server(*options) as server:
            for prompt, (choice, _, _) in zip(prompts, before):
                again, cached, _ = ask(server, prompt, model=model)
                self.assertEqual(again, choice)
                self.assertGreater(cached, 1000, "what a server has read is still there after it is killed")

    def test_what_an_end_takes_is_told(self):
        told = lambda family: subprocess.run([WEIR, "info", "--model", f"{family_model.FAMILIES}/{family}"],
                                             capture_output=True, text=True).stdout
        self.assertRegex(told("mamba2_biased"),
                         r"prompt cache on disk: off \(--disk-cache SIZE\): \S+ \w+ a token, and \S+ \w+ for each end "
                         r"of a prompt or")
        self.assertIn("for each end of a prompt or an answer", told("gpt_oss"))
        self.assertNotIn("for each end", told("llama"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
