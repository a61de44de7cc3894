"""What people do first, each with little data: the tasks whose compilation is measured and recorded."""

from __future__ import annotations

SENTENCES = """
import random
draw = random.Random(0)
X = [[{"w": draw.choice("abcdefgh"), "p": str(i % 3)} for i in range(draw.randint(3, 9))] for _ in range(50)]
y = [["N" if token["w"] < "d" else "V" for token in sentence] for sentence in X]
"""
COLUMNS = """
import random, sys
from pathlib import Path
from m3n.cli import main
draw = random.Random(0)
words = ["the", "old", "Man", "sees", "a", "Boat", "on", "Rhine"]
tags = {"the": "O", "old": "O", "Man": "B-PER", "sees": "O", "a": "O", "Boat": "B-THING", "on": "O", "Rhine": "B-LOC"}
with open("data.txt", "w") as file:
    for _ in range(200):
        for word in draw.choices(words, k=draw.randint(3, 12)):
            file.write(f"{word} {tags[word]}\\n")
        file.write("\\n")
def m3n(*arguments):
    sys.argv[1:] = arguments
    try:
        main()
    except SystemExit as end:
        assert not end.code, end.code
"""
TASKS = {
    "tagging": SENTENCES + "import m3n\nm3n.SequenceTagger().fit(X, y).predict(X)",
    "crf": SENTENCES + "import m3n\nm3n.SequenceTagger(objective='crf').fit(X, y).predict(X)",
    "drop-in": SENTENCES
    + "from m3n.compat.sklearn_crfsuite import CRF\nCRF(c1=0.1, c2=0.1, max_iterations=20).fit(X, y).predict(X)"
    + "\nmodel = CRF(c2=0.1).fit(X, y)\nmodel.predict(X)\nmodel.predict_marginals(X)",
    "serving": SENTENCES
    + """
import m3n
words = [[(token["w"], token["p"]) for token in sentence] for sentence in X]
for templates, tokens in (None, X), (m3n.features.CHUNKING, words):
    model = m3n.SequenceTagger(templates=templates).fit(tokens, y)
    model.predict(tokens)
    model.predict_marginals(tokens)
    model.predict_k_best(tokens, 2)
""",
    "segments": """
import m3n
X = [[["Ada", "capital"], ["Lovelace", "capital"], ["wrote"]], [["to"], ["Charles", "capital"]]] * 5
y = [[(0, 2, "name")], [(1, 2, "name")]] * 5
m3n.SegmentTagger(lam=0.01).fit(X, y).predict(X)
""",
    "labels": """
import numpy as np
import m3n
draw = np.random.default_rng(0)
X = draw.normal(size=(40, 5))
Y = (X[:, :3] + draw.normal(size=(40, 3)) > 0).astype(int)
m3n.MultilabelClassifier(lam=0.01).fit(X, Y).predict(X)
""",
    "graphs": """
import numpy as np
import m3n
picture = np.random.default_rng(0).random((6, 6))
X, y = [m3n.grid_graph(picture)] * 3, [(picture > 0.5).astype(int)] * 3
m3n.GraphLabeler(lam=0.01).fit(X, y).predict(X)
""",
    "dependencies": """
import m3n
X = [[("dogs", "NOUN"), ("bark", "VERB")], [("big", "ADJ"), ("dogs", "NOUN"), ("bark", "VERB")]] * 10
y = [[(2, "nsubj"), (0, "root")], [(2, "amod"), (3, "nsubj"), (0, "root")]] * 10
for order in (1, 2):
    m3n.DependencyParser(bits=14, order=order).fit(X, y).predict(X)
""",
    "phrases": """
import m3n
y = ["(S (NP (DT the) (NN dog)) (VP (VBZ barks)))", "(S (NP (NNS dogs)) (VP (VBP bark)))"] * 10
X = [tree.words() for tree in map(m3n.io.ParseTree.of, y)]
m3n.ConstituencyParser().fit(X, y).predict(X)
""",
    "alignment": """
import m3n
text, labelled = m3n.datasets.parallel_sentences(40, 20, words=20)
aligner = m3n.WordAligner().fit(labelled.pairs, labelled.alignments, unlabelled=text.pairs)
aligner.predict(labelled.pairs)
aligner.predict_marginals(labelled.pairs)
""",
    "command": COLUMNS
    + """
m3n("train", "data.txt", "-m", "x.m3n", "--quiet")
m3n("predict", "data.txt", "-m", "x.m3n", "--output", "out.txt")
m3n("evaluate", "data.txt", "-m", "x.m3n")
""",
    "compare": "import sys\nfrom m3n.cli import main\nsys.argv[1:] = ['compare', '--max-seconds', '1']\nmain()",
    "demo": "import sys\nfrom m3n.cli import main\nsys.argv[1:] = ['demo']\nmain()",
}
AFTERWARDS = ("serving",)  # what they ask for is not what a fit should compile while it begins
