//! Random changes, and frames, from a small world, so that they meet often, and the linear reference.

mod frames;

use std::collections::BTreeMap;
use std::time::Duration;

use flow_table::{
    Action, ActionSet, Change, Command, EntryFlags, Field, FlowModError, FlowRemoved, Instructions, Key,
    Match, Operation, Output, Performer, RemovalReason,
};
use random::Random;

pub(crate) use frames::frame;

/// A random match.
pub(crate) fn matching(random: &mut Random) -> Match {
    let mut matching = Match::any();
    let mut add = |random: &mut Random, field: Field, values: &[u128]| {
        if random.below(3) != 0 {
            return;
        }
        let value = values[random.below(values.len() as u32) as usize];
        let ones = u128::MAX >> (128 - field.bits());
        let mask = if random.below(3) == 0 { ones & !u128::from(random.below(4)) } else { ones };
        if let Ok(with) = matching.with_masked(field, value & mask, mask) {
            matching = with;
        }
    };
    let (small, ports) = ([1, 2], [1, 2, 3]);
    add(random, Field::InPort, &small);
    add(random, Field::TunnelId, &[0, 1]);
    add(random, Field::Metadata, &[0, 1, 2]);
    add(random, Field::EthDst, &[0x0200_0000_0001, 0x0200_0000_0002]);
    add(random, Field::VlanVid, &[0, 0x1001, 0x1002]);
    add(random, Field::VlanPcp, &[0, 1]);
    for _ in 0..2 {
        add(random, Field::EthType, &[0x0800, 0x0800, 0x86dd, 0x0806, 0x8847, 0x88e7]);
        add(random, Field::IpProto, &[6, 17, 1, 58]);
    }
    add(random, Field::IpDscp, &[0, 1]);
    add(random, Field::Ipv4Src, &[0x0a00_0001, 0x0a00_0002]);
    add(random, Field::Ipv4Dst, &[0x0a00_0101, 0x0a00_0102]);
    add(random, Field::Ipv6Src, &[0xfd << 120 | 1, 0xfd << 120 | 2]);
    add(random, Field::TcpSrc, &ports);
    add(random, Field::TcpDst, &ports);
    add(random, Field::UdpDst, &ports);
    add(random, Field::Icmpv4Type, &[0, 1]);
    add(random, Field::ArpOp, &small);
    add(random, Field::ArpSpa, &[0x0a00_0001]);
    add(random, Field::MplsLabel, &[1, 2]);
    add(random, Field::PbbIsid, &[0, 1, 2]);
    matching
}

fn actions(random: &mut Random) -> Vec<Action> {
    let action = |random: &mut Random| match random.below(26) {
        18 => Action::SetIfPresent(Field::TcpDst, u128::from(1 + random.below(3))),
        19 => Action::TagVlanVid(1 + random.below(2) as u16),
        20 => Action::TagVlanPcp(random.below(2) as u8),
        21 => Action::StripVlan,
        0..=4 => Action::Output(Output::Port(random.below(4))),
        5 => Action::Group(random.below(3)),
        6 => Action::SetField(Field::EthDst, u128::from(0x0200_0000_0001 + u64::from(random.below(2)))),
        7 => Action::SetField(Field::TcpDst, u128::from(1 + random.below(3))),
        8 => Action::SetField(Field::Ipv4Src, u128::from(0x0a00_0001 + random.below(2))),
        9 => Action::SetField(Field::VlanVid, u128::from(0x1001 + random.below(2))),
        10 => Action::SetField(Field::TunnelId, u128::from(random.below(2))),
        11 => Action::PushVlan(0x8100),
        12 => Action::PopVlan,
        13 => Action::PushMpls(0x8847),
        14 => Action::PopMpls(0x0800),
        15 => Action::PushPbb(0x88e7),
        16 => Action::PopPbb,
        17 => Action::SetField(Field::PbbIsid, u128::from(random.below(3))),
        22 => Action::SetField(Field::EthType, [0x0800, 0x8847][random.below(2) as usize]),
        23 => Action::SetField(Field::IpProto, [6, 17][random.below(2) as usize]),
        24 => Action::SetField(Field::MplsBos, random.below(2).into()),
        _ => Action::DecIpTtl,
    };
    (0..random.below(4)).map(|_| action(random)).collect()
}

