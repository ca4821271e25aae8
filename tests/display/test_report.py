"""The report: one folder, one page, every number with its origin, for any table of rollouts."""

import functools
import re
import shutil
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

import survexec as sx
from survexec.display.claims import claims_by_pair, family
from survexec.display.report import analyses, drawing
from survexec.errors import InputError
from survexec.rollouts import Rollouts
from survexec.statistics.families import ADJUSTMENTS
from survexec.statistics.multiplicity import METHODS

EMPTY_PICTURE = (
    b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89"
)
KEY = ["benchmark", "model", "method", "task_id", "trial"]


def cohort(methods=("plain", "checked"), tasks=30, trials=1, errors=True, success=True):
    """Rollouts of some methods on the same tasks, with no single calls."""
    rng = np.random.default_rng(3)
    index = pd.MultiIndex.from_product([methods, range(tasks), range(trials)], names=["method", "task_id", "trial"])
    frame = index.to_frame(index=False)
    frame["length"] = rng.integers(0, 7, len(frame))
    frame["fed"] = frame["length"] + 1
    if errors:
        frame["fed"] = np.minimum(frame["fed"], rng.integers(1, 9, len(frame)))
    frame["success"] = rng.random(len(frame)) < 0.5 if success else None
    return Rollouts(frame)


def with_calls():
    """Two methods on three tasks with their calls: half of the refusals are lookups."""
    rows, calls = [], []
    for method in ("plain", "checked"):
        for task in range(3):
            key = ["shop", "m", method, str(task), 0]
            fed = 2 if task else 4
            rows.append([*key, 3, fed, task != 1, "information" if fed == 2 else None])
            for k in (1, 2, 3):
                bad = k == fed
                calls.append(
                    [*key, k, "find", "{}", "invalid" if bad else "ok", "information" if bad else None, None, bad]
                )
    frame = pd.DataFrame(rows, columns=[*KEY, "length", "fed", "success", "error_class"])
    names = [*KEY, "k", "tool", "arguments", "outcome", "error_class", "message", "lookup"]
    return Rollouts(frame, pd.DataFrame(calls, columns=names).astype({"k": "Int64"}))


@pytest.fixture
def undrawn(monkeypatch):
    """Reports whose figures are empty pictures, for what concerns the page alone."""

    def draw(names, done, folder):
        names = list(names)
        for name in names:
            (folder / f"{name}.png").write_bytes(EMPTY_PICTURE)
        return set(names)

    monkeypatch.setattr("survexec.display.report.draw", draw)
    monkeypatch.setattr(drawing.os, "cpu_count", lambda: 1)


class Page(HTMLParser):
    """A page by section: its text, its tables' cells, and every address it would load."""

    def __init__(self, text):
        super().__init__()
        self.sections, self.addresses, self.tags, self._at = {"": ""}, [], [], ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        attrs = dict(attrs)
        if tag == "section":
            self._at = attrs["id"]
            self.sections[self._at] = ""
        if tag in ("td", "th", "small"):
            self.sections[self._at] += " "
        self.addresses += [attrs[name] for name in ("src", "href") if name in attrs]

    def handle_data(self, data):
        if self.lasttag != "style":
            self.sections[self._at] += data

    def text(self, section):
        return " ".join(self.sections[section].split())


