"""voices: what an operator does with voices of his own."""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError

from audio.decode import kind_of
from cli.settings import settings_or_exit
from core.environment import PROJECT
from core.errors import BadSample, InvalidValue, SpeechError
from core.events import Silence
from core.files import write_whole
from core.settings import Settings
from core.speech import REFERENCE_RATE, AudioFormat, SpeechRequest
from synthesis.compose import open_synthesizer
from voices.collection import Collection, open_collection
from voices.folder import FOLDER, STANDARD, read_file
from voices.library import OPENAI_NAMES
from voices.notes import MAX_NOTE_CHARS, Notes
from voices.reading import Custom
from voices.sample import clipped_share, noise_dbfs, reference, speech_dbfs

GOOD_RATE = 22_050
"""Hz. Below, a voice sounds dull, whatever is made from it."""

GOOD_S = 6.0, 30.0
"""Seconds of speech that are enough, and beyond which more does not help."""

GOOD_SPEECH_DBFS = -30.0

GOOD_DISTANCE_DB = 30.0
"""Between speech and what is heard in its pauses."""

WANTED = {
    "language": "It should look like en or zh-CN.",
    "transcript": f"It should have {MAX_NOTE_CHARS} characters at most.",
}
"""What is said of an option that cannot be taken."""

RECORDER = "kokoro"
"""The engine that speaks the standard voices."""

SPOKEN = (
    "Every morning I walk down to the harbour, buy a warm loaf of bread, and watch the boats go out. "
    "Some days the fog is so thick that you only hear their engines. What a joy when the sun comes through at last!"
)
"""Calm, asking nothing of the voice, with most sounds of English in it."""

app = typer.Typer(no_args_is_help=True, help="Voices of your own, for engines that can clone.")


@app.command()
def add(
    file: Annotated[Path, typer.Argument(help="A recording: wav, flac, mp3, ogg, m4a or webm.")],
    name: Annotated[str | None, typer.Option(help="[the file's own]")] = None,
    language: Annotated[str | None, typer.Option(help="en, zh-CN, ... [whatever the text is in]")] = None,
    transcript: Annotated[str, typer.Option(help="What is said in the recording.")] = "",
) -> None:
    """Check a recording, show what was found, and keep it as a voice."""
    settings = settings_or_exit()
    try:
        notes = Notes(language=language, transcript=transcript)
    except ValidationError as error:
        first = error.errors()[0]
        option = str(first["loc"][0])
        wanted = "It should be in UTF-8." if first["type"] == "string_unicode" else WANTED[option]
        raise typer.BadParameter(wanted, param_hint=f"--{option}") from None
    try:
        data = read_file(file)
        _show(data)
        collection = open_collection(settings.speech)
        if collection.holds(file):
            custom = _kept(collection, file, has_wishes=name is not None or bool(notes.written))
        else:
            custom = collection.add(file.stem if name is None else name, data, notes)
    except (SpeechError, OSError) as error:
        print(error, file=sys.stderr)
        raise typer.Exit(1) from None
    print(f"It is the voice {custom.voice.id} from the next start on, or after POST /admin/reload-voices.")


@app.command()
def standard(
    again: Annotated[bool, typer.Option("--again", help="Also those that have a recording, whoever made it.")] = False,
) -> None:
    """Let the embedded model record OpenAI's names: what engines that can clone make them from."""
    settings = settings_or_exit(tts_backend=RECORDER)
    folder = PROJECT / settings.speech.voice_asset_dir / STANDARD
    names = [name for name in OPENAI_NAMES if again or not (folder / f"{name}.wav").exists()]
    if len(names) < len(OPENAI_NAMES):
        print(f"{len(OPENAI_NAMES) - len(names)} of {len(OPENAI_NAMES)} have a recording, which stays; see --again.")
    try:
        if names:
            folder.mkdir(parents=True, exist_ok=True)
            asyncio.run(record(settings, folder, names))
    except (SpeechError, OSError) as error:
        print(error, file=sys.stderr)
        raise typer.Exit(1) from None


async def record(settings: Settings, folder: Path, names: Sequence[str]) -> None:
    """Let the engine of `settings` speak a text in these voices, and keep each beside what is said in it.

    Raises SpeechError, OSError.
    """
    notes = Notes(language="en", transcript=SPOKEN).model_dump_json(exclude_defaults=True)
    async with open_synthesizer(settings, Silence()) as synthesizer:
        for number, name in enumerate(names, 1):
            request = SpeechRequest(
                SPOKEN, voice=name, language="en", format=AudioFormat.WAV, streamed=False, cached=False
            )
            answer = await synthesizer.speak(request)
            try:
                audio = b"".join([data async for data in answer])
            finally:
                await answer.aclose()
            write_whole(folder / f"{name}.json", [notes.encode()])
            write_whole(folder / f"{name}.wav", [audio])
            print(f"{number} of {len(names)}: {name}, {answer.audio_s:.1f} s")


def _kept(collection: Collection, file: Path, *, has_wishes: bool) -> Custom:
    """The voice of a file in the folder of voices, which stays as it is, and so does what is written about it.

    Raises BadSample where it is none, InvalidValue where something else is wished of it.
    """
    if has_wishes:
        raise InvalidValue(f"It is in the folder of voices already; write into {file.stem}.json what there is to say.")
    failed = collection.reload().failed
    for custom in collection.voices.values():
        if custom.path.samefile(file):
            return custom
    raise BadSample(failed.get(file.stem) or failed.get(f"{FOLDER}/{file.name}") or "It is no voice; see voices.json.")


def _show(data: bytes) -> None:
    """What was found, and what would be better. Raises BadSample where it is no good at all."""
    made_from = reference(data)
    assert made_from.sample is not None
    kind, sample = kind_of(data), made_from.sample
    seconds, speech, noise = len(sample) / REFERENCE_RATE, speech_dbfs(sample), noise_dbfs(sample)
    print(f"{kind.name}, {kind.rate} Hz, {kind.channels} channel{'s' if kind.channels > 1 else ''}, {seconds:.1f} s")
    print(f"speech {speech:.0f} dBFS, pauses {noise:.0f} dBFS, {clipped_share(sample):.1%} at full scale")
    low, high = GOOD_S
    advice = {
        f"{low:.0f} to {high:.0f} s of speech are best.": not low <= seconds <= high,
        f"{GOOD_RATE} Hz or more sound brighter.": kind.rate < GOOD_RATE,
        "It is rather quiet.": speech < GOOD_SPEECH_DBFS,
        "There is noise, or no pause, behind the voice.": speech - noise < GOOD_DISTANCE_DB,
    }
    for sentence in (sentence for sentence, holds in advice.items() if holds):
        print(f"Note: {sentence}")