/// A random change.
pub(crate) fn change(random: &mut Random) -> Change {
    let command = match random.below(12) {
        0..=6 => Command::Add,
        7 => Command::Modify,
        8 => Command::ModifyStrict,
        9 => Command::Delete,
        _ => Command::DeleteStrict,
    };
    let table = random.below(4) as u8;
    let mut change = Change::new(command, matching(random), random.below(4) as u16);
    let is_deletion = matches!(command, Command::Delete | Command::DeleteStrict);
    change.table = if is_deletion && random.below(8) == 0 { None } else { Some(table) };
    change.cookie = u64::from(random.below(4));
    change.cookie_mask = [0, 0, 1, 3][random.below(4) as usize];
    let seconds = |random: &mut Random| {
        let seconds = random.below(40);
        (1..12).contains(&seconds).then(|| Duration::from_secs(seconds.into()))
    };
    (change.idle_timeout, change.hard_timeout) = (seconds(random), seconds(random));
    change.flags = EntryFlags {
        send_removed: false,
        check_overlap: random.below(8) == 0,
        reset_counts: random.below(2) == 0,
        ..EntryFlags::default()
    };
    change.out_port = (random.below(8) == 0).then(|| random.below(4));
    change.out_group = (random.below(16) == 0).then(|| random.below(3));
    let goto = table + 1 + random.below(3) as u8;
    change.instructions = Instructions {
        meter: (random.below(8) == 0).then(|| random.below(3)),
        apply: actions(random),
        clear: random.below(6) == 0,
        write: actions(random),
        metadata: (random.below(4) == 0).then(|| (random.next() & 3, random.next() & 3)),
        goto: (goto < 5 && random.below(2) == 0).then_some(goto),
        stated_lengths: Vec::new(),
    };
    if matches!(command, Command::Modify | Command::ModifyStrict) {
        // Whether other actions suit the entries depends on their matches.
        change.instructions.apply.retain(is_plain);
        change.instructions.write.retain(is_plain);
    }
    change
}

fn is_plain(action: &Action) -> bool {
    let is_old = matches!(
        action,
        Action::SetIfPresent(..) | Action::TagVlanVid(_) | Action::TagVlanPcp(_) | Action::StripVlan
    );
    !is_old && !matches!(action, Action::SetField(..) | Action::PopVlan | Action::PopMpls(_) | Action::PopPbb)
}

struct Stored {
    change: Change,
    table: u8,
    /// Number of the addition, and of modifications since.
    version: (u64, u64),
    created: Duration,
    used: Duration,
    packets: u64,
    bytes: u64,
}

/// What the reference decides.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct Decision {
    pub(crate) operations: Vec<Operation>,
    /// Where the operations of each entry end.
    pub(crate) performers: Vec<(usize, Performer)>,
    /// Tables, and the versions of the entries that matched there.
    pub(crate) steps: Vec<(u8, Option<(u64, u64)>)>,
    /// The table, metadata and action set after headers were revealed.
    pub(crate) resume: Option<(u8, u128, ActionSet)>,
}

/// The pipeline as a list of entries, written after the text of the specification.
#[derive(Default)]
pub(crate) struct Reference {
    entries: Vec<Stored>,
    added: u64,
    tables: BTreeMap<u8, (u64, u64)>,
}

type Fields = BTreeMap<Field, u128>;

fn matches(matching: &Match, fields: &Fields) -> bool {
    matching
        .fields()
        .all(|(field, value, mask)| fields.get(&field).is_some_and(|found| found & mask == value))
}

impl Reference {
    /// The decision for a packet, which is counted.
    pub(crate) fn decide(&mut self, key: &Key, length: u32, now: Duration) -> Decision {
        self.decide_from(key, length, now, 0, None, ActionSet::default())
    }

