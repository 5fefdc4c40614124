"""The application as its settings compose it, without a synthesizer."""

import json
import re
from typing import Any

from api.app import create_app
from core.settings import load_settings


def described() -> dict[str, Any]:
    return create_app(load_settings()).openapi()


def test_the_description_names_every_route_and_every_field() -> None:
    paths = described()["paths"]
    assert paths.keys() >= {"/v1/audio/speech", "/v1/audio/speech/stream", "/v1/voices", "/v1/models", "/health"}
    body = paths["/v1/audio/speech"]["post"]["requestBody"]["content"]["multipart/form-data"]["schema"]
    assert body["required"] == ["input"]
    assert {"voice", "response_format", "speed", "stream_format", "instructions"} < body["properties"].keys()


def test_every_reference_of_the_description_leads_somewhere() -> None:
    document = described()
    for reference in re.findall(r'"\$ref": "#/([^"]+)"', json.dumps(document)):
        found = document
        for step in reference.split("/"):
            found = found[step]


def test_the_description_gives_no_two_operations_the_same_name() -> None:
    described()
