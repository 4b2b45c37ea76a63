import pytest

from tunewise.errors import DamagedStore, StoreError
from tunewise.fleet.patient import PATIENCE_S, Away, PatientStore
from tunewise.store import MemoryStore, Sign
from tunewise.testing.store_contract import subject, timed, won


class Flaky(MemoryStore):
    """Fails so many times before it works."""

    def __init__(self, failures, kind=StoreError):
        super().__init__()
        self.failures, self.kind = failures, kind

    def _fail(self):
        if self.failures:
            self.failures -= 1
            raise self.kind("the server is away")

    def add(self, about, trials):
        self._fail()
        super().add(about, trials)

    def trials(self, about):
        self._fail()
        return super().trials(about)

    def flight(self, about):
        flight = super().flight(about)
        acquire, fail = flight.acquire, self._fail

        def careful(wait_s=None):
            fail()
            return acquire(wait_s)

        flight.acquire = careful
        return flight

    def show(self, sign):
        self._fail()
        super().show(sign)


class Clock:
    now = 0.0

    def __call__(self):
        return self.now

    def pause(self, seconds):
        self.now += seconds


def patient(store, **more):
    clock = Clock()
    return PatientStore(store, clock=clock, pause=clock.pause, **more)


def test_facts_are_in_the_store_when_the_call_returns():
    flaky = Flaky(3)
    patient(flaky).add(subject(), [timed(8)])
    assert len(flaky.trials(subject())) == 1


def test_reading_waits_for_the_store_however_long():
    assert patient(Flaky(1000)).trials(subject()) == []


def test_facts_are_given_up_when_the_store_is_away_for_long():
    flaky = Flaky(1000)
    with pytest.raises(Away, match=f"{PATIENCE_S:g} s"):
        patient(flaky).add(subject(), [timed(8)])
    flaky.failures = 0
    assert flaky.trials(subject()) == []


def test_process_that_was_held_up_writes_nothing():
    store = MemoryStore()
    held_up = patient(store, is_away=lambda: True)
    with pytest.raises(Away, match="held up"):
        held_up.add(subject(), [timed(8)])
    with pytest.raises(Away, match="held up"):
        held_up.conclude(subject(), won())
    assert (store.trials(subject()), store.verdicts(subject())) == ([], [])


def test_damage_is_not_waited_for():
    with pytest.raises(DamagedStore):
        patient(Flaky(1, DamagedStore)).trials(subject())


def test_flight_waits_for_the_store_and_not_for_its_holder():
    store = Flaky(2)
    with patient(store).flight(subject()):
        assert not patient(store).flight(subject()).acquire(0)
    assert patient(store).flight(subject()).acquire(0)


def test_sign_is_lost_rather_than_waited_for():
    flaky = Flaky(1)
    patient(flaky).show(Sign("node", "a", 1.0, {}))
    assert flaky.signs() == []
