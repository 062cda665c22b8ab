"""BE-Tree: nodes.py draws it, insert.py builds it, search.py searches it, tree.py is the index."""
