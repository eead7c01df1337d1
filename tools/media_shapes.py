"""Models that see or hear in published shapes, for tools/make_model: towers in bf16 before texts that it writes."""
import json

import numpy


def bf16(out, name, *shape, deviation=0.02, mean=0.0):
    values = out.random.random(shape, numpy.float32)
    values -= 0.5
    values *= 12 ** 0.5 * deviation
    values += mean
    out.add(name, (values.view(numpy.uint32) >> 16).astype(numpy.uint16))


def linear(out, name, rows, inputs, gain=1.0, bias=True):
    bf16(out, f"{name}.weight", rows, inputs, deviation=gain / inputs ** 0.5)
    if bias:
        bf16(out, f"{name}.bias", rows)


def norm(out, name, width):
    bf16(out, f"{name}.weight", width, mean=1.0)
    bf16(out, f"{name}.bias", width)


def siglip(out, root, width, wide, layers, patch, side):
    """A tower of side x side patches; deviations keep what its sublayers add at about a tenth of the rows."""
    bf16(out, f"{root}.embeddings.patch_embedding.weight", width, 3, patch, patch)
    bf16(out, f"{root}.embeddings.patch_embedding.bias", width)
    bf16(out, f"{root}.embeddings.position_embedding.weight", side * side, width)
    for i in range(layers):
        layer = f"{root}.encoder.layers.{i}"
        norm(out, f"{layer}.layer_norm1", width)
        norm(out, f"{layer}.layer_norm2", width)
        for name in ("q_proj", "k_proj", "v_proj"):
            linear(out, f"{layer}.self_attn.{name}", width, width)
        linear(out, f"{layer}.self_attn.out_proj", width, width, gain=0.1)
        linear(out, f"{layer}.mlp.fc1", wide, width)
        linear(out, f"{layer}.mlp.fc2", width, wide, gain=0.1)
    norm(out, f"{root}.post_layernorm", width)


class SmolVlm:
    """SmolVLM-256M: SigLIP-base (93 million weights) on tiles of 512, before SmolLM2-135M.

    Pictures become 1,024 pixels wide or high, half of the published size, so that measurements end: 3 to 5 tiles.
    """
    text = "model.text_model."
    marks = ["<fake_token_around_image>", "<global-img>", "<image>"] + [
        f"<row_{row}_col_{column}>" for row in range(1, 7) for column in range(1, 7)]
    processor = dict(image_processor_type="SmolVLMImageProcessor", do_convert_rgb=True, do_image_splitting=True,
                     do_normalize=True, do_pad=True, do_rescale=True, do_resize=True, resample=1,
                     rescale_factor=1 / 255, max_image_size=dict(longest_edge=512), size=dict(longest_edge=1024),
                     image_mean=[0.5] * 3, image_std=[0.5] * 3)

    @staticmethod
    def tower(out, hidden):
        siglip(out, "model.vision_model", 768, 3072, 12, 16, 32)
        bf16(out, "model.connector.modality_projection.proj.weight", hidden, 16 * 768, deviation=1 / (16 * 768) ** 0.5)

    @staticmethod
    def config(text, ids):
        return dict(architectures=["SmolVLMForConditionalGeneration"], model_type="smolvlm", scale_factor=4,
                    image_token_id=ids["<image>"], tie_word_embeddings=True, vocab_size=text["vocab_size"],
                    text_config=text,
                    vision_config=dict(model_type="smolvlm_vision", hidden_size=768, intermediate_size=3072,
                                       num_hidden_layers=12, num_attention_heads=12, patch_size=16, image_size=512,
                                       max_image_size=dict(longest_edge=512), size=dict(longest_edge=1024)))


