//! Interfaces that elements use through XDP sockets.
//!
//! A queue of an interface can have one XDP socket. So the elements of a configuration, and those of the configuration that
//! replaces it, share what is open: the first of them opens it, and with the last one it is closed.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::{Rc, Weak};
use std::sync::{Mutex, MutexGuard, PoisonError};

use element::{Descriptor, Device, IoError};
use packet::{Batch, Packet, PacketType, Pool, Timestamp};
use rustix::time::{ClockId, clock_gettime};
use switch::device::{PacketSocket, PacketSocketSettings};
use switch::driver::{XdpError, XdpInterface};

use super::descriptors::Descriptors;
use super::device_parts::{BURST, HEADROOM, device_error, interface_error};
use super::files::io_error;
use crate::screen;

/// The error number of Linux for a missing privilege.
const EPERM: i32 = 1;

/// Interfaces that cannot be used in this way. That has been said, and all elements of the process use packet sockets.
static REFUSED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

fn refused() -> MutexGuard<'static, BTreeSet<String>> {
    REFUSED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The interfaces that are open.
#[derive(Default)]
pub(super) struct XdpInterfaces {
    open: RefCell<BTreeMap<String, Weak<SharedInterface>>>,
    /// The number of the newest configuration.
    configuration: Cell<u64>,
}

/// Says that packet sockets are used, once for each interface.
fn refuse(name: &str, why: &str) -> Option<Box<dyn Device>> {
    if refused().insert(name.into()) {
        screen::print(&format!("warning: {name}: the driver is af_packet instead of af_xdp: {why}"));
    }
    None
}

/// An interface with all its users.
struct SharedInterface {
    interface: RefCell<XdpInterface>,
    receivers: Cell<usize>,
    /// The configuration of the newest receiver.
    configuration: Cell<u64>,
}

impl XdpInterfaces {
    /// Announces a new configuration. It may replace the present one, and then receives from the same interfaces.
    pub(super) fn prepare(&self) {
        self.configuration.set(self.configuration.get() + 1);
    }

    /// Opens an interface, or joins its users. Returns `None`, after a message, if only a packet socket can serve.
    pub(super) fn open(
        &self,
        name: &str,
        settings: PacketSocketSettings,
        in_shards: bool,
        descriptors: &Descriptors,
    ) -> Result<Option<Box<dyn Device>>, IoError> {
        let receives = settings.receive > 0;
        if receives && settings.outbound {
            return Ok(refuse(name, "frames that this host sends (OUTBOUND) do not pass XDP sockets"));
        }
        if in_shards {
            return Ok(refuse(name, "several shards can't share XDP sockets"));
        }
        if refused().contains(name) {
            return Ok(None);
        }
        let shared = match self.share(name) {
            Ok(shared) => shared,
            Err(XdpError::Device(error)) => return Err(device_error(&error, "CAP_NET_RAW")),
            Err(error) => {
                let privileges = match &error {
                    XdpError::Program(error) if error.raw_os_error() == Some(EPERM) => {
                        ", which needs CAP_BPF and CAP_NET_ADMIN"
                    }
                    _ => "",
                };
                let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
                return Ok(refuse(name, &format!("{error}{privileges}{cause}")));
            }
        };
        let user = if receives {
            Receiver::join(shared, self.configuration.get(), name, settings, descriptors)
                .map(|receiver| Box::new(receiver) as Box<dyn Device>)
        } else {
            Sender::join(shared, name, descriptors).map(|sender| Box::new(sender) as Box<dyn Device>)
        };
        user.map(Some)
    }

    /// The interface, opened unless it is open.
    fn share(&self, name: &str) -> Result<Rc<SharedInterface>, XdpError> {
        let mut open = self.open.borrow_mut();
        let found = open.get(name).and_then(Weak::upgrade);
        // Of an interface that was removed, there may be a new one.
        if let Some(shared) = found.filter(|shared| !shared.is_gone()) {
            return Ok(shared);
        }
        let (interface, receivers) = (RefCell::new(XdpInterface::open(name)?), Cell::new(0));
        let shared = Rc::new(SharedInterface { interface, receivers, configuration: Cell::new(0) });
        open.insert(name.into(), Rc::downgrade(&shared));
        Ok(shared)
    }
}

impl SharedInterface {
    fn is_gone(&self) -> bool {
        self.interface.borrow().is_gone()
    }

    /// The error that the user sees.
    fn failure(&self, error: &io::Error) -> IoError {
        interface_error(error, self.is_gone())
    }
}

/// An element that receives.
struct Receiver {
    shared: Rc<SharedInterface>,
    /// Makes the interface promiscuous.
    _promiscuous: Option<OwnedFd>,
    /// Keeps the descriptor registered.
    _registered: Rc<OwnedFd>,
    descriptor: Descriptor,
    name: String,
    link: [u8; 6],
    /// Maximum number of bytes to keep of a frame.
    snap: usize,
    /// Frames that the interface had missed before.
    missed_before: u64,
    /// Frames dropped because the pool was exhausted.
    no_buffer: u64,
}

