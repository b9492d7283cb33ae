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
        'models:List the built-in models'
        'capture:Record a training step of a model without PyTorch'
        'inspect:Summarise a recorded training step'
        'validate:Check that files are consistent steps'
        'memory:Tell the memory of a step under a checkpointing plan'
        'time:Tell how long a step takes on a device'
        'sac:Tell what a module'\''s ops cost to keep and to run again'
        'devices:List the devices that estimates know, with the source of every figure'
        'completion:Write the completion script of a shell'
      )
      _describe -t commands command commands
      ;;
    argument)
      case $words[1] in
        models) _arguments -S '-h[show this help]' '--help[show this help]' '--json[write the result as JSON]' ;;
        capture) _arguments -S '-h[show this help]' '--help[show this help]' '--json[write the result as JSON]' '-o[the step file to write; compressed when it ends in .zst]:FILE:_files' '--output[the step file to write; compressed when it ends in .zst]:FILE:_files' '--batch[sequences or images in a step (default 1)]:N:' '--seq[tokens of a sequence; 0\: the model'\''s positions, at most 8192 (default 0)]:N:' '--image[pixels of a side; 0\: the model'\''s own (default 0)]:N:' '--dtype[type of parameters\: float32 (default), bfloat16 or float16]:TYPE:(float32 bfloat16 float16)' '--precision[fp32 (default), bf16, fp16, with -master a float32 copy, or autocast-bf16]:WORD:(fp32 bf16 fp16 bf16-master fp16-master autocast-bf16 autocast-fp16)' '--attention[kernel of attention\: auto (default), math, flash or efficient]:KERNEL:(auto math flash efficient)' '--micro-batches[forward and backward that often, gradients added up (default 1)]:N:' '--clip-norm[gradients scaled down to this norm; 0\: not]:NORM:' '--optimizer[adamw (default), adam, sgd, momentum or none]:NAME:(adamw adam sgd momentum none)' '--form[how the optimizer runs\: for-loop (default), foreach or fused]:FORM:(for-loop foreach fused)' '--target[whose kernels\: cpu (default) or cuda]:DEVICE:(cpu cuda)' '1:MODEL:' ;;
        inspect) _arguments -S '-h[show this help]' '--help[show this help]' '--json[write the result as JSON]' '--dump[show the whole step as text, event by event]' '--largest[list the N largest storages (default 5)]:N:' '--ops[list the N most frequent kinds of ops (default 8)]:N:' '1:STEP:_files' ;;
        validate) _arguments -S '-h[show this help]' '--help[show this help]' '--json[write the result as JSON]' '*:STEP:_files' ;;
        memory) _arguments -S '-h[show this help]' '--help[show this help]' '--json[write the result as JSON]' '--plan[what is checkpointed\: none (default), full, every\:K or selective]:POLICY:' '--by[break the peak down by category (default), module or moment]:VIEW:(category module moment)' '--depth[show modules down to N levels below the root (default 2)]:N:' '--csv[also write every allocation and free to FILE]:FILE:_files' '--workspace[kernels'\'' scratch memory; by default STEP.workspace.jsonl, if it is there]:FILE:_files' '--allocator[hand bytes out as exact (default), rounded, caching or expandable does]:MODEL:(exact rounded caching expandable)' '--device[a device that it must fit\: its allocator, overhead and memory]:DEVICE:' '--overhead[what the device takes beside tensors, such as 600MiB]:SIZE:' '--no-early-stop[recompute units to their end]' '--no-rng[checkpoints do not keep the RNG state]' '1:STEP:_files' ;;
        time) _arguments -S '-h[show this help]' '--help[show this help]' '--json[write the result as JSON]' '--device[the device\: a name (tidemark devices), or the path of a device file]:DEVICE:' '--by[add the times up by op or by module]:VIEW:(op module)' '--depth[show modules down to N levels below the root (default 2)]:N:' '--batch[sequences or images in a step (default 1)]:N:' '--seq[tokens of a sequence; 0\: the model'\''s positions, at most 8192 (default 0)]:N:' '--image[pixels of a side; 0\: the model'\''s own (default 0)]:N:' '--dtype[type of parameters\: float32 (default), bfloat16 or float16]:TYPE:(float32 bfloat16 float16)' '--precision[fp32 (default), bf16, fp16, with -master a float32 copy, or autocast-bf16]:WORD:(fp32 bf16 fp16 bf16-master fp16-master autocast-bf16 autocast-fp16)' '--attention[kernel of attention\: auto (default), math, flash or efficient]:KERNEL:(auto math flash efficient)' '--micro-batches[forward and backward that often, gradients added up (default 1)]:N:' '--clip-norm[gradients scaled down to this norm; 0\: not]:NORM:' '--optimizer[adamw (default), adam, sgd, momentum or none]:NAME:(adamw adam sgd momentum none)' '--form[how the optimizer runs\: for-loop (default), foreach or fused]:FORM:(for-loop foreach fused)' '--target[whose kernels\: cpu (default) or cuda]:DEVICE:(cpu cuda)' '1:STEP:_files' ;;
        sac) _arguments -S '-h[show this help]' '--help[show this help]' '--json[write the result as JSON]' '--module[the full name of a module that runs in the step; "" for all of it]:NAME:' '--device[the device\: a name (tidemark devices), or the path of a device file]:DEVICE:' '--cost[times by tidemark (default), reference-m, reference-b or reference-n]:MODEL:(tidemark reference-m reference-b reference-n)' '--rules[whose rules ops are grouped by; by default those of --cost]:RULES:(tidemark reference-m reference-b)' '--export[also write the statistics of all modules, for PyTorch'\''s own planner, to FILE]:FILE:_files' '--batch[sequences or images in a step (default 1)]:N:' '--seq[tokens of a sequence; 0\: the model'\''s positions, at most 8192 (default 0)]:N:' '--image[pixels of a side; 0\: the model'\''s own (default 0)]:N:' '--dtype[type of parameters\: float32 (default), bfloat16 or float16]:TYPE:(float32 bfloat16 float16)' '--precision[fp32 (default), bf16, fp16, with -master a float32 copy, or autocast-bf16]:WORD:(fp32 bf16 fp16 bf16-master fp16-master autocast-bf16 autocast-fp16)' '--attention[kernel of attention\: auto (default), math, flash or efficient]:KERNEL:(auto math flash efficient)' '--micro-batches[forward and backward that often, gradients added up (default 1)]:N:' '--clip-norm[gradients scaled down to this norm; 0\: not]:NORM:' '--optimizer[adamw (default), adam, sgd, momentum or none]:NAME:(adamw adam sgd momentum none)' '--form[how the optimizer runs\: for-loop (default), foreach or fused]:FORM:(for-loop foreach fused)' '--target[whose kernels\: cpu (default) or cuda]:DEVICE:(cpu cuda)' '1:STEP:_files' ;;
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
