"""A model of a family, for tests: a fixture of random weights, to which it gives a tokenizer whose tokens are bytes, a
chat template, and a longer context. What layers remember is of the family's kind: of windows, states, codes."""
import json, os, shutil

from weir_server import SOURCE

FAMILIES = f"{SOURCE}/tests/data/families"
CONTEXT = 2048
WINDOW = 100  # The fixtures' is shorter than a page.
TEMPLATE = "{% for message in messages %}{{ message['role'][0] }}: {{ message['content'] }}\n{% endfor %}a:"


def byte_letters():
    """The letter that byte-level tokenizers write for each byte."""
    plain = {*range(33, 127), *range(161, 173), *range(174, 256)}
    others = iter(range(256, 512))
    return [chr(byte) if byte in plain else chr(next(others)) for byte in range(256)]


def write(family, folder):
    """`family`: a folder of tests/data/families."""
    os.makedirs(folder)
    with open(f"{FAMILIES}/{family}/config.json") as file:
        config = json.load(file)
    if "max_position_embeddings" in config:
        config["max_position_embeddings"] = CONTEXT
    if config.get("sliding_window"):
        config["sliding_window"] = WINDOW
    assert config["vocab_size"] == 256, config["vocab_size"]
    levels = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    tokenizer = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
                 "pre_tokenizer": levels, "post_processor": None, "decoder": levels,
                 "model": {"type": "BPE", "vocab": {letter: i for i, letter in enumerate(byte_letters())},
                           "merges": []}}
    for name, text in (("config", config), ("tokenizer", tokenizer), ("tokenizer_config", {"chat_template": TEMPLATE})):
        with open(f"{folder}/{name}.json", "w") as file:
            json.dump(text, file)
    shutil.copy(f"{FAMILIES}/{family}/model.safetensors", folder)
    return folder
