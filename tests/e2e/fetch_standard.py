"""A browser's fetch() as far as CORS goes, read strictly from the Fetch standard (fetch.spec.whatwg.org): a
request of one origin for another, its preflight, the preflight cache, and what of the answer a page may see."""
import http.client, re, time

TOKEN = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
SAFE_METHODS = {"GET", "HEAD", "POST"}
SAFE_TYPES = {"application/x-www-form-urlencoded", "multipart/form-data", "text/plain"}
SAFE_ANSWER_HEADERS = {"cache-control", "content-language", "content-length", "content-type", "expires",
                       "last-modified", "pragma"}


class NetworkError(Exception):
    """What a page gets to see as `TypeError: Failed to fetch`."""


def get(headers, name):
    """"get" of a header list: the values of one name, combined; None if there is none."""
    values = [value for key, value in headers if key.lower() == name]
    return ", ".join(values) if values else None


def extract_list(headers, name):
    """"extract header list values" for #method and #field-name: a list, or None if the header is absent."""
    value = get(headers, name)
    if value is None:
        return None
    parts = [part.strip(" \t") for part in value.split(",")]
    for part in parts:
        if part and not re.fullmatch(TOKEN, part):
            raise NetworkError(f"{name}: {part!r} is no token")
    return [part for part in parts if part]


def is_safelisted(name, value):
    """"CORS-safelisted request-header", for those that the tests send."""
    if len(value) > 128:
        return False
    if name in ("accept", "accept-language", "content-language"):
        return not re.search(r'["():<>?@\[\\\]{}\x7f]', value)
    return name == "content-type" and value.split(";")[0].strip().lower() in SAFE_TYPES


def cors_check(origin, include, headers):
    allowed = get(headers, "access-control-allow-origin")
    if allowed is None:
        raise NetworkError("no Access-Control-Allow-Origin")
    if not include and allowed == "*":
        return
    if allowed != origin:
        raise NetworkError(f"Access-Control-Allow-Origin is {allowed!r}, not {origin!r}")
    if include and get(headers, "access-control-allow-credentials") != "true":
        raise NetworkError("Access-Control-Allow-Credentials is not 'true'")


class Answer:
    def __init__(self, status, headers, body, include):
        self.status, self.all_headers, self.body = status, headers, body
        exposed = [name.lower() for name in extract_list(headers, "access-control-expose-headers") or []]
        any_name = "*" in exposed and not include
        self.headers = {key.lower(): get(headers, key.lower()) for key, _ in headers
                        if key.lower() in SAFE_ANSWER_HEADERS or key.lower() in exposed or any_name}


class Page:
    """A page of `origin` that talks to one server. connect() gives an http.client connection to it."""

    def __init__(self, origin, connect):
        self.origin, self.connect = origin, connect
        self.preflights = 0
        self.cache = {}  # (path, include, "method" or "header", name) to when it is forgotten.

    def exchange(self, method, path, headers, body=None):
        connection = self.connect()
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        result = answer.status, answer.getheaders(), answer.read()
        connection.close()
        return result

    def fetch(self, path, method="GET", headers=None, body=None, credentials="same-origin"):
        """"CORS fetch" for mode "cors": an Answer, or NetworkError."""
        include = credentials == "include"
        headers = {key.lower(): value for key, value in (headers or {}).items()}
        unsafe = sorted(key for key, value in headers.items() if not is_safelisted(key, value))
        if method not in SAFE_METHODS or unsafe:
            self.preflight(path, method, unsafe, include)
        sent = {"Origin": self.origin, "Accept": "*/*", "Sec-Fetch-Mode": "cors", **headers}
        status, answer_headers, data = self.exchange(method, path, sent, body)
        cors_check(self.origin, include, answer_headers)
        return Answer(status, answer_headers, data, include)

    def is_cached(self, path, include, kind, name):
        return self.cache.get((path, include, kind, name), 0) > time.monotonic()

    def preflight(self, path, method, unsafe, include):
        """"CORS-preflight fetch", unless the cache says it all."""
        if ((method in SAFE_METHODS or self.is_cached(path, include, "method", method)) and
                all(self.is_cached(path, include, "header", name) for name in unsafe)):
            return
        self.preflights += 1
        asked = {"Origin": self.origin, "Accept": "*/*", "Access-Control-Request-Method": method}
        if unsafe:
            asked["Access-Control-Request-Headers"] = ",".join(unsafe)
        status, headers, _ = self.exchange("OPTIONS", path, asked)
        cors_check(self.origin, include, headers)
        if not 200 <= status <= 299:
            raise NetworkError(f"the preflight's status is {status}")
        methods = extract_list(headers, "access-control-allow-methods") or []
        names = [name.lower() for name in extract_list(headers, "access-control-allow-headers") or []]
        if method not in methods and method not in SAFE_METHODS and (include or "*" not in methods):
            raise NetworkError(f"the method {method} is not allowed")
        if "authorization" in unsafe and "authorization" not in names:
            raise NetworkError("the header authorization is not allowed, which '*' does not mean")
        for name in unsafe:
            if name not in names and (include or "*" not in names):
                raise NetworkError(f"the header {name} is not allowed")
        age = get(headers, "access-control-max-age")
        end = time.monotonic() + (min(int(age), 7200) if re.fullmatch("[0-9]+", age or "") else 5)
        for name in methods:
            self.cache[path, include, "method", name] = end
        for name in names:
            self.cache[path, include, "header", name] = end


def connect_to(server):
    return lambda: http.client.HTTPConnection(server.host, server.port, timeout=60)
