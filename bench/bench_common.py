"""What compare and serving share: processes, ports, the machine's load, weir-load."""
import contextlib, json, os, signal, socket, subprocess, sys, tempfile, time, urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TICK = os.sysconf("SC_CLK_TCK")
CORES = len(os.sched_getaffinity(0))


def machine_busy():
    fields = list(map(int, open("/proc/stat").readline().split()[1:]))
    return (fields[0] + fields[1] + fields[2] + fields[5] + fields[6]) / TICK


def children_busy():
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


class Other:
    """Share of the machine's cores that others took during the `with` block, in which children must have ended."""
    def __enter__(self):
        self.start = time.time(), machine_busy(), children_busy()
        return self

    def __exit__(self, *_):
        self.seconds = time.time() - self.start[0]
        others = (machine_busy() - self.start[1]) - (children_busy() - self.start[2])
        self.share = max(0.0, others / (self.seconds * os.cpu_count())) if self.seconds > 0 else 0.0


def run(command, timeout=3600):
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\nfailed with {done.returncode}:\n{(done.stderr or done.stdout)[-2000:]}")
    return done.stdout


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def fetch(port, path, body=None, timeout=600):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=timeout) as answer:
        return answer.read().decode()


@contextlib.contextmanager
def server(command, port, log=subprocess.DEVNULL):
    """Runs a server until the block ends; yields its process once /health answers 200."""
    process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    try:
        deadline = time.time() + 300
        while True:
            try:
                fetch(port, "/health", timeout=5)
                break
            except OSError:
                if process.poll() is not None or time.time() > deadline:
                    sys.exit(f"{' '.join(command)}\ndid not answer: exit status {process.poll()}")
            time.sleep(0.05)
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def load(program, port, *options):
    """The figures of one run of weir-load, as its --json says them."""
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        command = [program, "--host", "127.0.0.1", "--port", str(port), "--json", out.name, *map(str, options)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode == 2:  # 1: requests failed; the figures say so.
            sys.exit(f"{' '.join(command)}\nfailed:\n{done.stderr[-2000:]}")
        return json.load(open(out.name))


def processor():
    for line in open("/proc/cpuinfo"):
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown"


def commit():
    done = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty"], capture_output=True, text=True)
    return done.stdout.strip()


def say(text):
    print(text, file=sys.stderr, flush=True)
