"""Verdicts under real limits: a mixture of experts of 2.3 GB in twelve control groups. Needs root; minutes."""
import os, tempfile, unittest
import fitting
from fitting import GIB, MIB, check, control_group

LIMITS = [300, 600, 1200, 1800, 2100, 2300, 2500, 2800, 3100, 3500, 4000, 5200]  # MiB.


def groups_work():
    try:
        with control_group(GIB):
            return True
    except OSError:
        return False


@unittest.skipUnless(groups_work(), "needs root and the memory controller of control groups")
class Groups(unittest.TestCase):
    def test_verdicts_are_what_loading_does(self):
        verdicts = []
        with tempfile.TemporaryDirectory(dir=os.environ.get("WEIR_TEST_DISK")) as folder:
            fitting.write_mixture(folder)
            for mib in LIMITS:
                with self.subTest(mib=mib), control_group(mib * MIB) as join:
                    verdicts.append(check(self, folder, before_start=join))
        print("verdicts:", dict(zip(LIMITS, verdicts)))
        self.assertLessEqual({"no", "streams", "short", "fits"}, set(verdicts))


if __name__ == "__main__":
    unittest.main()
