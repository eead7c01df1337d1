#!/usr/bin/env python3
"""Tiny checkpoints with modules that predict further tokens (MTP), with random weights, and what such
a module computes: numpy, float64, written after the papers and independent of src/.

    tests/data/drafts/make_mtp.py [FOLDER]

writes FOLDER/mtp_FAMILY/{config.json,model.safetensors,expected.json}. A row of slot j has token j and
the model's last hidden state, behind its final norm, of position j - 1; slots begin with 1. A chained
draft's row has the module's own hidden state, behind its own norm."""

import json
import os
import struct
import sys

import numpy as np

HIDDEN, VOCAB, HEADS, KV_HEADS, HEAD_DIM = 16, 40, 2, 1, 16
INNER, EXPERT_INNER, EXPERTS, TOP_K = 24, 16, 4, 2
Q_RANK, KV_RANK, NOPE, ROPE, V_DIM = 16, 12, 8, 8, 12
DRAFTS, PROMPT, CASES, MARGIN = 4, 40, 4, 0.02
BASE = {"vocab_size": VOCAB, "hidden_size": HIDDEN, "intermediate_size": INNER, "num_hidden_layers": 2,
        "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS, "max_position_embeddings": 256,
        "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "tie_word_embeddings": False, "hidden_act": "silu"}
BIASED = {"moe_intermediate_size": EXPERT_INNER, "n_routed_experts": EXPERTS, "n_shared_experts": 1,
          "num_experts_per_tok": TOP_K, "norm_topk_prob": True, "routed_scaling_factor": 1.5,
          "n_group": 1, "topk_group": 1, "first_k_dense_replace": 1, "num_nextn_predict_layers": 1}
QWEN = {"head_dim": HEAD_DIM, "full_attention_interval": 1, "partial_rotary_factor": 0.25}
FAMILIES = {
    "deepseek": BASE | BIASED | {
        "architectures": ["DeepseekV3ForCausalLM"], "q_lora_rank": Q_RANK, "kv_lora_rank": KV_RANK,
        "qk_nope_head_dim": NOPE, "qk_rope_head_dim": ROPE, "v_head_dim": V_DIM},
    "glm": BASE | BIASED | {
        "architectures": ["Glm4MoeForCausalLM"], "head_dim": HEAD_DIM, "attention_bias": True,
        "use_qk_norm": True, "partial_rotary_factor": 0.5},
    "mimo": BASE | {"architectures": ["MiMoForCausalLM"], "head_dim": HEAD_DIM,
                    "num_nextn_predict_layers": 1},
    "qwen3_5": BASE | QWEN | {"architectures": ["Qwen3_5ForCausalLM"], "mtp_num_hidden_layers": 1},
    "qwen3_next": BASE | QWEN | {
        "architectures": ["Qwen3NextForCausalLM"], "moe_intermediate_size": EXPERT_INNER,
        "shared_expert_intermediate_size": EXPERT_INNER, "num_experts": EXPERTS,
        "num_experts_per_tok": TOP_K, "norm_topk_prob": True},
}
# What the file stores of the module's norms is the sum that they mean, though the model's is not.
SUMS_IN_MODULE = {"qwen3_next"}


def silu(x):
    return x / (1 + np.exp(-x))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def turn(x, positions, dim, theta, pairs):
    """Rotary embedding of the first `dim` numbers of [rows, heads, width]: neighbours, or halves."""
    angle = positions[:, None] * theta ** (-np.arange(0, dim, 2) / dim)[None, :]
    cos, sin = np.cos(angle)[:, None, :], np.sin(angle)[:, None, :]
    out = x.copy()
    a, b = (x[..., 0:dim:2], x[..., 1:dim:2]) if pairs else (x[..., :dim // 2], x[..., dim // 2:dim])
    first, second = a * cos - b * sin, a * sin + b * cos
    if pairs:
        out[..., 0:dim:2], out[..., 1:dim:2] = first, second
    else:
        out[..., :dim // 2], out[..., dim // 2:dim] = first, second
    return out


def attend(q, k, v, scale):
    """Causal, [rows, heads, width] each; query heads share those of keys."""
    k, v = (np.repeat(x, q.shape[1] // x.shape[1], axis=1) for x in (k, v))
    scores = np.einsum("qhd,khd->hqk", q, k) * scale
    scores[:, np.triu(np.ones(scores.shape[1:], bool), 1)] = -np.inf
    return np.einsum("hqk,khd->qhd", softmax(scores), v)


class Model:
    """A family's layers over the tensors of a checkpoint, which are drawn as they are asked for."""

    def __init__(self, family, seed):
        self.family, self.config = family, FAMILIES[family]
        self.random = np.random.default_rng(seed)
        self.tensors = {}
        self.offset = 1.0 if family.startswith("qwen") else 0.0

    def tensor(self, name, *shape, spread=None):
        if name not in self.tensors:
            spread = 1.2 / np.sqrt(shape[-1]) if spread is None else spread
            self.tensors[name] = (self.random.standard_normal(shape) * spread).astype(np.float16)
        return self.tensors[name].astype(np.float64)

    def linear(self, x, name, out, bias=False):
        y = x @ self.tensor(name + ".weight", out, x.shape[-1]).T
        return y + self.tensor(name + ".bias", out, spread=0.1) if bias else y

    def norm(self, x, name):
        """Of the last dimension; weights are about 1, stored as such or less 1."""
        if name + ".weight" not in self.tensors:
            sums = self.offset == 0 or (self.family in SUMS_IN_MODULE and name.startswith("mtp."))
            w = self.random.standard_normal(x.shape[-1]) * 0.15 + (1 if sums else 0)
            self.tensors[name + ".weight"] = w.astype(np.float16)
            self.sums = getattr(self, "sums", set()) | ({name} if sums else set())
        w = self.tensors[name + ".weight"].astype(np.float64) + (0 if name in self.sums else 1)
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + self.config["rms_norm_eps"]) * w

    def latent_attention(self, x, at, positions):
        theta, rows = self.config["rope_theta"], len(x)
        q = self.norm(self.linear(x, at + "q_a_proj", Q_RANK), at + "q_a_layernorm")
        q = self.linear(q, at + "q_b_proj", HEADS * (NOPE + ROPE)).reshape(rows, HEADS, -1)
        a = self.linear(x, at + "kv_a_proj_with_mqa", KV_RANK + ROPE)
        kv = self.linear(self.norm(a[:, :KV_RANK], at + "kv_a_layernorm"), at + "kv_b_proj",
                         HEADS * (NOPE + V_DIM)).reshape(rows, HEADS, -1)
        turned = turn(a[:, None, KV_RANK:], positions, ROPE, theta, pairs=True)
        k = np.concatenate([kv[..., :NOPE], np.repeat(turned, HEADS, axis=1)], -1)
        q = np.concatenate([q[..., :NOPE], turn(q[..., NOPE:], positions, ROPE, theta, pairs=True)], -1)
        out = attend(q, k, kv[..., NOPE:], (NOPE + ROPE) ** -0.5)
        return self.linear(out.reshape(rows, -1), at + "o_proj", HIDDEN)

    def grouped_attention(self, x, at, positions):
        rows, gated = len(x), self.family.startswith("qwen")
        bias = self.config.get("attention_bias", self.family == "mimo")
        q = self.linear(x, at + "q_proj", HEADS * HEAD_DIM * (2 if gated else 1), bias)
        q = q.reshape(rows, HEADS, -1)
        k = self.linear(x, at + "k_proj", KV_HEADS * HEAD_DIM, bias).reshape(rows, KV_HEADS, -1)
        v = self.linear(x, at + "v_proj", KV_HEADS * HEAD_DIM, bias).reshape(rows, KV_HEADS, -1)
        gate, q = q[..., HEAD_DIM:], q[..., :HEAD_DIM]
        if gated or self.config.get("use_qk_norm"):
            q, k = self.norm(q, at + "q_norm"), self.norm(k, at + "k_norm")
        dim = int(HEAD_DIM * self.config.get("partial_rotary_factor", 1))
        q, k = (turn(h, positions, dim, self.config["rope_theta"], pairs=False) for h in (q, k))
        out = attend(q, k, v, HEAD_DIM ** -0.5)
        if gated:
            out = out * sigmoid(gate)
        return self.linear(out.reshape(rows, -1), at + "o_proj", HIDDEN)

    def dense(self, x, at, inner):
        hidden = silu(self.linear(x, at + "gate_proj", inner)) * self.linear(x, at + "up_proj", inner)
        return self.linear(hidden, at + "down_proj", HIDDEN)

    def experts(self, x, at):
        logits = self.linear(x, at + "gate", EXPERTS)
        if self.family == "qwen3_next":
            keys = scores = softmax(logits)
            shared = sigmoid(self.linear(x, at + "shared_expert_gate", 1)) * self.dense(
                x, at + "shared_expert.", EXPERT_INNER)
            scale = 1
        else:
            scores = sigmoid(logits)
            keys = scores + self.tensor(at + "gate.e_score_correction_bias", EXPERTS, spread=0.1)
            shared = self.dense(x, at + "shared_experts.", EXPERT_INNER)
            scale = self.config["routed_scaling_factor"]
        every = np.stack([self.dense(x, f"{at}experts.{e}.", EXPERT_INNER) for e in range(EXPERTS)], 1)
        out = shared
        for row in range(len(x)):
            chosen = np.argsort(-keys[row], kind="stable")[:TOP_K]
            weight = scores[row, chosen] / scores[row, chosen].sum() * scale
            out[row] += weight @ every[row, chosen]
        return out

    def layer(self, x, at, positions, sparse):
        mixer = self.latent_attention if self.family == "deepseek" else self.grouped_attention
        x = x + mixer(self.norm(x, at + "input_layernorm"), at + "self_attn.", positions)
        h = self.norm(x, at + "post_attention_layernorm")
        return x + (self.experts(h, at + "mlp.") if sparse else self.dense(h, at + "mlp.", INNER))

    def embed(self, tokens):
        return self.tensor("model.embed_tokens.weight", VOCAB, HIDDEN, spread=1)[tokens]

    def hidden(self, tokens):
        """Behind the final norm."""
        x, positions = self.embed(tokens), np.arange(len(tokens))
        for i in range(2):
            x = self.layer(x, f"model.layers.{i}.", positions, self.sparse(i))
        return self.norm(x, "model.norm")

    def sparse(self, layer):
        return self.family == "qwen3_next" or (self.family in ("deepseek", "glm") and layer >= 1)

    def head(self, h):
        return self.linear(h, "lm_head", VOCAB)

    def module(self, tokens, features):
        """Hidden states behind the module's norm, of slots 1 to the last token's."""
        x = self.embed(tokens[1:])
        at, token_norm, hidden_norm, projection, final, layer = {
            "deepseek": ("model.layers.2.", "enorm", "hnorm", "eh_proj", "shared_head.norm", ""),
            "glm": ("model.layers.2.", "enorm", "hnorm", "eh_proj", "shared_head.norm", ""),
            "mimo": ("model.mtp_layers.0.", "token_layernorm", "hidden_layernorm", "input_proj",
                     "final_layernorm", ""),
        }.get(self.family, ("mtp.", "pre_fc_norm_embedding", "pre_fc_norm_hidden", "fc", "norm",
                            "layers.0."))
        pair = [self.norm(x, at + token_norm), self.norm(np.stack(features), at + hidden_norm)]
        if self.family == "mimo":
            pair.reverse()
        u = self.linear(np.concatenate(pair, -1), at + projection, HIDDEN)
        u = self.layer(u, at + layer, np.arange(1, len(tokens)), self.sparse(2))
        return self.norm(u, at + final)

    def draft(self, tokens):
        """The token that the model gives, the drafts behind it, their features, the least margin."""
        hidden = self.hidden(np.array(tokens))
        features, text, drafts, chained, margins = list(hidden), list(tokens), [], [], []

        def best(h):
            logits = self.head(h)
            order = np.argsort(-logits)
            margins.append(logits[order[0]] - logits[order[1]])
            return int(order[0])

        text.append(best(hidden[-1]))
        for _ in range(DRAFTS):
            out = self.module(np.array(text), features)[-1]
            features.append(out)
            chained.append(out)
            drafts.append(best(out))
            text.append(drafts[-1])
        return {"tokens": tokens, "next": text[len(tokens)], "drafts": drafts,
                "feature": hidden[-1].tolist(), "chained": [c.tolist() for c in chained]}, min(margins)


def write_safetensors(path, tensors):
    header, data = {}, b""
    for name in sorted(tensors):
        raw = np.ascontiguousarray(tensors[name]).tobytes()
        header[name] = {"dtype": "F16", "shape": list(tensors[name].shape),
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def rounded(value):
    if isinstance(value, float):
        return float(f"{value:.7g}")
    return [rounded(v) for v in value] if isinstance(value, list) else value


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
    for seed, family in enumerate(FAMILIES):
        model = Model(family, seed)
        random, cases = np.random.default_rng(100 + seed), []
        while len(cases) < CASES:
            case, margin = model.draft(random.integers(0, VOCAB, PROMPT).tolist())
            if margin > MARGIN:
                cases.append({key: rounded(value) for key, value in case.items()})
        folder = os.path.join(root, "mtp_" + family)
        os.makedirs(folder, exist_ok=True)
        write_safetensors(os.path.join(folder, "model.safetensors"), model.tensors)
        for name, value in (("config.json", model.config), ("expected.json", {"cases": cases})):
            with open(os.path.join(folder, name), "w") as file:
                file.write(json.dumps(value) + "\n")


if __name__ == "__main__":
    main()
