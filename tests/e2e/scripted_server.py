"""A server that hands out the page of a real one, and answers the API as a test says: the page's states, one by one."""
import http.server, json, threading


def chunk(text="", finish=None, **more):
    delta = {"content": text} if text else {}
    return {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {**delta, **more},
                                                            "finish_reason": finish}]}


class Scripted:
    """`answers` has a function by path, which gets the handler and the body; each test replaces what it needs."""

    def __init__(self, weir):
        self.weir, self.files, self.asked = weir, {}, []
        self.model, self.props, self.answers = "scripted", {"modalities": {"vision": False}}, {}
        scripted = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                scripted.answer(self, None)

            def do_POST(self):
                scripted.answer(self, json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

            def json(self, value, status=200, **headers):
                self.bytes(json.dumps(value).encode(), status, {"Content-Type": "application/json", **headers})

            def bytes(self, data, status, headers):
                self.send_response(status)
                for name, each in headers.items():
                    self.send_header(name.replace("_", "-"), each)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def error(self, status, message, code=None, **headers):
                self.json({"error": {"message": message, "code": code}}, status, **headers)

            def begin(self):
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.send_header("Connection", "close")
                self.end_headers()
                self.close_connection = True

            def event(self, value):
                self.wfile.write(b"data: " + json.dumps(value).encode() + b"\n\n")

            def stream(self, *events):
                self.begin()
                for each in events:
                    self.event(each)
                self.wfile.write(b"data: [DONE]\n\n")

            def text(self, text):
                self.stream(chunk(text), chunk(finish="stop"))

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def answer(self, handler, body):
        path = handler.path.split("?")[0]
        try:
            if path == "/" or path.startswith("/ui/"):
                return self.file(handler, path)
            self.asked.append((path, body))
            if path in self.answers:
                return self.answers[path](handler, body)
            if path == "/v1/models":
                return handler.json({"data": [{"id": self.model, "max_model_len": 4096}]})
            if path == "/props":
                return handler.json(self.props)
            handler.error(404, f"no {path}")
        except (BrokenPipeError, ConnectionResetError):
            handler.close_connection = True

    def file(self, handler, path):
        if path not in self.files:
            status, headers, data = self.weir.request("GET", path, headers={"Accept": "text/html"})
            assert status == 200, path
            kept = ("content-type", "content-security-policy", "x-content-type-options")
            self.files[path] = data, {name: headers[name] for name in kept}
        data, headers = self.files[path]
        handler.bytes(data, 200, headers)
