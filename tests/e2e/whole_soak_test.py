"""Everything together for a long time: several models of different kinds (keys and values as numbers and as codes,
windows, states, adapters), speculation, a small cache on disk, clients of all sorts, too little memory, and servers
that are stopped and killed. Each answer, greedy or seeded, is to the bit what was answered when it was first asked for;
nothing grows, nothing fails. WEIR_SOAK_SECONDS says how long (an hour for a release): `bench/whole_soak --minutes
60`."""
import http.client, json, os, random, signal, tempfile, threading, time, unittest, warnings

import family_model
from adapter_test import write_adapter
from several_models import TINY, SeveralModels, in_threads

SECONDS = int(os.environ.get("WEIR_SOAK_SECONDS", "120"))
LIVES = max(3, SECONDS // 120)  # Servers one after another; half of them are killed.
CLIENTS = 12
GROWTH = 64 << 20
# What --models lets all of them take; not all fit at once, so that models come and go as well.
LIMIT = ("--mem-limit", "900M")
BUSY = (429, 503)


def models(folder):
    """Sections of the presets, and the names that clients ask for."""
    for seed, name in enumerate(("sea", "sky")):
        write_adapter(f"{folder}/{name}", seed)
    modules = [("lora-modules", f"{name}={folder}/{name}") for name in ("sea", "sky")]
    sections = {"numbers": (("pin", "true"), *modules), "codes": (("kv-cache", "tq4"),)}
    for name, family, *options in (("windows", "gpt_oss"), ("states", "qwen3_next"),
                                   ("both", "gemma3_text_linear_rope", ("kv-cache", "int8"))):
        sections[name] = (("model", family_model.write(family, f"{folder}/{name}")), *options)
    return sections, [*sections, "sea", "sky"]


def text(rng, words):
    return " ".join(rng.choice(("the", "small", "dog", "saw", "a", "red", "ball", "and", "ran", "home", "one",
                                "day")) for _ in range(words))


class Asked:
    """What is asked, again and again, by its number; and what was answered first."""

    def __init__(self, names):
        self.names, self.answers, self.lock = names, {}, threading.Lock()

    def body(self, number):
        """(path, body): equal numbers are equal requests. A quarter begin alike; one in eight is long."""
        rng = random.Random(number)
        name = self.names[number % len(self.names)]
        bytes_a_token = 4 if name in ("numbers", "codes", "sea", "sky") else 1
        tokens = rng.choice((40, 120, 300, 300, 600, 600, 900, 1500))
        shared = text(random.Random(number % 5), 400)[:bytes_a_token * 500] if rng.random() < 0.5 else ""
        prompt = (shared + f" {number}: " + text(rng, tokens))[:bytes_a_token * (tokens + 20)]
        body = {"model": name, "max_tokens": rng.choice((4, 24, 24, 80)), "temperature": rng.choice((0, 0, 0.9)),
                "seed": number,
                "ignore_eos": True}
        if rng.random() < 0.2:
            body["repetition_penalty"] = 1.1
        if rng.random() < 0.2:
            body["prediction"] = {"type": "content", "content": prompt[-200:]}
        if number // 7 % 3 == 0:
            half = len(prompt) // 2
            messages = [{"role": "user", "content": prompt[:half]}, {"role": "user", "content": prompt[half:]}]
            return "/v1/chat/completions", {**body, "messages": messages, "logprobs": True, "top_logprobs": 2}
        return "/v1/completions", {**body, "prompt": prompt, "logprobs": 2}

    def note(self, number, answer):
        """What is wrong with it, or None."""
        with self.lock:
            first = self.answers.setdefault(number, answer)
        return None if first == answer else (number, self.body(number), first, answer)


def gathered(path, events):
    """A streamed answer's text and log-probabilities, as the whole one has them."""
    chat = path.endswith("chat/completions")
    said, logprobs, reason = "", [], None
    for choice in (c for event in events for c in event["choices"]):
        said += (choice["delta"].get("content") or "") if chat else choice["text"]
        given = choice.get("logprobs") or {}
        logprobs += (given.get("content") or []) if chat else (given.get("token_logprobs") or [])
        reason = choice["finish_reason"] or reason
    return said, logprobs, reason


def whole(path, choice):
    if path.endswith("chat/completions"):
        return choice["message"]["content"] or "", choice["logprobs"]["content"], choice["finish_reason"]
    return choice["text"], choice["logprobs"]["token_logprobs"], choice["finish_reason"]


class Life:
    """One server: clients ask until its time is over."""

    def __init__(self, server, asked, end, numbers):
        self.server, self.asked, self.end, self.numbers = server, asked, end, numbers
        self.answered = self.left = self.busy = 0
        self.gone = False

    def client(self, seed):
        rng = random.Random(seed)
        while time.monotonic() < self.end and not self.gone:
            number = rng.randrange(self.numbers) if rng.random() < 0.9 else 10**6 + rng.randrange(10**6)
            path, body = self.asked.body(number)
            kind = rng.random()
            try:
                if kind < 0.15:
                    self.leave(path, body, rng.random() * 0.5)
                elif kind < 0.5:
                    self.take(number, path, self.stream(path, body))
                else:
                    self.take(number, path, self.ask(path, body))
            except (OSError, http.client.HTTPException):  # The server is being killed.
                if not self.gone:
                    raise

    def take(self, number, path, answer):
        if answer is None:
            self.busy += 1
            time.sleep(0.5)
            return
        self.answered += 1
        wrong = self.asked.note(number, answer)
        if wrong is not None:
            raise AssertionError(f"another answer than the first: {wrong}")

    def ask(self, path, body):
        status, headers, data = self.server.request("POST", path, body)
        return whole(path, json.loads(data)["choices"][0]) if self.fine(status, headers, data) else None

    def stream(self, path, body):
        status, headers, data = self.server.request("POST", path, {**body, "stream": True})
        if not self.fine(status, headers, data):
            return None
        events = [e for e in data.decode().split("\n\n") if e and not e.startswith(":")]
        # An overloaded server says so as an event where the stream had begun with signs of life.
        if events and '"code":"queue_timeout"' in events[-1]:
            return None
        assert events and events[-1] == "data: [DONE]", events[-1:]
        return gathered(path, [json.loads(e[len("data: "):]) for e in events[:-1]])

    @staticmethod
    def fine(status, headers, data):
        if status in BUSY:
            assert "retry-after" in headers, headers
            return False
        assert status == 200, (status, data)
        return True

    def leave(self, path, body, seconds):
        connection = self.server.connection()
        try:
            connection.request("POST", path, json.dumps({**body, "stream": True}), {"Content-Type": "application/json"})
            time.sleep(seconds)
        finally:
            connection.close()
        self.left += 1


class Soak(unittest.TestCase):
    def test_everything_together(self):
        warnings.simplefilter("ignore", ResourceWarning)  # Connections to servers that were killed.
        folder = self.enterContext(tempfile.TemporaryDirectory())
        sections, names = models(folder)
        asked = Asked(names)
        options = (*LIMIT, "--disk-cache", "1G", "--disk-cache-dir", f"{folder}/prompts", "--disk-reserve", "0",
                   "--cache-idle", "5")
        general = (("kv-memory", "12M"), ("parallel", "6"))
        figures, sizes, begin = {}, [], time.monotonic()
        for life in range(LIVES):
            with SeveralModels(*options, models=sections, general=general) as server:
                end = begin + SECONDS * (life + 1) / LIVES
                lived = Life(server, asked, end, numbers=40 * len(names))
                killed = life % 2 == 1

                def watch():
                    while time.monotonic() < end:
                        time.sleep(0.5)
                        sizes.append((life, server.resident_bytes()))
                    if killed:
                        self.add_figures(server, names, figures)
                        lived.gone = True  # With requests on their way.
                        server.process.send_signal(signal.SIGKILL)
                        server.process.wait()

                work = lambda i: watch() if i == CLIENTS else lived.client(1000 * life + i)
                self.assertEqual(in_threads(CLIENTS + 1, work), [])
                self.assertGreater(lived.answered, 0)
                if not killed:
                    self.add_figures(server, names, figures)
                    self.assertLess(server.open_files(), 128)
                    self.assertNotIn("disk cache is off", server.logged())
                    self.assertEqual(server.terminate(60), 0)
                print(f"{'killed' if killed else 'stopped'} after {time.monotonic() - begin:.0f} s: {lived.answered} "
                      f"answers, "
                      f"{lived.left} left, {lived.busy} busy, at most {max(size for l, size in sizes if l == life) >> 20} MiB", flush=True)
        print(json.dumps(figures))
        self.assertEqual(figures["disk_cache_corrupt_extents"], 0)
        for name in ("disk_cache_hit_tokens", "disk_cache_written_bytes", "preemptions", "speculative_drafts_right"):
            self.assertGreater(figures[name], 0, name)
        self.check_that_it_does_not_grow(sizes)

    def add_figures(self, server, names, figures):
        for name in names:
            status, _, page = server.request("GET", f"/metrics?model={name}")
            if status != 200:
                continue
            for line in page.decode().splitlines():
                for figure in ("disk_cache_hit_tokens", "disk_cache_written_bytes", "disk_cache_read_bytes",
                               "disk_cache_corrupt_extents",
                               "disk_cache_evicted_blocks", "disk_cache_dropped_bytes", "preemptions",
                               "speculative_drafts_right"):
                    if line.startswith(f"weir_{figure}_total"):
                        figures[figure] = figures.get(figure, 0) + float(line.rsplit(" ", 1)[1])

    def check_that_it_does_not_grow(self, sizes):
        """The most memory of each life: of none more than the limit of all, and of later ones no more than of
        earlier."""
        most = [max(size for at, size in sizes if at == life) for life in range(LIVES)]
        self.assertLess(max(most), 900 << 20)
        self.assertLess(max(most[LIVES // 2:]) - max(most[:(LIVES + 1) // 2]), GROWTH, most)


if __name__ == "__main__":
    unittest.main(verbosity=2)
