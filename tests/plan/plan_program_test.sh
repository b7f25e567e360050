#!/bin/bash
# The program: a table, an explanation, advice, help, and one line for each wrong input.
# Usage: plan_program_test.sh PLAN
set -u
plan=$(realpath "$1")
dir=$(mktemp -d "${TEST_TMPDIR:-/tmp}/plan.XXXXXX")
cd "$dir" || exit 1
failures=0

fail() { echo "FAIL: $*"; failures=$((failures + 1)); }

# expect WHAT PATTERN COMMAND...: exit code 0 and a line that matches.
expect() {
  local what=$1 pattern=$2; shift 2
  "$@" > out.txt 2> err.txt || fail "$what: exit code $? ($(cat err.txt))"
  grep -qE -- "$pattern" out.txt || { fail "$what: no line like $pattern in:"; cat out.txt; }
}

# refuse LINE COMMAND...: exit code 2, nothing but this line, which may be a pattern.
refuse() {
  local line=$1; shift
  "$@" > out.txt 2> err.txt
  local code=$?
  [[ $code == 2 ]] || fail "exit code $code of: $*"
  if [[ $(wc -l < err.txt) != 1 ]] || ! grep -qxE -- "$line" err.txt; then
    fail "expected $line, got:"
    cat err.txt
  fi
}

cat > cluster.txt <<'END'
nodes: 2
ranks_per_node: 4
memory_gigabytes_per_rank: 2
compute { type: "float32" teraflops: 1 }
memory_gigabytes_per_s: 100
within_node { gigabytes_per_s: 20 latency_us: 5 }
between_nodes { gigabytes_per_s: 10 latency_us: 20 }
END
sed 's/nodes: 2/nodes: none/' cluster.txt > wrong.txt
grep -v node cluster.txt > alone.txt
printf 'nodes: 1\nranks_per_node: 1\n' >> alone.txt

expect "a search" '^   1  .* (ddp|zero|fsdp)' "$plan" llama --cluster=cluster.txt --samples-per-step=32
expect "advice" '^Advice: ' "$plan" llama --cluster=cluster.txt --samples-per-step=32
expect "flags that run it" '--nproc=8 --mesh=' "$plan" llama --cluster=cluster.txt --samples-per-step=32
expect "the stages of a rank" ' --pipeline-schedule=interleaved --pipeline-chunks=4$' "$plan" llama --cluster=cluster.txt \
  --n-layers=8 --mesh=pp=2,dp_replicate=4 --gradient-accumulation-steps=4 --pipeline-schedule=interleaved --pipeline-chunks=4 --explain
expect "what fsdp keeps" ' --no-reshard-after-forward --no-prefetch$' "$plan" llama --cluster=cluster.txt \
  --mesh=dp_shard=8 --strategy=fsdp --no-reshard-after-forward --no-prefetch --explain
expect "a mesh" '^  tp +all_reduce ' "$plan" llama --cluster=cluster.txt --mesh=dp_shard=2,tp=4 --explain
expect "terms" '^  a step .* 100.0 %$' "$plan" gpt --cluster=cluster.txt --mesh=pp=2,dp_replicate=4 --strategy=ddp \
  --gradient-accumulation-steps=4 --explain
expect "images" 'vit, 304,250,856 parameters' "$plan" vit --cluster=cluster.txt --samples-per-step=64
expect "a text of few characters" 'gpt, 85,[0-9,]+ parameters' "$plan" gpt --preset=gpt2 --vocab-size=86 --cluster=cluster.txt
expect "a preset" 'gpt, 12[34],[0-9,]+ parameters, 12 blocks of width 768' "$plan" gpt --preset=gpt2 --cluster=cluster.txt
expect "a dry run" '^Dry run of a step on 8 ranks: 4 of them' \
  "$plan" llama --cluster=cluster.txt --mesh=pp=2,dp_shard=2,tp=2 --strategy=fsdp --gradient-accumulation-steps=2 --dry-run
expect "what its ranks send" '^  0 pp=0,.* dp_shard [0-9.]+, .*tp [0-9.]+' \
  "$plan" llama --cluster=cluster.txt --mesh=pp=2,dp_shard=2,tp=2 --strategy=fsdp --gradient-accumulation-steps=2 --dry-run
expect "a dry run of images" '^Dry run of a step on 2 ranks' \
  "$plan" vit --preset=cpu --cluster=cluster.txt --mesh=cp=2 --batch-size=4 --dry-run
