//! What OpenFlow controllers change in a steering switch, and what it tells them.
//!
//! The entries of controllers are in the same pipeline as the flows of users, with an owner of their own: neither can change
//! or remove those of the other. Groups, meters, and all tables but the first belong to controllers alone.
//!
//! All shards of a switch have the same entries, groups and meters, and so decide the same about each change. Each counts its own
//! packets; what controllers are told are the sums.

use super::controllers::{CONTROLLERS, ControlError, ControllerPacket, Controllers, FailMode, PacketOutStep};
use super::flow::{MAX_PORT_KEYS, PortKey};
use super::steering::Steering;
use flow_table::{
    Action, Bucket, Change, Command, Entry, FlowModError, FlowRemoved, Group, GroupCounters, GroupError,
    GroupType, Instructions, Match, Meter, MeterCounters, MeterDefinition, MeterError, Meters, Pipeline,
    RemovalReason, TableCounters,
};
use std::time::Duration;

/// Groups of a switch: a check of a new one looks at all of them.
const MAX_GROUPS: usize = 4096;

/// Memory of all buckets, in bytes.
const MAX_BUCKET_BYTES: usize = 16 << 20;

/// Meters of a switch.
const MAX_METERS: usize = 4096;

/// Entries that are left to the flows of users.
const RESERVED_ENTRIES: usize = 4096;

/// All shards of a steering switch, for what its controllers change and ask.
#[derive(Debug)]
pub struct SteeringShards<'a>(Vec<&'a mut Steering>);

impl<'a> SteeringShards<'a> {
    /// The shards of one switch, in their order.
    pub fn new(shards: impl IntoIterator<Item = &'a mut Steering>) -> Self {
        Self(shards.into_iter().collect())
    }

    fn first(&self) -> Option<&Steering> {
        self.0.first().map(|first| &**first)
    }

    fn each(&mut self) -> impl Iterator<Item = &mut Steering> {
        self.0.iter_mut().map(|shard| &mut **shard)
    }

    /// Makes a change in all shards. If the first one refuses it, nothing is changed.
    fn change(
        &mut self,
        change: impl FnMut(&mut Steering) -> Result<(), ControlError>,
    ) -> Result<(), ControlError> {
        self.each().try_for_each(change)
    }

    /// Makes a change that removes entries in all shards, and reports each of them once.
    fn remove(
        &mut self,
        mut change: impl FnMut(&mut Steering) -> Result<Vec<FlowRemoved>, ControlError>,
    ) -> Result<(), ControlError> {
        let mut removed: Vec<FlowRemoved> = Vec::new();
        for shard in self.each() {
            let found = change(shard)?;
            if removed.is_empty() {
                removed = found;
                continue;
            }
            let is_same = |sum: &FlowRemoved, found: &FlowRemoved| {
                (sum.table, sum.priority, &sum.matching) == (found.table, found.priority, &found.matching)
            };
            let pairs = removed.iter_mut().zip(&found).filter(|(sum, found)| is_same(sum, found));
            pairs.for_each(|(sum, found)| sum.add_counters(found));
        }
        self.report(removed);
        Ok(())
    }

    fn report(&mut self, removed: Vec<FlowRemoved>) {
        if let Some(first) = self.0.first_mut() {
            first.controllers.report(removed);
        }
    }

    /// Says that the switch has controllers, and what it does while none is connected. `wake` is called when something waits
    /// for them; it must not block.
    pub fn set_controllers(&mut self, mode: FailMode, wake: impl Fn() + Clone + Send + 'static) {
        for shard in self.each() {
            shard.controllers.mode = mode;
            shard.controllers.wake = Some(Box::new(wake.clone()));
        }
    }

    /// Says that the switch has no controllers any more, and removes their entries, groups and meters.
    pub fn remove_controllers(&mut self, now: u64) {
        let now = Duration::from_nanos(now);
        let mut all = Change::new(Command::Delete, Match::any(), 0);
        (all.owner, all.table) = (CONTROLLERS, None);
        for shard in self.each() {
            // A deletion never fails.
            let _ = shard.pipeline.apply(&all, now);
            let down = std::mem::take(&mut shard.controllers.down);
            shard.controllers = Controllers { down, ..Controllers::default() };
        }
    }

