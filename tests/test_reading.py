"""read: real files give the numbers computed independently; bad input never loses good input; the ledger adds up."""

import json
import warnings

import pandas as pd
import pytest

import survexec as sx
from survexec.errors import InputError, SurvexecWarning

# Strict rule, T = 0 counted, crashed set aside, success = reward >= 1; computed independently of this package.
# file: kept, crashed, without a call, calls, events, TER, mean FED, AUC-PEC, RR, success
REAL = {
    "tau/gpt-4o_airline": (200, 0, 18, 1164, 36, 0.82, 5.995, 0.916049, 0.25, 0.42),
    "tau/retail_four_methods/tool_calling": (100, 0, 0, 793, 23, 0.77, 7.26, 0.838178, 0.652174, 0.73),
    "tau/retail_four_methods/tool_calling_preconditions": (100, 0, 0, 876, 20, 0.80, 8.12, 0.851883, 0.60, 0.70),
    "tau/retail_four_methods/assertions": (66, 34, 0, 472, 17, 0.742424, 7.075758, 0.843570, 0.470588, 0.530303),
    "tau/retail_four_methods/assertions_no_postconditions": (
        95, 5, 0, 632, 21, 0.778947, 6.378947, 0.851387, 0.333333, 0.515789,
    ),
    "tau2/gpt-4.1_airline": (20, 0, 0, 148, 1, 0.95, 8.30, 0.983333, 0.0, 0.50),
    "tau2/gpt-4.1_retail": (40, 0, 0, 299, 8, 0.80, 7.125, 0.856115, 0.625, 0.85),
    "tau2/gpt-4.1-ft_retail": (40, 0, 0, 292, 17, 0.575, 6.475, 0.776504, 0.705882, 0.85),
    "tau2/gpt-4o_airline": (50, 0, 2, 277, 5, 0.90, 6.18, 0.961696, 0.0, 0.46),
    "tau2/qwen2.5-7b_airline": (50, 0, 3, 344, 26, 0.48, 3.78, 0.536665, 0.153846, 0.18),
}  # fmt: skip


@pytest.mark.parametrize("name", REAL)
def test_real_files_give_the_numbers_computed_independently(shared, name):
    rollouts = sx.read(shared / "data" / f"{name}.json")
    summary = sx.summarize(rollouts, resamples=100).frame.set_index("metric")["estimate"]
    crashed = int(rollouts.ledger.loc[rollouts.ledger["status"] == "crashed", "count"].sum())
    got = (len(rollouts), crashed, int(summary["zero_calls"]), int(rollouts.frame["length"].sum()),
           int(rollouts.events.sum()))  # fmt: skip
    assert got == REAL[name][:5]
    metrics = ["ter", "mean_fed", "auc_pec", "rr", "success"]
    assert summary[metrics].tolist() == pytest.approx(REAL[name][5:], abs=5e-7)


def test_no_refusal_in_the_real_files_is_unclassified(shared):
    for name in REAL:
        assert "unclassified" not in set(sx.read(shared / "data" / f"{name}.json").frame["error_class"])


def test_the_bundled_tables_are_what_the_files_give(shared):
    folder = shared / "data" / "tau" / "retail_four_methods"
    drawn = sx.read(folder / "*.json", from_path="{method}.json").frame
    bundled = sx.datasets.load_tau_retail_methods().frame
    key = ["method", "task_id"]
    facts = [*key, "length", "fed", "success", "error_class", "invalid_calls", "ending"]
    ordered = [frame.sort_values(key)[facts].reset_index(drop=True) for frame in (drawn, bundled)]
    pd.testing.assert_frame_equal(*ordered)
    airline = sx.read(shared / "data" / "tau" / "gpt-4o_airline.json").frame
    assert airline["fed"].tolist() == sx.datasets.load_tau_airline_gpt4o().frame["fed"].tolist()


def tau_row(task, contents, reward=1.0, trial=0):
    """A row of a tau-bench file whose calls got these answers."""
    messages = [{"role": "user", "content": "hello"}]
    for at, content in enumerate(contents):
        call = {"id": f"c{at}", "type": "function", "function": {"name": "get_order_details", "arguments": "{}"}}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{at}", "name": "get_order_details", "content": content})
    return {"task_id": task, "trial": trial, "reward": reward, "info": {}, "traj": messages}


@pytest.fixture
def logs(tmp_path):
    """Two methods on the same two tasks."""
    for method, answers in (("plain", ["Error: order not found", "{}"]), ("careful", ["{}"])):
        rows = [tau_row(0, answers), tau_row(1, ["{}", "{}"], reward=0.9999999), tau_row(2, ["{}"], reward=0.0)]
        (tmp_path / f"{method}.json").write_text(json.dumps(rows))
    return tmp_path


def test_a_path_names_the_method(logs):
    rollouts = sx.read(logs / "*.json", from_path="{method}.json")
    assert rollouts.frame["method"].unique().tolist() == ["careful", "plain"]
    assert len(rollouts) == 6
    assert rollouts.calls["method"].unique().tolist() == ["careful", "plain"]


def test_set_wins_over_the_path_and_the_path_over_the_log(logs):
    rollouts = sx.read(logs / "plain.json", from_path="{method}.json", set={"method": "mine", "benchmark": "shop"})
    assert rollouts.frame[["benchmark", "method"]].drop_duplicates().values.tolist() == [["shop", "mine"]]
    assert "unclassified" not in set(rollouts.frame["error_class"])


def test_a_path_that_does_not_fit_the_pattern_is_set_aside(logs):
    with pytest.warns(SurvexecWarning, match="does not end like"):
        rollouts = sx.read([logs / "plain.json", logs / "careful.json"], from_path="pl{method}.json")
    assert rollouts.frame["method"].unique().tolist() == ["ain"]


