"""The proof that answers are right: random rules and events, and every way to ask compared with the reference.

    draw      rules and events that collide on purpose        tables   the same events as Arrow tables of every type
    oracle    what the reference says, asked once             cases    steps on a matcher, run beside a model
    rounds    one set of rules, every index and evaluator     walks    random steps, every index and evaluator
    shrink    the smallest case that still differs            script   that case as a program to run

`eligo prove` and tests/differential call `prove`.
"""

from eligo.prove.proof import Proof, prove

__all__ = ["Proof", "prove"]
