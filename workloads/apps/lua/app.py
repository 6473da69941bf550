"""The `lua` workload: string building, matching and sorting in Lua; `size` is words a round."""

from __future__ import annotations

import re
from collections import Counter

from apprun.arm import Program
from apprun.process import Conversation
from apprun.random_words import make_text, make_vocabulary
from apprun.session import Session, converse

LUA = Program("lua5.4", "lua5.4", ("-v",))


def expected_answer(seed: int, count: int) -> bytes:
    """Return the document that load.lua answers `round <seed> <count>` with."""
    vocabulary, state = make_vocabulary(seed, count // 4 + 1)
    text = make_text(vocabulary, state, count)
    counts = Counter(text.split(" "))
    keys = sorted(counts)
    lines = [f"{word}={counts[word]}:{word[::-1].upper()}" for word in keys]
    document = re.sub("[AEIOU]", r"<\g<0>>", "\n".join(lines))
    grown = "".join(word + "," for word in keys[7::8])
    padded = "|".join([text[:64]] * 4)
    return f"{document}\n{grown}\n{padded}\n".encode()


def run(session: Session) -> None:
    """Run the load in one Lua process, one seed a round."""
    path = session.program(LUA)
    requests = [
        (f"round {seed} {session.size}", expected_answer(seed, session.size))
        for seed in range(1, session.rounds + 1)
    ]
    with Conversation(session.arm, [path, str(session.folder / "load.lua")], session.scratch) as talk:
        converse(session, talk, requests, live_bytes=0, operations_each=session.size)
