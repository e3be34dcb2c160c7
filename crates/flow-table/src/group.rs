//! Groups: sets of actions that many flow entries share.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::AddAssign;

use crate::action::{Action, ActionError, Operation, Output};
use crate::action_set::ActionSet;
use crate::perform::{Effects, FrameBuffer, OutputState, Performed, perform};
use crate::tuple::fold;

/// Groups of a switch.
pub const MAX_GROUPS: usize = 1 << 16;

/// Buckets of a group. Each packet of a group of the type `all` is copied for each of them.
const MAX_BUCKETS: usize = 1024;

/// Buckets that a packet takes. Groups that lead to each other could otherwise copy it without end.
const MAX_BUCKETS_OF_PACKET: usize = 4096;

/// Groups that lead to each other. Longer chains are refused, because each level needs a copy of the frame.
const MAX_DEPTH: usize = 8;

/// How a group chooses among its buckets (OpenFlow 1.3.5, 5.6.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GroupType {
    /// Performs all buckets, each on a copy of the packet.
    All,
    /// Performs one bucket, chosen by the packet's flow and the weights.
    Select,
    /// Performs the only bucket.
    Indirect,
    /// Performs the first bucket that is live.
    FastFailover,
}

/// A set of actions of a group, and the condition under which it is live.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Bucket {
    /// Share of the flows, in groups of the type `select`. Zero gets none.
    pub weight: u16,
    /// The port that must be up for the bucket to be live.
    pub watch_port: Option<u32>,
    /// The group that must have a live bucket for the bucket to be live.
    pub watch_group: Option<u32>,
    /// Actions, performed as an action set (5.10).
    pub actions: Vec<Action>,
    /// As [`Instructions::stated_lengths`](crate::Instructions), of these actions.
    pub stated_lengths: Vec<u16>,
}

/// Packets and bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct GroupCounters {
    /// Packets.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl AddAssign for GroupCounters {
    fn add_assign(&mut self, other: Self) {
        self.packets += other.packets;
        self.bytes += other.bytes;
    }
}

impl GroupCounters {
    fn count(&mut self, frame: &[u8]) {
        self.packets += 1;
        self.bytes += frame.len() as u64;
    }
}

/// The reason why a group is refused (`OFPET_GROUP_MOD_FAILED`). Nothing is changed then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GroupError {
    /// The group exists (`OFPGMFC_GROUP_EXISTS`).
    Exists,
    /// The group does not exist (`OFPGMFC_UNKNOWN_GROUP`).
    Unknown,
    /// There are already 65,536 groups (`OFPGMFC_OUT_OF_GROUPS`).
    TooManyGroups,
    /// More than 1,024 buckets (`OFPGMFC_OUT_OF_BUCKETS`).
    TooManyBuckets,
    /// The number of buckets or a weight does not suit the type (`OFPGMFC_INVALID_GROUP`).
    Invalid,
    /// A bucket leads to a group that does not exist, or watches one (`OFPGMFC_INVALID_GROUP`).
    MissingGroup(u32),
    /// Groups would lead to each other in a circle (`OFPGMFC_LOOP`).
    Loop,
    /// More than eight groups would lead to each other (`OFPGMFC_CHAINING_UNSUPPORTED`).
    TooDeep,
    /// Another group leads to the group (`OFPGMFC_CHAINED_GROUP`).
    Chained,
    /// An action is refused.
    Action(ActionError),
}

impl fmt::Display for GroupError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exists => formatter.write_str("the group exists"),
            Self::Unknown => formatter.write_str("there is no such group"),
            Self::TooManyGroups => write!(formatter, "there are already {MAX_GROUPS} groups, the limit"),
            Self::TooManyBuckets => write!(formatter, "more than {MAX_BUCKETS} buckets"),
            Self::Invalid => formatter.write_str("the buckets do not suit the type of the group"),
            Self::MissingGroup(group) => {
                write!(formatter, "a bucket names group {group}, which does not exist")
            }
            Self::Loop => formatter.write_str("the groups would lead to each other in a circle"),
            Self::TooDeep => write!(formatter, "more than {MAX_DEPTH} groups would lead to each other"),
            Self::Chained => formatter.write_str("another group leads to the group"),
            Self::Action(_) => formatter.write_str("an action is refused"),
        }
    }
}

impl std::error::Error for GroupError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Action(error) => Some(error),
            _ => None,
        }
    }
}

