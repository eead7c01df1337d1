"""Three servers after HAProxy, as packaging/proxies/haproxy.cfg has it: conversations stay with a server, a full one is
passed over, and one that drains loses no request. In a network of its own where the system allows, so that the file is
used as it is."""
import http.client, json, os, re, shutil, signal, socket, subprocess, sys, tempfile, threading, time, unittest

import own_network
from weir_server import SOURCE, WEIR, eventually

LOAD = os.path.join(os.path.dirname(WEIR), "weir-load")
HAPROXY = shutil.which("haproxy", path=os.environ.get("PATH", "") + ":/usr/sbin")
CONFIGURATION = os.path.join(SOURCE, "packaging/proxies/haproxy.cfg")
ADDRESSES = ("127.0.0.2", "127.0.0.3", "127.0.0.4")
CHAT = {"model": "any", "messages": [{"role": "user", "content": "Tell me a story."}], "max_tokens": 2,
        "temperature": 0}


def free_port(address):
    with socket.socket() as probe:
        probe.bind((address, 0))
        return probe.getsockname()[1]


class Cluster:
    """with Cluster() as c: c.request("/v1/models"). `edit` changes the proxy's configuration."""

    def __init__(self, *options, edit=lambda text: text):
        self.options, self.edit = options, edit

    def __enter__(self):
        self.folder, self.processes = tempfile.TemporaryDirectory(), []
        try:
            self.begin()
        except BaseException:
            self.__exit__(True)
            raise
        return self

    def begin(self):
        with open(CONFIGURATION) as file:
            text = self.edit(file.read())
        self.port, self.ports = 8080, {address: 5413 for address in ADDRESSES}
        if not OWN_NETWORK:
            self.port = free_port("127.0.0.1")
            self.ports = {address: free_port(address) for address in ADDRESSES}
            text = text.replace("127.0.0.1:8080",
                                f"127.0.0.1:{self.port}").replace("abns@weir-", f"abns@weir-{os.getpid()}-")
            for address, port in self.ports.items():
                text = text.replace(f"{address}:5413", f"{address}:{port}")
        self.servers = {address: self.start(address, WEIR, "--host", address, "--port", str(port), "--alias",
                                            f"{address},*",
                                            "--threads", "1", *self.options) for address, port in self.ports.items()}
        path = f"{self.folder.name}/haproxy.cfg"
        with open(path, "w") as file:
            file.write(text)
        self.start("proxy", HAPROXY, "-db", "-f", path)
        for address in (*ADDRESSES, None):
            eventually(lambda: self.is_ready(address), seconds=60, what=f"{address or 'the proxy'} is ready")
        eventually(lambda: set(self.answered_by({"x-session-id": f"begin-{i}"}) for i in range(30)) == set(ADDRESSES),
                   seconds=60,
                   what="the proxy knows all three")

    def __exit__(self, *failure):
        for process in self.processes:
            process.kill()
            process.wait()
        if failure[0]:
            for name in sorted(os.listdir(self.folder.name)):
                with open(f"{self.folder.name}/{name}") as file:
                    print(f"--- {name}\n{file.read()[-3000:]}")
        self.folder.cleanup()

    def start(self, name, *command):
        with open(f"{self.folder.name}/{name}.log", "w") as log:
            self.processes.append(subprocess.Popen(command, stdout=log, stderr=log))
        return self.processes[-1]

    def is_ready(self, address):
        try:
            return self.request("GET", "/ready", address=address)[0] == 200
        except OSError:
            return False

    def request(self, method, path, body=None, headers=None, address=None):
        """(status, headers, body), of the proxy or of the server at that address."""
        host, port = (address, self.ports[address]) if address else ("127.0.0.1", self.port)
        connection = http.client.HTTPConnection(host, port, timeout=120)
        data = None if body is None else json.dumps(body).encode()
        connection.request(method, path, data, {"Content-Type": "application/json", **(headers or {})})
        answer = connection.getresponse()
        result = answer.status, dict((k.lower(), v) for k, v in answer.getheaders()), answer.read()
        connection.close()
        return result

    def answered_by(self, headers):
        """The server's address, which is the model's name there; None: none answered."""
        status, _, data = self.request("POST", "/v1/chat/completions", CHAT, headers)
        return json.loads(data)["model"] if status == 200 else None

    def load(self, *options):
        path = f"{self.folder.name}/load.json"
        done = subprocess.run([LOAD, "--port", str(self.port), "--model", "any", "--json", path, *options],
                              capture_output=True, text=True)
        with open(path) as file:
            return json.load(file), done.stdout


def round_robin(text):
    changed = text.replace("balance hash var(txn.session)\n", "balance roundrobin\n")
    assert changed != text
    return changed