    /// Says whether a controller is connected. Without one, nothing waits for controllers.
    pub fn set_connected(&mut self, is_connected: bool) {
        for Steering { controllers, .. } in self.each() {
            controllers.is_connected = is_connected;
            if !is_connected {
                controllers.packets.clear();
                controllers.removed.clear();
            }
        }
    }

    /// Says whether frames that no entry matches wait for controllers, as in OpenFlow 1.0, or are dropped, as in 1.3.
    pub fn set_gets_misses(&mut self, gets_misses: bool) {
        self.each().for_each(|shard| shard.controllers.gets_misses = gets_misses);
    }

    /// Says whether a port is up, on which groups for failover depend.
    pub fn set_port_up(&mut self, key: PortKey, is_up: bool) {
        let at = usize::from(key.0);
        for Steering { controllers: Controllers { down, .. }, .. } in self.each() {
            if key.0 < MAX_PORT_KEYS && (down.len() > at || !is_up) {
                down.resize(down.len().max(at + 1), false);
                down[at] = !is_up;
            }
        }
    }

    /// Says whether frames from a port that no entry matches are sent to controllers.
    pub fn set_reported(&mut self, key: PortKey, is_reported: bool) {
        for Steering { controllers: Controllers { unreported, .. }, .. } in self.each() {
            unreported.retain(|port| *port != u32::from(key.0));
            if !is_reported {
                unreported.push(key.0.into());
            }
        }
    }

    /// Changes entries of controllers. `now` is in nanoseconds of a monotonic clock.
    ///
    /// # Errors
    ///
    /// See [`ControlError`]. Nothing is changed then.
    pub fn change_entries(&mut self, change: &Change, now: u64) -> Result<(), ControlError> {
        self.remove(|shard| shard.change_entries(change, now))
    }

    /// Adds a group.
    ///
    /// # Errors
    ///
    /// See [`ControlError`]. Nothing is changed then.
    pub fn add_group(
        &mut self,
        number: u32,
        group_type: GroupType,
        buckets: &[Bucket],
        now: u64,
    ) -> Result<(), ControlError> {
        self.change(|shard| shard.add_group(number, group_type, buckets.to_vec(), now))
    }

    /// Replaces type and buckets of a group.
    ///
    /// # Errors
    ///
    /// See [`ControlError`]. Nothing is changed then.
    pub fn modify_group(
        &mut self,
        number: u32,
        group_type: GroupType,
        buckets: &[Bucket],
    ) -> Result<(), ControlError> {
        self.change(|shard| shard.modify_group(number, group_type, buckets.to_vec()))
    }

    /// Removes a group and the entries that use it; `None` removes all groups.
    ///
    /// # Errors
    ///
    /// Another group leads to it.
    pub fn remove_group(&mut self, number: Option<u32>, now: u64) -> Result<(), ControlError> {
        self.remove(|shard| shard.remove_group(number, now))
    }

    /// Adds a meter. It limits what all shards let pass together.
    ///
    /// # Errors
    ///
    /// See [`ControlError`]. Nothing is changed then.
    pub fn add_meter(&mut self, number: u32, meter: MeterDefinition, now: u64) -> Result<(), ControlError> {
        self.change_meter(number, |meters| {
            if meters.iter().count() >= MAX_METERS {
                return Err(MeterError::TooManyMeters);
            }
            meters.add(number, meter, Duration::from_nanos(now))
        })
    }

    /// Replaces the definition of a meter.
    ///
    /// # Errors
    ///
    /// See [`ControlError`]. Nothing is changed then.
    pub fn modify_meter(
        &mut self,
        number: u32,
        meter: MeterDefinition,
        now: u64,
    ) -> Result<(), ControlError> {
        self.change_meter(number, |meters| meters.modify(number, meter, Duration::from_nanos(now)))
    }

    fn change_meter(
        &mut self,
        number: u32,
        change: impl FnOnce(&mut Meters) -> Result<(), MeterError>,
    ) -> Result<(), ControlError> {
        if let Some((first, others)) = self.0.split_first_mut() {
            change(&mut first.controllers.meters)?;
            for other in others {
                other.controllers.meters.share(number, &first.controllers.meters);
            }
        }
        Ok(())
    }

