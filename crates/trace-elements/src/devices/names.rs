//! The names of devices in configurations for DPDK, netmap and the Linux kernel.

use element::OtherName;

/// Why arguments that choose queues, threads, buffers and messages have no effect.
const TUNING: &str = "queues, threads and buffers are those of the port";
/// Why arguments about the interface itself have no effect.
const INTERFACE: &str = "set it on the interface with `ip link`";
/// Why checksum offloads have no effect.
const CHECKSUMS: &str =
    "the port leaves checksums as they are: put SetIPChecksum, SetTCPChecksum or SetUDPChecksum before it";
/// Why a full device does not block.
const FULL: &str = "packets without room are dropped as `full`, and InfiniteSource and its like pause";

/// Names of FromDevice.
pub(super) static FROM_DEVICE: [OtherName; 4] = [
    OtherName {
        name: "FromDPDKDevice",
        positions: &["PORT", "QUEUE", "PROMISC", "VLAN_FILTER", "VLAN_STRIP", "VLAN_EXTEND", "LRO", "JUMBO"],
        renamed: &[("PORT", "DEVNAME")],
        defaults: &[("PROMISC", "true")],
        ignored: &[
            (
                "QUEUE N_QUEUES MINQUEUES MAXQUEUES MINTHREADS MAXTHREADS THREADOFFSET SCALE NUMA NUMA_NODE NDESC VERBOSE \
                 ALLOW_NONEXISTENT CLEAR MODE VF_POOLS VF_VLAN RX_INTR MAX_RSS RETA_SIZE FLOW_ISOLATE POWER_MGMT PAUSE",
                TUNING,
            ),
            ("MAC MTU LRO JUMBO", INTERFACE),
            ("ACTIVE", "packets are received from the start; put a Switch behind it to discard them"),
            (
                "VLAN_FILTER VLAN_STRIP VLAN_EXTEND",
                "frames arrive with the tags that the interface leaves in them",
            ),
            (
                "FLOW_RULES_FILE",
                "queues are those of the port; put an IPFilter behind it for rules that drop packets",
            ),
            ("RSS_AGGREGATE PAINT_QUEUE", "the port sets no annotation; use AggregateIPFlows or Paint"),
            (
                "IPCO TCO UCO",
                "the port checks no checksums: put CheckIPHeader, CheckTCPHeader or CheckUDPHeader behind it",
            ),
        ],
        ..OtherName::NONE
    },
    OtherName {
        name: "FromNetmapDevice",
        positions: &[
            "DEVNAME",
            "QUEUE",
            "PROMISC",
            "VLAN_FILTER",
            "VLAN_STRIP",
            "VLAN_EXTEND",
            "LRO",
            "JUMBO",
        ],
        defaults: &[("PROMISC", "true")],
        ignored: &[
            (
                "QUEUE N_QUEUES MAXTHREADS THREADOFFSET SCALE NUMA NUMA_NODE VERBOSE ALLOW_NONEXISTENT KEEPHAND",
                TUNING,
            ),
            ("LRO JUMBO", INTERFACE),
            (
                "VLAN_FILTER VLAN_STRIP VLAN_EXTEND",
                "frames arrive with the tags that the interface leaves in them",
            ),
        ],
        ..OtherName::NONE
    },
    OtherName {
        name: "FromDPDKRing",
        positions: &["MEM_POOL", "FROM_PROC", "TO_PROC"],
        renamed: &[("FROM_PROC", "DEVNAME")],
        ignored: &[
            ("MEM_POOL NDESC NUMA_ZONE SP_ENQ SC_DEQ FORCE_LOOKUP FORCE_CREATE", TUNING),
            ("TO_PROC", "the device is named FROM_PROC"),
        ],
        ..OtherName::NONE
    },
    OtherName {
        name: "PollDevice",
        positions: &["DEVNAME", "PROMISC", "BURST"],
        ignored: &[
            ("LENGTH QUIET ALLOW_NONEXISTENT", TUNING),
            ("UP_CALL DOWN_CALL", "the state of the link is not watched"),
        ],
        ..OtherName::NONE
    },
];

/// Names of ToDevice.
pub(super) static TO_DEVICE: [OtherName; 3] = [
    OtherName {
        name: "ToDPDKDevice",
        positions: &["PORT", "QUEUE"],
        renamed: &[("PORT", "DEVNAME")],
        ignored: &[
            ("QUEUE N_QUEUES MAXQUEUES MAXTHREADS VERBOSE ALLOW_NONEXISTENT IQUEUE NDESC ALLOC", TUNING),
            ("BLOCKING TIMEOUT", FULL),
            ("TSO IPCO TCO UCO", CHECKSUMS),
        ],
        ..OtherName::NONE
    },
    OtherName {
        name: "ToNetmapDevice",
        positions: &["DEVNAME", "QUEUE"],
        ignored: &[
            ("QUEUE N_QUEUES MAXTHREADS VERBOSE ALLOW_NONEXISTENT IQUEUE", TUNING),
            ("BLOCKING", FULL),
        ],
        ..OtherName::NONE
    },
    OtherName {
        name: "ToDPDKRing",
        positions: &["MEM_POOL", "FROM_PROC", "TO_PROC"],
        renamed: &[("FROM_PROC", "DEVNAME")],
        ignored: &[
            ("MEM_POOL NDESC NUMA_ZONE SP_ENQ SC_DEQ FORCE_LOOKUP FORCE_CREATE IQUEUE", TUNING),
            ("TO_PROC", "the device is named FROM_PROC"),
            ("BLOCKING TIMEOUT", FULL),
        ],
        ..OtherName::NONE
    },
];

/// Names of ToHost.
pub(super) static TO_HOST: [OtherName; 1] = [OtherName {
    name: "ToHostSniffers",
    positions: &["DEVNAME"],
    defaults: &[("SNIFFERS", "true")],
    ..OtherName::NONE
}];
