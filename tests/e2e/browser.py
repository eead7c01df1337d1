"""Debian's Chromium without a window, driven by its DevTools protocol over a pipe. tools/install --browser installs
it; tests that need it are skipped by name without."""
import base64, json, os, shutil, subprocess, tempfile, time

CHROMIUM = shutil.which("chromium")
WHY_NOT = "chromium is not installed (tools/install --browser)"


class Browser:
    """One page. Events are kept: `reports` has what the content policy forbade, and what the page threw; `requests`
    has what it asked for."""

    def __init__(self, width=1280, height=800, dark=False):
        self.folder = tempfile.TemporaryDirectory(prefix="weir-chromium-", ignore_cleanup_errors=True)
        to_read, to_write = os.pipe()
        from_read, from_write = os.pipe()

        def descriptors():
            # The pipe's two ends are 3 and 4 by convention; first out of each other's way.
            read, write = os.dup(to_read), os.dup(from_write)
            os.dup2(read, 3)
            os.dup2(write, 4)
        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
        self.process = subprocess.Popen(
            [CHROMIUM, "--headless=new", "--remote-debugging-pipe", "--disable-gpu", "--disable-dev-shm-usage",
             "--no-first-run", "--disable-background-networking", "--autoplay-policy=no-user-gesture-required",
             "--hide-scrollbars", "--force-color-profile=srgb",
             f"--user-data-dir={self.folder.name}", *sandbox, "about:blank"],
            close_fds=False, preexec_fn=descriptors, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(from_write)
        self.out, self.into = os.fdopen(to_write, "wb", 0), os.fdopen(from_read, "rb")
        self.number, self.buffer, self.session = 0, b"", None
        self.reports, self.requests = [], []
        self.trace, self.traced, self.loads = [], False, 0
        target = next(each for each in self.call("Target.getTargets")["targetInfos"] if each["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "Accessibility", "Audits"):
            self.call(f"{domain}.enable")
        self.view(width, height, dark)

    def close(self):
        try:
            self.call("Browser.close")
        except OSError:
            pass
        self.process.wait(10)
        self.out.close()
        self.into.close()
        self.folder.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def receive(self):
        while b"\0" not in self.buffer:
            read = os.read(self.into.fileno(), 1 << 16)
            if not read:
                raise OSError("chromium has ended")
            self.buffer += read
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def take(self, event):
        method, params = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.reports.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Log.entryAdded" and params["entry"]["source"] == "security":
            self.reports.append(params["entry"]["text"])
        elif method == "Audits.issueAdded" and params["issue"]["code"] == "ContentSecurityPolicyIssue":
            self.reports.append(json.dumps(params["issue"]["details"]))
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Page.loadEventFired":
            self.loads += 1
        elif method == "Tracing.dataCollected":
            self.trace += params["value"]
        elif method == "Tracing.tracingComplete":
            self.traced = True

    def call(self, method, **params):
        self.number += 1
        number = self.number
        message = {"id": number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        self.out.write(json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") != number:
                self.take(answer)
                continue
            if "error" in answer:
                raise AssertionError(f"{method}: {answer['error']['message']}")
            return answer["result"]

    def tasks(self, action):
        """Milliseconds that the page's thread has computed for each of its tasks while `action()` was done."""
        self.call("Tracing.start", transferMode="ReportEvents", traceConfig={
            "includedCategories": ["toplevel", "disabled-by-default-devtools.timeline", "__metadata"]})
        action()
        self.trace, self.traced = [], False
        self.call("Tracing.end")
        while not self.traced:
            self.take(self.receive())
        page = {each["tid"] for each in self.trace
                if each["name"] == "thread_name" and each["args"]["name"] == "CrRendererMain"}
        return [each["tdur"] / 1000 for each in self.trace
                if each["name"] == "RunTask" and each["tid"] in page and "tdur" in each]

    def view(self, width, height, dark=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def open(self, url):
        self.call("Page.navigate", url=url)

    def reload(self):
        """What is asked of the page from then on is asked of the new one."""
        before = self.loads
        self.call("Page.reload")
        while self.loads == before:
            self.take(self.receive())

    def run(self, script):
        """The value of an expression, or of a promise of it. The page's own functions are no globals."""
        result = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True,
                           userGesture=True)
        if "exceptionDetails" in result:
            details = result["exceptionDetails"]
            raise AssertionError(details.get("exception", {}).get("description", details["text"]) + "\nin " + script)
        return result["result"].get("value")

    def wait(self, condition, seconds=8):
        """Until the expression is true."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.run(f"!!({condition})"):
                return
            time.sleep(0.05)
        raise AssertionError(f"not within {seconds} s: {condition}\nthe page says: " +
                             str(self.run("document.body.innerText"))[:1000] + f"\nreports: {self.reports}")

    def press(self, key, modifiers=0):
        """A key as a person presses it; of modifiers 1 is Alt, 2 Ctrl, 8 Shift."""
        codes = {"Enter": 13, "Escape": 27, "Tab": 9, "ArrowUp": 38, "ArrowDown": 40, " ": 32}
        code = codes.get(key, ord(key.upper()) if len(key) == 1 else 0)
        text = {"Enter": "\r", " ": " "}.get(key, key if len(key) == 1 and not modifiers & 3 else "")
        event = {"key": key, "windowsVirtualKeyCode": code, "modifiers": modifiers}
        self.call("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", text=text, **event)
        self.call("Input.dispatchKeyEvent", type="keyUp", **event)

    def type(self, text):
        self.call("Input.insertText", text=text)

    def picture(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))
