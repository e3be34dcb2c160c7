//! Messages between a host and its helper: a few words, and descriptors beside them.

use crate::process::isolation::{Isolation, Layer, MissingLayer};
use crate::process::spawner::step::{Failure, Step};

/// Words of a message.
pub(super) const WORDS: usize = 13;

/// Layers that the helper enters.
pub(super) const LAYERS: usize = 10;

/// The result of each layer: the step that failed and the error number.
pub(super) type LayerResults = [Result<(), Failure>; LAYERS];

/// Maximum descriptors of a message: region, mailbox event, wake event, snapshot, pool and image.
pub(super) const MAX_DESCRIPTORS: usize = 6;

/// The words of a message.
pub(super) type Words = [u64; WORDS];

/// The optional descriptors of a new process, in the order in which they follow the two that every process has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Optional {
    pub(super) wake_event: bool,
    pub(super) snapshot: bool,
    pub(super) pool: bool,
    pub(super) image: bool,
}

impl Optional {
    fn bits(self) -> u64 {
        u64::from(self.wake_event)
            | u64::from(self.snapshot) << 1
            | u64::from(self.pool) << 2
            | u64::from(self.image) << 3
    }

    fn from_bits(bits: u64) -> Self {
        let has = |bit: u64| bits & bit != 0;
        Self { wake_event: has(1), snapshot: has(2), pool: has(4), image: has(8) }
    }
}

/// What a host orders. Processes are named by their ids as the helper sees them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Enter the isolation: the first order. The reply is [`Reply::Entered`].
    Enter { changes_user: bool },
    /// Create a process from the descriptors of this message: region, mailbox event, and the optional ones. The reply is
    /// [`Reply::Spawned`] with its pidfd, or [`Reply::Failed`]. Its mappings may take `address_space` bytes.
    Spawn { optional: Optional, address_space: u64 },
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
            Self::Enter { changes_user } => words([0, u64::from(changes_user), 0]),
            Self::Spawn { optional, address_space } => words([1, optional.bits(), address_space]),
            Self::Reap { process } => words([2, word(process), 0]),
            Self::WatchStop { process } => words([3, word(process), 0]),
            Self::Discard { process } => words([4, word(process), 0]),
        }
    }

    pub(super) fn decode(words: Words) -> Option<Self> {
        let [kind, first, second, ..] = words;
        let process = number(first);
        Some(match kind {
            0 => Self::Enter { changes_user: first != 0 },
            1 => Self::Spawn { optional: Optional::from_bits(first), address_space: second },
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
    /// The isolation was entered, but for the layers that failed.
    Entered { results: LayerResults },
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
            Self::Entered { results } => {
                let result = |result| match result {
                    Ok(()) => 0,
                    Err((step, errno)) => (step as u64 + 1) << 32 | word(errno),
                };
                let mut words = words([0, 0, 0]);
                for (word, layer) in words.iter_mut().skip(1).zip(results) {
                    *word = result(layer);
                }
                words
            }
            Self::Spawned { process } => words([1, word(process), 0]),
            Self::Ended { status } => words([2, word(status), 0]),
            Self::Failed { step, errno } => words([3, step as u64, word(errno)]),
        }
    }

    pub(super) fn decode(words: Words) -> Option<Self> {
        let [kind, first, second, ..] = words;
        Some(match kind {
            0 => {
                let mut results = [Ok(()); LAYERS];
                for (result, word) in results.iter_mut().zip(words.into_iter().skip(1)) {
                    *result = match word >> 32 {
                        0 => Ok(()),
                        step => Err((Step::from_number(step - 1)?, number(word))),
                    };
                }
                Self::Entered { results }
            }
            1 => Self::Spawned { process: number(first) },
            2 => Self::Ended { status: number(first) },
            3 => Self::Failed { step: Step::from_number(first)?, errno: number(second) },
            _ => return None,
        })
    }
}

/// What isolates the boxes of a helper, as words: for each layer zero, or the step that failed and the error number.
pub(super) fn encode_isolation(isolation: &Isolation) -> Words {
    let mut words = [0; WORDS];
    for (place, layer) in words.iter_mut().skip(1).zip(Layer::ALL) {
        let missing = isolation.missing().iter().find(|missing| missing.layer == *layer);
        *place = missing.map_or(0, |missing| {
            let step = Step::named(missing.step).map_or(0, |step| step as u64);
            (step + 1) << 32 | word(missing.errno)
        });
    }
    words
}

/// The reverse of [`encode_isolation`].
pub(super) fn decode_isolation(words: Words) -> Option<Isolation> {
    let mut missing = Vec::new();
    for (word, layer) in words.into_iter().skip(1).zip(Layer::ALL) {
        if word >> 32 != 0 {
            let step = Step::from_number((word >> 32) - 1)?.name();
            missing.push(MissingLayer { layer: *layer, step, errno: number(word) });
        }
    }
    Some(Isolation::new(missing))
}

fn words([kind, first, second]: [u64; 3]) -> Words {
    let mut words = [0; WORDS];
    words[..3].copy_from_slice(&[kind, first, second]);
    words
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
    fn isolation_is_read_as_it_was_written() {
        assert!(Layer::ALL.len() < WORDS);
        let missing = |layer: &Layer, step: Step| MissingLayer { layer: *layer, step: step.name(), errno: 7 };
        let all = Layer::ALL.iter().zip([Step::CreateCgroup, Step::Execute].into_iter().cycle());
        let none = Isolation::default();
        for isolation in [none, Isolation::new(all.map(|(layer, step)| missing(layer, step)).collect())] {
            assert_eq!(decode_isolation(encode_isolation(&isolation)), Some(isolation));
        }
        assert_eq!(decode_isolation([u64::MAX; WORDS]), None);
    }

    #[test]
    fn messages_are_read_as_they_were_written() {
        for bits in 0..16 {
            let order = Order::Spawn { optional: Optional::from_bits(bits), address_space: 7 << 33 };
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
        for changes_user in [true, false] {
            assert_eq!(
                Order::decode(Order::Enter { changes_user }.encode()),
                Some(Order::Enter { changes_user })
            );
        }
        let mut results = [Ok(()); LAYERS];
        results[0] = Err((Step::ReceiveDescriptors, 0));
        results[LAYERS - 1] = Err((Step::Execute, libc::EPERM));
        let entered = Reply::Entered { results };
        assert_eq!(Reply::decode(entered.encode()), Some(entered));
        assert_eq!((Order::decode([9; WORDS]), Reply::decode([9; WORDS])), (None, None));
        assert_eq!(Reply::decode(words([3, 999, 0])), None);
    }
}
