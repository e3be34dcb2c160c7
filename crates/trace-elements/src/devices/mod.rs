//! Interfaces, tunnels and sockets.

mod access_control;
mod fromdevice;
mod fromhost;
mod kerneltap;
mod kerneltun;
mod mcastsocket;
mod names;
mod opening;
mod rawsocket;
mod socket;
mod socketaddresses;
mod steered;
mod tochain;
mod todevice;
mod tohost;
mod tolookup;
mod tonext;
mod toport;
mod toservice;
mod transport;
mod tunnel;

pub use fromdevice::FromDevice;
pub use fromhost::FromHost;
pub use kerneltap::KernelTap;
pub use kerneltun::KernelTun;
pub use mcastsocket::McastSocket;
use opening::{check_method, open, report};
pub use rawsocket::RawSocket;
pub use socket::Socket;
pub use tochain::ToChain;
pub use todevice::ToDevice;
pub use tohost::ToHost;
pub use tolookup::ToLookup;
pub use tonext::ToNext;
pub use toport::ToPort;
pub use toservice::ToService;

element::classes![
    FromDevice,
    ToDevice,
    KernelTun,
    KernelTap,
    FromHost,
    ToHost,
    RawSocket,
    Socket,
    McastSocket,
    ToNext,
    ToService,
    ToPort,
    ToChain,
    ToLookup,
];
