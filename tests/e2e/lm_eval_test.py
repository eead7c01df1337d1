"""What lm-evaluation-harness sends with `--model local-completions` and `tokenizer_backend=remote`, and what it reads
of the answers. The exchange is written out by hand after its source (0.4.9: lm_eval/models/api_models.py,
openai_completions.py, lm_eval/utils.py); it was not recorded from a run of it."""
import json, math, unittest

from weir_server import Server

# Without OPENAI_API_KEY it sends the scheme and no key.
HEADERS = {"Content-Type": "application/json", "Authorization": "Bearer "}
SEED = 1234


class LmEval(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server().__enter__()
        cls.model = "weir-tiny-moe"

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__(None, None, None)

    def exchange(self, method, path, body=None):
        status, _, data = self.server.request(method, path, body, HEADERS)
        self.assertEqual(status, 200, data)
        return json.loads(data)

    def encode(self, text):
        tokens = self.exchange("POST", "/tokenize", {"prompt": text, "add_special_tokens": False})["tokens"]
        self.assertIsInstance(tokens, list)
        return tokens

    def test_the_tokenizer_is_the_servers(self):
        info = self.exchange("GET", "/tokenizer_info")
        self.assertIn("eos_token", info)
        self.assertIsInstance(info["eos_token"], str)
        for name in ("bos_token", "pad_token"):
            self.assertTrue(info.get(name) is None or isinstance(info[name], str), info)
        self.assertIn("messages", info["chat_template"])
        self.assertEqual(len(self.encode(info["eos_token"])), 1, "the end is one token, the harness takes the first")
        tokens = self.encode("test")
        self.assertTrue(tokens and all(isinstance(token, int) for token in tokens), tokens)
        text = "The sky is blue.\nSo is the sea."
        self.assertEqual(self.exchange("POST", "/detokenize", {"tokens": self.encode(text)})["prompt"], text)

    def loglikelihoods(self, pairs, batch):
        """(sum of log-probabilities, greedy) of each (context, continuation), as parse_logprobs() has it."""
        found = []
        for begin in range(0, len(pairs), batch):
            prompts, contexts = [], []
            for context, continuation in pairs[begin:begin + batch]:
                whole = self.encode(context + continuation)
                contexts.append(len(self.encode(context)))
                prompts.append(whole)
            answer = self.exchange("POST", "/v1/completions", {
                "model": self.model, "prompt": prompts, "temperature": 0, "max_tokens": 1, "logprobs": 1, "seed": SEED,
                "echo": True})
            choices = sorted(answer["choices"], key=lambda choice: choice["index"])
            self.assertEqual(len(choices), len(prompts))
            for choice, prompt, context in zip(choices, prompts, contexts):
                scores = choice["logprobs"]["token_logprobs"]
                tops = choice["logprobs"]["top_logprobs"]
                # The prompt's tokens and one that is generated, which the harness drops.
                self.assertEqual(len(scores), len(prompt) + 1)
                self.assertEqual(len(tops), len(prompt) + 1)
                self.assertIsNone(scores[0], "nothing stands before the first token")
                scores, tops = scores[context:-1], tops[context:-1]
                self.assertTrue(all(isinstance(score, (int, float)) and score <= 0 for score in scores), scores)
                self.assertTrue(all(top for top in tops), tops)
                # The dictionary has the token itself beside the most likely one: it cannot be above its maximum.
                for score, top in zip(scores, tops):
                    self.assertLessEqual(score, max(top.values()))
                found.append((sum(scores), all(score == max(top.values()) for score, top in zip(scores, tops))))
        return found

    PAIRS = [("The capital of Italy is", " Rome"), ("The capital of Italy is", " a stone of cheese"),
             ("Once upon a time, there", " was a fox"), ("A", " b")]

    def test_continuations_are_scored(self):
        found = self.loglikelihoods(self.PAIRS, 1)
        self.assertTrue(all(math.isfinite(score) and score < 0 for score, _ in found), found)
        self.assertGreater(found[0][0], found[1][0], "the likelier continuation scores higher")

    def test_batches_score_the_same(self):
        self.assertEqual(self.loglikelihoods(self.PAIRS, 4), self.loglikelihoods(self.PAIRS, 1))

    def test_what_is_greedy_is_found_so(self):
        context = "Once upon a time"
        body = {"model": self.model, "prompt": [self.encode(context)], "max_tokens": 4, "temperature": 0, "seed": SEED}
        text = self.exchange("POST", "/v1/completions", body)["choices"][0]["text"]
        whole = self.encode(context + text)
        if whole[:len(self.encode(context))] != self.encode(context):
            self.skipTest("the tokens of the text are others when it is whole")
        [(_, greedy)] = self.loglikelihoods([(context, text)], 1)
        again = self.exchange("POST", "/v1/completions", {**body, "prompt": [whole[:len(self.encode(context))]]})
        self.assertEqual(again["choices"][0]["text"], text)
        if len(whole) - len(self.encode(context)) == 4:  # The same four tokens that were generated.
            self.assertTrue(greedy)

    def test_texts_are_generated_until(self):
        # `until` of a task and the end of the text: more than OpenAI's four.
        stop = ["\n\n", "Question:", "</s>", "Q:", "<|im_end|>", "###"]
        answer = self.exchange("POST", "/v1/completions", {
            "prompt": [self.encode("Question: what is the sea?\nAnswer:")], "model": self.model, "max_tokens": 32,
            "temperature": 0, "stop": stop, "seed": SEED})
        [choice] = answer["choices"]
        self.assertEqual(choice["index"], 0)
        self.assertIsInstance(choice["text"], str)
        for end in stop:
            self.assertNotIn(end, choice["text"])

    def test_the_longest_sequence_is_scored(self):
        # max_length defaults to 2,048, of which one is kept for the token that is generated.
        word = self.encode(" the")
        prompt = (word * 2048)[:2047]
        answer = self.exchange("POST", "/v1/completions", {
            "model": self.model, "prompt": [prompt], "temperature": 0, "max_tokens": 1, "logprobs": 1, "seed": SEED,
            "echo": True})
        self.assertEqual(len(answer["choices"][0]["logprobs"]["token_logprobs"]), 2048)


if __name__ == "__main__":
    unittest.main()
