//! Where packets enter chains, and flows that take another chain because a function said so (OpenNetVM's flow director).
//!
//! The flow's record in the chain that it enters says which one it takes instead. So nothing more is looked up, the flows of the
//! switch and of controllers are in force as before, and a function changes only flows whose packets it was given.

use super::flow_records::Redirect;
use super::identity::{Diversion, MAX_LOOKUPS};
use super::table::{Chain, Chains, Step};
use super::version::{End, Version};
use crate::forward::PortKey;
use flow_table::FlowTuple;
use reason::Reason;

/// Where a packet comes from that enters a chain.
#[derive(Clone, Copy)]
enum Source {
    /// Flows, or a port whose default chain it is.
    Port(Option<PortKey>),
    Chain(Leaving),
}

/// The chain that a packet was in, or would have been in.
#[derive(Clone, Copy, Default)]
struct Leaving {
    /// The port that it came from, if it passed that chain in reverse.
    from: Option<PortKey>,
    /// Where packets of the reverse direction would have left.
    back: Option<PortKey>,
}

/// A packet that enters a version of a chain.
#[derive(Clone, Copy)]
struct Entry {
    record: u32,
    version: u32,
    first: Option<usize>,
    reverse: bool,
}

impl Chains {
    /// Sends a frame of a flow into a chain, or into the one that the flow takes instead. `lookups` is how often it was looked up
    /// after a function had it.
    pub(crate) fn enter_chain(
        &mut self,
        chain: u16,
        (tuple, mut lookups): (&FlowTuple, u8),
        from: Option<PortKey>,
        length: usize,
        now: u64,
    ) -> Step {
        let mut entry = self.enter(chain, (tuple, lookups), Source::Port(from), now);
        while let Ok(Entry { record, version, reverse, .. }) = entry
            && let Some(chain) = self.redirected(record)
        {
            if lookups >= MAX_LOOKUPS {
                // Packets under way while chains change can close a circle of redirects. Here it ends.
                self.records.set_redirect(record, None);
                break;
            }
            self.note(Some(version), |books| books.elsewhere += 1);
            lookups += 1;
            let source = Source::Chain(self.leaving(version, Some(record), reverse));
            entry = self.enter(chain, (tuple, lookups), source, now);
        }
        entry.map_or_else(|step| step, |entry| self.begin(entry, lookups, length, now))
    }

    /// Finds the record of a packet that enters a chain. Returns what becomes of it instead, if it doesn't.
    #[inline(always)]
    fn enter(
        &mut self,
        chain: u16,
        (tuple, lookups): (&FlowTuple, u8),
        source: Source,
        now: u64,
    ) -> Result<Entry, Step> {
        if lookups > MAX_LOOKUPS {
            return Err(Step::Lose(Reason::ENDLESS_LOOP));
        }
        let Chain { plan, version, .. } = self.chains.get(chain).ok_or(Step::Lose(Reason::NO_INSTANCE))?;
        let (reverse, back) = match source {
            Source::Port(from) => (from == Some(plan.to) && plan.from.is_some(), None),
            Source::Chain(Leaving { from, back }) => {
                (from == Some(plan.to), back.filter(|_| plan.from.is_none()))
            }
        };
        let first = if reverse { plan.services.len().checked_sub(1) } else { Some(0) };
        let version = *version;
        let record = self.record(tuple, version, reverse, now).ok_or(Step::LookUp)?;
        if self.records.back(record) != back {
            self.records.set_back(record, back);
        }
        self.note(Some(version), |books| books.entered += 1);
        Ok(Entry { record, version, first, reverse })
    }

    /// The version of a chain that a packet leaves, which goes on in this direction.
    fn leaving(&self, version: u32, record: Option<u32>, reverse: bool) -> Leaving {
        let Some(version) = self.versions.get(version) else { return Leaving::default() };
        let [there, back] = version.ends.map(|end| match end {
            End::Port(port) => Some(port),
            End::LookUp => None,
        });
        Leaving { from: there.filter(|_| reverse), back: back.or_else(|| self.records.back(record?)) }
    }

    /// Sends a frame to the first hop.
    #[inline(always)]
    fn begin(&mut self, entry: Entry, lookups: u8, length: usize, now: u64) -> Step {
        let Entry { record, version, first, reverse } = entry;
        if !self.crowded.is_empty()
            && let Some(first) = first
            && let Some((hop, service, slot)) = self.crowded_later(record, version, first, reverse)
        {
            self.refuse_at_instance(service, slot);
            return self.refuse(version, hop, reverse, length);
        }
        self.deliver(record, first, (reverse, lookups), length, now)
    }

    /// Notes whether a port has little room left. What a chain sends there would be lost after other functions have worked on
    /// it, so the chain takes no packets of these flows until there is room.
    pub(crate) fn set_crowded(&mut self, port: PortKey, is_crowded: bool) {
        match is_crowded && self.role(port).is_some() {
            true => self.crowded.insert(port),
            false => self.crowded.remove(&port),
        };
    }

    /// The instance of a flow after its first one that has little room left: its hop, its service and its slot.
    #[cold]
    fn crowded_later(
        &self,
        record: u32,
        version: u32,
        first: usize,
        reverse: bool,
    ) -> Option<(usize, u16, u8)> {
        let hops = self.versions.hops(version).unwrap_or_default();
        let instance = |(hop, service): (usize, &u16)| (hop, *service, self.records.slot(record, hop));
        let is_crowded = |(hop, service, slot): &(usize, u16, u8)| {
            let service = self.services.get(*service);
            let port =
                service.and_then(|service| service.get(*slot)).map(|there| there.ports[usize::from(reverse)]);
            *hop != first && port.is_some_and(|port| self.crowded.contains(&port))
        };
        (0..).zip(hops).map(instance).find(is_crowded)
    }