/// A group and its counters.
#[derive(Clone, Debug)]
pub struct Group {
    /// How it chooses among its buckets.
    pub group_type: GroupType,
    /// Its buckets, each with counters.
    pub buckets: Vec<(Bucket, GroupCounters)>,
    /// Packets that entries and other groups sent to it.
    pub counters: GroupCounters,
    /// The operations of each bucket.
    operations: Vec<Vec<Operation>>,
    /// What tells each bucket from the others when flows are spread.
    identities: Vec<u64>,
}

impl Group {
    fn new(group_type: GroupType, buckets: Vec<Bucket>) -> Self {
        let operations = buckets.iter().map(|bucket| {
            let mut set = ActionSet::default();
            bucket.actions.iter().for_each(|action| set.write(*action));
            set.actions().map(Operation::Action).collect()
        });
        Self {
            group_type,
            operations: operations.collect(),
            identities: identities(&buckets),
            buckets: buckets.into_iter().map(|bucket| (bucket, GroupCounters::default())).collect(),
            counters: GroupCounters::default(),
        }
    }

    /// The groups that buckets lead to or watch.
    fn references(&self) -> impl Iterator<Item = u32> {
        let named = |bucket: &Bucket| {
            let led = bucket.actions.iter().filter_map(|action| match action {
                Action::Group(group) => Some(*group),
                _ => None,
            });
            led.chain(bucket.watch_group).collect::<Vec<u32>>()
        };
        self.buckets.iter().flat_map(move |(bucket, _)| named(bucket))
    }
}

/// The groups of a switch (OpenFlow 1.3.5, 5.6).
#[derive(Clone, Debug, Default)]
pub struct Groups {
    groups: BTreeMap<u32, Group>,
    /// Frames for copies, one for each level of groups.
    buffers: Vec<FrameBuffer>,
}

/// What a group needs to know of a packet and its switch.
#[derive(Clone, Copy)]
pub struct GroupContext<'a> {
    /// The hash of the packet's flow ([`crate::Key::flow_hash`]), from which `select` chooses. Packets of one flow take one
    /// bucket as long as it is live and keeps its weight, whatever other buckets are added and removed.
    pub flow_hash: u64,
    /// Whether a port is up.
    pub is_up: &'a dyn Fn(u32) -> bool,
}

impl Groups {
    /// Adds a group.
    ///
    /// # Errors
    /// See [`GroupError`].
    pub fn add(
        &mut self,
        number: u32,
        group_type: GroupType,
        buckets: Vec<Bucket>,
    ) -> Result<(), GroupError> {
        if self.groups.contains_key(&number) {
            return Err(GroupError::Exists);
        }
        if self.groups.len() >= MAX_GROUPS {
            return Err(GroupError::TooManyGroups);
        }
        let group = self.check(number, group_type, buckets)?;
        self.groups.insert(number, group);
        Ok(())
    }

    /// Replaces type and buckets of a group. Its counters start again.
    ///
    /// # Errors
    /// See [`GroupError`].
    pub fn modify(
        &mut self,
        number: u32,
        group_type: GroupType,
        buckets: Vec<Bucket>,
    ) -> Result<(), GroupError> {
        if !self.groups.contains_key(&number) {
            return Err(GroupError::Unknown);
        }
        let group = self.check(number, group_type, buckets)?;
        self.groups.insert(number, group);
        Ok(())
    }

    /// Removes a group; removing one that does not exist is no error (6.5). The caller removes the flow entries that use
    /// it, by a deletion with [`crate::Change::out_group`].
    ///
    /// # Errors
    /// Another group leads to it or watches it.
    pub fn remove(&mut self, number: u32) -> Result<Option<Group>, GroupError> {
        let mut others = self.groups.iter().filter(|(other, _)| **other != number);
        if others.any(|(_, group)| group.references().any(|reference| reference == number)) {
            return Err(GroupError::Chained);
        }
        Ok(self.groups.remove(&number))
    }

    /// Removes all groups.
    pub fn clear(&mut self) {
        self.groups.clear();
    }

    /// A group.
    #[must_use]
    pub fn get(&self, number: u32) -> Option<&Group> {
        self.groups.get(&number)
    }

