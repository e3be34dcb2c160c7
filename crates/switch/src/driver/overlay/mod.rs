//! Ports to remote switches through UDP: VXLAN (RFC 7348) and GENEVE (RFC 8926).

mod error;
mod format;
mod inner;
mod mtu;
mod port;
mod reader;
mod segment_sizes;
mod socket;
mod too_big;

pub use error::OverlayError;
pub use format::Encapsulation;
pub use port::{OverlayPort, OverlaySettings};
pub use reader::{OverlayReader, Read};
pub use socket::{OverlayEnds, OverlayTunnel};
