//! A fabric: one that this launcher started, or one that it adopted.

use crate::agent::Agent;
use crate::cgroup;
use crate::child::{self, failed};
use crate::settings::Settings;
use crate::successor::{self, Orphan};
use protocol::launcher::{EndReason, Ending, FabricState, MAX_REQUEST, Share, Shortfall, Step, ToFabric};
use protocol::{Channel, StoreIdentity};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, fcntl_getfl, fcntl_setfl, open};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, pidfd_send_signal};
use rustix::thread::{CpuSet, sched_setaffinity};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

/// How long a fabric may take to end after SIGTERM, before it is killed.
pub(crate) const TERM_TIMEOUT: Duration = Duration::from_secs(2);

/// How long a launcher that can't see the status of an ending fabric waits for its end.
const STATUS_TIMEOUT_NS: i64 = 10_000_000;

/// A fabric that has not been reaped.
#[derive(Debug)]
pub(crate) struct Fabric {
    pub(crate) state: FabricState,
    process: Process,
    pidfd: OwnedFd,
    channel: Channel,
    /// It was told to end, and is killed at this time.
    kill_at: Option<Instant>,
    /// Its agent, if a daemon asked for it.
    pub(crate) agent: Option<Agent>,
}

/// The process of a fabric.
#[derive(Debug)]
enum Process {
    /// This launcher started it, and learns how it ended.
    Child(Child),
    /// An earlier launcher started it. Another process reaps it.
    Adopted,
}

impl Fabric {
    /// Takes in a fabric of a launcher that has ended.
    pub(crate) fn adopt(number: u32, orphan: Orphan, shortfalls: &[Shortfall]) -> Self {
        let pid = orphan.pid.as_raw_pid().cast_unsigned();
        let cgroups = cgroup::of(&cgroup::name_of(pid), pid);
        Self {
            state: FabricState { number, pid, cgroups, shortfalls: shortfalls.to_vec() },
            process: Process::Adopted,
            pidfd: orphan.pidfd,
            channel: orphan.channel,
            kill_at: None,
            agent: None,
        }
    }

    /// Starts a fabric, which waits for [`identify`](Self::identify). `shortfalls` are those of all fabrics.
    pub(crate) fn start(
        settings: &Settings,
        number: u32,
        user: Option<u32>,
        share: Option<&Share>,
        shortfalls: &[Shortfall],
    ) -> Result<Self, Shortfall> {
        let (channel, theirs) = Channel::pair().map_err(|error| failed(Step::MakeChannel, &error))?;
        // A fabric that does not read its messages must not stop the launcher.
        fcntl_getfl(&channel)
            .and_then(|flags| fcntl_setfl(&channel, flags | OFlags::NONBLOCK))
            .map_err(|error| failed(Step::MakeChannel, &error.into()))?;
        let mut arguments = settings.arguments.clone();
        if share.is_some_and(|share| share.processors.is_empty()) {
            arguments.push("--shares-processors".into());
        }
        let started = child::start(&settings.program, &arguments, theirs);
        let (process, pidfd) = started.map_err(|error| failed(Step::StartFabric, &error))?;
        let (pid, shortfalls) = (process.id(), shortfalls.to_vec());
        let state = FabricState { number, pid, cgroups: Vec::new(), shortfalls };
        let process = Process::Child(process);
        let mut fabric = Self { state, process, pidfd, channel, kill_at: None, agent: None };
        fabric.enter_cgroups(user, share.map(|share| share.weight));
        fabric.confine(share.map_or(&[], |share| &share.processors));
        Ok(fabric)
    }

