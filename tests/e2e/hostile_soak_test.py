"""Forty-two hostile clients of all kinds for ten minutes, against servers in memory groups of 512 MiB, 700 MiB and 2 GiB.

What the server holds stays within its plan, it is not killed, and it answers within a second when they stop. Each group has its server
and its clients; all three run side by side. Needs root and a memory controller (skipped by name where there is none).
WEIR_SOAK_SECONDS: how long instead of 600."""
import asyncio, json, os, re, resource, subprocess, sys, threading, time, unittest
import hostile_clients as hostile
from weir_server import Server

SECONDS = float(os.environ.get("WEIR_SOAK_SECONDS", "600"))
MIB = 1 << 20
LIMITS = {"512 MiB": 512 * MIB, "700 MiB": 700 * MIB, "2 GiB": 2048 * MIB}
CLIENTS = 42
V2 = os.path.exists("/sys/fs/cgroup/cgroup.controllers")
GROUPS = "/sys/fs/cgroup" if V2 else "/sys/fs/cgroup/memory"


class Group:
    """A memory group with a limit, without swap."""

    def __init__(self, name, limit):
        self.path = f"{GROUPS}/weir-soak-{os.getpid()}-{name.replace(' ', '')}"
        os.mkdir(self.path)
        for file, value in ([("memory.max", limit),
                             ("memory.swap.max", 0)] if V2 else [("memory.limit_in_bytes", limit)]):
            if os.path.exists(f"{self.path}/{file}"):
                with open(f"{self.path}/{file}", "w") as out:
                    out.write(str(value))

    def enter(self):
        with open(f"{self.path}/cgroup.procs", "w") as out:
            out.write(str(os.getpid()))

    def kills(self):
        with open(f"{self.path}/{'memory.events' if V2 else 'memory.oom_control'}") as events:
            found = dict(line.split() for line in events)
        return int(found.get("oom_kill", 0))

    def remove(self):
        for _ in range(50):
            try:
                return os.rmdir(self.path)
            except OSError:
                time.sleep(0.1)


def groups_work():
    try:
        group = Group("probe", 512 * MIB)
        group.remove()
        return True
    except OSError:
        return False


def attack(port, first, seconds):
    """Runs in a process of its own: every third hostile client from `first` on."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    clients = []

    async def run():
        acts = []
        for i in range(first, CLIENTS, 3):
            client = hostile.Client(port, f"127.0.1.{i + 1}")
            clients.append((hostile.KINDS[i % len(hostile.KINDS)], client))
            acts.append(asyncio.ensure_future(clients[-1][0](client)))
        await asyncio.sleep(seconds)
        print(json.dumps({f"{kind.__name__} {client.address}": client.done for kind, client in clients}), flush=True)
        os._exit(0)  # The kernel closes all their connections.

    asyncio.run(run())


class Watch(threading.Thread):
    """The largest resident memory of a process, sampled twice a second."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.server, self.most, self.stopping = server, 0, threading.Event()

    def run(self):
        while not self.stopping.wait(0.5):
            if self.server.process.poll() is not None:
                return
            self.most = max(self.most, self.server.resident_bytes() or 0)


@unittest.skipUnless(groups_work(), "no memory group can be made here (root and a memory controller are needed)")
class HostileSoak(unittest.TestCase):
    def soak(self, name, limit, failures):
        group = Group(name, limit)
        try:
            with Server("--log-level", "warn", before_start=group.enter) as server:
                planned = re.search(r"at most ([\d.]+) (MiB|GiB) of", self.plan_of(limit)).groups()
                plan = float(planned[0]) * (MIB if planned[1] == "MiB" else 1024 * MIB)
                watch = Watch(server)
                watch.start()
                processes = [subprocess.Popen([sys.executable, __file__, "--attack", str(server.port), str(first),
                                               str(SECONDS)],
                                              stdout=subprocess.PIPE, text=True) for first in range(3)]
                tallies = {}
                for process in processes:
                    output, _ = process.communicate(timeout=SECONDS + 120)
                    tallies.update(json.loads(output.splitlines()[-1]) if output else {})
                begin = time.time()
                status, _, body = server.request("POST", "/v1/chat/completions", {
                    "model": "weir-tiny-moe", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 4})
                waited = time.time() - begin
                watch.stopping.set()
                watch.join()
                print(f"{name}: plan {plan / MIB:.0f} MiB, most resident {watch.most / MIB:.0f} MiB, kills "
                      f"{group.kills()}, "
                      f"answer {status} in {waited:.2f} s after they stopped", flush=True)
                for client, tally in sorted(tallies.items()):
                    print(f"  {name} {client}: {tally}", flush=True)
                self.assertEqual(len(tallies), CLIENTS, "every client ran")
                self.assertIsNone(server.process.poll(), "the server runs")
                self.assertEqual(group.kills(), 0)
                self.assertLessEqual(watch.most, plan * 1.01)  # The log rounds.
                self.assertEqual(status, 200, body)
                self.assertLess(waited, 1)
                self.assertEqual(server.terminate(60), 0)
        except BaseException as failure:
            failures.append(f"{name}: {type(failure).__name__}: {failure}")
        finally:
            group.remove()

    def plan_of(self, limit):
        """What a server in such a group logs of its plan; the one that is attacked logs warnings only."""
        group = Group(f"plan{limit}", limit)
        try:
            with Server(before_start=group.enter) as server:
                return server.logged()
        finally:
            group.remove()

    def test_memory_stays_within_the_plan_and_service_comes_back(self):
        failures = []
        runs = [threading.Thread(target=self.soak, args=(name, limit, failures)) for name, limit in LIMITS.items()]
        for run in runs:
            run.start()
        for run in runs:
            run.join()
        self.assertEqual(failures, [])


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1] == "--attack":
        attack(int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))
    else:
        unittest.main()
