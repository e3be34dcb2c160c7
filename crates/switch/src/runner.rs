//! A switch with its drivers: moves frames, and sleeps when there are none.

use crate::attention::Attention;
use crate::batch::Batch;
use crate::books::{LinkBooks, PortBooks};
use crate::counters::Counters;
use crate::driver::{Driver, DriverError, LinkState, Received, Sent, part_sent};
use crate::forward::{Forward, Outcome};
use crate::link::Link;
use crate::made::MadeFrames;
use crate::plan::ForwardingPlan;
use crate::port::{PortId, PortLimits, PortSettings};
use crate::shards::{Exchange, Message, without_shard};
use crate::silence::{Progress, SilenceWatch};
use crate::switch::{Switch, SwitchError};
use boundary::DirectBatch;
use reason::Reason;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

/// Maximum frames that one visit takes from a port.
pub(crate) const QUANTUM: usize = 256;

/// Maximum consecutive visits that a weight grants, so that a port's turn ends.
const MAX_WEIGHT: u32 = 64;

/// How long an idle runner polls before it sleeps.
const SPIN_TIME: Duration = Duration::from_micros(50);

/// Time spent on a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortCost {
    /// Time spent on its frames: receiving, deciding, and copying them to their destinations.
    pub time: Duration,
    /// Visits that found frames.
    pub visits: u64,
    /// Packets of a function that went straight to the next one.
    pub direct: u64,
}

pub(crate) struct DriverSlot {
    pub(crate) driver: Box<dyn Driver>,
    /// The shard of the switch that drives the port, if it is another one.
    pub(crate) owner: Option<usize>,
    /// Whether the other shards of the switch send to the port through this one.
    serves_others: bool,
    pub(crate) cost: PortCost,
    /// Frames that came from the driver, and that it accepted.
    pub(crate) came: u64,
    pub(crate) went: u64,
    /// Why the driver is down.
    down: Option<DriverError>,
    /// The watch over a function that may not stand still.
    watch: Option<SilenceWatch>,
    /// The function that all packets of the last batch went to.
    pub(crate) direct_to: Option<PortId>,
}

/// A switch, its drivers, and the buffers between them.
pub struct SwitchRunner<F> {
    pub(crate) switch: Switch<F>,
    pub(crate) slots: Vec<Option<DriverSlot>>,
    attention: Attention,
    /// The frames that the last step moved.
    moved: usize,
    links: Vec<Option<Box<dyn Link>>>,
    pub(crate) batch: Batch,
    pub(crate) direct: DirectBatch,
    plan: ForwardingPlan,
    made: MadeFrames,
    /// Ports that had little room left when something was last sent to them.
    crowded: Vec<PortId>,
    /// Ports that other shards drive, and that have little room left there.
    crowded_elsewhere: Vec<PortId>,
    /// An eventfd that wakes the runner.
    wake_event: OwnedFd,
    pub(crate) start: Instant,
    /// The rings to the other shards of the switch, if it has any.
    pub(crate) exchange: Option<Box<Exchange>>,
}

impl<F> std::fmt::Debug for SwitchRunner<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SwitchRunner").field("slots", &self.slots.len()).finish_non_exhaustive()
    }
}