@unittest.skipUnless(HAPROXY, "haproxy is not installed (tools/install --proxy)")
@unittest.skipUnless(os.path.exists(LOAD), "weir-load is not built")
class Proxy(unittest.TestCase):
    def test_conversations_find_what_they_have_said_before(self):
        # 49 are no multiple of three: else the turns of a conversation would meet the same server by arithmetic.
        work = ["--sessions", "49", "--turns", "3", "--clients", "7", "--requests", "21", "--prompt-words", "90:110",
                "--output-tokens", "2:4"]
        found = {}
        for name, edit in (("round robin", round_robin), ("affinity", lambda text: text)):
            with Cluster(edit=edit) as cluster:
                figures, table = cluster.load(*work)
                self.assertEqual((figures["ok"], figures["failed"]), (147, 0), table)
                found[name] = figures["cached_tokens"]
        print("cached tokens:", found)
        self.assertGreater(found["round robin"], 0)
        self.assertGreaterEqual(found["affinity"], 2 * found["round robin"])

    def test_tokens_come_as_they_are_computed(self):
        with Cluster() as cluster:
            figures, table = cluster.load("--clients", "1", "--requests", "8", "--output-tokens", "400")
            self.assertEqual(figures["ok"], 8, table)
            self.assertLess(figures["ttft_ms"]["p50"], figures["e2e_ms"]["p50"] / 2, table)

    def test_by_the_session_else_by_the_key_and_full_servers_are_passed_over(self):
        with Cluster("--queue", "1", "--parallel", "1") as cluster:
            for header in ("x-session-id", "Authorization"):
                chosen = {}
                for name in (f"Bearer {i}" for i in range(12)):
                    servers = {cluster.answered_by({header: name}) for _ in range(3)}
                    self.assertEqual(len(servers), 1, f"{header} {name}")
                    chosen[name] = servers.pop()
                self.assertEqual(len(set(chosen.values())), 3, f"{header}: all on {set(chosen.values())}")
            # A key does not matter beside a session.
            self.assertEqual(len({cluster.answered_by({"x-session-id": "s",
                                                       "Authorization": f"Bearer {i}"}) for i in range(8)}), 1)

            # Its place and its queue are taken: another answers, at once.
            home = cluster.answered_by({"x-session-id": "s"})
            self.occupy(cluster, home)
            self.assertEqual(cluster.request("POST", "/v1/chat/completions", CHAT, address=home)[0], 429)
            self.assertNotIn(cluster.answered_by({"x-session-id": "s"}), (home, None))
            # Where all are full the client hears what they say.
            for address in ADDRESSES:
                if address != home:
                    self.occupy(cluster, address)
            status, headers, body = cluster.request("POST", "/v1/chat/completions", CHAT, {"x-session-id": "s"})
            self.assertEqual((status, "retry-after" in headers, "x-weir-status" in headers), (429, True, False), body)

    def occupy(self, cluster, address):
        """With a stream that goes on until the test ends."""
        connection = http.client.HTTPConnection(address, cluster.ports[address], timeout=120)
        self.addCleanup(connection.close)
        connection.request("POST", "/v1/chat/completions",
                           json.dumps({**CHAT, "max_tokens": 1900, "ignore_eos": True, "stream": True}),
                           {"Content-Type": "application/json"})
        self.assertEqual(connection.getresponse().status, 200)

    def test_a_server_that_drains_loses_no_request(self):
        with Cluster("--drain-delay", "2") as cluster:
            result = []
            load = threading.Thread(target=lambda: result.append(cluster.load(
                "--sessions", "120", "--turns", "4", "--clients", "8", "--requests", "250", "--prompt-words", "6:12",
                "--output-tokens", "2:6")))
            load.start()
            leaving = ADDRESSES[1]

            def answers(address):
                page = cluster.request("GET", "/metrics", address=address)[2].decode()
                return int(re.search(r'^weir_http_answers_total\{status="2xx"\} (\d+)', page, re.M).group(1))

            eventually(lambda: answers(leaving) > 100, seconds=120, what="it has answered some")
            process = cluster.servers[leaving]
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(60), 0)
            self.assertTrue(load.is_alive(), "the load was over before the server had gone")
            load.join()
            figures, table = result[0]
            print(f"of 2,000 requests {figures['ok']} were answered while one of three servers left\n{table}")
            self.assertEqual((figures["ok"], figures["failed"], figures["refused"]), (2000, 0, 0), table)


if __name__ == "__main__":
    OWN_NETWORK = own_network.enter()
    print("a network of its own" if OWN_NETWORK else "the system allows no network of its own: other ports are taken")
    unittest.main(verbosity=2)
