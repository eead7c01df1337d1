"""What pages of other origins may do, as browsers see it: a strict reader of the Fetch standard, and Chromium where
it is installed."""
import http.server, json, os, shutil, signal, subprocess, tempfile, threading, unittest

from fetch_standard import NetworkError, Page, connect_to
from weir_server import Server

CHROMIUM = shutil.which("chromium")
CHAT = {"model": "weir-tiny-moe", "messages": [{"role": "user", "content": "Tell me a story."}],
        "max_tokens": 12, "ignore_eos": True}
KEY = {"Authorization": "Bearer sk-page-secret", "Content-Type": "application/json"}
# What OpenAI's SDK sends from a browser.
SDK = {**KEY, "x-stainless-lang": "js", "x-stainless-os": "Unknown", "x-stainless-retry-count": "0"}
# Headers of the connection, and of CORS itself: no page asks for them.
TRANSPORT = {"connection", "date", "transfer-encoding", "keep-alive", "vary", "x-accel-buffering"}


class KeyFile:
    def __enter__(self):
        self.file = tempfile.NamedTemporaryFile("w")
        self.file.write("sk-page-secret name=page requests-per-minute=100000 tokens-per-minute=10000000\n")
        self.file.flush()
        return self.file.name

    def __exit__(self, *_):
        self.file.close()


class Cors(unittest.TestCase):
    def check_all_there(self, answer):
        """A page may read every header that tells something."""
        for key, _ in answer.all_headers:
            if key.lower() not in TRANSPORT and not key.lower().startswith("access-control-"):
                self.assertIn(key.lower(), answer.headers)

    def check_everything(self, page, credentials):
        fetch = lambda *a, **k: page.fetch(*a, credentials=credentials, **k)
        chat = "/v1/chat/completions"
        answer = fetch(chat, "POST", SDK, json.dumps({**CHAT, "temprature": 0}))
        self.assertEqual(answer.status, 200)
        self.assertIn("x-request-id", answer.headers)
        self.assertIn("temprature", answer.headers["x-weir-ignored"])
        self.assertEqual(answer.headers["x-ratelimit-limit-requests"], "100000")
        self.check_all_there(answer)
        stream = fetch(chat, "POST", SDK, json.dumps({**CHAT, "stream": True}))
        self.assertEqual(stream.status, 200)
        self.assertTrue(stream.body.endswith(b"data: [DONE]\n\n"))
        self.check_all_there(stream)
        self.assertEqual(page.preflights, 1)  # The second time the cache knew.
        self.assertEqual(fetch("/v1/models", headers={"Authorization": KEY["Authorization"]}).status, 200)
        self.assertEqual(fetch("/v1/responses/resp_none", "DELETE", KEY).status, 404)
        self.assertEqual(fetch("/health").status, 200)
        self.assertEqual(fetch("/v1/messages", "POST", {**KEY, "anthropic-version": "2023-06-01"},
                               json.dumps(CHAT)).status, 200)
        # Errors: of keys, of routes, of fields, of a type that needs no preflight, and those that HTTP itself makes.
        for status, path, method, headers, body in (
                (401, "/v1/models", "GET", {}, None),
                (401, chat, "POST", {"Content-Type": "application/json", "Authorization": "Bearer sk-wrong"}, "{}"),
                (401, chat, "POST", {"Content-Type": "application/json", "Content-Length": str(3 << 20)}, None),
                (404, "/nowhere", "GET", KEY, None),
                (405, chat, "DELETE", KEY, None),
                (400, chat, "POST", KEY, "{"),
                (415, chat, "POST", {**KEY, "Content-Type": "text/plain"}, "{}"),
                (413, chat, "POST", {**KEY, "Content-Length": str(1 << 40)}, None),
                (400, chat, "POST", {**KEY, "Content-Length": "nonsense"}, None),
                (431, "/health", "GET", {"Accept": "*/*", "x-long": "x" * 70_000}, None)):
            with self.subTest(status=status, path=path, method=method):
                answer = fetch(path, method, headers, body)
                self.assertEqual(answer.status, status)
                self.assertIn(b'"error"', answer.body)
                self.check_all_there(answer)

    def test_any_origin_may_do_everything_without_credentials(self):
        with KeyFile() as keys, Server("--cors", "*", "--api-key-file", keys) as server:
            self.check_everything(Page("https://chat.example", connect_to(server)), "same-origin")
            self.check_everything(Page("http://localhost:3000", connect_to(server)), "omit")
            with self.assertRaises(NetworkError):  # As the standard has it: '*' is for nobody in particular.
                Page("https://chat.example", connect_to(server)).fetch("/health", credentials="include")

    def test_named_origins_may_do_everything_and_others_nothing(self):
        with KeyFile() as keys, Server("--cors", "https://a.example,http://localhost:3000", "--api-key-file",
                                       keys) as server:
            for origin in ("https://a.example", "http://localhost:3000"):
                for credentials in ("include", "same-origin"):
                    self.check_everything(Page(origin, connect_to(server)), credentials)
            for origin in ("https://b.example", "http://a.example", "https://a.example:8443", "null"):
                page = Page(origin, connect_to(server))
                for arguments in (("/health",), ("/v1/chat/completions", "POST", SDK, json.dumps(CHAT))):
                    with self.assertRaises(NetworkError):
                        page.fetch(*arguments)
            # A cache in between must tell origins apart, also from requests of none.
            for headers in ({}, {"Origin": "https://a.example"}, {"Origin": "https://b.example"}):
                self.assertEqual(server.request("GET", "/health", headers=headers)[1]["vary"], "Origin")

    def test_without_the_option_no_page_may(self):
        with Server() as server:
            for arguments in (("/health",), ("/v1/chat/completions", "POST", SDK, json.dumps(CHAT))):
                with self.assertRaises(NetworkError):
                    Page("https://chat.example", connect_to(server)).fetch(*arguments)

    def test_origins_that_no_browser_sends_stop_the_start(self):
        for origin in ("https://a.example/", "a.example", "https://A.example", "https://a.example:443", "null",
                       "https://*.example"):
            done = subprocess.run([os.environ["WEIR_BINARY"], "--cors", origin], capture_output=True, text=True,
                                  timeout=60)
            self.assertEqual(done.returncode, 2)
            self.assertIn(f"--cors: expected '*', or origins as browsers send them", done.stderr)
            self.assertIn(f"found '{origin}'", done.stderr)


