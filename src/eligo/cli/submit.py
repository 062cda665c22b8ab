"""The program for spark-submit: `spark-submit "$(eligo submit-path)" compile …` is `eligo compile …` on its session."""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":
    # spark-submit puts this folder first on the path, where `rules.py` and others would hide modules of those names.
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [place for place in sys.path if os.path.abspath(place or os.curdir) != here]

    from eligo.cli import main

    main()
