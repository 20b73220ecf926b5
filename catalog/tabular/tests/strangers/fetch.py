"""Fetches the data files of strangers that inference is measured on, from immutable archives.

    python3 fetch.py FOLDER     fetches what is missing into FOLDER, checks every file and unpacks it to FOLDER/files

`list.tsv` names a file by its archive and path, and by the SHA-256 of its bytes; no such file is kept here. It is every
data file of ten packages, and was made before one of them was read by this project. The clients of the registries
fetch: npm and pip. Nothing that was fetched is run.

Invariant: the output depends on the files beside this script alone. A file that is missing or differs ends the run."""

import hashlib
import importlib.util
import pathlib
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
CORPUS = HERE.parents[3] / "operators" / "models" / "corpus" / "fetch.py"


def load(path):
    """The script at a path as a module; both scripts have the same name."""
    found = importlib.util.spec_from_file_location("corpus", path)
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


# The texts of strangers are fetched by the same clients.
corpus = load(CORPUS)

# Wheels are read and never installed, so those for one system do on every system.
WHEEL = ["--platform", "manylinux_2_28_x86_64", "--platform", "manylinux_2_27_x86_64", "--platform", "any",
         "--implementation", "cp", "--abi", "cp311", "--abi", "none", "--python-version", "3.11"]


def rows():
    """The place and the hash of each file, in the order of the list."""
    lines = (HERE / "list.tsv").read_text(encoding="utf-8").splitlines()
    return [tuple(line.split("\t")) for line in lines]


def unpacked(folder, place):
    """Where the file of a place is kept."""
    _, package, _, path = corpus.split_place(place)
    return folder / "files" / package / path


def fetch_wheels(folder, wanted):
    with tempfile.TemporaryDirectory(dir=folder) as made:
        names = [f"{package}=={version}" for package, version in sorted(wanted)]
        corpus.run_client([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:",
                           "--ignore-requires-python", "--disable-pip-version-check", *WHEEL, "--dest", made, *names],
                          made)
        for archive in pathlib.Path(made).glob("*.whl"):
            archive.replace(folder / "pypi" / archive.name)


def fetch_missing(folder, places):
    missing = {"npm": set(), "pypi": set()}
    for place in places:
        registry, package, version, _ = corpus.split_place(place)
        if registry == "npm":
            found = corpus.npm_archive(folder, package, version).exists()
        else:
            found = corpus.wheel(folder, package, version) is not None
        if not found:
            missing[registry].add((package, version))
    for registry, client in (("npm", corpus.fetch_npm), ("pypi", fetch_wheels)):
        (folder / registry).mkdir(parents=True, exist_ok=True)
        if missing[registry]:
            client(folder, missing[registry])


def content(folder, place):
    registry, package, version, path = corpus.split_place(place)
    read = corpus.npm_file if registry == "npm" else corpus.pypi_file
    return read(folder, package, version, path)


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    listed = rows()
    fetch_missing(folder, [place for place, _ in listed])
    for place, digest in listed:
        file = unpacked(folder, place)
        held = file.read_bytes() if file.exists() else content(folder, place)
        if hashlib.sha256(held).hexdigest() != digest:
            raise corpus.Problem(f"{place}: its bytes differ from those that the list names")
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(held)


if __name__ == "__main__":
    try:
        main()
    except corpus.Problem as problem:
        sys.exit(f"fetch.py: {problem}")