    /// All groups, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Group)> {
        self.groups.iter().map(|(number, group)| (*number, group))
    }

    /// Processes a frame by a group, without changing the caller's frame.
    ///
    /// At most 4,096 buckets are performed: groups that lead to each other could otherwise copy a packet without end.
    /// Of the effects, [`Effects::group`] is never called: groups that buckets lead to are processed too. A group that
    /// does not exist, or that has no live bucket to choose, drops the packet.
    pub fn perform(
        &mut self,
        number: u32,
        frame: &[u8],
        state: OutputState,
        context: GroupContext<'_>,
        effects: &mut impl Effects,
    ) {
        let mut effects = Nested { effects, groups: Vec::new(), buckets: MAX_BUCKETS_OF_PACKET };
        self.perform_at(0, number, frame, state, context, &mut effects);
    }

    fn perform_at<E: Effects>(
        &mut self,
        depth: usize,
        number: u32,
        frame: &[u8],
        state: OutputState,
        context: GroupContext<'_>,
        effects: &mut Nested<'_, E>,
    ) {
        let chosen = self.choose(number, context);
        let Some(group) = self.groups.get_mut(&number) else { return };
        group.counters.count(frame);
        for at in chosen {
            let Some(group) = self.groups.get_mut(&number) else { return };
            let (Some((_, counters)), Some(operations)) =
                (group.buckets.get_mut(at), group.operations.get(at))
            else {
                continue;
            };
            let Some(left) = effects.buckets.checked_sub(1) else { return };
            effects.buckets = left;
            counters.count(frame);
            let mut buffer = self.buffers.pop().unwrap_or_default();
            buffer.set(frame);
            let mut bucket_state = state;
            let done = perform(operations, &mut buffer, &mut bucket_state, effects);
            let nested = std::mem::take(&mut effects.groups);
            if done == Performed::All && depth + 1 < MAX_DEPTH {
                for group in nested {
                    self.perform_at(depth + 1, group, buffer.frame(), bucket_state, context, effects);
                }
            }
            self.buffers.push(buffer);
        }
    }

    /// The buckets to perform.
    fn choose(&self, number: u32, context: GroupContext<'_>) -> Vec<usize> {
        let Some(group) = self.groups.get(&number) else { return Vec::new() };
        let is_live = |at: &usize| {
            group.buckets.get(*at).is_some_and(|(bucket, _)| self.is_live(bucket, context.is_up, MAX_DEPTH))
        };
        let all = 0..group.buckets.len();
        match group.group_type {
            GroupType::All | GroupType::Indirect => all.collect(),
            GroupType::FastFailover => all.into_iter().find(is_live).into_iter().collect(),
            GroupType::Select => {
                let score =
                    |at: &usize| score(context.flow_hash, group.identities[*at], group.buckets[*at].0.weight);
                let candidates = all.filter(|at| group.buckets[*at].0.weight > 0).filter(is_live);
                let best = candidates.max_by(|one, other| score(one).total_cmp(&score(other)));
                best.into_iter().collect()
            }
        }
    }

    /// Whether what a bucket watches is up. A bucket that watches nothing is live.
    fn is_live(&self, bucket: &Bucket, is_up: &dyn Fn(u32) -> bool, depth: usize) -> bool {
        let group_is_live = |number: u32| {
            depth > 0
                && self.groups.get(&number).is_some_and(|group| {
                    group.buckets.iter().any(|(bucket, _)| self.is_live(bucket, is_up, depth - 1))
                })
        };
        match (bucket.watch_port, bucket.watch_group) {
            (None, None) => true,
            (port, group) => port.is_some_and(is_up) || group.is_some_and(group_is_live),
        }
    }

    /// A group that may be added under a number.
    fn check(&self, number: u32, group_type: GroupType, buckets: Vec<Bucket>) -> Result<Group, GroupError> {
        if buckets.len() > MAX_BUCKETS {
            return Err(GroupError::TooManyBuckets);
        }
        let is_wrong = match group_type {
            GroupType::Indirect => buckets.len() != 1,
            GroupType::FastFailover => {
                buckets.iter().any(|bucket| bucket.watch_port.is_none() && bucket.watch_group.is_none())
            }
            GroupType::All | GroupType::Select => false,
        };
        if is_wrong || (group_type != GroupType::Select && buckets.iter().any(|bucket| bucket.weight > 1)) {
            return Err(GroupError::Invalid);
        }
        for bucket in &buckets {
            Action::check_all(&bucket.actions).map_err(GroupError::Action)?;
            if bucket.actions.iter().any(Action::is_only_applied) {
                return Err(GroupError::Action(ActionError::OnlyApplied));
            }
        }
        let group = Group::new(group_type, buckets);
        if let Some(missing) =
            group.references().find(|reference| *reference != number && !self.groups.contains_key(reference))
        {
            return Err(GroupError::MissingGroup(missing));
        }
        self.check_depth(number, &group)?;
        Ok(group)
    }

    /// Checks that no group would lead to itself, and that chains are short, if `group` had this number.
    fn check_depth(&self, number: u32, group: &Group) -> Result<(), GroupError> {
        // Levels below the new group.
        let below = self.levels_below(number, group)?;
        // Levels above: the longest chain of groups that lead to the number.
        let (mut above, mut here) = (0, BTreeSet::from([number]));
        loop {
            let leading = self.groups.iter().filter(|(other, _)| **other != number);
            let leading = leading.filter(|(_, group)| group.references().any(|next| here.contains(&next)));
            let next: BTreeSet<u32> = leading.map(|(other, _)| *other).collect();
            if next.is_empty() {
                break;
            }
            above += 1;
            if above > MAX_DEPTH {
                return Err(GroupError::TooDeep);
            }
            here = next;
        }
        if above + below > MAX_DEPTH { Err(GroupError::TooDeep) } else { Ok(()) }
    }

    /// The number of levels of a group and those that it leads to.
    fn levels_below(&self, number: u32, group: &Group) -> Result<usize, GroupError> {
        let (mut levels, mut here) = (1, group.references().collect::<BTreeSet<u32>>());
        while !here.is_empty() {
            if here.contains(&number) {
                return Err(GroupError::Loop);
            }
            levels += 1;
            if levels > MAX_DEPTH {
                return Err(GroupError::TooDeep);
            }
            let groups = here.iter().filter_map(|next| self.groups.get(next));
            here = groups.flat_map(Group::references).collect();
        }
        Ok(levels)
    }
}

