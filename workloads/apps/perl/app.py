"""The `perl` workload: records, hashes and regular expressions in Perl; `size` is records a round."""

from __future__ import annotations

import re

from apprun.arm import Program
from apprun.process import Conversation
from apprun.random_words import make_vocabulary, next_random
from apprun.session import Session, converse

PERL = Program("perl", "perl", ("-v",))


def make_records(seed: int, count: int) -> list[tuple[int, str, int]]:
    """Return the (id, name, value) records that load.pl makes."""
    names, state = make_vocabulary(seed, count // 4 + 1)
    records = []
    for identity in range(1, count + 1):
        state = next_random(state)
        name = names[(state >> 8) % len(names)]
        state = next_random(state)
        records.append((identity, name, (state >> 8) % 100000))
    return records


def expected_answer(seed: int, count: int) -> bytes:
    """Return what load.pl answers `round <seed> <count>` with."""
    records = make_records(seed, count)
    groups: dict[str, list[tuple[int, int]]] = {}
    for identity, name, value in records:
        groups.setdefault(name, []).append((value, identity))
    lines = []
    for name in sorted(groups):
        members = sorted(groups[name])
        total = sum(value for value, _ in members)
        lines.append(f"{name[::-1]} {total} {'+'.join(str(identity) for _, identity in members)}")
    document = re.sub("[aeiou]+", lambda match: f"<{match[0].upper()}>", "\n".join(lines))
    text = "\n".join(f"{identity},{name},{value}" for identity, name, value in records)
    numbers = len(re.findall(r"\b\d{5}\b", text))
    squeezed = re.sub(r"\n\d+|\n", ";", re.sub(r"\d+,", "", text))
    return f"{document}\n{numbers}\n{squeezed[:4096]}\n".encode()


def run(session: Session) -> None:
    """Run the load in one Perl process, one seed a round."""
    path = session.program(PERL)
    requests = [
        (f"round {seed} {session.size}", expected_answer(seed, session.size))
        for seed in range(1, session.rounds + 1)
    ]
    # Perl orders hashes by a random seed unless it is told one; memory would differ from run to run.
    variables = {"PERL_HASH_SEED": "0", "PERL_PERTURB_KEYS": "0"}
    argv = [path, str(session.folder / "load.pl")]
    with Conversation(session.arm, argv, session.scratch, variables) as talk:
        converse(session, talk, requests, live_bytes=0, operations_each=session.size)
