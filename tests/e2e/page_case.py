"""What tests of the web page have in common: a browser, a server, and what a person does with them."""
import gzip, json, os, re, unittest

import browser
from browser import Browser

CHAT = "/v1/chat/completions"
WRITTEN = "document.querySelector('.turn.assistant:last-child') && !document.querySelector('.turn.writing')"
# Not innerText: that is empty until a frame has found the paragraphs to be on the screen (content-visibility).
LAST = "document.querySelector('.turn.assistant:last-child .turn-body').textContent.trim()"


def skip_without_browser():
    """To be called by setUpModule()."""
    if browser.CHROMIUM is None:
        print(browser.WHY_NOT)
        os._exit(77)


def page_sizes(server):
    """Bytes of all files of the page as they are sent: (without KaTeX, with it)."""
    ask = lambda path: server.request("GET", path, headers={"Accept": "text/html", "Accept-Encoding": "gzip"})[2]
    packed = ask("/")
    front = gzip.decompress(packed).decode()
    version = re.search(r"/ui/(\w+)/", front)[1]
    sizes, wanted = {"index.html": len(packed)}, re.findall(r"/ui/\w+/([\w.]+)", front)
    math = re.search(r'data-math="([^"]*)"', front)[1]
    wanted += [math] if math else []
    while wanted:
        name = wanted.pop()
        if name in sizes:
            continue
        packed = ask(f"/ui/{version}/{name}")
        sizes[name] = len(packed)
        if name.endswith(".js") and name != math:
            wanted += re.findall(r'from "\./([\w.]+)"', gzip.decompress(packed).decode())
    total = sum(sizes.values())
    return total - sizes.get(math, 0), total


class PageCase(unittest.TestCase):
    """`own`: what the page may ask for; setUp() has made it complete."""

    def setUp(self):
        self.browser = Browser()
        self.own = ["about:", "data:", "blob:"]

    def tearDown(self):
        reports, requests = self.browser.reports, self.browser.requests
        self.browser.close()
        self.assertEqual(reports, [])
        self.assertEqual([each for each in requests if not each.startswith(tuple(self.own))], [])

    def open(self, url):
        self.browser.open(url)
        self.browser.wait("document.activeElement?.id === 'message'")

    def say(self, text):
        self.browser.run("document.querySelector('#message').focus()")
        self.browser.type(text)
        self.browser.press("Enter")

    def click(self, name, within="document"):
        """The button or link of that name, as a screen reader says it."""
        self.browser.wait(f"""(() => {{
          const found = [...({within}?.querySelectorAll('button, a, summary') ?? [])].findLast((each) =>
            (each.getAttribute('aria-label') ?? each.innerText).trim() === {json.dumps(name)} && !each.disabled);
          found?.click();
          return found; }})()""")

    def module(self, name, script):
        return self.browser.run(f"""(async () => {{
          const base = document.querySelector('script[type=module]').src;
          const it = await import(new URL({json.dumps(name)}, base));
          {script} }})()""")
