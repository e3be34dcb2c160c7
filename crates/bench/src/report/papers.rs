//! What the papers claim, where their text gives a figure. Figures that are only drawn are not here.
//!
//! ClickOS: Martins et al., "ClickOS and the Art of Network Function Virtualization", NSDI 2014.

/// From the request to a running configuration, in milliseconds: the first box.
pub(super) const BOOT_MS: f64 = 28.8;

/// The same for the 400th box: boot and start-up.
pub(super) const BOOT_400TH_MS: f64 = 239.0;

/// Packets of 64 bytes from and to one box, millions a second.
pub(super) const SEND_MPPS: f64 = 14.2;
pub(super) const RECEIVE_MPPS: f64 = 9.0;

/// A chain of 2 and of 9 boxes, gigabits a second.
pub(super) const CHAIN_GBPS: [(f64, f64); 2] = [(2.0, 21.7), (9.0, 3.1)];

/// 100 boxes on one core, packets of the least size, millions a second in sum.
pub(super) const DENSITY_MPPS: f64 = 4.85;

/// A ping through an idle box, in microseconds, alone and beside eleven others;
pub(super) const PING_US: f64 = 45.0;

/// and beside others that use all of the processor.
pub(super) const PING_BESIDE_HOGS_US: f64 = 300.0;

/// Writing and reading a handler, in microseconds.
pub(super) const WRITE_US: f64 = 100.0;
pub(super) const READ_US: f64 = 9_400.0;

/// Table 3: slots of a ring, kilobytes.
pub(super) const RINGS_KB: [(f64, f64); 6] =
    [(64.0, 264.0), (128.0, 516.0), (256.0, 1032.0), (512.0, 2064.0), (1024.0, 4128.0), (2048.0, 8260.0)];

/// Private memory of a box: the image, of which each box has a copy, in kilobytes.
pub(super) const IMAGE_KB: f64 = 5_120.0;

/// Millions of frames a second that fill 10 gigabit Ethernet, with preamble and gap.
pub(super) fn line_rate(size: f64) -> f64 {
    10e3 / ((size + 20.0) * 8.0)
}
