"""Files: the field's data formats, and models."""

from m3n.io import schemes
from m3n.io.alignments import Alignment, read_alignments, write_alignments
from m3n.io.attributes import read_attributes, write_attributes
from m3n.io.brackets import ParseTree, read_brackets, write_brackets
from m3n.io.columns import read_columns, write_columns
from m3n.io.conllu import Treebank, read_conllu, write_conllu
from m3n.io.files import DataFileError
from m3n.io.formats import Data, detect, read_sequences
from m3n.io.json_lines import read_graphs, read_json_lines, write_json_lines
from m3n.io.pairs import unzip
from m3n.io.parallel import read_parallel, write_parallel
from m3n.io.sentences import Column, Sentences, from_frame, to_frame
from m3n.io.svmlight import read_label_sets, read_svm_hmm, write_svm_hmm
from m3n.io.template_file import read_template

__all__ = [
    "Alignment", "Column", "Data", "DataFileError", "ParseTree", "Sentences", "Treebank", "detect", "from_frame",
    "read_alignments", "read_attributes", "read_brackets", "read_columns", "read_conllu", "read_graphs",
    "read_json_lines", "read_label_sets", "read_parallel", "read_sequences", "read_svm_hmm", "read_template", "schemes",
    "to_frame", "unzip", "write_alignments", "write_attributes", "write_brackets", "write_columns", "write_conllu",
    "write_json_lines", "write_parallel", "write_svm_hmm",
]  # fmt: skip
