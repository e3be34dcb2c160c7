"""Allows or drops packets by the longest prefix of their IPv4 destination.

The rules are in the file $RULES, one a line: `10.1.0.0/16 drop` or `0.0.0.0/0 allow`. Without a rule, a packet is allowed. Packets
that are not IPv4 pass.
"""

import ipaddress
import os
import sys

import clickbox_function as clickbox

# For each length of a prefix, from long to short: the verdicts by prefix.
rules = {length: {} for length in range(32, -1, -1)}
count = {}


def read_rules(path):
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            words = line.split()
            if not words or words[0].startswith("#"):
                continue
            try:
                prefix, verdict = words
                network = ipaddress.IPv4Network(prefix, strict=False)
                allows = ("drop", "allow").index(verdict) == 1
            except ValueError:
                sys.exit(f"{path}:{number}: expected a line such as `10.1.0.0/16 drop`")
            key = int(network.network_address) >> (32 - network.prefixlen)
            rules[network.prefixlen][key] = allows


def is_allowed(address):
    for length, verdicts in rules.items():
        allows = verdicts.get(address >> (32 - length))
        if allows is not None:
            return allows
    return True


def start(box):
    count["allowed"], count["dropped"] = box.counter("allowed"), box.counter("dropped")


def decide(box, packet):
    headers = clickbox.headers(packet)
    if not headers or headers.version != 4:
        return clickbox.NEXT
    if is_allowed(int.from_bytes(packet.data[headers.ip + 16 : headers.ip + 20], "big")):
        count["allowed"].value += 1
        return clickbox.NEXT
    count["dropped"].value += 1
    return clickbox.DROP


if "RULES" not in os.environ:
    sys.exit("set RULES to a file with rules such as `10.1.0.0/16 drop`")
read_rules(os.environ["RULES"])
clickbox.main(packet=decide, start=start)
