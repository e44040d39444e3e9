#!/usr/bin/env python3
"""Worker for llama-cpp-python: plain decoding and the package's own prompt lookup, through its `Llama.generate`."""
import importlib.metadata

import llama_cpp
from llama_cpp.llama_speculative import LlamaPromptLookupDecoding

from serve import Timeline, serve, time_rows


class CountingLookup(LlamaPromptLookupDecoding):
    """The package's prompt lookup, which itself keeps no counts. One call a pass over the target."""

    def __init__(self, num_pred_tokens):
        super().__init__(num_pred_tokens=num_pred_tokens)
        self.calls = self.proposed = 0

    def __call__(self, input_ids, /, **kwargs):
        draft = super().__call__(input_ids, **kwargs)
        self.calls += 1
        self.proposed += len(draft)
        return draft


class LlamaCpp:
    def __init__(self):
        self._models = {}

    def load(self, request):
        """Settings: plain, or lookupN with proposals of N tokens."""
        setting = request["setting"]
        lookup = CountingLookup(int(setting.removeprefix("lookup"))) if setting != "plain" else None
        self._models[setting] = llama_cpp.Llama(
            request["target"], n_ctx=request["context"], n_threads=request["threads"], seed=1,
            n_threads_batch=request["threads"], draft_model=lookup, verbose=False,
            use_mmap=False)  # pages of a mapped file may be dropped while others have their turns
        info = llama_cpp.llama_print_system_info().decode()
        return {"versions": {"llama-cpp-python": importlib.metadata.version("llama-cpp-python")}, "build": info}

    def generate(self, request):
        model = self._models[request["setting"]]
        lookup = model.draft_model
        model.reset()  # no prefix of the last prompt is kept
        if lookup is not None:
            lookup.calls = lookup.proposed = 0
        timeline = Timeline(request["max_tokens"], request["stop_ids"])
        for token in model.generate(request["ids"], temp=0.0):
            if not timeline.add(token):
                break
        result = timeline.result()
        if lookup is not None:
            accepted = len(result["ids"]) - 1 - lookup.calls
            result.update(steps=lookup.calls, proposed=lookup.proposed, accepted=accepted)
        return result

    def rows(self, request):
        """One llama_decode of n rows behind the cached ones, with the logits of all of them."""
        model, cached = self._models["plain"], request["cached"]
        context = model.ctx
        memory = llama_cpp.llama_get_memory(context)
        batch = llama_cpp.llama_batch_init(max(cached, *request["rows"]), 0, 1)

        def decode(start, count, logits):
            batch.n_tokens = count
            for row in range(count):
                batch.token[row] = 1000 + (start + row) % 997  # any tokens: what they say does not change the work
                batch.pos[row] = start + row
                batch.n_seq_id[row] = 1
                batch.seq_id[row][0] = 0
                batch.logits[row] = logits
            llama_cpp.llama_memory_seq_rm(memory, 0, start, -1)
            if llama_cpp.llama_decode(context, batch) != 0:
                raise RuntimeError(f"llama_decode failed for {count} rows behind {start}")
            llama_cpp.llama_synchronize(context)

        model.reset()
        decode(0, cached, 0)
        timed = time_rows(lambda count: decode(cached, count, 1), request["rows"], request["passes"])
        llama_cpp.llama_memory_clear(memory, True)
        llama_cpp.llama_batch_free(batch)
        return timed


if __name__ == "__main__":
    serve(LlamaCpp())
