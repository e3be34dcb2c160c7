//! Counters, meters and printing.

mod arpprint;
mod averagecounter;
mod bandwidthmeter;
mod counter;
mod dump;
mod ip6print;
mod ipline;
mod ipprint;
mod meter;
mod numberpacket;
mod print;
mod print_output;
pub mod rate;
pub mod ratemeter;
mod recordtimestamp;
mod timestampdiff;

pub use arpprint::ARPPrint;
pub use averagecounter::AverageCounter;
pub use bandwidthmeter::BandwidthMeter;
pub use counter::Counter;
pub use ip6print::IP6Print;
pub use ipprint::IPPrint;
pub use meter::Meter;
use numberpacket::NumberPacket;
pub use print::Print;
use recordtimestamp::RecordTimestamp;
use timestampdiff::TimestampDiff;

element::classes![
    Counter,
    AverageCounter,
    Meter,
    BandwidthMeter,
    Print,
    IPPrint,
    ARPPrint,
    IP6Print,
    NumberPacket,
    RecordTimestamp,
    TimestampDiff,
];
