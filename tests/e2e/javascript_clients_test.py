"""The JavaScript clients that people use (npm/package.json, exact versions) against the real server, on the Node that
they want."""
import os, shutil, subprocess, sys, unittest

from npm_packages import installed
from weir_server import SOURCE, Server

FOLDER = f"{SOURCE}/tests/e2e/npm"


class JavaScriptClients(unittest.TestCase):
    def run_node(self, folder, server, *arguments):
        done = subprocess.run(["node_modules/node/bin/node", *arguments], cwd=folder, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=600,
                              env={**os.environ, "BASE": f"http://{server.host}:{server.port}",
                                   "MODEL": "weir-tiny-moe"})
        print(done.stdout[-12000:])
        self.assertEqual(done.returncode, 0)

    def test_what_their_users_do(self):
        folder = installed("npm")
        shutil.copy(f"{FOLDER}/clients.mjs", folder)
        with Server() as server:
            self.run_node(folder, server, "--test", "--test-reporter=spec", "clients.mjs")

    def test_a_client_made_of_the_reference(self):
        """Types from /openapi.json, a program that must compile with them, and run."""
        folder = installed("npm")
        shutil.copy(f"{FOLDER}/generated_client.mts", folder)
        with Server() as server:
            with open(f"{folder}/openapi.json", "wb") as file:
                file.write(server.get("/openapi.json"))
            self.run_node(folder, server, "node_modules/openapi-typescript/bin/cli.js", "openapi.json", "-o",
                          "weir.d.ts")
            self.run_node(folder, server, "node_modules/typescript/bin/tsc", "--noEmit", "--strict",
                          "--noUncheckedIndexedAccess", "--target",
                          "es2022", "--module", "nodenext", "--allowImportingTsExtensions", "--skipLibCheck",
                          "generated_client.mts")
            self.run_node(folder, server, "generated_client.mts")


if __name__ == "__main__":
    result = unittest.main(verbosity=2, exit=False).result
    sys.exit(77 if result.skipped else not result.wasSuccessful())  # 77: ctest counts it as skipped.