    /// Removes a meter and the entries that use it; `None` removes all meters.
    pub fn remove_meter(&mut self, number: Option<u32>, now: u64) {
        // No meter is in use where none is removed: it never fails.
        let _ = self.remove(|shard| Ok(shard.remove_meter(number, now)));
    }

    /// The most entries of controllers.
    #[must_use]
    pub fn max_entries(&self) -> u32 {
        self.first().map_or(0, Steering::max_entries)
    }

    /// Ends entries of controllers whose timeouts have passed: at most `limit`.
    pub fn expire_entries(&mut self, now: u64, limit: usize) {
        let mut pipelines: Vec<&mut Pipeline> = self.each().map(|shard| &mut shard.pipeline).collect();
        let removed = Pipeline::expire_all(&mut pipelines, Duration::from_nanos(now), limit);
        self.report(removed);
    }

    /// When the timeouts of a flow or an entry are looked at next, in nanoseconds.
    pub fn next_deadline(&self) -> Option<u64> {
        let mut shards = self.0.iter();
        // The first shard knows the deadlines of flows and entries.
        let first = shards.next().and_then(|first| first.next_deadline());
        let others = shards.flat_map(|shard| [shard.chains.next_deadline(), shard.tidy_deadline()]);
        first.into_iter().chain(others.flatten()).min()
    }

    /// Takes frames that wait for controllers: at most `limit`, or one of each shard.
    pub fn take_packets(&mut self, limit: usize) -> Vec<ControllerPacket> {
        let share = (limit / self.0.len().max(1)).max(1);
        let take = |shard: &mut Steering| {
            let packets = &mut shard.controllers.packets;
            let taken: Vec<_> = packets.drain(..share.min(packets.len())).collect();
            if !packets.is_empty() {
                shard.controllers.wake();
            }
            taken
        };
        self.each().flat_map(take).collect()
    }

    /// Takes reports of removed entries: at most `limit`.
    pub fn take_removed(&mut self, limit: usize) -> Vec<FlowRemoved> {
        let Some(Steering { controllers, .. }) = self.each().next() else { return Vec::new() };
        let removed = &mut controllers.removed;
        let taken = removed.drain(..limit.min(removed.len())).collect();
        if !removed.is_empty() {
            controllers.wake();
        }
        taken
    }

