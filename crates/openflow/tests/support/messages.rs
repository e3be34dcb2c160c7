//! Random messages of all types.

use std::time::Duration;

use flow_table::{
    Action, Band, BandType, Bucket, Change, Command, EntryFlags, Field, GroupType, Instructions, Match,
    MeterDefinition, Output,
};
use openflow::ErrorCode;
use openflow::message::*;
use packet::MacAddr;
use random::Random;

fn pick<T: Clone>(random: &mut Random, from: &[T]) -> T {
    from[random.below(from.len() as u32) as usize].clone()
}

fn flip(random: &mut Random) -> bool {
    random.below(2) == 0
}

fn optional(random: &mut Random) -> Option<u32> {
    flip(random).then(|| random.below(100_000))
}

fn list<T>(random: &mut Random, most: u32, mut make: impl FnMut(&mut Random) -> T) -> Vec<T> {
    (0..random.below(most + 1)).map(|_| make(random)).collect()
}

fn bytes(random: &mut Random) -> Vec<u8> {
    list(random, 80, |random| random.next() as u8)
}

fn text(random: &mut Random, most: u32) -> String {
    list(random, most, |random| char::from(b'a' + random.below(26) as u8)).into_iter().collect()
}

fn value(random: &mut Random, field: Field) -> u128 {
    let value = u128::from(random.next()) << 64 | u128::from(random.next());
    let value = value & field.ones();
    if field == Field::VlanVid { value | 0x1000 } else { value }
}

/// A match of any fields whose prerequisites it has.
pub(crate) fn matching(random: &mut Random) -> Match {
    let mut matching = Match::any();
    for &field in Field::ALL {
        let value = match field {
            Field::EthType => pick(random, &[0x0800, 0x86dd, 0x0806, 0x8847, 0x1234]),
            Field::IpProto => pick(random, &[1, 6, 17, 58, 132]),
            Field::Icmpv6Type => pick(random, &[128, 135, 136]),
            field => value(random, field),
        };
        if random.below(3) == 0 {
            continue;
        }
        let ones = field.ones();
        let mask = if field.is_maskable() && flip(random) { self::value(random, field) } else { ones };
        matching = matching.with_masked(field, value & mask, mask).unwrap_or(matching);
    }
    matching
}

fn output(random: &mut Random) -> Output {
    match random.below(9) {
        0 => Output::InPort,
        1 => Output::Normal,
        2 => Output::Flood,
        3 => Output::All,
        4 => Output::Controller { max_length: random.next() as u16 },
        5 => Output::Local,
        6 => Output::Service(random.below(1000)),
        7 => Output::Chain(random.below(1000)),
        _ => Output::Port(1 + random.below(1000)),
    }
}

/// An action that only OpenFlow 1.0 has.
fn old_action(random: &mut Random) -> Action {
    match random.below(4) {
        0 => Action::TagVlanVid(random.next() as u16),
        1 => Action::TagVlanPcp(random.next() as u8),
        2 => Action::StripVlan,
        _ => {
            let settable: Vec<Field> =
                Field::ALL.iter().copied().filter(|field| field.is_settable()).collect();
            let field = pick(random, &settable);
            Action::SetIfPresent(field, value(random, field))
        }
    }
}

fn action(random: &mut Random) -> Action {
    match random.below(17) {
        15 => old_action(random),
        0 => Action::Group(random.below(1000)),
        1 => Action::SetQueue(random.next() as u32),
        2 => Action::PushVlan(random.next() as u16),
        3 => Action::PopVlan,
        4 => Action::PushMpls(random.next() as u16),
        5 => Action::PopMpls(random.next() as u16),
        6 => Action::SetMplsTtl(random.next() as u8),
        7 => Action::DecMplsTtl,
        8 => Action::SetIpTtl(random.next() as u8),
        9 => Action::DecIpTtl,
        10 => Action::CopyTtlOut,
        11 => Action::CopyTtlIn,
        13 => Action::PushPbb(random.next() as u16),
        14 => Action::PopPbb,
        12 => {
            let settable: Vec<Field> =
                Field::ALL.iter().copied().filter(|field| field.is_settable()).collect();
            let field = pick(random, &settable);
            Action::SetField(field, value(random, field))
        }
        _ => Action::Output(output(random)),
    }
}

fn actions(random: &mut Random) -> Vec<Action> {
    list(random, 6, action)
}

/// Lengths of outputs to ports, for those of these actions.
fn stated_lengths<'a>(random: &mut Random, actions: impl Iterator<Item = &'a Action>) -> Vec<u16> {
    let is_port = |action: &&Action| matches!(action, Action::Output(output) if !matches!(output, Output::Controller { .. }));
    let lengths: Vec<u16> = actions.filter(is_port).map(|_| random.below(3) as u16).collect();
    if lengths.iter().all(|length| *length == 0) { Vec::new() } else { lengths }
}