    /// Sends the first messages: the user, the socket for the next launcher if the path of this one's is given, the store, and
    /// `/dev/kvm`.
    pub(crate) fn identify(
        &mut self,
        user: Option<u32>,
        store: StoreIdentity,
        launcher: Option<&Path>,
    ) -> Result<(), Shortfall> {
        if let Some(user) = user {
            self.tell(&ToFabric::User(user), None)?;
        }
        if let Some(launcher) = launcher {
            self.send_successor(launcher)?;
        }
        let kvm = open_kvm(&mut self.state);
        self.tell(&ToFabric::Identity(store), kvm)
    }

    /// Sends the socket for the launcher that follows this one.
    pub(crate) fn send_successor(&mut self, launcher: &Path) -> Result<(), Shortfall> {
        match successor::bind(launcher, self.state.number) {
            Ok(socket) => self.tell(&ToFabric::Successor, Some(socket)),
            Err(error) => {
                self.state.shortfalls.push(failed(Step::MakeSuccessorSocket, &error));
                Ok(())
            }
        }
    }

    /// Moves the fabric into groups of its own. It waits for its first message, so it has no children yet.
    fn enter_cgroups(&mut self, user: Option<u32>, weight: Option<u16>) {
        let name = cgroup::name_of(self.state.pid);
        let (groups, error) = cgroup::enter(&name, self.state.pid, weight);
        self.state.cgroups = groups;
        self.state.shortfalls.extend(error.map(|error| failed(Step::MakeCgroup, &error)));
        let delegate = |user| self.state.cgroups.iter().try_for_each(|group| cgroup::delegate(group, user));
        if let Some(Err(error)) = user.map(delegate) {
            self.state.shortfalls.push(failed(Step::DelegateCgroup, &error));
        }
    }

    /// Keeps the fabric on these processors, if there are any. It has one thread yet.
    fn confine(&mut self, processors: &[u16]) {
        let mut set = CpuSet::new();
        for number in processors.iter().map(|number| usize::from(*number)).filter(|n| *n < CpuSet::MAX_CPU) {
            set.set(number);
        }
        if set.count() == 0 {
            return;
        }
        let confined = sched_setaffinity(Pid::from_raw(self.state.pid.cast_signed()), &set);
        self.state.shortfalls.extend(confined.err().map(|error| failed(Step::SetProcessors, &error.into())));
    }

    fn tell(&self, message: &ToFabric, descriptor: Option<OwnedFd>) -> Result<(), Shortfall> {
        let descriptors: Vec<BorrowedFd<'_>> = descriptor.iter().map(AsFd::as_fd).collect();
        self.channel.send(message, &descriptors).map_err(|error| match error {
            protocol::ChannelError::System(error) => failed(Step::TellFabric, &error),
            protocol::ChannelError::WouldBlock => failed(Step::TellFabric, &Errno::AGAIN.into()),
            _ => failed(Step::TellFabric, &Errno::PIPE.into()),
        })
    }

    /// Connects a daemon: returns its end of a new channel, whose other end the fabric gets.
    pub(crate) fn connect(&self) -> Result<OwnedFd, Shortfall> {
        let (ours, theirs) = Channel::pair().map_err(|error| failed(Step::MakeChannel, &error))?;
        self.tell(&ToFabric::Daemon, Some(theirs.into()))?;
        Ok(ours.into())
    }

    /// Starts its agent if that is due, and connects the two.
    pub(crate) fn start_agent(
        &mut self,
        settings: &Settings,
        user: Option<u32>,
        now: Instant,
    ) -> Result<(), Shortfall> {
        let is_ending = self.is_ending();
        let Some(agent) = self.agent.as_mut().filter(|agent| agent.due().is_some_and(|at| at <= now)) else {
            return Ok(());
        };
        if is_ending {
            return Ok(());
        }
        let theirs = agent.start(settings, user)?;
        self.tell(&ToFabric::Agent, Some(theirs))
    }

    /// The descriptor that is readable when the fabric has ended.
    pub(crate) fn pidfd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    /// Whether it was told to end.
    pub(crate) fn is_ending(&self) -> bool {
        self.kill_at.is_some()
    }

