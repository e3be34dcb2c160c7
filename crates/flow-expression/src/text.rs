//! Flow entries as text.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use flow_table::{Action, Band, BandType, Bucket, Field, Instructions, Match, MeterDefinition, Output};
use packet::protocol::{ICMP, TCP, UDP};

/// Set in the VLAN number of a packet that has a tag (`OFPVID_PRESENT`).
const VLAN_PRESENT: u128 = 0x1000;

/// The condition of a match, apart from the ingress port; `None` if there is no other.
///
/// What expressions have words for is written in these words, and everything else as `FIELD=VALUE` or `FIELD=VALUE/MASK` with the
/// name of the field in OpenFlow (1.3.5, 7.2.3.7): `vlan_vid=5 and ip vers 4 and tcp dst port 80`. A text without such fields is an
/// expression for [`matches_of`](crate::matches_of), which gives this match alone.
#[must_use]
pub fn condition_text(matching: &Match) -> Option<String> {
    let terms: Vec<String> = matching.fields().filter_map(|condition| term(matching, condition)).collect();
    (!terms.is_empty()).then(|| terms.join(" and "))
}

/// The condition on a field; `None` if another term implies it.
fn term(matching: &Match, (field, value, mask): (Field, u128, u128)) -> Option<String> {
    let is_exact = mask == field.ones();
    let exact =
        |field: Field| matching.get(field).filter(|(_, mask)| *mask == field.ones()).map(|(value, _)| value);
    let has = |field: Field| matching.get(field).is_some();
    let is = |number: u8| value == u128::from(number);
    let expression = match field {
        Field::InPort => return None,
        Field::EthType if is_exact && value == 0x0800 => {
            // These conditions are on IPv4 only.
            let is_implied = has(Field::Ipv4Src) || has(Field::Ipv4Dst) || exact(Field::Icmpv4Type).is_some();
            return (!is_implied).then(|| "ip vers 4".into());
        }
        Field::EthType if is_exact && value == 0x86dd => "ip vers 6".into(),
        Field::EthSrc if is_exact => format!("ether src {}", mac(value)),
        Field::EthDst if is_exact => format!("ether dst {}", mac(value)),
        Field::IpDscp if is_exact => format!("ip dscp {value}"),
        Field::IpProto if is_exact => {
            let is_implied = match value {
                _ if is(TCP) => exact(Field::TcpSrc).or(exact(Field::TcpDst)),
                _ if is(UDP) => exact(Field::UdpSrc).or(exact(Field::UdpDst)),
                _ if is(ICMP) => exact(Field::Icmpv4Type),
                _ => None,
            };
            if is_implied.is_some() {
                return None;
            }
            match value {
                _ if is(TCP) => "tcp".into(),
                _ if is(UDP) => "udp".into(),
                _ => format!("ip proto {value}"),
            }
        }
        Field::Ipv4Src => format!("src {}", network(value, mask)),
        Field::Ipv4Dst => format!("dst {}", network(value, mask)),
        Field::TcpSrc if is_exact => format!("tcp src port {value}"),
        Field::TcpDst if is_exact => format!("tcp dst port {value}"),
        Field::UdpSrc if is_exact => format!("udp src port {value}"),
        Field::UdpDst if is_exact => format!("udp dst port {value}"),
        Field::Icmpv4Type if is_exact => format!("icmp type {value}"),
        _ => format!("{}={}", name(field), masked(field, value, mask)),
    };
    Some(expression)
}

/// An IPv4 address or network, in the words of expressions.
fn network(value: u128, mask: u128) -> String {
    let (address, mask) = (Ipv4Addr::from_bits(value as u32), mask as u32);
    match mask.leading_ones() {
        32 => format!("host {address}"),
        length if mask.count_ones() == length => format!("net {address}/{length}"),
        _ => format!("net {address} mask {}", Ipv4Addr::from_bits(mask)),
    }
}

/// An Ethernet address with colons, as everywhere in the API.
fn mac(value: u128) -> String {
    let bytes: Vec<String> =
        (value as u64).to_be_bytes().iter().skip(2).map(|byte| format!("{byte:02x}")).collect();
    bytes.join(":")
}

/// The value of a field, with its mask if it is not matched as a whole.
fn masked(field: Field, value: u128, mask: u128) -> String {
    match field {
        Field::VlanVid if mask == VLAN_PRESENT && value == VLAN_PRESENT => return "any".into(),
        Field::VlanVid if mask == field.ones() && value == 0 => return "none".into(),
        Field::VlanVid if mask == field.ones() => return (value & !VLAN_PRESENT).to_string(),
        _ => {}
    }
    let text = plain(field, value);
    if mask == field.ones() {
        return text;
    }
    // The leading ones of the field, if there are no others.
    let length = (mask << (128 - field.bits())).leading_ones();
    match field {
        Field::Ipv6Src | Field::Ipv6Dst | Field::ArpSpa | Field::ArpTpa if mask.count_ones() == length => {
            format!("{text}/{length}")
        }
        _ if is_address(field) => format!("{text}/{}", plain(field, mask)),
        _ => format!("{value:#x}/{mask:#x}"),
    }
}

