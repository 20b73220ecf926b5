"""Fetches the texts of strangers that the reviewer is fitted to and measured on, from immutable archives.

    python3 fetch.py FOLDER          fetches what is missing into FOLDER, checks every text, writes FOLDER/texts.jsonl
    python3 fetch.py --prose FILE    cuts sections of prose out of the crates of the workspace's Cargo.lock
    python3 fetch.py --count         prints the tables of README.md; needs no archive

A manifest names a text by its archive, path and lines, and by the SHA-256 of these lines; no such text is kept here.
The clients of the registries fetch: cargo, npm and pip. Nothing that was fetched is run.

Invariant: the output depends on the files beside this script alone. A text that is missing or differs ends the run."""

import argparse
import collections
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
WORKSPACE = HERE.parents[2]
HALVES = ("held", "train")
COLUMNS = ("id", "place", "heading", "first", "last", "sha256", "label", "kind", "language", "domain", "author")
DISTINCT_COLUMNS = ("id", "place", "heading", "first", "last", "sha256", "otherHeading", "otherFirst", "otherLast",
                    "otherSha256", "language")
GOOD_KINDS = ("measurement", "procedure", "reference", "limits", "incident", "migration", "changelog", "design")
BAD_KINDS = ("vague", "marketing", "opinion", "off-topic", "stub", "template", "boilerplate")
# Bad texts of these kinds are what somebody would adorn with evidence that he invented.
JUNK_KINDS = ("vague", "marketing", "opinion", "off-topic", "stub")
# One category a domain, so that it says nothing about the label.
CATEGORIES = {
    "storage": "infra-measurement", "numbers": "performance-tuning", "security": "security-hardening",
    "language": "data-quality", "network": "api-limits", "tooling": "tool-usage", "formats": "compat-matrix",
    "services": "integration-procedure",
}
TITLE_CHARACTERS = 200
SECTION_CHARACTERS = range(200, 6001)
# Words outside of code that make a section one of prose, and the most sections of one crate, from all over it.
PROSE_WORDS = 30
PROSE_SECTIONS = 80
PIP_PROCESSES = 4


class Problem(Exception):
    """A sentence for whoever runs this, about what is missing or differs."""


def read_table(path, columns):
    """The rows of a table with tabs, as dictionaries; its first line names the columns."""
    lines = path.read_text(encoding="utf-8").splitlines()
    if not lines or tuple(lines[0].split("\t")) != columns:
        raise Problem(f"{path.name}: the first line is not `{' '.join(columns)}`")
    rows = []
    for number, line in enumerate(lines[1:], 2):
        cells = line.split("\t")
        if len(cells) != len(columns):
            raise Problem(f"{path.name}, line {number}: {len(cells)} cells instead of {len(columns)}")
        rows.append(dict(zip(columns, cells)))
    return rows


def read_lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def strangers(half):
    return read_table(HERE / f"strangers-{half}.tsv", COLUMNS)


def distinct(half):
    return read_table(HERE / f"distinct-{half}.tsv", DISTINCT_COLUMNS)


def copies(half):
    return read_lines(HERE / f"copies-{half}.jsonl")


def gaming(half):
    return read_lines(HERE / f"gaming-{half}.jsonl")


def own_unit(half, name):
    """A unit that the project wrote, from the folder of its half."""
    path = HERE / half / f"{name}.toml"
    if not path.exists():
        raise Problem(f"{half}/{name}.toml is not there, and no text of a stranger is called {name}")
    return tomllib.loads(path.read_text(encoding="utf-8"))


def split_place(place):
    """`npm:moji==0.5.1:README.md` as its registry, package, version and path."""
    registry, rest = place.split(":", 1)
    package, rest = rest.split("==", 1)
    version, path = rest.split(":", 1)
    return registry, package, version, path


# Archives

def crate_file(package, version, path):
    """Bytes of a file of a crate from Cargo's own folders, or None where the crate is not there."""
    home = pathlib.Path(os.environ.get("CARGO_HOME") or pathlib.Path.home() / ".cargo") / "registry"
    name = f"{package}-{version}"
    for folder in sorted(home.glob(f"src/*/{name}")):
        if (folder / path).is_file():
            return (folder / path).read_bytes()
    for archive in sorted(home.glob(f"cache/*/{name}.crate")):
        return tar_file(archive, f"{name}/{path}")
    return None


