//! Forwarding by flows (OpenFlow 1.3.5; OpenNetVM's flow director).
//!
//! The frames of a batch are looked up together in an exact-match cache, and those that it does not know in the table of
//! flows behind it. Addresses are learned from all frames, also from those that a flow sends elsewhere, so that both
//! directions of a connection can use different flows. The addresses of a batch are learned before any of its frames is
//! forwarded by them.
//!
//! Bound addresses and limits of new addresses hold as in a learning bridge.

use super::chains::{Chains, ChainsPlan, Role, Step};
use super::contract::{Decision, Forward, FrameHead, MAX_HEADS, Outcome};
use super::controllers::{Controllers, Pending};
use super::flow::{Flow, FlowError, FlowOutput, FlowStatus, MAX_PORT_KEYS, PortKey};
use super::ingress::Tunnels;
use super::learning::{LearningBridge, LearningSettings};
use crate::batch::UnreadFrame;
use crate::huge_pages::flow_cache;
use crate::port::PortId;
use boundary::DirectPacket;
use flow_table::{
    Arrival, CacheCapacity, CacheCounters, Change, Command, Field, FlowCache, FlowTuple, FragmentCounters,
    Fragments, Ingress, Instructions, Key, Limits, Match, Output, Pipeline, Seed, TokenBucket,
};
use packet::MacAddr;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::net::Ipv6Addr;
use std::ops::Bound;
use std::time::Duration;

/// Settings of a steering switch.
#[derive(Clone, Copy, Debug)]
pub struct SteeringSettings {
    /// The bridge for the output [`FlowOutput::Normal`].
    pub learning: LearningSettings,
    /// Entries of all flows. A flow has one for each of its matches.
    pub entries: usize,
    /// Different sets of fields and masks that flows match. Each costs a search for frames that the cache does not know.
    pub masks: usize,
    /// Memory of the entries, in bytes.
    pub bytes: usize,
    /// Keys that the cache remembers.
    pub cache: CacheCapacity,
    /// Fragmented packets whose ports are remembered at once.
    pub fragments: usize,
    /// Flows in chains whose instances are remembered at once: 84 bytes each.
    pub chained_flows: usize,
    /// The secret seed of all hashes: a sender who knew it could choose frames that share a bucket.
    pub seed: [u64; 2],
}

impl Default for SteeringSettings {
    /// 65,536 entries with 512 masks in at most 64 MB, a million keys, 4,096 fragmented packets, a million flows in chains. The seeds must be replaced by
    /// secret ones.
    fn default() -> Self {
        Self {
            learning: LearningSettings::default(),
            entries: 65_536,
            masks: 512,
            bytes: 64 << 20,
            cache: CacheCapacity::default(),
            fragments: 4096,
            chained_flows: 1 << 20,
            seed: [0; 2],
        }
    }
}

/// A flow as it is stored.
#[derive(Debug)]
pub(super) struct StoredFlow {
    /// The flow; its matches have the ingress port.
    pub(super) flow: Flow,
    pub(super) created: Duration,
    /// When its timeouts are looked at next, in nanoseconds.
    pub(super) deadline: Option<u64>,
}

