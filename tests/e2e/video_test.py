"""Videos as lists of frames: what a video shows is what its frames show as images, where families count them alike.
And as files: what a file shows is what the list of its frames shows."""
import base64, functools, http.server, json, struct, tempfile, threading, unittest

import seeing_model
from weir_server import SOURCE, Server

CHAT = "/v1/chat/completions"
QUESTION = "What happens?"


def url(image):
    return f"data:image/png;base64,{base64.b64encode(image).decode()}"


def image(frame):
    return {"type": "image_url", "image_url": {"url": url(frame)}}


def video(*frames, **more):
    return {"type": "video", "video": [url(frame) for frame in frames], **more}


VIDEOS = f"{SOURCE}/tests/data/videos"


def contents(name):
    with open(f"{VIDEOS}/{name}", "rb") as file:
        return file.read()


def film(data, kind="video/mp4", **more):
    """A video's file: its bytes, or its address."""
    address = data if isinstance(data, str) else f"data:{kind};base64,{base64.b64encode(data).decode()}"
    return {"type": "video_url", "video_url": {"url": address}, **more}


def pattern(frame):
    """A frame of the files (tests/data/videos/make.py)."""
    def colour(x, y):
        v = (x // 8 + 3 * frame ^ y // 16) % 8
        return v * 37 % 256, (v * 91 + 40) % 256, 255 - v * 29
    return seeing_model.png(64, 64, colour)


FIRST = seeing_model.png(64, 64)
SECOND = seeing_model.png(64, 64, lambda x, y: (y * 3 % 256, 255 - x, x * y % 256))


@unittest.skipUnless(seeing_model.fixture("qwen3_vl"), "no fixtures of families (WEIR_FAMILIES)")
class Video(unittest.TestCase):
    def serve(self, family, test, *options):
        with tempfile.TemporaryDirectory() as folder:
            model = seeing_model.make(f"{folder}/seeing", family)
            # Frames as large as images, so that both can be compared.
            with open(f"{model}/preprocessor_config.json") as file:
                bounds = json.load(file)
            for key in ("min_pixels", "max_pixels"):
                bounds[key] *= 2 if family == "qwen3_vl" else 1  # There they are of all frames together.
            with open(f"{model}/video_preprocessor_config.json", "w") as file:
                json.dump(bounds, file)
            with Server("--model", model, "--compute", "exact", *options) as server:
                test(server)

    def post(self, server, *parts, expect=200):
        return server.post(CHAT, {"messages": [{"role": "user",
                                                "content": [*parts, {"type": "text", "text": QUESTION}]}],
                                  "max_tokens": 12, "temperature": 0, "ignore_eos": True}, expect)

    def ask(self, server, *parts):
        answer = self.post(server, *parts)
        return answer["choices"][0]["message"]["content"], answer["usage"]["prompt_tokens_details"]["image_tokens"]

    def test_one_moment_is_an_image(self):
        for family in ("qwen2_vl", "qwen2_5_vl"):
            with self.subTest(family):
                self.serve(family, lambda server: self.assertEqual(self.ask(server, video(FIRST, FIRST)),
                                                                   self.ask(server, image(FIRST))))

    def test_moments_are_images_with_their_times(self):
        def test(server):
            self.assertTrue(json.loads(server.get("/props"))["modalities"]["video"])
            times = [{"type": "text", "text": f"<{seconds} seconds>"} for seconds in ("0.2", "1.0")]
            # The third frame is its own next; of three frames as of four the sizes are counted.
            self.assertEqual(self.ask(server, video(FIRST)),
                             self.ask(server, {"type": "text", "text": "<0.0 seconds>"}, image(FIRST)))
            said, tokens = self.ask(server, video(FIRST, FIRST, SECOND))
            self.assertNotEqual(said, self.ask(server, video(SECOND, SECOND, FIRST))[0])
            ids = server.post("/tokenize",
                              {"messages": [{"role": "user", "content": [video(FIRST, FIRST, SECOND)]}]})["tokens"]
            self.assertEqual(ids.count(254), tokens)
            text = server.post("/detokenize", {"tokens": [i for i in ids if i < 128]})["content"]
            for time in times:
                self.assertIn(time["text"], text)
        self.serve("qwen3_vl", test)

    def test_the_order_and_the_pace_of_frames_are_seen(self):
        def test(server):
            said, tokens = self.ask(server, video(FIRST, FIRST, SECOND, SECOND))
            self.assertEqual(tokens, 2 * self.ask(server, image(FIRST))[1])
            self.assertNotEqual(self.ask(server, video(SECOND, SECOND, FIRST, FIRST))[0], said)
            self.assertNotEqual(self.ask(server, video(FIRST, SECOND, FIRST, SECOND))[0], said)
            self.assertNotEqual(self.ask(server, video(FIRST, FIRST, SECOND, SECOND, fps=0.1))[0], said)
            self.assertEqual(self.ask(server, video(FIRST, FIRST, SECOND, SECOND, fps=2.0)), (said, tokens))
            frames = ",".join(base64.b64encode(frame).decode() for frame in (FIRST, FIRST, SECOND, SECOND))
            listed = {"type": "video_url", "video_url": {"url": f"data:video/jpeg;base64,{frames}"}}
            self.assertEqual(self.ask(server, listed), (said, tokens))
        self.serve("qwen2_5_vl", test)

    def files_are_read(self, server):
        """Whether the program is built with libavformat; if not, that it says so."""
        status, _, data = server.request("POST", CHAT, {"messages": [{"role": "user", "content": [
            film(contents("pattern.gif"), "image/gif")]}], "max_tokens": 1})
        if status == 200:
            return True
        self.assertEqual(status, 400)
        self.assertIn("built without libavformat (the build option WEIR_VIDEO) and decodes no MP4, WebM or GIF",
                      json.loads(data)["error"]["message"])
        return False

    def test_a_file_is_the_list_of_its_frames(self):
        # Eight frames, four a second: of Qwen2.5-VL every second one, of Qwen3-VL from the first to the last.
        files = [(contents(f"pattern.{end}"), kind) for end, kind in
                 (("mp4", "video/mp4"), ("webm", "video/webm"), ("gif", "image/gif"), ("gif", "video/gif"))]

        def test(server):
            if not self.files_are_read(server):
                return
            listed = self.ask(server, video(*(pattern(frame) for frame in (0, 2, 4, 6)), fps=2))
            for data, kind in files:
                self.assertEqual(self.ask(server, film(data, kind)), listed)
            whole = self.ask(server, video(*(pattern(frame) for frame in range(8)), fps=4))
            for data, kind in files:
                self.assertEqual(self.ask(server, film(data, kind, fps=4)), whole)
            self.assertNotEqual(listed, whole)
            turned = bytearray(files[0][0])
            matrix = turned.index(b"tkhd") + 44  # By half a turn.
            turned[matrix:matrix + 4] = turned[matrix + 16:matrix + 20] = struct.pack(">i", -65536)
            self.assertNotEqual(self.ask(server, film(bytes(turned))), listed)
            # A video is one, however many moments it has.
            images, videos = server.metric("weir_images_total"), server.metric("weir_videos_total")
            self.ask(server, film(files[1][0], "video/webm"), image(FIRST))
            self.assertEqual(server.metric("weir_images_total"), images + 1)
            self.assertEqual(server.metric("weir_videos_total"), videos + 1)
        self.serve("qwen2_5_vl", test)

        def times(server):
            if not self.files_are_read(server):
                return
            whole = self.ask(server, video(*(pattern(frame) for frame in range(8)), fps=4))
            for data, kind in files:
                self.assertEqual(self.ask(server, film(data, kind, fps=4)), whole)
                ids = server.post("/tokenize",
                                  {"messages": [{"role": "user", "content": [film(data, kind)]}]})["tokens"]
                text = server.post("/detokenize", {"tokens": [i for i in ids if i < 128]})["content"]
                # Frames 0, 2, 5 and 7.
                for time in ("<0.2 seconds>", "<1.5 seconds>"):
                    self.assertIn(time, text)
        self.serve("qwen3_vl", times)

    def test_files_come_from_where_images_may(self):
        handler = functools.partial(QuietHandler, directory=VIDEOS)
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as web:
            threading.Thread(target=web.serve_forever, daemon=True).start()

            def test(server):
                if not self.files_are_read(server):
                    return
                expected = self.ask(server, film(contents("pattern.webm"), "video/webm"))
                self.assertEqual(self.ask(server, film("file:pattern.webm")), expected)
                self.assertEqual(self.ask(server, {"type": "video", "video": f"file://{VIDEOS}/pattern.webm"}),
                                 expected)
                self.assertEqual(self.ask(server, film(f"http://127.0.0.1:{web.server_port}/pattern.webm")), expected)
                self.refused(server, film(f"http://127.0.0.1:{web.server_port}/none.webm"), "404",
                             "failed_to_download_video")
                self.refused(server, film("file:../videos/pattern.webm"), "Invalid video in")
            self.serve("qwen2_5_vl", test, "--media-path", VIDEOS, "--allow-remote-media", "127.0.0.1")
            web.shutdown()

    def refused(self, server, part, sentence, kind=None):
        error = self.post(server, part, expect=400)["error"]
        self.assertIn(sentence, error["message"])
        if kind:
            self.assertEqual(error["code"], kind)

    def test_files_that_cannot_be_read_are_refused_with_a_sentence(self):
        mp4 = contents("pattern.mp4")
        huge = bytearray(mp4)
        size = huge.index(b"avc1", huge.index(b"stsd")) + 28
        huge[size:size + 4] = struct.pack(">HH", 30000, 30000)
        fragments = contents("fragments.mp4")
        damaged = bytearray(mp4)
        begin = damaged.index(b"mdat") + 2000
        damaged[begin:begin + 400] = bytes(400)
        cases = [
            (mp4[:len(mp4) // 2], "ends early", "video_parse_error"),
            (contents("pattern.gif")[:3000], "the GIF ends early", "video_parse_error"),
            (FIRST, "the video is PNG, a picture; MP4, WebM and GIF are read", "unsupported_video_media_type"),
            (b"#EXTM3U\nfile:///etc/passwd\n", "of no known format", "unsupported_video_media_type"),
            (fragments[:fragments.index(b"moof") - 4], "the MP4 has no frame; at least one was expected",
             "video_parse_error"),
            (bytes(huge), "its frames have 30000 x 30000 pixels; at most", "video_too_large"),
            (contents("sound.mp4"), "expected pictures in the MP4, found none, only sound or text",
             "unsupported_video_media_type"),
            (contents("prores.mov"), "the MP4 has pictures in prores", "unsupported_video_media_type"),
            (bytes(damaged), "the MP4 is damaged", "video_parse_error"),
            (b"", "the video is empty", "video_parse_error"),
        ]

        def test(server):
            if not self.files_are_read(server):
                return
            for data, sentence, kind in cases:
                with self.subTest(sentence):
                    self.refused(server, film(data), sentence, kind)
            self.refused(server, film("data:text/plain;base64,AAAA"), "expected data:video/TYPE;base64,DIGITS",
                         "invalid_video_url")
            # The server answers on.
            self.ask(server, film(mp4))
        self.serve("qwen2_5_vl", test)


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


if __name__ == "__main__":
    unittest.main()
