"""Packages of npm for a test: fetched once for each package-lock.json, into the build folder."""
import filecmp, os, shutil, subprocess, unittest

from weir_server import SOURCE, WEIR


def installed(name, timeout=600, verb="ci"):
    """The folder in which the packages of tests/e2e/NAME are installed; skips the test where they cannot be had.
    `verb`: install, not ci, where the lock file lacks the packages of other systems than Linux on x86-64."""
    npm = shutil.which("npm")
    if npm is None:
        raise unittest.SkipTest("npm is not installed (tools/install --npm)")
    source, folder = f"{SOURCE}/tests/e2e/{name}", f"{os.path.dirname(WEIR)}/e2e-{name}"
    os.makedirs(folder, exist_ok=True)
    stamp = f"{folder}/installed-package-lock.json"
    if not os.path.exists(stamp) or not filecmp.cmp(f"{source}/package-lock.json", stamp, shallow=False):
        for file in ("package.json", "package-lock.json"):
            shutil.copy(f"{source}/{file}", folder)
        try:
            done = subprocess.run([npm, verb, "--no-audit", "--no-fund"], cwd=folder, capture_output=True, text=True,
                                  timeout=timeout)
        except subprocess.TimeoutExpired:
            raise unittest.SkipTest(f"npm did not fetch the packages within {timeout} s")
        if done.returncode != 0:
            raise unittest.SkipTest(f"npm could not fetch the packages: {done.stderr.strip()[-300:]}")
        shutil.copy(f"{source}/package-lock.json", stamp)
    return folder
