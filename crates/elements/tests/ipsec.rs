//! IPsec tunnels: round trips between two gateways, replayed, changed and hostile packets, and the routes with keys.

mod support;

use std::rc::Rc;
use std::time::Duration;

use capture::{LinkType, Parser, PcapEncoder};
use packet::{Ip4ViewMut, protocol};
use random::Random;
use support::{BATCHES, Memory, Run, books, expectations, run, run_with};

const KEYS: &str = "00112233445566778899aabbccddeeff 00112233445566778899aabbccddeeff00112233";
const OTHER_KEYS: &str = "ffeeddccbbaa99887766554433221100 33221100ffeeddccbbaa99887766554433221100";

/// The order of RFC 4303, and that of Click's example: to the tunnel, and from it.
const ORDERS: [(&str, &str); 2] = [
    ("IPsecAES(1) -> IPsecAuthHMACSHA1(0)", "auth :: IPsecAuthHMACSHA1(1) -> aes :: IPsecAES(0)"),
    ("IPsecAuthHMACSHA1(0) -> IPsecAES(1)", "aes :: IPsecAES(0) -> auth :: IPsecAuthHMACSHA1(1)"),
];

/// A gateway that sends the packets of `in` from 10.OWN.0.0/16 into a tunnel, as `wire`, and those of the tunnel to `out`.
fn gateway([own, peer]: [u8; 2], association: &str, (to, from): (&str, &str)) -> String {
    format!(
        "FromDump(in, STOP true) -> CheckIPHeader
            -> rt :: RadixIPsecLookup(192.0.2.{own} 0, 192.0.2.{peer} 3, 10.{own}/16 4,
                10.{peer}/16 192.0.2.{peer} 1 {association});
        rt[0] -> StripIPHeader -> {from} -> esp :: IPsecESPUnencap -> ip :: CheckIPHeader -> rt;
        rt[1] -> encap :: IPsecESPEncap -> {to} -> IPsecEncap(50) -> rt;
        rt[2] -> host :: Counter -> Discard;
        rt[3] -> FixIPSrc(192.0.2.{own}) -> tunnel :: Counter -> ToDump(wire, 0, ENCAP IP);
        rt[4] -> clear :: Counter -> ToDump(out, 0, ENCAP IP);"
    )
}

/// An IPv4 packet.
fn ip(source: [u8; 4], destination: [u8; 4], protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = [&[0; 20], payload].concat();
    let length = bytes.len() as u16;
    let mut header = Ip4ViewMut::new(&mut bytes).expect("a header");
    header.set_version_length(0x45);
    header.set_total_length(length);
    header.set_ttl(64);
    header.set_protocol(protocol);
    header.set_source(source.into());
    header.set_destination(destination.into());
    header.fill_checksum();
    bytes
}

/// Packets of every length of padding, and long ones, between the networks of two gateways.
fn packets([own, peer]: [u8; 2]) -> Vec<Vec<u8>> {
    let lengths = (0..70).chain([1_300, 1_480, 9_000, 60_000]);
    let bytes = |length: usize| (0..length).map(|at| (at * 7) as u8).collect::<Vec<u8>>();
    lengths.map(|length| ip([10, own, 0, 5], [10, peer, 0, 6], protocol::UDP, &bytes(length))).collect()
}

fn capture<P: AsRef<[u8]>>(link: LinkType, packets: &[P]) -> Vec<u8> {
    let encoder = PcapEncoder::new(link);
    let mut file = encoder.file_header().to_vec();
    for bytes in packets.iter().map(AsRef::as_ref) {
        encoder.record(0, bytes.len() as u32, bytes, &mut file);
    }
    file
}

fn contents(memory: &Memory, name: &str) -> Vec<Vec<u8>> {
    let file = memory.file(name).unwrap_or_default();
    let (mut parser, mut unread, mut packets) = (Parser::new(), &file[..], Vec::new());
    while let Ok(Some(record)) = parser.record(&mut unread) {
        packets.push(record.bytes.to_vec());
    }
    packets
}

