"""A model that hears, for tests: a fixture with an encoder of sounds, to which it gives a tokenizer of ASCII and a chat
template."""
import struct

import seeing_model
from seeing_model import fixture, recorded_ids

# What the references' tokenizers and templates have for a sound, by fixture.
MARKS = {
    "qwen2_audio": ({253: "<|audio_bos|>", 254: "<|audio_eos|>", 255: "<|AUDIO|>"},
                    "<|audio_bos|><|AUDIO|><|audio_eos|>"),
    "gemma3n_audio": ({247: "<start_of_audio>", 254: "<end_of_audio>", 255: "<audio_soft_token>"},
                      "<audio_soft_token>"),
    "gemma4_audio": ({250: "<|audio>", 251: "<audio|>", 252: "<|audio|>"}, "<|audio|>"),
}
ROWS = {"qwen2_audio": 255, "gemma3n_audio": 255, "gemma4_audio": 252}  # The token for a row of features.


def make(folder, family):
    """Writes the model into `folder`, which must not be there."""
    marks, written = MARKS[family]
    return seeing_model.write(folder, family, marks,
                              (seeing_model.TEMPLATE % (written, "")).replace("'image'", "'audio'"))


def recorded_sound(family):
    return recorded_ids(family, MARKS[family][0])


def wav(samples, rate=16000, channels=1, kind="float"):
    """Samples, channel after channel of each moment, as the bytes of a WAV: floats of 32 bits, or integers of 16."""
    code, tag = ("f", 3) if kind == "float" else ("h", 1)
    width = 4 if kind == "float" else 2
    data = struct.pack(f"<{len(samples)}{code}", *samples)
    head = struct.pack("<HHIIHH", tag, channels, rate, rate * channels * width, channels * width, 8 * width)
    return b"RIFF" + struct.pack("<I",
                                 36 + len(data)) + b"WAVEfmt " + struct.pack("<I",
                                                                             16) + head + b"data" + struct.pack("<I",
                                                                                                                len(data)) + data
