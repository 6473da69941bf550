"""`make install`: what is installed is found and works from out of the tree, by pkg-config and by CMake."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from api_programs import PROGRAMS, REPOSITORY, build_directory, library, run, succeed

EXAMPLES = REPOSITORY / "docs" / "examples"
SOURCES = {"c": "package/consumer.c", "cxx": "package/consumer.cc"}


def project_version() -> str:
    """Return the version that the build file declares."""
    found = re.search(r"project\(ebb VERSION (\S+)", (REPOSITORY / "CMakeLists.txt").read_text())
    assert found
    return found[1]


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install into one place, move that, and return where it is now: nothing in it may name the first place."""
    library()
    first = tmp_path_factory.mktemp("install") / "first"
    succeed(["cmake", "--install", build_directory(), "--prefix", first])
    return first.rename(first.with_name("moved"))


def pkg_config(prefix: Path, *arguments: str) -> list[str]:
    """Return pkg-config's answer as words."""
    paths = os.pathsep.join(str(path.parent) for path in prefix.rglob("ebb.pc"))
    ended = run(["pkg-config", *arguments], variables={"PKG_CONFIG_PATH": paths})
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.split()


def check_program(program: Path, prefix: Path, *, is_static: bool) -> None:
    """Run a consumer. A static one must not need the shared library at all."""
    folders = os.pathsep.join(str(path.parent) for path in prefix.rglob("libebb.so"))
    ended = run([program], variables={} if is_static else {"LD_LIBRARY_PATH": folders})
    assert (ended.returncode, ended.stdout) == (0, f"{project_version()} 1\n"), ended.stderr
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", succeed(["readelf", "-d", program]))
    assert ("libebb.so" in needed) == (not is_static)


def test_install_has_all_parts_and_no_path_of_the_build(prefix: Path) -> None:
    files = {path.name for path in prefix.rglob("*") if path.is_file()}
    assert {"libebb.so", "libebb.a", "ebb.h", "ebb.hpp", "ebb.pc", "ebb-static.pc", "ebbConfig.cmake"} <= files
    for path in [*prefix.rglob("*.pc"), *prefix.rglob("*.cmake")]:
        text = path.read_text()
        assert str(REPOSITORY) not in text and "/first" not in text, path


@pytest.mark.parametrize("package", ["ebb", "ebb-static"])
@pytest.mark.parametrize("language", SOURCES)
def test_pkg_config(language: str, package: str, prefix: Path, tmp_path: Path) -> None:
    assert pkg_config(prefix, "--modversion", package) == [project_version()]
    compiler = ["gcc"] if language == "c" else ["g++", "-std=c++17"]
    flags = pkg_config(prefix, "--cflags", package)
    libraries = pkg_config(prefix, "--libs", package)
    program = tmp_path / "program"
    succeed([*compiler, "-O1", *flags, PROGRAMS / SOURCES[language], "-o", program, *libraries])
    check_program(program, prefix, is_static=package == "ebb-static")


@pytest.mark.parametrize("target", ["ebb::ebb", "ebb::ebb_static"])
def test_cmake_package(target: str, prefix: Path, tmp_path: Path) -> None:
    arguments = [f"-DCMAKE_PREFIX_PATH={prefix}", f"-DEBB_TARGET={target}", "-DCMAKE_BUILD_TYPE=Release"]
    succeed(["cmake", "-S", PROGRAMS / "package", "-B", tmp_path, *arguments])
    succeed(["cmake", "--build", tmp_path])
    for name in ("consumer_c", "consumer_cc"):
        check_program(tmp_path / name, prefix, is_static=target == "ebb::ebb_static")
    # The target itself carries the way to the library: no variable is needed where it was built.
    assert run([tmp_path / "consumer_cc"]).returncode == 0


def test_cmake_package_refuses_another_version(prefix: Path, tmp_path: Path) -> None:
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.16)\nproject(x LANGUAGES C)\nfind_package(ebb 99.0 REQUIRED)\n"
    )
    ended = run(["cmake", "-S", tmp_path, "-B", tmp_path / "b", f"-DCMAKE_PREFIX_PATH={prefix}"])
    assert ended.returncode != 0
    assert "99.0" in ended.stderr


@pytest.mark.parametrize("example", sorted(path.name for path in EXAMPLES.iterdir()))
def test_examples_build_and_run(example: str, prefix: Path, tmp_path: Path) -> None:
    """Warnings are errors: what people copy must be clean. Each example says what it has done."""
    compiler = ["gcc"] if example.endswith(".c") else ["g++", "-std=c++17"]
    flags = [*pkg_config(prefix, "--cflags", "ebb"), "-O1", "-Wall", "-Wextra", "-Werror", "-pthread"]
    program = tmp_path / "example"
    succeed([*compiler, *flags, EXAMPLES / example, "-o", program, *pkg_config(prefix, "--libs", "ebb")])
    folders = os.pathsep.join(str(path.parent) for path in prefix.rglob("libebb.so"))
    ended = run([program], variables={"LD_LIBRARY_PATH": folders})
    assert ended.returncode == 0, ended.stderr
    said = {"event_loop.c": "served one\n", "containers.cc": "a hundred in a block of Ebb\n"}
    if example == "statistics.c":
        assert "hold 1024000 bytes" in ended.stderr
        assert json.loads(ended.stdout)["dirty_bytes"] == 0
    else:
        assert ended.stdout == said[example]
