#!/usr/bin/env python3
"""Worker for transformers, which dequantises the GGUF file to F32: plain decoding and assisted generation."""
import importlib.metadata
import pathlib

import torch
from transformers import AutoModelForCausalLM
from transformers.generation.candidate_generator import AssistedCandidateGenerator
from transformers.generation.streamers import BaseStreamer

from serve import Timeline, serve


class Clocked(BaseStreamer):
    """Hands every new token to the timeline; the first call brings the prompt."""

    def __init__(self, timeline):
        self._timeline, self._has_prompt = timeline, False

    def put(self, value):
        if self._has_prompt:
            self._timeline.add_all(value.flatten().tolist())
        self._has_prompt = True

    def end(self):
        pass


class Counts:
    """Watches the candidate generator, which keeps no totals: what it proposed and how much of it matched."""

    def __init__(self):
        self.steps = self.proposed = self.accepted = 0
        propose, observe = AssistedCandidateGenerator.get_candidates, AssistedCandidateGenerator.update_candidate_strategy

        def counting_propose(generator, input_ids, *arguments, **options):
            candidates = propose(generator, input_ids, *arguments, **options)
            self.steps += 1
            self.proposed += candidates[0].shape[1] - input_ids.shape[1]
            return candidates

        def counting_observe(generator, input_ids, scores, num_matches, *arguments, **options):
            self.accepted += int(num_matches)
            return observe(generator, input_ids, scores, num_matches, *arguments, **options)

        AssistedCandidateGenerator.get_candidates = counting_propose
        AssistedCandidateGenerator.update_candidate_strategy = counting_observe


class Transformers:
    def __init__(self):
        self._models, self._counts = {}, Counts()

    def _model(self, path):
        if path not in self._models:
            file = pathlib.Path(path)
            self._models[path] = AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name, dtype=torch.float32)
        return self._models[path]

    def load(self, request):
        torch.set_num_threads(request["threads"])
        self._target = self._model(request["target"])
        self._draft = self._model(request["draft"]) if request["setting"] == "assisted" else None
        return {"versions": {name: importlib.metadata.version(name) for name in ("transformers", "torch")}}

    def generate(self, request):
        counts, assisted = self._counts, request["setting"] == "assisted"
        counts.steps = counts.proposed = counts.accepted = 0
        timeline = Timeline(request["max_tokens"], request["stop_ids"])
        prompt = torch.tensor([request["ids"]])
        options = {"assistant_model": self._draft} if assisted else {}
        with torch.inference_mode():
            output = self._target.generate(
                prompt, attention_mask=torch.ones_like(prompt), do_sample=False, max_new_tokens=request["max_tokens"],
                eos_token_id=request["stop_ids"], pad_token_id=request["stop_ids"][0], streamer=Clocked(timeline), **options)
        result = timeline.result()
        ids = output[0, prompt.shape[1]:].tolist()
        if result["ids"] != ids:
            raise RuntimeError(f"streamed {len(result['ids'])} tokens, returned {len(ids)} other ones")
        if assisted:
            result.update(steps=counts.steps - 1, proposed=counts.proposed, accepted=counts.accepted)
        return result


if __name__ == "__main__":
    serve(Transformers())
