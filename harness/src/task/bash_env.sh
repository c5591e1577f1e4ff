# Read by bash before each command of a shell task: cargo tells each message in one line, unless the command says otherwise.
cargo() {
    local at=1 argument
    case "${1-}" in
        +*) at=2 ;;
    esac
    # The subcommand is the first word that is neither an option nor the value of one.
    while [ "$at" -le "$#" ]; do
        case "${!at}" in
            --color | --config | -C | -Z) at=$((at + 2)) ;;
            -*) at=$((at + 1)) ;;
            *) break ;;
        esac
    done
    case "${!at-}" in
        build | check | clippy | test | run | doc | bench | install | rustc | fix | b | c | t | r | d) ;;
        *)
            command cargo "$@"
            return
            ;;
    esac
    for argument in "${@:at+1}"; do
        case "$argument" in
            --) break ;;
            --message-format | --message-format=*)
                command cargo "$@"
                return
                ;;
        esac
    done
    command cargo "${@:1:at}" --message-format short "${@:at+1}"
}