fn instructions(random: &mut Random) -> Instructions {
    let (apply, write) = (actions(random), actions(random));
    let stated_lengths = stated_lengths(random, apply.iter().chain(&write));
    Instructions {
        meter: optional(random),
        apply,
        clear: flip(random),
        write,
        stated_lengths,
        metadata: flip(random).then(|| (random.next(), random.next())),
        goto: flip(random).then(|| random.next() as u8),
    }
}

fn timeout(random: &mut Random) -> Option<Duration> {
    flip(random).then(|| Duration::from_secs(1 + u64::from(random.below(65_535))))
}

fn age(random: &mut Random) -> Duration {
    Duration::new(random.below(1 << 30).into(), random.below(1_000_000_000))
}

fn flags(random: &mut Random) -> EntryFlags {
    EntryFlags {
        send_removed: flip(random),
        check_overlap: flip(random),
        reset_counts: flip(random),
        no_packet_counts: flip(random),
        no_byte_counts: flip(random),
    }
}

fn change(random: &mut Random) -> FlowMod {
    let commands =
        [Command::Add, Command::Modify, Command::ModifyStrict, Command::Delete, Command::DeleteStrict];
    let change = Change {
        owner: flow_table::Owner::default(),
        command: pick(random, &commands),
        table: flip(random).then(|| random.below(64) as u8),
        matching: matching(random),
        priority: random.next() as u16,
        instructions: instructions(random),
        cookie: random.next(),
        cookie_mask: random.next(),
        idle_timeout: timeout(random),
        hard_timeout: timeout(random),
        flags: flags(random),
        out_port: optional(random),
        out_group: optional(random),
    };
    FlowMod { change, buffer: optional(random) }
}

fn bucket(random: &mut Random) -> Bucket {
    let actions = actions(random);
    let stated_lengths = stated_lengths(random, actions.iter());
    Bucket {
        weight: random.next() as u16,
        watch_port: optional(random),
        watch_group: optional(random),
        actions,
        stated_lengths,
    }
}

fn group_type(random: &mut Random) -> GroupType {
    pick(random, &[GroupType::All, GroupType::Select, GroupType::Indirect, GroupType::FastFailover])
}

fn group_mod(random: &mut Random) -> GroupMod {
    let (group, group_type, buckets) = (random.below(1000), group_type(random), list(random, 4, bucket));
    match random.below(3) {
        0 => GroupMod::Add { group, group_type, buckets },
        1 => GroupMod::Modify { group, group_type, buckets },
        _ => GroupMod::Delete(optional(random)),
    }
}

fn definition(random: &mut Random) -> MeterDefinition {
    let band = |random: &mut Random| {
        let remark = BandType::DscpRemark(random.next() as u8);
        let band_type = if flip(random) { BandType::Drop } else { remark };
        Band { band_type, rate: random.next() as u32, burst: random.below(3) }
    };
    // Any flags but both units.
    let flags = [0, 1, 2][random.below(3) as usize] | (random.below(4) as u16) << 2;
    let mut bands = list(random, 4, band);
    if flags & MeterDefinition::BURST == 0 {
        bands.iter_mut().for_each(|band| band.burst = 0);
    }
    MeterDefinition { flags, bands }
}

fn meter_mod(random: &mut Random) -> MeterMod {
    let meter = 1 + random.below(1000);
    match random.below(3) {
        0 => MeterMod::Add(meter, definition(random)),
        1 => MeterMod::Modify(meter, definition(random)),
        _ => MeterMod::Delete(flip(random).then_some(meter)),
    }
}

fn address(random: &mut Random) -> MacAddr {
    MacAddr([0; 6].map(|_: u8| random.next() as u8))
}

fn port(random: &mut Random) -> Port {
    Port {
        number: random.next() as u32,
        address: address(random),
        name: text(random, 15),
        config: random.next() as u32,
        state: random.next() as u32,
        current: random.next() as u32,
        advertised: random.next() as u32,
        supported: random.next() as u32,
        peer: random.next() as u32,
        speed: random.next() as u32,
        max_speed: random.next() as u32,
    }
}

fn selection(random: &mut Random) -> FlowSelection {
    FlowSelection {
        table: flip(random).then(|| random.below(64) as u8),
        out_port: optional(random),
        out_group: optional(random),
        cookie: random.next(),
        cookie_mask: random.next(),
        matching: matching(random),
    }
}

fn table_features(random: &mut Random) -> TableFeatures {
    let mut features = TableFeatures::of_pipeline(random.below(64) as u8, random.next() as u32);
    features.name = text(random, 31);
    for property in &mut features.properties {
        let has_miss =
            !matches!(property.property_type, TablePropertyType::Match | TablePropertyType::Wildcards);
        property.is_for_miss = has_miss && flip(random);
    }
    features
}

