#!/bin/sh
# Run one track of a real model. The same command continues an interrupted run.
#   TRACK=qwen   Qwen2.5-Coder-0.5B-Instruct: untrained -> Boost -> CoCoS with feedback, joined with Boost on planted bugs and trained on, on MBPP and HumanEval
#   TRACK=controls   after it: single-turn RLOO, random rewards, and training without feedback, from the same Boost model
#   TRACK=base   SmolLM2-135M-Instruct, untrained, on MBPP, HumanEval and HumanEvalFix, with three protocols
#   TRACK=toy    SmolLM2: base -> Boost -> CoCoS on the first laboratory's problems, and single-turn RLOO beside CoCoS
#   TRACK=mbpp   SmolLM2: base -> Boost -> CoCoS on MBPP, evaluated on MBPP and HumanEval
#   TRACK=agents SmolLM2, Qwen2.5-Coder-0.5B and, after TRACK=qwen, the trained model: the turn loop and each agent on HumanEvalFix, HumanEval, MBPP
# TRACK is toy and SEED is 0 by default. `make real` first fetches the model and prepares the problems. Results go
# to outputs/real/base or outputs/real/$TRACK/seed$SEED, their tables to docs/results.
# With LIMIT they go to outputs/real-$LIMIT, and to no page.
# TRACK=qwen repairs programs for the problems of PROBLEMS, by default those of outputs/pool, which `make real` makes of
# the packages in configs/qwen/pool.txt; LIMIT=small plays a few problems and two updates, to test the path, and LIMIT=N the first N problems.
set -eu
cd "$(dirname "$0")/.."
seed=${SEED:-0}
track=${TRACK:-toy}
results=outputs/real${LIMIT:+-$LIMIT} # a few problems are no result of the whole set
base=models/SmolLM2-135M-Instruct
configs=configs/smollm2
data=data/public
# No progress bars when weights are loaded.
export HF_HUB_DISABLE_PROGRESS_BARS=1
export OMP_WAIT_POLICY=PASSIVE # idle threads leave the processor to the programs under test

step() { # name, command
    printf '\n=== %s (%s) ===\n' "$1" "$(date +%H:%M)"
    shift
    "$@"
}

evaluate() { # name, model, options of test.py
    evaluation=$1 model=$2
    shift 2
    [ -e "$out/$evaluation/metrics.json" ] ||
        step "evaluate $evaluation" python test.py --model_name_or_path "$model" --output_dir "$out/$evaluation" \
            --seed "$seed" --resume "$@"
}

evaluate_on_public() { # suffix of the names, model, options of test.py
    suffix=$1 evaluated=$2
    shift 2
    evaluate "mbpp-$suffix" "$evaluated" --config $configs/eval.yaml --test_data $data/mbpp/test.jsonl "$@"
    # HumanEval's standard prompt has no tests besides those of the docstring.
    evaluate "humaneval-$suffix" "$evaluated" --config $configs/eval.yaml --test_data $data/humaneval/test.jsonl \
        --prompt_tests 0 "$@"
}

boost_rows() { # name, options of make_boost_data.py, which continues by itself
    rows=$out/$1.jsonl
    shift
    [ -e "$rows" ] || step "make ${rows##*/}" python scripts/make_boost_data.py --output "$rows" --seed "$seed" "$@"
}

train() { # name of the model, script, options
    folder=$out/models/$1 script=$2
    shift 2
    [ ! -e "$folder/config.json" ] && [ ! -e "$folder/adapter_config.json" ] || return 0
    if ls "$folder"/checkpoint-*/trainer_state.json >/dev/null 2>&1; then
        set -- --resume_from_checkpoint last "$@"
    fi
    step "train ${folder##*/}" python "$script" --output_dir "$folder" --seed "$seed" "$@"
}

run_base() {
    sed -n 2,4p $data/mbpp/prompt.jsonl >"$out/examples.jsonl" # MBPP's usual three
    for protocol in chat repair cocos-fewshot; do
        set -- --protocol $protocol
        [ $protocol != cocos-fewshot ] || set -- "$@" --few_shot_data "$out/examples.jsonl"
        evaluate_on_public $protocol $base "$@"
        evaluate humanevalfix-$protocol $base --config $configs/eval.yaml --test_data $data/humanevalfix/test.jsonl "$@"
    done
}

