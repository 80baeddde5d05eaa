"""The outcomes of runs, one JSON line each, so that runs of several calls, or of several machines, are one result.

A line has the kernel, the device, the versions of the packages, the digest of the emulator and what worker.py printed.
"""
import hashlib
import json
import pathlib
import threading


class JournalError(Exception):
    pass


class Journal:
    """Thread-safe. Without a path the outcomes are kept for this call only."""

    def __init__(self, path, library):
        self._path = pathlib.Path(path) if path else None
        self._library = hashlib.sha256(pathlib.Path(library).read_bytes()).hexdigest()[:12] if library else None
        self._versions = {}
        self._outcomes = {}
        self._lock = threading.Lock()
        if not self._path or not self._path.exists():
            return
        for number, line in enumerate(self._path.read_text().splitlines(), 1):
            try:
                self._take(json.loads(line))
            except (ValueError, KeyError, TypeError) as error:
                raise JournalError(f"{path}:{number}: not the outcome of a run") from error

    def _take(self, outcome):
        kernel, versions, library = outcome.pop("kernel"), outcome.pop("versions"), outcome.pop("library")
        self._agree(kernel, versions)
        if self._library is None:
            self._library = library
        if library != self._library:
            raise JournalError(f"{self._path}: {kernel} ran on another emulator: one journal for each")
        self._outcomes.setdefault((kernel, outcome.pop("device")), {})[outcome["profile"], outcome["order"]] = outcome

    def _agree(self, kernel, versions):
        if self._versions.setdefault(kernel, versions) != versions:
            raise JournalError(f"{self._path}: {kernel} ran with {', '.join(self._versions[kernel])} and with "
                               f"{', '.join(versions)}: one journal for each")

    def made_with(self, kernel, versions):
        """What the runs to come are made with. Error: others than those in the file."""
        self._agree(kernel, versions)

    def note(self, kernel, device, outcome):
        with self._lock:
            self._outcomes.setdefault((kernel, device), {})[outcome["profile"], outcome["order"]] = outcome
            if self._path:
                line = {"kernel": kernel, "device": device, "versions": self._versions[kernel], "library": self._library}
                with self._path.open("ab", buffering=0) as file:
                    file.write((json.dumps(line | outcome) + "\n").encode())

    def of(self, kernel, device):
        """The outcomes by profile and order."""
        with self._lock:
            return dict(self._outcomes.get((kernel, device), {}))

    def versions(self, kernel):
        return self._versions[kernel]