PAGE = """<!doctype html><title>A client of Weir</title><script>
const base = %(base)s, chat = %(chat)s, key = %(key)s, credentials = %(credentials)s;
async function attempt(path, options = {}) {
  try {
    const answer = await fetch(base + path, {credentials, ...options});
    const result = {status: answer.status, id: answer.headers.get('x-request-id'),
                    limit: answer.headers.get('x-ratelimit-limit-requests'), chunks: 0, text: ''};
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let part; !(part = await reader.read()).done; ++result.chunks) result.text += part.value;
    return result;
  } catch (error) { return {error: String(error)}; }
}
const post = (body, headers = key) => ({method: 'POST', headers, body: JSON.stringify(body)});
(async () => {
  const results = {
    whole: await attempt('/v1/chat/completions', post(chat)),
    stream: await attempt('/v1/chat/completions', post({...chat, max_tokens: 400, stream: true})),
    models: await attempt('/v1/models', {headers: key}),
    wrong_key: await attempt('/v1/models', {headers: {Authorization: 'Bearer sk-wrong'}}),
    bad_body: await attempt('/v1/chat/completions', post({messages: 1})),
    nowhere: await attempt('/nowhere', {headers: key}),
    deleted: await attempt('/v1/responses/resp_none', {method: 'DELETE', headers: key}),
    health: await attempt('/health'),
  };
  await fetch('/result', {method: 'POST', body: JSON.stringify(results)});
})();
</script>"""


class PageServer(http.server.ThreadingHTTPServer):
    """Serves one page, and waits for what it has to tell."""

    def __init__(self, page):
        super().__init__(("127.0.0.1", 0), PageHandler)
        self.page, self.result, self.told = page, None, threading.Event()
        threading.Thread(target=self.serve_forever, daemon=True).start()


class PageHandler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        data = self.server.page.encode() if self.path == "/" else b""
        self.send_response(200 if data else 404)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_POST(self):
        self.server.result = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(204)
        self.end_headers()
        self.server.told.set()

    def log_message(self, *_):
        pass


@unittest.skipUnless(CHROMIUM, "chromium is not installed")
class Chromium(unittest.TestCase):
    def visit(self, server, credentials, host="127.0.0.1", page_server=None):
        """What a page at http://host:PORT finds when it asks `server`."""
        pages = page_server or PageServer("")
        pages.page = PAGE % {"base": json.dumps(f"http://127.0.0.1:{server.port}"), "chat": json.dumps(CHAT),
                             "key": json.dumps(KEY), "credentials": json.dumps(credentials)}
        with tempfile.TemporaryDirectory() as profile, tempfile.TemporaryFile("w+") as log:
            browser = subprocess.Popen(
                [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
                 "--disable-dev-shm-usage", "--disable-background-networking", "--disable-component-update",
                 "--disable-sync", f"--user-data-dir={profile}/profile", f"http://{host}:{pages.server_port}/"],
                stdout=log, stderr=log, env={**os.environ, "HOME": profile}, start_new_session=True)
            try:
                told = pages.told.wait(180)
            finally:
                os.killpg(browser.pid, signal.SIGKILL)
                browser.wait()
                pages.shutdown()
                pages.server_close()
            if not told:
                log.seek(0)
                self.fail("the page told nothing; chromium said:\n" + log.read()[-4000:])
        return pages.result

    def check_everything(self, results):
        self.assertEqual(json.loads(results["whole"]["text"])["usage"]["completion_tokens"], 12)
        self.assertEqual(results["whole"]["limit"], "100000")
        self.assertEqual(results["stream"]["status"], 200)
        self.assertTrue(results["stream"]["text"].endswith("data: [DONE]\n\n"))
        self.assertGreater(results["stream"]["chunks"], 1)
        for name, status in (("models", 200), ("wrong_key", 401), ("bad_body", 400), ("nowhere", 404),
                             ("deleted", 404), ("health", 200)):
            self.assertEqual(results[name].get("status"), status, (name, results[name]))
            self.assertTrue(results[name]["id"].startswith("req_"), name)

    def test_a_page_of_any_origin_talks_to_the_server(self):
        with KeyFile() as keys, Server("--cors", "*", "--api-key-file", keys) as server:
            self.check_everything(self.visit(server, "same-origin"))

    def test_a_page_of_a_named_origin_talks_to_the_server_and_another_does_not(self):
        pages = PageServer("")
        origin = f"http://127.0.0.1:{pages.server_port}"
        with KeyFile() as keys, Server("--cors", f"https://a.example,{origin}", "--api-key-file", keys) as server:
            self.check_everything(self.visit(server, "include", page_server=pages))
            for name, result in self.visit(server, "include", host="localhost").items():
                self.assertIn("Failed to fetch", result.get("error", ""), (name, result))


if __name__ == "__main__":
    if not CHROMIUM:
        print("chromium is not installed: only the reader of the Fetch standard is asked")
    unittest.main(verbosity=2)
