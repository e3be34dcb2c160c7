//! The agent of a fabric: the process that holds the sessions with OpenFlow controllers. It is started when a daemon asks for
//! it, again when it ends, and ends with its fabric. What it says goes to the fabric alone.

use crate::child::{self, failed};
use crate::settings::Settings;
use protocol::Channel;
use protocol::launcher::{Shortfall, Step};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::Child;
use std::time::{Duration, Instant};

/// The time between the end of an agent and the start of the next one.
const PAUSE: Duration = Duration::from_secs(1);

/// The agent of a fabric. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct Agent {
    process: Option<(Child, OwnedFd)>,
    /// When it is started, if it does not run.
    start_at: Instant,
}

impl Agent {
    /// An agent that is to be started now.
    pub(crate) fn new(now: Instant) -> Self {
        Self { process: None, start_at: now }
    }

    /// Starts the process. Returns the fabric's end of the channel to it.
    pub(crate) fn start(&mut self, settings: &Settings, user: Option<u32>) -> Result<OwnedFd, Shortfall> {
        // If this fails, the next attempt comes later.
        self.start_at = Instant::now() + PAUSE;
        let (ours, theirs) = Channel::pair().map_err(|error| failed(Step::MakeChannel, &error))?;
        let mut arguments = settings.agent_arguments.clone();
        arguments.extend(user.map(|user| format!("--user={user}").into()));
        let started = child::start(&settings.program, &arguments, theirs);
        self.process = Some(started.map_err(|error| failed(Step::StartAgent, &error))?);
        Ok(ours.into())
    }

    /// When it has to be started; `None` while it runs.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.process.is_none().then_some(self.start_at)
    }

    /// The descriptor that is readable when the process has ended.
    pub(crate) fn pidfd(&self) -> Option<BorrowedFd<'_>> {
        self.process.as_ref().map(|(_, pidfd)| pidfd.as_fd())
    }

    /// Notices that the process has ended: the next one follows after a pause.
    pub(crate) fn reap(&mut self, now: Instant) {
        let has_ended = |(process, _): &mut (Child, OwnedFd)| matches!(process.try_wait(), Ok(Some(_)));
        if self.process.as_mut().is_some_and(has_ended) {
            self.process = None;
            self.start_at = now + PAUSE;
        }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        if let Some((process, _)) = &mut self.process {
            child::end(process);
        }
    }
}
