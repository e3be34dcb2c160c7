//! What an element does with packets, apart from passing them on.

/// What can happen to packets at an element. A class declares its fates; passing a packet on unchanged is none.
///
/// The first seven are counted, each where it happens. Then for each element, at rest:
///
/// `in + received + made + copied = out + delivered + discarded + consumed + merged + lost + waiting`
///
/// [`Lost`](Fate::Lost) is counted by [reason](crate::Reason). [`Waiting`](Fate::Waiting) is measured when it is read.
/// [`Changed`](Fate::Changed) is only declared: the packet goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Fate {
    /// Came into the configuration: from a device, a socket or a file.
    Received,
    /// Was made by the element. A packet that found no buffer is made, and lost as `no_buffer`.
    Made,
    /// Is a copy that the element made of a packet. A copy that found no buffer is copied, and lost as `no_buffer`.
    Copied,
    /// Left the configuration: to a device, a socket or a file.
    Delivered,
    /// Ended as the configuration says: in `Discard`, for instance.
    Discarded,
    /// Was used up by the element, which acted on its contents.
    Consumed,
    /// Became a part of another packet.
    Merged,
    /// Was lost, for one of the reasons that the class declares.
    Lost,
    /// Waits in the element.
    Waiting,
    /// Goes on with other contents. Annotations do not count.
    Changed,
}

impl Fate {
    /// All fates, in their order.
    pub const ALL: [Fate; 10] = [
        Fate::Received,
        Fate::Made,
        Fate::Copied,
        Fate::Delivered,
        Fate::Discarded,
        Fate::Consumed,
        Fate::Merged,
        Fate::Lost,
        Fate::Waiting,
        Fate::Changed,
    ];

    /// Those that have a counter, in the order of [`FateCounts::counts`].
    pub const COUNTED: [Fate; 7] = [
        Fate::Received,
        Fate::Made,
        Fate::Copied,
        Fate::Delivered,
        Fate::Discarded,
        Fate::Consumed,
        Fate::Merged,
    ];

    /// Its name in handlers, metrics and the reference.
    pub fn name(self) -> &'static str {
        match self {
            Fate::Received => "received",
            Fate::Made => "made",
            Fate::Copied => "copied",
            Fate::Delivered => "delivered",
            Fate::Discarded => "discarded",
            Fate::Consumed => "consumed",
            Fate::Merged => "merged",
            Fate::Lost => "lost",
            Fate::Waiting => "waiting",
            Fate::Changed => "changed",
        }
    }

    /// What it means for packets of an element, in a sentence.
    pub fn summary(self) -> &'static str {
        match self {
            Fate::Received => "The element brings packets in from a device, a socket or a file.",
            Fate::Made => "The element makes packets of its own.",
            Fate::Copied => "The element copies packets.",
            Fate::Delivered => "Packets leave the configuration here: to a device, a socket or a file.",
            Fate::Discarded => "Packets end here, as the configuration says.",
            Fate::Consumed => "The element acts on the contents of packets, which end here.",
            Fate::Merged => "Packets become a part of other packets.",
            Fate::Lost => "Packets can be lost here, for one of the reasons below.",
            Fate::Waiting => "Packets can wait here.",
            Fate::Changed => "The contents of packets change here.",
        }
    }

    /// Whether such packets come into being at the element.
    pub fn is_origin(self) -> bool {
        matches!(self, Fate::Received | Fate::Made | Fate::Copied)
    }
}

/// Numbers of packets by fate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FateCounts {
    /// A number for each of [`Fate::COUNTED`].
    pub counts: [u64; Fate::COUNTED.len()],
}

impl FateCounts {
    /// The number of packets with a fate; 0 for one without a counter.
    pub fn of(&self, fate: Fate) -> u64 {
        self.counts.get(fate as usize).copied().unwrap_or_default()
    }

    /// Adds other numbers.
    pub fn add(&mut self, other: &FateCounts) {
        for (sum, count) in self.counts.iter_mut().zip(other.counts) {
            *sum += count;
        }
    }

    /// Packets that came into being.
    pub fn begun(&self) -> u64 {
        self.sum(true)
    }

    /// Packets that ended, without those that were lost.
    pub fn ended(&self) -> u64 {
        self.sum(false)
    }

    fn sum(&self, origin: bool) -> u64 {
        Fate::COUNTED
            .iter()
            .zip(self.counts)
            .filter(|(fate, _)| fate.is_origin() == origin)
            .map(|(_, count)| count)
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_origins_or_ends() {
        let counts = FateCounts { counts: core::array::from_fn(|index| 1 << index) };
        let sum: u64 = counts.counts.iter().sum();
        assert_eq!(counts.begun() + counts.ended(), sum);
        assert_eq!((counts.of(Fate::Received), counts.of(Fate::Merged), counts.of(Fate::Lost)), (1, 64, 0));
        assert!(Fate::ALL.iter().take(Fate::COUNTED.len()).eq(Fate::COUNTED.iter()));
    }
}
