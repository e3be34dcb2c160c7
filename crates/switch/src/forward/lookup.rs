//! Where a steering switch sends the frames of a batch.
//!
//! Frames are decided in passes, so that what the processor has to wait for comes for all of them together: the match fields of each
//! are read; then all are looked up in the flow cache, which also says where the records of most flows are, so that these are
//! prefetched; then those that enter chains do so. A pass notes little of a frame. It writes nothing in parts that the next
//! instructions read as a whole, because a processor waits some nanoseconds for that.

use super::chains::{Chains, EntryWay, KnownFlow, Role, Step};
use super::contract::{Decision, FrameHead, MAX_HEADS};
use super::controllers::{Pending, PendingOperations};
use super::ingress::number;
use super::steering::{Steering, address, decided};
use crate::port::PortId;
use flow_table::{Action, Ingress, Operation, Output};
use reason::Reason;
use std::collections::VecDeque;
use std::time::Duration;

/// A frame that enters a chain, or goes to an instance of a service.
#[derive(Clone, Copy, Default)]
struct Entering {
    /// Its place among those that are looked up.
    lane: u8,
    into: EntryTarget,
}

/// What a frame enters.
#[derive(Clone, Copy, Default)]
enum EntryTarget {
    /// The chain that the service of the frame's function has one place in.
    #[default]
    Home,
    Chain(u16),
    Service(u16),
}

/// Notes that a frame waits, if it does.
#[inline(always)]
fn wait_if_held(step: Step, at: u8, pending: &mut VecDeque<(u8, Pending)>) {
    if let Step::Hold(identity) = step {
        pending.push_back((at, Pending::Held(identity)));
    }
}

