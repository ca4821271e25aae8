"""The house: light to import, arrows one way, modules of one job, and a map that tells the truth."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "survexec"
MODULES = sorted(PACKAGE.rglob("*.py"))

# Each floor may import those before it, and its own.
FLOORS = [
    ["errors"],
    ["protocol"],
    ["checks"],
    ["rollouts"],
    ["reading"],
    ["statistics"],
    ["datasets"],
    ["display"],
    ["paper"],
    ["cli", "__main__"],
]
# Within statistics and protocol too.
STATISTICS = [
    ["results", "tally", "proportions", "tested", "multiplicity", "rank_tests", "design", "printed_text"],
    ["estimands", "resampling", "randomization", "published", "pairing_bounds"],
    ["paired_tests", "intervals", "pairing", "possible"],
    ["summary", "curve_intervals", "discrete", "cox", "pooling", "audit", "feasible", "power"],
    ["metric_tests", "difference_intervals", "quantity_bounds"],
    ["effects", "families", "stratum_split", "pilots", "assumptions"],
    ["curves", "comparison", "fine_gray", "attribution", "trials", "pass_rates"],
    [
        "curve_differences",
        "depths",
        "survival_tests",
        "hazards",
        "ranks",
        "heterogeneity",
        "reconstruction",
        "planning",
    ],
]
PROTOCOL = [
    ["trajectory", "sampling"],
    ["literals"],
    ["readers", "catalogues"],
    ["checker"],
    ["environments", "judging", "information", "replay"],
    ["replaying"],
    ["rejudging"],
]


def imported(path: Path) -> set[str]:
    """Modules of survexec that a module imports, wherever in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module}
    return {name for name in found if name.split(".")[0] == "survexec"}


def floor(name: str, floors: list[list[str]]) -> int | None:
    return next((at for at, names in enumerate(floors) if name in names), None)


@pytest.mark.parametrize(("inside", "floors"), [("", FLOORS), ("statistics", STATISTICS), ("protocol", PROTOCOL)])
def test_no_module_imports_what_stands_below_it(inside, floors):
    base = PACKAGE / inside
    depth = len(base.relative_to(ROOT).parts)
    checked = 0
    for path in base.rglob("*.py"):
        parts = path.relative_to(base).with_suffix("").parts
        if parts == ("__init__",):
            continue
        here = floor(parts[0], floors)
        assert here is not None, f"{path} stands on no floor; give it one"
        for name in imported(path):
            target = name.split(".")
            if target[:depth] != list(base.relative_to(ROOT).parts) or len(target) <= depth:
                continue
            there = floor(target[depth], floors)
            assert there is None or there <= here, f"{path} imports {name}, which stands below it"
            checked += there is not None
    assert checked


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_no_module_is_over_400_lines(path):
    assert len(path.read_text().splitlines()) <= 400


def test_importing_survexec_is_light():
    code = "import sys, survexec; print(*sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"matplotlib", "lifelines", "statsmodels", "pandas", "numpy", "scipy"} & set(loaded)


def test_computing_loads_no_plotting_and_no_model_libraries():
    code = "import sys, survexec as sx; sx.summarize, sx.compare, sx.curves; print(*sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"matplotlib", "lifelines", "statsmodels"} & set(loaded)


def test_every_public_name_loads_and_is_documented():
    import survexec as sx

    for name in sx.__all__:
        value = getattr(sx, name)
        if not name.startswith("__"):
            assert value.__doc__, name
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = sx.no_such_name


def test_the_map_names_every_module_and_no_other():
    text = (ROOT / "ARCHITECTURE.md").read_text()
    named = set(re.findall(r"`((?:[\w]+/)*\w+(?:\.py|/))`", text))
    modules = {
        str(path.relative_to(PACKAGE))
        for path in MODULES
        if path.name != "__init__.py" or len(path.read_text().splitlines()) > 12
    }
    modules = {name.removesuffix("__init__.py") if name != "__init__.py" else name for name in modules}
    assert modules - named == set(), "not on the map"
    gone = {name for name in named if name.endswith(".py") and not (PACKAGE / name).exists()}
    assert gone == set(), "on the map but not there"


def test_the_version_is_said_once():
    import survexec

    assert f'version = "{survexec.__version__}"' in (ROOT / "pyproject.toml").read_text()
