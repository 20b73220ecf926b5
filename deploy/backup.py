#!/usr/bin/env python3
"""Copies the data folder of a running service: `deploy/backup.py DATA TARGET`.

Only for the embedded parts (SQLite, tables in a folder). Needs nothing but Python 3.9 and read access. TARGET must not
exist; it gets a data folder of its own, which `sluice check --data TARGET` proves and `sluice serve --data TARGET` runs.

Invariants:
- The database is copied first, at one instant T, so the tables have everything that it says is merged.
- A table is cut before its first commit of a contribution that was acknowledged after T, so the copy is the service as it
  was at T: what was acknowledged by then is merged in it, or open and merged after the restore. The same holds for the
  table of published knowledge units; a commit of it has the name of the first unit that it publishes.
- The files of archived months of the ledger are copied after the database. They never change and are older than the
  database that needs them; one that is not needed yet is copied too.
- The key of the treasury is copied if there is one.
- The parts of uploads that are completed and not decided at T are copied. They are held by links before the database is
  copied, as the service deletes them once they are decided.
- Of a dataset that is deleted at T nothing is copied but the commits that say so. If one is deleted while its table is
  copied, the copy begins anew, at another instant.
- The log and the indexes are not copied: both are made from the database and the tables when the copy is started.
"""

import json
import os
import shutil
import sqlite3
import sys
from pathlib import Path

# Tries of a copy, each of which a deletion of a dataset may spoil.
TRIES = 5

# The table of published knowledge units, which belongs to no project.
KNOWLEDGE = "00000000-0000-7000-806b-6e6f776c6564"


class Deleted(Exception):
    """A dataset that the copied database has was deleted since."""


