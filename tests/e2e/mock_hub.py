"""A Hugging Face hub on loopback: the API on one port and the CDN on another, over folders of small models, with the
faults that hubs, CDNs and networks have. It keeps a log of every request. Standard library only.

    with Hub() as hub:
        hub.add("org/name", folder)                     # or {path: bytes}
        hub.fault("model.safetensors", "cut", after=100_000)
        subprocess.run([WEIR, "pull", "org/name"], env={**os.environ, **hub.environment(cache)})

Faults (`times`: how often, by default once; `where`: what of the request's path they are for):
    cut after=N       the connection ends after N bytes of the body         stall after=N   nothing comes after N bytes
    status code=N headers={} a status and no body                          expired         the CDN answers 403
    whole             the answer ignores Range                             wrong           one byte is another
    lost_range        416                                                  slow rate=N     N bytes a second
"""
import hashlib, http.server, json, os, re, socket, threading, time, urllib.parse

LARGE_BYTES = 100_000  # Files of this size and above are Git LFS's, as .safetensors and .gguf of any size are.


def git_sha1(data):
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


class File:
    def __init__(self, path, data):
        self.path, self.data, self.size = path, data, len(data)
        self.large = self.size >= LARGE_BYTES or path.endswith((".safetensors", ".gguf"))
        self.sha1, self.sha256 = git_sha1(data), hashlib.sha256(data).hexdigest()
        self.etag = self.sha256 if self.large else self.sha1
        pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{self.sha256}\nsize {self.size}\n".encode()
        self.oid = git_sha1(pointer) if self.large else self.sha1

    def entry(self):
        entry = {"type": "file", "oid": self.oid, "size": self.size, "path": self.path}
        if self.large:
            entry["lfs"] = {"oid": self.sha256, "size": self.size, "pointerSize": 130}
        return entry


class Model:
    def __init__(self, model_id, files):
        self.id = model_id
        self.files = {path: File(path, data) for path, data in files.items()}
        self.commit = hashlib.sha1("".join(f"{p}{f.etag}" for p, f in sorted(self.files.items())).encode()).hexdigest()
        self.revisions = {"main": self.commit, self.commit: self.commit}
        self.gated = self.private = self.disabled = False
        self.may = {"secret-token"}  # Tokens that may read it where it is gated or private.
        self.tree = None             # Raw entries of the list of files, instead of the true ones.
        self.raw = {}                # Answers of the API as they are: {"info": bytes, "tree": bytes}

    def info(self):
        parameters = {"BF16": sum(f.size for f in self.files.values()) // 2}
        return {"id": self.id, "sha": self.commit, "private": self.private, "gated": self.gated,
                "disabled": self.disabled, "pipeline_tag": "text-generation", "tags": ["mlx", "safetensors"],
                "downloads": 42, "likes": 7, "lastModified": "2026-01-31T12:00:00.000Z",
                "safetensors": {"parameters": parameters, "total": sum(parameters.values())},
                "siblings": [{"rfilename": path} for path in self.files]}


class Fault:
    def __init__(self, where, kind, times, port, after, code, headers, rate):
        self.where, self.kind, self.times, self.port = where, kind, times, port
        self.after, self.code, self.headers, self.rate = after, code, headers or {}, rate


class Request:
    def __init__(self, port, method, path, headers):
        self.port, self.method, self.path, self.headers = port, method, path, headers
        self.status, self.begin, self.sent, self.at = None, None, 0, time.time()

    def __repr__(self):
        return f"<{self.port} {self.method} {self.path} {self.headers.get('range')} -> {self.status}, {self.sent} bytes>"


def folder_files(folder):
    """{path: bytes} of all files below a folder."""
    files = {}
    for root, _, names in os.walk(folder):
        for name in names:
            with open(os.path.join(root, name), "rb") as file:
                files[os.path.relpath(os.path.join(root, name), folder)] = file.read()
    return files


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request, client_address):
        pass  # A client that goes in the middle of an answer is what tests do.


