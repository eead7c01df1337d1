"""Between an agent and Weir: makes a model that knows no better call one tool, with arguments that the test chooses.

A request of the agent passes as it is but for this: while its conversation has no result of a tool, `tool_choice` names the tool and the
tool's schema leaves one choice of arguments; later calls are off. Long texts and the schemas of other tools are cut, and answers are
short, because the model is tiny."""
import http.client, http.server, json, threading

# The tiny model's context is 2,048 tokens; agents send ten times as much.
TEXT_MAX, DESCRIPTION_MAX = 100, 30
PASSED = ("content-type", "authorization", "x-api-key", "anthropic-version", "anthropic-beta", "user-agent", "accept")


def cut(value):
    """Without the ends of long texts."""
    if isinstance(value, str):
        return value[:TEXT_MAX]
    if isinstance(value, list):
        return [cut(element) for element in value]
    if isinstance(value, dict):
        return {key: cut(element) for key, element in value.items()}
    return value


def only(arguments):
    """The schema of exactly these arguments."""
    return {"type": "object", "properties": {key: {"const": value} for key, value in arguments.items()},
            "required": list(arguments), "additionalProperties": False}


class Api:
    """What forcing needs to know of a protocol: where tools, results and limits stand."""

    def __init__(self, limit, schema, choice, last):
        self.limit, self.schema, self.choice, self.last = limit, schema, choice, last


# An answer that ends: agents take one that is cut for a failure.
DONE = {"tool_choice": "none", "guided_choice": ["Done."]}
DONE_MESSAGE = {"tool_choice": {"type": "none"},
                "output_config": {"format": {"type": "json_schema", "schema": {"const": "Done."}}}}
APIS = {
    "/v1/responses": Api("max_output_tokens", "parameters", lambda space,
                         name: {"type": "function", "name": name, **({"namespace": space} if space else {})}, DONE),
    "/v1/chat/completions": Api("max_tokens", "parameters", lambda space,
                                name: {"type": "function", "function": {"name": name}}, DONE),
    "/v1/messages": Api("max_tokens", "input_schema", lambda space, name: {"type": "tool", "name": name}, DONE_MESSAGE),
}


def tools_of(body):
    """(namespace or None, the object that has name and schema) of each tool."""
    for tool in body.get("tools") or []:
        if tool.get("type") == "namespace":
            yield from ((tool["name"], inner) for inner in tool["tools"])
        else:
            yield None, tool.get("function", tool)


def results_of(body):
    """The texts of tools' results in the conversation."""
    found = []
    for item in body.get("input", body.get("messages", [])):
        if item.get("role") == "tool" or item.get("type") in ("function_call_output", "custom_tool_call_output"):
            found.append(json.dumps(item.get("content", item.get("output"))))
        elif isinstance(item.get("content"), list):
            found += [json.dumps(part.get("content")) for part in item["content"] if part.get("type") == "tool_result"]
    return found


def force(api, body, name, arguments, namespace=None):
    """(the request to be sent instead, whether it forces the call)"""
    body = {**cut(body), api.limit: 64}
    for _, tool in tools_of(body):
        if api.schema in tool:
            tool[api.schema] = {"type": "object"}
        if "description" in tool:
            tool["description"] = tool["description"][:DESCRIPTION_MAX]
    tool = next((tool for space, tool in tools_of(body) if tool.get("name") == name and space == namespace), None)
    if tool is None or results_of(body):
        return {**body, **api.last}, False
    tool[api.schema] = only(arguments)
    tool.pop("strict", None)
    return {**body, "tool_choice": api.choice(namespace, name), api.limit: 400}, True


class ForcingProxy:
    """with ForcingProxy(server, "add", {"a": 1, "b": 2}, namespace="mcp__sums") as proxy: ... proxy.url, proxy.results,
    proxy.failures"""

    def __init__(self, server, tool, arguments, namespace=None):
        self.server, self.tool, self.arguments, self.namespace = server, tool, arguments, namespace
        self.seen, self.results, self.failures, self.forced = [], [], [], 0

    def __enter__(self):
        proxy = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self):
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                status, headers, data = proxy.pass_on(self.command, self.path, self.headers, body)
                self.send_response(status)
                for name, value in headers:
                    if name.lower() in ("content-type", "x-weir-ignored"):
                        self.send_header(name, value)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_HEAD = answer

            def log_message(self, *_):
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.http.shutdown()
        self.http.server_close()

    def pass_on(self, method, path, headers, body):
        api = APIS.get(path.split("?")[0])
        if api and method == "POST":
            asked = json.loads(body)
            self.seen.append((path, asked))
            self.results += results_of(asked)
            asked, forced = force(api, asked, self.tool, self.arguments, self.namespace)
            self.forced += forced
            body = json.dumps(asked).encode()
        connection = http.client.HTTPConnection(self.server.host, self.server.port, timeout=300)
        connection.request(method, path, body or None, {name: headers[name] for name in PASSED if headers[name]})
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        if answer.status != 200:
            self.failures.append((method, path, answer.status, data[:2000]))
        return answer.status, answer.getheaders(), data
