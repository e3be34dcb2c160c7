//! Messages between a host and its helper: a few words, and descriptors beside them.

use crate::process::spawner::step::Step;

/// Words of a message.
pub(super) const WORDS: usize = 4;

/// Maximum descriptors of a message: region, mailbox event, wake event, snapshot and pool.
pub(super) const MAX_DESCRIPTORS: usize = 5;

/// The words of a message.
pub(super) type Words = [u64; WORDS];

/// The optional descriptors of a new process, in the order in which they follow the two that every process has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Optional {
    pub(super) wake_event: bool,
    pub(super) snapshot: bool,
    pub(super) pool: bool,
}

impl Optional {
    fn bits(self) -> u64 {
        u64::from(self.wake_event) | u64::from(self.snapshot) << 1 | u64::from(self.pool) << 2
    }

    fn from_bits(bits: u64) -> Self {
        Self { wake_event: bits & 1 != 0, snapshot: bits & 2 != 0, pool: bits & 4 != 0 }
    }
}

/// What a host orders. Processes are named by their ids as the helper sees them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Create a process from the descriptors of this message: region, mailbox event, and the optional ones. The reply is
    /// [`Reply::Spawned`] with its pidfd, or [`Reply::Failed`].
    Spawn { optional: Optional },
    /// Report how a process ended, and forget it. The reply is [`Reply::Ended`], or [`Reply::Failed`].
    Reap { process: i32 },
    /// Signal the event in this message when the process has stopped. There is no reply.
    WatchStop { process: i32 },
    /// Kill a process and forget it. The reply is [`Reply::Ended`], or [`Reply::Failed`].
    Discard { process: i32 },
}

impl Order {
    pub(super) fn encode(self) -> Words {
        match self {
            Self::Spawn { optional } => [1, optional.bits(), 0, 0],
            Self::Reap { process } => [2, word(process), 0, 0],
            Self::WatchStop { process } => [3, word(process), 0, 0],
            Self::Discard { process } => [4, word(process), 0, 0],
        }
    }

    pub(super) fn decode(words: Words) -> Option<Self> {
        let [kind, first, ..] = words;
        let process = number(first);
        Some(match kind {
            1 => Self::Spawn { optional: Optional::from_bits(first) },
            2 => Self::Reap { process },
            3 => Self::WatchStop { process },
            4 => Self::Discard { process },
            _ => return None,
        })
    }
}

/// What the helper replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    /// The process was created and executes the image.
    Spawned { process: i32 },
    /// The process has ended: its exit status, or the negated number of the signal that ended it.
    Ended { status: i32 },
    /// This step failed, with this error number.
    Failed { step: Step, errno: i32 },
}

impl Reply {
    pub(super) fn encode(self) -> Words {
        match self {
            Self::Spawned { process } => [1, word(process), 0, 0],
            Self::Ended { status } => [2, word(status), 0, 0],
            Self::Failed { step, errno } => [3, step as u64, word(errno), 0],
        }
    }

    pub(super) fn decode(words: Words) -> Option<Self> {
        let [kind, first, second, _] = words;
        Some(match kind {
            1 => Self::Spawned { process: number(first) },
            2 => Self::Ended { status: number(first) },
            3 => Self::Failed { step: Step::from_number(first)?, errno: number(second) },
            _ => return None,
        })
    }
}

/// A number as a word, and back.
fn word(number: i32) -> u64 {
    u64::from(number.cast_unsigned())
}

fn number(word: u64) -> i32 {
    (word as u32).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_as_they_were_written() {
        for bits in 0..8 {
            let order = Order::Spawn { optional: Optional::from_bits(bits) };
            assert_eq!(Order::decode(order.encode()), Some(order));
        }
        for process in [1, 77, i32::MAX] {
            for order in [Order::Reap { process }, Order::WatchStop { process }, Order::Discard { process }] {
                assert_eq!(Order::decode(order.encode()), Some(order));
            }
        }
        for number in [i32::MIN, -9, 0, 3, i32::MAX] {
            let failed = Reply::Failed { step: Step::Execute, errno: number };
            for reply in [Reply::Spawned { process: number }, Reply::Ended { status: number }, failed] {
                assert_eq!(Reply::decode(reply.encode()), Some(reply));
            }
        }
        assert_eq!((Order::decode([0; WORDS]), Reply::decode([9; WORDS])), (None, None));
        assert_eq!(Reply::decode([3, 999, 0, 0]), None);
    }
}
