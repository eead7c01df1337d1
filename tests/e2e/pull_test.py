"""`weir pull`, `--model org/name` and the cache, against a hub on loopback that has the faults of real ones. What was
sent is read off the hub's log: every byte once, and the token nowhere but at the hub."""
import json, os, pty, random, shutil, signal, socket, subprocess, tempfile, threading, time, unittest, urllib.error, urllib.request

import hub_rules
from mock_hub import Hub, folder_files
from weir_server import SOURCE, WEIR, Server, eventually

TINY = f"{SOURCE}/models/weir-tiny-moe"
TOKEN = "hf_SecretOfThisTest"
PART = 1 << 20  # The smallest part of a file.


def config(**changes):
    with open(f"{TINY}/config.json") as file:
        return json.dumps({**json.load(file), **changes}).encode()


def small_model(bytes_of_weights=3_000_000):
    """A model that can be pulled, and not be run."""
    return {"config.json": config(), "tokenizer.json": random.Random(1).randbytes(150_000),
            "model.safetensors": random.Random(2).randbytes(bytes_of_weights), "README.md": b"# not taken"}


def overlap(ranges):
    """Bytes that were sent more than once."""
    seen, twice = 0, 0
    for begin, end in sorted(ranges):
        twice += max(0, min(end, seen) - begin)
        seen = max(seen, end)
    return twice


class HubTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="weir_hub_")
        self.addCleanup(shutil.rmtree, self.folder)
        self.cache = f"{self.folder}/hub"
        self.hub = Hub()
        self.hub.__enter__()
        self.addCleanup(self.hub.__exit__)
        self.said = ""  # Everything that weir said.

    def tearDown(self):
        self.assertEqual(self.hub.tokens_seen("cdn"), set(), "a token at the CDN")
        self.assertEqual(self.hub.requests("trap"), [], "something within the network was asked")
        self.assertNotIn(TOKEN, self.said)

    def environment(self, token=None, **more):
        return {**os.environ, **self.hub.environment(self.cache, token), **more}

    def weir(self, *arguments, token=None, expect=0, timeout=120, **more):
        ended = subprocess.run([WEIR, *arguments], capture_output=True, text=True, timeout=timeout, cwd=self.folder,
                               env=self.environment(token, **more))
        self.said += ended.stdout + ended.stderr
        self.assertEqual(ended.returncode, expect, ended)
        return ended.stdout if expect == 0 else ended.stderr

    def pull(self, name="org/name", *arguments, **more):
        return self.weir("pull", name, "--disk-reserve", "100M", *arguments, **more)

    def expect_whole(self, model_id="org/name", leave=("README.md",)):
        """Every file of the model is in the cache with its bytes, and nothing else is."""
        for path, file in self.hub.models[model_id].files.items():
            here = hub_rules.find(self.cache, model_id, path)
            if path in leave:
                self.assertIsNone(here, path)
                continue
            with open(here, "rb") as opened:
                self.assertEqual(opened.read(), file.data, path)
        self.assertEqual(hub_rules.wrong_blobs(self.cache, model_id), [])
        self.assertEqual(hub_rules.missing(self.cache, model_id, lambda path: path not in leave), [])


