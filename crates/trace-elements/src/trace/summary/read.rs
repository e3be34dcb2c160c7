//! Reads summary dumps.

use super::field::Field;
use super::packet_builder::{FlowId, PacketBuilder};
use super::splitter::{RawRecord, Splitter};
use super::{MAJOR, MINOR, parse};
use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::Ipv4Addr;
use element::text::{unquote, words};
use packet::{address, protocol};

/// Maximum fields per packet, so that a long line of field names can't make every packet slow.
const MAX_FIELDS: usize = 1_000;

/// An item of a dump.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    Packet(PacketBuilder),
    /// A message for the user.
    Notice {
        /// The number of the line, or in a binary dump of the record, from 1.
        number: u64,
        /// Whether `number` counts records.
        binary: bool,
        /// Whether data are lost.
        error: bool,
        /// The message.
        text: String,
    },
}

/// Reads text and binary summary dumps. Feed bytes, take items until there are none, feed again, and finish.
#[derive(Debug)]
pub struct Reader {
    /// The default protocol of packets.
    pub protocol: u8,
    /// Whether packets get all their bytes and correct checksums.
    pub checksums: bool,
    fields: Vec<Field>,
    /// Indexes of the fields, in their order of application.
    order: Vec<usize>,
    flow: Option<FlowId>,
    aggregate: u32,
    minor: u32,
    splitter: Splitter,
    /// Whether the first line has been examined.
    begun: bool,
    complained: bool,
    notices: VecDeque<Item>,
}

impl Default for Reader {
    fn default() -> Reader {
        Reader {
            protocol: protocol::TCP,
            checksums: false,
            fields: Vec::new(),
            order: Vec::new(),
            flow: None,
            aggregate: 0,
            minor: MINOR,
            splitter: Splitter::default(),
            begun: false,
            complained: false,
            notices: VecDeque::new(),
        }
    }
}

impl Reader {
    /// Creates a reader for the start of a dump.
    pub fn new() -> Reader {
        Reader::default()
    }

    /// Sets the default fields of the dump.
    pub fn set_fields(&mut self, names: &str) {
        self.fields.clear();
        let words = words(names);
        if words.len() > MAX_FIELDS {
            self.notice(true, format!("more than {MAX_FIELDS} contents: the others are ignored"));
        }
        for word in words.iter().take(MAX_FIELDS) {
            let name = unquote(word);
            let field = match Field::find(&name) {
                Some(field) if field.is_readable() => field,
                Some(_) => {
                    self.notice(false, format!("content type '{name}' ignored on input"));
                    Field::Nothing
                }
                None => {
                    self.notice(false, format!("unknown content type '{name}'"));
                    Field::Nothing
                }
            };
            self.fields.push(field);
        }
        if self.fields.is_empty() {
            self.notice(true, String::from("no contents specified"));
        }
        self.order = (0..self.fields.len()).collect();
        sorting::sort_by_key(&mut self.order, |index| self.fields[*index].order());
    }

    /// Sets the default addresses and ports: source, port, destination, port, optionally protocol.
    pub fn set_flow(&mut self, text: &str) {
        let words = words(text);
        let address = |at: usize| match words.get(at).map(String::as_str) {
            Some("-") => Some(Ipv4Addr::UNSPECIFIED),
            word => address::parse_ip4(word?).ok(),
        };
        let port = |at: usize| match words.get(at).map(String::as_str) {
            Some("-") => Some(0),
            word => word?.parse().ok(),
        };
        let (Some(source), Some(source_port), Some(destination), Some(destination_port)) =
            (address(0), port(1), address(2), port(3))
        else {
            self.flow = None;
            return self.notice(true, String::from("bad !flowid specification"));
        };
        self.flow = Some(FlowId { source, source_port, destination, destination_port });
        if let Some(word) = words.get(4) {
            self.set_protocol(word, "!flowid");
        }
    }

