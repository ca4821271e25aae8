"""What every test shares: the folder of real rollouts, where there is one, and quiet, repeatable property tests."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "survexec", deadline=None, derandomize=True, max_examples=50, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("survexec")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder `shared` beside the repository; tests that need it are skipped where it is absent."""
    folder = Path(__file__).resolve().parents[1].parent / "shared"
    if not (folder / "data").is_dir():
        pytest.skip("the folder of real rollouts is not here")
    return folder
