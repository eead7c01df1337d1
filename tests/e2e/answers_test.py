"""The real server on the built-in model: answers are those of the reference, alone and among 64 others."""
import json, os, threading, unittest

from weir_server import SOURCE, Server, text_of

EXPECTED = json.load(open(f"{SOURCE}/tests/data/weir-tiny-moe/expected.json"))
GREEDY = {"temperature": 0, "repetition_penalty": 1, "max_tokens": 64, "model": "weir-tiny-moe"}


def without_end(text):
    return text.removesuffix("<|im_end|>")


class Answers(unittest.TestCase):
    def test_greedy_texts_are_the_references(self):
        with Server("--compute", "exact") as server:
            for case in EXPECTED["cases"]:
                if min(case["margins_nats"]) < 1e-3:
                    continue  # Two tokens equally likely: either is right.
                body = {**GREEDY, "messages": case["messages"]}
                answer = server.post("/v1/chat/completions", body)
                self.assertEqual(answer["choices"][0]["message"]["content"], without_end(case["greedy_text"]))
                self.assertEqual(answer["usage"]["prompt_tokens"], len(case["prompt_ids"]))
                self.assertEqual(text_of(server.stream("/v1/chat/completions", body)), without_end(case["greedy_text"]))

    def test_64_streams_at_once_give_what_each_gives_alone(self):
        bodies = []
        for i in range(64):
            case = EXPECTED["cases"][i % len(EXPECTED["cases"])]
            bodies.append({"model": "weir-tiny-moe", "messages": case["messages"], "max_tokens": 16 + i, "seed": i,
                           "temperature": 0 if i % 3 == 0 else 0.9, "logprobs": True, "top_logprobs": i % 4})

        def answer(server, body):
            events = server.stream("/v1/chat/completions", body)
            logprobs = [t for e in events for c in e["choices"] for t in ((c.get("logprobs") or {}).get("content") or [])]
            return text_of(events), logprobs

        for arguments in ([], ["--no-prefix-cache"]):
            with Server(*arguments) as server:
                self.compare(server, bodies, answer)

        # Nine megabytes are 72 pages: answers of 300 tokens outgrow what was free at admission.
        long = [{**body, "max_tokens": 300, "ignore_eos": True} for body in bodies[:24]]
        with Server("--kv-memory", "9M", "--parallel", "24") as server:
            self.compare(server, long, answer)
            self.assertGreater(server.metric("weir_preemptions_total"), 0, "the budget should force preemption")

    def compare(self, server, bodies, answer):
        alone = [answer(server, body) for body in bodies]
        together = [None] * len(bodies)

        def run(i):
            together[i] = answer(server, bodies[i])

        threads = [threading.Thread(target=run, args=(i,)) for i in range(len(bodies))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for i, (one, many) in enumerate(zip(alone, together)):
            self.assertEqual(one, many, f"request {i}")


if __name__ == "__main__":
    unittest.main(verbosity=2)
