//! Frames that a forwarding method made, on their way to ports.

use crate::batch::Batch;
use crate::plan::ForwardingPlan;
use crate::port::PortId;

/// Frames that are collected before they are sent.
const CAPACITY: usize = 256;

/// Room that each frame finds for its copies at least. If a flow copies it more often, the others may be lost.
const MIN_ROOM: usize = 64;

/// Frames that operations made of others, and the ports that they go to.
#[derive(Debug, Default)]
pub struct MadeFrames {
    /// Allocated when the first frame is made: few switches make any.
    batch: Option<Batch>,
    plan: ForwardingPlan,
}

impl MadeFrames {
    /// Whether it has too little room for what one more frame may become.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.batch.as_ref().is_some_and(|batch| batch.room() < MIN_ROOM)
    }

    /// The frames.
    #[must_use]
    pub fn frames(&self) -> Vec<(PortId, &[u8])> {
        let Some(batch) = &self.batch else { return Vec::new() };
        let of_port = |port: &PortId| {
            let port = *port;
            let frames = self.plan.frames(port).iter();
            frames.filter_map(move |frame| Some((port, batch.frame(*frame as usize)?))).collect::<Vec<_>>()
        };
        self.plan.ports().iter().flat_map(of_port).collect()
    }

    /// Removes all frames.
    pub fn clear(&mut self) {
        if let Some(batch) = &mut self.batch {
            batch.clear();
        }
        self.plan.clear();
    }

    /// Adds a frame for some ports. Returns their number; `None` if the frame is too long or there is no room.
    pub(crate) fn add(&mut self, frame: &[u8], ports: impl IntoIterator<Item = PortId>) -> Option<u64> {
        let mut ports = ports.into_iter().peekable();
        if ports.peek().is_none() {
            return Some(0);
        }
        let batch = self.batch.get_or_insert_with(|| Batch::new(CAPACITY));
        let number = batch.len() as u32;
        if !batch.push(frame) {
            return None;
        }
        let mut count = 0;
        for port in ports {
            self.plan.add(port, number);
            count += 1;
        }
        Some(count)
    }

    /// Adds a frame for the port of a function, which notes the tag. Returns 1; `None` as in [`add`](Self::add).
    pub(crate) fn add_tagged(&mut self, frame: &[u8], port: PortId, tag: u64) -> Option<u64> {
        let count = self.add(frame, [port])?;
        if let Some(batch) = &mut self.batch {
            batch.set_tag(batch.len() - 1, tag);
        }
        Some(count)
    }

    /// Marks the tags of the frames with the shard that they belong to.
    pub(crate) fn mark_shard(&mut self, mark: u64) {
        if let Some(batch) = self.batch.as_mut().filter(|_| mark != 0) {
            batch.mark_tags(mark);
        }
    }

    pub(crate) fn plan(&self) -> &ForwardingPlan {
        &self.plan
    }

    pub(crate) fn batch(&self) -> Option<&Batch> {
        self.batch.as_ref()
    }
}
