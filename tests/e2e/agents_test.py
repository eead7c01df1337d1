"""What coding agents send (tests/data/agents, recorded by coding_agents_test.py and trimmed) against the real server:
every request is answered, and the tool that the proxy names is called as the agent knows it."""
import glob, json, os, unittest

from forcing_proxy import APIS, force, results_of
from weir_server import SOURCE, Server

LAST = {"/v1/responses": ("response.completed", "response.incomplete"), "/v1/messages": ("message_stop",)}


def events_of(data):
    return [json.loads(line[len("data: "):]) for line in data.decode().splitlines() if line.startswith("data: ") and line != "data: [DONE]"]


def call_in(path, events):
    """(namespace, name, arguments) of the only call in the events, as each protocol tells of it; None: there is
    none."""
    if path == "/v1/responses":
        calls = [item for item in events[-1]["response"]["output"] if item["type"] == "function_call"]
        return (calls[0].get("namespace"), calls[0]["name"], json.loads(calls[0]["arguments"])) if calls else None
    if path == "/v1/messages":
        names = [e["content_block"]["name"] for e in events if e["type"] == "content_block_start" and e["content_block"]["type"] == "tool_use"]
        text = "".join(e["delta"]["partial_json"] for e in events if e["type"] == "content_block_delta" and e["delta"]["type"] == "input_json_delta")
    else:
        parts = [call["function"] for e in events for choice in e["choices"] for call in choice["delta"].get("tool_calls") or []]
        names = [part["name"] for part in parts if part.get("name")]
        text = "".join(part.get("arguments") or "" for part in parts)
    return (None, names[0], json.loads(text)) if names else None


class Agents(unittest.TestCase):
    def replay(self, server, recorded):
        tool, namespace, arguments = recorded["tool"], recorded["namespace"], recorded["arguments"]
        calls = 0
        for request in recorded["requests"]:
            path, asked = request["path"], request["body"]
            api = APIS[path.split("?")[0]]
            body, forced = force(api, asked, tool, arguments, namespace)
            status, headers, data = server.request("POST", path, body)
            self.assertEqual(status, 200, data)
            self.assertTrue(headers["content-type"].startswith("text/event-stream"), headers)
            events = events_of(data)
            kind = path.split("?")[0]
            if kind in LAST:
                self.assertIn(events[-1]["type"], LAST[kind])
            else:
                self.assertIn("data: [DONE]", data.decode())
            if forced:
                self.assertEqual(call_in(kind, events), (namespace, tool, arguments))
                calls += 1
        self.assertGreaterEqual(calls, 1)
        self.assertTrue(any(results_of(request["body"]) for request in recorded["requests"]))

    def test_recorded(self):
        files = sorted(glob.glob(f"{SOURCE}/tests/data/agents/*.json"))
        self.assertGreaterEqual(len(files), 7)
        with Server() as server:
            for file in files:
                with self.subTest(os.path.basename(file)), open(file) as text:
                    self.replay(server, json.load(text))


if __name__ == "__main__":
    unittest.main(verbosity=2)