/// Forwards frames by flows.
pub struct Steering {
    pub(super) bridge: LearningBridge,
    pub(super) pipeline: Pipeline,
    pub(super) cache: FlowCache,
    /// When the cache is tidied next, in nanoseconds.
    pub(super) tidy_at: u64,
    pub(super) fragments: Fragments,
    pub(super) flows: BTreeMap<u64, StoredFlow>,
    /// The flow of each match and priority.
    pub(super) owners: HashMap<(Match, u16), u64>,
    /// Deadlines in nanoseconds, with the flows.
    pub(super) deadlines: BTreeSet<(u64, u64)>,
    /// The port of each key.
    pub(super) ports: Vec<Option<PortId>>,
    /// The key of each port.
    pub(super) keys: Vec<Option<PortKey>>,
    /// The tunnels that ports are.
    pub(super) tunnels: Tunnels,
    /// The entries, groups and meters of controllers, and what waits for them.
    pub(super) controllers: Controllers,
    /// Frames of this batch that operations are to be performed on, or that wait, with their places in it.
    pub(super) pending: VecDeque<(u8, Pending)>,
    /// Services and chains.
    pub(super) chains: Chains,
    /// The secret seed of the hashes of flows.
    pub(super) flow_seed: u64,
    /// The limit of the entries.
    pub(super) entries: usize,
    /// Scratch memory: the frames that are looked up, and for each its place in the batch.
    pub(super) arrivals: [Arrival; MAX_HEADS],
    pub(super) places: [u8; MAX_HEADS],
    /// How often each was looked up after a function had it.
    pub(super) lookups: [u8; MAX_HEADS],
    /// The hashes of the flows of the frames that are looked up, if they enter a chain and the cache has no note of their records.
    pub(super) hashes: [u64; MAX_HEADS],
}

impl std::fmt::Debug for Steering {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Steering").field("flows", &self.flows.len()).finish_non_exhaustive()
    }
}

impl Steering {
    /// A method without flows.
    pub fn new(settings: SteeringSettings) -> Self {
        let SteeringSettings { learning, entries, masks, bytes, cache, fragments, chained_flows, seed } =
            settings;
        let flow_seed = seed[0].rotate_left(32) ^ seed[1];
        let seed = Seed::new(seed[0], seed[1]);
        Self {
            bridge: LearningBridge::new(learning),
            pipeline: Pipeline::new(Limits { entries, masks, bytes, ..Limits::default() }, seed),
            cache: flow_cache(cache, seed),
            tidy_at: 0,
            fragments: Fragments::new(fragments, seed),
            flows: BTreeMap::new(),
            owners: HashMap::new(),
            deadlines: BTreeSet::new(),
            ports: Vec::new(),
            keys: Vec::new(),
            tunnels: Tunnels::default(),
            controllers: Controllers::default(),
            pending: VecDeque::new(),
            chains: Chains::new(chained_flows),
            flow_seed,
            entries,
            arrivals: [Arrival::default(); MAX_HEADS],
            places: [0; MAX_HEADS],
            lookups: [0; MAX_HEADS],
            hashes: [0; MAX_HEADS],
        }
    }

    /// The bridge, for reading or changing its table.
    pub fn bridge_mut(&mut self) -> &mut LearningBridge {
        &mut self.bridge
    }

    /// Gives a port the key that flows use for it, until the port is removed. Returns false, and changes nothing, if
    /// another port has the key or it is too large.
    pub fn set_port_key(&mut self, port: PortId, key: PortKey) -> bool {
        let (at, index) = (usize::from(port.0), usize::from(key.0));
        if key.0 >= MAX_PORT_KEYS || self.port(key).is_some_and(|other| other != port) {
            return false;
        }
        self.forget_port_key(port);
        if self.ports.len() <= index {
            self.ports.resize(index + 1, None);
        }
        if self.keys.len() <= at {
            self.keys.resize(at + 1, None);
        }
        self.ports[index] = Some(port);
        self.keys[at] = Some(key);
        true
    }

    /// Gives a port with a key the number of the tunnel that it is: flow entries can match it.
    pub fn set_tunnel(&mut self, port: PortId, tunnel: u64) {
        if let Some(key) = self.key(port) {
            self.tunnels.set(key, Some(tunnel));
        }
    }

    fn forget_port_key(&mut self, port: PortId) {
        let key = self.keys.get_mut(usize::from(port.0)).and_then(Option::take);
        if let Some(key) = key {
            self.chains.set_port_up(key, false);
            self.tunnels.set(key, None);
            self.controllers.unreported.retain(|port| *port != u32::from(key.0));
        }
        if let Some(place) = key.and_then(|key| self.ports.get_mut(usize::from(key.0))) {
            *place = None;
        }
    }

    pub(super) fn key(&self, port: PortId) -> Option<PortKey> {
        self.keys.get(usize::from(port.0)).copied().flatten()
    }

