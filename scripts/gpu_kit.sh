#!/bin/sh
# Measure a machine with one GPU and no network. `pack` runs where there is one, `run` on the machine with the GPU.
#
#     scripts/gpu_kit.sh pack             # build/gpu_kit: parts of at most 60 MiB
#     MINUTES=9 scripts/gpu_kit.sh run    # docs/gpu/ and docs/gpu.md; begins nothing after so many minutes; the same command continues
#
# Copy the repository and build/gpu_kit. The parts may come one after the other: what has not arrived is named and left for the next
# call. The order of value is that of scripts/bench/bench.py gpu; then the real recipe, TRACK=qwen scripts/real.sh. Without a kit, `run`
# takes the packages that are installed (make gpu).
#
#     KIT=build/gpu_kit         folder of the parts
#     PYTHON=python3            pack: has the project installed; run: has PyTorch
#     MACHINE=FILE              pack: `python3 -m pip freeze` of the machine, whose packages are then left out (default: PyTorch's are)
#     MACHINE_PYTHON=3.12 MACHINE_TORCH=2.11.0 MACHINE_VLLM=0.22.0    pack: its versions, and the vLLM that was built for its PyTorch
#     MODEL=models/Qwen2.5-Coder-0.5B-Instruct    pack: checkpoint of the real recipe, cast to bfloat16; left out if it is not there
#     SMALL=1                   run: small sizes, also without a GPU, into $KIT/small
set -eu
cd "$(dirname "$0")/.."
kit=${KIT:-build/gpu_kit}
python=${PYTHON:-python3}
model=${MODEL:-models/Qwen2.5-Coder-0.5B-Instruct}
cocos_needs="pyyaml jinja2 tqdm pyseccomp datasets matplotlib tensorboard transformers>=5.20,<6 trl~=1.16.0 accelerate peft deepspeed"
# Of vLLM: kernels of other attentions, tools of its server, and media.
unused="flashinfer-cubin flashinfer-python tilelang nvidia-cutlass-dsl quack-kernels opencv-python-headless"

parts() { # archive, folder, files: $kit/ARCHIVE.00, .01, ..., and the sums of all archives so far
    archive=$1
    rm -f "$kit/$archive".[0-9]*
    tar -c -C "$2" $3 | split -b 60m -d - "$kit/$archive."
    (cd "$kit" && sha256sum -- *.[0-9][0-9] >SHA256SUMS)
    echo "$kit/$archive: $(ls "$kit/$archive".[0-9]* | wc -l) parts, $(cat "$kit/$archive".[0-9]* | wc -c | awk '{ print int($1 / 2^20) }') MiB"
}

pack() {
    mkdir -p "$kit/wheels" "$kit/vllm-wheels"
    set -- --constraint constraints.txt --python "${MACHINE_PYTHON:-3.12}" --torch "${MACHINE_TORCH:-2.11.0}"
    [ -z "${MACHINE:-}" ] || set -- "$@" --machine "$MACHINE"
    # DeepSpeed publishes no wheel; built without operators, it fits every Python.
    ls "$kit"/wheels/deepspeed-*.whl >/dev/null 2>&1 ||
        "$python" -m pip wheel --quiet --no-deps --wheel-dir "$kit/wheels" --constraint constraints.txt deepspeed
    # shellcheck disable=SC2086
    "$python" scripts/gpu_wheels.py "$kit/wheels" $cocos_needs "$@"
    parts wheels "$kit" wheels
    real=$kit/real
    rm -rf "$real"
    mkdir -p "$real/data/public"
    for set in mbpp humaneval; do
        [ ! -e data/public/$set ] || cp -r data/public/$set "$real/data/public/"
    done
    [ ! -e outputs/pool/train.jsonl ] || { mkdir -p "$real/outputs/pool" && cp outputs/pool/train.jsonl "$real/outputs/pool/"; }
    if [ -e "$model/config.json" ]; then
        "$python" - "$model" "$real/models/Qwen2.5-Coder-0.5B-Instruct" <<'END'
import sys
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
source, target = sys.argv[1:]
AutoModelForCausalLM.from_pretrained(source, dtype=torch.bfloat16).save_pretrained(target)
AutoTokenizer.from_pretrained(source).save_pretrained(target)
END
    else
        echo "$model is not there: no real recipe; make real-model fetches it"
    fi
    parts real "$real" .
    # shellcheck disable=SC2086
    "$python" scripts/gpu_wheels.py "$kit/vllm-wheels" "vllm==${MACHINE_VLLM:-0.22.0}" $cocos_needs "$@" \
        --constraint /dev/null --have "$kit/wheels" --leave_out $unused && parts vllm "$kit" vllm-wheels ||
        echo "vLLM ${MACHINE_VLLM:-0.22.0} is not packed (see above)"
}

