//! The spawner of a host.

use crate::error::{HostError, SetupError, SystemError};
use crate::lock::lock;
use crate::process::isolation::Isolation;
use crate::process::spawner::box_process::BoxProcess;
use crate::process::spawner::filter;
use crate::process::spawner::forker::Forker;
use crate::process::spawner::launch::Helper;
use crate::process::spawner::link::{Link, SpawnRequest};
use seccomp::Program;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

type Started = Result<Arc<Link>, SetupError>;

/// The link to the current helper.
enum Current {
    /// It is being started.
    Starting(Receiver<Started>),
    Running(Arc<Link>),
    /// It could not be started.
    None,
}

/// Creates the processes of a host's boxes: see the module.
pub(crate) struct Spawner {
    current: Mutex<Current>,
    /// Asks the thread for a helper.
    starts: Option<Sender<Sender<Started>>>,
    thread: Option<JoinHandle<()>>,
}

impl Spawner {
    /// Starts the helper. The thread that forks it lives as long as the spawner, because the kernel kills the helper when
    /// that thread ends.
    /// With a forker, the forker does that.
    pub(crate) fn start(image: &OwnedFd, forker: Option<Forker>) -> Result<Self, HostError> {
        let filter = filter::program()?;
        Self::with_filter(image, forker, Some(filter))
    }

    /// A spawner whose helper has this filter or none. A forker decides itself.
    pub(crate) fn with_filter(
        image: &OwnedFd,
        forker: Option<Forker>,
        filter: Option<Program>,
    ) -> Result<Self, HostError> {
        let failed = |cause| SystemError { action: "start the process spawner", cause };
        let image = image.try_clone().map_err(failed)?;
        let image_filter = filter::image_program()?;
        let (starts, orders) = mpsc::channel::<Sender<Started>>();
        let run = move || {
            // The last one: its end ends the boxes that it has created.
            let mut helper = None;
            while let Ok(answer) = orders.recv() {
                drop(helper.take());
                let started = match &forker {
                    Some(forker) => forker.start(image.as_fd()),
                    None => {
                        Helper::start(image.as_fd(), filter.as_ref(), &image_filter).map(|(started, link)| {
                            helper = Some(started);
                            link
                        })
                    }
                };
                let started = started.map(Arc::new);
                // If the receiver is gone, the host is being dropped.
                let _ = answer.send(started);
            }
        };
        let thread = std::thread::Builder::new().name("spawner".into()).spawn(run).map_err(failed)?;
        let (answer, started) = mpsc::channel();
        // It fails only if the thread has ended, which a receiver without a sender tells.
        let _ = starts.send(answer);
        Ok(Self {
            current: Mutex::new(Current::Starting(started)),
            starts: Some(starts),
            thread: Some(thread),
        })
    }

    /// The link to a helper that runs, as far as is known. A helper that has ended is replaced.
    fn link(&self) -> Result<Arc<Link>, SetupError> {
        let mut current = lock(&self.current);
        let started = match &*current {
            Current::Running(link) if !link.has_ended() => return Ok(link.clone()),
            Current::Starting(started) => started.recv(),
            Current::Running(_) | Current::None => {
                let (answer, started) = mpsc::channel();
                let starts = self.starts.as_ref().ok_or(SetupError::Gone)?;
                starts.send(answer).map_err(|_| SetupError::Gone)?;
                started.recv()
            }
        };
        match started.unwrap_or(Err(SetupError::Gone)) {
            Ok(link) => {
                *current = Current::Running(link.clone());
                Ok(link)
            }
            Err(error) => {
                *current = Current::None;
                Err(error)
            }
        }
    }

    /// What isolates the processes that it creates.
    pub(crate) fn isolation(&self) -> Result<Isolation, SetupError> {
        Ok(self.link()?.isolation().clone())
    }

    /// Creates a process.
    pub(crate) fn spawn(&self, request: &SpawnRequest<'_>) -> Result<BoxProcess, SetupError> {
        let link = self.link()?;
        let (process, descriptor) = link.spawn(request)?;
        BoxProcess::new(link, process, descriptor).map_err(SetupError::Spawner)
    }
}

impl Drop for Spawner {
    fn drop(&mut self) {
        self.starts = None;
        if let Some(thread) = self.thread.take() {
            // A thread that panicked needs no further cleanup.
            let _ = thread.join();
        }
    }
}
