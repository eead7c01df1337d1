"""Embeddings of the real server: alone and among others the same bits, in every form; pooled as --pooling says."""
import base64, json, math, struct, threading, unittest

from weir_server import SOURCE, Server

CASES = json.load(open(f"{SOURCE}/tests/data/weir-tiny-moe/expected.json"))["cases"]
WORDS = "the cat sat on a mat and told a story about the sea of old stars".split()


def embed(server, inputs, **more):
    answer = server.post("/v1/embeddings", {"model": "weir-tiny-moe", "input": inputs, **more})
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
                    server.post("/v1/chat/completions", {"messages": CASES[i % len(CASES)]["messages"], "max_tokens": 100})

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


if __name__ == "__main__":
    unittest.main(verbosity=2)
