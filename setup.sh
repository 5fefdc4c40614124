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
  --with redis   add what REDIS_URL needs (under 1 MB)
  --backend NAME add an engine: coqui (XTTS-v2), voxcpm (VoxCPM 1.5 and 2), or voxcpm-vllm (VoxCPM2 by batching, for
                 NVIDIA GPUs of 24 GB and more); torch, and 110 to 250 MB more to download
  --dev          add what developers need: checks, tests, speech recognition for the tests; Japanese too
  --help         this text

PYTHON=/path/to/python3.12 ./setup.sh chooses the Python (3.11 to 3.14).
TORCH_INDEX=URL takes torch from another package index: PyTorch's own has builds for each CUDA version, and one
without CUDA, which is a tenth as large. Its install page names them. It holds until another one is named, which then
replaces the torch that is there.
FLASH_ATTN_WHEEL=FILE or FOLDER names a flash-attn for voxcpm-vllm, built for this Python and torch; without one it is
compiled here, for the GPU of this machine alone, which takes nvcc and time. FORCE=yes installs it where no GPU is found.
END
}

say() { printf '%s\n' "$*"; }
fail() { printf '%s\n' "$@" >&2; exit 1; }

# add_backend NAME: remember an engine that is asked for. The embedded one is always there.
add_backend() {
    case $1 in
        coqui | voxcpm | voxcpm-vllm) backends="$backends $1" ;;
        kokoro) ;;
        *) fail "--backend takes kokoro, coqui, voxcpm or voxcpm-vllm." ;;
    esac
}

add_extra() {
    case $1 in zh) want_zh=yes ;; ja) want_ja=yes ;; redis) want_redis=yes ;; *) fail "--with takes zh, ja or redis." ;; esac
}

want_zh=default want_ja=no want_redis=no want_dev=no backends=
while [ $# -gt 0 ]; do
    case $1 in
        --without-zh) want_zh=no ;;
        --with) shift; add_extra "${1:-}" ;;
        --with=*) add_extra "${1#*=}" ;;
        --backend) shift; add_backend "${1:-}" ;;
        --backend=*) add_backend "${1#*=}" ;;
        --dev) want_dev=yes want_ja=yes want_redis=yes; add_backend coqui; add_backend voxcpm ;;
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
    for backend in coqui voxcpm voxcpm-vllm; do
        case "$backends " in *" $backend "*) ;; *) [ -f "$stamps/$backend" ] || continue ;; esac
        [ "$backend" != voxcpm-vllm ] || check_gpu
        add_torch
        add "$backend" "Downloading what the $backend engine needs, about 250 MB ..."
        [ "$backend" != voxcpm-vllm ] || add_flash_attn
    done
}

# Compute capabilities of the GPUs that are there, such as 9.0, one a line.
capabilities() { nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | sort -u; }

check_gpu() {
    fits "$venv/bin/python" 11 12 || fail "voxcpm-vllm needs Python 3.11 or 3.12, and venv/ has $("$venv/bin/python" -V)." \
        "Install one of them, remove venv/ and run ./setup.sh again."
    [ "${FORCE:-}" != yes ] || return 0
    found=$(capabilities)
    [ -n "$found" ] || fail "voxcpm-vllm needs an NVIDIA GPU, and nvidia-smi finds none here." \
        "--backend voxcpm does without one; FORCE=yes installs voxcpm-vllm all the same."
    for capability in $found; do
        [ "${capability%%.*}" -ge 8 ] || fail "voxcpm-vllm needs GPUs of compute capability 8.0 (Ampere) or newer;" \
            "one here has $capability. --backend voxcpm speaks on it."
    done
}

has_flash_attn() { "$venv/bin/python" -c 'import flash_attn' 2>/dev/null; }

# wheel_in PATH: a flash-attn for this Python and processor, the last one by name; PATH is a file, or a folder of them.
wheel_in() {
    [ ! -f "$1" ] || { printf '%s\n' "$1"; return; }
    tag=$("$venv/bin/python" -c 'import sys; print("cp%d%d" % sys.version_info[:2])')
    for wheel in "$1"/flash_attn-*"-$tag-$tag-"*"$(uname -m).whl"; do [ ! -f "$wheel" ] || last=$wheel; done
    printf '%s\n' "${last:-}"
}

# Compiling takes about 5 GB of memory a job.
jobs() {
    cores=$(getconf _NPROCESSORS_ONLN)
    free_gb=$(awk '/^MemAvailable/ {print int($2 / 1048576)}' /proc/meminfo)
    most=$((free_gb / 5))
    [ "$most" -lt "$cores" ] || most=$cores
    [ "$most" -ge 1 ] || most=1
    echo "$most"
}

add_flash_attn() {
    wanted="$(hash_of requirements/flash-attn.txt) ${FLASH_ATTN_WHEEL:-} $(cat "$stamps/torch")"
    is_done "$stamps/flash-attn" "$wanted" && return
    if [ -n "${FLASH_ATTN_WHEEL:-}" ]; then
        wheel=$(wheel_in "$FLASH_ATTN_WHEEL")
        [ -n "$wheel" ] || fail "FLASH_ATTN_WHEEL: there is no flash-attn for $("$venv/bin/python" -V) on $(uname -m) in $FLASH_ATTN_WHEEL."
        pip_install --force-reinstall "$wheel"
        has_flash_attn || fail "The flash-attn in $wheel does not fit the torch that is here: it cannot be imported."
    elif ! has_flash_attn; then
        build_flash_attn
    fi
    printf '%s\n' "$wanted" >"$stamps/flash-attn"
}

build_flash_attn() {
    PATH=$PATH:${CUDA_HOME:-/usr/local/cuda}/bin
    command -v nvcc >/dev/null || fail "flash-attn has to be compiled here, and nvcc is not installed." \
        "Install the CUDA toolkit that your torch was built for, or name a wheel: FLASH_ATTN_WHEEL=FILE ./setup.sh --backend voxcpm-vllm"
    archs=$(capabilities | tr -d .)
    [ -n "$archs" ] || fail "flash-attn is compiled for the GPU that is here, and there is none: name a wheel by FLASH_ATTN_WHEEL."
    # One build is for all of 8.x, one for all of 10.x, one for all of 12.x.
    archs=$(printf '%s\n' "$archs" | sed 's/^8.$/80/; s/^1\([02]\).$/1\10/' | sort -u | paste -sd ';')
    count=$(jobs)
    say "Compiling flash-attn for compute capability $archs with $count jobs: half an hour with 16, longer with fewer ..."
    (
        export FLASH_ATTENTION_FORCE_BUILD=TRUE FLASH_ATTN_CUDA_ARCHS="$archs" MAX_JOBS="$count" NVCC_THREADS=1
        pip_install --require-hashes --requirement requirements/flash-attn.txt
    )
    has_flash_attn || fail "flash-attn was compiled, and cannot be imported: is nvcc of the CUDA that torch was built for?"
}

make_venv
add build ""
add base "Downloading the packages of the server, about 90 MB ..."
add_checkout
add_zh
add_backends
[ "$want_ja" = no ] && [ ! -f "$stamps/ja" ] || add ja "Downloading Japanese, about 110 MB ..."
[ "$want_redis" = no ] && [ ! -f "$stamps/redis" ] || add redis ""
[ "$want_dev" = no ] || add dev "Downloading the tools of developers, about 450 MB ..."
add_model
# Whoever sets GOES_ON starts the server, or whatever comes next, by itself.
[ "$want_dev" = yes ] || [ -n "${GOES_ON:-}" ] ||
    say "Ready. Start the server with: make serve (or venv/bin/python main_tts.py serve)"
