//! The workloads of measured boxes.

use serde::Serialize;

/// The program in the boxes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum BoxProgram {
    /// The engine, with a Click configuration.
    Click,
    /// A small program that only moves packets, to measure sandbox, rings and switch alone.
    Probe,
}

impl BoxProgram {
    /// The write handler, and the prefix of its value.
    pub(crate) fn write_handler(self) -> (&'static str, &'static str) {
        match self {
            Self::Click => ("state.set", "value "),
            Self::Probe => ("value", ""),
        }
    }

    /// The handler that returns the value.
    pub(crate) fn read_handler(self) -> &'static str {
        match self {
            Self::Click => "state.run",
            Self::Probe => "value",
        }
    }
}

/// A workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Workload {
    /// Discards packets.
    Drop,
    /// Sends packets of this many bytes at full speed.
    Send(u16),
    /// Returns packets with their Ethernet addresses swapped.
    Mirror,
    /// Returns the packets that ten rules allow.
    Firewall,
    /// Answers pings.
    Ping,
    /// Forwards packets, from port 0 to 1 and back.
    Forward,
    /// Uses its core continuously.
    Loop,
    /// Uses its core continuously, and more memory than the core's caches hold.
    Memory,
    /// Stores a value.
    Store,
}

/// A table of many entries, for measurements of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TableKind {
    /// Routes to /24 prefixes.
    Routes,
    /// Firewall rules, in the fast form.
    Rules,
    /// The same in the compact form.
    CompactRules,
    /// Patterns at the start of payloads.
    Patterns,
}

impl TableKind {
    /// All kinds.
    pub(crate) const ALL: [Self; 4] = [Self::Routes, Self::Rules, Self::CompactRules, Self::Patterns];

    /// What its entries are called.
    pub(crate) fn entries(self) -> &'static str {
        match self {
            Self::Routes => "routes",
            Self::Rules => "rules",
            Self::CompactRules => "compact rules",
            Self::Patterns => "patterns",
        }
    }

    /// The number of entries that corresponds to this number of routes.
    pub(crate) fn count(self, entries: u32) -> u32 {
        match self {
            Self::Routes | Self::Rules | Self::CompactRules => entries,
            Self::Patterns => entries * 2 / 5,
        }
    }

    /// A configuration with this many entries.
    pub(crate) fn configuration(self, count: u32) -> String {
        let list = |entry: &dyn Fn(u32) -> String| (0..count).map(entry).collect::<Vec<_>>().join(", ");
        let net = |number: u32| format!("10.{}.{}.0/24", number / 256 % 256, number % 256);
        match self {
            Self::Routes => {
                let routes = list(&|number| format!("{} 0", net(number)));
                format!("Idle -> RadixIPLookup({routes}) -> Discard;")
            }
            Self::Rules | Self::CompactRules => {
                let form = if self == Self::CompactRules { ", MEMORY 0" } else { "" };
                let port = |number: u32| 1_024 + number % 60_000;
                let rules = list(&|number| {
                    format!("allow src net {} and tcp dst port {}", net(number), port(number))
                });
                format!("Idle -> MarkIPHeader(0) -> IPFilter({rules}, deny all{form}) -> Discard;")
            }
            Self::Patterns => {
                let patterns = list(&|number| format!("42/{:08x}", number.wrapping_mul(0x9e37_79b9)));
                let outputs: String = (0..=count).map(|output| format!("p[{output}] -> d; ")).collect();
                format!("Idle -> p :: Classifier({patterns}, -); d :: Discard; {outputs}")
            }
        }
    }
}

/// Ten rules, of which the last allows [`PACKET`].
pub(crate) const RULES: &str = "deny src net 127.0.0.0/8, deny src net 192.0.2.0/24, deny dst net 172.16.0.0/12, deny ip frag, \
    deny tcp and dst port 23, deny tcp and dst port 445, allow tcp and dst host 192.0.2.9 and dst port 443, \
    deny udp and dst port 137, deny udp and dst port 53, allow icmp";

/// An echo request from 10.1.2.3 to 192.0.2.9, in a frame of minimum size.
pub(crate) const PACKET: [u8; 60] = {
    let mut packet = [0; 60];
    let head = [
        2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, // Ethernet
        0x45, 0, 0, 28, 0, 1, 0, 0, 64, 1, 0xac, 0xd3, 10, 1, 2, 3, 192, 0, 2, 9, // IP
        8, 0, 0xf7, 0xfd, 0, 1, 0, 1, // ICMP
    ];
    let mut at = 0;
    while at < head.len() {
        packet[at] = head[at];
        at += 1;
    }
    packet
};

impl Workload {
    /// The configuration text.
    pub(crate) fn configuration(self, box_program: BoxProgram) -> String {
        match box_program {
            BoxProgram::Click => self.click(),
            BoxProgram::Probe => self.probe(),
        }
    }

    fn click(self) -> String {
        const PING: &str =
            "FromDevice(0) -> EtherMirror -> CheckIPHeader(14) -> ICMPPingResponder -> ToDevice(0);";
        match self {
            Self::Drop => "FromDevice(0) -> AverageCounter -> Discard;".into(),
            Self::Send(bytes) => {
                format!("InfiniteSource(LENGTH {bytes}, BURST 256, TIMESTAMP false) -> ToDevice(0);")
            }
            Self::Mirror => "FromDevice(0) -> EtherMirror -> ToDevice(0);".into(),
            Self::Firewall => format!(
                "FromDevice(0) -> CheckIPHeader(14) -> IPFilter({RULES}) -> EtherMirror -> ToDevice(0);"
            ),
            Self::Ping => PING.into(),
            Self::Forward => "FromDevice(0) -> ToDevice(1); FromDevice(1) -> ToDevice(0);".into(),
            Self::Loop => "InfiniteSource(BURST 256, TIMESTAMP false) -> Discard;".into(),
            // Each packet waits until a thousand others are written: 2 MB of buffers.
            Self::Memory => {
                "InfiniteSource(LENGTH 1500, BURST 32, TIMESTAMP false) -> EtherMirror -> Queue(1000)
                -> Unqueue(BURST 32) -> Discard;"
                    .into()
            }
            Self::Store => "state :: Script(TYPE PASSIVE, return $value);".into(),
        }
    }

    fn probe(self) -> String {
        match self {
            Self::Drop | Self::Store => "drop".into(),
            Self::Send(bytes) => format!("send {bytes}"),
            Self::Mirror | Self::Firewall | Self::Ping => "mirror".into(),
            Self::Forward => "forward".into(),
            Self::Loop | Self::Memory => "loop".into(),
        }
    }

    /// The number of ports that it uses.
    pub(crate) fn ports(self) -> usize {
        match self {
            Self::Forward => 2,
            Self::Loop | Self::Memory | Self::Store => 0,
            _ => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ones' complement sum of 16-bit words: all ones if the data includes its checksum.
    fn sum(bytes: &[u8]) -> u16 {
        let words = bytes.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1]));
        let sum: u32 = words.sum();
        ((sum & 0xffff) + (sum >> 16)) as u16
    }

    #[test]
    fn the_checksums_of_the_packet_are_correct() {
        assert_eq!((sum(&PACKET[14..34]), sum(&PACKET[34..42])), (0xffff, 0xffff));
    }
}