def tar_file(archive, path):
    with tarfile.open(archive) as tar:
        try:
            return tar.extractfile(path).read()
        except KeyError:
            raise Problem(f"{archive.name} has no file {path}") from None


def npm_archive(folder, package, version):
    return folder / "npm" / f"{package.removeprefix('@').replace('/', '-')}-{version}.tgz"


def npm_file(folder, package, version, path):
    archive = npm_archive(folder, package, version)
    if not archive.exists():
        return None
    with tarfile.open(archive) as tar:
        # The first folder is called `package` nearly always, and everything else in some archives.
        for member in tar.getmembers():
            if member.isfile() and member.name.partition("/")[2] == path:
                return tar.extractfile(member).read()
    raise Problem(f"{archive.name} has no file {path}")


def wheel(folder, package, version):
    plain = re.sub(r"[-_.]+", "_", package).lower()
    for archive in sorted((folder / "pypi").glob("*.whl")):
        name, found = archive.name.split("-")[:2]
        if re.sub(r"[-_.]+", "_", name).lower() == plain and found == version:
            return archive
    return None


def pypi_file(folder, package, version, path):
    archive = wheel(folder, package, version)
    if archive is None:
        return None
    with zipfile.ZipFile(archive) as archived:
        try:
            return archived.read(path)
        except KeyError:
            raise Problem(f"{archive.name} has no file {path}") from None


def read_file(folder, place):
    """Text of the file at a place with line feeds alone, or None where its archive is missing."""
    registry, package, version, path = split_place(place)
    if registry == "crate":
        content = crate_file(package, version, path)
    elif registry == "npm":
        content = npm_file(folder, package, version, path)
    elif registry == "pypi":
        content = pypi_file(folder, package, version, path)
    else:
        raise Problem(f"{place}: `{registry}` is none of crate, npm, pypi")
    if content is None:
        return None
    return content.decode("utf-8").replace("\r\n", "\n")


