"""Output spaces: best outputs and marginals."""
