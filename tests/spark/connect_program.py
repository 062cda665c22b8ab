"""Everything of eligo.spark on a session of Spark Connect; `test_connect.py` runs it in a process of its own.

A process has sessions of one kind, and the other tests have a classic one; the server lies in the JVM of that one. Each
step prints its name when it is done.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import Observation, SparkSession

from eligo import spark

EXPECTED = [(i, rule) for i in range(6) for rule in (1, 2) if (rule == 1 and i >= 3) or (rule == 2 and i % 2 == 0)]


def main(server: str, folder: Path) -> None:
    session = SparkSession.builder.remote(server).getOrCreate()
    assert "connect" in type(session).__module__, type(session)
    rules = str(folder / "rules")
    frame = session.createDataFrame([(1, "x >= 3"), (2, "kind = 'even'"), (3, "x = and")], "id int, expression string")
    made = spark.compile_rules(frame, rules, shards=2)
    assert (made.version, made.rules, made.rejected) == (1, 2, 1)
    assert [row.id for row in made.rejects(session).collect()] == ["3"]
    done("compile")

    events = session.range(6).selectExpr("id", "id as x", "if(id % 2 = 0, 'even', 'odd') as kind")
    counts = Observation("matches")
    assert pairs(spark.match(events, rules, keep=["id"], observe=counts)) == EXPECTED
    assert counts.get == {"matches": 6, "version_min": 1, "version_max": 1, "set_aside": 0, "events_set_aside": 0}
    best = spark.match(events, rules, keep=["id"], output="array", top_k=1, memory=1, key=["id"])
    assert [row.rules for row in best.sort("id").collect()] == [[2], [], [2], [1], [1], [1]]
    done("match")

    source = str(folder / "events")
    events.write.parquet(source)
    assert pairs(spark.match_files(source, rules, keep=["id"])) == EXPECTED
    done("match_files")

    target, checkpoint = str(folder / "matches"), str(folder / "checkpoint")
    stream = spark.match(session.readStream.schema(events.schema).parquet(source), rules, keep=["id"])
    query = (
        stream.writeStream.format("parquet")
        .option("path", target)
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(60)
    assert pairs(session.read.parquet(target)) == EXPECTED
    done("stream")

    spark.register(session)
    events.createOrReplaceTempView("events")
    assert pairs(session.sql(f"SELECT * FROM eligo_match(TABLE(events), '{rules}', keep => 'id')")) == EXPECTED
    scalar = session.sql(f"SELECT id, explode(eligo_rule_numbers('{rules}', struct(*))) AS rule FROM events")
    assert pairs(scalar) == EXPECTED
    done("register")

    try:
        session.sql("SELECT * FROM eligo_match(TABLE(events), '/nowhere/rules')").collect()
    except PySparkException as error:
        reason = spark.reason(error)
    assert reason.startswith("there is no snapshot at '/nowhere/rules'"), reason
    assert reason.endswith("can read")
    done("errors")

    changes = session.createDataFrame(
        [(1, "x >= 5", None), (2, None, "remove")], "id int, expression string, change string"
    )
    assert spark.update_rules(rules, changes).version == 2
    assert pairs(spark.match(events, rules, keep=["id"])) == [(5, 1)]
    done("update")
    session.stop()


def pairs(frame: Any) -> list[tuple[int, int]]:
    return sorted((row["id"], row["rule"]) for row in frame.collect())


def done(step: str) -> None:
    print(step, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
