"""Formats of weights in safetensors, by plain rounding to nearest: for tools/make_formats, which writes checkpoints in
them, and bench/quality, which measures their errors.

A format is a row of FORMATS: what config.json says, and a function of one matrix w [out, in] in float32 that gives the
tensors that are stored in its place and the numbers that they stand for. No rule here looks at activations: scales come
from the largest numbers of a group, a row, a block or the matrix. Needs Debian's python3-numpy.
"""
import collections
import json
import os
import struct

import numpy as np

DTYPES = {"F32": "<f4", "F16": "<f2", "BF16": "<u2", "I64": "<i8", "I32": "<i4", "U32": "<u4", "I8": "<i1",
          "U8": "<u1", "F8_E4M3": "<u1"}

# `tensors`: by the suffix that takes the place of ".weight", (dtype of safetensors, array). `values`: float32, as w.
Stored = collections.namedtuple("Stored", "tensors values")
# `config`: quantization_config. `group`: columns that share a scale, None if all of a row do. `partial`: the last group
# of a row may be shorter. `grid`: bits of equal steps, None where steps differ.
Format = collections.namedtuple("Format", "config quantise group partial grid")


class Checkpoint:
    """The tensors of a folder's safetensors by name; read when they are asked for."""

    def __init__(self, folder):
        index = os.path.join(folder, "model.safetensors.index.json")
        files = ["model.safetensors"]
        if os.path.exists(index):
            with open(index) as file:
                files = sorted(set(json.load(file)["weight_map"].values()))
        self.entries = {}
        for name in files:
            raw = np.memmap(os.path.join(folder, name), np.uint8, "r")
            length = int(raw[:8].view("<u8")[0])
            for key, entry in json.loads(bytes(raw[8:8 + length])).items():
                if key != "__metadata__":
                    begin, end = entry["data_offsets"]
                    self.entries[key] = entry["dtype"], entry["shape"], raw[8 + length + begin:8 + length + end]

    def names(self):
        return list(self.entries)

    def __contains__(self, name):
        return name in self.entries

    def stored(self, name):
        """(dtype, array) as it is stored; bf16 and FP8 as their bits."""
        dtype, shape, raw = self.entries[name]
        return dtype, np.frombuffer(raw.tobytes(), DTYPES[dtype]).reshape(shape)

    def floats(self, name):
        dtype, data = self.stored(name)
        if dtype == "BF16":
            return from_bf16(data)
        if dtype not in ("F32", "F16"):
            raise SystemExit(f"tensor '{name}': expected F32, F16 or BF16; found {dtype}")
        return data.astype(np.float32)

    def bytes_of(self, names):
        return sum(len(self.entries[name][2]) for name in names)


def write_safetensors(path, tensors):
    """`tensors`: (dtype, array) by name."""
    header, offset = {"__metadata__": {"format": "pt"}}, 0
    arrays = {name: np.asarray(data, DTYPES[dtype], "C") for name, (dtype, data) in tensors.items()}
    for name, data in arrays.items():
        dtype = tensors[name][0]
        header[name] = {"dtype": dtype, "shape": list(data.shape), "data_offsets": [offset, offset + data.nbytes]}
        offset += data.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path + ".part", "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        for data in arrays.values():
            out.write(data.tobytes())
    os.rename(path + ".part", path)


def to_bf16(x):
    """Bits of the nearest bf16, ties to even."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    return ((bits + 0x7fff + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def from_bf16(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


def unpack_affine(words, scales, biases, bits):
    """MLX's affine groups: float32 scale * q + bias, rounded once because scale * q is exact."""
    rows = words.shape[0]
    stream = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little").reshape(rows, -1, bits)
    numbers = (stream << np.arange(bits, dtype=np.uint8)).sum(2, dtype=np.uint8).astype(np.float32)
    groups = numbers.reshape(rows, scales.shape[1], -1)
    return (scales[:, :, None] * groups + biases[:, :, None]).reshape(rows, -1)


def pack(numbers, bits):
    """[rows, n] below 2^bits as one stream of bits a row, the least first, in words of 32."""
    rows = numbers.shape[0]
    stream = (numbers[:, :, None] >> np.arange(bits) & 1).astype(np.uint8).reshape(rows, -1)
    stream = np.pad(stream, ((0, 0), (0, -stream.shape[1] % 32)))
    return np.packbits(stream, axis=1, bitorder="little").view("<i4")


def grouped(w, group):
    """[out, groups, group]; a shorter last group is filled up with zeros, which change no scale of ours."""
    return np.pad(w, ((0, 0), (0, -w.shape[1] % group))).reshape(w.shape[0], -1, group)


def flat(groups, columns):
    return groups.reshape(groups.shape[0], -1)[:, :columns]


def or_one(scale):
    """A scale that may be divided by: a group of zeros has none."""
    return np.where(scale == 0, np.float32(1), scale).astype(np.float32)


