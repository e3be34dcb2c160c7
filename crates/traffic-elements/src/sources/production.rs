//! Limits of sources, and their actions after the last packet.

use element::arguments::HandlerCall;
use element::prelude::*;

/// Maximum packets that a source creates per task run; longer bursts continue in the next run. Bounds the packets alive
/// before the first one is delivered.
pub(crate) const MAX_PACKETS_PER_RUN: usize = 4096;

/// Packets sent, and the limit; a negative limit is none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quota {
    pub(crate) limit: i64,
    pub(crate) count: u64,
}

impl Quota {
    pub(crate) fn new(limit: i64) -> Quota {
        Quota { limit, count: 0 }
    }

    /// At most `wish` packets.
    #[inline]
    pub(crate) fn allow(&self, wish: usize) -> usize {
        match u64::try_from(self.limit) {
            Ok(limit) => wish.min(usize::try_from(limit.saturating_sub(self.count)).unwrap_or(usize::MAX)),
            Err(_) => wish,
        }
    }

    pub(crate) fn is_used_up(&self) -> bool {
        self.allow(1) == 0
    }
}

/// What a source does after its last packet.
#[derive(Clone, Debug)]
pub(crate) enum EndAction {
    Nothing,
    Stop,
    Call(HandlerCall),
}

impl EndAction {
    /// From the arguments STOP and END_CALL.
    pub(crate) fn new(stop: bool, call: Option<HandlerCall>) -> Result<EndAction, SetupError> {
        match (stop, call) {
            (true, Some(_)) => Err(SetupError::new("END_CALL and STOP are mutually exclusive")),
            (true, None) => Ok(EndAction::Stop),
            (false, Some(call)) => Ok(EndAction::Call(call)),
            (false, None) => Ok(EndAction::Nothing),
        }
    }

    /// Finds the element that END_CALL names.
    pub(crate) fn resolve(&self, cx: &Context) -> Result<(), SetupError> {
        match self {
            EndAction::Call(call) => call.resolve(cx, "END_CALL"),
            _ => Ok(()),
        }
    }

    /// Checks that the handler of END_CALL exists.
    pub(crate) fn check(&self, cx: &Context) -> Result<(), SetupError> {
        match self {
            EndAction::Call(call) => call.check(cx),
            _ => Ok(()),
        }
    }

    pub(crate) fn perform(&self, cx: &Context) {
        match self {
            EndAction::Nothing => {}
            EndAction::Stop => cx.stop(),
            EndAction::Call(call) => call.defer(cx),
        }
    }
}

/// Packet contents: `data`, cut or repeated to `length` if given.
pub(crate) fn content(data: &[u8], length: Option<usize>) -> Vec<u8> {
    let length = length.unwrap_or(data.len());
    data.iter().copied().cycle().take(length).collect()
}

/// The packet to copy; `None` if it is too large or the pool is exhausted.
pub(crate) fn template(cx: &Context, data: &[u8], length: Option<usize>, headroom: usize) -> Option<Packet> {
    if length.unwrap_or(data.len()) > packet::MAX_CAPACITY {
        return None;
    }
    // Without data there is nothing to repeat.
    let bytes = content(if data.is_empty() { &[0] } else { data }, Some(length.unwrap_or(data.len())));
    let mut packet = cx.pool().allocate_with(headroom, bytes.len())?;
    packet.data_mut().copy_from_slice(&bytes);
    Some(packet)
}

/// Fills `batch` with `count` copies of `template`; copies that the pool has no room for count as drops.
#[inline]
pub(crate) fn replicate(cx: &Context, template: &Packet, count: usize, batch: &mut Batch) -> usize {
    let made = batch.push_copies(template, count);
    cx.count_begun(Fate::Made, count, made);
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_counts_down() {
        let mut quota = Quota::new(5);
        assert_eq!(quota.allow(3), 3);
        quota.count = 3;
        assert_eq!((quota.allow(3), quota.is_used_up()), (2, false));
        quota.count = 9;
        assert_eq!((quota.allow(3), quota.is_used_up()), (0, true));
        assert_eq!(Quota::new(-1).allow(usize::MAX), usize::MAX);
    }

    #[test]
    fn data_are_repeated_or_cut() {
        assert_eq!(content(b"abc", None), b"abc");
        assert_eq!(content(b"abc", Some(2)), b"ab");
        assert_eq!(content(b"abc", Some(7)), b"abcabca");
    }
}
