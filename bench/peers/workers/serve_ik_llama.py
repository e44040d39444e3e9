#!/usr/bin/env python3
"""Worker for ik-llama-cpp-python: plain decoding, with and without its run-time repacking of the weights.

The package's own `IkLlama.generate` fills a table of the vocabulary in Python for every token, which takes longer than
the pass does, and has no switch for repacking. So the worker calls the C functions that the package binds.
"""
import ctypes
import importlib.metadata

import numpy
from ik_llama_cpp import _ctypes_api as api
from ik_llama_cpp.llama import _cpu_has_avx_vnni

from serve import Timeline, serve, time_rows


class Model:
    """A model and its context; tokens go in at positions, the rows' logits come out."""

    def __init__(self, request):
        api.llama_backend_init()
        model_options = api.llama_model_default_params()
        model_options.repack_tensors = request["setting"] == "repack"
        model_options.use_mmap = False  # pages of a mapped file may be dropped while others have their turns
        self._model = api.llama_model_load_from_file(request["target"].encode(), model_options)
        if not self._model:
            raise RuntimeError(f"cannot load {request['target']}")
        options = api.llama_context_default_params()
        options.n_ctx = options.n_batch = request["context"]
        options.n_threads = options.n_threads_batch = request["threads"]
        options.flash_attn = _cpu_has_avx_vnni()  # as the package decides it
        self._context = api.llama_init_from_model(self._model, options)
        if not self._context:
            raise RuntimeError("cannot make a context")
        self._vocabulary = api.llama_vocab_n_tokens(api.llama_model_get_vocab(self._model))
        self._batch = api.llama_batch_init(request["context"], 0, 1)
        self._remove = api._lib.llama_kv_cache_seq_rm
        self._remove.argtypes = [ctypes.c_void_p, ctypes.c_int32, ctypes.c_int32, ctypes.c_int32]
        self._remove.restype = ctypes.c_bool

    def clear(self):
        api.llama_kv_cache_clear(self._context)

    def truncate(self, length):
        self._remove(self._context, 0, length, -1)

    def decode(self, tokens, start, all_logits=False):
        batch, last = self._batch, len(tokens) - 1
        batch.n_tokens = len(tokens)
        for row, token in enumerate(tokens):
            batch.token[row] = token
            batch.pos[row] = start + row
            batch.n_seq_id[row] = 1
            batch.seq_id[row][0] = 0
            batch.logits[row] = all_logits or row == last
        if api.llama_decode(self._context, batch) != 0:
            raise RuntimeError(f"llama_decode failed for {len(tokens)} rows behind {start}")

    def likeliest(self):
        logits = api.llama_get_logits_ith(self._context, -1)
        return int(numpy.argmax(numpy.ctypeslib.as_array(logits, shape=(self._vocabulary,))))


class IkLlama:
    def __init__(self):
        self._models = {}

    def load(self, request):
        self._models[request["setting"]] = Model(request)
        return {"versions": {"ik-llama-cpp-python": importlib.metadata.version("ik-llama-cpp-python")}}

    def generate(self, request):
        model, tokens, start = self._models[request["setting"]], request["ids"], 0
        model.clear()
        timeline = Timeline(request["max_tokens"], request["stop_ids"])
        while True:
            model.decode(tokens, start)
            start += len(tokens)
            tokens = [model.likeliest()]
            if not timeline.add(tokens[0]):
                return timeline.result()

    def rows(self, request):
        model, cached = self._models[request["setting"]], request["cached"]
        model.clear()
        tokens = [1000 + i % 997 for i in range(cached + max(request["rows"]))]
        model.decode(tokens[:cached], 0)

        def forward(count):
            model.truncate(cached)
            model.decode(tokens[cached:cached + count], cached, all_logits=True)

        return time_rows(forward, request["rows"], request["passes"])


if __name__ == "__main__":
    serve(IkLlama())