/// Runs a configuration with these packets in the file `in`, and checks all counters.
#[track_caller]
fn check<P: AsRef<[u8]>>(config: &str, (link, packets): (LinkType, &[P]), batch: usize, expect: &str) -> Run {
    let memory = Rc::new(Memory::default());
    memory.put("in", &capture(link, packets));
    let run = run_with(config, batch, memory).expect("it runs");
    assert_eq!(expectations(&run, expect), [""; 0], "batch {batch}: {config}");
    assert_eq!(books::check(&run), [""; 0], "batch {batch}: {config}");
    run
}

/// The packets that a gateway sends for those in its network.
fn encrypted(own_and_peer: [u8; 2], association: &str, order: (&str, &str)) -> Vec<Vec<u8>> {
    let (clear, config) = (packets(own_and_peer), gateway(own_and_peer, association, order));
    let expect = format!("host.count = 0\nclear.count = 0\ntunnel.count = {}", clear.len());
    contents(&check(&config, (LinkType::RAW, &clear), 256, &expect).memory, "wire")
}

#[test]
fn packets_pass_a_tunnel_of_two_gateways_unchanged() {
    let two = format!("1000 {KEYS} 1 64 1001 {OTHER_KEYS} 1 64");
    let reverse = format!("1001 {OTHER_KEYS} 1 64 1000 {KEYS} 1 64");
    let one = "234 ABCDEFFF001DEFD2354550FE40CD708E 112233EE556677888877665544332211 300 64".to_string();
    for order in ORDERS {
        for (there, here) in [(&two, &reverse), (&one, &one)] {
            let wire = encrypted([1, 2], there, order);
            for batch in BATCHES {
                let expect = format!("host.count = 0\nclear.count = {}\ntunnel.count = 0", wire.len());
                let run = check(&gateway([2, 1], here, order), (LinkType::RAW, &wire), batch, &expect);
                assert_eq!(contents(&run.memory, "out"), packets([1, 2]));
            }
        }
    }
}

#[test]
fn headers_and_padding_are_those_of_the_rfc() {
    let wire = encrypted([1, 2], &format!("1000 {KEYS} 1 64"), ORDERS[0]);
    let mut vectors = std::collections::BTreeSet::new();
    for ((sent, clear), number) in wire.iter().zip(packets([1, 2])).zip(1u32..) {
        let (header, esp) = sent.split_at(20);
        assert_eq!(header[..2], [0x45, 0]);
        assert_eq!(header[8..10], [250, protocol::ESP]);
        assert_eq!(header[12..20], [192, 0, 2, 1, 192, 0, 2, 2]);
        assert_eq!(esp[..8], [1000u32.to_be_bytes(), number.to_be_bytes()].concat());
        assert!(vectors.insert(esp[8..24].to_vec()), "{number}: a vector repeats");
        assert_eq!(esp.len(), 24 + (clear.len() + 2).next_multiple_of(16) + 12);
    }
}

