# fish completion for tidemark, written by: tidemark completion fish
complete -c tidemark -f
complete -c tidemark -n __fish_use_subcommand -a inspect -d 'Summarise a recorded training step'
complete -c tidemark -n __fish_use_subcommand -a validate -d 'Check that files are consistent steps'
complete -c tidemark -n __fish_use_subcommand -a completion -d 'Write the completion script of a shell'
complete -c tidemark -n __fish_use_subcommand -s h -l help -d 'show this help'
complete -c tidemark -n __fish_use_subcommand -l json -d 'write the result as JSON'
complete -c tidemark -n __fish_use_subcommand -l version -d 'show the version'
complete -c tidemark -n '__fish_seen_subcommand_from inspect' -s h -l help -d 'show this help'
complete -c tidemark -n '__fish_seen_subcommand_from inspect' -l json -d 'write the result as JSON'
complete -c tidemark -n '__fish_seen_subcommand_from inspect' -l dump -d 'show the whole step as text, event by event'
complete -c tidemark -n '__fish_seen_subcommand_from inspect' -l largest -x -d 'list the N largest storages (default 5)'
complete -c tidemark -n '__fish_seen_subcommand_from inspect' -l ops -x -d 'list the N most frequent kinds of ops (default 8)'
complete -c tidemark -n '__fish_seen_subcommand_from inspect' -F
complete -c tidemark -n '__fish_seen_subcommand_from validate' -s h -l help -d 'show this help'
complete -c tidemark -n '__fish_seen_subcommand_from validate' -l json -d 'write the result as JSON'
complete -c tidemark -n '__fish_seen_subcommand_from validate' -F
complete -c tidemark -n '__fish_seen_subcommand_from completion' -s h -l help -d 'show this help'
complete -c tidemark -n '__fish_seen_subcommand_from completion' -l json -d 'write the result as JSON'
complete -c tidemark -n '__fish_seen_subcommand_from completion' -a 'bash zsh fish' -d 'bash, zsh or fish'
