"""Whether a store that failed is worth asking again."""

from dataclasses import dataclass

from tunewise.errors import StoreError
from tunewise.eventlog import INFO, WARNING, bare, tell


@dataclass(slots=True)
class Trouble:
    """Whether the disk is worth asking: after a failure it is left alone for a while, after more of them longer."""

    doing: str
    reason: str | None = None
    until: float = 0.0
    failures: int = 0

    def end(self) -> None:
        """Note that it works."""
        if self.reason is not None:
            tell(
                INFO, "store-recovered", f"{self.doing} the store works again", doing=self.doing, failures=self.failures
            )
        self.reason, self.failures = None, 0

    def begin(self, error: StoreError, until: float) -> None:
        """Note why it does not work, and until when it is left alone."""
        if self.reason is None:
            told = f"{self.doing} the store fails: {error}"
            tell(WARNING, "store-trouble", told, doing=self.doing, reason=bare(str(error)))
        self.reason, self.until = str(error), until
        self.failures += 1

    def is_over(self, now: float) -> bool:
        """Return whether it is worth asking again."""
        return self.reason is None or now >= self.until
