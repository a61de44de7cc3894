"""Arithmetic on rows of numbers."""
