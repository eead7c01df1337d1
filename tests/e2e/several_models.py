"""Servers of several models, for the tests of these: one small model in three arithmetics, which are three models to a
client."""
import json, os, re, tempfile, threading, time

from weir_server import SOURCE, Server

TINY = f"{SOURCE}/models/weir-tiny-moe"
# What each adds to the options of all.
MODELS = {"fast": (), "exact": (("compute", "exact"),), "wide": (("kv-cache", "f32"),)}
ALL = (("model", TINY), ("kv-memory", "64M"))
# Two of the models fit beside the process, three do not: the test of traffic holds that against what the server says.
ROOM_FOR_TWO = ("--queue", "64", "--mem-limit", "600M")
PROMPTS = ["Once upon a time", "The capital of France", "def add(a, b):", "I like to", "Numbers: 1, 2, 3,"]


def write_presets(path, models, general=(), **own):
    """`own`: lines of single sections."""
    with open(path, "w") as file:
        file.write("".join(["[*]\n", *(f"{key} = {value}\n" for key, value in (*ALL, *general))]))
        for name, options in models.items():
            lines = (*options, *own.get(name, ()))
            file.write(f"[{name}]\n" + "".join(f"{key} = {value}\n" for key, value in lines))


class SeveralModels(Server):
    """with SeveralModels(own={"fast": (("pin", "true"),)}) as s: ..."""

    def __init__(self, *options, models=MODELS, general=(), own=None):
        self.folder = tempfile.TemporaryDirectory()
        path = os.path.join(self.folder.name, "models.ini")
        write_presets(path, models, general, **(own or {}))
        super().__init__("--models", path, *ROOM_FOR_TWO, "--load-stay", "1", *options)

    def __exit__(self, *failure):
        super().__exit__(*failure)
        self.folder.cleanup()

    def states(self):
        return {m["id"]: m["status"]["value"] for m in json.loads(self.get("/v1/models"))["data"] if "status" in m}

    def loaded(self):
        return {name for name, state in self.states().items() if state == "loaded"}

    def room(self):
        """(bytes of all models together, bytes of each that was loaded)"""
        units = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
        size = lambda text: float(text.split()[0]) * units[text.split()[1]]
        log = self.logged()
        room = size(re.search(r"models count=\d+ room=([\d.]+ \w+)", log).group(1))
        return room, {n: size(b) for n, b in re.findall(r"models loaded id=(\w+) bytes=([\d.]+ \w+)", log)}


def lone(name, *options):
    """The server of one of the models alone."""
    words = [word for key, value in (*ALL, *MODELS[name]) for word in (f"--{key}", value)]
    return Server(*words, "--queue", "64", *options)


def ask(server, name, prompt, tokens=24, **more):
    return server.post("/v1/completions", {"model": name, "prompt": prompt, "max_tokens": tokens, "temperature": 0,
                                           "logprobs": 1, **more})["choices"][0]


def known_answers():
    """What each model answers to each prompt when it is alone."""
    answers = {}
    for name in MODELS:
        with lone(name) as server:
            for prompt in PROMPTS:
                answers[name, prompt] = ask(server, "default", prompt)
    return answers


def in_threads(count, work):
    """work(i) in so many threads; what they raised."""
    failures = []

    def run(i):
        try:
            work(i)
        except Exception as failure:
            failures.append(repr(failure)[:500])

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return failures


def gaps(server, name, tokens):
    """Seconds between the events of a streamed answer."""
    connection = server.connection()
    body = {"model": name, "prompt": "Once upon a time", "max_tokens": tokens, "ignore_eos": True, "stream": True}
    connection.request("POST", "/v1/completions", json.dumps(body).encode(), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    assert answer.status == 200, answer.read()
    times = []
    for line in answer:
        if line.startswith(b"data: {"):
            times.append(time.monotonic())
    connection.close()
    return [b - a for a, b in zip(times, times[1:])]
