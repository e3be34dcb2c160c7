//! Scripts, control sockets and the driver.

mod balancedthreadsched;
mod chattersocket;
mod complaints;
mod connection;
mod controlsocket;
mod drivermanager;
mod expansion;
mod functions;
mod handlerproxy;
mod instructions;
mod llrpc;
mod machine;
mod message;
#[cfg(test)]
mod nowhere;
mod place;
mod progressbar;
mod progressline;
mod protocol;
mod scope;
mod script;
mod scripted;
mod signals;
mod sprintf;
mod staticthreadsched;
mod variables;
mod waiting;

pub use balancedthreadsched::BalancedThreadSched;
pub use chattersocket::ChatterSocket;
pub use controlsocket::ControlSocket;
pub use drivermanager::DriverManager;
pub use handlerproxy::HandlerProxy;
pub use message::Message;
pub use progressbar::ProgressBar;
pub use script::Script;
pub use staticthreadsched::StaticThreadSched;

element::classes![
    Script,
    DriverManager,
    ControlSocket,
    ChatterSocket,
    HandlerProxy,
    ProgressBar,
    StaticThreadSched,
    BalancedThreadSched,
    Message,
];
