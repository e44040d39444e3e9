#!/usr/bin/env python3
"""Worker for OpenVINO GenAI, which reads the GGUF file itself: plain decoding, prompt lookup, and a draft model."""
import importlib.metadata

import numpy
import openvino
import openvino_genai

from serve import serve

LOOKUP_TOKENS, LOOKUP_MATCH = 5, 3
DRAFT_TOKENS = 3


class OpenVino:
    def __init__(self):
        self._pipelines = {}

    def load(self, request):
        setting, options = request["setting"], {"INFERENCE_NUM_THREADS": request["threads"]}
        if setting == "lookup":
            options["prompt_lookup"] = True
        elif setting == "draft":
            options["draft_model"] = openvino_genai.draft_model(request["draft"], "CPU", **options)
        self._pipelines[setting] = openvino_genai.LLMPipeline(request["target"], "CPU", **options)
        return {"versions": {"openvino-genai": importlib.metadata.version("openvino-genai")},
                "build": openvino_genai.get_version()}

    def generate(self, request):
        setting = request["setting"]
        options = openvino_genai.GenerationConfig()
        options.max_new_tokens = request["max_tokens"]
        options.do_sample = False
        options.apply_chat_template = False
        options.set_eos_token_id(request["stop_ids"][0])
        options.stop_token_ids = set(request["stop_ids"])
        if setting == "lookup":
            options.num_assistant_tokens, options.max_ngram_size = LOOKUP_TOKENS, LOOKUP_MATCH
        elif setting == "draft":
            options.num_assistant_tokens = DRAFT_TOKENS
        prompt = openvino.Tensor(numpy.array([request["ids"]], dtype=numpy.int64))
        answer = self._pipelines[setting].generate(prompt, options)
        raw = answer.perf_metrics.raw_metrics
        times = list(raw.m_new_token_times)  # milliseconds, other than what the package's documentation says
        result = {"ids": [int(token) for token in answer.tokens[0]],
                  "ttft_seconds": raw.m_times_to_first_token[0] / 1e6, "decode_seconds": (times[-1] - times[0]) / 1e3}
        if setting != "plain":
            result["steps"] = len(times) - 1
        return result


if __name__ == "__main__":
    serve(OpenVino())
