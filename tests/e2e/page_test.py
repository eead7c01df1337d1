"""The web page in Debian's Chromium: chats by keyboard alone, every state, every screen at three widths in both themes,
contrast, names, hostile texts. WEIR_PICTURES=FOLDER keeps what the screens look like."""
import base64, json, os, struct, threading, time, unittest

from hostile_texts import hostile_texts
from npm_packages import installed
from page_case import CHAT, LAST, WRITTEN, PageCase, page_sizes, skip_without_browser as setUpModule
from page_checks import CONTRAST, NAMES, OVERLAPS, STRANGERS
from scripted_server import Scripted, chunk
from weir_server import Server


class PageTest(PageCase):
    @classmethod
    def setUpClass(cls):
        cls.weir = Server("--ssd-io", "auto")
        cls.weir.__enter__()
        cls.url = f"http://127.0.0.1:{cls.weir.port}/"

    @classmethod
    def tearDownClass(cls):
        cls.weir.__exit__(None, None, None)

    def setUp(self):
        super().setUp()
        self.scripted = Scripted(self.weir)
        self.addCleanup(self.scripted.close)
        self.own += [self.url, self.scripted.url]

    def open(self, url=None):
        super().open(url or self.url)

    def script(self, answer):
        self.scripted.answers[CHAT] = answer
        self.open(self.scripted.url)

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
        b.wait("document.querySelector('.turn.assistant .turn-body')?.textContent === 'Half'")
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
        b.reload()
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
        b.reload()
        b.wait("document.querySelector('[aria-label=Persona]:not([hidden])')")
        b.run("""(() => { const persona = document.querySelector('[aria-label=Persona]');
          persona.value = persona.options[1].value; persona.dispatchEvent(new Event('change')); })()""")
        b.wait("document.querySelector('.empty h2').textContent === 'Ahoy'")
        self.click("Parameters of this chat")
        # It reads the persona from the store of the browser first.
        b.wait("[...document.querySelectorAll('dialog label')].some((each) => each.textContent === 'Temperature')")
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
        b.reload()
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
        b.reload()
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

    def test_it_is_small(self):
        without, with_math = page_sizes(self.weir)
        self.assertLessEqual(without, 110_000)
        self.assertLessEqual(with_math, 190_000)

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
            path = handler.path.split("?")[0]
            if not ready.is_set():
                return handler.error(503, "The model is loading: pull 42 %.", Retry_After="1")
            handler.json(real[path]) if path in real else handler.text("Loaded.")
        for path in (*real, CHAT):
            self.scripted.answers[path] = loading
        b.open(self.scripted.url)
        b.wait("document.querySelector('.banner')?.innerText.includes('42 %')")
        self.assertEqual(b.run("document.querySelector('.banner meter').value"), 0.42)
        b.wait("/\\d s$/.test(document.querySelector('.banner').innerText)")
        self.say("Hello")
        b.wait("document.querySelector('.trouble')")
        time.sleep(4)  # Longer than a busy server is asked.
        self.assertIn("busy", b.run("document.querySelector('.trouble').innerText"))
        ready.set()
        b.wait(WRITTEN + " && " + LAST + " === 'Loaded.'")
        b.wait("document.querySelector('.banner').hidden")

    def test_what_went_wrong_is_said(self):
        b = self.browser
        full = lambda handler, body: handler.error(400, "5,000 tokens exceed 4,096.", "context_length_exceeded")
        self.script(full)
        self.say("Hello")
        b.wait("document.querySelector('.trouble.bad')?.innerText === '5,000 tokens exceed 4,096.'")
        self.scripted.answers[CHAT] = lambda handler, body: handler.text("Hi.")
        self.click("Answer again")
        b.wait(WRITTEN + " && " + LAST + " === 'Hi.'")
        self.scripted.answers[CHAT] = full
        self.say("And now?")
        b.wait("document.querySelector('.trouble.bad')?.innerText.includes('5,000 tokens exceed 4,096.')")
        self.assertIn("oldest turns", b.run("document.querySelector('.trouble').innerText"))
        self.scripted.answers[CHAT] = lambda handler, body: handler.stream(
            chunk("So far"), {"error": {"message": "The model's files were changed."}})
        self.click("Answer again")
        b.wait("document.querySelector('.trouble.bad')?.innerText.includes('files were changed')")
        self.assertEqual(b.run(LAST), "So far")
        self.assertIn("Continue", b.run("document.querySelector('.trouble').innerText"))
        self.assertIn("sees no images", b.run("document.querySelector('.composer [aria-label^=Attach]').title"))

    def test_a_full_context_leads_to_a_new_chat_with_a_summary(self):
        b, asked = self.browser, []

        def answer(handler, body):
            text = body["messages"][-1]["content"]
            if text.startswith("Summarise"):
                asked.append(text)
                if len(asked) == 1:  # The page has thought that tokens are longer than they are.
                    return handler.error(400, "9,000 tokens exceed 4,096.", "context_length_exceeded")
                return handler.stream(chunk("Tom is "), chunk("a cat."), chunk(finish="stop"))
            if text == "And now?":
                return handler.error(400, "5,000 tokens exceed 4,096.", "context_length_exceeded")
            handler.text("Noted. " * 4000 if text == "Tom is a cat." else "He sleeps.")
        self.script(answer)
        self.say("Tom is a cat.")
        b.wait(WRITTEN)
        self.say("And now?")
        self.click("New chat with a summary")
        b.wait("document.querySelector('dialog textarea')?.value === 'Tom is a cat.'")
        self.assertIn("User: Tom is a cat.", asked[0])
        self.assertNotIn("And now?", asked[0])
        self.assertLess(len(asked[1]), len(asked[0]))
        b.wait("document.activeElement.innerText === 'Begin the chat'")
        b.press("Enter")
        b.wait("document.querySelectorAll('.list-items li').length === 2")
        b.wait(WRITTEN + " && " + LAST + " === 'He sleeps.'")
        sent = self.scripted.asked[-1][1]["messages"]
        self.assertEqual([each["content"] for each in sent],
                         ["What was said before, in short:\n\nTom is a cat.\n\nAnd now?"])

    def test_the_oldest_turns_can_be_left_out(self):
        b = self.browser
        self.script(lambda handler, body: handler.text("Yes."))
        for text in ("One", "Two", "Three"):
            self.say(text)
            asked = "document.querySelector('.turn.user:nth-last-child(2)')?.innerText"
            b.wait(f"{asked}.includes('{text}') && " + WRITTEN)
        self.scripted.answers[CHAT] = lambda handler, body: (
            handler.error(400, "Too long.", "context_length_exceeded") if len(body["messages"]) > 5
            else handler.text("Shorter."))
        self.say("Four")
        self.click("Send without the oldest turns")
        b.wait(WRITTEN + " && " + LAST + " === 'Shorter.'")
        sent = self.scripted.asked[-1][1]["messages"]
        self.assertEqual([each["content"] for each in sent if each["role"] == "user"], ["Three", "Four"])

    def test_a_full_storage_refuses_before_it_writes(self):
        b = self.browser
        self.scripted.props = {"modalities": {"vision": True}}
        self.script(lambda handler, body: handler.text("Seen."))
        attach = """(async () => {
          const canvas = document.createElement('canvas');
          canvas.width = canvas.height = 64;
          const blob = await new Promise((done) => canvas.toBlob(done, 'image/png'));
          const event = new Event('paste', { bubbles: true, cancelable: true });
          event.clipboardData = { files: [new File([blob], 'a.png', { type: 'image/png' })] };
          document.querySelector('#message').dispatchEvent(event); })()"""
        b.run("navigator.storage.estimate = async () => ({ quota: 1000, usage: 990 })")
        b.run(attach)
        b.wait("document.querySelector('#notice:not([hidden])')?.innerText.includes('storage is full')")
        self.assertFalse(b.run("document.querySelector('.attachments img') !== null"))
        # It fills between the attaching and the sending.
        b.run("delete navigator.storage.estimate")
        b.run(attach)
        b.wait("document.querySelector('.attachments img')")
        b.run("""window.kept = IDBObjectStore.prototype.put;
          IDBObjectStore.prototype.put = function () { throw new DOMException('', 'QuotaExceededError'); };""")
        self.say("What is this?")
        b.wait("document.querySelector('#notice:not([hidden])')?.innerText.includes('was not sent')")
        self.assertEqual(b.run("document.querySelector('#message').value"), "What is this?")
        b.wait("document.querySelector('.attachments img')")
        b.run("IDBObjectStore.prototype.put = window.kept")
        b.press("Enter")
        b.wait(WRITTEN + " && " + LAST + " === 'Seen.'")
        content = self.scripted.asked[-1][1]["messages"][-1]["content"]
        self.assertTrue(content[0]["image_url"]["url"].startswith("data:image/png;base64,"))
        # A text alone goes out all the same; that it is not kept is said.
        b.run("IDBObjectStore.prototype.put = function () { throw new DOMException('', 'QuotaExceededError'); }")
        self.say("And this?")
        b.wait("document.querySelectorAll('.turn.assistant').length === 2 && " + WRITTEN)
        b.wait("document.querySelector('#notice:not([hidden])')?.innerText.includes('is not kept')")

    def test_sounds_are_attached_and_recorded(self):
        b = self.browser
        self.scripted.props = {"modalities": {"vision": False, "audio": True}}
        self.script(lambda handler, body: handler.text("Heard."))
        b.run("""(() => {
          const event = new Event('paste', { bubbles: true, cancelable: true });
          event.clipboardData = { files: [new File([new Uint8Array([1, 2, 3])], 'a.mp3', { type: 'audio/mpeg' })] };
          document.querySelector('#message').dispatchEvent(event); })()""")
        b.wait("document.querySelector('.attachments audio')")
        # A tone in place of the microphone: half a second of it at least.
        b.run("""navigator.mediaDevices.getUserMedia = async () => {
          const context = new AudioContext(), tone = context.createOscillator();
          const out = context.createMediaStreamDestination();
          tone.connect(out);
          tone.start();
          await context.resume();
          return out.stream; }""")
        self.click("Record a sound")
        b.wait("document.querySelector('[aria-label=\"Stop recording\"]')")
        time.sleep(1)
        self.click("Stop recording")
        b.wait("document.querySelectorAll('.attachments audio').length === 2")
        self.say("What is this?")
        b.wait(WRITTEN + " && " + LAST + " === 'Heard.'")
        content = self.scripted.asked[-1][1]["messages"][-1]["content"]
        self.assertEqual(content[0], {"type": "input_audio", "input_audio": {"data": "AQID", "format": "mp3"}})
        self.assertEqual((content[1]["type"], content[1]["input_audio"]["format"]), ("input_audio", "wav"))
        wav = base64.b64decode(content[1]["input_audio"]["data"])
        self.assertEqual((wav[:4], wav[8:16]), (b"RIFF", b"WAVEfmt "))
        rate, = struct.unpack("<I", wav[24:28])
        samples = [number for number, in struct.iter_unpack("<h", wav[44:])]
        self.assertGreater(len(samples), rate / 2)
        self.assertGreater(max(samples), 1000, "the recording is silent")
        self.assertEqual(b.run("document.querySelectorAll('.turn.user audio').length"), 2)
        self.assertEqual(self.module("recorder.js", "return it.wavOf([new Float32Array([0, 2, -2])], 8000).size"), 50)

    def test_a_server_without_a_model_or_about_to_end_says_so(self):
        b = self.browser
        self.scripted.answers["/v1/models"] = lambda handler, body: handler.json({"data": []})
        self.open(self.scripted.url)
        b.wait("document.querySelector('.empty h2').innerText === 'No model'")
        self.click("See what would run here")
        b.wait("location.hash === '#/models' && document.querySelector('.cards').innerText === 'None'")
        self.scripted.answers["/v1/models"] = lambda handler, body: handler.error(503, "The server is shutting down.")
        self.module("server.js", "await it.refreshServer();")
        b.wait("document.querySelector('.dot.draining')")
        b.run("location.hash = '#/chat'")
        b.wait("document.querySelector('.banner:not([hidden])').innerText === 'The server is shutting down.'")

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

    def test_axe_finds_nothing(self):
        with open(f"{installed('axe')}/node_modules/axe-core/axe.min.js") as file:
            axe = file.read()
        b = self.browser
        self.open()
        self.say("Write a table.")
        b.wait(WRITTEN)
        b.run(f"{axe}; 0")
        for screen, ready in ((b.run("location.hash"), ".turn"), ("#/models", ".card.model"), ("#/dashboard", ".spark"),
                              ("#/settings", ".command")):
            b.run(f"location.hash = '{screen}'")
            b.wait(f"document.querySelector('{ready}')")
            for width, dark in ((1280, False), (1280, True), (360, False)):
                b.view(width, 800, dark)
                with self.subTest(screen=screen.split("/")[1], width=width, dark=dark):
                    found = b.run("""axe.run().then(({ violations }) =>
                      violations.map(({ id, nodes }) => [id, nodes.map((node) => node.html)]))""")
                    self.assertEqual(found, [])
        b.reports.clear()  # It tries what the content policy forbids.

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
          const first = document.createElement('div');
          first.append(...it.markdown('$x$'));
          document.querySelector('.turns').replaceChildren(first);
          while (document.body.dataset.math && !first.querySelector('math')) await new Promise(requestAnimationFrame);
          for (const text of {json.dumps(texts)}) {{
            const begin = performance.now();
            const place = document.createElement('div');
            place.append(...it.markdown(text));
            document.querySelector('.turns').replaceChildren(place);
            const ms = performance.now() - begin;
            await new Promise((done) => setTimeout(done, text.includes('$') || text.includes('\\\\') ? 30 : 0));
            const strangers = {STRANGERS};
            // Some 50 ms where nothing else runs; what is not linear takes seconds.
            if (strangers.length > 0 || ms > 1000) slow.push([text.slice(0, 80), strangers, ms]);
          }}
          return slow;""")
        self.assertEqual(slow, [])
        for text in texts[::12]:  # The whole way: title, answer, list, storage.
            at["text"] = text
            self.click("New chat")
            b.wait("document.querySelector('.empty')")
            self.say(text[:2000].strip() or "Nothing but spaces")
            b.wait(WRITTEN)
            self.assertEqual(b.run(STRANGERS), [], text[:80])

    def test_formulas_become_elements_and_what_is_none_stays_text(self):
        b = self.browser
        self.open()
        if not b.run("document.body.dataset.math"):
            self.skipTest("the page was built without KaTeX (libjs-katex)")
        self.assertFalse([each for each in b.requests if "katex" in each], "nobody has asked for a formula yet")
        texts = [r"$\frac{a}{b}$", r"So \(x^2\) it is", r"$$\sum_{i=0}^n i$$", "\\[\n\\mathbb{R}\n\\]",
                 "It costs $5 and $10", r"$\nosuch{x}$", "a $ b $ c", r"\$x$", "`$x$`", r"$\boxed{x}$",
                 "$$\n\\begin{aligned}a&=b\\\\c&=d\\end{aligned}\n$$", "$$ never closed"]
        shown = self.module("markdown.js", f"const texts = {json.dumps(texts)};" + r"""
          const shown = {};
          const place = document.createElement('div');
          document.querySelector('.turns').replaceChildren(place);
          for (const text of texts) {
            place.replaceChildren(...it.markdown(text));
            for (let i = 0; i < 40 && !place.querySelector('math'); ++i) {
              if (!place.querySelector('.formula')) break;
              await new Promise((done) => setTimeout(done, i < 20 && Object.keys(shown).length === 0 ? 100 : 2));
            }
            shown[text] = place.innerHTML.replaceAll(/ (xmlns|class)="[^"]*"/g, '');
          }
          return shown;""")
        by_begin = lambda begin: next(html for text, html in shown.items() if text.startswith(begin))
        self.assertEqual(by_begin(r"$\frac"),
                         "<p><span><math><mrow><mfrac><mi>a</mi><mi>b</mi></mfrac></mrow></math></span></p>")
        self.assertIn("<p>So <span><math><mrow><msup><mi>x</mi><mn>2</mn></msup></mrow></math></span> it is</p>",
                      by_begin("So "))
        self.assertIn('<math display="block">', by_begin(r"$$\sum"))
        self.assertIn("\u211d", by_begin(r"\["))
        self.assertEqual(by_begin("It costs"), "<p>It costs $5 and $10</p>")
        self.assertEqual(by_begin(r"$\nosuch"), r"<p><span><code>$\nosuch{x}$</code></span></p>")
        self.assertEqual(by_begin("a $ b"), "<p>a $ b $ c</p>")
        self.assertEqual(by_begin(r"\$x"), "<p>$x$</p>")
        self.assertEqual(by_begin("`$x"), "<p><code>$x$</code></p>")
        self.assertIn("menclose", by_begin(r"$\boxed"))
        self.assertIn("<mtable", by_begin("$$\n\\begin"))
        self.assertEqual(by_begin("$$ never"), "<p>$$ never closed</p>")

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
          const grow = (text, step, whole) => {
            const place = document.createElement('div');
            const growing = new it.GrowingMarkdown(place);
            for (let at = step; at < text.length; at += step) growing.draw(text.slice(0, at));
            growing.draw(text);
            if (shape(place) !== shape(whole)) wrong.push([step, text, shape(place), shape(whole)]);
          };
          for (const step of [1, 3, 7, 50]) grow(text, step, whole);
          const pieces = ['a', 'b c', '\\n', '\\n\\n', '- ', '1. ', '  ', '# ', '> ', '```', '```\\n', '|', '|-|', '---',
            '$$', '\\\\\\\\[', '\\\\\\\\]', '*', '**', '`', '    ', '\\n- ', '\\n\\n- ', '\\n> ', '| a | b |\\n|---|---|\\n'];
          let seed = 1;
          const random = (count) => (seed = (seed * 48271) % 2147483647) % count;
          for (let i = 0; i < 400; ++i) {
            let text = '';
            for (let parts = random(40); parts > 0; --parts) text += pieces[random(pieces.length)];
            const whole = document.createElement('div');
            whole.append(...it.markdown(text));
            grow(text, 1 + random(9), whole);
          }
          return wrong.slice(0, 3);""")
        self.assertEqual(different, [])


if __name__ == "__main__":
    unittest.main()
