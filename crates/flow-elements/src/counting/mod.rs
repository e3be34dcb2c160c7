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
mod print;
mod print_output;
pub mod rate;
pub mod ratemeter;

pub use arpprint::ARPPrint;
pub use averagecounter::AverageCounter;
pub use bandwidthmeter::BandwidthMeter;
pub use counter::Counter;
pub use ip6print::IP6Print;
pub use ipprint::IPPrint;
pub use meter::Meter;
pub use print::Print;

element::classes![Counter, AverageCounter, Meter, BandwidthMeter, Print, IPPrint, ARPPrint, IP6Print,];
