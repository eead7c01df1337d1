"""Recordings through the real server: every format, in events, cut into windows, good and bad; and OpenAI's JavaScript
client."""
import json, os, re, shutil, subprocess, sys, tempfile, threading, unittest

import speech_model
from npm_packages import installed
from weir_server import SOURCE, WEIR, Server

PATH = "/v1/audio/transcriptions"
BOUNDARY = "bound"


def form(file, fields):
    body = b""
    for name, value in [("file", file), *fields]:
        head = '; filename="a.wav"' if name == "file" else ""
        value = value if isinstance(value, bytes) else str(value).encode()
        body += f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"{head}\r\n\r\n'.encode() + value + b"\r\n"
    return body + f"--{BOUNDARY}--\r\n".encode()


@unittest.skipUnless(speech_model.fixture(speech_model.FAMILY), "no fixtures of families (WEIR_FAMILIES)")
class Transcriptions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.model = speech_model.make(f"{cls.folder.name}/speech")
        cls.server = Server("--model", cls.model, "--alias", "whisper-1", "--compute", "exact").__enter__()
        cls.sound = speech_model.wav(0.9)

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__(None)
        cls.folder.cleanup()

    def ask(self, file, *fields, path=PATH):
        """(status, body)"""
        status, _, body = self.server.request("POST", path, form(file, fields),
                                              {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"})
        return status, body.decode()

    def transcribe(self, file, *fields, path=PATH):
        status, body = self.ask(file, *fields, path=path)
        self.assertEqual(status, 200, body)
        return body

    def refuse(self, file, *fields, status=400):
        found, body = self.ask(file, *fields)
        self.assertEqual(found, status, body)
        return json.loads(body)["error"]

    def test_all_formats_say_the_same(self):
        answer = json.loads(self.transcribe(self.sound, ("language", "en")))
        text = answer["text"]
        usage = answer["usage"]
        self.assertEqual(usage["input_token_details"], {"text_tokens": 0, "audio_tokens": 50})
        self.assertEqual(usage["total_tokens"], usage["input_tokens"] + usage["output_tokens"])
        self.assertEqual(self.transcribe(self.sound, ("language", "english"), ("response_format", "text")), text + "\n")
        verbose = json.loads(self.transcribe(self.sound, ("language", "en"), ("response_format", "verbose_json")))
        self.assertEqual((verbose["text"], verbose["language"], verbose["duration"]), (text, "english", 0.9))
        self.assertEqual("".join(each["text"] for each in verbose["segments"]).strip(" "), text)
        for each in verbose["segments"]:
            self.assertTrue(0 <= each["start"] <= each["end"] <= 0.9, each)
        srt = self.transcribe(self.sound, ("language", "en"), ("response_format", "srt"))
        self.assertEqual(len(re.findall(r"^\d\d:\d\d:\d\d,\d{3} --> ", srt, re.M)), len(verbose["segments"]))
        self.assertTrue(self.transcribe(self.sound, ("language", "en"),
                                        ("response_format", "vtt")).startswith("WEBVTT\n\n"))
        events = self.transcribe(self.sound, ("language", "en"), ("stream", "true"))
        told = [json.loads(line[6:]) for line in events.split("\n") if line.startswith("data: ")]
        self.assertEqual("".join(each["delta"] for each in told[:-1]), text)
        self.assertEqual((told[-1]["type"], told[-1]["text"]), ("transcript.text.done", text))

    def test_words_have_times(self):
        text = speech_model.wav(2.5)
        fields = ("language", "en"), ("response_format", "verbose_json"), ("seed", 7)
        plain = json.loads(self.transcribe(text, *fields))
        verbose = json.loads(self.transcribe(text, *fields, ("timestamp_granularities[]", "word")))
        self.assertNotIn("segments", verbose)
        self.assertEqual("".join(each["word"] for each in verbose["words"]), verbose["text"].replace(" ", ""))
        self.assertTrue(verbose["words"] and plain["text"])
        time = 0
        for each in verbose["words"]:
            self.assertTrue(time <= each["start"] <= each["end"] <= 2.5, each)
            time = each["end"]
        both = self.transcribe(text, *fields, ("timestamp_granularities[]", "word"),
                               ("timestamp_granularities[]", "segment"))
        self.assertEqual(json.loads(both)["words"], verbose["words"])
        self.assertTrue(json.loads(both)["segments"])

    def test_a_language_is_heard_where_none_is_named(self):
        verbose = json.loads(self.transcribe(self.sound, ("response_format", "verbose_json")))
        self.assertIn(verbose["language"], ("english", "german"))
        self.assertIn("text", json.loads(self.transcribe(self.sound, path="/v1/audio/translations")))

    def test_many_windows_and_many_clients_change_nothing(self):
        files = [speech_model.wav(seconds) for seconds in (0.5, 2.5, 7)]
        # Attempts at higher temperatures are drawn.
        fields = ("language", "en"), ("response_format", "verbose_json"), ("seed", 7)
        alone = [self.transcribe(file, *fields) for file in files]
        beside = [None] * 12

        def ask(i):
            beside[i] = self.transcribe(files[i % 3], *fields)
        threads = [threading.Thread(target=ask, args=(i,)) for i in range(len(beside))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for i, answer in enumerate(beside):
            self.assertEqual(answer, alone[i % 3])

    def test_bad_recordings_are_refused_with_a_sentence(self):
        sound = speech_model.wav(0.1)
        nan = sound[:20] + b"\3\0" + sound[22:32] + b"\4\0\x20\0" + b"data" + (400).to_bytes(4,
                                                                                             "little") + b"\xff" * 400
        for file, told in ((sound[:1000], "ends early"), (b"no sound", "no known format"),
                           (b"%PDF-1.7" + b"\0" * 90, "PDF"),
                           (speech_model.wav(0), "no sample"), (speech_model.wav(0.1, channels=9), "at most 8"),
                           (nan, "not a number"), (speech_model.silent_flac(36_000), "at most 3600 s")):
            error = self.refuse(file)
            self.assertIn("Invalid audio in 'file'", error["message"])
            self.assertIn(told, error["message"])
            self.assertEqual(error["param"], "file")
        self.assertIn("klingon", self.refuse(self.sound, ("language", "klingon"))["message"])
        self.assertIn("parts", self.refuse(self.sound, *[("include[]", "logprobs")] * 10_000, status=413)["message"])
        self.assertEqual(self.server.post("/v1/audio/speech", {"input": "Hi"}, expect=404)["error"]["code"],
                         "unknown_url")

    def test_odd_recordings_are_heard(self):
        self.transcribe(speech_model.wav(1 / 16000), ("language", "en"))
        self.assertEqual(json.loads(self.transcribe(speech_model.silent_flac(9),
                                                    ("response_format", "verbose_json")))["duration"], 8.192)
        seven = self.transcribe(speech_model.wav(0.5, rate=48000, channels=7), ("language", "en"), ("seed", 7))
        self.assertEqual(self.transcribe(speech_model.wav(0.5, rate=48000), ("language", "en"), ("seed", 7)), seven)

    def test_nobody_chats_with_it(self):
        for path, body in (("/v1/chat/completions", {"messages": [{"role": "user", "content": "Hi"}]}),
                           ("/v1/completions", {"prompt": "Hi"}), ("/v1/responses", {"input": "Hi"}),
                           ("/v1/messages", {"max_tokens": 8, "messages": [{"role": "user", "content": "Hi"}]}),
                           ("/v1/embeddings", {"input": "Hi"})):
            self.assertIn("transcri", self.server.post(path, body, expect=400)["error"]["message"], path)

    def test_it_says_that_it_transcribes(self):
        model = json.loads(self.server.get("/v1/models"))["data"][0]
        self.assertEqual(model["architecture"], {"input_modalities": ["text", "audio"], "output_modalities": ["text"]})
        self.assertIn("it transcribes: only /v1/audio/transcriptions", self.server.logged())
        done = subprocess.run([WEIR, "info", "--model", self.model], stdout=subprocess.PIPE, text=True, timeout=60)
        self.assertIn("it transcribes: only /v1/audio/transcriptions", done.stdout)

    def test_the_javascript_client(self):
        folder = installed("npm")
        shutil.copy(f"{SOURCE}/tests/e2e/npm/transcriptions.mjs", folder)
        path = f"{self.folder.name}/a.wav"
        with open(path, "wb") as file:
            file.write(self.sound)
        text = json.loads(self.transcribe(self.sound, ("language", "en")))["text"]
        done = subprocess.run(["node_modules/node/bin/node", "--test", "--test-reporter=spec", "transcriptions.mjs"],
                              cwd=folder,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, env={
                                  **os.environ, "BASE": f"http://{self.server.host}:{self.server.port}", "SOUND": path,
                                  "TEXT": text})
        print(done.stdout[-8000:])
        self.assertEqual(done.returncode, 0)


if __name__ == "__main__":
    result = unittest.main(verbosity=2, exit=False).result
    # 77: ctest counts it as skipped.
    sys.exit(77 if result.skipped and not result.testsRun else not result.wasSuccessful())
