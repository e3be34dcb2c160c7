"""Network functions in Python for clickbox, for prototypes.

A function joins a service of a steering switch, gets packets, and answers each with what is to become of it. It is a process of
its own, perhaps in a container; clickbox copies packets into and out of memory that both share.

    import clickbox_function as clickbox

    def forward(box, packet):
        return clickbox.NEXT

    clickbox.main(packet=forward)

The interface is that of sdk/c/clickbox.h. This file needs Python 3.9 and its standard library, and x86-64.

Memory order. The indices of a ring are words of 32 bits, and its slots words of 64 bits, which the other side reads while this one
writes. They are read and written by views of memory with these types, each access of which is one instruction. (`struct` with `<`
would write byte by byte.) x86-64 does not reorder two writes, two reads, or a read and a later write, so that an index that is
written after a slot is seen after it. It does reorder a write and a later read: before this side sleeps or rings, `_fence` keeps
them apart. Memory of other processors would need more, so that they are refused.
"""

import array
import collections
import mmap
import os
import platform
import select
import signal
import socket
import struct
import sys
import threading
import time

VERSION = 1
PACKET_SIZE = 2048
MESSAGE_SIZE = 4096
STATE_SIZE = 4096
"""The most bytes of the state of a flow that is handed over."""

# Answers.
NEXT = 0
"""On to the next service of its chain, or out of it."""
DROP = 3
"""Dropped, and counted as function_drop."""
LOOK_UP = 4
"""Where the flows of the switch send it."""
NOWHERE = 0xFFFF
"""What `Box.destination` returns for an unknown name. Given as an answer, it is overruled like one without the right."""

# Messages. Each begins with its kind (2 bytes), two zeros, and its length with these eight bytes (4).
_REGISTER, _COUNTERS, _MESSAGE, _LEAVE, _STATES = 1, 2, 3, 4, 5
_WELCOME, _REFUSED, _MESSAGE_FROM, _LEAVING = 0x101, 0x102, 0x103, 0x104
_LIST_STATES, _EXPORT_STATES, _IMPORT_STATES = 0x105, 0x106, 0x107
# What each side can do: bits in REGISTER and WELCOME.
_LETS_LEAVE, _HANDS_OVER = 1, 2
_TOKEN_SIZE, _NAME_SIZE = 32, 64
_MAX_COUNTERS, _COUNTER_NAME = 32, 24
_WAITING_MESSAGES = 64
_MAX_BUFFERS = 1 << 20

# A ring, in words of 32 bits: four lines with the indices and the flags, then the slots.
_HEAD, _TAIL, _READER_SLEEPS, _WRITER_SLEEPS, _SLOTS = 0, 16, 32, 48, 64
_MASK = 0xFFFFFFFF

# Destinations in a welcome, and the kinds of answers, in their three lowest bits.
_PREFIXES = {1: "", 2: "port:", 3: "chain:"}
_TO_SERVICE, _TO_PORT, _INTO_CHAIN, _FLOW_INTO_CHAIN = 1, 2, 5, 6
# Stands for NOWHERE: a service that is not there. The switch overrules and counts it.
_NO_SERVICE = 0x7FF9

# Nanoseconds between two looks at the connection while packets come without a pause, and between two publications.
_LOOK_INTERVAL, _PUBLISH_INTERVAL = 10_000_000, 500_000_000
# Nanoseconds after a request for the state of flows in which the next one is expected.
_REQUEST_INTERVAL = 100_000_000
# Milliseconds of the longest sleep.
_LONGEST_SLEEP = 500
# Nanoseconds that a function may take to answer what it has when it leaves.
_DRAIN_TIMEOUT = 2_000_000_000
# How long it waits for the next request for the state of its flows, in nanoseconds; and seconds for which an answer waits for room.
_HAND_OVER_TIMEOUT, _ANSWER_TIMEOUT = 10_000_000_000, 1
# Bytes of an answer about flows, of a flow in it, and of a state without those of the function.
_ANSWER_SIZE, _TUPLE_SIZE, _STATE_HEAD = 8176, 40, 96
# What is known of the end of a membership.
_SAID, _NO_MORE_PACKETS = 1, 2
_BATCH = 64

_lock = threading.Lock()


class Error(Exception):
    """A call failed. Its text says why."""


class Gone(Error):
    """The function is out of its service: clickbox ended, the service was removed, or the function took no packets."""


def _fence():
    """Keeps reads behind earlier writes: taking a lock is an atomic instruction, which x86-64 reorders with nothing."""
    with _lock:
        pass


class Packet:
    """A packet that the function has, until it is answered.

    `data` is a view of its bytes, which the function may change. `face` is where it came in: 0 is the inner face, 1 the outer
    one. `answer` is what a function for batches sets.
    """

    __slots__ = ("answer", "face", "_box", "_buffer", "_offset", "_length")

    def __init__(self, box, buffer, offset, length, face):
        self.answer = NEXT
        self.face = face
        self._box, self._buffer, self._offset, self._length = box, buffer, offset, length

    def __len__(self):
        return self._length

    @property
    def data(self):
        start = self._box._buffers + self._buffer * PACKET_SIZE + self._offset
        return self._box._bytes[start : start + self._length]

    @data.setter
    def data(self, contents):
        """Gives the packet other bytes, at most 2,048."""
        contents = bytes(contents)
        if len(contents) > PACKET_SIZE:
            raise Error(f"a packet of {len(contents)} bytes is too long")
        self._length = len(contents)
        self._offset = min(self._offset, PACKET_SIZE - self._length)
        self.data[:] = contents


