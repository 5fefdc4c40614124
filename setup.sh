#!/bin/sh
# Makes venv/ beside this file, with everything that the server needs. Can be run again at any time: what is there
# stays, what was interrupted goes on, and with nothing to do it ends at once.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P)
cd -- "$here"
venv=venv
stamps=$venv/.stamps
model_stamp=assets/models/.fetched

usage() {
    cat <<'END'
Usage: ./setup.sh [options]

  --without-zh   leave out Chinese (about 25 MB to download; Python 3.11 and 3.12 only)
  --with zh      take Chinese back in
  --with ja      add Japanese (about 110 MB to download)
  --backend NAME add an engine: coqui (XTTS-v2) or voxcpm (VoxCPM 1.5 and 2); torch, and 250 or 110 MB more to download
  --dev          add what developers need: checks, tests, speech recognition for the tests; Japanese too
  --help         this text

PYTHON=/path/to/python3.12 ./setup.sh chooses the Python (3.11 to 3.14).
TORCH_INDEX=URL takes torch from another package index: PyTorch's own has builds for each CUDA version, and one
without CUDA, which is a tenth as large. Its install page names them. It holds until another one is named, which then
replaces the torch that is there.
END
}

say() { printf '%s\n' "$*"; }
fail() { printf '%s\n' "$@" >&2; exit 1; }

# add_backend NAME: remember an engine that is asked for. The embedded one is always there.
add_backend() {
    case $1 in coqui | voxcpm) backends="$backends $1" ;; kokoro) ;; *) fail "--backend takes kokoro, coqui or voxcpm." ;; esac
}

want_zh=default want_ja=no want_dev=no backends=
while [ $# -gt 0 ]; do
    case $1 in
        --without-zh) want_zh=no ;;
        --with) shift; case ${1:-} in zh) want_zh=yes ;; ja) want_ja=yes ;; *) fail "--with takes zh or ja." ;; esac ;;
        --with=zh) want_zh=yes ;;
        --with=ja) want_ja=yes ;;
        --backend) shift; add_backend "${1:-}" ;;
        --backend=*) add_backend "${1#*=}" ;;
        --dev) want_dev=yes want_ja=yes; add_backend coqui; add_backend voxcpm ;;
        -h|--help) usage; exit 0 ;;
        *) usage >&2; fail "" "There is no option $1." ;;
    esac
    shift
done

# fits PYTHON LOW HIGH: whether it runs and is a Python 3.LOW to 3.HIGH.
fits() { "$1" -c "import sys; sys.exit(not (3, $2) <= sys.version_info[:2] <= (3, $3))" 2>/dev/null; }
can_make_venv() { "$1" -c 'import venv, ensurepip' 2>/dev/null; }

# The Python of this machine is taken where all languages run on it (3.11, 3.12), then such a one beside it, then newer.
choose_python() {
    without_venv=
    if [ -n "${PYTHON:-}" ]; then
        fits "$PYTHON" 11 14 || fail "PYTHON=$PYTHON is no Python 3.11 to 3.14."
        can_make_venv "$PYTHON" || without_venv=$PYTHON
        [ -z "$without_venv" ] && { python=$PYTHON; return; }
    else
        for candidate in python3:12 python3.12:12 python3.11:12 python3:14 python3.14:14 python3.13:14; do
            fits "${candidate%:*}" 11 "${candidate#*:}" || continue
            if can_make_venv "${candidate%:*}"; then python=${candidate%:*}; return; fi
            without_venv=${without_venv:-${candidate%:*}}
        done
    fi
    [ -n "$without_venv" ] && fail "$without_venv cannot make a virtual environment: its venv package is missing." \
        "Debian and Ubuntu: apt install $(basename "$without_venv")-venv. Then run ./setup.sh again."
    fail "Python 3.11, 3.12, 3.13 or 3.14 is needed; python3 here is $(python3 -V 2>/dev/null || echo 'not installed')." \
        "Debian and Ubuntu: apt install python3 python3-venv. Or name one: PYTHON=/path/to/python3.12 ./setup.sh"
}

# A venv is good while it works and lies where it was made: its programs name their Python by an absolute path.
make_venv() {
    [ -f "$stamps/venv" ] && [ "$(cat "$stamps/venv")" = "$here" ] && [ -x "$venv/bin/python" ] && return
    if [ ! -f "$stamps/venv" ] && grep -qsF -- "$here/$venv" "$venv/bin/activate" && fits "$venv/bin/python" 11 14 &&
        "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
        say "Keeping the virtual environment that is there."
    else
        choose_python
        say "Making a virtual environment in $venv/ with $("$python" -V) ..."
        "$python" -m venv --clear "$venv" || fail "The virtual environment could not be made."
    fi
    mkdir -p "$stamps"
    printf '%s\n' "$here" >"$stamps/venv"
}