/// What tells each bucket from the others: what it watches and does. Of equal buckets the place among these counts too, so that
/// each gets its share.
fn identities(buckets: &[Bucket]) -> Vec<u64> {
    let mut equal = BTreeMap::<u64, u64>::new();
    let identity = |bucket| {
        let identity = identity(bucket);
        let earlier = equal.entry(identity).or_default();
        *earlier += 1;
        if *earlier == 1 { identity } else { mix(identity, *earlier) }
    };
    buckets.iter().map(identity).collect()
}

/// What a bucket watches, and the actions that lead its packets somewhere or change them.
fn identity(bucket: &Bucket) -> u64 {
    let mut identity = 0xcbf2_9ce4_8422_2325;
    let mut add = |word| identity = mix(identity, word);
    add(bucket.watch_port.map_or(0, |port| u64::from(port) + 1));
    add(bucket.watch_group.map_or(0, |group| u64::from(group) + 1));
    for action in &bucket.actions {
        match action {
            Action::Output(Output::Port(port)) => add(u64::from(*port) << 8 | 1),
            Action::Output(Output::Service(service)) => add(u64::from(*service) << 8 | 2),
            Action::Output(Output::Chain(chain)) => add(u64::from(*chain) << 8 | 3),
            Action::Group(group) => add(u64::from(*group) << 8 | 4),
            Action::SetField(field, value) => {
                add(*field as u64);
                add(*value as u64 ^ (*value >> 64) as u64);
            }
            _ => {}
        }
    }
    identity
}

fn mix(identity: u64, word: u64) -> u64 {
    fold(identity ^ word, 0x9e37_79b9_7f4a_7c15)
}

/// The score of a bucket for a flow. The highest one wins (weighted rendezvous hashing; Wang, Ravishankar 1998): the
/// scores of other buckets have no influence, so a change moves only flows to or from the bucket that changes.
fn score(flow_hash: u64, identity: u64, weight: u16) -> f64 {
    let mixed = fold(flow_hash ^ identity, 0xa076_1d64_78bd_642f ^ identity.rotate_left(32));
    // A number between 0 and 1, both excluded.
    let uniform = ((mixed >> 12) as f64 + 0.5) / (1u64 << 52) as f64;
    -f64::from(weight) / uniform.ln()
}

/// Collects the groups that a bucket leads to.
struct Nested<'a, E> {
    effects: &'a mut E,
    groups: Vec<u32>,
    /// Buckets that may still be performed.
    buckets: usize,
}

