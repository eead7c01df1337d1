"""compare --old: a build of Weir beside an older one, in pairs A-B-B-A, as ratios with a 95 % interval.

What is ratioed is always "how much better the new one is": tokens a second of new / old, seconds and bytes of old / new.
One A-B-B-A run gives one ratio, of the two geometric means, so that what drifts steadily falls out. The interval is the
order statistics' of the median (binomial, no shape assumed): with nine runs it is the second and the eighth."""
import json, math, os, statistics, time
from bench_common import Other, commit, fetch, free_port, load, processor, run, say, server

# The new build is not slower where the interval reaches REACHES and no median lies below LEAST.
REACHES, LEAST = 0.99, 0.98
ROUNDS_LEAST = 9
PARTS = ["bench", "server", "streaming", "start"]


def interval(ratios, share=0.95):
    """(low, high) of the median, at least `share` sure; the extremes where there are too few ratios for that."""
    ordered, n = sorted(ratios), len(ratios)
    tail, rank = 0.0, 0
    while rank < n // 2:
        tail += math.comb(n, rank) / 2 ** n
        if 2 * tail > 1 - share:
            break
        rank += 1
    rank = max(rank, 1)
    return ordered[rank - 1], ordered[n - rank]


def geometric(values):
    return math.exp(statistics.fmean(math.log(v) for v in values))


def bench_figures(a, weir, folder):
    found = json.loads(run([weir, "bench", *model_option(folder), "--threads", str(a.threads), "--json", "--repetitions", "1",
                            "--prompt", str(a.prompt), "--decode", str(a.decode), "--batch", ",".join(map(str, a.batches))]))
    figures = {f"prefill {a.prompt}, tok/s": found["prefill"]["tokens_per_second"]}
    for d in found["decode"]:
        figures[f"decode batch {d['batch']}, tok/s"] = d["tokens_per_second"]
    return figures


def streaming_figures(a, weir, folder):
    found = json.loads(run([weir, "bench", *model_option(folder), "--threads", str(a.threads), "--json", "--repetitions", "1",
                            "--stream-experts", "--stream-budget", "2", "--prompt", str(a.prompt), "--decode", str(a.decode),
                            "--batch", "1,8"]))
    figures = {f"streamed prefill {a.prompt}, tok/s": found["prefill"]["tokens_per_second"]}
    for d in found["decode"]:
        figures[f"streamed decode batch {d['batch']}, tok/s"] = d["tokens_per_second"]
    return figures


def server_figures(a, weir, folder):
    port, clients = free_port(), max(a.clients)
    with server([weir, *model_option(folder), "--port", str(port), "--threads", str(a.threads)], port) as process:
        fetch(port, "/v1/completions", {"prompt": "hello", "max_tokens": 4})
        found = load(a.load, port, "--clients", clients, "--requests", a.requests, "--drop-first", "--prompt-words", 200,
                     "--output-tokens", 64, "--temperature", 0.8, "--seed", 1, "--pid", process.pid)
    if found["failed"] or found["refused"]:
        say(f"{weir}: {found['failed']} failed, {found['refused']} refused {found['errors']}")
    return {f"server {clients} clients, tok/s": found["output_tokens_per_s"],
            f"server {clients} clients, TTFT p50 s": -found["ttft_ms"]["p50"] / 1e3}


def start_figures(a, weir, folder):
    port, begin = free_port(), time.perf_counter()
    with server([weir, *model_option(folder), "--port", str(port), "--threads", str(a.threads)], port) as process:
        fetch(port, "/v1/completions", {"prompt": "hello", "max_tokens": 1})
        seconds = time.perf_counter() - begin
        fetch(port, "/v1/completions", {"prompt": "hello " * 400, "max_tokens": 32})
        peak = next(int(line.split()[1]) for line in open(f"/proc/{process.pid}/status") if line.startswith("VmHWM"))
    return {"exec to first token, s": -seconds, "peak memory, MiB": -peak / 1024}


def model_option(folder):
    return ["--model", folder] if folder else []


def tasks(a):
    """(name, measure(weir)) of a round. A negative figure is one of which less is better."""
    for folder in a.folders:
        name = os.path.basename(os.path.normpath(folder)) if folder else "compiled in"
        measures = {"bench": bench_figures, "server": server_figures, "start": start_figures}
        for part in a.only:
            if part in measures:
                yield f"{name}: {part}", lambda weir, folder=folder, measure=measures[part]: measure(a, weir, folder)
    if "streaming" in a.only and a.streaming:
        name = os.path.basename(os.path.normpath(a.streaming))
        yield f"{name}: streaming", lambda weir: streaming_figures(a, weir, a.streaming)


def compare(a):
    """Prints the table; returns whether nothing is slower."""
    if a.rounds < ROUNDS_LEAST:
        say(f"{a.rounds} rounds: fewer than {ROUNDS_LEAST} say little")
    samples, others, work = {}, [], list(tasks(a))
    begin = time.time()
    for round_number in range(a.rounds):
        for name, measure in work:
            order = [a.old, a.weir, a.weir, a.old] if round_number % 2 == 0 else [a.weir, a.old, a.old, a.weir]
            found = {a.old: [], a.weir: []}
            with Other() as other:
                for weir in order:
                    found[weir].append(measure(weir))
            others.append(other.share)
            for figure in found[a.old][0]:
                sides = [[abs(run_of[figure]) for run_of in found[weir]] for weir in (a.old, a.weir)]
                samples.setdefault((name, figure), []).append((geometric(sides[0]), geometric(sides[1]), found[a.old][0][figure] < 0))
        done = round_number + 1
        say(f"round {done}/{a.rounds}, about {(time.time() - begin) / done * (a.rounds - done) / 60:.0f} minutes left")
    return report(a, samples, others)


def report(a, samples, others):
    print(f"{processor()}, {a.threads} threads, {a.rounds} rounds A-B-B-A, commit {commit()}; other processes took "
          f"{100 * statistics.median(others):.0f} % (most {100 * max(others):.0f} %) of the cores\n")
    print("| what | figure | old | new | better by | 95 % | |\n| --- | --- | --- | --- | --- | --- | --- |")
    good, rows = True, []
    for (name, figure), pairs in samples.items():
        ratios = [old / new if less else new / old for old, new, less in pairs]
        median, (low, high) = statistics.median(ratios), interval(ratios)
        same = high >= REACHES and median >= LEAST
        good &= same
        old, new = (statistics.median(values) for values in list(zip(*pairs))[:2])
        text = [f"{v:,.0f}" if v >= 100 else f"{v:.3g}" for v in (old, new)]
        print(f"| {name} | {figure} | {text[0]} | {text[1]} | {median:.3f} | {low:.3f} to {high:.3f} | {'' if same else 'slower'} |")
        rows.append({"what": name, "figure": figure, "pairs": pairs, "median": median, "interval": [low, high], "same": same})
    if a.json:
        with open(a.json, "w") as file:
            json.dump({"processor": processor(), "threads": a.threads, "commit": commit(), "other": others, "figures": rows}, file, indent=1)
            file.write("\n")
    print("\nnothing is slower" if good else "\nsomething is slower")
    return good
