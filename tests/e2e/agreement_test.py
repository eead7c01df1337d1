"""bench/agreement with Weir in llama-server's place: it finds the same answers equal and others different."""
import os, subprocess, sys, tempfile, unittest

from weir_server import SOURCE, WEIR

FAMILIES = f"{SOURCE}/tests/data/families"
# The command line of llama-server, of which Weir takes the model and the port.
STAND_IN = """#!/bin/sh
while [ $# -gt 0 ]; do
  case "$1" in
    -m) model="$2";;
    --port) port="$2";;
    --version) echo "a stand-in"; exit 0;;
  esac
  shift
done
exec {weir} --model "{model}" --port "$port" --compute exact --threads 1
"""


def has_numpy():
    return subprocess.run([sys.executable, "-c", "import numpy"], capture_output=True).returncode == 0


@unittest.skipUnless(has_numpy(), "python3-numpy is not installed")
class Agreement(unittest.TestCase):
    def agreement(self, model, *names):
        with tempfile.TemporaryDirectory() as folder:
            stand_in = os.path.join(folder, "llama-server")
            with open(stand_in, "w") as file:
                file.write(STAND_IN.format(weir=WEIR, model=model))
            os.chmod(stand_in, 0o700)
            done = subprocess.run([sys.executable, f"{SOURCE}/bench/agreement", "--weir", WEIR, "--llama-server",
                                   stand_in,
                                   "--work", folder, *(f"{FAMILIES}/{name}" for name in names)], capture_output=True,
                                  text=True)
        cells = [line.strip("| ").split(" | ") for line in done.stdout.splitlines() if line.startswith("|")]
        return done, {row[1]: row for row in cells}

    def test_finds_the_same_file_equal_and_says_why_a_fixture_is_changed(self):
        done, rows = self.agreement("$model", "llama", "olmoe", "gpt2")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(rows["llama"][0], "llama")
        self.assertTrue(rows["llama"][2].startswith("0.0e+00 of "), rows)
        self.assertLess(float(rows["llama"][3]), 1e-3)
        self.assertEqual(rows["llama"][5], "yes")
        self.assertEqual(rows["olmoe+"][2], rows["olmoe"][2], "repeated heads compute the same")
        self.assertIn("keys have fewer heads", rows["olmoe"][5])
        self.assertNotIn("gpt2", rows)

    def test_finds_other_answers_different(self):
        with tempfile.TemporaryDirectory() as folder:
            other = f"{folder}/other.gguf"
            subprocess.run([sys.executable, f"{SOURCE}/tools/to_gguf", f"{FAMILIES}/llama_llama3rope", other,
                            "--numbers"], check=True)
            done, rows = self.agreement(other, "llama")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(rows["llama"][5], "no")
        self.assertGreater(float(rows["llama"][4]), 1e-2)


if __name__ == "__main__":
    unittest.main()