class Counter:
    """A counter that `clickbox show service/NAME` displays. Adding to `value` is all that is to be done."""

    __slots__ = ("name", "value")

    def __init__(self, name):
        self.name, self.value = name, 0


class _Ring:
    """One direction at one face. Indices count slots ever written or taken; they wrap."""

    __slots__ = ("words", "slots", "position", "seen", "shown", "borrowed")

    def __init__(self, region, place, slots):
        self.words = region[place : place + 4 * _SLOTS].cast("I")
        self.slots = region[place + 4 * _SLOTS : place + 4 * _SLOTS + 8 * slots].cast("Q")
        # Of this side; the last known index of the other side; the index of this side that the other one knows.
        self.position = self.seen = self.shown = 0
        # In a transmit ring: buffers of the slots before it were taken.
        self.borrowed = 0

    def release(self):
        self.words.release()
        self.slots.release()

    def waiting(self):
        """Packets that wait in a receive ring."""
        if self.seen == self.position:
            self.seen = self.words[_HEAD]
        return (self.seen - self.position) & _MASK

    def has_room(self, position):
        """Whether a slot of a transmit ring is free."""
        if (position - self.seen) & _MASK >= len(self.slots):
            self.seen = self.words[_TAIL]
        return (position - self.seen) & _MASK < len(self.slots)

    def publish(self, index, flag):
        """Shows the position to the other side. True if it sleeps."""
        if self.shown == self.position:
            return False
        self.shown = self.words[index] = self.position
        _fence()
        if not self.words[flag]:
            return False
        self.words[flag] = 0
        return True


def _find_socket(path):
    path = path or os.environ.get("CLICKBOX_FUNCTION") or "/function"
    try:
        os.stat(path)
    except OSError as error:
        raise Error(f"{path}: {error.strerror}; name the folder of the service, such as /run/clickbox/functions/NAME") from error
    return os.path.join(path, "socket") if os.path.isdir(path) else path


def _read_token(path):
    path = os.path.join(os.path.dirname(path), "token")
    try:
        with open(path, "rb") as file:
            token = file.read(_TOKEN_SIZE)
    except OSError as error:
        raise Error(f"the token {path} can't be read: {error.strerror}") from error
    if len(token) != _TOKEN_SIZE:
        raise Error(f"the token {path} can't be read: it is too short")
    return token


def _text(field):
    return bytes(field).split(b"\0", 1)[0].decode(errors="replace")


def _answer_kind(destination):
    """The kind of the answer that sends packets to a destination."""
    return _TO_PORT if destination.startswith("port:") else _INTO_CHAIN if destination.startswith("chain:") else _TO_SERVICE


def with_flow(to):
    """The answer that sends a packet into a chain and lets the later packets of its flow take that chain too, in both directions.

    They come to this function only if they pass it there. `to` is from `Box.destination`. It is NOWHERE if `to` is no chain.
    """
    return to & ~7 | _FLOW_INTO_CHAIN if to & 7 == _INTO_CHAIN else NOWHERE


