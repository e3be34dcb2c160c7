//! The conversations of the launcher: with the daemon, which asks for fabrics and devices, and with the fabrics that it
//! starts.

mod client;
mod ending;
mod fabric_end;
mod messages;
mod refusal;
mod start;

pub use client::{Client, ConnectedFabric, LauncherError};
pub use ending::{EndReason, Ending};
pub use fabric_end::{FabricEnd, FabricEndError, SuccessorListener, become_agent, become_fabric};
pub use messages::{
    FabricState, MAX_REPLY, MAX_REQUEST, PortDevice, Reply, Request, Share, SocketProtocol, ToFabric,
    TunnelDevice, VERSION,
};
pub use model::{HostAddress, TunnelKind};
pub use refusal::{Refusal, Shortfall, Step};
pub use start::{Starter, serve_starts, serve_starts_at, start};