class Hub:
    def __init__(self, page_files=1000):
        self.models, self.renamed, self.faults, self.log = {}, {}, [], []
        self.lock = threading.Lock()
        self.page_files = page_files  # A page of the list of files.
        self.expiry = 0               # Requests that a link to the CDN is good for; 0: any number.
        self.links = {}               # How often each link has been used.
        self.etags = True             # Heads say hashes.
        self.cdn_host = "127.0.0.1"
        self.rate = 0                 # Bytes a second of each answer; 0: as fast as it goes.

    def __enter__(self):
        hub = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                hub.answer(self)

            do_HEAD = do_GET

        self.servers = {name: Server(("127.0.0.1", 0), Handler) for name in ("hub", "cdn", "trap")}
        for name, server in self.servers.items():
            server.name = name
            threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_):
        for server in self.servers.values():
            server.shutdown()
            server.server_close()

    def port(self, name):
        return self.servers[name].server_address[1]

    @property
    def endpoint(self):
        return f"http://127.0.0.1:{self.port('hub')}"

    def environment(self, cache, token=None):
        """What a client of this hub needs; nothing of the machine's own settings gets in."""
        names = {"HF_ENDPOINT": self.endpoint, "HF_HUB_CACHE": str(cache), "HF_HOME": f"{cache}-home", "no_proxy": "*"}
        gone = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_TOKEN_PATH", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE",
                "HF_HUB_DISABLE_IMPLICIT_TOKEN", "http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")
        return {**dict.fromkeys(gone, ""), **names, **({"HF_TOKEN": token} if token else {})}

    def add(self, model_id, files):
        self.models[model_id] = Model(model_id, files if isinstance(files, dict) else folder_files(files))
        return self.models[model_id]

    def fault(self, where, kind, times=1, port=None, after=0, code=0, headers=None, rate=0):
        with self.lock:
            self.faults.append(Fault(where, kind, times, port, after, code, headers, rate))

    def take_fault(self, port, path, kinds):
        with self.lock:
            for fault in self.faults:
                if fault.kind in kinds and fault.times and fault.where in path and fault.port in (None, port):
                    fault.times -= 1
                    return fault

    # What came.

    def requests(self, port=None, method=None, part=""):
        with self.lock:
            return [r for r in self.log if port in (None, r.port) and method in (None, r.method) and part in r.path]

    def tokens_seen(self, port):
        return {r.headers.get("authorization") for r in self.requests(port)} - {None}

    def sent(self, part):
        """Ranges of a file's bytes that were sent, as (begin, end)."""
        return [(r.begin, r.begin + r.sent) for r in self.requests(method="GET", part=part)
                if r.sent and r.begin is not None]

    def forget(self):
        with self.lock:
            self.log.clear()
            self.faults.clear()
            self.links.clear()

    # Answers.

    def answer(self, handler):
        headers = {name.lower(): value for name, value in handler.headers.items()}
        request = Request(handler.server.name, handler.command, handler.path, headers)
        with self.lock:
            self.log.append(request)
        fault = self.take_fault(request.port, request.path, ("status",))
        if fault:
            return self.send(handler, request, fault.code, b"", fault.headers)
        url = urllib.parse.urlsplit(handler.path)
        path, query = urllib.parse.unquote(url.path), dict(urllib.parse.parse_qsl(url.query))
        if request.port == "cdn":
            return self.answer_data(handler, request, path)
        if request.port == "trap":
            return self.send(handler, request, 200, b"secret of this machine")
        if path == "/api/models":
            return self.answer_search(handler, request, query)
        api = re.fullmatch(r"/api/models/([^/]+/[^/]+?)(?:/(revision|tree)/(.+))?", path)
        if api:
            return self.answer_api(handler, request, api, query)
        resolve = re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path)
        if resolve:
            return self.answer_resolve(handler, request, *resolve.groups())
        self.send(handler, request, 404, b"")

    def refusal(self, model, request):
        """(status, headers) of what a client may not see."""
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        if model is None or (model.private and token not in model.may):
            known = "invalid" if token else ""
            return 401 if not known else 404, {"X-Error-Code": "RepoNotFound",
                                               "X-Error-Message": "Repository not found"}
        if model.disabled:
            return 403, {"X-Error-Message": "Access to this resource is disabled."}
        return None

    def moved(self, handler, request, model_id):
        new = self.renamed.get(model_id)
        if new:
            self.send(handler, request, 307, b"", {"Location": request.path.replace(model_id, new, 1)})
        return new

    def answer_api(self, handler, request, match, query):
        model_id, kind, revision = match.groups()
        if self.moved(handler, request, model_id):
            return None
        model = self.models.get(model_id)
        refused = self.refusal(model, request)
        if refused:
            return self.send(handler, request, refused[0], b"{}", refused[1])
        commit = model.revisions.get(revision or "main")
        if commit is None:
            return self.send(handler, request, 404, b"{}", {"X-Error-Code": "RevisionNotFound"})
        if kind != "tree":
            return self.send(handler, request, 200, model.raw.get("info") or json.dumps(model.info()).encode())
        if "tree" in model.raw:
            return self.send(handler, request, 200, model.raw["tree"])
        entries = model.tree if model.tree is not None else [f.entry() for f in model.files.values()]
        begin = int(query.get("cursor", 0))
        headers = {}
        if begin + self.page_files < len(entries):
            headers["Link"] = (f"<{self.endpoint}/api/models/{model_id}/tree/{revision}?recursive=true&expand=false"
                               f"&cursor={begin + self.page_files}>; rel=\"next\"")
        self.send(handler, request, 200, json.dumps(entries[begin:begin + self.page_files]).encode(), headers)

    def answer_search(self, handler, request, query):
        words = query.get("search", "").lower()
        found = [m.info() for m in self.models.values() if words in m.id.lower()]
        begin, limit = int(query.get("cursor", 0)), int(query.get("limit", 20))
        headers = {}
        if begin + limit < len(found):
            headers["Link"] = f"<{self.endpoint}/api/models?search={words}&limit={limit}&cursor={begin + limit}>; rel=\"next\""
        self.send(handler, request, 200, json.dumps(found[begin:begin + limit]).encode(), headers)

    def answer_resolve(self, handler, request, model_id, revision, path):
        if self.moved(handler, request, model_id):
            return None
        model = self.models.get(model_id)
        refused = self.refusal(model, request)
        if refused:
            return self.send(handler, request, refused[0], b"", refused[1])
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        if model.gated and token not in model.may:
            return self.send(handler, request, 403 if token else 401, b"",
                             {"X-Error-Code": "GatedRepo",
                              "X-Error-Message": f"Access to model {model_id} is restricted."})
        commit = model.revisions.get(revision)
        file = model.files.get(path)
        if commit is None or file is None:
            return self.send(handler, request, 404, b"",
                             {"X-Error-Code": "RevisionNotFound" if commit is None else "EntryNotFound"})
        headers = {"X-Repo-Commit": commit, "Accept-Ranges": "bytes"}
        if not file.large:
            if self.etags:
                headers["ETag"] = f'W/"{file.etag}"'
            return self.send_file(handler, request, file, headers)
        if self.etags:
            headers["X-Linked-Etag"] = f'"{file.etag}"'
        headers["X-Linked-Size"] = str(file.size)
        away = self.take_fault(request.port, request.path, ("redirect",))
        with self.lock:
            signature = f"{len(self.links)}"
            self.links[signature] = 0
        headers["Location"] = (away.headers["Location"] if away else
                               f"http://{self.cdn_host}:{self.port('cdn')}/{model_id}/{commit}/{path}?Signature={signature}")
        self.send(handler, request, 302, b"", headers)

    def answer_data(self, handler, request, path):
        org, name, _, path = path[1:].split("/", 3)
        signature = urllib.parse.parse_qs(urllib.parse.urlsplit(request.path).query)["Signature"][0]
        with self.lock:
            self.links[signature] += 1
            old = self.expiry and self.links[signature] > self.expiry
        if old or self.take_fault("cdn", request.path, ("expired",)):
            return self.send(handler, request, 403, b"<Error>Request has expired</Error>")
        if self.take_fault("cdn", request.path, ("lost_range",)):
            return self.send(handler, request, 416, b"")
        self.send_file(handler, request, self.models[f"{org}/{name}"].files[path], {})

    def send_file(self, handler, request, file, headers):
        begin, end, status = 0, file.size, 200
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", request.headers.get("range", ""))
        # A fault that ignores ranges is for good: servers do not change their minds.
        whole = any(f.kind == "whole" and f.where in request.path for f in self.faults)
        if asked and request.method == "GET" and not whole:
            begin, end = int(asked[1]), min(int(asked[2] or file.size - 1) + 1, file.size)
            status = 206
            headers = {**headers, "Content-Range": f"bytes {begin}-{end - 1}/{file.size}"}
            if begin >= file.size:
                return self.send(handler, request, 416, b"")
        data = file.data[begin:end]
        if request.method == "GET" and self.take_fault(request.port, request.path, ("wrong",)):
            data = bytes([data[0] ^ 1]) + data[1:]
        request.begin = begin
        self.send(handler, request, status, data, headers, length=end - begin)

    def send(self, handler, request, status, data, headers=None, length=None):
        request.status = status
        handler.send_response(status)
        for name, value in (headers or {}).items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(data) if length is None else length))
        handler.end_headers()
        if request.method == "HEAD":
            return
        fault = self.take_fault(request.port, request.path, ("cut", "stall", "slow")) if data else None
        most = fault.after if fault and fault.kind != "slow" else len(data)
        rate = fault.rate if fault and fault.kind == "slow" else self.rate
        piece = 64 << 10 if not rate else max(1, min(64 << 10, rate // 20))
        try:
            while request.sent < most:
                part = data[request.sent:min(request.sent + piece, most)]
                handler.wfile.write(part)
                request.sent += len(part)
                if rate:
                    time.sleep(len(part) / rate)
            if fault and fault.kind == "stall":
                time.sleep(45)  # Longer than a client waits.
            if fault and fault.kind in ("cut", "stall"):
                handler.close_connection = True
                handler.connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            handler.close_connection = True
