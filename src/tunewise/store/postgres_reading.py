"""What is asked of the tables on a PostgreSQL server, and how much of it is taken: anybody may have written a row.

No value of more than 1 MiB is sent (we write half of that at most), and of one query no more than 64 or 256 MiB. What
is left out is decided on the server, by lengths that it knows without reading the values, and shows as a body of NULL.
"""

import functools
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from tunewise.errors import StoreWarning

OF_SUBJECT = {
    "trials": """
        SELECT identity, CASE WHEN size <= 1048576 AND total <= 67108864 THEN body END FROM (
            SELECT t.id, t.identity, t.body, octet_length(t.body) AS size,
            sum(64 + LEAST(octet_length(t.body), 1048576)) OVER (ORDER BY t.id DESC) AS total
            FROM tunewise.subjects s JOIN tunewise.trials t ON t.subject = s.id
            WHERE s.digest = %s AND octet_length(t.identity) = 16
        ) latest WHERE total - 64 - LEAST(size, 1048576) <= 67108864 ORDER BY id
    """,
    "verdicts": """
        SELECT identity, CASE WHEN size <= 1048576 AND total <= 67108864 THEN body END FROM (
            SELECT v.id, v.identity, v.body, octet_length(v.body) AS size,
            sum(64 + LEAST(octet_length(v.body), 1048576)) OVER (ORDER BY v.id DESC) AS total
            FROM tunewise.subjects s JOIN tunewise.verdicts v ON v.subject = s.id
            WHERE s.digest = %s AND octet_length(v.identity) = 16
        ) latest WHERE total - 64 - LEAST(size, 1048576) <= 67108864 ORDER BY id
    """,
}
# Of many subjects, in the words of `Questions`.
BY_DIGEST = """
    SELECT digest, CASE WHEN size <= 1048576 THEN body END FROM (
        SELECT id, digest, body, octet_length(body) AS size,
        sum(64 + LEAST(octet_length(body), 1048576)) OVER (ORDER BY id DESC) AS total
        FROM {subjects} WHERE digest IN {names}
    ) latest WHERE total - 64 - LEAST(size, 1048576) <= 67108864 ORDER BY id
"""
VERDICTS = """
    SELECT digest, identity, CASE WHEN size <= 1048576 AND total <= 67108864 THEN body END FROM (
        SELECT v.id, s.digest, v.identity, v.body, octet_length(v.body) AS size,
        sum(64 + LEAST(octet_length(v.body), 1048576)) OVER (ORDER BY v.id DESC) AS total
        FROM {subjects} s JOIN {verdicts} v ON v.subject = s.id
        WHERE s.digest IN {names} AND octet_length(v.identity) = 16
    ) latest WHERE total - 64 - LEAST(size, 1048576) <= 67108864 ORDER BY id
"""
# A page that would be too long ends earlier, and the next one begins there.
PAGES = {
    "trials": """
        SELECT id, subject, identity, CASE WHEN size <= 1048576 THEN body END FROM (
            SELECT *, octet_length(body) AS size,
            sum(64 + LEAST(octet_length(body), 1048576)) OVER (ORDER BY id) AS total FROM (
                SELECT id, subject, CASE WHEN octet_length(identity) = 16 THEN identity ELSE '' END AS identity, body
                FROM tunewise.trials WHERE id > %s ORDER BY id LIMIT %s
            ) next
        ) page WHERE total <= 67108864 ORDER BY id
    """,
    "verdicts": """
        SELECT id, subject, identity, CASE WHEN size <= 1048576 THEN body END FROM (
            SELECT *, octet_length(body) AS size,
            sum(64 + LEAST(octet_length(body), 1048576)) OVER (ORDER BY id) AS total FROM (
                SELECT id, subject, CASE WHEN octet_length(identity) = 16 THEN identity ELSE '' END AS identity, body
                FROM tunewise.verdicts WHERE id > %s ORDER BY id LIMIT %s
            ) next
        ) page WHERE total <= 67108864 ORDER BY id
    """,
}
SUBJECTS = """
    SELECT id, digest, CASE WHEN size <= 1048576 AND total <= 268435456 THEN body END FROM (
        SELECT id, digest, body, octet_length(body) AS size,
        sum(64 + LEAST(octet_length(body), 1048576)) OVER (ORDER BY id DESC) AS total FROM tunewise.subjects
        WHERE (%(name)s::text IS NULL OR decision = %(name)s) AND octet_length(digest) = 64
        ORDER BY tunewise.subjects.id DESC LIMIT %(last)s
    ) latest WHERE total - 64 - LEAST(size, 1048576) <= 268435456 ORDER BY id
"""
LAST_WRITTEN = """
    SELECT body FROM tunewise.subjects s WHERE digest = %s AND octet_length(body) <= 1048576 ORDER BY
    (SELECT max(id) FROM tunewise.verdicts WHERE subject = s.id) DESC NULLS LAST,
    (SELECT max(id) FROM tunewise.trials WHERE subject = s.id) DESC NULLS LAST LIMIT 64
"""
MISSES = """
    SELECT key, decision, asked_as, count, CASE WHEN size <= 1048576 THEN body END FROM (
        SELECT id, key, decision, asked_as, count, body, octet_length(body) AS size,
        sum(256 + octet_length(decision) + LEAST(octet_length(body), 1048576)) OVER (ORDER BY count DESC, id) AS total
        FROM tunewise.misses WHERE (%(name)s::text IS NULL OR decision = %(name)s) AND octet_length(key) = 64
        AND octet_length(decision) <= 65536 AND octet_length(asked_as) <= 64
    ) first WHERE total <= 67108864 ORDER BY count DESC, id
"""
SIGNS = """
    SELECT kind, key, at, CASE WHEN size <= 131072 THEN body END FROM (
        SELECT kind, key, at, body, octet_length(body) AS size,
        sum(256 + octet_length(key) + LEAST(octet_length(body), 131072)) OVER (ORDER BY at DESC, kind, key) AS total
        FROM tunewise.signs WHERE (%(kind)s::text IS NULL OR kind = %(kind)s) AND at >= %(since)s
        AND octet_length(kind) <= 4096 AND octet_length(key) <= 65536
    ) latest WHERE total <= 67108864 ORDER BY at
"""
DECISIONS = """
    SELECT digest, CASE WHEN size <= 1048576 THEN body END FROM (
        SELECT id, digest, body, octet_length(body) AS size,
        sum(64 + LEAST(octet_length(body), 1048576)) OVER (ORDER BY id DESC) AS total
        FROM tunewise.subjects WHERE id IN (SELECT max(id) FROM tunewise.subjects GROUP BY decision)
    ) latest WHERE total - 64 - LEAST(size, 1048576) <= 67108864 ORDER BY id
"""
COUNT_TRIALS = """
    SELECT s.decision, count(t.id) FROM tunewise.subjects s LEFT JOIN tunewise.trials t ON t.subject = s.id
    WHERE octet_length(s.decision) <= 65536 GROUP BY s.decision ORDER BY s.decision COLLATE "C" LIMIT 100000
"""


def sent(rows: Sequence[Sequence[Any]], name: Callable[[], str]) -> list[Any]:
    """Return the rows whose last value, the body, was sent; that one was not is told once, by the server's name."""
    kept = [row for row in rows if row[-1] is not None]
    if len(kept) < len(rows):
        _warn(name())
    return kept


@functools.cache
def _warn(place: str) -> None:
    said = f"{place} holds more than anybody measures: rows of more than 1 MiB, or of many, are left out"
    warnings.warn(said, StoreWarning, stacklevel=5)
