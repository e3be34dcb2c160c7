//! All shards of a switch, for commands: what changes one changes all, and counters are sums.

use super::exchange::Exchange;
use crate::books::{LinkBooks, PortBooks, SwitchBooks};
use crate::counters::Counters;
use crate::driver::{Driver, DriverError, LinkState, Null};
use crate::forward::{Forward, Outcome};
use crate::link::Link;
use crate::port::{PortId, PortLimits, PortSettings};
use crate::port_config::PortConfig;
use crate::runner::{PortCost, QUANTUM, SwitchRunner};
use crate::silence::Progress;
use crate::switch::{Switch, SwitchError};
use std::io;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

/// A switch with a shard for each thread that runs it. Shards share nothing but the limits of ports: each has its own
/// queues of the ports, its own tables and counters. What belongs to another shard passes a ring between the two.
///
/// A port has a driver for each shard, or for some of them. What leaves by it at another shard passes on to one of these.
///
/// A thread that runs shards [takes](Self::take) its own out. Commands need all of them back, between two rounds.
#[derive(Debug)]
pub struct Shards<F> {
    /// The shard that is always here, and the others.
    first: SwitchRunner<F>,
    others: Vec<Option<SwitchRunner<F>>>,
}

impl<F: Forward> Shards<F> {
    /// A switch without ports, with a shard for each of these methods, which must decide the same. `seed` is secret, because
    /// it says which flows share a thread.
    ///
    /// # Errors
    ///
    /// There are no descriptors left.
    pub fn new(first: F, others: Vec<F>, seed: u64) -> io::Result<Self> {
        let others = others.into_iter().map(SwitchRunner::new).collect::<io::Result<Vec<_>>>()?;
        let mut all =
            Self { first: SwitchRunner::new(first)?, others: others.into_iter().map(Some).collect() };
        if !all.others.is_empty() {
            let start = Instant::now();
            let bells = all.shards().map(|shard| shard.wake_event()).collect::<io::Result<_>>()?;
            for (shard, exchange) in all.shards_mut().zip(Exchange::connect(bells, seed)?) {
                shard.exchange = Some(Box::new(exchange));
                shard.switch.forward_mut().report_news();
                // Times of one clock pass between them.
                shard.start = start;
            }
        }
        Ok(all)
    }

    /// The number of shards.
    pub fn count(&self) -> usize {
        self.others.len() + 1
    }

    /// The shard that a frame with these first bytes belongs to.
    pub fn shard_of(&self, head: &[u8]) -> usize {
        let exchange = self.first.exchange.as_ref();
        exchange.map_or(0, |exchange| exchange.spread.thread_of(head))
    }

    /// The shard that is always here.
    pub fn first(&mut self) -> &mut SwitchRunner<F> {
        &mut self.first
    }

    /// Takes a shard out, for the thread that runs it. The first one is number 0, and stays.
    pub fn take(&mut self, shard: usize) -> Option<SwitchRunner<F>> {
        self.others.get_mut(shard.checked_sub(1)?)?.take()
    }

    /// Puts a shard back that was taken out.
    pub fn put_back(&mut self, shard: usize, runner: SwitchRunner<F>) {
        if let Some(place) = shard.checked_sub(1).and_then(|place| self.others.get_mut(place)) {
            *place = Some(runner);
        }
    }

    fn shards(&self) -> impl Iterator<Item = &SwitchRunner<F>> {
        std::iter::once(&self.first).chain(self.others.iter().flatten())
    }

    /// The shards that are here.
    pub fn shards_mut(&mut self) -> impl Iterator<Item = &mut SwitchRunner<F>> {
        std::iter::once(&mut self.first).chain(self.others.iter_mut().flatten())
    }

    /// The forwarding methods of all shards: a command that changes one must change all.
    pub fn forwards(&mut self) -> impl Iterator<Item = &mut F> {
        self.shards_mut().map(|shard| shard.switch.forward_mut())
    }

    /// The forwarding method of the first shard, for reading what all have in common.
    pub fn forward(&mut self) -> &mut F {
        self.first.switch.forward_mut()
    }

    /// Has all frames that wait between shards arrive. Call it before a port is removed, or before counters are compared.
    pub fn settle(&mut self) {
        if self.others.is_empty() {
            return;
        }
        let mut clock = Instant::now();
        // What was received elsewhere may go to a port of a third shard, and is reported if it is lost there.
        loop {
            self.shards_mut().for_each(SwitchRunner::announce);
            if self.shards_mut().map(|shard| shard.serve_shards(&mut clock)).sum::<usize>() == 0 {
                break;
            }
        }
    }

    /// Adds a port to all shards, with a driver for each of them, or with fewer: these go to the shards that have the fewest.
    ///
    /// # Errors
    ///
    /// The switch is full.
    pub fn add_port(
        &mut self,
        drivers: Vec<Box<dyn Driver>>,
        settings: &PortSettings,
    ) -> Result<PortId, SwitchError> {
        self.add_port_beside(drivers, settings, None)
    }

