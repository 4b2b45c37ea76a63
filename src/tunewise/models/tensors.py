"""The weights of a net in a safetensors file: a JSON header with names and shapes, then the numbers, and no code."""

import hashlib
from collections.abc import Sequence
from typing import Any

import msgspec

from tunewise.errors import InvalidModel
from tunewise.models.net import Layer, Level, Net

MAX_TENSOR_BYTES = 8 << 20
SUFFIX = ".safetensors"
_LENGTH = 8  # bytes of the header's length


class _Tensor(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    dtype: str
    shape: tuple[int, ...]
    data_offsets: tuple[int, int]


_HEADER = msgspec.json.Decoder(dict[str, _Tensor])


def apart(net: Net) -> tuple[Net, bytes]:
    """Return the net without its weights, which names their digest, and the weights as a safetensors file."""
    header: dict[str, _Tensor] = {}
    body = b""
    for name, shape, raw in _named(net):
        header[name] = _Tensor("F32", shape, (len(body), len(body) + len(raw)))
        body += raw
    text = msgspec.json.encode(header)
    text += b" " * (-len(text) % _LENGTH)
    packed = len(text).to_bytes(_LENGTH, "little") + text + body
    bare = tuple(Layer(layer.inputs, layer.outputs) for layer in net.layers)
    level = net.level and Level(net.level.scales, tuple(Layer(one.inputs, one.outputs) for one in net.level.layers))
    return Net(net.scales, bare, hashlib.sha256(packed).hexdigest(), level), packed


def joined(net: Net, packed: bytes) -> Net:
    """Return a net with the weights of its safetensors file; raises InvalidModel for another file than its own."""
    if hashlib.sha256(packed).hexdigest() != net.tensors:
        raise InvalidModel("the weights beside it are not those it was saved with; train or copy it again")
    header, body = _parsed(packed)
    level = net.level and Level(net.level.scales, _layers(net.level.layers, "level", header, body))
    return Net(net.scales, _layers(net.layers, "layers", header, body), level=level)


def _layers(bare: Sequence[Layer], name: str, header: dict[str, Any], body: bytes) -> tuple[Layer, ...]:
    layers = []
    for number, layer in enumerate(bare):
        weights = _numbers(header, body, f"{name}.{number}.weight", (layer.outputs, layer.inputs))
        biases = _numbers(header, body, f"{name}.{number}.bias", (layer.outputs,))
        layers.append(Layer(layer.inputs, layer.outputs, weights, biases))
    return tuple(layers)


def _named(net: Net) -> list[tuple[str, tuple[int, ...], bytes]]:
    found: list[tuple[str, tuple[int, ...], bytes]] = []
    for name, layers in (("layers", net.layers), ("level", net.level.layers if net.level else ())):
        for number, layer in enumerate(layers):
            found.append((f"{name}.{number}.weight", (layer.outputs, layer.inputs), layer.weights))
            found.append((f"{name}.{number}.bias", (layer.outputs,), layer.biases))
    return found


def _parsed(packed: bytes) -> tuple[dict[str, Any], bytes]:
    length = int.from_bytes(packed[:_LENGTH], "little")
    if not 0 < length <= len(packed) - _LENGTH:
        raise InvalidModel("the weights beside it are cut short")
    try:
        header = _HEADER.decode(packed[_LENGTH : _LENGTH + length])
    except (ValueError, RecursionError) as error:
        raise InvalidModel(f"the weights beside it have no sound header: {error}") from None
    return header, packed[_LENGTH + length :]


def _numbers(header: dict[str, Any], body: bytes, name: str, shape: tuple[int, ...]) -> bytes:
    tensor = header.get(name)
    if tensor is None or tensor.dtype != "F32" or tensor.shape != shape:
        raise InvalidModel(f"the weights beside it have no {name!r} of shape {shape}")
    start, end = tensor.data_offsets
    if not 0 <= start <= end <= len(body):
        raise InvalidModel(f"the weights beside it are cut short at {name!r}")
    return body[start:end]
