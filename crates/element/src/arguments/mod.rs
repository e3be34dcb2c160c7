//! Arguments: typed, all-or-nothing parsing of configuration text.

mod addresses;
mod call;
mod decimal;
mod icmp;
mod lists;
mod numbers;
mod parser;
mod probability;
mod quantities;
mod setup;
mod values;

pub use crate::error::ArgumentError;
pub use addresses::{Ip4PrefixOrHost, Ip6PrefixOrHost};
pub use call::HandlerCall;
pub use icmp::IcmpType;
pub use lists::SpaceSeparated;
pub use parser::{Args, ArgumentGroup, Arguments, FromArgument};
pub use probability::Probability;
pub use quantities::{Bandwidth, Rate, Real, SignedTime};
pub use setup::Setup;
pub use values::{
    Annotation, AnnotationField, Bytes, ElementName, FileName, HandlerPath, IpProtocol, Raw, TcpPort,
    UdpPort, Word,
};
