//! What the shards of a switch count, in one sum.

use super::counters::HopCounters;
use super::instances::{OverruledAnswers, RefusedTuples, RemovedInstances};
use super::table::{ChainCounters, InstanceStatus};
use std::ops::AddAssign;

impl AddAssign for ChainCounters {
    /// Adds what another shard of the switch counted.
    fn add_assign(&mut self, other: Self) {
        let add = |sum: &mut [HopCounters; 2], counters: [HopCounters; 2]| {
            sum.iter_mut().zip(counters).for_each(|(sum, counters)| *sum += counters);
        };
        self.hops.iter_mut().zip(other.hops).for_each(|(sum, counters)| add(sum, counters));
        add(&mut self.left, other.left);
        for (time, other) in self.times.iter_mut().zip(other.times) {
            *time = match (*time, other) {
                (Some(one), Some(other)) => Some(u64::midpoint(one, other)),
                (one, other) => one.or(other),
            };
        }
    }
}

impl AddAssign for OverruledAnswers {
    /// Adds what another shard of the switch counted, of the same destinations.
    fn add_assign(&mut self, other: Self) {
        self.known.resize(self.known.len().max(other.known.len()), 0);
        self.known.iter_mut().zip(other.known).for_each(|(sum, count)| *sum += count);
        self.others += other.others;
    }
}

impl AddAssign for RefusedTuples {
    /// Adds what another shard of the switch, or another instance, counted.
    fn add_assign(&mut self, other: Self) {
        self.out_of_range += other.out_of_range;
        self.taken += other.taken;
        self.no_room += other.no_room;
    }
}

impl AddAssign for RemovedInstances {
    /// Adds what another shard of the switch counted.
    fn add_assign(&mut self, other: Self) {
        self.packets += other.packets;
        self.overruled += other.overruled;
        self.lost += other.lost;
        self.refused += other.refused;
    }
}

impl AddAssign for InstanceStatus {
    /// Adds what another shard of the switch knows of the same instance.
    fn add_assign(&mut self, other: Self) {
        self.is_up &= other.is_up;
        self.flows += other.flows;
        self.packets += other.packets;
        self.overruled += other.overruled;
        self.learnt += other.learnt;
        self.refused += other.refused;
        self.lost += other.lost;
    }
}