def asymmetric(w, bits, group):
    """(q, scale in f16, zero): w is about (q - zero) * scale, with 0 always among the numbers, as GPTQ has it."""
    groups, top = grouped(w, group), (1 << bits) - 1
    low, high = np.minimum(groups.min(2), 0), np.maximum(groups.max(2), 0)
    scale = or_one(((high - low) / top).astype(np.float16))
    zero = np.clip(np.rint(-low / scale), 0, top)
    q = np.clip(np.rint(groups / scale[:, :, None]) + zero[:, :, None], 0, top)
    values = (q - zero[:, :, None]) * scale[:, :, None]
    q, values = (flat(numbers, w.shape[1]) for numbers in (q, values))
    return q.astype(np.int64), scale, zero.astype(np.int64), values.astype(np.float32)


def symmetric(w, bits, group):
    """(q, scale in bf16, values): q from -2^(bits-1), the scale such that the largest number falls between the two
    ends, as compressed-tensors has it."""
    groups, half = grouped(w, group), 1 << (bits - 1)
    scale = or_one(from_bf16(to_bf16(np.abs(groups).max(2) / (half - 0.5))))
    q = np.clip(np.rint(groups / scale[:, :, None]), -half, half - 1)
    return flat(q, w.shape[1]).astype(np.int64), scale, flat(q * scale[:, :, None], w.shape[1]).astype(np.float32)