    /// Loses a packet before it enters a chain, because a later hop has little room left, which counts it.
    #[cold]
    fn refuse(&mut self, version: u32, hop: usize, reverse: bool, length: usize) -> Step {
        if let Some(version) = self.versions.get_mut(version) {
            version.books.congested += 1;
            if let Some(counters) = version.counters.get_mut(hop) {
                counters[usize::from(reverse)].add_lost(length);
            }
        }
        Step::Lose(Reason::CONGESTED)
    }

    /// Sends a frame that flows send to a service to an instance, outside of any chain, or into the chain that its flow takes
    /// instead.
    pub(crate) fn enter_service(
        &mut self,
        service: u16,
        (tuple, lookups): (&FlowTuple, u8),
        from: Option<PortKey>,
        length: usize,
        now: u64,
    ) -> Step {
        match self.record_of_service(service, false, (tuple, lookups), now) {
            Ok(record) => match self.redirected(record).filter(|chain| !self.reflects(*chain, from)) {
                Some(chain) => self.enter_chain(chain, (tuple, lookups + 1), from, length, now),
                None => self.deliver(record, Some(0), (false, lookups), length, now),
            },
            Err(step) => step,
        }
    }

    /// Whether a frame from a port would leave a chain there: the chain has only the forward direction.
    fn reflects(&self, chain: u16, from: Option<PortKey>) -> bool {
        self.chains.get(chain).is_some_and(|found| found.plan.from.is_none() && from == Some(found.plan.to))
    }

    /// Sends a frame to an instance of the service that a function named, at the face of its direction.
    pub(crate) fn divert_to_service(
        &mut self,
        service: u16,
        reverse: bool,
        flow: (&FlowTuple, u8),
        length: usize,
        now: u64,
    ) -> Step {
        match self.record_of_service(service, reverse, flow, now) {
            Ok(record) => self.deliver(record, Some(0), (reverse, flow.1), length, now),
            Err(step) => step,
        }
    }

    fn record_of_service(
        &mut self,
        service: u16,
        reverse: bool,
        (tuple, lookups): (&FlowTuple, u8),
        now: u64,
    ) -> Result<u32, Step> {
        if lookups > MAX_LOOKUPS {
            return Err(Step::Lose(Reason::ENDLESS_LOOP));
        }
        let version = self.single.get(service).copied();
        let record = version.and_then(|version| self.record(tuple, version, reverse, now));
        record.ok_or(Step::Lose(Reason::NO_INSTANCE))
    }

    /// Sends a frame into the chain that a function named. What functions said about its flow before does not matter.
    pub(crate) fn divert_to_chain(
        &mut self,
        Diversion { chain, version, record, reverse, has_flow }: Diversion,
        (tuple, lookups): (&FlowTuple, u8),
        length: usize,
        now: u64,
    ) -> Step {
        let leaving = version.map(|version| self.leaving(version, record, reverse)).unwrap_or_default();
        let step = match self.enter(chain, (tuple, lookups), Source::Chain(leaving), now) {
            Ok(entry) => self.begin(entry, lookups, length, now),
            Err(step) => step,
        };
        if let Some(record) = record.filter(|_| has_flow) {
            self.redirect(record, chain, tuple);
        }
        step
    }

    /// Lets the flow with a record take a chain from now on, wherever it would enter the chain of the record.
    fn redirect(&mut self, record: u32, chain: u16, tuple: &FlowTuple) {
        let (hash, version) = self.records.flow(record);
        // The function may have changed the addresses. Behind a translator the flow is another one than where it enters.
        let is_own = hash == Version::record_hash(tuple.hash, version)
            && self.records.learnt(record).is_none()
            && self.records.outside(record).is_none();
        let (Some(found), Some(generation)) = (self.versions.get(version), self.generations.get(chain))
        else {
            return;
        };
        if !is_own {
            return;
        }
        let (own, generation) = (found.chain, *generation);
        if own.is_some_and(|own| self.leads_to(chain, own, tuple.hash)) {
            // It was sent on from that chain, and takes it again.
            if let Some(there) = self.current_record(chain, tuple.hash) {
                self.records.set_redirect(there, None);
            }
            return;
        }
        let redirect = Some(Redirect { chain, generation });
        self.records.set_redirect(record, redirect);
        // The packet may have entered an earlier version.
        if let Some(current) = own.and_then(|own| self.current_record(own, tuple.hash)) {
            self.records.set_redirect(current, redirect);
        }
    }

    /// The chain that a flow with a record takes instead.
    #[inline(always)]
    fn redirected(&self, record: u32) -> Option<u16> {
        let Redirect { chain, generation } = self.records.redirect(record)?;
        let is_there = self.generations.get(chain) == Some(&generation) && self.chains.get(chain).is_some();
        is_there.then_some(chain)
    }

    /// Whether a flow that enters a chain takes another one in the end, or goes through it.
    fn leads_to(&self, mut chain: u16, other: u16, flow: u64) -> bool {
        for _ in 0..=MAX_LOOKUPS {
            if chain == other {
                return true;
            }
            match self.current_record(chain, flow).and_then(|record| self.redirected(record)) {
                Some(next) => chain = next,
                None => return false,
            }
        }
        false
    }

    /// The record of a flow in the present version of a chain.
    fn current_record(&self, chain: u16, flow: u64) -> Option<u32> {
        let version = self.chains.get(chain)?.version;
        self.records.peek(Version::record_hash(flow, version), version)
    }
}
