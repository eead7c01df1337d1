"""The web page and its server's models, in Debian's Chromium: several that come and go, and pulls from a hub."""
import os, random, shutil, tempfile, threading, unittest

from mock_hub import Hub
from page_case import LAST, WRITTEN, PageCase, skip_without_browser as setUpModule
from several_models import SeveralModels, ask
from weir_server import SOURCE, Server, eventually

MODEL = "org/name"
BYTES = 3_000_000


def small_model():
    """A model that can be pulled, and not be run."""
    with open(f"{SOURCE}/models/weir-tiny-moe/config.json", "rb") as file:
        config = file.read()
    return {"config.json": config, "tokenizer.json": random.Random(1).randbytes(150_000),
            "model.safetensors": random.Random(2).randbytes(BYTES)}


class SeveralModelsTest(PageCase):
    def setUp(self):
        super().setUp()
        self.weir = SeveralModels()
        self.weir.__enter__()
        self.addCleanup(self.weir.__exit__, None, None, None)
        self.url = f"http://127.0.0.1:{self.weir.port}/"
        self.own.append(self.url)

    def choose(self, model):
        self.browser.run(f"""(() => {{ const choice = document.querySelector('[aria-label=Model]');
          choice.value = '{model}'; choice.dispatchEvent(new Event('change')); }})()""")

    def card(self, model):
        return f"document.querySelector('.card[aria-label={model}]')"

    def test_two_models_answer_in_one_chat(self):
        b = self.browser
        self.open(self.url)
        b.wait("document.querySelector('.empty')?.innerText.includes('The first message loads it.')")
        self.choose("fast")
        self.say("Tell me a story of a cat that goes to the sea.")
        b.wait(WRITTEN, 30)
        first = b.run(LAST)
        self.assertGreater(len(first), 0)
        self.choose("exact")
        self.say("And one more.")
        b.wait("document.querySelectorAll('.turn.assistant').length === 2 && " + WRITTEN, 30)
        names = b.run("[...document.querySelectorAll('.turn-name')].map((each) => each.innerText)")
        self.assertEqual(names, ["fast", "exact"])
        self.assertEqual(self.weir.loaded(), {"fast", "exact"})
        # Its context is known as soon as it is loaded.
        b.wait("document.querySelector('.context:not([hidden])')?.innerText.includes(' of ')")
        b.reload()
        b.wait("document.querySelectorAll('.turn.assistant').length === 2")
        self.assertEqual(b.run("document.querySelector('[aria-label=Model]').value"), "exact")

    def test_a_full_context_can_be_made_larger(self):
        b = self.browser
        with SeveralModels(own={"fast": (("ctx-size", "256"),)}) as weir:
            self.own.append(f"http://127.0.0.1:{weir.port}/")
            self.open(self.own[-1])
            self.choose("fast")
            self.say("One word. " * 90)
            b.wait("document.querySelector('.trouble.bad')?.innerText.includes('256')", 20)
            self.assertNotIn("oldest", b.run("document.querySelector('.trouble').innerText"))
            self.click("Load with a context of 512")
            b.wait("document.querySelector('.branches')?.textContent === '2/2' && " + WRITTEN, 30)
            self.assertGreater(len(b.run(LAST)), 0)
            b.wait("document.querySelector('.context').innerText.endsWith('of 512')")

    def test_models_are_loaded_pinned_and_unloaded(self):
        b = self.browser
        self.open(self.url)
        b.run("location.hash = '#/models'")
        b.wait(f"{self.card('wide')}?.innerText.includes('Not loaded')")
        self.click("Load wide")
        b.wait(f"{self.card('wide')}.innerText.includes('Loaded')", 30)
        self.assertEqual(self.weir.loaded(), {"wide"})
        # What was under the pointer or the keyboard has gone; the next button has the focus.
        self.click("Pin wide")
        b.wait(f"{self.card('wide')}.innerText.includes('Pinned')")
        # Another changes it, and the page hears of it.
        self.weir.post("/models/load", {"model": "fast"})
        b.wait(f"{self.card('fast')}.innerText.includes('Loaded')")
        b.wait("document.querySelector('.legend')")
        self.click("Unload wide")
        b.wait(f"{self.card('wide')}.innerText.includes('Not loaded')")
        self.assertEqual(self.weir.loaded(), {"fast"})


    def test_the_dashboard_shows_the_model_that_is_chosen(self):
        b = self.browser
        self.weir.post("/models/load", {"model": "fast"})
        self.open(self.url)
        b.run("location.hash = '#/dashboard'")
        b.wait("document.querySelector('.limits:not([hidden])')?.innerText.includes('2,048')")
        choice = "document.querySelector('.screen-head select')"
        self.assertTrue(b.run(f"{choice}.hidden"))
        self.weir.post("/models/load", {"model": "exact"})
        b.wait(f"!{choice}.hidden && {choice}.options.length === 2")
        b.run(f"{choice}.value = 'exact'; {choice}.dispatchEvent(new Event('change'))")
        first = "document.querySelector('[aria-label=\"First token\"] .tile-value').innerText"
        self.assertEqual(b.run(first), "\u2013")
        ask(self.weir, "exact", "Once upon a time")
        self.weir.post("/v1/chat/completions", {"model": "exact", "max_tokens": 4,
                                                "messages": [{"role": "user", "content": "Hello"}]})
        b.wait(f"/ms|s/.test({first})")
        rows = b.run("""[...document.querySelectorAll('[aria-label=Models] tbody tr')].map((row) =>
          row.cells[0].innerText)""")
        self.assertEqual(rows, ["fast", "exact"])
        # The other has answered nothing.
        b.run(f"{choice}.value = 'fast'; {choice}.dispatchEvent(new Event('change'))")
        self.assertEqual(b.run(first), "\u2013")
        self.weir.post("/models/unload", {"model": "exact", "force": True})
        b.wait(f"{choice}.hidden && !document.querySelector('[aria-label=Models] tbody tr')?.checkVisibility()")