expect "a dry run of muon" '^Dry run of a step on 8 ranks' \
  "$plan" llama --cluster=cluster.txt --mesh=dp_shard=8 --strategy=fsdp --batch-size=4 --optimizer=muon --dry-run
expect "a dry run of sums over a tree" '^Dry run of a step on 2 ranks' \
  "$plan" gpt --vocab-size=65 --cluster=cluster.txt --mesh=dp_shard=2 --strategy=fsdp --batch-size=8 --reproducible --dry-run
# 804,096 parameters without experts, and 918,528 for each of the 4 blocks that has them.
experts=("$plan" gpt --vocab-size=65 --batch-size=8 --cluster=cluster.txt --mesh=dp_shard=8 --strategy=fsdp --moe)
expect "a dry run of experts" '^Dry run of a step on 8 ranks' "${experts[@]}" --moe-every=2 --dry-run
expect "their parameters" 'gpt, 2,641,152 parameters, 4 blocks of width 128' "${experts[@]}" --moe-every=2 --dry-run
expect "those of every block" 'gpt, 4,478,208 parameters, 4 blocks of width 128' "${experts[@]}" --moe-every=1 --dry-run
expect "flags of experts that there are not" 'gpt, 804,096 parameters' "${experts[@]}" --nomoe --moe-every=2
# Without --samples-per-step, a step has the samples of the trainer's flags.
"$plan" llama --cluster=cluster.txt --samples-per-step=96 > given.txt || fail "96 samples per step"
for flags in --batch-size=4 --global-batch-size=32; do
  "$plan" llama --cluster=cluster.txt $flags --gradient-accumulation-steps=3 > out.txt
  cmp given.txt out.txt || fail "$flags --gradient-accumulation-steps=3 is not a step of 96 samples"
done
# 64 ranks, more than a trainer starts by itself.
sed 's/nodes: 2/nodes: 16/' cluster.txt > large.txt
expect "a mesh that fills the cluster" '^Dry run of a step on 64 ranks' \
  "$plan" llama --cluster=large.txt --mesh=dp_shard=-1,tp=8 --strategy=fsdp --dry-run
# A micro-batch of 2 samples on the ranks that have most, for 5, 6 or 8 of all 4: as long a step, with fewer tokens.
for samples in 5 6 8; do
  "$plan" llama --cluster=cluster.txt --mesh=dp_shard=4 --strategy=fsdp --global-batch-size=$samples --explain > out.txt
  awk '$1 == "1" {gsub(",", "", $10); print $9, $10}' out.txt > unequal_$samples.txt
  flag=--global-batch-size=$samples
  [[ $samples == 8 ]] && flag=--batch-size=2
  grep -qE -- "--strategy=fsdp $flag( |$)" out.txt || { fail "no $flag in:"; cat out.txt; }
done
cat unequal_*.txt | awk 'NR == 1 {ms = $1; five = $2} $1 != ms {exit 1} NR == 2 {six = $2} NR == 3 {eight = $2}
  END {exit !(eight > 0 && five / eight > 0.624 && five / eight < 0.626 && six / eight > 0.749 && six / eight < 0.751)}' ||
  fail "tokens/s of 5, 6 and 8 samples: $(cat unequal_*.txt)"
expect "a limit below the file's" ' 2 x 4 ranks of 1 GB' \
  "$plan" llama --cluster=cluster.txt --samples-per-step=96 --memory-limit=1000000000
expect "a limit above it" ' 2 x 4 ranks of 2 GB' "$plan" llama --cluster=cluster.txt --samples-per-step=96 --memory-limit=1000G
# 64 ranks on a node of 4 x 2 GB have 8 GB together: too little for 64 times 33.6 M parameters of 16 bytes.
sed 's/nodes: 2/nodes: 1/' cluster.txt > node.txt
expect "memory that ranks share" ' 1 x 64 ranks of 0\.125 GB' \
  "$plan" llama --cluster=node.txt --mesh=dp_shard=64 --strategy=fsdp --nproc=64
expect "that it is too little" '^   1  dp_replicate=64 .* [0-9.]+ GB over ' \
  "$plan" llama --cluster=node.txt --mesh=dp_replicate=64 --strategy=ddp --nproc=64 --batch-size=1
