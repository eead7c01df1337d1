"""What people give a server at its start: a folder of Hugging Face's cache, several names, keys of config.json that
are wrong, options of other servers. Seen from outside the process."""
import json, os, shutil, subprocess, tempfile, unittest

from weir_server import SOURCE, WEIR, Server

TINY = f"{SOURCE}/models/weir-tiny-moe"
ASK = {"prompt": "Once", "max_tokens": 1}


def refused(*arguments, environment=None):
    """What a start says that ends at once."""
    ended = subprocess.run([WEIR, "--port", "0", *arguments], capture_output=True, text=True, timeout=60,
                           env={**os.environ, **(environment or {})})
    assert ended.returncode != 0, ended
    return ended.stderr


class Start(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="weir_start_")
        self.addCleanup(shutil.rmtree, self.folder)

    def hub_model(self):
        model = f"{self.folder}/models--some-org--tiny"
        os.makedirs(f"{model}/snapshots")
        os.makedirs(f"{model}/refs")
        shutil.copytree(TINY, f"{model}/blobs")
        for commit in ("aaa", "bbb"):
            os.mkdir(f"{model}/snapshots/{commit}")
        for name in os.listdir(TINY):  # Files of a snapshot are links to blobs.
            os.symlink(f"../../blobs/{name}", f"{model}/snapshots/bbb/{name}")
        return model

    def test_a_model_of_the_hubs_cache_is_served_by_its_name(self):
        model = self.hub_model()
        self.assertIn("expected refs/main to name one of its 2 snapshots", refused("--model", model))
        with open(f"{model}/refs/main", "w") as ref:
            ref.write("bbb")
        for folder in (model, f"{model}/snapshots/bbb"):
            with Server("--model", folder, "--stream-experts") as server:
                about = json.loads(server.get("/v1/models"))["data"][0]
                self.assertEqual(about["id"], "some-org/tiny")
                self.assertEqual(about["meta"]["n_params"], 28_873_984)  # Experts too.
                self.assertIn("4-bit", about["meta"]["ftype"])
                self.assertGreater(about["meta"]["size"], 28_873_984 // 2)
                self.assertEqual(json.loads(server.get("/v1/models/some-org/tiny"))["id"], "some-org/tiny")
                self.assertEqual(server.post("/v1/completions", {**ASK, "model": "some-org/tiny"})["model"],
                                 "some-org/tiny")

    def test_several_names_and_any_name(self):
        with Server("--alias", "one,two", "-a", "three") as server:
            about = json.loads(server.get("/v1/models"))["data"]
            self.assertEqual([(m["id"], m["aliases"]) for m in about], [("one", ["one", "two", "three"])])
            for name in ("one", "two", "three", "weir-tiny-moe", "default", ""):
                self.assertEqual(server.post("/v1/completions", {**ASK, "model": name})["model"], "one")
            error = server.post("/v1/completions", {**ASK, "model": "gpt-4o"}, expect=404)["error"]
            self.assertEqual(error["code"], "model_not_found")
            for part in ("'one'", "'two', 'three'", "--alias '*'"):
                self.assertIn(part, error["message"])
        with Server("--alias", "*") as server:
            self.assertEqual(server.post("/v1/completions", {**ASK, "model": "gpt-4o"})["model"], "weir-tiny-moe")

    def test_keys_of_the_config_are_overridden_and_it_shows(self):
        model = f"{self.folder}/odd"
        shutil.copytree(TINY, model)
        with open(f"{model}/config.json") as file:
            config = json.load(file)
        with open(f"{model}/config.json", "w") as file:
            json.dump({**config, "use_mrope": False, "pruned_heads": {}, "strange": 7}, file)
        error = refused("--model", model)
        self.assertIn("'strange'", error)
        self.assertIn("--config-override 'strange=null'", error)
        self.assertIn("expected JSON after the '='", refused("--model", model, "--config-override", "strange=none"))
        with Server("--model", model, "--config-override", "strange=null", "--log-level", "debug") as server:
            self.assertEqual(json.loads(server.get("/props"))["config_overrides"], ["strange=null"])
            server.post("/v1/completions", ASK)
            log = server.logged()
            self.assertIn("config.json is overridden: strange=null", log)
            self.assertIn("'use_mrope' false computes nothing", log)

    def test_mistakes_are_answered_in_words_that_help(self):
        self.assertIn(f"found a file; the folder it lies in is one: --model {TINY}",
                      refused("--model", f"{TINY}/model.safetensors"))
        self.assertIn("Weir computes on the processor", refused("-ngl", "99"))
        self.assertIn("-c: expected a number of tokens such as 4096, 4k or 32K; found 'big'", refused("-c", "big"))
        self.assertIn("unknown.conf", refused(environment={"WEIR_CONFIG": f"{self.folder}/unknown.conf"}))

    def test_many_sequences_find_room(self):
        with Server("--parallel", "1000", "-c", "1k") as server:
            self.assertIn("parallel=1000", server.logged())
            self.assertIn("prefill=2000", server.logged())
            self.assertEqual(json.loads(server.get("/props"))["total_slots"], 1000)


if __name__ == "__main__":
    unittest.main()