class Pull(HubTest):
    def test_a_model_is_pulled_once(self):
        self.hub.add("org/name", small_model())
        said = self.pull(token=TOKEN)
        self.expect_whole()
        self.assertIn("3 files", said)
        self.assertIn("weir --model org/name", said)
        for path in ("model.safetensors", "config.json", "tokenizer.json"):
            self.assertEqual(overlap(self.hub.sent(path)), 0, path)
        self.assertEqual(self.hub.tokens_seen("hub"), {f"Bearer {TOKEN}"})
        self.assertTrue(all("range" in r.headers for r in self.hub.requests("cdn")), "a request without a range")
        self.hub.forget()
        self.pull()
        self.assertEqual(self.hub.sent("model.safetensors"), [])
        # A new commit: what is the same is not fetched again.
        files = small_model()
        files["config.json"] = config(bos_token_id=1)
        self.hub.add("org/name", files)
        self.hub.forget()
        self.pull()
        self.expect_whole()
        self.assertEqual(self.hub.sent("model.safetensors"), [])

    def test_faults_of_networks_and_cdns_are_overcome(self):
        for fault in ({"kind": "cut", "after": 300_000, "times": 3}, {"kind": "expired", "times": 2},
                      {"kind": "lost_range"}, {"kind": "status", "code": 500, "port": "cdn"},
                      {"kind": "status", "code": 429, "headers": {"RateLimit": '"resolvers";r=0;t=0'}},
                      {"kind": "whole"}, {"kind": "wrong"}):
            with self.subTest(**fault):
                self.hub.forget()
                self.hub.add("org/name", small_model())
                self.hub.fault("model.safetensors", **fault)
                self.pull()
                self.expect_whole()
                cuts = fault.get("times", 1)
                most = 2 * 3_000_000 if fault["kind"] == "wrong" else 3_000_000 + cuts * PART
                if fault["kind"] != "whole":
                    self.assertLessEqual(sum(end - begin for begin, end in self.hub.sent("model.safetensors")), most)
                shutil.rmtree(self.cache)

    def test_a_stalled_connection_is_given_up(self):
        self.hub.add("org/name", small_model())
        self.hub.fault("model.safetensors", "stall", after=1000)
        said = self.pull(timeout=90)
        self.expect_whole()
        self.assertIn("3 files", said)

    def test_links_that_expire_after_each_use(self):
        self.hub.add("org/name", small_model(20_000_000))
        self.hub.expiry = 1
        self.pull()
        self.expect_whole()
        self.assertEqual(overlap(self.hub.sent("model.safetensors")), 0)

    def test_heads_without_hashes(self):
        self.hub.add("org/name", small_model())
        self.hub.etags = False
        self.pull()
        self.expect_whole()

    def test_wrong_bytes_are_named(self):
        self.hub.add("org/name", small_model())
        self.hub.fault("model.safetensors", "wrong", times=100)
        error = self.pull(expect=1)
        self.assertIn("org/name/model.safetensors: expected bytes whose hash is", error)
        self.assertIsNone(hub_rules.find(self.cache, "org/name", "model.safetensors"))
        self.hub.forget()
        model = self.hub.models["org/name"]
        for path in ("tokenizer.json", "model.safetensors"):  # The list says another size.
            model.tree = [{**f.entry(), "size": f.size + (f.path == path), **({"lfs": {
                "oid": f.sha256, "size": f.size + (f.path == path)}} if f.large else {})} for f in model.files.values()]
            self.assertIn(f"{path}: expected bytes {model.files[path].size + 1}", self.pull(expect=1))

    def test_what_a_person_can_do_is_said(self):
        self.assertIn("no such model", self.pull("org/gone", expect=1))
        model = self.hub.add("org/name", small_model())
        self.assertIn("no branch, tag or commit 'v9'", self.pull("org/name@v9", expect=1))
        model.private = True
        self.assertIn("set HF_TOKEN", self.pull(expect=1))
        self.assertIn("does not see it", self.pull(expect=1, token=TOKEN))
        model.private, model.gated = False, "manual"
        self.assertIn(f"accept its terms on {self.hub.endpoint}/org/name", self.pull(expect=1))
        self.assertIn("has no access yet", self.pull(expect=1, token=TOKEN))
        model.may.add(TOKEN)
        self.pull(token=TOKEN)
        self.expect_whole()
        model.disabled = True
        self.assertIn("Access to this resource is disabled", self.pull(expect=1))

    def test_a_repository_that_was_renamed(self):
        self.hub.add("new/name", small_model())
        self.hub.renamed["old/name"] = "new/name"
        self.pull("old/name", token=TOKEN)
        self.expect_whole("new/name")

    def test_redirects_into_this_network_are_refused(self):
        self.hub.add("org/name", small_model())
        for to in ("0.0.0.0", "[::ffff:0.0.0.0]", "0"):
            self.hub.fault("model.safetensors", "redirect",
                           headers={"Location": f"http://{to}:{self.hub.port('trap')}/x"})
            self.assertIn("within this network", self.pull(expect=1))
        self.hub.fault("model.safetensors", "redirect", headers={"Location": "file:///etc/passwd"})
        self.assertIn("expected an address such as", self.pull(expect=1))

    def test_two_thousand_files_on_three_pages(self):
        files = {f"extra/{i:04}.txt": b"%d" % i for i in range(1997)}
        self.hub.page_files = 700
        self.hub.add("org/name", {**small_model(), **files})
        self.pull()
        self.expect_whole(leave={"README.md", *files})
        self.assertEqual(len(self.hub.requests("hub", part="/tree/")), 3)
        with open(f"{hub_rules.model_folder(self.cache, 'org/name')}/trees/{self.hub.models['org/name'].commit}.json") as tree:
            self.assertEqual(len(json.load(tree)["files"]), 2001)

    def test_paths_out_of_the_folder_are_refused(self):
        model = self.hub.add("org/name", small_model())
        true = [file.entry() for file in model.files.values()]
        for path in ("../../../outside", "/tmp/outside", "a/../../x", "a\0b"):
            model.tree = [*true, {**true[0], "path": path}]
            self.assertIn("the hub's list of files", self.pull(expect=1))
        self.assertEqual(os.listdir(self.folder), [])

    def test_an_unknown_architecture_is_refused_before_anything_large(self):
        self.hub.add("org/name", {**small_model(), "config.json": config(architectures=["NoSuchForCausalLM"])})
        self.assertIn("NoSuchForCausalLM", self.pull(expect=1))
        self.assertEqual(self.hub.requests("cdn"), [])

    def test_sigkill_at_twenty_moments(self):
        size, kills = 24_000_000, 20
        self.hub.add("org/name", small_model(size))
        self.hub.rate = 5_000_000  # Of each connection.
        chance = random.Random(5)
        killed = 0
        for _ in range(kills):
            process = subprocess.Popen([WEIR, "pull", "org/name", "--disk-reserve", "100M"], stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL, env=self.environment())
            try:
                process.wait(chance.uniform(0.05, 0.5))
            except subprocess.TimeoutExpired:
                process.kill()
                killed += 1
            process.wait()
        self.hub.rate = 0
        self.pull()
        self.expect_whole()
        ranges = self.hub.sent("model.safetensors")
        part = 2 << 20  # A sixteenth of the file, in whole MiB.
        self.assertLessEqual(sum(end - begin for begin, end in ranges), size + killed * 4 * part)
        self.assertGreater(killed, 10)

    def test_two_processes_fetch_a_model_together(self):
        self.hub.add("org/name", small_model())
        self.hub.rate = 1_000_000
        first = threading.Thread(target=self.pull)
        first.start()
        self.pull()
        first.join()
        self.expect_whole()
        self.assertEqual(overlap(self.hub.sent("model.safetensors")), 0)

    def test_ctrl_c_says_how_to_go_on(self):
        self.hub.add("org/name", small_model(10_000_000))
        self.hub.rate = 1_000_000
        process = subprocess.Popen([WEIR, "pull", "org/name", "--disk-reserve", "100M"], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, text=True, env=self.environment())
        eventually(lambda: self.hub.requests("cdn"))
        process.send_signal(signal.SIGINT)
        self.assertIn("'weir pull org/name' goes on where it was", process.communicate(timeout=20)[1])
        self.assertEqual(process.returncode, 1)

    def test_a_full_disk_is_told_before(self):
        self.hub.add("org/name", small_model())
        self.assertIn("--disk-reserve", self.weir("pull", "org/name", "--disk-reserve", "1000T", expect=1))
        self.assertEqual(self.hub.requests("cdn"), [])

    def test_gguf_files_by_name_and_quantisation(self):
        data = random.Random(3)
        self.hub.add("org/gguf", {"m-Q4_K_M.gguf": data.randbytes(200_000), "m-Q8_0.gguf": data.randbytes(300_000),
                                  "big/m-F16-00001-of-00002.gguf": data.randbytes(200_000),
                                  "big/m-F16-00002-of-00002.gguf": data.randbytes(200_000), "config.json": b"{}"})
        others = lambda *mine: tuple(p for p in self.hub.models["org/gguf"].files if p not in mine)
        self.assertIn("ORG/NAME:Q4_K_M", self.pull("org/gguf", expect=1))
        self.pull("org/gguf:q4_k_m")
        self.expect_whole("org/gguf", others("m-Q4_K_M.gguf"))
        self.assertIn("big/m-F16.gguf", self.pull("org/gguf:Q2_K", expect=1))
        self.pull("org/gguf:F16")
        self.pull("org/gguf:m-Q8_0.gguf")
        self.expect_whole("org/gguf", ("config.json",))
        listed = json.loads(self.weir("list", "--json"))["models"][0]["snapshots"][0]
        self.assertEqual(listed["names"], ["org/gguf:big/m-F16-00001-of-00002.gguf", "org/gguf:m-Q4_K_M.gguf",
                                           "org/gguf:m-Q8_0.gguf"])
        self.weir("rm", "org/gguf:F16")
        self.expect_whole("org/gguf", others("m-Q4_K_M.gguf", "m-Q8_0.gguf"))

    def test_some_files_and_a_dry_run(self):
        self.hub.add("org/name", {**small_model(), "sub/a.json": b"{}"})
        said = self.pull("org/name", "--dry-run")
        self.assertIn("model.safetensors", said)
        self.assertFalse(os.path.exists(self.cache))
        self.pull("org/name", "--include", "*.json", "--include", "READ*")
        self.expect_whole(leave=("model.safetensors",))

    def test_lines_of_json(self):
        self.hub.add("org/name", small_model())
        self.hub.fault("model.safetensors", "status", code=503, port="cdn")
        lines = [json.loads(line) for line in self.pull("org/name", "--json", token=TOKEN).splitlines()]
        events = [line["event"] for line in lines]
        self.assertEqual((events[0], events[-1]), ("begin", "done"))
        self.assertIn("wait", events)
        last = [line for line in lines if line["event"] == "progress"][-1]
        self.assertEqual((last["bytes_done"], last["files_done"]), (last["bytes"], 3))
        self.assertTrue(os.path.isdir(lines[-1]["path"]))

    def test_a_bar_on_a_terminal(self):
        self.hub.add("org/name", small_model())
        self.hub.rate = 2_000_000
        try:
            parent, child = pty.openpty()
        except OSError as error:
            self.skipTest(f"no pseudo-terminals here: {error}")
        process = subprocess.Popen([WEIR, "pull", "org/name", "--disk-reserve", "100M"], stdout=child, stderr=child,
                                   env=self.environment())
        os.close(child)
        said = b""
        try:
            while part := os.read(parent, 65536):
                said += part
        except OSError:
            pass  # The other side is closed.
        os.close(parent)
        self.assertEqual(process.wait(30), 0, said)
        self.assertRegex(said.decode(), r"\r\[#+-* *\].* of .* MB/s.* left")


