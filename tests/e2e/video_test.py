"""Videos as lists of frames: what a video shows is what its frames show as images, where families count them alike."""
import base64, json, tempfile, unittest

import seeing_model
from weir_server import Server

CHAT = "/v1/chat/completions"
QUESTION = "What happens?"


def url(image):
    return f"data:image/png;base64,{base64.b64encode(image).decode()}"


def image(frame):
    return {"type": "image_url", "image_url": {"url": url(frame)}}


def video(*frames, **more):
    return {"type": "video", "video": [url(frame) for frame in frames], **more}


FIRST = seeing_model.png(64, 64)
SECOND = seeing_model.png(64, 64, lambda x, y: (y * 3 % 256, 255 - x, x * y % 256))


@unittest.skipUnless(seeing_model.fixture("qwen3_vl"), "no fixtures of families (WEIR_FAMILIES)")
class Video(unittest.TestCase):
    def serve(self, family, test):
        with tempfile.TemporaryDirectory() as folder:
            model = seeing_model.make(f"{folder}/seeing", family)
            # Frames as large as images, so that both can be compared.
            with open(f"{model}/preprocessor_config.json") as file:
                bounds = json.load(file)
            for key in ("min_pixels", "max_pixels"):
                bounds[key] *= 2 if family == "qwen3_vl" else 1  # There they are of all frames together.
            with open(f"{model}/video_preprocessor_config.json", "w") as file:
                json.dump(bounds, file)
            with Server("--model", model, "--compute", "exact") as server:
                test(server)

    def ask(self, server, *parts):
        answer = server.post(CHAT, {"messages": [{"role": "user", "content": [*parts, {"type": "text", "text": QUESTION}]}],
                                    "max_tokens": 12, "temperature": 0, "ignore_eos": True})
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
            self.assertEqual(self.ask(server, video(FIRST)), self.ask(server, {"type": "text", "text": "<0.0 seconds>"}, image(FIRST)))
            said, tokens = self.ask(server, video(FIRST, FIRST, SECOND))
            self.assertNotEqual(said, self.ask(server, video(SECOND, SECOND, FIRST))[0])
            ids = server.post("/tokenize", {"messages": [{"role": "user", "content": [video(FIRST, FIRST, SECOND)]}]})["tokens"]
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


if __name__ == "__main__":
    unittest.main()