class Gemma3:
    """SigLIP's 400 million weights at 896 x 896, as Gemma 3 has them, before a text of SmolLM2-135M's size."""
    text = "language_model.model."
    marks = ["<start_of_image>", "<end_of_image>", "<image_soft_token>"]
    processor = dict(image_processor_type="Gemma3ImageProcessor", do_convert_rgb=None, do_normalize=True,
                     do_pan_and_scan=None, do_rescale=True, do_resize=True, resample=2, rescale_factor=1 / 255,
                     size=dict(height=896, width=896), image_mean=[0.5] * 3, image_std=[0.5] * 3)

    @staticmethod
    def tower(out, hidden):
        siglip(out, "vision_tower.vision_model", 1152, 4304, 27, 14, 64)
        bf16(out, "multi_modal_projector.mm_input_projection_weight", 1152, hidden, deviation=1 / 1152 ** 0.5)
        bf16(out, "multi_modal_projector.mm_soft_emb_norm.weight", 1152)

    @staticmethod
    def config(text, ids):
        return dict(architectures=["Gemma3ForConditionalGeneration"], model_type="gemma3", mm_tokens_per_image=256,
                    boi_token_index=ids["<start_of_image>"], eoi_token_index=ids["<end_of_image>"],
                    image_token_index=ids["<image_soft_token>"], text_config=text,
                    vision_config=dict(model_type="siglip_vision_model", hidden_size=1152, intermediate_size=4304,
                                       num_hidden_layers=27, num_attention_heads=16, patch_size=14, image_size=896,
                                       vision_use_head=False))


class Qwen2Audio:
    """Whisper-large's encoder (635 million weights), as Qwen2-Audio has it, before a text of SmolLM2-135M's size."""
    text = "language_model.model."
    marks = ["<|audio_bos|>", "<|audio_eos|>", "<|AUDIO|>"]
    processor = dict(feature_extractor_type="WhisperFeatureExtractor", processor_class="Qwen2AudioProcessor",
                     chunk_length=30, feature_size=128, hop_length=160, n_fft=400, n_samples=480000,
                     nb_max_frames=3000, padding_side="right", padding_value=0.0, return_attention_mask=True,
                     sampling_rate=16000)
    width, wide, layers, bands, rows = 1280, 5120, 32, 128, 1500

    @classmethod
    def tower(cls, out, hidden):
        width, root = cls.width, "audio_tower"
        for i, inputs in enumerate((cls.bands, width)):
            bf16(out, f"{root}.conv{i + 1}.weight", width, inputs, 3, deviation=1 / (3 * inputs) ** 0.5)
            bf16(out, f"{root}.conv{i + 1}.bias", width)
        bf16(out, f"{root}.embed_positions.weight", cls.rows, width)
        for i in range(cls.layers):
            layer = f"{root}.layers.{i}"
            norm(out, f"{layer}.self_attn_layer_norm", width)
            norm(out, f"{layer}.final_layer_norm", width)
            for name in ("q_proj", "k_proj", "v_proj"):
                linear(out, f"{layer}.self_attn.{name}", width, width, bias=name != "k_proj")
            linear(out, f"{layer}.self_attn.out_proj", width, width, gain=0.1)
            linear(out, f"{layer}.fc1", cls.wide, width)
            linear(out, f"{layer}.fc2", width, cls.wide, gain=0.1)
        norm(out, f"{root}.layer_norm", width)
        linear(out, "multi_modal_projector.linear", hidden, width)

    @classmethod
    def config(cls, text, ids):
        return dict(architectures=["Qwen2AudioForConditionalGeneration"], model_type="qwen2_audio",
                    audio_token_index=ids["<|AUDIO|>"], text_config=text, vocab_size=text["vocab_size"],
                    audio_config=dict(model_type="qwen2_audio_encoder", d_model=cls.width, encoder_layers=cls.layers,
                                      num_hidden_layers=cls.layers, encoder_attention_heads=20,
                                      encoder_ffn_dim=cls.wide, num_mel_bins=cls.bands,
                                      max_source_positions=cls.rows, activation_function="gelu",
                                      scale_embedding=False))


def add_marks(folder, marks, first):
    """Adds special tokens to the folder's tokenizer.json; their ids by text."""
    path = f"{folder}/tokenizer.json"
    with open(path) as file:
        tokenizer = json.load(file)
    ids = {text: first + i for i, text in enumerate(marks)}
    for text, number in ids.items():
        tokenizer["added_tokens"].append(dict(id=number, content=text, single_word=False, lstrip=False, rstrip=False,
                                              normalized=False, special=True))
    with open(path, "w") as file:
        json.dump(tokenizer, file)
    return ids
