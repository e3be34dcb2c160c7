//! The frames of an interface as they were on the wire: those that the kernel joined are cut into their packets.

use super::gso::Segmenter;
use super::offload::MAX_MESSAGE;
use super::packet_socket::PacketSocket;
use super::rx_frame::RxFrame;
use std::cell::Cell;

/// Maximum length of a frame that was read.
pub const MAX_READ: usize = MAX_MESSAGE;

/// Reads the frames that a packet socket receives.
#[derive(Debug)]
pub struct InterfaceReader {
    socket: PacketSocket,
    /// Cuts the frame in hand.
    segmenter: Segmenter,
    /// The packet type of the frame in hand, and when it was received.
    packet_type: u8,
    time: (i64, u32),
    /// Frames that the kernel had no memory to pass whole.
    truncated: Cell<u64>,
}

/// What was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadCount {
    /// Frames that were passed on.
    pub frames: usize,
    /// Joined frames that can't be cut: they have longer packets than were asked for, or are in too many tunnels.
    pub refused: usize,
}

/// A frame that was read.
#[derive(Debug)]
pub struct ReadFrame<'a> {
    bytes: FrameBytes<'a>,
    /// The packet type: 0 for this host, 1 broadcast, 2 multicast, 3 for another host, 4 sent by this host.
    pub packet_type: u8,
    /// Receive time by the wall clock: seconds and nanoseconds.
    pub time: (i64, u32),
}

#[derive(Debug)]
enum FrameBytes<'a> {
    /// As it was received.
    Received(RxFrame<'a>),
    /// The next packet of the frame in hand.
    Next(&'a mut Segmenter),
}

impl ReadFrame<'_> {
    /// Length in bytes, with the VLAN tag and without truncated bytes.
    #[inline]
    pub fn length(&self) -> usize {
        match &self.bytes {
            FrameBytes::Received(frame) => frame.length(),
            FrameBytes::Next(segmenter) => segmenter.next_length(),
        }
    }

    /// Bytes that were truncated from the end.
    #[inline]
    pub fn cut(&self) -> usize {
        match &self.bytes {
            FrameBytes::Received(frame) => frame.cut,
            FrameBytes::Next(_) => 0,
        }
    }

    /// Copies the frame to the start of `to`, with its VLAN tag and, if it is whole, with all checksums filled in. Returns false
    /// if it doesn't fit.
    #[inline]
    pub fn copy_to(&mut self, to: &mut [u8]) -> bool {
        match &mut self.bytes {
            FrameBytes::Received(frame) => frame.copy_to(to),
            FrameBytes::Next(segmenter) => segmenter.write(to),
        }
    }
}

impl InterfaceReader {
    /// Reads from a socket that receives GSO frames whole.
    pub fn new(socket: PacketSocket) -> Self {
        Self {
            socket,
            segmenter: Segmenter::default(),
            packet_type: 0,
            time: (0, 0),
            truncated: Cell::new(0),
        }
    }

    /// The socket.
    pub fn socket(&self) -> &PacketSocket {
        &self.socket
    }

    /// Passes at most `most` frames to `take`. A joined frame whose packets are longer than `longest` bytes is refused. Refused
    /// frames count too, so that a flood of them can't make a call endless. Packets that are left of a joined frame are passed
    /// on by the next call.
    pub fn receive(&mut self, most: usize, longest: usize, mut take: impl FnMut(ReadFrame<'_>)) -> ReadCount {
        let Self { socket, segmenter, packet_type, time, truncated } = self;
        let (mut count, mut left) = (ReadCount::default(), most);
        loop {
            while left > 0 && !segmenter.is_empty() {
                let bytes = FrameBytes::Next(&mut *segmenter);
                take(ReadFrame { bytes, packet_type: *packet_type, time: *time });
                segmenter.advance();
                count.frames += 1;
                left -= 1;
            }
            let mut joined = None;
            let taken = socket.receive(left, |frame| {
                if frame.is_gso() {
                    joined = Some(frame.large());
                    (*packet_type, *time) = (frame.packet_type, frame.time);
                } else {
                    let (packet_type, time) = (frame.packet_type, frame.time);
                    take(ReadFrame { bytes: FrameBytes::Received(frame), packet_type, time });
                    count.frames += 1;
                }
            });
            if taken == 0 {
                return count;
            }
            left -= taken;
            match joined {
                Some(frame) if frame.cut > 0 => truncated.set(truncated.get() + 1),
                // Its packets count, not the frame.
                Some(frame) if segmenter.load_message(socket.large_frame(), frame, longest) => left += 1,
                Some(_) => count.refused += 1,
                None => {}
            }
        }
    }

    /// Whether packets of the frame in hand are left. The socket's descriptor does not report them.
    pub fn has_frame_in_hand(&self) -> bool {
        !self.segmenter.is_empty()
    }

    /// Whether a frame is available.
    pub fn has_frame(&self) -> bool {
        self.has_frame_in_hand() || self.socket.has_frame()
    }

    /// The number of frames lost since the last call because there was no room for them.
    pub fn take_missed(&self) -> u64 {
        self.socket.take_dropped() + self.truncated.take()
    }
}
