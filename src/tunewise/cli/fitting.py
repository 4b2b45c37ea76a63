"""Whether a model and data are about one decision: judged on another's data, a model would only abstain."""

from pathlib import Path
from typing import TYPE_CHECKING

from tunewise.decision import canonical
from tunewise.errors import InvalidData
from tunewise.models import Model
from tunewise.models.source import Generated
from tunewise.session.ladder import show

if TYPE_CHECKING:
    from tunewise.formats.dataset import DataSet


def check_fit(path: Path, judged: Generated | Model, data: "DataSet") -> None:
    """Raise InvalidData for data that lack a feature of the model, or in which none of its choices was measured."""
    asked = judged.features if isinstance(judged, Generated) else [column.name for column in judged.columns.problem]
    missing = [name for name in asked if name not in data.names]
    if missing:
        has = ", ".join(data.names)
        raise InvalidData(f"{path} asks for {', '.join(missing)}, and the data have {has}: is it of another decision?")
    measured = {canonical.encode(dict(config)) for config in data.configs}
    if not any(canonical.encode(dict(choice)) in measured for choice in judged.choices):
        pair = f"{path} chooses such as {show(judged.choices[0])}, and the data have such as {show(data.configs[0])}"
        raise InvalidData(f"{pair}: is it of another decision?")