impl Receiver {
    fn join(
        shared: Rc<SharedInterface>,
        configuration: u64,
        name: &str,
        settings: PacketSocketSettings,
        descriptors: &Descriptors,
    ) -> Result<Receiver, IoError> {
        if shared.receivers.get() > 0 && shared.configuration.get() == configuration {
            return Err(IoError::Failed(
                "another FromDevice receives from this interface, and XDP sockets have one receiver: put a Tee \
                 behind it, or use METHOD LINUX for both"
                    .into(),
            ));
        }
        let promiscuous = PacketSocketSettings { promiscuous: true, ..PacketSocketSettings::default() };
        let promiscuous = settings
            .promiscuous
            .then(|| PacketSocket::open_descriptor(name, promiscuous))
            .transpose()
            .map_err(|error| device_error(&error, "CAP_NET_RAW"))?;
        let mut interface = shared.interface.borrow_mut();
        let registered = Rc::new(interface.incoming_descriptor().map_err(|error| io_error(&error))?);
        interface.start_receiving().map_err(|error| io_error(&error))?;
        let (link, missed_before) = (interface.mac(), interface.missed());
        drop(interface);
        shared.receivers.set(shared.receivers.get() + 1);
        shared.configuration.set(configuration);
        Ok(Receiver {
            shared,
            _promiscuous: promiscuous,
            descriptor: descriptors.register(&registered),
            _registered: registered,
            name: name.into(),
            link,
            snap: settings.snap,
            missed_before,
            no_buffer: 0,
        })
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let left = self.shared.receivers.get().saturating_sub(1);
        self.shared.receivers.set(left);
        if left == 0 {
            self.shared.interface.borrow_mut().stop_receiving();
        }
    }
}

impl Device for Receiver {
    fn receive(&mut self, pool: &Pool, most: usize, into: &mut Batch) -> Result<(), IoError> {
        let Receiver { shared, link, snap, no_buffer, .. } = self;
        let time = clock_gettime(ClockId::Realtime);
        let time = Timestamp::from_parts(time.tv_sec, time.tv_nsec as u32);
        let received = shared.interface.borrow_mut().receive(most, |frame| {
            let kept = frame.len().min(*snap);
            let Some(mut packet) = pool.allocate_with(HEADROOM, kept) else {
                *no_buffer += 1;
                return;
            };
            packet.data_mut().copy_from_slice(frame.get(..kept).unwrap_or_default());
            packet.set_packet_type(packet_type(frame, link));
            packet.set_timestamp(time);
            packet.set_extra_length(u32::try_from(frame.len() - kept).unwrap_or(u32::MAX));
            packet.set_mac(0);
            into.push(packet);
        });
        received.map(drop).map_err(|error| self.shared.failure(&error))
    }

    fn send(&mut self, _: &mut Batch) -> Result<(), IoError> {
        Err(io_error(&io::ErrorKind::Unsupported.into()))
    }

    fn is_gone(&self) -> bool {
        self.shared.is_gone()
    }

    fn coalesces(&self) -> bool {
        true
    }

    fn descriptor(&self) -> Option<Descriptor> {
        Some(self.descriptor)
    }

    fn name(&self) -> String {
        self.name.clone()
    }

    fn lost(&self) -> u64 {
        self.shared.interface.borrow_mut().missed() - self.missed_before + self.no_buffer
    }

    fn link(&self) -> Option<[u8; 6]> {
        Some(self.link)
    }
}

/// An element that sends.
struct Sender {
    shared: Rc<SharedInterface>,
    /// Keeps the descriptor registered.
    _registered: Rc<OwnedFd>,
    descriptor: Descriptor,
    name: String,
    too_long: usize,
}

impl Sender {
    fn join(shared: Rc<SharedInterface>, name: &str, descriptors: &Descriptors) -> Result<Sender, IoError> {
        let registered = shared.interface.borrow().outgoing_descriptor();
        let registered = Rc::new(registered.map_err(|error| io_error(&error))?);
        let descriptor = descriptors.register(&registered);
        Ok(Sender { shared, _registered: registered, descriptor, name: name.into(), too_long: 0 })
    }
}

impl Device for Sender {
    fn receive(&mut self, _: &Pool, _: usize, _: &mut Batch) -> Result<(), IoError> {
        Err(io_error(&io::ErrorKind::Unsupported.into()))
    }

    fn send(&mut self, batch: &mut Batch) -> Result<(), IoError> {
        let outcome = self.shared.interface.borrow_mut().send(batch.iter().map(Packet::data));
        drop(batch.drain_front(outcome.frames));
        self.too_long += outcome.too_long;
        outcome.error.map_or(Ok(()), |error| Err(self.shared.failure(&error)))
    }

    fn is_gone(&self) -> bool {
        self.shared.is_gone()
    }

    fn burst(&self) -> usize {
        BURST
    }

    fn take_refused(&mut self) -> usize {
        std::mem::take(&mut self.too_long)
    }

    fn descriptor(&self) -> Option<Descriptor> {
        Some(self.descriptor)
    }

    fn name(&self) -> String {
        self.name.clone()
    }

    fn link(&self) -> Option<[u8; 6]> {
        Some(self.shared.interface.borrow().mac())
    }
}

/// To whom a frame is addressed, as the host with this address sees it.
fn packet_type(frame: &[u8], link: &[u8; 6]) -> PacketType {
    match frame.first_chunk::<6>() {
        Some(to) if to == link => PacketType::Host,
        Some([0xff, 0xff, 0xff, 0xff, 0xff, 0xff]) => PacketType::Broadcast,
        Some([first, ..]) if first & 1 != 0 => PacketType::Multicast,
        _ => PacketType::OtherHost,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packet_types_follow_from_the_destination() {
        let link = [2, 0, 0, 0, 0, 1];
        let of = |to: [u8; 6]| packet_type(&to, &link);
        assert_eq!(of(link), PacketType::Host);
        assert_eq!(of([0xff; 6]), PacketType::Broadcast);
        assert_eq!(of([0x33, 0x33, 0, 0, 0, 1]), PacketType::Multicast);
        assert_eq!(of([2, 0, 0, 0, 0, 2]), PacketType::OtherHost);
        assert_eq!(packet_type(&[2, 0], &link), PacketType::OtherHost);
    }
}
