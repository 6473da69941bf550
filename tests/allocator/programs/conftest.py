"""One compiler of case programs for the whole session."""

from __future__ import annotations

import pytest

from case_programs import CaseCompiler


@pytest.fixture(scope="session")
def compiler(tmp_path_factory: pytest.TempPathFactory) -> CaseCompiler:
    """Compiles each case at its first use."""
    return CaseCompiler(tmp_path_factory.mktemp("cases"))
