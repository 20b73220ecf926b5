#!/usr/bin/env python3
"""Tries backup and restore: `deploy/backup-drill.py SLUICE [SECONDS]`.

Runs the program SLUICE on a folder of its own, contributes from several writers for SECONDS (10) and submits units, and
meanwhile copies the data folder with `backup.py` again and again. Then each copy is proven by `sluice check`, served, waited
for until nothing is open, asked for every contribution and every unit that was acknowledged before its backup began, and
proven again. A unit has the text that was submitted; one that was decided before the backup began has the same outcome.
Private datasets are made and deleted all the while: one that was deleted before the backup began is in no copy.
Credits were granted in a month that is over, and that month of the ledger is archived after the first copy.
"""

import concurrent.futures
import datetime
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

HERE = Path(__file__).parent
WRITERS = 4
BACKUPS = 3
# The service runs in a month after that of its first events.
LATER = {"SLUICE__CLOCK__OFFSET": "45d", "SLUICE__PAY__DISPUTE_WINDOW": "1s"}
STORES = ("ext4", "XFS", "ZFS", "Btrfs", "tmpfs", "NFS")
ENGINES = ("SQLite", "PostgreSQL", "RocksDB", "LMDB", "DuckDB")
DECIDED = ("published", "rejected")


def environment(later: bool = True) -> dict:
    lifted = dict(os.environ, SLUICE__LIMITS__CALLS_PER_IP_PER_MINUTE="100000000")
    if later:
        lifted.update(LATER)
    lifted["SLUICE__LIMITS__PUBLIC_CONTRIBUTIONS_PER_DAY"] = "100000000"
    lifted["SLUICE__LIMITS__KNOWLEDGE_PER_DAY"] = "100000000"
    lifted["SLUICE__LIMITS__SUBMISSIONS_PER_AGENT_PER_HOUR"] = "100000000"
    return lifted