    /// Examines the first line of the bytes fed so far, before any item is taken. Returns a warning about it.
    pub fn begin(&mut self) -> Option<String> {
        self.begun = true;
        let line = self.splitter.first_line()?;
        self.first_line(&line)
    }

    /// Adds bytes of the dump.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.splitter.feed(bytes);
    }

    /// Marks the end of the dump.
    pub fn finish(&mut self) {
        self.splitter.finish();
    }

    /// The next packet or message; `None` if more bytes are needed, or at the end.
    pub fn item(&mut self) -> Option<Item> {
        loop {
            if let Some(notice) = self.notices.pop_front() {
                return Some(notice);
            }
            let builder = match self.splitter.next() {
                Ok(Some(RawRecord::Line(line))) => self.line(&line),
                Ok(Some(RawRecord::Record(record))) => self.record(&record),
                Ok(None) => return None,
                Err(text) => {
                    self.notice(true, text.into());
                    None
                }
            };
            if let Some(builder) = builder {
                return Some(Item::Packet(builder));
            }
        }
    }

    /// Constructs a packet from a line, or executes its directive.
    fn line(&mut self, line: &str) -> Option<PacketBuilder> {
        if !core::mem::replace(&mut self.begun, true)
            && let Some(text) = self.first_line(line)
        {
            self.notice(false, text);
        }
        if line.starts_with('!') {
            self.execute_directive(line);
            return None;
        }
        if line.starts_with('#') || line.trim().is_empty() {
            return None;
        }
        let mut builder = self.builder();
        let mut parts: Vec<&str> = Vec::with_capacity(self.fields.len());
        parts.extend(split(line).take(self.fields.len()));
        let mut known = 0;
        let mut buffer = Vec::new();
        for index in &self.order {
            let field = self.fields[*index];
            let part = parts.get(*index).copied().unwrap_or("");
            if matches!(part, "" | "-") {
                continue;
            }
            if let Some(value) = parse::text(field, part, builder.icmp_type(), self.minor, &mut buffer) {
                builder.set(field, value);
                known += 1;
            }
        }
        self.complete(builder, known)
    }

    /// Constructs a packet from a binary record.
    fn record(&mut self, mut record: &[u8]) -> Option<PacketBuilder> {
        let values: Vec<_> = self.fields.iter().map(|field| parse::binary(*field, &mut record)).collect();
        let mut builder = self.builder();
        let mut known = 0;
        for index in &self.order {
            if let Some(value) = values[*index] {
                builder.set(self.fields[*index], value);
                known += 1;
            }
        }
        self.complete(builder, known)
    }

    fn builder(&self) -> PacketBuilder {
        let mut builder = PacketBuilder::new(self.protocol, self.flow);
        builder.aggregate = self.aggregate;
        builder
    }

    fn complete(&mut self, mut builder: PacketBuilder, known: usize) -> Option<PacketBuilder> {
        if known == 0 {
            // Reported once, since every further line has the same problem.
            if !core::mem::replace(&mut self.complained, true) {
                let text = if self.fields.is_empty() { "no '!data' provided" } else { "packet parse error" };
                self.notice(true, text.into());
            }
            return None;
        }
        builder.finish(self.checksums);
        Some(builder)
    }

    /// Parses the version line, if the first line is one. Returns a warning about it.
    fn first_line(&mut self, line: &str) -> Option<String> {
        if let Some(rest) = line.strip_prefix("!IPSummaryDump") {
            let mut numbers = rest.trim().split('.').map(|number| number.trim().parse::<u32>().ok());
            if let (Some(Some(major)), Some(Some(minor))) = (numbers.next(), numbers.next()) {
                if major == MAJOR && minor <= MINOR {
                    self.minor = minor;
                } else {
                    return Some(format!("unexpected IPSummaryDump version {major}.{minor}"));
                }
            }
            return None;
        }
        let known = ["!creator", "!data", "!contents", "!proto", "!flowid"];
        let is_odd = self.fields.is_empty() && !known.iter().any(|start| line.starts_with(start));
        is_odd.then(|| "missing banner line; is this an IP summary dump?".into())
    }

    /// Executes a line that starts with `!`. Unknown directives are comments.
    fn execute_directive(&mut self, line: &str) {
        let (command, rest) = line.split_once(|c: char| c.is_ascii_whitespace()).unwrap_or((line, ""));
        let list = words(rest);
        match command {
            "!data" | "!contents" => self.set_fields(rest),
            "!flowid" => self.set_flow(rest),
            "!proto" => match list.as_slice() {
                [word] => self.set_protocol(word, "!proto"),
                _ => self.notice(true, "bad !proto".into()),
            },
            "!aggregate" => match list.as_slice() {
                [word] if word.parse::<u32>().is_ok() => self.aggregate = word.parse().unwrap_or(0),
                _ => self.notice(true, "bad !aggregate specification".into()),
            },
            "!binary" => {
                if !list.is_empty() {
                    self.notice(true, "bad !binary specification".into());
                }
                self.splitter.become_binary();
            }
            _ => {}
        }
    }

    fn set_protocol(&mut self, word: &str, command: &str) {
        let number = match word {
            "T" | "tcp" => Some(protocol::TCP),
            "U" | "udp" => Some(protocol::UDP),
            "I" | "icmp" => Some(protocol::ICMP),
            "igmp" => Some(protocol::IGMP),
            "ipip" => Some(protocol::IPIP),
            "dccp" => Some(protocol::DCCP),
            "gre" => Some(protocol::GRE),
            "icmp6" => Some(protocol::ICMP6),
            "sctp" => Some(protocol::SCTP),
            number => number.parse().ok(),
        };
        match number {
            Some(number) => self.protocol = number,
            None => self.notice(true, format!("bad protocol in {command}")),
        }
    }

    fn notice(&mut self, error: bool, text: String) {
        let Splitter { number, binary, .. } = self.splitter;
        self.notices.push_back(Item::Notice { number, binary, error, text });
    }
}