    pub(super) fn port(&self, key: PortKey) -> Option<PortId> {
        self.ports.get(usize::from(key.0)).copied().flatten()
    }

    /// Gives the switch other services and chains.
    pub fn set_chains(&mut self, plan: &ChainsPlan) {
        self.chains.set(plan);
        self.follow_ingress();
    }

    /// Services and chains, for reading their counters.
    pub fn chains(&self) -> &Chains {
        &self.chains
    }

    /// Services and chains, for handing flows over.
    pub fn chains_mut(&mut self) -> &mut Chains {
        &mut self.chains
    }

    /// The flow between two ends. IPv4 addresses are mapped into IPv6.
    pub fn flow_tuple(&self, protocol: u8, ends: [impl Into<(Ipv6Addr, u16)>; 2]) -> FlowTuple {
        FlowTuple::between(protocol, ends, self.flow_seed)
    }

    /// Adds a flow. `now` is in nanoseconds of a monotonic clock.
    ///
    /// # Errors
    ///
    /// See [`FlowError`]. Nothing is changed then.
    pub fn add_flow(&mut self, mut flow: Flow, now: u64) -> Result<(), FlowError> {
        let now = Duration::from_nanos(now);
        if self.flows.contains_key(&flow.id) {
            return Err(FlowError::Exists(flow.id));
        }
        if flow.matches.is_empty() {
            return Err(FlowError::NoMatch);
        }
        let output = match flow.output {
            FlowOutput::Port(key) => Some(key),
            _ => None,
        };
        if let Some(key) = [flow.from, output].into_iter().flatten().find(|key| key.0 >= MAX_PORT_KEYS) {
            return Err(FlowError::BadPort(key));
        }
        for matching in &mut flow.matches {
            if matching.get(Field::InPort).is_some() {
                return Err(FlowError::PortInMatch);
            }
            if let Some(key) = flow.from {
                let port = self.ingress_number(key).into();
                *matching = matching.with(Field::InPort, port).map_err(|_| FlowError::PortInMatch)?;
            }
        }
        let added = flow.matches.iter().try_for_each(|matching| self.add_entry(&flow, *matching, now));
        if let Err(error) = added {
            self.remove_entries(&flow, now);
            return Err(error);
        }
        let mut stored = StoredFlow { flow, created: now, deadline: None };
        self.schedule(&mut stored, now);
        self.flows.insert(stored.flow.id, stored);
        Ok(())
    }

    pub(super) fn add_entry(&mut self, flow: &Flow, matching: Match, now: Duration) -> Result<(), FlowError> {
        let owner = match self.owners.entry((matching, flow.priority)) {
            Entry::Occupied(owner) => return Err(FlowError::SameMatch { flow: *owner.get() }),
            Entry::Vacant(owner) => owner,
        };
        let mut change = Change::new(Command::Add, matching, flow.priority);
        change.cookie = flow.id;
        change.instructions = Instructions::output(match flow.output {
            FlowOutput::Port(PortKey(key)) => Output::Port(key.into()),
            FlowOutput::Chain(chain) => Output::Chain(chain.into()),
            FlowOutput::Normal => Output::Normal,
            FlowOutput::Flood => Output::Flood,
            FlowOutput::Drop => Output::Drop,
        });
        self.pipeline.apply(&change, now)?;
        owner.insert(flow.id);
        Ok(())
    }

    /// Removes the entries that belong to a flow.
    pub(super) fn remove_entries(&mut self, flow: &Flow, now: Duration) {
        for matching in &flow.matches {
            let key = (*matching, flow.priority);
            if self.owners.get(&key) == Some(&flow.id) {
                self.owners.remove(&key);
                // A deletion of one entry never fails.
                let _ =
                    self.pipeline.apply(&Change::new(Command::DeleteStrict, *matching, flow.priority), now);
            }
        }
    }

