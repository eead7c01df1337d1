"""Every endpoint of /openapi.json against names, pages, types of bodies and keys: who gets through to it, and who does
not, before a byte of the body is read."""
import itertools, json, os, tempfile, unittest

from weir_server import Server

ALLOWED = "https://chat.example"
KEYS = {"api": "sk-api", "monitor": "sk-monitor", "all": "sk-all", "admin": "sk-admin", "all,admin": "sk-both"}
REFUSED = (401, 403, 415)


def hosts(port):
    """(Host, is it the server's)"""
    return ((f"127.0.0.1:{port}", True), ("localhost", True), (f"evil.example:{port}", False),
            ("127.0.0.1.evil.example", False))


def pages(port):
    """(headers of a browser, are they of another site's page)"""
    own = ("Origin", f"http://127.0.0.1:{port}"), ("Sec-Fetch-Site", "same-origin")
    return (((), False), (own, False), ((("Origin", ALLOWED), ("Sec-Fetch-Site", "cross-site")), False),
            ((("Origin", "https://evil.example"), ("Sec-Fetch-Site", "cross-site")), True),
            ((("Origin", "null"),), True), ((("Sec-Fetch-Site", "cross-site"),), True))


# Bodies are forms here, which none of the types below is.
FORMS = ("/v1/audio/transcriptions", "/v1/audio/translations")
TYPES = ("application/json", "text/plain", "application/x-www-form-urlencoded", None)


def endpoints(server):
    """(method, path, scope): scope is None where every key will do, '' where none is needed."""
    document = json.loads(server.get("/openapi.json"))
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            security = operation.get("security")
            scope = None if security is None else "".join(role for each in security for role in each.get("key", ()))
            yield method.upper(), path.replace("{id}", "nothing"), scope


def status_of(server, method, path, headers, body):
    with server.socket() as s:
        lines = [f"{method} {path} HTTP/1.1", "Connection: close", *(f"{name}: {value}" for name, value in headers)]
        if method == "POST":
            # A body that never comes tells who is refused before it is read.
            lines.append(f"Content-Length: {30_000_000 if body is None else len(body)}")
        s.sendall(("\r\n".join(lines) + "\r\n\r\n").encode() + (body or b""))
        return int(s.recv(1 << 16).split(b" ")[1])


def expected(endpoint, own_host, foreign, content_type, key, has_keys):
    """The status of a refusal before the body; None: there is none."""
    method, _, scope = endpoint
    manages = scope == "admin"
    if not has_keys and (not own_host or (foreign and method != "GET")):
        return 403
    if has_keys and scope != "":
        if key is None:
            return 401
        scopes = key.replace("all", "api,monitor").split(",")
        if scope is not None and scope not in scopes:
            return 403
    if manages and foreign:
        return 403
    return 415 if manages and method == "POST" and content_type != "application/json" else None


class Table(unittest.TestCase):
    def check(self, server, endpoint, host, page, content_type, key, has_keys):
        """1 if the request is to be refused by its head alone, and is."""
        method, path, _ = endpoint
        if method != "POST" and content_type != TYPES[0]:
            return 0  # Without a body: seen already.
        headers = [("Host", host[0]), *page[0]]
        if content_type and method == "POST":
            headers.append(("Content-Type", content_type))
        if has_keys:
            headers.append(("Authorization", "Bearer " + KEYS.get(key, "sk-wrong")))
        want = expected(endpoint, host[1], page[1], content_type, key, has_keys)
        if want is not None:
            self.assertEqual(status_of(server, method, path, headers, None), want, (method, path, headers))
            return 1
        status = status_of(server, method, path, headers, b"{}")
        typed = content_type == "application/json" or (content_type is None and not page[0])
        # As curl -d sends it, if no page does.
        typed = typed or (content_type == TYPES[2] and not page[0] and path.startswith("/api/"))
        if method == "POST" and (not typed or path in FORMS):
            self.assertEqual(status, 415, (method, path, headers))
        else:
            self.assertNotIn(status, REFUSED, (method, path, headers))
        return 0

    def test_without_keys(self):
        with Server("--cors", ALLOWED) as server:
            rows = list(endpoints(server))
            self.assertGreater(len(rows), 25)
            refused = sum(self.check(server, *each, None, False)
                          for each in itertools.product(rows, hosts(server.port), pages(server.port), TYPES))
            self.assertGreaterEqual(refused, len(rows) * 12, "of six pages by two names that are not the server's")
            self.assertEqual(server.metric("vllm:prompt_tokens_total"), 0, "an empty object asks for nothing")

    def test_with_keys(self):
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "keys")
            with open(file, "w") as keys:
                keys.writelines(f"{secret} scope={scopes}\n" for scopes, secret in KEYS.items())
            os.chmod(file, 0o600)
            with Server("--api-key-file", file, "--cors", ALLOWED) as server:
                with Server() as without:
                    rows = list(endpoints(without))
                heads = itertools.product(hosts(server.port)[1:3], pages(server.port)[1:4:2], TYPES[:2], (None, *KEYS))
                for row, head in itertools.product(rows, list(heads)):
                    self.check(server, row, *head, True)


if __name__ == "__main__":
    unittest.main(verbosity=2)
