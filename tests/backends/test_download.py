"""One file from a hub that misbehaves: the right bytes or a sentence, and never a file that is neither."""

import resource
import ssl
import time
from email.message import Message
from functools import partial
from io import BytesIO
from itertools import chain, count, repeat
from urllib.error import URLError
from urllib.request import Request

import pytest

from backends.base import BackendError
from backends.weights.download import Persistence, fetch
from backends.weights.hub import LEAST_BYTES, MAX_LISTING_BYTES, Hub, Passing, _broken, _Redirects, blocks
from backends.weights.lock import Content
from hub import COMMIT, cut, elsewhere, longer, serving, stall, status, whole
from hub import Hub as FakeHub

REPOSITORY = "some/weights"
BYTES = bytes(range(256)) * 1000
NAME = "model.pth"


class Listener:
    def __init__(self):
        self.said = []
        self.seen = []

    def say(self, line):
        self.said.append(line)

    def progress(self, name, done, total):
        self.seen.append((name, done, total))


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1,localhost")


@pytest.fixture
def hub():
    with serving(FakeHub(REPOSITORY, {NAME: BYTES, "config.json": b"{}"})) as serving_hub:
        yield serving_hub


@pytest.fixture
def waits():
    return []


@pytest.fixture
def bring(hub, tmp_path, waits):
    """Fetch NAME with all the care that there is; what it holds then."""

    def bring(listener=None, token="", tries=4, clock=time.monotonic):
        client = Hub(hub.url, token, stall_s=0.3)
        wanted = client.listing(REPOSITORY)[1][NAME]
        source = partial(client.open, REPOSITORY, COMMIT, NAME)
        persistence = Persistence(tries=tries, longest_wait_s=60, sleep=waits.append, clock=clock)
        fetch(source, tmp_path / NAME, wanted, persistence, listener or Listener())
        return (tmp_path / NAME).read_bytes()

    return bring


def test_the_bytes_are_right_and_can_be_read_by_others(bring, tmp_path):
    listener = Listener()
    assert bring(listener) == BYTES
    assert (tmp_path / NAME).stat().st_mode & 0o777 == 0o644
    assert listener.seen[-1] == (NAME, len(BYTES), len(BYTES))
    assert [path.name for path in tmp_path.iterdir()] == [NAME]


def no_length(to, content, offset):
    to.send_response(200)
    to.send_header("Content-Length", "9" * 5000)
    to.end_headers()
    to.close_connection = True


@pytest.mark.parametrize(
    ("faults", "asked"),
    [
        pytest.param([cut(1000)], ["all", "bytes=1000-"], id="a line that breaks"),
        pytest.param([cut(0)], ["all", "all"], id="a line that breaks at once"),
        pytest.param([cut(1000), cut(500)], ["all", "bytes=1000-", "bytes=1500-"], id="it breaks again"),
        pytest.param([stall(1000)], ["all", "bytes=1000-"], id="nothing more comes"),
        pytest.param([cut(1000), whole], ["all", "bytes=1000-"], id="a server that knows no ranges"),
        pytest.param([cut(1000), elsewhere], ["all", "bytes=1000-", "all"], id="another piece than was asked for"),
        pytest.param([cut(1000), status(416)], ["all", "bytes=1000-", "all"], id="it has nothing from there on"),
        pytest.param([cut(1000), status(206)], ["all", "bytes=1000-", "bytes=1000-"], id="no word of which piece"),
        pytest.param([status(429), status(500), status(503)], ["all"] * 4, id="a server that has enough to do"),
        pytest.param(
            [cut(LEAST_BYTES)] * 7,
            ["all", *(f"bytes={LEAST_BYTES * n}-" for n in range(1, 8))],
            id="every try brings enough",
        ),
        pytest.param([no_length], ["all", "all"], id="a length that is no number"),
        pytest.param(
            [status(206, Content_Range=f"bytes 0-1/{'9' * 5000}")], ["all", "all"], id="a range that is no number"
        ),
    ],
)
def test_it_goes_on_where_it_was(bring, hub, faults, asked):
    hub.faults[NAME] = faults
    assert bring() == BYTES
    assert hub.ranges(NAME) == asked


@pytest.mark.parametrize(
    ("fault", "waited"),
    [
        pytest.param(status(429, Retry_After="7"), 7, id="as long as the server asks for"),
        pytest.param(status(429, Retry_After="9999999"), 60, id="but not for ever"),
        pytest.param(status(503, Retry_After="Thu, 01 Jan 1970 00:00:00 GMT"), 0, id="until a time that is over"),
        pytest.param(status(503, Retry_After="soon"), 1, id="a second where that is no time"),
        pytest.param(status(500), 1, id="a second where it does not ask"),
    ],
)
def test_it_waits_before_it_asks_again(bring, hub, waits, fault, waited):
    hub.faults[NAME] = [fault]
    assert bring() == BYTES
    assert waits == [waited]


