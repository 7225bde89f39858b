"""Lets MkDocs see what lies outside of docs/: the README is the first page, links find their files.

On the site a file of the repository has its own path, without the "docs/" that most pages begin
with. Links are written as they are right in the repository; here they become right on the site. And
the theme's switch and search are made to work on pages that are read from the disk.
"""

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import event_priority
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
FIRST, FURTHER = "README.md", ("CONTRIBUTING.md", "CHANGELOG.md")
LINK = re.compile(r"(\]\()([^)\s#]+)((?:#[^)\s]*)?\))")
STYLES = '<style id="hljs-light"></style><style id="hljs-dark"></style>'
"""The theme's switch turns these on and off, and fails without them where code is not coloured."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages from outside of docs/, and whatever pages link to."""
    waiting = [f"docs/{file.src_uri}" for file in files if file.src_uri.endswith(".md")]
    waiting += [FIRST, *FURTHER]
    seen = set()
    while waiting:
        path = waiting.pop()
        if path in seen or not (ROOT / path).is_file():
            continue  # what is not there, MkDocs complains about
        seen.add(path)
        if files.get_file_from_path(_on_site(path)) is None:
            level = (
                InclusionLevel.INCLUDED if path in (FIRST, *FURTHER) else InclusionLevel.NOT_IN_NAV
            )
            source = str(ROOT / path)
            files.append(
                File.generated(config, _on_site(path), abs_src_path=source, inclusion=level)
            )
        if path.endswith(".md"):
            waiting += _targets(path)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Make links right on the site."""
    source = Path(page.file.abs_src_path or "").resolve().relative_to(ROOT).as_posix()
    here = posixpath.dirname(_on_site(source))

    def moved(link: re.Match[str]) -> str:
        target = _in_repository(source, link[2])
        if not (ROOT / target).is_file():
            return link[0]
        return link[1] + posixpath.relpath(_on_site(target), here or ".") + link[3]

    return LINK.sub(moved, markdown)


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Add what the switch between light and dark needs."""
    return output.replace("</head>", f"{STYLES}</head>", 1)


def on_post_template(output: str, template_name: str, config: MkDocsConfig) -> str:
    """Add it to the page that stands for those that are not there, too."""
    return output.replace("</head>", f"{STYLES}</head>", 1)


@event_priority(-100)  # after the search plugin, which writes the index
def on_post_build(config: MkDocsConfig) -> None:
    """Write the search index as a script too, which a page from the disk can load."""
    folder = Path(config.site_dir) / "search"
    index = (folder / "search_index.json").read_text(encoding="utf-8")
    (folder / "search_index.js").write_text(f"const searchIndex = {index};\n", encoding="utf-8")


def _targets(path: str) -> Iterator[str]:
    """Files of the repository that a page links to."""
    for _, target, _ in LINK.findall((ROOT / path).read_text(encoding="utf-8")):
        yield _in_repository(path, target)


def _in_repository(page: str, link: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), link))


def _on_site(path: str) -> str:
    return "index.md" if path == FIRST else path.removeprefix("docs/")
