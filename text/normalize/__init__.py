"""Written form to spoken form, a file a language."""


def spoken(text: str, language: str) -> str:
    """The text as it is said."""
    return text
