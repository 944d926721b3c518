# Sourced: finds and ends processes by a mark in their environment.
#
# A mark (NAME=VALUE, set when the first of them was started) is inherited by all descendants and cannot belong to
# anything else, whereas a stored pid may have been given to another program, and a name is shared with strangers.

# marked MARK: the pids of the processes that were started with this mark, this shell not among them.
marked() {
    local file pid
    while read -r file; do
        pid=${file#/proc/}
        pid=${pid%/environ}
        if [ "$pid" != "$$" ] && [ "$pid" != "$BASHPID" ]; then echo "$pid"; fi
    done < <(grep -lszxF -- "$1" /proc/[0-9]*/environ 2>/dev/null)
}

# signal_pids NAME PID…: those that are gone already are no error.
signal_pids() {
    local name=$1 pid
    shift
    for pid in "$@"; do kill -s "$name" "$pid" 2>/dev/null || true; done
}

# gone_within SECONDS PID…: whether all of these have ended in this time. One that has ended but was not collected yet
# (its parent is gone and process 1 is slow) still counts as there, so that nothing is left to be seen afterwards.
gone_within() {
    local deadline=$((SECONDS + $1)) pid
    shift
    for pid in "$@"; do
        while [ -d "/proc/$pid" ]; do
            [ "$SECONDS" -lt "$deadline" ] || return 1
            sleep 0.1
        done
    done
}

# only_zombies PID…: whether none of these runs any more.
only_zombies() {
    local pid state
    for pid in "$@"; do
        state=$(sed -n 's/^State:[[:space:]]*\(.\).*/\1/p' "/proc/$pid/status" 2>/dev/null || true)
        [ -z "$state" ] || [ "$state" = Z ] || return 1
    done
}

# end_marked MARK SECONDS: asks all of them to stop, and after the time ends what is left; false if that fails too.
end_marked() {
    local pids
    mapfile -t pids < <(marked "$1")
    [ "${#pids[@]}" -gt 0 ] || return 0
    signal_pids TERM "${pids[@]}"
    gone_within "$2" "${pids[@]}" || true
    mapfile -t -O "${#pids[@]}" pids < <(marked "$1")
    only_zombies "${pids[@]}" && return 0
    signal_pids KILL "${pids[@]}"
    gone_within 10 "${pids[@]}" || only_zombies "${pids[@]}"
}