def durable(path: Path) -> None:
    """Makes a file or a folder survive a power cut."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def copy(source: Path, target: Path) -> None:
    shutil.copyfile(source, target)
    durable(target)


def hold_uploads(source: Path, target: Path) -> None:
    """Links the parts of sealed uploads, which never change; those that are deleted meanwhile are left out."""
    for seal in source.glob("*/sealed"):
        held = target / seal.parent.name
        if held.exists():
            continue
        held.mkdir(parents=True)
        try:
            # The seal at last: what has one is whole.
            parts = [part for part in seal.parent.iterdir() if part.name != seal.name]
            for part in [*parts, seal]:
                link(part, held / part.name)
        except FileNotFoundError:
            shutil.rmtree(held)


def link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except FileNotFoundError:
        raise
    except OSError:
        # Another file system, or one without links.
        copy(source, target)


def undecided_uploads(database: Path) -> set:
    """The uploads whose parts the service needs once it is started."""
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as copied:
        rows = copied.execute(
            "SELECT uploads.id FROM uploads JOIN contributions ON contributions.id = uploads.id"
            " WHERE uploads.freed_at IS NULL"
            " AND (contributions.status NOT IN ('merged', 'rejected') OR contributions.reject_code = 'unprocessable')"
        )
        return {identifier for (identifier,) in rows}


def copy_with_uploads(data: Path, target: Path) -> tuple:
    """The database with the parts of its undecided uploads; the contributions and units that it has, by table, and the deleted tables."""
    held = target / "uploads"
    held.mkdir()
    for attempt in range(3):
        hold_uploads(data / "uploads", held)
        known, deleted = copy_database(data / "sluice.db", target / "sluice.db")
        needed = undecided_uploads(target / "sluice.db")
        # What was completed since the links were made, and is not decided yet.
        hold_uploads(data / "uploads", held)
        missing = needed - {folder.name for folder in held.iterdir()}
        if not missing or attempt == 2:
            break
        # Completed and decided between: at another instant it is one or the other.
        (target / "sluice.db").unlink()
    for identifier in sorted(missing):
        print(f"the parts of upload {identifier} are gone from `{data}`, and not in the copy", file=sys.stderr)
    for folder in held.iterdir():
        if folder.name not in needed:
            shutil.rmtree(folder)
    return known, deleted


def copy_database(source: Path, target: Path) -> tuple:
    """The database at one instant; the contributions and units that it has, by table, and the deleted tables."""
    with sqlite3.connect(f"file:{source}?mode=ro", uri=True, timeout=30) as live:
        with sqlite3.connect(target) as copied:
            # All pages in one step: a copy in several begins anew with every change.
            live.backup(copied)
            copied.execute("PRAGMA journal_mode = DELETE")
            known = {project: set() for (project,) in copied.execute("SELECT id FROM projects")}
            for identifier, project in copied.execute("SELECT id, project_id FROM contributions"):
                known[project].add(identifier)
            known[KNOWLEDGE] = {identifier for (identifier,) in copied.execute("SELECT id FROM units")}
            columns = {row[1] for row in copied.execute("PRAGMA table_info(projects)")}
            # A database of an older program has no deleted dataset.
            query = "SELECT id FROM projects WHERE deleted_at IS NOT NULL"
            deleted = {project for (project,) in copied.execute(query)} if "deleted_at" in columns else set()
    durable(target)
    return known, deleted


def is_deletion(actions: list) -> bool:
    return actions[0].get("commitInfo", {}).get("operation") == "DROP TABLE"


def copy_end(source: Path, target: Path) -> None:
    """The commits that say that a table was deleted."""
    for commit in (source / "_delta_log").glob("[0-9]" * 20 + ".json"):
        try:
            text = commit.read_text(encoding="utf-8")
        except FileNotFoundError:
            # The service deletes it.
            continue
        if text.count("\n") == 1 and is_deletion([json.loads(text)]):
            (target / "_delta_log").mkdir(parents=True, exist_ok=True)
            copy(commit, target / "_delta_log" / commit.name)


def copy_table(source: Path, target: Path, known: set) -> int:
    """The commits up to the first that the database does not know, with their parts; how many versions they are."""
    try:
        return copy_commits(source, target, known)
    except FileNotFoundError as missing:
        # Only a deletion takes commits and parts away.
        raise Deleted(source.name) from missing


def copy_commits(source: Path, target: Path, known: set) -> int:
    commits = sorted((source / "_delta_log").glob("[0-9]" * 20 + ".json"))
    if not commits:
        return 0
    (target / "_delta_log").mkdir(parents=True)
    versions = 0
    for commit in commits:
        actions = [json.loads(line) for line in commit.read_text(encoding="utf-8").splitlines()]
        if is_deletion(actions):
            raise Deleted(source.name)
        for action in actions:
            contribution = action.get("commitInfo", {}).get("sluice", {}).get("contribution")
            if contribution is not None and contribution not in known:
                return versions
        for action in actions:
            if "add" in action:
                name = action["add"]["path"]
                copy(source / name, target / name)
        copy(commit, target / "_delta_log" / commit.name)
        versions += any("txn" in action for action in actions)
    return versions


def copy_losses(source: Path, target: Path) -> None:
    """The accepted losses of a table, which nothing else tells."""
    losses = source / "_sluice" / "losses"
    if losses.is_file():
        (target / "_sluice").mkdir(parents=True, exist_ok=True)
        copy(losses, target / "_sluice" / "losses")


def copy_prints(source: Path, target: Path, known: set) -> None:
    """What copies of units are found by, each file of which is older than its commit."""
    missing = True
    while missing:
        missing = False
        for prints in source.glob("_sluice/prints-*"):
            copied = target / "_sluice" / prints.name
            if prints.name[len("prints-") :][:36] in known and not copied.exists():
                copied.parent.mkdir(parents=True, exist_ok=True)
                try:
                    copy(prints, copied)
                except FileNotFoundError:
                    # An erasure put another file in its place, which the next round finds.
                    copied.unlink(missing_ok=True)
                    missing = True


def copy_ledger(data: Path, target: Path) -> int:
    """The archived months of the ledger; how many they are."""
    months = 0
    for kind in ("json", "parquet"):
        for month in sorted((data / "ledger").glob(f"*.{kind}")):
            (target / "ledger").mkdir(exist_ok=True)
            copy(month, target / "ledger" / month.name)
            months += kind == "parquet"
    return months


def copy_treasury(data: Path, target: Path) -> None:
    """The key that payouts are signed with. Without it the service would make another, and be paid elsewhere."""
    key = data / "keys" / "treasury"
    if key.is_file():
        (target / "keys").mkdir(mode=0o700)
        (target / "keys" / "treasury").touch(mode=0o600)
        copy(key, target / "keys" / "treasury")


def copy_all(data: Path, target: Path) -> tuple:
    """The database and the tables; the contributions and units by table, and the number of versions."""
    known, deleted = copy_with_uploads(data, target)
    (target / "tables").mkdir()
    versions = 0
    for table, identifiers in known.items():
        source, copied = data / "tables" / table, target / "tables" / table
        if table in deleted:
            copy_end(source, copied)
        elif source.is_dir():
            count = copy_table(source, copied, identifiers)
            versions += count if table != KNOWLEDGE else 0
            copy_losses(source, copied)
    return known, versions


def main() -> int:
    if len(sys.argv) != 3:
        print(__doc__.splitlines()[0], file=sys.stderr)
        return 2
    data, target = Path(sys.argv[1]), Path(sys.argv[2])
    if not (data / "sluice.db").is_file():
        print(f"there is no service in `{data}`", file=sys.stderr)
        return 1
    for left in reversed(range(TRIES)):
        # It has the keys that manifests are signed with.
        target.mkdir(mode=0o700, parents=True)
        try:
            known, versions = copy_all(data, target)
            break
        except Deleted as deleted:
            shutil.rmtree(target)
            if not left:
                print(f"datasets are deleted while they are copied, the last was {deleted}; try again", file=sys.stderr)
                return 1
    units = known.pop(KNOWLEDGE)
    copy_prints(data / "tables" / KNOWLEDGE, target / "tables" / KNOWLEDGE, units)
    months = copy_ledger(data, target)
    copy_treasury(data, target)
    for folder, _, _ in os.walk(target, topdown=False):
        durable(Path(folder))
    contributions = sum(map(len, known.values()))
    print(f"{len(known)} projects, {contributions} contributions, {versions} versions, {len(units)} units, "
          f"{months} archived months in `{target}`")
    return 0


if __name__ == "__main__":
    sys.exit(main())