impl Steering {
    /// Decides where frames go that a function sent, as far as nothing has to be looked up. Returns the number of the others,
    /// whose keys are in `arrivals`.
    fn follow_chains(
        &mut self,
        role: Role,
        heads: &[FrameHead<'_>],
        ingress: &Ingress,
        now: u64,
        decisions: &mut [Decision],
    ) -> usize {
        let Self { chains, fragments, ports, arrivals, places, lookups, flow_seed, pending, .. } = self;
        let time = Duration::from_nanos(now);
        heads.iter().for_each(|frame| chains.prefetch(frame.mark));
        let mut count = 0;
        for ((at, frame), decision) in (0..).zip(heads).zip(decisions.iter_mut()) {
            let step = chains.follow(role, frame.mark, frame.length, now);
            if matches!(step, Step::To(..) | Step::Lose(_) | Step::Hold(_)) {
                wait_if_held(step, at, pending);
                *decision = decided(step, ports);
                continue;
            }
            let (Some(arrival), Some(place), Some(looked_up)) =
                (arrivals.get_mut(count), places.get_mut(count), lookups.get_mut(count))
            else {
                break;
            };
            if let Some(fragment) = arrival.key.read(frame.head, ingress) {
                fragments.resolve(&mut arrival.key, fragment, time);
            }
            let times = Chains::lookups(frame.mark);
            let step = match step {
                Step::Service(service, reverse) => {
                    let flow = arrival.key.flow_tuple(frame.head, *flow_seed);
                    chains.divert_to_service(service, reverse, (&flow, times), frame.length, now)
                }
                Step::Chain(diversion) => {
                    let flow = arrival.key.flow_tuple(frame.head, *flow_seed);
                    chains.divert_to_chain(diversion, (&flow, times), frame.length, now)
                }
                Step::Leave(identity) => {
                    let flow = arrival.key.flow_tuple(frame.head, *flow_seed);
                    chains.leave(role, identity, &flow, frame.length, now)
                }
                Step::Arrive(translated) => {
                    let flow = arrival.key.flow_tuple(frame.head, *flow_seed);
                    chains.arrive(role, translated, &flow, frame.length, now)
                }
                step => step,
            };
            if step != Step::LookUp {
                wait_if_held(step, at, pending);
                *decision = decided(step, ports);
                continue;
            }
            arrival.length = frame.length as u32;
            (*place, *looked_up) = (at, times);
            count += 1;
        }
        count
    }

    /// Learns the addresses of frames that did not come from a function. Returns the number of those that are allowed, whose keys
    /// are in `arrivals`.
    fn learn_sources(
        &mut self,
        heads: &[FrameHead<'_>],
        from: PortId,
        ingress: &Ingress,
        now: u64,
        decisions: &mut [Decision],
    ) -> usize {
        let Self { bridge, fragments, arrivals, places, lookups, .. } = self;
        lookups.fill(0);
        let time = Duration::from_nanos(now);
        // The sender of the frame before, and whether it may send.
        let (mut before, mut learned) = (None, Ok(()));
        let mut count = 0;
        for ((at, frame), decision) in (0..).zip(heads).zip(decisions.iter_mut()) {
            let source = address(frame.head, 6);
            if before != Some(source) {
                before = Some(source);
                learned = match source.is_group() {
                    // No station has a group address (IEEE 802-2014, 8.2.2).
                    true => Err(Decision::BadSource),
                    false => bridge.learn(source, from, now),
                };
            }
            if let Err(refused) = learned {
                *decision = refused;
                continue;
            }
            let (Some(arrival), Some(place)) = (arrivals.get_mut(count), places.get_mut(count)) else {
                break;
            };
            if let Some(fragment) = arrival.key.read(frame.head, ingress) {
                fragments.resolve(&mut arrival.key, fragment, time);
            }
            arrival.length = frame.length as u32;
            *place = at;
            count += 1;
        }
        count
    }

    /// As [`Forward::decide_heads`](super::Forward::decide_heads).
    #[inline(always)]
    pub(super) fn decide_frames(
        &mut self,
        heads: &[FrameHead<'_>],
        from: PortId,
        now: u64,
        decisions: &mut [Decision],
    ) {
        let time = Duration::from_nanos(now);
        let key = self.key(from);
        let role = key.and_then(|key| self.chains.role(key));
        let ingress = self.tunnels.ingress(number(key, role));
        let earlier = self.pending.len();
        let count = match role {
            Some(role) => self.follow_chains(role, heads, &ingress, now, decisions),
            None => self.learn_sources(heads, from, &ingress, now, decisions),
        };
        let Self {
            bridge,
            pipeline,
            cache,
            ports,
            arrivals,
            places,
            lookups,
            controllers,
            pending,
            chains,
            hashes,
            flow_seed,
            ..
        } = self;
        let arrivals = arrivals.get(..count).unwrap_or_default();
        let mut entering = [Entering::default(); MAX_HEADS];
        let mut entering_count = 0;
        // A path that only leads into something, as that of the next frame mostly does too.
        let (mut before, mut into) = (None, EntryTarget::Home);
        cache.look_up(pipeline, arrivals, time);
        // Most frames enter a chain.
        let notes = cache.notes().iter().take(count);
        notes.filter(|note| **note != 0).for_each(|note| chains.prefetch_noted(*note));
        let paths = cache.paths(count);
        let known = arrivals.iter().zip(&*places).zip(&*lookups);
        for ((lane, id), ((arrival, at), lookups)) in (0..).zip(paths).zip(known) {
            // Decided below, when the memory is there that is prefetched before.
            let mut enter = |target: EntryTarget| {
                if let Some(entry) = entering.get_mut(entering_count) {
                    *entry = Entering { lane, into: target };
                    entering_count += 1;
                }
            };
            if before == Some(*id) {
                enter(into);
                continue;
            }
            let mut enter = |target: EntryTarget| {
                enter(target);
                (before, into) = (Some(*id), target);
                Decision::FlowMiss
            };
            let (at, lookups) = (usize::from(*at), *lookups);
            let (Some(frame), Some(decision)) = (heads.get(at), decisions.get_mut(at)) else { continue };
            let port = |key: u32| ports.get(key as usize).copied().flatten();
            let Some(path) = pipeline.path(*id) else { continue };
            *decision = match path.operations() {
                [Operation::Action(Action::Output(output))] if is_simple(*output) => match output {
                    Output::Port(key) => port(*key).map_or(Decision::Drop, Decision::To),
                    Output::Chain(chain) => enter(EntryTarget::Chain(*chain as u16)),
                    // As to any port from which a frame comes (OpenFlow 1.3.5, 5.12).
                    Output::Service(service)
                        if role.is_some_and(|role| u32::from(role.service) == *service) =>
                    {
                        Decision::Lose(Reason::SAME_PORT)
                    }
                    Output::Service(service) => enter(EntryTarget::Service(*service as u16)),
                    Output::Normal => bridge.route(address(frame.head, 0), from, now),
                    Output::Flood => Decision::Flood,
                    _ => Decision::FlowDrop,
                },
                [] if path.is_miss() && role.is_some_and(|role| chains.has_home(role)) => {
                    enter(EntryTarget::Home)
                }
                [] if path.is_miss() && key.is_some_and(|key| chains.default_chain(key).is_some()) => key
                    .and_then(|key| chains.default_chain(key))
                    .map_or(Decision::FlowMiss, |chain| enter(EntryTarget::Chain(chain))),
                [] if path.is_miss() && controllers.is_standalone() => {
                    bridge.route(address(frame.head, 0), from, now)
                }
                [] if path.is_miss() && !controllers.gets_misses => Decision::FlowMiss,
                [] if !path.is_miss() => Decision::FlowDrop,
                _ => {
                    let waiting = PendingOperations { key: arrival.key, path: *id, lookups };
                    pending.push_back((at as u8, Pending::Operations(waiting)));
                    Decision::Perform
                }
            };
        }
        let entering = entering.get(..entering_count).unwrap_or_default();
        for Entering { lane, into } in entering {
            let EntryTarget::Chain(chain) = *into else { continue };
            let lane = usize::from(*lane);
            let frame = places.get(lane).and_then(|at| heads.get(usize::from(*at)));
            if cache.notes().get(lane) == Some(&0)
                && let (Some(arrival), Some(hash), Some(frame)) =
                    (arrivals.get(lane), hashes.get_mut(lane), frame)
            {
                *hash = arrival.key.flow_tuple(frame.head, *flow_seed).hash;
                chains.prefetch_index(chain, *hash);
            }
        }
        for Entering { lane, into } in entering {
            let EntryTarget::Chain(chain) = *into else { continue };
            let lane = usize::from(*lane);
            if let (Some(0), Some(hash)) = (cache.notes().get(lane), hashes.get(lane)) {
                chains.prefetch_record(chain, *hash);
            }
        }
        let mut way: Option<EntryWay> = None;
        for Entering { lane, into } in entering {
            let lane = usize::from(*lane);
            let (Some(arrival), Some(hash), Some(at), Some(lookups), Some(note)) = (
                arrivals.get(lane),
                hashes.get(lane),
                places.get(lane),
                lookups.get(lane),
                cache.notes().get(lane).copied(),
            ) else {
                continue;
            };
            let known = if note == 0 { KnownFlow::Hash(*hash) } else { KnownFlow::Note(note) };
            // Its next packets are known by the note.
            let mut note_flow = |chains: &Chains, chain: u16, step: Step, hash: u64| {
                if arrival.key.tells_flow()
                    && let Some(now) = chains.flow_note(chain, step, hash).filter(|now| *now != note)
                {
                    cache.set_note(lane, &arrival.key, now);
                }
            };
            let (Some(frame), Some(decision)) =
                (heads.get(usize::from(*at)), decisions.get_mut(usize::from(*at)))
            else {
                continue;
            };
            // A packet that enters alone has nothing in common with others.
            if let EntryTarget::Chain(chain) = into
                && entering.len() > 1
            {
                if way.is_none_or(|way| way.chain != *chain) {
                    way.take().into_iter().for_each(|way| chains.count_entered(way, now));
                    way = chains.entry_way(*chain, key);
                }
                if let Some(way) = &mut way
                    && let Some(step) = chains.enter_way(way, (known, *lookups), frame.length, now)
                {
                    if note == 0 {
                        note_flow(chains, *chain, step, *hash);
                    }
                    *decision = decided(step, ports);
                    continue;
                }
            }
            // Whatever else happens may change the way.
            way.take().into_iter().for_each(|way| chains.count_entered(way, now));
            let tuple = arrival.key.flow_tuple(frame.head, *flow_seed);
            let flow = (&tuple, *lookups);
            let step = match (into, role) {
                (EntryTarget::Chain(chain), _) => chains.enter_chain(*chain, flow, key, frame.length, now),
                (EntryTarget::Service(service), _) => {
                    chains.enter_service(*service, flow, key, frame.length, now)
                }
                (EntryTarget::Home, Some(role)) => {
                    chains.continue_at_home(role, flow, frame.length, now).unwrap_or(Step::LookUp)
                }
                (EntryTarget::Home, None) => Step::LookUp,
            };
            wait_if_held(step, *at, pending);
            *decision = decided(step, ports);
            if let EntryTarget::Chain(chain) = into {
                note_flow(chains, *chain, step, tuple.hash);
            }
        }
        way.into_iter().for_each(|way| chains.count_entered(way, now));
        if chains.is_frozen() {
            // Frames are performed in the order of the batch.
            let all = pending.make_contiguous();
            all.get_mut(earlier..).unwrap_or_default().sort_by_key(|(at, _)| *at);
        }
    }
}

/// Whether a frame with only this output needs no copy.
#[inline(always)]
fn is_simple(output: Output) -> bool {
    matches!(
        output,
        Output::Port(_)
            | Output::Chain(_)
            | Output::Service(_)
            | Output::Normal
            | Output::Flood
            | Output::Drop
    )
}
