"""What this build calls itself."""

from importlib.metadata import PackageNotFoundError, version

PRODUCT = "uttera-tts"


def build_version() -> str:
    """The installed version; "unknown" in a checkout that was never installed."""
    try:
        return version(PRODUCT)
    except PackageNotFoundError:
        return "unknown"
