#!/usr/bin/env python3
"""Builds the documents as a book: target/book/index.html.

    scripts/book.py [--mdbook PATH] [--out DIR]

Pages link to each other as files of the repository, and mdBook wants all of them below one folder.
So this copies the pages and what they link to, as they lie, and builds the book from the copy.
docs/SUMMARY.md is its table of contents; the pages of a folder whose README.md it names follow that
page. Afterwards every link of the book must lead somewhere.
"""

import argparse
import html.parser
import pathlib
import posixpath
import re
import shutil
import subprocess
import sys
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = re.compile(r"^(docs/.*|examples/.*|[^/]*)\.md$")
LINK = re.compile(r"(\]\()([^)\s]+)")
ENTRY = re.compile(r"^(\s*)((?:- )?\[[^\]]*\])\(([^)]+)\)$")


def tracked():
    """Pages of the repository, and the files and folders that they link to."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    files = [path for path in listed.splitlines() if (ROOT / path).is_file()]
    chosen = {path for path in files if PAGES.match(path) and path != "docs/SUMMARY.md"}
    for page in list(chosen):
        for _, link in LINK.findall((ROOT / page).read_text()):
            target = posixpath.normpath(posixpath.join(posixpath.dirname(page), link.partition("#")[0]))
            chosen |= {path for path in files if path == target or path.startswith(target + "/")}
    return sorted(chosen)


def title(path):
    """The heading of a page."""
    first = (ROOT / path).read_text().split("\n", 1)[0]
    return re.sub(r"[\[\]]", "", first.lstrip("# "))


def summary(paths):
    """The table of contents, with paths from the top and with the pages of folders."""
    lines = []
    for line in (ROOT / "docs/SUMMARY.md").read_text().splitlines():
        entry = ENTRY.match(line)
        if not entry:
            lines.append(line)
            continue
        indent, text, target = entry.groups()
        path = posixpath.normpath(posixpath.join("docs", target))
        lines.append(f"{indent}{text}({path})")
        folder = posixpath.dirname(path)
        if path.endswith("/README.md") and folder.startswith("docs/"):
            below = sorted(p for p in paths if p.startswith(folder + "/") and p.endswith(".md") and p != path)
            lines += [f"{indent}  - [{title(page)}]({page})" for page in below]
    return "\n".join(lines) + "\n"


def renamed(text):
    """The same with index.md for README.md, which is what web servers look for in a folder."""
    if text == "README.md":
        return "index.md"
    return LINK.sub(lambda link: link[1] + re.sub(r"(^|/)README\.md", r"\1index.md", link[2]), text)


def stage(source, paths):
    """The copy that mdBook reads."""
    shutil.rmtree(source, ignore_errors=True)
    for path in paths:
        copy = source / "src" / path
        copy.parent.mkdir(parents=True, exist_ok=True)
        if PAGES.match(path):
            copy.with_name(renamed(copy.name)).write_text(renamed((ROOT / path).read_text()))
        else:
            shutil.copyfile(ROOT / path, copy)
    (source / "src/SUMMARY.md").write_text(renamed(summary(paths)))
    shutil.copyfile(ROOT / "docs/book.toml", source / "book.toml")


class Page(html.parser.HTMLParser):
    """Links and anchors of a page."""

    def __init__(self, text):
        super().__init__()
        self.links, self.anchors = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if attrs.get("id"):
            self.anchors.add(attrs["id"])
        target = attrs.get("href" if tag == "a" else "src")
        if target and "://" not in target and not target.startswith(("mailto:", "data:")):
            self.links.append(target)


def broken(out):
    """Links of the book that lead nowhere."""
    pages = {}

    def page(path):
        if path not in pages:
            pages[path] = Page(path.read_text())
        return pages[path]

    for path in sorted(out.rglob("*.html")):
        if path.name in ("print.html", "toc.html", "404.html"):
            continue
        for link in page(path).links:
            target, _, anchor = urllib.parse.unquote(link).partition("#")
            found = (path.parent / target).resolve() if target else path
            if not found.exists():
                yield f"{path.relative_to(out)}: {link}"
            elif anchor and found.suffix == ".html" and anchor not in page(found).anchors:
                yield f"{path.relative_to(out)}: {link} (no such heading)"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mdbook", default="mdbook")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "target/book")
    options = parser.parse_args()
    out = options.out.resolve()
    source = out.with_name(out.name + "-source")
    stage(source, tracked())
    subprocess.run([options.mdbook, "build", str(source), "--dest-dir", str(out)], check=True)
    wrong = list(broken(out))
    if wrong:
        sys.exit("links of the book that lead nowhere:\n" + "\n".join(wrong))
    print(f"{out}/index.html")


if __name__ == "__main__":
    main()
