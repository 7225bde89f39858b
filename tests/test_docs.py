"""The pages make a site: all are in its navigation, and all links lead somewhere."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

sys.path.append(str(Path(__file__).parent / "report"))
from helpers.browser import browsing

ROOT = Path(__file__).parents[1]
OUTSIDE = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")  # of docs/, but pages too


def build(root, out):
    """Make the site as `make docs` does; returns the exit code and what was said."""
    options = ["build", "--strict", "--site-dir", str(out)]
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", *options],
        cwd=root, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    out = tmp_path_factory.mktemp("site")
    code, said = build(ROOT, out)
    assert code == 0, said
    return out


def in_navigation(entries):
    for entry in entries:
        for target in entry.values():
            if isinstance(target, str):
                yield target
            else:
                yield from in_navigation(target)


def test_every_page_is_in_the_navigation(site):
    nav = yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]
    pages = {path.name for path in (ROOT / "docs").glob("*.md")} | {*OUTSIDE}
    wanted = {"index.md" if name == "README.md" else name for name in pages}
    assert sorted(in_navigation(nav)) == sorted(wanted)
    first = (site / "index.html").read_text()
    for name in wanted:
        page = name.replace(".md", ".html")
        assert f'href="{page}"' in first
        assert (site / page).exists()


def test_what_pages_link_to_is_on_the_site(site):
    assert (site / "examples/own_rule.py").read_bytes() == (
        ROOT / "examples/own_rule.py"
    ).read_bytes()
    assert 'href="examples/own_rule.py"' in (site / "extending.html").read_text()
    assert 'src="pictures/demo.gif"' in (site / "index.html").read_text()


def test_the_site_needs_no_network(site):
    for path in site.rglob("*.html"):
        fetched = re.findall(r"<(?:script|link|img|iframe)[^>]*https?://", path.read_text())
        assert not fetched, path


def test_what_the_switch_and_the_search_need_is_on_the_site(site):
    for path in ("index.html", "results/miniatures/index.html", "404.html"):
        page = (site / path).read_text()
        before_script = page.split("js/darkmode.js")[0]
        assert '<style id="hljs-light">' in before_script  # without it the theme's script fails
        assert '<style id="hljs-dark">' in before_script
        assert page.index("search_from_disk.js") < page.index("search/main.js")
    script = (site / "search/search_index.js").read_text()
    index = json.loads((site / "search/search_index.json").read_text())
    assert json.loads(script.removeprefix("const searchIndex = ").removesuffix(";\n")) == index
    assert index["config"]["min_search_length"] == 3  # as search_from_disk.js says
    assert index["config"]["lang"] == ["en"]  # it knows no other


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    yield from browsing(tmp_path_factory.mktemp("browser"))


@pytest.mark.parametrize("page", ["index.html", "results/miniatures/index.html"])
def test_the_switch_and_the_search_work_from_the_disk(browser, site, page):
    browser.open(site / page)
    theme = "document.documentElement.getAttribute('data-bs-theme')"
    for wanted in ("dark", "light"):
        browser.run(f"document.querySelector('[data-bs-theme-value={wanted}]').click()")
        assert browser.run(theme) == wanted
    browser.run(
        "query = document.getElementById('mkdocs-search-query'); query.value = 'novelty share';"
        "query.dispatchEvent(new KeyboardEvent('keyup'))"
    )
    browser.wait_for("document.querySelector('#mkdocs-search-results article') !== null")
    links = browser.run("[...document.querySelectorAll('#mkdocs-search-results a')].map(a=>a.href)")
    assert any("/glossary.html" in link for link in links)
    assert all(link.startswith(site.as_uri()) for link in links)
    assert browser.complaints() == []


@pytest.mark.parametrize(
    ("link", "complaint"),
    [("[x](nowhere.md)", "nowhere.md"), ("[x](replay.md#nowhere)", "#nowhere"), ("", "further.md")],
)
def test_a_broken_link_or_a_page_out_of_reach_is_an_error(link, complaint, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(ROOT / "docs", copy / "docs")
    for name in ("mkdocs.yml", *OUTSIDE):
        shutil.copy(ROOT / name, copy)
    page = copy / "docs" / ("demo.md" if link else "further.md")
    page.write_text(f"# Changed\n\n{link}\n")
    code, said = build(copy, tmp_path / "site")
    assert code == 1
    assert complaint in said


@pytest.mark.parametrize("page", sorted(path.name for path in (ROOT / "docs").glob("*.md")))
def test_the_readme_lists_every_page(page):
    table = (ROOT / "README.md").read_text().split("## Documentation")[1].split("\n## ")[0]
    assert f"| [{page}](docs/{page}) |" in table