run_toy() {
    sed -n 1,3p data/toy/boost.jsonl >"$out/examples.jsonl"
    evaluate base $base --config $configs/toy/eval.yaml --protocol cocos-fewshot --few_shot_data "$out/examples.jsonl"
    # The small model's attempts, of which more than half are right; hardly any of this model's are.
    boost_rows rows --config configs/toy/boost_data.yaml
    train boost boost/boost_train.py --config $configs/toy/boost.yaml --model_name_or_path $base \
        --train_data "$out/rows.jsonl"
    evaluate boost "$out/models/boost" --config $configs/toy/eval.yaml
    set -- train.py --config $configs/toy/cocos.yaml --model_name_or_path "$out/models/boost"
    train cocos "$@"
    evaluate cocos "$out/models/cocos" --config $configs/toy/eval.yaml
    # One turn, but twice as many trajectories, so that it samples as many tokens.
    train single-turn "$@" --num_turns 1 --improvement_bonus 0 --global_batch_size 128
    evaluate single-turn "$out/models/single-turn" --config $configs/toy/eval.yaml
    # Twice as long: first attempts are right then, and little is left to correct.
    train cocos-30 "$@" --max_steps 30
    evaluate cocos-30 "$out/models/cocos-30" --config $configs/toy/eval.yaml
    python -m cocos report "$out/boost" "$out/base" "$out/cocos" "$out/cocos-30" "$out/single-turn" \
        --output_dir "$out/report"
}

run_mbpp() {
    sed -n 2,4p $data/mbpp/prompt.jsonl >"$out/examples.jsonl"
    for split in train validation; do
        boost_rows rows_$split --config $configs/mbpp/boost_data.yaml --model_name_or_path $base \
            --few_shot_data "$out/examples.jsonl" --train_data $data/mbpp/$split.jsonl
    done
    train boost boost/boost_train.py --config $configs/mbpp/boost.yaml --model_name_or_path $base \
        --train_data "$out/rows_train.jsonl" --eval_data "$out/rows_validation.jsonl"
    evaluate_on_public boost "$out/models/boost"
    evaluate train-boost "$out/models/boost" --config $configs/mbpp/eval_train.yaml
    [ -e "$out/train.jsonl" ] || python scripts/select_problems.py $data/mbpp/train.jsonl "$out/train-boost" \
        --solved 0.05 0.9 --output "$out/train.jsonl"
    train cocos train.py --config $configs/mbpp/cocos.yaml --model_name_or_path "$out/models/boost" \
        --train_data "$out/train.jsonl"
    evaluate_on_public cocos "$out/models/cocos"
    python -m cocos report "$out/mbpp-boost" "$out/mbpp-cocos" --output_dir "$out/report"
}

# Options of the evaluations, of those that give programs to train on, and of the training runs of the track qwen.
case ${LIMIT:-} in
small)
    few="--limit 2 --max_completion_length 32" some="--limit 4 --max_completion_length 64"
    short="--max_steps 2 --global_batch_size 8" short_rl="--max_completion_length 48 --max_truncated_share 1"
    ;;
*) few=${LIMIT:+--limit $LIMIT} some=$few short="" short_rl="" ;;
esac

play() { # SET/NAME, model, options of test.py
    # shellcheck disable=SC2086
    evaluate "$@" --config $configs/eval.yaml $few
}

judge_again() { # humaneval or mbpp, NAME, its weights and options: its programs with EvalPlus' tests, where both have the problem
    judged=$1plus/$2 problems_plus=$data/$1plus/test.jsonl samples=$out/$1/$2/samples.jsonl model_plus=$3
    [ -e "$problems_plus" ] || return 0
    if [ "$1" = mbpp ]; then # EvalPlus calls MBPP's problem 11 Mbpp/11
        mkdir -p "$out/mbppplus"
        sed 's|"task_id": *"\([0-9]\)|"task_id": "Mbpp/\1|' "$samples" >"$out/mbppplus/programs-$2.jsonl"
        samples=$out/mbppplus/programs-$2.jsonl
    fi
    shift 3
    common=$(python scripts/common_problems.py "$problems_plus" "$samples")
    [ -n "$common" ] || return 0 # a few problems of LIMIT=small may be none of EvalPlus'
    # shellcheck disable=SC2086
    play "$judged" "$model_plus" "$@" --test_data "$problems_plus" --answers "$samples" --task_ids $common
}

