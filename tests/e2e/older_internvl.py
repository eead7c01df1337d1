"""InternVL's fixture in the older layout, for tests: its config and tensors under the names that the models were first
published with, as OpenGVLab has them or as MLX's converter leaves them; and weights of 8 bits in MLX's groups."""
import json, os, shutil, struct

GROUP = 32

# Within a block, and at the top: what transformers calls it, and the older layout.
BLOCK = {"layernorm_before": "norm1", "layernorm_after": "norm2", "attention.projection_layer": "attn.proj",
         "mlp.fc1": "mlp.fc1", "mlp.fc2": "mlp.fc2", "lambda_1": "ls1", "lambda_2": "ls2"}
TOP = {"vision_tower.embeddings.cls_token": "vision_model.embeddings.class_embedding",
       "vision_tower.embeddings.patch_embeddings.projection": "vision_model.embeddings.patch_embedding",
       "vision_tower.embeddings.position_embeddings": "vision_model.embeddings.position_embedding",
       "multi_modal_projector.layer_norm": "mlp1.0", "multi_modal_projector.linear_1": "mlp1.1",
       "multi_modal_projector.linear_2": "mlp1.3"}
# What lies beside the model as OpenGVLab publishes it: CLIP's settings, whose sizes do not count.
CLIP = {"crop_size": 56, "do_center_crop": True, "do_normalize": True, "do_resize": True,
        "feature_extractor_type": "CLIPFeatureExtractor", "image_mean": [0.485, 0.456, 0.406],
        "image_std": [0.229, 0.224, 0.225], "resample": 3, "size": 56}


def read(path):
    """Tensors by name: (type, shape, bytes)."""
    with open(path, "rb") as file:
        size = struct.unpack("<Q", file.read(8))[0]
        header, data = json.loads(file.read(size)), file.read()
    return {name: (entry["dtype"], entry["shape"], data[slice(*entry["data_offsets"])])
            for name, entry in header.items() if name != "__metadata__"}


def write(path, tensors):
    header, data = {}, b""
    for name, (kind, shape, content) in tensors.items():
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def joined(parts):
    """Tensors of the same kind as one, one below the other."""
    kind, shape, _ = parts[0]
    return kind, [sum(part[1][0] for part in parts), *shape[1:]], b"".join(part[2] for part in parts)


def colours_last(tensor):
    """A convolution's weight in MLX's order."""
    kind, (n, colours, height, width), data = tensor
    place = height * width

    def number(row, colour, at):
        begin = 2 * ((row * colours + colour) * place + at)
        return data[begin:begin + 2]
    return kind, [n, height, width, colours], b"".join(
        number(row, colour, at) for row in range(n) for at in range(place) for colour in range(colours))


def renamed(tensors, mlx=False):
    out, blocks = {}, {}
    for name, tensor in tensors.items():
        module, _, part = name.rpartition(".")
        if name.startswith("vision_tower.encoder.layer."):
            i, inner = name.removeprefix("vision_tower.encoder.layer.").split(".", 1)
            blocks.setdefault(int(i), {})[inner] = tensor
        elif name in TOP:
            out[TOP[name]] = tensor
        else:
            out[f"{TOP.get(module, module)}.{part}"] = tensor
    for i, block in blocks.items():
        layer = f"vision_model.encoder.layers.{i}."
        for inner, tensor in block.items():
            module, _, part = inner.rpartition(".")
            if inner in BLOCK:
                out[layer + BLOCK[inner]] = tensor
            elif module in BLOCK:
                out[f"{layer}{BLOCK[module]}.{part}"] = tensor
            elif module == "attention.q_proj":
                out[f"{layer}attn.qkv.{part}"] = joined([block[f"attention.{each}_proj.{part}"] for each in "qkv"])
            else:
                assert module in ("attention.k_proj", "attention.v_proj"), inner
    if mlx:
        weight = "vision_model.embeddings.patch_embedding.weight"
        out[weight] = colours_last(out[weight])
    return out


def bf16(number):
    """Cut off rather than rounded, which any numbers here may be."""
    return struct.pack("<f", number)[2:]


