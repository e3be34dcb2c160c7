"""Tests of clickbox_function.py without a service."""

import os
import struct
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
import clickbox_function as clickbox


def ipv4(source, destination, protocol=17, ports=(1000, 53), more=b"", tags=b"", fragment=0):
    payload = struct.pack(">HHHH", *ports, 8 + len(more), 0) + more
    addresses = bytes(source) + bytes(destination)
    header = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(payload), 0, fragment, 64, protocol, 0) + addresses
    return bytes(12) + tags + b"\x08\x00" + header + payload


class Capture:
    """Captures in a folder that goes."""

    def __init__(self, packets, magic=0xA1B2C3D4, order="<"):
        self.folder = tempfile.TemporaryDirectory()
        self.read, self.written = (os.path.join(self.folder.name, name) for name in ("in.pcap", "out.pcap"))
        with open(self.read, "wb") as file:
            file.write(struct.pack(order + "IHHIIII", magic, 2, 4, 0, 0, 65535, 1))
            for number, packet in enumerate(packets):
                file.write(struct.pack(order + "IIII", number, 5, len(packet), len(packet)) + packet)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.folder.cleanup()

    def box(self):
        return clickbox.Box.offline(self.read, self.written)

    def out(self):
        with open(self.written, "rb") as file:
            contents, found, at = file.read(), [], 24
        while at < len(contents):
            seconds, part, length, _ = struct.unpack_from("<IIII", contents, at)
            found.append((seconds * 1_000_000_000 + part, contents[at + 16 : at + 16 + length]))
            at += 16 + length
        return found


