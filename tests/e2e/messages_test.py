"""Anthropic's Messages API of the real server: answers, events read strictly, tools, and what Claude Code sends."""
import json, threading, unittest

from weir_server import Server

MODEL = "weir-tiny-moe"
HEADERS = {"anthropic-version": "2023-06-01", "anthropic-beta": "interleaved-thinking-2025-05-14"}
TOOLS = [{"name": "get_weather", "description": "The weather of a city.",
          "input_schema": {"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
                           "properties": {"city": {"type": "string", "maxLength": 12}, "days": {"type": "integer"}},
                           "required": ["city"], "additionalProperties": False}},
         {"name": "now", "input_schema": {"type": "object", "properties": {}}}]
DELTAS = {"text": ("text_delta", "text"), "thinking": ("thinking_delta", "thinking"),
          "tool_use": ("input_json_delta", "partial_json")}


def body(content="Tell me a story.", **more):
    return {"model": MODEL, "max_tokens": 24, "temperature": 0, "messages": [{"role": "user", "content": content}],
            **more}


def read_events(data):
    """(name, data) of each event: two lines and an empty one, nothing else."""
    text = data.decode()
    assert text.endswith("\n\n"), text[-100:]
    events = []
    for event in text[:-2].split("\n\n"):
        name, line = event.split("\n")
        assert name.startswith("event: ") and line.startswith("data: {"), event
        parsed = json.loads(line[6:])
        assert parsed["type"] == name[7:], event
        if name != "event: ping":
            events.append(parsed)
    return events


def put_together(events):
    """The message that the events say, as an SDK adds them up; any event out of its order is an error."""
    assert events[0]["type"] == "message_start", events[0]
    message, block, buffer = events[0]["message"], None, ""
    assert message["content"] == [] and message["stop_reason"] is None, message
    for i, event in enumerate(events[1:], 1):
        kind = event["type"]
        if kind == "content_block_start":
            assert block is None and event["index"] == len(message["content"]), event
            block, buffer = event["content_block"], ""
            assert block.get("input", {}) == {} and not block.get("text") and not block.get("thinking"), event
            message["content"].append(block)
        elif kind == "content_block_delta":
            assert block is not None and event["index"] == len(message["content"]) - 1, event
            if event["delta"]["type"] == "signature_delta":
                assert block["type"] == "thinking"
                continue
            name, member = DELTAS[block["type"]]
            assert event["delta"]["type"] == name, event
            if block["type"] == "tool_use":
                buffer += event["delta"][member]
            else:
                block[member] += event["delta"][member]
        elif kind == "content_block_stop":
            assert block is not None and event["index"] == len(message["content"]) - 1, event
            if block["type"] == "tool_use":
                block["input"] = json.loads(buffer or "{}")
            block = None
        elif kind == "message_delta":
            assert block is None and i == len(events) - 2, event
            message.update(event["delta"])
            message["usage"].update(event["usage"])
        else:
            assert kind == "message_stop" and i == len(events) - 1, event
    assert message["stop_reason"] is not None
    return message


def post(server, request, path="/v1/messages?beta=true", expect=200):
    status, headers, data = server.request("POST", path, request, HEADERS)
    assert status == expect, (status, data)
    assert headers["request-id"] == headers["x-request-id"]
    return json.loads(data)


def stream(server, request):
    status, headers, data = server.request("POST", "/v1/messages", {**request, "stream": True}, HEADERS)
    assert status == 200 and headers["content-type"].startswith("text/event-stream"), (status, data)
    return put_together(read_events(data))


def same(a, b):
    """Equal but for what is random, and for what a cached prompt changes."""
    def known(message):
        message = json.loads(json.dumps(message))
        usage = message["usage"]
        for block in message["content"]:
            if block["type"] == "tool_use":
                assert block.pop("id").startswith("toolu_")
        assert message.pop("id").startswith("msg_")
        usage["input_tokens"] += usage.pop("cache_read_input_tokens") + usage["cache_creation_input_tokens"]
        return message
    return known(a) == known(b)


