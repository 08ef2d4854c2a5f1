"""What the documentation site shows besides the files of docs/: error pages, the interface, the gallery's programs.

The pages of docs/ link to these as files of the repository; here the links are made to point to the site's own pages.
"""

import html
import re
from pathlib import Path
from urllib.parse import unquote

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "frontend-py" / "python" / "aerogel"
# A link to the source of an example.
EXAMPLE = re.compile(r"\]\((?:\.\./)+examples/([\w/]+)\.py\)")
# Public modules, by the title of their page.
MODULES = {
    "Settings": "aerogel._config",
    "Kernels and functions": "aerogel.kernel",
    "Fields": "aerogel.data.field",
    "Layouts": "aerogel.data.snode",
    "Axes": "aerogel.data.axes",
    "Arrays": "aerogel.data.ndarray",
    "Vectors and matrices": "aerogel.data.matrix",
    "Structs": "aerogel.data.structs",
    "Argument packs": "aerogel.data.argpack",
    "Types": "aerogel.types",
    "Functions of kernels": "aerogel.ops",
    "ti.math": "aerogel.math",
    "Sparse data as arrays": "aerogel.sparse",
    "ti.algorithms": "aerogel.algorithms",
    "ti.linalg": "aerogel.linalg",
    "Meshes": "aerogel.mesh",
    "Tools: images": "aerogel.tools.image",
    "Tools: videos": "aerogel.tools.video",
    "Tools: PLY files": "aerogel.tools.ply",
    "Tools: sparse files": "aerogel.tools.sparse",
    "Tools: NanoVDB": "aerogel.tools.nanovdb",
    "Tools: VTK files": "aerogel.tools.vtk",
    "Saving and loading": "aerogel._saving",
    "ti.GUI": "aerogel.gui",
    "ti.ui: windows": "aerogel.ui.window",
    "ti.ui: drawing": "aerogel.ui.canvas",
    "ti.ui: scenes": "aerogel.ui.scene",
    "ti.ui: widgets": "aerogel.ui.widgets",
    "ti.mpi": "aerogel.mpi",
    "Graphs": "aerogel.graph",
    "Tensors": "aerogel.tensor",
    "Tensors: programs": "aerogel.tensor.programs",
    "Tensors: random numbers": "aerogel.tensor.random",
    "Tensors: linear algebra": "aerogel.tensor.linalg",
    "Tensors: Fourier transforms": "aerogel.tensor.fft",
    "ti.special": "aerogel.special",
    "Gradients": "aerogel.ad",
    "Neural networks": "aerogel.nn",
    "Neural networks: functions": "aerogel.nn.functional",
    "Neural networks: initial values": "aerogel.nn.init",
    "Optimizers": "aerogel.optim",
    "Data sets": "aerogel.datasets",
    "Back ends": "aerogel.backends",
    "Profiler": "aerogel.profiler",
    "Exceptions": "aerogel.errors",
}


def on_config(config):
    """Fills the sections of the navigation that are lists of generated pages."""
    decisions = sorted(path.name for path in (ROOT / "docs" / "decisions").glob("*.md"))
    lists = {
        "api/": [{title: f"api/{page(module)}"} for title, module in MODULES.items()],
        "decisions/": [f"decisions/{name}" for name in decisions],
    }

    def fill(entry):
        if isinstance(entry, list):
            return [fill(part) for part in entry]
        if isinstance(entry, dict):
            return {title: fill(value) for title, value in entry.items()}
        return lists.get(entry, entry)

    config.nav = fill(config.nav)
    return config


def page(module):
    """The file name of a module's page: that of ``aerogel.tools.ply`` is ``tools.ply.md``."""
    return module.removeprefix("aerogel.").removeprefix("data.").strip("_") + ".md"


def on_files(files, config):
    """Adds the pages that are not files of docs/."""
    for path in sorted(PACKAGE.glob("explain/*.md")):
        files.append(File.generated(config, f"explain/{path.name}", content=path.read_text()))
    for title, module in MODULES.items():
        text = f"# {title}\n\n::: {module}\n"
        if module == "aerogel.ops":
            # Most of its names are assigned, not defined; their values say what they do.
            text += "    options:\n      show_if_no_docstring: true\n"
        files.append(File.generated(config, f"api/{page(module)}", content=text))
    texts = [path.read_text() for path in sorted((ROOT / "docs").rglob("*.md"))]
    for name in sorted({name for text in texts for name in EXAMPLE.findall(text)}):
        picture = f"![{name}]({name}.png)\n\n" if (ROOT / "docs" / "gallery" / f"{name}.png").exists() else ""
        source = (ROOT / "examples" / f"{name}.py").read_text()
        text = f"# {name}.py\n\n{picture}````python\n{source}````\n"
        program = File.generated(config, f"gallery/{name}.md", content=text)
        program.inclusion = program.inclusion.NOT_IN_NAV
        files.append(program)
    return files


def on_page_markdown(markdown, page, **_):
    """Links to files of the repository become links to the pages made of them."""
    markdown = markdown.replace("](../frontend-py/python/aerogel/explain/", "](explain/")
    # The repository's anchors have a hyphen for each sign that is dropped, those of the site one for all.
    markdown = re.sub(r"\]\(explain/E\d+\.md#[\w-]+\)", lambda link: re.sub("-+", "-", link[0]), markdown)
    folder = "" if page.file.src_uri.startswith("gallery/") else "gallery/"
    return EXAMPLE.sub(lambda link: f"]({folder}{link[1]}.md)", markdown)


def on_post_build(config):
    """Raises an error if a page of the built site links to a file or an anchor that does not exist.

    MkDocs checks links between pages of Markdown before this file changes them, and none that lead outside of docs/.
    """
    pages = {path: path.read_text() for path in Path(config.site_dir).rglob("*.html")}
    anchors = {path: set(re.findall(r'\bid="?([^"\s>]+)', text)) for path, text in pages.items()}
    broken = []
    for path, text in pages.items():
        for link in sorted(set(re.findall(r'\b(?:href|src)="?([^"\s>]+)', text))):
            file, _, anchor = unquote(html.unescape(link)).partition("#")
            if re.match(r"[a-z]+:|/", file):
                continue
            target = (path.parent / file).resolve() if file else path
            target = target / "index.html" if target.is_dir() else target
            known = anchors.get(target, {anchor})
            if not target.exists() or (anchor and anchor not in known):
                broken.append(f"{path.relative_to(config.site_dir)}: {link}")
    if broken:
        raise PluginError("links that lead nowhere:\n" + "\n".join(broken))
