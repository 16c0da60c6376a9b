"""An X server without a screen: just enough for programs that open a window and draw by EGL.

The surfaces of such programs are pbuffers, so the server never sees a pixel. It accepts windows,
remembers their sizes, and answers what Xlib asks on the way; it has no extensions.
"""

import os
import socket
import struct
import threading

WIDTH, HEIGHT = 1920, 1080
ROOT, COLORMAP, VISUAL = 0x100, 0x101, 0x21
SOCKETS = "/tmp/.X11-unix"

# Requests of the core protocol that have a reply, and those whose effect matters here.
CREATE_WINDOW, CONFIGURE_WINDOW = 1, 12
GET_ATTRIBUTES, GET_GEOMETRY, QUERY_TREE, INTERN_ATOM, ATOM_NAME, GET_PROPERTY = 3, 14, 15, 16, 17, 20
GET_SELECTION, GRAB_POINTER, GRAB_KEYBOARD, QUERY_POINTER, TRANSLATE, GET_FOCUS = 23, 26, 31, 38, 40, 43
QUERY_EXTENSION, LIST_EXTENSIONS, KEYBOARD_MAPPING, MODIFIER_MAPPING, QUERY_COLORS = 98, 99, 101, 119, 91


class Screen:
    """Listens until it is closed; `display` goes into DISPLAY."""

    def __init__(self):
        os.makedirs(SOCKETS, mode=0o1777, exist_ok=True)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        for number in range(90, 190):
            self._path = f"{SOCKETS}/X{number}"
            try:
                self._listener.bind(self._path)
                break
            except OSError:
                continue
        else:
            raise OSError(f"no free display number: {SOCKETS}/X90 to X189 are taken")
        self.display = f":{number}"
        self._listener.listen(64)
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        self._listener.close()
        try:
            os.unlink(self._path)
        except FileNotFoundError:
            pass

    def _accept(self):
        bases = 0
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            bases += 1
            client = Client(connection, bases)
            threading.Thread(target=client.serve, daemon=True).start()


class Client:
    def __init__(self, connection, number):
        self._connection = connection
        self._base = number << 21
        self._sequence = 0
        self._sizes = {ROOT: (WIDTH, HEIGHT)}
        self._atoms = {}

    def serve(self):
        try:
            self._greet()
            while True:
                self._request()
        except OSError:
            pass
        finally:
            self._connection.close()

    def _read(self, length):
        data = b""
        while len(data) < length:
            part = self._connection.recv(length - len(data))
            if not part:
                raise OSError("the client is gone")
            data += part
        return data

    def _greet(self):
        order, _, _, name, data, _ = struct.unpack("<BxHHHHH", self._read(12)[:12])
        if order != ord("l"):
            raise OSError("only little-endian clients are served")
        self._read(padded(name) + padded(data))
        vendor = b"takt"
        formats = b"".join(struct.pack("<BBB5x", depth, bits, 32) for depth, bits in ((1, 1), (24, 32), (32, 32)))
        visual = struct.pack("<IBBHIIIxxxx", VISUAL, 4, 8, 256, 0xFF0000, 0xFF00, 0xFF)
        depths = struct.pack("<BxHxxxx", 24, 1) + visual
        screen = struct.pack("<IIIIIHHHHHHIBBBB", ROOT, COLORMAP, 0xFFFFFF, 0, 0, WIDTH, HEIGHT, 508, 286,
                             1, 1, VISUAL, 0, 0, 24, 1) + depths
        body = struct.pack("<IIIIHHBBBBBBBBxxxx", 1, self._base, (1 << 21) - 1, 256, len(vendor), 0xFFFF,
                           1, 3, 0, 0, 32, 32, 8, 255) + vendor + formats + screen
        self._connection.sendall(struct.pack("<BxHHH", 1, 11, 0, len(body) // 4) + body)

    def _request(self):
        opcode, detail, length = struct.unpack("<BBH", self._read(4))
        body = self._read(max(0, length * 4 - 4))
        self._sequence = (self._sequence + 1) & 0xFFFF
        if opcode == CREATE_WINDOW:
            window, _, _, _, width, height = struct.unpack_from("<IIhhHH", body)
            self._sizes[window] = (width, height)
        elif opcode == CONFIGURE_WINDOW:
            self._configure(body)
        elif opcode == GET_ATTRIBUTES:
            self._reply(struct.pack("<IHBBIIBBBBIIIHxx", VISUAL, 1, 0, 0, 0, 0, 0, 1, 2, 0, COLORMAP, 0, 0, 0), 1)
        elif opcode == GET_GEOMETRY:
            width, height = self._sizes.get(struct.unpack_from("<I", body)[0], (1, 1))
            self._reply(struct.pack("<IhhHHHxx", ROOT, 0, 0, width, height, 0), 24)
        elif opcode == QUERY_TREE:
            self._reply(struct.pack("<IIH", ROOT, 0, 0))
        elif opcode == INTERN_ATOM:
            name = body[4:4 + struct.unpack_from("<H", body)[0]]
            self._reply(struct.pack("<I", self._atoms.setdefault(name, 100 + len(self._atoms))))
        elif opcode == QUERY_EXTENSION:
            self._reply(struct.pack("<BBBB", 0, 0, 0, 0))
        elif opcode == KEYBOARD_MAPPING:
            count = body[1]
            self._reply(b"", 1, struct.pack("<I", 0) * count)
        elif opcode == MODIFIER_MAPPING:
            self._reply(b"", 1, bytes(8))
        elif opcode == QUERY_POINTER:
            self._reply(struct.pack("<IIhhhhH", ROOT, 0, 0, 0, 0, 0, 0), 1)
        elif opcode in (ATOM_NAME, GET_PROPERTY, GET_SELECTION, GRAB_POINTER, GRAB_KEYBOARD, TRANSLATE, GET_FOCUS,
                        LIST_EXTENSIONS, QUERY_COLORS):
            self._reply(b"")
        # Everything else has no reply, and nothing here depends on it.

    def _configure(self, body):
        window, mask = struct.unpack_from("<IH", body)
        values = struct.unpack_from(f"<{bin(mask).count('1')}I", body, 8)
        named = dict(zip((bit for bit in range(7) if mask >> bit & 1), values))
        width, height = self._sizes.get(window, (1, 1))
        self._sizes[window] = (named.get(2, width), named.get(3, height))

    def _reply(self, fixed, detail=0, extra=b""):
        head = struct.pack("<BBHI", 1, detail, self._sequence, len(extra) // 4)
        self._connection.sendall(head + fixed.ljust(24, b"\0") + extra)


def padded(length):
    return (length + 3) & ~3