class Library(unittest.TestCase):
    def run_on(self, packets, **callbacks):
        with Capture(packets) as capture:
            box = capture.box()
            box.run(**callbacks)
            box.leave()
            return box, capture.out()

    def test_answers_changes_and_new_packets(self):
        def batch(box, packets):
            for packet in packets:
                if packet.data[0] == 1:
                    packet.answer = clickbox.DROP
                elif packet.data[0] == 2:
                    packet.data = b"\x07" * 2048
                elif packet.data[0] == 3:
                    copy = box.copy(packet)
                    packet.data[0] = 8
                    box.send(copy, box.destination("port:x"))

        _, out = self.run_on([bytes([number]) * 60 for number in range(4)], batch=batch)
        expected = [(5_000, bytes(60)), (2_000_005_000, b"\x07" * 2048)]
        expected += [(3_000_005_000, b"\x03" * 60), (3_000_005_000, b"\x08" + b"\x03" * 59)]
        self.assertEqual(out, expected)

    def test_flows_are_given_chains_only(self):
        def start(box):
            kinds = [box.destination(name) & 7 for name in ("ids", "port:x", "chain:web")]
            self.assertEqual(kinds, [1, 2, 5])
            self.assertEqual(clickbox.with_flow(box.destination("chain:web")) & 7, 6)
            for other in (box.destination("ids"), clickbox.DROP, clickbox.NOWHERE):
                self.assertEqual(clickbox.with_flow(other), clickbox.NOWHERE)

        self.run_on([bytes(60)], packet=lambda box, packet: clickbox.NEXT, start=start)

    def test_what_is_too_long_or_answered_twice_is_refused(self):
        def packet(box, packet):
            with self.assertRaises(clickbox.Error):
                packet.data = bytes(2049)
            with self.assertRaises(clickbox.Error):
                box.new(bytes(2049))
            other = box.new(b"x" * 60)
            box.send(other, clickbox.DROP)
            with self.assertRaises(clickbox.Error):
                box.send(other)
            with self.assertRaises(clickbox.Error):
                box.send_message(clickbox.NEXT, b"x")

        box, out = self.run_on([bytes(60)] * 5000, packet=packet)
        self.assertEqual((len(out), len(box._spare)), (5000, 4096))

    def test_captures_of_all_kinds(self):
        for order in "<>":
            for magic, time in ((0xA1B2C3D4, 5_000), (0xA1B23C4D, 5)):
                with Capture([b"x" * 60], magic, order) as capture:
                    box = capture.box()
                    box.run(packet=lambda *_: clickbox.NEXT)
                    box.leave()
                    self.assertEqual(capture.out(), [(time, b"x" * 60)])
        for contents in (b"", b"x" * 24, bytes(40)):
            with Capture([]) as capture:
                with open(capture.read, "wb") as file:
                    file.write(contents)
                with self.assertRaisesRegex(clickbox.Error, "no capture of Ethernet packets"):
                    capture.box()
        with self.assertRaisesRegex(clickbox.Error, "No such file"):
            clickbox.Box.offline("/nowhere/x.pcap")

    def test_headers_and_flows(self):
        a, b = (10, 0, 0, 1), (10, 0, 0, 2)
        packets = [
            ipv4(a, b, more=b"abc"),
            ipv4(b, a, ports=(53, 1000)),
            ipv4(a, b, tags=b"\x81\x00\x00\x05"),
            ipv4(a, b, fragment=100),
            ipv4(a, b)[:40],
            ipv4(a, b)[:30],
            bytes(12) + b"\x86\xdd\x60" + bytes(3) + b"\0\x10\0\x40" + bytes(15) + b"\1" + bytes(15) + b"\2" + b"\x11\0" + bytes(6)
            + b"\0\7\0\x09\0\x08\0\0",
            bytes(60),
            b"x",
        ]
        found = []

        def packet(box, packet):
            headers, flow = clickbox.headers(packet), clickbox.flow(packet)
            self.assertEqual(headers is None, flow is None)
            found.append(headers and (headers[1:9], flow[1], flow[0]))

        self.run_on(packets, packet=packet)
        flow = found[0][2]
        self.assertEqual(flow, clickbox.Flow(4, 17, (bytes(a), 1000), (bytes(b), 53)))
        self.assertEqual(found[0][:2], ((4, 17, 14, 34, 42, 3, 1000, 53), True))
        self.assertEqual(found[1], ((4, 17, 14, 34, 42, 0, 53, 1000), False, flow))
        self.assertEqual(found[2][:2], ((4, 17, 18, 38, 46, 0, 1000, 53), True))
        self.assertEqual(found[3][:2], ((4, 17, 14, None, None, 0, 0, 0), True))
        self.assertEqual(found[4][0], (4, 17, 14, 34, None, 0, 0, 0))
        self.assertEqual(found[6][0], (6, 17, 14, 62, 70, 0, 7, 9))
        self.assertEqual([found[number] for number in (5, 7, 8)], [None] * 3)

    def test_flows_without_ports_are_those_of_the_switch(self):
        a, b, router = (10, 0, 0, 1), (10, 0, 0, 2), (10, 0, 0, 9)

        def message(kind, identifier=0x105, more=b"", source=a, destination=b, fragment=0):
            frame = ipv4(source, destination, 1, (kind << 8, 0), more, fragment=fragment)
            return frame[:38] + struct.pack(">HH", identifier, 3) + more

        def error(quoted, kind=11):
            return message(kind, 0, quoted, router, a)

        def ip6(source, destination, payload):
            header = b"\x60\0\0\0" + struct.pack(">HBB", len(payload), 58, 64)
            return bytes(12) + b"\x86\xdd" + header + bytes(15) + bytes([source]) + bytes(15) + bytes([destination]) + payload

        udp, tcp, ping = ipv4(a, b)[14:42], ipv4(a, b, 6)[14:42], message(8)[14:]
        request, reply = ip6(1, 2, b"\x80\0\0\0\0\7\0\1"), ip6(2, 1, b"\x81\0\0\0\0\7\0\1")
        flow4 = lambda protocol, other, ports: clickbox.Flow(4, protocol, (bytes(a), ports[0]), (bytes(other), ports[1]))
        ping6 = clickbox.Flow(6, 58, (bytes(15) + b"\1", 7), (bytes(15) + b"\2", 7))
        cases = [(message(kind), flow4(1, b, (0x105,) * 2 if kind in (0, 8) else (0, 0)), True) for kind in range(256)]
        for kind in range(256):
            found = flow4(17, b, (1000, 53)) if kind in (3, 4, 5, 11, 12) else flow4(1, router, (0, 0))
            cases.append((error(udp, kind), found, False))
        cases += [
            (ipv4(a, b, 47), flow4(47, b, (0, 0)), True),
            (ipv4(a, b, 58, (0x8000, 0)), flow4(58, b, (0, 0)), True),
            (error(tcp), flow4(6, b, (1000, 53)), False),
            (error(ping), flow4(1, b, (0x105, 0x105)), False),
            (error(udp[:20]), flow4(17, b, (0, 0)), False),
            (error(udp[:19]), flow4(1, router, (0, 0)), False),
            (error(ipv4(a, b, fragment=9)[14:]), flow4(17, b, (0, 0)), False),
            (message(8, fragment=0x2000), flow4(1, b, (0, 0)), True),
            (message(8, fragment=1), flow4(1, b, (0, 0)), True),
            (request, ping6, True),
            (reply, ping6, False),
            (ip6(9, 1, b"\3" + bytes(7) + request[14:]), ping6, False),
        ]
        found = []
        self.run_on([case[0] for case in cases], packet=lambda _, packet: found.append(clickbox.flow(packet)))
        self.assertEqual(found, [case[1:] for case in cases])

    def test_flows_are_forgotten_when_idle_or_too_many(self):
        forgotten = []
        flows = clickbox.Flows(2, list, 10, lambda flow, state: forgotten.append((flow, state)))
        flows.state("a", 0).append(1)
        flows.state("b", 1).append(2)
        self.assertEqual(flows.state("a", 5), [1])
        flows.state("c", 6)
        self.assertEqual((forgotten, flows.count(6)), ([("b", [2])], 2))
        self.assertEqual((flows.count(15), forgotten[1:]), (1, [("a", [1])]))
        self.assertEqual(flows.count(16), 0)

    def test_a_flow_with_its_direction_is_no_flow(self):
        flows, flow = clickbox.Flows(2, list), clickbox.Flow(4, 17, (b"abcd", 1), (b"efgh", 2))
        for use in (lambda: flows.state((flow, True), 0), lambda: flows.put((flow, False), [], 0)):
            with self.assertRaisesRegex(clickbox.Error, "the first of the two"):
                use()
        self.assertEqual((flows.state(flow, 0), flows.count(0)), ([], 1))

    def test_states_of_flows_are_handed_over(self):
        ends = [(bytes([10, 0, 0, number]), 1000 + number) for number in range(200)]
        flows = [clickbox.Flow(4, 17, ends[0], end) for end in ends[1:]]
        flows[7] = clickbox.Flow(4, 1, (ends[0][0], 9), (ends[8][0], 9))
        flows.append(clickbox.Flow(6, 6, (bytes(range(16)), 7), (bytes(range(1, 17)), 9)))
        here, there = (clickbox.Flows(1000, bytes) for _ in range(2))
        for number, flow in enumerate(flows):
            here.put(flow, bytes([number]) * 5, 0)
        # Clickbox takes protocol 0 for all flows between the addresses.
        here.put(clickbox.Flow(4, 0, ends[0], ends[1]), b"any", 0)

        def hand_over(table, version, takes=True):
            def take_over(_, flow, contents):
                table.put(flow, contents, 0)
                return takes

            return clickbox.HandOver(version, lambda _: table, lambda _, flow: table.take(flow), take_over, 64)

        giver, taker = hand_over(here, 7), hand_over(there, 7)
        position, listed = 0, []
        while True:
            reply = giver._answer(None, clickbox._LIST_STATES, struct.pack("<IQIIII", 0, position, 128, 0, 0, 0))
            more, _, position, count = struct.unpack_from("<IIQI", reply)
            self.assertEqual(len(reply), 24 + 44 * count)
            listed += [reply[20 + 44 * number : 64 + 44 * number] for number in range(count)]
            if not more:
                break
        self.assertEqual([clickbox._decode_flow(group, 4) for group in listed], flows)
        for version, takes, reason in (8, True, b"version 7, and not 8"), (7, False, b"did not take"):
            group = struct.pack("<QII", 0, 48, 1) + listed[0]
            states = giver._answer(None, clickbox._EXPORT_STATES, group)[8:]
            reply = hand_over(there, version, takes)._answer(None, clickbox._IMPORT_STATES, bytes(4) + states)
            self.assertEqual(struct.unpack_from("<II", reply), (1, 0))
            self.assertIn(reason, reply)
            self.assertEqual(giver._answer(None, clickbox._IMPORT_STATES, bytes(4) + states), bytes(4))
        rest = listed
        while rest:
            groups = struct.pack("<QII", 0, 4 + 44 * len(rest), len(rest)) + b"".join(rest)
            reply = giver._answer(None, clickbox._EXPORT_STATES, groups)
            done, count = struct.unpack_from("<II", reply, 4)
            self.assertTrue(0 < count == done and len(reply) <= 8176)
            self.assertEqual(taker._answer(None, clickbox._IMPORT_STATES, bytes(4) + reply[8:]), bytes(4))
            rest = rest[done:]
        self.assertEqual((len(list(here)), list(there)), (1, flows))
        self.assertEqual([there.take(flow) for flow in flows], [bytes([number]) * 5 for number in range(200)])
        # What is not there is no state.
        reply = giver._answer(None, clickbox._EXPORT_STATES, struct.pack("<QII", 0, 48, 1) + listed[0])
        self.assertEqual(reply, struct.pack("<III", 1, 1, 0))
        self.assertRaises(clickbox.Error, clickbox.HandOver, 1, list, list, list, 5000)

    def test_counters_are_bounded(self):
        box, _ = self.run_on([], packet=lambda *_: None)
        for number in range(40):
            box.counter(f"c{number}").value += 1
        box.counter("x" * 24)
        self.assertEqual((len(box.counters), box.counter("c0").value), (32, 1))


if __name__ == "__main__":
    unittest.main()
