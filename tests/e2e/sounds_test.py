"""Sounds through the APIs of the real server, from every source, good and bad; and from OpenAI's JavaScript client."""
import base64, json, math, os, shutil, subprocess, sys, tempfile, threading, time, unittest

import hearing_model
from hearing_model import wav
from npm_packages import installed
from weir_server import SOURCE, Server

FAMILY = "qwen2_audio"
QUESTION = "What is this?"
CHAT = "/v1/chat/completions"


def tone(hertz, seconds=0.5):
    return wav([0.25 * math.sin(2 * math.pi * hertz * i / 16000) for i in range(int(16000 * seconds))])


def part(sound, kind="wav"):
    return {"type": "input_audio", "input_audio": {"data": base64.b64encode(sound).decode(), "format": kind}}


def url_part(url):
    return {"type": "audio_url", "audio_url": {"url": url}}


def chat(*parts):
    return {"messages": [{"role": "user", "content": [*parts, {"type": "text", "text": QUESTION}]}], "max_tokens": 8,
            "temperature": 0}


@unittest.skipUnless(hearing_model.fixture(FAMILY), "no fixtures of families (WEIR_FAMILIES)")
class Sounds(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.model = hearing_model.make(f"{cls.folder.name}/hearing", FAMILY)
        with open(f"{cls.model}/audio.wav", "rb") as file:
            cls.sound = file.read()
        cls.media = f"{cls.folder.name}/media"
        os.makedirs(cls.media)
        shutil.copy(f"{cls.model}/audio.wav", f"{cls.media}/a.wav")
        cls.server = Server("--model", cls.model, "--alias", "hearing", "--media-path", cls.media, "--compute",
                            "exact").__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__(None)
        cls.folder.cleanup()

    def say(self, *parts):
        return self.server.post(CHAT, chat(*parts))["choices"][0]["message"]["content"]

    def refuse(self, *parts):
        return self.server.post(CHAT, chat(*parts), expect=400)["error"]

    def encoded(self):
        return next(float(line.split()[-1]) for line in self.server.get("/metrics").decode().splitlines()
                    if line.startswith("weir_audio_encoded_total"))

    def test_the_model_says_that_it_hears(self):
        self.assertTrue(json.loads(self.server.get("/props"))["modalities"]["audio"])
        self.assertIn("audio", json.loads(self.server.get("/v1/models"))["data"][0]["architecture"]["input_modalities"])

    def test_every_api_and_source_plays_the_same_sound(self):
        answer = self.server.post(CHAT, chat(part(self.sound)))
        expected, usage = answer["choices"][0]["message"]["content"], answer["usage"]
        tokens = usage["prompt_tokens_details"]["audio_tokens"]
        self.assertGreater(tokens, 0)
        self.assertEqual(self.server.post(CHAT, chat())["usage"]["prompt_tokens_details"]["audio_tokens"], 0)
        url = f"data:audio/wav;base64,{base64.b64encode(self.sound).decode()}"
        for other in (url_part(url), url_part("file:a.wav"), {"type": "file", "file": {"file_data": url}},
                      part(self.sound, "mp3")):
            self.assertEqual(self.say(other), expected, str(other)[:80])
        response = self.server.post("/v1/responses", {"input": [{"role": "user", "content": [
            part(self.sound), {"type": "input_text", "text": QUESTION}]}], "max_output_tokens": 8, "temperature": 0})
        self.assertEqual(response["output"][0]["content"][0]["text"], expected)
        self.assertEqual(response["usage"]["input_tokens_details"]["audio_tokens"], tokens)
        count = self.server.post("/tokenize", {"messages": chat(part(self.sound))["messages"]})["count"]
        self.assertEqual(count, usage["prompt_tokens"])

    def test_a_sound_becomes_the_tokens_that_the_reference_gives_it(self):
        for family, (marks, _) in hearing_model.MARKS.items():
            with self.subTest(family), tempfile.TemporaryDirectory() as folder:
                model = hearing_model.make(f"{folder}/hearing", family)
                with open(f"{model}/audio.wav", "rb") as file:
                    heard = chat(part(file.read()))
                with Server("--model", model, "--compute", "exact") as server:
                    ids = server.post("/tokenize", {"messages": heard["messages"]})["tokens"]
                    self.assertEqual([i for i in ids if i in marks], hearing_model.recorded_sound(family))
                    answer = server.post(CHAT, heard)
                    self.assertEqual(answer["usage"]["prompt_tokens_details"]["audio_tokens"],
                                     ids.count(hearing_model.ROWS[family]))
                    self.assertEqual(server.post(CHAT, heard)["choices"][0]["message"], answer["choices"][0]["message"])

    def test_a_second_turn_of_text_alone_encodes_nothing(self):
        messages = chat(part(tone(440)))["messages"]
        first = self.server.post(CHAT, {"messages": messages, "max_tokens": 8, "temperature": 0})
        encoded = self.encoded()
        messages += [first["choices"][0]["message"], {"role": "user", "content": "And now?"}]
        second = self.server.post(CHAT, {"messages": messages, "max_tokens": 8, "temperature": 0})
        self.assertEqual(self.encoded(), encoded)
        self.assertEqual(second["usage"]["prompt_tokens_details"]["audio_tokens"],
                         first["usage"]["prompt_tokens_details"]["audio_tokens"])
        self.assertGreater(second["usage"]["prompt_tokens_details"]["cached_tokens"], 0)

    def test_many_clients_at_once_get_what_each_gets_alone(self):
        requests = [chat(part(tone(200 + 50 * (i % 6)))) for i in range(24)]
        alone = [self.say(part(tone(200 + 50 * i))) for i in range(6)]
        said = [None] * len(requests)

        def ask(i):
            said[i] = self.server.post(CHAT, requests[i])["choices"][0]["message"]["content"]
        threads = [threading.Thread(target=ask, args=(i,)) for i in range(len(requests))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(said, [alone[i % 6] for i in range(24)])

    def test_bad_sounds_are_refused_with_a_sentence(self):
        for sound, told in ((self.sound[:1000], "ends early"), (b"", "empty"), (b"%PDF-1.7" + b"\0" * 90, "PDF"),
                            (b"\0" * 100, "no known format"),
                            (wav([math.nan] * 1600), "not a number"), (wav([0.5]), "too few"),
                            (wav([0.0] * 16000 * 40), "at most"),
                            (wav([0.0] * 900, channels=9), "channels")):
            message = self.refuse(part(sound))["message"]
            self.assertIn(told, message)
            self.assertIn("messages[0].content[0].input_audio.data", message)
        many = self.server.post(CHAT, chat(*[part(wav([0.5]))] * 10_000), expect=400)["error"]
        self.assertIn("--max-sounds", many["message"])
        self.assertEqual(many["param"], "messages[0].content[16].input_audio.data")
        # Seven channels become their mean.
        self.assertEqual(self.say(part(wav([x for i in range(8000) for x in [math.sin(i / 9)] * 7], channels=7))),
                         self.say(part(wav([math.sin(i / 9) for i in range(8000)]))))

    def test_hours_of_silence_hold_nobody_up(self):
        # FLAC, of a few bytes a frame, would need its tools; a WAV of 16 bits at 8 kHz is an hour in 58 MB, which no
        # body has.
        silence = wav([0] * (8000 * 240), rate=8000, kind="integer")
        began = time.monotonic()
        done = []
        slow = [threading.Thread(target=lambda: done.append(self.refuse(part(silence)))) for _ in range(4)]
        for thread in slow:
            thread.start()
        self.say(part(self.sound))
        for thread in slow:
            thread.join()
        self.assertLess(time.monotonic() - began, 60)
        for error in done:
            self.assertIn("at most 1", error["message"])

    def test_apis_without_sounds_say_so(self):
        digits = base64.b64encode(self.sound).decode()
        error = self.server.post("/v1/messages",
                                 {"model": "hearing", "max_tokens": 8, "messages": [{"role": "user", "content": [
            {"type": "audio", "source": {"type": "base64", "media_type": "audio/wav", "data": digits}}]}]},
                                 expect=400)["error"]
        self.assertIn('found "audio"', error["message"])
        error = self.server.post("/api/chat", {"model": "hearing", "stream": False, "messages": [
            {"role": "user", "content": QUESTION, "images": [digits]}]}, expect=400)["error"]
        self.assertIn("does not support images", error)

    def test_openais_client(self):
        folder = installed("npm")
        shutil.copy(f"{SOURCE}/tests/e2e/npm/sounds.mjs", folder)
        sound, other = tone(440), tone(700)
        usage = self.server.post(CHAT, chat(part(sound)))["usage"]
        done = subprocess.run(["node_modules/node/bin/node", "--test", "--test-reporter=spec", "sounds.mjs"],
                              cwd=folder, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300, env={
                                  **os.environ, "BASE": f"http://{self.server.host}:{self.server.port}",
                                  "MODEL": "hearing",
                                  "SOUND": base64.b64encode(sound).decode(), "OTHER": base64.b64encode(other).decode(),
                                  "AUDIO_TOKENS": str(usage["prompt_tokens_details"]["audio_tokens"])})
        print(done.stdout[-8000:])
        self.assertEqual(done.returncode, 0)


if __name__ == "__main__":
    result = unittest.main(verbosity=2, exit=False).result
    # 77: ctest counts it as skipped.
    sys.exit(77 if result.skipped and not result.testsRun else not result.wasSuccessful())