fn is_address(field: Field) -> bool {
    matches!(field.bits(), 48 | 128)
        || matches!(field, Field::ArpSpa | Field::ArpTpa | Field::Ipv4Src | Field::Ipv4Dst)
}

fn plain(field: Field, value: u128) -> String {
    match (field, field.bits()) {
        (_, 48) => mac(value),
        (_, 128) => Ipv6Addr::from_bits(value).to_string(),
        _ if is_address(field) => Ipv4Addr::from_bits(value as u32).to_string(),
        (Field::EthType, _) => format!("{value:#06x}"),
        (Field::Metadata | Field::TunnelId, _) => format!("{value:#x}"),
        _ => value.to_string(),
    }
}

/// The name of a field in OpenFlow (1.3.5, 7.2.3.7).
fn name(field: Field) -> &'static str {
    match field {
        Field::InPort => "in_port",
        Field::Metadata => "metadata",
        Field::EthDst => "eth_dst",
        Field::EthSrc => "eth_src",
        Field::EthType => "eth_type",
        Field::VlanVid => "vlan_vid",
        Field::VlanPcp => "vlan_pcp",
        Field::IpDscp => "ip_dscp",
        Field::IpEcn => "ip_ecn",
        Field::IpProto => "ip_proto",
        Field::Ipv4Src => "ipv4_src",
        Field::Ipv4Dst => "ipv4_dst",
        Field::TcpSrc => "tcp_src",
        Field::TcpDst => "tcp_dst",
        Field::UdpSrc => "udp_src",
        Field::UdpDst => "udp_dst",
        Field::SctpSrc => "sctp_src",
        Field::SctpDst => "sctp_dst",
        Field::Icmpv4Type => "icmpv4_type",
        Field::Icmpv4Code => "icmpv4_code",
        Field::ArpOp => "arp_op",
        Field::ArpSpa => "arp_spa",
        Field::ArpTpa => "arp_tpa",
        Field::ArpSha => "arp_sha",
        Field::ArpTha => "arp_tha",
        Field::Ipv6Src => "ipv6_src",
        Field::Ipv6Dst => "ipv6_dst",
        Field::Ipv6Flabel => "ipv6_flabel",
        Field::Icmpv6Type => "icmpv6_type",
        Field::Icmpv6Code => "icmpv6_code",
        Field::NdTarget => "ipv6_nd_target",
        Field::NdSll => "ipv6_nd_sll",
        Field::NdTll => "ipv6_nd_tll",
        Field::MplsLabel => "mpls_label",
        Field::MplsTc => "mpls_tc",
        Field::MplsBos => "mpls_bos",
        Field::PbbIsid => "pbb_isid",
        Field::TunnelId => "tunnel_id",
        Field::Ipv6ExtHdr => "ipv6_exthdr",
        Field::IpFragment => "ip_frag",
    }
}

/// What an entry does, one text for each action, in the words of Open vSwitch's tools: `output:tap0`, `set_field:5->vlan_vid`,
/// `goto_table:2`. `port` gives the name of a port's number.
#[must_use]
pub fn instruction_texts(instructions: &Instructions, port: &dyn Fn(u32) -> String) -> Vec<String> {
    let Instructions { meter, apply, clear, write, metadata, goto, stated_lengths: _ } = instructions;
    let actions =
        |actions: &[Action]| -> Vec<String> { actions.iter().map(|one| action(one, port)).collect() };
    let mut all: Vec<String> = meter.iter().map(|meter| format!("meter:{meter}")).collect();
    all.extend(actions(apply));
    all.extend(clear.then(|| "clear_actions".into()));
    all.extend((!write.is_empty()).then(|| format!("write_actions({})", actions(write).join(","))));
    all.extend(metadata.map(|(value, mask)| match mask {
        u64::MAX => format!("write_metadata:{value:#x}"),
        _ => format!("write_metadata:{value:#x}/{mask:#x}"),
    }));
    all.extend(goto.map(|table| format!("goto_table:{table}")));
    all
}

