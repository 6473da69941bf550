"""The command line: one file a verb, found by looking at this folder.

A command module defines `command`, a click command, and nothing is listed anywhere else. Exit codes are those of
`harness.model.errors` everywhere: 0 fine, 1 a judged regression, 2 could not measure, with one sentence on standard
error and never a traceback for what a user can cause.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from typing import Sequence

import click

from harness.cli.context import Context
from harness.model.errors import EXIT_CANNOT_MEASURE, CannotMeasure
from harness.model.layout import Layout
from results.errors import StoreError

NOT_COMMANDS = frozenset({"context"})


class Verbs(click.Group):
    """The group whose commands are the modules of this folder; a module is imported when its verb is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the verbs, sorted. A module's name ends in `_` where the verb is Python's own word (`import`)."""
        names = (module.name for module in pkgutil.iter_modules(__path__))
        return sorted(name.rstrip("_") for name in names if name not in NOT_COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Import the module of a verb and return its command."""
        for module in pkgutil.iter_modules(__path__):
            if module.name.rstrip("_") == name and module.name not in NOT_COMMANDS:
                loaded = importlib.import_module(f"{__name__}.{module.name}")
                found = loaded.command
                assert isinstance(found, click.Command)
                return found
        return None


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.pass_context
def tidemark(ctx: click.Context) -> None:
    """Measure memory allocators: instructions, resident memory and time, and judge what changed.

    Exit codes: 0 fine, 1 a judged regression, 2 could not measure.
    """
    if ctx.obj is None:
        ctx.obj = Context(Layout.discover())
        ctx.call_on_close(ctx.obj.close)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    try:
        code = tidemark.main(args=list(arguments) if arguments is not None else None, prog_name="tidemark",
                             standalone_mode=False)  # fmt: skip
        return code if isinstance(code, int) else 0
    except (CannotMeasure, StoreError) as error:
        return _complain(error.sentence)
    except click.ClickException as error:
        return _complain(_click_sentence(error))
    except click.exceptions.Exit as leave:
        return int(leave.exit_code)
    except (click.Abort, KeyboardInterrupt):
        return _complain("Stopped: nothing was being measured, what is stored stays.")
    except BrokenPipeError:
        # The reader (head, less) has enough. Python would complain again when it closes standard output.
        sys.stdout = None  # type: ignore[assignment]
        return EXIT_CANNOT_MEASURE
    except OSError as error:
        return _complain(f"The system refused {error.filename or 'an operation'}: {error.strerror or error}.")


def _complain(sentence: str) -> int:
    print(f"tidemark: {sentence}", file=sys.stderr)
    return EXIT_CANNOT_MEASURE


def _click_sentence(error: click.ClickException) -> str:
    text = error.format_message().rstrip(".")
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "tidemark"
    return f"{text}: `{path} --help` shows what is possible."
