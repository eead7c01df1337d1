"""Embeddings of the real server: alone and among others the same bits, in every form; pooled as --pooling says."""
import base64, http.client, json, math, os, socket, struct, threading, time, unittest

from weir_server import SOURCE, Server, eventually

CASES = json.load(open(f"{SOURCE}/tests/data/weir-tiny-moe/expected.json"))["cases"]
WORDS = "the cat sat on a mat and told a story about the sea of old stars".split()


def embed(server, inputs, **more):
    answer = server.post("/v1/embeddings", {"input": inputs, **more})
    return [item["embedding"] for item in answer["data"]]


def unpacked(text):
    data = base64.b64decode(text, validate=True)
    return list(struct.unpack(f"<{len(data) // 4}f", data))


def cosine(a, b):
    return sum(x * y for x, y in zip(a, b)) / math.sqrt(sum(x * x for x in a) * sum(y * y for y in b))


class Embeddings(unittest.TestCase):
    def test_forms_of_one_vector_agree(self):
        with Server() as server:
            text = "A small boat sailed out to sea."
            (vector,) = embed(server, text)
            self.assertEqual(len(vector), 256)
            self.assertAlmostEqual(math.sqrt(sum(x * x for x in vector)), 1, places=5)
            tokens = server.post("/tokenize", {"prompt": text})["tokens"]
            self.assertEqual(embed(server, tokens), [vector])
            self.assertEqual(embed(server, [text, tokens, text]), [vector] * 3)
            self.assertEqual(unpacked(embed(server, text, encoding_format="base64")[0]),
                             [struct.unpack("f", struct.pack("f", x))[0] for x in vector])
            (short,) = embed(server, text, dimensions=64)
            length = math.sqrt(sum(x * x for x in vector[:64]))
            for x, y in zip(short, vector):
                self.assertAlmostEqual(x, y / length, places=5)
            near, far = embed(server, ["A little boat sailed off to sea.", "print(sum(range(10)))"])
            self.assertGreater(cosine(vector, near), cosine(vector, far))

    def test_the_mean_is_that_of_the_last_states_of_all_beginnings(self):
        tokens = [300, 17, 2500, 999, 41, 4000, 77, 12]
        beginnings = [tokens[:i + 1] for i in range(len(tokens))]
        with Server("--compute", "exact") as server:
            last = embed(server, beginnings, normalize=False)
        expected = [sum(column) / len(tokens) for column in zip(*last)]
        with Server("--compute", "exact", "--pooling", "mean") as server:
            (mean,) = embed(server, tokens, normalize=False)
        for x, y in zip(mean, expected):
            self.assertAlmostEqual(x, y, delta=1e-5 * max(1, abs(y)))
        with Server("--compute", "exact", "--pooling", "cls") as server:
            self.assertEqual(embed(server, tokens, normalize=False), [last[0]])

    def test_neighbours_and_chunks_change_no_bit(self):
        long = " ".join(WORDS[i * 7 % len(WORDS)] for i in range(1200))
        inputs = [" ".join(WORDS[: i % 15 + 1]) + f" {i}" for i in range(200)] + [long, long[: len(long) // 2]]
        for pooling in ("last", "mean"):
            with Server("--pooling", pooling, "--no-prefix-cache", "--parallel", "1") as server:
                alone = [embed(server, text)[0] for text in inputs]
            with Server("--pooling", pooling, "--prefill-size", "128") as server:
                found = [None] * 4

                def run(i):
                    found[i] = embed(server, inputs, encoding_format="base64" if i % 2 else "float")

                def chat(i):
                    server.post("/v1/chat/completions",
                                {"messages": CASES[i % len(CASES)]["messages"], "max_tokens": 100})

                threads = [threading.Thread(target=run, args=(i,)) for i in range(4)]
                threads += [threading.Thread(target=chat, args=(i,)) for i in range(8)]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
                for i, vectors in enumerate(found):
                    if i % 2:
                        packed = [[struct.unpack("f", struct.pack("f", x))[0] for x in v] for v in alone]
                        self.assertEqual([unpacked(text) for text in vectors], packed)
                    else:
                        self.assertEqual(vectors, alone)

    def test_a_client_that_is_alone_gets_all_that_is_promised(self):
        """2,048 texts, and again at once, whatever the queue; of a real width with little memory."""
        folder = os.environ.get("WEIR_MODELS", f"{SOURCE}/../shared/models") + "/smollm2-135m-instruct-4bit"
        settings = [(("--queue", "16"), 256)] + [(("--model", folder, "--mem-limit", "2G"),
                                                  576)] * os.path.exists(folder)
        inputs = [[300 + i % 90, 500 + i // 90] for i in range(2048)]
        for arguments, width in settings:
            with self.subTest(arguments), Server(*arguments) as server:
                connection = server.connection()
                alone = embed(server, inputs[7])[0]
                for _ in range(3):
                    connection.request("POST", "/v1/embeddings", json.dumps({"input": inputs}),
                                       {"Content-Type": "application/json"})
                    answer = connection.getresponse()
                    body = answer.read()
                    self.assertEqual(answer.status, 200, body[:300])
                    vectors = [item["embedding"] for item in json.loads(body)["data"]]
                    self.assertEqual((len(vectors), len(vectors[0])), (2048, width))
                    self.assertEqual(vectors[7], alone)
                connection.close()

    def test_eight_clients_with_all_they_may_ask_turn_no_completion_away(self):
        statuses, ends = [], time.time() + 6
        body = json.dumps({"input": [[300 + i % 90, 500 + i // 90] for i in range(2048)], "encoding_format": "base64"})

        with Server() as server:
            def run(address, path, data, found):
                connection = http.client.HTTPConnection(server.host, server.port, timeout=60,
                                                        source_address=(address, 0))
                while time.time() < ends:
                    connection.request("POST", path, data, {"Content-Type": "application/json"})
                    answer = connection.getresponse()
                    answer.read()
                    found.append(answer.status)
                connection.close()

            short = json.dumps({"prompt": "The sea", "max_tokens": 4})
            embedded = []
            threads = [threading.Thread(target=run,
                                        args=(f"127.0.0.{i}", "/v1/embeddings", body, embedded)) for i in range(1, 9)]
            threads += [threading.Thread(target=run,
                                         args=("127.0.0.9", "/v1/completions", short, statuses)) for _ in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertGreater(len(statuses), 5)
            self.assertEqual(set(statuses), {200})
            self.assertEqual(set(embedded), {200})

    def test_a_client_that_stops_reading_is_waited_for(self):
        """The answer waits for it, and others are served meanwhile."""
        with Server() as server:
            body = json.dumps({"input": [[300 + i % 90, 500 + i // 90] for i in range(2048)]}).encode()
            embed(server, [[1], [2]])
            clients = []
            for i in range(4):
                s = socket.socket()
                s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                s.connect((server.host, server.port))
                s.sendall(b"POST /v1/embeddings HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                          b"Content-Length: %d\r\n\r\n" % len(body) + body)
                self.assertTrue(s.recv(100).startswith(b"HTTP/1.1 200"))
                clients.append(s)
            self.assertEqual(len(embed(server, "others go on")), 1)
            eventually(lambda: server.metric("weir_answers_open") == 4, what="only theirs wait")
            for s in clients:
                s.close()
            eventually(lambda: server.metric("weir_answers_open") == 0, what="nothing is left of them")


if __name__ == "__main__":
    unittest.main(verbosity=2)