play_protocols() { # the untrained model by other protocols, each with its own prompts
    for protocol in examples chat docstring asserts; do
        case $protocol in
        examples) set -- $shown --num_turns 2 ;;
        chat) set -- --protocol chat --num_turns 2 --max_completion_length 300 ;;
        *) set -- --prompt_file $configs/$protocol.yaml --num_turns 1 --max_completion_length 300 ;;
        esac
        set -- "$@" --feedback none --early_stop false
        for set in mbpp humaneval; do
            # HumanEval's standard prompt has no tests besides those of the docstring; CoCoS' own shows all of them.
            case $set-$protocol in
            mbpp-asserts) continue ;;
            humaneval-asserts) set -- "$@" --visible_tests 999 --prompt_tests 999 ;;
            humaneval-*) set -- "$@" --visible_tests 1 --prompt_tests 0 ;;
            *-docstring) set -- "$@" --visible_tests 1 --prompt_tests 1 ;;
            *) set -- "$@" --visible_tests 3 --prompt_tests 3 ;;
            esac
            play $set/untrained-$protocol $base --test_data $data/$set/test.jsonl "$@"
            judge_again $set untrained-$protocol $base "$@"
        done
    done
}

run_qwen() {
    base=models/Qwen2.5-Coder-0.5B-Instruct configs=configs/qwen
    problems=${PROBLEMS:-outputs/pool/train.jsonl}
    sed -n 2,4p $data/mbpp/prompt.jsonl >"$out/examples.jsonl" # MBPP's usual three
    shown="--protocol cocos-fewshot --few_shot_data $out/examples.jsonl"
    # Eight first programs of the untrained model at each training problem: Boost's attempts, and the pool's solve rates.
    # shellcheck disable=SC2086
    evaluate train-profile $base --config $configs/profile.yaml --test_data $data/mbpp/train.jsonl $shown $some
    boost_rows rows --config $configs/boost_data.yaml --train_data $data/mbpp/train.jsonl --samples "$out/train-profile" \
        --model_name_or_path $base
    # shellcheck disable=SC2086
    train boost boost/boost_train.py --config $configs/boost.yaml --model_name_or_path $base --train_data "$out/rows.jsonl" $short
    boost=$out/models/boost
    # What is left to repair: first programs of the Boost model, of which train.py leaves out those that pass.
    # shellcheck disable=SC2086
    evaluate train-states "$boost" --config $configs/eval_states.yaml --test_data "$problems" $some
    # shellcheck disable=SC2086
    train cocos train.py --config $configs/cocos.yaml --model_name_or_path "$boost" --train_data "$problems" \
        --answers "$out/train-states/samples.jsonl" $short $short_rl
    # RL teaches to start again, Boost with planted bugs the small repair; the mean of their adapters keeps a part of both.
    boost_rows rows-planted --config $configs/boost_data.yaml --train_data $data/mbpp/train.jsonl --samples "$out/train-profile" \
        --model_name_or_path $base --planted_bugs 2
    # shellcheck disable=SC2086
    train boost-planted boost/boost_train.py --config $configs/boost.yaml --model_name_or_path $base \
        --train_data "$out/rows-planted.jsonl" $short
    [ -e "$out/models/joined/adapter_config.json" ] || step "join cocos and boost-planted" \
        python scripts/join_adapters.py "$out/models/joined" "$out/models/cocos=0.5" "$out/models/boost-planted=0.5"
    # shellcheck disable=SC2086
    train joined-cocos train.py --config $configs/cocos.yaml --model_name_or_path "$out/models/joined" --train_data "$problems" \
        --answers "$out/train-states/samples.jsonl" --max_steps 5 $short $short_rl
    play_sets untrained $base "$shown"
    play_sets boost "$boost" "--protocol cocos"
    play_sets cocos "$out/models/cocos" "--protocol cocos"
    play_sets joined-cocos "$out/models/joined-cocos" "--protocol cocos"
    play_protocols
}