class Cache(HubTest):
    def test_what_huggingface_hub_laid_down_is_opened(self):
        for tree in (True, False):
            hub_rules.lay_down(self.cache, "org/name", folder_files(TINY), tree=tree)
            self.weir("verify", "org/name")
            self.assertIn("org/name", self.weir("list"))
            with Server("--model", "org/name", environment=self.environment(HF_HUB_OFFLINE="1")) as server:
                self.assertEqual(json.loads(server.get("/v1/models"))["data"][0]["id"], "org/name")
            self.weir("rm", "org/name")
            self.assertFalse(os.path.exists(hub_rules.model_folder(self.cache, "org/name")))
        self.assertEqual(self.hub.log, [])

    def test_what_is_wrong_or_missing_is_told_and_mended(self):
        self.hub.add("org/name", small_model())
        self.pull()
        self.weir("verify", "org/name")
        blob = os.path.realpath(hub_rules.find(self.cache, "org/name", "tokenizer.json"))
        with open(blob, "r+b") as file:
            file.seek(77)
            file.write(b"\0\0\0\0")
        ended = subprocess.run([WEIR, "verify", "org/name"], capture_output=True, text=True, env=self.environment())
        self.assertEqual(ended.returncode, 1)
        self.assertIn("wrong    tokenizer.json", ended.stdout)
        self.assertIn(f"rm '{blob}'", ended.stdout)
        os.remove(blob)
        self.assertIn("incomplete", self.weir("list"))
        self.assertIn("missing  tokenizer.json", subprocess.run([WEIR, "verify", "org/name"], capture_output=True,
                                                                text=True,
                                                                env=self.environment()).stdout)
        self.pull()
        self.expect_whole()

    def test_other_revisions_keep_their_files(self):
        first = self.hub.add("org/name", small_model())
        self.pull()
        second = self.hub.add("org/name", {**small_model(), "config.json": config(bos_token_id=1)})
        second.revisions["v2"] = second.commit
        self.pull("org/name@v2")
        self.assertIn("org/name@v2", self.weir("list"))
        self.weir("rm", "org/name@v2")
        self.hub.models["org/name"] = first
        self.expect_whole()
        self.assertIn("is not in the cache", self.weir("rm", "org/other", expect=1))
        self.assertIn("expected a model of the cache", self.weir("rm", expect=1, WEIR_MODEL="org/name"))
        self.expect_whole()


