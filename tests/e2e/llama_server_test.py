"""What clients of llama-server and of vLLM ask the real server for: /completion, /apply-template, paths without /v1,
the page at /, and fields that bound or show tokens."""
import json, unittest

from weir_server import Server

PROMPT = "Once upon a time"


class LlamaServer(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--trust-request-template").__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__(None, None, None)

    def completion(self, **fields):
        return self.server.post("/completion", {"prompt": PROMPT, "temperature": 0, "n_predict": 8, **fields})

    def test_completion_says_what_openais_says(self):
        answer = self.completion(return_tokens=True, n_probs=2)
        other = self.server.post("/v1/completions",
                                 {"prompt": PROMPT, "temperature": 0, "max_tokens": 8, "return_token_ids": True})
        choice = other["choices"][0]
        self.assertEqual(answer["content"], choice["text"])
        self.assertEqual(answer["tokens"], choice["token_ids"])
        self.assertEqual(answer["tokens_evaluated"], other["usage"]["prompt_tokens"])
        self.assertEqual([p["id"] for p in answer["completion_probabilities"]], answer["tokens"])
        self.assertEqual((answer["stop_type"], answer["stop"], answer["truncated"]), ("limit", True, False))
        self.assertIn(PROMPT, answer["prompt"])
        self.assertEqual(answer["generation_settings"]["n_predict"], 8)
        self.assertEqual(self.completion(prompt=choice["prompt_token_ids"])["content"], answer["content"])

    def test_completion_streams(self):
        whole = self.completion(return_tokens=True)
        status, headers, data = self.server.request(
            "POST", "/completions", {"prompt": PROMPT, "temperature": 0, "n_predict": 8, "stream": True})
        self.assertEqual(status, 200)
        self.assertTrue(headers["content-type"].startswith("text/event-stream"))
        events = [json.loads(e[len("data: "):]) for e in data.decode().split("\n\n") if e]
        self.assertEqual("".join(e["content"] for e in events), whole["content"])
        self.assertEqual([t for e in events for t in e["tokens"]], whole["tokens"])
        self.assertEqual([e["stop"] for e in events], [False] * (len(events) - 1) + [True])

    def test_a_template_makes_the_prompt(self):
        messages = [{"role": "user", "content": "Hi"}]
        prompt = self.server.post("/apply-template", {"messages": messages})["prompt"]
        tokens = self.server.post("/tokenize", {"content": prompt})["tokens"]
        self.assertEqual(tokens, self.server.post("/tokenize", {"messages": messages})["tokens"])
        own = {"messages": messages, "chat_template": "Q: {{ messages[0].content }}\nA:"}
        self.assertEqual(self.server.post("/apply-template", own)["prompt"], "Q: Hi\nA:")

    def test_paths_need_no_version(self):
        chat = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 4, "temperature": 0}
        with_version, without = (self.server.post(p + "/chat/completions", chat) for p in ("/v1", ""))
        self.assertEqual(with_version["choices"], without["choices"])
        self.assertEqual(self.server.get("/models"), self.server.get("/v1/models"))

    def test_the_first_page(self):
        with Server("--ui", "off") as plain:
            for server in (self.server, plain):
                status, headers, page = server.request("GET", "/", headers={"Accept": "text/html"})
                self.assertEqual((status, headers["content-type"]), (200, "text/html; charset=utf-8"))
                self.assertEqual(b"/ui/" in page, server is self.server, "the web page, unless it is off")
                status, _, body = server.request("HEAD", "/")
                self.assertEqual((status, body), (200, b""))
            for link in ("/openapi.json", "/health", "/metrics", "/props"):
                self.assertIn(f'href="{link}"'.encode(), page)
                plain.get(link)

    def ask(self, **fields):
        answer = self.server.post("/v1/completions", {"prompt": PROMPT, "temperature": 0, "max_tokens": 12,
                                                      "return_token_ids": True, **fields})
        return answer["choices"][0]

    def test_words_and_tokens_are_bound(self):
        free = self.ask()
        word = max(free["text"].split(), key=len)
        self.assertNotIn(word, self.ask(bad_words=[word])["text"].split())
        allowed = sorted(set(free["token_ids"][:3]))
        bound = self.ask(allowed_token_ids=allowed)
        self.assertLessEqual(set(bound["token_ids"]), set(allowed))
        # Alone and among others the same.
        several = self.server.post("/v1/completions",
                                   {"prompt": [PROMPT] * 3, "temperature": 0, "max_tokens": 12, "bad_words": [word]})
        self.assertEqual(len({c["text"] for c in several["choices"]}), 1)
        self.assertEqual(several["choices"][0]["text"], self.ask(bad_words=[word])["text"])

    def test_prompt_logprobs_are_those_of_echo(self):
        choice = self.ask(prompt_logprobs=3, echo=True, logprobs=1, max_tokens=1)
        ids, entries = choice["prompt_token_ids"], choice["prompt_logprobs"]
        self.assertEqual(len(ids), len(entries))
        self.assertIsNone(entries[0])
        for i in range(1, len(ids)):
            own = entries[i][str(ids[i])]
            self.assertEqual(own["logprob"], choice["logprobs"]["token_logprobs"][i])
            ranks = sorted(e["rank"] for e in entries[i].values())
            self.assertEqual(ranks[:3], [1, 2, 3])
            better = [e for e in entries[i].values() if e["logprob"] > own["logprob"]]
            self.assertGreaterEqual(own["rank"], len(better) + 1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