def gptq(bits, group):
    def quantise(w):
        q, scale, zero, values = asymmetric(w, bits, group)
        return Stored({".qweight": ("I32", pack(q, bits).T), ".qzeros": ("I32", pack(zero.T, bits)),
                       ".scales": ("F16", scale.T), ".g_idx": ("I32", np.arange(w.shape[1]) // group)}, values)
    # Version 2 stores zero points as they are; version 1 less one, which leaves no room for 0.
    config = {"quant_method": "gptq", "bits": bits, "group_size": group, "sym": False, "desc_act": False,
              "checkpoint_format": "gptq_v2"}
    return Format(config, quantise, group, True, bits)


def awq(group):
    order = [0, 2, 4, 6, 1, 3, 5, 7]  # Which of eight neighbouring outputs each four bits of a word hold.

    def words(numbers):
        return pack(numbers.reshape(numbers.shape[0], -1, 8)[:, :, order].reshape(numbers.shape), 4)

    def quantise(w):
        q, scale, zero, values = asymmetric(w, 4, group)
        return Stored({".qweight": ("I32", words(q.T)), ".qzeros": ("I32", words(zero.T)), ".scales": ("F16", scale.T)},
                      values)
    config = {"quant_method": "awq", "bits": 4, "group_size": group, "version": "gemm", "zero_point": True}
    return Format(config, quantise, group, False, 4)


def compressed(layout, bits, kind, strategy, **more):
    weights = {"num_bits": bits, "type": kind, "strategy": strategy, "symmetric": True, "dynamic": False, **more}
    return {"quant_method": "compressed-tensors", "format": layout, "quantization_status": "compressed",
            "ignore": ["lm_head"], "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights}}}


def compressed_packed(bits, group):
    def quantise(w):
        q, scale, values = symmetric(w, bits, group)
        packed = pack(q + (1 << (bits - 1)), bits)
        return Stored({".weight_packed": ("I32", packed), ".weight_scale": ("BF16", to_bf16(scale)),
                       ".weight_shape": ("I64", np.array(w.shape))}, values)
    return Format(compressed("pack-quantized", bits, "int", "group", group_size=group), quantise, group, False, bits)


def compressed_int8():
    def quantise(w):
        q, scale, values = symmetric(w, 8, w.shape[1])
        return Stored({".weight": ("I8", q), ".weight_scale": ("BF16", to_bf16(scale))}, values)
    return Format(compressed("int-quantized", 8, "int", "channel"), quantise, None, True, 8)


def small_float(x, mantissa, least_exponent, largest):
    """The nearest float of so many bits of mantissa, ties to even, what is too large to the largest."""
    exponent = np.maximum(np.frexp(np.abs(x))[1] - 1, least_exponent)
    step = np.ldexp(np.float32(1), exponent - mantissa)
    return np.clip(np.rint(x / step) * step, -largest, largest).astype(np.float32)


def codes_of(values, table):
    """The codes of small floats: the place among the positive ones, and the sign above it."""
    return (np.searchsorted(table, np.abs(values)) + np.where(np.signbit(values), len(table), 0)).astype(np.uint8)


E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], np.float32)
E4M3 = np.array([(m / 8 if e == 0 else 1 + m / 8) * 2.0 ** (max(e, 1) - 7) for e in range(16) for m in range(8)],
                np.float32)  # The last would be 480 and is NaN: no value reaches it.


def e2m1(x):
    return small_float(x, 1, 0, 6)


def e4m3(x):
    return small_float(x, 3, -6, 448)


def nibbles(values):
    """E2M1 codes, two in a byte, the first in the low half."""
    codes = codes_of(values, E2M1)
    return codes[:, 0::2] | codes[:, 1::2] << 4


def fp8(rows, columns):
    """A scale for each block of so many rows and columns; None: all of them."""
    def quantise(w):
        n, k = w.shape
        down, across = rows or n, columns or k
        blocks = np.pad(np.abs(w), ((0, -n % down), (0, -k % across)))
        most = blocks.reshape(-(-n // down), down, -(-k // across), across).max((1, 3))
        scale = or_one(most / np.float32(448))
        if rows == 1:
            scale = from_bf16(to_bf16(scale))  # compressed-tensors stores scales in the weights' type.
        each = scale.repeat(down, 0)[:n].repeat(across, 1)[:, :k]
        numbers = e4m3(w / each)
        weight = {".weight": ("F8_E4M3", codes_of(numbers, E4M3))}
        if rows == 1:
            weight[".weight_scale"] = "BF16", to_bf16(scale)
        elif rows:
            weight[".weight_scale_inv"] = "F32", scale
        else:
            weight[".weight_scale"] = "F32", scale.reshape(())
        return Stored(weight, numbers * each)
    if rows == 1:
        config = compressed("float-quantized", 8, "float", "channel")
    else:
        config = {"quant_method": "fp8", "activation_scheme": "dynamic"}
        if rows:
            config["weight_block_size"] = [rows, columns]
    return Format(config, quantise, None, True, None)


def shared_exponents(w, largest_exponent):
    """[out, groups of 32]: powers of two that bring the largest number of a group to that exponent."""
    exponent = np.frexp(np.abs(grouped(w, 32)).max(2))[1] - 1 - largest_exponent
    return np.clip(exponent, -127, 127)


def microscaled(bits):
    """MXFP4 and MXFP8, in compressed-tensors' layouts; the exponents as the OCP's specification has them."""
    def quantise(w):
        exponent = shared_exponents(w, 2 if bits == 4 else 8)
        scale = np.ldexp(np.float32(1), exponent).repeat(32, 1)
        numbers = (e2m1 if bits == 4 else e4m3)(w / scale)
        tensors = {".weight_packed": ("U8", nibbles(numbers))} if bits == 4 else \
            {".weight": ("F8_E4M3", codes_of(numbers, E4M3))}
        tensors[".weight_scale"] = "U8", (exponent + 127).astype(np.uint8)
        return Stored(tensors, numbers * scale)
    layout = "mxfp4-pack-quantized" if bits == 4 else "mxfp8-quantized"
    config = compressed(layout, bits, "float", "group", group_size=32, scale_dtype="torch.uint8")
    return Format(config, quantise, 32, False, None)


def nvfp4():
    def quantise(w):
        most = np.abs(grouped(w, 16)).max(2)
        divisor = np.float32(448 * 6) / or_one(most.max())
        scale = e4m3(most * divisor / np.float32(6))
        each = scale.repeat(16, 1)
        numbers = np.where(each == 0, np.float32(0), e2m1(w * divisor / or_one(each)))
        return Stored({".weight_packed": ("U8", nibbles(numbers)), ".weight_scale": ("F8_E4M3", codes_of(scale, E4M3)),
                       ".weight_global_scale": ("F32", divisor.reshape(1))}, numbers * each / divisor)
    config = compressed("nvfp4-pack-quantized", 4, "float", "tensor_group", group_size=16)
    return Format(config, quantise, 16, False, None)


FORMATS = {
    **{f"gptq-{bits}-g{group}": gptq(bits, group) for bits in (2, 3, 4, 8) for group in (32, 128)},
    **{f"awq-4-g{group}": awq(group) for group in (32, 64, 128)},
    **{f"ct-w4-g{group}": compressed_packed(4, group) for group in (32, 64, 128)},
    "ct-int8-row": compressed_int8(),
    "fp8-matrix": fp8(None, None),
    "fp8-row": fp8(1, None),
    "fp8-block": fp8(128, 128),
    "mxfp4": microscaled(4),
    "mxfp8": microscaled(8),
    "nvfp4": nvfp4(),
}


def is_linear(name, shape):
    """Whether tools of these formats quantise the tensor: projections, and neither embedding, head nor router."""
    return len(shape) == 2 and name.endswith("_proj.weight")


def misfit(form, shape):
    """Why a matrix cannot be stored so; empty: it can."""
    if form.group and not form.partial and shape[1] % form.group:
        return f"{shape[1]} columns are no multiple of {form.group}"
    method = form.config["quant_method"]
    if method == "awq" and shape[0] % 8:
        return f"{shape[0]} rows are no multiple of 8"
    if method == "gptq" and any(size * form.config["bits"] % 32 for size in shape):
        return f"{shape[0]} by {shape[1]} numbers do not fill words of 32 bits"
    return ""
