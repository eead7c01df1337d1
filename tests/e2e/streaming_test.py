"""Experts from disk, on bad days too: answers are those of the resident server or a clean error, and the server goes
on."""
import errno, json, mmap, os, re, shutil, struct, subprocess, tempfile, threading, time, unittest

import weir_server
from weir_server import SOURCE, Server, eventually, text_of

FOLDER = f"{SOURCE}/models/weir-tiny-moe"
SMALLEST = "900K"
INJECT = os.environ.get("WEIR_INJECT_LIBRARY")
PATH = "/v1/chat/completions"
STORY = ("The old man and the girl walked along the river, and he told her about the ships, the storms and the islands "
         "that he had seen when he was young. ")


def bodies():
    """Short and long prompts, some of which begin alike."""
    prompts = ["Tell me a story about the sea.", "Why is the sky blue?"]
    prompts += [STORY * 8 + f"What happened on day {day}?" for day in (1, 2)] + [STORY * 4, "Count: 1 2 3"]
    return [{"model": "default", "messages": [{"role": "user", "content": prompt}], "max_tokens": 12, "temperature": 0,
             "ignore_eos": True} for prompt in prompts]


def answers(server, streamed, rounds=1):
    """Of all bodies at once, in order."""
    found = [None] * (len(bodies()) * rounds)

    def run(i):
        body = bodies()[i % len(bodies())]
        if streamed:
            found[i] = text_of(server.stream(PATH, body))
        else:
            found[i] = server.post(PATH, body)["choices"][0]["message"]["content"]

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(found))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def streaming(*arguments, folder=FOLDER, memory="2M", environment=None):
    return Server("--model", folder, "--stream-experts", "--expert-memory", memory, *arguments, environment=environment)


def sample(server, name, label):
    for line in server.get("/metrics").decode().splitlines():
        if line.startswith(name + "{") and label in line:
            return float(line.rsplit(" ", 1)[1])
    raise KeyError((name, label))


class Faults:
    """What inject_reads.c does from now on."""
    KINDS = {"none": 0, "error": 1, "short": 2, "end": 3, "hold": 4}
    LAYOUT = struct.Struct("=iiqq")

    def __init__(self, folder):
        self.path = f"{folder}/control"
        with open(self.path, "wb") as file:
            file.write(bytes(self.LAYOUT.size))
        with open(self.path, "r+b") as file:
            self.memory = mmap.mmap(file.fileno(), self.LAYOUT.size)
        self.environment = {"LD_PRELOAD": INJECT, "WEIR_INJECT": self.path}

    def set(self, kind, left=-1, error=errno.EIO):
        # The kind comes last: until then the rest is not looked at.
        self.memory[0:4] = struct.pack("=i", 0)
        self.memory[4:24] = struct.pack("=iqq", error, left, 0)
        self.memory[0:4] = struct.pack("=i", self.KINDS[kind])

    def struck(self):
        return self.LAYOUT.unpack(self.memory[:])[3]


