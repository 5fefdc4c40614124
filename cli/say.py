"""say: speech without a server."""

import asyncio
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from cli.settings import settings_or_exit
from core.errors import SpeechError
from core.events import Silence
from core.settings import Settings
from core.speech import AudioFormat, SpeechRequest
from synthesis.compose import open_synthesizer


def say(
    text: Annotated[str, typer.Argument(help="What to say; - reads it from standard input.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="File to write; its ending names the format.")],
    voice: Annotated[str | None, typer.Option(help="[DEFAULT_VOICE, else alloy]")] = None,
    language: Annotated[str | None, typer.Option(help="en, zh-CN, ... [the text's own]")] = None,
    speed: Annotated[float, typer.Option(min=0.25, max=4.0)] = 1.0,
) -> None:
    """Speak a text into a file, without a server."""
    settings = settings_or_exit()
    ending = output.suffix.lstrip(".").lower()
    if ending not in list(AudioFormat):
        raise typer.BadParameter(f"The file should end in one of {', '.join(AudioFormat)}.", param_hint="--output")
    # A voice takes seconds to load, so what can be told before is told before.
    if output.is_dir() or not os.access(output if output.exists() else output.parent, os.W_OK):
        raise typer.BadParameter(f"{output} cannot be written.", param_hint="--output")
    try:
        spoken = (sys.stdin.read() if sys.stdin else "") if text == "-" else text
        spoken.encode()
    except UnicodeError:
        raise typer.BadParameter("It should be in UTF-8.", param_hint="TEXT") from None
    if not spoken.strip():
        raise typer.BadParameter("There is nothing to say.", param_hint="TEXT")
    format = AudioFormat(ending)
    request = SpeechRequest(
        spoken, voice=voice, language=language, format=format, speed=speed, streamed=False, cached=False
    )
    try:
        audio, seconds = asyncio.run(_speak(settings, request))
        output.write_bytes(audio)
    except SpeechError as error:
        print(error.message, file=sys.stderr)
        raise typer.Exit(1) from None
    except OSError as error:
        print(f"{output} cannot be written: {error.strerror}.", file=sys.stderr)
        raise typer.Exit(1) from None
    print(f"{output}: {seconds:.1f} s of speech")


async def _speak(settings: Settings, request: SpeechRequest) -> tuple[bytes, float]:
    """The whole answer, so that a failure leaves no half a file behind; and its seconds."""
    async with open_synthesizer(settings, Silence()) as synthesizer:
        answer = await synthesizer.speak(request)
        try:
            audio = b"".join([data async for data in answer])
        finally:
            await answer.aclose()
    return audio, answer.audio_s