impl<F: Forward> SwitchRunner<F> {
    /// A runner for a switch without ports.
    pub fn new(forward: F) -> io::Result<Self> {
        // SAFETY: the call has no preconditions; the descriptor that it returns is owned by this value alone.
        let wake_event = unsafe {
            match libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) {
                descriptor if descriptor >= 0 => OwnedFd::from_raw_fd(descriptor),
                _ => return Err(io::Error::last_os_error()),
            }
        };
        Ok(Self {
            switch: Switch::new(forward),
            slots: Vec::new(),
            attention: Attention::default(),
            moved: 0,
            links: Vec::new(),
            batch: Batch::new(QUANTUM),
            direct: DirectBatch::default(),
            plan: ForwardingPlan::default(),
            made: MadeFrames::default(),
            crowded: Vec::new(),
            crowded_elsewhere: Vec::new(),
            wake_event,
            start: Instant::now(),
            exchange: None,
        })
    }

    /// An eventfd that wakes the sleeping runner: for boxes, and for other threads.
    pub fn wake_event(&self) -> io::Result<OwnedFd> {
        self.wake_event.try_clone()
    }

    /// Adds a port.
    pub fn add_port(
        &mut self,
        driver: Box<dyn Driver>,
        settings: PortSettings,
    ) -> Result<PortId, SwitchError> {
        let limits = PortLimits::new(&settings);
        self.add_owned_port(driver, settings, limits, None)
    }

    /// Adds a port, with limits that all shards share, which another shard drives if there is an `owner`.
    pub(crate) fn add_owned_port(
        &mut self,
        driver: Box<dyn Driver>,
        settings: PortSettings,
        limits: PortLimits,
        owner: Option<usize>,
    ) -> Result<PortId, SwitchError> {
        let port = self.switch.add_limited_port(settings, limits)?;
        let index = usize::from(port.0);
        if self.slots.len() <= index {
            self.slots.resize_with(index + 1, || None);
        }
        if let Some(slot) = self.slots.get_mut(index) {
            *slot = Some(DriverSlot {
                driver,
                owner,
                serves_others: false,
                cost: PortCost::default(),
                came: 0,
                went: 0,
                down: None,
                watch: None,
                direct_to: None,
            });
        }
        Ok(port)
    }

    /// The shard that drives a port, if it is another one.
    pub(crate) fn owner(&self, port: PortId) -> Option<usize> {
        self.slots.get(usize::from(port.0))?.as_ref()?.owner
    }

    /// Notes whether the other shards of the switch send to a port through this one.
    pub(crate) fn set_serves_others(&mut self, port: PortId, serves_others: bool) {
        if let Some(slot) = self.slots.get_mut(usize::from(port.0)).and_then(Option::as_mut) {
            slot.serves_others = serves_others;
        }
    }

    /// Says which shard drives a port, if it is another one.
    pub(crate) fn set_owner(&mut self, port: PortId, owner: Option<usize>) {
        if let Some(slot) = self.slots.get_mut(usize::from(port.0)).and_then(Option::as_mut) {
            slot.owner = owner;
        }
    }

    /// The number of ports for which this shard has a driver.
    pub(crate) fn driver_count(&self) -> usize {
        self.slots.iter().flatten().filter(|slot| slot.owner.is_none()).count()
    }

    /// Notes that the shard which drives a port has a driver that works.
    pub(crate) fn resume_port(&mut self, port: PortId) {
        self.crowded_elsewhere.retain(|other| *other != port);
        self.switch.forward_mut().resume_port(port);
    }

    /// Says whether a port gets frames that are sent to all ports.
    pub fn set_flooded(&mut self, port: PortId, is_flooded: bool) {
        self.switch.set_flooded(port, is_flooded);
    }

    /// Says after which time the other end of a port counts as dead if frames wait for it and it takes none; `None`: never.
    pub fn set_dead_after(&mut self, port: PortId, limit: Option<Duration>) {
        let Some(slot) = self.slots.get_mut(usize::from(port.0)).and_then(Option::as_mut) else { return };
        if slot.watch.as_ref().map(SilenceWatch::limit) != limit {
            slot.watch = limit.map(SilenceWatch::new);
            self.switch.forward_mut().set_silent(port, false);
        }
    }

    /// What waits for the other end of a port and what it took, if its driver knows.
    pub fn progress(&mut self, port: PortId) -> Option<Progress> {
        running_slot(&mut self.slots, port).and_then(|slot| slot.driver.progress())
    }

    /// Finds out which ports stand still, and tells the method. Returns those that began to, with the frames that wait there.
    /// `due`: when to look again, in nanoseconds, if that is earlier.
    pub fn look_for_silence(&mut self, now: u64, due: &mut Option<u64>) -> Vec<(PortId, u64)> {
        let mut found = Vec::new();
        for (port, slot) in (0..).map(PortId).zip(&mut self.slots) {
            let Some(DriverSlot { driver, down, watch: Some(watch), .. }) = slot else { continue };
            let progress = if down.is_none() { driver.progress() } else { None };
            let look = watch.look(progress, now);
            *due = [*due, look.due].into_iter().flatten().min();
            if let Some(is_silent) = look.change {
                self.switch.forward_mut().set_silent(port, is_silent);
                if is_silent {
                    found.push((port, progress.map_or(0, |progress| progress.waiting)));
                }
            }
        }
        found
    }

    /// Removes a port and its driver. Returns its final counters.
    pub fn remove_port(&mut self, port: PortId) -> Option<Counters> {
        self.crowded_elsewhere.retain(|other| *other != port);
        self.slots.get_mut(usize::from(port.0))?.take()?;
        self.switch.remove_port(port)
    }

    /// Replaces a port's driver and returns the old one. The new driver starts up even if the old one was down.
    /// Settings, counters and bound addresses stay, and so do learned ones, unless the old driver was down. Frames that are
    /// lost with the old driver came back from it and are lost as `down`.
    pub fn set_driver(&mut self, port: PortId, driver: Box<dyn Driver>) -> Option<Box<dyn Driver>> {
        let slot = self.slots.get_mut(usize::from(port.0))?.as_mut()?;
        let lost = slot.driver.abandon();
        slot.came += lost;
        slot.down = None;
        let old = std::mem::replace(&mut slot.driver, driver);
        self.switch.forward_mut().resume_port(port);
        self.switch.lost(port, Reason::DOWN, lost);
        Some(old)
    }

    /// Adds a link, which connects two ports without the switch. Returns its number, for
    /// [`remove_link`](Self::remove_link).
    pub fn add_link(&mut self, link: Box<dyn Link>) -> usize {
        let free = self.links.iter().position(Option::is_none).unwrap_or(self.links.len());
        if free == self.links.len() {
            self.links.push(None);
        }
        self.links[free] = Some(link);
        free
    }

    /// A link, for reading its counters.
    pub fn link(&self, number: usize) -> Option<&dyn Link> {
        self.links.get(number)?.as_deref()
    }

    /// Removes a link.
    pub fn remove_link(&mut self, number: usize) -> Option<Box<dyn Link>> {
        self.links.get_mut(number)?.take()
    }

    /// The switch: counters, settings, tables.
    pub fn switch(&mut self) -> &mut Switch<F> {
        &mut self.switch
    }

    /// A port's counters, including the frames that its driver has missed so far. Frames that were lost behind it came back
    /// from it and are lost as `down`.
    pub fn counters(&mut self, port: PortId) -> Option<Counters> {
        let (missed, lost) = running_slot(&mut self.slots, port).map_or((0, 0), |slot| {
            let (missed, lost) = (slot.driver.take_missed(), slot.driver.take_lost());
            slot.came += missed + lost;
            (missed, lost)
        });
        self.switch.lost(port, Reason::MISSED, missed);
        self.switch.lost(port, Reason::DOWN, lost);
        self.switch.counters(port).copied()
    }

    /// What a port took and gave, as counted at its driver and in the plan.
    pub fn port_books(&self, port: PortId) -> Option<PortBooks> {
        let slot = self.slots.get(usize::from(port.0))?.as_ref()?;
        Some(PortBooks { came: slot.came, went: slot.went, planned: self.switch.planned(port)? })
    }

    /// Frames that a port's driver holds, and that were not received yet.
    pub fn waiting(&self, port: PortId) -> u64 {
        let slot = self.slots.get(usize::from(port.0)).and_then(Option::as_ref);
        slot.map_or(0, |slot| slot.driver.waiting())
    }

    /// What passed a port's end of a link to another process, if the port is one.
    pub fn link_books(&mut self, port: PortId) -> Option<LinkBooks> {
        self.slots.get_mut(usize::from(port.0))?.as_mut()?.driver.link_books()
    }

    /// The descriptor of a port's device, if it must not be opened twice.
    pub fn device(&self, port: PortId) -> Option<BorrowedFd<'_>> {
        self.slots.get(usize::from(port.0))?.as_ref()?.driver.device()
    }

    /// The connection of a port to the process at its other end, if that comes and goes.
    pub fn link_state(&self, port: PortId) -> Option<LinkState> {
        let slot = self.slots.get(usize::from(port.0))?.as_ref()?;
        slot.driver.link_state().filter(|_| slot.down.is_none())
    }

    /// The number of queues that a port's driver has of its device; 0 if there is none.
    pub fn queues(&self, port: PortId) -> u32 {
        let slot = self.slots.get(usize::from(port.0)).and_then(Option::as_ref);
        slot.map_or(0, |slot| slot.driver.queues())
    }

    /// Time spent on a port.
    pub fn cost(&self, port: PortId) -> Option<PortCost> {
        self.slots.get(usize::from(port.0))?.as_ref().map(|slot| slot.cost)
    }

    /// Why a port is down, if it is.
    pub fn down(&self, port: PortId) -> Option<&DriverError> {
        self.slots.get(usize::from(port.0))?.as_ref()?.down.as_ref()
    }

    /// Nanoseconds since the runner was created.
    pub fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Visits every port once, ports with a greater weight more often; of more than 64 ports, those that had frames lately and a
    /// part of the others, in turn. Returns the number of frames moved.
    pub fn step(&mut self) -> usize {
        self.look_for_room();
        let mut moved = self.release_held();
        // One clock reading per visit that found frames: the end of a visit is the beginning of the next one.
        let mut clock = Instant::now();
        moved += self.serve_shards(&mut clock);
        self.attention.begin_round(self.slots.len(), self.moved / QUANTUM);
        let mut next = 0;
        while let Some(port) = self.attention.next_from(next) {
            next = usize::from(port.0) + 1;
            let weight =
                self.switch.settings(port).map_or(0, |settings| settings.weight.clamp(1, MAX_WEIGHT));
            for _ in 0..weight {
                let frames = self.visit(port, &mut clock);
                moved += frames;
                if frames > 0 {
                    self.attention.note_frames(port);
                }
                if frames < QUANTUM {
                    break;
                }
            }
        }
        for link in self.links.iter_mut().flatten() {
            moved += link.step();
        }
        self.announce();
        self.moved = moved;
        moved
    }

    /// Tells the other shards what they have to know.
    pub(crate) fn announce(&mut self) {
        if let Some(exchange) = &mut self.exchange {
            self.switch.forward_mut().take_news(&mut exchange.news);
            exchange.announce();
        }
    }

    /// Finds out which of the ports that had little room have more now.
    fn look_for_room(&mut self) {
        let Self { crowded, crowded_elsewhere, slots, switch, exchange, .. } = self;
        crowded.retain(|port| {
            let slot = slots.get_mut(usize::from(port.0)).and_then(Option::as_mut);
            let serves_others = slot.as_ref().is_some_and(|slot| slot.serves_others);
            let slot = slot.filter(|slot| slot.down.is_none());
            let is_crowded = slot.is_some_and(|slot| match (slot.owner, &mut *exchange) {
                (Some(owner), Some(exchange)) => exchange.is_crowded(owner),
                _ => slot.driver.is_crowded(),
            });
            if !is_crowded {
                if let Some(exchange) = exchange.as_mut().filter(|_| serves_others) {
                    exchange.note_crowded(*port, false);
                }
                if !crowded_elsewhere.contains(port) {
                    switch.forward_mut().set_crowded(*port, false);
                }
            }
            is_crowded
        });
    }

    /// Notes that a port has little room left after frames of other shards were sent to it.
    pub(crate) fn note_crowded_by_others(&mut self, port: PortId) {
        note_crowded(&mut self.switch, &mut self.crowded, self.exchange.as_deref_mut(), port);
    }

    /// Notes whether a port has little room left at the shard that drives it.
    pub(crate) fn note_crowded_elsewhere(&mut self, port: PortId, is_crowded: bool) {
        self.crowded_elsewhere.retain(|other| *other != port);
        if is_crowded {
            self.crowded_elsewhere.push(port);
        }
        if is_crowded || !self.crowded.contains(&port) {
            self.switch.forward_mut().set_crowded(port, is_crowded);
        }
    }

    /// Receives one batch from a port and sends it to its destinations. Returns the number of frames received.
    fn visit(&mut self, port: PortId, clock: &mut Instant) -> usize {
        let Some(source) = running_slot(&mut self.slots, port) else { return 0 };
        if !source.driver.is_ready() {
            return 0;
        }
        let leaves_unread = self.switch.leaves_unread(port);
        let mut moved = 0;
        if leaves_unread && source.direct_to.is_some() && self.exchange.is_none() {
            let (packets, has_others) = self.pass_direct(port, clock);
            if !has_others {
                return packets;
            }
            moved = packets;
            self.batch.count_elsewhere(moved);
        }
        let Some(source) = running_slot(&mut self.slots, port) else { return moved };
        self.batch.leave_unread(leaves_unread);
        match source.driver.receive_split(&mut self.batch) {
            Ok(Received { long, faulty, refused }) => {
                source.came += long + faulty + refused.total();
                self.switch.lost(port, Reason::TOO_LONG, long);
                self.switch.lost(port, Reason::FAULTY, faulty);
                refused.iter().for_each(|(reason, frames)| self.switch.lost(port, reason, frames));
            }
            Err(error) => {
                // The other end broke a rule with a frame. A system call that fails, as for a device that was removed, loses none.
                let faulty = u64::from(!matches!(error, DriverError::System(_)));
                source.came += faulty;
                self.switch.lost(port, Reason::FAULTY, faulty);
                self.switch.flush_port(port);
                source.down = Some(error);
            }
        }
        let taken = self.batch.len();
        source.came += taken as u64;
        if taken == 0 {
            source.driver.release(&self.batch);
            self.batch.clear();
            return moved;
        }
        let begin = *clock;
        let now = self.time(begin);
        if self.exchange.is_some() {
            self.spread(port);
        }
        self.switch_batch(port, now);
        if let Some(source) = running_slot(&mut self.slots, port) {
            source.driver.release(&self.batch);
            *clock = Instant::now();
            source.cost.time += clock.duration_since(begin);
            source.cost.visits += 1;
            if leaves_unread {
                source.direct_to = self.plan.only_function(taken);
            }
        } else {
            // The port went down after it had sent frames, from which addresses were learned.
            self.switch.flush_port(port);
        }
        self.batch.clear();
        moved + taken
    }

    /// A reading of the clock, in nanoseconds since the runner was created.
    pub(crate) fn time(&self, at: Instant) -> u64 {
        u64::try_from(at.duration_since(self.start).as_nanos()).unwrap_or(u64::MAX)
    }

    /// Decides where the frames of the batch go, which came from a port, and sends them there.
    #[inline]
    pub(crate) fn switch_batch(&mut self, port: PortId, now: u64) {
        self.switch.complete(&mut self.batch, port, now);
        self.switch.switch(&self.batch, port, now, &mut self.plan);
        self.batch.replace_tags(self.plan.tags());
        self.mark_shard();
        self.perform(port, now);
        for to in self.plan.ports() {
            let frames = self.plan.frames(*to);
            let Some(target) = running_slot(&mut self.slots, *to) else {
                self.switch.lost(*to, Reason::DOWN, frames.len() as u64);
                lost_on_the_way(&mut self.switch, &self.batch, frames);
                continue;
            };
            if let (Some(owner), Some(exchange)) = (target.owner, &mut self.exchange) {
                self.batch.complete(frames);
                send_elsewhere(&mut self.switch, exchange, owner, *to, &self.batch, frames);
                if exchange.is_crowded(owner) {
                    note_crowded(&mut self.switch, &mut self.crowded, None, *to);
                }
                continue;
            }
            let sent = if !target.driver.accepts_split() {
                self.batch.complete(frames);
                target.driver.send(&self.batch, frames)
            } else if self.plan.floods() {
                target.driver.send(&self.batch, frames)
            } else {
                target.driver.send_split(&mut self.batch, frames)
            };
            if sent.as_ref().is_ok_and(|sent| sent.is_crowded) {
                let told = self.exchange.as_deref_mut().filter(|_| target.serves_others);
                note_crowded(&mut self.switch, &mut self.crowded, told, *to);
            }
            let count = sent.as_ref().map_or(0, |sent| sent.frames);
            if count < frames.len() as u64 {
                let (_, lost) = part_sent(&*target.driver, frames, count);
                lost_on_the_way(&mut self.switch, &self.batch, &lost);
            }
            count_sent(&mut self.switch, target, *to, frames.len() as u64, sent);
        }
    }

    /// Performs the operations that the method decided on for frames of the batch, and sends what it makes of them.
    fn perform(&mut self, from: PortId, now: u64) {
        let frames = self.plan.performed();
        if frames.is_empty() {
            return;
        }
        self.batch.complete(frames);
        for number in frames {
            if let Some(frame) = self.batch.frame(*number as usize) {
                if self.made.is_full() {
                    send_made(
                        &mut self.switch,
                        &mut self.slots,
                        &mut self.made,
                        self.exchange.as_deref_mut(),
                    );
                }
                self.switch.perform(frame, from, now, &mut self.made);
            }
        }
        send_made(&mut self.switch, &mut self.slots, &mut self.made, self.exchange.as_deref_mut());
    }

    /// Sends frames on that the method kept, as far as there is room for them. Returns their number.
    fn release_held(&mut self) -> usize {
        let mut count = 0;
        while count < QUANTUM
            && let Some(port) = self.switch.forward_mut().next_held()
            && !port.is_some_and(|port| {
                running_slot(&mut self.slots, port).is_some_and(|slot| slot.driver.is_crowded())
            })
        {
            let now = self.now();
            self.inject(None, |method, outcome| method.release_held(now, outcome));
            count += 1;
        }
        count
    }

    /// Receives frames that a port has now, and sends them on. Returns their number, at most [`QUANTUM`].
    pub(crate) fn collect(&mut self, port: PortId) -> usize {
        self.visit(port, &mut Instant::now())
    }

    /// Takes in a frame that no port received, as if it came from port `from`: `perform` makes the method do with it what
    /// it should.
    pub fn inject(&mut self, from: Option<PortId>, perform: impl FnOnce(&mut F, &mut dyn Outcome)) {
        self.switch.inject(from, &mut self.made, perform);
        send_made(&mut self.switch, &mut self.slots, &mut self.made, self.exchange.as_deref_mut());
    }

    /// Sleeps until a port has frames, the wake event is signalled, or `most` has passed. Returns at once if frames are
    /// waiting.
    pub fn wait(&mut self, most: Duration) {
        wait(std::slice::from_mut(self), None, most);
    }

    /// Prepares every port and link for sleep, and collects the descriptors to poll. Returns false if frames are
    /// waiting; the caller must then not sleep.
    fn prepare_sleep(&mut self, polls: &mut Vec<libc::pollfd>) -> bool {
        polls.push(readable(&self.wake_event));
        let mut sleeps = true;
        for (port, slot) in (0..).map(PortId).zip(&mut self.slots) {
            let Some(slot) = slot.as_mut().filter(|slot| slot.down.is_none()) else { continue };
            match slot.driver.prepare_sleep() {
                Ok(sleepy) => sleeps &= sleepy,
                Err(error) => {
                    self.switch.flush_port(port);
                    slot.down = Some(error);
                }
            }
            polls.extend(slot.driver.descriptor().map(|descriptor| readable(&descriptor)));
        }
        for link in self.links.iter_mut().flatten() {
            sleeps &= link.prepare_sleep();
        }
        if let Some(exchange) = &mut self.exchange {
            sleeps &= exchange.prepare_sleep();
        }
        sleeps
    }

    /// The time until the next frame that the clock alone announces.
    fn due_in(&self) -> Option<Duration> {
        let slots = self.slots.iter().flatten().filter(|slot| slot.down.is_none());
        slots.filter_map(|slot| slot.driver.due_in()).min()
    }

    /// Undoes [`prepare_sleep`](Self::prepare_sleep).
    fn end_sleep(&mut self) {
        for slot in self.slots.iter_mut().flatten() {
            slot.driver.end_sleep();
        }
        for link in self.links.iter_mut().flatten() {
            link.end_sleep();
        }
        if let Some(exchange) = &mut self.exchange {
            exchange.end_sleep();
        }
    }

    /// Moves frames until `done` returns true. It is called between rounds, and at least every `most` while the runner
    /// sleeps.
    pub fn run(&mut self, most: Duration, mut done: impl FnMut(&mut Self) -> bool) {
        let mut idle = Instant::now();
        while !done(self) {
            if self.step() > 0 {
                idle = Instant::now();
            } else if idle.elapsed() >= SPIN_TIME {
                self.wait(most);
                idle = Instant::now();
            } else {
                std::hint::spin_loop();
            }
        }
    }
}

