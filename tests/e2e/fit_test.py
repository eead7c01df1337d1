"""What `weir info` says before a model is loaded, or fetched, is what loading it does."""
import json, os, shutil, subprocess, tempfile, unittest
import fitting
from fitting import MIB, check, info
from weir_server import SOURCE, WEIR


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
        limits = sorted({mib + more for mib in found for more in (-1, 0)} | {120, 160, 200, 250, 300, 400, 500, 600})[:12]
        verdicts = []
        for mib in limits:
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
            run = lambda *words: subprocess.run([WEIR, *words], capture_output=True, text=True, env=environment, check=True).stdout
            self.assertIsNone(json.loads(run("info", "--json"))["speed"])
            self.assertIn("weir calibrate", run("info"))
            self.assertRegex(run("calibrate"), r"read [\d.]+ GB/s, int8 [\d.]+ TOPS")
            speed = json.loads(run("info", "--json"))["speed"]
            self.assertGreater(speed["decode"]["low"], 1)
            self.assertGreater(speed["prompt"]["high"], speed["prompt"]["low"])
            self.assertRegex(run("info"), r"expected: about [\d.]+ to [\d.]+ tokens a second, prompts")


class Catalogue(unittest.TestCase):
    def test_is_what_the_planner_computes(self):
        done = subprocess.run([f"{SOURCE}/tools/make_catalogue", "--weir", WEIR, "--check"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_is_searched_without_a_network(self):
        with tempfile.TemporaryDirectory() as home:
            environment = {**os.environ, "HF_HOME": home, "HF_HUB_OFFLINE": "1"}
            run = lambda *words: subprocess.run([WEIR, "search", *words], capture_output=True, text=True, env=environment, check=True).stdout
            self.assertGreater(len(run().splitlines()), 40)
            found = json.loads(run("qwen3 8b 4bit", "--json"))
            self.assertEqual([hit["id"] for hit in found["models"]], ["mlx-community/Qwen3-8B-4bit"])
            self.assertIn(found["models"][0]["fit"]["verdict"], ("fits", "short", "no"))
            self.assertIsNone(found["next"])


if __name__ == "__main__":
    unittest.main()
