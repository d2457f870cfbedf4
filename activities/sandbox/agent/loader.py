"""Runs a program that consists of several modules: `{name: source, or code}`. The first thing that runs of a program: see sources.ts."""

import os
import sys
from importlib.machinery import ModuleSpec

# That of Debian 11: `str.removeprefix`.
OLDEST = (3, 9)


class Finder:
    """Finds and loads the modules of a program."""

    def __init__(self, modules):
        self.modules = modules

    def find_spec(self, name, path=None, target=None):
        is_package = any(other.startswith(name + ".") for other in self.modules)
        # It has what a loader needs; the base class would be imported only for its name.
        return ModuleSpec(name, self, is_package=is_package) if name in self.modules else None  # pyright: ignore[reportArgumentType]

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        exec(code_of(module.__name__, self.modules), module.__dict__)


def code_of(name, modules):
    found = modules[name]
    return compile(found, name, "exec") if isinstance(found, str) else found


def dotted(version):
    return ".".join(map(str, version))


def run(main, modules, foreign=()):
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
