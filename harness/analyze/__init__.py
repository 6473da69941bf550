"""Judging and explaining: from samples to verdicts, from two builds to the reason they differ.

In reading order:

- words and rules, pure functions of numbers: `verdict`, `robust`, `ranktest`, `trend`, `counts`, `plateau`,
  `thresholds`
- how many runs a verdict takes: `case`, `docket`, `figures`, `control`; `trial` runs a docket in a session
- why a figure moved: `profile_diff`, `source_lines`, `disassembly`, `inlining`, `identity`, `memory_diff`, put together
  by `explanation` from what `evidence` fetches
- shown as: `reports`, `comparison`, `explanation_text`
- the suite measured by itself: `simulate`, `planted`, `rehearsal`; and `bisection`, `sides` for their commands

Only `trial`, `rehearsal` and `planted` start measurements or builds, `sides` builds, `disassembly`, `inlining` and
`identity` run binutils; everything else starts nothing and reads no clock. docs/measuring.md explains every rule.
"""
