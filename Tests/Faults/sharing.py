"""Which worker has which shards: as the workers say it in their leases, and as the broker sees it."""

import re
from collections import defaultdict

# Of each consumer its queue, the properties of its connection, in which the process names itself, and whether deliveries go
# to it. In one question, as each starts an Erlang machine.
_CONSUMERS = """
lists:flatten([try
    {connection, Reader} = hd(rabbit_channel:info(proplists:get_value(channel_pid, Consumer), [connection])),
    {client_properties, Client} = hd(rabbit_reader:info(Reader, [client_properties])),
    io_lib:format("~ts|~0p|~p;", [element(4, proplists:get_value(queue_name, Consumer)), Client,
        proplists:get_value(active, Consumer)])
    catch _:_ -> "" end || Consumer <- rabbit_amqqueue:consumers_all(<<"/">>)]).
"""


def leases(store):
    """The shards that each living worker says that it consumes, by its process; none before there are tables."""
    with store.read() as rows:
        if rows("SELECT to_regclass('runs')::text AS there") == [(None,)]:
            return {}
        found = rows(
            "SELECT pid, consumed FROM runs "
            "WHERE shards > 0 AND seen_at > extract(epoch FROM clock_timestamp()) * 1000 - 6000")
    return {pid: {int(shard) for shard in consumed.split(",") if shard} for pid, consumed in found}


def consumers(broker, prefix):
    """The shards whose deliveries go to each process, by the broker."""
    found = defaultdict(set)
    for line in broker.ctl("eval", _CONSUMERS).replace("\\n", "").split(";"):
        queue, _, rest = line.strip().strip('"').partition("|")
        shard = re.fullmatch(re.escape(prefix) + r"\.commands\.(\d+)", queue)
        process = re.search(r"pid (\d+)", rest)
        if shard and process and rest.endswith("|true"):
            found[int(process[1])].add(int(shard[1]))
    return dict(found)


def is_even(found, pids, count):
    """Each shard belongs to exactly one of these processes, and none has more than one more than another."""
    shards = [shard for owned in found.values() for shard in owned]
    sizes = [len(found.get(pid, ())) for pid in pids]
    return set(found) <= set(pids) and sorted(shards) == list(range(count)) and max(sizes) - min(sizes) <= 1
