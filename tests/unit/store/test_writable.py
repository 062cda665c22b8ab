"""Snapshots that are opened for writing: each change that was acknowledged is there again, once, in its place."""

from __future__ import annotations

import errno
import os
import random
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import eligo
from eligo.language.limits import Limits
from eligo.rule import Rule
from eligo.rule_changes import PUT, put_payload
from eligo.segments.rule_set import SEALED
from eligo.store import journal as journals
from eligo.store.journal import HEADER, Journal, is_locked
from eligo.store.snapshot import _digest
from unit.store.making import Maker

INDEXES = ["propagation", "be-tree"]  # segments, and rules that change in place


@pytest.fixture(params=INDEXES)
def saved(request: pytest.FixtureRequest, path: Path) -> Path:
    """A snapshot of three rules."""
    m = eligo.Matcher(request.param)
    m.add_many([("a", "x = 1"), ("b", "x = 2", 2.5, ("t", "u")), ("c", "y > 3")])
    m.save(path)
    return path


def state(m: eligo.Matcher) -> tuple[list[Rule], frozenset[str]]:
    """All that a journal has to bring back."""
    return list(m.rules()), m.multi


def journal_of(path: Path) -> Path:
    (found,) = path.glob("journal-*.log")
    return found


def digest_of(path: Path) -> str:
    return _digest((path / "manifest.json").read_bytes())


def test_every_kind_of_change_is_there_again(saved: Path) -> None:
    with eligo.open(saved, writable=True) as m:
        m.add("d", "x = 4", 0.5, ["t"])
        m.add("json", {"attr": "y", "op": "<", "value": 0})
        m.add("python", eligo.attr("z").is_in(["p", "q"]))
        m.add("a", "x = 'replaced'", replace=True)
        m.remove("b")
        assert m.discard("c")
        assert not m.discard("nobody")
        rejects = m.add_many([("e", "x = 5"), ("a", "x = 9"), ("f", "x =")], on_error="collect")
        assert [reject.id for reject in rejects] == ["a", "f"]
        m.add_many([("e", "x = 55"), ("g", "s contains any ('v')"), ("e", "x = 555")], replace=True)
        m.remove_many(["json", "json"])
        m.remove_many([])
        m.add_many([])
        expected = state(m)
        assert [rule.id for rule in expected[0]] == ["a", "d", "python", "e", "g"]
        assert state(eligo.open(saved)) == expected  # while it is written
    assert state(eligo.open(saved)) == expected
    n = eligo.open(saved, writable=True, sync="never")
    assert state(n) == expected
    assert n.match({"x": "replaced", "s": ["u", "v"]}) == ["a", "g"]
    n.clear()
    n.clear()
    n.add(7, "x = 1")  # another kind of id, now that there are no others
    n.close()
    assert state(eligo.open(saved)) == ([Rule(7, "x = 1")], frozenset({"s"}))


def test_what_is_refused_is_not_kept(saved: Path) -> None:
    with eligo.open(saved, writable=True) as m:
        for change, error in (
            (lambda: m.add("a", "x = 1"), eligo.DuplicateRuleError),
            (lambda: m.add("n", "x ="), eligo.RuleSyntaxError),
            (lambda: m.add(1, "x = 1"), eligo.RuleTypeError),
            (lambda: m.add("n", "x = 1", weight=float("nan")), eligo.RuleTypeError),
            (lambda: m.add("n", "x = 1", tags=[1]), eligo.RuleTypeError),
            (lambda: m.remove("n"), eligo.UnknownRuleError),
            (lambda: m.remove_many(["a", "n"]), eligo.UnknownRuleError),
            (lambda: m.add_many([("n", "x = 1"), ("n", "x = 2")]), eligo.DuplicateRuleError),
            (lambda: m.add_many([("n", "x = 1"), ("o", "x =")]), eligo.RuleSyntaxError),
        ):
            with pytest.raises(error):
                change()
        assert journal_of(saved).stat().st_size == HEADER
        before = state(m)
    assert state(eligo.open(saved)) == before