/// Splits a line at spaces outside double quotes. A leading space produces an empty word.
fn split(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line;
    let has_quotes = line.contains('"');
    core::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (mut quoted, mut escaped) = (false, false);
        let end = rest.bytes().position(|byte| {
            if !has_quotes {
                return byte.is_ascii_whitespace();
            }
            let was_escaped = escaped;
            escaped = quoted && byte == b'\\' && !was_escaped;
            quoted ^= byte == b'"' && !was_escaped;
            !quoted && byte.is_ascii_whitespace()
        });
        let (word, after) = rest.split_at(end.unwrap_or(rest.len()));
        rest = after.trim_ascii_start();
        Some(word)
    })
}

#[cfg(test)]
mod tests {
    use super::super::Writer;
    use super::*;
    use alloc::string::ToString;
    use packet::Pool;

    /// Reads a dump in chunks of `size` bytes.
    fn read(dump: &[u8], size: usize, checksums: bool) -> (Vec<PacketBuilder>, Vec<String>) {
        let mut reader = Reader { checksums, ..Reader::new() };
        let (mut builders, mut notices) = (Vec::new(), Vec::new());
        for piece in dump.chunks(size).chain([&[][..]]) {
            reader.feed(piece);
            if piece.is_empty() {
                reader.finish();
            }
            while let Some(item) = reader.item() {
                match item {
                    Item::Packet(builder) => builders.push(builder),
                    Item::Notice { number, text, .. } => notices.push(format!("{number}: {text}")),
                }
            }
        }
        (builders, notices)
    }

    /// Reads a dump and writes the packets' fields, as text or binary, with some packets truncated.
    fn write(dump: &str, fields: &str, binary: bool, cut: Option<usize>) -> Vec<u8> {
        let (builders, notices) = read(dump.as_bytes(), 7, false);
        assert_eq!(notices, Vec::<String>::new());
        let pool = Pool::new(100);
        let fields = fields.split(' ').map(|name| Field::find(name).unwrap()).collect();
        let writer = Writer { binary, bad_packets: cut.is_some(), ..Writer::new(fields) };
        let mut out = Vec::new();
        writer.header(&[], &mut out);
        for builder in builders {
            let mut packet = builder.packet(&pool).unwrap();
            if let Some(length) = cut {
                packet.truncate(length);
            }
            writer.packet(&mut packet, &mut out);
        }
        out
    }

