//! What lists of actions send, and in which order: random entries and groups beside a reference that follows the text of the
//! specification.

use super::*;
use flow_table::GroupCounters;
use random::Random;
use std::collections::BTreeMap;

/// The port whose link is down.
const DOWN: u16 = 2;

/// The groups, and what has become of frames from port 0. Frames are told apart by the last byte of their source.
#[derive(Default)]
struct Reference {
    groups: BTreeMap<u32, (GroupType, Vec<Bucket>)>,
    /// The port, or the controller, in order.
    sent: Vec<(Option<u16>, u8)>,
    lost: Vec<Reason>,
    /// The packets of each group and bucket.
    counts: BTreeMap<(u32, Option<usize>), u64>,
}

impl Reference {
    /// Performs a list of actions in its order (OpenFlow 1.3.5, 5.11). Returns the source afterwards.
    fn list(&mut self, actions: &[Action], mut source: u8) -> u8 {
        for action in actions {
            match *action {
                Action::SetField(Field::EthSrc, value) => source = value as u8,
                Action::Output(output) => self.output(output, source),
                Action::Group(group) => self.group(group, source),
                other => panic!("{other:?}"),
            }
        }
        source
    }

    /// Performs a set of actions (5.10): the last one of each type, changes first, and a group in place of an output.
    fn set(&mut self, actions: &[Action], source: u8) {
        let last = |is: fn(&Action) -> bool| actions.iter().rfind(|action| is(action)).copied();
        let change = last(|action| matches!(action, Action::SetField(..)));
        let group = last(|action| matches!(action, Action::Group(_)));
        let output = last(|action| matches!(action, Action::Output(_)));
        let list: Vec<Action> = change.into_iter().chain(group.or(output)).collect();
        self.list(&list, source);
    }

    /// What a port or the controller got, in order.
    fn sent_to(&self, port: Option<u16>) -> Vec<u8> {
        self.sent.iter().filter(|(to, _)| *to == port).map(|(_, source)| *source).collect()
    }

    fn output(&mut self, output: Output, source: u8) {
        match output {
            Output::InPort => self.sent.push((Some(0), source)),
            Output::Controller { .. } => self.sent.push((None, source)),
            Output::Port(1) => self.lost.push(Reason::SAME_PORT),
            Output::Port(key) if key <= u32::from(PORTS) => {
                self.sent.push((Some(key as u16 - 1), source));
            }
            _ => self.lost.push(Reason::NO_ROUTE),
        }
    }

    fn group(&mut self, number: u32, source: u8) {
        let (group_type, buckets) = self.groups[&number].clone();
        *self.counts.entry((number, None)).or_default() += 1;
        let is_live = |bucket: &Bucket| bucket.watch_port != Some(u32::from(DOWN) + 1);
        let chosen: Vec<usize> = match group_type {
            GroupType::All => (0..buckets.len()).collect(),
            // Only one bucket may be chosen.
            GroupType::Select | GroupType::Indirect => vec![0],
            GroupType::FastFailover => buckets.iter().position(is_live).into_iter().collect(),
        };
        for at in chosen {
            *self.counts.entry((number, Some(at))).or_default() += 1;
            self.set(&buckets[at].actions, source);
        }
    }
}

/// Random actions; those of buckets lead to groups of lower numbers only.
fn actions(random: &mut Random, groups: u32, most: u32) -> Vec<Action> {
    let action = |random: &mut Random| match random.below(8) {
        0 | 1 => Action::SetField(Field::EthSrc, u128::from(0x0200_0000_0000 + u64::from(random.below(200)))),
        2 | 3 if groups > 0 => Action::Group(1 + random.below(groups)),
        4 => to_controller(),
        5 => Action::Output(Output::InPort),
        _ => out([0, 1, 1, 2, 3, 8][random.below(6) as usize]),
    };
    (0..random.below(most + 1)).map(|_| action(random)).collect()
}