/// A bucket of a group, in the same words.
#[must_use]
pub fn bucket_text(bucket: &Bucket, port: &dyn Fn(u32) -> String) -> String {
    let mut all: Vec<String> = Vec::new();
    all.extend((bucket.weight != 0).then(|| format!("weight:{}", bucket.weight)));
    all.extend(bucket.watch_port.map(|number| format!("watch_port:{}", port(number))));
    all.extend(bucket.watch_group.map(|group| format!("watch_group:{group}")));
    all.extend(bucket.actions.iter().map(|one| action(one, port)));
    all.join(",")
}

/// The bands of a meter: `drop above 1000 kb/s, burst 100`.
#[must_use]
pub fn band_texts(meter: &MeterDefinition) -> Vec<String> {
    let unit = if meter.by_packets() { "packets/s" } else { "kb/s" };
    let band = |Band { band_type, rate, burst }: &Band| {
        let what = match band_type {
            BandType::Drop => "drop".to_string(),
            BandType::DscpRemark(levels) => format!("raise drop precedence by {levels}"),
        };
        match burst {
            0 => format!("{what} above {rate} {unit}"),
            _ => format!("{what} above {rate} {unit}, burst {burst}"),
        }
    };
    meter.bands.iter().map(band).collect()
}

fn action(action: &Action, port: &dyn Fn(u32) -> String) -> String {
    let with = |name: &str, argument: &dyn fmt::Display| format!("{name}:{argument}");
    let eth_type = |name: &str, number: u16| format!("{name}:{number:#06x}");
    match *action {
        Action::Output(output) => format!("output:{}", output_text(output, port)),
        Action::Group(group) => with("group", &group),
        Action::SetQueue(queue) => with("set_queue", &queue),
        Action::SetField(field, value) | Action::SetIfPresent(field, value) => {
            format!("set_field:{}->{}", masked(field, value, field.ones()), name(field))
        }
        Action::TagVlanVid(vid) => with("mod_vlan_vid", &vid),
        Action::TagVlanPcp(pcp) => with("mod_vlan_pcp", &pcp),
        Action::StripVlan => "strip_vlan".into(),
        Action::PushVlan(number) => eth_type("push_vlan", number),
        Action::PopVlan => "pop_vlan".into(),
        Action::PushMpls(number) => eth_type("push_mpls", number),
        Action::PopMpls(number) => eth_type("pop_mpls", number),
        Action::PushPbb(number) => eth_type("push_pbb", number),
        Action::PopPbb => "pop_pbb".into(),
        Action::SetMplsTtl(ttl) => with("set_mpls_ttl", &ttl),
        Action::DecMplsTtl => "dec_mpls_ttl".into(),
        Action::SetIpTtl(ttl) => with("mod_nw_ttl", &ttl),
        Action::DecIpTtl => "dec_ttl".into(),
        Action::CopyTtlOut => "copy_ttl_out".into(),
        Action::CopyTtlIn => "copy_ttl_in".into(),
    }
}

