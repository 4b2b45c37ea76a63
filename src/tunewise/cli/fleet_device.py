"""The process of one device of a fleet, as its Ray actor starts it: the fleet's work, with targets as we find them."""

from tunewise.cli.targets import find
from tunewise.fleet.device import serve

if __name__ == "__main__":
    serve(find)