expect "memory of fewer ranks" ' 1 x 4 ranks of 2 GB' "$plan" llama --cluster=node.txt --nproc=2 --samples-per-step=8
expect "zero1" '^   1  .* zero1' "$plan" llama --cluster=cluster.txt --samples-per-step=32 --strategy=zero1 --top=1000
grep -qE '^ *[0-9]+  .* (ddp|zero2|fsdp)[+* ]' out.txt && { fail "--strategy=zero1 is not the only one of:"; cat out.txt; }
expect "the strategy that is asked for" '^   1  .* fsdp' \
  "$plan" llama --cluster=cluster.txt --samples-per-step=32 --strategy=fsdp
expect "why no mesh is advised" '^  No mesh of this choice can split the step: 6 samples; expected a multiple of its 4 ' \
  "$plan" llama --cluster=node.txt --samples-per-step=6 --vocab-size=64
calibrate=("$plan" gpt --n-layer=1 --n-embd=32 --n-head=2 --block-size=16 --vocab-size=64 --batch-size=2)
"${calibrate[@]}" --nproc=1 --calibrate=absent/own.txt > out.txt 2> err.txt
code=$?
if [[ $code != 1 || -s out.txt ]] || ! grep -qE '^plan: --calibrate: cannot write .*/absent/own.txt: there is no folder' err.txt; then
  fail "a calibration that cannot be written: exit code $code, $(cat err.txt)"
fi
expect "a calibration on the ranks of a mesh" '^ranks_per_node: 2$' "${calibrate[@]}" --calibrate=own.txt --mesh=dp_replicate=2
expect "the machine's processors" "^processors_per_node: $(env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc)\$" cat own.txt
expect "a plan for the calibrated machine" ' 1 x 2 ranks of ' "${calibrate[@]}" --cluster=own.txt --strategy=ddp
expect "help" '--\[no\]explain' "$plan" --help
expect "help of a model" '--n-kv-heads' "$plan" llama --help

refuse 'plan: expected gpt, llama or vit first .*' "$plan"
refuse 'plan: expected gpt, llama or vit first .*' "$plan" bert --cluster=cluster.txt
refuse 'plan: expected --cluster=FILE, or --calibrate=FILE to write one' "$plan" llama
refuse 'plan: .*/none.txt: cannot be read' "$plan" llama --cluster=none.txt
refuse 'plan: .*/wrong.txt:1:8: Expected integer, got: none' "$plan" llama --cluster=wrong.txt
refuse 'plan: unknown flag --n-layer; did you mean --n-layers\?.*' "$plan" llama --cluster=cluster.txt --n-layer=2
refuse 'plan: --top: expected a search, without --mesh.*' "$plan" llama --cluster=cluster.txt --mesh=dp_shard=8 --top=3
refuse 'plan: --samples-per-step: expected --cluster=FILE' "$plan" llama --calibrate=new.txt --samples-per-step=64
refuse 'plan: --top=0: must be at least 1' "$plan" llama --cluster=cluster.txt --top=0
refuse 'plan: --mesh=tp=3,dp_shard=-1: .*' "$plan" llama --cluster=cluster.txt --mesh=tp=3,dp_shard=-1 --nproc=8
refuse 'plan: --mesh=dp_shard=16: 16 ranks, but the cluster has 8; .*' "$plan" llama --cluster=cluster.txt --mesh=dp_shard=16
refuse 'plan: --nproc=16: the cluster has 8 ranks; expected at most as many' "$plan" llama --cluster=cluster.txt --nproc=16
refuse "plan: --nproc=4: the cluster's file has no within_node .*" "$plan" llama --cluster=alone.txt --nproc=4
refuse 'plan: the cluster.s file has no compute \{ type: "bfloat16" ... \}' "$plan" llama --cluster=cluster.txt --dtype=bfloat16
refuse 'plan: tp=8: .*attention\.w[kq] has [0-9]+ heads; expected a multiple' \
  "$plan" llama --cluster=cluster.txt --mesh=tp=8 --n-heads=4 --n-kv-heads=4 --strategy=fsdp
refuse 'plan: pp=8: the model has 4 blocks; .*' "$plan" llama --cluster=cluster.txt --mesh=pp=8 --n-layers=4
refuse 'plan: no mesh of 8 ranks can split 7 samples .*' \
  "$plan" gpt --cluster=cluster.txt --samples-per-step=7 --block-size=63 --n-layer=1 --n-head=1
refuse 'plan: --device=cuda: --calibrate measures the host.s processors only; expected cpu' \
  "$plan" llama --calibrate=gpu.txt --device=cuda
