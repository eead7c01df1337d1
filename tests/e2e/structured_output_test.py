"""Answers bound to a form by the real server: every way to ask for one, streamed and not, several choices, many at
once."""
import json, os, re, threading, unittest

from weir_server import SOURCE, Server

PERSON = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 20},
                                           "age": {"type": "integer", "minimum": 0, "maximum": 150},
                                           "mood": {"enum": ["glad", "sad", None]},
                                           "tags": {"type": "array", "items": {"type": "string", "maxLength": 8},
                                                    "minItems": 1, "maxItems": 3}},
          "required": ["name", "age", "mood", "tags"], "additionalProperties": False}
TREE = {"$ref": "#/$defs/node", "$defs": {"node": {
    "type": "object", "properties": {"label": {"type": "string", "pattern": "^[a-z]{1,6}$"},
                                     "children": {"type": "array", "maxItems": 1, "items": {"$ref": "#/$defs/node"}}},
    "required": ["label", "children"], "additionalProperties": False}}}
GBNF = 'root ::= item item?\nitem ::= "- " [a-z]{1,8} "\\n"'
LARK = 'start: WORD ("," WORD)~1..3\nWORD: /[a-z]{1,6}/'


def is_person(text):
    value = json.loads(text)
    return (list(value) == ["name", "age", "mood",
                            "tags"] and len(value["name"]) <= 20 and type(value["age"]) is int and
            0 <= value["age"] <= 150 and value["mood"] in ("glad", "sad", None) and 1 <= len(value["tags"]) <= 3 and
            all(isinstance(tag, str) and len(tag) <= 8 for tag in value["tags"]))


def is_tree(text):
    node = json.loads(text)
    while True:
        if list(node) != ["label", "children"] or not re.fullmatch("[a-z]{1,6}",
                                                                   node["label"]) or len(node["children"]) > 1:
            return False
        if not node["children"]:
            return True
        node = node["children"][0]


def fits(pattern):
    return lambda text: re.fullmatch(pattern, text) is not None


# What is asked, what holds of a whole answer, and whether an answer may be longer than any limit.
CASES = {
    "json_object": ({"response_format": {"type": "json_object"}}, lambda text: isinstance(json.loads(text), dict),
                    True),
    "json_schema": ({"response_format": {"type": "json_schema",
                                         "json_schema": {"name": "person", "strict": True, "schema": PERSON}}},
                    is_person, False),
    "recursive": ({"response_format": {"type": "json_schema", "json_schema": {"name": "tree", "schema": TREE}}},
                  is_tree, True),
    "guided_json": ({"guided_json": PERSON}, is_person, False),
    "guided_json_text": ({"guided_json": json.dumps(PERSON)}, is_person, False),
    "guided_regex": ({"guided_regex": r"\d{3}-(north|south)( [A-F]{2}){0,4}"},
                     fits(r"\d{3}-(north|south)( [A-F]{2}){0,4}"), False),
    "guided_choice": ({"guided_choice": ["yes", "no", "perhaps so"]}, lambda text: text in ("yes", "no", "perhaps so"),
                      False),
    "guided_grammar": ({"guided_grammar": GBNF}, fits(r"(- [a-z]{1,8}\n){1,2}"), False),
    "guided_lark": ({"guided_grammar": LARK}, fits("[a-z]{1,6}(,[a-z]{1,6}){1,3}"), False),
    "structured_json": ({"structured_outputs": {"json": PERSON}}, is_person, False),
    "structured_regex": ({"structured_outputs": {"regex": "[01]{8}"}}, fits("[01]{8}"), False),
    "structured_choice": ({"structured_outputs": {"choice": ["é", "日本", "a b"]}},
                          lambda text: text in ("é", "日本", "a b"), False),
    "structured_grammar": ({"structured_outputs": {"grammar": GBNF}}, fits(r"(- [a-z]{1,8}\n){1,2}"), False),
    "grammar": ({"grammar": GBNF}, fits(r"(- [a-z]{1,8}\n){1,2}"), False),
    "json_schema_field": ({"json_schema": PERSON}, is_person, False),
}

