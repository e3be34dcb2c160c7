//! How requests and signals tell the server to end.

use std::path::PathBuf;
use tokio::sync::mpsc;

/// What ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Shutdown {
    /// The daemon; the fabric and its boxes go on.
    Daemon,
    /// The fabric, its boxes and the launcher too.
    All,
    /// The daemon, once this program has replaced it.
    Replace(PathBuf),
}

/// Requests to end. One is enough.
const CAPACITY: usize = 1;

/// Asks the server to end, once it has answered all requests.
#[derive(Clone, Debug)]
pub(super) struct ShutdownSender(mpsc::Sender<Shutdown>);

impl ShutdownSender {
    /// A sender with its receiver.
    pub(super) fn channel() -> (Self, mpsc::Receiver<Shutdown>) {
        let (sender, receiver) = mpsc::channel(CAPACITY);
        (Self(sender), receiver)
    }

    /// Asks the server to end. If it is ending already, nothing changes.
    pub(super) fn send(&self, what: Shutdown) {
        let _ = self.0.try_send(what);
    }
}