def unit(number: int) -> dict:
    """Returns a unit whose text differs from those of other numbers in more than the number."""
    store, engine = STORES[number % len(STORES)], ENGINES[number // len(STORES) % len(ENGINES)]
    body = (f"{engine} on {store}, run {number}: {1200 + 37 * number} commits/s with one writer, p99 {3 + number % 11} ms over "
            f"{10 + number % 7} minutes; fsync took {40 + number % 13} % of the time. Reproduce: 4 vCPU, 8 GB, kernel 6.8, "
            f"batches of {1 + number % 64} rows, page size {4096 << number % 3} bytes.")
    return {
        "title": f"{engine} commits on {store}, run {number}", "body": body, "category": "infra-measurement",
        "sourceDeclaration": f"Measured by the backup drill on {store}.",
    }


def call(base: str, method: str, path: str, credential=None, body=None):
    headers = {"Content-Type": "application/json"}
    if credential:
        headers["Authorization"] = f"Bearer {credential}"
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(base + path, data=data, headers=headers, method=method)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


class Service:
    def __init__(self, program: str, data: Path, later: bool = True):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.base = f"http://127.0.0.1:{port}"
        command = [program, "serve", "--data", str(data), "--listen", f"127.0.0.1:{port}"]
        self.process = subprocess.Popen(command, env=environment(later), stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while True:
            try:
                call(self.base, "GET", "/healthz")
                return
            except OSError:
                if time.monotonic() > deadline or self.process.poll() is not None:
                    raise SystemExit("the service did not start")
                time.sleep(0.05)

    def stop(self):
        self.process.terminate()
        self.process.wait(timeout=60)


def check(program: str, data: Path) -> str:
    done = subprocess.run([program, "check", "--data", str(data)], env=environment(), capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"`sluice check` of {data}:\n{done.stdout}{done.stderr}")
    return done.stdout.strip().splitlines()[-1]


def administer(program: str, data: Path, *arguments: str, later: bool = True) -> dict:
    command = [program, *arguments, "--data", str(data)]
    done = subprocess.run(command, env=environment(later), capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def archive(program: str, data: Path) -> list:
    """Archives every month before this one, once the service has sealed its days."""
    now = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=45)
    command = [program, "ledger", "archive", "--before", f"{now:%Y-%m}", "--data", str(data)]
    deadline = time.monotonic() + 120
    while True:
        done = subprocess.run(command, env=environment(), capture_output=True, text=True)
        if done.returncode == 0:
            return json.loads(done.stdout)["archived"]
        if time.monotonic() > deadline or "not sealed" not in done.stderr:
            raise SystemExit(f"`sluice ledger archive`:\n{done.stdout}{done.stderr}")
        time.sleep(0.5)


def main() -> int:
    program = sys.argv[1]
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 10.0
    with tempfile.TemporaryDirectory(prefix="sluice-drill-") as folder:
        data = Path(folder) / "live"
        first = Service(program, data, later=False)
        added = administer(
            program, data, "admin", "operator", "add", "--email", "drill@example.org", "--name", "Drill", later=False
        )
        operator, token = added["operatorId"], added["token"]
        for cents in (100, 200):
            administer(program, data, "admin", "credits", "grant", operator, "--cents", str(cents), later=False)
        first.stop()
        live = Service(program, data)
        administer(program, data, "admin", "credits", "grant", operator, "--cents", "50")
        key = call(live.base, "POST", "/agents", token, {"name": "drill-writer"})["key"]
        for number in range(2):
            schema = {"fields": [{"name": "writer", "type": "integer"}, {"name": "number", "type": "integer"}]}
            call(live.base, "POST", "/projects", key, {
                "slug": f"drill-{number}", "title": "A drill", "readme": "What the backup drill writes.", "schemaDef": schema,
            })
        acknowledged, units, deleted, over, lock = [], {}, [], threading.Event(), threading.Lock()

        def write(writer: int) -> None:
            number = 0
            while not over.is_set():
                slug = f"drill-{(writer + number) % 2}"
                records = [{"writer": writer, "number": number * 10 + row} for row in range(10)]
                answer = call(live.base, "POST", f"/projects/{slug}/contribute", key, {"records": records})
                with lock:
                    acknowledged.append((slug, answer["id"]))
                number += 1

        def submit() -> None:
            number = 0
            while not over.is_set():
                text = unit(number)
                identifier = call(live.base, "POST", "/knowledge", key, text)["id"]
                with lock:
                    units[identifier] = (text, None)
                status = call(live.base, "GET", f"/knowledge/{identifier}?wait=5", key)["status"]
                if status in DECIDED:
                    with lock:
                        units[identifier] = (text, status)
                number += 1

        def delete() -> None:
            number = 0
            while not over.is_set():
                slug = f"drill-private-{number}"
                call(live.base, "POST", "/projects", key, {
                    "slug": slug, "title": "A drill", "readme": "What the backup drill deletes.", "schemaDef": schema,
                    "visibility": "private",
                })
                for row in range(3):
                    records = [{"writer": -1, "number": row}]
                    call(live.base, "POST", f"/projects/{slug}/contribute?wait={row}", key, {"records": records})
                call(live.base, "DELETE", f"/projects/{slug}", key)
                with lock:
                    deleted.append(slug)
                number += 1

        with concurrent.futures.ThreadPoolExecutor(WRITERS + 2) as writers:
            futures = [writers.submit(write, writer) for writer in range(WRITERS)]
            futures += [writers.submit(submit), writers.submit(delete)]
            copies = []
            try:
                for number in range(BACKUPS):
                    time.sleep(seconds / BACKUPS)
                    with lock:
                        before, texts, gone = list(acknowledged), dict(units), list(deleted)
                    copy = Path(folder) / f"copy-{number}"
                    started = time.monotonic()
                    subprocess.run([sys.executable, str(HERE / "backup.py"), str(data), str(copy)], check=True)
                    took = time.monotonic() - started
                    with lock:
                        print(f"copy {number}: {took:.2f} s, {len(before)} contributions and {len(texts)} units acknowledged "
                              f"before it, {len(acknowledged) - len(before)} and {len(units) - len(texts)} while it ran")
                    copies.append((copy, before, texts, gone))
                    if number == 0:
                        months = archive(program, data)
                        print(f"archived: {', '.join(month['month'] for month in months)}")
                        if len(months) != 1 or months[0]["movements"] < 2:
                            raise SystemExit(f"other months were archived: {months}")
                    files = sorted(path.name for path in (copy / "ledger").glob("*"))
                    if len(files) != 2 * (number > 0):
                        raise SystemExit(f"{copy.name} has the archived files {files}")
            finally:
                over.set()
            for future in futures:
                future.result()
        live.stop()
        print("live:", check(program, data))
        for copy, before, texts, gone in copies:
            print(f"{copy.name} as copied:", check(program, copy))
            restored = Service(program, copy)
            merged = 0
            for slug, identifier in before:
                found = call(restored.base, "GET", f"/projects/{slug}/contributions/{identifier}?wait=20", key)
                if found["status"] != "merged":
                    raise SystemExit(f"{copy.name}: {identifier} is {found['status']}")
                merged += 1
            for slug in gone:
                try:
                    call(restored.base, "GET", f"/projects/{slug}", key)
                except urllib.error.HTTPError as answer:
                    if answer.code == 404:
                        continue
                    raise
                raise SystemExit(f"{copy.name}: {slug} was deleted and is there")
            outcomes = dict.fromkeys(DECIDED, 0)
            for identifier, (text, decided) in texts.items():
                found = call(restored.base, "GET", f"/knowledge/{identifier}?wait=20", key)
                changed = [name for name, value in text.items() if found[name] != value]
                if changed:
                    raise SystemExit(f"{copy.name}: {', '.join(changed)} of the unit {identifier} changed")
                if found["status"] not in DECIDED or decided not in (None, found["status"]):
                    raise SystemExit(f"{copy.name}: the unit {identifier} is {found['status']} and was {decided or 'open'}")
                outcomes[found["status"]] += 1
            restored.stop()
            print(f"{copy.name} restored: {merged} of {len(before)} merged, "
                  f"{outcomes['published']} units published and {outcomes['rejected']} rejected, "
                  f"{len(gone)} datasets deleted;", check(program, copy))
    return 0


if __name__ == "__main__":
    sys.exit(main())
