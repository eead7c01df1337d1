"""A model that sees, for tests: a fixture with a vision tower, to which it gives a tokenizer of ASCII and a chat
template."""
import json, os, shutil, struct, zlib

from weir_server import SOURCE

FAMILIES = os.environ.get("WEIR_FAMILIES", f"{SOURCE}/build/fixtures/families")

# What the references' tokenizers and templates have for an image, by fixture: special tokens by the ids that its
# recorded prompt has for them, and what the template writes.
QWEN = ({252: "<|vision_start|>", 253: "<|vision_end|>", 254: "<|video_pad|>", 255: "<|image_pad|>"},
        "<|vision_start|><|image_pad|><|vision_end|>")
ROWS = ({255: "[IMG]", 254: "[IMG_BREAK]", 253: "[IMG_END]"}, "[IMG]")
MARKS = {
    "qwen2_vl": QWEN,
    "qwen2_5_vl": QWEN,
    "qwen3_vl": QWEN,
    "llava": ({255: "<image>"}, "<image>"),
    "pixtral": ROWS,
    "mistral3": ROWS,
    "gemma3": ({253: "<start_of_image>", 254: "<end_of_image>", 255: "<image_soft_token>"}, "<start_of_image>"),
    "gemma4_dense": ({253: "<|image>", 254: "<image|>", 255: "<|image|>"}, "<|image|>"),
    "internvl": ({253: "<img>", 254: "</img>", 255: "<IMG_CONTEXT>"}, "<IMG_CONTEXT>"),
    "lfm2_vl": ({253: "<|image_start|>", 254: "<|image_end|>", 255: "<image>"}, "<image>"),
}
TEMPLATE = ("{%% for m in messages %%}[{{ m['role'] }}]{%% if m['content'] is string %%}{{ m['content'] }}{%% else %%}"
            "{%% for part in m['content'] %%}{%% if part['type'] == 'image' %%}%s{%% elif part['type'] == 'video' %%}%s"
            "{%% else %%}{{ part['text'] }}{%% endif %%}"
            "{%% endfor %%}{%% endif %%}{%% endfor %%}{%% if add_generation_prompt %%}[assistant]{%% endif %%}")


def fixture(family):
    """The fixture's folder, or None where fixtures are not unpacked."""
    for folder, names, _ in os.walk(FAMILIES, followlinks=True):
        if family in names:
            return os.path.join(folder, family)
    return None


def recorded_ids(family, marks):
    """The ids that stand for images or sounds in the fixture's recorded prompt, with the marks around them."""
    with open(f"{fixture(family)}/expected.safetensors", "rb") as file:
        size = struct.unpack("<Q", file.read(8))[0]
        begin, end = json.loads(file.read(size))["input_ids"]["data_offsets"]
        file.seek(8 + size + begin)
        ids = [number for number, in struct.iter_unpack("<q", file.read(end - begin))]
    return [number for number in ids if number in marks]


def make(folder, family):
    """Writes the model into `folder`, which must not be there."""
    marks, written = MARKS[family]
    return write(folder, family, marks, TEMPLATE % (written, written.replace("image_pad", "video_pad")))


def write(folder, family, marks, template):
    """The same of special tokens by their ids, and a chat template."""
    shutil.copytree(fixture(family), folder)
    # Letters from 3 on; special tokens where the config has them.
    vocabulary = {"<pad>": 0, "<s>": 1, "</s>": 2}
    vocabulary.update({("Ġ" if c == " " else chr(c) if isinstance(c, int) else c): 3 + i
                       for i, c in enumerate([" "] + list(range(33, 127)) + ["Ċ"])})
    added = [{"id": number, "content": text, "single_word": False, "lstrip": False, "rstrip": False,
              "normalized": False,
              "special": True} for number, text in sorted(marks.items())]
    tokenizer = {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False},
        "post_processor": None,
        "decoder": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False},
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                  "end_of_word_suffix": None,
                  "fuse_unk": False, "byte_fallback": False, "vocab": vocabulary, "merges": []}}
    with open(f"{folder}/tokenizer.json", "w") as file:
        json.dump(tokenizer, file)
    with open(f"{folder}/tokenizer_config.json", "w") as file:
        json.dump({"chat_template": template, "eos_token": "</s>", "bos_token": "<s>"}, file)
    return folder


def colours(x, y):
    return x * 7 % 256, y * 5 % 256, (x + y) % 256


def png(width, height, pixel=colours, orientation=None):
    """A picture as the bytes of a PNG; `orientation`: what its EXIF data say, 1 to 8."""
    rows = b"".join(b"\0" + bytes(c for x in range(width) for c in pixel(x, y)) for y in range(height))

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) +
            (chunk(b"eXIf", b"MM\0*\0\0\0\x08\0\x01" + struct.pack(">HHIHHI", 0x0112, 3, 1, orientation, 0,
                                                                   0)) if orientation else b"") +
            chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
