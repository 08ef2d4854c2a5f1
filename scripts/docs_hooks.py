"""What the documentation site shows besides the files of docs/: error pages, the interface, the gallery's programs.

The pages of docs/ link to these as files of the repository; here the links are made to point to the site's own pages.
"""

import re
from pathlib import Path

from mkdocs.structure.files import File

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "frontend-py" / "python" / "aerogel"
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
    "ti.GUI": "aerogel.gui",
    "Graphs": "aerogel.graph",
    "Tensors": "aerogel.tensor",
    "Tensors: programs": "aerogel.tensor.programs",
    "Tensors: random numbers": "aerogel.tensor.random",
    "Tensors: linear algebra": "aerogel.tensor.linalg",
    "Tensors: Fourier transforms": "aerogel.tensor.fft",
    "ti.special": "aerogel.special",
    "Gradients": "aerogel.ad",
    "Neural networks": "aerogel.nn",
    "Optimizers": "aerogel.optim",
    "Data sets": "aerogel.datasets",
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
    gallery = (ROOT / "docs" / "gallery" / "README.md").read_text()
    for name in re.findall(r"examples/(\w+)\.py\)", gallery):
        source = (ROOT / "examples" / f"{name}.py").read_text()
        text = f"# {name}.py\n\n![{name}]({name}.png)\n\n````python\n{source}````\n"
        program = File.generated(config, f"gallery/{name}.md", content=text)
        program.inclusion = program.inclusion.NOT_IN_NAV
        files.append(program)
    return files


def on_page_markdown(markdown, page, **_):
    """Links to files of the repository become links to the pages made of them."""
    markdown = markdown.replace("](../frontend-py/python/aerogel/explain/", "](explain/")
    return re.sub(r"\]\(\.\./\.\./examples/(\w+)\.py\)", r"](\1.md)", markdown)