    /// Removes a flow. Returns its last state; `None` if there is no such flow.
    pub fn remove_flow(&mut self, id: u64, now: u64) -> Option<FlowStatus> {
        let now = Duration::from_nanos(now);
        let stored = self.flows.remove(&id)?;
        let status = self.status(&stored, now);
        self.remove_entries(&stored.flow, now);
        if let Some(deadline) = stored.deadline {
            self.deadlines.remove(&(deadline, id));
        }
        Some(status)
    }

    /// The counters of the flows with numbers above `after`, in the order of their numbers: at most `limit`.
    pub fn flows(&mut self, after: u64, limit: usize, now: u64) -> Vec<FlowStatus> {
        let flows = std::mem::take(&mut self.flows);
        let above = flows.range((Bound::Excluded(after), Bound::Unbounded)).take(limit);
        let list = above.map(|(_, stored)| self.status(stored, Duration::from_nanos(now))).collect();
        self.flows = flows;
        list
    }

    /// When the timeouts of a flow or an entry are looked at next, in nanoseconds.
    pub fn next_deadline(&self) -> Option<u64> {
        let entries =
            self.pipeline.next_deadline().map(|time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        let flows = self.deadlines.first().map(|(deadline, _)| *deadline);
        [flows, entries, self.chains.next_deadline(), self.tidy_deadline()].into_iter().flatten().min()
    }

    pub(super) fn status(&mut self, stored: &StoredFlow, now: Duration) -> FlowStatus {
        let (mut packets, mut bytes, mut used) = (0, 0, stored.created);
        for matching in &stored.flow.matches {
            if let Some(entry) = self.pipeline.entry(0, matching, stored.flow.priority) {
                packets += entry.packets;
                bytes += entry.bytes;
                used = used.max(entry.used);
            }
        }
        let [age, idle] = [stored.created, used].map(|time| now.saturating_sub(time));
        FlowStatus { id: stored.flow.id, packets, bytes, age, idle }
    }

    /// The number of flows.
    pub fn len(&self) -> usize {
        self.flows.len()
    }

    /// Whether there is no flow.
    pub fn is_empty(&self) -> bool {
        self.flows.is_empty()
    }

    /// The number of entries of controllers.
    pub fn controller_entries(&self) -> usize {
        self.pipeline.len() - self.owners.len()
    }

    /// Counters of the cache.
    pub fn cache_counters(&self) -> CacheCounters {
        self.cache.counters()
    }

    /// Counters of the fragmented packets.
    pub fn fragment_counters(&self) -> FragmentCounters {
        self.fragments.counters()
    }
}

impl Forward for Steering {
    /// What [`FlowOutput::Normal`] does.
    fn decide(&mut self, destination: MacAddr, source: MacAddr, from: PortId, now: u64) -> Decision {
        self.bridge.decide(destination, source, from, now)
    }

    fn reads_headers(&self) -> bool {
        true
    }

    /// What comes from a function has an identity, mostly.
    fn leaves_unread(&self, from: PortId) -> bool {
        let role = self.key(from).and_then(|key| self.chains.role(key));
        // What a translator made of a frame decides where it goes.
        role.is_some_and(|role| !role.translates())
    }

    fn pass_on(
        &mut self,
        frames: &[UnreadFrame],
        from: PortId,
        now: u64,
        decisions: &mut Vec<Option<Decision>>,
    ) {
        let Some(role) = self.key(from).and_then(|key| self.chains.role(key)) else { return };
        let Self { chains, ports, .. } = self;
        if chains.is_frozen() {
            return decisions.resize(frames.len(), None);
        }
        chains.pass_on(role, frames, now, |step| {
            let is_decided = matches!(step, Step::To(..) | Step::Lose(_));
            decisions.push(is_decided.then(|| decided(step, ports)));
        });
    }

    fn pass_direct(&mut self, packets: &mut [DirectPacket], from: PortId, to: PortId, now: u64) -> usize {
        let role = self.key(from).and_then(|key| self.chains.role(key));
        let (Some(role), Some(to)) = (role, self.key(to)) else { return 0 };
        self.chains.pass_direct(role, packets, to, now)
    }

