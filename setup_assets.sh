#!/bin/sh
# Fetches what is too large, or too personal, for the repository: recordings of the standard voices, or the weights of
# an engine. May be run again at any time: what is there stays, what was interrupted goes on.
set -eu
cd -- "$(dirname -- "$0")"

usage() {
    cat <<'END'
Usage: ./setup_assets.sh [options]

Without --model, the built-in model records OpenAI's thirteen names, for engines that can clone: nobody else's voice is
needed. It takes about a minute. What has a recording keeps it.

  --model NAME   download the weights of an engine instead: xtts (XTTS-v2, 1.9 GB, not for commercial use) or voxcpm
                 (VoxCPM2, 5 GB); those that are there are looked at, and repaired
  --again        make all recordings anew, or take the weights that the hub has now
  --help         this text

COQUI_TOS_AGREED=1 accepts the licence of XTTS-v2. HF_ENDPOINT names another hub than huggingface.co, HF_TOKEN your
token for it.
END
}

fail() { printf '%s\n' "$@" >&2; exit 2; }
take_model() {
    case $1 in xtts | voxcpm) model=$1 ;; *) fail "--model takes xtts or voxcpm." ;; esac
}

model= again=
while [ $# -gt 0 ]; do
    case $1 in
        --model) shift; take_model "${1:-}" ;;
        --model=*) take_model "${1#*=}" ;;
        --again) again=--again ;;
        -h|--help) usage; exit 0 ;;
        *) usage >&2; fail "" "There is no option $1." ;;
    esac
    [ $# -eq 0 ] || shift
done

[ -x venv/bin/python ] || GOES_ON=yes ./setup.sh
if [ -n "$model" ]; then
    exec venv/bin/python main_tts.py weights "$model" ${again:+"$again"}
fi
exec venv/bin/python main_tts.py voices standard ${again:+"$again"}