def quantised(tensors):
    """Matrices of whole groups as codes of 8 bits, with a scale and a bias for each group."""
    out = {}
    for name, (kind, shape, data) in tensors.items():
        if len(shape) != 2 or shape[1] % GROUP or not name.endswith(".weight"):
            out[name] = kind, shape, data
            continue
        numbers = [struct.unpack("<f", b"\0\0" + data[at:at + 2])[0] for at in range(0, len(data), 2)]
        codes, scales, biases = bytearray(), b"", b""
        for at in range(0, len(numbers), GROUP):
            group = numbers[at:at + GROUP]
            least, step = min(group), max((max(group) - min(group)) / 255, 1e-6)
            codes += bytes(min(255, round((number - least) / step)) for number in group)
            scales += bf16(step)
            biases += bf16(least)
        n, k = shape
        module = name.removesuffix("weight")
        out[name] = "U32", [n, k // 4], bytes(codes)
        out[f"{module}scales"] = "BF16", [n, k // GROUP], scales
        out[f"{module}biases"] = "BF16", [n, k // GROUP], biases
    return out


def config_of(config, mlx=False, text=None):
    """`config`: of the layout of transformers. `text`: another model of text than its own."""
    vision = config["vision_config"]
    older = {"architectures": ["InternVLChatModel"], "model_type": "internvl_chat", "downsample_ratio": 0.5,
             "dynamic_image_size": True, "force_image_size": 56, "image_fold": None, "max_dynamic_patch": 4,
             "min_dynamic_patch": 1, "pad2square": False, "ps_version": "v2", "select_layer": -1,
             "template": "internvl2_5", "use_backbone_lora": 0, "use_llm_lora": 0, "use_thumbnail": True,
             # The fixture has no head of its own, whatever its text_config says: there that does not count.
             "text_config" if mlx else "llm_config": text or config["text_config"] | {"tie_word_embeddings": True}}
    older["vision_config"] = {
        key: vision[key] for key in ("hidden_size", "intermediate_size", "num_attention_heads", "num_hidden_layers",
                                     "hidden_act", "layer_norm_eps", "norm_type", "num_channels")}
    older["vision_config"].update({
        "architectures": ["InternVisionModel"], "model_type": "intern_vit_6b", "image_size": 56, "patch_size": 14,
        "qkv_bias": vision["attention_bias"], "qk_normalization": vision["use_qk_norm"], "drop_path_rate": 0.1,
        "initializer_factor": 0.1, "use_flash_attn": True})
    if "quantization" in config:
        older["quantization"] = config["quantization"]
    return older


def change(folder, config, tensors):
    with open(f"{folder}/config.json", "w") as file:
        json.dump(config, file)
    write(f"{folder}/model.safetensors", tensors)


def quantise(folder):
    """The model in `folder` with weights of 8 bits."""
    with open(f"{folder}/config.json") as file:
        config = json.load(file)
    config["quantization"] = {"group_size": GROUP, "bits": 8}
    change(folder, config, quantised(read(f"{folder}/model.safetensors")))


def make_older(folder, mlx=False, **more):
    """The model in `folder`, of the layout of transformers, becomes one of the older layout. `more`: further keys of
    config.json."""
    with open(f"{folder}/config.json") as file:
        config = json.load(file)
    change(folder, config_of(config, mlx) | more, renamed(read(f"{folder}/model.safetensors"), mlx))
    os.remove(f"{folder}/preprocessor_config.json")
    if not mlx:
        with open(f"{folder}/preprocessor_config.json", "w") as file:
            json.dump(CLIP, file)


def with_text(seeing, text, folder):
    """The fixture `text`, which sees nothing, as the text beside the tower of `seeing`, another one."""
    shutil.copytree(text, folder)
    with open(f"{seeing}/config.json") as file:
        config = json.load(file)
    with open(f"{text}/config.json") as file:
        own = json.load(file)
    tower = {name: tensor for name, tensor in read(f"{seeing}/model.safetensors").items()
             if not name.startswith("language_model.")}
    words = {f"language_model.{name}": tensor for name, tensor in read(f"{text}/model.safetensors").items()}
    change(folder, config_of(config, text=own), renamed(tower) | words)
