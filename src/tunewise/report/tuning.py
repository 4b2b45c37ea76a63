"""How tuning went: best so far against evaluations, from what the store remembers."""

from tunewise.report import curves
from tunewise.report.findings import Findings
from tunewise.report.markup import Markup, element, fragment, short
from tunewise.report.tables import legend
from tunewise.report.wording import count

_NAME = 60  # characters of a problem in the legend


def progress(findings: Findings) -> Markup | None:
    """Return the curves of the tuning runs; None where the store remembers none."""
    found = findings.progress
    if found is None:
        return None
    failed = f", {found.failures:,} of them failed"
    told = f"The store remembers {count(found.evaluations, 'evaluation')} on {count(found.problems, 'problem')}"
    chart = curves.figure(found.lines, title="Best time so far over the best time found")
    return fragment(
        element("p", told + (failed if found.failures else "") + "."),
        element(
            "figure",
            element("div", chart, class_="chart"),
            legend(enumerate(short(line.name, _NAME) for line in found.lines)),
            element(
                "figcaption",
                "Configs count in the order in which they were tried; failed ones count too.",
                class_="soft",
            ),
        ),
    )