arrive() { # archive, folder: unpack it once all its parts are here; says whether it is unpacked
    [ ! -e "$kit/.$1" ] || return 0
    grep " $1\." "$kit/SHA256SUMS" >"$kit/.sums" || return 1
    (cd "$kit" && sha256sum --check --quiet .sums >.missing 2>&1) || {
        echo "$kit/$1: $(grep -c . "$kit/.missing") lines say what is missing or damaged: $(head -1 "$kit/.missing")"
        return 1
    }
    mkdir -p "$2"
    cat "$kit/$1".[0-9][0-9] | tar -x -C "$2"
    touch "$kit/.$1"
}

install() { # folder of wheels, folder of packages
    [ -e "$2/.installed" ] && return
    "$python" -m pip install --quiet --no-index --no-deps --no-compile --upgrade --disable-pip-version-check --target "$2" "$1"/*.whl
    touch "$2/.installed"
}

run() {
    began=$(date +%s)
    minutes_left() { echo $((${MINUTES:-600} - ($(date +%s) - began) / 60)); }
    export PYTHONPATH="$PWD" HF_HUB_OFFLINE=1 HF_HUB_DISABLE_PROGRESS_BARS=1 VLLM_NO_USAGE_STATS=1 DO_NOT_TRACK=1
    if [ -e "$kit/SHA256SUMS" ]; then
        kit=$(cd "$kit" && pwd)
        arrive wheels "$kit" || { echo "error: $kit: the parts of \`wheels\` are needed first"; exit 2; }
        install "$kit/wheels" "$kit/site"
        mkdir -p "$kit/bin"
        # Scripts call `python`, which such machines may lack.
        printf '#!/bin/sh\nexec "%s" "$@"\n' "$(command -v "$python")" >"$kit/bin/python"
        chmod +x "$kit/bin/python"
        export PYTHONPATH="$kit/site:$PWD" PATH="$kit/bin:$kit/site/bin:$PATH"
    else
        PATH="$(dirname "$(command -v "$python")"):$PATH"
        export PATH
    fi
    set -- gpu
    [ -z "${SMALL:-}" ] || set -- "$@" --small --json "$kit/small/parts.json"
    "$python" scripts/bench/bench.py "$@" --minutes "$(minutes_left)"
    [ ! -e "$kit/SHA256SUMS" ] || ! arrive vllm "$kit" || {
        install "$kit/vllm-wheels" "$kit/vllm-site"
        PYTHONPATH="$kit/site:$kit/vllm-site:$PWD" "$python" scripts/bench/bench.py "$@" --minutes "$(minutes_left)"
    }
    [ ! -e "$kit/SHA256SUMS" ] || arrive real .  || true
    [ -e models/Qwen2.5-Coder-0.5B-Instruct/config.json ] || { echo "no model: the real recipe is left out"; return; }
    left=$(minutes_left)
    [ "$left" -gt 0 ] || { echo "the time is up; the same command continues with the real recipe"; return; }
    status=0
    # Without the problems of packages, those of MBPP's training split are repaired.
    [ -e outputs/pool/train.jsonl ] || export PROBLEMS=data/public/mbpp/train.jsonl
    LIMIT=${SMALL:+small} TRACK=qwen timeout "${left}m" scripts/real.sh || status=$?
    "$python" scripts/bench/bench.py "$@" --page # with the real recipe
    [ "$status" != 124 ] || { echo "the time is up; the same command continues"; return; }
    return "$status"
}

case ${1:-} in
pack) pack ;;
run) run ;;
*)
    sed -n 2,17p "$0" | cut -c 3-
    exit 2
    ;;
esac
