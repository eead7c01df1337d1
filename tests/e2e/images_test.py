"""Images through every API of the real server, from every source, good and bad; and from the JavaScript clients that
people use."""
import base64, glob, http.server, json, os, re, shutil, subprocess, sys, tempfile, threading, time, unittest, zlib

import seeing_model
from npm_packages import installed
from weir_server import SOURCE, Server

FAMILY = "llava"
QUESTION = "What is this?"
CHAT = "/v1/chat/completions"


class Web(http.server.ThreadingHTTPServer):
    """A web server with an image and with faults, on a loopback address."""
    daemon_threads = True

    def __init__(self, image):
        self.image, self.asked = image, []
        super().__init__(("127.0.0.1", 0), WebHandler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, daemon=True).start()


class WebHandler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def send(self, status, headers, body=b""):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        try:
            self.wfile.write(body)
        except OSError:
            pass

    def do_GET(self):
        self.server.asked.append(self.path)
        image = self.server.image
        if self.path == "/a.png":
            self.send(200, {"Content-Type": "image/png", "Content-Length": len(image)}, image)
        elif self.path == "/moved":
            self.send(302, {"Location": "/a.png", "Content-Length": 0})
        elif self.path == "/loop":
            self.send(302, {"Location": "/loop", "Content-Length": 0})
        elif self.path == "/private":
            self.send(302, {"Location": f"http://127.0.0.2:{self.server.server_address[1]}/a.png", "Content-Length": 0})
        elif self.path == "/large":
            self.send(200, {"Content-Length": 1 << 30})
        elif self.path == "/page":
            self.send(200, {"Content-Type": "text/html"}, b"<!doctype html><title>none</title>")
        elif self.path == "/cut":
            self.send(200, {"Content-Length": len(image)}, image[:len(image) // 2])
        elif self.path == "/slow":
            self.send(200, {"Content-Length": len(image)}, image[:1])
            time.sleep(30)
        else:
            self.send(404, {"Content-Length": 0})


def data_url(image, kind="png"):
    return f"data:image/{kind};base64,{base64.b64encode(image).decode()}"


def part(url):
    return {"type": "image_url", "image_url": {"url": url}}


def chat(*parts):
    return {"messages": [{"role": "user", "content": [*parts, {"type": "text", "text": QUESTION}]}], "max_tokens": 8,
            "temperature": 0}


@unittest.skipUnless(seeing_model.fixture(FAMILY), "no fixtures of families (WEIR_FAMILIES)")
class Images(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.model = seeing_model.make(f"{cls.folder.name}/seeing", FAMILY)
        with open(f"{cls.model}/image.png", "rb") as file:
            cls.image = file.read()
        cls.media = f"{cls.folder.name}/media"
        os.makedirs(f"{cls.media}/deep")
        shutil.copy(f"{cls.model}/image.png", f"{cls.media}/deep/a.png")
        os.symlink(f"{cls.model}/image.png", f"{cls.media}/link.png")
        cls.web = Web(cls.image)
        cls.server = Server("--model", cls.model, "--alias", "seeing", "--media-path", cls.media,
                            "--allow-remote-media", "127.0.0.1", "--compute", "exact").__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__(None)
        cls.web.shutdown()
        cls.folder.cleanup()

    def say(self, *parts):
        return self.server.post(CHAT, chat(*parts))["choices"][0]["message"]["content"]

    def refuse(self, *parts):
        return self.server.post(CHAT, chat(*parts), expect=400)["error"]

    def test_the_model_says_that_it_sees(self):
        self.assertTrue(json.loads(self.server.get("/props"))["modalities"]["vision"])
        self.assertIn("image", json.loads(self.server.get("/v1/models"))["data"][0]["architecture"]["input_modalities"])

    def test_every_api_and_source_shows_the_same_image(self):
        url, digits = data_url(self.image), base64.b64encode(self.image).decode()
        answer = self.server.post(CHAT, chat(part(url)))
        expected = answer["choices"][0]["message"]["content"]
        with_image = answer["usage"]
        without = self.server.post(CHAT, chat())["usage"]
        tokens = with_image["prompt_tokens_details"]["image_tokens"]
        self.assertGreater(tokens, 0)
        self.assertEqual(with_image["prompt_tokens"] - without["prompt_tokens"], tokens)
        self.assertNotIn("image_tokens", without["prompt_tokens_details"])
        self.assertNotEqual(self.say(part(data_url(seeing_model.png(64, 64)))), expected, "the image changes nothing")
        for source in (f"{self.web.url}/a.png", f"{self.web.url}/moved", "file:deep/a.png",
                       f"file://{self.media}/deep/a.png"):
            self.assertEqual(self.say(part(source)), expected, source)
        self.assertEqual(self.say({"type": "file", "file": {"file_data": url}}), expected)
        response = self.server.post("/v1/responses", {"input": [{"role": "user", "content": [
            {"type": "input_image", "image_url": url}, {"type": "input_text", "text": QUESTION}]}],
                                                      "max_output_tokens": 8, "temperature": 0})
        self.assertEqual(response["output"][0]["content"][0]["text"], expected)
        self.assertEqual(response["usage"]["input_tokens_details"]["image_tokens"], tokens)
        message = {"model": "seeing", "max_tokens": 8, "temperature": 0, "messages": [{"role": "user", "content": [
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": digits}},
            {"type": "text", "text": QUESTION}]}]}
        self.assertEqual(self.server.post("/v1/messages", message)["content"][0]["text"], expected)
        count = self.server.post("/v1/messages/count_tokens",
                                 {k: message[k] for k in ("model", "messages")})["input_tokens"]
        self.assertEqual(count, with_image["prompt_tokens"])
        told = self.server.post("/api/chat", {"model": "seeing", "stream": False,
                                              "options": {"temperature": 0, "num_predict": 8},
                                              "messages": [{"role": "user", "content": QUESTION, "images": [digits]}]})
        self.assertEqual((told["message"]["content"], told["prompt_eval_count"]), (expected, count))
        self.assertEqual(self.server.post("/tokenize", {"messages": chat(part(url))["messages"]})["count"], count)

    def test_an_image_becomes_the_tokens_that_the_reference_gives_it(self):
        for family in seeing_model.MARKS:
            with self.subTest(family), tempfile.TemporaryDirectory() as folder:
                model = seeing_model.make(f"{folder}/seeing", family)
                images = []
                for path in sorted(glob.glob(f"{model}/image*.png")):
                    with open(path, "rb") as file:
                        images.append(part(data_url(file.read())))
                with Server("--model", model, "--compute", "exact") as server:
                    seen = chat(*images)
                    ids = server.post("/tokenize", {"messages": seen["messages"]})["tokens"]
                    marks = seeing_model.MARKS[family][0]
                    self.assertEqual([i for i in ids if i in marks], seeing_model.recorded_ids(family, marks))
                    answer = server.post(CHAT, seen)
                    rows = max(marks)  # The token for a row of features.
                    self.assertEqual(answer["usage"]["prompt_tokens_details"]["image_tokens"], ids.count(rows))
                    again = server.post(CHAT, seen)
                    self.assertEqual(again["choices"][0]["message"], answer["choices"][0]["message"])

    def test_a_tool_may_answer_with_an_image(self):
        call = {"id": "call00001", "type": "function", "function": {"name": "look", "arguments": "{}"}}
        answer = self.server.post(CHAT, {"max_tokens": 4, "messages": [
            {"role": "user", "content": "Look."}, {"role": "assistant", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call00001",
             "content": [{"type": "text", "text": "Here:"}, part(data_url(self.image))]}]})
        self.assertGreater(answer["usage"]["prompt_tokens_details"]["image_tokens"], 0)

    def test_web_servers_that_misbehave_are_told_of(self):
        for path, told in (("/loop", "more than 3 redirects"), ("/private", "not from 127.0.0.2"),
                           ("/large", "expected at most"),
                           ("/page", "of no known format"), ("/cut", "cannot be fetched"), ("/none", "found 404")):
            error = self.refuse(part(self.web.url + path))
            self.assertIn(told, error["message"], path)
            self.assertEqual(error["param"], "messages[0].content[0].image_url.url")
        for url in ("http://localhost:1/", "http://10.0.0.1/", "http://[::1]/", "http://169.254.169.254/",
                    "http://a.example/"):
            self.assertIn("--allow-remote-media", self.refuse(part(url))["message"], url)

    def test_a_slow_web_server_holds_nobody_up(self):
        began = time.monotonic()
        done = []
        slow = threading.Thread(target=lambda: done.append(self.refuse(part(self.web.url + "/slow"))))
        slow.start()
        while "/slow" not in self.web.asked:
            time.sleep(0.01)
        self.say(part(data_url(self.image)))
        self.assertEqual(done, [], "the other one was waited for")
        slow.join(30)
        self.assertLess(time.monotonic() - began, 25)
        self.assertIn("cannot be fetched", done[0]["message"])

    def test_files_come_from_below_the_folder_alone(self):
        for name in ("file:../seeing/image.png", "file:link.png", "file:///etc/passwd", "file:deep", "file:none.png",
                     f"file://{self.model}/image.png"):
            error = self.refuse(part(name))
            self.assertNotIn(self.folder.name, error["message"].replace(name, ""),
                             "the error tells where the folder is")

    def test_bad_images_are_refused_with_a_sentence(self):
        bomb = bytearray(seeing_model.png(4, 4))
        bomb[16:24] = (30_000).to_bytes(4, "big") * 2
        damaged = bytearray(seeing_model.png(64, 64))
        damaged[60] ^= 0xff
        for image, told in ((bytes(bomb), "image"), (self.image[:100], "damaged"), (bytes(damaged), "damaged"),
                            (b"", "empty"),
                            (b"%PDF-1.7", "PDF"), (b"\0" * 100, "no known format")):
            self.assertIn(told, self.refuse(part(data_url(image)))["message"])
        many = self.server.post(CHAT, chat(*[part(data_url(seeing_model.png(4, 4)))] * 65), expect=400)["error"]
        self.assertIn("--max-images", many["message"])
        # A file is what its bytes say.
        self.assertEqual(self.say(part(data_url(self.image, "jpeg"))), self.say(part(data_url(self.image))))

    def test_a_picture_is_turned_upright(self):
        """By each orientation of EXIF: stored rows and columns as they lie in the picture that is meant."""
        width, height = 60, 40
        across, down = lambda x: width - 1 - x, lambda y: height - 1 - y
        meant = {1: lambda x, y: (x, y), 2: lambda x, y: (across(x), y), 3: lambda x, y: (across(x), down(y)),
                 4: lambda x, y: (x, down(y)), 5: lambda x, y: (y, x), 6: lambda x, y: (across(y), x),
                 7: lambda x, y: (across(y), down(x)), 8: lambda x, y: (y, down(x))}
        upright = self.say(part(data_url(seeing_model.png(width, height))))
        for orientation, place in meant.items():
            size = (height, width) if orientation > 4 else (width, height)
            stored = seeing_model.png(*size, lambda x, y: seeing_model.colours(*place(x, y)), orientation)
            self.assertEqual(self.say(part(data_url(stored))), upright, orientation)
        sideways = seeing_model.png(height, width, lambda x, y: seeing_model.colours(*meant[6](x, y)))
        self.assertNotEqual(self.say(part(data_url(sideways))), upright,
                            "the answer does not tell how the picture lies")

    def test_odd_files_are_read_or_refused_while_another_stream_goes_on(self):
        with open(f"{SOURCE}/tests/media/image/samples.h") as file:
            listed = re.findall(r'\{"(\w+)", \d+, \d+, (0x[0-9a-f]+),\s*((?:"[^"]*"\s*)+)', file.read())
        samples = {name: (int(checksum, 16), base64.b64decode("".join(re.findall(r'"([^"]*)"', digits))))
                   for name, checksum, digits in listed}
        self.assertGreater(len(samples), 25)
        gaps, done = [], threading.Event()
        streamed = threading.Thread(target=self.stream_for_long, args=(gaps, done))
        streamed.start()
        answers = {}
        for name, (checksum, image) in samples.items():
            answers.setdefault(checksum, set()).add(self.say(part(data_url(image))))
            with self.subTest(f"{name}, cut"):
                if not name.endswith("animated"):  # Of those the first picture may be whole.
                    self.refuse(part(data_url(image[:len(image) * 3 // 5])))
        for checksum, said in answers.items():
            self.assertEqual(len(said), 1, f"files of the same pixels ({checksum:x}) are answered differently")
        self.assertGreater(len(answers), 10)
        plain = samples["png_rgb"][1]
        for header, told in (((30_000).to_bytes(4, "big") * 2, "30000 x 30000"), (bytes(8), "0 x 0")):
            wrong = bytearray(plain)
            wrong[16:24] = header
            wrong[29:33] = zlib.crc32(wrong[12:29]).to_bytes(4, "big")
            self.assertIn(told, self.refuse(part(data_url(bytes(wrong))))["message"])
        wrong = bytearray(plain)
        wrong[plain.index(b"IEND") - 5] ^= 1  # Of the pixels' checksum.
        self.assertIn("damaged", self.refuse(part(data_url(bytes(wrong))))["message"])
        self.assertEqual(self.say(part(data_url(plain, "jpeg"))), self.say(part(data_url(plain))))
        done.set()
        streamed.join(60)
        self.assertGreater(len(gaps), 20, "the other stream stood still")
        self.assertLess(max(gaps), 5, "the other stream waited for images")

    def stream_for_long(self, gaps, done):
        """Asks for streams until `done`, and notes the time between their events."""
        while not done.is_set():
            connection = self.server.connection()
            body = {"messages": [{"role": "user", "content": QUESTION}], "max_tokens": 64, "ignore_eos": True,
                    "stream": True}
            connection.request("POST", CHAT, json.dumps(body), {"Content-Type": "application/json"})
            answer, last = connection.getresponse(), time.monotonic()
            while line := answer.readline():
                if line.startswith(b"data: {"):
                    gaps.append(time.monotonic() - last)
                    last = time.monotonic()
            connection.close()

    def test_a_completion_shows_images_without_a_template(self):
        digits = base64.b64encode(self.image).decode()
        written = f"[user]{seeing_model.MARKS[FAMILY][1]}{QUESTION}[assistant]"
        by_chat = self.server.post(CHAT, chat(part(data_url(self.image))))
        prompt = written.replace(seeing_model.MARKS[FAMILY][1], "<__media__>")
        shown = self.server.post("/completion", {"prompt": {"prompt_string": prompt, "multimodal_data": [digits]},
                                                 "n_predict": 8,
                                                 "temperature": 0})
        self.assertEqual(shown["content"], by_chat["choices"][0]["message"]["content"])
        told = self.server.post("/api/generate", {"model": "seeing", "stream": False, "raw": True, "images": [digits],
                                                  "prompt": prompt.replace("<__media__>", "[img-0]"),
                                                  "options": {"temperature": 0, "num_predict": 8}})
        self.assertEqual((told["response"], told["prompt_eval_count"]),
                         (shown["content"], by_chat["usage"]["prompt_tokens"]))

    def test_what_people_use(self):
        folder = installed("npm")
        shutil.copy(f"{SOURCE}/tests/e2e/npm/images.mjs", folder)
        usage = self.server.post(CHAT, chat(part(data_url(self.image))))["usage"]
        done = subprocess.run(["node_modules/node/bin/node", "--test", "--test-reporter=spec", "images.mjs"],
                              cwd=folder, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300, env={
                                  **os.environ, "BASE": f"http://{self.server.host}:{self.server.port}",
                                  "MODEL": "seeing",
                                  "IMAGE": base64.b64encode(self.image).decode(), "TYPE": "image/png",
                                  "IMAGE_TOKENS": str(usage["prompt_tokens_details"]["image_tokens"])})
        print(done.stdout[-8000:])
        self.assertEqual(done.returncode, 0)

    def test_recorded_requests_of_clients(self):
        fixtures = os.environ.get("WEIR_FIXTURES", f"{SOURCE}/../shared/fixtures")
        if not os.path.exists(f"{fixtures}/clients/replay.py"):
            self.skipTest("no recorded clients: WEIR_FIXTURES is not set and ../shared/fixtures does not exist")
        done = subprocess.run([sys.executable, f"{fixtures}/clients/replay.py", "--base-url",
                               f"http://{self.server.host}:{self.server.port}/v1", "--model", "seeing", "--only",
                               "image",
                               "--require", "vision"], capture_output=True, text=True, timeout=600)
        print(done.stdout[-3000:])
        self.assertEqual(done.returncode, 0, done.stdout[-4000:] + done.stderr[-2000:])


if __name__ == "__main__":
    result = unittest.main(verbosity=2, exit=False).result
    # 77: ctest counts it as skipped.
    sys.exit(77 if result.skipped and not result.testsRun else not result.wasSuccessful())