fn counts(random: &mut Random) -> Vec<(u64, u64)> {
    list(random, 4, |random| (random.next(), random.next()))
}

fn request(random: &mut Random) -> MultipartRequest {
    match random.below(14) {
        0 => MultipartRequest::Description,
        1 => MultipartRequest::Flow(selection(random)),
        2 => MultipartRequest::Aggregate(selection(random)),
        3 => MultipartRequest::Table,
        4 => MultipartRequest::PortStats(optional(random)),
        5 => MultipartRequest::Queue { port: optional(random), queue: optional(random) },
        6 => MultipartRequest::Group(optional(random)),
        7 => MultipartRequest::GroupDescription,
        8 => MultipartRequest::GroupFeatures,
        9 => MultipartRequest::Meter(optional(random)),
        10 => MultipartRequest::MeterConfig(optional(random)),
        11 => MultipartRequest::MeterFeatures,
        12 => MultipartRequest::TableFeatures(list(random, 2, table_features)),
        _ => MultipartRequest::PortDescription,
    }
}

fn flow_stats(random: &mut Random) -> FlowStats {
    FlowStats {
        table: random.next() as u8,
        age: age(random),
        priority: random.next() as u16,
        idle_timeout: timeout(random),
        hard_timeout: timeout(random),
        flags: flags(random),
        cookie: random.next(),
        packets: random.next(),
        bytes: random.next(),
        matching: matching(random),
        instructions: instructions(random),
    }
}

fn port_stats(random: &mut Random) -> PortStats {
    PortStats {
        port: random.next() as u32,
        rx_packets: random.next(),
        tx_packets: random.next(),
        rx_bytes: random.next(),
        tx_bytes: random.next(),
        rx_dropped: random.next(),
        tx_dropped: random.next(),
        rx_errors: random.next(),
        tx_errors: random.next(),
        rx_frame_errors: random.next(),
        rx_over_errors: random.next(),
        rx_crc_errors: random.next(),
        collisions: random.next(),
        age: age(random),
    }
}

fn four(random: &mut Random) -> [u32; 4] {
    [0; 4].map(|_: u32| random.next() as u32)
}

/// A random reply.
pub(crate) fn reply(random: &mut Random) -> MultipartReply {
    match random.below(14) {
        0 => MultipartReply::Description(Description {
            manufacturer: text(random, 255),
            hardware: text(random, 255),
            software: text(random, 255),
            serial_number: text(random, 31),
            datapath: text(random, 255),
        }),
        1 => MultipartReply::Flow(list(random, 4, flow_stats)),
        2 => MultipartReply::Aggregate(Aggregate {
            packets: random.next(),
            bytes: random.next(),
            flows: random.next() as u32,
        }),
        3 => MultipartReply::Table(list(random, 4, |random| TableStats {
            table: random.next() as u8,
            active: random.next() as u32,
            lookups: random.next(),
            matches: random.next(),
        })),
        4 => MultipartReply::PortStats(list(random, 4, port_stats)),
        5 => MultipartReply::Queue(list(random, 4, |random| QueueStats {
            port: random.next() as u32,
            queue: random.next() as u32,
            bytes: random.next(),
            packets: random.next(),
            errors: random.next(),
            age: age(random),
        })),
        6 => MultipartReply::Group(list(random, 4, |random| GroupStats {
            group: random.next() as u32,
            references: random.next() as u32,
            packets: random.next(),
            bytes: random.next(),
            age: age(random),
            buckets: counts(random),
        })),
        7 => MultipartReply::GroupDescription(list(random, 4, |random| GroupDescription {
            group: random.next() as u32,
            group_type: group_type(random),
            buckets: list(random, 4, bucket),
        })),
        8 => MultipartReply::GroupFeatures(GroupFeatures {
            types: random.next() as u32,
            capabilities: random.next() as u32,
            max_groups: four(random),
            actions: four(random),
        }),
        9 => MultipartReply::Meter(list(random, 4, |random| MeterStats {
            meter: random.next() as u32,
            flows: random.next() as u32,
            packets: random.next(),
            bytes: random.next(),
            age: age(random),
            bands: counts(random),
        })),
        10 => MultipartReply::MeterConfig(list(random, 4, |random| MeterConfig {
            meter: random.next() as u32,
            definition: definition(random),
        })),
        11 => MultipartReply::MeterFeatures(MeterFeatures {
            max_meters: random.next() as u32,
            band_types: random.next() as u32,
            capabilities: random.next() as u32,
            max_bands: random.next() as u8,
            max_color: random.next() as u8,
        }),
        12 => MultipartReply::TableFeatures(list(random, 2, table_features)),
        _ => MultipartReply::PortDescription(list(random, 4, port)),
    }
}

