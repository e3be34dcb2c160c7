//! Links: two connected ports without a switch between them.

use crate::books::RingBooks;
use crate::counters::Counters;
use crate::driver::BoxPort;
use boundary::PortFault;
use reason::Reason;

/// Maximum frames that one step moves in one direction.
const QUANTUM: u32 = 1024;

/// Rings that a pipe holds per direction: the sender's and the receiver's. A box at a pipe may send this many ring
/// sizes in a turn without loss.
pub const PIPE_RINGS: u32 = 2;

/// Two connected ports. A frame received at one is sent at the other; if there is no room, it stays in its ring.
pub trait Link: Send {
    /// Moves frames in both directions. Returns their number.
    fn step(&mut self) -> usize;

    /// Prepares for sleep: from now on the runner's wake event reports new frames. Returns false if frames are already
    /// waiting; the caller must then not sleep.
    fn prepare_sleep(&mut self) -> bool;

    /// Undoes [`prepare_sleep`](Self::prepare_sleep).
    fn end_sleep(&mut self);

    /// Counters of the two ports: left, right.
    fn counters(&self) -> [Counters; 2];

    /// Why the link is down, if it is: one of the boxes violated the ring protocol.
    fn down(&self) -> Option<PortFault>;
}

/// Two connected boxes. Frames move with their buffers if the boxes share a pool, else they are copied once, from ring
/// to ring. Their contents are not inspected, so this is for boxes of one owner.
pub struct BoxLink<Left, Right> {
    left: BoxPort<Left>,
    right: BoxPort<Right>,
    counters: [Counters; 2],
    down: Option<PortFault>,
}

impl<Left, Right> BoxLink<Left, Right> {
    /// Connects the ports of two boxes.
    pub fn new(left: BoxPort<Left>, right: BoxPort<Right>) -> Self {
        Self { left, right, counters: [Counters::default(); 2], down: None }
    }

    /// The frames in the rings of the two ports.
    pub fn rings(&mut self) -> [RingBooks; 2] {
        [self.left.rings(), self.right.rings()]
    }

    /// Returns the two ports. Frames that wait stay in their rings.
    pub fn into_ports(self) -> (BoxPort<Left>, BoxPort<Right>) {
        (self.left, self.right)
    }

    fn pass(&mut self) -> Result<usize, PortFault> {
        let [left, right] = &mut self.counters;
        let there = one_way(&mut self.left, &mut self.right, left, right)?;
        Ok(there + one_way(&mut self.right, &mut self.left, right, left)?)
    }
}

impl<Left, Right> std::fmt::Debug for BoxLink<Left, Right> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BoxLink").field("counters", &self.counters).field("down", &self.down).finish()
    }
}

fn one_way<From, To>(
    from: &mut BoxPort<From>,
    to: &mut BoxPort<To>,
    source: &mut Counters,
    target: &mut Counters,
) -> Result<usize, PortFault> {
    let passed = from.port.pass(&mut to.port, QUANTUM)?;
    let (frames, faulty) = (u64::from(passed.packets), u64::from(passed.faulty));
    source.received_frames += frames + faulty;
    source.received_bytes += passed.bytes;
    source.drop(Reason::FAULTY, faulty);
    target.sent_frames += frames;
    target.sent_bytes += passed.bytes;
    from.count_taken(frames + faulty);
    to.count_put(frames);
    if passed.wake_receiver {
        (to.wake)();
    }
    if passed.wake_sender {
        (from.wake)();
    }
    Ok(passed.packets as usize)
}

/// Whether no frame can be moved now. When this changes, one of the boxes rings.
fn nothing_to_pass<From, To>(from: &mut BoxPort<From>, to: &mut BoxPort<To>) -> Result<bool, PortFault> {
    Ok(from.port.prepare_sleep()? || to.port.prepare_room_sleep()?)
}

impl<Left: Send, Right: Send> Link for BoxLink<Left, Right> {
    fn step(&mut self) -> usize {
        if self.down.is_some() {
            return 0;
        }
        self.pass().unwrap_or_else(|fault| {
            self.down = Some(fault);
            0
        })
    }

    fn prepare_sleep(&mut self) -> bool {
        if self.down.is_some() {
            return true;
        }
        let (left, right) = (&mut self.left, &mut self.right);
        let there = nothing_to_pass(left, right);
        let sleeps = there.and_then(|sleeps| Ok(nothing_to_pass(right, left)? && sleeps));
        sleeps.unwrap_or_else(|fault| {
            self.down = Some(fault);
            true
        })
    }

    fn end_sleep(&mut self) {
        self.left.port.end_sleep();
        self.right.port.end_sleep();
    }

    fn counters(&self) -> [Counters; 2] {
        self.counters
    }

    fn down(&self) -> Option<PortFault> {
        self.down
    }
}