/// Tells the method which frames did not reach the function that they were for.
#[cold]
pub(crate) fn lost_on_the_way<F: Forward>(switch: &mut Switch<F>, batch: &Batch, frames: &[u32]) {
    let tags = frames.iter().map(|number| without_shard(batch.tag(*number as usize))).filter(|tag| *tag != 0);
    tags.for_each(|tag| switch.forward_mut().count_lost(tag, 1));
}

/// Sleeps until a port of any of these runners has frames, one of their wake events or `wake_event` is signalled, or
/// `most` has passed: for a thread that runs several switches. Returns at once if frames are waiting. `wake_event` must
/// be a non-blocking descriptor; it is read empty.
pub fn wait<F: Forward>(runners: &mut [SwitchRunner<F>], wake_event: Option<BorrowedFd>, most: Duration) {
    wait_shared(runners.iter_mut(), wake_event, None, most);
}

/// Like [`wait`], for one of several threads. `shared` is an event that all of them wait for. Returns whether this thread has
/// read it empty: it must then wake the others, which may have missed it.
pub fn wait_shared<'a, F: Forward + 'a>(
    runners: impl Iterator<Item = &'a mut SwitchRunner<F>>,
    wake_event: Option<BorrowedFd>,
    shared: Option<BorrowedFd>,
    most: Duration,
) -> bool {
    let mut runners: Vec<&mut SwitchRunner<F>> = runners.collect();
    let mut polls: Vec<_> = wake_event.iter().chain(&shared).map(readable).collect();
    let mut sleeps = true;
    for runner in &mut runners {
        sleeps &= runner.prepare_sleep(&mut polls);
    }
    if sleeps {
        let due = runners.iter().filter_map(|runner| runner.due_in()).min();
        let time = due.map_or(most, |due| due.min(most));
        // Rounded up, so that the frame is due after the sleep.
        let milliseconds = i32::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap_or(i32::MAX);
        // SAFETY: the list is live and has the stated length.
        unsafe { libc::poll(polls.as_mut_ptr(), polls.len() as libc::nfds_t, milliseconds) };
    }
    for runner in &mut runners {
        if sleeps {
            clear(&runner.wake_event);
        }
        runner.end_sleep();
    }
    if let (true, Some(event)) = (sleeps, wake_event) {
        clear(&event);
    }
    sleeps && shared.is_some_and(|event| clear(&event))
}

