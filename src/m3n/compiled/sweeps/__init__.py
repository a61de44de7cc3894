"""Visits of one example after another: the steps of the block methods."""
