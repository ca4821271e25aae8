"""Reference data and values from R as fixtures."""

import pytest
from cohorts import Reference, load

from survexec.rollouts import Rollouts


@pytest.fixture(scope="session")
def metrics_in_r() -> Reference:
    return Reference("01_metrics")


@pytest.fixture(scope="session")
def paired_in_r() -> Reference:
    return Reference("06_paired")


@pytest.fixture(scope="session")
def boot_in_r() -> Reference:
    return Reference("07_boot")


@pytest.fixture(scope="session")
def paired() -> Rollouts:
    return load("a_paired")


@pytest.fixture(scope="session")
def clustered() -> Rollouts:
    return load("b_clustered")


@pytest.fixture(scope="session")
def degenerate() -> Rollouts:
    return load("c_degenerate")
