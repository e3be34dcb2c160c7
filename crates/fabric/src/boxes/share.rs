//! A box's share of the processor.

use super::pools::is_piped;
use model::CreateBox;
use switch::PIPE_RINGS;

/// Minimum packets per turn, whatever the weight: entering a virtual machine must be worth its cost.
const LEAST_QUANTUM: u32 = 16;

/// A box's share of the processor relative to other boxes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    /// Its weight, in hundredths of the default weight.
    pub(crate) weight: u32,
    /// Packets per turn. At the default weight: the size of a ring, or of a pipe's rings if the box is at a pipe. 0
    /// means unlimited, for a box with a reserved processor, which shares its turn with no other box.
    pub(crate) quantum: u32,
    /// The nice value of its process, above the fabric's. Each step changes the kernel's share by a factor of 1.25.
    pub(crate) nice: i32,
}

impl Share {
    /// The share that a definition specifies.
    pub(crate) fn of(definition: &CreateBox) -> Self {
        let weight = u32::from(definition.cpu_weight);
        let rings = if is_piped(definition) { PIPE_RINGS } else { 1 };
        let packets = u64::from(u32::from(definition.ring) * rings) * u64::from(weight) / 100;
        let packets = u32::try_from(packets).unwrap_or(u32::MAX).max(LEAST_QUANTUM);
        let steps = (f64::from(weight) / 100.0).ln() / 1.25f64.ln();
        Self {
            weight,
            quantum: if definition.dedicated { 0 } else { packets },
            nice: -(steps.round() as i32).clamp(-19, 20),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::PortRequest;

    #[test]
    fn weights_determine_shares() {
        let mut definition = CreateBox::new("fw".parse().unwrap(), "");
        for (ring, weight, quantum, nice) in [
            (256, 100, 256, 0),
            (256, 200, 512, -3),
            (64, 1, 16, 19),
            (2048, 10_000, 204_800, -20),
            (64, 80, 51, 1),
        ] {
            definition.ring = ring.try_into().unwrap();
            definition.cpu_weight = weight.try_into().unwrap();
            assert_eq!(Share::of(&definition), Share { weight, quantum, nice });
        }
        let quantum = |definition: &CreateBox| Share::of(definition).quantum;
        let port = PortRequest { attach: "pipe:p".parse().unwrap(), ..PortRequest::default() };
        definition.ports = vec![port];
        assert_eq!(quantum(&definition), 102, "what the pipe holds");
        definition.dedicated = true;
        assert_eq!(quantum(&definition), 0, "it shares its processor with no other box");
    }
}
