"""`weir perplexity --against MODEL`: a model against itself, coarser forms of it against it, and one that cannot be
compared with it."""
import re, shutil, subprocess, tempfile, unittest

from weir_server import SOURCE, WEIR

TINY = f"{SOURCE}/models/weir-tiny-moe"


def weir(*arguments):
    return subprocess.run([WEIR, *arguments], capture_output=True, text=True, timeout=600)


class Against(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="weir_perplexity_")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.text = f"{cls.folder}/text"
        with open(f"{SOURCE}/LICENSE") as whole, open(cls.text, "w") as part:
            part.write(whole.read(3000))

    def measured(self, model, *options):
        """(nll of the model, nll of the reference, mean, median and 99th percentile of KL, share of same tokens)."""
        done = weir("perplexity", "--model", model, "--against", TINY, "--file", self.text, "--ctx", "200", *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stdout.splitlines()
        self.assertEqual(len(lines), 4, done.stdout)
        nll = [float(re.search(r"nll (\S+) ", line).group(1)) for line in lines[:2]]
        kl = re.fullmatch(r"KL\(reference \|\| model\): mean (\S+) \+- \S+ nats a token, median (\S+), 99th "
                          r"percentile (\S+); "
                          r"the same most likely token for (\S+) %", lines[3])
        self.assertIsNotNone(kl, lines[3])
        more = float(re.match(r"nll more than the reference's by (\S+) ", lines[2]).group(1))
        self.assertAlmostEqual(more, nll[0] - nll[1], places=5)
        return *nll, *map(float, kl.groups())

    def test_a_model_does_not_differ_from_itself(self):
        nll, reference, *divergence = self.measured(TINY, "--compute", "exact")
        self.assertEqual(nll, reference)
        self.assertEqual(divergence, [0, 0, 0, 100])

    def test_the_reference_is_exact_whatever_the_model_is(self):
        exact = self.measured(TINY, "--compute", "exact")
        fast = self.measured(TINY, "--compute", "fast", "--kv-cache", "f16")
        self.assertEqual(fast[1], exact[1])
        self.assertTrue(0 < fast[2] < 0.05, fast)

    def test_fewer_bits_are_further_away(self):
        means = []
        for bits in ("8", "3", "2"):
            out = f"{self.folder}/{bits}"
            done = weir("quantize", TINY, out, "--bits", bits)
            self.assertEqual(done.returncode, 0, done.stderr)
            _, _, mean, median, tail, same = self.measured(out, "--compute", "exact")
            self.assertTrue(0 <= median <= mean <= tail, (median, mean, tail))
            means.append(mean)
        self.assertTrue(0 < means[0] < means[1] < means[2], means)

    def test_no_more_tokens_are_measured_than_asked_for(self):
        done = weir("perplexity", "--model", TINY, "--file", self.text, "--tokens", "100", "--ctx", "60")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(": 98 tokens predicted in windows of 60,", done.stdout)  # Of each window all but the first.

    def test_vocabularies_must_be_of_one_size(self):
        done = weir("perplexity", "--model", TINY, "--against", f"{SOURCE}/tests/data/families/llama", "--file",
                    self.text)
        self.assertEqual(done.returncode, 1)
        self.assertIn("tests/data/families/llama: expected a vocabulary of 8192 tokens, as the measured model has; "
                      "found 256",
                      done.stderr)
        done = weir("perplexity", "--model", TINY, "--against", f"{self.folder}/none", "--file", self.text)
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"{self.folder}/none", done.stderr)


if __name__ == "__main__":
    unittest.main()
