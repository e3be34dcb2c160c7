//! Network namespaces without a name: they end with the last process and descriptor that use them.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::process::{Command, Stdio};

use rustix::io::Errno;
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};

use super::error::DemoError;

/// A network namespace.
pub(super) struct Namespace(File);

impl Namespace {
    /// Makes an empty one.
    pub(super) fn new() -> Result<Namespace, DemoError> {
        let make = || {
            #[expect(
                deprecated,
                reason = "its successor is unsafe for what is not done here: to share no descriptors"
            )]
            rustix::thread::unshare(UnshareFlags::NEWNET).map_err(refused)?;
            File::open("/proc/thread-self/ns/net").map_err(DemoError::Namespace)
        };
        // In a separate thread, which enters the namespace and ends.
        let file = std::thread::scope(|scope| scope.spawn(make).join())
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        let namespace = Namespace(file);
        namespace.ip(&["link set lo up".to_string()])?;
        Ok(namespace)
    }

    /// Runs `act` in the namespace, including the programs that it starts. Its sockets stay in the namespace.
    pub(super) fn inside<T: Send>(&self, act: impl FnOnce() -> T + Send) -> Result<T, DemoError> {
        let run = || {
            move_into_link_name_space(self.0.as_fd(), Some(LinkNameSpaceType::Network)).map_err(refused)?;
            Ok(act())
        };
        std::thread::scope(|scope| scope.spawn(run).join())
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    /// Runs `ip` commands in the namespace.
    pub(super) fn ip(&self, commands: &[String]) -> Result<(), DemoError> {
        let text = commands.join("\n");
        let run = || {
            let mut child = Command::new("ip").args(["-batch", "-"]).stdin(Stdio::piped()).spawn()?;
            // A failed write shows in the status.
            let _ = child.stdin.take().map(|mut input| input.write_all(text.as_bytes()));
            child.wait()
        };
        let status = self.inside(run)?.map_err(DemoError::NoIp)?;
        if status.success() { Ok(()) } else { Err(DemoError::Ip(status)) }
    }

    /// Its path, which is valid while this lives.
    pub(super) fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd())
    }
}

fn refused(error: Errno) -> DemoError {
    match error {
        Errno::PERM | Errno::ACCESS => DemoError::NoPrivilege,
        error => DemoError::Namespace(io::Error::from(error)),
    }
}
