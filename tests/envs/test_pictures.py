"""The documentation shows every environment."""

from pathlib import Path

import pytest

from curious_replay.envs import names

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("name", names())
def test_every_environment_has_its_picture_on_the_page(name):
    page = (DOCS / "environments.md").read_text()
    picture = f"pictures/{name.replace('/', '-')}.png"
    assert f"`{name}`" in page
    assert f"![]({picture})" in page
    assert (DOCS / picture).stat().st_size > 0