class HandOver:
    """How a function that leaves hands the state of its flows over to the other instances, and takes such state over.

    - `version` is that of the bytes. Change it whenever they or their meaning change. `size` is the most bytes of one state.
    - `flows(box)` returns the flows with state.
    - `export_flow(box, flow)` returns the state of a flow as bytes, and forgets the flow; None if there is no such flow.
    - `import_flow(box, flow, contents)` takes the state of a flow over, in place of what there was. The bytes may be those of another
      program: it returns False if it does not take them.

    `Box.receive` calls them, between packets. Flows are those of `flow`.
    """

    def __init__(self, version, flows, export_flow, import_flow, size=STATE_SIZE):
        if not 0 < size <= STATE_SIZE:
            raise Error(f"a state has at most {STATE_SIZE} bytes")
        self._version, self._flows, self._size = version, flows, size
        self._export_flow, self._import_flow = export_flow, import_flow
        # The flows that are being listed.
        self._listed = []

    def _answer(self, box, kind, request):
        """The answer to a request. The bytes are those of flow_state.rs in the crate `boundary`."""
        if kind == _LIST_STATES:
            return self._list(box, request)
        return self._export(box, request) if kind == _EXPORT_STATES else self._import(box, request)

    def _list(self, box, request):
        _, position, most = struct.unpack_from("<IQI", request)
        if position == 0:
            self._listed = list(self._flows(box))
        following = position + min(most, (_ANSWER_SIZE - 24) // (4 + _TUPLE_SIZE))
        # Protocol 0 would stand for all flows between the addresses.
        flows = [flow for flow in self._listed[position:following] if flow.protocol != 0]
        head = struct.pack("<IIQI", following < len(self._listed), 0, following, len(flows))
        return head + b"".join(b"\1\0\0\0" + _encode_flow(flow) for flow in flows) + bytes(4)

    def _export(self, box, request):
        count = struct.unpack_from("<I", request, 12)[0]
        states, done, size = [], 0, 12
        while done < count and size + _STATE_HEAD + self._size <= _ANSWER_SIZE:
            flow = _decode_flow(request, 16 + done * (4 + _TUPLE_SIZE) + 4)
            done += 1
            contents = self._export_flow(box, flow)
            if contents is not None and len(contents) <= self._size:
                head = struct.pack("<III", 0, 0, self._version) + _encode_flow(flow) * 2
                states.append(head + struct.pack("<I", len(contents)) + bytes(contents))
                size += len(states[-1])
        return struct.pack("<III", 1, done, len(states)) + b"".join(states)

    def _import(self, box, request):
        count, at, refused = struct.unpack_from("<I", request, 4)[0], 8, []
        for number in range(count):
            for _ in range(2):
                at += 4 + struct.unpack_from("<I", request, at)[0]
            version = struct.unpack_from("<I", request, at)[0]
            flow = _decode_flow(request, at + 4)
            at += 4 + 2 * _TUPLE_SIZE
            length = struct.unpack_from("<I", request, at)[0]
            contents = request[at + 4 : at + 4 + length]
            at += 4 + length
            if version != self._version:
                reason = f"the state has version {version}, and not {self._version}"
            elif self._import_flow(box, flow, contents) is False:
                reason = "it did not take the state over"
            else:
                continue
            refused.append(struct.pack("<II", number, len(reason)) + reason.encode())
        return struct.pack("<I", len(refused)) + b"".join(refused)


class Box:
    """A membership in a service, or a pair of captures that stands in for one. One thread uses it."""

    def __init__(self):
        self.name = "offline"
        """The name of this instance, such as nf-1."""
        self.service = ""
        self.faces = 1
        """The number of faces: 1 or 2."""
        self.now = 0
        """Nanoseconds of a clock that only goes forward; offline, the time of the last packet."""
        self.stopped = self._leaving = 0
        self.counters = []
        self._destinations = {}
        self._messages = collections.deque()
        self._receive, self._transmit, self._spare = [], [], []
        self._buffers = self._count = self._published = self._looked = 0
        self._control = self._doorbell = self._region = self._pool = self._captures = None
        self._words = self._bytes = None
        # Whether clickbox understands LEAVE.
        self._lets_leave = False
        # How flows are handed over, whether clickbox asks for that, when it did so last, and for what.
        self._hand_over, self._asks, self._asked, self._request = None, False, 0, None
        self._gone = ""

    # ---- Joining and leaving ----

    @classmethod
    def join(cls, path=None, slots=0, hand_over=None):
        """Joins the service whose socket is at `path`: the socket itself, or the folder that contains `socket` and `token`.

        Without a path it is $CLICKBOX_FUNCTION, or /function. `slots` are packets that each ring holds: a power of two from 64 to
        2048. With `hand_over`, a HandOver, other instances get the states of its flows when it leaves.
        """
        if platform.machine() not in ("x86_64", "AMD64"):
            raise Error(f"functions in Python need x86-64, and this is {platform.machine()}: write the function in C")
        box = cls()
        box._hand_over = hand_over
        path = _find_socket(path)
        try:
            box._register(path, slots)
        except OSError as error:
            box.leave()
            raise Error(f"can't connect to {path}: {error.strerror or error}") from error
        except Error:
            box.leave()
            raise
        box.now = time.monotonic_ns()
        return box

    def _register(self, path, slots):
        token = _read_token(path)
        self._control = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._control.connect(path)
        abilities = _HANDS_OVER if self._hand_over else 0
        self._control.send(struct.pack("<HHIHHI32s", _REGISTER, 0, 48, VERSION, slots, abilities, token))
        size = 3 * array.array("i").itemsize
        answer, extra, _, _ = self._control.recvmsg(8192, socket.CMSG_SPACE(size), socket.MSG_CMSG_CLOEXEC)
        descriptors = array.array("i")
        for level, kind, data in extra:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                descriptors.frombytes(data[: len(data) - len(data) % descriptors.itemsize])
        try:
            if not answer:
                raise Error(f"clickbox closed the connection at {path}")
            if struct.unpack_from("<H", answer)[0] == _REFUSED:
                raise Error(answer[16:].decode(errors="replace"))
            if len(descriptors) not in (2, 3) or not self._set_up(answer, descriptors[0], descriptors[2:]):
                raise Error(f"the answer at {path} is of another version: take clickbox_function.py of that version")
            self._doorbell = socket.socket(fileno=descriptors.pop(1))
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        self._control.setblocking(False)
        self._doorbell.setblocking(False)

    def _set_up(self, answer, region, pool):
        """Takes over what the welcome says. `pool` has the packet pool of the owner, if the buffers are there."""
        if len(answer) < 168:
            return False
        kind, _, length, version, slots, faces, destinations = struct.unpack_from("<HHIHHHH", answer)
        size, buffers, count, abilities = struct.unpack_from("<QQII", answer, 16)
        if (kind, length, version) != (_WELCOME, len(answer), VERSION):
            return False
        if not 64 <= slots <= 2048 or slots & (slots - 1) or faces not in (1, 2) or count == 0:
            return False
        if len(answer) != 168 + 8 * faces + 72 * destinations or count > _MAX_BUFFERS:
            return False
        end = buffers + count * PACKET_SIZE
        if not pool and end > size:
            return False
        places = [struct.unpack_from("<II", answer, 168 + 8 * face) for face in range(faces)]
        if any(place % 64 or place + 4 * _SLOTS + 8 * slots > size for pair in places for place in pair):
            return False
        self.name, self.service, self.faces = _text(answer[40:104]), _text(answer[104:168]), faces
        for number in range(destinations):
            at = 168 + 8 * faces + 72 * number
            prefix = _PREFIXES.get(struct.unpack_from("<H", answer, at)[0], "?:")
            name = prefix + _text(answer[at + 8 : at + 72])
            self._destinations[name] = number << 3 | _answer_kind(name)
        self._region = mmap.mmap(region, size, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
        self._words = memoryview(self._region)
        self._receive = [_Ring(self._words, place, slots) for place, _ in places]
        self._transmit = [_Ring(self._words, place, slots) for _, place in places]
        if pool:
            self._pool = mmap.mmap(pool[0], end, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
        self._bytes = memoryview(self._pool or self._region)
        self._buffers, self._count = buffers, count
        self._lets_leave = abilities & _LETS_LEAVE != 0
        self._asks = self._hand_over is not None and abilities & _HANDS_OVER != 0
        return True

    @classmethod
    def offline(cls, read, write=None):
        """Reads packets from a capture in pcap format and writes those that would go on to another one, in place of a service."""
        box = cls()
        box._captures = _Captures(read, write)
        box._bytes = memoryview(bytearray(4096 * PACKET_SIZE))
        box._count = 4096
        box._spare = list(range(box._count))
        return box

    def drain(self):
        """Begins to leave: the function gets no new packets, and its flows continue at the other instances.

        Go on with `receive` and `send`: `receive` returns what still waits for the function, and then, when the switch has all answers,
        None. Answer before the packets that you hold back. Then call `leave`: no packet was lost. `run` does all this after `stop`.
        Offline, the capture ends here. Raises Error if clickbox can't be told.
        """
        if self._leaving or self._captures:
            self._leaving = self._leaving or _SAID
            return
        if not self._lets_leave:
            raise Error("clickbox is of a version that knows no leaving in order")
        try:
            self._control.send(struct.pack("<HHI", _LEAVE, 0, 8))
        except OSError as error:
            raise Error(f"clickbox can't be told now that the function leaves: {error.strerror or error}") from error
        self._leaving = _SAID

    def leave(self):
        """Leaves the service. Packets that were not answered are lost: see `drain`."""
        if self._region:
            self.flush()
            self._published = 0
            self._publish_counters()
            for ring in self._receive + self._transmit:
                ring.release()
            self._receive, self._transmit = [], []
            self._words.release()
            self._bytes.release()
            for memory in (self._region, self._pool):
                try:
                    if memory:
                        memory.close()
                except BufferError:
                    # The function still has a view of a packet. The memory goes with it.
                    pass
            self._region = self._pool = None
        for part in (self._captures, self._control, self._doorbell):
            if part:
                part.close()
        self._captures = self._control = self._doorbell = None

    def stop(self):
        """Lets `run` leave in order, as `drain` says, and return. The second call lets it return at once.

        It returns after 2 s at most; with `hand_over`, 10 s after clickbox last asked for states. It may be called from a signal handler.
        """
        self.stopped += 1

    # ---- Packets ----

    def receive(self, most=_BATCH, timeout_ms=-1):
        """Sends what was answered, waits for packets, and returns up to `most` as a list.

        It waits for at most `timeout_ms` milliseconds; -1 means for ever. The list is empty if none came. It is None at the end of
        a capture, and after `drain` when nothing is left.
        """
        if self._captures:
            if self._leaving:
                return None
            return self._captures.read(self) if most and not self.stopped else []
        self.flush()
        begin = self.now = time.monotonic_ns()
        messages = len(self._messages)
        while True:
            if self.now - self._looked >= _LOOK_INTERVAL or self.now - self._asked < _REQUEST_INTERVAL:
                self._looked = self.now
                self._read_control()
                self._publish_counters()
            # The function has none of the packets in hand that it got before.
            if self._request:
                self._answer_request()
            if self._gone:
                raise Gone(self._gone)
            packets = []
            for face in range(self.faces):
                self._take(face, packets, most)
            if packets or self.stopped > (self._leaving != 0) or len(self._messages) > messages:
                return packets
            if self._leaving == _NO_MORE_PACKETS and self._is_answered():
                return None
            self.now = time.monotonic_ns()
            elapsed = (self.now - begin) // 1_000_000
            if 0 <= timeout_ms <= elapsed:
                return []
            # Counters are published while the function is idle, too.
            rest = _LONGEST_SLEEP if timeout_ms < 0 else min(timeout_ms - elapsed, _LONGEST_SLEEP)
            for ring in self._receive:
                ring.words[_READER_SLEEPS] = 1
            _fence()
            if not any(ring.waiting() for ring in self._receive):
                self._wait(rest)
            for ring in self._receive:
                ring.words[_READER_SLEEPS] = 0
            self.now = time.monotonic_ns()

    def _take(self, face, packets, most):
        ring = self._receive[face]
        for _ in range(min(ring.waiting(), most - len(packets))):
            spare = self._take_spare()
            if spare is None:
                break
            at = ring.position & (len(ring.slots) - 1)
            word = ring.slots[at]
            ring.slots[at] = spare
            ring.position = (ring.position + 1) & _MASK
            buffer, offset, length = word & 0xFFFFF, word >> 20 & 0xFFF, word >> 32 & 0x1FFFF
            if buffer >= self._count or offset + length > PACKET_SIZE:
                self._gone = "clickbox sent a packet outside of the region"
                break
            packets.append(Packet(self, buffer, offset, length, face))
        if ring.publish(_TAIL, _WRITER_SLEEPS):
            self._ring()

    def _is_answered(self):
        """Whether the switch has taken all that was answered. If not, the doorbell rings when it takes more."""
        for ring in self._transmit:
            ring.words[_WRITER_SLEEPS] = 1
            _fence()
            if ring.words[_TAIL] != ring.position:
                return False
            ring.words[_WRITER_SLEEPS] = 0
        return True

    def _take_spare(self):
        """A buffer that is in no ring; if there is none, that of a free slot of a transmit ring."""
        if self._spare:
            return self._spare.pop()
        for ring in self._transmit:
            if ring.has_room(ring.borrowed):
                buffer = ring.slots[ring.borrowed & (len(ring.slots) - 1)] & 0xFFFFF
                ring.borrowed = (ring.borrowed + 1) & _MASK
                return buffer
        return None

    def send(self, packet, answer=NEXT):
        """Answers a packet, which the function then no longer has.

        In a service with two faces it leaves at the other one than it came in. Answers are sent by the next `receive` or `flush`.
        """
        self.send_at(packet, 1 - packet.face if self.faces == 2 else 0, answer)

    def send_at(self, packet, face, answer=NEXT):
        """Like `send`, at a face: 0 or 1. A packet at face 1 goes on in the forward direction of its chain."""
        if packet._box is not self:
            raise Error("the packet was answered before")
        if self._captures:
            if answer != DROP:
                self._captures.write(packet)
            self._spare.append(packet._buffer)
            packet._box = None
            return
        if not 0 <= face < self.faces:
            raise Error(f"the service has no face {face}")
        ring = self._transmit[face]
        while not ring.has_room(ring.position):
            # The switch takes packets without a pause, unless it is gone.
            self.flush()
            ring.words[_WRITER_SLEEPS] = 1
            _fence()
            if not ring.has_room(ring.position):
                self._wait(100)
            ring.words[_WRITER_SLEEPS] = 0
            if self._gone:
                raise Gone(self._gone)
        at = ring.position & (len(ring.slots) - 1)
        if ring.borrowed == ring.position:
            self._spare.append(ring.slots[at] & 0xFFFFF)
            ring.borrowed = (ring.borrowed + 1) & _MASK
        meta = _NO_SERVICE if answer == NOWHERE else answer & 0x7FFF
        ring.slots[at] = packet._buffer | packet._offset << 20 | packet._length << 32 | meta << 49
        ring.position = (ring.position + 1) & _MASK
        packet._box = None
        # The switch begins while the function works on the rest.
        if (ring.position - ring.shown) & _MASK >= 32 and ring.publish(_HEAD, _READER_SLEEPS):
            self._ring()

    def flush(self):
        """Sends what was answered."""
        for ring in self._transmit:
            if ring.publish(_HEAD, _READER_SLEEPS):
                self._ring()

    def new(self, contents, face=0):
        """A new packet with these bytes. It is in no chain yet: answered with NEXT it is looked up. None if no buffer is free."""
        contents = bytes(contents)
        if len(contents) > PACKET_SIZE:
            raise Error(f"a packet of {len(contents)} bytes is too long")
        buffer = self._take_spare()
        if buffer is None or buffer >= self._count:
            return None
        packet = Packet(self, buffer, min(128, PACKET_SIZE - len(contents)), len(contents), face)
        packet.data[:] = contents
        return packet

    def copy(self, packet):
        """A copy of a packet, which counts as new. None if no buffer is free."""
        return self.new(packet.data, packet.face)

    def destination(self, name):
        """The answer that sends packets to a destination: `NAME` for a service, `port:NAME` for a port, `chain:NAME` for a chain.

        They enter a chain at its begin. It is NOWHERE if the service may not send there (clickbox service create --may-send-to).
        Offline, it is never so.
        """
        if self._captures:
            return _answer_kind(name)
        return self._destinations.get(name, NOWHERE)

    # ---- Sleeping ----

    def _ring(self):
        try:
            self._doorbell.send(b"\1")
        except (BlockingIOError, InterruptedError):
            pass
        except OSError:
            self._gone = "clickbox closed the doorbell"

    def _wait(self, timeout_ms):
        """Sleeps until the doorbell rings, a message comes, or the time is over."""
        poll = select.poll()
        for part in (self._doorbell, self._control):
            poll.register(part, select.POLLIN)
        ready = {descriptor for descriptor, _ in poll.poll(timeout_ms)}
        if self._doorbell.fileno() in ready:
            try:
                heard = self._doorbell.recv(256)
            except (BlockingIOError, InterruptedError):
                heard = b"\1"
            except OSError:
                heard = b""
            if not heard:
                self._read_control()
                self._gone = self._gone or "clickbox closed the doorbell: the service is gone, or the function took no packets"
        if self._control.fileno() in ready:
            self._read_control()

    def _read_control(self):
        """Reads what waits at the connection."""
        while True:
            try:
                message = self._control.recv(8192)
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                message = b""
            if not message:
                closed = "clickbox closed the connection: the service is gone, or the function took no packets"
                self._gone = self._gone or closed
                return
            if len(message) < 8 or struct.unpack_from("<I", message, 4)[0] != len(message):
                continue
            kind = struct.unpack_from("<H", message)[0]
            if kind == _REFUSED:
                self._gone = message[16:].decode(errors="replace")
            elif kind in (_LIST_STATES, _EXPORT_STATES, _IMPORT_STATES) and self._hand_over:
                self._request = message
            elif kind == _LEAVING and self._leaving:
                self._leaving = _NO_MORE_PACKETS
            elif kind == _MESSAGE_FROM and 8 + _NAME_SIZE <= len(message) <= 8 + _NAME_SIZE + MESSAGE_SIZE:
                if len(self._messages) < _WAITING_MESSAGES:
                    self._messages.append((_text(message[8 : 8 + _NAME_SIZE]), message[8 + _NAME_SIZE :]))

    def _answer_request(self):
        """Answers a request for the state of flows."""
        request, self._request = self._request, None
        self._asked = self.now
        kind = struct.unpack_from("<H", request)[0]
        answer = self._hand_over._answer(self, kind, request[16:])
        # What the callbacks sent goes first.
        self.flush()
        try:
            self._control.settimeout(_ANSWER_TIMEOUT)
            self._control.send(struct.pack("<HHI", _STATES, 0, 16 + len(answer)) + request[8:12] + bytes(4) + answer)
        except OSError:
            # Clickbox gives up, too.
            pass
        finally:
            self._control.setblocking(False)

    # ---- Counters and messages ----

    def counter(self, name):
        """A counter: up to 32, with names of up to 23 letters, digits and underscores. Others are not displayed."""
        for counter in self.counters:
            if counter.name == name:
                return counter
        counter = Counter(name)
        if len(self.counters) < _MAX_COUNTERS and len(name.encode()) < _COUNTER_NAME:
            self.counters.append(counter)
        return counter

    def _publish_counters(self):
        if not self.counters or self.now - self._published < _PUBLISH_INTERVAL:
            return
        self._published = self.now
        message = struct.pack("<HHIHHI", _COUNTERS, 0, 16 + 32 * len(self.counters), len(self.counters), 0, 0)
        for counter in self.counters:
            message += struct.pack("<24sQ", counter.name.encode(), counter.value & 0xFFFFFFFFFFFFFFFF)
        try:
            self._control.send(message)
        except OSError:
            # If there is no room, the next publication has newer values.
            pass

    def send_message(self, to, contents):
        """Sends bytes to all functions that joined a service. `to` is from `destination`.

        It is lost if a receiver does not read its messages. Raises Error if it can't be sent now.
        """
        if to == NOWHERE:
            raise Error("the service may not send there: create it with --may-send-to")
        if len(contents) > MESSAGE_SIZE or to & 7 != 1:
            raise Error(f"a message has at most {MESSAGE_SIZE} bytes, and goes to a service")
        if self._captures:
            return
        head = struct.pack("<HHIHHI", _MESSAGE, 0, 16 + len(contents), to >> 3, 0, 0)
        try:
            self._control.send(head + bytes(contents))
        except OSError as error:
            raise Error(f"the message can't be sent now: {error.strerror or error}") from error

    def receive_message(self):
        """A message that was received, as its sender and its bytes, or None."""
        return self._messages.popleft() if self._messages else None

    # ---- The loop ----

    def run(self, packet=None, batch=None, start=None, tick=None, message=None, tick_ms=1000):
        """Calls the callbacks until `stop`, or until the end of a capture. Raises Gone if the function is out of its service.

        - `packet(box, packet)` returns the answer of a packet, or
        - `batch(box, packets)` sets `answer` of each packet, which is NEXT before.
        - `start(box)` is called once; `tick(box)` about every `tick_ms` milliseconds, and offline at the end; `message(box, from,
          contents)` for each message.
        """
        if start:
            start(self)
        tick_ns = tick_ms * 1_000_000
        following = time.monotonic_ns() + tick_ns
        since, timeout = None, _HAND_OVER_TIMEOUT if self._asks else _DRAIN_TIMEOUT
        while True:
            if self.stopped and since is None:
                if self._captures:
                    break
                try:
                    self.drain()
                except Error:
                    break
                since = time.monotonic_ns()
            if self.stopped > 1 or since is not None and self.now >= max(since, self._asked) + timeout:
                break
            wait = -1 if since is None else 100
            if tick and not self._captures:
                wait = max(0, (following - self.now) // 1_000_000 + 1)
            packets = self.receive(_BATCH, wait)
            if packets is None:
                if tick and self._captures:
                    tick(self)
                return
            if batch and packets:
                batch(self, packets)
            for one in packets:
                answer = one.answer if batch else packet(self, one)
                self.send(one, answer if answer is not None else NEXT)
            while self._messages:
                sender, contents = self._messages.popleft()
                if message:
                    message(self, sender, contents)
            if tick and not self._captures and self.now >= following:
                tick(self)
                following = self.now + tick_ns
        self.flush()


class _Captures:
    """Captures in place of a service, in pcap format."""

    _MICROSECONDS, _NANOSECONDS = 0xA1B2C3D4, 0xA1B23C4D

    def __init__(self, read, write):
        self._out = None
        try:
            self._in = open(read, "rb")
        except OSError as error:
            raise Error(f"{read}: {error.strerror}") from error
        head = self._in.read(24)
        for order in "<>":
            magic, link = (struct.unpack_from(order + "I", head.ljust(24, b"\0"), at)[0] for at in (0, 20))
            if magic in (self._MICROSECONDS, self._NANOSECONDS) and link & 0xFFFF == 1:
                self._record = struct.Struct(order + "IIII")
                self._unit = 1000 if magic == self._MICROSECONDS else 1
                break
        else:
            self._in.close()
            raise Error(f"{read} is no capture of Ethernet packets in pcap format")
        if write:
            try:
                self._out = open(write, "wb")
            except OSError as error:
                self._in.close()
                raise Error(f"{write}: {error.strerror}") from error
            self._out.write(struct.pack("<IHHIIII", self._NANOSECONDS, 2, 4, 0, 0, 65535, 1))

    def read(self, box):
        """One packet, so that each has its own time. None at the end."""
        head = self._in.read(16)
        if len(head) < 16:
            return None
        seconds, part, captured, _ = self._record.unpack(head)
        contents = self._in.read(captured)
        if len(contents) < captured:
            raise Error("the capture ends in the middle of a packet")
        box.now = seconds * 1_000_000_000 + part * self._unit
        packet = box.new(contents[:PACKET_SIZE])
        if packet is None:
            raise Error("no buffer is free")
        return [packet]

    def write(self, packet):
        if self._out:
            now, length = packet._box.now, len(packet)
            self._out.write(struct.pack("<IIII", now // 1_000_000_000, now % 1_000_000_000, length, length))
            self._out.write(packet.data)

    def close(self):
        self._in.close()
        if self._out:
            self._out.close()


# ---- Headers and flows ----

Headers = collections.namedtuple(
    "Headers", "ether_type version protocol ip transport payload payload_length source_port destination_port"
)
Headers.__doc__ = """The headers of a packet. `ip`, `transport` and `payload` are offsets in its bytes; what it does not have is None or
0. `ether_type` is that behind VLAN tags. `transport` is None in fragments after the first one."""

Flow = collections.namedtuple("Flow", "version protocol smaller larger")
Flow.__doc__ = """A flow: both directions have the same one. `smaller` and `larger` are its ends, each an address in bytes and a port. An
ICMP echo message has its identifier as both ports. An ICMP error belongs to the flow of the packet that it quotes."""

_EXTENSIONS = (0, 43, 44, 51, 60)
_WITH_PORTS = (6, 17, 132)
# Of each version of IP: the protocol number of ICMP, the types of its echo messages, and those of its errors.
_MESSAGES = {4: (1, (0, 8), (3, 4, 5, 11, 12)), 6: (58, (128, 129), (1, 2, 3, 4))}
# The most bytes of a packet in an ICMP error that are read.
_QUOTED = 96


def _big16(data, at):
    return data[at] << 8 | data[at + 1]


def _skip_extensions(data, at, end, protocol):
    """Finds the transport header of IPv6: its offset, or None in a later fragment, or if it is cut off; its protocol; and whether the
    packet is a fragment."""
    is_fragment = False
    for _ in range(16):
        if protocol not in _EXTENSIONS:
            break
        if at + 8 > end:
            return None, protocol, is_fragment
        kind, protocol = protocol, data[at]
        if kind == 44:
            place = _big16(data, at + 2)
            is_fragment = is_fragment or place & 0xFFF9 != 0
            if place & 0xFFF8:
                return None, protocol, is_fragment
        at += 8 if kind == 44 else (data[at + 1] + 2) * 4 if kind == 51 else (data[at + 1] + 1) * 8
    return (at if at <= end else None), protocol, is_fragment


def _read_ip(data, at, end, kind):
    """Reads the IP header at an offset: its version, the protocol, the offset of the transport header or None, the end of the packet,
    and whether it is a fragment. None if there is no such header, or if it is cut off."""
    if kind == 0x0800 and at + 20 <= end and data[at] >> 4 == 4:
        version, size, protocol, place = 4, (data[at] & 15) * 4, data[at + 9], _big16(data, at + 6)
        if size < 20 or at + size > end:
            return None
        # What follows the packet is padding.
        end = min(end, at + _big16(data, at + 2))
        transport, is_fragment = None if place & 0x1FFF else at + size, place & 0x3FFF != 0
    elif kind == 0x86DD and at + 40 <= end and data[at] >> 4 == 6:
        version, end = 6, min(end, at + 40 + _big16(data, at + 4))
        transport, protocol, is_fragment = _skip_extensions(data, at + 40, end, data[at + 6])
    else:
        return None
    if transport is not None and transport >= end:
        transport = None
    return version, protocol, transport, end, is_fragment


def _read_packet(data):
    """Reads the headers of a packet: the Ethernet type, the offset of the IP header, and what `_read_ip` returns; or None."""
    at, end = 14, len(data)
    if end < at:
        return None
    kind = _big16(data, 12)
    for _ in range(4):
        if kind not in (0x8100, 0x88A8):
            break
        if at + 4 > end:
            return None
        kind = _big16(data, at + 2)
        at += 4
    ip = _read_ip(data, at, end, kind)
    if ip is None or ip[0] == 4 and _big16(data, at + 2) < (data[at] & 15) * 4:
        return None
    return kind, at, ip


def headers(packet):
    """The headers of a packet, or None if it is not IP, or is cut off in its IP header."""
    data = packet.data
    found = _read_packet(data)
    if found is None:
        return None
    kind, at, (version, protocol, transport, end, _) = found
    source = destination = payload_length = size = 0
    payload = None
    if transport is not None:
        if protocol == 6 and transport + 20 <= end:
            size = (data[transport + 12] >> 4) * 4
        elif protocol == 17 and transport + 8 <= end:
            size = 8
        if size or (protocol == 6 and transport + 20 <= end) or (protocol == 132 and transport + 12 <= end):
            source, destination = _big16(data, transport), _big16(data, transport + 2)
        if size >= 8 and transport + size <= end:
            payload, payload_length = transport + size, end - transport - size
    return Headers(kind, version, protocol, at, transport, payload, payload_length, source, destination)


def flow(packet):
    """The flow of a packet, and whether the packet goes from its smaller to its larger end; None if it is not IP.

    The switch finds the same flow (flow_tuple.rs in the crate `flow-table`): it gives all packets of one to the same instance.
    """
    data = packet.data
    found = _read_packet(data)
    if found is None:
        return None
    kind, at, ip = found
    version, protocol, transport, end, is_fragment = ip
    is_error, message = False, _MESSAGES[version]
    if protocol == message[0] and transport is not None and not is_fragment and transport + 8 <= end:
        if data[transport] in message[2]:
            start = transport + 8
            quoted = data[start : min(end, start + _QUOTED)]
            inner = _read_ip(quoted, 0, len(quoted), kind)
            if inner is not None:
                data, at, is_error = quoted, 0, True
                version, protocol, transport, end, is_fragment = inner
    ports = (0, 0)
    if transport is not None:
        if protocol in _WITH_PORTS and transport + 4 <= end:
            ports = _big16(data, transport), _big16(data, transport + 2)
        elif protocol == message[0] and not is_fragment and transport + 8 <= end and data[transport] in message[1]:
            ports = (_big16(data, transport + 4),) * 2
    at, size = (at + 12, 4) if version == 4 else (at + 8, 16)
    source = (bytes(data[at : at + size]), ports[0])
    destination = (bytes(data[at + size : at + 2 * size]), ports[1])
    ends = sorted((source, destination))
    return Flow(version, protocol, *ends), (source <= destination) != is_error


def _encode_flow(flow):
    ends = b""
    for address, _ in (flow.smaller, flow.larger):
        mapped = address if flow.version == 6 else bytes(10) + b"\xff\xff" + address
        number = int.from_bytes(mapped, "big")
        ends += struct.pack("<QQ", number >> 64, number & 0xFFFFFFFFFFFFFFFF)
    return struct.pack("<I", flow.protocol) + ends + struct.pack("<I", flow.smaller[1] << 16 | flow.larger[1])


def _decode_flow(contents, at):
    protocol, high, low, other_high, other_low, ports = struct.unpack_from("<IQQQQI", contents, at)
    addresses = [(high << 64 | low).to_bytes(16, "big"), (other_high << 64 | other_low).to_bytes(16, "big")]
    version = 4 if all(address[:12] == bytes(10) + b"\xff\xff" for address in addresses) else 6
    if version == 4:
        addresses = [address[12:] for address in addresses]
    return Flow(version, protocol, (addresses[0], ports >> 16), (addresses[1], ports & 0xFFFF))


class Flows:
    """State for each flow: what `make()` returns when the flow is new.

    It has at most `most` flows. A flow without packets for `idle_ns` is forgotten, and the one that was idle longest makes room for
    a new one. `forget(flow, state)`, if it is given, is called for each.
    """

    def __init__(self, most, make, idle_ns=0, forget=None):
        if most < 1:
            raise Error("a table has at least one flow")
        self._most, self._make, self._idle, self._forget = most, make, idle_ns, forget
        self._flows = collections.OrderedDict()

    def state(self, flow, now):
        """The state of a flow. `now` is `Box.now`."""
        self._forget_idle(now)
        entry = self._flows.get(flow)
        if entry is None:
            # As a key it would be another flow for each direction, which can't be handed over.
            if type(flow) is tuple and flow and isinstance(flow[0], Flow):
                raise Error("flow(packet) returns a flow and its direction: give the table the first of the two")
            if len(self._flows) >= self._most:
                self._forget_oldest()
            entry = self._flows[flow] = [now, self._make()]
        else:
            entry[0] = now
            self._flows.move_to_end(flow)
        return entry[1]

    def __iter__(self):
        """The flows that are there."""
        return iter(self._flows)

    def take(self, flow):
        """Removes a flow, without a call of `forget`. Returns its state, or None if there is no such flow."""
        entry = self._flows.pop(flow, None)
        return entry[1] if entry else None

    def put(self, flow, state, now):
        """Gives a flow this state, in place of the one that it has."""
        self.state(flow, now)
        self._flows[flow][1] = state

    def count(self, now):
        """The number of flows, after idle ones were forgotten."""
        self._forget_idle(now)
        return len(self._flows)

    def _forget_oldest(self):
        flow, (_, state) = self._flows.popitem(last=False)
        if self._forget:
            self._forget(flow, state)

    def _forget_idle(self, now):
        while self._idle and self._flows and now - next(iter(self._flows.values()))[0] >= self._idle:
            self._forget_oldest()


# ---- The main function ----


def _run_offline(read, write, callbacks):
    box = None
    try:
        box = Box.offline(read, write)
        box.run(**callbacks)
        for counter in box.counters:
            print(counter.name, counter.value)
    except Error as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        if box:
            box.leave()
    return 0


def main(packet=None, batch=None, start=None, tick=None, message=None, tick_ms=1000, slots=0, hand_over=None):
    """The main function of a program, with the callbacks of `Box.run` and the settings of `Box.join`. It ends the process.

    `PROGRAM [SOCKET|FOLDER]` joins a service, and joins again when it is out of it, until SIGINT or SIGTERM, upon which it leaves
    in order. `PROGRAM --read IN.pcap [--write OUT.pcap]` works on captures, and prints the counters as `NAME VALUE`.
    """
    if (packet is None) == (batch is None):
        raise TypeError("give either `packet` or `batch`")
    callbacks = {"packet": packet, "batch": batch, "start": start, "tick": tick, "message": message, "tick_ms": tick_ms}
    program, words = sys.argv[0], sys.argv[1:]
    options, path = {}, None
    while words:
        word = words.pop(0)
        if word in ("--read", "--write") and words:
            options[word] = words.pop(0)
        elif not word.startswith("-") and path is None:
            path = word
        else:
            print(f"usage: {program} [SOCKET|FOLDER]\n       {program} --read IN.pcap [--write OUT.pcap]", file=sys.stderr)
            sys.exit(2)
    if "--read" in options:
        sys.exit(_run_offline(options["--read"], options.get("--write"), callbacks))
    running, interrupted = [], []

    def interrupt(*_):
        interrupted.append(True)
        for box in running:
            box.stop()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupt)
    has_joined = False
    while not interrupted:
        box = None
        try:
            box = Box.join(path, slots, hand_over)
            print(f"{program}: joined as {box.name}", file=sys.stderr, flush=True)
            has_joined = True
            running[:] = [box]
            if not interrupted:
                box.run(**callbacks)
            sys.exit(0)
        except Error as error:
            print(f"{program}: {error}", file=sys.stderr, flush=True)
            # What never worked is told at once; what worked is tried again, because clickbox may be restarted.
            if not has_joined:
                sys.exit(1)
        finally:
            running.clear()
            if box:
                box.leave()
        time.sleep(0.2)
    sys.exit(0)
