"""What ``inspect --timings`` prints."""

from streamkit.cli.picture import table, timing_rows
from streamkit.report import StageTiming

TIMINGS = (
    StageTiming("source", 1.25, 0, 1200),
    StageTiming("parse openai-chat", 0.0005, 1200, 1100),
    StageTiming("sh\x1bout", 0.0014999994, 1100, 1),
    StageTiming("nothing came", 0.0, 0, 0),
)


def test_the_columns_are_aligned_and_shares_are_of_the_work():
    assert (
        table(TIMINGS)
        == """\
  stage                     ms  share  items in  items out  µs an item
  source (waiting)   1,250.000                       1,200
  parse openai-chat      0.500    25%     1,200      1,100         0.4
  sh\\x1bout              1.500    75%     1,100          1         1.4
  nothing came           0.000     0%         0          0

"""
    )


def test_a_pipe_that_did_nothing_has_no_shares():
    assert table((StageTiming("source", 0.0, 0, 0), StageTiming("one", 0.0, 0, 0))).splitlines()[2] == (
        "  one               0.000                0          0"
    )


def test_programs_get_seconds_to_the_nanosecond():
    assert timing_rows(TIMINGS)[2] == {"stage": "sh\x1bout", "seconds": 0.001499999, "items_in": 1100, "items_out": 1}
