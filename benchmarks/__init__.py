"""Measurements. ``python -m benchmarks`` runs them all; the figures stand in RESULTS.md."""