    /// Tells it to end.
    pub(crate) fn end(&mut self, now: Instant) {
        if self.kill_at.is_none() {
            self.kill_at = Some(now + TERM_TIMEOUT);
            // It fails only if the fabric has ended.
            let _ = pidfd_send_signal(&self.pidfd, Signal::TERM);
        }
    }

    /// When [`kill_if_due`](Self::kill_if_due) has to be called.
    pub(crate) fn kill_at(&self) -> Option<Instant> {
        self.kill_at
    }

    /// Kills it if it did not end in time.
    pub(crate) fn kill_if_due(&mut self, now: Instant) {
        if self.kill_at.is_some_and(|at| at <= now) {
            self.kill_at = Some(now + TERM_TIMEOUT);
            let _ = pidfd_send_signal(&self.pidfd, Signal::KILL);
        }
    }

    /// How it ended, if it has.
    pub(crate) fn reap(&mut self) -> Option<Ending> {
        match &mut self.process {
            Process::Child(process) => process.try_wait().ok().flatten().map(Ending::from),
            Process::Adopted => has_ended(&self.pidfd, Some(&Timespec::default())).then(|| self.last_word()),
        }
    }

    /// Kills it, and does not wait.
    pub(crate) fn kill(&self) {
        // It fails only if the fabric has ended.
        let _ = pidfd_send_signal(&self.pidfd, Signal::KILL);
    }

    /// Kills it and waits until it has ended.
    pub(crate) fn kill_now(&mut self) -> Option<Ending> {
        self.kill();
        match &mut self.process {
            Process::Child(process) => process.wait().ok().map(Ending::from),
            Process::Adopted => has_ended(&self.pidfd, None).then(|| self.last_word()),
        }
    }

    /// How it ends, after it has closed its end of the channel, and before its process can be reaped.
    pub(crate) fn expected_ending(&mut self) -> Ending {
        if let Ending::Reason(reason) = self.last_word() {
            return Ending::Reason(reason);
        }
        let Process::Child(_) = self.process else { return Ending::Silent };
        if let Some(status) = early_status(self.state.pid) {
            return status.into();
        }
        // Without the privilege to see the status, a short wait is worth it: few virtual machines are removed soon.
        let timeout = Timespec { tv_sec: 0, tv_nsec: STATUS_TIMEOUT_NS };
        let reaped = if has_ended(&self.pidfd, Some(&timeout)) { self.reap() } else { None };
        reaped.unwrap_or(Ending::Silent)
    }

    /// What it said before it ended.
    fn last_word(&self) -> Ending {
        match self.channel.receive::<EndReason>(MAX_REQUEST) {
            Ok(Some(received)) => Ending::Reason(received.message),
            _ => Ending::Silent,
        }
    }
}

/// The exit status of a process that is about to end. `None` if it is not known, or 0.
fn early_status(pid: u32) -> Option<ExitStatus> {
    let line = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let status: i32 = line.split_ascii_whitespace().next_back()?.parse().ok()?;
    (status != 0).then(|| ExitStatus::from_raw(status))
}

/// Whether a process has ended, or ends in this time. Without a time, it waits as long as it takes.
fn has_ended(pidfd: &OwnedFd, timeout: Option<&Timespec>) -> bool {
    loop {
        match poll(&mut [PollFd::new(pidfd, PollFlags::IN)], timeout) {
            Err(Errno::INTR) => {}
            ready => return ready.is_ok_and(|ready| ready > 0),
        }
    }
}

/// `/dev/kvm`, if the host has it. That it may not be opened is noted.
fn open_kvm(state: &mut FabricState) -> Option<OwnedFd> {
    match open("/dev/kvm", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()) {
        Ok(kvm) => Some(kvm),
        Err(Errno::NOENT) => None,
        Err(error) => {
            state.shortfalls.push(failed(Step::OpenKvm, &error.into()));
            None
        }
    }
}