    /// The decision for a packet from a later table on.
    pub(crate) fn decide_from(
        &mut self,
        key: &Key,
        length: u32,
        now: Duration,
        mut table: u8,
        metadata: Option<u128>,
        mut set: ActionSet,
    ) -> Decision {
        let all = Field::ALL.iter().filter_map(|field| Some((*field, key.get(*field)?)));
        let mut fields: Fields = all.collect();
        fields.extend(metadata.map(|metadata| (Field::Metadata, metadata)));
        let (mut decision, mut writer) = (Decision::default(), None);
        loop {
            let counters = self.tables.entry(table).or_default();
            counters.0 += 1;
            let here = self.entries.iter_mut().filter(|entry| entry.table == table);
            let found = here
                .filter(|entry| matches(&entry.change.matching, &fields))
                .max_by_key(|entry| (entry.change.priority, u64::MAX - entry.version.0));
            decision.steps.push((table, found.as_ref().map(|entry| entry.version)));
            let Some(entry) = found else { return decision };
            counters.1 += 1;
            entry.packets += 1;
            entry.bytes += u64::from(length);
            entry.used = now;
            let instructions = &entry.change.instructions;
            decision.operations.extend(instructions.meter.map(Operation::Meter));
            let mut is_revealed = false;
            for action in &instructions.apply {
                decision.operations.push(Operation::Action(*action));
                perform(&mut fields, *action);
                is_revealed |= matches!(
                    action,
                    Action::PopVlan
                        | Action::PopMpls(_)
                        | Action::PopPbb
                        | Action::StripVlan
                        | Action::SetField(Field::EthType | Field::IpProto, _)
                );
            }
            let (priority, matching) = (entry.change.priority, entry.change.matching);
            let metadata = |fields: &Fields| fields.get(&Field::Metadata).copied().unwrap_or(0) as u64;
            let performer = Performer {
                table,
                cookie: entry.change.cookie,
                is_table_miss: priority == 0 && matching == Match::any(),
                metadata: metadata(&fields),
            };
            decision.performers.push((decision.operations.len(), performer));
            if instructions.clear {
                set = ActionSet::default();
                writer = None;
            }
            instructions.write.iter().for_each(|action| set.write(*action));
            let sends = |action: &Action| matches!(action, Action::Output(_) | Action::Group(_));
            if instructions.write.iter().any(sends) {
                writer = Some(performer);
            }
            if let Some((value, mask)) = instructions.metadata {
                let metadata = fields.entry(Field::Metadata).or_default();
                *metadata = *metadata & !u128::from(mask) | u128::from(value & mask);
            }
            match instructions.goto {
                None => {
                    decision.operations.extend(set.actions().map(Operation::Action));
                    let performer = Performer { metadata: metadata(&fields), ..writer.unwrap_or(performer) };
                    decision.performers.push((decision.operations.len(), performer));
                    return decision;
                }
                Some(next) if is_revealed => {
                    decision.resume = Some((next, fields[&Field::Metadata], set));
                    return decision;
                }
                Some(next) => table = next,
            }
        }
    }

    /// Performs a change. Returns the deleted entries as [`comparable`] shows them, and the number of modified ones.
    pub(crate) fn apply(
        &mut self,
        change: &Change,
        now: Duration,
    ) -> Result<(usize, Vec<String>), FlowModError> {
        let is_deletion = matches!(change.command, Command::Delete | Command::DeleteStrict);
        let is_strict = matches!(change.command, Command::ModifyStrict | Command::DeleteStrict);
        let uses = |entry: &Stored, action: Action| {
            let instructions = &entry.change.instructions;
            instructions.apply.contains(&action) || instructions.write.contains(&action)
        };
        let is_selected = |entry: &Stored| {
            change.table.is_none_or(|table| table == entry.table)
                && if is_strict {
                    entry.change.matching == change.matching && entry.change.priority == change.priority
                } else {
                    change.matching.contains(&entry.change.matching)
                }
                && entry.change.cookie & change.cookie_mask == change.cookie & change.cookie_mask
                && (!is_deletion
                    || change.out_port.is_none_or(|port| uses(entry, Action::Output(Output::Port(port))))
                        && change.out_group.is_none_or(|group| uses(entry, Action::Group(group))))
        };
        if change.command != Command::Add {
            let mut modified = 0;
            let mut removed = Vec::new();
            self.entries.retain_mut(|entry| {
                if !is_selected(entry) {
                    return true;
                }
                if is_deletion {
                    removed.push(shown(entry, RemovalReason::Delete, now));
                    return false;
                }
                modified += 1;
                entry.version.1 += 1;
                entry.change.instructions = change.instructions.clone();
                if change.flags.reset_counts {
                    (entry.packets, entry.bytes) = (0, 0);
                }
                true
            });
            return Ok((modified, removed));
        }
        let table = change.table.unwrap();
        let is_same = |entry: &Stored| {
            entry.table == table
                && entry.change.matching == change.matching
                && entry.change.priority == change.priority
        };
        let mut others = self
            .entries
            .iter()
            .filter(|entry| entry.table == table && entry.change.priority == change.priority);
        if change.flags.check_overlap && others.any(|entry| entry.change.matching.overlaps(&change.matching))
        {
            return Err(FlowModError::Overlap);
        }
        let (mut packets, mut bytes) = (0, 0);
        if let Some(at) = self.entries.iter().position(is_same) {
            let old = self.entries.remove(at);
            if !change.flags.reset_counts {
                (packets, bytes) = (old.packets, old.bytes);
            }
        }
        self.added += 1;
        self.entries.push(Stored {
            change: change.clone(),
            table,
            version: (self.added, 0),
            created: now,
            used: now,
            packets,
            bytes,
        });
        Ok((0, Vec::new()))
    }

