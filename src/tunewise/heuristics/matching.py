"""Matching: which devices a rule is for."""

from dataclasses import dataclass

from tunewise.decision import Hardware


@dataclass(frozen=True, slots=True)
class On:
    """The devices a heuristic is for: what is given must hold, what is left out may be anything."""

    kinds: tuple[str, ...] = ()  # such as "cpu", "cuda"
    names: tuple[str, ...] = ()  # parts of the device's name, such as "H100"
    capabilities: tuple[str, ...] = ()  # such as "9.0"; a newer device that runs code for one of them will do

    def why_not(self, hardware: Hardware) -> str | None:
        """Return why a device is not among these, or None if it is."""
        if self.kinds and hardware.kind not in self.kinds:
            return f"is for {' or '.join(self.kinds)}, not {hardware.kind}"
        if self.names and not any(name.lower() in hardware.name.lower() for name in self.names):
            return f"is for {' or '.join(self.names)}, not {hardware.name}"
        if self.capabilities and not set(self.capabilities) & {hardware.capability, *hardware.compatible}:
            return f"is for {' or '.join(self.capabilities)}, not {hardware.capability}"
        return None


ANYWHERE = On()
