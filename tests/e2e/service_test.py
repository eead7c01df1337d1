"""What systemd and the server tell each other: that it is ready, alive, rereads and ends; sockets that it listens on
already; and the unit, as systemd's own tools see it and as the kernel enforces it."""
import ctypes, ctypes.util, http.client, json, os, re, shutil, signal, socket, subprocess, tempfile, threading, time, unittest

from weir_server import SOURCE, WEIR, Server, eventually

CHAT = {"model": "weir-tiny-moe", "messages": [{"role": "user", "content": "Tell me a story."}], "max_tokens": 4,
        "temperature": 0}
UNITS = os.path.join(SOURCE, "packaging/systemd")


class Manager:
    """The socket that NOTIFY_SOCKET names, and what has been said there: a state a message."""

    def __init__(self, folder):
        self.path = folder + "/notify"
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.socket.settimeout(0.01)
        self.states = []

    def hear(self):
        while True:
            try:
                self.states.append(self.socket.recv(4096).decode())
            except TimeoutError:
                return self.states

    def has_heard(self, text):
        return any(text in state for state in self.hear())

    def heard(self, line):
        return sum(line in state.split("\n") for state in self.hear())


class Notify(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.manager = Manager(self.folder.name)
        self.addCleanup(self.manager.socket.close)
        self.environment = {"NOTIFY_SOCKET": self.manager.path, "WATCHDOG_USEC": "400000"}

    def test_a_service_is_ready_alive_rereads_and_ends(self):
        with Server(environment=self.environment) as server:
            eventually(lambda: self.manager.heard("WATCHDOG=1") >= 3, what="alive though it is idle")
            states = self.manager.hear()
            self.assertIn("STATUS=Loading the model", states[0])
            ready = next(i for i, state in enumerate(states) if "READY=1" in state.split("\n"))
            self.assertIn("STATUS=Serving weir-tiny-moe", states[ready])
            self.assertNotIn("WATCHDOG=1", states[:ready])
            server.post("/v1/chat/completions", CHAT)
            server.process.send_signal(signal.SIGHUP)
            eventually(lambda: self.manager.heard("RELOADING=1") == 1 and self.manager.heard("READY=1") == 2,
                       what="it has reread")
            self.assertTrue(self.manager.has_heard("MONOTONIC_USEC="))
            self.assertEqual(server.terminate(), 0)
            eventually(lambda: self.manager.heard("STOPPING=1") == 1, what="it has ended")
            self.assertTrue(self.manager.has_heard("EXTEND_TIMEOUT_USEC=38000000"))  # 25 s of drain, 3 s, 10 s.

    def test_one_that_computes_is_alive_and_one_whose_disk_hangs_is_not(self):
        library = os.environ.get("WEIR_INJECT_LIBRARY")
        if not library:
            self.skipTest("there is no library that holds reads in this build")
        control = self.folder.name + "/control"
        with open(control, "wb") as file:
            file.write(bytes(24))
        environment = {**self.environment, "LD_PRELOAD": library, "WEIR_INJECT": control}
        options = ("--model", SOURCE + "/models/weir-tiny-moe", "--stream-experts", "--expert-memory", "12M",
                   "--ssd-io", "pread")
        with Server(*options, environment=environment) as server:
            eventually(lambda: self.manager.heard("WATCHDOG=1") >= 2, what="alive though it is idle")
            busy = threading.Thread(target=lambda: server.post("/v1/chat/completions",
                                                               {**CHAT, "max_tokens": 300, "ignore_eos": True}))
            busy.start()
            before = self.manager.heard("WATCHDOG=1")
            eventually(lambda: self.manager.heard("WATCHDOG=1") >= before + 2, what="alive while it computes")
            with open(control, "r+b") as file:  # enum Kind of inject_reads.c: hold all reads.
                file.write((4).to_bytes(4, "little") + (0).to_bytes(4,
                                                                    "little") + (-1).to_bytes(8, "little", signed=True))
            held = threading.Thread(target=lambda: server.post("/v1/chat/completions",
                                                               CHAT))  # The other may be through.
            held.start()
            eventually(lambda: "engine does not move" in server.logged(), seconds=30, what="the log says so")
            silent = self.manager.heard("WATCHDOG=1")
            time.sleep(1)
            self.assertEqual(self.manager.heard("WATCHDOG=1"), silent)
            with open(control, "r+b") as file:
                file.write(bytes(4))
            eventually(lambda: self.manager.heard("WATCHDOG=1") > silent, what="alive again")
            busy.join()
            held.join()

    def test_what_is_no_address_ends_the_start(self):
        done = subprocess.run([WEIR, "--port", "0"], env={**os.environ, "NOTIFY_SOCKET": "nowhere"},
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 1)
        self.assertIn("NOTIFY_SOCKET: expected a path or @NAME; found 'nowhere'", done.stderr)


class Sockets(unittest.TestCase):
    def start(self, listeners, folder):
        """A server that has these as its file descriptors from 3 on, as LISTEN_FDS says."""
        count = len(listeners)
        script = f'export LISTEN_PID=$$ LISTEN_FDS={count}; exec "$@"'
        kept = [os.dup(listener.fileno()) for listener in listeners]

        def place():  # Out of the way first: one of them may be 3 already.
            far = [os.dup2(fd, 200 + i) for i, fd in enumerate(kept)]
            for i, fd in enumerate(far):
                os.dup2(fd, 3 + i, inheritable=True)
                os.close(fd)

        log = open(f"{folder}/log", "a")
        process = subprocess.Popen(["/bin/sh", "-c", script, "sh", WEIR], stdout=log, stderr=log, preexec_fn=place,
                                   close_fds=False)
        for fd in kept:
            os.close(fd)
        log.close()
        return process

    def get(self, connection, path="/v1/models"):
        connection.request("GET", path)
        answer = connection.getresponse()
        result = answer.status, answer.read()
        connection.close()
        return result

    def test_it_serves_on_what_is_passed_and_no_connection_is_refused_while_it_restarts(self):
        with tempfile.TemporaryDirectory() as folder:
            tcp = socket.create_server(("127.0.0.1", 0))
            unix = socket.socket(socket.AF_UNIX)
            unix.bind(folder + "/socket")
            unix.listen(16)
            address, port = tcp.getsockname()
            process = self.start([tcp, unix], folder)
            try:
                # At once, and answered when it has loaded.
                self.assertEqual(self.get(http.client.HTTPConnection(address, port, timeout=60))[0], 200)
                with open(f"{folder}/log") as file:
                    log = file.read()
                self.assertIn("server takes sockets=2 of the service manager", log)
                self.assertIn(f"at http://127.0.0.1:{port}", log)
                over_unix = http.client.HTTPConnection("localhost", timeout=10)
                over_unix.sock = socket.socket(socket.AF_UNIX)
                over_unix.sock.connect(folder + "/socket")
                self.assertEqual(self.get(over_unix)[0], 200)

                process.send_signal(signal.SIGTERM)
                self.assertEqual(process.wait(60), 0)
                waiting = http.client.HTTPConnection(address, port, timeout=60)
                waiting.connect()  # Nobody is there: the manager's socket holds it.
                process = self.start([tcp, unix], folder)
                self.assertEqual(self.get(waiting)[0], 200)
                self.assertEqual(self.get(http.client.HTTPConnection(address, port, timeout=60), "/ready")[0], 200)
            finally:
                process.kill()
                process.wait()
                tcp.close()
                unix.close()


def seccomp_of(names, error):
    """A call for the new process that allows these system calls only; the others fail with `error`."""
    library = ctypes.CDLL(ctypes.util.find_library("seccomp"))
    library.seccomp_init.restype = ctypes.c_void_p
    allow = 0x7fff0000
    context = library.seccomp_init(0x00050000 | error)
    for name in names:
        number = library.seccomp_syscall_resolve_name(name.encode())
        if number >= 0:  # Others are of other architectures.
            assert library.seccomp_rule_add(ctypes.c_void_p(context), allow, number, 0) == 0, name

    def load():
        # PR_SET_NO_NEW_PRIVS is set by the library.
        if library.seccomp_load(ctypes.c_void_p(context)) != 0:
            os._exit(97)
    return load


def filter_of_unit():
    """The system calls that the lines SystemCallFilter= leave, group by group as systemd expands them."""
    def expand(name):
        if not name.startswith("@"):
            return {name}
        out = subprocess.run(["systemd-analyze", "syscall-filter", name], capture_output=True, text=True,
                             check=True).stdout
        lines = [line.strip() for line in out.splitlines()[1:]]
        return set().union(*(expand(line) for line in lines if line and not line.startswith("#")))

    allowed = set()
    with open(f"{UNITS}/weir.service") as file:
        for value in re.findall(r"^SystemCallFilter=(.*)$", file.read(), re.M):
            names = set().union(*(expand(name) for name in value.lstrip("~").split()))
            allowed = allowed - names if value.startswith("~") else allowed | names
    return allowed


class Confined(unittest.TestCase):
    def serve(self, names):
        streamed = ("--model", SOURCE + "/models/weir-tiny-moe", "--stream-experts", "--expert-memory", "12M")
        for options in ((), streamed):
            with Server(*options, before_start=seccomp_of(names, error=1)) as server:
                if server.is_sanitised():
                    self.skipTest("a sanitizer's runtime makes other calls")
                answer = server.post("/v1/chat/completions", CHAT)
                self.assertEqual(answer["usage"]["completion_tokens"], 4)
                if options:
                    self.assertIn("io_uring", server.logged())
                self.assertEqual(server.terminate(), 0)

    @unittest.skipUnless(shutil.which("systemd-analyze") and ctypes.util.find_library("seccomp"),
                         "systemd or libseccomp is not installed")
    def test_what_the_unit_allows_is_enough(self):
        names = filter_of_unit()
        self.assertTrue({"io_uring_setup", "arch_prctl", "read"} <= names)
        self.assertFalse({"mount", "ptrace", "chroot", "setuid"} & names)
        self.serve(names)

    @unittest.skipUnless(ctypes.util.find_library("seccomp"), "libseccomp is not installed")
    def test_what_the_containers_profile_allows_is_enough(self):
        with open(os.path.join(SOURCE, "packaging/container/seccomp.json")) as file:
            profile = json.load(file)
        self.assertEqual((profile["defaultAction"], profile["defaultErrnoRet"]), ("SCMP_ACT_ERRNO", 1))
        names = {name for rule in profile["syscalls"] for name in rule["names"]}
        self.assertTrue({"io_uring_setup", "io_uring_enter", "io_uring_register"} <= names)
        self.assertFalse({"mount", "ptrace", "bpf", "unshare", "setns", "keyctl", "init_module", "chroot"} & names)
        self.serve(names)


@unittest.skipUnless(shutil.which("systemd-analyze"), "systemd is not installed")
class Units(unittest.TestCase):
    def setUp(self):
        # As after installation: the tool looks whether what is started exists.
        self.root = tempfile.TemporaryDirectory()
        self.addCleanup(self.root.cleanup)
        self.folder = self.root.name + "/units"
        shutil.copytree(UNITS, self.folder)
        with open(self.folder + "/weir.service") as file:
            text = file.read()
        self.assertIn("ExecStart=/usr/bin/weir ", text)
        with open(self.folder + "/weir.service", "w") as file:
            # Neither does it find a page that is not installed.
            file.write(re.sub(r"^Documentation=.*\n", "", text.replace("/usr/bin/weir", WEIR), flags=re.M))

    def test_are_sound(self):
        done = subprocess.run(["systemd-analyze", "verify", "--man=no", f"{self.folder}/weir.service",
                               f"{self.folder}/weir.socket"],
                              capture_output=True, text=True,
                              env={**os.environ, "SYSTEMD_UNIT_PATH": self.folder + ":"})
        complaints = [line for line in (done.stdout + done.stderr).splitlines() if "weir" in line]
        self.assertEqual((done.returncode, complaints), (0, []), done.stderr)

    def test_leave_little_to_an_intruder(self):
        done = subprocess.run(["systemd-analyze", "security", "--offline=true", "--threshold=25", "--no-pager",
                               f"{self.folder}/weir.service"],
                              capture_output=True, text=True)
        exposure = re.search(r"Overall exposure level for weir\.service: ([0-9.]+)", done.stdout)
        self.assertTrue(exposure, done.stdout + done.stderr)
        print("exposure of the service:", exposure.group(1))
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertLessEqual(float(exposure.group(1)), 2.5)


if __name__ == "__main__":
    unittest.main(verbosity=2)