/// Sends the frames that the method made, and forgets them.
fn send_made<F: Forward>(
    switch: &mut Switch<F>,
    slots: &mut [Option<DriverSlot>],
    made: &mut MadeFrames,
    mut exchange: Option<&mut Exchange>,
) {
    made.mark_shard(exchange.as_ref().map_or(0, |exchange| exchange.mark()));
    let Some(batch) = made.batch() else { return };
    switch.count_made(made);
    for to in made.plan().ports() {
        let frames = made.plan().frames(*to);
        match (running_slot(slots, *to), &mut exchange) {
            (Some(DriverSlot { owner: Some(owner), .. }), Some(exchange)) => {
                send_elsewhere(switch, exchange, *owner, *to, batch, frames);
            }
            (Some(target), _) => {
                let sent = target.driver.send(batch, frames);
                count_sent(switch, target, *to, frames.len() as u64, sent);
            }
            (None, _) => switch.lost(*to, Reason::DOWN, frames.len() as u64),
        }
    }
    made.clear();
}

/// Sends frames to the shard that drives their port.
fn send_elsewhere<F: Forward>(
    switch: &mut Switch<F>,
    exchange: &mut Exchange,
    owner: usize,
    to: PortId,
    batch: &Batch,
    frames: &[u32],
) {
    let sent = exchange.send(owner, Message::Deliver(to), batch, frames);
    if let Some(lost) = frames.get(sent..).filter(|lost| !lost.is_empty()) {
        switch.lost(to, Reason::THREAD_FULL, lost.len() as u64);
        lost_on_the_way(switch, batch, lost);
    }
}

