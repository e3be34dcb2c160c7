//! Where the frames of a batch go.

use crate::port::PortId;

/// The frames of a batch that go to each port.
#[derive(Debug, Default)]
pub struct ForwardingPlan {
    /// Frame indices by port.
    frames: Vec<Vec<u32>>,
    /// Ports that have frames.
    ports: Vec<PortId>,
    /// Whether a frame goes to more than one port.
    pub(crate) floods: bool,
    /// Frames that go to functions, with the tags that their ports note.
    pub(crate) tags: Vec<(u32, u64)>,
    /// Frames that the method performs operations on, in the order of its decisions.
    pub(crate) performed: Vec<u32>,
}

impl ForwardingPlan {
    /// Ports that frames go to, in the order of their first frame.
    pub fn ports(&self) -> &[PortId] {
        &self.ports
    }

    /// Indices of the frames that go to a port, in order.
    pub fn frames(&self, port: PortId) -> &[u32] {
        self.frames.get(usize::from(port.0)).map_or(&[], Vec::as_slice)
    }

    /// Whether a frame of the batch goes to more than one port.
    pub fn floods(&self) -> bool {
        self.floods
    }

    /// Frames that go to functions, with the tags that their ports note.
    pub fn tags(&self) -> &[(u32, u64)] {
        &self.tags
    }

    /// The port of a function that all frames of a batch go to, if there is one.
    pub(crate) fn only_function(&self, frames: usize) -> Option<PortId> {
        match self.ports() {
            [only] if !self.floods && [self.tags.len(), self.frames(*only).len()] == [frames; 2] => {
                Some(*only)
            }
            _ => None,
        }
    }

    /// Indices of the frames that are given to [`Switch::perform`](crate::Switch::perform), in this order.
    pub fn performed(&self) -> &[u32] {
        &self.performed
    }

    pub(crate) fn clear(&mut self) {
        self.floods = false;
        self.performed.clear();
        self.tags.clear();
        for port in self.ports.drain(..) {
            if let Some(frames) = self.frames.get_mut(usize::from(port.0)) {
                frames.clear();
            }
        }
    }

    #[inline(always)]
    pub(crate) fn add(&mut self, port: PortId, frame: u32) {
        match self.frames.get_mut(usize::from(port.0)) {
            Some(frames) if !frames.is_empty() => frames.push(frame),
            _ => self.add_first(port, frame),
        }
    }

    /// Adds a port's first frame.
    fn add_first(&mut self, port: PortId, frame: u32) {
        let index = usize::from(port.0);
        if self.frames.len() <= index {
            self.frames.resize_with(index + 1, Vec::new);
        }
        if let Some(frames) = self.frames.get_mut(index) {
            self.ports.push(port);
            frames.push(frame);
        }
    }
}
