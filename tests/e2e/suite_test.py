"""`weir suite` on the embedded model: its lines, its reports, its exit status; and other servers at an address, of
which one does not answer alike twice."""
import http.server, itertools, json, os, subprocess, tempfile, threading, unittest

from weir_server import WEIR, Server

WITHOUT = {name: value for name, value in os.environ.items() if not name.startswith("WEIR_MODEL")}


def suite(*arguments):
    return subprocess.run([WEIR, "suite", *arguments], capture_output=True, text=True, timeout=600, env=WITHOUT)


class Unsteady(http.server.BaseHTTPRequestHandler):
    """Completions that depend on how many came before."""
    protocol_version = "HTTP/1.1"
    counter = itertools.count()

    def log_message(self, *_):
        pass

    def send(self, value):
        data = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        self.send({"data": [{"id": "unsteady"}]})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        assert body["model"] == "unsteady", body
        self.send({"choices": [{"index": 0, "text": str(next(self.counter))}], "usage": {"prompt_tokens": 3}})


class UnsteadyServer(http.server.ThreadingHTTPServer):
    request_queue_size = 128  # 64 connect at once; of more than wait here the kernel drops some, for minutes.


class Suite(unittest.TestCase):
    numbers = itertools.count()

    @classmethod
    def setUpClass(cls):
        """One run of two parts, which the tests look at."""
        cls.folder = tempfile.TemporaryDirectory(prefix="weir_suite_")
        cls.addClassCleanup(cls.folder.cleanup)
        cls.json, cls.markdown = f"{cls.folder.name}/new.json", f"{cls.folder.name}/new.md"
        cls.done = suite("--quick", "--only", "bits,matrix", "--json", cls.json, "--markdown", cls.markdown)
        if not os.path.exists(cls.json):
            raise AssertionError(cls.done.stderr)
        with open(cls.json) as file:
            cls.report = json.load(file)

    def old_report(self, **changes):
        """The run's report with other texts or values of some figures, as a file."""
        report = json.loads(json.dumps(self.report))
        for figure in report["figures"]:
            for name, value in changes.get(figure["name"], {}).items():
                figure[name] = value
        report.update(changes.get("setting", {}))
        path = f"{self.folder.name}/old{next(self.numbers)}.json"
        with open(path, "w") as file:
            json.dump(report, file)
        return path

    def figure(self, part, name):
        [found] = [f for f in self.report["figures"] if f["part"] == part and f["name"] == name]
        return found

    def test_a_run_that_passes(self):
        self.assertEqual(self.done.returncode, 0, self.done.stdout + self.done.stderr)
        self.assertIn("weir-tiny-moe", self.done.stdout.splitlines()[0])
        self.assertIn(" 0 failed", self.done.stdout)
        self.assertIn("[1/2] matrix: ", self.done.stderr)
        self.assertIn("[2/2] bits: ", self.done.stderr)
        self.assertTrue(self.report["passed"])
        self.assertEqual(self.report["format"], "weir-suite")
        self.assertEqual({f["part"] for f in self.report["figures"]}, {"matrix", "bits"})
        differ = self.figure("bits", "64 requests alone and together: differ")
        self.assertEqual((differ["value"], differ["at_most"], differ["verdict"]), (0, 0, "pass"))
        self.assertRegex(self.figure("bits", "hash of answers and log-probabilities")["text"], "^[0-9a-f]{16}$")
        for kv in ("f16", "tq4"):
            self.assertGreater(self.figure("matrix", f"resident, {kv}, 512: decode")["value"], 0)
        self.assertIn("context has", self.figure("matrix", "resident, tq4, 40000")["skipped"])
        with open(self.markdown) as file:
            self.assertIn("| bits | 64 requests alone and together: differ | 0 | at most 0 | pass |", file.read())

    def test_the_same_build_is_no_worse_and_a_changed_bit_is(self):
        same = suite("--quick", "--only", "bits", "--against", self.old_report())
        self.assertEqual(same.returncode, 0, same.stdout + same.stderr)
        self.assertIn("nothing is worse", same.stdout)
        name = "hash of answers and log-probabilities"
        other = suite("--quick", "--only", "bits", "--against", self.old_report(**{name: {"text": "0" * 16}}))
        self.assertEqual(other.returncode, 1, other.stdout)
        self.assertRegex(other.stdout, f"worse: bits, {name}: [0-9a-f]+, was 0+: they should be equal")
        self.assertIn("1 worse than in the older report", other.stderr)

    def test_a_slower_build_is_worse(self):
        report = {**self.report, "figures": [{"part": "speed", "name": "prefill of 512", "value": 1e9,
                                              "unit": "tokens/s",
                                              "better": "more", "tolerance": 0.1, "verdict": "-"}]}
        path = f"{self.folder.name}/fast.json"
        with open(path, "w") as file:
            json.dump(report, file)
        slower = suite("--quick", "--only", "speed", "--against", path)
        self.assertEqual(slower.returncode, 1, slower.stdout)
        self.assertRegex(slower.stdout,
                         r"worse: speed, prefill of 512: \d+ tokens/s, was 1000000000: \d+ % worse, 10 % is ")

    def test_reports_that_say_nothing_are_refused_before_anything_is_measured(self):
        for path, wanted in [("/nowhere", "--against: /nowhere"),
                             (self.old_report(setting={"model": "another"}), "of the same model, 'weir-tiny-moe'"),
                             (self.old_report(setting={"quick": False}), "of the same kind"),
                             (self.markdown, "expected a report of weir suite --json")]:
            done = suite("--quick", "--only", "bits", "--against", path)
            self.assertEqual(done.returncode, 1, done.stdout)
            self.assertIn(wanted, done.stderr)
            self.assertEqual(done.stdout, "")

    def test_an_unknown_part_is_told_all(self):
        done = suite("--only", "bots")
        self.assertEqual(done.returncode, 1)
        self.assertIn("expected parts of speed, serving,", done.stderr)

    def test_a_server_at_an_address_is_measured_from_outside(self):
        with Server() as server:
            done = suite("--url", f"http://127.0.0.1:{server.port}", "--quick", "--only", "speed,bits", "--json", "-")
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads(done.stdout)
        self.assertEqual(report["model"], "weir-tiny-moe")
        self.assertNotIn("processor", report)
        by_part = {f["part"]: f for f in report["figures"]}
        self.assertIn("needs the model itself", by_part["speed"]["skipped"])
        self.assertEqual(by_part["bits"]["name"], "hash of answers and log-probabilities")

    def test_a_server_that_answers_otherwise_each_time_fails(self):
        httpd = UnsteadyServer(("127.0.0.1", 0), Unsteady)
        threading.Thread(target=httpd.serve_forever, daemon=True).start()
        self.addCleanup(httpd.server_close)
        self.addCleanup(httpd.shutdown)
        done = suite("--url", f"http://127.0.0.1:{httpd.server_address[1]}/v1", "--only", "bits")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertRegex(done.stdout, r"64 requests alone and together: differ +64 +at most 0 +FAIL")

    def test_an_address_without_a_server_is_an_error(self):
        done = suite("--url", "http://127.0.0.1:1", "--only", "bits")
        self.assertEqual(done.returncode, 1)
        self.assertIn("/v1/models", done.stderr)

    def test_how_lm_eval_runs_is_told(self):
        done = suite("--lm-eval", "arc_easy,hellaswag")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("tokenizer_backend=remote", done.stdout)
        self.assertIn("--tasks arc_easy,hellaswag", done.stdout)


if __name__ == "__main__":
    unittest.main()
