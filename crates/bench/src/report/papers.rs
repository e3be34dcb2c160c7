//! The papers' figures, as far as their text states them. Figures that appear only in plots are not included.
//!
//! ClickOS: Martins et al., "ClickOS and the Art of Network Function Virtualization", NSDI 2014. OpenNetVM: Zhang et
//! al., "OpenNetVM: A Platform for High Performance Network Service Chains", HotMiddlebox 2016.

/// The machines of the papers.
pub(super) const HARDWARE: [(&str, &str); 2] = [
    (
        "ClickOS",
        "Xeon E3-1220, 4 cores of 3.1 GHz, 16 GB, Intel x520 with 10 Gb/s; some tests on a Xeon E5-1650, 6 cores of 3.2 GHz (2014)",
    ),
    (
        "OpenNetVM",
        "Xeon X5650 of 2.67 GHz with an 82599ES card; Xeon E5-2697 v3, 14 cores of 2.6 GHz, with four cards of two 10 Gb/s ports (2016)",
    ),
];

/// From the request to a running configuration, in milliseconds: the first box.
pub(super) const BOOT_MS: f64 = 28.8;

/// The same for the 400th box: boot and start-up.
pub(super) const BOOT_400TH_MS: f64 = 239.0;

/// Creating a virtual machine, in milliseconds: the sum of its steps.
pub(super) const CREATE_MS: f64 = 20.8;

/// Attaching a box to a switch, in microseconds.
pub(super) const ATTACH_US: f64 = 1_400.0;

/// Installing a configuration, in milliseconds.
pub(super) const INSTALL_MS: f64 = 6.6;

/// Boxes on one host.
pub(super) const BOXES: f64 = 400.0;

/// Packets of 64 bytes to and from one box, in millions per second.
pub(super) const SEND_MPPS: f64 = 14.2;
pub(super) const RECEIVE_MPPS: f64 = 9.0;

/// Frame sizes at which a box sends at the rate of 10 gigabit Ethernet.
pub(super) const LINE_RATE_SIZES: [u16; 5] = [128, 256, 512, 1024, 1500];

/// A chain of 2 and of 9 boxes, in gigabits per second.
pub(super) const CHAIN_GBPS: [(f64, f64); 2] = [(2.0, 21.7), (9.0, 3.1)];

/// 100 boxes on one core, packets of minimum size, total in millions per second.
pub(super) const DENSITY_MPPS: f64 = 4.85;

/// The frame size from which 100 boxes on one core send at the rate of 10 gigabit Ethernet.
pub(super) const DENSITY_LINE_RATE_SIZE: u16 = 512;

/// The round trip of a ping through an idle box, in microseconds, alone or beside eleven idle others;
pub(super) const PING_US: f64 = 45.0;

/// beside others that use the full memory bandwidth;
pub(super) const PING_BESIDE_MEMORY_US: f64 = 64.0;

/// and beside others that use all CPU time.
pub(super) const PING_BESIDE_HOGS_US: f64 = 300.0;

/// Writing and reading a handler, in microseconds.
pub(super) const WRITE_US: f64 = 100.0;
pub(super) const READ_US: f64 = 9_400.0;

/// Table 3: slots of a ring, and kilobytes.
pub(super) const RINGS_KB: [(f64, f64); 6] =
    [(64.0, 264.0), (128.0, 516.0), (256.0, 1032.0), (512.0, 2064.0), (1024.0, 4128.0), (2048.0, 8260.0)];

/// The image, of which each box has a copy, in kilobytes.
pub(super) const IMAGE_KB: f64 = 5_120.0;

/// A box with state and large rings, in kilobytes.
pub(super) const FOOTPRINT_KB: f64 = 15_360.0;

/// Memory that 1,000 routes, 1,000 rules and 400 patterns add to a box, in kilobytes.
pub(super) const STATE_KB: [(&str, f64); 4] =
    [("routes", 20.0), ("rules", 87.0), ("compact rules", 87.0), ("patterns", 30.0)];

/// Element classes in the image.
pub(super) const CLASSES: f64 = 216.0;

/// Network address translation of one flow, packets of minimum size, in millions per second.
pub(super) const NAT_MPPS: f64 = 5.1;

/// Address translation with a new port pair for each packet, and a broadband gateway, with frames of 512 bytes, in
/// millions per second. The paper says "slightly below".
pub(super) const NAT_AND_BRAS_MPPS: f64 = 2.3;

/// A machine whose box returns packets, over several network cards, in gigabits per second.
pub(super) const SCALE_OUT_GBPS: f64 = 27.5;

/// OpenNetVM: measurement, figure and unit.
pub(super) const OPENNETVM: [(&str, f64, &str); 10] = [
    ("Start of a function in a container, to its first packet", 526.0, "ms"),
    ("Start of a function in a process, to its first packet", 524.0, "ms"),
    ("Delay, default chain", 4.4, "us"),
    ("Delay, with a look-up in the flow table", 6.9, "us"),
    ("Delay, with a look-up that computes the hash of each packet", 24.9, "us"),
    ("Rate, one function on 3 cores", 48.0, "Gb/s"),
    ("Rate, two functions on 6 cores", 68.0, "Gb/s"),
    ("Chain of 5 functions", 40.0, "Gb/s"),
    ("Packets steered in that chain", 34.0, "Mp/s"),
    ("Loss of rate by a chain of 6 functions", 4.0, "%"),
];

/// The frame rate of 10 gigabit Ethernet in millions per second, with preamble and inter-frame gap.
pub(super) fn line_rate(size: f64) -> f64 {
    10e3 / ((size + 20.0) * 8.0)
}
