"""A model that writes down what is said, for tests: Whisper's fixture, of windows of one second and random weights, to
which it gives a tokenizer of ASCII with the tokens of speech models."""
import json, math, shutil, struct

from seeing_model import fixture

FAMILY = "whisper"
# The fixture's vocabulary has 256 tokens: text, those that tell the model what to do, and the times from 0.00 to 1.00
# s.
TIMESTAMPS = 256 - 51
CONTROL = ["endoftext", "startoftranscript", "en", "de", "translate", "transcribe", "startofprev", "nospeech",
           "notimestamps"]
END = TIMESTAMPS - len(CONTROL)


def make(folder):
    """Writes the model into `folder`, which must not be there."""
    shutil.copytree(fixture(FAMILY), folder)
    texts = [" "] + list(range(33, 127))
    vocabulary = {("Ġ" if c == " " else chr(c)): i for i, c in enumerate(texts)}
    # Tokens of text that ASCII does not fill.
    vocabulary.update({f"Ġ{chr(97 + i // 26)}{chr(97 + i % 26)}": i + len(texts) for i in range(END - len(texts))})
    names = [f"<|{name}|>" for name in CONTROL] + [f"<|{i / 50:.2f}|>" for i in range(51)]
    added = [{"id": END + i, "content": name, "single_word": False, "lstrip": False, "rstrip": False,
              "normalized": False,
              "special": i < len(CONTROL)} for i, name in enumerate(names)]
    levels = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    with open(f"{folder}/tokenizer.json", "w") as file:
        json.dump({"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None,
                   "pre_tokenizer": levels, "post_processor": None, "decoder": levels,
                   "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                             "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "vocab": vocabulary,
                             "merges": []}}, file)
    for name in "config.json", "generation_config.json":
        with open(f"{folder}/{name}") as file:
            settings = json.load(file)
        settings.update(eos_token_id=END, bos_token_id=END, pad_token_id=END)
        if name == "config.json":
            settings.update(decoder_start_token_id=END + 1, begin_suppress_tokens=[0, END])
        else:
            settings.update(begin_suppress_tokens=[0, END], suppress_tokens=[3], alignment_heads=[[0, 1], [1, 2]])
        with open(f"{folder}/{name}", "w") as file:
            json.dump(settings, file)
    return folder


def wav(seconds, rate=16000, channels=1, sample=lambda t: 0.3 * math.sin(2 * math.pi * 440 * t)):
    """A sound as the bytes of a WAV file of 16 bits."""
    frames = b"".join(struct.pack("<h",
                                  round(32767 * sample(i / rate))) * channels for i in range(round(seconds * rate)))
    return (b"RIFF" + struct.pack("<I", 36 + len(frames)) + b"WAVEfmt " +
            struct.pack("<IHHIIHH", 16, 1, channels, rate, 2 * channels * rate, 2 * channels, 16) +
            b"data" + struct.pack("<I", len(frames)) + frames)


def crc(data, bits, polynomial):
    value = 0
    for byte in data:
        value ^= byte << (bits - 8)
        for _ in range(8):
            value = (value << 1 ^ (polynomial if value >> (bits - 1) else 0)) & ((1 << bits) - 1)
    return value


def silent_flac(seconds):
    """Silence of 8 kHz as a FLAC of 16 bits that does not say how long it lasts: 15 bytes for every 8 s."""
    block, rate = 65535, 8000
    stream = struct.pack(">HH", block, block) + bytes(6) + (rate << 44 | 15 << 36).to_bytes(8, "big") + bytes(16)
    out = [b"fLaC\x80\0\0\x22", stream]
    for number in range(seconds * rate // block):
        # A block's length in 16 bits, the stream's rate, one channel, 16 bits; its number as UTF-8 has it.
        head = b"\xff\xf8\x70\x08" + chr(number).encode() + struct.pack(">H", block - 1)
        frame = head + bytes([crc(head, 8, 0x07)]) + b"\0\0\0"  # All samples are 0.
        out.append(frame + struct.pack(">H", crc(frame, 16, 0x8005)))
    return b"".join(out)
