"""Recorded requests of real clients against the real server: a few kept here, all of them where the fixtures are."""
import os, subprocess, sys, unittest

from weir_server import SOURCE, Server

WITHOUT = "images"


class Clients(unittest.TestCase):
    def replay(self, folder, *arguments):
        with Server("--allowed-hosts", "x") as server:  # As replay.py calls it once, to learn the context.
            done = subprocess.run([sys.executable, f"{folder}/replay.py", "--base-url",
                                   f"http://{server.host}:{server.port}/v1",
                                   "--model", "weir-tiny-moe", "--without", WITHOUT, "--require",
                                   "embeddings,completions,responses", *arguments],
                                  capture_output=True, text=True, timeout=900)
            print(done.stdout[-3000:])
            self.assertEqual(done.returncode, 0, done.stdout[-4000:] + done.stderr[-2000:])

    def test_recorded_here(self):
        self.replay(f"{SOURCE}/tests/data/clients")

    def test_all_fixtures(self):
        fixtures = os.environ.get("WEIR_FIXTURES", f"{SOURCE}/../shared/fixtures")
        if not os.path.exists(f"{fixtures}/clients/replay.py"):
            self.skipTest("no recorded clients: WEIR_FIXTURES is not set and ../shared/fixtures does not exist")
        self.replay(f"{fixtures}/clients")


if __name__ == "__main__":
    unittest.main(verbosity=2)
