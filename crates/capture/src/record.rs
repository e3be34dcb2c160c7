//! One captured packet.

use crate::byte_order::ByteOrder;
use crate::link_type::LinkType;

/// Options of a packet block (draft-ietf-opsawg-pcapng, sections 3.5 and 4.3).
pub(crate) const OPTION_END: u16 = 0;
pub(crate) const OPTION_COMMENT: u16 = 1;
pub(crate) const OPTION_PACKET_ID: u16 = 5;
pub(crate) const OPTION_QUEUE: u16 = 6;
pub(crate) const OPTION_VERDICT: u16 = 7;

/// Who gave a verdict: the first byte of an `epb_verdict`.
pub(crate) const VERDICT_HARDWARE: u8 = 0;
pub(crate) const VERDICT_LINUX_TC: u8 = 1;
pub(crate) const VERDICT_LINUX_XDP: u8 = 2;

/// One captured packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// When it was captured: nanoseconds since 1970, UTC. Zero when the capture does not say.
    pub time_ns: i64,
    /// Its length on the wire, in bytes; never less than the captured length.
    pub original_length: u32,
    /// Which header the captured bytes begin with.
    pub link: LinkType,
    /// The index of its interface in the section; zero in formats with a single interface.
    pub interface: u32,
    /// The captured bytes.
    pub bytes: &'a [u8],
    /// Its options; none in formats without options.
    pub options: Options<'a>,
}

/// Where a packet lies in unread bytes of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordPlace {
    /// When it was captured: nanoseconds since 1970, UTC.
    pub time_ns: i64,
    /// Its length on the wire, in bytes.
    pub original_length: u32,
    /// Where the captured bytes begin.
    pub offset: usize,
    /// Number of captured bytes.
    pub length: usize,
}

/// What became of a packet (`epb_verdict`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict<'a> {
    /// A verdict of the hardware, in its own form.
    Hardware(&'a [u8]),
    /// The result of an eBPF program at Linux traffic control (`TC_ACT_*`).
    LinuxTc(u64),
    /// The result of an eBPF program at Linux XDP (`XDP_*`).
    LinuxXdp(u64),
}

/// The options of a record, in the form in which the capture has them: parsed when they are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options<'a> {
    order: ByteOrder,
    bytes: &'a [u8],
}

impl<'a> Options<'a> {
    /// No options.
    pub const NONE: Options<'static> = Options { order: ByteOrder::Little, bytes: &[] };

    pub(crate) fn new(order: ByteOrder, bytes: &'a [u8]) -> Options<'a> {
        Options { order, bytes }
    }

    /// Every option as its code and its value, up to the first malformed one.
    pub fn iter(&self) -> impl Iterator<Item = (u16, &'a [u8])> + use<'a> {
        let Options { order, mut bytes } = *self;
        core::iter::from_fn(move || {
            let (code, length) = (order.u16(bytes, 0)?, usize::from(order.u16(bytes, 2)?));
            let value = bytes.get(4..4 + length)?;
            bytes = bytes.get(4 + length.next_multiple_of(4)..).unwrap_or(&[]);
            (code != OPTION_END).then_some((code, value))
        })
    }

    /// Every comment (`opt_comment`) that is valid UTF-8.
    pub fn comments(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let comments = self.iter().filter(|(code, _)| *code == OPTION_COMMENT);
        comments.filter_map(|(_, value)| core::str::from_utf8(value).ok())
    }

    /// The number that identifies the packet across interfaces (`epb_packetid`).
    pub fn packet_id(&self) -> Option<u64> {
        self.value(OPTION_PACKET_ID).and_then(|value| self.order.u64(value, 0))
    }

    /// The queue of the interface that the packet was received on (`epb_queue`).
    pub fn queue(&self) -> Option<u32> {
        self.value(OPTION_QUEUE).and_then(|value| self.order.u32(value, 0))
    }

    /// What became of the packet (`epb_verdict`), if the kind of verdict is known.
    pub fn verdict(&self) -> Option<Verdict<'a>> {
        let (kind, result) = self.value(OPTION_VERDICT)?.split_first()?;
        match *kind {
            VERDICT_HARDWARE => Some(Verdict::Hardware(result)),
            VERDICT_LINUX_TC => self.order.u64(result, 0).map(Verdict::LinuxTc),
            VERDICT_LINUX_XDP => self.order.u64(result, 0).map(Verdict::LinuxXdp),
            _ => None,
        }
    }

    fn value(&self, wanted: u16) -> Option<&'a [u8]> {
        self.iter().find(|(code, _)| *code == wanted).map(|(_, value)| value)
    }
}