    fn count_direct(&mut self, packets: u64, bytes: u64, now: u64) {
        self.chains.count_direct(packets, bytes, now);
    }

    fn decide_heads(&mut self, heads: &[FrameHead<'_>], from: PortId, now: u64, decisions: &mut [Decision]) {
        self.decide_frames(heads, from, now, decisions);
    }

    fn begin_batch(&mut self) {
        self.pending.clear();
    }

    fn perform(&mut self, frame: &[u8], from: PortId, now: u64, outcome: &mut dyn Outcome) {
        self.perform_pending(frame, from, now, outcome);
    }

    fn remove_port(&mut self, port: PortId) {
        self.forget_port_key(port);
        self.bridge.remove_port(port);
    }

    fn limit_new_addresses(&mut self, port: PortId, quota: TokenBucket) {
        self.bridge.limit_new_addresses(port, quota);
    }

    fn flush_port(&mut self, port: PortId) {
        self.bridge.flush_port(port);
        if let Some(key) = self.key(port) {
            self.chains.set_port_up(key, false);
        }
    }

    fn resume_port(&mut self, port: PortId) {
        if let Some(key) = self.key(port) {
            self.chains.set_port_up(key, true);
        }
    }

    fn set_crowded(&mut self, port: PortId, is_crowded: bool) {
        if let Some(key) = self.key(port) {
            self.chains.set_crowded(key, is_crowded);
        }
    }

    fn set_silent(&mut self, port: PortId, is_silent: bool) {
        if let Some(key) = self.key(port) {
            self.chains.set_silent(key, is_silent);
        }
    }

    fn count_lost(&mut self, tag: u64, frames: u64) {
        self.chains.count_lost(tag, frames);
    }

    fn translates(&self, port: PortId) -> bool {
        self.key(port).and_then(|key| self.chains.role(key)).is_some_and(Role::translates)
    }

    fn translated(&mut self, frame: &FrameHead<'_>, from: PortId, now: u64) -> Option<u64> {
        let role = self.key(from).and_then(|key| self.chains.role(key))?;
        let mut key = Key::default();
        // Fragments are spread by their addresses alone, so they have records wherever they pass.
        if key.read(frame.head, &Ingress::default()).is_some() {
            return None;
        }
        self.chains.translated(role, frame.mark, &key.flow_tuple(frame.head, self.flow_seed), now)
    }

    fn passed_translated(&mut self, tag: u64) {
        self.chains.passed_translated(tag);
    }

    fn next_held(&self) -> Option<Option<PortId>> {
        let key = self.chains.next_held()?;
        Some(key.and_then(|key| self.port(key)))
    }

    fn release_held(&mut self, now: u64, outcome: &mut dyn Outcome) {
        let Self { chains, ports, .. } = self;
        chains.release_held(now, |key| ports.get(usize::from(key.0)).copied().flatten(), outcome);
    }
}

/// The address at an offset of a frame with an Ethernet header.
#[inline(always)]
pub(super) fn address(head: &[u8], at: usize) -> MacAddr {
    head.get(at..).and_then(|rest| rest.first_chunk()).map_or(MacAddr::ZERO, |bytes| MacAddr(*bytes))
}

/// The decision for a step of a chain. Where there is nothing to look up any more, the frame matches no flow.
#[inline(always)]
pub(super) fn decided(step: Step, ports: &[Option<PortId>]) -> Decision {
    match step {
        Step::To(key, tag) => match ports.get(usize::from(key.0)).copied().flatten() {
            Some(port) if tag != 0 => Decision::ToFunction(port, tag),
            Some(port) => Decision::To(port),
            None => Decision::Drop,
        },
        Step::Lose(reason) => Decision::Lose(reason),
        Step::Hold(_) => Decision::Perform,
        Step::LookUp | Step::Service(..) | Step::Chain(_) | Step::Leave(_) | Step::Arrive(_) => {
            Decision::FlowMiss
        }
    }
}
