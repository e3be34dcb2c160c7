//! What OpenFlow controllers change in a steering switch, and what it tells them.
//!
//! The entries of controllers are in the same pipeline as the flows of users, with an owner of their own: neither can change
//! or remove those of the other. Groups, meters, and all tables but the first belong to controllers alone.

use super::controllers::{CONTROLLERS, ControlError, ControllerPacket, Controllers, FailMode, PacketOutStep};
use super::flow::{MAX_PORT_KEYS, PortKey};
use super::steering::Steering;
use flow_table::{
    Action, Bucket, Change, Command, Entry, FlowModError, FlowRemoved, Group, GroupError, GroupType,
    Instructions, Match, Meter, MeterDefinition, MeterError, Meters, TableCounters,
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

impl Steering {
    /// Says that the switch has controllers, and what it does while none is connected. `wake` is called when something waits
    /// for them; it must not block.
    pub fn set_controllers(&mut self, mode: FailMode, wake: Box<dyn Fn() + Send>) {
        self.controllers.mode = mode;
        self.controllers.wake = Some(wake);
    }

    /// Says that the switch has no controllers any more, and removes their entries, groups and meters.
    pub fn remove_controllers(&mut self, now: u64) {
        let now = Duration::from_nanos(now);
        let mut all = Change::new(Command::Delete, Match::any(), 0);
        (all.owner, all.table) = (CONTROLLERS, None);
        // A deletion never fails.
        let _ = self.pipeline.apply(&all, now);
        let down = std::mem::take(&mut self.controllers.down);
        self.controllers = Controllers { down, ..Controllers::default() };
    }

    /// Says whether a controller is connected. Without one, nothing waits for controllers.
    pub fn set_connected(&mut self, is_connected: bool) {
        self.controllers.is_connected = is_connected;
        if !is_connected {
            self.controllers.packets.clear();
            self.controllers.removed.clear();
        }
    }

    /// Says whether frames that no entry matches wait for controllers, as in OpenFlow 1.0, or are dropped, as in 1.3.
    pub fn set_gets_misses(&mut self, gets_misses: bool) {
        self.controllers.gets_misses = gets_misses;
    }

    /// Whether a controller is connected.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.controllers.is_connected
    }

    /// Says whether a port is up, on which groups for failover depend.
    pub fn set_port_up(&mut self, key: PortKey, is_up: bool) {
        let (at, down) = (usize::from(key.0), &mut self.controllers.down);
        if key.0 < MAX_PORT_KEYS && (down.len() > at || !is_up) {
            down.resize(down.len().max(at + 1), false);
            down[at] = !is_up;
        }
    }

    /// Changes entries of controllers. `now` is in nanoseconds of a monotonic clock.
    ///
    /// # Errors
    ///
    /// See [`ControlError`]. Nothing is changed then.
    pub fn change_entries(&mut self, change: &Change, now: u64) -> Result<(), ControlError> {
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
        let done = self.pipeline.apply(&change, Duration::from_nanos(now))?;
        self.controllers.report(done.removed);
        Ok(())
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

    /// Replaces type and buckets of a group.
    ///
    /// # Errors
    ///
    /// See [`ControlError`]. Nothing is changed then.
    pub fn modify_group(
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

    /// Removes a group and the entries that use it; `None` removes all groups.
    ///
    /// # Errors
    ///
    /// Another group leads to it.
    pub fn remove_group(&mut self, number: Option<u32>, now: u64) -> Result<(), ControlError> {
        match number {
            Some(number) => {
                self.controllers.groups.remove(number)?;
                if let Some((_, bytes)) = self.controllers.group_records.remove(&number) {
                    self.controllers.bucket_bytes -= bytes;
                }
                self.remove_entries_where(now, |instructions| instructions.has_group(number));
            }
            None => {
                self.controllers.groups.clear();
                self.controllers.group_records.clear();
                self.controllers.bucket_bytes = 0;
                self.remove_entries_where(now, |instructions| {
                    let mut actions = instructions.apply.iter().chain(&instructions.write);
                    actions.any(|action| matches!(action, Action::Group(_)))
                });
            }
        }
        Ok(())
    }

    /// Adds a meter.
    ///
    /// # Errors
    ///
    /// See [`ControlError`]. Nothing is changed then.
    pub fn add_meter(&mut self, number: u32, meter: MeterDefinition, now: u64) -> Result<(), ControlError> {
        if self.controllers.meters.iter().count() >= MAX_METERS {
            return Err(MeterError::TooManyMeters.into());
        }
        Ok(self.controllers.meters.add(number, meter, Duration::from_nanos(now))?)
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
        Ok(self.controllers.meters.modify(number, meter, Duration::from_nanos(now))?)
    }

    /// Removes a meter and the entries that use it; `None` removes all meters.
    pub fn remove_meter(&mut self, number: Option<u32>, now: u64) {
        let meters = &mut self.controllers.meters;
        match number {
            Some(number) => drop(meters.remove(number)),
            None => *meters = Meters::default(),
        }
        self.remove_entries_where(now, |instructions| {
            instructions.meter.is_some_and(|meter| number.is_none_or(|number| number == meter))
        });
    }

    /// Removes the entries of controllers whose instructions meet a condition.
    fn remove_entries_where(&mut self, now: u64, condition: impl Fn(&Instructions) -> bool) {
        let mut found = Vec::new();
        self.pipeline.entries_from(0, u32::MAX, |entry| {
            if entry.owner == CONTROLLERS && condition(entry.instructions) {
                found.push((entry.table, *entry.matching, entry.priority));
            }
        });
        for (table, matching, priority) in found {
            let mut change = Change::new(Command::DeleteStrict, matching, priority);
            (change.owner, change.table) = (CONTROLLERS, Some(table));
            // A deletion never fails.
            if let Ok(done) = self.pipeline.apply(&change, Duration::from_nanos(now)) {
                self.controllers.report(done.removed);
            }
        }
    }

    /// The most entries of controllers.
    #[must_use]
    pub fn max_entries(&self) -> u32 {
        (self.entries - RESERVED_ENTRIES.min(self.entries / 2)) as u32
    }

    /// Ends entries of controllers whose timeouts have passed: at most `limit`.
    pub fn expire_entries(&mut self, now: u64, limit: usize) {
        let removed = self.pipeline.expire(Duration::from_nanos(now), limit);
        self.controllers.report(removed);
    }

    /// Takes frames that wait for controllers: at most `limit`.
    pub fn take_packets(&mut self, limit: usize) -> Vec<ControllerPacket> {
        let packets = &mut self.controllers.packets;
        let taken = packets.drain(..limit.min(packets.len())).collect();
        if !packets.is_empty() {
            self.controllers.wake();
        }
        taken
    }

    /// Takes reports of removed entries: at most `limit`.
    pub fn take_removed(&mut self, limit: usize) -> Vec<FlowRemoved> {
        let removed = &mut self.controllers.removed;
        let taken = removed.drain(..limit.min(removed.len())).collect();
        if !removed.is_empty() {
            self.controllers.wake();
        }
        taken
    }

    /// Reports of removed entries that did not fit.
    #[must_use]
    pub fn lost_reports(&self) -> u64 {
        self.controllers.lost_reports
    }

    /// A part of the entries of controllers with their counters: see [`flow_table::Pipeline::entries_from`].
    pub fn entries_from(&mut self, from: u32, count: u32, mut visit: impl FnMut(Entry<'_>)) -> Option<u32> {
        self.pipeline.entries_from(from, count, |entry| {
            if entry.owner == CONTROLLERS {
                visit(entry);
            }
        })
    }

    /// Counters of all tables, with the flows of users.
    pub fn table_counters(&mut self) -> Vec<TableCounters> {
        self.pipeline.counters()
    }

    /// The groups with numbers from `first`, each with the time when it was added.
    pub fn groups_from(&self, first: u32) -> impl Iterator<Item = (u32, &Group, Duration)> {
        self.controllers.groups.iter().filter(move |(number, _)| *number >= first).map(|(number, group)| {
            let created =
                self.controllers.group_records.get(&number).map_or(Duration::ZERO, |record| record.0);
            (number, group, created)
        })
    }

    /// The meters with numbers from `first`.
    pub fn meters_from(&self, first: u32) -> impl Iterator<Item = (u32, &Meter)> {
        self.controllers.meters.iter().filter(move |(number, _)| *number >= first)
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
        self.controllers.check_actions(&actions)
    }
}
