"""Compiled inner loops on plain arrays, in four rooms; nothing here knows of problems, solvers or users.

primitives   arithmetic on rows of numbers: vectors, exponentials, products, small programmes
maps         a feature map and a loss as compiled code sees them: scores of parts, features added to vectors
oracles      the best output and the marginals of every structure, one example at a time or a packed batch
sweeps       visits of one example after another: the steps of the block methods
"""
