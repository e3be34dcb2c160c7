//! The segment sizes that TCP senders at this end of a tunnel announced.
//!
//! The kernel of a remote end on the same host passes on large packets before they are cut, and does not say how
//! long the segments should be. They must not be longer than their receiver announced, or they do not reach it.

/// Flows that are remembered. One that is forgotten gets smaller segments, so strangers who open many cannot do more harm.
const FLOWS: usize = 1024;

/// The segment sizes of flows.
#[derive(Debug)]
pub(super) struct SegmentSizes(Box<[Entry; FLOWS]>);

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    /// The hash of the flow without the bits that choose the entry.
    tag: u32,
    /// The maximum segment size; 0: there is none.
    size: u16,
}

impl Default for SegmentSizes {
    fn default() -> Self {
        Self(Box::new([Entry::default(); FLOWS]))
    }
}

impl SegmentSizes {
    /// Notes the size that the receiver of a flow announced. `flow` is the hash of the flow.
    pub(super) fn set(&mut self, flow: u64, size: u16) {
        self.0[flow as usize % FLOWS] = Entry { tag: (flow >> 32) as u32, size };
    }

    /// The size that the receiver of a flow announced, if it is remembered.
    pub(super) fn find(&self, flow: u64) -> Option<u16> {
        let entry = self.0[flow as usize % FLOWS];
        (entry.size > 0 && entry.tag == (flow >> 32) as u32).then_some(entry.size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_flow_of_an_entry_is_remembered() {
        let mut sizes = SegmentSizes::default();
        assert_eq!(sizes.find(0), None);
        let flow = |tag: u64, entry: u64| tag << 32 | entry;
        sizes.set(flow(1, 7), 1390);
        sizes.set(flow(1, 8), 536);
        assert_eq!(
            [flow(1, 7), flow(1, 8), flow(2, 7)].map(|flow| sizes.find(flow)),
            [Some(1390), Some(536), None]
        );
        sizes.set(flow(2, 7), 1000);
        assert_eq!([flow(1, 7), flow(2, 7)].map(|flow| sizes.find(flow)), [None, Some(1000)]);
    }
}