impl<E: Effects> Effects for Nested<'_, E> {
    fn meter(&mut self, meter: u32, frame: &[u8]) -> crate::perform::MeterVerdict {
        self.effects.meter(meter, frame)
    }

    fn output(&mut self, output: Output, frame: &[u8], state: OutputState) {
        self.effects.output(output, frame, state);
    }

    fn group(&mut self, group: u32, _: &[u8], _: OutputState) {
        self.groups.push(group);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::Field;
    use crate::perform::MeterVerdict;
    use random::Random;

    #[derive(Default)]
    struct Outputs(Vec<(Output, Vec<u8>)>);

    impl Effects for Outputs {
        fn meter(&mut self, _: u32, _: &[u8]) -> MeterVerdict {
            MeterVerdict::Pass
        }

        fn output(&mut self, output: Output, frame: &[u8], _: OutputState) {
            self.0.push((output, frame.to_vec()));
        }

        fn group(&mut self, _: u32, _: &[u8], _: OutputState) {
            unreachable!("groups are processed by `Groups`");
        }
    }

    fn out(port: u32) -> Action {
        Action::Output(Output::Port(port))
    }

    fn bucket(actions: &[Action]) -> Bucket {
        Bucket { actions: actions.to_vec(), ..Bucket::default() }
    }

    /// The ports and the first bytes of the frames that leave a group.
    fn ports(
        groups: &mut Groups,
        number: u32,
        flow_hash: u64,
        is_up: &dyn Fn(u32) -> bool,
    ) -> Vec<(u32, u8)> {
        let mut outputs = Outputs::default();
        let context = GroupContext { flow_hash, is_up };
        groups.perform(number, &[0; 60], OutputState::default(), context, &mut outputs);
        let port = |output: &Output| match output {
            Output::Port(port) => *port,
            other => panic!("{other:?}"),
        };
        outputs.0.iter().map(|(output, frame)| (port(output), frame[5])).collect()
    }

    const UP: &dyn Fn(u32) -> bool = &|_| true;

    #[test]
    fn each_bucket_of_all_gets_its_own_copy() {
        let mut groups = Groups::default();
        let change = Action::SetField(Field::EthDst, 9);
        groups.add(5, GroupType::Indirect, vec![bucket(&[out(7), change])]).unwrap();
        let buckets = vec![bucket(&[out(1), change]), bucket(&[out(2)]), bucket(&[Action::Group(5)])];
        groups.add(1, GroupType::All, buckets).unwrap();
        assert_eq!(ports(&mut groups, 1, 0, UP), [(1, 9), (2, 0), (7, 9)]);
        assert_eq!(ports(&mut groups, 2, 0, UP), [], "no such group");
        let group = groups.get(1).unwrap();
        let one = GroupCounters { packets: 1, bytes: 60 };
        assert_eq!((group.counters, group.buckets[2].1, groups.get(5).unwrap().counters), (one, one, one));
    }

    #[test]
    fn failover_takes_the_first_live_bucket() {
        let mut groups = Groups::default();
        let watch = |port: u32| Bucket { watch_port: Some(port), ..bucket(&[out(port)]) };
        groups.add(1, GroupType::FastFailover, vec![watch(1), watch(2)]).unwrap();
        let over = Bucket { watch_group: Some(1), ..bucket(&[Action::Group(1)]) };
        groups.add(2, GroupType::FastFailover, vec![over, watch(3)]).unwrap();
        assert_eq!(ports(&mut groups, 2, 0, UP), [(1, 0)]);
        assert_eq!(ports(&mut groups, 2, 0, &|port| port != 1), [(2, 0)]);
        assert_eq!(ports(&mut groups, 2, 0, &|port| port == 3), [(3, 0)]);
        assert_eq!(ports(&mut groups, 2, 0, &|_| false), []);
    }

    #[test]
    fn select_follows_weights_and_moves_no_other_flow() {
        let mut groups = Groups::default();
        let weighted =
            |port: u32, weight: u16| Bucket { weight, watch_port: Some(port), ..bucket(&[out(port)]) };
        let buckets = vec![weighted(1, 1), weighted(2, 2), weighted(3, 5), weighted(4, 0)];
        groups.add(1, GroupType::Select, buckets.clone()).unwrap();
        let mut random = Random::new(1);
        let flows: Vec<u64> = (0..60_000).map(|_| random.next()).collect();
        let choose = |groups: &mut Groups, is_up: &dyn Fn(u32) -> bool| -> Vec<u32> {
            flows.iter().map(|flow| ports(groups, 1, *flow, is_up)[0].0).collect()
        };
        let before = choose(&mut groups, UP);
        let share = |port: u32| before.iter().filter(|chosen| **chosen == port).count() as f64 / 60_000.0;
        for (port, expected) in [(1, 0.125), (2, 0.25), (3, 0.625), (4, 0.0)] {
            let found: f64 = share(port);
            assert!((found - expected).abs() < 0.01, "{port}: {found}");
        }
        let without = choose(&mut groups, &|port| port != 2);
        let moved = before.iter().zip(&without).filter(|(before, after)| before != after);
        assert!(moved.clone().all(|(before, after)| *before == 2 && *after != 2) && moved.count() > 10_000);
        let more = [buckets, vec![weighted(5, 4)]].concat();
        groups.modify(1, GroupType::Select, more).unwrap();
        let after = choose(&mut groups, UP);
        assert!(before.iter().zip(&after).all(|(before, after)| before == after || *after == 5));
    }

    #[test]
    fn equal_buckets_have_a_share_each() {
        let mut groups = Groups::default();
        let weighted = |port: u32, weight: u16| Bucket { weight, ..bucket(&[out(port)]) };
        let buckets = [(1, 2), (1, 1), (2, 3), (1, 2)].map(|(port, weight)| weighted(port, weight));
        groups.add(1, GroupType::Select, buckets.to_vec()).unwrap();
        let mut random = Random::new(1);
        let mut sent = [0; 2];
        for _ in 0..60_000 {
            sent[ports(&mut groups, 1, random.next(), UP)[0].0 as usize - 1] += 1;
        }
        let group = groups.get(1).unwrap();
        let packets: Vec<u64> = group.buckets.iter().map(|(_, counters)| counters.packets).collect();
        for (found, expected) in packets.iter().zip([15_000, 7_500, 22_500, 15_000]) {
            assert!(found.abs_diff(expected) < 600, "{packets:?}");
        }
        assert_eq!(sent, [packets[0] + packets[1] + packets[3], packets[2]]);
        assert_eq!((sent.iter().sum::<u64>(), group.counters.packets), (60_000, 60_000));
    }

    #[test]
    fn wrong_groups_are_refused() {
        let mut groups = Groups::default();
        let to = |group: u32| vec![bucket(&[Action::Group(group)])];
        assert_eq!(groups.add(1, GroupType::All, to(2)), Err(GroupError::MissingGroup(2)));
        assert_eq!(groups.add(1, GroupType::All, to(1)), Err(GroupError::Loop));
        assert_eq!(groups.add(1, GroupType::Indirect, Vec::new()), Err(GroupError::Invalid));
        assert_eq!(groups.add(1, GroupType::FastFailover, vec![bucket(&[out(1)])]), Err(GroupError::Invalid));
        let bad = vec![bucket(&[Action::SetField(Field::InPort, 1)])];
        let refused = GroupError::Action(ActionError::NotSettable(Field::InPort));
        assert_eq!(groups.add(1, GroupType::All, bad), Err(refused));
        groups.add(1, GroupType::All, vec![bucket(&[out(1)])]).unwrap();
        assert_eq!(groups.add(1, GroupType::All, Vec::new()), Err(GroupError::Exists));
        assert_eq!(groups.modify(2, GroupType::All, Vec::new()), Err(GroupError::Unknown));
        for number in 2..=MAX_DEPTH as u32 {
            groups.add(number, GroupType::All, to(number - 1)).unwrap();
        }
        assert_eq!(ports(&mut groups, MAX_DEPTH as u32, 0, UP), [(1, 0)], "a chain of the greatest length");
        assert_eq!(groups.add(99, GroupType::All, to(MAX_DEPTH as u32)), Err(GroupError::TooDeep));
        assert_eq!(groups.modify(1, GroupType::All, to(5)), Err(GroupError::Loop));
        groups.add(98, GroupType::All, Vec::new()).unwrap();
        assert_eq!(groups.modify(1, GroupType::All, to(98)), Err(GroupError::TooDeep));
        assert!(matches!(groups.remove(1), Err(GroupError::Chained)));
        assert!(groups.remove(MAX_DEPTH as u32).unwrap().is_some() && groups.remove(77).unwrap().is_none());
    }
}
