//! Scripts, control sockets and the driver.

mod balancedthreadsched;
mod calls;
mod chattersocket;
mod connection;
mod controlsocket;
mod drivermanager;
mod expansion;
mod functions;
mod handleraggregate;
mod handlerproxy;
mod instructions;
mod listen_address;
mod llrpc;
mod machine;
mod message;
mod progressbar;
mod progressline;
mod protocol;
mod retrying_listener;
mod script;
mod script_errors;
mod scripted;
mod signals;
mod sprintf;
mod staticthreadsched;
#[cfg(test)]
mod test_environment;
mod variables;

pub use balancedthreadsched::BalancedThreadSched;
pub use chattersocket::ChatterSocket;
pub use controlsocket::ControlSocket;
pub use drivermanager::DriverManager;
pub use handleraggregate::HandlerAggregate;
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
    HandlerAggregate,
    ProgressBar,
    StaticThreadSched,
    BalancedThreadSched,
    Message,
];