fn output_text(output: Output, port: &dyn Fn(u32) -> String) -> String {
    match output {
        Output::InPort => "in_port".into(),
        Output::Normal => "normal".into(),
        Output::Flood => "flood".into(),
        Output::All => "all".into(),
        Output::Controller { max_length } => format!("controller:{max_length}"),
        Output::Local => "local".into(),
        Output::Drop => "drop".into(),
        Output::Port(_) | Output::Service(_) | Output::Chain(_) => {
            output.port_number().map(port).unwrap_or_default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matches_of;

    fn all(conditions: &[(Field, u128, u128)]) -> Match {
        let add = |matching: Match, (field, value, mask): &(Field, u128, u128)| {
            matching.with_masked(*field, *value, *mask).unwrap()
        };
        conditions.iter().fold(Match::any(), add)
    }

    fn exact(conditions: &[(Field, u128)]) -> Match {
        all(&conditions.iter().map(|(field, value)| (*field, *value, field.ones())).collect::<Vec<_>>())
    }

    #[test]
    fn conditions_have_the_words_of_expressions() {
        let mac = 0x0200_0000_0001;
        let ip = |more: &[(Field, u128)]| exact(&[&[(Field::EthType, 0x0800)], more].concat());
        for (matching, expected) in [
            (ip(&[]), "ip vers 4"),
            (exact(&[(Field::EthType, 0x86dd)]), "ip vers 6"),
            (
                exact(&[(Field::EthSrc, mac), (Field::EthDst, mac + 1)]),
                "ether dst 02:00:00:00:00:02 and ether src 02:00:00:00:00:01",
            ),
            (ip(&[(Field::IpDscp, 46), (Field::IpProto, 17)]), "ip vers 4 and ip dscp 46 and udp"),
            (ip(&[(Field::IpProto, 6), (Field::TcpDst, 80)]), "ip vers 4 and tcp dst port 80"),
            (
                ip(&[(Field::IpProto, 17), (Field::Ipv4Src, 0x0a00_0001), (Field::UdpSrc, 53)]),
                "src host 10.0.0.1 and udp src port 53",
            ),
            (ip(&[(Field::IpProto, 1), (Field::Icmpv4Type, 8)]), "icmp type 8"),
            (ip(&[(Field::IpProto, 47), (Field::Ipv4Dst, 1)]), "ip proto 47 and dst host 0.0.0.1"),
            (ip(&[(Field::IpProto, 1)]), "ip vers 4 and ip proto 1"),
            (
                all(&[(Field::EthType, 0x0800, 0xffff), (Field::Ipv4Dst, 0x0a01_0000, 0xffff_0000)]),
                "dst net 10.1.0.0/16",
            ),
            (
                all(&[(Field::EthType, 0x0800, 0xffff), (Field::Ipv4Src, 0x0a00_0001, 0xff00_00ff)]),
                "src net 10.0.0.1 mask 255.0.0.255",
            ),
        ] {
            let text = condition_text(&matching).unwrap();
            assert_eq!(text, expected);
            assert_eq!(matches_of(&text), Ok(vec![matching]), "{text}");
        }
        assert_eq!(condition_text(&Match::any()), None);
        assert_eq!(condition_text(&exact(&[(Field::InPort, 3)])), None);
    }

    #[test]
    fn other_fields_have_their_names_in_openflow() {
        for (matching, expected) in [
            (exact(&[(Field::VlanVid, 0x1005)]), "vlan_vid=5"),
            (exact(&[(Field::VlanVid, 0)]), "vlan_vid=none"),
            (all(&[(Field::VlanVid, 0x1000, 0x1000)]), "vlan_vid=any"),
            (
                exact(&[(Field::EthType, 0x0806), (Field::ArpTpa, 0x0a00_0001)]),
                "eth_type=0x0806 and arp_tpa=10.0.0.1",
            ),
            (all(&[(Field::EthDst, 1 << 40, 1 << 40)]), "eth_dst=01:00:00:00:00:00/01:00:00:00:00:00"),
            (
                all(&[
                    (Field::EthType, 0x86dd, 0xffff),
                    (Field::Ipv6Dst, 0x2001_0db8 << 96, 0xffff_ffff << 96),
                ]),
                "ip vers 6 and ipv6_dst=2001:db8::/32",
            ),
            (all(&[(Field::Metadata, 2, 6)]), "metadata=0x2/0x6"),
            (
                exact(&[(Field::EthType, 0x86dd), (Field::IpProto, 58), (Field::Icmpv6Type, 135)]),
                "ip vers 6 and ip proto 58 and icmpv6_type=135",
            ),
        ] {
            assert_eq!(condition_text(&matching).as_deref(), Some(expected));
        }
    }

    #[test]
    fn instructions_are_in_order() {
        let port = |number: u32| format!("p{number}");
        let instructions = Instructions {
            meter: Some(3),
            apply: vec![
                Action::PushVlan(0x8100),
                Action::SetField(Field::VlanVid, 0x1005),
                Action::SetField(Field::Ipv4Dst, 0x0a00_0001),
                Action::Output(Output::Port(1)),
                Action::Output(Output::Chain(0)),
                Action::Output(Output::Controller { max_length: 128 }),
            ],
            clear: true,
            write: vec![Action::Group(7), Action::DecIpTtl],
            metadata: Some((1, 0xff)),
            goto: Some(2),
            stated_lengths: vec![0, 0],
        };
        assert_eq!(
            instruction_texts(&instructions, &port).join(","),
            "meter:3,push_vlan:0x8100,set_field:5->vlan_vid,set_field:10.0.0.1->ipv4_dst,output:p1,output:p40960,\
             output:controller:128,clear_actions,write_actions(group:7,dec_ttl),write_metadata:0x1/0xff,goto_table:2"
        );
        let bucket = Bucket {
            weight: 2,
            watch_port: Some(4),
            watch_group: Some(5),
            actions: vec![Action::Output(Output::Flood)],
            ..Bucket::default()
        };
        assert_eq!(bucket_text(&bucket, &port), "weight:2,watch_port:p4,watch_group:5,output:flood");
        let bands = vec![
            Band { band_type: BandType::Drop, rate: 1000, burst: 0 },
            Band { band_type: BandType::DscpRemark(1), rate: 500, burst: 9 },
        ];
        let meter = MeterDefinition { flags: MeterDefinition::PACKETS, bands };
        assert_eq!(
            band_texts(&meter),
            ["drop above 1000 packets/s", "raise drop precedence by 1 above 500 packets/s, burst 9"]
        );
    }
}