    /// Adds a port as [`add_port`](Self::add_port) does. The shard that drives `beside` has a driver.
    ///
    /// # Errors
    ///
    /// The switch is full.
    pub fn add_port_beside(
        &mut self,
        drivers: Vec<Box<dyn Driver>>,
        settings: &PortSettings,
        beside: Option<PortId>,
    ) -> Result<PortId, SwitchError> {
        let beside = beside.and_then(|port| self.shards().position(|shard| shard.owner(port).is_none()));
        let owners = self.owners(drivers.len(), beside);
        let mut drivers = drivers.into_iter();
        let mut added = None;
        let limits = PortLimits::new(settings);
        for (number, shard) in self.shards_mut().enumerate() {
            let owner = owners.get(number).copied().flatten();
            let driver = own_driver(&mut drivers, shard, owner);
            // All shards have the same ports, so they agree on the number and on whether there is one.
            let port = shard.add_owned_port(driver, settings.clone(), limits.clone(), owner)?;
            shard.set_serves_others(port, owners.contains(&Some(number)));
            added = Some(port);
        }
        added.ok_or(SwitchError::Full)
    }

    /// For each shard, the one that has the driver of a port with this number of drivers; `None`: it has one itself. `preferred`
    /// has one.
    fn owners(&self, drivers: usize, preferred: Option<usize>) -> Vec<Option<usize>> {
        let driven: Vec<usize> = self.shards().map(SwitchRunner::driver_count).collect();
        let mut chosen: Vec<usize> = (0..self.count()).collect();
        chosen.sort_by_key(|shard| (preferred != Some(*shard), driven.get(*shard)));
        chosen.truncate(drivers.max(1));
        chosen.sort_unstable();
        let owner = |shard: usize| match chosen.contains(&shard) {
            true => None,
            false => chosen.get(shard % chosen.len()).copied(),
        };
        (0..self.count()).map(owner).collect()
    }

    /// Removes a port and its drivers. Returns its final counters.
    pub fn remove_port(&mut self, port: PortId) -> Option<Counters> {
        self.settle();
        let removed = self.shards_mut().map(|shard| shard.remove_port(port));
        removed.flatten().reduce(|mut sum, counters| {
            sum += counters;
            sum
        })
    }

    /// Replaces a port's drivers, as [`SwitchRunner::set_driver`] does. If there are more or fewer than before, other shards may
    /// have them.
    pub fn set_drivers(&mut self, port: PortId, drivers: Vec<Box<dyn Driver>>) {
        let mut owners: Vec<Option<usize>> = self.shards().map(|shard| shard.owner(port)).collect();
        if owners.iter().filter(|owner| owner.is_none()).count() != drivers.len().clamp(1, self.count()) {
            self.settle();
            owners = self.owners(drivers.len(), None);
        }
        let mut drivers = drivers.into_iter();
        for (number, shard) in self.shards_mut().enumerate() {
            let owner = owners.get(number).copied().flatten();
            if owner.is_some() && shard.owner(port).is_some() {
                shard.resume_port(port);
            } else {
                let driver = own_driver(&mut drivers, shard, owner);
                drop(shard.set_driver(port, driver));
            }
            shard.set_owner(port, owner);
            shard.set_serves_others(port, owners.contains(&Some(number)));
        }
    }

    /// Forgets the addresses learned at a port that went down. Bound addresses stay.
    pub fn flush_port(&mut self, port: PortId) {
        self.shards_mut().for_each(|shard| shard.switch.flush_port(port));
    }

    /// Says whether a port gets frames that are sent to all ports.
    pub fn set_flooded(&mut self, port: PortId, is_flooded: bool) {
        self.shards_mut().for_each(|shard| shard.set_flooded(port, is_flooded));
    }

    /// Forbids a port to receive or to send frames, or no longer.
    pub fn set_port_config(&mut self, port: PortId, config: PortConfig) {
        self.shards_mut().for_each(|shard| shard.switch.set_port_config(port, config));
    }

    /// As [`SwitchRunner::set_dead_after`]. Each shard watches its own driver.
    pub fn set_dead_after(&mut self, port: PortId, limit: Option<Duration>) {
        self.shards_mut().for_each(|shard| shard.set_dead_after(port, limit));
    }

    /// What waits for the other end of a port and what it took, if its drivers know.
    pub fn progress(&mut self, port: PortId) -> Option<Progress> {
        self.shards_mut().filter_map(|shard| shard.progress(port)).reduce(|sum, other| Progress {
            waiting: sum.waiting + other.waiting,
            taken: sum.taken + other.taken,
        })
    }

