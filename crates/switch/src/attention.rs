//! Which ports a round visits.
//!
//! To ask an idle port whether it has frames costs a cache line that its other end writes. A round therefore asks all ports of one
//! group, and of the other groups only those that had frames since the group's turn before. The more frames a round moved, the
//! longer it took, so the more groups have their turn in the next one: an idle port waits about as long under load as without.
//! A switch with few ports has one group, of which each round asks all.

use crate::port::PortId;

/// Ports of a group: bits of a word.
const GROUP: usize = u64::BITS as usize;

/// Of each port of a group, a bit.
#[derive(Clone, Copy, Debug, Default)]
struct Group {
    /// The ports that are asked.
    asked: u64,
    /// Those that had frames since the group's turn.
    recent: u64,
}

/// The ports that are asked in each round.
#[derive(Debug, Default)]
pub(crate) struct Attention {
    groups: Vec<Group>,
    /// The first of the groups whose turn it is.
    turn: usize,
    /// The number of groups whose turn it is.
    turns: usize,
    ports: usize,
}

impl Attention {
    /// Begins a round over this many ports. `quanta`: the frames of the round before, in quanta of a visit.
    pub(crate) fn begin_round(&mut self, ports: usize, quanta: usize) {
        self.ports = ports;
        self.groups.resize(ports.div_ceil(GROUP), Group::default());
        let count = self.groups.len();
        for _ in 0..self.turns {
            if let Some(group) = self.groups.get_mut(self.turn) {
                group.asked = std::mem::take(&mut group.recent);
            }
            self.turn = if self.turn + 1 < count { self.turn + 1 } else { 0 };
        }
        // To ask a group takes 2 to 3 us, and a quantum of frames about 25 us.
        self.turns = (1 + quanta).min(count);
        for ahead in 0..self.turns {
            if let Some(group) = self.groups.get_mut((self.turn + ahead) % count) {
                group.asked = u64::MAX;
            }
        }
    }

    /// The next port of this round, from a number on.
    #[inline]
    pub(crate) fn next_from(&self, first: usize) -> Option<PortId> {
        let mut masked = u64::MAX << (first % GROUP);
        for (number, group) in self.groups.iter().enumerate().skip(first / GROUP) {
            let asked = group.asked & masked;
            if asked != 0 {
                let port = number * GROUP + asked.trailing_zeros() as usize;
                return (port < self.ports).then_some(PortId(port as u16));
            }
            masked = u64::MAX;
        }
        None
    }

    /// Notes that a port had frames.
    #[inline]
    pub(crate) fn note_frames(&mut self, port: PortId) {
        let (group, bit) = (usize::from(port.0) / GROUP, 1 << (usize::from(port.0) % GROUP));
        if let Some(group) = self.groups.get_mut(group) {
            group.recent |= bit;
            group.asked |= bit;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(attention: &mut Attention, ports: usize) -> Vec<u16> {
        loaded_round(attention, ports, 0)
    }

    /// The ports that are asked after a round that moved so many quanta of frames.
    fn loaded_round(attention: &mut Attention, ports: usize, quanta: usize) -> Vec<u16> {
        attention.begin_round(ports, quanta);
        let mut asked = Vec::new();
        while let Some(port) = attention.next_from(asked.last().map_or(0, |last| usize::from(*last) + 1)) {
            asked.push(port.0);
        }
        asked
    }

    #[test]
    fn few_ports_are_asked_in_each_round() {
        let mut attention = Attention::default();
        for ports in [0, 1, 63, 64, 64, 7] {
            assert_eq!(round(&mut attention, ports), Vec::from_iter(0..ports as u16));
        }
    }

    #[test]
    fn of_many_ports_those_are_asked_that_have_frames() {
        let mut attention = Attention::default();
        let groups: [Vec<u16>; 3] = [(0..64).collect(), (64..128).collect(), (128..130).collect()];
        assert_eq!(round(&mut attention, 130), groups[0]);
        assert_eq!(round(&mut attention, 130), groups[1]);
        attention.note_frames(PortId(70));
        assert_eq!(round(&mut attention, 130), [&[70], &groups[2][..]].concat());
        assert_eq!(round(&mut attention, 130), [&groups[0][..], &[70]].concat());
        attention.note_frames(PortId(3));
        assert_eq!(round(&mut attention, 130), [&[3], &groups[1][..]].concat());
        attention.note_frames(PortId(3));
        // Nothing came from port 70 since.
        assert_eq!(round(&mut attention, 130), [&[3], &groups[2][..]].concat());
        assert_eq!(round(&mut attention, 130), groups[0]);
        assert_eq!(round(&mut attention, 130), [&[3], &groups[1][..]].concat());
        // Nothing came from port 3 either, and ports that are gone are not asked.
        assert_eq!(round(&mut attention, 2), [0, 1]);
    }

    #[test]
    fn after_more_frames_more_groups_have_their_turn() {
        let mut attention = Attention::default();
        let ports =
            |groups: &[u16]| groups.iter().flat_map(|group| group * 64..group * 64 + 64).collect::<Vec<_>>();
        assert_eq!(loaded_round(&mut attention, 320, 0), ports(&[0]));
        assert_eq!(loaded_round(&mut attention, 320, 1), ports(&[1, 2]));
        attention.note_frames(PortId(64));
        attention.note_frames(PortId(130));
        assert_eq!(
            loaded_round(&mut attention, 320, 2),
            [ports(&[0]), vec![64, 130], ports(&[3, 4])].concat()
        );
        assert_eq!(round(&mut attention, 320), ports(&[1]).into_iter().chain([130]).collect::<Vec<_>>());
        // Never more than there are, also if there are fewer now.
        assert_eq!(loaded_round(&mut attention, 320, 100), ports(&[0, 1, 2, 3, 4]));
        assert_eq!(loaded_round(&mut attention, 128, 100), ports(&[0, 1]));
        assert_eq!(round(&mut attention, 0), []);
        assert_eq!(round(&mut attention, 64), ports(&[0]));
    }
}
