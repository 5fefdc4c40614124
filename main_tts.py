"""The server as an app for uvicorn (`uvicorn main_tts:app`), and as a command (`python main_tts.py --help`)."""

from cli.main import app as command
from cli.settings import settings_or_exit

if __name__ == "__main__":
    command(prog_name="main_tts.py")
else:
    from api.app import create_app

    app = create_app(settings_or_exit())
