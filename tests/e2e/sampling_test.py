"""How tokens are sampled where nobody says, llama.cpp's samplers, a budget of reasoning, and timings."""
import json, os, shutil, tempfile, threading, unittest

from weir_server import SOURCE, Server, text_of

MODEL = f"{SOURCE}/models/weir-tiny-moe"
CHAT = "/v1/chat/completions"
PROMPT = {"messages": [{"role": "user", "content": "Tell me a story about a fox."}]}
LLAMA = {"dry_multiplier": 0.8, "dry_penalty_last_n": -1, "xtc_probability": 0.5, "xtc_threshold": 0.05,
         "top_n_sigma": 2, "dynatemp_range": 0.4, "repeat_last_n": 64}
# The answer begins in the middle of a thought.
THINKING = ("{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
            "<|im_start|>assistant\n{% if enable_thinking is defined and not enable_thinking %}"
            "<think>\n\n</think>\n\n{% else %}<think>\n{% endif %}")


def content(answer):
    return answer["choices"][0]["message"]["content"]


def at_once(calls):
    results = [None] * len(calls)
    threads = [threading.Thread(target=lambda i=i: results.__setitem__(i, calls[i]())) for i in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


class Defaults(unittest.TestCase):
    def test_each_number_comes_from_who_names_it(self):
        with Server("--temp", "0.4") as server:
            self.assertIn("sampling temperature=0.4 (command line) top_p=0.9 repeat_penalty=1.1 "
                          "(generation_config.json) top_k=40 min_p=0.05 (default)", server.logged())
            params = json.loads(server.get("/props"))["default_generation_settings"]["params"]
            for name, value in {"temperature": 0.4, "top_p": 0.9, "repeat_penalty": 1.1, "top_k": 40, "min_p": 0.05,
                                "dry_multiplier": 0, "dry_base": 1.75, "xtc_threshold": 0.1}.items():
                self.assertEqual(params[name], value, name)
            explicit = {"temperature": 0.4, "top_p": 0.9, "repetition_penalty": 1.1, "top_k": 40, "min_p": 0.05}
            body = {**PROMPT, "seed": 3, "max_tokens": 40}
            said, unsaid = (content(server.post(CHAT, {**body, **more})) for more in (explicit, {}))
            self.assertEqual(said, unsaid)
            self.assertNotEqual(said, content(server.post(CHAT, {**body, "temperature": 1, "top_k": 0, "top_p": 1,
                                                                 "min_p": 0, "repetition_penalty": 1})))

    def test_a_checkpoint_that_says_nothing_is_sampled_as_llama_server_samples(self):
        for said, temperature in ((None, 0.8), ({"do_sample": False, "eos_token_id": [8187]}, 0)):
            with tempfile.TemporaryDirectory() as folder:
                for name in os.listdir(MODEL):
                    if name != "generation_config.json":
                        os.symlink(f"{MODEL}/{name}", f"{folder}/{name}")
                if said:
                    with open(f"{folder}/generation_config.json", "w") as file:
                        json.dump(said, file)
                with Server("--model", folder) as server:
                    params = json.loads(server.get("/props"))["default_generation_settings"]["params"]
                    self.assertEqual([params[name] for name in ("temperature", "top_k", "top_p", "min_p")],
                                     [temperature, 40, 0.95, 0.05])


class Samplers(unittest.TestCase):
    def test_llama_cpps_samplers_give_the_same_alone_and_among_others(self):
        bodies = [{**PROMPT, **LLAMA, "max_tokens": 60, "seed": i, "temperature": 1} for i in range(16)]
        with Server() as server:
            alone = [content(server.post(CHAT, body)) for body in bodies]
            together = at_once([lambda body=body: content(server.post(CHAT, body)) for body in bodies])
            self.assertEqual(alone, together)
            self.assertGreater(len(set(alone)), 8)

    def test_dry_ends_a_loop(self):
        body = {"prompt": "one two one two one two one two one two", "max_tokens": 60, "temperature": 0,
                "repetition_penalty": 1, "logit_bias": {}}
        with Server() as server:
            plain = server.post("/v1/completions", body)["choices"][0]["text"]
            dry = server.post("/v1/completions", {**body, "dry_multiplier": 5, "dry_penalty_last_n": -1,
                                                  "dry_sequence_breakers": []})["choices"][0]["text"]
            self.assertNotEqual(plain, dry)
            words = dry.split()
            triples = [tuple(words[i:i + 4]) for i in range(len(words) - 3)]
            self.assertEqual(len(triples), len(set(triples)), dry)


class Budget(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.template = f"{self.folder}/template.jinja"
        with open(self.template, "w") as file:
            file.write(THINKING)

    def test_reasoning_ends_after_as_many_tokens_as_are_allowed(self):
        body = {**PROMPT, "max_tokens": 60, "seed": 1, "temperature": 0.7, "reasoning_budget_message": " Done."}
        with Server("--chat-template", self.template) as server:
            def tokens(text):
                return len(server.post("/tokenize", {"content": text, "add_special": False})["tokens"])

            # The model does not end its thoughts by itself.
            end = server.post("/tokenize", {"content": "</think>", "add_special": False})["tokens"]
            body.update(ignore_eos=True, logit_bias={str(token): -100 for token in end})
            closing = tokens(" Done.") + len(end)
            for budget in (1, 7, 20):
                for more in ({"reasoning_budget": budget}, {"thinking_token_budget": budget},
                             {"reasoning_budget": budget, "logprobs": True},
                             {"reasoning_budget": budget, "guided_choice": ["red", "blue"]}):
                    answer = server.post(CHAT, {**body, **more})
                    message = answer["choices"][0]["message"]
                    self.assertTrue(message["reasoning_content"].endswith(" Done."), message)
                    details = answer["usage"]["completion_tokens_details"]
                    self.assertEqual(details["reasoning_tokens"], budget + closing, (more, message))
                    if "guided_choice" in more:
                        self.assertIn(message["content"], ("red", "blue"))
                    events = server.stream(CHAT, {**body, **more})
                    self.assertEqual(text_of(events), message["content"])
                    self.assertEqual("".join(c["delta"].get("reasoning_content") or "" for e in events for c in e["choices"]),
                                     message["reasoning_content"])
            free = server.post(CHAT, {**body, "max_tokens": 20})
            self.assertEqual(free["usage"]["completion_tokens_details"]["reasoning_tokens"], 20)
            none = server.post(CHAT, {**body, "reasoning_budget": 0})
            self.assertEqual(none["usage"]["completion_tokens_details"]["reasoning_tokens"], 0)
            budgets = [{**body, "reasoning_budget": i} for i in range(1, 17)]
            alone = [server.post(CHAT, b)["choices"] for b in budgets]
            self.assertEqual(alone, at_once([lambda b=b: server.post(CHAT, b)["choices"] for b in budgets]))

    def test_the_servers_budget_and_message_hold_for_those_who_say_nothing(self):
        with Server("--chat-template", self.template, "--reasoning-budget", "5", "--reasoning-budget-message",
                    " Well.") as server:
            message = server.post(CHAT, {**PROMPT, "max_tokens": 40})["choices"][0]["message"]
            self.assertTrue(message["reasoning_content"].endswith(" Well."), message)
            answer = server.post("/v1/messages", {**PROMPT, "max_tokens": 40, "model": "weir-tiny-moe",
                                                  "thinking": {"type": "enabled", "budget_tokens": 3}})
            self.assertTrue(answer["content"][0]["thinking"].endswith(" Well."), answer)


class Timings(unittest.TestCase):
    def test_answers_say_how_long_they_took(self):
        with Server() as server:
            body = {**PROMPT, "max_tokens": 12, "seed": 1}
            answer = server.post(CHAT, body)
            timings, usage = answer["timings"], answer["usage"]
            self.assertEqual(timings["cache_n"] + timings["prompt_n"], usage["prompt_tokens"])
            self.assertEqual(timings["predicted_n"], usage["completion_tokens"])
            self.assertGreater(timings["prompt_ms"], 0)
            self.assertAlmostEqual(timings["predicted_per_token_ms"], timings["predicted_ms"] / timings["predicted_n"],
                                   6)
            events = server.stream(CHAT, body)
            self.assertEqual([i for i, event in enumerate(events) if "timings" in event], [len(events) - 1])
            each = server.stream(CHAT, {**body, "timings_per_token": True})
            self.assertTrue(all("timings" in event for event in each[1:]))

    def test_progress_of_a_prompt_is_told_while_it_is_computed(self):
        with Server("--prefill-size", "64") as server:
            events = server.stream("/v1/completions",
                                   {"prompt": "word " * 900, "max_tokens": 2, "return_progress": True})
            told = [event["prompt_progress"] for event in events if "prompt_progress" in event]
            self.assertGreater(len(told), 1)
            self.assertEqual(told, sorted(told, key=lambda p: p["processed"]))
            self.assertEqual(told[-1]["processed"], told[-1]["total"])
            self.assertTrue(all("prompt_progress" in event for event in events[:len(told)]))


if __name__ == "__main__":
    unittest.main()
