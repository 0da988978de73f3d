#!/bin/sh
# Run the whole pipeline on the laboratory: base -> Boost -> CoCoS, each evaluated on held-out problems over two turns.
# Takes two to four minutes on two CPU cores. SEED is 0 by default; results go to outputs/demo/seed$SEED.
set -eu
cd "$(dirname "$0")/.."
seed=${SEED:-0}
out=outputs/demo/seed$seed
toy=data/toy
began=$(date +%s)
# No progress bars when a model of 4 MB is loaded.
export HF_HUB_DISABLE_PROGRESS_BARS=1
export OMP_WAIT_POLICY=PASSIVE # idle threads leave the processor to the programs under test
rm -rf "$out"
mkdir -p "$out"

step() {
    printf '\n=== %s (%d s) ===\n' "$1" $(($(date +%s) - began))
}

evaluate() { # name, model
    step "evaluate $1 on $toy/test.jsonl"
    python test.py --config configs/toy/eval.yaml --model_name_or_path "$2" --output_dir "$out/$1" --seed "$seed"
}

evaluate base $toy/base

step "Boost rows: the base model's attempts and their corrections"
python scripts/make_boost_data.py --config configs/toy/boost_data.yaml --output "$out/boost_rows.jsonl" --seed "$seed"

step "stage 1: Boost"
python boost/boost_train.py --config configs/toy/boost.yaml --train_data "$out/boost_rows.jsonl" \
    --output_dir "$out/models/boost" --seed "$seed"
evaluate boost "$out/models/boost"

step "stage 2: CoCoS"
python train.py --config configs/toy/cocos.yaml --model_name_or_path "$out/models/boost" \
    --output_dir "$out/models/cocos" --seed "$seed"
evaluate cocos "$out/models/cocos"

step "report"
python -m cocos.report "$out/base" "$out/boost" "$out/cocos" --output_dir "$out/report"
echo "open $out/report/report.html in a browser; every completion is in $out/*/samples.jsonl"
