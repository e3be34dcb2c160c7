//! The descriptors that elements may watch.

use std::cell::RefCell;
use std::collections::HashMap;
use std::os::fd::{AsFd, AsRawFd};
use std::rc::{Rc, Weak};
use std::time::Duration;

use element::Descriptor;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// The open descriptors of an environment, by the numbers that elements use. Entries expire when their owners are
/// dropped.
#[derive(Clone, Default)]
pub(super) struct Descriptors {
    open: Rc<RefCell<HashMap<Descriptor, Weak<dyn AsFd>>>>,
}

impl Descriptors {
    /// Registers a descriptor.
    pub(super) fn register<S: AsFd + 'static>(&self, socket: &Rc<S>) -> Descriptor {
        let descriptor = Descriptor(socket.as_fd().as_raw_fd());
        let shared: Rc<dyn AsFd> = socket.clone();
        self.open.borrow_mut().insert(descriptor, Rc::downgrade(&shared));
        descriptor
    }

    /// Waits until one of `watched` can be read or written, for at most `limit`; returns the ready ones.
    pub(super) fn wait(
        &self,
        watched: &[(Descriptor, bool, bool)],
        limit: Option<Duration>,
    ) -> Vec<Descriptor> {
        let open = self.open.borrow();
        let held: Vec<_> = watched
            .iter()
            .filter_map(|(descriptor, read, write)| {
                Some((*descriptor, *read, *write, open.get(descriptor)?.upgrade()?))
            })
            .collect();
        let mut polled: Vec<PollFd<'_>> = held
            .iter()
            .map(|(_, read, write, socket)| {
                let mut flags = PollFlags::empty();
                flags.set(PollFlags::IN, *read);
                flags.set(PollFlags::OUT, *write);
                PollFd::from_borrowed_fd(socket.as_fd(), flags)
            })
            .collect();
        let limit = limit.map(|limit| Timespec {
            tv_sec: limit.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: limit.subsec_nanos().into(),
        });
        // A signal makes this return early with none ready, which callers expect.
        if poll(&mut polled, limit.as_ref()).is_err() {
            return Vec::new();
        }
        let ready = polled.iter().zip(&held).filter(|(fd, _)| !fd.revents().is_empty());
        ready.map(|(_, (descriptor, ..))| *descriptor).collect()
    }
}
