"""Clients that take what they can, each kind from an address of its own (127.0.0.x), and ordinary clients beside them.

Each hostile kind is a coroutine that goes on until it is cancelled; a connection that the server ends is opened again.
What one does is bounded: in connections, in bytes, and by a pause after each failure. Used by hostile_soak_test.py and
by bench/hostile; standard library only."""
import asyncio, itertools, json, random, struct, socket, time

MODEL = "weir-tiny-moe"
WORDS = "river stone lantern harbour winter copper garden engine silver meadow thunder paper castle orchard signal".split()


def text(seed, words):
    made = random.Random(seed)
    return " ".join(made.choice(WORDS) for _ in range(words))


def post(path, body, extra=""):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return (f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n{extra}"
            f"Content-Length: {len(data)}\r\n\r\n").encode() + data


class Client:
    """One address, of which connections are opened, and a tally of what happened."""

    def __init__(self, port, address, key=None):
        self.port, self.address, self.done = port, address, {}
        self.extra = f"Authorization: Bearer {key}\r\n" if key else ""

    def note(self, what):
        self.done[what] = self.done.get(what, 0) + 1

    async def open(self):
        return await asyncio.open_connection("127.0.0.1", self.port, local_addr=(self.address, 0), limit=1 << 16)

    def post(self, path, body):
        return post(path, body, self.extra)

    async def ask(self, path, body):
        """The status of an answer that is read to its end, on a connection of its own."""
        reader, writer = await self.open()
        try:
            writer.write(self.post(path, body).replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1))
            await writer.drain()
            head = await reader.readuntil(b"\r\n")
            while await reader.read(1 << 16):
                pass
            return int(head.split()[1])
        finally:
            writer.transport.abort()

    async def repeat(self, act, pause=0.05):
        """Does it again and again. What fails is tried again after a pause."""
        while True:
            try:
                self.note(await act())
            except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError, IndexError) as failure:
                self.note(type(failure).__name__)
                await asyncio.sleep(pause)

    async def many(self, count, act, pause=0.05):
        await asyncio.gather(*(self.repeat(act, pause) for _ in range(count)))


async def held(reader, writer, seconds):
    """The connection stays as it is until the server ends it, or for so long."""
    try:
        await asyncio.wait_for(reader.read(1 << 16), seconds)
        return "ended by the server"
    except asyncio.TimeoutError:
        return "held to the end"
    finally:
        writer.transport.abort()


# --- The kinds. `size` scales how many connections each holds.

async def unfinished_heads(client, size=1.0):
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\n" + b"".join(b"x-%03d: %s\r\n" % (i,
                                                                                                        b"a" * 234)
                                                                                   for i in range(250))

    async def one():
        reader, writer = await client.open()
        writer.write(head)
        return await held(reader, writer, 60)

    await client.many(int(1000 * size), one, 0.5)


async def pipelined_bytes(client, size=1.0):
    first = client.post("/v1/completions", {"model": MODEL, "prompt": "Once", "max_tokens": 1000, "ignore_eos": True})

    async def one():
        reader, writer = await client.open()
        writer.write(first + b"POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nx-a: " + b"a" * (62 << 10))
        return await held(reader, writer, 60)

    await client.many(int(200 * size), one, 0.5)


async def stalled_uploads(client, size=1.0, length=30 << 20, connections=2):
    async def one():
        reader, writer = await client.open()
        writer.write(post("/v1/chat/completions", b" " * (length - 4096), client.extra).replace(
            b"Content-Length: %d" % (length - 4096), b"Content-Length: %d" % length, 1))

        async def trickle():
            while not writer.is_closing():
                writer.write(b" ")
                await asyncio.sleep(10)

        feeding = asyncio.ensure_future(trickle())
        try:
            return await held(reader, writer, 600)
        finally:
            feeding.cancel()

    await client.many(max(1, int(connections * size)), one, 0.2)


async def stalled_small_uploads(client, size=1.0):
    await stalled_uploads(client, size, length=1 << 20, connections=64)


HOPELESS = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 4}


async def hopeless_grammars(client, size=1.0):
    number = itertools.count()

    async def one():
        regex = "(a|b)*a(a|b){%d}x%d" % (20, next(number) + random.randrange(1 << 30))
        return await client.ask("/v1/chat/completions", {**HOPELESS, "guided_regex": regex})

    await client.many(int(64 * size), one)


async def abandoned_grammars(client, size=1.0):
    async def one():
        _, writer = await client.open()
        writer.write(client.post("/v1/chat/completions",
                                 {**HOPELESS, "guided_regex": "(a|b)*a(a|b){20}y%d" % random.randrange(1 << 30)}))
        await writer.drain()
        writer.transport.abort()
        await asyncio.sleep(0.1)
        return "left"

    await client.many(int(16 * size), one)


async def many_choices(client, size=1.0):
    async def one():
        return await client.ask("/v1/chat/completions", {
            "model": MODEL, "n": 128, "max_tokens": 1900, "ignore_eos": True, "stream": True,
            "messages": [{"role": "user", "content": text(random.random(), 20)}]})

    await client.many(max(1, int(2 * size)), one)


async def early_priorities(client, size=1.0):
    async def one():
        return await client.ask("/v1/completions", {"model": MODEL, "prompt": text(random.random(), 30),
                                                    "max_tokens": 300,
                                                    "ignore_eos": True, "priority": -2**31})

    await client.many(int(300 * size), one)


async def floods_of_embeddings(client, size=1.0):
    async def one():
        return await client.ask("/v1/embeddings",
                                {"model": MODEL, "input": [text(random.random(), 20) for _ in range(2048)]})

    await client.many(max(1, int(4 * size)), one)


