"""`python -m eligo`: the command line."""

from eligo.cli import main

main()
