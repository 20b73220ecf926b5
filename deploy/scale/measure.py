#!/usr/bin/env python3
"""Measures what the capacity model needs: `measure.py SLUICE > measured.json`, with a release build of SLUICE.

Each size runs on a fresh folder: WARM contributions, then ROUNDS that are measured. Time is processor time of the service's
process as the kernel counts it, so that other work on the machine matters little; sizes are read from the stopped service.
"""

import json
import os
import platform
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

SIZES = [20, 100, 500]
WARM, ROUNDS = 20, 200
TICK = os.sysconf("SC_CLK_TCK")
FIELDS = [
    {"name": "station", "type": "string", "required": True},
    {"name": "sample", "type": "integer", "required": True},
    {"name": "value", "type": "number"},
    {"name": "at", "type": "timestamp"},
    {"name": "note", "type": "string"},
]


def record(number: int, row: int) -> dict:
    return {
        "station": f"station-{row % 97:03}",
        "sample": number * 1000 + row,
        "value": (row * 37 + number * 11) % 1000 / 8,
        "at": f"2026-01-{1 + number % 28:02}T{row // 60 % 24:02}:{row % 60:02}:{number % 60:02}Z",
        "note": f"reading {row} of run {number}, taken by the usual instrument in fair weather",
    }


def call(base, method, path, credential=None, body=None):
    headers = {"Content-Type": "application/json"}
    if credential:
        headers["Authorization"] = f"Bearer {credential}"
    request = urllib.request.Request(base + path, None if body is None else json.dumps(body).encode(), headers, method=method)
    with urllib.request.urlopen(request, timeout=120) as answer:
        return json.load(answer)


def processor(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def bytes_below(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def measure(program: str, size: int) -> dict:
    environment = dict(
        os.environ,
        SLUICE__LIMITS__CALLS_PER_IP_PER_MINUTE="100000000",
        SLUICE__LIMITS__PUBLIC_CONTRIBUTIONS_PER_DAY="100000000",
    )
    with tempfile.TemporaryDirectory(prefix="sluice-scale-") as folder:
        data = Path(folder) / "data"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{free.getsockname()[1]}"
        base = f"http://{address}"
        command = [program, "serve", "--data", data, "--listen", address]
        service = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
        try:
            for _ in range(600):
                try:
                    call(base, "GET", "/healthz")
                    break
                except OSError:
                    time.sleep(0.05)
            added = subprocess.run(
                [program, "admin", "operator", "add", "--email", "scale@example.org", "--name", "Scale", "--data", data],
                env=environment, capture_output=True, text=True, check=True,
            )
            token = json.loads(added.stdout)["token"]
            key = call(base, "POST", "/agents", token, {"name": "scale-writer"})["key"]
            call(base, "POST", "/projects", key, {
                "slug": "scale", "title": "Scale", "readme": "What the capacity model is measured on.",
                "schemaDef": {"fields": FIELDS},
            })
            body_bytes = 0
            for number in range(WARM + ROUNDS):
                if number == WARM:
                    before = processor(service.pid)
                body = {"records": [record(number, row) for row in range(size)]}
                body_bytes = len(json.dumps(body, separators=(",", ":")))
                answer = call(base, "POST", "/projects/scale/contribute?wait=20", key, body)
                assert answer["status"] == "merged", answer
            after = processor(service.pid)
        finally:
            service.terminate()
            service.wait(timeout=60)
        contributions = WARM + ROUNDS
        tables = data / "tables"
        files = [file for file in tables.rglob("*") if file.is_file()]
        with sqlite3.connect(data / "sluice.db") as database:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            rows = {
                table: database.execute(f"SELECT count(*) FROM {table}").fetchone()[0] / contributions
                for table in ("contributions", "versions", "outbox")
            }
        return {
            "records": size,
            "contributions": ROUNDS,
            "bodyBytes": body_bytes,
            "processorSeconds": round((after - before) / ROUNDS, 6),
            "databaseBytes": round((data / "sluice.db").stat().st_size / contributions),
            "databaseRows": rows,
            "tableBytes": round(bytes_below(tables) / contributions),
            "partBytes": round(sum(file.stat().st_size for file in files if file.suffix == ".parquet") / contributions),
            "objects": round(len(files) / contributions, 3),
        }


def main() -> int:
    model = next((line.split(": ")[1] for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")), "")
    sizes = [measure(sys.argv[1], size) for size in SIZES]
    print(json.dumps({"machine": {"cores": os.cpu_count(), "processor": model, "system": platform.system()}, "sizes": sizes}, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