async def long_prompts(client, size=1.0):
    async def one():
        return await client.ask("/v1/completions",
                                {"model": MODEL, "prompt": text(random.random(), 900), "max_tokens": 1})

    await client.many(max(1, int(16 * size)), one)


async def slow_readers(client, size=1.0):
    body = client.post("/v1/chat/completions", {"model": MODEL, "n": 8, "max_tokens": 1900, "ignore_eos": True,
                                                "stream": True,
                                                "logprobs": True, "top_logprobs": 20,
                                                "messages": [{"role": "user", "content": "Tell me everything."}]})

    async def one():
        loop = asyncio.get_running_loop()
        with socket.socket() as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            s.setblocking(False)
            s.bind((client.address, 0))
            await loop.sock_connect(s, ("127.0.0.1", client.port))
            await loop.sock_sendall(s, body)
            for _ in range(60):
                await asyncio.sleep(5)
                if not await loop.sock_recv(s, 1):
                    return "ended by the server"
        return "held to the end"

    await client.many(int(20 * size), one, 0.5)


async def idle_connections(client, size=1.0):
    async def one():
        reader, writer = await client.open()
        return await held(reader, writer, 90)

    await client.many(int(1500 * size), one, 1)


async def resets(client, size=1.0):
    body = client.post("/v1/chat/completions", {"model": MODEL, "max_tokens": 500, "stream": True,
                                                "messages": [{"role": "user", "content": "A long story."}]})

    async def one():
        _, writer = await client.open()
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.write(body)
        await writer.drain()
        await asyncio.sleep(random.random() * 0.05)
        writer.transport.abort()
        return "reset"

    await client.many(int(8 * size), one)


async def stored_responses(client, size=1.0):
    async def one():
        return await client.ask("/v1/responses", {"model": MODEL, "input": "Hi", "max_output_tokens": 1, "store": True,
                                                  "metadata": {"a": "b"}, "instructions": None,
                                                  "tools": [], "user": "u", "previous_response_id": None,
                                                  "prompt_cache_key": text(random.random(), 40)})

    await client.many(int(8 * size), one)


async def garbage(client, size=1.0):
    bombs = [b"[" * 100_000, b'{"messages":' + b'[{"role":"user","content":' * 5000, b"\xff" * 1000, b'{"a":"\\ud83d"}',
             json.dumps({"messages": [{"role": "user", "content": "x"}],
                         "logit_bias": {str(i): 1 for i in range(5000)}}).encode()]
    lines = [b"\x16\x03\x01\x02\x00\x01\x00", b"GET\r\n\r\n", b"\0" * 100,
             b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
             b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n: x\r\n\r\n"]

    async def one():
        if random.random() < 0.5:
            return await client.ask("/v1/chat/completions", random.choice(bombs))
        reader, writer = await client.open()
        writer.write(random.choice(lines))
        return await held(reader, writer, 1)

    await client.many(int(8 * size), one)


async def long_texts(client, size=1.0):
    async def one():
        return await client.ask("/tokenize", {"content": text(random.random(), 100) * 1500})

    await client.many(max(1, int(4 * size)), one)


async def scored_prompts(client, size=1.0):
    async def one():
        return await client.ask("/v1/completions", {"model": MODEL, "prompt": text(random.random(), 400),
                                                    "max_tokens": 1,
                                                    "prompt_logprobs": 20, "n": 4, "logprobs": 5})

    await client.many(max(1, int(8 * size)), one)


KINDS = [unfinished_heads, pipelined_bytes, stalled_uploads, stalled_small_uploads, hopeless_grammars,
         abandoned_grammars, many_choices,
         early_priorities, floods_of_embeddings, long_prompts, slow_readers, idle_connections, resets, stored_responses,
         garbage,
         long_texts, scored_prompts]


# --- Ordinary clients: one chat after the other, read as it comes.

async def ordinary(client, end, seed, words=40, tokens=48):
    """Until `end`: (seconds to the first token of each answer, seconds between two events, statuses other than 200).
    Questions and answers differ in length, and clients read what they get before they ask on: several that asked and were
    answered in step would never have a question of another beside their answer, as those of people have."""
    firsts, gaps, refused = [], [], []
    turn, choose = 0, random.Random(seed)
    while time.monotonic() < end:
        turn += 1
        await asyncio.sleep(choose.uniform(0, 0.2 if turn > 1 else 1))
        reader, writer = await client.open()
        try:
            body = {"model": MODEL,
                    "messages": [{"role": "user",
                                  "content": text(f"{seed} {turn}", choose.randint(words // 2, words * 3 // 2))}],
                    "max_tokens": choose.randint(tokens // 2, tokens * 3 // 2), "stream": True, "ignore_eos": True,
                    "temperature": 0}
            writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            begin = last = time.monotonic()
            writer.write(client.post("/v1/chat/completions", body))
            status = int((await reader.readuntil(b"\r\n")).split()[1])
            if status != 200:
                refused.append(status)
                await asyncio.sleep(0.2)
                continue
            await reader.readuntil(b"\r\n\r\n")
            seen = 0
            while True:
                line = await reader.readline()
                if not line or line.startswith(b"data: [DONE]"):
                    break
                if not line.startswith(b"data: ") or b'"content":"' not in line:
                    continue
                now = time.monotonic()
                (firsts if seen == 0 else gaps).append(now - (begin if seen == 0 else last))
                last, seen = now, seen + 1
        except (OSError, asyncio.IncompleteReadError) as failure:
            refused.append(type(failure).__name__)
            await asyncio.sleep(0.2)
        finally:
            writer.transport.abort()
    return firsts, gaps, refused


def quantile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else float("inf")