refuse 'plan: --dry-run: expected --cluster=FILE, not --calibrate' "$plan" llama --calibrate=dry.txt --dry-run
refuse 'plan: --dry-run: expected --mesh' "$plan" llama --cluster=cluster.txt --dry-run
refuse 'plan: rank 0 needs [0-9.]+ GB, but only 2.000 GB are available .*' \
  "$plan" gpt --preset=gpt2-xl --cluster=cluster.txt --mesh=dp_replicate=2 --dry-run
refuse 'plan: --activation-checkpointing=full: not supported by estimates; expected --dry-run, or none' \
  "$plan" llama --cluster=cluster.txt --activation-checkpointing=full
refuse 'plan: --reproducible: not supported by estimates; expected --dry-run, or ordinary sums' \
  "$plan" llama --cluster=cluster.txt --reproducible
refuse 'plan: --mesh=lp=2,dp_shard=2: not supported by estimates; expected --dry-run, or a mesh without lp' \
  "$plan" llama --cluster=cluster.txt --mesh=lp=2,dp_shard=2
refuse 'plan: --mesh=dp_shard=4,ep=2: not supported by estimates; expected --dry-run, or a mesh without ep' \
  "$plan" gpt --cluster=cluster.txt --mesh=dp_shard=4,ep=2 --strategy=fsdp
refuse 'plan: --sequence-parallel: without --mesh, .*; expected --mesh=..., or leave it out' \
  "$plan" llama --cluster=cluster.txt --sequence-parallel
refuse 'plan: --nosequence-parallel: without --mesh, .*; expected --mesh=..., or leave it out' \
  "$plan" llama --cluster=cluster.txt --nosequence-parallel
expect "a dry run with lp" '^Dry run of a step on 4 ranks: ' \
  "$plan" llama --cluster=cluster.txt --mesh=lp=2,dp_shard=2 --strategy=fsdp --n-layers=4 --dry-run
refuse "plan: --init-from: not supported; expected the model's sizes as flags, or --preset" \
  "$plan" gpt --cluster=cluster.txt --init-from=gpt2
refuse "plan: --resume: not supported; expected the model's sizes as flags, or --preset" \
  "$plan" llama --cluster=cluster.txt --resume=run --mesh=tp=2 --dry-run
refuse 'plan: no mesh of 1 ranks with fsdp can split 4 samples .*' \
  "$plan" llama --cluster=alone.txt --strategy=fsdp --samples-per-step=4
refuse 'plan: --global-batch-size=3: 4 data-parallel ranks; expected at least one sample for each' \
  "$plan" llama --cluster=cluster.txt --mesh=dp_shard=4 --strategy=fsdp --global-batch-size=3
refuse 'plan: --offload=disk: not supported by estimates; expected --dry-run, or none' \
  "$plan" llama --cluster=cluster.txt --offload=disk
refuse 'plan: --dtype=fp16: expected float32 or float64 or bfloat16' \
  "$plan" vit --cluster=cluster.txt --mesh=dp_shard=8 --strategy=fsdp --dtype=fp16
refuse 'plan: --context-attention=ulises: expected ring or ulysses' \
  "$plan" llama --cluster=cluster.txt --mesh=dp_shard=4,cp=2 --strategy=fsdp --context-attention=ulises
refuse 'plan: --optimizer=muon: not supported by estimates; expected --dry-run, or adamw' \
  "$plan" llama --cluster=cluster.txt --optimizer=muon
for every in 1 2 9; do
  refuse 'plan: --moe: not supported by estimates; expected --dry-run, or a model without experts' "${experts[@]}" --moe-every=$every
done
refuse 'plan: moe_every is 9; expected 1 to n_layer, which is 4' "${experts[@]}" --moe-every=9 --dry-run
refuse 'plan: --gradient-accumulation-steps=0: must be at least 1' \
  "$plan" vit --cluster=cluster.txt --gradient-accumulation-steps=0
refuse 'plan: --global-batch-size=-8: must be at least 0' "$plan" llama --cluster=cluster.txt --global-batch-size=-8
refuse 'plan: --strategy: .*' "$plan" llama --cluster=cluster.txt --strategy=zero9
refuse 'plan: --samples-per-step=10: expected a multiple of 4, .*' \
  "$plan" llama --cluster=cluster.txt --mesh=dp_shard=4 --samples-per-step=10

[[ $failures == 0 ]] && echo "all as expected"
exit $((failures > 0))