# What is asked, and what the refusal must name.
REFUSED = {
    "keyword": ({"guided_json": {"type": "object", "dependentSchemas": {"a": {}}}}, "dependentSchemas"),
    "nested keyword": ({"response_format": {"type": "json_schema", "json_schema": {
        "name": "x", "schema": {"type": "array", "items": {"not": {"items": {}}}}}}}, "'not'"),
    "unknown keyword": ({"guided_json": {"type": "string", "maxlength": 3}}, "maxlength"),
    "format": ({"guided_json": {"type": "string", "format": "isbn"}}, "isbn"),
    "look-ahead": ({"guided_regex": "(?=a)b"}, "look"),
    "back-reference": ({"guided_regex": r"(a)\1"}, "reference"),
    "open bracket": ({"guided_regex": "[a"}, "']'"),
    "undefined rule": ({"grammar": "root ::= a b\na ::= \"x\""}, "'b'"),
    "nothing allowed": ({"guided_json": {"type": "integer", "minimum": 3, "maximum": 2}}, "no output"),
    "two forms": ({"guided_regex": "a", "guided_choice": ["b"]}, "guided_regex"),
    "deep": ({"guided_json": json.loads('{"items":' * 200 + "{}" + "}" * 200)}, "deep"),
    "catastrophic": ({"guided_regex": "(a|b)*a" + "(a|b)" * 60}, "complex"),
    "endless": ({"guided_json": {"$ref": "#/$defs/a", "$defs": {
        "a": {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "required": ["a"]}}}}, "no output"),
}


class StructuredOutput(unittest.TestCase):
    def on_every_model(self, check):
        with self.subTest(model="weir-tiny-moe"), Server() as server:
            check(server)
        folder = os.environ.get("WEIR_MODELS", f"{SOURCE}/../shared/models") + "/smollm2-135m-instruct-4bit"
        if os.path.exists(folder):
            with self.subTest(model="smollm2-135m-instruct-4bit"), Server("--model", folder) as server:
                check(server)

    def check_answer(self, case, text, reason):
        _, holds, endless = CASES[case]
        if reason == "length" and endless:
            return
        self.assertEqual(reason, "stop", (case, text))
        self.assertTrue(holds(text), (case, text))

    def body(self, case, **more):
        return {"messages": [{"role": "user", "content": "Tell me about somebody."}], "max_tokens": 300,
                **CASES[case][0], **more}

    def check_case(self, server, case, seed):
        answer = server.post("/v1/chat/completions", self.body(case, n=3, seed=seed))
        self.assertEqual(len(answer["choices"]), 3)
        for choice in answer["choices"]:
            self.check_answer(case, choice["message"]["content"], choice["finish_reason"])
        texts, reasons = ["", ""], [None, None]
        for event in server.stream("/v1/chat/completions", self.body(case, n=2, seed=seed, temperature=1.5)):
            for choice in event["choices"]:
                texts[choice["index"]] += choice["delta"].get("content") or ""
                reasons[choice["index"]] = choice["finish_reason"] or reasons[choice["index"]]
        for text, reason in zip(texts, reasons):
            self.check_answer(case, text, reason)
        prompt = {"prompt": "Somebody:\n", "max_tokens": 300, "temperature": 0, **CASES[case][0]}
        choice = server.post("/v1/completions", prompt)["choices"][0]
        self.check_answer(case, choice["text"], choice["finish_reason"])

    def test_answers_have_the_form_that_was_asked_for(self):
        def check(server):
            for seed, case in enumerate(CASES):
                self.check_case(server, case, seed)
        self.on_every_model(check)

    def test_a_seed_gives_the_same_answer_alone_and_among_others(self):
        def check(server):
            bodies = [self.body(case, seed=i) for i, case in enumerate(list(CASES) * 2)]
            answer = lambda body: server.post("/v1/chat/completions", body)["choices"][0]["message"]["content"]
            alone = [answer(body) for body in bodies]
            together = [None] * len(bodies)

            def run(i):
                together[i] = answer(bodies[i])

            threads = [threading.Thread(target=run, args=(i,)) for i in range(len(bodies))]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(alone, together)
        self.on_every_model(check)

    def test_what_cannot_be_kept_is_refused_by_name(self):
        with Server() as server:
            for case, (fields, named) in REFUSED.items():
                with self.subTest(case=case):
                    body = {"messages": [{"role": "user", "content": "x"}], "max_tokens": 4, **fields}
                    error = server.post("/v1/chat/completions", body, expect=400)["error"]
                    self.assertIn(named, error["message"])
                    self.assertTrue(error["param"].split(".")[0] in fields, error)


if __name__ == "__main__":
    unittest.main(verbosity=2)