    /// A part of the entries of controllers with their counters: see [`flow_table::Pipeline::entries_from`].
    pub fn entries_from(&mut self, from: u32, count: u32, mut visit: impl FnMut(Entry<'_>)) -> Option<u32> {
        let (first, others) = self.0.split_first_mut()?;
        first.pipeline.entries_from(from, count, |mut entry| {
            if entry.owner != CONTROLLERS {
                return;
            }
            for other in others.iter_mut() {
                let found = other.pipeline.entry(entry.table, entry.matching, entry.priority);
                // Counters that are not kept stay so.
                if let Some(found) = found {
                    entry.packets = entry.packets.saturating_add(found.packets);
                    entry.bytes = entry.bytes.saturating_add(found.bytes);
                    entry.used = entry.used.max(found.used);
                }
            }
            visit(entry);
        })
    }

    /// Counters of all tables, with the flows of users.
    pub fn table_counters(&mut self) -> Vec<TableCounters> {
        let mut lists = self.each().map(|shard| shard.pipeline.counters());
        let mut sums = lists.next().unwrap_or_default();
        for list in lists {
            for (sum, counters) in sums.iter_mut().zip(list) {
                sum.lookups += counters.lookups;
                sum.matches += counters.matches;
            }
        }
        sums
    }

    /// The groups with numbers from `first`, each with the time when it was added. Their counters are those of a part of the packets:
    /// see [`group_counters`](Self::group_counters).
    pub fn groups_from(&self, first: u32) -> impl Iterator<Item = (u32, &Group, Duration)> {
        let all = self.first().into_iter().flat_map(|shard| {
            shard.controllers.groups.iter().map(|(number, group)| {
                let record = shard.controllers.group_records.get(&number);
                (number, group, record.map_or(Duration::ZERO, |record| record.0))
            })
        });
        all.filter(move |(number, ..)| *number >= first)
    }

    /// The counters of a group, and those of its buckets.
    #[must_use]
    pub fn group_counters(&self, number: u32) -> (GroupCounters, Vec<GroupCounters>) {
        let groups = self.0.iter().filter_map(|shard| shard.controllers.groups.get(number));
        let counters =
            |group: &Group| (group.counters, group.buckets.iter().map(|(_, counters)| *counters).collect());
        let sum = |(mut all, mut buckets): (GroupCounters, Vec<GroupCounters>), other: (_, Vec<_>)| {
            all += other.0;
            buckets.iter_mut().zip(other.1).for_each(|(sum, counters)| *sum += counters);
            (all, buckets)
        };
        groups.map(counters).reduce(sum).unwrap_or_default()
    }

    /// The meters with numbers from `first`. Their counters are those of a part of the packets: see
    /// [`meter_counters`](Self::meter_counters).
    pub fn meters_from(&self, first: u32) -> impl Iterator<Item = (u32, &Meter)> {
        let all = self.first().into_iter().flat_map(|shard| shard.controllers.meters.iter());
        all.filter(move |(number, _)| *number >= first)
    }

    /// The counters of a meter, and those of its bands.
    #[must_use]
    pub fn meter_counters(&self, number: u32) -> (MeterCounters, Vec<MeterCounters>) {
        let meters = self.0.iter().filter_map(|shard| shard.controllers.meters.get(number));
        let counters = |meter: &Meter| (meter.counters, meter.bands.clone());
        let sum = |(mut all, mut bands): (MeterCounters, Vec<MeterCounters>), other: (_, Vec<_>)| {
            all += other.0;
            bands.iter_mut().zip(other.1).for_each(|(sum, counters)| *sum += counters);
            (all, bands)
        };
        meters.map(counters).reduce(sum).unwrap_or_default()
    }

    /// Checks the actions of a packet-out message.
    ///
    /// # Errors
    ///
    /// See [`ControlError`].
    pub fn check_packet_out(&self, steps: &[PacketOutStep]) -> Result<(), ControlError> {
        let actions = steps.iter().filter_map(|step| match step {
            PacketOutStep::Perform(action) => Some(*action),
            PacketOutStep::Table => None,
        });
        let actions: Vec<Action> = actions.collect();
        Action::check_all(&actions).map_err(FlowModError::from)?;
        self.first().map_or(Ok(()), |first| first.controllers.check_actions(&actions))
    }
}

/// One shard.
impl Steering {
    /// Whether a controller is connected.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.controllers.is_connected
    }

    /// Reports of removed entries that did not fit.
    #[must_use]
    pub fn lost_reports(&self) -> u64 {
        self.controllers.lost_reports
    }

    /// Returns the removed entries.
    fn change_entries(&mut self, change: &Change, now: u64) -> Result<Vec<FlowRemoved>, ControlError> {
        let mut change = change.clone();
        change.owner = CONTROLLERS;
        if !matches!(change.command, Command::Delete | Command::DeleteStrict) {
            let Instructions { meter, apply, write, .. } = &change.instructions;
            self.controllers.check_actions(apply)?;
            self.controllers.check_actions(write)?;
            if let Some(meter) = meter.filter(|meter| self.controllers.meters.get(*meter).is_none()) {
                return Err(ControlError::NoMeter(meter));
            }
            let limit = self.max_entries() as usize;
            if change.command == Command::Add && self.pipeline.len() - self.owners.len() >= limit {
                let table = change.table.unwrap_or_default();
                if self.pipeline.entry(table, &change.matching, change.priority).is_none() {
                    return Err(FlowModError::TooManyEntries { limit }.into());
                }
            }
        }
        Ok(self.pipeline.apply(&change, Duration::from_nanos(now))?.removed)
    }

    fn add_group(
        &mut self,
        number: u32,
        group_type: GroupType,
        buckets: Vec<Bucket>,
        now: u64,
    ) -> Result<(), ControlError> {
        if self.controllers.group_records.len() >= MAX_GROUPS {
            return Err(GroupError::TooManyGroups.into());
        }
        let bytes = self.check_buckets(number, &buckets)?;
        self.controllers.groups.add(number, group_type, buckets)?;
        self.controllers.bucket_bytes += bytes;
        self.controllers.group_records.insert(number, (Duration::from_nanos(now), bytes));
        Ok(())
    }

