"""A path to the broker that can fall silent: connections stay, and nothing comes through."""

import socket
import threading

from proxy import Proxy


class Freezer(Proxy):
    """Carries bytes while thawed. Frozen it accepts, reads and says nothing, like a hung switch or host."""

    def __init__(self, host, port):
        super().__init__(host, port)
        self._thawed = threading.Event()
        self._thawed.set()

    def freeze(self):
        self._thawed.clear()

    def thaw(self):
        self._thawed.set()

    def _accept(self, listener):
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            self._sockets.append(near)
            threading.Thread(target=self._serve, args=(near,), daemon=True).start()

    def _serve(self, near):
        self._thawed.wait()
        try:
            far = socket.create_connection(self._target)
        except OSError:
            near.close()
            return
        self._sockets.append(far)
        back = threading.Thread(target=self._pump, args=(far, near), daemon=True)
        back.start()
        self._pump(near, far)
        back.join()
        for end in (near, far):
            end.close()

    def _pump(self, source, sink):
        try:
            while data := source.recv(65_536):
                self._thawed.wait()
                sink.sendall(data)
        except OSError:
            pass
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
