"""Coding agents of npm (agents/package.json, exact versions) against the real server: each calls one of its tools and
sends the result back. A proxy makes the tiny model call it (forcing_proxy.py). What the agents send is also kept as
requests (tests/data/agents), for agents_test.py, which needs no npm."""
import json, os, re, subprocess, sys, tempfile, unittest

from forcing_proxy import ForcingProxy
from npm_packages import installed
from weir_server import SOURCE, Server

MODEL = "weir-tiny-moe"
WORD = "heliotrope"
SECONDS = 240  # Of one agent; each took less than 20 on two cores.

CODEX = """model = "{model}"
model_provider = "weir"

[model_providers.weir]
name = "Weir"
base_url = "{url}/v1"
wire_api = "responses"
"""
CODEX_MCP = """
[mcp_servers.sums]
command = "{python}"
args = ["{sums}"]
default_tools_approval_mode = "approve"
"""
OPENCODE = {"$schema": "https://opencode.ai/config.json", "model": f"weir/{MODEL}", "small_model": f"weir/{MODEL}",
            "autoupdate": False,
            "share": "disabled",
            "provider": {"weir": {"npm": "@ai-sdk/openai-compatible", "name": "Weir",
                                  "options": {"baseURL": "", "apiKey": "none"},
                                  "models": {MODEL: {"name": MODEL, "limit": {"context": 32768, "output": 2048}}}}}}
CONTINUE = """name: weir
version: 1.0.0
schema: v1
models:
  - name: Weir
    provider: openai
    model: {model}
    apiBase: {url}/v1
    apiKey: none
    roles: [chat]
    capabilities: [tool_use]
"""
# Nobody is to be told, asked for a newer version, or sent anything.
SILENT = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_TELEMETRY": "1", "DISABLE_ERROR_REPORTING": "1",
          "DISABLE_AUTOUPDATER": "1",
          "OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1",
          "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
          "CONTINUE_TELEMETRY_ENABLED": "0", "QWEN_TELEMETRY_ENABLED": "0", "QWEN_CODE_SUPPRESS_YOLO_WARNING": "1",
          "NO_UPDATE_NOTIFIER": "1",
          "DO_NOT_TRACK": "1", "CI": "1"}


def trimmed(value, home):
    """A request without what somebody has written for a model, and without what is this machine's."""
    if isinstance(value, dict):
        return {key: "What it is." if key == "description" and isinstance(element, str) else trimmed(element, home)
                for key, element in value.items()}
    if isinstance(value, list):
        return [trimmed(element, home) for element in value]
    if not isinstance(value, str):
        return value
    value = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "00000000-0000-0000-0000-000000000000",
                   value.replace(home, "/home/user"))
    return value if len(value) <= 60 else "A text that was longer."