    fn modify_group(
        &mut self,
        number: u32,
        group_type: GroupType,
        buckets: Vec<Bucket>,
    ) -> Result<(), ControlError> {
        let bytes = self.check_buckets(number, &buckets)?;
        let controllers = &mut self.controllers;
        controllers.groups.modify(number, group_type, buckets)?;
        if let Some((_, old)) = controllers.group_records.get_mut(&number) {
            controllers.bucket_bytes += bytes;
            controllers.bucket_bytes -= std::mem::replace(old, bytes);
        }
        Ok(())
    }

    /// Checks the ports that buckets name. Returns the memory of the buckets.
    fn check_buckets(&self, number: u32, buckets: &[Bucket]) -> Result<usize, ControlError> {
        for bucket in buckets {
            let ports: Vec<Action> =
                bucket.actions.iter().copied().filter(|action| !matches!(action, Action::Group(_))).collect();
            self.controllers.check_actions(&ports)?;
        }
        // The actions are stored twice: as they are, and in the order in which they are performed.
        let actions: usize = buckets.iter().map(|bucket| bucket.actions.len()).sum();
        let action = 2 * size_of::<Action>() + size_of::<u16>();
        let bytes = buckets.len() * (size_of::<Bucket>() + 64) + actions * action;
        let old = self.controllers.group_records.get(&number).map_or(0, |(_, bytes)| *bytes);
        match self.controllers.bucket_bytes - old + bytes > MAX_BUCKET_BYTES {
            true => Err(GroupError::TooManyBuckets.into()),
            false => Ok(bytes),
        }
    }

    /// Returns the removed entries.
    fn remove_group(&mut self, number: Option<u32>, now: u64) -> Result<Vec<FlowRemoved>, ControlError> {
        let mut removed = match number {
            Some(number) => {
                self.controllers.groups.remove(number)?;
                if let Some((_, bytes)) = self.controllers.group_records.remove(&number) {
                    self.controllers.bucket_bytes -= bytes;
                }
                self.remove_entries_where(now, |instructions| instructions.has_group(number))
            }
            None => {
                self.controllers.groups.clear();
                self.controllers.group_records.clear();
                self.controllers.bucket_bytes = 0;
                self.remove_entries_where(now, |instructions| {
                    let mut actions = instructions.apply.iter().chain(&instructions.write);
                    actions.any(|action| matches!(action, Action::Group(_)))
                })
            }
        };
        removed.iter_mut().for_each(|removed| removed.reason = RemovalReason::GroupDelete);
        Ok(removed)
    }

    /// Returns the removed entries.
    fn remove_meter(&mut self, number: Option<u32>, now: u64) -> Vec<FlowRemoved> {
        let meters = &mut self.controllers.meters;
        match number {
            Some(number) => drop(meters.remove(number)),
            None => *meters = Meters::default(),
        }
        self.remove_entries_where(now, |instructions| {
            instructions.meter.is_some_and(|meter| number.is_none_or(|number| number == meter))
        })
    }

    /// Removes the entries of controllers whose instructions meet a condition.
    fn remove_entries_where(
        &mut self,
        now: u64,
        condition: impl Fn(&Instructions) -> bool,
    ) -> Vec<FlowRemoved> {
        let mut found = Vec::new();
        self.pipeline.entries_from(0, u32::MAX, |entry| {
            if entry.owner == CONTROLLERS && condition(entry.instructions) {
                found.push((entry.table, *entry.matching, entry.priority));
            }
        });
        let mut removed = Vec::new();
        for (table, matching, priority) in found {
            let mut change = Change::new(Command::DeleteStrict, matching, priority);
            (change.owner, change.table) = (CONTROLLERS, Some(table));
            // A deletion never fails.
            if let Ok(done) = self.pipeline.apply(&change, Duration::from_nanos(now)) {
                removed.extend(done.removed);
            }
        }
        removed
    }

    fn max_entries(&self) -> u32 {
        (self.entries - RESERVED_ENTRIES.min(self.entries / 2)) as u32
    }
}