def page_of(rollouts, folder, **how):
    return Page(sx.report(rollouts, folder, resamples=200, **how).read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A report with everything in it, really drawn."""
    place = tmp_path_factory.mktemp("report")
    path = sx.report(with_calls(), place / "out", resamples=200)
    return place, path


@pytest.mark.slow
def test_the_folder_holds_tables_figures_ledger_and_page_and_nothing_lies_beside_it(whole):
    place, path = whole
    assert [entry.name for entry in place.iterdir()] == ["out"]
    assert {entry.name for entry in path.parent.iterdir()} == {"tables", "figures", "ledger.csv", "report.html"}
    figures = {entry.name for entry in (path.parent / "figures").iterdir()}
    assert figures == {f"{d.name}.{ending}" for d in drawing.DRAWINGS for ending in ("pdf", "png")}
    names = (
        "summary", "comparison", "tests", "ratios", "attribution", "pec", "pec_elig", "states", "first_errors", "rules",
    )  # fmt: skip
    tables = {entry.name for entry in (path.parent / "tables").iterdir()}
    assert tables == {f"{name}.{ending}" for name in names for ending in ("csv", "md", "tex")}


@pytest.mark.slow
def test_figures_are_whole_pictures_and_stand_in_the_page(whole):
    _, path = whole
    for entry in (path.parent / "figures").iterdir():
        assert entry.read_bytes()[:4] in (b"%PDF", b"\x89PNG")
        assert entry.stat().st_size > 5000
    page = Page(path.read_text(encoding="utf-8"))
    assert sum(address.startswith("data:image/png;base64,") for address in page.addresses) == len(drawing.DRAWINGS)


@pytest.mark.slow
def test_the_page_loads_nothing(whole):
    _, path = whole
    page = Page(path.read_text(encoding="utf-8"))
    assert all(address.startswith(("data:", "#")) for address in page.addresses)
    assert "script" not in page.tags
    assert not re.search(r"url\(|@import|https?://", path.read_text(encoding="utf-8"))


@pytest.mark.slow
def test_sections_come_in_the_order_of_questions(whole):
    _, path = whole
    page = Page(path.read_text(encoding="utf-8"))
    assert list(page.sections)[1:] == [
        "table", "columns", "figures", "differences", "attribution", "claims", "rules", "classes", "flow", "ledger",
        "notes",
        "methods",
    ]  # fmt: skip


@pytest.mark.slow
def test_the_rules_show_how_the_numbers_move(whole):
    _, path = whole
    rules = pd.read_csv(path.parent / "tables" / "rules.csv")
    ter = rules[(rules["metric"] == "ter") & (rules["method"] == "plain")].set_index("rule")["estimate"]
    assert ter.round(9).to_dict() == {"strict": round(1 / 3, 9), "lookup": 1.0, "interface": 1.0}
    assert "lookup" in Page(path.read_text(encoding="utf-8")).text("rules")


def test_the_same_seed_gives_the_same_page(undrawn, tmp_path):
    pages = [sx.report(cohort(), tmp_path / name, resamples=200, rng=5).read_bytes() for name in ("a", "b")]
    assert pages[0] == pages[1]


def test_what_was_analysed_stands_first(undrawn, tmp_path):
    text = page_of(cohort(), tmp_path, level=0.9, rng=7).text("")
    for wanted in (
        "60 from 1 source",
        "30; the task",
        "2, by method",
        "strict: any refusal",
        "90% level; 200 resamples",
    ):
        assert wanted in text
    assert f"survexec {sx.__version__}" in text
    assert "seed 7" in text


def test_every_column_is_explained_and_every_denominator_printed(undrawn, tmp_path):
    rollouts = cohort()
    page = page_of(rollouts, tmp_path)
    text = page.text("columns")
    assert "share of rollouts in which every call could be executed" in text
    assert "BCa bootstrap over tasks" in text
    frame = sx.summarize(rollouts, resamples=200).frame
    for count in frame.loc[frame["metric"] == "success_after_error", "denominator"]:
        assert f" {count} " in text


@pytest.mark.parametrize("adjust", METHODS)
def test_the_family_of_tests_is_named_whatever_the_adjustment(undrawn, tmp_path, monkeypatch, adjust):
    monkeypatch.setattr(analyses, "compare", functools.partial(sx.compare, adjust=adjust))
    how = "p not adjusted" if adjust == "none" else f"p adjusted by {ADJUSTMENTS[adjust]}"
    text = page_of(cohort(), tmp_path).text("differences")
    assert f"Family of tests: {how} over a family of 4 tests: TER, Mean FED, AUC-PEC, Success" in text


def test_the_page_says_what_can_be_claimed_word_by_word(undrawn, tmp_path):
    rollouts = cohort()
    text = page_of(rollouts, tmp_path).text("claims")
    comparison = sx.compare(rollouts, resamples=200)
    for pair in claims_by_pair(comparison):
        assert " ".join([pair.pair, pair.summary, *pair.readings]) in text
        for claim in pair.claims:
            assert claim.strength + claim.text in text
    assert text.count(family(comparison)) == 1
    assert "the adjusted p is at most 0.05" in text


def test_the_claims_follow_the_level(undrawn, tmp_path):
    text = page_of(cohort(), tmp_path, level=0.99).text("claims")
    assert "the adjusted p is at most 0.01 and" in text
    assert "The 99% intervals hold one at a time" in text


def test_of_many_pairs_those_that_tell_nothing_are_folded(undrawn, tmp_path):
    frame = cohort(tuple("abcde"), tasks=40).frame
    bad = frame["method"] == "e"
    frame["fed"] = frame["fed"].mask(bad & (frame["length"] > 0), 1)
    rollouts = Rollouts(frame.assign(error_class=None))
    page = page_of(rollouts, tmp_path)
    pairs = claims_by_pair(sx.compare(rollouts, resamples=200))
    told, folded = ([pair.pair for pair in pairs if pair.tells is tells] for tells in (True, False))
    assert len(told) >= 4
    assert len(folded) >= 1
    start, rest = page.text("claims").split(f"{len(folded)} more pairs, of which nothing was shown or suggested")
    assert [pair for pair in told if f" {pair} " in start] == told
    assert [pair for pair in folded if f" {pair} " in rest] == folded
    assert "4 more pairs" in page.text("flow")
    assert page.tags.count("details") == 2


def test_without_differences_nothing_is_claimed(undrawn, tmp_path):
    page = page_of(cohort(("solo",)), tmp_path)
    assert "Nothing of a difference: nothing to compare" in page.text("claims")
    assert "No pair: nothing to compare" in page.text("flow")


def test_the_flow_leads_from_the_sources_to_the_pairs(undrawn, tmp_path):
    frame = cohort().frame
    frame = frame[(frame["method"] == "plain") | (frame["task_id"].astype(int) >= 4)]
    told = [("a.json", "kept", "", 56, "rollouts", ""), ("a.json", "crashed", "503 <b>", 5, "rollouts", "row 3")]
    rollouts = Rollouts(frame, ledger=pd.DataFrame(told, columns=Rollouts(frame).ledger.columns))
    text = page_of(rollouts, tmp_path).text("flow")
    wanted = (
        "61 rollouts found in the sources a.json (n = 61)", "Crashed: no verdict on the agent (n = 5) 503 <b> (n = 5)",
        "56 rollouts analysed, of 30 tasks", "plain30 rollouts of 30 tasks", "checked26 rollouts of 26 tasks",
        "plain against checked 30tasks on at least one side −4only plain has 26paired tasks",
    )  # fmt: skip
    assert [part for part in wanted if part not in text] == []


def test_one_cell_alone_has_no_comparison_and_the_page_says_why(undrawn, tmp_path):
    page = page_of(cohort(("solo",)), tmp_path)
    assert "There are none: nothing to compare" in page.text("differences")
    assert "Not drawn: nothing to compare" in page.text("figures")
    assert not (tmp_path / "tables" / "comparison.csv").exists()


def test_methods_without_a_common_task_are_reported_all_the_same(undrawn, tmp_path):
    frame = cohort().frame
    apart = Rollouts(frame.assign(task_id=frame["method"] + frame["task_id"]))
    assert "no task in common" in page_of(apart, tmp_path).text("differences")


def test_without_a_recorded_success_the_figures_of_success_are_left_out(undrawn, tmp_path):
    page = page_of(cohort(success=False), tmp_path)
    assert page.text("figures").count("Not drawn: no rollout has a recorded success") == 2
    assert "have no recorded success" in page.text("notes")


def test_without_an_error_there_is_no_profile_of_errors(undrawn, tmp_path):
    page = page_of(cohort(errors=False), tmp_path)
    assert "Not drawn: no rollout erred" in page.text("figures")
    assert "No rollout erred" in page.text("classes")
    assert "RR is undefined" in page.text("notes")


def test_a_table_without_calls_cannot_be_judged_again_and_the_page_says_so(undrawn, tmp_path):
    page = page_of(cohort(), tmp_path)
    assert "only depths" in page.text("rules")
    assert "Not drawn: not every source has its single calls" in page.text("figures")


def test_several_trials_are_named_as_clusters(undrawn, tmp_path):
    page = page_of(cohort(trials=3), tmp_path)
    assert "Wilson on the effective number of rollouts" in page.text("columns")
    assert "Korn and Graubard" in page.text("methods")
    assert "30; the task is the unit" in page.text("")


def test_the_ledger_is_shown_whole_and_its_notes_are_not_repeated(undrawn, tmp_path):
    rollouts = cohort()
    told = [("a.json", "kept", "", 60, "rollouts", ""), ("b.json", "fault", "fed = 0", 2, "rollouts", "row 3, row 9")]
    ledger = pd.DataFrame(told, columns=rollouts.ledger.columns)
    page = page_of(Rollouts(rollouts.frame, ledger=ledger), tmp_path)
    assert "fault 2 rollouts fed = 0 row 3, row 9 b.json" in page.text("ledger")
    assert "fed = 0" not in page.text("notes")
    assert "set aside: 2 faulty" in page.text("")
    assert pd.read_csv(tmp_path / "ledger.csv")["count"].tolist() == [60, 2]


def test_data_is_only_ever_text(undrawn, tmp_path):
    nasty = "<script>alert(1)</script><img src=x onerror=alert(2)>{{ 7 * 7 }}"
    frame = cohort((nasty, "plain")).frame
    page = page_of(Rollouts(frame.assign(benchmark=nasty, source=nasty)), tmp_path)
    assert "script" not in page.tags
    assert "x" not in page.addresses
    assert "{{ 7 * 7 }}" in page.text("")
    assert page.text("claims").count(f"{nasty} against plain in {nasty}") == 1
    assert f"between {nasty} and plain was shown" in page.text("claims")
    assert f"{nasty} against plain" in page.text("flow")


def test_an_earlier_report_leaves_nothing_stale_behind(undrawn, tmp_path):
    page_of(cohort(), tmp_path)
    assert (tmp_path / "tables" / "comparison.csv").exists()
    page_of(cohort(("solo",)), tmp_path)
    assert not (tmp_path / "tables" / "comparison.csv").exists()
    assert not (tmp_path / "figures" / "differences.png").exists()


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "out").write_text("mine")
    with pytest.raises(InputError, match="is a file"):
        sx.report(cohort(), tmp_path / "out", resamples=200)
    assert (tmp_path / "out").read_text() == "mine"


def test_figures_are_drawn_here_where_no_second_process_can_be_had(monkeypatch, tmp_path):
    monkeypatch.setattr(drawing.sys, "executable", "")
    page_of(cohort(("solo",), success=False), tmp_path)
    drawn = {entry.name for entry in (tmp_path / "figures").iterdir()}
    assert drawn == {f"{name}.{ending}" for name in ("states", "pec", "first_errors") for ending in ("pdf", "png")}


def test_a_second_process_that_ends_before_it_is_asked_costs_nothing(monkeypatch, tmp_path):
    monkeypatch.setattr(drawing.sys, "executable", shutil.which("false"))
    page_of(cohort(("solo",), success=False), tmp_path)
    assert all(entry.stat().st_size > 5000 for entry in (tmp_path / "figures").iterdir())


def test_what_a_second_process_fails_to_draw_is_drawn_here(monkeypatch, tmp_path):
    def take_one_and_fail(self, names, done, folder):
        (folder / f"{names[0]}.png").touch()

    monkeypatch.setattr(drawing.os, "cpu_count", lambda: 1)
    monkeypatch.setattr(drawing.Helper, "hand", take_one_and_fail)
    page_of(cohort(("solo",), success=False), tmp_path)
    assert all(entry.stat().st_size > 5000 for entry in (tmp_path / "figures").iterdir())
