"""`eligo prove`: compare every index and evaluator with the reference on random rules and events."""

from __future__ import annotations

from typing import Annotated

import typer

from eligo.cli.terminal import FINDINGS


def prove_answers(
    seconds: Annotated[
        float | None, typer.Option("--seconds", min=1, help="Go on for so long; by default one round of each theme.")
    ] = None,
    seed: Annotated[
        int, typer.Option("--seed", help="Where to begin; the same rules and events for the same seed.")
    ] = 0,
    index: Annotated[list[str] | None, typer.Option("--index", help="Only these indexes; several times.")] = None,
    evaluator: Annotated[
        list[str] | None, typer.Option("--evaluator", help="Only these evaluators; several times.")
    ] = None,
    theme: Annotated[list[str] | None, typer.Option("--theme", help="Only these themes; several times.")] = None,
) -> None:
    """Compare the answers of every index with the reference. It is a plain evaluator of rules in Python.

    Random rules and events that collide on purpose are asked one by one, in batches, as Arrow, after changes, after
    saving and opening. A wrong answer is shrunk and printed as a program that shows it; the exit code is then 1.
    """
    from eligo.prove import prove

    proof = prove(seconds, seed, index or (), evaluator or (), theme or (), said=lambda line: print(line, flush=True))
    rate = proof.pairs / max(proof.seconds, 1e-9)
    print(f"{proof.pairs:,} comparisons and {proof.steps:,} steps in {proof.seconds:,.1f} s ({rate:,.0f} a second)")
    for setup, program in proof.differences:
        print(f"\n# --- {setup} ---\n{program}")
    if proof.differences:
        raise typer.Exit(FINDINGS)
    print("no difference")
