#!/bin/sh
# Records OpenAI's thirteen names with the embedded model, for engines that can clone: nobody else's voice is needed.
# Takes about a minute; may be run again at any time. What has a recording keeps it, unless --again says otherwise.
set -eu
cd -- "$(dirname -- "$0")"
[ -x venv/bin/python ] || ./setup.sh
exec venv/bin/python main_tts.py voices standard "$@"
