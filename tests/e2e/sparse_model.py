"""Checkpoints in the shapes of well-known models whose weights are holes in a file: they read as zeros and take no
disk. `python3 sparse_model.py NAME FOLDER` writes one; what a server needs beside it (tokenizer.json, ...) comes from a
real model. Standard library only."""
import json, os, struct, sys

QUANTIZATION = {"group_size": 64, "bits": 4}

MODELS = {
    "llama-3.1-8b-4bit": {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336,
        "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
        "vocab_size": 128256, "max_position_embeddings": 131072, "rms_norm_eps": 1e-5, "rope_theta": 500000.0,
        "rope_scaling": {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                         "original_max_position_embeddings": 8192, "rope_type": "llama3"},
        "hidden_act": "silu", "attention_bias": False, "mlp_bias": False, "tie_word_embeddings": False,
        "quantization": QUANTIZATION},
    "qwen3-8b-4bit": {
        "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "hidden_size": 4096, "intermediate_size": 12288,
        "num_hidden_layers": 36, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
        "vocab_size": 151936, "max_position_embeddings": 40960, "rms_norm_eps": 1e-6, "rope_theta": 1000000,
        "rope_scaling": None, "hidden_act": "silu", "attention_bias": False, "tie_word_embeddings": False,
        "use_sliding_window": False, "sliding_window": None, "max_window_layers": 36, "quantization": QUANTIZATION},
    "deepseek-r1-distill-qwen-1.5b": {
        "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "hidden_size": 1536, "intermediate_size": 8960,
        "num_hidden_layers": 28, "num_attention_heads": 12, "num_key_value_heads": 2, "vocab_size": 151936,
        "max_position_embeddings": 131072, "rms_norm_eps": 1e-6, "rope_theta": 10000, "hidden_act": "silu",
        "use_sliding_window": False, "sliding_window": 4096, "max_window_layers": 21, "tie_word_embeddings": False,
        "attention_dropout": 0.0, "bos_token_id": 151643, "eos_token_id": 151643, "initializer_range": 0.02,
        "torch_dtype": "bfloat16", "transformers_version": "4.44.0", "use_cache": True, "use_mrope": False},
}


def shapes(config):
    """(name, rows, columns) of every matrix, and (name, length) of every vector."""
    hidden, heads = config["hidden_size"], config["num_attention_heads"]
    head = config.get("head_dim", hidden // heads)
    kv = config["num_key_value_heads"] * head
    matrices = [("model.embed_tokens", config["vocab_size"], hidden), ("lm_head", config["vocab_size"], hidden)]
    vectors = [("model.norm.weight", hidden)]
    for i in range(config["num_hidden_layers"]):
        layer = f"model.layers.{i}."
        for name, rows, columns in (
                ("self_attn.q_proj", heads * head, hidden), ("self_attn.k_proj", kv, hidden),
                ("self_attn.v_proj", kv, hidden),
                ("self_attn.o_proj", hidden, heads * head), ("mlp.gate_proj", config["intermediate_size"], hidden),
                ("mlp.up_proj", config["intermediate_size"], hidden),
                ("mlp.down_proj", hidden, config["intermediate_size"])):
            matrices.append((layer + name, rows, columns))
        vectors += [(layer + "input_layernorm.weight", hidden), (layer + "post_attention_layernorm.weight", hidden)]
        if config["model_type"] == "qwen3":
            vectors += [(layer + "self_attn.q_norm.weight", head), (layer + "self_attn.k_norm.weight", head)]
        if config["model_type"] == "qwen2":
            vectors += [(layer + "self_attn.q_proj.bias", heads * head), (layer + "self_attn.k_proj.bias", kv),
                        (layer + "self_attn.v_proj.bias", kv)]
    return matrices, vectors


def write(name, folder):
    config = MODELS[name]
    matrices, vectors = shapes(config)
    tensors = [(vector, "BF16", [length], 2 * length) for vector, length in vectors]
    for matrix, rows, columns in matrices:
        if "quantization" not in config:
            tensors.append((matrix + ".weight", "BF16", [rows, columns], 2 * rows * columns))
            continue
        groups = columns // config["quantization"]["group_size"]
        tensors.append((matrix + ".weight", "U32", [rows, columns // 8], rows * columns // 2))
        tensors += [(f"{matrix}.{part}", "BF16", [rows, groups], 2 * rows * groups) for part in ("scales", "biases")]
    header, end = {}, 0
    for tensor, dtype, shape, size in tensors:
        header[tensor] = {"dtype": dtype, "shape": shape, "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "config.json"), "w") as file:
        json.dump(config, file)
    with open(os.path.join(folder, "model.safetensors"), "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + end)


if __name__ == "__main__":
    write(sys.argv[1], sys.argv[2])
