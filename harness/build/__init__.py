"""Turns a revision into a shared object: worktrees, builds with a cache, staged copies, arms."""