fn role(random: &mut Random) -> RoleRequest {
    let role = pick(random, &[None, Some(Role::Equal), Some(Role::Master), Some(Role::Slave)]);
    RoleRequest { role, generation: random.next() }
}

fn reports(random: &mut Random) -> AsyncConfig {
    let mut pair = || [random.next() as u32, random.next() as u32];
    AsyncConfig { packet_in: pair(), port_status: pair(), flow_removed: pair() }
}

/// A random message of the type numbered `kind`, below 30.
pub(crate) fn message(kind: u8, random: &mut Random) -> Message {
    match kind {
        0 => Message::Hello(Hello { versions: flip(random).then(|| random.next() as u32) }),
        1 => Message::Error {
            code: ErrorCode::new(random.next() as u16, random.next() as u16),
            data: bytes(random),
        },
        2 => Message::EchoRequest(bytes(random)),
        3 => Message::EchoReply(bytes(random)),
        4 => Message::Experimenter(Experimenter {
            experimenter: random.next() as u32,
            kind: random.next() as u32,
            data: bytes(random),
        }),
        5 => Message::FeaturesRequest,
        6 => Message::FeaturesReply(Features {
            datapath: random.next(),
            buffers: random.next() as u32,
            tables: random.next() as u8,
            auxiliary: random.next() as u8,
            capabilities: random.next() as u32,
        }),
        7 => Message::GetConfigRequest,
        8 | 9 => {
            let config = Config { flags: random.next() as u16, miss_send_length: random.next() as u16 };
            if kind == 8 { Message::GetConfigReply(config) } else { Message::SetConfig(config) }
        }
        10 => Message::PacketIn(PacketIn {
            buffer: optional(random),
            total_length: random.next() as u16,
            reason: pick(
                random,
                &[PacketInReason::NoMatch, PacketInReason::Action, PacketInReason::InvalidTtl],
            ),
            table: random.next() as u8,
            cookie: random.next(),
            fields: matching(random),
            data: bytes(random),
        }),
        11 => {
            let reasons = [
                FlowRemovedReason::IdleTimeout,
                FlowRemovedReason::HardTimeout,
                FlowRemovedReason::Delete,
                FlowRemovedReason::GroupDelete,
            ];
            Message::FlowRemoved(FlowRemoved {
                cookie: random.next(),
                priority: random.next() as u16,
                reason: pick(random, &reasons),
                table: random.next() as u8,
                age: age(random),
                idle_timeout: timeout(random),
                hard_timeout: timeout(random),
                packets: random.next(),
                bytes: random.next(),
                matching: matching(random),
            })
        }
        12 => {
            let reasons = [PortStatusReason::Add, PortStatusReason::Delete, PortStatusReason::Modify];
            Message::PortStatus(PortStatus { reason: pick(random, &reasons), port: port(random) })
        }
        13 => Message::PacketOut(PacketOut {
            buffer: optional(random),
            in_port: pick(random, &[1, 7, 0xffff_fffd, 0xffff_fffe, 0xffff_ffff]),
            actions: list(random, 6, |random| match random.below(5) {
                0 => PacketOutAction::Table,
                _ => PacketOutAction::Perform(action(random)),
            }),
            data: bytes(random),
        }),
        14 => Message::FlowMod(change(random)),
        15 => Message::GroupMod(group_mod(random)),
        16 => Message::PortMod(PortMod {
            port: random.next() as u32,
            address: address(random),
            config: random.next() as u32,
            mask: random.next() as u32,
            advertise: random.next() as u32,
        }),
        17 => Message::TableMod(TableMod { table: random.next() as u8, config: random.next() as u32 }),
        18 => Message::MultipartRequest { request: request(random), more: flip(random) },
        19 => Message::MultipartReply { reply: reply(random), more: flip(random) },
        20 => Message::BarrierRequest,
        21 => Message::BarrierReply,
        22 => Message::QueueConfigRequest(optional(random)),
        23 => Message::QueueConfigReply {
            port: optional(random),
            queues: list(random, 4, |random| Queue {
                queue: random.next() as u32,
                port: random.next() as u32,
                min_rate: flip(random).then(|| random.next() as u16),
                max_rate: flip(random).then(|| random.next() as u16),
            }),
        },
        24 => Message::RoleRequest(role(random)),
        25 => Message::RoleReply(role(random)),
        26 => Message::GetAsyncRequest,
        27 => Message::GetAsyncReply(reports(random)),
        28 => Message::SetAsync(reports(random)),
        _ => Message::MeterMod(meter_mod(random)),
    }
}
