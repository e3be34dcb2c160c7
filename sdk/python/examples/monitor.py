"""Counts packets and bytes by protocol, and prints the rates once a second."""

import sys

import clickbox_function as clickbox

NAMES = {6: "tcp", 17: "udp", 1: "icmp", 58: "icmp"}
last = {"time": 0, "packets": 0, "bytes": 0}
count = {}


def start(box):
    for name in ("packets", "bytes", "tcp", "udp", "icmp", "other"):
        count[name] = box.counter(name)
    last.update(time=box.now, packets=0, bytes=0)


def look(box, packets):
    for packet in packets:
        headers = clickbox.headers(packet)
        name = NAMES.get(headers.protocol, "other") if headers else "other"
        count["packets"].value += 1
        count["bytes"].value += len(packet)
        count[name].value += 1


def report(box):
    seconds = (box.now - last["time"]) / 1e9
    if seconds > 0:
        packets = (count["packets"].value - last["packets"]) / seconds
        bits = (count["bytes"].value - last["bytes"]) * 8 / seconds
        print(f"{box.name}: {packets:.0f} packets/s, {bits / 1e6:.3f} Mb/s", file=sys.stderr)
    last.update(time=box.now, packets=count["packets"].value, bytes=count["bytes"].value)


clickbox.main(batch=look, start=start, tick=report)
