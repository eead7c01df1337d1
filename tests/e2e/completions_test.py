"""Text completions of the real server: prompts scored as evaluation harnesses ask for it, in any company; best_of; no
infill."""
import threading, unittest

from weir_server import Server

MODEL = {"model": "weir-tiny-moe"}
PROMPT = "Once upon a time there was a small boat that"


def scores(server, prompt, **more):
    answer = server.post("/v1/completions", {**MODEL, "prompt": prompt, "echo": True, "logprobs": 1, "max_tokens": 1,
                                             "temperature": 0, **more})
    return [choice["logprobs"] for choice in sorted(answer["choices"], key=lambda c: c["index"])]


class Completions(unittest.TestCase):
    def test_a_text_is_worth_the_same_read_and_written(self):
        # Prompts and answers share one arithmetic only with --compute exact.
        with Server("--compute", "exact") as server:
            written = server.post("/v1/completions", {**MODEL, "prompt": PROMPT, "max_tokens": 60, "temperature": 0.7,
                                                      "seed": 5,
                                                      "logprobs": 3, "min_tokens": 60})["choices"][0]
            text = PROMPT + written["text"]
            tokens = server.post("/tokenize", {"prompt": text})["tokens"]
            (read,) = scores(server, tokens, logprobs=3, max_tokens=0)
            self.assertIsNone(read["token_logprobs"][0])
            self.assertEqual(len(read["tokens"]), len(tokens))
            count = len(tokens) - 60
            self.assertEqual(read["tokens"][count:], written["logprobs"]["tokens"],
                             "the text tokenises as it was written")
            self.assertEqual(read["token_logprobs"][count:], written["logprobs"]["token_logprobs"])
            self.assertEqual(read["top_logprobs"][count:], written["logprobs"]["top_logprobs"])
            self.assertEqual("".join(read["tokens"]), text)
            for token, offset in zip(read["tokens"], read["text_offset"]):
                self.assertEqual(text[offset:offset + len(token)], token)

    def test_scores_change_in_no_company(self):
        texts = [PROMPT + " sailed" * (i % 40) + f" {i}" for i in range(48)] + [PROMPT * 120]
        with Server("--no-prefix-cache", "--parallel", "1") as server:
            alone = [scores(server, text)[0] for text in texts]
        with Server() as server:
            together = [None] * 3

            def run(i):
                together[i] = scores(server, texts)

            threads = [threading.Thread(target=run, args=(i,)) for i in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            for found in together:
                self.assertEqual(found, alone)
            events = server.stream("/v1/completions", {**MODEL, "prompt": texts[-1], "echo": True, "logprobs": 1,
                                                       "max_tokens": 1, "temperature": 0})
            streamed = [x for e in events for c in e["choices"] if c["logprobs"] for x in c["logprobs"]["token_logprobs"]]
            self.assertEqual(streamed, alone[-1]["token_logprobs"])

    def test_best_of_and_what_the_model_cannot(self):
        with Server() as server:
            body = {**MODEL, "prompt": PROMPT, "max_tokens": 20, "seed": 1, "temperature": 1.2, "logprobs": 0}
            means = {c["text"]: sum(c["logprobs"]["token_logprobs"]) / len(c["logprobs"]["tokens"])
                     for c in server.post("/v1/completions", {**body, "n": 8})["choices"]}
            (best,) = server.post("/v1/completions", {**body, "best_of": 8})["choices"]
            self.assertEqual(best["text"], max(means, key=means.get))
            refused = server.post("/v1/completions", {**body, "suffix": "the end."}, expect=400)
            self.assertEqual(refused["error"]["param"], "suffix")
            refused = server.post("/infill", {"input_prefix": "a", "input_suffix": "b"}, expect=400)
            self.assertIn("fill-in-the-middle", refused["error"]["message"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
