"""Reranking of the real server: any model judges with yes or no if told to; scores are the odds of the two words."""
import math, unittest

from weir_server import Server

QUERY = "a story about the sea"
DOCUMENTS = ["The old boat sailed out to sea.", "print(sum(range(10)))", "A cat sat on a mat.", "The sea told a story."]


class Rerank(unittest.TestCase):
    def test_scores_are_the_odds_of_the_two_words(self):
        with Server("--reranker", "yes-no") as server:
            scores = [item["score"] for item in server.post("/v1/score",
                                                            {"text_1": QUERY, "text_2": DOCUMENTS})["data"]]
            answer = server.post("/v1/rerank", {"query": QUERY, "documents": DOCUMENTS, "return_documents": True})
            self.assertEqual([r["index"] for r in answer["results"]], sorted(range(4), key=lambda i: -scores[i]))
            for result in answer["results"]:
                self.assertEqual(result["relevance_score"], scores[result["index"]],
                                 "alone and among others the same bits")
                self.assertEqual(result["document"]["text"], DOCUMENTS[result["index"]])
            self.assertEqual(len(server.post("/rerank",
                                             {"query": QUERY, "documents": DOCUMENTS, "top_n": 2})["results"]), 2)
            for i, document in enumerate(DOCUMENTS):
                self.assertEqual(server.post("/v1/score", {"text_1": QUERY, "text_2": document})["data"][0]["score"],
                                 scores[i])
                self.assertAlmostEqual(self.odds_of_words(server, document), scores[i], places=5)

    def odds_of_words(self, server, document):
        """From the log-probabilities of both words after the same conversation, each made certain by a bias."""
        system = ('You are given an instruction, a query and a document. Does the document meet what the instruction '
                  'and the query ask for? '
                  'Answer "yes" or "no" and nothing else.')
        user = ("<Instruct>: Find the passages that answer the query.\n"
                f"<Query>: {QUERY}\n<Document>: {document}")
        logprobs = []
        for word in (" yes", " no"):  # One token each in this vocabulary; without the space they are not.
            (token,) = server.post("/tokenize", {"content": word})["tokens"]
            answer = server.post("/v1/chat/completions", {
                "messages": [{"role": "system", "content": system}, {"role": "user", "content": user}], "max_tokens": 1,
                "temperature": 0, "logprobs": True, "logit_bias": {str(token): 100}, "enable_thinking": False})
            (entry,) = answer["choices"][0]["logprobs"]["content"]
            self.assertEqual(entry["token"], word)
            logprobs.append(entry["logprob"])
        return 1 / (1 + math.exp(logprobs[1] - logprobs[0]))

    def test_a_model_that_is_none_says_so(self):
        with Server() as server:
            error = server.post("/v1/rerank", {"query": QUERY, "documents": DOCUMENTS}, expect=400)["error"]
            self.assertEqual(error["code"], "unsupported_endpoint")
            self.assertIn("--reranker yes-no", error["message"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
