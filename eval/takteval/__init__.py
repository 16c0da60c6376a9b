"""Measures what Takt does on a real GPU; `eval/run` and `eval/report` are its commands."""
