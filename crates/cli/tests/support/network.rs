//! Network namespaces that live as long as the test.

use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, AsRawFd};
use std::process::{Command, Stdio};

/// An empty network.
pub(crate) struct Network(File);

impl Network {
    /// Makes one.
    pub(crate) fn new() -> Network {
        let make = || {
            #[expect(
                deprecated,
                reason = "its successor is unsafe for what is not done here: to share no descriptors"
            )]
            rustix::thread::unshare(UnshareFlags::NEWNET).expect("a network namespace");
            File::open("/proc/thread-self/ns/net").expect("the network namespace")
        };
        // In a separate thread, which enters the namespace and ends.
        let network = Network(std::thread::spawn(make).join().expect("the thread ends"));
        assert!(network.ip(&["link set lo up"]));
        network
    }

    /// Runs `act` in the namespace, including the threads and programs that it starts.
    pub(crate) fn inside<T: Send>(&self, act: impl FnOnce() -> T + Send) -> T {
        let run = || {
            let network = Some(LinkNameSpaceType::Network);
            move_into_link_name_space(self.0.as_fd(), network).expect("the network is entered");
            act()
        };
        std::thread::scope(|scope| scope.spawn(run).join())
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    /// Runs several `ip` commands in it in one call; returns whether they succeeded.
    pub(crate) fn ip<T: AsRef<str>>(&self, commands: &[T]) -> bool {
        let commands: Vec<&str> = commands.iter().map(AsRef::as_ref).collect();
        self.inside(|| {
            let child = Command::new("ip").args(["-batch", "-"]).stdin(Stdio::piped()).spawn();
            let Ok(mut child) = child else { return false };
            let text = commands.join("\n");
            let given = child.stdin.take().is_some_and(|mut input| input.write_all(text.as_bytes()).is_ok());
            given && child.wait().is_ok_and(|status| status.success())
        })
    }

    /// Sets a value under `/proc/sys/net`.
    pub(crate) fn set(&self, name: &str, value: &str) {
        let path = format!("/proc/sys/net/{name}");
        self.inside(|| std::fs::write(&path, value)).unwrap_or_else(|error| panic!("{path}: {error}"));
    }

    /// Its path, which is valid while this lives.
    pub(crate) fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd())
    }
}