    /// A port's counters, including the frames that its drivers have missed so far.
    pub fn counters(&mut self, port: PortId) -> Option<Counters> {
        let found = self.shards_mut().filter_map(|shard| shard.counters(port));
        found.reduce(|mut sum, counters| {
            sum += counters;
            sum
        })
    }

    /// What a port took and gave, as counted at its drivers and in the plans.
    pub fn port_books(&self, port: PortId) -> Option<PortBooks> {
        let found = self.shards().filter_map(|shard| shard.port_books(port));
        found.reduce(|sum, books| PortBooks {
            came: sum.came + books.came,
            went: sum.went + books.went,
            planned: sum.planned + books.planned,
        })
    }

    /// What became of the frames of all ports, those that were removed too.
    pub fn books(&mut self) -> SwitchBooks {
        let mut all = SwitchBooks::default();
        for shard in self.shards_mut() {
            let SwitchBooks { counters, copied, planned, injected, taken } = shard.switch().books();
            all.counters += counters;
            all.copied += copied;
            all.planned += planned;
            all.injected += injected;
            all.taken += taken;
        }
        all
    }

    /// Frames that a port's drivers hold, and that were not received yet.
    pub fn waiting(&self, port: PortId) -> u64 {
        self.shards().map(|shard| shard.waiting(port)).sum()
    }

    /// What passed a port's end of a link to another process, if the port is one.
    pub fn link_books(&mut self, port: PortId) -> Option<LinkBooks> {
        self.shards_mut().find_map(|shard| shard.link_books(port))
    }

    /// The descriptor of a port's device, if it must not be opened twice.
    pub fn device(&self, port: PortId) -> Option<BorrowedFd<'_>> {
        self.shards().find_map(|shard| shard.device(port))
    }

    /// The connection of a port to the process at its other end, if that comes and goes.
    pub fn link_state(&self, port: PortId) -> Option<LinkState> {
        self.shards().find_map(|shard| shard.link_state(port))
    }

    /// Time spent on a port.
    pub fn cost(&self, port: PortId) -> Option<PortCost> {
        let found = self.shards().filter_map(|shard| shard.cost(port));
        found.reduce(|sum, cost| PortCost {
            time: sum.time + cost.time,
            visits: sum.visits + cost.visits,
            direct: sum.direct + cost.direct,
        })
    }

    /// The number of queues that a port has of its device; 0 if there is none.
    pub fn queues(&self, port: PortId) -> u32 {
        self.shards().map(|shard| shard.queues(port)).sum()
    }

    /// Why a port is down, if it is at any shard.
    pub fn down(&self, port: PortId) -> Option<&DriverError> {
        self.shards().find_map(|shard| shard.down(port))
    }

    /// Nanoseconds since the switch was created.
    pub fn now(&self) -> u64 {
        self.first.now()
    }

    /// The ports, without their drivers.
    pub fn switches(&mut self) -> impl Iterator<Item = &mut Switch<F>> {
        self.shards_mut().map(SwitchRunner::switch)
    }

    /// As [`SwitchRunner::inject`], at the shard that the frame belongs to.
    pub fn inject(
        &mut self,
        frame: &[u8],
        from: Option<PortId>,
        perform: impl FnOnce(&mut F, &mut dyn Outcome),
    ) {
        let number = self.shard_of(frame);
        if let Some(shard) = self.shards_mut().nth(number) {
            shard.inject(from, perform);
        }
    }

    /// Receives all that a port has now at any shard, and sends it on.
    pub fn collect(&mut self, port: PortId) {
        // A ring has 2048 slots at most. What the shards send each other has room, because it arrives between two visits.
        for _ in 0..=2048 / QUANTUM {
            let most = self.shards_mut().map(|shard| shard.collect(port)).max();
            self.settle();
            if most.is_none_or(|most| most < QUANTUM) {
                break;
            }
        }
    }

    /// Adds a link to a shard. Returns its number there; `None` if there is no such shard.
    pub fn add_link(&mut self, shard: usize, link: Box<dyn Link>) -> Option<usize> {
        Some(self.shards_mut().nth(shard)?.add_link(link))
    }

    /// Removes the link with a number from all shards.
    pub fn remove_links(&mut self, number: usize) {
        self.shards_mut().for_each(|shard| drop(shard.remove_link(number)));
    }
}

/// The next driver, for a shard that has one itself.
fn own_driver<F>(
    drivers: &mut impl Iterator<Item = Box<dyn Driver>>,
    shard: &SwitchRunner<F>,
    owner: Option<usize>,
) -> Box<dyn Driver> {
    let driver = if owner.is_none() { drivers.next() } else { None };
    let mut driver = driver.unwrap_or_else(|| Box::new(Null));
    if let Some(exchange) = &shard.exchange {
        driver.set_thread(exchange.spread, exchange.own());
    }
    driver
}