class CodingAgents(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.packages = installed("agents", timeout=900, verb="install")
        cls.server = Server().__enter__()
        cls.home = tempfile.TemporaryDirectory()
        cls.work = f"{cls.home.name}/work"
        os.mkdir(cls.work)
        cls.note = f"{cls.work}/note.txt"
        with open(cls.note, "w") as note:
            note.write(f"The word is {WORD}.\n")

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__(None, None, None)
        cls.home.cleanup()

    def write(self, path, text):
        path = f"{self.home.name}/{path}"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(text)
        return path

    def round_trip(self, proxy, command, expected, environment=None):
        """Runs an agent; its tool was called once, and what came of it holds `expected`."""
        binaries = f"{self.packages}/node_modules/node/bin:{self.packages}/node_modules/.bin"
        done = subprocess.run(command, cwd=self.work, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True,
                              timeout=SECONDS, env={"PATH": f"{binaries}:{os.environ['PATH']}", "HOME": self.home.name,
                                                    "TMPDIR": self.home.name,
                                                    "LANG": "C.UTF-8", **SILENT, **(environment or {})})
        seen = [path for path, _ in proxy.seen]
        self.record(proxy)
        told = f"\n{done.stdout[-3000:]}\nrequests: {seen}\nfailures: {proxy.failures}"
        self.assertEqual(proxy.failures, [], told)
        self.assertEqual(done.returncode, 0, told)
        self.assertGreaterEqual(proxy.forced, 1, told)
        self.assertTrue(any(expected in result for result in proxy.results), f"{proxy.results}{told}")

    def record(self, proxy):
        """Keeps what was sent, for whoever renews tests/data/agents."""
        if folder := os.environ.get("WEIR_RECORD_AGENTS"):
            requests = [{"path": path, "body": trimmed(body, self.home.name)} for path, body in proxy.seen]
            with open(f"{folder}/{self.id().split('.test_')[-1]}.json", "w") as file:
                call = {"tool": proxy.tool, "namespace": proxy.namespace,
                        "arguments": trimmed(proxy.arguments, self.home.name)}
                file.write(json.dumps(call)[:-1] + ', "requests": [\n' + ",\n".join(map(json.dumps,
                                                                                        requests)) + "\n]}\n")

    def codex(self, proxy, expected, more=""):
        self.write(".codex/config.toml", CODEX.format(model=MODEL, url=proxy.url) + more)
        self.round_trip(proxy, ["codex", "exec", "--skip-git-repo-check", "Which word is in note.txt?"], expected)

    def test_codex_with_default_settings(self):
        with ForcingProxy(self.server, "exec_command", {"cmd": "cat note.txt"}) as proxy:
            self.codex(proxy, WORD)
            kinds = {tool["type"] for tool in proxy.seen[0][1]["tools"]}
            self.assertGreaterEqual(kinds, {"function", "namespace", "web_search"})

    def test_codex_calls_a_tool_of_a_namespace(self):
        with ForcingProxy(self.server, "close_agent", {"target": "nobody"}, namespace="multi_agent_v1") as proxy:
            self.codex(proxy, "nobody")

    def test_codex_with_an_mcp_server(self):
        more = CODEX_MCP.format(python=sys.executable, sums=f"{SOURCE}/tests/e2e/agents/sums_server.py")
        with ForcingProxy(self.server, "add", {"a": 19, "b": 23}, namespace="mcp__sums") as proxy:
            self.codex(proxy, "the sum is 42", more)

    def test_claude_code(self):
        with ForcingProxy(self.server, "Read", {"file_path": self.note}) as proxy:
            self.round_trip(proxy, ["claude", "-p", "Which word is in note.txt?", "--model", MODEL, "--allowedTools",
                                    "Read"], WORD,
                            {"ANTHROPIC_BASE_URL": proxy.url, "ANTHROPIC_AUTH_TOKEN": "none"})

    def test_opencode(self):
        with ForcingProxy(self.server, "read", {"filePath": self.note}) as proxy:
            OPENCODE["provider"]["weir"]["options"]["baseURL"] = f"{proxy.url}/v1"
            self.write(".config/opencode/opencode.json", json.dumps(OPENCODE))
            self.round_trip(proxy, ["opencode", "run", "Which word is in note.txt?"], WORD)

    def test_continue(self):
        with ForcingProxy(self.server, "Read", {"filepath": self.note}) as proxy:
            config = self.write("continue.yaml", CONTINUE.format(model=MODEL, url=proxy.url))
            self.round_trip(proxy, ["cn", "-p", "Which word is in note.txt?", "--config", config, "--auto"], WORD)

    def test_qwen_code(self):
        with ForcingProxy(self.server, "read_file", {"file_path": self.note}) as proxy:
            self.round_trip(proxy, ["qwen", "-p", "Which word is in note.txt?", "--yolo", "--auth-type", "openai"],
                            WORD,
                            {"OPENAI_BASE_URL": f"{proxy.url}/v1", "OPENAI_API_KEY": "none", "OPENAI_MODEL": MODEL})


if __name__ == "__main__":
    result = unittest.main(verbosity=2, exit=False).result
    sys.exit(77 if result.skipped else not result.wasSuccessful())  # 77: ctest counts it as skipped.