class Serve(HubTest):
    def test_from_a_name_to_an_answer_in_one_command(self):
        self.hub.add("org/tiny", folder_files(TINY))
        self.hub.rate = 2_500_000  # Of each connection: two seconds in all.
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
        health, done = [], threading.Event()

        def watch():
            while not done.is_set():
                try:
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5)
                except urllib.error.HTTPError as error:
                    health.append((error.code, json.load(error)["error"]["message"]))
                except OSError:
                    pass
                time.sleep(0.05)

        watcher = threading.Thread(target=watch)
        watcher.start()
        environment = self.environment(TOKEN)
        with Server("--port", str(port), "--model", "org/tiny", "--disk-reserve", "100M",
                    environment=environment) as server:
            done.set()
            watcher.join()
            answer = server.post("/v1/completions", {"prompt": "Once", "max_tokens": 4, "temperature": 0})
            self.assertEqual(answer["model"], "org/tiny")
            self.said += server.logged()
            self.assertIn("pull 100 %", server.logged())
        self.expect_whole("org/tiny", ("expected.json", "nll.txt"))
        stages = {message for status, message in health if status == 503 and "pull" in message}
        self.assertGreater(len(stages), 3, health[:5])
        self.assertTrue(any("pull 0 %" in stage or "pull 1" in stage for stage in stages), stages)
        # Again, without the hub: nothing is asked, offline or not.
        self.hub.forget()
        for arguments, more in (((), {}), (("--offline",), {}), ((), {"HF_HUB_OFFLINE": "1"})):
            with Server("--model", "org/tiny", *arguments, environment=self.environment(**more)) as server:
                again = server.post("/v1/completions", {"prompt": "Once", "max_tokens": 4, "temperature": 0})
                self.assertEqual(again["choices"][0]["text"], answer["choices"][0]["text"])
        self.assertEqual(self.hub.log, [])
        self.assertIn("weir-tiny", self.weir("info", "--model", "org/tiny@main", "--offline") + "weir-tiny")

    def test_a_folder_of_that_name_wins(self):
        shutil.copytree(TINY, f"{self.folder}/org/tiny")
        self.assertIn("tiny", self.weir("info", "--model", "org/tiny"))
        self.assertEqual(self.hub.log, [])

    def test_a_model_that_cannot_be_had_ends_the_start(self):
        for arguments, more, part in (
                (("--model", "org/gone"), {}, "no such model"),
                (("--model", "org/gone", "--offline"), {}, "must not be asked"),
                (("--model", "org/gone"), {"HF_HUB_OFFLINE": "1"}, "must not be asked"),
                (("--model", "org/na me"), {}, "expected a model's name on the hub"),
                (("--model", "no-such-folder"), {}, "no such folder")):
            self.assertIn(part, self.weir("--port", "0", *arguments, expect=1, **more))
        self.hub.add("org/name", {**small_model(), "config.json": config(architectures=["NoSuch"])})
        self.assertIn("NoSuch", self.weir("--port", "0", "--model", "org/name", expect=1))
        self.assertEqual(self.hub.requests("cdn"), [])


if __name__ == "__main__":
    unittest.main()
