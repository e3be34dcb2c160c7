//! Settings of a launcher.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Settings of a launcher.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The path of the socket to listen on.
    pub socket: PathBuf,
    /// The program of a fabric, and its arguments.
    pub program: PathBuf,
    /// The arguments of that program.
    pub arguments: Vec<OsString>,
    /// The arguments that make it the agent of a fabric.
    pub agent_arguments: Vec<OsString>,
    /// The number of threads that run the switches of each fabric: network interfaces are opened with as many queues.
    pub switch_threads: usize,
    /// The user and the group that fabrics become if the launcher is root. No file and no other process may be theirs. A fabric
    /// with another number than 0 becomes the user whose number is lower by its own.
    ///
    /// Root without capabilities cannot map itself into a user namespace, so boxes in processes would lack one, and
    /// would run as root. Without this setting, fabrics run as the launcher's user.
    pub fabric_user: Option<u32>,
    /// How long a launcher without clients and fabrics goes on. After this time it also forgets the store that it
    /// served, and the devices that it kept.
    pub idle_timeout: Duration,
    /// Do not end after that time.
    pub stays: bool,
    /// Close standard input when the socket exists, as [`protocol::launcher::start`] expects.
    pub closes_input: bool,
}

impl Settings {
    /// The usual settings, for a socket and a program.
    pub fn new(socket: impl Into<PathBuf>, program: impl Into<PathBuf>) -> Self {
        Self {
            socket: socket.into(),
            program: program.into(),
            arguments: vec!["fabric".into()],
            agent_arguments: vec!["agent".into()],
            switch_threads: 1,
            fabric_user: None,
            idle_timeout: Duration::from_secs(5),
            stays: false,
            closes_input: false,
        }
    }
}
