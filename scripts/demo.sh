#!/bin/sh
# Run a laboratory from the base model to the report, each model evaluated on held-out problems over two turns.
#   LAB=first     base -> Boost -> CoCoS: a model learns to correct itself; two to four minutes on two CPU cores
#   LAB=feedback  base -> RLOO of one turn, and of two with feedback: one attempt cannot, and two can; five minutes
# LAB is first and SEED is 0 by default; results go to outputs/demo/seed$SEED or outputs/demo/feedback/seed$SEED.
set -eu
cd "$(dirname "$0")/.."
seed=${SEED:-0}
lab=${LAB:-first}
began=$(date +%s)
# No progress bars when a model of 4 MB is loaded.
export HF_HUB_DISABLE_PROGRESS_BARS=1
export OMP_WAIT_POLICY=PASSIVE # idle threads leave the processor to the programs under test

step() {
    printf '\n=== %s (%d s) ===\n' "$1" $(($(date +%s) - began))
}

start() { # folder of the results
    out=$1
    rm -rf "$out"
    mkdir -p "$out"
}

evaluate() { # name, model, config
    step "evaluate $1 on held-out problems"
    python test.py --config "$3" --model_name_or_path "$2" --output_dir "$out/$1" --seed "$seed"
}

report() { # folders of evaluations
    step "report"
    python -m cocos.report "$@" --output_dir "$out/report"
    echo "open $out/report/report.html in a browser; every completion is in $out/*/samples.jsonl"
}

first() {
    start "outputs/demo/seed$seed"
    evaluate base data/toy/base configs/toy/eval.yaml

    step "Boost rows: the base model's attempts and their corrections"
    python scripts/make_boost_data.py --config configs/toy/boost_data.yaml --output "$out/boost_rows.jsonl" --seed "$seed"

    step "stage 1: Boost"
    python boost/boost_train.py --config configs/toy/boost.yaml --train_data "$out/boost_rows.jsonl" \
        --output_dir "$out/models/boost" --seed "$seed"
    evaluate boost "$out/models/boost" configs/toy/eval.yaml

    step "stage 2: CoCoS"
    python train.py --config configs/toy/cocos.yaml --model_name_or_path "$out/models/boost" \
        --output_dir "$out/models/cocos" --seed "$seed"
    evaluate cocos "$out/models/cocos" configs/toy/eval.yaml
    report "$out/base" "$out/boost" "$out/cocos"
}

feedback() {
    start "outputs/demo/feedback/seed$seed"
    evaluate base data/toy/feedback/base configs/toy/feedback_eval.yaml

    step "RLOO of one turn, with as many completions"
    python train.py --config configs/toy/feedback.yaml --num_turns 1 --improvement_bonus 0 --global_batch_size 256 \
        --per_device_train_batch_size 256 --output_dir "$out/models/one_turn" --seed "$seed"
    evaluate one_turn "$out/models/one_turn" configs/toy/feedback_eval.yaml

    step "CoCoS: RLOO of two turns, with feedback between them"
    python train.py --config configs/toy/feedback.yaml --output_dir "$out/models/cocos" --seed "$seed"
    evaluate cocos "$out/models/cocos" configs/toy/feedback_eval.yaml
    report "$out/base" "$out/one_turn" "$out/cocos"
}

case $lab in
first | feedback) "$lab" ;;
*)
    echo "error: LAB is $lab; choose first or feedback" >&2
    exit 2
    ;;
esac
