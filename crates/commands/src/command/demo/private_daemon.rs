//! A daemon with its own socket and store, for the time of a demonstration.

use std::fs::DirBuilder;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use api::client::{Address, Client, Credentials};

use super::error::DemoError;
use crate::error::{CommandError, FileError};

/// The daemon, which ends when this is dropped. Its folder is removed then.
pub(super) struct PrivateDaemon {
    client: Client,
    daemon: Child,
    folder: PathBuf,
}

impl PrivateDaemon {
    /// Starts it in the network namespace of the calling thread.
    pub(super) fn start() -> Result<PrivateDaemon, CommandError> {
        let folder = std::env::temp_dir().join(format!("clickbox-demo-{}", std::process::id()));
        let socket = folder.join("socket");
        DirBuilder::new().mode(0o700).create(&folder).map_err(|error| FileError::new(&folder, error))?;
        let started = spawn(&folder);
        let mut daemon = started.map_err(DemoError::Daemon)?;
        let client = Client::new(Address::Unix(socket), &Credentials::default())?;
        let mut ready = String::new();
        let line = daemon.stdout.as_mut().map(|output| BufReader::new(output).read_line(&mut ready));
        // Created first, so that it cleans up after any error below.
        let started = PrivateDaemon { client, daemon, folder };
        match line {
            Some(Ok(1..)) => Ok(started),
            _ => Err(DemoError::NotReady.into()),
        }
    }

    /// Its client.
    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// Writes a file to its folder; returns the path.
    pub(super) fn write(&self, name: &str, contents: &[u8]) -> Result<PathBuf, FileError> {
        let path = self.folder.join(name);
        std::fs::write(&path, contents).map_err(|error| FileError::new(&path, error))?;
        Ok(path)
    }
}

/// Starts this program as a daemon that ends with this process, however this process ends.
fn spawn(folder: &Path) -> std::io::Result<Child> {
    Command::new(std::env::current_exe()?)
        .args(["daemon", "--until-input-ends", "--json", "--socket"])
        .arg(folder.join("socket"))
        .arg("--store")
        .arg(folder.join("store"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        // Ctrl-C must reach only this process, which ends the daemon after its summary.
        .process_group(0)
        .spawn()
}

impl Drop for PrivateDaemon {
    fn drop(&mut self) {
        // The daemon exits when its standard input closes.
        drop(self.daemon.stdin.take());
        let _ = self.daemon.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
