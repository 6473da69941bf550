"""Tidemark: measures memory allocators under one workload set and judges the difference.

`python3 -m harness` is the command line (`./tidemark` starts it); the packages below it are, from the bottom up:
`model` (nouns and configuration), `build` (turns a revision into a shared object), `collect` (turns a job into a
measurement), `analyze` (turns measurements into verdicts), `present` (tables and progress) and `cli` (the verbs).
"""
