//! What the memory of a box is made of.

use crate::error::Error;
use boundary::{AreaLayout, Slots, control};
use serde::Serialize;

/// Rings that the ClickOS paper's Table 3 lists.
const RINGS: [u32; 6] = [64, 128, 256, 512, 1024, 2048];

/// What the memory of a box is made of.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Memory {
    /// What ports take, for each number of slots.
    pub rings: Vec<RingMemory>,
    /// The mailbox, boot, status and crash pages of a box, in kilobytes.
    pub control_kb: usize,
}

/// What one port takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RingMemory {
    /// Slots of each of its two rings.
    pub ring: u32,
    /// Both rings and their buffers, in kilobytes.
    pub kb: usize,
}

/// The memory of ports of all sizes.
pub fn memory() -> Result<Memory, Error> {
    let port = |ring| -> Result<RingMemory, Error> {
        let layout = AreaLayout::new(&[Slots::new(ring)?])?;
        Ok(RingMemory { ring, kb: (layout.size - control::SIZE) / 1024 })
    };
    Ok(Memory {
        rings: RINGS.into_iter().map(port).collect::<Result<_, _>>()?,
        control_kb: control::SIZE / 1024,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As in the paper, a slot of a port costs about 4 KB; the rings themselves round up to a few pages.
    #[test]
    fn a_slot_costs_four_kilobytes() {
        for RingMemory { ring, kb } in memory().unwrap().rings {
            let paper = 4 * ring as usize;
            assert!((paper..=paper + 40).contains(&kb), "{ring} slots: {kb} KB");
        }
    }
}