class Messages(unittest.TestCase):
    def setUp(self):
        self.context = Server("--compute", "exact")
        self.server = self.context.__enter__()
        self.addCleanup(self.context.__exit__, None, None, None)

    def test_whole_and_streamed_answers_agree_with_chat(self):
        whole = post(self.server,
                     body(system=[{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]))
        self.assertEqual((whole["type"], whole["role"], whole["model"]), ("message", "assistant", MODEL))
        streamed = stream(self.server, body(system="Be brief."))
        self.assertTrue(same(whole, streamed), (whole, streamed))
        chat = self.server.post("/v1/chat/completions", {
            "model": MODEL, "max_tokens": 24, "temperature": 0,
            "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Tell me a story."}]})
        self.assertEqual("".join(b["text"] for b in whole["content"]), chat["choices"][0]["message"]["content"])
        usage = whole["usage"]
        self.assertEqual(usage["input_tokens"] + usage["cache_read_input_tokens"], chat["usage"]["prompt_tokens"])
        self.assertEqual(usage["output_tokens"], chat["usage"]["completion_tokens"])
        self.assertEqual(whole["stop_reason"],
                         {"length": "max_tokens", "stop": "end_turn"}[chat["choices"][0]["finish_reason"]])
        counted = post(self.server, {"model": MODEL, "system": "Be brief.", "messages": body()["messages"]},
                       "/v1/messages/count_tokens")
        self.assertEqual(counted, {"input_tokens": chat["usage"]["prompt_tokens"]})

    def test_stop_sequences_say_which(self):
        text = post(self.server, body(max_tokens=40))["content"][0]["text"]
        stop = text[len(text) // 2: len(text) // 2 + 4]
        for answer in (post(self.server, body(max_tokens=40, stop_sequences=["never seen", stop])),
                       stream(self.server, body(max_tokens=40, stop_sequences=[stop]))):
            self.assertEqual((answer["stop_reason"], answer["stop_sequence"]), ("stop_sequence", stop))
            self.assertEqual("".join(b["text"] for b in answer["content"]), text[:text.index(stop)])

    def test_the_last_words_of_the_assistant_are_continued(self):
        messages = [{"role": "user", "content": "Tell me a story."}]
        text = post(self.server, body(max_tokens=30))["content"][0]["text"]
        begun = text[:text.index(" ", len(text) // 3)]
        more = post(self.server,
                    {**body(max_tokens=8), "messages": messages + [{"role": "assistant", "content": begun}]})
        self.assertEqual(text[:len(begun) + 8], (begun + more["content"][0]["text"])[:len(begun) + 8])

    def test_forced_calls_are_valid(self):
        for choice, names in (({"type": "any"}, {"get_weather", "now"}),
                              ({"type": "tool", "name": "get_weather"}, {"get_weather"})):
            request = body(tools=TOOLS, tool_choice={**choice, "disable_parallel_tool_use": True}, max_tokens=200)
            whole, streamed = post(self.server, request), stream(self.server, request)
            self.assertTrue(same(whole, streamed), (whole, streamed))
            self.assertEqual(whole["stop_reason"], "tool_use", whole)
            (call,) = [b for b in whole["content"] if b["type"] == "tool_use"]
            self.assertIn(call["name"], names)
            self.assertIsInstance(call["input"], dict)
            if call["name"] == "get_weather":
                self.assertIsInstance(call["input"]["city"], str)

    def test_a_schema_binds_the_answer(self):
        schema = {"type": "object", "properties": {"a": {"type": "integer", "minimum": 0, "maximum": 9}},
                  "required": ["a"], "additionalProperties": False}
        answer = post(self.server,
                      body(output_config={"format": {"type": "json_schema", "schema": schema}}, max_tokens=60))
        self.assertIn(json.loads(answer["content"][0]["text"])["a"], range(10))

    def test_what_claude_code_sends(self):
        """System blocks, many tools, thinking, results beside texts, turns of one role in a row; and a cached
        prefix."""
        tools = [{"name": f"Tool{i}", "description": "Does things. " * 5, "input_schema": {
            "$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "additionalProperties": False,
            "properties": {"path": {"type": "string", "description": "Where."},
                           "limit": {"type": "number", "exclusiveMinimum": 0}},
            "required": ["path"]}} for i in range(8)]

        def request(number, *more):
            return {"model": MODEL, "max_tokens": 32000, "stream": True, "temperature": 1, "tools": tools,
                    "thinking": {"type": "enabled", "budget_tokens": 31999},
                    "metadata": {"user_id": "user_0_account__session_1"},
                    "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
                    "system": [{"type": "text",
                                "text": f"x-anthropic-billing-header: cc_version=2.1; cch={number:05x};"},
                               {"type": "text", "text": "You are an agent.", "cache_control": {"type": "ephemeral"}},
                               {"type": "text", "text": "\nTools are there to be used. " * 20,
                                "cache_control": {"type": "ephemeral"}}],
                    "messages": [{"role": "user", "content": [{"type": "text",
                                                               "text": "<system-reminder>x</system-reminder>"},
                                                              {"type": "text", "text": "Read the file.",
                                                               "cache_control": {"type": "ephemeral"}}]},
                                 *more]}

        def usage(number, *more):
            # The story may be long: leave when it begins.
            with self.server.socket() as s:
                data = json.dumps(request(number, *more)).encode()
                s.sendall(b"POST /v1/messages?beta=true HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                          b"application/json\r\n"
                          b"x-api-key: none\r\nContent-Length: %d\r\n\r\n" % len(data) + data)
                got = b""
                while b"\n\n" not in got.partition(b"message_start")[2]:
                    part = s.recv(65536)
                    self.assertTrue(part, got)
                    got += part
                self.assertIn(b"200 OK", got)
                return json.loads(got.partition(b"data: ")[2].partition(b"\n\n")[0])["message"]["usage"]

        first = usage(1)
        turns = [{"role": "assistant", "content": [
                    {"type": "thinking", "thinking": "I read it.", "signature": ""},
                    {"type": "text", "text": "I read."},
                    {"type": "tool_use", "id": "toolu_1", "name": "Tool1", "input": {"path": "a"}},
                    {"type": "tool_use", "id": "toolu_2", "name": "Tool2", "input": {"path": "b"}}]},
                 {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "toolu_1",
                     "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]},
                    {"type": "tool_result", "tool_use_id": "toolu_2", "content": "no such file", "is_error": True},
                    {"type": "text", "text": "<system-reminder>y</system-reminder>"}]},
                 {"role": "user", "content": "Go on."}]
        second = usage(2, *turns)
        self.assertGreater(second["cache_read_input_tokens"],
                           0.5 * sum(first[k] for k in ("input_tokens", "cache_read_input_tokens")))

    def test_errors(self):
        error = post(self.server, {**body(), "max_tokens": None}, expect=400)
        self.assertEqual((error["type"], error["error"]["type"]), ("error", "invalid_request_error"))
        self.assertIn("max_tokens", error["error"]["message"])
        self.assertTrue(error["request_id"])
        self.assertEqual(post(self.server, {**body(), "model": "claude-none"}, expect=404)["error"]["type"],
                         "not_found_error")
        long = post(self.server, body("word " * 200_000), expect=400)["error"]
        self.assertRegex(long["message"], r"^prompt is too long: \d+ tokens > \d+ maximum$")
        image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
        refused = post(self.server, body([{"type": "text", "text": "?"}, image]), expect=400)["error"]
        self.assertIn("messages[0].content[1]", refused["message"])
        refused = post(self.server, body(tools=[{"type": "web_search_20250305", "name": "web_search"}]),
                       expect=400)["error"]
        self.assertIn("web_search_20250305", refused["message"])

    def test_many_at_once_say_what_one_says(self):
        alone = [post(self.server, body(f"Count to {i}.")) for i in range(8)]
        found = [None] * 8

        def run(i):
            found[i] = (stream if i % 2 else post)(self.server, body(f"Count to {i}."))

        threads = [threading.Thread(target=run, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for a, b in zip(alone, found):
            self.assertTrue(same(a, b), (a, b))


if __name__ == "__main__":
    unittest.main(verbosity=2)
