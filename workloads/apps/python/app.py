"""The `python` workload: a standard-library load in CPython; `size` is records a round.

The right output is what the same functions answer in the driver's own process, which runs on the
libc's allocator and Python's own arenas.
"""

from __future__ import annotations

import importlib.util
from types import ModuleType
from pathlib import Path

from apprun.arm import Program
from apprun.process import Conversation
from apprun.session import Session, converse

PYTHON = Program("python3", "python3", ("-I", "-V"))


def _load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("python_load", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(session: Session) -> None:
    """Run the load in one Python process; all rounds have one seed, so memory should plateau at once."""
    path = session.program(PYTHON)
    source = session.folder / "load.py"
    expected = _load(source).answer(1, session.size).encode()
    requests = [(f"round 1 {session.size}", expected)] * session.rounds
    variables = {"PYTHONHASHSEED": "0", "PYTHONMALLOC": "malloc", "PYTHONDONTWRITEBYTECODE": "1"}
    argv = [path, "-s", "-S", str(source)]
    with Conversation(session.arm, argv, session.scratch, variables) as talk:
        converse(session, talk, requests, live_bytes=0, operations_each=session.size)
