"""Grammars read from treebanks."""
