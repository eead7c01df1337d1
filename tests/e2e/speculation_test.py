"""Speculation in the real server: a prediction, copies of the text and limits of a request change how fast an answer
comes and what usage, timings and /metrics say of it, and never the answer."""
import json, re, unittest

from weir_server import Server

PROMPT = "One day a small dog went to the park. One day a small dog went to the park. One day a small"
CHAT = {"messages": [{"role": "user", "content": "Tell me a short story about a dog and a ball."}], "max_tokens": 60,
        "temperature": 0.7, "seed": 11}


def figure(page, name, **labels):
    """The sum of the samples of a metric that have these labels."""
    total = 0.0
    for line in page.splitlines():
        found = re.fullmatch(re.escape(name) + r"(?:\{(.*)\})? (\S+)", line)
        if found and all(f'{k}="{v}"' in (found.group(1) or "") for k, v in labels.items()):
            total += float(found.group(2))
    return total


def message(answer):
    return answer["choices"][0]["message"]["content"]


class Speculation(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.on, cls.off = Server().__enter__(), Server("--speculative", "off").__enter__()

    @classmethod
    def tearDownClass(cls):
        for server in (cls.on, cls.off):
            server.__exit__(None, None, None)

    def metrics(self, server):
        return server.request("GET", "/metrics")[2].decode()

    def test_answers_are_the_same_with_and_without(self):
        for sampling in ({"temperature": 0}, {"temperature": 1, "seed": 5},
                         {"temperature": 0.8, "seed": 9, "repetition_penalty": 1.1, "logprobs": 3}):
            body = {"prompt": PROMPT, "max_tokens": 80, "n": 2, **sampling}
            with_drafts, without = (s.post("/v1/completions", body) for s in (self.on, self.off))
            self.assertEqual(with_drafts["choices"], without["choices"])

    def test_a_right_prediction_is_accepted_and_a_wrong_one_rejected(self):
        plain = self.off.post("/v1/chat/completions", CHAT)
        # How many drafts pay is measured, and on a busy machine now and then few do.
        for _ in range(20):
            before = self.metrics(self.on)
            right = self.on.post("/v1/chat/completions",
                                 {**CHAT, "prediction": {"type": "content", "content": message(plain)}})
            self.assertEqual(message(right), message(plain))
            details = right["usage"]["completion_tokens_details"]
            if details["accepted_prediction_tokens"] > 5:
                break
        self.assertGreater(details["accepted_prediction_tokens"], 5)
        self.assertEqual(right["usage"]["completion_tokens"], plain["usage"]["completion_tokens"])
        self.assertGreaterEqual(right["timings"]["draft_n"], right["timings"]["draft_n_accepted"])
        self.assertGreaterEqual(right["timings"]["draft_n_accepted"], details["accepted_prediction_tokens"])
        after = self.metrics(self.on)
        accepted = [figure(page, "weir_speculative_drafts_right_total", source="prediction")
                    for page in (before, after)]
        self.assertEqual(accepted[1] - accepted[0], details["accepted_prediction_tokens"])
        for name in ("num_drafts", "num_draft_tokens", "num_accepted_tokens"):
            self.assertGreater(figure(after, f"vllm:spec_decode_{name}_total"), 0)
        self.assertGreater(figure(after, "vllm:spec_decode_num_accepted_tokens_per_pos_total", position="0"), 0)
        wrong = self.on.post("/v1/chat/completions", {**CHAT, "prediction": {
            "type": "content", "content": [{"type": "text", "text": "Quantum chromodynamics of leptons. " * 9}]}})
        self.assertEqual(message(wrong), message(plain))
        self.assertLess(wrong["usage"]["completion_tokens_details"]["accepted_prediction_tokens"], 10)

    def test_a_request_may_have_none(self):
        body = {**CHAT, "prediction": {"type": "content", "content": "Once upon a time there was a dog."},
                "speculative.n_max": 0}
        answer = self.on.post("/v1/chat/completions", body)
        self.assertNotIn("draft_n", answer["timings"])
        self.assertEqual(answer["usage"]["completion_tokens_details"]["rejected_prediction_tokens"], 0)
        self.assertEqual(message(answer), message(self.off.post("/v1/chat/completions", CHAT)))

    def test_without_speculation_a_prediction_says_nothing(self):
        plain = self.off.post("/v1/chat/completions", CHAT)
        again = self.off.post("/v1/chat/completions",
                              {**CHAT, "prediction": {"type": "content", "content": message(plain)}})
        self.assertEqual(message(again), message(plain))
        self.assertEqual(again["usage"]["completion_tokens_details"], plain["usage"]["completion_tokens_details"])
        self.assertEqual(figure(self.metrics(self.off), "weir_drafts_total"), 0)

    def test_streams_and_tools_are_the_same(self):
        tools = [{"type": "function", "function": {"name": "look", "parameters": {
            "type": "object", "properties": {"where": {"enum": ["left", "right"]}}, "required": ["where"]}}}]
        body = {**CHAT, "tools": tools, "tool_choice": "required", "max_tokens": 40}
        expected = {"type": "content", "content": '{"name": "look", "arguments": {"where": "left"}}'}
        for more in ({}, {"prediction": expected}):
            answers = [s.post("/v1/chat/completions", {**body, **more}) for s in (self.on, self.off)]
            calls = [a["choices"][0]["message"]["tool_calls"][0]["function"] for a in answers]
            self.assertEqual(*calls)
        events = [s.request("POST", "/v1/chat/completions", {**CHAT, "stream": True, "stop": ["ball"]})[2].decode()
                  for s in (self.on, self.off)]
        texts = ["".join(json.loads(e[6:])["choices"][0]["delta"].get("content") or "" for e in text.split("\n\n")
                         if e.startswith("data: {") and json.loads(e[6:])["choices"]) for text in events]
        self.assertEqual(*texts)

    def test_a_prediction_that_is_none_is_refused(self):
        for prediction, path in (({"type": "text", "content": "a"}, "prediction.type"),
                                 ({"type": "content"}, "prediction.content"),
                                 ({"type": "content", "content": 3}, "prediction.content")):
            status, _, data = self.on.request("POST", "/v1/chat/completions", {**CHAT, "prediction": prediction})
            self.assertEqual(status, 400)
            self.assertEqual(json.loads(data)["error"]["param"], path)

    def test_the_log_says_what_is_used(self):
        self.assertIn("speculation copies of the prompt, the answer, earlier answers", self.on.logged())
        self.assertIn("speculation off (--speculative off)", self.off.logged())


if __name__ == "__main__":
    unittest.main()
