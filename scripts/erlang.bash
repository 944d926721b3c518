# Sourced: what every private node of RabbitMQ needs from the machine, ports and Erlang's port mapper.

# free_ports COUNT: ports on which nobody listens, held open together while choosing so that they differ.
free_ports() {
    /usr/bin/env python3 -c '
import socket, sys
sockets = [socket.socket() for _ in range(int(sys.argv[1]))]
for s in sockets:
    s.bind(("127.0.0.1", 0))
print(*(s.getsockname()[1] for s in sockets))' "$1"
}

# listens PORT: whether somebody does.
listens() {
    (: <"/dev/tcp/127.0.0.1/$1") 2>/dev/null
}

# find_epmd: the path of the port mapper.
find_epmd() {
    local candidate
    for candidate in "$(command -v epmd || true)" /usr/lib/erlang/erts-*/bin/epmd; do
        if [ -x "$candidate" ]; then
            echo "$candidate"
            return
        fi
    done
    echo "epmd is not installed; scripts/install-deps installs it with rabbitmq-server" >&2
    return 1
}
