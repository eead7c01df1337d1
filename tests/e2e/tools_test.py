"""Calls of functions and reasoning by the real server: required, named, allowed and free ones, streamed and not, in
both APIs of functions, in several formats. The model is tiny and calls nothing by itself, so what holds here is what
the server makes certain."""
import glob, json, os, re, tempfile, unittest

from weir_server import SOURCE, Server

WEATHER = {"type": "object", "properties": {"city": {"type": "string", "maxLength": 12},
                                            "days": {"type": "integer", "minimum": 1, "maximum": 9},
                                            "unit": {"enum": ["C", "F"]}}, "required": ["city", "days", "unit"],
           "additionalProperties": False}
TIME = {"type": "object", "properties": {"zone": {"type": "string", "enum": ["UTC", "CET"]}}, "required": ["zone"],
        "additionalProperties": False}


def tool(name, parameters=None, **more):
    return {"type": "function",
            "function": {"name": name, **({"parameters": parameters} if parameters else {}), **more}}


TOOLS = [tool("get_weather", WEATHER, description="The weather."), tool("get_time", TIME, strict=True), tool("ping")]
FITS = {"get_weather": lambda a: list(a) == ["city", "days",
                                             "unit"] and len(a["city"]) <= 12 and 1 <= a["days"] <= 9
        and a["unit"] in "CF",
        "get_time": lambda a: a in ({"zone": "UTC"}, {"zone": "CET"}), "ping": lambda a: a == {}}

# Templates in which nothing but the format differs; %s is what shows it.
TEMPLATE = ("{%% for m in messages %%}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{%% endfor %%}{%% if tools "
            "%%}{{ tools | length }}"
            "{%% endif %%}{%% if false %%}%s{%% endif %%}<|im_start|>assistant\n%s")
FORMATS = ["<tool_call>", "<function=</function>", "<function=<parameter=", "<arg_key>", "[TOOL_CALLS]",
           "[TOOL_CALLS][ARGS]", "<｜tool▁calls▁begin｜>",
           "<｜tool▁calls▁begin｜>```json", "<|tool_calls_section_begin|>", "<|tool_call|>", "<|tool_call>",
           "<|channel|><|message|>", "nothing",
           "<|start_header_id|> \"parameters\"", "<|START_ACTION|>", "<TOOLCALL>", "<tool_calls>", "functools[",
           "<minimax:tool_call>", "<|tool_list_start|>"]


def holds(value, schema):
    """Types, enums, members and items, as far as they stand in the schema itself."""
    types = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int, "number": (int, float)}
    known = [types[t] for t in [schema["type"]] if t in types] if isinstance(schema.get("type"), str) else [object]
    if value is None and schema.get("nullable"):
        return True
    if not isinstance(value,
                      tuple(known)) or ("enum" in schema and value not in schema["enum"]) or ("const" in schema and value != schema["const"]):
        return False
    if isinstance(value, list):
        return all(holds(item, schema.get("items", {})) for item in value)
    if not isinstance(value, dict):
        return True
    required, members = schema.get("required", []), schema.get("properties", {})
    return all(name in value for name in required if isinstance(required,
                                                                list)) and all(holds(value[n], s) for n,
                                                                               s in members.items() if n in value)


def put_together(body):
    """A stream's deltas as a message, strictly: what a client that adds strings makes of them."""
    message, finish = {"role": None, "content": "", "reasoning": "", "calls": []}, None
    for line in body.decode().split("\n\n"):
        if not line.startswith("data: {"):
            continue
        choice = json.loads(line[6:])["choices"][0]
        delta, finish = choice["delta"], choice["finish_reason"] or finish
        message["role"] = delta.get("role", message["role"])
        message["content"] += delta.get("content") or ""
        message["reasoning"] += delta.get("reasoning_content") or ""
        assert delta.get("reasoning") == delta.get("reasoning_content")
        for call in delta.get("tool_calls", []):
            if call["index"] == len(message["calls"]):
                assert call["id"] and call["type"] == "function" and call["function"]["arguments"] == ""
                message["calls"].append({"id": call["id"], "name": call["function"]["name"], "arguments": "",
                                         "pieces": 0})
            else:
                assert set(call) == {"index", "function"} and set(call["function"]) == {"arguments"}, call
                message["calls"][call["index"]]["arguments"] += call["function"]["arguments"]
                message["calls"][call["index"]]["pieces"] += 1
    return message, finish