class ExpertsTest(PageCase):
    def test_the_dashboard_shows_experts_on_disk(self):
        b = self.browser
        options = ("--model", f"{SOURCE}/models/weir-tiny-moe", "--stream-experts", "--expert-memory", "2M")
        with Server(*options) as weir:
            self.own.append(f"http://127.0.0.1:{weir.port}/")
            self.open(self.own[-1])
            b.run("location.hash = '#/dashboard'")
            # Shares are of what happened between two readings: answers go on until both were taken.
            shown = threading.Event()

            def write():
                while not shown.is_set():
                    weir.post("/completion", {"prompt": "Write a long story.", "n_predict": 200, "ignore_eos": True})
            writer = threading.Thread(target=write)
            writer.start()
            self.addCleanup(writer.join)
            self.addCleanup(shown.set)
            found = "document.querySelector('[aria-label=\"Experts found\"] .tile-value')?.innerText"
            b.wait(f"/^\\d+ %$/.test({found})", 20)
            self.assertRegex(b.run("document.querySelector('[aria-label=Disk] .tile-value').innerText"), r"^\d+\.\d\d$")
            shown.set()
            writer.join()


class PullTest(PageCase):
    def setUp(self):
        super().setUp()
        self.folder = tempfile.mkdtemp(prefix="weir_page_pull_")
        self.addCleanup(shutil.rmtree, self.folder)
        self.hub = Hub()
        self.hub.__enter__()
        self.addCleanup(self.hub.__exit__)
        self.hub.add(MODEL, small_model())
        self.weir = Server("--disk-reserve", "100M", environment=self.hub.environment(f"{self.folder}/hub"))
        self.weir.__enter__()
        self.addCleanup(self.weir.__exit__, None, None, None)
        self.own.append(f"http://127.0.0.1:{self.weir.port}/")
        self.open(self.own[-1])

    def blobs(self):
        folder = f"{self.folder}/hub/models--org--name/blobs"
        return os.listdir(folder) if os.path.isdir(folder) else []

    def begin(self):
        """A pull that is slow enough to be looked at."""
        b = self.browser
        self.hub.rate = 600_000
        b.run("location.hash = '#/models'")
        b.wait("document.querySelector('#only-fitting')?.checkVisibility()")
        b.run("document.querySelector('#only-fitting').click(); document.querySelector('#model-search').focus()")
        b.type("name")
        b.press("Enter")
        self.click(f"Pull {MODEL}")
        self.click("Pull", "document.querySelector('dialog')")
        b.wait("document.querySelector('.pull meter')?.value > 0.1", 20)

    def test_a_pull_shows_how_far_it_is_and_can_be_paused_over_a_reload(self):
        b = self.browser
        self.begin()
        self.assertRegex(b.run("document.querySelector('.pull').innerText"), r"of 3\.\d+ MiB, \d+ %")
        b.wait("/[KM]iB\\/s, .* left/.test(document.querySelector('.pull').innerText)")
        self.click(f"Pause the pull of {MODEL}")
        b.wait("document.querySelector('.pull').innerText.includes('Paused')")
        eventually(lambda: "pull ends" in self.weir.logged(), what="the server has ended the pull")
        self.assertNotIn("it is here", self.weir.logged())
        shown = b.run("document.querySelector('.pull meter').value")
        b.reload()
        b.wait("document.querySelector('.pull')?.innerText.includes('Paused')")
        self.assertAlmostEqual(b.run("document.querySelector('.pull meter').value"), shown, delta=0.01)
        self.hub.rate = 0
        before = sum(end - begin for begin, end in self.hub.sent("model.safetensors"))
        self.click(f"Resume the pull of {MODEL}")
        b.wait("!document.querySelector('.pull')", 20)
        b.wait("document.querySelector('#notice').innerText === 'org/name is here.'")
        self.assertIn("it is here", self.weir.logged())
        after = sum(end - begin for begin, end in self.hub.sent("model.safetensors"))
        self.assertLess(after - before, BYTES, "the pull goes on where it was")
        b.reload()
        b.wait("document.querySelector('.card.model')")
        self.assertFalse(b.run("document.querySelector('.pull') !== null"))

    def test_a_pull_goes_on_without_the_page(self):
        b = self.browser
        self.begin()
        self.hub.rate = 300_000
        b.run("location.hash = '#/dashboard'")
        b.wait("document.querySelector('[aria-label=Pulls] td')?.innerText === 'org/name'")
        b.run("location.hash = '#/chat'")
        b.reload()
        b.wait("document.activeElement?.id === 'message'")
        b.run("location.hash = '#/models'")
        b.wait("document.querySelector('.pull meter')?.value > 0.1")
        self.assertIn("Pause", b.run("document.querySelector('.pull').innerText"))
        self.assertEqual(b.run("[...document.querySelectorAll('.card.model h3')].filter((each) => "
                               "each.innerText === 'org/name').length"), 1)
        self.hub.rate = 0
        b.wait("!document.querySelector('.pull')", 20)
        self.assertEqual(self.weir.logged().count("pull begins"), 1)

    def test_a_cancelled_pull_leaves_nothing(self):
        b = self.browser
        self.begin()
        self.assertNotEqual(self.blobs(), [])
        self.click(f"Cancel the pull of {MODEL}")
        self.click("Cancel the pull", "document.querySelector('dialog')")
        b.wait("!document.querySelector('.pull')")
        eventually(lambda: self.blobs() == [], what="the files are deleted")

    def test_what_a_pull_fails_of_is_said_and_it_can_be_tried_again(self):
        b = self.browser
        self.hub.fault("/api/models/org/name", "status", times=99, code=404)
        b.run("location.hash = '#/models'")
        b.wait("document.querySelector('.card.model')")
        self.module("pulls.js", f"it.startPull('{MODEL}');")
        b.wait("document.querySelector('.pull .bad')?.innerText.includes('org/name')", 20)
        self.hub.forget()
        self.click(f"Resume the pull of {MODEL}")
        b.wait("!document.querySelector('.pull')", 20)
        self.assertIn("it is here", self.weir.logged())


if __name__ == "__main__":
    unittest.main()
