"""Loads a file of scripts/ as a module, whatever its name ends in."""

import importlib.machinery
import importlib.util
import pathlib
import sys
import types

SCRIPTS = pathlib.Path(__file__).resolve().parent.parent.parent / "scripts"


def load(name: str) -> types.ModuleType:
    loader = importlib.machinery.SourceFileLoader(name.split(".")[0], str(SCRIPTS / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    sys.modules[loader.name] = module
    loader.exec_module(module)
    return module