fn group(random: &mut Random, number: u32) -> (GroupType, Vec<Bucket>) {
    let bucket =
        |random: &mut Random| Bucket { actions: actions(random, number - 1, 3), ..Bucket::default() };
    let count = random.below(4);
    match random.below(4) {
        0 => (GroupType::All, (0..count).map(|_| bucket(random)).collect()),
        1 => (GroupType::Indirect, vec![bucket(random)]),
        2 => {
            let others = (0..count).map(|_| bucket(random)).collect::<Vec<_>>();
            let first = Bucket { weight: 1, ..bucket(random) };
            (GroupType::Select, [vec![first], others].concat())
        }
        _ => {
            let watching = |random: &mut Random| {
                let port = [1, DOWN][random.below(2) as usize];
                Bucket { watch_port: Some(u32::from(port) + 1), ..bucket(random) }
            };
            (GroupType::FastFailover, (0..count).map(|_| watching(random)).collect())
        }
    }
}

/// Each port, and the controller, gets frames in the order of the lists: what a group sends comes where the list has it. Every frame
/// and copy is counted.
#[test]
fn frames_leave_in_the_order_of_the_actions() {
    let mut random = Random::new(41);
    let mut most = 0;
    for _ in 0..400 {
        let mut bench = Bench::connected(FailMode::Secure);
        bench.shards().set_port_up(PortKey(DOWN + 1), false);
        let mut reference = Reference::default();
        for number in 1..5 {
            let (group_type, buckets) = group(&mut random, number);
            bench.shards().add_group(number, group_type, &buckets, 0).expect("a group");
            reference.groups.insert(number, (group_type, buckets));
        }
        let [mut first, mut second] = [(); 2].map(|()| {
            let mut change = entry(1, Match::any(), &actions(&mut random, 4, 8));
            change.instructions.write = actions(&mut random, 4, 3);
            change
        });
        (first.instructions.goto, second.table) = (Some(1), Some(1));
        [&first, &second].into_iter().for_each(|change| bench.add(change));
        let set = [&*first.instructions.write, &*second.instructions.write].concat();
        let mut planned = 0;
        for sender in 200..203 {
            reference.sent.clear();
            let lost = reference.lost.len();
            let source = reference.list(&first.instructions.apply, sender);
            let source = reference.list(&second.instructions.apply, source);
            reference.set(&set, source);
            if reference.sent.is_empty() && reference.lost.len() == lost {
                reference.lost.push(Reason::FLOW_DROP);
            }
            let sent = bench.send_in_order(0, &[frame(1, sender)], 0);
            let packets = bench.packets();
            for port in 0..PORTS {
                let frames = sent.iter().filter(|(to, _)| *to == port).map(|(_, frame)| frame[11]);
                assert_eq!(frames.collect::<Vec<_>>(), reference.sent_to(Some(port)), "{first:?} {second:?}");
            }
            let frames = packets.iter().map(|packet| packet.frame[11]);
            assert_eq!(frames.collect::<Vec<_>>(), reference.sent_to(None), "{first:?} {second:?}");
            planned += sent.len() as u64;
            most = most.max(sent.len() + packets.len());
        }
        for reason in REASONS {
            let expected = reference.lost.iter().filter(|lost| **lost == reason).count() as u64;
            assert_eq!(bench.dropped(reason), expected, "{reason:?} {first:?} {second:?}");
        }
        for (number, (_, buckets)) in &reference.groups {
            let counted = |bucket| {
                let packets = reference.counts.get(&(*number, bucket)).copied().unwrap_or(0);
                GroupCounters { packets, bytes: packets * 60 }
            };
            let expected = (counted(None), (0..buckets.len()).map(|at| counted(Some(at))).collect());
            assert_eq!(bench.shards().group_counters(*number), expected);
        }
        let mut counted = Vec::new();
        bench.shards().entries_from(0, 100, |entry| counted.push((entry.packets, entry.bytes)));
        assert_eq!(counted, [(3, 180); 2]);
        bench.check_books(planned);
    }
    assert!(most > 10, "{most} copies of a frame");
}
