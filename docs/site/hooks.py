"""What MkDocs calls to build the site (mkdocs.yml): its pages are the repository's, at the repository's paths."""

import pathlib
import re
from typing import Any

import command_pages
import nbconvert
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import get_plugin_logger
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = pathlib.Path(__file__).parents[2]
PAGES = (
    *("*.md", "docs/*.md", "savedmodels/*.md", "pipelines/*.md", "benchmarks/*.md"),
    *("elmo_tf/published/*/README.md", "tests/oracle/README.md"),
)
LOG = get_plugin_logger("site")

LINK = re.compile(r"(?<=\]\()(?!https?:)([^)#\s]+)")


def on_config(config: MkDocsConfig) -> None:
    """Lists the commands in the navigation."""
    (reference,) = (section["Reference"] for section in config.nav if "Reference" in section)
    titles = {path: text.split("\n")[0].removeprefix("# elmo-tf") for path, text in command_pages.pages().items()}
    reference[-1]["Command line"] = [{title.strip() or "All commands": path} for path, title in titles.items()]


def on_files(files: Files, config: MkDocsConfig) -> None:
    """Adds the repository's pages and notebooks, the files that they link to, and the commands' pages."""
    contents: dict[str, str | bytes] = dict(command_pages.pages())
    for notebook in ROOT.glob("examples/*.ipynb"):
        options = {"unique_key": notebook.stem, "output_files_dir": f"{notebook.stem}_files"}
        text, resources = nbconvert.MarkdownExporter().from_filename(str(notebook), options)
        contents[f"examples/{notebook.stem}.md"] = re.sub(r"\n{4,}", "\n\n", text)  # between outputs
        contents |= {f"examples/{name}": image for name, image in resources["outputs"].items()}
    for page in (page for pattern in PAGES for page in ROOT.glob(pattern)):
        contents[str(page.relative_to(ROOT))] = page.read_text("utf-8")
    for page, text in [item for item in contents.items() if item[0].endswith(".md")]:
        for file in (((ROOT / page).parent / link).resolve() for link in LINK.findall(text)):
            name = str(file.relative_to(ROOT))
            if file.is_file() and file.suffix == ".png":
                contents[name] = file.read_bytes()
            elif file.is_file() and _page_of(name) == f"{name}.md":
                code = f"```{file.suffix[1:] or 'text'}\n{file.read_text('utf-8')}```"
                contents[f"{name}.md"] = f"# {name}\n\n{code}\n"
    for name, content in contents.items():
        files.append(File.generated(config, name, content=content))


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Lets links to files lead to their pages. Programs may have what looks like a link."""
    folder = (ROOT / page.file.src_uri).parent
    return LINK.sub(lambda link: _page_of(link[0]) if (folder / link[0]).is_file() else link[0], markdown)


def _page_of(path: str) -> str:
    """Returns the path of the page that shows a file; of an image, its own."""
    same = path.endswith((".md", ".png"))
    return path if same else f"{path.removesuffix('.ipynb')}.md"


def on_page_content(html: str, page: Page, **_: Any) -> None:
    """Warns of text such as <S> outside of code, which a browser takes for a tag; MkDocs's own are in lower case."""
    if tags := re.findall("</?[A-Z].*?>", html):
        LOG.warning(f"'{page.file.src_uri}' has tags that are no HTML, put them into backquotes: {' '.join(tags)}")
