# bash completion for tidemark, written by: tidemark completion bash
_tidemark() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
  local command="" words="" flags="" files="" word
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case $word in
      models|capture|inspect|validate|memory|time|plan|frontier|max|verify|sac|devices|completion) command=$word; break ;;
    esac
  done
  case $command in
    "") words="models capture inspect validate memory time plan frontier max verify sac devices completion" flags="-h --help --json --version" files= ;;
    models) words="" flags="-h --help --json" files= ;;
    capture)
      case $previous in
        -o|--output) words="" flags="" files=1 ;;
        --batch) words="" flags="" files= ;;
        --seq) words="" flags="" files= ;;
        --image) words="" flags="" files= ;;
        --dtype) words="float32 bfloat16 float16" flags="" files= ;;
        --precision) words="fp32 bf16 fp16 bf16-master fp16-master autocast-bf16 autocast-fp16" flags="" files= ;;
        --attention) words="auto math flash efficient" flags="" files= ;;
        --micro-batches) words="" flags="" files= ;;
        --clip-norm) words="" flags="" files= ;;
        --optimizer) words="adamw adam sgd momentum none" flags="" files= ;;
        --form) words="for-loop foreach fused" flags="" files= ;;
        --target) words="cpu cuda" flags="" files= ;;
        *) words="" flags="-h --help --json -o --output --batch --seq --image --dtype --precision --attention --micro-batches --clip-norm --optimizer --form --target" files= ;;
      esac
      ;;
    inspect)
      case $previous in
        --largest) words="" flags="" files= ;;
        --ops) words="" flags="" files= ;;
        --batch) words="" flags="" files= ;;
        --seq) words="" flags="" files= ;;
        --image) words="" flags="" files= ;;
        --dtype) words="float32 bfloat16 float16" flags="" files= ;;
        --precision) words="fp32 bf16 fp16 bf16-master fp16-master autocast-bf16 autocast-fp16" flags="" files= ;;
        --attention) words="auto math flash efficient" flags="" files= ;;
        --micro-batches) words="" flags="" files= ;;
        --clip-norm) words="" flags="" files= ;;
        --optimizer) words="adamw adam sgd momentum none" flags="" files= ;;
        --form) words="for-loop foreach fused" flags="" files= ;;
        --target) words="cpu cuda" flags="" files= ;;
        *) words="" flags="-h --help --json --dump --largest --ops --batch --seq --image --dtype --precision --attention --micro-batches --clip-norm --optimizer --form --target" files=1 ;;
      esac
      ;;
    validate) words="" flags="-h --help --json" files=1 ;;
    memory)
      case $previous in
        --plan) words="" flags="" files= ;;
        --by) words="category module moment" flags="" files= ;;
        --depth) words="" flags="" files= ;;
        --csv) words="" flags="" files=1 ;;
        --workspace) words="" flags="" files=1 ;;
        --allocator) words="exact rounded caching expandable" flags="" files= ;;
        --device) words="" flags="" files= ;;
        --overhead) words="" flags="" files= ;;
        --batch) words="" flags="" files= ;;
        --seq) words="" flags="" files= ;;
        --image) words="" flags="" files= ;;
        --dtype) words="float32 bfloat16 float16" flags="" files= ;;
        --precision) words="fp32 bf16 fp16 bf16-master fp16-master autocast-bf16 autocast-fp16" flags="" files= ;;
        --attention) words="auto math flash efficient" flags="" files= ;;
        --micro-batches) words="" flags="" files= ;;
        --clip-norm) words="" flags="" files= ;;
        --optimizer) words="adamw adam sgd momentum none" flags="" files= ;;
        --form) words="for-loop foreach fused" flags="" files= ;;
        --target) words="cpu cuda" flags="" files= ;;
        *) words="" flags="-h --help --json --plan --by --depth --csv --workspace --allocator --device --overhead --no-early-stop --no-rng --batch --seq --image --dtype --precision --attention --micro-batches --clip-norm --optimizer --form --target" files=1 ;;
      esac
      ;;
    time)
      case $previous in
        --device) words="" flags="" files= ;;
        --ranks) words="" flags="" files= ;;
        --ranks-per-node) words="" flags="" files= ;;
        --by) words="op module" flags="" files= ;;
        --depth) words="" flags="" files= ;;
        --batch) words="" flags="" files= ;;
        --seq) words="" flags="" files= ;;
        --image) words="" flags="" files= ;;
        --dtype) words="float32 bfloat16 float16" flags="" files= ;;
        --precision) words="fp32 bf16 fp16 bf16-master fp16-master autocast-bf16 autocast-fp16" flags="" files= ;;
        --attention) words="auto math flash efficient" flags="" files= ;;
        --micro-batches) words="" flags="" files= ;;
        --clip-norm) words="" flags="" files= ;;
        --optimizer) words="adamw adam sgd momentum none" flags="" files= ;;
        --form) words="for-loop foreach fused" flags="" files= ;;
        --target) words="cpu cuda" flags="" files= ;;
        *) words="" flags="-h --help --json --device --ranks --ranks-per-node --by --depth --batch --seq --image --dtype --precision --attention --micro-batches --clip-norm --optimizer --form --target" files=1 ;;
      esac
      ;;
    plan)
      case $previous in
        --device) words="" flags="" files= ;;
        --budget) words="" flags="" files= ;;
        --reserve) words="" flags="" files= ;;
        --against) words="exact rounded reserved" flags="" files= ;;
        -o|--output) words="" flags="" files=1 ;;
        --why) words="" flags="" files= ;;
        --units) words="" flags="" files= ;;
        --not-units) words="" flags="" files= ;;
        --always-save) words="" flags="" files= ;;
        --never-save) words="" flags="" files= ;;
        --rng) words="when-needed always never" flags="" files= ;;
        --max-work) words="" flags="" files= ;;
        --method) words="exact greedy milp exact-milp reference-policy knapsack" flags="" files= ;;
        --highs) words="" flags="" files= ;;
        --cost) words="tidemark reference-m" flags="" files= ;;
        --world-size) words="" flags="" files= ;;
        --write-mps) words="" flags="" files=1 ;;
        --write-lp) words="" flags="" files=1 ;;
        --ranks) words="" flags="" files= ;;
        --ranks-per-node) words="" flags="" files= ;;
        --workspace) words="" flags="" files=1 ;;
        --batch) words="" flags="" files= ;;
        --seq) words="" flags="" files= ;;
        --image) words="" flags="" files= ;;
        --dtype) words="float32 bfloat16 float16" flags="" files= ;;
        --precision) words="fp32 bf16 fp16 bf16-master fp16-master autocast-bf16 autocast-fp16" flags="" files= ;;
        --attention) words="auto math flash efficient" flags="" files= ;;
        --micro-batches) words="" flags="" files= ;;
        --clip-norm) words="" flags="" files= ;;
        --optimizer) words="adamw adam sgd momentum none" flags="" files= ;;
        --form) words="for-loop foreach fused" flags="" files= ;;
        --target) words="cpu cuda" flags="" files= ;;
        *) words="" flags="-h --help --json --device --budget --reserve --against -o --output --no-certificate --explain --why --units --not-units --always-save --never-save --rng --no-early-stop --max-work --method --highs --cost --world-size --count-stale --write-mps --write-lp --ranks --ranks-per-node --workspace --batch --seq --image --dtype --precision --attention --micro-batches --clip-norm --optimizer --form --target" files=1 ;;
      esac
      ;;
    frontier)
      case $previous in
        --device) words="" flags="" files= ;;
        --budgets) words="" flags="" files= ;;
        --max-work) words="" flags="" files= ;;
        --reserve) words="" flags="" files= ;;
        --against) words="exact rounded reserved" flags="" files= ;;
        --units) words="" flags="" files= ;;
        --not-units) words="" flags="" files= ;;
        --always-save) words="" flags="" files= ;;
        --never-save) words="" flags="" files= ;;
        --rng) words="when-needed always never" flags="" files= ;;
        --ranks) words="" flags="" files= ;;
        --ranks-per-node) words="" flags="" files= ;;
        --workspace) words="" flags="" files=1 ;;
        --batch) words="" flags="" files= ;;
        --seq) words="" flags="" files= ;;
        --image) words="" flags="" files= ;;
        --dtype) words="float32 bfloat16 float16" flags="" files= ;;
        --precision) words="fp32 bf16 fp16 bf16-master fp16-master autocast-bf16 autocast-fp16" flags="" files= ;;
        --attention) words="auto math flash efficient" flags="" files= ;;
        --micro-batches) words="" flags="" files= ;;
        --clip-norm) words="" flags="" files= ;;
        --optimizer) words="adamw adam sgd momentum none" flags="" files= ;;
        --form) words="for-loop foreach fused" flags="" files= ;;
        --target) words="cpu cuda" flags="" files= ;;
        *) words="" flags="-h --help --json --device --budgets --full --csv --max-work --reserve --against --units --not-units --always-save --never-save --rng --no-early-stop --ranks --ranks-per-node --workspace --batch --seq --image --dtype --precision --attention --micro-batches --clip-norm --optimizer --form --target" files=1 ;;
      esac
      ;;
    max)
      case $previous in
        --of) words="batch seq layers device budget" flags="" files= ;;
        --device) words="" flags="" files= ;;
        --budget) words="" flags="" files= ;;
        -o|--output) words="" flags="" files=1 ;;
        --max-work) words="" flags="" files= ;;
        --reserve) words="" flags="" files= ;;
        --against) words="exact rounded reserved" flags="" files= ;;
        --units) words="" flags="" files= ;;
        --not-units) words="" flags="" files= ;;
        --always-save) words="" flags="" files= ;;
        --never-save) words="" flags="" files= ;;
        --rng) words="when-needed always never" flags="" files= ;;
        --ranks) words="" flags="" files= ;;
        --ranks-per-node) words="" flags="" files= ;;
        --workspace) words="" flags="" files=1 ;;
        --batch) words="" flags="" files= ;;
        --seq) words="" flags="" files= ;;
        --image) words="" flags="" files= ;;
        --dtype) words="float32 bfloat16 float16" flags="" files= ;;
        --precision) words="fp32 bf16 fp16 bf16-master fp16-master autocast-bf16 autocast-fp16" flags="" files= ;;
        --attention) words="auto math flash efficient" flags="" files= ;;
        --micro-batches) words="" flags="" files= ;;
        --clip-norm) words="" flags="" files= ;;
        --optimizer) words="adamw adam sgd momentum none" flags="" files= ;;
        --form) words="for-loop foreach fused" flags="" files= ;;
        --target) words="cpu cuda" flags="" files= ;;
        *) words="" flags="-h --help --json --of --device --budget -o --output --max-work --reserve --against --units --not-units --always-save --never-save --rng --no-early-stop --ranks --ranks-per-node --workspace --batch --seq --image --dtype --precision --attention --micro-batches --clip-norm --optimizer --form --target" files=1 ;;
      esac
      ;;
    verify)
      case $previous in
        --certificate) words="" flags="" files=1 ;;
        --device) words="" flags="" files= ;;
        --ranks) words="" flags="" files= ;;
        --ranks-per-node) words="" flags="" files= ;;
        --workspace) words="" flags="" files=1 ;;
        --batch) words="" flags="" files= ;;
        --seq) words="" flags="" files= ;;
        --image) words="" flags="" files= ;;
        --dtype) words="float32 bfloat16 float16" flags="" files= ;;
        --precision) words="fp32 bf16 fp16 bf16-master fp16-master autocast-bf16 autocast-fp16" flags="" files= ;;
        --attention) words="auto math flash efficient" flags="" files= ;;
        --micro-batches) words="" flags="" files= ;;
        --clip-norm) words="" flags="" files= ;;
        --optimizer) words="adamw adam sgd momentum none" flags="" files= ;;
        --form) words="for-loop foreach fused" flags="" files= ;;
        --target) words="cpu cuda" flags="" files= ;;
        *) words="" flags="-h --help --json --certificate --device --ranks --ranks-per-node --workspace --batch --seq --image --dtype --precision --attention --micro-batches --clip-norm --optimizer --form --target" files=1 ;;
      esac
      ;;
    sac)
      case $previous in
        --module) words="" flags="" files= ;;
        --call) words="" flags="" files= ;;
        --device) words="" flags="" files= ;;
        --ranks) words="" flags="" files= ;;
        --ranks-per-node) words="" flags="" files= ;;
        --cost) words="tidemark reference-m reference-b reference-n" flags="" files= ;;
        --rules) words="tidemark reference-m reference-b" flags="" files= ;;
        --export) words="" flags="" files=1 ;;
        --batch) words="" flags="" files= ;;
        --seq) words="" flags="" files= ;;
        --image) words="" flags="" files= ;;
        --dtype) words="float32 bfloat16 float16" flags="" files= ;;
        --precision) words="fp32 bf16 fp16 bf16-master fp16-master autocast-bf16 autocast-fp16" flags="" files= ;;
        --attention) words="auto math flash efficient" flags="" files= ;;
        --micro-batches) words="" flags="" files= ;;
        --clip-norm) words="" flags="" files= ;;
        --optimizer) words="adamw adam sgd momentum none" flags="" files= ;;
        --form) words="for-loop foreach fused" flags="" files= ;;
        --target) words="cpu cuda" flags="" files= ;;
        *) words="" flags="-h --help --json --module --call --device --ranks --ranks-per-node --cost --rules --export --batch --seq --image --dtype --precision --attention --micro-batches --clip-norm --optimizer --form --target" files=1 ;;
      esac
      ;;
    devices) words="" flags="-h --help --json" files= ;;
    completion) words="bash zsh fish" flags="-h --help --json" files= ;;
  esac
  if [[ $current == -* ]]; then
    words=$flags files=
  fi
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
  if [[ -n $files ]]; then
    compopt -o filenames 2>/dev/null || true
    mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "$current")
  fi
}
complete -F _tidemark tidemark
