"""Compiled inner loops on plain arrays; nothing here knows of problems, solvers or users."""