class Tools(unittest.TestCase):
    def chat(self, server, seed=1, **more):
        body = {"messages": [{"role": "user", "content": "What is the weather in Bern?"}], "max_tokens": 300,
                "seed": seed, "tools": TOOLS, **more}
        status, _, answer = server.request("POST", "/v1/chat/completions", body)
        self.assertEqual(status, 200, answer[:400])
        return answer

    def both(self, server, **more):
        """The same answer, whole and streamed."""
        choice = json.loads(self.chat(server, **more))["choices"][0]
        message, finish = put_together(self.chat(server, stream=True, **more))
        calls = [(c["function"]["name"], c["function"]["arguments"]) for c in choice["message"].get("tool_calls", [])]
        self.assertEqual(calls, [(c["name"], c["arguments"]) for c in message["calls"]])
        self.assertEqual(choice["message"]["content"] or "", message["content"])
        self.assertEqual(choice["finish_reason"], finish)
        return choice, message

    def check_calls(self, choice, names):
        calls = choice["message"]["tool_calls"]
        self.assertEqual(len({c["id"] for c in calls}), len(calls))
        whole = calls if choice["finish_reason"] == "tool_calls" else calls[:-1]
        for call in whole:
            self.assertIn(call["function"]["name"], names)
            self.assertTrue(FITS[call["function"]["name"]](json.loads(call["function"]["arguments"])), call)
        return len(whole)

    def test_forced_calls(self):
        named = {"type": "function", "function": {"name": "get_weather"}}
        allowed = {"type": "allowed_tools",
                   "allowed_tools": {"mode": "required",
                                     "tools": [{"type": "function", "function": {"name": "get_time"}}]}}
        with Server() as server:
            pieces = 0
            for seed in range(8):
                choice, message = self.both(server, seed=seed, tool_choice="required", parallel_tool_calls=False)
                self.assertEqual(choice["finish_reason"], "tool_calls")
                self.assertIsNone(choice["message"]["content"])
                self.assertEqual(self.check_calls(choice, FITS), 1)
                pieces = max(pieces, message["calls"][0]["pieces"])
                choice, _ = self.both(server, seed=seed, tool_choice="required")
                self.assertGreaterEqual(self.check_calls(choice, FITS), 1)
                choice, _ = self.both(server, seed=seed, tool_choice=named)
                self.assertEqual(self.check_calls(choice, ["get_weather"]), 1)
                choice, _ = self.both(server, seed=seed, tool_choice=allowed, parallel_tool_calls=False)
                self.assertEqual(self.check_calls(choice, ["get_time"]), 1)
            self.assertGreater(pieces, 3, "arguments come as they are made")

    def test_free_answers_and_older_names(self):
        with Server() as server:
            for choice in ("auto", "none"):
                answer, _ = self.both(server, tool_choice=choice)
                self.assertTrue(answer["message"]["content"])
                self.assertIn(answer["finish_reason"], ("stop", "length"))
            # Without tools there is nothing to require.
            self.assertTrue(json.loads(self.chat(server, tools=[],
                                                 tool_choice="required"))["choices"][0]["message"]["content"])
            answer = json.loads(self.chat(server, tools=[], functions=[TOOLS[1]["function"]],
                                          function_call={"name": "get_time"}))["choices"][0]
            self.assertEqual(answer["finish_reason"], "function_call")
            self.assertTrue(FITS["get_time"](json.loads(answer["message"]["function_call"]["arguments"])))

    def test_what_begins_as_a_call_ends_as_one(self):
        """The model is made to write the marker: what comes after it is a call of a function that there is."""
        with Server() as server:
            marker = json.loads(server.request("POST", "/tokenize",
                                               {"content": "<tool_call>", "add_special": False})[2])["tokens"]
            found = 0
            for seed in range(6):
                answer, _ = self.both(server, seed=seed, max_tokens=400,
                                      logit_bias={str(marker[0]): 30} if len(marker) == 1 else {})
                for call in answer["message"].get("tool_calls", []):
                    self.assertIn(call["function"]["name"], FITS)
                    found += 1
            if len(marker) == 1:
                self.assertGreater(found, 0)

    def test_refusals(self):
        strict = tool("f", {"type": "object", "properties": {"a": {"not": {"items": {"type": "string"}}}}}, strict=True)
        refused = [({"tool_choice": {"type": "function", "function": {"name": "other"}}}, "tool_choice"),
                   ({"tool_choice": "sometimes"}, "tool_choice"),
                   ({"tools": [tool("a b")]}, "tools[0].function.name"),
                   ({"tools": [strict], "tool_choice": "required"}, "tools")]
        with Server() as server:
            for more, param in refused:
                status, _, body = server.request("POST", "/v1/chat/completions",
                                                 {"messages": [{"role": "user", "content": "x"}], "tools": TOOLS,
                                                  **more})
                self.assertEqual((status, json.loads(body)["error"]["param"]), (400, param), body)

    def test_schemas_of_tool_servers(self):
        """What can be enforced holds, required and named; what cannot is named, and refused where the function is
        strict."""
        tools = []
        for path in sorted(glob.glob(f"{SOURCE}/tests/data/tool_schemas/*.json")):
            with open(path) as file:
                tools += json.load(file)
        self.assertGreater(len(tools), 200)
        with Server("--ctx-size", "2048") as server:
            named = 0
            for index, shown in enumerate(tools[::7]):
                function = {"name": shown["name"], "parameters": shown["parameters"]}
                choice = "required" if index % 2 else {"type": "function", "function": {"name": shown["name"]}}
                body = {"messages": [{"role": "user", "content": "Go on."}],
                        "tools": [{"type": "function", "function": function}],
                        "tool_choice": choice, "parallel_tool_calls": False, "max_tokens": 600, "seed": index}
                status, headers, answer = server.request("POST", "/v1/chat/completions", body)
                self.assertEqual(status, 200, answer)
                ignored = headers.get("x-weir-ignored", "")
                answer = json.loads(answer)["choices"][0]
                if answer["finish_reason"] != "length":
                    arguments = json.loads(answer["message"]["tool_calls"][0]["function"]["arguments"])
                    self.assertTrue(holds(arguments, function["parameters"]), (function, arguments, ignored))
                function["strict"] = True
                status, _, answer = server.request("POST", "/v1/chat/completions", {**body, "max_tokens": 1})
                self.assertEqual(status, 400 if ignored else 200, (ignored, answer))
                if ignored:
                    self.assertIn("tools[0].function.parameters: ", ignored)
                    named += 1
            self.assertGreater(named, 5)

    def test_every_format(self):
        for shown in FORMATS:
            with self.subTest(format=shown), tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "template.jinja")
                with open(path, "w") as file:
                    file.write(TEMPLATE % ("{# " + shown + " #}", ""))
                with Server("--chat-template", path) as server:
                    for seed in range(2):
                        choice, _ = self.both(server, seed=seed, tool_choice="required", parallel_tool_calls=False)
                        # A model may think first, and this one knows no end of it.
                        if choice["finish_reason"] == "length":
                            self.assertTrue(choice["message"]["reasoning_content"])
                            continue
                        self.assertEqual((choice["finish_reason"], self.check_calls(choice, FITS)), ("tool_calls", 1))
                        ids = [c["id"] for c in choice["message"]["tool_calls"]]
                        if "TOOL_CALLS" in shown:
                            self.assertTrue(all(re.fullmatch("[a-zA-Z0-9]{9}", i) for i in ids), ids)
                    choice, _ = self.both(server, tool_choice="auto", max_tokens=40)
                    self.assertNotEqual(choice["finish_reason"], "tool_calls")

    def test_reasoning(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "template.jinja")
            with open(path, "w") as file:
                file.write(TEMPLATE % ("{# </think> #}", "<think>\n"))
            form = {"type": "json_schema", "json_schema": {"name": "time", "schema": TIME}}
            with Server("--chat-template", path) as server:
                choice, message = self.both(server, max_tokens=30)
                self.assertEqual((choice["message"]["content"], choice["finish_reason"]), ("", "length"))
                self.assertEqual(choice["message"]["reasoning_content"], choice["message"]["reasoning"])
                self.assertEqual(choice["message"]["reasoning_content"].strip(), message["reasoning"].strip())
                usage = json.loads(self.chat(server, max_tokens=30))["usage"]
                self.assertEqual(usage["completion_tokens_details"]["reasoning_tokens"], 30)
                shown = json.loads(self.chat(server, max_tokens=30, reasoning_format="none"))["choices"][0]["message"]
                self.assertTrue(shown["content"])
                self.assertNotIn("reasoning_content", shown)
                # The form holds after the reasoning, which is made to end by what is likely.
                end = json.loads(server.request("POST", "/tokenize",
                                                {"content": "</think>", "add_special": False})[2])["tokens"]
                answer = json.loads(self.chat(server, tools=[], response_format=form, max_tokens=400,
                                              logit_bias={str(i): 30 for i in end}))["choices"][0]
                if answer["finish_reason"] == "stop":
                    self.assertTrue(FITS["get_time"](json.loads(answer["message"]["content"])))


if __name__ == "__main__":
    unittest.main(verbosity=2)