def test_a_rule_that_fails_when_it_is_put_in_place_is_taken_back(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where a matcher has no room for it: it was read and kept by then."""

    def full(*_: object, **__: object) -> None:
        raise eligo.LimitError("no room")

    with eligo.open(saved, writable=True) as m:
        before = state(m)
        monkeypatch.setattr(m.engine.rules, "put", full)
        for text in ("x = 4", "x contains any (4)"):
            with pytest.raises(eligo.LimitError):
                m.add("d", text)
        monkeypatch.undo()
        assert state(m) == before == state(eligo.open(saved))
        m.add("d", "x = 4")
        after = state(m)
    assert state(eligo.open(saved)) == after


def test_an_attribute_stays_multi_valued_whatever_became_of_the_rule(saved: Path) -> None:
    with eligo.open(saved, writable=True) as m:
        m.add("d", "x contains any ('v')")
        m.remove("d")
        m.add_many([("e", "y contains any ('v')"), ("e", "z = 1")], replace=True)
        m.add("f", "u contains any ('v')")
        m.add("f", "x = 0", replace=True)
        m.add("g", "w contains any ('v')")
        before = list(m.rules())[:-1]
        m.clear()
        m.add_many(before)
        assert m.multi == {"x", "y", "u", "w"}
    n = eligo.open(saved)
    assert state(n) == state(m)
    assert n.match({"x": [0, 1], "y": [4]}) == m.match({"x": [0, 1], "y": [4]}) == ["a", "c", "f"]


def test_rules_at_the_limits_are_replayed_in_whatever_form_they_came(path: Path) -> None:
    """As text they are longer, and deeper by their parentheses."""
    eligo.Matcher(limits=Limits(text=40, depth=6)).save(path)

    def nested(levels: int) -> Any:
        form: Any = {"attr": "a", "op": "=", "value": 1}
        for level in range(levels):
            other = {"attr": f"b{level}", "op": "=", "value": "v" * 30}
            form = {"not": {"and": [form, other]}} if level % 2 else {"or": [other, form]}
        return form

    with eligo.open(path, writable=True) as m:
        refused = 0
        for levels in range(1, 8):
            try:
                m.add(levels, nested(levels))
            except eligo.LimitError:
                refused += 1
        assert 2 <= refused <= 4
        with pytest.raises(eligo.LimitError):
            m.add(100, "x = 'a text that is longer than its forty characters'")
    n = eligo.open(path)
    assert state(n) == state(m)
    assert n.limits == m.limits == n.engine.loader.limits


@pytest.mark.parametrize("index", INDEXES)
def test_many_changes_one_by_one(path: Path, index: str) -> None:
    eligo.Matcher(index).save(path)
    with eligo.open(path, writable=True, sync="never") as m:
        for i in range(5 * SEALED):
            m.add(i, f"x = {i % 7} and s = 's{i}'")
            if i % 3 == 0:
                m.remove(i // 2)
                m.add(i // 2, "x = 1")
        expected, found = state(m), m.match({"x": 1, "s": "s8"})
    n = eligo.open(path)
    assert state(n) == expected
    assert n.match({"x": 1, "s": "s8"}) == found


# -- saving


def test_saving_in_place_begins_the_journal_anew(saved: Path) -> None:
    with eligo.open(saved, writable=True) as m:
        m.add("d", "x = 4")
        m.save(saved)
        assert journal_of(saved).stat().st_size == HEADER
        assert state(eligo.open(saved)) == state(m)
        m.add("e", "x = 5")
        m.save(saved)
        m.save(saved)  # nothing new
        m.remove("d")
        with pytest.raises(eligo.JournalError, match="open for writing"):
            eligo.open(saved, writable=True)
        assert len(list(saved.iterdir())) == 4
        expected = state(m)
    assert state(eligo.open(saved)) == expected
    with eligo.open(saved, writable=True) as n:
        assert state(n) == expected


@pytest.mark.parametrize("index", INDEXES)
def test_changes_that_cancel_out_may_give_the_same_manifest(path: Path, index: str) -> None:
    """And so the same name of the journal, which begins anew nevertheless."""
    eligo.Matcher(index).save(path)
    with eligo.open(path, writable=True) as m:
        m.add("a", "x = 1")
        m.save(path)
        before = digest_of(path)
        m.add("a", "x = 100", replace=True)
        m.save(path.with_name("other"))  # so that the rule is in a segment of its own
        m.add("a", "x = 1", replace=True)
        m.save(path)
        if index == "propagation":
            assert digest_of(path) == before
        assert journal_of(path).stat().st_size == HEADER
        m.add("z", "x = 26")
        expected = state(m)
    assert state(eligo.open(path)) == expected


@pytest.mark.parametrize("writable", [False, True])
def test_a_journal_of_earlier_times_does_not_come_back(path: Path, writable: bool) -> None:
    """A crash left it there, and the rules become again what they were when it began."""
    eligo.Matcher("propagation").save(path)
    with eligo.open(path, writable=True) as m:
        m.add("a", "x = 1")
        m.save(path)
        m.add("a", "x = 100", replace=True)
        stale, raw = journal_of(path), journal_of(path).read_bytes()
        m.save(path)
    assert not stale.exists()
    stale.write_bytes(raw)
    with eligo.open(path, writable=writable) as m:
        m.add("a", "x = 1", replace=True)
        m.save(path)
    assert digest_of(path) in stale.name
    assert [rule.expression for rule in eligo.open(path).rules()] == ["x = 1"]


def test_saving_elsewhere_leaves_the_journal(saved: Path, tmp_path: Path) -> None:
    with eligo.open(saved, writable=True) as m:
        m.add("d", "x = 4")
        m.save(tmp_path / "other")
        assert not list((tmp_path / "other").glob("journal*"))
        m.add("e", "x = 5")
        assert journal_of(saved).stat().st_size > HEADER
    assert len(eligo.open(tmp_path / "other")) == 4
    assert len(eligo.open(saved)) == 5
    shutil.rmtree(saved)
    m.save(tmp_path / "third")
    assert len(eligo.open(tmp_path / "third")) == 5


def test_nobody_saves_over_rules_that_somebody_writes(saved: Path) -> None:
    other = eligo.open(saved)
    with eligo.open(saved, writable=True) as m:
        m.add("d", "x = 4")
        before = sorted((file.name, file.read_bytes()) for file in saved.iterdir())
        for one in (other, eligo.Matcher()):
            with pytest.raises(eligo.JournalError, match="open for writing; save with that one"):
                one.save(saved)
        assert sorted((file.name, file.read_bytes()) for file in saved.iterdir()) == before
    other.save(saved)
    assert len(eligo.open(saved)) == 3
    assert not list(saved.glob("journal*"))


def test_whatever_moment_a_crash_chooses_while_saving(
    saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The directory is copied before each step on it, and opened afterwards as a new process would."""
    copies: list[tuple[Path, Any]] = []
    expected: list[Any] = []

    def copied_before(name: str) -> None:
        real, busy = getattr(os, name), [False]

        def step(*args: Any, **kwargs: Any) -> Any:
            if expected and not busy[0]:
                busy[0] = True
                copies.append((tmp_path / f"copy{len(copies)}", expected[0]))
                shutil.copytree(saved, copies[-1][0])
                busy[0] = False
            return real(*args, **kwargs)

        monkeypatch.setattr(os, name, step)

    with eligo.open(saved, writable=True) as m:
        for name in ("replace", "unlink", "fsync", "fdatasync", "write"):
            copied_before(name)
        for change in (lambda: m.add("d", "x = 4"), lambda: m.remove("a"), lambda: m.add("a", "x = 9")):
            change()
            expected.append(state(m))
            m.save(saved)
            expected.clear()
    monkeypatch.undo()
    manifests = set()
    for target, kept in copies:
        manifests.add((target / "manifest.json").read_bytes())
        assert state(eligo.open(target)) == kept, target
        with eligo.open(target, writable=True) as n:
            assert state(n) == kept
            n.add("more", "x = 6")
        assert len(eligo.open(target)) == len(kept[0]) + 1
    assert len(manifests) == 4
    assert len(copies) > 20


@pytest.mark.parametrize("step", ["write", "replace", "fsync", "fdatasync"])
def test_a_save_that_fails_at_any_step_loses_nothing(saved: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    with eligo.open(saved, writable=True) as m:
        for number in range(12):
            m.add(f"n{number}", "x = 4")
            real, left = getattr(os, step), [number]

            def failing(*args: Any, real: Any = real, left: list[int] = left) -> Any:
                left[0] -= 1
                if left[0] < 0:
                    raise OSError(errno.ENOSPC, "No space left on device")
                return real(*args)

            monkeypatch.setattr(os, step, failing)
            try:
                m.save(saved)
                break
            except OSError:
                pass
            finally:
                monkeypatch.undo()
                assert state(eligo.open(saved)) == state(m)
            try:
                m.add(f"after{number}", "x = 5")
            except eligo.JournalError as error:  # the name of the new journal may not be on disk
                assert "save the rules again" in str(error)
                assert step == "fsync"
                m.save(saved)
                m.add(f"after{number}", "x = 5")
            assert state(eligo.open(saved)) == state(m)
        assert 1 <= number < 11
        expected = state(m)
    assert state(eligo.open(saved)) == expected


def test_changes_while_saving_are_in_the_new_journal(saved: Path) -> None:
    stop = threading.Event()
    failures: list[BaseException] = []

    def change() -> None:
        i = 0
        while not stop.is_set():
            m.add(f"n{i}", f"x = {i}")
            if i % 2:
                m.remove(f"n{i - 1}")
            i += 1

    def read() -> None:
        """What is opened meanwhile is the rules of some moment: odd numbers, at the end perhaps one more."""
        while not stop.is_set():
            numbers = [int(str(rule)[1:]) for rule in eligo.open(saved) if str(rule).startswith("n")]
            odd = [number for number in numbers if number % 2]
            assert odd == list(range(1, 2 * len(odd), 2)), numbers
            assert [number for number in numbers if number % 2 == 0] in ([], [2 * len(odd)], [2 * len(odd) - 2]), (
                numbers
            )

    def guarded(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            failures.append(error)

    with eligo.open(saved, writable=True, sync="never") as m:
        threads = [threading.Thread(target=guarded, args=(work,)) for work in (change, read)]
        for thread in threads:
            thread.start()
        for _ in range(8):
            m.save(saved)
            time.sleep(0.02)
        stop.set()
        for thread in threads:
            thread.join()
        assert not failures
        expected = state(m)
    assert state(eligo.open(saved)) == expected
    assert len(expected[0]) > 10


# -- disks, writers, processes


def test_without_room_rules_stay_as_they_were(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with eligo.open(saved, writable=True) as m:
        m.add("d", "x = 4")
        before, size = state(m), journal_of(saved).stat().st_size
        monkeypatch.setattr(os, "write", full)
        for change in (
            lambda: m.add("e", "x = 5"),
            lambda: m.add("e", "x contains any (5)"),
            lambda: m.add("a", "x = 5", replace=True),
            lambda: m.add_many([("e", "x = 5"), ("a", "y contains any (1)")], replace=True),
            lambda: m.add_many([("e", "x = 5"), ("f", "x = ")], on_error="collect"),
            lambda: m.remove("a"),
            lambda: m.discard("a"),
            lambda: m.remove_many(["a", "b"]),
            lambda: m.clear(),
        ):
            with pytest.raises(eligo.JournalError, match=r"the change was not made, .*make room"):
                change()
            assert state(m) == before
            assert m.match({"x": 1}) == ["a"]
            assert m.match({"x": 4}) == ["d"]
            assert journal_of(saved).stat().st_size == size
        monkeypatch.undo()
        m.add("e", "x = 5")
        m.remove("a")
        after = state(m)
    assert state(eligo.open(saved)) == after


def test_readers_do_not_wait_for_the_disk(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = journals._to_disk

    def slow(handle: int) -> None:
        time.sleep(0.5)
        real(handle)

    with eligo.open(saved, writable=True) as m:
        m.add("d", "x = 1")
        m.match({"x": 1})
        m.add("e", "x = 1")  # nobody has asked for a view of it yet
        monkeypatch.setattr(journals, "_to_disk", slow)
        thread = threading.Thread(target=m.add, args=("f", "x = 1"))
        thread.start()
        time.sleep(0.1)
        begin = time.monotonic()
        assert m.match({"x": 1}) == ["a", "d", "e"]
        assert time.monotonic() - begin < 0.3
        thread.join()
        assert m.match({"x": 1}) == ["a", "d", "e", "f"]


def test_one_writer_at_a_time(saved: Path) -> None:
    m = eligo.open(saved, writable=True)
    with pytest.raises(eligo.JournalError, match=r"another process, or another matcher of this one.* without writable"):
        eligo.open(saved, writable=True)
    m.add("d", "x = 4")
    m.close()
    m.close()
    with pytest.raises(eligo.JournalError, match="closed; open the rules again"):
        m.add("e", "x = 5")
    assert m.match({"x": 4}) == ["d"]
    n = eligo.open(saved, writable=True)
    assert len(n) == 4
    del n  # forgotten, not closed
    assert not is_locked(journal_of(saved))
    with eligo.open(saved) as reader:  # which has nothing to close
        assert len(reader) == 4
    reader.add("e", "x = 5")
    assert len(eligo.open(saved)) == 4


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a system without fork")
def test_a_forked_child_matches_and_changes_nothing(saved: Path) -> None:
    with eligo.open(saved, writable=True) as m:
        m.add("d", "x = 4")
        m.match({"x": 4})
        out, into = os.pipe()
        child = os.fork()
        if child == 0:
            said = []
            for change in (lambda: m.add("child", "x = 1"), lambda: m.clear(), lambda: m.save(saved)):
                try:
                    change()
                    said.append("nothing")
                except eligo.JournalError as error:
                    said.append(str(error))
            said.append(str(m.match({"x": 4})))
            m.close()
            os.write(into, "\n".join(said).encode())
            os._exit(0)
        os.waitpid(child, 0)
        added, cleared, saving, found = os.read(out, 10_000).decode().split("\n")
        os.close(out)
        os.close(into)
        assert "forked from" in added
        assert "forked from" in cleared
        assert "open for writing" in saving
        assert found == "['d']"
        m.add("e", "x = 5")
        assert is_locked(journal_of(saved))
    assert [rule.id for rule in eligo.open(saved).rules()] == ["a", "b", "c", "d", "e"]


def test_a_directory_that_cannot_be_written(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with eligo.open(saved, writable=True) as m:
        m.add("d", "x = 4")
    real = os.open

    def forbidden(name: Any, flags: int, *args: Any, **kwargs: Any) -> int:
        if flags & (os.O_RDWR | os.O_WRONLY | os.O_CREAT):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(name))
        return real(name, flags, *args, **kwargs)

    monkeypatch.setattr(os, "open", forbidden)
    with pytest.raises(eligo.JournalError, match=r"cannot be written \(Read-only file system\).* without writable"):
        eligo.open(saved, writable=True)
    assert len(eligo.open(saved)) == 4


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_without_the_right_to_write(saved: Path) -> None:
    saved.chmod(0o555)
    try:
        with pytest.raises(eligo.JournalError, match="cannot be written"):
            eligo.open(saved, writable=True)
        assert len(eligo.open(saved)) == 3
    finally:
        saved.chmod(0o755)


def test_what_cannot_be_opened_for_writing(path: Path, tmp_path: Path) -> None:
    with pytest.raises(eligo.SnapshotError, match=r"nothing there; .* Matcher\(…\).save\(path\) makes an empty one"):
        eligo.open(path, writable=True)
    path.mkdir()
    with pytest.raises(eligo.SnapshotError, match=r"no manifest.json; .*makes an empty one"):
        eligo.open(path, writable=True)
    eligo.Matcher().save(path)
    with pytest.raises(eligo.OptionError, match="sync is 'always'"):
        eligo.open(path, sync="sometimes")  # type: ignore[arg-type]
    with pytest.raises(eligo.OptionError, match="writable is True or False"):
        eligo.open(path, writable="yes")  # type: ignore[arg-type]
    maker = Maker(tmp_path / "versions")
    maker.matcher.add("a", "x = 1")
    maker.publish()
    with pytest.raises(eligo.OptionError, match=r"holds versions, .* save it to another path"):
        eligo.open(tmp_path / "versions", writable=True)


def test_a_damaged_journal_names_itself_and_stays(saved: Path) -> None:
    with eligo.open(saved, writable=True) as m:
        m.add("d", "x = 4")
        second = journal_of(saved).stat().st_size
        m.add("e", "x = 5")
    path = journal_of(saved)
    good = path.read_bytes()
    for place, message in ((0, "no journal"), (HEADER + 14, "damaged, the record at 64 is wrong")):
        bad = bytearray(good)
        bad[place] ^= 1
        path.write_bytes(bad)
        for writable in (False, True):
            with pytest.raises(eligo.JournalError, match=message) as caught:
                eligo.open(saved, writable=writable)
            assert str(path) in str(caught.value)
        assert path.read_bytes() == bad
    path.write_bytes(good[:-1])
    assert len(eligo.open(saved)) == 4
    assert path.read_bytes() == good[:-1]  # readers cut nothing off
    with eligo.open(saved, writable=True) as m:
        assert len(m) == 4
    assert path.read_bytes() == good[:second]


def test_changes_that_cannot_be_made_again_are_an_error(saved: Path) -> None:
    eligo.open(saved, writable=True).close()
    for kind, payload, message in (
        (PUT, put_payload([("z", "x ===", 1.0, (), None)]), r"(?s)cannot be made again: rule 'z'.*remove the file"),
        (PUT, b"\xc1", "cannot be made again"),
        (99, b"", "kind 99, written by a newer eligo"),
    ):
        path = journal_of(saved)
        with Journal.open(path, digest_of(saved)) as journal:
            journal.append(kind, payload)
        for writable in (False, True):
            with pytest.raises(eligo.JournalError, match=message):
                eligo.open(saved, writable=writable)
        assert not is_locked(path)
        os.truncate(path, HEADER)


# -- any order of anything


@pytest.mark.parametrize("index", INDEXES)
@pytest.mark.parametrize("seed", range(6))
def test_random_changes_saves_and_torn_tails(path: Path, index: str, seed: int) -> None:
    """Against a dict: what is replayed is what some call left, and the last one unless the tail was torn off."""
    draw = random.Random(seed)
    eligo.Matcher(index).save(path)
    m = eligo.open(path, writable=True, sync="never")
    model: dict[Any, str] = {}
    since = [list(model.items())]  # after each change since the snapshot
    for _ in range(150):
        what = draw.choice(["add"] * 6 + ["replace", "remove", "remove", "add_many", "remove_many", "clear", "save"])
        what = "reopen" if draw.random() < 0.08 else what
        number, text = draw.randrange(40), f"x = {draw.randrange(9)} and s = 's{draw.randrange(50)}'"
        if draw.random() < 0.05:
            text = f"m{draw.randrange(3)} contains any ('v')"
        if what == "add" and number not in model:
            m.add(number, text)
            model[number] = text
        elif what == "replace":
            m.add(number, text, replace=True)
            model[number] = text
        elif what == "remove" and number in model:
            m.remove(number)
            del model[number]
        elif what == "add_many":
            some = [(draw.randrange(40), f"{text} and y > {i}") for i in range(draw.randrange(6))]
            m.add_many(some, replace=True)
            model.update(some)
        elif what == "remove_many":
            gone = draw.sample(sorted(model), min(len(model), draw.randrange(4)))
            m.remove_many(gone)
            for one in gone:
                del model[one]
        elif what == "clear" and draw.random() < 0.2:
            m.clear()
            model.clear()
        elif what == "save":
            m.save(path)
            since = [list(model.items())]
        elif what == "reopen":
            m.close()
            file, torn = journal_of(path), draw.random() < 0.5
            if torn:
                os.truncate(file, max(HEADER, file.stat().st_size - draw.randrange(200)))
            m = eligo.open(path, writable=True, sync="never")
            found = [(rule.id, rule.expression) for rule in m.rules()]
            assert found in since if torn else found == since[-1]
            while since[-1] != found:
                since.pop()
            model = dict(found)
        if list(model.items()) != since[-1]:
            since.append(list(model.items()))
        assert len(m) == len(model)
    m.close()
    assert [(rule.id, rule.expression) for rule in eligo.open(path).rules()] == list(model.items())
