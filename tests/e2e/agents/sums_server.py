"""A server of tools for agents (MCP over stdin and stdout) with one tool: add."""
import json, sys

INTEGER = {"type": "integer"}
ADD = {"name": "add", "description": "Adds two integers.",
       "inputSchema": {"type": "object", "properties": {"a": INTEGER, "b": INTEGER}, "required": ["a", "b"]}}


def answer(method, parameters):
    if method == "initialize":
        return {"protocolVersion": parameters["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "sums", "version": "1"}}
    if method == "tools/list":
        return {"tools": [ADD]}
    if method == "tools/call":
        arguments = parameters["arguments"]
        return {"content": [{"type": "text", "text": f"the sum is {arguments['a'] + arguments['b']}"}]}


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    result = answer(message["method"], message.get("params") or {})
    body = {"error": {"code": -32601, "message": "no such method"}} if result is None else {"result": result}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **body}), flush=True)
