"""The web page in Debian's Chromium: chats by keyboard alone, every state, every screen at three widths in both themes,
contrast, names, hostile texts. WEIR_PICTURES=FOLDER keeps what the screens look like."""
import json, os, threading, time, unittest

import browser
from browser import Browser
from hostile_texts import hostile_texts
from page_checks import CONTRAST, NAMES, OVERLAPS, STRANGERS
from scripted_server import Scripted, chunk
from weir_server import Server

CHAT = "/v1/chat/completions"
WRITTEN = "document.querySelector('.turn.assistant:last-child') && !document.querySelector('.turn.writing')"
LAST = "document.querySelector('.turn.assistant:last-child .turn-body').innerText"


def setUpModule():
    if browser.CHROMIUM is None:
        print(browser.WHY_NOT)
        os._exit(77)


class PageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.weir = Server("--ssd-io", "auto")
        cls.weir.__enter__()
        cls.url = f"http://127.0.0.1:{cls.weir.port}/"

    @classmethod
    def tearDownClass(cls):
        cls.weir.__exit__(None, None, None)

    def setUp(self):
        self.browser = Browser()
        self.scripted = Scripted(self.weir)

    def tearDown(self):
        reports, requests = self.browser.reports, self.browser.requests
        self.browser.close()
        self.scripted.close()
        self.assertEqual(reports, [])
        own = (self.url, self.scripted.url, "about:", "data:", "blob:")
        self.assertEqual([each for each in requests if not each.startswith(own)], [])

    def open(self, url=None):
        self.browser.open(url or self.url)
        self.browser.wait("document.activeElement?.id === 'message'")

    def script(self, answer):
        self.scripted.answers[CHAT] = answer
        self.open(self.scripted.url)

    def say(self, text):
        self.browser.run("document.querySelector('#message').focus()")
        self.browser.type(text)
        self.browser.press("Enter")

    def click(self, name, within="document"):
        """The button or link of that name, as a screen reader says it."""
        self.browser.wait(f"""(() => {{
          const found = [...({within}?.querySelectorAll('button, a, summary') ?? [])].findLast((each) =>
            (each.getAttribute('aria-label') ?? each.innerText).trim() === {json.dumps(name)});
          found?.click();
          return found; }})()""")

    def module(self, name, script):
        return self.browser.run(f"""(async () => {{
          const base = document.querySelector('script[type=module]').src;
          const it = await import(new URL({json.dumps(name)}, base));
          {script} }})()""")

    # --- Behaviour.

    def test_a_whole_chat_by_keyboard(self):
        b = self.browser
        self.open()
        b.type("First line")
        b.press("Enter", 8)
        b.type("second line")
        b.press("Enter")
        b.wait(WRITTEN)
        self.assertEqual(b.run("document.querySelector('.turn.user .plain').textContent"), "First line\nsecond line")
        self.assertGreater(len(b.run(LAST)), 10)
        b.wait("document.activeElement.id === 'message'")
        b.press("ArrowUp", 1)  # Edits the last message.
        b.wait("document.querySelector('dialog[open] textarea') === document.activeElement")
        b.type(" and a third")
        for _ in range(2):
            b.press("Tab")
        self.assertEqual(b.run("document.activeElement.textContent"), "Send")
        b.press("Enter")
        b.wait("document.querySelector('.branches')?.textContent === '2/2' && " + WRITTEN)
        b.press("?")
        b.run("document.activeElement.blur()")
        b.press("?")
        b.wait("document.querySelector('dialog[open] .keys')")
        b.press("Escape")
        b.wait("!document.querySelector('dialog')")
        b.press("k", 2)
        b.wait("document.activeElement.id === 'search'")
        b.type("third")
        b.wait("document.querySelectorAll('.list-items li').length === 1")
        b.press("o", 2 | 8)
        b.wait("document.querySelector('.empty')")
        # Everything that can be clicked is reached by Tab, in at most so many steps as there are things.
        count = b.run("document.querySelectorAll('a, button:not(:disabled), input:not([hidden]), select').length")
        reached = set()
        for _ in range(count + 3):
            b.press("Tab")
            reached.add(b.run("document.activeElement.getAttribute('aria-label') ?? document.activeElement.innerText"))
        for name in ("Chat", "Models", "Dashboard", "Settings", "New chat", "Search chats", "Model", "Message"):
            self.assertIn(name, reached)

    def half(self, handler, body):
        """An answer that begins and goes on until the page leaves."""
        if body.get("continue_final_message"):
            self.assertEqual(body["messages"][-1], {"role": "assistant", "content": "Half"})
            return handler.text(" and half.")
        handler.begin()
        handler.event(chunk("Half"))
        for _ in range(200):
            time.sleep(0.05)
            handler.wfile.write(b": alive\n\n")

    def test_stop_continue_again_fork_and_delete(self):
        b = self.browser
        self.script(self.half)
        self.say("Hello")
        b.wait("document.querySelector('.turn.assistant .turn-body')?.innerText === 'Half'")
        b.press("Escape")
        b.wait("document.querySelector('.trouble')?.innerText.startsWith('Stopped')")
        self.click("Continue")
        b.wait(WRITTEN + " && " + LAST + " === 'Half and half.'")
        self.scripted.answers[CHAT] = lambda handler, body: handler.text("Another")
        self.click("Answer again")
        b.wait("document.querySelector('.branches')?.textContent === '2/2' && " + LAST + " === 'Another'")
        self.click("Previous branch")
        b.wait(LAST + " === 'Half and half.'")
        before = b.run("location.hash")
        self.click("Fork into a new chat")
        b.wait(f"location.hash !== '{before}' && document.querySelectorAll('.list-items li').length === 2")
        b.wait(LAST + " === 'Half and half.'")
        self.click("Delete from here on")
        self.click("Delete", "document.querySelector('dialog')")
        b.wait("!document.querySelector('.turn.assistant')")

    def test_what_is_clicked_while_an_answer_comes_is_not_lost(self):
        b = self.browser
        self.script(lambda handler, body: handler.text("One."))
        self.say("First")
        b.wait(WRITTEN)
        # A writing of the storage that takes long, as on a busy machine, keeps nobody from the next answer.
        self.module("chats.js", """const flush = it.Chat.prototype.flush;
          it.Chat.prototype.flush = async function () {
            await new Promise((done) => setTimeout(done, this.turns.size > 2 ? 700 : 0));
            return flush.call(this); };""")
        self.scripted.answers[CHAT] = self.half
        self.say("Second")
        b.wait(LAST + " === 'Half'")
        b.press("Escape")
        self.click("Continue")
        b.wait(WRITTEN + " && " + LAST + " === 'Half and half.'")
        self.click("Answer again")
        b.wait(LAST + " === 'Half' && document.querySelector('.turn.writing')")
        # The first question's answer again: the one that comes gives way.
        self.scripted.answers[CHAT] = lambda handler, body: handler.text("Another.")
        self.click("Answer again")
        b.wait(WRITTEN + " && " + LAST + " === 'Another.' && document.querySelectorAll('.turn').length === 2")
        self.assertTrue(b.run("document.querySelector('[aria-label=Send]') !== null"))
        # What is deleted while it is written does not come back.
        self.scripted.answers[CHAT] = self.half
        self.say("Third")
        b.wait(LAST + " === 'Half'")
        self.click("Delete from here on")
        self.click("Delete", "document.querySelector('dialog')")
        b.wait("document.querySelectorAll('.turn').length === 2")
        time.sleep(1)
        b.run("location.reload()")
        b.wait("document.querySelectorAll('.turn').length > 0")
        self.assertEqual(b.run(LAST), "Another.")

    def test_reasoning_folds_and_is_not_sent_back(self):
        b = self.browser
        self.script(lambda handler, body: handler.stream(
            chunk(reasoning_content="Let me "), chunk(reasoning_content="think."), chunk("It is 4."),
            chunk(finish="stop")))
        self.say("2 + 2?")
        b.wait(WRITTEN)
        self.assertEqual(b.run("document.querySelector('.thoughts').textContent"), "Let me think.")
        self.assertFalse(b.run("document.querySelector('.reasoning').open"))
        self.say("Sure?")
        b.wait("document.querySelectorAll('.turn.assistant').length === 2 && " + WRITTEN)
        sent = self.scripted.asked[-1][1]["messages"]
        self.assertEqual([each["content"] for each in sent], ["2 + 2?", "It is 4.", "Sure?"])
        self.assertNotIn("reasoning_content", sent[1])

    def test_parameters_and_personas_are_sent_where_they_differ(self):
        b = self.browser
        self.script(lambda handler, body: handler.text("Aye."))
        self.module("transfer.js", """await it.addPersona({name: 'Pirate', system: 'Talk like a pirate.',
          greeting: 'Ahoy', params: {temperature: 0.2, top_k: 5}});""")
        b.run("location.reload()")
        b.wait("document.querySelector('[aria-label=Persona]:not([hidden])')")
        b.run("""(() => { const persona = document.querySelector('[aria-label=Persona]');
          persona.value = persona.options[1].value; persona.dispatchEvent(new Event('change')); })()""")
        b.wait("document.querySelector('.empty h1').textContent === 'Ahoy'")
        self.click("Parameters of this chat")
        b.run("""(() => { const field = [...document.querySelectorAll('dialog label')].find((label) =>
          label.textContent === 'Temperature'); const input = document.getElementById(field.htmlFor);
          input.value = '1.5'; input.dispatchEvent(new Event('input')); })()""")
        b.press("Escape")
        b.wait("!document.querySelector('dialog')")
        self.say("Hello")
        b.wait(WRITTEN)
        body = self.scripted.asked[-1][1]
        self.assertEqual(body["messages"][0], {"role": "system", "content": "Talk like a pirate."})
        self.assertEqual((body["temperature"], body["top_k"]), (1.5, 5))
        self.assertNotIn("top_p", body)

    def test_tools_ask_once_and_their_results_go_back(self):
        b = self.browser

        def answer(handler, body):
            if body["messages"][-1]["role"] == "tool":
                return handler.text("It is " + body["messages"][-1]["content"])
            call = {"index": 0, "id": "c1", "function": {"name": "calculate", "arguments": '{"expression":"6*(3+4)"}'}}
            handler.stream(chunk(tool_calls=[call]), chunk(finish="tool_calls"))
        self.script(answer)
        self.module("store.js", "await it.setSetting('tools', true);")
        self.say("6 * 7?")
        self.click("Allow", "document.querySelector('dialog')")
        b.wait(WRITTEN + " && " + LAST + " === 'It is 42'")

    def test_export_and_import_add_and_never_overwrite(self):
        b = self.browser
        self.script(lambda handler, body: handler.text("Kept *well*."))
        self.say("Keep this")
        b.wait(WRITTEN)
        counts = self.module("transfer.js", """
          const text = await it.exportChats();
          const first = await it.importChats(new File([text], 'a.json'));
          const messages = JSON.stringify([{role: 'system', content: 's'}, {role: 'user', content: 'from OpenAI'}]);
          const second = await it.importChats(new File([messages], 'b.json'));
          const wrong = await it.importChats(new File(['{"format":"x"}'], 'c.json')).catch((error) => error.message);
          return [first, second, wrong];""")
        self.assertEqual(counts[:2], [1, 1])
        self.assertIn("weir-chats", counts[2])
        b.run("location.reload()")
        b.wait("document.querySelectorAll('.list-items li').length === 3")

    def test_a_reload_in_mid_answer_loses_two_seconds_at_most(self):
        b = self.browser

        def slow(handler, body):
            handler.begin()
            for word in range(100):
                handler.event(chunk(f"{word} "))
                time.sleep(0.1)
        self.script(slow)
        self.say("Count")
        time.sleep(4.5)
        shown = int(b.run(LAST).split()[-1])
        b.run("location.reload()")
        b.wait("document.querySelector('.trouble')")
        kept = int(b.run(LAST).split()[-1])
        self.assertGreaterEqual(kept, shown - 21)
        self.assertIn("Continue", b.run("document.querySelector('.trouble').innerText"))

    def test_an_idle_page_asks_nothing(self):
        b = self.browser
        self.open()
        time.sleep(0.5)
        before = len(b.requests)
        time.sleep(3)
        b.run("1")
        self.assertEqual(b.requests[before:], [])

    def test_memory_recalls_by_words(self):
        self.open()
        found = self.module("memory.js", """
          return it.rank([{text: 'The cat is called Tom.'}, {text: 'Oslo is cold in winter.'}, {text: 'A cat, a cat.'}],
            'How cold is Oslo?').map((fact) => fact.text);""")
        self.assertEqual(found[0], "Oslo is cold in winter.")
        self.assertEqual(self.module("tools.js", "return ['2^3^2', '-2*(3-5)/4', '7%4'].map(it.calculate);"),
                         [512, 1, 3])

    # --- States.

    def test_a_key_is_asked_for_and_sent(self):
        b = self.browser
        for path, real in (("/v1/models", {"data": [{"id": "m"}]}), ("/props", {})):
            self.scripted.answers[path] = lambda handler, body, real=real: (
                handler.json(real) if handler.headers["Authorization"] == "Bearer right"
                else handler.error(401, "A key is missing, or wrong."))
        b.open(self.scripted.url)
        b.wait("document.querySelector('.composer') && document.activeElement.type === 'password'")
        b.type("wrong")
        b.press("Enter")
        b.wait("document.querySelector('dialog [role=alert]:not([hidden])')")
        b.run("document.querySelector('dialog input').select()")
        b.type("right")
        b.press("Enter")
        b.wait("!document.querySelector('dialog') && document.querySelector('.dot.ready')")
        self.assertEqual(b.run("document.cookie + localStorage.length + sessionStorage.getItem('weir-key')"), "0right")

    def test_a_busy_server_is_asked_again(self):
        b, times = self.browser, []

        def busy(handler, body):
            times.append(time.monotonic())
            if len(times) < 3:
                return handler.error(429, "Too many requests.", Retry_After="1")
            handler.text("At last.")
        self.script(busy)
        self.say("Hello")
        b.wait("document.querySelector('.trouble')?.innerText.includes('busy')")
        b.wait(WRITTEN + " && " + LAST + " === 'At last.'")
        self.assertGreaterEqual(times[1] - times[0], 0.95)
        times.clear()
        self.scripted.answers[CHAT] = lambda handler, body: handler.error(429, "Too many requests.", Retry_After="1")
        self.say("Again")
        b.wait("document.querySelector('.trouble.bad')?.innerText.includes('Too many requests')")
        self.scripted.answers[CHAT] = lambda handler, body: handler.text("Now.")
        self.click("Try again")
        b.wait(WRITTEN + " && " + LAST + " === 'Now.'")

    def test_a_message_waits_until_the_model_is_loaded(self):
        b, ready = self.browser, threading.Event()
        real = {"/v1/models": {"data": [{"id": "m"}]}, "/props": {}}

        def loading(handler, body):
            path = handler.path
            if not ready.is_set():
                return handler.error(503, "The model is loading: pull 42 %.", Retry_After="1")
            handler.json(real[path]) if path in real else handler.text("Loaded.")
        for path in (*real, CHAT):
            self.scripted.answers[path] = loading
        b.open(self.scripted.url)
        b.wait("document.querySelector('.banner')?.innerText.includes('42 %')")
        self.say("Hello")
        b.wait("document.querySelector('.trouble')")
        time.sleep(4)  # Longer than a busy server is asked.
        self.assertIn("busy", b.run("document.querySelector('.trouble').innerText"))
        ready.set()
        b.wait(WRITTEN + " && " + LAST + " === 'Loaded.'")
        b.wait("document.querySelector('.banner').hidden")

    def test_what_went_wrong_is_said(self):
        b = self.browser
        self.script(lambda handler, body: handler.error(400, "5,000 tokens exceed 4,096.", "context_length_exceeded"))
        self.say("Hello")
        b.wait("document.querySelector('.trouble.bad')?.innerText.includes('5,000 tokens exceed 4,096.')")
        self.assertIn("oldest turns", b.run("document.querySelector('.trouble').innerText"))
        self.scripted.answers[CHAT] = lambda handler, body: handler.stream(
            chunk("So far"), {"error": {"message": "The model's files were changed."}})
        self.click("Try again")
        b.wait("document.querySelector('.trouble.bad')?.innerText.includes('files were changed')")
        self.assertEqual(b.run(LAST), "So far")
        self.assertIn("Continue", b.run("document.querySelector('.trouble').innerText"))
        self.assertIn("sees no images", b.run("document.querySelector('.composer [aria-label^=Attach]').title"))

    def test_a_server_that_is_gone_keeps_the_draft(self):
        b = self.browser
        self.script(lambda handler, body: handler.text("Hi."))
        self.say("Hello")
        b.wait(WRITTEN)
        b.type("A draft")
        def gone(handler, body):
            handler.close_connection = True
            handler.connection.close()
        for path in ("/v1/models", "/props", CHAT):
            self.scripted.answers[path] = gone
        self.click("Answer again")
        b.wait("document.querySelector('.banner:not([hidden])')?.innerText.includes('cannot be reached')")
        b.wait("document.querySelector('.dot.unreachable')")
        self.assertEqual(b.run("document.querySelector('#message').value"), "A draft")
        self.scripted.answers.clear()
        b.wait("document.querySelector('.banner').hidden && document.querySelector('.dot.ready')")
        b.reports.clear()  # The browser itself complains of requests that failed.

    # --- Looks.

    def test_every_screen_at_every_width_in_both_themes(self):
        b, folder = self.browser, os.environ.get("WEIR_PICTURES")
        self.open()
        self.say("Write a short story about a river.")
        b.wait(WRITTEN)
        chat = b.run("location.hash")
        for screen, ready in ((chat, ".turn"), ("#/models", ".card.model"), ("#/dashboard", ".spark"),
                              ("#/settings", ".command")):
            b.run(f"location.hash = '{screen}'")
            b.wait(f"document.querySelector('{ready}')")
            name = screen.split("/")[1]
            for width, height in ((360, 740), (768, 900), (1280, 800)):
                for dark in (False, True):
                    b.view(width, height, dark)
                    b.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
                    with self.subTest(screen=name, width=width, dark=dark):
                        self.assertEqual(b.run(OVERLAPS), [])
                        self.assertEqual(b.run(CONTRAST), [])
                        self.assertEqual(b.run(NAMES), [])
                    if folder:
                        b.picture(os.path.join(folder, f"{name}-{width}-{'dark' if dark else 'light'}.png"))

    def test_hostile_texts_become_nothing_but_text(self):
        b, texts = self.browser, hostile_texts()
        self.assertGreaterEqual(len(texts), 120)
        at = {"text": ""}

        def answer(handler, body):
            handler.text(at["text"])
        self.scripted.model = '<img src=x onerror=alert(1)>"\'`'
        self.script(answer)
        slow = self.module("markdown.js", f"""
          const slow = [];
          for (const text of {json.dumps(texts)}) {{
            const begin = performance.now();
            const place = document.createElement('div');
            place.append(...it.markdown(text));
            document.querySelector('.turns').replaceChildren(place);
            const strangers = {STRANGERS};
            const ms = performance.now() - begin;
            // Some 50 ms where nothing else runs; what is not linear takes seconds.
            if (strangers.length > 0 || ms > 1000) slow.push([text.slice(0, 80), strangers, ms]);
          }}
          return slow;""")
        self.assertEqual(slow, [])
        for text in texts[::12]:  # The whole way: title, answer, list, storage.
            at["text"] = text
            self.click("New chat")
            b.wait("document.querySelector('.empty')")
            self.say(text[:2000])
            b.wait(WRITTEN)
            self.assertEqual(b.run(STRANGERS), [], text[:80])

    def test_a_growing_answer_ends_as_it_is_drawn_at_once(self):
        self.open()
        different = self.module("markdown.js", """
          const text = '# Title\\n\\nA *b* `c`\\n\\n- one\\n- two\\n\\n  more\\n- three\\n\\n' +
            '| a | b |\\n|---|--:|\\n| 1 | 2 |\\n\\n```js\\nconst a = 1;\\n\\nlet b;\\n```\\n\\n' +
            '> quote\\n> more\\n\\n1. x\\n2. y\\n\\nEnd [link](https://a.b/c).';
          const shape = (element) => element.innerHTML;
          const whole = document.createElement('div');
          whole.append(...it.markdown(text));
          const wrong = [];
          for (const step of [1, 3, 7, 50]) {
            const place = document.createElement('div');
            const growing = new it.GrowingMarkdown(place);
            for (let at = step; at < text.length; at += step) growing.draw(text.slice(0, at));
            growing.draw(text);
            if (shape(place) !== shape(whole)) wrong.push([step, shape(place), shape(whole)]);
          }
          return wrong;""")
        self.assertEqual(different, [])


if __name__ == "__main__":
    unittest.main()
