//! Frames on their way through the switch.

/// Bytes of the longest frame: one packet buffer.
pub const MAX_FRAME: usize = boundary::limits::BUFFER_SIZE;

/// Frames of one visit, one after the other in memory, so that short ones share cache lines.
#[derive(Debug)]
pub struct Batch {
    bytes: Vec<u8>,
    filled: usize,
    /// Where each frame ends; it begins where the one before ends, rounded up.
    ends: Vec<(usize, usize)>,
    most: usize,
}

/// Frames begin at multiples of this, for the copies' sake.
const ALIGN: usize = 16;

impl Batch {
    /// A batch for so many frames.
    pub fn new(most: usize) -> Self {
        Self { bytes: vec![0; most * MAX_FRAME], filled: 0, ends: Vec::with_capacity(most), most }
    }

    /// Frames that it still has room for.
    pub fn room(&self) -> usize {
        self.most - self.ends.len()
    }

    /// Frames in it.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Takes all frames out.
    pub fn clear(&mut self) {
        self.ends.clear();
        self.filled = 0;
    }

    /// A frame by its number.
    #[inline]
    pub fn frame(&self, number: usize) -> Option<&[u8]> {
        let (start, end) = *self.ends.get(number)?;
        self.bytes.get(start..end)
    }

    /// All frames in order.
    pub fn frames(&self) -> impl Iterator<Item = &[u8]> {
        self.ends.iter().filter_map(|(start, end)| self.bytes.get(*start..*end))
    }

    /// Room for one more frame. A frame becomes part of the batch by [`commit`](Self::commit).
    #[inline]
    pub fn space(&mut self) -> Option<&mut [u8; MAX_FRAME]> {
        if self.room() == 0 {
            return None;
        }
        self.bytes.get_mut(self.filled..)?.first_chunk_mut()
    }

    /// Takes the first `length` bytes of the space as a frame; at most [`MAX_FRAME`].
    #[inline]
    pub fn commit(&mut self, length: usize) {
        if self.room() > 0 {
            let end = self.filled + length.min(MAX_FRAME);
            self.ends.push((self.filled, end));
            self.filled = end.next_multiple_of(ALIGN);
        }
    }

    /// Adds a copy of a frame. False: there is no room, or it is too long.
    pub fn push(&mut self, frame: &[u8]) -> bool {
        match self.space() {
            Some(space) if frame.len() <= MAX_FRAME => {
                space[..frame.len()].copy_from_slice(frame);
                self.commit(frame.len());
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_out_as_they_went_in() {
        let mut batch = Batch::new(4);
        for round in 0..3 {
            for length in [0, 1, 2048, 17] {
                assert!(batch.push(&vec![round + length as u8; length]));
            }
            assert!(!batch.push(b"no room") && batch.space().is_none());
            let lengths: Vec<usize> = batch.frames().map(<[u8]>::len).collect();
            assert_eq!(lengths, [0, 1, 2048, 17]);
            assert!(batch.frame(3).unwrap().iter().all(|byte| *byte == round + 17));
            assert_eq!(batch.frame(4), None);
            batch.clear();
            assert!(batch.is_empty() && !batch.push(&[0; 2049]));
        }
    }
}
