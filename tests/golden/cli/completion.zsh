#compdef tidemark
# zsh completion for tidemark, written by: tidemark completion zsh
_tidemark() {
  local curcontext=$curcontext state line
  local -a commands
  typeset -A opt_args
  _arguments -C '-h[show this help]' '--help[show this help]' '--json[write the result as JSON]' '--version[show the version]' '1:command:->command' '*::argument:->argument'
  case $state in
    command)
      commands=(
        'inspect:Summarise a recorded training step'
        'validate:Check that files are consistent steps'
        'memory:Tell the memory of a step under a checkpointing plan'
        'devices:List the devices that estimates know, with the source of every figure'
        'completion:Write the completion script of a shell'
      )
      _describe -t commands command commands
      ;;
    argument)
      case $words[1] in
        inspect) _arguments -S '-h[show this help]' '--help[show this help]' '--json[write the result as JSON]' '--dump[show the whole step as text, event by event]' '--largest[list the N largest storages (default 5)]:N:' '--ops[list the N most frequent kinds of ops (default 8)]:N:' '1:STEP:_files' ;;
        validate) _arguments -S '-h[show this help]' '--help[show this help]' '--json[write the result as JSON]' '*:STEP:_files' ;;
        memory) _arguments -S '-h[show this help]' '--help[show this help]' '--json[write the result as JSON]' '--plan[what is checkpointed\: none (default), full, every\:K or selective]:POLICY:' '--by[break the peak down by category (default), module or moment]:VIEW:(category module moment)' '--depth[show modules down to N levels below the root (default 2)]:N:' '--csv[also write every allocation and free to FILE]:FILE:_files' '--workspace[kernels'\'' scratch memory; by default STEP.workspace.jsonl, if it is there]:FILE:_files' '--allocator[hand bytes out as exact (default), rounded, caching or expandable does]:MODEL:(exact rounded caching expandable)' '--device[a device that it must fit\: its allocator, overhead and memory]:DEVICE:' '--overhead[what the device takes beside tensors, such as 600MiB]:SIZE:' '--no-early-stop[recompute units to their end]' '--no-rng[checkpoints do not keep the RNG state]' '1:STEP:_files' ;;
        devices) _arguments -S '-h[show this help]' '--help[show this help]' '--json[write the result as JSON]' '1:DEVICE:' ;;
        completion) _arguments -S '-h[show this help]' '--help[show this help]' '--json[write the result as JSON]' '1:SHELL:(bash zsh fish)' ;;
      esac
      ;;
  esac
}
# Loaded from $fpath this file is the function's body; sourced, it announces the function.
if [[ $funcstack[1] == _tidemark ]]; then
  _tidemark "$@"
else
  compdef _tidemark tidemark
fi
