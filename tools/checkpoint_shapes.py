"""Which tensors a checkpoint has, from the sizes in its config.json: names, types and shapes, in the formats in which
models are published. Checkpoints of these are written as headers alone: weights are holes in the file, which read as
zeros and take no disk. Standard library only."""
import json
import os
import struct

BYTES = {"BF16": 2, "F16": 2, "F32": 4, "U32": 4, "U8": 1, "F8_E4M3": 1}
GROUP = 64  # Of MLX's formats: numbers that share a scale.
BLOCK = 128  # Of FP8 as DeepSeek publishes it: rows and columns that share a scale.
FORMATS = ("BF16", "4-bit g64", "FP8", "MXFP4")


class Tensors:
    """What a checkpoint has, in one format. `quantization` is what its config.json says of that."""

    def __init__(self, form):
        self.form, self.mlx, self.all = form, form.startswith("4-bit"), {}
        self.quantization = {"group_size": GROUP, "bits": 4}

    def add(self, name, dtype, *shape):
        self.all[name] = (dtype, shape)

    def vector(self, name, *shape, dtype="BF16"):
        self.add(name, dtype, *shape)

    def convolution(self, name, channels, taps):
        self.add(name, "BF16", channels, *((taps, 1) if self.mlx else (1, taps)))

    def plain(self, module, *shape, bias=False):
        """A matrix of floats, whatever the format."""
        self.add(module + ".weight", "BF16", *shape)
        if bias:
            self.vector(module + ".bias", shape[-2])

    def matrix(self, module, *shape, bias=False, bits=4):
        """[..., rows, inputs]; `bits` where MLX's format has more than 4."""
        columns = shape[-1]
        if self.mlx and columns % GROUP == 0:
            self.add(module + ".weight", "U32", *shape[:-1], columns * bits // 32)
            for part in ("scales", "biases"):
                self.add(f"{module}.{part}", "BF16", *shape[:-1], columns // GROUP)
            if bits != 4:
                self.quantization[module] = {"group_size": GROUP, "bits": bits}
        elif self.form == "FP8":
            self.add(module + ".weight", "F8_E4M3", *shape)
            self.add(module + ".weight_scale_inv", "F32", *(-(-size // BLOCK) for size in shape))
        else:
            self.add(module + ".weight", "BF16", *shape)
        if bias:
            self.vector(module + ".bias", shape[-2])

    def router(self, module, experts, hidden):
        self.matrix(module, experts, hidden, bits=8)

    def gated(self, path, hidden, width, names=("gate_proj", "up_proj", "down_proj")):
        gate, up, down = names
        for name in (gate, up):
            self.matrix(f"{path}.{name}", width, hidden)
        self.matrix(f"{path}.{down}", hidden, width)

    def experts(self, path, count, hidden, width, names=("gate_proj", "up_proj", "down_proj")):
        """One by one, as published; MLX stacks them, under names of its own."""
        if self.mlx:
            for name in ("gate_proj", "up_proj"):
                self.matrix(f"{path}.switch_mlp.{name}", count, width, hidden)
            self.matrix(f"{path}.switch_mlp.down_proj", count, hidden, width)
            return
        for expert in range(count):
            self.gated(f"{path}.experts.{expert}", hidden, width, names)


def attention(t, c, path, bias=False, norms=None, doubled=False, out="o_proj"):
    """`norms`: of queries and keys, by "head" or over "all"; `doubled`: queries bring a gate."""
    hidden, heads, kv = c["hidden_size"], c["num_attention_heads"], c["num_key_value_heads"]
    dim = c.get("head_dim") or hidden // heads
    t.matrix(path + ".q_proj", heads * dim * (2 if doubled else 1), hidden, bias=bias)
    t.matrix(path + ".k_proj", kv * dim, hidden, bias=bias)
    t.matrix(path + ".v_proj", kv * dim, hidden, bias=bias)
    t.matrix(f"{path}.{out}", hidden, heads * dim)
    if norms:
        names = ("q_layernorm", "k_layernorm") if out == "out_proj" else ("q_norm", "k_norm")
        for name, count in zip(names, (heads, kv)):
            t.vector(f"{path}.{name}.weight", dim if norms == "head" else count * dim)


def latent_attention(t, c, path):
    hidden, heads = c["hidden_size"], c["num_attention_heads"]
    rope, value, rank = c["qk_rope_head_dim"], c["v_head_dim"], c["kv_lora_rank"]
    query = heads * (c["qk_nope_head_dim"] + rope)
    t.matrix(path + ".q_a_proj", c["q_lora_rank"], hidden)
    t.vector(path + ".q_a_layernorm.weight", c["q_lora_rank"])
    t.matrix(path + ".q_b_proj", query, c["q_lora_rank"])
    t.matrix(path + ".kv_a_proj_with_mqa", rank + rope, hidden)
    t.vector(path + ".kv_a_layernorm.weight", rank)
    t.matrix(path + ".kv_b_proj", heads * (c["qk_nope_head_dim"] + value), rank)
    t.matrix(path + ".o_proj", hidden, heads * value)


def norms(t, c, layer, *names):
    for name in names:
        t.vector(f"{layer}.{name}.weight", c["hidden_size"])


def dense(t, c, layer, index):
    family = c["model_type"]
    fused = family == "phi3"
    two = ("input_layernorm", "post_attention_layernorm")
    names = {"gemma2": two + ("pre_feedforward_layernorm", "post_feedforward_layernorm"),
             "gemma3_text": two + ("pre_feedforward_layernorm", "post_feedforward_layernorm"),
             "olmo2": ("post_attention_layernorm", "post_feedforward_layernorm")}
    norms(t, c, layer, *names.get(family, two))
    if fused:
        dim = c["hidden_size"] // c["num_attention_heads"]
        rows = (c["num_attention_heads"] + 2 * c["num_key_value_heads"]) * dim
        t.matrix(layer + ".self_attn.qkv_proj", rows, c["hidden_size"])
        t.matrix(layer + ".self_attn.o_proj", c["hidden_size"], c["num_attention_heads"] * dim)
        t.matrix(layer + ".mlp.gate_up_proj", 2 * c["intermediate_size"], c["hidden_size"])
        t.matrix(layer + ".mlp.down_proj", c["hidden_size"], c["intermediate_size"])
        return
    kinds = {"qwen3": "head", "gemma3_text": "head", "olmo2": "all"}
    attention(t, c, layer + ".self_attn", bias=family == "qwen2", norms=kinds.get(family))
    t.gated(layer + ".mlp", c["hidden_size"], c["intermediate_size"])


def qwen3_moe(t, c, layer, index):
    norms(t, c, layer, "input_layernorm", "post_attention_layernorm")
    attention(t, c, layer + ".self_attn", norms="head")
    t.router(layer + ".mlp.gate", c["num_experts"], c["hidden_size"])
    t.experts(layer + ".mlp", c["num_experts"], c["hidden_size"], c["moe_intermediate_size"])


def qwen3_next(t, c, layer, index):
    norms(t, c, layer, "input_layernorm", "post_attention_layernorm")
    hidden, key_heads, value_heads = c["hidden_size"], c["linear_num_key_heads"], c["linear_num_value_heads"]
    keys, values = key_heads * c["linear_key_head_dim"], value_heads * c["linear_value_head_dim"]
    if (index + 1) % c["full_attention_interval"] == 0:
        attention(t, c, layer + ".self_attn", norms="head", doubled=True)
    else:
        path = layer + ".linear_attn"
        t.matrix(path + ".in_proj_qkvz", 2 * keys + 2 * values, hidden)
        t.matrix(path + ".in_proj_ba", 2 * value_heads, hidden)
        t.convolution(path + ".conv1d.weight", 2 * keys + values, c["linear_conv_kernel_dim"])
        t.vector(path + ".A_log", value_heads)
        t.vector(path + ".dt_bias", value_heads)
        t.vector(path + ".norm.weight", c["linear_value_head_dim"])
        t.matrix(path + ".out_proj", hidden, values)
    t.router(layer + ".mlp.gate", c["num_experts"], hidden)
    t.experts(layer + ".mlp", c["num_experts"], hidden, c["moe_intermediate_size"])
    t.gated(layer + ".mlp.shared_expert", hidden, c["shared_expert_intermediate_size"])
    t.router(layer + ".mlp.shared_expert_gate", 1, hidden)


def routed_by_sigmoid(t, c, layer, index):
    """The feed-forward part of DeepSeek V3 and GLM 4.5: a selection bias, shared experts, dense layers first."""
    hidden, experts, width = c["hidden_size"], c["n_routed_experts"], c["moe_intermediate_size"]
    if index < c["first_k_dense_replace"]:
        return t.gated(layer + ".mlp", hidden, c["intermediate_size"])
    t.plain(layer + ".mlp.gate", experts, hidden)
    t.vector(layer + ".mlp.gate.e_score_correction_bias", experts, dtype="F32")
    t.experts(layer + ".mlp", experts, hidden, width)
    t.gated(layer + ".mlp.shared_experts", hidden, c["n_shared_experts"] * width)


def glm4_moe(t, c, layer, index):
    norms(t, c, layer, "input_layernorm", "post_attention_layernorm")
    attention(t, c, layer + ".self_attn", bias=c["attention_bias"], norms="head" if c["use_qk_norm"] else None)
    routed_by_sigmoid(t, c, layer, index)


def deepseek_v3(t, c, layer, index):
    norms(t, c, layer, "input_layernorm", "post_attention_layernorm")
    latent_attention(t, c, layer + ".self_attn")
    routed_by_sigmoid(t, c, layer, index)


def gpt_oss(t, c, layer, index):
    norms(t, c, layer, "input_layernorm", "post_attention_layernorm")
    hidden, heads, dim = c["hidden_size"], c["num_attention_heads"], c["head_dim"]
    for name, rows, columns in (("q", heads * dim, hidden), ("k", c["num_key_value_heads"] * dim, hidden),
                                ("v", c["num_key_value_heads"] * dim, hidden), ("o", hidden, heads * dim)):
        t.plain(f"{layer}.self_attn.{name}_proj", rows, columns, bias=True)
    t.vector(layer + ".self_attn.sinks", heads)
    t.plain(layer + ".mlp.router", c["num_local_experts"], hidden, bias=True)
    width = c["intermediate_size"]
    for name, rows, columns in (("gate_up", 2 * width, hidden), ("down", hidden, width)):
        path, count = f"{layer}.mlp.experts.{name}_proj", c["num_local_experts"]
        t.add(path + "_blocks", "U8", count, rows, columns // 32, 16)
        t.add(path + "_scales", "U8", count, rows, columns // 32)
        t.vector(path + "_bias", count, rows)


def lfm2(t, c, layer, index):
    norms(t, c, layer, "operator_norm", "ffn_norm")
    hidden = c["hidden_size"]
    attends = index in c["full_attn_idxs"] if "full_attn_idxs" in c else c["layer_types"][index] == "full_attention"
    if attends:
        attention(t, c, layer + ".self_attn", norms="head", out="out_proj")
    else:
        t.matrix(layer + ".conv.in_proj", 3 * hidden, hidden)
        t.convolution(layer + ".conv.conv.weight", hidden, c["conv_L_cache"])
        t.matrix(layer + ".conv.out_proj", hidden, hidden)
    path = layer + ".feed_forward"
    if c["model_type"] == "lfm2":  # Two thirds of the width that it says, in whole multiples.
        unit, width = c["block_multiple_of"], 2 * c["block_ff_dim"] // 3
        return t.gated(path, hidden, -(-width // unit) * unit, ("w1", "w3", "w2"))
    if index < c["num_dense_layers"]:
        names = ("gate_proj", "up_proj", "down_proj") if t.mlx else ("w1", "w3", "w2")
        return t.gated(path, hidden, c["intermediate_size"], names)
    t.router(path + ".gate", c["num_experts"], hidden)
    t.vector(path + ".expert_bias", c["num_experts"], dtype="F32")
    t.experts(path, c["num_experts"], hidden, c["moe_intermediate_size"], ("w1", "w3", "w2"))


def granitemoehybrid(t, c, layer, index):
    norms(t, c, layer, "input_layernorm", "post_attention_layernorm")
    hidden, experts, width = c["hidden_size"], c["num_local_experts"], c["intermediate_size"]
    if c["layer_types"][index] == "attention":
        attention(t, c, layer + ".self_attn")
    else:
        heads, inner = c["mamba_n_heads"], c["mamba_n_heads"] * c["mamba_d_head"]
        groups = 2 * c["mamba_n_groups"] * c["mamba_d_state"]
        t.matrix(layer + ".mamba.in_proj", 2 * inner + groups + heads, hidden)
        t.convolution(layer + ".mamba.conv1d.weight", inner + groups, c["mamba_d_conv"])
        t.vector(layer + ".mamba.conv1d.bias", inner + groups)
        for name in ("A_log", "D", "dt_bias"):
            t.vector(f"{layer}.mamba.{name}", heads)
        t.vector(layer + ".mamba.norm.weight", inner)
        t.matrix(layer + ".mamba.out_proj", hidden, inner)
    t.router(layer + ".block_sparse_moe.router.layer", experts, hidden)
    if t.mlx:
        t.experts(layer + ".block_sparse_moe", experts, hidden, width)
    else:
        t.plain(layer + ".block_sparse_moe.input_linear", experts, 2 * width, hidden)
        t.plain(layer + ".block_sparse_moe.output_linear", experts, hidden, width)
    t.matrix(layer + ".shared_mlp.input_linear", 2 * c["shared_intermediate_size"], hidden)
    t.matrix(layer + ".shared_mlp.output_linear", hidden, c["shared_intermediate_size"])


LAYERS = {"deepseek_v3": deepseek_v3, "glm4_moe": glm4_moe, "gpt_oss": gpt_oss, "granitemoehybrid": granitemoehybrid,
          "lfm2": lfm2, "lfm2_moe": lfm2, "qwen3_moe": qwen3_moe, "qwen3_next": qwen3_next}
# Whose head is the embedding where config.json does not say it.
TIED = {"gemma2", "gemma3_text", "lfm2", "lfm2_moe", "smollm3"}


def tensors_of(config, form):
    """Tensors of a model: without those of layers that guess further tokens."""
    t = Tensors(form)
    vocab, hidden = config["vocab_size"], config["hidden_size"]
    family = config["model_type"]
    embed = t.plain if form in ("FP8", "MXFP4") else t.matrix
    embed("model.embed_tokens", vocab, hidden)
    for index in range(config["num_hidden_layers"]):
        LAYERS.get(family, dense)(t, config, f"model.layers.{index}", index)
    t.vector("model.embedding_norm.weight" if family.startswith("lfm2") else "model.norm.weight", hidden)
    if not config.get("tie_word_embeddings", family in TIED):
        embed("lm_head", vocab, hidden)
    return t


def config_of(config, form, tensors):
    """config.json as it is published with that format."""
    config = dict(config)
    if tensors.mlx:
        config["quantization"] = tensors.quantization
    elif form == "FP8":
        config["quantization_config"] = {"activation_scheme": "dynamic", "fmt": "e4m3", "quant_method": "fp8",
                                         "weight_block_size": [BLOCK, BLOCK]}
    elif form == "MXFP4":
        config["quantization_config"] = {"quant_method": "mxfp4"}
    return config


def bytes_of(dtype, shape):
    size = BYTES[dtype]
    for dimension in shape:
        size *= dimension
    return size


def write(folder, config, form):
    """A checkpoint whose weights are holes; the bytes of its tensors."""
    tensors = tensors_of(config, form)
    header, end = {}, 0
    for name, (dtype, shape) in tensors.all.items():
        size = bytes_of(dtype, shape)
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "config.json"), "w") as file:
        json.dump(config_of(config, form, tensors), file)
    with open(os.path.join(folder, "model.safetensors"), "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + end)
    return end
