//! Why something could not be measured.

use boundary::{LayoutError, PortFault, RingError};
use sandbox::{CallError, CreateError, HostError, SystemError};
use std::fmt;
use switch::SwitchError;

/// Why something could not be measured.
#[derive(Debug)]
pub enum MeasureError {
    /// Boxes can't be made here.
    Host(HostError),
    /// There is no usable `/dev/kvm`.
    NoKvm,
    /// Boxes in threads run the engine, which whoever measures has to link.
    NoEntry,
    /// A box can't be made.
    Create(CreateError),
    /// A box doesn't answer.
    Control(CallError),
    /// A box broke its port.
    Port(PortFault),
    /// The system refused.
    System(SystemError),
    /// A box has no such port, or it is taken.
    NoPort(usize),
    /// Ports can't be laid out.
    Layout(LayoutError),
    /// The switch has no room.
    Switch(SwitchError),
    /// A ring can't have so many slots.
    Ring(RingError),
    /// Nothing came for so long that nothing will.
    Late {
        /// What was waited for.
        what: &'static str,
    },
}

impl fmt::Display for MeasureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host(error) => error.fmt(f),
            Self::NoKvm => write!(
                f,
                "virtual machines need /dev/kvm, which can't be opened here: give --sandbox process"
            ),
            Self::NoEntry => write!(f, "boxes in threads run the engine, and nothing else"),
            Self::Create(error) => error.fmt(f),
            Self::Control(error) => write!(f, "a box does not do as it is told: {error}"),
            Self::Port(error) => write!(f, "a box broke its port: {error}"),
            Self::System(error) => error.fmt(f),
            Self::NoPort(port) => write!(f, "the box has no port {port} to take"),
            Self::Layout(error) => error.fmt(f),
            Self::Switch(error) => error.fmt(f),
            Self::Ring(error) => error.fmt(f),
            Self::Late { what } => write!(f, "{what} did not come in time"),
        }
    }
}

impl std::error::Error for MeasureError {}

macro_rules! from {
    ($($kind:ident => $variant:ident),*) => {
        $(impl From<$kind> for MeasureError {
            fn from(error: $kind) -> Self {
                Self::$variant(error)
            }
        })*
    };
}

from!(LayoutError => Layout, HostError => Host, CreateError => Create, CallError => Control, PortFault => Port,
    SystemError => System, RingError => Ring, SwitchError => Switch);
