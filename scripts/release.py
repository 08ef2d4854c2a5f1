"""Makes wheels ready for a package index: absolute links in the description, project URLs, and their hashes.

`make release URL=https://github.com/NAME/aerogel` runs it on `dist/*.whl`. The links of README.md are relative, so that
they work in every clone; an index has no such files.
"""

import argparse
import base64
import hashlib
import re
import sys
import zipfile
from pathlib import Path

PAGES = {"Documentation": "docs/index.md", "Changelog": "CHANGELOG.md"}
# Markdown's `](target)`, and HTML's `src="target"` and `href="target"`.
LINK = re.compile(r"(?P<begin>\]\(|(?:src|href)=\")(?P<target>[^)\"#][^)\"]*)")


def absolute(text: str, url: str, tag: str) -> str:
    """A page whose links to files lead to the repository, those to pictures to their bytes."""

    def link(found: re.Match[str]) -> str:
        target = found["target"]
        if re.match(r"[a-z]+:", target):
            return found[0]
        is_picture = target.partition("#")[0].endswith((".png", ".svg", ".gif", ".jpg"))
        return f"{found['begin']}{url}/{'raw' if is_picture else 'blob'}/{tag}/{target}"

    return LINK.sub(link, text)


def metadata(text: str, url: str) -> str:
    """The METADATA of a wheel with project URLs, and absolute links in the description."""
    head, blank, description = text.partition("\n\n")
    version = re.search(r"^Version: (.*)$", head, re.MULTILINE)
    assert version is not None, "a wheel has a version"
    tag = f"v{version[1]}"
    if "Project-URL" in head:
        raise SystemExit("the wheel has project URLs already")
    pages = {"Repository": url, **{name: f"{url}/blob/{tag}/{page}" for name, page in PAGES.items()}}
    head += "".join(f"\nProject-URL: {name}, {page}" for name, page in pages.items())
    return head + blank + absolute(description, url, tag)


def rewrite(wheel: Path, url: str) -> None:
    """Changes the metadata of a wheel, and its record of files."""
    with zipfile.ZipFile(wheel) as old:
        parts = [(info, old.read(info)) for info in old.infolist()]
    made, record, lines = wheel.with_suffix(".tmp"), "", []
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as new:
        for info, data in parts:
            if info.filename.endswith(".dist-info/METADATA"):
                data = metadata(data.decode(), url).encode()
            if info.filename.endswith(".dist-info/RECORD"):
                record = info.filename
                continue
            new.writestr(info, data)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            lines.append(f"{info.filename},sha256={digest},{len(data)}\n")
        new.writestr(record, "".join(lines) + f"{record},,\n")
    made.replace(wheel)


def main() -> None:
    """Rewrites the wheels of the command line, and writes SHA256SUMS beside them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", default="", help="the address of the repository")
    parser.add_argument("wheels", nargs="+", type=Path)
    args = parser.parse_args()
    if not re.match(r"https?://[^/]+/.+[^/]$", args.url):
        sys.exit("the address of the repository is needed: make release URL=https://github.com/NAME/aerogel")
    for wheel in args.wheels:
        if "manylinux" not in wheel.name:
            sys.exit(f"{wheel} is for this system alone: an index takes manylinux wheels")
        rewrite(wheel, args.url)
    sums = [f"{hashlib.sha256(wheel.read_bytes()).hexdigest()}  {wheel.name}\n" for wheel in args.wheels]
    (args.wheels[0].parent / "SHA256SUMS").write_text("".join(sums))
    print("".join(sums), end="")


if __name__ == "__main__":
    main()
