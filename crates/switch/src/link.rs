//! Links: two ports joined without a switch between them.

use crate::counters::Counters;
use crate::driver::BoxPort;
use boundary::PortFault;
use reason::Reason;

/// Frames that go one way in one step.
const QUANTUM: u32 = 1024;

/// Rings that a pipe holds one way: its sender's and its receiver's. A box at a pipe may send as many in a turn without
/// losing any.
pub const PIPE_RINGS: u32 = 2;

/// Two ports joined. What comes in at one goes out at the other; what finds no room stays where it is.
pub trait Link: Send {
    /// Passes frames on, both ways; how many.
    fn step(&mut self) -> usize;

    /// Announces that nobody looks here before a bell tells. False: there are frames, don't sleep.
    fn prepare_sleep(&mut self) -> bool;

    /// Takes the announcement back.
    fn end_sleep(&mut self);

    /// What the two ports have carried: left, right.
    fn counters(&self) -> [Counters; 2];

    /// Why the link can't go on, if it can't: one of the boxes broke its ring.
    fn down(&self) -> Option<PortFault>;
}

/// Two boxes joined. Frames are handed on with their buffers where the boxes share a pool, else copied once, from ring to
/// ring, and nobody looks at them: for boxes of one owner.
pub struct BoxLink<Left, Right> {
    left: BoxPort<Left>,
    right: BoxPort<Right>,
    counters: [Counters; 2],
    down: Option<PortFault>,
}

impl<Left, Right> BoxLink<Left, Right> {
    /// Joins two boxes' ports.
    pub fn new(left: BoxPort<Left>, right: BoxPort<Right>) -> Self {
        Self { left, right, counters: [Counters::default(); 2], down: None }
    }

    /// The two ports again. What waits in their rings stays there.
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
    if passed.wake_receiver {
        (to.wake)();
    }
    if passed.wake_sender {
        (from.wake)();
    }
    Ok(passed.packets as usize)
}

/// Whether nothing can be passed on now. When that changes, one of the boxes rings.
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