class Streaming(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with Server("--model", FOLDER) as server:
            cls.expected = answers(server, False)

    def assert_right(self, server, streamed=False):
        self.assertEqual(answers(server, streamed), self.expected)

    def assert_idle(self, server):
        eventually(lambda: server.metric("weir_requests_running") == 0 and server.metric("weir_requests_waiting") == 0,
                   what="no request is left")
        eventually(lambda: server.metric("weir_kv_usage") == 0, what="no page is held")

    def assert_logged(self, server, pattern, seconds=10):
        eventually(lambda: re.search(pattern, server.logged()), seconds, pattern)

    def test_answers_are_those_of_the_resident_server(self):
        for memory in ("2M", SMALLEST):
            with self.subTest(memory), streaming(memory=memory) as server:
                self.assert_right(server)
                self.assertGreater(sample(server, "weir_moe_disk_read_bytes_total", '"demand"'), 1 << 20)
                self.assertGreater(sample(server, "weir_moe_disk_read_bytes_total", '"prefill"'), 1 << 20)
                # Again: prompts are in the prefix cache, by halves at least.
                self.assertEqual(answers(server, True, rounds=2), self.expected * 2)
                self.assertGreater(server.metric("weir_prefix_cache_hits_total"), 500)
                planned = sample(server, "weir_moe_slots", '"planned"')
                self.assertLess(planned, 8 * 32)
                self.assertLessEqual(sample(server, "weir_moe_slots", '"used"'), planned)
                self.assertEqual(server.metric("weir_moe_failed_experts_total"), 0)
                self.assertRegex(server.logged(),
                                 r"experts \d+ of \d+ in memory \(\d+ %\), .* \((io_uring|pread x \d+), \S+.*\)")
                self.assert_idle(server)

    def test_places_without_o_direct_are_read_through_the_page_cache(self):
        if not os.access("/dev/shm", os.W_OK):
            self.skipTest("no /dev/shm")
        with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
            shutil.copytree(FOLDER, folder, dirs_exist_ok=True)
            with streaming(folder=folder) as server:
                self.assertRegex(server.logged(), r"experts .* \([^()]*, (buffered|O_DIRECT).*\)")
                mode = re.search(r'weir_moe_io_mode\{mode="([^"]*)"\}', server.get("/metrics").decode())[1]
                self.assertIn(mode, server.logged())
                self.assert_right(server)
        with streaming("--ssd-io", "buffered") as server:
            self.assertRegex(server.logged(), r"experts .* \(pread x \d+, buffered.*\)")
            self.assert_right(server)

    def test_where_io_uring_is_refused_threads_read(self):
        with refusing_io_uring(), streaming() as server:
            self.assertRegex(server.logged(), r"io_uring refused, reading by threads: .*Operation not permitted")
            self.assertRegex(server.logged(), r"experts .* \(pread x \d+, .*\)")
            self.assert_right(server)


    def test_info_plans_what_a_server_then_does(self):
        with tempfile.TemporaryDirectory() as parent:
            folder = f"{parent}/model"
            shutil.copytree(FOLDER, folder)
            arguments = ["--model", folder, "--stream-experts", "--expert-memory", "12M"]
            planned = []
            for bundle in (False, True):
                if bundle:
                    subprocess.run([weir_server.WEIR, "pack", "--model", folder], check=True, capture_output=True)
                shown = subprocess.run([weir_server.WEIR, "info", *arguments], check=True, capture_output=True,
                                       text=True).stdout
                summary = re.search(r"^experts: (\d+ of \d+ in memory .*)$", shown, re.M)[1]
                source = re.search(r"^read from (.*)$", shown, re.M)[1]
                if bundle:
                    self.assertEqual(source, f"{folder}/weir-experts.bundle")
                else:
                    self.assertRegex(source, r"no bundle, 'weir pack' would write one of [\d.]+ MiB")
                with streaming(folder=folder, memory="12M") as server:
                    self.assertIn(f"experts {summary} (", server.logged())
                    self.assertIn(f"from {source})", server.logged())
                    planned.append(sample(server, "weir_moe_slots", '"planned"'))
                    self.assertEqual(planned[-1], int(summary.split()[0]))
            self.assertGreater(planned[1], planned[0], "a bundle needs fewer buffers")


@unittest.skipUnless(INJECT, "inject_reads is not built: a sanitizer's runtime must be the first library")
class BadDisk(Streaming):
    test_answers_are_those_of_the_resident_server = None
    test_places_without_o_direct_are_read_through_the_page_cache = None
    test_where_io_uring_is_refused_threads_read = None
    test_info_plans_what_a_server_then_does = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = f"{folder.name}/weir-tiny-moe"
        shutil.copytree(FOLDER, self.folder)
        self.weights = f"{self.folder}/model.safetensors"
        self.faults = Faults(folder.name)

    def serve(self, memory=SMALLEST, *arguments):
        return streaming("--ssd-io", "pread", *arguments, folder=self.folder, memory=memory,
                         environment=self.faults.environment)

    def assert_failed(self, error, found):
        self.assertRegex(error["message"],
                         re.escape(self.weights) + r": expected (\d+ bytes at offset \d+|the file that was opened), "
                                                   r"found: " + found)

    def test_what_a_second_attempt_cures_nobody_notices(self):
        with self.serve() as server:
            for kind, left, error, metric, label in (
                    ("short", -1, 0, "weir_moe_short_reads_total", None),
                    ("error", 1, errno.EIO, "weir_moe_io_errors_total", '"EIO"'),
                    ("error", 2, errno.EINTR, "weir_moe_io_errors_total", '"EAGAIN"'),
                    ("end", 1, 0, "weir_moe_short_reads_total", None),
                    ("error", 1, errno.EINVAL, "weir_moe_io_errors_total", '"EINVAL"')):
                with self.subTest(kind=kind, error=error):
                    self.faults.set(kind, left, error)
                    self.assert_right(server, streamed=kind == "short")
                    self.assertGreater(self.faults.struck(), 50 if left < 0 else 0)
                    count = sample(server, metric, label) if label else server.metric(metric)
                    self.assertGreater(count, 0)
            self.faults.set("none")
            self.assertEqual(server.metric("weir_moe_read_failures_total"), 0)

    def test_what_cannot_be_read_fails_who_needs_it_and_leaves_nothing(self):
        with self.serve() as server:
            self.assert_right(server)
            self.faults.set("error")
            status, headers, data = server.request("POST", PATH, bodies()[0])
            self.assertEqual(status, 503, data)
            self.assertIn("retry-after", headers)
            self.assert_failed(json.loads(data)["error"], "Input/output error")
            self.assert_logged(server, r"ssd read failed class=\w+ .*model\.safetensors: expected \d+ bytes at offset")
            self.fail_while_it_streams(server)
            self.assertEqual(server.request("GET", "/health")[0], 200)
            self.fail_many(server, 20)
            before = server.resident_bytes()
            self.fail_many(server, 200)
            self.assertLess(server.resident_bytes() - before, 8 << 20)
            self.assert_idle(server)
            self.faults.set("none")
            self.assert_right(server)
            self.assert_idle(server)

    def fail_while_it_streams(self, server):
        self.faults.set("none")
        connection = server.connection()
        connection.request("POST", PATH, json.dumps({**bodies()[0], "max_tokens": 1900, "stream": True}),
                           {"Content-Type": "application/json"})
        answer = connection.getresponse()
        self.assertEqual(answer.status, 200)
        self.assertTrue(answer.readline().startswith(b"data: {"))
        self.faults.set("error")
        events = [e for e in answer.read().decode().split("\n\n") if e.strip()]
        self.assert_failed(json.loads(events[-1].removeprefix("data: "))["error"], "Input/output error")
        connection.close()

    def fail_many(self, server, count):
        statuses = []

        def run():
            for _ in range(count // 4):
                statuses.append(server.request("POST", PATH, bodies()[1])[0])

        threads = [threading.Thread(target=run) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(statuses, [503] * count)

    def test_a_disk_that_stops_for_seconds_is_waited_for(self):
        with self.serve() as server:
            self.assert_right(server)
            self.faults.set("hold")
            found = []
            thread = threading.Thread(target=lambda: found.append(answers(server, True)))
            thread.start()
            self.assert_logged(server, r"ssd no read has completed for_s=5\.\d+ in_flight=\d+", 20)
            self.assertEqual(server.request("GET", "/health")[0], 200)
            self.assertEqual(found, [])
            self.faults.set("none")
            thread.join()
            self.assertEqual(found, [self.expected])
            self.assert_logged(server, r"ssd reads complete again after_s=")
            self.assertEqual(server.metric("weir_moe_disk_stalls_total"), 1)
            self.assertEqual(server.metric("weir_moe_failed_experts_total"), 0)

    def test_a_replaced_file_is_read_on_as_it_was(self):
        with self.serve() as server:
            self.assert_right(server)
            with open(f"{self.folder}/other", "wb") as other:
                other.write(bytes(os.path.getsize(self.weights)))
            os.replace(f"{self.folder}/other", self.weights)
            self.faults.set("error", 1)  # Else it is looked at every ten seconds only.
            self.assert_right(server)
            self.assert_logged(server, r"ssd file changed since it was opened file=\S+model\.safetensors how=replaced")
            self.assert_right(server, streamed=True)

    def test_a_file_written_in_place_is_read_no_more(self):
        before = os.stat(self.weights)
        with self.serve() as server:
            self.assert_right(server)
            with open(self.weights, "r+b") as file:
                first = file.read(1)
                file.seek(0)
                file.write(first)
            self.faults.set("error", 1)  # Else it is looked at every ten seconds only.
            for body in bodies():
                status, _, data = server.request("POST", PATH, body)
                self.assertEqual(status, 503, data)
                self.assert_failed(json.loads(data)["error"],
                                   rf"a file of {before.st_size} bytes \(.*\) that was written to since; a restart "
                                   rf"reads it anew")
            self.assert_logged(server, r"ssd file changed since it was opened file=\S+model\.safetensors how=modified")
            self.assertGreater(sample(server, "weir_moe_io_errors_total", '"changed"'), 0)
            self.assert_idle(server)
            os.utime(self.weights, ns=(before.st_atime_ns, before.st_mtime_ns))  # It is what it was.
            self.assert_right(server)

    def test_a_truncated_file_gives_errors_and_never_a_wrong_token(self):
        before = os.stat(self.weights)
        size = before.st_size
        with self.serve() as server:
            self.assert_right(server)
            os.truncate(self.weights, size // 16)
            for body in bodies():
                status, _, data = server.request("POST", PATH, body)
                self.assertEqual(status, 503, data)
                self.assert_failed(json.loads(data)["error"],
                                   rf"a file of {size // 16} bytes \({size} when it was opened\)")
            self.assert_logged(server, r"how=truncated")
            self.assert_idle(server)
            # Somebody puts the bytes back: others may have been there meanwhile, for all that a new time tells.
            shutil.copyfile(f"{FOLDER}/model.safetensors", self.weights)
            self.assertEqual(server.request("POST", PATH, bodies()[0])[0], 503)
            os.utime(self.weights, ns=(before.st_atime_ns, before.st_mtime_ns))
            self.assert_right(server)


class refusing_io_uring:
    """Servers that start inside are refused io_uring, as containers do."""

    def __enter__(self):
        folder = self.folder = tempfile.TemporaryDirectory()
        launcher = f"{folder.name}/weir"
        with open(launcher, "w") as file:
            file.write(LAUNCHER.format(binary=weir_server.WEIR))
        os.chmod(launcher, 0o755)
        self.binary, weir_server.WEIR = weir_server.WEIR, launcher

    def __exit__(self, *failure):
        weir_server.WEIR = self.binary
        self.folder.cleanup()


# A seccomp filter of four instructions: EPERM for io_uring_setup (425 on every machine), all else allowed.
LAUNCHER = """#!/usr/bin/env python3
import ctypes, os, struct, sys
code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *i) for i in
    ((0x20, 0, 0, 0), (0x15, 0, 1, 425), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7fff0000))))
program = ctypes.create_string_buffer(struct.pack("@HP", 4, ctypes.addressof(code)))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0  # PR_SET_NO_NEW_PRIVS
assert libc.prctl(22, 2, program, 0, 0) == 0, ctypes.get_errno()  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER
os.execv("{binary}", ["weir"] + sys.argv[1:])
"""


if __name__ == "__main__":
    unittest.main(verbosity=2)