def test_tries_without_a_new_byte_come_to_an_end(bring, hub, waits, tmp_path):
    hub.faults[NAME] = [cut(1000), *[cut(0)] * 9]
    with pytest.raises(BackendError, match=r"broke\. After 4 tries .* run this again later"):
        bring()
    assert waits == [1, 2, 4]
    assert not (tmp_path / NAME).exists()
    assert (tmp_path / f"{NAME}.part").read_bytes() == BYTES[:1000]


def test_tries_that_bring_next_to_nothing_come_to_an_end(bring, hub):
    hub.faults[NAME] = [cut(9)] * 9
    with pytest.raises(BackendError, match="After 4 tries"):
        bring()


class Answer:
    """Blocks of a size, for so many times."""

    length = None

    def __init__(self, size, times):
        self.left = [bytes(size)] * times

    def read1(self, most):
        return self.left.pop() if self.left else b""


def test_a_body_that_comes_too_slowly_is_given_up():
    clock = count(0, 25).__next__
    assert len(list(blocks(Answer(LEAST_BYTES // 2, 9), clock))) == 9
    with pytest.raises(Passing, match="next to nothing"):
        list(blocks(Answer(LEAST_BYTES // 4, 9), clock))


def test_the_pace_of_a_download_is_watched(bring, hub):
    hub.faults[NAME] = [stall(1000)]
    listener = Listener()
    assert bring(listener, clock=chain([0], repeat(99)).__next__) == BYTES
    assert listener.said == ["The hub sends next to nothing. Once more in 1 s."]


def test_a_server_that_always_begins_anew_and_breaks_comes_to_an_end_too(bring, hub):
    def whole_and_cut(to, content, offset):
        to.piece(content, 0, 1000)
        to.close_connection = True

    hub.faults[NAME] = [whole_and_cut] * 20
    with pytest.raises(BackendError, match="After 4 tries"):
        bring()


@pytest.mark.parametrize(
    ("code", "says"), [(401, "wants a token"), (403, "may not have it"), (404, "no such file"), (418, "418")]
)
def test_a_refusal_is_a_sentence_and_not_repeated(bring, hub, waits, code, says):
    hub.faults[NAME] = [status(code)]
    with pytest.raises(BackendError, match=says):
        bring()
    assert (hub.ranges(NAME), waits) == (["all"], [])


@pytest.mark.parametrize(
    "served",
    [
        pytest.param(BYTES[:-1] + b"x", id="of the same length"),
        pytest.param(BYTES + b"x", id="longer"),
        pytest.param(BYTES[:-1], id="shorter"),
    ],
)
def test_other_bytes_than_listed_replace_nothing(bring, hub, tmp_path, served):
    (tmp_path / NAME).write_bytes(b"old")
    hub.files[NAME] = served
    with pytest.raises(BackendError, match=r"other bytes for model\.pth"):
        bring()
    assert (tmp_path / NAME).read_bytes() == b"old"
    assert len(hub.ranges(NAME)) == 1


def test_more_bytes_than_listed_are_not_taken(bring, hub, tmp_path):
    hub.faults[NAME] = [longer]
    with pytest.raises(BackendError, match="other bytes"):
        bring()
    assert not (tmp_path / NAME).exists()


@pytest.mark.parametrize(
    "part",
    [
        pytest.param(b"x" * 1000, id="of another file"),
        pytest.param(b"x" * len(BYTES), id="as long as the file"),
        pytest.param(BYTES + b"x", id="longer than the file"),
    ],
)
def test_a_part_that_is_none_of_it_is_thrown_away(bring, tmp_path, part):
    (tmp_path / f"{NAME}.part").write_bytes(part)
    assert bring() == BYTES


def test_a_part_that_is_all_of_it_is_not_asked_for(bring, hub, tmp_path):
    (tmp_path / f"{NAME}.part").write_bytes(BYTES)
    assert bring() == BYTES
    assert hub.ranges(NAME) == []


def test_a_file_that_changed_at_the_server_meanwhile_is_refused(bring, hub, tmp_path):
    def cut_and_change(to, content, offset):
        cut(1000)(to, content, offset)
        hub.files[NAME] = bytes(reversed(BYTES))

    hub.faults[NAME] = [cut_and_change]
    with pytest.raises(BackendError, match="other bytes"):
        bring()
    assert hub.ranges(NAME) == ["all", "bytes=1000-", "all"]
    assert not list(tmp_path.iterdir())


def test_a_disk_that_takes_no_more_is_a_sentence(bring, tmp_path):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        with pytest.raises(BackendError, match=r"cannot be written: File too large\. .*goes on from it"):
            bring()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert [path.name for path in tmp_path.iterdir()] == [f"{NAME}.part"]
    assert bring() == BYTES


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_a_token_goes_to_the_hub_alone(bring, hub, host):
    with serving(FakeHub(REPOSITORY, {NAME: BYTES})) as storage:
        hub.faults[NAME] = [status(302, Location=f"http://{host}:{storage.port}/store/{NAME}")]
        assert bring(token="secret") == BYTES
        assert {headers.get("Authorization") for _, headers in hub.asked} == {"Bearer secret"}
        assert [headers.get("Authorization") for _, headers in storage.asked] == [None]


def test_a_token_goes_along_within_the_hub_and_so_does_the_place(bring, hub):
    moved = status(307, Location=f"{hub.url}/renamed/{NAME}")
    hub.faults[NAME] = [cut(1000), moved]
    assert bring(token="secret") == BYTES
    assert hub.ranges(NAME) == ["all", "bytes=1000-", "bytes=1000-"]
    assert {headers.get("Authorization") for _, headers in hub.asked} == {"Bearer secret"}


@pytest.mark.parametrize(
    "address",
    ["ftp://127.0.0.1/x", "file:///etc/passwd", "http://[::1", "http://a..b/x", "http://127.0.0.1:x/", f"/{NAME}"],
)
def test_a_redirect_to_no_hub_or_in_circles_is_a_sentence(bring, hub, waits, address):
    hub.faults[NAME] = [status(302, Location=address)] * 20
    with pytest.raises(BackendError, match=r"redirects from http to|no hub at all|cannot be used"):
        bring()
    assert waits == []


def test_the_body_of_a_redirect_is_not_read(bring, hub, waits):
    def endless(to, content, offset):
        to.head(302, 1, Location=f"{hub.url}/moved/{NAME}")
        hub.is_over.wait(30)
        to.close_connection = True

    hub.faults[NAME] = [endless]
    assert bring() == BYTES
    assert waits == []


def test_the_hub_is_asked_anew_where_a_signed_address_is_over(bring, hub):
    with serving(FakeHub(REPOSITORY, {NAME: BYTES})) as storage:
        hub.faults[NAME] = [status(302, Location=f"{storage.url}/signed/{NAME}")] * 2
        storage.faults[NAME] = [cut(1000), status(403)]
        assert bring() == BYTES
    assert hub.ranges(NAME) == ["all", "bytes=1000-", "bytes=1000-"]


def test_https_leads_to_https_alone():
    follow = partial(_Redirects().redirect_request, Request("https://a/x"), BytesIO(), 302, "Found", Message())
    assert follow(newurl="https://b/x").full_url == "https://b/x"
    with pytest.raises(BackendError, match="from https to http, which is not followed"):
        follow(newurl="http://b/x")


def test_a_hub_that_cannot_prove_who_it_is_is_not_asked_again():
    failure = ssl.SSLCertVerificationError(1, "no")
    failure.verify_message = "self-signed certificate"
    told = _broken(URLError(failure))
    assert isinstance(told, BackendError)
    assert "who it is: self-signed certificate" in str(told)


@pytest.mark.parametrize("endpoint", ["http://[", "http://a..b", "http://127.0.0.1:x", "https:///"])
def test_an_address_of_nothing_is_a_sentence(endpoint):
    with pytest.raises(BackendError, match=r"address of the hub.* cannot be used"):
        Hub(endpoint).listing(REPOSITORY)


def test_nobody_at_the_address_may_pass(tmp_path):
    with pytest.raises(Passing, match="Connection refused"):
        Hub("http://127.0.0.1:9").listing(REPOSITORY)


LISTING = b'{"sha": "cccccccccccccccccccccccccccccccccccccccc", "siblings": [{"rfilename": "a", "size": %s}]}'


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"<html>", id="no JSON"),
        pytest.param(b"[]", id="no object"),
        pytest.param(b'{"sha": "../../x", "siblings": []}', id="no commit"),
        pytest.param(LISTING % b"-1", id="no size"),
        pytest.param(LISTING % (b"9" * 400), id="a size of no disk"),
        pytest.param(LISTING % b"1" + b" " * MAX_LISTING_BYTES, id="no end"),
    ],
)
def test_an_answer_that_is_no_listing_is_a_sentence(hub, answer):
    def other(to, content, offset):
        to.piece(answer, 0)

    hub.faults["listing"] = [other]
    with pytest.raises(BackendError, match="does not answer as a hub does"):
        Hub(hub.url).listing(REPOSITORY)


def test_a_listing_that_breaks_off_may_come_the_next_time(hub):
    hub.faults["listing"] = [cut(50)]
    with pytest.raises(Passing, match="broke"):
        Hub(hub.url).listing(REPOSITORY)


def test_what_the_hub_does_not_sign_is_known_by_git(tmp_path, hub):
    client = Hub(hub.url)
    wanted = client.listing(REPOSITORY)[1]["config.json"]
    source = partial(client.open, REPOSITORY, COMMIT, "config.json")
    held = fetch(source, tmp_path / "config.json", wanted, Persistence(), Listener())
    assert (wanted.sha256, held.sha256) == (None, "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a")
    (tmp_path / "config.json").write_bytes(b"[]")
    assert wanted.read(tmp_path / "config.json") is None


def test_a_content_is_what_it_says():
    with pytest.raises(ValueError, match="sha256"):
        Content(size=1, sha256="../x")
