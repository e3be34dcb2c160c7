//! The events that tell a thread which boxes have ended.

use crate::boxes::{Instance, ManagedBox};
use rustix::buffer::spare_capacity;
use rustix::event::epoll;
use sandbox::EventFd;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// The token of the event that is signalled when a virtual machine ends.
const VM_TOKEN: u64 = 0;

/// The events that the thread waits for.
#[derive(Debug)]
pub(super) struct ExitEvents {
    epoll: OwnedFd,
    /// Signalled when a virtual machine ends, and to wake the thread.
    event: Arc<EventFd>,
    entries: Mutex<Entries>,
}

#[derive(Debug, Default)]
struct Entries {
    processes: BTreeMap<u64, Entry>,
    /// Boxes in virtual machines. All are checked when the event is signalled.
    vms: Vec<Watched>,
    /// Boxes that may have ended but could not be checked yet.
    again: Vec<Watched>,
    last: u64,
}

/// A watched box, as long as it exists.
type Watched = (Weak<ManagedBox>, Weak<Instance>);

/// A box that has ended.
type Ended = (Arc<ManagedBox>, Arc<Instance>);

#[derive(Debug)]
struct Entry {
    managed: Weak<ManagedBox>,
    instance: Weak<Instance>,
    /// Readable when the process has ended.
    _descriptor: OwnedFd,
}

impl ExitEvents {
    pub(super) fn new(event: Arc<EventFd>) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, event.as_fd(), epoll::EventData::new_u64(VM_TOKEN), epoll::EventFlags::IN)?;
        Ok(Self { epoll, event, entries: Mutex::default() })
    }

    /// Wakes the thread to check everything now.
    pub(super) fn wake(&self) {
        self.event.ring();
    }

    /// Watches a started box.
    pub(super) fn add(&self, managed: &Arc<ManagedBox>, instance: &Arc<Instance>) -> io::Result<()> {
        let (weak_managed, weak_instance) = (Arc::downgrade(managed), Arc::downgrade(instance));
        let mut entries = self.entries();
        let descriptors = instance.end_descriptors();
        if descriptors.is_empty() {
            entries.vms.retain(|(_, instance)| instance.strong_count() > 0);
            entries.vms.push((weak_managed, weak_instance));
            return Ok(());
        }
        for descriptor in descriptors {
            entries.last += 1;
            let token = entries.last;
            epoll::add(
                &self.epoll,
                &descriptor,
                epoll::EventData::new_u64(token),
                epoll::EventFlags::IN | epoll::EventFlags::ET,
            )?;
            let (managed, instance) = (weak_managed.clone(), weak_instance.clone());
            entries.processes.insert(token, Entry { managed, instance, _descriptor: descriptor });
        }
        Ok(())
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the thread check a box that may already have ended.
    pub(super) fn look_again(&self, managed: &Arc<ManagedBox>, instance: &Arc<Instance>) {
        self.entries().again.push((Arc::downgrade(managed), Arc::downgrade(instance)));
        self.wake();
    }

    /// Sleeps until an event. Returns the boxes that have ended.
    pub(super) fn wait(&self) -> Vec<Ended> {
        let mut events: Vec<epoll::Event> = Vec::with_capacity(64);
        // A signal ends the wait early, without events.
        let _ = epoll::wait(&self.epoll, spare_capacity(&mut events), None);
        let mut entries = self.entries();
        let mut suspects = std::mem::take(&mut entries.again);
        let mut found = Vec::new();
        for event in events {
            let token = event.data;
            match token.u64() {
                VM_TOKEN if self.event.rang() => suspects.extend(entries.vms.iter().cloned()),
                VM_TOKEN => {}
                token => {
                    let entry = entries.processes.remove(&token);
                    found.extend(
                        entry.and_then(|entry| Some((entry.managed.upgrade()?, entry.instance.upgrade()?))),
                    );
                }
            }
        }
        for suspect in suspects {
            let Some(instance) = suspect.1.upgrade() else { continue };
            if instance.has_ended() {
                found.extend(suspect.0.upgrade().map(|managed| (managed, instance)));
            }
        }
        found
    }
}
