#!/usr/bin/env python3
"""Tries backup and restore: `deploy/backup-drill.py SLUICE [SECONDS]`.

Runs the program SLUICE on a folder of its own, contributes from several agents for SECONDS (10), and meanwhile copies the
data folder with `backup.py` again and again. Then each copy is proven by `sluice check`, served, waited for until nothing
is open, asked for every contribution that was acknowledged before its backup began, and proven again.
"""

import concurrent.futures
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


def environment() -> dict:
    lifted = dict(os.environ, SLUICE__LIMITS__CALLS_PER_IP_PER_MINUTE="100000000")
    lifted["SLUICE__LIMITS__PUBLIC_CONTRIBUTIONS_PER_DAY"] = "100000000"
    return lifted


def call(base: str, method: str, path: str, credential=None, body=None):
    headers = {"Content-Type": "application/json"}
    if credential:
        headers["Authorization"] = f"Bearer {credential}"
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(base + path, data=data, headers=headers, method=method)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


class Service:
    def __init__(self, program: str, data: Path):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.base = f"http://127.0.0.1:{port}"
        command = [program, "serve", "--data", str(data), "--listen", f"127.0.0.1:{port}"]
        self.process = subprocess.Popen(command, env=environment(), stderr=subprocess.DEVNULL)
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


def main() -> int:
    program = sys.argv[1]
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 10.0
    with tempfile.TemporaryDirectory(prefix="sluice-drill-") as folder:
        data = Path(folder) / "live"
        live = Service(program, data)
        added = subprocess.run(
            [program, "admin", "operator", "add", "--email", "drill@example.org", "--name", "Drill", "--data", str(data)],
            env=environment(), capture_output=True, text=True, check=True,
        )
        token = json.loads(added.stdout)["token"]
        key = call(live.base, "POST", "/agents", token, {"name": "drill-writer"})["key"]
        for number in range(2):
            schema = {"fields": [{"name": "writer", "type": "integer"}, {"name": "number", "type": "integer"}]}
            call(live.base, "POST", "/projects", key, {
                "slug": f"drill-{number}", "title": "A drill", "readme": "What the backup drill writes.", "schemaDef": schema,
            })
        acknowledged, over, lock = [], threading.Event(), threading.Lock()

        def write(writer: int) -> None:
            number = 0
            while not over.is_set():
                slug = f"drill-{(writer + number) % 2}"
                records = [{"writer": writer, "number": number * 10 + row} for row in range(10)]
                answer = call(live.base, "POST", f"/projects/{slug}/contribute", key, {"records": records})
                with lock:
                    acknowledged.append((slug, answer["id"]))
                number += 1

        with concurrent.futures.ThreadPoolExecutor(WRITERS) as writers:
            futures = [writers.submit(write, writer) for writer in range(WRITERS)]
            copies = []
            try:
                for number in range(BACKUPS):
                    time.sleep(seconds / BACKUPS)
                    with lock:
                        before = list(acknowledged)
                    copy = Path(folder) / f"copy-{number}"
                    started = time.monotonic()
                    subprocess.run([sys.executable, str(HERE / "backup.py"), str(data), str(copy)], check=True)
                    took = time.monotonic() - started
                    with lock:
                        print(f"copy {number}: {took:.2f} s, {len(before)} acknowledged before it, "
                              f"{len(acknowledged) - len(before)} while it ran")
                    copies.append((copy, before))
            finally:
                over.set()
            for future in futures:
                future.result()
        live.stop()
        print("live:", check(program, data))
        for copy, before in copies:
            print(f"{copy.name} as copied:", check(program, copy))
            restored = Service(program, copy)
            merged = 0
            for slug, identifier in before:
                found = call(restored.base, "GET", f"/projects/{slug}/contributions/{identifier}?wait=20", key)
                if found["status"] != "merged":
                    raise SystemExit(f"{copy.name}: {identifier} is {found['status']}")
                merged += 1
            restored.stop()
            print(f"{copy.name} restored: {merged} of {len(before)} merged;", check(program, copy))
    return 0


if __name__ == "__main__":
    sys.exit(main())
