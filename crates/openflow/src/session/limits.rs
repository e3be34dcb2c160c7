//! How far a session is, and the limits of all.

use std::time::Duration;

/// How far a session is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SessionState {
    /// It waits for the controller's hello message.
    Greeting,
    /// Both sides agreed on a version.
    Open,
    /// It ended: the connection is to be closed after the output is sent.
    Closed,
}

/// Limits of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgentLimits {
    /// Sessions at once.
    pub sessions: usize,
    /// Bytes that wait to be sent to a controller. Beyond, its messages are not read, and packets for it are dropped. A
    /// message or a part of a report can exceed the limit.
    pub output: usize,
    /// Time for the controller's hello message.
    pub greeting: Duration,
    /// Time without a byte from the controller, after which it is asked for a sign of life, and after which again the
    /// session ends.
    pub silence: Duration,
    /// Time for which a packet is kept for the controllers.
    pub buffer: Duration,
}

impl Default for AgentLimits {
    fn default() -> Self {
        Self {
            sessions: 16,
            output: 1 << 20,
            greeting: Duration::from_secs(10),
            silence: Duration::from_secs(15),
            buffer: Duration::from_secs(5),
        }
    }
}