/// Notes that a port has little room left, for the method and for the shards that send to it through this one.
#[cold]
fn note_crowded<F: Forward>(
    switch: &mut Switch<F>,
    crowded: &mut Vec<PortId>,
    told: Option<&mut Exchange>,
    port: PortId,
) {
    if !crowded.contains(&port) {
        crowded.push(port);
        switch.forward_mut().set_crowded(port, true);
        told.into_iter().for_each(|exchange| exchange.note_crowded(port, true));
    }
}

/// Counts what a driver did with the frames for its port.
pub(crate) fn count_sent<F: Forward>(
    switch: &mut Switch<F>,
    target: &mut DriverSlot,
    to: PortId,
    frames: u64,
    sent: Result<Sent, DriverError>,
) {
    match sent {
        Ok(sent) => {
            target.went += sent.frames;
            switch.sent(to, sent.frames, sent.bytes);
            let reason = if sent.down { Reason::DOWN } else { Reason::FULL };
            if sent.down {
                switch.flush_port(to);
            }
            switch.lost(to, Reason::TOO_BIG, sent.too_big);
            switch.lost(to, reason, frames - sent.frames - sent.too_big);
        }
        Err(error) => {
            switch.lost(to, Reason::DOWN, frames);
            switch.flush_port(to);
            target.down = Some(error);
        }
    }
}

/// Resets an eventfd. Returns whether it was signalled.
fn clear(event: &impl AsRawFd) -> bool {
    let mut count = 0u64;
    // SAFETY: the kernel writes eight bytes to a live variable.
    unsafe { libc::read(event.as_raw_fd(), (&raw mut count).cast(), 8) == 8 }
}

/// A poll entry that waits until a descriptor is readable.
fn readable(descriptor: &impl AsRawFd) -> libc::pollfd {
    libc::pollfd { fd: descriptor.as_raw_fd(), events: libc::POLLIN, revents: 0 }
}

/// A port's slot, unless its driver is down.
pub(crate) fn running_slot(slots: &mut [Option<DriverSlot>], port: PortId) -> Option<&mut DriverSlot> {
    slots.get_mut(usize::from(port.0))?.as_mut().filter(|slot| slot.down.is_none())
}
