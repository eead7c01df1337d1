"""tools/make_formats against the program: what it writes in each format is read as the numbers that it means."""
import json, re, shutil, subprocess, sys, tempfile, unittest

from weir_server import SOURCE, WEIR

try:
    import numpy as np
except ImportError:
    print("skipped: no python3-numpy")
    sys.exit(77)
sys.dont_write_bytecode = True
sys.path.insert(0, f"{SOURCE}/tools")
from weight_formats import FORMATS, Checkpoint, misfit, write_safetensors

TINY = f"{SOURCE}/models/weir-tiny-moe"
MAKE_FORMATS = f"{SOURCE}/tools/make_formats"
# 576 is no multiple of 128: groups at the end of a row, and blocks at two edges, are shorter.
HIDDEN, WIDE, VOCAB = 128, 576, 8192
CONFIG = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": HIDDEN,
          "intermediate_size": WIDE,
          "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": VOCAB,
          "max_position_embeddings": 256, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": True,
          "torch_dtype": "float32"}


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, (command, done.stderr)
    return done.stdout


class MakeFormats(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="weir_formats_")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.source = f"{cls.folder}/source"
        shutil.copytree(TINY, cls.source, ignore=lambda _, names: [n for n in names if not n.startswith("tokenizer")])
        draw = np.random.default_rng(1).standard_t
        shapes = {}
        for layer in range(2):
            at = f"model.layers.{layer}."
            shapes |= {f"{at}self_attn.q_proj": (HIDDEN, HIDDEN), f"{at}self_attn.k_proj": (HIDDEN // 2, HIDDEN),
                       f"{at}self_attn.v_proj": (HIDDEN // 2, HIDDEN), f"{at}self_attn.o_proj": (HIDDEN, HIDDEN),
                       f"{at}mlp.gate_proj": (WIDE, HIDDEN), f"{at}mlp.up_proj": (WIDE, HIDDEN),
                       f"{at}mlp.down_proj": (HIDDEN, WIDE), f"{at}input_layernorm": (HIDDEN,),
                       f"{at}post_attention_layernorm": (HIDDEN,)}
        shapes |= {"model.embed_tokens": (VOCAB, HIDDEN), "model.norm": (HIDDEN,)}
        tensors = {}
        for name, shape in shapes.items():
            # Logits with a spread of about 2: distributions that have something to differ in.
            numbers = np.ones(shape) if len(shape) == 1 else 0.13 * draw(4, shape)
            tensors[f"{name}.weight"] = "F32", numbers.astype(np.float32)
        down = tensors["model.layers.0.mlp.down_proj.weight"][1]
        down[0], down[1, :64], down[2] = 0, 0, np.abs(down[2])
        write_safetensors(f"{cls.source}/model.safetensors", tensors)
        with open(f"{cls.source}/config.json", "w") as file:
            json.dump(CONFIG, file)
        cls.text = f"{cls.folder}/text"
        with open(f"{SOURCE}/LICENSE") as whole, open(cls.text, "w") as part:
            part.write(whole.read(1500))

    def divergence(self, model, reference):
        out = run(WEIR, "perplexity", "--model", model, "--against", reference, "--file", self.text, "--ctx", "128",
                  "--compute", "exact")
        return float(re.search(r"\): mean (\S+) ", out).group(1))

    def test_each_format_is_read_as_the_numbers_that_it_means(self):
        shapes = [entry[1] for name, entry in Checkpoint(self.source).entries.items() if "_proj" in name]
        possible = [name for name, form in FORMATS.items() if not any(misfit(form, shape) for shape in shapes)]
        self.assertEqual(set(FORMATS) - set(possible), {"awq-4-g128", "ct-w4-g128"})
        run(MAKE_FORMATS, self.source, f"{self.folder}/out", "--values", "--only", ",".join(possible))
        for name in possible:
            made = f"{self.folder}/out/{name}"
            to_values, to_source = self.divergence(made, f"{made}-values"), self.divergence(made, self.source)
            self.assertLess(to_values, 1e-7, name)
            self.assertGreater(to_source, 100 * to_values + 1e-6, name)

    def test_a_format_that_does_not_fit_is_left_out_or_refused(self):
        done = subprocess.run([MAKE_FORMATS, self.source, f"{self.folder}/refused", "--only", "awq-4-g128"],
                              capture_output=True,
                              text=True, timeout=60)
        self.assertEqual(done.returncode, 1)
        self.assertIn("model.layers.0.mlp.down_proj.weight: 576 columns are no multiple of 128", done.stderr)

    def test_floats_of_mlx_groups_are_exact(self):
        run(WEIR, "quantize", self.source, f"{self.folder}/mlx", "--bits", "3", "--group", "32")
        run(MAKE_FORMATS, f"{self.folder}/mlx", f"{self.folder}/of_mlx", "--floats")
        self.assertLess(self.divergence(f"{self.folder}/mlx", f"{self.folder}/of_mlx/floats"), 1e-7)
        floats, mlx = Checkpoint(f"{self.folder}/of_mlx/floats"), Checkpoint(f"{self.folder}/mlx")
        module = "model.layers.1.mlp.down_proj"
        scales, biases = mlx.floats(f"{module}.scales"), mlx.floats(f"{module}.biases")
        words = mlx.stored(f"{module}.weight")[1]
        self.assertEqual(words.dtype, np.dtype("<u4"))
        third = int(words[0, 0]) >> 6 & 7  # The third number of three bits.
        self.assertEqual(floats.floats(f"{module}.weight")[0, 2],
                         np.float32(np.float64(scales[0, 0]) * third + biases[0, 0]))


if __name__ == "__main__":
    unittest.main()
