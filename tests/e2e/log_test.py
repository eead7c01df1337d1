"""A log that goes nowhere, or nowhere fast, stops nobody."""
import http.client, os, re, subprocess, tempfile, threading, unittest

from weir_server import Server, WEIR, eventually


def read(path):
    with open(path) as file:
        return file.read()


class Log(unittest.TestCase):
    def start(self, stderr, *arguments):
        process = subprocess.Popen([WEIR, "--port", "0", *arguments], stdout=subprocess.PIPE, stderr=stderr, text=True)
        for line in process.stdout:
            found = re.search(r"http://([^/\s]+):(\d+)/v1", line)
            if found:
                return process, int(found.group(2))
        raise AssertionError("it has ended")

    def ask(self, port, count):
        """So many requests on one connection, each with a line in the log."""
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        for _ in range(count):
            connection.request("GET", "/v1/models", headers={"x-request-id": "x" * 100})
            answer = connection.getresponse()
            self.assertEqual(answer.status, 200)
            answer.read()
        connection.request("GET", "/metrics")
        metrics = connection.getresponse().read().decode()
        connection.close()
        return int(re.search(r"^weir_log_lines_dropped_total (\d+)$", metrics, re.M).group(1))

    def test_a_pipe_that_nobody_reads(self):
        process, port = self.start(subprocess.PIPE)
        try:
            dropped, asked = 0, 0
            while dropped == 0 and asked < 20_000:  # A pipe and the queue hold about 3,000 lines.
                dropped = self.ask(port, 1000)
                asked += 1000
            self.assertGreater(dropped, 0, "lines are dropped, and counted")
            # A reader comes: what was kept, then how many are missing, then all that is new.
            lines, found = [], threading.Event()

            def collect():
                for line in process.stderr:
                    lines.append(line)
                    if " id=last " in line:
                        found.set()

            thread = threading.Thread(target=collect)
            thread.start()
            eventually(lambda: any("log dropped lines=" in line for line in lines), what="the notice")
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
            connection.request("GET", "/v1/models", headers={"x-request-id": "last"})
            self.assertEqual(connection.getresponse().status, 200)
            connection.close()
            self.assertTrue(found.wait(10))
            process.terminate()
            self.assertEqual(process.wait(30), 0)
            thread.join()
            told = sum(int(n) for line in lines for n in re.findall(r"log dropped lines=(\d+)", line))
            self.assertGreaterEqual(told, dropped)
            answers = sum("http answer" in line for line in lines)
            self.assertEqual(answers + told, asked + 1, "each line is there or told of")
            self.assertTrue(all(re.match(r"\d{4}-\d\d-\d\dT.* (info|warning) ", line) for line in lines),
                            "all are whole")
            self.assertIn("server stopped", lines[-1])
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
            process.stderr.close()

    def test_a_drain_does_not_wait_for_it(self):
        process, port = self.start(subprocess.PIPE)
        try:
            self.ask(port, 2000)
            process.terminate()
            self.assertEqual(process.wait(15), 0)
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
            process.stderr.close()

    def test_others_who_write_there_are_left_alone(self):
        """Standard error's flags are shared with the shell that started the server."""
        import fcntl
        reader, writer = os.pipe()
        process, port = self.start(writer)
        try:
            self.ask(port, 10)
            self.assertEqual(fcntl.fcntl(writer, fcntl.F_GETFL) & os.O_NONBLOCK, 0)
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
            os.close(reader)
            os.close(writer)

    def test_a_fifo_whose_reader_stops(self):
        with tempfile.TemporaryDirectory() as folder:
            path = folder + "/log"
            os.mkfifo(path)
            reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
            process, port = self.start(subprocess.DEVNULL, "--log-file", path)
            try:
                self.ask(port, 2000)
                # Another file takes its place, as logrotate would have it.
                os.rename(path, path + ".1")
                process.send_signal(1)
                eventually(lambda: os.path.exists(path) and self.ask(port, 1) >= 0 and
                           "path=/v1/models" in read(path), what="lines in the new file")
                process.terminate()
                self.assertEqual(process.wait(15), 0)
                self.assertIn("server stopped", read(path))
            finally:
                process.kill()
                process.wait()
                process.stdout.close()
                os.close(reader)

    def test_lines_are_there_when_the_process_is_killed(self):
        with Server() as server:
            server.get("/v1/models")
            eventually(lambda: "path=/v1/models" in server.logged(), 1, "at once, without another line")
            server.process.kill()
            server.process.wait()
            self.assertIn("path=/v1/models", server.logged())


if __name__ == "__main__":
    unittest.main(verbosity=2)
