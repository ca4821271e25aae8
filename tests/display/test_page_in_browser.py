"""The page of a report in a real browser: nothing fails to load, nothing overflows, on a desktop and on a phone."""

import html
import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import survexec as sx
from survexec.rollouts import Rollouts

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or "/usr/bin/chromium"
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
LONG = "a_method_with_a_rather_long_name:and-a-version/2026-11-30"

# Runs in the page under test only: measures it once it has loaded, and leaves what it found in an attribute.
PROBE = """<script>addEventListener("load", () => {
  const root = document.documentElement, scrolls = e => e.closest(".scroll") !== null;
  const wide = [...document.body.querySelectorAll("*")].filter(e => !scrolls(e) && e.clientWidth > 0
    && (e.scrollWidth > e.clientWidth + 1 || e.getBoundingClientRect().right > innerWidth + 1));
  const images = [...document.images];
  root.setAttribute("data-found", JSON.stringify({
    inner: innerWidth, page: root.scrollWidth, wide: wide.map(e => e.tagName + ":" + e.textContent.slice(0, 60)),
    images: images.length, broken: images.filter(e => !(e.complete && e.naturalWidth > 0)).length,
    loaded: performance.getEntriesByType("resource").map(e => e.name).filter(name => !name.startsWith("data:")),
    dark: matchMedia("(prefers-color-scheme: dark)").matches, paper: getComputedStyle(document.body).backgroundColor,
  }));
  try { parent.document.documentElement.setAttribute("data-found", root.getAttribute("data-found")); } catch { }
});</script></head>"""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A copy of a report's page with the probe in it; long names, and a reason as long as a log line."""
    if not Path(CHROMIUM).exists():
        pytest.skip("Chromium is not installed")
    rng = np.random.default_rng(2)
    index = pd.MultiIndex.from_product([("plain", LONG), range(40)], names=["method", "task_id"])
    frame = index.to_frame(index=False).assign(benchmark="shop", length=rng.integers(1, 12, len(index)))
    frame["fed"] = np.minimum(frame["length"] + 1, rng.integers(1, 16, len(frame)))
    frame["success"] = rng.random(len(frame)) < 0.5
    told = [
        ("logs/" + "deep/" * 30 + "a.json", "fault", "unreadable" * 30, 1, "files", "row 1"),
        ("logs/" + "deep/" * 30 + "a.json", "kept", "", 90, "rollouts", ""),
        ("logs/" + "deep/" * 30 + "a.json", "crashed", "unavailable" * 30, 7, "rollouts", "row 1"),
    ]
    rollouts = Rollouts(frame, ledger=pd.DataFrame(told, columns=Rollouts(frame).ledger.columns))
    place = tmp_path_factory.mktemp("browser")
    text = sx.report(rollouts, place / "out", resamples=200).read_text(encoding="utf-8")
    (place / "page.html").write_text(text.replace("</head>", PROBE, 1), encoding="utf-8")
    return place / "page.html"


def found(page, width, dark, tmp_path):
    """What the probe found at a width; the page stands in a frame, since a window is never as narrow as a phone."""
    frame = f'<body style="margin:0"><iframe src="page.html" style="border:0;width:{width}px;height:900px"></iframe>'
    holder = page.with_name(f"frame-{width}.html")
    holder.write_text(frame, encoding="utf-8")
    done = subprocess.run(
        [
            CHROMIUM, *FLAGS, f"--user-data-dir={tmp_path}/browser", f"--window-size={max(width, 600)},900",
            "--allow-file-access-from-files", f"--blink-settings=preferredColorScheme={0 if dark else 1}",
            "--virtual-time-budget=5000", "--dump-dom", holder.as_uri(),
        ],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    match = re.search(r'data-found="([^"]*)"', done.stdout)
    assert match, done.stdout[:500] + done.stderr[-500:]
    return json.loads(html.unescape(match[1]))


@pytest.mark.slow
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True), (360, False)])
def test_nothing_fails_to_load_and_nothing_overflows(page, width, dark, tmp_path):
    seen = found(page, width, dark, tmp_path)
    assert seen["inner"] == width
    assert seen["page"] <= width
    assert seen["wide"] == []
    assert seen["images"] == 6
    assert seen["broken"] == 0
    assert seen["loaded"] == []
    assert seen["dark"] is dark
    assert (seen["paper"] == "rgb(255, 255, 255)") is not dark


@pytest.mark.slow
def test_the_page_prints_on_pages_of_paper(page, tmp_path):
    paper = tmp_path / "page.pdf"
    subprocess.run(
        [CHROMIUM, *FLAGS, f"--user-data-dir={tmp_path}/browser", f"--print-to-pdf={paper}", page.as_uri()],
        capture_output=True, timeout=120, check=True,
    )  # fmt: skip
    assert paper.read_bytes()[:4] == b"%PDF"
    assert 3 <= len(re.findall(rb"/Type\s*/Page\b", paper.read_bytes())) <= 12
