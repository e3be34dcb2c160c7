//! Scripts, sockets and the driver.

use element::Class;

mod connection;
mod controlsocket;
mod drivermanager;
mod expansion;
mod functions;
mod instructions;
mod llrpc;
mod machine;
mod place;
mod protocol;
mod script;
mod scripted;
mod signals;
mod sprintf;
mod waiting;

pub use controlsocket::ControlSocket;
pub use drivermanager::DriverManager;
pub use script::Script;

/// The classes of this group, in the order of the reference.
pub static CLASSES: &[Class] =
    &[Class::of::<Script>(), Class::of::<DriverManager>(), Class::of::<ControlSocket>()];
