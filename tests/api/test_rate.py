"""An allowance a client: what it allows, what it tells, and that it does not grow."""

import asyncio

import httpx
import pytest

from api.app import create_app
from api.edge import answer_headers
from api.rate import MAX_CLIENTS, RateLimit
from core.errors import RateLimited
from core.settings import load_settings


class Hand:
    """A clock that is moved by hand."""

    at = 1000.0

    def now(self) -> float:
        return self.at


def taken(limit: RateLimit, client: str | int = "1.2.3.4", times: int = 1) -> int:
    """How many of so many requests are let through."""
    count = 0
    for _ in range(times):
        try:
            limit.take(client, {})
        except RateLimited:
            continue
        count += 1
    return count


@pytest.mark.parametrize("per_minute", [1, 2, 7, 60, 1000])
def test_a_minute_s_allowance_goes_at_once_and_comes_back_evenly(per_minute):
    clock = Hand()
    limit = RateLimit(per_minute, clock)
    assert taken(limit, times=per_minute + 5) == per_minute
    clock.at += 60 / per_minute
    assert taken(limit, times=5) == 1
    clock.at += 60
    assert taken(limit, times=per_minute + 5) == per_minute


def test_who_is_refused_is_told_when_there_is_one_more_and_the_attempt_costs_nothing():
    clock = Hand()
    limit = RateLimit(2, clock)
    taken(limit, times=2)
    clock.at += 10
    for _ in range(3):
        with pytest.raises(RateLimited) as caught:
            limit.take("1.2.3.4", {})
        assert caught.value.retry_after_s == pytest.approx(20)
    clock.at += 20
    assert taken(limit) == 1


def test_every_answer_tells_what_is_left_in_openai_s_headers():
    scope: dict = {}
    limit = RateLimit(3, Hand())
    limit.take("a", {})
    limit.take("a", scope)
    assert answer_headers(scope) == [
        ("x-ratelimit-limit-requests", "3"),
        ("x-ratelimit-remaining-requests", "1"),
        ("x-ratelimit-reset-requests", "40.000s"),
    ]


@pytest.mark.parametrize(
    ("first", "second", "is_shared"),
    [
        ("1.2.3.4", "1.2.3.5", False),
        ("2001:db8::1", "2001:db8::ffff:1", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        (0, 1, False),
        ("", "", True),
    ],
)
def test_an_allowance_is_a_key_s_or_a_household_s(first, second, is_shared):
    limit = RateLimit(1, Hand())
    assert taken(limit, first) == 1
    assert taken(limit, second) == (0 if is_shared else 1)


def test_no_number_of_addresses_makes_it_larger():
    clock = Hand()
    limit = RateLimit(1, clock)
    for number in range(MAX_CLIENTS + 500):
        taken(limit, f"host{number}")
    assert len(limit._full_at) == MAX_CLIENTS
    clock.at += 61
    taken(limit, "another")
    assert len(limit._full_at) == 1


def test_over_http_it_is_a_429_as_openai_s():
    async def ask():
        app = create_app(load_settings(rate_limit_rpm=1, api_keys="one,two"))
        app.state.synthesizer = None  # a request that is let through breaks, and tells what is left all the same
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as http:
            sent = [("one", "Bearer one"), ("one again", "Bearer one"), ("none", "Bearer x"), ("two", "Bearer two")]
            return {
                name: await http.post("/v1/audio/speech", json={"input": "x"}, headers={"Authorization": value})
                for name, value in sent
            }

    answers = asyncio.run(ask())
    statuses = {name: answer.status_code for name, answer in answers.items()}
    assert statuses == {"one": 500, "one again": 429, "none": 401, "two": 500}
    refused = answers["one again"]
    assert set(refused.json()["error"]) == {"message", "type", "param", "code"}
    assert refused.json()["error"]["code"] == "rate_limit_exceeded"
    assert 60 <= int(refused.headers["retry-after"]) <= 66
    assert refused.headers["x-ratelimit-remaining-requests"] == "0"
    assert answers["two"].headers["x-ratelimit-limit-requests"] == "1"
    assert "x-ratelimit-limit-requests" not in answers["none"].headers
