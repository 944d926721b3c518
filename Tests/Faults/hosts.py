"""Hosts of their own on this machine: a network and a host name each, with a way to the broker and the database."""

import os
import secrets
import subprocess

from proxy import Proxy


def can_be_made():
    """Whether this user may make network namespaces."""
    if os.geteuid() != 0:
        return False
    name = f"overtime-{secrets.token_hex(4)}"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, timeout=10, check=False)
    if made.returncode == 0:
        subprocess.run(["ip", "netns", "del", name], check=True, timeout=10)
    return made.returncode == 0


class Host:
    """A host that reaches nothing but the ports that were opened to it."""

    def __init__(self, name, number):
        token = secrets.token_hex(3)
        self.name = name
        self._space = f"overtime-{token}"
        self._inner, self._outer = f"ovi{token}", f"ovo{token}"
        # A network of two addresses in a block for private use, with a random part against another run's.
        third = secrets.randbelow(250)
        self.gateway, self._address = f"10.213.{third}.{4 * number + 1}", f"10.213.{third}.{4 * number + 2}"
        self._proxies = []

    def __enter__(self):
        self._run("ip", "netns", "add", self._space)
        try:
            self._run("ip", "link", "add", self._outer, "type", "veth", "peer", "name", self._inner,
                      "netns", self._space)
            self._run("ip", "addr", "add", f"{self.gateway}/30", "dev", self._outer)
            self._run("ip", "link", "set", self._outer, "up")
            self._inside("ip", "addr", "add", f"{self._address}/30", "dev", self._inner)
            self._inside("ip", "link", "set", self._inner, "up")
            self._inside("ip", "link", "set", "lo", "up")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for proxy in self._proxies:
            proxy.cut()
        # Its end of the pair goes with it.
        self._run("ip", "netns", "del", self._space)

    @property
    def command(self):
        """What stands before a command that is to run there; its process is the command's own."""
        return ["ip", "netns", "exec", self._space, "unshare", "--uts", "sh", "-c",
                f'hostname {self.name} && exec "$@"', "sh"]

    def reach(self, port):
        """Opens a port of this machine's loopback to the host; returns address and port as seen from there."""
        proxy = Proxy("127.0.0.1", port, self.gateway)
        proxy.open()
        self._proxies.append(proxy)
        return f"{self.gateway}:{proxy.port}"

    def _inside(self, *command):
        self._run("ip", "netns", "exec", self._space, *command)

    @staticmethod
    def _run(*command):
        subprocess.run(command, check=True, capture_output=True, timeout=10)
