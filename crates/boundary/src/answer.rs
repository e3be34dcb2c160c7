//! What a box answers for each packet that it sends to a switch.

/// The answer for a packet, in the metadata of its descriptor.
///
/// A number is an index in the list of destinations that the host gave the box, so it is valid for this box only. The host
/// checks each answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Answer {
    /// The packet goes on as its chain says; without a chain, the switch looks it up.
    #[default]
    Next,
    /// It goes to an instance of the service that is this destination.
    Service(u16),
    /// It leaves through the port that is this destination.
    Port(u16),
    /// The switch drops it.
    Drop,
    /// The switch looks it up.
    LookUp,
    /// It enters the chain that is this destination.
    Chain(u16),
    /// So does it, and with it the later packets of its flow.
    FlowChain(u16),
}

/// Largest number of a destination in an answer.
pub const MAX_DESTINATION: u16 = (1 << 12) - 1;

const KIND_BITS: u16 = 3;

impl Answer {
    /// The answer in the metadata of a descriptor. An unknown one is the default: a box can say nothing by it.
    #[inline]
    pub const fn from_meta(meta: u16) -> Self {
        let destination = meta >> KIND_BITS & MAX_DESTINATION;
        match meta & ((1 << KIND_BITS) - 1) {
            1 => Self::Service(destination),
            2 => Self::Port(destination),
            3 => Self::Drop,
            4 => Self::LookUp,
            5 => Self::Chain(destination),
            6 => Self::FlowChain(destination),
            _ => Self::Next,
        }
    }

    /// The metadata with this answer. A destination is at most [`MAX_DESTINATION`].
    #[inline]
    pub const fn to_meta(self) -> u16 {
        match self {
            Self::Next => 0,
            Self::Service(destination) => (destination & MAX_DESTINATION) << KIND_BITS | 1,
            Self::Port(destination) => (destination & MAX_DESTINATION) << KIND_BITS | 2,
            Self::Drop => 3,
            Self::LookUp => 4,
            Self::Chain(destination) => (destination & MAX_DESTINATION) << KIND_BITS | 5,
            Self::FlowChain(destination) => (destination & MAX_DESTINATION) << KIND_BITS | 6,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_as_written() {
        let answers = [
            Answer::Next,
            Answer::Service(0),
            Answer::Service(MAX_DESTINATION),
            Answer::Port(7),
            Answer::Drop,
            Answer::LookUp,
            Answer::Chain(3),
            Answer::FlowChain(MAX_DESTINATION),
        ];
        for answer in answers {
            assert_eq!(Answer::from_meta(answer.to_meta()), answer);
            assert!(answer.to_meta() < 1 << 15);
        }
        for meta in 0..=u16::MAX {
            let answer = Answer::from_meta(meta);
            assert_eq!(Answer::from_meta(answer.to_meta()), answer);
        }
    }
}