    /// Checks that writing the packets' fields reproduces the dump.
    fn check(fields: &str, lines: &str) {
        let dump = format!("!IPSummaryDump 1.3\n!data {fields}\n{lines}");
        let text = write(&dump, fields, false, None);
        assert_eq!(String::from_utf8_lossy(&text), dump);
        let binary = write(&dump, fields, true, None);
        for size in [1, 9, binary.len()] {
            let (builders, notices) = read(&binary, size, false);
            assert_eq!((builders, notices), read(dump.as_bytes(), size, false));
        }
    }

    #[test]
    fn fields_round_trip() {
        check(
            "timestamp ip_src sport ip_dst dport ip_proto",
            "1.500000 1.0.0.1 10 2.0.0.2 20 T\n2.000000 1.0.0.1 10 2.0.0.2 20 U\n",
        );
        check("timestamp ip_proto ip_len", "1.500000 U 60\n");
        check(
            "ip_src tcp_seq tcp_ack tcp_flags tcp_window tcp_urp tcp_off",
            "1.0.0.1 5 6 SA 7 8 20\n1.0.0.1 5 6 . 7 8 40\n",
        );
        check(
            "ip_tos ip_ttl ip_id ip_sum ip_hl ip_fragoff",
            "9 64 7 99 20 0\n9 64 7 99 24 0!\n9 64 7 99 20 184+\n",
        );
        check("ip_dscp ip_ecn ip_frag", "46 ect2 .\n0 no !\n0 ce F\n");
        check("ip_proto icmp_type icmp_code", "I 8 0\nI 3 4\n");
        check("ip_proto icmp_type_name icmp_code_name icmp_nextmtu", "I unreachable needfrag 1400\n");
        check("ip_proto icmp_type icmp_flowid icmp_seq", "I 8 77 78\n");
        check("ip_proto udp_len ip_len", "U 8 28\n");
        check("eth_src eth_dst eth_type ip_src", "00-01-02-03-04-05 FF-FF-FF-FF-FF-FF 0800 1.2.3.4\n");
        check("count paint aggregate first_timestamp", "5 7 8 12.000345\n");
        check("tcp_opt ip_opt", "mss1460;wscale7 rr{1.2.3.4}+2\n. .\n");
        check("payload_len ip_len", "100 140\n");
    }

    #[test]
    fn payloads_round_trip() {
        let dump = "!data ip_proto payload\nU \"hi there\\n\"\nT \"\\000 \\\"quoted\\\"\"\n";
        let text = write(dump, "payload payload_len payload_md5 ip_len", false, None);
        let lines: Vec<_> =
            core::str::from_utf8(&text).unwrap().lines().skip(2).map(ToString::to_string).collect();
        assert_eq!(
            lines,
            [
                "\"hi there\\n\" 9 sy@Uze03MHB84qQruJ_zma 37",
                "\"\\000 \\\"quoted\\\"\" 10 YxjIwbj2xXBOtsZpxoEyAc 50"
            ]
        );
    }

    #[test]
    fn missing_bytes_are_dashes_and_reported() {
        let dump = "!data sport dport tcp_urp tcp_opt\n1 2 3 wscale10\n";
        let line = |cut| {
            let text = write(dump, "sport dport tcp_urp tcp_opt", false, Some(cut));
            String::from_utf8(text).unwrap().lines().skip(2).collect::<Vec<_>>().join("|")
        };
        assert_eq!(line(44), "1 2 3 wscale10");
        assert_eq!(line(41), "!bad truncated IP missing 3|1 2 3 -");
        assert_eq!(line(38), "!bad truncated IP missing 6|1 2 - -");
        assert_eq!(line(23), "!bad truncated IP missing 21|1 - - -");
        assert_eq!(line(20), "!bad truncated IP missing 24|- - - -");
        assert_eq!(line(2), "!bad truncated IP header|- - - -");
    }

