#!/bin/sh
# Run a laboratory from the base model to the report, each model evaluated on held-out problems over two turns.
#   LAB=first     base -> Boost -> CoCoS: a model learns to correct itself; two to four minutes on two CPU cores
#   LAB=feedback  base -> Boost -> CoCoS with feedback: one attempt cannot, and two can; five minutes
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

evaluate() { # name, model
    step "evaluate $1 on held-out problems"
    python test.py --config "$eval" --model_name_or_path "$2" --output_dir "$out/$1" --seed "$seed"
}

run() { # folder of the results, base model, configs of Boost data, Boost, training and evaluation
    out=$1 base=$2 boost_data=$3 boost=$4 cocos=$5 eval=$6
    rm -rf "$out"
    mkdir -p "$out"
    evaluate base "$base"

    step "Boost rows: the base model's attempts and their corrections"
    python scripts/make_boost_data.py --config "$boost_data" --output "$out/boost_rows.jsonl" --seed "$seed"

    step "stage 1: Boost"
    python boost/boost_train.py --config "$boost" --train_data "$out/boost_rows.jsonl" \
        --output_dir "$out/models/boost" --seed "$seed"
    evaluate boost "$out/models/boost"

    # Every checkpoint that was evaluated stays (12 MB each), so that the course of the training can be replayed.
    step "stage 2: CoCoS"
    python train.py --config "$cocos" --model_name_or_path "$out/models/boost" \
        --output_dir "$out/models/cocos" --seed "$seed" --save_total_limit 10
    evaluate cocos "$out/models/cocos"

    step "report"
    python -m cocos.report "$out/base" "$out/boost" "$out/cocos" --output_dir "$out/report"
    echo "open $out/report/report.html in a browser; every completion is in $out/*/samples.jsonl"
}

toy=configs/toy
case $lab in
first)
    run "outputs/demo/seed$seed" data/toy/base $toy/boost_data.yaml $toy/boost.yaml $toy/cocos.yaml $toy/eval.yaml
    ;;
feedback)
    run "outputs/demo/feedback/seed$seed" data/toy/feedback/base $toy/feedback_boost_data.yaml \
        $toy/feedback_boost.yaml $toy/feedback.yaml $toy/feedback_eval.yaml
    ;;
*)
    echo "error: LAB is $lab; choose first or feedback" >&2
    exit 2
    ;;
esac