play_sets() { # NAME, its weights, its prompts: every set that has been prepared
    who=$1 weights=$2 format=$3
    for set in dev mbpp humaneval humanevalfix debugbench mbpp-r; do
        case $set in
        dev) file=$data/mbpp/validation.jsonl ;;
        *) file=$data/$set/test.jsonl ;;
        esac
        [ -e "$file" ] || continue
        # shellcheck disable=SC2086
        set -- --test_data "$file" $format
        case $set in debugbench | mbpp-r) set -- "$@" --answers buggy ;; esac
        play $set/$who "$weights" "$@"
    done
    # shellcheck disable=SC2086
    for set in humaneval mbpp; do judge_again $set $who "$weights" $format; done
    # Greedy first programs, but repairs at the temperature of training: greedily a model copies.
    # shellcheck disable=SC2086
    play mbpp/$who-t07 "$weights" --test_data $data/mbpp/test.jsonl $format --temperature 0 0.7
    # The control: three first programs, of which the visible test chooses one.
    # shellcheck disable=SC2086
    play mbpp/$who-sampled "$weights" --test_data $data/mbpp/test.jsonl $format --num_turns 1 --num_samples 3 \
        --temperature 0.8 --feedback none --early_stop false
    # And three sampled turns beside as many sampled first programs as cost the same.
    # shellcheck disable=SC2086
    play dev/$who-turns "$weights" --test_data $data/mbpp/validation.jsonl $format --num_samples 8 --temperature 0.7
}

# What the gain of `cocos` is made of: the same Boost model, problems, updates and sampled programs, but one turn alone;
# or rewards by chance; or, as in the paper, two turns without feedback.
run_controls() {
    configs=configs/qwen
    problems=${PROBLEMS:-outputs/pool/train.jsonl}
    boost=$out/models/boost
    if [ ! -e "$boost/adapter_config.json" ]; then
        echo "error: there is no $boost; run TRACK=qwen make real first" >&2
        exit 2
    fi
    untold="--feedback none --early_stop false"
    for control in single-turn random no-feedback; do
        case $control in
        single-turn) set -- $untold --num_turns 1 ;;
        random) set -- --reward random --answers "$out/train-states/samples.jsonl" ;;
        no-feedback) set -- $untold --global_batch_size 32 ;;
        esac
        # shellcheck disable=SC2086
        train $control train.py --config $configs/cocos.yaml --model_name_or_path "$boost" --train_data "$problems" "$@" $short $short_rl
        set -- --protocol cocos
        [ $control != no-feedback ] || set -- "$@" $untold --num_turns 2
        play dev/$control "$out/models/$control" --test_data $data/mbpp/validation.jsonl "$@"
        play mbpp/$control "$out/models/$control" --test_data $data/mbpp/test.jsonl "$@"
    done
    play mbpp/boost-no-feedback "$boost" --test_data $data/mbpp/test.jsonl --protocol cocos $untold --num_turns 2
}

# The agents' own configurations, with the same limits for the turn loop.
run_agents() {
    trained=outputs/real/qwen/seed$seed/models/cocos
    for weights in $base models/Qwen2.5-Coder-0.5B-Instruct "$trained"; do
        [ -e "$weights/config.json" ] || [ -e "$weights/adapter_config.json" ] || continue
        for set in humanevalfix humaneval mbpp; do
            case $weights-$set in
            "$trained"-*) words=cocos ;;
            *-humanevalfix) words=fix ;;
            *) words=repair ;;
            esac
            for agent in none react reflect tools; do
                # `tools` needs a chat template that shows tools.
                [ $agent != tools ] || grep -qs tools "$weights/chat_template.jinja" "$weights/tokenizer_config.json" || continue
                [ $agent-$words != tools-cocos ] || continue
                set -- --agent $agent
                [ ! -e configs/agents/$agent.yaml ] || set -- --config configs/agents/$agent.yaml
                # HumanEval's standard prompt has no tests besides those of the docstring.
                [ $set != humaneval ] || set -- "$@" --prompt_tests 0
                # shellcheck disable=SC2086
                evaluate "${weights##*/}/$set-$agent" "$weights" "$@" --test_data $data/$set/test.jsonl --protocol $words \
                    --num_turns 5 --max_completion_length 256 --batch_size 64 --dtype bfloat16 $few
            done
        done
        python -m cocos report "$out/${weights##*/}"/* --output_dir "$out/report-${weights##*/}"
    done
}

case $track in
base | agents) out=$results/$track ;;
controls) out=$results/qwen/seed$seed ;;
qwen | toy | mbpp) out=$results/$track/seed$seed ;;
*)
    echo "error: TRACK is $track; choose qwen, controls, base, toy, mbpp or agents" >&2
    exit 2
    ;;
esac
mkdir -p "$out"
"run_$track"
[ "$track" = agents ] || [ -n "${LIMIT:-}" ] || python scripts/results.py $results