    /// Removes the entries whose timeouts have passed.
    pub(crate) fn expire(&mut self, now: Duration) -> Vec<String> {
        let mut removed = Vec::new();
        self.entries.retain(|entry| {
            let hard = entry.change.hard_timeout.is_some_and(|timeout| entry.created + timeout <= now);
            let idle = entry.change.idle_timeout.is_some_and(|timeout| entry.used + timeout <= now);
            match (hard, idle) {
                (true, _) => removed.push(shown(entry, RemovalReason::HardTimeout, now)),
                (_, true) => removed.push(shown(entry, RemovalReason::IdleTimeout, now)),
                _ => return true,
            }
            false
        });
        removed
    }

    /// All entries with their counters.
    pub(crate) fn entries(&self) -> Vec<String> {
        let entries = self.entries.iter().map(|entry| {
            let change = &entry.change;
            let times = (entry.created, entry.used, entry.packets, entry.bytes);
            format!("{} {:?} {} {times:?}", entry.table, change.matching, change.priority)
        });
        entries.collect()
    }

    /// Entries, lookups and matches of a table.
    pub(crate) fn table_counters(&self, table: u8) -> (usize, u64, u64) {
        let (lookups, matches) = self.tables.get(&table).copied().unwrap_or_default();
        (self.entries.iter().filter(|entry| entry.table == table).count(), lookups, matches)
    }
}

/// Changes the fields of a packet as an action does.
fn perform(fields: &mut Fields, action: Action) {
    match action {
        Action::SetField(Field::VlanVid, _) if fields[&Field::VlanVid] == 0 => {}
        Action::SetField(Field::VlanVid, value) => {
            fields.insert(Field::VlanVid, value | 0x1000);
        }
        Action::TagVlanVid(vid) => {
            fields.insert(Field::VlanVid, u128::from(vid) | 0x1000);
            fields.entry(Field::VlanPcp).or_insert(0);
        }
        Action::TagVlanPcp(pcp) => {
            fields.entry(Field::VlanVid).and_modify(|vid| *vid |= 0x1000);
            fields.insert(Field::VlanPcp, pcp.into());
        }
        Action::SetField(field, value) | Action::SetIfPresent(field, value) => {
            fields.entry(field).and_modify(|old| *old = value);
        }
        Action::PushVlan(_) if fields[&Field::VlanVid] == 0 => {
            fields.insert(Field::VlanVid, 0x1000);
            fields.insert(Field::VlanPcp, 0);
        }
        Action::PushPbb(eth_type) => {
            let service = fields.get(&Field::PbbIsid).copied();
            fields.retain(|field, _| {
                matches!(
                    field,
                    Field::InPort | Field::Metadata | Field::TunnelId | Field::EthDst | Field::EthSrc
                )
            });
            fields.insert(Field::EthType, eth_type.into());
            fields.insert(Field::VlanVid, 0);
            fields.insert(Field::PbbIsid, service.unwrap_or(0));
        }
        Action::PushMpls(eth_type) => {
            let label = fields.get(&Field::MplsLabel).copied();
            let class = fields.get(&Field::MplsTc).copied();
            fields.retain(|field, _| {
                matches!(
                    field,
                    Field::InPort
                        | Field::Metadata
                        | Field::TunnelId
                        | Field::EthDst
                        | Field::EthSrc
                        | Field::VlanVid
                        | Field::VlanPcp
                )
            });
            fields.insert(Field::EthType, eth_type.into());
            fields.insert(Field::MplsLabel, label.unwrap_or(0));
            fields.insert(Field::MplsTc, class.unwrap_or(0));
            fields.insert(Field::MplsBos, u128::from(label.is_none()));
        }
        _ => {}
    }
}

fn shown(entry: &Stored, reason: RemovalReason, now: Duration) -> String {
    comparable(&FlowRemoved {
        reason,
        table: entry.table,
        matching: entry.change.matching,
        priority: entry.change.priority,
        cookie: entry.change.cookie,
        idle_timeout: entry.change.idle_timeout,
        hard_timeout: entry.change.hard_timeout,
        age: now - entry.created,
        packets: entry.packets,
        bytes: entry.bytes,
        send_removed: false,
    })
}

/// A removed entry as text, which can be sorted.
pub(crate) fn comparable(removed: &FlowRemoved) -> String {
    format!("{removed:?}")
}
