"""BE-Tree: nodes.py draws it, growing.py builds it, matching.py searches it, tree.py is the index."""

from eligo.index.be_tree import tree as tree