def run_client(arguments, folder):
    result = subprocess.run(arguments, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if result.returncode != 0:
        words = " ".join(arguments[:4])
        raise Problem(f"`{words} …` ended with {result.returncode}:\n{result.stderr.strip()[-2000:]}")


def fetch_crates(folder, wanted):
    """Has Cargo fetch crates by a package that depends on just them; it keeps them in its own folders."""
    manifest = ["[package]", 'name = "texts"', 'version = "0.0.0"', 'edition = "2021"', "[lib]", 'path = "lib.rs"']
    manifest.append("[dependencies]")
    for number, (package, version) in enumerate(sorted(wanted)):
        manifest.append(f'c{number} = {{ package = "{package}", version = "={version}", default-features = false }}')
    with tempfile.TemporaryDirectory(dir=folder) as made:
        (pathlib.Path(made) / "Cargo.toml").write_text("\n".join(manifest) + "\n[workspace]\n", encoding="utf-8")
        (pathlib.Path(made) / "lib.rs").write_text("", encoding="utf-8")
        # The target keeps what only other systems depend on out of the folders.
        run_client(["cargo", "fetch", "--quiet", "--target", "x86_64-unknown-linux-gnu"], made)


def fetch_npm(folder, wanted):
    if shutil.which("npm") is None:
        raise Problem("npm is not on the PATH; it fetches " + ", ".join(f"{p} {v}" for p, v in sorted(wanted)))
    with tempfile.TemporaryDirectory(dir=folder) as made:
        names = [f"{package}@{version}" for package, version in sorted(wanted)]
        run_client(["npm", "pack", "--loglevel=error", "--ignore-scripts", *names], made)
        for archive in pathlib.Path(made).glob("*.tgz"):
            archive.replace(folder / "npm" / archive.name)


def fetch_wheels(folder, wanted):
    # Wheels for any machine, whatever Python runs this: an archive is read and never installed.
    options = ["--quiet", "--no-deps", "--only-binary=:all:", "--platform", "any", "--implementation", "py", "--abi",
               "none", "--python-version", "3.13", "--ignore-requires-python", "--disable-pip-version-check"]
    with tempfile.TemporaryDirectory(dir=folder) as made:
        names = [f"{package}=={version}" for package, version in sorted(wanted)]
        run_client([sys.executable, "-m", "pip", "download", *options, "--dest", made, *names], made)
        for archive in pathlib.Path(made).glob("*.whl"):
            archive.replace(folder / "pypi" / archive.name)


def fetch_missing(folder, places):
    """Fetches the archives of places that are not there yet."""
    missing = collections.defaultdict(set)
    for place in sorted(places):
        registry, package, version, path = split_place(place)
        if registry == "crate":
            found = crate_file(package, version, path) is not None
        elif registry == "npm":
            found = npm_archive(folder, package, version).exists()
        else:
            found = wheel(folder, package, version) is not None
        if not found:
            missing[registry].add((package, version))
    for registry in ("npm", "pypi"):
        (folder / registry).mkdir(parents=True, exist_ok=True)
    work = []
    if missing["crate"]:
        work.append((fetch_crates, missing["crate"]))
    if missing["npm"]:
        work.append((fetch_npm, missing["npm"]))
    wheels = sorted(missing["pypi"])
    work.extend((fetch_wheels, part) for part in (wheels[n::PIP_PROCESSES] for n in range(PIP_PROCESSES)) if part)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        for done in [pool.submit(fetch, folder, wanted) for fetch, wanted in work]:
            done.result()


# Texts

def span_of(lines, first, last):
    """The lines from the first to the last, counted from one."""
    return "\n".join(lines[int(first) - 1:int(last)])


def plain_heading(line):
    """Words of a heading without marks, links and pictures."""
    line = re.sub(r"^\s*#+\s*|\s*#+\s*$", "", line)
    line = re.sub(r"!\[[^\]]*\](\([^)]*\)|\[[^\]]*\])", "", line)
    line = re.sub(r"\[([^\]]*)\](\([^)]*\)|\[[^\]]*\])?", r"\1", line)
    line = re.sub(r"<[^>]*>|\]\(.*", "", line)
    return " ".join(line.replace("`", "").replace("*", "").split())


def declared_source(package, version):
    """What a seller would declare, in the same words for good texts and bad ones."""
    return f"{package} {version}, documentation in the archive"


def unit(folder, files, row, heading, first, last, sha256):
    """Title, body and declared source of a span, after its hash was compared."""
    place = row["place"]
    if place not in files:
        text = read_file(folder, place)
        if text is None:
            raise Problem(f"{row['id']}: {place} could not be fetched")
        files[place] = text.split("\n")
    body = span_of(files[place], first, last)
    found = hashlib.sha256(body.encode()).hexdigest()
    if found != sha256:
        raise Problem(f"{row['id']}: lines {first} to {last} of {place} have the SHA-256 {found} instead of {sha256}")
    _, package, version, _ = split_place(place)
    title = f"{package}: {plain_heading(span_of(files[place], heading, heading))}"
    return {"title": title[:TITLE_CHARACTERS], "body": body, "source": declared_source(package, version)}


def texts(folder):
    """Every text: those of strangers, neighbours that are distinct, and copies."""
    files = {}
    for half in HALVES:
        originals = {}
        for row in strangers(half):
            parts = unit(folder, files, row, row["heading"], row["first"], row["last"], row["sha256"])
            originals[row["id"]] = parts
            yield {
                "id": row["id"], "half": half, **parts, "category": CATEGORIES[row["domain"]], "label": row["label"],
                "kind": row["kind"], "language": row["language"], "domain": row["domain"], "author": row["author"],
                "junk": row["kind"] in JUNK_KINDS,
            }
        for row in distinct(half):
            yield from neighbours(folder, files, half, row)
        for row in copies(half):
            yield copy(half, row, originals)


def neighbours(folder, files, half, row):
    """The two texts of a pair that have one template and different facts."""
    spans = (
        ("a", "b", [row[key] for key in ("heading", "first", "last", "sha256")]),
        ("b", "a", [row[key] for key in ("otherHeading", "otherFirst", "otherLast", "otherSha256")]),
    )
    for name, beside, span in spans:
        yield {
            "id": f"{row['id']}-{name}", "half": half, **unit(folder, files, row, *span), "category": "migration-guide",
            "label": "distinct", "kind": "same-template", "language": row["language"], "domain": "releases",
            "author": split_place(row["place"])[1], "junk": False, "beside": f"{row['id']}-{beside}",
        }


def copy(half, row, originals):
    """A copy; a padded one keeps what was written around the original, which stays where it is."""
    original = originals.get(row["copyOf"]) or own_unit(half, row["copyOf"])
    if row["kind"] == "padded":
        title = original["title"]
        body = "\n\n".join(part for part in (row["before"], original["body"].strip(), row["after"]) if part)
    else:
        title, body = row["title"], row["body"]
    return {
        "id": row["id"], "half": half, "title": title, "body": body, "category": row["category"],
        "source": row["source"], "label": "copied", "kind": row["kind"], "language": row["language"],
        "domain": "copies", "author": "project", "junk": False, "copyOf": row["copyOf"],
    }


def check_manifests():
    """Refuses what would let one half know the other, and what no reader of the output expects."""
    for line in (HERE / "held-files.sha256").read_text(encoding="utf-8").splitlines():
        expected, name = line.split()
        if hashlib.sha256((HERE / name).read_bytes()).hexdigest() != expected:
            raise Problem(f"{name} was changed since it was held back; held-files.sha256 says another hash")
    seen, owners = set(), collections.defaultdict(set)
    for half in HALVES:
        for row in strangers(half):
            if row["id"] in seen:
                raise Problem(f"{row['id']} is there twice")
            seen.add(row["id"])
            kinds = {"good": GOOD_KINDS, "bad": BAD_KINDS}.get(row["label"], ())
            if row["kind"] not in kinds:
                raise Problem(f"{row['id']}: {row['kind']} is no kind of {row['label']}")
            if row["domain"] not in CATEGORIES:
                raise Problem(f"{row['id']}: {row['domain']} is no domain")
            package = row["place"].split("==")[0]
            for owner in (f"author {row['author']}", f"domain {row['domain']}", f"package {package}"):
                owners[owner].add(half)
    both = sorted(owner for owner, halves in owners.items() if len(halves) > 1)
    if both:
        raise Problem("in both halves: " + ", ".join(both))
    for half in HALVES:
        for row in distinct(half):
            if owners.get("package " + row["place"].split("==")[0], {half}) != {half}:
                raise Problem(f"{row['id']}: its package is of the other half")
    families = [{row["family"] for row in gaming(half)} for half in HALVES]
    if families[0] & families[1]:
        raise Problem("families of gaming in both halves: " + ", ".join(sorted(families[0] & families[1])))


def fetch_texts(folder):
    check_manifests()
    folder.mkdir(parents=True, exist_ok=True)
    rows = [row for half in HALVES for row in strangers(half) + distinct(half)]
    fetch_missing(folder, {row["place"] for row in rows})
    lines = [json.dumps(text, ensure_ascii=False) for text in texts(folder)]
    fresh = folder / "texts.jsonl.fresh"
    fresh.write_text("\n".join(lines) + "\n", encoding="utf-8")
    fresh.replace(folder / "texts.jsonl")
    print(f"{len(lines)} texts in {folder / 'texts.jsonl'}", file=sys.stderr)


# Sections of prose for the count of false alarms

def sections(text):
    """Heading and lines of each section of a Markdown file."""
    heading, lines, fenced = "", [], False
    for line in text.split("\n"):
        if re.match(r"\s*(```|~~~)", line):
            fenced = not fenced
        if not fenced and re.match(r"#{1,6}\s+\S", line):
            yield heading, lines
            heading, lines = plain_heading(line), []
        else:
            lines.append(line)
    yield heading, lines


def comments(text):
    """Item and lines of each block of documentation in a Rust file."""
    lines = []
    for line in text.split("\n"):
        found = re.match(r"\s*//[/!] ?(?!/)(.*)", line)
        if found:
            lines.append(found.group(1))
        elif lines:
            yield line.strip().split("{")[0].strip(), lines
            lines = []


def is_prose(body):
    outside = re.sub(r"(```|~~~).*?(\1|$)", " ", body, flags=re.S)
    words = re.findall(r"[^\W\d_]{2,}", re.sub(r"`[^`]*`|\(\S*\)|\S*[/_:]\S*", " ", outside))
    return len(words) >= PROSE_WORDS


def prose():
    """Sections of prose of every crate that Cargo.lock names and Cargo has, each body once."""
    seen, absent = set(), []
    with open(WORKSPACE / "Cargo.lock", "rb") as lock:
        packages = tomllib.load(lock)["package"]
    home = pathlib.Path(os.environ.get("CARGO_HOME") or pathlib.Path.home() / ".cargo") / "registry"
    for package in packages:
        if "source" not in package:
            continue
        name, version = package["name"], package["version"]
        folder = next(iter(sorted(home.glob(f"src/*/{name}-{version}"))), None)
        if folder is None:
            absent.append(f"{name} {version}")
            continue
        found = []
        for path in sorted(folder.rglob("*")):
            cut = {".md": sections, ".markdown": sections, ".rs": comments}.get(path.suffix)
            if cut is None or not path.is_file():
                continue
            text = path.read_bytes().decode("utf-8", "replace").replace("\r\n", "\n")
            for number, (heading, lines) in enumerate(cut(text)):
                body = "\n".join(lines).strip()
                if len(body) in SECTION_CHARACTERS and body not in seen and is_prose(body):
                    seen.add(body)
                    found.append((path.relative_to(folder), number, heading, body))
        kept = min(len(found), PROSE_SECTIONS)
        for inside, number, heading, body in (found[n * len(found) // kept] for n in range(kept)):
            yield {
                "id": f"{name}-{version}/{inside}#{number}", "title": f"{name}: {heading or inside}"[:TITLE_CHARACTERS],
                "body": body, "category": "tool-usage", "source": declared_source(name, version),
                "author": name,
            }
    if absent:
        print(f"{len(absent)} crates are not in Cargo's folders (`cargo fetch` brings them): {', '.join(absent[:5])} …",
              file=sys.stderr)


def write_prose(path):
    count = 0
    with open(path, "w", encoding="utf-8") as out:
        for section in prose():
            out.write(json.dumps(section, ensure_ascii=False) + "\n")
            count += 1
    print(f"{count} sections of prose in {path}", file=sys.stderr)


# Counts

def print_counts():
    check_manifests()
    for half in HALVES:
        rows = strangers(half)
        languages = sorted({row["language"] for row in rows})
        print(f"\nStrangers, {half}: {len(rows)} texts\n")
        print("| label | kind | " + " | ".join(languages) + " | all | authors |")
        print("|-|-|" + "-|" * (len(languages) + 2))
        for label, kinds in (("good", GOOD_KINDS), ("bad", BAD_KINDS)):
            for kind in (*kinds, None):
                found = [row for row in rows if row["label"] == label and kind in (row["kind"], None)]
                cells = [str(sum(row["language"] == language for row in found)) for language in languages]
                authors = len({row["author"] for row in found})
                print(f"| {label} | {kind or '**all**'} | {' | '.join(cells)} | {len(found)} | {authors} |")
        domains = collections.Counter(row["domain"] for row in rows)
        print("\nDomains: " + ", ".join(f"{name} {count}" for name, count in sorted(domains.items())))
        print(f"Junk to be gamed: {sum(row['kind'] in JUNK_KINDS for row in rows)}")
        tables = ((f"Copies, {half}", copies(half), "kind"), (f"Distinct pairs, {half}", distinct(half), "language"),
                  (f"Gaming, {half}", gaming(half), "family"))
        for name, rows, key in tables:
            found = collections.Counter(row[key] for row in rows)
            parts = ", ".join(f"{kind} {count}" for kind, count in sorted(found.items()))
            print(f"\n{name}: {len(rows)} ({parts})")


def main():
    parser = argparse.ArgumentParser(description="Fetches the labelled texts of strangers.")
    parser.add_argument("folder", nargs="?", type=pathlib.Path, help="where archives and texts.jsonl go")
    parser.add_argument("--prose", type=pathlib.Path, metavar="FILE",
                        help="write sections of prose of the crates instead")
    parser.add_argument("--count", action="store_true", help="print the tables of counts instead")
    arguments = parser.parse_args()
    try:
        if arguments.count:
            print_counts()
        elif arguments.prose:
            write_prose(arguments.prose)
        elif arguments.folder:
            fetch_texts(arguments.folder.resolve())
        else:
            parser.error("name a folder")
    except Problem as problem:
        print(f"error: {problem}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