hash_of() { cat -- "$@" | sha256sum | cut -d' ' -f1; }
is_done() { [ -f "$1" ] && [ "$(cat "$1")" = "$2" ]; }

pip_install() {
    "$venv/bin/python" -m pip --disable-pip-version-check --no-input -qq install \
        --no-deps --no-build-isolation --no-warn-script-location "$@" ||
        fail "The packages could not be installed (see above). Run ./setup.sh again: what is there stays."
}

# add NAME SENTENCE: install requirements/NAME.txt as it is locked, once.
add() {
    hash=$(hash_of "requirements/$1.txt")
    is_done "$stamps/$1" "$hash" && return
    [ -z "$2" ] || say "$2"
    pip_install --require-hashes --requirement "requirements/$1.txt"
    printf '%s\n' "$hash" >"$stamps/$1"
}

add_checkout() {
    hash=$(hash_of pyproject.toml)
    is_done "$stamps/checkout" "$hash" && return
    pip_install --editable .
    printf '%s\n' "$hash" >"$stamps/checkout"
}

add_model() {
    hash=$(hash_of requirements/kokoro-model.txt)
    is_done "$model_stamp" "$hash" && return
    "$venv/bin/python" -m backends.kokoro.model || exit 1
    mkdir -p "$(dirname "$model_stamp")"
    printf '%s\n' "$hash" >"$model_stamp"
}

# The answer of an earlier run holds until another is given.
add_zh() {
    [ "$want_zh" = no ] && printf 'declined\n' >"$stamps/zh"
    [ "$want_zh" = default ] && is_done "$stamps/zh" declined && return
    [ "$want_zh" = no ] && return
    if fits "$venv/bin/python" 11 12; then
        add zh "Downloading Chinese, about 25 MB (./setup.sh --without-zh leaves it out) ..."
    elif [ "$want_zh" = yes ]; then
        fail "Chinese needs Python 3.11 or 3.12, and venv/ has $("$venv/bin/python" -V)." \
            "Install one of them, remove venv/ and run ./setup.sh again."
    fi
}

# Engines on torch. Its builds differ from machine to machine, so that no hash fits all: its version is pinned alone.
torch_version=2.13.0 torchaudio_version=2.11.1 torchcodec_version=0.13.0
install_torch() {
    "$venv/bin/python" -m pip --disable-pip-version-check --no-input -qq install --no-warn-script-location \
        "torch==$torch_version"
}

# The index of an earlier run holds until another one is named: it is the last word of the stamp, empty for pip's own.
add_torch() {
    stamp=$(cat "$stamps/torch" 2>/dev/null) || stamp=
    stamped_index=${stamp##* }
    index=${TORCH_INDEX:-$stamped_index}
    wanted="$torch_version $torchaudio_version $torchcodec_version $index"
    [ "$stamp" = "$wanted" ] && return
    # pip takes a build of the same version for the same thing, wherever it came from.
    [ -z "$stamp" ] || [ "$index" = "$stamped_index" ] ||
        "$venv/bin/python" -m pip --disable-pip-version-check --no-input -qq uninstall --yes torch ||
        fail "The torch that is there could not be removed (see above)."
    printf 'unfinished %s\n' "$index" >"$stamps/torch"
    say "Downloading torch: 200 MB without CUDA, up to 3 GB with it (TORCH_INDEX chooses; see ./setup.sh --help) ..."
    if [ -n "$index" ]; then (export PIP_INDEX_URL="$index"; install_torch); else install_torch; fi ||
        fail "torch could not be installed (see above). Run ./setup.sh again: what is there stays."
    pip_install "torchaudio==$torchaudio_version" "torchcodec==$torchcodec_version"
    # Its compiled parts want the CUDA that they were built for. Nothing here uses them, and it does without.
    "$venv/bin/python" -c 'import torchaudio' 2>/dev/null || rm -f "$venv"/lib/python3.*/site-packages/torchaudio/lib/*.so
    printf '%s\n' "$wanted" >"$stamps/torch"
}

add_backends() {
    for backend in coqui voxcpm; do
        case "$backends " in *" $backend "*) ;; *) [ -f "$stamps/$backend" ] || continue ;; esac
        add_torch
        add "$backend" "Downloading what the $backend engine needs, about 250 MB ..."
    done
}

make_venv
add build ""
add base "Downloading the packages of the server, about 90 MB ..."
add_checkout
add_zh
add_backends
[ "$want_ja" = no ] && [ ! -f "$stamps/ja" ] || add ja "Downloading Japanese, about 110 MB ..."
[ "$want_dev" = no ] || add dev "Downloading the tools of developers, about 450 MB ..."
add_model
# Whoever sets GOES_ON starts the server, or whatever comes next, by itself.
[ "$want_dev" = yes ] || [ -n "${GOES_ON:-}" ] ||
    say "Ready. Start the server with: make serve (or venv/bin/python main_tts.py serve)"