/// A packet that another implementation of AES, HMAC and ESP made.
#[test]
fn a_packet_of_another_implementation_is_taken() {
    let bytes = |digits: &str| -> Vec<u8> {
        (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect()
    };
    let sent = bytes(
        "45000068123400004032e42cc0000202c0000201000003e8000000070f0e0d0c0b0a0908070605040302010067d8ed85594506b8c9d55652\
         d3075c7bef43358f3f17926a33c1c59693c41bdc9130b3be0598e1a5729f0b13b3217729e07b5b66304e8d7b0d244e47",
    );
    let clear = bytes("4500002800010000401166b70a0200060a01000503e807d00014000068656c6c6f2074756e6e656c");
    let config = gateway([1, 2], &format!("1000 {KEYS} 1 64"), ORDERS[0]);
    let run = check(
        &config,
        (LinkType::RAW, &[sent]),
        256,
        "host.count = 0\nclear.count = 1\ntunnel.count = 0\nrt.associations = 1000 1 7",
    );
    assert_eq!(contents(&run.memory, "out"), [clear]);
}

#[test]
fn packets_are_taken_once_and_not_behind_the_window() {
    let association = format!("1000 {KEYS} 10 32");
    let wire = encrypted([1, 2], &association, ORDERS[0]);
    // 74 packets: the first 32 and again, then in reverse, of which the last 42 are behind the window or taken.
    let order = (0..32).chain(0..32).chain((32..74).rev());
    let packets: Vec<&Vec<u8>> = order.map(|index| &wire[index]).collect();
    for batch in BATCHES {
        let expect = "host.count = 0\nclear.count = 64\ntunnel.count = 0\nesp.losses = replayed 42\nrt.associations = 1000 10 83";
        check(&gateway([2, 1], &association, ORDERS[0]), (LinkType::RAW, &packets), batch, expect);
    }
    // Numbers below the first one.
    let expect = "host.count = 0\nclear.count = 64\ntunnel.count = 0\nesp.losses = replayed 10";
    check(&gateway([2, 1], &format!("1000 {KEYS} 20 255"), ORDERS[0]), (LinkType::RAW, &wire), 256, expect);
}

#[test]
fn no_changed_packet_is_taken() {
    let association = format!("1000 {KEYS} 1 64");
    for order in ORDERS {
        let sent = &encrypted([1, 2], &association, order)[20];
        // Each bit behind the SPI, and each length down to the header of ESP.
        let mut packets = Vec::new();
        for bit in 24 * 8..sent.len() * 8 {
            let mut changed = sent.clone();
            changed[bit / 8] ^= 0x80 >> (bit % 8);
            packets.push(changed);
        }
        for length in 20..sent.len() - 20 {
            packets.push(ip([192, 0, 2, 1], [192, 0, 2, 2], protocol::ESP, &sent[20..20 + length]));
        }
        // 640 bits, and lengths of 20 to 83 bytes. A header has 24 bytes, a block 16 and a digest 12.
        assert_eq!((sent.len(), packets.len()), (104, 704));
        let expect = match order == ORDERS[0] {
            true => "auth.drops = 672\nauth.losses = bad_digest 672\\ntoo_short 32",
            false => {
                "auth.drops = 644\nauth.losses = bad_digest 644\\ntoo_short 1\naes.losses = too_short 20\\nbad_length 39"
            }
        };
        let expect = format!("host.count = 0\nclear.count = 0\ntunnel.count = 0\n{expect}");
        for batch in BATCHES {
            check(&gateway([2, 1], &association, order), (LinkType::RAW, &packets), batch, &expect);
        }
    }
}

/// Packets for a router, and why it drops them.
#[test]
fn packets_for_the_router_are_told_apart() {
    let (own, peer) = ([192, 0, 2, 1], [192, 0, 2, 2]);
    let esp = |spi: u32, rest: usize| [&spi.to_be_bytes()[..], &vec![0; rest]].concat();
    let mut fragment = ip(peer, own, protocol::ESP, &esp(1000, 100));
    Ip4ViewMut::new(&mut fragment).unwrap().set_fragment(0x2000);
    Ip4ViewMut::new(&mut fragment).unwrap().fill_checksum();
    let packets = [
        ip(peer, own, protocol::UDP, &esp(1000, 20)),
        ip(peer, own, protocol::ESP, &esp(999, 100)),
        // That of the packets to the tunnel.
        ip(peer, own, protocol::ESP, &esp(1001, 100)),
        ip(peer, own, protocol::ESP, &[0, 0, 3]),
        ip(peer, own, protocol::ESP, &esp(1000, 20)),
        ip(peer, own, protocol::ESP, &esp(1000, 100)),
        fragment,
        ip(peer, [203, 0, 113, 1], protocol::UDP, &[]),
    ];
    let config = gateway([1, 2], &format!("1001 {OTHER_KEYS} 1 64 1000 {KEYS} 1 64"), ORDERS[0]);
    for batch in BATCHES {
        let expect = "host.count = 1\nclear.count = 0\ntunnel.count = 0
            rt.losses = unknown_spi 2\\ntoo_short 1\\nis_fragment 1\\nno_route 1
            auth.losses = too_short 1\\nbad_digest 1
            rt.associations = 1000 1 0\\n1001 1 0";
        check(&config, (LinkType::RAW, &packets), batch, expect);
    }
}

/// What a sender with the keys can send: the contents behind the header of ESP, and why they are dropped.
#[test]
fn contents_are_checked() {
    let inner = ip([10, 2, 0, 6], [10, 1, 0, 5], protocol::UDP, b"abcdefgh");
    let outside = ip([10, 3, 0, 6], [10, 1, 0, 5], protocol::UDP, b"abcdefgh");
    let packet = |number: u32, inner: &[u8], trailer: &[u8]| {
        [&1000u32.to_be_bytes()[..], &number.to_be_bytes(), &[9; 16], inner, trailer].concat()
    };
    let mut version = inner.clone();
    version[0] = 0x65;
    let packets = [
        packet(1, &inner, &[1, 2, 2, 4]),
        packet(1, &inner, &[1, 2, 2, 4]),
        packet(0, &inner, &[1, 2, 2, 4]),
        // Without padding, and with as much as possible.
        packet(2, &inner, &[0, 4]),
        packet(3, &inner, &(1..=255).chain([255, 4]).collect::<Vec<u8>>()),
        packet(4, &inner, &[1, 3, 2, 4]),
        packet(5, &inner, &[2, 1, 2, 4]),
        packet(6, &inner, &[200, 4]),
        packet(7, &[], &[1, 4]),
        packet(8, &[], &[0, 4]),
        packet(9, &inner, &[0, 41]),
        packet(10, &version, &[0, 4]),
        packet(11, &inner[..19], &[0, 4]),
        packet(12, &outside, &[0, 4]),
        packet(13, &[], &[0, 59]),
        packet(14, &[7; 40], &[0, 59]),
        packet(15, &[], &[4]),
        packet(16, &[], &[])[..10].to_vec(),
        [999u32.to_be_bytes().to_vec(), vec![0; 40]].concat(),
    ];
    let config = format!(
        "FromDump(in, STOP true) -> e :: IPsecESPUnencap -> ip :: CheckIPHeader -> c :: Counter -> ToDump(out, 0, ENCAP IP);
         Idle -> rt :: RadixIPsecLookup(10.2/16 192.0.2.2 1 1000 {KEYS} 1 64); rt[0] -> Discard; rt[1] -> Discard"
    );
    for batch in BATCHES {
        let expect = "c.count = 3
            e.losses = replayed 2\\nbad_padding 4\\nno_ip_header 4\\noutside_tunnel 1\\ntoo_short 2\\nunknown_spi 1
            rt.associations = 1000 1 14";
        let run = check(&config, (LinkType::ETHERNET, &packets), batch, expect);
        assert_eq!(contents(&run.memory, "out"), [&inner; 3].map(Vec::clone));
    }
}

/// Any bytes end as a packet, or for a declared reason, at each element of either side.
#[test]
fn any_bytes_pass_or_are_dropped() {
    let mut random = Random::new(1);
    let mut packets = Vec::new();
    for number in 0..3_000u32 {
        let most = [60, 300][random.below(2) as usize];
        let length = random.below(most) as usize;
        let mut bytes: Vec<u8> = (0..length).map(|_| random.next() as u8).collect();
        // Most have the number of the association and a new sequence number, and many are nearly right in the end.
        if random.below(8) > 0 {
            let start = [1000u32.to_be_bytes(), (number + 1).to_be_bytes()].concat();
            bytes.iter_mut().zip(start).for_each(|(byte, right)| *byte = right);
        }
        if random.below(2) == 0 && length > 24 + 40 {
            let padding = (length - 24 - 2) % 9;
            let end = length - padding - 2;
            let trailer = (1..=padding as u8).chain([padding as u8, [4, 59, 0][random.below(3) as usize]]);
            bytes[end..].iter_mut().zip(trailer).for_each(|(byte, right)| *byte = right);
            let inner = ip([10, 2 + random.below(2) as u8, 0, 6], [10, 1, 0, 5], protocol::UDP, &[]);
            bytes[24..44].copy_from_slice(&inner);
        }
        packets.push(bytes);
    }
    for elements in [
        "IPsecESPUnencap",
        "IPsecAuthHMACSHA1(1)",
        "IPsecAES(0)",
        "IPsecESPEncap",
        "IPsecAuthHMACSHA1(0)",
        "IPsecAES(1)",
        "IPsecAuthHMACSHA1(0) -> StoreData(40, x) -> IPsecAuthHMACSHA1(1)",
        "IPsecAES(1) -> IPsecAuthHMACSHA1(0) -> IPsecAuthHMACSHA1(1) -> IPsecAES(0) -> IPsecESPUnencap",
        "IPsecAuthHMACSHA1(0) -> IPsecAES(1) -> IPsecAES(0) -> IPsecAuthHMACSHA1(1) -> IPsecESPUnencap",
        "SetIPAddress(192.0.2.1) -> [0] rt; Idle",
    ] {
        let config = format!(
            "rt :: RadixIPsecLookup(192.0.2.1 0, 10.2/16 192.0.2.2 1 1000 {KEYS} 1 64);
             FromDump(in, STOP true) -> {elements} -> CheckIPHeader -> Discard;
             Idle -> rt; rt[0] -> Discard; rt[1] -> Discard; rt[2] -> Discard"
        );
        for batch in BATCHES {
            let memory = Rc::new(Memory::default());
            memory.put("in", &capture(LinkType::ETHERNET, &packets));
            let run = run_with(&config, batch, memory).expect("it runs");
            assert_eq!(books::check(&run), [""; 0], "batch {batch}: {elements}");
            let list = run.router.read("list", "").expect("a list");
            for element in list.lines().skip(1) {
                let losses = run.router.read(&format!("{element}.losses"), "").expect("its losses");
                assert!(!losses.contains("undeclared"), "{elements}: {losses}");
            }
        }
    }
}

#[test]
fn sequence_numbers_are_not_used_again() {
    let association = format!("1000 {KEYS} 4294967292 64");
    let expect = format!(
        "host.count = 0\nclear.count = 0\ntunnel.count = 4\nencap.losses = sequence_ended {}\nrt.associations = 1000 4294967296 4294967291",
        packets([1, 2]).len() - 4
    );
    for batch in BATCHES {
        let config = gateway([1, 2], &association, ORDERS[0]);
        check(&config, (LinkType::RAW, &packets([1, 2])), batch, &expect);
    }
}

#[test]
fn packets_without_an_association_do_not_enter_a_tunnel() {
    let config = format!(
        "rt :: RadixIPsecLookup(10.2/16 192.0.2.2 1 1000 {KEYS} 1 64); rt[0] -> Discard;
         InfiniteSource(LENGTH 12, LIMIT 2) -> UDPIPEncap(10.1.0.5, 1, 10.2.0.6, 2) -> t :: Tee(3);
         DriverManager(wait 1s);
         t[0] -> none :: IPsecESPEncap -> Discard;
         t[1] -> StripIPHeader -> clear :: IPsecESPEncap -> Discard;
         t[2] -> Discard;
         InfiniteSource(LENGTH 65500, LIMIT 1) -> IPEncap(17, 10.1.0.5, 10.2.0.6) -> [0] rt;
         rt[1] -> long :: IPsecESPEncap -> outer :: IPsecEncap(50) -> Discard"
    );
    let expect = "none.losses = unknown_spi 2\nclear.losses = no_ip_header 2\nouter.losses = too_long 1";
    for batch in BATCHES {
        let run = run(&config, batch).expect("it runs");
        assert_eq!(expectations(&run, expect), [""; 0]);
        assert_eq!(books::check(&run), [""; 0]);
    }
}

#[test]
fn numbers_and_windows_outlast_a_swap() {
    let wire = encrypted([1, 2], &format!("1000 {KEYS} 1 64"), ORDERS[0]);
    let gateway = |association: &str| gateway([2, 1], association, ORDERS[0]);
    for (second, state, losses) in [
        (format!("1000 {KEYS} 1 64"), "1000 2 74", ["", "replayed 3"]),
        (format!("1000 {KEYS} 100 32"), "1000 100 99", ["", "replayed 3"]),
        (format!("1000 {OTHER_KEYS} 1 64"), "1000 1 0", ["bad_digest 3", ""]),
    ] {
        let memory = Rc::new(Memory::default());
        memory.put("in", &capture(LinkType::RAW, &wire));
        let mut run = run_with(&gateway(&format!("1000 {KEYS} 1 64")), 7, memory.clone()).expect("it runs");
        assert_eq!(run.router.read("rt.associations", "").expect("a handler"), "1000 1 74\n");
        // One packet to the tunnel, from another file, which another element reads.
        let mut swap = |file: &str, packets: &[Vec<u8>], association: &str| {
            memory.put(file, &capture(LinkType::RAW, packets));
            let config = gateway(association).replace("FromDump(in,", &format!("{file} :: FromDump({file},"));
            run.router.write("hotconfig", &config).expect("it is accepted");
            run.router.run_for(Some(Duration::from_millis(20)));
            let read = |path: &str| run.router.read(path, "").expect("a handler");
            [read("rt.associations"), read("auth.losses"), read("esp.losses")]
        };
        let answer = ip([10, 2, 0, 6], [10, 1, 0, 5], protocol::UDP, &[]);
        let [numbers, ..] = swap("second", &[answer], &format!("1000 {KEYS} 1 64"));
        assert_eq!(numbers, "1000 2 74\n");
        // The first packets again.
        let [numbers, digests, replays] = swap("third", &wire[..3], &second);
        assert_eq!(numbers, format!("{state}\n"));
        assert_eq!([digests.trim(), replays.trim()], losses);
    }
}

#[test]
fn routes_are_changed_and_associations_go_on() {
    let tunnel = |prefix: &str, spi: u32, keys: &str| format!("{prefix} 192.0.2.2 1 {spi} {keys} 5 64");
    let (first, second) = (tunnel("10.2/16", 1000, KEYS), tunnel("10.3/16", 1000, KEYS));
    let config = format!(
        "rt :: RadixIPsecLookup(192.0.2.1 0, {first});
         InfiniteSource(LENGTH 12, LIMIT 3, STOP true) -> UDPIPEncap(10.1.0.5, 1, 10.2.0.6, 2) -> rt; rt[0] -> Discard; rt[1] -> IPsecESPEncap -> Discard"
    );
    let mut run = run(&config, 7).expect("it runs");
    let other = "SPI 1000 has other keys in another route: give each association a number of its own";
    for (command, value, expected) in [
        ("table", "", "192.0.2.1/32\t\t-\t\t0\n10.2.0.0/16\t\t192.0.2.2\t1\t1000\n"),
        ("associations", "", "1000 8 4\n"),
        ("lookup", "10.2.9.9", "1 192.0.2.2"),
        ("lookup", "192.0.2.1", "0"),
        ("lookup", "10.9.9.9", "-1"),
        ("config", "", &format!("192.0.2.1 0, {first}")),
        ("add", &second, ""),
        ("add", &second, "conflict with existing route ‘10.3.0.0/16 192.0.2.2 1’"),
        ("add", &tunnel("10.4/16", 1000, OTHER_KEYS), other),
        ("remove", "10.2/16", ""),
        ("remove", "10.2/16", "route ‘10.2.0.0/16 - -1’ not found"),
        ("remove", "10.3/16 192.0.2.2 0", "route ‘10.3.0.0/16 192.0.2.2 0’ not found"),
        ("remove", "10.3/16 192.0.2.2 1", ""),
        ("associations", "", ""),
        ("set", &first, ""),
        ("associations", "", "1000 8 4\n"),
        ("set", &first.replace("5 64", "20 255"), ""),
        ("associations", "", "1000 20 19\n"),
        ("set", &tunnel("10.2/16", 1000, OTHER_KEYS), other),
        ("set", &tunnel("10.2/16", 2000, OTHER_KEYS), ""),
        ("associations", "", "2000 5 4\n"),
        ("ctrl", "remove 10.2/16\nadd 10.7/16 0\nadd 10.8/16 9", "bad OUTPUT"),
        ("ctrl", "remove 10.2/16\nwhat", "bad command ‘what’"),
        ("table", "", "192.0.2.1/32\t\t-\t\t0\n10.2.0.0/16\t\t192.0.2.2\t1\t2000\n"),
        ("associations", "", "2000 5 4\n"),
        ("ctrl", "remove 10.2/16\n\nadd 10.7/16 0", ""),
        ("config", "", "192.0.2.1 0, 10.7/16 0"),
        (
            "add",
            "10.8/255.0.255.0 0",
            "expected ‘ADDR/MASK [GATEWAY] OUTPUT [SPI KEY KEY REPLAY OOSIZE [SPI KEY KEY REPLAY OOSIZE]]’",
        ),
    ] {
        let path = format!("rt.{command}");
        let answer = match command {
            "table" | "associations" | "lookup" | "config" => run.router.read(&path, value),
            _ => run.router.write(&path, value).map(|()| String::new()),
        };
        let answer = answer.unwrap_or_else(|error| error.to_string());
        assert!(
            answer == expected || expected == "expected" && answer.contains(expected),
            "{command} {value}: {answer}"
        );
    }
}

#[test]
fn wrong_routes_are_refused_with_what_to_do() {
    let refused = |routes: &str, rest: &str| {
        let config =
            format!("Idle -> rt :: RadixIPsecLookup({routes}); rt[0] -> Discard; rt[1] -> Discard; {rest}");
        run(&config, 7).err().unwrap_or_default()
    };
    let (route, key) = ("10.2/16 192.0.2.2 1", "00112233445566778899aabbccddeeff");
    for (routes, problem) in [
        (route.to_string(), "output 1 is for tunnels"),
        (format!("{route} 1000 {key}"), "expected ‘ADDR/MASK [GATEWAY] OUTPUT [SPI"),
        (format!("{route} 1000 {key} {key} 1 64 1001"), "expected ‘ADDR/MASK [GATEWAY] OUTPUT [SPI"),
        (format!("{route} 0 {key} {key} 1 64"), "SPI must be a number from 1 to 4294967295"),
        (format!("{route} 1000 {key}00 {key} 1 64"), "the first key must have 16 bytes"),
        (format!("{route} 1000 {key}0 {key} 1 64"), "the first key must have 16 bytes"),
        (format!("{route} 1000 00 {key} 1 64"), "the first key must have 16 bytes"),
        (format!("{route} 1000 {key} {key}00 1 64"), "the second key must have 20 or 16 bytes"),
        (format!("{route} 1000 {key} x{} 1 64", &key[1..]), "the second key must have 20 or 16 bytes"),
        (format!("{route} 1000 {key} {key} -1 64"), "REPLAY must be a number"),
        (format!("{route} 1000 {key} {key} 1 256"), "OOSIZE must be a number from 0 to 255"),
        (
            format!("{route} 1000 {KEYS} 1 64, 10.3/16 1 1000 {OTHER_KEYS} 1 64"),
            "argument 2: SPI 1000 has other keys",
        ),
        ("10.2/16 7".to_string(), "argument 1 bad OUTPUT"),
    ] {
        let error = refused(&routes, "");
        assert!(error.contains(problem), "{routes}: {error}");
    }
    let accepted = format!("{route} 1000 {key} \\<00112233445566778899aabbccddeeff> 1 64");
    assert_eq!(refused(&accepted, ""), "");
    assert_eq!(refused(&format!("{route} 1000 abcdefghijklmnop 0x{key} 0 0"), ""), "");
    let twice = format!(
        "Idle -> r2 :: RadixIPsecLookup(10.2/16 1 1000 {OTHER_KEYS} 1 64); r2[0] -> Discard; r2[1] -> Discard"
    );
    let error = refused(&accepted, &twice);
    assert!(error.contains("SPI 1000 is also in another route table"), "{error}");
    let error = run("Idle -> IPsecAES(1) -> Discard", 7).err().unwrap_or_default();
    assert!(error.contains("there are no keys: add a RadixIPsecLookup with a tunnel"), "{error}");
}
