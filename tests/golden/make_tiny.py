#!/usr/bin/env python3
"""Makes tiny.jsonl in this folder: tiny random models of every architecture, and what transformers computes for them.

A row holds everything that a test needs to build the model and nothing that takes room: the metadata of its GGUF file,
the tensors by name and shape, whose values both sides draw from one hash of name and index, token ids, and their
negative log-probabilities and last logits. Tensors are named, laid out and permuted as llama.cpp's converter does it.
Needs torch and transformers (made with 5.24), run on the CPU in float64 where the models do not insist on float32; with
--gguf DIR also the package gguf, which then writes every model as a file for other engines.

example: make_tiny.py --out tiny.jsonl
         make_tiny.py --out /tmp/tiny.jsonl --gguf /tmp/tiny
"""
import argparse
import json
import math
import pathlib

import numpy as np
import torch
import transformers

WIDTH, FFN, LAYERS, HEADS, KV_HEADS, VOCAB = 64, 96, 3, 4, 2, 256
MASK = (1 << 64) - 1


def noise(name, count):
    """Uniform in [-1, 1), multiples of 2^-23: splitmix64 of the FNV-1a hash of the name plus the index."""
    seed = 0xCBF29CE484222325
    for byte in name.encode():
        seed = (seed ^ byte) * 0x100000001B3 & MASK
    with np.errstate(over="ignore"):
        x = np.uint64(seed) + (np.arange(count, dtype=np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x ^= x >> np.uint64(31)
    return (x >> np.uint64(40)).astype(np.float64) / 2**23 - 1


class Tensors:
    """The tensors of one file: `specs` for the row, float32 values by name."""

    def __init__(self):
        self.specs, self.values = [], {}

    def add(self, name, rows, cols, mean, spread):
        spread = round(spread, 6)
        self.specs.append([name, rows, cols, mean, spread])
        values = (mean + spread * noise(name, rows * cols)).astype(np.float32)
        self.values[name] = values.reshape(rows, cols) if rows > 1 else values

    def matrix(self, name, rows, cols, gain=1.5):
        self.add(name, rows, cols, 0, gain * math.sqrt(3 / cols))

    def given(self, name, values):
        """A vector that the row lists in full."""
        self.values[name] = np.array(values, dtype=np.float32)
        self.specs.append([name, [float(x) for x in self.values[name]]])


def make_tensors(arch, head_dim, tied, extra):
    t, q, kv = Tensors(), HEADS * head_dim, KV_HEADS * head_dim
    t.add("token_embd.weight", VOCAB, WIDTH, 0, 0.4 if arch.startswith("gemma") else 0.8)
    t.add("output_norm.weight", 1, WIDTH, 1.0, 0.3)
    if not tied:
        t.matrix("output.weight", VOCAB, WIDTH, 2)
    for name, values in extra.items():
        t.given(name, values)
    for i in range(LAYERS):
        b = f"blk.{i}."
        t.add(b + "attn_norm.weight", 1, WIDTH, 1.0, 0.3)
        t.add(b + "ffn_norm.weight", 1, WIDTH, 1.0, 0.3)
        if arch == "phi3":
            t.matrix(b + "attn_qkv.weight", q + 2 * kv, WIDTH)
            t.matrix(b + "ffn_up.weight", 2 * FFN, WIDTH)
        else:
            t.matrix(b + "attn_q.weight", q, WIDTH)
            t.matrix(b + "attn_k.weight", kv, WIDTH)
            t.matrix(b + "attn_v.weight", kv, WIDTH)
            t.matrix(b + "ffn_gate.weight", FFN, WIDTH)
            t.matrix(b + "ffn_up.weight", FFN, WIDTH)
        t.matrix(b + "attn_output.weight", WIDTH, q)
        t.matrix(b + "ffn_down.weight", WIDTH, FFN)
        if arch == "qwen2":
            t.add(b + "attn_q.bias", 1, q, 0, 0.4)
            t.add(b + "attn_k.bias", 1, kv, 0, 0.4)
            t.add(b + "attn_v.bias", 1, kv, 0, 0.4)
        if arch in ("qwen3", "gemma3"):
            t.add(b + "attn_q_norm.weight", 1, head_dim, 1.0, 0.3)
            t.add(b + "attn_k_norm.weight", 1, head_dim, 1.0, 0.3)
        if arch.startswith("gemma"):
            t.add(b + "post_attention_norm.weight", 1, WIDTH, 1.0, 0.3)
            t.add(b + "post_ffw_norm.weight", 1, WIDTH, 1.0, 0.3)
    return t


PARTS = {
    "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm", "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm", "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj", "attn_qkv": "self_attn.qkv_proj",
}
GEMMA_PARTS = {"ffn_norm": "pre_feedforward_layernorm", "post_attention_norm": "post_attention_layernorm",
               "post_ffw_norm": "post_feedforward_layernorm"}


def unpermuted(weight, heads):
    """Inverse of the converter's order of llama's q and k rows, which makes the pairs of a rotation adjacent."""
    return weight.reshape(heads, weight.shape[0] // heads // 2, 2, -1).swapaxes(1, 2).reshape(weight.shape)


def state_dict(arch, tensors):
    """The names and values of transformers for the tensors of a GGUF file."""
    out = {}
    for name, value in tensors.values.items():
        if name.startswith("rope_"):
            continue
        gemma_norm = arch.startswith("gemma") and "norm" in name
        value = value.astype(np.float64) - 1 if gemma_norm else value  # the converter adds 1, transformers when it runs
        if name in ("token_embd.weight", "output_norm.weight", "output.weight"):
            full = {"token_embd.weight": "model.embed_tokens.weight", "output_norm.weight": "model.norm.weight",
                    "output.weight": "lm_head.weight"}[name]
        else:
            _, layer, part, kind = name.split(".")
            if arch == "llama" and part in ("attn_q", "attn_k"):
                value = unpermuted(value, HEADS if part == "attn_q" else KV_HEADS)
            parts = {**PARTS, **(GEMMA_PARTS if arch.startswith("gemma") else {})}
            if arch == "phi3" and part == "ffn_up":
                parts["ffn_up"] = "mlp.gate_up_proj"
            full = f"model.layers.{layer}.{parts[part]}.{kind}"
        out[full] = torch.tensor(np.array(value, dtype=np.float64))
    return out


MODELS = {"llama": "Llama", "qwen2": "Qwen2", "qwen3": "Qwen3", "phi3": "Phi3", "gemma2": "Gemma2", "gemma3": "Gemma3"}


class Case:
    """One row. `rope` and `config` go to transformers, `metadata` (keys without the architecture) into the file."""

    def __init__(self, name, arch, rope=None, config=None, metadata=None, head_dim=16, tied=False, tensors=None,
                 ids=96, max_positions=256):
        self.name, self.arch, self.head_dim, self.tied = name, arch, head_dim, tied
        self.rope, self.config = rope or {}, config or {}
        self.metadata, self.extra = metadata or {}, tensors or {}
        self.ids, self.max_positions = ids, max_positions
        self.theta = self.config.pop("rope_theta", 10000.0)

    def transformers_config(self):
        rope = {"rope_type": "default", "rope_theta": self.theta, **self.rope}
        if self.arch == "gemma3":
            rope = {"full_attention": rope,
                    "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}}
        name = {"gemma3": "Gemma3Text"}.get(self.arch, MODELS[self.arch]) + "Config"
        # Ids that a config presumes by default lie outside this vocabulary.
        return getattr(transformers, name)(**{
            "hidden_size": WIDTH, "intermediate_size": FFN, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
            "num_key_value_heads": KV_HEADS, "head_dim": self.head_dim, "vocab_size": VOCAB, "rms_norm_eps": 1e-6,
            "max_position_embeddings": self.max_positions, "tie_word_embeddings": self.tied, "rope_parameters": rope,
            "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "attn_implementation": "eager", **self.config})

    def gguf_metadata(self):
        common = {"context_length": self.max_positions, "embedding_length": WIDTH, "block_count": LAYERS,
                  "feed_forward_length": FFN, "attention.head_count": HEADS, "attention.head_count_kv": KV_HEADS,
                  "attention.key_length": self.head_dim, "attention.value_length": self.head_dim,
                  "attention.layer_norm_rms_epsilon": 1e-6, "rope.freq_base": self.theta}
        return {f"{self.arch}.{key}": value for key, value in {**common, **self.metadata}.items()}

    def run(self):
        tensors = make_tensors(self.arch, self.head_dim, self.tied, self.extra)
        model = getattr(transformers, MODELS[self.arch] + "ForCausalLM")(self.transformers_config()).double().eval()
        missing, unexpected = model.load_state_dict(state_dict(self.arch, tensors), strict=False)
        assert not unexpected and set(missing) <= ({"lm_head.weight"} if self.tied else set()), (missing, unexpected)
        if self.tied:
            model.tie_weights()
        ids = ((noise("ids " + self.name, self.ids) + 1) * VOCAB / 2).astype(int)
        with torch.no_grad():
            logits = model(torch.tensor(ids)[None], use_cache=False).logits[0].double()
        nll = -torch.log_softmax(logits, -1)[range(self.ids - 1), ids[1:]]
        row = {"name": self.name, "architecture": self.arch, "metadata": self.gguf_metadata(),
               "tensors": tensors.specs, "ids": ids.tolist(), "nll": [round(float(x), 6) for x in nll],
               "last_logits": [round(float(x), 6) for x in logits[-1]]}
        return row, tensors


def llama3_factors(factor, low, high, original, theta, dims):
    out = []
    for i in range(dims // 2):
        wavelength = 2 * math.pi * theta ** (2 * i / dims)
        if wavelength < original / high:
            out.append(1)
        elif wavelength > original / low:
            out.append(factor)
        else:
            smooth = (original / wavelength - low) / (high - low)
            out.append(1 / ((1 - smooth) / factor + smooth))
    return out


def yarn(factor, original, **more):
    rope = {"rope_type": "yarn", "factor": factor, "original_max_position_embeddings": original, **more}
    names = {"beta_fast": "yarn_beta_fast", "beta_slow": "yarn_beta_slow", "attention_factor": "yarn_attn_factor"}
    keys = {"rope.scaling.type": "yarn", "rope.scaling.factor": factor,
            "rope.scaling.original_context_length": original,
            **{"rope.scaling." + names[key]: value for key, value in more.items()}}
    return {"rope": rope, "metadata": keys}


def longrope(ids):
    """Phi-3's factors for texts up to the original context, or past it; attention as the converter computes it."""
    long, short = [1.5, 2.0, 3.5, 6.0, 9.0, 12.0], [1.0, 1.05, 1.1, 1.3, 1.6, 1.9]
    rope = {"rope_type": "longrope", "original_max_position_embeddings": 64, "long_factor": long,
            "short_factor": short, "partial_rotary_factor": 0.75}
    keys = {"rope.dimension_count": 12, "rope.scaling.type": "longrope", "rope.scaling.original_context_length": 64,
            "rope.scaling.attn_factor": math.sqrt(1 + math.log(256 / 64) / math.log(64)),
            "attention.sliding_window": 0}
    return {"rope": rope, "metadata": keys, "ids": ids, "config": {"original_max_position_embeddings": 64},
            "tensors": {"rope_factors_long.weight": long, "rope_factors_short.weight": short}}


def cases():
    sliding = ["sliding_attention", "sliding_attention", "full_attention"]
    gemma3 = {"query_pre_attn_scalar": 16, "sliding_window": 24, "layer_types": sliding, "rope_theta": 1000000.0}
    gemma3_keys = {"attention.sliding_window": 24, "attention.sliding_window_pattern": 3}
    llama3 = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64}
    return [
        Case("llama", "llama"),
        Case("llama-linear", "llama", {"rope_type": "linear", "factor": 4.0},
             metadata={"rope.scaling.type": "linear", "rope.scaling.factor": 4.0}),
        Case("llama-llama3", "llama", {"rope_type": "llama3", **llama3},
             tensors={"rope_freqs.weight": llama3_factors(8, 1, 4, 64, 10000, 16)}),
        Case("llama-yarn", "llama", **yarn(4.0, 64)),
        Case("qwen2", "qwen2", config={"rope_theta": 1000000.0}, tied=True),
        Case("qwen2-yarn", "qwen2", **yarn(4.0, 64, beta_fast=2.0, beta_slow=0.25, attention_factor=1.25)),
        Case("qwen3", "qwen3", head_dim=32),
        Case("phi3", "phi3", {"partial_rotary_factor": 0.75}, {"sliding_window": 24},
             {"rope.dimension_count": 12, "attention.sliding_window": 24}),
        Case("phi3-longrope-short", "phi3", **longrope(48)),
        Case("phi3-longrope-long", "phi3", **longrope(96)),
        Case("gemma2", "gemma2", tied=True,
             config={"query_pre_attn_scalar": 16, "sliding_window": 24, "attn_logit_softcapping": 3.0,
                     "final_logit_softcapping": 5.0,
                     "layer_types": ["sliding_attention", "full_attention", "sliding_attention"]},
             metadata={"attention.sliding_window": 24, "attn_logit_softcapping": 3.0, "final_logit_softcapping": 5.0}),
        Case("gemma3", "gemma3", config=dict(gemma3), metadata=gemma3_keys, tied=True),
        Case("gemma3-linear", "gemma3", {"rope_type": "linear", "factor": 8.0}, dict(gemma3),
             {**gemma3_keys, "rope.scaling.type": "linear", "rope.scaling.factor": 8.0}, tied=True),
    ]


def write_gguf(path, row, tensors):
    import gguf
    writer = gguf.GGUFWriter(path, row["architecture"])
    for key, value in row["metadata"].items():
        add = writer.add_string if isinstance(value, str) else \
            writer.add_uint32 if isinstance(value, int) else writer.add_float32
        add(key, value)
    writer.add_uint32(row["architecture"] + ".vocab_size", VOCAB)
    writer.add_tokenizer_model("none")
    for name, value in tensors.values.items():
        writer.add_tensor(name, value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).with_name("tiny.jsonl"))
    parser.add_argument("--gguf", type=pathlib.Path, help="also write every model as a GGUF file into this folder")
    args = parser.parse_args()
    lines = []
    for case in cases():
        row, tensors = case.run()
        lines.append(json.dumps(row) + "\n")
        print(f"{case.name}: mean nll {np.mean(row['nll']):.3f}, logits deviate by {np.std(row['last_logits']):.3f}")
        if args.gguf:
            args.gguf.mkdir(parents=True, exist_ok=True)
            write_gguf(args.gguf / f"{case.name}.gguf", row, tensors)
    args.out.write_text("".join(lines))


if __name__ == "__main__":
    main()
