"""Runs a program that consists of several modules: `{name: source, or code}`. The first thing that runs of a program: see sources.ts.

Its syntax is that of Python 3.6, so that an old Python comes as far as to say that it is too old: hence the types in quotes.
"""

import os
import sys
from importlib.machinery import ModuleSpec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import ModuleType
    from typing import Any

# That of Debian 11: `str.removeprefix`.
OLDEST = (3, 9)


class Finder:
    """Finds and loads the modules of a program."""

    def __init__(self, modules: "dict[str, Any]"):
        self.modules = modules

    def find_spec(self, name: str, path: object = None, target: object = None):
        is_package = any(other.startswith(name + ".") for other in self.modules)
        # It has what a loader needs; the base class would be imported only for its name.
        return ModuleSpec(name, self, is_package=is_package) if name in self.modules else None  # pyright: ignore[reportArgumentType]

    def create_module(self, spec: "ModuleSpec"):
        return None

    def exec_module(self, module: "ModuleType"):
        exec(code_of(module.__name__, self.modules), module.__dict__)


def code_of(name: str, modules: "dict[str, Any]"):
    """@returns the module's code, compiled if it is given as text @raises KeyError, SyntaxError"""
    found = modules[name]
    return compile(found, name, "exec") if isinstance(found, str) else found


def dotted(version: "tuple[int, ...]"):
    return ".".join(map(str, version))


def run(main: str, modules: "dict[str, Any]", foreign: "Iterable[str]" = ()):
    """Runs the module `main` as an interpreter runs a script. @param foreign variables that are not ours, whatever the image's
    environment says @raises SystemExit if Python is too old"""
    if sys.version_info < OLDEST:
        sys.exit(f"python3 is version {dotted(sys.version_info[:2])} here, and Longhaul needs {dotted(OLDEST)} or newer")
    for name in foreign:
        os.environ.pop(name, None)
    # Of the program that starts this one, which may be of another version.
    for name in modules:
        sys.modules.pop(name, None)
    sys.meta_path.insert(0, Finder(modules))
    exec(code_of(main, modules), {"__name__": "__main__", "__package__": main.rpartition(".")[0]})
