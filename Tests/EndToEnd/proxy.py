"""A port that can be opened late, and cut: what stands between a process and its broker."""

import socket
import threading


class Proxy:
    """Takes connections on a port of its own once `open` is called, and carries bytes both ways."""

    def __init__(self, host, port, address="127.0.0.1"):
        self._target = host, port
        self.address = address
        with socket.socket() as free:
            free.bind((address, 0))
            self.port = free.getsockname()[1]
        self._listener = None
        self._sockets = []

    def open(self):
        self._listener = socket.create_server((self.address, self.port))
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def _accept(self, listener):
        while True:
            try:
                near, _ = listener.accept()
                far = socket.create_connection(self._target)
            except OSError:
                return
            self._sockets += [near, far]
            for source, sink in ((near, far), (far, near)):
                threading.Thread(target=self._carry, args=(source, sink), daemon=True).start()

    @staticmethod
    def _carry(source, sink):
        try:
            while data := source.recv(65_536):
                sink.sendall(data)
        except OSError:
            pass
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def cut(self):
        """Ends every connection and refuses new ones."""
        if self._listener:
            self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
            self._listener = None
        for end in self._sockets:
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            end.close()
        self._sockets = []