def test_the_threshold_decides_success_and_forgives_floating_noise(logs):
    plain = sx.read(logs / "plain.json")
    assert plain.frame["success"].tolist() == [True, True, False]
    assert sx.read(logs / "plain.json", success_threshold=0.0).frame["success"].all()


def test_rules_change_what_counts_as_an_error(logs):
    assert [sx.read(logs / "plain.json", rule=rule).frame["fed"][0] for rule in ("strict", "lookup")] == [1, 3]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("empty.json", "", "empty"),
        ("cut.json", '[{"task_id": 1, "trial": 0, "rew', "byte"),
        ("other.json", '{"people": [1, 2]}', "people"),
    ],
)
def test_a_bad_file_is_named_and_the_good_ones_are_read(logs, name, content, message):
    (logs / name).write_text(content)
    with pytest.warns(SurvexecWarning, match=message) as caught:
        rollouts = sx.read([logs / name, logs / "plain.json"])
    assert name in str(caught[0].message)
    assert len(rollouts) == 3
    fault = rollouts.ledger[rollouts.ledger["status"] == "fault"].iloc[0]
    assert fault["source"].endswith(name)


def test_nothing_readable_is_an_error_that_says_why(logs):
    (logs / "empty.json").write_text("")
    with pytest.raises(InputError, match=r"nothing could be read:\n.*empty\.json"):
        sx.read(logs / "empty.json")
    with pytest.raises(InputError, match="no file or folder matches"):
        sx.read(logs / "none*.json")


def test_faulty_rows_of_a_table_are_set_aside_and_the_rest_is_read(tmp_path):
    path = tmp_path / "runs.csv"
    path.write_text("task_id,length,fed,success\na,3,0,1\nb,3,5,1\nc,3,4,1\nc,3,4,1\nd,3,1,0\n")
    with pytest.warns(SurvexecWarning) as caught:
        rollouts = sx.read(path)
    text = str(caught[0].message)
    assert "row 1: fed = 0; with length = 3 a first-error depth is between 1 and 4" in text
    assert "row 2: fed = 5" in text
    assert "row 4: " in text
    assert "is already in row 3" in text
    assert rollouts.frame["task_id"].tolist() == ["c", "d"]
    assert rollouts.ledger["count"].sum() == 5


def test_the_same_key_in_two_files_hints_at_from_path(logs):
    with pytest.warns(SurvexecWarning, match=r"is already in row 1 of .*careful\.json; .*--from-path"):
        rollouts = sx.read(logs / "*.json")
    assert len(rollouts) == 3


def test_columns_of_a_table_can_be_mapped_and_graded_success_is_told(tmp_path):
    path = tmp_path / "runs.csv"
    path.write_text("task,T,FED,score\na,3,1,0.5\nb,3,4,1.0\n")
    columns = {"task_id": "task", "length": "T", "fed": "FED", "success": "score"}
    rollouts = sx.read(path, columns=columns)
    assert rollouts.frame["success"].tolist() == [False, True]
    assert any("graded" in note and "at least 1" in note for note in rollouts.notes)
    assert sx.read(path, columns=columns, success_threshold=0.5).frame["success"].all()


@pytest.fixture
def crashed(tmp_path):
    rows = [tau_row(0, ["{}"]),
            {"task_id": 1, "trial": 0, "reward": 0.0, "traj": [], "info": {"error": "limit in 3 s"}},
            {"task_id": 2, "trial": 0, "reward": 1.0, "traj": [], "info": {"error": "limit in 7 s"}}]  # fmt: skip
    (tmp_path / "runs.json").write_text(json.dumps(rows))
    return tmp_path / "runs.json"


def test_crashed_rollouts_are_set_aside_with_their_reason_and_no_warning(crashed):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rollouts = sx.read(crashed)
    assert len(rollouts) == 1
    row = rollouts.ledger[rollouts.ledger["status"] == "crashed"].iloc[0]
    assert (row["count"], row["reason"], row["examples"]) == (2, "limit in 3 s", "row 2, row 3")


def test_crashed_rollouts_can_count_as_failures_and_say_so(crashed):
    rollouts = sx.read(crashed, crashed="fail")
    assert rollouts.frame["success"].tolist() == [True, False, False]
    assert any("crashed and counted as failures" in note for note in rollouts.notes)
    with pytest.raises(InputError, match="set_aside"):
        sx.read(crashed, crashed="ignore")


def test_a_stored_table_reads_back_and_can_change_its_rule(logs, tmp_path):
    sx.read(logs / "plain.json").to_parquet(tmp_path / "runs.parquet")
    again = sx.read(tmp_path / "runs.parquet", rule="lookup")
    assert again.frame["fed"].tolist() == sx.read(logs / "plain.json", rule="lookup").frame["fed"].tolist()
    assert again.ledger["count"].sum() == 3
    assert again.calls is not None


def test_tables_and_logs_together_have_no_calls(logs, tmp_path):
    (tmp_path / "more.csv").write_text("task_id,method,length,fed\nz,other,1,2\n")
    rollouts = sx.read([logs / "plain.json", tmp_path / "more.csv"])
    assert len(rollouts) == 4
    assert rollouts.calls is None


def test_a_file_whose_name_looks_like_a_pattern_is_itself(logs):
    odd = logs / "run[1].json"
    odd.write_text((logs / "plain.json").read_text())
    assert len(sx.read(odd)) == 3


@pytest.mark.parametrize("wrong", [{"set": {"fed": "1"}}, {"from_path": "{colour}.json"}, {"from_path": "x.json"}])
def test_wrong_arguments_are_refused(logs, wrong):
    with pytest.raises(InputError):
        sx.read(logs / "plain.json", **wrong)
