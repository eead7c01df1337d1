"""Starts the real `weir` binary for a test, talks to it over raw HTTP, stops it. Standard library only."""
import http.client, json, os, re, signal, socket, subprocess, tempfile, time

WEIR = os.environ["WEIR_BINARY"]
SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


# What lies in the cache of the machine that tests is served by no test.
NO_MODELS = {"HF_HUB_CACHE": os.path.join(tempfile.gettempdir(), "weir-no-models")}


def knows_localhost():
    """Whether the name resolves: a system without /etc/hosts does not know it."""
    try:
        return bool(socket.getaddrinfo("localhost", None))
    except OSError:
        return False


class Server:
    """with Server("--compute", "exact") as s: s.post("/v1/chat/completions", {...})"""

    def __init__(self, *arguments, environment=None, before_start=None):
        """`before_start` is called in the new process, before it is weir's."""
        self.arguments = arguments
        self.before_start = before_start
        self.environment = {**os.environ, **NO_MODELS, **(environment or {})}

    def __enter__(self):
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen([WEIR, "--port", "0", *self.arguments], stdout=subprocess.PIPE,
                                        stderr=self.log, text=True, env=self.environment,
                                        preexec_fn=self.before_start)
        for line in self.process.stdout:
            found = re.search(r"https?://([^/\s]+):(\d+)/v1", line)
            if found:
                self.host, self.port = found.group(1).strip("[]"), int(found.group(2))
                return self
        raise AssertionError(f"weir ended with {self.process.wait()} before it was ready:\n{self.logged()}")

    def __exit__(self, *failure):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
        if failure[0] is not None:
            print(self.logged()[-8000:])
        self.process.stdout.close()
        self.log.close()

    def logged(self):
        """What the log says so far. The server shares the file's offset, which therefore stays where it is."""
        return os.pread(self.log.fileno(), os.fstat(self.log.fileno()).st_size, 0).decode()

    def terminate(self, timeout=30):
        """SIGTERM, then the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout)

    def connection(self, timeout=120):
        return http.client.HTTPConnection(self.host, self.port, timeout=timeout)

    def socket(self, timeout=120):
        return socket.create_connection((self.host, self.port), timeout=timeout)

    def request(self, method, path, body=None, headers=None):
        """(status, headers, body bytes)"""
        connection = self.connection()
        data = json.dumps(body).encode() if isinstance(body, (dict, list)) else body
        all_headers = {"Content-Type": "application/json"} if data is not None else {}
        connection.request(method, path, data, {**all_headers, **(headers or {})})
        answer = connection.getresponse()
        result = answer.status, dict((k.lower(), v) for k, v in answer.getheaders()), answer.read()
        connection.close()
        return result

    def post(self, path, body, expect=200):
        status, _, data = self.request("POST", path, body)
        assert status == expect, (status, data)
        return json.loads(data)

    def get(self, path, expect=200):
        status, _, data = self.request("GET", path)
        assert status == expect, (status, data)
        return data

    def stream(self, path, body):
        """The parsed events of a streamed answer, `[DONE]` checked and left out."""
        status, headers, data = self.request("POST", path, {**body, "stream": True})
        assert status == 200, (status, data)
        assert headers["content-type"].startswith("text/event-stream"), headers
        events = [e for e in data.decode().split("\n\n") if e and not e.startswith(":")]
        assert events[-1] == "data: [DONE]", events[-1:]
        return [json.loads(e[len("data: "):]) for e in events[:-1]]

    def metric(self, name):
        for line in self.get("/metrics").decode().splitlines():
            if line.startswith(name) and line[len(name)] in " {":
                return float(line.rsplit(" ", 1)[1])
        raise KeyError(name)

    def is_sanitised(self):
        with open(f"/proc/{self.process.pid}/maps") as maps:
            return any("libasan" in line or "libtsan" in line for line in maps)

    def resident_bytes(self):
        with open(f"/proc/{self.process.pid}/status") as status:
            for line in status:
                if line.startswith("VmRSS:"):
                    return int(line.split()[1]) << 10

    def open_files(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))


def text_of(events):
    return "".join(c["delta"].get("content") or "" for e in events for c in e["choices"])


def eventually(check, seconds=10, what=""):
    """Waits until check() holds."""
    end = time.time() + seconds
    while time.time() < end:
        if check():
            return
        time.sleep(0.02)
    raise AssertionError(f"did not come true in {seconds} s: {what}")
