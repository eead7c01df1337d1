"""InternVL in the older layout, as OpenGVLab publishes it and as MLX's converter leaves it: the same answers to the
same picture as in the layout of transformers, to the last digit."""
import base64, json, os, shutil, subprocess, sys, tempfile, unittest

import older_internvl, seeing_model
from weir_server import Server, WEIR

FAMILY = "internvl"
CHECK = os.path.join(os.path.dirname(WEIR), "weir-check")
MARKS = seeing_model.MARKS[FAMILY][0]
# As the models of text that these were made of have it: a list of parts would be written as it stands.
AS_STRING = ("{% for m in messages %}[{{ m['role'] }}]{{ m['content'] }}{% endfor %}"
             "{% if add_generation_prompt %}[assistant]{% endif %}")


def in_parts(mark):
    return seeing_model.TEMPLATE % (f"{mark}\n", "")


@unittest.skipUnless(seeing_model.fixture(FAMILY), "no fixtures of families (WEIR_FAMILIES)")
class InternVl(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def make(self, name, template):
        return seeing_model.write(f"{self.folder.name}/{name}", FAMILY, MARKS, template)

    def answer(self, model):
        """What is said of the fixture's picture, with probabilities; and the prompt's ids."""
        with open(f"{model}/image.png", "rb") as file:
            url = f"data:image/png;base64,{base64.b64encode(file.read()).decode()}"
        body = {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}},
                                                          {"type": "text", "text": "What is this?"}]}],
                "max_tokens": 12, "temperature": 0, "logprobs": True, "top_logprobs": 5, "ignore_eos": True}
        with Server("--model", model, "--compute", "exact") as server:
            self.assertTrue(json.loads(server.get("/props"))["modalities"]["vision"])
            ids = server.post("/tokenize", {"messages": body["messages"]})["tokens"]
            answer = server.post("/v1/chat/completions", body)
        self.assertEqual([i for i in ids if i in MARKS], seeing_model.recorded_ids(FAMILY, MARKS))
        self.assertEqual(answer["usage"]["prompt_tokens_details"]["image_tokens"], ids.count(255))
        return answer["choices"][0], ids

    def test_as_published(self):
        expected = self.answer(self.make("newer", in_parts("<IMG_CONTEXT>")))
        older = self.make("older", AS_STRING)
        older_internvl.make_older(older)
        self.assertEqual(self.answer(older), expected)

    def test_as_mlx_converts_it(self):
        newer = self.make("newer", in_parts("<IMG_CONTEXT>"))
        floats = self.answer(newer)
        older_internvl.quantise(newer)
        expected = self.answer(newer)
        self.assertNotEqual(expected, floats, "nothing was quantised")
        older = self.make("older", in_parts("<image>"))
        older_internvl.quantise(older)
        older_internvl.make_older(older, mlx=True)
        self.assertFalse(os.path.exists(f"{older}/preprocessor_config.json"))
        self.assertEqual(self.answer(older), expected)

    @unittest.skipUnless(os.path.exists(CHECK), "weir-check is not built")
    def test_gives_what_the_reference_recorded(self):
        folder = self.folder.name
        for name, mlx in (("published", False), ("mlx", True)):
            shutil.copytree(seeing_model.fixture(FAMILY), f"{folder}/{name}")
            # Which of a prompt's ids are rows the check reads in the config.
            older_internvl.make_older(f"{folder}/{name}", mlx=mlx, image_token_index=255)
        with open(f"{folder}/mlx/preprocessor_config.json", "w") as file:  # The check wants one.
            json.dump({}, file)
        for text in ("internlm2", "internlm3"):
            older_internvl.with_text(seeing_model.fixture(FAMILY), seeing_model.fixture(text), f"{folder}/{text}")
        for kind in ("families", "images"):
            done = subprocess.run([CHECK, kind, folder], capture_output=True, text=True, timeout=300)
            print(done.stdout[-4000:])
            self.assertEqual(done.returncode, 0, done.stdout[-4000:] + done.stderr[-2000:])
        families = subprocess.run([CHECK, "families", folder], capture_output=True, text=True, timeout=300).stdout
        for name in ("published, pictures", "mlx, pictures", "internlm2", "internlm3"):
            self.assertIn(name, families)

    def test_a_tensor_that_is_missing_or_another_size_is_named(self):
        for name, tensor in (("mlp1.3.bias", None), ("vision_model.encoder.layers.0.ls1", ("BF16", [8], bytes(16)))):
            with self.subTest(name):
                model = self.make(name, AS_STRING)
                older_internvl.make_older(model)
                tensors = older_internvl.read(f"{model}/model.safetensors")
                del tensors[name]
                if tensor:
                    tensors[name] = tensor
                older_internvl.write(f"{model}/model.safetensors", tensors)
                with self.assertRaises(AssertionError) as refused, Server("--model", model):
                    pass
                self.assertIn(f"'{name}': expected", str(refused.exception))


if __name__ == "__main__":
    result = unittest.main(verbosity=2, exit=False).result
    # 77: ctest counts it as skipped.
    sys.exit(77 if result.skipped and not result.testsRun else not result.wasSuccessful())
