"""The `python` workload: a standard-library load in CPython; `size` is records a round.

The right output is what the same functions answer in the driver's own process, which runs on the
libc's allocator and Python's own arenas.
"""

from __future__ import annotations

from apprun.arm import Program
from apprun.process import Conversation
from apprun.session import Session, converse
from standard_load import answer

PYTHON = Program("python3", "python3", ("-I", "-V"))


def run(session: Session) -> None:
    """Run the load in one Python process; all rounds have one seed, so memory should plateau at once."""
    path = session.program(PYTHON)
    source = session.folder / "standard_load.py"
    expected = answer(1, session.size).encode()
    requests = [(f"round 1 {session.size}", expected)] * session.rounds
    variables = {"PYTHONHASHSEED": "0", "PYTHONMALLOC": "malloc", "PYTHONDONTWRITEBYTECODE": "1"}
    argv = [path, "-s", "-S", str(source)]
    with Conversation(session.arm, argv, session.scratch, variables) as talk:
        converse(session, talk, requests, live_bytes=0, operations_each=session.size)