    #[test]
    fn checksums_and_bytes_on_demand() {
        let (builders, _) = read(b"!data src dst icmp_type\n!proto I\n1.2.3.4 5.6.7.8 echo\n", 9, true);
        let ip = packet::Ip4View::check(&builders[0].bytes, true).unwrap();
        assert!(packet::Icmp4View::new(ip.payload()).unwrap().checksum_is_right());
        let (builders, _) = read(b"!data src ip_len sport\n1.2.3.4 100 7\n", 9, false);
        assert_eq!((builders[0].bytes.len(), builders[0].extra_length), (40, 60));
        let (builders, _) = read(b"!data src ip_len sport\n1.2.3.4 100 7\n", 9, true);
        assert_eq!((builders[0].bytes.len(), builders[0].extra_length), (100, 0));
    }

    #[test]
    fn default_flows_and_errors() {
        let (builders, notices) = read(b"!data ip_len\n!flowid 1.0.0.1 10 2.0.0.2 20 U\n50\n", 100, false);
        assert_eq!(notices, Vec::<String>::new());
        assert_eq!(builders[0].bytes[12..24], [1, 0, 0, 1, 2, 0, 0, 2, 0, 10, 0, 20]);
        let (builders, notices) = read(
            b"hello\nworld\n!data src tpyo\nx y\n!proto nothing\n!flowid 1\n\n# a comment\n1.2.3.4\n",
            3,
            false,
        );
        assert_eq!(builders.len(), 1);
        let expected = [
            "1: missing banner line; is this an IP summary dump?",
            "1: no '!data' provided",
            "3: unknown content type 'tpyo'",
            "5: bad protocol in !proto",
            "6: bad !flowid specification",
        ];
        assert_eq!(notices, expected);
        let dump = format!("!data {}\n1\n", "ip_tos ".repeat(MAX_FIELDS + 1));
        let (builders, notices) = read(dump.as_bytes(), dump.len(), false);
        assert_eq!(builders.len(), 1);
        assert_eq!(notices, ["1: more than 1000 contents: the others are ignored"]);
    }

    #[test]
    fn arbitrary_bytes_never_panic_and_are_bounded() {
        let dump = write(
            "!data src sport tcp_opt ip_opt\n1.2.3.4 5 mss1 rr{1.2.3.4}\n",
            "ip_src sport tcp_opt ip_opt ip_len",
            true,
            None,
        );
        for at in 0..dump.len() {
            for value in [0, 1, 4, 0x7f, 0x80, 0xff] {
                let mut dump = dump.clone();
                dump[at] = value;
                read(&dump, 11, true);
            }
        }
        let mut reader = Reader::new();
        let mut notices = Vec::new();
        for _ in 0..100 {
            reader.feed(&[b'x'; 10_000]);
            while let Some(Item::Notice { text, .. }) = reader.item() {
                notices.push(text);
            }
        }
        assert_eq!(notices, ["line too long"]);
        assert_eq!(reader.splitter.held(), 0);
        let numbers = "!data ip_len ip_hl tcp_off wire_len payload_len payload udp_len\n";
        let lengths = ["0", "1", "65535", "4294967295"].map(|number| {
            let dump = format!("{numbers}{number} 255 255 {number} {number} \"abc\" {number}\n");
            let (builders, notices) = read(dump.as_bytes(), 50, true);
            assert_eq!(notices, Vec::<String>::new());
            builders.iter().map(|builder| builder.bytes.len()).collect::<Vec<_>>()
        });
        // Two headers of 60 bytes and the payload, or the length that an IP header can hold.
        assert_eq!(lengths, [[123], [123], [65_535], [65_535]]);
    }
}
